-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Memory that was freed and is given out again, as a GPU's allocator does. On the
-- simulated device a seed says when: odd ones as early as CUDA may, with the old
-- bytes in it; the others and no seed never. New memory holds garbage with a seed.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

describe("memory freed while its stream is held up", function()
  local COUNT, ROUNDS = 1000, 6

  -- On every device: whether a block is reused or not, its old work comes first.
  it("serves what comes later on the stream, in order", function()
    local stream <close> = tp.Stream()
    local twice, results = gate.kernel "twice", {}
    tp.with_stream(stream, function()
      local g <close> = gate.new()
      for round = 1, ROUNDS do
        if round == 2 then g:hold(stream) end
        local b <close> = tp.buffer("i32", COUNT)
        b:fill(round)
        twice:forall(COUNT, b, COUNT)
        local out = tp.buffer("i32", COUNT)
        b:copy_to(out)
        results[round] = out
      end
      g:open()
      for round, out in ipairs(results) do
        for i, v in ipairs(out:read()) do assert.equal(2 * round, v, i) end
        out:close()
      end
    end)
  end)

  it("serves no other stream before that work is done", function()
    local one <close> = tp.Stream()
    local two <close> = tp.Stream()
    local twice = gate.kernel "twice"
    local g <close> = gate.new()
    for round = 1, ROUNDS do
      local b <close> = tp.buffer("i32", COUNT, { stream = one })
      if round == 1 then g:hold(one) end
      tp.with_stream(one, function()
        b:fill(1)
        twice:forall(COUNT, b, COUNT)
      end)
    end
    local mine = {}
    for i = 1, ROUNDS do
      mine[i] = tp.with_stream(two, tp.buffer, "i32", COUNT)
      tp.with_stream(two, mine[i].fill, mine[i], i)
    end
    two:synchronize()
    g:open()
    one:synchronize()
    for i, b in ipairs(mine) do
      for _, v in ipairs(tp.with_stream(two, b.read, b)) do
        assert.equal(i, v)
      end
      b:close()
    end
  end)
end)

-- The children below have seeds of their own.
if tp.current_device():kind() ~= "sim" or os.getenv "TPSTREAM_SIM_SEED" then
  return
end

-- Kernels of the children, and what they say of memory.
local PRELUDE = [===[
local tp = require "tpstream"
local gate = require "spec.support.gate"
local module = require "spec.support.program"("reuse", [=[
extern "C" {
__global__ void through(long long p, int v) { *(int *)p = v; }
__global__ void at(unsigned char *p, int i) { p[i] = 1; }
__global__ void shared(int *out) {
  __shared__ int s[48];
  extern __shared__ int d[];
  out[threadIdx.x] = threadIdx.x < 48 ? s[threadIdx.x] : d[threadIdx.x - 48];
}
__global__ void heap(int *out) {
  const int *p = (const int *)malloc(256);
  for (int i = 0; i < 64; i++) out[i] = p[i];
}
}
]=])
local function launch(name, ...)
  module:kernel(name):launch({ grid = 1, block = 1 }, ...)
end
local device = tp.current_device()
local function text(b) return table.concat(b:read(), " ") end
]===]

local function child(seed, body, env)
  env = env or {}
  env.TPSTREAM_SIM_SEED = tostring(seed)
  local r = run.script(PRELUDE .. body, { env = env })
  return r
end

local function printed(seed, body, env)
  local r = child(seed, body, env)
  assert.equal("", r.stderr)
  assert.equal(0, r.status)
  return r.stdout
end

