-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's random numbers (26): cuRAND's generators as their authors published
-- them, in Lua: XORWOW (Marsaglia 2003) with jumps of 2^67 as powers of a matrix of
-- bits, Philox4x32-10 (Salmon et al. 2011), MRG32k3a (L'Ecuyer 1999) with jumps
-- of 2^76; cuRAND's seeding and its Box-Muller transform.
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"
local reference = require "spec.support.reference"
local near = numbers.assert_near

local function u32(x) return x & 0xffffffff end

-- ---- XORWOW --------------------------------------------------------------------

local function xorwow_step(v) -- v: five words
  local t = v[1] ~ v[1] >> 2
  local last = v[5]
  return { v[2], v[3], v[4], v[5], u32(last ~ last << 4) ~ u32(t ~ t << 1) }
end

-- A linear map is the list of the images of the 160 unit vectors.
local function apply(map, v)
  local r = { 0, 0, 0, 0, 0 }
  for word = 1, 5 do
    local bits, at = v[word], (word - 1) * 32 + 1
    while bits ~= 0 do
      if bits & 1 == 1 then
        local m = map[at]
        for k = 1, 5 do r[k] = r[k] ~ m[k] end
      end
      bits, at = bits >> 1, at + 1
    end
  end
  return r
end

local function jump_of(log) -- by 2^log steps
  local map = {}
  for i = 0, 159 do
    local unit = { 0, 0, 0, 0, 0 }
    unit[i // 32 + 1] = 1 << i % 32
    map[i + 1] = xorwow_step(unit)
  end
  for _ = 1, log do
    local squared = {}
    for i = 1, 160 do squared[i] = apply(map, map[i]) end
    map = squared
  end
  return map
end

local xorwow = {}
xorwow.__index = xorwow
function xorwow.new(seed)
  local s0, s1 = u32(seed) ~ 0xaad26b49, seed >> 32 ~ 0xf7dcefdd
  local t0, t1 = u32(1099087573 * s0), u32(2591861531 * s1)
  return setmetatable({ d = u32(6615241 + t1 + t0), v = { u32(123456789 + t0),
    362436069 ~ t0, u32(521288629 + t1), 88675123 ~ t1, u32(5783321 + t0) } },
    xorwow)
end
function xorwow:next()
  self.v = xorwow_step(self.v)
  self.d = u32(self.d + 362437)
  return u32(self.v[5] + self.d)
end

-- ---- Philox --------------------------------------------------------------------

local function philox(counter, key)
  local a, b, c, d = table.unpack(counter)
  local k0, k1 = key[1], key[2]
  for _ = 1, 10 do
    local p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
    a, b, c, d = q >> 32 ~ b ~ k0, u32(q), p >> 32 ~ d ~ k1, u32(p)
    k0, k1 = u32(k0 + 0x9E3779B9), u32(k1 + 0xBB67AE85)
  end
  return { a, b, c, d }
end

-- ---- MRG32k3a ------------------------------------------------------------------

local M1, M2 = 4294967087, 4294944443
local function multiply(a, b, m) -- both below 2^32
  local high = a * (b >> 16) % m
  return ((high << 16) + a * (b & 0xffff)) % m
end
local function matrix_product(a, b, m)
  local c = { {}, {}, {} }
  for i = 1, 3 do
    for j = 1, 3 do
      local sum = 0
      for k = 1, 3 do sum = sum + multiply(a[i][k], b[k][j], m) end
      c[i][j] = sum % m
    end
  end
  return c
end
local function matrix_vector(a, v, m)
  local r = {}
  for i = 1, 3 do
    local sum = 0
    for k = 1, 3 do sum = sum + multiply(a[i][k], v[k], m) end
    r[i] = sum % m
  end
  return r
end
local STEP1 = { { 0, 1, 0 }, { 0, 0, 1 }, { M1 - 810728, 1403580, 0 } }
local STEP2 = { { 0, 1, 0 }, { 0, 0, 1 }, { M2 - 1370589, 0, 527612 } }
local function matrix_jump(step, m, log)
  for _ = 1, log do step = matrix_product(step, step, m) end
  return step
end

local mrg = {}
mrg.__index = mrg
function mrg.new(seed, subsequence, jump1, jump2)
  local x1, x2 = u32(seed) ~ 0x55555555, u32(seed >> 32 ~ 0xAAAAAAAA)
  local s1, s2 = {}, {}
  for k = 1, 3 do
    s1[k] = multiply(k == 2 and x2 or x1, 12345, M1)
    s2[k] = multiply(k == 2 and x1 or x2, 12345, M2)
  end
  for _ = 1, subsequence do
    s1, s2 = matrix_vector(jump1, s1, M1), matrix_vector(jump2, s2, M2)
  end
  return setmetatable({ s1 = s1, s2 = s2 }, mrg)
end
function mrg:next()
  self.s1 = matrix_vector(STEP1, self.s1, M1)
  self.s2 = matrix_vector(STEP2, self.s2, M2)
  local r = self.s1[3] - self.s2[3]
  return r <= 0 and r + M1 or r
end
function mrg:uniform() return self:next() * 2.3283065498378288e-10 end

-- ---- distributions ---------------------------------------------------------------

local function uniform32(x) return numbers.f32(x * 2.0 ^ -32 + 2.0 ^ -33) end
local function normal_pair(x, y)
  local u = x * 2.0 ^ -32 + 2.0 ^ -33
  local v = (y * 2.0 ^ -32 + 2.0 ^ -33) * 2 * math.pi
  local s = math.sqrt(-2 * math.log(u))
  return s * math.sin(v), s * math.cos(v)
end
local function uniform53(x, y) return (x ~ y << 21) * 2.0 ^ -53 + 2.0 ^ -54 end
local function normal_pair64(u, v)
  local s = math.sqrt(-2 * math.log(u))
  return s * reference.sin_pi(2 * v), s * reference.sin_pi(2 * v + 0.5)
end

describe("corpus 26 cuRAND", function()
  -- 1.2 MB of tables
  local kernel = corpus.module(setup, teardown, "26_curand.cu", nil, true)
  local n, seed = 24, 0x123456789abcdef
  local jump
  setup(function() jump = jump_of(67) end)

  it("XORWOW", function()
    local o <close> = tp.zeros("f32", 2 * n)
    kernel "rng_xorwow":launch({ grid = 3, block = 8 }, seed, o, n)
    local g, uniforms, normals = xorwow.new(seed), {}, {}
    for i = 1, n do
      local mine = setmetatable({ v = g.v, d = g.d }, xorwow)
      uniforms[i] = uniform32(mine:next())
      normals[i] = normal_pair(mine:next(), mine:next())
      g.v = apply(jump, g.v)
    end
    near(uniforms, o:read(1, n), 1.3e-7)
    near(normals, o:read(n + 1, n), 2e-6, 4e-6)
  end)

  it("Philox", function()
    local o <close> = tp.zeros("f32", 8 * n)
    local d <close> = tp.zeros("f64", 2 * n)
    kernel "rng_philox":launch({ grid = 1, block = 32 }, seed, o, d, n)
    local key = { u32(seed), seed >> 32 }
    local uniforms, normals, doubles = {}, {}, {}
    for i = 0, n - 1 do
      for _, x in ipairs(philox({ 0, 0, i, 0 }, key)) do
        uniforms[#uniforms + 1] = uniform32(x)
      end
      local x = philox({ 1, 0, i, 0 }, key)
      for k = 1, 3, 2 do
        local a, b = normal_pair(x[k], x[k + 1])
        table.move({ a, b }, 1, 2, #normals + 1, normals)
      end
      x = philox({ 2, 0, i, 0 }, key)
      local a, b = normal_pair64(uniform53(x[1], x[2]), uniform53(x[3], x[4]))
      table.move({ a, b }, 1, 2, #doubles + 1, doubles)
    end
    near(uniforms, o:read(1, 4 * n), 1.3e-7)
    near(normals, o:read(4 * n + 1, 4 * n), 2e-6, 4e-6)
    near(doubles, d:read(), 1e-12, 1e-14)
  end)

  it("MRG32k3a", function()
    local o <close> = tp.zeros("f64", 2 * n)
    local p <close> = tp.zeros("u32", n)
    kernel "rng_mrg":launch({ grid = 1, block = 32 }, seed, o, p, n)
    local jump1 = matrix_jump(STEP1, M1, 76)
    local jump2 = matrix_jump(STEP2, M2, 76)
    local uniforms, poissons, logs = {}, {}, {}
    for i = 0, n - 1 do
      local g = mrg.new(seed, i, jump1, jump2)
      uniforms[i + 1] = g:uniform()
      local k, product = 0, math.exp(4)
      repeat k, product = k + 1, product * g:uniform() until product <= 1
      poissons[i + 1] = k - 1
      logs[i + 1] = math.exp((normal_pair64(g:uniform(), g:uniform())))
    end
    near(uniforms, o:read(1, n), 1e-15)
    assert.same(poissons, p:read())
    near(logs, o:read(n + 1, n), 1e-12)
  end)

  it("finds pi", function()
    local threads, iterations, hits = 8, 50, 0
    local h <close> = tp.zeros("u64", 1)
    kernel "pi_mc":launch({ grid = 2, block = threads // 2 }, h, iterations)
    local g = xorwow.new(42)
    for _ = 1, threads do
      local mine = setmetatable({ v = g.v, d = g.d }, xorwow)
      for _ = 1, iterations do
        local x, y = uniform32(mine:next()), uniform32(mine:next())
        if x * x + y * y <= 1 then hits = hits + 1 end
      end
      g.v = apply(jump, g.v)
    end
    assert.same({ hits }, h:read())
  end)
end)
