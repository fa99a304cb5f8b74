-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
local tp = require "tpstream"
local program = require "spec.support.program"
local gate = require "spec.support.gate"
local run = require "spec.support.run"

-- Every geometry, width and way of clamping, by one kernel each: what a thread
-- reads or writes is c: x in bytes, y, z, layer.
local HEAD = [=[
typedef cudaSurfaceObject_t surf;
#define AT int4 q = c[threadIdx.x]; int x = q.x, y = q.y, z = q.z, l = q.w
]=]

local GEOMETRIES = {
  ["1d"] = { "{%%%d}", "x" }, ["2d"] = { "{%%%d,%%%d}", "x", "y" },
  ["3d"] = { "{%%%d,%%%d,%%%d,%%%d}", "x", "y", "z", "z" },
  a1d = { "{%%%d,%%%d}", "l", "x" },
  a2d = { "{%%%d,%%%d,%%%d,%%%d}", "l", "x", "y", "y" },
}
local TYPES = { b8 = { "unsigned char", "h", 1 }, b16 = { "unsigned short", "h", 2 },
  b32 = { "unsigned", "r", 4 }, b64 = { "unsigned long long", "l", 8 } }
local ORDER = { "1d", "2d", "3d", "a1d", "a2d" }

-- "{%0,%1}" and the operands behind.
local function braces(first, count)
  local list = {}
  for i = 1, count do list[i] = "%" .. first + i - 1 end
  return "{" .. table.concat(list, ",") .. "}"
end

local function coordinates(geometry, first)
  local g, numbers, operands = GEOMETRIES[geometry], {}, {}
  for i = 2, #g do
    numbers[i - 1] = first + i - 2
    operands[i - 1] = '"r"(' .. g[i] .. ")"
  end
  return g[1]:format(table.unpack(numbers)), table.concat(operands, ", ")
end

local function reader(name, geometry, dtype, count, clamp)
  local t = TYPES[dtype]
  local kind = t[3] == 1 and "short" or t[1]
  local outputs, keep = {}, {}
  for i = 0, count - 1 do
    outputs[i + 1] = ('"=%s"(v[%d])'):format(t[2], i)
    keep[i + 1] = ("o[threadIdx.x * %d + %d] = (%s)v[%d];"):format(count, i, t[1], i)
  end
  local at, operands = coordinates(geometry, count + 1)
  local vector = count > 1 and ".v" .. count or ""
  return ([[
extern "C" __global__ void %s(surf s, const int4 *c, %s *o) {
  AT; %s v[%d];
  asm volatile("suld.b.%s%s.%s.%s %s, [%%%d, %s];" : %s : "l"(s), %s);
  %s
}
]]):format(name, t[1], kind, count, geometry, vector, dtype, clamp,
    braces(0, count), count, at, table.concat(outputs, ", "), operands,
    table.concat(keep, " "))
end

local function writer(name, geometry, dtype, count, clamp, form)
  local t = TYPES[dtype]
  local at, operands = coordinates(geometry, 1)
  local first, inputs = select(2, operands:gsub('"r"', "")) + 1, {}
  for i = 0, count - 1 do
    local value = ("v[threadIdx.x * %d + %d]"):format(count, i)
    if t[3] == 1 then value = "(short)" .. value end
    inputs[i + 1] = ('"%s"(%s)'):format(t[2], value)
  end
  local vector = count > 1 and ".v" .. count or ""
  return ([[
extern "C" __global__ void %s(surf s, const int4 *c, const %s *v) {
  AT;
  asm volatile("sust.%s.%s%s.%s.%s [%%0, %s], %s;" :: "l"(s), %s, %s : "memory");
}
]]):format(name, t[1], form or "b", geometry, vector, dtype, clamp, at,
    braces(first, count), operands, table.concat(inputs, ", "))
end

local VECTORS = { { "b8", 1 }, { "b8", 2 }, { "b8", 4 }, { "b16", 1 }, { "b16", 2 },
  { "b16", 4 }, { "b32", 1 }, { "b32", 2 }, { "b32", 4 }, { "b64", 1 }, { "b64", 2 } }

