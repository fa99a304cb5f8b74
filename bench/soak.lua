-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Whether anything grows: the same work over and over, with the process's resident
-- memory, threads and open files looked at after a warm-up and at the end.
--
--   tpstream bench/soak.lua [fraction]
--
-- At 1 (the default): 10,000 streams alive at once (twice over), 1,000,000 streams
-- made and closed, 1,000,000 launches on 8 streams with events and copies, 100,000
-- buffers dropped without close. A fraction, such as 0.01, does that much of it.
-- The status is 1 when a phase has grown by more than LIMITS allow.
local tp = require "tpstream"

local LIMITS = {
  mib = 4,     -- of resident memory: what a malloc may keep to itself
  threads = 0,
  files = 0,
}

local PTX = [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 .ptr .global .align 4 add_p, .param .u32 add_v)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [add_p];
  ld.param.u32 %r1, [add_v];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r3, [%rd4];
  add.s32 %r4, %r3, %r1;
  st.global.u32 [%rd4], %r4;
  ret;
}
.visible .entry wait(.param .u64 .ptr .global .align 4 wait_flag)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [wait_flag];
  cvta.to.global.u64 %rd2, %rd1;
AGAIN:
  nanosleep.u32 2000;
  ld.volatile.global.u32 %r1, [%rd2];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ret;
}
]]

local fraction = tonumber(arg[1] or 1)
if not fraction or fraction <= 0 or fraction > 1 then
  io.stderr:write("usage: soak.lua [fraction, above 0 and at most 1]\n")
  os.exit(2)
end

local function times(count) return math.max(math.floor(count * fraction), 8) end

-- ---- what the system says ---------------------------------------------------

local function status_field(name)
  local file <close> = assert(io.open "/proc/self/status")
  return tonumber(file:read("a"):match(name .. ":%s*(%d+)"))
end

-- The least of some looks: the pipe of a look itself may count once or twice.
local function open_files()
  local least = math.huge
  for _ = 1, 5 do
    local list <close> = assert(io.popen "ls /proc/$PPID/fd")
    local count = 0
    for _ in list:lines() do count = count + 1 end
    least = math.min(least, count)
  end
  return least
end

local function measure()
  tp.current_device():synchronize()
  collectgarbage()
  collectgarbage()
  tp.current_device():synchronize()
  return {
    mib = status_field "VmRSS" / 1024,
    threads = status_field "Threads",
    files = open_files(),
  }
end

local grown = false

local function report(name, count, before, after, seconds)
  local function pair(key, format)
    return (format .. " → " .. format):format(before[key], after[key])
  end
  local bad = false
  for key, limit in pairs(LIMITS) do
    bad = bad or after[key] - before[key] > limit
  end
  grown = grown or bad
  print(("%-34s %9d  %s MiB, %s threads, %s files, %.1f s%s"):format(name, count,
    pair("mib", "%.1f"), pair("threads", "%d"), pair("files", "%d"), seconds,
    bad and "  GROWN" or ""))
end

