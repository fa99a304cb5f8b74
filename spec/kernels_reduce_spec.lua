-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/kernels.md: fill, iota, axpy, and the reductions.
local tp = require "tpstream"
local elements = require "spec.support.elements"
local numbers = require "spec.support.numbers"
local K = tp.kernels
local one, take, values = elements.one, elements.take, elements.values
local failure = elements.failure

-- Around what a thread, a warp, a tile has; two that need more than one block.
local COUNTS = { 0, 1, 2, 3, 31, 33, 127, 1000, 4095, 4097, 20000 }

local function total(list)
  local sum = 0
  for _, v in ipairs(list) do sum = sum + v end
  return sum
end

describe("fill, iota and axpy", function()
  it("fill is b:fill, and returns the buffer", function()
    local x <close> = tp.buffer("i16", 5)
    assert.equal(x, K.fill(x, -3))
    assert.same({ -3, -3, -3, -3, -3 }, x:read())
    assert.matches("bad argument #2 to 'fill' %(70000 does not fit int16",
      failure(K.fill, x, 70000))
    assert.matches("bad argument #1 to 'fill' %(tpstream.Buffer expected, got nil",
      failure(K.fill))
  end)

  it("iota counts from first in steps", function()
    for _, t in ipairs { "i8", "u32", "i64", "f16", "f32", "f64" } do
      for _, n in ipairs { 0, 1, 37, 120 } do
        local x <close> = elements.slice(t, values(elements.generator(1), t, n, 0, 1),
          2)
        K.iota(x, 3, 1)
        local got, expected = x:read(), {}
        for i = 1, n do expected[i] = 2 + i end
        assert.same(expected, got)
      end
    end
    local x <close> = tp.buffer("i8", 300)
    K.iota(x, 5, -7)
    for i, v in ipairs(x:read()) do
      assert.equal(numbers.wrap(5 - 7 * (i - 1), 8), v)
    end
    local y <close> = K.iota(tp.buffer("f32", 5), 0.5, 0.25)
    assert.same({ 0.5, 0.75, 1.0, 1.25, 1.5 }, y:read())
    assert.matches("bad argument #2 to 'iota' %(1.5 is not a whole number",
      failure(K.iota, x, 1.5))
    assert.matches("number expected, got string", failure(K.iota, x, 1, "2"))
  end)

  it("axpy is a * x + y, wherever the slices begin", function()
    local g = elements.generator(2)
    for _, t in ipairs { "i8", "u16", "i32", "u64", "bf16", "f32" } do
      for k, n in ipairs { 0, 1, 65, 3000 } do
        local xs, ys = values(g, t, n, -5, 5), values(g, t, n, -20, 20)
        local x <close> = elements.slice(t, xs, 1 + k)
        local y <close> = elements.slice(t, ys, 6 - k)
        assert.equal(y, K.axpy(3, x, y))
        for i = 1, n do ys[i] = 3 * xs[i] + ys[i] end
        assert.same(ys, y:read())
      end
    end
  end)

  it("axpy takes the same buffer twice, none that overlap otherwise", function()
    local x <close> = tp.buffer("f32", { 1, 2, 3, 4 })
    K.axpy(2, x, x)
    assert.same({ 3.0, 6.0, 9.0, 12.0 }, x:read())
    local a <close> = x:slice(1, 3)
    local b <close> = x:slice(2, 3)
    assert.matches("axpy: x and y overlap", failure(K.axpy, 1, a, b))
    assert.matches("bad argument #3 to 'axpy' %(a buffer of 4 elements expected, "
      .. "got one of 3", failure(K.axpy, 1, x, b))
    local c <close> = tp.zeros("f64", 4)
    assert.matches("bad argument #3 to 'axpy' %(a buffer of float32 expected, got "
      .. "one of float64", failure(K.axpy, 1, x, c))
    assert.matches("^[^:]+%.lua:%d+: bad argument #1 to 'axpy' %(number expected, "
      .. "got string", failure(K.axpy, "1", x, x))
  end)

  it("a closed buffer is an error", function()
    local x = tp.zeros("f32", 4)
    x:close()
    for _, call in ipairs { K.sum, K.iota, K.fill, K.scan, K.sort } do
      assert.matches("attempt to use a closed buffer", failure(call, x))
    end
  end)
end)

