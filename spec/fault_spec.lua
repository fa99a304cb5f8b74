-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Faults: asynchronous, sticky, code for code what a GPU answers. A fault ends
-- its device, so each case runs in a process of its own.
local tp = require "tpstream"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"

-- What every case begins with. `k` launches one kernel of SOURCE; report() prints
-- what a failing call raised, one field a line.
local PRELUDE = [===[
local tp = require "tpstream"
local program = require "spec.support.program"
local module = program("fault", [=[
#include <assert.h>
extern "C" {
__global__ void store(int *p, long long i) { p[i] = 1; }
__global__ void load(int *p, long long i) { if (p[i] == 12345) p[0] = 1; }
__global__ void wide(char *p, long long i) { *(int4 *)(p + i) = make_int4(1, 2, 3, 4); }
__global__ void failing(int n) { assert(n < 3 && "n is small"); }
__global__ void trapping(int n) { if (threadIdx.x == n) __trap(); }
__global__ void shared_far(int *p, int i) {
  __shared__ int s[32];
  s[threadIdx.x] = i;
  __syncthreads();
  p[0] = s[i];
}
__device__ __noinline__ int endless(int n, int *p) {
  int a[64];
  for (int i = 0; i < 64; i++) a[i] = n + i;
  p[0] = a[n & 63];
  return n < 0 ? 0 : endless(n + 1, p) + a[(n + 1) & 63];
}
__global__ void deep(int *p) { p[0] = endless(0, p); }
__global__ void odd_even(int *p) {
  if (threadIdx.x & 1) { p[0] = 1; __syncthreads(); p[1] = 2; }
  else { p[2] = 3; __syncthreads(); p[3] = 4; }
}
__global__ void fine(int *p) { p[0] = 7; }
__device__ int table[16];
__constant__ float weights[4];
__global__ void table_far(int i) { table[i] = 1; }
__global__ void weights_far(float *p, int i) { p[0] = weights[i]; }
__global__ void dynamic_far(int i) {
  extern __shared__ int tile[];
  tile[i] = 1;
}
__global__ void local_far(int *p, int i) {
  volatile int a[8];
  a[i] = 1;
  p[0] = a[i & 7];
}
__global__ void atomic_far(int *p, long long i) { atomicAdd(p + i, 1); }
__global__ void halfway(char *p, long long i) { *(long long *)(p + i) = 1; }
__global__ void waits(int *p) {
  if (threadIdx.x < 16) __syncwarp(0x00ffffff);
  else if (threadIdx.x < 24) asm volatile("bar.sync 3, 64;");
}
__global__ void both_sides(int n) {
  if (threadIdx.x / 32 == n) asm volatile("bar.sync 1, 96;");
  else asm volatile("bar.sync 2, 96;");
}
__global__ void spinning(volatile int *p) {
  while (p[0] == 0)
    p[1] = 1;
}
__device__ int next(int x) { return x + 1; }
__global__ void calling(int *p, long long f) {
  p[0] = (f ? (int (*)(int))f : next)(p[0]);
}
__global__ void meeting(int id, int n) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(n));
}
__global__ void word(char *p, long long i) { p[0] = *(int *)(p + i); }
}
]=])
local function k(name, ...)
  module:kernel(name):launch({ grid = 1, block = 1 }, ...)
end
local function report(fn, ...)
  local ok, e = pcall(fn, ...)
  if ok then
    print "ok"
  elseif type(e) == "string" then
    print("string", (e:gsub("\n", "\n\t")))
  else
    print("code", e.code)
    print("number", e.number)
    print("kernel", e.kernel)
    print("where", e.where)
    print("text", (tostring(e):gsub("\n", "\n\t")))
  end
end
local sync = tp.default_stream().synchronize
local function wait() return sync(tp.default_stream()) end
local b = tp.zeros("i32", 256)
wait()
]===]

local LINES = select(2, PRELUDE:gsub("\n", ""))

-- Runs a case; returns its result and the fields that report() printed.
local function case(body, options)
  -- launches are written out, so that each stands on the line of its case
  body = body:gsub('%f[%w]k%("(%w+)"',
    'module:kernel "%1":launch({ grid = 1, block = 1 }')
    :gsub('threads%((%d+), "([%w_]+)"',
      'module:kernel "%2":launch({ grid = 2, block = %1 }')
  local r = run.script(PRELUDE .. body .. "\nos.exit(0, false)\n", options)
  local fields = {}
  for name, value in r.stdout:gmatch "(%w+)\t([^\n]*)" do
    fields[name] = fields[name] or value
  end
  fields.text = r.stdout:match "text\t(.-)\n%f[%w\0]" or fields.text
  return r, fields
