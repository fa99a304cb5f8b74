-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Memory.
local tp = require "tpstream"
local message_of = require("spec.support.errors").text
local gate = require "spec.support.gate"
local pair = require "spec.support.pair"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"

local DTYPES = { -- name, short name, bytes, pack format, least, most
  { "int8", "i8", 1, "<i1", -128, 127 },
  { "uint8", "u8", 1, "<I1", 0, 255 },
  { "int16", "i16", 2, "<i2", -32768, 32767 },
  { "uint16", "u16", 2, "<I2", 0, 65535 },
  { "int32", "i32", 4, "<i4", -2147483648, 2147483647 },
  { "uint32", "u32", 4, "<I4", 0, 4294967295 },
  { "int64", "i64", 8, "<i8", math.mininteger, math.maxinteger },
  { "uint64", "u64", 8, "<i8", math.mininteger, math.maxinteger },
  { "float16", "f16", 2 },
  { "bfloat16", "bf16", 2 },
  { "float32", "f32", 4, "<f" },
  { "float64", "f64", 8, "<d" },
}

describe("a buffer of", function()
  for _, row in ipairs(DTYPES) do
    local name, short, size, format, least, most = table.unpack(row)

    it(name .. " has a size and both names", function()
      local a <close> = tp.buffer(name, 10)
      local b <close> = tp.buffer(short, 10)
      assert.equal(name, a:dtype())
      assert.equal(name, b:dtype())
      assert.equal(10, #a)
      assert.equal(10, a:count())
      assert.equal(10 * size, a:nbytes())
    end)

    if least then
      it(name .. " keeps its whole range", function()
        local g = numbers.generator(size)
        local values = { least, most, 0, 1, most - 1, least + 1 }
        for _ = 1, 100 do
          values[#values + 1] = least == math.mininteger and g.bits()
            or g.int(least, most)
        end
        local b <close> = tp.buffer(name, values)
        assert.same(values, b:read())
        local bytes = b:bytes()
        for i, v in ipairs(values) do
          assert.equal(v, (string.unpack(format, bytes, (i - 1) * size + 1)))
        end
      end)

      it(name .. " takes floats with integer values", function()
        local b <close> = tp.buffer(name, { 3.0, 0.0, -0.0 })
        local r = b:read()
        assert.same({ 3, 0, 0 }, r)
        assert.equal("integer", math.type(r[1]))
      end)

      it(name .. " refuses what does not fit", function()
        for _, bad in ipairs { 0.5, -1.25, 0 / 0, math.huge, -math.huge, 1e30 } do
          local text = message_of(tp.buffer, name, { 1, bad })
          assert.matches("element 2", text)
        end
        if size < 8 then
          for _, bad in ipairs { least - 1, most + 1, most + 1.0 } do
            local text = message_of(tp.buffer, name, { bad })
            assert.matches(name, text)
          end
        end
      end)
    end
  end
end)

describe("floating-point buffers", function()
  it("float64 keeps every bit", function()
    local g, values = numbers.generator(9), {}
    for i = 1, 200 do values[i] = string.unpack("<d", string.pack("<i8", g.bits())) end
    values[#values + 1] = math.huge
    values[#values + 1] = -0.0
    values[#values + 1] = 5e-324
    local b <close> = tp.buffer("f64", values)
    local r = b:read()
    for i, v in ipairs(values) do
      if v == v then
        assert.equal(numbers.bits64(v), numbers.bits64(r[i]))
      else
        assert.is_true(r[i] ~= r[i])
      end
    end
  end)

  it("float32 rounds to nearest and keeps infinities and NaN", function()
    local b <close> = tp.buffer("f32", { 0.1, 1 / 3, math.huge, -math.huge,
      0 / 0, -0.0, 1e-45, 3.4028234663852886e38 })
    local r = b:read()
    assert.equal(numbers.f32(0.1), r[1])
    assert.equal(numbers.f32(1 / 3), r[2])
    assert.equal(math.huge, r[3])
    assert.equal(-math.huge, r[4])
    assert.is_true(r[5] ~= r[5])
    assert.equal(-math.huge, 1 / r[6])
    assert.is_true(r[7] > 0)
    assert.equal(3.4028234663852886e38, r[8])
  end)

  it("refuse a finite number beyond their range", function()
    assert.matches("float32", message_of(tp.buffer, "f32", { 1e39 }))
    assert.matches("element 3", message_of(tp.buffer, "f32", { 1, 2, -1e300 }))
    assert.matches("float16", message_of(tp.buffer, "f16", { 65520 }))
    assert.matches("bfloat16", message_of(tp.buffer, "bf16", { 3.4e38 }))
  end)

  it("float16 rounds to nearest even", function()
    local cases = { -- value, bits
      { 0, 0x0000 }, { -0.0, 0x8000 }, { 1, 0x3c00 }, { -2, 0xc000 },
      { 65504, 0x7bff }, { 65519.99, 0x7bff }, { 2 ^ -24, 0x0001 },
      { 2 ^ -25, 0x0000 }, { 2 ^ -25 * 1.0001, 0x0001 }, { 2 ^ -14, 0x0400 },
      { 2 ^ -14 - 2 ^ -24, 0x03ff }, { 1 + 2 ^ -11, 0x3c00 },
      { 1 + 3 * 2 ^ -11, 0x3c02 }, { 1 + 2 ^ -11 + 2 ^ -40, 0x3c01 },
      { 0.1, 0x2e66 }, { math.huge, 0x7c00 }, { 2047.5, 0x6800 },
    }
    local values, bits = {}, {}
    for i, c in ipairs(cases) do values[i], bits[i] = c[1], c[2] end
    local b <close> = tp.buffer("f16", values)
    local bytes = b:bytes()
    for i = 1, #cases do
      assert.equal(bits[i], (string.unpack("<I2", bytes, i * 2 - 1)), values[i])
    end
  end)

  it("float16 and bfloat16 read back every bit pattern", function()
    local all = {}
    for i = 0, 65535 do all[i + 1] = string.pack("<I2", i) end
    local bytes = table.concat(all)
    for _, name in ipairs { "f16", "bf16" } do
      local b <close> = tp.buffer(name, bytes)
      local r = b:read()
      local again <close> = tp.buffer(name, r)
      local back = again:bytes()
      for i = 0, 65535 do
        if r[i + 1] == r[i + 1] then
          assert.equal(i, (string.unpack("<I2", back, i * 2 + 1)))
        end
      end
    end
  end)

  it("bfloat16 rounds to nearest even", function()
    local b <close> = tp.buffer("bf16", { 1, 1 + 2 ^ -8, 1 + 3 * 2 ^ -8,
      1 + 2 ^ -8 + 2 ^ -30, 3.3895313892515355e38 })
    assert.same({ 1, 1, 1 + 2 ^ -6, 1 + 2 ^ -7, 3.3895313892515355e38 },
      b:read())
  end)
end)

describe("making a buffer", function()
  it("from a string takes raw little-endian bytes", function()
    local b <close> = tp.buffer("i32", string.pack("<i4i4", -5, 7))
    assert.same({ -5, 7 }, b:read())
    assert.equal(string.pack("<i4i4", -5, 7), b:bytes())
  end)

  it("refuses a string that is not a whole number of elements", function()
    assert.matches("bad argument #2 to 'buffer' (5 bytes are no whole number of "
      .. "int32 elements (4 bytes each))", message_of(tp.buffer, "i32", "12345"), 1,
      true)
  end)

  it("of no elements works everywhere", function()
    for _, init in ipairs { 0, "" } do
      local b <close> = tp.buffer("f32", init)
      assert.equal(0, #b)
      assert.equal(0, b:nbytes())
      assert.same({}, b:read())
      assert.equal("", b:bytes())
      b:fill(1)
      b:write({})
      b:write("")
      local c <close> = tp.zeros("f32", 0)
      b:copy_to(c)
      local p <close> = tp.pinned("f32", 0)
      assert.equal(0, #p)
      local t <close> = tp.buffer("f32", {})
      assert.equal(0, #t)
      assert.equal(0, #t:slice(1, 0))
    end
  end)

  it("zeros are zero", function()
    for _, name in ipairs { "u8", "f64", "i32" } do
      local dirty <close> = tp.buffer(name, 1000)
      dirty:fill(1)
      dirty:close()
      local b <close> = tp.zeros(name, 1000)
      for _, v in ipairs(b:read()) do assert.equal(0, v) end
    end
  end)

  it("refuses an unknown dtype, naming those there are", function()
    local text = message_of(tp.buffer, "float", 3)
    assert.matches("'float'", text)
    assert.matches("float32", text)
    assert.matches("uint8", text)
    assert.matches("unknown element type '5'", message_of(tp.buffer, 5, 3))
    assert.matches("bad argument #1 to 'buffer' (string expected, got nil)",
      message_of(tp.buffer, nil, 3), 1, true)
    assert.matches("unknown element type ''", message_of(tp.zeros, "", 3))
  end)

  it("refuses a bad count", function()
    for name, make in pairs { buffer = tp.buffer, zeros = tp.zeros,
      pinned = tp.pinned, managed = tp.managed } do
      local function text(...)
        return message_of(make, "f32", ...):match(
          "bad argument #2 to '" .. name .. "' (%b())")
      end
      for _, bad in ipairs { -1, math.mininteger } do
        assert.equal(("(the count must not be negative, got %d)"):format(bad),
          text(bad))
      end
      for _, bad in ipairs { 0.5, 0 / 0, math.huge } do
        assert.equal("(number has no integer representation)", text(bad))
      end
      local expected = name == "zeros" and "number" or "number, table or string"
      assert.matches("(" .. expected .. " expected, got n", text(), 1, true)
      assert.equal("(" .. expected .. " expected, got boolean)", text(true))
    end
    assert.matches("bad argument #2 to 'zeros' (number expected, got table)",
      message_of(tp.zeros, "f32", {}), 1, true)
  end)

  it("refuses a count whose bytes overflow", function()
    for _, count in ipairs { math.maxinteger, 1 << 61 } do
      assert.matches(("%d elements of float64 are more bytes than there can be")
        :format(count), message_of(tp.buffer, "f64", count), 1, true)
    end
  end)

  it("out of device memory gives the size asked for, free and total",
    function()
      local ok, e = pcall(tp.buffer, "u8", 1 << 50)
      assert.is_false(ok)
      assert.equal("cudaErrorMemoryAllocation", e.code)
      assert.equal(2, e.number)
      assert.matches(tostring(1 << 50), tostring(e), 1, true)
      local _, total = tp.current_device():memory()
      assert.matches("%d+ free of " .. total, tostring(e))
      local b <close> = tp.buffer("u8", 16) -- the next one is fine
      assert.equal(16, #b)
    end)

  it("refuses more pinned memory than the machine has", function()
    for _, bytes in ipairs { 1 << 42, 1 << 50 } do
      local ok, e = pcall(tp.pinned, "u8", bytes)
      assert.is_false(ok)
      assert.equal("cudaErrorMemoryAllocation", e.code)
      assert.matches(tostring(bytes), tostring(e), 1, true)
    end
  end)

  it("refuses holes and other types in a table", function()
    assert.matches("element 2", message_of(tp.buffer, "f32", { 1, "2", 3 }))
    assert.matches("element 1", message_of(tp.buffer, "i32", { {} }))
    assert.matches("element 2", message_of(tp.buffer, "u8", { 1, false }))
    assert.matches("element 2", message_of(tp.buffer, "f32", { 1, nil, 3 }))
  end)

  it("refuses a table that lies about its length", function()
    for _, length in ipairs { -1, 1 << 62, math.mininteger } do
      local liar = setmetatable({}, { __len = function() return length end })
      assert.matches("the table's length is not sensible",
        message_of(tp.buffer, "f32", liar))
    end
    local liar = setmetatable({}, { __len = function() return 2.5 end })
    assert.matches("length is not an integer", message_of(tp.buffer, "f32", liar))
    liar = setmetatable({ 1 }, { __len = function() return 2 end })
    assert.matches("element 2", message_of(tp.buffer, "f32", liar))
  end)

  it("takes a stream and a device", function()
    local s <close> = tp.Stream()
    local b <close> = tp.buffer("i32", { 1, 2 }, { stream = s })
    s:synchronize()
    assert.same({ 1, 2 }, b:read())
    local c <close> = tp.buffer("i32", 4, { device = tp.current_device() })
    assert.equal(tp.current_device(), c:device())
    assert.matches("'streem'", message_of(tp.buffer, "i32", 1, { streem = s }))
    local here, there = pair.devices()
    local t <close> = tp.Stream(there)
    assert.matches(("the stream belongs to %s, the device asked for is %s")
      :format(pair.label(there), pair.label(here)), message_of(tp.buffer, "i32",
        1, { stream = t, device = here }), 1, true)
  end)

  it("runs out never by dropped buffers alone", function()
    -- 64 buffers of 256 MiB: four times the simulated device's memory
    if tp.current_device():kind() == "cuda" then
      local _, total = tp.current_device():memory()
      assert.is_true(total > 0)
    end
    for _ = 1, 64 do tp.buffer("u8", 256 << 20) end
    collectgarbage()
  end)
end)

describe("write and read", function()
  it("from an element on", function()
    local b <close> = tp.zeros("i32", 8)
    b:write({ 1, 2, 3 }, 3)
    assert.same({ 0, 0, 1, 2, 3, 0, 0, 0 }, b:read())
    b:write(string.pack("<i4", -9), 8)
    assert.same({ 3, 0, 0, -9 }, b:read(5))
    assert.same({ 1, 2 }, b:read(3, 2))
    assert.equal(string.pack("<i4i4", 1, 2), b:bytes(3, 2))
    assert.same({}, b:read(9))
    assert.same({}, b:read(4, 0))
  end)

  it("from another buffer", function()
    local a <close> = tp.buffer("i32", { 1, 2, 3 })
    local b <close> = tp.zeros("i32", 5)
    b:write(a, 2)
    assert.same({ 0, 1, 2, 3, 0 }, b:read())
  end)

  it("out of range name the range asked for and the one there is", function()
    local b <close> = tp.zeros("i32", 8)
    for _, call in ipairs {
      function() b:write({ 1, 2, 3 }, 7) end,
      function() b:read(7, 3) end,
      function() b:bytes(7, 3) end,
      function() b:slice(7, 3) end,
    } do
      assert.matches("buffer_spec.lua:%d+: range 7%.%.9 of a buffer of 8 "
        .. "elements$", message_of(call))
    end
  end)

  it("refuse a bad first or count", function()
    local b <close> = tp.zeros("i32", 8)
    local function refused(text, ...)
      for _, call in ipairs(table.pack(...)) do
        assert.matches(text, message_of(table.unpack(call)), 1, true)
      end
    end
    local function first(bad, text)
      refused(text, { b.read, b, bad }, { b.bytes, b, bad },
        { b.write, b, { 1 }, bad }, { b.slice, b, bad, 1 })
    end
    for _, bad in ipairs { 0, -1, 10, math.mininteger, math.maxinteger } do
      first(bad, ("range %d..%d of a buffer of 8 elements"):format(bad, bad))
    end
    for _, bad in ipairs { 0.5, 0 / 0, math.huge } do
      first(bad, "number has no integer representation")
    end
    first("x", "number expected, got string")
    for bad, text in pairs {
      [-1] = "the count must not be negative, got -1",
      [9] = "range 1..9 of a buffer of 8 elements",
      [0.5] = "number has no integer representation",
      [math.maxinteger] = "range 1..9223372036854775807 of a buffer of 8 ",
      [{}] = "number expected, got table",
    } do
      refused(text, { b.read, b, 1, bad }, { b.bytes, b, 1, bad },
        { b.slice, b, 1, bad })
    end
  end)

  it("refuse what is no source", function()
    local b <close> = tp.zeros("i32", 8)
    assert.matches("5 bytes are no whole number of int32 elements (4 bytes each)",
      message_of(b.write, b, "12345"), 1, true)
    for _, bad in ipairs { 5, true, print } do
      assert.matches("table, string or tpstream.Buffer expected, got "
        .. type(bad), message_of(b.write, b, bad), 1, true)
    end
    assert.matches("got no value", message_of(b.write, b))
    for _, bad in ipairs { { 1, 2.5 }, { 1, "x" }, { 1, nil, 3 } } do
      assert.matches("element 2", message_of(b.write, b, bad))
    end
  end)

  it("refuse another dtype's buffer", function()
    local a <close> = tp.zeros("f32", 4)
    local b <close> = tp.zeros("i32", 4)
    local text = message_of(b.write, b, a)
    assert.matches("float32", text, 1, true)
    assert.matches("%f[%a]int32", text)
  end)

  it("a failed write changes nothing", function()
    local b <close> = tp.buffer("u8", { 1, 2, 3 })
    message_of(b.write, b, { 9, 9, 999 })
    assert.same({ 1, 2, 3 }, b:read())
  end)

  it("the source may be changed at once", function()
    local b <close> = tp.zeros("i32", 4)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local source = { 1, 2, 3, 4 }
    tp.with_stream(s, function() b:write(source) end)
    for i = 1, 4 do source[i] = -1 end
    source = nil -- luacheck: ignore
    collectgarbage()
    assert.is_false(s:query())
    g:open()
    s:synchronize()
    assert.same({ 1, 2, 3, 4 }, b:read())
  end)

  it("go in stream order", function()
    local b <close> = tp.zeros("i32", 1)
    for i = 1, 200 do
      b:write({ i })
      gate.run(tp.current_stream(), "twice", b, 1)
    end
    assert.same({ 400 }, b:read())
  end)

  it("carry more than the staging ring holds", function()
    local n = 5 << 20 -- 20 MiB
    local g = numbers.generator(77)
    local piece = {}
    for i = 1, 1024 do piece[i] = string.pack("<i8", g.bits()) end
    local text = table.concat(piece):rep(n * 4 // 8192)
    local b <close> = tp.buffer("i32", text)
    assert.is_true(b:bytes() == text)
  end)

  it("small writes in large numbers all arrive", function()
    local n = 3000
    local b <close> = tp.zeros("i32", n)
    for i = 1, n do b:write({ i * 7 }, i) end
    local r = b:read()
    for i = 1, n do assert.equal(i * 7, r[i]) end
  end)
end)

describe("fill", function()
  for _, row in ipairs(DTYPES) do
    local name = row[1]
    it("sets every element of " .. name, function()
      local v = row[6] or -1.5
      local b <close> = tp.zeros(name, 1003)
      b:fill(v)
      for _, x in ipairs(b:read()) do assert.equal(v, x) end
      b:slice(3, 5):fill(1)
      local r = b:read()
      assert.equal(v, r[2])
      assert.equal(1, r[3])
      assert.equal(1, r[7])
      assert.equal(v, r[8])
    end)
  end

  it("refuses what does not fit", function()
    local b <close> = tp.zeros("u8", 4)
    for bad, text in pairs {
      [256] = "256 does not fit uint8 (0 to 255)",
      [-1] = "-1 does not fit uint8 (0 to 255)",
      [0.5] = "0.5 is not a whole number, as uint8 takes",
      ["1"] = "number expected, got string", [b] = "number expected, got tps",
      [true] = "number expected, got boolean" } do
      text = text:gsub("got tps", "got tpstream.Buffer")
      assert.matches("bad argument #2 to 'fill' (" .. text .. ")",
        message_of(b.fill, b, bad), 1, true)
    end
    assert.matches("nan is not a whole number", message_of(b.fill, b, 0 / 0))
    assert.matches("bad argument #2 to 'fill' (value expected)",
      message_of(b.fill, b), 1, true)
    assert.same({ 0, 0, 0, 0 }, b:read())
  end)
end)

describe("copy_to", function()
  it("copies a part", function()
    local a <close> = tp.buffer("i32", { 1, 2, 3, 4, 5 })
    local b <close> = tp.zeros("i32", 5)
    a:copy_to(b)
    assert.same({ 1, 2, 3, 4, 5 }, b:read())
    a:copy_to(b, { first = 2, count = 2, at = 4 })
    assert.same({ 1, 2, 3, 2, 3 }, b:read())
  end)

  it("goes between device and pinned memory, both ways", function()
    local a <close> = tp.buffer("f64", { 1.5, 2.5 })
    local p <close> = tp.pinned("f64", 2)
    local q <close> = tp.pinned("f64", { 8, 9 })
    a:copy_to(p)
    tp.current_stream():synchronize()
    assert.equal(1.5, p[1])
    assert.equal(2.5, p[2])
    q:copy_to(a)
    assert.same({ 8, 9 }, a:read())
    q:copy_to(p)
    tp.current_stream():synchronize()
    assert.equal(9, p[2])
  end)

  it("goes between devices, in both directions", function()
    local here, there = pair.devices()
    local directions = { { here, there }, { there, here } }
    if tp.is_available() then -- through the host
      directions[3] = { tp.device "cuda", tp.device "sim" }
      directions[4] = { tp.device "sim", tp.device "cuda" }
    end
    for _, two in ipairs(directions) do
      local from, to = table.unpack(two)
      local a <close> = tp.buffer("i32", { 1, 2, 3, 4 }, { device = from })
      local b <close> = tp.buffer("i32", { 0, 0, 0, 0 }, { device = to })
      tp.with_device(to, function() tp.current_stream():synchronize() end)
      tp.with_device(from, function()
        a:copy_to(b, { first = 2, count = 2, at = 3 })
        from:synchronize()
      end)
      to:synchronize()
      assert.same({ 0, 0, 2, 3 }, tp.with_device(to, b.read, b))
      assert.equal(to, b:device())
    end
  end)

  it("is asynchronous, on the stream given", function()
    local a <close> = tp.buffer("i32", { 1 })
    local b <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    gate.run(s, "put", a, 0, 5)
    a:copy_to(b, { stream = s })
    assert.is_false(s:query())
    g:open()
    s:synchronize()
    assert.same({ 5 }, b:read())
  end)

  it("checks ranges, dtypes, options and handles", function()
    local a <close> = tp.buffer("i32", { 1, 2, 3 })
    local b <close> = tp.zeros("i32", 2)
    local c <close> = tp.zeros("f32", 3)
    for _, case in ipairs {
      { b, nil, "range 1..3 of a buffer of 2 elements" },
      { b, { first = 3, count = 2 }, "range 3..4 of a buffer of 3 elements" },
      { b, { count = 2, at = 2 }, "range 2..3 of a buffer of 2 elements" },
      { b, { first = 0 }, "range 0..0 of a buffer of 3 elements" },
      { b, { count = -1 }, "field 'count': must not be negative, got -1" },
      { c, nil, "copy of int32 elements into a buffer of float32" },
      { {}, nil, "tpstream.Buffer expected, got table" },
      { nil, nil, "tpstream.Buffer expected, got nil" },
      { b, { count = 1, stream = 5 },
        "field 'stream': tpstream.Stream expected, got number" },
    } do
      assert.matches(case[3], message_of(a.copy_to, a, case[1], case[2]), 1,
        true)
    end
    assert.matches("'frist'", message_of(a.copy_to, a, b, { frist = 1 }))
    local d = tp.zeros("i32", 3)
    d:close()
    assert.matches("closed buffer", message_of(a.copy_to, a, d))
  end)

  it("within one buffer copies what does not overlap", function()
    local a <close> = tp.buffer("i32", { 1, 2, 3, 4 })
    a:copy_to(a, { first = 1, count = 2, at = 3 })
    assert.same({ 1, 2, 1, 2 }, a:read())
    assert.matches("source and destination of a copy overlap",
      message_of(a.copy_to, a, a, { first = 1, count = 3, at = 2 }))
  end)
end)

describe("a slice", function()
  it("shares the memory and keeps it alive", function()
    local b = tp.buffer("i32", { 1, 2, 3, 4, 5, 6 })
    local s <close> = b:slice(3, 2)
    assert.equal(2, #s)
    assert.same({ 3, 4 }, s:read())
    assert.equal(b:ptr() + 8, s:ptr())
    s:write({ 30, 40 })
    assert.same({ 1, 2, 30, 40, 5, 6 }, b:read())
    b:close()
    collectgarbage()
    assert.same({ 30, 40 }, s:read())
  end)

  it("of a slice counts from the slice's start", function()
    local b <close> = tp.buffer("i32", { 1, 2, 3, 4, 5, 6 })
    local s <close> = b:slice(2, 4)
    local t <close> = s:slice(2, 2)
    assert.same({ 3, 4 }, t:read())
    assert.matches("range 2..5 of a buffer of 4 elements",
      message_of(s.slice, s, 2, 4), 1, true)
  end)

  it("closed leaves the others alone", function()
    local b <close> = tp.buffer("i32", { 1, 2 })
    local s = b:slice(1, 1)
    s:close()
    assert.same({ 1, 2 }, b:read())
    assert.matches("closed buffer", message_of(s.read, s))
  end)
end)

describe("pinned memory", function()
  it("is read and written by index", function()
    local h <close> = tp.pinned("i16", { 1, -2, 3 })
    assert.equal(-2, h[2])
    h[2] = 500
    assert.equal(500, h[2])
    assert.equal(3, #h)
    assert.same({ 1, 500, 3 }, h:read())
    assert.equal("int16", h:dtype())
  end)

  it("by index does not wait for queued copies", function()
    local h <close> = tp.pinned("i32", { 1, 2 })
    local from <close> = tp.buffer("i32", { 3, 4 })
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    from:copy_to(h, { stream = s })
    assert.equal(1, h[1])
    h[2] = 5
    assert.equal(5, h[2])
    assert.is_false(s:query())
    g:open()
    s:synchronize()
    assert.same({ 3, 4 }, { h[1], h[2] })
  end)

  it("of every dtype", function()
    for _, row in ipairs(DTYPES) do
      local h <close> = tp.pinned(row[1], 3)
      assert.equal(0, h[1])
      h[3] = row[6] or 0.5
      assert.equal(row[6] or 0.5, h[3])
      assert.equal(0, h[2])
    end
  end)

  it("out of range is an error with index and size", function()
    local h <close> = tp.pinned("f32", 3)
    for _, bad in ipairs { 0, 4, -1, math.maxinteger } do
      local text = message_of(function() return h[bad] end)
      local expected = ("index %d of a buffer of 3 elements"):format(bad)
      assert.matches(expected, text, 1, true)
      assert.matches(expected, message_of(function() h[bad] = 1 end), 1, true)
    end
    assert.matches("index 1.5 is not a whole number",
      message_of(function() return h[1.5] end))
    assert.matches("attempt to set a field of a buffer",
      message_of(function() h.name = 1 end))
    assert.matches("attempt to call a nil value",
      message_of(function() return h.nonsense() end))
  end)

  it("checks what is written", function()
    local h <close> = tp.pinned("u8", 2)
    for bad, text in pairs {
      [256] = "256 does not fit uint8 (0 to 255)",
      [-1] = "-1 does not fit uint8 (0 to 255)",
      [0.5] = "0.5 is not a whole number, as uint8 takes",
      ["1"] = "number expected, got string" } do
      assert.matches("buffer_spec.lua:%d+: element 1: ",
        message_of(function() h[1] = bad end))
      assert.matches(text, message_of(function() h[1] = bad end), 1, true)
    end
    assert.matches("nan is not a whole number",
      message_of(function() h[1] = 0 / 0 end))
    assert.matches("element 1: number expected, got nil",
      message_of(function() h[1] = nil end))
    assert.equal(0, h[1])
  end)

  it("serves as a kernel's argument", function()
    local h <close> = tp.pinned("i32", { 4, 5 })
    gate.run(tp.current_stream(), "twice", h, 2)
    tp.current_stream():synchronize()
    assert.equal(8, h[1])
  end)

  it("device memory is not indexed", function()
    local b <close> = tp.zeros("f32", 2)
    for _, call in ipairs { function() return b[1] end,
      function() b[1] = 1 end } do
      assert.matches("buffer_spec.lua:%d+: elements of device memory can't be "
        .. "had by index: use read and write, or pinned memory$",
        message_of(call))
    end
  end)
end)

describe("a closed buffer", function()
  for _, call in ipairs { "read", "bytes", "write", "fill", "slice", "copy_to",
    "count", "dtype", "nbytes", "ptr", "device" } do
    it("refuses " .. call, function()
      local b = tp.zeros("f32", 2)
      b:close()
      b:close()
      assert.matches("attempt to use a closed buffer", message_of(function()
        return b[call](b, 1, 1)
      end))
    end)
  end

  it("refuses # and indexing and shows that it is closed", function()
    local b = tp.pinned("f32", 2)
    b:close()
    assert.matches("closed buffer", message_of(function() return #b end))
    assert.matches("closed buffer", message_of(function() return b[1] end))
    assert.matches("closed buffer", message_of(function() b[1] = 1 end))
    assert.matches("closed", tostring(b))
  end)
end)

local ESCAPE = [=[
extern "C" __global__ void through(long long from, int *to, int n) {
  for (int i = 0; i < n; i++) to[i] = ((const int *)from)[i];
}]=]

describe("lifetime across streams", function()
  it("memory closed while another stream uses it stays till the end",
    function()
      local n = 1 << 16
      local xs = {}
      for i = 1, n do xs[i] = i end
      local a, out = tp.buffer("i32", xs), tp.zeros("i32", n)
      tp.current_stream():synchronize()
      local s <close> = tp.Stream()
      local copy <close> = gate.kernel "copy"
      local g <close> = gate.new()
      g:hold(s)
      tp.with_stream(s, copy.forall, copy, n, a, out, n)
      a:close()
      -- new memory of the same size must not reuse it yet
      local others = {}
      for i = 1, 8 do
        others[i] = tp.buffer("i32", n)
        others[i]:fill(-1)
      end
      tp.current_stream():synchronize()
      g:open()
      s:synchronize()
      assert.same(xs, out:read())
      for _, b in ipairs(others) do b:close() end
      out:close()
    end)

  it("a buffer dropped while in use does not block", function()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    for _ = 1, 50 do
      local b = tp.buffer("i32", 1000)
      tp.with_stream(s, b.fill, b, 1)
      tp.pinned("i32", 100):copy_to(b, { stream = s })
    end
    collectgarbage()
    collectgarbage()
    assert.is_false(s:query())
    g:open()
    s:synchronize()
  end)

  it("the stream a buffer was used on may be closed first", function()
    local b = tp.zeros("i32", 1000)
    tp.current_stream():synchronize()
    local g <close> = gate.new()
    local s = tp.Stream()
    g:hold(s)
    tp.with_stream(s, b.fill, b, 5)
    s:close()
    b:close()
    local c <close> = tp.zeros("i32", 1000)
    tp.current_stream():synchronize()
    g:open()
    tp.current_device():synchronize()
    for _, v in ipairs(c:read()) do assert.equal(0, v) end
  end)

  it("the constructor's filling comes before every use on any stream",
    function()
      local s <close> = tp.Stream()
      local t <close> = tp.Stream()
      local out <close> = tp.zeros("i32", 4)
      tp.current_stream():synchronize()
      local g <close> = gate.new()
      g:hold(s)
      local a <close> = tp.buffer("i32", { 1, 2, 3, 4 }, { stream = s })
      local copy <close> = gate.kernel "copy"
      tp.with_stream(t, copy.forall, copy, 4, a, out, 4)
      assert.is_false(t:synchronize(10))
      g:open()
      t:synchronize()
      assert.same({ 1, 2, 3, 4 }, out:read())
    end)

  -- The kernel gets the address as a number, so that nothing but b:ptr() tells the
  -- library of the use.
  it("an address that escaped keeps the memory for all streams", function()
    local module <close> = program("escape", ESCAPE)
    for _, how in ipairs { "a buffer", "a slice of it", "pinned memory" } do
      local b = how:find "pinned" and tp.pinned("i32", { 1, 2, 3 })
        or tp.buffer("i32", { 1, 2, 3 })
      local out <close> = tp.zeros("i32", 3)
      tp.current_stream():synchronize()
      local part = how:find "slice" and b:slice(1, 3) or b
      local address = part:ptr()
      assert.equal("integer", math.type(address))
      local s <close> = tp.Stream()
      local g <close> = gate.new()
      local through <close> = module:kernel "through"
      g:hold(s)
      through:launch({ grid = 1, block = 1, stream = s }, address, out, 3)
      part:close()
      b:close()
      local others = {}
      for i = 1, 4 do
        local make = how:find "pinned" and tp.pinned or tp.buffer
        others[i] = make("i32", { 7, 8, 9 })
      end
      tp.current_stream():synchronize()
      g:open()
      s:synchronize()
      assert.same({ 1, 2, 3 }, out:read(), how)
      for _, other in ipairs(others) do other:close() end
    end
  end)

  it("an address that escaped may be in use on the default stream", function()
    local module <close> = program("escape", ESCAPE)
    local through <close> = module:kernel "through"
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    tp.with_stream(s, function()
      local b = tp.buffer("i32", { 1, 2, 3 })
      local out <close> = tp.zeros("i32", 3)
      s:synchronize()
      local address = b:ptr()
      g:hold(tp.default_stream())
      through:launch({ grid = 1, block = 1, stream = tp.default_stream() },
        address, out, 3)
      b:close()
      local other <close> = tp.buffer("i32", { 7, 8, 9 })
      s:synchronize()
      g:open()
      tp.default_stream():synchronize()
      assert.same({ 1, 2, 3 }, out:read())
      assert.same({ 7, 8, 9 }, other:read())
    end)
  end)

  it("an allocation comes before its use on another stream", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    local a <close> = tp.buffer("i32", 50000, { stream = s })
    tp.with_stream(t, a.fill, a, 4)
    g:open()
    for _, v in ipairs(tp.with_stream(t, a.read, a)) do
      if v ~= 4 then assert.equal(4, v) end
    end
  end)

  it("a later write is ordered by its stream alone", function()
    local b <close> = tp.buffer("i32", { 1, 2 })
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(s)
    tp.with_stream(s, b.write, b, { 3, 4 })
    assert.same({ 1, 2 }, b:read()) -- waits for the current stream only
    assert.equal(string.pack("<i4", 2), b:bytes(2))
    assert.is_false(s:query())
    g:open()
    assert.same({ 3, 4 }, tp.with_stream(s, b.read, b))
  end)
end)

describe("memory_stats", function()
  it("follows allocations", function()
    collectgarbage()
    local before = tp.memory_stats()
    local b = tp.buffer("u8", 1 << 20)
    local during = tp.memory_stats()
    assert.equal(before.live_bytes + (1 << 20), during.live_bytes)
    assert.is_true(during.peak_bytes >= during.live_bytes)
    b:close()
    assert.equal(before.live_bytes, tp.memory_stats().live_bytes)
    local keys = {}
    for key, value in pairs(tp.memory_stats(tp.current_device())) do
      assert.equal("integer", math.type(value), key)
      assert.is_true(value >= 0, key)
      keys[#keys + 1] = key
    end
    table.sort(keys)
    assert.equal("allocations frees live_bytes live_count managed_bytes "
      .. "peak_bytes pending_bytes pending_count pinned_bytes pool_bytes",
      table.concat(keys, " "))
  end)
end)
