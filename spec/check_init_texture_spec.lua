-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The init check (docs/checking.md) and what is not a plain load or store: textures,
-- surfaces, asynchronous copies. What samples depend on is compared with a reference.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"

local SOURCE = [=[
extern "C" {
__global__ void put(void *p, const int *at) { ((int *)p)[at[threadIdx.x]] = 1; }
__global__ void fetch(float *o, cudaTextureObject_t t, int i) {
  o[0] = tex1Dfetch<float>(t, i); // @fetch
}
__global__ void sample(float *o, cudaTextureObject_t t, float x, float y) {
  o[0] = tex2D<float>(t, x, y); // @sample
}
__global__ void four(float4 *o, cudaTextureObject_t t, float x, float y) {
  o[0] = tex2Dgather<float4>(t, x, y, 0); // @four
}
__global__ void paint(cudaSurfaceObject_t s, int n) {
  int t = threadIdx.x;
  if (t < n) surf2Dwrite((float)t, s, 4 * (t % 8), t / 8);
}
__global__ void look(float *o, cudaSurfaceObject_t s) {
  int t = threadIdx.x;
  o[t] = surf2Dread<float>(s, 4 * (t % 8), t / 8); // @look
}
__global__ void add(cudaSurfaceObject_t s, int x) {
  asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;"
               :: "l"(s), "r"(4 * x), "r"(0), "r"(1)); // @add
}
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void carried(int *o, const int *x, int ignored) {
  __shared__ __align__(16) int s[64];
  int t = threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" // @brought
               :: "r"(at(s + 4 * t)), "l"(x + 4 * t), "r"(ignored) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  for (int k = 0; k < 4; k++)
    o[4 * t + k] = s[4 * t + k]; // @carried
}
}
]=]

local findings = require "spec.support.findings" ("check_init_texture", SOURCE,
  "init")
local fine, one, expect = findings.fine, findings.one, findings.expect
local FIRST = "thread (0,0,0) in block (0,0,0)"
local ONE = { 1, 1 }

local function title(space, size)
  return ("Uninitialized __%s__ memory read of size %d bytes"):format(space, size)
end

