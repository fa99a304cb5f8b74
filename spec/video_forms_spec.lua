-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Video instructions: random forms of each (types, selectors, saturation, secondary
-- operations, masks) on random words, against the manual's semantics in Lua.
-- Newer GPUs have no such instructions: what the driver's assembler makes of them on an
-- H200, which the simulated device follows, is not what the manual says where a result
-- goes into an upper half, is saturated and then merged, or meets .min or .max. Those
-- are the affair of spec/video_spec.lua; here only the rest is compared.
local tp = require "tpstream"
local departs = require "spec.support.video".departs
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"

local g = numbers.generator(2024)
local function choose(list) return list[g.int(1, #list)] end
local function maybe() return g.int(0, 1) == 1 end

local COMPARE = {
  eq = function(a, b) return a == b end, ne = function(a, b) return a ~= b end,
  lt = function(a, b) return a < b end, le = function(a, b) return a <= b end,
  gt = function(a, b) return a > b end, ge = function(a, b) return a >= b end,
}
local OPERATE = {
  add = function(a, b) return a + b end, sub = function(a, b) return a - b end,
  absdiff = function(a, b) return math.abs(a - b) end, min = math.min,
  max = math.max,
  avrg = function(a, b)
    local sum = a + b
    return sum >= 0 and sum + 1 >> 1 or sum // 2
  end,
}

local function part(word, selector, signed)
  local bits, at = 32, 0
  if selector then
    bits = selector:match "^b" and 8 or 16
    at = bits * tonumber(selector:sub(2))
  end
  local v = word >> at & (1 << bits) - 1
  return signed and numbers.wrap(v, bits) or v
end

local function clamp(v, bits, signed)
  local least = signed and -(1 << bits - 1) or 0
  local most = signed and (1 << bits - 1) - 1 or (1 << bits) - 1
  return math.max(least, math.min(most, v))
end

-- --- scalar forms -----------------------------------------------------------------

local SELECTORS = { "b0", "b1", "b2", "b3", "h0", "h1" }
local function selector() return maybe() and choose(SELECTORS) or nil end
local function dotted(s) return s and "." .. s or "" end

local function secondary(f, r, c)
  local signed = f.dtype == "s32"
  local v = signed and numbers.wrap(r, 32) or r & 0xffffffff
  local w = signed and numbers.wrap(c, 32) or c
  if f.second == "add" then return v + w & 0xffffffff end
  if f.second then return math[f.second](v, w) & 0xffffffff end
  if not f.dsel then return r & 0xffffffff end
  local bits = f.dsel:match "^b" and 8 or 16
  local at = bits * tonumber(f.dsel:sub(2))
  local mask = (1 << bits) - 1 << at
  return c & ~mask | r << at & mask
end

local function scalar_form()
  local f = { op = choose { "add", "sub", "absdiff", "min", "max", "shl", "shr",
    "set" }, dtype = choose { "u32", "s32" }, atype = choose { "u32", "s32" },
    btype = choose { "u32", "s32" }, asel = selector(), bsel = selector(),
    saturate = maybe() }
  local tail = choose { "none", "second", "merge" }
  if tail == "second" then f.second = choose { "add", "min", "max" } end
  if tail == "merge" then f.dsel = choose(SELECTORS) end
  if f.op == "shl" or f.op == "shr" then
    f.btype, f.mode = "u32", choose { "clamp", "wrap" }
  end
  if f.op == "set" then
    f.dtype, f.saturate = "u32", false
    f.compare = choose { "eq", "ne", "lt", "le", "gt", "ge" }
  end
  local types = f.atype .. "." .. f.btype
  if f.op ~= "set" then types = f.dtype .. "." .. types end
  f.text = ("v%s.%s%s%s%s%s %%0%s, %%1%s, %%2%s%s;"):format(f.op, types,
    f.saturate and ".sat" or "", dotted(f.mode), dotted(f.compare),
    dotted(f.second), dotted(f.dsel), dotted(f.asel), dotted(f.bsel),
    (f.second or f.dsel) and ", %3" or "")
  function f.expected(a, b, c)
    local x = part(a, f.asel, f.atype == "s32")
    local y = part(b, f.bsel, f.btype == "s32")
    local r
    if f.compare then
      r = COMPARE[f.compare](x, y) and 1 or 0
    elseif f.mode then
      y = f.mode == "wrap" and y & 31 or math.min(y, 32)
      r = f.op == "shl" and x << y or x // (1 << y)
    else
      r = OPERATE[f.op](x, y)
    end
    local bits = not f.dsel and 32 or f.dsel:match "^b" and 8 or 16
    if f.saturate then r = clamp(r, bits, f.dtype == "s32") end
    return secondary(f, r, c)
  end
  return f
end

-- --- packed forms -----------------------------------------------------------------

local function lanes(count, letter, most)
  if maybe() then return nil end
  local s = letter
  for _ = 1, count do s = s .. g.int(0, most) end
  return s
end

local function mask_text(count, letter)
  if maybe() then return nil, (1 << count) - 1 end
  local bits, s = g.int(1, (1 << count) - 1), letter
  for k = count - 1, 0, -1 do
    if bits >> k & 1 == 1 then s = s .. k end
  end
  return s, bits
end

local function packed_form(count)
  local letter, bits = count == 2 and "h" or "b", 32 // count
  local f = { op = choose { "add", "sub", "avrg", "absdiff", "min", "max", "set" },
    dtype = choose { "u32", "s32" }, atype = choose { "u32", "s32" },
    btype = choose { "u32", "s32" }, accumulate = maybe() }
  f.asel = lanes(count, letter, 2 * count - 1)
  f.bsel = lanes(count, letter, 2 * count - 1)
  local mask, which = mask_text(count, letter)
  f.saturate = not f.accumulate and f.op ~= "set" and maybe()
  if f.op == "set" then
    f.compare = choose { "eq", "ne", "lt", "le", "gt", "ge" }
  end
  local types = f.atype .. "." .. f.btype
  if f.op ~= "set" then types = f.dtype .. "." .. types end
  f.text = ("v%s%d.%s%s%s%s %%0%s, %%1%s, %%2%s, %%3;"):format(f.op, count, types,
    dotted(f.compare), f.saturate and ".sat" or "", f.accumulate and ".add" or "",
    dotted(mask), dotted(f.asel), dotted(f.bsel))
  function f.expected(a, b, c)
    local both, d, sum = a | b << 32, c, c
    local function element(s, k, first, signed)
      local n = s and tonumber(s:sub(-k - 1, -k - 1)) or first + k
      local v = both >> n * bits & (1 << bits) - 1
      return signed and numbers.wrap(v, bits) or v
    end
    for k = 0, count - 1 do
      if which >> k & 1 == 1 then
        local x = element(f.asel, k, 0, f.atype == "s32")
        local y = element(f.bsel, k, count, f.btype == "s32")
        local r
        if f.compare then r = COMPARE[f.compare](x, y) and 1 or 0
        else r = OPERATE[f.op](x, y) end
        if f.saturate then r = clamp(r, bits, f.dtype == "s32") end
        local m = (1 << bits) - 1 << k * bits
        d, sum = d & ~m | r << k * bits & m, sum + r
      end
    end
    return (f.accumulate and sum or d) & 0xffffffff
  end
  return f
end

-- --- vmad --------------------------------------------------------------------------

local function mad_form()
  local f = { atype = choose { "u32", "s32" }, btype = choose { "u32", "s32" },
    asel = selector(), bsel = selector(), saturate = maybe(),
    scale = choose { 0, 7, 15 }, how = choose { "", "po", "ab", "c" } }
  local signed = f.atype == "s32" or f.btype == "s32" or f.how == "ab"
    or f.how == "c"
  f.text = ("vmad.%s.%s.%s%s%s%s %%0, %s%%1%s, %%2%s, %s%%3;"):format(
    signed and "s32" or "u32", f.atype, f.btype, f.how == "po" and ".po" or "",
    f.saturate and ".sat" or "", f.scale > 0 and ".shr" .. f.scale or "",
    f.how == "ab" and "-" or "", dotted(f.asel), dotted(f.bsel),
    f.how == "c" and "-" or "")
  -- products of two words are up to 64 bits: split into quotient and rest
  function f.expected(a, b, c)
    local x = part(a, f.asel, f.atype == "s32")
    local y = part(b, f.bsel, f.btype == "s32")
    local z = signed and numbers.wrap(c, 32) or c
    local high, low = (x >> 16 | (x < 0 and ~0 << 48 or 0)) * y, (x & 0xffff) * y
    if f.how == "ab" then high, low = -high, -low end
    low = low + (f.how == "c" and -z or z) + (f.how == "po" and 1 or 0)
    high, low = high + low // 65536, low % 65536 -- high * 65536 + low
    local scale = 1 << f.scale
    local q = high // scale -- (high * 65536 + low) // scale = q * 65536 + rest
    local rest = (high % scale * 65536 + low) // scale
    q, rest = q + rest // 65536, rest % 65536
    if f.saturate then
      local top = signed and 0x8000 or 0x10000
      if q >= top then return signed and 0x7fffffff or 0xffffffff end
      if q < (signed and -0x8000 or 0) then
        return signed and 0x80000000 or 0
      end
    end
    return q * 65536 + rest & 0xffffffff
  end
  return f
end

local function as_the_manual_says(f)
  if departs(f.text) then return false end
  if f.second == "min" or f.second == "max" then return false end
  return not (f.dsel and (f.saturate or f.dsel == "h1"))
end

local forms = {}
for _ = 1, 150 do forms[#forms + 1] = scalar_form() end
for _ = 1, 60 do forms[#forms + 1] = packed_form(2) end
for _ = 1, 60 do forms[#forms + 1] = packed_form(4) end
for _ = 1, 60 do forms[#forms + 1] = mad_form() end

local function source()
  local parts = { [[
extern "C" __global__ void video(const unsigned *as, const unsigned *bs,
    const unsigned *cs, unsigned *out) {
  int l = threadIdx.x;
  unsigned a = as[l], b = bs[l], c = cs[l], d;
]] }
  for i, f in ipairs(forms) do
    parts[#parts + 1] = ('  asm volatile("%s"\n    : "=r"(d) : "r"(a), "r"(b), '
      .. '"r"(c));\n  out[%d + l] = d;\n'):format(f.text, (i - 1) * 32)
  end
  return table.concat(parts) .. "}\n"
end

describe("video instructions", function()
  it("follow the manual in every form", function()
    local module <close> = program("video_forms", source())
    local words = { {}, {}, {} }
    for l = 1, 32 do
      for k = 1, 3 do words[k][l] = g.bits() & 0xffffffff end
      if l % 4 == 0 then words[2][l] = g.int(0, 40) end
      if l % 8 == 1 then words[1][l] = words[2][l] end
    end
    local a <close> = tp.buffer("u32", words[1])
    local b <close> = tp.buffer("u32", words[2])
    local c <close> = tp.buffer("u32", words[3])
    local o <close> = tp.zeros("u32", #forms * 32)
    local kernel <close> = module:kernel "video"
    kernel:launch({ grid = 1, block = 32 }, a, b, c, o)
    local r, wrong = o:read(), {}
    for i, f in ipairs(forms) do
      for l = 1, 32 do
        local x, y, z = words[1][l], words[2][l], words[3][l]
        local expected, got = f.expected(x, y, z), r[(i - 1) * 32 + l]
        if got ~= expected and as_the_manual_says(f) then
          wrong[#wrong + 1] = ("%s of 0x%x, 0x%x, 0x%x: 0x%x, 0x%x expected")
            :format(f.text, x, y, z, got, expected)
          break
        end
      end
    end
    assert.equal("", table.concat(wrong, "\n"))
  end)
end)
