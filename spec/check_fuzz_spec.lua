-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The order check against an independent reference: random programs of writes, reads,
-- atomic additions, records, waits, waits of the host and launches of graphs with
-- branches, of which the reference knows every path from one operation to another.
local tp = require "tpstream"
local happens = require "spec.support.happens"
local program = require "spec.support.program"

local SOURCE = [=[
extern "C" __global__ void count(int *p) { atomicAdd(p + threadIdx.x, 1); }
]=]

local STREAMS, EVENTS, BUFFERS, PARTS, LENGTH = 5, 3, 2, 4, 24
local GRAPHS, BRANCHES = 2, 3

local function access_of(random, of)
  local op = { s = random(of), b = random(BUFFERS), first = random(PARTS) }
  op.kind = ({ "write", "read", "count" })[random(3)]
  op.last = random(op.first, PARTS)
  return op
end

-- What is captured on branches that begin together and end together.
local function make_graph(random)
  local list = {}
  for i = 1, random(1, 7) do
    list[i] = random(3) > 1 and access_of(random, BRANCHES)
      or { kind = "follow", s = random(BRANCHES), of = random(BRANCHES) }
  end
  list[#list + 1] = access_of(random, BRANCHES)
  return list
end

-- A program: an array of operations, arguments chosen by `random`, and its graphs.
local function make(random)
  local list, busy = { graphs = {} }, random(10, 60)
  for g = 1, GRAPHS do list.graphs[g] = make_graph(random) end
  for i = 1, LENGTH do
    local dice, op = random(50), { s = random(STREAMS) }
    if random(100) <= busy then
      op = access_of(random, STREAMS)
      if dice <= 5 then op = { kind = "graph", s = op.s, g = random(GRAPHS) } end
    elseif dice <= 15 then
      op.kind, op.e = "record", random(EVENTS)
    elseif dice <= 30 then
      op.kind, op.e = "wait", random(EVENTS)
    elseif dice <= 40 then
      op.kind, op.of = "follow", random(STREAMS)
    elseif dice <= 46 then
      op.kind = "synchronize"
    else
      op.kind, op.e = "await", random(EVENTS)
    end
    list[i] = op
  end
  return list
end

-- ---- the reference ---------------------------------------------------------

-- The buffers with a race, and all pairs of lines that race. With `legacy` stream 1
-- is the legacy one, and 2 and 3 are blocking.
local function reference(list, legacy)
  local all = happens.new()
  local last, record, host = {}, {}, nil
  local function node(...) return all:node(...) end
  local function joined(s)
    if not legacy or s > 3 then return nil end
    if s == 1 then return node(last[2], last[3]) end
    return last[1]
  end
  -- Something is queued on a stream.
  local function queue(s, after) last[s] = node(last[s], joined(s), host, after) end
  local function access(op, at)
    if at == last then queue(op.s) else at[op.s] = node(at[op.s], host) end
    for part = op.first, op.last do
      all:access(at[op.s], (op.b - 1) * PARTS + part, { writes = op.kind ~= "read",
        atomic = op.kind == "count", line = op.line, b = op.b })
    end
  end
  -- Launches of one graph come one after the other.
  local ended = {}
  local function launch(op)
    queue(op.s, ended[op.g])
    local begin, at = last[op.s], {}
    for i = 1, BRANCHES do at[i] = begin end
    for _, inner in ipairs(list.graphs[op.g]) do
      if inner.kind == "follow" then
        at[inner.s] = node(at[inner.s], at[inner.of])
      else
        access(inner, at)
      end
    end
    last[op.s] = node(begin, table.unpack(at))
    ended[op.g] = last[op.s]
  end
  for _, op in ipairs(list) do
    local kind = op.kind
    if op.b then access(op, last)
    elseif kind == "graph" then launch(op)
    elseif kind == "record" then
      queue(op.s)
      record[op.e] = last[op.s]
    elseif kind == "wait" then
      if record[op.e] then queue(op.s, record[op.e]) end
    elseif kind == "follow" then
      if op.s ~= op.of then
        queue(op.of)
        queue(op.s, last[op.of])
      end
    elseif kind == "synchronize" then
      host = node(host, last[op.s], op.s == 1 and joined(1) or nil)
    else host = node(host, record[op.e])
    end
  end
  return all.racy, all.together
end

-- ---- the same for tpstream ---------------------------------------------------

local streams, events, buffers, sinks, count = {}, {}, {}, {}, nil
local branches, spare = {}, {} -- for captures; where their copies go

-- Lua for each kind of operation, a line each. $x is field x. Within a capture S are
-- its branches.
local TEXT = {
  write = "on(S[$s], function(b) b:fill(1) end, cut($b, $first, $last))",
  read = "cut($b, $first, $last):copy_to(T[$s], { stream = S[$s] })",
  graph = "G[$g]:launch(S[$s])",
  count = "count:launch({ grid = 1, block = 1 + $last - $first, stream = S[$s] }, "
    .. "cut($b, $first, $last))",
  record = "E[$e]:record(S[$s])",
  wait = "S[$s]:wait_event(E[$e])",
  follow = "S[$s]:wait_stream(S[$of])",
  synchronize = "S[$s]:synchronize()",
  await = "E[$e]:synchronize()",
}

-- Each operation is then told its line.
local function text_of(list)
  local lines = {}
  local function add_all(ops)
    for _, op in ipairs(ops) do
      lines[#lines + 1] = TEXT[op.kind]:gsub("%$(%w+)", op)
      op.line = #lines
    end
  end
  for g, ops in ipairs(list.graphs) do
    lines[#lines + 1] = ("G[%d] = capture(%d, function(S, T) fork(S)"):format(g, g)
    add_all(ops)
    lines[#lines + 1] = "join(S) end)"
  end
  add_all(list)
  return table.concat(lines, "\n")
end

local function run(text)
  local parts, graphs = {}, {}
  local names = {
    S = streams, E = events, T = sinks, on = tp.with_stream, count = count,
    cut = function(b, first, last)
      parts[#parts + 1] = buffers[b]:slice(first, last - first + 1)
      return parts[#parts]
    end,
    G = graphs,
    capture = function(g, fn)
      return tp.capture(branches[1], fn, branches, spare[g])
    end,
    fork = function(s) for i = 2, BRANCHES do s[i]:wait_stream(s[1]) end end,
    join = function(s) s[1]:wait_stream(table.unpack(s, 2)) end,
  }
  for i = 1, EVENTS do events[i] = tp.Event() end
  local ok, err = pcall(load(text, "=program", "t", names))
  for _, list in ipairs { events, parts, graphs } do
    for i = 1, #list do list[i]:close() end
  end
  assert(ok, err)
end

-- The buffers with a report, by number, and the pairs of lines.
local function check(text)
  tp.check.start { "order" }
  local ok, err = pcall(run, text)
  local reports, found, together = tp.check.stop(), {}, {}
  assert(ok, err)
  for _, r in ipairs(reports) do
    found[r.buffer.count - PARTS] = true
    together[#together + 1] = r.first.line .. " " .. r.second.line
  end
  return found, together
end

-- Each with its own; what it makes it closes.
local function judge(seed, legacy)
  local state = seed
  local function random(a, b)
    if not b then a, b = 1, a end
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return a + (state >> 33) % (b - a + 1)
  end
  local made = {}
  local function keep(x)
    made[#made + 1] = x
    return x
  end
  local home = keep(tp.Stream())
  local function zeros(n) return keep(tp.zeros("i32", n, { stream = home })) end
  for i = 1, STREAMS do
    streams[i] = legacy and i == 1 and tp.default_stream()
      or keep(tp.Stream { blocking = legacy and i <= 3 })
    sinks[i] = zeros(100)
  end
  for i = 1, BRANCHES do branches[i] = keep(tp.Stream()) end
  for g = 1, GRAPHS do
    spare[g] = {}
    for i = 1, BRANCHES do spare[g][i] = zeros(100) end
  end
  local module = keep(program("check_fuzz", SOURCE))
  count = keep(module:kernel "count")
  -- Of different sizes: a report tells which one it is about.
  for i = 1, BUFFERS do buffers[i] = zeros(PARTS + i) end
  tp.device():synchronize()
  local racy, rounds = 0, (os.getenv "TPS_SANITIZE" or "") ~= "" and 200 or 2000
  for round = 1, rounds do
    local list = make(random)
    local text = text_of(list)
    local expected, racing = reference(list, legacy)
    local found, together = check(text)
    for b = 1, BUFFERS do
      assert(expected[b] == found[b], ("program %d, buffer %d: %s\n%s"):format(round,
        b, expected[b] and "a race is missed" or "a false alarm", text))
      racy = racy + (expected[b] and 1 or 0)
    end
    for _, lines in ipairs(together) do
      assert(racing[lines], ("program %d: lines %s are in order\n%s"):format(round,
        lines, text))
    end
  end
  for i = #made, 1, -1 do made[i]:close() end
  -- Neither answer is the rule.
  assert.is_true(racy > rounds // 4 and racy < 7 * rounds // 4, racy)
end

describe("random programs", function()
  it("are judged as every path from one operation to another says", function()
    judge(12345, false)
  end)

  it("with the legacy stream and blocking ones", function() judge(54321, true) end)
end)
