-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Who sleeps until when: a binary heap by time. Returns add(at, task), first() → the
-- earliest time, or nil, and take() → the task of that time. One that was cancelled
-- meanwhile is passed over.
local times, tasks, count = {}, {}, 0

local function add(at, task)
  local i = count + 1
  tasks[i] = task
  times[i] = at
  count = i -- both have room now
  while i > 1 do
    local above = i // 2
    if times[above] <= at then break end
    times[i], tasks[i] = times[above], tasks[above]
    i = above
  end
  times[i], tasks[i] = at, task
end

local function take()
  local task = tasks[1]
  local at, moved = times[count], tasks[count]
  times[count], tasks[count] = nil, nil
  count = count - 1
  if count == 0 then return task end
  local i, j = 1, 2
  while j <= count do
    local least = times[j]
    if j < count and times[j + 1] < least then
      j = j + 1
      least = times[j]
    end
    if least >= at then break end
    times[i], tasks[i] = least, tasks[j]
    i, j = j, 2 * j
  end
  times[i], tasks[i] = at, moved
  return task
end

local function first()
  while count > 0 and tasks[1].state ~= "waiting" do take() end
  return times[1]
end

return add, first, take