-- Runs work(count) in ten parts, after `warmup` of them that do not count.
local function phase(name, count, warmup, work)
  local began = os.time()
  local part = math.max(count // 10, 1)
  for _ = 1, warmup do work(part, true) end
  local before = measure()
  for _ = 1, 10 do work(part) end
  report(name, part * 10, before, measure(), os.difftime(os.time(), began))
end

-- ---- the work ---------------------------------------------------------------

local function alive_at_once(count)
  local streams = {}
  for i = 1, count do streams[i] = tp.Stream() end
  for i = 1, count do assert(streams[i]:query()) end
  for i = 1, count do streams[i]:close() end
end

local function open_and_close(count)
  for _ = 1, count do tp.Stream():close() end
end

local module = tp.load(PTX)
local kernel = module:kernel "add"

local SYNC = 512 -- rounds between two waits

-- All that can be queued between two waits, at once: what that takes stays with
-- malloc, and would else come and go with the machine's other work.
local function fill_queues(streams, go, buffers)
  local wait <close> = module:kernel "wait"
  local flag <close> = tp.pinned("i32", 1)
  for i = 1, 8 do
    wait:launch({ grid = 1, block = 1, stream = streams[i] }, flag)
  end
  for _ = 1, SYNC do
    for i = 1, 8 do go[i](buffers[i], 0) end
  end
  flag[1] = 1
  tp.current_device():synchronize()
end

local function launches(count, warmup)
  local streams, buffers, go, events = {}, {}, {}, {}
  for i = 1, 8 do
    streams[i] = tp.Stream()
    buffers[i] = tp.zeros("i32", 32)
    events[i] = tp.Event()
    go[i] = kernel:bind { grid = 1, block = 32, stream = streams[i] }
  end
  tp.current_stream():synchronize()
  local copy <close> = tp.zeros("i32", 32)
  if warmup then fill_queues(streams, go, buffers) end
  for n = 1, count // 8 do
    for i = 1, 8 do go[i](buffers[i], 1) end
    if n % 4 == 0 then
      local i = n // 4 % 8 + 1
      local j = i % 8 + 1
      events[i]:record(streams[i])
      events[i]:wait(streams[j])
      buffers[i]:copy_to(copy, { stream = streams[j] })
      events[j]:record(streams[j])
      events[j]:wait(streams[i])
    end
    if n % 64 == 0 then tp.barrier(table.unpack(streams)) end
    if n % SYNC == 0 then tp.current_device():synchronize() end
  end
  tp.current_device():synchronize()
  for i = 1, 8 do
    local got = buffers[i]:read()
    assert(got[1] == count // 8 and got[32] == count // 8, "a wrong result")
    buffers[i]:close()
    events[i]:close()
    streams[i]:close()
  end
  go = nil -- luacheck: ignore
  collectgarbage() -- a bound kernel keeps its stream's records
end

-- Of five nodes on two streams, one graph after the other changed in between.
local function graphs(count)
  local s = tp.Stream()
  local b = tp.zeros("i32", 32)
  local g = tp.capture({ params = { v = 1 } }, function(p)
    s:wait_stream(tp.current_stream())
    kernel:launch({ grid = 1, block = 32 }, b, p.v)
    tp.zeros("i32", 32, { stream = s }):close()
    tp.current_stream():wait_stream(s)
    tp.current_stream():on_complete(math.abs, -1)
  end)
  for n = 1, count do
    if n % 16 == 0 then g:launch { v = n // 16 % 2 + 1 }
    else g:launch() end
    if n % 512 == 0 then tp.current_device():synchronize() end
    if n % 10000 == 0 then
      g:update(function(p)
        kernel:launch({ grid = 1, block = 32 }, b, p.v)
      end)
    end
  end
  tp.current_device():synchronize()
  assert(b:read()[1] >= count, "a wrong result")
  g:close()
  b:close()
  s:close()
end

-- How many pile up before the collector comes is its own affair, and would show
-- as growth: here it comes every thousand, too.
local function dropped(count)
  for n = 1, count do
    local b = tp.buffer("f32", 256)
    b:fill(1)
    if n % 1000 == 0 then collectgarbage() end
  end
end

-- ---- all of it --------------------------------------------------------------

local began = os.time()
print(("%s, %s"):format(tp.current_device():name(), os.date "%Y-%m-%d"))
local many = times(10000)
alive_at_once(many)
local before = measure()
alive_at_once(many)
report("streams alive at once", many, before, measure(),
  os.difftime(os.time(), began))
phase("streams made and closed", times(1000000), 1, open_and_close)
phase("launches on 8 streams", times(1000000), 2, launches)
phase("launches of graphs", times(200000), 1, graphs)
-- The simulated device keeps what was freed last, up to 64 MiB, to tell of its
-- late use: that has to be full first.
phase("buffers dropped without close", times(100000), 10, dropped)
kernel:close()
module:close()
if grown then
  print(("grown by more than %d MiB, %d threads, %d files"):format(LIMITS.mib,
    LIMITS.threads, LIMITS.files))
  os.exit(1, true)
end
