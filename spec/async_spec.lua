-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Copies that complete later, and mbarriers: cp.async and its groups, split arrival
-- and waiting, pipelines; on random inputs, and what goes wrong.
-- luacheck: no max line length
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"

local SOURCE = [=[
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" {
// Each thread has 16 bytes: copied in one, two or four pieces, the rest zeros.
__global__ void pieces(const int *in, int *out, int size, const int *read) {
  __shared__ __align__(16) int s[128 * 4];
  int t = threadIdx.x;
  for (int k = 0; k < 4; k++) s[4 * t + k] = -1;
  const int *from = in + 4 * t;
  if (size == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
      :: "r"(at(s + 4 * t)), "l"(from), "r"(read[t]) : "memory");
  else if (size == 8)
    for (int k = 0; k < 2; k++)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
        :: "r"(at(s + 4 * t + 2 * k)), "l"(from + 2 * k), "r"(read[t] / 2) : "memory");
  else
    for (int k = 0; k < 4; k++)
      asm volatile("cp.async.ca.shared.global.L2::64B [%0+0], [%1], 4, %2;"
        :: "r"(at(s + 4 * t + k)), "l"(from + k), "r"(read[t] / 4) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int k = 0; k < 4; k++) out[4 * t + k] = s[4 * t + k];
}
// The policy and the predicate that has the source left alone.
__global__ void ignored(const int *in, int *out) {
  __shared__ __align__(16) int s[128 * 4];
  int t = threadIdx.x;
  asm volatile("{ .reg .pred p; .reg .b64 h; setp.ne.s32 p, %2, 0;"
    " createpolicy.fractional.L2::evict_last.b64 h, 1.0;"
    " cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, p, h; }"
    :: "r"(at(s + 4 * t)), "l"(in + 4 * t), "r"(int(t % 3 == 0)) : "memory");
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
  for (int k = 0; k < 4; k++) out[4 * t + k] = s[4 * t + k];
}
// c = a * b, n by n, in tiles of 16 of which the next one is on its way.
__global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float s[2][2][16][16];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  auto fetch = [&](int k) {
    __pipeline_memcpy_async(&s[k & 1][0][y][x], &a[row * n + k * 16 + x], 4);
    __pipeline_memcpy_async(&s[k & 1][1][y][x], &b[(k * 16 + y) * n + col], 4);
    __pipeline_commit();
  };
  float sum = 0;
  int tiles = n / 16;
  fetch(0);
  for (int k = 0; k < tiles; k++) {
    if (k + 1 < tiles) fetch(k + 1);
    __pipeline_wait_prior(k + 1 < tiles ? 1 : 0);
    __syncthreads();
    for (int j = 0; j < 16; j++) sum += s[k & 1][0][y][j] * s[k & 1][1][j][x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
// Rounds in which each thread passes its value to the next one.
__global__ void pass_on(const int *in, int *out, int rounds) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int s[2][256];
  int t = threadIdx.x, n = blockDim.x, v = in[t];
  if (t == 0) init(&bar, n);
  __syncthreads();
  for (int r = 0; r < rounds; r++) {
    s[r & 1][t] = v;
    auto token = bar.arrive();
    int own = v * 3;
    bar.wait(static_cast<decltype(token) &&>(token));
    v = own + s[r & 1][(t + 1) % n];
  }
  out[t] = v;
}
// A producer warp and a consumer warp, two places, waits by parity.
__global__ void hand_over(const int *in, int *out, int n) {
  __shared__ unsigned long long full[2], empty[2];
  __shared__ int s[2][32];
  int t = threadIdx.x & 31;
  auto wait = [](unsigned long long *bar, int parity) {
    asm volatile("{ .reg .pred p;\nW: mbarrier.test_wait.parity.shared.b64 p, [%0], %1;\n"
      "@p bra D;\nbra W;\nD: }" :: "r"(at(bar)), "r"(parity) : "memory");
  };
  auto arrive = [](unsigned long long *bar) {
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }"
      :: "r"(at(bar)) : "memory");
  };
  if (threadIdx.x < 2) {
    asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(at(full + t)));
    asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(at(empty + t)));
  }
  __syncthreads();
  for (int i = 0; i < n; i++) {
    int k = i & 1, parity = i >> 1 & 1;
    if (threadIdx.x < 32) {
      wait(empty + k, parity ^ 1);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
        :: "r"(at(&s[k][t])), "l"(in + 32 * i + t) : "memory");
      asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
        :: "r"(at(full + k)) : "memory");
    } else {
      wait(full + k, parity);
      out[32 * i + t] = s[k][31 - t] + 1;
      arrive(empty + k);
    }
  }
}
__global__ void piped(const int *in, int *out, int n) {
  extern __shared__ int s[];
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(block, &state);
  int t = threadIdx.x, size = blockDim.x, sum = 0;
  auto fetch = [&](int k) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, s + (k & 1) * size, in + k * size, sizeof(int) * size, pipe);
    pipe.producer_commit();
  };
  fetch(0);
  for (int k = 0; k < n; k++) {
    if (k + 1 < n) fetch(k + 1);
    pipe.consumer_wait();
    sum = sum * 31 + s[(k & 1) * size + (t ^ 1)];
    pipe.consumer_release();
  }
  out[t] = sum;
}
__global__ void reversed(const int *in, int *out) {
  __shared__ int s[256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, sizeof s);
  cg::wait(block);
  out[threadIdx.x] = s[255 - threadIdx.x];
}
// One thread: what the object tells of itself.
__global__ void counts(int *out) {
  __shared__ unsigned long long bar;
  unsigned long long a, b, c;
  int p;
  asm volatile("mbarrier.init.b64 [%0], 7;" :: "l"(&bar) : "memory");
  asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(a) : "l"(&bar) : "memory");
  asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 3;"
    : "=l"(b) : "r"(at(&bar)) : "memory");
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];"
    : "=l"(c) : "r"(at(&bar)) : "memory");
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[0]) : "l"(a));
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[1]) : "l"(b));
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[2]) : "l"(c));
  auto test = [&](unsigned long long state) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2;"
      " selp.b32 %0, 1, 0, p; }" : "=r"(p) : "r"(at(&bar)), "l"(state) : "memory");
    return p;
  };
  out[3] = test(a);
  asm volatile("mbarrier.arrive.noComplete.b64 %0, [%1], 1;" : "=l"(b) : "l"(&bar) : "memory");
  out[4] = test(a);
  asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(b) : "l"(&bar) : "memory");
  out[5] = test(a);
  asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(b) : "l"(&bar) : "memory");
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[6]) : "l"(b));
  out[7] = test(b);
  asm volatile("mbarrier.inval.b64 [%0];" :: "l"(&bar) : "memory");
}
}
]=]

