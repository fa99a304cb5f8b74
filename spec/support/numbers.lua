-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Random inputs and references that know nothing of the code under test.
local numbers = {}

-- A small generator of its own, so that every run and every runner sees the same
-- inputs: xorshift64*.
function numbers.generator(seed)
  local state = seed * 0x9E3779B97F4A7C15 + 1
  local function bits()
    state = state ~ (state >> 12)
    state = state ~ (state << 25)
    state = state ~ (state >> 27)
    return state * 0x2545F4914F6CDD1D
  end
  local g = {}
  function g.bits() return bits() end
  -- an integer from lo to hi
  function g.int(lo, hi) return lo + (bits() >> 1) % (hi - lo + 1) end
  -- a float from lo to hi
  function g.real(lo, hi)
    return lo + (bits() >> 11) * 2.0 ^ -53 * (hi - lo)
  end
  function g.ints(n, lo, hi)
    local t = {}
    for i = 1, n do t[i] = g.int(lo, hi) end
    return t
  end
  function g.reals(n, lo, hi)
    local t = {}
    for i = 1, n do t[i] = g.real(lo, hi) end
    return t
  end
  -- floats that float32 holds exactly
  function g.floats(n, lo, hi)
    local t = {}
    for i = 1, n do t[i] = numbers.f32(g.real(lo, hi)) end
    return t
  end
  return g
end

-- x rounded to float32
function numbers.f32(x) return (string.unpack("<f", string.pack("<f", x))) end

-- i wrapped to `bits` bits, signed
function numbers.wrap(i, bits)
  local m = 1 << bits
  i = i & (m - 1)
  return i >= m >> 1 and i - m or i
end

-- the bits of a float32 or float64 as an integer
function numbers.bits32(x) return (string.unpack("<I4", string.pack("<f", x))) end
function numbers.bits64(x) return (string.unpack("<i8", string.pack("<d", x))) end
function numbers.from_bits32(b)
  return (string.unpack("<f", string.pack("<I4", b & 0xffffffff)))
end

-- Fails when some element differs by more than `relative` of its size plus
-- `absolute`.
function numbers.assert_near(expected, got, relative, absolute)
  if #expected ~= #got then
    error(("%d elements, %d expected"):format(#got, #expected), 2)
  end
  for i = 1, #expected do
    local e, g = expected[i], got[i]
    local limit = math.abs(e) * (relative or 0) + (absolute or 0)
    local same = e == g or (e ~= e and g ~= g)
    if not same and not (math.abs(e - g) <= limit) then
      error(("element %d is %s, %s expected (within %s)"):format(i, g, e,
        limit), 2)
    end
  end
end

return numbers
