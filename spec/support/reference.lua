-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Mathematics that Lua's library lacks, in double precision and from textbook
-- series, so that nothing here shares code with what is under test; and roundings
-- to narrower types, in every direction.
local numbers = require "spec.support.numbers"

local reference = {}
local abs, exp, log, pi, sqrt = math.abs, math.exp, math.log, math.pi, math.sqrt
local inf = math.huge

-- ---- functions ---------------------------------------------------------------

function reference.sinh(x)
  if abs(x) > 0.5 then return (exp(x) - exp(-x)) / 2 end
  local term, sum, k = x, x, 1
  while abs(term) > abs(sum) * 1e-18 do
    term = term * x * x / ((k + 1) * (k + 2))
    sum, k = sum + term, k + 2
  end
  return sum
end

function reference.cosh(x) return (exp(x) + exp(-x)) / 2 end

function reference.tanh(x)
  if abs(x) > 20 then return x > 0 and 1.0 or -1.0 end
  return reference.sinh(x) / reference.cosh(x)
end

function reference.expm1(x)
  if abs(x) > 0.5 then return exp(x) - 1 end
  local term, sum, k = x, x, 2
  while abs(term) > abs(sum) * 1e-18 do
    term = term * x / k
    sum, k = sum + term, k + 1
  end
  return sum
end

-- Through atanh: log(1+x) = 2 atanh(x / (2+x))
function reference.log1p(x)
  if abs(x) > 0.4 then return log(1 + x) end
  local y = x / (2 + x)
  local power, sum, k = y, y, 3
  while abs(power) > abs(sum) * 1e-18 do
    power = power * y * y
    sum, k = sum + power / k, k + 2
  end
  return 2 * sum
end

function reference.cbrt(x)
  if x == 0 or x ~= x or abs(x) == inf then return x end
  local y = abs(x) ^ (1 / 3)
  y = y - (y * y * y - abs(x)) / (3 * y * y) -- Newton
  return x < 0 and -y or y
end

local function erf_series(x)
  local term, sum, k = x, x, 1
  while abs(term) > abs(sum) * 1e-18 do
    term = term * 2 * x * x / (2 * k + 1)
    sum, k = sum + term, k + 1
  end
  return 2 / sqrt(pi) * exp(-x * x) * sum
end

-- A continued fraction, for x of 2 and more
local function erfc_fraction(x)
  local f = 0.0
  for k = 150, 1, -1 do f = k / 2 / (x + f) end
  return exp(-x * x) / sqrt(pi) / (x + f)
end

function reference.erf(x)
  if x ~= x then return x end
  if abs(x) < 2 then return erf_series(x) end
  local tail = erfc_fraction(abs(x))
  return x > 0 and 1 - tail or tail - 1
end

function reference.erfc(x)
  if x ~= x then return x end
  if abs(x) < 2 then return 1 - erf_series(x) end
  local tail = erfc_fraction(abs(x))
  return x > 0 and tail or 2 - tail
end

function reference.normcdf(x) return reference.erfc(-x / sqrt(2)) / 2 end

-- By Newton's method on erf
function reference.erfinv(y)
  if abs(y) >= 1 then return abs(y) == 1 and y * inf or 0 / 0 end
  local x = y
  for _ = 1, 60 do
    local step = (reference.erf(x) - y) * sqrt(pi) / 2 * exp(x * x)
    x = x - math.max(-1, math.min(1, step))
    if abs(step) <= abs(x) * 1e-16 then break end
  end
  return x
end

-- log of the gamma function of x > 0: Stirling's series after moving x up; and
-- the parts it is made of
local function log_gamma(x)
  local product = 1.0
  while x < 15 do product, x = product * x, x + 1 end
  local r, s = 1 / (x * x), 0.0
  for _, c in ipairs { -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188,
    -1 / 1680, 1 / 1260, -1 / 360, 1 / 12 } do
    s = s * r + c
  end
  local stirling = (x - 0.5) * log(x) - x + 0.5 * log(2 * pi) + s / x
  return stirling - log(product), x, product, s / x
end

local function sin_pi(x) -- of the part that counts, exactly reduced
  local n = math.floor(x + 0.5)
  local s = math.sin(pi * (x - n))
  return n % 2 == 0 and s or -s
end
reference.sin_pi = sin_pi

