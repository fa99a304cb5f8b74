-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Who sleeps until when: a binary heap by time. Returns add(at, w), first() → the
-- earliest time, or nil, and take() → w of that time. An entry whose w.asleep is
-- false by then is passed over.
local times, waits, count = {}, {}, 0

local function add(at, w)
  local i = count + 1
  waits[i] = w
  times[i] = at
  count = i -- both have room now
  while i > 1 do
    local above = i // 2
    if times[above] <= at then break end
    times[i], waits[i] = times[above], waits[above]
    i = above
  end
  times[i], waits[i] = at, w
end

local function take()
  local w = waits[1]
  local at, moved = times[count], waits[count]
  times[count], waits[count] = nil, nil
  count = count - 1
  if count == 0 then return w end
  local i, j = 1, 2
  while j <= count do
    local least = times[j]
    if j < count and times[j + 1] < least then
      j = j + 1
      least = times[j]
    end
    if least >= at then break end
    times[i], waits[i] = least, waits[j]
    i, j = j, 2 * j
  end
  times[i], waits[i] = at, moved
  return w
end

local function first()
  while count > 0 and not waits[1].asleep do take() end
  return times[1]
end

return add, first, take
