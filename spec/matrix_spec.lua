-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- mma of every shape and type, dense and sparse, ldmatrix, stmatrix and movmatrix,
-- compared bit for bit with a reference of whole numbers. What needs a newer target
-- than sm_80 runs in a process whose simulated device has capability 9.0.
local tp = require "tpstream"
local matrix = require "spec.support.matrix"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"
local run = require "spec.support.run"
local newer = require "spec.support.newer"

local simulated = tp.current_device():kind() == "sim"

describe("mma", function()
  local forms = require "spec.support.matrix_forms"
  for _, name in ipairs { "floats", "halves", "doubles", "integers", "bits",
    "sparse", "ordered" } do
    it("computes with " .. name .. " as the hardware does", function()
      local list = forms[name]
      local module <close> = program("matrix_" .. name, matrix.source(list))
      matrix.check(module, list, 10)
    end)
  end

  for _, name in ipairs { "eighths", "large_doubles", "sparse_eighths" } do
    it("computes with " .. name .. " as the hardware does", function()
      newer.run(([[
        local matrix = require "spec.support.matrix"
        local forms = require "spec.support.matrix_forms".%s
        local module <close> = require "spec.support.program"("matrix_%s",
          matrix.source(forms))
        matrix.check(module, forms, 10)
      ]]):format(name, name))
    end)
  end
end)

local ROWS = [=[
extern "C" {
// Matrix t, row r begins at 16 * place[8t + r].
__global__ void load(const unsigned *in, const int *place, unsigned *out) {
  __shared__ __align__(16) unsigned s[256];
  int l = threadIdx.x;
  for (int i = l; i < 256; i += 32) s[i] = in[i];
  __syncwarp();
  unsigned p = (unsigned)__cvta_generic_to_shared(s + 4 * place[l]), r[14];
  unsigned long long g = (unsigned long long)(s + 4 * place[l]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
    : "=r"(r[0]) : "r"(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
    : "=r"(r[1]), "=r"(r[2]) : "r"(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]) : "l"(g));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
    : "=r"(r[7]) : "r"(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.b16 {%0, %1}, [%2];"
    : "=r"(r[8]), "=r"(r[9]) : "l"(g));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
    "{%0, %1, %2, %3}, [%4];"
    : "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]) : "r"(p));
  for (int i = 0; i < 14; i++) out[i * 32 + l] = r[i];
}
__global__ void transpose(const unsigned *in, unsigned *out) {
  unsigned d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
    : "=r"(d) : "r"(in[threadIdx.x]));
  out[threadIdx.x] = d;
}
}
]=]

