-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What libcu++ has for threads to agree by: cuda/atomic of every size, order and scope,
-- cuda/barrier with completions and threads that leave, semaphores, latches, and
-- pipelines with producers and consumers. spec/async_spec.lua has copies and mbarriers.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local run = require "spec.support.run"

-- ---- atomics -------------------------------------------------------------------

local ATOMICS = { [=[
#include <cuda/atomic>
using namespace cuda::std;
// Each thread has an element of its own.
template <class T, cuda::thread_scope S, memory_order order>
__device__ void sequence(T *p, const T *in, T *out, int n) {
  int t = threadIdx.x;
  cuda::atomic_ref<T, S> a(p[t]);
  T v = in[t], w = in[n + t], e = v;
  constexpr bool reads =
    order != memory_order_release && order != memory_order_acq_rel;
  out[t] = a.load(reads ? order : memory_order_seq_cst);
  out[n + t] = a.exchange(v, order);
  out[2 * n + t] = a.fetch_add(w, order);
  out[3 * n + t] = a.fetch_sub(v, order);
  out[4 * n + t] = a.fetch_xor(v, order);
  out[5 * n + t] = a.fetch_or(w, order);
  out[6 * n + t] = a.fetch_and(~v, order);
  out[7 * n + t] = a.fetch_max(v, order);
  out[8 * n + t] = a.fetch_min(w, order);
  constexpr bool writes =
    order == memory_order_relaxed || order == memory_order_release;
  a.store(v, writes ? order : memory_order_seq_cst);
  out[9 * n + t] = a.compare_exchange_strong(e, w, order);
  out[10 * n + t] = a.compare_exchange_strong(e, v, order);
  out[11 * n + t] = e;
}
]=] }

local TYPES = { { "i8", "signed char" }, { "u8", "unsigned char" }, { "i16", "short" },
  { "u16", "unsigned short" }, { "i32", "int" }, { "u32", "unsigned" },
  { "i64", "long long" }, { "u64", "unsigned long long" } }
local ORDERS = { "relaxed", "acquire", "release", "acq_rel", "seq_cst" }
local CASES = {}
local function case(kind, scope, order)
  CASES[#CASES + 1] = { kind[1], scope, order }
  ATOMICS[#ATOMICS + 1] = ([[
extern "C" __global__ void sequence%d(%s *p, const %s *in, %s *out, int n) {
  sequence<%s, cuda::thread_scope_%s, memory_order_%s>(p, in, out, n);
}
]]):format(#CASES, kind[2], kind[2], kind[2], kind[2], scope, order)
end
for i, kind in ipairs(TYPES) do
  case(kind, "device", ORDERS[i % 5 + 1])
  if kind[1] == "i32" then
    for _, order in ipairs(ORDERS) do case(kind, "system", order) end
  elseif kind[1] == "u64" then
    for _, order in ipairs(ORDERS) do case(kind, "block", order) end
  end
end
ATOMICS[#ATOMICS + 1] = [=[
// All threads at one place.
extern "C" __global__ void together(int *i, unsigned char *c, float *f, double *d) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  cuda::atomic_ref<int, cuda::thread_scope_device> a(i[0]), most(i[1]), flips(i[2]);
  cuda::atomic_ref<unsigned char> b(*c);
  cuda::atomic_ref<float> x(*f);
  cuda::atomic_ref<double> y(*d);
  a.fetch_add(t, memory_order_relaxed);
  most.fetch_max(t * 37 % 1009, memory_order_relaxed);
  flips.fetch_xor(t, memory_order_relaxed);
  b.fetch_add(3);
  x.fetch_add(t & 3);
  y.fetch_sub(t & 7);
}
// Bytes at the ends of variables, of buffers and of shared memory, which are not whole
// words.
__device__ unsigned char odd[7];
extern "C" __global__ void ends(unsigned char *bytes, short *shorts, int n) {
  extern __shared__ unsigned char d[];
  int t = threadIdx.x;
  if (t < n) d[t] = 0;
  __syncthreads();
  for (int i = 0; i < n; i++) {
    cuda::atomic_ref<unsigned char>(bytes[i]).fetch_add(1);
    cuda::atomic_ref<short>(shorts[i]).fetch_max(t);
    cuda::atomic_ref<unsigned char>(odd[i]).fetch_xor(t);
    cuda::atomic_ref<unsigned char>(d[i]).fetch_add(i);
  }
  __syncthreads();
  if (t < n) {
    bytes[t] += odd[t] + cuda::atomic_ref<unsigned char>(d[t]).exchange(9);
    cuda::atomic_ref<unsigned char>(odd[t]).store(0);
  }
}
// A lock that hands a plain variable on.
extern "C" __global__ void handed(int *lock, int *total) {
  cuda::atomic_ref<int, cuda::thread_scope_device> a(*lock);
  for (bool done = false; !done;) {
    int open = 0;
    if (a.compare_exchange_weak(open, 1, memory_order_acquire, memory_order_relaxed)) {
      *total += 1;
      a.store(0, memory_order_release);
      a.notify_one();
      done = true;
    } else {
      a.wait(1, memory_order_relaxed);
    }
  }
}
]=]

