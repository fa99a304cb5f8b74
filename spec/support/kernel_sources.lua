-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the files in kernels/ptx were made from, and should be made from.
local instances = dofile "lua/tpstream/kernels_instances.lua"

local sources = {}

function sources.read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- Of all that an instance is made from.
function sources.checksum(id)
  local file = instances.defines(id)
  local text = id .. sources.read "kernels/types.cuh"
    .. sources.read "kernels/common.cuh"
    .. sources.read("kernels/" .. file .. ".cu")
  local h = 0xcbf29ce484222325
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return h
end

return sources
