-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Memory: memory of several processes. With a GPU another
-- Lua process and, where Python has it, CuPy work on the same bytes; the simulated
-- device says that it has no such thing.
local tp = require "tpstream"
local message_of = require("spec.support.errors").message
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local function output_of(command, ...)
  local words = { command }
  for _, word in ipairs { ... } do words[#words + 1] = "'" .. word .. "'" end
  local pipe = assert(io.popen(table.concat(words, " ")))
  local text = pipe:read "a"
  return text, pipe:close()
end

local CHILD = [=[
local tp = require "tpstream"
local handle = arg[1]:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end)
local b <close> = tp.open_ipc(0, handle)
io.write(b:dtype(), " ", table.concat(b:read(), " "))
b:fill(-1)
tp.current_stream():synchronize()
]=]

local CUPY = [=[
import sys, cupy
from cupy.cuda import runtime
try:
    p = runtime.ipcOpenMemHandle(bytes.fromhex(sys.argv[1])[:64])
    m = cupy.cuda.UnownedMemory(p, 16, None)
    a = cupy.ndarray((4,), cupy.float32, cupy.cuda.MemoryPointer(m, 0))
    print(*a.get(), end="")
    a *= 10
    cupy.cuda.runtime.deviceSynchronize()
    del a
    runtime.ipcCloseMemHandle(p)
except Exception as e:
    print("failed", e)
]=]

describe("memory of several processes", function()
  it("is asked for", function()
    local b <close> = tp.buffer("f32", 4)
    assert.equal("only a buffer made with ipc=true has a handle for other " ..
      "processes", message_of(b.ipc_handle, b))
    local h <close> = tp.pinned("f32", 4)
    assert.matches("^only a buffer made with ipc=true", message_of(h.ipc_handle,
      h))
    assert.matches("field 'ipc': boolean expected, got number",
      message_of(tp.buffer, "f32", 4, { ipc = 1 }))
  end)

  it("has handles of a certain size", function()
    for _, bad in ipairs { "", ("x"):rep(63), ("x"):rep(80), ("x"):rep(82) } do
      assert.equal(("bad argument #2 to 'open_ipc' (a handle has 64 or 81 " ..
        "bytes, got %d)"):format(#bad), message_of(tp.open_ipc, 0, bad))
    end
    assert.equal("bad argument #2 to 'open_ipc' (no handle of a buffer's)",
      message_of(tp.open_ipc, 0, ("x"):rep(81)))
    local huge = ("x"):rep(64) .. string.pack("<i8i8B", 0, 1 << 62, 11)
    assert.equal("bad argument #2 to 'open_ipc' (no handle of a buffer's)",
      message_of(tp.open_ipc, 0, huge, "u8"))
    assert.matches("string expected", message_of(tp.open_ipc, 0, 5))
    assert.matches("no device", message_of(tp.open_ipc, 99, ("x"):rep(64)))
    assert.matches("unknown element type", message_of(tp.open_ipc, 0,
      ("x"):rep(64), "q8"))
  end)

  if simulated then
    it("is a clear error on the simulated device", function()
      for _, call in ipairs {
        function() return tp.buffer("f32", 4, { ipc = true }) end,
        function() return tp.zeros("f32", 4, { ipc = true }) end,
        function() return tp.open_ipc(0, ("x"):rep(64)) end,
      } do
        local text, e = message_of(call)
        assert.equal("cudaErrorNotSupported", e.code)
        assert.matches("^the simulated device has no memory for other processes",
          text)
      end
      local none <close> = tp.buffer("f32", 0, { ipc = true })
      assert.equal(0, #none)
    end)
    return
  end

  it("is read and written by another process", function()
    local b <close> = tp.buffer("i16", { 1, 2, 3, 4, 5 }, { ipc = true })
    local slice <close> = b:slice(2, 3)
    tp.current_stream():synchronize()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(CHILD)
    file:close()
    local text = output_of(run.interpreter(), path, hex(slice:ipc_handle()))
    os.remove(path)
    assert.equal("int16 2 3 4", text)
    assert.same({ 1, -1, -1, -1, 5 }, b:read())
  end)

  it("is shared with CuPy", function()
    if output_of "python3 -c 'import cupy' && echo yes" ~= "yes\n" then
      pending "needs Python with CuPy"
      return
    end
    local b <close> = tp.buffer("f32", { 1, 2, 3, 4 }, { ipc = true })
    tp.current_stream():synchronize()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(CUPY)
    file:close()
    local text = output_of("python3", path, hex(b:ipc_handle()))
    os.remove(path)
    assert.equal("1.0 2.0 3.0 4.0", text)
    assert.same({ 10.0, 20.0, 30.0, 40.0 }, b:read())
  end)

  it("is given back", function()
    local before = tp.memory_stats()
    for _ = 1, 50 do
      local b = tp.buffer("u8", 1 << 20, { ipc = true })
      b:fill(1)
      b:close()
    end
    tp.current_device():synchronize()
    local free = tp.current_device():memory()
    assert.is_true(free > 0)
    assert.equal(before.live_bytes, tp.memory_stats().live_bytes)
  end)
end)
