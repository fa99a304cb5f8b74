-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Events.
local tp = require "tpstream"
local message_of = require("spec.support.errors").text
local gate = require "spec.support.gate"
local pair = require "spec.support.pair"

describe("an event", function()
  it("is made without touching the driver", function()
    local e <close> = tp.Event()
    assert.equal(0, e:handle())
    assert.is_nil(e:device())
    e:record()
    assert.not_equal(0, e:handle())
    assert.equal(tp.current_device(), e:device())
  end)

  it("takes options", function()
    local a <close> = tp.Event(true)
    local b <close> = tp.Event { enable_timing = true, blocking = true }
    local c <close> = tp.Event { interprocess = true }
    for _, e in ipairs { a, b } do
      assert.matches("^tpstream.Event %(not recorded, id %d+, timing%)$", tostring(e))
    end
    assert.matches("^tpstream.Event %(not recorded, id %d+%)$", tostring(c))
    a:record()
    assert.matches("^tpstream.Event %(%a+:%d, id %d+, timing%)$", tostring(a))
  end)

  it("refuses interprocess with timing", function()
    assert.matches("an interprocess event can't have timing (enable_timing)",
      message_of(tp.Event, { interprocess = true, enable_timing = true }), 1, true)
  end)

  it("names an unknown option and those there are", function()
    local text = message_of(tp.Event, { timing = true })
    assert.matches("'timing'", text)
    assert.matches("enable_timing", text)
  end)

  it("refuses options of the wrong type", function()
    assert.matches("bad argument #1 to 'Event' (field 'enable_timing': boolean "
      .. "expected, got number)", message_of(tp.Event, { enable_timing = 1 }),
      1, true)
    assert.matches("bad argument #1 to 'Event' (boolean expected, got number)",
      message_of(tp.Event, 42), 1, true)
  end)

  it("closes any number of times and then refuses use", function()
    local e = tp.Event()
    e:close()
    e:close()
    assert.matches("closed", tostring(e))
    for _, call in ipairs { "record", "wait", "query", "synchronize", "handle",
      "device", "elapsed_time" } do
      assert.matches("attempt to use a closed event",
        message_of(e[call], e, e))
    end
    local s <close> = tp.Stream()
    assert.matches("closed event", message_of(s.wait_event, s, e))
    assert.matches("closed event", message_of(s.record_event, s, e))
  end)

  it("serves as a key and compares by identity", function()
    local a <close> = tp.Event()
    local b <close> = tp.Event()
    assert.is_true(a == a)
    assert.is_false(a == b)
    assert.equal(1, ({ [a] = 1, [b] = 2 })[a])
  end)
end)

describe("an event never recorded", function()
  it("is done, and waiting for it does nothing", function()
    local e <close> = tp.Event()
    local s <close> = tp.Stream()
    assert.is_true(e:query())
    assert.is_true(e:synchronize())
    assert.is_true(e:synchronize(0))
    e:wait(s)
    s:wait_event(e)
    assert.is_true(s:query())
  end)

  it("is an error in strict mode", function()
    local e <close> = tp.Event()
    local s <close> = tp.Stream()
    assert.is_false(tp.strict(true))
    local ok1, m1 = pcall(e.wait, e, s)
    local ok2, m2 = pcall(e.synchronize, e)
    local ok3 = pcall(e.query, e)
    assert.is_true(tp.strict(false))
    assert.is_false(ok1)
    assert.is_false(ok2)
    assert.is_true(ok3)
    assert.matches("never recorded", tostring(m1))
    assert.matches("never recorded", tostring(m2))
  end)
end)

