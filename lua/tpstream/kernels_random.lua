-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels: random_uniform, random_normal.
local lib, K = ...
local types = lib.types

local THREADS, EACH = 256, 8

local function launch(kernel, x, n, each, opts, ...)
  local seed, offset = opts.seed, opts.offset or 0
  if offset < 0 then
    lib.bad("random_" .. kernel:name(), 2,
      "field 'offset': must not be negative, got %d", offset)
  end
  if seed == nil then seed = math.random(0) end
  local work = lib.ceil(n // each + 2, THREADS)
  kernel:launch({ grid = lib.blocks(work, EACH), block = THREADS }, x, n, seed,
    offset, ...)
end

local function finite(name, opts, field, otherwise)
  local value = opts[field]
  if value == nil then return otherwise end
  if value ~= value or value == math.huge or value == -math.huge then
    lib.bad(name, 2, "field '%s': a finite number expected, got %s", field, value)
  end
  return value
end

local UNIFORM = { seed = "integer", offset = "integer", low = "number",
  high = "number" }

-- The limits, as the numbers of x's type that are nearest.
local function float_limits(t, opts)
  local given = {
    low = finite("random_uniform", opts, "low", 0),
    high = finite("random_uniform", opts, "high", 1),
  }
  for field, value in pairs(given) do
    if math.abs(value) > t.greatest then
      lib.bad("random_uniform", 2, "field '%s': %s does not fit %s (%s to %s)", field,
        value, t.name, -t.greatest, t.greatest)
    end
  end
  if not (given.low < given.high) then
    lib.bad("random_uniform", 2, "field 'high': more than %s expected, got %s",
      given.low, given.high)
  end
  local low, high = lib.rounded(t, given.low), lib.rounded(t, given.high)
  if low == high then
    lib.bad("random_uniform", 2, "field 'high': %s is the same %s as %s", given.high,
      t.name, given.low)
  end
  return low, high
end

local function uniform_floats(x, t, n, opts)
  local low, high = float_limits(t, opts)
  if high - low > (t.half and types.f32 or t).greatest then
    lib.bad("random_uniform", 2, "field 'high': from %s to %s it is further than %s "
      .. "reaches", low, high, t.half and "float32" or t.name)
  end
  if n > 0 then
    launch(lib.kernel("random", "uniform", t.short), x, n,
      t.size == 8 and 2 or 4, opts, low, high - low, high)
  end
  return x
end

-- The type's limits as Lua's integers; of uint64 the same 64 bits.
local function limits(t)
  local bits = 8 * t.size
  if t.unsigned then return 0, t.size == 8 and -1 or (1 << bits) - 1 end
  return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
end

local function whole(opts, field, otherwise)
  local value = opts[field]
  if value == nil then return otherwise end
  local number = math.tointeger(value)
  if not number then
    lib.bad("random_uniform", 2, "field '%s': %s is not a whole number", field, value)
  end
  return number
end

local function uniform_integers(x, t, n, opts)
  local least, greatest = limits(t)
  local low, high = whole(opts, "low", least), whole(opts, "high", greatest)
  local before = t == types.u64 and math.ult or function(a, b) return a < b end
  for field, value in pairs { low = low, high = high } do
    if before(value, least) or before(greatest, value) then
      lib.bad("random_uniform", 2, "field '%s': %d does not fit %s (%d to %d)", field,
        value, t.name, least, greatest)
    end
  end
  if before(high, low) then
    lib.bad("random_uniform", 2, "field 'high': at least %d expected, got %d", low,
      high)
  end
  if n > 0 then
    launch(lib.kernel("random", "uniform", t.short, 1), x, n, 2,
      opts, low, high - low + 1)
  end
  return x
end

function K.random_uniform(x, opts)
  local t, n = lib.buffer("random_uniform", 1, x)
  opts = lib.options("random_uniform", 2, opts, UNIFORM)
  return (t.float and uniform_floats or uniform_integers)(x, t, n, opts)
end

local NORMAL = { seed = "integer", offset = "integer", mean = "number",
  deviation = "number" }

function K.random_normal(x, opts)
  local t, n = lib.expect("random_normal", 1, x, nil, types.f16, types.bf16,
    types.f32, types.f64)
  opts = lib.options("random_normal", 2, opts, NORMAL)
  local mean = finite("random_normal", opts, "mean", 0)
  local deviation = finite("random_normal", opts, "deviation", 1)
  if n > 0 then
    launch(lib.kernel("random", "normal", t.short), x, n,
      t.size == 8 and 2 or 4, opts, mean, deviation)
  end
  return x
end
