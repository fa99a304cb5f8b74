-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The order check against an independent reference, as spec/check_fuzz_spec.lua, with
-- what is rarer in programs: two devices, the host's own accesses, callbacks, tasks,
-- queries, streams that are closed and made anew, slices of views of another type,
-- rows, kernels, graphs with graphs and conditions in them.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local happens = require "spec.support.happens"
local pair = require "spec.support.pair"

local STREAMS, EVENTS, PARTS, LENGTH = 4, 3, 4, 30
local WIDTH = 2 -- elements of a part
local BRANCHES, GRAPHS = 2, 2
local here, there = pair.devices()

-- Streams 3 and 4, and event 3, are of the other device.
local function home(s) return s <= 2 and here or there end

-- ---- programs ----------------------------------------------------------------

-- `parts` of buffer `b`: 1 is a device's, 2 the host's.
local function access(random, s, near)
  local op = { s = s, b = random(2), kind = random(2) == 1 and "read" or "write" }
  local first = random(PARTS)
  op.first, op.last = first, random(first, PARTS)
  if random(4) == 1 then -- every second one
    op.rows, op.first, op.last = true, random(2), PARTS
  elseif random(3) == 1 then
    op.view = true
  elseif near and op.kind == "write" and random(2) == 1 then
    op.kind = "kernel"
  end
  op.parts = {}
  for part = op.first, op.last, op.rows and 2 or 1 do
    table.insert(op.parts, part)
  end
  return op
end

local function inner(random)
  local s, dice = random(BRANCHES), random(10)
  if dice > 4 then return access(random, s, true) end
  if dice == 1 then return { kind = "follow", s = s, of = random(BRANCHES) } end
  local op = { kind = dice == 2 and "child" or "when", s = s, list = {} }
  op.flag = random(2) - 1
  op.twice = op.kind == "child" and random(2) == 1
  for i = 1, random(2) do
    op.list[i] = access(random, 1, true)
    if op.twice and op.list[i].kind == "read" then -- see moves
      op.list[i].kind = "write"
    end
  end
  return op
end

local KINDS = { "record", "record", "wait", "wait", "wait", "follow", "synchronize",
  "task", "task_event", "query", "callback", "callback", "called", "anew", "barrier" }

