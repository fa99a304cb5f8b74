-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What CUDA C++ promises besides arithmetic: operations of a warp on part of it,
-- barriers that reduce, calls through pointers of every kind, objects and memory made
-- on the device, parameters in memory, clocks. spec/warp_spec.lua has the common
-- cases, spec/print_spec.lua what kernels print.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local run = require "spec.support.run"
local wrap = numbers.wrap
local SOURCE = [=[
extern "C" {
// Lanes of each of four masks, each mask by a path of its own.
__global__ void partial(const int *in, const unsigned *masks, int *o) {
  int t = threadIdx.x, v = in[t], which = 0;
  while (!(masks[which] >> t & 1)) which++;
  unsigned m = masks[which];
  int r[9];
  if (which == 0) {
    r[0] = __shfl_sync(m, v, 31 - __clz(m)), r[1] = __any_sync(m, v > 50),
    r[2] = __all_sync(m, v < 90);
    r[3] = __ballot_sync(m, v & 1), r[4] = __match_any_sync(m, v & 3),
    r[5] = __reduce_add_sync(m, v);
    r[6] = __reduce_max_sync(m, v), r[7] = __reduce_xor_sync(m, (unsigned)v);
  } else if (which == 1) {
    r[0] = __shfl_sync(m, v, 31 - __clz(m)), r[1] = __any_sync(m, v > 50),
    r[2] = __all_sync(m, v < 90);
    r[3] = __ballot_sync(m, v & 1), r[4] = __match_any_sync(m, v & 3),
    r[5] = __reduce_add_sync(m, v);
    r[6] = __reduce_max_sync(m, v), r[7] = __reduce_xor_sync(m, (unsigned)v);
  } else {
    r[0] = __shfl_sync(m, v, 31 - __clz(m)), r[1] = __any_sync(m, v > 50),
    r[2] = __all_sync(m, v < 90);
    r[3] = __ballot_sync(m, v & 1), r[4] = __match_any_sync(m, v & 3),
    r[5] = __reduce_add_sync(m, v);
    r[6] = __reduce_max_sync(m, v), r[7] = __reduce_xor_sync(m, (unsigned)v);
  }
  int all;
  unsigned same = __match_all_sync(m, v / 200, &all);
  r[8] = same == m && all;
  __syncwarp(m);
  for (int k = 0; k < 9; k++) o[k * 32 + t] = r[k];
}
__global__ void reductions(const int *in, int *o) {
  int t = threadIdx.x;
  unsigned m = t % 3 == 0   ? 0x49249249u
               : t % 3 == 1 ? 0x92492492u
                            : 0x24924924u;
  o[t] = __reduce_min_sync(m, in[t]);
  o[32 + t] = __reduce_max_sync(m, in[t]);
  o[64 + t] = __reduce_min_sync(m, (unsigned)in[t]);
  o[96 + t] = __reduce_max_sync(m, (unsigned)in[t]);
  o[128 + t] = __reduce_and_sync(m, (unsigned)in[t]);
  o[160 + t] = __reduce_or_sync(m, (unsigned)in[t]);
}
// An operation that lanes reach in different turns of a loop.
__global__ void staggered(const int *in, int *o) {
  int t = threadIdx.x, left = in[t], sum = 0;
  while (true) {
    unsigned active = __ballot_sync(~0u, left > 0);
    if (!active) break;
    if (left > 0) {
      sum += __popc(__activemask() & active);
      left--;
    }
  }
  o[t] = sum;
}
__global__ void types(const long long *l, const double *d, long long *ol,
                      double *od) {
  int t = threadIdx.x;
  ol[t] = __shfl_xor_sync(~0u, l[t], 5);
  od[t] = __shfl_down_sync(~0u, d[t], 3, 8);
  ol[32 + t] = __match_any_sync(~0u, l[t] >> 60);
}
__global__ void barrier_reductions(const int *in, int *o, int n) {
  int t = threadIdx.x, p = in[t] & 1, q = in[t] & 6;
  unsigned a, b, c;
  // the two halves of the block at barriers of their own
  int id = t < n ? 4 : 5, count = t < n ? n : blockDim.x - n;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.s32 p, %3, 0; setp.ne.s32 q, %4, 0;\n"
      "barrier.red.popc.u32 %0, %5, %6, p;\n"
      "barrier.red.and.pred q, %5, %6, q; selp.u32 %1, 1, 0, q;\n"
      "barrier.red.or.pred q, %5, %6, !p; selp.u32 %2, 1, 0, q; }"
      : "=r"(a), "=r"(b), "=r"(c)
      : "r"(p), "r"(q), "r"(id), "r"(count)
      : "memory");
  o[t] = a * 100 + b * 10 + c;
}
struct Big {
  int a[16];
};
__device__ __noinline__ int pick(Big s, int i) { return s.a[i & 15]; }
__device__ __noinline__ int pick_by(const Big &s, int i) { return s.a[i & 15]; }
__device__ __noinline__ Big make(int k) {
  Big s;
  for (int i = 0; i < 16; i++) s.a[i] = i * k;
  return s;
}
__global__ void structs(const Big s, int *o, int n) {
  int t = threadIdx.x;
  const int *p = t & 1 ? s.a : s.a + 4;
  o[t] = pick(s, t) + pick(make(t), 3);
  o[n + t] = p[t & 7] * 100 + s.a[t * 7 & 15];
}
__global__ void in_place(const __grid_constant__ Big s, int *o, int n) {
  int t = threadIdx.x;
  const int *p = &s.a[t & 7];
  o[t] = pick_by(s, t * 3) * 1000 + p[t & 3];
}
__global__ void clocks(unsigned long long *o) {
  unsigned long long a = clock64(), g0, g1;
  unsigned c = clock();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g0));
  __nanosleep(2000);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g1));
  unsigned d = clock();
  unsigned long long b = clock64();
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  o[3 * t] = b - a, o[3 * t + 1] = g1 - g0, o[3 * t + 2] = d - c;
}
}
// Calls
__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ bool is_odd(int n);
__device__ __noinline__ bool is_even(int n) { return n == 0 || is_odd(n - 1); }
__device__ __noinline__ bool is_odd(int n) { return n != 0 && is_even(n - 1); }
__device__ __noinline__ int sum_array(int depth, int seed) {
  int a[8];
  for (int i = 0; i < 8; i++) a[i] = seed + i * depth;
  if (depth == 0) return a[seed & 7];
  int below = sum_array(depth - 1, seed + 1);
  return a[(seed + depth) & 7] + below;
}
extern "C" __global__ void recursion(int *o, int n) {
  int t = threadIdx.x;
  o[t] = ackermann(2, t % 3);
  o[n + t] = is_even(t % 8) + 2 * is_odd(t % 8);
  o[2 * n + t] = sum_array(t % 4, t);
}
struct Base {
  int k;
  __device__ Base(int k) : k(k) {}
  __device__ virtual int f(int x) { return x + k; }
  __device__ virtual ~Base() {}
};
__device__ int destroyed;
struct Derived : Base {
  int *more;
  __device__ Derived(int k) : Base(k), more(new int[k + 1]) {
    for (int i = 0; i <= k; i++) more[i] = i * i;
  }
  __device__ int f(int x) override { return x * more[k]; }
  __device__ ~Derived() override {
    delete[] more;
    atomicAdd(&destroyed, 1);
  }
};
typedef int (*function)(int);
__device__ __noinline__ int f_next(int x) { return x + 1; }
__device__ __noinline__ int f_double(int x) { return x * 2; }
__device__ __noinline__ int f_square(int x) { return x * x; }
__device__ function chosen = f_next;
extern "C" {
__global__ void make_objects(Base **objects, function *functions) {
  int t = threadIdx.x;
  objects[t] = t & 1 ? new Derived(t) : new Base(t);
  functions[t] = t % 3 == 0 ? f_next : t % 3 == 1 ? f_double : f_square;
  if (t == 0) chosen = f_square;
}
__global__ void use_objects(Base **objects, function *functions, int *o,
                            int n) {
  int t = threadIdx.x;
  o[t] = objects[t]->f(7);
  o[n + t] = functions[t](t);
  o[2 * n + t] = chosen(t);
}
__global__ void end_objects(Base **objects, int *o) {
  delete objects[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) *o = destroyed;
}
// The heap
__global__ void allocate(int **p, int n) {
  int t = threadIdx.x;
  p[t] = (int *)malloc((t + 1) * sizeof(int));
  for (int i = 0; i <= t; i++) p[t][i] = t * 1000 + i;
}
__global__ void check(int **p, int *o, int n) {
  int t = threadIdx.x, good = 0;
  int *mine = p[n - 1 - t];
  for (int i = 0; i <= n - 1 - t; i++)
    good += mine[i] == (n - 1 - t) * 1000 + i;
  o[t] = good * 2 + ((unsigned long long)mine % 16 == 0);
  free(mine);
  free(nullptr);
}
// Allocates until the heap is used up, gives it back, and does it again.
__global__ void exhaust(unsigned long long *o) {
  for (int round = 0; round < 2; round++) {
    void **list = nullptr;
    unsigned long long count = 0;
    while (void **p = (void **)malloc(1 << 16)) {
      *p = list, list = p, count++;
      if (count > 100000) break;
    }
    o[round] = count;
    while (list) {
      void **next = (void **)*list;
      free(list);
      list = next;
    }
  }
  o[2] = malloc(1ull << 40) == nullptr;
}
__global__ void nothing_at_all(int *o) { *o = malloc(0) != nullptr; }
__global__ void free_wrong(int *p) { free(p); }
__global__ void free_twice() {
  void *p = malloc(64);
  free(p);
  free(p);
}
}
]=]

