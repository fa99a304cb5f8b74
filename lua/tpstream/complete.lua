-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the prompt can complete a word to. Returns complete(before, word) → array
-- of words, or nil inside a string, where file names are meant. `before` is the line
-- up to the word, which may be a path such as "tp.kernels.so" or "s:syn". Nothing of
-- the script's is called on the way: fields are looked up raw, and in tables that
-- __index names.
local getmetatable, getupvalue = debug.getmetatable, debug.getupvalue
local rawequal, rawget, type, next, pairs, ipairs = rawequal, rawget, type, next,
  pairs, ipairs
local find, match, sub, gsub, gmatch = string.find, string.match, string.sub,
  string.gsub, string.gmatch
local sort, huge, loaded, globals = table.sort, math.huge, package.loaded, _G

local KEYWORDS = {}
for word in ("and break do else elseif end false for function goto if in local nil "
  .. "not or repeat return then true until while"):gmatch "%a+" do
  KEYWORDS[word] = true
end

-- The table behind __index. The library's own may be a function, with the methods
-- as a table among its upvalues.
local function behind(value)
  local meta = getmetatable(value)
  local index = type(meta) == "table" and rawget(meta, "__index")
  if type(index) ~= "function" then return index end
  local own = rawget(meta, "__name")
  if type(own) ~= "string" or not find(own, "^tpstream%.") then return nil end
  for i = 1, huge do
    local name, upvalue = getupvalue(index, i)
    if not name then return nil end
    if type(upvalue) == "table" then return upvalue end
  end
end

-- The tables in which a field of the value is looked for. tp.kernels is filled when
-- it is first looked through.
local function tables_of(value)
  local list, seen = {}, {}
  local library = rawget(loaded, "tpstream")
  if type(library) == "table" and rawequal(value, rawget(library, "kernels")) then
    pairs(value)
  end
  while value ~= nil and value == value and not seen[value] and #list < 20 do
    seen[value] = true
    if type(value) == "table" then list[#list + 1] = value end
    value = behind(value)
  end
  return list
end

local function field(value, name)
  for _, t in ipairs(tables_of(value)) do
    local found = rawget(t, name)
    if found ~= nil then return found end
  end
  return nil
end

local function in_string(before)
  local quote
  for c in gmatch(gsub(before, "\\.", ""), "[\"']") do
    if not quote then quote = c elseif quote == c then quote = nil end
  end
  return quote ~= nil
end

return function(before, word)
  if in_string(before) then return nil end
  local head, rest = match(word, "^(.*%.%.)(.*)$") -- what is concatenated before
  head, word = head or "", rest or word
  local path, mark, begun = match(word, "^(.-)([.:]?)([%a_]?[%w_]*)$")
  local value, found, words = globals, {}, {}
  for name in gmatch(path, "[^.:]+") do value = field(value, name) end
  if path ~= "" and mark == "" then return words end
  local function add(key, what)
    if type(key) ~= "string" or not find(key, "^[%a_][%w_]*$") then return end
    if sub(key, 1, #begun) ~= begun then return end
    if find(key, "^__") and begun == "" then return end
    if mark == ":" and type(what) ~= "function" then return end
    found[key] = true
  end
  for _, t in ipairs(tables_of(value)) do
    for key, what in next, t do add(key, what) end
  end
  if mark == "" then for key in pairs(KEYWORDS) do add(key) end end
  for key in pairs(found) do words[#words + 1] = head .. path .. mark .. key end
  sort(words)
  return words
end
