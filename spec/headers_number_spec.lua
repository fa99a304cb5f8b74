-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- cuda_fp16, cuda_bf16 and cuda_fp8: conversions in every direction and rounding,
-- comparisons ordered and unordered, pairs; on all bit patterns where there are few.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local reference = require "spec.support.reference"
local f16, bf16 = reference.f16, reference.bf16
local SOURCE = [=[
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
template <class H, class H2>
__device__ void compare(const H *x, const H *y, unsigned *o, H v, H w, H2 p,
                        H2 q) {
  unsigned r = 0, bit = 0;
#define C(e) r |= (unsigned)(e) << bit++;
  C(__heq(v, w))
  C(__hne(v, w)) C(__hlt(v, w)) C(__hle(v, w)) C(__hgt(v, w)) C(__hge(v, w))
      C(__hequ(v, w)) C(__hneu(v, w)) C(__hltu(v, w)) C(__hleu(v, w))
          C(__hgtu(v, w)) C(__hgeu(v, w)) C(__hisnan(v)) C(__hisinf(w) != 0)
              C(__hbeq2(p, q)) C(__hbltu2(p, q))
                  C(__low2float(__hgt2(p, q)) == 1.f)
                      C(__high2float(__hneu2(p, q)) == 1.f)
                          C(__heq2_mask(p, q) == 0xffff0000)
                              C(__hltu2_mask(p, q) & 1) o[threadIdx.x] = r;
}
extern "C" {
__global__ void fp8(const float *x, unsigned char *o, float *back, int n) {
  int i = threadIdx.x;
  __nv_fp8_e4m3 p(x[i]);
  __nv_fp8_e5m2 q(x[i]);
  o[i] = p.__x;
  o[n + i] = q.__x;
  o[2 * n + i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E4M3);
  o[3 * n + i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E5M2);
  o[4 * n + i] = __nv_fp8_e4m3((double)x[i]).__x;
  __nv_fp8x2_storage_t pair = __nv_cvt_float2_to_fp8x2(
      make_float2(x[i], -x[i]), __NV_SATFINITE, __NV_E4M3);
  o[5 * n + i] = pair & 255;
  o[6 * n + i] = pair >> 8;
  __half_raw h = __nv_cvt_fp8_to_halfraw(i, __NV_E4M3),
             k = __nv_cvt_fp8_to_halfraw(i, __NV_E5M2);
  back[i] = __half2float(__half(h));
  back[n + i] = __half2float(__half(k));
  __nv_fp8_e4m3 r;
  r.__x = i;
  back[2 * n + i] = float(r);
}
__global__ void roundings(const float *x, const double *d, __half *h,
                          __nv_bfloat16 *b, int n) {
  int i = threadIdx.x;
  h[i] = __float2half_rn(x[i]);
  h[n + i] = __float2half_rz(x[i]);
  h[2 * n + i] = __float2half_ru(x[i]);
  h[3 * n + i] = __float2half_rd(x[i]);
  h[4 * n + i] = __double2half(d[i]);
  b[i] = __float2bfloat16_rn(x[i]);
  b[n + i] = __float2bfloat16_rz(x[i]);
  b[2 * n + i] = __float2bfloat16_ru(x[i]);
  b[3 * n + i] = __float2bfloat16_rd(x[i]);
  b[4 * n + i] = __double2bfloat16(d[i]);
}
#define FROM(type, T)                                                          \
  o[i] = T##2int_rn(v), o[n + i] = T##2int_rz(v),                              \
  o[2 * n + i] = T##2int_ru(v), o[3 * n + i] = T##2int_rd(v);                  \
  o[4 * n + i] = T##2uint_rn(v), o[5 * n + i] = T##2ll_rz(v),                  \
            o[6 * n + i] = T##2short_rn(v), o[7 * n + i] = T##2ull_ru(v);
__global__ void half_to_int(const __half *x, long long *o, int n) {
  int i = threadIdx.x;
  __half v = x[i];
  FROM(__half, __half)
}
__global__ void bf_to_int(const __nv_bfloat16 *x, long long *o, int n) {
  int i = threadIdx.x;
  __nv_bfloat16 v = x[i];
  FROM(__nv_bfloat16, __bfloat16)
}
__global__ void int_to(const int *x, __half *h, __nv_bfloat16 *b, int n) {
  int i = threadIdx.x;
  h[i] = __int2half_rn(x[i]), h[n + i] = __int2half_rz(x[i]),
  h[2 * n + i] = __ll2half_rd(x[i]),
  h[3 * n + i] = __short2half_ru((short)x[i]);
  b[i] = __int2bfloat16_rn(x[i]), b[n + i] = __int2bfloat16_rz(x[i]),
  b[2 * n + i] = __ll2bfloat16_rd(x[i]),
  b[3 * n + i] = __short2bfloat16_ru((short)x[i]);
}
__global__ void half_compare(const __half *x, const __half *y, unsigned *o) {
  __half v = x[threadIdx.x], w = y[threadIdx.x];
  compare(x, y, o, v, w, __halves2half2(v, w), __halves2half2(w, w));
}
__global__ void bf_compare(const __nv_bfloat16 *x, const __nv_bfloat16 *y,
                           unsigned *o) {
  __nv_bfloat16 v = x[threadIdx.x], w = y[threadIdx.x];
  compare(x, y, o, v, w, __halves2bfloat162(v, w), __halves2bfloat162(w, w));
}
__global__ void pairs(const __half2 *x, const __half2 *y, __half2 *o, int n) {
  int i = threadIdx.x;
  __half2 a = x[i], b = y[i];
  int k = 0;
#define P(e) o[(k++) * n + i] = (e)
  P(a + b);
  P(a - b);
  P(a * b);
  P(__hfma2(a, b, a));
  P(__hfma2_relu(a, b, a));
  P(__hfma2_sat(a, b, a));
  P(__hmul2_sat(a, b));
  P(__hneg2(a));
  P(__habs2(a));
  P(__hmax2_nan(a, b));
  P(__hmin2(a, b));
  P(__lowhigh2highlow(a));
  P(__highs2half2(a, b));
  P(__lows2half2(a, b));
  P(__low2half2(a));
  P(h2floor(a));
  P(h2ceil(a));
  P(h2trunc(a));
  P(h2rint(a));
  P(__hcmadd(a, b, a));
  P(__float22half2_rn(make_float2(1.1f, (float)i)));
  P(__floats2half2_rn(i, 0.1f));
}
__global__ void math(const __half2 *x, __half2 *o, int n) {
  int i = threadIdx.x;
  __half2 a = x[i];
  int k = 0;
  P(h2sqrt(a));
  P(h2rsqrt(a));
  P(h2exp(a));
  P(h2exp2(a));
  P(h2exp10(a));
  P(h2log(a));
  P(h2log2(a));
  P(h2log10(a));
  P(h2sin(a));
  P(h2cos(a));
  P(h2rcp(a));
  P(h2tanh(a));
}
}
]=]

