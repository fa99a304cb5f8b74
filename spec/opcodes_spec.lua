-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Every opcode that the census of 3,584 kernels found in stages S1, S2
-- and S3b is
-- accepted by the simulated device when a module is loaded; what belongs to later
-- stages is refused by name and line. A row of spec/c/opcodes.tsv says only the opcode,
-- so operands of the right kinds are made for it here.
local tp = require "tpstream"
local simulated = require "spec.support.simulated"

local REGISTER = { pred = "%p", b8 = "%rs", u8 = "%rs", s8 = "%rs", b16 = "%rs",
  u16 = "%rs", s16 = "%rs", f16 = "%rs", bf16 = "%rs", b32 = "%r", u32 = "%r",
  s32 = "%r", f16x2 = "%r", bf16x2 = "%r", u16x2 = "%r", s16x2 = "%r",
  tf32 = "%r", b64 = "%rd", u64 = "%rd", s64 = "%rd", f32 = "%f", f64 = "%fd" }
local WIDE = { u16 = "u32", s16 = "s32", u32 = "u64", s32 = "s64" }

-- Register n of a type.
local function reg(dtype, n) return REGISTER[dtype] .. n end

local function vector(dtype, count, n)
  if count == 1 then return reg(dtype, n) end
  local parts = {}
  for i = 1, count do parts[i] = reg(dtype, n + i - 1) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function parse(opcode)
  local op = { name = opcode, types = {}, mods = {}, vector = 1 }
  for word in opcode:gsub("%(.*", ""):gmatch "[^.]+" do
    if not op.base then op.base = word
    elseif REGISTER[word] then table.insert(op.types, word)
    elseif word:match "^v[248]$" then op.vector = tonumber(word:sub(2))
    else op.mods[word] = true end
  end
  return op
end

local function same(count)
  return function(op)
    local t, operands = op.types[1], {}
    for i = 1, count do operands[i] = reg(t, i) end
    if op.mods.wide then operands[1] = reg(WIDE[t], 1) end
    if op.mods.wide and count == 4 then operands[4] = reg(WIDE[t], 4) end
    return table.concat(operands, ", ")
  end
end

