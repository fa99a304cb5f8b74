-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, conventions and errors: what holds for handles of every
-- type, for every table of options, and for every error.
local tp = require "tpstream"
local message_of = require("spec.support.errors").object
local gate = require "spec.support.gate"
local pair = require "spec.support.pair"
local program = require "spec.support.program"

local SOURCE = [=[
extern "C" __global__ void touch(int *p) { p[0] = 1; }
__device__ int counter;
]=]

local shared_module

-- Makes a handle of each type.
local MAKE = {
  Stream = function() return tp.Stream() end,
  Event = function() return tp.Event() end,
  Buffer = function() return tp.buffer("i32", 4) end,
  Module = function() return program("handle", SOURCE) end,
  Kernel = function()
    shared_module = shared_module or program("handle", SOURCE)
    return shared_module:kernel "touch"
  end,
  Graph = function() return tp.capture(function() end) end,
  Texture = function()
    local b <close> = tp.buffer("f32", 4)
    return tp.texture(b)
  end,
  Surface = function() return tp.surface("f32", { width = 4 }) end,
}
local TYPES = { "Stream", "Event", "Buffer", "Module", "Kernel", "Graph",
  "Texture", "Surface" }

local function methods_of(handle)
  local meta = debug.getmetatable(handle)
  local list = {}
  local index = meta.__index
  for name, method in pairs(type(index) == "table" and index or meta) do
    if type(name) == "string" and not name:find "^__" and name ~= "close" then
      list[name] = method
    end
  end
  return list
end

-- Where methods can't be listed (a Buffer's __index is a function).
local BUFFER_METHODS = { "write", "read", "bytes", "copy_to", "fill", "slice",
  "count", "dtype", "nbytes", "ptr", "device" }

for _, name in ipairs(TYPES) do
  local word = name:lower()

  describe("a " .. word, function()
    it("has a registry name and the metamethods", function()
      local handle <close> = MAKE[name]()
      local meta = debug.getmetatable(handle)
      assert.equal("userdata", type(handle))
      assert.equal("tpstream." .. name, meta.__name)
      assert.is_true(rawequal(meta,
        debug.getregistry()["tpstream." .. name]))
      for _, event in ipairs { "__close", "__gc", "__tostring" } do
        assert.equal("function", type(meta[event]), event)
      end
      assert.equal("function", type(handle.close))
      assert.matches("^tpstream%." .. name .. " %(", tostring(handle))
      assert.not_matches("closed", tostring(handle))
    end)

    it("closes any number of times, in every way", function()
      local handle = MAKE[name]()
      local meta, close = debug.getmetatable(handle), handle.close
      for _ = 1, 2 do
        assert.equal(0, select("#", close(handle)))
        meta.__close(handle)
        assert.equal("tpstream." .. name .. " (closed)", tostring(handle))
      end
      local other = MAKE[name]()
      do local _ <close> = other end
      assert.equal("tpstream." .. name .. " (closed)", tostring(other))
      close(other)
    end)

    it("closed refuses every method, with the line of the call", function()
      local handle = MAKE[name]()
      local methods = methods_of(handle)
      if name == "Buffer" then
        for _, method in ipairs(BUFFER_METHODS) do
          methods[method] = handle[method]
        end
      end
      handle:close()
      local count = 0
      for method, call in pairs(methods) do
        local message = message_of(function() call(handle) end)
        assert.equal("string", type(message), method)
        assert.matches("^%S*handle_spec%.lua:%d+: attempt to use a closed "
          .. word .. "$", message, method)
        count = count + 1
      end
      assert.is_true(count >= 5)
    end)
  end)
end

describe("a closed handle", function()
  local open, touch
  setup(function()
    open, touch = tp.zeros("i32", 64), MAKE.Kernel()
  end)
  teardown(function()
    open:close()
    touch:close()
    open, touch = nil, nil
  end)

  local function run_task(x) tp.run(function() tp.await(x) end) end
  local function texture(fn)
    local t <close> = tp.texture(open)
    fn(t)
  end
  -- What takes a handle of that type, apart from the calls in stream_spec.
  local USES = {
    stream = { function(s) touch:launch({ grid = 1, block = 1, stream = s }) end,
      function(s) touch:bind { grid = 1, block = 1, stream = s } end,
      function(s) tp.benchmark(print, { stream = s }) end,
      function(s) tp.capture(s, print) end,
      function(s) tp.capture({ stream = s }, print) end,
      function(s) open:copy_to(open, { count = 1, at = 5, stream = s }) end,
      function(s) open:dlpack { stream = s } end,
      function(s) tp.zeros("i32", 1, { stream = s }) end,
      function(s) texture(function(t) t:copy_to(open, { stream = s }) end) end,
      function(s)
        local g <close> = tp.capture(function() end)
        g:launch(s)
      end,
      function(s)
        local e <close> = tp.Event()
        e:record(s)
      end,
      function(s)
        local e <close> = tp.Event()
        e:wait(s)
      end,
      function(s) s:on_complete(print) end, run_task },
    event = { function(e) tp.default_stream():wait_event(e) end,
      function(e) tp.default_stream():record_event(e) end,
      function(e)
        local start <close> = tp.Event(true)
        start:elapsed_time(e)
      end, run_task },
    buffer = { function(b) tp.texture(b) end, function(b) open:write(b) end,
      function(b) texture(function(t) t:write(b) end) end,
      function(b) texture(function(t) t:copy_to(b) end) end,
      function(b) tp.capture(function() tp.graph_if(b, print) end) end,
      function(b) tp.kernels.sum(b) end },
    graph = { function(g)
      local whole <close> = tp.capture(function() end)
      whole:add(g)
    end },
    module = { function(m) tp.link { m } end },
  }
  for word, uses in pairs(USES) do
    it("is no argument: " .. word, function()
      local handle = MAKE[word:gsub("^%l", string.upper)]()
      handle:close()
      for i, use in ipairs(uses) do
        assert.matches("attempt to use a closed " .. word,
          message_of(use, handle), 1, true, i)
      end
    end)
  end
end)

