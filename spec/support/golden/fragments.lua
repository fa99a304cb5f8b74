-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Golden results of matrix instructions: what mma of every form made of random
-- fragments on an H200, and where wmma.load put the elements of a matrix.
--
--   local kept = fragments.read()
--   local wrong, count = fragments.check(kept, newer)   -- texts; instructions
--   fragments.write(kept)                     -- with what this device answers
--
-- Fragments are drawn from generators whose states the file keeps. In words of
-- string.pack it holds: "s1" the format's name; "I2" products, of each "s1" the
-- opcode, "I1" the selector (255: none), "I1" tiles, of each "I1" its style, four
-- times "i8" the states for A, B, C and metadata, "i8" the sum over the registers
-- of D, "s2" those registers, if kept; "i8" the state for the matrix that is loaded,
-- "I2" loads, of each "s1" the opcode, "I1" words a lane, "I2" the stride, "s2" the
-- words.
local tp = require "tpstream"
local matrix = require "spec.support.matrix"

local fragments = {}

local FORMAT, PATH = "tpstream golden matrices 1", "spec/golden/matrix.bin"
local NONE = 255

-- --- inputs -------------------------------------------------------------------

local state
local function bits()
  state = state ~ state >> 12
  state = state ~ state << 25
  state = state ~ state >> 27
  return state * 0x2545F4914F6CDD1D >> 32
end

-- bits of exponent, fraction, and below
local FLOATS = { f16 = { 5, 10, 0 }, bf16 = { 8, 7, 0 }, tf32 = { 8, 10, 13 },
  f32 = { 8, 23, 0 }, e4m3 = { 4, 3, 0 }, e5m2 = { 5, 2, 0 } }

-- Styles: 0 near 1, 1 wide apart, 2 some of any bits at all, 3 many zeros, 4 an
-- accumulator far above or below the products.
local function exponent(style, accumulator, bias, wide, x)
  if style == 0 then return bias - 2 + x % 5 end
  if style == 1 then
    local span = wide > 5 and 40 or wide == 4 and 14 or (1 << wide) - 6
    return bias - span // 2 + x % span
  end
  if style == 3 then return bias - 6 + bits() % 13 end
  if accumulator then return bias - 12 + x % (wide > 5 and 45 or 24) end
  return bias - 3 + x % 7
end

local function element(t, style, accumulator)
  local wide, m, low = table.unpack(FLOATS[t])
  local r = bits()
  if style == 2 then
    if not accumulator and r % 4 == 0 then
      return bits() & (1 << 1 + wide + m + low) - 1
    end
    style = 1
  end
  local x = bits()
  if style == 3 and not accumulator and x % 10 < 7 then return 0 end
  local e = exponent(style, accumulator, (1 << wide - 1) - 1, wide, x)
  e = math.max(1, math.min(e, (1 << wide) - 2))
  return (((r & 1) << wide | e) << m | r >> 1 & (1 << m) - 1) << low
end

local SPANS = { [0] = 3, 40, 60, 10, 120 }
local function double(style, accumulator)
  local span = SPANS[style]
  local e = 1023 - span // 2 + bits() % span
  if style == 3 and not accumulator and bits() % 10 < 6 then return 0 end
  return (bits() & 1) << 63 | e << 52 | (bits() << 32 | bits()) & (1 << 52) - 1
end

local function register(t, style, accumulator)
  if t == "f64" then return double(style, accumulator) end
  if t == "s32" and style == 4 then
    local negative = bits() & 1 == 0
    return (negative and 0x80000000 or 0x7fffff80) + bits() % 128
  end
  if not FLOATS[t] then return bits() end
  local w, width = 0, matrix.BITS[t]
  for at = 0, 31, width do w = w | element(t, style, accumulator) << at end
  return w
end

-- Which two of four are not zero; of tf32 which one of two.
local PAIRS = { [0] = 0x4, 0x8, 0xc, 0x9, 0xd, 0xe }
local function metadata(t)
  local w = 0
  for at = 0, 28, 4 do
    local x = bits()
    w = w | (t ~= "tf32" and PAIRS[x % 6] or x & 1 == 1 and 0xe or 0x4) << at
  end
  return w
