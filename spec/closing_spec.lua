-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The end of a script with work queued: every third of the 120 orders in which
-- five kinds of objects can be closed, by each of the three ways in which a script
-- ends. (spec/c/states_test.c does all of them, with fewer processes.)
local closing = require "spec.support.closing"
local run = require "spec.support.run"

local SCRIPT = [[
local tp = require "tpstream"
local closing = require "spec.support.closing"
local order, how, ending = ...
closing.run(tp, order, { how = how:match "%%a+",
  fault = how:find "fault" ~= nil })
%s
]]

local ENDINGS = {
  { "falling off the end", "" },
  { "os.exit()", "os.exit()" },
  { "os.exit(true, true)", "os.exit(true, true)" },
}
local HOWS = { "close", "finalizers", "none" }

local step = os.getenv "TPS_EVERY" and 1 or 17

describe("a script that ends by", function()
  for _, ending in ipairs(ENDINGS) do
    it(ending[1] .. " with work queued ends cleanly", function()
      for i = 1, #closing.orders, step do
        local how = HOWS[i % 3 + 1]
        local r = run.script(SCRIPT:format(ending[2]),
          { args = { closing.orders[i], how } })
        assert.equal(0, r.status, r.stderr)
        assert.equal("", r.stderr)
      end
    end)

    -- The script has not been told of the fault by an error of its own.
    it(ending[1] .. " after a fault does so, too", function()
      for i = 1, #closing.orders, 2 * step do
        local r = run.script(SCRIPT:format(ending[2]),
          { args = { closing.orders[i], HOWS[i % 3 + 1] .. ", fault" } })
        assert.is_nil(r.signal)
        assert.is_true(r.status == 0 or r.status == 1)
        assert.not_matches("warning", r.stderr)
        assert.not_matches("Sanitizer", r.stderr)
      end
    end)
  end
end)
