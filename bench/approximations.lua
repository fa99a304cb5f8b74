-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Measures the approximate operations of the device in use: the worst error over
-- random arguments, beside what the PTX manual or, where it is silent, the specs
-- allow. Writes the rows of the table in docs/exactness.md.
--
--   tpstream bench/approximations.lua [arguments of each operation, 2^17]
package.path = "./?.lua;" .. package.path
local tp = require "tpstream"
local bounds = require "spec.support.golden.bounds"
local kernels = require "spec.support.golden.kernels"
local numbers = require "spec.support.numbers"

local COUNT = tonumber(arg[1] or 1 << 17)
local BLOCK = 128
COUNT = math.max(1, COUNT // BLOCK) * BLOCK

local PACK = { f32 = "<f", f64 = "<d" }
local READ = { b16 = "<I2", b32 = "<I4", b64 = "<i8" }

local function span(lo, hi)
  return function(g) return g.real(lo, hi) end
end
-- Any fraction, an exponent from lo to hi.
local function scaled(lo, hi)
  return function(g) return g.real(1, 2) * 2.0 ^ g.int(lo, hi) end
end
local turn = 2 * math.pi

-- { opcode, class, what, generators of arguments }; a half takes all values.
local ROWS = {
  { "ex2.approx.f32", "f32", "-126 … 127", span(-126, 127) },
  { "lg2.approx.f32", "f32", "0.5 … 2", span(0.5, 2) },
  { "lg2.approx.f32", "f32", "2^-126 … 0.5", scaled(-126, -2) },
  { "sin.approx.f32", "f32", "-2π … 2π", span(-turn, turn) },
  { "sin.approx.f32", "f32", "-100π … 100π", span(-50 * turn, 50 * turn) },
  { "cos.approx.f32", "f32", "-2π … 2π", span(-turn, turn) },
  { "cos.approx.f32", "f32", "-100π … 100π", span(-50 * turn, 50 * turn) },
  { "tanh.approx.f32", "f32", "-10 … 10", span(-10, 10) },
  { "rcp.approx.f32", "f32", "2^-126 … 2^126", scaled(-126, 125) },
  { "sqrt.approx.f32", "f32", "2^-126 … 2^128", scaled(-126, 127) },
  { "rsqrt.approx.f32", "f32", "2^-126 … 2^128", scaled(-126, 127) },
  { "div.approx.f32", "f32", "2^-60 … 2^60", scaled(-60, 59), scaled(-60, 59) },
  { "div.full.f32", "f32", "2^-60 … 2^60", scaled(-60, 59), scaled(-60, 59) },
  { "rcp.approx.ftz.f64", "f64", "2^-1000 … 2^1000", scaled(-1000, 999) },
  { "rsqrt.approx.ftz.f64", "f64", "2^-1000 … 2^1000", scaled(-1000, 999) },
  { "rsqrt.approx.f64", "f64", "2^-1000 … 2^1000", scaled(-1000, 999) },
  { "ex2.approx.f16", "f16", "all" },
  { "tanh.approx.f16", "f16", "all" },
  { "ex2.approx.ftz.bf16", "bf16", "all" },
  { "tanh.approx.bf16", "bf16", "all" },
}

local function arguments_of(row, count)
  local columns, bytes = {}, {}
  for k = 1, row[5] and 2 or 1 do
    local g, values, parts = numbers.generator(k + #row[1]), {}, {}
    for i = 1, count do
      if row[4] then
        parts[i] = string.pack(PACK[row[2]], row[3 + k](g))
        values[i] = string.unpack(PACK[row[2]], parts[i])
      else
        parts[i] = string.pack("<I2", i - 1)
        values[i] = bounds.value(i - 1, bounds.FORMATS[row[2]])
      end
    end
    columns[k], bytes[k] = values, table.concat(parts)
  end
  return columns, bytes
end

local function run(row, count, bytes)
  local class = row[2]
  local result = class == "f32" and "b32" or class == "f64" and "b64" or "b16"
  local entry = { result, class .. (row[5] and " " .. class or ""), row[1] }
  local family = { name = row[1], approximate = true, entry,
    target = class == "bf16" and 90 or 80 }
  local portions = kernels.portions(family)
  local module <close> = tp.load(kernels.text(family, portions, count))
  local a <close> = tp.buffer("u8", bytes[1])
  local b <close> = tp.buffer("u8", bytes[2] or "\0\0\0\0")
  local out <close> = tp.zeros("u8", count * portions[1].width)
  local slots <close> = tp.zeros("i64", count)
  module:kernel("k1"):launch({ grid = count // BLOCK, block = BLOCK }, a, b, nil,
    out, nil, slots)
  return out:bytes(), READ[result], portions[1].width
end

local function measure(row)
  local count = row[4] and COUNT or 65536
  local columns, bytes = arguments_of(row, count)
  local out, read, width = run(row, count, bytes)
  local format = bounds.FORMATS[row[2]]
  local worst, allowed, unit = 0, nil, nil
  for i = 1, count do
    local got = bounds.value(string.unpack(read, out, (i - 1) * width + 1),
      format)
    local off, bound, kind = bounds.error(row[1], got, columns[1][i],
      columns[2] and columns[2][i])
    if off and off > worst then worst = off end
    if off then allowed, unit = bound, kind end
  end
  return worst, allowed, unit
end

local function shown(x, unit)
  if unit == "ulp" then return ("%.2f ulp"):format(x) end
  return x == 0 and "0" or ("2^%.1f %s"):format(math.log(x, 2), unit)
end

print(("%s, %d arguments each"):format(tp.current_device():name(), COUNT))
for _, row in ipairs(ROWS) do
  local major = tp.current_device():capability()
  if row[2] ~= "bf16" or major >= 9 then
    local worst, allowed, unit = measure(row)
    print(("| `%s` | %s | %s | %s |"):format(row[1], row[3], shown(worst, unit),
      shown(allowed, unit)))
  end
end
