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

-- A format of C's as a pattern of Lua's; nil if little of it is fixed.
local function pattern_of(format)
  local fixed = format:gsub("%%[%d.*lz]*%a", "\0")
  if #fixed:gsub("%z", "") <= 8 then return nil end
  return (fixed:gsub("\1", '"'):gsub("%p", "%%%0"):gsub("%z", ".-"))
end

-- The sources' text with each string in one piece, quotes in it as \1.
local function sources(names)
  local pipe <close> = assert(io.popen("cat " .. names))
  return (pipe:read "a":gsub('\\"', "\1"):gsub('"%s*\n%s*"', ""))
end

-- What can go wrong while something is compiled, linked or loaded, and is raised
-- by these functions: formats.
local RAISING = { "tps_fail", "tps_misuse", "tps_option_error", "tps_argument_error",
  "bad" }
local COMPILE = "src/rtc/*.c src/runtime/module.c src/runtime/link.c "
  .. "src/runtime/image.c src/runtime/fatbin.c src/ptx/link*.c src/lua/compile*.c "
  .. "src/lua/link.c src/lua/module.c"
-- Not raised by a Lua program in these words: C programs see the first; the second
-- is on the page in two lines.
local ELSEWHERE = { ["compilation failed: %s:%d: %s%s"] = true,
  ["nvJitLink: %s (result %d)"] = true }

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
    local patterns = {}
    for literal in sources "src/rtc/*.c src/runtime/*.c src/lua/*.c"
      :gmatch '"([^"\n]+)"' do
      local pattern = pattern_of(literal)
      if pattern then patterns[#patterns + 1] = "^" .. pattern .. "$" end
    end
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

  it("shows every message of the sources'", function()
    local count, text = 0, sources(COMPILE)
    for _, name in ipairs(RAISING) do
      for call in text:gmatch("%f[%w_]" .. name .. "%b()") do
        local format = call:match '"([^"]+)"'
        local pattern = format and not ELSEWHERE[format] and pattern_of(format)
        if pattern then
          count = count + 1
          local found = false
          for line in page:gmatch "[^\n]+" do found = found or line:find(pattern) end
          assert(found, "not on the page: " .. format)
        end
      end
    end
    assert.is_true(count > 60, count)
  end)

  it("has programs", function() assert.is_true(#programs(page) >= 22) end)
end)
