-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Who sleeps until when: a binary heap by time. Returns add(at, task), first() → the
-- earliest time, or nil, take() → the task of that time, and drop(), which is told
-- when one that sleeps has been cancelled: it is passed over, and when most are such
-- they are all taken out, so that limits of time that were not reached cost nothing.
local times, tasks, count = {}, {}, 0
local dead = 0 -- how many were cancelled and are still there

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

-- The place i is free: puts that task there, or further down.
local function sink(i, at, task)
  local j = 2 * i
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
  times[i], tasks[i] = at, task
end

local function take()
  local task = tasks[1]
  local at, moved = times[count], tasks[count]
  times[count], tasks[count] = nil, nil
  count = count - 1
  if count > 0 then sink(1, at, moved) end
  return task
end

local function first()
  while count > 0 and tasks[1].state ~= "waiting" do
    take()
    dead = dead - 1
  end
  return times[1]
end

local function drop()
  dead = dead + 1
  if dead < 100 or dead < count // 2 then return end
  local kept = 0
  for i = 1, count do
    local at, task = times[i], tasks[i]
    times[i], tasks[i] = nil, nil
    if task.state == "waiting" then
      kept = kept + 1
      times[kept], tasks[kept] = at, task
    end
  end
  count, dead = kept, 0
  for i = count // 2, 1, -1 do sink(i, times[i], tasks[i]) end
end

return add, first, take, drop
