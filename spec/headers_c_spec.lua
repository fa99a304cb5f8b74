-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The headers of the C library that compilations find without a host compiler, under
-- their C and their C++ names: what they define has the values it has everywhere.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"

local C = { "assert.h", "stdio.h", "stdint.h", "limits.h", "float.h", "math.h",
  "string.h", "stddef.h", "stdlib.h" }
local CPP = { "cassert", "cstdio", "cstdint", "climits", "cfloat", "cmath", "cstring",
  "cstddef", "cstdlib" }

local function include(names)
  local lines = {}
  for i, name in ipairs(names) do lines[i] = "#include <" .. name .. ">\n" end
  return table.concat(lines)
end

-- name → value
local INTEGERS = {
  CHAR_BIT = 8, SCHAR_MIN = -128, SCHAR_MAX = 127, UCHAR_MAX = 255, CHAR_MIN = -128,
  CHAR_MAX = 127, SHRT_MIN = -32768, SHRT_MAX = 32767, USHRT_MAX = 65535,
  INT_MIN = -2147483648, INT_MAX = 2147483647, UINT_MAX = 4294967295,
  LONG_MIN = math.mininteger, LONG_MAX = math.maxinteger, ULONG_MAX = -1,
  LLONG_MIN = math.mininteger, LLONG_MAX = math.maxinteger, ULLONG_MAX = -1,
  INT8_MIN = -128, INT8_MAX = 127, UINT8_MAX = 255, INT16_MIN = -32768,
  INT16_MAX = 32767, UINT16_MAX = 65535, INT32_MIN = -2147483648,
  INT32_MAX = 2147483647, UINT32_MAX = 4294967295, INT64_MIN = math.mininteger,
  INT64_MAX = math.maxinteger, UINT64_MAX = -1, SIZE_MAX = -1,
  INTPTR_MAX = math.maxinteger, ["INT64_C(5000000000)"] = 5000000000,
  ["UINT8_C(200)"] = 200, ["sizeof(int8_t)"] = 1, ["sizeof(uint16_t)"] = 2,
  ["sizeof(int32_t)"] = 4, ["sizeof(uint64_t)"] = 8, ["sizeof(intptr_t)"] = 8,
  ["sizeof(size_t)"] = 8, ["sizeof(ptrdiff_t)"] = 8, ["sizeof(int_fast16_t)"] = 2,
  ["(int8_t)200"] = -56, ["(uint16_t)-1"] = 65535, FLT_RADIX = 2, FLT_MANT_DIG = 24,
  FLT_DIG = 6, FLT_MAX_EXP = 128, FLT_MIN_EXP = -125, FLT_MAX_10_EXP = 38,
  FLT_MIN_10_EXP = -37, DBL_MANT_DIG = 53, DBL_DIG = 15, DBL_MAX_EXP = 1024,
  DBL_MIN_EXP = -1021, DBL_MAX_10_EXP = 308, DBL_MIN_10_EXP = -307,
  ["offsetof(struct pair, second)"] = 8, ["NULL == (void *)0"] = 1,
}
local REALS = {
  FLT_EPSILON = 0x1p-23, FLT_MIN = 0x1p-126, FLT_MAX = 0x1.fffffep127,
  FLT_TRUE_MIN = 0x1p-149, DBL_EPSILON = 0x1p-52, DBL_MIN = 0x1p-1022,
  DBL_MAX = 0x1.fffffffffffffp1023, DBL_TRUE_MIN = 0x1p-1074, M_PI = math.pi,
  M_PI_2 = math.pi / 2, M_PI_4 = math.pi / 4, M_1_PI = 1 / math.pi,
  M_2_PI = 2 / math.pi, M_E = math.exp(1), M_LN2 = math.log(2),
  M_LN10 = math.log(10), M_SQRT2 = math.sqrt(2), M_SQRT1_2 = math.sqrt(0.5),
  HUGE_VAL = math.huge, INFINITY = math.huge,
}

