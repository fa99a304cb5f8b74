-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, sections Tasks and Streams: what a wait stands for, callbacks
-- beside tasks, thousands of both. The rest of tasks is in task_spec.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

describe("tp.await", function()
  it("of a stream waits for what is queued then, not for what follows", function()
    local s <close> = tp.Stream()
    local before <close> = gate.new()
    local after <close> = gate.new()
    local log = {}
    before:hold(s)
    tp.spawn(function()
      tp.await(s)
      log[#log + 1] = "first"
      assert.is_false(s:query())
      after:open()
    end)
    tp.spawn(function() -- the first one waits already
      after:hold(s)
      before:open()
      tp.await(s)
      log[#log + 1] = "second"
    end)
    tp.run()
    assert.same({ "first", "second" }, log)
  end)

  it("of an event waits for its last record", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local one <close> = gate.new()
    local two <close> = gate.new()
    local log = {}
    one:hold(s)
    e:record(s)
    tp.spawn(function()
      tp.await(e)
      log[#log + 1] = 1
      two:open()
    end)
    tp.poll() -- it waits for the first record
    two:hold(s)
    e:record(s)
    tp.spawn(function()
      tp.await(e)
      log[#log + 1] = 2
    end)
    tp.poll()
    one:open()
    tp.run()
    assert.same({ 1, 2 }, log)
  end)

  it("of a graph's launch waits for that launch", function()
    local b <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local gates = { gate.new(), gate.new() }
    local graphs, log = {}, {}
    for i = 1, 2 do
      graphs[i] = tp.capture(s, function()
        gates[i]:hold(s)
        gate.run(s, "add", b, 0, 1)
      end)
    end
    tp.spawn(function()
      tp.await(graphs[1]:launch(s))
      log[#log + 1] = 1
      gates[2]:open()
    end)
    tp.spawn(function()
      tp.await(graphs[2]:launch(s))
      log[#log + 1] = 2
    end)
    tp.poll()
    assert.equal(0, #log)
    gates[1]:open()
    tp.run()
    assert.same({ 1, 2 }, log)
    assert.same({ 2 }, tp.with_stream(s, b.read, b))
    for i = 1, 2 do
      graphs[i]:close()
      getmetatable(gates[i]).__close(gates[i])
    end
  end)

  it("is refused while the stream captures", function()
    local s <close> = tp.Stream()
    tp.run(function()
      tp.capture(s, function()
        local ok, e = pcall(tp.await, s)
        assert.is_false(ok)
        assert.matches("tp.await", e)
      end):close()
      local t <close> = tp.Stream()
      local e <close> = tp.Event()
      local task
      tp.capture(t, function()
        e:record(t)
        task = tp.spawn(function() return pcall(tp.await, t) end)
        tp.poll() -- callbacks only: no task runs inside a capture
      end):close()
      assert.is_true((select(1, tp.await(task))))
    end)
  end)
end)

describe("tp.run", function()
  it("drives what tasks and callbacks spawn as well", function()
    local s <close> = tp.Stream()
    local log = {}
    tp.run(function()
      tp.spawn(function()
        tp.sleep(1)
        tp.spawn(function() log[#log + 1] = "grandchild" end)
      end)
      s:on_complete(function()
        tp.spawn(function() log[#log + 1] = "of a callback" end)
      end)
      tp.await(s)
    end)
    s:synchronize()
    tp.run()
    table.sort(log)
    assert.same({ "grandchild", "of a callback" }, log)
  end)

  it("is one step after another: tp.poll", function()
    local log = {}
    local t = tp.spawn(function()
      for i = 1, 3 do
        log[#log + 1] = i
        coroutine.yield()
      end
    end)
    for i = 1, 3 do
      assert.equal(1, tp.poll())
      assert.equal(i, #log)
      assert.not_equal("done", t:status())
    end
    assert.equal(1, tp.poll())
    assert.equal("done", t:status())
  end)
end)

describe("a callback", function()
  it("runs on the thread of Lua, inside a call and never beside", function()
    local s <close> = tp.Stream()
    local ran = false
    s:on_complete(function() ran = coroutine.running() end)
    local e <close> = s:record_event()
    while not e:query() do end -- the device is done with it
    local until_then = os.clock() + 0.03
    local count = 0
    while os.clock() < until_then do -- Lua is busy
      count = count + 1
      assert.is_false(ran)
    end
    collectgarbage()
    assert.is_false(ran)
    assert.equal(1, tp.poll())
    assert.equal(coroutine.running(), ran)
  end)

  it("has its own stream current in a task, which keeps its own", function()
    local s <close> = tp.Stream()
    local mine <close> = tp.Stream()
    local seen = {}
    tp.run(function()
      tp.with_stream(mine, function()
        s:on_complete(function()
          seen[1] = tp.current_stream()
          tp.set_stream(mine) -- of the callback alone
        end)
        s:synchronize()
        seen[2] = tp.current_stream()
        s:on_complete(function() seen[3] = tp.current_stream() end)
        tp.await(s)
        tp.poll()
        seen[4] = tp.current_stream()
      end)
    end)
    s:synchronize()
    for i, expected in ipairs { s, mine, s, mine } do
      assert.equal(expected, seen[i], i)
    end
    assert.equal(tp.default_stream(), tp.current_stream())
  end)

  it("of one stream comes in order, whatever tasks do", function()
    local s <close> = tp.Stream()
    local log, count = {}, 0
    for _ = 1, 5 do
      tp.spawn(function()
        for _ = 1, 20 do
          count = count + 1
          local n = count
          gate.run(s, "empty")
          s:on_complete(function() log[#log + 1] = n end)
          if n % 3 == 0 then tp.await(s) else coroutine.yield() end
        end
      end)
    end
    tp.run()
    s:synchronize()
    assert.equal(100, #log)
    for i = 1, 100 do assert.equal(i, log[i]) end
  end)
end)

describe("ten thousand tasks", function()
  local count = os.getenv "TPSTREAM_GC_STRESS" and 100 or 10000

  it("wait at once, for streams, events and one another", function()
    local s <close> = tp.Stream()
    local held <close> = gate.new()
    held:hold(s)
    local e <close> = s:record_event()
    local done, previous = 0, nil
    for i = 1, count do
      local before = previous
      previous = tp.spawn(function()
        if i % 3 == 0 then tp.await(s)
        elseif i % 3 == 1 then tp.await(e)
        elseif before then tp.await(before) end
        done = done + 1
      end)
    end
    for _ = 1, 3 do tp.poll() end
    assert.equal(0, done)
    tp.spawn(function() held:open() end)
    tp.run()
    assert.equal(count, done)
  end)

  it("are cancelled where they wait, and leave nothing", function()
    local s <close> = tp.Stream()
    local held <close> = gate.new()
    held:hold(s)
    local tasks, closed = {}, 0
    local closes = setmetatable({}, { __close = function()
      closed = closed + 1
    end })
    for i = 1, count do
      tasks[i] = tp.spawn(function()
        local _ <close> = closes
        if i % 2 == 0 then tp.await(s) else tp.sleep(1e6) end
      end)
    end
    tp.poll()
    for i = 1, count do assert.is_true(tasks[i]:cancel()) end
    assert.equal(count, closed)
    tp.run() -- none is left
    assert.is_false(s:query())
  end)
end)

describe("a fault in a graph #fault", function()
  it("is told the tasks that wait for its launch; callbacks are dropped", function()
    local r = run.script [==[
local tp = require "tpstream"
local gate = require "spec.support.gate"
local m = require "spec.support.program"("graph_fault", [=[
extern "C" __global__ void store(int *p, long long i) { p[i] = 1; }
extern "C" __global__ void fine(int *p) { p[0] = 7; }
]=])
local s, held = tp.Stream(), gate.new()
local g = tp.capture(s, function()
  held:hold(s)
  m:kernel "store":launch({ grid = 1, block = 1, stream = s }, nil, 3)
  s:on_complete(print, "never")
end)
s:on_complete(print, "before")
local told = 0
for i = 1, 3 do
  tp.spawn(function()
    local ok, e = pcall(tp.await, g:launch(s))
    if not ok and e.code == "cudaErrorIllegalAddress" then told = told + 1 end
  end)
end
tp.spawn(function() tp.sleep(5) held:open() end)
pcall(tp.run) -- callbacks that are lost are told here
pcall(tp.run)
print(told, tp.poll())
os.exit(0, false)]==]
    assert.matches("3\t0\n$", r.stdout, r.stderr)
    assert.not_matches("never", r.stdout)
    assert.matches("before", r.stdout)
  end)
end)

describe("__await", function()
  -- An awaitable that counts how often its wait is given up.
  local function counted(start)
    local x = { stopped = 0 }
    return setmetatable(x, {
      __await = function(_, done)
        x.done = done
        if start then start(done) end
        return function() x.stopped = x.stopped + 1 end
      end,
    })
  end

  it("may wait itself: whoever is cancelled then gives up all before", function()
    local a, b = counted(), counted()
    local slow = counted(function() tp.sleep(1e6) end)
    local inner = counted(function() tp.await_all(b, slow) end)
    for _, wait in ipairs { tp.await_any, tp.await_all } do
      local t = tp.spawn(wait, a, inner)
      tp.poll()
      assert.is_true(t:cancel())
      local deaf, other
      deaf = tp.spawn(function() tp.await(other) end)
      other = tp.spawn(function() tp.await(deaf) end)
      assert.matches("deadlock: nothing is due",
        select(2, pcall(tp.run, tp.await, deaf)), 1, true)
      other:cancel()
      pcall(tp.run)
    end
    assert.same({ 2, 2, 0, 0 },
      { a.stopped, b.stopped, slow.stopped, inner.stopped })
  end)

  it("which ends another element's wait is given up, too", function()
    tp.run(function()
      local a = counted()
      local b = counted(function() a.done(true, "a") end)
      assert.same({ 1, "a" }, { tp.await_any(a, b) })
      assert.same({ 0, 1 }, { a.stopped, b.stopped })
      local c = counted(function(done) done(true, "c") end)
      assert.same({ 1, "c" }, { tp.await_any(c, a) })
      assert.equal(0, c.stopped)
      assert.equal(0, a.stopped)
    end)
  end)
end)

describe("a task's coroutine", function()
  it("that others close, or resume to its end, ends the task with an error", function()
    for _, meddle in ipairs { coroutine.close, coroutine.resume } do
      local co
      local t = tp.spawn(function()
        co = coroutine.running()
        tp.sleep(1)
      end)
      tp.poll()
      meddle(co)
      local ok, e = pcall(tp.run)
      assert.is_false(ok)
      assert.equal("the task's coroutine was ended by others", e)
      assert.equal("failed", t:status())
    end
  end)
end)
