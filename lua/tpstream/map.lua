-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.map(expression, types [, options]) → Kernel: statements in CUDA C++ that run
-- once for each element. This chunk gets `lib` and returns the function.
local lib = ...
local tp, native, types = lib.tp, lib.native, lib.types

local function bad(argument, ...) lib.bad("map", argument, ...) end

-- ---- the expression --------------------------------------------------------------

-- Whether a number goes on up to there: a ' in it only groups its digits.
local function number_before(text, at)
  return text:sub(math.max(1, at - 80), at - 1):find "%f[%w_']%d[%w']*$" ~= nil
end

-- The text with blanks for comments, character and string literals.
local function without_literals(text)
  local function blanks(s) return (s:gsub("[^\n]", " ")) end
  local out, at = {}, 1
  while at <= #text do
    local two, stop = text:sub(at, at + 1), nil
    if two == "//" then
      stop = (text:find("\n", at, true) or #text + 1) - 1
    elseif two == "/*" then
      stop = select(2, text:find("*/", at + 2, true)) or #text
    elseif two:find "^[\"']" and not number_before(text, at) then
      local quote = two:sub(1, 1)
      stop = at + 1
      while stop <= #text and text:sub(stop, stop) ~= quote do
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
    end
    out[#out + 1] = stop and blanks(text:sub(at, stop)) or text:sub(at, at)
    at = (stop or at) + 1
  end
  return table.concat(out)
end

local ASSIGNS = { "^%s*[-+*/%%&|^]?=[^=]", "^%s*<<=", "^%s*>>=", "^%s*%+%+",
  "^%s*%-%-" }

-- The names that stand alone in it, in order: {name → place}; and those that
-- something is assigned to.
local function read_names(text)
  local order, assigned, count = {}, {}, 0
  for before, name, after in text:gmatch "()([%a_][%w_]*)()" do
    local ahead = text:sub(1, before - 1)
    local member = ahead:find "%.%s*$" and not ahead:find "%.%.%.%s*$"
      or ahead:find "%->%s*$"
    local number = ahead:find "[%w_.]$"
    if not member and not number then
      if not order[name] then
        count = count + 1
        order[name] = count
      end
      local rest = text:sub(after, after + 80) .. " "
      for _, pattern in ipairs(ASSIGNS) do
        if rest:find(pattern) then assigned[name] = true end
      end
      if ahead:find "%+%+%s*$" or ahead:find "%-%-%s*$" then assigned[name] = true end
    end
  end
  return order, assigned
end

-- ---- the declarations ------------------------------------------------------------

local RESERVED = { i = "the index", n = "the count" }

-- "f32*" an element of an array, "f32[]" the array itself, "f32" a number.
local function read_type(name, text)
  if type(text) ~= "string" then
    bad(2, "'%s': string expected, got %s", name, lib.type_name(text))
  end
  local word, kind = text:match "^%s*(%w+)%s*(%*?)%s*$"
  if not word then
    word = text:match "^%s*(%w+)%s*%[%s*%]%s*$"
    kind = word and "[]"
  end
  local t = word and types[word]
  if not t and not (word == "bool" and kind == "") then
    bad(2, "'%s': unknown type '%s' (an element type, 'f32', one with '*' for an "
      .. "array's element, or with '[]' for the array itself)", name, text)
  end
  if not t then return { type = "bool", kind = "" } end
  return { type = t.short, half = t.half, kind = kind }
end

local function declare(list, name, text)
  if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
    bad(2, "'%s' is not a name", tostring(name))
  elseif RESERVED[name] then
    bad(2, "'%s' is %s", name, RESERVED[name])
  elseif list[name] then
    bad(2, "'%s' is declared twice", name)
  end
  local d = read_type(name, text)
  d.name = name
  list[#list + 1], list[name] = d, d
end

-- In the order given, or that of their first use.
local function read_declarations(argument, order)
  local list = {}
  if type(argument) ~= "table" then
    bad(2, "table expected, got %s", lib.type_name(argument))
  end
  if #argument > 0 then
    for k, text in ipairs(argument) do
      local word, name = tostring(text):match "^(.-)([%a_][%w_]*)%s*$"
      if not name then bad(2, "#%d: 'type name' expected, got '%s'", k, text) end
      declare(list, name, word)
    end
  end
  for name, text in pairs(argument) do
    if math.type(name) ~= "integer" or name < 1 or name > #argument then
      if #argument > 0 then bad(2, "both an array and names") end
      declare(list, name, text)
    end
  end
  for _, d in ipairs(list) do
    if not order[d.name] then
      bad(2, "'%s' does not occur in the expression", d.name)
    end
  end
  if #argument == 0 then
    table.sort(list, function(a, b) return order[a.name] < order[b.name] end)
  end
  if #list == 0 then bad(2, "nothing is declared") end
  return list
end

-- ---- the kernel --------------------------------------------------------------------

-- Text, with #line so that what the compiler says, and where a fault is, counts from
-- its beginning.
local function numbered(name, text) return ('#line 1 "%s"\n%s\n'):format(name, text) end

local function parameter(d, assigned)
  if d.kind == "*" then
    return ("%s%s *_tp_%s"):format(assigned and "" or "const ", d.type, d.name)
  elseif d.kind == "[]" then
    return ("%s *%s"):format(d.type, d.name)
  end
  return ("const %s %s"):format(d.half and "f32" or d.type, d.name)
end

-- An element is a variable: loaded before, and stored after if it is assigned to, which
-- counts as the expression's first and last line. Halves are computed with in f32.
local function source_of(expression, list, assigned, preamble)
  local parameters, loads, stores = {}, {}, {}
  for k, d in ipairs(list) do
    parameters[k] = parameter(d, assigned[d.name])
    if d.kind == "*" then
      loads[#loads + 1] = ("%s%s %s = _tp_%s[i];"):format(
        assigned[d.name] and "" or "const ", d.half and "f32" or d.type, d.name,
        d.name)
      if assigned[d.name] then
        stores[#stores + 1] = ("_tp_%s[i] = %s(%s);"):format(d.name, d.type, d.name)
      end
    end
  end
  parameters[#parameters + 1] = "const i64 n"
  local last = 1 + select(2, expression:gsub("%s+$", ""):gsub("\n", ""))
  return table.concat({
    '#include "types.cuh"',
    preamble and numbered("preamble", preamble) or "",
    '#line 1 "map"',
    ('extern "C" __global__ void map(%s) {'):format(table.concat(parameters, ", ")),
    "const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;",
    "if (i >= n) return;",
    numbered("expression", table.concat(loads, " ")),
    numbered("expression", expression),
    ";",
    ('#line %d "expression"'):format(last),
    table.concat(stores, " "),
    "}",
  }, "\n")
end

local OPTIONS = { preamble = "string" }

return function(expression, declarations, opts)
  if type(expression) ~= "string" then
    bad(1, "string expected, got %s", lib.type_name(expression))
  end
  opts = lib.options("map", 3, opts, OPTIONS)
  local order, assigned = read_names(without_literals(expression))
  local list = read_declarations(declarations, order)
  local stores, names = false, {}
  for _, d in ipairs(list) do
    if d.kind ~= "" then names[#names + 1] = "'" .. d.name .. "'" end
    stores = stores or d.kind == "[]" or d.kind == "*" and assigned[d.name]
  end
  if #names == 0 then bad(2, "no array is declared") end
  if not stores then
    bad(1, "nothing is assigned to an element (there %s %s)",
      #names == 1 and "is" or "are", table.concat(names, ", "))
  end
  local module = tp.compile(source_of(expression, list, assigned, opts.preamble), {
    name = "map", headers = lib.headers,
  })
  local parameters = {}
  for k, d in ipairs(list) do parameters[k] = d.name end
  parameters[#parameters + 1] = "n"
  return native.counted(module:kernel "map", table.concat(parameters, ", "))
end