describe("recording", function()
  it("is on the current stream or the one given", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local on_default <close> = tp.Event()
    on_default:record()
    local on_s <close> = tp.Event()
    on_s:record(s)
    local scoped = tp.with_stream(s, function()
      local e = tp.Event()
      e:record()
      return e
    end)
    assert.is_true(on_default:synchronize(20000))
    assert.is_false(on_s:query())
    assert.is_false(scoped:query())
    assert.is_false(on_s:synchronize(1))
    g:open()
    assert.is_true(on_s:synchronize())
    assert.is_true(scoped:synchronize(20000))
    scoped:close()
  end)

  it("by record_event returns the event given or a new one", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    assert.is_true(rawequal(e, s:record_event(e)))
    local new <close> = s:record_event()
    assert.is_false(new == e)
    assert.is_true(new:synchronize())
  end)

  it("again replaces, and earlier waits keep the old record", function()
    local out <close> = tp.zeros("i32", 2)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local e <close> = s:record_event()
    t:wait_event(e)
    local g <close> = gate.new()
    g:hold(s)
    e:record(s)
    gate.run(t, "put", out, 0, 1)
    assert.is_true(t:synchronize(20000))
    assert.is_false(e:query())
    g:open()
    assert.is_true(e:synchronize())
  end)

  it("one event can order two streams", function()
    local out <close> = tp.zeros("i32", 8)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    gate.run(s, "put", out, 0, 5)
    local e <close> = s:record_event()
    e:wait(t)
    e:wait(u)
    gate.run(t, "copy", out, out:slice(3, 1), 1)
    gate.run(u, "copy", out, out:slice(5, 1), 1)
    assert.is_false(t:synchronize(10))
    assert.is_false(u:synchronize(10))
    g:open()
    t:synchronize()
    u:synchronize()
    local r = out:read()
    assert.equal(5, r[3])
    assert.equal(5, r[5])
  end)

  it("closing an event leaves waits for it in force", function()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    gate.run(s, "put", out, 0, 2)
    local e = s:record_event()
    t:wait_event(e)
    e:close()
    gate.run(t, "twice", out, 1)
    assert.is_false(t:synchronize(10))
    g:open()
    t:synchronize()
    assert.same({ 4 }, out:read())
  end)

  it("refuses what is not a stream", function()
    local e <close> = tp.Event()
    assert.matches("tpstream.Stream expected, got table",
      message_of(e.record, e, {}), 1, true)
    assert.matches("tpstream.Stream expected, got string",
      message_of(e.wait, e, "s"), 1, true)
  end)

  it("refuses bad timeouts", function()
    local e <close> = tp.Event()
    e:record()
    assert.matches("the timeout must not be negative, got -1)",
      message_of(e.synchronize, e, -1), 1, true)
    assert.matches("the timeout is nan", message_of(e.synchronize, e, 0 / 0))
    assert.matches("number expected, got string",
      message_of(e.synchronize, e, "x"))
  end)

  it("takes the timeouts of a stream", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    local g <close> = gate.new()
    g:hold(s)
    e:record(s)
    for _, ms in ipairs { 0, 0.25, 3 } do
      assert.is_false(e:synchronize(ms))
    end
    g:open()
    assert.is_true(e:synchronize(math.huge))
    assert.is_true(e:synchronize(0))
  end)

  it("with blocking waits all the same", function()
    local s <close> = tp.Stream()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local e <close> = tp.Event { blocking = true }
    local g <close> = gate.new()
    g:hold(s)
    gate.run(s, "put", out, 0, 4)
    e:record(s)
    assert.is_false(e:synchronize(1))
    g:open()
    assert.is_true(e:synchronize())
    assert.same({ 4 }, out:read())
  end)

  it("e:wait() holds the current stream", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local e <close> = s:record_event()
    tp.with_stream(t, function() e:wait() end)
    assert.is_false(t:query())
    assert.is_true(tp.default_stream():synchronize(20000))
    g:open()
    assert.is_true(t:synchronize())
  end)

  it("again on another stream of the device follows that stream", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local e <close> = s:record_event()
    e:record(t)
    assert.is_true(e:synchronize(20000))
    assert.is_false(s:query())
    g:open()
  end)
end)

