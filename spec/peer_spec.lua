-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Several devices of one kind: kernels on another's memory, copies between them,
-- events across, a kernel on each, the current stream of each. Where there is one
-- GPU, or GPUs that do not reach each other, the same on simulated devices.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local numbers = require "spec.support.numbers"
local pair = require "spec.support.pair"
local reachable = pair.reachable
local program = require "spec.support.program"
local run = require "spec.support.run"

local random = numbers.generator(404)

local SOURCE = [=[
__device__ int counter = 40;
__constant__ int offset = 3;
extern "C" __global__ void count(int *out) { *out = ++counter + offset; }
extern "C" __global__ void sum(const int *const *parts, int many, int n, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, all = 0;
  if (i >= n) return;
  for (int k = 0; k < many; k++) all += parts[k][i];
  out[i] = all;
}
]=]

local function list(n)
  local t = {}
  for i = 1, n do t[i] = random.int(-100000, 100000) end
  return t
end

local function on(device, fn, ...) return tp.with_device(device, fn, ...) end

describe("a kernel", function()
  for _, make in ipairs { "buffer", "pinned", "managed" } do
    it("works on another device's " .. make, function()
      local here, there = reachable()
      local xs = list(3000)
      local x <close> = tp[make]("i32", xs, { device = there })
      local y <close> = tp.zeros("i32", #xs, { device = here })
      there:synchronize()
      on(here, function()
        gate.kernel "copy":forall(#xs, x, y, #xs)
        gate.kernel "twice":forall(#xs, x, #xs)
        assert.same(xs, y:read())
      end)
      local got = on(there, x.read, x)
      for i, v in ipairs(xs) do assert.equal(2 * v, got[i]) end
    end)
  end

  it("comes after the allocation and its filling on the other device",
    function()
      local here, there = reachable()
      local xs = list(500)
      local y <close> = tp.zeros("i32", #xs, { device = here })
      local s <close> = tp.Stream(there)
      here:synchronize()
      there:synchronize()
      local g <close> = gate.new(there)
      g:hold(s)
      local x <close> = tp.buffer("i32", xs, { stream = s })
      on(here, function()
        gate.kernel "copy":forall(#xs, x, y, #xs)
        assert.is_false(tp.current_stream():synchronize(10))
        g:open()
        assert.same(xs, y:read())
      end)
    end)

  it("keeps another device's memory until it is done", function()
    local here, there = reachable()
    local xs = list(4000)
    local y <close> = tp.zeros("i32", #xs, { device = here })
    local x = tp.buffer("i32", xs, { device = there })
    local s <close> = tp.Stream(here)
    here:synchronize()
    there:synchronize()
    local g <close> = gate.new(here)
    g:hold(s)
    tp.with_stream(s, function()
      gate.kernel "copy":forall(#xs, x, y, #xs)
    end)
    x:close()
    for i = 1, 3 do
      local other <close> = tp.buffer("i32", #xs, { device = there })
      on(there, other.fill, other, -i)
    end
    there:synchronize(50)
    g:open()
    s:synchronize()
    assert.same(xs, on(here, y.read, y))
  end)

  it("goes through addresses that lie on several devices", function()
    local here, there = reachable()
    local module = program("peer", SOURCE)
    local parts, addresses, want = {}, {}, {}
    for k, device in ipairs { here, there, there, here } do
      local xs = list(200)
      parts[k] = tp.buffer("i32", xs, { device = device })
      addresses[k] = parts[k]:ptr()
      for i, v in ipairs(xs) do want[i] = (want[i] or 0) + v end
    end
    here:synchronize()
    there:synchronize()
    on(here, function()
      local table_of <close> = tp.buffer("u64", addresses)
      local out <close> = tp.zeros("i32", 200)
      module:kernel "sum":forall(200, table_of, 4, 200, out)
      assert.same(want, out:read())
    end)
    for _, b in ipairs(parts) do b:close() end
  end)

  it("has variables of its own on each device", function()
    local here, there = pair.devices()
    local module = program("peer", SOURCE)
    local before = {}
    for i, device in ipairs { here, there } do
      before[i] = on(device, function()
        return module:global "counter":read()[1]
      end)
    end
    for round = 1, 2 do
      for i, device in ipairs { here, there } do
        on(device, function()
          local out <close> = tp.zeros("i32", 1)
          module:kernel "count":launch({ grid = 1, block = 1 }, out)
          assert.equal(before[i] + round + 3, out:read()[1])
          local counter <close> = module:global "counter"
          assert.equal(device, counter:device())
          assert.equal(before[i] + round, counter:read()[1])
        end)
      end
    end
  end)
end)

describe("copies between devices", function()
  it("of any part go both ways, from and to every kind", function()
    local here, there = pair.devices()
    local makers = { tp.buffer, tp.pinned, tp.managed }
    for _ = 1, 40 do
      local xs, ys = list(300), list(200)
      local a, b = here, there
      if random.int(0, 1) == 1 then a, b = b, a end
      local x <close> = makers[random.int(1, 3)]("i32", xs, { device = a })
      local y <close> = makers[random.int(1, 3)]("i32", ys, { device = b })
      local first, at = random.int(1, 300), random.int(1, 200)
      local count = random.int(0, math.min(301 - first, 201 - at))
      x:copy_to(y, { first = first, at = at, count = count })
      a:synchronize()
      b:synchronize()
      table.move(xs, first, first + count - 1, at, ys)
      assert.same(ys, on(b, y.read, y))
    end
  end)

  it("are what fills, writes and reads on the other's stream are", function()
    local here, there = pair.devices()
    local b <close> = tp.buffer("i32", { 1, 2, 3 }, { device = here })
    here:synchronize()
    local s <close> = tp.Stream(there)
    local g <close> = tp.with_device(there, gate.new)
    g:hold(s)
    tp.with_stream(s, b.fill, b, 7)
    tp.with_stream(s, b.write, b, { 8, 9 }, 2)
    assert.is_false(s:synchronize(5)) -- queued there, not here
    assert.is_true(here:synchronize(20000))
    g:open()
    assert.same({ 7, 8, 9 }, tp.with_stream(s, b.read, b))
    assert.equal(here, b:device())
    assert.equal(string.pack("<i4", 8), tp.with_stream(s, b.bytes, b, 2, 1))
  end)

  it("are ordered by the stream that was named", function()
    local here, there = pair.devices()
    local xs = list(1000)
    local x <close> = tp.zeros("i32", 1000, { device = here })
    local y <close> = tp.zeros("i32", 1000, { device = there })
    for _, of in ipairs { here, there } do
      here:synchronize()
      there:synchronize()
      local s <close> = tp.Stream(of)
      local g <close> = gate.new(of)
      g:hold(s)
      x:fill(0)
      on(here, x.write, x, xs)
      here:synchronize(20)
      x:copy_to(y, { stream = s })
      g:open()
      s:synchronize()
      assert.same(xs, on(there, y.read, y))
      on(there, y.fill, y, 0)
    end
  end)
end)

describe("memory that serves every device", function()
  for _, make in ipairs { "pinned", "managed" } do
    it("is used on the current stream, wherever it was made: " .. make, function()
      local here, there = pair.devices()
      local h <close> = tp[make]("i32", { 1, 2, 3 }, { device = there })
      local s <close> = tp.Stream(here)
      local held <close> = gate.new(here)
      held:hold(s)
      tp.with_stream(s, function()
        h:fill(5)
        h:slice(2, 1):write { 6 }
      end)
      there:synchronize()
      assert.same({ 1, 2, 3 }, { h[1], h[2], h[3] })
      held:open()
      s:synchronize()
      assert.same({ 5, 6, 5 }, { h[1], h[2], h[3] })
      for _ = 1, 300 do gate.run(s, "add", h, 0, 1) end
      assert.same({ 305, 6, 5 }, tp.with_stream(s, h.read, h))
      local g <close> = tp.capture(s, function() h:fill(7) end)
      assert.equal(1, #g:nodes())
      g:launch(s)
      assert.same({ 7 }, tp.with_stream(s, h.read, h, 3))
    end)
  end
end)

describe("the order of several devices", function()
  it("is made by events and wait_stream", function()
    local here, there = pair.devices()
    local s <close> = tp.Stream(here)
    local t <close> = tp.Stream(there)
    local x <close> = tp.zeros("i32", 100, { device = here })
    local y <close> = tp.zeros("i32", 100, { device = there })
    here:synchronize()
    there:synchronize()
    for round = 1, 20 do
      tp.with_stream(s, x.fill, x, round)
      t:wait_stream(s)
      x:copy_to(y, { stream = t })
      s:wait_event(t:record_event())
    end
    tp.with_stream(s, x.fill, x, -1)
    t:synchronize()
    for _, v in ipairs(tp.with_stream(t, y.read, y)) do assert.equal(20, v) end
  end)

  it("barrier joins streams of all", function()
    local here, there = pair.devices()
    local s <close> = tp.Stream(here)
    local t <close> = tp.Stream(there)
    local g <close> = gate.new(here)
    g:hold(s)
    tp.barrier(s, t)
    assert.is_false(t:synchronize(10))
    g:open()
    t:synchronize()
    assert.is_true(s:query())
  end)
end)

describe("four simulated devices", function()
  local function script(text, env)
    env = env or {}
    env.TPSTREAM_SIM_DEVICES, env.TPSTREAM_DEVICE = "4", "sim"
    env.TPSTREAM_SIM_SEED = false -- one that reuses counts otherwise
    local r = run.script(text, { env = env })
    assert.equal("", r.stderr)
    assert.equal(0, r.status)
    return r.stdout
  end

  it("each have their memory, faults and streams", function()
    assert.equal("4 true true\n1024 0 0 0\n0 false true true true\n", script [[
local tp = require "tpstream"
local d = tp.devices()
local s = {}
for i = 1, 4 do s[i] = tp.Stream(d[i]) end
tp.barrier(table.unpack(s))
local ring = {}
for i = 1, 4 do ring[i] = tp.buffer("i32", { i, i, i }, { device = d[i] }) end
for i = 1, 4 do d[i]:synchronize() end
for i = 1, 4 do
  ring[i]:copy_to(ring[i % 4 + 1], { stream = s[i] })
  tp.barrier(table.unpack(s))
end
for i = 1, 4 do d[i]:synchronize() end
local right = true
for i = 1, 4 do
  right = right and tp.with_device(d[i], ring[i].read, ring[i])[2] == 1
end
io.write(("%d %s %s\n"):format(#d, right, tp.current_device() == d[1]))
for i = 1, 4 do ring[i]:close() end
local b <close> = tp.buffer("u8", 1024)
for i = 1, 4 do
  io.write(tp.memory_stats(d[i]).live_bytes, i < 4 and " " or "\n")
end
local free, total = d[2]:memory()
io.write(total - free, " ")
local m = require "spec.support.program"("peer_fault",
  'extern "C" __global__ void fault(int *p) { *p = 1; }')
m:kernel "fault":launch({ grid = 1, block = 1 }, nil)
for i = 1, 4 do
  io.write(tostring(pcall(d[i].synchronize, d[i])), i < 4 and " " or "\n")
end
os.exit(0)]])
  end)

  it("without peer access refuse each other's memory by name", function()
    assert.matches("^kernel 'put': argument #1 %(.-%): the buffer is on sim:2, " ..
      "the launch on sim:0\ntrue\n$", script([[
local tp = require "tpstream"
local b <close> = tp.zeros("i32", 1, { device = 2 })
local put = require "spec.support.gate".kernel "put"
local _, e = pcall(put.launch, put, { grid = 1, block = 1 }, b, 0, 1)
print((e:gsub("^[^ ]* ", "")))
local h <close> = tp.pinned("i32", 1, { device = 2 })
put:launch({ grid = 1, block = 1 }, h, 0, 9)
tp.current_stream():synchronize()
print(h[1] == 9)]], { TPSTREAM_SIM_PEERS = "0" }))
  end)

  it("refuse a setting that is none", function()
    local r = run.script("require 'tpstream'.buffer('i32', 1)", {
      env = { TPSTREAM_SIM_PEERS = "2", TPSTREAM_DEVICE = "sim" } })
    assert.not_equal(0, r.status)
    assert.matches("TPSTREAM_SIM_PEERS is '2' (0 and 1 are allowed)", r.stderr,
      1, true)
  end)
end)