describe("the init check", function()
  require "spec.support.simulated" (setup, teardown)
  local sink
  setup(function() sink = tp.zeros("f32", 256) end)
  teardown(function() sink:close() end)

  -- A buffer of `count` elements of which the kernel has written these, from 0.
  local function written(k, count, list, kind)
    local b = tp.buffer(kind or "f32", count)
    if #list == 0 then return b end
    local where <close> = tp.buffer("i32", list)
    k("put", { 1, #list }, b, where)
    return b
  end

  it("follows fetches from linear memory", function()
    local function run(k, i)
      local b <close> = written(k, 64, { 3, 4 })
      local t <close> = tp.texture(b, { linear = true })
      k("fetch", ONE, sink, t, i)
    end
    fine(function(k) run(k, 4) end)
    fine(function(k) run(k, 64) end) -- out of range: zeros
    local text = one(function(k) run(k, 5) end)
    local more = expect(text, title("global", 4), "fetch", "fetch", FIRST)
    assert.truthy(more:find("\n    texel (5,0,0) of a texture of 64 x 1 x 1\n"
      .. "    and is inside the nearest allocation at 0x", 1, true), more)
    assert.truthy(more:find("(float32 buffer)", 1, true))
  end)

  it("knows which texels a sample depends on", function()
    local g = numbers.generator(20261201)
    local function int(lo, hi) return g.ints(1, lo, hi)[1] end
    local told = 0
    for _ = 1, 60 do
      local w, h, list, has = 5, 4, {}, {}
      for i = 0, w * h - 1 do
        if int(0, 3) > 0 then
          list[#list + 1] = i
          has[i] = true
        end
      end
      local kind, linear = int(1, 3), true
      if kind == 1 then linear = false end
      -- quarters: centres of texels, edges between them, and beyond
      local x, y = int(-2, 4 * w + 2) / 4, int(-2, 4 * h + 2) / 4
      local function clamp(i, n) return math.max(0, math.min(n - 1, i)) end
      local needs = {}
      local function need(i, j) needs[clamp(j, h) * w + clamp(i, w)] = true end
      if kind == 1 then
        need(math.floor(x), math.floor(y))
      else
        local i, j = math.floor(x - 0.5), math.floor(y - 0.5)
        local fx, fy = x - 0.5 - i, y - 0.5 - j
        for dj = 0, 1 do
          for di = 0, 1 do
            local weight = (di == 0 and 1 - fx or fx) * (dj == 0 and 1 - fy or fy)
            if weight > 0 or kind == 3 then need(i + di, j + dj) end
          end
        end
      end
      local good = true
      for i in pairs(needs) do good = good and has[i] or false end
      local reports = findings.all(function(k)
        local b <close> = written(k, w * h, list)
        local t <close> = tp.texture(b, { width = w, height = h,
          filter = linear and "linear" or "point" })
        k(kind == 3 and "four" or "sample", ONE, sink, t, x, y)
      end)
      assert.equal(good, #reports == 0, ("kind %d at %g, %g"):format(kind, x, y))
      told = told + #reports
    end
    assert.is_true(told > 10 and told < 50)
  end)

  it("follows surfaces, and textures over them", function()
    local function run(k, n)
      local s <close> = tp.surface("f32", { width = 8, height = 4 })
      k("paint", { 1, 32 }, s, n)
      k("look", { 1, 32 }, sink, s)
    end
    fine(function(k) run(k, 32) end)
    local text = one(function(k) run(k, 20) end)
    assert.truthy(expect(text, title("global", 4), "look", "look",
      "thread (20,0,0) in block (0,0,0)"):find(
      "texel %(%d,[23],0%) of a surface of 8 x 4 x 1"), text)
    assert.truthy(text:find "made at spec/check_init_texture_spec.lua:%d+\n")
    text = one(function(k)
      local s <close> = tp.surface("f32", { width = 8, height = 4 })
      k("paint", { 1, 32 }, s, 20)
      local t <close> = tp.texture(s)
      k("sample", ONE, sink, t, 3, 2)
      k("sample", ONE, sink, t, 4, 2)
    end)
    assert.truthy(expect(text, title("global", 4), "sample", "sample", FIRST)
      :find("texel (4,2,0) of a texture of 8 x 4 x 1", 1, true), text)
  end)

  it("takes what a surface is filled from along", function()
    local function run(k, list)
      local b <close> = written(k, 32, list)
      local s <close> = tp.surface(b, { width = 8, height = 4 })
      k("look", { 1, 8 }, sink, s)
    end
    fine(function(k) run(k, { 0, 1, 2, 3, 4, 5, 6, 7 }) end)
    expect(one(function(k) run(k, { 0, 1, 2, 3, 4, 6, 7 }) end),
      title("global", 4), "look", "look", "thread (5,0,0) in block (0,0,0)")
    fine(function(k)
      local s <close> = tp.surface("f32", { width = 8, height = 4 })
      s:write(("\0"):rep(128))
      k("look", { 1, 32 }, sink, s)
    end)
  end)

  it("tells reductions in surfaces, which read", function()
    local text = one(function(k)
      local b <close> = written(k, 8, { 0, 2 })
      local s <close> = tp.surface(b, { width = 8, height = 1 })
      for _, x in ipairs { 0, 2, 1, 1 } do k("add", ONE, s, x) end
    end)
    expect(text, title("global", 4), "add", "add", FIRST)
  end)

  it("takes along what asynchronous copies bring", function()
    local function run(k, list, bytes)
      local b <close> = written(k, 64, list, "i32")
      local o <close> = tp.zeros("i32", 64)
      k("carried", { 1, 2 }, o, b, bytes or 16)
    end
    fine(function(k) run(k, { 0, 1, 2, 3, 4, 5, 6, 7 }) end)
    fine(function(k) run(k, { 0, 1, 4, 5 }, 8) end) -- the rest is zeros
    fine(function(k) run(k, {}, 0) end)
    expect(one(function(k) run(k, { 0, 1, 2, 3, 4, 5, 7 }) end),
      title("shared", 4), "carried", "carried",
      "thread (1,0,0) in block (0,0,0)")
    local text = one(function(k) run(k, { 0, 1, 2, 3 }) end)
    assert.truthy(text:find(title("global", 16), 1, true), text)
  end)
end)