describe("an event and two devices:", function()
  it("recording on the other's stream is refused, naming both", function()
    local here, there = pair.devices()
    local s <close> = tp.Stream(here)
    local t <close> = tp.Stream(there)
    local e <close> = s:record_event()
    local text = ("an event of %s can't be recorded on a stream of %s"):format(
      pair.label(here), pair.label(there))
    assert.matches(text, message_of(e.record, e, t), 1, true)
    assert.matches(text, message_of(t.record_event, t, e), 1, true)
    assert.equal(here, e:device())
    e:record(s) -- still an event of its own device
    assert.is_true(e:synchronize(20000))
  end)

  it("is created on the device of the stream that records it", function()
    local _, there = pair.devices()
    local t <close> = tp.Stream(there)
    local e <close> = tp.Event()
    e:record(t)
    assert.equal(there, e:device())
    local f <close> = tp.with_stream(t, function()
      local f = tp.Event()
      f:record()
      return f
    end)
    assert.equal(there, f:device())
  end)

  it("the other's stream waits for it", function()
    local here, there = pair.devices()
    tp.with_device(here, function()
      local out <close> = tp.zeros("i32", 4, { device = there })
      local s <close> = tp.Stream(here)
      local t <close> = tp.Stream(there)
      gate.run(t, "put", out, 0, 0) -- loads it there, which can wait for kernels
      there:synchronize()
      local g <close> = gate.new()
      g:hold(s)
      local e <close> = s:record_event()
      t:wait_event(e)
      gate.run(t, "put", out, 0, 6)
      assert.is_false(t:synchronize(2))
      g:open()
      assert.is_true(t:synchronize(20000))
      assert.same({ 6, 0, 0, 0 }, tp.with_stream(t, out.read, out))
    end)
  end)

  it("wait_stream and barrier order them as well", function()
    local here, there = pair.devices()
    tp.with_device(here, function()
      local s <close> = tp.Stream(here)
      local t <close> = tp.Stream(there)
      for _, order in ipairs {
        function() t:wait_stream(s) end, function() tp.barrier(t, s) end,
      } do
        local g <close> = gate.new()
        g:hold(s)
        order()
        assert.is_false(t:synchronize(1))
        g:open()
        assert.is_true(t:synchronize(20000))
      end
    end)
  end)

  if tp.is_available() then
    it("of different kinds can't wait for each other", function()
      local s <close> = tp.Stream "cuda"
      local t <close> = tp.Stream "sim"
      local e <close> = s:record_event()
      local f <close> = t:record_event()
      local function text(of, what)
        local a, b = pair.label(of:device()), s == of and "sim:0" or "cuda:0"
        return ("a stream of %s can't wait for %s of %s: the devices are of "
          .. "different kinds"):format(a, what, b)
      end
      assert.matches(text(t, "an event"), message_of(t.wait_event, t, e), 1,
        true)
      assert.matches(text(s, "an event"), message_of(f.wait, f, s), 1, true)
      assert.matches(text(s, "a stream"), message_of(s.wait_stream, s, t), 1,
        true)
      assert.matches("the devices are of different kinds",
        message_of(tp.barrier, s, t), 1, true)
      assert.is_true(s:synchronize(20000))
      assert.is_true(t:synchronize(20000))
    end)
  end
end)

describe("strict mode", function()
  it("returns what was set before and lasts until it is ended", function()
    local e <close> = tp.Event()
    local s <close> = tp.Stream()
    local before = tp.strict(true)
    local again = tp.strict(true)
    local failed = { pcall(s.wait_event, s, e) }
    local other = { pcall(e.synchronize, e, 0) }
    local recorded = pcall(function()
      e:record(s)
      s:wait_event(e)
      e:synchronize()
    end)
    local set = tp.strict(before)
    assert.is_false(before)
    assert.is_true(again)
    assert.is_true(set)
    for _, result in ipairs { failed, other } do
      assert.is_false(result[1])
      assert.matches("^%S*event_spec%.lua:%d+: the event was never recorded "
        .. "%(strict mode%)$", result[2])
    end
    assert.is_true(recorded)
    assert.matches("boolean expected, got number", message_of(tp.strict, 1))
  end)
end)

