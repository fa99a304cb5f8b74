-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Sources that nobody means well with: large ones, and such as make whoever reads
-- them look at the same text again and again. All of them end soon, with the right
-- result or a clear error. What makes NVRTC itself crash or go on for ever is
-- untrusted_spec's.
local run = require "spec.support.run"
local tp = require "tpstream"

local KERNEL = 'extern "C" __global__ void k(int *o) { o[0] = 5; }\n'

-- In a process of its own, with the cache, whose search for headers is one of those
-- that read the source.
local place
setup(function()
  place = os.tmpname()
  os.remove(place)
end)
teardown(function() os.execute("rm -rf " .. place) end)

local function compiled(expression, more)
  local r = run.script(([[
local tp = require "tpstream"
local KERNEL = %q
local ok, m = pcall(tp.compile, %s, { name = "x.cu" %s })
if not ok then
  local text = tostring(m)
  if text:find "NO_COMPILER" then error(m, 0) end
  print(#text, (text:gsub("^[^ ]* ", "")))
  return
end
local o = tp.zeros("i32", 1)
m:kernel "k":launch({ grid = 1, block = 1 }, o)
print(o:read()[1])]]):format(KERNEL, expression, more or ""), {
    timeout = 60, env = { TPSTREAM_CACHE = false, TPSTREAM_CACHE_DIR = place } })
  assert.equal(0, r.status, r.stderr)
  return r.stdout
end

describe("ten megabytes of", function()
  for name, text in pairs {
    ["a comment"] = [[KERNEL .. "//" .. ("x"):rep(10000000)]],
    ["lines"] = [[KERNEL .. ("// line\n"):rep(1250000)]],
    ["the word include"] = [[KERNEL .. "/*" .. ("include "):rep(1250000) .. "*/"]],
    ["ends of comments"] =
      [[KERNEL .. "#if 0\n" .. ("*/include"):rep(1100000) .. "\n#endif"]],
    ["beginnings of includes"] =
      [[KERNEL .. "#if 0\n" .. ('#include <'):rep(1000000) .. "\n#endif"]],
    ["embed"] = [[KERNEL .. "/*" .. ("embed "):rep(1600000) .. "*/"]],
  } do
    it(name .. " compile", function() assert.equal("5\n", compiled(text)) end)
  end

  it("names, nearly, are an error of no more than a page", function()
    local text = compiled [[KERNEL .. "__device__ int a"
      .. (",b"):rep(300000) .. ", c = nope;"]]
    assert.matches('x.cu:2: error: variable "b" has already been defined', text, 1,
      true)
    assert.is_true(tonumber(text:match "^%d+") < 100000)
    text = compiled [[KERNEL .. "__device__ int a" .. ("{},b"):rep(100000) .. ";"]]
    assert.matches('x.cu:2: error: variable "b" has already been defined', text, 1,
      true)
  end)

  it("one line are shown where the error is", function()
    local text = compiled [[KERNEL .. ("/*ä*/ "):rep(1000) .. "int x = nope;"
      .. (" "):rep(100000)]]
    local line, caret = text:match '"nope" is undefined\n  ([^\n]*)\n([^\n]*)\n'
    assert.is_true(#line < 260)
    local at = utf8.offset(line, #caret - 2)
    assert.equal("nope", line:sub(at, at + 3))
    assert.equal("^", caret:sub(-1))
  end)
end)

describe("a source that", function()
  it("includes thousands of files that are not there compiles", function()
    assert.equal("5\n", compiled([[(function()
      local t = { "#if 0" }
      for i = 1, 20000 do t[#t + 1] = '#include "none' .. i .. '.h"' end
      t[#t + 1] = "#endif\n" .. KERNEL
      return table.concat(t, "\n")
    end)()]]))
  end)

  it("nests without end is an error", function()
    assert.matches("x.cu:2: error: ", compiled [[KERNEL .. ("("):rep(5000) .. ";"]],
      1, true)
    assert.matches("ending delimiter for raw string not found",
      compiled [[KERNEL .. ('R"x('):rep(50000) .. ";"]], 1, true)
  end)

  it("has hundreds of kernels has them all", function()
    local t = {}
    for i = 1, 200 do
      t[i] = ("__global__ void k%d(int *o) { o[0] = %d; }"):format(i, i)
    end
    local m <close> = tp.compile(table.concat(t, "\n"))
    assert.equal(200, #m:kernels())
    local k <close> = m:kernel "k121"
    local o <close> = tp.zeros("i32", 1)
    k:launch({ grid = 1, block = 1 }, o)
    assert.same({ 121 }, o:read())
    local ok, e = pcall(m.kernel, m, "k201")
    assert.is_false(ok)
    assert.matches("it has 'k20', .* and %d+ more", tostring(e))
  end)
end)

describe("a header that includes itself", function()
  it("is an error that names it", function()
    local ok, e = pcall(tp.compile, '#include "a.h"\n' .. KERNEL, { headers = {
      ["a.h"] = '#include "b.h"\n', ["b.h"] = '#include "a.h"\n' } })
    assert.is_false(ok)
    if e.code == "TPSTREAM_ERROR_NO_COMPILER" then error(e, 0) end
    assert.equal("NVRTC_ERROR_COMPILATION", e.code)
    assert.matches("a.h", tostring(e), 1, true)
  end)
end)
