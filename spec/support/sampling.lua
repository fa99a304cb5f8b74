-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What a texture gives, after the rules of CUDA's programming guide, in plain
-- Lua: a reference for spec/texture_spec.lua. Weights are rounded to 1/256, the
-- rest is exact, so that a device may differ by rounding only.
local sampling = {}

-- Index of a texel out of range, or nil for the border.
local function bring(i, size, mode)
  if i >= 0 and i < size then return i end
  if mode == "wrap" then return i % size end
  if mode == "mirror" then
    i = i % (2 * size)
    return i < size and i or 2 * size - 1 - i
  end
  if mode == "border" then return nil end
  return i < 0 and 0 or size - 1
end

-- The texels beside a coordinate and their weights.
local function axis(x, size, o, d)
  local mode = type(o.address) == "table" and o.address[d] or o.address
  mode = mode or "clamp"
  if o.normalized then x = x * size end
  if o.filter ~= "linear" then return { { bring(x // 1 | 0, size, mode), 1 } } end
  local q = ((x - 0.5) * 256 + 0.5) // 1 | 0
  local i, w = q // 256, (q % 256) / 256
  return { { bring(i, size, mode), 1 - w }, { bring(i + 1, size, mode), w } }
end

-- extents: width, height, depth of t (absent: 1); at: as many coordinates;
-- texel(x, y, z, c) → number. Returns the value of channel c.
function sampling.sample(o, extents, at, texel, c)
  local axes = {}
  for d = 1, 3 do
    axes[d] = at[d] and axis(at[d], extents[d], o, d) or { { 0, 1 } }
  end
  local sum = 0
  for _, x in ipairs(axes[1]) do
    for _, y in ipairs(axes[2]) do
      for _, z in ipairs(axes[3]) do
        local inside = x[1] and y[1] and z[1]
        local value = inside and texel(x[1], y[1], z[1], c)
          or (o.border or {})[c] or 0
        sum = sum + x[2] * y[2] * z[2] * value
      end
    end
  end
  return sum
end

-- Where a direction meets a cube: face 0 to 5, and coordinates in [0, 1].
function sampling.face(x, y, z)
  local ax, ay, az = math.abs(x), math.abs(y), math.abs(z)
  local f, s, t, m
  if az >= ax and az >= ay then
    f, s, t, m = z < 0 and 5 or 4, z < 0 and -x or x, -y, az
  elseif ay >= ax then
    f, s, t, m = y < 0 and 3 or 2, x, y < 0 and -z or z, ay
  else
    f, s, t, m = x < 0 and 1 or 0, x < 0 and z or -z, -y, ax
  end
  return f, (s / m + 1) / 2, (t / m + 1) / 2
end

return sampling
