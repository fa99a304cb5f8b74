-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What kernels compute: integer, IEEE-rounded and conversion results must be
-- bit-equal on every device, approximate ones within the bounds of the PTX manual.
-- Every operation runs on random inputs mixed with extremes and is compared with
-- a reference in Lua.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local wrap, f32 = numbers.wrap, numbers.f32

local COUNT = 512

local function u32(x) return x & 0xffffffff end

-- References --------------------------------------------------------------

local function idiv(a, b) -- C's division: towards zero
  local q = a // b
  if q < 0 and q * b ~= a then q = q + 1 end
  return q
end
local function popcount(x)
  local n = 0
  while x ~= 0 do
    x = x & (x - 1)
    n = n + 1
  end
  return n
end
local function reverse(x, bits)
  local r = 0
  for i = 0, bits - 1 do
    if x >> i & 1 == 1 then r = r | 1 << (bits - 1 - i) end
  end
  return r
end
local function leading_zeros(x, bits)
  for i = bits - 1, 0, -1 do
    if x >> i & 1 == 1 then return bits - 1 - i end
  end
  return bits
end
local function first_set(x, bits)
  for i = 0, bits - 1 do
    if x >> i & 1 == 1 then return i + 1 end
  end
  return 0
end
-- high 64 bits of the unsigned product
local function umulhi64(a, b)
  local al, ah, bl, bh = u32(a), a >> 32, u32(b), b >> 32
  local mid = ah * bl + (al * bl >> 32)
  local mid2 = al * bh + u32(mid)
  return ah * bh + (mid >> 32) + (mid2 >> 32)
end
local function mulhi64(a, b)
  local h = umulhi64(a, b)
  if a < 0 then h = h - b end
  if b < 0 then h = h - a end
  return h
end

-- a + b and a * b as a double and what it lacks to the exact value
local function two_sum(a, b)
  local s = a + b
  local t = s - a
  return s, (a - (s - t)) + (b - t)
end
-- The float32 next to f, towards +infinity (up) or -infinity.
local function next32(f, up)
  if f ~= f or f == (up and math.huge or -math.huge) then return f end
  if f == 0 then return up and 2 ^ -149 or -2 ^ -149 end
  local bits = numbers.bits32(f)
  return numbers.from_bits32((f > 0) == up and bits + 1 or bits - 1)
end
-- The exact value hi + lo rounded to float32: "n" nearest even, "z" to zero,
-- "d" down, "u" up. hi is a double, lo what it lacks (|lo| < half its last place).
local function round32(hi, lo, mode)
  if hi ~= hi or hi == math.huge or hi == -math.huge then return hi end
  local f = f32(hi)
  local function compare(x) -- exact value against x: -1, 0, 1
    if hi ~= x then return hi < x and -1 or 1 end
    return lo < 0 and -1 or lo > 0 and 1 or 0
  end
  local below, above = f, f -- neighbours that enclose the exact value
  if compare(f) < 0 then below = next32(f, false) end
  if compare(f) > 0 then above = next32(f, true) end
  if mode == "d" then return below end
  if mode == "u" then return above end
  if mode == "z" then return (hi < 0) and above or below end
  if below == above then return f end
  local middle = f == math.huge and 0x1.ffffffp127
    or f == -math.huge and -0x1.ffffffp127 or (below + above) / 2
  local side = compare(middle)
  if side < 0 then return below end
  if side > 0 then return above end
  return numbers.bits32(below) & 1 == 0 and below or above
end

-- Inputs --------------------------------------------------------------------

