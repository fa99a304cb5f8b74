-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- A short run of bench/soak.lua: nothing grows. A sanitizer's allocator keeps what
-- was freed, so there it is only run.
local run = require "spec.support.run"

describe("bench/soak.lua", function()
  it("finds memory, threads and files flat", function()
    local r = run.lua({ "bench/soak.lua", "0.02" }, { timeout = 200 })
    if os.getenv "TPS_SANITIZE" ~= "" and r.status == 1 then
      assert.matches("GROWN", r.stdout)
    else
      assert.equal(0, r.status, r.stdout .. r.stderr)
    end
    assert.equal("", r.stderr)
    assert.matches("buffers dropped", r.stdout)
  end)

  it("refuses what is no fraction", function()
    assert.equal(2, run.lua({ "bench/soak.lua", "2" }).status)
  end)
end)
