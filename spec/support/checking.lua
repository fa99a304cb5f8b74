-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- For specs of the checker: what it finds in a function.
local tp = require "tpstream"

local checking = {}

-- Calls fn(...) under these checks → the array of reports.
function checking.found(checks, fn, ...)
  tp.check.start(checks)
  local ok, err = pcall(fn, ...)
  local reports = tp.check.stop()
  if not ok then error(err, 0) end
  return reports
end

-- "write/read, 2" for a pair of accesses seen twice; in order.
local function brief(reports)
  local list = {}
  for i, r in ipairs(reports) do
    list[i] = ("%s/%s"):format(r.first.access, r.second.access)
  end
  return table.concat(list, ", ")
end

-- Nothing is missing in what fn does, or exactly these pairs ("write/read").
function checking.fine(fn, ...)
  local reports = checking.found({ "order" }, fn, ...)
  if #reports > 0 then error("found: " .. reports[1].text, 2) end
end

function checking.misses(pairs_expected, fn, ...)
  local reports = checking.found({ "order" }, fn, ...)
  local got = brief(reports)
  if got ~= pairs_expected then
    error(("expected %s, got '%s'\n%s"):format(pairs_expected, got,
      reports[1] and reports[1].text or ""), 2)
  end
  return reports
end

return checking
