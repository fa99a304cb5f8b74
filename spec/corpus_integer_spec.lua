-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's integer kernels (13): every operation against the same arithmetic
-- in Lua's 64-bit integers.
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"
local wrap, ult = numbers.wrap, math.ult

local function u32(x) return x & 0xffffffff end
local function s32(x) return wrap(x, 32) end
local function u8(x) return x & 255 end

-- C's division, towards zero
local function quotient(a, b)
  local q = a // b
  if q < 0 and q * b ~= a then q = q + 1 end
  return q
end
local function remainder(a, b) return a - quotient(a, b) * b end

-- Unsigned 64-bit division by shifting and subtracting
local function udivmod(a, b)
  local q, r = 0, 0
  for k = 63, 0, -1 do
    local carry = r < 0
    r = r << 1 | a >> k & 1
    if carry or not ult(r, b) then q, r = q | 1 << k, r - b end
  end
  return q, r
end

-- The upper half of a product of 64-bit numbers
local function umulhi(a, b)
  local al, ah, bl, bh = u32(a), a >> 32, u32(b), b >> 32
  local low, middle = al * bl, ah * bl
  local other = al * bh
  local carry = (low >> 32) + u32(middle) + u32(other)
  return ah * bh + (middle >> 32) + (other >> 32) + (carry >> 32)
end
local function mulhi(a, b)
  return umulhi(a, b) - (a < 0 and b or 0) - (b < 0 and a or 0)
end

local function popcount(x)
  local n = 0
  while x ~= 0 do x, n = x & x - 1, n + 1 end
  return n
end
local function leading(x, bits)
  for k = bits - 1, 0, -1 do
    if x >> k & 1 == 1 then return bits - 1 - k end
  end
  return bits
end
local function first(x)
  for k = 0, 63 do
    if x >> k & 1 == 1 then return k + 1 end
  end
  return 0
end
local function reversed(x, bits)
  local r = 0
  for k = 0, bits - 1 do r = r | (x >> k & 1) << (bits - 1 - k) end
  return r
end
local function byte(x, k) return x >> 8 * k & 255 end
local function sbyte(x, k) return wrap(byte(x, k), 8) end
local function half(x, k) return x >> 16 * k & 0xffff end
local function shalf(x, k) return wrap(half(x, k), 16) end
local function permuted(a, b, selector)
  local r = 0
  for k = 0, 3 do
    local s = selector >> 4 * k & 15
    local v = s & 7
    v = v < 4 and byte(a, v) or byte(b, v - 4)
    if s >= 8 then v = v >= 128 and 255 or 0 end
    r = r | v << 8 * k
  end
  return r
end
local function funnel_left(low, high, n)
  if n >= 32 then return low end
  return u32((high << 32 | low) << n >> 32)
end
local function arithmetic(x, n) -- shift to the right
  return n == 0 and x or (x >> n) | (x < 0 and ~(-1 >> n) or 0)
end
local function dot(a, b, part, start, base)
  for k = 0, 3 do start = start + part(a, k) * part(base, k) * b end
  return start
end

