-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's use of the C++ standard library on the device (46).
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"

describe("corpus 46 cuda::std", function()
  local kernel = corpus.module(setup, teardown, "46_libcuxx.cu")
  local g = numbers.generator(46)

  local function popcount(x)
    local count = 0
    while x ~= 0 do x, count = x & x - 1, count + 1 end
    return count
  end
  local function leading_zeros(x)
    local count = 32
    while x ~= 0 do x, count = x >> 1, count - 1 end
    return count
  end

  it("complex, tuple, optional, span, bit, array, cmath, limits", function()
    local n = 100
    local xs = g.floats(2 * n, -4, 4)
    xs[1], xs[2] = 1, 2
    local a <close> = tp.buffer("f32", xs)
    local o <close> = tp.zeros("f32", 2 * n)
    local k <close> = tp.zeros("i32", n)
    kernel "stdlike":launch({ grid = 1, block = 128 }, a, o, k, n)
    local expected, integers = {}, {}
    for i = 0, n - 1 do
      local x, y = xs[2 * i + 1], xs[2 * i + 2]
      -- (x + yi)(3 + 4i) / (1 + i)
      local re, im = 3 * x - 4 * y, 4 * x + 3 * y
      re, im = (re + im) / 2, (im - re) / 2
      expected[2 * i + 1] = re + math.exp(y) + math.sqrt(re * re + im * im)
      expected[2 * i + 2] = im
      integers[i + 1] = i + popcount(i) + leading_zeros(i)
        + (i % 2 == 1 and i or 5) + 32767 + i % 4 + 1
    end
    numbers.assert_near(expected, o:read(), 1e-6, 1e-5)
    assert.same(integers, k:read())
  end)
end)
