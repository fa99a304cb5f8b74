-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Compile: m:fidelity. What it calls approximate is
-- what the golden results call so.
local tp = require "tpstream"
local families = require "spec.support.golden.operations"
local kernels = require "spec.support.golden.kernels"

local function module_of(body)
  return tp.load(([[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
  .reg .pred %%p;
  .reg .b32 %%r<4>;
  .reg .f32 %%f<4>;
%s
  ret;
}
]]):format(body))
end

-- Fragments of matrices.
local FRAGMENTS = {
  A = "{%r0, %r1, %r2, %r3, %r0, %r1, %r2, %r3}",
  C = "{%f0, %f1, %f2, %f3, %f0, %f1, %f2, %f3}",
  D = "{%d0, %d1}",
  F = "{%f0, %f1, %f2, %f3}",
  H = "{%r0, %r1}",
}
local function operands(text) return (text:gsub("%f[%w]%u%f[%W]", FRAGMENTS)) end

describe("fidelity", function()
  it("lists each opcode once, sorted, exact and approximate ones", function()
    local m <close> = module_of [[
  ex2.approx.ftz.f32 %f1, %f2;
  add.f32 %f1, %f1, %f2;
  @%p add.f32 %f1, %f1, %f3;
  div.full.f32 %f1, %f2, %f3;
  div.rn.f32 %f1, %f2, %f3;
  add.s32 %r1, %r2, %r3;
  ex2.approx.ftz.f32 %f3, %f2;]]
    assert.same({
      exact = { "add.f32", "add.s32", "div.rn.f32", "ret" },
      approximate = { "div.full.f32", "ex2.approx.ftz.f32" },
    }, m:fidelity())
    assert.same(m:fidelity(), m:fidelity())
  end)

  it("has an empty list where there is nothing approximate", function()
    local m <close> = module_of "  mov.b32 %r1, 1;"
    assert.same({ exact = { "mov.b32", "ret" }, approximate = {} },
      m:fidelity())
  end)

  -- Generations of GPUs sum floats in their own ways; see docs/exactness.md.
  it("calls products of float matrices approximate", function()
    local m <close> = module_of(operands [[
  .reg .f64 %d<3>;
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 F, H, {%r2}, F;
  mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 H, H, {%r2}, H;
  mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 F, H, {%r2}, F;
  mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 F, H, {%r2}, F;
  mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 F, H, H, F, %r0, 0;
  mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 D, {%d2}, {%d2}, D;
  mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 H, {%r2}, {%r3}, H;
  mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc H, {%r2}, {%r3}, H;]])
    assert.same({
      exact = { "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "ret" },
      approximate = { "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" },
    }, m:fidelity())
  end)

  it("tells wmma's products from its loads and stores", function()
    local m <close> = module_of(operands [[
  .shared .align 32 .b8 tile[2048];
  mov.u32 %r0, tile;
  wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 C, [%r0];
  wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 C, A, A, C;
  wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 A, H, H, A;
  wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r0], C;]])
    assert.same({
      exact = { "mov.u32", "ret",
        "wmma.load.c.sync.aligned.row.m16n16k16.shared.f32",
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32",
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32" },
      approximate = { "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32" },
    }, m:fidelity())
  end)

  it("agrees with the golden results", function()
    local seen = 0
    for _, family in ipairs(families) do
      if not family.source and family.target == 80 then
        local portions = kernels.portions(family)
        local m <close> = tp.load(kernels.text(family, portions, 1))
        local approximate = {}
        for _, opcode in ipairs(m:fidelity().approximate) do
          approximate[opcode] = true
        end
        for _, op in ipairs(kernels.operations(family)) do
          for opcode in op.opcode:gmatch "%l[^+]+" do
            seen = seen + 1
            assert.equal(family.approximate or false,
              approximate[opcode] or false, opcode)
          end
        end
      end
    end
    assert.is_true(seen > 2000)
  end)

  it("is refused on a closed module", function()
    local m = module_of ""
    m:close()
    local ok, e = pcall(m.fidelity, m)
    assert.is_false(ok)
    assert.matches("attempt to use a closed module", e)
  end)
end)
