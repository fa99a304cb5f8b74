-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The module: what it shows and needs as a file, and that any Lua 5.4 can
-- require it, again and again.
local run = require "spec.support.run"

local build = assert(os.getenv "TPS_BUILD")
local MODULE = build .. "/tpstream.so"

local function lines(...)
  local r = run.command { ... }
  assert.equal(0, r.status, r.stderr)
  local list = {}
  for line in r.stdout:gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

local function script(text, env)
  local all = { LUA_CPATH = build .. "/?.so;;", TPSTREAM_DEVICE = "sim" }
  for k, v in pairs(env or {}) do all[k] = v end
  return run.script(text, { interpreter = "lua5.4", env = all })
end

describe("the module as a file", function()
  it("shows luaopen_ functions and nothing else", function()
    local shown = {}
    for _, line in ipairs(lines("nm", "-D", "--defined-only", MODULE)) do
      shown[#shown + 1] = line:match "(%S+)$"
    end
    assert.same({ "luaopen_tpstream" }, shown)
  end)

  it("needs of Lua only what every Lua 5.4 has", function()
    for _, line in ipairs(lines("nm", "-D", "--undefined-only", MODULE)) do
      local name = line:match "(%S+)$"
      if name:find "^lua" then assert.matches("^luaL?_", name) end
    end
  end)

  for _, file in ipairs { "tpstream.so", "tpstream" } do
    it("links neither CUDA nor Lua (" .. file .. ")", function()
      for _, line in ipairs(lines("readelf", "-d", build .. "/" .. file)) do
        if line:find "NEEDED" then
          assert.not_matches("cuda", line)
          assert.not_matches("nvrtc", line)
          assert.not_matches("liblua", line)
        end
      end
    end)
  end

  it("stays loaded", function()
    local found = false
    for _, line in ipairs(lines("readelf", "-d", MODULE)) do
      found = found or line:find "NODELETE" ~= nil
    end
    assert.is_true(found)
  end)

  it("shows Lua's interface in the command, and nothing of ours", function()
    local shown = {}
    for _, line in ipairs(lines("nm", "-D", "--defined-only",
                                build .. "/tpstream")) do
      shown[line:match "(%S+)$"] = true
    end
    for _, name in ipairs {
      "lua_gettop", "lua_upvaluejoin", "luaL_traceback", "lua_closeslot",
      "luaL_testudata", "lua_setwarnf", "luaopen_base",
    } do
      assert.is_true(shown[name] or false, name)
    end
    for name in pairs(shown) do
      assert.not_matches("^tps_", name)
      assert.not_matches("^cuda", name)
    end
  end)
end)

describe("require", function()
  it("gives a table and sets no global", function()
    local r = script [[
      local before = {}
      for k in pairs(_G) do before[k] = true end
      print(type(require "tpstream"))
      for k in pairs(_G) do if not before[k] then print(k) end end]]
    assert.equal("table\n", r.stdout, r.stderr)
  end)

  it("gives the same table when the library is opened again", function()
    local r = script [[
      local first = require "tpstream"
      local stream = first.Stream()
      package.loaded.tpstream = nil
      local second = require "tpstream"
      print(rawequal(first, second), second.current_device() ==
            first.current_device(), stream:query())
      stream:close()]]
    assert.equal("true\ttrue\ttrue\n", r.stdout, r.stderr)
  end)

  it("leaves a handle that is never closed to the end of the state", function()
    local r = script [[
      local tp = require "tpstream"
      stream, event, buffer = tp.Stream(), tp.Event(), tp.zeros("f32", 1000)
      stream:record_event(event)]]
    assert.equal(0, r.status)
    assert.equal("", r.stderr)
  end)

  it("works in finalizers that come late", function()
    local r = script [[
      local tp = require "tpstream"
      first = setmetatable({}, { __gc = function()
        print(tostring(tp.current_stream()), tp.default_stream():query())
        print(pcall(buffer.fill, buffer, 1))
      end })
      buffer = tp.buffer("f32", 4)
      tp.default_stream():synchronize()
      stream = tp.Stream()
      tp.set_stream(stream)]]
    assert.equal(0, r.status, r.stderr)
    assert.matches("^tpstream.Stream %(sim:0, id 0, priority 0%)\ttrue\n"
      .. "false\t.*attempt to use a closed buffer", r.stdout)
  end)

  it("works when the state is not closed at the end", function()
    local r = script [[
      local tp = require "tpstream"
      stream = tp.Stream()
      buffer = tp.zeros("f32", 1000)
      os.exit(5)]]
    assert.equal(5, r.status)
    assert.equal("", r.stderr)
  end)

  it("names a device that is not there, and those that are", function()
    local r = script([[
      local ok, err = pcall(function() return require "tpstream".Stream() end)
      print(ok, err)]], { TPSTREAM_DEVICE = "sim:7" })
    assert.matches("^false\t", r.stdout)
    assert.matches("TPSTREAM_DEVICE is 'sim:7': no device sim:7: %d sim devices? "
      .. "%l+ visible", r.stdout)
  end)

  it("names the variable that chose a device that is not there", function()
    local r = script([[print(pcall(require, "tpstream"))]],
                     { TPSTREAM_DEVICE = "gpu" })
    assert.matches("TPSTREAM_DEVICE is 'gpu': no such device", r.stdout, 1,
                   true)
  end)

  it("works without an environment", function()
    local r = script([[print(require "tpstream".Stream():query())]],
                     { HOME = false, XDG_CACHE_HOME = false })
    assert.equal("true\n", r.stdout, r.stderr)
  end)
end)
