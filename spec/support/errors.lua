-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What a call raises. A call that raises nothing fails the test; one that lacks the
-- compiler ends it (spec/output.lua makes that a skip).
--
--   local errors = require "spec.support.errors"
--   assert.matches("closed buffer", errors.text(b.read, b), 1, true)
local errors = {}

-- As it was raised: a string or an error object.
function errors.object(fn, ...)
  local ok, e = pcall(fn, ...)
  assert(not ok, "an error was expected")
  if type(e) ~= "string" and tostring(e):find("ERROR_NO_COMPILER", 1, true) then
    error(e, 0)
  end
  return e
end

-- Its text, and itself.
function errors.text(...)
  local e = errors.object(...)
  return tostring(e), e
end

-- The same without the place in front.
function errors.message(...)
  local text, e = errors.text(...)
  return (text:gsub("^[^:]*:%d+: ", "")), e
end

return errors
