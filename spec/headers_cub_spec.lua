-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- CUB in kernels: the block's and the warp's algorithms, each variant of them, and
-- the agent of the device-wide reduction.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local SOURCE = [=[
#include <cub/agent/agent_reduce.cuh>
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
enum { T = 128, ITEMS = 4 };
struct Less {
  template <class X> __device__ bool operator()(X a, X b) const {
    return a < b;
  }
};
struct Max {
  __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
template <cub::BlockReduceAlgorithm A>
__device__ void reduce_with(const int *in, int *out) {
  using Reduce = cub::BlockReduce<int, T, A>;
  __shared__ typename Reduce::TempStorage t;
  int v = in[threadIdx.x];
  int sum = Reduce(t).Sum(v);
  __syncthreads();
  int most = Reduce(t).Reduce(v, Max(), 77);
  if (threadIdx.x == 0) out[0] = sum, out[1] = most;
}
template <cub::BlockScanAlgorithm A>
__device__ void scan_with(const int *in, int *out) {
  using Scan = cub::BlockScan<int, T, A>;
  __shared__ typename Scan::TempStorage t;
  int v[2] = {in[2 * threadIdx.x], in[2 * threadIdx.x + 1]}, r[2], total;
  Scan(t).ExclusiveSum(v, r, total);
  __syncthreads();
  out[2 * threadIdx.x] = r[0], out[2 * threadIdx.x + 1] = r[1];
  Scan(t).InclusiveScan(v, r, Max());
  out[2 * T + 2 * threadIdx.x] = r[0], out[2 * T + 2 * threadIdx.x + 1] = r[1];
  if (threadIdx.x == 0) out[4 * T] = total;
}
template <cub::BlockLoadAlgorithm L, cub::BlockStoreAlgorithm S>
__device__ void move_with(const int *in, int *out, int n) {
  using Load = cub::BlockLoad<int, T, ITEMS, L>;
  using Store = cub::BlockStore<int, T, ITEMS, S>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } t;
  int v[ITEMS];
  Load(t.load).Load(in, v, n, -1);
  __syncthreads();
  for (int k = 0; k < ITEMS; k++) v[k] = v[k] * 10 + k;
  Store(t.store).Store(out, v, n);
}
template <cub::BlockHistogramAlgorithm A>
__device__ void count_with(const unsigned char *in, unsigned *out) {
  using Histogram = cub::BlockHistogram<unsigned char, T, ITEMS, 256, A>;
  __shared__ typename Histogram::TempStorage t;
  __shared__ unsigned bins[256];
  unsigned char v[ITEMS];
  for (int k = 0; k < ITEMS; k++) v[k] = in[threadIdx.x * ITEMS + k];
  Histogram(t).Histogram(v, bins);
  __syncthreads();
  for (int k = threadIdx.x; k < 256; k += T) out[k] = bins[k];
}
extern "C" {
__global__ void reduce(const int *in, int *out) {
  reduce_with<cub::BLOCK_REDUCE_RAKING>(in, out);
  __syncthreads();
  reduce_with<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(in, out + 2);
  __syncthreads();
  reduce_with<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(in, out + 4);
}
__global__ void scan_raking(const int *in, int *out) {
  scan_with<cub::BLOCK_SCAN_RAKING>(in, out);
}
__global__ void scan_memoize(const int *in, int *out) {
  scan_with<cub::BLOCK_SCAN_RAKING_MEMOIZE>(in, out);
}
__global__ void scan_warps(const int *in, int *out) {
  scan_with<cub::BLOCK_SCAN_WARP_SCANS>(in, out);
}
__global__ void sort_keys(const int *in, int *out, const float *f, float *g) {
  using Sort = cub::BlockRadixSort<int, T, ITEMS>;
  using SortF = cub::BlockRadixSort<float, T, ITEMS, int>;
  __shared__ union {
    Sort::TempStorage a;
    SortF::TempStorage b;
  } t;
  int v[ITEMS], at[ITEMS];
  float w[ITEMS];
  for (int k = 0; k < ITEMS; k++) {
    int i = threadIdx.x * ITEMS + k;
    v[k] = in[i], w[k] = f[i], at[k] = i;
  }
  Sort(t.a).Sort(v);
  __syncthreads();
  SortF(t.b).SortDescending(w, at);
  for (int k = 0; k < ITEMS; k++) {
    int i = threadIdx.x * ITEMS + k;
    out[i] = v[k], g[i] = w[k], out[T * ITEMS + i] = at[k];
  }
}
__global__ void sort_merge(const long long *in, long long *out) {
  using Sort = cub::BlockMergeSort<long long, T, ITEMS>;
  __shared__ Sort::TempStorage t;
  long long v[ITEMS];
  for (int k = 0; k < ITEMS; k++) v[k] = in[threadIdx.x * ITEMS + k];
  Sort(t).Sort(v, Less());
  for (int k = 0; k < ITEMS; k++) out[threadIdx.x * ITEMS + k] = v[k];
}
__global__ void move_direct(const int *in, int *out, int n) {
  move_with<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>(in, out, n);
}
__global__ void move_striped(const int *in, int *out, int n) {
  move_with<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>(in, out, n);
}
__global__ void move_vectors(const int *in, int *out, int n) {
  move_with<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>(in, out, n);
}
__global__ void move_transposed(const int *in, int *out, int n) {
  move_with<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(in, out,
                                                                        n);
}
__global__ void histogram(const unsigned char *in, unsigned *out) {
  count_with<cub::BLOCK_HISTO_ATOMIC>(in, out);
  __syncthreads();
  count_with<cub::BLOCK_HISTO_SORT>(in, out + 256);
}
__global__ void neighbours(const int *in, int *out) {
  using Flag = cub::BlockDiscontinuity<int, T>;
  using Difference = cub::BlockAdjacentDifference<int, T>;
  using Exchange = cub::BlockExchange<int, T, ITEMS>;
  __shared__ union {
    Flag::TempStorage f;
    Difference::TempStorage d;
    Exchange::TempStorage e;
  } t;
  int v[1] = {in[threadIdx.x]}, r[1];
  bool heads[1];
  Flag(t.f).FlagHeads(heads, v, cuda::std::not_equal_to<int>());
  out[threadIdx.x] = heads[0];
  __syncthreads();
  Difference(t.d).SubtractLeft(v, r, cuda::std::minus<int>());
  out[T + threadIdx.x] = r[0];
  __syncthreads();
  int w[ITEMS];
  for (int k = 0; k < ITEMS; k++) w[k] = threadIdx.x * ITEMS + k;
  Exchange(t.e).BlockedToStriped(w, w);
  for (int k = 0; k < ITEMS; k++) out[(2 + k) * T + threadIdx.x] = w[k];
}
__global__ void warps(const int *in, int *out) {
  using Reduce = cub::WarpReduce<int, 16>;
  using Scan = cub::WarpScan<int>;
  using Sort = cub::WarpMergeSort<int, 2, 32>;
  __shared__ Reduce::TempStorage r[T / 16];
  __shared__ Scan::TempStorage s[T / 32];
  __shared__ Sort::TempStorage m[T / 32];
  int i = threadIdx.x, v = in[i];
  int sum = Reduce(r[i / 16]).Sum(v);
  if (i % 16 == 0) out[i / 16] = sum;
  int segment = Reduce(r[i / 16]).HeadSegmentedSum(v, v % 4 == 0);
  out[T + i] = i % 16 == 0 || v % 4 == 0 ? segment : 0;
  int inclusive, exclusive;
  Scan(s[i / 32]).Scan(v, inclusive, exclusive, 0, cuda::std::plus<int>());
  out[2 * T + i] = inclusive, out[3 * T + i] = exclusive;
  int two[2] = {v, -v};
  Sort(m[i / 32]).Sort(two, Less());
  out[4 * T + 2 * i] = two[0], out[4 * T + 2 * i + 1] = two[1];
}
using Policy =
    cub::AgentReducePolicy<T, ITEMS, int, 4, cub::BLOCK_REDUCE_WARP_REDUCTIONS,
                           cub::LOAD_DEFAULT>;
__global__ void agent(const int *in, long long *out, int n) {
  using Agent =
      cub::detail::reduce::AgentReduce<Policy, const int *, long long *, int,
                                       cuda::std::plus<long long>, long long>;
  __shared__ Agent::TempStorage t;
  int part = (n + gridDim.x - 1) / gridDim.x;
  part = (part + T * ITEMS - 1) / (T * ITEMS) * (T * ITEMS);
  int first = blockIdx.x * part, last = first + part < n ? first + part : n;
  if (first >= n) return;
  long long sum =
      Agent(t, in, cuda::std::plus<long long>()).ConsumeRange(first, last);
  if (threadIdx.x == 0)
    atomicAdd((unsigned long long *)out, (unsigned long long)sum);
}
}
]=]

