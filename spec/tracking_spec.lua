-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Memory that is dropped while several streams still have work for it: every pair
-- of operations, ordered or not, on two streams and on three, all of them queued
-- behind gates before the buffer is closed. Then others ask for memory of its size
-- and fill it. Were one wait missing, its bytes would be given away too early: a GPU
-- would hand out the same address and mix the values up, the simulated device calls
-- it a use after free.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local numbers = require "spec.support.numbers"

local N = 1024
local random = numbers.generator(77)

local function values(n)
  local t = {}
  for i = 1, n do t[i] = random.int(-1000000, 1000000) end
  return t
end

-- What is queued on the current stream for buffer x, which holds `now`. Returns
-- what x holds then, and for what reads it a function that checks what it got.
local OPERATIONS = {
  { "write", function(x)
    local new = values(#x)
    x:write(new)
    return new
  end },
  { "fill", function(x)
    local v = random.int(-99, 99)
    local new = {}
    for i = 1, #x do new[i] = v end
    x:fill(v)
    return new
  end },
  { "copy to it", function(x)
    local new = values(#x)
    local from = tp.buffer("i32", new) -- dropped as well
    from:copy_to(x)
    from:close()
    return new
  end },
  { "rows to it", function(x)
    local new = values(#x)
    local from = tp.pinned("i32", new)
    from:copy_to(x, { rows = 64, row_bytes = 4 * #x // 64 })
    from:close()
    return new
  end },
  { "launch on it", function(x, now)
    local new = {}
    for i = 1, #x do new[i] = 2 * now[i] end
    gate.kernel "twice":forall(#x, x, #x)
    return new
  end },
  { "copy from it", function(x, now)
    local to = tp.pinned("i32", #x)
    x:copy_to(to)
    return now, function()
      for i = 1, #to do assert.equal(now[i], to[i]) end
      to:close()
    end
  end },
  { "columns from it", function(x, now)
    local to = tp.pinned("i32", 64)
    local pitch = #x // 64
    x:copy_to(to, { rows = 64, row_bytes = 4, pitch = 4 * pitch })
    return now, function()
      for i = 1, 64 do assert.equal(now[(i - 1) * pitch + 1], to[i]) end
      to:close()
    end
  end },
  { "launch that reads it", function(x, now)
    local to = tp.buffer("i32", #x)
    gate.kernel "copy":forall(#x, x, to, #x)
    return now, function()
      assert.same(now, to:read())
      to:close()
    end
  end },
  { "texture made of it", function(x, now)
    local t = tp.texture(x, { width = #x })
    return now, function()
      assert.same(now, t:read())
      t:close()
    end
  end },
  { "texture copied to it", function(x)
    local new = values(#x)
    local from <close> = tp.buffer("i32", new)
    local t = tp.texture(from, { width = #x })
    t:copy_to(x)
    t:close() -- dropped as well
    return new
  end },
  { "launch on a slice", function(x, now)
    local new, half = {}, #x // 2
    for i = 1, #x do new[i] = i > half and 2 * now[i] or now[i] end
    local slice = x:slice(half + 1, half)
    gate.kernel "twice":forall(half, slice, half)
    slice:close()
    return new
  end },
}
local READERS = { OPERATIONS[6], OPERATIONS[7], OPERATIONS[8] }

-- Others that want the same size: none may be handed what is still in use.
local function crowd()
  local others <const> = {}
  local s <close> = tp.Stream()
  tp.with_stream(s, function()
    for i = 1, 4 do
      others[i] = tp.buffer("i32", N)
      others[i]:fill(-i)
    end
  end)
  s:synchronize()
  return function()
    for i, b in ipairs(others) do
      local list = b:read()
      for k = 1, N do
        if list[k] ~= -i then assert.equal(-i, list[k]) end
      end
      b:close()
    end
  end
end

-- Lets the streams go one by one, and after each others come for memory: were it
-- given back before the last stream is done, that stream would work on theirs.
local function let_go(streams, gates, checks)
  local crowds = { crowd() }
  for i, s in ipairs(streams) do
    assert.is_false(s:query())
    gates[i]:open()
    s:synchronize()
    crowds[i + 1] = crowd()
  end
  for _, check in pairs(checks) do check() end
  for _, check in ipairs(crowds) do check() end
  for i, s in ipairs(streams) do
    getmetatable(gates[i]).__close(gates[i])
    s:close()
  end
end

-- Each operation on a stream of its own, behind a gate of its own.
local function case(operations, ordered)
  local now = values(N)
  local x = tp.buffer("i32", now)
  tp.current_stream():synchronize()
  local streams, gates, checks = {}, {}, {}
  for i, operation in ipairs(operations) do
    local s = tp.Stream()
    streams[i], gates[i] = s, gate.new()
    if ordered and i > 1 then s:wait_stream(streams[i - 1]) end
    gates[i]:hold(s)
    tp.with_stream(s, function() now, checks[i] = operation[2](x, now) end)
  end
  x:close()
  let_go(streams, gates, checks)
end

-- The two on one half of the memory each, with no order between them; the stream
-- of number `first` is let go first.
local function halves(operations, first)
  local now = values(N)
  local x = tp.buffer("i32", now)
  tp.current_stream():synchronize()
  local streams, gates, checks = {}, {}, {}
  for i, operation in ipairs(operations) do
    local s, at = tp.Stream(), (i - 1) * N // 2
    local half = x:slice(at + 1, N // 2)
    local k = i == first and 1 or 2
    streams[k], gates[k] = s, gate.new()
    gates[k]:hold(s)
    tp.with_stream(s, function()
      local _
      _, checks[i] = operation[2](half, table.move(now, at + 1, at + N // 2, 1, {}))
    end)
    half:close()
  end
  x:close()
  let_go(streams, gates, checks)
end

describe("memory dropped in use", function()
  for _, first in ipairs(OPERATIONS) do
    it("outlives a " .. first[1] .. " and what follows on a second stream",
      function()
        for _, second in ipairs(OPERATIONS) do
          case({ first, second }, true)
        end
      end)

    it("outlives a " .. first[1] .. " and what follows on two more", function()
      for _, second in ipairs(OPERATIONS) do
        case({ first, second, READERS[random.int(1, 3)] }, true)
      end
    end)

    it("outlives a " .. first[1] .. " and what is beside it", function()
      for _, second in ipairs(OPERATIONS) do
        halves({ first, second }, 1)
        halves({ first, second }, 2)
      end
    end)
  end

  -- t waits for s, but not for what s does afterwards.
  it("outlives what comes after a wait for its stream", function()
    for _, operation in ipairs(OPERATIONS) do
      for _, wait in ipairs {
        function(s, t) t:wait_stream(s) end, function(s, t) tp.barrier(s, t) end,
        function(s, t)
          local e <close> = s:record_event()
          t:wait_event(e)
        end,
      } do
        local x = tp.buffer("i32", N)
        local now, half = values(N // 2), x:slice(1, N // 2)
        half:write(now)
        tp.current_stream():synchronize()
        local s, t = tp.Stream(), tp.Stream()
        tp.with_stream(s, x.fill, x:slice(N, 1), 1)
        wait(s, t)
        local g = gate.new()
        g:hold(s)
        local _, check = tp.with_stream(s, operation[2], half, now)
        tp.with_stream(t, x.fill, x:slice(N, 1), 2)
        half:close()
        x:close()
        collectgarbage()
        let_go({ s }, { g }, { check })
        t:close()
      end
    end
  end)

  -- t waits for u, later than what s does was queued.
  it("outlives work although other streams were waited for", function()
    for _, operation in ipairs(OPERATIONS) do
      local x = tp.buffer("i32", N)
      local now, half = values(N // 2), x:slice(1, N // 2)
      half:write(now)
      tp.current_stream():synchronize()
      local s, t, u = tp.Stream(), tp.Stream(), tp.Stream()
      local g = gate.new()
      g:hold(s)
      local _, check = tp.with_stream(s, operation[2], half, now)
      gate.run(u, "empty")
      t:wait_stream(u)
      tp.with_stream(t, x.fill, x:slice(N, 1), 2)
      half:close()
      x:close()
      collectgarbage()
      let_go({ s }, { g }, { check })
      t:close()
      u:close()
    end
  end)

  it("outlives readers side by side", function()
    for _, first in ipairs(READERS) do
      for _, second in ipairs(READERS) do
        case({ first, second }, false)
        for _, third in ipairs(READERS) do
          case({ first, second, third }, false)
        end
      end
    end
  end)
end)
