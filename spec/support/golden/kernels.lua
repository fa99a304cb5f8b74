-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- PTX for the golden operations. A kernel has up to LIMIT operations of one
-- signature. Each of its threads loads one triple of inputs, executes every
-- operation on it, keeps the result if it is one of the first `keep`, and adds
-- a mixture of result and thread to the operation's sum: that covers all inputs
-- by eight bytes.
local inputs = require "spec.support.golden.inputs"

local kernels = { LIMIT = 48 }

-- All words that a pattern with {x,y} stands for.
local function expand(word, out)
  local before, choices, after = word:match "^(.-)(%b{})(.*)$"
  if not before then
    out[#out + 1] = word
    return
  end
  for choice in (choices:sub(2, -2) .. ","):gmatch "([^,]*)," do
    expand(before .. choice .. after, out)
  end
end

-- The operations of a family: { name, result, arguments, opcode, body }.
function kernels.operations(family)
  local list, seen = {}, {}
  for n, name in ipairs(family.names or {}) do -- of functions.lua
    list[n] = { name = name, result = family.result,
      arguments = { family.class, family.class } }
  end
  for _, entry in ipairs(family) do
    local words = {}
    for word in entry[3]:gmatch "%S+" do expand(word, words) end
    for _, word in ipairs(words) do
      local arguments = {}
      for class in entry[2]:gmatch "%S+" do
        arguments[#arguments + 1] = class
      end
      local name = word .. (seen[word] and "/" .. entry[2]:gsub(" ", ",") or "")
      seen[word] = true
      list[#list + 1] = { name = name, result = entry[1],
        arguments = arguments, opcode = word, body = entry.body }
    end
  end
  return list
end

local WIDTH = { b8 = 1, b16 = 2, b32 = 4, b64 = 8 }
kernels.WIDTH = WIDTH

-- Operations of one signature, in portions: { { operations }, … }.
function kernels.portions(family)
  local portions, open = {}, {}
  for _, op in ipairs(kernels.operations(family)) do
    local key = op.result .. " " .. table.concat(op.arguments, " ")
    local portion = open[key]
    if not portion or #portion == kernels.LIMIT then
      portion = { arguments = op.arguments, result = op.result,
        width = WIDTH[op.result] }
      open[key] = portion
      portions[#portions + 1] = portion
    end
    portion[#portion + 1] = op
  end
  return portions
end

local function body(op)
  local text = op.body
  if not text then
    local operands = { "$d" }
    for k = 1, #op.arguments do operands[k + 1] = "$" .. ("abc"):sub(k, k) end
    text = "$op " .. table.concat(operands, ", ") .. ";"
  end
  local words, n = { op = op.opcode }, 0
  for word in op.opcode:gmatch "[^+]+" do
    n = n + 1
    words[tostring(n)] = word
  end
  return (text:gsub("%$(%w+)", words):gsub("%$([abc])", "%%%1")
    :gsub("%$d", "%%d"):gsub("%s*\n%s*", " "))
end

local WIDEN = { b8 = "cvt.u64.u16 %w, %d;", b16 = "cvt.u64.u16 %w, %d;",
  b32 = "cvt.u64.u32 %w, %d;", b64 = "mov.b64 %w, %d;" }
local STORED = { b8 = "u8", b16 = "u16", b32 = "u32", b64 = "u64" }

local function operation(op, at, keep, summed)
  local bits = op.result == "b8" and "b16" or op.result
  local lines = {
    ("  { // %s"):format(op.name),
    ("  .reg .%s %%d; .reg .b64 %%w, %%h;"):format(bits),
    "  " .. body(op),
    ("  @%%kept st.global.%s [%%out+%d], %%d;"):format(STORED[op.result],
      (at - 1) * keep * WIDTH[op.result]),
  }
  if summed then
    table.move({
      "  " .. WIDEN[op.result],
      "  add.u64 %h, %w, %mark; mul.lo.u64 %h, %h, 0x9E3779B97F4A7C15;",
      "  shr.u64 %w, %h, 29; xor.b64 %h, %h, %w;",
      "  mul.lo.u64 %h, %h, 0xBF58476D1CE4E5B9;",
      "  shr.u64 %w, %h, 32; xor.b64 %h, %h, %w;",
      ("  red.global.add.u64 [%%sums+%d], %%h;"):format(8 * (at - 1)),
    }, 1, 6, #lines + 1, lines)
  end
  lines[#lines + 1] = "  }"
  return table.concat(lines, "\n")
end

local function loads(arguments)
  local lines = {}
  for k, class in ipairs(arguments) do
    local bits = inputs.BITS[inputs.FORMAT[class]]
    local name = ("abc"):sub(k, k)
    lines[#lines + 1] = ([[
  .reg .b%d %%%s;
  ld.param.u64 %%at, [in_%s];
  mul.wide.u32 %%off, %%i, %d;
  add.u64 %%at, %%at, %%off;
  ld.global.b%d %%%s, [%%at];]]):format(bits, name, name, bits // 8, bits, name)
  end
  return table.concat(lines, "\n")
end

local HEAD = [[
.visible .entry %s(.param .u64 in_a, .param .u64 in_b, .param .u64 in_c,
  .param .u64 in_out, .param .u64 in_sums, .param .u64 in_slots)
{
  .reg .pred %%p, %%q, %%kept;
  .reg .b32 %%i, %%s, %%t, %%shared, %%lane;
  .reg .b64 %%at, %%off, %%u, %%v, %%out, %%sums, %%slot, %%mark;
  .shared .align 8 .b8 slots[1024];
  mov.u32 %%s, %%ctaid.x;
  mov.u32 %%t, %%ntid.x;
  mov.u32 %%i, %%tid.x;
  shl.b32 %%lane, %%i, 3;
  mov.u32 %%shared, slots;
  add.u32 %%shared, %%shared, %%lane;
  mad.lo.u32 %%i, %%s, %%t, %%i;
%s
  ld.param.u64 %%slot, [in_slots];
  mul.wide.u32 %%off, %%i, 8;
  add.u64 %%slot, %%slot, %%off;
  ld.param.u64 %%sums, [in_sums];
  ld.param.u64 %%out, [in_out];
  mul.wide.u32 %%off, %%i, %d;
  add.u64 %%out, %%out, %%off;
  add.u32 %%s, %%i, 1;
  cvt.u64.u32 %%mark, %%s;
  mul.lo.u64 %%mark, %%mark, 0x94D049BB133111EB;
  setp.lt.u32 %%kept, %%i, %d;
%s
  ret;
}
]]

-- The module of a family: a kernel k1, k2, … for each portion.
function kernels.text(family, portions, keep)
  local parts = { (".version 9.0\n.target sm_%d\n.address_size 64\n"):format(
    family.target) }
  for n, portion in ipairs(portions) do
    local ops = {}
    for at, op in ipairs(portion) do
      ops[at] = operation(op, at, keep, not family.approximate)
    end
    parts[#parts + 1] = HEAD:format("k" .. n, loads(portion.arguments),
      portion.width, keep, table.concat(ops, "\n"))
  end
  return table.concat(parts)
end

return kernels
