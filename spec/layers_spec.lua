-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The layers: each part of src/ includes only what stands below it, Lua is known to
-- lua/ and host/ alone, CUDA to cuda/ alone (rtc/ knows NVRTC), and what one part shows
-- to another is named tps_.
local run = require "spec.support.run"

local BELOW = {
  base = {},
  ptx = { "base" },
  device = { "base" },
  sim = { "device", "ptx", "base" },
  cuda = { "device", "base" },
  runtime = { "device", "ptx", "base" },
  rtc = { "runtime", "device", "ptx", "base" },
  compiler = { "rtc", "base" },
  check = { "runtime", "device", "base" },
  timeline = { "runtime", "device", "base" },
  lua = { "rtc", "check", "timeline", "runtime", "device", "base" },
  host = { "lua", "rtc", "check", "timeline", "runtime", "device", "base" },
}

local function files(pattern)
  local list = {}
  local pipe <close> = assert(io.popen("ls " .. pattern .. " 2>/dev/null"))
  for path in pipe:lines() do list[#list + 1] = path end
  return list
end

local function each_include(visit)
  local count = 0
  for _, path in ipairs(files "src/*/*.[ch]") do
    local part = path:match "^src/(%w+)/"
    for line in io.lines(path) do
      local target = line:match '^%s*#%s*include%s*["<]([^">]+)[">]'
      if target then
        count = count + 1
        visit(path, part, target)
      end
    end
  end
  return count
end

describe("the layers of src/", function()
  it("include downwards only", function()
    local wrong = {}
    local count = each_include(function(path, part, target)
      local other = target:match "^(%w+)/"
      if not BELOW[other] or other == part then return end
      local allowed = false
      for _, below in ipairs(BELOW[part] or {}) do
        allowed = allowed or below == other
      end
      if not allowed then wrong[#wrong + 1] = path .. " includes " .. target end
    end)
    assert.is_true(count > 200)
    assert.equal("", table.concat(wrong, "\n"))
  end)

  it("every part is known", function()
    for _, path in ipairs(files "-d src/*/") do
      assert.is_truthy(BELOW[path:match "src/(%w+)/"], path)
    end
  end)

  it("Lua, CUDA and NVRTC are each known to their own part", function()
    local wrong = {}
    each_include(function(path, part, target)
      local lua = target == "lua.h" or target == "lauxlib.h"
        or target == "lualib.h"
      local cuda = target:match "^cuda" and not target:match "/"
      local bad = lua and part ~= "lua" and part ~= "host"
        or cuda and part ~= "cuda"
        or target == "nvrtc.h" and part ~= "rtc"
      if bad then wrong[#wrong + 1] = path .. " includes " .. target end
    end)
    assert.equal("", table.concat(wrong, "\n"))
  end)

  it("names that parts show each other begin with tps_", function()
    local archive = os.getenv "TPS_BUILD" .. "/libtps.a"
    local there = io.open(archive)
    if not there then
      pending "needs the archive that the C tests link"
      return
    end
    there:close()
    local r = run.command { "nm", "--defined-only", "--extern-only", archive }
    assert.equal(0, r.status, r.stderr)
    local wrong, count = {}, 0
    for kind, name in r.stdout:gmatch "%x+ ([A-Z]) (%S+)" do
      count = count + 1
      -- NVTX is headers alone: each file that includes them has the same weak names.
      local nvtx = (kind == "W" or kind == "V")
        and (name:find "^nvtx" or name:find "^InitializeInjectionNvtx")
      if not name:match "^tps_" and not name:match "^__?[ao]" and not nvtx then
        wrong[#wrong + 1] = name
      end
    end
    assert.is_true(count > 200)
    assert.equal("", table.concat(wrong, "\n"))
  end)
end)
