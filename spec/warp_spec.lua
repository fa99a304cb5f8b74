-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Threads together: divergence, shuffles, votes, barriers, atomics, calls, and the
-- programs that hang a scheduler which is too simple.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local wrap = numbers.wrap

local SOURCE = [=[
#define FULL 0xffffffffu
extern "C" {
__global__ void shuffles(const int *in, int *o) {
  int t = threadIdx.x, v = in[t];
  o[t] = __shfl_sync(FULL, v, t * 7 + 3);
  o[32 + t] = __shfl_up_sync(FULL, v, 5);
  o[64 + t] = __shfl_down_sync(FULL, v, 9);
  o[96 + t] = __shfl_xor_sync(FULL, v, 21);
  double d = __shfl_xor_sync(FULL, v * 1.5, 1);
  o[128 + t] = (int)(d * 2);
}
// Both arms hold a shuffle over the whole warp: they must meet.
__global__ void shuffle_in_arms(const int *in, int *o) {
  int t = threadIdx.x, v = in[t];
  if (t & 1) o[t] = __shfl_xor_sync(FULL, v, 1) + 1000;
  else o[t] = __shfl_xor_sync(FULL, v, 1);
}
__global__ void partial_shuffle(const int *in, int *o) {
  int t = threadIdx.x;
  o[t] = -1;
  if (t < 12) o[t] = __shfl_sync(0xfffu, in[t], (t + 1) % 12);
}
__global__ void votes(const int *in, unsigned *o) {
  int t = threadIdx.x;
  bool p = in[t] & 1;
  o[t] = __ballot_sync(FULL, p);
  o[32 + t] = __any_sync(FULL, in[t] == 77) | __all_sync(FULL, in[t] < 1000) << 1;
  if (t >= 8 && t < 24) o[64 + t] = __activemask();
  else o[64 + t] = __ballot_sync(0xff0000ffu, t & 2);
}
__global__ void lane_ids(unsigned *o) {
  unsigned lane, lt, ge;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  o[threadIdx.x * 3] = lane;
  o[threadIdx.x * 3 + 1] = lt;
  o[threadIdx.x * 3 + 2] = ge;
}
// Each lane takes another path and number of turns.
__global__ void paths(const int *in, int *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i], s = 0;
  for (int k = 0; k < v % 50; k++) {
    if (k % 3 == 0) { s += k; continue; }
    if (k > 40) break;
    while (s % 7) s++;
    if (s & 1) s ^= v; else s += 2;
  }
  switch (v % 5) {
  case 0: s += 1; break;
  case 1: s *= 3;
  case 2: s -= 5; break;
  case 3: return;
  }
  o[i] = s;
}
// A lock that lanes of one warp fight for.
__global__ void spin_lock(int *lock, int *count) {
  bool done = false;
  while (!done)
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int *)count = *(volatile int *)count + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
// Lane 0 waits for lane 31.
__global__ void wait_within_warp(volatile int *flag, int *o) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {}
    o[0] = 5;
  } else if (threadIdx.x == 31) {
    *flag = 1;
  }
}
// Blocks pass a token, the last one first.
__global__ void relay(volatile int *turn, int *o, int n) {
  if (threadIdx.x == 0) {
    while (*turn != (int)blockIdx.x) {}
    o[n - 1 - *turn] = blockIdx.x;
    __threadfence();
    *turn = blockIdx.x - 1;
  }
}
// The last block sums what all have written.
__device__ unsigned arrived;
__global__ void last_block(const int *in, int *part, int *o) {
  __shared__ bool last;
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    part[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(&arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (int b = 0; b < gridDim.x; b++) total += ((volatile int *)part)[b];
    o[0] = total;
    arrived = 0;
  }
}
__global__ void early_exit(int *o) {
  __shared__ int s[128];
  s[threadIdx.x] = 1;
  if (threadIdx.x % 3 == 1) return;
  __syncthreads();
  int n = 0;
  for (int i = 0; i < 128; i++) n += s[i];
  o[threadIdx.x] = n;
}
__global__ void barrier_counts(const int *in, int *o) {
  int t = threadIdx.x;
  o[t] = __syncthreads_count(in[t] & 1);
  o[64 + t] = __syncthreads_or(in[t] == 5);
  o[128 + t] = __syncthreads_and(in[t] < 100);
}
// Two halves of a block each at a barrier of their own.
__global__ void named(int *o) {
  __shared__ int s[128];
  int half = threadIdx.x / 64, t = threadIdx.x % 64;
  s[threadIdx.x] = t;
  if (half) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  o[threadIdx.x] = s[half * 64 + 63 - t];
}
// One warp makes, another takes.
__global__ void producer(int *o) {
  __shared__ volatile int box;
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) box = 42;
    __threadfence_block();
    asm volatile("bar.arrive 3, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 3, 64;" ::: "memory");
    o[threadIdx.x - 32] = box;
  }
}
__global__ void two_barriers(int *o) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 32) __syncthreads();
  else __syncthreads();
  o[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void syncwarp(int *o) {
  __shared__ volatile int s[32];
  int t = threadIdx.x;
  if (t < 16) s[t] = t * 2;
  else s[t] = t * 3;
  __syncwarp();
  o[t] = s[31 - t];
}
__global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f,
                        double *d) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(i, t);
  atomicSub(i + 1, t);
  atomicMin(i + 2, -t);
  atomicMax(i + 3, t);
  atomicAnd(u, ~(1u << (t & 31)));
  atomicOr(u + 1, 1u << (t & 31));
  atomicXor(u + 2, 1u << (t & 31));
  atomicInc(u + 3, 99);
  atomicDec(u + 4, 99);
  atomicMax(u + 5, (unsigned)t * 5);
  atomicAdd(l, 1ull << 33);
  atomicMax((long long *)l + 1, (long long)t - 500);
  atomicMin(l + 2, (unsigned long long)t + (1ull << 40));
  atomicOr(l + 3, 1ull << (t & 63));
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  int old = i[4];
  while (true) {
    int seen = atomicCAS(i + 4, old, old + 2);
    if (seen == old) break;
    old = seen;
  }
  unsigned long long big = l[4], seen;
  while ((seen = atomicCAS(l + 4, big, big + 3)) != big) big = seen;
}
__global__ void tickets(int *counter, int *seen) {
  int mine = atomicAdd(counter, 1);
  seen[mine]++;
}
__global__ void shared_atomics(int *o) {
  __shared__ int s[4];
  __shared__ unsigned long long l;
  __shared__ float f;
  if (threadIdx.x < 4) s[threadIdx.x] = 0;
  if (threadIdx.x == 0) l = 0, f = 0;
  __syncthreads();
  atomicAdd(&s[threadIdx.x & 3], threadIdx.x);
  atomicMax(&s[3], 100000);
  atomicAdd(&l, 7ull);
  atomicAdd(&f, 1.5f);
  __syncthreads();
  if (threadIdx.x < 3) o[threadIdx.x] = s[threadIdx.x];
  if (threadIdx.x == 3) o[3] = (int)l, o[4] = (int)(f * 2);
}
}
__device__ __noinline__ int collatz(int n, int depth) {
  if (n == 1) return depth;
  return n & 1 ? collatz(3 * n + 1, depth + 1) : collatz(n / 2, depth + 1);
}
extern "C" __global__ void recursion(const int *in, int *o) {
  o[threadIdx.x] = collatz(in[threadIdx.x], 0);
}
typedef int (*op_t)(int, int);
__device__ __noinline__ int f_add(int a, int b) { return a + b; }
__device__ __noinline__ int f_mul(int a, int b) { return a * b; }
__device__ __noinline__ int f_sub(int a, int b) { return a - b; }
__device__ op_t table[3] = {f_add, f_mul, f_sub};
extern "C" __global__ void function_pointers(int *o) {
  int t = threadIdx.x;
  o[t] = table[t % 3](t, 10);
}
struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int a;
  __device__ Square(int a) : a(a) {}
  __device__ int area() const override { return a * a; }
};
struct Box : Shape {
  int a, b;
  __device__ Box(int a, int b) : a(a), b(b) {}
  __device__ int area() const override { return a * b; }
};
extern "C" __global__ void virtual_calls(int *o) {
  int t = threadIdx.x;
  Square s(t);
  Box b(t, t + 1);
  Shape *p = t & 1 ? (Shape *)&s : (Shape *)&b;
  o[t] = p->area();
}
// A shuffle by every lane, at another depth of recursion.
__device__ __noinline__ int deep(int n, int v) {
  if (n == 0) return __shfl_xor_sync(FULL, v, 1);
  return deep(n - 1, v) + 1;
}
extern "C" __global__ void divergent_depth(int *o) {
  int t = threadIdx.x;
  o[t] = deep(t & 3, t);
}
extern "C" __global__ void inclusive_scan(const int *in, int *o) {
  __shared__ int warps[32];
  int t = threadIdx.x, lane = t & 31, w = t >> 5, v = in[t];
  for (int d = 1; d < 32; d <<= 1) {
    int u = __shfl_up_sync(FULL, v, d);
    if (lane >= d) v += u;
  }
  if (lane == 31) warps[w] = v;
  __syncthreads();
  if (w == 0) {
    int x = lane < blockDim.x / 32 ? warps[lane] : 0;
    for (int d = 1; d < 32; d <<= 1) {
      int u = __shfl_up_sync(FULL, x, d);
      if (lane >= d) x += u;
    }
    warps[lane] = x;
  }
  __syncthreads();
  o[t] = v + (w ? warps[w - 1] : 0);
}
]=]

