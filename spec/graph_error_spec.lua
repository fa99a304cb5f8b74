-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Graphs: what is refused, in which words, and what errors and faults leave behind.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"
local one = gate.one

-- fn(...) raises a string that has this text and begins with the caller's line.
local function refused(text, fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_string(e)
  assert.is_truthy(e:find(text, 1, true), e)
  assert.matches("^spec/graph_error_spec.lua:%d+: ", e)
end

describe("a capturing stream refuses", function()
  -- What is tried in the middle leaves the capture whole: its graph works.
  local function in_capture(try)
    local b <close> = tp.buffer("i32", { 1 })
    local s <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local g <close> = tp.capture(s, function()
      gate.run(nil, "add", b, 0, 1)
      try(s, b, ("stream %d is capturing: "):format(s:id()))
      gate.run(nil, "add", b, 0, 1)
    end)
    local kernels = 0
    for _, node in ipairs(g:nodes()) do
      if node.kind == "kernel" then kernels = kernels + 1 end
    end
    assert.equal(2, kernels)
    g:launch(s)
    assert.same({ 3 }, tp.with_stream(s, b.read, b))
  end

  it("to be queried", function()
    in_capture(function(s, _, text)
      refused(text .. "it can't be queried", s.query, s)
    end)
  end)

  it("to be synchronized, with a timeout too", function()
    in_capture(function(s, _, text)
      refused(text .. "it can't be synchronized", s.synchronize, s)
      refused(text .. "it can't be synchronized", s.synchronize, s, 0)
    end)
  end)

  it("to be read from", function()
    in_capture(function(_, b, text)
      local h <close> = tp.pinned("i32", 1)
      refused(text .. "it can't wait for what is read", b.read, b)
      refused(text .. "it can't wait for what is read", b.bytes, b)
      refused(text .. "it can't wait for what is read", h.read, h)
    end)
  end)

  it("to be closed, or to give its handle", function()
    in_capture(function(s, _, text)
      refused("attempt to close a stream that is current or held by a block",
        s.close, s)
      refused(text .. "what other code queues through its handle would not be "
        .. "captured", s.handle, s)
    end)
  end)

  it("that its device is synchronized", function()
    in_capture(function(s)
      local d = s:device()
      refused(("%s:0 can't be synchronized while stream %d captures")
        :format(d:kind(), s:id()), d.synchronize, d)
    end)
    local g <close> = tp.capture({ mode = "relaxed" }, function()
      tp.current_device():synchronize()
    end)
    g:launch()
  end)

  it("to wait for what is not part of the capture", function()
    local t <close> = tp.Stream()
    local before <close> = t:record_event()
    local never <close> = tp.Event()
    in_capture(function(s, _, text)
      refused(text .. "it can't wait for an event recorded outside of the capture",
        s.wait_event, s, before)
      refused(("stream %d is not part of the capture: stream %d can't wait for "
        .. "it there"):format(t:id(), s:id()), s.wait_stream, s, t)
      refused(("stream %d is not part of the capture, as others of this barrier "
        .. "are"):format(t:id()), tp.barrier, s, t)
      s:wait_event(never)
      assert.is_false(t:is_capturing())
    end)
  end)

  it("that the default stream takes part", function()
    in_capture(function(s)
      refused("the default stream can't become part of a capture",
        tp.default_stream().wait_stream, tp.default_stream(), s)
    end)
    refused("the default stream can't capture", tp.capture, tp.default_stream(),
      function() end)
  end)

  it("copies to and from textures", function()
    local b <close> = tp.zeros("f32", 4)
    local t <close> = tp.texture(b)
    in_capture(function(_, _, text)
      refused(text .. "it can't copy to or from a texture or surface",
        t.copy_to, t, b)
      refused(text .. "it can't copy to or from a texture or surface",
        tp.texture, b)
    end)
  end)

  it("timers that wait; their events are places in the graph", function()
    in_capture(function()
      local timer <close> = tp.timer()
      refused("it can't be synchronized", timer.stop, timer)
    end)
  end)

  it("another capture, begun there or elsewhere", function()
    in_capture(function(s)
      local t <close> = tp.Stream()
      local text = ("captures can't be nested: stream %d is capturing, begun at "
        .. "spec/graph_error_spec.lua:"):format(s:id())
      refused(text, tp.capture, s, function() end)
      refused(text, tp.capture, t, function() end)
      refused(text, tp.capture, function() end)
      refused(text, coroutine.wrap(function()
        tp.capture(function() end)
      end))
    end)
  end)

  it("wrong arguments of what is captured, as always", function()
    local add <close> = gate.kernel "add"
    in_capture(function(_, b)
      refused("argument #1", add.launch, add, one, "x", 0, 1)
      refused("range 1..5", b.slice, b, 1, 5)
      local ok, e = pcall(add.launch, add, { grid = 1, block = 2000 }, b, 0, 1)
      assert.is_false(ok)
      assert.matches("block of 2000 threads", e.message)
    end)
  end)

  it("the state of events that are places in the graph", function()
    local e <close> = tp.Event(true)
    local f <close> = tp.Event(true)
    f:record()
    in_capture(function(s)
      e:record(s)
      local text = "the event was recorded in a capture: it can't be %s before "
        .. "the graph is launched"
      refused(text:format "queried", e.query, e)
      refused(text:format "synchronized", e.synchronize, e)
      local ok, object = pcall(e.elapsed_time, e, f)
      assert.is_false(ok)
      assert.matches("the start event was recorded in a capture",
        object.message)
    end)
    assert.is_true(e:synchronize()) -- it was launched
    local s <close> = tp.Stream()
    tp.capture(s, function()
      refused(("stream %d is capturing: it can't wait for an event recorded "
        .. "outside of the capture"):format(s:id()), e.wait, e)
    end):close()
  end)

  it("the state of events that are places in a body", function()
    local e <close> = tp.Event(true)
    local f <close> = tp.Event(true)
    local flag <close> = tp.zeros("i32", 1)
    f:record()
    tp.capture(function()
      tp.graph_if(flag, function() e:record() end)
      refused("the event was recorded outside of the graph that is being captured",
        e.wait, e)
    end):close()
    local text = "the event was recorded in the body of a conditional node: it "
      .. "can't be "
    refused(text .. "queried", e.query, e)
    refused(text .. "synchronized", e.synchronize, e)
    refused("the event was recorded in a capture that has ended: record it again",
      e.wait, e)
    refused("the start event was recorded in a capture", function()
      local ok, object = pcall(e.elapsed_time, e, f)
      error(ok or object.message)
    end)
    tp.run(function() refused(text .. "awaited", tp.await, e) end)
    e:record()
    assert.is_true(e:synchronize())
  end)
end)

describe("a branch that is not joined", function()
  local function broken(text, fn)
    local s <close> = tp.Stream()
    local b <close> = tp.zeros("i32", 4)
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    tp.barrier(tp.current_stream(), s, t, u)
    refused(text:gsub("%$(%a)", { s = s:id(), t = t:id(), u = u:id() }),
      tp.capture, s, fn, s, t, u, b)
    for _, x in ipairs { s, t, u } do assert.is_false(x:is_capturing()) end
    gate.run(s, "put", b, 0, 1) -- usable
    gate.run(t, "put", b, 1, 1)
    tp.barrier(s, t)
    assert.same({ 1, 1 }, tp.with_stream(s, b.read, b, 1, 2))
    tp.capture(s, function() b:fill(1) end):close()
  end

  it("is named, with the line that forked it", function()
    local line = debug.getinfo(1, "l").currentline
    broken("stream $t was forked at spec/graph_error_spec.lua:" .. line + 4 ..
      " and not joined again: stream $s, on which the graph is captured, has to "
      .. "wait for it", function(s, t, _, b)
        t:wait_stream(s)
        gate.run(t, "put", b, 0, 5)
      end)
  end)

  it("is the first that was forked, if there are several", function()
    broken("stream $u was forked", function(s, t, u, b)
      local e <close> = s:record_event()
      u:wait_event(e)
      t:wait_event(e)
      gate.run(t, "put", b, 0, 5)
      gate.run(u, "put", b, 1, 5)
    end)
  end)

  it("is joined too early", function()
    broken("stream $t was forked", function(s, t, _, b)
      t:wait_stream(s)
      gate.run(t, "put", b, 0, 5)
      s:wait_stream(t)
      gate.run(t, "put", b, 0, 6)
    end)
  end)

  it("is found although its stream is closed or gone", function()
    broken("was forked", function(s, _, _, b)
      do
        local v <close> = tp.Stream()
        v:wait_stream(s)
        gate.run(v, "put", b, 0, 5)
      end
      collectgarbage()
    end)
  end)

  it("can be joined by way of another", function()
    local b <close> = tp.zeros("i32", 2)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local g <close> = tp.capture(s, function()
      t:wait_stream(s)
      gate.run(t, "put", b, 0, 5)
      u:wait_stream(t)
      gate.run(u, "put", b, 1, 6)
      s:wait_stream(u)
    end)
    g:launch()
    assert.same({ 5, 6 }, b:read())
  end)
end)

describe("an error in the function", function()
  it("passes on as the same object; the stream is as it was", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local before = tp.current_stream()
    local object = {}
    local function fails()
      t:wait_stream(s)
      error(object)
    end
    local ok, e = pcall(tp.capture, s, fails)
    assert.is_false(ok)
    assert.equal(object, e)
    assert.equal(before, tp.current_stream())
    assert.is_false(s:is_capturing())
    assert.is_false(t:is_capturing())
    assert.is_true(s:synchronize())
    assert.is_true(t:query())
    local co = coroutine.create(function() tp.capture(s, fails) end)
    ok, e = coroutine.resume(co)
    assert.is_false(ok)
    assert.equal(object, e)
    assert.is_false(s:is_capturing())
    tp.capture(s, function() end):close()
  end)

  it("names the line of the call that broke it", function()
    local s <close> = tp.Stream()
    local add <close> = gate.kernel "add"
    local b <close> = tp.zeros("i32", 1)
    local line = debug.getinfo(1, "l").currentline
    local function call(n)
      if n == 1 then s:query() end
      if n == 2 then b:read() end
      if n == 3 then add:launch({ grid = 1, block = 1 }, b, "x", 1) end
      if n == 4 then add:launch({ grid = 1, block = 4096 }, b, 0, 1) end
      if n == 5 then tp.default_stream():wait_stream(s) end
      if n == 6 then tp.capture(function() end) end
    end
    for n = 1, 6 do
      local ok, e = pcall(tp.capture, s, call, n)
      assert.is_false(ok)
      assert.matches("^spec/graph_error_spec.lua:" .. line + 1 + n .. ": ",
        tostring(e))
      assert.is_false(s:is_capturing())
      s:synchronize()
    end
  end)

  it("keeps the traceback of the place that broke it", function()
    local function where_it_broke() error "oops" end
    local ok, trace = xpcall(tp.capture, debug.traceback, function()
      where_it_broke()
    end)
    assert.is_false(ok)
    if not coroutine.isyieldable() then
      assert.matches("where_it_broke", trace)
    end
  end)

  it("in a body ends the whole capture", function()
    local flag <close> = tp.zeros("i32", 1)
    local s <close> = tp.Stream()
    local ok, e = pcall(tp.capture, s, function()
      tp.graph_if(flag, function()
        tp.graph_while(flag, error, "deep")
      end)
    end)
    assert.is_false(ok)
    assert.equal("deep", e)
    assert.is_false(s:is_capturing())
  end)

  it("that is caught leaves the capture going", function()
    local flag <close> = tp.zeros("i32", 1)
    local b <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture(function()
      b:fill(1)
      assert.is_false(pcall(tp.graph_if, flag, function()
        b:fill(2)
        error "no"
      end))
      assert.is_true(tp.current_stream():is_capturing())
    end)
    assert.equal(1, #g:nodes())
    g:launch()
    assert.same({ 1 }, b:read())
  end)
end)

describe("tp.capture wants", function()
  it("a function", function()
    refused("bad argument #1 to 'capture' (value expected)", tp.capture)
    refused("bad argument #2 to 'capture' (function expected, got no value)",
      tp.capture, nil)
    refused("bad argument #2 to 'capture' (function expected, got number)",
      tp.capture, nil, 1)
  end)

  it("a stream, or options that there are", function()
    refused("tpstream.Stream expected, got number", tp.capture, 5,
      function() end)
    refused("unknown option 'param' (there are params, mode, stream)",
      tp.capture, { param = {} }, function() end)
    refused("unknown mode 'x' (there are thread_local, global, relaxed)",
      tp.capture, { mode = "x" }, function() end)
    refused("field 'mode': string expected, got number", tp.capture,
      { mode = 1 }, function() end)
    refused("tpstream.Stream expected, got string", tp.capture,
      { stream = "s" }, function() end)
    local s = tp.Stream()
    s:close()
    refused("attempt to use a closed stream", tp.capture, s, function() end)
  end)
end)

describe("conditional nodes want", function()
  it("a capture around them", function()
    local flag <close> = tp.zeros("i32", 1)
    refused("conditional nodes are made while a graph is captured", tp.graph_if,
      flag, function() end)
    local t <close> = tp.Stream()
    tp.capture(function()
      refused("on a stream that is part of it", tp.with_stream, t, tp.graph_if,
        flag, function() end)
    end):close()
  end)

  it("a flag of one 32-bit integer", function()
    local two <close> = tp.zeros("i32", 2)
    local f <close> = tp.zeros("f32", 1)
    tp.capture(function()
      refused("the flag is one int32 or uint32, got a buffer of 2 int32",
        tp.graph_if, two, function() end)
      refused("the flag is one int32 or uint32, got a buffer of 1 float32",
        tp.graph_while, f, function() end)
      refused("tpstream.Buffer expected, got number", tp.graph_if, 1,
        function() end)
      refused("bad argument #2 to 'graph_while' (function expected, got no value)",
        tp.graph_while, two)
      tp.graph_if(two:slice(2, 1), function() end)
    end):close()
  end)

  it("a body that can end, without the host and without other streams", function()
    local flag <close> = tp.zeros("i32", 1)
    local b <close> = tp.zeros("i32", 1)
    local calls <close> = tp.capture(function()
      tp.current_stream():on_complete(print)
    end)
    tp.capture(function()
      local outer = tp.current_stream()
      refused("the body of graph_while is empty", tp.graph_while, flag,
        function() end)
      tp.graph_if(flag, function()
        refused("the body of a conditional node can't call the host (on_complete)",
          tp.current_stream().on_complete, tp.current_stream(), print)
        refused("can't call the host, as the graph does", calls.launch, calls)
        refused(("stream %d is captured by the graph around this body")
          :format(outer:id()), tp.with_stream, outer, b.fill, b, 1)
        refused("only streams of the body can be used in it",
          tp.current_stream().wait_stream, tp.current_stream(), outer)
        refused("captures can't be nested", tp.capture, function() end)
      end)
      refused("was forked", tp.graph_if, flag, function()
        local t <close> = tp.Stream()
        t:wait_stream(tp.current_stream())
        tp.with_stream(t, function() b:fill(1) end)
      end)
    end):close()
  end)
end)

describe("a graph", function()
  it("that is closed refuses all but closing and tostring", function()
    local g = tp.capture(function() end)
    local other <close> = tp.capture(function() end)
    g:close()
    g:close()
    assert.equal("tpstream.Graph (closed)", tostring(g))
    local text = "attempt to use a closed graph"
    refused(text, g.launch, g)
    refused(text, g.update, g, function() end)
    refused(text, g.nodes, g)
    refused(text, g.device, g)
    refused(text, g.add, g, other)
    refused(text, g.add, other, g)
    local ok, e = pcall(g.dot, g)
    assert.is_false(ok)
    assert.matches(text, e, 1, true)
    refused("tpstream.Graph expected, got number", other.add, other, 5)
  end)

  it("is not launched on what is no stream", function()
    local g <close> = tp.capture(function() end)
    refused("bad argument", g.launch, g, 5)
    refused("field 'stream': tpstream.Stream expected, got number", g.launch, g,
      { stream = 1 })
    local s = tp.Stream()
    s:close()
    refused("attempt to use a closed stream", g.launch, g, s)
  end)

  it("closed by its own update stays closed", function()
    local g
    g = tp.capture(function() end)
    refused("attempt to use a closed graph", g.update, g, function() g:close() end)
  end)
end)

describe("on several devices", function()
  local PRELUDE = [[
local tp = require "tpstream"
local gate = require "spec.support.gate"
local d = tp.devices()
local function check(text, fn, ...)
  local ok, e = pcall(fn, ...)
  assert(not ok and tostring(e):find(text, 1, true), tostring(e))
end
]]
  local function on_two(body)
    if not simulated then
      pending "run on simulated devices"
      return
    end
    local r = run.script(PRELUDE .. body, { env = { TPSTREAM_SIM_DEVICES = 2 } })
    assert.equal(0, r.status, r.stderr)
    assert.equal("", r.stderr)
  end

  it("a graph goes to streams of its own", function()
    on_two [[
local s0, s1 = tp.Stream(d[1]), tp.Stream(d[2])
local g = tp.capture(s0, function() end)
local h = tp.with_device(d[2], tp.capture, function() end)
assert(h:device() == d[2])
check("the graph was captured on sim:0, the stream is of sim:1", g.launch, g, s1)
check("a graph of sim:1 can't be part of one of sim:0", g.add, g, h)
tp.capture(s0, function()
  check("the graph was captured on sim:1, the stream is of sim:0", h.launch, h, s0)
end):close()
]]
  end)

  it("streams of all may take part", function()
    on_two [[
local s0, s1 = tp.Stream(d[1]), tp.Stream(d[2])
local a = tp.zeros("i32", 4, { device = d[1] })
local b = tp.zeros("i32", 4, { device = d[2] })
tp.device(0):synchronize()
tp.device(1):synchronize()
local g = tp.capture(s0, function()
  gate.run(s0, "add", a, 0, 5)
  s1:wait_stream(s0)
  a:copy_to(b, { stream = s1 })
  gate.run(s1, "twice", b, 4)
  gate.run(s1, "add", b, 1, 1)
  s0:wait_stream(s1)
  b:copy_to(a, { stream = s0, count = 1 })
end)
g:launch(s0)
g:launch(s0)
s0:synchronize()
assert(tp.with_device(d[1], a.read, a)[1] == 30)
assert(tp.with_device(d[2], b.read, b)[1] == 30)
assert(g:nodes()[3].device == "sim:1")
local flag = tp.zeros("i32", 1, { device = d[1] })
tp.capture(s0, function()
  tp.graph_if(flag, function()
    check("can't become part of the body of a conditional node on sim:0",
      s1.wait_stream, s1, tp.current_stream())
  end)
end):close()
]]
  end)

  it("a graph is refused after a fault on any of them", function()
    on_two [=[
local program = require "spec.support.program"
local s0, s1 = tp.Stream(d[1]), tp.Stream(d[2])
local a = tp.zeros("i32", 1, { device = d[1] })
local b = tp.zeros("i32", 1, { device = d[2] })
local m = tp.with_device(d[2], program, "graph_fault", [[
extern "C" __global__ void store(int *p, long long i) { p[i] = 1; }
extern "C" __global__ void fine(int *p) { p[0] = 7; }
]])
local g = tp.capture(s0, function()
  s1:wait_stream(s0)
  tp.with_stream(s1, b.fill, b, 1)
  s0:wait_stream(s1)
  a:fill(7)
end)
m:kernel "store":launch({ grid = 1, block = 1, stream = s1 }, nil, 3)
check("cudaErrorIllegalAddress", s1.synchronize, s1)
check("device sim:1 has faulted", g.launch, g, s0)
tp.capture(s0, function()
  check("device sim:1 has faulted", g.launch, g)
end):launch(s0)
s0:synchronize()
assert(tp.with_device(d[1], a.read, a)[1] == 0)
]=]
  end)
end)

describe("a fault in a graph's branch on another device #fault", function()
  -- s0 of one device launches, the kernel of the other faults.
  local PRELUDE = [==[
local tp = require "tpstream"
local program = require "spec.support.program"
local here, there = require "spec.support.pair".devices()
local s0, s1 = tp.Stream(here), tp.Stream(there)
local a = tp.zeros("i32", 1, { device = here })
here:synchronize()
local m = tp.with_device(there, program, "graph_fault", [=[
extern "C" __global__ void store(int *p, long long i) { p[i] = 1; }
extern "C" __global__ void fine(int *p) { p[0] = 7; }
]=])
local g = tp.capture(s0, function()
  s1:wait_stream(s0)
  m:kernel "store":launch({ grid = 1, block = 1, stream = s1 }, nil, 3) -- 13
  s0:wait_stream(s1)
end)
local function told(fn, ...)
  local ok, e = pcall(fn, ...)
  print(ok, not ok and e.code, not ok and e.kernel)
  return e
end
]==]
  local TOLD = "false\tcudaErrorIllegalAddress\tstore\n"

  it("makes the script's status 1", function()
    if not run.interpreter():match "tpstream" then return end
    local r = run.script(PRELUDE .. "g:launch(s0)")
    assert.equal(1, r.status)
    assert.matches("cudaErrorIllegalAddress", r.stderr)
    assert.matches("store", r.stderr)
    assert.matches(":13", r.stderr)
    assert.equal("", r.stdout)
  end)

  it("is raised by a wait for the launch, once", function()
    for _, wait in ipairs {
      "told(s0.synchronize, s0)",
      "local e = s0:record_event() told(e.synchronize, e)",
      "told(function() while not s0:query() do end end)",
      "local e = s0:record_event() told(function() while not e:query() do end end)",
      "told(here.synchronize, here)",
      "told(tp.with_stream, s0, a.read, a)",
      "local h = tp.pinned('i32', 1) told(tp.with_stream, s0, h.read, h)",
      "told(tp.run, function() tp.await(s0) end)",
      "local e = s0:record_event() told(tp.run, function() tp.await(e) end)",
      "told(tp.run, function() tp.await_all(tp.current_stream(), s0) end)",
    } do
      local r = run.script(PRELUDE .. "g:launch(s0)\n" .. wait .. [[

if pcall(s0.synchronize, s0) then -- a GPU's fault may stop this device, too
  tp.with_stream(s0, a.fill, a, 3)
  assert(tp.with_stream(s0, a.read, a)[1] == 3)
end
assert(not pcall(s1.synchronize, s1))
os.exit(0, false)]])
      assert.equal(TOLD, r.stdout, wait .. r.stderr)
    end
  end)
end)

describe("a fault in a graph #fault", function()
  it("names the line of the kernel and that of the launch", function()
    local r = run.script([[
local tp = require "tpstream"
local program = require "spec.support.program"
local m = program("graph_fault", [=[
extern "C" __global__ void store(int *p, long long i) { p[i] = 1; }
extern "C" __global__ void fine(int *p) { p[0] = 7; }
]=])
local store, fine = m:kernel "store", m:kernel "fine"
local b = tp.zeros("i32", 1)
local s = tp.Stream()
local g = tp.capture(function()
  fine:launch({ grid = 1, block = 1 }, b)
  store:launch({ grid = 1, block = 1 }, nil, 3) -- line 12
end)
tp.current_stream():synchronize()
s:on_complete(print, "never")
local h = tp.capture(s, function() s:on_complete(print, "never") end)
s:synchronize() local held = require "spec.support.gate".new() held:hold(s)
g:launch(s) -- line 18
h:launch(s)
held:open()
local ok, e = pcall(s.synchronize, s)
print(ok, e.code)
print(e)
ok, e = pcall(g.launch, g, s)
print(ok, tostring(e):match "has faulted")
print(pcall(tp.capture, s, function() end))
g:close()
h:close()
os.exit(0, false)
]])
    assert.equal(0, r.status, r.stderr)
    local out = r.stdout:gsub("^never\n", "")
    assert.matches("^false\tcudaErrorIllegalAddress\n", out)
    assert.matches("store", out)
    assert.matches(":12[^%d]", out)
    assert.matches("in a graph on stream %d+, launched at %S+:18", out)
    assert.matches("false\thas faulted\n", out)
    assert.not_matches("never", out)
  end)

  it("ends the branches beside it", function()
    local r = run.script([[
local tp = require "tpstream"
local gate = require "spec.support.gate"
local held = gate.new()
local s, t = tp.Stream(), tp.Stream()
local g = tp.capture(s, function()
  t:wait_stream(s)
  for _ = 1, 50 do gate.run(t, "add", nil, 0, 1) end
  held:hold(s)
  s:wait_stream(t)
end)
g:launch(s)
pcall(g.launch, g, t)
print((select(2, pcall(s.synchronize, s)).code))
os.exit(0, false)
]])
    assert.equal("cudaErrorIllegalAddress\n", r.stdout, r.stderr)
  end)
end)

describe("in a coroutine", function()
  -- fn runs in one; afterwards nothing captures.
  local function ends(fn)
    local ok, e = coroutine.resume(coroutine.create(fn))
    assert.is_true(ok, e)
    local b <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture(b.fill, b, 3)
    g:launch():synchronize()
    assert.same({ 3 }, b:read())
  end

  it("a flag that its body closes ends the body, not the capture", function()
    ends(function()
      local flag <close> = tp.zeros("i32", 1)
      local b <close> = tp.zeros("i32", 1)
      local g <close> = tp.capture(function()
        refused("attempt to use a closed buffer", tp.graph_while, flag,
          function()
            b:fill(2)
            flag:close()
          end)
        b:fill(1)
      end)
      assert.equal(1, #g:nodes())
      assert.equal("fill", g:nodes()[1].kind)
      assert.matches(", 1 node%)$", tostring(g))
    end)
  end)

  it("too many arguments leave nothing capturing", function()
    local many = table.pack(table.unpack({}, 1, 600000))
    ends(function()
      local s <close> = tp.Stream()
      refused("too many arguments", function()
        tp.capture(s, print, table.unpack(many, 1, many.n))
      end)
      assert.is_false(s:is_capturing())
    end)
  end)
end)

describe("the end of a script", function()
  it("waits for graphs, runs their callbacks, closes what is open", function()
    local r = run.script [[
local tp = require "tpstream"
local gate = require "spec.support.gate"
local b = tp.pinned("i32", 1)
local flag = tp.zeros("i32", 1)
G = tp.capture({ params = { v = 1 } }, function(p)
  gate.run(nil, "add", b, 0, p.v)
  tp.graph_if(flag, function() b:fill(9) end)
  tp.current_stream():on_complete(print, "done")
end)
G:launch()
G:launch { v = 5 }
-- The command waits by itself.
if not arg[-1]:match "tpstream" then tp.current_stream():synchronize() end
]]
    assert.equal("done\ndone\n", r.stdout, r.stderr)
    assert.equal(0, r.status)
  end)

  it("in the middle of a capture leaves nothing behind", function()
    for _, ending in ipairs { "os.exit(0, true)", "os.exit(0)", "error 'no'" } do
      local r = run.script([[
local tp = require "tpstream"
local b = tp.zeros("i32", 1)
tp.capture(function()
  b:fill(1)
  tp.graph_if(b, function()
    b:fill(2)
    ]] .. ending .. [[

  end)
end)
]])
      assert.equal(ending:find "error" and 1 or 0, r.status, r.stderr)
      assert.is_nil(r.signal)
      assert.not_matches("Sanitizer", r.stderr)
    end
  end)
end)