end

local function draw(seed, count, width, next_value)
  local format, parts = "<i" .. width, {}
  state = seed
  for i = 1, count do
    local v = next_value()
    if width == 4 and v >= 1 << 31 then v = v - (1 << 32) end
    parts[i] = string.pack(format, v)
  end
  return table.concat(parts)
end

local function width_of(t) return t == "f64" and 8 or 4 end

-- The bytes of A, B, C and the metadata for all tiles of a product.
local function inputs(p)
  local f, all = p.form, { {}, {}, {}, {} }
  for i, tile in ipairs(p.tiles) do
    local function fill(which, t, count, accumulator)
      all[which][i] = draw(tile.seeds[which], 32 * count, width_of(t),
        function() return register(t, tile.style, accumulator) end)
    end
    fill(1, f.a_type, f.a)
    fill(2, f.b_type, f.b)
    fill(3, f.c_type, f.c, true)
    all[4][i] = f.selector and draw(tile.seeds[4], 32, 4, function()
      return metadata(f.a_type)
    end) or ("\0"):rep(128)
  end
  for which = 1, 4 do all[which] = table.concat(all[which]) end
  return all
end

-- --- kernels ------------------------------------------------------------------

local function list(name, count)
  local names = {}
  for i = 1, count do names[i] = "%" .. name .. i end
  return "{" .. table.concat(names, ", ") .. "}"
end

-- Declares the registers of a fragment and its address in %<name>p.
local function fragment(name, count, t)
  local size = width_of(t)
  local kind = (t == "f64" or t == "f32") and t or "b32"
  return ([[
  .reg .%s %%%s<%d>;
  .reg .b64 %%%sp;
  ld.param.u64 %%%sp, [in_%s];
  mad.lo.u32 %%at, %%tile, %d, %%lane;
  mul.wide.u32 %%off, %%at, %d;
  add.u64 %%%sp, %%%sp, %%off;
]]):format(kind, name, count + 1, name, name, name, 32 * count, size, name, name)
end

local function move(op, name, count, t)
  local size, lines = width_of(t), {}
  for i = 1, count do
    local at = ("[%%%sp+%d]"):format(name, (i - 1) * 32 * size)
    local value = ("%%%s%d"):format(name, i)
    lines[i] = ("  %s.global.b%d %s, %s;\n"):format(op, 8 * size,
      op == "ld" and value or at, op == "ld" and at or value)
  end
  return table.concat(lines)
end

