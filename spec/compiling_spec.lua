-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/compiling.md: each program on it is run, on the simulated device, and prints
-- what the page says. With TPS_WRITE_DOCS=1 the page gets what is printed; to be
-- read before it is committed. What no program here can print (it takes another
-- machine) is worded as the sources word it.
local files = require "spec.support.files"
local run = require "spec.support.run"

local PATH = "docs/compiling.md"
local VERSION = "13.0" -- of the NVRTC that the page quotes

local interpreter = run.interpreter()
if interpreter:find "/" and interpreter:sub(1, 1) ~= "/" then
  interpreter = os.getenv "PWD" .. "/" .. interpreter
end

-- What is not the same everywhere: where the toolkit lies, what the command is
-- called, what calls the script.
local function normalised(text)
  return (text:gsub("\nstack traceback:.*", "\n")
    :gsub("^%S+: (script.lua)", "tpstream: %1")
    :gsub("(['I])/[%w%./_-]*/include", "%1/usr/local/cuda/include"))
end

-- Programs of the page: what is printed, by the program's text.
local function programs(page)
  local list = {}
  for before, program, printed in
    page:gmatch "([^\n]*)\n```lua\n(.-)```\n```text\n(.-)```\n" do
    local settings, env = before:match "<!%-%- env (.+) %-%->"
    for name, value in (settings or ""):gmatch "(%S+)=(%S+)" do
      env = env or {}
      env[name] = value
    end
    list[#list + 1] = { text = program, printed = printed, env = env }
  end
  return list
end

local function output(program, folder)
  files.write(folder .. "/script.lua", program.text)
  local env = { TPSTREAM_DEVICE = "sim", TPSTREAM_SIM_CAPABILITY = false,
    TPS_COUNTS = "1", TPSTREAM_CACHE_DIR = folder .. "/cache" }
  for k, v in pairs(program.env or {}) do env[k] = v end
  local r = run.command({ "sh", "-c",
    ("cd '%s' && exec '%s' script.lua"):format(folder, interpreter) }, { env = env })
  if not program.env and (r.stdout .. r.stderr):find("NO_COMPILER", 1, true) then
    error(r.stdout .. r.stderr, 0)
  end
  return r.stdout .. normalised(r.stderr)
end

-- What the page shows that no program prints: a line each, or all of a block.
local function messages_of_others(page)
  local list, last = {}, ""
  for before, kind, block in page:gmatch "([^\n]*)\n```(%a*)\n(.-)\n```" do
    local whole = before == "<!-- one message -->"
    if kind == "text" and last ~= "lua" then
      for message in block:gmatch(whole and ".+" or "[^\n]+") do
        list[#list + 1] = message
      end
    end
    last = kind
  end
  return list
end

-- The formats of messages in C, as patterns.
local function formats(folders)
  local list = {}
  local pipe <close> = assert(io.popen("cat " .. folders))
  local text = pipe:read "a":gsub('\\"', "'"):gsub('"%s*\n%s*"', "")
  for literal in text:gmatch '"([^"\n]+)"' do
    local fixed = literal:gsub("%%[%d.*lz]*%a", "\0")
    if #fixed:gsub("%z", "") > 8 then
      list[#list + 1] = "^" .. fixed:gsub("%p", "%%%0"):gsub("%z", ".-") .. "$"
    end
  end
  return list
end

describe("docs/compiling.md", function()
  local page = files.read(PATH)
  local folder = files.folder()
  assert(os.execute("mkdir " .. folder .. "/include"))
  teardown(function() files.remove(folder) end)

  local known
  local function version()
    if known then return known end
    local text = output({ text = [[
print(select(2, pcall(require "tpstream".compile, "x", { options = { "-?" } })))
]] }, folder)
    known = text:match "NVRTC ([%d.]+)"
    return known
  end

  for i, program in ipairs(programs(page)) do
    it("program " .. i .. " prints what it says", function()
      local found = program.env and VERSION or version()
      if found ~= VERSION then
        pending("quotes NVRTC " .. VERSION .. ", here is " .. tostring(found))
        return
      end
      local printed = normalised(output(program, folder))
      if os.getenv "TPS_WRITE_DOCS" then
        local from, to = page:find(program.text .. "```\n```text\n"
          .. program.printed, 1, true)
        page = page:sub(1, from - 1) .. program.text .. "```\n```text\n" .. printed
          .. page:sub(to + 1)
        files.write(PATH, page)
      else
        assert.equal(program.printed, printed)
      end
    end)
  end

  it("words as the sources do what other machines say", function()
    local patterns = formats "src/rtc/*.c src/runtime/*.c src/lua/*.c"
    local function is_known(text)
      text = text:gsub("^kernel '.-': ", ""):gsub("^argument #.-: ", "")
      for _, pattern in ipairs(patterns) do
        if text:find(pattern) then return true end
      end
      return false
    end
    local messages = messages_of_others(page)
    assert.is_true(#messages > 10)
    for _, message in ipairs(messages) do
      assert(is_known(message), "no such message: " .. message)
    end
  end)

  it("has programs", function() assert.is_true(#programs(page) >= 22) end)
end)
