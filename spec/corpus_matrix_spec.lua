-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's matrix kernels: wmma of every type, and mma by hand with ldmatrix.
-- Inputs are small whole numbers, so that every sum is exact.
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"

local function product(as, bs, m, n, k, at_a, at_b)
  local out = {}
  for row = 0, m - 1 do
    for col = 0, n - 1 do
      local sum = 0
      for x = 0, k - 1 do
        sum = sum + as[at_a(row, x) + 1] * bs[at_b(x, col) + 1]
      end
      out[row * n + col + 1] = sum
    end
  end
  return out
end
local function rows(stride)
  return function(row, col) return row * stride + col end
end
local function columns(stride)
  return function(row, col) return col * stride + row end
end

local function launch(kernel, expected, ...)
  local args = { ... }
  kernel:launch({ grid = 1, block = 32 }, table.unpack(args))
  assert.same(expected, args[3]:read())
end

describe("corpus 27 wmma", function()
  local kernel = corpus.module(setup, teardown, "27_wmma.cu")
  local g = numbers.generator(27)

  it("sums over k in steps of 16, and doubles", function()
    local n = 64
    local as, bs = g.ints(16 * n, -8, 8), g.ints(16 * n, -8, 8)
    local expected = product(as, bs, 16, 16, n, rows(n), columns(n))
    for i, v in ipairs(expected) do expected[i] = 2.0 * v end
    local a <close> = tp.buffer("f16", as)
    local b <close> = tp.buffer("f16", bs)
    local c <close> = tp.zeros("f32", 256)
    kernel "wmma_f16":launch({ grid = 1, block = 32 }, a, b, c, n)
    assert.same(expected, c:read())
  end)

  it("accumulates in f16, m32n8k16 by columns and rows", function()
    local as, bs = g.ints(512, -4, 4), g.ints(128, -4, 4)
    local cs = g.ints(256, -100, 100)
    local expected = product(as, bs, 32, 8, 16, columns(32), rows(8))
    for i, v in ipairs(cs) do expected[i] = expected[i] + v + 0.0 end
    local a <close> = tp.buffer("f16", as)
    local b <close> = tp.buffer("f16", bs)
    local c <close> = tp.buffer("f16", cs)
    launch(kernel "wmma_f16acc", expected, a, b, c)
  end)

  it("multiplies bytes", function()
    local as, bs = g.ints(256, -128, 127), g.ints(256, -128, 127)
    local a <close> = tp.buffer("i8", as)
    local b <close> = tp.buffer("i8", bs)
    local c <close> = tp.zeros("i32", 256)
    launch(kernel "wmma_s8", product(as, bs, 16, 16, 16, rows(16), columns(16)),
      a, b, c)
  end)

  it("multiplies bfloat16, into columns", function()
    local as, bs = g.ints(256, -16, 16), g.ints(256, -16, 16)
    local by_row, expected =
      product(as, bs, 16, 16, 16, rows(16), columns(16)), {}
    for i = 0, 255 do
      expected[i % 16 * 16 + i // 16 + 1] = by_row[i + 1] + 0.0
    end
    local a <close> = tp.buffer("bf16", as)
    local b <close> = tp.buffer("bf16", bs)
    local c <close> = tp.zeros("f32", 256)
    launch(kernel "wmma_bf16", expected, a, b, c)
  end)

  it("rounds floats to tf32", function()
    local as, bs = {}, {}
    for i = 1, 128 do -- a bit below tf32's last, which is rounded away
      as[i] = g.int(-1000, 1000) * (1 + 2.0 ^ -20)
      bs[i] = g.int(-8, 8)
    end
    local rounded = {}
    for i, v in ipairs(as) do rounded[i] = math.floor(v + 0.5) end
    local expected = product(rounded, bs, 16, 16, 8, rows(8), columns(8))
    for i, v in ipairs(expected) do expected[i] = v + 0.0 end
    local a <close> = tp.buffer("f32", as)
    local b <close> = tp.buffer("f32", bs)
    local c <close> = tp.zeros("f32", 256)
    launch(kernel "wmma_tf32", expected, a, b, c)
  end)

  it("multiplies doubles", function()
    local as, bs = g.ints(32, -1000, 1000), g.ints(32, -1000, 1000)
    local expected = product(as, bs, 8, 8, 4, rows(4), columns(4))
    for i, v in ipairs(expected) do expected[i] = v + 0.0 end
    local a <close> = tp.buffer("f64", as)
    local b <close> = tp.buffer("f64", bs)
    local c <close> = tp.zeros("f64", 64)
    launch(kernel "wmma_f64", expected, a, b, c)
  end)
end)

describe("corpus 28 mma", function()
  local kernel = corpus.module(setup, teardown, "28_mma_ptx.cu")
  local g = numbers.generator(29)

  it("loads by ldmatrix and multiplies", function()
    local as, bs = g.ints(256, -8, 8), g.ints(128, -8, 8)
    local expected = product(as, bs, 16, 8, 16, rows(16), columns(16))
    for i, v in ipairs(expected) do expected[i] = v + 0.0 end
    local a <close> = tp.buffer("f16", as)
    local b <close> = tp.buffer("f16", bs)
    local d <close> = tp.zeros("f32", 128)
    launch(kernel "mma16816", expected, a, b, d)
  end)

  it("multiplies packed bytes", function()
    local words_a, words_b, as, bs = {}, {}, {}, {}
    for i = 1, 128 do words_a[i] = g.bits() & 0xffffffff end
    for i = 1, 64 do words_b[i] = g.bits() & 0xffffffff end
    local function byte(w, j) return numbers.wrap(w >> 8 * j, 8) end
    for l = 0, 31 do
      local row, q = l // 4, l % 4
      for r = 0, 3 do
        for j = 0, 3 do
          local k = r // 2 * 16 + q * 4 + j
          as[(row + r % 2 * 8) * 32 + k + 1] = byte(words_a[r * 32 + l + 1], j)
          if r < 2 then
            bs[row * 32 + r * 16 + q * 4 + j + 1] =
              byte(words_b[r * 32 + l + 1], j)
          end
        end
      end
    end
    local full = product(as, bs, 16, 8, 32, rows(32), columns(32))
    local expected = {}
    for l = 0, 31 do
      for i = 0, 3 do
        expected[l * 4 + i + 1] =
          full[(l // 4 + i // 2 * 8) * 8 + l % 4 * 2 + i % 2 + 1]
      end
    end
    local a <close> = tp.buffer("u32", words_a)
    local b <close> = tp.buffer("u32", words_b)
    local d <close> = tp.zeros("i32", 128)
    launch(kernel "mma_s8", expected, a, b, d)
  end)
end)
