-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What tp.await waits for: who waits for the same work of a stream, or the same
-- record of an event, waits together; what is done is not waited for.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local numbers = require "spec.support.numbers"
local run = require "spec.support.run"

local function close(g) getmetatable(g).__close(g) end

-- Steps until so many entries are in the log.
local function poll_until(log, count)
  local deadline = os.time() + 60
  while #log < count do
    tp.poll()
    assert(os.time() < deadline, "nothing is due")
  end
end

-- Three times work is held up on the stream and two tasks await `what`, the stream
-- or an event recorded behind that work: each pair goes on with its own work's end.
local function each_in_its_time(s, what)
  local gates, log = {}, {}
  for i = 1, 3 do
    gates[i] = gate.new()
    gates[i]:hold(s)
    if what ~= s then what:record(s) end
    for k = 1, 2 do
      tp.spawn(function()
        tp.await(what)
        log[#log + 1] = i * 10 + k
      end)
    end
    tp.poll()
  end
  for i = 1, 3 do
    assert.equal(2 * i - 2, #log)
    gates[i]:open()
    poll_until(log, 2 * i)
    tp.poll()
  end
  assert.same({ 11, 12, 21, 22, 31, 32 }, log)
  for i = 1, 3 do close(gates[i]) end
  tp.run()
end

describe("tasks that wait for the same stream", function()
  it("go on together, in the order in which they came", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    local log, expected = {}, {}
    g:hold(s)
    for i = 1, 40 do
      expected[i] = i
      tp.spawn(function()
        if i % 4 == 0 then tp.await_all(s) else tp.await(s) end
        assert.is_true(s:query())
        log[#log + 1] = i
      end)
    end
    assert.equal(40, tp.poll())
    tp.poll()
    assert.same({}, log)
    g:open()
    tp.run()
    assert.same(expected, log)
  end)

  it("wait for the work of their own time", function()
    local s <close> = tp.Stream()
    each_in_its_time(s, s)
  end)

  it("wait for what was queued through its handle, too", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    local n = 0
    local function wait() tp.await(s) n = n + 1 end
    assert.is_true(s:handle() ~= 0)
    g:hold(s)
    for _ = 1, 3 do tp.spawn(wait) end
    tp.poll()
    assert.equal(0, n)
    g:open()
    tp.run()
    assert.equal(3, n)
  end)

  it("leave the others alone when they are cancelled", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    local tasks, n = {}, 0
    g:hold(s)
    for i = 1, 6 do
      tasks[i] = tp.spawn(function()
        if i > 3 then tp.await(s) else tp.await_any(s) end
        n = n + 1
      end)
    end
    tp.poll()
    for i = 1, 6, 2 do assert.is_true(tasks[i]:cancel()) end
    g:open()
    tp.run()
    assert.equal(3, n)
    assert.equal("cancelled", tasks[5]:status())
    assert.equal("done", tasks[6]:status())
  end)

  it("and are all cancelled leave nothing to wait for", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local a, b = tp.spawn(tp.await, s), tp.spawn(tp.await, s)
    tp.poll()
    assert.is_true(a:cancel() and b:cancel())
    tp.run()
    local c = tp.spawn(tp.await, s) -- finds the wait that goes on
    tp.poll()
    assert.equal("waiting", c:status())
    g:open()
    tp.run()
    assert.equal("done", c:status())
  end)

  it("with limits of time, again and again, leave nothing behind", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local g <close> = gate.new()
    g:hold(s)
    e:record(s)
    local log = {}
    local function patient(i)
      return tp.spawn(function()
        if i % 2 == 0 then tp.await(s) else tp.await_all(s, s) end
        log[#log + 1] = i
      end)
    end
    tp.run(function()
      local all = {}
      for i = 1, 300 do
        all[i] = patient(i)
        if i % 3 == 0 then
          coroutine.yield()
          all[i - 1]:cancel()
        end
      end
      collectgarbage()
      local before = collectgarbage "count"
      for i = 1, 3000 do
        local limit <close> = tp.spawn(tp.sleep, 0)
        assert.equal(1, (tp.await_any(limit, i % 2 == 0 and s or e)))
        local _ <close> = tp.spawn(tp.await, i % 2 == 0 and e or s)
        coroutine.yield()
      end
      collectgarbage()
      collectgarbage()
      assert.is_true(collectgarbage "count" < before + 1000)
      g:open()
    end)
    for i = 1, 100 do
      assert.equal(3 * i - 2, log[2 * i - 1])
      assert.equal(3 * i, log[2 * i])
    end
    assert.equal(200, #log)
  end)
end)

describe("tasks that wait for one place after another", function()
  -- Gates on two streams, each with some work, and tasks that wait for that in some
  -- way; some are cancelled; the gates open in the order in which they stand.
  local function round(g, streams, log)
    local gates, tasks, expected = {}, {}, {}
    for i = 1, 12 do
      local s = streams[g.int(1, 2)]
      gates[i] = gate.new()
      gates[i]:hold(s)
      for _ = 1, g.int(1, 3) do
        local how, called = g.int(1, 4), true
        if g.int(1, 3) == 1 then
          called = false
          s:on_complete(function() called = true end)
        end
        local n = #tasks + 1
        tasks[n] = tp.spawn(function()
          if how == 1 then tp.await_any(s)
          elseif how == 2 then tp.await_all(s, s)
          else tp.await(s) end
          assert(called and gates[i].flag[1] == 1)
          log[#log + 1] = n
        end)
        if g.int(1, 3) > 1 then tp.poll() end
        expected[n] = true
      end
    end
    tp.poll()
    for n, task in ipairs(tasks) do
      if g.int(1, 6) == 1 and task:cancel() then expected[n] = nil end
    end
    for i = 1, 12 do
      gates[i]:open()
      if g.int(1, 2) == 1 then tp.poll() end
    end
    tp.run()
    for i = 1, 12 do close(gates[i]) end
    return expected
  end

  it("all go on, each behind its own work", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g = numbers.generator(11)
    for _ = 1, os.getenv "TPSTREAM_GC_STRESS" and 1 or 8 do
      local log, seen = {}, {}
      local expected = round(g, { s, t }, log)
      for _, n in ipairs(log) do
        assert.is_nil(seen[n])
        seen[n] = true
      end
      assert.same(expected, seen)
    end
  end)

  it("wait no longer than for their work, whatever stands behind it", function()
    local s <close> = tp.Stream()
    local gates, log = {}, {}
    for i = 1, 6 do
      gates[i] = gate.new()
      gates[i]:hold(s)
      tp.spawn(function()
        tp.await(s)
        log[#log + 1] = i
        if gates[i + 1] then gates[i + 1]:open() end
      end)
      tp.poll()
    end
    gates[1]:open()
    tp.run()
    assert.same({ 1, 2, 3, 4, 5, 6 }, log)
    for i = 1, 6 do close(gates[i]) end
  end)
end)

describe("tasks that wait for the same event", function()
  it("wait for the record of their own time", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    each_in_its_time(s, e)
  end)

  it("go on though it is closed meanwhile", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local e, n = s:record_event(), 0
    for _ = 1, 3 do
      tp.spawn(function() tp.await(e) n = n + 1 end)
    end
    tp.poll()
    e:close()
    collectgarbage()
    g:open()
    tp.run()
    assert.equal(3, n)
  end)
end)

describe("awaiting what is done", function()
  it("lets the others have their turn", function()
    local s <close> = tp.Stream()
    local e <close> = s:record_event()
    s:synchronize()
    for _, x in ipairs { s, e } do
      local log = {}
      local function note(what) log[#log + 1] = what end
      tp.spawn(function()
        tp.await(x)
        note "waited"
      end)
      tp.spawn(note, "other")
      tp.run()
      assert.same({ "other", "waited" }, log)
    end
  end)

  it("comes after the callbacks of before", function()
    local s <close> = tp.Stream()
    for _, wait in ipairs { tp.await, tp.await_any, tp.await_all } do
      local called = 0
      tp.run(function()
        for i = 1, 20 do
          s:on_complete(function() called = called + 1 end)
          while i % 2 == 0 and not s:query() do end
          wait(s)
          assert.equal(i, called)
        end
      end)
    end
  end)

  it("is refused as ever where it is closed or captured", function()
    local s, e = tp.Stream(), tp.Event()
    e:record(s)
    s:close()
    e:close()
    tp.run(function()
      for what, x in pairs { stream = s, event = e } do
        local ok, message = pcall(tp.await, x)
        assert.is_false(ok)
        assert.matches("attempt to use a closed " .. what, message)
      end
    end)
  end)
end)

describe("a sleep of no time", function()
  it("is a turn of the others", function()
    local log = {}
    for i = 1, 3 do
      tp.spawn(function()
        for k = 1, 2 do
          log[#log + 1] = k * 10 + i
          tp.sleep(k == 1 and 0 or 0.0)
        end
      end)
    end
    tp.run()
    assert.same({ 11, 12, 13, 21, 22, 23 }, log)
  end)
end)

describe("a fault #fault", function()
  it("is told each who waits together, for a place of its own", function()
    local r = run.script [[
local tp = require "tpstream"
local m = require "spec.support.program"("bad",
  'extern "C" __global__ void bad(int *p) { *p = 1; }')
local gate = require "spec.support.gate"
local k = m:kernel "bad"
local s = tp.Stream()
local g = gate.new()
g:hold(s)
k:launch({ grid = 1, block = 1, stream = s }, nil)
local lines = {}
local function note(ok, object)
  lines[#lines + 1] = ok and "?" or tostring(object):match ":(%d+): "
end
tp.spawn(function()
  note(pcall(function()
    tp.await(s)
  end))
end)
tp.spawn(function()
  note(pcall(function()
    tp.await_any(s)
  end))
end)
local cancelled = tp.spawn(tp.await, s)
tp.poll()
cancelled:cancel()
g:open()
tp.run(function()
  while #lines < 2 do coroutine.yield() end
end)
print(table.concat(lines, " "), tp.poll())
os.exit(0, false)
]]
    assert.matches("^16 21\t0\n", r.stdout, r.stderr)
  end)

  it("is told those, too, whose turn to be told has not come", function()
    local r = run.script [[
local tp = require "tpstream"
local m = require "spec.support.program"("bad",
  'extern "C" __global__ void bad(int *p) { *p = 1; }')
local gate = require "spec.support.gate"
local k = m:kernel "bad"
local s = tp.Stream()
local first, second, told = gate.new(), gate.new(), {}
for i = 1, 6 do
  if i == 1 then first:hold(s) end
  if i == 3 then
    second:hold(s)
    k:launch({ grid = 1, block = 1, stream = s }, nil)
  end
  gate.run(s, "empty")
  tp.spawn(function() told[i] = pcall(tp.await, s) end)
  tp.poll()
end
first:open()
while #told < 2 do tp.poll() end
second:open()
tp.run()
for i = 1, 6 do io.write(tostring(told[i]), " ") end
print(tp.poll())
os.exit(0, false)
]]
    assert.equal("true true false false false false 0\n", r.stdout, r.stderr)
  end)
end)

describe("tasks that wait for the same task", function()
  local N = 12000

  it("leave it when they are cancelled, however many; the rest is told in order",
    function()
      local told, list = {}, {}
      local began = os.clock()
      tp.run(function()
        local last = tp.spawn(function() tp.sleep(5) return 7 end)
        for i = 1, N do
          list[i] = tp.spawn(function()
            local value = tp.await(last)
            told[#told + 1] = i * value
          end)
        end
        tp.sleep(0)
        for i = 1, N do
          if i % 1000 ~= 0 then list[i]:cancel() end
        end
      end)
      local took = os.clock() - began
      assert.equal(N // 1000, #told)
      for i, value in ipairs(told) do assert.equal(7000 * i, value) end
      assert.is_true(took < 20, took)
    end)
end)