describe("a closed buffer", function()
  it("refuses # and serves as no argument", function()
    local closed = tp.buffer("i32", 4)
    closed:close()
    local open <close> = tp.zeros("i32", 4)
    local touch <close> = MAKE.Kernel()
    for _, call in ipairs {
      function() return #closed end,
      function() open:write(closed) end,
      function() open:copy_to(closed) end,
      function() touch:launch({ grid = 1, block = 1 }, closed) end,
      function() touch:bind { grid = 1, block = 1 } (closed) end,
      function() touch:forall(1, closed) end,
      function() return closed[1] end,
      function() closed[1] = 1 end,
    } do
      assert.matches("closed buffer", message_of(call))
    end
  end)
end)

describe("an unknown option", function()
  local OPTIONS = {
    Stream = { function(o) tp.Stream(o) end, "device, priority, blocking" },
    Event = { function(o) tp.Event(o) end,
      "enable_timing, blocking, interprocess" },
    buffer = { function(o) tp.buffer("i32", 1, o) end, "stream, device" },
    copy_to = { function(o)
      local b <close> = tp.buffer("i32", 1)
      b:copy_to(b, o)
    end, "first, count, at, stream" },
    compile = { function(o) tp.compile(SOURCE, o) end, "name, std, " },
    compile_file = { function(o) tp.compile_file("/dev/null", o) end,
      "name, std, " },
    launch = { function(o)
      local k <close> = MAKE.Kernel()
      k:launch(o)
    end, "grid, block, shared, stream, cooperative, cluster" },
    bind = { function(o)
      local k <close> = MAKE.Kernel()
      k:bind(o)
    end, "grid, block, shared, stream, cooperative, cluster" },
    benchmark = { function(o) tp.benchmark(print, o) end,
      "count, min_time, stream, warmup" },
    zeros = { function(o) tp.zeros("i32", 1, o) end, "stream, device" },
    pinned = { function(o) tp.pinned("i32", 1, o) end, "device" },
    managed = { function(o) tp.managed("i32", 1, o) end, "device" },
    read_file = { function(o) tp.read_file("/dev/null", "u8", o) end,
      "offset, count, device" },
    load = { function(o) tp.load("", o) end, "untrusted, relocatable" },
    compile_async = { function(o) tp.compile_async(SOURCE, o) end,
      "name, std, " },
    map = { function(o) tp.map("y = x", { x = "f32*", y = "f32*" }, o) end,
      "preamble" },
    capture = { function(o) tp.capture(o, print) end, "params, mode, stream" },
    texture = { function(o)
      local b <close> = tp.buffer("f32", 4)
      tp.texture(b, o)
    end, "width, height, " },
    surface = { function(o) tp.surface("f32", o) end, "width, height, " },
    dlpack = { function(o)
      local b <close> = tp.buffer("f32", 4)
      b:dlpack(o)
    end, "stream" },
    random_uniform = { function(o)
      local b <close> = tp.buffer("f32", 4)
      tp.kernels.random_uniform(b, o)
    end, "high, low, offset, seed" },
  }
  for name, row in pairs(OPTIONS) do
    it("of " .. name .. " is named, with those there are", function()
      local message = message_of(row[1], { wrong = 1 })
      assert.matches("^%S*handle_spec%.lua:%d+: bad argument #%d to '" .. name
        .. "' %(unknown option 'wrong' %(there are ", message)
      assert.matches(row[2], message, 1, true)
    end)
  end

  it("may be anything", function()
    assert.matches("unknown option 1 (there are", message_of(tp.Stream,
      { [1] = "sim" }), 1, true)
    assert.matches("unknown option true (there are", message_of(tp.Stream,
      { [true] = 1 }), 1, true)
  end)
end)

