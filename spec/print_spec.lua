-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What kernels print: every conversion with flags, widths, precisions and lengths.
-- What is expected is C's, by way of string.format where Lua has the conversion.
local tp = require "tpstream"
local program = require "spec.support.program"
local run = require "spec.support.run"
local f = string.format
local simulated = tp.current_device():kind() == "sim"

-- Format, arguments in C, what comes out.
local cases = {
  { "%d %i", "-5, 77", "-5 77" },
  { "%5d|%-5d|%05d|%+d|% d", "42, 42, 42, 42, 42",
    f("%5d|%-5d|%05d|%+d|% d", 42, 42, 42, 42, 42) },
  { "%.5d|%8.3d|%-8.3d|%.0d", "42, -7, -7, 0",
    f("%.5d|%8.3d|%-8.3d|", 42, -7, -7) },
  { "%u %x %X %o", "4000000000u, 0xbeefu, 0xBEEFu, 511u",
    "4000000000 beef BEEF 777" },
  { "%#x %#X %#o %#10x|%-#10x|%#010x", "255u, 255u, 8u, 255u, 255u, 255u",
    f("%#x %#X %#o %#10x|%-#10x|%#010x", 255, 255, 8, 255, 255, 255) },
  { "%u %d", "-1, 3000000000u", "4294967295 -1294967296" },
  { "%lld %llu %llx %llo", "-1234567890123ll, 18446744073709551615ull, "
    .. "0x123456789abcdefull, 8ull", "-1234567890123 18446744073709551615 "
    .. "123456789abcdef 10" },
  { "%ld %lu %lx %li", "-5l, 5ul, 0xffffffffffl, 1l << 40",
    "-5 5 ffffffffff 1099511627776" },
  { "%20lld|%-20lld|%020lld", "-5ll, -5ll, -5ll",
    f("%20d|%-20d|%020d", -5, -5, -5) },
  { "%hd %hu %hx", "-5, 65535, 0x1234", "-5 65535 1234" },
  { "%c%c%c|%3c|%-3c|", "'A', 'b', '\\'', 'x', 'y'", "Ab'|  x|y  |" },
  { "%s %10s|%-10s|%.3s|%10.2s", '"plain", "right", "left", "cut it", "both"',
    "plain      right|left      |cut|        bo" },
  { "%f %.2f %10.3f|%-10.1f|%+.0f", "1.5, 2.345, -3.14159, 2.25, 0.5",
    f("%f %.2f %10.3f|%-10.1f|%+.0f", 1.5, 2.345, -3.14159, 2.25, 0.5) },
  { "%e %E %.0e %12.3e", "12345.678, 0.00012, 5.0, -1e300",
    f("%e %E %.0e %12.3e", 12345.678, 0.00012, 5.0, -1e300) },
  { "%g %G %.3g %#g %10g", "1e-5, 1e20, 1234567.0, 3.0, 0.1",
    f("%g %G %.3g %#g %10g", 1e-5, 1e20, 1234567.0, 3.0, 0.1) },
  { "%a %A %.2a", "1.5, 0.1, 3.14159", f("%a %A %.2a", 1.5, 0.1, 3.14159) },
  { "%F %f %f %f", "2.5, 1.0 / 0.0, -1.0 / 0.0, 0.0", "2.500000 inf -inf 0.000000" },
  { "%05.1f|% f|%+e|%G", "-1.25, 2.0, 3.0, 1e-10",
    f("%05.1f|% f|%+e|%G", -1.25, 2.0, 3.0, 1e-10) },
  { "%f", "1.1f", f("%f", string.unpack("f", string.pack("f", 1.1))) },
  { "%p %p", "(void *)0, (void *)0x7f0000001230", "(nil) 0x7f0000001230" },
  { "%16p|%-16p|", "(void *)0xabc, (void *)0xabc",
    "           0xabc|0xabc           |" },
  { "100%% %d%%", "5", "100% 5%" },
  { "plain, no arguments", nil, "plain, no arguments" },
  { "%d %s %f %c %lld", '1, "two", 3.0, \'4\', 5ll', "1 two 3.000000 4 5" },
  { "%s|%s", '"", nothing', "|" .. "(null)" },
  { "%d %d %d %d %d %d %d %d %d %d %d %d", "1,2,3,4,5,6,7,8,9,10,11,12",
    "1 2 3 4 5 6 7 8 9 10 11 12" },
  -- A letter that is none is printed as it stands and takes no argument. (hh, z, j, t
  -- and a precision of * are C's on the simulated device; a GPU's printf is erratic.)
  { "[%y] %d [%*d] [%-*d]", "1, 6, 2, 6, 3", "[%y] 1 [     2] [3     ]" },
  { "a\\tb\\\\ \\\"quoted\\\"", nil, 'a\tb\\ "quoted"' },
}

