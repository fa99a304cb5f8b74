-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What a compile tells: errors, warnings and names, by their whole text.
local run = require "spec.support.run"
local tp = require "tpstream"
local failure = require("spec.support.errors").text

local FILL = 'extern "C" __global__ void fill(int *o) { o[0] = 1; }'

-- The lines of an error's text, after the line of the call.
local function body(text) return (text:gsub("^[^\n]*\n", "")) end

local place
setup(function()
  place = os.tmpname()
  os.remove(place)
  assert(os.execute("mkdir -p " .. place .. "/inc"))
end)
teardown(function() os.execute("rm -rf " .. place) end)

local function write(name, text)
  local f <close> = assert(io.open(place .. "/" .. name, "wb"))
  f:write(text)
  return place .. "/" .. name
end

-- Options of NVRTC are refused by it; what it says is shown whole.
describe("an option", function()
  it("that NVRTC does not know is named, with all that were passed", function()
    local text, e = failure(tp.compile, FILL,
      { options = { "-DX=1", "--no-such-option" }, std = "c++17" })
    assert.equal("TPSTREAM_ERROR_COMPILER", e.code)
    assert.matches("NVRTC [%d.]+: unrecognized option %-%-no%-such%-option found;"
      .. " the options were: %-arch=%w+_%d+ .*%-%-std=c%+%+17 .*%-DX=1 "
      .. "%-%-no%-such%-option", text)
  end)

  it("of which no PTX comes is named", function()
    local text, e = failure(tp.compile, FILL, { options = { "-DX", "-dlto" } })
    assert.equal("TPSTREAM_ERROR_COMPILER", e.code)
    assert.matches("made no PTX, which is needed here: option '-dlto' makes it "
      .. "give something else; the options given were: -DX -dlto", text, 1, true)
  end)

  it("that reaches only the compiler's inside is told so, too", function()
    local text, e = failure(tp.compile, FILL, { arch = "sm_80a" })
    assert.equal("TPSTREAM_ERROR_COMPILER", e.code)
    assert.matches("NVRTC [%d.]+: .*%-%-nv_arch.*; the options were: "
      .. "%-arch=sm_80a ", text)
  end)

  it("by a name in an array is refused", function()
    for _, field in ipairs { "options", "include", "names" } do
      assert.matches("(field '" .. field
        .. "': an array expected, it has the key 'x')",
        failure(tp.compile, FILL, { [field] = { "a", x = "b" } }), 1, true)
    end
    assert.matches("value of the define A '1' has a line end",
      failure(tp.compile, FILL, { defines = { A = "1\n" } }), 1, true)
  end)

  it("that is no string is named by its place", function()
    for i, bad in ipairs { 5, true, {}, print } do
      local list = { "-DX", "-DY" }
      list[i % 2 + 1] = bad
      assert.matches(("(field 'options': element %d: string expected, got %s)")
        :format(i % 2 + 1, type(bad)),
        failure(tp.compile, FILL, { options = list }), 1, true)
    end
  end)
end)

describe("the caret", function()
  it("stands below the place, whatever is before it", function()
    for _, before in ipairs { "", "\t", "/* größer */ ", "/*大*/\t", "\t \t" } do
      local text = failure(tp.compile, before .. "__device__ int x = nope;",
        { name = "x.cu" })
      local blanks = before:gsub("[\x80-\xBF]", ""):gsub("[^\t]", " ")
      assert.equal('x.cu:1: error: identifier "nope" is undefined\n  ' .. before
        .. "__device__ int x = nope;\n  " .. blanks .. (" "):rep(19) .. "^",
        body(text))
    end
  end)
end)

describe("what a terminal would obey", function()
  it("is not shown as it is", function()
    local text = failure(tp.compile, '#line 7 "\27[2Jx"\n__device__ int y = '
      .. '\27[31mnope;\n#error \27]0;z\7')
    assert.not_matches("[\0-\8\11-\31\127]", text)
    assert.matches("__device__ int y = ?[31mnope;", text, 1, true)
  end)
end)

