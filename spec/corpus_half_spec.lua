-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's kernels of float16 and bfloat16. Sums, products and conversions are
-- rounded correctly; the functions are good to one unit in the last place.
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"
local reference = require "spec.support.reference"
local inf, nan = math.huge, 0 / 0

local function same(a, b) return a == b or (a ~= a and b ~= b) end

local function list_of(n, f)
  local t = {}
  for i = 1, n do t[i] = f(i) end
  return t
end

-- The tests of both kernels of operations: each row of the results against a
-- reference of the two operands. An entry: name, reference, relative error.
local function compare(list, xs, got, rounded)
  local n = #xs
  for k, e in ipairs(list) do
    local name, f, error_ = e[1], e[2], e[3] or 0
    for i = 1, n do
      local v, w = xs[i], xs[n + 1 - i]
      local expected = rounded(f(v, w, i - 1))
      local y = got[(k - 1) * n + i]
      local limit = error_ * math.abs(expected)
      if not same(y, expected) and
        not (error_ > 0 and math.abs(y - expected) <= limit) then
        error(("%s(%.9g, %.9g) is %.9g, %.9g expected"):format(name, v, w, y,
          expected), 2)
      end
    end
  end
end

local function inputs(g, rounded)
  local xs = {}
  for i = 1, 100 do xs[i] = rounded(g.real(-4, 4)) end
  for i = 101, 180 do xs[i] = rounded(g.real(0, 9)) end
  for i = 181, 220 do xs[i] = rounded(g.real(-1, 1) * 2.0 ^ g.int(-14, 7)) end
  for _, x in ipairs { 0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 0.5, 0.25, 2.0 } do
    xs[#xs + 1] = x
  end
  return xs
end

local function max(v, w)
  if v ~= v then return w end
  return w ~= w and v or math.max(v, w)
end
local function min(v, w)
  if v ~= v then return w end
  return w ~= w and v or math.min(v, w)
end
local round = reference.round

-- What the headers have for both types, under the names of the list. `rounded` is
-- the type's rounding, `unit` its relative error.
local function operations(rounded, unit)
  local f32 = reference.f32
  return {
    add = { "+", function(v, w) return v + w end },
    sub = { "-", function(v, w) return v - w end },
    mul = { "*", function(v, w) return v * w end },
    div = { "/", function(v, w) return f32(v / w) end, unit },
    neg = { "neg", function(v) return -v end },
    abs = { "__habs", math.abs },
    sqrt = { "hsqrt", math.sqrt },
    rsqrt = { "hrsqrt", function(v) return 1 / math.sqrt(v) end, unit },
    exp = { "hexp", math.exp, unit },
    log = { "hlog", function(v) return math.log(v) end, unit },
    sin = { "hsin", math.sin, unit }, cos = { "hcos", math.cos, unit },
    exp2 = { "hexp2", function(v) return 2.0 ^ v end, unit },
    log2 = { "hlog2", function(v) return math.log(v, 2) end, unit },
    rcp = { "hrcp", function(v) return 1 / v end, unit },
    floor = { "hfloor", function(v) return round(v, "rd") end },
    ceil = { "hceil", function(v) return round(v, "ru") end },
    trunc = { "htrunc", function(v) return round(v, "rz") end },
    rint = { "hrint", function(v) return round(v) end },
    max = { "__hmax", max }, min = { "__hmin", min },
    less = { "<", function(v, w) return v < w and v or w end },
    equal = { "==", function(v, w) return v == w and v or w end },
    triple = { "3x", function(v) return rounded(f32(v * 3)) end },
    from_int = { "from int", function(_, _, i) return i end },
    tanh = { "htanh", reference.tanh, unit * 2 },
  }
end

local function pick(op, names)
  local list = {}
  for name in names:gmatch "%S+" do
    list[#list + 1] = assert(op[name], name)
  end
  return list
end

describe("corpus 09 float16", function()
  local kernel = corpus.module(setup, teardown, "09_half.cu")
  local g = numbers.generator(9)
  local f16 = reference.f16

  it("computes a*x + y with one rounding", function()
    local n, a = 1001, f16(g.real(-3, 3))
    local xs = list_of(n, function() return f16(g.real(-9, 9)) end)
    local ys = list_of(n, function() return f16(g.real(-9, 9)) end)
    local expected = list_of(n, function(i) return f16(a * xs[i] + ys[i]) end)
    local x <close> = tp.buffer("f16", xs)
    local y <close> = tp.buffer("f16", ys)
    kernel "haxpy":launch({ grid = 8, block = 128 }, n, tp.f16(a), x, y)
    assert.same(expected, y:read())
  end)

  it("computes pairs", function()
    local n, a = 500, f16(g.real(-3, 3))
    local xs = list_of(2 * n, function() return f16(g.real(-9, 9)) end)
    local ys = list_of(2 * n, function() return f16(g.real(-9, 9)) end)
    local expected = list_of(2 * n, function(i) return f16(a * xs[i] + ys[i]) end)
    local x <close> = tp.buffer("f16", xs)
    local y <close> = tp.buffer("f16", ys)
    kernel "haxpy2":launch({ grid = 4, block = 128 }, n, a, x, y)
    assert.same(expected, y:read())
  end)

  it("has every operation right", function()
    local xs = inputs(g, f16)
    local op = operations(f16, 2.0 ^ -10)
    local list = pick(op, [[add sub mul div neg abs sqrt rsqrt exp log sin cos
      exp2 log2 rcp floor ceil trunc rint max min less equal triple from_int]])
    for _, e in ipairs {
      { "bits", function(v) return -v end },
      { "__hadd_sat", function(v, w)
        local s = v + w
        return s ~= s and 0.0 or math.max(0.0, math.min(1.0, s))
      end },
      { "__hfma_relu", function(v, w)
        local s = v * w + v
        return s ~= s and s or math.max(0.0, s)
      end },
      { "__double2half", function() return 1.5 end },
      { "__half2short_rz", function(v)
        if v ~= v then return 0 end
        return math.max(-32768, math.min(32767, round(v, "rz")))
      end },
      op.tanh,
      { "__hisnan", function(v, w) return v ~= v and v or w end },
    } do
      list[#list + 1] = e
    end
    local n = #xs
    local x <close> = tp.buffer("f16", xs)
    local o <close> = tp.zeros("f16", n * #list)
    kernel "hops":launch({ grid = 1, block = 256 }, x, o, n)
    compare(list, xs, o:read(), f16)
  end)

  it("sums products", function()
    local n, sum = 300, 0
    local xs, ys = g.ints(2 * n, -8, 8), g.ints(2 * n, -8, 8)
    for i = 1, 2 * n do sum = sum + xs[i] * ys[i] end
    local x <close> = tp.buffer("f16", xs)
    local y <close> = tp.buffer("f16", ys)
    local out <close> = tp.zeros("f32", 1)
    kernel "hdot":launch({ grid = 1, block = 32 }, x, y, out, n)
    assert.equal(sum, out:read()[1])
  end)

  it("shuffles, compares and adds pairs atomically", function()
    local xs = g.ints(130, -9, 9)
    local sums, low = { xs[129], xs[130] }, 5
    for i = 0, 31 do
      sums[1], sums[2] = sums[1] + xs[2 * i + 1], sums[2] + xs[2 * i + 2]
      low = low + xs[2 * i + 1]
    end
    local a <close> = tp.buffer("f16", xs)
    local b <close> = tp.buffer("f16", { 5 })
    kernel "hshfl_atomic":launch({ grid = 1, block = 32 }, a, b)
    local r = a:read()
    assert.same(sums, { r[129], r[130] })
    assert.same({ low }, b:read())
    -- a[0] changes while others read it: a right answer of lane 0 is enough
    for k = 1, 2 do
      local c = xs[2 + k] > xs[k] and 1 or 0
      assert.equal(math.max(c, math.min(xs[2 + k], c)), r[k])
    end
  end)
end)

describe("corpus 10 bfloat16", function()
  local kernel = corpus.module(setup, teardown, "10_bf16.cu")
  local g = numbers.generator(10)
  local bf16 = reference.bf16

  it("computes a*x + y with one rounding", function()
    local n, a = 1001, bf16(g.real(-3, 3))
    local xs = list_of(n, function() return bf16(g.real(-9, 9)) end)
    local ys = list_of(n, function() return bf16(g.real(-9, 9)) end)
    local expected = list_of(n, function(i) return bf16(a * xs[i] + ys[i]) end)
    local x <close> = tp.buffer("bf16", xs)
    local y <close> = tp.buffer("bf16", ys)
    kernel "bfaxpy":launch({ grid = 8, block = 128 }, n, tp.bf16(a), x, y)
    assert.same(expected, y:read())
  end)

  it("computes pairs", function()
    local n = 100
    local xs = list_of(2 * n, function() return bf16(g.real(-9, 9)) end)
    local ys = list_of(2 * n, function() return bf16(g.real(-9, 9)) end)
    local expected, sums = {}, {}
    for i = 1, 2 * n do
      local y = bf16(xs[i] + ys[i])
      y = bf16(y * xs[i])
      expected[i] = bf16(y * xs[i] + xs[i])
    end
    for i = 1, 2 * n, 2 do
      local low, high = expected[i], expected[i + 1]
      sums[#sums + 1] = reference.f32(low + high)
      expected[i], expected[i + 1] = max(high, xs[i]), max(low, xs[i + 1])
    end
    local x <close> = tp.buffer("bf16", xs)
    local y <close> = tp.buffer("bf16", ys)
    local f <close> = tp.zeros("f32", n)
    kernel "bf2":launch({ grid = 1, block = 128 }, n, x, y, f)
    assert.same(sums, f:read())
    assert.same(expected, y:read())
  end)

  it("has every operation right", function()
    local xs = inputs(g, bf16)
    local op = operations(bf16, 2.0 ^ -7)
    local list = pick(op, [[add sub mul div neg abs sqrt rsqrt exp log sin max less
      triple from_int]])
    for _, e in ipairs { { "__double2bfloat16", function() return 2.5 end },
      op.floor, op.rcp, op.tanh } do
      list[#list + 1] = e
    end
    local n = #xs
    local x <close> = tp.buffer("bf16", xs)
    local o <close> = tp.zeros("bf16", n * #list)
    kernel "bops":launch({ grid = 1, block = 256 }, x, o, n)
    compare(list, xs, o:read(), bf16)
  end)

  it("adds atomically", function()
    local n = 20
    local pairs_, ones = g.ints(2 * n + 2, -2, 2), g.ints(n + 1, -3, 3)
    local sums, sum = { pairs_[1], pairs_[2] }, ones[1]
    for i = 1, n do
      sums[1] = sums[1] + pairs_[2 * i + 1]
      sums[2] = sums[2] + pairs_[2 * i + 2]
      sum = sum + ones[i + 1]
    end
    local a <close> = tp.buffer("bf16", pairs_)
    local b <close> = tp.buffer("bf16", ones)
    kernel "batomic":launch({ grid = 1, block = n }, a, b)
    assert.same(sums, a:read(1, 2))
    assert.equal(sum, b:read(1, 1)[1])
  end)
end)