local function source()
  local lines = { [[extern "C" __global__ void print(const char *nothing) {]] }
  for k, case in ipairs(cases) do
    lines[#lines + 1] = ('  printf("%d:%s\\n"%s);'):format(k, case[1],
      case[2] and ", " .. case[2] or "")
  end
  lines[#lines + 1] = [[
}
extern "C" __global__ void results(int *o) {
  o[0] = printf("");
  o[1] = printf("no conversion\n");
  o[2] = printf("%d %s\n", 5, "x");
}
extern "C" __global__ void many(int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; k++) printf("%d.%d\n", i, k);
}
extern "C" __global__ void string(const char *s, int at) {
  printf("a string: %s\n", s + at);
}
extern "C" __global__ void precise(const char *s, int at) {
  printf("%.3s\n", s + at);
}
extern "C" __global__ void format(const char *s) {
  printf(s, 5);
}
extern "C" __global__ void of_block() {
  __shared__ char s[8];
  for (int k = 0; k < 8; k++) s[k] = 'a';
  printf("%s", s);
}]]
  return table.concat(lines, "\n")
end

local HEAD = [[
local tp = require "tpstream"
local ok, module = pcall(tp.compile, [=[%s]=], { name = "print.cu" })
if not ok then
  if module.code ~= "TPSTREAM_ERROR_NO_COMPILER" then error(module) end
  local kept <close> = assert(io.open "spec/ptx/print.ptx")
  module = tp.load(kept:read "a")
end
%s
tp.current_stream():synchronize()]]

local function script(body)
  local r = run.script(HEAD:format(source(), body))
  assert.equal(0, r.status, r.stderr)
  return r.stdout
end

describe("a kernel prints", function()
  it("(and is kept)", function() -- for a machine without NVRTC
    local module <close> = program("print", source())
    assert.same({ "format", "many", "of_block", "precise", "print", "results",
      "string" }, (function()
      local names = module:kernels()
      table.sort(names)
      return names
    end)())
  end)

  it("every conversion", function()
    local out = script 'module:kernel "print":launch({ grid = 1, block = 1 }, nil)'
    local got = {}
    for line in out:gmatch "[^\n]*\n" do
      local k, text = line:match "^(%d+):(.*)\n$"
      if k then got[tonumber(k)] = text end
    end
    for k, case in ipairs(cases) do assert.equal(case[3], got[k], case[1]) end
  end)

  it("and is told how many arguments went", function()
    local out = script [[
local o = tp.zeros("i32", 3)
module:kernel "results":launch({ grid = 1, block = 1 }, o)
local r = o:read()
print("results", table.concat(r, " "))]]
    assert.equal("no conversion\n5 x\nresults\t0 0 2\n", out)
  end)

  it("every line of many threads, each thread's in order", function()
    local out = script 'module:kernel "many":launch({ grid = 5, block = 40 }, 9)'
    local next_, count = {}, 0
    for i, k in out:gmatch "(%d+)%.(%d+)\n" do
      assert.equal(next_[i] or 0, tonumber(k))
      next_[i], count = k + 1, count + 1
    end
    assert.equal(5 * 40 * 9, count)
  end)
end)

-- The line before the end of a kernel of the source above.
local function line_of(name)
  local line, found = 0, false
  for text in (source() .. "\n"):gmatch "(.-)\n" do
    line = line + 1
    found = found or text:find(" void " .. name .. "(", 1, true)
    if found and text == "}" then return line - 1 end
  end
end

describe("printf takes from memory", function()
  if not simulated then
    pending "needs the simulated device"
    return
  end

  it("strings and formats from buffers", function()
    local out = script [[
local s = tp.buffer("u8", 8)
local function launch(name, ...)
  module:kernel(name):launch({ grid = 1, block = 1 }, ...)
  tp.current_stream():synchronize()
end
s:write { ("<%d>\n\0.."):byte(1, -1) }
launch("string", s, 0)
launch("format", s)
launch("string", nil, 0)
s:write { ("12345678"):byte(1, -1) }
launch("precise", s, 5)]]
    assert.equal("a string: <%d>\n\n<5>\na string: (null)\n678\n", out)
  end)
end)

-- A GPU may go on reading for a while.
describe("what printf can't read is a fault:", function()
  if not simulated then
    pending "needs the simulated device"
    return
  end

  local NEAR = "1 byte after the nearest allocation at 0x%x+ of 8 bytes "
    .. "%(uint8 buffer%)"
  for name, case in pairs {
    ["a string at a bad address"] = { "string", "nil, 0x123",
      "load of 1 byte at address 0x123: a null pointer" },
    ["a string without an end"] = { "string", "full, 0",
      "load of 1 byte at address 0x%x+: " .. NEAR },
    ["a string short of its precision"] = { "precise", "full, 6", NEAR },
    ["a format without an end"] = { "format", "full", NEAR },
    ["no format"] = { "format", "nil",
      "load of 1 byte at address 0x0: a null pointer" },
    ["a string in shared memory"] = { "of_block", "",
      "1 byte past shared array 's' of 8 bytes" },
  } do
    it(name, function()
      local kernel, arguments, text = table.unpack(case)
      local r = run.script(HEAD:format(source(), ([[
local full = tp.buffer("u8", 8)
full:write { ("12345678"):byte(1, -1) }
local go = module:kernel "%s":bind { grid = 1, block = 1 }
go(%s)]]):format(kernel, arguments)))
      assert.equal(1, r.status)
      assert.equal("", r.stdout)
      assert.matches(("kernel '%s', block %%(0,0,0%%), thread %%(0,0,0%%), "
        .. "[^ ]*:%d: "):format(kernel, line_of(kernel)), r.stderr)
      assert.matches(text, r.stderr)
    end)
  end
end)
