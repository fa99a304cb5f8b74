-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What matrix instructions answered on an H200, kept in spec/golden/matrix.bin and
-- wmma.bin, is what they answer here, bit by bit: mma of every form, dense and sparse,
-- wmma, and the places of elements in its fragments.
--
-- Made anew on a GPU of capability 9.0 by TPS_WRITE_GOLDEN=1, as golden_spec.lua.
local tp = require "tpstream"
local fragments = require "spec.support.golden.fragments"
local products = require "spec.support.golden.products"
local run = require "spec.support.run"

-- The simulated device has one capability for a process's life.
local CHILD = [[
local fragments = require "spec.support.golden.fragments"
local wrong, count = fragments.check(fragments.read(), true)
print(count)
print(table.concat(wrong, "\n"))
]]

describe("golden matrices:", function()
  local simulated = tp.current_device():kind() == "sim"
  local major, minor = tp.current_device():capability()
  local hopper = major == 9 and minor == 0
  -- Other generations sum floats in ways of their own.
  local comparable = simulated or hopper
  local kept = fragments.read()

  setup(function()
    if not os.getenv "TPS_WRITE_GOLDEN" then return end
    assert(hopper and not simulated, "golden files are made on a GPU")
    fragments.write(kept)
    products.write()
  end)

  it("products and loads of sm_80", function()
    if not comparable then return pending "the results are an H200's" end
    local wrong, count = fragments.check(kept, false)
    assert.equal("", table.concat(wrong, "\n"))
    assert.equal(187, count)
  end)

  it("products of sm_90", function()
    if not comparable then return pending "the results are an H200's" end
    if hopper then
      local wrong, count = fragments.check(kept, true)
      assert.equal("", table.concat(wrong, "\n"))
      return assert.equal(13, count)
    end
    local r = run.script(CHILD, { env = { TPSTREAM_SIM_CAPABILITY = "9.0" } })
    assert.equal(0, r.status, r.stderr)
    assert.equal("13\n\n", r.stdout)
  end)

  it("products of wmma", function()
    if not comparable then return pending "the results are an H200's" end
    local wrong, count = products.check()
    assert.equal("", table.concat(wrong, "\n"))
    assert.equal(#products.opcodes(), count)
  end)

  it("all products that the census found", function()
    local known, missing = {}, {}
    local function plain(opcode) return (opcode:gsub("%.%f[cr][cr]o[lw]%f[%W]", "")) end
    for _, p in ipairs(kept.products) do known[plain(p.opcode)] = true end
    for _, opcode in ipairs(products.opcodes()) do known[plain(opcode)] = true end
    for line in io.lines "spec/c/opcodes.tsv" do
      local opcode = line:match "^S3c\t(w?mma%.[^\t(]+)"
      if opcode and not opcode:find "^wmma%.[ls]" and not known[plain(opcode)] then
        missing[#missing + 1] = opcode
      end
    end
    assert.equal("", table.concat(missing, "\n"))
  end)
end)
