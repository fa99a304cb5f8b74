-- GPU work inside an event loop of somebody else's: luv (Debian: lua-luv) or
-- cqueues (lua-cqueues). The loop watches tp.wakeup_fd() and calls tp.poll().
--
--   tpstream examples/event_loop.lua [luv | cqueues]
local tp = require "tpstream"

local function work(name)
  local s <close> = tp.Stream()
  local x <close> = tp.buffer("int32", 1000, { stream = s })
  for i = 1, 3 do
    tp.with_stream(s, x.fill, x, i)
    tp.await(s)
    print(name, "round " .. i)
    tp.sleep(5)
  end
end

local loops = {}

function loops.luv(uv, task)
  local poll, timer = uv.new_poll(tp.wakeup_fd()), uv.new_timer()
  local ticks = 0
  timer:start(0, 1, function() ticks = ticks + 1 end) -- the loop's own work
  poll:start("r", function()
    tp.poll()
    if task:status() ~= "done" then return end
    poll:close()
    timer:close()
  end)
  uv.run()
  return ticks
end

function loops.cqueues(cqueues, task)
  local loop = cqueues.new()
  local fd = { pollfd = tp.wakeup_fd(), events = "r" }
  local ticks = 0
  loop:wrap(function()
    while task:status() ~= "done" do
      cqueues.poll(fd)
      tp.poll()
    end
  end)
  loop:wrap(function() -- the loop's own work
    while task:status() ~= "done" do
      cqueues.sleep(0.001)
      ticks = ticks + 1
    end
  end)
  assert(loop:loop())
  return ticks
end

local wanted = arg and arg[1]
if wanted and not loops[wanted] then
  error(("unknown loop '%s' (there are luv and cqueues)"):format(wanted), 0)
end
for _, name in ipairs(wanted and { wanted } or { "luv", "cqueues" }) do
  local found, library = pcall(require, name)
  if found then
    local task = tp.spawn(function()
      tp.await_all(tp.spawn(work, "one"), tp.spawn(work, "two"))
    end)
    local ticks = loops[name](library, task)
    print(("%s: done, and %s"):format(name,
      ticks > 0 and "the loop went on meanwhile" or "the loop stood still"))
    return
  end
end
print(("skipped: %s installed (Debian's lua-luv, lua-cqueues)"):format(
  wanted and wanted .. " is not" or "neither luv nor cqueues is"))
