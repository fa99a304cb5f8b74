-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Tasks: coroutines that wait for streams, events and each other while the
-- others run. This chunk gets the library, which it adds its functions to, and
-- what only C can do: now() in ms, due() runs callbacks and tells those whose
-- wait is over, sleep([ms]), fd(), arm([ms]), load(name) → a file beside this one,
-- watch(x, task) → for a Stream or Event: true if it is done, else false, and the
-- task will be in a list that woken gets.
--
-- A wait is a table: its elements, numbered, are the functions that end them
-- (false once they have been called), `task` who waits, `outside` how many
-- elements are no tasks, `told` what is done when one has ended. What is awaited
-- has __await(x, done) in its metatable; see src/lua/state.h.
local tp, host = ...
local where, misuse, type_name, check_callable = host.load "misuse" ()
local add_timer, next_time, take_timer = host.load "timers" ()
local debug, error, pcall, select, setmetatable = debug, error, pcall, select,
  setmetatable
local getmetatable = debug.getmetatable
local pack, unpack, remove, insert = table.pack, table.unpack, table.remove,
  table.insert
local yield, running, status, close, isyieldable = coroutine.yield,
  coroutine.running, coroutine.status, coroutine.close, coroutine.isyieldable
local scope = host.scope
local inherit, disinherit, resume, within, prepare = scope.inherit,
  scope.disinherit, scope.resume, scope.within, scope.prepare

local Task = {} -- methods
local TASK = { __name = "tpstream.Task", __index = Task }

local current -- the task that runs
local stepping = false -- in tp.run or tp.poll
local foreign = false -- tp.wakeup_fd has been called
local live, live_count = {}, 0 -- the set of tasks that have not ended
local first, last -- of those that can go on, a list by task.next
local outside = 0 -- elements of waits that are no tasks
local failed, failure = false, nil -- the first error that nobody waited for
local told -- {error, traceback}: the last of those, ever
local ids = 0
local NONE = { n = 0 } -- results of most
-- task.wait of those who wait for just one Stream or Event, for their time, and of
-- those whose device has failed: the error is in task.results then.
local DEVICE, TIME, LOST = {}, {}, {}
local CANCELLED = { n = 2, "the task was cancelled", true }
local NO_MEMORY = { n = 1, "not enough memory" }

-- ---- errors that nobody waits for ------------------------------------------

-- After a fault every task has the same to say.
local function is_repeated(object)
  if rawequal(object, failure) then return true end
  return type(object) == "table" and type(failure) == "table"
    and getmetatable(object) == getmetatable(failure)
    and rawequal(object.message, failure.message)
end

-- One comes out of tp.run or tp.poll, others are warnings. False: it is none or a
-- warning. Allocates nothing for the first.
local function complain(what, object)
  if not failed then
    failed, failure = true, object
    if foreign and not stepping then host.arm(0) end
    return true
  elseif not is_repeated(object) then
    local fine, message = pcall(tostring, object)
    warn("tpstream: error in ", what, ": ", fine and message or type(object))
  end
  return false
end

local function surface()
  if not failed then return end
  local object = failure
  failed, failure = false, nil
  error(object, 0)
end

-- The running task, which must be able to yield.
local function check_task(name)
  local co, main = running()
  if current and current.co == co then
    if isyieldable() then return current end
    misuse("tp.%s can't wait inside a callback or another call of C's", name)
  elseif current and not main then
    misuse("tp.%s in a coroutine that is not the task's own", name)
  end
  misuse("tp.%s outside a task (tp.run and tp.spawn make tasks)", name)
end

-- ---- waits -----------------------------------------------------------------

-- Allocates nothing, as the end of every wait: no task is lost for want of memory.
local function enqueue(task)
  task.state = "ready"
  if last then last.next = task else first = task end
  last = task
  if foreign and not stepping then host.arm(0) end
end

-- The wait is over, or its time: its task goes on if it sleeps already.
local function wake(w)
  if not w.asleep then return end
  w.asleep = false
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
local function woken(list, ok, object)
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

-- Ends what is left of it. All are stopped, whatever one of them raises.
local function abandon(w)
  local stops = w.stops
  w.asleep, w.stops = false, false
  outside = outside - w.outside
  w.outside = 0
  for i = 1, w.n do w[i] = false end
  if not stops then return end
  for i = 1, w.n do
    if stops[i] then
      local ok, object = pcall(stops[i])
      if not ok then complain("giving up a wait", object) end
    end
  end
end

-- Begins to wait for x as element i. What it comes to is told as a table, as
-- table.pack makes it: arguments without end would not fit the stack.
local function begin(w, i, x)
  local inside = getmetatable(x) == TASK
  local counted = false
  local function done(ok, ...) -- again, if it fails for want of memory
    if not w[i] then return false end
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
  if not w[i] then return end
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
  abandon(w)