describe("new memory", function()
  local FRESH = [[print(text(tp.buffer("u8", 4096)))]]
  local ZEROS = ("0 "):rep(4095) .. "0\n"

  it("is garbage that follows from the seed, zeros without one", function()
    assert.equal(ZEROS, printed(0, FRESH))
    local seen = {}
    for seed = 1, 4 do
      local bytes = printed(seed, FRESH)
      assert.equal(bytes, printed(seed, FRESH))
      assert.is_nil(seen[bytes])
      seen[bytes] = true
      local _, zeros = bytes:gsub("%f[%d]0%f[%s]", "")
      assert.is_true(zeros < 60, zeros) -- one of 256 by chance
    end
  end)

  it("is garbage in its first 16 MiB", function()
    local body = [[
local b = tp.buffer("u8", (16 << 20) + 5000)
for _, first in ipairs { 1, 1 << 20, (16 << 20) - 999, (16 << 20) + 1 } do
  local zeros = 0
  for _, v in ipairs(b:slice(first, 1000):read()) do
    if v == 0 then zeros = zeros + 1 end
  end
  print(zeros < 50, zeros == 1000)
end]]
    local garbage, zeros = "true\tfalse\n", "false\ttrue\n"
    assert.equal(garbage:rep(3) .. zeros, printed(2, body))
    assert.equal(zeros:rep(4), printed(0, body))
  end)

  it("is zero where CUDA or this library says so", function()
    for seed = 1, 2 do
      assert.equal(ZEROS:rep(3), printed(seed, [[
tp.buffer("u8", 4096):close()
print(text(tp.zeros("u8", 4096)))
print(text(tp.pinned("u8", 4096)))
print(text(tp.managed("u8", 4096)))]]))
    end
  end)

  it("of malloc in a kernel is garbage, too", function()
    local body = [[
local out = tp.zeros("i32", 64)
launch("heap", out)
local zeros = 0
for _, v in ipairs(out:read()) do if v == 0 then zeros = zeros + 1 end end
print(zeros)]]
    assert.equal("64\n", printed(0, body))
    for seed = 1, 2 do assert.equal("0\n", printed(seed, body)) end
  end)

  it("of a block, shared by its threads, is garbage, too", function()
    local body = [[
local out = tp.zeros("i32", 64)
module:kernel "shared":launch({ grid = 1, block = 64, shared = 64 }, out)
print(text(out))]]
    assert.equal(("0 "):rep(63) .. "0\n", printed(0, body))
    local one = printed(1, body)
    assert.equal(one, printed(1, body))
    assert.not_equal(one, printed(2, body))
    assert.is_nil((" " .. one):find(" 0%f[%s]"))
  end)
end)

describe("freed memory", function()
  -- What the kernel before the free writes is there in the next buffer.
  local SAME = [[
local g <close> = gate.new()
local a = tp.zeros("i32", 100)
g:hold(tp.current_stream())
gate.kernel "put":launch(gate.one, a, 99, 4711)
a:close()
local b <close> = tp.buffer("i32", 100)
g:open()
print(b:read()[100] == 4711)]]

  it("is used again on its stream under odd seeds", function()
    for seed = 1, 5, 2 do assert.equal("true\n", printed(seed, SAME)) end
    for seed = 0, 4, 2 do assert.equal("false\n", printed(seed, SAME)) end
  end)

  -- Used on two streams it is freed behind both, then anybody's.
  local OTHER = [[
local one, two, three = tp.Stream(), tp.Stream(), tp.Stream()
local a = tp.buffer("i32", { 1, 2, 3, 4, 5 }, { stream = one })
tp.with_stream(two, a.read, a)
one:synchronize()
a:ptr() -- on which stream it is used is not known
a:close()
device:synchronize()
local b <close> = tp.buffer(%s, { stream = three })
print(tp.with_stream(three, function() return b:as "i32":read()[2] end) == 2)]]

  it("is used again on other streams, also for what is a little larger",
    function()
      for _, shape in ipairs { '"i32", 5', '"i32", 64', '"u8", 8' } do
        local body = OTHER:format(shape)
        for seed = 1, 3, 2 do
          assert.equal("true\n", printed(seed, body), shape)
        end
        for seed = 0, 4, 2 do
          assert.equal("false\n", printed(seed, body), shape)
        end
      end
      for seed = 1, 3, 2 do -- but not for more than it has
        assert.equal("false\n", printed(seed, OTHER:format '"i32", 65'))
      end
    end)

  it("has the bounds of its new owner", function()
    local body = [[
local a = tp.buffer("u8", 300)
a:ptr()
a:close()
device:synchronize()
local b = tp.buffer("u8", %d)
launch("at", b, 299)
print(select(2, pcall(device.synchronize, device)))
os.exit(0, false)]]
    for seed = 1, 2 do
      assert.equal("true\n", printed(seed, body:format(301)))
      assert.matches("store of 1 byte at address 0x%x+: 10 bytes after the "
        .. "nearest allocation at 0x%x+ of 290 bytes %(uint8 buffer%)",
        printed(seed, body:format(290)))
    end
  end)

  it("is written by who still uses it: a fault under the other seeds",
    function()
      local body = [[
local a = tp.zeros("i32", 32)
local address = a:ptr()
a:close()
device:synchronize()
local b = tp.zeros("i32", 32)
launch("through", address, 12)
print(pcall(b.read, b) and b:read()[1])
os.exit(0, false)]]
      for seed = 0, 5 do
        local expected = seed % 2 == 1 and "12\n" or "false\n"
        assert.equal(expected, printed(seed, body), seed)
      end
    end)

  it("counts as free", function()
    local body = [[
for size = 300, 600, 100 do
  for _ = 1, 4 do tp.buffer("u8", size << 10):close() end
end
local b <close> = tp.buffer("u8", 1000 << 10)
print(#b)]]
    for seed = 0, 3 do
      assert.equal("1024000\n",
        printed(seed, body, { TPSTREAM_SIM_MEMORY = "1M" }))
    end
  end)
end)
