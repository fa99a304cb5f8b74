-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Every program in the documentation runs and prints what stands behind its "-->",
-- blanks apart, "…" standing for anything. (Those of docs/compiling.md are
-- compiling_spec.lua's.)
local read = require("spec.support.files").read
local run = require "spec.support.run"

-- What a program says it prints: an array of patterns, one for each "-->".
local function promises(code)
  local list = {}
  for text in code:gmatch "%-%->%s*([^\n]*)" do
    local pattern = text:gsub("%s+", " "):gsub(" $", "")
      :gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0"):gsub("…", ".*")
    list[#list + 1] = pattern
  end
  return list
end

-- Each promise stands in the output, after the one before.
local function kept(list, output)
  local text = output:gsub("[ \t]+", " "):gsub(" ?\n", "\n")
  local from = 1
  for _, pattern in ipairs(list) do
    local _, to = text:find(pattern, from)
    if not to then return false, pattern end
    from = to + 1
  end
  return true
end

local function pages()
  local list = { "README.md" }
  local names <close> = assert(io.popen "ls docs/*.md")
  for path in names:lines() do
    if path ~= "docs/compiling.md" then list[#list + 1] = path end
  end
  return list
end

local programs = 0

for _, path in ipairs(pages()) do
  local text = read(path)
  for at, code in text:gmatch "()```lua\n(.-)```" do
    local _, line = text:sub(1, at):gsub("\n", "")
    programs = programs + 1
    describe("the program of " .. path, function()
      it(("at line %d"):format(line + 1), function()
        local r = run.script(code)
        assert.equal(0, r.status, r.stderr)
        local ok, missing = kept(promises(code), r.stdout)
        assert(ok, ("not printed: %s\n%s"):format(missing, r.stdout))
      end)
    end)
  end
end

-- The headings of a page, as links name them.
local function anchors(path)
  local all, fence = {}, false
  for line in io.lines(path) do
    if line:find "^```" then fence = not fence end
    local title = not fence and line:match "^#+ (.+)"
    if title then
      all[title:lower():gsub("[^%w%s_-]", ""):gsub("%s", "-")] = true
    end
  end
  return all
end

describe("the documentation", function()
  it("has programs", function() assert.is_true(programs >= 25, programs) end)

  it("has what it links to", function()
    local count = 0
    for _, page in ipairs { "CONTRIBUTING.md", "docs/compiling.md",
      table.unpack(pages()) } do
      local folder = page:match "^(.*/)" or ""
      for target in read(page):gmatch "%]%(([^)%s]+)%)" do
        local path, anchor = target:match "^([^#]*)#?(.*)$"
        path = path == "" and page or folder .. path
        if not target:find "^%w+:" then
          local file = io.open(path)
          assert(file, page .. ": " .. target)
          file:close()
          assert(anchor == "" or anchors(path)[anchor], page .. ": " .. target)
          count = count + 1
        end
      end
    end
    assert.is_true(count > 30, count)
  end)
end)

describe("the reference", function()
  it("has every error code, as the list in C", function()
    local page, list = read "docs/reference.md", read "src/base/error_codes.h"
    local rows, count = {}, 0
    for name, bad, number in page:gmatch "\n| ([%w_]+)([^|\n]-) | (%d+) |" do
      rows[name] = number .. (bad == "" and "" or "!")
    end
    for number, name, bad in list:gmatch 'X%([%u_]+, (%d+), "([%a_]+)",%s*\\?%s*(%d)' do
      local misuse = number == "10200" or number == "10203" -- strings in Lua
      if number ~= "0" and not misuse then
        assert.equal(number .. (bad == "1" and "!" or ""), rows[name], name)
        count = count + 1
      end
    end
    local _, all = list:gsub("\n  X%(", "")
    assert.equal(all - 3, count)
  end)
end)

describe("the README", function()
  it("has every environment variable that the sources read", function()
    local table_of = read "README.md":match "## Environment variables(.-)\n## "
    local sources <close> = assert(io.popen "cat src/*/*.c")
    local text, count = sources:read "a", 0
    local function has(name)
      count = count + 1
      assert(table_of:find("%f[%w_]" .. name .. "%f[^%w_]"), name .. " is missing")
    end
    for name in text:gmatch 'getenv%("([%w_]+)"%)' do has(name) end
    for name in text:gmatch '"(TPSTREAM_[%u_]+)"' do
      if not name:find "^TPSTREAM_ERROR_" then has(name) end
    end
    assert.is_true(count > 20)
  end)
end)

describe("the tutorial's pipeline", function()
  it("gives the same under seeds: no wait is missing", function()
    local tp = require "tpstream"
    if tp.current_device():kind() ~= "sim" then
      pending "the simulated device's"
      return
    end
    local text, count = read "docs/streams.md", 0
    for code in text:gmatch "```lua\n(.-)```" do
      if code:find("local function pipeline", 1, true) then
        count = count + 1
        for seed = 1, 4 do
          local small = code:gsub("PIECES, SIZE = 8, 4096", "PIECES, SIZE = 5, 64")
            :gsub("print%(to%[99%][^\n]*", "print(to[99], to[5 * 64])")
          local r = run.script(small, { env = { TPSTREAM_SIM_SEED = seed } })
          assert.equal(0, r.status, r.stderr)
          if count == 1 then
            assert.equal("9801.0\t400.0\n", r.stdout)
          else
            assert.matches("10.0\t10.0\n40.0\t40.0\n90.0\t90.0\n$", r.stdout)
          end
        end
      end
    end
    assert.equal(2, count)
  end)
end)
