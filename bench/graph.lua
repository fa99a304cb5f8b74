-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- A graph of a hundred small kernels: what its launch costs the host and how long
-- it takes, beside the same kernels launched one by one and, on a GPU, beside
-- straight C on cudart (bench/raw.c), taking turns in one process, and a function of
-- C that a script calls and that does nothing but this launch ("bare"): what is
-- between C and that is Lua's own. Medians of nine, in microseconds a graph.
--
--   build/tpstream bench/graph.lua                             the device in use
--   TPSTREAM_DEVICE=cuda build/tpstream bench/graph.lua
local tp = require "tpstream"

local REPETITIONS, BATCHES, BATCH, NODES = 9, 20, 100, 100

local build = (arg and arg[-1] or "build/tpstream"):match "^(.*)/" or "."
package.cpath = build .. "/?.so;" .. package.cpath
local have_raw, raw = pcall(require, "bench_raw")
local on_gpu = tp.current_device():kind() == "cuda"

local PTX = [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry nothing() { ret; }
]]
local SOURCE = [[
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}]]

-- Processor time where there is no clock of C's: the work queued runs meanwhile.
local now = have_raw and raw.now or function() return os.clock() * 1e6 end

local stream = tp.Stream()
local x, y = tp.zeros("f32", 256), tp.zeros("f32", 256)
stream:wait_stream(tp.current_stream())

-- On the simulated device empty ones: what they would compute is not the question.
local launch_one
if on_gpu then
  local saxpy = tp.compile(SOURCE):kernel "saxpy":bind { grid = 1, block = 256 }
  launch_one = function() saxpy(2.0, x, y, 256) end
else
  launch_one = tp.load(PTX):kernel "nothing":bind { grid = 1, block = 1 }
end

local function launch_all() for _ = 1, NODES do launch_one() end end

-- `width` branches side by side.
local function capture(width)
  return tp.capture(function()
    local branches, root = {}, tp.current_stream()
    for i = 1, width do branches[i] = tp.Stream() end
    for i = 1, width do branches[i]:wait_stream(root) end
    for i = 0, NODES - 1 do
      tp.with_stream(branches[i % width + 1] or root, launch_one)
    end
    root:wait_stream(table.unpack(branches))
    for i = 1, width do branches[i]:close() end
  end)
end

local chain = tp.capture(launch_all)
local wide = capture(10)

-- What launches cost is measured by a processor that is awake, as C's is, whose
-- wait spins.
local function spin()
  if not on_gpu then return stream:synchronize() end
  while not stream:query() do end
end

local function repetition(work, whole, wait)
  local total = 0
  for _ = 1, BATCHES do
    local start = now()
    work(BATCH)
    local stop = now()
    if wait then wait() elseif whole then stream:synchronize() else spin() end
    total = total + (whole and now() or stop) - start
  end
  return total / BATCHES / BATCH
end

local function median(t)
  table.sort(t)
  return t[#t // 2 + 1]
end

local function measure(work, whole, peer)
  local ours, theirs, bare = {}, {}, {}
  peer = have_raw and on_gpu and peer
  repetition(work, whole)
  if peer then raw.repetition(peer) end
  local one = peer and raw.caller(peer)
  local function call(times) for _ = 1, times do one() end end
  for i = 1, REPETITIONS do
    ours[i] = repetition(work, whole)
    if peer then
      theirs[i] = raw.repetition(peer)
      bare[i] = repetition(call, false, raw.wait)
    end
  end
  return median(ours), peer and median(theirs), peer and median(bare)
end

local function launch_chain(times) for _ = 1, times do chain:launch() end end
local function launch_wide(times) for _ = 1, times do wide:launch() end end
local function no_graph(times) for _ = 1, times do launch_all() end end

local WORKS = {
  { "launch, 100 in a row", launch_chain, false, "graph_launch" },
  { "launch, 10 branches of 10", launch_wide, false, "wide_launch" },
  { "replay, 100 in a row", launch_chain, true, "graph_replay" },
  { "replay, 10 branches of 10", launch_wide, true, "wide_replay" },
  { "launch, no graph", no_graph, false },
  { "replay, no graph", no_graph, true },
}

print(("%s, %s"):format(tp.current_device():name(), os.date "%Y-%m-%d"))
print(("%-28s %10s %10s %8s %10s"):format("", "Lua [us]", "C [us]", "ratio",
  "bare [us]"))
tp.with_stream(stream, function()
  for _, work in ipairs(WORKS) do
    local ours, theirs, bare = measure(work[2], work[3], work[4])
    print(("%-28s %10.2f %10s %8s %10s"):format(work[1], ours,
      theirs and ("%.2f"):format(theirs) or "-",
      theirs and ("%.3f"):format(ours / theirs) or "-",
      bare and not work[3] and ("%.2f"):format(bare) or "-"))
  end
end)

-- Branches by the thousand, one kernel each: captured, joined, launched.
local function branches(n)
  local one = {}
  for i = 1, n do one[i] = tp.Stream() end
  local begun = now()
  local graph = tp.capture(stream, function()
    for i = 1, n do
      one[i]:wait_stream(stream)
      tp.with_stream(one[i], launch_one)
    end
    stream:wait_stream(table.unpack(one))
  end)
  local captured = now() - begun
  local times = {}
  for i = 1, REPETITIONS do
    begun = now()
    graph:launch(stream)
    stream:synchronize()
    times[i] = now() - begun
  end
  print(("%-28s %10.0f %10.0f"):format(("%d branches"):format(n), captured,
    median(times)))
  graph:close()
  for i = 1, n do one[i]:close() end
end

print(("\n%-28s %10s %10s"):format("", "capture", "launch, wait"))
for _, n in ipairs { 1250, 2500, 5000, 10000 } do branches(n) end