describe("elapsed_time", function()
  it("is the time between two records", function()
    local s <close> = tp.Stream()
    local a <close> = tp.Event(true)
    local b <close> = tp.Event(true)
    a:record(s)
    gate.run(s, "empty")
    b:record(s)
    b:synchronize()
    local ms = a:elapsed_time(b)
    assert.is_true(ms >= 0)
    assert.is_true(ms < 60000)
    assert.is_true(b:elapsed_time(a) <= 0)
  end)

  it("is in milliseconds of what ran between them", function()
    local s <close> = tp.Stream()
    local a <close> = tp.Event(true)
    local b <close> = tp.Event(true)
    local c <close> = tp.Event(true)
    local g <close> = gate.new()
    a:record(s)
    g:hold(s)
    b:record(s)
    c:record(s)
    assert.is_false(b:synchronize(30))
    g:open()
    c:synchronize()
    local ms = a:elapsed_time(b)
    assert.is_true(ms >= 25 and ms < 5000, ms)
    assert.is_true(math.abs(b:elapsed_time(a) + ms) < 0.001)
    assert.is_true(b:elapsed_time(c) < ms)
  end)

  it("refuses events without timing, the start event first", function()
    local with <close> = tp.Event(true)
    local without <close> = tp.Event()
    local text, object = message_of(without.elapsed_time, without, without)
    assert.matches("start event", text)
    assert.matches("timing", text)
    if type(object) ~= "string" then
      assert.equal("cudaErrorInvalidResourceHandle", object.code)
      assert.equal(400, object.number)
    end
    text = message_of(with.elapsed_time, with, without)
    assert.matches("end event", text)
  end)

  it("refuses events never recorded, the start event first", function()
    local a <close> = tp.Event(true)
    local b <close> = tp.Event(true)
    local text = message_of(a.elapsed_time, a, b)
    assert.matches("start event", text)
    assert.matches("recorded", text)
    a:record()
    text = message_of(a.elapsed_time, a, b)
    assert.matches("end event", text)
    assert.matches("recorded", text)
  end)

  it("refuses events not finished", function()
    local s <close> = tp.Stream()
    local a <close> = tp.Event(true)
    local b <close> = tp.Event(true)
    a:record(s)
    s:synchronize()
    local g <close> = gate.new()
    g:hold(s)
    b:record(s)
    local text, object = message_of(a.elapsed_time, a, b)
    assert.matches("end event", text)
    assert.matches("finished", text)
    assert.equal("cudaErrorNotReady", object.code)
    assert.equal(600, object.number)
    g:open()
    b:synchronize()
    assert.is_true(a:elapsed_time(b) >= 0)
  end)

  it("checks in order: timing, recorded, device, finished", function()
    local here, there = pair.devices()
    tp.with_device(here, function()
      local s <close> = tp.Stream(here)
      local t <close> = tp.Stream(there)
      local plain <close> = tp.Event()
      local never <close> = tp.Event(true)
      local a <close> = tp.Event(true)
      local b <close> = tp.Event(true)
      local far <close> = tp.Event(true)
      plain:record(t)
      far:record(t)
      a:record(s)
      s:synchronize()
      local g <close> = gate.new()
      g:hold(s)
      b:record(s) -- not finished
      local cases = {
        { plain, never, "the start event was made without timing", 400 },
        { never, plain, "the end event was made without timing", 400 },
        { b, plain, "the end event was made without timing", 400 },
        { never, far, "the start event has not been recorded", 400 },
        { far, never, "the end event has not been recorded", 400 },
        { b, never, "the end event has not been recorded", 400 },
        { b, far, ("the start event is of %s, the end event of %s"):format(
          pair.label(here), pair.label(there)), 400 },
        { b, a, "the start event is not finished", 600 },
        { a, b, "the end event is not finished", 600 },
        { b, b, "the start event is not finished", 600 },
      }
      for i, case in ipairs(cases) do
        local text, object = message_of(case[1].elapsed_time, case[1], case[2])
        assert.matches(case[3], text, 1, true)
        assert.equal(case[4], object.number, i)
        assert.matches("^%S+%.lua:%d+: ", text)
      end
      g:open()
      assert.is_true(b:synchronize())
      assert.is_true(a:elapsed_time(b) >= 0)
      assert.equal(0, b:elapsed_time(b))
    end)
  end)

  it("refuses what is not an event", function()
    local a <close> = tp.Event(true)
    assert.matches("tpstream.Event expected, got nil",
      message_of(a.elapsed_time, a, nil), 1, true)
  end)
end)
