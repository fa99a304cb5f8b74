-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Every matrix and video opcode of the census is accepted by the simulated device when
-- a module is loaded.
local tp = require "tpstream"
local simulated = require "spec.support.simulated"

-- Registers of wmma's fragments.
local function fragment(kind, use, shape)
  if use == "c" or use == "d" then
    return ({ f32 = 8, f16 = 4, s32 = 8, f64 = 2 })[kind]
  end
  if kind == "f16" then return 8 end
  if kind == "f64" then return 1 end
  assert(shape:match "^m16n16", shape)
  return ({ bf16 = 4, tf32 = 4, s8 = 2, u8 = 2 })[kind]
end

local PREFIX = { f32 = "%f", f64 = "%fd" }
local function vector(kind, count)
  local parts = {}
  for i = 1, count do parts[i] = (PREFIX[kind] or "%r") .. i end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function operands(opcode)
  local base, use = opcode:match "^(%w+)%.?(%w*)"
  local shape = opcode:match "m%d+n%d+k?%d*"
  local types = {}
  for word in opcode:gmatch "[^.]+" do
    if word:match "^[fsu]%d+$" or word:match "^[bt]f%d+$" then
      types[#types + 1] = word
    end
  end
  local address = opcode:find ".shared" and "[shared_]" or "[%rd1]"
  if base == "ldmatrix" then
    return vector("b32", tonumber(opcode:match "%.x(%d)")) .. ", " .. address
  elseif base == "mma" then
    local d = vector(types[1], 4)
    return table.concat({ d, vector("b32", 4), vector("b32", 2), d }, ", ")
  elseif base == "wmma" and use == "load" then
    local which = opcode:match "load%.(%w)"
    return vector(types[1], fragment(types[1], which, shape)) .. ", " .. address
      .. ", %r9"
  elseif base == "wmma" and use == "store" then
    return address .. ", " .. vector(types[1], fragment(types[1], "d", shape))
      .. ", %r9"
  elseif base == "wmma" then
    local d, a, b, c = table.unpack(types)
    if #types == 2 then d, a, b, c = types[1], "f16", "f16", types[2] end
    return table.concat({ vector(d, fragment(d, "d", shape)),
      vector(a, fragment(a, "a", shape)), vector(b, fragment(b, "b", shape)),
      vector(c, fragment(c, "c", shape)) }, ", ")
  elseif opcode:match "^v%w+%d%." or opcode:match "%.add$" then
    return "%r1, %r2, %r3, %r4"
  else
    return "%r1, %r2, %r3"
  end
end

local function program(opcode)
  return ([[
.version 9.0
.target sm_80
.address_size 64
.shared .align 16 .b8 shared_[64];
.visible .entry kernel()
{
  .reg .b32 %%r<12>;
  .reg .b64 %%rd<12>;
  .reg .f32 %%f<12>;
  .reg .f64 %%fd<12>;
  %s %s;
  ret;
}
]]):format(opcode, operands(opcode))
end

describe("the census's opcodes", function()
  simulated(setup, teardown)

  it("of matrices and of video are all accepted", function()
    local missing, count = {}, 0
    for line in io.lines "spec/c/opcodes.tsv" do
      local stage, opcode = line:match "^(S3%w)\t([^\t]+)"
      if stage == "S3c" or (stage == "S3d" and opcode:match "^v") then
        count = count + 1
        local ok, e = pcall(tp.load, program(opcode))
        if ok then e:close()
        else missing[#missing + 1] = tostring(e):match "^[^\n]*" end
      end
    end
    assert.equal("", table.concat(missing, "\n"))
    assert.is_true(count > 45)
  end)
end)
