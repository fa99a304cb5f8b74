-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Streams: handles and tp.ExternalStream.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"
local PER_THREAD = 2

describe("a handle", function()
  it("is an integer that no other open stream has", function()
    local seen, streams = { [0] = true }, {}
    for i = 1, 20 do
      streams[i] = tp.Stream()
      local handle = streams[i]:handle()
      assert.equal("integer", math.type(handle))
      assert.is_nil(seen[handle])
      assert.equal(handle, streams[i]:handle())
      seen[handle] = true
    end
    for i = 1, 20 do streams[i]:close() end
  end)
end)

describe("ExternalStream", function()
  it("gives back a stream of this state's as itself", function()
    local s <close> = tp.Stream { priority = -1, blocking = true }
    local again = tp.ExternalStream(s:handle(), s:device())
    assert.is_true(rawequal(s, again))
    assert.equal("key", ({ [s] = "key" })[again])
    assert.equal(-1, again:priority())
    assert.is_true(again:is_blocking())
    assert.is_true(rawequal(s, tp.ExternalStream(s:handle())))
  end)

  it("leaves such a stream to its owner", function()
    local s = tp.Stream()
    local again = tp.ExternalStream(s:handle())
    s = nil
    collectgarbage()
    collectgarbage()
    gate.run(again, "empty")
    assert.is_true(again:synchronize())
    again:close() -- it is the owner
    assert.is_false(pcall(again.query, again))
    assert.is_nil(s)
  end)

  it("takes the device as everywhere", function()
    local s <close> = tp.Stream()
    local d = tp.current_device()
    for _, device in ipairs { d, d:index(), d:kind() .. ":" .. d:index() } do
      assert.equal(s, tp.ExternalStream(s:handle(), device))
    end
    assert.has_error(function() tp.ExternalStream(s:handle(), "gpu") end)
  end)

  it("refuses what is no handle", function()
    for _, bad in ipairs { "x", {}, 1.5, true, print } do
      local ok, message = pcall(tp.ExternalStream, bad)
      assert.is_false(ok)
      assert.matches("bad argument #1 to 'ExternalStream'", message)
    end
    assert.is_false(pcall(tp.ExternalStream))
  end)

  it("0 and 1 are the legacy stream", function()
    for handle = 0, 1 do
      local s = tp.ExternalStream(handle)
      assert.is_true(rawequal(tp.default_stream(), s))
      assert.equal(0, s:id())
      assert.equal(0, s:handle())
      assert.equal(0, s:priority())
      assert.is_true(s:is_blocking())
    end
  end)

  it("2 is the per-thread default stream", function()
    local s = tp.ExternalStream(PER_THREAD)
    assert.is_true(rawequal(s, tp.ExternalStream(PER_THREAD)))
    assert.equal(PER_THREAD, s:handle())
    assert.is_true(s:is_blocking())
    assert.is_true(s:id() > 0)
    local out <close> = tp.zeros("i32", 1)
    gate.run(s, "put", out, 0, 5) -- after the legacy stream's zeros
    assert.is_true(s:synchronize())
    assert.same({ 5 }, out:read())
    local id = s:id()
    s:close()
    assert.matches("closed", tostring(s))
    local t = tp.ExternalStream(PER_THREAD)
    assert.is_false(rawequal(s, t))
    assert.is_false(s == t)
    assert.is_true(t:id() > id)
    assert.is_true(t:synchronize())
    t:close()
  end)

  it("a closed stream is not equal to a later one of its handle", function()
    local seen = {}
    for _ = 1, 50 do
      local s = tp.Stream()
      local handle = s:handle()
      if seen[handle] then assert.is_false(seen[handle] == s) end
      assert.is_true(rawequal(s, tp.ExternalStream(handle)))
      s:close()
      seen[handle] = s
    end
  end)

  it("can be waited for, recorded on and called back from", function()
    local s = tp.ExternalStream(PER_THREAD)
    local t <close> = tp.Stream()
    local out <close> = tp.zeros("i32", 1)
    s:synchronize()
    local n = 0
    local g <close> = gate.new()
    g:hold(t)
    s:wait_stream(t)
    gate.run(s, "put", out, 0, 3)
    s:on_complete(function() n = n + 1 end)
    local e <close> = s:record_event()
    assert.is_false(s:synchronize(10))
    assert.is_false(e:synchronize(10))
    g:open()
    assert.is_true(e:synchronize())
    assert.is_true(s:synchronize())
    assert.equal(1, n)
    assert.same({ 3 }, out:read())
    s:close()
  end)

  it("memory used on one outlives it, and is freed after it", function()
    local before = tp.memory_stats()
    local kept <close> = tp.zeros("i32", 4)
    tp.default_stream():synchronize()
    local s = tp.ExternalStream(PER_THREAD)
    local g <close> = gate.new()
    g:hold(s)
    do
      local lost = tp.buffer("i32", { 1, 2, 3, 4 }, { stream = s })
      tp.with_stream(s, kept.write, kept, lost)
      lost:close() -- used by queued work
    end
    s:close() -- only forgets it
    local other <close> = tp.Stream()
    local filler = {}
    for i = 1, 20 do
      filler[i] = tp.buffer("i32", { 9, 9, 9, 9 }, { stream = other })
    end
    other:synchronize()
    g:open()
    tp.current_device():synchronize()
    assert.same({ 1, 2, 3, 4 }, kept:read())
    for i = 1, 20 do filler[i]:close() end
    kept:close()
    tp.current_device():synchronize()
    assert.equal(before.live_count, tp.memory_stats().live_count)
  end)

  it("closing waits for nothing and is no error while work is queued",
    function()
      local out <close> = tp.zeros("i32", 1)
      tp.default_stream():synchronize()
      local s = tp.ExternalStream(PER_THREAD)
      local g <close> = gate.new()
      g:hold(s)
      gate.run(s, "put", out, 0, 8)
      s:close()
      s:close()
      assert.is_false(tp.current_device():synchronize(1))
      g:open()
      tp.current_device():synchronize()
      assert.same({ 8 }, out:read())
    end)

  it("can't be closed while it is current", function()
    local s = tp.ExternalStream(PER_THREAD)
    tp.with_stream(s, function()
      assert.equal(s, tp.current_stream())
      assert.is_false(pcall(s.close, s))
    end)
    s:close()
  end)

  if simulated then
    it("refuses a handle that the simulated device has not given", function()
      local s = tp.Stream()
      local handle = s:handle()
      s:close()
      for _, bad in ipairs { handle, 3, 0x7fff12345678, -1 } do
        local ok, e = pcall(tp.ExternalStream, bad)
        assert.is_false(ok)
        assert.equal("cudaErrorInvalidResourceHandle", e.code)
        assert.matches(("0x%x"):format(bad), tostring(e), 1, true)
        assert.matches("sim:0 has no stream with the handle", tostring(e))
      end
    end)

    it("knows streams of its own device only", function()
      local s <close> = tp.Stream "sim:0"
      local ok, e = pcall(tp.ExternalStream, s:handle(), "sim:1")
      assert.is_false(ok)
      assert.matches("sim:1 has no stream", tostring(e))
    end)
  end
end)

describe("at the end", function()
  it("an external stream left open with work queued is waited for", function()
    local r = run.script [[
local tp = require "tpstream"
local m = require "spec.support.program"("say",
  'extern "C" __global__ void say() { printf("said\\n"); }')
local s = tp.ExternalStream(2)
m:kernel "say":launch({ grid = 1, block = 1, stream = s })
s:on_complete(print, "called")
if not arg[-1]:match "tpstream" then s:synchronize() end]]
    assert.equal("called\nsaid\n", (r.stdout:gsub("^said\ncalled\n",
      "called\nsaid\n")))
    assert.equal("", r.stderr)
    assert.equal(0, r.status)
  end)
end)
