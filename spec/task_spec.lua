-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Tasks.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local pair = require "spec.support.pair"
local run = require "spec.support.run"

-- What pcall(fn, ...) raises.
local function raised(fn, ...)
  local ok, object = pcall(fn, ...)
  assert.is_false(ok)
  return object
end

describe("tp.run", function()
  it("passes on arguments and results, nils included", function()
    local r = table.pack(tp.run(function(...)
      return select("#", ...), ..., nil
    end, 1, nil, 3, nil))
    assert.same({ n = 3, 4, 1, nil }, r)
    r = table.pack(tp.run(function(...) return ... end, nil, 2, nil))
    assert.same({ n = 3, nil, 2, nil }, r)
    assert.equal(0, select("#", tp.run(function() end)))
  end)

  it("without a function drives what was spawned until all have ended",
    function()
      local log = {}
      for i = 1, 3 do
        tp.spawn(function()
          for _ = 1, i do coroutine.yield() end
          log[#log + 1] = i
        end)
      end
      assert.equal(0, #log) -- none has begun
      tp.run()
      assert.same({ 1, 2, 3 }, log)
      tp.run() -- none is left
    end)

  it("lets tasks take turns", function()
    local log = {}
    local function task(name)
      for i = 1, 3 do
        log[#log + 1] = name .. i
        coroutine.yield "ignored"
      end
    end
    tp.spawn(task, "a")
    tp.spawn(task, "b")
    tp.run()
    assert.equal("a1 b1 a2 b2 a3 b3", table.concat(log, " "))
  end)

  it("takes anything callable and refuses the rest", function()
    local callable = setmetatable({}, { __call = function(_, x) return x end })
    assert.equal(5, tp.run(callable, 5))
    for _, fn in ipairs { tp.run, tp.spawn } do
      for _, bad in ipairs { 1, "x", {}, tp.default_stream() } do
        local message = raised(fn, bad)
        assert.matches("^spec/task_spec.lua:%d+: bad argument #1 to '%w+' "
          .. "%(function expected, got ", message)
      end
    end
    assert.matches("got nil", raised(tp.spawn))
  end)

  it("is refused inside a task, a callback and itself", function()
    assert.matches("^spec/task_spec.lua:%d+: tp.run inside a task",
      raised(tp.run, function() tp.run(print) end))
    local s <close> = tp.Stream()
    local message
    s:on_complete(function() message = raised(tp.run, print) end)
    tp.run(function() tp.await(s) end)
    assert.matches("tp.run inside a callback", message)
    message = nil
    s:on_complete(function() message = raised(tp.run, tp.await, s) end)
    s:synchronize() -- would never end
    assert.matches("tp.run inside a callback", message)
  end)

  it("that fails in a coroutine leaves tasks to the next", function()
    for _, drive in ipairs { tp.run, tp.poll } do
      local co = coroutine.create(function()
        tp.spawn(error, "no")
        drive()
      end)
      assert.same({ false, "no" }, { coroutine.resume(co) })
      assert.equal("fine", tp.run(function() return "fine" end))
    end
  end)

  it("works inside a coroutine", function()
    local co = coroutine.wrap(function()
      return tp.run(function()
        tp.sleep(1)
        return "inside"
      end)
    end)
    assert.equal("inside", co())
  end)
end)

describe("tp.await", function()
  it("waits for a stream while others run", function()
    local s <close> = tp.Stream()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local g <close> = gate.new()
    local log = {}
    g:hold(s)
    gate.run(s, "put", out, 0, 7)
    tp.spawn(function()
      local n = select("#", tp.await(s))
      log[#log + 1] = n
      log[#log + 1] = "waited"
      assert.is_true(s:query())
    end)
    tp.spawn(function()
      for _ = 1, 5 do coroutine.yield() end
      log[#log + 1] = "other"
      g:open()
    end)
    tp.run()
    assert.same({ "other", 0, "waited" }, log)
    assert.same({ 7 }, out:read())
  end)

  it("waits for an event, not for what comes after", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local before <close> = gate.new()
    local after <close> = gate.new()
    before:hold(s)
    e:record(s)
    after:hold(s)
    tp.run(function()
      tp.spawn(function() before:open() end)
      tp.await(e)
      assert.is_true(e:query())
      assert.is_false(s:query())
      after:open()
    end)
  end)

  it("waits for events in whatever order they are asked for", function()
    local s <close> = tp.Stream()
    local gates, events, log = {}, {}, {}
    for i = 1, 4 do
      gates[i] = gate.new()
      gates[i]:hold(s)
      events[i] = s:record_event()
    end
    local last <close> = gate.new()
    last:hold(s)
    for _, i in ipairs { 3, 1, 4, 2 } do
      tp.spawn(function()
        tp.await(events[i])
        log[#log + 1] = i
        if i == 4 then return end
        assert.is_false(events[i + 1]:query())
        gates[i + 1]:open()
      end)
    end
    gates[1]:open()
    tp.run()
    assert.same({ 1, 2, 3, 4 }, log)
    last:open()
    s:synchronize()
    for i = 1, 4 do
      events[i]:close()
      getmetatable(gates[i]).__close(gates[i])
    end
  end)

  it("returns at once for an event never recorded, unless strict", function()
    local e <close> = tp.Event()
    tp.run(tp.await, e)
    local before = tp.strict(true)
    local message = raised(tp.run, tp.await, e)
    tp.strict(before)
    assert.matches("never recorded", message)
  end)

  it("waits for a task and gives its results", function()
    tp.run(function()
      local t = tp.spawn(function() tp.sleep(1) return 1, nil, 3, nil end)
      assert.same({ n = 4, 1, nil, 3, nil }, table.pack(tp.await(t)))
      assert.same({ n = 4, 1, nil, 3, nil }, table.pack(tp.await(t))) -- again
      local u = tp.spawn(function() end)
      local n = 0
      for _ = 1, 3 do
        tp.spawn(function() n = n + 1 - select("#", tp.await(u)) end)
      end
      tp.await(u)
      coroutine.yield()
      assert.equal(3, n)
    end)
  end)

  it("is refused outside tasks and where it can't wait", function()
    local s <close> = tp.Stream()
    local outside = "^spec/task_spec.lua:%d+: tp.%w+ outside a task"
    assert.matches(outside, raised(function() tp.await(s) end))
    assert.matches(outside, raised(function() tp.sleep(1) end))
    assert.matches("outside a task", raised(tp.await_any, s))
    assert.matches("outside a task", raised(tp.await_all, s))
    assert.matches("outside a task",
      raised(coroutine.wrap(function() tp.await(s) end)))
    tp.run(function()
      local co = coroutine.wrap(function() tp.await(s) end)
      assert.matches("tp.await in a coroutine that is not the task's own",
        raised(co))
      local message
      s:on_complete(function() message = raised(tp.await, s) end)
      s:synchronize()
      assert.matches("tp.await can't wait inside a callback", message)
      table.sort({ 1, 2 }, function()
        message = raised(tp.sleep, 0)
        return false
      end)
      assert.matches("tp.sleep can't wait inside", message)
      tp.await(s) -- still can
    end)
  end)

  it("is refused for what can't be awaited", function()
    tp.run(function()
      for _, bad in ipairs { 1, "x", {}, print, tp.current_device() } do
        local message = raised(function() tp.await(bad) end)
        assert.matches("^spec/task_spec.lua:%d+: bad argument #1 to 'await' "
          .. "%(awaitable expected, got ", message)
      end
      assert.matches("got nil", raised(tp.await))
      assert.matches("bad argument #2 to 'await_any'",
        raised(tp.await_any, tp.default_stream(), 1))
      assert.matches("bad argument #1 to 'await_any'", raised(tp.await_any))
      local s, e = tp.Stream(), tp.Event()
      s:close()
      e:close()
      assert.matches("closed stream", raised(tp.await, s))
      assert.matches("closed event", raised(tp.await, e))
      assert.matches("closed event",
        raised(tp.await_all, tp.default_stream(), e))
    end)
  end)

  it("waits for what others have made awaitable", function()
    local told = {}
    local function waiter(stop)
      return setmetatable({}, {
        __await = function(self, done)
          told[#told + 1] = done
          return stop and function() stop(self) end
        end,
      })
    end
    local x, stopped = waiter(), nil
    local y = waiter(function(self) stopped = self end)
    local t = tp.spawn(tp.await, x)
    local u = tp.spawn(tp.await_any, x, y)
    tp.poll()
    assert.equal(3, #told)
    assert.equal("waiting", t:status())
    assert.is_true(told[1](true, "a", "b"))
    assert.is_false(told[1](true, "late"))
    told[2](true, nil, "c")
    assert.equal(y, stopped)
    assert.is_false(told[3](true)) -- abandoned
    assert.equal(2, tp.poll())
    tp.run(function()
      assert.same({ "a", "b" }, { tp.await(t) })
      assert.same({ n = 3, 1, nil, "c" }, table.pack(tp.await(u)))
      local now = setmetatable({}, {
        __await = function(_, done) done(false, told) end,
      })
      assert.equal(told, raised(tp.await, now))
    end)
  end)
end)

describe("tp.await_any and tp.await_all", function()
  it("wait for the first, or for all", function()
    local a <close> = tp.Stream()
    local b <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(a)
    tp.run(function()
      assert.same({ n = 1, 2 }, table.pack(tp.await_any(a, b)))
      assert.is_false(a:query())
      local t = tp.spawn(function() g:open() return "t", 2 end)
      assert.same({ n = 3, nil, "t", nil },
        table.pack(tp.await_all(a, t, b)))
      assert.is_true(a:query())
      assert.same({ n = 3, 1, "t", 2 }, table.pack(tp.await_any(t, a)))
      assert.equal(0, select("#", tp.await_all()))
    end)
  end)

  it("raise the first error, unchanged, and wait no longer", function()
    local object = {}
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    tp.run(function()
      for _, wait in ipairs { tp.await_any, tp.await_all } do
        local t = tp.spawn(function() tp.sleep(1) error(object) end)
        assert.equal(object, raised(wait, s, t))
        assert.is_false(s:query())
        assert.equal(object, raised(wait, t, s)) -- has ended already
      end
    end)
  end)

  it("make warnings of what fails after that, here or later", function()
    local r = run.script [[
local tp = require "tpstream"
warn "@on"
local function failing(text, ms)
  return tp.spawn(function() tp.sleep(ms) error(text, 0) end)
end
tp.run(function()
  print(pcall(tp.await_all, failing("a", 0), failing("b", 0), failing("c", 1)))
  tp.sleep(2)
  print(pcall(tp.await_any, failing("d", 0), failing("d", 0), failing("e", 0)))
  tp.sleep(1)
  local f = failing("f", 1)
  print(pcall(tp.await_all, failing("g", 0), f))
  print(pcall(tp.await, f)) -- who waits for it is told it
  print(tp.await_any(tp.current_stream(), failing("h", 1))) -- nothing failed
  tp.sleep(5)
end)]]
    assert.equal("false\ta\nfalse\td\nfalse\tg\nfalse\tf\n1\n", r.stdout)
    local b, c, e, h = r.stderr:match("^Lua warning: (.-)\nLua warning: (.-)\n"
      .. "Lua warning: (.-)\n(.*)$")
    assert.equal("tpstream: error in a task: b", b)
    assert.equal("tpstream: error in a task: c", c)
    assert.equal("tpstream: error in a task: e", e)
    assert.matches("^[^\n]*: h\n", h)
    assert.equal(1, r.status)
  end)

  it("refuse what is closed, though another has ended the wait", function()
    local s <close> = tp.Stream()
    local closed, e = tp.Stream(), tp.Event()
    closed:close()
    e:close()
    tp.run(function()
      for _, wait in ipairs { tp.await_any, tp.await_all } do
        assert.matches("task_spec.lua:%d+: attempt to use a closed stream$",
          raised(function() wait(s, closed) return nil end))
        assert.matches("task_spec.lua:%d+: attempt to use a closed event$",
          raised(function() wait(s, e) return nil end))
      end
    end)
  end)

  it("leave alone who else waits for the same task", function()
    tp.run(function()
      local t = tp.spawn(function() tp.sleep(1) return 5 end)
      local all = {}
      for i = 1, 6 do
        all[i] = tp.spawn(i % 2 == 1 and tp.await_any or tp.await, t, t)
      end
      tp.await_all(table.unpack(all))
      assert.same({ 1, 5 }, { tp.await(all[5]) })
      assert.equal(5, tp.await(all[6]))
    end)
  end)

  it("take the same task twice, failed too", function()
    tp.run(function()
      for _, wait in ipairs { tp.await_any, tp.await_all } do
        local t = tp.spawn(function() tp.sleep(1) error("no", 0) end)
        assert.equal("no", raised(wait, t, t))
      end
    end)
  end)

  it("serve as a limit of time", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    tp.run(function()
      local limit <close> = tp.spawn(tp.sleep, 5)
      assert.equal(2, (tp.await_any(s, limit)))
      g:open()
      local long <close> = tp.spawn(tp.sleep, 1e9)
      assert.equal(1, (tp.await_any(s, long)))
    end) -- and tp.run ends, although the long one has not
  end)
end)

describe("tp.sleep", function()
  it("wakes tasks in the order of their times", function()
    local log = {}
    for i, ms in ipairs { 30, 10, 20, 0, 10.5 } do
      tp.spawn(function()
        tp.sleep(ms)
        log[#log + 1] = i
      end)
    end
    tp.run()
    assert.equal("4 2 5 3 1", table.concat(log, " "))
  end)

  it("that was cancelled leaves nothing, and the others in order", function()
    local weak = setmetatable({}, { __mode = "k" })
    tp.run(function()
      local near <close> = tp.spawn(tp.sleep, 1e8)
      for _ = 1, 1000 do
        local limit <close> = tp.spawn(tp.sleep, 1e9)
        weak[limit] = true
        coroutine.yield()
      end
      collectgarbage()
      local left = 0
      for _ in pairs(weak) do left = left + 1 end
      assert.is_true(left < 200, left)
      assert.equal("waiting", near:status())
    end)
    local woken, tasks, seed = {}, {}, 1
    tp.run(function()
      for i = 1, 1000 do
        seed = seed * 1103515245 + 12345 & 0x7fffffff
        local ms = seed // 7 % 4 * 150 + 10
        tasks[i] = tp.spawn(function()
          tp.sleep(ms)
          woken[#woken + 1] = ms
        end)
      end
      coroutine.yield()
      for i = 1, 1000 do
        if i % 10 > 1 then assert.is_true(tasks[i]:cancel()) end
      end
    end)
    assert.equal(200, #woken)
    for i = 2, #woken do assert.is_true(woken[i - 1] <= woken[i]) end
  end)

  it("sleeps no less than asked for, many at once", function()
    local n, seed = 0, 1
    for _ = 1, 500 do
      seed = seed * 1103515245 + 12345 & 0x7fffffff
      local ms = seed % 1000 / 50
      tp.spawn(function()
        local timer = os.clock()
        tp.sleep(ms)
        n = n + 1
        assert.is_true(os.clock() >= timer)
      end)
    end
    tp.run()
    assert.equal(500, n)
  end)

  it("refuses what is no time", function()
    tp.run(function()
      for _, bad in ipairs { -1, 0 / 0, "1", {} } do
        assert.matches("^spec/task_spec.lua:%d+: bad argument #1 to 'sleep'",
          raised(function() tp.sleep(bad) end))
      end
    end)
  end)
end)

describe("a task", function()
  it("inherits the stream current when it is spawned", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local seen = {}
    local task = tp.with_stream(s, tp.spawn, function()
      seen[1] = tp.current_stream()
      coroutine.yield()
      seen[2] = tp.current_stream()
      tp.set_stream(t)
      coroutine.yield()
      seen[3] = tp.current_stream()
      tp.with_stream(s, function()
        tp.sleep(1)
        seen[4] = tp.current_stream()
      end)
      seen[5] = tp.current_stream()
      tp.await(tp.spawn(function() seen[6] = tp.current_stream() end))
    end)
    tp.with_stream(t, tp.run)
    assert.equal("done", task:status())
    for i, expected in ipairs { s, s, t, s, t, t } do
      assert.equal(expected, seen[i])
    end
    assert.equal(tp.default_stream(), tp.current_stream())
  end)

  it("inherits the stream of every device, and the device", function()
    local here, there = pair.devices()
    local s <close> = tp.Stream(here)
    local t <close> = tp.Stream(there)
    local other <close> = tp.Stream(there)
    local third <close> = tp.Stream(here)
    local function see() -- what is current
      return tp.current_device(), tp.current_stream(),
        tp.current_stream(here), tp.current_stream(there)
    end
    local seen = {}
    local function task(name)
      seen[name] = { see() }
      coroutine.yield()
      seen[name .. "_later"] = { see() }
      seen[name .. "_generator"] = { coroutine.wrap(see)() }
      tp.await(tp.spawn(function() seen[name .. "_child"] = { see() } end))
    end
    tp.with_stream(s, tp.with_stream, t, tp.spawn, task, "both")
    tp.with_device(here, tp.with_stream, nil, tp.spawn, task, "none")
    coroutine.wrap(function()
      tp.set_stream(t)
      tp.set_stream(s)
      tp.spawn(task, "set")
    end)()
    -- driven where others are current
    tp.with_stream(third, tp.with_stream, other, tp.run)
    local none = tp.default_stream
    for _, when in ipairs { "", "_later", "_generator", "_child" } do
      assert.same({ there, t, s, t }, seen["both" .. when])
      assert.same({ here, s, s, t }, seen["set" .. when])
      assert.same({ here, none(here), none(here), none(there) },
        seen["none" .. when])
    end
  end)

  it("sets the stream of another device for itself alone", function()
    local here, there = pair.devices()
    local t <close> = tp.Stream(there)
    local mine, others
    tp.spawn(function()
      tp.set_stream(t)
      coroutine.yield()
      mine = tp.current_stream(there)
    end)
    tp.spawn(function()
      coroutine.yield()
      others = tp.current_stream(there)
    end)
    tp.with_device(here, tp.run)
    assert.equal(t, mine)
    assert.equal(tp.default_stream(there), others)
  end)

  it("keeps another device's stream open", function()
    local here, there = pair.devices()
    local s <close> = tp.Stream(here)
    local t = tp.Stream(there)
    tp.with_stream(t, tp.with_stream, s, tp.spawn, tp.current_stream, there)
    assert.matches("is current or held by a block", raised(t.close, t))
    collectgarbage()
    tp.run()
    t:close()
  end)

  it("keeps its stream open from then on", function()
    local s = tp.Stream()
    local task = tp.with_stream(s, tp.spawn, function()
      return tp.current_stream()
    end)
    assert.matches("is current or held by a block", raised(s.close, s))
    tp.run()
    assert.equal("done", task:status())
    s:close()
  end)

  it("surfaces its error in tp.run, unchanged, and only there", function()
    local object, n = setmetatable({}, {}), 0
    local t = tp.spawn(function() error(object) end)
    tp.spawn(function() tp.sleep(2) n = n + 1 end)
    tp.spawn(function() n = n + 1 end)
    assert.is_true(rawequal(object, raised(tp.run)))
    assert.equal(1, n) -- the others had their turn
    assert.equal("failed", t:status())
    tp.run() -- and go on
    assert.equal(2, n)
    tp.run(function()
      assert.is_true(rawequal(object, raised(tp.await, t)))
    end)
    assert.is_nil(raised(tp.run, error, nil))
    assert.equal("s", raised(tp.run, error, "s", 0))
  end)

  it("tells its error those who wait instead", function()
    local object = {}
    tp.run(function()
      local t = tp.spawn(function() tp.sleep(1) error(object) end)
      local n = 0
      for _ = 1, 3 do
        tp.spawn(function()
          if raised(tp.await, t) == object then n = n + 1 end
        end)
      end
      assert.equal(object, raised(tp.await, t))
      coroutine.yield()
      assert.equal(3, n)
    end)
  end)

  it("closes its variables, also by an error", function()
    local log = {}
    local function noting(what)
      return setmetatable({}, { __close = function(_, e)
        log[#log + 1] = what .. tostring(e)
      end })
    end
    assert.equal("x", raised(tp.run, function()
      local _ <close> = noting "a "
      tp.sleep(0)
      local _ <close> = noting "b "
      error("x", 0)
    end))
    assert.same({ "b x", "a x" }, log)
    assert.equal("y", raised(tp.run, function()
      local _ <close> = setmetatable({}, { __close = function()
        error("y", 0)
      end })
      error "x"
    end))
  end)

  it("can't wait in __close when it failed or was cancelled", function()
    local function waiting()
      return setmetatable({}, { __close = function() tp.sleep(1) end })
    end
    local told = "tp.sleep can't wait in the __close of a task that failed or was "
      .. "cancelled"
    tp.run(function()
      local ended = tp.spawn(function() local _ <close> = waiting() return 5 end)
      assert.equal(5, tp.await(ended))
      local failed = tp.spawn(function() local _ <close> = waiting() error "no" end)
      assert.matches(told, raised(tp.await, failed), 1, true)
      local t = tp.spawn(function() local _ <close> = waiting() tp.sleep(1e9) end)
      coroutine.yield()
      assert.matches(told, raised(t.cancel, t), 1, true)
      assert.equal("cancelled", t:status())
    end)
  end)

  it("of a function of C's has no place, and its own name", function()
    assert.equal("no", raised(tp.run, error, "no"))
    assert.equal("bad argument #2 to 'buffer' (the count must not be negative, "
      .. "got -1)", raised(tp.run, tp.buffer, "f32", -1))
    assert.same({ "a", nil, "c", n = 3 },
      table.pack(tp.run(select, 2, 1, "a", nil, "c")))
  end)

  it("may wait for itself in no way", function()
    local task
    task = tp.spawn(function() tp.await(task) end)
    assert.matches("tp.await: the task waits for itself", raised(tp.run))
    task = tp.spawn(function() tp.await_all(tp.current_stream(), task) end)
    assert.matches("tp.await_all: the task waits for itself", raised(tp.run))
  end)

  it("that waits for one that waits for it is told so by tp.run", function()
    local a, b
    a = tp.spawn(function() tp.await(b) end)
    b = tp.spawn(function() tp.await_all(a, tp.spawn(function() end)) end)
    local message = raised(tp.run)
    assert.matches("^spec/task_spec.lua:%d+: deadlock: nothing is due, and 2 "
      .. "tasks wait for tasks only: task %d+ waits at spec/task_spec.lua:%d+ "
      .. "for task %d+; task %d+ waits at spec/task_spec.lua:%d+", message)
    assert.is_true(a:cancel())
    assert.matches("^spec/task_spec.lua:%d+: the task was cancelled",
      raised(tp.run))
    assert.equal("failed", b:status())
    tp.run()
  end)

  it("has a text and a status", function()
    local t = tp.spawn(coroutine.yield)
    assert.matches("^tpstream.Task %(%d+, ready%)$", tostring(t))
    tp.run(function() assert.matches("ready", tostring(t)) end)
    assert.equal("done", t:status())
    assert.is_nil(t:traceback())
    assert.matches("tpstream.Task expected, got nil", raised(t.cancel))
  end)

  it("leaves nothing behind when it is forgotten", function()
    local s <close> = tp.Stream()
    local weak = setmetatable({}, { __mode = "v" })
    tp.run(function()
      local big = {}
      weak[1] = big
      weak[2] = tp.spawn(function()
        tp.await(s)
        return big
      end)
      tp.await(weak[2])
    end)
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak[1])
    assert.is_nil(weak[2])
  end)
end)

describe("task:cancel", function()
  it("ends a task where it waits and closes its variables", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    for _, wait in ipairs {
      function() tp.await(s) end, function() tp.sleep(1e6) end,
      function() tp.await_any(s, tp.spawn(function() end)) end,
      coroutine.yield,
    } do
      local closed, after = false, false
      local task = tp.spawn(function()
        local _ <close> = setmetatable({}, { __close = function()
          closed = tp.current_stream()
        end })
        tp.with_stream(t, wait)
        after = true
      end)
      tp.poll()
      assert.is_true(task:cancel())
      assert.equal(tp.default_stream(), closed)
      assert.is_false(after)
      assert.equal("cancelled", task:status())
      assert.is_false(task:cancel())
      tp.run()
    end
    assert.is_false(s:query())
  end)

  it("of one that has not begun runs nothing", function()
    local ran = false
    local task = tp.spawn(function() ran = true end)
    assert.is_true(task:cancel())
    tp.run()
    assert.is_false(ran)
  end)

  it("tells those who wait for it", function()
    tp.run(function()
      local task = tp.spawn(tp.sleep, 1e6)
      tp.spawn(function() task:cancel() end)
      assert.matches("^spec/task_spec.lua:%d+: the task was cancelled$",
        raised(function() tp.await(task) end))
      assert.matches("cancelled", raised(tp.await, task))
    end)
  end)

  it("raises what __close raises; the task has ended all the same", function()
    local object = {}
    local task = tp.spawn(function()
      local _ <close> = setmetatable({}, { __close = function()
        error(object)
      end })
      tp.sleep(1e6)
    end)
    tp.poll()
    assert.equal(object, raised(task.cancel, task))
    assert.equal("cancelled", task:status())
    tp.run()
  end)

  it("is refused for a task that runs", function()
    local task
    task = tp.spawn(function()
      assert.matches("that is running can't be cancelled",
        raised(task.cancel, task))
      coroutine.wrap(function()
        assert.matches("that is running can't be cancelled",
          raised(task.cancel, task))
      end)()
    end)
    tp.run()
    assert.equal("done", task:status())
  end)

  it("is what <close> does", function()
    local task
    do
      local inner <close> = tp.spawn(tp.sleep, 1e6)
      task = inner
      tp.poll()
    end
    assert.equal("cancelled", task:status())
    do
      local inner <close> = tp.spawn(function() end)
      task = inner
      tp.run()
    end
    assert.equal("done", task:status())
  end)
end)

describe("on_complete and tasks", function()
  it("go on in order", function()
    local s <close> = tp.Stream()
    local log = {}
    local g <close> = gate.new()
    g:hold(s)
    local function note(x) log[#log + 1] = x end
    tp.spawn(function()
      s:on_complete(note, 1)
      s:on_complete(note, 2)
      tp.await(s)
      note "task"
    end)
    tp.spawn(function()
      s:on_complete(note, 3)
      g:open()
    end)
    tp.run()
    s:synchronize()
    local text = table.concat(log, " ")
    assert.is_true(text == "1 2 task 3" or text == "1 2 3 task", text)
  end)

  it("an error of a callback comes out of tp.run, tasks go on", function()
    local s <close> = tp.Stream()
    local object, done = {}, false
    tp.spawn(function()
      s:on_complete(error, object)
      tp.await(s)
      done = true
    end)
    assert.equal(object, raised(tp.run))
    tp.run()
    assert.is_true(done)
  end)

  it("tp.poll in a callback runs neither callbacks nor tasks", function()
    local s <close> = tp.Stream()
    local begun, count = false, nil
    local t = tp.spawn(function() begun = true end)
    s:on_complete(function() count = tp.poll() end)
    s:on_complete(function() count = count + tp.poll() end)
    s:synchronize()
    assert.equal(0, count)
    assert.is_false(begun)
    tp.run()
    assert.equal("done", t:status())
  end)

  it("tp.poll in a task runs callbacks only", function()
    local s <close> = tp.Stream()
    local n = 0
    tp.spawn(function()
      tp.spawn(function() n = n + 100 end)
      s:on_complete(function() n = n + 1 end)
      while n == 0 do tp.poll() end
      assert.equal(1, n)
    end)
    tp.run()
    assert.equal(101, n)
  end)

  it("a wait inside a task is a safe point", function()
    local s <close> = tp.Stream()
    local n = 0
    tp.run(function()
      s:on_complete(function() n = n + 1 end)
      s:synchronize()
      assert.equal(1, n)
    end)
  end)
end)

describe("tp.poll", function()
  it("lets every task that can go on do so once", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local t = tp.spawn(function()
      coroutine.yield()
      tp.await(s)
    end)
    local u = tp.spawn(function() tp.await(t) end)
    assert.equal(2, tp.poll())
    assert.equal(1, tp.poll())
    assert.equal(0, tp.poll())
    g:open()
    s:synchronize()
    assert.equal(1, tp.poll())
    assert.equal(1, tp.poll())
    assert.equal("done", u:status())
    assert.equal(0, tp.poll())
  end)

  it("raises what tasks raise", function()
    local object = {}
    tp.spawn(error, object)
    assert.equal(object, raised(tp.poll))
    assert.equal(0, tp.poll())
  end)
end)

describe("many tasks", function()
  it("by the thousand", function()
    local streams, n = {}, 0
    for i = 1, 8 do streams[i] = tp.Stream() end
    local count = os.getenv "TPSTREAM_GC_STRESS" and 60 or 2000
    for i = 1, count do
      tp.spawn(function()
        tp.await(streams[i % 8 + 1])
        local e <close> = streams[i % 8 + 1]:record_event()
        tp.await_all(e, streams[(i + 1) % 8 + 1])
        n = n + 1
      end)
    end
    tp.run()
    assert.equal(count, n)
    for i = 1, 8 do streams[i]:close() end
  end)

  it("sleep in the kernel, not in a loop", function()
    local cpu = os.clock()
    for i = 1, 50 do tp.spawn(tp.sleep, 150 + i % 7) end
    tp.run()
    assert.is_true(os.clock() - cpu < 0.1)
  end)
end)

describe("errors of tasks", function()
  local SCRIPT = [[
local tp = require "tpstream"
local function deep_in_the_task() error "found" end
local function work() tp.sleep(1) deep_in_the_task() end
]]

  it("have the task's traceback in the command", function()
    if not run.interpreter():match "tpstream" then return end
    local r = run.script(SCRIPT .. "tp.run(function() work() end)")
    assert.equal(1, r.status)
    assert.matches(":2: found\ntask stack traceback:.*deep_in_the_task.*"
      .. "stack traceback:.*in main chunk", r.stderr)
    assert.not_matches("scheduler.*deep_in_the_task", r.stderr)
  end)

  it("have it through tp.traceback and task:traceback", function()
    local r = run.script(SCRIPT .. [[
local t = tp.spawn(work)
print(xpcall(tp.run, tp.traceback))
print(t:traceback())
print(xpcall(error, tp.traceback, "plain", 0))
print(rawequal(select(2, xpcall(error, tp.traceback, t.co)), t.co))]])
    assert.equal("", r.stderr)
    assert.matches("^false\t[^\n]*:2: found\ntask stack traceback:\n"
      .. ".-deep_in_the_task.-\nstack traceback:\n", r.stdout)
    assert.matches("\nstack traceback:\n[^\n]*\n[^\n]*deep_in_the_task",
      r.stdout)
    assert.matches("false\tplain\nstack traceback:\n", r.stdout)
    assert.matches("true\n$", r.stdout)
  end)

  it("tell where it began when it goes from task to task", function()
    local r = run.script(SCRIPT .. [[
local function outer(t) tp.await_all(tp.spawn(tp.sleep, 1), t) end
local a = tp.spawn(work)
local b = tp.spawn(outer, a)
print(xpcall(tp.run, tp.traceback, function() tp.await(b) end))
local c = tp.spawn(pcall, function() tp.await(a) end)
tp.run(function() tp.await(c) error "another" end)]])
    assert.matches("^false\t[^\n]*:2: found\ntask stack traceback:\n"
      .. ".-deep_in_the_task.-\nawaited by task %d+, stack traceback:\n.-:4: in .-"
      .. "\nawaited by task %d+, stack traceback:\n.-\nstack traceback:\n", r.stdout)
    assert.matches(":%d+: another\n", r.stderr)
    assert.not_matches("deep_in_the_task", r.stderr)
  end)

  it("that go through many tasks show the first of them and the last", function()
    local function trace_through(count)
      local last = tp.spawn(function() tp.sleep(0) error("deep", 0) end)
      for _ = 1, count do
        local before = last
        last = tp.spawn(function() tp.await(before) return nil end)
      end
      assert.equal("deep", raised(tp.run))
      return last:traceback()
    end
    local eleven, text = trace_through(11), trace_through(500)
    assert.equal(11, select(2, eleven:gsub("awaited by task", "")))
    assert.is_nil(eleven:find "skipping")
    assert.equal(11, select(2, text:gsub("awaited by task", "")))
    assert.matches("\n%.%.%.\t%(skipping 489 tasks%)\nawaited by task %d+, ", text)
  end)

  it("after the first of a step are warnings", function()
    local r = run.script [[
local tp = require "tpstream"
warn "@on"
for i = 1, 3 do tp.spawn(error, "e" .. i, 0) end
print(pcall(tp.run))
tp.run()]]
    assert.equal("false\te1\n", r.stdout)
    assert.equal("Lua warning: tpstream: error in a task: e2\n"
      .. "Lua warning: tpstream: error in a task: e3\n", r.stderr)
  end)

  it("of a task that was never driven to its end is a warning", function()
    local script = [[
local tp = require "tpstream"
warn "@on"
tp.spawn(print)
tp.spawn(tp.sleep, 1e9)
tp.poll()
tp.spawn(print)]]
    local told = "Lua warning: tpstream: 2 tasks have not ended "
      .. "(tp.run drives them)\n"
    for _, ending in ipairs { "", "os.exit(true, true)" } do
      local r = run.script(script .. ending)
      assert.equal(told, r.stderr)
      assert.equal(0, r.status)
    end
  end)
end)

describe("Ctrl-C", function()
  it("ends a tp.run that sleeps", function()
    for _, wait in ipairs { "tp.sleep(1e6)", "tp.await(never)" } do
      local r = run.script([[
local tp = require "tpstream"
local never = setmetatable({}, { __await = function() end })
print(pcall(tp.run, function() print "ready" io.stdout:flush() ]] .. wait
        .. " end))", { signal = "INT", after = 1 })
      assert.matches("ready\n", r.stdout)
      assert.matches("false\t.*interrupted!", r.stdout .. r.stderr)
    end
  end)

  it("ends a task that is busy", function()
    if not run.interpreter():match "tpstream" then return end
    if (os.getenv "TPS_SANITIZE" or ""):find "thread" then
      return pending "ThreadSanitizer puts signals off"
    end
    local r = run.script([[
local tp = require "tpstream"
print(pcall(tp.run, function() while true do end end))]],
      { signal = "INT", after = 1 })
    assert.matches("false\t.*interrupted!", r.stdout)
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
local g = gate.new()
g:hold(s)
k:launch({ grid = 1, block = 1, stream = s }, nil)
local e = s:record_event()
gate.run(s, "empty")
t:wait_stream(s)
]]
  local function case(body)
    return run.script(FAULT .. body .. "\nos.exit(0, false)\n")
  end

  it("is told every task that waits for the device", function()
    local r = case [[
local told = 0
for i = 1, 20 do
  tp.spawn(function()
    local ok, object = pcall(tp.await, i % 2 == 0 and s or t)
    if not ok and object.code == "cudaErrorIllegalAddress" then
      told = told + 1
      assert(tostring(object):find(":16: .*bad"), tostring(object))
    end
  end)
end
tp.spawn(function() g:open() end)
tp.run()
print(told, tp.poll())]]
    assert.equal("20\t0\n", r.stdout, r.stderr)
  end)

  it("is not told by those who have given up, or are never driven", function()
    if not run.interpreter():match "tpstream" then return end
    for _, body in ipairs {
      "tp.spawn(tp.await, s) tp.poll() g:open() os.execute 'sleep 0.1'",
      "local a = tp.spawn(tp.await, s) tp.poll() a:cancel() g:open()" .. [[

      for i = 1, 5 do tp.poll() os.execute "sleep 0.02" end]],
      [[
local a = tp.spawn(function() tp.await_any(s, tp.spawn(tp.sleep, 1)) g:open() end)
tp.run()
for i = 1, 5 do tp.poll() os.execute "sleep 0.02" end]],
    } do
      local r = run.script(FAULT .. body)
      assert.equal(1, r.status, body)
      assert.matches("cudaErrorIllegalAddress", r.stderr)
    end
    local heard = run.script(FAULT .. [[
tp.spawn(function() print(pcall(tp.await, s)) end)
tp.poll()
g:open()
tp.run()]])
    assert.matches("^false\t.*cudaErrorIllegalAddress", heard.stdout)
    assert.equal(0, heard.status, heard.stderr)
  end)

  it("surfaces in tp.run once", function()
    local r = case [[
warn "@on"
local tasks = {}
for i = 1, 20 do
  tasks[i] = tp.spawn(tp.await_any, s, t, tp.spawn(tp.await, e))
end
tp.spawn(function() tp.sleep(20) g:open() end)
local ok, object = pcall(tp.run)
print(ok, object.code, tostring(object):match "bad")
while #tasks > 0 do
  local t = table.remove(tasks)
  if t:status() == "waiting" then print "left" end
end
pcall(tp.run)]]
    assert.equal("false\tcudaErrorIllegalAddress\tbad\n", r.stdout, r.stderr)
    assert.equal("", r.stderr)
  end)
end)

describe("nothing is lost", function()
  -- Remembers its done; what gives it up counts, and raises the object if any.
  local function awaitable(object)
    local x = { stopped = 0 }
    return setmetatable(x, {
      __await = function(_, done)
        x.done = done
        return function()
          x.stopped = x.stopped + 1
          if object ~= nil then error(object, 0) end
        end
      end,
    })
  end

  it("when what gives up a wait raises", function()
    local object, heard = {}, {}
    local bad, a, b = awaitable(object), awaitable(object), awaitable()
    local task = tp.spawn(function() tp.sleep(1) return "result" end)
    for i = 1, 3 do
      tp.spawn(function()
        local which, value = tp.await_any(bad, a, task, b)
        heard[#heard + 1] = which .. value
      end)
      tp.spawn(function()
        local value = tp.await(task)
        heard[#heard + 1] = i .. value
      end)
    end
    assert.equal(object, raised(tp.run))
    tp.run()
    table.sort(heard)
    assert.equal("1result 2result 3result 3result 3result 3result",
      table.concat(heard, " "))
    assert.same({ 3, 3, 3 }, { bad.stopped, a.stopped, b.stopped })
  end)

  it("when a foreign loop ends the wait and the rest can't be given up",
    function()
      local object = {}
      local good, bad = awaitable(), awaitable(object)
      local t = tp.spawn(tp.await_any, bad, good)
      tp.poll()
      assert.is_true(good.done(true, 7)) -- its caller hears nothing of it
      assert.equal(object, raised(tp.poll))
      tp.run()
      assert.same({ 2, 7 }, { tp.run(tp.await, t) })
      local heard
      tp.spawn(function() heard = raised(tp.await_all, bad, good) end)
      tp.poll()
      good.done(false, "no")
      assert.equal(object, raised(tp.poll))
      assert.equal("no", heard)
    end)

  it("when a wait can't begin and what began can't be given up", function()
    local object, begun = {}, awaitable "stop"
    local unable = setmetatable({}, {
      __await = function() error(object) end,
    })
    local seen
    tp.spawn(function()
      seen = raised(tp.await_all, begun, unable)
    end)
    assert.equal("stop", raised(tp.run))
    assert.equal(object, seen)
    tp.run()
  end)

  it("when a cancelled task's wait can't be given up", function()
    local closed, heard = false, nil
    local t = tp.spawn(function()
      local _ <close> = setmetatable({}, { __close = function()
        closed = true
      end })
      tp.await(awaitable "stop")
    end)
    tp.spawn(function() heard = raised(tp.await, t) end)
    tp.poll()
    assert.equal("stop", raised(t.cancel, t))
    assert.is_true(closed)
    assert.equal("cancelled", t:status())
    tp.run()
    assert.matches("the task was cancelled", heard)
  end)

  it("the second such error is a warning", function()
    local r = run.script [[
local tp = require "tpstream"
warn "@on"
local function bad(text)
  return setmetatable({}, {
    __await = function() return function() error(text, 0) end end,
  })
end
tp.spawn(tp.await_any, bad "one", tp.spawn(tp.sleep, 1), bad "two")
print(pcall(tp.run))
tp.run()]]
    assert.equal("false\tone\n", r.stdout)
    assert.equal("Lua warning: tpstream: error in giving up a wait: two\n",
      r.stderr)
  end)

  it("of many results", function()
    local n, heard = 200000, 0
    local values = {}
    for i = 1, n do values[i] = i end
    local function many() return table.unpack(values) end
    local function check(first, ...)
      assert.equal(n - 1, select("#", ...))
      assert.equal(1, first)
      heard = heard + 1
    end
    tp.run(function()
      local t = tp.spawn(function() tp.sleep(1) return many() end)
      for _ = 1, 3 do
        tp.spawn(function() check(tp.await(t)) end)
        tp.spawn(function()
          local other <close> = tp.spawn(tp.sleep, 1e6)
          check(select(2, tp.await_any(other, t)))
        end)
        tp.spawn(function()
          local none, first = tp.await_all(tp.spawn(function() end), t)
          assert.is_nil(none)
          assert.equal(1, first)
          heard = heard + 1
        end)
      end
      check(tp.await(t))
      local x = awaitable()
      tp.spawn(function() check(tp.await(x)) end)
      coroutine.yield()
      assert.is_true(x.done(true, many()))
    end)
    check(tp.run(many))
    assert.equal(12, heard)
  end)
end)