describe("sum", function()
  it("is exact for whole numbers of every type and count", function()
    local g = elements.generator(3)
    for _, t in ipairs(elements.all) do
      for k, n in ipairs(COUNTS) do
        local list = values(g, t, n, -4, 3)
        local x <close> = elements.slice(t, list, 1 + k % 5)
        assert.equal(total(list), one(K.sum(x)), t .. " " .. n)
      end
    end
  end)

  it("has 64 bits for integers, f32 for halves", function()
    local x <close> = tp.buffer("i32", { 2147483647, 2147483647, 5 })
    local s <close> = K.sum(x)
    assert.equal("int64", s:dtype())
    assert.same({ 4294967299 }, s:read())
    local h <close> = tp.buffer("f16", { 60000, 60000, -1 })
    local hs <close> = K.sum(h)
    assert.equal("float32", hs:dtype())
    local out <close> = tp.buffer("f16", 1)
    assert.same({ 119999.0 }, hs:read())
    K.sum(h, out)
    assert.equal(math.huge, out:read()[1])
    local u <close> = tp.buffer("u64", { -1, 3 })
    local us <close> = K.sum(u)
    assert.equal("uint64", us:dtype())
    assert.same({ 2 }, us:read())
  end)

  it("rounds like a tree, not like a loop, and the same each time", function()
    local g = elements.generator(4)
    local list = g.floats(50000, -1, 1)
    local x <close> = tp.buffer("f32", list)
    local first = one(K.sum(x))
    assert.is_true(math.abs(first - total(list)) < 2e-3)
    local shifted <close> = elements.slice("f32", list, 2)
    assert.equal(first, one(K.sum(shifted)))
    local s <close> = tp.Stream()
    for _ = 1, 3 do
      assert.equal(first, tp.with_stream(s, function()
        s:wait_stream(tp.default_stream())
        return one(K.sum(x))
      end))
    end
  end)

  it("adds in the order that docs/kernels.md tells", function()
    local n, threads, vector, unroll = 40000, 256, 4, 4
    local list = elements.generator(9).floats(n, -1, 1)
    local tile = threads * vector * unroll
    local blocks = math.min(528, (n + tile - 1) // tile)
    local function plus(a, b) return numbers.f32(a + b) end
    local function tree(sums, warp) -- neighbours, then pairs of pairs
      local by = 1
      while by < warp do
        for i = 1, #sums, 2 * by do sums[i] = plus(sums[i], sums[i + by]) end
        by = by * 2
      end
    end
    local function block(sums) -- warps by trees, then one after the other
      local sum
      for first = 1, threads, 32 do
        local warp = table.move(sums, first, first + 31, 1, {})
        tree(warp, 32)
        sum = sum and plus(sum, warp[1]) or warp[1]
      end
      return sum
    end
    local partial = {}
    for b = 0, blocks - 1 do
      local sums = {}
      for t = 0, threads - 1 do
        local sum = 0.0
        for begin = b * tile, n - 1, blocks * tile do
          for k = 0, unroll - 1 do
            for j = 1, vector do
              local at = begin + (k * threads + t) * vector + j
              if at <= n then sum = plus(sum, list[at]) end
            end
          end
        end
        sums[t + 1] = sum
      end
      partial[b + 1] = block(sums)
    end
    for b = blocks + 1, threads do partial[b] = 0.0 end
    local x <close> = elements.slice("f32", list, 2)
    assert.equal(block(partial), one(K.sum(x)))
  end)

  it("writes into a buffer given, of the result's type or x's", function()
    local x <close> = tp.buffer("i32", { 1, 2, 3 })
    local out <close> = tp.zeros("i32", 3)
    local middle <close> = out:slice(2, 1)
    assert.equal(middle, K.sum(x, middle))
    assert.same({ 0, 6, 0 }, out:read())
    assert.matches("bad argument #2 to 'sum' %(a buffer of 1 element expected, got "
      .. "one of 3", failure(K.sum, x, out))
    local f <close> = tp.zeros("f32", 1)
    assert.matches("a buffer of int64 or int32 expected, got one of float32",
      failure(K.sum, x, f))
    local inside <close> = x:slice(2, 1)
    assert.matches("sum: x and the result overlap", failure(K.sum, x, inside))
  end)
end)

describe("dot and norm", function()
  it("dot multiplies and adds up", function()
    local g = elements.generator(5)
    for _, t in ipairs { "i32", "u64", "f16", "f32" } do
      for k, n in ipairs { 0, 1, 100, 5001 } do
        local xs, ys = values(g, t, n, -3, 3), values(g, t, n, -3, 3)
        local x <close> = elements.slice(t, xs, k)
        local y <close> = elements.slice(t, ys, 5 - k)
        local sum = 0
        for i = 1, n do sum = sum + xs[i] * ys[i] end
        assert.equal(sum, one(K.dot(x, y)), t .. " " .. n)
        assert.equal(one(K.dot(x, x)), one(K.dot(x, x)))
      end
    end
    local x <close> = tp.zeros("f32", 3)
    local y <close> = tp.zeros("f32", 4)
    assert.matches("bad argument #2 to 'dot' %(a buffer of 3 elements expected, got "
      .. "one of 4", failure(K.dot, x, y))
  end)

  it("norms are those of 1, 2 and infinity", function()
    local g = elements.generator(6)
    for _, t in ipairs { "i32", "f32", "f64" } do
      for _, n in ipairs { 0, 1, 3000 } do
        local list = values(g, t, n, -9, 9)
        local x <close> = elements.slice(t, list, 3)
        local squares, sum, most = 0, 0, 0
        for _, v in ipairs(list) do
          squares, sum = squares + v * v, sum + math.abs(v)
          most = math.max(most, math.abs(v))
        end
        local expected = { math.sqrt(squares) }
        if t == "f32" then expected[1] = numbers.f32(expected[1]) end
        numbers.assert_near(expected, take(K.norm(x)), 1e-15)
        assert.equal(sum, one(K.norm(x, 1)))
        assert.equal(most, one(K.norm(x, math.huge)))
      end
    end
  end)

  it("the norm neither overflows nor vanishes on the way", function()
    local function norm(t, ...)
      local x <close> = tp.buffer(t, { ... })
      return one(K.norm(x))
    end
    assert.equal(5e300, norm("f64", 3e300, 4e300))
    numbers.assert_near({ 5e-300 }, { norm("f64", 3e-300, 4e-300) }, 1e-15)
    numbers.assert_near({ 5e-310 }, { norm("f64", 3e-310, 4e-310) }, 1e-12)
    assert.equal(1.0, norm("f64", 1, 1e-300))
    assert.equal(1e300, norm("f64", 1, 1e300))
    assert.equal(math.huge, norm("f64", 1, -math.huge))
    numbers.assert_near({ numbers.f32(5e30) }, { norm("f32", 3e30, 4e30) }, 1e-7)
    numbers.assert_near({ numbers.f32(5e-30) }, { norm("f32", 3e-30, 4e-30) }, 1e-7)
    local nan = norm("f64", 1, 0 / 0)
    assert.is_true(nan ~= nan)
    local x <close> = tp.zeros("f32", 1)
    assert.matches("bad argument #2 to 'norm' %(1, 2 or math.huge expected, got 3",
      failure(K.norm, x, 3))
  end)
end)

describe("min, max, argmin and argmax", function()
  local function extremes(list)
    local least, greatest = 1, 1
    for i, v in ipairs(list) do
      if v < list[least] then least = i end
      if v > list[greatest] then greatest = i end
    end
    return least, greatest
  end

  it("find the first of the extremes, for every count", function()
    local g = elements.generator(7)
    for _, t in ipairs { "i8", "i64", "f32" } do
      for k, n in ipairs(COUNTS) do
        if n > 0 then
          local list = values(g, t, n, -100, 100)
          local x <close> = elements.slice(t, list, k)
          local least, greatest = extremes(list)
          assert.equal(list[least], one(K.min(x)))
          assert.equal(list[greatest], one(K.max(x)))
          assert.equal(least, one(K.argmin(x)))
          assert.equal(greatest, one(K.argmax(x)))
        end
      end
    end
  end)

  it("know the ends of the types", function()
    local u <close> = tp.buffer("u64", { -1, 5, math.mininteger })
    assert.equal(-1, one(K.max(u)))
    assert.equal(5, one(K.min(u)))
    assert.equal(1, one(K.argmax(u)))
    local i <close> = tp.buffer("i64", { -1, math.mininteger, math.maxinteger })
    assert.equal(math.maxinteger, one(K.max(i)))
    assert.equal(2, one(K.argmin(i)))
    local f <close> = tp.buffer("f32", { -math.huge, math.huge })
    assert.equal(-math.huge, one(K.min(f)))
    assert.equal(math.huge, one(K.max(f)))
  end)

  it("give NaN where there is one, and the first one's place", function()
    local list = elements.generator(8).floats(6000, -1, 1)
    list[4500], list[5900] = 0 / 0, 0 / 0
    local x <close> = tp.buffer("f32", list)
    for _, name in ipairs { "min", "max" } do
      local got = one(K[name](x))
      assert.is_true(got ~= got)
      assert.equal(4500, one(K["arg" .. name](x)))
    end
  end)

  -- A tile is 16 KiB: the second and third place lie where the block of the first
  -- comes by again, the others in tiles that stand alone, or are not whole.
  it("find the first of equal ones, in whatever tile a thread meets them", function()
    local n, g = 540 * 4096 + 11, elements.generator(9)
    local x <close> = tp.zeros("f32", n)
    local whole <close> = x:slice(1, n - 11)
    for round = 1, 2 do
      local places = { n, n - 11, g.int(1, 4096 * 528), 4096 * 528 + 1,
        4096 * 528 + g.int(1, 4096) }
      while #places > 0 do
        local first, inside = n, n
        for _, at in ipairs(places) do
          x:write({ round }, at)
          first = math.min(first, at)
          if at <= n - 11 then inside = math.min(inside, at) end
        end
        assert.equal(first, one(K.argmax(x)))
        if inside < n then assert.equal(inside, one(K.argmax(whole))) end
        x:fill(0)
        table.remove(places, g.int(1, #places))
      end
    end
  end)

  it("of no elements there is none", function()
    local x <close> = tp.zeros("f32", 0)
    for _, name in ipairs { "min", "max", "argmin", "argmax" } do
      assert.matches("bad argument #1 to '" .. name .. "' %(the buffer has no "
        .. "elements", failure(K[name], x))
    end
  end)
end)

describe("counts beyond 2^31", function()
  local device = tp.current_device()
  if device:kind() ~= "cuda" or device:memory() < 8 << 30 then
    pending "on a GPU with 8 GiB alone: the simulated device takes minutes for them"
    return
  end
  it("are counted in full", function()
    local n = (1 << 31) + 77
    local x <close> = tp.zeros("i8", n)
    local last <close> = x:slice(n, 1)
    last:fill(5)
    assert.equal(5, one(K.sum(x)))
    assert.equal(n, one(K.argmax(x)))
    K.axpy(2, x, x)
    assert.same({ 15 }, last:read())
    K.iota(x)
    assert.same({ numbers.wrap(n - 1, 8) }, last:read())
    local counts <close> = K.histogram(x, 2, -128, 128)
    local c = counts:read()
    assert.equal(n, c[1] + c[2])
    K.fill(x, 1)
    K.scan(x, x)
    assert.same({ numbers.wrap(n, 8) }, last:read())
    K.fill(x, 3)
    last:fill(-1)
    K.sort(x)
    assert.same({ -1, 3 }, x:read(1, 2))
    assert.same({ 3 }, last:read())
  end)
end)
