-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Two devices of one kind: of the kind in use where there are two, else
-- simulated ones (spec/runner.lua sees to it that there are), so that no spec
-- needs two GPUs.
--
--   local pair = require "spec.support.pair"
--   local here, there = pair.devices()
--   local here, there = pair.reachable() -- kernels of one reach the other's memory
--   pair.label(here) --> "sim:0"
local tp = require "tpstream"
local gate = require "spec.support.gate"

local pair = {}

function pair.devices()
  local all = tp.devices()
  if #all >= 2 then return all[1], all[2] end
  return tp.device "sim:0", tp.device "sim:1"
end

function pair.reachable()
  local here, there = pair.devices()
  local b <close> = tp.buffer("i32", 1, { device = there })
  if pcall(tp.with_device, here, function()
    gate.kernel "twice":forall(1, b, 1)
    here:synchronize()
  end) then
    return here, there
  end
  return tp.device "sim:0", tp.device "sim:1"
end

function pair.label(device)
  return ("%s:%d"):format(device:kind(), device:index())
end

return pair
