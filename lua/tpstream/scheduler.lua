-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Tasks: coroutines that wait for streams, events and each other while the
-- others run. This chunk gets the library, which it adds its functions to, and
-- what only C can do: now() in ms, due() runs callbacks and tells those whose
-- wait is over, calling() → whether a callback runs, told(): a fault is being raised,
-- sleep([ms]), fd(), arm([ms]), load(name) → a file beside this one, open(x) raises
-- for a Stream or Event that is closed, watch(x, task) → for an open one: true if it
-- is done, else false and a list with the task, which woken gets, leave(list, task): it
-- waits no longer. What tasks wait for is in waits.lua.
local tp, host = ...
local _, misuse, type_name, check_callable = host.load "misuse" ()
local debug, error, pcall, setmetatable = debug, error, pcall, setmetatable
local getmetatable = debug.getmetatable
local unpack = table.unpack
local running, status, close, isyieldable =
  coroutine.running, coroutine.status, coroutine.close, coroutine.isyieldable
local scope = host.scope
local inherit, disinherit, resume, within, prepare = scope.inherit,
  scope.disinherit, scope.resume, scope.within, scope.prepare

local Task = {} -- methods
local TASK = { __name = "tpstream.Task", __index = Task }

local current -- the task that runs
local closing -- the coroutine of one that failed or was cancelled, in its __close
local stepping = false -- in tp.run or tp.poll
local foreign = false -- tp.wakeup_fd has been called
local live, live_count = {}, 0 -- the set of tasks that have not ended
local first, last -- of those that can go on, a list by task.next
local failed, failure = false, nil -- the first error that nobody waited for
local told -- {error, traceback}: the last of those, ever
local ids = 0
local NONE = { n = 0 } -- results of most
local MOST_TRACES = 10 -- of tasks that an error went through, besides the last
local CANCELLED = { n = 2, "the task was cancelled", true }
local NO_MEMORY = { n = 1, "not enough memory" }

-- ---- errors that nobody waits for ------------------------------------------

-- After a fault every task has the same to say.
local function is_same(object, other)
  if rawequal(object, other) then return true end
  return type(object) == "table" and type(other) == "table"
    and getmetatable(object) == getmetatable(other)
    and rawequal(object.message, other.message)
end

-- Of an error that came after another.
local function warn_of(what, object, other)
  if is_same(object, other) then return end
  local fine, message = pcall(tostring, object)
  warn("tpstream: error in ", what, ": ", fine and message or type(object))
end

-- One comes out of tp.run or tp.poll, others are warnings. False: it is none or a
-- warning. Allocates nothing for the first.
local function complain(what, object)
  if not failed then
    failed, failure = true, object
    if foreign and not stepping then host.arm(0) end
    return true
  end
  warn_of(what, object, failure)
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
  if closing and closing == co then
    misuse("tp.%s can't wait in the __close of a task that failed or was cancelled",
      name)
  elseif current and current.co == co then
    if isyieldable() then return current end
    misuse("tp.%s can't wait inside a callback or another call of C's", name)
  elseif current and not main then
    misuse("tp.%s in a coroutine that is not the task's own", name)
  end
  misuse("tp.%s outside a task (tp.run and tp.spawn make tasks)", name)
end

-- Allocates nothing, as the end of every wait: no task is lost for want of memory.
local function enqueue(task)
  task.state = "ready"
  if last then last.next = task else first = task end
  last = task
  if foreign and not stepping then host.arm(0) end
end

local waits = host.load "waits" (tp, host, TASK, NONE, check_task, enqueue, complain)
local next_time, wake_sleepers = waits.next_time, waits.wake_sleepers

-- ---- tasks -----------------------------------------------------------------

