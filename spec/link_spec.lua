-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Compile: tp.link and relocatable modules.
local tp = require "tpstream"
local errors = require "spec.support.errors"

local raised = errors.text

local USER = [[
extern __device__ int factor;
extern __constant__ int table[4];
extern __device__ int twice(int x);
static __device__ int own = 3;
static __device__ __noinline__ int helper(int x) { return x + own; }
extern "C" __global__ void user(int *p, const int *q) {
  *p = helper(twice(*q)) + factor * table[threadIdx.x + 1];
}
]]
local MAKER = [[
__device__ int factor = 5;
__constant__ int table[4] = { 100, 200, 300, 400 };
static __device__ int own = 1;
static __device__ __noinline__ int helper(int x) { return x - own; }
__device__ int twice(int x) { return helper(2 * x); }
template <class T> __device__ T shared_by_all(T x) { return x; }
template __device__ int shared_by_all<int>(int);
extern "C" __global__ void maker(int *p) { *p = own; }
]]
local THIRD = [[
template <class T> __device__ T shared_by_all(T x) { return x; }
extern "C" __global__ void third(int *p) { *p = shared_by_all(7); }
]]
local ONE = { grid = 1, block = 1 }

local modules = {}

-- Compiles once, or takes the PTX that has been kept for machines without NVRTC.
local function relocatable(name)
  if not modules[name] then
    local source = ({ user = USER, maker = MAKER, third = THIRD })[name]
    local path = "spec/ptx/link_" .. name .. ".ptx"
    local ok, module = pcall(tp.compile, source, {
      relocatable = true, name = "program.cu",
    })
    if ok and os.getenv "TPS_WRITE_PTX" then
      local file <close> = assert(io.open(path, "wb"))
      file:write((module:ptx():gsub("^.-(%.version)", "%1")))
    elseif not ok then
      if module.code ~= "TPSTREAM_ERROR_NO_COMPILER" then error(module, 0) end
      module = tp.load(path, { relocatable = true })
    end
    modules[name] = module
  end
  return modules[name]
end

