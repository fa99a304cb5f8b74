-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's mathematical kernels: every function of float32 and float64 against
-- a reference of its own on random inputs. The bounds are those that the CUDA C++
-- guide and the PTX manual give; 0 where the result is rounded correctly.
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"
local reference = require "spec.support.reference"
local r32, round = reference.f32, reference.round
local inf, nan = math.huge, 0 / 0
local ULP = 2.0 ^ -23 -- the most that one unit in the last place can be

local function sign_bit(x) return numbers.bits64(x) < 0 end
local function with_sign(x, of) return sign_bit(of) and -math.abs(x) or math.abs(x) end

-- An entry of a list: name, reference, units in the last place, absolute error.
-- `only` restricts the inputs.
local function entry(name, f, ulps, absolute, only)
  return { name = name, f = f, ulps = ulps or 0, absolute = absolute or 0,
    only = only }
end

-- An entry whose value the thread's number gives.
local function lane_entry(name, f)
  return { name = name, of_lane = f, ulps = 0, absolute = 0 }
end

local function within(least, most)
  return function(x) return x >= least and x <= most end
end

local function finite(x) return x == x and math.abs(x) < inf end

local function integer(x) return x == x and math.tointeger(round(x, "rz")) end

-- Zero compares with its sign.
local function same(a, b)
  return (a ~= a and b ~= b) or (a == b and (a ~= 0 or 1 / a == 1 / b))
end

local function value(e, x, i)
  if e.of_lane then return e.of_lane(i - 1) end
  return e.f(x)
end