local INPUTS = {
  i32 = { extremes = { 0, 1, -1, 2147483647, -2147483648, 31, 32, 33, 255,
    65535, -65536 }, random = function(g)
      return wrap(g.bits() >> g.int(32, 63), 32)
    end },
  i64 = { extremes = { 0, 1, -1, math.maxinteger, math.mininteger, 63, 64, 65,
    1 << 32, -(1 << 32), 0xffffffff }, random = function(g)
      return g.bits() >> g.int(0, 63)
    end },
  f32 = { extremes = { 0.0, -0.0, 1.0, -1.0, 0.5, math.huge, -math.huge, 0 / 0,
    0x1.fffffep127, -0x1.fffffep127, 0x1p-126, 0x1p-149, -0x1p-149,
    0x1.fffffcp-127, 2147483648.0, -2147483648.0, 4294967296.0,
    0x1.fffffep30, 0x1p63, 8388607.5, -2.5, 1.5 }, random = function(g)
      return numbers.from_bits32(g.int(0, 1) << 31 | g.int(97, 157) << 23
        | g.int(0, (1 << 23) - 1))
    end },
  f64 = { extremes = { 0.0, -0.0, 1.0, -1.0, 0.5, math.huge, -math.huge, 0 / 0,
    0x1.fffffffffffffp1023, 0x1p-1022, 5e-324, 0x1p63, -0x1p63, 0x1p64,
    2147483647.5, -2147483648.5, 1.5, 2.5 }, random = function(g)
      return g.real(-1, 1) * 2.0 ^ g.int(-40, 40)
    end },
}

-- COUNT values: pairs of extremes come together because each operand has its own
-- stride through them.
local function inputs(dtype, seed, stride)
  local spec, g, t = INPUTS[dtype], numbers.generator(seed), {}
  for i = 1, COUNT do
    if i <= 400 then
      local k = (i - 1) // stride % #spec.extremes + 1
      t[i] = i % 3 == 0 and spec.random(g) or spec.extremes[k]
    else
      t[i] = spec.random(g)
    end
  end
  return t
end

