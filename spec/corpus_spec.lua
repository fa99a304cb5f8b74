-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus: kernels as people write them, each compared with a reference in Lua
-- on random inputs.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local kernels = require "spec.support.corpus"
local f32, near, wrap = numbers.f32, numbers.assert_near, numbers.wrap

local function corpus(file)
  return kernels.module(setup, teardown, file)
end

local function blocks(n, size) return (n + size - 1) // size end

describe("corpus 01 saxpy", function()
  local kernel = corpus "01_saxpy.cu"
  local g = numbers.generator(1)

  it("computes a*x + y", function()
    local n, a = 10007, f32(g.real(-3, 3))
    local xs, ys, expected = g.floats(n, -10, 10), g.floats(n, -10, 10), {}
    for i = 1, n do expected[i] = f32(a * xs[i] + ys[i]) end
    local x <close> = tp.buffer("f32", xs)
    local y <close> = tp.buffer("f32", ys)
    kernel "saxpy":launch({ grid = blocks(n, 256), block = 256 }, n, a, x, y)
    near(expected, y:read(), 1e-7, 1e-6)
  end)

  it("is exact on what the corpus says", function()
    local n, xs, ones = 5000, {}, {}
    for i = 1, n do xs[i], ones[i] = i - 1, 1 end
    local x <close> = tp.buffer("f32", xs)
    local y <close> = tp.buffer("f32", ones)
    kernel "saxpy":forall(n, n, 2, x, y)
    for i, v in ipairs(y:read()) do assert.equal(2.0 * (i - 1) + 1, v) end
  end)

  it("strides over the grid", function()
    local n, a = 9999, 0.75
    local xs, ys, expected = g.floats(n, -1, 1), g.floats(n, -1, 1), {}
    for i = 1, n do expected[i] = f32(a * xs[i] + ys[i]) end
    local x <close> = tp.buffer("f32", xs)
    local y <close> = tp.buffer("f32", ys)
    kernel "saxpy_stride":launch({ grid = 5, block = 96 }, n, a, x, y)
    near(expected, y:read(), 1e-7, 1e-6)
  end)

  it("computes in double with a size_t count", function()
    local n, a = 3001, g.real(-2, 2)
    local xs, ys, expected = g.reals(n, -5, 5), g.reals(n, -5, 5), {}
    for i = 1, n do expected[i] = a * xs[i] + ys[i] end
    local x <close> = tp.buffer("f64", xs)
    local y <close> = tp.buffer("f64", ys)
    kernel "daxpy":launch({ grid = blocks(n, 128), block = 128 }, n, a, x, y)
    near(expected, y:read(), 1e-14, 1e-14)
  end)
end)

