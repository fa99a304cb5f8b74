-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/checking.md, the race check and what copies by themselves: cp.async and bulk
-- copies, waited for by groups and by mbarriers. As in check_race_spec each kernel is
-- right with miss = 0; other numbers leave one wait out, and the race that this makes
-- has to be reported for the lines marked with that number. All of them run in one
-- process, whose simulated device begins with compute capability 9.0.
-- luacheck: no max line length
local run = require "spec.support.run"

local SOURCE = [=[
typedef unsigned long long u64;
#define BARRIER(k) if (miss != k) __syncthreads()
#define GROUP(what) asm volatile("cp.async.bulk." what ";" ::: "memory")
#define SMALL(what) asm volatile("cp.async." what ";" ::: "memory")
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at(to)), "l"(from) : "memory")
#define IN(to, from, n, bar) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(to)), "l"(from), "r"(n), "r"(at(bar)) : "memory")
#define CAST(to, from, n, bar) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" :: "r"(at(to)), "l"(from), "r"(n), "r"(at(bar)), "h"((unsigned short)3) : "memory")
#define OUT(to, from, n) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(to), "r"(at(from)), "r"(n) : "memory")
#define ADD(to, from, n) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" :: "l"(to), "r"(at(from)), "r"(n) : "memory")
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64 *bar, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(bar)), "r"(n) : "memory");
}
__device__ void arrive(u64 *bar) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" :: "r"(at(bar)) : "memory");
}
__device__ void expect(u64 *bar, int bytes) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }"
    :: "r"(at(bar)), "r"(bytes) : "memory");
}
__device__ void wait(u64 *bar, int parity) {
  asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
    "@p bra D;\nbra W;\nD: }" :: "r"(at(bar)), "r"(parity) : "memory");
}
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
extern "C" {
__global__ void fetched(int *o, int miss) {
  __shared__ __align__(16) int s[64];
  __shared__ u64 bar;
  int t = threadIdx.x;
  if (t == 0) init(&bar, 1);
  __syncthreads();
  if (t == 0) {
    expect(&bar, 256);
    IN(s, o, 256, &bar);                                  // 1 2 3
    if (miss != 1) wait(&bar, 0);
    if (miss == 3) s[5] = 1;
    o[64 + t] = s[63 - t];                                // 1
  }
  BARRIER(2);
  if (t > 0) {
    o[64 + t] = s[63 - t];                                // 1 2
  }
}
__global__ void everybody_waits(int *o, int miss) {
  __shared__ __align__(16) int s[64];
  __shared__ u64 bar[4];
  int t = threadIdx.x;
  if (t < 4) init(bar + t, 1);
  __syncthreads();
  for (int k = 0; k < 4; k++) {
    if (t == 0) {
      expect(bar + k, 256);
      IN(s, o + 64 * k, 256, bar + k);                      // 1 2
    }
    if (miss != 1 || t != 40) wait(bar + k, 0);
    o[256 + t] = s[63 - t];                               // 1 2
    BARRIER(2);
  }
}
// A warp fetches, another uses what it brings.
__global__ void piped(int *o, int miss) {
  __shared__ __align__(16) int s[2][32];
  __shared__ u64 full[8], empty[2];
  int t = threadIdx.x, sum = 0;
  if (t < 8) init(full + t, 1);
  if (t < 2) init(empty + t, 32);
  __syncthreads();
  for (int k = 0; k < 8; k++) {
    int b = k % 2;
    if (t == 0) {
      if (k > 1 && miss != 2) wait(empty + b, k / 2 & 1 ^ 1);
      expect(full + k, 128);
      IN(s[b], o + 32 * k, 128, full + k);                // 1 2
    } else if (t >= 32) {
      wait(full + k, 0);
      if (miss == 1) arrive(empty + b);
      sum += s[b][63 - t];                                // 1 2
      if (miss != 1) arrive(empty + b);
    }
  }
  if (t >= 32) o[256 + t] = sum;
}
__global__ void stored(int *o, int miss) {
  __shared__ __align__(16) int s[64];
  int t = threadIdx.x;
  s[t] = t;                                               // 2
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  BARRIER(2);
  if (t == 0) {
    OUT(o, s, 256);                                       // 1 2 3
    GROUP("commit_group");
    if (miss != 1) GROUP("wait_group.read 0");
  }
  BARRIER(3);
  s[t] = -t;                                              // 1 3
  o[64 + t] = s[t];
}
__global__ void read_back(int *o, int miss) {
  __shared__ __align__(16) int s[64];
  if (threadIdx.x > 0) return;
  for (int k = 0; k < 64; k++) s[k] = k;
  OUT(o, s, 128);                                         // 1
  GROUP("commit_group");
  OUT(o + 32, s + 32, 128);                               // 2
  GROUP("commit_group");
  if (miss == 1) GROUP("wait_group.read 0");
  else GROUP("wait_group 1");
  o[64] = o[3];                                           // 1
  if (miss == 0) GROUP("wait_group 0");
  if (miss != 1) o[65] = o[35];                           // 2
}
__global__ void reduced(int *o, int miss) {
  __shared__ __align__(16) int s[64];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  if (t == 0) {
    ADD(o, s, 256);                                       // 1
    GROUP("commit_group");
    if (miss != 1) GROUP("wait_group 0");
    if (miss == 1 || gridDim.x == 1) o[64] = o[8];        // 1
  }
}
__global__ void source(int *o, int miss) {
  __shared__ int s[64];
  int t = threadIdx.x;
  COPY(s + t, o + t);                                     // 1 2
  if (miss != 1) SMALL("wait_all");
  if (miss == 2) __syncwarp(); else __syncthreads();
  o[miss == 1 ? t : t ^ 32] = 7 * t;                      // 1 2
  if (miss == 1) SMALL("wait_all");
  o[64 + t] = s[t];
}
// What an mbarrier tells of cp.async, and a wait by the thread itself.
__global__ void arrived(int *o, int miss) {
  __shared__ int s[64];
  __shared__ u64 bar;
  int t = threadIdx.x;
  if (t == 0) init(&bar, 64);
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    COPY(s + t, o + 64 * k + t);                          // 1 2 3
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(at(&bar)) : "memory");
    if (k == 1 || miss == 1) SMALL("wait_all");
    if (k == 1) o[256 + t] = s[t];
    if (miss == 3) o[256 + t] = s[t];                     // 3
    if (miss != 1) wait(&bar, k & 1);
    o[192 + t] = s[63 - t];                               // 1 2
    if (miss == 1) wait(&bar, k & 1);
    BARRIER(2);
  }
}
// Two mbarriers tell of the same copies.
__global__ void told_twice(int *o, int miss) {
  __shared__ int s[64];
  __shared__ u64 bars[2];
  int t = threadIdx.x;
  if (t < 2) init(bars + t, 64);
  __syncthreads();
  COPY(s + t, o + t);                                     // 1
  for (int k = 0; k < 2; k++)
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(at(bars + k)) : "memory");
  if (miss != 1 || t != 9) wait(bars + t % 2, 0);
  o[64 + t] = s[63 - t];                                  // 1
}
// Part of a group that is still on its way, from a source that others read too.
__global__ void overlapped(int *o, int miss) {
  __shared__ int s[2][64];
  int t = threadIdx.x;
  COPY(s[0] + t, o + t);                                  // 2
  SMALL("commit_group");
  COPY(s[1] + t, o + t);                                  // 1
  SMALL("commit_group");
  int v = o[t ^ 1];
  if (miss == 2) SMALL("wait_group 2"); else SMALL("wait_group 1");
  v += s[0][t];                                           // 2
  if (miss != 1) SMALL("wait_group 0");
  v += s[1][t];                                           // 1
  o[64 + t] = v;
}
// A phase that was asked for and has not ended yet orders nothing.
__global__ void polled(int *o, int miss) {
  __shared__ int s[64];
  __shared__ u64 bar;
  int t = threadIdx.x, ended = 0;
  if (t == 0) init(&bar, miss == 1 ? 64 : 32);
  s[t] = 0;
  __syncthreads();
  if (t < 32) {
    do asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;"
        " selp.u32 %0, 1, 0, p; }" : "=r"(ended) : "r"(at(&bar)) : "memory");
    while (miss != 1 && !ended);
    o[t] = s[t ^ 32] + ended;                             // 1
  } else {
    s[t] = 5;                                             // 1
    arrive(&bar);
  }
}
__global__ void cast(int *o, int miss) {
  __shared__ __align__(16) int s[64];
  __shared__ u64 bar;
  int t = threadIdx.x;
  if (t == 0) init(&bar, 1), expect(&bar, 256);
  cluster_sync();
  if (t == 0 && blockIdx.x == 0) CAST(s, o, 256, &bar);   // 1
  if (miss != 1 || blockIdx.x == 0) wait(&bar, 0);
  o[64 * blockIdx.x + 64 + t] = s[63 - t];                // 1
  cluster_sync();
}
}
]=]

