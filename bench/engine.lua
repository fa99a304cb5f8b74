-- What the simulated device's engine does in a second. One worker thread is the
-- figure to compare:
--
--   TPSTREAM_SIM_THREADS=1 build/tpstream --device sim bench/engine.lua
--
-- A lane-operation is one PTX instruction of one thread. The counts below are those
-- of the compiled code (straight-line part, and loops times their turns).
local tp = require "tpstream"

local REPETITIONS = 9
local HERE = (arg and arg[0] or ""):match "^(.*/)" or ""

local function kernel(file, name)
  return tp.compile_file(HERE .. "../spec/corpus/" .. file):kernel(name)
end

local function median_ms(work)
  local times = {}
  work()
  tp.current_stream():synchronize()
  for i = 1, REPETITIONS do
    local timer = tp.timer()
    work()
    times[i] = timer:stop()
  end
  table.sort(times)
  return times[REPETITIONS // 2 + 1]
end

local function report(name, ms, operations)
  print(("%-28s %9.3f ms %8s"):format(name, ms, operations
    and ("%.2f G/s"):format(operations / ms / 1e6) or ""))
end

print(("%s, %s"):format(tp.current_device():name(), os.date "%Y-%m-%d"))

do -- 20 instructions a thread
  local n = 1 << 20
  local saxpy = kernel("01_saxpy.cu", "saxpy")
  local x, y = tp.zeros("f32", n), tp.zeros("f32", n)
  report("saxpy, 1 M elements", median_ms(function()
    saxpy:launch({ grid = n // 256, block = 256 }, n, 2.0, x, y)
  end), n * 20)
end

do -- 59 instructions a tile, 16 tiles, 44 besides
  local n = 256
  local product = kernel("03_matmul_tiled.cu", "matmul_tiled")
  local a, b, c = tp.zeros("f32", n * n), tp.zeros("f32", n * n),
    tp.zeros("f32", n * n)
  report("matrix product, 256^3, tiled", median_ms(function()
    product:launch({ grid = { 16, 16 }, block = { 16, 16 } }, a, b, c, n)
  end), n * n * (16 * 59 + 44))
end

do -- 66 instructions for 4 interactions
  local n, bodies = 2048, {}
  for i = 1, n * 4 do bodies[i] = (i * 7919 % 1000) / 1000 end
  local nbody = kernel("06_nbody.cu", "nbody")
  local p, acc = tp.buffer("f32", bodies), tp.zeros("f32", n * 3)
  report("n-body step, 2048 bodies", median_ms(function()
    nbody:launch({ grid = n // 256, block = 256, shared = 4096 }, p, acc, n, 0.01)
  end), n * n * 66 / 4)
end

do
  local empty = tp.compile 'extern "C" __global__ void empty() {}'
    :kernel "empty":bind { grid = 1, block = 1 }
  report("empty launch and wait", median_ms(function()
    for _ = 1, 1000 do
      empty()
      tp.current_stream():synchronize()
    end
  end) / 1000)
end
