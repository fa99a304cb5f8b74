-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Five kinds of objects, one with a graph, with work queued on them, to be closed in
-- any order:
--
--   local closing = require "spec.support.closing"
--   closing.orders           -- the 120 permutations of "12345"
--   closing.run(tp, order, { how = "close", fault = true })
--
-- how: "close" closes them now, with the work still running; "finalizers" when
-- the state closes, in that order and before the library's own finalizers;
-- "none" leaves all to those. With fault the work is one that breaks the device.
local PTX = [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 .ptr .global .align 4 spin_p, .param .u32 spin_n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [spin_p];
  ld.param.u32 %r1, [spin_n];
  mov.u32 %r2, 0;
LOOP:
  add.s32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra LOOP;
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r2;
  ret;
}
]]
local TURNS = 20000

local closing = { orders = {} }

local function permute(prefix, rest)
  if rest == "" then
    closing.orders[#closing.orders + 1] = prefix
  end
  for i = 1, #rest do
    permute(prefix .. rest:sub(i, i), rest:sub(1, i - 1) .. rest:sub(i + 1))
  end
end
permute("", "12345")

-- Work on two streams that wait for one another, a copy, a callback.
local function queue_work(tp, o, pointer)
  o.launch(pointer, TURNS)
  o.event:record(o.stream)
  o.other:wait_event(o.event)
  o.buffer:copy_to(o.host, { stream = o.other })
  o.graph = tp.capture(function()
    o.kernel:launch({ grid = 1, block = 1 }, pointer, TURNS)
    local copy <close> = tp.buffer("i32", { 1, 2, 3 })
    copy:copy_to(o.buffer)
    tp.current_stream():on_complete(function() o.called = true end)
  end)
  o.graph:launch(o.other)
  o.graph:launch(o.stream)
  o.stream:on_complete(function() o.called = true end)
  tp.default_stream():on_complete(math.abs, -1)
end

-- After a fault every call may refuse; without one only the stream's close,
-- while the scope has it.
local function close(o, number, fault)
  local ok, e = pcall(o.closers[number])
  if not ok and not fault and not (number == 1 and e:find "held") then
    error(e, 0)
  end
end

function closing.run(tp, order, options)
  local o = {}
  o.module = tp.load(PTX)
  o.kernel = o.module:kernel "spin"
  o.buffer = tp.zeros("i32", 1000)
  o.host = tp.pinned("i32", 1000)
  o.event = tp.Event()
  o.stream, o.other = tp.Stream(), tp.Stream()
  o.scope = tp.scope(o.stream)
  o.launch = o.kernel:bind { grid = 1, block = 1 }
  o.closers = {
    function() o.stream:close() end,
    function()
      o.event:close()
      if o.graph then o.graph:close() end
    end,
    function() o.buffer:close() end,
    function() o.module:close() o.kernel:close() end,
    function() o.scope:close() o.launch = nil end,
  }
  if options.fault then
    pcall(o.launch, nil, TURNS)
    pcall(o.stream.synchronize, o.stream)
    pcall(queue_work, tp, o, nil)
  else
    queue_work(tp, o, o.buffer)
  end
  _G.kept = o
  if options.how == "close" then
    for i = 1, #order do close(o, tonumber(order:sub(i, i)), options.fault) end
  elseif options.how == "finalizers" then
    for i = #order, 1, -1 do -- the last one made is the first one called
      local number = tonumber(order:sub(i, i))
      o[#o + 1] = setmetatable({}, {
        __gc = function() close(o, number, options.fault) end,
      })
    end
  end
end

return closing
