-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md: with_stream (its seven points), scope, set_stream, current_stream.
local tp = require "tpstream"
local message_of = require("spec.support.errors").text
local gate = require "spec.support.gate"
local pair = require "spec.support.pair"

local current = tp.current_stream

local HELD = "attempt to close a stream that is current or held by a block"

describe("with_stream", function()
  local s, t
  before_each(function() s, t = tp.Stream(), tp.Stream() end)
  after_each(function()
    s:close()
    t:close()
  end)

  it("makes the stream current and puts the old one back", function()
    local before = current()
    tp.with_stream(s, function() assert.equal(s, current()) end)
    assert.equal(before, current())
  end)

  it("returns all results, nils included", function()
    local r = table.pack(tp.with_stream(s, function()
      return nil, 1, nil, "x", nil
    end))
    assert.equal(5, r.n)
    assert.same({ n = 5, [2] = 1, [4] = "x" }, r)
    assert.equal(0, select("#", tp.with_stream(s, function() end)))
  end)

  it("returns very many results and passes very many arguments", function()
    local args = {}
    for i = 1, 250 do args[i] = i end
    local r = table.pack(tp.with_stream(s, function(...) return ... end,
      table.unpack(args)))
    assert.equal(250, r.n)
    assert.equal(250, r[250])
  end)

  it("passes arguments, nils included", function()
    tp.with_stream(s, function(...)
      assert.equal(4, select("#", ...))
      local a, b, c, d = ...
      assert.equal(1, a)
      assert.is_nil(b)
      assert.equal("z", c)
      assert.is_nil(d)
    end, 1, nil, "z", nil)
  end)

  it("with nil runs the function and changes nothing", function()
    tp.with_stream(s, function()
      assert.equal(7, tp.with_stream(nil, function()
        assert.equal(s, current())
        return 7
      end))
    end)
  end)

  it("passes an error on unchanged", function()
    local before, object = current(), {}
    for _, value in ipairs { object, "text", 42 } do
      local ok, e = pcall(tp.with_stream, s, error, value, 0)
      assert.is_false(ok)
      assert.is_true(rawequal(e, value))
      assert.equal(before, current())
    end
    local ok, e = pcall(tp.with_stream, s, error)
    assert.is_false(ok)
    assert.is_nil(e)
  end)

  it("keeps the traceback of the fault", function()
    local function deep_inside() error "here" end
    local _, trace = xpcall(tp.with_stream, debug.traceback, s, function()
      deep_inside()
    end)
    assert.matches("deep_inside", trace)
    assert.matches("here", trace)
  end)

  it("restores what was current, whatever the function set", function()
    local before = current()
    tp.with_stream(s, function()
      tp.set_stream(t)
      assert.equal(t, current())
    end)
    assert.equal(before, current())
    tp.with_stream(t, function()
      tp.with_stream(s, function() tp.set_stream(tp.default_stream()) end)
      assert.equal(t, current())
    end)
  end)

  it("enters the same stream again inside itself", function()
    tp.with_stream(s, function()
      tp.with_stream(t, function()
        tp.with_stream(s, function() assert.equal(s, current()) end)
        assert.equal(t, current())
      end)
      assert.equal(s, current())
    end)
  end)

  it("nests deeply", function()
    local function down(n)
      if n == 0 then return 0 end
      return 1 + tp.with_stream(n % 2 == 0 and s or t, down, n - 1)
    end
    assert.equal(100, down(100))
    assert.equal(tp.default_stream(), current())
  end)

  it("takes anything callable", function()
    local callable = setmetatable({}, { __call = function(_, x)
      assert.equal(s, current())
      return x * 2
    end })
    assert.equal(8, tp.with_stream(s, callable, 4))
    assert.equal("number", tp.with_stream(s, type, 1))
  end)

  it("refuses what is not callable, before anything changes", function()
    local before = current()
    for _, bad in ipairs { 1, "f", {}, true } do
      assert.matches("bad argument #2 to 'with_stream' (function expected, got "
        .. type(bad) .. ")", message_of(tp.with_stream, s, bad), 1, true)
      assert.equal(before, current())
    end
    for _, arguments in ipairs { { s }, { s, nil, n = 2 }, { nil, n = 1 },
      { nil, 5, n = 2 } } do
      assert.matches("bad argument #2 to 'with_stream' (function expected",
        message_of(tp.with_stream, table.unpack(arguments, 1,
          arguments.n or #arguments)), 1, true)
    end
    local ok, message = pcall(tp.with_stream, s, setmetatable({}, {
      __call = 5 }))
    assert.is_false(ok)
    assert.equal("string", type(message))
    assert.equal(before, current())
  end)

  it("restores the stream that set_stream had made current", function()
    tp.set_stream(t)
    tp.with_stream(s, function() tp.set_stream(tp.default_stream()) end)
    local after = current()
    tp.set_stream(tp.default_stream())
    assert.equal(t, after)
  end)

  it("restores the device that its function set", function()
    local before = tp.current_device()
    local here, there = pair.devices()
    local u <close> = tp.Stream(here)
    tp.with_stream(s, function()
      tp.set_device(there)
      assert.equal(there, tp.current_device())
      tp.with_stream(u, function()
        assert.equal(here, tp.current_device())
        tp.set_device(there)
      end)
      assert.equal(there, tp.current_device())
    end)
    assert.equal(before, tp.current_device())
    assert.equal(tp.default_stream(before), current())
  end)

  it("of another device restores both devices' streams, also after an error",
    function()
      local here, there = pair.devices()
      local a <close> = tp.Stream(here)
      local b <close> = tp.Stream(there)
      local c <close> = tp.Stream(there)
      tp.with_stream(a, function()
        for _, fail in ipairs { false, true } do
          local object = {}
          local ok, raised = pcall(tp.with_stream, b, function()
            assert.equal(there, tp.current_device())
            assert.equal(b, current(there))
            assert.equal(a, current(here))
            tp.set_stream(c)
            tp.set_device(here)
            tp.set_stream(tp.default_stream(here))
            if fail then error(object) end
          end)
          assert.equal(not fail, ok)
          assert.is_true(ok or rawequal(object, raised))
          assert.equal(here, tp.current_device())
          assert.equal(a, current())
          assert.equal(tp.default_stream(there), current(there))
        end
      end)
    end)

  it("refuses what is not a stream", function()
    for _, bad in ipairs { 1, "s", {}, print, true } do
      local ok, message = pcall(tp.with_stream, bad, print)
      assert.is_false(ok)
      assert.matches("tpstream.Stream expected", message, 1, true)
    end
  end)

  it("queues what runs inside on the stream", function()
    local out <close> = tp.zeros("i32", 1)
    current():synchronize()
    local g <close> = gate.new()
    g:hold(s)
    tp.with_stream(s, function() out:fill(6) end)
    assert.is_false(s:query())
    g:open()
    s:synchronize()
    assert.same({ 6 }, out:read())
  end)
end)

describe("the current stream and coroutines", function()
  local s, t
  before_each(function() s, t = tp.Stream(), tp.Stream() end)
  after_each(function()
    collectgarbage()
    s:close()
    t:close()
  end)

  it("belongs to the coroutine that yields", function()
    local before = current()
    local co = coroutine.wrap(function()
      tp.with_stream(s, function()
        coroutine.yield(1)
        assert.equal(s, current())
        coroutine.yield(2)
        assert.equal(s, current())
      end)
      assert.equal(before, current())
      return 3
    end)
    assert.equal(1, co())
    assert.equal(before, current())
    assert.equal(2, co())
    assert.equal(before, current())
    assert.equal(3, co())
  end)

  it("of two tasks do not mix", function()
    local function task(stream)
      return coroutine.wrap(function()
        tp.with_stream(stream, function()
          for _ = 1, 5 do
            assert.equal(stream, current())
            coroutine.yield()
          end
        end)
      end)
    end
    local a, b = task(s), task(t)
    for _ = 1, 5 do
      a()
      b()
      assert.equal(tp.default_stream(), current())
    end
    a()
    b()
  end)

  it("is inherited by a coroutine started inside the block", function()
    tp.with_stream(s, function()
      local co = coroutine.wrap(function()
        assert.equal(s, current())
        coroutine.yield()
        assert.equal(s, current())
      end)
      co()
      co()
    end)
  end)

  it("of a generator follows whoever resumes it", function()
    local co = coroutine.wrap(function()
      while true do coroutine.yield(current()) end
    end)
    assert.equal(tp.default_stream(), co())
    assert.equal(s, tp.with_stream(s, co))
    assert.equal(t, tp.with_stream(t, co))
    assert.equal(tp.default_stream(), co())
  end)

  it("is inherited through a chain of resumes", function()
    local inner = coroutine.create(function()
      assert.equal(s, current())
      coroutine.yield()
      assert.equal(t, current())
    end)
    local outer = coroutine.create(function()
      assert(coroutine.resume(inner))
      coroutine.yield()
      tp.with_stream(t, function() assert(coroutine.resume(inner)) end)
    end)
    tp.with_stream(s, function() assert(coroutine.resume(outer)) end)
    assert(coroutine.resume(outer))
  end)

  it("is inherited again once the coroutine's own block has ended", function()
    local co = coroutine.wrap(function()
      tp.with_stream(t, function() coroutine.yield(current()) end)
      coroutine.yield(current())
      coroutine.yield(current())
    end)
    assert.equal(t, co())
    assert.equal(s, tp.with_stream(s, co))
    assert.equal(tp.default_stream(), co())
  end)

  it("suspended inside a block does not leak into others", function()
    local co = coroutine.create(function()
      tp.with_stream(s, coroutine.yield)
    end)
    coroutine.resume(co)
    local other = coroutine.wrap(function() return current() end)
    assert.equal(tp.default_stream(), other())
    assert(coroutine.close(co))
    assert.equal(tp.default_stream(), current())
  end)

  it("of an abandoned coroutine leaves nothing behind", function()
    for _ = 1, 20 do
      local co = coroutine.create(function()
        tp.with_stream(s, coroutine.yield)
      end)
      coroutine.resume(co)
    end
    collectgarbage()
    collectgarbage()
    assert.equal(tp.default_stream(), current())
    s:close()
    assert.matches("closed", tostring(s))
  end)

  it("of another device belongs to its coroutine as well", function()
    local before = tp.current_device()
    local _, there = pair.devices()
    local u <close> = tp.Stream(there)
    local co = coroutine.wrap(function()
      tp.with_stream(u, function()
        for _ = 1, 2 do
          coroutine.yield(current(), tp.current_device())
        end
      end)
      return current(), tp.current_device()
    end)
    for _ = 1, 2 do
      assert.same({ u, there }, { co() })
      assert.equal(before, tp.current_device())
      assert.equal(tp.default_stream(before), current())
    end
    assert.same({ tp.default_stream(before), before }, { co() })
  end)

  it("set in a coroutine leaves the block it was resumed in alone", function()
    tp.with_stream(s, function()
      local co = coroutine.wrap(function()
        tp.set_stream(t)
        coroutine.yield(current())
        return current()
      end)
      assert.equal(t, co())
      assert.equal(s, current())
      assert.equal(t, co())
      assert.equal(s, current())
    end)
    assert.equal(tp.default_stream(), current())
  end)

  it("of a task in a block is its own while others have theirs", function()
    local seen = {}
    local function task(stream, name)
      return coroutine.wrap(function()
        tp.with_stream(stream, function()
          local inner = coroutine.wrap(function()
            while true do coroutine.yield(current()) end
          end)
          for _ = 1, 3 do
            seen[#seen + 1] = { name, inner() }
            coroutine.yield()
          end
        end)
      end)
    end
    local a, b = task(s, "a"), task(t, "b")
    for _ = 1, 3 do
      a()
      b()
    end
    a()
    b()
    for i, row in ipairs(seen) do
      assert.same(i % 2 == 1 and { "a", s } or { "b", t }, row)
    end
    assert.equal(6, #seen)
  end)

  it("of a coroutine that died by an error is held by nobody", function()
    local u = tp.Stream()
    local co = coroutine.create(function() tp.with_stream(u, error, "x") end)
    assert.is_false(coroutine.resume(co))
    assert.equal(tp.default_stream(), current())
    u:close() -- co is not collected
    assert.matches("closed", tostring(u))
    u = tp.Stream()
    co = coroutine.create(function() tp.with_stream(u, error, "x") end)
    assert.is_false(coroutine.resume(co))
    do local _ <close> = u end
    assert.matches("closed", tostring(u))
    assert.equal("dead", coroutine.status(co))
  end)

  it("passes values through yields in both directions", function()
    local co = coroutine.wrap(function()
      return tp.with_stream(s, function(a)
        local b, c = coroutine.yield(a + 1)
        return a, b, c, nil
      end, 10)
    end)
    assert.equal(11, co())
    local r = table.pack(co(20, 30))
    assert.same({ n = 4, 10, 20, 30 }, r)
  end)

  it("survives an error in a coroutine", function()
    local co = coroutine.create(function()
      tp.with_stream(s, function()
        coroutine.yield()
        error "boom"
      end)
    end)
    assert(coroutine.resume(co))
    local ok, message = coroutine.resume(co)
    assert.is_false(ok)
    assert.matches("boom", message)
    coroutine.close(co)
    assert.equal(tp.default_stream(), current())
  end)

  it("set by set_stream in a coroutine stays there", function()
    local co = coroutine.wrap(function()
      tp.with_stream(s, function()
        tp.set_stream(t)
        coroutine.yield(current())
        return current()
      end)
      return current()
    end)
    assert.equal(t, co())
    assert.equal(tp.default_stream(), current())
    assert.equal(tp.default_stream(), co())
  end)
end)

describe("scope", function()
  local s, t
  before_each(function() s, t = tp.Stream(), tp.Stream() end)
  after_each(function()
    s:close()
    t:close()
  end)

  it("lasts for a block", function()
    do
      local _ <close> = tp.scope(s)
      assert.equal(s, current())
      do
        local _ <close> = tp.scope(t)
        assert.equal(t, current())
      end
      assert.equal(s, current())
    end
    assert.equal(tp.default_stream(), current())
  end)

  it("ends with an error", function()
    pcall(function()
      local _ <close> = tp.scope(s)
      error "out"
    end)
    assert.equal(tp.default_stream(), current())
  end)

  it("closed out of order takes out its own frame only", function()
    local a, b = tp.scope(s), tp.scope(t)
    assert.equal(t, current())
    a:close()
    assert.equal(t, current())
    a:close()
    b:close()
    assert.equal(tp.default_stream(), current())
    b:close()
    assert.equal(tp.default_stream(), current())
  end)

  it("never closed ends when it is collected", function()
    local co = coroutine.create(function()
      local scope = tp.scope(s)
      coroutine.yield()
      return scope
    end)
    coroutine.resume(co)
    co = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.equal(tp.default_stream(), current())
    s:close()
  end)

  it("inside a coroutine ends with the coroutine", function()
    local scope
    local co = coroutine.wrap(function()
      scope = tp.scope(s)
      return current()
    end)
    assert.equal(s, co())
    assert.equal(tp.default_stream(), current())
    scope:close()
  end)

  it("that outlives its coroutine is not taken for another's", function()
    local kept = {}
    for i = 1, 200 do
      local co = coroutine.wrap(function()
        kept[i] = tp.scope(s)
        coroutine.yield()
      end)
      co()
    end
    collectgarbage()
    collectgarbage()
    for _ = 1, 400 do -- at the places of those before, were they free
      local co = coroutine.wrap(function() return current() end)
      assert.equal(tp.default_stream(), co())
    end
    for i = 1, 200 do
      kept[i]:close()
      kept[i] = nil
    end
    collectgarbage()
  end)

  it("never closed in the main chunk ends when it is collected", function()
    local u = tp.Stream()
    local kept = { tp.scope(u) }
    assert.equal("userdata", type(kept[1]))
    assert.equal(u, current())
    kept[1] = nil
    collectgarbage()
    collectgarbage()
    assert.equal(tp.default_stream(), current())
    u:close()
  end)

  it("closed out of order leaves the frames above it in force", function()
    local a, b, c = tp.scope(s), tp.scope(t), tp.scope(s)
    b:close()
    assert.equal(s, current())
    c:close()
    assert.equal(s, current())
    a:close()
    assert.equal(tp.default_stream(), current())
  end)

  it("of another device switches the device, for the block", function()
    local before = tp.current_device()
    local _, there = pair.devices()
    local u <close> = tp.Stream(there)
    do
      local _ <close> = tp.scope(u)
      assert.equal(u, current())
      assert.equal(there, tp.current_device())
    end
    assert.equal(before, tp.current_device())
    assert.equal(tp.default_stream(before), current())
  end)

  it("with nil is a block that changes nothing", function()
    tp.with_stream(s, function()
      local _ <close> = tp.scope(nil)
      assert.equal(s, current())
    end)
  end)

  it("left open inside with_stream ends with that", function()
    local kept
    tp.with_stream(s, function()
      kept = tp.scope(t)
      assert.equal(t, current())
    end)
    assert.equal(tp.default_stream(), current())
    kept:close()
    assert.equal(tp.default_stream(), current())
  end)

  it("refuses what is not a stream", function()
    for _, bad in ipairs { 1, {}, "s" } do
      assert.matches("bad argument #1 to 'scope' (tpstream.Stream expected, "
        .. "got " .. type(bad) .. ")", message_of(tp.scope, bad), 1, true)
    end
    assert.matches("bad argument #1 to 'scope' (value expected)",
      message_of(tp.scope), 1, true)
  end)
end)

describe("set_stream", function()
  it("changes the current stream until it is set back", function()
    local s <close> = tp.Stream()
    tp.set_stream(s)
    assert.equal(s, current())
    tp.set_stream(nil)
    assert.equal(s, current())
    tp.set_stream(tp.default_stream())
    assert.equal(tp.default_stream(), current())
  end)

  it("keeps a stream alive until it is set back, and no longer", function()
    local weak = setmetatable({}, { __mode = "k" })
    do
      local s = tp.Stream()
      weak[s] = true
      tp.set_stream(s)
      tp.set_stream(s)
    end
    collectgarbage()
    collectgarbage()
    assert.equal(current(), (next(weak)))
    assert.is_true(current():query())
    tp.set_stream(tp.default_stream())
    collectgarbage()
    collectgarbage()
    assert.is_nil((next(weak)))
    -- set in a block, and in a coroutine
    tp.with_stream(tp.default_stream(), function()
      tp.set_stream(tp.Stream())
      weak[current()] = true
    end)
    coroutine.wrap(function()
      tp.set_stream(tp.Stream())
      weak[current()] = true
    end)()
    for _ = 1, 3 do collectgarbage() end -- the coroutine, its stream, the key
    assert.is_nil((next(weak)))
  end)

  it("changes the innermost block", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    do
      local _ <close> = tp.scope(s)
      tp.set_stream(t)
      assert.equal(t, current())
    end
    assert.equal(tp.default_stream(), current())
  end)

  it("refuses what is not a stream", function()
    for _, bad in ipairs { 1, {}, "s" } do
      assert.matches("bad argument #1 to 'set_stream' (tpstream.Stream "
        .. "expected, got " .. type(bad) .. ")",
        message_of(tp.set_stream, bad), 1, true)
    end
  end)
end)

describe("a stream that is current", function()
  it("can't be closed", function()
    local s <close> = tp.Stream()
    tp.with_stream(s, function()
      assert.matches(HELD, message_of(s.close, s), 1, true)
      assert.equal(s, current())
    end)
    s:close()
  end)

  it("can't be closed while an outer block holds it", function()
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    tp.with_stream(s, function()
      tp.with_stream(t, function()
        assert.matches(HELD, message_of(s.close, s), 1, true)
      end)
    end)
  end)

  it("by set_stream can't be closed, nor under a scope", function()
    local s = tp.Stream()
    tp.set_stream(s)
    local by_set = message_of(s.close, s)
    tp.set_stream(tp.default_stream())
    assert.matches(HELD, by_set, 1, true)
    do
      local _ <close> = tp.scope(s)
      assert.matches(HELD, message_of(s.close, s), 1, true)
    end
    s:close()
  end)

  it("can't be closed while a suspended coroutine holds it", function()
    local s <close> = tp.Stream()
    local co = coroutine.create(function()
      tp.with_stream(s, coroutine.yield)
    end)
    coroutine.resume(co)
    assert.matches(HELD, message_of(s.close, s), 1, true)
    coroutine.resume(co)
    s:close()
  end)

  it("closes when the coroutine that held it is dead", function()
    local s = tp.Stream()
    do
      local co = coroutine.create(function()
        tp.with_stream(s, coroutine.yield)
      end)
      coroutine.resume(co)
    end
    s:close()
    assert.matches("closed", tostring(s))
  end)

  it("stays alive without other references", function()
    tp.with_stream(tp.Stream(), function()
      collectgarbage()
      collectgarbage()
      assert.is_true(current():id() > 0)
      assert.is_true(current():query())
      current():record_event():close()
    end)
  end)

  it("is closed by the collector after the block, work going on", function()
    local out <close> = tp.zeros("i32", 1)
    current():synchronize()
    local g <close> = gate.new()
    local weak = setmetatable({}, { __mode = "k" })
    tp.with_stream(tp.Stream(), function()
      weak[current()] = true
      g:hold(current())
      g.held = {}
      gate.run(current(), "put", out, 0, 5)
      collectgarbage()
      collectgarbage()
      assert.equal(current(), (next(weak)))
    end)
    collectgarbage()
    collectgarbage()
    assert.is_nil((next(weak)))
    g:open()
    tp.current_device():synchronize()
    assert.same({ 5 }, out:read())
  end)

  it("with <close> waits for the block to end", function()
    local s
    tp.with_stream(tp.Stream(), function()
      do
        local c <close> = current()
        s = c
      end
      assert.equal(s, current())
      assert.is_true(s:query())
    end)
    assert.matches("closed", tostring(s))
  end)
end)
