-- Several jobs at once, each written as if it were alone: a task waits for its own
-- stream while the others go on. One of them has a limit of time.
--
--   tpstream examples/tasks.lua [JOBS]
local tp = require "tpstream"

local JOBS = math.tointeger(arg and arg[1] or 6)
if not JOBS or JOBS < 1 then
  io.stderr:write(("tasks.lua: JOBS: '%s' is no number from 1 on\n"):format(arg[1]))
  os.exit(2)
end
local N = 1 << 14

-- Sums 1 .. N, copied to the device and back on a stream of its own, as often as it is
-- told to.
local function job(name, rounds)
  local s <close> = tp.Stream()
  local x <close> = tp.pinned("float32", N)
  local y <close> = tp.buffer("float32", N, { stream = s })
  for i = 1, N do x[i] = i end
  local sum = 0
  for _ = 1, rounds do
    tp.with_stream(s, y.write, y, x)
    tp.with_stream(s, y.copy_to, y, x)
    tp.await(s)
    local before = sum
    for i = 1, N do sum = sum + x[i] end
    assert(sum - before == N * (N + 1) / 2)
    coroutine.yield() -- a long loop lets the others have their turn
  end
  print(("%s: %d round%s, sum %.0f"):format(name, rounds, rounds == 1 and "" or "s",
    sum))
  return sum
end

-- Waits for a task, but no longer than so many milliseconds.
local function within(ms, task)
  local limit <close> = tp.spawn(tp.sleep, ms)
  local which = tp.await_any(task, limit)
  if which == 1 then return true end
  task:cancel()
  return false
end

tp.run(function()
  local jobs = {}
  for i = 1, JOBS do jobs[i] = tp.spawn(job, "job " .. i, i) end
  local sums = { tp.await_all(table.unpack(jobs)) }
  local total = 0
  for _, sum in ipairs(sums) do total = total + sum end
  print(("all: %.0f"):format(total))
  local endless = tp.spawn(job, "endless", math.huge)
  print("endless ended by itself: " .. tostring(within(20, endless)))
end)
