-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Graphs: named parameters, update, add, graphs inside
-- graphs, conditional nodes, what nodes() and dot() tell.
local tp = require "tpstream"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

local simulated = tp.current_device():kind() == "sim"
local one = gate.one

-- graph_spec has made it.
local module
local function kernel(name)
  module = module or tp.load "spec/ptx/graph.ptx"
  return module:kernel(name)
end

describe("named parameters", function()
  it("have their first value until a launch names another", function()
    local x <close> = tp.buffer("f32", { 1, 2 })
    local k <close> = kernel "scale"
    local g <close> = tp.capture({ params = { by = 2 } }, function(p)
      k:launch({ grid = 1, block = 32 }, x, p.by, 2)
    end)
    g:launch()
    assert.same({ 2.0, 4.0 }, x:read())
    g:launch { by = 10 }
    assert.same({ 20.0, 40.0 }, x:read())
    g:launch {}
    g:launch()
    assert.same({ 2000.0, 4000.0 }, x:read())
    g:launch { by = 0.5 }
    assert.same({ 1000.0, 2000.0 }, x:read())
  end)

  it("come before the other arguments of the function", function()
    local seen
    tp.capture({ params = { a = 1 } }, function(p, ...)
      seen = { tostring(p.a), p.b, ... }
    end, 5, 6):close()
    assert.same({ "tpstream.Parameter (a, 1)", nil, 5, 6 }, seen)
  end)

  it("are of every plain type, checked as arguments are", function()
    local o <close> = tp.zeros("u8", 56)
    local k <close> = kernel "types"
    local first = { a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0,
                    i = 0, j = 0, k = 0 }
    local function launch(p)
      k:launch(one, o, p.a, p.b, p.c, p.d, p.e, p.f, p.g, p.h, p.i, p.j, p.k)
    end
    local graph <close> = tp.capture({ params = first }, launch)
    local format = "<i1I1i2I2xxi4I4i8i8fxxxxdB"
    for _ = 1, 20 do
      local v = {
        a = math.random(-128, 127), b = math.random(0, 255),
        c = math.random(-32768, 32767), d = math.random(0, 65535),
        e = math.random(-1 << 31, (1 << 31) - 1),
        f = math.random(0, (1 << 32) - 1), g = math.random(0), h = math.random(0),
        i = math.random(-1000, 1000) / 8, j = math.random() * 1e9,
        k = math.random(0, 1),
      }
      local some = {}
      for name, value in pairs(v) do
        if math.random(3) > 1 then
          some[name], first[name] = value, value
        end
      end
      graph:launch(some)
      local r = table.pack(format:unpack(o:bytes()))
      assert.same({ first.a, first.b, first.c, first.d, first.e, first.f,
                    first.g, first.h, first.i, first.j, first.k },
        table.move(r, 1, 11, 1, {}))
    end
    local PTX_SAYS = { a = 256, b = -129, c = 65536, e = 1 << 32, f = -(1 << 31) - 1 }
    for name, value in pairs(PTX_SAYS) do
      local ok, e = pcall(graph.launch, graph, { i = 1, [name] = value })
      assert.is_false(ok)
      assert.matches("parameter '" .. name .. "'", e)
      assert.matches("does not fit", e)
    end
    local ok, e = pcall(graph.launch, graph, { e = 1.5 })
    assert.is_false(ok)
    assert.matches("parameter 'e': 1.5 is not a whole number", e, 1, true)
    ok, e = pcall(graph.launch, graph, { j = "x" })
    assert.is_false(ok)
    assert.matches("parameter 'j': number expected, got string", e, 1, true)
    graph:launch()
    assert.equal(first.i, (("<f"):unpack(o:bytes(33, 4))))
  end)

  it("may stand in several launches, and several in one", function()
    local b <close> = tp.zeros("i32", 2)
    local add <close> = gate.kernel "add"
    local g <close> = tp.capture({ params = { v = 1, at = 0 } }, function(p)
      add:launch(one, b, p.at, p.v)
      add:launch(one, b, 1, p.v)
      add:bind(one)(b, p.at, 10)
    end)
    g:launch { v = 2 }
    assert.same({ 12, 2 }, b:read())
    g:launch { v = 3, at = 1 }
    assert.same({ 12, 18 }, b:read())
  end)

  it("that do not fit one of their places change nothing", function()
    local b <close> = tp.zeros("i32", 1)
    local x <close> = tp.buffer("f32", { 1 })
    local add <close> = gate.kernel "add"
    local scale <close> = kernel "scale"
    local g <close> = tp.capture({ params = { v = 3, w = 1 } }, function(p)
      scale:launch(one, x, p.v, 1)
      add:launch(one, b, 0, p.w)
      add:launch(one, b, 0, p.v)
    end)
    assert.is_false(pcall(g.launch, g, { v = 0.5, w = 100 }))
    assert.same({ 0 }, b:read())
    g:launch()
    assert.same({ 4 }, b:read())
    assert.same({ 3.0 }, x:read())
  end)

  it("do not change launches that are queued already", function()
    local list <close> = tp.zeros("i32", 10)
    local append <close> = gate.kernel "append"
    local s <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local held <close> = gate.new()
    local g <close> = tp.capture({ params = { v = 1 } }, function(p)
      append:launch(one, list, p.v)
    end)
    held:hold(s)
    g:launch(s)
    g:launch { stream = s, v = 2 }
    g:launch(s)
    g:launch { stream = s, v = 3 }
    held:open()
    s:synchronize()
    assert.same({ 4, 1, 2, 2, 3 }, list:read(1, 5))
  end)

  it("stand for nothing else: no arithmetic, no other function", function()
    local b <close> = tp.zeros("i32", 4)
    local kept
    local g <close> = tp.capture({ params = { v = 1 } }, function(p)
      kept = p.v
      local ok, e = pcall(function() return p.v * 2 end)
      assert.is_false(ok)
      assert.matches("arithmetic on a tpstream.Parameter", e)
      ok, e = pcall(b.slice, b, 1, p.v)
      assert.is_false(ok)
      assert.matches("got tpstream.Parameter", e)
      ok, e = pcall(b.write, b, { p.v })
      assert.is_false(ok)
      assert.matches("got tpstream.Parameter", e)
    end)
    local add <close> = gate.kernel "add"
    local ok, e = pcall(add.launch, add, one, b, 0, kept)
    assert.is_false(ok)
    assert.matches("argument #3 (", e, 1, true)
    tp.capture({ params = { v = 1 } }, function()
      ok, e = pcall(add.launch, add, one, b, 0, kept)
    end):close()
    assert.is_false(ok)
    assert.matches("a parameter of another capture", e, 1, true)
    g:launch { v = 100 }
  end)

  it("that the graph has not are refused, with those it has", function()
    local g <close> = tp.capture({ params = { b = 1, a = true } },
      function() end)
    local ok, e = pcall(g.launch, g, { c = 1 })
    assert.is_false(ok)
    assert.matches("the graph has no parameter 'c' (it has a, b)", e, 1, true)
    ok, e = pcall(g.launch, g, { [1] = 1 })
    assert.is_false(ok)
    assert.matches("no parameter 1", e, 1, true)
    local h <close> = tp.capture(function() end)
    ok, e = pcall(h.launch, h, { c = 1 })
    assert.is_false(ok)
    assert.matches("no parameter 'c' (it has none)", e, 1, true)
  end)

  it("that nothing uses are checked all the same: an update may use them", function()
    local b <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture({ params = { v = 1 } }, function() end)
    local ok, e = pcall(g.launch, g, { v = "x" })
    assert.is_false(ok)
    assert.matches("parameter 'v': a number or boolean expected, got string", e, 1,
      true)
    g:launch { v = 7 }
    g:update(function(p) b:fill(p.v) end)
    g:launch()
    assert.equal(7, b:read()[1])
  end)

  it("are checked when a graph is captured", function()
    local function refused(params, text)
      local ok, e = pcall(tp.capture, { params = params }, function() end)
      assert.is_false(ok)
      assert.matches(text, e, 1, true)
    end
    refused({ stream = 1 }, "'stream' can't be a parameter's name")
    refused({ a = "x" }, "'a': a number or boolean expected, got string")
    refused({ 1 }, "names expected, got a number")
    refused(5, "field 'params': table expected, got number")
    local add <close> = gate.kernel "add"
    local b <close> = tp.zeros("i32", 1)
    local ok, e = pcall(tp.capture, { params = { v = 1.5 } }, function(p)
      add:launch(one, b, 0, p.v)
    end)
    assert.is_false(ok)
    assert.matches("1.5", e, 1, true)
  end)

  it("work in the bodies of conditional nodes", function()
    local flag <close> = tp.buffer("i32", { 1 })
    local b <close> = tp.zeros("i32", 1)
    local add <close> = gate.kernel "add"
    local g <close> = tp.capture({ params = { v = 1, w = 10 } }, function(p)
      tp.graph_if(flag, function() add:launch(one, b, 0, p.v) end)
      add:launch(one, b, 0, p.w)
    end)
    g:launch()
    assert.same({ 11 }, b:read())
    g:launch { v = 5 }
    g:launch { w = 100 }
    assert.same({ 11 + 15 + 105 }, b:read())
  end)
end)