-- Compares row k of the results with entry k of the list, element by element.
local function compare(list, xs, got, ulp, rounded)
  for k, e in ipairs(list) do
    for i, x in ipairs(xs) do
      if not e.only or e.only(x) then
        local y, expected = got[(k - 1) * #xs + i], rounded(value(e, x, i))
        local limit = math.abs(expected) * ulp * e.ulps + e.absolute
        if not same(y, expected) and
          not (finite(expected) and math.abs(y - expected) <= limit and limit > 0)
        then
          error(("%s(%.17g) is %.17g, %.17g expected (within %g)"):format(e.name,
            x, y, expected, limit), 2)
        end
      end
    end
  end
end

local function run(kernel, dtype, xs, rows)
  local n = #xs
  local x <close> = tp.buffer(dtype, xs)
  local o <close> = tp.zeros(dtype, n * rows)
  kernel:launch({ grid = (n + 127) // 128, block = 128 }, x, o, n)
  return o:read()
end

-- Numbers of several sizes, of both signs
local function inputs(g, rounding, special)
  local xs = {}
  for _, range in ipairs { { 60, 1 }, { 80, 4 }, { 60, 12 }, { 30, 60 } } do
    for _ = 1, range[1] do
      xs[#xs + 1] = rounding(g.real(-range[2], range[2]))
    end
  end
  for _, x in ipairs(special) do xs[#xs + 1] = x end
  return xs
end

local half, y03, y33, y01 = 0.5, r32(0.3), r32(3.3), r32(0.1)

local function sinh_bound(x) return math.abs(x) <= 60 end
local function frexp(x)
  if x == 0 or not finite(x) then return x, 0 end
  local e = reference.exponent(x) + 1
  return x * 2.0 ^ -e, e
end
local function next32(x) -- towards 10
  if x ~= x or x == 10 then return x end
  if x == 0 then return 2.0 ^ -149 end
  if x == inf then return numbers.from_bits32(0x7f7fffff) end
  local up = (x > 0) == (x < 10)
  return numbers.from_bits32(numbers.bits32(x) + (up and 1 or -1))
end
-- Half away from zero, as roundf does
local function away(x)
  if not finite(x) or x == 0 then return x end
  return with_sign(reference.round(math.abs(x) + 0.5, "rd"), x)
end
local function int(f) -- what a conversion to a 32-bit integer gives
  return function(x)
    if x ~= x then return 0.0 end
    return math.max(-2147483648.0, math.min(2147483647.0, f(x))) + 0.0
  end
end

describe("corpus 07 float32", function()
  local kernel = corpus.module(setup, teardown, "07_math_f32.cu")
  local g = numbers.generator(7)
  local tiny = r32(1e-40)
  local xs = inputs(g, r32, { 0.0, -0.0, 1, -1, 2.5, -2.5, 0.5, tiny, inf, -inf,
    nan })

  local list = {
    entry("sinf", math.sin, 2, 1e-7), entry("cosf", math.cos, 2, 1e-7),
    entry("tanf", math.tan, 4), entry("asinf", math.asin, 2),
    entry("acosf", math.acos, 2), entry("atanf", math.atan, 2),
    entry("atan2f", function(x) return math.atan(x, half) end, 3),
    entry("sinhf", reference.sinh, 3, 0, sinh_bound),
    entry("coshf", reference.cosh, 2, 0, sinh_bound),
    entry("tanhf", reference.tanh, 2),
    entry("expf", math.exp, 2), entry("exp2f", function(x) return 2.0 ^ x end, 2),
    entry("exp10f", function(x) return 10.0 ^ x end, 2),
    entry("expm1f", reference.expm1, 1),
    entry("logf", math.log, 1),
    entry("log2f", function(x) return math.log(x, 2) end, 1),
    entry("log10f", function(x) return math.log(x, 10) end, 2),
    entry("log1pf", reference.log1p, 1),
    entry("powf", function(x) return x ^ r32(1.7) end, 4, 0, finite),
    entry("sqrtf", math.sqrt),
    entry("rsqrtf", function(x) return 1 / math.sqrt(x) end, 2),
    entry("cbrtf", reference.cbrt, 1),
    entry("erff", reference.erf, 2), entry("erfcf", reference.erfc, 4, 2.0 ^ -149),
    entry("tgammaf", reference.tgamma, 6, 1e-44, within(-20, 30)),
    entry("lgammaf", reference.lgamma, 6, 4e-6),
    entry("fmodf", function(x)
      return finite(x) and math.fmod(x, y03) or nan
    end),
    entry("remainderf", function(x)
      return finite(x) and with_sign(1, x) * reference.remainder(math.abs(x), y03)
        or nan
    end),
    entry("floorf", function(x) return round(x, "rd") end, 0, 0,
      function(x) return x <= -1 or x >= 0 end),
    entry("ceilf", function(x) return round(x, "ru") end),
    entry("truncf", function(x) return round(x, "rz") end),
    entry("rintf", round), entry("roundf", away),
    entry("nearbyintf", round),
    entry("fabsf", math.abs),
    entry("copysignf", function(x) return -math.abs(x) end),
    entry("fminf", function(x) return x ~= x and y01 or math.min(x, y01) end),
    entry("fmaxf", function(x) return x ~= x and y01 or math.max(x, y01) end),
    entry("fmaf", function(x) return x * x + 1 end),
    entry("hypotf", function(x) return math.sqrt(x * x + 4) end, 3),
    entry("j0f", reference.j0, 9, 2.3e-6, finite),
    entry("normcdff", reference.normcdf, 5, 1e-37),
    entry("sinpif", function(x)
      return x == 0 and x or finite(x) and reference.sin_pi(x) or nan
    end, 1, 1e-7),
    entry("ldexpf", function(x) return x * 8 end),
    entry("ilogbf", function(x) return reference.exponent(x) end, 0, 0,
      function(x) return finite(x) and x ~= 0 end),
    entry("isnan", function(x) return x ~= x and 1 or 0 end),
    entry("isinf", function(x) return math.abs(x) == inf and 1 or 0 end),
    entry("signbit", function(x) return sign_bit(x) and 1 or 0 end, 0, 0,
      function(x) return x == x end),
    entry("1/x", function(x) return 1 / x end),
    entry("x/3.3", function(x) return x / y33 end),
    entry("lroundf", away, 0, 1e-30, finite),
    entry("llrintf", round, 0, 1e-30, finite),
    entry("frexpf", function(x) return (frexp(x)) end),
    entry("exponent", function(x) return select(2, frexp(x)) end, 0, 0, finite),
    entry("modff", function(x)
      if math.abs(x) == inf then return with_sign(0.0, x) end
      return with_sign(x - round(x, "rz"), x)
    end),
    entry("whole", function(x) return round(x, "rz") end),
    entry("sincosf", function(x) return math.sin(x) + math.cos(x) end, 2, 4e-7),
    entry("nextafterf", next32, 0, 0, within(-100, 100)),
    entry("fdimf", function(x)
      return x ~= x and x or math.max(x - r32(0.2), 0.0)
    end),
    entry("rhypotf", function(x) return 1 / math.sqrt(x * x + 1) end, 2),
    entry("rcbrtf", function(x) return 1 / reference.cbrt(x) end, 1),
    entry("erfinvf", function(x) return reference.erfinv(r32(x * y01)) end, 2, 0,
      within(-9.99, 9.99)),
    entry("cyl_bessel_i0f", reference.i0, 6, 0, finite),
  }

  it("has every function right", function()
    compare(list, xs, run(kernel "math32", "f32", xs, #list), ULP, r32)
  end)

  local unit = function(x) return math.abs(x) <= 3.14 end
  local positive = function(x) return x > 1e-30 and x < inf end
  local fast = {
    entry("__sinf", math.sin, 0, 2.0 ^ -21, unit),
    entry("__cosf", math.cos, 0, 2.0 ^ -21, unit),
    entry("__tanf", math.tan, 40, 1e-6, within(-1.5, 1.5)),
    entry("__expf", math.exp, 80, 1e-37, finite),
    entry("__exp10f", function(x) return 10.0 ^ x end, 140, 1e-37, within(-37, 38)),
    entry("__logf", math.log, 3, 2.0 ^ -21, positive),
    entry("__log2f", function(x) return math.log(x, 2) end, 2, 2.0 ^ -21.5,
      positive),
    entry("__log10f", function(x) return math.log(x, 10) end, 3, 2.0 ^ -22,
      positive),
    entry("__powf", function(x) return x ^ r32(2.3) end, 60, 1e-37, positive),
    entry("__fdividef", function(x) return x / 3 end, 2, 0, finite),
    entry("__frcp_rn", function(x) return 1 / x end),
    entry("__fsqrt_rn", math.sqrt),
    entry("__frsqrt_rn", function(x) return 1 / math.sqrt(x) end),
    entry("__saturatef", function(x)
      return x ~= x and 0.0 or math.max(0.0, math.min(1.0, x))
    end, 0, 1e-45),
  }
  for _, mode in ipairs { "rz", "ru", "rd" } do
    local other = mode == "rz" and 1 or y01
    table.insert(fast, entry("__fadd_" .. mode,
      function(x) return r32(x + other, mode) end, 0, 0,
      function(x) return x ~= tiny end))
  end
  for _, mode in ipairs { "rz", "ru", "rd" } do
    table.insert(fast, entry("__fmul_" .. mode,
      function(x) return r32(x * y01, mode) end))
  end
  for _, mode in ipairs { "rz", "ru", "rd" } do
    table.insert(fast, entry("__fmaf_" .. mode,
      function(x) return r32(x * x + y01, mode) end, 0, 0,
      function(x) return x ~= tiny end))
  end
  for _, mode in ipairs { "rn", "rz", "ru", "rd" } do
    table.insert(fast, entry("__fdiv_" .. mode,
      function(x) return r32(x / 3, mode) end))
  end
  table.insert(fast, entry("__frcp_rz", function(x) return r32(1 / x, "rz") end, 0,
    0, function(x) return x ~= tiny end))
  table.insert(fast, entry("__fsqrt_rz", function(x)
    return r32(math.sqrt(x), "rz")
  end))
  local as_bits = { __float2int_rn = true, __tanhf = true }
  for _, e in ipairs {
    entry("__float2int_rn", function(x)
      return numbers.from_bits32(math.tointeger(int(round)(x)) & 0xffffffff)
    end),
    entry("__float2int_rz", int(function(x) return round(x, "rz") end)),
    entry("__float2int_ru", int(function(x) return round(x, "ru") end)),
    entry("__float2int_rd", int(function(x) return round(x, "rd") end)),
    entry("__float2uint_rn", function(x)
      return x ~= x and 0.0 or math.max(0.0, math.min(4294967295.0, round(x)))
    end),
    entry("__float2ll_rn", function(x) return round(x) + 0.0 end, 0, 0, finite),
    lane_entry("__int2float_rz", function(i) return i end),
    lane_entry("__uint2float_ru", function(i) return i end),
    lane_entry("__ll2float_rd", function(i) return i end),
    entry("__tanhf", reference.tanh, 2.0 ^ 12),
  } do
    -- An integer has no negative zero.
    local f = e.f
    e.f = function(x)
      local y = f(x)
      return y == 0 and not as_bits[e.name] and 0.0 or y
    end
    table.insert(fast, e)
  end

  it("has every intrinsic right", function()
    compare(fast, xs, run(kernel "fast32", "f32", xs, #fast), ULP, r32)
  end)
end)

describe("corpus 08 float64", function()
  local kernel = corpus.module(setup, teardown, "08_math_f64.cu")
  local g = numbers.generator(8)
  local function keep(x) return x end
  local xs = inputs(g, keep, { 0.0, -0.0, 1, -1, 2.5, -2.5, 0.5, inf, -inf, nan })
  local two_sum, two_product = reference.two_sum, reference.two_product

  -- x + 0.1, x * 0.1 and x * x + 0.1 with one rounding, in any direction
  local function sum(x, mode)
    if not finite(x) then return x end
    local s, rest = two_sum(x, 0.1)
    return reference.f64(s, rest, mode)
  end
  local function product(x, mode)
    if not finite(x) or x == 0 then return x * 0.1 end
    local p, rest = two_product(x, 0.1)
    return reference.f64(p, rest, mode)
  end
  local function multiply_add(x, mode)
    if not finite(x) then return x * x end
    local p, lost = two_product(x, x)
    local s, rest = two_sum(p, 0.1)
    return reference.f64(s, rest + lost, mode)
  end

  -- In units of the last place of a double; the references themselves are good to
  -- a few, those made of series to some tens.
  local list = {
    entry("sin", math.sin, 2), entry("cos", math.cos, 2), entry("tan", math.tan, 2),
    entry("asin", math.asin, 2), entry("acos", math.acos, 2),
    entry("atan", math.atan, 2),
    entry("atan2", function(x) return math.atan(x, half) end, 3),
    entry("sinh", reference.sinh, 8), entry("cosh", reference.cosh, 4),
    entry("tanh", reference.tanh, 8), entry("exp", math.exp, 2),
    entry("exp2", function(x) return 2.0 ^ x end, 2),
    entry("exp10", function(x) return 10.0 ^ x end, 2),
    entry("expm1", reference.expm1, 8), entry("log", math.log, 2),
    entry("log2", function(x) return math.log(x, 2) end, 2),
    entry("log10", function(x) return math.log(x, 10) end, 2),
    entry("log1p", reference.log1p, 8),
    entry("pow", function(x) return x ^ 1.7 end, 3, 0, finite),
    entry("sqrt", math.sqrt), entry("rsqrt", function(x)
      return 1 / math.sqrt(x)
    end, 2),
    entry("cbrt", reference.cbrt, 3), entry("erf", reference.erf, 30),
    entry("erfc", reference.erfc, 150, 1e-300),
    entry("tgamma", reference.tgamma, 200, 0, within(-9, 60)),
    entry("lgamma", reference.lgamma, 60, 1e-14, within(-9, 70)),
    entry("fmod", function(x) return finite(x) and math.fmod(x, 0.3) or nan end),
    entry("floor", function(x) return round(x, "rd") end, 0, 0,
      function(x) return x <= -1 or x >= 0 end),
    entry("ceil", function(x) return round(x, "ru") end),
    entry("trunc", function(x) return round(x, "rz") end),
    entry("rint", round), entry("round", away), entry("fabs", math.abs),
    entry("fma", function(x)
      if not finite(x) then return x * x end
      local p, lost = two_product(x, x)
      local s, rest = two_sum(p, 1.0)
      return reference.f64(s, rest + lost, "rn")
    end),
    entry("hypot", function(x) return math.sqrt(x * x + 4) end, 3),
    entry("1/x", function(x) return 1 / x end),
    entry("x/3.3", function(x) return x / 3.3 end),
    entry("__dadd_rz", function(x) return sum(x, "rz") end),
    entry("__dmul_ru", function(x) return product(x, "ru") end),
    entry("__fma_rd", function(x) return multiply_add(x, "rd") end),
    entry("__ddiv_rn", function(x) return x / 3 end),
    entry("__drcp_rn", function(x) return 1 / x end),
    entry("__dsqrt_rn", math.sqrt),
    entry("__double2int_rn", function(x) -- unlike that of a float32 NaN
      return x ~= x and -2147483648.0 or int(round)(x) + 0.0
    end),
    entry("__double2ll_rz", function(x) return integer(x) + 0.0 end, 0, 0, finite),
    entry("(float)", r32),
    entry("__double2float_rz", function(x) return r32(x, "rz") end),
    entry("__double2hiint", function(x) return numbers.bits64(x) >> 32 end, 0, 0,
      function(x) return x == x and not sign_bit(x) end),
    entry("__hiloint2double", function()
      return (string.unpack("<d", string.pack("<i4i4", 2, 1)))
    end),
    entry("(unsigned long long)", function(x) return math.floor(x) end, 0, 0,
      function(x) return x >= 0 and x < inf end),
  }

  it("has every function right", function()
    local got = run(kernel "math64", "f64", xs, #list)
    for k, e in ipairs(list) do
      if e.name:find "int_rn" or e.name:find "ll_rz" then -- no negative zero
        local f = e.f
        e.f = function(x) return f(x) + 0.0 end
      end
      assert.is_truthy(got[k * #xs], e.name)
    end
    compare(list, xs, got, 2.0 ^ -52, keep)
  end)
end)

describe("corpus 39 instructions", function()
  local kernel = corpus.module(setup, teardown, "39_asm_fp.cu")
  local g = numbers.generator(39)
  local xs = {}
  for i = 1, 60 do xs[i] = r32(g.real(-3.1, 3.1)) end
  for i = 61, 110 do xs[i] = r32(g.real(0, 100)) end
  for _, x in ipairs { 0.0, -0.0, 1, -1, r32(1e-40), r32(-1e-40), inf, -inf, nan } do
    xs[#xs + 1] = x
  end
  local function ftz(x)
    return math.abs(x) < 2.0 ^ -126 and with_sign(0.0, x) or x
  end
  local function flushed(f) return function(x) return ftz(f(ftz(x))) end end
  local function normal(x) return math.abs(x) >= 2.0 ^ -126 or x == 0 end
  local unit = function(x) return math.abs(x) <= 3.1416 end
  local function rsqrt(x) return 1 / math.sqrt(x) end
  local function log2(x) return math.log(x, 2) end
  local function inverse(x) return 1 / x end
  local function power(x) return 2.0 ^ x end
  -- Only where its sign is a matter of the bits
  local function known(x) return x == x end
  local function upwards(x)
    if x ~= x then return -2.0 ^ 63 end
    if x == inf then return 2.0 ^ 63 end
    return x == -inf and -2.0 ^ 63 or round(x, "ru") + 0.0
  end

  local list = {
    entry("sin.approx", math.sin, 0, 2.0 ^ -20.9, unit),
    entry("cos.approx.ftz", math.cos, 0, 2.0 ^ -20.9, unit),
    entry("ex2.approx", power, 2), entry("ex2.approx.ftz", flushed(power), 2),
    entry("lg2.approx", log2, 2, 2.0 ^ -22),
    entry("lg2.approx.ftz", flushed(log2), 2, 2.0 ^ -22),
    entry("rcp.approx.ftz", flushed(inverse), 1),
    entry("rcp.rn", inverse),
    entry("rsqrt.approx", rsqrt, 2), entry("rsqrt.approx.ftz", flushed(rsqrt), 2),
    entry("sqrt.approx", math.sqrt, 2), entry("sqrt.rn", math.sqrt),
    entry("sqrt.rz.ftz", flushed(function(x) return r32(math.sqrt(x), "rz") end)),
    entry("abs.ftz", flushed(math.abs)), entry("neg", function(x) return -x end),
    entry("tanh.approx", reference.tanh, 2.0 ^ 12),
    entry("cvt.rni", round),
    entry("cvt.rzi.ftz", flushed(function(x) return round(x, "rz") end)),
    entry("cvt.sat", function(x)
      return x ~= x and 0.0 or math.max(0.0, math.min(1.0, x))
    end, 0, 1e-45),
    entry("rcp.rn.f64", inverse), entry("sqrt.rn.f64", math.sqrt),
    entry("rsqrt.approx.f64", rsqrt, 1), entry("rcp.approx.ftz.f64", inverse, 16),
    entry("cvt.rmi.f64", function(x) return round(x, "rd") end, 0, 0,
      function(x) return x <= -1 or x >= 0 end),
    entry("abs.f64", math.abs), entry("neg.f64", function(x) return -x end),
    entry("fma.rz.ftz.sat", function(x)
      if x ~= x then return 0.0 end
      x = ftz(x)
      local y = r32(x * x + x, "rz")
      if x == -inf then return 0.0 end
      return ftz(math.max(0.0, math.min(1.0, y)))
    end, 0, 1e-45),
    entry("add.rm", function(x) return r32(x + x, "rd") end),
    entry("mul.ftz", flushed(function(x) return x * x end)),
    entry("div.full", function(x) return x / 3 end, 2, 0, normal),
    entry("div.approx.ftz", flushed(function(x) return x / 3 end), 2),
    -- its first operand gives the sign, its second the rest
    entry("copysign", function(x) return with_sign(3.0, x) end, 0, 0, known),
    entry("testp.finite", function(x) return finite(x) and 1 or 0 end),
    entry("min.NaN", function(x) return x ~= x and x or math.min(x, 3.0) end),
    entry("max", function(x) return x ~= x and 3.0 or math.max(x, 3.0) end),
    entry("cvt.rn.f16", function(x)
      if x ~= x then return 0x7fff end
      local y = reference.f16(x)
      local sign, a = sign_bit(x) and 0x8000 or 0, math.abs(y)
      if a == inf then return sign | 0x7c00 end
      if a < 2.0 ^ -14 then return sign | math.tointeger(a * 2.0 ^ 24) end
      local e = reference.exponent(a)
      return sign | e + 15 << 10 | math.tointeger((a * 2.0 ^ -e - 1) * 1024)
    end),
    entry("cvt.rni.s32", function(x) return int(round)(x) + 0.0 end),
    lane_entry("cvt.sat.u8", function(t)
      return math.max(0, math.min(255, t * 50 - 100))
    end),
    entry("cvt.rpi.s64", upwards),
    entry("set.gt", function(x) return x > 0.5 and 1 or 0 end),
  }

  it("are right", function()
    local n = #xs
    local x <close> = tp.buffer("f32", xs)
    local o <close> = tp.zeros("f32", n * #list)
    kernel "fpasm":launch({ grid = 1, block = 128 }, x, o, n)
    compare(list, xs, o:read(), ULP, r32)
  end)
end)
