-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Forms of mma by what they compute with; see spec/support/matrix.lua.
local form = require "spec.support.matrix".form

local forms = {
  floats = {
    form("m16n8k8", "f32.bf16.bf16.f32"), form("m16n8k16", "f32.bf16.bf16.f32"),
    form("m16n8k4", "f32.tf32.tf32.f32"), form("m16n8k8", "f32.tf32.tf32.f32"),
    form("m16n8k8", "f32.f16.f16.f32"), form("m16n8k16", "f32.f16.f16.f32"),
  },
  halves = {
    form("m16n8k8", "f16.f16.f16.f16"), form("m16n8k16", "f16.f16.f16.f16"),
  },
  doubles = { form("m8n8k4", "f64.f64.f64.f64") },
  large_doubles = {
    form("m16n8k4", "f64.f64.f64.f64"), form("m16n8k8", "f64.f64.f64.f64"),
    form("m16n8k16", "f64.f64.f64.f64"),
  },
  integers = {}, bits = {}, eighths = {}, sparse = {}, ordered = {},
  sparse_eighths = {},
}

for _, layout in ipairs { "row.col", "row.row", "col.col", "col.row" } do
  for _, types in ipairs { "f32.f16.f16.f32", "f16.f16.f16.f16",
    "f32.f16.f16.f16" } do
    table.insert(forms.halves, form("m8n8k4", types, { layout = layout }))
  end
end

for _, saturate in ipairs { false, true } do
  for _, x in ipairs { { "8", "m8n8k16" }, { "8", "m16n8k16" },
    { "8", "m16n8k32" }, { "4", "m8n8k32" }, { "4", "m16n8k32" },
    { "4", "m16n8k64" } } do
    for _, types in ipairs { "s32.s.s.s32", "s32.s.u.s32", "s32.u.s.s32",
      "s32.u.u.s32" } do
      table.insert(forms.integers, form(x[2],
        (types:gsub("%.([su])%f[.]", ".%1" .. x[1])), { saturate = saturate }))
    end
  end
end

for _, op in ipairs { "xor", "and" } do
  for _, shape in ipairs { "m8n8k128", "m16n8k128", "m16n8k256" } do
    table.insert(forms.bits, form(shape, "s32.b1.b1.s32", { bits = op }))
  end
end

for _, a in ipairs { "e4m3", "e5m2" } do
  for _, b in ipairs { "e4m3", "e5m2" } do
    for _, d in ipairs { "f32", "f16" } do
      for _, shape in ipairs { "m16n8k16", "m16n8k32" } do
        table.insert(forms.eighths, form(shape, table.concat({ d, a, b, d }, ".")))
      end
    end
  end
end

-- shape, types, selectors
local SPARSE = {
  { "m16n8k16", "f32.f16.f16.f32", 3 }, { "m16n8k32", "f32.f16.f16.f32", 1 },
  { "m16n8k16", "f16.f16.f16.f16", 3 }, { "m16n8k32", "f16.f16.f16.f16", 1 },
  { "m16n8k16", "f32.bf16.bf16.f32", 3 }, { "m16n8k32", "f32.bf16.bf16.f32", 1 },
  { "m16n8k8", "f32.tf32.tf32.f32", 3 }, { "m16n8k16", "f32.tf32.tf32.f32", 1 },
  { "m16n8k32", "s32.s8.u8.s32", 1 }, { "m16n8k64", "s32.u8.s8.s32", 0 },
  { "m16n8k64", "s32.s4.u4.s32", 1 }, { "m16n8k128", "s32.u4.s4.s32", 0 },
}
for _, x in ipairs(SPARSE) do
  for selector = 0, x[3] do
    table.insert(forms.sparse, form(x[1], x[2], { selector = selector,
      saturate = x[2]:match "^s32" ~= nil and selector == 0 }))
  end
  table.insert(forms.ordered, form(x[1], x[2], { selector = 0, ordered = true }))
end
for _, types in ipairs { "f32.e4m3.e4m3.f32", "f32.e5m2.e4m3.f32" } do
  for _, ordered in ipairs { false, true } do
    table.insert(forms.sparse_eighths, form("m16n8k64", types, { selector = 0,
      ordered = ordered }))
  end
end

return forms
