-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Events: events between processes.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"

-- Waits for a handle in the file of its argument, then tells what it sees.
local CHILD = [=[
local tp = require "tpstream"
io.stdout:setvbuf "line"
local s = tp.Stream()
s:synchronize()
print "ready"
local file
repeat file = io.open(arg[1], "rb") until file
local e = tp.Event.from_ipc_handle(tp.current_device(), file:read "a")
file:close()
print(e:device() == tp.current_device(), e:handle() ~= 0)
s:wait_event(e)
print(e:query(), s:query())
print(e:synchronize(), s:synchronize())
e:record(s)
print(e:synchronize())
e:close()
print "end"
]=]

local function start_child(handle_file)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write(CHILD)
  file:close()
  return assert(io.popen(("timeout 60 '%s' '%s' '%s'"):format(
    run.interpreter(), path, handle_file))), path
end

local function put(path, bytes)
  local file <close> = assert(io.open(path .. ".part", "wb"))
  assert(file:write(bytes))
  file:close()
  assert(os.rename(path .. ".part", path))
end

describe("an event between processes", function()
  it("must be made for that", function()
    local e <close> = tp.Event()
    local ok, message = pcall(e.ipc_handle, e)
    assert.is_false(ok)
    assert.matches("interprocess", message)
  end)

  it("handles of the wrong kind and size are refused", function()
    for _, bad in ipairs { "", ("x"):rep(63), ("x"):rep(65) } do
      local ok, message = pcall(tp.Event.from_ipc_handle, 0, bad)
      assert.is_false(ok)
      assert.matches("64 bytes", message)
      assert.matches(tostring(#bad), message)
    end
    for _, bad in ipairs { 5, {}, true } do
      assert.is_false(pcall(tp.Event.from_ipc_handle, 0, bad))
    end
    assert.is_false(pcall(tp.Event.from_ipc_handle, 99, ("x"):rep(64)))
    assert.is_false(pcall(tp.Event.from_ipc_handle, 0))
  end)

  if simulated then
    it("is a clear error on the simulated device", function()
      local e <close> = tp.Event { interprocess = true }
      local calls = {
        function() e:ipc_handle() end,
        function() tp.Event.from_ipc_handle(0, ("x"):rep(64)) end,
      }
      for _, call in ipairs(calls) do
        local ok, err = pcall(call)
        assert.is_false(ok)
        assert.equal("cudaErrorNotSupported", err.code)
        assert.matches("simulated device", tostring(err))
      end
      e:record() -- else an event like any other
      assert.is_true(e:synchronize())
    end)
    return
  end

  it("orders the work of both", function()
    local handle_file = os.tmpname()
    os.remove(handle_file)
    local s <close> = tp.Stream()
    local e <close> = tp.Event { interprocess = true }
    local child, path = start_child(handle_file)
    assert.equal("ready", child:read())
    local g <close> = gate.new()
    g:hold(s)
    e:record(s)
    local handle = e:ipc_handle()
    assert.equal(64, #handle)
    put(handle_file, handle)
    assert.equal("true\ttrue", child:read())
    assert.equal("false\tfalse", child:read())
    assert.is_false(e:query())
    g:open()
    assert.equal("true\ttrue", child:read())
    assert.equal("true", child:read())
    assert.is_true(e:synchronize())
    assert.equal("end", child:read())
    assert.is_true(child:close())
    assert.is_true(e:query())
    os.remove(handle_file)
    os.remove(path)
  end)

  it("can be exported before it is recorded", function()
    local e <close> = tp.Event { interprocess = true }
    assert.equal(64, #e:ipc_handle())
    assert.not_equal(0, e:handle())
    e:record()
    assert.is_true(e:synchronize())
  end)
end)
