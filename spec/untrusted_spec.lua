-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/compiling.md, section Sources that are not trusted: what such a source can't
-- read, ask for, or make the host do.
local run = require "spec.support.run"
local tp = require "tpstream"
local failure = require("spec.support.errors").text

local FILL = 'extern "C" __global__ void fill(int *o) { o[0] = VALUE; }\n'
local SECRET = "the_secret_of_this_file"

local place
setup(function()
  place = os.tmpname()
  os.remove(place)
  assert(os.execute(("mkdir -p %s/inc/sub %s/out && ln -s ../out/secret.h "
    .. "%s/inc/link.h && ln -s ../out %s/inc/folder && mkfifo %s/inc/pipe.h")
    :format(place, place, place, place, place)))
  for name, text in pairs {
    ["inc/good.h"] = '#include "sub/deep.h"\n',
    ["inc/sub/deep.h"] = "#define VALUE 7\n",
    ["out/secret.h"] = SECRET .. "\n",
    ["out/fill.cu"] = '#include "beside.h"\n' .. FILL,
    ["out/beside.h"] = "#define VALUE 8\n",
  } do
    local f <close> = assert(io.open(place .. "/" .. name, "wb"))
    f:write(text)
  end
end)
teardown(function() os.execute("rm -rf " .. place) end)

-- Options of an untrusted compile with the folder inc.
local function with(more)
  local o = { untrusted = true, include = place .. "/inc", cache = false }
  for k, v in pairs(more or {}) do o[k] = v end
  return o
end

local function filled(module)
  local kernel <close> = module:kernel "fill"
  local o <close> = tp.zeros("i32", 1)
  kernel:launch({ grid = 1, block = 1 }, o)
  return o:read()[1]
end

describe("an untrusted source", function()
  it("compiles and runs as any other", function()
    local m <close> = tp.compile(FILL, with { defines = { VALUE = 6 } })
    assert.equal(6, filled(m))
    local n <close> = tp.compile([[
#include "good.h"
#include "text.h"
#include <cuda_fp16.h>
#include <stdint.h>
template <class T> __global__ void scale(T *x) { int unused; x[0] *= TWO; }
__device__ float table[3];
__global__ void half_of(__half h, const float *x) {}
]] .. FILL, with { headers = { ["text.h"] = "#define TWO 2" },
      names = { "scale<int>" }, name = "u.cu", std = "c++20" })
    assert.equal(7, filled(n))
    local names = n:kernels()
    table.sort(names)
    assert.same({ "fill", "half_of", "scale" }, names)
    assert.matches('u.cu:5: warning #177: variable "unused"', n:log())
    local g <close> = n:global "table"
    assert.equal("float32", g:dtype())
    local k <close> = n:kernel "half_of"
    assert.equal("__half", k:params()[1].type)
    local o <close> = tp.buffer("f64", { 1.25 })
    local s <close> = n:kernel "scale<double>"
    s:launch({ grid = 1, block = 1 }, o)
    assert.same({ 2.5 }, o:read())
  end)

  it("makes the same code, machine code too", function()
    local source = [[
#include <cuda_fp16.h>
__global__ void reduce(const __half *in, float *out) {
  __shared__ float storage[128];
  storage[threadIdx.x] = __half2float(in[threadIdx.x]);
  for (int n = 64; n > 0; n /= 2) {
    __syncthreads();
    if (threadIdx.x < n) storage[threadIdx.x] += storage[threadIdx.x + n];
  }
  if (threadIdx.x == 0) *out = storage[0];
}]]
    local sim = tp.current_device():kind() == "sim"
    for _, arch in ipairs(sim and { "compute_80", "sm_80" } or { false }) do
      local o = { arch = arch or nil, cache = false, name = "r.cu" }
      local m <close> = tp.compile(source, o)
      o.untrusted = true
      local n <close> = tp.compile(source, o)
      assert.equal(m:ptx(), n:ptx())
    end
  end)

  it("is a file beside which headers are found", function()
    local m <close> = tp.compile_file(place .. "/out/fill.cu",
      { untrusted = true })
    assert.equal(8, filled(m))
  end)

  it("has its errors shown in the script's numbering", function()
    local line = debug.getinfo(1, "l").currentline + 3
    local text, e = failure(tp.compile, [[

__device__ int x = nope;
]], with())
    assert.equal("NVRTC_ERROR_COMPILATION", e.code)
    assert.matches(("untrusted_spec.lua:%d: error: identifier \"nope\""):format(
      line), text, 1, true)
  end)

  it("is kept apart from a trusted one in the cache", function()
    local r = run.script(([[
local tp = require "tpstream"
local function entries()
  local n = 0
  for _ in io.popen("ls %s"):lines() do n = n + 1 end
  return n
end
local source = "__global__ void k(int *o) { o[0] = 1; }"
for i = 1, 4 do
  tp.compile(source, { untrusted = i %% 2 == 0 }):close()
  print(entries())
end]]):format(place .. "/cache"), {
      env = { TPSTREAM_CACHE_DIR = place .. "/cache", TPSTREAM_CACHE = false } })
    assert.equal("2\n3\n3\n3\n", r.stdout, r.stderr)
  end)
end)

