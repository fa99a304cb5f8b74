-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/kernels.md: scan, exclusive_scan, histogram, sort, sort_pairs.
local tp = require "tpstream"
local elements = require "spec.support.elements"
local numbers = require "spec.support.numbers"
local K = tp.kernels
local one, take, values = elements.one, elements.take, elements.values
local failure = elements.failure

-- Tiles are of 4096, 2048 or 1024 elements, groups of 32 of those.
local COUNTS = { 0, 1, 2, 33, 511, 4096, 4097, 9000 }

local function running(list, exclusive, init, f)
  local out, sum = {}, init
  for i, v in ipairs(list) do
    local before = sum
    if sum == nil then sum = v else sum = f(sum, v) end
    out[i] = exclusive and before or sum
  end
  return out
end
local function add(a, b) return a + b end

describe("scan", function()
  it("gives running sums, for every count, in a new buffer", function()
    local g = elements.generator(11)
    for _, t in ipairs { "i32", "i64", "f16", "f32", "f64" } do
      for k, n in ipairs(COUNTS) do
        local list = values(g, t, n, t == "f16" and -1 or -9, t == "f16" and 1 or 9)
        local x <close> = elements.slice(t, list, 1 + k % 4)
        assert.same(running(list, false, nil, add), take(K.scan(x)))
        if t ~= "f64" then
          local init = elements.float(t) and 0.0 or 0
          assert.same(running(list, true, init, add), take(K.exclusive_scan(x)))
        end
      end
    end
  end)

  it("wraps around in narrow types and is whole in wider ones", function()
    local g = elements.generator(12)
    local list = values(g, "u8", 3000, 0, 255)
    local x <close> = tp.buffer("u8", list)
    local sums = running(list, false, nil, add)
    local wrapped = {}
    for i, v in ipairs(sums) do wrapped[i] = v & 255 end
    assert.same(wrapped, take(K.scan(x)))
    local out <close> = tp.buffer("u32", 3000)
    assert.equal(out, K.scan(x, out))
    assert.same(sums, out:read())
  end)

  it("works in place", function()
    local list = values(elements.generator(13), "i32", 10000, -100, 100)
    local x <close> = tp.buffer("i32", list)
    K.exclusive_scan(x, x, { init = 7 })
    assert.same(running(list, true, 7, add), x:read())
    local a <close> = x:slice(1, 9999)
    local b <close> = x:slice(2, 9999)
    assert.matches("scan: x and the result overlap", failure(K.scan, a, b))
  end)

  it("knows product, min and max", function()
    local g = elements.generator(14)
    local signs = {}
    for i, v in ipairs(g.ints(5000, 0, 1)) do signs[i] = 2 * v - 1 end
    local x <close> = tp.buffer("i32", signs)
    assert.same(running(signs, false, nil, function(a, b) return a * b end),
      take(K.scan(x, nil, { op = "product" })))
    for _, t in ipairs { "u64", "f32" } do
      local list = values(g, t, 5000, 0, 1000000)
      local y <close> = tp.buffer(t, list)
      assert.same(running(list, false, nil, math.min),
        take(K.scan(y, nil, { op = "min" })))
      assert.same(running(list, true, t == "u64" and 0 or -math.huge, math.max),
        take(K.exclusive_scan(y, nil, { op = "max" })))
    end
    local nan <close> = tp.buffer("f32", { 1, 0 / 0, 0 })
    local got = take(K.scan(nan, nil, { op = "max" }))
    assert.equal(1.0, got[1])
    assert.is_true(got[2] ~= got[2] and got[3] ~= got[3])
  end)

  it("rounds the same each time, over many tiles", function()
    local n = 150000 -- of more than one group
    local list = elements.generator(15).floats(n, -1, 1)
    local x <close> = tp.buffer("f32", list)
    local first <close> = K.scan(x)
    local text = first:bytes()
    for _ = 1, 2 do
      local again <close> = K.scan(x)
      assert.equal(text, again:bytes())
    end
    local exact = running(list, false, nil, add)
    numbers.assert_near(exact, first:read(), 0, 2e-3)
  end)

  it("says what is wrong", function()
    local x <close> = tp.zeros("i32", 3)
    local short <close> = tp.zeros("i32", 2)
    local narrow <close> = tp.zeros("i16", 3)
    assert.matches("bad argument #2 to 'scan' %(a buffer of 3 elements expected, got "
      .. "one of 2", failure(K.scan, x, short))
    assert.matches("a buffer of int32 or of a wider type expected, got one of int16",
      failure(K.scan, x, narrow))
    assert.matches("bad argument #3 to 'scan' %(unknown option 'init' %(there are op%)",
      failure(K.scan, x, nil, { init = 1 }))
    assert.matches("field 'op': 'sum', 'product', 'min' or 'max' expected, got 'avg'",
      failure(K.scan, x, nil, { op = "avg" }))
    assert.matches("field 'op': string expected, got number",
      failure(K.scan, x, nil, { op = 1 }))
  end)
end)

