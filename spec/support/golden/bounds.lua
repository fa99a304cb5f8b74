-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Approximate operations: what they approximate, and how far off they may be.
-- Errors are in units of the true value's last place ("ulp"), relative, or
-- absolute, whichever the PTX manual bounds. Where it says nothing, or more than a
-- GPU needs, the bound is the worst of an H200 (docs/exactness.md).
local bounds = {}

local function tanh(x)
  if math.abs(x) < 1e-3 then return x - x * x * x / 3 + 2 * x ^ 5 / 15 end
  local e = math.exp(-2 * math.abs(x))
  local t = (1 - e) / (1 + e)
  return x < 0 and -t or t
end
local function reciprocal(x) return 1 / x end
local function rsqrt(x) return 1 / math.sqrt(x) end
local function within(limit)
  return function(x) return math.abs(x) <= limit end
end
local function power(x) return 2.0 ^ x end
local function log2(x) return math.log(x, 2) end

-- `range` is where `bound` holds; elsewhere only NaN, infinity and sign are
-- compared with the GPU's answer.
bounds.list = {
  ["ex2.approx.f32"] = { power, "ulp", 2.1 },
  ["lg2.approx.f32"] = { log2, "absolute", 2 ^ -22, range = function(x)
    return x > 0.5 and x < 2
  end, other = { "relative", 2 ^ -22 } },
  ["sin.approx.f32"] = { math.sin, "absolute", 2 ^ -20.5,
    range = within(2 * math.pi), wide = { 2 ^ -14.7, within(100 * math.pi) } },
  ["cos.approx.f32"] = { math.cos, "absolute", 2 ^ -20.5,
    range = within(2 * math.pi), wide = { 2 ^ -14.7, within(100 * math.pi) } },
  ["tanh.approx.f32"] = { tanh, "relative", 2 ^ -11 },
  ["rcp.approx.f32"] = { reciprocal, "ulp", 1 },
  ["sqrt.approx.f32"] = { math.sqrt, "ulp", 1 },
  ["rsqrt.approx.f32"] = { rsqrt, "ulp", 1.5 },
  ["div.approx.f32"] = { function(x, y) return x / y end, "ulp", 2,
    range = function(_, y)
      return math.abs(y) >= 2 ^ -126 and math.abs(y) <= 2 ^ 126
    end },
  ["div.full.f32"] = { function(x, y) return x / y end, "ulp", 2 },
  ["rcp.approx.ftz.f64"] = { reciprocal, "relative", 2 ^ -19 },
  ["rsqrt.approx.ftz.f64"] = { rsqrt, "relative", 2 ^ -19 },
  ["rsqrt.approx.f64"] = { rsqrt, "ulp", 1.5 },
  ["ex2.approx.f16"] = { power, "ulp", 1.1 },
  ["tanh.approx.f16"] = { tanh, "absolute", 2 ^ -10.987 },
  ["ex2.approx.ftz.bf16"] = { power, "relative", 2 ^ -7 },
  ["tanh.approx.bf16"] = { tanh, "absolute", 2 ^ -8 },
}

-- The entry of an opcode: .ftz and pairs have their base's.
function bounds.of(opcode)
  local list = bounds.list
  opcode = opcode:gsub("16x2$", "16")
  return list[opcode] or list[opcode:gsub("%.ftz", "")]
    or error("no bound is known for " .. opcode)
end

-- The formats: bits of fraction, least exponent.
bounds.FORMATS = { f32 = { 23, -126 }, f64 = { 52, -1022 }, f16 = { 10, -14 },
  bf16 = { 7, -126 } }

function bounds.format_of(opcode)
  return bounds.FORMATS[opcode:match "%.(b?f%d+)[x2]*$"]
end

-- The value of a format's bits.
function bounds.value(bits, format)
  local mant = format[1]
  local width = mant == 52 and 64 or mant == 23 and 32 or 16
  local exponents = (1 << (width - 1 - mant)) - 1
  local e = bits >> mant & exponents
  local fraction = bits & ((1 << mant) - 1)
  local negative = bits >> (width - 1) & 1 == 1
  local x
  if e == exponents then
    x = fraction == 0 and math.huge or 0 / 0
  else
    x = (fraction | (e > 0 and 1 << mant or 0)) * 2.0 ^ -mant
      * 2.0 ^ ((e > 0 and e - 1 or 0) + format[2])
  end
  return negative and -x or x
end


-- The last place of a value in a format.
local function ulp(x, format)
  local bits = string.unpack("<i8", string.pack("<d", math.abs(x)))
  return 2.0 ^ (math.max((bits >> 52) - 1023, format[2]) - format[1])
end

-- Whether any answer will do: the argument lies beyond what the manual says
-- something about, or the answer may be flushed or not.
function bounds.is_free(opcode, x, y)
  local entry, least = bounds.of(opcode), 2.0 ^ bounds.format_of(opcode)[2]
  local truth = entry[1](x, y)
  if truth ~= truth then return false end
  if entry.wide and math.abs(x) < math.huge then return true end
  if entry.range and not entry.other and not entry.range(x, y) then
    return math.abs(truth) < least
  end
  return math.abs(truth) <= least
end

-- Errors of `got`, where the true value is finite: in the bound's unit, and the
-- bound. nil where only the kind of the value counts.
function bounds.error(opcode, got, x, y)
  local entry, format = bounds.of(opcode), bounds.format_of(opcode)
  local truth = entry[1](x, y)
  local least = 2.0 ^ format[2]
  local ftz = opcode:find(".ftz", 1, true)
  if truth ~= truth or math.abs(truth) == math.huge then return nil end
  local greatest = 2.0 ^ (1 - format[2]) * (2 - 2.0 ^ -format[1])
  if math.abs(truth) >= greatest then return nil end
  if ftz and (math.abs(truth) < least or math.abs(x) < least
    or y and math.abs(y) < least) then
    return nil
  end
  local unit, bound = entry[2], entry[3]
  if entry.range and not entry.range(x, y) then
    if entry.other then
      unit, bound = entry.other[1], entry.other[2]
    elseif entry.wide and entry.wide[2](x) then
      bound = entry.wide[1]
    else
      return nil
    end
  end
  local difference = math.abs(got - truth)
  if unit == "ulp" then return difference / ulp(truth, format), bound, unit end
  if unit == "relative" then
    if math.abs(truth) < least then return nil end
    return difference / math.abs(truth), bound, unit
  end
  return difference, bound, unit
end

return bounds
