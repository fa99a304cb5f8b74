-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Clusters: blocks that run together, their barrier, shared memory of one another,
-- bulk copies and what tells an mbarrier of them. Each case is a process of its own:
-- the simulated device must begin with compute capability 9.0.
-- luacheck: no max line length
local tp = require "tpstream"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"
local cache -- of compiles, so that one process after the other needs none

local able = simulated or tp.current_device():properties().clusters

local PRELUDE = [==[
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local g = numbers.generator(31)
local module = program("cluster", [=[
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned there(const void *p, unsigned rank) {
  unsigned d;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(at(p)), "r"(rank));
  return d;
}
__device__ void init(u64 *bar, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(bar)), "r"(n) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(u64 *bar, int bytes) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }"
    :: "r"(at(bar)), "r"(bytes) : "memory");
}
__device__ void wait(u64 *bar, int parity) {
  asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"
    " p, [%0], %1, 1000;\n@p bra D;\nbra W;\nD: }" :: "r"(at(bar)), "r"(parity) : "memory");
}
__device__ void sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
extern "C" {
__global__ void registers(int *out) {
  auto c = cg::this_cluster();
  __shared__ int s;
  unsigned rank, x, y, n, explicitly, cx, id, ids;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(x));
  asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(y));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(cx));
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(ids));
  asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }"
    : "=r"(explicitly));
  int *o = out + 12 * (blockIdx.x + gridDim.x * blockIdx.y);
  int *peer = c.map_shared_rank(&s, (rank + 1) % n);
  o[0] = rank, o[1] = x, o[2] = y, o[3] = n, o[4] = explicitly, o[5] = cx;
  o[6] = id, o[7] = ids, o[8] = c.query_shared_rank(peer), o[9] = c.query_shared_rank(&s);
  o[10] = __isShared(&s);
  asm("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p; }"
    : "=r"(o[11]) : "l"(peer));
}
// A histogram whose bins are spread over the cluster's blocks.
__global__ void histogram(const int *in, int *out, int n, int bins) {
  extern __shared__ int mine[];
  auto c = cg::this_cluster();
  int each = bins / c.num_blocks();
  for (int k = threadIdx.x; k < each; k += blockDim.x) mine[k] = 0;
  c.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(c.map_shared_rank(mine, in[i] / each) + in[i] % each, 1);
  c.sync();
  for (int k = threadIdx.x; k < each; k += blockDim.x)
    atomicAdd(&out[each * c.block_rank() + k], mine[k]);
}
// Values go round the ring of blocks, through st.shared::cluster and an mbarrier there.
__global__ void ring(const int *in, int *out, int rounds) {
  __shared__ int s[2][32];
  __shared__ u64 bar[2];
  auto c = cg::this_cluster();
  unsigned rank = c.block_rank(), n = c.num_blocks(), t = threadIdx.x, next = (rank + 1) % n;
  if (t < 2) init(&bar[t], 32);
  sync();
  int v = in[blockIdx.x * 32 + t];
  for (int r = 0; r < rounds; r++) {
    asm volatile("st.shared::cluster.u32 [%0], %1;"
      :: "r"(there(&s[r & 1][t], next)), "r"(v) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
      :: "r"(there(&bar[r & 1], next)) : "memory");
    wait(&bar[r & 1], r >> 1 & 1);
    v = s[r & 1][t] * 3 + rank;
    sync();
  }
  out[blockIdx.x * 32 + t] = v;
}
// Rank 0 copies for all; the others answer with st.async and red.async.
__global__ void spread(const int *in, int *out) {
  __shared__ __align__(16) int s[256];
  __shared__ u64 bar, back;
  __shared__ int sum, from[8];
  auto c = cg::this_cluster();
  unsigned rank = c.block_rank(), n = c.num_blocks(), t = threadIdx.x;
  if (t == 0) init(&bar, 1), init(&back, 1), sum = 0;
  sync();
  if (t == 0) {
    expect(&bar, sizeof s);
    if (rank == 0) {
      expect(&back, 8 * n);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1], %2, [%3], %4;" :: "r"(at(s)), "l"(in),
        "r"((int)sizeof s), "r"(at(&bar)), "h"((short)((1 << n) - 1)) : "memory");
    }
  }
  wait(&bar, 0);
  out[blockIdx.x * 256 + t] = s[t] + rank;
  if (t == 0) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
      :: "r"(there(&from[rank], 0)), "r"(s[rank]), "r"(there(&back, 0)) : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
      " [%0], %1, [%2];" :: "r"(there(&sum, 0)), "r"(s[100]), "r"(there(&back, 0)) : "memory");
    if (rank == 0) {
      wait(&back, 0);
      out[n * 256] = sum;
      for (int k = 0; k < n; k++) out[n * 256 + 1 + k] = from[k];
    }
  }
  sync();
}
// In by a bulk copy, on to the next block, out by a copy and by reductions.
__global__ void bulk(const int *in, int *out, int *sums, int *least) {
  __shared__ __align__(16) int s[64], d[64];
  __shared__ u64 bar;
  auto c = cg::this_cluster();
  unsigned rank = c.block_rank(), n = c.num_blocks(), t = threadIdx.x;
  if (t == 0) init(&bar, 1);
  sync();
  if (t == 0) {
    expect(&bar, sizeof s);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1], 256, [%2];" :: "r"(at(s)), "l"(in + blockIdx.x * 64), "r"(at(&bar)) : "memory");
  }
  wait(&bar, 0);
  s[t] += 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  sync();
  unsigned next = (rank + 1) % n;
  if (t == 0) {
    expect(&bar, sizeof s);
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
      " [%0], [%1], 256, [%2];" :: "r"(there(d, next)), "r"(at(s)), "r"(there(&bar, next))
      : "memory");
  }
  wait(&bar, 1);
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
      :: "l"(out + blockIdx.x * 64), "r"(at(d)) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;"
      :: "l"(sums), "r"(at(d)) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], 256;"
      :: "l"(least), "r"(at(d)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
  sync();
}
// Threads that leave early are not waited for.
__global__ void leavers(int *out) {
  if (threadIdx.x % 3 == 1 || (blockIdx.x & 1 && threadIdx.x >= 32)) return;
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
  atomicAdd(out, 1);
}
__global__ void chosen(int *out) {
  int p;
  asm volatile("{ .reg .pred P; elect.sync _|P, 0xffffffff; selp.b32 %0, 1, 0, P; }" : "=r"(p));
  asm volatile("griddepcontrol.wait;" ::: "memory");
  atomicAdd(out, p);
  asm volatile("griddepcontrol.launch_dependents;");
}
__global__ void __cluster_dims__(2, 1, 1) fixed_size(int *out) {
  out[blockIdx.x] = cg::this_cluster().num_blocks();
}
__global__ void beyond(int *out, int index, int rank) {
  __shared__ int s[32];
  auto c = cg::this_cluster();
  s[threadIdx.x] = 1;
  sync();
  if (c.block_rank() == 0)
    asm volatile("st.shared::cluster.u32 [%0], 5;" :: "r"(there(s, rank) + 4 * index) : "memory");
  sync();
  out[0] = s[0];
}
__global__ void too_late(volatile int *out) {
  __shared__ int s[32];
  auto c = cg::this_cluster();
  s[threadIdx.x] = 1;
  c.sync();
  if (c.block_rank() == 1) { if (threadIdx.x == 0) out[1] = 1; return; }
  while (!out[1]) {}
  __nanosleep(1000000);
  out[0] = c.map_shared_rank(s, 1)[threadIdx.x];
}
__global__ void alone(int *out) {
  if (cg::this_cluster().block_rank() == 0) {
    __shared__ u64 bar;
    if (threadIdx.x == 0) { init(&bar, 1); wait(&bar, 0); }
    __syncthreads();
  }
  sync();
  out[0] = 1;
}
__global__ void twice(int *out) {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;" ::: "memory");
  out[0] = 1;
}
__global__ void odd_size(const int *in, int *out, int bytes, int from) {
  __shared__ __align__(16) int s[64];
  __shared__ u64 bar;
  init(&bar, 1);
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [%0], [%1], %2, [%3];" :: "r"(at(s)), "l"(in + from), "r"(bytes), "r"(at(&bar)) : "memory");
  out[0] = s[0];
}
}
]=])
local function launch(name, shape, ...)
  module:kernel(name):launch(shape, ...)