describe("no untrusted source reads", function()
  local ways = {
    ["an absolute path"] = ('#include "%s/out/secret.h"'),
    ["an absolute path in angles"] = "#include <%s/out/secret.h>",
    ["a path with .."] = '#include "../out/secret.h"',
    ["a path through a folder and back"] = '#include "sub/../../out/secret.h"',
    ["a symbolic link"] = '#include "link.h"',
    ["below a linked folder"] = '#include "folder/secret.h"',
    ["a computed name"] = '#define S "%s/out/secret.h"\n#include S',
    ["another header's neighbour"] = '#line 1 "%s/out/x.cu"\n#include "secret.h"',
    ["a pipe"] = '#include "pipe.h"',
    ["the working folder"] = '#include "README.md"',
    ["the system"] = '#include "/proc/self/environ"',
  }
  for name, way in pairs(ways) do
    it("by " .. name, function()
      local text, e = failure(tp.compile, way:gsub("%%s", place) .. "\n" .. FILL,
        with())
      assert.equal("NVRTC_ERROR_COMPILATION", e.code)
      assert.matches("cannot open source file", text, 1, true)
      assert.not_matches(SECRET, text, 1, true)
    end)
  end

  it("by asking whether a file is there", function()
    for _, name in ipairs { "%s/out/secret.h", "../out/secret.h", "link.h",
      "/etc/passwd", "%s/out", "/" } do
      local m <close> = tp.compile(([[
#if __has_include("%s")
#error there
#endif
]]):format(name:gsub("%%s", place)) .. FILL, with { defines = { VALUE = 1 } })
      assert.equal(1, filled(m))
    end
  end)

  it("by the assembler", function()
    for _, line in ipairs { '.include \\"%s/out/secret.h\\"',
      '.file 9 \\"%s/out/secret.h\\"' } do
      local text = failure(tp.compile, ('__global__ void k() { asm("%s"); }')
        :format(line:gsub("%%s", place)), with { arch = "sm_80" })
      assert.not_matches(SECRET, text, 1, true)
      assert.matches("ptxas: error: Parsing error near", text, 1, true)
    end
  end)

  it("and is told so", function()
    local text = failure(tp.compile, '#include "/etc/passwd"', with())
    assert.matches("note: looked for in '" .. place .. "/inc', '/", text, 1, true)
    assert.matches(": an untrusted source reads no other file", text, 1, true)
  end)
end)

describe("an untrusted source's options", function()
  it("are those that can do no harm", function()
    local m <close> = tp.compile(FILL, with { options = { "-DVALUE=3", "-UZ",
      "--use_fast_math", "--maxrregcount=32", "-w", "--std=c++17" } })
    assert.equal(3, filled(m))
    for _, bad in ipairs { "-I/etc", "--include-path=/etc", "-include=/etc/passwd",
      "--pre-include=/etc/passwd", "--create-pch=/tmp/x", "--use-pch=/tmp/x",
      "--pch", "--time=/tmp/x", "--fdevice-time-trace=/tmp/x", "@/etc/passwd",
      "--options-file=/etc/passwd", "-Xptxas=-v", "-D", "/etc/passwd",
      "-dlto", "---std=c++17", "--no-source-include" } do
      local text = failure(tp.compile, FILL, with { options = { bad } })
      assert.matches("option '" .. bad .. "' is not allowed for an untrusted "
        .. "source (allowed are -D, -U, --gpu-architecture, ", text, 1, true)
    end
  end)

  it("tell its limits, which no other has", function()
    assert.matches("field 'max_time': is for untrusted sources alone",
      failure(tp.compile, FILL, { max_time = 5 }), 1, true)
    assert.matches("field 'max_memory': is for untrusted sources alone",
      failure(tp.compile, FILL, { max_memory = 5 }), 1, true)
    for _, bad in ipairs { 0, -1, 1.5, "x" } do
      assert.matches("field 'max_time'", failure(tp.compile, FILL,
        with { max_time = bad }), 1, true)
    end
  end)
end)

local EXPLODES = [[
template <int a, int b> struct X {
  static const int v = X<a - 1, b * 2>::v + X<a - 1, b * 2 + 1>::v;
};
template <int b> struct X<0, b> { static const int v = b; };
__device__ int x = X<30, 1>::v;]]

