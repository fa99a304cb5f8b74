-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Streams: s:on_complete and tp.poll.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

-- A callback that notes what it was called with.
local function recorder()
  local log = {}
  return log, function(...) log[#log + 1] = table.pack(...) end
end

describe("on_complete", function()
  it("runs after the work queued before it, not earlier", function()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local log, note = recorder()
    local g <close> = gate.new()
    g:hold(s)
    gate.run(s, "put", out, 0, 7)
    s:on_complete(note)
    assert.equal(0, tp.poll())
    assert.is_false(s:synchronize(1))
    assert.equal(0, #log)
    g:open()
    assert.is_true(s:synchronize())
    assert.equal(1, #log)
    assert.same({ 7 }, out:read())
  end)

  it("returns nothing and queues: it waits for nothing", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    assert.equal(0, select("#", s:on_complete(function() end)))
    assert.is_false(s:query())
    g:open()
    s:synchronize()
  end)

  it("never runs inside the call that queues it", function()
    local s <close> = tp.Stream()
    local log, note = recorder()
    s:on_complete(note)
    assert.equal(0, #log)
    s:synchronize()
    assert.equal(1, #log)
  end)

  it("passes on its arguments, nils included", function()
    local s <close> = tp.Stream()
    local log, note = recorder()
    s:on_complete(note, nil, 2, nil, "four", nil)
    s:on_complete(note)
    s:synchronize()
    assert.same({ n = 5, nil, 2, nil, "four", nil }, log[1])
    assert.same({ n = 0 }, log[2])
  end)

  it("runs with its stream and device current", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local seen, device
    s:on_complete(function()
      seen, device = tp.current_stream(), tp.current_device()
    end)
    tp.with_stream(t, function()
      s:synchronize()
      assert.equal(t, tp.current_stream())
    end)
    assert.equal(s, seen)
    assert.equal(s:device(), device)
  end)

  it("runs in order", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local log, note = recorder()
    local g <close> = gate.new()
    g:hold(s)
    for i = 1, 50 do
      s:on_complete(note, i)
      gate.run(s, "empty")
    end
    t:wait_stream(s)
    t:on_complete(note, 51)
    g:open()
    t:synchronize()
    s:synchronize()
    assert.equal(51, #log)
    for i = 1, 51 do assert.equal(i, log[i][1]) end
  end)

  it("takes anything callable and refuses the rest at once", function()
    local s <close> = tp.Stream()
    local got
    s:on_complete(setmetatable({}, { __call = function(_, x) got = x end }), 5)
    s:synchronize()
    assert.equal(5, got)
    for _, bad in ipairs { 1, "x", {}, true } do
      local ok, message = pcall(s.on_complete, s, bad)
      assert.is_false(ok)
      assert.matches("bad argument #2 to 'on_complete'", message)
      assert.matches("function expected", message)
    end
    assert.has_error(function() s:on_complete() end)
  end)

  it("is refused on a closed stream", function()
    local s = tp.Stream()
    s:close()
    local ok, message = pcall(s.on_complete, s, print)
    assert.is_false(ok)
    assert.matches("attempt to use a closed stream", message)
  end)

  it("may queue work and further callbacks", function()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local log, note = recorder()
    s:on_complete(function()
      local put <close> = gate.kernel "put"
      put:launch(gate.one, out, 0, 3) -- on s
      s:on_complete(note, "inner")
    end)
    s:synchronize()
    s:synchronize()
    assert.same({ 3 }, out:read())
    assert.equal("inner", log[1][1])
  end)

  it("may wait itself, the next one begins after its end", function()
    local s <close> = tp.Stream()
    local log = {}
    s:on_complete(function()
      log[#log + 1] = "begin"
      gate.run(s, "empty")
      assert(s:synchronize())
      log[#log + 1] = "end"
    end)
    s:on_complete(function() log[#log + 1] = "second" end)
    s:synchronize()
    assert.same({ "begin", "end", "second" }, log)
  end)

  it("keeps its stream alive", function()
    local log, note = recorder()
    local g <close> = gate.new()
    do
      local s = tp.Stream()
      g:hold(s)
      s:on_complete(note)
      g.held = {}
    end
    collectgarbage()
    collectgarbage()
    assert.equal(0, #log)
    g:open()
    tp.current_device():synchronize()
    assert.equal(1, #log)
    collectgarbage()
    collectgarbage()
  end)

  it("is kept when its stream is closed", function()
    local s = tp.Stream()
    local t <close> = tp.Stream()
    local log, note = recorder()
    local g <close> = gate.new()
    g:hold(s)
    local seen
    s:on_complete(note, "kept")
    s:on_complete(function() seen = tp.current_stream() end)
    s:close()
    assert.equal(0, tp.poll())
    g:open()
    tp.with_stream(t, function() tp.current_device():synchronize() end)
    assert.equal("kept", log[1][1])
    assert.equal(tp.default_stream(), seen) -- a closed stream can't be current
  end)

  it("of a closed stream takes no part in a capture around it", function()
    local b <close> = tp.zeros("i32", 1)
    local s, t <close> = tp.Stream(), tp.Stream()
    local done = false
    s:on_complete(function()
      b:fill(5)
      done = true
    end)
    s:close()
    local graph <close> = tp.capture(function()
      local last = os.time() + 10 -- a GPU calls when it comes to it
      repeat t:synchronize() until done or os.time() > last
    end)
    assert.equal(0, #graph:nodes())
    assert.equal(5, b:read()[1])
  end)

  it("works on the default stream", function()
    local log, note = recorder()
    tp.default_stream():on_complete(note)
    tp.default_stream():synchronize()
    assert.equal(1, #log)
  end)

  it("works by the thousand", function()
    local streams, n = {}, 0
    for i = 1, 8 do streams[i] = tp.Stream() end
    for i = 1, 4000 do
      streams[i % 8 + 1]:on_complete(function() n = n + 1 end)
    end
    tp.current_device():synchronize()
    assert.equal(4000, n)
    for i = 1, 8 do streams[i]:close() end
  end)
end)

describe("a safe point", function()
  local out, s, log, note
  before_each(function()
    out = tp.zeros("i32", 4)
    s = tp.Stream()
    out:read()
    log, note = recorder()
    s:on_complete(note)
    local e <close> = s:record_event()
    while not e:query() do end
  end)
  after_each(function()
    tp.poll()
    s:close()
    out:close()
    out, s, log, note = nil, nil, nil, nil
  end)

  local CALLS = {
    ["stream:synchronize"] = function() tp.default_stream():synchronize() end,
    ["stream:synchronize(0)"] = function() s:synchronize(0) end,
    ["device:synchronize"] = function() tp.current_device():synchronize() end,
    ["buffer:read"] = function() out:read() end,
    ["buffer:bytes"] = function() out:bytes(1, 1) end,
    ["timer:stop"] = function()
      local t <close> = tp.timer()
      t:stop()
    end,
    ["event:synchronize"] = function()
      local e <close> = tp.default_stream():record_event()
      e:synchronize()
    end,
    ["tp.poll"] = function() tp.poll() end,
  }
  for name, call in pairs(CALLS) do
    it("is " .. name, function()
      assert.equal(0, #log)
      call()
      assert.equal(1, #log)
    end)
  end

  local NOT = {
    ["stream:query"] = function() s:query() end,
    ["tp.Stream"] = function()
      local t <close> = tp.Stream()
      t:query()
    end,
    ["a launch"] = function() gate.run(s, "empty") end,
    ["record_event"] = function()
      local e <close> = s:record_event()
      e:query()
    end,
  }
  for name, call in pairs(NOT) do
    it("is not " .. name, function()
      call()
      assert.equal(0, #log)
    end)
  end

  it("inside a coroutine runs them there", function()
    local co = coroutine.wrap(function()
      tp.default_stream():synchronize()
      coroutine.yield(#log)
    end)
    assert.equal(1, co())
  end)
end)

describe("tp.poll", function()
  it("runs all that are due and returns how many", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local n = 0
    local function count() n = n + 1 end
    local g <close> = gate.new()
    g:hold(t)
    for _ = 1, 3 do s:on_complete(count) end
    t:on_complete(count)
    local e <close> = s:record_event()
    while not e:query() do end
    assert.equal(3, tp.poll())
    assert.equal(3, n)
    assert.equal(0, tp.poll())
    g:open()
    t:synchronize()
    assert.equal(4, n)
    assert.equal(0, tp.poll())
  end)

  it("is enough by itself", function()
    local s <close> = tp.Stream()
    local done
    s:on_complete(function() done = true end)
    while not done do tp.poll() end
  end)

  it("inside a callback runs none", function()
    local s <close> = tp.Stream()
    local inside
    s:on_complete(function() inside = tp.poll() end)
    s:on_complete(function() end)
    s:synchronize()
    assert.equal(0, inside)
  end)
end)

describe("a callback", function()
  it("can't yield", function()
    local s <close> = tp.Stream()
    local after = false
    s:on_complete(function() coroutine.yield(1) end)
    s:on_complete(function() after = true end)
    local co = coroutine.create(function() s:synchronize() end)
    local ok, message = coroutine.resume(co)
    assert.is_false(ok)
    assert.matches("yield", message)
    assert.is_true(after)
    assert.equal("dead", coroutine.status(co))
  end)

  it("lets its error out unchanged, the others still run", function()
    local s <close> = tp.Stream()
    local object = setmetatable({}, { __tostring = function() return "x" end })
    local log, note = recorder()
    s:on_complete(note, 1)
    s:on_complete(error, object)
    s:on_complete(note, 2)
    s:on_complete(note, 3)
    local ok, raised = pcall(s.synchronize, s)
    assert.is_false(ok)
    assert.is_true(rawequal(object, raised))
    assert.same({ 1, 2, 3 }, { log[1][1], log[2][1], log[3][1] })
    assert.is_true(s:synchronize())
    assert.equal(tp.default_stream(), tp.current_stream())
  end)

  it("may raise nil", function()
    local s <close> = tp.Stream()
    local log, note = recorder()
    s:on_complete(error, nil)
    s:on_complete(note)
    local ok, raised = pcall(s.synchronize, s)
    assert.is_false(ok)
    assert.is_nil(raised)
    assert.equal(1, #log)
  end)

  it("leaves the traceback of its error intact", function()
    local r = run.script [[
local tp = require "tpstream"
local s = tp.Stream()
local function deep_in_the_callback() error "found" end
s:on_complete(function() deep_in_the_callback() end)
s:on_complete(print, "other")
print(select(2, xpcall(s.synchronize, debug.traceback, s)))]]
    assert.matches("found", r.stdout)
    assert.matches("deep_in_the_callback", r.stdout)
    assert.matches("^other\n", r.stdout)
  end)

  it("does the same in a coroutine, which then is dead", function()
    local s <close> = tp.Stream()
    local object, log, note = {}, recorder()
    for _ = 1, 2 do
      s:on_complete(error, object)
      s:on_complete(note)
      local co = coroutine.create(s.synchronize)
      local ok, raised = coroutine.resume(co, s)
      assert.is_false(ok)
      assert.is_true(rawequal(object, raised))
    end
    assert.equal(2, #log)
    s:on_complete(note)
    s:synchronize()
    assert.equal(3, #log)
  end)

  it("by its second error makes a warning", function()
    local r = run.script [[
local tp = require "tpstream"
warn "@on"
local s = tp.Stream()
s:on_complete(error, "first", 0)
s:on_complete(error, "second", 0)
s:on_complete(error, setmetatable({}, { __tostring = error }))
s:on_complete(print, "last")
print(pcall(s.synchronize, s))
print(tp.poll())]]
    assert.equal("last\nfalse\tfirst\n0\n", r.stdout)
    assert.matches("Lua warning: tpstream: [^\n]*second", r.stderr)
    assert.equal(0, r.status)
  end)
end)

describe("callbacks at the end", function()
  it("run when the script has ended, also those they make", function()
    if not run.interpreter():match "tpstream" then return end
    local r = run.script [[
local tp = require "tpstream"
local s = tp.Stream()
s:on_complete(function(x)
  print(x, tp.current_stream() == s)
  s:on_complete(print, "more")
end, "end")]]
    assert.equal("end\ttrue\nmore\n", r.stdout)
    assert.equal(0, r.status)
    r = run.script [[
local tp = require "tpstream"
tp.Stream():on_complete(error, "too late", 0)
os.exit(0)]]
    assert.matches("too late", r.stderr)
    assert.equal(1, r.status)
  end)

  for _, how in ipairs { "", "os.exit(0, true)", "os.exit(0)" } do
    it("queued, not due: " .. (how == "" and "lua_close" or how), function()
      local r = run.script([[
local tp = require "tpstream"
local m = require "spec.support.program"("late_gate",
  'extern "C" __global__ void gate(const volatile int *p)'
  .. ' { for (int i = 0; i < 100000 && *p == 0; i++) __nanosleep(1000); }')
flag = tp.pinned("i32", { 0 })
s = tp.Stream()
m:kernel "gate":launch({ grid = 1, block = 1, stream = s }, flag)
for i = 1, 100 do s:on_complete(function() n = i end) end
setmetatable({}, { __gc = function() s:close() end })
flag[1] = 1
]] .. how)
      assert.equal("", r.stderr)
      assert.equal(0, r.status)
    end)
  end

  it("survive os.exit from inside", function()
    for _, close in ipairs { "false", "true" } do
      local r = run.script(([[
local tp = require "tpstream"
local s = tp.Stream()
s:on_complete(function() print "leaving" os.exit(7, %s) end)
s:on_complete(function() end)
s:synchronize()
print "never"]]):format(close))
      assert.equal("leaving\n", r.stdout)
      assert.equal("", r.stderr)
      assert.equal(7, r.status)
    end
  end)
end)

describe("a fault #fault", function()
  local FAULT = [[
local tp = require "tpstream"
local m = require "spec.support.program"("bad",
  'extern "C" __global__ void bad(int *p) { *p = 1; }')
local gate = require "spec.support.gate"
local k = m:kernel "bad"
local s, t = tp.Stream(), tp.Stream()
local n = 0
local g = gate.new()
g:hold(s)
t:on_complete(function() n = n + 1 end)
k:launch({ grid = 1, block = 1, stream = s }, nil)
s:on_complete(function() n = n + 10 end)
s:on_complete(function() n = n + 100 end)
local weak = setmetatable({ {} }, { __mode = "v" })
s:on_complete(function(x) n = x end, weak[1])
g:open()
]]
  local function case(body)
    return run.script(FAULT .. body .. "\nos.exit(0, false)\n")
  end

  it("drops them and is raised by a wait", function()
    local r = case [[
local ok, e = pcall(t.synchronize, t)
while ok do ok, e = pcall(t.synchronize, t) end
print(e.code, tostring(e):match "bad", n < 10, tp.poll())
collectgarbage()
print(weak[1], n < 10)]]
    assert.equal("cudaErrorIllegalAddress\tbad\ttrue\t0\nnil\ttrue\n",
      r.stdout, r.stderr)
  end)

  it("drops them and is raised by those who only poll", function()
    local r = case [[
local ok, e
repeat ok, e = pcall(tp.poll) until not ok
print(e.code, tostring(e):match "bad", n < 10, tp.poll(), tp.poll())]]
    assert.equal("cudaErrorIllegalAddress\tbad\ttrue\t0\t0\n", r.stdout,
      r.stderr)
  end)

  it("leaves none behind at the end", function()
    if not run.interpreter():match "tpstream" then return end
    local r = run.script(FAULT)
    assert.equal(1, r.status)
    assert.matches("bad", r.stderr)
    r = run.script(FAULT .. "os.exit(0, true)")
    assert.equal(1, r.status)
  end)

  it("on one simulated device leaves another's alone", function()
    local r = run.script([[
local tp = require "tpstream"
local m = require "spec.support.program"("bad",
  'extern "C" __global__ void bad(int *p) { *p = 1; }')
local s = tp.Stream "sim:0"
local t = tp.Stream "sim:1"
local k = m:kernel "bad"
local gate = require "spec.support.gate"
local g
tp.with_device("sim:0", function() g = gate.new() end)
g:hold(s)
k:launch({ grid = 1, block = 1, stream = s }, nil)
s:on_complete(print, "never")
t:on_complete(print, "fine")
g:open()
t:synchronize()
local ok, e = true
while ok do ok, e = pcall(tp.poll) end
print(e.code)
print(t:synchronize())
os.exit(0, false)]], { env = { TPSTREAM_SIM_DEVICES = "2" } })
    assert.matches("fine\n", r.stdout)
    assert.matches("cudaErrorIllegalAddress\ntrue\n", r.stdout)
    assert.not_matches("never", r.stdout)
  end)
end)
