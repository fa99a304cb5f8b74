-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- How long a megabyte of PTX takes to load on the simulated device: it is read,
-- described, and decoded once to see whether all of it can run.
--
--   build/tpstream bench/load.lua
--
-- Milliseconds of processor time of one thread, the best of 25, since what else the
-- machine does only adds to it: tables of numbers as those of curand_kernel.h,
-- ordinary kernels one after the other, and one kernel as large as the largest of
-- the census.
local tp = require "tpstream"
tp.set_device "sim"

local REPETITIONS = 25
local MEGABYTE = 1000000
local HERE = (arg and arg[0] or ""):match "^(.*/)" or ""
local HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

local function tables()
  local parts, size, n = { HEAD }, 0, 0
  while size < MEGABYTE do
    local row = {}
    for i = 1, 1600 do row[i] = (i * 2654435761 + n) % (1 << 32) end
    n = n + 1
    parts[#parts + 1] = (".global .align 4 .b32 table%d[1600] = {%s};\n"):format(
      n, table.concat(row, ", "))
    size = size + #parts[#parts]
  end
  parts[#parts + 1] = ".visible .entry kernel1() { ret; }\n"
  return table.concat(parts)
end

-- Copies of spec/ptx/corpus_*.ptx that hold one kernel and nothing else.
local function kernels()
  local bodies = {}
  for _, number in ipairs { "01", "41", "15" } do
    local file = assert(io.open(HERE .. "../spec/ptx/corpus_" .. number .. ".ptx"))
    local text = file:read "a"
    file:close()
    for name, rest in text:gmatch "%.visible %.entry ([%w_$]+)(%b()[^{]*%b{})" do
      local body = rest:gsub("\n%s*%.loc%s[^\n]*", ""):gsub(name .. "_param", "p")
      bodies[#bodies + 1] = body
    end
  end
  local parts, size, n = { HEAD }, 0, 0
  while size < MEGABYTE do
    n = n + 1
    parts[#parts + 1] = ".visible .entry kernel" .. n
      .. bodies[n % #bodies + 1] .. "\n"
    size = size + #parts[#parts]
  end
  return table.concat(parts)
end

-- 33,363 instructions, each with a register of its own, and a thousand branches.
local function large()
  local parts = { HEAD, [[
.visible .entry kernel1(.param .u64 a) {
.reg .pred %p<2000>; .reg .f32 %f<40000>; .reg .b64 %d<4>;
ld.param.u64 %d1, [a]; cvta.to.global.u64 %d2, %d1;
ld.global.f32 %f1, [%d2]; mov.f32 %f2, 0f3f800000; mov.f32 %f3, %f1;
]] }
  local f, count, p = 4, 6, 0
  while count < 33360 do
    parts[#parts + 1] = ("\tfma.rn.f32 \t%%f%d, %%f%d, %%f%d, %%f%d;\n"):format(
      f, f - 1, f - 2, f - 3)
    f, count = f + 1, count + 1
    if count % 30 == 0 then
      p = p + 1
      parts[#parts + 1] = ("\tsetp.lt.f32 \t%%p%d, %%f%d, 0f00000000;\n"
        .. "\t@%%p%d bra \t$L__BB0_%d;\n$L__BB0_%d:\n"):format(p, f - 1, p, p, p)
      count = count + 2
    end
  end
  parts[#parts + 1] = ("st.global.f32 [%%d2], %%f%d; ret; }\n"):format(f - 1)
  return table.concat(parts)
end

local function measure(name, text)
  local times = {}
  for i = 1, REPETITIONS do
    collectgarbage()
    local before = os.clock()
    local module = tp.load(text)
    times[i] = (os.clock() - before) * 1e3
    module:close()
  end
  print(("%-24s %8.2f MB %8.1f ms"):format(name, #text / 1e6,
    math.min(table.unpack(times))))
end

print(("%s, %s"):format(tp.current_device():name(), os.date "%Y-%m-%d"))
measure("tables", tables())
measure("ordinary kernels", kernels())
measure("one large kernel", large())
