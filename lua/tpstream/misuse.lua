-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Errors of misuse, in Lua's own wording. Returns where() → "script.lua:3: " of
-- the script's line that called the library, misuse(format, ...), which raises,
-- type_name(value), and check_callable(value, name) for argument 1 of a function.
local debug, error, type = debug, error, type

local function where()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return "" end
    if info.currentline > 0 and not info.source:find "^=tpstream/" then
      return ("%s:%d: "):format(info.short_src, info.currentline)
    end
    level = level + 1
  end
end

local function misuse(...)
  error(where() .. string.format(...), 0)
end

local function type_name(value)
  local meta = debug.getmetatable(value)
  local name = type(meta) == "table" and meta.__name
  return type(name) == "string" and name or type(value)
end

local function check_callable(value, name)
  local meta = debug.getmetatable(value)
  if type(value) == "function" or type(meta) == "table" and meta.__call then
    return
  end
  misuse("bad argument #1 to '%s' (function expected, got %s)", name,
    type_name(value))
end

return where, misuse, type_name, check_callable