describe("misuse", function()
  local function text(fn)
    return (message_of(fn):gsub("^%S+%.lua:%d+: ", ""))
  end

  it("is a string in Lua's own wording, the method's object not counted",
    function()
      local s <close> = tp.Stream()
      local e <close> = tp.Event()
      assert.matches("^%S*handle_spec%.lua:%d+: ",
        message_of(function() s:wait_event(nil) end))
      assert.equal("bad argument #1 to 'wait_event' (tpstream.Event expected, "
        .. "got nil)", text(function() s:wait_event(nil) end))
      assert.equal("bad argument #2 to 'wait_event' (tpstream.Event expected, "
        .. "got nil)", text(function() s.wait_event(s, nil) end))
      assert.equal("bad argument #1 to 'record_event' (tpstream.Event "
        .. "expected, got tpstream.Stream)",
        text(function() s:record_event(s) end))
      assert.equal("bad argument #2 to 'wait_stream' (tpstream.Stream "
        .. "expected, got boolean)",
        text(function() s:wait_stream(s, true) end))
      assert.equal("bad argument #1 to 'query' (tpstream.Stream expected, got "
        .. "tpstream.Event)", text(function() s.query(e) end))
      assert.equal("bad argument #1 to 'query' (tpstream.Stream expected, got "
        .. "no value)", text(function() s.query() end))
      assert.equal("bad argument #1 to 'record' (tpstream.Stream expected, "
        .. "got tpstream.Event)", text(function() e:record(e) end))
      assert.equal("bad argument #1 to 'elapsed_time' (tpstream.Event "
        .. "expected, got number)", text(function() e:elapsed_time(1) end))
    end)

  it("names its function also when that is called by pcall", function()
    local s <close> = tp.Stream()
    for name, call in pairs {
      Event = function() return pcall(tp.Event, 42) end,
      Stream = function() return pcall(tp.Stream, nil, "high") end,
      set_stream = function() return pcall(tp.set_stream, 1) end,
      synchronize = function() return pcall(s.synchronize, s, -1) end,
      from_ipc_handle = function()
        return pcall(tp.Event.from_ipc_handle, 0, 5)
      end,
    } do
      local ok, message = call()
      assert.is_false(ok)
      assert.matches("to '" .. name .. "' (", message, 1, true)
    end
  end)

  it("leaves nothing queued when the last of several arguments is wrong",
    function()
      local s <close> = tp.Stream()
      local t <close> = tp.Stream()
      local g <close> = gate.new()
      g:hold(t)
      assert.is_false(pcall(s.wait_stream, s, t, 5))
      assert.is_false(pcall(tp.barrier, s, t, 5))
      assert.is_true(s:synchronize(20000))
      g:open()
    end)
end)

describe("an error of a device", function()
  it("is an object with its fields and one text from the script's line",
    function()
      local kind = tp.current_device():kind()
      local n = #tp.devices()
      local line = debug.getinfo(1, "l").currentline + 1
      local ok, e = pcall(function() tp.device(1234) end)
      assert.is_false(ok)
      assert.equal("tpstream.Error", getmetatable(e).__name)
      assert.equal("cudaErrorInvalidDevice", e.code)
      assert.equal(101, e.number)
      assert.equal(("no device %s:1234: %d %s device%s visible"):format(kind, n,
        kind, n == 1 and " is" or "s are"), e.message)
      assert.matches("handle_spec.lua:" .. line, e.where, 1, true)
      assert.is_nil(e.kernel)
      assert.is_nil(e.stream)
      assert.equal(e.where .. ": " .. e.message .. " (cudaErrorInvalidDevice)",
        tostring(e))
    end)

  it("ends with its hint", function()
    local ok, e = pcall(tp.buffer, "u8", 1 << 50)
    assert.is_false(ok)
    assert.equal("cudaErrorMemoryAllocation", e.code)
    assert.equal(2, e.number)
    assert.matches("close buffers", e.hint)
    assert.equal("\n  hint: " .. e.hint, tostring(e):match "\n.*")
  end)
end)

describe("the collector", function()
  it("neither waits for what is dropped nor stops its work", function()
    local out <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local g <close> = gate.new()
    local e <close> = tp.Event()
    do
      local s = tp.Stream()
      local b = tp.buffer("i32", { 5 }, { stream = s })
      g:hold(s)
      g.held = {}
      s:record_event() -- dropped at once
      tp.with_stream(s, b.copy_to, b, out)
      e:record(s)
    end
    collectgarbage()
    collectgarbage()
    assert.is_false(e:query())
    g:open()
    assert.is_true(e:synchronize())
    assert.same({ 5 }, out:read())
  end)

  it("leaves the current device as it is", function()
    local _, there = pair.devices()
    local before = tp.current_device()
    do
      local s = tp.Stream(there)
      local b = tp.buffer("i32", 64, { device = there })
      local e = s:record_event()
      tp.with_stream(s, b.fill, b, 1)
      s:on_complete(function() e:query() end)
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, tp.current_device())
    assert.equal(before, tp.current_stream():device())
    there:synchronize()
    collectgarbage()
    assert.equal(before, tp.current_device())
  end)
end)