-- Each as `name, function(a, b, A, B)`; a and b are 32 bits, unsigned, A and B 64.
local operations = {
  "+", function(a, b) return u32(a + b) end,
  "*", function(a, b) return u32(a * b) end,
  "/", function(a, b) return a // b end,
  "%", function(a, b) return a % b end,
  "signed /", function(a, b) return s32(quotient(s32(a), s32(b))) end,
  "signed %", function(a, b) return remainder(s32(a), s32(b)) end,
  "signed >>", function(a) return s32(a) // 8 end,
  ">>", function(a, b) return a >> (b & 31) end,
  "<<", function(a, b) return u32(a << (b & 31)) end,
  "&", function(a, b) return a & b end, "|", function(a, b) return a | b end,
  "^", function(a, b) return a ~ b end, "~", function(a) return u32(~a) end,
  "-", function(a) return u32(-a) end,
  "!", function(a) return a == 0 and 1 or 0 end,
  "wide +", function(_, _, A, B) return A + B end,
  "wide *", function(_, _, A, B) return A * B end,
  "wide /", function(_, _, A, B) return (udivmod(A, B)) end,
  "wide %", function(_, _, A, B) return select(2, udivmod(A, B)) end,
  "wide signed /", function(_, _, A, B) return quotient(A, B) end,
  "wide signed %", function(_, _, A, B) return remainder(A, B) end,
  "wide >>", function(_, b, A) return A >> (b & 63) end,
  "wide signed >>", function(_, b, A) return arithmetic(A, b & 63) end,
  "wide <<", function(_, b, A) return A << (b & 63) end,
  "__umulhi", function(a, b) return (a * b) >> 32 end,
  "__mulhi", function(a, b) return s32(s32(a) * s32(b) >> 32) end,
  "__umul64hi", function(_, _, A, B) return umulhi(A, B) end,
  "__mul64hi", function(_, _, A, B) return mulhi(A, B) end,
  "__umul24", function(a, b) return u32((a & 0xffffff) * (b & 0xffffff)) end,
  "__mul24", function(a, b) return s32(wrap(a, 24) * wrap(b, 24)) end,
  "__popc", popcount, "__popcll", function(_, _, A) return popcount(A) end,
  "__clz", function(a) return leading(a, 32) end,
  "__clzll", function(_, _, A) return leading(A, 64) end,
  "__ffs", first, "__ffsll", function(_, _, A) return first(A) end,
  "__brev", function(a) return reversed(a, 32) end,
  "__brevll", function(_, _, A) return reversed(A, 64) end,
  "__byte_perm", function(a, b) return permuted(a, b, 0x1467) end,
  "__funnelshift_l", function(a, b) return funnel_left(a, b, 5) end,
  "__funnelshift_r", function(a, b) return u32((b << 32 | a) >> (b & 31)) end,
  "__funnelshift_lc", function(a, b) return funnel_left(a, b, 40) end,
  "__sad", function(a, b) return u32(math.abs(s32(a) - s32(b)) + 3) end,
  "__usad", function(a, b) return u32(math.abs(a - b) + 3) end,
  "__hadd", function(a, b) return (s32(a) + s32(b)) // 2 end,
  "__rhadd", function(a, b) return (s32(a) + s32(b) + 1) // 2 end,
  "__uhadd", function(a, b) return (a + b) // 2 end,
  "__dp4a", function(a, b) return s32(dot(a, 1, sbyte, 7, b)) end,
  "unsigned __dp4a", function(a, b) return u32(dot(a, 1, byte, 7, b)) end,
  "__dp2a_lo", function(a, b)
    return s32(shalf(a, 0) * sbyte(b, 0) + shalf(a, 1) * sbyte(b, 1) + 7)
  end,
  "abs", function(a) return s32(math.abs(s32(a))) end,
  "llabs", function(_, _, A) return math.abs(A) end,
  "min", function(a, b) return math.min(a, b) end,
  "max", function(a, b) return math.max(s32(a), s32(b)) end,
  "wide min", function(_, _, A, B) return ult(A, B) and A or B end,
  "wide max", function(_, _, A, B) return math.max(A, B) end,
  "?:", function(a, b, A, B) return a > b and A or B end,
  "bytes", function(a, b) return u8(a) * wrap(b, 8) end,
  "shorts", function(a, b) return s32(wrap(a, 16) * (b & 0xffff)) end,
  "signed wide *", function(a, b) return s32(a) * s32(b) end,
  "wide multiply-add", function(a, b, A) return a * b + A end,
  "*5 + *9", function(a, b) return u32(a * 5 + b * 9) end,
  "*7/10", function(a) return u32(a * 7) // 10 end,
  "%1000", function(a) return a % 1000 end,
  "signed /7", function(a) return quotient(s32(a), 7) end,
  "wide /1000000007", function(_, _, A) return (udivmod(A, 1000000007)) end,
}

local specials = { 0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0x8000,
  0xffff, 0xff, 0x80, 31, 32, 63, 64 }

-- Random 32-bit numbers of all sizes, and the special ones among them
local function inputs(g, n)
  local xs = {}
  for i = 1, n do xs[i] = u32(g.bits()) >> g.int(0, 31) end
  for i, x in ipairs(specials) do xs[g.int(0, 2) * 60 + i * 4] = x end
  return xs
end

