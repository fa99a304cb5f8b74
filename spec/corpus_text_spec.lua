-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The corpus's kernels that print (18), and that end in a fault (19): each in a
-- process of its own.
local run = require "spec.support.run"

-- Runs `body` with `module`, the kernels of the file, and `tp` in sight.
local function script(file, body)
  return run.script(([[
local tp = require "tpstream"
local source <close> = assert(io.open "spec/corpus/%s")
local ok, module = pcall(tp.compile, source:read "a", { name = "%s" })
if not ok and module.code == "TPSTREAM_ERROR_NO_COMPILER" then
  local kept <close> = assert(io.open "spec/ptx/corpus_%s.ptx")
  module = tp.load(kept:read "a")
elseif not ok then
  error(module)
end
%s
]]):format(file, file, file:match "^%d+", body))
end

describe("corpus", function()
  -- So that spec/ptx has them for a machine without NVRTC
  local corpus = require "spec.support.corpus"
  for _, file in ipairs { "18_printf.cu", "19_assert_trap.cu" } do
    local kernel = corpus.module(setup, teardown, file)
    it(file .. " compiles", function()
      local name = file:find "^18" and "hello" or "trap_kernel"
      assert.is_truthy(kernel(name))
    end)
  end

  it("18 prints a line for each thread", function()
    local r = script("18_printf.cu", [[
module:kernel "hello":launch({ grid = 1, block = 40 }, 1.5, nil)
local text = tp.buffer("u8", "device text\0")
tp.current_stream():synchronize()
print "--"
module:kernel "hello":launch({ grid = 1, block = 1 }, 2, text)
tp.current_stream():synchronize()]])
    assert.equal(0, r.status, r.stderr)
    local first, second = r.stdout:match "^(.-)%-%-\n(.*)$"
    local lines = {}
    for line in first:gmatch "[^\n]+" do lines[line] = (lines[line] or 0) + 1 end
    for t = 0, 39 do
      local line = ("t=%d x=%f s=hi c=A l=1234567890123 p=%%"):format(t, t * 1.5)
      assert.equal(1, lines[line], line)
    end
    assert.equal("t=0 x=0.000000 s=device text c=A l=1234567890123 p=%\n", second)
  end)

  it("18 prints with flags, widths and pointers", function()
    local r = script("18_printf.cu", [[
module:kernel "printf_none":launch({ grid = 1, block = 3 })
tp.current_stream():synchronize()]])
    local lines = {}
    for line in r.stdout:gmatch "[^\n]+" do lines[#lines + 1] = line end
    table.sort(lines)
    assert.same({ "1.50e+00|42      |0000beef|(nil)", "plain", "plain", "plain" },
      lines)
  end)

  it("19 asserts #fault", function()
    local r = script("19_assert_trap.cu", [[
local input, out = tp.buffer("i32", { 1, 2, 3, 4 }), tp.zeros("i32", 4)
local kernel = module:kernel "assert_kernel"
kernel:launch({ grid = 1, block = 4 }, input, out)
print(table.concat(out:read(), " "))
input:write({ -5 }, 3)
kernel:launch({ grid = 1, block = 4 }, input, out)
local ok, e = pcall(function() tp.current_stream():synchronize() end)
print(ok, e.code)]])
    assert.matches("^2 4 6 8\n", r.stdout)
    assert.matches("false\tcudaErrorAssert\n$", r.stdout)
    local _, count = (r.stdout .. r.stderr):gsub(
      "program.cu:2: [^\n]*assert_kernel[^\n]*: block: %[0,0,0%], thread: "
      .. "%[2,0,0%] Assertion `in%[i%] >= 0 && \"negative input\"` failed%.\n", "")
    assert.equal(1, count, r.stdout .. r.stderr)
  end)

  -- Each flag, and the code that the device then answers with (4 runs off the end of
  -- the kernel, which means nothing)
  for flag, code in pairs { [0] = "none", [1] = "cudaErrorLaunchFailure",
    [2] = "none", [3] = "cudaErrorLaunchFailure" } do
    it("19 trap_kernel " .. flag .. " #fault", function()
      local r = script("19_assert_trap.cu", ([[
module:kernel "trap_kernel":launch({ grid = 2, block = 32 }, %d)
local ok, e = pcall(function() tp.current_stream():synchronize() end)
print(ok and "none" or e.code)]]):format(flag))
      assert.equal(code .. "\n", r.stdout)
    end)
  end
end)
