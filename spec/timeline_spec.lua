-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Timelines: what was queued and when it ran, as a table; ranges. What is written of
-- them: timeline_output_spec.lua. docs/reference.md, section Timelines.
local tp = require "tpstream"
local files = require "spec.support.files"
local gate = require "spec.support.gate"
local json = require "spec.support.json"
local run = require "spec.support.run"
local timeline = require "spec.support.timeline"

local check, of, record = timeline.check, timeline.of, timeline.record
local SLACK, TIMED = timeline.SLACK, timeline.TIMED
local CUDA = tp.current_device():kind() == "cuda"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p " .. folder))
teardown(function() os.execute("rm -rf " .. folder) end)

local function here() return debug.getinfo(2, "l").currentline end

describe("a timeline", function()
  it("has every operation once, in order, with its line", function()
    local lines, s = {}, tp.Stream()
    local x <close> = tp.zeros("i32", 64)
    local h <close> = tp.pinned("i32", 64)
    local add <close> = gate.kernel "add"
    x:write { 1 }
    s:synchronize()
    tp.current_stream():synchronize() -- queued before: not shown
    local t = check(record(function()
      tp.with_stream(s, function()
        add:launch({ grid = { 1, 1, 1 }, block = 2, shared = 16 }, x, 0, 5)
        lines[1] = here() - 1
        x:fill(7) lines[2] = here()
        x:copy_to(h) lines[3] = here()
        x:write(h) lines[4] = here()
        x:read() lines[5] = here()
        s:record_event():close() lines[6] = here()
      end)
      s:on_complete(function() end) lines[7] = here()
      s:synchronize()
    end))
    local list = of(t, table.unpack(TIMED))
    local kinds = {}
    for i, r in ipairs(list) do
      kinds[i] = r.kind
      assert.equal(lines[i], r.line)
      assert.matches("timeline_spec%.lua$", r.source)
      assert.equal(s:id(), r.stream)
      assert.equal(tostring(s:device()):match "%l+:%d+", r.device)
    end
    assert.same({ "kernel", "fill", "copy", "copy", "copy", "record",
      "callback" }, kinds)
    local launch = list[1]
    assert.equal("add", launch.kernel)
    assert.same({ 1, 1, 1 }, launch.grid)
    assert.same({ 2, 1, 1 }, launch.block)
    assert.equal(16, launch.shared)
    assert.same({ 256, 256, 256, 256 },
      { list[2].bytes, list[3].bytes, list[4].bytes, list[5].bytes })
    assert.same({ "out", "in", "out" },
      { list[3].route, list[4].route, list[5].route })
    s:close()
  end)

  it("tells the routes of copies, and what rows are of", function()
    local a <close> = tp.zeros("i32", 64)
    local b <close> = tp.zeros("i32", 64)
    local h <close> = tp.pinned("i32", 64)
    local k <close> = tp.pinned("i32", 64)
    local t = check(record(function()
      a:copy_to(b)
      a:copy_to(h, { rows = 4, row_bytes = 8, pitch = 64, to_pitch = 16 })
      h:copy_to(k)
    end))
    local list = of(t, "copy")
    assert.same({ "within", "out", "host" },
      { list[1].route, list[2].route, list[3].route })
    assert.same({ 256, 32, 256 },
      { list[1].bytes, list[2].bytes, list[3].bytes })
  end)

  it("shows allocations and frees by when they were queued", function()
    local t = check(record(function()
      local b = tp.buffer("f64", 100)
      b:close()
    end))
    local made, freed = of(t, "alloc")[1], of(t, "free")[1]
    assert.equal(800, made.bytes)
    assert.equal(800, freed.bytes)
    assert.is_true(made.queued <= freed.queued)
  end)

  it("waits at stop for what has not ended, and does so in order", function()
    local out <close> = tp.pinned("i32", 2)
    local s <close> = tp.Stream()
    local u <close> = tp.Stream()
    local g <close> = gate.new()
    tp.timeline.start()
    g:hold(s)
    gate.run(s, "add", out, 0, 3)
    u:wait_stream(s)
    gate.run(u, "add", out, 0, 4)
    assert.is_false(s:synchronize(20))
    assert.equal(0, out[1])
    g:open()
    local t = check(tp.timeline.stop())
    assert.equal(7, out[1])
    local kernels = of(t, "kernel")
    assert.equal(3, #kernels)
    local hold, first, second = table.unpack(kernels)
    assert.is_true(first.started >= hold.finished - SLACK)
    assert.is_true(second.started >= first.finished - SLACK)
    local wait = of(t, "wait")[1]
    assert.equal("record", t[wait.waits_for].kind)
    assert.equal(s:id(), t[wait.waits_for].stream)
    -- The other stream had nothing else to do: its bar is all of the wait.
    assert.is_true(wait.finished - wait.started > 15)
    assert.is_true(wait.started < hold.finished - 15)
    assert.is_true(wait.finished >= t[wait.waits_for].finished)
    assert.is_true(wait.finished >= hold.finished)
    assert.is_true(second.started >= wait.finished)
  end)

  it("has waits lead to the record that they waited for", function()
    local s <close> = tp.Stream()
    local u <close> = tp.Stream()
    local e <close> = tp.Event()
    local first, second
    local t = check(record(function()
      e:record(s) first = here()
      u:wait_event(e)
      e:record(s) second = here()
      u:wait_event(e)
      tp.barrier(s, u)
    end))
    local waits = of(t, "wait")
    assert.equal(4, #waits)
    assert.equal(first, t[waits[1].waits_for].line)
    assert.equal(second, t[waits[2].waits_for].line)
    assert.equal(u:id(), t[waits[3].waits_for].stream)
    assert.equal(s:id(), t[waits[4].waits_for].stream)
  end)

  it("has a wait for what was recorded before lead nowhere", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    e:record(s)
    local t = check(record(function() s:wait_event(e) end))
    assert.equal(1, #of(t, "wait"))
    assert.is_nil(of(t, "wait")[1].waits_for)
  end)

  it("has graphs, each launch by itself", function()
    local x <close> = tp.zeros("i32", 4)
    local s <close> = tp.Stream()
    local add <close> = gate.kernel "add"
    local captured
    local g <close> = tp.capture(s, function()
      add:launch(gate.one, x, 0, 1) captured = here()
      x:fill(3)
    end)
    local launched
    local t = check(record(function()
      g:launch(s) launched = here()
      g:launch(s)
    end))
    local graphs = of(t, "graph")
    assert.equal(2, #graphs)
    assert.equal(launched, graphs[1].line)
    if CUDA then return end -- one bar
    local kernels = of(t, "kernel")
    assert.equal(2, #kernels)
    for i, k in ipairs(kernels) do
      local whole = t[k.graph]
      assert.equal(graphs[i], whole)
      assert.equal(captured, k.line)
      assert.equal(s:id(), k.stream)
      assert.equal(whole.queued, k.queued)
      assert.is_true(k.started >= whole.started)
      assert.is_true(k.finished <= whole.finished)
    end
    assert.equal(2, #of(t, "fill"))
    assert.is_true(kernels[2].started >= kernels[1].finished)
  end)

  it("has each round of a loop in a graph", function()
    local x <close> = tp.buffer("i32", { 3 })
    local g <close> = tp.capture(function()
      tp.graph_while(x, function()
        gate.run(tp.current_stream(), "add", x, 0, -1)
      end)
    end)
    local t = check(record(function() g:launch() end))
    assert.equal(0, x:read()[1])
    if not CUDA then
      assert.equal(3, #of(t, "kernel"))
      assert.equal(1, #of(t, "condition"))
    end
    assert.equal(1, #of(t, "graph"))
  end)

  it("has what tasks queue", function()
    local x <close> = tp.zeros("i32", 4)
    local t = check(record(function()
      for i = 0, 3 do
        tp.spawn(function()
          local s <close> = tp.Stream()
          tp.range("task " .. i, function()
            gate.run(s, "add", x, i, i)
            tp.await(s)
            gate.run(s, "add", x, i, 10)
            tp.await(s)
          end)
        end)
      end
      tp.run()
    end))
    assert.same({ 10, 11, 12, 13 }, x:read())
    assert.equal(8, #of(t, "kernel"))
    assert.equal(4, #t.ranges)
    for i, r in ipairs(t.ranges) do
      assert.equal("task " .. i - 1, r.name)
      assert.is_true(r.started <= r.finished)
    end
  end)

  it("has nothing before, and nothing after", function()
    local x <close> = tp.zeros("i32", 4)
    x:fill(1)
    tp.timeline.start()
    local t = tp.timeline.stop()
    x:fill(2)
    assert.equal(0, #t)
    assert.equal(0, t.dropped)
    assert.equal(2, x:read()[1])
  end)

  it("has what ended while nobody looked", function()
    local x <close> = tp.zeros("i32", 4)
    local count = 3000
    local t = check(record(function()
      for i = 1, count do x:fill(i) end
    end))
    assert.equal(count, #of(t, "fill"))
  end)

  it("keeps as much as it may, and says what it did not", function()
    local x <close> = tp.zeros("i32", 4)
    local t = check(record(function()
      for i = 1, 25 do x:fill(i) end
    end, { limit = 10 }))
    assert.equal(10, #t)
    assert.equal(15, t.dropped)
    assert.matches("15 more operations, .* not recorded %(limit 10%)", t:chart())
    t:write(folder .. "/limit.json")
    assert.equal(15, json.read(files.read(folder .. "/limit.json"))
      .otherData.not_recorded)
  end)

  it("tells where the host waited", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    local line
    local t = check(record(function()
      g:hold(s)
      s:synchronize(5) line = here()
      g:open()
    end))
    local found
    for _, w in ipairs(t.waits) do found = found or w.line == line and w end
    assert.is_truthy(found)
    assert.is_true(found.finished - found.started > 4.5)
    assert.is_nil(found.name)
  end)

  it("tells of a wait that had begun before from its own begin on", function()
    local s <close> = tp.Stream()
    local x <close> = tp.zeros("i32", 4)
    gate.run(s, "add", x, 0, 1)
    s:on_complete(function() tp.timeline.start() end)
    s:synchronize()
    tp.current_device():synchronize()
    local t = check(tp.timeline.stop())
    assert.is_true(#t.waits > 0)
    for _, w in ipairs(t.waits) do assert.is_true(w.started >= 0, w.started) end
  end)

  it("tells where the host slept while tasks did", function()
    local line
    local t = check(record(function()
      tp.spawn(tp.sleep, 5)
      tp.run() line = here()
    end))
    assert.equal(line, t.waits[1].line)
    assert.is_true(t.waits[1].finished - t.waits[1].started > 4)
  end)

  it("can be recorded again", function()
    local x <close> = tp.zeros("i32", 4)
    for i = 1, 3 do
      local t = check(record(function()
        for _ = 1, i do x:fill(i) end
      end))
      assert.equal(i, #of(t, "fill"))
    end
  end)

  it("knows only its own Lua state's work, as a coroutine's", function()
    local x <close> = tp.zeros("i32", 4)
    local t = check(record(function()
      coroutine.wrap(function() x:fill(1) end)()
    end))
    assert.equal(1, #of(t, "fill"))
  end)
end)

describe("tp.timeline", function()
  local function raised(pattern, fn, ...)
    local ok, e = pcall(fn, ...)
    assert.is_false(ok)
    assert.matches(pattern, tostring(e))
  end

  it("refuses what makes no sense", function()
    raised("no timeline is being recorded$", tp.timeline.stop)
    raised("unknown option 'limits'", tp.timeline.start, { limits = 3 })
    raised("field 'limit': at least 1 expected, got 0", tp.timeline.start,
      { limit = 0 })
    tp.timeline.start()
    raised("a timeline is being recorded already$", tp.timeline.start)
    raised("the timeline's file 'x%.txt' ends neither in %.html .* nor in "
      .. "%.json", tp.timeline.stop, "x.txt")
    raised("'%.json' ends neither", tp.timeline.stop, ".json")
    raised("cannot write the timeline to '/nonexistent/x%.html': No such",
      tp.timeline.stop, "/nonexistent/x.html")
    local t = tp.timeline.stop() -- still recorded
    raised("cannot write the timeline to '/nonexistent/x%.html': No such",
      t.write, t, "/nonexistent/x.html")
    raised("columns from 1 to 10000", t.chart, t, 0)
    raised("tpstream.Timeline expected", t.chart, {})
    assert.matches("^tpstream%.Timeline %(0 records, ", tostring(t))
    local x <close> = tp.zeros("i32", 4)
    tp.timeline.start()
    x:fill(1)
    assert.matches("^tpstream%.Timeline %(1 record, ", tostring(tp.timeline.stop()))
  end)

  it("writes at stop what write writes", function()
    local x <close> = tp.zeros("i32", 4)
    tp.timeline.start()
    x:fill(1)
    local t = tp.timeline.stop(folder .. "/a.json")
    t:write(folder .. "/b.json")
    assert.equal(files.read(folder .. "/a.json"),
      files.read(folder .. "/b.json"))
  end)
end)

describe("tp.range", function()
  it("calls the function and gives back all that it returns", function()
    local function pass(...) return ... end
    assert.same({ n = 0 }, table.pack(tp.range("x", pass)))
    assert.same({ n = 4, 1, nil, 3, nil },
      table.pack(tp.range("x", pass, 1, nil, 3, nil)))
    assert.equal(5, tp.range("x", setmetatable({}, {
      __call = function(_, a) return a + 1 end,
    }), 4))
    local what = {}
    local ok, e = pcall(tp.range, "x", error, what)
    assert.is_false(ok)
    assert.equal(what, e)
  end)

  it("refuses what is no name or no function", function()
    local _, e = pcall(tp.range, {}, print)
    assert.matches("bad argument #1 to 'range' %(string expected, got table%)", e)
    _, e = pcall(tp.range, "x", 5)
    assert.matches("bad argument #2 to 'range' %(function expected, got number%)",
      e)
  end)

  it("lets the function yield", function()
    local co = coroutine.wrap(function()
      return tp.range("x", function(a) return coroutine.yield(a) + 1 end, 1)
    end)
    assert.equal(1, co())
    assert.equal(8, co(7))
  end)

  it("shows ranges in one another, with names that are anything", function()
    local name = "a \"b\" </script> \1\xff\u{2028}é"
    local line
    local t = record(function()
      tp.range(name, function()
        tp.range("inner", function() end) line = here()
        pcall(tp.range, "broken", error, "x")
      end)
    end)
    assert.equal(3, #t.ranges)
    local outer, inner, broken = table.unpack(t.ranges)
    assert.equal(name, outer.name)
    assert.equal(line, inner.line)
    assert.equal("broken", broken.name)
    for _, r in ipairs { inner, broken } do
      assert.is_true(r.started >= outer.started)
      assert.is_true(r.finished <= outer.finished)
    end
  end)

  it("ends with the timeline at the latest, and with its coroutine", function()
    local t
    tp.timeline.start()
    tp.range("whole", function() t = tp.timeline.stop() end)
    assert.equal("whole", t.ranges[1].name)
    assert.is_true(t.ranges[1].finished <= t.duration)
    t = record(function()
      local co = coroutine.create(function()
        tp.range("left", coroutine.yield)
      end)
      coroutine.resume(co)
      coroutine.close(co)
    end)
    assert.is_true(t.ranges[1].finished < t.duration)
  end)
end)

describe("several devices", function()
  it("have rows of their own", function()
    local r = run.script([[
      local tp = require "tpstream"
      tp.timeline.start()
      local a <close> = tp.zeros("i32", 1000, { device = "sim:0" })
      local b <close> = tp.zeros("i32", 1000, { device = "sim:1" })
      a:copy_to(b)
      local s, u = tp.Stream "sim:0", tp.Stream "sim:1"
      u:wait_stream(s)
      local t = tp.timeline.stop()
      local seen = {}
      for _, r in ipairs(t) do
        if r.started then
          seen[r.device] = (seen[r.device] or "") .. r.kind .. " "
          if r.route then print(r.route) end
          if r.waits_for then print(t[r.waits_for].device) end
        end
      end
      print(seen["sim:0"])
      print(seen["sim:1"])
      io.write(t:chart(80))
    ]], { env = { TPSTREAM_DEVICE = "sim", TPSTREAM_SIM_DEVICES = 2 } })
    assert.equal(0, r.status, r.stderr)
    assert.matches("^across\nsim:0\nfill copy record \nfill wait \n", r.stdout)
    assert.matches("\nsim:0\nstream 0 .*\nsim:1\nstream 0 ", r.stdout)
  end)
end)

describe("a fault", function()
  it("#fault is shown, with what was lost by it", function()
    local r = run.script([[
      local tp = require "tpstream"
      local gate = require "spec.support.gate"
      local s = tp.Stream()
      local b = tp.zeros("i32", 1)
      b:read()
      local put = gate.kernel "put"
      tp.timeline.start()
      tp.with_stream(s, function()
        put:launch(gate.one, nil, 0, 1)
        pcall(put.launch, put, gate.one, b, 0, 1)
      end)
      local ok, e = pcall(s.synchronize, s)
      local t = tp.timeline.stop()
      print(ok, t[1].kind, t[1].line, t[1].failed)
      print((t:chart():match "%d operations? failed"))
      t:write(arg[1])
      local again, why = pcall(b.read, b)
      print(again, tostring(why):match "launch" or tostring(why):match "illegal")
    ]], { args = { folder .. "/fault.json" } })
    assert.equal(0, r.status, r.stderr)
    assert.matches("^false\tkernel\t9\ttrue\n%d operations? failed\nfalse\t",
      r.stdout)
    json.read(files.read(folder .. "/fault.json"))
  end)

  it("#fault is in the trace where it was queued, and in the chart", function()
    local r = run.script([[
      local tp = require "tpstream"
      local gate = require "spec.support.gate"
      local s, g = tp.Stream(), gate.new()
      local b = tp.zeros("i32", 1)
      b:read()
      tp.timeline.start()
      g:hold(s)
      gate.run(s, "put", nil, 0, 1)
      gate.run(s, "add", b, 0, 1)
      g:open()
      pcall(s.synchronize, s)
      local t = tp.timeline.stop(arg[1])
      print(t[3].kernel, t[3].failed, t[3].started)
      io.write(t:chart(80))
      os.exit(0)
    ]], { args = { folder .. "/lost.json" } })
    assert.equal(0, r.status, r.stderr)
    assert.matches("^add\ttrue\tnil\n", r.stdout)
    assert.matches("? failed, or had not ended\n", r.stdout, 1, true)
    assert.matches("\nstream %d+ +|[^|]*%?|", r.stdout)
    local lost, named = nil, {}
    for _, e in ipairs(json.read(files.read(folder .. "/lost.json")).traceEvents) do
      if e.name == "thread_name" then named[e.tid] = e.args.name end
      if e.cat == "failed" and e.name == "add" then lost = e end
    end
    assert.equal("i", lost.ph)
    assert.is_true(lost.args.failed)
    assert.matches("^stream %d+$", named[lost.tid])
  end)

  it("#fault of a refused launch is told", function()
    local x <close> = tp.zeros("i32", 1)
    local add <close> = gate.kernel "add"
    local t = record(function()
      local shape = { grid = 1, block = 5000 }
      assert.is_false(pcall(add.launch, add, shape, x, 0, 1))
    end)
    assert.equal(0, #of(t, "kernel")) -- refused before it was queued
  end)
end)
