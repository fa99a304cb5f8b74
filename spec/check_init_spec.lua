-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The init check (docs/checking.md): reads of bytes that nobody wrote, in each kind
-- of memory, and the ways in which bytes come to be written.
local tp = require "tpstream"
local checking = require "spec.support.checking"
local program = require "spec.support.program"

local SOURCE = [=[
extern "C" {
__global__ void copy(int *to, const int *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i]; // @copy
}
__global__ void put(char *p, int at) { p[at] = 1; }
__global__ void pick(int *to, const char *from, int at) {
  to[0] = *(const int *)(from + at); // @pick
}
__global__ void pick_char(int *to, const char *from, int at) {
  to[0] = from[at]; // @pick_char
}
__global__ void pick_four(int *to, const char *from, int at) {
  int4 v = *(const int4 *)(from + at); // @pick_four
  to[0] = v.x + v.y + v.z + v.w;
}
struct padded { char kind; int value; };
__global__ void fields(char *p) {
  padded *s = (padded *)p + threadIdx.x;
  s->kind = 1;
  s->value = 2;
}
__global__ void whole(char *to, const char *from) {
  ((padded *)to)[threadIdx.x] = ((const padded *)from)[threadIdx.x];
}
__global__ void count(int *p) {
  atomicAdd(p + threadIdx.x, 1); // @count
}
__global__ void reverse(int *p, int n) {
  __shared__ int s[64];
  if (threadIdx.x < n) s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  p[threadIdx.x] = s[63 - threadIdx.x]; // @reverse
}
__global__ void dynamic(int *p, int n) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = 1;
  __syncthreads();
  p[threadIdx.x] = tile[n]; // @dynamic
}
__global__ void local(int *p, int filled, int at) {
  volatile int a[16];
  for (int i = 0; i < filled; i++) a[i] = i;
  p[threadIdx.x] = a[at]; // @local
}
__device__ __noinline__ int fills(int at) {
  volatile int a[16];
  for (int i = 0; i < 16; i++) a[i] = i;
  return a[at];
}
__device__ __noinline__ int looks(int at) {
  volatile int a[16];
  a[0] = 1;
  return a[at]; // @looks
}
__global__ void frames(int *p, int at) {
  p[threadIdx.x] = fills(at) + looks(at);
}
__global__ void heap(int *p, int at) {
  int *m = (int *)malloc(64);
  m[1] = 3;
  p[threadIdx.x] = m[at]; // @heap
  free(m);
}
__device__ int table[64];
__global__ void globals(int *p) { p[threadIdx.x] = table[threadIdx.x]; }
}
]=]

local findings = require "spec.support.findings" ("check_init", SOURCE, "init")
local fine, one, expect = findings.fine, findings.one, findings.expect
local FIRST = "thread (0,0,0) in block (0,0,0)"

local function title(space, size)
  return ("Uninitialized __%s__ memory read of size %d bytes"):format(space, size)
end