local function sorted(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function fill(names, to)
  local lines = {}
  for i, name in ipairs(names) do
    lines[i] = ("  %s[%d] = %s;\n"):format(to, i - 1, name)
  end
  return table.concat(lines)
end

local function values(headers)
  return include(headers) .. [[
struct pair { char first; double second; };
extern "C" __global__ void values(long long *i, double *d) {
]] .. fill(sorted(INTEGERS), "i") .. fill(sorted(REALS), "d") .. "}\n"
end

local STRINGS = [=[
#include <string.h>
#include <stdlib.h>
#include <math.h>
static __device__ int sign(int x) { return (x > 0) - (x < 0); }
// Two texts of 16 bytes for each thread, with their ends.
extern "C" __global__ void strings(const char *a, const char *b, int *out, char *made) {
  int t = threadIdx.x, n = blockDim.x;
  const char *p = a + 16 * t, *q = b + 16 * t;
  char *to = made + 16 * t;
  out[t] = strlen(p);
  out[n + t] = sign(strcmp(p, q));
  out[2 * n + t] = sign(strncmp(p, q, 3));
  out[3 * n + t] = sign(memcmp(p, q, 2));
  strcpy(to, p);
  memmove(to + 1, to, strlen(to));
  out[4 * n + t] = abs(-t) + (isnan(NAN) ? 100 : 0);
}
]=]

local NAMESPACE = [=[
extern "C" __global__ void functions(const double *x, double *o, int n) {
  int t = threadIdx.x;
  double v = x[t];
  o[t] = std::sqrt(std::fabs(v)) + std::fmax(v, 1.0) - std::floor(v);
  bool number = std::isfinite(v) && !std::isnan(v) && !std::isinf(v);
  o[n + t] = number ? std::copysign(2.0, v) : 0.0;
  std::uint8_t small = (std::uint8_t)(int)v;
  std::size_t size = std::strlen("four");
  char text[8];
  std::memset(text, 'x', 8);
  std::memcpy(text, "ab", 2);
  o[2 * n + t] = small + size * 1000.0 + text[1] + text[2];
  int *p = (int *)std::malloc(4);
  *p = std::abs(-t);
  o[3 * n + t] = *p;
  std::free(p);
  if (v > 1e9) std::printf("large\n");
  assert(v < 1e9);
}
]=]

local function check_values(module)
  local names, others = sorted(INTEGERS), sorted(REALS)
  local i <close> = tp.zeros("i64", #names)
  local d <close> = tp.zeros("f64", #others)
  module:kernel "values":launch({ grid = 1, block = 1 }, i, d)
  local got, reals = i:read(), d:read()
  for k, name in ipairs(names) do assert.equal(INTEGERS[name], got[k], name) end
  for k, name in ipairs(others) do
    local expected = REALS[name]
    local near = reals[k] == expected
      or math.abs(reals[k] - expected) <= 0x1p-52 * expected
    assert.is_true(near, ("%s is %.17g"):format(name, reals[k]))
  end
end

describe("the C library's headers", function()
  it("have the constants that C tells", function()
    local module <close> = program("headers_c", values(C))
    check_values(module)
  end)

  it("have them under their C++ names", function()
    local module <close> = program("headers_cpp", values(CPP) .. NAMESPACE)
    check_values(module)
    local x = numbers.generator(6).reals(64, -100, 100)
    local b <close> = tp.buffer("f64", x)
    local o <close> = tp.zeros("f64", 4 * 64)
    module:kernel "functions":launch({ grid = 1, block = 64 }, b, o, 64)
    local r = o:read()
    for t = 1, 64 do
      local v = x[t]
      local whole = v < 0 and math.ceil(v) or math.floor(v)
      assert.equal(math.sqrt(math.abs(v)) + math.max(v, 1) - math.floor(v), r[t])
      assert.equal(v < 0 and -2 or 2, r[64 + t])
      assert.equal((whole & 255) + 4000 + ("b"):byte() + ("x"):byte(), r[128 + t])
      assert.equal(t - 1, r[192 + t])
    end
  end)

  it("have functions of texts", function()
    local module <close> = program("headers_strings", STRINGS)
    local g, n = numbers.generator(7), 96
    local as, bs = {}, {}
    for t = 1, n do
      local function draw()
        local text = {}
        for k = 1, g.int(0, 6) do text[k] = string.char(g.int(97, 99)) end
        return table.concat(text)
      end
      as[t] = draw()
      bs[t] = g.int(1, 4) == 1 and as[t] or draw()
    end
    local function lay(texts)
      local parts = {}
      for t = 1, n do parts[t] = texts[t] .. ("\0"):rep(16 - #texts[t]) end
      return table.concat(parts)
    end
    local a <close> = tp.buffer("i8", lay(as))
    local b <close> = tp.buffer("i8", lay(bs))
    local o <close> = tp.zeros("i32", 5 * n)
    local made <close> = tp.zeros("i8", 16 * n)
    module:kernel "strings":launch({ grid = 1, block = n }, a, b, o, made)
    local r, texts = o:read(), made:bytes()
    local function order(x, y) return x < y and -1 or x > y and 1 or 0 end
    for t = 1, n do
      local x, y = as[t], bs[t]
      assert.equal(#x, r[t])
      assert.equal(order(x, y), r[n + t])
      assert.equal(order(x:sub(1, 3), y:sub(1, 3)), r[2 * n + t])
      assert.equal(order((x .. "\0\0"):sub(1, 2), (y .. "\0\0"):sub(1, 2)),
        r[3 * n + t])
      assert.equal(t - 1 + 100, r[4 * n + t])
      local moved = texts:sub(16 * t - 15, 16 * t)
      assert.equal(x:sub(1, 1) .. x .. ("\0"):rep(16 - #x - math.min(#x, 1)), moved)
    end
  end)
end)