end

local function told_all(w, i, ok, r)
  if w.over then return end
  if not ok then
    settle(w, false, r)
    return abandon(w)
  end
  w.values[i] = r[1]
  w.left = w.left - 1
  if w.left == 0 then settle(w, true, w.values) end
end

-- An error that came without a place of its own (from a fault, from task:cancel)
-- gets the caller's. Others may be told the same one.
local function raise_here(object)
  if type(object) ~= "table" then error(where() .. object, 0) end
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
  for i = 1, w.n do check_awaitable(w.task, w.name, i, (select(i, ...))) end
  for i = 1, w.n do
    if w.over then return end
    local ok, object = pcall(begin, w, i, (select(i, ...)))
    if not ok then
      abandon(w)
      error(object, 0)
    end
  end
end

-- Sleeps until woken; most waits are for a Stream or Event, and need no table.
local function watched(task)
  outside = outside + 1
  task.wait, task.state = DEVICE, "waiting"
  yield()
  if task.wait == LOST then
    local object = task.results
    task.wait, task.results = false, NONE
    raise_here(object)
  end
end

function tp.await(...)
  local task = check_task "await"
  local x = ...
  local over = host.watch(x, task)
  if over then return take_turns(task) end
  if over == false then return watched(task) end
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
    told = told_any, name = "await_any", results = NONE,
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
    name = "await_all", left = n, values = { n = n }, results = NONE,
  }
  if n == 0 then return end
  begin_all(w, ...)
  return result(w)
end

-- ---- time ------------------------------------------------------------------

local function wake_sleepers()
  local at = next_time()
  if not at then return end
  local now = host.now()
  while at and at <= now do
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
  add_timer(host.now() + ms, task)
  task.wait, task.state = TIME, "waiting"
  yield()
end

-- ---- tasks -----------------------------------------------------------------

local function packed(...)
  if select("#", ...) == 0 then return NONE end
  return pack(...)
end

-- Its results are packed here, where a failure is the task's own.
local function body(fn, ...)
  return packed(fn(...))
end

local function spawn(fn, ...)
  ids = ids + 1
  local task = setmetatable({
    id = ids, co = prepare(body, fn, ...), state = "new", results = NONE,
    wait = false, waiters = false, scope = false, next = false,
  }, TASK)
  live[task] = true
  task.scope = inherit() -- the last that can fail
  live_count = live_count + 1
  enqueue(task)
  return task
end

function tp.spawn(...)
  check_callable((...), "spawn")
  return spawn(...)
end

-- Tells those who wait; false: nobody does.
local function tell_waiters(task, ok, r)
  local waiters, heard = task.waiters, false
  if not waiters then return false end
  task.waiters = false
  for i = 1, #waiters do heard = waiters[i](ok, r) or heard end
  return heard
end

-- Comes first at a task's end, and can't fail.
local function retire(task, state)
  task.state = state
  live[task] = nil
  live_count = live_count - 1
end

-- Closes what it has left open, as it would by itself.
local function close_rest(task)
  local ok, object = within(task.scope, close, task.co)
  disinherit(task.scope)
  return ok, object
end

local function finish(task, results)
  retire(task, "done")
  disinherit(task.scope)
  task.results = results
  tell_waiters(task, true, results)
end

-- Without the scheduler's own part at the end.
local function traceback_of(co)
  local text = debug.traceback(co)
  text = text:gsub("\n\ttpstream/scheduler%.lua:[^\n]*$", "")
  return (text:gsub("\n\t%(%.%.%.tail calls%.%.%.%)$", ""))
end

local function fail(task, object)
  retire(task, "failed")
  task.results = NO_MEMORY
  local traced, text = pcall(traceback_of, task.co)
  local ok, other = close_rest(task)
  if not ok then object = other end
  task.trace = traced and text or nil
  task.results = { n = 1, object }
  if tell_waiters(task, false, task.results) then return end
  if complain("a task", object) then
    told = { object, task.trace or "traceback: lost for want of memory" }
  end
end

local function after(task, ended, what)
  current = nil
  if ended then return finish(task, what) end
  if ended == false then return fail(task, what) end
  if task.state == "running" then enqueue(task) end -- it yielded by itself
end

-- Callbacks, then every task that can go on, once.
local function step()
  local count = host.due()
  wake_sleepers()
  local stop, task = last, nil
  while first and task ~= stop do
    task = first
    first, task.next = task.next or nil, false
    if not first then last = nil end
    if task.state == "ready" then
      count = count + 1
      current, task.state = task, "running"
      after(task, resume(task.co, task.scope))
    end
  end
  surface()
  return count