describe("corpus 02 reductions", function()
  local kernel = corpus "02_reduce_shfl.cu"
  local g = numbers.generator(2)

  it("sums through shuffles, shared memory and an atomic", function()
    local n, sum = 12345, 0
    local xs = g.ints(n, -1000, 1000) -- sums of integers this small are exact
    for i = 1, n do sum = sum + xs[i] end
    local x <close> = tp.buffer("f32", xs)
    local out <close> = tp.zeros("f32", 1)
    kernel "reduce_sum":launch({ grid = 7, block = 256 }, x, out, n)
    assert.equal(sum, out:read()[1])
  end)

  it("sums with a block that is not a whole number of warps", function()
    local n = 1000
    local x <close> = tp.buffer("f32", g.ints(n, 1, 1))
    local out <close> = tp.zeros("f32", 1)
    kernel "reduce_sum":launch({ grid = 3, block = 64 }, x, out, n)
    assert.equal(n, out:read()[1])
  end)

  it("finds the maximum of integers", function()
    local n, xs = 5000, g.ints(5000, -2147483648, 2147483647)
    local most = math.max(table.unpack(xs))
    local x <close> = tp.buffer("i32", xs)
    local out <close> = tp.buffer("i32", { -2147483648 })
    kernel "reduce_max_int":launch({ grid = 4, block = 128 }, x, out, n)
    assert.equal(most, out:read()[1])
  end)

  it("sums doubles within each warp", function()
    local xs, expected = g.reals(256, -1, 1), {}
    for w = 0, 7 do
      local sum = 0
      for i = 1, 32 do sum = sum + xs[w * 32 + i] end
      expected[w + 1] = sum
    end
    local x <close> = tp.buffer("f64", xs)
    local out <close> = tp.zeros("f64", 8)
    kernel "warp_sum_double":launch({ grid = 2, block = 128 }, x, out)
    near(expected, out:read(), 1e-12, 1e-14)
  end)

  it("sums in dynamic shared memory", function()
    local xs, expected = g.ints(1024, -99, 99), {}
    for b = 0, 3 do
      expected[b + 1] = 0
      for i = 1, 256 do expected[b + 1] = expected[b + 1] + xs[b * 256 + i] end
    end
    local x <close> = tp.buffer("f32", xs)
    local out <close> = tp.zeros("f32", 4)
    kernel "reduce_smem":launch({ grid = 4, block = 256, shared = 1024 }, x, out)
    near(expected, out:read())
  end)

  it("shuffles within sub-warps", function()
    local xs = g.ints(32, -1 << 31, (1 << 31) - 1)
    local x <close> = tp.buffer("i32", xs)
    local out <close> = tp.zeros("i32", 96)
    kernel "shfl_widths":launch({ grid = 1, block = 32 }, x, out)
    local r = out:read()
    for t = 0, 31 do
      assert.equal(xs[(t // 8) * 8 + 3 + 1], r[t + 1])
      local up = t % 16 >= 2 and t - 2 or t
      assert.equal(xs[up + 1], r[32 + t + 1])
      local down = t % 4 < 3 and t + 1 or t
      assert.equal(xs[down + 1], r[64 + t + 1])
    end
  end)
end)

-- C = A * B, m x k times k x n, row-major
local function product(a, b, m, n, k)
  local c = {}
  for r = 0, m - 1 do
    for col = 0, n - 1 do
      local sum = 0
      for i = 0, k - 1 do sum = sum + a[r * k + i + 1] * b[i * n + col + 1] end
      c[r * n + col + 1] = sum
    end
  end
  return c
end

describe("corpus 03 matrix product", function()
  local kernel = corpus "03_matmul_tiled.cu"
  local g = numbers.generator(3)

  for _, name in ipairs { "matmul_tiled", "matmul_naive" } do
    it(name .. " multiplies random matrices", function()
      local n = 48
      local as, bs = g.floats(n * n, -1, 1), g.floats(n * n, -1, 1)
      local a <close> = tp.buffer("f32", as)
      local b <close> = tp.buffer("f32", bs)
      local c <close> = tp.zeros("f32", n * n)
      kernel(name):launch({ grid = { 3, 3 }, block = { 16, 16 } }, a, b, c, n)
      near(product(as, bs, n, n, n), c:read(), 1e-5, 1e-5)
    end)

    it(name .. " gives B for the identity", function()
      local n, id = 32, {}
      for i = 0, n * n - 1 do id[i + 1] = i % (n + 1) == 0 and 1 or 0 end
      local bs = g.floats(n * n, -100, 100)
      local a <close> = tp.buffer("f32", id)
      local b <close> = tp.buffer("f32", bs)
      local c <close> = tp.zeros("f32", n * n)
      kernel(name):launch({ grid = { 2, 2 }, block = { 16, 16 } }, a, b, c, n)
      assert.same(b:read(), c:read())
    end)
  end

  it("dgemm_guarded handles sizes that do not divide", function()
    local m, n, k = 21, 35, 27
    local as, bs = g.reals(m * k, -1, 1), g.reals(k * n, -1, 1)
    local cs, alpha, beta = g.reals(m * n, -1, 1), 1.5, -0.25
    local expected = product(as, bs, m, n, k)
    for i = 1, m * n do expected[i] = alpha * expected[i] + beta * cs[i] end
    local a <close> = tp.buffer("f64", as)
    local b <close> = tp.buffer("f64", bs)
    local c <close> = tp.buffer("f64", cs)
    kernel "dgemm_guarded":launch({ grid = { 3, 2 }, block = { 16, 16 } }, m, n,
      k, alpha, a, b, beta, c)
    near(expected, c:read(), 1e-12, 1e-13)
  end)
end)

describe("corpus 04 histograms", function()
  local kernel = corpus "04_histogram.cu"
  local g = numbers.generator(4)

  it("counts bytes", function()
    local n, expected = 20000, {}
    local xs = g.ints(n, 0, 255)
    for i = 1, 256 do expected[i] = 0 end
    for i = 1, n do expected[xs[i] + 1] = expected[xs[i] + 1] + 1 end
    local x <close> = tp.buffer("u8", xs)
    local bins <close> = tp.zeros("u32", 256)
    kernel "hist256":launch({ grid = 6, block = 192 }, x, bins, n)
    assert.same(expected, bins:read())
  end)

  it("counts floats in bins", function()
    local n, nb, expected = 5000, 10, {}
    local xs = g.floats(n, -2, 2)
    for i = 1, nb do expected[i] = 0 end
    for i = 1, n do
      local v = xs[i]
      if v >= -1 and v < 1 then
        local b = math.min(math.floor(f32(f32(f32(v + 1) / 2) * nb)), nb - 1)
        expected[b + 1] = expected[b + 1] + 1
      end
    end
    local x <close> = tp.buffer("f32", xs)
    local bins <close> = tp.zeros("i32", nb)
    kernel "hist_float":forall(n, x, bins, nb, -1, 1, n)
    assert.same(expected, bins:read())
  end)
end)

describe("corpus 06 n-body", function()
  local kernel = corpus "06_nbody.cu"
  local g = numbers.generator(6)

  local function accelerations(p, n, eps2)
    local out = {}
    for i = 0, n - 1 do
      local ax, ay, az = 0, 0, 0
      for j = 0, n - 1 do
        local dx = p[j * 4 + 1] - p[i * 4 + 1]
        local dy = p[j * 4 + 2] - p[i * 4 + 2]
        local dz = p[j * 4 + 3] - p[i * 4 + 3]
        local d2 = dx * dx + dy * dy + dz * dz + eps2
        local s = p[j * 4 + 4] / (d2 * math.sqrt(d2))
        ax, ay, az = ax + dx * s, ay + dy * s, az + dz * s
      end
      out[i * 3 + 1], out[i * 3 + 2], out[i * 3 + 3] = ax, ay, az
    end
    return out
  end

  it("agrees with a direct sum", function()
    local n, eps2 = 150, f32(0.01)
    local ps = g.floats(n * 4, 0.1, 1)
    local p <close> = tp.buffer("f32", ps)
    local acc <close> = tp.zeros("f32", n * 3)
    kernel "nbody":launch({ grid = 3, block = 64, shared = 64 * 16 }, p, acc, n,
      eps2)
    near(accelerations(ps, n, eps2), acc:read(), 1e-4, 1e-3)
  end)

  it("gives two equal bodies opposite accelerations", function()
    local ps = { 0, 0, 0, 5, 1, 2, 3, 5 }
    local p <close> = tp.buffer("f32", ps)
    local acc <close> = tp.zeros("f32", 6)
    kernel "nbody":launch({ grid = 1, block = 32, shared = 512 }, p, acc, 2,
      0.25)
    local r = acc:read()
    for i = 1, 3 do
      assert.equal(-r[i], r[i + 3])
      assert.is_true(r[i] > 0)
    end
  end)
end)

describe("corpus 15 switch", function()
  local kernel = corpus "15_switch.cu"
  local g = numbers.generator(15)

  it("takes every arm of a dense switch", function()
    local n = 640
    local ops, xs = {}, g.floats(n, 0.5, 4)
    for i = 1, n do ops[i] = (i - 1) % 14 end
    local os, expected = g.floats(n, -1, 1), {}
    local arms = {
      [0] = function(v) return v + 1 end, function(v) return v * v end,
      math.sqrt, math.exp, function(v) return v - 7 end,
      function(v) return 1 / v end, math.abs, math.floor, nil, math.log,
    }
    for i = 1, n do
      local op, v = ops[i], xs[i]
      if op == 8 then expected[i] = os[i]
      elseif arms[op] then expected[i] = arms[op](v)
      else expected[i] = -1 end
    end
    local o <close> = tp.buffer("f32", os)
    local op <close> = tp.buffer("i32", ops)
    local x <close> = tp.buffer("f32", xs)
    kernel "switch_table":launch({ grid = 5, block = 128 }, op, x, o, n)
    local r = o:read()
    -- arm 11 reads o[0], which arm 0 of thread 0 may or may not have written
    for i = 1, n do
      if ops[i] == 11 then
        local old, new = xs[i] * 11 + os[1], xs[i] * 11 + xs[1] + 1
        assert.is_true(math.abs(r[i] - old) < 1e-4
          or math.abs(r[i] - new) < 1e-4)
        expected[i] = r[i]
      end
    end
    near(expected, r, 1e-5, 1e-5)
  end)

  it("runs a byte-code machine", function()
    local function vm(code)
      local prog <close> = tp.buffer("i32", code)
      local out <close> = tp.zeros("i32", 64)
      kernel "switch_vm":launch({ grid = 1, block = 32 }, prog, #code, out)
      return out:read()
    end
    assert.equal(12, vm { 1, 5, 2, 7, 3 }[1])
    assert.equal(35, vm { 1, 5, 2, 7, 4 }[32])
    -- count down from the thread's number; leaves 0 below the counter
    local r = vm { 8, 10, 6, 5, 0, 1, 1, 5, 7, 1 }
    assert.equal(0, r[1])
    assert.equal(0, r[32])
    -- thread * thread + 3
    r = vm { 8, 10, 4, 1, 3, 3 }
    for t = 0, 31 do assert.equal(t * t + 3, r[t + 1]) end
  end)
end)

describe("corpus 16 calls", function()
  local kernel = corpus "16_calls.cu"
  local g = numbers.generator(16)

  local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
  local function ack(m, n)
    if m == 0 then return n + 1 end
    if n == 0 then return ack(m - 1, 1) end
    return ack(m - 1, ack(m, n - 1))
  end

  it("recurses, passes and returns structs by value", function()
    local threads, n = 40, 24
    local vs = g.floats(threads * 3, -2, 2)
    local bigs = {}
    for i = 1, threads do
      bigs[i] = { g.real(-1, 1), g.real(-1, 1), g.real(-1, 1), g.real(-1, 1),
        g.real(-1, 1), g.real(-1, 1), g.int(-9, 9) }
    end
    local format, packed = "<ddddddi4xxxx", {}
    for i = 1, threads do packed[i] = format:pack(table.unpack(bigs[i])) end
    local out <close> = tp.zeros("i32", 128)
    local v <close> = tp.buffer("f32", vs)
    local b <close> = tp.buffer("u8", table.concat(packed))
    kernel "calls":launch({ grid = 1, block = threads }, out, v, b, n)
    local r = out:read()
    for i = 0, threads - 1 do assert.equal(fib(i % 16), r[i + 1]) end
    for i = 0, 3 do assert.equal(ack(2, i), r[64 + i + 1]) end
    local bytes = b:bytes()
    for i = 0, threads - 1 do
      local want = { table.unpack(bigs[i + 1]) }
      if i < n then
        want[i % 4 + 1] = want[i % 4 + 1] + wrap(i * 2, 16)
        want[7] = want[7] + (i & 1) + i
      end
      local got = { format:unpack(bytes, i * 56 + 1) }
      near(want, { table.unpack(got, 1, 7) }, 1e-15, 1e-15)
    end
  end)

  it("crosses vectors through a function that returns a struct", function()
    -- threads whose partners are not written before they are read: n = 1
    local vs = g.floats(3, -2, 2)
    local v <close> = tp.buffer("f32", vs)
    local out <close> = tp.zeros("i32", 128)
    local b <close> = tp.zeros("u8", 56)
    kernel "calls":launch({ grid = 1, block = 1 }, out, v, b, 1)
    near({ 0, 0, 0 }, v:read(), 0, 1e-6)
  end)

  it("sorts rows with a recursive quicksort", function()
    local rows, w = 64, 20
    local xs, expected = g.ints(rows * w, -1000, 1000), {}
    for r = 0, rows - 1 do
      local row = { table.unpack(xs, r * w + 1, (r + 1) * w) }
      table.sort(row)
      table.move(row, 1, w, r * w + 1, expected)
    end
    local a <close> = tp.buffer("i32", xs)
    kernel "qsort_rows":launch({ grid = 2, block = 32 }, a, w)
    assert.same(expected, a:read())
  end)
end)

describe("corpus 21 dynamic shared memory", function()
  local kernel = corpus "21_dynshared.cu"
  local g = numbers.generator(21)

  it("reverses a block", function()
    local xs, expected = g.ints(200, -1 << 31, (1 << 31) - 1), {}
    for i = 1, 200 do expected[i] = xs[201 - i] end
    local x <close> = tp.buffer("i32", xs)
    local out <close> = tp.zeros("i32", 200)
    kernel "reverse":launch({ grid = 1, block = 200, shared = 800 }, x, out)
    assert.same(expected, out:read())
  end)

  it("carves two arrays from one buffer", function()
    local n, expected = 100, {}
    local xs = g.reals(n, -1, 1)
    for i = 1, n do expected[i] = xs[n + 1 - i] end
    local x <close> = tp.buffer("f64", xs)
    local out <close> = tp.zeros("f64", n)
    kernel "carve":launch({ grid = 1, block = 64, shared = n * 12 }, x, out, n)
    assert.same(expected, out:read())
  end)

  it("tells the spaces of generic pointers apart", function()
    for sel = 0, 2 do
      local buffer <close> = tp.zeros("i32", 64 + 64)
      kernel "generic_ptr":launch({ grid = 1, block = 64 }, buffer, sel)
      local r = buffer:read()
      local t = 40 -- a thread past those whose elements others also write
      local v = sel == 2 and (t & 3) + 1 or nil
      local flags = sel == 1 and 100 or sel == 0 and 1000 or 0
      if v then
        assert.equal(t + (v + 1) + v + flags, r[64 + t + 1])
      elseif sel == 1 then
        -- s[t & 3] was t & 3 or already raised by one of the sixteen
        local base = t + (t & 3) + 1 + flags
        assert.is_true(r[64 + t + 1] >= base + (t & 3))
        assert.is_true(r[64 + t + 1] <= base + (t & 3) + 16)
      else
        assert.is_true(r[64 + t + 1] >= t + (t & 3) + 1 + flags)
        -- every thread's atomicAdd(p, 1) came on top in g[0]
        assert.is_true(r[1] >= 64)
      end
    end
  end)

  it("transposes through padded tiles", function()
    local w, h, expected = 70, 45, {}
    local xs = g.floats(w * h, -1, 1)
    for y = 0, h - 1 do
      for x = 0, w - 1 do expected[x * h + y + 1] = xs[y * w + x + 1] end
    end
    local x <close> = tp.buffer("f32", xs)
    local out <close> = tp.zeros("f32", w * h)
    kernel "transpose":launch({ grid = { 3, 2 }, block = { 32, 8 } }, x, out, w,
      h)
    assert.same(expected, out:read())
  end)
end)

describe("corpus 22 globals and constants", function()
  local g = numbers.generator(22)
  -- a module a test: its variables start fresh
  local module
  before_each(function()
    module = kernels.compile "22_globals.cu"
  end)
  after_each(function() module:close() end)

  it("convolves with a constant table and counts its blocks", function()
    local n, expected = 300, {}
    local xs = g.floats(n + 16, -1, 1)
    local gtab = { 0.5, 1.5, 2.5, 3.5 }
    for i = 0, n - 1 do
      local sum = 0
      for k = 0, 15 do sum = sum + (k + 1) * xs[i + k + 1] end
      expected[i + 1] = sum * 3 + gtab[(i & 3) + 1]
    end
    local x <close> = tp.buffer("f32", xs)
    local out <close> = tp.zeros("f32", n)
    local conv <close> = module:kernel "conv"
    conv:launch({ grid = 5, block = 64 }, x, out, n)
    near(expected, out:read(), 1e-5, 1e-4)
    local counter <close> = module:global "counter"
    assert.equal(5, string.unpack("<i4", counter:bytes()))
  end)

  it("initialises structs, pointers and strings", function()
    local out <close> = tp.zeros("f32", 6)
    local use <close> = module:kernel "useglobals"
    use:launch({ grid = 1, block = 1 }, out, 1)
    assert.same({ 7 + 1.5 + 2.25, string.byte "w", 42, 2, 8, 2 }, out:read())
    use:launch({ grid = 1, block = 1 }, out, 2)
    assert.same({ 7 + 1.5 + 2.25, string.byte "n", 43, 300, 15, 2 }, out:read())
    use:launch({ grid = 1, block = 1 }, out, 0)
    assert.same({ 7 + 1.5 + 2.25, string.byte "n", 44, -1, 1, 1.5 }, out:read())
  end)

  it("lets the host change a constant", function()
    local coef <close> = module:global "coef"
    local halves = {}
    for i = 1, 16 do halves[i] = i == 1 and 0.5 or 0 end
    coef:write(string.pack("<" .. ("f"):rep(16), table.unpack(halves)))
    local xs = g.floats(80, -1, 1)
    local x <close> = tp.buffer("f32", xs)
    local out <close> = tp.zeros("f32", 64)
    local conv <close> = module:kernel "conv"
    conv:launch({ grid = 1, block = 64 }, x, out, 64)
    local expected = {}
    for i = 0, 63 do expected[i + 1] = xs[i + 1] * 1.5 + (i & 3) + 0.5 end
    near(expected, out:read(), 1e-6, 1e-6)
  end)
end)

describe("corpus 41 iteration counts", function()
  local kernel = corpus "41_mandelbrot.cu"
  local g = numbers.generator(41)

  it("mandel agrees with a host loop", function()
    local w, h, maxit = 48, 32, 60
    local x0, y0, dx = -2, -1, 0.0625 -- exact in float32
    local o <close> = tp.zeros("i32", w * h)
    kernel "mandel":launch({ grid = { 3, 2 }, block = { 16, 16 } }, o, w, h, x0,
      y0, dx, maxit)
    local r, off = o:read(), 0
    for y = 0, h - 1 do
      for x = 0, w - 1 do
        local cr, ci, zr, zi, it = x0 + x * dx, y0 + y * dx, 0, 0, 0
        while zr * zr + zi * zi < 4 and it < maxit do
          zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
          it = it + 1
        end
        -- points at the edge of the set feel the rounding to float32
        if r[y * w + x + 1] ~= it then off = off + 1 end
      end
    end
    assert.is_true(off < w * h / 50, off .. " pixels differ")
  end)

  it("collatz counts in 64 bits", function()
    local n = 200
    local xs, expected = g.ints(n, 1, 1 << 40), {}
    for i = 1, n do
      local v, s = xs[i], 0
      while v > 1 do
        v = v & 1 == 1 and 3 * v + 1 or v >> 1
        s = s + 1
      end
      expected[i] = s
    end
    local x <close> = tp.buffer("u64", xs)
    local o <close> = tp.zeros("i32", n)
    kernel "collatz":forall(n, x, o, n)
    assert.same(expected, o:read())
  end)
end)

describe("corpus 42 stencils", function()
  local kernel = corpus "42_stencil.cu"
  local g = numbers.generator(42)

  it("heat keeps a constant field and follows a random one", function()
    local nx, ny, c = 40, 25, 0.2
    local as = g.reals(nx * ny, 0, 100)
    local expected = { table.unpack(as) }
    for y = 1, ny - 2 do
      for x = 1, nx - 2 do
        local i = y * nx + x + 1
        expected[i] = as[i] + c * (as[i - 1] + as[i + 1] + as[i - nx]
          + as[i + nx] - 4 * as[i])
      end
    end
    local shape = { grid = { 3, 2 }, block = { 16, 16 } }
    local a <close> = tp.buffer("f64", as)
    local b <close> = tp.buffer("f64", as)
    kernel "heat":launch(shape, a, b, nx, ny, c)
    near(expected, b:read(), 1e-13, 1e-12)
    a:fill(3.25)
    b:fill(3.25)
    kernel "heat":launch(shape, a, b, nx, ny, c)
    for _, v in ipairs(b:read()) do assert.equal(3.25, v) end
  end)

  it("life turns a blinker and a random field like the rules say", function()
    local w, h = 24, 18
    local as, expected = g.ints(w * h, 0, 1), {}
    for y = 0, h - 1 do
      for x = 0, w - 1 do
        local n = 0
        for dy = -1, 1 do
          for dx = -1, 1 do
            if dx ~= 0 or dy ~= 0 then
              n = n + as[(y + dy) % h * w + (x + dx) % w + 1]
            end
          end
        end
        local alive = as[y * w + x + 1] == 1
        expected[y * w + x + 1] = (n == 3 or n == 2 and alive) and 1 or 0
      end
    end
    local shape = { grid = { 2, 2 }, block = { 16, 16 } }
    local a <close> = tp.buffer("u8", as)
    local b <close> = tp.zeros("u8", w * h)
    kernel "life":launch(shape, a, b, w, h)
    assert.same(expected, b:read())
    local blinker = {}
    for i = 1, w * h do blinker[i] = 0 end
    for x = 5, 7 do blinker[5 * w + x + 1] = 1 end
    a:write(blinker)
    kernel "life":launch(shape, a, b, w, h)
    assert.not_same(blinker, b:read())
    kernel "life":launch(shape, b, a, w, h)
    assert.same(blinker, a:read())
  end)

  it("convolves in shared memory with a border of zeros", function()
    local w, h, expected = 37, 29, {}
    local xs, ks = g.floats(w * h, -1, 1), g.floats(25, -1, 1)
    for y = 0, h - 1 do
      for x = 0, w - 1 do
        local s = 0
        for j = 0, 4 do
          for i = 0, 4 do
            local gx, gy = x + i - 2, y + j - 2
            if gx >= 0 and gx < w and gy >= 0 and gy < h then
              s = s + xs[gy * w + gx + 1] * ks[j * 5 + i + 1]
            end
          end
        end
        expected[y * w + x + 1] = s
      end
    end
    local x <close> = tp.buffer("f32", xs)
    local k <close> = tp.buffer("f32", ks)
    local out <close> = tp.zeros("f32", w * h)
    kernel "conv2d_smem":launch({ grid = { 3, 2 }, block = { 16, 16 } }, x, k,
      out, w, h)
    near(expected, out:read(), 1e-5, 1e-5)
  end)
end)

describe("corpus 44 parameters", function()
  local kernel = corpus "44_params.cu"
  local g = numbers.generator(44)

  it("reads a struct at a dynamic index", function()
    local a, d = g.ints(32, -1000, 1000), g.ints(8, -50, 50)
    local v, c, l, i = { 1.5, -7.25, 2 }, -3, 1 << 20, 5
    -- struct P { int a[32]; double d[8]; float3 v; char c; long long l; void *p; }
    local args = { table.unpack(a) }
    table.move(d, 1, 8, 33, args)
    table.move({ v[1], v[2], v[3], c, l, 0 }, 1, 6, 41, args)
    local format = "<" .. ("i4"):rep(32) .. ("d"):rep(8) .. "fffbxxxi8i8"
    local packed = format:pack(table.unpack(args))
    assert.equal(224, #packed)
    local o <close> = tp.zeros("i32", 32)
    kernel "params":launch({ grid = 1, block = 32 }, packed, o, i)
    local expected = {}
    for t = 0, 31 do
      expected[t + 1] = a[((t + i) & 31) + 1] + d[(i & 7) + 1] - 7 + c + l
    end
    assert.same(expected, o:read())
  end)

  it("follows a pointer inside a struct", function()
    local target <close> = tp.zeros("i32", 1)
    local o <close> = tp.zeros("i32", 32)
    local packed = string.rep("\0", 216) .. string.pack("<i8", target:ptr())
    kernel "params":launch({ grid = 1, block = 32 }, packed, o, 0)
    assert.same({ 1 }, target:read())
  end)

  it("takes a parameter block of more than 1 KiB", function()
    local ws, expected = g.floats(600, -1, 1), {}
    local o <close> = tp.zeros("f32", 128)
    local big = string.pack("<" .. ("f"):rep(600), table.unpack(ws))
    kernel "bigparam":launch({ grid = 1, block = 64 }, big, o)
    for t = 0, 63 do
      expected[t + 1] = ws[t * 7 % 600 + 1]
      expected[t + 64 + 1] = ws[t + 1]
    end
    assert.same(expected, o:read())
  end)

  it("takes every small type", function()
    local o <close> = tp.zeros("i32", 1)
    kernel "smallparams":launch({ grid = 1, block = 1 }, -100, 200, -30000,
      60000, true, 1.75, -2.5, 1 << 30, string.pack("<ff", 9, 4.5),
      string.pack("<i4i4i4i4", 1, 2, 300, 4), string.pack("BBB", 7, 8, 9), o)
    assert.equal(-100 + 200 - 30000 + 60000 + 1 + 1 - 2 + (1 << 30) + 4 + 300
      + 8, o:read()[1])
  end)

  it("honours launch bounds", function()
    local as, bs, expected = g.floats(128, -1, 1), g.floats(128, -1, 1), {}
    for i = 1, 128 do expected[i] = f32(as[i] + bs[i]) end
    local a <close> = tp.buffer("f32", as)
    local b <close> = tp.buffer("f32", bs)
    kernel "bounded":launch({ grid = 1, block = 128 }, a, b)
    assert.same(expected, a:read())
    assert.has_error(function()
      kernel "bounded":launch({ grid = 1, block = 129 }, a, b)
    end)
  end)

  it("instantiates templates by name", function()
    local module <close> = kernels.compile("44_params.cu",
      { names = { "tmpl<double, 3>", "tmpl<unsigned char, 7>" } }, "t")
    local d <close> = tp.zeros("f64", 40)
    local c <close> = tp.zeros("u8", 40)
    local in_double <close> = module:kernel "tmpl<double, 3>"
    local in_bytes <close> = module:kernel "tmpl<unsigned char, 7>"
    in_double:launch({ grid = 1, block = 40 }, d)
    in_bytes:launch({ grid = 1, block = 40 }, c)
    local ds, cs = d:read(), c:read()
    for t = 0, 39 do
      assert.equal(3.0 * t, ds[t + 1])
      assert.equal(7 * t % 256, cs[t + 1])
    end
  end)
end)
