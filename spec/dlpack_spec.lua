-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Memory: arrays exchanged within the process by DLPack.
-- Tensors of others, and deleters called from other threads: spec/c/dlpack_test.c.
local tp = require "tpstream"
local message_of = require("spec.support.errors").message
local gate = require "spec.support.gate"

describe("dlpack", function()
  it("shares memory, which lives as long as one of both sides", function()
    local before = tp.memory_stats().live_bytes
    local a = tp.buffer("f32", { 1, 2, 3, 4 })
    local b = tp.from_dlpack(a:dlpack())
    assert.equal("float32", b:dtype())
    assert.equal(4, #b)
    assert.equal(a:device(), b:device())
    b:fill(7)
    assert.same({ 7.0, 7.0, 7.0, 7.0 }, a:read())
    a:close()
    assert.same({ 7.0, 7.0, 7.0, 7.0 }, b:read())
    b:close()
    tp.current_stream():synchronize()
    local c <close> = tp.buffer("u8", 10)
    assert.equal(before + 10, tp.memory_stats().live_bytes)
    assert.equal(10, #c)
  end)

  it("gives a slice, and every type", function()
    for _, type in ipairs { "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
      "f16", "bf16", "f32", "f64" } do
      local a <close> = tp.buffer(type, { 1, 2, 3, 4, 5 })
      local slice <close> = a:slice(2, 3)
      local b <close> = tp.from_dlpack(slice:dlpack())
      assert.equal(a:dtype(), b:dtype())
      assert.same(slice:read(), b:read())
    end
    local none <close> = tp.buffer("f64", 0)
    local empty <close> = tp.from_dlpack(none:dlpack())
    assert.equal(0, #empty)
  end)

  it("gives memory that the host reaches", function()
    for _, make in ipairs { tp.pinned, tp.managed } do
      local h <close> = make("i32", { 1, -2, 3 })
      local b <close> = tp.from_dlpack(h:dlpack())
      assert.equal(-2, b[2])
      assert.same({ 1, -2, 3 }, b:read())
      h[3] = 44 -- the same bytes
      assert.equal(44, b[3])
      gate.kernel "twice":forall(3, b, 3)
      tp.current_stream():synchronize()
      assert.equal(88, h[3])
    end
  end)

  it("makes the receiver's stream wait for the current one", function()
    local s <close> = tp.Stream()
    local a <close> = tp.zeros("i32", 100)
    local out <close> = tp.zeros("i32", 100)
    tp.current_stream():synchronize()
    local w <close> = tp.Stream()
    local g <close> = gate.new()
    g:hold(w)
    local p
    tp.with_stream(w, function()
      a:fill(5)
      p = a:dlpack { stream = s }
    end)
    local b <close> = tp.from_dlpack(p)
    b:copy_to(out, { stream = s })
    assert.is_false(s:query())
    g:open()
    s:synchronize()
    assert.equal(5, out:read()[100])
  end)

  it("lends memory in a capture, but to no stream", function()
    local s <close> = tp.Stream()
    local capturing <close> = tp.Stream()
    local a <close> = tp.zeros("i32", 100)
    local p
    local g <close> = tp.capture(capturing, function()
      a:fill(5)
      assert.matches(("stream %d is capturing: what is queued there runs when "
        .. "the graph is launched"):format(capturing:id()),
        message_of(a.dlpack, a, { stream = s }), 1, true)
      assert.is_false(s:is_capturing())
      p = a:dlpack()
    end) -- no branch was forked
    local b <close> = tp.from_dlpack(p)
    tp.current_stream():synchronize()
    tp.with_stream(g:launch(), function() assert.equal(5, b:read()[100]) end)
  end)

  it("refuses what it can't use", function()
    local a <close> = tp.buffer("f32", 1)
    assert.equal("bad argument #1 to 'from_dlpack' (light userdata expected, " ..
      "got tpstream.Buffer)", message_of(tp.from_dlpack, a))
    assert.matches("unknown option 'steam'", message_of(a.dlpack, a,
      { steam = 1 }))
    local closed = tp.buffer("f32", 1)
    closed:close()
    assert.equal("attempt to use a closed buffer", message_of(closed.dlpack,
      closed))
  end)
end)
