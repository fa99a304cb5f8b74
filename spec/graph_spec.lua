-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Graphs: capturing, launching, order, lifetime. What
-- changes a graph is in graph_change_spec, what is refused in graph_error_spec.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local program = require "spec.support.program"
local run = require "spec.support.run"

local one = gate.one
local wide = { grid = 1, block = 64 }

-- The current stream's view of a buffer after all work of `s`.
local function read(s, b)
  tp.current_stream():wait_stream(s)
  return b:read()
end

describe("tp.capture", function()
  it("queues nothing; each launch does all that was captured", function()
    local b <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture(function() gate.run(nil, "add", b, 0, 5) end)
    assert.same({ 0 }, b:read())
    g:launch()
    assert.same({ 5 }, b:read())
    g:launch()
    g:launch()
    assert.same({ 15 }, b:read())
  end)

  it("passes on its arguments, nils included, and drops results", function()
    local seen
    local g <close> = tp.capture(function(...)
      seen = table.pack(...)
      return "dropped"
    end, nil, 2, nil)
    assert.same({ n = 3, nil, 2, nil }, seen)
    assert.equal("tpstream.Graph (" .. tp.current_device():kind() ..
      ":0, 0 nodes)", tostring(g))
  end)

  it("takes a stream, options, nil or nothing before the function", function()
    local s <close> = tp.Stream()
    local function current() return tp.current_stream() end
    local seen
    local function note() seen = current() end
    tp.capture(s, note):close()
    assert.equal(s, seen)
    tp.capture({ stream = s, mode = "global" }, note):close()
    assert.equal(s, seen)
    for _, how in ipairs { "nil", "none", "table" } do
      local g <close> = how == "nil" and tp.capture(nil, note)
        or how == "none" and tp.capture(note)
        or tp.capture({ mode = "thread_local" }, note)
      assert.not_equal(s, seen)
      assert.not_equal(tp.current_stream(), seen)
      assert.matches("closed", tostring(seen))
      g:launch():synchronize()
    end
    local callable = setmetatable({}, { __call = note })
    tp.capture(callable):close()
    tp.capture(s, callable):close()
    assert.equal(s, seen)
  end)

  it("restores the stream that was current, whatever was set", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local before = tp.current_stream()
    local g <close> = tp.capture(s, function()
      assert.equal(s, tp.current_stream())
      tp.set_stream(t)
    end)
    assert.equal(before, tp.current_stream())
    g:launch()
  end)

  it("is known by is_capturing, of forked streams too", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = tp.capture(s, function()
      assert.is_true(s:is_capturing())
      assert.is_false(t:is_capturing())
      t:wait_stream(s)
      assert.is_true(t:is_capturing())
      s:wait_stream(t)
    end)
    assert.is_false(s:is_capturing())
    assert.is_false(t:is_capturing())
    g:launch()
  end)

  it("leaves work of other streams, and what was queued before, alone", function()
    local b <close> = tp.zeros("i32", 1)
    local c <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    tp.barrier(tp.current_stream(), s, t)
    local g <close> = gate.new()
    g:hold(s)
    gate.run(s, "add", b, 0, 1)
    local graph <close> = tp.capture(s, function()
      gate.run(s, "add", b, 0, 10)
      gate.run(t, "add", c, 0, 1)
      assert.same({ 1 }, tp.with_stream(t, c.read, c))
      t:synchronize()
    end)
    assert.is_false(s:query())
    g:open()
    graph:launch(s)
    assert.same({ 11 }, read(s, b))
    assert.equal(1, #graph:nodes())
  end)

  it("works in a coroutine, and can't be left by a yield", function()
    local b <close> = tp.zeros("i32", 1)
    local co = coroutine.wrap(function()
      local g <close> = tp.capture(function() gate.run(nil, "add", b, 0, 2) end)
      g:launch()
      local s <close> = tp.Stream()
      local ok, e = pcall(tp.capture, s, function() coroutine.yield() end)
      assert.is_false(ok)
      assert.matches("yield across", e)
      assert.is_false(s:is_capturing())
      s:synchronize()
      return "end"
    end)
    assert.equal("end", co())
    assert.same({ 2 }, b:read())
  end)
end)

describe("fork and join", function()
  -- Two branches; the first is held up by a gate inside the graph.
  it("by events and wait_stream make branches that run side by side", function()
    local out <close> = tp.pinned("i32", 3)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local e <close> = tp.Event()
    local f <close> = tp.Event()
    local g <close> = gate.new()
    local graph <close> = tp.capture(s, function()
      s:record_event(e)
      t:wait_event(e)
      g:hold(s)
      gate.run(s, "put", out, 0, 1)
      gate.run(t, "put", out, 1, 1)
      t:record_event(f)
      s:wait_event(f)
      gate.run(s, "put", out, 2, 1)
    end)
    graph:launch(s)
    for _ = 1, 10000 do
      if out[2] == 1 then break end
      s:synchronize(1)
    end
    assert.same({ 0, 1, 0 }, { out[1], out[2], out[3] })
    assert.is_false(s:query())
    g:open()
    s:synchronize()
    assert.same({ 1, 1, 1 }, { out[1], out[2], out[3] })
  end)

  it("by the thousand are all run", function()
    local n = os.getenv "TPSTREAM_GC_STRESS" and 50 or 2000
    local b <close> = tp.zeros("i32", n)
    local s <close> = tp.Stream()
    local branches = {}
    for i = 1, n do branches[i] = tp.Stream() end
    s:wait_stream(tp.current_stream())
    local add = gate.kernel "add"
    local g <close> = tp.capture(s, function()
      for i, t in ipairs(branches) do
        t:wait_stream(s)
        add:launch({ grid = 1, block = 1, stream = t }, b, i - 1, i)
      end
      s:wait_stream(table.unpack(branches))
      gate.run(s, "twice", b, 1)
    end)
    add:close()
    assert.equal(n, #g:nodes()[n + 1].dependencies)
    for _ = 1, 3 do g:launch(s) end
    local r = tp.with_stream(s, b.read, b)
    assert.equal(14, r[1]) -- ((1 * 2 + 1) * 2 + 1) * 2
    for i = 2, n do assert.equal(3 * i, r[i]) end
    for i = 1, n do branches[i]:close() end
  end)

  -- More kernels than run at once wait for what only the others bring about.
  it("leave room for what needs no processor", function()
    if tp.current_device():kind() == "cuda" then
      return pending "a GPU puts branches behind one another as it likes"
    end
    local s <close> = tp.Stream()
    local called <close> = tp.Stream()
    local e <close> = tp.Event()
    local held <close> = gate.new()
    local branches = {}
    for i = 1, 150 do branches[i] = tp.Stream() end
    local g <close> = tp.capture(s, function()
      for _, t in ipairs(branches) do
        t:wait_stream(s)
        held:hold(t)
      end
      called:wait_stream(s)
      called:on_complete(function() held:open() end)
      called:record_event(e)
      s:wait_stream(called, table.unpack(branches))
    end)
    g:launch(s)
    assert.is_true(e:synchronize(10000))
    assert.is_true(s:synchronize(10000))
    for i = 1, 150 do branches[i]:close() end
  end)

  it("are what the nodes come after", function()
    local b <close> = tp.zeros("i32", 4)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local g <close> = tp.capture(s, function()
      b:slice(1, 1):fill(1)             -- 1
      tp.barrier(s)                     -- of one: nothing
      t:wait_stream(s)
      u:wait_stream(s, t)
      tp.with_stream(t, function() b:slice(2, 1):fill(2) end)   -- 2
      tp.with_stream(u, function() b:slice(3, 1):fill(3) end)   -- 3
      s:wait_stream(t)
      b:slice(4, 1):fill(4)             -- 4
      s:wait_stream(u, t)
      b:fill(5)                         -- 5
    end)
    local after = {}
    for i, node in ipairs(g:nodes()) do
      assert.equal(i, node.id)
      table.sort(node.dependencies)
      after[i] = table.concat(node.dependencies, " ")
    end
    assert.same({ "", "1", "1", "2", "3 4" }, after)
  end)

  it("by barrier order all after all", function()
    local b <close> = tp.zeros("i32", 4)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = tp.capture(s, function()
      t:wait_stream(s)
      b:slice(1, 1):fill(1)
      tp.with_stream(t, function() b:slice(2, 1):fill(2) end)
      tp.barrier(s, t)
      b:slice(3, 1):fill(3)
      tp.with_stream(t, function() b:slice(4, 1):fill(4) end)
      s:wait_stream(t)
    end)
    local nodes = g:nodes()
    for i = 3, 4 do
      table.sort(nodes[i].dependencies)
      assert.same({ 1, 2 }, nodes[i].dependencies)
    end
    g:launch()
    assert.same({ 1, 2, 3, 4 }, b:read())
  end)

  it("by barriers of many streams, again and again", function()
    local n, rounds = os.getenv "TPSTREAM_GC_STRESS" and 6 or 60, 4
    local first = {}
    for i = 1, n do first[i] = i * i end
    local a <close> = tp.buffer("i32", first)
    local b <close> = tp.zeros("i32", n)
    local s <close> = tp.Stream()
    local streams = { s }
    for i = 2, n do streams[i] = tp.Stream() end
    s:wait_stream(tp.current_stream())
    local copy = gate.kernel "copy"
    local g <close> = tp.capture(s, function()
      for i = 2, n do streams[i]:wait_stream(s) end
      local from, to = a, b
      for _ = 1, rounds do -- each takes its neighbour's
        for i, t in ipairs(streams) do
          copy:launch({ grid = 1, block = 1, stream = t },
            from:slice(i % n + 1, 1), to:slice(i, 1), 1)
        end
        tp.barrier(s, table.unpack(streams)) -- s twice
        from, to = to, from
      end
    end)
    copy:close()
    assert.equal(rounds * n, #g:nodes())
    assert.equal(n, #g:nodes()[rounds * n].dependencies)
    g:launch(s)
    local r = tp.with_stream(s, a.read, a)
    for i = 1, n do assert.equal(first[(i + rounds - 1) % n + 1], r[i]) end
    for i = 2, n do streams[i]:close() end
  end)

  it("of an event recorded again mean the later place", function()
    local b <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local e <close> = tp.Event()
    e:record(s)
    local g <close> = tp.capture(s, function()
      s:record_event(e)
      b:fill(1)
      s:record_event(e)
      t:wait_event(e)
      tp.with_stream(t, function() b:fill(2) end)
      e:record(t)
      e:wait(s)
    end)
    local nodes = g:nodes()
    assert.equal(3, #nodes) -- the last record of e is one
    assert.same({ nodes[1].id }, nodes[2].dependencies)
    e:record(s) -- outside: an ordinary event again
    e:synchronize()
    assert.is_true(e:query())
  end)

  it("need not be for what fills memory when it is made", function()
    local out <close> = tp.zeros("i32", 2)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local flag <close> = tp.buffer("i32", { 1 })
    local g <close> = tp.capture(s, function()
      t:wait_stream(s)
      u:wait_stream(s)
      local a <close> = tp.buffer("i32", { 1, 2 }, { stream = t })    -- 1
      a:copy_to(out, { stream = u })                                  -- 2
      a:fill(3)                                                       -- 3
      tp.with_stream(t, function() a:fill(4) end)                     -- 4
      a:copy_to(out, { stream = u })                                  -- 5
      local b <close> = tp.zeros("i32", 2, { stream = t })            -- 6
      tp.graph_if(flag, function() b:copy_to(out) end)                -- 7, 8
      s:wait_stream(t, u)
    end)
    local after = {}
    for i, node in ipairs(g:nodes()) do
      table.sort(node.dependencies)
      after[i] = node.id .. ": " .. table.concat(node.dependencies, " ")
    end
    assert.same({ "1: ", "2: 1", "3: 1", "4: 1", "5: 2", "6: 4", "8: 3 6" },
      after)
  end)

  it("need not be for a forked stream with no work of its own", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local b <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture(s, function()
      b:fill(3)
      t:wait_stream(s)
    end)
    g:launch()
    assert.same({ 3 }, b:read())
  end)
end)

-- ---- random programs --------------------------------------------------------

-- A program: a list of steps on buffers and streams, ordered by waits so that
-- every step comes after those that touch what it touches.
local function random_program(buffers, streams, count)
  local steps, last = {}, {}
  for i = 2, streams do steps[#steps + 1] = { "wait", i, 1 } end
  local function use(s, b)
    if last[b] and last[b] ~= s then steps[#steps + 1] = { "wait", s, last[b] } end
    last[b] = s
  end
  for _ = 1, count do
    local s = math.random(streams)
    local a, b = math.random(buffers), math.random(buffers)
    local what = math.random(6)
    use(s, a)
    if what == 1 then
      steps[#steps + 1] = { "add", s, a, math.random(0, 15), math.random(-9, 9) }
    elseif what == 2 then
      steps[#steps + 1] = { "twice", s, a }
    elseif what == 3 and a ~= b then
      use(s, b)
      steps[#steps + 1] = { "kernel", s, a, b }
    elseif what == 4 and a ~= b then
      use(s, b)
      local n = math.random(16)
      steps[#steps + 1] = { "copy", s, a, b, math.random(17 - n), n,
                            math.random(17 - n) }
    elseif what == 5 then
      local first = math.random(16)
      steps[#steps + 1] = { "fill", s, a, first, math.random(17 - first),
                            math.random(-99, 99) }
    else
      local values = {}
      for i = 1, math.random(8) do values[i] = math.random(-99, 99) end
      steps[#steps + 1] = { "write", s, a, math.random(9), values }
    end
  end
  for i = 2, streams do steps[#steps + 1] = { "wait", 1, i } end
  return steps
end

local function queue(steps, buffers, streams)
  for _, step in ipairs(steps) do
    local what, s = step[1], streams[step[2]]
    local a = buffers[step[3]]
    tp.with_stream(s, function()
      if what == "wait" then s:wait_stream(streams[step[3]])
      elseif what == "add" then gate.run(s, "add", a, step[4], step[5])
      elseif what == "fill" then a:slice(step[4], step[5]):fill(step[6])
      elseif what == "write" then a:write(step[5], step[4])
      elseif what == "copy" then
        a:copy_to(buffers[step[4]], { first = step[5], count = step[6],
                                      at = step[7] })
      else
        local k <close> = gate.kernel(what == "kernel" and "copy" or "twice")
        if what == "kernel" then k:launch(wide, a, buffers[step[4]], 16)
        else k:launch(wide, a, 16) end
      end
    end)
  end
end

-- The same on tables.
local function simulate(steps, tables)
  for _, step in ipairs(steps) do
    local what, a = step[1], tables[step[3]]
    if what == "add" then a[step[4] + 1] = a[step[4] + 1] + step[5]
    elseif what == "twice" then
      for i = 1, 16 do a[i] = a[i] * 2 & 0xffffffff end
      for i = 1, 16 do if a[i] >= 1 << 31 then a[i] = a[i] - (1 << 32) end end
    elseif what == "kernel" then table.move(a, 1, 16, 1, tables[step[4]])
    elseif what == "fill" then
      for i = step[4], step[4] + step[5] - 1 do a[i] = step[6] end
    elseif what == "write" then table.move(step[5], 1, #step[5], step[4], a)
    elseif what == "copy" then
      table.move(a, step[5], step[5] + step[6] - 1, step[7], tables[step[4]])
    end
  end
end

describe("a random program", function()
  local function check(seed, buffer_count, stream_count, steps_count)
    math.randomseed(seed)
    local steps = random_program(buffer_count, stream_count, steps_count)
    local captured, direct, tables, streams = {}, {}, {}, {}
    for i = 1, buffer_count do
      local values = {}
      for j = 1, 16 do values[j] = math.random(-999, 999) end
      tables[i] = values
      captured[i] = tp.buffer("i32", values)
      direct[i] = tp.buffer("i32", values)
    end
    for i = 1, stream_count do streams[i] = tp.Stream() end
    local g = tp.capture(streams[1], queue, steps, captured, streams)
    local launched = tp.Stream()
    for _ = 1, 3 do
      g:launch(launched)
      queue(steps, direct, streams)
      simulate(steps, tables)
    end
    -- Another program in its place; then both, the one as a part of the other.
    local more = random_program(buffer_count, stream_count, steps_count // 2)
    local h = tp.capture(streams[1], queue, more, captured, streams)
    g:update(function()
      queue(more, captured, { tp.current_stream(), table.unpack(streams, 2) })
    end)
    g:launch(launched)
    g:update(function()
      queue(steps, captured, { tp.current_stream(), table.unpack(streams, 2) })
      h:launch()
      queue(steps, captured, { tp.current_stream(), table.unpack(streams, 2) })
    end)
    g:launch(launched)
    g:add(h):launch(launched)
    h:close()
    for _, part in ipairs { more, steps, more, steps, steps, more, steps, more } do
      queue(part, direct, streams)
      simulate(part, tables)
    end
    for i = 1, buffer_count do
      assert.same(tables[i], read(streams[1], direct[i]))
      assert.same(tables[i], read(launched, captured[i]))
    end
    g:close()
    launched:close()
    for i = 1, buffer_count do captured[i]:close() direct[i]:close() end
    for i = 1, stream_count do streams[i]:close() end
  end

  for seed = 1, 12 do
    it("does the same in a graph as without, number " .. seed, function()
      check(seed, math.random(1, 5), math.random(1, 5), 40)
    end)
  end

  it("of hundreds of steps does, too", function()
    check(99, 8, 8, 600)
  end)
end)

-- ---- launching --------------------------------------------------------------

describe("g:launch", function()
  it("goes to the current stream, or the one given, and returns it", function()
    local b <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture(function() gate.run(nil, "add", b, 0, 1) end)
    local s <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    assert.equal(tp.current_stream(), g:launch())
    assert.equal(tp.current_stream(), g:launch(nil))
    tp.current_stream():synchronize()
    assert.equal(s, g:launch(s))
    assert.equal(s, g:launch { stream = s })
    assert.equal(s, tp.with_stream(s, g.launch, g))
    assert.same({ 5 }, read(s, b))
  end)

  it("waits for nothing, and for its place in the stream", function()
    local b <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    tp.current_stream():synchronize()
    local g <close> = tp.capture(function() gate.run(nil, "put", b, 0, 2) end)
    local held <close> = gate.new()
    held:hold(s)
    gate.run(s, "put", b, 0, 1)
    g:launch(s)
    gate.run(s, "add", b, 0, 10)
    assert.is_false(s:query())
    held:open()
    assert.same({ 12 }, read(s, b))
  end)

  it("of one graph on two streams runs one after the other", function()
    local list <close> = tp.zeros("i32", 100)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    tp.barrier(tp.current_stream(), s, t)
    local held <close> = gate.new()
    local g <close> = tp.capture(function()
      held:hold(tp.current_stream())
      gate.run(nil, "append", list, 1)
      gate.run(nil, "append", list, 2)
    end)
    g:launch(s)
    g:launch(t)
    g:launch(s)
    gate.run(t, "append", list, 3)
    assert.is_false(t:synchronize(5))
    held:open()
    s:synchronize()
    t:synchronize()
    local r = list:read()
    assert.equal(7, r[1])
    local order = table.concat(r, " ", 2, 8)
    assert.is_true(order == "1 2 1 2 3 1 2" or order == "1 2 1 2 1 2 3" or
      order == "1 2 1 2 1 3 2", order)
  end)

  it("of graphs that share memory of a part's runs one after the other", function()
    local list <close> = tp.zeros("i32", 20)
    local out <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    tp.barrier(tp.current_stream(), s, t)
    local held <close> = gate.new()
    local part <close> = tp.capture(function()
      local own <close> = tp.zeros("i32", 1)
      gate.run(nil, "append", list, 1)
      gate.run(nil, "add", own, 0, 1)
      held:hold(tp.current_stream())
      own:copy_to(out)
      gate.run(nil, "append", list, 2)
    end)
    local a <close> = tp.capture(function() part:launch() end)
    local b <close> = tp.capture(function() part:launch() end)
    a:launch(s)
    b:launch(t)
    part:launch(s)
    assert.is_false(t:synchronize(3))
    held:open()
    s:synchronize()
    t:synchronize()
    assert.same({ 6, 1, 2, 1, 2, 1, 2 }, list:read(1, 7))
    assert.same({ 1 }, out:read())
  end)

  it("of different graphs on two streams runs side by side", function()
    local out <close> = tp.pinned("i32", 2)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local held <close> = gate.new()
    local a <close> = tp.capture(function()
      held:hold(tp.current_stream())
      gate.run(nil, "put", out, 0, 1)
    end)
    local b <close> = tp.capture(function() gate.run(nil, "put", out, 1, 1) end)
    a:launch(s)
    b:launch(t)
    t:synchronize()
    assert.equal(0, out[1])
    assert.equal(1, out[2])
  end)

  it("is done when its last node is: events, queries, waits", function()
    local b <close> = tp.zeros("i32", 2)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local held <close> = gate.new()
    local g <close> = tp.capture(s, function()
      t:wait_stream(s)
      held:hold(t)
      gate.run(s, "put", b, 0, 1)
      gate.run(t, "put", b, 1, 1)
      s:wait_stream(t)
    end)
    g:launch(s)
    local e <close> = s:record_event()
    assert.is_false(e:query())
    assert.is_false(s:synchronize(2))
    held:open()
    assert.is_true(e:synchronize())
    assert.is_true(s:query())
    assert.same({ 1, 1 }, b:read())
  end)

  it("can be awaited by a task", function()
    local b <close> = tp.zeros("i32", 1)
    local held <close> = gate.new()
    local g <close> = tp.capture(function()
      held:hold(tp.current_stream())
      gate.run(nil, "put", b, 0, 8)
    end)
    local order = {}
    tp.run(function()
      local waiting = tp.spawn(function()
        tp.await(g:launch())
        order[#order + 1] = b:read()[1]
      end)
      order[#order + 1] = "queued"
      held:open()
      tp.await(waiting)
    end)
    assert.same({ "queued", 8 }, order)
  end)

  it("waits where every launch does (--blocking)", function()
    local r = run.command({ os.getenv "TPS_BUILD" .. "/tpstream", "--blocking",
      "-e", [[
local tp = require "tpstream"
local b = tp.zeros("i32", 4)
local s = tp.Stream()
local g = tp.capture(s, function() b:fill(1) end)
print(g:launch(s):query())]] }, {})
    assert.equal("true\n", r.stdout, r.stderr)
  end)

  it("of an empty graph does nothing", function()
    local g <close> = tp.capture(function() end)
    assert.is_true(g:launch():synchronize())
    assert.same({}, g:nodes())
  end)

  it("of a long chain and of many branches", function()
    local b <close> = tp.zeros("i32", 1000)
    local streams = {}
    for i = 1, 20 do streams[i] = tp.Stream() end
    local add = gate.kernel("add"):bind(one)
    local g <close> = tp.capture(function()
      for _ = 1, 500 do add(b, 0, 1) end
      for i = 1, 20 do streams[i]:wait_stream(tp.current_stream()) end
      for i = 1, 20 do
        for j = 1, 20 do tp.with_stream(streams[i], add, b, i * 20 + j, 1) end
      end
      tp.current_stream():wait_stream(table.unpack(streams))
    end)
    assert.equal(900, #g:nodes())
    for _ = 1, 3 do g:launch() end
    local r = b:read()
    assert.equal(1500, r[1])
    for i = 22, 421 do assert.equal(3, r[i]) end
    for i = 1, 20 do streams[i]:close() end
  end)
end)

describe("host notifications in a graph", function()
  it("come at each launch, in order, with the launch's stream", function()
    local log = {}
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = tp.capture(s, function()
      s:on_complete(function(...)
        log[#log + 1] = { tp.current_stream(), ... }
      end, "a", nil, 1)
      s:on_complete(function() log[#log + 1] = "b" end)
    end)
    assert.equal(0, tp.poll())
    g:launch(s)
    g:launch(t)
    assert.same({}, log)
    s:synchronize()
    t:synchronize()
    assert.same({ { s, "a", nil, 1 }, "b", { t, "a", nil, 1 }, "b" }, log)
    assert.equal("host", g:nodes()[1].kind)
  end)

  it("come after the nodes before them and hold up those behind", function()
    local b <close> = tp.zeros("i32", 1)
    local seen
    local held <close> = gate.new()
    local g <close> = tp.capture(function()
      held:hold(tp.current_stream())
      gate.run(nil, "put", b, 0, 4)
      tp.current_stream():on_complete(function() seen = b:read()[1] end)
    end)
    local s = g:launch()
    assert.equal(0, tp.poll())
    held:open()
    s:synchronize()
    assert.equal(4, seen)
  end)

  it("are still due when the graph has been closed", function()
    local seen = 0
    local held <close> = gate.new()
    local g = tp.capture(function()
      held:hold(tp.current_stream())
      tp.current_stream():on_complete(function() seen = seen + 1 end)
    end)
    local s = g:launch()
    g:launch()
    g:close()
    held:open()
    s:synchronize()
    assert.equal(2, seen)
  end)

  it("that fail come out of the call that ran them", function()
    local g <close> = tp.capture(function()
      tp.current_stream():on_complete(error, "from a graph")
    end)
    g:launch()
    local ok, e = pcall(tp.current_stream().synchronize, tp.current_stream())
    assert.is_false(ok)
    assert.equal("from a graph", e)
    g:launch()
    assert.is_false(pcall(tp.current_stream().synchronize, tp.current_stream()))
  end)

  it("of a part of a graph belong to the whole", function()
    local log = {}
    local inner <close> = tp.capture(function()
      tp.current_stream():on_complete(function() log[#log + 1] = "inner" end)
    end)
    local g <close> = tp.capture(function()
      tp.current_stream():on_complete(function() log[#log + 1] = "first" end)
      inner:launch()
      tp.current_stream():on_complete(function() log[#log + 1] = "last" end)
    end)
    inner:close()
    g:launch():synchronize()
    g:launch():synchronize()
    assert.same({ "first", "inner", "last", "first", "inner", "last" }, log)
  end)
end)

-- ---- lifetime ---------------------------------------------------------------

describe("a graph keeps", function()
  it("memory that is made and dropped while it is captured", function()
    local out <close> = tp.zeros("i32", 4)
    local before = tp.memory_stats().live_count
    local g <close> = tp.capture(function()
      local a <close> = tp.buffer("i32", { 1, 2, 3, 4 })
      local b <close> = tp.zeros("i32", 4)
      local k <close> = gate.kernel "copy"
      k:launch(wide, a, b, 4)
      gate.run(nil, "add", b, 0, 10)
      b:copy_to(out)
    end)
    collectgarbage()
    assert.equal(before + 2, tp.memory_stats().live_count)
    for _ = 1, 3 do
      g:launch()
      assert.same({ 11, 2, 3, 4 }, out:read())
      out:fill(0)
    end
    g:close()
    tp.current_stream():synchronize()
    assert.equal(before, tp.memory_stats().live_count)
  end)

  it("what a table was written with", function()
    local b <close> = tp.zeros("i32", 3)
    local values = { 7, 8, 9 }
    local g <close> = tp.capture(function() b:write(values) end)
    values[1] = 100
    for _ = 1, 2 do
      g:launch()
      assert.same({ 7, 8, 9 }, b:read())
      b:fill(0)
    end
  end)

  it("buffers that are closed", function()
    local out <close> = tp.zeros("i32", 1)
    local b = tp.buffer("i32", { 42 })
    local view = b:slice(1, 1)
    local g <close> = tp.capture(function() view:copy_to(out) end)
    b:close()
    view:close()
    local others = {}
    for i = 1, 10 do others[i] = tp.buffer("i32", { i }) end
    g:launch()
    assert.same({ 42 }, out:read())
    for i = 1, 10 do others[i]:close() end
  end)

  it("kernels and modules that are closed", function()
    local m = program("graph", [=[
extern "C" __global__ void put7(int *p) { *p = 7; }
extern "C" __global__ void types(char *o, signed char a, unsigned char b,
                                 short c, unsigned short d, int e, unsigned f,
                                 long long g, unsigned long long h, float i,
                                 double j, bool k) {
  o[0] = a; o[1] = b;
  memcpy(o + 2, &c, 2); memcpy(o + 4, &d, 2);
  memcpy(o + 8, &e, 4); memcpy(o + 12, &f, 4);
  memcpy(o + 16, &g, 8); memcpy(o + 24, &h, 8);
  memcpy(o + 32, &i, 4); memcpy(o + 40, &j, 8);
  o[48] = k;
}
extern "C" __global__ void scale(float *x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
extern "C" __global__ void count_down(int *flag, int *turns) {
  *flag -= 1;
  *turns += 1;
}
__device__ int variable;
extern "C" __global__ void bump() { variable += 1; }
extern "C" __global__ void texel(cudaTextureObject_t t, float *o) {
  o[threadIdx.x] = tex1D<float>(t, threadIdx.x + 0.5f);
}
]=])
    local b <close> = tp.zeros("i32", 1)
    local k = m:kernel "put7"
    local g <close> = tp.capture(function() k:launch(one, b) end)
    k:close()
    m:close()
    collectgarbage()
    g:launch()
    assert.same({ 7 }, b:read())
    assert.equal("put7", g:nodes()[1].name)
  end)

  it("textures that are closed", function()
    local module <close> = tp.load "spec/ptx/graph.ptx"
    local k <close> = module:kernel "texel"
    local o <close> = tp.zeros("f32", 4)
    local b <close> = tp.buffer("f32", { 1, 2, 3, 4 })
    local t = tp.texture(b)
    local g <close> = tp.capture(function()
      k:launch({ grid = 1, block = 4 }, t, o)
    end)
    t:close()
    local other <close> = tp.texture(b)
    g:launch()
    assert.same({ 1.0, 2.0, 3.0, 4.0 }, o:read())
    assert.is_truthy(other)
  end)

  it("variables of modules", function()
    local module = tp.load "spec/ptx/graph.ptx"
    local k = module:kernel "bump"
    local v = module:global "variable"
    local out <close> = tp.zeros(v:dtype(), 1)
    local g <close> = tp.capture(function()
      k:launch(one)
      v:copy_to(out)
    end)
    v:close()
    module:close()
    g:launch()
    g:launch()
    assert.same({ 2 }, out:read())
  end)

  it("streams and events from nothing: they can be closed", function()
    local b <close> = tp.zeros("i32", 1)
    local s, t = tp.Stream(), tp.Stream()
    local e = tp.Event()
    local g <close> = tp.capture(s, function()
      e:record()
      t:wait_event(e)
      gate.run(t, "add", b, 0, 3)
      s:wait_stream(t)
      t:close()
    end)
    s:close()
    e:close()
    g:launch()
    assert.same({ 3 }, b:read())
  end)
end)

describe("a launch of a graph counts as a use:", function()
  -- `act` frees or reuses memory while a launch of the graph is held up.
  local function held_launch(act)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local out <close> = tp.zeros("i32", 64)
    local b = tp.buffer("i32", 64)
    b:fill(5)
    tp.barrier(tp.current_stream(), s, t)
    local held <close> = gate.new()
    local g = tp.capture(function()
      held:hold(tp.current_stream())
      b:copy_to(out)
    end)
    g:launch(s)
    act(b, g, s, t)
    local others = {}
    for i = 1, 8 do
      others[i] = tp.with_stream(t, tp.buffer, "i32", 64)
      tp.with_stream(t, others[i].fill, others[i], 9)
    end
    t:synchronize()
    held:open()
    assert.equal(5, read(s, out)[64])
    for i = 1, 8 do others[i]:close() end
    g:close()
    b:close()
  end

  it("the buffer is closed, then the graph", function()
    held_launch(function(b, g)
      b:close()
      g:close()
    end)
  end)

  it("the graph is closed, then the buffer", function()
    held_launch(function(b, g)
      g:close()
      b:close()
    end)
  end)

  -- Each uses b on a stream: reads it into `out`, or writes what it has already.
  local USES = {
    copy = function(b, out, s) b:copy_to(out, { stream = s }) end,
    launch = function(b, out, s)
      local k <close> = gate.kernel "copy"
      tp.with_stream(s, k.launch, k, wide, b, out, 64)
    end,
    fill = function(b, _, s) tp.with_stream(s, b.fill, b, 5) end,
    write = function(b, _, s) tp.with_stream(s, b.write, b, { 5, 5, 5 }) end,
    graph = function(b, out, s)
      local g <close> = tp.capture(function()
        b:fill(5)
        b:copy_to(out)
      end)
      g:launch(s)
    end,
  }
  local NAMES = { "copy", "launch", "fill", "write", "graph" }

  -- Uses on as many streams as there are names, the first ones held up; then the
  -- memory is closed, and whatever takes its place is filled with something else.
  local function used_and_closed(names)
    local streams, outs, gates = {}, {}, {}
    local b = tp.buffer("i32", 64)
    b:fill(5)
    for i = 1, #names do
      streams[i] = tp.Stream()
      outs[i] = tp.zeros("i32", 64)
    end
    tp.barrier(tp.current_stream(), table.unpack(streams))
    for i, name in ipairs(names) do
      if i < #names then
        gates[i] = gate.new()
        gates[i]:hold(streams[i])
      end
      USES[name](b, outs[i], streams[i])
    end
    b:close()
    local last = streams[#streams]
    for _ = 1, 4 do
      local other <close> = tp.with_stream(last, tp.buffer, "i32", 64)
      tp.with_stream(last, other.fill, other, 9)
    end
    last:synchronize()
    for i = #names - 1, 1, -1 do gates[i]:open() end
    for i, name in ipairs(names) do
      local reads = name ~= "fill" and name ~= "write"
      assert.equal(reads and 5 or 0, read(streams[i], outs[i])[64],
        table.concat(names, ", "))
      streams[i]:close()
      outs[i]:close()
    end
    for i = 1, #names - 1 do gates[i].kernel:close() gates[i].flag:close() end
  end

  it("on two streams, in all pairs with others", function()
    for _, name in ipairs(NAMES) do
      used_and_closed { name, "graph" }
      used_and_closed { "graph", name }
    end
  end)

  it("on three streams, in all triples with others", function()
    for _, x in ipairs(NAMES) do
      for _, y in ipairs(NAMES) do
        used_and_closed { x, y, "graph" }
        used_and_closed { x, "graph", y }
        used_and_closed { "graph", x, y }
      end
    end
  end)

  it("the stream is closed as well", function()
    local s = tp.Stream()
    local out <close> = tp.pinned("i32", 1)
    local held <close> = gate.new()
    local b = tp.buffer("i32", { 3 })
    local g = tp.capture(function()
      held:hold(tp.current_stream())
      b:copy_to(out)
    end)
    g:launch(s)
    local e <close> = s:record_event()
    s:close()
    g:close()
    b:close()
    for _ = 1, 5 do tp.buffer("i32", { 4 }):close() end
    held:open()
    e:synchronize()
    assert.equal(3, out[1])
  end)

  it("what is allocated on one stream may be used on another", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local out <close> = tp.zeros("i32", 1)
    t:wait_stream(tp.current_stream())
    local held <close> = gate.new()
    held:hold(s)
    local b <close> = tp.with_stream(s, tp.buffer, "i32", { 6 })
    local g <close> = tp.capture(function() b:copy_to(out) end)
    g:launch(t)
    assert.is_false(t:synchronize(2))
    held:open()
    assert.same({ 6 }, read(t, out))
  end)

  it("in all orders of closing", function()
    local orders = require "spec.support.closing".orders
    for i = 1, #orders, 7 do
      local b, out = tp.buffer("i32", { i }), tp.pinned("i32", 1)
      local s, e = tp.Stream(), tp.Event()
      local g = tp.capture(s, function() b:copy_to(out) end)
      s:wait_stream(tp.current_stream())
      g:launch(s)
      e:record(s)
      local things = { b, s, g, out:slice(1, 1), e }
      e:synchronize()
      assert.equal(i, out[1])
      g:launch(s)
      for n in orders[i]:gmatch "." do things[tonumber(n)]:close() end
      out:close()
    end
  end)
end)

describe("memory of graphs", function()
  it("does not grow with launches", function()
    local b <close> = tp.zeros("i32", 16)
    local g <close> = tp.capture(function()
      local c <close> = tp.buffer("i32", { 1 })
      c:copy_to(b)
      b:fill(1)
    end)
    for _ = 1, 100 do g:launch() end
    tp.current_stream():synchronize()
    collectgarbage()
    local kept, live = collectgarbage "count", tp.memory_stats().live_bytes
    for _ = 1, 2000 do g:launch() end
    tp.current_stream():synchronize()
    collectgarbage()
    assert.is_true(collectgarbage "count" < kept + 16)
    assert.equal(live, tp.memory_stats().live_bytes)
  end)

  it("is given back with graphs that nobody closes", function()
    local b <close> = tp.zeros("i32", 16)
    tp.current_stream():synchronize()
    local live = tp.memory_stats().live_count
    for _ = 1, 50 do
      tp.capture(function()
        local c <close> = tp.zeros("i32", 16)
        c:copy_to(b)
      end):launch()
    end
    collectgarbage()
    tp.current_stream():synchronize()
    assert.equal(live, tp.memory_stats().live_count)
  end)
end)

describe("under every seed", function()
  it("branches keep to the order that was captured", function()
    if tp.current_device():kind() ~= "sim" then
      pending "the simulated device's"
      return
    end
    local script = [[
local tp = require "tpstream"
local gate = require "spec.support.gate"
local b = tp.zeros("i32", 4)
local s, t, u = tp.Stream(), tp.Stream(), tp.Stream()
local k = gate.kernel "twice"
local g = tp.capture(s, function()
  for i = 0, 3 do gate.run(s, "add", b, i, i + 1) end
  t:wait_stream(s)
  u:wait_stream(s)
  local c = tp.zeros("i32", 4, { stream = u })
  b:copy_to(c, { stream = t })
  u:wait_stream(t)
  tp.with_stream(u, k.launch, k, { grid = 1, block = 4 }, c, 4)
  tp.with_stream(t, b.fill, b:slice(1, 2), 5)
  u:wait_stream(t)
  c:copy_to(b, { first = 2, count = 2, at = 3, stream = u })
  s:wait_stream(t, u)
end)
g:launch(s)
g:launch(t)
tp.current_stream():wait_stream(t)
print(table.concat(b:read(), " "))
]]
    for seed = 1, 8 do
      local r = run.script(script, { env = { TPSTREAM_SIM_SEED = seed } })
      assert.equal(0, r.status, r.stderr)
      assert.equal("5 5 14 14\n", r.stdout)
    end
  end)
end)
