-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the operations of PTX answered on an H200, kept in spec/golden, is what
-- they answer here: bit by bit, but for the approximate ones.
--
-- The files are made on a GPU of capability 9.0, by
--   TPS_WRITE_GOLDEN=1 TPSTREAM_DEVICE=cuda … spec/golden_spec.lua
local tp = require "tpstream"
local families = require "spec.support.golden.operations"
local kernels = require "spec.support.golden.kernels"
local replay = require "spec.support.golden.replay"
local results = require "spec.support.golden.results"
local run = require "spec.support.run"

-- The simulated device has one capability for a process's life.
local CHILD = [[
local families = require "spec.support.golden.operations"
local replay = require "spec.support.golden.replay"
for _, family in ipairs(families) do
  if family.target > 80 then
    local wrong, count = replay.check(family)
    print("family", family.name, count)
    for _, text in ipairs(wrong) do print("wrong", family.name, text) end
  end
end
]]

local of_child
local function check_in_child(family)
  if not of_child then
    local r = run.script(CHILD, { env = { TPSTREAM_SIM_CAPABILITY = "9.0" } })
    assert.equal(0, r.status, r.stderr)
    of_child = { wrong = {}, count = {} }
    for kind, name, text in r.stdout:gmatch "(%l+)\t([%w_]+)\t([^\n]*)\n" do
      if kind == "family" then
        of_child.wrong[name], of_child.count[name] = {}, tonumber(text)
      else
        table.insert(of_child.wrong[name], text)
      end
    end
  end
  return of_child.wrong[family.name], of_child.count[family.name]
end

describe("golden results:", function()
  local major = tp.current_device():capability()
  local simulated = tp.current_device():kind() == "sim"

  for _, family in ipairs(families) do
    it(family.name, function()
      local wrong, count
      if 10 * major >= family.target then
        if os.getenv "TPS_WRITE_GOLDEN" then
          assert(not simulated, "golden files are made on a GPU")
          results.write(family, results.run(family))
        end
        wrong, count = replay.check(family)
      elseif simulated then
        wrong, count = check_in_child(family)
      else
        return pending "needs capability 9.0"
      end
      assert.equal("", table.concat(wrong, "\n"))
      assert.equal(#kernels.operations(family), count)
    end)
  end
end)

describe("golden operations", function()
  -- What moves data, waits, or ends is tested elsewhere.
  local OTHER = {}
  for word in ([[ret exit trap brkpt bra call mov ld st cvta isspacep bar
    barrier membar fence nanosleep prefetch prefetchu activemask]])
    :gmatch "%l+" do
    OTHER[word] = true
  end

  it("are all that the census found in stages S1 and S2", function()
    local known, missing = {}, {}
    for _, family in ipairs(families) do
      for _, op in ipairs(kernels.operations(family)) do
        for word in (op.opcode or ""):gmatch "[^+]+" do known[word] = true end
      end
    end
    for line in io.lines "spec/c/opcodes.tsv" do
      local opcode = line:match "^S[12]\t([^\t(]+)"
      if opcode and not OTHER[opcode:match "^%w+"] and not known[opcode] then
        missing[#missing + 1] = opcode
      end
    end
    assert.equal("", table.concat(missing, "\n"))
  end)
end)