describe("tp.link", function()
  it("makes one module of several, in whatever order", function()
    local out <close> = tp.buffer("i32", { 0, 21 })
    for _, order in ipairs {
      { "user", "maker" }, { "maker", "user" }, { "third", "user", "maker" },
      { "maker", "third", "user" },
    } do
      local list = {}
      for i, name in ipairs(order) do list[i] = relocatable(name) end
      local module = tp.link(list)
      module:kernel "user":launch(ONE, out:slice(1, 1), out:slice(2, 1))
      assert.equal(2 * 21 - 1 + 3 + 5 * 200, out:read()[1])
      module:kernel "maker":launch(ONE, out)
      assert.equal(1, out:read()[1])
      module:close()
    end
  end)

  it("has all kernels and variables, and what is known of them", function()
    local module = tp.link { relocatable "user", relocatable "maker",
      relocatable "third" }
    local names = module:kernels()
    table.sort(names)
    assert.same({ "maker", "third", "user" }, names)
    assert.equal(2, #module:kernel "user":params())
    local factor <close> = module:global "factor"
    assert.same({ 5 }, factor:read())
    factor:write { 1 }
    local out <close> = tp.buffer("i32", { 0, 1 })
    module:kernel "user":launch(ONE, out:slice(1, 1), out:slice(2, 1))
    assert.equal(2 - 1 + 3 + 200, out:read()[1])
    assert.matches("%.version", module:ptx())
    module:close()
  end)

  it("gives each linked module variables of its own", function()
    local a = tp.link { relocatable "user", relocatable "maker" }
    local b = tp.link { relocatable "user", relocatable "maker" }
    local x <close> = a:global "factor"
    local y <close> = b:global "factor"
    x:write { 9 }
    assert.same({ 5 }, y:read())
    a:close()
    b:close()
  end)

  it("keeps apart what each module calls the same, however much", function()
    local function part(kernel, by)
      local t = { ".version 8.0\n.target sm_80\n.address_size 64\n" }
      for i = 1, 400 do
        t[#t + 1] = ([[
.global .u32 v%d = %d;
.func (.param .u32 r) f%d() {
  .reg .b32 %%r<2>;
  ld.global.u32 %%r1, [v%d];
  st.param.u32 [r], %%r1;
  ret;
}
]]):format(i, by * i, i, i)
      end
      t[#t + 1] = (".visible .entry %s(.param .u64 p) {\n.reg .b32 %%r<4>;\n"
        .. ".reg .b64 %%rd<2>;\nmov.u32 %%r1, 0;\n"):format(kernel)
      for i = 1, 400 do
        t[#t + 1] = ("{ .param .u32 r; call.uni (r), f%d; ld.param.u32 %%r2, [r]; }\n"
          .. "add.u32 %%r1, %%r1, %%r2;\n"):format(i)
      end
      t[#t + 1] = "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], %r1;\nret;\n}\n"
      return tp.load(table.concat(t), { relocatable = true })
    end
    local parts = { part("a", 1), part("b", 3), part("c", 7) }
    local module = tp.link(parts)
    local out <close> = tp.zeros("u32", 1)
    for name, by in pairs { a = 1, b = 3, c = 7 } do
      module:kernel(name):launch(ONE, out)
      assert.same({ by * 400 * 401 // 2 }, out:read())
    end
    module:close()
    for _, each in ipairs(parts) do each:close() end
  end)

  it("names what is missing and what is there twice", function()
    assert.matches("'twice%(int%)' is used in module 1 and defined in no module",
      raised(tp.link, { relocatable "user" }))
    assert.matches("'[%w_:<>%(%)]+' is defined in module 1 and in module 2",
      raised(tp.link, { relocatable "maker", relocatable "maker" }))
    assert.matches("^spec/link_spec.lua:%d+: ",
      raised(function() tp.link { relocatable "user" } end))
  end)

  it("refuses what can't be linked", function()
    assert.matches("bad argument #1 to 'link' %(the table has no modules%)",
      raised(tp.link, {}))
    assert.matches("table expected", raised(tp.link, relocatable "user"))
    assert.matches("element 2: tpstream.Module expected, got number",
      raised(tp.link, { relocatable "user", 1 }))
    local plain = tp.load [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
]]
    assert.matches("module 2 was not compiled to be linked "
      .. "%(relocatable=true%)", raised(tp.link, { relocatable "user", plain }))
    plain:close()
    assert.matches("closed module", raised(tp.link, { plain }))
  end)
end)

describe("a relocatable module", function()
  it("runs nothing before it is linked", function()
    local module = relocatable "user"
    assert.same({ "user" }, module:kernels())
    assert.matches("the module is relocatable: its kernels can run once it is "
      .. "linked %(tp.link%)", raised(module.kernel, module, "user"))
    assert.matches("it can run once it is linked",
      raised(module.global, module, "own"))
  end)

  it("is what NVRTC's own options make, too", function()
    local ok, module = pcall(tp.compile, THIRD, { options = { "-rdc=true" } })
    if not ok then error(module, 0) end
    local linked = tp.link { module }
    local out <close> = tp.zeros("i32", 1)
    linked:kernel "third":launch(ONE, out)
    assert.same({ 7 }, out:read())
    linked:close()
    module:close()
  end)

  it("is refused at once for what the simulated device will not run", function()
    if tp.current_device():kind() ~= "sim" then
      pending "the simulated device's"
      return
    end
    local head = ".version 8.0\n.target %s\n.address_size 64\n"
    local function said(text, target)
      return errors.message(tp.load, head:format(target or "sm_80") .. text,
        { relocatable = true })
    end
    assert.equal("function 'cudaLaunchDeviceV2' of the device's runtime is not "
      .. "supported by the simulated device (PTX line 7) (cudaErrorNotSupported)",
      said [[
.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);
.visible .func helper() {
  .param .b32 r; .param .b64 a; .param .b64 b;
  call.uni (r), cudaLaunchDeviceV2, (a, b);
  ret;
}]])
    assert.equal("instruction 'wgmma.fence.sync.aligned' is not supported by the "
      .. "simulated device (PTX line 4) (cudaErrorNotSupported)",
      said ".visible .func f() { wgmma.fence.sync.aligned; ret; }")
    assert.equal("the module is for sm_120 (the simulated device has capability 8.0) "
      .. "(cudaErrorNoKernelImageForDevice)", said("", "sm_120"))
    local ok, e = pcall(tp.compile, [[
__global__ void child(int *x) { *x = 1; }
__global__ void parent(int *x) { child<<<1, 1>>>(x); }]], { relocatable = true })
    assert.is_false(ok)
    if e.code == "TPSTREAM_ERROR_NO_COMPILER" then error(e, 0) end
    assert.matches("of the device's runtime is not supported by the simulated device",
      e.message, 1, true)
  end)

  it("may use what is nowhere yet", function()
    local before = tp.memory_stats().live_bytes
    local module = tp.load([[
.version 8.0
.target sm_80
.address_size 64
.extern .global .u32 table[];
.extern .const .u32 one;
.extern .func (.param .u32 r) f(.param .u32 x);
.visible .global .u64 address = table;
.visible .global .u64 pointer = f;
.visible .entry k(.param .u64 p) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.const.u32 %r1, [one];
  { .param .u32 x; .param .u32 r; st.param.u32 [x], %r1;
    call.uni (r), f, (x); ld.param.u32 %r2, [r]; }
  ld.global.u32 %r3, [table+4];
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd1], %r2;
  ret;
}]], { relocatable = true })
    assert.equal(before, tp.memory_stats().live_bytes)
    local other = tp.load([[
.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 table[2] = { 1, 20 };
.visible .const .u32 one = 5;
.visible .func (.param .u32 r) f(.param .u32 x) {
  .reg .b32 %r<2>;
  ld.param.u32 %r1, [x];
  mul.lo.u32 %r1, %r1, 3;
  st.param.u32 [r], %r1;
  ret;
}]], { relocatable = true })
    local linked <close> = tp.link { module, other }
    local out <close> = tp.zeros("u32", 1)
    linked:kernel "k":launch(ONE, out)
    assert.same({ 35 }, out:read())
    module:close()
    other:close()
  end)

  it("can be loaded from PTX, not from a binary", function()
    local module = tp.load([[
.version 8.0
.target sm_80
.address_size 64
.extern .func f;
.visible .entry g() { call.uni f; ret; }
]], { relocatable = true })
    assert.matches("'f' is used in module 1", raised(tp.link, { module }))
    module:close()
    assert.matches("only PTX can be linked",
      raised(tp.load, "\x50\xed\x55\xba\1\0\x10\0" .. ("\0"):rep(8),
        { relocatable = true }))
  end)
end)
