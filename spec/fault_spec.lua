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
  { "recursion past the stack", 'k("deep", b)', 700,
    "cudaErrorIllegalAddress", "deep" },
}

describe("a fault:", function()
  for _, row in ipairs(FAULTS) do
    local name, body, number, code, kernel = table.unpack(row)
    it(name .. " is " .. code, function()
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
    local printed = r.stdout .. r.stderr
    for thread = 0, 1 do
      assert.matches(("program.cu:%%d+: .*failing.*: block: %%[%%d,0,0%%], "
        .. "thread: %%[%d,0,0%%] Assertion `.*n < 3.*` failed%%.")
        :format(thread), printed)
    end
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
        assert.matches("0 bytes after", f.text)
        assert.matches("40", f.text)
        assert.matches(r.path .. ":" .. LINES + 1, f.text, 1, true)
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
      local r, f = case [[
local dead = tp.zeros("i32", 64)
local address = dead:ptr()
wait()
dead:close()
wait()
local m = program("through", 'extern "C" __global__ void through(long long p) {'
  .. ' *(int *)p = 1; }')
m:kernel "through":launch({ grid = 1, block = 1 }, address)
report(wait)]]
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
      local r, f = case('threads(32, "odd_even", b)\nreport(wait)')
      assert.equal("cudaErrorLaunchFailure", f.code, r.stdout .. r.stderr)
      assert.matches("program.cu:22", f.text, 1, true)
      assert.matches("program.cu:23", f.text, 1, true)
      assert.matches("barrier", f.text)
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