function reference.lgamma(x)
  if x ~= x then return x end
  if abs(x) == inf then return inf end
  if x > 0 then return (log_gamma(x)) end
  if x == math.floor(x) then return inf end
  return log(pi / abs(sin_pi(x))) - log_gamma(1 - x)
end

function reference.tgamma(x)
  if x == 0 then return 1 / x end
  if x > 0 then
    local _, up, product, tail = log_gamma(x)
    local half = up ^ ((up - 0.5) / 2) -- in halves: it may overflow
    return half / product * (half * exp(-up)) * sqrt(2 * pi) * exp(tail)
  end
  if x == math.floor(x) then return 0 / 0 end
  return pi / (sin_pi(x) * reference.tgamma(1 - x))
end

-- Bessel's integral by the trapezoid rule, which converges geometrically here
local function bessel(x, f)
  local n, sum = 400, 0.0
  for k = 0, n - 1 do sum = sum + f(x * math.cos(2 * pi * (k + 0.5) / n)) end
  return sum / n
end
function reference.j0(x) return bessel(x, math.cos) end
function reference.i0(x) return bessel(x, exp) end

function reference.remainder(x, y)
  local r = math.fmod(abs(x), y)
  if r > y / 2 then r = r - y end
  return x < 0 and -r or r
end

-- ---- rounding ------------------------------------------------------------------

-- To a whole number: "rn" to the nearest, ties to even; "rz", "ru", "rd".
function reference.round(x, mode)
  if x ~= x or abs(x) >= 2.0 ^ 52 then return x end
  local down = x // 1.0
  local result = down
  if mode == "ru" or (mode == "rz" and x < 0) then
    result = -(-x // 1.0)
  elseif mode == "rn" or not mode then
    local part = x - down
    if part > 0.5 or (part == 0.5 and down % 2 == 1) then result = down + 1 end
  end
  if result == 0 then return (x < 0 or 1 / x == -inf) and -0.0 or 0.0 end
  return result
end

-- The exponent e of |x| = m * 2^e, 1 <= m < 2; x finite and not 0
local function exponent(x)
  local bits = numbers.bits64(x) >> 52 & 0x7ff
  if bits == 0 then return exponent(x * 2.0 ^ 64) - 64 end
  return bits - 1023
end
reference.exponent = exponent

-- To a binary format: `digits` bits of mantissa with the leading one, the least
-- normal exponent, the greatest finite number.
local function narrow(x, digits, least, greatest, mode)
  if x == 0 or x ~= x or abs(x) == inf then return x end
  local unit = 2.0 ^ (math.max(exponent(x), least) - digits + 1)
  local r = reference.round(x / unit, mode) * unit
  if abs(r) <= greatest then return r end
  local outward = not mode or mode == "rn" or (mode == "ru") == (x > 0)
  if mode == "rz" or not outward then return x > 0 and greatest or -greatest end
  return x > 0 and inf or -inf
end
function reference.f32(x, mode)
  return narrow(x, 24, -126, (2 - 2.0 ^ -23) * 2.0 ^ 127, mode)
end
function reference.f16(x, mode) return narrow(x, 11, -14, 65504, mode) end
function reference.bf16(x, mode)
  return narrow(x, 8, -126, (2 - 2.0 ^ -7) * 2.0 ^ 127, mode)
end

-- The sum and the product of two doubles, each with what rounding left over
function reference.two_sum(a, b)
  local s = a + b
  local t = s - a
  return s, (a - (s - t)) + (b - t)
end
local function split(a)
  local c = 134217729.0 * a
  local high = c - (c - a)
  return high, a - high
end
function reference.two_product(a, b)
  local p = a * b
  local ah, al = split(a)
  local bh, bl = split(b)
  return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl
end

local function neighbour(x, up)
  if x == 0 then return up and 2.0 ^ -1074 or -(2.0 ^ -1074) end
  local bits = numbers.bits64(x) + ((x > 0) == up and 1 or -1)
  return (string.unpack("<d", string.pack("<i8", bits)))
end
reference.neighbour = neighbour

-- s + rest, |rest| small beside s, to a double
function reference.f64(s, rest, mode)
  local sum, left = reference.two_sum(s, rest)
  if left == 0 or mode == "rn" then return sum end
  local down = mode == "rd" or (mode == "rz" and sum > 0)
  if left < 0 and down then return neighbour(sum, false) end
  if left > 0 and not down then return neighbour(sum, true) end
  return sum
end

return reference