describe("ldmatrix and movmatrix", function()
  local g = numbers.generator(8)
  local module
  setup(function() module = program("matrix_rows", ROWS) end)
  teardown(function() module:close() end)

  local function words(n)
    local t = {}
    for i = 1, n do t[i] = g.bits() & 0xffffffff end
    return t
  end

  it("give each lane its pieces, of rows or of columns", function()
    local input, place = words(256), {}
    for l = 1, 32 do place[l] = g.int(0, 63) end
    local i <close> = tp.buffer("u32", input)
    local p <close> = tp.buffer("i32", place)
    local o <close> = tp.zeros("u32", 14 * 32)
    local kernel <close> = module:kernel "load"
    kernel:launch({ grid = 1, block = 32 }, i, p, o)
    local r = o:read()
    local function half(t, row, col)
      local w = input[4 * place[8 * t + row + 1] + col // 2 + 1]
      return w >> 16 * (col % 2) & 0xffff
    end
    local which = { 0, 0, 1, 0, 1, 2, 3 }
    for l = 0, 31 do
      local row, col = l // 4, l % 4 * 2
      for k, t in ipairs(which) do
        assert.equal(half(t, row, col) | half(t, row, col + 1) << 16,
          r[(k - 1) * 32 + l + 1])
        assert.equal(half(t, col, row) | half(t, col + 1, row) << 16,
          r[(k + 6) * 32 + l + 1])
      end
    end
  end)

  it("transpose across the warp", function()
    local input = words(32)
    local i <close> = tp.buffer("u32", input)
    local o <close> = tp.zeros("u32", 32)
    local kernel <close> = module:kernel "transpose"
    kernel:launch({ grid = 1, block = 32 }, i, o)
    local function half(row, col)
      return input[row * 4 + col // 2 + 1] >> 16 * (col % 2) & 0xffff
    end
    for l, w in ipairs(o:read()) do
      local row, col = (l - 1) // 4, (l - 1) % 4 * 2
      assert.equal(half(col, row) | half(col + 1, row) << 16, w)
    end
  end)
end)

describe("stmatrix", function()
  it("puts what ldmatrix took back, in rows and in columns", function()
    newer.run [==[
      local tp = require "tpstream"
      local numbers = require "spec.support.numbers"
      local parts = { [[
extern "C" __global__ void store(const unsigned *in, unsigned *out) {
  __shared__ __align__(16) unsigned s[128];
  int l = threadIdx.x;
  unsigned p = (unsigned)__cvta_generic_to_shared(s + 4 * (31 - l)), r[4];
  for (int i = 0; i < 4; i++) r[i] = in[i * 32 + l];
]] }
      local at = 0
      for _, trans in ipairs { "", ".trans" } do
        for _, n in ipairs { 1, 2, 4 } do
          local regs, uses = {}, {}
          for i = 1, n do
            regs[i], uses[i] = "%" .. i, ('"r"(r[%d])'):format(i - 1)
          end
          parts[#parts + 1] = ([[
  for (int i = l; i < 128; i += 32) s[i] = i;
  __syncwarp();
  asm volatile("stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [%%0], {%s};"
    :: "r"(p), %s : "memory");
  __syncwarp();
  for (int i = l; i < 128; i += 32) out[%d + i] = s[i];
  __syncwarp();
]]):format(n, trans, table.concat(regs, ", "), table.concat(uses, ", "), at)
          at = at + 128
        end
      end
      parts[#parts + 1] = "}\n"
      local module <close> = require "spec.support.program"("matrix_store",
        table.concat(parts))
      local g = numbers.generator(9)
      local input = {}
      for i = 1, 128 do input[i] = g.bits() & 0xffffffff end
      local i <close> = tp.buffer("u32", input)
      local o <close> = tp.zeros("u32", 6 * 128)
      local kernel <close> = module:kernel "store"
      kernel:launch({ grid = 1, block = 32 }, i, o)
      local r = o:read()
      at = 0
      for _, trans in ipairs { false, true } do
        for _, n in ipairs { 1, 2, 4 } do
          for word = 0, 127 do
            local line = 31 - word // 4 -- the lane that gave this row's address
            local expected = word
            if line < 8 * n then
              local t, row, halves = line // 8, line % 8, {}
              for k = 0, 1 do
                local col = word % 4 * 2 + k
                local x, y = row, col
                if trans then x, y = col, row end
                local w = input[t * 32 + x * 4 + y // 2 + 1]
                halves[k] = w >> 16 * (y % 2) & 0xffff
              end
              expected = halves[0] | halves[1] << 16
            end
            assert(expected == r[at + word + 1], ("x%d: word %d is 0x%x, "
              .. "0x%x expected"):format(n, word, r[at + word + 1], expected))
          end
          at = at + 128
        end
      end
    ]==]
  end)
end)

-- On hardware lanes that come apart before an .aligned instruction are undefined;
-- here they wait for each other.
describe("a warp that is not together", function()
  if not simulated then return end

  it("meets in a matrix instruction", function()
    local form = matrix.form("m16n8k16", "f32.f16.f16.f32")
    local together = matrix.source { form }
    local apart = together:gsub("(  asm volatile.-%;\n)(  for)", function(asm,
        rest)
      return "  if (lane % 3 == 1) {\n" .. asm .. "  } else {\n" .. asm
        .. "  }\n" .. rest
    end)
    assert.are_not_equal(together, apart)
    local module <close> = program("matrix_apart", apart)
    matrix.check(module, { form }, 5)
  end)
end)

describe("matrix instructions that can't be", function()
  local function refused(line, message)
    local device = tp.current_device()
    tp.set_device "sim"
    local ok, e = pcall(tp.load, ([[
.version 9.0
.target sm_80
.address_size 64
.visible .entry kernel()
{
  .reg .b32 %%r<20>;
  .reg .f32 %%f<20>;
  .reg .b64 %%rd<20>;
  %s
  ret;
}
]]):format(line))
    tp.set_device(device)
    assert.is_false(ok)
    assert.equal(message, e.message:match "^[^\n]*")
  end

  it("are refused by name", function()
    local fp8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    refused(fp8 .. " {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
      .. "{%f0,%f1,%f2,%f3};", "instruction '" .. fp8 .. "' needs target sm_89,"
      .. " the module has sm_80 (PTX line 9)")
    local tall = "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8"
    refused(tall .. " {%r0,%r1}, [%rd0];", "instruction '" .. tall
      .. "' is not supported by the simulated device (PTX line 9)")
    local mixed = "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32"
    refused(mixed .. " {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
      .. "{%f0,%f1,%f2,%f3};", "instruction '" .. mixed
      .. "' is not supported by the simulated device (PTX line 9)")
  end)

  it("end with a fault that says where", function()
    if not simulated then return end
    local r = run.script [==[
      local tp = require "tpstream"
      local module = require "spec.support.program"("matrix_fault", [[
extern "C" __global__ void misplaced(unsigned *o, unsigned by) {
  __shared__ __align__(16) unsigned s[256];
  unsigned p = (unsigned)__cvta_generic_to_shared(s + 4 * threadIdx.x) + by, r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
    : "=r"(r) : "r"(p));
  o[threadIdx.x] = r;
}]])
      local o = tp.zeros("u32", 32)
      module:kernel "misplaced":launch({ grid = 1, block = 32 }, o, 4)
      print(select(2, pcall(o.read, o)))
    ]==]
    assert.is_truthy(r.stdout:find("load of 16 bytes at address 0x4: "
      .. "misaligned (a multiple of 16 is needed)", 1, true), r.stdout
      .. r.stderr)
    assert.is_truthy(r.stdout:find("thread (0,0,0), program.cu:5", 1, true),
      r.stdout)
  end)

  -- A GPU gives anything then.
  it("end with a fault when part of the warp is missing", function()
    if not simulated then return end
    local function fault(how, threads)
      return run.script(([==[
        local tp = require "tpstream"
        local module = require "spec.support.program"("matrix_part", [[
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void part(const half *a, float *o, int how) {
  if (how == 1 && threadIdx.x >= 16) return;
  fragment<matrix_a, 16, 16, 16, half, row_major> f;
  fragment<matrix_b, 16, 16, 16, half, col_major> g;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(f, __float2half(1));
  fill_fragment(g, __float2half(1));
  fill_fragment(c, 0);
  if (how == 2 && threadIdx.x == 5) return;
  mma_sync(c, f, g, c);
  store_matrix_sync(o, c, 16, mem_row_major);
}]], { stored = true })
        local a, o = tp.zeros("f16", 256), tp.zeros("f32", 256)
        module:kernel "part":launch({ grid = 1, block = %d }, a, o, %d)
        print(select(2, pcall(o.read, o)))
      ]==]):format(threads, how)).stdout
    end
    local name = "'wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32' by part of warp "
    local function find(wanted, text)
      assert.is_truthy(text:find(wanted, 1, true), text)
    end
    find(name .. "0, which takes all of its 32 lanes: lanes 0xffff0000 ended before",
      fault(1, 64))
    find("thread (0,0,0)", fault(1, 32))
    find(name .. "0, which takes all of its 32 lanes: lane 5 ended before",
      fault(2, 32))
    find(name .. "1, which takes all of its 32 lanes: lanes 0xfffffff0 do not exist"
      .. " in a block of 36 threads", fault(0, 36))
    find(", program.cu:12 via crt/mma.hpp:", fault(2, 32))
  end)
end)
