-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's barriers, clusters and bulk copies; those that need compute capability
-- 9.0 in processes of their own; and what the simulated device refuses.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"
local able = simulated or tp.current_device():properties().clusters

local function read(file)
  local source <close> = assert(io.open("spec/corpus/" .. file))
  return source:read "a"
end

describe("corpus 30 barriers", function()
  local module
  setup(function() module = program("corpus_30", read "30_mbarrier.cu") end)
  teardown(function() module:close() end)

  it("wait for what was written before the arrival", function()
    for _, n in ipairs { 33, 256, 1024 } do
      local expected = {}
      for t = 0, n - 1 do expected[t + 1] = (t + 1) % n * 3 + t * 2 end
      local out <close> = tp.zeros("i32", n)
      module:kernel "barrier":launch({ grid = 1, block = n }, out)
      assert.same(expected, out:read())
    end
  end)

  it("of cooperative groups, too", function()
    local expected = {}
    for t = 0, 255 do expected[t + 1] = 255 - t end
    local out <close> = tp.zeros("i32", 256)
    module:kernel "barrier_cg":launch({ grid = 1, block = 256 }, out)
    assert.same(expected, out:read())
  end)
end)

-- Runs a body on a device of compute capability 9.0 with the corpus's file in
-- `module`, under several seeds.
local function case(file, body)
  for _, seed in ipairs(simulated and { 0, 1, 2 } or { 0 }) do
    local r = run.script(([[
local tp = require "tpstream"
local file <close> = assert(io.open "spec/corpus/%s")
local module = require "spec.support.program"("corpus_%s", file:read "a")
local values = %s
]]):format(file, file:match "^%d+",
      "{" .. table.concat(numbers.generator(48).ints(1024, -1 << 30, 1 << 30), ",")
      .. "}") .. body .. "\nos.exit(0, true)\n",
      { env = { TPSTREAM_SIM_CAPABILITY = "9.0",
        TPSTREAM_SIM_SEED = tostring(seed) } })
    assert.equal(0, r.status, r.stdout .. r.stderr)
  end
end

describe("corpus", function()
  if not able then
    pending "needs compute capability 9.0"
    return
  end

  it("31: blocks read and add in each other's shared memory", function()
    case("31_cluster.cu", [[
for _, n in ipairs { 1, 32, 90 } do
  local out <close> = tp.zeros("i32", 4)
  module:kernel "dsm":launch({ grid = 2, block = n }, out)
  local r = out:read()
  for b = 0, 1 do -- the others may have added when thread 0 looks
    local least = 100 + (b ~ 1)
    assert(r[b + 1] >= least and r[b + 1] < least + n, r[b + 1])
    assert(r[3 + b] == 100 + b + n + 2 + 2 * n, r[3 + b])
  end
end]])
  end)

  it("48: a bulk copy in, a sum, a bulk copy out", function()
    case("48_tma.cu", [[
for _, n in ipairs { 32, 100, 256 } do
  local b <close> = tp.buffer("i32", values)
  module:kernel "bulk_copy":launch({ grid = 1, block = n }, b, 1024)
  local r = b:read()
  for i = 1, 1024 do assert(r[i] == values[i] + 1, i) end
end
local o <close> = tp.zeros("i32", 64)
module:kernel "grid_dep":launch({ grid = 1, block = 64 }, o)
for _, v in ipairs(o:read()) do assert(v == 1) end]])
  end)
end)

describe("corpus, refused by the simulated device:", function()
  if not simulated then return end

  -- What loading the file says, or linking it.
  local function refusal(file, options)
    local r = run.script(([[
local tp = require "tpstream"
local file <close> = assert(io.open "spec/corpus/%s")
local options = %s
options.name = "%s"
local ok, e = pcall(tp.compile, file:read "a", options)
print(ok, not ok and e.code, not ok and e.message)]]):format(file, options, file),
      { env = { TPSTREAM_SIM_CAPABILITY = "9.0" } })
    assert.equal(0, r.status, r.stderr)
    return r.stdout
  end

  it("32, launches from the device", function()
    local text = refusal("32_dynpar.cu", '{ relocatable = true }')
    assert.matches("cudaErrorNotSupported", text)
    assert.matches("function '__cudaCDP2%w+' of the device's runtime is not "
      .. "supported by the simulated device %(.-:%d+%)",
      text)
  end)

  it("52, matrices of warp groups", function()
    local text = refusal("52_wgmma_asm.cu", '{ arch = "compute_90a" }')
    assert.matches("cudaErrorNotSupported", text)
    assert.matches("instruction 'wgmma.fence.sync.aligned' is not supported by the "
      .. "simulated device %(52_wgmma_asm.cu:3%)", text)
  end)
end)
