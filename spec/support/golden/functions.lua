-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The mathematical functions of CUDA C++, as two families for results.lua. The
-- compiler makes them of the operations in operations.lua, so they are equal on a
-- GPU wherever those are. The others have approximations inside: `within` gives
-- how many units of the last place they may differ from a GPU's.
local functions = {}

local HEAD = [[
__device__ void keep(int i, T value, T *out, unsigned long long *sum, int count)
{
  unsigned long long h = BITS(value);
  h = (h + (i + 1) * 0x94D049BB133111EBull) * 0x9E3779B97F4A7C15ull;
  h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9ull;
  if (i < count) out[i] = value;
  atomicAdd(sum, h ^ h >> 32);
}
#define KERNEL(name, expression) \
  extern "C" __global__ void k_##name(const T *in_a, const T *in_b, T *out, \
                                      unsigned long long *sum, int count) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    T a = in_a[i], b = in_b[i]; \
    (void)b; \
    keep(i, expression, out, sum, count); \
  }
]]

local TYPES = {
  f32 = [[
#define T float
#define BITS(x) (unsigned)__float_as_int(x)
]],
  f64 = [[
#define T double
#define BITS(x) (unsigned long long)__double_as_longlong(x)
]],
}

-- Names for double; those for float end in f.
local ONE = [[sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp
  exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt rcbrt erf erfc erfinv
  erfcinv erfcx normcdf normcdfinv lgamma tgamma j0 j1 y0 y1 sinpi cospi ceil
  floor trunc round rint nearbyint logb fabs cyl_bessel_i0 cyl_bessel_i1]]
local TWO = [[pow atan2 fmod remainder hypot rhypot fdim fmax fmin copysign
  nextafter]]
local INTRINSIC = { ["__fdividef"] = "a, b", ["__saturatef"] = "a",
  ["__frsqrt_rn"] = "a" }

-- What may differ, in units of the last place: what was measured over all
-- inputs, plus one. 0: NaNs may have other bits.
local WITHIN = {
  tanf = 2, acosf = 2, atanf = 2, sinhf = 3, coshf = 3, tanhf = 2, asinhf = 3,
  atanhf = 3, expf = 2, exp2f = 3, exp10f = 2, rsqrtf = 2, cbrtf = 2,
  rcbrtf = 2, erff = 2, erfcf = 3, erfinvf = 3, erfcinvf = 4, erfcxf = 3,
  normcdff = 4, normcdfinvf = 4, lgammaf = 3, tgammaf = 3, j0f = 4, j1f = 4,
  y0f = 4, y1f = 3, cyl_bessel_i0f = 4, cyl_bessel_i1f = 4, powf = 2,
  rhypotf = 2, __fdividef = 3,
  rsqrt = 2, erfcinv = 5, normcdfinv = 6, j0 = 3, j1 = 3, y0 = 3, y1 = 3,
  hypot = 2, rhypot = 2, fdim = 0, fmax = 0, fmin = 0,
}

local function sorted(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function make(class, suffix, more)
  local names, lines = {}, { TYPES[class], HEAD }
  local function add(name, arguments)
    names[#names + 1] = name
    lines[#lines + 1] = ("KERNEL(%s, %s(%s))\n"):format(name, name, arguments)
  end
  for name in ONE:gmatch "%S+" do add(name .. suffix, "a") end
  for name in TWO:gmatch "%S+" do add(name .. suffix, "a, b") end
  for _, name in ipairs(sorted(more)) do add(name, more[name]) end
  return {
    name = "functions_" .. class, target = 80, keep = 128, class = class,
    names = names, within = WITHIN, source = table.concat(lines),
    result = class == "f32" and "b32" or "b64",
  }
end

functions[1] = make("f32", "f", INTRINSIC)
functions[2] = make("f64", "", {})

return functions