end

-- Which lanes wait where, when it is noticed, and whether freed memory is told: a
-- seed may have it otherwise.
local UNSEEDED = { env = { TPSTREAM_SIM_SEED = false } }

local FAULTS = {
  { "a store far away", 'k("store", b, 1 << 40)', 700,
    "cudaErrorIllegalAddress", "store" },
  { "a load far away", 'k("load", b, -(1 << 40))', 700,
    "cudaErrorIllegalAddress", "load" },
  { "a store through a null pointer", 'k("store", nil, 0)', 700,
    "cudaErrorIllegalAddress", "store" },
  { "a misaligned access", 'k("wide", tp.zeros("i8", 64), 4)', 716,
    "cudaErrorMisalignedAddress", "wide" },
  { "an assertion", 'k("failing", 5)', 710, "cudaErrorAssert", "failing" },
  { "a trap", 'threads(64, "trapping", 40)', 719, "cudaErrorLaunchFailure",
    "trapping" },
  { "a barrier of 33 threads", 'k("meeting", 1, 33)', 715,
    "cudaErrorIllegalInstruction", "meeting" },
  { "a call to where no function is", 'k("calling", b, 64)', 700,
    "cudaErrorIllegalAddress", "calling" },
  { "recursion past the stack", 'k("deep", b)', 700,
    "cudaErrorIllegalAddress", "deep" },
}

