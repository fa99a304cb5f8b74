-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Arguments beyond plain numbers and buffers (those are launch_spec's): enums,
-- halves, structs, wide integers, many and large parameters; and what is told of
-- them.
local tp = require "tpstream"
local program = require "spec.support.program"

local MANY = {} -- the parameters of `many`, 300 of them, by type
local ADDED = {}
for i = 1, 300 do
  MANY[i] = ({ "double", "int", "short" })[i % 3 + 1] .. " a" .. i
  ADDED[i] = ("a%d * %d"):format(i, i % 7 + 1)
end

local SOURCE = [=[
#include <cuda_fp16.h>
#include <cuda_bf16.h>
enum Color { RED, GREEN = 300 };
enum class Small : unsigned char { A, B };
enum class Wide : long long { A };
struct Pair { char a; double b; };
struct Outer { Pair p[3]; short s; };
struct alignas(16) Padded { float x, y, z; };
struct Large { int v[8189]; };
__global__ void enums(long long *o, Color c, Small s, Wide w) {
  o[0] = c; o[1] = (int)s; o[2] = (long long)w;
}
__global__ void halves(float *o, __half h, __nv_bfloat16 b) {
  o[0] = __half2float(h); o[1] = __bfloat162float(b);
}
__global__ void structs(double *o, Pair p, Outer q, Padded r) {
  o[0] = p.a; o[1] = p.b; o[2] = q.p[2].b; o[3] = q.s; o[4] = r.z;
}
__global__ void vectors(float *o, float4 v, int2 w, double3 d) {
  o[0] = v.w; o[1] = w.y; o[2] = d.z;
}
__global__ void array(double *o, const Pair *p, int n) {
  o[0] = 0;
  for (int i = 0; i < n; i++) o[0] += p[i].a * p[i].b;
}
__global__ void wide(unsigned long long *o, __int128 x, unsigned __int128 y) {
  o[0] = x; o[1] = x >> 64; o[2] = y; o[3] = y >> 64;
}
__global__ void texts(int *o, char c, wchar_t w, char16_t u, char32_t v) {
  o[0] = c; o[1] = w; o[2] = u; o[3] = v;
}
__global__ void large(int *o, Large x) { o[0] = x.v[0]; o[1] = x.v[8188]; }
__global__ void uses(int *read, int *written, int *both, const int *constant,
                     int **passed, const void *opaque, Pair p) {
  written[0] = read[0] + constant[0];
  atomicAdd(both, 1);
  passed[0] = read;
}
__global__ void many(double *o, ]=] .. table.concat(MANY, ", ")
  .. ") {\n  o[0] = " .. table.concat(ADDED, "\n    + ") .. ";\n}\n"

local module
local one = { grid = 1, block = 1 }

setup(function() module = program("arguments", SOURCE) end)
teardown(function() module:close() end)

local function launch(name, ...)
  local k <close> = module:kernel(name)
  k:launch(one, ...)
end

local function message(name, ...)
  local ok, e = pcall(launch, name, ...)
  assert.is_false(ok, "an error was expected")
  return (tostring(e):gsub("^[^ ]+ ", ""))
end

describe("an argument", function()
  it("for an enum is an integer of its width", function()
    local o <close> = tp.zeros("i64", 3)
    launch("enums", o, 300, 255, math.mininteger)
    assert.same({ 300, 255, math.mininteger }, o:read())
    assert.equal("kernel 'enums': argument #2 (Color): 4294967296 does not fit 32 "
      .. "bits (-2147483648 to 4294967295)", message("enums", o, 1 << 32, 0, 0))
    assert.equal("kernel 'enums': argument #3 (Small): 256 does not fit 8 bits "
      .. "(-128 to 255)", message("enums", o, 0, 256, 0))
    assert.equal("kernel 'enums': argument #2 (Color): integer expected, got "
      .. "string", message("enums", o, "RED", 0, 0))
  end)

  it("for a half is a number or a half of that type", function()
    local o <close> = tp.zeros("f32", 2)
    launch("halves", o, 1.5, 2.5)
    assert.same({ 1.5, 2.5 }, o:read())
    launch("halves", o, tp.f16(0.1), tp.bf16(0.1))
    assert.same({ tp.f16(0.1):value(), tp.bf16(0.1):value() }, o:read())
    assert.equal("kernel 'halves': argument #2 (__half): 65520 does not fit float16 "
      .. "(-65504 to 65504)", message("halves", o, 65520, 0))
    assert.equal("kernel 'halves': argument #2 (__half): float16 expected, got a "
      .. "bfloat16", message("halves", o, tp.bf16(1), 0))
  end)

  it("for a 64-bit integer keeps every bit", function()
    local o <close> = tp.zeros("i64", 3)
    for _, x in ipairs { (1 << 53) + 1, math.maxinteger, -(1 << 62) - 3 } do
      launch("enums", o, 0, 0, x)
      assert.equal(x, o:read()[3])
    end
  end)

  it("for a wide integer is an integer or its bytes", function()
    local o <close> = tp.zeros("u64", 4)
    launch("wide", o, -5, 7)
    assert.same({ -5, -1, 7, 0 }, o:read())
    launch("wide", o, string.pack("<jj", 1, 2), string.pack("<jj", 3, -4))
    assert.same({ 1, 2, 3, -4 }, o:read())
    assert.equal("kernel 'wide': argument #3 (unsigned __int128): -1 is negative",
      message("wide", o, 0, -1))
    assert.matches("argument #2 %(__int128%): string of 16 bytes expected, got "
      .. "number", message("wide", o, 1.5, 0))
  end)

  it("for a character is a number", function()
    local o <close> = tp.zeros("i32", 4)
    launch("texts", o, -5, -7, 65535, 0x10FFFF)
    assert.same({ -5, -7, 65535, 0x10FFFF }, o:read())
    assert.equal("kernel 'texts': argument #2 (char): 200 does not fit int8 (-128 "
      .. "to 127)", message("texts", o, 200, 0, 0, 0))
  end)
end)

describe("a struct", function()
  local PAIR = string.pack("<bxxxxxxxd", 7, 1.25)
  local OUTER = PAIR:rep(3) .. string.pack("<hxxxxxx", 9)
  local PADDED = string.pack("<fffxxxx", 1, 2, 3)

  it("is its bytes, C's padding included", function()
    local o <close> = tp.zeros("f64", 5)
    launch("structs", o, PAIR, OUTER, PADDED)
    assert.same({ 7, 1.25, 1.25, 9, 3 }, o:read())
    local v <close> = tp.zeros("f32", 3)
    launch("vectors", v, string.pack("<ffff", 1, 2, 3, 4),
      string.pack("<ii", 5, 6), string.pack("<ddd", 7, 8, 9))
    assert.same({ 4, 6, 9 }, v:read())
  end)

  it("of the wrong size tells that, and where the kernel reads it", function()
    local o <close> = tp.zeros("f64", 5)
    assert.equal("kernel 'structs': argument #2 (Pair): string of 16 bytes "
      .. "expected, got one of 15 (the kernel reads 1 byte at offset 0, 8 bytes at "
      .. "offset 8)", message("structs", o, PAIR:sub(1, 15), OUTER, PADDED))
    assert.equal("kernel 'structs': argument #3 (Outer): string of 56 bytes "
      .. "expected, got one of 57 (the kernel reads 8 bytes at offset 40, 2 bytes "
      .. "at offset 48)", message("structs", o, PAIR, OUTER .. "x", PADDED))
    for _, bad in ipairs { 5, {}, true } do
      assert.matches("string of 16 bytes expected, got " .. type(bad),
        message("structs", o, PAIR, OUTER, bad))
    end
    assert.matches("got nil", message("structs", o, nil, OUTER, PADDED))
  end)

  it("comes in arrays as a buffer of any type", function()
    local o <close> = tp.zeros("f64", 1)
    local p <close> = tp.buffer("u8", PAIR .. string.pack("<bxxxxxxxd", -2, 0.5))
    launch("array", o, p, 2)
    assert.same({ 7 * 1.25 - 2 * 0.5 }, o:read())
    assert.matches("argument #2 %(Pair const%*%): tpstream.Buffer or nil expected, "
      .. "got string", message("array", o, PAIR, 1))
  end)

  it("may fill all the room that parameters have", function()
    local o <close> = tp.zeros("i32", 2)
    launch("large", o, string.pack("<i4", 11) .. ("\0"):rep(4 * 8187)
      .. string.pack("<i4", 22))
    assert.same({ 11, 22 }, o:read())
    local k <close> = module:kernel "large"
    assert.equal(32764, k:params()[2].offset + k:params()[2].size)
    assert.matches("string of 32756 bytes expected, got one of 32755",
      message("large", o, ("\0"):rep(32755)))
  end)
end)

describe("three hundred arguments", function()
  it("arrive", function()
    local o <close> = tp.zeros("f64", 1)
    local values, sum = {}, 0
    for i = 1, 300 do
      values[i] = i * 3 - 400
      sum = sum + values[i] * (i % 7 + 1)
    end
    launch("many", o, table.unpack(values))
    assert.same({ sum }, o:read())
    local k <close> = module:kernel "many"
    local go = k:bind(one)
    o:fill(0)
    go(o, table.unpack(values))
    assert.same({ sum }, o:read())
    assert.equal(301, #k:params())
    values[256] = 0.5
    assert.matches("kernel 'many': argument #257 %(int%): 0.5 is not a whole",
      message("many", o, table.unpack(values)))
    values[300] = nil
    assert.matches("kernel 'many': 301 arguments expected, got 300 %(many%(double%*, ",
      message("many", o, table.unpack(values)))
  end)
end)

describe("params", function()
  it("tells all there is to know", function()
    local k <close> = module:kernel "uses"
    local lines = {}
    for i, p in ipairs(k:params()) do
      lines[i] = ("%s %d %d %s %s %s %s"):format(p.type, p.size, p.offset,
        p.pointer, p.const, p.access, p.fields and #p.fields)
    end
    assert.same({
      "int* 8 0 true false unknown nil",
      "int* 8 8 true false write nil",
      "int* 8 16 true false both nil",
      "int const* 8 24 true true read nil",
      "int** 8 32 true false write nil",
      "void const* 8 40 true true none nil",
      "Pair 16 48 false false none 0",
    }, lines)
  end)

  it("tells what is read of a struct", function()
    local k <close> = module:kernel "structs"
    local p = k:params()
    assert.same({ { offset = 0, size = 1 }, { offset = 8, size = 8 } }, p[2].fields)
    assert.same({ { offset = 40, size = 8 }, { offset = 48, size = 2 } },
      p[3].fields)
    assert.same({ { offset = 8, size = 4 } }, p[4].fields)
  end)
end)

describe("carveout", function()
  it("is a percentage", function()
    local o <close> = tp.zeros("f32", 2)
    local k <close> = module:kernel "halves"
    for _, percent in ipairs { 0, 50, 100 } do
      k:launch({ grid = 1, block = 1, carveout = percent }, o, percent, 1)
      assert.same({ percent, 1 }, o:read())
    end
    for _, bad in ipairs { -1, 101, 0.5, "x" } do
      local ok, e = pcall(k.launch, k, { grid = 1, block = 1, carveout = bad }, o,
        1, 1)
      assert.is_false(ok)
      assert.matches("field 'carveout'", e, 1, true)
    end
  end)
end)
