-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/checking.md, the order check: what kernels really touch, memory that has several
-- names, textures, streams of others, several devices.
local tp = require "tpstream"
local checking = require "spec.support.checking"
local gate = require "spec.support.gate"
local pair = require "spec.support.pair"
local program = require "spec.support.program"
local fine, misses = checking.fine, checking.misses

local SOURCE = [=[
__device__ int box[4];
extern "C" __global__ void into_box(int v) { box[threadIdx.x] = v; }
extern "C" __global__ void put_from(int *p, int first, int v) {
  p[first + threadIdx.x] = v;
}
extern "C" __global__ void sum_from(const int *p, int first, int *sum) {
  atomicAdd(sum, p[first + threadIdx.x]);
}
struct view { int *p; int first; };
extern "C" __global__ void through(view v, int x) { v.p[v.first + threadIdx.x] = x; }
extern "C" __global__ void keep(const int *p, const int **place) { *place = p; }
extern "C" __global__ void keep_any(int *p, int **place) { *place = p; }
extern "C" __global__ void maybe(int *p, int yes) { if (yes) p[threadIdx.x] = yes; }
]=]

local module, on_sim
local function shape(s, threads)
  return { grid = 1, block = threads or 8, stream = s }
end

setup(function()
  module = program("checking", SOURCE)
  on_sim = tp.current_device():kind() == "sim"
end)
teardown(function() module:close() end)

local function with(fn)
  return function()
    local x <close> = tp.zeros("i32", 64)
    local s <close> = tp.Stream()
    local t <close> = tp.Stream()
    fn(x, s, t)
  end
end

describe("on the simulated device", function()
  it("a kernel touches what it really touches", function()
    if not on_sim then return end
    local function put(first)
      return with(function(x, s, t)
        local k <close> = module:kernel "put_from"
        k:launch(shape(s), x, 0, 1)
        k:launch(shape(t), x, first, 2)
      end)
    end
    fine(put(8))
    local r = misses("write/write", put(7))
    assert.same({ 8, 8 }, { r[1].buffer.first, r[1].buffer.last })
    fine(with(function(x, s, t)
      local k <close> = module:kernel "maybe"
      k:launch(shape(s), x, 0)
      k:launch(shape(t), x, 3)
    end))
  end)

  it("also through pointers in structs, and in pinned memory", function()
    if not on_sim then return end
    local function put(first)
      return with(function(x, s, t)
        local k <close> = module:kernel "through"
        local p <close> = module:kernel "put_from"
        local view = string.pack("<i8i4xxxx", x:ptr(), first)
        k:launch(shape(s), view, 1)
        p:launch(shape(t), x, 8, 2)
      end)
    end
    fine(put(0))
    misses("write/write", put(1))
    local function host(first)
      return with(function(_, s)
        local h <close> = tp.pinned("i32", 16)
        local k <close> = module:kernel "put_from"
        k:launch(shape(s), h, first, 1)
        return h[8]
      end)
    end
    fine(host(8))
    misses("write/read", host(7))
  end)

  it("and in a module's variables", function()
    if not on_sim then return end
    local function boxed(threads)
      return with(function(_, s, t)
        local k <close> = module:kernel "into_box"
        local box <close> = module:global "box"
        local ints <close> = box:as "i32"
        k:launch(shape(s, threads), 5)
        tp.with_stream(t, function() ints:slice(3, 2):fill(1) end)
      end)
    end
    fine(boxed(2))
    local r = misses("write/write", boxed(3))
    assert.matches("of a module's variable of 16 bytes made at "
      .. ".-check_wide_spec.lua:%d+, bytes 9 to 12\n", r[1].text)
  end)

  it("also where no script has asked for the variable", function()
    if not on_sim then return end
    local r = misses("write/write", with(function(_, s, t)
      local k <close> = module:kernel "into_box"
      k:launch(shape(s, 3), 5)
      k:launch(shape(t, 2), 6)
    end))
    assert.matches("^Missing order between two writes of 8 bytes of memory that no "
      .. "buffer stands for, such as a module's variable\n", r[1].text)
  end)

  it("only as far as a body of a graph has run", function()
    if not on_sim then return end
    local function body(flag)
      return with(function(x, s, t)
        local f <close> = tp.buffer("i32", { flag })
        local k <close> = module:kernel "put_from"
        local g <close> = tp.capture(s, function()
          tp.graph_if(f, function() k:launch({ grid = 1, block = 8 }, x, 0, 1) end)
        end)
        g:launch(s)
        k:launch(shape(t), x, 0, 2)
      end)
    end
    fine(body(0))
    misses("write/write", body(1))
  end)

  it("order is told in the order of queueing, whatever ran first", function()
    if not on_sim then return end
    local r = misses("write/write", with(function(x, s, t)
      local k <close> = module:kernel "put_from"
      for i = 0, 7 do k:launch(shape(s), x, i * 8, 1) end
      for i = 7, 0, -1 do k:launch(shape(t), x, i * 8, 2) end
    end))
    assert.equal("kernel", r[1].first.kind)
    assert.equal(8, r[1].count)
  end)
end)

