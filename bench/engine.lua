-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the simulated device's engine does in a second, beside the same work in
-- plain C (bench/native.c, one thread, -O3), in one run:
--
--   TPSTREAM_SIM_THREADS=1 build/tpstream --device sim bench/engine.lua [threads]
--
-- Medians of nine. With a number of threads, a second process takes the times on
-- so many worker threads, and the last column is how many times as fast it was
-- (the best of nine on both sides, since other work may share the processors).
-- A lane-operation is one PTX instruction of one thread, counted by
-- bench/count.lua. Results are compared with native's before anything is timed.
--
-- In the environment: BENCH_ONLY=saxpy for one work, BENCH_REPETITIONS, and
-- BENCH_CPU=1 where the machine is shared: the least processor time in place of
-- the median of elapsed times (the column for more threads has no meaning then).
local here = (arg and arg[0] or ""):match "^(.*/)" or ""
local build = (arg and arg[-3] or arg and arg[-1] or ""):match "^(.*)/" or "build"
package.path = here .. "?.lua;" .. package.path
package.cpath = build .. "/?.so;build/?.so;" .. package.cpath

local tp = require "tpstream"
local count = require "count"
local native = require "bench_native"

local REPETITIONS = tonumber(os.getenv "BENCH_REPETITIONS") or 9
local CPU = os.getenv "BENCH_CPU"
local ONLY = os.getenv "BENCH_ONLY"
local TIMES_ONLY = arg and arg[1] == "times"
local THREADS = not TIMES_ONLY and arg and tonumber(arg[1])

local CORPUS = here .. "../spec/corpus/"
local OWN = here .. "kernels.cu"
local N, SIDE, FIELD = 1 << 20, 256, 1024

