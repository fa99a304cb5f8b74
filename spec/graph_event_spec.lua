-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Events that are recorded in a graph: each launch records them, and whoever is
-- outside may ask, wait and measure. docs/reference.md, section Graphs.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local numbers = require "spec.support.numbers"
local pair = require "spec.support.pair"
local run = require "spec.support.run"

local random = numbers.generator(606)

-- What pcall(fn, ...) raises, as text.
local function raised(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  return tostring(e)
end

describe("an event recorded in a capture", function()
  it("is recorded by each launch, not by the capture", function()
    local out <close> = tp.pinned("i32", 2)
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local before <close> = gate.new()
    local after <close> = gate.new()
    local g <close> = tp.capture(s, function()
      before:hold(s)
      gate.run(s, "add", out, 0, 1)
      s:record_event(e)
      after:hold(s)
      gate.run(s, "add", out, 1, 1)
    end)
    assert.equal(s:device(), e:device())
    assert.is_true(e:query()) -- never recorded so far
    assert.is_true(e:synchronize(0))
    for i = 1, 3 do
      before.flag[1], after.flag[1] = 0, 0
      g:launch(s)
      assert.is_false(e:query())
      assert.is_false(e:synchronize(1))
      before:open()
      assert.is_true(e:synchronize())
      assert.is_true(e:query())
      assert.is_false(s:query())
      assert.same({ i, i - 1 }, { out[1], out[2] })
      after:open()
      s:synchronize()
      assert.equal(i, out[2])
    end
  end)

  it("may be made there, and closed", function()
    local b <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    local made, e, closed
    local g <close> = tp.capture(s, function()
      gate.run(s, "add", b, 0, 1)
      made, e, closed = s:record_event(), s:record_event(tp.Event(true)),
        s:record_event()
      closed:close()
    end)
    s:wait_stream(tp.current_stream())
    g:launch(s)
    e:close()
    g:launch(s)
    assert.is_true(made:synchronize())
    tp.with_stream(s, function() assert.same({ 2 }, b:read()) end)
    made:close()
    g:launch(s)
    s:synchronize()
  end)

  it("outlives the graph", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local held <close> = gate.new()
    local g = tp.capture(s, function()
      held:hold(s)
      e:record(s)
    end)
    g:launch(s)
    g:close()
    assert.is_false(e:query())
    held:open()
    assert.is_true(e:synchronize())
    e:record(s) -- outside: an ordinary one
    assert.is_true(e:synchronize())
  end)

  it("made and waited for there is a fork or a join and no more", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local e
    local g <close> = tp.capture(s, function()
      e = s:record_event()
      t:wait_event(e)
      s:wait_stream(t)
    end)
    assert.equal(0, #g:nodes())
    g:launch(s)
    local text = "the event was made in a capture and waited for there: it can't "
      .. "be %s (one made before can, when the graph is launched)"
    assert.matches(text:format "queried", raised(e.query, e), 1, true)
    assert.matches(text:format "synchronized", raised(e.synchronize, e), 1, true)
    assert.matches("recorded in a capture that has ended: record it again",
      raised(u.wait_event, u, e))
    u:record_event(e)
    e:synchronize()
    local h <close> = tp.capture(s, function()
      t:wait_event(s:record_event(e)) -- not made there
      s:wait_stream(t)
    end)
    assert.equal(0, #h:nodes()) -- but it was elsewhere
    e:close()
  end)

  it("is waited for by streams outside, launch by launch", function()
    local n = 6
    local cells <close> = tp.zeros("i32", n)
    local seen <close> = tp.pinned("i32", n)
    local s <close> = tp.Stream()
    local others, events = {}, {}
    for i = 1, n do
      others[i], events[i] = tp.Stream(), tp.Event(i % 2 == 0)
    end
    s:wait_stream(tp.current_stream())
    local round <close> = tp.zeros("i32", 1, { stream = s })
    local set = gate.kernel "copy"
    local g <close> = tp.capture(s, function()
      gate.run(s, "add", round, 0, 1)
      for i = 1, n do
        set:launch(gate.one, round, cells:slice(i, 1), 1)
        s:record_event(events[i])
      end
    end)
    for launch = 1, 8 do
      g:launch(s)
      local order = {}
      for i = 1, n do table.insert(order, random.int(1, i), i) end
      for _, i in ipairs(order) do
        others[i]:wait_event(events[i])
        cells:copy_to(seen, { first = i, count = 1, at = i,
          stream = others[i] })
      end
      s:wait_stream(table.unpack(others))
      s:synchronize()
      for i = 1, n do assert.equal(launch, seen[i]) end
    end
    set:close()
    for i = 1, n do
      others[i]:close()
      events[i]:close()
    end
  end)

  it("does not stand for what follows it in the graph", function()
    local out <close> = tp.pinned("i32", 1)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local e <close> = tp.Event()
    local held <close> = gate.new()
    s:wait_stream(tp.current_stream())
    local b = tp.with_stream(s, tp.buffer, "i32", { 3 })
    local g = tp.capture(s, function()
      e:record(s)
      held:hold(s)
      b:copy_to(out)
    end)
    g:launch(s)
    t:wait_event(e)
    t:synchronize()
    g:close()
    tp.with_stream(t, function()
      b:close()
      for _ = 1, 5 do tp.buffer("i32", { 4 }):close() end
    end)
    t:synchronize()
    held:open()
    s:synchronize()
    assert.equal(3, out[1])
  end)

  it("measures inside of the graph", function()
    local s <close> = tp.Stream()
    local a <close> = tp.Event(true)
    local b <close> = tp.Event(true)
    local c <close> = tp.Event(true)
    local from <close> = tp.Event(true)
    local held <close> = gate.new()
    local g <close> = tp.capture(s, function()
      a:record(s)
      held:hold(s)
      b:record(s)
      gate.run(s, "empty")
      c:record(s)
    end)
    for _ = 1, 2 do
      held.flag[1] = 0
      from:record(s)
      g:launch(s)
      assert.is_true(a:synchronize())
      local t = tp.timer()
      while t:stop() < 20 do s:synchronize(1) end
      assert.matches("the end event is not finished",
        raised(a.elapsed_time, a, b))
      held:open()
      c:synchronize()
      assert.is_true(a:elapsed_time(b) >= 15, a:elapsed_time(b))
      assert.is_true(b:elapsed_time(c) >= 0)
      local whole = from:elapsed_time(c)
      local parts = from:elapsed_time(a) + a:elapsed_time(b)
        + b:elapsed_time(c)
      assert.is_true(math.abs(whole - parts) < 0.1, whole - parts)
      t:close()
    end
  end)

  it("can be awaited, in whatever order", function()
    local s <close> = tp.Stream()
    local gates, events, log = {}, {}, {}
    for i = 1, 4 do gates[i], events[i] = gate.new(), tp.Event() end
    local g <close> = tp.capture(s, function()
      for i = 1, 4 do
        gates[i]:hold(s)
        s:record_event(events[i])
      end
    end)
    g:launch(s)
    for _, i in ipairs { 3, 1, 4, 2 } do
      tp.spawn(function()
        tp.await(events[i])
        log[#log + 1] = i
        if i < 4 then
          assert.is_false(events[i + 1]:query())
          gates[i + 1]:open()
        end
      end)
    end
    gates[1]:open()
    tp.run()
    assert.same({ 1, 2, 3, 4 }, log)
    for i = 1, 4 do
      events[i]:close()
      getmetatable(gates[i]).__close(gates[i])
    end
  end)

  it("forks and joins as before", function()
    local b <close> = tp.zeros("i32", 3)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local e <close> = tp.Event()
    local timed <close> = tp.Event(true)
    local g <close> = tp.capture(s, function()
      s:record_event(timed)              -- not the last record of it: no node
      b:slice(1, 1):fill(1)              -- 1
      s:record_event(e)                  -- 2: nothing waits for it
      t:wait_event(e)
      tp.with_stream(t, function() b:slice(2, 1):fill(2) end) -- 3
      t:record_event(timed)              -- 4: in its place
      b:slice(3, 1):fill(3)              -- 5
      s:wait_event(timed)
      t:wait_event(s:record_event())     -- a join and no more
      s:wait_stream(t)
      s:record_event():close()
      b:fill(4)                          -- 6
    end)
    local after, kinds, place = {}, {}, {}
    for i, node in ipairs(g:nodes()) do
      place[node.id] = i
      for j, id in ipairs(node.dependencies) do
        node.dependencies[j] = place[id]
      end
      table.sort(node.dependencies)
      after[i] = table.concat(node.dependencies, " ")
      kinds[i] = node.kind
    end
    assert.same({ "", "1", "1", "3", "1", "4 5" }, after)
    assert.equal("fill event fill event fill fill", table.concat(kinds, " "))
    assert.matches("event %d+", g:dot())
    g:launch()
    assert.is_true(timed:synchronize())
    assert.same({ 4, 4, 4 }, b:read())
  end)

  it("recorded twice is recorded last at its later place", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local e <close> = tp.Event()
    local held <close> = gate.new()
    local g <close> = tp.capture(s, function()
      t:wait_stream(s)
      e:record(s)
      held:hold(t)
      e:record(t)
      s:wait_stream(t)
    end)
    g:launch(s)
    assert.is_false(e:synchronize(5))
    held:open()
    assert.is_true(e:synchronize())
  end)

  it("recorded outside again is that record, until the next launch", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local e <close> = tp.Event()
    local held <close> = gate.new()
    local g <close> = tp.capture(s, function()
      held:hold(s)
      e:record(s)
    end)
    g:launch(s)
    u:wait_event(e) -- keeps the record that it saw
    e:record(t)
    assert.is_true(e:synchronize())
    assert.is_false(u:synchronize(2))
    held:open()
    u:synchronize()
    held.flag[1] = 0
    g:launch(s)
    assert.is_false(e:query())
    held:open()
    e:synchronize()
  end)

  it("is as it was, where nothing comes of the capture", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local e <close> = tp.Event()
    local held <close> = gate.new()
    held:hold(t)
    e:record(t)
    local object = {}
    assert.is_false(pcall(tp.capture, s, function()
      e:record(s)
      error(object)
    end))
    assert.is_false(e:query())
    tp.capture(s, function() e:record(s) end):close() -- never launched
    assert.is_false(e:query())
    s:wait_event(e)
    assert.is_false(s:synchronize(2))
    held:open()
    assert.is_true(e:synchronize())
    s:synchronize()
  end)

  it("never recorded else counts as such until the launch", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local g <close> = tp.capture(s, function() e:record(s) end)
    local strict = tp.strict(true)
    local text = raised(s.wait_event, s, e)
    g:launch(s)
    local ok = pcall(s.wait_event, s, e)
    tp.strict(strict)
    assert.matches("never recorded", text)
    assert.is_true(ok)
  end)

  it("is recorded by graphs that have its graph as a part", function()
    local b <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local e <close> = tp.Event()
    local held <close> = gate.new()
    local child <close> = tp.capture(s, function()
      gate.run(s, "add", b, 0, 1)
      e:record(s)
    end)
    local function holding(after)
      return tp.capture(s, function()
        held:hold(s)
        if after then child:launch(s) end
      end)
    end
    local added <close> = holding(false):add(child)
    local inner <close> = holding(true)
    local twice <close> = holding(true):add(child)
    child:close()
    for i, g in ipairs { added, inner, twice, twice } do
      held.flag[1] = 0
      g:launch(s)
      assert.is_false(e:query())
      held:open()
      assert.is_true(e:synchronize())
      s:synchronize()
      assert.equal(i < 4 and i + (i == 3 and 1 or 0) or 6,
        tp.with_stream(s, b.read, b)[1])
    end
  end)

  it("follows g:update", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local f <close> = tp.Event()
    local held <close> = gate.new()
    local g <close> = tp.capture(s, function()
      held:hold(s)
      e:record(s)
    end)
    held:open()
    g:launch(s)
    e:synchronize()
    held.flag[1] = 0
    g:update(function()
      local t = tp.current_stream()
      held:hold(t)
      f:record(t)
    end)
    g:launch(s)
    assert.is_true(e:query())
    assert.is_false(f:query())
    held:open()
    assert.is_true(f:synchronize())
  end)

  it("in the body of a conditional node is a place and no more", function()
    local b <close> = tp.zeros("i32", 2)
    local flag <close> = tp.buffer("i32", { 1 })
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local e <close> = tp.Event()
    local f <close> = tp.Event()
    f:record(s)
    local child <close> = tp.capture(s, function()
      b:slice(1, 1):fill(5)
      f:record(s)
      local timed <close> = s:record_event(tp.Event(true))
      t:wait_event(timed)
      tp.with_stream(t, function() b:slice(2, 1):fill(6) end)
      s:wait_stream(t)
    end)
    local g <close> = tp.capture(s, function()
      tp.graph_if(flag, function()
        local inner = tp.current_stream()
        gate.run(inner, "add", b, 0, 1)
        e:record(inner)
        t:wait_event(e)
        child:launch(t)
        inner:wait_stream(t)
      end)
    end)
    g:launch(s)
    tp.with_stream(s, function() assert.same({ 5, 6 }, b:read()) end)
    assert.matches("recorded in the body of a conditional node: it can't be "
      .. "queried", raised(e.query, e))
    assert.is_true(f:query())
    e:record(s)
    assert.is_true(e:synchronize())
  end)

  it("of another device's branch is that device's", function()
    local here, there = pair.devices()
    local s0 <close> = tp.Stream(here)
    local s1 <close> = tp.Stream(there)
    local e0 <close> = tp.Event()
    local e1 <close> = tp.Event()
    local held <close> = gate.new(there)
    local g <close> = tp.capture(s0, function()
      e0:record(s0)
      s1:wait_event(e0)
      held:hold(s1)
      e1:record(s1)
      s0:wait_event(e1)
    end)
    assert.equal(there, e1:device())
    for _ = 1, 2 do
      held.flag[1] = 0
      g:launch(s0)
      assert.is_true(e0:synchronize())
      assert.is_false(e1:query())
      local u <close> = tp.Stream(here)
      u:wait_event(e1)
      assert.is_false(u:synchronize(1))
      held:open()
      assert.is_true(e1:synchronize())
      u:synchronize()
    end
    assert.matches("can't be recorded on a stream of", raised(e1.record, e1, s0))
  end)

  it("by the hundred leaves other events alone", function()
    local s <close> = tp.Stream()
    for _ = 1, 5 do
      local held <close> = gate.new()
      local g = tp.capture(s, function()
        held:hold(s)
        for _ = 1, 100 do s:record_event():close() end
        for _ = 1, 20 do tp.Event(true):record(s) end
      end)
      g:launch(s)
      g:close()
      collectgarbage()
      local events = {}
      for i = 1, 100 do events[i] = s:record_event() end
      for i = 1, 100 do assert.is_false(events[i]:query()) end
      held:open()
      s:synchronize()
      for i = 1, 100 do
        assert.is_true(events[i]:query())
        events[i]:close()
      end
    end
    collectgarbage()
  end)
end)

describe("a timer in a capture", function()
  it("measures from the place where it was made", function()
    local s <close> = tp.Stream()
    local held <close> = gate.new()
    local t
    local g <close> = tp.capture(s, function()
      held:hold(s)
      t = tp.timer(s)
      assert.matches("is capturing: it can't be synchronized",
        raised(t.stop, t))
    end)
    assert.equal(2, #g:nodes())
    held:open()
    g:launch(s)
    assert.is_true(t:stop() >= 0)
    t:close()
  end)
end)

describe("a fault in a graph #fault", function()
  it("is told those who wait for the events after it", function()
    local r = run.script [==[
local tp = require "tpstream"
local program = require "spec.support.program"
local m = program("graph_fault", [=[
extern "C" __global__ void store(int *p, long long i) { p[i] = 1; }
extern "C" __global__ void fine(int *p) { p[0] = 7; }
]=])
local s, u, e = tp.Stream(), tp.Stream(), tp.Event()
local held = require "spec.support.gate".new()
local g = tp.capture(s, function()
  held:hold(s)
  m:kernel "store":launch({ grid = 1, block = 1, stream = s }, nil, 3)
  e:record(s)
end)
g:launch(s)
u:wait_event(e)
g:launch(s)
held:open()
for _, wait in ipairs { e.synchronize, e.query, u.synchronize } do
  local ok, object = pcall(wait, wait == u.synchronize and u or e)
  print(ok, object.code, tostring(object):match "store")
end
os.exit(0, false)]==]
    assert.equal(("false\tcudaErrorIllegalAddress\tstore\n"):rep(3), r.stdout,
      r.stderr)
  end)
end)
