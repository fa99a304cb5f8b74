-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/checking.md, the race check. Each kernel below is right with miss = 0; other
-- numbers take one barrier, fence or atomic away, and the race that this makes has to
-- be reported for the lines marked with that number.
local tp = require "tpstream"
local checking = require "spec.support.checking"
local program = require "spec.support.program"

local SOURCE = [=[
#define BARRIER(k) if (miss != k) __syncthreads()
#define WARP(k, mask) if (miss != k) __syncwarp(mask)
#define FENCE(k) if (miss != k) __threadfence()
extern "C" {
__global__ void reduce(int *o, int miss) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = t;                                               // 1
  BARRIER(1);
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];                          // 1 2
    BARRIER(2);
  }
  if (t == 0) o[0] = s[0];
}
__global__ void tiles(int *o, int miss) {
  __shared__ int a[16][16], b[16][16];
  int x = threadIdx.x, y = threadIdx.y, sum = 0;
  for (int k = 0; k < 3; k++) {
    a[y][x] = k + x + y; b[y][x] = k * x - y;             // 1 2
    BARRIER(1);
    for (int j = 0; j < 16; j++) sum += a[y][j] * b[j][x]; // 1 2
    BARRIER(2);
  }
  o[y * 16 + x] = sum;
}
__global__ void histogram(int *o, int miss) {
  __shared__ int bins[8];
  int t = threadIdx.x;
  if (t < 8) bins[t] = 0;                                 // 1
  BARRIER(1);
  if (miss == 2) bins[t % 5]++;                           // 2
  else atomicAdd(&bins[t % 5], 1);                        // 1 3
  BARRIER(3);
  if (t < 8) atomicAdd(&o[t], bins[t]);                   // 3
}
__global__ void neighbour(int *o, int miss) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t;                                               // 1
  WARP(1, ~0u);
  int v = s[t ^ 1];                                       // 1 2
  WARP(2, ~0u);
  s[t] = v;                                               // 2
  o[t] = s[t];
}
__global__ void halves(int *o, int miss) {
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t < 16) {
    s[t] = t;                                             // 1 2
    WARP(1, 0xffffu);
    int v = s[15 - t];                                    // 1
    __syncwarp(0xffffu);
    s[t] = 3 * v;                                         // 2
  }
  WARP(2, ~0u);
  if (t >= 16) o[t] = s[t - 16];                          // 2
}
__global__ void cells(int *o, int miss) {
  if (threadIdx.x == 0)
    o[miss == 1 ? 0 : blockIdx.x] = blockIdx.x;           // 1
}
__global__ void pairs(int *o, int miss) {
  __shared__ int s[128];
  int t = threadIdx.x, pair = t / 64, other = t ^ 32;
  s[t] = t;                                               // 1
  if (miss == 1) other = t ^ 64;
  if (pair == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  o[t] = s[other];                                        // 1
}
__global__ void handover(int *o, int miss) {
  __shared__ int s[64];
  int t = threadIdx.x;
  for (int k = 0; k < 4; k++)
    if (t < 64) {
      if (k > 0) asm volatile("bar.sync 2, 128;" ::: "memory");
      s[t] = k + t;                                       // 1
      asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
      if (miss == 1) o[t] = s[t ^ 65];                    // 1
      asm volatile("bar.sync 1, 128;" ::: "memory");
      if (miss != 1) o[t] = s[t ^ 65];
      if (k < 3) asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
}
__global__ void flag(int *o, int miss) {
  volatile int *ready = o + 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    o[0] = 5;                                             // 1
    FENCE(1);
    *ready = 1;
  }
  if (blockIdx.x == 1 && threadIdx.x == 0) {
    while (*ready == 0) continue;
    __threadfence();
    o[2] = o[0];                                          // 1
  }
}
__device__ int ticket;
__global__ void last_block(int *o, int miss) {
  __shared__ int last;
  int t = threadIdx.x;
  if (t == 0) {
    o[1 + blockIdx.x] = blockIdx.x;                       // 1
    FENCE(1);
    last = atomicAdd(&ticket, 1) == gridDim.x - 1;        // 2
  }
  BARRIER(2);
  if (last && t == 0) {                                   // 2
    int sum = 0;
    for (int k = 0; k < gridDim.x; k++) sum += o[1 + k];  // 1
    o[0] = sum;
    ticket = 0;
  }
}
__global__ void lock(int *o, int miss) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(o, 0, 1)) continue;
  __threadfence();
  o[1] += 1;                                              // 1
  FENCE(1);
  atomicExch(o, 0);
}
__global__ void exchanged(int *o, int miss) {
  int t = threadIdx.x;
  o[t] = t;                                               // 1
  BARRIER(1);
  o[256 + t] = o[255 - t];                                // 1
}
__global__ void bytes(unsigned char *o, int miss) {
  int t = threadIdx.x;
  o[t] = t;                                               // 1
  if (miss == 1 && t < 16) *(int *)(o + 4 * t) = ~t;      // 1
}
__global__ void agreed(int *o, int miss) {
  o[0] = miss == 1 ? threadIdx.x : 7;                     // 1
}
__global__ void counted(int *o, int miss) {
  atomicAdd(o, 1);                                        // 1 2
  BARRIER(1);
  if (blockIdx.x == 0 || miss == 2) o[1] = *o;            // 1 2
}
__global__ void legacy(int *o, int miss) {
  __shared__ volatile int v[64];
  __shared__ int s[64];
  int t = threadIdx.x;
  v[t] = s[t] = t;                                        // 1
  v[t] += v[t ^ 1];
  int mine = miss == 1 ? s[t ^ 1] : s[t];                 // 1
  o[t] = mine + v[t];
}
__global__ void copied(int *o, int miss) {
  __shared__ int s[64];
  int t = threadIdx.x;
  unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :: "r"(to), "l"(o + t) : "memory");        // 1 2
  if (miss != 2) asm volatile("cp.async.wait_all;" ::: "memory");
  BARRIER(1);
  o[64 + t] = s[63 - t];                                  // 1 2
}
// The next tile is on its way while one is used.
__global__ void ahead(int *o, int miss) {
  __shared__ int s[2][64];
  int t = threadIdx.x, sum = 0;
  unsigned to = (unsigned)__cvta_generic_to_shared(s[0] + t);
  for (int k = 0; k <= 4; k++) {
    if (k < 4)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                   "cp.async.commit_group;"
                   :: "r"(to + k % 2 * 256), "l"(o + 64 * k + t) // 1 2 3
                   : "memory");
    if (k == 0) continue;
    if (miss == 1) asm volatile("cp.async.wait_group 2;" ::: "memory");
    else if (k < 4) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_group 0;" ::: "memory");
    BARRIER(2);
    sum += s[(k - 1) % 2][63 - t];                        // 1 2 3
    BARRIER(3);
  }
  o[256 + t] = sum;
}
// Tiles of eight lanes exchange by themselves, some more often than others.
__global__ void tile_of_eight(int *o, int miss) {
  __shared__ int s[64];
  int t = threadIdx.x, lane = t % 32, v = t;
  unsigned mask = 0xffu << (lane & ~7);
  for (int k = 0; k <= lane / 8; k++) {
    s[t] = v + k;                                         // 1 2
    WARP(1, mask);
    v = s[t ^ 5];                                         // 1 2
    WARP(2, mask);
  }
  o[t] = v;
}
// One barrier a step is enough for two buffers in turn.
__global__ void in_turn(int *o, int miss) {
  __shared__ int s[2][128];
  int t = threadIdx.x, v = t;
  for (int k = 0; k < 6; k++) {
    int *mine = s[miss == 2 ? 0 : k & 1];
    mine[t] = v;                                          // 1 2
    BARRIER(1);
    v = mine[(t + 37) & 127] + 1;                         // 1 2
  }
  o[t] = v;
}
__global__ void work_list(int *o, int miss) {
  __shared__ int next;
  for (;;) {
    if (threadIdx.x == 0) next = atomicAdd(o, 1);         // 1 2
    BARRIER(1);
    int item = next;                                      // 1 2
    BARRIER(2);
    if (item < 0 || item >= 40) break;
    o[1 + 64 * item + threadIdx.x] = item;
  }
}
// Two buffers, each with a barrier that says full and one that says empty.
__global__ void stages(int *o, int miss) {
  __shared__ int s[2][32];
  int t = threadIdx.x % 32, sum = 0;
  for (int k = 0; k < 8; k++) {
    int full = 1 + k % 2, empty = 3 + k % 2;
    if (threadIdx.x < 32) {
      if (k > 1) asm volatile("bar.sync %0, 64;" :: "r"(empty) : "memory");
      s[k % 2][t] = k * t;                                // 1
      asm volatile("bar.arrive %0, 64;" :: "r"(full) : "memory");
    } else {
      asm volatile("bar.sync %0, 64;" :: "r"(full) : "memory");
      if (miss != 1) sum += s[k % 2][31 - t];
      if (k < 6) asm volatile("bar.arrive %0, 64;" :: "r"(empty) : "memory");
      if (miss == 1) sum += s[k % 2][31 - t];             // 1
    }
  }
  o[threadIdx.x] = sum;
}
struct node { int next, value; };
__device__ node nodes[64];
// Each thread puts a node before the list's head, then one takes the whole list.
__global__ void list(int *o, int miss) {
  int i = blockIdx.x, head = 0;
  if (threadIdx.x == 0) {
    nodes[i].value = i;                                   // 1
    int seen = *(volatile int *)o;
    do {
      nodes[i].next = head = seen;                        // 1
      FENCE(1);
      seen = atomicCAS(o, head, i + 1);
    } while (seen != head);
    if (atomicAdd(o + 1, 1) == gridDim.x - 1) {
      int sum = 0;
      for (int k = atomicExch(o, 0); k != 0; k = nodes[k - 1].next) // 1
        sum += nodes[k - 1].value;                        // 1
      o[2] = sum;
    }
  }
}
// A warp waits for another without any barrier.
__global__ void relay(int *o, int miss) {
  __shared__ volatile int turn;
  __shared__ int v[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  while (turn != warp) continue;
  int mine = warp == 0 ? lane : v[lane ^ 1] + 1;          // 1
  __syncwarp();
  v[lane] = mine;                                         // 1
  if (miss != 1) __threadfence_block();
  __syncwarp();
  if (lane == 0) turn = warp + 1;
  o[threadIdx.x] = mine;
}
// A scan by look-back: each block publishes its sum, then what is before it.
__global__ void look_back(int *o, int miss) {
  __shared__ int before;
  volatile int *state = o, *sums = o + gridDim.x;
  int *data = o + 2 * gridDim.x, b = blockIdx.x;
  if (threadIdx.x == 0) {
    data[b] = b + 1;                                      // 1
    sums[b] = b + 1;
    FENCE(1);
    state[b] = 1;
    int sum = 0;
    for (int k = b - 1; k >= 0; k--) {
      while (state[k] == 0) continue;
      __threadfence();
      sum += data[k];                                     // 1
    }
    before = sum;                                         // 2
  }
  BARRIER(2);
  o[3 * gridDim.x + b * blockDim.x + threadIdx.x] = before; // 2
}
__global__ void shuffled(int *o, int miss) {
  __shared__ int s[32];
  int t = threadIdx.x;
  s[t] = t;
  int x = __shfl_xor_sync(~0u, t, 1);
  o[t] = s[t ^ 1] + x;
}
}
]=]

