-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The barrier check (docs/checking.md): barriers and masks that are used wrongly, and
-- right programs that look like it.
local tp = require "tpstream"

local SOURCE = [=[
extern "C" {
__global__ void reverse(int *p) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void early(int *p, int n) {
  __shared__ int s[64];
  if (threadIdx.x >= n) return;
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  p[threadIdx.x] = s[n - 1 - threadIdx.x];
}
__global__ void some(int *p, int n) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < n)
    __syncthreads(); // @some
  p[threadIdx.x] = s[0];
}
__global__ void rounds(int *p, int n) {
  __shared__ int s[64];
  int sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    s[threadIdx.x] = i;
    __syncthreads(); // @rounds
    sum += s[0];
  }
  p[threadIdx.x] = sum;
}
// Each turn some threads return; every other turn has a barrier.
__global__ void leaving(int *p, int n) {
  __shared__ int s[64];
  int sum = 0;
#pragma unroll 1
  for (int k = 0; k < 8; k++) {
    if (k & 1) {
      s[threadIdx.x] = k;
      __syncthreads();
      sum += s[0];
    }
    p[threadIdx.x] = sum;
    if (threadIdx.x + 8 * k >= n) return;
    if (n & 1) {
      s[threadIdx.x] = sum;
      __syncthreads();
    }
  }
}
__device__ __noinline__ void meet(int *s) {
  s[threadIdx.x]++;
  __syncthreads(); // @meet
}
__global__ void called(int *p, int n) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x < n) meet(s);
  p[threadIdx.x] = s[threadIdx.x];
}
__global__ void places(int *p, int n) {
  if (threadIdx.x < n) {
    p[0] = 1;
    __syncthreads(); // @first_place
    p[1] = 2;
  } else {
    p[2] = 3;
    __syncthreads(); // @second_place
    p[3] = 4;
  }
}
__global__ void pipeline(int *p) {
  __shared__ int s[32];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = threadIdx.x;
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    p[threadIdx.x] = s[threadIdx.x - 32];
  }
}
__global__ void counts(int *p) {
  if (threadIdx.x < 32) asm volatile("bar.arrive 2, 64;"); // @count64
  else asm volatile("bar.sync 2, 32;"); // @count32
}
__global__ void alone(int *p) {
  asm volatile("bar.arrive 3, 128;"); // @alone
}
__global__ void odd(int n) {
  asm volatile("barrier.sync 1, %0;" ::"r"(n)); // @odd
}
__global__ void never(int *p) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 96;"); // @never
  else asm volatile("bar.sync 2, 96;");
}
__global__ void masked(int *p, unsigned mask, int n) {
  if (threadIdx.x < n)
    p[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 0); // @masked
}
__global__ void voted(int *p, unsigned mask) {
  p[threadIdx.x] = __ballot_sync(mask, threadIdx.x & 1); // @voted
}
__global__ void arms(int *p) {
  if (threadIdx.x & 1) p[threadIdx.x] = __shfl_xor_sync(0xffffffff, 1, 1);
  else p[threadIdx.x] = __shfl_xor_sync(0xffffffff, 2, 1);
}
__global__ void waiting(int *p) {
  if (threadIdx.x < 16) __syncwarp(0x00ffffff);
  else __syncwarp(0xffffffff); // @waiting
  p[threadIdx.x] = 1;
}
__global__ void spinning(volatile int *p) {
  if (threadIdx.x < 32) {
    p[1] = 1;
    __syncthreads(); // @spinning
  } else {
    while (*p == 0) continue; // @spins
    __syncthreads();
  }
}
__global__ void spinning_lanes(volatile int *p) {
  if (threadIdx.x >= 16)
    while (*p == 0) continue;
  else
    __syncwarp(); // @met
}
__global__ void spins(volatile int *p) {
  while (*p == 0) continue;
}
__global__ void raw(int *p) {
  __shared__ unsigned long long object;
  unsigned at = (unsigned)__cvta_generic_to_shared(&object);
  object = 0;
  __syncthreads();
  asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" // @raw
               ::"r"(at) : "memory");
}
}
]=]