describe("a fault:", function()
  for _, row in ipairs(FAULTS) do
    local name, body, number, code, kernel = table.unpack(row)
    it(name .. " is " .. code, function()
      if kernel == "calling" and tp.current_device():kind() ~= "sim" then
        return pending "needs the simulated device: an H200 may hang"
      end
      local r, f = case(body .. "\nreport(wait)")
      assert.equal(0, r.status, r.stderr)
      assert.equal(code, f.code, r.stdout)
      assert.equal(tostring(number), f.number)
      assert.equal(kernel, f.kernel)
      assert.equal(r.path .. ":" .. LINES + 1, f.where)
      assert.matches(kernel, f.text)
      assert.matches(r.path .. ":" .. LINES + 1, f.text, 1, true)
    end)
  end

  it("the call that launches returns before it is noticed", function()
    local r = case 'k("store", nil, 0)\nprint "launched"\nreport(wait)'
    assert.matches("launched\ncode", r.stdout)
  end)

  it("is sticky and quoted by every later call", function()
    local r = case [[
k("store", nil, 0)
pcall(wait)
local s = tp.default_stream()
for _, call in ipairs { wait,
  function() tp.buffer("f32", 4) end, function() tp.Stream() end,
  function() k("fine", b) end, function() b:read() end,
  function() b:fill(1) end, function() b:write({ 1 }) end,
  function() tp.Event():record() end, function() s:query() end,
  function() tp.current_device():synchronize() end,
  function() b:copy_to(b, { first = 1, count = 1, at = 2 }) end } do
  local ok, e = pcall(call)
  print(ok, not ok and e.code, not ok and tostring(e):match("store") ~= nil)
end]]
    assert.equal(0, r.status, r.stderr)
    local _, lines = r.stdout:gsub("false\tcudaErrorIllegalAddress\ttrue\n", "")
    assert.equal(11, lines, r.stdout)
  end)

  it("is quoted by whatever uses the device, the first one always", function()
    local r = case [[
local fine, failing = module:kernel "fine", module:kernel "failing"
local one, d = { grid = 1, block = 1 }, tp.current_device()
local go = fine:bind(one)
local c, h = tp.zeros("i32", 4), tp.pinned("i32", 4)
local s, t = tp.Stream(), tp.Stream()
local e, f, never = tp.Event(true), tp.Event(true), tp.Event()
e:record() f:record()
local timer, image = tp.timer(s), module:ptx()
d:synchronize()
k("store", nil, 0)
pcall(d.synchronize, d)
for _, row in ipairs {
  { "zeros", tp.zeros, "i32", 4 }, { "pinned", tp.pinned, "i32", 4 },
  { "bytes", b.bytes, b }, { "read pinned", h.read, h },
  { "synchronize", s.synchronize, s, 0 }, { "query", s.query, s },
  { "record_event", s.record_event, s }, { "record", e.record, e },
  { "again", s.record_event, s, e }, { "wait_event", s.wait_event, s, e },
  { "wait", e.wait, e }, { "event query", e.query, e },
  { "event synchronize", e.synchronize, e },
  { "elapsed_time", e.elapsed_time, e, f },
  { "wait_stream", s.wait_stream, s, t }, { "barrier", tp.barrier, s, t },
  { "on_complete", s.on_complete, s, print }, { "timer", tp.timer, s },
  { "stop", timer.stop, timer }, { "memory", d.memory, d },
  { "launch", failing.launch, failing, one, 5 }, { "bound", go, b },
  { "forall", fine.forall, fine, 1, b }, { "benchmark", tp.benchmark, print },
  { "copy_to", b.copy_to, b, c, { count = 1 } }, { "load", tp.load, image },
  { "ExternalStream", tp.ExternalStream, 2 },
} do
  local ok, err = pcall(table.unpack(row, 2))
  if ok or type(err) ~= "table" or err.code ~= "cudaErrorIllegalAddress"
    or not tostring(err):match "has faulted: .*store" then
    print(row[1], ok, err)
  end
end
for _, row in ipairs { -- these need no device
  { s.priority, s }, { s.device, s }, { s.id, s }, { tostring, s },
  { never.query, never }, { b.slice, b, 1, 1 }, { d.name, d }, { tp.poll },
  { tp.with_stream, s, type, 1 }, { tp.memory_stats },
} do
  print(pcall(table.unpack(row)))
end]]
    assert.equal(0, r.status, r.stderr)
    local _, lines = r.stdout:gsub("true[^\n]*\n", "")
    assert.equal(10, lines, r.stdout)
    assert.not_matches("false", r.stdout)
  end)

  it("leaves closing silent", function()
    local r = case [[
local s, e = tp.Stream(), tp.Event()
e:record(s)
local c = tp.pinned("i32", 5)
k("store", nil, 0)
pcall(wait)
s:close() e:close() b:close() c:close() module:close()
collectgarbage() collectgarbage()
print "closed"]]
    assert.equal("closed\n", r.stdout)
    assert.equal("", r.stderr)
  end)

  it("makes the host's exit status 1 and shows itself", function()
    local path = run.script(PRELUDE .. 'k("store", nil, 0)\n')
    if path.stdout and run.interpreter():match "tpstream" then
      assert.equal(1, path.status)
      assert.matches("cudaErrorIllegalAddress", path.stderr)
      assert.matches("store", path.stderr)
    end
  end)

  it("on one stream is seen from another", function()
    local r, f = case [[
local s <const> = tp.Stream()
tp.with_stream(s, k, "store", nil, 0)
report(function() tp.current_device():synchronize() end)]]
    assert.equal(0, r.status, r.stderr)
    assert.equal("cudaErrorIllegalAddress", f.code)
  end)

  it("ends a process that leaves work queued behind it", function()
    local r = case [[
k("store", nil, 0)
for i = 1, 200 do k("fine", b) if pcall(wait) == false then break end end
print "end"]]
    assert.is_nil(r.timed_out)
  end)
end)

describe("an assertion", function()
  it("prints CUDA's line for each thread that failed", function()
    local r = case('threads(2, "failing", 9)\nreport(wait)')
    local printed, found = r.stdout .. r.stderr, 0
    for thread = 0, 1 do
      local line = ("program.cu:%%d+: .*failing.*: block: %%[%%d,0,0%%], "
        .. "thread: %%[%d,0,0%%] Assertion `.*n < 3.*` failed%%.")
        :format(thread)
      if printed:find(line) then found = found + 1 end
    end
    -- a seed may stop one lane before the other gets there
    local least = os.getenv "TPSTREAM_SIM_SEED" and 1 or 2
    assert.is_true(found >= least, printed)
  end)
end)

describe("no fault:", function()
  it("a kernel after a refused launch runs", function()
    local r = case [[
report(k, "fine", "not a buffer")
k("fine", b)
print(b:read()[1])]]
    assert.matches("\n7\n$", r.stdout)
  end)

  it("out of memory is not sticky", function()
    local r = case [[
pcall(tp.buffer, "u8", 1 << 50)
k("fine", b)
print(b:read()[1])]]
    assert.equal("7\n", r.stdout)
  end)
end)

