-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What textures and surfaces take and when they give it back.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

describe("closed textures", function()
  it("on linear memory with nothing queued are gone at once", function()
    local b <close> = tp.zeros("f32", 100)
    tp.default_stream():synchronize()
    local before = tp.memory_stats().pending_count
    local c <close> = tp.buffer("f32", 100)
    for _ = 1, 200 do
      tp.texture(b, { linear = true }):close()
      tp.texture(c, { linear = true }):close()
    end
    -- A GPU may take a while to see that the allocation has nothing to wait for.
    assert.is_true(tp.memory_stats().pending_count <= before + 8)
  end)

  it("that queued work could use are all gone after it", function()
    local g <close> = gate.new()
    local s <close> = tp.Stream()
    local b <close> = tp.buffer("i32", 64, { stream = s })
    tp.with_stream(s, function()
      gate.kernel "gate":launch(gate.one, g.flag)
      b:fill(1)
    end)
    tp.default_stream():synchronize()
    local before = tp.memory_stats().pending_count
    for _ = 1, 300 do tp.texture(b, { linear = true }):close() end
    assert.equal(before + 300, tp.memory_stats().pending_count)
    g:open()
    s:synchronize()
    assert.equal(before, tp.memory_stats().pending_count)
  end)
end)

if tp.current_device():kind() ~= "sim" then return end

describe("8 MiB of memory", function()
  local function goes_round(lines)
    local r = run.script([[
local tp = require "tpstream"
local function full(n) return tp.buffer("f32", n) end
local line = { width = 20000, height = 5 }
]] .. lines, { env = { TPSTREAM_SIM_MEMORY = "8M" } })
    assert.equal(0, r.status, r.stderr)
    return r.stdout
  end

  for name, lines in pairs {
    ["textures that are closed"] = [[
for _ = 1, 200 do
  local b <close> = full(100000)
  local t <close> = tp.texture(b)
end]],
    ["textures that are collected"] = [[
for _ = 1, 200 do tp.texture(full(100000)) end]],
    ["surfaces copied to buffers"] = [[
for _ = 1, 200 do
  local b <close> = full(100000)
  local s <close> = tp.surface("f32", line)
  s:copy_to(b)
end]],
    ["a large buffer after textures"] = [[
for _ = 1, 50 do
  for _ = 1, 3 do
    local b <close> = full(100000)
    local t <close> = tp.texture(b)
  end
  full(1900000):close()
end]],
    ["an array after a large buffer in use"] = [[
for _ = 1, 50 do
  local b = full(2000000)
  b:fill(1)
  b:close()
  tp.surface("f32", line):close()
end]],
    ["a texture of a surface after a large buffer in use"] = [[
local s <close> = tp.surface("f32", line)
for _ = 1, 50 do
  local b = full(1997000)
  b:fill(1)
  b:close()
  tp.texture(s):close()
end]],
  } do
    it("serve again and again: " .. name, function() goes_round(lines) end)
  end

  it("a hook set meanwhile is no interrupt", function()
    goes_round [[
local calls = 0
for i = 1, 60 do
  debug.sethook(function() calls = calls + i end, "", 1000000)
  local b <close> = full(100000)
  local t <close> = tp.texture(b)
end]]
  end)

  it("and an array that they can't hold: tells what is free", function()
    local out = goes_round [[
local b <close> = full(250000)
local ok, e = pcall(tp.surface, "f32", { width = 20000, height = 100 })
print(ok, e)]]
    assert.matches("out of memory on sim:0: an array of 8000000 bytes asked " ..
                   "for, 7388416 free of 8388608", out, 1, true)
  end)
end)