local function source()
  local parts = { HEAD }
  for _, g in ipairs(ORDER) do
    for _, clamp in ipairs { "trap", "clamp", "zero" } do
      parts[#parts + 1] = reader("r_" .. g .. "_" .. clamp, g, "b32", 1, clamp)
      parts[#parts + 1] = writer("w_" .. g .. "_" .. clamp, g, "b32", 1, clamp)
    end
  end
  for _, v in ipairs(VECTORS) do
    local name = v[1] .. "_" .. v[2]
    parts[#parts + 1] = reader("r_" .. name, "2d", v[1], v[2], "zero")
    parts[#parts + 1] = writer("w_" .. name, "2d", v[1], v[2], "zero")
  end
  for _, count in ipairs { 1, 2, 4 } do
    parts[#parts + 1] = writer("p_" .. count, "2d", "b32", count, "clamp", "p")
  end
  for _, r in ipairs { "add.2d.u32", "add.2d.u64", "min.2d.s32", "max.2d.u32",
    "and.2d.b32", "or.2d.b32" } do
    local wide = r:find "64"
    parts[#parts + 1] = ([[
extern "C" __global__ void red_%s(surf s, const int4 *c, const %s *v) {
  AT;
  asm volatile("sured.b.%s.clamp [%%0, {%%1,%%2}], %%3;" :: "l"(s), "r"(x), "r"(y),
    "%s"(v[threadIdx.x]) : "memory");
}
]]):format(r:gsub("%.", "_"), wide and "unsigned long long" or "unsigned", r,
      wide and "l" or "r")
  end
  parts[#parts + 1] = [[
extern "C" __global__ void red_p(surf s, const int4 *c, const unsigned *v) {
  AT;
  asm volatile("sured.p.min.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x), "r"(y),
    "r"(v[threadIdx.x]) : "memory");
}
extern "C" __global__ void size(surf s, int *o) {
  asm volatile("suq.width.b32 %0, [%1];" : "=r"(o[0]) : "l"(s));
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(o[1]) : "l"(s));
}
extern "C" __global__ void smooth(surf s, cudaTextureObject_t t, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < w) surf2Dwrite(tex2D<float>(t, w - x - .5f, h - y - .5f) * 2, s, x * 4, y);
}
extern "C" __global__ void cube(surf s, int n) {
  int x = threadIdx.x, y = threadIdx.y, f = blockIdx.x;
  surfCubemapwrite(f * 100 + y * 10 + x, s, x * 4, y, f);
}
extern "C" __global__ void late(const volatile int *flag, surf s, int n) {
  for (int i = 0; i < 4000000 && *flag == 0; i++) __nanosleep(2000);
  for (int i = 0; i < n; i++) surf1Dwrite(i + 1, s, i * 4);
}
]]
  return table.concat(parts)
end

local module
setup(function() module = program("surface", source()) end)

local function random_words(seed)
  local state = seed
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) % n
  end
end

local SHAPES = { ["1d"] = { width = 17 }, ["2d"] = { width = 16, height = 5 },
  ["3d"] = { width = 8, height = 5, depth = 3 }, a1d = { width = 16, layers = 3 },
  a2d = { width = 8, height = 5, layers = 3 } }

local N = 64
local LINE = { grid = 1, block = N }

-- Bytes of the surface at c, or nil; moved to its edge where `clamp` is so.
local function place(shape, c, size, clamp)
  local rows, slices = shape.height or 1, shape.depth or shape.layers or 1
  local width = shape.width * 4
  local x, y, z = c[1], shape.height and c[2] or 0, 0
  if shape.depth then z = c[3] end
  if shape.layers then z = c[4] end
  local function inside(v, n) return v >= 0 and v < n end
  if not (x >= 0 and x + size <= width and inside(y, rows) and inside(z, slices)) then
    if clamp ~= "clamp" then return nil end
    x = math.max(0, math.min(width - size, x))
    y = math.max(0, math.min(rows - 1, y))
    if shape.layers and z < 0 then z = slices - 1 end -- counts as unsigned
    z = math.max(0, math.min(slices - 1, z))
  end
  return (z * rows + y) * width + x
end

