-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Devices.
local tp = require "tpstream"
local message_of = require("spec.support.errors").text
local pair = require "spec.support.pair"
local run = require "spec.support.run"

describe("devices", function()
  it("are listed, of the kind in use", function()
    local all = tp.devices()
    assert.is_true(#all >= 1)
    for i, d in ipairs(all) do
      assert.equal(i - 1, d:index())
      assert.equal(tp.current_device():kind(), d:kind())
    end
  end)

  it("are interned", function()
    assert.is_true(rawequal(tp.device(0), tp.devices()[1]))
    assert.is_true(tp.device() == tp.current_device())
    assert.equal("here", ({ [tp.device(0)] = "here" })[tp.device(0)])
  end)

  it("are found by ordinal, name and Device", function()
    local d = tp.current_device()
    local label = ("%s:%d"):format(d:kind(), d:index())
    assert.equal(d, tp.device(d:index()))
    assert.equal(d, tp.device(label))
    assert.equal(d, tp.device(d))
    assert.equal(d, tp.device(nil))
    assert.equal(d, tp.device(-1))
    assert.equal(tp.device(0), tp.device(d:kind()))
  end)

  it("of the simulated kind can always be had by name", function()
    local d = tp.device("sim")
    assert.equal("sim", d:kind())
    assert.equal(0, d:index())
    assert.equal(d, tp.device("sim:0"))
  end)

  it("out of range give the number asked for and the number there is",
    function()
      local function text(kind, ordinal, n)
        return ("no device %s:%d: %d %s device%s visible"):format(kind,
          ordinal, n, kind, n == 1 and " is" or "s are")
      end
      local n, kind = #tp.devices(), tp.current_device():kind()
      assert.matches(text(kind, 77, n), message_of(tp.device, 77), 1, true)
      assert.matches(text(kind, n, n), message_of(tp.device, n), 1, true)
      assert.matches("no device sim:99: %d+ sim device",
        message_of(tp.device, "sim:99"))
      if not tp.is_available() then
        assert.matches("no cuda device is visible",
          message_of(tp.device, "cuda:3"), 1, true)
      end
    end)

  for _, bad in ipairs { "gpu", "", "cuda:", "sim:x", "sim:-1", "sim:0 ",
    "sim:1e3", "sim:99999999999999999999" } do
    it(("refuse the name '%s'"):format(bad), function()
      assert.matches("no such device '" .. bad .. "' (a device is \"cuda\", "
        .. '"cuda:N", "sim", "sim:N" or N)', message_of(tp.device, bad), 1,
        true)
    end)
  end

  it("refuse what is no ordinal", function()
    for _, bad in ipairs { 0.5, 0 / 0, math.huge } do
      assert.matches("bad argument #1 to 'device' (number has no integer "
        .. "representation)", message_of(tp.device, bad), 1, true)
    end
    for _, bad in ipairs { {}, print, true } do
      assert.matches("bad argument #1 to 'device' (tpstream.Device expected, "
        .. "got " .. type(bad) .. ")", message_of(tp.device, bad), 1, true)
    end
  end)

  it("negative are the current one, wherever that is", function()
    local _, there = pair.devices()
    tp.with_device(there, function()
      assert.equal(there, tp.device())
      for _, id in ipairs { -1, -2, math.mininteger } do
        assert.equal(there, tp.device(id))
      end
    end)
  end)

  it("are taken in each form by every function", function()
    local d = tp.current_device()
    local forms = { d, d:index(), pair.label(d) }
    if d:index() == 0 then forms[#forms + 1] = d:kind() end
    for _, form in ipairs(forms) do
      local s <close> = tp.Stream(form)
      assert.equal(d, s:device())
      local t <close> = tp.Stream { device = form }
      assert.equal(d, t:device())
      assert.equal(tp.default_stream(), tp.default_stream(form))
      assert.equal(tp.current_stream(), tp.current_stream(form))
      assert.equal(s, tp.ExternalStream(s:handle(), form))
      for _, make in ipairs { tp.buffer, tp.zeros, tp.pinned } do
        local b <close> = make("i32", 1, { device = form })
        assert.equal(d, b:device())
      end
      local file <close> = tp.read_file("/dev/null", "u8", { device = form })
      assert.equal(d, file:device())
      assert.equal("number", type(tp.memory_stats(form).live_count))
      tp.set_device(form)
      assert.equal(d, tp.with_device(form, tp.current_device))
    end
  end)

  it("are refused with one wording by every function", function()
    local s <close> = tp.Stream()
    for _, call in ipairs {
      function(x) tp.Stream(x) end,
      function(x) tp.Stream { device = x } end,
      function(x) tp.default_stream(x) end,
      function(x) tp.current_stream(x) end,
      function(x) tp.ExternalStream(s:handle(), x) end,
      function(x) tp.buffer("i32", 1, { device = x }) end,
      function(x) tp.zeros("i32", 1, { device = x }) end,
      function(x) tp.pinned("i32", 1, { device = x }) end,
      function(x) tp.managed("i32", 1, { device = x }) end,
      function(x) tp.read_file("/dev/null", "u8", { device = x }) end,
      function(x) tp.open_ipc(x, ("x"):rep(81)) end,
      function(x) tp.memory_stats(x) end,
      function(x) tp.set_device(x) end,
      function(x) tp.with_device(x, print) end,
      function(x) tp.Event.from_ipc_handle(x, ("x"):rep(64)) end,
    } do
      assert.matches("device_spec.lua:%d+: no such device 'gpu'",
        message_of(call, "gpu"))
      assert.matches("device_spec.lua:%d+: no device %a+:4711: %d+ %a+ device",
        message_of(call, 4711))
    end
  end)

  it("tell their properties", function()
    local d = tp.current_device()
    assert.is_true(#d:name() > 0)
    local major, minor = d:capability()
    assert.is_true(major >= 5 and minor >= 0)
    local free, total = d:memory()
    assert.is_true(free > 0 and free <= total)
    local least, greatest = d:priority_range()
    assert.is_true(greatest <= least)
    local p = d:properties()
    assert.equal(32, p.warp_size)
    assert.equal(1024, p.max_threads_per_block)
    assert.is_true(p.multiprocessors >= 1)
    assert.equal(d:name(), p.name)
    assert.equal(d:kind(), p.kind)
    assert.equal(d:index(), p.index)
    assert.is_true(p.total_memory >= total)
    assert.same({ major, minor }, { p.capability_major, p.capability_minor })
    assert.same({ least, greatest }, { p.priority_least, p.priority_greatest })
    assert.equal(3, #p.max_grid)
    assert.equal(3, #p.max_block)
  end)

  it("have the priorities of a GPU", function()
    assert.same({ 0, -5 }, { tp.device("sim"):priority_range() })
  end)

  it("show kind and index", function()
    local d = tp.current_device()
    assert.matches(("%s:%d"):format(d:kind(), d:index()), tostring(d), 1, true)
  end)

  it("synchronize, with a timeout if one is given", function()
    local d = tp.current_device()
    assert.is_true(d:synchronize())
    assert.is_true(d:synchronize(100))
    assert.matches("the timeout must not be negative, got -1)",
      message_of(d.synchronize, d, -1), 1, true)
    assert.matches("the timeout is nan", message_of(d.synchronize, d, 0 / 0))
  end)
end)

describe("the kind in use", function()
  local SHOW = [[
    local tp = require "tpstream"
    local all = tp.devices()
    print(tp.device():kind(), tp.device():index(), #all, all[1]:kind())]]

  local function show(env)
    local r = run.script(SHOW, { env = env })
    assert.equal("", r.stderr)
    return r.stdout
  end

  it("is TPSTREAM_DEVICE's", function()
    assert.equal("sim\t0\t3\tsim\n", show { TPSTREAM_DEVICE = "sim",
      TPSTREAM_SIM_DEVICES = 3 })
    assert.equal("sim\t2\t3\tsim\n", show { TPSTREAM_DEVICE = "sim:2",
      TPSTREAM_SIM_DEVICES = 3 })
  end)

  it("else CUDA where there is such a device, else simulated", function()
    local expected = tp.is_available()
      and ("cuda\t0\t%d\tcuda\n"):format(tp.device_count())
      or "sim\t0\t1\tsim\n"
    assert.equal(expected, show { TPSTREAM_DEVICE = false,
      TPSTREAM_SIM_DEVICES = false })
  end)

  it("has one simulated device unless TPSTREAM_SIM_DEVICES says more",
    function()
      local r = run.script([[
        local tp = require "tpstream"
        print(tp.device "sim:0":index(), pcall(tp.device, "sim:1"))]],
        { env = { TPSTREAM_SIM_DEVICES = false } })
      assert.matches("^0\tfalse\t[^\n]*no device sim:1: 1 sim device is "
        .. "visible", r.stdout)
    end)
end)

describe("device_count and is_available", function()
  it("count CUDA devices only", function()
    assert.equal("number", type(tp.device_count()))
    assert.equal(tp.device_count() > 0, tp.is_available())
    if tp.current_device():kind() == "cuda" then
      assert.equal(#tp.devices(), tp.device_count())
    end
  end)
end)

describe("the current device", function()
  it("is set and scoped", function()
    local d = tp.current_device()
    tp.set_device(d)
    assert.equal(d, tp.current_device())
    local a, b, c = tp.with_device(d, function(x, y)
      assert.equal(d, tp.current_device())
      return x, y, nil
    end, 1, 2)
    assert.equal(1, a)
    assert.equal(2, b)
    assert.is_nil(c)
  end)

  it("refuses a bad device", function()
    local before = tp.current_device()
    assert.matches("no device %a+:99:", message_of(tp.set_device, 99))
    assert.matches("no such device 'gpu'", message_of(tp.set_device, "gpu"))
    assert.matches("no device %a+:99:", message_of(tp.with_device, 99, print))
    assert.matches("bad argument #2 to 'with_device' (function expected, got "
      .. "number)", message_of(tp.with_device, 0, 5), 1, true)
    assert.equal(before, tp.current_device())
  end)

  it("comes back when the function fails, the error unchanged", function()
    local _, there = pair.devices()
    local before, object = tp.current_device(), {}
    local ok, raised = pcall(tp.with_device, there, function()
      assert.equal(there, tp.current_device())
      error(object)
    end)
    assert.is_false(ok)
    assert.is_true(rawequal(object, raised))
    assert.equal(before, tp.current_device())
  end)

  it("comes back whatever the function set", function()
    local here, there = pair.devices()
    local before = tp.current_device()
    local s <close> = tp.Stream(here)
    tp.with_device(there, function()
      tp.set_stream(s)
      assert.equal(here, tp.current_device())
      tp.set_device(there)
    end)
    assert.equal(before, tp.current_device())
    assert.equal(tp.default_stream(before), tp.current_stream())
  end)

  it("is what new objects are made on", function()
    local _, there = pair.devices()
    tp.with_device(there, function()
      local s <close> = tp.Stream()
      local b <close> = tp.buffer("i32", 1)
      local e <close> = tp.Event()
      e:record()
      assert.equal(there, s:device())
      assert.equal(there, b:device())
      assert.equal(there, e:device())
      assert.is_true(there:synchronize())
    end)
  end)

  it("with nil changes nothing", function()
    local _, there = pair.devices()
    tp.with_device(there, function()
      tp.set_device(nil)
      assert.equal(there, tp.with_device(nil, tp.current_device))
    end)
  end)

  it("belongs to the running coroutine", function()
    local _, there = pair.devices()
    local before = tp.current_device()
    local co = coroutine.wrap(function()
      tp.with_device(there, function()
        coroutine.yield(tp.current_device())
        coroutine.yield(tp.current_device())
      end)
      coroutine.yield(tp.current_device())
      tp.set_device(there)
      coroutine.yield(tp.current_device())
    end)
    for _, expected in ipairs { there, there, before, there } do
      assert.equal(expected, co())
      assert.equal(before, tp.current_device())
    end
    local inherits = coroutine.wrap(function() return tp.current_device() end)
    assert.equal(there, tp.with_device(there, inherits))
  end)

  it("is switched by set_stream of another device's stream", function()
    local here, there = pair.devices()
    local before, first = tp.current_device(), tp.current_stream()
    local s <close> = tp.Stream(there)
    tp.set_device(here)
    tp.set_stream(s)
    assert.equal(there, tp.current_device())
    assert.equal(s, tp.current_stream())
    assert.equal(s, tp.current_stream(there))
    assert.equal(tp.default_stream(here), tp.current_stream(here))
    tp.set_stream(tp.default_stream(there))
    tp.set_device(before)
    tp.set_stream(first)
    assert.equal(before, tp.current_device())
  end)

  it("gives a number that is too large as it was asked for", function()
    for _, asked in ipairs { 1 << 40, 2147483648, "sim:99999999999" } do
      local _, err = pcall(tp.device, asked)
      assert.matches(tostring(asked):match "%d+$", tostring(err), 1, true)
    end
  end)

  it("takes no name with NUL", function()
    for _, name in ipairs { "sim\0", "sim:0\0x" } do
      local _, err = pcall(tp.device, name)
      assert.matches("must not contain NUL", tostring(err))
      _, err = pcall(tp.buffer, "f32", 1, { device = name })
      assert.matches("must not contain NUL", tostring(err))
    end
  end)

  it("changes with another device's stream and comes back", function()
    local here, there = tp.current_device(), tp.device("sim")
    if here == there then
      if #tp.devices() < 2 then
        pending "needs two devices (TPSTREAM_SIM_DEVICES=2)"
        return
      end
      there = tp.device(1)
    end
    local s <close> = tp.Stream(there)
    tp.with_stream(s, function()
      assert.equal(there, tp.current_device())
      assert.equal(s, tp.current_stream())
      assert.equal(there, tp.current_stream():device())
    end)
    assert.equal(here, tp.current_device())
    assert.equal(here, tp.current_stream():device())
    tp.with_device(there, function()
      assert.equal(there, tp.current_stream():device())
      assert.equal(here, tp.current_stream(here):device())
    end)
    assert.equal(tp.default_stream(here), tp.current_stream())
  end)
end)

describe("the module", function()
  it("tells its version and is not a global", function()
    assert.matches("^%d+%.%d+%.%d+$", tp._VERSION)
    assert.is_nil(rawget(_G, "tpstream"))
  end)
end)