local function spawn(fn, ...)
  ids = ids + 1
  local task = setmetatable({
    id = ids, co = prepare(fn, ...), state = "new", results = NONE,
    wait = false, waiters = false, scope = false, next = false, heard = false,
    list = false,
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
  for i = 1, waiters.n do
    local done = waiters[i]
    if done then heard = done(ok, r) or heard end
  end
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
  local around = closing
  closing = task.co
  local ok, object = within(task.scope, close, task.co)
  closing = around
  disinherit(task.scope)
  return ok, object
end

local function finish(task, results)
  retire(task, "done")
  disinherit(task.scope)
  task.results = results or NONE
  tell_waiters(task, true, task.results)
end

-- Without what calls the task's function.
local function traceback_of(co)
  return (debug.traceback(co):gsub("\n\t%[C%]: in %?$", ""))
end

-- Of a task that fails: where the error began comes first, if it is another task's.
-- Also what those who await it put before their own, of the first few tasks that the
-- error went through, and through how many it went.
local function origin(task, object)
  local text, cause = traceback_of(task.co), task.cause
  if not cause or not cause.trace or not rawequal(cause[1], object) then
    return text, text, 0
  end
  local passed = cause.passed + 1
  local skipped = passed - MOST_TRACES - 1
  text = ("%s%s\nawaited by task %d, %s"):format(cause.first,
    skipped > 0 and ("\n...\t(skipping %d tasks)"):format(skipped) or "", task.id, text)
  return text, passed <= MOST_TRACES and text or cause.first, passed
end

local function fail(task, object)
  retire(task, "failed")
  task.results = NO_MEMORY
  local traced, text, first_ones, passed = pcall(origin, task, object)
  local ok, other = close_rest(task)
  if not ok then object = other end
  task.trace = traced and text or nil
  task.results = {
    n = 1, object, trace = task.trace, first = first_ones, passed = passed,
  }
  if tell_waiters(task, false, task.results) then return end
  if task.heard then
    warn_of("a task", object, task.heard[1])
  elseif complain("a task", object) then
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

local function stop_stepping()
  stepping, current = false, nil
  if foreign then rearm() end
end

local GUARD = setmetatable({}, { __close = stop_stepping })

local function stopped(ok, ...)
  stop_stepping()
  if not ok then error((...), 0) end
  return ...
end

-- Calls fn(...) between the start and the end of stepping. On the main coroutine an
-- error keeps its traceback; another one that ends by an error closes nothing.
local function stepped(fn, ...)
  local _, main = running()
  stepping = true
  if not main then return stopped(pcall(fn, ...)) end
  local _ <close> = GUARD
  return fn(...)
end

function tp.poll()
  if stepping or current or host.calling() then return host.due() end
  return stepped(step)
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
  if not at and waits.only_tasks() then deadlock() end
  host.sleep(at and at - host.now())
end

local function drive(fn, ...)
  local main = fn ~= nil and spawn(fn, ...)
  while live_count > 0 do
    step()
    if live_count > 0 and not first then idle() end
  end
  surface()
  if main then return unpack(main.results, 1, main.results.n) end
end

function tp.run(fn, ...)
  if current then misuse "tp.run inside a task (tp.await waits for another)" end
  if stepping or host.calling() then misuse "tp.run inside a callback" end
  if fn ~= nil then check_callable(fn, "run") end
  return stepped(drive, fn, ...)
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
  retire(self, "cancelled")
  self.results = CANCELLED
  waits.give_up(self)
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

-- Closes the gaps that those who have left a task's list made.
local function compact(waiters)
  local to = 0
  for i = 1, waiters.n do
    local done = waiters[i]
    waiters[i] = nil
    if done then
      to = to + 1
      waiters[to], waiters[done] = done, to
    end
  end
  waiters.n, waiters.gone = to, 0
end

-- `done` is not told any longer. Each has its place in the list as well, and many may
-- leave: none is looked for, and nothing moves but when half of them have gone.
local function leave(waiters, done)
  local i = waiters[done]
  if not i then return end
  waiters[i], waiters[done] = false, nil
  waiters.gone = waiters.gone + 1
  if 2 * waiters.gone > waiters.n then compact(waiters) end
end

function TASK.__await(task, done)
  if ENDED[task.state] then
    done(task.state == "done", task.results)
    return nil
  end
  local waiters = task.waiters or { n = 0, gone = 0 }
  local n = waiters.n + 1
  task.waiters = waiters
  waiters[done], waiters[n] = n, done
  waiters.n = n
  return function()
    if task.waiters ~= waiters then return end -- they are being told
    leave(waiters, done)
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

return count_live, trace_of, waits.woken
