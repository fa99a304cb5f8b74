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
