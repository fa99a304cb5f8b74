-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What a compile costs beside NVRTC's own time for it:
--
--   build/tpstream bench/compile.lua
--
-- Milliseconds, medians. "first": in a process of its own, from the call until the
-- kernel can be launched, opening the library included; a process compiles by
-- itself (bench_nvrtc) or through the library, in turns. "next": further compiles
-- in one process, in turns too, of a source that is different each time. Then whole
-- processes: hello.lua with a cache that has it already.
local tp = require "tpstream"

local command = arg[-1]
local build = command:match "^(.*)/[^/]*$" or "."
package.cpath = build .. "/?.so;" .. package.cpath
local here = arg[0]:match "^(.*)/[^/]*$" or "."

local SOURCE = [[
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i] + %d;
}
]]

local function read(text)
  local pipe = assert(io.popen(text))
  local out = pipe:read "a"
  pipe:close()
  return out
end

local info = read(("'%s' --info --json"):format(command))
local path = info:match '"nvrtc":%s*{[^}]*"path":%s*"([^"]*)"'
if not path then
  print "NVRTC was not found: nothing to compare"
  os.exit(true, true)
end
local device = tp.current_device()
local major, minor = device:capability()
-- For a GPU a CUBIN and PTX, for the simulated device PTX alone.
local arch = ("-arch=%s_%d%d"):format(device:kind() == "sim" and "compute" or "sm",
  major, minor)

-- Microseconds of the monotonic clock, as the timers' is.
local function milliseconds(fn, ...)
  local args = table.pack(...)
  return tp.benchmark(function() fn(table.unpack(args, 1, args.n)) end,
    { count = 1, warmup = 0 }).cpu.median
end

local function raw(i)
  local bench = require "bench_nvrtc"
  bench.compile(SOURCE:format(i), arch, "-lineinfo")
end

local function ours(i)
  local m <close> = tp.compile(SOURCE:format(i), { cache = false })
  m:kernel "saxpy"
end

-- A child measures one first compile.
if arg[1] == "raw" or arg[1] == "ours" then
  local number = tonumber(arg[2])
  if arg[1] == "raw" then
    print(milliseconds(function()
      require "bench_nvrtc".open(path)
      raw(number)
    end))
  else
    tp.current_stream()
    print(milliseconds(ours, number))
  end
  os.exit(true, true)
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function report(name, theirs, mine)
  local a, b = median(theirs), median(mine)
  print(("%-28s NVRTC %8.2f   tpstream %8.2f   ratio %.3f"):format(name, a, b, b / a))
end

local first = { raw = {}, ours = {} }
for i = 1, 15 do
  for _, side in ipairs(i % 2 == 0 and { "raw", "ours" } or { "ours", "raw" }) do
    local out = read(("'%s' '%s' %s %d"):format(command, arg[0], side, i))
    local ms = assert(tonumber(out), out)
    table.insert(first[side], ms)
  end
end
report("first, library opened", first.raw, first.ours)

require "bench_nvrtc".open(path)
ours(0)
local next_raw, next_ours = {}, {}
for i = 1, 25 do
  table.insert(next_raw, milliseconds(raw, i))
  table.insert(next_ours, milliseconds(ours, i))
end
report("next", next_raw, next_ours)

local place = os.tmpname()
os.remove(place)
local hello = ("TPSTREAM_CACHE=1 TPSTREAM_CACHE_DIR='%s' '%s' " ..
  "'%s/../examples/hello.lua' >/dev/null"):format(place, command, here)
os.execute(hello)
local whole = {}
for _ = 1, 21 do table.insert(whole, milliseconds(os.execute, hello)) end
print(("%-28s %.2f"):format("hello.lua, warm, whole", median(whole)))
os.execute(("rm -rf '%s'"):format(place))
