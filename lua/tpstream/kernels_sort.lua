-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels: sort, sort_pairs.
local lib, K = ...

local THREADS, TILE, DIGITS, EACH = 256, 4096, 256, 4
local DESCENDING = 4
local SMALL = 1 << 30 -- counts below fit 32 bits with their state

local function order_of(t, descending)
  local type = t.name == "bfloat16" and 3 or t.float and 2 or t.unsigned and 0 or 1
  return type + (descending and DESCENDING or 0)
end

local function kernel_for(name, t, v, n)
  local value = v and v.size or 0
  if n < SMALL then return lib.kernel("sort", name, t.size, value) end
  return lib.kernel("sort", name, t.size, value, 1)
end

-- One block reads all before it writes: in place, without scratch memory.
local function sort_tile(keys, values, t, v, n, order)
  local pass = kernel_for("sort_pass", t, v, n)
  for p = 1, t.size do
    pass:launch({ grid = 1, block = THREADS }, keys, keys, values, values, n, nil, nil,
      8 * (p - 1), order, p == 1, p == t.size)
  end
end

-- Sorts by each byte in turn, from one pair of buffers to the other and back.
local function sort_tiles(keys, values, t, v, n, order)
  local word = n < SMALL and 4 or 8
  local passes, tiles = t.size, lib.ceil(n, TILE)
  local counts <close> = lib.scratch(passes * DIGITS * 8, true)
  -- A ticket, and the states of the tiles' digits.
  local turn <close> = lib.scratch(8 + tiles * DIGITS * word)
  local other <close> = lib.tp.buffer(t.name, n)
  local other_values <close> = v and lib.tp.buffer(v.name, n) or nil
  local work = lib.ceil(n, THREADS * (16 // t.size))
  kernel_for("sort_count", t, v, n):launch(
    { grid = lib.blocks(work, EACH), block = THREADS }, keys, n, counts, order)
  kernel_for("sort_begin", t, v, n):launch({ grid = passes, block = DIGITS }, counts)
  local pass = kernel_for("sort_pass", t, v, n)
  local from, to, values_from, values_to = keys, other, values, other_values
  for p = 1, passes do
    local begin <close> = counts:slice((p - 1) * DIGITS * 8 + 1, DIGITS * 8)
    turn:fill(0)
    pass:launch({ grid = tiles, block = THREADS }, from, to, values_from, values_to,
      n, begin, turn, 8 * (p - 1), order, p == 1, p == passes)
    from, to, values_from, values_to = to, from, values_to, values_from
  end
  if passes % 2 == 1 then
    other:copy_to(keys)
    if v then other_values:copy_to(values) end
  end
end

local function sort(keys, values, t, v, n, order)
  local by = n <= TILE and n < SMALL and sort_tile or sort_tiles
  by(keys, values, t, v, n, order)
end

local OPTIONS = { descending = "boolean" }

function K.sort(keys, opts)
  local t, n = lib.buffer("sort", 1, keys)
  opts = lib.options("sort", 2, opts, OPTIONS)
  if n > 1 then sort(keys, nil, t, nil, n, order_of(t, opts.descending)) end
  return keys
end

function K.sort_pairs(keys, values, opts)
  local t, n = lib.buffer("sort_pairs", 1, keys)
  local v, m = lib.buffer("sort_pairs", 2, values)
  if m ~= n then
    lib.bad("sort_pairs", 2, "a buffer of %d elements expected, got one of %d", n, m)
  end
  opts = lib.options("sort_pairs", 3, opts, OPTIONS)
  lib.check_overlap("sort_pairs", keys, "keys", values, "values", true)
  if n > 1 then sort(keys, values, t, v, n, order_of(t, opts.descending)) end
  return keys, values
end
