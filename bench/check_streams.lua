-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the order check takes where there are thousands of streams that wait for one
-- another: memory of the process, processor time.
--
--   build/tpstream --device sim bench/check_streams.lua
--   build/tpstream --device sim --check=order bench/check_streams.lua
local tp = require "tpstream"

local COUNT = 5000

local function memory()
  for line in io.lines "/proc/self/status" do
    local kilobytes = line:match "^VmRSS:%s+(%d+)"
    if kilobytes then return tonumber(kilobytes) / 1024 end
  end
end

-- Each takes streams, a buffer of each, and another stream.
local WORKS = {
  plain = function(s, x)
    for i = 1, COUNT do tp.with_stream(s[i], x[i].fill, x[i], 1) end
  end,
  chain = function(s, x)
    for i = 2, COUNT do
      s[i]:wait_stream(s[i - 1])
      tp.with_stream(s[i], x[i].fill, x[i], 1)
    end
  end,
  -- One is waited for by all, and waits for all.
  fork = function(s, x, hub)
    for _ = 1, 3 do
      for i = 1, COUNT do
        s[i]:wait_stream(hub)
        tp.with_stream(s[i], x[i].fill, x[i], 1)
      end
      for i = 1, COUNT do hub:wait_stream(s[i]) end
    end
  end,
  legacy = function(s, x)
    for k = 1, 3 do
      for i = 1, COUNT do tp.with_stream(s[i], x[i].fill, x[i], k) end
      tp.with_stream(tp.default_stream(), x[1].fill, x[1], 1)
    end
  end,
}

local function measure(name)
  local s, x = {}, {}
  for i = 1, COUNT do
    s[i] = tp.Stream { blocking = name == "legacy" }
    x[i] = tp.zeros("i32", 4, { stream = s[i] })
  end
  local hub <close> = tp.Stream()
  tp.device():synchronize()
  local before, began = memory(), os.clock()
  WORKS[name](s, x, hub)
  tp.device():synchronize()
  print(("%-8s %6.1f MB before, %6.1f MB after, %6.2f s"):format(name, before, memory(),
    os.clock() - began))
end

measure(arg[1] or "fork")
