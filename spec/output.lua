-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- How busted reports to spec/runner.lua: one line for each test on stdout, and
-- in the file that TPS_COUNTS names the counts, written at the very end. A run
-- that dies or leaves early so leaves no counts behind.
--
-- Where NVRTC is not installed, what fails because of that counts as skipped.
local busted = require "busted"

return function()
  local handler = require "busted.outputHandlers.base"()
  local counts = { passed = 0, failed = 0, skipped = 0 }
  local started
  local forgiven = 0 -- failures to busted, skipped to us

  local function say(...)
    io.stdout:write(...)
    io.stdout:flush()
  end

  local without_compiler = {} -- blocks whose set-up failed so

  local function for_want_of_compiler(element, parent, message)
    local here = tostring(message):find("TPSTREAM_ERROR_NO_COMPILER", 1, true)
    if here and parent then without_compiler[parent] = true end
    local cleans = element.descriptor:find "teardown$" or
      element.descriptor == "after_each"
    return here or cleans and without_compiler[parent]
  end

  local function tell(message, trace)
    if type(message) ~= "string" then message = tostring(message) end
    local text = message .. "\n"
    if trace and trace.traceback then
      text = text .. tostring(trace.traceback) .. "\n"
    end
    say((text:gsub("([^\n]*)\n", "    %1\n")))
  end

  -- What a test leaves behind is found when it has already been counted.
  local function problem(element, parent, message, trace)
    if for_want_of_compiler(element, parent, message) then
      forgiven = forgiven + 1
      element.no_compiler = true
      if element.descriptor ~= "it" then
        counts.skipped = counts.skipped + 1
        say("skipped ", handler.getFullName(element), " (no compiler)\n")
      end
      return nil, true
    end
    if element.descriptor == "it" and element.left_open then
      element.left_open = nil
      counts.passed, counts.failed = counts.passed - 1, counts.failed + 1
      say("not ok ", handler.getFullName(element), "\n")
    elseif element.descriptor ~= "it" then
      counts.failed = counts.failed + 1
      say("not ok ", handler.getFullName(element), " (", element.descriptor,
          ")\n")
    end
    tell(message, trace)
    return nil, true
  end

  busted.subscribe({ "test", "start" }, function(element)
    started = busted.monotime()
    say("- ", handler.getFullName(element), "\n")
    return nil, true
  end)

  busted.subscribe({ "test", "end" }, function(element, _, status)
    local name = handler.getFullName(element)
    local ms = (busted.monotime() - started) * 1000
    if status == "success" then
      counts.passed = counts.passed + 1
      say(("ok %s (%.0f ms)\n"):format(name, ms))
    elseif status == "pending" or element.no_compiler then
      counts.skipped = counts.skipped + 1
      say("skipped ", name, "\n")
    else
      counts.failed = counts.failed + 1
      say("not ok ", name, "\n")
    end
    return nil, true
  end)

  busted.subscribe({ "failure" }, problem)
  busted.subscribe({ "error" }, problem)
  busted.subscribe({ "pending" }, function(_, _, message)
    if message then tell(message) end
    return nil, true
  end)

  busted.subscribe({ "exit" }, function()
    local path = os.getenv "TPS_COUNTS"
    if path then
      local file <close> = assert(io.open(path, "w"))
      file:write(("%d %d %d %d\n"):format(counts.passed, counts.failed,
                                          counts.skipped, forgiven))
    end
    return nil, true
  end)

  return handler
end