describe("a missing header", function()
  it("shows where it was looked for", function()
    local text = failure(tp.compile, '#include "not/there.h"\n' .. FILL,
      { name = "a.cu", include = { place .. "/inc", "/no/folder" },
        headers = { ["x.h"] = "" } })
    assert.matches('a.cu:1: error: cannot open source file "not/there.h"\n'
      .. '  #include "not/there.h"\n                        ^\n'
      .. "a.cu:1: note: looked for in '.', where the including file is, '"
      .. place .. "/inc', '/no/folder' (which is no folder), '",
      body(text), 1, true)
    assert.matches("include', .*the headers given as text %(1%)$", text)
  end)

  it("in angles is not looked for beside the program", function()
    local text = failure(tp.compile, "#include <not_there.h>\n" .. FILL,
      { include = place .. "/inc" })
    assert.matches("note: looked for in '" .. place .. "/inc', '/", text, 1, true)
  end)
end)

describe("an error in a header", function()
  it("shows the lines that include it, the nearest first", function()
    write("inc/a.h", "\n#include <b.h>\n")
    write("inc/b.h", "__device__ int x = nope;\n__device__ int y = nope2;\n")
    local text = failure(tp.compile, '// one\n#include "a.h"\n' .. FILL,
      { name = "p.cu", include = place .. "/inc" })
    local inc = place .. "/inc/"
    assert.equal(inc .. 'b.h:1: error: identifier "nope" is undefined\n'
      .. "  __device__ int x = nope;\n                     ^\n"
      .. inc .. "a.h:2: note: '" .. inc .. "b.h' is included here\n"
      .. "p.cu:2: note: '" .. inc .. "a.h' is included here\n"
      .. inc .. 'b.h:2: error: identifier "nope2" is undefined\n'
      .. "  __device__ int y = nope2;\n                     ^", body(text))
  end)

  it("given as text does so, too, from the script's own line", function()
    local line = debug.getinfo(1, "l").currentline + 2
    local text = failure(tp.compile, [[
#include "one.h"
]], { headers = { ["one.h"] = '#include "two.h"', ["two.h"] = "#error no" } })
    assert.matches("two.h:1: error: #error directive: no\n  #error no\n   ^\n"
      .. "one.h:1: note: 'two.h' is included here\n", body(text), 1, true)
    assert.matches(("diagnostics_spec.lua:%d: note: 'one.h' is included here")
      :format(line), text, 1, true)
  end)

  it("of a file that includes itself ends", function()
    write("inc/self.h", '#include "self.h"\n')
    local text, e = failure(tp.compile, '#include "self.h"\n' .. FILL,
      { include = place .. "/inc" })
    assert.equal("NVRTC_ERROR_COMPILATION", e.code)
    assert.matches("self.h", text)
  end)
end)

