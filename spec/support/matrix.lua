-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- A reference for matrix instructions, made of whole numbers only: how elements lie
-- in the registers of a warp (as the PTX manual draws it), what an element is worth,
-- and how products are summed (as an H200 does it; see src/sim/engine_multiply.c).
--
--   local matrix = require "spec.support.matrix"
--   local forms = { matrix.form("m16n8k16", "f32.f16.f16.f32"), … }
--   matrix.check(module, forms, tiles)    -- module: of matrix.source(forms)
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local matrix = {}

-- name → bits, exponent, fraction, bits below
local FLOATS = { f16 = { 16, 5, 10, 0 }, bf16 = { 16, 8, 7, 0 },
  tf32 = { 32, 8, 10, 13 }, f32 = { 32, 8, 23, 0 }, e4m3 = { 8, 4, 3, 0 },
  e5m2 = { 8, 5, 2, 0 } }
local BITS = { s8 = 8, u8 = 8, s4 = 4, u4 = 4, b1 = 1, s32 = 32, f64 = 64 }
for name, f in pairs(FLOATS) do BITS[name] = f[1] end
matrix.BITS = BITS

-- --- what bits mean ---------------------------------------------------------

-- kind ("n", "inf", "nan"), sign (1 or -1), significand, exponent of its last place,
-- exponent of its first
local function decode(t, bits)
  local _, e, m, low = table.unpack(FLOATS[t])
  bits = bits >> low
  local sign = bits >> (e + m) & 1 == 1 and -1 or 1
  local exponent = bits >> m & (1 << e) - 1
  local fraction = bits & (1 << m) - 1
  local bias = (1 << e - 1) - 1
  if t == "e4m3" then
    if exponent == 15 and fraction == 7 then return "nan" end
  elseif exponent == (1 << e) - 1 then
    if fraction ~= 0 then return "nan" end
    return "inf", sign
  end
  if exponent == 0 then return "n", sign, fraction, 1 - bias - m, 1 - bias end
  return "n", sign, fraction | 1 << m, exponent - bias - m, exponent - bias
end
matrix.decode = decode

local function integer(t, bits)
  if t == "s8" or t == "s4" or t == "s32" then
    return numbers.wrap(bits, BITS[t])
  end
  return bits
end

local function length(v)
  local n = 0
  while v > 0 do n, v = n + 1, v >> 1 end
  return n
end

-- v × 2^last in a format; cut, or rounded to the nearest.
local function encode(t, v, last, nearest)
  local _, e, m = table.unpack(FLOATS[t])
  if v == 0 then return 0 end
  local sign, size = 0, v
  if v < 0 then sign, size = 1 << e + m, -v end
  local bias = (1 << e - 1) - 1
  local first = length(size) - 1 + last
  local base = math.max(first, 1 - bias)
  local shift = base - m - last
  local q
  if shift <= 0 then
    q = size << -shift
  elseif shift > 62 then
    q = 0
  else
    q = size >> shift
    local rest, half = size & (1 << shift) - 1, 1 << shift - 1
    if nearest and (rest > half or (rest == half and q & 1 == 1)) then
      q = q + 1
    end
  end
  local top = (1 << e) - 1 << m
  return sign | math.min(q + (base + bias - 1 << m), top)
end
matrix.encode = encode

local NAN = { f32 = 0x7fffffff, f16 = 0x7fff }
local function infinite(t, sign)
  local _, e, m = table.unpack(FLOATS[t])
  return (sign < 0 and 1 << e + m or 0) | (1 << e) - 1 << m
end

-- --- sums --------------------------------------------------------------------

-- Terms { sign, significand, last, first }, aligned to the largest first, cut 25 bits
-- below it.
local function aligned_sum(terms)
  local top
  for _, x in ipairs(terms) do
    if x[2] ~= 0 and (not top or x[4] > top) then top = x[4] end
  end
  if not top then return 0, 0 end
  local last, total = top - 25, 0
  for _, x in ipairs(terms) do
    local shift = x[3] - last
    local v = shift >= 0 and x[2] << shift or shift > -63 and x[2] >> -shift or 0
    total = total + x[1] * v
  end
  return total, last
