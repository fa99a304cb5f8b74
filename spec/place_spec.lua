-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Where a kernel's instructions come from: a source that has no name and is a literal
-- of the script, or put together of some, is placed in the script, line by line.
local tp = require "tpstream"
local files = require "spec.support.files"
local run = require "spec.support.run"
local simulated = tp.current_device():kind() == "sim"

local folder = os.tmpname()
setup(function()
  os.remove(folder)
  assert(os.execute("mkdir -p " .. folder))
  tp.compile("__device__ int n;"):close() -- what follows needs the compiler
end)
teardown(function() os.execute("rm -rf " .. folder) end)

-- { [file] = { lines… } } of the instructions in a module's PTX.
local function places(ptx)
  local names, lines = {}, {}
  for number, name in ptx:gmatch '\t%.file\t(%d+) "([^"]*)"' do
    names[number] = name
    lines[name] = {}
  end
  local function note(number, line)
    local list = lines[names[number]]
    if list[#list] ~= line then list[#list + 1] = line end
  end
  for number, line, more in ptx:gmatch "\t%.loc\t(%d+) (%d+) ([^\n]*)" do
    note(number, tonumber(line))
    local outer, at = more:match "inlined_at (%d+) (%d+)"
    if outer then note(outer, tonumber(at)) end
  end
  return lines
end

-- Runs a script as script.lua; the lines that it prints.
local function script(text)
  local path = folder .. "/script.lua"
  files.write(path, 'local tp = require "tpstream"\n' .. text)
  local r = run.lua { path }
  assert.equal("", r.stderr)
  assert.equal(0, r.status)
  return r.stdout, path
end

local function placed(text)
  local out, path = script(text)
  return places(out), path
end

local function within(list, first, last)
  assert.is_true(#list > 0)
  for _, line in ipairs(list) do
    assert.is_true(first <= line and line <= last, tostring(line))
  end
end

describe("a kernel's lines are the script's,", function()
  it("where its source is a literal", function()
    local all, path = placed [==[
local m = tp.compile [[
extern "C" __global__ void k(float *x, int n) {
  if (threadIdx.x < n)
    x[threadIdx.x] *= 2;
}]]
print(m:ptx())]==]
    within(all[path], 3, 6)
    assert.same({ ["program.cu"] = {}, [path] = all[path] }, all)
  end)

  it("but where the source numbers its lines itself", function()
    local all, path = placed [==[
local m = tp.compile [[
  # line 1000
extern "C" __global__ void k(int *x) { *x = 1; }]]
print(m:ptx())]==]
    within(all["program.cu"], 1000, 1000)
    assert.is_nil(all[path])
    local other = placed [==[
local m = tp.compile [[
#line 7 "other.cu"
__device__ int put(int *x) { return *x = 1; }
extern "C" __global__ void k(int *x) { put(x); }]]
print(m:ptx())]==]
    within(other["other.cu"], 7, 8)
  end)

  it("where there are several alike, near the call", function()
    local all, path = placed [==[
local first = tp.compile [[
extern "C" __global__ void k(int *x) { *x = 1; }]]
local second = tp.compile [[
extern "C" __global__ void k(int *x) { *x = 1; }]]
print(second:ptx())]==]
    within(all[path], 5, 5)
  end)

  it("where it is put together of literals, with what has none", function()
    local all, path = placed [==[
local COMMON = [[
__device__ int twice(int x) {
  return x + x + clock();
}
]]
local made = {}
for i = 1, 9 do made[i] = ("__device__ int f%d() { return %d; }\n"):format(i, i) end
local m = tp.compile(COMMON .. table.concat(made) .. [[
extern "C" __global__ void k(int *x) {
  *x = twice(*x);
}]])
print(m:ptx())]==]
    within(all[path], 3, 12)
    local seen = {}
    for _, line in ipairs(all[path]) do seen[line] = true end
    assert.is_true(seen[4])
    assert.is_true(seen[11])
    assert.same({}, all["program.cu"])
  end)

  it("where it stands on one line of the script", function()
    local all, path = placed [==[
local m = tp.compile("extern \"C\" __global__ void k(int *x) {\n\n  *x = 1;\n}")
print(m:ptx())]==]
    within(all[path], 2, 2)
  end)

  it("where a module of the script has it", function()
    files.write(folder .. "/halves.lua", [==[
local tp = require "tpstream"
return function()
  return tp.compile [[
    extern "C" __global__ void k(float *x) { *x /= 2; }]]
end]==])
    local all = placed(([==[
package.path = %q .. "/?.lua;" .. package.path
print(require "halves"():ptx())]==]):format(folder))
    within(all[folder .. "/halves.lua"], 4, 4)
  end)

  it("where it is compiled in the background", function()
    local all, path = placed [==[
local build = tp.compile_async [[
extern "C" __global__ void k(float *x) {
  *x = *x + *x;
}]]
tp.run(function() print(tp.await(build):ptx()) end)]==]
    within(all[path], 3, 5)
  end)

  it("and those of what a header defines lead there", function()
    local all, path = placed [==[
local m = tp.compile([[
#include "twice.h"
extern "C" __global__ void k(int *x) {
  *x = twice(*x);
}]], { headers = { ["twice.h"] = "__device__ int twice(int x) { return 2 * x; }" } })
print(m:ptx())]==]
    within(all[path], 3, 6)
    within(all["twice.h"], 1, 1)
  end)

  it("in a script that has no file, too", function()
    local r = run.lua { "-e", 'local tp = require "tpstream"\nprint(tp.compile [[\n'
      .. 'extern "C" __global__ void k(int *x) { *x = 1; }]]:ptx())' }
    assert.equal("", r.stderr)
    within(places(r.stdout)["(command line)"], 3, 3)
    local chunk = assert(load('return require "tpstream".compile [[\n'
      .. 'extern "C" __global__ void k(int *x) { *x = 1; }]]'))
    local m <close> = chunk()
    within(places(m:ptx())[ [=[[string 'return require 'tpstream'.compile [[...']]=] ],
      2, 2)
  end)
end)

describe("a kernel's lines are its source's,", function()
  it("where that has a name", function()
    local all = placed [==[
print(tp.compile([[
extern "C" __global__ void k(int *x) { *x = 1; }]], { name = "one.cu" }):ptx())]==]
    within(all["one.cu"], 1, 1)
  end)

  it("where the script has it nowhere", function()
    local all = placed [==[
local text = "extern 'C' @ void k(int *x) { *x = 1; }"
print(tp.compile((text:gsub("'", '"'):gsub("@", "__global__"))):ptx())]==]
    within(all["program.cu"], 1, 1)
  end)
end)

describe("a cached compile", function()
  it("is placed where the source stands now", function()
    local code = [==[
print(tp.compile [[
extern "C" __global__ void k(int *x) { *x = 77; }]]:ptx())]==]
    local first, path = placed(code)
    local then_ = placed("\n\n\n" .. code)
    within(first[path], 3, 3)
    within(then_[path], 6, 6)
  end)
end)

describe("what goes wrong in a kernel", function()
  if not simulated then
    pending "a GPU tells no lines: needs the simulated device"
    return
  end

  local WRONG = [==[
local m = tp.compile [[
extern "C" __global__ void k(int *x) {
  x[threadIdx.x] = 5;
}]]
local x <close> = tp.zeros("i32", 4)
m:kernel "k":launch({ grid = 1, block = 5 }, x)
print(pcall(x.read, x))]==]

  it("is told with the script's line", function()
    local out, path = script(WRONG)
    assert.matches("thread (4,0,0), " .. path .. ":4: store of 4 bytes", out, 1, true)
  end)

  it("is told so of a template's instance", function()
    local out, path = script [==[
local m = tp.compile [[
template <class T> __global__ void k(T *x) {
  x[threadIdx.x] = 5;
}]]
local x <close> = tp.zeros("i16", 4)
m:kernel "k<short>":launch({ grid = 1, block = 5 }, x)
print(pcall(x.read, x))]==]
    assert.matches("thread (4,0,0), " .. path .. ":4: store of 2 bytes", out, 1, true)
  end)

  it("is told so where something was replaced in the source", function()
    local out, path = script [==[
local made = {}
for i, op in ipairs { "+", "*" } do
  made[i] = ([[
extern "C" __global__ void k%d(int *x) {
  int y = threadIdx.x;
  x[y + 1] = y %s 3;
}
]]):format(i, op)
end
local m = tp.compile(table.concat(made))
local x <close> = tp.zeros("i32", 4)
m:kernel "k2":launch({ grid = 1, block = 4 }, x)
print(pcall(x.read, x))]==]
    assert.matches("thread (3,0,0), " .. path .. ":7: store of 4 bytes", out, 1, true)
  end)

  it("is told so by the checker, too", function()
    local _, path = script(WRONG)
    local r = run.lua { "--check=memory", path }
    assert.matches("in " .. path .. ":4\n", r.stdout .. r.stderr, 1, true)
  end)
end)
