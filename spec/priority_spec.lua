-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Streams: priorities, proven by the order in which
-- things ran.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local program = require "spec.support.program"

local SOURCE = [=[
// Each block computes for a while, then takes a number. `last` becomes the last one
// that a block of the kernel gets.
extern "C" __global__ void flood(int *numbers, int *last, unsigned x) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4000; i++) x = x * 1664525u + 1013904223u;
    atomicMax(last, atomicAdd(numbers, x == 0 ? 2 : 1));
  }
  __syncthreads();
}
]=]

describe("a kernel of high priority", function()
  local module
  setup(function() module = program("priority", SOURCE) end)
  teardown(function()
    module:close()
    module = nil
  end)

  -- Two kernels that can begin at the same time, the one of low priority first in
  -- line; each has far more blocks than fit at once. Of one priority they would
  -- share the device, or come in the order of their launches.
  local function race(low, high)
    local flood <close> = module:kernel "flood"
    local numbers <close> = tp.zeros("i32", 3)
    local s <close> = tp.Stream()
    tp.default_stream():synchronize()
    local at_once = flood:occupancy(1024)
      * tp.current_device():properties().multiprocessors
    local blocks, urgent = 16 * at_once, 8 * at_once
    local g <close> = gate.new()
    g:hold(s)
    low:wait_stream(s)
    high:wait_stream(s)
    flood:launch({ grid = blocks, block = 1024, stream = low }, numbers,
      numbers:slice(2, 1), 1)
    flood:launch({ grid = urgent, block = 1024, stream = high }, numbers,
      numbers:slice(3, 1), 1)
    g:open()
    assert.is_true(low:synchronize())
    assert.is_true(high:synchronize())
    local all, last_low, last_high = table.unpack(numbers:read())
    assert.equal(blocks + urgent, all)
    assert.equal(all - 1, math.max(last_low, last_high))
    return last_high - urgent, at_once
  end

  it("overtakes the blocks of a low one that have not begun", function()
    local least, greatest = tp.current_device():priority_range()
    assert.is_true(greatest < least)
    local low <close> = tp.Stream(nil, least)
    local high <close> = tp.Stream(nil, greatest)
    -- The low one may get a head start where other work keeps the host busy.
    local least_before, at_once = math.huge, nil
    for _ = 1, 6 do
      local before
      before, at_once = race(low, high)
      least_before = math.min(least_before, before)
      if least_before <= at_once then break end
    end
    if os.getenv "TPSTREAM_SIM_SEED" then return end -- then chance decides
    assert.is_true(least_before <= 2 * at_once, ("%d blocks of the low one went "
      .. "before its end, %d fit at once"):format(least_before, at_once))
  end)
end)
