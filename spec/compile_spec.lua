-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Run-time compilation: compile, compile_file, load.
local tp = require "tpstream"
local failure = require("spec.support.errors").text

-- The line on which this function is called.
local function here() return debug.getinfo(2, "l").currentline end

local function temporary(text, suffix)
  local path = os.tmpname()
  if suffix then
    os.remove(path)
    path = path .. suffix
  end
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
  return path
end

local FILL = [[
extern "C" __global__ void fill(int *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = VALUE;
}]]

local function filled(module)
  local kernel <close> = module:kernel "fill"
  local o <close> = tp.zeros("i32", 3)
  kernel:forall(3, o, 3)
  return o:read()[3]
end

describe("compile", function()
  it("takes defines", function()
    local m <close> = tp.compile(FILL, { defines = { VALUE = 42 } })
    assert.equal(42, filled(m))
    local n <close> = tp.compile(FILL, { defines = { VALUE = "6 * 7 + 1" } })
    assert.equal(43, filled(n))
    local b <close> = tp.compile("#if FAST\n#define VALUE 5\n#endif\n" .. FILL,
      { defines = { FAST = true } })
    assert.equal(5, filled(b))
  end)

  it("refuses defines that are no macro's name", function()
    for _, bad in ipairs { "A B", "", "1A", "A-B", "F(x", "größe" } do
      local text = failure(tp.compile, FILL, { defines = { [bad] = 1 } })
      assert.matches(bad == "" and "name of a define is empty"
        or ("define '%s' is not a macro's name"):format(bad), text, 1, true)
    end
    local m <close> = tp.compile(FILL, { defines = { ["TWICE(x)"] = "(2 * (x))",
      VALUE = "TWICE(4)" } })
    assert.equal(8, filled(m))
  end)

  it("takes headers from a table", function()
    local m <close> = tp.compile('#include "v.h"\n' .. FILL,
      { headers = { ["v.h"] = "#define VALUE 11" } })
    assert.equal(11, filled(m))
  end)

  it("takes include directories", function()
    local path = temporary("#define VALUE 12\n", ".h")
    local dir, name = path:match "^(.*)/([^/]+)$"
    local source = ('#include "%s"\n%s'):format(name, FILL)
    local m <close> = tp.compile(source, { include = dir })
    assert.equal(12, filled(m))
    local n <close> = tp.compile(source, { include = { "/nonexistent", dir } })
    assert.equal(12, filled(n))
    os.remove(path)
  end)

  it("takes a standard and options", function()
    local source = [[
      #if __cplusplus >= 202002L
      #define VALUE 20
      #else
      #define VALUE 17
      #endif
    ]] .. FILL
    local m <close> = tp.compile(source, { std = "c++20" })
    assert.equal(20, filled(m))
    local n <close> = tp.compile(source, { std = "c++17" })
    assert.equal(17, filled(n))
    local o <close> = tp.compile(FILL, { options = { "-DVALUE=9" } })
    assert.equal(9, filled(o))
  end)

  it("has the standard headers people include", function()
    for _, header in ipairs { "stdint.h", "stddef.h", "limits.h", "float.h",
      "math.h", "stdio.h", "assert.h", "string.h", "cstdint", "cmath",
      "climits", "cstdio", "cassert", "cstring", "cfloat", "cstddef" } do
      local m <close> = tp.compile(("#include <%s>\n%s"):format(header, FILL),
        { defines = { VALUE = 1 } })
      assert.equal(1, filled(m))
    end
    local m <close> = tp.compile([[
      #include <limits.h>
      #include <float.h>
      #include <stdint.h>
      static_assert(sizeof(int64_t) == 8 && UINT8_MAX == 255, "");
      static_assert(FLT_MANT_DIG == 24, "");
      ]] .. FILL, { defines = { VALUE = "INT_MAX" } })
    assert.equal(2147483647, filled(m))
  end)

  it("finds the toolkit's headers", function()
    local m <close> = tp.compile([[
      #include <cuda_fp16.h>
      extern "C" __global__ void half_of(float *o, float x) {
        o[0] = __half2float(__float2half(x));
      }]])
    assert.same({ "half_of" }, m:kernels())
  end)

  it("tells an unknown option and those there are", function()
    assert.matches("bad argument #2 to 'compile' (unknown option 'define' (there "
      .. "are name, std, arch, defines, include, headers, names, options, lineinfo, "
      .. "debug, cache, ", failure(tp.compile, FILL, { define = {} }), 1, true)
  end)

  it("refuses options of the wrong type", function()
    for _, case in ipairs {
      { { defines = 5 }, "'defines': table expected, got number" },
      { { defines = { [1] = 2 } },
        "'defines': names expected as keys, got number" },
      { { defines = { A = {} } },
        "'defines': 'A': string, number or boolean expected, got table" },
      { { include = 5 }, "'include': string or table expected, got number" },
      { { include = { false } },
        "'include': element 1: string expected, got boolean" },
      { { headers = "x" }, "'headers': table expected, got string" },
      { { headers = { ["a.h"] = 5 } },
        "'headers': 'a.h': string expected, got number" },
      { { options = "-G" }, "'options': table expected, got string" },
      { { options = { 1 } }, "'options': element 1: string expected, got number" },
      { { names = "x" }, "'names': table expected, got string" },
      { { names = { "x", {} } }, "'names': element 2: string expected, got table" },
      { { name = 5 }, "'name': string expected, got number" },
      { { std = 17 }, "'std': string expected, got number" },
      { { arch = {} }, "'arch': number or string expected, got table" },
      { { lineinfo = 1 }, "'lineinfo': boolean expected, got number" },
      { { debug = "x" }, "'debug': boolean expected, got string" },
      { { cache = 1 }, "'cache': boolean expected, got number" },
      { { untrusted = 1 }, "'untrusted': boolean expected, got number" },
    } do
      assert.matches("bad argument #2 to 'compile' (field " .. case[2] .. ")",
        failure(tp.compile, FILL, case[1]), 1, true)
    end
    assert.matches("bad argument #2 to 'compile' (table expected, got number)",
      failure(tp.compile, FILL, 5), 1, true)
    for _, bad in ipairs { {}, true } do
      assert.matches("bad argument #1 to 'compile' (string expected, got "
        .. type(bad) .. ")", failure(tp.compile, bad), 1, true)
    end
    assert.matches("(string expected, got n", failure(tp.compile), 1, true)
  end)

  it("knows its architectures", function()
    local text = failure(tp.compile, FILL, { arch = "sm_1", defines = { VALUE = 1 } })
    assert.matches("sm_1", text, 1, true)
    assert.matches("80, ", text, 1, true)
    assert.matches('as 80, "sm_80" or "compute_80"', text, 1, true)
    local kind = tp.current_device():kind()
    local arch = kind == "sim" and "compute_80" or "compute_90"
    for _, form in ipairs { arch, tonumber(arch:match "%d+") } do
      local m <close> = tp.compile(FILL, { arch = form, defines = { VALUE = 4 } })
      assert.equal(4, filled(m))
    end
  end)

  it("gives the PTX and the log", function()
    local m <close> = tp.compile(FILL, { defines = { VALUE = 1 } })
    assert.matches("%.version", m:ptx())
    assert.is_nil(m:ptx():find("\0", 1, true))
    assert.matches("fill", m:ptx())
    assert.equal("string", type(m:log()))
    local w <close> = tp.compile("__device__ int f() { int unused; return 1; }\n"
      .. FILL, { defines = { VALUE = 1 } })
    assert.matches("unused", w:log())
  end)

  it("has line numbers unless told otherwise, and debugging if told", function()
    local function ptx(opts)
      opts.defines = { VALUE = 1 }
      local m <close> = tp.compile(FILL, opts)
      return m:ptx()
    end
    assert.matches("\n%s*%.loc%s", ptx {})
    assert.not_matches("\n%s*%.loc%s", ptx { lineinfo = false })
    assert.not_matches("%.target sm_%d+, debug", ptx {})
    assert.matches("%.target sm_%d+, debug", ptx { debug = true })
    local m <close> = tp.compile(FILL, { debug = true, defines = { VALUE = 6 } })
    assert.equal(6, filled(m))
  end)

  it("works under a locale with a decimal comma", function()
    local old = os.setlocale()
    for _, name in ipairs { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8" } do
      if os.setlocale(name) then break end
    end
    local m <close> = tp.compile([[
      extern "C" __global__ void f(float *o) { o[0] = HALF; }]],
      { defines = { HALF = 0.5 } })
    os.setlocale(old)
    local kernel <close> = m:kernel "f"
    local o <close> = tp.zeros("f32", 1)
    kernel:launch({ grid = 1, block = 1 }, o)
    assert.same({ 0.5 }, o:read())
  end)
end)

describe("source text", function()
  it("may begin with a byte-order mark and have CRLF lines", function()
    local m <close> = tp.compile("\xEF\xBB\xBF" .. FILL:gsub("\n", "\r\n"),
      { defines = { VALUE = 8 } })
    assert.equal(8, filled(m))
  end)

  it("with a NUL is refused, saying where", function()
    assert.matches(("the source has a NUL byte at byte %d, line 5"):format(#FILL + 2),
      failure(tp.compile, FILL .. "\n\0\n"), 1, true)
  end)

  it("that is not UTF-8 is refused, saying where", function()
    for source, where in pairs { ["// a\n// \xFF b\n"] = "0xFF at byte 9, line 2",
      ["// \xC3\n"] = "0xC3 at byte 4, line 1",
      ["// \xED\xA0\x80\n"] = "0xED at byte 4, line 1" } do
      assert.matches("the source has a byte that is not UTF-8: " .. where,
        failure(tp.compile, source .. FILL), 1, true)
    end
  end)

  it("whose lines end in CR alone is refused", function()
    assert.matches("the source has a line that ends in CR alone (LF or CRLF is "
      .. "needed) at byte " .. FILL:find "\n" .. ", line 1",
      failure(tp.compile, (FILL:gsub("\n", "\r"))), 1, true)
  end)

  it("without a kernel or variable is refused", function()
    for _, source in ipairs { "__device__ int f();", "// nothing" } do
      assert.matches("the source has neither a kernel (a __global__ function) nor a "
        .. "__device__ or __constant__ variable", failure(tp.compile, source), 1, true)
    end
    for _, source in ipairs { "", " \n" } do
      assert.matches("the source is empty$", (failure(tp.compile, source)))
    end
  end)

  it("with only a variable is fine", function()
    local m <close> = tp.compile "__device__ int x[3] = {1, 2, 3};"
    assert.same({}, m:kernels())
    local x <close> = m:global "x"
    assert.equal(12, x:nbytes())
  end)

  it("may be UTF-8 in comments and strings", function()
    local m <close> = tp.compile("// größer, 大きい\n" .. FILL,
      { defines = { VALUE = 3 } })
    assert.equal(3, filled(m))
  end)
end)

describe("a compile error", function()
  it("shows file, line, source line and caret in the script's numbering",
    function()
      local line = here()
      local text, e = failure(tp.compile, [[
extern "C" __global__ void f(int *o) {
  o[0] = undefined_name;
}]])
      assert.equal("NVRTC_ERROR_COMPILATION", e.code)
      assert.matches("undefined_name", text)
      assert.matches("compile_spec.lua:" .. line + 3, text, 1, true)
      assert.matches("o[0] = undefined_name;", text, 1, true)
      assert.matches("\n%s*%^", text)
    end)

  it("begins with the line of the call", function()
    local line = here() + 1
    local text = failure(function() tp.compile("this is no C", { name = "x.cu" }) end)
    assert.matches("^[^\n]*compile_spec.lua:" .. line, text)
  end)

  it("finds literals inside tables and in variables", function()
    local program = {
      first = line, -- luacheck: ignore
      source = [[

extern "C" __global__ void g(int *o) {
  o[0] = 1
}]], at = here() - 3 }
    local text = failure(tp.compile, program.source)
    assert.matches("compile_spec.lua:" .. program.at + 3, text, 1, true)
  end)

  it("uses the name given and the line within the source", function()
    local text = failure(tp.compile, "int x;\nint y = z;\n",
      { name = "mine.cu" })
    assert.matches("mine.cu:2", text, 1, true)
    assert.matches("int y = z;", text, 1, true)
  end)

  it("shows the line within the source where no literal is found", function()
    local text = failure(tp.compile, ("INT A;\nINT B = C;\n"):lower())
    assert.matches('\nprogram.cu:2: error: identifier "c" is undefined\n  int b = c;\n'
      .. "          ^", text, 1, true)
    assert.not_matches("compile_spec.lua:%d+: error", text)
  end)

  it("shows every diagnostic", function()
    local text = failure(tp.compile, "int a = b1;\nint c = b2;\nint d = b3;\n")
    for i = 1, 3 do assert.matches("b" .. i, text) end
  end)

  it("in a header names the header", function()
    local text = failure(tp.compile, '#include "bad.h"\n',
      { headers = { ["bad.h"] = "int ok;\nint x = nope;\n" } })
    assert.matches("bad.h:2", text, 1, true)
  end)

  it("for a missing header names it", function()
    local text = failure(tp.compile, '#include "not/there.h"\n')
    assert.matches("not/there.h", text, 1, true)
  end)

  it("for an invalid option lists the options passed", function()
    local text = failure(tp.compile, FILL, { options = { "--no-such-option" } })
    assert.matches("--no-such-option", text, 1, true)
  end)

  it("refuses line ends in names and name expressions", function()
    for text, opts in pairs { ["name 'a'"] = { name = "a\nb.cu" },
      ["name expression 'f'"] = { names = { "f\n(1)" } },
      ["option '-DX'"] = { options = { "-DX\n" } } } do
      opts.defines = { VALUE = 1 }
      assert.matches(text .. " has a line end", failure(tp.compile, FILL, opts), 1,
        true)
    end
  end)

  it("refuses NUL in every text of the options", function()
    for _, opts in ipairs {
      { names = { "f\0" } }, { options = { "-DX\0" } }, { include = { "/\0" } },
      { headers = { ["a\0.h"] = "" } }, { headers = { ["a.h"] = "\0" } },
      { defines = { ["A\0"] = 1 } }, { defines = { A = "1\0" } },
    } do
      assert.matches("must not contain NUL", failure(tp.compile, FILL, opts))
    end
  end)

  it("checks the headers' text as it does the source", function()
    local text = failure(tp.compile, FILL, { headers = { ["a.h"] = "\n\xff" } })
    assert.matches("header 'a.h' has a byte that is not UTF-8: 0xFF", text, 1,
      true)
    assert.matches("header 'a.h' has a line that ends in CR alone",
      failure(tp.compile, FILL, { headers = { ["a.h"] = "a\rb" } }), 1, true)
  end)

  it("is what a compiler's file that cannot be written becomes", function()
    local text = failure(tp.compile, FILL, {
      defines = { VALUE = 1 },
      options = { "--fdevice-time-trace=/no/such/folder/x" },
    })
    assert.matches("cannot write '/no/such/folder/x.json'", text, 1, true)
  end)
end)

describe("compile_file", function()
  it("compiles a file and shows its name in errors", function()
    local path = temporary(FILL, ".cu")
    local m <close> = tp.compile_file(path, { defines = { VALUE = 15 } })
    assert.equal(15, filled(m))
    local text = failure(tp.compile_file, path)
    assert.matches(path .. ":3", text, 1, true)
    assert.matches("VALUE", text)
    os.remove(path)
  end)

  it("names a missing file", function()
    local text = failure(tp.compile_file, "/no/such/file.cu")
    assert.matches("/no/such/file.cu", text, 1, true)
    assert.matches("No such file", text)
    assert.matches("cannot read '/': Is a directory", failure(tp.compile_file, "/"))
    assert.matches("must not contain NUL", failure(tp.compile_file, "/a\0b"))
    assert.matches("string expected, got n", failure(tp.compile_file))
  end)

  it("finds headers beside the file", function()
    local header = temporary("#define VALUE 21\n", ".h")
    local path = temporary(('#include "%s"\n%s'):format(
      header:match "[^/]+$", FILL), ".cu")
    local m <close> = tp.compile_file(path)
    assert.equal(21, filled(m))
    os.remove(header)
    os.remove(path)
  end)
end)

local PTX = [[
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 o, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [o];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], 99;
DONE:
  ret;
}
]]