end

-- ---- driving ---------------------------------------------------------------

local function rearm()
  if first then return host.arm(0) end
  local at = next_time()
  host.arm(at and at - host.now())
end

local GUARD = setmetatable({}, {
  __close = function()
    stepping, current = false, nil
    if foreign then rearm() end
  end,
})

function tp.poll()
  if stepping or current then return host.due() end
  stepping = true
  local _ <close> = GUARD
  return step()
end

function tp.wakeup_fd()
  local fd = host.fd()
  foreign = true
  if not stepping then rearm() end
  return fd
end

local function waits_at(task)
  local level = 0
  while true do
    local info = debug.getinfo(task.co, level, "Sl")
    if not info then return "" end
    if info.currentline > 0 and not info.source:find "^=tpstream/" then
      return (" at %s:%d"):format(info.short_src, info.currentline)
    end
    level = level + 1
  end
end

local function deadlock()
  local list = {}
  for task in next, live do list[#list + 1] = task end
  table.sort(list, function(a, b) return a.id < b.id end)
  for i, task in ipairs(list) do
    local on = task.wait and task.wait.on
    list[i] = ("task %d waits%s%s"):format(task.id, waits_at(task),
      on and " for task " .. on.id or "")
  end
  local n = #list
  if n > 5 then list = { unpack(list, 1, 5) } end
  misuse("deadlock: nothing is due, and %d task%s for tasks only: %s%s", n,
    n == 1 and " waits" or "s wait", table.concat(list, "; "),
    n > 5 and ("; and %d more"):format(n - 5) or "")
end

-- Until something is due.
local function idle()
  local at = next_time()
  if not at and outside == 0 then deadlock() end
  host.sleep(at and at - host.now())
end

function tp.run(fn, ...)
  if current then misuse "tp.run inside a task (tp.await waits for another)" end
  if stepping then misuse "tp.run inside a callback" end
  if fn ~= nil then check_callable(fn, "run") end
  stepping = true
  local _ <close> = GUARD
  local main = fn ~= nil and spawn(fn, ...)
  while live_count > 0 do
    step()
    if live_count > 0 and not first then idle() end
  end
  surface()
  if main then return unpack(main.results, 1, main.results.n) end
end

-- ---- methods ---------------------------------------------------------------

local function check_self(task, name)
  if getmetatable(task) ~= TASK then
    misuse("calling '%s' on bad self (tpstream.Task expected, got %s)", name,
      type_name(task))
  end
end

local ENDED = { done = true, failed = true, cancelled = true }

function Task:cancel()
  check_self(self, "cancel")
  if ENDED[self.state] then return false end
  if status(self.co) ~= "suspended" then
    misuse "a task that is running can't be cancelled"
  end
  local w = self.wait
  self.wait = false
  retire(self, "cancelled")
  self.results = CANCELLED
  if w == DEVICE then outside = outside - 1
  elseif w and w ~= LOST and w ~= TIME then abandon(w) end
  tell_waiters(self, false, CANCELLED)
  local ok, object = close_rest(self)
  if not ok then error(object, 0) end
  if not stepping then surface() end
  return true
end

function Task:status()
  check_self(self, "status")
  return self.state
end

function Task:traceback()
  check_self(self, "traceback")
  if ENDED[self.state] then return self.trace end
  return traceback_of(self.co)
end

function TASK.__await(task, done)
  if ENDED[task.state] then
    done(task.state == "done", task.results)
    return nil
  end
  local waiters = task.waiters or {}
  task.waiters = waiters
  insert(waiters, done)
  return function()
    if task.waiters ~= waiters then return end -- they are being told
    for i = #waiters, 1, -1 do
      if waiters[i] == done then remove(waiters, i) end
    end
  end
end

function TASK.__close(task)
  if not ENDED[task.state] then Task.cancel(task) end
end

function TASK.__tostring(task)
  return ("tpstream.Task (%d, %s)"):format(task.id, task.state)
end

-- A message handler for xpcall: debug.traceback with the task's in front.
function tp.traceback(message)
  local text = message
  if type(message) ~= "string" then
    local meta = getmetatable(message)
    if type(meta) ~= "table" or not meta.__tostring then return message end
    text = tostring(message)
  end
  if told and rawequal(told[1], message) then
    text = ("%s\ntask %s"):format(text, told[2])
  end
  return debug.traceback(text, 2)
end

-- For the end of the script: how many tasks have not ended.
local function count_live() return live_count end

local function trace_of(message)
  return told and rawequal(told[1], message) and told[2] or nil
end

return count_live, trace_of, woken
