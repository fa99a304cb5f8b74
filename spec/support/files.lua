-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Whole files, as bytes.
local files = {}

function files.read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- Returns the path.
function files.write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
  return path
end

-- The path of a new folder. Whoever asks for it takes it away: files.remove(path).
function files.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir '" .. path .. "'"))
  return path
end

function files.remove(path) assert(os.execute("rm -rf '" .. path .. "'")) end

return files
