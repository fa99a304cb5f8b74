-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the golden operations are fed with: for each class of inputs COUNT triples
-- (the $a, $b and $c of an operation), as bits. Half of them are drawn from values
-- at which something special happens, half are random, made so that sums cancel,
-- products leave the range at either end, and results lie halfway.
--
--   local columns = inputs.columns "f32"   -- columns[1..3][1..COUNT]
local numbers = require "spec.support.numbers"

local inputs = { COUNT = 4096 }

-- How the values of a class lie in memory: string.pack's format.
inputs.FORMAT = {
  i16 = "<I2", i32 = "<I4", i64 = "<i8", n = "<I4", i16x2 = "<I4",
  f16 = "<I2", bf16 = "<I2", f16x2 = "<I4", bf16x2 = "<I4", f32 = "<I4",
  f64 = "<i8", e4m3x2 = "<I2", e5m2x2 = "<I2",
}
inputs.BITS = { ["<I2"] = 16, ["<I4"] = 32, ["<i8"] = 64 }

local function bits32(x) return (string.unpack("<I4", string.pack("<f", x))) end
local function bits64(x) return (string.unpack("<i8", string.pack("<d", x))) end
local function f32(bits)
  return (string.unpack("<f", string.pack("<I4", bits & 0xffffffff)))
end
local function f64(bits) return (string.unpack("<d", string.pack("<i8", bits))) end

-- ---- integers ---------------------------------------------------------------