describe("load", function()
  it("takes PTX text", function()
    local m <close> = tp.load(PTX)
    assert.same({ "fill" }, m:kernels())
    assert.equal(99, filled(m))
  end)

  it("takes a path", function()
    local path = temporary(PTX, ".ptx")
    local m <close> = tp.load(path)
    assert.equal(99, filled(m))
    os.remove(path)
  end)

  it("takes what compile made", function()
    local m <close> = tp.compile(FILL, { defines = { VALUE = 31 } })
    local n <close> = tp.load(m:ptx())
    assert.equal(31, filled(n))
  end)

  it("refuses broken PTX", function()
    local _, e = failure(tp.load, PTX:sub(1, #PTX // 2))
    assert.equal("cudaErrorInvalidPtx", e.code)
    assert.equal(218, e.number)
    local text
    text, e = failure(tp.load, (PTX:gsub("mad%.lo%.s32", "mat.lo.s32")))
    assert.equal("cudaErrorInvalidPtx", e.code)
    assert.matches("mat.lo.s32", text, 1, true)
    assert.matches("%f[%w]line 14%f[%W]", text)
  end)

  it("refuses PTX of a newer version", function()
    local _, e = failure(tp.load, (PTX:gsub("7%.0", "99.0")))
    assert.equal("cudaErrorUnsupportedPtxVersion", e.code)
    assert.equal(222, e.number)
  end)

  it("refuses what is no image", function()
    for _, bad in ipairs { "", "hello\nworld, this is no image\n", ("\0"):rep(100),
      "\127ELF" } do
      local ok, e = pcall(tp.load, bad)
      assert.is_false(ok)
      if type(e) ~= "string" then
        assert.is_truthy(({ cudaErrorInvalidKernelImage = true,
          cudaErrorInvalidPtx = true })[e.code], e.code)
      end
    end
    assert.matches("string expected, got no value", failure(tp.load))
    assert.matches("string expected, got number", failure(tp.load, 5))
  end)

  it("names a missing file", function()
    local text = failure(tp.load, "/no/such/file.ptx")
    assert.matches("/no/such/file.ptx", text, 1, true)
  end)
end)

describe("a module", function()
  it("lists overloads with their signatures", function()
    local m <close> = tp.compile [[
      __global__ void f(int *o) { o[0] = 1; }
      __global__ void f(float *o) { o[0] = 2; }
      __global__ void g(int *o) { o[0] = 3; }]]
    local names = m:kernels()
    table.sort(names)
    assert.same({ "f(float*)", "f(int*)", "g" }, names)
    for _, name in ipairs(names) do
      local k <close> = m:kernel(name)
      assert.equal("tpstream.Kernel (" .. (name == "g" and "g(int*)" or name) .. ")",
        tostring(k))
    end
    assert.matches("several kernels 'f': ask for one of 'f(int*)', 'f(float*)'",
      failure(m.kernel, m, "f"), 1, true)
    local text = failure(m.kernel, m, "h")
    assert.matches("'f(int*)'", text, 1, true)
    assert.matches("'f(float*)'", text, 1, true)
    local o <close> = tp.zeros("f32", 1)
    local k <close> = m:kernel "_Z1fPf"
    k:launch({ grid = 1, block = 1 }, o)
    assert.same({ 2 }, o:read())
  end)

  it("knows the types of extern \"C\" kernels too", function()
    local m <close> = tp.compile [=[
      typedef unsigned char byte;
      struct Pair { char a; double b; };
      extern "C" {
      __global__ void c_bytes(byte *o, unsigned short v, bool b) {
        o[0] = b ? v : 0;
      }
      __global__ void c_pair(double *o, const Pair p) { o[0] = p.a + p.b; }
      }]=]
    local one = { grid = 1, block = 1 }
    local bytes <close> = m:kernel "c_bytes"
    local types = {}
    for i, p in ipairs(bytes:params()) do types[i] = p.type end
    assert.same({ "unsigned char*", "unsigned short", "bool" }, types)
    local o <close> = tp.zeros("u8", 1)
    local f <close> = tp.zeros("f32", 1)
    bytes:launch(one, o, 200, true)
    assert.same({ 200 }, o:read())
    for _, case in ipairs {
      { "#2 (unsigned short): 65536 does not fit uint16", o, 65536, true },
      { "#3 (bool): boolean expected, got number", o, 1, 1 },
      { "#1 (unsigned char*): a buffer of uint8 expected, got one of float32", f, 1,
        true },
    } do
      assert.matches("kernel 'c_bytes': argument " .. case[1],
        failure(bytes.launch, bytes, one, table.unpack(case, 2)), 1, true)
    end
    local pair <close> = m:kernel "c_pair"
    local d <close> = tp.zeros("f64", 1)
    pair:launch(one, d, string.pack("<bxxxxxxxd", 3, 0.25))
    assert.same({ 3.25 }, d:read())
  end)

  it("has globals as buffers", function()
    local m <close> = tp.compile [[
      __device__ int counter = 5;
      __constant__ float table[4] = {1, 2, 3, 4};
      namespace ns { __device__ double d[2]; }
      extern "C" __global__ void bump() { counter++; ns::d[1] = table[2]; }]]
    local counter <close> = m:global "counter"
    assert.equal(4, counter:nbytes())
    local bump <close> = m:kernel "bump"
    bump:launch { grid = 1, block = 1 }
    assert.equal(6, (string.unpack("<i4", counter:bytes())))
    local table_ <close> = m:global "table"
    assert.equal(16, table_:nbytes())
    local d <close> = m:global "ns::d"
    local d0, d1 = string.unpack("<dd", d:bytes())
    assert.equal(0, d0)
    assert.equal(3, d1)
    assert.matches("no variable 'countr' in the module (it has 'counter', ",
      failure(m.global, m, "countr"), 1, true)
  end)

  it("has globals of the type that the source gives them", function()
    local source = [[
      enum Color { RED };
      struct S { int a; float b; };
      __device__ int i[2];
      __device__ float4 v[2];
      __device__ bool flag;
      __device__ unsigned long long wide;
      __device__ const int *pointer;
      __device__ Color color;
      __device__ S s[3];
      extern "C" { __device__ double grid[2][3]; __constant__ short c; }]]
    local m <close> = tp.compile(source)
    local plain <close> = tp.load(m:ptx())
    for name, expected in pairs { i = "int32 2", v = "float32 8", flag = "uint8 1",
      wide = "uint64 1", pointer = "uint64 1", color = "uint32 1", s = "uint8 24",
      grid = "float64 6", c = "int16 1" } do
      local g <close> = m:global(name)
      assert.equal(expected, ("%s %d"):format(g:dtype(), #g), name)
      local h <close> = plain:global(name)
      assert.equal(g:nbytes(), h:nbytes())
    end
    -- no source, no type
    local known <close> = tp.load(PTX .. ".visible .global .align 4 .b8 box[12];\n")
    local box <close> = known:global "box"
    assert.equal("uint8 12", ("%s %d"):format(box:dtype(), #box))
  end)

  it("shares its variables with the instances in names, no others", function()
    local m <close> = tp.compile([[
      __device__ int counter;
      template <class T> __global__ void up(T *o) { o[0] = ++counter; }
      __global__ void plain(int *o) { o[0] = ++counter; }]],
      { names = { "up<int>" } })
    local i <close> = tp.zeros("i32", 1)
    local f <close> = tp.zeros("f32", 1)
    local function count(name, o)
      local k <close> = m:kernel(name)
      k:launch({ grid = 1, block = 1 }, o)
      return o:read()[1]
    end
    assert.equal(1, count("plain", i))
    assert.equal(2, count("up<int>", i))
    assert.equal(1, count("up<float>", f)) -- compiled now
    assert.equal(2, count("up<float>", f))
    assert.equal(3, count("plain", i))
    local counter <close> = m:global "counter"
    assert.same({ 3 }, counter:read())
  end)

  it("closes the kernels of its instances, too", function()
    local m = tp.compile [[
      template <class T> __global__ void put(T *o) { o[0] = 4; }]]
    local put, again = m:kernel "put<int>", m:kernel "put<int>"
    local go = put:bind { grid = 1, block = 1 }
    local o <close> = tp.zeros("i32", 1)
    go(o)
    m:close()
    assert.same({ 4 }, o:read())
    for _, call in ipairs { go, function(...)
      again:launch({ grid = 1, block = 1 }, ...)
    end, function() again:params() end } do
      assert.matches("attempt to use a closed kernel", failure(call, o))
    end
  end)

  it("of two compiles of one source have variables of their own", function()
    local source = [[
      __device__ int n;
      extern "C" __global__ void up() { n++; }]]
    local a <close> = tp.compile(source)
    local b <close> = tp.compile(source)
    local up <close> = a:kernel "up"
    up:launch { grid = 1, block = 1 }
    local na <close> = a:global "n"
    local nb <close> = b:global "n"
    assert.equal(1, (string.unpack("<i4", na:bytes())))
    assert.equal(0, (string.unpack("<i4", nb:bytes())))
  end)

  it("closed is refused, with its kernels", function()
    local m = tp.compile(FILL, { defines = { VALUE = 1 } })
    local k = m:kernel "fill"
    m:close()
    m:close()
    assert.matches("closed", tostring(m))
    for _, call in ipairs { "kernel", "kernels", "global", "log", "ptx",
      "fidelity" } do
      assert.matches("attempt to use a closed module",
        (failure(m[call], m, "fill")))
    end
    failure(k.launch, k, { grid = 1, block = 1 }, nil, 0)
  end)

  it("closed lets what runs end", function()
    local o <close> = tp.zeros("i32", 1000)
    local m = tp.compile(FILL, { defines = { VALUE = 1 } })
    local k = m:kernel "fill"
    k:forall(1000, o, 1000)
    m:close()
    assert.equal(1, o:read()[1000])
  end)
end)

describe("an instance on demand that does not compile", function()
  local m
  setup(function()
    m = tp.compile [[
template <class T, int N> __global__ void scale(T *x) {
  static_assert(N < 8, "N is too large");
  x[0] *= N;
}]]
  end)
  teardown(function() m:close() end)

  it("shows what is wrong inside", function()
    local text, e = failure(m.kernel, m, "scale<float, 9>")
    assert.equal("NVRTC_ERROR_COMPILATION", e.code)
    assert.matches("compile_spec.lua:%d+: error: static assertion failed with "
      .. '"N is too large"', text)
    assert.matches("\n  +static_assert%(N < 8", text)
  end)

  it("shows what is wrong in the name", function()
    local text = failure(m.kernel, m, "scale<nope, 2>")
    assert.matches('names: error: identifier "nope" is undefined\n'
      .. "  scale<nope, 2>\n        %^", text)
  end)

  it("is no kernel when the source does not know the template", function()
    local text = failure(m.kernel, m, "scal<int, 2>")
    assert.matches("no kernel 'scal<int, 2>'", text)
    text = failure(m.kernel, m, "std::scale_all<int>")
    assert.matches("no kernel 'std::scale_all<int>'", text)
  end)
end)

describe("compile_file", function()
  local run = require "spec.support.run"
  local place

  local function shell(format, ...)
    local r = run.command { "sh", "-c", format:format(...) }
    assert.equal(0, r.status, r.stderr)
  end
  local function write(path, text)
    local f <close> = assert(io.open(place .. "/" .. path, "wb"))
    f:write(text)
  end

  before_each(function()
    place = os.tmpname()
    os.remove(place)
    shell("mkdir -p '%s/sub'", place)
    write("sub/s.cu", '#include "v.h"\n' .. FILL)
    write("sub/v.h", "#define VALUE 1\n")
    write("v.h", "#define VALUE 2\n")
  end)
  after_each(function() shell("rm -rf '%s'", place) end)

  it("takes the header beside the file before the working folder's", function()
    local script = ([[
local tp = require "tpstream"
for _, path in ipairs { "sub/s.cu", "%s/sub/s.cu" } do
  local m = tp.compile_file(path)
  local o = tp.zeros("i32", 1)
  m:kernel "fill":launch({ grid = 1, block = 1 }, o, 1)
  print(o:read()[1], m:ptx():match '%%.file%%s+1 "([^"]*)"')
end]]):format(place)
    local path = place .. "/script.lua"
    write("script.lua", script)
    local interpreter = run.interpreter()
    if interpreter:find "/" and interpreter:sub(1, 1) ~= "/" then
      interpreter = "$OLDPWD/" .. interpreter
    end
    local r = run.command { "sh", "-c",
      ("cd '%s' && exec \"%s\" '%s'"):format(place, interpreter, path) }
    assert.equal(("1\tsub/s.cu\n1\t%s/sub/s.cu\n"):format(place), r.stdout,
      r.stderr)
  end)

  it("shows errors under the path that it was given", function()
    write("sub/s.cu", "\n__global__ void k(int *x) { *x = y; }")
    local text = failure(tp.compile_file, place .. "/sub/s.cu")
    assert.matches(place .. '/sub/s.cu:2: error: identifier "y"', text, 1, true)
  end)
end)