end
local function same(expected, got)
  if #expected ~= #got then error(("%d elements, not %d"):format(#got, #expected), 2) end
  for i = 1, #expected do
    if expected[i] ~= got[i] then
      error(("element %d is %s, not %s"):format(i, got[i], expected[i]), 2)
    end
  end
end
local function try(fn, ...)
  local ok, e = pcall(fn, ...)
  if ok then ok, e = pcall(tp.default_stream().synchronize, tp.default_stream()) end
  print(ok, not ok and e.code, not ok and tostring(e))
end
]==]

-- Runs a body under several seeds, or once.
local function case(body, seeds)
  local text
  for _, seed in ipairs(simulated and seeds or { 0 }) do
    local r = run.script(PRELUDE .. body .. "\nos.exit(0, false)\n", {
      env = { TPSTREAM_SIM_CAPABILITY = "9.0", TPSTREAM_SIM_SEED = tostring(seed),
        TPSTREAM_CACHE = false, TPSTREAM_CACHE_DIR = cache },
      timeout = 100,
    })
    assert.equal(0, r.status, "seed " .. seed .. ": " .. r.stdout .. r.stderr)
    text = r.stdout
  end
  return text
end

setup(function()
  cache = os.tmpname()
  os.remove(cache)
end)
teardown(function() os.execute("rm -rf '" .. cache .. "'") end)

