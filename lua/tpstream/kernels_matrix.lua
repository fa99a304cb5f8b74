-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels: transpose, matmul.
local lib, K = ...
local native, types = lib.native, lib.types

-- ---- transpose -----------------------------------------------------------------

local THREADS, EACH = 256, 32

function K.transpose(x, rows, columns, out)
  local t, n = lib.buffer("transpose", 1, x)
  rows = lib.integer("transpose", 2, rows, 0)
  columns = lib.integer("transpose", 3, columns, 0)
  if 1.0 * rows * columns ~= n then
    lib.bad("transpose", 1, "%d by %d elements expected, got %d", rows, columns, n)
  end
  out = lib.output("transpose", 4, out, n, t)
  lib.check_overlap("transpose", x, "x", out, "the result", true)
  if n > 0 then
    local side = t.size == 8 and 32 or 64
    local tiles = lib.ceil(rows, side) * lib.ceil(columns, side)
    lib.kernel("transpose", "transpose", t.size):launch(
      { grid = lib.blocks(tiles, EACH), block = THREADS }, x, out, rows, columns)
  end
  return out
end

-- ---- matmul --------------------------------------------------------------------

local OPTIONS = {
  out = "buffer", alpha = "number", beta = "number", transpose_a = "boolean",
  transpose_b = "boolean", lda = "integer", ldb = "integer", ldc = "integer",
  batch = "integer", stride_a = "integer", stride_b = "integer",
  stride_c = "integer", library = "boolean",
}

local function bad_field(name, ...)
  lib.bad("matmul", 6, "field '%s': %s", name, string.format(...))
end

-- A matrix of rows by columns, `row` elements from one to the next, `step` from one
-- matrix of the batch to the next.
local function matrix(opts, letter, rows, columns)
  local ld, stride = "ld" .. letter, "stride_" .. letter
  local row = opts[ld] or columns
  if row < columns then
    bad_field(ld, "at least %d expected, got %d", columns, row)
  end
  local size = rows > 0 and columns > 0 and (rows - 1.0) * row + columns or 0
  local step = opts[stride]
  if not step then
    step = size < 0x1p53 and rows * row or 0 -- such a matrix no buffer holds
  elseif step < 0 then
    bad_field(stride, "must not be negative, got %d", step)
  elseif letter == "c" and step < size and (opts.batch or 1) > 1 then
    bad_field(stride, "at least %.0f expected, got %d", size, step)
  end
  return { rows = rows, columns = columns, row = row, step = step, size = size }
end

-- How many elements a batch of them takes.
local function extent(mat, batch)
  if batch == 0 or mat.size == 0 then return 0 end
  return (batch - 1.0) * mat.step + mat.size
end

local function check_extent(argument, mat, batch, count)
  local need = extent(mat, batch)
  if need > count then
    lib.bad("matmul", argument, "%d by %d elements%s%s are %.0f, the buffer has %d",
      mat.rows, mat.columns,
      mat.row > mat.columns and (" in rows of %d"):format(mat.row) or "",
      batch > 1 and (", %d times"):format(batch) or "", need, count)
  end
end

-- What products of t may be stored in: itself, and wider types.
local function result_type(t, out)
  if out == nil then return t end
  local u = types[out:dtype()]
  local fits = u == t or (t.half and u == types.f32)
    or (not t.float and not u.float and u.size > t.size
        and (t.unsigned or not u.unsigned))
  if fits then return u end
  lib.bad("matmul", 6, "field 'out': a buffer of %s or of a wider type expected, "
    .. "got one of %s", t.name, u.name)
end

local function multiply(t, u, a, b, c, p)
  if p.library ~= false and p.k > 0 and t.float
    and native.multiply(a.buffer, b.buffer, c.buffer, p.m, p.n, p.k, p.batch, a.row,
      a.step, b.row, b.step, c.row, c.step, p.alpha, p.beta, p.transpose_a,
      p.transpose_b) then
    return
  end
  local file = t.half and "matmul_half" or "matmul"
  local side = not t.half and u.size == 8 and 64 or 128
  local tiles = lib.ceil(p.m, side) * lib.ceil(p.n, side) * p.batch
  if tiles > 0x7fffffff then
    lib.misuse("matmul: %d by %d elements, %d times, are more than can be "
      .. "multiplied at once", p.m, p.n, p.batch)
  end
  local kernel = lib.kernel(file, "matmul", t.short, u.short)
  kernel:launch({ grid = tiles, block = THREADS }, a.buffer, b.buffer, c.buffer,
    p.m, p.n, p.k, a.row, b.row, c.row, a.step, b.step, c.step, p.alpha, p.beta,
    p.transpose_a, p.transpose_b)
end

-- A finite one has to be finite in the type of the sums, too.
local function check_factor(t, field, value)
  local sums = t.size == 8 and t or types.f32
  local size = math.abs(value)
  if t.float and size ~= math.huge and size > sums.greatest then
    bad_field(field, "%s does not fit %s (%s to %s)", value, sums.name,
      -sums.greatest, sums.greatest)
  end
end

function K.matmul(a, b, m, n, k, opts)
  local t, a_count = lib.buffer("matmul", 1, a)
  local _, b_count = lib.expect("matmul", 2, b, nil, t)
  m = lib.integer("matmul", 3, m, 0)
  n = lib.integer("matmul", 4, n, 0)
  k = lib.integer("matmul", 5, k, 0)
  opts = lib.options("matmul", 6, opts, OPTIONS)
  local p = {
    m = m, n = n, k = k, batch = opts.batch or 1, alpha = opts.alpha or 1,
    beta = opts.beta or 0, transpose_a = opts.transpose_a or false,
    transpose_b = opts.transpose_b or false, library = opts.library,
  }
  check_factor(t, "alpha", p.alpha)
  check_factor(t, "beta", p.beta)
  if p.batch < 0 then bad_field("batch", "must not be negative, got %d", p.batch) end
  local x = matrix(opts, "a", p.transpose_a and k or m, p.transpose_a and m or k)
  local y = matrix(opts, "b", p.transpose_b and n or k, p.transpose_b and k or n)
  local z = matrix(opts, "c", m, n)
  check_extent(1, x, p.batch, a_count)
  check_extent(2, y, p.batch, b_count)
  local u = result_type(t, opts.out)
  local out = opts.out
  if out == nil then
    if p.beta ~= 0 then bad_field("beta", "of no use without 'out'") end
    out = lib.tp.buffer(u.name, lib.count("matmul", extent(z, p.batch)))
  else
    check_extent(6, z, p.batch, out:count())
    lib.check_overlap("matmul", a, "a", out, "the result", true)
    lib.check_overlap("matmul", b, "b", out, "the result", true)
  end
  x.buffer, y.buffer, z.buffer = a, b, out
  if m > 0 and n > 0 and p.batch > 0 then multiply(t, u, x, y, z, p) end
  return out
end
