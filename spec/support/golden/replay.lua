-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Compares a device with the golden files.
--
--   local differences, count = replay.check(family)   -- texts; operations
local bounds = require "spec.support.golden.bounds"
local inputs = require "spec.support.golden.inputs"
local kernels = require "spec.support.golden.kernels"
local results = require "spec.support.golden.results"

local replay = {}

local FORMAT = { b8 = "<I1", b16 = "<I2", b32 = "<I4", b64 = "<i8" }

local function value_at(op, bytes, i)
  local width = kernels.WIDTH[op.result]
  return (string.unpack(FORMAT[op.result], bytes, (i - 1) * width + 1))
end

-- "add.f32(3f800000, 7f800000)"
local function call(op, i)
  local words = {}
  for k, class in ipairs(op.arguments) do
    words[k] = ("%x"):format(inputs.columns(class)[k][i])
  end
  return ("%s(%s)"):format(op.name, table.concat(words, ", "))
end

local function exact(op, kept, got, keep)
  if kept.bytes == got.bytes and kept.sum == got.sum then return nil end
  for i = 1, keep do
    local x, y = value_at(op, kept.bytes, i), value_at(op, got.bytes, i)
    if x ~= y then
      return ("%s is %x, %x on a GPU"):format(call(op, i), y, x)
    end
  end
  return op.name .. ": some result among all inputs differs"
end

-- The distance of two floats of one width in units of the last place.
local function places(x, y, bits)
  local sign, rest = 1 << (bits - 1), ~(-1 << (bits - 1))
  if x & sign ~= 0 then x = -(x & rest) end
  if y & sign ~= 0 then y = -(y & rest) end
  return math.abs(x - y)
end

local function within(op, limit, kept, got, keep)
  local format = bounds.FORMATS[op.arguments[1]]
  local bits = 8 * kernels.WIDTH[op.result]
  for i = 1, keep do
    local x, y = value_at(op, kept.bytes, i), value_at(op, got.bytes, i)
    local xv, yv = bounds.value(x, format), bounds.value(y, format)
    local nans = xv ~= xv and yv ~= yv
    if not nans and places(x, y, bits) > limit then
      return ("%s is %x, %x on a GPU, more than %d places apart"):format(
        call(op, i), y, x, limit)
    end
  end
end

-- One number of an approximate operation: `got` and the GPU's `kept` as bits.
local function near(op, format, kept, got, x, y)
  local g, k = bounds.value(got, format), bounds.value(kept, format)
  local off, bound, unit = bounds.error(op.opcode, g, x, y)
  if off then
    if off <= bound then return nil end
    return ("is %.17g, off by %.4g (%s), %.4g is allowed"):format(g, off, unit,
      bound)
  end
  local same = g == k or g ~= g and k ~= k
  if same or bounds.is_free(op.opcode, x, y) then return nil end
  return ("is %.17g, %.17g on a GPU"):format(g, k)
end

local function approximate(op, kept, got, keep)
  local format = bounds.format_of(op.opcode)
  local pair = op.opcode:find "x2$" and 16 or 0
  for i = 1, keep do
    local a = inputs.columns(op.arguments[1])[1][i]
    local b = op.arguments[2] and inputs.columns(op.arguments[2])[2][i]
    local x, y = value_at(op, kept.bytes, i), value_at(op, got.bytes, i)
    for shift = 0, pair, 16 do
      local mask = pair > 0 and 0xffff or -1
      local what = near(op, format, x >> shift & mask, y >> shift & mask,
        bounds.value(a >> shift & mask, format),
        b and bounds.value(b, format))
      if what then return call(op, i) .. " " .. what end
    end
  end
end

local function check_inputs(kept)
  for class, columns in pairs(kept.inputs) do
    for k = 1, 3 do
      if columns[k] ~= inputs.bytes(class, k, kept.keep) then
        return { ("the inputs %s are not those of the golden file"):format(class) }
      end
    end
  end
end

function replay.check(family)
  local kept = results.read(family)
  local wrong = check_inputs(kept)
  if wrong then return wrong, 0 end
  local got, count = results.run(family), 0
  wrong = {}
  for _, op in ipairs(kernels.operations(family)) do
    local k, g = kept.operations[op.name], got[op.name]
    local limit = (family.within or {})[op.name]
    count = count + 1
    wrong[#wrong + 1] = not k and op.name .. ": not in the golden file"
      or family.approximate and approximate(op, k, g, kept.keep)
      or limit and within(op, limit, k, g, kept.keep)
      or not family.approximate and not limit and exact(op, k, g, kept.keep)
      or nil
  end
  return wrong, count
end

return replay