local SEEDS = { 0, 1, 2 }

describe("a cluster", function()
  if not able then
    pending "needs compute capability 9.0"
    return
  end

  it("tells its blocks where they are", function()
    case [[
local out = tp.zeros("i32", 12 * 8)
launch("registers", { grid = { 4, 2 }, block = 1, cluster = { 2, 2 } }, out)
local expected = {}
for y = 0, 1 do
  for x = 0, 3 do
    local rank = x % 2 + 2 * y
    table.move({ rank, x % 2, y, 4, 1, 2, x // 2, 2, (rank + 1) % 4, rank, 1, 1 },
      1, 12, #expected + 1, expected)
  end
end
same(expected, out:read())
launch("registers", { grid = 2, block = 1 }, out)
same({ 0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 2, 0, 0, 1, 1 },
  out:read(1, 24))]]
  end)

  it("counts in the shared memory of all its blocks", function()
    case([[
local n, bins = 5000, 96
for _, size in ipairs { 1, 2, 4, 8 } do
  local values, expected = g.ints(n, 0, bins - 1), {}
  for k = 1, bins do expected[k] = 0 end
  for _, v in ipairs(values) do expected[v + 1] = expected[v + 1] + 1 end
  local from, out = tp.buffer("i32", values), tp.zeros("i32", bins)
  launch("histogram", { grid = 8, block = 64, cluster = size, shared = 4 * bins },
    from, out, n, bins)
  same(expected, out:read())
end]], SEEDS)
  end)

  it("passes values round a ring", function()
    case([[
for _, size in ipairs { 2, 3, 8 } do
  local blocks, rounds = size * 2, 7
  local v = g.ints(32 * blocks, -99, 99)
  local from, out = tp.buffer("i32", v), tp.zeros("i32", 32 * blocks)
  launch("ring", { grid = blocks, block = 32, cluster = size }, from, out, rounds)
  for _ = 1, rounds do
    local next = {}
    for b = 0, blocks - 1 do
      local rank, before = b % size, b - b % size + (b - 1) % size
      for t = 1, 32 do
        next[b * 32 + t] = numbers.wrap(v[before * 32 + t] * 3 + rank, 32)
      end
    end
    v = next
  end
  same(v, out:read())
end]], SEEDS)
  end)

  it("is told of copies to many blocks, remote stores and sums", function()
    case([[
for _, n in ipairs { 2, 4, 8 } do
  local v, expected, sum = g.ints(256, -9999, 9999), {}, 0
  for b = 0, n - 1 do
    for t = 1, 256 do expected[b * 256 + t] = v[t] + b end
  end
  expected[n * 256 + 1] = v[101] * n
  for k = 1, n do expected[n * 256 + 1 + k] = v[k] end
  local from, out = tp.buffer("i32", v), tp.zeros("i32", n * 256 + 1 + n)
  launch("spread", { grid = n, block = 256, cluster = n }, from, out)
  same(expected, out:read())
end]], SEEDS)
  end)

  it("copies in bulk, in, on and out, and reduces", function()
    case([[
local n = 6
local v, expected, sums, least = g.ints(64 * n, -9999, 9999), {}, {}, {}
for t = 1, 64 do sums[t], least[t] = 5, 1 << 30 end
for b = 0, n - 1 do
  local before = b // 3 * 3 + (b - 1) % 3
  for t = 1, 64 do
    local x = v[before * 64 + t] + 1
    expected[b * 64 + t] = x
    sums[t], least[t] = sums[t] + x, math.min(least[t], x)
  end
end
local from, out = tp.buffer("i32", v), tp.zeros("i32", 64 * n)
local s, l = tp.zeros("i32", 64), tp.zeros("i32", 64)
s:fill(5) l:fill(1 << 30)
launch("bulk", { grid = n, block = 64, cluster = 3 }, from, out, s, l)
same(expected, out:read())
same(sums, s:read())
same(least, l:read())]], SEEDS)
  end)

  it("does not wait for threads that have left", function()
    case([[
local out = tp.zeros("i32", 1)
launch("leavers", { grid = 4, block = 96, cluster = 4 }, out)
same({ 2 * 64 + 2 * 21 }, out:read())]], SEEDS)
  end)

  it("of one block has elect and the control of dependent grids", function()
    case [[
local out = tp.zeros("i32", 1)
launch("chosen", { grid = 3, block = 64 }, out)
same({ 6 }, out:read())]]
  end)

  it("may be demanded by the kernel", function()
    local text = case [[
local out = tp.zeros("i32", 4)
launch("fixed_size", { grid = 4, block = 1 }, out)
same({ 2, 2, 2, 2 }, out:read())
launch("fixed_size", { grid = 4, block = 1, cluster = 2 }, out)
module:kernel "fixed_size":forall(5, out)
local many = tp.zeros("i32", 4096)
module:kernel "fixed_size":forall(100000, many)
local blocks = 0
for _, n in ipairs(many:read()) do blocks = blocks + n // 2 end
assert(blocks % 2 == 0 and blocks * 1024 >= 100000, blocks)
try(launch, "fixed_size", { grid = 3, block = 1 }, out)
try(launch, "fixed_size", { grid = 4, block = 1, cluster = 4 }, out)
try(launch, "leavers", { grid = 9, block = 1, cluster = 9 }, out)
try(launch, "leavers", { grid = 9, block = 1, cluster = 2 }, out)]]
    assert.matches("grid of 3 blocks in x is no multiple of the cluster's 2", text)
    assert.matches("cluster of 4x1x1 blocks (the kernel is made for 2x1x1)", text,
      1, true)
    assert.matches("cluster of 9 blocks in x (1 to 8)", text, 1, true)
    assert.matches("grid of 9 blocks in x is no multiple of the cluster's 2", text)
  end)
end)

describe("in a cluster", function()
  if not simulated then
    pending "what only the simulated device notices"
    return
  end

  it("shared memory of another block has its bounds", function()
    local text = case
      'try(launch, "beyond", { grid = 2, block = 32, cluster = 2 }, tp.zeros("i32", 1), 32, 1)'
    assert.matches("cudaErrorIllegalAddress", text)
    assert.matches("out of range of the 128 bytes of shared memory of block 1 of "
      .. "the cluster", text)
  end)

  it("there are so many blocks", function()
    local text = case
      'try(launch, "beyond", { grid = 2, block = 32, cluster = 2 }, tp.zeros("i32", 1), 0, 2)'
    assert.matches("shared memory of block 2 of the cluster, which has not so many "
      .. "blocks", text)
  end)

  it("the shared memory of a block that has exited is gone", function()
    local text = case
      'try(launch, "too_late", { grid = 2, block = 32, cluster = 2 }, tp.zeros("i32", 2))'
    assert.matches("shared memory of block 1 of the cluster, which has exited", text)
  end)

  it("blocks that wait for nothing are a deadlock", function()
    for _, seed in ipairs { 0, 5 } do
      local text = case(
        'try(launch, "alone", { grid = 2, block = 33, cluster = 2 }, tp.zeros("i32", 1))',
        { seed })
      assert.matches("cudaErrorLaunchFailure", text)
      assert.matches("deadlock: no thread can go on; block %(0,0,0%)", text)
      assert.matches("lanes 0x00000001 wait for the mbarrier at shared address "
        .. "0x%x+, where 1 of 1 arrivals and 0 bytes are missing", text)
      assert.matches("block %(1,0,0%).*waits at the cluster's barrier", text)
    end
  end)

  it("arriving twice is a fault", function()
    local text = case
      'try(launch, "twice", { grid = 2, block = 32, cluster = 2 }, tp.zeros("i32", 1))'
    assert.matches("the thread arrives again without having waited at the cluster's "
      .. "barrier", text)
  end)

  it("bulk copies are of whole multiples of 16 bytes", function()
    local shape = '{ grid = 1, block = 1 }, tp.zeros("i32", 64), tp.zeros("i32", 1)'
    assert.matches("bulk copy of 20 bytes %(a multiple of 16 is needed%)",
      case(('try(launch, "odd_size", %s, 20, 0)'):format(shape)))
    assert.matches("load of 32 bytes at address 0x%x+: misaligned %(a multiple of "
      .. "16 is needed%)", case(('try(launch, "odd_size", %s, 32, 1)'):format(shape)))
  end)
end)

describe("without clusters", function()
  if not simulated then return end

  it("a launch with one is refused", function()
    local r = run.script([[
local tp = require "tpstream"
local m = tp.load(".version 8.0\n.target sm_80\n.address_size 64\n"
  .. ".visible .entry k() { ret; }")
print(pcall(m:kernel "k".launch, m:kernel "k", { grid = 2, block = 1, cluster = 2 }))]],
      { env = { TPSTREAM_SIM_CAPABILITY = "8.0" } })
    assert.matches("clusters need compute capability 9.0 (this device has 8.0)",
      r.stdout, 1, true)
  end)
end)
