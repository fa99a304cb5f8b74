-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Video instructions, scalar and packed, with every selector, saturation and second
-- operation, against the same in Lua. NVRTC emits two or three of them; the rest is
-- written in inline assembly, so it is PTX here too.
local tp = require "tpstream"
local departs = require "spec.support.video".departs
local numbers = require "spec.support.numbers"
local wrap = numbers.wrap
local g = numbers.generator(4242)

local function u32(x) return x & 0xffffffff end
local function pick(list) return list[g.int(1, #list)] end
local function coin() return g.int(0, 1) == 1 end

local function extended(v, bits, sign)
  v = v & (1 << bits) - 1
  return sign and wrap(v, bits) or v
end

local function clamped(v, bits, sign)
  local least = sign and -(1 << bits - 1) or 0
  local most = sign and (1 << bits - 1) - 1 or (1 << bits) - 1
  return math.max(least, math.min(most, v))
end

local COMPARE = {
  eq = function(a, b) return a == b end, ne = function(a, b) return a ~= b end,
  lt = function(a, b) return a < b end, le = function(a, b) return a <= b end,
  gt = function(a, b) return a > b end, ge = function(a, b) return a >= b end,
}

local function operate(op, a, b, how)
  if op == "vadd" then return a + b end
  if op == "vsub" then return a - b end
  if op == "vabsdiff" then return math.abs(a - b) end
  if op == "vmin" then return math.min(a, b) end
  if op == "vmax" then return math.max(a, b) end
  if op == "vavrg" then return (a + b + (a + b >= 0 and 1 or 0)) // 2 end
  if op == "vset" then return COMPARE[how](a, b) and 1 or 0 end
  b = how == "wrap" and b & 31 or math.min(b, 32)
  if op == "vshl" then return a << b end
  return a // (1 << b) -- vshr
end

-- Where GPUs are not what the PTX manual says (spec/golden/video.bin): .sat holds
-- an unsigned word at nought only, and a part of a word at its upper end whichever
-- end it left;
local function saturated(r, bits, sign, shift)
  if shift or bits == 32 and sign then return clamped(r, bits, sign) end
  if bits == 32 then return math.max(r, 0) end
  local most = (1 << (sign and bits - 1 or bits)) - 1
  return (r < 0 or r > most) and most or r
end
-- a sum or difference that may have left its word is the greater one.
local function second_of(how, op, r, z, sign)
  if how == "add" then return u32(r + z) end
  local beyond = sign and op == "vabsdiff"
    or not sign and (op == "vadd" or op == "vsub")
  local less = extended(r, 32, sign) < extended(z, 32, sign)
  if beyond and r >> 31 & 1 == 1 then less = false end
  return u32(less == (how == "min") and r or z)
end

-- A random instruction: its text and a function that computes it.
local function scalar(op)
  local d, a, b = coin(), coin(), coin()
  local function name(sign) return sign and ".s32" or ".u32" end
  local shift = op == "vshl" or op == "vshr"
  if shift then b = false end
  if op == "vset" then d = false end
  local how = shift and pick { "clamp", "wrap" }
    or op == "vset" and pick { "eq", "ne", "lt", "le", "gt", "ge" }
  local sat = op ~= "vset" and coin()
  local form = g.int(1, 3) -- plain, a second operation, merged
  local second = form == 2 and pick { "add", "min", "max" }
  local parts = { "", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1" }
  local asel, bsel = pick(parts), pick(parts)
  local dsel = form == 3 and parts[g.int(2, 7)] or ""
  local function bits_of(sel)
    return sel == "" and 32 or sel:sub(2, 2) == "b" and 8 or 16
  end
  local function place(sel) return bits_of(sel) * (tonumber(sel:sub(3)) or 0) end
  local text = op .. (op == "vset" and "" or name(d)) .. name(a) .. name(b)
    .. (sat and ".sat" or "") .. (how and "." .. how or "")
    .. (second and "." .. second or "")
    .. (" %%r1%s, %%r2%s, %%r3%s"):format(dsel, asel, bsel)
    .. (form > 1 and ", %r4" or "")
  return text, function(x, y, z)
    local r = operate(op, extended(x >> place(asel), bits_of(asel), a),
      extended(y >> place(bsel), bits_of(bsel), b), how)
    local bits = bits_of(dsel)
    if sat then r = saturated(r, bits, d, shift) end
    if second then
      local sign = d
      if op == "vset" then sign = a end
      return second_of(second, op, r, z, sign)
    end
    if bits == 32 then return u32(r) end
    if dsel == ".h1" then return u32(r) & 0xffff0000 | z & 0xffff end
    local mask = (1 << bits) - 1
    return z & ~(mask << place(dsel)) | (r & mask) << place(dsel)
  end
end

local function packed(op, count)
  local d, a, b = coin(), coin(), coin()
  local function name(sign) return sign and ".s32" or ".u32" end
  local how = op == "vset" and pick { "eq", "ne", "lt", "le", "gt", "ge" }
  local add = coin()
  local sat = op ~= "vset" and not add and coin()
  local letter = count == 4 and ".b" or ".h"
  local function selector(first)
    local list = {}
    for k = 1, count do list[k] = first + k - 1 end
    if coin() then return "", list end
    local text = ""
    for k = count, 1, -1 do
      list[k] = g.int(0, 2 * count - 1)
      text = text .. list[k]
    end
    return letter .. text, list
  end
  local asel, as = selector(0)
  local bsel, bs = selector(count)
  local mask, elements = "", {}
  if coin() then
    for k = count - 1, 0, -1 do
      if coin() then mask, elements[k] = mask .. k, true end
    end
    if mask == "" then mask, elements[0] = "0", true end
    mask = letter .. mask
  else
    for k = 0, count - 1 do elements[k] = true end
  end
  local text = op .. count .. (op == "vset" and "" or name(d)) .. name(a)
    .. name(b) .. (sat and ".sat" or "") .. (how and "." .. how or "")
    .. (add and ".add" or "")
    .. (" %%r1%s, %%r2%s, %%r3%s, %%r4"):format(mask, asel, bsel)
  local bits = 32 // count
  return text, function(x, y, z)
    local both, sum = x | y << 32, z
    for k = 0, count - 1 do
      if elements[k] then
        local r = operate(op, extended(both >> bits * as[k + 1], bits, a),
          extended(both >> bits * bs[k + 1], bits, b), how)
        if sat then r = clamped(r, bits, d) end
        sum = sum + r
        local m = (1 << bits) - 1
        z = z & ~(m << bits * k) | (r & m) << bits * k
      end
    end
    return u32(add and sum or z)
  end
end

local function multiply_add()
  local a, b = coin(), coin()
  local function name(sign) return sign and ".s32" or ".u32" end
  local negated, less, plus = false, false, false
  local choice = g.int(1, 4)
  if choice == 2 then negated = true end
  if choice == 3 then less = true end
  if choice == 4 then plus = true end
  local sign = a or b or negated or less
  local sat, shift = coin(), pick { 0, 7, 15 }
  local asel, bsel = pick { ".b1", ".h0", ".h1" }, pick { ".b3", ".h0", ".h1" }
  local function bits_of(sel) return sel:sub(2, 2) == "b" and 8 or 16 end
  local function place(sel) return bits_of(sel) * tonumber(sel:sub(3)) end
  local text = "vmad" .. name(sign) .. name(a) .. name(b) .. (plus and ".po" or "")
    .. (sat and ".sat" or "") .. (shift > 0 and ".shr" .. shift or "")
    .. (" %%r1, %s%%r2%s, %%r3%s, %s%%r4"):format(negated and "-" or "", asel,
      bsel, less and "-" or "")
  return text, function(x, y, z)
    local r = extended(x >> place(asel), bits_of(asel), a)
      * extended(y >> place(bsel), bits_of(bsel), b)
    z = extended(z, 32, sign)
    r = (negated and -r or r) + (less and -z or z) + (plus and 1 or 0)
    r = r // (1 << shift)
    return u32(sat and clamped(r, 32, sign) or r)
  end
end

local function forms()
  local list = {}
  local function add(...) list[#list + 1] = { ... } end
  for _, op in ipairs { "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl",
    "vshr", "vset" } do
    for _ = 1, 16 do add(scalar(op)) end
  end
  for _, op in ipairs { "vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax",
    "vset" } do
    for _ = 1, 8 do
      add(packed(op, 2))
      add(packed(op, 4))
    end
  end
  for _ = 1, 24 do add(multiply_add()) end
  return list
end

local function ptx(list)
  local text = { [[
.version 7.0
.target sm_80
.address_size 64
.visible .entry video(.param .u64 p_in, .param .u64 p_out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [p_in];
  ld.param.u64 %rd2, [p_out];
  mov.u32 %r5, %tid.x;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd1, %rd1, %rd3;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.u32 %r2, [%rd1];
  ld.global.u32 %r3, [%rd1+256];
  ld.global.u32 %r4, [%rd1+512];
]] }
  for k, form in ipairs(list) do
    text[#text + 1] = ("  %s;\n  st.global.u32 [%%rd2+%d], %%r1;\n"):format(form[1],
      (k - 1) * 256)
  end
  text[#text + 1] = "  ret;\n}\n"
  return table.concat(text)
end

it("video instructions", function()
  local list = forms()
  local module <close> = tp.load(ptx(list))
  local xs = {}
  for i = 1, 192 do
    local shift = g.int(0, 3) * 8
    xs[i] = u32(g.bits()) >> shift
    if g.int(1, 8) == 1 then xs[i] = pick { 0, 0xffffffff, 0x80000000, 0x80808080,
      0x7fffffff, 0x7f7f7f7f, 0x80008000, 0xff00ff00, 33, 1 } end
  end
  local x <close> = tp.buffer("u32", xs)
  local o <close> = tp.zeros("u32", 64 * #list)
  module:kernel "video":launch({ grid = 1, block = 64 }, x, o)
  local r = o:read()
  local wrong = {}
  for k, form in ipairs(list) do
    for i = 1, 64 do
      local a, b, c = xs[i], xs[64 + i], xs[128 + i]
      local expected, got = form[2](a, b, c), r[(k - 1) * 64 + i]
      if expected ~= got and not departs(form[1]) then
        wrong[#wrong + 1] = ("%s: (%#x, %#x, %#x) is %#x, %#x expected"):format(
          form[1], a, b, c, got, expected)
        break
      end
    end
  end
  assert.equal("", table.concat(wrong, "\n"))
end)
