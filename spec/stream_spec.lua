-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Streams (scopes are in scope_spec.lua).
local tp = require "tpstream"
local message_of = require("spec.support.errors").text
local gate = require "spec.support.gate"

describe("a stream", function()
  it("is made on the current device with priority 0", function()
    local s <close> = tp.Stream()
    assert.equal(tp.current_device(), s:device())
    assert.equal(0, s:priority())
    assert.is_false(s:is_blocking())
    assert.equal("number", type(s:handle()))
    assert.not_equal(0, s:handle())
  end)

  it("takes a device and a priority", function()
    local s <close> = tp.Stream(tp.current_device(), -1)
    assert.equal(-1, s:priority())
    local t <close> = tp.Stream { device = tp.current_device():index(),
      priority = -2, blocking = true }
    assert.equal(-2, t:priority())
    assert.is_true(t:is_blocking())
  end)

  it("takes a device by name", function()
    local d = tp.current_device()
    local s <close> = tp.Stream(("%s:%d"):format(d:kind(), d:index()))
    assert.equal(d, s:device())
  end)

  it("clamps its priority and tells the one in force", function()
    local least, greatest = tp.current_device():priority_range()
    local high <close> = tp.Stream(nil, -1000)
    assert.equal(greatest, high:priority())
    local low <close> = tp.Stream { priority = 1000 }
    assert.equal(least, low:priority())
  end)

  it("has an id that is never used again", function()
    local seen = {}
    for _ = 1, 50 do
      local s <close> = tp.Stream()
      assert.is_nil(seen[s:id()])
      assert.is_true(s:id() > 0)
      seen[s:id()] = true
    end
  end)

  it("compares by identity and serves as a key", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local names = { [s] = "s", [t] = "t" }
    assert.is_true(s == s)
    assert.is_false(s == t)
    assert.is_false(s == 1)
    assert.is_false(s == tp.Event)
    assert.equal("t", names[t])
  end)

  it("shows its device, id and priority", function()
    local s <close> = tp.Stream(nil, -1)
    local text = tostring(s)
    local d = s:device()
    assert.equal(("tpstream.Stream (%s:%d, id %d, priority -1)"):format(d:kind(),
      d:index(), s:id()), text)
    s:close()
    assert.equal("tpstream.Stream (closed)", tostring(s))
  end)

  it("refuses a bad device", function()
    assert.matches("no device %a+:4711:", message_of(tp.Stream, 4711))
    assert.matches("no such device 'gpu'", message_of(tp.Stream, "gpu"))
    assert.matches("no such device 'gpu'",
      message_of(tp.Stream, { device = "gpu" }))
    assert.matches("bad argument #2 to 'Stream' (nothing expected after an "
      .. "options table)", message_of(tp.Stream, {}, {}), 1, true)
    assert.matches("field 'blocking': boolean expected, got number",
      message_of(tp.Stream, { blocking = 1 }))
  end)

  it("refuses a bad priority", function()
    for _, bad in ipairs { 0.5, 0 / 0, math.huge } do
      assert.matches("bad argument #2 to 'Stream' (number has no integer "
        .. "representation)", message_of(tp.Stream, nil, bad), 1, true)
      assert.matches("bad argument #1 to 'Stream' (field 'priority': ",
        message_of(tp.Stream, { priority = bad }), 1, true)
    end
    for _, bad in ipairs { "high", {}, true } do
      assert.matches("bad argument #2 to 'Stream' (number expected, got "
        .. type(bad) .. ")", message_of(tp.Stream, nil, bad), 1, true)
      assert.matches("field 'priority': number expected, got " .. type(bad),
        message_of(tp.Stream, { priority = bad }), 1, true)
    end
  end)

  it("is an object of its own each time, also of one priority", function()
    local streams, handles = {}, {}
    for i = 1, 40 do
      streams[i] = tp.Stream(nil, -1)
      assert.is_nil(handles[streams[i]:handle()]) -- from no pool
      handles[streams[i]:handle()] = true
    end
    for i = 1, 40 do streams[i]:close() end
  end)

  it("is not capturing", function()
    local s <close> = tp.Stream()
    assert.is_false(s:is_capturing())
    assert.is_false(tp.default_stream():is_capturing())
  end)

  it("names an unknown option and those there are", function()
    local ok, message = pcall(tp.Stream, { prioritet = 1 })
    assert.is_false(ok)
    assert.matches("prioritet", message)
    assert.matches("priority", message)
    assert.matches("blocking", message)
    assert.matches("device", message)
  end)
end)