local BITS = { i8 = 8, u8 = 8, i16 = 16, u16 = 16, i32 = 32, u32 = 32, i64 = 64,
  u64 = 64 }

local function cut(kind, v)
  local bits = BITS[kind]
  if kind:sub(1, 1) == "i" then return numbers.wrap(v, bits) end
  return bits == 64 and v or v & (1 << bits) - 1
end

-- What the thread finds that has started with s, and given v and w.
local function sequence(kind, s, v, w)
  local signed, r, now = kind:sub(1, 1) == "i", {}, s
  local function less(a, b) if signed then return a < b end return math.ult(a, b) end
  local function step(new)
    r[#r + 1] = now
    now = cut(kind, new)
  end
  step(now) step(v) step(now + w) step(now - v) step(now ~ v) step(now | w)
  step(now & ~v) step(less(now, v) and v or now) step(less(w, now) and w or now)
  r[10] = 1
  r[11] = v == w and 1 or 0
  r[12] = v == w and v or w
  return r
end

describe("cuda/atomic", function()
  local module
  setup(function()
    module = program("headers_atomic", table.concat(ATOMICS),
      { stored = true, lineinfo = false })
  end)
  teardown(function() module:close() end)

  for i, x in ipairs(CASES) do
    local kind = x[1]
    it(("of %s, scope %s, %s"):format(kind, x[2], x[3]), function()
      local g, n = numbers.generator(i), 64
      local start, given = {}, {}
      for t = 1, n do start[t] = cut(kind, g.bits()) end
      for t = 1, 2 * n do given[t] = cut(kind, g.bits()) end
      given[n + 1] = given[1]
      local p <close> = tp.buffer(kind, start)
      local vw <close> = tp.buffer(kind, given)
      local o <close> = tp.zeros(kind, 12 * n)
      module:kernel("sequence" .. i):launch({ grid = 1, block = n }, p, vw, o, n)
      local r = o:read()
      for t = 1, n do
        local expected = sequence(kind, start[t], given[t], given[n + t])
        for k = 1, 12 do
          if r[(k - 1) * n + t] ~= expected[k] then
            error(("thread %d, result %d: %d, %d expected"):format(t, k,
              r[(k - 1) * n + t], expected[k]))
          end
        end
      end
    end)
  end

  -- Of bytes libcu++ reads the whole word, which memcheck minds.
  it("of all threads at one place #fault", function()
    local i <close> = tp.zeros("i32", 3)
    local c <close> = tp.zeros("u8", 1)
    local f <close> = tp.zeros("f32", 1)
    local d <close> = tp.zeros("f64", 1)
    module:kernel "together":launch({ grid = 8, block = 96 }, i, c, f, d)
    local sum, most, flips, quarter, eighth = 0, 0, 0, 0, 0
    for t = 0, 767 do
      sum, most, flips = sum + t, math.max(most, t * 37 % 1009), flips ~ t
      quarter, eighth = quarter + t % 4, eighth - t % 8
    end
    assert.same({ sum, most, flips }, i:read())
    assert.same({ 3 * 768 % 256 }, c:read())
    assert.same({ quarter }, f:read())
    assert.same({ eighth }, d:read())
  end)

  it("of bytes where memory ends in the middle of a word #fault", function()
    local bytes <close> = tp.zeros("u8", 7)
    local shorts <close> = tp.zeros("i16", 7)
    module:kernel "ends":launch({ grid = 1, block = 45, shared = 7 }, bytes,
      shorts, 7)
    local expected = {}
    for i = 0, 6 do expected[i + 1] = (45 + 44 + 45 * i) % 256 end -- 0 ~ … ~ 44 is 44
    assert.same(expected, bytes:read())
    assert.same({ 44, 44, 44, 44, 44, 44, 44 }, shorts:read())
  end)

  it("as a lock", function()
    local lock <close> = tp.zeros("i32", 1)
    local total <close> = tp.zeros("i32", 1)
    module:kernel "handed":launch({ grid = 4, block = 48 }, lock, total)
    assert.same({ 192 }, total:read())
  end)
end)

-- ---- barriers and their kin ------------------------------------------------------

local MEETINGS = [=[
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cooperative_groups.h>
struct step {
  int *turns, *sum, *seen;
  __device__ void operator()() noexcept { // by one thread, before any goes on
    seen[*turns] = *sum;
    ++*turns;
  }
};
using counted = cuda::barrier<cuda::thread_scope_block, step>;
extern "C" {
// Threads add their number, turn by turn, and leave at a turn of their own.
__global__ void leaving(int *seen, int turns) {
  __shared__ alignas(counted) char room[sizeof(counted)];
  __shared__ int turn, sum;
  auto b = reinterpret_cast<counted *>(room);
  if (threadIdx.x == 0) {
    turn = sum = 0;
    new (b) counted(blockDim.x, step{&turn, &sum, seen});
  }
  __syncthreads();
  for (int i = 0; i < turns; i++) {
    atomicAdd(&sum, threadIdx.x);
    if (threadIdx.x > 0 && threadIdx.x % turns == i) {
      b->arrive_and_drop();
      return;
    }
    b->arrive_and_wait();
  }
}
// Blocks pass a counter on by a barrier in global memory.
__global__ void across(cuda::barrier<cuda::thread_scope_device> *b, int *ready,
                       int *slots, int *out, int turns) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      init(b, gridDim.x);
      cuda::atomic_ref<int, cuda::thread_scope_device>(*ready).store(1);
    } else {
      while (!cuda::atomic_ref<int, cuda::thread_scope_device>(*ready).load()) {}
    }
    int mine = blockIdx.x + 1, n = gridDim.x;
    for (int i = 0; i < turns; i++) {
      slots[(i & 1) * n + blockIdx.x] = mine;
      b->arrive_and_wait();
      mine += slots[(i & 1) * n + (blockIdx.x + 1) % n];
    }
    out[blockIdx.x] = mine;
  }
}
// At the most `places` threads at once.
__global__ void places(cuda::counting_semaphore<cuda::thread_scope_device, 8> *s,
                       int *inside, int *most, int *done) {
  s->acquire();
  atomicMax(most, atomicAdd(inside, 1) + 1);
  __nanosleep(50);
  atomicSub(inside, 1);
  s->release();
  atomicAdd(done, 1);
}
__global__ void open_places(cuda::counting_semaphore<cuda::thread_scope_device, 8> *s,
                            int places, int *tried) {
  new (s) cuda::counting_semaphore<cuda::thread_scope_device, 8>(places);
  *tried = 0;
  while (s->try_acquire()) ++*tried;
  s->release(places);
}
// The last warp waits for what all others have counted down.
__global__ void countdown(const int *in, int *out) {
  using latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(latch) char room[sizeof(latch)];
  __shared__ int sum;
  auto l = reinterpret_cast<latch *>(room);
  if (threadIdx.x == 0) {
    new (l) latch(blockDim.x - 32);
    sum = 0;
  }
  __syncthreads();
  if (threadIdx.x < blockDim.x - 32) {
    atomicAdd(&sum, in[threadIdx.x]);
    l->count_down();
  } else {
    l->wait();
    out[threadIdx.x - (blockDim.x - 32)] = l->try_wait() ? sum : -1;
  }
}
// One warp copies, the others add up: three stages.
__global__ void stages(const int4 *in, int *out, int tiles) {
  constexpr int DEPTH = 3, WIDTH = 64;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, DEPTH> state;
  __shared__ int4 room[DEPTH][WIDTH];
  auto block = cooperative_groups::this_thread_block();
  bool produces = threadIdx.x < 32;
  auto pipe = cuda::make_pipeline(block, &state,
    produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int sum = 0;
  for (int k = 0; k < tiles; k++)
    if (produces) {
      pipe.producer_acquire();
      for (int i = threadIdx.x; i < WIDTH; i += 32)
        cuda::memcpy_async(&room[k % DEPTH][i], in + k * WIDTH + i,
                           cuda::aligned_size_t<16>(16), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      int4 v = room[k % DEPTH][(threadIdx.x * 7 + k) % WIDTH];
      sum = sum * 3 + v.x + v.y * 5 - v.z + v.w;
      pipe.consumer_release();
    }
  if (!produces) out[threadIdx.x - 32] = sum;
}
}
]=]

