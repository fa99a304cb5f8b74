-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/checking.md, the order check: graphs, whose launches replay what was captured in
-- the order that was captured.
local tp = require "tpstream"
local checking = require "spec.support.checking"
local gate = require "spec.support.gate"
local program = require "spec.support.program"
local fine, misses = checking.fine, checking.misses

local SOURCE = [=[
extern "C" __global__ void down(int *n, int *flag) { *flag = --*n > 0; }
]=]

-- Calls fn(x, s, t, u): a buffer and three streams that it is safe to use them on.
local function with(fn)
  return function()
    local x <close> = tp.zeros("i32", 64)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    fn(x, s, t, u)
  end
end

local function write(s, b, v) tp.with_stream(s, b.fill, b, v or 1) end

describe("a graph's launch", function()
  it("does what was captured, on the stream where it is launched", function()
    local function launch(ordered)
      return with(function(x, s, t)
        local g <close> = tp.capture(function() x:fill(1) end)
        g:launch(s)
        if ordered then t:wait_stream(s) end
        write(t, x)
      end)
    end
    fine(launch(true))
    local r = misses("write/write", launch(false))
    assert.matches("fill on stream %d+, .-:%d+, in the graph launched at .-:%d+\n",
      r[1].text)
    assert.matches("check_graph_spec.lua:%d+$", r[1].first.launched)
    assert.is_nil(r[1].second.launched)
  end)

  it("is no use of what it captures until it is launched", function()
    fine(with(function(x, s, t)
      write(s, x)
      local g <close> = tp.capture(t, function() x:fill(1) end)
      s:synchronize()
      g:launch(t)
    end))
  end)

  it("comes after the stream's work, with all of its branches", function()
    fine(with(function(x, s, t, u)
      local y <close> = tp.zeros("i32", 64)
      local g <close> = tp.capture(s, function()
        t:wait_stream(s)
        x:fill(1)
        write(t, y)
        s:wait_stream(t)
      end)
      write(u, y)
      u:synchronize()
      write(s, y)
      g:launch(s)
      u:wait_stream(s)
      write(u, y)
    end))
  end)

  it("has the order that was captured and no other", function()
    local function branches(joined)
      return with(function(x, s, t)
        local g <close> = tp.capture(s, function()
          t:wait_stream(s)
          write(s, x)
          if joined then t:wait_stream(s) end
          write(t, x)
          s:wait_stream(t)
        end)
        g:launch(s)
      end)
    end
    fine(branches(true))
    local r = misses("write/write", branches(false))
    assert.matches("^s%d+:wait_stream%(s%d+%) in the capture before ", r[1].hint)
  end)

  it("has the order of events that were captured", function()
    fine(with(function(x, s, t)
      local e <close> = tp.Event()
      local f <close> = tp.Event()
      local g <close> = tp.capture(s, function()
        write(s, x)
        e:record(s)
        t:wait_event(e)
        write(t, x)
        f:record(t)
        s:wait_event(f)
        write(s, x)
      end)
      g:launch(s)
      g:launch(s)
    end))
  end)

  it("comes after the launch before it, on another stream, too", function()
    fine(with(function(x, s, t, u)
      local g <close> = tp.capture(function() x:fill(1) end)
      g:launch(s)
      g:launch(t)
      u:wait_stream(t)
      write(u, x)
    end))
  end)

  it("of another graph does not", function()
    misses("write/write", with(function(x, s, t)
      local g <close> = tp.capture(function() x:fill(1) end)
      local h <close> = tp.capture(function() x:fill(2) end)
      g:launch(s)
      h:launch(t)
    end))
  end)

  it("of another graph with memory of its own in common does", function()
    fine(with(function(x, s, t)
      local part <close> = tp.capture(function()
        local own <close> = tp.zeros("i32", 64)
        own:copy_to(x)
      end)
      local g <close> = tp.capture(function() part:launch() end)
      local h <close> = tp.capture(function() part:launch() end)
      g:launch(s)
      h:launch(t)
      part:launch(s)
    end))
  end)

  it("many times is in order, with more branches than streams", function()
    fine(with(function(x, s, t, u)
      local parts = {}
      for i = 1, 8 do parts[i] = x:slice((i - 1) * 8 + 1, 8) end
      local child <close> = tp.capture(function()
        local c = tp.current_stream()
        t:wait_stream(c)
        u:wait_stream(c)
        write(t, parts[1])
        write(u, parts[2])
        write(c, parts[3])
        c:wait_stream(t, u)
      end)
      local g <close> = tp.capture(s, function()
        child:launch()
        t:wait_stream(s)
        u:wait_stream(s)
        for i = 4, 8 do write(({ s, t, u })[i % 3 + 1], parts[i]) end
        s:wait_stream(t, u)
        child:launch()
      end)
      for _ = 1, 20 do g:launch(s) end
      x:copy_to(tp.buffer("i32", 64, { stream = s }), { stream = s })
    end))
  end)

  it("records its events", function()
    local function wait_inside(later)
      return with(function(x, s, t)
        local y <close> = tp.zeros("i32", 64)
        local e <close> = tp.Event()
        local g <close> = tp.capture(s, function()
          x:fill(1)
          e:record(s)
          y:fill(1)
        end)
        g:launch(s)
        t:wait_event(e)
        write(t, later and y or x)
        s:wait_stream(t)
        g:launch(s)
        e:synchronize()
        local z <close> = tp.Stream()
        write(z, later and y or x)
      end)
    end
    fine(wait_inside(false))
    assert.equal(2, misses("write/write", wait_inside(true))[1].count)
  end)

  it("calls the host once what comes before that is done", function()
    local function call(later)
      return with(function(x, s, t)
        local y <close> = tp.zeros("i32", 64)
        local ran = 0
        local g <close> = tp.capture(s, function()
          x:fill(1)
          s:on_complete(function() ran = ran + 1 end)
          y:fill(1)
        end)
        g:launch(s)
        while ran == 0 do tp.poll() end
        write(t, later and y or x)
      end)
    end
    fine(call(false))
    misses("write/write", call(true))
  end)

  it("runs the bodies of its conditions in their place", function()
    local function conditional(after)
      return with(function(x, s, t)
        local flag <close> = tp.buffer("i32", { 1 })
        local g <close> = tp.capture(s, function()
          tp.graph_if(flag, function() x:fill(1) end)
          if after then x:fill(2) end
        end)
        g:launch(s)
        if not after then write(t, x) end
      end)
    end
    fine(conditional(true))
    misses("write/write", conditional(false))
    fine(with(function(x, s)
      local flag <close> = tp.buffer("i32", { 1 })
      local twice <close> = gate.kernel "twice"
      local put <close> = gate.kernel "put"
      local g <close> = tp.capture(s, function()
        tp.graph_while(flag, function()
          twice:launch({ grid = 1, block = 64 }, x, 64)
          put:launch(gate.one, flag, 0, 0)
        end)
        x:fill(3)
      end)
      g:launch(s)
      g:launch(s)
    end))
  end)

  it("of a graph that is a part of it twice is both of them", function()
    local function twice(fn)
      return with(function(x, s, t)
        local put <close> = gate.kernel "put"
        local child <close> = tp.capture(s, function()
          put:launch(gate.one, x, 3, 7)
        end)
        local g <close> = tp.capture(s, function() fn(child, s, t) end)
        local rest <close> = x:slice(33, 32)
        g:launch(s)
        if t:device():kind() == "sim" then write(t, rest) end
        g:launch(s)
      end)
    end
    fine(twice(function(child)
      for _ = 1, 3 do child:launch() end
    end))
    local r = misses("write/write", twice(function(child, s, t)
      t:wait_stream(s)
      child:launch(s)
      child:launch(t)
      s:wait_stream(t)
    end))
    assert.matches("\n    missing: no edge of the graph leads from the one to the "
      .. "other\n", r[1].text)
    assert.equal("a wait between the launches of the graph that both come from, in "
      .. "the capture", r[1].hint)
  end)

  it("with a loop of many turns takes no longer for each", function()
    fine(with(function(x, s, t)
      local flag <close> = tp.buffer("i32", { 1 })
      local module <close> = program("check_graph", SOURCE)
      local down <close> = module:kernel "down"
      local n <close> = tp.buffer("i32", { 20000 })
      tp.device():synchronize()
      local g <close> = tp.capture(s, function()
        tp.graph_while(flag, function()
          down:launch(gate.one, n, flag)
          x:fill(1)
        end)
      end)
      g:launch(s)
      t:wait_stream(s)
      write(t, x)
    end))
  end)

  it("that was changed is what it became", function()
    misses("write/write", with(function(x, s, t)
      local y <close> = tp.zeros("i32", 64)
      local g <close> = tp.capture(function() y:fill(1) end)
      g:launch(s)
      write(t, x)
      g:update(function() x:fill(2) end)
      g:launch(s)
    end))
  end)

  it("uses pinned memory as the host may see", function()
    local function pinned(synced)
      return with(function(_, s)
        local h <close> = tp.pinned("i32", 4)
        local g <close> = tp.capture(function() gate.run(nil, "put", h, 1, 7) end)
        g:launch(s)
        if synced then s:synchronize() end
        return h[2]
      end)
    end
    fine(pinned(true))
    misses("write/read", pinned(false))
  end)
end)