describe("a closed stream", function()
  it("closes any number of times", function()
    local s = tp.Stream()
    s:close()
    s:close()
    getmetatable(s).__close(s)
  end)

  for _, call in ipairs { "query", "synchronize", "record_event", "priority",
    "handle", "id", "device", "is_blocking", "is_capturing" } do
    it("refuses " .. call, function()
      local s = tp.Stream()
      s:close()
      local ok, message = pcall(function() return s[call](s) end)
      assert.is_false(ok)
      assert.matches("attempt to use a closed stream", message)
    end)
  end

  it("is refused as an argument", function()
    local s = tp.Stream()
    local t <close> = tp.Stream()
    s:close()
    for _, call in ipairs {
      function() t:wait_stream(s) end,
      function() tp.with_stream(s, print) end,
      function() tp.set_stream(s) end,
      function() tp.scope(s) end,
      function() tp.barrier(t, s) end,
      function() tp.timer(s) end,
      function() tp.buffer("f32", 4, { stream = s }) end,
    } do
      local ok, message = pcall(call)
      assert.is_false(ok)
      assert.matches("closed stream", message)
    end
  end)

  it("lets its queued work finish", function()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local g <close> = gate.new()
    local s = tp.Stream()
    g:hold(s)
    gate.run(s, "put", out, 0, 7)
    s:close()
    g:open()
    tp.current_device():synchronize()
    assert.same({ 7 }, out:read())
  end)
end)

describe("the default stream", function()
  it("is the legacy stream", function()
    local s = tp.default_stream()
    assert.equal(0, s:id())
    assert.equal(0, s:handle())
    assert.equal(0, s:priority())
    assert.is_true(s:is_blocking())
  end)

  it("is always the same object", function()
    assert.is_true(tp.default_stream() == tp.default_stream())
    assert.is_true(tp.default_stream() == tp.current_stream())
    assert.is_true(rawequal(tp.default_stream(), tp.default_stream(
      tp.current_device())))
  end)

  it("can't be closed", function()
    local s = tp.default_stream()
    assert.matches("stream_spec.lua:%d+: the default stream can't be closed$",
      message_of(function() s:close() end))
    do local _ <close> = s end -- does nothing
    assert.is_true(s:synchronize(20000))
  end)

  it("waits for blocking streams and holds them up", function()
    local out <close> = tp.zeros("i32", 4)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream { blocking = true }
    local g <close> = gate.new()
    g:hold(s)
    gate.run(s, "put", out, 0, 1)
    gate.run(tp.default_stream(), "add", out, 0, 10) -- after s's work
    gate.run(s, "twice", out, 1) -- after the legacy stream's
    assert.is_false(tp.default_stream():synchronize(10))
    g:open()
    s:synchronize()
    assert.equal(22, out:read()[1])
  end)

  it("is what blocking streams wait for, and only those", function()
    local s <close> = tp.Stream { blocking = true }
    local t <close> = tp.Stream()
    local out <close> = tp.zeros("i32", 1)
    tp.current_device():synchronize()
    local g <close> = gate.new()
    g:hold(tp.default_stream())
    gate.run(s, "put", out, 0, 1)
    gate.run(t, "empty")
    assert.is_false(s:synchronize(10))
    assert.is_true(t:synchronize(20000))
    g:open()
    assert.is_true(s:synchronize())
    assert.same({ 1 }, out:read())
  end)

  it("leaves non-blocking streams alone", function()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    gate.run(tp.default_stream(), "put", out, 0, 3)
    assert.is_true(tp.default_stream():synchronize(20000))
    assert.is_false(s:query())
    g:open()
  end)
end)

