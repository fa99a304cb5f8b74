-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Conversions of 8-bit floats (all codes, all f16, random floats) and of tf32, against
-- tables and arithmetic in Lua. They need compute capability 9.0.
local newer = require "spec.support.newer"

local HEAD = [==[
  local tp = require "tpstream"
  local matrix = require "spec.support.matrix"
  local numbers = require "spec.support.numbers"
  local program = require "spec.support.program"
  local g = numbers.generator(8)

  local function words(n, make)
    local t = {}
    for i = 1, n do t[i] = make(i - 1) end
    return t
  end
  local function convert(module, name, ...)
    local buffers, n = {}, #(...)
    for i, list in ipairs { ... } do buffers[i] = tp.buffer("u32", list) end
    local o <close> = tp.zeros("u32", n)
    buffers[#buffers + 1] = o
    buffers[#buffers + 1] = n
    module:kernel(name):launch({ grid = (n + 255) // 256, block = 256 },
      table.unpack(buffers))
    local r = o:read()
    for i = 1, #buffers - 2 do buffers[i]:close() end
    return r
  end
  local function kernel(name, arity, body)
    local params = arity == 2 and "const unsigned *a, const unsigned *b"
      or "const unsigned *a"
    return ([[
extern "C" __global__ void %s(%s, unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  %s
}
]]):format(name, params, body)
  end
  local function expect(what, input, expected, got)
    if expected ~= got then
      error(("%s of 0x%x: 0x%x, 0x%x expected"):format(what, input, got,
        expected), 0)
    end
  end
]==]

local EIGHTHS = HEAD .. [==[
  local parts = {}
  for _, t in ipairs { "e4m3", "e5m2" } do
    for _, relu in ipairs { "", ".relu" } do
      local tail = t .. relu:gsub("%.", "_")
      parts[#parts + 1] = kernel("wide_" .. tail, 1, ([[
  asm("cvt.rn%s.f16x2.%sx2 %%0, %%1;" : "=r"(o[i]) : "h"((short)a[i]));]])
        :format(relu, t))
      parts[#parts + 1] = kernel("pair_" .. tail, 2, ([[
  unsigned short d;
  asm("cvt.rn.satfinite%s.%sx2.f32 %%0, %%1, %%2;" : "=h"(d)
    : "f"(__uint_as_float(a[i])), "f"(__uint_as_float(b[i])));
  o[i] = d;]]):format(relu, t))
      parts[#parts + 1] = kernel("half_" .. tail, 1, ([[
  unsigned short d;
  asm("cvt.rn.satfinite%s.%sx2.f16x2 %%0, %%1;" : "=h"(d) : "r"(a[i]));
  o[i] = d;]]):format(relu, t))
    end
  end
  local module <close> = program("float8", table.concat(parts))

  local function value(t, bits)
    local kind, sign, m, last = matrix.decode(t, bits)
    if kind == "nan" then return 0 / 0 end
    if kind == "inf" then return sign * math.huge end
    return sign * m * 2.0 ^ last, m == 0 and sign < 0
  end

  -- The code of the nearest value, of two the even one; what is beyond all
  -- becomes the largest.
  local function nearest(t, v, negative, relu)
    local most = t == "e4m3" and 0x7e or 0x7b
    if v ~= v then return 0x7f end
    negative = negative or v < 0
    if relu and negative then return 0 end
    local size, low, high = math.abs(v), 0, most
    while high - low > 1 do
      local middle = (low + high) // 2
      if value(t, middle) <= size then low = middle else high = middle end
    end
    local below, above = value(t, low), value(t, high)
    local code = low
    if size - below > above - size then code = high end
    if size - below == above - size and low % 2 == 1 then code = high end
    return code | (negative and 0x80 or 0)
  end

  for _, t in ipairs { "e4m3", "e5m2" } do
    for _, relu in ipairs { false, true } do
      local tail = t .. (relu and "_relu" or "")
      -- all codes, each in both places
      local codes = words(256, function(i) return i << 8 | (i * 7 + 3) % 256 end)
      local function widened(code)
        local v, minus_zero = value(t, code)
        if v ~= v then return 0x7fff end
        if relu and (v < 0 or minus_zero) then return 0 end
        local kind, sign, m, last = matrix.decode(t, code)
        if kind == "inf" then return sign < 0 and 0xfc00 or 0x7c00 end
        return matrix.encode("f16", m, last) | (sign < 0 and 0x8000 or 0)
      end
      for i, got in ipairs(convert(module, "wide_" .. tail, codes)) do
        local c = codes[i]
        expect("wide_" .. tail, c, widened(c >> 8) << 16 | widened(c & 0xff),
          got)
      end
      -- random floats, many about the format's range
      local function float()
        if g.int(0, 9) == 0 then return g.bits() & 0xffffffff end
        local spread = g.int(0, 1) == 0 and 20 or 9
        local exponent = 127 + g.int(-spread, spread - 3)
        local fraction = g.bits() & 0x7fffff
        if g.int(0, 2) == 0 then fraction = fraction & 0x780000 end
        return g.int(0, 1) << 31 | exponent << 23 | fraction
      end
      local as, bs = words(4000, float), words(4000, float)
      as[1], as[2], as[3], as[4] = 0x7f800000, 0xff800000, 0x7fc00000, 0x80000000
      local function narrowed(x)
        return nearest(t, numbers.from_bits32(x), x >> 31 == 1, relu)
      end
      for i, got in ipairs(convert(module, "pair_" .. tail, as, bs)) do
        expect("pair_" .. tail, as[i], narrowed(as[i]) << 8 | narrowed(bs[i]),
          got)
      end
      -- all f16
      local halves = words(65536, function(i)
        return i << 16 | (i * 40503 + 7) % 65536
      end)
      local code_of = {}
      for h = 0, 65535 do
        code_of[h] = nearest(t, value("f16", h), h >> 15 == 1, relu)
      end
      for i, got in ipairs(convert(module, "half_" .. tail, halves)) do
        local h = halves[i]
        expect("half_" .. tail, h, code_of[h >> 16] << 8 | code_of[h & 0xffff],
          got)
      end
    end
  end
]==]