-- The lines that carry a number, as texts for its report: each pair has one of the
-- first and one of the second.
local function lines_of(kernel, number)
  local lines, here, n = {}, false, 0
  for text in SOURCE:gmatch "([^\n]*)\n" do
    n = n + 1
    local name = text:match "__global__ void ([%w_]+)%("
    if name then here = name == kernel end
    local marks = here and text:match "// ([%d ]+)$"
    if marks and (" " .. marks .. " "):find(" " .. number .. " ", 1, true) then
      lines[n] = true
    end
  end
  return lines
end

local CASES = {
  -- kernel, grid, block, elements, numbers of what can be missing
  { "reduce", 1, 128, 1, 2 },
  { "tiles", 1, { 16, 16 }, 256, 2 },
  { "histogram", 2, 96, 8, 3 },
  { "neighbour", 1, 64, 64, 2 },
  { "halves", 1, 32, 32, 2 },
  { "cells", 2, 32, 2, 1 },
  { "pairs", 1, 128, 128, 1 },
  { "handover", 1, 128, 128, 1 },
  { "flag", 2, 32, 3, 1 },
  { "last_block", 4, 64, 5, 2 },
  { "lock", 3, 64, 2, 1 },
  { "exchanged", 1, 256, 512, 1 },
  { "bytes", 1, 64, 64, 1, "u8" },
  { "agreed", 2, 64, 1, 1 },
  { "counted", 1, 64, 2, 1 },
  { "legacy", 1, 64, 64, 1 },
  { "copied", 1, 64, 128, 2 },
  { "ahead", 1, 64, 320, 3 },
  { "tile_of_eight", 1, 64, 64, 2 },
  { "in_turn", 1, 128, 128, 2 },
  { "work_list", 3, 64, 1 + 64 * 40, 2 },
  { "stages", 1, 64, 64, 1 },
  { "list", 8, 32, 3, 1 },
  { "relay", 1, 128, 128, 1 },
  { "look_back", 6, 64, 18 + 6 * 64, 2 },
  { "shuffled", 1, 32, 32, 0 },
}

