-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/checking.md, the race check: programs that synchronize by what the toolkit's
-- headers have for it are right, and nothing is said of them.
local tp = require "tpstream"
local checking = require "spec.support.checking"
local program = require "spec.support.program"

local SOURCE = [=[
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/functional>
namespace cg = cooperative_groups;
extern "C" {
__global__ void partitions(int *o) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ int s[128];
  int t = block.thread_rank(), v = 0;
  auto part = cg::binary_partition(warp, t % 3 == 0);
  s[t] = part.thread_rank();
  part.sync();
  if (t % 3 == 0) {
    auto here = cg::coalesced_threads();
    s[t] += here.size();
    here.sync();
    v = here.shfl(s[t], 0);
  }
  block.sync();
  o[t] = s[t * 7 % 128] + v;
}
__global__ void stages(int *o, const int *x, int n) {
  auto block = cg::this_thread_block();
  __shared__ int s[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto p = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int k = 0, ahead = 0; k < n; k++) {
    for (; ahead < n && ahead < k + 2; ahead++) {
      p.producer_acquire();
      cuda::memcpy_async(block, s[ahead % 2], x + ahead * 128, sizeof *s, p);
      p.producer_commit();
    }
    p.consumer_wait();
    sum += s[k % 2][127 - block.thread_rank()];
    p.consumer_release();
  }
  o[block.thread_rank()] = sum;
}
__global__ void copies(int *o, const int *x, int n) {
  auto block = cg::this_thread_block();
  __shared__ int s[128];
  int sum = 0;
  for (int k = 0; k < n; k++) {
    cg::memcpy_async(block, s, x + k * 128, sizeof s);
    cg::wait(block);
    sum += s[127 - block.thread_rank()];
    block.sync();
  }
  o[block.thread_rank()] = sum;
}
__global__ void phases(int *o) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  for (int k = 0; k < 5; k++) {
    s[t] = k * t;
    auto token = b.arrive();
    b.wait(std::move(token));
    int v = s[127 - t];
    b.arrive_and_wait();
    o[t] += v;
  }
}
__global__ void rounds(int *o, int n) {
  auto grid = cg::this_grid();
  int t = grid.thread_rank(), all = grid.size();
  for (int k = 0; k < n; k++) {
    int v = o[(t + 77) % all];
    grid.sync();
    o[t] = v + k;
    grid.sync();
  }
}
// Tiles of several warps meet in memory that is not the kernel's.
__global__ void large_tiles(int *o) {
  __shared__ int s[128];
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  int t = threadIdx.x;
  s[t] = t;
  tile.sync();
  int v = s[t ^ 33];
  int sum = cg::reduce(tile, v, cg::plus<int>());
  s[t] = sum + v;
  tile.sync();
  o[t] = s[t ^ 63];
}
__global__ void lock(int *o, int *word) {
  cuda::atomic_ref<int, cuda::thread_scope_device> l(*word);
  if (threadIdx.x != 0) return;
  while (l.exchange(1, cuda::memory_order_acquire)) l.wait(1);
  o[0]++;
  l.store(0, cuda::memory_order_release);
  l.notify_one();
}
}
using State = cub::ScanTileState<int>;
using Before = cub::TilePrefixCallbackOp<int, cuda::std::plus<int>, State>;
extern "C" __global__ void clear(void *memory, int tiles) {
  State state;
  state.Init(tiles, memory, 0);
  state.InitializeStatus(tiles);
}
// A scan in one pass, by decoupled look-back.
extern "C" __global__ void look_back(int *o, const int *x, void *memory,
                                     int tiles, unsigned *next) {
  using Scan = cub::BlockScan<int, 128>;
  using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ union {
    Load::TempStorage load;
    Store::TempStorage store;
    struct {
      Scan::TempStorage scan;
      Before::TempStorage before;
    } s;
  } u;
  __shared__ int mine;
  State state;
  state.Init(tiles, memory, 0);
  if (threadIdx.x == 0) mine = atomicAdd(next, 1u);
  __syncthreads();
  int tile = mine, v[4];
  Load(u.load).Load(x + tile * 512, v);
  __syncthreads();
  if (tile == 0) {
    int total;
    Scan(u.s.scan).InclusiveSum(v, v, total);
    if (threadIdx.x == 0) state.SetInclusive(0, total);
  } else {
    Before before(state, u.s.before, cuda::std::plus<int>(), tile);
    Scan(u.s.scan).InclusiveSum(v, v, before);
  }
  __syncthreads();
  Store(u.store).Store(o + tile * 512, v);
}
]=]

describe("no race is seen", function()
  local module
  require "spec.support.simulated"(setup, teardown)
  setup(function()
    module = program("check_race_headers", SOURCE,
      { std = "c++17", stored = true })
  end)
  teardown(function() module:close() end)

  local function quiet(name, shape, elements, ...)
    local arguments = table.pack(...)
    local o <close> = tp.zeros("i32", elements)
    local reports = checking.found({ "race" }, function()
      module:kernel(name):launch(shape, o, table.unpack(arguments))
    end)
    assert.equal("", reports[1] and reports[1].text or "")
    return o:read()
  end
  local function input(n)
    local x = tp.buffer("i32", n)
    x:fill(2)
    return x
  end
  local block = { grid = 1, block = 128 }

  it("in groups of lanes", function() quiet("partitions", block, 128) end)

  it("in tiles of several warps", function()
    for i, v in ipairs(quiet("large_tiles", block, 128)) do
      local t = i - 1 ~ 63
      local sum = (t // 64 * 128 + 63) * 32
      assert.equal(sum + (t ~ 33), v)
    end
  end)

  it("in pipelines", function()
    local x <close> = input(128 * 8)
    for _, v in ipairs(quiet("stages", block, 128, x, 8)) do assert.equal(16, v) end
  end)

  it("in asynchronous copies", function()
    local x <close> = input(128 * 8)
    for _, v in ipairs(quiet("copies", block, 128, x, 8)) do assert.equal(16, v) end
  end)

  it("between a barrier's phases", function()
    for t, v in ipairs(quiet("phases", block, 128)) do
      assert.equal(10 * (128 - t), v)
    end
  end)

  it("between rounds of the whole grid", function()
    local shape = { grid = 6, block = 64, cooperative = true }
    for _, v in ipairs(quiet("rounds", shape, 384, 4)) do assert.equal(6, v) end
  end)

  it("in a lock", function()
    local word <close> = tp.zeros("i32", 1)
    assert.same({ 8 }, quiet("lock", { grid = 8, block = 32 }, 1, word))
  end)

  it("in a scan by look-back", function()
    local tiles = 24
    local memory <close> = tp.zeros("u8", 16384)
    local next_ <close> = tp.zeros("u32", 1)
    local x <close> = input(512 * tiles)
    module:kernel "clear":launch({ grid = 1, block = 128 }, memory, tiles)
    local r = quiet("look_back", { grid = tiles, block = 128 }, 512 * tiles, x,
      memory, tiles, next_)
    for i, v in ipairs(r) do assert.equal(2 * i, v) end
  end)
end)
