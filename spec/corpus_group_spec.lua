-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's cooperative groups (12).
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"

describe("corpus 12 cooperative groups", function()
  local kernel = corpus.module(setup, teardown, "12_coop_groups.cu")
  local g = numbers.generator(12)

  it("tiles shuffle, reduce, scan and vote", function()
    local n, xs = 64, g.ints(64, 0, 9)
    local x <close> = tp.buffer("i32", xs)
    local out <close> = tp.zeros("i32", 512 + n)
    kernel "cg_tile":launch({ grid = 1, block = n }, x, out)
    local r = out:read()
    for tile = 0, n // 8 - 1 do
      local sum = 0
      for k = 1, 8 do sum = sum + xs[tile * 8 + k] end
      assert.equal(sum, r[tile + 1])
    end
    -- what each lane holds after shuffling down within its tile of eight
    local v = table.move(xs, 1, n, 1, {})
    for _, o in ipairs { 4, 2, 1 } do
      local before = table.move(v, 1, n, 1, {})
      for t = 0, n - 1 do
        local from = t % 8 + o < 8 and t + o or t
        v[t + 1] = before[t + 1] + before[from + 1]
      end
    end
    for w = 0, n // 32 - 1 do
      local sum, most, running, ballot = 0, -math.huge, 0, 0
      local any, all = 0, 1
      for t = w * 32, w * 32 + 31 do
        sum, most = sum + xs[t + 1], math.max(most, v[t + 1])
        if v[t + 1] > 3 then ballot = ballot | 1 << t % 32 end
        if v[t + 1] ~= 0 then any = 1 else all = 0 end
      end
      for t = w * 32, w * 32 + 31 do
        running = running + v[t + 1]
        local alike = 0
        for k = 0, 31 do
          if v[w * 32 + k + 1] == v[t + 1] then alike = alike | 1 << k end
        end
        assert.equal(sum, r[64 + t + 1])
        assert.equal(most, r[128 + t + 1])
        assert.equal(running, r[256 + t + 1])
        assert.equal(numbers.wrap(ballot + any + all + alike, 32), r[512 + t + 1])
      end
    end
  end)

  it("coalesced threads append together", function()
    local n, odd = 96, {}
    local xs = g.ints(n, 0, 1000)
    for _, x in ipairs(xs) do
      if x % 2 == 1 then odd[#odd + 1] = x end
    end
    local x <close> = tp.buffer("i32", xs)
    local out <close> = tp.zeros("i32", n)
    local counter <close> = tp.zeros("i32", 1)
    kernel "cg_coalesced":launch({ grid = 1, block = n }, x, out, counter)
    assert.same({ #odd }, counter:read())
    local r = out:read(1, #odd)
    table.sort(r)
    table.sort(odd)
    assert.same(odd, r)
  end)

  it("the grid meets", function()
    local n, sum = 500, 0
    local xs = g.ints(n, -50, 50)
    for _, x in ipairs(xs) do sum = sum + 2 * x end
    local x <close> = tp.buffer("f32", xs)
    local t <close> = tp.zeros("f32", n)
    local out <close> = tp.zeros("f32", n)
    kernel "cg_grid":launch({ grid = 8, block = 64, cooperative = true }, x, t, out,
      n)
    for _, v in ipairs(out:read()) do assert.equal(sum, v) end
  end)

  it("labelled and binary partitions", function()
    local xs = g.ints(64, 0, 100)
    local a <close> = tp.buffer("i32", table.move(xs, 1, 64, 1, g.ints(128, 0, 0)))
    kernel "cg_labeled":launch({ grid = 1, block = 64 }, a)
    local r = a:read()
    for t = 0, 63 do
      local same, parity = 0, 0
      for k = t // 32 * 32 + 1, t // 32 * 32 + 32 do
        if xs[k] % 3 == xs[t + 1] % 3 then same = same + 1 end
        if xs[k] % 2 == xs[t + 1] % 2 then parity = parity + 1 end
      end
      assert.equal(same * 100 + parity, r[64 + t + 1])
    end
  end)
end)
