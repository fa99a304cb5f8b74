-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What a failed compile shows: for each diagnostic the file and line, the line
-- itself and a caret below the place. Returns a function of a summary and the
-- compiler's whole log, both for want of diagnostics, and the diagnostics
-- {severity, file, line, column, message, text}, which gives one text.

-- Blanks as wide as the first n bytes of text; tabs stay.
local function blanks(text, n)
  return (text:sub(1, n):gsub("[\x80-\xBF]", ""):gsub("[^\t]", " "))
end

local function append(lines, d)
  local place = d.line > 0 and ("%s:%d"):format(d.file, d.line) or d.file
  lines[#lines + 1] = ("%s: %s: %s"):format(place, d.severity, d.message)
  if not d.text then return end
  lines[#lines + 1] = "  " .. d.text
  if d.column > 0 then
    lines[#lines + 1] = "  " .. blanks(d.text, d.column - 1) .. "^"
  end
end

local function count_errors(diagnostics)
  local n = 0
  for _, d in ipairs(diagnostics) do
    if d.severity == "error" then n = n + 1 end
  end
  return ("compilation failed: %d error%s"):format(n, n == 1 and "" or "s")
end

return function(summary, log, diagnostics)
  if #diagnostics == 0 then
    return log == "" and summary or summary .. "\n" .. log:gsub("%s+$", "")
  end
  local lines = { count_errors(diagnostics) }
  for _, d in ipairs(diagnostics) do append(lines, d) end
  return table.concat(lines, "\n")
end