describe("the init check", function()
  require "spec.support.simulated" (setup, teardown)
  local sink
  local ONE, MANY = { 1, 1 }, { 1, 64 }

  setup(function() sink = tp.zeros("i32", 256) end)
  teardown(function() sink:close() end)

  it("tells reads of a new buffer, with the line that made it", function()
    local line
    local text, report = one(function(k)
      local b <close> = tp.buffer("i32", 64)
      line = debug.getinfo(1, "l").currentline - 1
      k("copy", MANY, sink, b, 64)
    end)
    local more = expect(text, title("global", 4), "copy", "copy", FIRST)
    assert.truthy(more:find("^    Address 0x%x+\n    and is inside the nearest "
      .. "allocation at 0x%x+ of size 256 bytes\n"))
    assert.truthy(more:find(("made at spec/check_init_spec.lua:%d (int32 buffer)")
      :format(line), 1, true), more)
    assert.equal("init", report.check)
    assert.equal("copy", report.kernel)
  end)

  it("tells the first thread that reads behind what was written", function()
    local text = one(function(k)
      local b <close> = tp.buffer("i32", 64)
      k("copy", MANY, b, sink, 40)
      k("copy", MANY, sink, b, 64)
    end)
    expect(text, title("global", 4), "copy", "copy",
      "thread (40,0,0) in block (0,0,0)")
  end)

  it("knows what kernels, copies, fills and the host have written", function()
    fine(function(k)
      local values <close> = tp.buffer("i32", { 1, 2, 3, 4 })
      local zeros <close> = tp.zeros("i32", 64)
      local b <close> = tp.buffer("i32", 64)
      local c <close> = tp.buffer("i32", 64)
      k("copy", MANY, sink, values, 4)
      k("copy", MANY, sink, zeros, 64)
      k("copy", MANY, b, zeros, 64)
      b:copy_to(c)
      k("copy", MANY, sink, c, 64)
      k("copy", MANY, sink, tp.pinned("i32", 64), 64)
      k("copy", MANY, sink, tp.managed("i32", 64), 64)
      k("globals", MANY, sink)
    end)
  end)

  it("lets large copies and fills go in parts", function()
    fine(function(k)
      local n <const> = 300000
      local b <close> = tp.zeros("i32", n)
      local c <close> = tp.buffer("i32", n)
      b:copy_to(c)
      local to <close> = tp.buffer("i32", n)
      k("copy", { (n + 255) // 256, 256 }, to, c, n)
    end)
  end)

  it("follows copies between buffers a byte exactly", function()
    math.randomseed(20261201)
    for _ = 1, 20 do
      local size, from, to = 400, math.random(0, 99), math.random(0, 99)
      local count, at = math.random(1, 300), math.random(0, 399)
      local written = {}
      local function run(k)
        local b <close> = tp.buffer("i8", size)
        local c <close> = tp.buffer("i8", size)
        for _ = 1, 30 do
          local i = math.random(0, size - 1)
          written[i] = true
          k("put", ONE, b, i)
        end
        b:copy_to(c, { first = from + 1, at = to + 1, count = count })
        k("pick_char", ONE, sink, c, at)
      end
      local source = at - to + from
      local reports = findings.all(run)
      local good = at >= to and at < to + count and written[source] or false
      assert.equal(good, #reports == 0)
    end
  end)

  -- An odd seed hands it out again with what it holds.
  local odd = (math.tointeger(os.getenv "TPSTREAM_SIM_SEED" or 0) or 0) % 2 == 1
  local it_if_new = odd and pending or it
  it_if_new("tells memory that was freed and is new again", function()
    local text = one(function(k)
      local b = tp.zeros("i32", 64)
      k("copy", MANY, sink, b, 64)
      b:close()
      tp.current_device():synchronize()
      local c <close> = tp.buffer("i32", 64)
      k("copy", MANY, sink, c, 64)
    end)
    expect(text, title("global", 4), "copy", "copy", FIRST)
  end)

  it("lets structures be read with their padding", function()
    fine(function(k)
      local a <close> = tp.buffer("i8", 64 * 8)
      local b <close> = tp.buffer("i8", 64 * 8)
      k("fields", MANY, a)
      k("whole", MANY, b, a)
      local c <close> = tp.buffer("i8", 16)
      k("put", ONE, c, 3)
      k("pick", ONE, sink, c, 0)
    end)
  end)

  it("but not elements of which no byte was written", function()
    local text = one(function(k)
      local c <close> = tp.buffer("i8", 48)
      for _, i in ipairs { 0, 7, 12 } do k("put", ONE, c, i) end
      k("pick_four", ONE, sink, c, 0)
    end)
    local base = tonumber(text:match "allocation at (0x%x+)")
    assert.truthy(expect(text, title("global", 4), "pick_four", "pick_four", FIRST)
      :find(("Address 0x%x\n"):format(base + 8), 1, true))
  end)

  it("tells atomic operations, which read", function()
    local text = one(function(k)
      local b <close> = tp.buffer("i32", 72)
      k("count", MANY, b)
      k("count", MANY, b)
    end)
    expect(text, title("global", 4), "count", "count", FIRST)
  end)

  it("takes every block's shared memory for new", function()
    fine(function(k) k("reverse", { 3, 64 }, sink, 64) end)
    local text = one(function(k)
      k("reverse", MANY, sink, 64)
      k("reverse", MANY, sink, 32)
    end)
    expect(text, title("shared", 4), "reverse", "reverse", FIRST)
    text = one(function()
      local dynamic = findings.module():kernel "dynamic"
      for _, n in ipairs { 0, 40 } do
        dynamic:launch({ grid = 1, block = 32, shared = 256 }, sink, n)
      end
    end)
    assert.truthy(expect(text, title("shared", 4), "dynamic", "dynamic", FIRST)
      :find("Address 0xa0", 1, true))
  end)

  it("takes CUB's folder for CUB, and no other's", function()
    local function run(name, path)
      local module <close> = program(name, [[
extern "C" __global__ void tail(int *p) {
  __shared__ int s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = 1;
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x];
}]], { name = path })
      return #checking.found({ "init" }, function()
        module:kernel "tail":launch({ grid = 1, block = 64 }, sink)
      end)
    end
    assert.equal(0, run("check_init_cub", "include/cub/tail.cuh"))
    assert.equal(1, run("check_init_mycub", "mycub/tail.cuh"))
  end)

  it("takes the stack of every call for new", function()
    fine(function(k)
      k("local", MANY, sink, 16, 15)
      k("local", MANY, sink, 3, 2)
      k("frames", MANY, sink, 0)
    end)
    expect(one(function(k)
      k("local", MANY, sink, 16, 5)
      k("local", MANY, sink, 5, 5)
    end), title("local", 4), "local", "local", FIRST)
    expect(one(function(k) k("frames", MANY, sink, 5) end), title("local", 4),
      "looks", "looks", FIRST)
  end)

  it("takes what malloc returns for new", function()
    fine(function(k) k("heap", MANY, sink, 1) end)
    expect(one(function(k) k("heap", MANY, sink, 0) end), title("global", 4),
      "heap", "heap", FIRST)
  end)

  it("takes what is older than itself for written", function()
    local b <close> = tp.buffer("i32", 64)
    fine(function(k) k("copy", MANY, sink, b, 64) end)
  end)

  it("takes all for written that was there while it was off", function()
    local b
    fine(function() b = tp.buffer("i32", 64) end)
    findings.module():kernel "copy":launch({ grid = 1, block = 64 }, b, sink, 64)
    fine(function(k) k("copy", MANY, sink, b, 64) end)
    b:close()
  end)
end)
