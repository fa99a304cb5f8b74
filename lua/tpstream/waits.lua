-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What tasks wait for. This chunk gets the library, which it adds tp.await and its
-- like to, what only C can do (scheduler.lua), and of the scheduler: the metatable of
-- tasks, the results of most, check_task(name) → the task that runs, enqueue(task),
-- complain(what, object). It returns a table of what the scheduler needs.
--
-- Most wait for just one Stream or Event, or for their time: task.wait says so, and
-- nothing else is needed. Other waits are tables: their elements, numbered, are the
-- functions that end them (false once they have been called), `task` who waits,
-- `outside` how many elements are no tasks, `told` what is done when one has ended,
-- `tasks` those that are, by number, where there are several.
-- What is awaited has __await(x, done) in its metatable; see src/lua/state.h.
local tp, host, TASK, NONE, check_task, enqueue, complain = ...
local where, misuse, type_name = host.load "misuse" ()
local add_timer, next_time, take_timer, drop_timer = host.load "timers" ()
local watch, leave, check_open, now = host.watch, host.leave, host.open, host.now
local error, pcall, select, setmetatable, type, next = error, pcall, select,
  setmetatable, type, next
local getmetatable = debug.getmetatable
local pack, unpack = table.pack, table.unpack
local yield = coroutine.yield

local waits = {}
local outside = 0 -- elements of waits that are no tasks
-- By task, its innermost wait that is being begun; w.around: in whose __await that is.
local begun = {}
-- task.wait of those who wait for just one Stream or Event, for their time, and of
-- those whose device has failed: the error is in task.results then.
local DEVICE, TIME, LOST = {}, {}, {}

-- The wait is over, or its time: its task goes on if it sleeps already. One whose
-- task was cancelled may still be told, when memory was short then.
local function wake(w)
  if not w.asleep then return end
  w.asleep = false
  if w.task.wait ~= w then return end
  w.task.wait = false
  enqueue(w.task)
end

local function suspend(w)
  local task = w.task
  w.asleep = true
  task.wait, task.state = w, "waiting"
  yield()
end

-- Its turn comes again when the others have had theirs.
local function take_turns(task)
  enqueue(task)
  yield()
end

-- Tells those in the list that what they wait for is done, or the error; again, if it
-- fails for want of memory, those that are still there.
function waits.woken(list, ok, object)
  list.gone = false
  for i = 1, #list do
    local waiter = list[i]
    if type(waiter) == "function" then
      if ok then waiter(true) else waiter(false, object, true) end
    elseif waiter and waiter.wait == DEVICE then
      outside = outside - 1
      waiter.wait = not ok and LOST
      if not ok then waiter.results = object end
      enqueue(waiter)
    end
    list[i] = false
  end
end

local function give_up_one(stop)
  local ok, object = pcall(stop)
  if not ok then complain("giving up a wait", object) end
end

-- Ends what is left of it. All are stopped, whatever one of them raises. `failure`
-- is the error that ended it: if tasks among the rest fail later, that is second.
local function abandon(w, failure)
  local stops, tasks = w.stops, w.tasks
  w.asleep, w.stops, w.tasks = false, false, false
  outside = outside - w.outside
  w.outside = 0
  for i = 1, w.n do
    if failure and w[i] and tasks[i] then tasks[i].heard = failure end
    w[i] = false
  end
  if not stops then return end
  for i = 1, w.n do
    if stops[i] then give_up_one(stops[i]) end
  end
end

-- Begins to wait for x as element i. What it comes to is told as a table, as
-- table.pack makes it: arguments without end would not fit the stack.
local function begin(w, i, x)
  local inside = getmetatable(x) == TASK
  local counted, ended = false, false
  if inside and w.tasks then w.tasks[i] = x end
  local function done(ok, ...) -- again, if it fails for want of memory
    if not w[i] then return false end
    ended = true
    local r = inside and (...) or select("#", ...) > 0 and pack(...) or NONE
    w[i] = false
    if w.stops then w.stops[i] = nil end
    if counted then
      counted = false
      w.outside = w.outside - 1
      outside = outside - 1
    end
    w:told(i, ok, r)
    return true
  end
  w[i] = done
  local stop = getmetatable(x).__await(x, done)
  if not w[i] then
    -- Another has ended the wait meanwhile.
    if stop and not ended then give_up_one(stop) end
    return
  end
  if stop then
    w.stops = w.stops or {}
    w.stops[i] = stop
  end
  if not inside then
    counted = true
    w.outside = w.outside + 1
    outside = outside + 1
  end
end

local function settle(w, ok, r)
  w.over, w.results = ok and "done" or "failed", r
  wake(w)
end

local function told_one(w, _, ok, r)
  if not w.over then settle(w, ok, r) end
end