-- Operations: name, result type, operand types, CUDA expression in a, b, c,
-- reference, and how to compare: nothing for bit-equal, else relative error or a
-- function of (expected, got, a).
local OPERATIONS = {
  { "add", "i32", "i32 i32", "a + b", function(a, b) return wrap(a + b, 32) end },
  { "sub", "i32", "i32 i32", "a - b", function(a, b) return wrap(a - b, 32) end },
  { "mul", "i32", "i32 i32", "a * b", function(a, b) return wrap(a * b, 32) end },
  { "div", "i32", "i32 i32", "b == 0 || (a == -2147483647 - 1 && b == -1) ? 7 : a / b",
    function(a, b)
      if b == 0 or a == -2147483648 and b == -1 then return 7 end
      return idiv(a, b)
    end },
  { "rem", "i32", "i32 i32", "b == 0 || (a == -2147483647 - 1 && b == -1) ? 7 : a % b",
    function(a, b)
      if b == 0 or a == -2147483648 and b == -1 then return 7 end
      return a - idiv(a, b) * b
    end },
  { "udiv", "i32", "i32 i32", "b == 0 ? 7 : (int)((unsigned)a / (unsigned)b)",
    function(a, b) return b == 0 and 7 or wrap(u32(a) // u32(b), 32) end },
  { "urem", "i32", "i32 i32", "b == 0 ? 7 : (int)((unsigned)a % (unsigned)b)",
    function(a, b) return b == 0 and 7 or wrap(u32(a) % u32(b), 32) end },
  { "and", "i32", "i32 i32", "a & b", function(a, b) return wrap(a & b, 32) end },
  { "or", "i32", "i32 i32", "a | b", function(a, b) return wrap(a | b, 32) end },
  { "xor", "i32", "i32 i32", "a ^ b", function(a, b) return wrap(a ~ b, 32) end },
  { "not", "i32", "i32", "~a", function(a) return ~a end },
  { "neg", "i32", "i32", "(int)(0u - (unsigned)a)", function(a) return wrap(-a, 32) end },
  { "shl", "i32", "i32 i32", "a << (b & 31)",
    function(a, b) return wrap(a << (b & 31), 32) end },
  { "shr", "i32", "i32 i32", "a >> (b & 31)",
    function(a, b) return a // (1 << (b & 31)) end },
  { "ushr", "i32", "i32 i32", "(int)((unsigned)a >> (b & 31))",
    function(a, b) return wrap(u32(a) >> (b & 31), 32) end },
  { "ptx_shl_clamps", "i32", "i32 i32", "shl_clamped(a, b)",
    function(a, b)
      local n = u32(b)
      return n > 31 and 0 or wrap(a << n, 32)
    end },
  { "ptx_shr_clamps", "i32", "i32 i32", "shr_clamped(a, b)",
    function(a, b)
      local n = math.min(u32(b), 31)
      return a // (1 << n)
    end },
  { "mulhi", "i32", "i32 i32", "__mulhi(a, b)", function(a, b) return wrap(a * b >> 32, 32) end },
  { "umulhi", "i32", "i32 i32", "(int)__umulhi(a, b)",
    function(a, b) return wrap(umulhi64(u32(a) << 32, u32(b)), 32) end },
  { "mul24", "i32", "i32 i32", "__mul24(a, b)",
    function(a, b) return wrap(wrap(a, 24) * wrap(b, 24), 32) end },
  { "min", "i32", "i32 i32", "min(a, b)", function(a, b) return math.min(a, b) end },
  { "max", "i32", "i32 i32", "max(a, b)", function(a, b) return math.max(a, b) end },
  { "umax", "i32", "i32 i32", "(int)max((unsigned)a, (unsigned)b)",
    function(a, b) return wrap(math.max(u32(a), u32(b)), 32) end },
  { "abs", "i32", "i32", "abs(a)", function(a) return wrap(math.abs(a), 32) end },
  { "popc", "i32", "i32", "__popc(a)", function(a) return popcount(u32(a)) end },
  { "clz", "i32", "i32", "__clz(a)", function(a) return leading_zeros(u32(a), 32) end },
  { "brev", "i32", "i32", "(int)__brev(a)", function(a) return wrap(reverse(u32(a), 32), 32) end },
  { "ffs", "i32", "i32", "__ffs(a)", function(a) return first_set(u32(a), 32) end },
  { "sad", "i32", "i32 i32 i32", "(int)__sad(a, b, (unsigned)c)",
    function(a, b, c) return wrap(math.abs(a - b) + c, 32) end },
  { "byte_perm", "i32", "i32 i32 i32", "(int)__byte_perm(a, b, c & 0x7777)",
    function(a, b, c)
      local all, r = u32(a) | u32(b) << 32, 0
      for i = 0, 3 do
        local from = c >> (4 * i) & 7
        r = r | (all >> (8 * from) & 255) << (8 * i)
      end
      return wrap(r, 32)
    end },
  { "funnel_l", "i32", "i32 i32 i32", "(int)__funnelshift_l(a, b, c)",
    function(a, b, c)
      local all = u32(a) | u32(b) << 32
      return wrap(all << (c & 31) >> 32, 32)
    end },
  { "funnel_rc", "i32", "i32 i32 i32", "(int)__funnelshift_rc(a, b, c)",
    function(a, b, c)
      local all, n = u32(a) | u32(b) << 32, math.min(u32(c), 32)
      return wrap(all >> n, 32)
    end },
  { "mad_wide", "i64", "i32 i32", "(long long)a * b + 3", function(a, b) return a * b + 3 end },
  { "umad_wide", "i64", "i32 i32", "(long long)((unsigned long long)(unsigned)a * (unsigned)b)",
    function(a, b) return u32(a) * u32(b) end },
  { "short_wrap", "i32", "i32", "(short)a", function(a) return wrap(a, 16) end },
  { "uchar_wrap", "i32", "i32", "(unsigned char)a", function(a) return a & 255 end },
  { "schar_wrap", "i32", "i32", "(signed char)a", function(a) return wrap(a, 8) end },
  { "select", "i32", "i32 i32 i32", "a < b ? c : a",
    function(a, b, c) if a < b then return c end return a end },

  { "add64", "i64", "i64 i64", "a + b", function(a, b) return a + b end },
  { "sub64", "i64", "i64 i64", "a - b", function(a, b) return a - b end },
  { "mul64", "i64", "i64 i64", "a * b", function(a, b) return a * b end },
  { "div64", "i64", "i64 i64", "b == 0 || b == -1 ? 7 : a / b",
    function(a, b)
      if b == 0 or b == -1 then return 7 end
      return idiv(a, b)
    end },
  { "rem64", "i64", "i64 i64", "b == 0 || b == -1 ? 7 : a % b",
    function(a, b)
      if b == 0 or b == -1 then return 7 end
      return math.fmod(a, b)
    end },
  { "udiv64", "i64", "i64 i64",
    "b == 0 ? 7 : (long long)((unsigned long long)a / (unsigned long long)b)",
    function(a, b)
      if b == 0 then return 7 end
      if b < 0 then return math.ult(a, b) and 0 or 1 end
      local q = ((a >> 1) // b) << 1
      if not math.ult(a - q * b, b) then q = q + 1 end
      return q
    end },
  { "mulhi64", "i64", "i64 i64", "__mul64hi(a, b)", mulhi64 },
  { "umulhi64", "i64", "i64 i64", "(long long)__umul64hi(a, b)", umulhi64 },
  { "shl64", "i64", "i64 i64", "a << (b & 63)", function(a, b) return a << (b & 63) end },
  { "shr64", "i64", "i64 i64", "a >> (b & 63)",
    function(a, b)
      local n = b & 63
      if n == 63 then return a < 0 and -1 or 0 end
      return a // (1 << n)
    end },
  { "ushr64", "i64", "i64 i64", "(long long)((unsigned long long)a >> (b & 63))",
    function(a, b) return a >> (b & 63) end },
  { "popc64", "i32", "i64", "__popcll(a)", popcount },
  { "clz64", "i32", "i64", "__clzll(a)", function(a) return leading_zeros(a, 64) end },
  { "brev64", "i64", "i64", "(long long)__brevll(a)", function(a) return reverse(a, 64) end },
  { "min64", "i64", "i64 i64", "min(a, b)", function(a, b) return math.min(a, b) end },
  { "umin64", "i64", "i64 i64",
    "(long long)min((unsigned long long)a, (unsigned long long)b)",
    function(a, b) return math.ult(a, b) and a or b end },
  { "mul128", "i64", "i64 i64",
    "(long long)(((unsigned __int128)(unsigned long long)a * 3 + (unsigned long long)b) >> 64)",
    function(a, b)
      local low = a * 3
      return umulhi64(a, 3) + (math.ult(low + b, low) and 1 or 0)
    end },

  { "fneg", "f32", "f32", "-a", function(a) return -a end },
  { "fabs", "f32", "f32", "fabsf(a)", math.abs },
  { "fmin", "f32", "f32 f32", "fminf(a, b)",
    function(a, b)
      if a ~= a then return b end
      if b ~= b then return a end
      if a == b then return 1 / a < 1 / b and a or b end
      return math.min(a, b)
    end },
  { "fmax", "f32", "f32 f32", "fmaxf(a, b)",
    function(a, b)
      if a ~= a then return b end
      if b ~= b then return a end
      if a == b then return 1 / a > 1 / b and a or b end
      return math.max(a, b)
    end },
  { "fdiv", "f32", "f32 f32", "__fdiv_rn(a, b)", function(a, b) return f32(a / b) end },
  { "fsqrt", "f32", "f32", "__fsqrt_rn(a)",
    function(a)
      if a == 0 then return a end
      return f32(a < 0 and 0 / 0 or math.sqrt(a))
    end },
  { "frcp", "f32", "f32", "__frcp_rn(a)", function(a) return f32(1 / a) end },
  { "copysign", "f32", "f32 f32", "copysignf(a, b)",
    function(a, b)
      return numbers.from_bits32(numbers.bits32(a) & 0x7fffffff
        | numbers.bits32(b) & 0x80000000)
    end },
  { "fcompare", "i32", "f32 f32",
    "(a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4 | (a != b) << 5",
    function(a, b)
      return (a < b and 1 or 0) | (a <= b and 2 or 0) | (a > b and 4 or 0)
        | (a >= b and 8 or 0) | (a == b and 16 or 0) | (a ~= b and 32 or 0)
    end },
  { "fsaturate", "f32", "f32", "__saturatef(a)",
    function(a)
      if a ~= a then return 0.0 end
      return a <= 0 and 0.0 or a > 1 and 1.0 or a
    end },
  { "ffloor", "f32", "f32", "floorf(a)", function(a)
    if a ~= a or math.abs(a) >= 2 ^ 23 or a == 0 then return a end
    return a - a % 1
  end },
  { "ftrunc", "f32", "f32", "truncf(a)", function(a)
    if a ~= a or math.abs(a) >= 2 ^ 23 or a == 0 then return a end
    local r = math.abs(a) - math.abs(a) % 1
    return a < 0 and -r or r
  end },
  { "frint", "f32", "f32", "rintf(a)", function(a)
    if a ~= a or math.abs(a) >= 2 ^ 23 or a == 0 then return a end
    local r = math.abs(a) + 0x1p52 - 0x1p52
    return a < 0 and -r or r
  end },

  { "dadd", "f64", "f64 f64", "__dadd_rn(a, b)", function(a, b) return a + b end },
  { "dmul", "f64", "f64 f64", "__dmul_rn(a, b)", function(a, b) return a * b end },
  { "ddiv", "f64", "f64 f64", "__ddiv_rn(a, b)", function(a, b) return a / b end },
  { "dsqrt", "f64", "f64", "__dsqrt_rn(a)", function(a) return a < 0 and 0 / 0 or math.sqrt(a) end },
  { "dneg", "f64", "f64", "-a", function(a) return -a end },
  { "dmin", "f64", "f64 f64", "fmin(a, b)",
    function(a, b)
      if a ~= a then return b end
      if b ~= b then return a end
      if a == b then return 1 / a < 1 / b and a or b end
      return math.min(a, b)
    end },

  { "f32_to_f64", "f64", "f32", "(double)a", function(a) return a end },
  { "f64_to_f32", "f32", "f64", "(float)a", function(a) return f32(a) end },
  { "i32_to_f32", "f32", "i32", "(float)a", function(a) return f32(a) end },
  { "u32_to_f32", "f32", "i32", "(float)(unsigned)a", function(a) return f32(u32(a)) end },
  { "i32_to_f64", "f64", "i32", "(double)a", function(a) return a + 0.0 end },
  { "i64_to_f64", "f64", "i64", "(double)a", function(a) return a + 0.0 end },
  { "i64_to_f32", "f32", "i64", "(float)a",
    function(a)
      local d = a + 0.0
      local lo = d == 0x1p63 and a - math.maxinteger - 1 or a - math.tointeger(d)
      return round32(d, lo, "n")
    end },
}

-- Directed rounding: add and multiply in each mode.
for _, mode in ipairs { "n", "z", "d", "u" } do
  local suffix = mode == "n" and "rn" or "r" .. mode
  OPERATIONS[#OPERATIONS + 1] = { "fadd_" .. suffix, "f32", "f32 f32",
    ("__fadd_%s(a, b)"):format(suffix), function(a, b)
      local hi, lo = two_sum(a, b)
      if hi == 0 and lo == 0 and not (a == 0 and b == 0 and 1 / a == 1 / b) then
        return mode == "d" and -0.0 or 0.0 -- an exact zero of opposite signs
      end
      return round32(hi, lo, mode)
    end }
  OPERATIONS[#OPERATIONS + 1] = { "fmul_" .. suffix, "f32", "f32 f32",
    ("__fmul_%s(a, b)"):format(suffix),
    function(a, b) return round32(a * b, 0, mode) end }
end

-- Floating point to integer: saturates; NaN gives 0 from float32 to 32 bits, the
-- top bit else.
local ROUNDINGS = {
  { "rn", function(a)
    local r = math.abs(a) < 2 ^ 52 and math.abs(a) + 0x1p52 - 0x1p52 or math.abs(a)
    return a < 0 and -r or r
  end },
  { "rz", function(a)
    return a < 0 and -math.floor(-a) or math.floor(a)
  end },
  { "rd", math.floor },
  { "ru", math.ceil },
}
for _, rounding in ipairs(ROUNDINGS) do
  local suffix, to_integer = table.unpack(rounding)
  local function saturate(least, most, nan)
    return function(a)
      if a ~= a then return nan end
      if a == math.huge then return most end
      if a == -math.huge then return least end
      local r = to_integer(a)
      if r >= most + 0.0 then return most end
      if r <= least + 0.0 then return least end
      return math.tointeger(r)
    end
  end
  local i32 = saturate(-2147483648, 2147483647, 0)
  local i64 = saturate(math.mininteger, math.maxinteger, math.mininteger)
  local add = function(name, to, from, text, reference)
    OPERATIONS[#OPERATIONS + 1] = { name .. suffix, to, from,
      text:format(suffix), reference }
  end
  add("f32_to_i32_", "i32", "f32", "__float2int_%s(a)", i32)
  -- (an H200 gives NaN in double the top bit in 32 bits too)
  add("f64_to_i32_", "i32", "f64", "__double2int_%s(a)",
    saturate(-2147483648, 2147483647, -2147483648))
  add("f32_to_i64_", "i64", "f32", "__float2ll_%s(a)", i64)
  add("f64_to_i64_", "i64", "f64", "__double2ll_%s(a)", i64)
  local unsigned = saturate(0, 4294967295, 0)
  add("f32_to_u32_", "i32", "f32", "(int)__float2uint_%s(a)",
    function(a) return wrap(unsigned(a), 32) end)
end

local CTYPES = { i32 = "int", i64 = "long long", f32 = "float", f64 = "double" }

local function kernel_source(op)
  local name, result, operands, expression = op[1], op[2], op[3], op[4]
  local params, loads, letter = {}, {}, ("a"):byte()
  for dtype in operands:gmatch "%S+" do
    local v = string.char(letter)
    params[#params + 1] = ("const %s *%ss"):format(CTYPES[dtype], v)
    loads[#loads + 1] = ("%s %s = %ss[i];"):format(CTYPES[dtype], v, v)
    letter = letter + 1
  end
  return ([[
extern "C" __global__ void op_%s(%s, %s *o) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  %s
  o[i] = %s;
}
]]):format(name, table.concat(params, ", "), CTYPES[result],
    table.concat(loads, " "), expression)
end

local PRELUDE = [[
__device__ int shl_clamped(int a, int b) {
  int r;
  asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ int shr_clamped(int a, int b) {
  int r;
  asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
]]

local function same(dtype, expected, got)
  if dtype == "i32" or dtype == "i64" then return expected == got end
  if expected ~= expected or got ~= got then
    return expected ~= expected and got ~= got
  end
  return numbers.bits64(expected) == numbers.bits64(got)
end

describe("bit-equal:", function()
  local module
  setup(function()
    local parts = { PRELUDE }
    for i, op in ipairs(OPERATIONS) do parts[i + 1] = kernel_source(op) end
    module = program("arithmetic", table.concat(parts))
  end)
  teardown(function() module:close() end)

  for index, op in ipairs(OPERATIONS) do
    local name, result, operands, expression, reference = table.unpack(op)
    it(name .. ", " .. expression, function()
      local lists, buffers = {}, {}
      for dtype in operands:gmatch "%S+" do
        local k = #lists + 1
        lists[k] = inputs(dtype, index * 8 + k, ({ 1, 7, 3 })[k])
        buffers[k] = tp.buffer(dtype, lists[k])
      end
      local o <close> = tp.zeros(result, COUNT)
      buffers[#buffers + 1] = o
      local kernel <close> = module:kernel("op_" .. name)
      kernel:launch({ grid = COUNT // 128, block = 128 }, table.unpack(buffers))
      local got = o:read()
      for _, b in ipairs(buffers) do b:close() end
      for i = 1, COUNT do
        local a, b, c = lists[1][i], lists[2] and lists[2][i],
          lists[3] and lists[3][i]
        local expected = reference(a, b, c)
        if not same(result, expected, got[i]) then
          error(("%s of (%s, %s, %s) is %s, %s expected"):format(name,
            tostring(a), tostring(b), tostring(c),
            math.type(got[i]) == "float" and ("%a"):format(got[i]) or got[i],
            math.type(expected) == "float" and ("%a"):format(expected)
            or tostring(expected)))
        end
      end
    end)
  end
end)

describe("special results:", function()
  local module
  setup(function()
    module = program("special", [[
extern "C" __global__ void nan_bits(unsigned *o, float zero) {
  o[0] = __float_as_uint(zero / zero);
  o[1] = __float_as_uint(zero * __int_as_float(0x7f800000));
  o[2] = __float_as_uint(sqrtf(zero - 1));
  o[3] = __float_as_uint(fmaf(zero, __int_as_float(0x7f800000), 1.f));
  o[4] = __float_as_uint(__int_as_float(0xffc12345) + 1.f);
}
extern "C" __global__ void ftz(float *o, float tiny) {
  float r;
  asm("mul.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(tiny), "f"(1.0f));
  o[0] = r;
  asm("mul.f32 %0, %1, %2;" : "=f"(r) : "f"(tiny), "f"(1.0f));
  o[1] = r;
  asm("add.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(-tiny), "f"(0.0f));
  o[2] = r;
}
extern "C" __global__ void approx(const float *x, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  o[i] = exp2f(v);
  o[n + i] = __log2f(fabsf(v));
  o[2 * n + i] = __sinf(v);
  o[3 * n + i] = __cosf(v);
  o[4 * n + i] = rsqrtf(fabsf(v));
  o[5 * n + i] = __fdividef(1.f, v);
  o[6 * n + i] = expf(v);
  o[7 * n + i] = logf(fabsf(v));
  o[8 * n + i] = sinf(v);
  o[9 * n + i] = powf(fabsf(v), 1.5f);
  o[10 * n + i] = tanhf(v);
}
extern "C" __global__ void doubles(const double *x, double *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v = x[i];
  o[i] = exp(v);
  o[n + i] = log(fabs(v));
  o[2 * n + i] = sin(v);
  o[3 * n + i] = pow(fabs(v), 0.3);
  o[4 * n + i] = rsqrt(fabs(v));
  o[5 * n + i] = fma(v, v, -v);
}]])
  end)
  teardown(function() module:close() end)

  it("NaN is 0x7fffffff after arithmetic", function()
    local o <close> = tp.zeros("u32", 5)
    local k <close> = module:kernel "nan_bits"
    k:launch({ grid = 1, block = 1 }, o, 0.0)
    for i, bits in ipairs(o:read()) do
      assert.equal(0x7fffffff, bits, "result " .. i)
    end
  end)

  it("ftz is per instruction", function()
    local o <close> = tp.zeros("f32", 3)
    local k <close> = module:kernel "ftz"
    k:launch({ grid = 1, block = 1 }, o, 2.0 ^ -140)
    local r = o:read()
    assert.equal(0, r[1])
    assert.equal(2.0 ^ -140, r[2])
    assert.equal(0, r[3])
  end)

  it("approximate functions stay within their bounds", function()
    local n, g = 1000, numbers.generator(5)
    local xs = g.floats(n, -10, 10)
    local x <close> = tp.buffer("f32", xs)
    local o <close> = tp.zeros("f32", 11 * n)
    local k <close> = module:kernel "approx"
    k:forall(n, x, o, n)
    local r = o:read()
    local function tanh(v)
      local e = math.exp(2 * v)
      return (e - 1) / (e + 1)
    end
    for i, v in ipairs(xs) do
      local a = math.abs(v)
      local function check(row, expected, relative, absolute)
        local got = r[row * n + i]
        local limit = math.abs(expected) * relative + absolute
        assert.is_true(math.abs(got - expected) <= limit,
          ("row %d of %s: %s, %s expected"):format(row, v, got, expected))
      end
      check(0, 2 ^ v, 2 ^ -22, 0)
      check(1, math.log(a, 2), 2 ^ -22, 2 ^ -21)
      check(2, math.sin(v), 0, 2 ^ -18)
      check(3, math.cos(v), 0, 2 ^ -18)
      check(4, 1 / math.sqrt(a), 2 ^ -22, 0)
      check(5, 1 / v, 2 ^ -21, 0)
      check(6, math.exp(v), 2 ^ -22, 0)
      check(7, math.log(a), 2 ^ -22, 2 ^ -24)
      check(8, math.sin(v), 2 ^ -22, 2 ^ -30)
      check(9, a ^ 1.5, 2 ^ -21, 0)
      check(10, tanh(v), 2 ^ -21, 0)
    end
  end)

  it("double functions are good to the last few bits", function()
    local n, g = 500, numbers.generator(6)
    local xs = g.reals(n, -20, 20)
    local x <close> = tp.buffer("f64", xs)
    local o <close> = tp.zeros("f64", 6 * n)
    local k <close> = module:kernel "doubles"
    k:forall(n, x, o, n)
    local r = o:read()
    for i, v in ipairs(xs) do
      local a = math.abs(v)
      for row, expected in pairs { [0] = math.exp(v), math.log(a), math.sin(v),
        a ^ 0.3, 1 / math.sqrt(a) } do
        assert.is_true(math.abs(r[row * n + i] - expected)
          <= math.abs(expected) * 2 ^ -50 + 2 ^ -56, row)
      end
      assert.is_true(math.abs(r[5 * n + i] - (v * v - v))
        <= (v * v + a) * 2 ^ -51)
    end
  end)
end)
