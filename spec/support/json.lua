-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- A strict reader of JSON (RFC 8259), for specs of what is written as such:
--
--   local json = require "spec.support.json"
--   local value = json.read(text)     raises "at byte 12: …" for what is none
--
-- Objects and arrays become tables, null json.null. Text has to be valid UTF-8, a key
-- may come once only, nothing may follow the value.
local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local function fail(at, ...)
  error(("at byte %d: %s"):format(at, string.format(...)), 0)
end

local function skip(text, at) return text:match("^[ \t\r\n]*()", at) end

local ESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f",
  n = "\n", r = "\r", t = "\t" }

local function hex(text, at)
  local digits = text:match("^\\u(%x%x%x%x)", at)
  if not digits then fail(at, "a bad escape") end
  return tonumber(digits, 16)
end

-- The character of a \u escape, of two where the first is half of one.
local function unescape(text, at)
  local code = hex(text, at)
  if code >= 0xDC00 and code < 0xE000 then fail(at, "half a character") end
  if code < 0xD800 or code > 0xDBFF then return utf8.char(code), at + 6 end
  local low = hex(text, at + 6)
  if low < 0xDC00 or low > 0xDFFF then fail(at, "half a character") end
  return utf8.char(0x10000 + (code - 0xD800 << 10) + (low - 0xDC00)), at + 12
end

local function read_string(text, at)
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('[%c"\\]', from)
    if not stop then fail(at, "a string without an end") end
    parts[#parts + 1] = text:sub(from, stop - 1)
    local c = text:sub(stop, stop)
    if c == '"' then
      return table.concat(parts), stop + 1
    elseif c ~= "\\" then
      if c ~= "\127" then fail(stop, "a control character in a string") end
      parts[#parts + 1], from = c, stop + 1
    else
      local e = text:sub(stop + 1, stop + 1)
      if e == "u" then
        parts[#parts + 1], from = unescape(text, stop)
      else
        if not ESCAPES[e] then fail(stop, "a bad escape") end
        parts[#parts + 1], from = ESCAPES[e], stop + 2
      end
    end
  end
end

local function read_number(text, at)
  local whole, to = text:match("^(%-?%d+)()", at)
  if not whole or whole:find "^%-?0%d" then fail(at, "no number") end
  local fraction, after = text:match("^(%.%d+)()", to)
  to = after or to
  local power, last = text:match("^([eE][+-]?%d+)()", to)
  return tonumber(whole .. (fraction or "") .. (power or "")), last or to
end

local read

local function read_array(text, at)
  local array = {}
  at = skip(text, at + 1)
  if text:sub(at, at) == "]" then return array, at + 1 end
  while true do
    array[#array + 1], at = read(text, at)
    at = skip(text, at)
    local c = text:sub(at, at)
    if c == "]" then return array, at + 1 end
    if c ~= "," then fail(at, "',' or ']' expected") end
    at = skip(text, at + 1)
  end
end

local function read_object(text, at)
  local object = {}
  at = skip(text, at + 1)
  if text:sub(at, at) == "}" then return object, at + 1 end
  while true do
    if text:sub(at, at) ~= '"' then fail(at, "a key expected") end
    local key, value
    local from = at
    key, at = read_string(text, at)
    if object[key] ~= nil then fail(from, "'%s' again", key) end
    at = skip(text, at)
    if text:sub(at, at) ~= ":" then fail(at, "':' expected") end
    value, at = read(text, skip(text, at + 1))
    object[key] = value
    at = skip(text, at)
    local c = text:sub(at, at)
    if c == "}" then return object, at + 1 end
    if c ~= "," then fail(at, "',' or '}' expected") end
    at = skip(text, at + 1)
  end
end

local WORDS = { ["true"] = true, ["false"] = false, null = json.null }

function read(text, at)
  local c = text:sub(at, at)
  if c == "{" then return read_object(text, at) end
  if c == "[" then return read_array(text, at) end
  if c == '"' then return read_string(text, at) end
  local word, to = text:match("^(%l+)()", at)
  if word then
    if WORDS[word] == nil then fail(at, "'%s' is no value", word) end
    return WORDS[word], to
  end
  return read_number(text, at)
end

function json.read(text)
  local fine, bad = utf8.len(text)
  if not fine then fail(bad, "no UTF-8") end
  local value, at = read(text, skip(text, 1))
  at = skip(text, at)
  if at <= #text then fail(at, "something after the value") end
  return value
end

return json
