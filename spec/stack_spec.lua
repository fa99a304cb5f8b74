-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Memory that kernels take from a thread's stack as they run: alloca, stacksave and
-- stackrestore, which nvcc emits for alloca(). The memory is small, for a GPU's stack.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local run = require "spec.support.run"

-- sum(n, depth): an array of n words, its elements i * depth; before it is summed
-- another call, of n - 1, takes its own.
local TEXT = [[
.version 7.8
.target sm_80
.address_size 64
.func (.param .b32 result) sum(.param .b32 n, .param .b32 depth)
{
  .reg .pred %p; .reg .b32 %n, %d, %i, %v, %s, %t; .reg .b64 %a, %q, %z, %o;
  ld.param.u32 %n, [n];
  ld.param.u32 %d, [depth];
  mul.wide.u32 %z, %n, 4;
  alloca.u64 %a, %z, 16;
  and.b64 %o, %a, 15;
  cvt.u32.u64 %t, %o;
  cvta.local.u64 %a, %a;
  mov.u32 %i, 0;
$fill:
  setp.ge.u32 %p, %i, %n;
  @%p bra $filled;
  mad.wide.u32 %q, %i, 4, %a;
  mul.lo.u32 %v, %i, %d;
  st.u32 [%q], %v;
  add.u32 %i, %i, 1;
  bra $fill;
$filled:
  setp.lt.u32 %p, %n, 2;
  @%p bra $alone;
  sub.u32 %v, %n, 1;
  add.u32 %i, %d, 3;
  {
    .param .b32 p0; .param .b32 p1; .param .b32 r;
    st.param.b32 [p0], %v;
    st.param.b32 [p1], %i;
    call (r), sum, (p0, p1);
    ld.param.b32 %s, [r];
  }
  add.u32 %t, %t, %s;
$alone:
  mov.u32 %i, 0;
$add:
  setp.ge.u32 %p, %i, %n;
  @%p bra $added;
  mad.wide.u32 %q, %i, 4, %a;
  ld.u32 %v, [%q];
  add.u32 %t, %t, %v;
  add.u32 %i, %i, 1;
  bra $add;
$added:
  st.param.b32 [result], %t;
  ret;
}
.visible .entry sums(.param .u64 in, .param .u64 out)
{
  .reg .b32 %t, %n, %r; .reg .b64 %p;
  mov.u32 %t, %tid.x;
  ld.param.u64 %p, [in];
  mad.wide.u32 %p, %t, 4, %p;
  ld.global.u32 %n, [%p];
  {
    .param .b32 p0; .param .b32 p1; .param .b32 r;
    st.param.b32 [p0], %n;
    st.param.b32 [p1], %t;
    call (r), sum, (p0, p1);
    ld.param.b32 %r, [r];
  }
  ld.param.u64 %p, [out];
  mad.wide.u32 %p, %t, 4, %p;
  st.global.u32 [%p], %r;
  ret;
}
// `turns` times 64 bytes, given back each time: all at one place.
.visible .entry loop(.param .u64 out, .param .u32 turns)
{
  .reg .pred %p; .reg .b32 %n, %v, %same; .reg .b64 %a, %first, %top, %o;
  ld.param.u32 %n, [turns];
  mov.u32 %same, 0;
  stacksave.u64 %top;
  alloca.u64 %first, 64;
  stackrestore.u64 %top;
$next:
  alloca.u64 %a, 64;
  st.local.u32 [%a+60], %n;
  setp.eq.u64 %p, %a, %first;
  @%p add.u32 %same, %same, 1;
  ld.local.u32 %v, [%a+60];
  setp.ne.u32 %p, %v, %n;
  @%p add.u32 %same, %same, 1000;
  stackrestore.u64 %top;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra $next;
  ld.param.u64 %o, [out];
  st.global.u32 [%o], %same;
  ret;
}
]]

local function sum(n, depth)
  local total = 0
  for i = 0, n - 1 do total = total + i * depth end
  return n < 2 and total or total + sum(n - 1, depth + 3)
end

-- compute-sanitizer takes what alloca gives in a kernel for out of bounds.
describe("alloca #fault", function()
  local module
  setup(function() module = tp.load(TEXT) end)
  teardown(function() module:close() end)

  it("gives each thread of each call its own memory", function()
    local g = numbers.generator(5)
    local counts, expected = {}, {}
    for t = 1, 64 do
      counts[t] = g.int(0, 5)
      expected[t] = sum(counts[t], t - 1)
    end
    local n <close> = tp.buffer("i32", counts)
    local out <close> = tp.zeros("i32", 64)
    module:kernel "sums":launch({ grid = 1, block = 64 }, n, out)
    assert.same(expected, out:read())
  end)

  it("gives back what stackrestore takes", function()
    local out <close> = tp.zeros("i32", 1)
    module:kernel "loop":launch({ grid = 1, block = 1 }, out, 500)
    assert.same({ 500 }, out:read())
  end)
end)

if tp.current_device():kind() ~= "sim" then return end

-- What a GPU leaves undefined.
local FAULTS = [===[
local tp = require "tpstream"
local module = tp.load [[
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 bytes, .param .u32 off, .param .u32 back)
{
  .reg .pred %%p; .reg .b32 %%n; .reg .b64 %%a, %%z, %%top;
  ld.param.u64 %%z, [bytes];
  ld.param.u32 %%n, [off];
  stacksave.u64 %%top;
  alloca.u64 %%a, %%z;
  ld.param.u32 %%n, [back];
  setp.eq.u32 %%p, %%n, 1;
  @%%p stackrestore.u64 %%top;
  setp.eq.u32 %%p, %%n, 2;
  mov.u64 %%z, 3;
  @%%p stackrestore.u64 %%z;
  ld.param.u32 %%n, [off];
  cvt.u64.u32 %%z, %%n;
  add.u64 %%a, %%a, %%z;
  st.local.u32 [%%a], %%n;
  ret;
}
]]
module:kernel "k":launch({ grid = 1, block = 1 }, %s)
print(pcall(function() tp.current_stream():synchronize() end))
]===]

describe("alloca on the simulated device", function()
  local function fault(arguments)
    return run.script(FAULTS:format(arguments)).stdout
  end

  it("ends with a fault where the stack ends", function()
    assert.match("stack overflow: alloca of 1048576 bytes needs more than the "
      .. "524288 bytes of stack of a thread", fault "1 << 20, 0, 0", 1, true)
  end)

  it("ends with a fault behind what was taken", function()
    assert.equal("true\n", fault "32, 28, 0")
    assert.match("past the end of the 96 bytes of local memory (stack)",
      fault "32, 32, 0", 1, true)
  end)

  it("ends with a fault in what was given back", function()
    assert.match("local memory (stack) that the thread uses here",
      fault "32, 0, 1", 1, true)
  end)

  it("takes only what stacksave has returned", function()
    assert.match("stackrestore to 0x3, which stacksave has not returned here",
      fault "32, 0, 2", 1, true)
  end)
end)