local TF32 = HEAD .. [==[
  local forms = { "rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite" }
  local parts = {}
  for i, form in ipairs(forms) do
    parts[i] = kernel("form" .. i, 1, ([[
  asm("cvt.%s.tf32.f32 %%0, %%1;" : "=r"(o[i]) : "f"(__uint_as_float(a[i])));]])
      :format(form))
  end
  local module <close> = program("tf32", table.concat(parts))
  local xs = words(4000, function(i)
    local x = g.bits() & 0xffffffff
    if i % 3 == 0 then x = x & ~0xfff end -- ties
    return x
  end)
  for i, x in ipairs { 0x7f800000, 0xff800000, 0x7fffffff, 0x7f7fffff,
    0xff7fffff, 0, 0x80000000, 0x1fff, 0x80001000 } do xs[i] = x end
  for i, form in ipairs(forms) do
    for k, got in ipairs(convert(module, "form" .. i, xs)) do
      local x = xs[k]
      local sign, size = x & 0x80000000, x & 0x7fffffff
      local expected
      if size > 0x7f800000 then
        -- .rna cuts a NaN as it is
        expected = form:match "^rna" and x or 0x7fffffff
      else
        local kept, rest = size & ~0x1fff, size & 0x1fff
        local up = form:match "^rna" and rest >= 0x1000 or form:match "^rn"
          and not form:match "^rna" and (rest > 0x1000
          or (rest == 0x1000 and kept & 0x2000 ~= 0))
        if up then kept = kept + 0x2000 end
        if form:match "satfinite" then kept = math.min(kept, 0x7f7fe000) end
        expected = sign | kept
        if form:match "relu" and sign ~= 0 then expected = 0 end
      end
      -- what a saturating .rna makes of a NaN is not laid down
      if form ~= "rna.satfinite" or size <= 0x7f800000 then
        expect(form, x, expected & ~0x1fff, got & ~0x1fff)
      end
    end
  end
]==]

describe("8-bit floats", function()
  it("are converted from and to all others", function() newer.run(EIGHTHS) end)
end)

describe("tf32", function()
  it("is rounded to in every way", function() newer.run(TF32) end)
end)
