-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- TPSTREAM_SIM_SEED: each seed is one of the orders that CUDA's rules allow. A
-- program that lacks a synchronization is caught by some of them, one that has it
-- gives the same result under all, and one seed gives one order.
local tp = require "tpstream"
local run = require "spec.support.run"

if tp.current_device():kind() ~= "sim" then
  describe("a seed", function() pending "is for the simulated device" end)
  return
end

local SEEDS = 20

-- One process a seed runs all programs, wrong and right, and prints what each of
-- them makes of it: "name wrong|right result".
local PROGRAMS = [===[
local tp = require "tpstream"
local program = require "spec.support.program"
local module = program("seed", [=[
extern "C" {
__global__ void put(int *p, int v) { p[threadIdx.x] = v; }
__global__ void copy(int *to, const int *from) {
  to[threadIdx.x] = from[threadIdx.x];
}
__global__ void neighbour(int *out, int right) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = t + 1;
  if (right) __syncthreads();
  out[t] = s[(t + 32) & 127] + s[(t + 96) & 127];
}
__global__ void lanes(int *out, int right) {
  __shared__ int s[32];
  int t = threadIdx.x;
  s[t] = t + 1;
  if (right) __syncwarp();
  out[t] = s[t ^ 1] + s[31 - t];
}
__global__ void flag(int *out, int *data, volatile int *flag, int right) {
  if (blockIdx.x == 0) {
    *data = 42;
    if (right) __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) __nanosleep(100);
    __threadfence();
    *out = *(volatile int *)data;
  }
}
__global__ void count(int *p, int right) {
  for (int i = 0; i < 4; i++)
    if (right) atomicAdd(p, 1);
    else *(volatile int *)p = *(volatile int *)p + 1;
}
__global__ void reuse(int *p, int *out, int right) {
  __shared__ int s[32];
  int t = threadIdx.x;
  p[t] = t + 1;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
    :: "r"((unsigned)__cvta_generic_to_shared(s + t)), "l"(p + t) : "memory");
  if (right) asm volatile("cp.async.wait_all;" ::: "memory");
  p[t] = 0;
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[t] = s[t];
}
__global__ void append(int *list, int v) {
  list[1 + atomicAdd(list, 1)] = v * 100 + blockIdx.x;
}
__global__ void spin(volatile int *flag, int *out) {
  while (*flag == 0) {}
  *out = 1;
}
}
]=])
local function launch(stream, name, grid, block, ...)
  local kernel <close> = module:kernel(name)
  tp.with_stream(stream, kernel.launch, kernel, { grid = grid, block = block },
    ...)
end
local function sum(t)
  local s = 0
  for _, v in ipairs(t) do s = s + v end
  return s
end
local device = tp.current_device()
local one, two = tp.Stream(), tp.Stream()
local CASES = {}
function CASES.event(right)
  local a, b = tp.zeros("i32", 32), tp.zeros("i32", 32)
  device:synchronize()
  launch(one, "put", 1, 32, a, 7)
  if right then two:wait_stream(one) end
  launch(two, "copy", 1, 32, b, a)
  device:synchronize()
  return sum(b:read())
end
function CASES.read(right)
  local a = tp.zeros("i32", 32)
  device:synchronize()
  launch(one, "put", 1, 32, a, 7)
  if right then one:synchronize() end
  return sum(tp.with_stream(two, a.read, a))
end
function CASES.host(right)
  local h, b = tp.pinned("i32", 32), tp.zeros("i32", 32)
  h[1] = 3
  device:synchronize()
  launch(one, "copy", 1, 1, b, h)
  if right then one:synchronize() end
  h[1] = 5
  device:synchronize()
  return b:read()[1]
end
function CASES.free(right)
  local h = tp.pinned("i32", 32)
  launch(one, "put", 1, 32, h, 9)
  if right then one:record_event():synchronize() end
  local v = h[32]
  device:synchronize()
  return v
