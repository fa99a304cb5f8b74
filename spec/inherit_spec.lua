-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Tasks inherit what is current where they are spawned. Those that inherit the same
-- have it in common: none sees what another one changes.
local tp = require "tpstream"
local current = tp.current_stream

describe("tasks that inherit the same stream", function()
  it("hold it until the last of them has ended", function()
    local s = tp.Stream()
    local tasks = {}
    for i = 1, 3 do
      tasks[i] = tp.with_stream(s, tp.spawn, function()
        for _ = 1, i do coroutine.yield() end
        if i == 2 then error("2", 0) end
        return current()
      end)
    end
    for i = 1, 4 do
      local ok, message = pcall(s.close, s)
      assert.is_false(ok)
      assert.matches("is current or held by a block", message)
      if i == 3 then assert.is_false(pcall(tp.poll)) else tp.poll() end
    end
    for _, t in ipairs(tasks) do assert.is_true(t:status() ~= "waiting") end
    s:close()
  end)

  it("let it close when the last one ends, however", function()
    for _, how in ipairs { "end", "cancel", "error" } do
      local task
      local s
      do
        local kept <close> = tp.Stream()
        s = kept
        tp.with_stream(s, tp.spawn, tp.sleep, 0):cancel()
        task = tp.with_stream(s, tp.spawn, function()
          coroutine.yield()
          if how == "error" then error("x", 0) end
        end)
        tp.poll()
      end
      assert.is_true(s:query()) -- open: one has it
      if how == "cancel" then task:cancel() else pcall(tp.run) end
      assert.matches("closed", tostring(s))
    end
  end)

  it("change it for themselves alone", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local seen = {}
    tp.with_stream(s, function()
      for i = 1, 4 do
        tp.spawn(function()
          if i == 2 then tp.set_stream(t) end
          if i == 3 then
            tp.with_stream(t, function()
              coroutine.yield()
              seen[5] = current()
            end)
          end
          coroutine.yield()
          seen[i] = current()
        end)
      end
    end)
    tp.run()
    for i, expected in ipairs { s, t, s, s, t } do
      assert.equal(expected, seen[i], i)
    end
    assert.equal(tp.default_stream(), current())
  end)

  it("pass it on to coroutines and tasks of theirs", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local seen = {}
    tp.with_stream(s, tp.spawn, function()
      coroutine.wrap(function()
        seen[1] = current()
        tp.with_stream(t, function()
          coroutine.wrap(function() seen[2] = current() end)()
          tp.spawn(function() seen[3] = current() end)
        end)
      end)()
      tp.spawn(function() seen[4] = current() end)
    end)
    coroutine.wrap(function() tp.with_stream(t, tp.run) end)()
    for i, expected in ipairs { s, t, t, s } do
      assert.equal(expected, seen[i], i)
    end
  end)
end)

describe("what a task leaves open", function()
  -- A variable that notes what is current when it is closed.
  local function noting(seen)
    return setmetatable({}, { __close = function()
      seen[#seen + 1] = current()
    end })
  end

  it("is closed with its own stream current, whoever ends it", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local seen = {}
    local function wait()
      local _ <close> = noting(seen)
      tp.sleep(1000)
    end
    local a, b = tp.with_stream(s, tp.spawn, wait), tp.with_stream(s, tp.spawn, wait)
    tp.poll()
    tp.with_stream(t, a.cancel, a)
    tp.with_stream(s, tp.spawn, function()
      tp.with_stream(t, b.cancel, b)
      assert.equal(s, current())
    end)
    tp.run()
    assert.equal(2, #seen)
    assert.is_true(seen[1] == s and seen[2] == s)
  end)

  it("also by an error", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    local seen = {}
    tp.with_stream(s, tp.spawn, function()
      local _ <close> = noting(seen)
      error("x", 0)
    end)
    assert.is_false(pcall(tp.with_stream, t, tp.run))
    assert.equal(s, seen[1])
  end)
end)

describe("the default stream", function()
  it("is what a task inherits where nothing else is current", function()
    local s <close> = tp.Stream()
    local seen = {}
    for i = 1, 2 do
      tp.spawn(function()
        seen[i] = current()
        coroutine.yield()
        seen[i + 2] = current()
      end)
    end
    tp.with_stream(s, tp.run)
    for i = 1, 4 do assert.equal(tp.default_stream(), seen[i]) end
  end)
end)
