-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Compile: the option pch.
local tp = require "tpstream"
local files = require "spec.support.files"
local run = require "spec.support.run"

local dir

local function header(name, text) files.write(dir .. "/" .. name, text) end

-- Compiles with precompiled headers and without; both must give the same.
local function both(source, options)
  local texts = {}
  for i, pch in ipairs { true, false } do
    local all = { include = dir, cache = false, pch = pch }
    for k, v in pairs(options or {}) do all[k] = v end
    local ok, module = pcall(tp.compile, source, all)
    if not ok then error(module, 0) end
    texts[i] = module:ptx() .. module:log()
    module:close()
  end
  assert.equal(texts[2], texts[1])
  return texts[1]
end

describe("precompiled headers", function()
  before_each(function()
    dir = files.folder()
  end)
  after_each(function() files.remove(dir) end)

  it("change nothing in what comes out", function()
    header("a.h", "#pragma once\n#include \"b.h\"\n"
      .. "template <class T> __device__ T twice(T x) { return x * TWO; }\n")
    header("b.h", "#pragma once\n#define TWO 2\n")
    for i = 1, 3 do
      both(('#include "a.h"\n__global__ void k%d(int *p) { *p = twice(%d); }')
        :format(i, i))
    end
    both('#include "a.h"\nextern "C" __global__ void k(float *p)'
      .. " { *p = twice(*p); }", { defines = { UNUSED = 1 } })
  end)

  it("are made anew when a header has changed, however quickly", function()
    for i = 1, 4 do
      header("c.h", "#include \"d.h\"\n__device__ int c = VALUE;\n")
      header("d.h", "#define VALUE " .. 10 * i .. "\n")
      local text = both '#include "c.h"\n__global__ void k(int *p) { *p = c; }'
      assert.matches("c = " .. 10 * i .. ";", text)
    end
  end)

  it("leave the script's own headers alone, and errors as they are", function()
    for i = 1, 2 do
      local text = both('#include "own.h"\n__global__ void k(int *p)'
        .. " { *p = VALUE; }", { headers = { ["own.h"] = "#define VALUE "
        .. 100 + i } })
      assert.matches("10" .. i, text)
    end
    header("e.h", "__device__ int e;\n")
    local messages = {}
    for i, pch in ipairs { true, true, false } do
      local ok, object = pcall(tp.compile, '#include "e.h"\nint x = y;',
        { include = dir, cache = false, pch = pch, name = "n.cu" })
      assert.is_false(ok)
      if object.code == "TPSTREAM_ERROR_NO_COMPILER" then error(object, 0) end
      messages[i] = object.message
    end
    assert.equal(messages[3], messages[1])
    assert.equal(messages[3], messages[2])
  end)

  it("are gone with the process", function()
    header("f.h", "__device__ int f = 1;\n")
    local r = run.script([[
local tp = require "tpstream"
for i = 1, 2 do
  tp.compile('#include "f.h"\n__global__ void k(int *p) { *p = f; }',
    { include = arg[1], cache = false, pch = true })
end
local list = io.popen("ls " .. arg[1]):read "a"
print((list:gsub("pch%-%w+", "pch")))]],
      { args = { dir }, env = { TMPDIR = dir } })
    assert.equal("f.h\ntpstream-pch\n\n", r.stdout, r.stderr)
    local list = io.popen("ls " .. dir):read "a"
    assert.equal("f.h\n", list)
  end)
end)
