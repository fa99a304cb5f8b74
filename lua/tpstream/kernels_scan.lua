-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels: scan, exclusive_scan, histogram.
local lib, K = ...
local types = lib.types

-- ---- scan ----------------------------------------------------------------------

local THREADS, WARPS, WARP, GROUP = 256, 8, 32, 32
local OPS = { sum = true, product = true, min = true, max = true }

-- Elements of a tile, as kernels/scan.cu has them.
local function tile_of(t, u)
  local n = 16 // math.max(t.size, u.size)
  local rows = n >= 16 and 1 or n >= 8 and 2 or 4
  return WARPS * rows * WARP * n
end

-- What changes nothing, in the type that U is computed in.
local function neutral(op, u)
  if op == "sum" then return 0 end
  if op == "product" then return 1 end
  local least = op == "max"
  if u.float then return least and -math.huge or math.huge end
  if u.unsigned then return least and 0 or u.size == 8 and -1 or 0xffffffff end
  if u.size == 8 then return least and math.mininteger or math.maxinteger end
  return least and -0x80000000 or 0x7fffffff
end

-- Whether sums of t's may go into u's: what holds all values of t.
local function holds(u, t)
  if u == t then return true end
  if u.float then return t.float and u.size > t.size end
  if t.float or u.size <= t.size then return false end
  return not u.unsigned or t.unsigned
end

local function scan(name, exclusive, x, out, opts)
  local known = { op = "string", init = exclusive and "number" or nil }
  local t, n = lib.buffer(name, 1, x)
  if out == nil then
    out = lib.tp.buffer(t.name, n)
  else
    local u, m = lib.buffer(name, 2, out)
    if not holds(u, t) then
      lib.bad(name, 2, "a buffer of %s or of a wider type expected, got one of %s",
        t.name, u.name)
    elseif m ~= n then
      lib.bad(name, 2, "a buffer of %d elements expected, got one of %d", n, m)
    end
  end
  opts = lib.options(name, 3, opts, known)
  local op, u = opts.op or "sum", types[out:dtype()]
  if not OPS[op] then
    lib.bad(name, 3, "field 'op': 'sum', 'product', 'min' or 'max' expected, "
      .. "got '%s'", op)
  end
  local init = opts.init
  if init == nil then init = neutral(op, u) end
  lib.check_overlap(name, x, "x", out, "the result")
  if n == 0 then return out end
  local kernel = lib.kernel("scan", "scan", t.short, u.short, op)
  local tiles = lib.ceil(n, tile_of(t, u))
  local slots = tiles + lib.ceil(tiles, GROUP)
  local room <close> = tiles > 1
    and lib.scratch(16 + slots * (u.size == 8 and 24 or 8), true) or nil
  kernel:launch({ grid = tiles, block = THREADS }, x, out, n, room, init, exclusive)
  return out
end

function K.scan(x, out, opts) return scan("scan", false, x, out, opts) end
function K.exclusive_scan(x, out, opts)
  return scan("exclusive_scan", true, x, out, opts)
end

-- ---- histogram -----------------------------------------------------------------

local COUNT_THREADS, EACH = 512, 4
local LOCAL_BINS = 8192 -- that a block counts by itself

local function check_limit(t, argument, value)
  if type(value) ~= "number" then
    lib.bad("histogram", argument, "number expected, got %s", lib.type_name(value))
  elseif value ~= value or value == math.huge or value == -math.huge then
    lib.bad("histogram", argument, "a finite number expected, got %s", value)
  elseif not t.float and not math.tointeger(value) then
    lib.bad("histogram", argument, "%s is not a whole number", value)
  end
end

-- Limits of the bins, as numbers of the type; integers count from 0 by default.
local function limits(t, bins, low, high)
  if low == nil and high == nil and not t.float then return 0, bins end
  check_limit(t, 3, low)
  check_limit(t, 4, high)
  if not t.float then low, high = math.tointeger(low), math.tointeger(high) end
  local below = low < high
  if t == types.u64 then below = math.ult(low, high) end
  if not below then
    lib.bad("histogram", 4, "more than %s expected, got %s", low, high)
  end
  return low, high
end

-- How many bins there are to 1 of a range of floats, of the type that it is computed
-- in: neither that nor the range may be beyond that type.
local function scale_of(t, bins, low, high)
  local a = t.half and types.f32 or t
  for argument, value in pairs { [3] = low, [4] = high } do
    if math.abs(value) > a.greatest then
      lib.bad("histogram", argument, "%s does not fit %s", value, a.name)
    end
  end
  local scale = bins / (high - low)
  if high - low > a.greatest or scale > a.greatest
    or lib.rounded(a, low) == lib.rounded(a, high) then
    lib.bad("histogram", 4, "%d bins from %s to %s are beyond %s", bins, low, high,
      a.name)
  end
  return scale
end

-- Narrow integers are compared in 32 bits: limits beyond them change nothing but the
-- width of the bins, which is computed in 64.
local function clamp(t, low, high)
  if t.float or t.size == 8 then return low, high end
  local least = t.unsigned and 0 or -0x80000000
  local greatest = t.unsigned and 0xffffffff or 0x7fffffff
  if low < least or low > greatest or high < least or high > greatest then
    lib.misuse("histogram: the range %d to %d is beyond the %d to %d that %s is "
      .. "compared in", low, high, least, greatest, t.name)
  end
  return low, high
end

function K.histogram(x, bins, low, high, opts)
  local t, n = lib.buffer("histogram", 1, x)
  bins = lib.integer("histogram", 2, bins, 1, 0x7fffffff)
  low, high = clamp(t, limits(t, bins, low, high))
  local scale = t.float and scale_of(t, bins, low, high) or 0
  opts = lib.options("histogram", 5, opts, { out = "buffer", closed = "boolean" })
  local out = lib.output("histogram", 5, opts.out, bins, types.i64, types.u64,
    types.i32, types.u32)
  lib.check_overlap("histogram", x, "x", out, "the result", true)
  local narrow = types[out:dtype()].size == 4
  local counts = narrow and lib.tp.zeros("u64", bins) or out
  if not narrow then out:fill(0) end
  if n > 0 then
    local is_local = bins <= LOCAL_BINS
    local kernel = lib.kernel("histogram", is_local and "histogram_local"
      or "histogram_global", t.short)
    local work = lib.ceil(n, COUNT_THREADS * (16 // t.size))
    kernel:launch({ grid = lib.blocks(work, EACH), block = COUNT_THREADS,
      shared = is_local and 4 * bins or 0 }, x, n, counts, low, high,
      scale, t.float and 0 or high - low, bins,
      opts.closed or false)
  end
  if narrow then
    local kernel = lib.kernel("histogram", "histogram_narrow", t.short)
    kernel:forall(bins, counts, out, bins)
    counts:close()
  end
  return out
end