describe("libcu++'s", function()
  local module
  setup(function()
    module = program("headers_meetings", MEETINGS,
      { stored = true, lineinfo = false })
  end)
  teardown(function() module:close() end)

  it("barriers run their completion once a phase, with whoever is left", function()
    local threads, turns = 96, 7
    local seen <close> = tp.zeros("i32", turns)
    module:kernel "leaving":launch({ grid = 1, block = threads }, seen, turns)
    local expected, sum = {}, 0
    for i = 0, turns - 1 do
      for t = 0, threads - 1 do
        if t == 0 or t % turns >= i then sum = sum + t end
      end
      expected[i + 1] = sum
    end
    assert.same(expected, seen:read())
  end)

  it("barriers hold blocks together", function()
    local blocks, turns = 6, 9
    local b <close> = tp.zeros("u8", 64)
    local ready <close> = tp.zeros("i32", 1)
    local slots <close> = tp.zeros("i32", 2 * blocks)
    local out <close> = tp.zeros("i32", blocks)
    module:kernel "across":launch({ grid = blocks, block = 32, cooperative = true }, b,
      ready, slots, out, turns)
    local now = {}
    for i = 1, blocks do now[i] = i end
    for _ = 1, turns do
      local after = {}
      for i = 1, blocks do after[i] = now[i] + now[i % blocks + 1] end
      now = after
    end
    assert.same(now, out:read())
  end)

  it("semaphores let so many in", function()
    local s <close> = tp.zeros("u8", 64)
    local c <close> = tp.zeros("i32", 4)
    local inside, most, done, tried = c:slice(1, 1), c:slice(2, 1), c:slice(3, 1),
      c:slice(4, 1)
    module:kernel "open_places":launch({ grid = 1, block = 1 }, s, 5, tried)
    module:kernel "places":launch({ grid = 4, block = 64 }, s, inside, most, done)
    local r = c:read()
    assert.equal(0, r[1])
    assert.is_true(r[2] >= 1 and r[2] <= 5, tostring(r[2]))
    assert.equal(256, r[3])
    assert.equal(5, r[4])
  end)

  it("latches open when all have counted down", function()
    local x = numbers.generator(3).ints(128, -100, 100)
    local b <close> = tp.buffer("i32", x)
    local out <close> = tp.zeros("i32", 32)
    module:kernel "countdown":launch({ grid = 1, block = 128 }, b, out)
    local sum, expected = 0, {}
    for i = 1, 96 do sum = sum + x[i] end
    for i = 1, 32 do expected[i] = sum end
    assert.same(expected, out:read())
  end)

  it("pipelines keep producers and consumers apart", function()
    local tiles, width = 11, 64
    local x = numbers.generator(4).ints(4 * tiles * width, -1000, 1000)
    local b <close> = tp.buffer("i32", x)
    local out <close> = tp.zeros("i32", 96)
    module:kernel "stages":launch({ grid = 1, block = 128 }, b, out, tiles)
    local expected = {}
    for t = 32, 127 do
      local sum = 0
      for k = 0, tiles - 1 do
        local at = 4 * (k * width + (t * 7 + k) % width)
        sum = numbers.wrap(sum * 3 + x[at + 1] + x[at + 2] * 5 - x[at + 3] + x[at + 4],
          32)
      end
      expected[t - 31] = sum
    end
    assert.same(expected, out:read())
  end)
end)