-- Places, N at the most; with `unique` no two of them are the same, since what is
-- written must not race.
local function places(random, shape, size, clamp, unique)
  local list, flat, seen = {}, {}, {}
  local beyond = clamp == "trap" and 0 or 2
  for _ = 1, 4 * N do
    local c = { (random(shape.width * 4 // size + 2 * beyond) - beyond) * size,
      random((shape.height or 9) + 2 * beyond) - beyond,
      random((shape.depth or 9) + 2 * beyond) - beyond,
      random((shape.layers or 9) + 2 * beyond) - beyond }
    local at = place(shape, c, size, clamp)
    if not (unique and at and seen[at]) and #list < N then
      list[#list + 1] = c
      seen[at or false] = true
    end
  end
  for i, c in ipairs(list) do table.move(c, 1, 4, 4 * i - 3, flat) end
  return list, flat
end

local function count_of(shape)
  return shape.width * (shape.height or 1) * (shape.depth or 1) * (shape.layers or 1)
end

local function make(random, shape)
  local words = {}
  for i = 1, count_of(shape) do words[i] = random(1 << 30) * 4 + random(4) end
  local b <close> = tp.buffer("u32", words)
  return tp.surface(b, shape), string.pack("<" .. ("I4"):rep(#words),
    table.unpack(words))
end

local function word_at(bytes, at, size)
  return string.unpack("<" .. (size == 8 and "i8" or "I" .. size), bytes, at + 1)
end

describe("surfaces", function()
  for _, g in ipairs(ORDER) do
    for _, clamp in ipairs { "trap", "clamp", "zero" } do
      it("are read: " .. g .. ", " .. clamp, function()
        local random = random_words(#g * 7 + #clamp)
        local s, bytes = make(random, SHAPES[g])
        local list, flat = places(random, SHAPES[g], 4, clamp)
        local c <close> = tp.buffer("i32", flat)
        local o <close> = tp.zeros("u32", #list)
        module:kernel("r_" .. g .. "_" .. clamp):launch({ grid = 1, block = #list },
          s, c, o)
        for i, got in ipairs(o:read()) do
          local at = place(SHAPES[g], list[i], 4, clamp)
          assert.equal(at and word_at(bytes, at, 4) or 0, got)
        end
        s:close()
      end)

      it("are written: " .. g .. ", " .. clamp, function()
        local random = random_words(#g * 11 + #clamp)
        local shape = SHAPES[g]
        local s = make(random, shape)
        local expected = s:read()
        local list, flat = places(random, shape, 4, clamp, true)
        local values = {}
        for i, c in ipairs(list) do
          values[i] = i * 1001
          local at = place(shape, c, 4, clamp)
          if at then expected[at // 4 + 1] = values[i] end
        end
        local c <close> = tp.buffer("i32", flat)
        local v <close> = tp.buffer("u32", values)
        module:kernel("w_" .. g .. "_" .. clamp):launch({ grid = 1, block = #list },
          s, c, v)
        assert.same(expected, s:read())
        s:close()
      end)
    end
  end

  for _, v in ipairs(VECTORS) do
    local dtype, count = v[1], v[2]
    local unit = TYPES[dtype][3]
    it(("by %d x %s"):format(count, dtype), function()
      local random = random_words(unit * 10 + count)
      local shape = SHAPES["2d"]
      local s, bytes = make(random, shape)
      local list, flat = places(random, shape, unit * count, "zero", true)
      local c <close> = tp.buffer("i32", flat)
      local name = "u" .. unit * 8
      local o <close> = tp.zeros(name, N * count)
      local line = { grid = 1, block = #list }
      module:kernel(("r_%s_%d"):format(dtype, count)):launch(line, s, c, o)
      local got = o:read()
      local values, expected = {}, { bytes:byte(1, -1) }
      for n = 1, N * count do values[n] = 0 end
      for i, p in ipairs(list) do
        local at = place(shape, p, unit * count, "zero")
        for k = 0, count - 1 do
          local n = (i - 1) * count + k + 1
          assert.equal(at and word_at(bytes, at + k * unit, unit) or 0, got[n])
          values[n] = (i * 37 + k * 11) % 256
          if at then
            for byte = 1, unit do expected[at + k * unit + byte] = 0 end
            expected[at + k * unit + 1] = values[n]
          end
        end
      end
      local w <close> = tp.buffer(name, values)
      module:kernel(("w_%s_%d"):format(dtype, count)):launch(line, s, c, w)
      assert.same(expected, { s:bytes():byte(1, -1) })
      s:close()
    end)
  end

  it("take formatted texels", function()
    local function formatted(dtype, channels, words, expected)
      local s <close> = tp.surface(tp.zeros(dtype, 32 * channels),
        { width = 8, height = 4, channels = channels })
      local c <close> = tp.buffer("i32", { 3, 2, 0, 0 })
      local v <close> = tp.buffer("u32", words)
      module:kernel("p_" .. channels):launch(gate.one, s, c, v)
      local all = s:read()
      local at = (2 * 8 + 3) * channels
      assert.same(expected, table.move(all, at + 1, at + channels, 1, {}))
    end
    local function word(x) return (string.unpack("<I4", string.pack("<f", x))) end
    formatted("u8", 4, { 7, 300, 255, 1 << 31 }, { 7, 255, 255, 255 })
    formatted("i8", 4, { 5, 300, -5 & 0xffffffff, 1 << 31 }, { 5, 127, -5, -128 })
    formatted("u16", 2, { 70000, 9 }, { 65535, 9 })
    formatted("i16", 1, { -40000 & 0xffffffff }, { -32768 })
    formatted("f16", 2, { word(0.5), word(-1.25) }, { 0.5, -1.25 })
    formatted("f32", 4, { word(0.1), word(2), word(-3), word(4) },
      { (string.unpack("<f", string.pack("<f", 0.1))), 2, -3, 4 })
  end)

  it("are reduced atomically", function()
    local random = random_words(3)
    for name, op in pairs {
      add_2d_u32 = function(a, b) return (a + b) & 0xffffffff end,
      min_2d_s32 = function(a, b)
        local function signed(x) return x >= 1 << 31 and x - (1 << 32) or x end
        return signed(a) < signed(b) and a or b
      end,
      max_2d_u32 = math.max,
      and_2d_b32 = function(a, b) return a & b end,
      or_2d_b32 = function(a, b) return a | b end,
    } do
      local shape = SHAPES["2d"]
      local s = make(random, shape)
      local expected = s:read()
      local list, flat = places(random, shape, 4, "clamp")
      local values = {}
      for i, p in ipairs(list) do
        values[i] = random(1 << 30) * 4
        local at = place(shape, p, 4, "clamp") // 4 + 1
        expected[at] = op(expected[at], values[i])
      end
      local c <close> = tp.buffer("i32", flat)
      local v <close> = tp.buffer("u32", values)
      module:kernel("red_" .. name):launch(LINE, s, c, v)
      assert.same(expected, s:read(), name)
      s:close()
    end
    local s <close> = tp.surface(tp.buffer("i32", { 5, -7, 9, 11 }),
      { width = 2, height = 2 })
    local c <close> = tp.buffer("i32", { 1, 0, 0, 0, 0, 1, 0, 0, 2, 1, 0, 0 })
    local v <close> = tp.buffer("u32", { 3, 0xffffffff, 1 })
    module:kernel "red_p":launch({ grid = 1, block = 3 }, s, c, v)
    assert.same({ 5, -7, -1, 11 }, s:read())
    local w <close> = tp.surface(tp.buffer("u32", { 0xffffffff, 1, 0, 0 }),
      { channels = 2, width = 2, height = 1 })
    local d <close> = tp.buffer("i32", { 0, 0, 0, 0 })
    local one <close> = tp.buffer("u64", { 1 })
    module:kernel "red_add_2d_u64":launch(gate.one, w, d, one)
    assert.same({ 0, 2, 0, 0 }, w:read())
  end)

  it("of other dimensions than the access are nowhere, but for a first plane",
    function()
      local random = random_words(12)
      local s, bytes = make(random, SHAPES["3d"])
      local c <close> = tp.buffer("i32", { 8, 2, 0, 0 })
      local o <close> = tp.buffer("u32", { 77 })
      module:kernel "r_2d_clamp":launch(gate.one, s, c, o)
      assert.same({ (word_at(bytes, 2 * 32 + 8, 4)) }, o:read())
      module:kernel "r_1d_clamp":launch(gate.one, s, c, o)
      assert.same({ 0 }, o:read())
      local before = s:bytes()
      module:kernel "w_1d_zero":launch(gate.one, s, c, o)
      assert.equal(before, s:bytes())
      s:close()
    end)

  it("say their size to kernels and scripts", function()
    local s <close> = tp.surface("u8", { width = 6, height = 4, channels = 4 })
    local o <close> = tp.zeros("i32", 2)
    module:kernel "size":launch(gate.one, s, o)
    assert.same({ 6, 4 }, o:read())
    assert.same({ width = 6, height = 4, channels = 4 }, s:dims())
    assert.equal("uint8", s:dtype())
    assert.is_truthy(tostring(s):find "tpstream.Surface %(.*uint8%[4%], 6x4")
    assert.equal("tpstream.Surface", debug.getmetatable(s).__name)
    s:close()
    assert.equal("tpstream.Surface (closed)", tostring(s))
    assert.error_matches(function() s:bytes() end, "attempt to use a closed surface")
  end)

  it("are sampled by textures over them", function()
    local w, h = 9, 5
    local data = {}
    for i = 1, w * h do data[i] = i end
    local from <close> = tp.surface(tp.buffer("f32", data), { width = w, height = h })
    local to <close> = tp.surface("f32", { width = w, height = h })
    local t <close> = tp.texture(from, { filter = "linear" })
    local k = module:kernel "smooth"
    k:launch({ grid = { 1, h }, block = 32 }, to, t, w, h)
    local expected = {}
    for i = 1, w * h do expected[i] = 2 * (w * h + 1 - i) end
    assert.same(expected, to:read())
    from:write(to:bytes()) -- the texture sees it
    k:launch({ grid = { 1, h }, block = 32 }, to, t, w, h)
    for i = 1, w * h do expected[i] = 4 * i end
    assert.same(expected, to:read())
    from:close()
    assert.same({ width = w, height = h, channels = 1 }, t:dims())
    assert.is_false(pcall(tp.texture, to, { width = 3 }))
    assert.is_false(pcall(tp.texture, t, {}))
  end)

  it("may be cubes", function()
    local n = 4
    local s <close> = tp.surface("i32", { cube = true, width = n })
    module:kernel "cube":launch({ grid = 6, block = { n, n } }, s, n)
    local got, expected = s:read(), {}
    for f = 0, 5 do
      for y = 0, n - 1 do
        for x = 0, n - 1 do expected[#expected + 1] = f * 100 + y * 10 + x end
      end
    end
    assert.same(expected, got)
  end)

  it("may be closed while another stream writes them", function()
    local g <close> = gate.new()
    local t <close> = tp.Stream()
    local n = 32
    local s = tp.surface("i32", { width = n })
    local o <close> = tp.zeros("i32", n)
    tp.default_stream():synchronize()
    tp.with_stream(t, function()
      module:kernel "late":launch(gate.one, g.flag, s, n)
      s:copy_to(o)
    end)
    s:close()
    for _ = 1, 20 do
      local other <close> = tp.surface("i32", { width = n })
      other:copy_to(tp.zeros("i32", n))
    end
    collectgarbage()
    g:open()
    t:synchronize()
    for i, v in ipairs(o:read()) do assert.equal(i, v) end
  end)
end)

describe("corpus 23 textures and surfaces", function()
  local corpus
  setup(function()
    local file <close> = assert(io.open "spec/corpus/23_texture.cu")
    corpus = program("corpus_23", file:read "a")
  end)

  it("gives what the corpus says", function()
    local w, h = 33, 18
    local random = random_words(23)
    local data, bytes = {}, {}
    for i = 1, w * h do data[i] = random(1 << 20) / 64 end
    for i = 1, w * h * 4 do bytes[i] = random(255) end
    local b <close> = tp.buffer("f32", data)
    local t <close> = tp.texture(b, { width = w, height = h, filter = "linear" })
    local o <close> = tp.zeros("f32", w * h)
    local shape = { grid = { 3, 2 }, block = { 16, 16 } }
    corpus:kernel "tex2d":launch(shape, t, o, w, h)
    assert.same(data, o:read())
    local from <close> = tp.surface(tp.buffer("u8", bytes),
      { width = w, height = h, channels = 4 })
    local to <close> = tp.surface("u8", { width = w, height = h, channels = 4 })
    corpus:kernel "surf":launch(shape, from, to, w, h)
    for i = 1, #bytes, 4 do bytes[i] = bytes[i] + 1 end
    assert.same(bytes, to:read())
  end)

  it("mixes geometries as a GPU does", function()
    local function floats(n)
      local list = {}
      for i = 1, n do list[i] = (i - 1) % 1000 end
      return tp.buffer("f32", list)
    end
    local n = 16
    local a <close> = tp.texture(floats(n * 4), { channels = 4, linear = true })
    local v <close> = tp.texture(floats(n * 4 * 4 * 4),
      { width = n, height = 4, depth = 4, channels = 4 })
    local l <close> = tp.texture(floats(n * 4 * 4 * 4),
      { width = n, height = 4, layers = 4, channels = 4 })
    local o <close> = tp.zeros("f32", n * 4)
    corpus:kernel "texmore":launch({ grid = 1, block = n }, a, v, l, o)
    local got = o:read()
    for i = 0, n - 1 do
      local function texel(x, y, z, c) return (((z * 4 + y) * n + x) * 4 + c) % 1000 end
      assert.equal(i * 4 + texel(i, 1, 2, 0), got[4 * i + 1])
      assert.equal(texel(i, 1, 2, 1) + 0 + 3, got[4 * i + 2] + 2)
    end
  end)
end)

-- Each ends its device, so it has a process of its own.
describe("an access to no place of a surface #fault", function()
  local function fault(kernel, c, lines)
    return run.script(([[
local tp = require "tpstream"
local m = tp.load(%q)
local s = tp.surface("u32", { width = 16, height = 5 })
local c = tp.buffer("i32", { %s })
local o = tp.zeros("u32", 1)
%s
m:kernel "%s":launch({ grid = 1, block = 1 }, s, c, o)
local ok, e = pcall(tp.default_stream().synchronize, tp.default_stream())
io.write(tostring(ok), " ", e.code, "\n", e.message)
]]):format(module:ptx(), c, lines or "", kernel))
  end

  it("is an illegal address", function()
    for kernel, c in pairs { r_2d_trap = "64, 0, 0, 0", w_2d_trap = "0, 5, 0, 0" } do
      local r = fault(kernel, c)
      assert.equal("false cudaErrorIllegalAddress", r.stdout:match "^[^\n]*",
        r.stdout .. r.stderr)
      if tp.current_device():kind() == "sim" then
        assert.is_truthy(r.stdout:find("out of range of the surface of 16 x 5 x 1 " ..
          "texels of 4 bytes", 1, true), r.stdout)
      end
    end
  end)

  it("is a misaligned one", function()
    local r = fault("r_2d_clamp", "2, 0, 0, 0")
    assert.equal("false cudaErrorMisalignedAddress", r.stdout:match "^[^\n]*",
      r.stdout .. r.stderr)
  end)
end)

describe("misuse of surfaces", function()
  it("is refused with what is allowed", function()
    local b <close> = tp.zeros("f32", 24)
    local function refused(text, ...)
      local ok, e = pcall(tp.surface, ...)
      assert.is_false(ok)
      assert.is_truthy(tostring(e):find(text, 1, true), tostring(e))
    end
    refused("(field 'width': must be given)", "f32", {})
    refused("unknown element type 'f31'", "f31", { width = 3 })
    refused("unknown option 'filter'", b, { filter = "linear" })
    refused("a buffer of 24 elements for 5 x 1 x 1 texels", b, { width = 5 })
    refused("width 32769 of a 1-D surface (1 to 32768)", "f32", { width = 32769 })
    refused("tpstream.Buffer or element type expected, got nil", nil)
    refused("elements of int64 can't be texels", "i64", { width = 1 })
  end)
end)
