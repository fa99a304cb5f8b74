-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Errors: which launch an asynchronous fault is blamed
-- on. Each case needs a process of its own.
local tp = require "tpstream"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"
local hosted = run.interpreter():match "tpstream"

local PRELUDE = [===[
local tp = require "tpstream"
local gate = require "spec.support.gate"
local module = require "spec.support.program"("blame", [=[
extern "C" {
__global__ void store(int *p) { *p = 1; }
__global__ void before(int *p) { *p = 1; }
__global__ void after(int *p) { *p = 1; }
}
]=])
local one = { grid = 1, block = 1 }
local store, before, after =
  module:kernel "store", module:kernel "before", module:kernel "after"
local b = tp.zeros("i32", 1)
local s, t = tp.Stream(), tp.Stream()
tp.current_device():synchronize()
local function report(fn, ...)
  local ok, e = pcall(fn, ...)
  print("raised", not ok)
  if type(e) == "table" then
    print("code", e.code)
    print("kernel", e.kernel)
    print("where", e.where)
    print("position", e.position)
    print("number", e.number)
    print("stream", e.stream)
    print("message", (e.message:gsub("\n", " ")))
    print("text", (tostring(e):gsub("\n", " ")))
  end
end
]===]
local LINES = select(2, PRELUDE:gsub("\n", ""))

local function case(body, arguments)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write(PRELUDE, body, "\nos.exit(0, false)\n")
  file:close()
  local words = arguments or {}
  words[#words + 1] = path
  local r = run.lua(words)
  os.remove(path)
  local fields = {}
  for name, value in r.stdout:gmatch "(%w+)\t([^\n]*)" do
    fields[name] = fields[name] or value
  end
  assert.equal("cudaErrorIllegalAddress", fields.code, r.stdout .. r.stderr)
  local function line(n) return ("%s:%d"):format(path, LINES + n) end
  return fields, line
end

describe("a fault", function()
  it("that only one launch can have caused is blamed on it", function()
    local f, line = case [[
store:launch(one, nil)
report(function() tp.default_stream():synchronize() end)]]
    assert.equal("store", f.kernel)
    assert.equal(line(1), f.where)
    assert.equal(line(2), f.position)
    assert.matches(line(1), f.text, 1, true)
  end)

  it("is not blamed on launches known to be complete", function()
    local f, line = case [[
before:launch(one, b)
tp.default_stream():synchronize()
store:launch(one, nil)
report(s.synchronize, tp.default_stream())]]
    assert.equal("store", f.kernel)
    assert.equal(line(3), f.where)
    assert.not_matches("before", f.text)
    assert.not_matches(line(1), f.text, 1, true)
  end)

  it("shows grid, block and stream", function()
    local f = case [[
store:launch({ grid = { 3, 2 }, block = 64, stream = s }, nil)
print("id", s:id())
report(s.synchronize, s)]]
    if simulated then assert.matches("block %(%d,%d,0%)", f.text) end
    assert.matches("grid 3x2", f.text)
    assert.matches("block 64", f.text)
    assert.matches("stream " .. f.id, f.text)
  end)

  it("is an object with all fields, its text begins with the script's line",
    function()
      local f, line = case [[
store:launch({ grid = 1, block = 1, stream = s }, nil)
print("id", s:id())
report(function() s:synchronize() end)]]
      assert.equal("cudaErrorIllegalAddress", f.code)
      assert.equal("700", f.number)
      assert.equal("store", f.kernel)
      assert.equal(f.id, f.stream)
      assert.equal(line(1), f.where)
      assert.matches("kernel 'store'", f.message, 1, true)
      assert.equal(1, (f.text:find(line(3) .. ": ", 1, true)))
      assert.matches("(cudaErrorIllegalAddress)", f.text, 1, true)
    end)

  it("names the candidates with their lines when there are several",
    function()
      local f, line = case [[
local g = gate.new()
g:hold(s)
before:launch({ grid = 1, block = 1, stream = s }, b)
store:launch({ grid = 1, block = 1, stream = s }, nil)
after:launch({ grid = 1, block = 1, stream = s }, b)
g:open()
report(s.synchronize, s)]]
      assert.matches("store", f.text)
      assert.matches(line(4), f.text, 1, true)
      if simulated then
        assert.equal("store", f.kernel)
        assert.equal(line(4), f.where)
        assert.not_matches("after", f.text)
      else
        assert.matches("before at " .. line(3), f.text, 1, true)
        assert.matches("after at " .. line(5), f.text, 1, true)
      end
    end)

  it("names those of other streams too", function()
    local f, line = case [[
local g = gate.new()
g:hold(s)
store:launch({ grid = 1, block = 1, stream = s }, nil)
after:launch({ grid = 1, block = 1, stream = t }, b)
g:open()
local wait = t.synchronize
local ok = true
while ok do ok = pcall(wait, t) end
report(wait, t)]]
    assert.matches("store", f.text)
    assert.matches(line(3), f.text, 1, true)
  end)

  it("says so when there are more than it remembers", function()
    local f = case [[
local g = gate.new()
g:hold(s)
store:launch({ grid = 1, block = 1, stream = s }, nil)
for i = 1, 200 do
  before:launch({ grid = 1, block = 1, stream = s }, b)
end
g:open()
report(s.synchronize, s)]]
    if simulated then
      assert.equal("store", f.kernel)
    else
      assert.matches("or an earlier one", f.text)
    end
  end)

  it("noticed by housekeeping is blamed all the same", function()
    local f, line = case [[
local g = gate.new()
g:hold(s)
local h = tp.pinned("i32", 4)
tp.with_stream(s, h.fill, h, 1)
store:launch({ grid = 1, block = 1, stream = s }, nil)
tp.with_stream(s, h.fill, h, 1)
h:close()
g:open()
local ok, e = true
while ok do ok, e = pcall(tp.buffer, "i32", 1) end
report(s.synchronize, s)]]
    assert.matches("store", f.text)
    assert.matches(line(5), f.text, 1, true)
  end)

  if hosted then
    it("under --blocking comes out of the very launch", function()
      local f, line = case([[
before:launch(one, b)
report(function() store:launch(one, nil) end)
after:launch(one, b)]], { "--blocking" })
      assert.equal("true", f.raised)
      assert.equal("store", f.kernel)
      assert.equal(line(2), f.where)
      assert.equal(line(2), f.position)
      assert.not_matches("before", f.text)
      assert.not_matches(line(1), f.text, 1, true)
    end)

    it("under --blocking also out of bound kernels and forall", function()
      local f, line = case([[
local go = store:bind(one)
go(b)
report(pcall, print)
report(function() go(nil) end)
report(function() store:forall(1, nil) end)]], { "--blocking" })
      assert.equal("store", f.kernel)
      assert.equal(line(4), f.where)
    end)
  end
end)