local CASES = {
  { "fetched", 2 }, { "everybody_waits", 2 }, { "piped", 2 }, { "stored", 3 },
  { "read_back", 2 }, { "reduced", 1 }, { "source", 2 }, { "arrived", 3 },
  { "told_twice", 1 }, { "overlapped", 2 }, { "polled", 1 }, { "cast", 1 },
}

local SCRIPT = [==[
local tp = require "tpstream"
local program = require "spec.support.program"
tp.set_device "sim"
local module = program("check_race_copy", (...))
local blocks, clusters = { reduced = 2, cast = 2 }, { cast = 2 }
local function found(name, miss)
  local o <close> = tp.zeros("i32", 384)
  tp.check.start { "race" }
  module:kernel(name):launch({ grid = blocks[name] or 1, block = 64,
    cluster = clusters[name] }, o, miss)
  for _, r in ipairs(tp.check.stop()) do io.write(r.text) end
end
for name, most in (select(2, ...)):gmatch "(%S+) (%d)" do
  for miss = 0, most do
    io.write("@", name, " ", miss, "\n")
    found(name, miss)
  end
end
]==]

-- Text of the reports by kernel and miss.
local function run_all()
  local list, texts = {}, {}
  for _, c in ipairs(CASES) do list[#list + 1] = c[1] .. " " .. c[2] end
  local script = ("local function all(...) %s end all(%q, %q)"):format(SCRIPT,
    SOURCE, table.concat(list, " "))
  local r = run.script(script, { env = { TPSTREAM_SIM_CAPABILITY = "9.0" } })
  if r.status ~= 0 then error(r.stderr) end
  for name, text in (r.stdout .. "@"):gmatch "([%w_]+ %d)\n([^@]*)" do
    texts[name] = text
  end
  return texts
end

-- The lines of a kernel that carry a number.
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

describe("races with copies under way", function()
  local texts
  setup(function() texts = run_all() end)

  for _, case in ipairs(CASES) do
    local kernel = case[1]
    it(kernel .. " is right as it stands", function()
      assert.equal("", texts[kernel .. " 0"])
    end)

    for miss = 1, case[2] do
      it(("%s without its number %d"):format(kernel, miss), function()
        local text, count = texts[kernel .. " " .. miss], 0
        local lines = lines_of(kernel, miss)
        for a, b in text:gmatch("access at " .. kernel .. "%+0x%x+ in "
          .. "program%.cu:(%d+)\n +and %a+ access at " .. kernel
          .. "%+0x%x+ in program%.cu:(%d+) %[%d+ hazards?%]\n") do
          count = count + 1
          if not (lines[tonumber(a)] and lines[tonumber(b)]) then error(text) end
        end
        if count == 0 then error("nothing was reported: " .. text) end
      end)
    end
  end
end)
