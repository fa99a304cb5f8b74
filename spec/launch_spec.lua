-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Launch. The kernels' names are mangled, so that their
-- PTX alone tells the parameters' types; extern "C" is compile_spec's.
local tp = require "tpstream"
local message_of = require("spec.support.errors").text
local numbers = require "spec.support.numbers"
local pair = require "spec.support.pair"
local program = require "spec.support.program"

local SOURCE = [=[
struct Pair { char a; double b; };
template <class T> __device__ void store(T *o, T v) { o[0] = v; }
__global__ void take_i8(signed char *o, signed char v) { store(o, v); }
__global__ void take_u8(unsigned char *o, unsigned char v) { store(o, v); }
__global__ void take_i16(short *o, short v) { store(o, v); }
__global__ void take_u16(unsigned short *o, unsigned short v) { store(o, v); }
__global__ void take_i32(int *o, int v) { store(o, v); }
__global__ void take_u32(unsigned *o, unsigned v) { store(o, v); }
__global__ void take_i64(long long *o, long long v) { store(o, v); }
__global__ void take_u64(unsigned long long *o, unsigned long long v) {
  store(o, v);
}
__global__ void take_f32(float *o, float v) { store(o, v); }
__global__ void take_f64(double *o, double v) { store(o, v); }
__global__ void take_bool(bool *o, bool v) { store(o, v); }
__global__ void take_char(char *o, char v) { store(o, v); }
__global__ void take_pair(double *o, Pair p) { o[0] = p.a + p.b; }
__global__ void is_null(int *o, const float *p) { o[0] = p == nullptr; }
__global__ void vectors(float4 *o, const float2 *p) { o[0].w = p[0].y; }
__global__ void opaque(void *o, const Pair *p) { *(double *)o = p->b; }
__global__ void nothing() {}
__global__ void where(int *o) {
  int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  o[b * (blockDim.x * blockDim.y * blockDim.z) + t] = b * 10000 + t;
}
__global__ void shared_size(unsigned *o) {
  extern __shared__ char dynamic[];
  unsigned n;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n));
  if (n) dynamic[n - 1] = 1;
  o[0] = n;
}
__global__ void static_shared(int *o) {
  __shared__ int s[2048];
  extern __shared__ int d[];
  s[threadIdx.x] = threadIdx.x;
  d[threadIdx.x] = s[threadIdx.x];
  __syncthreads();
  o[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x] + d[threadIdx.x];
}
__global__ void __launch_bounds__(64) at_most_64(int *o) { o[0] = blockDim.x; }
__global__ void index(int *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = i * 3;
}
__global__ void mixed(int *o, unsigned short v, const double *p) {
  o[0] = v + (int)p[0];
}
namespace ns { __global__ void inner(int *o) { o[0] = 77; } }
]=]

local module
local one = { grid = 1, block = 1 }

setup(function() module = program("launch", SOURCE) end)
teardown(function() module:close() end)

local function launch(name, shape, ...)
  local kernel <close> = module:kernel(name)
  kernel:launch(shape, ...)
end

local INTEGERS = { -- kernel, dtype, least, most
  { "take_i8", "int8", -128, 127 },
  { "take_u8", "uint8", 0, 255 },
  { "take_i16", "int16", -32768, 32767 },
  { "take_u16", "uint16", 0, 65535 },
  { "take_i32", "int32", -2147483648, 2147483647 },
  { "take_u32", "uint32", 0, 4294967295 },
  { "take_i64", "int64", math.mininteger, math.maxinteger },
  { "take_u64", "uint64", math.mininteger, math.maxinteger },
}

