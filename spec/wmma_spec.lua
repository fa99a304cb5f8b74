-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- wmma through the C++ interface: every shape, type and layout, with strides, from
-- global and from shared memory, bit for bit; and what programs do with fragments.
local tp = require "tpstream"
local matrix = require "spec.support.matrix"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"

local CPP = { f16 = "half", bf16 = "__nv_bfloat16", tf32 = "precision::tf32",
  f64 = "double", s8 = "signed char", u8 = "unsigned char",
  s4 = "experimental::precision::s4", u4 = "experimental::precision::u4",
  b1 = "experimental::precision::b1", f32 = "float", s32 = "int" }
local MEMORY = { tf32 = "float", s4 = "void", u4 = "void", b1 = "void" }

-- One test: a shape, types of A and B, of C and D, layouts of all four.
local cases = {}
local function case(shape, a, c, d, layouts, options)
  local x = { a_type = a, b_type = options and options.b or a, c_type = c,
    d_type = d, shape = shape }
  x.m, x.n, x.k = shape:match "(%d+),(%d+),(%d+)"
  x.m, x.n, x.k = tonumber(x.m), tonumber(x.n), tonumber(x.k)
  x.a_layout, x.b_layout, x.c_layout, x.d_layout =
    layouts:match "(%a)(%a)(%a)(%a)"
  for name, value in pairs(options or {}) do x[name] = value end
  cases[#cases + 1] = x
end

local ALL = { "rrrr", "rccr", "crrc", "cccc" }
for _, shape in ipairs { "16,16,16", "32,8,16", "8,32,16" } do
  for i, layouts in ipairs(ALL) do
    local shared = i % 2 == 0
    case(shape, "f16", "f32", "f32", layouts, { shared = shared })
    case(shape, "f16", "f16", "f16", layouts, { shared = not shared })
    case(shape, "bf16", "f32", "f32", layouts, { shared = shared })
    case(shape, "s8", "s32", "s32", layouts, { shared = not shared })
    case(shape, "u8", "s32", "s32", layouts, { saturate = true })
  end
end
case("16,16,16", "f16", "f16", "f32", "rcrr")
case("32,8,16", "f16", "f32", "f16", "crrc")
for _, layouts in ipairs(ALL) do
  case("16,16,8", "tf32", "f32", "f32", layouts,
    { shared = true, halves = true })
  case("8,8,4", "f64", "f64", "f64", layouts)
end
case("8,8,32", "s4", "s32", "s32", "rcrc")
case("8,8,32", "u4", "s32", "s32", "rccr", { saturate = true })
case("8,8,128", "b1", "s32", "s32", "rcrr")
case("8,8,128", "b1", "s32", "s32", "rccc", { conjunction = true })

-- Elements from a line to the next, wider than they need be.
local function strides(x)
  local pad = 128 // matrix.BITS[x.a_type] -- 16 bytes
  local function wide(n, t) return n + (t and 128 // matrix.BITS[t] or pad) end
  return wide(x.a_layout == "r" and x.k or x.m),
    wide(x.b_layout == "r" and x.n or x.k),
    wide(x.c_layout == "r" and x.n or x.m, x.c_type),
    wide(x.d_layout == "r" and x.n or x.m, x.d_type)
end

local function source(x, index)
  local lda, ldb, ldc, ldd = strides(x)
  local function fragment(use, t, layout)
    return ("fragment<%s, %s, %s%s>"):format(use, x.shape:gsub(",", ", "),
      CPP[t], layout and (layout == "r" and ", row_major" or ", col_major") or "")
  end
  local function memory(t) return MEMORY[t] or CPP[t] end
  local op = x.a_type == "b1" and ("bmma_sync(fd, fa, fb, fc, experimental::"
    .. "bmmaBitOp%s);"):format(x.conjunction and "AND" or "XOR")
    or ("mma_sync(fd, fa, fb, fc%s);"):format(x.saturate and ", true" or "")
  local function major(layout)
    return layout == "r" and "mem_row_major" or "mem_col_major"
  end
  return ([[
extern "C" __global__ void case%d(const unsigned char *a, const unsigned char *b,
    const unsigned char *c, unsigned char *d, int bytes) {
%s  %s fa; %s fb; %s fc; %s fd;
  load_matrix_sync(fa, (const %s *)a, %d);
  load_matrix_sync(fb, (const %s *)b, %d);
  load_matrix_sync(fc, (const %s *)c, %d, %s);
  %s
  store_matrix_sync((%s *)d, fd, %d, %s);
%s}
]]):format(index, x.shared and [[
  __shared__ __align__(32) unsigned char s[4][6144];
  for (int i = threadIdx.x; i < bytes; i += 32)
    s[0][i] = a[i], s[1][i] = b[i], s[2][i] = c[i], s[3][i] = d[i];
  unsigned char *out = d;
  a = s[0], b = s[1], c = s[2], d = s[3];
  __syncwarp();
]] or "", fragment("matrix_a", x.a_type, x.a_layout),
    fragment("matrix_b", x.b_type, x.b_layout),
    fragment("accumulator", x.c_type), fragment("accumulator", x.d_type),
    memory(x.a_type), lda, memory(x.b_type), ldb, memory(x.c_type), ldc,
    major(x.c_layout), op, memory(x.d_type), ldd, major(x.d_layout),
    x.shared and [[
  __syncwarp();
  for (int i = threadIdx.x; i < bytes; i += 32) out[i] = d[i];
]] or "")
end

local SOURCE = { [=[
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda::wmma;
]=] }
for i, x in ipairs(cases) do SOURCE[#SOURCE + 1] = source(x, i) end

-- --- matrices in memory ---------------------------------------------------------

local SIZE = 6144

local function place(row, col, layout, stride)
  if layout == "r" then return row * stride + col end
  return col * stride + row
end

-- Bytes with the elements of a matrix in them.
local function lay(rows, layout, stride, bits)
  local bytes = {}
  for i = 1, SIZE do bytes[i] = 0xa5 end
  for r, row in ipairs(rows) do
    for c, v in ipairs(row) do
      local at = place(r - 1, c - 1, layout, stride) * bits
      for k = 0, math.max(bits // 8, 1) - 1 do
        local i, low = at // 8 + k + 1, at % 8
        local keep = bits < 8 and ((1 << bits) - 1) << low or 0xff
        bytes[i] = bytes[i] & ~keep | (v >> 8 * k) << low & keep
      end
    end
  end
  for i = 1, SIZE do bytes[i] = string.char(bytes[i]) end
  return table.concat(bytes)
end

local function element(bytes, at, bits)
  local n = bits // 8
  return (string.unpack("<I" .. n, bytes, at * n + 1))
end

local function random_matrix(g, rows, cols, t, style, accumulator)
  local m = {}
  for r = 1, rows do
    m[r] = {}
    for c = 1, cols do m[r][c] = matrix.random(g, t, style, accumulator) end
  end
  return m
end

local function name_of(x)
  return ("%s %s, %s → %s, %s%s%s%s"):format(x.shape, x.a_type, x.c_type,
    x.d_type, x.a_layout, x.b_layout, x.c_layout, x.d_layout)
end

local function check(kernel, x, g, style)
  local lda, ldb, ldc, ldd = strides(x)
  local a = random_matrix(g, x.m, x.k, x.a_type, style)
  local b = random_matrix(g, x.k, x.n, x.b_type, style)
  local c = random_matrix(g, x.m, x.n, x.c_type, style, true)
  local bits = matrix.BITS
  local ba <close> = tp.buffer("u8", lay(a, x.a_layout, lda, bits[x.a_type]))
  local bb <close> = tp.buffer("u8", lay(b, x.b_layout, ldb, bits[x.b_type]))
  local bc <close> = tp.buffer("u8", lay(c, x.c_layout, ldc, bits[x.c_type]))
  local bd <close> = tp.buffer("u8", ("\xa5"):rep(SIZE))
  kernel:launch({ grid = 1, block = 32 }, ba, bb, bc, bd, SIZE)
  local bytes, touched = bd:bytes(), {}
  local width = bits[x.d_type]
  for row = 1, x.m do
    for col = 1, x.n do
      local column = {}
      for k = 1, x.k do column[k] = b[k][col] end
      local at = place(row - 1, col - 1, x.d_layout, ldd)
      local expected = matrix.dot(x, a[row], column, c[row][col])
      local got = element(bytes, at, width)
      touched[at] = true
      if got ~= expected then
        error(("%s: row %d, column %d is 0x%x, 0x%x expected"):format(name_of(x),
          row, col, got, expected), 0)
      end
    end
  end
  for at = 0, SIZE * 8 // width - 1 do
    assert.is_true(touched[at] or bytes:sub(at * width // 8 + 1,
      (at + 1) * width // 8) == ("\xa5"):rep(width // 8))
  end
end

describe("wmma", function()
  local module
  setup(function() module = program("wmma", table.concat(SOURCE)) end)
  teardown(function() module:close() end)

  for _, kind in ipairs { "f16", "bf16", "tf32", "f64", "s8", "u8", "s4", "u4",
    "b1" } do
    it("computes with " .. kind .. " in every shape and layout", function()
      local g = numbers.generator(27)
      for i, x in ipairs(cases) do
        if x.a_type == kind then
          local kernel <close> = module:kernel("case" .. i)
          for style = 0, 4, 2 do check(kernel, x, g, style) end
        end
      end
    end)
  end
end)

local FRAGMENTS = [=[
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" {
// Element i of two accumulators is of one place, whatever filled them.
__global__ void alike(const float *x, const float *y, float *d) {
  fragment<accumulator, 16, 16, 16, float> a, b;
  load_matrix_sync(a, x, 16, mem_row_major);
  load_matrix_sync(b, y, 16, mem_col_major);
  for (int i = 0; i < a.num_elements; i++) a.x[i] = a.x[i] * 2 + b.x[i];
  store_matrix_sync(d, a, 16, mem_row_major);
}
// The registers of a fragment are those of two mma.
__global__ void pieces(const half *x, const half *y, float *d, float *e) {
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  load_matrix_sync(a, x, 16);
  load_matrix_sync(b, y, 16);
  fill_fragment(c, 0.25f);
  fragment<accumulator, 16, 16, 16, float> p = c;
  mma_sync(c, a, b, c);
  store_matrix_sync(d, c, 16, mem_row_major);
  const unsigned *ra = (const unsigned *)a.x, *rb = (const unsigned *)b.x;
  for (int n = 0; n < 2; n++)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(p.x[4 * n]), "+f"(p.x[4 * n + 1]), "+f"(p.x[4 * n + 2]),
        "+f"(p.x[4 * n + 3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[2 * n]),
        "r"(rb[2 * n + 1]));
  store_matrix_sync(e, p, 16, mem_row_major);
}
}
]=]

describe("fragments", function()
  local g = numbers.generator(28)
  local module
  setup(function() module = program("wmma_fragments", FRAGMENTS) end)
  teardown(function() module:close() end)

  it("of one shape have their elements in the same places", function()
    local xs, ys, expected = g.floats(256, -4, 4), g.floats(256, -4, 4), {}
    for i = 0, 255 do
      local y = ys[i % 16 * 16 + i // 16 + 1]
      expected[i + 1] = numbers.f32(xs[i + 1] * 2 + y)
    end
    local x <close> = tp.buffer("f32", xs)
    local y <close> = tp.buffer("f32", ys)
    local d <close> = tp.zeros("f32", 256)
    local kernel <close> = module:kernel "alike"
    kernel:launch({ grid = 1, block = 32 }, x, y, d)
    assert.same(expected, d:read())
  end)

  it("are made of those of mma", function()
    local x <close> = tp.buffer("f16", g.reals(256, -2, 2))
    local y <close> = tp.buffer("f16", g.reals(256, -2, 2))
    local d <close> = tp.zeros("f32", 256)
    local e <close> = tp.zeros("f32", 256)
    local kernel <close> = module:kernel "pieces"
    kernel:launch({ grid = 1, block = 32 }, x, y, d, e)
    assert.same(d:read(), e:read())
  end)
end)
