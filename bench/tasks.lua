-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What a task costs: ten thousand at once, microseconds for each, the best of nine.
--
--   build/tpstream bench/tasks.lua [tasks]
--
-- "spawn" makes and ends tasks that do nothing; the others wait in between, and
-- the difference is what the wait costs. Beside them bare coroutines, as many at
-- once.
--
-- "streams with work": 64 streams are held up until every task waits; what it takes
-- to hold them up, and to end that, is not counted. "launch": a kernel of each task's
-- own, on one of the streams, in front of its wait.
local tp = require "tpstream"

local N = tonumber(arg and arg[1]) or 10000
local ROUNDS = 9

local build = (arg and arg[-1] or "build/tpstream"):match "^(.*)/" or "."
package.cpath = build .. "/?.so;" .. package.cpath
local have_raw, raw = pcall(require, "bench_raw")
local now = have_raw and raw.now or function() return os.clock() * 1e6 end

local STREAMS = 64
local streams = {}
for i = 1, STREAMS do streams[i] = tp.Stream() end
local event = streams[1]:record_event()
local function nothing() end
local function pause() coroutine.yield() end

-- ---- work that is there -----------------------------------------------------------

local PTX = [[
.version 7.0
.target sm_70
.address_size 64
.visible .entry hold(.param .u64 flag) {
  .reg .pred %p;
  .reg .b32 %r;
  .reg .b64 %rd;
  ld.param.u64 %rd, [flag];
again:
  nanosleep.u32 2000;
  ld.volatile.global.u32 %r, [%rd];
  setp.eq.u32 %p, %r, 0;
  @%p bra again;
  ret;
}
.visible .entry empty() { ret; }
]]
local module = tp.load(PTX)
local empty = module:kernel "empty":bind { grid = 1, block = 1 }
local flag = tp.pinned("u32", 1)
local held -- microseconds that are not counted

local function hold()
  local start = now()
  flag[1] = 0
  local kernel = module:kernel "hold"
  for i = 1, STREAMS do
    kernel:launch({ grid = 1, block = 1, stream = streams[i] }, flag)
  end
  held = now() - start
end

-- Spawns N times make(i), lets all of them begin, and the streams go on.
local function behind(make)
  return function()
    hold()
    for i = 1, N do make(i) end
    tp.poll()
    local start = now()
    flag[1] = 1
    for i = 1, STREAMS do streams[i]:synchronize() end
    held = held + now() - start
    tp.run()
  end
end

local function launch(s) tp.with_stream(s, empty) end
local function launch_await(s)
  tp.with_stream(s, empty)
  tp.await(s)
end

local function each(make)
  return function()
    for i = 1, N do make(i) end
    tp.run()
  end
end

local WORKS = {
  { "bare coroutines", function()
    local all = {}
    for i = 1, N do
      all[i] = coroutine.create(pause)
      coroutine.resume(all[i])
    end
    for i = 1, N do coroutine.resume(all[i]) end
  end },
  { "spawn", each(function() tp.spawn(nothing) end) },
  { "spawn, yield", each(function() tp.spawn(pause) end) },
  { "spawn, await a stream", each(function(i)
    tp.spawn(tp.await, streams[i % STREAMS + 1])
  end) },
  { "spawn, await an event", each(function() tp.spawn(tp.await, event) end) },
  { "spawn, sleep 0", each(function() tp.spawn(tp.sleep, 0) end) },
  { "spawn, await streams with work", behind(function(i)
    tp.spawn(tp.await, streams[i % STREAMS + 1])
  end) },
  { "spawn, launch", each(function(i)
    tp.spawn(launch, streams[i % STREAMS + 1])
  end) },
  { "spawn, launch, await", each(function(i)
    tp.spawn(launch_await, streams[i % STREAMS + 1])
  end) },
  { "await a task that has ended", function()
    local ended = tp.spawn(nothing)
    tp.run(function() for _ = 1, N do tp.await(ended) end end)
  end },
}

for _, work in ipairs(WORKS) do
  local best = math.huge
  for _ = 1, ROUNDS do
    collectgarbage()
    held = 0
    local start = now()
    work[2]()
    best = math.min(best, now() - start - held)
  end
  print(("%-32s %6.2f us"):format(work[1], best / N))
end