describe("an untrusted source that", function()
  it("takes too long is ended", function()
    local text, e = failure(tp.compile, EXPLODES, with { max_time = 300 })
    assert.equal("TPSTREAM_ERROR_COMPILER", e.code)
    assert.matches("the untrusted source took longer to compile than 300 ms "
      .. "(max_time)", text, 1, true)
  end)

  it("takes too much memory is ended", function()
    local text, e = failure(tp.compile, EXPLODES, with { max_memory = 200 << 20 })
    assert.equal("TPSTREAM_ERROR_COMPILER", e.code)
    assert.matches("the compiler ran out of memory on the untrusted source: 200 "
      .. "MiB (max_memory)", text, 1, true)
    text = failure(tp.compile, FILL, with { max_memory = 50 << 20 })
    assert.matches("NVRTC cannot be used in 50 MiB (max_memory)", text, 1, true)
  end)

  it("crashes the compiler leaves the host alive", function()
    local text, e = failure(tp.compile, "__device__ int x = "
      .. ("!"):rep(1000000) .. "1;", with { max_memory = 300 << 20 })
    assert.equal("TPSTREAM_ERROR_COMPILER", e.code)
    assert.matches("the compiler crashed on the untrusted source: signal %d+ "
      .. "%([%w ]+%); it may have run out of its 300 MiB %(max_memory%)", text)
    local m <close> = tp.compile(FILL, with { defines = { VALUE = 5 } })
    assert.equal(5, filled(m))
  end)
end)

describe("an untrusted compile", function()
  it("works in a host without standard descriptors", function()
    local script, result = place .. "/closed.lua", place .. "/result"
    local f = assert(io.open(script, "w"))
    f:write(([[
local tp = require "tpstream"
local ok, e = pcall(tp.compile, "__device__ int x;",
  { untrusted = true, cache = false })
local f = io.open("%s", "w")
f:write(tostring(ok), tostring(e))
f:close()]]):format(result))
    f:close()
    run.command { "sh", "-c", ("exec %s %s <&- >&- 2>&-"):format(
      run.interpreter(), script) }
    f = assert(io.open(result))
    local text = f:read "a"
    f:close()
    if text:find "NO_COMPILER" then error(text, 0) end
    assert.matches("^truetpstream.Module", text)
  end)

  it("leaves neither processes nor descriptors", function()
    local r = run.script [[
local tp = require "tpstream"
local function count(command)
  local pipe <close> = io.popen(command)
  return select(2, pipe:read "a":gsub("\\n", ""))
end
local function compile(more)
  local o = { untrusted = true, cache = false }
  for k, v in pairs(more) do o[k] = v end
  return pcall(tp.compile, "__device__ int x;", o)
end
local ok, e = compile {}
if not ok then error(e, 0) end
local before = count "ls /proc/$PPID/fd"
for _ = 1, 3 do
  assert(compile {})
  assert(not compile { max_time = 1 })
end
collectgarbage()
print(count "ls /proc/$PPID/fd" - before,
  count "ps -o stat= --ppid $PPID | grep Z")]]
    assert.equal("0\t0\n", r.stdout, r.stderr)
  end)

  it("is ended by Ctrl-C", function()
    if not run.interpreter():find "tpstream" then return end -- the command's
    local r = run.script(('require "tpstream".compile(%q, { untrusted = true })')
      :format(EXPLODES), { signal = "INT", after = 1 })
    assert.matches("interrupted!", r.stderr, 1, true)
  end)
end)

describe("--untrusted", function()
  it("holds for all that is compiled or loaded", function()
    if not run.interpreter():find "tpstream" then return end
    local script = place .. "/all.lua"
    local f = assert(io.open(script, "w"))
    f:write [[
local tp = require "tpstream"
local ok, first = pcall(tp.compile, "__device__ int x;", { max_time = 20000 })
if not ok then error(first, 0) end
print(first)
local inc = '#include "/etc/passwd"\n'
for _, o in ipairs { {}, { untrusted = false }, { untrusted = true } } do
  print(select(2, pcall(tp.compile, inc, o)).message:match "reads no other file")
end
print(select(2, pcall(tp.load, "\127ELF\0")).message)
print(pcall(tp.load, ".version 8.0\n.target sm_70\n.address_size 64\n"))]]
    f:close()
    local r = run.lua { "--untrusted", script }
    assert.equal("tpstream.Module (0 kernels, 1 variable)\n"
      .. ("reads no other file\n"):rep(3)
      .. "an untrusted image must be PTX: CUBIN and fatbin are machine code, "
      .. "which can't be checked\n"
      .. "true\ttpstream.Module (0 kernels, 0 variables)\n", r.stdout, r.stderr)
  end)

  it("can be asked of one image", function()
    local text, e = failure(tp.load, "\127ELF\0", { untrusted = true })
    assert.equal("cudaErrorInvalidKernelImage", e.code)
    assert.matches("an untrusted image must be PTX", text, 1, true)
    local m <close> = tp.load(".version 8.0\n.target sm_70\n.address_size 64\n",
      { untrusted = true })
    assert.same({}, m:kernels())
    assert.matches("unknown option 'trusted'",
      failure(tp.load, "x", { trusted = true }), 1, true)
    assert.matches("field 'untrusted': boolean expected, got number",
      failure(tp.load, m:ptx(), { untrusted = 1 }), 1, true)
  end)
end)