describe("the script's numbering", function()
  it("holds for a literal in another function's file", function()
    local module = write("kernels.lua", [==[
return { source = [[
extern "C" __global__ void k(int *o) {
  o[0] = nope;
}]], go = function(tp, text) return tp.compile(text) end }]==])
    local r = run.script(([[
package.path = "%s/?.lua"
local tp = require "tpstream"
local kernels = require "kernels"
print(select(2, pcall(tp.compile, kernels.source)))
print(select(2, pcall(kernels.go, tp, "int x = nope;")))
]]):format(place))
    assert.equal(0, r.status, r.stderr)
    assert.matches(module .. ':3: error: identifier "nope"', r.stdout, 1, true)
    assert.matches(r.path .. ":5: error: ", r.stdout, 1, true)
  end)

  it("holds for the parts of which a source is put together", function()
    local line = debug.getinfo(1, "l").currentline
    local common = [[
// what all kernels share
__device__ int one = missing1;
]]
    local text = failure(tp.compile, common .. "__device__ int two = missing2;\n"
      .. ("// %d\n"):rep(2):format(1, 2) .. [[
extern "C" __global__ void k(int *o) {
  o[0] = missing3;
}]])
    local here = "spec/diagnostics_spec.lua:"
    assert.matches(here .. line + 3 .. ': error: identifier "missing1"', text, 1,
      true)
    assert.matches(here .. line + 5 .. ': error: identifier "missing2"', text, 1,
      true)
    assert.matches(here .. line + 8 .. ': error: identifier "missing3"', text, 1,
      true)
    text = failure(tp.compile, "// " .. ("x"):rep(3) .. "\nint x = missing4;")
    assert.matches(here .. line + 17 .. ": error:", text, 1, true)
    text = failure(tp.compile, "// built\n" .. ("int %s;"):format "y")
    assert.matches("program.cu:2: error:", text, 1, true)
  end)

  it("holds for a literal in which something is replaced", function()
    local line = debug.getinfo(1, "l").currentline
    local template = [[
__global__ void fill_%s(%s *x) {
  int i = threadIdx.x;
  %s y = 2 * i;
  x[i] = y + nope;
}]]
    local here = "spec/diagnostics_spec.lua:%d: error: identifier"
    local text = failure(tp.compile, template:format("f", "float", "float"))
    assert.matches(here:format(line + 5), text, 1, true)
    text = failure(tp.compile, template:format("d", "double", "nope_t") .. "\n"
      .. template:format("c", "char", "mope_t"))
    assert.matches(here:format(line + 4) .. ' "nope_t"', text, 1, true)
    assert.matches(here:format(line + 4) .. ' "mope_t"', text, 1, true)
    text = failure(tp.compile, (template:gsub("%%s", "char", 2):gsub("%%s y",
      "int one = 1;\n  int two = one;\n  int y")))
    assert.matches(here:format(line + 5), text, 1, true)
  end)

  it("is one line for a literal whose lines are escapes", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local text = failure(tp.compile, "// 1\n// 2\n__device__ int y = nope;\n")
    assert.matches(("spec/diagnostics_spec.lua:%d: error: identifier"):format(line),
      text, 1, true)
  end)

  it("holds for -e and standard input", function()
    if not run.interpreter():find "tpstream" then return end -- lua5.4 drops them
    local text = 'local tp = require "tpstream"\nprint(select(2, pcall(tp.compile, '
      .. '[[\n__device__ int x =\n  nope;]])))'
    local r = run.lua({ "-e", text })
    assert.matches("(command line):4: error:", r.stdout, 1, true)
    r = run.lua({ "-" }, { stdin = text })
    assert.matches("stdin:4: error:", r.stdout, 1, true)
  end)
end)

describe("warnings", function()
  local WARNED = "__global__ void k(int *o) { int unused; o[0] = 1; }"
  local TEXT = 'w.cu:1: warning #177: variable "unused" was declared but never '
    .. "referenced\n  " .. WARNED .. "\n" .. (" "):rep(34) .. "^\n"

  it("are in the log, numbered as -diag-suppress takes it", function()
    local m <close> = tp.compile(WARNED, { name = "w.cu" })
    assert.equal(TEXT, m:log())
    local n <close> = tp.compile(WARNED, { options = { "-diag-suppress=177" } })
    assert.equal("", n:log())
  end)

  it("of an instance join the module's log", function()
    local m <close> = tp.compile("template <class T> " .. WARNED:gsub("int %*",
      "T *"))
    assert.equal("", m:log())
    local k <close> = m:kernel "k<float>"
    assert.equal("k", k:name())
    assert.matches('warning #177: variable "unused"', m:log())
    local l <close> = m:kernel "k<float>"
    assert.equal("k", l:name())
    local _, count = m:log():gsub("#177", "")
    assert.equal(1, count)
  end)

  it("go to standard error when asked for", function()
    local script = ([[
local tp = require "tpstream"
for _, w in ipairs { "default", true, false } do
  local o = { name = "w.cu" }
  if w ~= "default" then o.warnings = w end
  io.stderr:write(tostring(w), "\n")
  tp.compile("%s", o):close()
end]]):format(WARNED)
    local r = run.script(script)
    assert.equal("default\ntrue\n" .. TEXT .. "false\n", r.stderr)
    if not run.interpreter():find "tpstream" then return end
    local path = write("warned.lua", script)
    r = run.lua { "--warnings", path }
    assert.equal("default\n" .. TEXT .. "true\n" .. TEXT .. "false\n", r.stderr)
  end)
end)

