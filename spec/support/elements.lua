-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Buffers of every element type for the specs of tp.kernels: random values that the
-- type holds exactly, in slices that begin anywhere, read and closed in one go.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"

local elements = {}

elements.all = { "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16",
  "f32", "f64" }
elements.size = { i8 = 1, u8 = 1, i16 = 2, u16 = 2, i32 = 4, u32 = 4, i64 = 8,
  u64 = 8, f16 = 2, bf16 = 2, f32 = 4, f64 = 8 }

function elements.float(t) return t:find "^b?f" ~= nil end

-- n whole numbers from lo to hi, floats for a float type.
function elements.values(g, t, n, lo, hi)
  local list = g.ints(n, t:find "^u" and math.max(lo, 0) or lo, hi)
  if elements.float(t) then
    for i, v in ipairs(list) do list[i] = v + 0.0 end
  end
  return list
end

-- The values in a slice that begins at element `first` of a larger buffer.
function elements.slice(t, values, first)
  local whole <close> = tp.zeros(t, #values + first + 3)
  local part = whole:slice(first, #values)
  part:write(values)
  return part
end

-- All elements; the buffer is closed.
function elements.take(buffer)
  local list = buffer:read()
  buffer:close()
  return list
end

function elements.one(buffer) return elements.take(buffer)[1] end

elements.failure = require("spec.support.errors").text

elements.generator = numbers.generator
return elements