describe("races", function()
  local module
  require "spec.support.simulated"(setup, teardown)
  setup(function() module = program("check_race", SOURCE) end)

  local function found(case, miss)
    return checking.found({ "race" }, function()
      local o <close> = tp.zeros(case[6] or "i32", case[4])
      module:kernel(case[1]):launch({ grid = case[2], block = case[3] }, o,
        miss)
    end)
  end

  for _, case in ipairs(CASES) do
    it(case[1] .. " is right as it stands", function()
      local reports = found(case, 0)
      assert.equal("", reports[1] and reports[1].text or "")
    end)

    for miss = 1, case[5] do
      it(("%s without its number %d"):format(case[1], miss), function()
        local reports = found(case, miss)
        local lines = lines_of(case[1], miss)
        if #reports == 0 then error "nothing was reported" end
        for _, r in ipairs(reports) do
          local a, b = r.text:match("access at " .. case[1]
            .. "%+0x%x+ in program%.cu:(%d+)\n +and %a+ access at " .. case[1]
            .. "%+0x%x+ in program%.cu:(%d+) %[%d+ hazards?%]\n")
          assert.equal("race", r.check)
          if not (a and lines[tonumber(a)] and lines[tonumber(b)]) then
            error(r.text)
          end
        end
      end)
    end
  end
end)
