-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Runs families of golden operations, and keeps results in files:
--
--   local got = results.run(family)     -- name → { bytes =, sum = }
--   results.write(family, got)          -- spec/golden/<family>.bin
--   local kept = results.read(family)   -- the same, and .inputs
--
-- A file holds, in string.pack's words: "s1" the format's name; "I4" how many
-- results of an operation are kept; "I2" classes of inputs, of each "s1" its name
-- and three times "s4" the values; "I2" operations, of each "s1" its name, "i8"
-- the sum over all inputs, "s4" the kept results.
local tp = require "tpstream"
local inputs = require "spec.support.golden.inputs"
local kernels = require "spec.support.golden.kernels"
local program = require "spec.support.program"

local results = {}

local FORMAT = "tpstream golden 1"

-- How many results of an operation are kept. Of approximations all are looked at
-- one by one, so more.
function results.keep(family)
  return family.keep or (family.approximate and 512 or 64)
end

local function column(class, k)
  if class == nil then return nil end
  return tp.buffer(class:match "^f[36][24]$" or "u8", inputs.bytes(class, k))
end

local BLOCK = 128

local function run_portion(kernel, portion, keep, out)
  local arguments = portion.arguments
  local a <close> = column(arguments[1], 1)
  local b <close> = column(arguments[2], 2)
  local c <close> = column(arguments[3], 3)
  local width = portion.width
  local stored <close> = tp.zeros("u8", #portion * keep * width)
  local sums <close> = tp.zeros("i64", #portion)
  local slots <close> = tp.zeros("i64", inputs.COUNT)
  kernel:launch({ grid = inputs.COUNT // BLOCK, block = BLOCK }, a, b, c,
    stored, sums, slots)
  local bytes, totals = stored:bytes(), sums:read()
  for at, op in ipairs(portion) do
    local first = (at - 1) * keep * width + 1
    out[op.name] = { bytes = bytes:sub(first, first + keep * width - 1),
      sum = totals[at] }
  end
end

-- The functions of CUDA C++ (functions.lua), the same way.
local function run_functions(family, keep)
  local out = {}
  local module <close> = program(family.name, family.source,
    { lineinfo = false, stored = true })
  local a <close> = column(family.class, 1)
  local b <close> = column(family.class, 2)
  for _, name in ipairs(family.names) do
    local stored <close> = tp.zeros(family.class, keep)
    local sum <close> = tp.zeros("u64", 1)
    module:kernel("k_" .. name):launch({ grid = inputs.COUNT // BLOCK,
      block = BLOCK }, a, b, stored, sum, keep)
    out[name] = { bytes = stored:bytes(), sum = sum:read()[1] }
  end
  return out
end

function results.run(family, keep)
  keep = keep or results.keep(family)
  if family.source then return run_functions(family, keep) end
  local portions, out = kernels.portions(family), {}
  local module <close> = tp.load(kernels.text(family, portions, keep))
  for n, portion in ipairs(portions) do
    run_portion(module:kernel("k" .. n), portion, keep, out)
  end
  return out
end

local function path_of(family)
  return "spec/golden/" .. family.name .. ".bin"
end

local function classes(family)
  local seen, list = {}, {}
  for _, op in ipairs(kernels.operations(family)) do
    for _, class in ipairs(op.arguments) do
      if not seen[class] then
        seen[class] = true
        list[#list + 1] = class
      end
    end
  end
  return list
end

function results.write(family, got)
  local keep = results.keep(family)
  local operations, used = kernels.operations(family), classes(family)
  local parts = { string.pack("<s1I4I2", FORMAT, keep, #used) }
  for _, class in ipairs(used) do
    parts[#parts + 1] = string.pack("<s1s4s4s4", class,
      inputs.bytes(class, 1, keep), inputs.bytes(class, 2, keep),
      inputs.bytes(class, 3, keep))
  end
  parts[#parts + 1] = string.pack("<I2", #operations)
  for _, op in ipairs(operations) do
    local r = got[op.name]
    parts[#parts + 1] = string.pack("<s1i8s4", op.name, r.sum, r.bytes)
  end
  local file <close> = assert(io.open(path_of(family), "wb"))
  assert(file:write(table.concat(parts)))
end

function results.read(family)
  local file <close> = assert(io.open(path_of(family), "rb"))
  local text = file:read "a"
  local format, keep, count, at = string.unpack("<s1I4I2", text)
  assert(format == FORMAT, format)
  local kept = { keep = keep, inputs = {}, operations = {} }
  for _ = 1, count do
    local class, a, b, c
    class, a, b, c, at = string.unpack("<s1s4s4s4", text, at)
    kept.inputs[class] = { a, b, c }
  end
  count, at = string.unpack("<I2", text, at)
  for _ = 1, count do
    local name, sum, bytes
    name, sum, bytes, at = string.unpack("<s1i8s4", text, at)
    kept.operations[name] = { sum = sum, bytes = bytes }
  end
  return kept
end

return results
