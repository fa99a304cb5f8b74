-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Compiles kept between processes. Every test has a folder of its own; whether
-- NVRTC was opened shows in the process's memory map.
local files = require "spec.support.files"
local run = require "spec.support.run"

local read, write = files.read, files.write

local function shell(format, ...)
  local r = run.command { "sh", "-c", format:format(...) }
  assert.equal(0, r.status, r.stderr)
  return r.stdout
end

local function folder()
  local path = os.tmpname()
  os.remove(path)
  shell("mkdir -p '%s/include/deep' '%s/other'", path, path)
  return path
end

-- What each script begins with: value(source, options) compiles and runs `fill`.
local PRELUDE = [[
local tp = require "tpstream"
function value(source, options)
  local m <close> = tp.compile(source, options)
  local o <close> = tp.zeros("i32", 1)
  local k <close> = m:kernel "fill"
  k:launch({ grid = 1, block = 1 }, o)
  return o:read()[1], m
end
function opened()
  local maps <close> = io.open "/proc/self/maps"
  return maps:read "a":find "libnvrtc" and "opened" or "kept"
end
]]
local FILL = 'extern "C" __global__ void fill(int *o) { *o = VALUE; }'

local function script(place, text, env)
  local all = { TPSTREAM_CACHE = "1", TPSTREAM_CACHE_DIR = place .. "/cache" }
  for name, v in pairs(env or {}) do all[name] = v end
  local r = run.script(PRELUDE .. "local FILL = [[" .. FILL .. "]]\n" .. text,
    { env = all })
  assert.equal(0, r.status, r.stderr)
  return r.stdout
end

