-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The macros that each file of kernels/ is compiled with, in the order in which an
-- instance's name gives their values ("scan-f32-f32-sum"), and the instances whose
-- PTX the product brings along, for machines without a compiler: kernels/ptx, made
-- by tools/kernels_ptx.
local macros = {
  vector = { "ELEMENT" },
  reduce = { "ELEMENT", "OP" },
  scan = { "ELEMENT", "RESULT", "OP" },
  histogram = { "ELEMENT" },
  sort = { "KEY", "VALUE", "LARGE" },
  transpose = { "SIZE" },
  matmul = { "ELEMENT", "RESULT" },
  matmul_half = { "ELEMENT", "RESULT" },
  convolution = { "ELEMENT" },
  random = { "ELEMENT", "INTEGER" },
}

local brought = {
  "sort-4-0", "sort-4-4", "transpose-4", "transpose-8", "matmul-f32-f32",
  "matmul_half-f16-f16", "convolution-f32", "random-f32", "random-f64",
  "random-i32-1",
}
for _, t in ipairs { "f32", "f64", "i32" } do
  for _, op in ipairs { "sum", "dot", "min", "max", "argmin", "argmax", "norm2" } do
    brought[#brought + 1] = ("reduce-%s-%s"):format(t, op)
  end
  brought[#brought + 1] = ("scan-%s-%s-sum"):format(t, t)
  brought[#brought + 1] = "histogram-" .. t
  brought[#brought + 1] = "vector-" .. t
end
table.sort(brought)

-- "scan-f32-f32-sum" → "scan", {ELEMENT = "f32", …}
local function defines(id)
  local file, rest = id:match "^([%w_]+)(.*)$"
  local list, k = {}, 0
  for value in rest:gmatch "%-([^-]+)" do
    k = k + 1
    list[macros[file][k]] = value
  end
  return file, list
end

-- The text of a file in kernels/ptx: 8 bytes that say what sources it was made from,
-- 4 of its size, then blocks as LZ4 has them: literals, and copies of what came at
-- most 64 KiB before.
local function expand(packed)
  local _, size, at = string.unpack("<i8I4", packed)
  local out, n = {}, 0
  local function length(value)
    if value < 15 then return value end
    repeat
      local more = packed:byte(at)
      at, value = at + 1, value + more
    until more < 255
    return value
  end
  while n < size do
    local token = packed:byte(at)
    at = at + 1
    for _ = 1, length(token >> 4) do
      n = n + 1
      out[n] = packed:byte(at)
      at = at + 1
    end
    if n < size then
      local back = string.unpack("<I2", packed, at)
      at = at + 2
      for _ = 1, length(token & 15) + 4 do
        n = n + 1
        out[n] = out[n - back]
      end
    end
  end
  local parts = {}
  for first = 1, size, 4096 do
    parts[#parts + 1] = string.char(table.unpack(out, first,
      math.min(first + 4095, size)))
  end
  return table.concat(parts)
end

return { brought = brought, defines = defines, expand = expand }
