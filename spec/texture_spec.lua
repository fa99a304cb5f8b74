-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
local tp = require "tpstream"
local program = require "spec.support.program"
local sampling = require "spec.support.sampling"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

local SOURCE = [=[
typedef cudaTextureObject_t tex;
#define ASM(text, ...) asm volatile(text : "=r"(r.x), "=r"(r.y), "=r"(r.z), \
  "=r"(r.w) : "l"(t), __VA_ARGS__)
__device__ uint4 bits(float4 v) {
  return make_uint4(__float_as_uint(v.x), __float_as_uint(v.y),
                    __float_as_uint(v.z), __float_as_uint(v.w));
}
// Where each thread samples is c: coordinates, and the layer last.
extern "C" __global__ void sample(tex t, int how, const float4 *c, uint4 *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 q = c[i];
  int x = q.x, y = q.y, z = q.z, l = q.w;
  uint4 r = make_uint4(0, 0, 0, 0);
  switch (how) {
  case 1: r = bits(tex1D<float4>(t, q.x)); break;
  case 2: r = bits(tex2D<float4>(t, q.x, q.y)); break;
  case 3: r = bits(tex3D<float4>(t, q.x, q.y, q.z)); break;
  case 4: r = bits(tex1DLayered<float4>(t, q.x, l)); break;
  case 5: r = bits(tex2DLayered<float4>(t, q.x, q.y, l)); break;
  case 6: r = bits(texCubemap<float4>(t, q.x, q.y, q.z)); break;
  case 7: r = bits(texCubemapLayered<float4>(t, q.x, q.y, q.z, l)); break;
  case 8: r = bits(tex1Dfetch<float4>(t, x)); break;
  case 9: r = bits(tex2DLod<float4>(t, q.x, q.y, 0)); break;
  case 10: r = bits(tex2DGrad<float4>(t, q.x, q.y, make_float2(.1f, 0),
                                      make_float2(0, .1f))); break;
  case 11: r = tex1D<uint4>(t, q.x); break;
  case 12: r = tex2D<uint4>(t, q.x, q.y); break;
  case 13: { int4 v = tex2D<int4>(t, q.x, q.y);
             r = make_uint4(v.x, v.y, v.z, v.w); break; }
  case 14: ASM("tex.2d.v4.u32.s32 {%0,%1,%2,%3}, [%4, {%5,%6}];", "r"(x), "r"(y));
           break;
  case 15: ASM("tex.3d.v4.u32.s32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}];", "r"(x),
               "r"(y), "r"(z)); break;
  case 16: ASM("tex.a1d.v4.u32.s32 {%0,%1,%2,%3}, [%4, {%5,%6}];", "r"(l), "r"(x));
           break;
  case 17: ASM("tex.a2d.v4.u32.s32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}];", "r"(l),
               "r"(x), "r"(y)); break;
  case 18: r = bits(tex2Dgather<float4>(t, q.x, q.y, 0)); break;
  case 19: r = bits(tex2Dgather<float4>(t, q.x, q.y, 1)); break;
  case 20: r = bits(tex2Dgather<float4>(t, q.x, q.y, 2)); break;
  case 21: r = bits(tex2Dgather<float4>(t, q.x, q.y, 3)); break;
  case 22: r = bits(tex3DLod<float4>(t, q.x, q.y, q.z, 0)); break;
  }
  o[i] = r;
}
// Waits at the gate, then samples.
extern "C" __global__ void late(const volatile int *flag, tex t, float *o, int n) {
  for (int i = 0; i < 4000000 && *flag == 0; i++) __nanosleep(2000);
  for (int i = 0; i < n; i++) o[i] = tex1D<float>(t, i + .5f);
}
extern "C" __global__ void through(const tex *t, float *o) {
  *o = tex1D<float>(*t, .5f);
}
struct two { tex a; tex b; };
extern "C" __global__ void pair(two t, float *o) {
  *o = tex1D<float>(t.a, 1.5f) + tex1D<float>(t.b, 2.5f);
}
]=]

local N = 96
local ROW = { grid = 1, block = N }

-- ---- random data ------------------------------------------------------------

local function generator(seed)
  local state = seed
  return function(lo, hi) -- a number in [lo, hi)
    state = (state * 6364136223846793005 + 1442695040888963407)
    return lo + (hi - lo) * ((state >> 40) / (1 << 24))
  end