local function told_any(w, i, ok, r)
  if w.over then return end
  w.which = i
  settle(w, ok, r)
  abandon(w, not ok and r)
end

local function told_all(w, i, ok, r)
  if w.over then return end
  if not ok then
    settle(w, false, r)
    return abandon(w, r)
  end
  w.values[i] = r[1]
  w.left = w.left - 1
  if w.left == 0 then settle(w, true, w.values) end
end

-- An error that came without a place of its own (from a fault, from task:cancel)
-- gets the caller's. Others may be told the same one.
local function raise_here(object)
  if type(object) ~= "table" then error(where() .. object, 0) end
  host.told() -- the fault
  local own = setmetatable({}, getmetatable(object))
  for key, value in next, object do own[key] = value end
  own.position = where():gsub(": $", "")
  error(own, 0)
end

-- What the wait has come to.
local function result(w)
  if not w.over then suspend(w) end
  local r = w.results
  if w.over == "done" then
    if w.which then return w.which, unpack(r, 1, r.n) end
    return unpack(r, 1, r.n)
  end
  if r[2] then raise_here(r[1]) end
  w.task.cause = r -- for the traceback
  error(r[1], 0)
end

local function check_awaitable(task, name, i, x)
  local meta = getmetatable(x)
  if type(meta) ~= "table" or not meta.__await then
    misuse("bad argument #%d to '%s' (awaitable expected, got %s)", i, name,
      type_name(x))
  elseif x == task then
    misuse("tp.%s: the task waits for itself", name)
  end
end

local function begin_all(w, ...)
  for i = 1, w.n do
    local x = select(i, ...)
    check_awaitable(w.task, w.name, i, x)
    check_open(x) -- also where another has ended the wait before its turn
  end
  local task = w.task
  w.around, begun[task] = begun[task], w
  for i = 1, w.n do
    if w.over then break end
    local ok, object = pcall(begin, w, i, (select(i, ...)))
    if not ok then
      begun[task] = w.around
      abandon(w)
      error(object, 0)
    end
  end
  begun[task] = w.around
end

-- Sleeps until woken; most waits are for a Stream or Event, and need no table.
local function watched(task, list)
  outside = outside + 1
  task.wait, task.state, task.list = DEVICE, "waiting", list
  yield()
  task.list = false
  if task.wait == LOST then
    local object = task.results
    task.wait, task.results = false, NONE
    raise_here(object)
  end
end

function tp.await(...)
  local task = check_task "await"
  local x = ...
  local over, list = watch(x, task)
  if over then return take_turns(task) end
  if over == false then return watched(task, list) end
  check_awaitable(task, "await", 1, x)
  local w = {
    false, n = 1, outside = 0, task = task, told = told_one, on = x,
    asleep = false, over = false, results = NONE,
  }
  begin(w, 1, x)
  return result(w)
end

function tp.await_any(...)
  local w = {
    n = select("#", ...), outside = 0, task = check_task "await_any",
    told = told_any, name = "await_any", results = NONE, tasks = {},
  }
  if w.n == 0 then
    misuse "bad argument #1 to 'await_any' (awaitable expected, got no value)"
  end
  begin_all(w, ...)
  return result(w)
end

function tp.await_all(...)
  local n = select("#", ...)
  local w = {
    n = n, outside = 0, task = check_task "await_all", told = told_all,
    name = "await_all", left = n, values = { n = n }, results = NONE, tasks = {},
  }
  if n == 0 then return end
  begin_all(w, ...)
  return result(w)
end

-- ---- time ------------------------------------------------------------------

function waits.wake_sleepers()
  local at = next_time()
  if not at then return end
  local time = now()
  while at and at <= time do
    local task = take_timer()
    task.wait = false
    enqueue(task)
    at = next_time()
  end
end

function tp.sleep(ms)
  local task = check_task "sleep"
  if type(ms) ~= "number" then
    misuse("bad argument #1 to 'sleep' (number expected, got %s)",
      type_name(ms))
  elseif not (ms >= 0) then
    misuse("bad argument #1 to 'sleep' (%s ms: at least 0 expected)", ms)
  end
  if ms == 0 then return take_turns(task) end
  add_timer(now() + ms, task)
  task.wait, task.state = TIME, "waiting"
  yield()
end

-- ---- for the scheduler -----------------------------------------------------

waits.next_time = next_time

-- True where nothing but tasks is waited for.
function waits.only_tasks() return outside == 0 end

-- The task is cancelled: also where an __await of its own waited for something.
function waits.give_up(task)
  local w, inner = task.wait, begun[task]
  task.wait, begun[task] = false, nil
  if w == DEVICE then
    outside = outside - 1
    leave(task.list, task)
    task.list = false
  elseif w == TIME then drop_timer()
  elseif w and w ~= LOST then abandon(w) end
  while inner do
    abandon(inner)
    inner = inner.around
  end
end

return waits