describe("histogram", function()
  local function count(list, bins, low, high, t, closed)
    local out = {}
    for b = 1, bins do out[b] = 0 end
    local scale = numbers.f32(bins / (high - low))
    for _, v in ipairs(list) do
      local bin
      if v >= low and (v < high or closed and v == high) then
        if t == "f32" then
          bin = numbers.f32(numbers.f32(v - low) * scale) // 1 | 0
        elseif t == "f64" then
          bin = (v - low) * (bins / (high - low)) // 1 | 0
        else
          bin = (v - low) * bins // (high - low)
        end
        bin = math.min(bin, bins - 1)
        out[bin + 1] = out[bin + 1] + 1
      end
    end
    return out
  end

  it("counts floats in equal bins, what is outside in none", function()
    local g = elements.generator(16)
    for _, t in ipairs { "f32", "f64" } do
      for k, n in ipairs { 0, 1, 5000 } do
        local list = t == "f32" and g.floats(n, -1, 2) or g.reals(n, -1, 2)
        list[n // 2], list[n // 3] = n > 9 and 0 / 0 or nil, n > 9 and 1.0 or nil
        local x <close> = elements.slice(t, list, k)
        for _, bins in ipairs { 1, 10, 257 } do
          assert.same(count(list, bins, 0, 1, t), take(K.histogram(x, bins, 0, 1)))
          assert.same(count(list, bins, 0, 1, t, true),
            take(K.histogram(x, bins, 0, 1, { closed = true })))
        end
      end
    end
  end)

  it("counts integers exactly, by default from 0 on", function()
    local g = elements.generator(17)
    for _, t in ipairs { "u8", "i32", "i64" } do
      local list = values(g, t, 4000, -20, 127)
      local x <close> = elements.slice(t, list, 3)
      assert.same(count(list, 100, 0, 100), take(K.histogram(x, 100)))
      assert.same(count(list, 7, 3, 99), take(K.histogram(x, 7, 3, 99)))
      assert.same(count(list, 30, 1, 8), take(K.histogram(x, 30, 1, 8)))
    end
  end)

  it("of 64-bit limits has bins of 2^64 / n", function()
    local list = { math.mininteger, -1, 0, 1, math.maxinteger - 1, math.maxinteger }
    local x <close> = tp.buffer("i64", list)
    assert.same({ 2, 3 }, take(K.histogram(x, 2, math.mininteger, math.maxinteger)))
    assert.same({ 2, 4 }, take(K.histogram(x, 2, math.mininteger, math.maxinteger,
      { closed = true })))
    local u <close> = tp.buffer("u64", { 0, -2, -1 })
    assert.same({ 1, 0, 1 }, take(K.histogram(u, 3, 0, -1)))
  end)

  it("has more bins than a block counts by itself", function()
    local list = values(elements.generator(18), "i32", 3000, 0, 20000)
    local x <close> = tp.buffer("i32", list)
    assert.same(count(list, 20000, 0, 20000), take(K.histogram(x, 20000)))
  end)

  it("writes counts of 32 or 64 bits", function()
    local x <close> = tp.buffer("u8", { 1, 1, 3 })
    for _, t in ipairs { "i32", "u32", "i64", "u64" } do
      local out <close> = tp.buffer(t, 4)
      out:fill(9)
      assert.equal(out, K.histogram(x, 4, nil, nil, { out = out }))
      assert.same({ 0, 2, 0, 1 }, out:read())
    end
  end)

  it("says what is wrong", function()
    local x <close> = tp.zeros("f32", 3)
    local i <close> = tp.zeros("i32", 3)
    assert.matches("bad argument #2 to 'histogram' %(1 to 2147483647 expected, got 0",
      failure(K.histogram, x, 0, 0, 1))
    assert.matches("bad argument #3 to 'histogram' %(number expected, got nil",
      failure(K.histogram, x, 4))
    assert.matches("bad argument #4 to 'histogram' %(more than 1 expected, got 1",
      failure(K.histogram, x, 4, 1, 1))
    assert.matches("bad argument #4 to 'histogram' %(a finite number expected, got inf",
      failure(K.histogram, x, 4, 0, math.huge))
    assert.matches("1.5 is not a whole number", failure(K.histogram, i, 4, 1.5, 3))
    assert.matches("the range 0 to 4294967296 is beyond",
      failure(K.histogram, i, 4, 0, 1 << 32))
  end)
end)

-- The order of kernels/sort.cu: NaN last, -0.0 before 0.0.
local function before(a, b)
  if a ~= a or b ~= b then return a == a and b ~= b end
  if a == 0 and b == 0 and math.type(a) == "float" then return 1 / a < 1 / b end
  return a < b
end

describe("sort", function()
  it("sorts every type, up and down, wherever the slice begins", function()
    local g = elements.generator(19)
    for _, t in ipairs { "i8", "f16", "bf16", "i32", "f32", "f64" } do
      for k, n in ipairs { 0, 1, 2, 300, 5000 } do
        local list = values(g, t, n, -100, 100)
        local x <close> = elements.slice(t, list, k)
        assert.equal(x, K.sort(x))
        table.sort(list, before)
        assert.same(list, x:read())
        K.sort(x, { descending = true })
        table.sort(list, function(a, b) return before(b, a) end)
        assert.same(list, x:read())
      end
    end
  end)

  it("compares unsigned numbers of 64 bits", function()
    local g, list = elements.generator(20), {}
    for i = 1, 1000 do list[i] = g.bits() end
    local x <close> = tp.buffer("u64", list)
    K.sort(x)
    table.sort(list, math.ult)
    assert.same(list, x:read())
  end)

  it("counts in 64 bits where 30 are too few", function()
    local function upvalue(fn, name)
      for i = 1, 60 do
        local found, value = debug.getupvalue(fn, i)
        if found == name then return value, i end
      end
    end
    local sort = upvalue(K.sort, "sort")
    local least, at = upvalue(sort, "SMALL")
    assert.equal(1 << 30, least)
    debug.setupvalue(sort, at, 0) -- which kernel_for and sort_tiles share
    local list = values(elements.generator(22), "i32", 9000, -1000, 1000)
    local x <close> = tp.buffer("i32", list)
    K.sort(x)
    debug.setupvalue(sort, at, least)
    table.sort(list)
    assert.same(list, x:read())
  end)

  it("puts NaN last, of either sign, and -0.0 before 0.0", function()
    for t, format in pairs { f32 = "<f", f64 = "<d" } do
      local nan = string.pack(format, 0 / 0)
      local other = nan:sub(1, -2) .. string.char(nan:byte(-1) ~ 0x80)
      local text = {}
      for i, v in ipairs { 0.0, -0.0, 5.0, -math.huge, math.huge, -5.0 } do
        text[i] = string.pack(format, v)
      end
      local x <close> = tp.buffer(t, nan .. table.concat(text) .. other)
      local list = K.sort(x):read()
      assert.same({ -math.huge, -5.0, -0.0, 0.0, 5.0, math.huge },
        { table.unpack(list, 1, 6) })
      assert.equal(-math.huge, 1 / list[3])
      assert.equal(math.huge, 1 / list[4])
      assert.is_true(list[7] ~= list[7] and list[8] ~= list[8])
    end
  end)
end)

describe("sort_pairs", function()
  local function check(g, key_type, value_type, n)
    local keys, places, at = values(g, key_type, n, -20, 20), {}, {}
    for i = 1, n do places[i], at[i] = i % 100, i end
    local k <close> = elements.slice(key_type, keys, 2)
    local v <close> = elements.slice(value_type, places, 3)
    local a, b = K.sort_pairs(k, v)
    assert.is_true(a == k and b == v)
    table.sort(at, function(i, j)
      if keys[i] ~= keys[j] then return keys[i] < keys[j] end
      return i < j
    end)
    local sorted, moved = {}, {}
    for i = 1, n do sorted[i], moved[i] = keys[at[i]], places[at[i]] end
    assert.same(sorted, k:read())
    for i, got in ipairs(v:read()) do assert.equal(moved[i], got // 1) end
  end

  it("is stable, and moves values of any size along", function()
    local g = elements.generator(21)
    for _, pair in ipairs { { "i32", "i32" }, { "u8", "i16" }, { "f32", "f64" },
      { "u64", "u8" } } do
      for _, n in ipairs { 1000, 4096, 6000 } do check(g, pair[1], pair[2], n) end
    end
  end)

  it("downwards equal keys keep their order, too", function()
    local k <close> = tp.buffer("i32", { 1, 2, 1, 2, 3 })
    local v <close> = tp.buffer("i32", { 1, 2, 3, 4, 5 })
    K.sort_pairs(k, v, { descending = true })
    assert.same({ 3, 2, 2, 1, 1 }, k:read())
    assert.same({ 5, 2, 4, 1, 3 }, v:read())
  end)

  it("says what is wrong", function()
    local k <close> = tp.zeros("i32", 4)
    local v <close> = tp.zeros("i32", 3)
    assert.matches("bad argument #2 to 'sort_pairs' %(a buffer of 4 elements "
      .. "expected, got one of 3", failure(K.sort_pairs, k, v))
    assert.matches("sort_pairs: keys and values overlap", failure(K.sort_pairs, k, k))
    assert.matches("unknown option 'down' %(there are descending%)",
      failure(K.sort, k, { down = true }))
    assert.matches("field 'descending': boolean expected, got number",
      failure(K.sort, k, { descending = 1 }))
    assert.equal(0, one(K.sum(k)))
  end)
end)
