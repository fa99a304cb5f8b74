-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Functions and methods called at random, with whatever there is for arguments: open
-- and closed handles, of the right type and others, numbers out of range, callbacks
-- that raise or close what is in use; also in tasks, captures and coroutines. What is
-- wrong is an error; nothing crashes, hangs, or is found by the sanitizers.
local run = require "spec.support.run"

local SCRIPT = [=[
local seed, steps = ...
local tp = require "tpstream"
local program = require "spec.support.program"
local here, there = require "spec.support.pair".devices()
local int = require "spec.support.numbers".generator(tonumber(seed)).int
local module = program("random_calls", [[
extern "C" __global__ void look(unsigned *p, unsigned v) {
  if (p && v == 12345678 && blockIdx.x > 1000) *p = v;
}]])

local pool = {} -- what the calls have given
local function some() return pool[int(1, #pool)] end
local function keep(x)
  if type(x) ~= "userdata" and type(x) ~= "table" then return end
  pool[#pool + 1] = x
  if #pool > 60 then table.remove(pool, int(1, #pool)) end
end
local function refill()
  pool = { tp.Stream(here), tp.Stream(there), tp.Event(), tp.Event(true),
    tp.zeros("i32", 16), tp.zeros("u8", 32, { device = there }), tp.pinned("f32", 8),
    tp.buffer("u8", 0), module:kernel "look", tp.capture(function() end),
    module:kernel "look":bind { grid = 1, block = 1 } }
end

local FIELDS = { "stream", "device", "first", "count", "at", "rows", "row_bytes",
  "pitch", "to_pitch", "params", "grid", "block", "shared", "enable_timing",
  "blocking", "priority", "mode", "offset" }
local TYPES = { "i8", "u8", "i16", "u32", "f32", "f64", "bf16", "foo" }
local ODD = { 0.5, -1, math.huge, 0 / 0, math.maxinteger, math.mininteger, true,
  false, "", "xxxx" }

local value
local function options()
  local t = {}
  for _, name in ipairs(FIELDS) do
    if int(1, 4) == 1 then t[name] = value(true) end
  end
  return t
end
local function callback(...)
  if int(1, 4) == 1 then error "on purpose" end
  local x = some()
  pcall(function() x:fill(1) end)
  pcall(function() x:close() end)
  return ...
end
function value(flat)
  local what = int(1, 16)
  if what <= 7 then return some()
  elseif what <= 9 then return int(-2, 40)
  elseif what == 10 then return ODD[int(1, #ODD)]
  elseif what == 11 then return TYPES[int(1, #TYPES)]
  elseif what == 12 then return callback
  elseif what == 13 and not flat then return { int(-5, 5), int(-5, 5) }
  elseif what == 14 and not flat then return options()
  elseif what == 15 then return { grid = int(1, 3), block = int(1, 40) } end
  return nil
end
local function values()
  local t, n = {}, int(0, 4)
  for i = 1, n do t[i] = value() end
  return table.unpack(t, 1, n)
end

local FUNCTIONS = { "buffer", "zeros", "pinned", "managed", "Stream", "Event",
  "barrier", "capture", "graph_if", "graph_while", "spawn", "poll", "await",
  "await_any", "await_all", "with_stream", "with_device", "set_stream", "set_device",
  "scope", "timer", "range", "current_stream", "default_stream", "memory_stats",
  "surface", "device", "current_device" }
local METHODS = { "close", "query", "record_event", "wait_event", "wait_stream",
  "on_complete", "device", "priority", "is_capturing", "record", "wait",
  "elapsed_time", "write", "read", "bytes", "copy_to", "fill", "slice", "as", "nbytes",
  "ptr", "launch", "update", "add", "nodes", "dot", "stop", "cancel", "traceback",
  "bind", "forall", "params", "handle", "dims", "dlpack" }
local done = 0
local function noted(ok, ...)
  if not ok then return end
  done = done + 1
  for i = 1, select("#", ...) do keep((select(i, ...))) end
end
local function call()
  local x, method = some(), METHODS[int(1, #METHODS)]
  if int(1, 3) == 1 then
    noted(pcall(tp[FUNCTIONS[int(1, #FUNCTIONS)]], values()))
  elseif int(1, 20) == 1 then
    pcall(function() x:synchronize(1) end)
  elseif method ~= "close" or int(1, 3) == 1 then
    if method == "dlpack" then -- somebody has to take it
      noted(pcall(function() return tp.from_dlpack(x:dlpack()) end))
    else
      noted(pcall(function(...) return x[method](x, ...) end, values()))
    end
  end
end
local function calls(pause)
  for _ = 1, 5 do
    call()
    if pause then pause() end
  end
end

for i = 1, tonumber(steps) do
  if i % 100 == 1 then
    refill()
    collectgarbage()
  end
  if i % 37 == 0 then
    local t = tp.spawn(calls, coroutine.yield)
    for _ = 1, int(1, 8) do pcall(tp.poll) end
    t:cancel()
  elseif i % 41 == 0 then noted(pcall(tp.capture, calls))
  elseif i % 43 == 0 then
    local co = coroutine.create(calls)
    for _ = 1, int(1, 7) do coroutine.resume(co, coroutine.yield) end
  else call() end
end
here:synchronize()
there:synchronize()
print(done > tonumber(steps) / 20)
os.exit(true, int(1, 2) == 1)
]=]

describe("calls at random", function()
  for seed = 1, 8 do
    it("end in results or errors, number " .. seed, function()
      local r = run.script(SCRIPT, { args = { tostring(seed), "1500" } })
      assert.equal("true\n", r.stdout, r.stderr)
      assert.equal(0, r.status, r.stderr)
    end)
  end
end)
