-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's kernels that need every lane to go on (34) and barriers of all
-- forms (35).
local tp = require "tpstream"
local corpus = require "spec.support.corpus"
local numbers = require "spec.support.numbers"
local run = require "spec.support.run"

describe("corpus 34 locks", function()
  local kernel = corpus.module(setup, teardown, "34_spinlock.cu")

  for _, name in ipairs { "spin_warp", "spin_backoff" } do
    it(name .. " lets every thread in once", function()
      local lock <close> = tp.zeros("i32", 1)
      local counter <close> = tp.zeros("i32", 1)
      kernel(name):launch({ grid = 3, block = 96 }, lock, counter)
      assert.same({ 288 }, counter:read())
      assert.same({ 0 }, lock:read())
    end)
  end

  it("lane 0 waits for lane 31", function()
    local flag <close> = tp.zeros("i32", 1)
    local out <close> = tp.zeros("i32", 1)
    kernel "lane_to_lane":launch({ grid = 1, block = 32 }, flag, out)
    assert.same({ 7 }, out:read())
  end)

  it("tickets are served in order, each to one thread", function()
    local n = 256
    local next_ <close> = tp.zeros("u32", 1)
    local serving <close> = tp.zeros("u32", 1)
    local out <close> = tp.buffer("i32", n)
    out:fill(-1)
    kernel "ticket":launch({ grid = 4, block = 64 }, next_, serving, out)
    local r = out:read()
    table.sort(r)
    for i = 1, n do assert.equal(i - 1, r[i]) end
    assert.same({ n }, serving:read())
  end)
end)

describe("corpus 35 barriers", function()
  local kernel = corpus.module(setup, teardown, "35_named_barriers.cu")
  local g = numbers.generator(35)

  it("producers and consumers take turns", function()
    local iterations = 20
    local out <close> = tp.zeros("i32", 128 * iterations)
    kernel "producer_consumer":launch({ grid = 1, block = 256 }, out, iterations)
    for i, v in ipairs(out:read()) do assert.equal(2 * (i - 1), v) end
  end)

  it("of every form", function()
    local n, xs, above = 128, g.ints(128, 0, 7), 0
    for _, x in ipairs(xs) do above = above + (x > 3 and 1 or 0) end
    local o <close> = tp.buffer("i32", xs)
    kernel "barrier_forms":launch({ grid = 1, block = n }, o, 5, n)
    for _, v in ipairs(o:read()) do assert.equal(above, v) end
  end)

  it("without those that have left", function()
    local n = 100
    local o <close> = tp.buffer("i32", 256)
    o:fill(-1)
    kernel "early_exit":launch({ grid = 1, block = 256 }, o, n)
    for i, v in ipairs(o:read()) do
      assert.equal(i <= n and n - i or -1, v)
    end
  end)

  -- On a GPU this kernel may hang for ever; here it is a fault that tells.
  it("in both arms of a branch are told", function()
    local r = run.script([[
local tp = require "tpstream"
tp.set_device "sim"
local file <close> = io.open "spec/corpus/35_named_barriers.cu"
local source, path = file:read "a", "spec/ptx/corpus_35.ptx"
local ok, module = pcall(tp.compile, source, { name = "35.cu" })
if not ok then module = tp.load(io.open(path):read "a") end
local o = tp.zeros("i32", 32)
module:kernel "divergent_barrier":launch({ grid = 1, block = 32 }, o)
print(pcall(tp.current_stream().synchronize, tp.current_stream()))
]])
    assert.matches("^false", r.stdout)
    assert.matches("divergent_barrier", r.stdout)
    assert.matches("barrier", r.stdout)
  end)
end)