end
for _, name in ipairs { "neighbour", "lanes" } do
  CASES[name] = function(right)
    local out = tp.zeros("i32", 128)
    launch(tp.current_stream(), name, 1, name == "lanes" and 32 or 128, out,
      right and 1 or 0)
    return sum(out:read())
  end
end
function CASES.flag(right)
  local data = tp.zeros("i32", 128)
  launch(tp.current_stream(), "flag", 2, 1, data:slice(1, 1), data:slice(65, 1),
    data:slice(97, 1), right and 1 or 0)
  return data:read()[1]
end
function CASES.count(right)
  local p = tp.zeros("i32", 1)
  launch(tp.current_stream(), "count", 4, 64, p, right and 1 or 0)
  return p:read()[1]
end
function CASES.reuse(right)
  local p, out = tp.zeros("i32", 32), tp.zeros("i32", 32)
  launch(tp.current_stream(), "reuse", 1, 32, p, out, right and 1 or 0)
  return sum(out:read())
end
local names = {}
for name in pairs(CASES) do names[#names + 1] = name end
table.sort(names)
]===]

local RESULTS = PROGRAMS .. [[
for _, name in ipairs(names) do
  print(name, "wrong", CASES[name](false))
  print(name, "right", CASES[name](true))
end
]]

-- What two streams' blocks append, in their order.
local ORDER = PROGRAMS .. [[
local list = tp.zeros("i32", 1 + 2 * 3 * 8)
device:synchronize()
for i = 1, 3 do
  launch(one, "append", 8, 1, list, i)
  launch(two, "append", 8, 1, list, 10 + i)
end
device:synchronize()
print(table.concat(list:read(), " "))
]]

local function child(text, seed)
  local r = run.script(text, { env = { TPSTREAM_SIM_SEED = seed } })
  assert.equal(0, r.status, r.stderr)
  assert.equal("", r.stderr)
  return r.stdout
end

describe("of 20 seeds", function()
  local wrong, right = {}, {} -- name → result → how many seeds gave it

  lazy_setup(function()
    for seed = 1, SEEDS do
      for name, kind, result in
        child(RESULTS, seed):gmatch "(%w+)\t(%w+)\t(%S+)" do
        local set = kind == "wrong" and wrong or right
        set[name] = set[name] or {}
        set[name][result] = (set[name][result] or 0) + 1
      end
    end
  end)

  local function tell(results)
    local text = {}
    for result, count in pairs(results) do
      text[#text + 1] = ("%s under %d"):format(result, count)
    end
    return table.concat(text, ", ")
  end

  local CASES = {
    { "event", "an event between two streams", 32 * 7 },
    { "read", "a wait before another stream reads", 32 * 7 },
    { "host", "a wait before the host changes what a copy reads", 3 },
    { "free", "a wait before the host reads pinned memory", 9 },
    { "neighbour", "__syncthreads", 128 * 129 },
    { "lanes", "__syncwarp", 32 * 33 },
    { "flag", "a fence before a flag is set", 42 },
    { "count", "an atomic addition", 4 * 64 * 4 },
    { "reuse", "a wait before what cp.async reads is overwritten", 16 * 33 },
  }
  for _, case in ipairs(CASES) do
    local name, what, expected = table.unpack(case)
    local answer = tostring(expected)

    it("some catch a program without " .. what, function()
      local fine = wrong[name][answer] or 0
      assert.is_true(fine < SEEDS, tell(wrong[name]))
    end)

    it("none changes the result of a program with " .. what, function()
      assert.equal(SEEDS, right[name][answer], tell(right[name]))
    end)
  end

  it("each gives one order, and they differ", function()
    local seen, different = {}, 0
    for seed = 1, 5 do
      local order = child(ORDER, seed)
      assert.equal(order, child(ORDER, seed))
      if not seen[order] then different = different + 1 end
      seen[order] = true
    end
    assert.is_true(different > 2, different)
  end)
end)
