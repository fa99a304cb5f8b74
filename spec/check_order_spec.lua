-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/checking.md, the order check: what puts accesses in order and what does not.
-- Fills write, copies read one buffer and write another; nothing here depends on when
-- what runs.
local tp = require "tpstream"
local checking = require "spec.support.checking"
local gate = require "spec.support.gate"
local fine, misses = checking.fine, checking.misses

local COUNT = 64

-- Calls fn with so many streams, then a shared buffer; all are closed afterwards.
local function with(count, fn)
  return function()
    local streams = {}
    for i = 1, count do streams[i] = tp.Stream() end
    local x <close> = tp.zeros("i32", COUNT)
    streams[count + 1] = x
    local sinks = {}
    local function write(s, b, v) tp.with_stream(s, b.fill, b, v or 1) end
    local function read(s, b)
      local to = tp.buffer("i32", #b, { stream = s })
      sinks[#sinks + 1] = to
      b:copy_to(to, { stream = s })
    end
    local ok, err = pcall(fn, write, read, table.unpack(streams))
    for _, b in ipairs(sinks) do b:close() end
    for i = 1, count do streams[i]:close() end
    if not ok then error(err, 0) end
  end
end

describe("the rules of order:", function()
  it("a read after a write of another stream needs a wait", function()
    local r = misses("write/read", with(2, function(write, read, a, b, x)
      write(a, x)
      read(b, x)
    end))
    assert.equal(1, r[1].count)
  end)

  it("so does a write after a read, and a write after a write", function()
    misses("read/write", with(2, function(write, read, a, b, x)
      read(a, x)
      write(b, x)
    end))
    misses("write/write", with(2, function(write, _, a, b, x)
      write(a, x)
      write(b, x)
    end))
  end)

  it("two reads need none", function()
    fine(with(2, function(_, read, a, b, x)
      read(a, x)
      read(b, x)
    end))
  end)

  it("one stream is in order", function()
    fine(with(1, function(write, read, a, x)
      write(a, x)
      read(a, x)
      write(a, x)
    end))
  end)

  it("record and wait order", function()
    fine(with(2, function(write, read, a, b, x)
      write(a, x)
      local e <close> = a:record_event()
      b:wait_event(e)
      read(b, x)
    end))
  end)

  it("every later reader is tested against the last write", function()
    local r = misses("write/read", with(3, function(write, read, a, b, c, x)
      write(a, x)
      local e <close> = a:record_event()
      b:wait_event(e)
      read(b, x)
      read(c, x)
    end))
    assert.equal(1, r[1].count)
  end)

  it("after a fork a write has to wait for the other reader", function()
    local function fork(joined)
      return with(3, function(write, read, a, b, c, x)
        write(a, x)
        b:wait_stream(a)
        c:wait_stream(a)
        read(b, x)
        read(c, x)
        if joined then b:wait_stream(c) end
        write(b, x)
      end)
    end
    misses("read/write", fork(false))
    fine(fork(true))
  end)

  it("a chain of ten orders its ends", function()
    local function chain(broken)
      return with(11, function(write, read, ...)
        local s = { ... }
        local x = s[12]
        write(s[1], x)
        for i = 2, 11 do
          if i ~= broken then s[i]:wait_stream(s[i - 1]) end
        end
        read(s[11], x)
      end)
    end
    fine(chain())
    misses("write/read", chain(6))
  end)

  it("a record before the second read does not cover it", function()
    local r = misses("read/write", with(2, function(write, read, a, b, x)
      read(a, x)
      local e <close> = a:record_event()
      read(a, x)
      b:wait_event(e)
      write(b, x)
    end))
    assert.equal(1, r[1].count)
  end)

  it("an event orders by its last record", function()
    fine(with(2, function(write, read, a, b, x)
      local e <close> = tp.Event()
      e:record(a)
      write(a, x)
      e:record(a)
      b:wait_event(e)
      read(b, x)
    end))
  end)

  it("a wait keeps the record of its time", function()
    misses("write/read", with(3, function(write, read, a, b, c, x)
      local e <close> = tp.Event()
      e:record(a)
      b:wait_event(e)
      write(a, x)
      e:record(a)
      read(b, x)
      c:wait_event(e)
      read(c, x)
    end))
  end)

  it("a record on another stream replaces the first", function()
    misses("write/read", with(3, function(write, read, a, b, c, x)
      write(a, x)
      local e <close> = a:record_event()
      e:record(b)
      c:wait_event(e)
      read(c, x)
    end))
  end)

  it("a write has to wait for all of ten readers", function()
    local function readers(left_out)
      return with(11, function(write, read, ...)
        local s = { ... }
        local x = s[12]
        for i = 1, 10 do read(s[i], x) end
        for i = 1, 10 do
          if i ~= left_out then s[11]:wait_stream(s[i]) end
        end
        write(s[11], x)
      end)
    end
    fine(readers())
    for _, i in ipairs { 1, 5, 10 } do misses("read/write", readers(i)) end
  end)

  it("one event orders two streams", function()
    fine(with(3, function(write, read, a, b, c, x)
      write(a, x)
      local e <close> = a:record_event()
      b:wait_event(e)
      c:wait_event(e)
      read(b, x)
      read(c, x)
    end))
  end)

  it("a wait for an event that was never recorded orders nothing", function()
    local function twice()
      return with(2, function(write, read, a, b, x)
        write(a, x)
        local e <close> = tp.Event()
        b:wait_event(e)
        read(b, x)
      end)
    end
    misses("write/read", twice())
  end)

  it("barrier and wait_stream of several", function()
    fine(with(3, function(write, read, a, b, c, x)
      write(a, x)
      tp.barrier(a, b, c)
      read(b, x)
      read(c, x)
      a:wait_stream(b, c)
      write(a, x)
    end))
  end)

  it("a closed stream's work still counts", function()
    misses("write/read", with(1, function(write, read, b, x)
      local a = tp.Stream()
      write(a, x)
      a:close()
      read(b, x)
    end))
    fine(with(1, function(write, read, b, x)
      local a = tp.Stream()
      write(a, x)
      b:wait_stream(a)
      a:close()
      read(b, x)
    end))
  end)
end)

describe("what the host waits for is in order:", function()
  local function synced(wait, expected)
    local body = with(3, function(write, read, a, b, c, x)
      write(a, x)
      wait(a, b, c)
      read(b, x)
    end)
    if expected then misses(expected, body) else fine(body) end
  end

  it("a stream, a device, an event", function()
    synced(function(a) a:synchronize() end)
    synced(function(a) a:device():synchronize() end)
    synced(function(a)
      local e <close> = a:record_event()
      e:synchronize()
    end)
    synced(function(_, b) b:synchronize() end, "write/read")
  end)

  it("a query that answers: done", function()
    synced(function(a) while not a:query() do end end)
    synced(function(a)
      local e <close> = a:record_event()
      while not e:query() do end
    end)
  end)

  it("what came before it on other streams", function()
    synced(function(a, _, c)
      c:wait_stream(a)
      c:synchronize()
    end)
  end)

  it("a callback that has run", function()
    synced(function(a)
      local ran
      a:on_complete(function() ran = true end)
      while not ran do tp.poll() end
    end)
  end)

  it("only up to the callback", function()
    misses("write/read", with(3, function(write, read, a, b, _, x)
      local ran
      a:on_complete(function() ran = true end)
      write(a, x)
      while not ran do tp.poll() end
      read(b, x)
    end))
  end)

  it("what a task has awaited, and no more", function()
    synced(function(a) tp.run(function() tp.await(a) end) end)
    synced(function(a)
      local e <close> = a:record_event()
      tp.run(function() tp.await(e) end)
    end)
    misses("write/read", with(2, function(write, read, a, b, x)
      local g <close> = gate.new()
      g:hold(a)
      local e <close> = a:record_event()
      tp.spawn(function()
        tp.await(e)
        read(b, x)
      end)
      tp.poll()
      write(a, x)
      e:record(a)
      g:open()
      tp.run()
    end))
  end)

  it("read and bytes wait for the current stream", function()
    fine(with(2, function(write, read, a, b, x)
      write(a, x)
      tp.with_stream(a, x.read, x)
      write(b, x)
      read(b, x)
    end))
    misses("write/read", with(2, function(write, _, a, b, x)
      write(a, x)
      tp.with_stream(b, x.bytes, x)
    end))
  end)

  it("a timer's end", function()
    synced(function(a)
      local t <close> = tp.timer(a)
      t:stop()
    end)
  end)

  it("a new stream begins with what the host knows", function()
    fine(with(1, function(write, read, a, x)
      write(a, x)
      a:synchronize()
      local b <close> = tp.Stream()
      read(b, x)
    end))
    misses("write/read", with(1, function(write, read, a, x)
      write(a, x)
      local b <close> = tp.Stream()
      read(b, x)
      b:synchronize()
    end))
  end)
end)

describe("the legacy stream", function()
  local function joined(blocking, order)
    return function()
      local s <close> = tp.Stream { blocking = blocking }
      local home <close> = tp.Stream()
      local legacy = tp.default_stream()
      local x <close> = tp.zeros("i32", COUNT, { stream = home })
      local first, second = legacy, s
      if order == "after" then first, second = s, legacy end
      tp.with_stream(first, x.fill, x, 1)
      tp.with_stream(second, x.fill, x, 2)
    end
  end

  it("is in order with blocking streams, both ways", function()
    fine(joined(true, "before"))
    fine(joined(true, "after"))
  end)

  it("is in no order with the others", function()
    misses("write/write", joined(false, "before"))
    misses("write/write", joined(false, "after"))
  end)

  it("puts two blocking streams in order that it is used between", function()
    local function between(used)
      return function()
        local a <close> = tp.Stream { blocking = true }
        local b <close> = tp.Stream { blocking = true }
        local x <close> = tp.zeros("i32", COUNT)
        local y <close> = tp.zeros("i32", COUNT)
        tp.with_stream(a, x.fill, x, 1)
        if used then tp.with_stream(tp.default_stream(), y.fill, y, 1) end
        tp.with_stream(b, x.fill, x, 2)
      end
    end
    fine(between(true))
    misses("write/write", between(false))
  end)

  it("is waited for with all blocking streams", function()
    fine(function()
      local a <close> = tp.Stream { blocking = true }
      local b <close> = tp.Stream()
      local x <close> = tp.zeros("i32", COUNT)
      tp.with_stream(a, x.fill, x, 1)
      tp.default_stream():synchronize()
      tp.with_stream(b, x.fill, x, 2)
    end)
  end)
end)

describe("memory:", function()
  it("parts that do not meet are no conflict, those that do are", function()
    local function halves(first, count)
      return with(2, function(write, _, a, b, x)
        local one <close> = x:slice(1, COUNT // 2)
        local two <close> = x:slice(first, count)
        write(a, one)
        write(b, two)
      end)
    end
    fine(halves(COUNT // 2 + 1, COUNT // 2))
    local r = misses("write/write", halves(COUNT // 2, 3))
    assert.same({ COUNT // 2, COUNT // 2 },
      { r[1].buffer.first, r[1].buffer.last })
    assert.equal("int32", r[1].buffer.dtype)
    assert.equal(COUNT, r[1].buffer.count)
  end)

  it("another type of element is the same memory", function()
    misses("write/write", with(2, function(write, _, a, b, x)
      local bytes <close> = x:as "u8"
      local part <close> = bytes:slice(7, 1)
      write(a, x)
      write(b, part)
    end))
  end)

  it("a copy is tested at both ends", function()
    local function copied(from_first)
      return with(2, function(write, _, a, b, x)
        local one <close> = x:slice(1, 8)
        write(a, one)
        local to <close> = tp.buffer("i32", 8, { stream = b })
        x:copy_to(to, { first = from_first, count = 8, stream = b })
        local back <close> = to:slice(1, 4)
        write(b, back)
      end)
    end
    misses("write/read", copied(8))
    fine(copied(9))
  end)

  it("rows of a copy leave out what is between them", function()
    local function tiles(at, captured)
      return function()
        local s <close> = tp.Stream()
        local t <close> = tp.Stream()
        local m <close> = tp.zeros("u8", 16 * 16)
        local a <close> = tp.zeros("u8", 16 * 8)
        local b <close> = tp.zeros("u8", 16 * 8)
        local function put(from, first, stream)
          from:copy_to(m, { rows = 16, row_bytes = 8, to_pitch = 16, at = first,
            stream = stream })
        end
        local g
        tp.device():synchronize()
        if captured then
          g = tp.capture(s, function() put(a, 1) end)
          g:launch(s)
        else
          put(a, 1, s)
        end
        put(b, at, t)
        if g then g:close() end
        tp.barrier(s, t)
        m:copy_to(a, { rows = 16, row_bytes = 8, pitch = 16, first = 9, stream = s })
        put(b, 1, t)
      end
    end
    for _, captured in ipairs { false, true } do
      fine(tiles(9, captured))
      local r = misses("write/write", tiles(8, captured))
      assert.equal(1, r[1].count)
      assert.equal(8, r[1].buffer.first)
      assert.equal(8, r[1].buffer.last)
    end
  end)

  it("the allocation and the constructor's filling come before everything", function()
    fine(function()
      local a <close> = tp.Stream()
      local b <close> = tp.Stream()
      local x <close> = tp.buffer("i32", { 1, 2, 3 }, { stream = a })
      local y <close> = tp.zeros("i32", 3, { stream = a })
      x:copy_to(y, { stream = b })
    end)
  end)

  it("later writes come before the first use on another stream only", function()
    local function used(times)
      return function()
        local a <close> = tp.Stream()
        local b <close> = tp.Stream()
        local x <close> = tp.buffer("i32", { 1, 2, 3 }, { stream = a })
        local y <close> = tp.zeros("i32", 3, { stream = b })
        tp.with_stream(a, x.write, x, { 4, 5, 6 })
        x:copy_to(y, { stream = b })
        if times == 1 then return end
        a:wait_stream(b)
        tp.with_stream(a, x.write, x, { 7, 8, 9 })
        x:copy_to(y, { stream = b })
      end
    end
    fine(used(1))
    misses("write/read", used(2))
  end)

  it("so do those of a stream that was closed since", function()
    fine(with(1, function(write, _, b)
      local a = tp.Stream()
      local x <close> = tp.zeros("i32", 4, { stream = a })
      write(a, x)
      a:close()
      write(b, x)
    end))
  end)

  it("what is freed and allocated again is fine: the runtime sees to it", function()
    fine(with(3, function(write, read, a, b, c)
      for _ = 1, 5 do
        local x = tp.buffer("i32", 4096, { stream = a })
        write(a, x)
        b:wait_stream(a)
        read(b, x)
        x:close()
        local y = tp.buffer("i32", 4096, { stream = c })
        write(c, y)
        y:close()
      end
    end))
  end)

  it("of the host is tested, too", function()
    local function pinned(make, synced)
      return function()
        local s <close> = tp.Stream()
        local h <close> = make("i32", 8)
        h[1] = 5
        tp.with_stream(s, h.fill, h, 1)
        if synced then s:synchronize() end
        return h[3]
      end
    end
    local r = misses("write/read", pinned(tp.pinned, false))
    assert.equal("host", r[1].second.kind)
    assert.equal(3, r[1].buffer.first)
    assert.equal(3, r[1].buffer.last)
    assert.matches(":synchronize%(%)", r[1].hint)
    fine(pinned(tp.pinned, true))
    if tp.current_device():properties().managed_memory ~= false then
      misses("write/read", pinned(tp.managed, false))
      fine(pinned(tp.managed, true))
    end
  end)

  it("of the host: a write while a stream reads", function()
    local function upload(synced)
      return function()
        local s <close> = tp.Stream()
        local h <close> = tp.pinned("i32", { 1, 2, 3 })
        local x <close> = tp.buffer("i32", 3, { stream = s })
        h:copy_to(x, { stream = s })
        if synced then s:synchronize() end
        h[2] = 7
        h:copy_to(x, { stream = s })
      end
    end
    misses("read/write", upload(false))
    fine(upload(true))
  end)

  it("of the host: the elements that nothing uses are free", function()
    fine(function()
      local s <close> = tp.Stream()
      local h <close> = tp.pinned("i32", 4)
      local half <close> = h:slice(1, 2)
      tp.with_stream(s, half.fill, half, 1)
      h[3] = h[4] + 1
    end)
  end)

  it("of the host: reading pinned memory waits for the current stream alone", function()
    misses("write/read", function()
      local a <close> = tp.Stream()
      local b <close> = tp.Stream()
      local h <close> = tp.pinned("i32", 4)
      tp.with_stream(a, h.fill, h, 1)
      tp.with_stream(b, h.read, h)
    end)
  end)

  it("of a table or string is copied: it may change at once", function()
    fine(function()
      local s <close> = tp.Stream()
      local x <close> = tp.buffer("i32", 1024, { stream = s })
      local values = {}
      for i = 1, 1024 do values[i] = i end
      tp.with_stream(s, function()
        for _ = 1, 20 do
          x:write(values)
          x:write(("\1"):rep(4096))
        end
        x:read()
      end)
    end)
  end)
end)

describe("kernels", function()
  it("that only load from a buffer read it, those that store write it", function()
    local function copies(second)
      return with(3, function(_, _, a, b, c, x)
        local y <close> = tp.zeros("i32", COUNT)
        local z <close> = tp.zeros("i32", COUNT)
        local copy <close> = gate.kernel "copy"
        tp.barrier(a, b, c)
        copy:launch({ grid = 1, block = COUNT, stream = a }, x, y, COUNT)
        copy:launch({ grid = 1, block = COUNT, stream = b }, x, second and y or z,
          COUNT)
      end)
    end
    fine(copies(false))
    local r = misses("write/write", copies(true))
    assert.equal("copy", r[1].first.kernel)
    assert.equal("copy", r[1].second.kernel)
    assert.equal("kernel", r[1].first.kind)
    assert.matches("kernel 'copy' on stream %d+, .-check_order_spec.lua:%d+",
      r[1].text)
  end)

  it("of tp.kernels are right among themselves", function()
    fine(function()
      local s <close> = tp.Stream()
      tp.with_stream(s, function()
        local x <close> = tp.buffer("f32", 5000)
        tp.kernels.iota(x)
        tp.kernels.sum(x)
        local sorted <close> = tp.kernels.sort(x)
        local scanned <close> = tp.kernels.scan(x)
        local h <close> = tp.kernels.histogram(x, 8, 0, 5000)
        return sorted:read(), scanned:read(), h:read()
      end)
    end)
  end)
end)

describe("a report", function()
  it("stands for a pair of lines, whichever came first, and counts", function()
    local r = misses("write/write", with(2, function(_, _, a, b, x)
      for _ = 1, 5 do
        tp.with_stream(a, x.fill, x, 1)
        tp.with_stream(b, x.fill, x, 2)
      end
    end))
    assert.equal(9, r[1].count)
  end)

  it("names the buffer, the operations, what is missing and what to add", function()
    local line, r
    r = misses("write/read", function()
      local s <close> = tp.Stream()
      local t <close> = tp.Stream()
      line = debug.getinfo(1, "l").currentline + 1
      local x <close> = tp.buffer("f32", 100)
      local h <close> = tp.pinned("f32", 100)
      tp.barrier(s, t)
      tp.with_stream(s, x.fill, x, 1)
      x:copy_to(h, { first = 11, count = 20, stream = t })
    end)[1]
    local file = debug.getinfo(1, "S").short_src
    local s, t = r.first.stream, r.second.stream
    assert.equal("order", r.check)
    assert.equal(([[
Missing order between a write and a read of float32[100] made at FILE:%d, ]]
      .. [[elements 11 to 30
    write  fill on stream %d, FILE:%d
    read   copy on stream %d, FILE:%d
    missing: nothing makes stream %d wait for that work of stream %d
    add s%d:wait_stream(s%d) before FILE:%d, ]]
      .. [[or e = s%d:record_event() after FILE:%d and s%d:wait_event(e) before FILE:%d
]]):format(line, s, line + 3, t, line + 4, t, s, t, s, line + 4, s, line + 3, t,
      line + 4):gsub("FILE", (file:gsub("%%", "%%%%"))), r.text)
    assert.equal("write", r.first.access)
    assert.equal("fill", r.first.kind)
    assert.equal(line + 3, r.first.line)
    assert.equal(file, r.first.source)
    assert.equal("copy", r.second.kind)
    assert.equal(line, r.buffer.line)
    assert.equal(11, r.buffer.first)
    assert.equal(30, r.buffer.last)
  end)
end)

describe("tp.check", function()
  local function fails(text, fn, ...)
    local ok, err = pcall(fn, ...)
    assert.is_false(ok)
    assert.equal(text, (tostring(err):gsub("^[^:]*:%d+: ", "")))
  end

  it("refuses what is no check", function()
    fails("bad argument #1 to 'start' (no check is called 'oder'; there are "
      .. "order, memory, race, init, barrier)", tp.check.start, { "oder" })
    fails("bad argument #1 to 'start' (no check is called 'x'; there are order, "
      .. "memory, race, init, barrier)", tp.check.start, { x = true })
    fails("bad argument #1 to 'start' (field 'race': boolean expected, got number)",
      tp.check.start, { race = 1 })
    fails("bad argument #1 to 'start' (the names of checks are strings, got "
      .. "boolean)", tp.check.start, { true })
    fails("bad argument #1 to 'start' (table expected, got string)",
      tp.check.start, "order")
    fails("no check is running that this script has started", tp.check.stop)
  end)

  it("takes lists, fields, and nothing for all", function()
    local function starts(argument)
      local found = checking.found(argument, with(2, function(write, _, a, b, x)
        write(a, x)
        write(b, x)
      end))
      return #found
    end
    assert.equal(1, starts(nil))
    assert.equal(1, starts {})
    assert.equal(1, starts { "race", "order" })
    assert.equal(1, starts { order = true })
    assert.equal(1, starts { memory = false })
    assert.equal(0, starts { order = false })
    assert.equal(0, starts { "memory" })
  end)

  it("can be started again, and adds", function()
    tp.check.start { "memory" }
    tp.check.start { "order" }
    with(2, function(write, _, a, b, x)
      write(a, x)
      write(b, x)
    end)()
    local reports = tp.check.reports()
    assert.equal(1, #reports)
    assert.matches("^Missing order between two writes", tostring(reports[1]))
    assert.equal(reports[1].text, tostring(reports[1]))
    assert.equal(1, #tp.check.stop())
    assert.is_false(pcall(tp.check.stop))
    assert.equal(1, #tp.check.reports())
    fine(function() end)
  end)

  it("knows memory that was there before, whoever is the first to use it", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local h <close> = tp.pinned("i32", 4)
    local r = misses("write/write", function()
      h[1] = 1
      gate.run(s, "put", h, 1, 1)
      tp.with_stream(t, h.fill, h, 1)
    end)
    assert.matches("^Missing order between two writes of int32%[4%]", r[1].text)
    local g <close> = tp.capture(s, function()
      local own <close> = tp.zeros("i32", 4)
      gate.run(s, "put", h, 2, 1)
      own:copy_to(h)
    end)
    local both <close> = tp.capture(s, function() g:launch() end)
    r = misses("write/write", function()
      h[1] = 1
      g:launch(s)
      both:launch(t) -- in order, for they have memory in common
      gate.run(s, "put", h, 2, 1)
    end)
    assert.equal("copy", r[1].first.kind)
  end)

  it("knows nothing of what came before", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local x <close> = tp.zeros("i32", 4)
    tp.with_stream(s, x.fill, x, 1)
    misses("write/write", function()
      gate.run(s, "put", x, 1, 1)
      tp.with_stream(t, x.fill, x, 1)
    end)
    fine(function() tp.with_stream(t, x.fill, x, 1) end)
    local r = misses("write/write", function()
      tp.with_stream(s, x.fill, x, 1)
      tp.with_stream(t, x.fill, x, 1)
    end)
    assert.matches("^Missing order between two writes of int32%[4%].-, "
      .. "elements 1 to 4\n", r[1].text) -- made where, a GPU doesn't tell
  end)
end)
