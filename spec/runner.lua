-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Runs one file of tests in a process of its own and says what came of it:
--   lua5.4 spec/runner.lua --busted LAUNCHER INTERPRETER spec/x_spec.lua
--   lua5.4 spec/runner.lua --c PROGRAM
-- The last line is "N passed, N failed, N skipped", the status 0 if none
-- failed.
--
-- busted alone ends with status 0 when no test ran, when a test calls
-- os.exit(0), and when a finalizer fails. Here each of those is a failure.
package.path = "./?.lua;" .. package.path
local run = require "spec.support.run"

local function finish(passed, failed, skipped)
  print(("%d passed, %d failed, %d skipped"):format(passed, failed, skipped))
  os.exit(failed == 0, true)
end

local function note(...)
  print("FAILED: " .. string.format(...))
end

-- Problems that the counts don't show; how many.
local function problems(result, counted, ran)
  local found = 0
  local function add(...)
    found = found + 1
    note(...)
  end
  if result.timed_out then
    add("no end within %s s", result.limit)
  elseif result.signal then
    add("killed by signal %d", result.signal)
  elseif not counted then
    add("left early with status %d, without a summary", result.status)
  elseif ran == 0 then
    add("no test ran")
  elseif result.status ~= 0 and counted.failed + counted.forgiven == 0 then
    add("status %d although no test failed", result.status)
  end
  for line in result.stderr:gmatch "Lua warning: [^\n]*" do
    add("%s", line)
  end
  return found
end

local function read_counts(path)
  local file = io.open(path)
  if not file then return nil end
  local passed, failed, skipped, forgiven = file:read("n", "n", "n", "n")
  file:close()
  os.remove(path)
  return forgiven and {
    passed = passed, failed = failed, skipped = skipped, forgiven = forgiven,
  }
end

local function show(result)
  io.stdout:write(result.stdout)
  if result.stderr ~= "" then
    io.stdout:write("--- stderr\n", result.stderr, "---\n")
  end
end

local function judge(result, counted)
  show(result)
  local c = counted or { passed = 0, failed = 0, skipped = 0 }
  local more = problems(result, counted, c.passed + c.failed + c.skipped)
  finish(c.passed, c.failed + more, c.skipped)
end

local function run_busted(launcher, interpreter, spec)
  local counts = os.tmpname()
  os.remove(counts)
  local build = assert(os.getenv "TPS_BUILD", "TPS_BUILD is not set")
  local is_module = not interpreter:find "tpstream$"
  local result = run.command({
    interpreter, "-W", launcher, "--helper=spec/helper.lua",
    "-o", "spec/output.lua", spec,
  }, {
    timeout = tonumber(os.getenv "TPS_SPEC_TIMEOUT" or 300),
    env = {
      TPS_COUNTS = counts,
      TPS_LAUNCHER = launcher,
      TPSTREAM_SIM_DEVICES = os.getenv "TPSTREAM_SIM_DEVICES" or "2",
      TPS_INTERPRETER = interpreter,
      LUA_CPATH = (is_module and build .. "/?.so;" or "")
        .. (os.getenv "LUA_CPATH" or ";;"),
      LUA_PATH = "./?.lua;./?/init.lua;" .. (os.getenv "LUA_PATH" or ";;"),
      LUA_INIT = false,
      LUA_INIT_5_4 = false,
      LUA_PATH_5_4 = false,
      LUA_CPATH_5_4 = false,
      TPSTREAM_CACHE = os.getenv "TPSTREAM_CACHE" or "0",
    },
  })
  judge(result, read_counts(counts))
end

-- cmocka's own summary, on stderr: "[  PASSED  ] 12 test(s)."
local function run_c(program)
  local result = run.command({ program }, {
    timeout = tonumber(os.getenv "TPS_SPEC_TIMEOUT" or 300),
    env = {
      CMOCKA_MESSAGE_OUTPUT = "STDOUT",
      TPSTREAM_CACHE_DIR = os.getenv "TPSTREAM_CACHE_DIR" or
        (os.getenv "TPS_BUILD" or "build") .. "/cache-of-tests",
    },
  })
  local text = result.stdout .. result.stderr
  local counted
  local function count(word)
    local sum = 0
    for n in text:gmatch("%[  " .. word .. "  %] (%d+) test") do
      sum = sum + tonumber(n)
    end
    return sum
  end
  if text:find "%[==========%] %d+ test%(s%) run" then
    counted = {
      passed = count "PASSED", failed = count "FAILED",
      skipped = count "SKIPPED", forgiven = 0,
    }
  end
  judge(result, counted)
end

if arg[1] == "--busted" and #arg == 4 then
  run_busted(arg[2], arg[3], arg[4])
elseif arg[1] == "--c" and #arg == 2 then
  run_c(arg[2])
else
  io.stderr:write("usage: runner.lua --busted LAUNCHER INTERPRETER SPEC\n",
                  "       runner.lua --c PROGRAM\n")
  os.exit(2)
end