describe("query and synchronize", function()
  it("tell whether the work is done", function()
    local s <close> = tp.Stream()
    assert.is_true(s:query())
    local g <close> = gate.new()
    g:hold(s)
    assert.is_false(s:query())
    assert.is_false(s:synchronize(0))
    assert.is_false(s:synchronize(5))
    assert.is_false(s:synchronize(0.25))
    g:open()
    assert.is_true(s:synchronize())
    assert.is_true(s:query())
    assert.is_true(s:synchronize(0))
    assert.is_true(s:synchronize(math.huge))
  end)

  it("wait no less than a fraction of a millisecond says", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local e <close> = s:record_event()
    for _, waiting in ipairs { s, e } do
      local took = tp.benchmark(function() waiting:synchronize(0.75) end,
        { count = 3, warmup = 0 }).cpu.min
      assert.is_true(took >= 0.75, took)
    end
    g:open()
  end)

  it("refuse a negative timeout and NaN", function()
    local s <close> = tp.Stream()
    for _, bad in ipairs { -1.0, -0.001, -math.huge } do
      assert.matches("bad argument #2 to 'synchronize' (the timeout must not "
        .. "be negative, got " .. bad, message_of(s.synchronize, s, bad), 1,
        true)
    end
    assert.matches("the timeout is nan", message_of(s.synchronize, s, 0 / 0))
    for _, bad in ipairs { "soon", {}, true } do
      assert.matches("number expected, got " .. type(bad),
        message_of(s.synchronize, s, bad), 1, true)
    end
  end)

  it("return at once although another stream is busy", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    assert.is_true(t:synchronize())
    assert.is_true(t:query())
    g:open()
  end)

  it("of the device wait for every stream", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    assert.is_false(tp.current_device():synchronize(1))
    g:open()
    assert.is_true(tp.current_device():synchronize())
    assert.is_true(s:query())
  end)
end)

describe("ordering between streams", function()
  local out
  before_each(function()
    out = tp.zeros("i32", 64)
    tp.current_stream():synchronize()
  end)
  after_each(function() out:close() end)

  it("work on one stream runs in order", function()
    local s <close> = tp.Stream()
    for i = 1, 20 do gate.run(s, "append", out, i) end
    s:synchronize()
    local r = out:read()
    assert.equal(20, r[1])
    for i = 1, 20 do assert.equal(i, r[i + 1]) end
  end)

  it("kernels of different streams run side by side", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    gate.run(t, "put", out, 0, 9)
    assert.is_true(t:synchronize(20000))
    assert.is_false(s:query())
    g:open()
  end)

  it("wait_event holds back later work only", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    gate.run(t, "append", out, 1)
    t:synchronize()
    g:hold(s)
    gate.run(s, "append", out, 2)
    local e <close> = s:record_event()
    t:wait_event(e)
    gate.run(t, "append", out, 3)
    assert.is_false(t:synchronize(10))
    g:open()
    t:synchronize()
    assert.same({ 3, 1, 2, 3 }, { table.unpack(out:read(), 1, 4) })
  end)

  it("wait_stream waits for all of several", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local g <close> = gate.new()
    local h <close> = gate.new()
    g:hold(s)
    h:hold(t)
    u:wait_stream(s, t)
    gate.run(u, "put", out, 0, 5)
    g:open()
    s:synchronize()
    assert.is_false(u:synchronize(2))
    h:open()
    assert.is_true(u:synchronize())
    assert.equal(5, out:read()[1])
  end)

  it("wait_stream with itself or with none does nothing", function()
    local s <close> = tp.Stream()
    s:wait_stream()
    s:wait_stream(s)
    assert.is_true(s:synchronize(10000))
  end)

  it("wait_stream takes only what is queued at the call", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    gate.run(s, "put", out, 0, 1)
    t:wait_stream(s)
    local g <close> = gate.new()
    g:hold(s)
    gate.run(t, "put", out, 1, 2)
    assert.is_true(t:synchronize(20000))
    g:open()
  end)

  it("barrier orders each after all", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(t)
    tp.barrier(s, t, u)
    gate.run(s, "append", out, 1)
    gate.run(u, "append", out, 2)
    assert.is_false(s:synchronize(10))
    assert.is_false(u:synchronize(10))
    g:open()
    tp.current_device():synchronize()
    assert.equal(2, out:read()[1])
  end)

  it("barrier waits for all, not for the first or the last alone", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local gates = { gate.new(), gate.new(), gate.new() }
    for i, stream in ipairs { s, t, u } do gates[i]:hold(stream) end
    tp.barrier(s, t, u)
    for _, stream in ipairs { s, t, u } do
      gate.run(stream, "append", out, 1)
    end
    local open = { s:record_event(), t:record_event(), u:record_event() }
    gates[1]:open()
    gates[3]:open()
    for _, e in ipairs(open) do assert.is_false(e:synchronize(2)) end
    gates[2]:open()
    for _, e in ipairs(open) do
      assert.is_true(e:synchronize())
      e:close()
    end
    assert.equal(3, out:read()[1])
    for _, g in ipairs(gates) do getmetatable(g).__close(g) end
  end)

  it("barrier takes only what is queued at the call", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    gate.run(s, "put", out, 0, 1)
    tp.barrier(s, t)
    local g <close> = gate.new()
    g:hold(s)
    gate.run(t, "twice", out, 1)
    assert.is_true(t:synchronize(20000))
    assert.is_false(s:query())
    g:open()
    s:synchronize()
    assert.equal(2, out:read()[1])
  end)

  it("wait_stream lets the streams that are waited for go on", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(t)
    t:wait_stream(s)
    gate.run(s, "put", out, 0, 1)
    assert.is_true(s:synchronize(20000))
    g:open()
  end)

  it("barrier with none given does nothing", function()
    tp.barrier()
    local s <close> = tp.Stream()
    tp.barrier(s)
    assert.is_true(s:query())
  end)

  it("refuses what is not a stream or an event", function()
    local s <close> = tp.Stream()
    local ok, message = pcall(s.wait_event, s, nil)
    assert.is_false(ok)
    assert.matches("tpstream.Event expected, got nil", message, 1, true)
    assert.matches("wait_event", message)
    ok, message = pcall(s.wait_stream, s, 42)
    assert.is_false(ok)
    assert.matches("tpstream.Stream expected, got number", message, 1, true)
    ok, message = pcall(tp.barrier, s, nil, s)
    assert.is_false(ok)
    assert.matches("tpstream.Stream expected, got nil", message, 1, true)
  end)

  it("holds over a long chain of streams", function()
    local streams = {}
    for i = 1, 10 do streams[i] = tp.Stream() end
    local g <close> = gate.new()
    g:hold(streams[1])
    gate.run(streams[1], "put", out, 0, 1)
    for i = 2, 10 do
      streams[i]:wait_stream(streams[i - 1])
      gate.run(streams[i], "twice", out, 1)
    end
    g:open()
    streams[10]:synchronize()
    assert.equal(512, out:read()[1])
    for i = 1, 10 do streams[i]:close() end
  end)
end)

