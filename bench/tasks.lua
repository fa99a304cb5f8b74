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
local tp = require "tpstream"

local N = tonumber(arg and arg[1]) or 10000
local ROUNDS = 9

local build = (arg and arg[-1] or "build/tpstream"):match "^(.*)/" or "."
package.cpath = build .. "/?.so;" .. package.cpath
local have_raw, raw = pcall(require, "bench_raw")
local now = have_raw and raw.now or function() return os.clock() * 1e6 end

local streams = {}
for i = 1, 64 do streams[i] = tp.Stream() end
local event = streams[1]:record_event()
local function nothing() end
local function pause() coroutine.yield() end

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
    tp.spawn(tp.await, streams[i % 64 + 1])
  end) },
  { "spawn, await an event", each(function() tp.spawn(tp.await, event) end) },
  { "spawn, sleep 0", each(function() tp.spawn(tp.sleep, 0) end) },
  { "await a task that has ended", function()
    local ended = tp.spawn(nothing)
    tp.run(function() for _ = 1, N do tp.await(ended) end end)
  end },
}

for _, work in ipairs(WORKS) do
  local best = math.huge
  for _ = 1, ROUNDS do
    collectgarbage()
    local start = now()
    work[2]()
    best = math.min(best, now() - start)
  end
  print(("%-28s %6.2f us"):format(work[1], best / N))
end
