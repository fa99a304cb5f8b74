-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/kernels.md: limits that meet or leave the range of their type, results of
-- more elements than can be counted, two views of the same bytes.
local tp = require "tpstream"
local elements = require "spec.support.elements"
local failure, K = elements.failure, tp.kernels

describe("random_uniform", function()
  it("refuses limits that x's type does not have, or has as one number", function()
    for text, case in pairs {
      ["field 'high': 1.000000000001 is the same float32 as 1"] =
        { "f32", 1, 1.000000000001 },
      ["field 'high': 1.0001 is the same float16 as 1"] = { "f16", 1, 1.0001 },
      ["field 'high': 1.001 is the same bfloat16 as 1"] = { "bf16", 1, 1.001 },
      ["field 'high': 65505 does not fit float16 %(%-65504.0 to 65504.0%)"] =
        { "f16", 1, 65505 },
      ["field 'low': %-1e%+39 does not fit float32"] = { "f32", -1e39, 0 },
      ["from %-3.0[%d]*e%+38 to 3.0[%d]*e%+38 it is further than float32 reaches"] =
        { "f32", -3e38, 3e38 },
      ["from %-1.5e%+308 to 1.5e%+308 it is further than float64 reaches"] =
        { "f64", -1.5e308, 1.5e308 },
    } do
      local x <close> = tp.buffer(case[1], 10)
      assert.matches(text, failure(K.random_uniform, x,
        { low = case[2], high = case[3], seed = 1 }))
    end
  end)

  it("rounds limits to x's type and stays within them", function()
    for _, case in ipairs { { "f16", 1.0004, 1.0006 }, { "f16", -65504, 65504 },
      { "bf16", 1.01, 1.02 }, { "f32", 0.1, 0.1 + 1e-8 }, { "f64", -8e307, 8e307 } } do
      local x <close> = tp.buffer(case[1], 500)
      local ends <close> = tp.buffer(case[1], { case[2], case[3] })
      local low, high = table.unpack(ends:read())
      K.random_uniform(x, { low = case[2], high = case[3], seed = 7 })
      for _, value in ipairs(x:read()) do
        assert.is_true(low <= value and value < high)
      end
    end
  end)
end)

describe("histogram", function()
  it("refuses a range beyond what the bins are computed in", function()
    for text, case in pairs {
      ["#4 to 'histogram' %(4 bins from 1 to 1.000000000001 are beyond float32%)"] =
        { "f16", 1, 1.000000000001 },
      ["#4 to 'histogram' %(4 bins from %-3e%+38 to 3e%+38 are beyond float32%)"] =
        { "bf16", -3e38, 3e38 },
      ["#3 to 'histogram' %(%-1e%+39 does not fit float32%)"] = { "f32", -1e39, 0 },
      ["4 bins from %-1e%+308 to 1e%+308 are beyond float64"] =
        { "f64", -1e308, 1e308 },
      ["4 bins from 0 to 1e%-40 are beyond float32"] = { "f32", 0, 1e-40 },
    } do
      local x <close> = tp.zeros(case[1], 10)
      assert.matches(text, failure(K.histogram, x, 4, case[2], case[3]))
    end
  end)
end)

describe("matmul", function()
  it("refuses factors that the sums' type does not have", function()
    for _, name in ipairs { "f16", "bf16", "f32" } do
      local x <close> = tp.zeros(name, 4)
      assert.matches("field 'alpha': 1e%+39 does not fit float32",
        failure(K.matmul, x, x, 2, 2, 2, { alpha = 1e39 }))
      assert.matches("field 'beta': %-1e%+300 does not fit float32",
        failure(K.matmul, x, x, 2, 2, 2, { beta = -1e300, out = x }))
    end
    local x <close> = tp.buffer("f64", { 1, 0, 0, 2 })
    assert.same({ 1e300, 0.0, 0.0, 4e300 },
      K.matmul(x, x, 2, 2, 2, { alpha = 1e300 }):read())
  end)
end)

describe("results of more elements than there can be", function()
  it("are errors, though their product in 64 bits is small", function()
    local none <close> = tp.buffer("f32", 0)
    local one <close> = tp.zeros("f32", 1)
    assert.matches("conv2d: 18446744073709551616 elements of the result are more than",
      failure(K.conv2d, none, one, { batch = 4, height = 0, width = 0, kernel = 1,
        padding = 1 << 30 }))
    assert.matches("matmul: 1208925819614629174706176 elements of the result are",
      failure(K.matmul, none, none, 1 << 40, 1 << 40, 0))
    assert.matches("#1 to 'matmul' %(3 by 4611686018427387904 elements are",
      failure(K.matmul, none, none, 3, 1, 1 << 62))
  end)
end)

describe("two views of the same bytes", function()
  it("overlap, whatever made them", function()
    local x <close> = tp.buffer("f32", { 1, 2, 3, 4, 5, 6 })
    local again <close> = tp.from_dlpack(x:dlpack())
    assert.matches("transpose: x and the result overlap",
      failure(K.transpose, x, 2, 3, again))
    assert.matches("overlap",
      failure(x.copy_to, x, again, { first = 1, count = 3, at = 2 }))
    assert.matches("overlap", failure(x.copy_to, x, again,
      { rows = 2, row_bytes = 8, pitch = 12, to_pitch = 12, at = 2 }))
    K.axpy(1, again, x)
    assert.same({ 2.0, 4.0, 6.0, 8.0, 10.0, 12.0 }, x:read())
  end)
end)

describe("options from a metatable", function()
  local function with(fields) return setmetatable({}, { __index = fields }) end

  it("are used, and checked as others are", function()
    local x <close> = tp.buffer("f32", { 1, 3, 2 })
    K.sort(x, with { descending = true })
    assert.same({ 3.0, 2.0, 1.0 }, x:read())
    local w <close> = tp.buffer("f32", { 1, 1 })
    assert.same({ 5.0, 3.0 }, K.conv2d(x, w, with { height = 1, width = 3,
      kernel = { 1, 2 } }):read())
    for text, call in pairs {
      ["#6 to 'matmul' %(field 'batch': number expected, got string"] =
        { K.matmul, x, x, 1, 1, 1, with { batch = "x" } },
      ["#2 to 'random_uniform' %(field 'low': number expected, got string"] =
        { K.random_uniform, x, with { low = "abc" } },
      ["#5 to 'histogram' %(field 'out': tpstream.Buffer expected, got number"] =
        { K.histogram, x, 3, 0, 4, with { out = 5 } },
    } do
      assert.matches(text, failure(table.unpack(call)))
    end
  end)

  it("are read once", function()
    local x <close> = tp.buffer("f32", { 1, 2 })
    local count = 0
    K.random_uniform(x, setmetatable({}, { __index = function(_, key)
      if key == "seed" then
        count = count + 1
        return count
      end
    end }))
    assert.equal(1, count)
  end)
end)