describe("asynchronous", function()
  local module
  setup(function() module = program("async", SOURCE) end)
  teardown(function() module:close() end)
  local g = numbers.generator(30)

  local function launch(name, shape, ...)
    module:kernel(name):launch(shape, ...)
  end

  for _, size in ipairs { 16, 8, 4 } do
    it(("copies of %d bytes fill up with zeros"):format(size), function()
      local values, read, expected = g.ints(512, 1, 1 << 30), {}, {}
      for t = 1, 128 do read[t] = g.int(0, 4) * 4 end
      for t = 0, 127 do
        for k = 0, 3 do
          -- of each piece the same share is read, in whole bytes
          local part = read[t + 1] * size // 16
          local offset = k * 4 % size
          local kept = math.max(0, math.min(4, part - offset))
          local v = values[4 * t + k + 1]
          expected[4 * t + k + 1] = v & ((1 << 8 * kept) - 1)
        end
      end
      local from <close> = tp.buffer("i32", values)
      local bytes <close> = tp.buffer("i32", read)
      local to <close> = tp.zeros("i32", 512)
      launch("pieces", { grid = 1, block = 128 }, from, to, size, bytes)
      assert.same(expected, to:read())
    end)
  end

  it("copies leave their source alone where they are told", function()
    local values, expected = g.ints(512, 1, 1 << 30), {}
    for i = 1, 512 do
      expected[i] = (i - 1) // 4 % 3 == 0 and 0 or values[i]
    end
    local from <close> = tp.buffer("i32", values)
    local to <close> = tp.zeros("i32", 512)
    launch("ignored", { grid = 1, block = 128 }, from, to)
    assert.same(expected, to:read())
  end)

  it("tiles of a matrix product", function()
    local n = 48
    local a, b, expected = g.ints(n * n, -9, 9), g.ints(n * n, -9, 9), {}
    for r = 0, n - 1 do
      for c = 1, n do
        local sum = 0
        for k = 0, n - 1 do sum = sum + a[r * n + k + 1] * b[k * n + c] end
        expected[r * n + c] = sum + 0.0
      end
    end
    local x <close> = tp.buffer("f32", a)
    local y <close> = tp.buffer("f32", b)
    local z <close> = tp.zeros("f32", n * n)
    launch("product", { grid = { 3, 3 }, block = { 16, 16 } }, x, y, z, n)
    assert.same(expected, z:read())
  end)

  it("arrival apart from waiting, round after round", function()
    for _, n in ipairs { 32, 77, 256 } do
      local v = g.ints(n, -99, 99)
      local from <close> = tp.buffer("i32", v)
      local to <close> = tp.zeros("i32", n)
      launch("pass_on", { grid = 1, block = n }, from, to, 9)
      for _ = 1, 9 do
        local next = {}
        for t = 1, n do next[t] = numbers.wrap(v[t] * 3 + v[t % n + 1], 32) end
        v = next
      end
      assert.same(v, to:read())
    end
  end)

  it("hand-over between warps by parity", function()
    local n, expected = 13, {}
    local values = g.ints(32 * n, -1000, 1000)
    for i = 0, n - 1 do
      for t = 0, 31 do
        expected[32 * i + t + 1] = values[32 * i + 31 - t + 1] + 1
      end
    end
    local from <close> = tp.buffer("i32", values)
    local to <close> = tp.zeros("i32", 32 * n)
    launch("hand_over", { grid = 1, block = 64 }, from, to, n)
    assert.same(expected, to:read())
  end)

  it("pipelines of two stages", function()
    local size, n, expected = 96, 7, {}
    local values = g.ints(size * n, -1000, 1000)
    for t = 0, size - 1 do
      local sum = 0
      for k = 0, n - 1 do sum = sum * 31 + values[k * size + (t ~ 1) + 1] end
      expected[t + 1] = numbers.wrap(sum, 32)
    end
    local from <close> = tp.buffer("i32", values)
    local to <close> = tp.zeros("i32", size)
    launch("piped", { grid = 1, block = size, shared = 8 * size }, from, to, n)
    assert.same(expected, to:read())
  end)

  it("copies of a whole group", function()
    local values, expected = g.ints(256, -1 << 31, (1 << 31) - 1), {}
    for t = 0, 255 do expected[t + 1] = values[256 - t] end
    local from <close> = tp.buffer("i32", values)
    local to <close> = tp.zeros("i32", 256)
    launch("reversed", { grid = 1, block = 256 }, from, to)
    assert.same(expected, to:read())
  end)

  it("counts of an mbarrier", function()
    local out <close> = tp.zeros("i32", 8)
    launch("counts", { grid = 1, block = 1 }, out)
    assert.same({ 7, 6, 3, 0, 0, 1, 6, 0 }, out:read())
  end)
end)

