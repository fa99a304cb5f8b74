-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Kernels of tp.kernels whose blocks wait for one another, in whatever order blocks
-- run: cmake/specs.cmake runs this again with other ones.
local tp = require "tpstream"
local elements = require "spec.support.elements"
local K = tp.kernels

describe("blocks that wait for those before", function()
  local g = elements.generator(51)

  it("scan over more than one group of tiles", function()
    local n = 140000
    local list = elements.values(g, "i32", n, -100, 100)
    local x <close> = tp.buffer("i32", list)
    local sum = 0
    for i, v in ipairs(list) do
      sum = sum + v
      list[i] = sum
    end
    assert.same(list, elements.take(K.scan(x)))
    local f <close> = tp.buffer("f64", 300000) -- of five groups
    K.fill(f, 0.1)
    local first, again = K.scan(f), K.scan(f)
    assert.equal(first:bytes(), again:bytes())
    assert.is_true(math.abs(first:read(300000, 1)[1] - 30000) < 1e-6)
    first:close()
    again:close()
  end)

  it("sort a few tiles", function()
    local list = elements.values(g, "i32", 13000, -1000000, 1000000)
    local x <close> = tp.buffer("i32", list)
    K.sort(x)
    table.sort(list)
    assert.same(list, x:read())
  end)
end)