describe("a name", function()
  local m
  setup(function()
    m = tp.compile [[
namespace a { __global__ void f(int *o) { o[0] = 1; } }
__global__ void f(int *o, int n) { o[0] = n; }
__global__ void f(float *o, int n) { o[0] = n; }
__global__ void single(int *o) { o[0] = 1; }
template <class T> __global__ void scale(T *x) { x[0] *= 2; }
__device__ int v;
namespace a { __device__ int v, w2; }
namespace b { __device__ int w2; }]]
  end)
  teardown(function() m:close() end)

  it("of a template says how to ask", function()
    local text, e = failure(m.kernel, m, "scale")
    assert.equal("cudaErrorSymbolNotFound", e.code)
    assert.matches("kernel 'scale' is a template: ask for an instance of it, such "
      .. "as 'scale<float>'", text, 1, true)
  end)

  it("shared by several lists the candidates", function()
    local text = failure(m.kernel, m, "f")
    assert.matches("several kernels 'f': ask for one of 'a::f(int*)', "
      .. "'f(int*, int)', 'f(float*, int)'", text, 1, true)
    text = failure(m.global, m, "w2")
    assert.matches("several variables 'w2': ask for one of 'a::w2', 'b::w2'", text,
      1, true)
    local w <close> = m:global "b::w2"
    assert.equal("int32", w:dtype())
    local v <close> = m:global "v"
    v:write { 1 }
    local k <close> = m:kernel "f(float*, int)"
    assert.equal("tpstream.Kernel (f(float*, int))", tostring(k))
  end)

  it("unknown lists what there is, the nearest first", function()
    assert.matches("no kernel 'singel' in the module (it has 'single', 'a::f',",
      failure(m.kernel, m, "singel"), 1, true)
    assert.matches("no variable 'w' in the module (it has 'v', 'a::v', 'a::w2', "
      .. "'b::w2')",
      failure(m.global, m, "w"), 1, true)
  end)

  it("with quotes, line ends or of any length is shown safely", function()
    assert.matches("no kernel 'x\"'y' in", failure(m.kernel, m, "x\"'y"), 1, true)
    assert.matches("no kernel 'x??y' in", failure(m.kernel, m, "x\n\ty"), 1, true)
    assert.matches("no kernel 'x+%.%.%.' in",
      failure(m.kernel, m, ("x"):rep(100000)))
    assert.matches("no variable 'x?y' in", failure(m.global, m, "x\ny"), 1, true)
    assert.matches("must not contain NUL", failure(m.kernel, m, "x\0y"))
    assert.matches("must not contain NUL", failure(m.global, m, "x\0y"))
  end)

  it("that begins with :: has all its namespaces", function()
    local k <close> = m:kernel "::a::f"
    assert.equal("a::f", k:name())
    local v <close> = m:global "::v"
    v:write { 3 }
    local w <close> = m:global "::a::v"
    assert.same({ 0 }, w:read())
    failure(m.kernel, m, "::single::f")
  end)
end)

describe("what is missing at the end", function()
  it("is said to be missing there", function()
    local text = failure(tp.compile, "__global__ void k() {", { name = "x.cu" })
    assert.equal('x.cu: error: expected a "}" at the end of the source\n'
      .. 'x.cu:1: note: to match this "{"\n  __global__ void k() {\n'
      .. (" "):rep(22) .. "^", body(text))
  end)
end)

describe("the compiler's assembler", function()
  it("has its errors shown", function()
    local r = run.script([=[
print(select(2, pcall(require "tpstream".compile, [[
struct B { int v[8191]; };
__global__ void k(int *o, B b) { o[0] = 1; }]], { name = "b.cu" })))]=], {
      env = { ASAN_OPTIONS = "detect_leaks=0" } }) -- NVRTC's own
    if r.stdout:find "NO_COMPILER" then error(r.stdout, 0) end
    assert.matches("b.cu:2: error: Formal parameter space overflowed (32772 bytes "
      .. "required, max 32764 bytes allowed)", r.stdout, 1, true)
  end)

  it("has its statistics in the log", function()
    local m <close> = tp.compile(FILL, { arch = tp.current_device():kind() == "sim"
      and "sm_80" or nil, options = { "-Xptxas", "-v" } })
    assert.matches("ptxas info    : Used %d+ registers", m:log())
  end)
end)