-- One case in a process of its own, since it may end its device.
local PRELUDE = [==[
local tp = require "tpstream"
local program = require "spec.support.program"
local module = program("async_fault", [=[
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void arrive(void *bar, int n) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.noComplete.shared.b64 t, [%0], %1; }"
    :: "r"(at(bar)), "r"(n) : "memory");
}
extern "C" {
__global__ void misaligned(const int *in, int *out, int from, int to) {
  __shared__ __align__(16) int s[64];
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"(at(s + to)), "l"(in + from) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = s[threadIdx.x];
}
__global__ void too_much(const int *in, int *out, int n) {
  __shared__ __align__(16) int s[64];
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
    :: "r"(at(s)), "l"(in), "r"(n) : "memory");
  out[0] = s[0];
}
__global__ void uninitialised(int *out) {
  __shared__ unsigned long long bar;
  bar = 0;
  __syncthreads();
  arrive(&bar, 1);
  out[threadIdx.x] = 1;
}
__global__ void too_many(int *out) {
  __shared__ unsigned long long bar;
  asm volatile("mbarrier.init.shared.b64 [%0], 4;" :: "r"(at(&bar)) : "memory");
  arrive(&bar, 5);
  out[0] = 1;
}
__global__ void elsewhere(unsigned long long *out) {
  asm volatile("mbarrier.init.b64 [%0], 4;" :: "l"(out) : "memory");
}
__global__ void never(int *out) {
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 34;" :: "r"(at(&bar)) : "memory");
  __syncthreads();
  arrive(&bar, 1);
  asm volatile("{ .reg .pred p;\nW: mbarrier.test_wait.parity.shared.b64 p, [%0], 0;\n"
    "@p bra D;\nbra W;\nD: }" :: "r"(at(&bar)) : "memory");
  out[threadIdx.x] = 1;
}
__global__ void forgets(const int *in, int *out, int waits) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = -1;
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
    :: "r"(at(s + t)), "l"(in + t) : "memory");
  if (waits) asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[t] = s[63 - t];
}
}
]=])
local a, b = tp.buffer("i32", 64), tp.zeros("i32", 64)
local values = {}
for i = 1, 64 do values[i] = i * i end
a:write(values)
local function try(name, threads, ...)
  module:kernel(name):launch({ grid = 1, block = threads }, ...)
  local ok, e = pcall(tp.default_stream().synchronize, tp.default_stream())
  print(ok, not ok and e.code, not ok and tostring(e))