describe("CUB:", function()
  local module
  setup(function() module = tp.compile(SOURCE, { name = "cub.cu" }) end)
  teardown(function() module:close() end)
  local g = numbers.generator(7777)
  local T, ITEMS = 128, 4

  local function run(name, in_type, xs, out_type, count, ...)
    local kernel <close> = module:kernel(name)
    local x <close> = tp.buffer(in_type, xs)
    local o <close> = tp.zeros(out_type, count)
    kernel:launch({ grid = 1, block = T }, x, o, ...)
    return o:read()
  end
  local function sorted(xs, before)
    local copy = table.move(xs, 1, #xs, 1, {})
    table.sort(copy, before)
    return copy
  end

  it("BlockReduce, of every algorithm", function()
    local xs, sum = g.ints(T, -9999, 9999), 0
    for _, x in ipairs(xs) do sum = sum + x end
    local most = math.max(table.unpack(xs, 1, 77))
    -- a reduction over the first 77 alone
    assert.same({ sum, most, sum, most, sum, most },
      run("reduce", "i32", xs, "i32", 6))
  end)

  for _, name in ipairs { "scan_raking", "scan_memoize", "scan_warps" } do
    it("BlockScan: " .. name, function()
      local xs, sum, most = g.ints(2 * T, -999, 999), 0, -math.huge
      local r = run(name, "i32", xs, "i32", 4 * T + 1)
      for i, x in ipairs(xs) do
        most = math.max(most, x)
        assert.equal(sum, r[i])
        assert.equal(most, r[2 * T + i])
        sum = sum + x
      end
      assert.equal(sum, r[4 * T + 1])
    end)
  end

  it("BlockRadixSort, of keys and of pairs", function()
    local n = T * ITEMS
    local xs, fs = g.ints(n, -1 << 31, (1 << 31) - 1), g.floats(n, -1e6, 1e6)
    local f <close> = tp.buffer("f32", fs)
    local s <close> = tp.zeros("f32", n)
    local r = run("sort_keys", "i32", xs, "i32", 2 * n, f, s)
    assert.same(sorted(xs), table.move(r, 1, n, 1, {}))
    local descending = s:read()
    assert.same(sorted(fs, function(a, b) return a > b end), descending)
    for i = 1, n do assert.equal(descending[i], fs[r[n + i] + 1]) end
  end)

  it("BlockMergeSort", function()
    local xs = g.ints(T * ITEMS, -1 << 50, 1 << 50)
    assert.same(sorted(xs), run("sort_merge", "i64", xs, "i64", T * ITEMS))
  end)

  for _, name in ipairs { "direct", "striped", "vectors", "transposed" } do
    it("BlockLoad and BlockStore: " .. name, function()
      local n = name == "vectors" and T * ITEMS or 400
      local xs = g.ints(T * ITEMS, 0, 1000000)
      local r = run("move_" .. name, "i32", xs, "i32", T * ITEMS, n)
      for i = 0, T * ITEMS - 1 do
        local k = name == "striped" and i // T or i % ITEMS
        assert.equal(i < n and xs[i + 1] * 10 + k or 0, r[i + 1])
      end
    end)
  end

  it("BlockHistogram, of both algorithms", function()
    local xs, bins = g.ints(T * ITEMS, 0, 255), {}
    for i = 1, T * ITEMS, 3 do xs[i] = 42 end
    for b = 1, 512 do bins[b] = 0 end
    for _, x in ipairs(xs) do
      bins[x + 1], bins[x + 257] = bins[x + 1] + 1, bins[x + 257] + 1
    end
    assert.same(bins, run("histogram", "u8", xs, "u32", 512))
  end)

  it("BlockDiscontinuity, BlockAdjacentDifference, BlockExchange", function()
    local xs = g.ints(T, 0, 3)
    local r = run("neighbours", "i32", xs, "i32", 6 * T)
    for i = 1, T do
      assert.equal((i == 1 or xs[i] ~= xs[i - 1]) and 1 or 0, r[i])
      assert.equal(i == 1 and xs[1] or xs[i] - xs[i - 1], r[T + i])
      for k = 0, ITEMS - 1 do assert.equal(k * T + i - 1, r[(2 + k) * T + i]) end
    end
  end)

  it("WarpReduce, WarpScan, WarpMergeSort", function()
    local xs = g.ints(T, 0, 500)
    local r = run("warps", "i32", xs, "i32", 6 * T)
    for i = 1, T do
      if i % 16 == 1 then
        local sum = 0
        for k = 0, 15 do sum = sum + xs[i + k] end
        assert.equal(sum, r[(i - 1) // 16 + 1])
      end
      local segment, k = 0, i
      if i % 16 == 1 or xs[i] % 4 == 0 then
        repeat
          segment, k = segment + xs[k], k + 1
        until k % 16 == 1 or k > T or xs[k] % 4 == 0
      end
      assert.equal(segment, r[T + i])
      local sum = 0
      for l = (i - 1) // 32 * 32 + 1, i do sum = sum + xs[l] end
      assert.equal(sum, r[2 * T + i])
      assert.equal(sum - xs[i], r[3 * T + i])
    end
    for warp = 0, T // 32 - 1 do
      local both = {}
      for i = warp * 32 + 1, warp * 32 + 32 do
        both[#both + 1], both[#both + 2] = xs[i], -xs[i]
      end
      assert.same(sorted(both), table.move(r, 4 * T + warp * 64 + 1,
        4 * T + warp * 64 + 64, 1, {}))
    end
  end)

  it("the agent of a device-wide reduction", function()
    local n, sum = 5000, 0
    local xs = g.ints(n, -1 << 31, (1 << 31) - 1)
    for _, x in ipairs(xs) do sum = sum + x end
    local kernel <close> = module:kernel "agent"
    local x <close> = tp.buffer("i32", xs)
    local o <close> = tp.zeros("i64", 1)
    kernel:launch({ grid = 4, block = T }, x, o, n)
    assert.same({ sum }, o:read())
  end)
end)