local module
setup(function() module = program("semantics", SOURCE) end)
teardown(function() module:close() end)
local g = numbers.generator(303)

local function launch(name, block, ...)
  local kernel <close> = module:kernel(name)
  kernel:launch({ grid = 1, block = block }, ...)
end

describe("part of a warp", function()
  it("shuffles, votes, matches and reduces", function()
    local xs, masks, which = g.ints(32, 0, 99), { 0, 0, 0, 0 }, {}
    for t = 0, 31 do
      which[t] = g.int(1, 4)
      masks[which[t]] = masks[which[t]] | 1 << t
    end
    for k = 1, 4 do assert.is_true(masks[k] ~= 0) end
    local x <close> = tp.buffer("i32", xs)
    local m <close> = tp.buffer("u32", masks)
    local o <close> = tp.zeros("i32", 9 * 32)
    launch("partial", 32, x, m, o)
    local r = o:read()
    for t = 0, 31 do
      local last, any, all, odd, alike, sum = nil, 0, 1, 0, 0, 0
      local most, x_or = -1, 0
      for l = 0, 31 do
        if which[l] == which[t] then
          local v = xs[l + 1]
          last = v
          if v > 50 then any = 1 end
          if v >= 90 then all = 0 end
          odd = odd | (v & 1) << l
          if v & 3 == xs[t + 1] & 3 then alike = alike | 1 << l end
          sum, most, x_or = sum + v, math.max(most, v), x_or ~ v
        end
      end
      for k, e in ipairs { last, any, all, wrap(odd, 32), wrap(alike, 32), sum, most,
        x_or, 1 } do
        assert.equal(e, r[(k - 1) * 32 + t + 1], ("row %d, lane %d"):format(k, t))
      end
    end
  end)

  it("reduces in every way", function()
    local xs = g.ints(32, -1 << 31, (1 << 31) - 1)
    local x <close> = tp.buffer("i32", xs)
    local o <close> = tp.zeros("i32", 6 * 32)
    launch("reductions", 32, x, o)
    local r = o:read()
    for t = 0, 31 do
      local least, most = math.huge, -math.huge
      local uleast, umost, all, some = math.huge, -1, -1, 0
      for l = t % 3, 31, 3 do
        local v = xs[l + 1]
        local u = v & 0xffffffff
        least, most = math.min(least, v), math.max(most, v)
        uleast, umost = math.min(uleast, u), math.max(umost, u)
        all, some = all & v, some | v
      end
      for k, e in ipairs { least, most, wrap(uleast, 32), wrap(umost, 32), all,
        some } do
        assert.equal(e, r[(k - 1) * 32 + t + 1])
      end
    end
  end)

  it("comes and goes in a loop", function()
    local xs = g.ints(32, 0, 20)
    local x <close> = tp.buffer("i32", xs)
    local o <close> = tp.zeros("i32", 32)
    launch("staggered", 32, x, o)
    for i, v in ipairs(o:read()) do
      -- __activemask tells at least the lane itself
      assert.is_true(v >= xs[i] and v <= 32 * xs[i])
    end
  end)

  it("moves 64-bit values", function()
    local ls = g.ints(32, math.mininteger // 2, math.maxinteger // 2)
    local ds = g.reals(32, -1, 1)
    local l <close> = tp.buffer("i64", ls)
    local d <close> = tp.buffer("f64", ds)
    local ol <close> = tp.zeros("i64", 64)
    local od <close> = tp.zeros("f64", 32)
    launch("types", 32, l, d, ol, od)
    local rl, rd = ol:read(), od:read()
    for t = 0, 31 do
      assert.equal(ls[(t ~ 5) + 1], rl[t + 1])
      assert.equal(ds[(t % 8 + 3 < 8 and t + 3 or t) + 1], rd[t + 1])
      local alike = 0
      for k = 0, 31 do
        if ls[k + 1] >> 60 == ls[t + 1] >> 60 then alike = alike | 1 << k end
      end
      assert.equal(alike, rl[32 + t + 1])
    end
  end)
end)

it("barriers reduce, two at a time", function()
  local n, block = 96, 224
  local xs = g.ints(block, 0, 7)
  for i = 1, n do xs[i] = xs[i] | 2 end -- so that the first half's "and" is true
  local x <close> = tp.buffer("i32", xs)
  local o <close> = tp.zeros("i32", block)
  launch("barrier_reductions", block, x, o, n)
  local r = o:read()
  for first, last in pairs { [1] = n, [n + 1] = block } do
    local odd, all, some = 0, 1, 0
    for i = first, last do
      odd = odd + xs[i] % 2
      if xs[i] & 6 == 0 then all = 0 end
      if xs[i] % 2 == 0 then some = 1 end
    end
    for i = first, last do assert.equal(odd * 100 + all * 10 + some, r[i]) end
  end
end)

describe("parameters", function()
  local xs = g.ints(16, 0, 99)
  local packed = string.pack("<" .. ("i4"):rep(16), table.unpack(xs))

  it("that are structs, by value, returned, and by a pointer into them", function()
    local n = 64
    local o <close> = tp.zeros("i32", 2 * n)
    launch("structs", n, packed, o, n)
    local r = o:read()
    for t = 0, n - 1 do
      assert.equal(xs[t % 16 + 1] + 3 * t, r[t + 1])
      local from = t % 2 == 1 and 0 or 4
      assert.equal(xs[from + t % 8 + 1] * 100 + xs[t * 7 % 16 + 1], r[n + t + 1])
    end
  end)

  it("that stay where they are", function()
    local n = 64
    local o <close> = tp.zeros("i32", n)
    launch("in_place", n, packed, o, n)
    for i, v in ipairs(o:read()) do
      local t = i - 1
      assert.equal(xs[t * 3 % 16 + 1] * 1000 + xs[t % 8 + t % 4 + 1], v)
    end
  end)
end)

describe("calls", function()
  it("recurse, also by turns and with arrays of their own", function()
    local n = 64
    local o <close> = tp.zeros("i32", 3 * n)
    launch("recursion", n, o, n)
    local r = o:read()
    local function sum_array(depth, seed)
      local function a(i) return seed + i * depth end
      if depth == 0 then return a(seed & 7) end
      return a(seed + depth & 7) + sum_array(depth - 1, seed + 1)
    end
    for t = 0, n - 1 do
      assert.equal(2 * (t % 3) + 3, r[t + 1])
      assert.equal(t % 2 == 0 and 1 or 2, r[n + t + 1])
      assert.equal(sum_array(t % 4, t), r[2 * n + t + 1])
    end
  end)

  it("reach objects and functions that an earlier kernel chose", function()
    local n = 64
    local objects <close> = tp.zeros("u64", n)
    local functions <close> = tp.zeros("u64", n)
    local o <close> = tp.zeros("i32", 3 * n)
    launch("make_objects", n, objects, functions)
    launch("use_objects", n, objects, functions, o, n)
    local r = o:read()
    for t = 0, n - 1 do
      assert.equal(t % 2 == 1 and 7 * t * t or 7 + t, r[t + 1])
      assert.equal(({ [0] = t + 1, t * 2, t * t })[t % 3], r[n + t + 1])
      assert.equal(t * t, r[2 * n + t + 1])
    end
    local count <close> = tp.zeros("i32", 1)
    launch("end_objects", n, objects, count)
    assert.same({ n // 2 }, count:read())
  end)
end)

describe("the device's heap", function()
  it("outlives the kernel that filled it", function()
    local n = 100
    local p <close> = tp.zeros("u64", n)
    local o <close> = tp.zeros("i32", n)
    for _ = 1, 3 do
      launch("allocate", n, p, n)
      launch("check", n, p, o, n)
      for i, v in ipairs(o:read()) do assert.equal((n + 1 - i) * 2 + 1, v) end
    end
  end)

  it("gives null when it is used up", function()
    local o <close> = tp.zeros("u64", 3)
    launch("exhaust", 1, o)
    local r = o:read()
    -- 8 MiB, less what the allocator itself needs
    assert.is_true(r[1] >= 64 and r[1] <= 128, r[1])
    assert.is_true(math.abs(r[2] - r[1]) <= 1)
    assert.equal(1, r[3])
  end)

  -- memcheck warns of it
  it("gives a place for no byte #fault", function()
    local o <close> = tp.zeros("i32", 1)
    launch("nothing_at_all", 1, o)
    assert.same({ 1 }, o:read())
  end)

  -- The codes are an H200's; the simulated device says what it was.
  for name, expected in pairs {
    free_wrong = { "cudaErrorIllegalAddress", "which malloc has not returned" },
    free_twice = { "cudaErrorLaunchFailure", "which was freed before" },
  } do
    it("tells a wrong free: " .. name .. " #fault", function()
      local r = run.script(([[
local tp = require "tpstream"
local kept <close> = assert(io.open "spec/ptx/semantics.ptx")
local module = tp.load(kept:read "a")
local kernel = module:kernel "%s"
local b = tp.zeros("i32", 4)
if kernel:params()[1] then kernel:launch({ grid = 1, block = 1 }, b)
else kernel:launch({ grid = 1, block = 1 }) end
local ok, e = pcall(function() tp.current_stream():synchronize() end)
print(ok, e and e.code, e and e.message)
]]):format(name))
      assert.matches("^false\t" .. expected[1], r.stdout, r.stderr)
      if tp.current_device():kind() == "sim" then
        assert.matches(name, r.stdout)
        assert.matches(expected[2], r.stdout)
      end
    end)
  end
end)

it("clocks go on", function()
  local kernel <close> = module:kernel "clocks"
  local o <close> = tp.zeros("u64", 3 * 64)
  kernel:launch({ grid = 2, block = 32 }, o)
  local r = o:read()
  for t = 0, 63 do
    assert.is_true(r[3 * t + 1] > 0 and r[3 * t + 1] < 1 << 40)
    assert.is_true(r[3 * t + 2] >= 0 and r[3 * t + 2] < 1 << 40)
    assert.is_true(r[3 * t + 3] > 0)
  end
end)
