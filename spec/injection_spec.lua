-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The bodies that spec/c/injection_test.c runs with failures: each works as it is,
-- and together they call every function that there is.
local tp = require "tpstream"
local bodies = require "spec.support.bodies"

-- Every C function of the library by name: those of the module's table and of the
-- types' methods and metamethods. The kernel library is Lua on top of them.
local function library_functions()
  local all = {}
  local function add(where, t)
    for name, f in pairs(t) do
      local lua = type(f) == "function" and debug.getinfo(f, "S").source
      if lua and not lua:find "^=tpstream/kernels" and
        not lua:find "^=tpstream/map" then
        all[f] = where .. name
      end
    end
  end
  add("tp.", tp)
  for name, t in pairs(tp) do
    if type(t) == "table" then add("tp." .. name .. ".", t) end
  end
  for name, meta in pairs(debug.getregistry()) do
    if type(name) == "string" and name:find "^tpstream%.%u" and
      type(meta) == "table" then
      add(name .. ":", meta)
      local index = meta.__index
      if type(index) == "function" then
        for i = 1, math.huge do -- the methods are an upvalue of it
          local upvalue, value = debug.getupvalue(index, i)
          if not upvalue then break end
          if type(value) == "table" then add(name .. ":", value) end
        end
      elseif type(index) == "table" then
        add(name .. ":", index)
      end
    end
  end
  return all
end

-- What a hook does not see: calls of the collector's.
local UNSEEN = { __gc = true }

describe("the bodies", function()
  local called = {}

  it("are at least 60, each with a name of its own", function()
    local names = {}
    assert.is_true(#bodies >= 60)
    for _, body in ipairs(bodies) do
      assert.is_nil(names[body.name], body.name)
      names[body.name] = true
    end
  end)

  for _, body in ipairs(bodies) do
    it("work: " .. body.name, function()
      local function note() called[debug.getinfo(2, "f").func] = true end
      local before = { debug.gethook() }
      debug.sethook(note, "c")
      local ok, e = xpcall(body.run, function(e)
        return type(e) == "string" and debug.traceback(e) or e
      end, tp)
      debug.sethook(table.unpack(before, 1, 3))
      if not ok and body.compiler then
        body.skipped = type(e) ~= "string" and
          e.code == "TPSTREAM_ERROR_NO_COMPILER"
      end
      if not ok then error(e, 0) end
    end)
  end

  it("call every function", function()
    local missing = {}
    local skipped = false
    for _, body in ipairs(bodies) do skipped = skipped or body.skipped end
    for f, name in pairs(library_functions()) do
      local short = name:match "[%w_]+$"
      local compiles = skipped and (name:find "^tp%.compile"
        or name:find "^tpstream%.Build:")
      if not called[f] and not UNSEEN[short] and not compiles then
        missing[#missing + 1] = name
      end
    end
    table.sort(missing)
    assert.equal("", table.concat(missing, " "),
      "a body in spec/support/bodies.lua has to call these")
  end)
end)