local function entries(place)
  local list = {}
  for name in shell("ls -1 '%s/cache' 2>/dev/null || true", place)
    :gmatch "[^\n]+" do
    list[#list + 1] = place .. "/cache/" .. name
  end
  return list
end

-- The entry of the build: that of the compiler's facts is the smaller one.
local function build_entry(place)
  local best, size = nil, 0
  for _, path in ipairs(entries(place)) do
    if #read(path) > size then best, size = path, #read(path) end
  end
  return best
end

describe("the cache", function()
  local place
  before_each(function() place = folder() end)
  after_each(function() shell("rm -rf '%s'", place) end)

  local PRINT = [[
print(value(FILL, { defines = { VALUE = 42 } }), opened())]]

  it("spares a second process NVRTC", function()
    assert.matches("^42\topened\n$", script(place, PRINT))
    assert.equal(2, #entries(place))
    assert.matches("^42\tkept\n$", script(place, PRINT))
    assert.equal(2, #entries(place))
  end)

  it("keeps log, PTX, signatures and name expressions", function()
    local text = [[
local m <close> = tp.compile([=[
struct pair { float a; int b; };
__device__ int table[7];
template <class T> __global__ void scale(T *x, T f) { *x *= f; int unused = 1; }
__global__ void take(pair p, const float *x, bool *b) {}
]=], { names = { "scale<float>" }, name = "kept.cu" })
print(opened())
print(m:log())
print(#m:ptx(), table.concat(m:kernels(), " "))
for _, name in ipairs { "take", "scale<float>" } do
  for _, p in ipairs(m:kernel(name):params()) do
    print(p.type, p.size, p.offset, p.pointer, p.const)
  end
end
print(m:global "table":dtype(), m:kernel "scale<double>":name())]]
    local first = script(place, text)
    local second = script(place, text)
    assert.matches("^opened\n.*unused", first)
    assert.equal(first:gsub("^opened", "kept"), second)
  end)

  local VARIANTS = {
    "FILL, { defines = { VALUE = 2 } }",
    "FILL .. ' ', { defines = { VALUE = 1 } }",
    "FILL, { defines = { VALUE = 1 }, name = 'other.cu' }",
    "FILL, { defines = { VALUE = 1 }, lineinfo = false }",
    "FILL, { defines = { VALUE = 1 }, std = 'c++14' }",
    "FILL, { defines = { VALUE = 1, OTHER = true } }",
    "FILL, { defines = { VALUE = 1 }, headers = { ['a.h'] = '' } }",
    "FILL, { options = { '-DVALUE=1', '-UVALUE', '-DVALUE=3' } }",
    "FILL, { options = { '-UVALUE', '-DVALUE=3', '-DVALUE=1' } }",
    "FILL, { defines = { VALUE = 1 }, names = { '&fill' } }",
  }

  it("tells every part of a request from another", function()
    local lines = { "value(FILL, { defines = { VALUE = 1 } })" }
    for _, v in ipairs(VARIANTS) do lines[#lines + 1] = "value(" .. v .. ")" end
    script(place, table.concat(lines, "\n"))
    assert.equal(2 + #VARIANTS, #entries(place))
    script(place, table.concat(lines, "\n"))
    assert.equal(2 + #VARIANTS, #entries(place))
  end)

  it("is not used with cache = false or TPSTREAM_CACHE=0", function()
    local text = [[
print(value(FILL, { defines = { VALUE = 5 }, cache = false }))]]
    assert.matches("^5\t", script(place, text))
    assert.equal(0, #entries(place))
    assert.matches("^42", script(place, PRINT, { TPSTREAM_CACHE = "0" }))
    assert.equal(0, #entries(place))
  end)

  describe("of headers", function()
    local SOURCE = [[
local dir = %q
print((value('#include "outer.h"\n' .. FILL, { include = { dir .. "/other",
  dir .. "/include" } })), opened())]]
    local function result()
      return script(place, SOURCE:format(place))
    end

    before_each(function()
      write(place .. "/include/outer.h", '# include "deep/inner.h"\n')
      write(place .. "/include/deep/inner.h", '#include "value.h"\n')
      write(place .. "/include/deep/value.h", "#define VALUE 7\n")
      assert.equal("7\topened\n", result())
      assert.equal("7\tkept\n", result())
    end)

    it("sees a change of any of them", function()
      write(place .. "/include/deep/value.h", "#define VALUE 8\n")
      assert.equal("8\topened\n", result())
      write(place .. "/include/deep/inner.h", "#define VALUE 9\n")
      assert.equal("9\topened\n", result())
      write(place .. "/include/deep/inner.h", '#include "value.h"\n')
      assert.equal("8\tkept\n", result())
    end)

    it("sees one of the same size and time", function()
      local path = place .. "/include/deep/value.h"
      shell("touch -d @1000000000 '%s'", path)
      assert.equal("7\tkept\n", result())
      write(path, "#define VALUE 6\n")
      shell("touch -d @1000000000 '%s'", path)
      assert.equal("6\topened\n", result())
    end)

    it("sees one that hides another", function()
      write(place .. "/other/outer.h", "#define VALUE 3\n")
      assert.equal("3\topened\n", result())
      os.remove(place .. "/other/outer.h")
      assert.equal("7\tkept\n", result())
    end)

    it("follows __has_include and comments in a directive", function()
      local text = ([[
local dir = %q
print((value('#if __has_include("more.h")\n# /* x */ include /* y */ "more.h"\n' ..
  '#else\n#define VALUE 1\n#endif\n' .. FILL, { include = dir .. "/other" })))]])
        :format(place)
      assert.equal("1\n", script(place, text))
      write(place .. "/other/more.h", "#define VALUE 2\n")
      assert.equal("2\n", script(place, text))
      write(place .. "/other/more.h", "#define VALUE 4\n")
      assert.equal("4\n", script(place, text))
    end)

    for name, directive in pairs {
      ["after the hash"] = '#\\\ninclude "z.h"',
      ["in the word"] = '#inc\\\nlude "z.h"',
      ["with CRLF"] = '#inc\\\r\nlude "z.h"',
      ["in the name"] = '#include "z\\\n.h"',
      ["and a digraph"] = '%:inc\\\nlude "z.h"',
      ["by \\v"] = '#include\v"z.h"', ["by \\f"] = '#include\f"z.h"',
    } do
      it("follows a directive that is broken " .. name, function()
        local text = ([[
local dir, directive = %q, %q
print((value(directive .. "\n" .. FILL, { include = dir .. "/other" })))]])
          :format(place, directive)
        for i = 1, 2 do
          write(place .. "/other/z.h", ("#define VALUE %d\n"):format(i))
          assert.equal(i .. "\n", script(place, text))
        end
      end)
    end

    it("keeps what only speaks of embedding", function()
      local before = #entries(place)
      script(place, [[value("__device__ int embedding();\n" .. FILL,
        { defines = { VALUE = 1 } })]])
      assert.equal(before + 1, #entries(place))
    end)

    it("keeps nothing when a name is made by a macro, or of the time", function()
      local before = #entries(place)
      local text = ([[
local dir = %q
print((value('#define N "outer.h"\n#include N\n' .. FILL, { include = dir ..
  "/include" })))
value(FILL, { defines = { VALUE = "sizeof(__TIME__)" } })
value('__device__ char t[] = __DATE__;' .. FILL, { defines = { VALUE = 1 } })
]]):format(place)
      assert.equal("7\n", script(place, text))
      assert.equal(before, #entries(place))
    end)
  end)

  describe("that is damaged", function()
    it("is made anew, whatever is missing or changed", function()
      script(place, PRINT)
      local path = build_entry(place)
      local whole = read(path)
      local out = script(place, ([[
local path, whole = %q, io.open(%q, "rb"):read "a"
local function try(text)
  local f <close> = io.open(path, "wb")
  f:write(text)
  f:close()
  local v = value(FILL, { defines = { VALUE = 42 } })
  local again <close> = io.open(path, "rb")
  if v ~= 42 or again:read "a" ~= whole then print("bad", #text) end
end
math.randomseed(7)
for n = 0, #whole - 1, 97 do try(whole:sub(1, n)) end
try(whole .. "x")
for _ = 1, 12 do
  local at, bit = math.random(#whole), math.random(0, 7)
  try(whole:sub(1, at - 1) .. string.char(whole:byte(at) ~ 1 << bit) ..
    whole:sub(at + 1))
end
print "done"]]):format(path, path))
      assert.equal("done\n", out)
      assert.equal(whole, read(path))
    end)

    it("by a kill in the middle of the work is whole or not there", function()
      local text = PRELUDE .. "local FILL = [[" .. FILL .. "]]\n" .. [[
for i = 1, 1000 do value(FILL, { defines = { VALUE = i } }) end]]
      for n = 1, 4 do
        run.script(text, {
          env = { TPSTREAM_CACHE = "1", TPSTREAM_CACHE_DIR = place .. "/cache" },
          signal = "KILL", after = 0.1 + 0.07 * n,
        })
      end
      assert.equal("done\n", script(place, [[
for i = 1, 8 do assert(value(FILL, { defines = { VALUE = i } }) == i) end
print "done"]]))
    end)
  end)

  it("is shared by many processes at once", function()
    local path = place .. "/script.lua"
    write(path, PRELUDE .. "local FILL = [[" .. FILL .. "]]\n" .. [[
for i = 1, 3 do
  assert(value(FILL, { defines = { VALUE = i } }) == i)
end
print "right"]])
    local one = ("'%s' '%s' &"):format(run.interpreter(), path)
    local r = run.command({ "sh", "-c", one:rep(8) .. " wait" }, { env = {
      TPSTREAM_CACHE = "1", TPSTREAM_CACHE_DIR = place .. "/cache",
    } })
    assert.equal(("right\n"):rep(8), r.stdout, r.stderr)
    assert.equal(4, #entries(place))
  end)

  it("does without a folder that can't be written", function()
    write(place .. "/file", "x")
    for _, path in ipairs { "/file", "/file/below", "/dev/null" } do
      assert.matches("^42\t", script(place, PRINT, {
        TPSTREAM_CACHE_DIR = path == "/dev/null" and path or place .. path,
      }))
    end
    assert.matches("^42\t", script(place, PRINT, {
      TPSTREAM_CACHE_DIR = false, XDG_CACHE_HOME = false, HOME = false,
    }))
  end)

  it("lies where XDG_CACHE_HOME or HOME says", function()
    script(place, PRINT, { TPSTREAM_CACHE_DIR = false,
      XDG_CACHE_HOME = place .. "/xdg" })
    assert.equal("2\n", shell("ls '%s/xdg/tpstream' | wc -l", place))
    script(place, PRINT, { TPSTREAM_CACHE_DIR = false,
      XDG_CACHE_HOME = false, HOME = place .. "/home" })
    assert.equal("2\n", shell("ls '%s/home/.cache/tpstream' | wc -l", place))
  end)

  it("lets go of what was not used for longest", function()
    script(place, PRINT)
    local size = #read(build_entry(place))
    script(place, [[
for i = 1, 4 do value(FILL, { defines = { VALUE = 10 + i } }) end]])
    local count = #entries(place)
    shell("touch -d '1 hour ago' '%s'/cache/*", place)
    script(place, [[value(FILL, { defines = { VALUE = 11 } })]])
    script(place, [[value(FILL, { defines = { VALUE = 99 } })]],
      { TPSTREAM_CACHE_SIZE = tostring(4 * size) })
    assert.is_true(#entries(place) < count)
    local text = "print(value(FILL, { defines = { VALUE = 11 } }), opened())"
    assert.matches("kept\n$", script(place, text))
    script(place, text, { TPSTREAM_CACHE_SIZE = "100" })
  end)

  it("refuses a size that is none", function()
    local out = script(place, [[print(select(2, pcall(value, FILL)))]],
      { TPSTREAM_CACHE_SIZE = "12x" })
    assert.matches("TPSTREAM_CACHE_SIZE is '12x' %(a number of bytes such as "
      .. "200000000, 512M or 2G is expected%)", out)
  end)

  it("shows and clears itself", function()
    if not run.interpreter():match "tpstream" then return end
    local env = { TPSTREAM_CACHE = "1", TPSTREAM_CACHE_DIR = place .. "/cache" }
    script(place, PRINT)
    local function command(...)
      local r = run.lua({ "--cache", ... }, { env = env })
      assert.equal(0, r.status, r.stderr)
      return r.stdout
    end
    assert.matches("folder +" .. place .. "/cache\nentries +2\nsize +0%.0 MB of "
      .. "at most 1073%.7 MB\n", command())
    assert.matches('"entries": 2,', command "--json")
    assert.matches("entries +0\n", command "clear")
    assert.equal(0, #entries(place))
    assert.equal(2, run.lua({ "--cache", "cleer" }, { env = env }).status)
    assert.matches("unusable: Not a directory\n", run.lua({ "--cache" },
      { env = { TPSTREAM_CACHE = "1", TPSTREAM_CACHE_DIR = "/dev/null" } }).stdout)
    local r = run.lua({ "--cache" }, { env = { TPSTREAM_CACHE = "0" } })
    assert.equal("no cache: turned off by TPSTREAM_CACHE=0\n", r.stdout)
  end)
end)
