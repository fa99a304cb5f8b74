-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.benchmark(fn [, opts]) → {cpu = statistics, gpu = statistics}: how long
-- fn() takes the host, and how long the work that it queues takes the device,
-- each {min, median, mean, max, count}, times in milliseconds. Every run is
-- waited for before the next. This chunk gets the library, a clock and misuse.lua's
-- functions, and returns the function.
local tp, now, _, misuse, type_name, check_callable = ...

-- How many runs: opts.count, else until opts.min_time has passed.
local DEFAULTS = { warmup = 1, min_time = 100 }
local MIN_RUNS, MAX_RUNS = 3, 100000

local NAMES = { "count", "min_time", "stream", "warmup" }

local function bad(...)
  misuse("bad argument #2 to 'benchmark' (%s)", string.format(...))
end

local function check_number(opts, name, least, whole)
  local value = opts[name]
  if value == nil then return DEFAULTS[name] end
  local number = math.type(value)
  if not number then
    bad("field '%s': number expected, got %s", name, type_name(value))
  elseif whole and not math.tointeger(value) then
    bad("field '%s': %s is not a whole number", name, value)
  elseif not (value >= least) or value == math.huge then
    bad("field '%s': at least %d expected, got %s", name, least, value)
  end
  return value
end

local function check_options(opts)
  if type(opts) ~= "table" then
    bad("table expected, got %s", type_name(opts))
  end
  for key in pairs(opts) do
    local known = false
    for _, name in ipairs(NAMES) do known = known or key == name end
    if not known then
      bad("unknown option '%s' (there are %s)", tostring(key),
        table.concat(NAMES, ", "))
    end
  end
  local stream = opts.stream
  if stream ~= nil and type_name(stream) ~= "tpstream.Stream" then
    bad("field 'stream': tpstream.Stream expected, got %s", type_name(stream))
  end
  return {
    stream = stream,
    warmup = check_number(opts, "warmup", 0, true),
    count = check_number(opts, "count", 1, true),
    min_time = check_number(opts, "min_time", 0),
  }
end

local function statistics(times)
  table.sort(times)
  local n, sum = #times, 0
  for _, ms in ipairs(times) do sum = sum + ms end
  local middle = n // 2 + 1
  local median = n % 2 == 1 and times[middle]
    or (times[middle - 1] + times[middle]) / 2
  return {
    min = times[1], median = median, mean = sum / n, max = times[n],
    count = n,
  }
end

local function measure(fn, plan)
  local start <close> = tp.Event(true)
  local stop <close> = tp.Event(true)
  local cpu, gpu = {}, {}
  for _ = 1, plan.warmup do fn() end
  tp.current_stream():synchronize()
  local begin = now()
  local function more()
    local runs = #cpu
    if plan.count then return runs < plan.count end
    return runs < MIN_RUNS
      or runs < MAX_RUNS and now() - begin < plan.min_time
  end
  while more() do
    start:record()
    local before = now()
    fn()
    local after = now()
    stop:record()
    stop:synchronize()
    cpu[#cpu + 1] = after - before
    gpu[#gpu + 1] = start:elapsed_time(stop)
  end
  return { cpu = statistics(cpu), gpu = statistics(gpu) }
end

return function(fn, opts)
  check_callable(fn, "benchmark")
  local plan = check_options(opts or {})
  return tp.with_stream(plan.stream, measure, fn, plan)
end