local module
setup(function() module = program("warp", SOURCE) end)
teardown(function() module:close() end)

-- Launches `name` over `block` threads and returns the result of an int buffer of
-- n elements that comes last.
local function run(name, grid, block, n, ...)
  local kernel <close> = module:kernel(name)
  local args, buffers = { ... }, {}
  for i, a in ipairs(args) do
    if type(a) == "table" then
      buffers[#buffers + 1] = tp.buffer("i32", a)
      args[i] = buffers[#buffers]
    end
  end
  local unsigned = name == "votes" or name == "lane_ids"
  local o <close> = tp.zeros(unsigned and "u32" or "i32", n)
  args[#args + 1] = o
  kernel:launch({ grid = grid, block = block }, table.unpack(args))
  local result = o:read()
  for _, b in ipairs(buffers) do b:close() end
  return result
end

local g = numbers.generator(99)

describe("warps", function()
  it("shuffle", function()
    local xs = g.ints(32, -1000000, 1000000)
    local r = run("shuffles", 1, 32, 160, xs)
    for t = 0, 31 do
      assert.equal(xs[(t * 7 + 3) % 32 + 1], r[t + 1])
      assert.equal(xs[(t >= 5 and t - 5 or t) + 1], r[32 + t + 1])
      assert.equal(xs[(t + 9 < 32 and t + 9 or t) + 1], r[64 + t + 1])
      assert.equal(xs[(t ~ 21) + 1], r[96 + t + 1])
      assert.equal(xs[(t ~ 1) + 1] * 3, r[128 + t + 1])
    end
  end)

  it("shuffle in both arms of a branch", function()
    local xs = g.ints(32, 0, 99)
    local r = run("shuffle_in_arms", 1, 32, 32, xs)
    for t = 0, 31 do
      assert.equal(xs[(t ~ 1) + 1] + (t & 1) * 1000, r[t + 1])
    end
  end)

  it("shuffle within a partial mask", function()
    local xs = g.ints(32, 0, 99)
    local r = run("partial_shuffle", 1, 32, 32, xs)
    for t = 0, 31 do
      assert.equal(t < 12 and xs[(t + 1) % 12 + 1] or -1, r[t + 1])
    end
  end)

  it("vote", function()
    local xs, odd = g.ints(32, 0, 500), 0
    xs[20] = 77
    for t = 0, 31 do odd = odd | (xs[t + 1] & 1) << t end
    local r = run("votes", 1, 32, 96, xs)
    for t = 0, 31 do
      assert.equal(odd, r[t + 1])
      assert.equal(3, r[32 + t + 1])
      local middle = t >= 8 and t < 24
      if middle then
        assert.is_true(r[64 + t + 1] & 1 << t ~= 0)
        assert.equal(0, r[64 + t + 1] & ~0xffff00)
      else
        assert.equal(0xcccccccc & 0xff0000ff, r[64 + t + 1])
      end
    end
  end)

  it("know their lanes", function()
    local r = run("lane_ids", 1, 70, 210)
    for t = 0, 69 do
      local lane = t % 32
      assert.equal(lane, r[t * 3 + 1])
      assert.equal((1 << lane) - 1, r[t * 3 + 2])
      assert.equal(0xffffffff & ~((1 << lane) - 1), r[t * 3 + 3])
    end
  end)

  it("follow every lane's own path", function()
    local n = 999
    local xs = g.ints(n, 0, 100000)
    local kernel <close> = module:kernel "paths"
    local x <close> = tp.buffer("i32", xs)
    local o <close> = tp.buffer("i32", n)
    o:fill(-12345)
    kernel:forall(n, x, o, n)
    local r = o:read()
    for i = 1, n do
      local v, s = xs[i], 0
      for k = 0, v % 50 - 1 do
        if k % 3 == 0 then
          s = s + k
        elseif k > 40 then
          break
        else
          while math.fmod(s, 7) ~= 0 do s = wrap(s + 1, 32) end
          if s & 1 == 1 then s = wrap(s ~ v, 32) else s = wrap(s + 2, 32) end
        end
      end
      local case = v % 5
      if case == 0 then s = s + 1 end
      if case == 1 then s = s * 3 end
      if case == 1 or case == 2 then s = s - 5 end
      assert.equal(case == 3 and -12345 or wrap(s, 32), r[i])
    end
  end)

  it("synchronize in part and in whole", function()
    local r = run("syncwarp", 1, 32, 32)
    for t = 0, 31 do
      local from = 31 - t
      assert.equal(from < 16 and from * 2 or from * 3, r[t + 1])
    end
  end)

  it("recurse to different depths", function()
    local xs, expected = g.ints(64, 1, 5000), {}
    for i, n in ipairs(xs) do
      local d = 0
      while n ~= 1 do
        n = n % 2 == 1 and 3 * n + 1 or n // 2
        d = d + 1
      end
      expected[i] = d
    end
    assert.same(expected, run("recursion", 1, 64, 64, xs))
  end)

  it("meet in a shuffle at different depths of recursion", function()
    local r = run("divergent_depth", 1, 32, 32)
    for t = 0, 31 do assert.equal((t ~ 1) + (t & 3), r[t + 1]) end
  end)

  it("call through pointers and virtual tables", function()
    local r = run("function_pointers", 1, 64, 64)
    for t = 0, 63 do
      local expected = ({ [0] = t + 10, t * 10, t - 10 })[t % 3]
      assert.equal(expected, r[t + 1])
    end
    r = run("virtual_calls", 1, 64, 64)
    for t = 0, 63 do
      assert.equal(t % 2 == 1 and t * t or t * (t + 1), r[t + 1])
    end
  end)
end)

describe("progress:", function()
  it("lanes of a warp fight for a lock", function()
    local lock <close> = tp.zeros("i32", 1)
    local r = run("spin_lock", 4, 64, 1, lock)
    assert.equal(256, r[1])
  end)

  it("lane 0 waits for lane 31", function()
    local flag <close> = tp.zeros("i32", 1)
    assert.equal(5, run("wait_within_warp", 1, 32, 1, flag)[1])
  end)

  it("blocks wait for later blocks", function()
    local n = 12
    local kernel <close> = module:kernel "relay"
    local turn <close> = tp.buffer("i32", { n - 1 })
    local o <close> = tp.zeros("i32", n)
    kernel:launch({ grid = n, block = 32 }, turn, o, n)
    local r = o:read()
    for i = 0, n - 1 do assert.equal(n - 1 - i, r[i + 1]) end
  end)

  it("the last block sees what the others wrote", function()
    local xs, sum = g.ints(20 * 64, -100, 100), 0
    for _, v in ipairs(xs) do sum = sum + v end
    local part <close> = tp.zeros("i32", 20)
    for _ = 1, 3 do
      assert.equal(sum, run("last_block", 20, 64, 1, xs, part)[1])
    end
  end)
end)

describe("barriers", function()
  it("let threads leave early", function()
    local r = run("early_exit", 1, 128, 128)
    for t = 0, 127 do
      if t % 3 == 1 then
        assert.equal(0, r[t + 1])
      else
        assert.equal(128, r[t + 1])
      end
    end
  end)

  it("count, or and and", function()
    local xs, odd = g.ints(64, 6, 99), 0
    for _, v in ipairs(xs) do odd = odd + v % 2 end
    local r = run("barrier_counts", 1, 64, 192, xs)
    for t = 1, 64 do
      assert.equal(odd, r[t])
      assert.equal(0, r[64 + t])
      assert.is_true(r[128 + t] ~= 0)
    end
    xs[33] = 5
    xs[34] = 100
    r = run("barrier_counts", 1, 64, 192, xs)
    for t = 1, 64 do
      assert.is_true(r[64 + t] ~= 0)
      assert.equal(0, r[128 + t])
    end
  end)

  it("have names", function()
    local r = run("named", 1, 128, 128)
    for t = 0, 127 do assert.equal(63 - t % 64, r[t + 1]) end
  end)

  it("arrive without waiting", function()
    for _, v in ipairs(run("producer", 1, 64, 32)) do assert.equal(42, v) end
  end)

  it("meet at two places of the program, warp by warp", function()
    local r = run("two_barriers", 1, 64, 64)
    for t = 0, 63 do assert.equal(63 - t, r[t + 1]) end
  end)

  it("scan a block", function()
    local xs, sum = g.ints(512, -50, 50), 0
    local r = run("inclusive_scan", 1, 512, 512, xs)
    for i = 1, 512 do
      sum = sum + xs[i]
      assert.equal(sum, r[i])
    end
  end)
end)

describe("atomics", function()
  it("in global memory, of every kind", function()
    local n = 10 * 96
    local kernel <close> = module:kernel "atomics"
    local i <close> = tp.zeros("i32", 5)
    local u <close> = tp.buffer("u32", { 0xffffffff, 0, 0, 0, 50, 0 })
    local l <close> = tp.buffer("u64", { 0, -1000, -1, 0, 1 << 50 })
    local f <close> = tp.zeros("f32", 1)
    local d <close> = tp.zeros("f64", 1)
    kernel:launch({ grid = 10, block = 96 }, i, u, l, f, d)
    local sum = n * (n - 1) // 2
    assert.same({ sum, -sum, -(n - 1), n - 1, 2 * n }, i:read())
    local us = u:read()
    assert.equal(0, us[1])
    assert.equal(0xffffffff, us[2])
    assert.equal(0, us[3]) -- each bit flipped an even number of times
    assert.equal(n % 100, us[4])
    assert.equal((50 - n) % 100, us[5])
    assert.equal((n - 1) * 5, us[6])
    assert.same({ n << 33, n - 1 - 500, 1 << 40, -1, (1 << 50) + 3 * n },
      l:read())
    assert.same({ n * 0.5 }, f:read())
    assert.same({ n * 0.25 }, d:read())
  end)

  it("return each old value once", function()
    local n = 1024
    local counter <close> = tp.zeros("i32", 1)
    local r = run("tickets", 8, 128, n, counter)
    for i = 1, n do assert.equal(1, r[i]) end
  end)

  it("in shared memory", function()
    local r = run("shared_atomics", 1, 128, 5)
    local sums = { 0, 0, 0 }
    for t = 0, 127 do
      if t % 4 < 3 then sums[t % 4 + 1] = sums[t % 4 + 1] + t end
    end
    assert.same({ sums[1], sums[2], sums[3], 896, 384 }, r)
  end)
end)