end
]==]

local function case(body, env)
  local r = run.script(PRELUDE .. body .. "\nos.exit(0, false)\n",
    { env = env, timeout = 60 })
  assert.equal(0, r.status, r.stderr)
  return r.stdout
end

describe("asynchronous misuse: #fault", function()
  it("a misaligned copy", function()
    assert.matches("cudaErrorMisalignedAddress",
      case 'try("misaligned", 1, a, b, 1, 0)')
    assert.matches("cudaErrorMisalignedAddress",
      case 'try("misaligned", 1, a, b, 0, 2)')
  end)

  if not simulated then return end

  it("a copy that reads more than it writes", function()
    assert.matches("program.cu:17: cp.async of 16 bytes reads 20",
      case 'try("too_much", 1, a, b, 20)', 1, true)
  end)

  it("an mbarrier that is not initialised", function()
    local text = case 'try("uninitialised", 40, b)'
    assert.matches("cudaErrorLaunchFailure", text)
    assert.matches("the mbarrier is not initialised", text)
  end)

  it("more arrivals than are pending", function()
    assert.matches("5 arrivals at an mbarrier of which 4 of 4 are pending",
      case 'try("too_many", 1, b)')
  end)

  it("an mbarrier in global memory", function()
    assert.matches("the mbarrier at 0x%x+ is not in shared memory",
      case 'try("elsewhere", 1, tp.zeros("u64", 4))')
  end)

  it("a phase that never ends is a deadlock", function()
    for _, seed in ipairs { "0", "7" } do
      local text = case('try("never", 33, b)', { TPSTREAM_SIM_SEED = seed })
      assert.matches("cudaErrorLaunchFailure", text)
      assert.matches("deadlock: no thread can go on", text)
      assert.matches("warp 1, lanes 0x00000001 wait for the mbarrier at shared "
        .. "address 0x0, where 1 of 34 arrivals and 0 bytes are missing", text)
      assert.matches("program.cu:43", text, 1, true)
    end
  end)

  it("with a seed a copy nobody waits for has not taken place", function()
    local body = [[
module:kernel "forgets":launch({ grid = 1, block = 64 }, a, b, %d)
local r, right = b:read(), 0
for t = 0, 63 do if r[t + 1] == values[64 - t] then right = right + 1 end end
print(right)]]
    for seed = 1, 3 do
      local env = { TPSTREAM_SIM_SEED = tostring(seed) }
      assert.equal("0\n", case(body:format(0), env))
      assert.equal("64\n", case(body:format(1), env))
    end
    assert.equal("64\n", case(body:format(0), { TPSTREAM_SIM_SEED = "0" }))
  end)
end)
