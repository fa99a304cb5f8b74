-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the order check adds to each operation that is queued, on the thread of the
-- script: microseconds without it and with it, medians of nine.
--
--   build/tpstream bench/check.lua
--   TPSTREAM_DEVICE=cuda build/tpstream bench/check.lua
local tp = require "tpstream"

local REPETITIONS, CALLS = 9, 400

local module = tp.compile [[
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}]]

local stream, other = tp.Stream(), tp.Stream()
local event = tp.Event()
local x, y = tp.zeros("f32", 64, { stream = stream }), tp.zeros("f32", 64,
  { stream = stream })
local h = tp.pinned("f32", 64)
local saxpy = module:kernel "saxpy":bind { grid = 1, block = 64, stream = stream }
local graph = tp.capture(function()
  for _ = 1, 10 do x:fill(1) end
end)

local WORKS = {
  { "launch", function() saxpy(2.0, x, y, 64) end },
  { "fill", function() x:fill(1) end },
  { "copy", function() x:copy_to(y) end },
  { "record_wait", function()
    event:record(stream)
    other:wait_event(event)
  end },
  { "graph_of_10", function() graph:launch(stream) end },
  { "element", function() h[1] = 2 end },
}

local function cost(work)
  local times = {}
  tp.with_stream(stream, function()
    for i = 1, REPETITIONS do
      stream:synchronize()
      local t = os.clock()
      for _ = 1, CALLS do work() end
      times[i] = (os.clock() - t) / CALLS * 1e6
      stream:synchronize()
    end
  end)
  table.sort(times)
  return times[REPETITIONS // 2 + 1]
end

-- Processor time: on the simulated device its worker threads count as well.
print(("%-12s %8s %8s   µs, on %s"):format("", "off", "order", tp.device():name()))
for _, pair in ipairs(WORKS) do
  local name, work = pair[1], pair[2]
  cost(work)
  local off = cost(work)
  tp.check.start { "order" }
  local on = cost(work)
  tp.check.stop()
  print(("%-12s %8.2f %8.2f"):format(name, off, on))
end