local function make(random)
  local list, busy = { graphs = {} }, random(20, 60)
  for g = 1, GRAPHS do
    list.graphs[g] = {}
    for i = 1, random(4) do list.graphs[g][i] = inner(random) end
  end
  for i = 1, LENGTH do
    local s, dice = random(STREAMS), random(100)
    local op
    if dice > busy then
      op = { kind = KINDS[random(#KINDS)], s = s, of = random(STREAMS),
        e = random(EVENTS) }
      if op.kind == "record" then op.s = op.e < 3 and random(2) or random(3, 4) end
    elseif dice % 8 == 0 then
      op = { kind = "graph", s = random(2), g = random(GRAPHS) }
    elseif dice % 8 == 1 then
      local part = random(PARTS)
      op = { kind = random(2) == 1 and "peek" or "poke", b = 2, parts = { part },
        at = (part - 1) * WIDTH + random(WIDTH) }
    else
      op = access(random, s, s <= 2)
    end
    list[i] = op
  end
  return list
end

-- ---- the reference -------------------------------------------------------------

-- By what happened: numbers of operations; negative ones of callbacks that ran. What
-- is in a condition's body counts where it ran, or the device doesn't tell.
local function reference(list, trace)
  local all = happens.new()
  local last, record, called, ended, host = {}, {}, {}, {}, nil
  local function queue(s, after) last[s] = all:node(last[s], host, after) end
  local function touch(node, op)
    for _, part in ipairs(op.parts) do
      all:access(node, op.b * PARTS + part, { line = op.line, b = op.b,
        writes = op.kind ~= "read" and op.kind ~= "peek" })
    end
  end
  local function launch_list(ops, at)
    for _, op in ipairs(ops) do
      if op.kind == "follow" then
        at[op.s] = all:node(at[op.s], at[op.of])
      elseif op.list then
        for s = op.twice and 1 or op.s, op.twice and BRANCHES or op.s do
          local within = { at[s] }
          if op.kind == "child" or op.flag == 1 or here:kind() ~= "sim" then
            launch_list(op.list, within)
          end
          at[s] = within[1]
        end
      else
        at[op.s] = all:node(at[op.s])
        touch(at[op.s], op)
      end
    end
  end
  local does = {}
  function does.record(op)
    queue(op.s)
    record[op.e] = last[op.s]
  end
  function does.wait(op) if record[op.e] then queue(op.s, record[op.e]) end end
  function does.follow(op) if op.s ~= op.of then queue(op.s, last[op.of]) end end
  function does.barrier(op)
    local a, b = last[op.s], last[op.of]
    queue(op.s, b)
    queue(op.of, a)
  end
  function does.synchronize(op) host = all:node(host, last[op.s]) end
  does.task = does.synchronize
  function does.query(op) host = all:node(host, record[op.e]) end
  does.task_event = does.query
  function does.callback(op, i)
    queue(op.s)
    called[i] = last[op.s]
  end
  function does.called() end -- told by the callbacks themselves
  function does.anew(op) last[op.s] = all:node(host) end
  function does.graph(op)
    queue(op.s, ended[op.g])
    local at = {}
    for i = 1, BRANCHES do at[i] = last[op.s] end
    launch_list(list.graphs[op.g], at)
    last[op.s] = all:node(table.unpack(at))
    ended[op.g] = last[op.s]
  end
  function does.peek(op)
    host = all:node(host)
    touch(host, op)
  end
  does.poke = does.peek
  for _, i in ipairs(trace) do
    local op = list[math.abs(i)]
    if i < 0 then
      host = all:node(host, called[-i])
    elseif does[op.kind] then
      does[op.kind](op, i)
    else
      queue(op.s)
      touch(last[op.s], op)
    end
  end
  return all.racy, all.together
end

-- ---- the same for tpstream -------------------------------------------------------

-- Within a capture S are its branches.
local TEXT = {
  record = "E[$e]:record(S[$s])",
  wait = "S[$s]:wait_event(E[$e])",
  follow = "S[$s]:wait_stream(S[$of])",
  barrier = "if $s ~= $of then barrier(S[$s], S[$of]) end",
  synchronize = "S[$s]:synchronize()",
  task = "run(function() await(S[$s]) end)",
  task_event = "run(function() await(E[$e]) end)",
  query = "repeat until E[$e]:query()",
  callback = "callback($i, S[$s])",
  called = "poll()",
  anew = "anew($s)",
  graph = "G[$g]:launch(S[$s])",
  peek = "got = H[$at]",
  poke = "H[$at] = 1",
  write = "a, b, o = put($b, S[$s], $first, $last, $view, $rows) a:copy_to(b, o)",
  kernel = "p = part($b, $first, $last) "
    .. "twice:launch({ grid = 1, block = #p, stream = S[$s] }, p, #p)",
  read = "a, b, o = get($b, S[$s], $first, $last, $view, $rows) a:copy_to(b, o)",
}

local function text_of(list)
  local lines, children = {}, 0
  local function add(...) lines[#lines + 1] = string.format(...) end
  local function add_all(ops, step)
    for i, op in ipairs(ops) do
      op.i, op.line = i, #lines + 1
      op.view, op.rows = op.view or false, op.rows or false
      if op.kind == "child" then
        for s = op.twice and 1 or op.s, op.twice and BRANCHES or op.s do
          add("C[%d]:launch(S[%d])", op.child, s)
        end
      elseif op.list then
        add("when(S[%d], %d, function(s) local S = { s }", op.s, op.flag)
        add_all(op.list)
        add "end)"
      else
        add("%s", (step and "step(" .. i .. ") " or "")
          .. TEXT[op.kind]:gsub("%$(%w+)", function(k) return tostring(op[k]) end))
      end
    end
  end
  for g, ops in ipairs(list.graphs) do
    for _, op in ipairs(ops) do
      if op.kind == "child" then
        children = children + 1
        op.child = children
        add("C[%d] = child(function(s) local S = { s }", children)
        add_all(op.list)
        add "end)"
      end
    end
    add("G[%d] = capture(function(S)", g)
    add_all(ops)
    add "join(S) end)"
  end
  add_all(list, true)
  return table.concat(lines, "\n")
end

-- What programs work on, made once; `kept` is closed at the end.
local function world(keep)
  local w = { S = {}, E = {}, B = {}, bytes = {}, from = {}, branches = {},
    flags = {} }
  for s = 1, STREAMS do w.S[s] = tp.Stream { device = home(s) } end
  for i = 1, BRANCHES do w.branches[i] = keep(tp.Stream { device = here }) end
  local origin = keep(tp.Stream { device = here })
  local function zeros(count)
    return keep(tp.zeros("i32", count, { stream = origin }))
  end
  -- Of different sizes: a report tells which one it is about.
  w.B[1] = zeros(PARTS * WIDTH + 1)
  w.B[2] = keep(tp.pinned("i32", PARTS * WIDTH + 2))
  for b = 1, 2 do w.bytes[b] = keep(w.B[b]:as "i16") end
  w.twice = keep(gate.kernel "twice")
  local size = PARTS * WIDTH
  w.from, w.to = zeros(size), zeros(size * 100)
  w.from_bytes, w.to_bytes = keep(zeros(size):as "i16"), keep(w.to:as "i16")
  for flag = 0, 1 do
    w.flags[flag] = zeros(1)
    tp.with_stream(origin, w.flags[flag].fill, w.flags[flag], flag)
  end
  return w
end

-- What a copy is between, and its options. Its other end is read alone, or is memory
-- that no other copy of the program writes, so nothing else is in need of order.
local function moves(w, keep)
  local used = 0
  local function part_of(b, first, last, view)
    local k = view and 2 or 1
    return keep((view and w.bytes or w.B)[b]:slice((first - 1) * WIDTH * k + 1,
      (last - first + 1) * WIDTH * k))
  end
  local function sink(view)
    used = used + 1
    local size = PARTS * WIDTH * (view and 2 or 1)
    return keep((view and w.to_bytes or w.to):slice((used - 1) * size + 1, size))
  end
  local function options(stream, first, rows, pitch, at)
    if not rows then return { stream = stream } end
    return { stream = stream, rows = PARTS // 2, row_bytes = WIDTH * 4,
      [pitch] = WIDTH * 8, [at] = (first - 1) * WIDTH + 1 }
  end
  local function put(b, stream, first, last, view, rows)
    local to = rows and w.B[b] or part_of(b, first, last, view)
    local from = view and w.from_bytes or w.from
    if not rows then from = keep(from:slice(1, #to)) end
    return from, to, options(stream, first, rows, "to_pitch", "at")
  end
  local function get(b, stream, first, last, view, rows)
    local from = rows and w.B[b] or part_of(b, first, last, view)
    return from, sink(view), options(stream, first, rows, "pitch", "first")
  end
  return put, get, part_of
end

local function run(w, text)
  local made, trace, graphs = {}, {}, {}
  local function keep(x)
    made[#made + 1] = x
    return x
  end
  local names = { S = w.S, E = w.E, H = w.B[2], G = graphs, barrier = tp.barrier,
    C = {}, twice = w.twice, await = tp.await, run = tp.run, poll = tp.poll }
  names.put, names.get, names.part = moves(w, keep)
  function names.step(i) trace[#trace + 1] = i end
  function names.callback(i, s)
    s:on_complete(function() trace[#trace + 1] = -i end)
  end
  function names.anew(s)
    w.S[s]:close()
    w.S[s] = tp.Stream { device = home(s) }
  end
  function names.child(body) return keep(tp.capture(body)) end
  function names.when(s, flag, body)
    tp.with_stream(s, tp.graph_if, w.flags[flag], function()
      body(tp.current_stream())
    end)
  end
  function names.capture(fn)
    local S = w.branches
    return keep(tp.capture(S[1], function()
      for i = 2, BRANCHES do S[i]:wait_stream(S[1]) end
      fn(S)
    end))
  end
  function names.join(S) S[1]:wait_stream(table.unpack(S, 2)) end
  for e = 1, EVENTS do w.E[e] = keep(tp.Event()) end
  local ok, err = pcall(load(text, "=program", "t", names))
  here:synchronize()
  there:synchronize()
  for i = #made, 1, -1 do made[i]:close() end
  assert(ok, ("%s\n%s"):format(err, text))
  return trace
end

local function check(w, text)
  tp.check.start { "order" }
  local ok, trace = pcall(run, w, text)
  local reports, found, together = tp.check.stop(), {}, {}
  assert(ok, trace)
  for _, r in ipairs(reports) do
    found[r.buffer.count - PARTS * WIDTH] = true
    together[#together + 1] = { lines = r.first.line .. " " .. r.second.line,
      text = r.text }
  end
  return trace, found, together
end

-- Judges so many programs; how many races there were.
local function judge(seed, rounds)
  local state, racy, kept = seed, 0, {}
  local function random(a, b)
    if not b then a, b = 1, a end
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return a + (state >> 33) % (b - a + 1)
  end
  local w = world(function(x)
    kept[#kept + 1] = x
    return x
  end)
  here:synchronize()
  for round = 1, rounds do
    local list = make(random)
    local text = text_of(list)
    local trace, found, together = check(w, text)
    local expected, racing = reference(list, trace)
    for _, r in ipairs(together) do
      assert(racing[r.lines], ("program %d: lines %s are in order\n%s\n%s"):format(
        round, r.lines, r.text, text))
    end
    for b = 1, 2 do
      assert(expected[b] == found[b], ("program %d, buffer %d: %s\n%s"):format(round,
        b, expected[b] and "a race is missed" or "a false alarm", text))
      racy = racy + (expected[b] and 1 or 0)
    end
  end
  for s = 1, STREAMS do w.S[s]:close() end
  for i = #kept, 1, -1 do kept[i]:close() end
  return racy
end

describe("random programs of what is rare", function()
  it("are judged as every path from one operation to another says", function()
    local rounds = (os.getenv "TPS_SANITIZE" or "") ~= "" and 60 or 500
    rounds = tonumber(os.getenv "TPS_ROUNDS" or rounds)
    local racy = tp.with_device(here, judge, tonumber(os.getenv "TPS_SEED" or 4711),
      rounds)
    -- Neither answer is the rule.
    assert.is_true(racy > rounds // 4 and racy < 7 * rounds // 4, racy)
  end)
end)
