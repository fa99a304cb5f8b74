-- api.md, section Devices.
local tp = require "tpstream"

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
      local n = #tp.devices()
      local ok, message = pcall(tp.device, 77)
      assert.is_false(ok)
      assert.matches("77", tostring(message))
      assert.matches(tostring(n), tostring(message))
      ok, message = pcall(tp.device, "sim:99")
      assert.is_false(ok)
      assert.matches("99", tostring(message))
    end)

  for _, bad in ipairs { "gpu", "", "cuda:", "sim:x", "sim:-1", "sim:0 ",
    "sim:1e3", "sim:99999999999999999999" } do
    it(("refuse the name '%s'"):format(bad), function()
      assert.has_error(function() tp.device(bad) end)
    end)
  end

  it("refuse what is no ordinal", function()
    for _, bad in ipairs { 0.5, 0 / 0, math.huge, {}, print, true, 1 << 40 } do
      assert.has_error(function() tp.device(bad) end)
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
    assert.has_error(function() d:synchronize(-1) end)
    assert.has_error(function() d:synchronize(0 / 0) end)
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
    assert.has_error(function() tp.set_device(99) end)
    assert.has_error(function() tp.set_device("gpu") end)
    assert.has_error(function() tp.with_device(99, print) end)
    assert.has_error(function() tp.with_device(0, 5) end)
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
