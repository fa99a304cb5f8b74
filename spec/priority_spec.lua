-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Streams: priorities, proven by the order in which
-- things ran.
local tp = require "tpstream"
local program = require "spec.support.program"

local SOURCE = [=[
// Every block waits at the gate, so the first ones fill the device; each then
// takes a number.
extern "C" __global__ void flood(const volatile int *flag, volatile int *begun,
                                 int *numbers) {
  if (threadIdx.x == 0) {
    *begun = 1;
    for (int i = 0; i < 4000000 && *flag == 0; i++) __nanosleep(2000);
    __nanosleep(10000);
    atomicAdd(numbers, 1);
  }
  __syncthreads();
}
// The last number that one of its blocks gets.
extern "C" __global__ void late(int *numbers, int *mine) {
  if (threadIdx.x == 0) {
    __nanosleep(10000);
    atomicMax(mine, atomicAdd(numbers, 1));
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

  it("overtakes the blocks of a low one that have not begun", function()
    local least, greatest = tp.current_device():priority_range()
    assert.is_true(greatest < least)
    local low <close> = tp.Stream(nil, least)
    local high <close> = tp.Stream(nil, greatest)
    local flood <close> = module:kernel "flood"
    local late <close> = module:kernel "late"
    local flag <close> = tp.pinned("i32", 1)
    local begun <close> = tp.pinned("i32", 1)
    local numbers <close> = tp.zeros("i32", 2)
    tp.default_stream():synchronize()
    local at_once = flood:occupancy(1024)
      * tp.current_device():properties().multiprocessors
    local blocks, urgent = 16 * at_once, 8 * at_once
    flood:launch({ grid = blocks, block = 1024, stream = low }, flag, begun,
      numbers)
    while begun[1] == 0 do low:query() end
    late:launch({ grid = urgent, block = 1024, stream = high }, numbers,
      numbers:slice(2, 1))
    -- the launch is to reach the device before the gate opens
    high:synchronize(20)
    flag[1] = 1
    assert.is_true(high:synchronize())
    assert.is_true(low:synchronize())
    local all, mine = table.unpack(numbers:read())
    assert.equal(blocks + urgent, all)
    assert.is_true(mine <= urgent + 3 * at_once, ("%d blocks of %d went before it, "
      .. "%d fit at once"):format(mine - urgent, blocks, at_once))
  end)
end)
