-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What a call costs: from Lua, and beside it the same in straight C on cudart
-- (bench/raw.c), taking turns in one process. Medians of nine, in microseconds.
--
--   build/tpstream bench/launch.lua            the device in use
--   TPSTREAM_DEVICE=cuda build/tpstream bench/launch.lua
--
-- The C side is the module bench_raw, built beside tpstream when there is a CUDA
-- toolkit; on the simulated device, or without it, the Lua side stands alone.
local tp = require "tpstream"

local REPETITIONS = 9

local build = (arg and arg[-1] or "build/tpstream"):match "^(.*)/" or "."
package.cpath = build .. "/?.so;" .. package.cpath
local have_raw, raw = pcall(require, "bench_raw")
local on_gpu = tp.current_device():kind() == "cuda"

local now = have_raw and raw.now or function() return os.clock() * 1e6 end

local module = tp.compile [[
extern "C" __global__ void nothing() {}
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}]]

local stream, other = tp.Stream(), tp.Stream()
local event = tp.Event()
local x, y = tp.zeros("f32", 256), tp.zeros("f32", 256)
local nothing = module:kernel "nothing":bind { grid = 1, block = 1 }
local saxpy = module:kernel "saxpy":bind { grid = 1, block = 256 }
local function empty() end

-- Each loops by itself, so that no call is counted but its own.
local WORKS = {
  { "launch_empty", function(n) for _ = 1, n do nothing() end end },
  { "launch_args4", function(n)
    for _ = 1, n do saxpy(2.0, x, y, 256) end
  end },
  { "record", function(n) for _ = 1, n do event:record(stream) end end },
  { "record_wait", function(n)
    for _ = 1, n do
      event:record(stream)
      other:wait_event(event)
    end
  end },
  { "query", function(n) for _ = 1, n do stream:query() end end },
  { "stream_create_close", function(n)
    for _ = 1, n do tp.Stream():close() end
  end },
  { "allocate_free", function(n)
    for _ = 1, n do tp.buffer("u8", 1 << 20):close() end
  end },
  { "with_stream", function(n)
    local with_stream = tp.with_stream
    for _ = 1, n do with_stream(stream, empty) end
  end },
}

local function repetition(work, batches, batch)
  local total = 0
  for _ = 1, batches do
    local start = now()
    work(batch)
    total = total + (now() - start)
    tp.current_device():synchronize()
  end
  return total / batches / batch
end

local function median(t)
  table.sort(t)
  return t[#t // 2 + 1]
end

local function measure(name, work)
  local batches, batch = 20, 500
  local peer = have_raw and on_gpu and name ~= "with_stream"
  if have_raw and name ~= "with_stream" then batches, batch = raw.batches(name) end
  if name == "with_stream" then batches, batch = 20, 5000 end
  local ours, theirs = {}, {}
  repetition(work, 1, batch)
  if peer then raw.repetition(name) end
  for i = 1, REPETITIONS do
    ours[i] = repetition(work, batches, batch)
    if peer then theirs[i] = raw.repetition(name) end
  end
  return median(ours), peer and median(theirs)
end

print(("%s, %s"):format(tp.current_device():name(), os.date "%Y-%m-%d"))
print(("%-20s %10s %10s %8s"):format("", "Lua [us]", "C [us]", "ratio"))
tp.with_stream(stream, function()
  for _, work in ipairs(WORKS) do
    local ours, theirs = measure(work[1], work[2])
    print(("%-20s %10.3f %10s %8s"):format(work[1], ours,
      theirs and ("%.3f"):format(theirs) or "-",
      theirs and ("%.3f"):format(ours / theirs) or "-"))
  end
end)