local HEAD = [[
.visible .entry %s(.param .u64 in_a, .param .u64 in_b, .param .u64 in_c,
  .param .u64 in_m, .param .u64 in_d)
{
  .reg .b32 %%tile, %%lane, %%at;
  .reg .b64 %%off;
  mov.u32 %%tile, %%ctaid.x;
  mov.u32 %%lane, %%tid.x;
]]

local function product_kernel(p, name)
  local f = p.form
  local operands = { list("d", f.d), list("a", f.a), list("b", f.b),
    list("c", f.c) }
  if f.selector then
    table.move({ "%m1", tostring(f.selector) }, 1, 2, 5, operands)
  end
  return table.concat { HEAD:format(name),
    fragment("a", f.a, f.a_type), move("ld", "a", f.a, f.a_type),
    fragment("b", f.b, f.b_type), move("ld", "b", f.b, f.b_type),
    fragment("c", f.c, f.c_type), move("ld", "c", f.c, f.c_type),
    fragment("m", 1, "b32"), move("ld", "m", 1, "b32"),
    fragment("d", f.d, f.d_type),
    "  ", p.opcode, " ", table.concat(operands, ", "), ";\n",
    move("st", "d", f.d, f.d_type), "  ret;\n}\n" }
end

-- A loaded fragment is written word after word, as a lane of C++ sees it.
local function load_kernel(x, name)
  local t = x.opcode:match "%w+$"
  local size = width_of(t)
  local count = x.words * 4 // size
  local stores = {}
  for i = 1, count do
    stores[i] = ("  st.global.b%d [%%dp+%d], %%x%d;\n"):format(8 * size,
      (i - 1) * size, i)
  end
  return table.concat { HEAD:format(name), ([[
  .reg .%s %%x<%d>;
  .reg .b64 %%ap, %%dp;
  ld.param.u64 %%ap, [in_a];
  ld.param.u64 %%dp, [in_d];
  mul.wide.u32 %%off, %%lane, %d;
  add.u64 %%dp, %%dp, %%off;
]]):format((t == "f64" or t == "f32") and t or "b32", count + 1, 4 * x.words),
    ("  %s %s, [%%ap], %d;\n"):format(x.opcode, list("x", count), x.stride),
    table.concat(stores), "  ret;\n}\n" }
end

local function text(target, products, loads)
  local parts = { (".version 9.0\n.target sm_%d\n.address_size 64\n"):format(
    target) }
  for i, p in ipairs(products) do
    parts[#parts + 1] = product_kernel(p, "product" .. i)
  end
  for i, x in ipairs(loads) do
    parts[#parts + 1] = load_kernel(x, "load" .. i)
  end
  return table.concat(parts)
end

-- --- results ------------------------------------------------------------------

local function sum_of(bytes)
  local h = 0
  for at = 1, #bytes, 8 do
    h = (h ~ string.unpack("<i8", bytes, at)) * 0x9E3779B97F4A7C15
    h = h ~ h >> 29
  end
  return h
end

-- The registers of D of each tile.
local function multiply(kernel, p)
  local given, f = inputs(p), p.form
  local a <close> = tp.buffer("u8", given[1])
  local b <close> = tp.buffer("u8", given[2])
  local c <close> = tp.buffer("u8", given[3])
  local m <close> = tp.buffer("u8", given[4])
  local size = 32 * f.d * width_of(f.d_type)
  local d <close> = tp.zeros("u8", #p.tiles * size)
  kernel:launch({ grid = #p.tiles, block = 32 }, a, b, c, m, d)
  local bytes, tiles = d:bytes(), {}
  for i = 1, #p.tiles do tiles[i] = bytes:sub((i - 1) * size + 1, i * size) end
  return tiles
end

local function load_matrix(kernel, x, given)
  local a <close> = tp.buffer("u8", given)
  local d <close> = tp.zeros("u8", 128 * x.words)
  kernel:launch({ grid = 1, block = 32 }, a, nil, nil, nil, d)
  return d:bytes()
end

-- Calls `product` and `load` with each instruction and what this device makes of
-- it, of those that need a newer target than sm_80 or of the others.
local function each(kept, newer, product, load)
  local products = {}
  for _, p in ipairs(kept.products) do
    if p.newer == newer then products[#products + 1] = p end
  end
  local loads = newer and {} or kept.loads
  local module <close> = tp.load(text(newer and 90 or 80, products, loads))
  for i, p in ipairs(products) do
    product(p, multiply(module:kernel("product" .. i), p))
  end
  local given = draw(kept.seed, 1024, 4, bits)
  for i, x in ipairs(loads) do
    load(x, load_matrix(module:kernel("load" .. i), x, given))
  end
  return #products + #loads
end

-- The first place in which registers differ.
local function difference(kept, got, t)
  local size = width_of(t)
  local format = "<I" .. size
  if #kept ~= #got then return "another number of registers" end
  for at = 1, #kept, size do
    local x, y = string.unpack(format, kept, at), string.unpack(format, got, at)
    if x ~= y then
      local n = (at - 1) // size
      return ("register %d of lane %d is 0x%x, 0x%x on a GPU"):format(n // 32,
        n % 32, y, x)
    end
  end
end

function fragments.check(kept, newer)
  local wrong = {}
  local count = each(kept, newer, function(p, got)
    for i, tile in ipairs(p.tiles) do
      local what = tile.bytes ~= "" and difference(tile.bytes, got[i], p.form.d_type)
        or tile.sum ~= sum_of(got[i]) and "some register differs"
      if what then
        wrong[#wrong + 1] = ("%s, selector %s, tile %d: %s"):format(p.opcode,
          p.form.selector, i, what)
        break
      end
    end
  end, function(x, got)
    if x.bytes ~= got then
      wrong[#wrong + 1] = x.opcode .. ": elements lie elsewhere on a GPU"
    end
  end)
  return wrong, count
end

-- --- the file -----------------------------------------------------------------

-- The targets of mma with fp8, and of f64 other than m8n8k4.
local function needs_newer(f)
  return f.a_type:find "^e%dm" ~= nil or f.a_type == "f64" and f.m > 8
end

local function form_of(opcode, selector)
  local shape, layout, rest = opcode:match "%.aligned%.(%w+)%.(%w+%.%w+)%.(.+)$"
  local types = rest:gsub("%.%w+%.popc$", ""):match "%w+%.%w+%.%w+%.%w+$"
  local f = matrix.form(shape, types, {
    layout = layout, saturate = rest:find "^satfinite" ~= nil,
    bits = rest:match "(%w+)%.popc$", selector = selector,
    ordered = opcode:find "ordered_metadata" ~= nil })
  assert(f.opcode == opcode, f.opcode)
  return f
end

local function read_product(file, at)
  local p = { tiles = {} }
  local selector, count
  p.opcode, selector, count, at = string.unpack("<s1I1I1", file, at)
  p.form = form_of(p.opcode, selector ~= NONE and selector or nil)
  p.newer = needs_newer(p.form)
  for i = 1, count do
    local tile = { seeds = {} }
    local s = tile.seeds
    tile.style, s[1], s[2], s[3], s[4], tile.sum, tile.bytes, at =
      string.unpack("<I1i8i8i8i8i8s2", file, at)
    p.tiles[i] = tile
  end
  return p, at
end

function fragments.read()
  local input <close> = assert(io.open(PATH, "rb"))
  local file = input:read "a"
  local format, count, at = string.unpack("<s1I2", file)
  assert(format == FORMAT, format)
  local kept = { products = {}, loads = {} }
  for i = 1, count do kept.products[i], at = read_product(file, at) end
  kept.seed, count, at = string.unpack("<i8I2", file, at)
  for i = 1, count do
    local x = {}
    x.opcode, x.words, x.stride, x.bytes, at =
      string.unpack("<s1I1I2s2", file, at)
    kept.loads[i] = x
  end
  return kept
end

local function pack(kept)
  local parts = { string.pack("<s1I2", FORMAT, #kept.products) }
  local function put(...) parts[#parts + 1] = string.pack(...) end
  for _, p in ipairs(kept.products) do
    put("<s1I1I1", p.opcode, p.form.selector or NONE, #p.tiles)
    for _, tile in ipairs(p.tiles) do
      local s = tile.seeds
      put("<I1i8i8i8i8i8s2", tile.style, s[1], s[2], s[3], s[4], tile.sum,
        tile.bytes)
    end
  end
  put("<i8I2", kept.seed, #kept.loads)
  for _, x in ipairs(kept.loads) do
    put("<s1I1I2s2", x.opcode, x.words, x.stride, x.bytes)
  end
  return table.concat(parts)
end

function fragments.write(kept)
  for _, newer in ipairs { false, true } do
    each(kept, newer, function(p, got)
      for i, tile in ipairs(p.tiles) do
        tile.sum = sum_of(got[i])
        if tile.bytes ~= "" then tile.bytes = got[i] end
      end
    end, function(x, got) x.bytes = got end)
  end
  local output <close> = assert(io.open(PATH, "wb"))
  assert(output:write(pack(kept)))
end

-- `count` words of elements of type `t`, as a matrix has them in memory.
function fragments.words(seed, count, t, style, accumulator)
  return draw(seed, count, width_of(t), function()
    return register(t, style, accumulator)
  end)
end

fragments.form_of, fragments.pack, fragments.sum_of = form_of, pack, sum_of
return fragments