local function memory(op, first)
  local t = op.types[#op.types]
  local value, address = vector(t, op.vector, 1), "[%rd9]"
  if op.mods.param then
    address = op.base == "ld" and "[input]" or "[passed]"
  elseif op.mods.const then
    address = "[constant]"
  elseif op.mods.shared then
    address = "[shared_]"
  elseif op.mods["local"] then
    address = "[local_]"
  end
  if first == "st" then return address .. ", " .. value end
  return value .. ", " .. address
end

local function atomic(op)
  local t = op.types[#op.types]
  local address = op.mods.shared and "[shared_]" or "[%rd9]"
  local text = address .. ", " .. reg(t, 2)
  if op.mods.cas then text = text .. ", " .. reg(t, 3) end
  if op.base == "red" then return text end
  return reg(t, 1) .. ", " .. text
end

local function convert(op) -- and what has a source type of its own
  return reg(op.types[1], 1) .. ", " .. reg(op.types[2], 2)
end

local function to_u32(op)
  return "%r1, " .. reg(op.types[1], 2)
end

-- tex and its kin: as many coordinates as the geometry has.
local GEOMETRY = { ["1d"] = 1, ["2d"] = 2, ["3d"] = 4, a1d = 2, a2d = 4, cube = 4 }

local function geometry(op)
  for name, count in pairs(GEOMETRY) do
    if op.mods[name] then return count, name:sub(1, 1) == "a" end
  end
end

local function texture(op)
  local count, layered = geometry(op)
  local at = {}
  for i = 1, count do
    at[i] = i == 1 and layered and "%r9" or reg(op.types[2], i + 5)
  end
  local text = ("%s, [%%rd9, {%s}]"):format(vector(op.types[1], 4, 1),
    table.concat(at, ", "))
  return op.mods.level and text .. ", %f11" or text
end

local function surface(op)
  local data = vector(op.types[1], op.vector, 1)
  if op.vector == 1 then data = "{" .. data .. "}" end
  local at = "[%rd9, " .. vector("u32", geometry(op), 5) .. "]"
  if geometry(op) == 1 then at = "[%rd9, {%r5}]" end
  if op.base == "suld" then return data .. ", " .. at end
  return at .. ", " .. data
end

local OPERANDS = {
  tex = texture, tld4 = texture, suld = surface, sust = surface,
  ret = "", exit = "", trap = "", brkpt = "", membar = "", fence = "",
  bra = "END", nanosleep = "100", activemask = "%r1", prefetch = "[%rd9]",
  prefetchu = "[%rd9]", bmsk = "%r1, %r2, %r3", fns = "%r1, %r2, %r3, %r4",
  lop3 = "%r1, %r2, %r3, %r4, 0x96", prmt = "%r1, %r2, %r3, %r4",
  szext = "%r1, %r2, %r3", sad = same(4), slct = function(op)
    local t = op.types[1]
    return ("%s, %s, %s, %s"):format(reg(t, 1), reg(t, 2), reg(t, 3),
      reg(op.types[2], 4))
  end,
  call = "(returned), target, (passed)",
  mov = same(2), ["not"] = same(2), neg = same(2), abs = same(2), cnot = same(2),
  brev = same(2), ex2 = same(2), lg2 = same(2), sin = same(2), cos = same(2),
  rcp = same(2), sqrt = same(2), rsqrt = same(2), tanh = same(2),
  popc = to_u32, clz = to_u32, bfind = to_u32,
  add = same(3), sub = same(3), mul = same(3), div = same(3), rem = same(3),
  min = same(3), max = same(3), ["and"] = same(3), ["or"] = same(3),
  xor = same(3), copysign = same(3), addc = same(3), subc = same(3),
  mul24 = same(3), mad = same(4), fma = same(4), madc = same(4), mad24 = same(4),
  ld = memory, st = function(op) return memory(op, "st") end,
  atom = atomic, red = atomic,
  shl = function(op)
    return reg(op.types[1], 1) .. ", " .. reg(op.types[1], 2) .. ", %r3"
  end,
  setp = function(op)
    return "%p1, " .. reg(op.types[1], 2) .. ", " .. reg(op.types[1], 3)
  end,
  set = function(op)
    local s = op.types[2] or op.types[1]
    return reg(op.types[1], 1) .. ", " .. reg(s, 2) .. ", " .. reg(s, 3)
  end,
  selp = function(op) return same(3)(op) .. ", %p4" end,
  cvt = function(op)
    -- two floats packed into a pair
    if op.types[1]:match "x2$" then
      return ("%%r1, %s, %s"):format(reg(op.types[2], 2), reg(op.types[2], 3))
    end
    return convert(op)
  end,
  cvta = function() return "%rd1, %rd2" end,
  isspacep = "%p1, %rd9",
  testp = function(op) return "%p1, " .. reg(op.types[1], 2) end,
  bfe = function(op) return same(2)(op) .. ", %r3, %r4" end,
  bfi = function(op) return same(3)(op) .. ", %r4, %r5" end,
  shf = "%r1, %r2, %r3, %r4", dp4a = "%r1, %r2, %r3, %r4",
  dp2a = "%r1, %r2, %r3, %r4",
  shfl = "%r1|%p1, %r2, 1, 31, -1",
  vote = function(op)
    return (op.mods.ballot and "%r1" or "%p1") .. ", %p2, -1"
  end,
  match = function(op)
    local d = op.mods.all and "%r1|%p1" or "%r1"
    return d .. ", " .. reg(op.types[1], 2) .. ", -1"
  end,
  redux = "%r1, %r2, -1",
  barrier = function(op)
    if op.mods.red then return "%r1, 0, %p2" end
    return "0"
  end,
  bar = function(op)
    if op.mods.warp then return "-1" end
    if op.mods.red then
      return (op.mods.popc and "%r1" or "%p1") .. ", 0, %p2"
    end
    return op.mods.arrive and "0, 64" or "0"
  end,
}
OPERANDS.shr = OPERANDS.shl

local function program(opcode)
  local op = parse(opcode)
  local operands = OPERANDS[op.base]
  if operands == nil then return nil end
  if type(operands) == "function" then operands = operands(op) end
  local text = op.name
  if opcode == "call(indirect)" then
    text, operands = "call", "(returned), %rd1, (passed), prototype"
  end
  return ([[
.version 9.0
.target sm_80
.address_size 64
.const .align 16 .b8 constant[64];
.shared .align 16 .b8 shared_[64];
.func (.param .align 16 .b8 r[32]) target(.param .align 16 .b8 x[32]) { ret; }
.visible .entry kernel(.param .align 16 .b8 input[64])
{
  .reg .pred %%p<12>;
  .reg .b16 %%rs<12>;
  .reg .b32 %%r<12>;
  .reg .b64 %%rd<12>;
  .reg .f32 %%f<12>;
  .reg .f64 %%fd<12>;
  .local .align 16 .b8 local_[64];
  .param .align 16 .b8 passed[32];
  .param .align 16 .b8 returned[32];
  prototype: .callprototype (.param .align 16 .b8 _[32]) _ (.param .align 16 .b8 _[32]);
  %s %s;
END:
  ret;
}
]]):format(text, operands)
end

local function rows()
  local list = {}
  for line in io.lines "spec/c/opcodes.tsv" do
    local stage, opcode = line:match "^(S%w+)\t([^\t]+)"
    if stage then list[#list + 1] = { stage, opcode } end
  end
  return list
end

describe("the census's opcodes", function()
  simulated(setup, teardown)

  for stage, least in pairs { S1 = 200, S2 = 200, S3b = 20 } do
    it("of stage " .. stage .. " are all accepted", function()
      local missing, count = {}, 0
      for _, row in ipairs(rows()) do
        if row[1] == stage then
          count = count + 1
          local text = program(row[2])
          assert.is_truthy(text, "no operands known for " .. row[2])
          local ok, e = pcall(tp.load, text)
          if ok then
            e:close()
          else
            missing[#missing + 1] = row[2] .. ": "
              .. tostring(e):match "^[^\n]*"
          end
        end
      end
      assert.is_true(count > least)
      assert.equal("", table.concat(missing, "\n"))
    end)
  end

  it("refuse texture references, which CUDA no longer has", function()
    local text = program "ret":gsub("%.const", ".global .texref old;\n.const", 1)
      :gsub("  ret ;", "  tex.1d.v4.f32.s32 {%%f1, %%f2, %%f3, %%f4}, [old, {%%r1}];")
    local ok, e = pcall(tp.load, text)
    assert.is_false(ok)
    assert.is_truthy(tostring(e):find("'old' is a texture or surface reference, " ..
      "which CUDA no longer has", 1, true), tostring(e))
  end)

  it("that the engine lacks are refused by name and line", function()
    for _, line in ipairs { "wgmma.fence.sync.aligned;",
      "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;" } do
      local text = program "ret":gsub("  ret ;", "  " .. line)
      local _, at = text:match("^(.-)" .. line:sub(1, 5)):gsub("\n", "")
      local ok, e = pcall(tp.load, text)
      assert.is_false(ok)
      assert.equal("cudaErrorNotSupported", e.code)
      assert.is_truthy(e.message:find(line:match "^[%w_.]+", 1, true))
      assert.is_truthy(e.message:find("line " .. at + 1, 1, true), e.message)
    end
  end)
end)