describe("a pointer that is stored away", function()
  local function kept(name)
    return with(function(x, s, t)
      local a <close> = tp.zeros("i64", 1)
      local b <close> = tp.zeros("i64", 1)
      local k <close> = module:kernel(name)
      k:launch(shape(s, 1), x, a)
      k:launch(shape(t, 1), x, b)
    end)
  end

  it("counts as read where it is one to const, else as written, perhaps", function()
    fine(kept "keep")
    if on_sim then -- which knows better
      fine(kept "keep_any")
      return
    end
    local r = misses("use/use", kept "keep_any")
    assert.matches("^Perhaps missing order between two uses of int32", r[1].text)
  end)
end)

describe("atomic operations", function()
  local function sums(check)
    return with(function(x, s, t)
      local sum <close> = tp.zeros("i32", 1)
      local k <close> = module:kernel "sum_from"
      k:launch(shape(s), x, 0, sum)
      k:launch(shape(t), x, 0, sum)
      check(sum, s, t)
    end)
  end

  it("need no order among themselves", function()
    fine(sums(function() end))
  end)

  it("are all waited for by what is none", function()
    misses("read and write/read", sums(function(sum, s)
      tp.with_stream(s, sum.read, sum)
    end))
  end)

  it("wait for plain ones", function()
    misses("write/read and write", with(function(x, s, t)
      local sum <close> = tp.zeros("i32", 1)
      local k <close> = module:kernel "sum_from"
      tp.with_stream(s, sum.fill, sum, 0)
      k:launch(shape(t), x, 0, sum)
    end))
  end)

  it("let the host set a flag that a kernel looks at", function()
    fine(with(function(_, s)
      local g <close> = gate.new()
      g:hold(s)
      g:open()
    end))
  end)
end)

describe("memory with several names", function()
  it("a variable is one, however often it is asked for", function()
    misses("write/write", with(function(_, s, t)
      local a <close> = module:global "box"
      local b <close> = module:global "box"
      tp.with_stream(s, a.fill, a, 1)
      tp.with_stream(t, b.fill, b, 1)
    end))
  end)

  it("what comes back by DLPack is what was given", function()
    misses("write/write", with(function(x, s, t)
      local y <close> = tp.from_dlpack(x:dlpack())
      tp.with_stream(s, x.fill, x, 1)
      tp.with_stream(t, y.fill, y, 1)
    end))
  end)
end)

describe("a texture's array", function()
  it("is memory like another", function()
    local function used(ordered)
      return with(function(_, s, t)
        local a <close> = tp.surface("f32", { width = 4 })
        tp.with_stream(s, a.write, a, { 1, 2, 3, 4 })
        if ordered then t:wait_stream(s) end
        return tp.with_stream(t, a.read, a)
      end)
    end
    fine(used(true))
    local r = misses("write/read", used(false))
    assert.matches("a texture's array of 16 bytes made at ", r[1].text)
  end)
end)

describe("streams of others", function()
  it("are the driver's stream, whatever the object", function()
    fine(with(function(x, s)
      local again <close> = tp.ExternalStream(s:handle())
      tp.with_stream(s, x.fill, x, 1)
      tp.with_stream(again, x.fill, x, 2)
    end))
  end)

  it("handle 0 is the legacy stream", function()
    fine(function()
      local x <close> = tp.zeros("i32", 4)
      tp.default_stream():synchronize()
      local b <close> = tp.Stream { blocking = true }
      tp.with_stream(b, x.fill, x, 1)
      tp.with_stream(tp.ExternalStream(0), x.fill, x, 2)
    end)
  end)
end)

describe("several devices", function()
  local function peers(fn)
    return function()
      local here, there = pair.devices()
      local x <close> = tp.zeros("i32", 64, { device = here })
      local y <close> = tp.zeros("i32", 64, { device = there })
      local s <close> = tp.Stream(here)
      local t <close> = tp.Stream(there)
      fn(x, y, s, t, here, there)
    end
  end

  it("copies between them are tested at both ends", function()
    misses("write/read", peers(function(x, y, s, t)
      tp.with_stream(s, x.fill, x, 1)
      x:copy_to(y, { stream = t })
    end))
    fine(peers(function(x, y, s, t)
      tp.with_stream(s, x.fill, x, 1)
      t:wait_stream(s)
      x:copy_to(y, { stream = t })
      tp.with_stream(t, y.fill, y, 1)
    end))
  end)

  it("each has a legacy stream of its own", function()
    misses("write/read", peers(function(x, y, _, _, here, there)
      local b <close> = tp.Stream { device = here, blocking = true }
      tp.with_stream(b, x.fill, x, 1)
      x:copy_to(y, { stream = tp.default_stream(there) })
    end))
    fine(peers(function(x, y, _, _, here)
      local b <close> = tp.Stream { device = here, blocking = true }
      tp.with_stream(b, x.fill, x, 1)
      x:copy_to(y, { stream = tp.default_stream(here) })
    end))
  end)

  it("waiting for one is not waiting for the other", function()
    misses("write/read", peers(function(x, y, s, t, _, there)
      tp.with_stream(s, x.fill, x, 1)
      there:synchronize()
      x:copy_to(y, { stream = t })
    end))
    fine(peers(function(x, y, s, t, here)
      tp.with_stream(s, x.fill, x, 1)
      here:synchronize()
      x:copy_to(y, { stream = t })
    end))
  end)
end)