describe("named parameters of fills", function()
  local TYPES = {
    i8 = { -128, 127 }, u8 = { 0, 255 }, i16 = { -5, 32767 },
    u16 = { 1, 65535 }, i32 = { 0, -7, 0x01010101 }, u32 = { 3, 0xffffffff },
    i64 = { 0, 1, -1, 1 << 40, 0x0000000500000005 }, u64 = { 7, -1 },
    f16 = { 0.5, -2 }, bf16 = { 1, 3 }, f32 = { 0, 1.5, -0.25 },
    f64 = { 0, 0.1, -1e300, 2 },
  }

  it("are their values", function()
    for dtype, values in pairs(TYPES) do
      for _, count in ipairs { 1, 5, 1500 } do
        local b <close> = tp.zeros(dtype, count + 2)
        local g <close> = tp.capture({ params = { v = values[1] } }, function(p)
          b:slice(2, count):fill(p.v)
        end)
        for i = 1, 2 * #values do
          local v = values[i % #values + 1]
          g:launch { v = v }
          local r = b:read()
          assert.same({ 0, v, v, 0 }, { r[1], r[2], r[count + 1], r[count + 2] },
            dtype)
        end
      end
    end
  end)

  it("stand beside those of kernels, in branches and parts", function()
    local b <close> = tp.zeros("i32", 4)
    local h <close> = tp.pinned("f64", 2)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local add <close> = gate.kernel "add"
    local part <close> = tp.capture({ params = { v = 1 } }, function(p)
      b:slice(2, 1):fill(p.v)
    end)
    local g <close> = tp.capture({ stream = s, params = { v = 1, w = 2 } },
      function(p)
        b:slice(1, 1):fill(p.v)
        t:wait_stream(s)
        tp.with_stream(t, function() h:fill(p.w) end)
        add:launch({ grid = 1, block = 1, stream = s }, b, 2, p.v)
        s:wait_stream(t)
      end)
    g:add(part)
    local function values()
      local r = tp.with_stream(s, b.read, b)
      return { r[1], r[2], r[3], h[1], h[2] }
    end
    g:launch(s)
    assert.same({ 1, 1, 1, 2, 2 }, values())
    g:launch { stream = s, v = 5 }
    assert.same({ 5, 5, 6, 2, 2 }, values())
    g:launch { stream = s, w = 0.5 }
    assert.same({ 5, 5, 11, 0.5, 0.5 }, values())
  end)

  it("leave launches that are queued as they were", function()
    local b <close> = tp.zeros("i32", 1)
    local out <close> = tp.zeros("i32", 3)
    local s <close> = tp.Stream()
    s:wait_stream(tp.current_stream())
    local held <close> = gate.new()
    local g <close> = tp.capture({ params = { v = 1 } }, function(p)
      b:fill(p.v)
    end)
    held:hold(s)
    for i = 1, 3 do
      g:launch { stream = s, v = 10 * i }
      b:copy_to(out, { at = i, stream = s })
    end
    held:open()
    assert.same({ 10, 20, 30 }, tp.with_stream(s, out.read, out))
  end)

  it("work in bodies", function()
    local b <close> = tp.zeros("u8", 3)
    local flag <close> = tp.buffer("i32", { 1 })
    local g <close> = tp.capture({ params = { v = 1 } }, function(p)
      tp.graph_if(flag, function() b:fill(p.v) end)
    end)
    for _, v in ipairs { 1, 200, 0 } do
      g:launch { v = v }
      assert.same({ v, v, v }, b:read())
    end
  end)

  it("are checked by the type, before anything changes", function()
    local b <close> = tp.zeros("u8", 3)
    local c <close> = tp.zeros("f32", 3)
    local other
    local g <close> = tp.capture({ params = { v = 1, w = 7 } }, function(p)
      b:fill(p.v)
      c:fill(p.v)
      b:slice(1, 1):fill(p.w)
      other = p
    end)
    local function refused(text, options)
      local ok, e = pcall(g.launch, g, options)
      assert.is_false(ok)
      assert.matches(text, e, 1, true)
    end
    refused("parameter 'v': 256 does not fit uint8 (0 to 255)", { w = 3, v = 256 })
    refused("parameter 'v': 0.5 ", { v = 0.5 })
    refused("parameter 'v': number expected, got", { v = {} })
    g:launch()
    assert.same({ 7, 1, 1 }, b:read())
    local ok, e = pcall(tp.capture, { params = { x = 1000 } }, function(p)
      b:fill(p.x)
    end)
    assert.is_false(ok)
    assert.matches("1000 does not fit uint8", e, 1, true)
    tp.capture({ params = { x = 1 } }, function()
      ok, e = pcall(b.fill, b, other.v)
      assert.is_false(ok)
      assert.matches("a parameter of another capture", e, 1, true)
    end):close()
    ok, e = pcall(b.fill, b, other.v)
    assert.is_false(ok)
    assert.matches("tpstream.Parameter", e, 1, true)
  end)
end)

describe("named parameters of a body", function()
  it("that failed, and was caught, are forgotten with it", function()
    local flag <close> = tp.buffer("i32", { 1 })
    local b <close> = tp.zeros("i32", 1)
    local add <close> = gate.kernel "add"
    local g <close> = tp.capture({ params = { v = 1 } }, function(p)
      add:launch(one, b, 0, p.v)
      for _, what in ipairs { "error", "fork" } do
        assert.is_false(pcall(tp.graph_if, flag, function()
          add:launch(one, b, 0, p.v)
          if what == "error" then error "no" end
          local t <close> = tp.Stream()
          t:wait_stream(tp.current_stream())
          tp.with_stream(t, add.launch, add, one, b, 0, p.v)
        end))
      end
      add:launch(one, b, 0, p.v)
    end)
    g:launch { v = 10 }
    assert.same({ 20 }, b:read())
  end)
end)

describe("g:update", function()
  it("keeps the shape: other memory, values and kernels", function()
    local b <close> = tp.zeros("i32", 4)
    local c <close> = tp.zeros("i32", 4)
    local add <close> = gate.kernel "add"
    local put <close> = gate.kernel "put"
    local function work(k, to, from, value)
      k:launch(one, to, 0, value)
      to:slice(2, 1):fill(value)
      from:copy_to(to, { first = 1, count = 1, at = 3 })
    end
    local g <close> = tp.capture(work, add, b, b, 3)
    g:launch()
    assert.same({ 3, 3, 3, 0 }, b:read())
    local same = g:update(work, put, c, b, 7)
    if simulated then assert.is_true(same) else assert.is_boolean(same) end
    g:launch()
    assert.same({ 7, 7, 3, 0 }, c:read())
    assert.same({ 3, 3, 3, 0 }, b:read())
  end)

  it("takes another shape, too, and says so", function()
    local b <close> = tp.zeros("i32", 2)
    local g <close> = tp.capture(function() b:fill(1) end)
    g:launch()
    assert.is_false(g:update(function()
      b:fill(2)
      gate.run(nil, "add", b, 1, 5)
    end))
    assert.equal(2, #g:nodes())
    g:launch()
    assert.same({ 2, 7 }, b:read())
  end)

  it("leaves the graph as it was when the function fails", function()
    local b <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture(function() b:fill(1) end)
    local object = {}
    local ok, e = pcall(g.update, g, function()
      b:fill(2)
      error(object)
    end)
    assert.is_false(ok)
    assert.equal(object, e)
    assert.is_false(tp.current_stream():is_capturing())
    g:launch()
    assert.same({ 1 }, b:read())
  end)

  it("keeps parameters and their values; callbacks are the new ones", function()
    local b <close> = tp.zeros("i32", 1)
    local add <close> = gate.kernel "add"
    local log = {}
    local g <close> = tp.capture({ params = { v = 1 } }, function(p)
      add:launch(one, b, 0, p.v)
      tp.current_stream():on_complete(function() log[#log + 1] = "old" end)
    end)
    g:launch { v = 5 }
    g:update(function(p, by)
      add:launch(one, b, 0, by)
      add:launch(one, b, 0, p.v)
      tp.current_stream():on_complete(function() log[#log + 1] = "new" end)
    end, 100)
    g:launch()
    g:launch { v = 7 }
    assert.same({ 5 + 105 + 107 }, b:read())
    assert.same({ "old", "new", "new" }, log)
  end)

  it("comes after the launches so far, which stay as they were", function()
    local list <close> = tp.zeros("i32", 10)
    local append <close> = gate.kernel "append"
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    tp.barrier(tp.current_stream(), s, t)
    local held <close> = gate.new()
    local g <close> = tp.capture(function() append:launch(one, list, 1) end)
    held:hold(s)
    g:launch(s)
    g:update(function() append:launch(one, list, 2) end)
    g:launch(t)
    g:update(function()
      append:launch(one, list, 3)
      append:launch(one, list, 4)
    end)
    g:launch(t)
    assert.is_false(t:synchronize(3))
    held:open()
    t:synchronize()
    assert.same({ 4, 1, 2, 3, 4 }, list:read(1, 5))
  end)
end)

describe("a graph in a graph", function()
  it("by g:add comes after all of it", function()
    local b <close> = tp.zeros("i32", 4)
    local s <close> = tp.Stream()
    local g <close> = tp.capture(function()
      s:wait_stream(tp.current_stream())
      b:slice(1, 1):fill(1)
      tp.with_stream(s, function() b:slice(2, 1):fill(1) end)
      tp.current_stream():wait_stream(s)
    end)
    local child <close> = tp.capture(function()
      b:slice(3, 1):fill(2)
      b:slice(4, 1):fill(2)
    end)
    assert.equal(g, g:add(child):add(child))
    local after = {}
    for i, node in ipairs(g:nodes()) do after[i] = #node.dependencies end
    assert.equal(6, #after)
    g:launch()
    assert.same({ 1, 1, 2, 2 }, b:read())
    child:close()
    g:launch()
    g:add(g)
    assert.equal(12, #g:nodes())
    g:launch()
    assert.same({ 1, 1, 2, 2 }, b:read())
  end)

  it("has its parameters under their names", function()
    local b <close> = tp.zeros("i32", 1)
    local add <close> = gate.kernel "add"
    local function work(p)
      add:launch(one, b, 0, p.v)
      if p.w then add:launch(one, b, 0, p.w) end
    end
    local g <close> = tp.capture({ params = { v = 1 } }, work)
    local child <close> = tp.capture({ params = { v = 10, w = 100 } }, work)
    g:add(child)
    g:launch()
    assert.same({ 111 }, b:read())
    g:launch { v = 2 }
    assert.same({ 111 + 104 }, b:read())
    g:launch { w = 1000 }
    assert.same({ 215 + 1004 }, b:read())
    child:launch()
    assert.same({ 1219 + 110 }, b:read())
  end)

  it("that has memory of its own runs once at a time, in any branch", function()
    local out <close> = tp.zeros("i32", 8)
    local flag <close> = tp.buffer("i32", { 1 })
    local t <close> = tp.Stream()
    local u <close> = tp.Stream()
    local part <close> = tp.capture(function()
      local own <close> = tp.zeros("i32", 1)                    -- 1
      gate.run(nil, "add", own, 0, 1)                           -- 2
      own:copy_to(out)                                          -- 3
    end)
    local plain <close> = tp.capture(function() out:fill(0) end)
    local g <close> = tp.capture(function()
      t:wait_stream(tp.current_stream())
      u:wait_stream(tp.current_stream())
      part:launch()                                             -- 1, 2, 3
      part:launch(t)                                            -- 4, 5, 6
      plain:launch(u)                                           -- 7
      plain:launch(t)                                           -- 8
      tp.with_stream(u, tp.graph_if, flag, part.launch, part)   -- 9 … 11, 12
      part:launch()                                             -- 13, …
      tp.current_stream():wait_stream(t, u)
    end)
    local after = {}
    for _, node in ipairs(g:nodes()) do
      table.sort(node.dependencies)
      after[node.id] = table.concat(node.dependencies, " ")
    end
    assert.equal("", after[1])
    assert.equal("3", after[4])
    assert.equal("", after[7])
    assert.equal("6", after[8])
    assert.equal("6 7", after[12])
    assert.equal("12", after[13])
    for _ = 1, 3 do g:launch() end
    assert.equal(1, out:read()[1])
  end)

  it("by a launch while capturing is a part of its branch", function()
    local b <close> = tp.zeros("i32", 4)
    local inner <close> = tp.capture(function(s)
      s:wait_stream(tp.current_stream())
      b:slice(1, 1):fill(1)
      tp.with_stream(s, function() b:slice(2, 1):fill(2) end)
      tp.current_stream():wait_stream(s)
    end, tp.Stream())
    local g <close> = tp.capture(function()
      b:fill(9)
      assert.equal(tp.current_stream(), inner:launch())
      b:slice(3, 1):fill(3)
    end)
    local nodes = g:nodes()
    assert.equal(4, #nodes)
    assert.same({ 1 }, nodes[2].dependencies)
    assert.same({ 1 }, nodes[3].dependencies)
    table.sort(nodes[4].dependencies)
    assert.same({ 2, 3 }, nodes[4].dependencies)
    inner:close()
    g:launch()
    assert.same({ 1, 2, 3, 9 }, b:read())
  end)
end)

describe("conditional nodes", function()
  it("graph_if runs its body if the flag is not 0", function()
    local FLAGS = { { tp.zeros, "i32" }, { tp.zeros, "u32" }, { tp.pinned, "i32" },
                    { tp.managed, "u32" } }
    for _, row in ipairs(FLAGS) do
      local flag <close> = row[1](row[2], 1)
      local b <close> = tp.zeros("i32", 1)
      local g <close> = tp.capture(function()
        tp.graph_if(flag, function(at, v) gate.run(nil, "add", b, at, v) end,
          0, 5)
      end)
      g:launch()
      assert.same({ 0 }, b:read())
      flag:fill(3)
      g:launch()
      g:launch()
      assert.same({ 10 }, b:read())
      flag:fill(0)
      g:launch()
      assert.same({ 10 }, b:read())
    end
  end)

  it("graph_while runs its body until the flag is 0", function()
    local k <close> = kernel "count_down"
    local flag <close> = tp.zeros("i32", 1)
    local turns <close> = tp.zeros("i32", 1)
    local g <close> = tp.capture(function()
      tp.graph_while(flag, function() k:launch(one, flag, turns) end)
      gate.run(nil, "add", turns, 0, 1000)
    end)
    local expected = 0
    for _, n in ipairs { 0, 1, 7, 300 } do
      flag:fill(n)
      g:launch()
      expected = expected + n + 1000
      assert.same({ expected }, turns:read())
    end
  end)

  it("come after what comes before, the flag is looked at then", function()
    local flag <close> = tp.zeros("i32", 1)
    local b <close> = tp.zeros("i32", 2)
    local g <close> = tp.capture(function()
      flag:fill(1)
      tp.graph_if(flag, function()
        b:slice(1, 1):fill(1)
        flag:fill(0)
      end)
      tp.graph_if(flag, function() b:slice(2, 1):fill(1) end)
    end)
    g:launch()
    assert.same({ 1, 0 }, b:read())
    local nodes = g:nodes()
    assert.same({ "fill", "if", "if" },
      { nodes[1].kind, nodes[2].kind, nodes[3].kind })
    assert.equal(2, #nodes[2].body)
    assert.same({ 1 }, nodes[2].dependencies)
    assert.same({ nodes[2].id }, nodes[3].dependencies)
  end)

  it("fork and nest", function()
    local k <close> = kernel "count_down"
    local outer <close> = tp.buffer("i32", { 3 })
    local inner <close> = tp.zeros("i32", 1)
    local turns <close> = tp.zeros("i32", 2)
    local side <close> = tp.zeros("i32", 1)
    local t <close> = tp.Stream()
    local g <close> = tp.capture(function()
      tp.graph_while(outer, function()
        inner:fill(4)
        t:wait_stream(tp.current_stream())
        gate.run(t, "add", side, 0, 1)
        tp.graph_while(inner, function() k:launch(one, inner, turns:slice(1, 1)) end)
        tp.current_stream():wait_stream(t)
        k:launch(one, outer, turns:slice(2, 1))
      end)
    end)
    for i = 1, 2 do
      outer:fill(3)
      g:launch()
      assert.same({ 12 * i, 3 * i }, turns:read())
      assert.same({ 3 * i }, side:read())
    end
  end)

  it("of many turns, copies and fills among them", function()
    local k <close> = kernel "count_down"
    local flag <close> = tp.buffer("i32", { 200 })
    local b <close> = tp.zeros("i32", 2)
    local host <close> = tp.pinned("i32", 1)
    local g <close> = tp.capture(function()
      tp.graph_while(flag, function()
        b:slice(1, 1):copy_to(b, { at = 2 })
        k:launch(one, flag, b)
        b:slice(1, 1):copy_to(host)
      end)
    end)
    g:launch():synchronize()
    assert.same({ 200, 199 }, b:read())
    assert.equal(200, host[1])
  end)

  it("in a graph that is part of another", function()
    local flag <close> = tp.buffer("i32", { 2 })
    local turns <close> = tp.zeros("i32", 1)
    local k <close> = kernel "count_down"
    local inner = tp.capture(function()
      tp.graph_while(flag, function() k:launch(one, flag, turns) end)
    end)
    local g <close> = tp.capture(function()
      inner:launch()
      tp.graph_if(flag, function() inner:launch() end)
      gate.run(nil, "add", turns, 0, 10)
    end)
    inner:close()
    g:launch()
    assert.same({ 12 }, turns:read())
  end)

  it("without a body make no node", function()
    local flag <close> = tp.buffer("i32", { 1 })
    local g <close> = tp.capture(function() tp.graph_if(flag, function() end) end)
    assert.same({}, g:nodes())
    g:launch():synchronize()
  end)

  it("that never end are found by the simulated device's timeout", function()
    if not simulated then
      pending "a GPU has none"
      return
    end
    local r = run.script([[
local tp = require "tpstream"
local flag = tp.buffer("i32", { 1 })
local b = tp.zeros("i32", 1)
local g = tp.capture(function()
  tp.graph_while(flag, function() b:fill(2) end)
end)
local ok, e = pcall(function() g:launch():synchronize() end)
print(ok, e.code)
print(tostring(e):match "conditional node of a graph: still running")
os.exit(0, false)
]], { env = { TPSTREAM_SIM_TIMEOUT = "0.2" } })
    assert.equal("false\tcudaErrorLaunchTimeout\n" ..
      "conditional node of a graph: still running\n", r.stdout, r.stderr)
  end)
end)

describe("what a graph tells", function()
  it("of its nodes: kind, name, shape, size, stream, device, line", function()
    local b <close> = tp.zeros("i32", 1 << 10)
    local c <close> = tp.zeros("i32", 1 << 10)
    local s <close> = tp.Stream()
    local add <close> = gate.kernel "add"
    local line = debug.getinfo(1, "l").currentline
    local g <close> = tp.capture(s, function()
      add:launch({ grid = { 2, 3 }, block = 64, shared = 16 }, b, 0, 0)
      b:copy_to(c)
      c:fill(0)
      s:on_complete(print)
    end)
    local nodes = g:nodes()
    local device = tp.current_device():kind() .. ":0"
    local function where(n) return "spec/graph_change_spec.lua:" .. line + n end
    assert.same({ id = 1, kind = "kernel", name = "add", grid = { 2, 3, 1 },
      block = { 64, 1, 1 }, shared = 16, stream = s:id(), device = device,
      dependencies = {}, where = where(2) }, nodes[1])
    assert.same({ id = 2, kind = "copy", bytes = 4096, stream = s:id(),
      device = device, dependencies = { 1 }, where = where(3) }, nodes[2])
    assert.same({ id = 3, kind = "fill", bytes = 4096, stream = s:id(),
      device = device, dependencies = { 2 }, where = where(4) }, nodes[3])
    assert.same({ id = 4, kind = "host", stream = s:id(), device = device,
      dependencies = { 3 }, where = where(5) }, nodes[4])
    assert.equal(tp.current_device(), g:device())
  end)

  it("as a picture for Graphviz", function()
    local b <close> = tp.zeros("i32", 1 << 18)
    local flag <close> = tp.zeros("u32", 1)
    local add <close> = gate.kernel "add"
    local g <close> = tp.capture(function()
      b:fill(0)
      add:launch({ grid = { 4, 2 }, block = 32 }, b, 0, 1)
      tp.graph_if(flag, function() b:slice(1, 3):fill(1) end)
    end)
    local dot = g:dot()
    for _, text in ipairs {
      "digraph {\n", 'n1 [label="fill 1 MiB\\nspec/graph_change_spec.lua:',
      'n2 [label="add\\n4x2 x 32 threads\\n', "n1 -> n2;", "shape=diamond",
      "subgraph cluster_4 {", 'n3 [label="fill 12 bytes\\n', "n2 -> n4;",
      "n4 -> n3 [style=dashed];",
    } do
      assert.is_truthy(dot:find(text, 1, true), text .. "\n" .. dot)
    end
    assert.equal("}\n", dot:sub(-2))
  end)
end)
