-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Copies between host and device, and between devices, beside straight C on cudart
-- (bench/pipeline.c), taking turns in one process: medians of nine.
--
--   build/tpstream bench/pipeline.lua                             the device in use
--   TPSTREAM_DEVICE=cuda build/tpstream bench/pipeline.lua
--
-- The pipeline takes chunks of 4 MiB of pinned memory to the device, computes on
-- them there and takes them back to other pinned memory, each on a stream of its own,
-- with three places on the device; the figure is 2 x 256 MiB over the time until all
-- is back. The peer copy takes 256 MiB from device 0 to device 1, ten times.
local tp = require "tpstream"

local on_gpu = tp.current_device():kind() == "cuda"
local REPETITIONS, SLOTS = 9, 3
local CHUNKS, ELEMENTS = on_gpu and 64 or 8, on_gpu and 1 << 20 or 1 << 12
local PEER_BYTES, PEER_TIMES = on_gpu and 256 << 20 or 1 << 20, 10

local build = (arg and arg[-1] or "build/tpstream"):match "^(.*)/" or "."
package.cpath = build .. "/?.so;" .. package.cpath
local have_raw, raw = pcall(require, "bench_pipeline")
local now = have_raw and raw.now or function() return os.clock() * 1e6 end
local compare = have_raw and on_gpu

local function median(t)
  table.sort(t)
  return t[#t // 2 + 1]
end

-- One line; `ours` and `theirs` return microseconds.
local function report(name, bytes, ours, theirs)
  local mine, others = {}, {}
  for i = 0, REPETITIONS do -- the first warms up
    mine[i] = ours()
    others[i] = theirs and theirs() or 0
  end
  local a, b = median(mine), median(others)
  print(("%-26s %10.1f %10s %9.2f %9s %8s"):format(name, a,
    theirs and ("%.1f"):format(b) or "-", bytes / a / 1e3,
    theirs and ("%.2f"):format(bytes / b / 1e3) or "-",
    theirs and ("%.3f"):format(b / a) or "-"))
end

-- ---- copy in, compute, copy out -------------------------------------------------

local module = tp.compile [[
extern "C" __global__ void work(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 0.5f * x[i] + 1.0f;
}]]

local function pipeline()
  local n = CHUNKS * ELEMENTS
  local from, to = tp.pinned("f32", n), tp.pinned("f32", n)
  if on_gpu then tp.kernels.iota(from) else for i = 1, n do from[i] = i - 1 end end
  tp.current_stream():synchronize()
  local input, work, output = tp.Stream(), tp.Stream(), tp.Stream()
  local slots, ready, done, empty = {}, {}, {}, {}
  for k = 0, SLOTS - 1 do
    slots[k] = tp.buffer("f32", ELEMENTS, { stream = input })
    ready[k], done[k], empty[k] = tp.Event(), tp.Event(), tp.Event()
  end
  local compute = module:kernel "work":bind {
    grid = ELEMENTS // 256, block = 256, stream = work,
  }
  local function run()
    local start = now()
    for i = 0, CHUNKS - 1 do
      local k = i % SLOTS
      local slot = slots[k]
      if i >= SLOTS then input:wait_event(empty[k]) end
      from:copy_to(slot, {
        first = i * ELEMENTS + 1, count = ELEMENTS, stream = input,
      })
      ready[k]:record(input)
      work:wait_event(ready[k])
      compute(slot, ELEMENTS)
      done[k]:record(work)
      output:wait_event(done[k])
      slot:copy_to(to, { at = i * ELEMENTS + 1, stream = output })
      empty[k]:record(output)
    end
    output:synchronize()
    return now() - start
  end
  if compare then raw.open(module:ptx(), CHUNKS, ELEMENTS) end
  report("in, compute, out", 2 * 4 * n, run, compare and raw.pipeline)
  for i = 1, n, n // 64 - 1 do
    local rounded = ("f"):unpack(("f"):pack(0.5 * from[i] + 1))
    assert(to[i] == rounded, i)
  end
end

-- ---- between devices --------------------------------------------------------------

local function peer()
  if #tp.devices() < 2 then return print "peer copy: needs two devices" end
  local from <close> = tp.buffer("u8", PEER_BYTES, { device = 0 })
  local to <close> = tp.buffer("u8", PEER_BYTES, { device = 1 })
  local stream <close> = tp.Stream { device = 0 }
  from:fill(1)
  tp.current_stream():synchronize()
  report("peer copy", PEER_BYTES * PEER_TIMES, function()
    local start = now()
    for _ = 1, PEER_TIMES do from:copy_to(to, { stream = stream }) end
    stream:synchronize()
    return now() - start
  end, compare and function() return raw.peer(PEER_BYTES, PEER_TIMES) end)
end

print(("%s, %s"):format(tp.current_device():name(), os.date "%Y-%m-%d"))
print(("%-26s %10s %10s %9s %9s %8s"):format("", "Lua [us]", "C [us]", "Lua GB/s",
  "C GB/s", "of C's"))
pipeline()
peer()
