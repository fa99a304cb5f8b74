-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/kernels.md: tp.map.
local tp = require "tpstream"
local elements = require "spec.support.elements"
local numbers = require "spec.support.numbers"
local run = require "spec.support.run"
local failure = elements.failure

describe("map", function()
  it("makes a kernel of an expression, whose forall passes the count", function()
    local saxpy <close> = tp.map("y = a*x + y", { x = "f32*", y = "f32*", a = "f32" })
    local g = elements.generator(41)
    local xs, ys = g.floats(1000, -1, 1), g.floats(1000, -1, 1)
    local x <close> = tp.buffer("f32", xs)
    local y <close> = tp.buffer("f32", ys)
    saxpy:forall(1000, y, 0.5, x) -- in the order of their first use
    for i = 1, 1000 do ys[i] = numbers.f32(0.5 * xs[i] + ys[i]) end
    numbers.assert_near(ys, y:read(), 1e-6, 1e-7)
    saxpy:forall(0, y, 0.5, x)
    saxpy:launch({ grid = 1, block = 32 }, y, 0, x, 5)
    assert.equal("map", saxpy:name())
  end)

  it("takes parameters in an order of one's own", function()
    local k <close> = tp.map("y = a*x", { "f64 a", "f64* x", "f64 *y" })
    local x <close> = tp.buffer("f64", { 1, 2 })
    local y <close> = tp.zeros("f64", 2)
    k:forall(2, 3, x, y)
    assert.same({ 3.0, 6.0 }, y:read())
  end)

  it("reads past digits in groups, characters and comments", function()
    local k <close> = tp.map("x = 1'000 * y + 2'000 + 'a' /* x' = */;",
      { x = "i32*", y = "i32*" })
    local x <close> = tp.zeros("i32", 2)
    local y <close> = tp.buffer("i32", { 3, 4 })
    k:forall(2, x, y)
    assert.same({ 5097, 6097 }, x:read())
  end)

  it("leaves an element for which it returns as it was", function()
    local k <close> = tp.map("x = 7; if (i == 1) return;", { x = "i32*" })
    local x <close> = tp.buffer("i32", { 1, 2, 3 })
    k:forall(3, x)
    assert.same({ 7, 2, 7 }, x:read())
  end)

  it("knows the index and the count, several statements, whole arrays", function()
    local k <close> = tp.map([[
      int left = x[i > 0 ? i - 1 : n - 1]; // y = 1: a comment
      y = left + 10 * i;
      if (i == 1) y++;
      s += y == 3 ? 1 : 0;]], { "i32[] x", "i32* y", "i64* s" })
    local x <close> = tp.buffer("i32", { 7, 8, 9 })
    local y <close> = tp.zeros("i32", 3)
    local s <close> = tp.zeros("i64", 3)
    k:forall(3, x, y, s)
    assert.same({ 9, 18, 28 }, y:read())
    assert.same({ 0, 0, 0 }, s:read())
  end)

  it("what is only read is const, what is only compared is not written", function()
    local k <close> = tp.map("y = x <= 2 || x == z", { "u8* y", "f32* x", "f32* z" })
    local params = k:params()
    assert.is_false(params[1].const)
    assert.is_true(params[2].const and params[3].const)
    assert.equal(4, #params)
    local y <close> = tp.zeros("u8", 4)
    local x <close> = tp.buffer("f32", { 1, 2, 3, 4 })
    local z <close> = tp.buffer("f32", { 0, 0, 3, 0 })
    k:forall(4, y, x, z)
    assert.same({ 1, 1, 1, 0 }, y:read())
  end)

  it("computes halves in f32 and checks their buffers", function()
    local k <close> = tp.map("y = a * sqrtf(x)", { "f16* x", "f16* y", "f16 a" })
    local x <close> = tp.buffer("f16", { 4, 9 })
    local y <close> = tp.zeros("f16", 2)
    k:forall(2, x, y, 0.5)
    assert.same({ 1.0, 1.5 }, y:read())
    local wrong <close> = tp.zeros("bf16", 2)
    assert.matches("kernel 'map': argument 'x' %(__half const%*%): a buffer of "
      .. "float16 expected, got one of bfloat16", failure(k.forall, k, 2, wrong, y, 1))
    local b <close> = tp.map("x = -x", { x = "bf16*" })
    b:forall(2, wrong)
    assert.same({ -0.0, -0.0 }, wrong:read())
  end)

  it("knows no names but its own", function()
    local k <close> = tp.map("load = WARP * x_ + x", { "i32* load", "i32 WARP",
      "i32* x", "i32* x_" })
    local o <close> = tp.zeros("i32", 2)
    local x <close> = tp.buffer("i32", { 1, 2 })
    k:forall(2, o, 10, x, x)
    assert.same({ 11, 22 }, o:read())
  end)

  it("takes functions of one's own before it", function()
    local k <close> = tp.map("x = twice(x)", { x = "i32*" },
      { preamble = "__device__ int twice(int x) { return 2 * x; }" })
    local x <close> = tp.buffer("i32", { 1, 2, 3 })
    k:forall(3, x)
    assert.same({ 2, 4, 6 }, x:read())
  end)

  it("shows the compiler's errors in the expression's lines", function()
    local text = failure(tp.map, "float t = a * x;\ny = t + unknown_thing;",
      { "f32* y", "f32* x", "f32 a" })
    assert.matches("^[^\n]+%.lua:%d+: compilation failed: 1 error", text)
    assert.matches('expression:2: error: identifier "unknown_thing" is undefined\n'
      .. "  y = t %+ unknown_thing;\n          ^", text)
    text = failure(tp.map, "x = f(x)", { x = "f32*" },
      { preamble = "\n__device__ float f(float x) { return z; }" })
    assert.matches('preamble:2: error: identifier "z" is undefined', text)
    text = failure(tp.map, "x = y; y = 2", { x = "f32*", y = "f32" })
    assert.matches("expression:1: error: expression must be a modifiable lvalue", text)
  end)

  it("shows faults in the expression's lines, loads in the first, stores in the last",
    function()
      local code = [[
local tp = require "tpstream"
tp.set_device "sim"
local x, y = tp.zeros("f32", %d), tp.zeros("f32", %d)
local k = tp.map(%s)
k:launch({ grid = 1, block = 32 }, y, x, 11)
y:read()
]]
      local whole = '{ "f32* y", "f32[] x" }'
      local copied = '"float a = x;\\ny = a;\\n", { "f32* y", "f32* x" }'
      for _, case in ipairs {
        { 11, 12, '"float a = 1;\\ny = a + x[i + 1];", ' .. whole, "expression:2" },
        { 11, 12, '"y = at(x, i);", ' .. whole .. ", { preamble = "
          .. '"__device__ float at(f32 *x, i64 i)\\n{ return x[i + 1]; }" }',
          "preamble:2" },
        { 10, 12, copied, "expression:1: load" },
        { 12, 10, copied, "expression:2: store" },
      } do
        local r = run.script(code:format(table.unpack(case)))
        assert.matches("thread (10,0,0), " .. case[4], r.stderr, 1, true)
        assert.matches("launched at " .. r.path .. ":5\n", r.stderr, 1, true)
      end
    end)

  it("names the parameters in errors of a launch", function()
    local k <close> = tp.map("y = a*x + y", { x = "f32*", y = "f32*", a = "f32" })
    local x <close> = tp.zeros("f32", 3)
    local one = { grid = 1, block = 1 }
    assert.equal("tpstream.Kernel (map(float* y, float a, float const* x, "
      .. "long long n))", tostring(k))
    for text, call in pairs {
      ["kernel 'map': argument 'a' (float): number expected, got string"] =
        { k.forall, k, 3, x, "1", x },
      ["kernel 'map': argument 'x' (float const*): tpstream.Buffer or nil expected, "
        .. "got number"] = { k.forall, k, 3, x, 1, 1 },
      ["kernel 'map': argument 'n' (long long): 1.5 is not a whole number, as int64 "
        .. "takes"] = { k.launch, k, one, x, 1, x, 1.5 },
      ["kernel 'map': 3 arguments expected, got 2 (y, a, x)"] =
        { k.forall, k, 3, x, 1 },
      ["kernel 'map': 3 arguments expected, got 4 (y, a, x)"] =
        { k.forall, k, 3, x, 1, x, 3 },
      ["kernel 'map': 4 arguments expected, got 0 (y, a, x, n)"] =
        { k.launch, k, one },
    } do
      assert.matches(text, failure(table.unpack(call)), 1, true)
    end
  end)

  it("says what is wrong with the declarations", function()
    for text, call in pairs {
      ["bad argument #1 to 'map' %(string expected, got nil"] = {},
      ["bad argument #2 to 'map' %(table expected, got nil"] = { "x = 1" },
      ["'y' does not occur in the expression"] =
        { "x = 1", { x = "f32*", y = "f32" } },
      ["'i' is the index"] = { "x = i", { x = "f32*", i = "i32" } },
      ["'n' is the count"] = { "x = n", { x = "f32*", n = "i32" } },
      ["'x': unknown type 'float'"] = { "x = 1", { x = "float" } },
      ["'x': string expected, got number"] = { "x = 1", { x = 5 } },
      ["'2x' is not a name"] = { "x = 1", { ["2x"] = "f32*" } },
      ["nothing is assigned to an element %(there are 'x', 'y'%)"] =
        { "x == y", { x = "f32*", y = "f32*" } },
      ["no array is declared"] = { "x = 1", { x = "f32" } },
      ["nothing is declared"] = { "x = 1", {} },
      ["'x' is declared twice"] = { "x = 1", { "f32* x", "f32 x" } },
      ["unknown option 'pre' %(there are preamble%)"] =
        { "x = 1", { x = "f32*" }, { pre = 1 } },
    } do
      assert.matches(text, failure(tp.map, table.unpack(call)))
    end
  end)
end)

describe("tp.kernels", function()
  it("lists what there is, and nothing else", function()
    local names = {}
    for name in pairs(tp.kernels) do names[#names + 1] = name end
    table.sort(names)
    assert.equal("argmax argmin axpy conv1d conv2d dot exclusive_scan fill histogram "
      .. "iota matmul max min norm random_normal random_uniform scan sort sort_pairs "
      .. "sum transpose", table.concat(names, " "))
    assert.is_nil(tp.kernels.nothing)
  end)

  it("is whole after what interrupts its first use", function()
    local r = run.script([[
      local tp = require "tpstream"
      for steps = 1, 3000, 40 do
        pcall(function()
          debug.sethook(function() debug.sethook() error "stop" end, "", steps)
          local _ = tp.kernels.sum
          debug.sethook()
        end)
      end
      local count = 0
      for _ in pairs(tp.kernels) do count = count + 1 end
      print(count, tp.kernels.random_normal ~= nil)]])
    assert.equal("", r.stderr)
    assert.equal("21\ttrue\n", r.stdout)
  end)

  it("runs on the current stream", function()
    local s <close> = tp.Stream()
    local x <close> = tp.zeros("i32", 100000)
    s:wait_stream(tp.default_stream())
    local sum <close> = tp.with_stream(s, function()
      tp.kernels.iota(x)
      return tp.kernels.sum(x)
    end)
    assert.same({ 4999950000 }, tp.with_stream(s, sum.read, sum))
  end)

  it("can be captured in a graph, scratch memory and all", function()
    local n = 9000
    local x <close> = tp.zeros("f32", n)
    local sums <close> = tp.buffer("f32", n)
    local total <close> = tp.buffer("f32", 1)
    local product <close> = tp.buffer("f32", 1)
    local K = tp.kernels
    local g <close> = tp.capture({ params = { a = 0 } }, function(p)
      K.axpy(p.a, x, x)
      K.scan(x, sums)
      K.sort(sums, { descending = true })
      K.sum(x, total)
      K.matmul(x, x, 1, 1, n, { out = product })
    end)
    for value = 1, 2 do
      x:fill(1)
      g:launch { a = value - 1 }
      assert.same({ value * n + 0.0, value * (n - 1) + 0.0 }, sums:read(1, 2))
      assert.same({ value * n + 0.0 }, total:read())
      assert.same({ value * value * n + 0.0 }, product:read())
    end
  end)

  it("says whose memory it is that the current device does not reach", function()
    local r = run.script([==[
      local tp = require "tpstream"
      local x = tp.buffer("f32", { 1, 2 }, { device = 1 })
      print(pcall(tp.kernels.sum, x))
      print(tp.with_device(1, function() return tp.kernels.sum(x):read()[1] end))]==],
      { env = { TPSTREAM_DEVICE = "sim", TPSTREAM_SIM_DEVICES = "2",
                TPSTREAM_SIM_PEERS = "0" } })
    assert.matches("false\t.-kernel 'reduce': argument #1 .-: the buffer is on sim:1, "
      .. "the launch on sim:0\n3.0\n", r.stdout)
  end)
end)