describe("corpus 13 integers", function()
  local kernel = corpus.module(setup, teardown, "13_int_ops.cu",
    { options = { "--device-int128" } })
  local g = numbers.generator(13)

  it("of 32 and 64 bits", function()
    local n = 400
    local xs = inputs(g, n)
    local rows = #operations // 2
    local x <close> = tp.buffer("u32", xs)
    local o <close> = tp.zeros("u64", n * rows)
    kernel "int_ops":launch({ grid = 4, block = 128 }, x, o, n)
    local r = o:read()
    for i = 1, n do
      local a, b = xs[i], xs[n + 1 - i] | 1
      local A = a << 32 | b
      local B = A * 0x9E3779B97F4A7C15 | 1
      for k = 1, rows do
        local expected = operations[2 * k](a, b, A, B)
        if r[(k - 1) * n + i] ~= expected then
          error(("%s of %#x, %#x: %#x, %#x expected"):format(operations[2 * k - 1],
            a, b, r[(k - 1) * n + i], expected))
        end
      end
    end
  end)

  -- 128 bits as two halves
  local function add128(l, h, x, y)
    local sum = l + x
    return sum, h + y + (ult(sum, l) and 1 or 0)
  end
  local function divide128(l, h, d) -- the low half of the quotient
    local q, r = 0, 0
    for k = 127, 0, -1 do
      local bit = k >= 64 and h >> (k - 64) & 1 or l >> k & 1
      local carry = r < 0
      r, q = r << 1 | bit, q << 1
      if carry or not ult(r, d) then q, r = q | 1, r - d end
    end
    return q
  end

  it("of 128 bits", function()
    local n, xs = 128, {}
    for i = 1, n do xs[i] = g.bits() >> g.int(0, 50) end
    xs[5], xs[6], xs[7] = 0, -1, 1
    local x <close> = tp.buffer("u64", xs)
    local o <close> = tp.zeros("u64", 5 * n)
    kernel "i128":launch({ grid = 1, block = n }, x, o, n)
    local r = o:read()
    for i = 0, n - 1 do
      local a, b = xs[i + 1], xs[n - i]
      local l, h = add128(a * b, umulhi(a, b), xs[1], 0)
      assert.equal(l, r[2 * i + 1])
      assert.equal(h, r[2 * i + 2])
      local d = a | 1
      assert.equal(divide128(l, h, d), r[2 * n + i + 1])
      -- The quotient is p or p / d, so that p less it keeps the sign of p unless
      -- p is negative as a signed number and d no less than 2.
      local ql = divide128(l, h, d)
      local qh = divide128(h, 0, d)
      local borrow = ult(l, ql) and 1 or 0
      local high = h - qh - borrow
      assert.equal(high < 0 and 1 or 0, r[3 * n + i + 1])
      assert.equal(i < 64 and l << i or 0, r[4 * n + i + 1])
    end
  end)

  it("of 8 and 16 bits", function()
    local n = 200
    local cs, ss = g.ints(n, -128, 127), g.ints(n, 0, 65535)
    local c <close> = tp.buffer("i8", cs)
    local s <close> = tp.buffer("u16", ss)
    local o <close> = tp.zeros("i32", 12 * n)
    kernel "small_ints":launch({ grid = 1, block = 224 }, c, s, o, n)
    local raw = o:bytes()
    local function at(format, index)
      return (string.unpack(format, raw, 1 + index * string.packsize(format)))
    end
    for i = 0, n - 1 do
      local a = wrap(cs[i + 1] + ss[i + 1], 8)
      local b = ss[i + 1] * a & 0xffff
      assert.equal(a * b, at("<i4", i))
      assert.equal(wrap(a << 1, 8), at("<i4", n + i))
      assert.equal(u8(a) // 3, at("<i4", 2 * n + i))
      assert.equal(wrap(b, 16) // 4, at("<i4", 3 * n + i))
      assert.equal(remainder(a, 7), at("<i4", 4 * n + i))
      assert.equal(a, at("<i1", 20 * n + i))
      assert.equal(wrap(b, 16), at("<i2", 12 * n + i))
      assert.equal((a > 3) ~= (b > 9) and 1 or 0, at("<i1", 30 * n + i))
    end
  end)

  local function bytes(f)
    return function(x, y)
      local r = 0
      for k = 0, 3 do r = r | u8(f(byte(x, k), byte(y, k))) << 8 * k end
      return r
    end
  end
  local function halves(f)
    return function(x, y)
      local r = 0
      for k = 0, 1 do
        r = r | (f(shalf(x, k), shalf(y, k)) & 0xffff) << 16 * k
      end
      return r
    end
  end
  local function difference(a, b) return math.abs(a - b) end
  local packed = {
    "__vadd4", bytes(function(a, b) return a + b end),
    "__vsub2", halves(function(a, b) return a - b end),
    "__vabsdiffu4", bytes(difference),
    "__vsadu4", function(x, y)
      local sum = 0
      for k = 0, 3 do sum = sum + difference(byte(x, k), byte(y, k)) end
      return sum
    end,
    "__vmaxs2", halves(math.max), "__vminu4", bytes(math.min),
    "__vcmpeq4", bytes(function(a, b) return a == b and 255 or 0 end),
    "__vavgu4", bytes(function(a, b) return (a + b + 1) // 2 end),
    "__vaddss2", halves(function(a, b)
      return math.max(-32768, math.min(32767, a + b))
    end),
    "__vaddus4", bytes(function(a, b) return math.min(255, a + b) end),
    "__vabs4", bytes(function(a) return math.abs(wrap(a, 8)) end),
    "__vsetgtu4", bytes(function(a, b) return a > b and 1 or 0 end),
    "__viaddmax_s32", function(x, y)
      return u32(math.max(s32(s32(x) + s32(y)), 3))
    end,
    "__vimax3_s32", function(x, y) return u32(math.max(s32(x), s32(y), 7)) end,
    "__vibmax_s32", function(x, y) return u32(math.max(s32(x), s32(y))) end,
  }

  it("packed in words", function()
    local n = 256
    local xs = inputs(g, n)
    for i = 1, n, 3 do xs[i] = u32(g.bits()) end
    local a <close> = tp.buffer("u32", xs)
    local o <close> = tp.zeros("u32", n * (#packed // 2))
    kernel "simd_video":launch({ grid = 1, block = n }, a, o, n)
    local r = o:read()
    for k = 1, #packed // 2 do
      for i = 1, n do -- but the first: the last operation stores a bool there
        local x, y = xs[i], xs[n + 1 - i]
        local expected, got = packed[2 * k](x, y), r[(k - 1) * n + i]
        if got ~= expected and (k > 1 or i > 1) then
          error(("%s(%#x, %#x) is %#x, %#x expected"):format(packed[2 * k - 1], x,
            y, got, expected))
        end
      end
    end
  end)
end)
