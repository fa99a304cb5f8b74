-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the compiler said, for people: for each diagnostic the file and line, the
-- line itself and a caret below the place.
local diagnostics = {}

-- Blanks as wide as the first n characters of text; tabs stay.
local function blanks(text, n)
  local wide = text:gsub("[\x80-\xBF]", "") -- one byte for each
  return (wide:sub(1, n):gsub("[^\t]", " "))
end

-- "error", "warning #177": the number is what -diag-suppress takes.
local function kind(d)
  if d.severity ~= "warning" or d.number == 0 then return d.severity end
  return ("warning #%d"):format(d.number)
end

-- A source may hold what a terminal would obey.
local function harmless(text)
  return (text:gsub("[\0-\8\11-\31\127]", "?"))
end

local function append(lines, d)
  local place = d.line > 0 and ("%s:%d"):format(d.file, d.line) or d.file
  local message = d.message:gsub("\n%s*", "\n    ")
  lines[#lines + 1] = ("%s: %s: %s"):format(place, kind(d), message)
  if not d.text then return end
  lines[#lines + 1] = "  " .. d.text
  if d.column > 0 then
    lines[#lines + 1] = "  " .. blanks(d.text, d.column - 1) .. "^"
  end
end

local function count_errors(all)
  local n = 0
  for _, d in ipairs(all) do
    if d.severity == "error" then n = n + 1 end
  end
  return ("compilation failed: %d error%s"):format(n, n == 1 and "" or "s")
end

-- One text. summary: of a failure, nil when there was none; log: what there is
-- besides, for a failure all that the compiler said, shown for want of better; all:
-- array of {severity, number, file, line, column, message, text}.
function diagnostics.text(summary, log, all)
  if summary and #all == 0 then
    return log == "" and summary
      or "compilation failed\n" .. harmless(log:gsub("%s+$", ""))
  end
  local lines = { summary and count_errors(all) }
  for _, d in ipairs(all) do append(lines, d) end
  local text = harmless(table.concat(lines, "\n"))
  if summary then return text end
  return #lines == 0 and log or text .. "\n" .. log
end

-- The files of the modules that have been required.
function diagnostics.files()
  local paths = {}
  for name in pairs(package.loaded) do
    local path = type(name) == "string"
      and package.searchpath(name, package.path)
    if path then paths[#paths + 1] = path end
  end
  table.sort(paths)
  return paths
end

return diagnostics
