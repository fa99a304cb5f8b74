-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- How fast tp.kernels are, on whatever device; bench/kernels_peers.py does the same
-- with CuPy. On a GPU 2^26 elements and 4096 by 4096 for products, on the simulated
-- device 2^18 and 128 by 128 (BENCH_LOG2 and BENCH_SIDE say otherwise).
--
--   TPSTREAM_DEVICE=cuda build/tpstream bench/kernels.lua
--   python3 bench/kernels_peers.py
--
-- Each line: the work, milliseconds a call, and what that makes of the bytes that
-- must be read and written once (GB/s), of keys (Gkeys/s) or of multiplications and
-- additions (Tflop/s). Medians of nine times as many calls as BENCH_CALLS says (20;
-- on the simulated device 1) between two events. BENCH_ONLY=scan for those lines
-- alone.
local tp = require "tpstream"
local K = tp.kernels

local REAL = tp.current_device():kind() == "cuda"
local N = 1 << (tonumber(os.getenv "BENCH_LOG2") or REAL and 26 or 18)
local SIDE = tonumber(os.getenv "BENCH_SIDE") or REAL and 4096 or 128
local CALLS = tonumber(os.getenv "BENCH_CALLS") or REAL and 20 or 1
local SAMPLES = 9
local ONLY = os.getenv "BENCH_ONLY"

local function median(fn)
  local start <close> = tp.Event(true)
  local stop <close> = tp.Event(true)
  local times = {}
  fn()
  for k = 1, SAMPLES do
    start:record()
    for _ = 1, CALLS do fn() end
    stop:record()
    stop:synchronize()
    times[k] = start:elapsed_time(stop) / CALLS
  end
  table.sort(times)
  return times[SAMPLES // 2 + 1]
end

local function report(name, fn, amount, unit)
  if ONLY and not name:find(ONLY, 1, true) then return end
  local ms = median(fn)
  print(("%-28s %10.4f ms %10.2f %s"):format(name, ms, amount / ms, unit))
end

-- What one millisecond takes for one of these a second.
local GB, GKEYS, TFLOP = 1e6, 1e6, 1e9

local x <close> = tp.buffer("f32", N)
K.random_uniform(x, { seed = 1 })
do
  local y <close> = tp.buffer("f32", N)
  local keys <close> = tp.buffer("u32", N)
  local result <close> = tp.buffer("f32", 1)
  local place <close> = tp.buffer("i64", 1)
  local counts <close> = tp.buffer("i64", 256)
  K.random_uniform(keys, { seed = 2 })
  report("axpy f32", function() K.axpy(0.5, x, y) end, 12 * N / GB, "GB/s")
  report("sum f32", function() K.sum(x, result) end, 4 * N / GB, "GB/s")
  report("max f32", function() K.max(x, result) end, 4 * N / GB, "GB/s")
  report("argmax f32", function() K.argmax(x, place) end, 4 * N / GB, "GB/s")
  report("dot f32", function() K.dot(x, y, result) end, 8 * N / GB, "GB/s")
  report("scan f32", function() K.scan(x, y) end, 8 * N / GB, "GB/s")
  report("histogram f32, 256 bins", function()
    K.histogram(x, 256, 0, 1, { out = counts })
  end, 4 * N / GB, "GB/s")
  local rows = 1 << (math.tointeger(math.log(N, 2)) // 2)
  report("transpose f32", function() K.transpose(x, rows, N // rows, y) end,
    8 * N / GB, "GB/s")
  report("random_uniform f32", function() K.random_uniform(y, { seed = 3 }) end,
    4 * N / GB, "GB/s")
  report("random_normal f32", function() K.random_normal(y, { seed = 3 }) end,
    4 * N / GB, "GB/s")
  local sorted <close> = tp.buffer("u32", N)
  report("copy and sort u32", function()
    sorted:write(keys)
    K.sort(sorted)
  end, N / GKEYS, "Gkeys/s")
  K.iota(y)
  report("copy and sort_pairs u32, f32", function()
    sorted:write(keys)
    K.sort_pairs(sorted, y)
  end, N / GKEYS, "Gkeys/s")
end
for _, t in ipairs { "f32", "f16" } do
  local a <close> = tp.buffer(t, SIDE * SIDE)
  local b <close> = tp.buffer(t, SIDE * SIDE)
  local c <close> = tp.buffer(t, SIDE * SIDE)
  K.random_uniform(a, { seed = 4 })
  K.random_uniform(b, { seed = 5 })
  for _, library in ipairs { true, false } do
    report(("matmul %s%s"):format(t, library and "" or ", our own"), function()
      K.matmul(a, b, SIDE, SIDE, SIDE, { out = c, library = library })
    end, 2 * SIDE ^ 3 / TFLOP, "Tflop/s")
  end
end
