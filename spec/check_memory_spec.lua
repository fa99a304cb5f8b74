-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The memory check (docs/checking.md): faults of memory as findings, in
-- compute-sanitizer's words. spec/fault_spec.lua has the faults themselves.
local tp = require "tpstream"

local SOURCE = [=[
extern "C" {
__global__ void store(int *p, long long i) { p[i] = 1; } // @store
__global__ void load(int *p, long long i) {
  if (p[i] == 12345) p[0] = 1; // @load
}
__global__ void count(int *p, long long i) {
  atomicAdd(p + i, 1); // @count
}
__global__ void wide(char *p, int i) {
  *(int4 *)(p + i) = make_int4(1, 2, 3, 4); // @wide
}
__global__ void tile(int *p, int i) {
  __shared__ int s[32];
  s[threadIdx.x & 31] = 1;
  __syncthreads();
  p[0] = s[i]; // @tile
}
__global__ void stack(int *p, int i) {
  volatile int a[8];
  a[i] = 1; // @stack
  p[0] = a[i & 7];
}
__device__ __noinline__ int endless(int n, int *p) {
  int a[64];
  for (int i = 0; i < 64; i++) a[i] = n + i;
  p[0] = a[n & 63];
  return n < 0 ? 0 : endless(n + 1, p) + a[(n + 1) & 63]; // @endless
}
__global__ void deep(int *p) { p[0] = endless(0, p); }
__global__ void frees(int *p, int what) {
  char *m = (char *)malloc(16);
  if (what == 0) free(m + 1); // @inner
  free(m);
  if (what == 1) free(m); // @twice
}
__global__ void last(int *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) p[i] = i; // @last
}
__device__ int *kept;
__global__ void keep(int *p) { kept = p; }
__global__ void late(int *p) { kept[1] = 2; } // @late
}
]=]

local findings = require "spec.support.findings" ("check_memory", SOURCE,
  "memory")
local fine, apart, expect = findings.fine, findings.apart, findings.expect
local FIRST = "thread (0,0,0) in block (0,0,0)"

local function title(kind, bytes, space)
  return ("Invalid __%s__ %s of size %d bytes"):format(space or "global", kind,
    bytes)
end

-- Lines behind the thread's, addresses taken out.
local function rest(...)
  return (expect(...):gsub("0x%x+", "0x"):gsub("[^ ]+%.?%w+:%d+", "FILE"))
end

describe("the memory check", function()
  require "spec.support.simulated" (setup, teardown)

  it("has nothing to say of right programs", function()
    local b <close> = tp.zeros("i32", 64)
    fine(function(k)
      k("last", { 2, 32 }, b, 63)
      k("store", { 1, 1 }, b, 63)
      k("tile", { 1, 32 }, b, 31)
      k("stack", { 1, 32 }, b, 7)
      k("frees", { 1, 32 }, b, 2)
    end)
  end)

  it("tells what lies nearest, and who made it", function()
    local text = apart 'k("store", { 1, 1 }, b, 256)'
    assert.equal([[
    Access to 0x is out of bounds
    and is 1 bytes after the nearest allocation at 0x of size 1024 bytes
    made at FILE (int32 buffer)
    launched at FILE]], rest(text, title("write", 4), "store", "store", FIRST))
    text = apart 'k("load", { 1, 1 }, b, -2)'
    assert.equal([[
    Access to 0x is out of bounds
    and is 8 bytes before the nearest allocation at 0x of size 1024 bytes
    made at FILE (int32 buffer)
    launched at FILE]], rest(text, title("read", 4), "load", "load", FIRST))
  end)

  it("tells the thread and the block", function()
    local text = apart 'k("last", { 9, 32 }, b, 256)'
    expect(text, title("write", 4), "last", "last",
      "thread (0,0,0) in block (8,0,0)")
  end)

  it("tells atomic operations and null pointers", function()
    local text = apart 'k("count", { 1, 1 }, nil, 1)'
    assert.equal([[
    Access to 0x is out of bounds
    a null pointer
    launched at FILE]], rest(text, title("atomic", 4), "count", "count", FIRST))
  end)

  it("tells misaligned addresses", function()
    local text = apart [[k("wide", { 1, 1 }, tp.zeros("i8", 64), 4)]]
    assert.equal([[
    Access to 0x is misaligned
    and is inside the nearest allocation at 0x of size 64 bytes
    made at FILE (int8 buffer)
    launched at FILE]], rest(text, title("write", 16), "wide", "wide", FIRST))
  end)

  it("tells memory that was freed, and where", function()
    local text = apart [[
local old = tp.zeros("i32", 8)
k("keep", { 1, 1 }, old)
old:close()
tp.current_device():synchronize()
k("late", { 1, 1 }, b)]]
    assert.equal([[
    Access to 0x is out of bounds
    and is inside the nearest freed allocation at 0x of size 32 bytes
    made at FILE (int32 buffer)
    freed at FILE
    launched at FILE]], rest(text, title("write", 4), "late", "late", FIRST))
  end)

  it("tells shared memory and the stack", function()
    local text = apart 'k("tile", { 1, 32 }, b, 100)'
    assert.truthy(expect(text, title("read", 4, "shared"), "tile", "tile", FIRST)
      :find("273 bytes past shared array 's' of 128 bytes", 1, true))
    text = apart 'k("stack", { 1, 32 }, b, 9)'
    assert.truthy(expect(text, title("write", 4, "local"), "stack", "stack",
      FIRST):find("5 bytes past the end of the 32 bytes of local memory", 1,
      true))
  end)

  it("tells a stack that overflows", function()
    local text = apart 'k("deep", { 1, 1 }, b)'
    assert.truthy(expect(text, "Stack overflow", "endless", "endless", FIRST)
      :find("needs more than the 524288 bytes of stack of a thread", 1, true))
  end)

  it("tells frees on the device that can't be", function()
    local text = apart 'k("frees", { 1, 1 }, b, 0)'
    assert.truthy(expect(text,
      "Malloc/Free Error encountered : Invalid pointer to device-side free",
      "frees", "inner", FIRST):find("which malloc has not returned", 1, true))
    text = apart 'k("frees", { 1, 1 }, b, 1)'
    assert.truthy(expect(text,
      "Malloc/Free Error encountered : Device-side double free", "frees", "twice",
      FIRST):find("which was freed before", 1, true))
  end)
end)
