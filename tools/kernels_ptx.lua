-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Makes kernels/ptx, the PTX of kernels/ that machines without a compiler use, for
-- the instances that lua/tpstream/kernels_instances.lua lists. From the top of the
-- tree, after a change there or in kernels/:
--   build/tpstream --device sim tools/kernels_ptx.lua
-- Each file begins with a checksum of its source, which spec/kernels_ptx_spec.lua
-- looks at. They are packed, since all of it is embedded in the program.
local tp = require "tpstream"
local instances = dofile "lua/tpstream/kernels_instances.lua"
local sources = require "spec.support.kernel_sources"

-- The oldest version that has all that the kernels use: drivers refuse a newer one
-- than they know.
local VERSION = "8.0"

local function shorten(ptx)
  ptx = ptx:gsub("//[^\n]*", ""):gsub("/%*.-%*/", ""):gsub("[ \t]+", " ")
  ptx = ptx:gsub("\n ", "\n"):gsub(" \n", "\n"):gsub("\n+", "\n"):gsub(", ", ",")
  return (ptx:gsub("%.version [%d.]+", ".version " .. VERSION):gsub("^\n", ""))
end

-- ---- packing: blocks of LZ4 --------------------------------------------------------

local function number(value) -- what does not fit the token
  if value < 15 then return "" end
  value = value - 15
  return ("\255"):rep(value // 255) .. string.char(value % 255)
end

local function block(literals, back, copied)
  local more = back and copied - 4 or 0
  return string.char(math.min(#literals, 15) << 4 | math.min(more, 15))
    .. number(#literals) .. literals
    .. (back and string.pack("<I2", back) .. number(more) or "")
end

local function same(text, a, b)
  local n = 0
  while b + n <= #text and text:byte(a + n) == text:byte(b + n) do n = n + 1 end
  return n
end

-- The longest of the last few places with the same eight bytes.
local function find(text, places, at)
  local best, copied = nil, 7
  for k = #places, math.max(1, #places - 15), -1 do
    if at - places[k] > 65535 then break end
    local n = same(text, places[k], at)
    if n > copied then best, copied = places[k], n end
  end
  return best, copied
end

local function pack(text)
  local out, seen, at, literal = {}, {}, 1, 1
  local function see(k)
    local key = text:sub(k, k + 7)
    seen[key] = seen[key] or {}
    table.insert(seen[key], k)
  end
  while at <= #text - 8 do
    local places = seen[text:sub(at, at + 7)]
    local from, copied
    if places then from, copied = find(text, places, at) end
    if from then
      out[#out + 1] = block(text:sub(literal, at - 1), at - from, copied)
      for k = at, at + copied - 1 do see(k) end
      at = at + copied
      literal = at
    else
      see(at)
      at = at + 1
    end
  end
  if literal <= #text then out[#out + 1] = block(text:sub(literal)) end
  return table.concat(out)
end

-- ---- all of them -------------------------------------------------------------------

os.execute "rm -rf kernels/ptx && mkdir kernels/ptx"
local total = 0
for _, id in ipairs(instances.brought) do
  local file, defines = instances.defines(id)
  local module <close> = tp.compile(sources.read("kernels/" .. file .. ".cu"), {
    name = "kernels/" .. file .. ".cu", defines = defines, lineinfo = false,
    headers = { ["common.cuh"] = sources.read "kernels/common.cuh",
                ["types.cuh"] = sources.read "kernels/types.cuh" },
    arch = "compute_80",
  })
  local text = shorten(module:ptx())
  local packed = string.pack("<i8I4", sources.checksum(id), #text) .. pack(text)
  assert(instances.expand(packed) == text)
  local out <close> = assert(io.open("kernels/ptx/" .. id .. ".lz", "wb"))
  assert(out:write(packed))
  total = total + #packed
  print(("%7d of %7d %s"):format(#packed, #text, id))
end
print(("%7d in all"):format(total))
