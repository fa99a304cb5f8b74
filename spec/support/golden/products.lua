-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Golden results of wmma: what wmma.mma of every form made of random matrices on an
-- H200, loaded and stored by wmma.load and wmma.store.
--
--   local wrong, count = products.check()      -- texts; instructions
--   products.write()                     -- makes the file with this device's answers
--
-- In words of string.pack the file holds: "s1" the format's name; "I2" products, of
-- each "s1" the opcode, of each of STYLES styles of input "i8" the sum over D (of
-- fragments.lua, as the styles are), "s2" the whole D of the second one.
local tp = require "tpstream"
local fragments = require "spec.support.golden.fragments"
local matrix = require "spec.support.matrix"

local products = {}

local FORMAT, PATH = "tpstream golden wmma 1", "spec/golden/wmma.bin"
local STYLES, KEPT = 5, 1

-- --- the forms ----------------------------------------------------------------

-- Registers of a fragment of A and B, by shape; of C and D they follow.
local COUNTS = {
  f16 = { m16n16k16 = { 8, 8 }, m8n32k16 = { 8, 8 }, m32n8k16 = { 8, 8 } },
  bf16 = { m16n16k16 = { 4, 4 }, m8n32k16 = { 2, 8 }, m32n8k16 = { 8, 2 } },
  s8 = { m16n16k16 = { 2, 2 }, m8n32k16 = { 1, 4 }, m32n8k16 = { 4, 1 } },
  tf32 = { m16n16k8 = { 4, 4 } },
  f64 = { m8n8k4 = { 1, 1 } },
  s4 = { m8n8k32 = { 1, 1 } },
  b1 = { m8n8k128 = { 1, 1 } },
}
COUNTS.u8, COUNTS.u4 = COUNTS.s8, COUNTS.s4

local LAYOUTS = { "row.col", "row.row", "col.row", "col.col" }
local forms = {}