end

-- One block: products of as and bs at the places of `order`, and c.
local function block(f, as, bs, order, c, c_type, d_type)
  local terms, infinities, nan = {}, {}, false
  local function add(kind, sign, ...)
    if kind == "nan" then nan = true
    elseif kind == "inf" then infinities[sign] = true
    else terms[#terms + 1] = { sign, ... } end
  end
  for _, k in ipairs(order) do
    local ka, sa, ma, la, fa = decode(f.a_type, as[k])
    local kb, sb, mb, lb, fb = decode(f.b_type, bs[k])
    if ka == "nan" or kb == "nan" then
      add "nan"
    elseif ka == "inf" or kb == "inf" then
      local zero = ka == "n" and ma == 0 or kb == "n" and mb == 0
      add(zero and "nan" or "inf", sa * sb)
    else
      add("n", sa * sb, ma * mb, la + lb, fa + fb)
    end
  end
  add(decode(c_type, c))
  if nan or (infinities[1] and infinities[-1]) then return NAN[d_type] end
  if infinities[1] or infinities[-1] then
    return infinite(d_type, infinities[1] and 1 or -1)
  end
  local total, last = aligned_sum(terms)
  return encode(d_type, total, last, d_type == "f16")
end

-- x + y, rounded to the nearest.
local function plus(t, x, y)
  local kx, sx, mx, lx = decode(t, x)
  local ky, sy, my, ly = decode(t, y)
  if kx == "nan" or ky == "nan" then return NAN[t] end
  if kx == "inf" and ky == "inf" then return sx == sy and x or NAN[t] end
  if kx == "inf" then return x end
  if ky == "inf" then return y end
  if t == "f16" then
    local last = math.min(lx, ly)
    return encode(t, sx * (mx << lx - last) + sy * (my << ly - last), last, true)
  end
  return numbers.bits32(numbers.from_bits32(x) + numbers.from_bits32(y))
end

local function ascending(n)
  local t = {}
  for k = 1, n do t[k] = k end
  return t
end

local function f64_of(bits) return (string.unpack("<d", string.pack("<i8", bits))) end
local function f16_value(bits)
  local kind, sign, m, last = decode("f16", bits)
  if kind == "nan" then return 0 / 0 end
  if kind == "inf" then return sign * math.huge end
  return sign * m * 2.0 ^ last
end

-- An exact product added, rounded once: fma on doubles. Dekker's product and Knuth's
-- sum; the values of the specs are far from overflow.
local function two_product(a, b)
  local p = a * b
  local function halves(x)
    local t = 134217729.0 * x
    local high = t - (t - x)
    return high, x - high
  end
  local ah, al = halves(a)
  local bh, bl = halves(b)
  return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl
end
local function two_sum(a, b)
  local s = a + b
  local t = s - a
  return s, (a - (s - t)) + (b - t)
end
local function fma(a, b, c)
  local p, pe = two_product(a, b)
  local s, se = two_sum(p, c)
  local t, te = two_sum(pe, se)
  if te ~= 0 then -- the tail rounded to odd, so that the last rounding is right
    local bits = numbers.bits64(t)
    if bits & 1 == 0 then
      t = f64_of((te > 0) == (t > 0) and bits + 1 or bits - 1)
    end
  end
  return s + t
end
matrix.fma = fma

-- A result's bits from a row of A, a column of B and an accumulator.
function matrix.dot(f, as, bs, c)
  local k = #as
  if f.a_type == "f64" then
    local total = f64_of(c)
    for x = 1, k do total = fma(f64_of(as[x]), f64_of(bs[x]), total) end
    return numbers.bits64(total)
  end
  if f.a_type == "b1" then
    local total = 0
    for x = 1, k do
      total = total + (f.conjunction and as[x] & bs[x] or as[x] ~ bs[x])
    end
    return c + total & 0xffffffff
  end
  if not FLOATS[f.a_type] then
    local total = integer("s32", c)
    for x = 1, k do
      total = total + integer(f.a_type, as[x]) * integer(f.b_type, bs[x])
    end
    if f.saturate then
      total = math.max(-0x80000000, math.min(0x7fffffff, total))
    end
    return total & 0xffffffff
  end
  if BITS[f.a_type] == 8 then
    local pairs_of = { {}, {} } -- the even pairs, the odd ones
    for x = 0, k - 1 do table.insert(pairs_of[(x >> 1 & 1) + 1], x + 1) end
    local products = 0
    for _, order in ipairs(pairs_of) do
      products = block(f, as, bs, order, products, f.d_type, f.d_type)
    end
    return plus(f.d_type, products, c)
  end
  if f.quads then
    local total = 0.0
    for x = 1, k do
      total = numbers.f32(total + f16_value(as[x]) * f16_value(bs[x]))
    end
    local acc = f.c_type == "f16" and f16_value(c) or numbers.from_bits32(c)
    total = total + acc
    if total ~= total then return NAN[f.d_type] end
    local bits = numbers.bits32(total)
    if f.d_type == "f32" then return bits end
    local kind, sign, m, last = decode("f32", bits)
    if kind == "inf" then return infinite("f16", sign) end
    return encode("f16", sign * m, last, true)
  end
  if f.halves then -- wmma with tf32
    local low, high = {}, {}
    for x = 1, k // 2 do low[x], high[x] = x, x + k // 2 end
    c = block(f, as, bs, low, c, f.c_type, f.d_type)
    return block(f, as, bs, high, c, f.d_type, f.d_type)
  end
  return block(f, as, bs, ascending(k), c, f.c_type, f.d_type)
end

-- --- where elements lie -------------------------------------------------------

local function per_register(t) return math.max(1, 32 // BITS[t]) end

-- Calls fn(register, element, row, column) for what a lane holds of A, B, C or D.
local function each_of_a(f, lane, fn)
  local g, q = lane >> 2, lane & 3
  if f.quads then
    for i = 0, 3 do
      local row, col = (lane & 3) + (lane >> 4) * 4, i
      if f.a_column then row, col = i + (lane >> 4) * 4, lane & 3 end
      fn(i // 2, i % 2, row, col)
    end
    return
  end
  local e = per_register(f.a_type)
  for r = 0, f.a - 1 do
    for j = 0, e - 1 do
      if f.m == 8 then fn(r, j, g, r * 4 * e + q * e + j)
      else fn(r, j, g + 8 * (r & 1), (r >> 1) * 4 * e + q * e + j) end
    end
  end
end

local function each_of_b(f, lane, fn)
  if f.quads then
    for i = 0, 3 do
      local row, col = lane & 3, i + (lane >> 4) * 4
      if f.b_column then row, col = i, (lane & 3) + (lane >> 4) * 4 end
      fn(i // 2, i % 2, row, col)
    end
    return
  end
  local e = per_register(f.b_type)
  for r = 0, f.b - 1 do
    for j = 0, e - 1 do
      fn(r, j, r * 4 * e + (lane & 3) * e + j, lane >> 2)
    end
  end
end

local function each_of_c(f, lane, t, fn)
  local g, q, high = lane >> 2, lane & 3, lane >> 4
  local count = f.quads and 8 or f.m == 16 and 4 or 2
  for i = 0, count - 1 do
    local row, col = g + 8 * (i >> 1), 2 * q + (i & 1)
    if f.quads and t == "f16" then
      row, col = (lane & 3) + 4 * high, i
    elseif f.quads then
      row = (lane & 1) + (i & 2) + 4 * high
      col = (i & 4) + (lane & 2) + (i & 1)
    end
    if t == "f16" then fn(i // 2, i % 2, row, col) else fn(i, 0, row, col) end
  end
end

-- --- sparse -------------------------------------------------------------------

-- Two of four (one of two for tf32, two pairs of four for 4-bit integers): for each
-- stored element of a row the column that it stands for.
local function places(f, meta, row)
  local bits = BITS[f.a_type]
  local each = bits == 32 and 1 or bits == 4 and 4 or 2
  local groups, g, h = f.k // 2 // each, row & 7, row >> 3
  local out = {}
  for c = 0, groups - 1 do
    local x
    if groups == 4 then
      x = meta[4 * g + f.selector + 1] >> (16 * h + 4 * c)
    elseif groups == 8 and bits >= 16 then
      x = meta[4 * g + 2 * f.selector + c // 4 + 1] >> (16 * h + 4 * (c % 4))
    elseif groups == 8 then
      x = meta[4 * g + 2 * f.selector + h + 1] >> 4 * c
    else
      x = meta[4 * g + 2 * (c // 8) + h + 1] >> 4 * (c % 8)
    end
    for i = 0, each == 1 and 0 or 1 do
      local at = x >> 2 * i & 3
      if each == 1 then
        out[#out + 1] = 2 * c + (x & 8 ~= 0 and 1 or 0)
      elseif each == 2 then
        out[#out + 1] = 4 * c + at
      else
        out[#out + 1] = 8 * c + 2 * at
        out[#out + 1] = 8 * c + 2 * at + 1
      end
    end
  end
  return out
end

-- --- forms --------------------------------------------------------------------

-- "m16n8k16", "f32.f16.f16.f32" → what there is to know. Options: layout ("row.col"),
-- saturate, bits ("xor", "and"), selector and ordered of sparse ones.
function matrix.form(shape, types, options)
  local f = {}
  for name, value in pairs(options or {}) do f[name] = value end
  f.m, f.n, f.k = shape:match "m(%d+)n(%d+)k(%d+)"
  f.m, f.n, f.k = tonumber(f.m), tonumber(f.n), tonumber(f.k)
  f.d_type, f.a_type, f.b_type, f.c_type =
    types:match "^(%w+)%.(%w+)%.(%w+)%.(%w+)$"
  local layout = f.layout or "row.col"
  f.quads = shape == "m8n8k4" and f.a_type == "f16"
  f.a_column = layout:match "^col" ~= nil
  f.b_column = layout:match "col$" ~= nil
  f.conjunction = f.bits == "and"
  local stored = f.selector and f.k // 2 or f.k
  local words = f.a_type == "f64" and 32 or 1
  f.a = f.quads and 2 or f.m * stored * BITS[f.a_type] // 1024 // (words == 32
    and 2 or 1)
  f.b = f.quads and 2 or f.n * f.k * BITS[f.b_type] // 1024 // (words == 32
    and 2 or 1)
  local function accumulators(t)
    return f.m * f.n // 32 * (f.quads and 4 or 1) // (t == "f16" and 2 or 1)
  end
  f.c, f.d = accumulators(f.c_type), accumulators(f.d_type)
  f.opcode = table.concat { "mma",
    f.selector and (f.ordered and ".sp::ordered_metadata" or ".sp") or "",
    ".sync.aligned.", shape, ".", layout, f.saturate and ".satfinite" or "",
    ".", types, f.bits and "." .. f.bits .. ".popc" or "" }
  return f
end

local C_TYPE = { f32 = "float", f64 = "double" }
local CONSTRAINT = { f32 = "f", f64 = "d" }

local function kernel_source(f, index)
  local at = 0
  local function list(count)
    local parts = {}
    for i = 1, count do parts[i] = "%" .. at + i - 1 end
    at = at + count
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  local ab = f.a_type == "f64" and "f64" or "b32"
  local text = { f.opcode, " ", list(f.d), ", ", list(f.a), ", ", list(f.b),
    ", ", list(f.c) }
  if f.selector then
    table.insert(text, ", %" .. at .. ", " .. f.selector)
  end
  local outs, ins = {}, {}
  local function operands(into, name, count, t, sign)
    for i = 0, count - 1 do
      table.insert(into, ('"%s%s"(%s[%d])'):format(sign, CONSTRAINT[t] or "r",
        name, i))
    end
  end
  operands(outs, "d", f.d, f.d_type, "=")
  operands(ins, "a", f.a, ab, "")
  operands(ins, "b", f.b, ab, "")
  operands(ins, "c", f.c, f.c_type, "")
  if f.selector then table.insert(ins, '"r"(meta[tile * 32 + lane])') end
  local function declare(name, count, t)
    local c = C_TYPE[t] or "unsigned"
    return ([[
  %s %s[%d];
  for (int i = 0; i < %d; i++)
    %s[i] = ((const %s *)%s_)[(tile * %d + i) * 32 + lane];
]]):format(c, name, count, count, name, c, name, count)
  end
  local d = C_TYPE[f.d_type] or "unsigned"
  return table.concat { ([[
extern "C" __global__ void form%d(const unsigned char *a_, const unsigned char *b_,
    const unsigned char *c_, const unsigned *meta, unsigned char *d_) {
  int tile = blockIdx.x, lane = threadIdx.x;
]]):format(index), declare("a", f.a, ab), declare("b", f.b, ab),
    declare("c", f.c, f.c_type), ("  %s d[%d];\n"):format(d, f.d),
    ('  asm volatile("%s;"\n    : %s\n    : %s);\n'):format(table.concat(text),
      table.concat(outs, ", "), table.concat(ins, ", ")), ([[
  for (int i = 0; i < %d; i++) ((%s *)d_)[(tile * %d + i) * 32 + lane] = d[i];
}
]]):format(f.d, d, f.d) }
end

function matrix.source(forms)
  local parts = {}
  for i, f in ipairs(forms) do parts[i] = kernel_source(f, i) end
  return table.concat(parts)
end

-- --- inputs -------------------------------------------------------------------

-- Bits of an element. Styles: 0 near 1, 1 wide apart, 2 any bits at all, 3 many
-- zeros, 4 accumulators far larger or smaller than the products.
local function random_float(g, t, style, accumulator)
  local bits, e, m, low = table.unpack(FLOATS[t])
  local most, bias = (1 << e) - 2, (1 << e - 1) - 1
  if style == 2 and not accumulator and g.int(0, 3) == 0 then
    return g.bits() & (1 << bits) - 1
  end
  local spread = ({ [0] = 2, e > 5 and 20 or bias - 2, 3, 6, 3 })[style]
  if accumulator and style == 4 then spread = e > 5 and 24 or bias - 2 end
  if style == 3 and not accumulator and g.int(1, 10) < 7 then return 0 end
  local exponent = bias + g.int(-spread, spread)
  exponent = math.max(1, math.min(most, exponent))
  local sign, fraction = g.int(0, 1), g.bits() & (1 << m) - 1
  return ((sign << e | exponent) << m | fraction) << low
end

local function random_register(g, t, style, accumulator)
  if t == "f64" then
    local spread = ({ [0] = 2, 20, 30, 5, 60 })[style]
    if style == 3 and not accumulator and g.int(1, 10) < 6 then return 0 end
    local exponent = 1023 + g.int(-spread, spread)
    return g.int(0, 1) << 63 | exponent << 52 | g.bits() & (1 << 52) - 1
  end
  if t == "s32" and style == 4 then
    return (g.int(0, 1) == 1 and 0x7fffff80 or 0x80000000) + g.int(0, 127)
  end
  if not FLOATS[t] then return g.bits() & 0xffffffff end
  local w = 0
  for k = 0, 32 // BITS[t] - 1 do
    w = w | random_float(g, t, style, accumulator) << k * BITS[t]
  end
  return w
end

local PAIRS = { 0x4, 0x8, 0xc, 0x9, 0xd, 0xe }
local function random_metadata(g, t)
  local w = 0
  for k = 0, 7 do
    local x = t == "tf32" and (g.int(0, 1) == 1 and 0xe or 0x4)
      or PAIRS[g.int(1, 6)]
    w = w | x << 4 * k
  end
  return w
end

local function registers(g, t, count, tiles, accumulator)
  local list = {}
  for tile = 0, tiles - 1 do
    for _ = 1, count * 32 do
      list[#list + 1] = random_register(g, t, tile % 5, accumulator)
    end
  end
  return list
end

local function packed(list, t)
  local format = t == "f64" and "<i8" or "<I4"
  local parts = {}
  for i, v in ipairs(list) do parts[i] = string.pack(format, v) end
  return table.concat(parts)
end

local function unpacked(text, t)
  local format, size = "<I4", 4
  if t == "f64" then format, size = "<i8", 8 end
  local list = {}
  for i = 1, #text // size do
    list[i] = string.unpack(format, text, (i - 1) * size + 1)
  end
  return list
end

-- --- the check ------------------------------------------------------------------

local function grid(rows, cols)
  local t = {}
  for r = 1, rows do
    t[r] = {}
    for c = 1, cols do t[r][c] = 0 end
  end
  return t
end

-- Matrices of one tile (and of one of the four of m8n8k4).
local function gather(f, data, tile, quad)
  local stored = f.selector and f.k // 2 or f.k
  local a, b = grid(f.m, stored), grid(f.k, f.n)
  local c, d = grid(f.m, f.n), grid(f.m, f.n)
  local function value(list, count, t, lane, r, j)
    local w = list[(tile * count + r) * 32 + lane + 1]
    local bits = BITS[t]
    if bits >= 32 then return w end
    return w >> j * bits & (1 << bits) - 1
  end
  for lane = 0, 31 do
    if not quad or lane >> 2 & 3 == quad then
      each_of_a(f, lane, function(r, j, row, col)
        a[row + 1][col + 1] = value(data.a, f.a, f.a_type, lane, r, j)
      end)
      each_of_b(f, lane, function(r, j, row, col)
        b[row + 1][col + 1] = value(data.b, f.b, f.b_type, lane, r, j)
      end)
      each_of_c(f, lane, f.c_type, function(r, j, row, col)
        c[row + 1][col + 1] = value(data.c, f.c, f.c_type, lane, r, j)
      end)
      each_of_c(f, lane, f.d_type, function(r, j, row, col)
        d[row + 1][col + 1] = value(data.d, f.d, f.d_type, lane, r, j)
      end)
    end
  end
  return a, b, c, d
end

-- f16 accumulators of m8n8k4 may be a unit of the last place off.
local function agree(f, got, expected)
  if got == expected then return true end
  return f.quads and f.d_type == "f16" and math.abs(got - expected) == 1
end

local function check_tile(f, data, tile, quad)
  local a, b, c, d = gather(f, data, tile, quad)
  local meta = table.move(data.meta, tile * 32 + 1, tile * 32 + 32, 1, {})
  for row = 1, f.m do
    local which = f.selector and places(f, meta, row - 1)
    for col = 1, f.n do
      local bs = {}
      for k = 1, #a[row] do bs[k] = b[which and which[k] + 1 or k][col] end
      local expected = matrix.dot(f, a[row], bs, c[row][col])
      if not agree(f, d[row][col], expected) then
        error(("%s, tile %d, row %d, column %d: 0x%x, 0x%x expected"):format(
          f.opcode, tile, row, col, d[row][col], expected), 0)
      end
    end
  end
end

-- Runs every form over `tiles` random tiles and compares every bit.
function matrix.check(module, forms, tiles)
  for index, f in ipairs(forms) do
    local g = numbers.generator(index)
    local data = { a = registers(g, f.a_type, f.a, tiles),
      b = registers(g, f.b_type, f.b, tiles),
      c = registers(g, f.c_type, f.c, tiles, true), meta = {} }
    for i = 1, tiles * 32 do data.meta[i] = random_metadata(g, f.a_type) end
    local a <close> = tp.buffer("u8", packed(data.a, f.a_type))
    local b <close> = tp.buffer("u8", packed(data.b, f.b_type))
    local c <close> = tp.buffer("u8", packed(data.c, f.c_type))
    local meta <close> = tp.buffer("u32", data.meta)
    local d <close> = tp.zeros("u8", tiles * f.d * 32 * (f.d_type == "f64" and 8
      or 4))
    local kernel <close> = module:kernel("form" .. index)
    kernel:launch({ grid = tiles, block = 32 }, a, b, c, meta, d)
    data.d = unpacked(d:bytes(), f.d_type)
    for tile = 0, tiles - 1 do
      for quad = 0, f.quads and 3 or 0 do
        check_tile(f, data, tile, f.quads and quad)
      end
    end
  end
end

-- A random element.
function matrix.random(g, t, style, accumulator)
  if FLOATS[t] then return random_float(g, t, style, accumulator) end
  if BITS[t] >= 32 then return random_register(g, t, style, accumulator) end
  return g.bits() & (1 << BITS[t]) - 1
end

return matrix