-- in and out: arrays of native.c by their short names; launch takes kernels and
-- buffers by name. limit: how far results may differ, where more than 1e-5.
local WORKS = {
  { "saxpy", "saxpy, 1 M elements", file = CORPUS .. "01_saxpy.cu",
    arrays = { x = "saxpy.x", y = "saxpy.y" }, out = { "y" },
    launch = function(k, b)
      k.saxpy:launch({ grid = N // 256, block = 256 }, N, 2.0, b.x, b.y)
    end },
  { "tiled", "matrix product, 256^3, tiled", file = CORPUS .. "03_matmul_tiled.cu",
    arrays = { a = "matrix.a", b = "matrix.b", c = "tiled.c" }, out = { "c" },
    launch = function(k, b)
      k.matmul_tiled:launch({ grid = { 16, 16 }, block = { 16, 16 } },
        b.a, b.b, b.c, SIDE)
    end },
  { "naive", "matrix product, 256^3, naive", file = CORPUS .. "03_matmul_tiled.cu",
    arrays = { a = "matrix.a", b = "matrix.b", c = "naive.c" }, out = { "c" },
    launch = function(k, b)
      k.matmul_naive:launch({ grid = { 16, 16 }, block = { 16, 16 } },
        b.a, b.b, b.c, SIDE)
    end },
  { "tensor", "matrix product, 256^3, wmma", file = OWN,
    arrays = { a = "matrix.a", b = "matrix.b", c = "tensor.c" }, out = { "c" },
    limit = 1e-3,
    launch = function(k, b)
      k.matmul_wmma:launch({ grid = { 8, 8 }, block = 128 }, b.a, b.b, b.c, SIDE)
    end },
  { "nbody", "n-body step, 2048 bodies", file = CORPUS .. "06_nbody.cu",
    arrays = { p = "nbody.bodies", f = "nbody.forces" }, out = { "f" }, limit = 1e-3,
    launch = function(k, b)
      k.nbody:launch({ grid = 32, block = 64, shared = 1024 }, b.p, b.f, 2048, 0.01)
    end },
  { "mandelbrot", "Mandelbrot set, 512^2", file = CORPUS .. "41_mandelbrot.cu",
    arrays = { o = "mandelbrot.picture" }, out = { "o" }, limit = 1e-3,
    launch = function(k, b)
      k.mandel:launch({ grid = { 32, 32 }, block = { 16, 16 } },
        b.o, 512, 512, -2.0, -1.28, 0.005, 256)
    end },
  { "histogram", "histogram, 2 M bytes", file = CORPUS .. "04_histogram.cu",
    arrays = { i = "histogram.letters", b = "histogram.bins" }, out = { "b" },
    launch = function(k, b)
      k.hist256:launch({ grid = 64, block = 256 }, b.i, b.b, 2 * N)
    end },
  { "reduction", "reduction, 2 M elements", file = CORPUS .. "02_reduce_shfl.cu",
    arrays = { i = "reduction.terms", o = "reduction.total" }, out = { "o" },
    launch = function(k, b)
      k.reduce_sum:launch({ grid = 128, block = 256 }, b.i, b.o, 2 * N)
    end },
  { "scan", "scan, 1 M elements", file = OWN,
    arrays = { i = "scan.in", o = "scan.out" }, out = { "o" },
    launch = function(k, b)
      b.totals = b.totals or tp.zeros("i32", 1024)
      b.sums = b.sums or tp.zeros("i32", 1024)
      k.scan_blocks:launch({ grid = 1024, block = 1024 }, b.i, b.o, b.totals, N)
      k.scan_blocks:launch({ grid = 1, block = 1024 }, b.totals, b.sums, nil, 1024)
      k.scan_add:launch({ grid = 1024, block = 1024 }, b.o, b.sums, N)
    end },
  { "stencil", "stencil, 1024^2, f64", file = CORPUS .. "42_stencil.cu",
    arrays = { a = "stencil.field", b = "stencil.next" }, out = { "b" },
    launch = function(k, b)
      k.heat:launch({ grid = { FIELD // 32, FIELD // 8 }, block = { 32, 8 } },
        b.a, b.b, FIELD, FIELD, 0.1)
    end },
  { "options", "Black-Scholes, 1 M options", file = OWN,
    arrays = { s = "options.price", x = "options.strike", t = "options.years",
      call = "options.call", put = "options.put" }, out = { "call", "put" },
    launch = function(k, b)
      k.black_scholes:launch({ grid = N // 256, block = 256 },
        b.s, b.x, b.t, b.call, b.put, 0.02, 0.3, N)
    end },
  { "fft", "Fourier, 256 of 1024 points", file = OWN,
    arrays = { i = "fft.in", o = "fft.out", w = "fft.turn" }, out = { "o" },
    launch = function(k, b)
      k.fft1024:launch({ grid = 256, block = 512 }, b.i, b.o, b.w)
    end },
}

local DTYPES = { ["histogram.letters"] = "u8", ["histogram.bins"] = "u32",
  ["mandelbrot.picture"] = "i32", ["scan.in"] = "i32", ["scan.out"] = "i32",
  ["stencil.field"] = "f64", ["stencil.next"] = "f64" }

local function buffers(work)
  local b = {}
  for short, name in pairs(work.arrays) do
    b[short] = tp.buffer(DTYPES[name] or "f32", native.bytes(name))
  end
  return b
end

local function kernels(module)
  return setmetatable({}, { __index = function(t, name)
    t[name] = module:kernel(name)
    return t[name]
  end })
end

local modules = {}
local function module_of(file)
  modules[file] = modules[file] or tp.compile_file(file)
  return modules[file]
end

local function median_and_best(one)
  local times = {}
  for i = 1, REPETITIONS do times[i] = one() end
  table.sort(times)
  return times[REPETITIONS // 2 + 1], times[1]
end

local function elapsed_ms(work, k, b)
  local timer = tp.timer()
  work.launch(k, b)
  return timer:stop()
end

local function processor_ms(work, k, b)
  local begin = os.clock()
  work.launch(k, b)
  tp.current_stream():synchronize()
  return (os.clock() - begin) * 1e3
end

local function device_times(work, k, b)
  return median_and_best(function()
    return (CPU and processor_ms or elapsed_ms)(work, k, b)
  end)
end

local function native_times(work)
  return median_and_best(function()
    local begin = os.clock()
    local elapsed = native.run(work[1])
    return CPU and (os.clock() - begin) * 1e3 or elapsed
  end)
end

local function verify(work, k, b)
  work.launch(k, b)
  native.run(work[1])
  for _, short in ipairs(work.out) do
    local name = work.arrays[short]
    local difference = native.difference(name, b[short]:bytes())
    if not (difference <= (work.limit or 1e-5)) then
      error(("%s differs from native's by %g"):format(name, difference))
    end
  end
end

local function operations_of(work)
  local module, total = count.module(module_of(work.file):ptx())
  work.launch(kernels(module), buffers(work))
  return total()
end

-- Best times by work, of another process with so many threads.
local function times_on(threads)
  local command = ("TPSTREAM_SIM_THREADS=%d %s --device sim %s times")
    :format(threads, build .. "/tpstream", arg[0])
  local best = {}
  local pipe = assert(io.popen(command))
  for line in pipe:lines() do
    local name, ms = line:match "^(%S+) (%S+)$"
    if name then best[name] = tonumber(ms) end
  end
  assert(pipe:close(), "the other process failed")
  return best
end

local function report(work, others)
  local k, b = kernels(module_of(work.file)), buffers(work)
  local operations = operations_of(work)
  verify(work, k, b)
  local ms, best = device_times(work, k, b)
  local plain, plain_best = native_times(work)
  if CPU then ms, plain = best, plain_best end
  local scaling = others and ("%8.2f"):format(best / others[work[1]]) or ""
  print(("%-30s %9.3f %10.1f %8.2f %10.3f %7.1f%s"):format(work[2], ms,
    operations / 1e6, operations / ms / 1e6, plain, ms / plain, scaling))
end

local function empty_launch()
  local empty = tp.compile 'extern "C" __global__ void empty() {}'
    :kernel "empty":bind { grid = 1, block = 1 }
  local ms = median_and_best(function()
    local timer = tp.timer()
    for _ = 1, 1000 do
      empty()
      tp.current_stream():synchronize()
    end
    return timer:stop()
  end)
  print(("%-30s %9.3f us"):format("empty launch and wait", ms))
end

local chosen = {}
for _, work in ipairs(WORKS) do
  if not ONLY or ONLY == work[1] then chosen[#chosen + 1] = work end
end

if TIMES_ONLY then
  for _, work in ipairs(chosen) do
    local k, b = kernels(module_of(work.file)), buffers(work)
    work.launch(k, b)
    print(("%s %.6f"):format(work[1], select(2, device_times(work, k, b))))
  end
else
  local others = THREADS and times_on(THREADS)
  print(("%s, %s threads, %s time, %s"):format(tp.current_device():name(),
    os.getenv "TPSTREAM_SIM_THREADS" or "all", CPU and "processor" or "elapsed",
    os.date "%Y-%m-%d"))
  print(("%-30s %9s %10s %8s %10s %7s%s"):format("", "ms", "M lane-ops", "G/s",
    "native ms", "ratio", THREADS and ("%8s"):format("x " .. THREADS) or ""))
  for _, work in ipairs(chosen) do report(work, others) end
  empty_launch()
end
