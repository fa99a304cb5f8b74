-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels, the kernel library, and tp.map. This chunk gets the library and what
-- it needs of C (src/lua/kernels.c), and returns the table and the function. All
-- else is in files of its own, which are read when something is first asked for: a
-- script that uses none of it pays nothing. kernels_<topic>.lua gets `lib`, of
-- kernels_common.lua, and the table to put its functions into.
local tp, native = ...
local load = load

local TOPICS = { "vector", "reduce", "scan", "sort", "matrix", "convolution",
  "random" }

local function read(name, ...)
  return assert(load(native.text(name), "=tpstream/" .. name .. ".lua", "t"))(...)
end

local lib, map
local function common()
  lib = lib or read("kernels_common", tp, native, read "kernels_instances",
    read "misuse")
  return lib
end

-- All or nothing: what stops it halfway, out of memory or Ctrl-C, leaves all for the
-- next time.
local function fill(functions)
  if getmetatable(functions) == nil then return end
  local all = {}
  for _, topic in ipairs(TOPICS) do read("kernels_" .. topic, common(), all) end
  for name, fn in pairs(all) do functions[name] = fn end
  setmetatable(functions, nil)
end

local lazy = {}
function lazy.__index(functions, key)
  fill(functions)
  return functions[key]
end
function lazy.__pairs(functions)
  fill(functions)
  return next, functions, nil
end

return setmetatable({}, lazy), function(...)
  map = map or read("map", common())
  return map(...)
end
