-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's kernels that move data: vectors and cache hints (14), special
-- registers and shapes (37), memory of a thread (51).
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"
local f32, wrap = numbers.f32, numbers.wrap

local function blocks(n, size) return (n + size - 1) // size end

describe("corpus 14 vectors", function()
  local kernel = corpus.module(setup, teardown, "14_vecload.cu")
  local g = numbers.generator(14)

  it("copies 16 bytes a thread", function()
    local n = 777
    local xs = g.floats(4 * n, -1e6, 1e6)
    local s <close> = tp.buffer("f32", xs)
    local d <close> = tp.zeros("f32", 4 * n)
    kernel "vec_copy":launch({ grid = blocks(n, 128), block = 128 }, s, d, n)
    assert.same(xs, d:read())
  end)

  it("copies with every hint", function()
    local n = 300
    local xs = g.ints(4 * n, -1 << 31, (1 << 31) - 1)
    local s <close> = tp.buffer("i32", xs)
    local d <close> = tp.zeros("i32", 16 * n)
    kernel "vec_hints":launch({ grid = blocks(n, 64), block = 64 }, s, d, n)
    local r = d:read()
    for copy = 0, 3 do
      for i = 1, 4 * n do
        local expected = i % 4 == 1 and wrap(xs[i] * 6, 32) or xs[i]
        assert.equal(expected, r[copy * 4 * n + i])
      end
    end
  end)

  -- One vector type each: its elements, and what the kernel does to them.
  local kinds = {
    { "f64", 2, function(v) return v end },
    { "u8", 4, function(v) v[4] = (v[1] + v[2]) & 255 return v end },
    { "i16", 2, function(v) v[1] = wrap(v[1] * v[2], 16) return v end },
    { "i64", 2, function(v) v[1] = v[1] + v[2] return v end },
    { "u16", 4, function(v) v[3] = v[3] ~ v[2] return v end },
    { "f32", 2, function(v) v[1] = -v[2] return v end },
    { "i8", 2, function(v) v[1] = wrap(v[1] - v[2], 8) return v end },
  }
  local ranges = { u8 = { 0, 255 }, i16 = { -32768, 32767 }, i8 = { -128, 127 },
    i64 = { -1 << 40, 1 << 40 }, u16 = { 0, 65535 } }

  it("has vectors of every type", function()
    local n, args, from, to = 96, {}, {}, {}
    for k, kind in ipairs(kinds) do
      local count, range = n * kind[2], ranges[kind[1]]
      from[k] = range and g.ints(count, range[1], range[2])
        or g.floats(count, -1000, 1000)
      local source = tp.buffer(kind[1], from[k])
      to[k] = tp.zeros(kind[1], count)
      args[#args + 1], args[#args + 2] = source, to[k]
    end
    kernel "vec_types":launch({ grid = 1, block = n }, table.unpack(args))
    for k, kind in ipairs(kinds) do
      local r, size = to[k]:read(), kind[2]
      for i = 0, n - 1 do
        local first, last = i * size + 1, (i + 1) * size
        assert.same(kind[3] { table.unpack(from[k], first, last) },
          { table.unpack(r, first, last) }, kind[1])
      end
    end
    for _, b in ipairs(args) do b:close() end
  end)

  it("copies structs", function()
    local n, layout, parts, expected = 40, "<fi4i2i1xxxxxd", {}, {}
    for i = 1, n do
      local a, b = f32(g.real(-9, 9)), g.int(-1000000, 1000000)
      local c, d, e = g.int(-999, 999), g.int(-128, 127), g.real(-5, 5)
      local padding = ("\0"):rep(32 - string.packsize(layout))
      parts[i] = string.pack(layout, a, b, c, d, e) .. padding
      expected[i] = { a, b + c, c, d, e * a }
    end
    local s <close> = tp.buffer("u8", table.concat(parts))
    local d <close> = tp.zeros("u8", 32 * n)
    kernel "struct_copy":launch({ grid = 1, block = 64 }, s, d, n)
    local raw = d:bytes()
    for i = 1, n do
      local got = { string.unpack(layout, raw, (i - 1) * 32 + 1) }
      got[6] = nil
      assert.same(expected[i], got)
    end
  end)

  it("prefetches", function()
    local n = 100
    local xs = g.floats(n + 64, -1, 1)
    local s <close> = tp.buffer("f32", xs)
    local d <close> = tp.zeros("f32", 2 * n)
    kernel "prefetch":launch({ grid = 1, block = n }, s, d, n)
    local r = d:read()
    for i = 1, n do
      assert.equal(xs[i], r[i])
      assert.equal(xs[i], r[n + i])
    end
  end)
end)

describe("corpus 37 special registers", function()
  local kernel = corpus.module(setup, teardown, "37_special_regs.cu")

  it("tell where a thread is", function()
    local grid, block = 3, 96
    local n = grid * block
    local o <close> = tp.zeros("u32", 18 * n)
    local l <close> = tp.zeros("u64", 4 * n)
    kernel "sregs":launch({ grid = grid, block = block, shared = 512 }, o, l)
    local r, w = o:read(), l:read()
    for t = 0, n - 1 do
      local lane = t % block % 32
      local function row(k) return r[k * n + t + 1] end
      assert.equal(lane, row(0))
      -- %warpid is a place in the multiprocessor, the same for a whole warp.
      assert.equal(r[n + t - lane + 1], row(1))
      assert.is_true(row(1) < row(2))
      assert.is_true(row(2) >= block // 32)
      assert.is_true(row(3) < row(4), "%smid and %nsmid")
      assert.equal(1 << lane, row(5))
      assert.equal((1 << lane) - 1, row(6))
      assert.equal((2 << lane) - 1, row(7))
      assert.equal(0xffffffff & ~((2 << lane) - 1), row(8))
      assert.equal(0xffffffff & ~((1 << lane) - 1), row(9))
      assert.equal(512, row(11))
      assert.is_true(row(12) >= 512)
      assert.same({ block, 1, 0, 0 }, { row(13), row(14), row(15), row(16) })
      -- The clocks never go back; %clock is the low half, so may wrap.
      assert.is_true(math.ult(w[t + 1], w[3 * n + t + 1]))
      assert.is_true(row(17) - 32 - row(10) & 0xffffffff < 1 << 31)
      assert.is_true(w[n + t + 1] > 0, "%globaltimer")
      assert.equal(w[2 * n + 1], w[2 * n + t + 1], "%gridid")
    end
  end)

  it("number blocks and threads in three dimensions", function()
    local n = 3 * 2 * 4 * 5 * 4 * 3
    local o <close> = tp.zeros("i32", n)
    kernel "dims":launch({ grid = { 3, 2, 4 }, block = { 5, 4, 3 } }, o)
    for i, v in ipairs(o:read()) do assert.equal(i - 1, v) end
  end)
end)

describe("corpus 51 memory of a thread", function()
  local kernel = corpus.module(setup, teardown, "51_local_mem.cu")
  local g = numbers.generator(51)

  it("sorts", function()
    local n = 128
    local xs, expected = g.ints(32 * n, -1 << 31, (1 << 31) - 1), {}
    for t = 0, n - 1 do
      local part = { table.unpack(xs, t * 32 + 1, t * 32 + 32) }
      table.sort(part)
      table.move(part, 1, 32, t * 32 + 1, expected)
    end
    local x <close> = tp.buffer("i32", xs)
    local o <close> = tp.zeros("i32", 32 * n)
    kernel "local_sort":launch({ grid = 2, block = n // 2 }, x, o)
    assert.same(expected, o:read())
  end)

  it("permutes bytes", function()
    local k, p, j = g.int(0, (1 << 31) - 1), {}, 0
    for i = 0, 255 do p[i] = i end
    for i = 0, 255 do
      j = j + p[i] + (k >> (i & 31) & 255) & 255
      p[i], p[j] = p[j], p[i]
    end
    local o <close> = tp.zeros("i32", 300)
    kernel "permute":launch({ grid = 1, block = 300 }, o, k)
    for t, v in ipairs(o:read()) do assert.equal(p[t - 1 & 255], v) end
  end)
end)