describe("streams that run out of references or are closed", function()
  it("are not found again by their handle as the old object", function()
    local s = tp.Stream()
    local handle, id = s:handle(), s:id()
    s:close()
    local t <close> = tp.Stream()
    assert.is_false(s == t)
    assert.is_false(t == s)
    assert.is_true(t:id() > id)
    if t:handle() == handle then assert.not_equal(tostring(s), tostring(t)) end
  end)
end)

describe("tp.timer", function()
  it("waits for the measured work only", function()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local opener <close> = tp.Stream()
    local g <close> = gate.new()
    local later <close> = gate.new()
    local timer <close> = tp.timer(s)
    g:hold(s)
    gate.run(s, "put", out, 0, 3)
    local done <close> = s:record_event()
    later:hold(t)
    assert.is_false(done:query())
    gate.run(opener, "put", g.flag, 0, 1)
    local ms = timer:stop() -- only after the gate
    assert.is_true(done:query())
    assert.is_false(t:query())
    assert.is_true(ms >= 0)
    later:open()
    assert.same({ 3 }, out:read())
  end)

  it("is of the current stream when none is given", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(tp.default_stream())
    tp.with_stream(s, function()
      local timer <close> = tp.timer()
      gate.run(s, "empty")
      assert.is_true(timer:stop() >= 0) -- s is not held up
    end)
    assert.is_false(tp.default_stream():query())
    g:open()
  end)

  it("closed refuses, and wants a stream", function()
    local timer = tp.timer()
    timer:close()
    timer:close()
    assert.equal("tpstream.Timer (closed)", tostring(timer))
    assert.matches("attempt to use a closed timer",
      message_of(timer.stop, timer))
    assert.matches("bad argument #1 to 'timer' (tpstream.Stream expected, got "
      .. "number)", message_of(tp.timer, 5), 1, true)
  end)

  it("measures a region in milliseconds, again at every call", function()
    local s <close> = tp.Stream()
    local t = tp.timer(s)
    gate.run(s, "empty")
    local first = t:stop()
    assert.is_true(first >= 0)
    assert.is_true(t:stop() >= first)
    local u <close> = tp.timer(s)
    local g <close> = gate.new()
    g:hold(s)
    assert.is_false(s:synchronize(30))
    g:open()
    local ms = u:stop()
    assert.is_true(ms >= 25 and ms < 5000, ms)
    assert.is_true(t:stop() >= ms) -- t began before
  end)
end)
