-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- PTX that is broken, or made to be slow or large: loading it says what is wrong,
-- soon, and never harms the process. What the text alone does not show is a fault
-- when the kernel runs.
local tp = require "tpstream"
local run = require "spec.support.run"
local simulated = require "spec.support.simulated"

local HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

local function kernel(body, before)
  return HEAD .. (before or "") .. ".visible .entry k(.param .u64 a)\n"
    .. "{ .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>;\n" .. body .. "\n}\n"
end

local function refused(text, said, code)
  local ok, e = pcall(tp.load, text)
  assert.is_false(ok, "loaded, but should say: " .. said)
  assert.is_truthy(e.message:find(said, 1, true), e.message)
  assert.equal(code or "cudaErrorInvalidPtx", e.code)
end

local MILLION = 1000000

describe("broken PTX", function()
  simulated(setup, teardown)

  it("of another address size is refused", function()
    for _, size in ipairs { 32, 16, 0 } do
      refused((".version 8.0\n.target sm_80\n.address_size %d\n"):format(size)
        .. ".visible .entry k() { ret; }", ("line 3: '.address_size %d': programs of "
        .. "64 bits are all there is"):format(size))
    end
  end)

  it("nested deeply is refused", function()
    refused(kernel(("{"):rep(MILLION)), "braces nested deeper than 200")
    refused(HEAD .. ".global .b32 x = " .. ("("):rep(MILLION),
      "expression nested deeper than 100")
    refused(HEAD .. ".global .b32 x = " .. ("-"):rep(MILLION) .. "1;",
      "expression nested deeper than 100")
    refused(HEAD .. ".global .b32 x[4] = " .. ("{"):rep(MILLION),
      "too many braces for 'x'")
    refused(HEAD .. ".section .d " .. ("{"):rep(MILLION),
      "section without a closing brace")
  end)

  it("with huge numbers is refused", function()
    refused(kernel ".reg .b32 %x<4000000000>;",
      "range of registers of 4000000000 (limit 1048576)")
    refused(kernel ".reg .b32 %x<1000000>;", "registers in a text of ")
    refused(HEAD .. ".global .b8 x[1152921504606846976];",
      "array size of 1152921504606846976 (limit 1099511627776)")
    refused(HEAD .. ".global .align 4611686018427387904 .b8 x[4];",
      "alignment of 4611686018427387904 (limit 1048576)")
    refused(HEAD .. ".global .b8 x[1000000000] = {1};",
      "initialisers of more than 268435456 bytes")
    refused(HEAD .. ".file 4000000000 \"a\"",
      "file number of 4000000000 (limit 65535)")
    refused(HEAD .. ".global .b32 x = " .. ("9"):rep(MILLION) .. ";",
      "integer of more than 64 bits")
  end)

  it("that asks for more than a GPU has is refused", function()
    refused(kernel ".shared .b8 s[49153]; st.shared.u8 [s], 1;",
      "kernel 'k': 49153 bytes of static shared memory (49152 are allowed)")
    refused(kernel ".local .b8 s[1073741823]; st.local.u8 [s], 1;",
      "function 'k': 1073741823 bytes of local memory (524288 are allowed)")
    refused(kernel("{ .param .b8 y[1000000000]; call f, (y); }",
      ".func f(.param .b8 x[1000000000]) { ret; }\n"),
      "bytes a warp for its registers and parameters")
    local names, loads = {}, {}
    for i = 1, 5 do -- 5 GiB, beyond 32 bits
      names[i] = (".shared .b8 s%d[1073741823];\n"):format(i)
      loads[i] = ("ld.shared.u8 %%r1, [s%d];\n"):format(i)
    end
    refused(kernel(table.concat(loads), table.concat(names)),
      "kernel 'k': 5368709115 bytes of static shared memory")
  end)

  it("that jumps or calls wrongly is refused", function()
    local f = ".func (.param .b32 r) f(.param .b32 x) { ret; }\n"
    refused(kernel "bra M; { M: ret; }", "label 'M' is not defined")
    refused(kernel("{ .param .b32 y; call (y), f, (); }", f),
      "call of 'f' with 0 arguments (it has 1)")
    refused(kernel("{ .param .b64 x; .param .b32 y; call (y), f, (x); }", f),
      "argument 1 of 'f' has 8 bytes (its parameter has 4)")
    refused(kernel("{ .param .b32 x; call f, (x); }", f),
      "call of 'f' with 0 results (it has 1)")
    refused(kernel "call k;", "call of kernel 'k'")
    refused(kernel "call %d1;",
      "call through a register without targets or a prototype")
  end)

  it("whose parameters lie outside of their variable is refused", function()
    for _, address in ipairs { "y+4294967296", "y-4", "y+8" } do
      refused(kernel("{ .param .b32 y; st.param.b32 [" .. address .. "], 1; }"),
        "instruction 'st.param.b32' is not supported", "cudaErrorNotSupported")
    end
  end)

  it("that mixes classes of registers is refused", function()
    refused(kernel "max.pred %p1, %p2, %p3;", "instruction 'max.pred' is not "
      .. "supported by the simulated device", "cudaErrorNotSupported")
  end)

  it("of one megabyte of one kind is read in time", function()
    local texts = {
      semicolons = kernel((";"):rep(MILLION)),
      scopes = kernel(("{}"):rep(MILLION // 2)),
      sum = HEAD .. ".global .b32 x = " .. ("1+"):rep(MILLION // 2) .. "1;",
      slashes = HEAD .. ("/"):rep(MILLION),
    }
    local branches, kernels, chain = {}, {}, { ".func f0() { ret; }\n" }
    for i = 1, 20000 do
      branches[i] = ("L%d: @%%p1 bra L%d;\n"):format(i, i * 7919 % 20000 + 1)
      kernels[i] = (".entry k%d() { ret; }\n"):format(i)
      chain[i + 1] = (".func f%d() { call f%d; ret; }\n"):format(i, i - 1)
    end
    texts.branches = kernel(table.concat(branches))
    texts.kernels = HEAD .. table.concat(kernels)
    texts.chain = kernel("call f20000;", table.concat(chain))
    local targets = { "T: .branchtargets L1" }
    for i = 2, 20000 do targets[i] = ", L" .. i end
    texts.tables = kernel(table.concat(branches) .. table.concat(targets) .. ";"
      .. ("brx.idx %r1, T;\n"):rep(20000))
    for name, text in pairs(texts) do
      local timer = os.clock()
      local module = tp.load(text)
      -- a hang is minutes; sanitizers and busy machines have their room
      assert.is_true(os.clock() - timer < 20, name .. " took too long")
      module:close()
    end
  end)

  it("that recurses without end is a fault", function()
    local result = run.script([=[
      local tp = require "tpstream"
      tp.set_device "sim"
      local k = tp.load [[]=] .. HEAD .. [=[
        .func _ZN5outer1fEv() { call _ZN5outer1fEv; ret; }
        .visible .entry k() { call _ZN5outer1fEv; ret; }]]:kernel "k"
      local ok, e = pcall(function()
        k:launch({ grid = 1, block = 32 })
        tp.current_stream():synchronize()
      end)
      print(ok, e.code, e.message)
    ]=])
    assert.is_truthy(result.stdout:find("stack overflow: call of 'outer::f'", 1,
      true), result.stdout .. result.stderr)
  end)
end)