local findings = require "spec.support.findings" ("check_barrier", SOURCE,
  "barrier")
local fine, one, expect = findings.fine, findings.one, findings.expect
local ERROR = "Barrier error detected. "
local IN_BLOCK = ERROR .. "Divergent thread(s) in block."
local IN_WARP = ERROR .. "Divergent thread(s) in warp."
local ARGUMENTS = ERROR .. "Invalid arguments."

describe("the barrier check", function()
  require "spec.support.simulated" (setup, teardown)
  local b

  setup(function() b = tp.zeros("i32", 256) end)
  teardown(function() b:close() end)

  it("has nothing to say of right programs", function()
    fine(function(k)
      k("reverse", { 3, 64 }, b)
      k("some", { 1, 64 }, b, 64)
      k("some", { 1, 64 }, b, 0)
      k("rounds", { 1, 64 }, b, 128)
      k("called", { 1, 64 }, b, 64)
      k("places", { 1, 64 }, b, 64)
      k("pipeline", { 2, 64 }, b)
      k("masked", { 1, 32 }, b, 0xffff, 16)
      k("voted", { 1, 32 }, b, 0xffffffff)
    end)
  end)

  it("lets threads return early, and lanes come by two ways", function()
    fine(function(k)
      k("early", { 1, 64 }, b, 33)
      k("early", { 1, 64 }, b, 32)
      for n = 56, 64 do k("leaving", { 1, 64 }, b, n) end
      k("masked", { 1, 40 }, b, 0xffffffff, 20)
      k("arms", { 1, 32 }, b)
    end)
  end)

  it("tells threads that leave a barrier out", function()
    local text, report = one(function(k) k("some", { 1, 64 }, b, 40) end)
    assert.equal([[
    24 of 64 threads never come to barrier 0, thread (40,0,0) first:
    it went on at program.cu:20 without it and has ended]],
      expect(text, IN_WARP, "some", "some",
        "thread (32,0,0) in block (0,0,0)"):gsub("\n    launched.*", ""))
    assert.equal("barrier", report.check)
    text = one(function(k) k("some", { 1, 64 }, b, 32) end)
    expect(text, IN_BLOCK, "some", "some", "thread (0,0,0) in block (0,0,0)")
    assert.equal("some", report.kernel)
  end)

  it("tells loops over barriers with different numbers of rounds", function()
    local text = one(function(k) k("rounds", { 1, 64 }, b, 96) end)
    assert.truthy(expect(text, IN_BLOCK, "rounds", "rounds",
      "thread (0,0,0) in block (0,0,0)"):find(
      "32 of 64 threads never come to barrier 0, thread (32,0,0) first", 1,
      true))
  end)

  it("follows calls", function()
    local text = one(function(k) k("called", { 1, 64 }, b, 32) end)
    assert.truthy(text:find("in kernel called", 1, true))
    expect(text, IN_BLOCK, "meet", "meet", "thread (0,0,0) in block (0,0,0)")
  end)

  it("tells two places where the warps of a block meet", function()
    local text = one(function(k) k("places", { 1, 64 }, b, 32) end)
    local first, second = findings.line "first_place", findings.line "second_place"
    local here = tonumber(text:match "program%.cu:(%d+)")
    assert.truthy(here == first or here == second)
    local more = expect(text, IN_BLOCK, "places",
      here == first and "first_place" or "second_place",
      ("thread (%d,0,0) in block (0,0,0)"):format(here == first and 0 or 32))
    assert.truthy(more:find(("is at barrier 0 in program.cu:%d"):format(
      first + second - here), 1, true))
  end)

  it("tells of an arrival that nobody waits for", function()
    local text = one(function(k) k("alone", { 1, 64 }, b) end)
    assert.truthy(expect(text, ERROR .. "Missing wait.", "alone", "alone",
      "thread (0,0,0) in block (0,0,0)"):find(
      "no thread of the block waits at barrier 3", 1, true))
  end)

  it("tells masks that leave out who calls", function()
    local text = one(function(k) k("masked", { 1, 32 }, b, 0xffff, 17) end)
    assert.truthy(expect(text, ARGUMENTS, "masked", "masked",
      "thread (16,0,0) in block (0,0,0)"):find(
      "the mask 0x0000ffff does not name lane 16, which calls", 1, true))
    text = one(function(k) k("voted", { 1, 32 }, b, 0xfffffffe) end)
    expect(text, ARGUMENTS, "voted", "voted", "thread (0,0,0) in block (0,0,0)")
  end)

  it("counts a fault of one line once a launch", function()
    local reports = findings.all(function(k)
      for _ = 1, 3 do k("some", { 5, 64 }, b, 40) end
    end)
    assert.equal(1, #reports)
    assert.equal(3, reports[1].count)
  end)
end)

-- What can't go on ends its device, so these have processes of their own.
describe("the barrier check, in a process of its own,", function()
  local found = findings.apart

  it("tells lanes of a warp that wait at two barriers", function()
    local text = found 'k("places", { 1, 32 }, b, 16)'
    assert.truthy(expect(text, IN_WARP, "places", "second_place",
      "thread (16,0,0) in block (0,0,0)"):find(
      ("lanes 0x0000ffff at barrier 0 (program.cu:%d), lanes 0xffff0000 at")
      :format(findings.line "first_place"), 1, true))
  end)

  it("tells what threads wait for in vain", function()
    local text = found 'k("never", { 1, 64 }, b)'
    assert.truthy(expect(text, IN_BLOCK, "never", "never",
      "thread (0,0,0) in block (0,0,0)"):find(
      ("warp 0 waits at barrier 1 (program.cu:%d), which has 32 of 96 threads")
      :format(findings.line "never"), 1, true))
    text = found 'k("waiting", { 1, 32 }, b)'
    expect(text, IN_WARP, "waiting", "waiting",
      "thread (16,0,0) in block (0,0,0)")
    assert.truthy(text:find(
      "lanes 0xffff0000 waits? for lanes 0x0000ffff"))
  end)

  it("tells who waits for what when a launch is given up", function()
    local text = found('k("spinning", { 1, 96 }, b)', "0.2")
    assert.equal(([[
    warp 0 waits at barrier 0 (program.cu:%d), which has 32 of 96 threads
    warps 1 to 2 go on (program.cu:%d)
    the launch is given up, since the others don't end]]):format(
      findings.line "spinning", findings.line "spins"),
      expect(text, IN_BLOCK, "spinning", "spinning",
        "thread (0,0,0) in block (0,0,0)"):gsub("\n    launched.*", ""))
    text = found('k("spinning_lanes", { 1, 32 }, b)', "0.2")
    assert.truthy(expect(text, IN_WARP, "spinning_lanes", "met",
      "thread (0,0,0) in block (0,0,0)"):find(
      "warp 0, lanes 0x0000ffff wait for lanes 0xffff0000", 1, true), text)
    assert.equal("", (found('k("spins", { 1, 32 }, b) io.write " "', "0.2")
      :gsub(" ", "")))
  end)

  it("tells barriers of different counts", function()
    local text = found 'k("counts", { 1, 64 }, b)' -- a seed has one done before
    assert.truthy(text:find(ARGUMENTS, 1, true))
    assert.truthy(text:find("barrier 2 is for 32 threads here, for 64 at", 1, true))
  end)

  it("tells an mbarrier that was never initialised", function()
    local text = found 'k("raw", { 1, 32 }, b)'
    assert.truthy(text:find(ERROR .. "Missing init.\n    at raw", 1, true))
    assert.truthy(text:find("the mbarrier is not initialised", 1, true))
  end)

  it("tells counts that are no multiple of a warp", function()
    local text = found 'k("odd", { 1, 64 }, 33)'
    assert.truthy(expect(text, ARGUMENTS, "odd", "odd",
      "thread (0,0,0) in block (0,0,0)"):find(
      "barrier for 33 threads (a multiple of 32 is needed)", 1, true))
  end)
end)
