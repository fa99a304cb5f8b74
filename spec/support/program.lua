-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Kernels of the specs: compiled where there is NVRTC, else taken from spec/ptx, so
-- that a machine without a CUDA toolkit runs the same specs.
--
--   local program = require "spec.support.program"
--   local module = program("warp", SOURCE [, options])
--
-- With the option `stored` a file that is up to date serves everywhere, for what
-- takes long to compile.
--
-- With TPS_WRITE_PTX=1 each one writes its file anew (on the simulated device). A
-- file begins with a checksum of its source; one that has been left behind by a change
-- is an error wherever NVRTC could make it.
local tp = require "tpstream"

local function checksum(text)
  local h = 0xcbf29ce484222325
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(h)
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local write = require("spec.support.files").write

return function(name, source, options)
  local path = "spec/ptx/" .. name .. ".ptx"
  local head = "// made from a source with checksum " .. checksum(source) .. "\n"
  local stored = read(path)
  options = options or {}
  if options.stored and not os.getenv "TPS_WRITE_PTX" and stored
    and stored:sub(1, #head) == head then
    return tp.load(stored)
  end
  options.stored = nil
  options.name = options.name or "program.cu"
  local ok, module = pcall(tp.compile, source, options)
  if ok then
    if os.getenv "TPS_WRITE_PTX" then
      write(path, head .. module:ptx():gsub("^.-(%.version)", "%1"))
    elseif not stored or stored:sub(1, #head) ~= head then
      error(path .. " is not what its source compiles to; run the specs once "
        .. "with TPS_WRITE_PTX=1", 2)
    end
    return module
  end
  if module.code ~= "TPSTREAM_ERROR_NO_COMPILER" or not stored then
    error(module, 0)
  end
  return tp.load(stored)
end