-- One instruction; `names` are the types of its opcode, `op` and `suffix` what else
-- is in it.
local function form(shape, names, t, c, d, op, suffix)
  local m, n, k = shape:match "m(%d+)n(%d+)k(%d+)"
  local layout = matrix.BITS[t] < 8 and LAYOUTS[1] or LAYOUTS[#forms % 4 + 1]
  local f = { shape = shape, t = t, c = c, d = d, m = tonumber(m),
    n = tonumber(n), k = tonumber(k), a_layout = layout:sub(1, 3),
    b_layout = layout:sub(5, 7), index = #forms + 1 }
  f.opcode = ("wmma.mma%s.sync.aligned.%s.%s.%s%s"):format(op or "", layout,
    shape, names, suffix or "")
  forms[#forms + 1] = f
end

for _, shape in ipairs { "m16n16k16", "m8n32k16", "m32n8k16" } do
  for _, x in ipairs { "f16.f16", "f16.f32", "f32.f16", "f32.f32" } do
    form(shape, x, "f16", x:sub(5), x:sub(1, 3))
  end
  form(shape, "f32.bf16.bf16.f32", "bf16", "f32", "f32")
  for _, t in ipairs { "s8", "u8" } do
    for _, suffix in ipairs { "", ".satfinite" } do
      form(shape, ("s32.%s.%s.s32"):format(t, t), t, "s32", "s32", "", suffix)
    end
  end
end
form("m16n16k8", "f32.tf32.tf32.f32", "tf32", "f32", "f32")
form("m8n8k4", "f64.f64.f64.f64", "f64", "f64", "f64", "", ".rn")
for _, t in ipairs { "s4", "u4" } do
  for _, suffix in ipairs { "", ".satfinite" } do
    form("m8n8k32", ("s32.%s.%s.s32"):format(t, t), t, "s32", "s32", "", suffix)
  end
end
for _, op in ipairs { ".xor.popc", ".and.popc" } do
  form("m8n8k128", "s32.b1.b1.s32", "b1", "s32", "s32", op)
end

function products.opcodes()
  local t = {}
  for i, f in ipairs(forms) do t[i] = f.opcode end
  return t
end

-- --- kernels ------------------------------------------------------------------

local function list(name, count)
  local names = {}
  for i = 1, count do names[i] = "%" .. name .. i end
  return "{" .. table.concat(names, ", ") .. "}"
end

-- Registers of a fragment of C or D: its share of the matrix.
local function accumulators(f, t)
  return math.max(1, f.m * f.n // 32 * (t == "f16" and 16 or 32) // 32)
end

local function bytes_of(rows, columns, t)
  return rows * columns * matrix.BITS[t] // 8
end

local function registers(name, count, t)
  local kind = (t == "f64" or t == "f32") and t or "b32"
  return ("  .reg .%s %%%s<%d>;\n"):format(kind, name, count + 1)
end

-- The address of this block's matrix in %<name>p.
local function address(name, bytes)
  return ([[
  .reg .b64 %%%sp;
  ld.param.u64 %%%sp, [in_%s];
  mad.wide.u32 %%%sp, %%tile, %d, %%%sp;
]]):format(name, name, name, name, bytes, name)
end

local function kernel(f)
  local counts = COUNTS[f.t][f.shape]
  local c, d = accumulators(f, f.c), accumulators(f, f.d)
  local function load(use, name, count, layout, t, stride)
    return ("  wmma.load.%s.sync.aligned.%s.%s.global.%s %s, [%%%sp], %d;\n")
      :format(use, layout, f.shape, t, list(name, count), name, stride)
  end
  return table.concat { (([[
.visible .entry product%d(.param .u64 in_a, .param .u64 in_b, .param .u64 in_c,
  .param .u64 in_d)
{
  .reg .b32 %%tile;
  mov.u32 %%tile, %%ctaid.x;
]]):format(f.index)),
    registers("a", counts[1], f.t), address("a", bytes_of(f.m, f.k, f.t)),
    registers("b", counts[2], f.t), address("b", bytes_of(f.k, f.n, f.t)),
    registers("c", c, f.c), address("c", bytes_of(f.m, f.n, f.c)),
    registers("d", d, f.d), address("d", bytes_of(f.m, f.n, f.d)),
    load("a", "a", counts[1], f.a_layout, f.t,
      f.a_layout == "row" and f.k or f.m),
    load("b", "b", counts[2], f.b_layout, f.t,
      f.b_layout == "row" and f.n or f.k),
    load("c", "c", c, "row", f.c, f.n),
    ("  %s %s, %s, %s, %s;\n"):format(f.opcode, list("d", d),
      list("a", counts[1]), list("b", counts[2]), list("c", c)),
    ("  wmma.store.d.sync.aligned.row.%s.global.%s [%%dp], %s, %d;\n")
      :format(f.shape, f.d, list("d", d), f.n),
    "  ret;\n}\n" }
end

local function text()
  local parts = { ".version 9.0\n.target sm_80\n.address_size 64\n" }
  for _, f in ipairs(forms) do parts[#parts + 1] = kernel(f) end
  return table.concat(parts)
end

-- --- results ------------------------------------------------------------------

-- All tiles of one operand, one for each style.
local function operand(f, which, bytes, t)
  local width, tiles = t == "f64" and 8 or 4, {}
  for style = 0, STYLES - 1 do
    local seed = ((f.index * STYLES + style) * 3 + which) * 0x9E3779B97F4A7C15
    tiles[style + 1] = fragments.words(seed, bytes // width, t, style, which == 3)
  end
  return table.concat(tiles)
end

-- The matrices D of a form, as bytes.
local function multiply(module, f)
  local a <close> = tp.buffer("u8", operand(f, 1, bytes_of(f.m, f.k, f.t), f.t))
  local b <close> = tp.buffer("u8", operand(f, 2, bytes_of(f.k, f.n, f.t), f.t))
  local c <close> = tp.buffer("u8", operand(f, 3, bytes_of(f.m, f.n, f.c), f.c))
  local size = bytes_of(f.m, f.n, f.d)
  local d <close> = tp.zeros("u8", STYLES * size)
  module:kernel("product" .. f.index):launch({ grid = STYLES, block = 32 },
    a, b, c, d)
  local bytes, tiles = d:bytes(), {}
  for i = 1, STYLES do tiles[i] = bytes:sub((i - 1) * size + 1, i * size) end
  return tiles
end

-- The first element in which matrices differ.
local function difference(kept, got, f)
  local width = matrix.BITS[f.d] // 8
  for at = 1, #kept, width do
    local x, y = string.unpack("<I" .. width, kept, at),
      string.unpack("<I" .. width, got, at)
    if x ~= y then
      local n = (at - 1) // width
      return ("row %d, column %d is 0x%x, 0x%x on a GPU"):format(n // f.n,
        n % f.n, y, x)
    end
  end
end

function products.check()
  local input <close> = assert(io.open(PATH, "rb"))
  local file = input:read "a"
  local format, count, at = string.unpack("<s1I2", file)
  assert(format == FORMAT, format)
  local module <close> = tp.load(text())
  local wrong = {}
  for i = 1, count do
    local f, sum = forms[i], {}
    local opcode, kept
    opcode, sum[1], sum[2], sum[3], sum[4], sum[5], kept, at =
      string.unpack("<s1i8i8i8i8i8s2", file, at)
    assert(opcode == f.opcode, opcode)
    local got = multiply(module, f)
    local what = difference(kept, got[KEPT + 1], f)
    for style = 0, STYLES - 1 do
      if not what and fragments.sum_of(got[style + 1]) ~= sum[style + 1] then
        what = "some element of style " .. style .. " differs"
      end
    end
    if what then wrong[#wrong + 1] = opcode .. ": " .. what end
  end
  return wrong, count
end

function products.write()
  local module <close> = tp.load(text())
  local parts = { string.pack("<s1I2", FORMAT, #forms) }
  for i, f in ipairs(forms) do
    local got, sum = multiply(module, f), {}
    for k = 1, STYLES do sum[k] = fragments.sum_of(got[k]) end
    parts[i + 1] = string.pack("<s1i8i8i8i8i8s2", f.opcode, sum[1], sum[2],
      sum[3], sum[4], sum[5], got[KEPT + 1])
  end
  local output <close> = assert(io.open(PATH, "wb"))
  assert(output:write(table.concat(parts)))
end

return products
