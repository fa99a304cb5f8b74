-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Finds the handles that are still open after a full collection, by walking
-- everything that the Lua state can reach: independent of the library's own
-- counts, and able to say what holds each. Modules and kernels are not counted,
-- since specs compile once and share them, nor are default streams.
local handles = {}

local COUNTED = {
  ["tpstream.Stream"] = true, ["tpstream.Event"] = true,
  ["tpstream.Buffer"] = true, ["tpstream.Texture"] = true,
  ["tpstream.Surface"] = true, ["tpstream.Graph"] = true,
}

local function is_open(value)
  local meta = debug.getmetatable(value)
  local name = meta and rawget(meta, "__name")
  if not COUNTED[name] then return false end
  if tostring(value):find "closed" then return false end
  return name ~= "tpstream.Stream" or value:id() ~= 0
end

-- Each visit puts what a value refers to on the list, with how it got there.
local visit = {}

function visit.table(value, add)
  local meta = debug.getmetatable(value)
  local mode = meta and rawget(meta, "__mode")
  mode = type(mode) == "string" and mode or ""
  add(meta, "metatable")
  for k, v in next, value do
    local name = type(k) == "string" and k or "[" .. tostring(k) .. "]"
    if not mode:find "k" then add(k, "key " .. name) end
    if not mode:find "v" then add(v, name) end
  end
end

visit["function"] = function(value, add)
  for i = 1, math.huge do
    local name, v = debug.getupvalue(value, i)
    if not name then return end
    add(v, "upvalue " .. name)
  end
end

function visit.userdata(value, add)
  add(debug.getmetatable(value), "metatable")
  for i = 1, math.huge do
    local v, there = debug.getuservalue(value, i)
    if not there then return end
    add(v, "user value")
  end
end

function visit.thread(value, add)
  for level = 0, math.huge do
    local info = debug.getinfo(value, level, "f")
    if not info then return end
    add(info.func, "running function")
    for _, step in ipairs { 1, -1 } do
      for i = step, step * math.huge, step do
        local name, v = debug.getlocal(value, level, i)
        if not name then break end
        add(v, "local " .. name)
      end
    end
  end
end

-- An array of {handle, path} of the open ones.
function handles.open()
  collectgarbage()
  collectgarbage()
  local seen, list, paths, found = {}, {}, {}, {}
  local from
  local function add(value, how)
    local kind = type(value)
    if not visit[kind] or seen[value] then return end
    seen[value] = true
    list[#list + 1] = value
    paths[#paths + 1] = from and from .. " > " .. how or how
  end
  seen[seen], seen[list], seen[paths], seen[found] = true, true, true, true
  add(debug.getregistry(), "registry")
  local running, main = coroutine.running()
  if not main then add(running, "running coroutine") end
  local i = 0
  while i < #list do
    i = i + 1
    local value = list[i]
    from = paths[i]
    visit[type(value)](value, add)
    if type(value) == "userdata" and is_open(value) then
      found[#found + 1] = { value, paths[i] }
    end
    list[i] = false
  end
  return found
end

-- Those open now that were not at an earlier time; `before` is a weak set.
function handles.new_since(before)
  local new = {}
  for _, pair in ipairs(handles.open()) do
    if not before[pair[1]] then new[#new + 1] = pair end
  end
  return new
end

function handles.set()
  local set = setmetatable({}, { __mode = "k" })
  for _, pair in ipairs(handles.open()) do set[pair[1]] = true end
  return set
end

return handles