describe("a scalar argument", function()
  for _, row in ipairs(INTEGERS) do
    local name, dtype, least, most = table.unpack(row)
    it(dtype .. " takes its whole range", function()
      local o <close> = tp.zeros(dtype, 1)
      local g = numbers.generator(#dtype)
      for _, v in ipairs { least, most, 0, 1, least == math.mininteger
        and g.bits() or g.int(least, most) } do
        launch(name, one, o, v)
        assert.equal(v, o:read()[1])
      end
      launch(name, one, o, 5.0)
      assert.equal(5, o:read()[1])
    end)

    it(dtype .. " refuses what does not fit", function()
      local o <close> = tp.zeros(dtype, 1)
      local bad = { 0.5, 0 / 0, math.huge, -math.huge, "1", true, {}, print,
        1e30 }
      if least ~= math.mininteger then
        bad[#bad + 1] = least - 1
        bad[#bad + 1] = most + 1
      end
      for _, v in ipairs(bad) do
        local text = message_of(launch, name, one, o, v)
        assert.matches("kernel '" .. name .. "': argument #2 %([%w ]+%): ", text)
        assert.matches(type(v) ~= "number" and "number expected, got " .. type(v)
          or (v == 0.5 or v ~= v) and "is not a whole number, as " .. dtype
          or "does not fit " .. dtype .. " %(", text)
      end
      assert.same({ 0 }, o:read())
    end)
  end

  it("out of range names value and type", function()
    local o <close> = tp.zeros("u8", 1)
    local text = message_of(launch, "take_u8", one, o, 256)
    assert.matches("256", text)
    assert.matches("unsigned char", text)
    assert.matches("'take_u8'", text)
  end)

  it("float32 rounds and keeps infinities and NaN", function()
    local o <close> = tp.zeros("f32", 1)
    for _, v in ipairs { 0.1, -1 / 3, math.huge, -math.huge, -0.0, 7 } do
      launch("take_f32", one, o, v)
      assert.equal(numbers.bits32(v), numbers.bits32(o:read()[1]))
    end
    launch("take_f32", one, o, 0 / 0)
    local r = o:read()[1]
    assert.is_true(r ~= r)
    assert.matches("argument #2 (float): 1e+39 does not fit float32",
      message_of(launch, "take_f32", one, o, 1e39), 1, true)
    for _, bad in ipairs { "1", true, {} } do
      assert.matches("argument #2 (float): number expected, got " .. type(bad),
        message_of(launch, "take_f32", one, o, bad), 1, true)
    end
  end)

  it("float64 keeps every bit", function()
    local o <close> = tp.zeros("f64", 1)
    for _, v in ipairs { 0.1, 5e-324, -0.0, math.huge, 2 ^ 53 + 2, 3 } do
      launch("take_f64", one, o, v)
      assert.equal(numbers.bits64(v), numbers.bits64(o:read()[1]))
    end
  end)

  it("bool takes booleans and no numbers", function()
    local o <close> = tp.zeros("u8", 1)
    launch("take_bool", one, o, true)
    assert.same({ 1 }, o:read())
    launch("take_bool", one, o, false)
    assert.same({ 0 }, o:read())
    for _, bad in ipairs { 1, 0, "true" } do
      local text = message_of(launch, "take_bool", one, o, bad)
      assert.matches("bool", text)
    end
    assert.matches("argument #2 (bool): boolean expected, got nil",
      message_of(launch, "take_bool", one, o, nil), 1, true)
  end)

  it("char* takes int8 and uint8", function()
    local a <close> = tp.zeros("i8", 1)
    local b <close> = tp.zeros("u8", 1)
    launch("take_char", one, a, -3)
    launch("take_char", one, b, 3)
    assert.same({ -3 }, a:read())
    assert.same({ 3 }, b:read())
  end)

  it("a struct is a string of exactly its size", function()
    local o <close> = tp.zeros("f64", 1)
    launch("take_pair", one, o, string.pack("<bxxxxxxxd", 3, 0.25))
    assert.same({ 3.25 }, o:read())
    for _, bad in ipairs { string.pack("<bd", 3, 0.25), "", ("x"):rep(17) } do
      assert.matches("argument #2 (Pair): string of 16 bytes expected, got one of "
        .. #bad, message_of(launch, "take_pair", one, o, bad), 1, true)
    end
    for _, bad in ipairs { 5, {}, true } do
      assert.matches("argument #2 (Pair): string of 16 bytes expected, got "
        .. type(bad), message_of(launch, "take_pair", one, o, bad), 1, true)
    end
    assert.matches("got nil", message_of(launch, "take_pair", one, o, nil))
  end)
end)

describe("a pointer argument", function()
  it("nil is a null pointer, also a trailing one", function()
    local o <close> = tp.zeros("i32", 1)
    local x <close> = tp.zeros("f32", 1)
    launch("is_null", one, o, nil)
    assert.same({ 1 }, o:read())
    launch("is_null", one, o, x)
    assert.same({ 0 }, o:read())
    local kernel <close> = module:kernel "is_null"
    assert.matches("2 arguments expected, got 1", -- not given is not nil
      message_of(kernel.launch, kernel, one, o))
  end)

  it("checks the element type", function()
    local i <close> = tp.zeros("i32", 4)
    local f <close> = tp.zeros("f32", 4)
    local d <close> = tp.zeros("f64", 4)
    assert.matches("kernel 'take_i32': argument #1 (int*): a buffer of int32 "
      .. "expected, got one of float32", message_of(launch, "take_i32", one, f, 1), 1,
      true)
    for _, case in ipairs {
      { "#1 (unsigned int*): ", "int32", "take_u32", i, 1 },
      { "#2 (float const*): ", "float64", "is_null", i, d },
      { "#1 (bool*): ", "int32", "take_bool", i, true },
      { "#3 (double const*): ", "float32", "mixed", i, 1, f },
    } do
      local text = message_of(launch, case[3], one, table.unpack(case, 4))
      assert.matches(("kernel '%s': argument %s"):format(case[3], case[1]), text,
        1, true)
      assert.matches(case[2], text, 1, true)
    end
    launch("mixed", one, i, 9, d)
    assert.equal(9, i:read()[1])
  end)

  it("to a vector takes its elements", function()
    local o <close> = tp.zeros("f32", 4)
    local p <close> = tp.buffer("f32", { 1, 2.5 })
    launch("vectors", one, o, p)
    assert.same({ 0, 0, 0, 2.5 }, o:read())
    local i <close> = tp.zeros("i32", 4)
    assert.matches("argument #1 (float4*): ", message_of(launch, "vectors", one,
      i, p), 1, true)
  end)

  it("to void or a struct takes anything", function()
    local o <close> = tp.zeros("f64", 1)
    local p <close> = tp.buffer("u8", string.pack("<i8d", 0, 6.5))
    launch("opaque", one, o, p)
    assert.same({ 6.5 }, o:read())
  end)

  it("takes slices", function()
    local o <close> = tp.zeros("i32", 4)
    local s <close> = o:slice(3, 1)
    launch("take_i32", one, s, 8)
    assert.same({ 0, 0, 8, 0 }, o:read())
  end)

  it("refuses numbers, strings and closed buffers", function()
    local o = tp.zeros("i32", 1)
    for _, bad in ipairs { 0, 1.5, "x", {}, true, print } do
      assert.matches("kernel 'take_i32': argument #1 (int*): tpstream.Buffer "
        .. "or nil expected, got " .. type(bad),
        message_of(launch, "take_i32", one, bad, 1), 1, true)
    end
    for _, bad in ipairs { "x", {}, true, print } do
      assert.matches("kernel 'take_i32': argument #2 (int): number expected, "
        .. "got " .. type(bad), message_of(launch, "take_i32", one, o, bad), 1,
        true)
    end
    o:close()
    assert.matches("closed buffer", message_of(launch, "take_i32", one, o, 1))
  end)

  it("refuses memory of another kind of device, naming both", function()
    local here = tp.current_device()
    local there = tp.device "sim"
    if there == here then
      pending "needs a GPU beside the simulated device"
      return
    end
    local o <close> = tp.buffer("i32", 1, { device = there })
    local text = message_of(launch, "take_i32", one, o, 1)
    for _, d in ipairs { here, there } do
      assert.matches(("%s:%d"):format(d:kind(), d:index()), text, 1, true)
    end
  end)
end)

describe("a kernel", function()
  it("works on every device, the launch goes to the stream's", function()
    local devices = { pair.devices() }
    devices[#devices + 1] = tp.current_device()
    local kernel <close> = module:kernel "take_i32"
    local go = kernel:bind(one)
    for i, device in ipairs(devices) do
      local s <close> = tp.Stream(device)
      local o <close> = tp.buffer("i32", { 0 }, { stream = s })
      kernel:launch({ grid = 1, block = 1, stream = s }, o, i)
      assert.same({ i }, tp.with_stream(s, o.read, o))
      tp.with_stream(s, function()
        go(o, -i) -- bound without a stream: on the one current at the call
        assert.same({ -i }, o:read())
      end)
    end
  end)
end)

describe("the number of arguments", function()
  it("must be the kernel's", function()
    local o <close> = tp.zeros("i32", 1)
    for _, args in ipairs { { n = 0 }, { o, n = 1 }, { o, 1, 2, n = 3 },
      { o, 1, nil, n = 3 }, { o, 1, nil, 3, n = 4 } } do
      local text = message_of(launch, "take_i32", one,
        table.unpack(args, 1, args.n))
      assert.matches(("kernel 'take_i32': 2 arguments expected, got %d "
        .. "(take_i32(int*, int))"):format(args.n), text, 1, true)
    end
    local kernel <close> = module:kernel "take_i32"
    local go = kernel:bind(one)
    assert.matches("kernel 'take_i32': 2 arguments expected, got 3",
      message_of(go, o, 1, 2), 1, true)
    launch("nothing", one)
    assert.matches("kernel 'nothing': 0 arguments expected, got 1",
      message_of(launch, "nothing", one, 1))
  end)
end)

describe("the shape", function()
  it("has up to three dimensions", function()
    local function run(grid, block, n)
      local o <close> = tp.zeros("i32", n)
      launch("where", { grid = grid, block = block }, o)
      local r, threads = o:read(), 1
      if type(block) == "table" then
        for _, b in ipairs(block) do threads = threads * b end
      else
        threads = block
      end
      for i = 0, n - 1 do
        assert.equal(i // threads * 10000 + i % threads, r[i + 1])
      end
    end
    run(3, 40, 120)
    run({ 2, 3 }, { 5, 7 }, 210)
    run({ 2, 1, 3 }, { 3, 2, 4 }, 144)
    run({ 4 }, { 33 }, 132)
  end)

  -- Each: the shape, and what the refusal says of it.
  for name, case in pairs {
    ["a zero in the grid"] = { { grid = 0, block = 1 },
      "field 'grid': dimensions are at least 1, got 0" },
    ["a zero in the block"] = { { grid = 1, block = { 1, 0 } },
      "field 'block': dimensions are at least 1, got 0" },
    ["a negative grid"] = { { grid = -1, block = 1 },
      "field 'grid': dimensions are at least 1, got -1" },
    ["a fraction"] = { { grid = 1.5, block = 1 },
      "field 'grid': 1.5 is not a whole number" },
    ["NaN"] = { { grid = 1, block = 0 / 0 }, "nan is not a whole number" },
    ["a string"] = { { grid = "1", block = {} },
      "field 'grid': number or table expected, got string" },
    ["no grid"] = { { block = 1 }, "field 'grid': must be given" },
    ["no block"] = { { grid = 1 }, "field 'block': must be given" },
    ["an empty table"] = { { grid = {}, block = 1 },
      "field 'grid': 1 to 3 dimensions expected, got 0" },
    ["four dimensions"] = { { grid = { 1, 1, 1, 1 }, block = 1 },
      "field 'grid': 1 to 3 dimensions expected, got 4" },
    ["a block of 1025"] = { { grid = 1, block = 1025 },
      "kernel 'nothing': block of 1025 threads (this kernel allows 1024)" },
    ["a block of 64 x 17"] = { { grid = 1, block = { 64, 17 } },
      "kernel 'nothing': block of 1088 threads (this kernel allows 1024)" },
    ["a block with z 65"] = { { grid = 1, block = { 1, 1, 65 } },
      "block of 65 threads in z (this device allows 64)" },
    ["a grid with y 65536"] = { { grid = { 1, 65536 }, block = 1 },
      "grid of 65536 blocks in y (this device allows 65535)" },
    ["a grid with z 65536"] = { { grid = { 1, 1, 65536 }, block = 1 },
      "grid of 65536 blocks in z (this device allows 65535)" },
    ["a grid of 2^31"] = { { grid = 1 << 31, block = 1 },
      "grid of 2147483648 blocks in x (this device allows 2147483647)" },
    ["a huge block"] = { { grid = 1, block = math.maxinteger },
      "block of 9223372036854775807 threads in x (this device allows" },
    ["an overflowing block"] = { { grid = 1, block = { 1 << 32, 1 << 32 } },
      "block of 4294967296 threads in x (this device allows" },
    ["negative shared memory"] = { { grid = 1, block = 1, shared = -1 },
      "field 'shared': must not be negative, got -1" },
    ["shared memory of a fraction"] = { { grid = 1, block = 1, shared = 0.5 },
      "field 'shared': 0.5 is not a whole number" },
    ["too much shared memory"] = { { grid = 1, block = 1, shared = 1 << 20 },
      "0 bytes of static and 1048576 of dynamic shared memory (this device "
        .. "allows " },
    ["an unknown field"] = { { grid = 1, block = 1, blocks = 2 },
      "unknown option 'blocks' (there are grid, block, " },
    ["what is no stream"] = { { grid = 1, block = 1, stream = 5 },
      "field 'stream': tpstream.Stream expected, got number" },
    ["a cooperative that is no boolean"] = { { grid = 1, block = 1,
      cooperative = 1 }, "field 'cooperative': boolean expected, got number" },
    ["a cooperative grid that does not fit"] = { { grid = 1 << 30, block = 1,
      cooperative = true }, "cooperative grid of 1073741824 blocks (" },
  } do
    it("refuses " .. name, function()
      local shape, text = table.unpack(case)
      local kernel <close> = module:kernel "nothing"
      for _, call in ipairs { kernel.launch, kernel.bind } do
        assert.matches(text, message_of(call, kernel, shape), 1, true)
      end
    end)
  end

  it("refuses clusters below capability 9.0, saying the device's", function()
    local kernel <close> = module:kernel "nothing"
    tp.with_device("sim", function()
      local major, minor = tp.current_device():capability()
      if major >= 9 then return end
      assert.matches(("kernel 'nothing': clusters need compute capability 9.0 "
        .. "(this device has %d.%d)"):format(major, minor), message_of(
        kernel.launch, kernel, { grid = 2, block = 1, cluster = 2 }), 1, true)
    end)
  end)

  it("refuses what is no table", function()
    for _, bad in ipairs { 1, "x", true } do
      assert.matches("table expected, got " .. type(bad),
        message_of(launch, "nothing", bad), 1, true)
    end
    assert.matches("table expected, got n", message_of(launch, "nothing"))
  end)

  it("names the bound that broke", function()
    local o <close> = tp.zeros("i32", 1)
    for _, case in ipairs {
      { "kernel 'nothing': block of 2048 threads (this kernel allows 1024)",
        "nothing", { grid = 1, block = 2048 } },
      { "kernel 'at_most_64': block of 65 threads (this kernel allows 64)",
        "at_most_64", { grid = 1, block = 65 }, o },
      { "kernel 'nothing': grid of 70000 blocks in y (this device allows 65535)",
        "nothing", { grid = { 1, 70000 }, block = 1 } },
    } do
      assert.matches(case[1], message_of(launch, table.unpack(case, 2)), 1, true)
    end
    launch("at_most_64", { grid = 1, block = 64 }, o)
    assert.same({ 64 }, o:read())
  end)

  it("gives device errors CUDA's codes", function()
    local _, e = message_of(launch, "nothing", { grid = 1, block = 1025 })
    if type(e) ~= "string" then
      assert.equal("cudaErrorInvalidValue", e.code)
    end
  end)

  it("takes the most of each", function()
    launch("nothing", { grid = 1, block = 1024 })
    launch("nothing", { grid = 1, block = { 1, 1, 64 } })
    launch("nothing", { grid = { 1, 65535 }, block = 1 })
    tp.current_stream():synchronize()
  end)

  it("runs on the stream it names", function()
    local s <close> = tp.Stream()
    local o <close> = tp.zeros("i32", 1)
    launch("take_i32", { grid = 1, block = 1, stream = s }, o, 4)
    s:synchronize()
    assert.same({ 4 }, o:read())
  end)
end)

describe("shared memory", function()
  it("dynamic: the kernel has what was asked for", function()
    local o <close> = tp.zeros("u32", 1)
    for _, n in ipairs { 0, 1, 1000, 49152 } do
      launch("shared_size", { grid = 1, block = 1, shared = n }, o)
      assert.equal(n, o:read()[1])
    end
  end)

  it("over 48 KiB is opted into by itself", function()
    local o <close> = tp.zeros("u32", 1)
    local most = tp.current_device():properties().shared_per_block_optin
    launch("shared_size", { grid = 1, block = 1, shared = 100000 }, o)
    assert.equal(100000, o:read()[1])
    launch("shared_size", { grid = 1, block = 1, shared = most }, o)
    assert.equal(most, o:read()[1])
    local text = message_of(launch, "shared_size",
      { grid = 1, block = 1, shared = most + 1 }, o)
    assert.matches(tostring(most), text, 1, true)
    assert.matches(tostring(most + 1), text, 1, true)
  end)

  it("static and dynamic together count", function()
    local o <close> = tp.zeros("i32", 64)
    launch("static_shared", { grid = 1, block = 64, shared = 45000 }, o)
    for _, v in ipairs(o:read()) do assert.equal(63, v) end
    local most = tp.current_device():properties().shared_per_block_optin
    local text = message_of(launch, "static_shared",
      { grid = 1, block = 64, shared = most - 8000 }, o)
    assert.matches("8192", text)
  end)
end)

describe("bind", function()
  it("launches with a fixed shape", function()
    local o <close> = tp.zeros("i32", 100)
    local kernel <close> = module:kernel "index"
    local go = kernel:bind { grid = 4, block = 32 }
    for n = 1, 100 do go(o, n) end
    local r = o:read()
    for i = 0, 99 do assert.equal(i * 3, r[i + 1]) end
  end)

  it("uses the stream current at each call", function()
    local o <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local s <close> = tp.Stream()
    local kernel <close> = module:kernel "take_i32"
    local go = kernel:bind(one)
    tp.with_stream(s, go, o, 12)
    s:synchronize()
    assert.same({ 12 }, o:read())
  end)

  it("with a stream keeps it", function()
    local s <close> = tp.Stream()
    local o <close> = tp.zeros("i32", 1)
    tp.current_stream():synchronize()
    local kernel <close> = module:kernel "take_i32"
    local go = kernel:bind { grid = 1, block = 1, stream = s }
    go(o, 3)
    s:synchronize()
    assert.same({ 3 }, o:read())
    local t = tp.Stream()
    local other = kernel:bind { grid = 1, block = 1, stream = t }
    t:close()
    assert.matches("closed stream", message_of(other, o, 1))
  end)

  it("is refused after its kernel or module is closed", function()
    local m = program("launch", SOURCE)
    local kernel = m:kernel "nothing"
    local go = kernel:bind(one)
    go()
    kernel:close()
    assert.matches("closed kernel", message_of(go))
    local other = m:kernel "nothing"
    local gone = other:bind(one)
    m:close()
    assert.matches("attempt to use a closed kernel", message_of(gone))
    assert.matches("attempt to use a closed kernel",
      message_of(other.launch, other, one))
  end)

  it("makes no garbage on the fast path", function()
    local o <close> = tp.zeros("i32", 1)
    local kernel <close> = module:kernel "take_i32"
    local go = kernel:bind(one)
    for i = 1, 50 do go(o, i) end
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    for i = 1, 1000 do go(o, i) end
    local after = collectgarbage "count"
    collectgarbage "restart"
    tp.current_stream():synchronize()
    assert.is_true(after - before < 1, after - before)
  end)
end)

describe("forall", function()
  it("covers any count", function()
    local kernel <close> = module:kernel "index"
    for _, n in ipairs { 1, 31, 32, 33, 1000, 100003 } do
      local o <close> = tp.zeros("i32", n)
      kernel:forall(n, o, n)
      local r = o:read()
      assert.equal((n - 1) * 3, r[n])
      assert.equal(0, r[1])
      assert.equal((n // 2) * 3, r[n // 2 + 1] or 0)
    end
  end)

  it("of none launches nothing", function()
    local kernel <close> = module:kernel "index"
    kernel:forall(0, nil, 0)
    tp.current_stream():synchronize()
  end)

  it("refuses a bad count", function()
    local kernel <close> = module:kernel "index"
    for bad, text in pairs {
      [-1] = "the count must not be negative, got -1",
      [0.5] = "number has no integer representation",
      [math.huge] = "number has no integer representation",
      x = "number expected, got string", [{}] = "number expected, got table",
    } do
      assert.matches("bad argument #2 to 'forall' (" .. text .. ")",
        message_of(kernel.forall, kernel, bad, nil, 0), 1, true)
    end
    assert.matches("no integer representation",
      message_of(kernel.forall, kernel, 0 / 0, nil, 0))
    assert.matches("blocks in x (this device allows 2147483647)",
      message_of(kernel.forall, kernel, math.maxinteger, nil, 0), 1, true)
    assert.matches("number expected, got no value",
      message_of(kernel.forall, kernel))
  end)
end)

describe("a kernel", function()
  it("is found by its plain name and in a namespace", function()
    local o <close> = tp.zeros("i32", 1)
    launch("ns::inner", one, o)
    assert.same({ 77 }, o:read())
    launch("take_i32", one, o, 3)
    assert.same({ 3 }, o:read())
    local k <close> = module:kernel "mixed"
    assert.equal("mixed", k:name())
  end)

  it("unknown lists the names there are", function()
    local text = message_of(module.kernel, module, "take_i33")
    assert.matches("no kernel 'take_i33' in the module (it has 'take_i32', ", text, 1,
      true)
    assert.matches("'mixed'", text)
  end)

  it("names are listed", function()
    local names = {}
    for _, n in ipairs(module:kernels()) do names[n] = true end
    assert.is_true(names.take_i32)
    assert.is_true(names.mixed)
  end)

  it("refuses a name that is no string", function()
    for _, bad in ipairs { {}, true } do
      assert.matches("string expected, got " .. type(bad),
        message_of(module.kernel, module, bad))
    end
    assert.matches("string expected, got n", message_of(module.kernel, module))
    assert.matches("the name is empty", message_of(module.kernel, module, ""))
    assert.matches("must not contain NUL",
      message_of(module.kernel, module, "a\0b"))
  end)

  it("describes its parameters", function()
    local k <close> = module:kernel "mixed"
    local p = k:params()
    assert.equal(3, #p)
    assert.is_true(p[1].pointer)
    assert.matches("int", p[1].type)
    assert.equal(8, p[1].size)
    assert.equal(0, p[1].offset)
    assert.is_false(p[1].const)
    assert.matches("short", p[2].type)
    assert.equal(2, p[2].size)
    assert.equal(8, p[2].offset)
    assert.is_false(p[2].pointer)
    assert.is_true(p[3].const)
    assert.equal(16, p[3].offset)
    assert.equal("read", p[3].access)
    assert.equal("write", p[1].access)
  end)

  it("has attributes within bounds", function()
    local k <close> = module:kernel "static_shared"
    local a = k:attributes()
    assert.is_true(a.registers >= 1 and a.registers <= 255)
    assert.equal(8192, a.shared_bytes)
    assert.equal(1024, a.max_threads)
    assert.is_true(a.max_dynamic_shared >= 0)
    assert.is_true(a.local_bytes >= 0)
    assert.is_true(a.const_bytes >= 0)
    for key, value in pairs(a) do assert.equal("integer", math.type(value), key) end
    local b <close> = module:kernel "at_most_64"
    assert.equal(64, b:attributes().max_threads)
  end)

  it("tells its occupancy", function()
    local k <close> = module:kernel "static_shared"
    local blocks = k:occupancy(128)
    assert.is_true(blocks >= 1 and blocks <= 32)
    assert.is_true(k:occupancy(1024) <= blocks)
    assert.equal(0, k:occupancy(1025))
    assert.is_true(k:occupancy(128, 40000) < k:occupancy(128))
    assert.equal(0, k:occupancy(128, 1 << 20))
    assert.equal(0, k:max_cooperative_grid(128, 1 << 20))
    assert.equal(0, k:max_cooperative_grid(4096))
    for _, bad in ipairs { 0, -1 } do
      assert.matches("a block has at least one thread",
        message_of(k.occupancy, k, bad))
    end
    assert.matches("shared memory must not be negative",
      message_of(k.occupancy, k, 32, -1))
    local multiprocessors = tp.current_device():properties().multiprocessors
    assert.equal(multiprocessors * blocks, k:max_cooperative_grid(128))
  end)

  it("cooperative grids are limited", function()
    local k <close> = module:kernel "nothing"
    local most = k:max_cooperative_grid(1024)
    k:launch({ grid = most, block = 1024, cooperative = true })
    local _, e = message_of(k.launch, k,
      { grid = most + 1, block = 1024, cooperative = true })
    assert.equal("cudaErrorCooperativeLaunchTooLarge", e.code)
    assert.equal(720, e.number)
    assert.matches(tostring(most), tostring(e), 1, true)
    tp.current_stream():synchronize()
  end)

  it("closed is refused", function()
    local k = module:kernel "nothing"
    k:close()
    k:close()
    for _, call in ipairs { "launch", "bind", "forall", "attributes", "params",
      "occupancy", "name" } do
      assert.matches("attempt to use a closed kernel",
        message_of(k[call], k, one))
    end
    assert.matches("closed", tostring(k))
  end)
end)