if simulated then
  describe("the simulated device", function()
    it("tells kernel, block, thread, source line and the nearest allocation",
      function()
        local r, f = case [[
local small = tp.zeros("i32", 10)
threads(4, "store", small, 10)
report(wait)]]
        assert.equal("cudaErrorIllegalAddress", f.code, r.stdout .. r.stderr)
        assert.matches("store", f.text)
        assert.matches("4 bytes", f.text)
        assert.matches("program.cu:3", f.text, 1, true)
        assert.matches("block %(%d,0,0%)", f.text)
        assert.matches("thread %(%d,0,0%)", f.text)
        assert.matches("1 byte after the nearest allocation at 0x%x+ of 40 bytes",
          f.text)
        assert.matches(r.path .. ":" .. LINES + 1, f.text, 1, true)
      end)

    it("says where it was launched though a buffer was made there, too", function()
      local r, f = case [[

k("store", tp.zeros("i32", 10), 10)
report(wait)]]
      local there = r.path .. ":" .. LINES + 2
      assert.matches("made at " .. there, f.text, 1, true)
      assert.matches("launched at " .. there, f.text, 1, true)
    end)

    it("names the source as the script did", function()
      local _, f = case [[
local m = tp.compile('\nextern "C" __global__ void there(int *p) { *p = 1; }',
  { name = "my kernels.cu" })
m:kernel "there":launch({ grid = 1, block = 1 }, nil)
report(wait)]]
      assert.matches("my kernels.cu:2", f.text, 1, true)
    end)

    it("notices what is out of bounds by little", function()
      for _, i in ipairs { 256, -1, 300, 1 << 18 } do
        local _, f = case(('k("store", b, %d)\nreport(wait)'):format(i))
        assert.equal("cudaErrorIllegalAddress", f.code)
      end
    end)

    it("names use after free and the line of the free", function()
      local r, f = case([[
local dead = tp.zeros("i32", 64)
local address = dead:ptr()
wait()
dead:close()
wait()
local m = program("through", 'extern "C" __global__ void through(long long p) {'
  .. ' *(int *)p = 1; }')
m:kernel "through":launch({ grid = 1, block = 1 }, address)
report(wait)]], UNSEEDED)
      assert.equal("cudaErrorIllegalAddress", f.code, r.stdout .. r.stderr)
      assert.matches("freed", f.text)
      assert.matches(r.path .. ":" .. LINES + 4, f.text, 1, true)
    end)

    it("finds shared memory out of range", function()
      local r, f = case('threads(32, "shared_far", b, 1 << 20)\nreport(wait)')
      assert.equal("cudaErrorIllegalAddress", f.code, r.stdout .. r.stderr)
      assert.matches("shared", f.text)
    end)

    it("says that the stack ran over", function()
      local _, f = case('k("deep", b)\nreport(wait)')
      assert.matches("stack", f.text)
    end)

    it("says where an access is misaligned", function()
      local _, f = case('k("wide", tp.zeros("i8", 64), 8)\nreport(wait)')
      assert.matches("misaligned", f.text)
      assert.matches("16 bytes", f.text)
      assert.matches("program.cu:5", f.text, 1, true)
    end)

    it("names both lines of barriers that can never meet", function()
      local r, f = case('threads(32, "odd_even", b)\nreport(wait)', UNSEEDED)
      assert.equal("cudaErrorLaunchFailure", f.code, r.stdout .. r.stderr)
      assert.matches("program.cu:22", f.text, 1, true)
      assert.matches("program.cu:23", f.text, 1, true)
      assert.matches("lanes 0x55555555 at barrier 0", f.text)
      assert.matches("lanes 0xaaaaaaaa at barrier 0", f.text)
    end)

    -- An access, and what the fault says of it; PATH is the script.
    local NEAR = {
      { "past a buffer", 'local x = tp.zeros("i32", 10) threads(4, "store", x, 11)',
        "kernel 'store', block %(%d,0,0%), thread %(%d,0,0%), program.cu:3: "
        .. "store of 4 bytes at address 0x%x+: 5 bytes after the nearest "
        .. "allocation at 0x%x+ of 40 bytes %(int32 buffer%), made at PATH:1 " },
      { "before a buffer", 'local x = tp.zeros("f64", 1) k("load", nil, '
        .. 'x:ptr() // 4 - 2)', "load of 4 bytes at address 0x%x+: 8 bytes "
        .. "before the nearest allocation at 0x%x+ of 8 bytes "
        .. "%(float64 buffer%), made at PATH:1 " },
      { "across the end", 'k("halfway", tp.zeros("i8", 12), 8)', "store of 8 "
        .. "bytes at address 0x%x+: it crosses the end of the allocation at "
        .. "0x%x+ of 12 bytes %(int8 buffer%), made at PATH:1 " },
      { "a word across the end", 'k("word", tp.zeros("i8", 6), 4)', "load of 4 "
        .. "bytes at address 0x%x+: it crosses the end of the allocation at "
        .. "0x%x+ of 6 bytes %(int8 buffer%), made at PATH:1 " },
      { "past pinned memory", 'k("store", tp.pinned("i32", 3), 3)',
        "1 byte after the nearest pinned allocation at 0x%x+ of 12 bytes "
        .. "%(int32 buffer%), made at PATH:1 " },
      { "freed pinned memory", 'local h = tp.pinned("i32", 3) local a = h:ptr()'
        .. ' h:close() wait() k("store", nil, a // 4)',
        "the pinned allocation at 0x%x+ of 12 bytes %(int32 buffer%), made at "
        .. "PATH:1, was freed at PATH:1 " },
      { "an atomic operation", 'k("atomic_far", b, 256)',
        "atomic operation of 4 bytes at address 0x%x+: 1 byte after" },
      { "a null pointer", 'k("store", nil, 5)', "address 0x14: a null pointer" },
      { "a variable", 'threads(1, "table_far", 17)', "5 bytes after the "
        .. "nearest variable 'table' at 0x%x+ of 64 bytes " },
      -- What the runtime itself keeps on the device is no place for kernels.
      { "where writes are staged", 'local x = tp.buffer("i32", 8) x:write'
        .. '{ 1, 2, 3, 4, 5, 6, 7, 8 } k("store", x, 100000)',
        "399969 bytes after the nearest allocation at 0x%x+ of 32 bytes "
        .. "%(int32 buffer%), made at PATH:1 " },
      { "where reads are staged", 'local x = tp.zeros("i32", 8) x:read() '
        .. 'k("load", x, 100000)', "399969 bytes after the nearest allocation "
        .. "at 0x%x+ of 32 bytes %(int32 buffer%), made at PATH:1 " },
      { "what carries types", 'k("store", nil, '
        .. '(module:global "weights":ptr() + 256 + 4096) // 4)',
        "4337 bytes after the nearest constant 'weights' at " },
      { "a shared array", 'threads(32, "shared_far", b, 33)', "load of 4 bytes "
        .. "at address 0x84: 5 bytes past shared array 's' of 128 bytes %(the "
        .. "block has 128 bytes of shared memory%)" },
      { "dynamic shared memory", 'module:kernel "dynamic_far":launch('
        .. '{ grid = 1, block = 1, shared = 64 }, 20)', "17 bytes past dynamic "
        .. "shared array 'tile' of 64 bytes" },
      { "local memory", 'threads(1, "local_far", b, 9)', "5 bytes past the end "
        .. "of the 32 bytes of local memory %(stack%)" },
      { "the stack", 'k("deep", b)', "stack overflow: call of 'endless' at "
        .. "depth %d+ needs more than the %d+ bytes of stack of a thread" },
    }
    for _, row in ipairs(NEAR) do
      local name, body, text = table.unpack(row)
      it("says what lies nearest: " .. name, function()
        local r, f = case(body .. "\nreport(wait)")
        local path = r.path:gsub("%p", "%%%0") .. ":"
        text = text:gsub("PATH:1", (path:gsub("%%", "%%%%")) .. LINES + 1)
        assert.matches(text, f.text)
      end)
    end

    it("says what a grid's synchronization needs", function()
      local _, f = case([[
local m = tp.load [=[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
  .loc 1 180 0
  trap;
  ret;
}
.file 1 "/usr/include/cooperative_groups.h"
]=]
m:kernel "k":launch { grid = 1, block = 1 }
report(wait)]])
      assert.matches("the kernel executed a trap (grid synchronization needs "
        .. "cooperative = true)", f.text, 1, true)
      _, f = case('threads(1, "trapping", 0) report(wait)')
      assert.matches("the kernel executed a trap (cuda", f.text, 1, true)
    end)

    it("counts who is at each barrier of a deadlock", function()
      local _, f = case('threads(64, "both_sides", 0)\nreport(wait)', UNSEEDED)
      assert.equal("cudaErrorLaunchFailure", f.code)
      assert.matches("deadlock: no thread can go on; warp 0 waits at barrier 1 "
        .. "(program.cu:46), which has 32 of 96 threads; warp 1 waits at "
        .. "barrier 2 (program.cu:47), which has 32 of 96 threads", f.text, 1,
        true)
    end)

    it("names the lanes that a synchronization waits for", function()
      local _, f = case('threads(32, "waits", b)\nreport(wait)', UNSEEDED)
      assert.equal("cudaErrorLaunchFailure", f.code)
      assert.matches("lanes 0x0000ffff wait for lanes 0x00ff0000 "
        .. "(program.cu:42)", f.text, 1, true)
      assert.matches("lanes 0x00ff0000 wait at barrier 3 (program.cu:43), "
        .. "which has 8 of 64 threads", f.text, 1, true)
      assert.matches("8 of 32 threads have ended", f.text, 1, true)
    end)

    it("ends a kernel that never ends when the time is up", function()
      local r, f = case([[
local m = program("forever", 'extern "C" __global__ void forever(volatile int *p)'
  .. ' { while (p[0] == 0) {} }')
m:kernel "forever":launch({ grid = 4, block = 32 }, b)
report(wait)]], { env = { TPSTREAM_SIM_TIMEOUT = "0.5" } })
      assert.equal("cudaErrorLaunchTimeout", f.code, r.stdout .. r.stderr)
      assert.equal("702", f.number)
      assert.matches("forever", f.text)
    end)

    it("tells where it was and how long it ran", function()
      local _, f = case('threads(64, "spinning", b)\nreport(wait)',
        { env = { TPSTREAM_SIM_TIMEOUT = "0.2" } })
      assert.equal("702", f.number)
      assert.matches("kernel 'spinning', block %(%d,0,0%), "
        .. "thread %(%d+,0,0%), program.cu:5[012]: still running after 0.2 s "
        .. "%(TPSTREAM_SIM_TIMEOUT%)", f.text)
    end)

    it("tells what the others waited for meanwhile", function()
      local _, f = case([[
local m = program("half_spins", 'extern "C" __global__ void half(volatile int *p)'
  .. ' { if (threadIdx.x >= 32) while (p[0] == 0) {}; __syncthreads(); p[1] = 1; }')
m:kernel "half":launch({ grid = 1, block = 96 }, b)
report(wait)]], { env = { TPSTREAM_SIM_TIMEOUT = "0.2" } })
      assert.equal("702", f.number)
      assert.matches("block (0,0,0), thread (32,0,0), program.cu:1: still running",
        f.text, 1, true)
      assert.matches("(TPSTREAM_SIM_TIMEOUT); warp 0 waits at barrier 0 "
        .. "(program.cu:1), which has 32 of 96 threads; warps 1 to 2 go on "
        .. "(program.cu:1)", f.text, 1, true)
    end)

    it("ends at once by Ctrl-C under a kernel that never ends", function()
      local begin = os.time()
      local r = case([[
module:kernel "spinning":launch({ grid = 64, block = 64 }, b)
wait()]], { signal = "INT", after = 3 })
      assert.equal(1, r.status, r.stderr)
      assert.matches("interrupted!", r.stderr)
      assert.is_true(os.time() - begin < 10)
    end)

    it("a kernel that spins waits for another stream's", function()
      local r = case [[
local s <const>, t <const> = tp.Stream(), tp.Stream()
tp.current_device():synchronize()
tp.with_stream(s, function()
  module:kernel "spinning":launch({ grid = 64, block = 256 }, b)
end)
tp.with_stream(t, k, "fine", b)
tp.current_device():synchronize()
print(b:read()[1])]]
      assert.equal("7\n", r.stdout, r.stderr)
    end)

    it("reports a deadlock", function()
      local r, f = case [[
local m = program("lonely", 'extern "C" __global__ void lonely() {'
  .. ' if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); }')
m:kernel "lonely":launch({ grid = 1, block = 64 })
report(wait)]]
      assert.equal("cudaErrorLaunchFailure", f.code, r.stdout .. r.stderr)
      assert.matches("deadlock", f.text)
      assert.matches("barrier 1", f.text)
    end)

    it("refuses an instruction it lacks when the module is loaded", function()
      local r = case [[
report(tp.load, [=[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
  wgmma.fence.sync.aligned;
  ret;
}
]=])]]
      assert.matches("wgmma.fence.sync.aligned", r.stdout, 1, true)
      assert.matches("line 5", r.stdout)
      assert.matches("not supported", r.stdout)
    end)

    it("one faulted device leaves another alone", function()
      local r = case([[
k("store", nil, 0)
pcall(wait)
tp.set_device(1)
local c = tp.buffer("i32", { 1, 2 })
print(table.concat(c:read(), " "))]], { env = { TPSTREAM_SIM_DEVICES = "2" } })
      assert.equal("1 2\n", r.stdout)
    end)
  end)
end
