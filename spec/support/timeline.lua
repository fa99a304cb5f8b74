-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Recorded timelines, for specs of them.
local tp = require "tpstream"

local timeline = {}

-- A GPU's clock is read by events, to half a microsecond.
timeline.SLACK = tp.current_device():kind() == "cuda" and 0.002 or 0
local SLACK = timeline.SLACK

-- Records what fn queues.
function timeline.record(fn, opts)
  tp.timeline.start(opts)
  local ok, e = xpcall(fn, debug.traceback)
  local t = tp.timeline.stop()
  assert(ok, e)
  return t
end

-- Those of a kind, or several, in order.
function timeline.of(t, ...)
  local wanted, list = {}, {}
  for _, kind in ipairs { ... } do wanted[kind] = true end
  for _, r in ipairs(t) do
    if wanted[r.kind] then list[#list + 1] = r end
  end
  return list
end

timeline.TIMED = { "kernel", "copy", "fill", "record", "wait", "callback", "graph" }

-- What holds of every timeline.
function timeline.check(t)
  local ends = {}
  for i, r in ipairs(t) do
    local text = ("record %d, %s"):format(i, r.kind)
    assert(r.queued >= 0 and r.queued <= t.duration, text)
    if r.kind == "alloc" or r.kind == "free" then
      assert(r.started == nil, text)
    elseif not r.failed then
      assert(r.queued <= r.started, text)
      assert(r.started <= r.finished, text)
      assert(r.finished <= t.duration + SLACK, text)
    end
    if r.started and not r.graph then
      local stream = r.device .. " " .. r.stream
      assert(r.started >= (ends[stream] or 0) - SLACK, text)
      ends[stream] = r.finished
    end
    if r.waits_for then
      local marked = t[r.waits_for]
      assert(marked.kind == "record", text)
      assert(marked.event == r.event, text)
      assert(r.finished >= marked.finished - SLACK, text)
    end
  end
  return t
end

return timeline
