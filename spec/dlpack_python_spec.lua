-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Memory: arrays exchanged with another library in one
-- process. Python has a Lua state with the module, reads what DLPack says of buffers,
-- and on a GPU PyTorch works on their bytes and Lua on PyTorch's.
local tp = require "tpstream"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"
local module = (os.getenv "TPS_BUILD" or "build") .. "/tpstream.so"

local function python(code)
  return run.command({ "python3", "-c", code }).status == 0
end

local function output_of(...)
  local r = run.command { "python3", "spec/support/dlpack.py", module, ... }
  assert.equal(0, r.status, r.stdout .. r.stderr)
  return r.stdout
end

describe("DLPack in a process of Python's", function()
  if (os.getenv "TPS_SANITIZE" or "") ~= "" then
    pending "Python can't load a sanitized module"
    return
  elseif not python "import ctypes; ctypes.CDLL('liblua5.4.so.0')" then
    pending "needs Python and liblua5.4.so.0"
    return
  end

  -- kDLCUDA 2, kDLCUDAHost 3, kDLCUDAManaged 13; of the simulated device: kDLExtDev 12,
  -- and for what the host reaches kDLCPU 1.
  local TYPES = simulated and { 12, 1, 1 } or { 2, 3, 13 }

  it("says what and where the memory is", function()
    assert.equal(([[
buffer %d 0 1 0 16 1 3 0
pinned %d 0 1 0 16 1 3 0
1 -14 3 -14
managed %d 0 1 0 16 1 3 0
1 -14 3 -14
closed
]]):format(table.unpack(TYPES)), output_of())
  end)

  it("gives PyTorch the same memory, and takes its own", function()
    if simulated then return pending "needs a GPU" end
    if not python "import torch; assert torch.cuda.is_available()" then
      return pending "needs PyTorch"
    end
    assert.matches([=[
cuda torch.float32 [2.0, 3.0, 4.0]
1.0 20.0 30.0 40.0
[20.0, 30.0, 40.0]
int32 1 3 5 7 9 11
[[1, 3, 5], [7, 9, 11]]
closed
]=], output_of "torch", 1, true)
  end)
end)