local inf, nan = math.huge, 0 / 0
local function same(a, b) return a == b or (a ~= a and b ~= b) end

describe("number headers:", function()
  local module
  setup(function() module = program("headers_number", SOURCE) end)
  teardown(function() module:close() end)
  local g = numbers.generator(816)

  -- What a float8 is worth; e4m3 has no infinity, e5m2 is the top of a float16
  local function e4m3(b)
    local e, m = b >> 3 & 15, b & 7
    local v = e == 0 and m * 2.0 ^ -9 or (8 + m) * 2.0 ^ (e - 10)
    if b & 127 == 127 then v = nan end
    return b >= 128 and -v or v
  end
  local function e5m2(b)
    local e, m = b >> 2 & 31, b & 3
    local v = e == 0 and m * 2.0 ^ -16 or (4 + m) * 2.0 ^ (e - 17)
    if e == 31 then v = m == 0 and inf or nan end
    return b >= 128 and -v or v
  end
  -- To the nearest of the finite ones by search, ties to the even pattern
  local function to_fp8(x, value, greatest, sat, beyond)
    local sign = (x < 0 or 1 / x == -inf) and 128 or 0
    local a = math.abs(x)
    if x ~= x then return nil end
    local best, distance = 0, inf
    for b = 0, greatest do
      local d = math.abs(value(b) - a)
      if d < distance or (d == distance and b % 2 == 0) then
        best, distance = b, d
      end
    end
    local step = value(greatest) - value(greatest - 1)
    local over = a > value(greatest) + step / 2 or a == inf
    if a == value(greatest) + step / 2 then over = greatest % 2 == 1 end
    if over or a > value(greatest) and sat then
      best = sat and greatest or beyond
    end
    return sign | best
  end

  it("fp8, every pattern and random numbers", function()
    local n, xs = 256, {}
    for i = 1, n do xs[i] = numbers.f32(g.real(-1, 1) * 2.0 ^ g.int(-18, 16)) end
    for i = 1, 60 do xs[i] = e4m3(g.int(0, 126)) + e4m3(g.int(0, 8)) / 2 end
    for i, x in ipairs { 0.0, -0.0, inf, -inf, nan, 448, 464, 465, 57344, 61440,
      61441, 2.0 ^ -10, 2.0 ^ -17, 3 * 2.0 ^ -10 } do
      xs[60 + i] = x
    end
    local x <close> = tp.buffer("f32", xs)
    local o <close> = tp.zeros("u8", 7 * n)
    local back <close> = tp.zeros("f32", 3 * n)
    module:kernel "fp8":launch({ grid = 1, block = n }, x, o, back, n)
    local r, s = o:read(), back:read()
    for i, v in ipairs(xs) do
      local sat4 = to_fp8(v, e4m3, 126, true)
      local sat5 = to_fp8(v, e5m2, 123, true)
      local what = ("%.9g"):format(v)
      if v == v then
        assert.equal(sat4, r[i], what)
        assert.equal(sat5, r[n + i], what)
        assert.equal(to_fp8(v, e4m3, 126, false, 127), r[2 * n + i], what)
        assert.equal(to_fp8(v, e5m2, 123, false, 124), r[3 * n + i], what)
        assert.equal(sat4, r[4 * n + i], what)
        assert.equal(sat4, r[5 * n + i], what)
        assert.equal(sat4 ~ 128, r[6 * n + i], what)
      else
        assert.equal(127, r[i] & 127)
        assert.is_true(e5m2(r[n + i]) ~= e5m2(r[n + i]))
      end
    end
    for b = 0, 255 do
      assert.is_true(same(e4m3(b), s[b + 1]), b)
      assert.is_true(same(e5m2(b), s[n + b + 1]), b)
      assert.is_true(same(e4m3(b), s[2 * n + b + 1]), b)
    end
  end)

  it("float and double to half, in every direction", function()
    local n, xs, ds = 256, {}, {}
    for i = 1, n do
      xs[i] = numbers.f32(g.real(-1, 1) * 2.0 ^ g.int(-26, 17))
      ds[i] = xs[i] * (1 + g.real(-1, 1) * 2.0 ^ -20)
    end
    for i = 1, 40 do -- halfway between two, and next to it
      ds[i] = f16(g.real(-9, 9)) * (1 + 2.0 ^ -11) + (i - 20) * 2.0 ^ -51
    end
    for i, x in ipairs { 0.0, -0.0, inf, -inf, nan, 65504, 65519, 65520, -65520,
      65536, 3.4e38, -3.4e38 } do
      xs[i] = numbers.f32(x)
    end
    local x <close> = tp.buffer("f32", xs)
    local d <close> = tp.buffer("f64", ds)
    local h <close> = tp.zeros("f16", 5 * n)
    local b <close> = tp.zeros("bf16", 5 * n)
    module:kernel "roundings":launch({ grid = 1, block = n }, x, d, h, b, n)
    local hs, bs = h:read(), b:read()
    for row, mode in ipairs { "rn", "rz", "ru", "rd", "double" } do
      for i = 1, n do
        local v, m = xs[i], mode
        if mode == "double" then v, m = ds[i], "rn" end
        local at = (row - 1) * n + i
        local text = ("%s(%.17g): %.9g, %.9g"):format(mode, v, hs[at], bs[at])
        assert.is_true(same(f16(v, m), hs[at]), text)
        assert.is_true(same(bf16(v, m), bs[at]), text)
      end
    end
  end)

  it("halves to integers and back", function()
    for name, rounded in pairs { half = f16, bf = bf16 } do
      local n, xs = 128, {}
      for i = 1, n do xs[i] = rounded(g.real(-1, 1) * 2.0 ^ g.int(-2, 15)) end
      xs[1], xs[2], xs[3] = inf, -inf, 2.5
      local x <close> = tp.buffer(name == "half" and "f16" or "bf16", xs)
      local o <close> = tp.zeros("i64", 8 * n)
      module:kernel(name .. "_to_int"):launch({ grid = 1, block = n }, x, o, n)
      local r = o:read()
      local function limited(v, least, most)
        if v <= least then return math.tointeger(least) end
        if v >= most then return math.tointeger(most) or math.maxinteger end
        return math.tointeger(v)
      end
      for row, e in ipairs { { "rn", 32 }, { "rz", 32 }, { "ru", 32 }, { "rd", 32 },
        { "rn", 32, true }, { "rz", 64 }, { "rn", 16 }, { "ru", 64, true } } do
        for i = 1, n do
          local least = e[3] and 0.0 or -2.0 ^ (e[2] - 1)
          local most = e[3] and 2.0 ^ e[2] - 1 or 2.0 ^ (e[2] - 1) - 1
          local expected = limited(reference.round(xs[i], e[1]), least, most)
          if e[2] == 64 and xs[i] == inf then
            expected = e[3] and -1 or math.maxinteger
          end
          assert.equal(expected, r[(row - 1) * n + i],
            ("%s %s of %g"):format(name, row, xs[i]))
        end
      end
    end
    local n = 128
    local xs = g.ints(n, -70000, 70000)
    local x <close> = tp.buffer("i32", xs)
    local h <close> = tp.zeros("f16", 4 * n)
    local b <close> = tp.zeros("bf16", 4 * n)
    module:kernel "int_to":launch({ grid = 1, block = n }, x, h, b, n)
    local hs, bs = h:read(), b:read()
    for row, mode in ipairs { "rn", "rz", "rd", "ru" } do
      for i = 1, n do
        local v = row == 4 and numbers.wrap(xs[i], 16) or xs[i]
        local at = (row - 1) * n + i
        assert.equal(f16(v, mode), hs[at], mode .. " " .. v)
        assert.equal(bf16(v, mode), bs[at], mode .. " " .. v)
      end
    end
  end)

  it("comparisons", function()
    for name, rounded in pairs { half = f16, bf = bf16 } do
      local n, xs, ys = 64, {}, {}
      local special = { 0.0, -0.0, inf, -inf, nan, 1.0 }
      for i = 1, n do
        xs[i], ys[i] = rounded(g.real(-2, 2)), rounded(g.real(-2, 2))
        if i <= 36 then
          xs[i], ys[i] = special[(i - 1) // 6 + 1], special[(i - 1) % 6 + 1]
        elseif i < 44 then
          ys[i] = xs[i]
        end
      end
      local dtype = name == "half" and "f16" or "bf16"
      local x <close> = tp.buffer(dtype, xs)
      local y <close> = tp.buffer(dtype, ys)
      local o <close> = tp.zeros("u32", n)
      module:kernel(name .. "_compare"):launch({ grid = 1, block = n }, x, y, o)
      local r = o:read()
      for i = 1, n do
        local v, w = xs[i], ys[i]
        local u = v ~= v or w ~= w
        local expected, bit = 0, 0
        -- the pair is (v, w) against (w, w)
        for _, c in ipairs { v == w, v ~= w and not u, v < w, v <= w, v > w, v >= w,
          v == w or u, v ~= w, v < w or u, v <= w or u, v > w or u, v >= w or u,
          v ~= v, math.abs(w) == inf, v == w and w == w,
          (v < w or u) and w ~= w, v > w, w ~= w,
          v ~= w and w == w, v < w or u } do
          if c then expected = expected | 1 << bit end
          bit = bit + 1
        end
        assert.equal(expected, r[i], ("%s %g %g"):format(name, v, w))
      end
    end
  end)

  it("pairs of halves", function()
    local n, xs, ys = 64, {}, {}
    for i = 1, 2 * n do xs[i], ys[i] = f16(g.real(-4, 4)), f16(g.real(-4, 4)) end
    xs[1], ys[3], xs[5] = nan, nan, -0.0
    local x <close> = tp.buffer("f16", xs)
    local y <close> = tp.buffer("f16", ys)
    local o <close> = tp.zeros("f16", 2 * n * 22)
    module:kernel "pairs":launch({ grid = 1, block = n }, x, y, o, n)
    local r = o:read()
    local function sat(v) return v ~= v and 0 or math.max(0, math.min(1, v)) end
    local function each(f)
      return function(a, b) return { f(a[1], b[1]), f(a[2], b[2]) } end
    end
    local round = reference.round
    local list = {
      each(function(a, b) return a + b end), each(function(a, b) return a - b end),
      each(function(a, b) return a * b end),
      each(function(a, b) return a * b + a end),
      each(function(a, b)
        local v = a * b + a
        return v ~= v and v or math.max(0, v)
      end),
      each(function(a, b) return sat(a * b + a) end),
      each(function(a, b) return sat(a * b) end),
      each(function(a) return -a end), each(math.abs),
      each(function(a, b)
        if a ~= a or b ~= b then return nan end
        return math.max(a, b)
      end),
      each(function(a, b)
        if a ~= a then return b end
        return b ~= b and a or math.min(a, b)
      end),
      function(a) return { a[2], a[1] } end,
      function(a, b) return { a[2], b[2] } end,
      function(a, b) return { a[1], b[1] } end,
      function(a) return { a[1], a[1] } end,
      each(function(a) return round(a, "rd") end),
      each(function(a) return round(a, "ru") end),
      each(function(a) return round(a, "rz") end),
      each(function(a) return round(a, "rn") end),
      function(a, b) -- complex a * b + a, by fused steps
        local re = f16(a[1] * b[1] + a[1])
        local im = f16(a[1] * b[2] + a[2])
        return { f16(-a[2] * b[2] + re), f16(a[2] * b[1] + im) }
      end,
      function(_, _, i) return { 1.1, i } end,
      function(_, _, i) return { i, 0.1 } end,
    }
    for k, f in ipairs(list) do
      for i = 0, n - 1 do
        local a, b = { xs[2 * i + 1], xs[2 * i + 2] }, { ys[2 * i + 1], ys[2 * i + 2] }
        local e = f(a, b, i)
        for c = 1, 2 do
          local got = r[(k - 1) * 2 * n + 2 * i + c]
          assert.is_true(same(f16(e[c]), got), ("row %d, element %d: %g, %g expected")
            :format(k, 2 * i + c, got, e[c]))
        end
      end
    end
  end)

  it("functions of pairs", function()
    local n, xs = 128, {}
    for i = 1, 2 * n do xs[i] = f16(g.real(0.01, 4.5)) end
    local x <close> = tp.buffer("f16", xs)
    local o <close> = tp.zeros("f16", 2 * n * 12)
    module:kernel "math":launch({ grid = 1, block = n }, x, o, n)
    local r = o:read()
    for k, f in ipairs { math.sqrt, function(v) return 1 / math.sqrt(v) end,
      math.exp, function(v) return 2.0 ^ v end, function(v) return 10.0 ^ v end,
      function(v) return math.log(v) end, function(v) return math.log(v, 2) end,
      function(v) return math.log(v, 10) end, math.sin, math.cos,
      function(v) return 1 / v end, reference.tanh } do
      for i = 1, 2 * n do
        local e, got = f16(f(xs[i])), r[(k - 1) * 2 * n + i]
        -- two units in the last place; near a zero, of 1
        local limit = math.max(math.abs(e) * 2.0 ^ -9, 2.0 ^ -20)
        if not (math.abs(e - got) <= limit) then
          error(("function %d of %g: %g, %g expected"):format(k, xs[i], got, e))
        end
      end
    end
  end)
end)
