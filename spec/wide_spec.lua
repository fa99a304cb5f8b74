-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- 128 bits at once: atomicExch and atomicCAS of __int128, and loads and stores that
-- others see whole. They need compute capability 9.0.
local tp = require "tpstream"
local newer = require "spec.support.newer"
local run = require "spec.support.run"

local PRELUDE = [===[
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local module <close> = require "spec.support.program"("wide", [=[
typedef unsigned __int128 wide;
extern "C" {
// Adds by compare and swap: the halves carry.
__global__ void add(wide *total, const wide *x) {
  wide seen = *total, mine = x[blockIdx.x * blockDim.x + threadIdx.x], old;
  do {
    old = seen;
    seen = atomicCAS(total, old, old + mine);
  } while (seen != old);
}
// Every value that goes in comes out once, or stays.
__global__ void chain(wide *place, const wide *in, wide *out) {
  __shared__ wide own;
  int t = threadIdx.x;
  if (t == 0) own = 7;
  __syncthreads();
  out[t] = atomicExch(place, in[t]);
  out[blockDim.x + t] = atomicExch_block(&own, in[t]);
  __syncthreads();
  if (t == 0) out[2 * blockDim.x] = own;
}
__global__ void results(wide *p, const wide *in, wide *out) {
  int t = threadIdx.x;
  wide *q = p + t;
  out[4 * t] = atomicCAS(q, in[t], in[t] + 1);
  out[4 * t + 1] = atomicCAS_system(q, in[t] + 1, in[t] ^ 5);
  out[4 * t + 2] = __nv_atomic_load_n(q, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_store_n(q, in[t] * 3, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_BLOCK);
  wide expected = 1;
  __nv_atomic_compare_exchange_n(q, &expected, 2, false, __NV_ATOMIC_SEQ_CST,
    __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  out[4 * t + 3] = expected;
}
// Writers store a value twice over; a reader must never see halves of two.
__global__ void whole(long long *p, int turns, int *torn) {
  for (int i = 0; i < turns; i++)
    if (threadIdx.x < 16) {
      unsigned long long v = blockIdx.x << 20 | i << 5 | threadIdx.x;
      asm volatile("{ .reg .b128 r; mov.b128 r, {%1, %1};\n"
        "st.relaxed.gpu.global.b128 [%0], r; }" :: "l"(p), "l"(v) : "memory");
    } else {
      unsigned long long a, b;
      asm volatile("{ .reg .b128 r; ld.relaxed.gpu.global.b128 r, [%2];\n"
        "mov.b128 {%0, %1}, r; }" : "=l"(a), "=l"(b) : "l"(p) : "memory");
      if (a != b) atomicAdd(torn, 1);
    }
}
}
]=])
local function draw(n, seed)
  local g, list = numbers.generator(seed), {}
  for i = 1, 2 * n do list[i] = g.bits() end
  return list
end
-- Sums of 128 bits, as two integers.
local function add(lo, hi, x, y)
  local sum = lo + x
  return sum, hi + y + (math.ult(sum, x) and 1 or 0)
end
]===]

describe("128 bits at once", function()
  it("are added by compare and swap", function()
    newer.run(PRELUDE .. [===[
      local x, lo, hi = draw(1024, 1), -5, 3
      local total <close> = tp.buffer("i64", { lo, hi })
      local b <close> = tp.buffer("i64", x)
      module:kernel "add":launch({ grid = 8, block = 128 }, total, b)
      for i = 1, #x, 2 do lo, hi = add(lo, hi, x[i], x[i + 1]) end
      local r = total:read()
      assert(r[1] == lo and r[2] == hi)
    ]===])
  end)

  it("are exchanged, in global and in shared memory", function()
    newer.run(PRELUDE .. [===[
      local x = draw(96, 2)
      local place <close> = tp.buffer("i64", { 7, 0 })
      local b <close> = tp.buffer("i64", x)
      local o <close> = tp.zeros("i64", 2 * 193)
      module:kernel "chain":launch({ grid = 1, block = 96 }, place, b, o)
      local r, last = o:read(), place:read()
      local function check(from, lo, hi)
        local left = { ["7 0"] = 1 }
        for i = 1, #x, 2 do left[x[i] .. " " .. x[i + 1]] = 1 end
        local function take(a, c)
          local key = a .. " " .. c
          assert(left[key], key)
          left[key] = nil
        end
        for i = from, from + 191, 2 do take(r[i], r[i + 1]) end
        take(lo, hi)
        assert(next(left) == nil)
      end
      check(1, last[1], last[2])
      check(193, r[385], r[386])
    ]===])
  end)

  it("give the old value, in every order and scope", function()
    newer.run(PRELUDE .. [===[
      local x = draw(64, 3)
      local start = { table.unpack(x) }
      for i = 3, #x, 8 do start[i] = x[i] ~ 1 << 40 end -- some halves differ
      for i = 6, #x, 8 do start[i] = x[i] ~ 2 end
      local p <close> = tp.buffer("i64", start)
      local b <close> = tp.buffer("i64", x)
      local o <close> = tp.zeros("i64", 8 * 64)
      module:kernel "results":launch({ grid = 1, block = 64 }, p, b, o)
      local r, after = o:read(), p:read()
      for t = 0, 63 do
        local a, c, lo, hi = x[2 * t + 1], x[2 * t + 2], start[2 * t + 1],
          start[2 * t + 2]
        local function is(k, l, h)
          assert(r[8 * t + 2 * k + 1] == l and r[8 * t + 2 * k + 2] == h,
            ("thread %d, result %d"):format(t, k))
        end
        is(0, lo, hi)
        if lo == a and hi == c then
          local l, h = add(a, c, 1, 0)
          is(1, l, h)
          is(2, a ~ 5, c)
        else
          is(1, lo, hi)
          is(2, lo, hi)
        end
        local l, h = add(a, c, a, c)
        l, h = add(l, h, a, c)
        is(3, l, h)
        assert(after[2 * t + 1] == l and after[2 * t + 2] == h)
      end
    ]===])
  end)

  it("are seen whole", function()
    newer.run(PRELUDE .. [===[
      local p <close> = tp.zeros("i64", 2)
      local torn <close> = tp.zeros("i32", 1)
      module:kernel "whole":launch({ grid = 8, block = 32 }, p, 100, torn)
      assert(torn:read()[1] == 0)
    ]===])
  end)

  it("need a multiple of 16 bytes as their address", function()
    if tp.current_device():kind() ~= "sim" then return end
    local r = run.script(PRELUDE .. [===[
      local p <close> = tp.zeros("i64", 4)
      module:kernel "whole":launch({ grid = 1, block = 1 }, p:slice(2, 2), 1, nil)
      print(select(2, pcall(function() tp.current_stream():synchronize() end)))
    ]===], { env = { TPSTREAM_SIM_CAPABILITY = "9.0" } })
    assert.match("misaligned", r.stdout .. r.stderr)
    assert.match("whole", r.stdout .. r.stderr)
  end)

  it("need target sm_90 for atomic operations", function()
    local ok, e = pcall(tp.load, [[
.version 8.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %a; .reg .b128 %x;
  ld.param.u64 %a, [p];
  mov.b128 %x, {%a, %a};
  atom.global.exch.b128 %x, [%a], %x;
  ret;
}
]])
    assert.is_false(ok)
    if tp.current_device():kind() ~= "sim" then return end
    assert.match("instruction 'atom.global.exch.b128' needs target sm_90, the "
      .. "module has sm_80 (PTX line 9)", tostring(e), 1, true)
  end)
end)