end

local function f32(x) return (string.unpack("<f", string.pack("<f", x))) end

local RANGES = { int8 = { -128, 128 }, uint8 = { 0, 256 }, int16 = { -32768, 32768 },
  uint16 = { 0, 65536 }, int32 = { -2^31, 2^31 }, uint32 = { 0, 2^32 } }

local function elements(random, dtype, count)
  local list, range = {}, RANGES[dtype]
  for i = 1, count do
    if range then list[i] = math.floor(random(range[1], range[2]))
    elseif dtype == "float16" then list[i] = math.floor(random(-512, 512)) / 64
    else list[i] = f32(random(-1, 1)) end
  end
  return list
end

-- Clear of the edges between texels, so that no rounding of a coordinate can
-- lead to another one.
local function coordinate(random, size, normalized)
  local i = math.floor(random(-size, 2 * size))
  local x = i + math.floor(random(4, 252)) / 256 + 1 / 1024
  return f32(normalized and x / size or x)
end

-- ---- sampling on the device --------------------------------------------------

local module
setup(function() module = program("texture", SOURCE) end)

-- Points: arrays of up to three coordinates and .layer → arrays of four words.
local function sample(t, how, points)
  local flat = {}
  for i, p in ipairs(points) do
    for d = 1, 3 do flat[4 * i - 4 + d] = p[d] or 0 end
    flat[4 * i] = p.layer or 0
  end
  local c <close> = tp.buffer("f32", flat)
  local o <close> = tp.zeros("u32", 4 * #points)
  module:kernel "sample":launch(ROW, t, how, c, o, #points)
  return o:read()
end

local function as_float(word) return (string.unpack("<f", string.pack("<I4", word))) end

-- ---- what a GPU gave -----------------------------------------------------------

-- spec/golden/texture.tsv: a line for each case, the words of its results as an
-- H200 gave them. Written anew with TPS_WRITE_GOLDEN=folder.
local golden, written = {}, {}
do
  local file = io.open "spec/golden/texture.tsv"
  if file then
    for line in file:lines() do
      local name, words = line:match "^([^\t]+)\t(.*)$"
      if name then golden[name] = words end
    end
    file:close()
  end
end

local function note(name, words)
  local list = {}
  for i, w in ipairs(words) do list[i] = ("%x"):format(w) end
  local text = table.concat(list, " ")
  written[#written + 1] = name .. "\t" .. text
  if golden[name] then assert.equal(golden[name], text, name) end
end

teardown(function()
  local folder = os.getenv "TPS_WRITE_GOLDEN"
  if folder then
    local file <close> = assert(io.open(folder .. "/texture.tsv", "w"))
    assert(file:write("# what an NVIDIA H200 (driver 580) gave\n",
      table.concat(written, "\n"), "\n"))
  end
end)

-- ---- one case ----------------------------------------------------------------

local EXTENTS = { { 37 }, { 17, 13 }, { 11, 7, 5 } }

-- A texel's channel as the kernel is to see it.
local function decode(value, dtype, o)
  if o.read ~= "normalized_float" then return value end
  local most = ({ uint8 = 255, uint16 = 65535, int8 = 127, int16 = 32767 })[dtype]
  return math.max(value / most, -1)
end

local seeds = 0

-- Samples N random points and compares with the reference and with a GPU.
local function check(name, dims, how, o, dtype, channels)
  seeds = seeds + 1
  local random = generator(seeds)
  dtype, channels = dtype or "float32", channels or 1
  local e = EXTENTS[dims]
  local w, h, d = e[1], e[2] or 1, e[3] or 1
  local layers = o.layers or 1
  local data = elements(random, dtype, w * h * d * layers * channels)
  local options = { width = w, height = e[2], depth = e[3], channels = channels }
  for k, v in pairs(o) do options[k] = v end
  local b <close> = tp.buffer(dtype, data)
  local t <close> = tp.texture(b, options)
  local points = {}
  for i = 1, N do
    local p = { layer = o.layers and math.floor(random(0, layers)) or nil }
    for k = 1, dims do p[k] = coordinate(random, e[k], o.normalized) end
    points[i] = p
  end
  local got = sample(t, how, points)
  note(name, got)
  local floats = not RANGES[dtype] or o.read == "normalized_float"
  local tolerance = o.filter == "linear" and dims / 100 or 1e-6
  if dtype == "float16" then tolerance = tolerance * 8 end
  for i, p in ipairs(points) do
    local function texel(x, y, z, c)
      local index = ((((p.layer or 0) * d + z) * h + y) * w + x) * channels + c
      return decode(data[index], dtype, o)
    end
    for c = 1, channels do
      local expected = sampling.sample(o, e, p, texel, c)
      local word = got[4 * i - 4 + c]
      if not floats then
        assert.equal(expected // 1 & 0xffffffff, word, name)
      else
        local value = as_float(word)
        if math.abs(value - expected) > tolerance then
          error(("%s, point %d (%s), channel %d: %.9g, %.9g expected"):format(name,
            i, table.concat(p, ", "), c, value, expected))
        end
      end
    end
    for c = channels + 1, 4 do assert.equal(0, got[4 * i - 4 + c], name) end
  end
end

local MODES = { "clamp", "border", "wrap", "mirror" }

describe("textures", function()
  for dims = 1, 3 do
    for _, filter in ipairs { "point", "linear" } do
      for _, normalized in ipairs { false, true } do
        for i = 1, normalized and 4 or 2 do
          local name = ("%d-D, %s, %s, %s"):format(dims, filter,
            normalized and "normalized" or "texels", MODES[i])
          it("of " .. name, function()
            check(name, dims, dims, { filter = filter, normalized = normalized,
              address = MODES[i], border = { 0.5 } })
          end)
        end
      end
    end
  end

  it("with a mode for each dimension", function()
    check("modes 2-D", 2, 2, { normalized = true, address = { "wrap", "clamp" } })
    check("modes 3-D", 3, 3, { normalized = true, filter = "linear",
      address = { "mirror", "border", "wrap" }, border = { -0.25 } })
  end)

  it("in layers", function()
    check("layers 1-D", 1, 4, { layers = 5 })
    check("layers 1-D, linear", 1, 4, { layers = 5, filter = "linear" })
    check("layers 2-D", 2, 5, { layers = 3 })
    check("layers 2-D, linear", 2, 5, { layers = 3, filter = "linear",
      normalized = true, address = "wrap" })
  end)

  it("tell that all they hold is there", function()
    local resident <close> = program("texture_resident", [=[
extern "C" __global__ void resident(cudaTextureObject_t t, float *o) {
  bool there;
  o[0] = tex2D<float4>(t, 1.5f, .5f, &there).x;
  o[1] = there;
  o[2] = tex2DLod<float>(t, .5f, 1.5f, 0, &there);
  o[3] = there;
}
]=])
    local b <close> = tp.buffer("f32", { 3, 4, 5, 6 })
    local t <close> = tp.texture(b, { width = 2, height = 2 })
    local o <close> = tp.zeros("f32", 4)
    resident:kernel "resident":launch({ grid = 1, block = 1 }, t, o)
    assert.same({ 4, 1, 5, 1 }, o:read())
  end)

  it("by level and gradient, of which there is one", function()
    check("lod", 2, 9, { filter = "linear" })
    check("grad", 2, 10, { filter = "linear", normalized = true, address = "wrap" })
    check("lod 3-D", 3, 22, {})
  end)

  it("of integers, as they are and as fractions", function()
    for _, dtype in ipairs { "uint8", "int8", "uint16", "int16" } do
      local is_signed = dtype:sub(1, 1) == "i"
      check(dtype .. " elements", 2, is_signed and 13 or 12, {}, dtype, 4)
      check(dtype .. " fractions", 2, 2, { read = "normalized_float" }, dtype, 2)
      check(dtype .. " fractions, border", 2, 2, { read = "normalized_float",
        address = "border", border = { 1, 0 } }, dtype, 2)
    end
    check("int32 elements", 2, 13, {}, "int32", 2)
    check("uint32 elements", 2, 12, {}, "uint32")
    check("uint8 elements, border", 2, 12, { address = "border",
      border = { 7, 8, 9, 10 } }, "uint8", 4)
    check("int16 elements, border", 2, 13, { address = "border",
      border = { -7, 300 } }, "int16", 2)
  end)

  it("of integers, filtered as fractions", function()
    for _, dtype in ipairs { "uint8", "uint16", "int16" } do
      check(dtype .. " filtered", 2, 2, { read = "normalized_float",
        filter = "linear" }, dtype, 4)
    end
  end)

  -- Of signed bytes a GPU's filter has more bits than can be seen from outside:
  -- the last of 15 may differ.
  it("of signed bytes, filtered", function()
    local kept = golden["int8 filtered"]
    golden["int8 filtered"] = nil
    check("int8 filtered", 2, 2, { read = "normalized_float", filter = "linear" },
      "int8", 4)
    golden["int8 filtered"] = kept
  end)

  it("of halves and of several channels", function()
    check("float16", 2, 2, {}, "float16", 4)
    check("float16, linear", 2, 2, { filter = "linear" }, "float16", 2)
    check("float32 x 2", 3, 3, { filter = "linear" }, "float32", 2)
    check("float32 x 4", 2, 2, { filter = "linear", normalized = true,
      address = "mirror" }, "float32", 4)
  end)

  it("of sRGB", function()
    local bytes, points = {}, {}
    for i = 0, 255 do bytes[i + 1] = i end
    for shift = 0, 1 do
      -- each byte in a channel that is not the last, which is linear
      local list = table.move(bytes, 1, 256, 1, {})
      if shift == 1 then
        for i = 1, 256, 4 do list[i], list[i + 3] = list[i + 3], list[i] end
      end
      local c <close> = tp.buffer("u8", list)
      local t <close> = tp.texture(c, { channels = 4, srgb = true,
        read = "normalized_float" })
      for i = 1, 64 do points[i] = { i - 0.5 } end
      local got = sample(t, 1, points)
      note("srgb " .. shift, got)
      for i = 1, 256 do
        local v = list[i] / 255
        local linear = i % 4 ~= 0 and
          (v <= 0.04045 and v / 12.92 or ((v + 0.055) / 1.055) ^ 2.4) or v
        assert.is_true(math.abs(as_float(got[i]) - linear) < 0.004)
      end
    end
  end)

  it("gather one channel of four texels", function()
    local random = generator(99)
    local w, h = 17, 13
    local data = elements(random, "float32", w * h * 4)
    local b <close> = tp.buffer("f32", data)
    local t <close> = tp.texture(b, { width = w, height = h, channels = 4 })
    local points = {}
    for i = 1, N do
      points[i] = { coordinate(random, w) + 0.5, coordinate(random, h) + 0.5 }
    end
    for channel = 0, 3 do
      local got = sample(t, 18 + channel, points)
      note("gather " .. channel, got)
      for i, p in ipairs(points) do
        local x, y = (p[1] - 0.5) // 1 | 0, (p[2] - 0.5) // 1 | 0
        local function texel(dx, dy)
          local ix = math.max(0, math.min(w - 1, x + dx))
          local iy = math.max(0, math.min(h - 1, y + dy))
          return data[(iy * w + ix) * 4 + channel + 1]
        end
        local expected = { texel(0, 1), texel(1, 1), texel(1, 0), texel(0, 0) }
        for c = 1, 4 do
          assert.equal(expected[c], as_float(got[4 * i - 4 + c]))
        end
      end
    end
  end)

  it("of cubes, also in layers", function()
    local random = generator(7)
    local n, layers = 8, 3
    local data = elements(random, "float32", n * n * 6 * layers)
    local b <close> = tp.buffer("f32", data)
    local one <close> = tp.texture(b:slice(1, n * n * 6), { cube = true, width = n })
    local all <close> = tp.texture(b, { cube = true, width = n, layers = layers })
    local soft <close> = tp.texture(b, { cube = true, width = n, layers = layers,
      filter = "linear" })
    local points = {}
    for i = 1, N do
      points[i] = { f32(random(-1, 1)), f32(random(-1, 1)), f32(random(-1, 1)),
        layer = i % layers }
    end
    local got, layered = sample(one, 6, points), sample(all, 7, points)
    note("cube", got)
    note("cube layers", layered)
    note("cube linear", sample(soft, 7, points))
    for i, p in ipairs(points) do
      local f, s, t = sampling.face(p[1], p[2], p[3])
      local x, y = math.min(n - 1, s * n // 1 | 0), math.min(n - 1, t * n // 1 | 0)
      local index = (f * n + y) * n + x + 1
      assert.equal(data[index], as_float(got[4 * i - 3]))
      assert.equal(data[p.layer * 6 * n * n + index], as_float(layered[4 * i - 3]))
    end
  end)

  it("by number, of which those out of range are 0", function()
    local random = generator(5)
    local function numbers(name, extents, options, how)
      local w, h, d = extents[1], extents[2] or 1, extents[3] or 1
      local layers = options.layers or 1
      local data = elements(random, "uint32", w * h * d * layers)
      options.width, options.height, options.depth = w, extents[2], extents[3]
      local b <close> = tp.buffer("u32", data)
      local t <close> = tp.texture(b, options)
      local points = {}
      for i = 1, N do
        local p = { layer = options.layers and math.floor(random(0, layers)) }
        for k = 1, #extents do
          p[k] = math.floor(random(-2, extents[k] + 2))
        end
        points[i] = p
      end
      local got = sample(t, how, points)
      for i, p in ipairs(points) do
        local x, y, z = p[1], p[2] or 0, p[3] or 0
        local inside = x >= 0 and x < w and y >= 0 and y < h and z >= 0 and z < d
        local index = (((p.layer or 0) * d + z) * h + y) * w + x + 1
        assert.equal(inside and data[index] or 0, got[4 * i - 3], name)
      end
    end
    numbers("linear memory", { 41 }, { linear = true }, 8)
    numbers("plane", { 17, 13 }, {}, 14)
    numbers("volume", { 7, 5, 3 }, {}, 15)
    numbers("layers of lines", { 19 }, { layers = 4 }, 16)
    numbers("layers of planes", { 9, 5 }, { layers = 4 }, 17)
  end)

  it("on linear memory see what is written to it", function()
    local w, h, pitch = 13, 5, 64
    local b <close> = tp.zeros("f32", pitch // 4 * h)
    local t <close> = tp.texture(b, { width = w, height = h, linear = true,
      pitch = pitch, filter = "linear" })
    local line <close> = tp.texture(b, { linear = true })
    local data = {}
    for i = 1, pitch // 4 * h do data[i] = i end
    b:write(data)
    local points = {}
    for i = 1, w do points[i] = { i - 0.25, 2.5 } end
    local got = sample(t, 2, points)
    for i = 1, w do
      assert.equal(2 * pitch // 4 + math.min(w, i + 0.25), as_float(got[4 * i - 3]))
    end
    assert.equal(3.0, as_float(sample(line, 8, { { 2 } })[1]))
  end)

  it("are filled when they are made, and by write", function()
    local b <close> = tp.buffer("f32", { 1, 2, 3, 4, 5, 6 })
    local t <close> = tp.texture(b, { width = 3, height = 2 })
    b:fill(0)
    assert.same({ 1, 2, 3, 4, 5, 6 }, t:read())
    t:write { 6, 5, 4, 3, 2, 1 }
    assert.equal(string.pack("<ffffff", 6, 5, 4, 3, 2, 1), t:bytes())
    t:write(string.pack("<ffffff", 1, 1, 2, 2, 3, 3))
    t:copy_to(b)
    assert.same({ 1, 1, 2, 2, 3, 3 }, b:read())
    b:fill(9)
    t:write(b)
    assert.same({ 9, 9, 9, 9, 9, 9 }, t:read())
  end)

  it("tell what they are", function()
    local b <close> = tp.zeros("u8", 4 * 5 * 3 * 2)
    local t <close> = tp.texture(b, { width = 5, height = 3, layers = 4,
      channels = 2 })
    assert.same({ width = 5, height = 3, layers = 4, channels = 2 }, t:dims())
    assert.equal("uint8", t:dtype())
    assert.equal(tp.current_device(), t:device())
    assert.equal("integer", math.type(t:handle()))
    assert.is_not.equal(0, t:handle())
    assert.is_truthy(tostring(t):find("tpstream.Texture (", 1, true))
    assert.is_truthy(tostring(t):find("uint8[2], 5x3, 4 layers", 1, true))
    assert.equal("tpstream.Texture", debug.getmetatable(t).__name)
    t:close()
    t:close()
    assert.equal("tpstream.Texture (closed)", tostring(t))
    assert.error_matches(function() t:read() end, "attempt to use a closed texture")
  end)

  it("come through memory and structs by their handles", function()
    local b <close> = tp.buffer("f32", { 10, 20, 30 })
    local t <close> = tp.texture(b, {})
    local handles <close> = tp.buffer("u64", { t:handle() })
    local o <close> = tp.zeros("f32", 1)
    module:kernel "through":launch(gate.one, handles, o)
    assert.same({ 10 }, o:read())
    module:kernel "pair":launch(gate.one,
      string.pack("<JJ", t:handle(), t:handle()), o)
    assert.same({ 50 }, o:read())
  end)

  it("may be closed while another stream samples them", function()
    local g <close> = gate.new()
    local s <close> = tp.Stream()
    local n = 64
    local o <close> = tp.zeros("f32", n)
    local data = {}
    for i = 1, n do data[i] = i end
    local b = tp.buffer("f32", data)
    local t = tp.texture(b, {})
    tp.default_stream():synchronize()
    tp.with_stream(s, function()
      module:kernel "late":launch(gate.one, g.flag, t, o, n)
    end)
    t:close()
    b:close()
    for _ = 1, 20 do -- takes up what was freed too early
      local c <close> = tp.zeros("f32", n)
      tp.texture(c, {}):close()
    end
    collectgarbage()
    g:open()
    s:synchronize()
    assert.same(data, o:read())
  end)

  it("are given back", function()
    local before = tp.memory_stats()
    local b <close> = tp.zeros("f32", 1 << 16)
    for _ = 1, 50 do
      local t <close> = tp.texture(b, { width = 256, height = 256 })
      assert.equal(before.live_count + 2, tp.memory_stats().live_count)
      assert.is_truthy(t)
    end
    assert.equal(before.live_count + 1, tp.memory_stats().live_count)
  end)
end)

describe("misuse of textures", function()
  local b
  setup(function() b = tp.zeros("f32", 24) end)
  teardown(function() b:close() end)

  local function refused(text, options, buffer)
    local ok, e = pcall(tp.texture, buffer or b, options)
    assert.is_false(ok)
    assert.is_truthy(tostring(e):find(text, 1, true), tostring(e))
  end

  it("is refused with what is allowed", function()
    refused("a buffer of 24 elements for 5 x 5 x 1 texels of 1 channel (25 elements)",
      { width = 5, height = 5 })
    refused("for 7 x 1 x 1 texels of 4 channels (28 elements)",
      { width = 7, channels = 4 })
    refused("(field 'channels': 1, 2 or 4 expected, got 3)", { channels = 3 })
    refused("(field 'depth': without a height)", { width = 12, depth = 2 })
    refused("(field 'depth': with layers)",
      { width = 2, height = 2, depth = 3, layers = 2 })
    refused("(field 'width': must be at least 1, got 0)", { width = 0 })
    refused("address 'wrap' without normalized coordinates", { address = "wrap" })
    refused("address 'mirror' without normalized coordinates",
      { width = 4, height = 6, address = { "clamp", "mirror" } })
    refused("(field 'address': 'wrap', 'clamp', 'mirror' or 'border' expected, " ..
      "got 'edge')", { address = "edge" })
    refused("2 modes expected, one a dimension, got 1",
      { width = 4, height = 6, address = { "clamp" } })
    refused("(field 'filter': 'point' or 'linear' expected, got 'cubic')",
      { filter = "cubic" })
    refused("read 'normalized_float' of float32 elements",
      { read = "normalized_float" })
    refused("(field 'border': 2 channels, the texture has 1)",
      { address = "border", border = { 1, 2 } })
    refused("srgb of float32 elements", { srgb = true })
    refused("(field 'pitch': without linear = true)", { pitch = 64 })
    refused("(field 'filter': means nothing for a line of linear memory",
      { linear = true, filter = "linear" })
    refused("(field 'normalized': must be true for a cube",
      { cube = true, width = 2, normalized = false })
    refused("unknown option 'widht'", { widht = 4 })
    refused("tpstream.Buffer or tpstream.Surface expected, got string", {}, "f32")
  end)

  it("depends on the elements", function()
    local i <close> = tp.zeros("i32", 24)
    refused("filter 'linear' of int32 elements read as they are",
      { filter = "linear" }, i)
    refused("read 'normalized_float' of int32 elements",
      { read = "normalized_float" }, i)
    local d <close> = tp.zeros("f64", 24)
    refused("elements of float64 can't be texels", {}, d)
    local h <close> = tp.zeros("bf16", 24)
    refused("elements of bfloat16 can't be texels", {}, h)
    local u <close> = tp.zeros("u8", 24)
    refused("(field 'border': element 1: 256 does not fit uint8 (0 to 255))",
      { address = "border", border = { 256 } }, u)
  end)

  it("names the limit of an extent", function()
    local u <close> = tp.zeros("u8", 1 << 20)
    refused("width 1048576 of a 1-D texture (1 to 131072)", {}, u)
    refused("layers 65536 of a layered texture (1 to 2048)",
      { width = 16, layers = 65536 }, u)
    refused("height 131072 of a 2-D texture (1 to 65536)",
      { width = 8, height = 131072 }, u)
    refused("pitch of 20 bytes (a multiple of 32 from 16 to",
      { width = 16, height = 8, linear = true, pitch = 20 }, u)
    local s <close> = u:slice(2, 64)
    refused("a texture can't begin at byte 1 of this memory", { linear = true }, s)
    refused("the faces of a cube are square, not 2 x 3",
      { cube = true, width = 2, height = 3 }, u:slice(1, 36))
  end)

  it("at a kernel's parameters names them", function()
    local t <close> = tp.texture(b, {})
    local k = module:kernel "sample"
    local o <close> = tp.zeros("u32", 4)
    local c <close> = tp.zeros("f32", 4)
    local ok, e = pcall(k.launch, k, gate.one, t, t, c, o, 1)
    assert.is_false(ok)
    assert.is_truthy(e:find "argument #2 %(.*got tpstream.Texture", e)
    if k:params()[3].pointer then -- known with the compiler only
      ok, e = pcall(k.launch, k, gate.one, t, 1, t, o, 1)
      assert.is_false(ok)
      assert.is_truthy(e:find("tpstream.Buffer or nil expected, got " ..
        "tpstream.Texture", 1, true), e)
    end
    t:close()
    ok, e = pcall(k.launch, k, gate.one, t, 1, c, o, 1)
    assert.is_false(ok)
    assert.is_truthy(e:find "argument #1 %(.*: attempt to use a closed texture", e)
  end)

  it("on linear memory leaves data to the buffer", function()
    local t <close> = tp.texture(b, { linear = true })
    assert.error_matches(function() t:read() end, "bound to a buffer's memory")
    assert.error_matches(function() t:write { 1 } end, "bound to a buffer's memory")
  end)

  it("with data of another size or type says which", function()
    local t <close> = tp.texture(b, {})
    assert.error_matches(function() t:write { 1, 2 } end,
      "24 elements expected, got 2")
    assert.error_matches(function() t:write "abcd" end, "96 bytes expected")
    local i <close> = tp.zeros("i32", 24)
    assert.error_matches(function() t:copy_to(i) end,
      "a buffer of float32 expected, got one of int32")
    assert.error_matches(function() t:write(b:slice(1, 3)) end,
      "a buffer of 24 elements expected, got one of 3")
  end)
end)

-- Each ends its device, so it has a process of its own.
describe("a handle that is none", function()
  local function fault(lines)
    return run.script(([[
local tp = require "tpstream"
local program = require "spec.support.program"
local m = program("texture", %q)
local o <close> = tp.zeros("u32", 4)
local c <close> = tp.zeros("f32", 4)
local b <close> = tp.zeros("f32", 4)
local function launch(handle)
  m:kernel "sample":launch({ grid = 1, block = 1 }, handle, 1, c, o, 1)
  tp.default_stream():synchronize()
end
]]):format(SOURCE) .. lines)
  end
  if tp.current_device():kind() ~= "sim" then
    pending "is told by the simulated device"
    return
  end

  for text, lines in pairs {
    ["a null handle"] = "launch(0)",
    ["there is no such texture"] = "launch(b:ptr())",
    ["the texture was closed"] = [[
      local t = tp.texture(b, {})
      local h = t:handle()
      t:close()
      tp.default_stream():synchronize()
      launch(h)]],
    ["it is a surface's"] = [[
      local s = tp.surface(b, {})
      launch(s:handle())]],
  } do
    it("is a fault: " .. text, function()
      local r = fault(lines)
      assert.equal(1, r.status)
      assert.is_truthy(r.stderr:find(text, 1, true), r.stderr)
      assert.is_truthy(r.stderr:find("kernel 'sample', block %(0,0,0%), thread " ..
        "%(0,0,0%), program.cu:%d+"), r.stderr)
    end)
  end
end)

local HANDLES = [=[
typedef cudaTextureObject_t tex;
typedef cudaSurfaceObject_t surf;
__device__ __noinline__ float inner(tex t, int i) { return tex1D<float>(t, i + .5f); }
extern "C" {
__global__ void both(tex t, surf s, float *o) {
  int i = threadIdx.x;
  o[i] = tex1D<float>(t, i + .5f);
  surf1Dwrite(o[i], s, 4 * i);
}
__global__ void called(tex t, float *o, unsigned long long n) {
  if (threadIdx.x < n) o[threadIdx.x] = inner(t, threadIdx.x);
}
__global__ void either(tex a, tex b, int which, float *o) {
  *o = tex1D<float>(which ? a : b, .5f);
}
__global__ void sizes(surf s, int *o) {
  asm("suq.width.b32 %0, [%1];" : "=r"(*o) : "l"(s));
}
}
]=]

describe("parameters that are handles", function()
  local handles, b, t, s, o
  setup(function()
    b = tp.buffer("f32", { 1, 2, 3, 4 })
    t, s = tp.texture(b, {}), tp.surface(b, {})
    o = tp.zeros("f32", 4)
  end)
  teardown(function()
    o:close() t:close() s:close() b:close()
  end)

  local shape = { grid = 1, block = 4 }
  local function refused(said, name, ...)
    local k <close> = handles:kernel(name)
    local ok, e = pcall(k.launch, k, shape, ...)
    assert.is_false(ok)
    assert.is_truthy(tostring(e):find(said, 1, true), tostring(e))
  end

  local function types(name)
    local list = {}
    for i, p in ipairs(handles:kernel(name):params()) do list[i] = p.type end
    return list
  end

  it("have CUDA's names", function()
    handles = tp.compile(HANDLES)
    assert.same({ "cudaTextureObject_t", "cudaSurfaceObject_t", "float*" },
      types "both")
    assert.same({ "cudaTextureObject_t", "float*", "unsigned long long" },
      types "called")
    assert.same({ "cudaTextureObject_t", "cudaTextureObject_t", "int", "float*" },
      types "either")
    assert.same({ "cudaSurfaceObject_t", "int*" }, types "sizes")
    handles:close()
  end)

  it("take what the kernel uses them as, and nothing else", function()
    handles = tp.compile(HANDLES)
    refused("kernel 'both': argument #1 (cudaTextureObject_t): a texture expected, got "
      .. "a surface", "both", s, s, o)
    refused("kernel 'both': argument #2 (cudaSurfaceObject_t): a surface expected, got "
      .. "a texture", "both", t, t, o)
    refused("argument #2 (cudaSurfaceObject_t): tpstream.Surface or integer expected, "
      .. "got tpstream.Buffer", "both", t, b, o)
    refused("argument #1 (cudaTextureObject_t): tpstream.Texture or integer expected, "
      .. "got tpstream.Buffer", "called", b, o, 4)
    refused("argument #2 (cudaTextureObject_t): a texture expected, got a surface",
      "either", t, s, 0, o)
    refused("tpstream.Texture or integer expected, got string", "called", "x", o, 4)
    handles:kernel "both":launch(shape, t, s, o)
    assert.same({ 1, 2, 3, 4 }, o:read())
    handles:kernel "called":launch(shape, t:handle(), o, 2)
    assert.same({ 1, 2, 3, 4 }, o:read())
    handles:close()
  end)

  it("do so without C++ types, too", function()
    local compiled <close> = program("texture_handles", HANDLES)
    handles = tp.load(compiled:ptx())
    refused("argument #1 (.u64): a texture expected, got a surface", "called", s, o, 4)
    refused("argument #1 (.u64): a texture expected, got a buffer", "called", b, o, 4)
    refused("argument #1 (.u64): a surface expected, got a texture", "sizes", t, o)
    handles:kernel "called":launch(shape, t, o, 4)
    assert.same({ 1, 2, 3, 4 }, o:read())
    handles:close()
  end)
end)
