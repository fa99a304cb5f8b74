-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the cache of compiles is worth, and whether it can be broken:
--
--   build/tpstream bench/cache.lua [kills [flips]]       (200, 1000)
--
-- Figures: a small kernel compiled cold (NVRTC opened in that process) and warm,
-- whole processes, medians of nine. Proofs: processes killed (SIGKILL) at random
-- moments while they store; an entry cut at every length and with single bits
-- flipped; 16 processes at once on an empty folder; folders that can't be written.
-- After each the result of the kernel must be right. Status 1 if one was not.
local tp = require "tpstream"

local KILLS = tonumber(arg[1] or 200)
local FLIPS = tonumber(arg[2] or 1000)
local program = arg[-1]
local place = os.tmpname()
os.remove(place)
local wrong = 0

local SCRIPT = [[
local tp = require "tpstream"
local first, last = tonumber(arg[1]), tonumber(arg[2])
for i = first, last do
  local m <close> = tp.compile('extern "C" __global__ void fill(int *o) { *o = '
    .. i .. '; }')
  local o <close> = tp.zeros("i32", 1)
  m:kernel "fill":launch({ grid = 1, block = 1 }, o)
  if o:read()[1] ~= i then print("wrong", i) os.exit(1) end
end
]]

local function sh(format, ...)
  local ok, _, code = os.execute(format:format(...))
  return ok and 0 or code
end

local function write(path, text)
  local f <close> = assert(io.open(path, "wb"))
  f:write(text)
end

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

local function check(name, good)
  if not good then
    wrong = wrong + 1
    print("WRONG: " .. name)
  end
end

sh("mkdir -p '%s'", place)
write(place .. "/script.lua", SCRIPT)
local cache = place .. "/cache"

-- The command line of the script in the folder `where`.
local function line(where, first, last)
  return ("TPSTREAM_CACHE=1 TPSTREAM_CACHE_DIR='%s' '%s' '%s/script.lua' %d %d")
    :format(where, program, place, first, last)
end

-- ---- figures ----------------------------------------------------------------

-- Median of nine, in milliseconds; fn gets the number of the try.
local function median(fn)
  local try = 0
  local function once()
    try = try + 1
    fn(try)
  end
  return tp.benchmark(once, { count = 9, warmup = 0 }).cpu.median
end

local cold = median(function(i) sh("%s", line(cache .. i, 1, 1)) end)
local warm = median(function() sh("%s", line(cache .. 1, 1, 1)) end)
print(("a small kernel, whole process: cold %.1f ms, warm %.1f ms")
  :format(cold, warm))

-- ---- proofs -----------------------------------------------------------------

math.randomseed(42)
for i = 1, KILLS do
  local first = 1 + 10 * i
  sh("timeout -s KILL %.3f sh -c \"exec env %s\" >/dev/null 2>&1",
    0.02 + 0.3 * math.random(), line(cache, first, first + 9))
  check("after a kill", sh("%s", line(cache, first, first + 2)) == 0)
end
print(("killed while storing: %d times"):format(KILLS))

local biggest, path = 0, nil
sh("rm -rf '%s' && %s", cache, line(cache, 1, 1))
for name in io.popen(("ls '%s'"):format(cache)):lines() do
  local size = #read(cache .. "/" .. name)
  if size > biggest then biggest, path = size, cache .. "/" .. name end
end
local whole = read(path)
local DAMAGE = SCRIPT .. [[
local path, flips = arg[3], tonumber(arg[4])
local f = io.open(path, "rb")
local whole = f:read "a"
f:close()
local function try(text)
  local out <close> = io.open(path, "wb")
  out:write(text)
  out:close()
  local m <close> = tp.compile('extern "C" __global__ void fill(int *o) { *o = '
    .. first .. '; }')
  local o <close> = tp.zeros("i32", 1)
  m:kernel "fill":launch({ grid = 1, block = 1 }, o)
  local again <close> = io.open(path, "rb")
  if o:read()[1] ~= first or again:read "a" ~= whole then os.exit(1) end
end
for n = 0, #whole - 1 do try(whole:sub(1, n)) end
math.randomseed(9)
for _ = 1, flips do
  local at, bit = math.random(#whole), math.random(0, 7)
  try(whole:sub(1, at - 1) .. string.char(whole:byte(at) ~ 1 << bit) ..
    whole:sub(at + 1))
end
]]
write(place .. "/script.lua", DAMAGE)
check("damage", sh("%s '%s' %d", line(cache, 1, 1), path, FLIPS) == 0)
print(("cut at each of %d lengths, %d single bits flipped"):format(#whole, FLIPS))

write(place .. "/script.lua", SCRIPT)
local many = {}
for _ = 1, 16 do many[#many + 1] = line(cache .. "-16", 1, 5) .. " & p=\"$p $!\"" end
check("16 processes", sh("%s; for i in $p; do wait $i || exit 1; done",
  table.concat(many, "; ")) == 0)
print "16 processes at once on an empty folder"

check("below a file", sh("%s", line(place .. "/script.lua/x", 1, 2)) == 0)
check("a file", sh("%s", line(place .. "/script.lua", 1, 2)) == 0)
check("/dev/full", sh("%s", line("/dev/full", 1, 2)) == 0)
check("no room", sh("TPSTREAM_CACHE_SIZE=1 %s", line(cache .. "-1", 1, 2)) == 0)
if sh "test -w /dev/shm && command -v mount >/dev/null && test $(id -u) = 0" == 0 then
  local small = place .. "/small"
  if sh("mkdir '%s' && mount -t tmpfs -o size=8k tmpfs '%s' 2>/dev/null", small,
    small) == 0 then
    check("a full disk", sh("%s", line(small, 1, 20)) == 0)
    print(("a disk of 8 KB: %s entries fit"):format(
      io.popen(("ls '%s' | wc -l"):format(small)):read "l"))
    sh("umount '%s'", small)
  end
end
print "folders that can't be written"

sh("rm -rf '%s'*", place)
print(wrong == 0 and "all results were right" or wrong .. " were wrong")
os.exit(wrong == 0)