local function integers(bits)
  local mask = bits == 64 and -1 or (1 << bits) - 1
  local special = {}
  for _, x in ipairs { 0, 1, 2, 3, 5, 7, 10, 31, 32, 63, 64, 127, 128, 255, 256,
    32767, 32768, 65535, 65536, 0x7fffff, 0x800000, 0xffffff, 0x1000000,
    0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1 << 53, (1 << 53) + 1,
    math.maxinteger, math.mininteger, 0x5555555555555555, 0x00ff00ff00ff00ff,
    0x1fffffff, 0x20000001, 65504, 65519, 65520, 0x7fffff80, 0x7fffffc0,
    0x7fffffffffffff00, 0x7ffffffffffffe00, 0x7ffffffffffffdff } do
    special[#special + 1] = x & mask
    special[#special + 1] = -x & mask
    special[#special + 1] = ~x & mask
  end
  local function random(g)
    local x = g.bits() >> g.int(64 - bits, 63)
    return (g.int(0, 1) == 0 and x or -x) & mask
  end
  return {
    special = special,
    random = function(g)
      local a, b, c = random(g), random(g), random(g)
      local kind = g.int(1, 8)
      if kind == 1 then b = a + g.int(-2, 2) & mask end
      if kind == 2 then b = -a + g.int(-2, 2) & mask end
      if kind == 3 then c = a * b & mask end
      if kind == 4 then b, c = g.bits() & mask, g.bits() & mask end
      return a, b, c
    end,
  }
end

-- Amounts of shifts, positions, lengths.
local function amounts()
  local special = { 255, 256, 257, 0x80000000, 0xffffffff, 0xffffffe0, 0x120,
    0xfffffffe, 0xffffff01 }
  for x = 0, 70 do special[#special + 1] = x end
  local function one(g)
    if g.int(0, 3) > 0 then return g.int(0, 66) end
    return g.bits() & 0xffffffff
  end
  return {
    special = special,
    random = function(g) return one(g), one(g), one(g) end,
  }
end

-- ---- floating point -----------------------------------------------------------

-- Specials of a format with `mant` bits of fraction and `exp` bits of exponent.
local function specials(mant, exp)
  local bias = (1 << (exp - 1)) - 1
  local infinity = ((1 << exp) - 1) << mant
  local one = bias << mant
  local list = { 0, 1, 2, 3, 1 << (mant - 1), (1 << mant) - 1, 1 << mant,
    (1 << mant) + 1, infinity - 1, infinity - 2, infinity, infinity + 1,
    infinity + (1 << (mant - 1)), infinity + (1 << mant) - 1,
    infinity + (1 << (mant - 1)) + 5, infinity + 2, one, one + 1, one - 1,
    one + (1 << (mant - 1)), one + (1 << mant), one + (1 << mant) + 1,
    one + (3 << (mant - 1)), one - (1 << mant), one - (2 << mant),
    one - (1 << (mant - 1)) }
  -- 1.5, 2.5 … beside whole numbers, and the bounds of integer types
  for _, power in ipairs { 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64 } do
    if bias + power < (1 << exp) - 1 then
      local p = one + (power << mant)
      for step = -2, 2 do list[#list + 1] = p + step end
      if power < mant then
        list[#list + 1] = p + (1 << (mant - power - 1)) -- half above
        list[#list + 1] = p - (1 << (mant - power))
        list[#list + 1] = p + (1 << (mant - power)) + (1 << (mant - power - 1))
      end
    end
  end
  for i = 1, #list do list[#list + 1] = list[i] | 1 << (mant + exp) end
  return list
end

-- The value of a finite float of any format, and the float just below a value.
local function decode(bits, mant, exp)
  local e = bits >> mant & ((1 << exp) - 1)
  local f = (bits & ((1 << mant) - 1)) | (e > 0 and 1 << mant or 0)
  local x = f * 2.0 ^ ((e > 0 and e or 1) - (1 << (exp - 1)) + 1 - mant)
  return bits >> (mant + exp) & 1 == 1 and -x or x
end
local function encode(x, mant, exp)
  local sign = (x < 0 or 1 / x < 0) and 1 << (mant + exp) or 0
  local bias = (1 << (exp - 1)) - 1
  x = math.abs(x)
  if not (x < 2.0 ^ (bias + 1)) then return sign | ((1 << exp) - 1) << mant end
  if x < 2.0 ^ (1 - bias) then return sign | x * 2.0 ^ (bias - 1 + mant) // 1 | 0 end
  local e = 0
  while x >= 2 do x, e = x / 2, e + 1 end
  while x < 1 do x, e = x * 2, e - 1 end
  return sign | (e + bias << mant) + ((x - 1) * 2.0 ^ mant // 1 | 0)
end

-- Random floats of a format; `value` and `bits` convert.
local function floats(mant, exp, value, bits)
  local width = 1 + mant + exp
  local mask = width == 64 and -1 or (1 << width) - 1
  local top = (1 << exp) - 1
  local bias = top >> 1
  value = value or function(x) return decode(x, mant, exp) end
  bits = bits or function(x) return encode(x, mant, exp) end
  local special = specials(mant, exp)
  if value == f32 then -- where f16, bf16 and integers end; halves of their steps
    for _, x in ipairs { 65504, 65519, 65520, 65519.996, 65536, 2 ^ -24, 2 ^ -25,
      2 ^ -14, 0x1.ff8p-15, 0x1.ffep-15, 0x1.0000p-25, 0x1.000002p-25,
      0x1.fep127, 0x1.ffp127, 0x1.fefffep127, 0x1.008p0, 0x1.018p0, 0x1.01p0,
      0x1.03p0, 2147483520, 4294967040, 0x1.fffffep62, 0x1.fffffep63, 448, 464,
      480, 57344, 61440, 61439, 0.25, 126.5, 127.5, 128.5, 255.5, 32767.5,
      65535.5, 8388607.5, 88.7228, -87.3, -103.9, -149, -126.5, 3.14159274,
      1.57079637, 105615, 0x1.000002p-126, 0x1.8p126, 0x1p126,
      0x1.000002p126, 0x1p127, 8.5, 0.3, 0.7 } do
      special[#special + 1] = bits(x)
      special[#special + 1] = bits(-x)
    end
  elseif value == f64 then
    for _, x in ipairs { 65520, 0x1.ffdfffffp15, 0x1.fffffefp127, 2 ^ -149,
      2 ^ -150, 0x1.0000000001p-150, 0x1.fffffffp-127, 2 ^ -126, 2147483647.5,
      2147483648.5, 4294967295.5, 0x1.000001p0, 0x1.0000010000001p0,
      0x1.000003p0, 0x1.ffffffffffffep62, 9007199254740991, 0x1p52,
      4503599627370495.5, 127.5, 255.5, 32767.5, 65535.5, 0x1.002p0,
      0x1.0020000000001p0, 0x1.006p0, 2 ^ -25, 0x1.0000000000001p-25, 0.3,
      0x1.01p0, 0x1.0100000000001p0, 0x1p-134, 0x1.8p-133 } do
      special[#special + 1] = bits(x)
      special[#special + 1] = bits(-x)
    end
  end
  local function make(sign, exponent, fraction)
    exponent = exponent < 0 and 0 or exponent > top and top or exponent
    return (sign & 1) << (width - 1) | exponent << mant
      | fraction & ((1 << mant) - 1)
  end
  -- A fraction: any, or with few bits, so that results are exact or halfway.
  local function fraction(g)
    local kind = g.int(1, 4)
    if kind == 1 then return g.bits() << g.int(1, mant) end
    if kind == 2 then return (1 << mant) - (1 << g.int(0, mant - 1)) end
    return g.bits()
  end
  local function near(g, exponent, spread)
    return make(g.bits(), exponent + g.int(-spread, spread), fraction(g))
  end
  local function random(g)
    local kind = g.int(1, 9)
    if kind == 1 then
      return g.bits() & mask, g.bits() & mask, g.bits() & mask
    elseif kind == 9 then -- products at the least normal number
      local a = near(g, bias, 4)
      local b = bits(2.0 ^ (1 - bias) / value(a)) + g.int(-2, 2) & mask
      return a, b, g.int(0, 1) << (width - 1)
    elseif kind == 2 then -- products and sums at the small end
      local e = g.int(1, bias)
      return near(g, e, 0), near(g, bias - e, 3 + mant // 2), near(g, 1, 1)
    elseif kind == 3 then -- … at the great end
      local e = g.int(bias, top - 1)
      return near(g, e, 0), near(g, 3 * bias - e, 2), near(g, top - 2, 2)
    elseif kind == 4 then -- subnormal
      return near(g, 0, 1), near(g, bias, 2), near(g, 0, 1)
    elseif kind == 5 then -- neighbours, for sums that cancel
      local a = near(g, bias, 6)
      local b = (a ~ 1 << (width - 1)) + g.int(-2, 2) & mask
      return a, b, near(g, bias - mant, 2)
    end
    local a, b, c = near(g, bias, 4), near(g, bias, 4), near(g, bias, 8)
    if g.int(0, 1) == 0 then -- a * b + c cancels
      c = bits(-(value(a) * value(b))) + g.int(-1, 1) & mask
    end
    return a, b, c
  end
  return { special = special, random = random }
end

-- Two values of 16 bits in one.
local function pair(of)
  return {
    special = of.special, pair = true,
    random = function(g)
      local a, b, c = of.random(g)
      local d, e, f = of.random(g)
      return a | d << 16, b | e << 16, c | f << 16
    end,
  }
end

local f16, bf16 = floats(10, 5), floats(7, 8)
local i16 = integers(16)
local CLASSES = {
  i16 = i16, i32 = integers(32), i64 = integers(64), i16x2 = pair(i16),
  n = amounts(), f16 = f16, bf16 = bf16, f16x2 = pair(f16),
  bf16x2 = pair(bf16), f32 = floats(23, 8, f32, bits32),
  f64 = floats(52, 11, f64, bits64),
}

local function from(list, g) return list[g.int(1, #list)] end

local made = {}
-- The three columns of a class.
function inputs.columns(class)
  if made[class] then return made[class] end
  local g = numbers.generator(#class + class:byte(1) * 7 + class:byte(-1))
  local c = assert(CLASSES[class], class)
  local columns = { {}, {}, {} }
  for i = 1, inputs.COUNT do
    local t = { c.random(g) }
    if i % 2 == 0 then
      for k = 1, 3 do
        -- one in eight stays random
        if g.int(0, 7) > 0 then
          t[k] = from(c.special, g)
          if c.pair then t[k] = t[k] | from(c.special, g) << 16 end
        end
      end
    end
    for k = 1, 3 do columns[k][i] = t[k] end
  end
  made[class] = columns
  return columns
end

-- A column's first values, or all, as they lie in memory.
function inputs.bytes(class, column, count)
  local format, values = inputs.FORMAT[class], inputs.columns(class)[column]
  local parts = {}
  for i = 1, count or inputs.COUNT do
    parts[i] = string.pack(format, values[i])
  end
  return table.concat(parts)
end

return inputs
