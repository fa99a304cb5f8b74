-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What recording a timeline costs the host, in microseconds a call: medians of nine,
-- without one and with one, taking turns. The stream is held up meanwhile, so that
-- nothing runs beside; each run is short enough that the device's queue is not full: a
-- GPU's stream takes about a thousand commands, and a timed call is three.
--
--   build/tpstream bench/timeline.lua            the device in use
local tp = require "tpstream"
local gate = require "spec.support.gate"

local RUNS, CALLS = 9, 200

local empty = gate.kernel "empty":bind(gate.one)
local held, other, free = tp.Stream(), tp.Stream(), tp.Stream()
local event = tp.Event()
local x, h = tp.zeros("u8", 256), tp.pinned("u8", 256)
local function nothing() end

local WORKS = {
  { "launch", function() for _ = 1, CALLS do empty() end end },
  { "copy of 256 bytes", function() for _ = 1, CALLS do x:copy_to(h) end end },
  { "record + wait", function()
    for _ = 1, CALLS do
      event:record(held)
      other:wait_event(event)
    end
  end },
  { "range", function()
    local range = tp.range
    for _ = 1, CALLS do range("x", nothing) end
  end },
}

local function time(fn)
  local g <close> = gate.new()
  g:hold(held)
  return tp.benchmark(function() tp.with_stream(held, fn) end,
    { warmup = 0, count = 1, stream = free }).cpu.median / CALLS * 1e3
end

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

print(("%s, %d runs of %d calls each"):format(tp.current_device():name(), RUNS,
  CALLS))
print(("%-20s %9s %9s"):format("µs a call", "off", "on"))
for _, work in ipairs(WORKS) do
  local off, on = {}, {}
  time(work[2])
  for i = 1, RUNS do
    off[i] = time(work[2])
    tp.timeline.start { limit = 100000 }
    on[i] = time(work[2])
    tp.timeline.stop()
  end
  print(("%-20s %9.3f %9.3f"):format(work[1], median(off), median(on)))
end

local count = 100000
tp.timeline.start()
for i = 1, count do
  x:fill(i % 256)
  if i % 1000 == 0 then tp.current_stream():synchronize() end
end
local before = os.clock()
local timeline = tp.timeline.stop()
local table_made = os.clock()
local path = os.tmpname()
for _, kind in ipairs { "html", "json" } do
  local began = os.clock()
  timeline:write(path .. "." .. kind)
  local file <close> = assert(io.open(path .. "." .. kind))
  print(("%d operations, .%s: %6.2f s, %.1f MB"):format(count, kind,
    os.clock() - began, file:seek "end" / 1e6))
  os.remove(path .. "." .. kind)
end
os.remove(path)
print(("%d operations, the table: %6.2f s"):format(count, table_made - before))
