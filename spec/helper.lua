-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What every spec file runs under: warnings are on (spec/runner.lua makes each
-- a failure), and a test or a file that leaves a handle open fails.
local busted = require "busted"
local handles = require "spec.support.handles"

warn "@on"

local at_file, at_test

local function complain(element, parent, before)
  for i, pair in ipairs(handles.new_since(before)) do
    element.left_open = i == 1
    busted.publish({ "failure", "leak" }, element, parent,
      ("left open: %s\n  held by %s"):format(tostring(pair[1]), pair[2]), {})
  end
end

busted.subscribe({ "file", "start" }, function()
  at_file = handles.set()
  return nil, true
end)

busted.subscribe({ "file", "end" }, function(element, parent)
  complain(element, parent, at_file)
  return nil, true
end)

busted.subscribe({ "test", "start" }, function()
  at_test = handles.set()
  return nil, true
end)

-- Only of tests that passed: a failed one could not clean up.
busted.subscribe({ "test", "end" }, function(element, parent, status)
  if status == "success" then complain(element, parent, at_test) end
  return nil, true
end)
