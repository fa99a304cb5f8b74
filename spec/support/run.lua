-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Child processes: for specs of the command, and for those of faults, each of
-- which needs a process of its own since a fault ends its device.
--
--   local run = require "spec.support.run"
--   local r = run.script([[print "hello"]], { args = { "a" } })
--   assert.equal(0, r.status)
--
-- Options: args, env (name → value, false takes it out), stdin (text), timeout
-- in seconds (60), interpreter, signal and after (sends that signal after so
-- many seconds; INT some later on a GPU, which takes its time to begin). Results:
-- status (nil when killed), signal (nil unless killed), timed_out, stdout, stderr.
local files = require "spec.support.files"

local read, write = files.read, files.write
local run = {}

local function quote(text)
  return "'" .. tostring(text):gsub("'", "'\\''") .. "'"
end

local function with_environment(env)
  local words = { "env" }
  for name, value in pairs(env or {}) do
    if value == false then table.insert(words, "-u " .. quote(name)) end
  end
  for name, value in pairs(env or {}) do
    if value then
      table.insert(words, quote(name .. "=" .. tostring(value)))
    end
  end
  return table.concat(words, " ")
end

-- The interpreter that runs this.
function run.interpreter()
  local found = os.getenv "TPS_INTERPRETER"
  if found then return found end
  local least = 0
  while arg[least - 1] do least = least - 1 end
  return arg[least]
end

-- Seconds that a process may take to find its devices.
local START = os.getenv "TPSTREAM_DEVICE" == "cuda" and 3 or 0

-- timeout(1) ends with 124 when the time ran out, or is killed as the child is.
local function limit(options, seconds)
  local words = { "timeout" }
  if options.signal then
    table.insert(words, "--foreground --preserve-status")
    table.insert(words, "-s " .. options.signal)
  end
  table.insert(words, "-k 10")
  local seconds_to_start = options.signal == "INT" and START or 0
  table.insert(words, tostring((options.after or seconds) + seconds_to_start))
  return table.concat(words, " ")
end

-- Runs a program: words is an array, the name first.
function run.command(words, options)
  options = options or {}
  local seconds = options.timeout or 60
  local base = os.tmpname()
  local quoted = {}
  for i, word in ipairs(words) do quoted[i] = quote(word) end
  write(base .. ".in", options.stdin or "")
  local _, how, code = os.execute(table.concat({
    "exec", limit(options, seconds), with_environment(options.env),
    table.concat(quoted, " "), "<", base .. ".in", ">", base .. ".out", "2>",
    base .. ".err",
  }, " "))
  local result = {
    stdout = read(base .. ".out"), stderr = read(base .. ".err"),
    limit = seconds,
  }
  if how == "exit" and code > 128 then how, code = "signal", code - 128 end
  if how == "exit" and code == 124 and not options.signal then
    result.timed_out = true
  end
  result[how == "exit" and "status" or "signal"] = code
  for _, tail in ipairs { "", ".in", ".out", ".err" } do
    os.remove(base .. tail)
  end
  -- Then the caller can't go on either (spec/output.lua makes it a skip).
  if result.status ~= 0 and
    result.stderr:find("TPSTREAM_ERROR_NO_COMPILER", 1, true) then
    if not (options.env or {}).TPS_COUNTS then error(result.stderr, 0) end
  end
  return result
end

-- Runs the interpreter itself with these arguments.
function run.lua(arguments, options)
  local words = { options and options.interpreter or run.interpreter() }
  table.move(arguments, 1, #arguments, 2, words)
  return run.command(words, options)
end

-- Runs a script given as text, in a file of its own.
function run.script(text, options)
  local path = os.tmpname()
  write(path, text)
  local words = { path }
  local args = options and options.args or {}
  table.move(args, 1, #args, 2, words)
  local result = run.lua(words, options)
  os.remove(path)
  result.path = path
  return result
end

return run