describe("a grid's synchronization that some block leaves out", function()
  it("is told at once", function()
    if tp.current_device():kind() ~= "sim" then return end
    local SCRIPT = [==[
      local tp = require "tpstream"
      local module = require "spec.support.program"("headers_grid", [[
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void leaving(int *o, int turns) {
  for (int i = 0; i < turns; i++) {
    o[blockIdx.x * blockDim.x + threadIdx.x]++;
    if (i == 3 && blockIdx.x == 2) return;
    cg::this_grid().sync();
  }
}]], { stored = true })
      local o <close> = tp.zeros("i32", 4096)
      local function run(grid, block, turns)
        module:kernel "leaving":launch({ grid = grid, block = block,
          cooperative = true }, o, turns)
        print(select(2, pcall(o.read, o)))
      end
      run(6, 64, 3)
      run(40, 1, 3)
      run(2, 32, 9)
      run(%d, %d, 9)
    ]==]
    for _, shape in ipairs { { 6, 64 }, { 3, 1 }, { 17, 96 } } do
      local r = run.script(SCRIPT:format(shape[1], shape[2]))
      assert.equal(3, select(2, r.stdout:gsub("table: ", "")), r.stdout .. r.stderr)
      assert.is_truthy(r.stdout:find(", program.cu:7 via cooperative_groups/details/"
        .. "sync.h:", 1, true), r.stdout)
      assert.is_truthy(r.stdout:find(("deadlock: no thread can go on; %d of %d blocks "
        .. "wait for the whole grid, the others have ended"):format(shape[1] - 1,
        shape[1]), 1, true), r.stdout)
    end
  end)
end)

-- The lines that matter are the program's, not the library's.
describe("a deadlock at libcu++'s barrier", function()
  it("is told where the program waits", function()
    if tp.current_device():kind() ~= "sim" then return end
    local r = run.script([==[
      local tp = require "tpstream"
      local module = require "spec.support.program"("headers_deadlock", [[
#include <cuda/barrier>
extern "C" __global__ void meet(int *o) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  if (threadIdx.x == 0) init(&b, blockDim.x + 1);
  __syncthreads();
  b.arrive_and_wait();
  o[0] = 1;
}]], { stored = true })
      local o <close> = tp.zeros("i32", 1)
      module:kernel "meet":launch({ grid = 1, block = 32 }, o)
      print(select(2, pcall(o.read, o)))
    ]==], { env = { TPSTREAM_SIM_SEED = false } })
    assert.is_truthy(r.stdout:find("deadlock: no thread can go on; warp 0, lanes "
      .. "0xffffffff wait for the mbarrier at shared address 0x0, where 1 of 33 "
      .. "arrivals and 0 bytes are missing (program.cu:6 via cccl/cuda/__barrier/", 1,
      true), r.stdout .. r.stderr)
  end)
end)
