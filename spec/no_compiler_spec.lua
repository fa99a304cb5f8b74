-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- A machine without NVRTC, the run-time compiler: what is said then, and what works
-- all the same. Each script has a process of its own, since a compiler once found
-- stays.
local run = require "spec.support.run"

local function without(nvrtc, text, more)
  local env = { TPSTREAM_NVRTC = nvrtc, TPSTREAM_CACHE = "0",
                TPS_COUNTS = "/dev/null" } -- no skip: the words are the matter
  for name, value in pairs(more or {}) do env[name] = value end
  return run.script(text, { env = env })
end

local SHOW = [==[
local tp = require "tpstream"
local ok, e = pcall(tp.compile, "__global__ void k() {}")
print(ok, e.code, e.message, e.hint)]==]

local NAMES = "NVRTC, the CUDA run-time compiler, was not found: "
  .. "libnvrtc.so.13, libnvrtc.so.12 or libnvrtc.so, looked for in "
local HINT = "install the CUDA toolkit's nvrtc package, or set CUDA_HOME"

local function shown(message)
  return table.concat({ "false", "TPSTREAM_ERROR_NO_COMPILER", message,
                        HINT }, "\t") .. "\n"
end

describe("without NVRTC compile says", function()
  it("which file was asked for", function()
    local r = without("/nonexistent", SHOW)
    assert.equal(shown(NAMES .. "/nonexistent (from TPSTREAM_NVRTC)"), r.stdout,
                 r.stderr)
  end)

  it("which folder was asked for", function()
    local r = without("/usr/include", SHOW)
    assert.equal(shown(NAMES .. "/usr/include (from TPSTREAM_NVRTC)"), r.stdout,
                 r.stderr)
  end)

  it("what was found but can't be loaded", function()
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write "no library at all, but long enough to be read as one\n"
    file:close()
    local r = without(path, SHOW)
    os.remove(path)
    assert.matches(NAMES .. path .. " (from TPSTREAM_NVRTC); found, but not "
      .. "loadable: " .. path .. ": ", r.stdout, 1, true)
  end)

  it("the call, all of it and how to get it, in an error nobody catches",
    function()
      local r = without("/nonexistent", [==[
        local tp = require "tpstream"
        tp.compile "__global__ void k() {}"]==])
      assert.equal(1, r.status)
      assert.matches(":2: ", r.stderr, 1, true)
      assert.matches(NAMES .. "/nonexistent (from TPSTREAM_NVRTC)", r.stderr, 1,
                     true)
      assert.matches(HINT, r.stderr, 1, true)
    end)

  it("the same again, as often as it is asked", function()
    local r = without("/nonexistent", [==[
      local tp = require "tpstream"
      for _ = 1, 2 do
        print(select(2, pcall(tp.compile, "__global__ void k() {}")).code)
      end]==])
    assert.equal(("TPSTREAM_ERROR_NO_COMPILER\n"):rep(2), r.stdout)
  end)
end)

describe("without NVRTC", function()
  it("kernels run from PTX text, types and all", function()
    local r = without("/nonexistent", [==[
      local tp = require "tpstream"
      local file <close> = assert(io.open "spec/ptx/launch.ptx")
      local m <close> = tp.load(file:read "a")
      local k <close> = m:kernel "index"
      local o <close> = tp.zeros("i32", 100)
      k:forall(#o, o, #o)
      print(o:read()[100], k:params()[1].type, k:params()[2].type)
      local wrong <close> = tp.zeros("f32", 100)
      print((pcall(k.forall, k, 100, wrong, 100)))]==])
    assert.equal("297\tint*\tint\nfalse\n", r.stdout, r.stderr)
  end)

  it("streams, events and memory work", function()
    local r = without("/nonexistent", [==[
      local tp = require "tpstream"
      local s, t = tp.Stream(), tp.Stream()
      local a = tp.buffer("f32", { 1, 2, 3 }, { stream = s })
      local e = s:record_event()
      t:wait_event(e)
      local b = tp.zeros("f32", 3)
      t:wait_stream(tp.current_stream())
      a:copy_to(b, { stream = t })
      t:synchronize()
      print(table.concat(b:read(), " "))]==])
    assert.equal("1.0 2.0 3.0\n", r.stdout, r.stderr)
  end)
end)
