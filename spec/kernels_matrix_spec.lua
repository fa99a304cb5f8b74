-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/kernels.md: transpose, matmul, conv1d, conv2d. Inputs are small whole numbers,
-- so that every sum is exact, in whatever order.
local tp = require "tpstream"
local elements = require "spec.support.elements"
local numbers = require "spec.support.numbers"
local K = tp.kernels
local take, values, failure = elements.take, elements.values, elements.failure

describe("transpose", function()
  it("turns matrices of every element size and shape", function()
    local g = elements.generator(31)
    for _, t in ipairs { "i8", "bf16", "f32", "f64" } do
      for k, shape in ipairs { { 0, 5 }, { 1, 1 }, { 1, 70 }, { 65, 3 },
        { 100, 67 } } do
        local rows, columns = shape[1], shape[2]
        local list, expected = values(g, t, rows * columns, -100, 100), {}
        for i = 0, rows - 1 do
          for j = 0, columns - 1 do
            expected[j * rows + i + 1] = list[i * columns + j + 1]
          end
        end
        local x <close> = elements.slice(t, list, k)
        assert.same(expected, take(K.transpose(x, rows, columns)))
      end
    end
  end)

  it("says what is wrong", function()
    local x <close> = tp.zeros("f32", 6)
    assert.matches("bad argument #1 to 'transpose' %(2 by 4 elements expected, got 6",
      failure(K.transpose, x, 2, 4))
    assert.matches("transpose: x and the result overlap",
      failure(K.transpose, x, 2, 3, x))
    assert.matches("bad argument #2 to 'transpose' %(at least 0 expected, got %-2",
      failure(K.transpose, x, -2, -3))
    assert.matches("bad argument #3 to 'transpose' %(number expected, got nil",
      failure(K.transpose, x, 2))
  end)
end)

-- op(a) * op(b), rows one behind the other
local function product(p)
  local out = {}
  for batch = 0, (p.batch or 1) - 1 do
    local a0, b0 = batch * (p.stride_a or p.m * p.k), batch * (p.stride_b or p.k * p.n)
    for i = 0, p.m - 1 do
      for j = 0, p.n - 1 do
        local sum = 0
        for x = 0, p.k - 1 do
          local at = p.transpose_a and x * (p.lda or p.m) + i or i * (p.lda or p.k) + x
          local bt = p.transpose_b and j * (p.ldb or p.k) + x or x * (p.ldb or p.n) + j
          sum = sum + p.a[a0 + at + 1] * p.b[b0 + bt + 1]
        end
        out[#out + 1] = sum
      end
    end
  end
  return out
end

describe("matmul", function()
  local g = elements.generator(32)
  local function check(t, m, n, k, opts, first)
    local a, b = values(g, t, m * k, -4, 4), values(g, t, k * n, -4, 4)
    local x <close> = elements.slice(t, a, first or 1)
    local y <close> = elements.slice(t, b, first or 1)
    opts = opts or {}
    local expected = product { a = a, b = b, m = m, n = n, k = k,
      transpose_a = opts.transpose_a, transpose_b = opts.transpose_b }
    for _, library in ipairs { true, false } do -- on a GPU cuBLAS, and our own
      opts.library = library
      local got = take(K.matmul(x, y, m, n, k, opts))
      for i, v in ipairs(expected) do
        if v ~= got[i] then
          error(("%s %dx%dx%d: element %d is %s, %s expected"):format(t, m, n, k, i,
            got[i], v), 2)
        end
      end
    end
  end

  it("multiplies every kind of type, of any size", function()
    for _, t in ipairs { "f32", "f64", "i32", "f16", "bf16" } do
      check(t, 1, 1, 1)
      check(t, 5, 7, 3, nil, 2)
      check(t, 70, 66, 20)
    end
    check("f32", 130, 140, 33)
    check("f16", 130, 136, 40)
    check("i64", 9, 10, 17)
  end)

  it("multiplies transposed matrices", function()
    for _, t in ipairs { "f32", "f16" } do
      for _, ta in ipairs { false, true } do
        for _, tb in ipairs { false, true } do
          check(t, 24, 40, 16, { transpose_a = ta, transpose_b = tb })
          check(t, 19, 21, 35, { transpose_a = ta, transpose_b = tb }, 3)
        end
      end
    end
  end)

  it("adds to what is there: alpha * a * b + beta * c", function()
    for _, t in ipairs { "f32", "f16", "i32" } do
      local a <close> = tp.buffer(t, { 1, 2, 3, 4 })
      local b <close> = tp.buffer(t, { 1, 0, 0, 1 })
      local c <close> = tp.buffer(t, { 10, 20, 30, 40 })
      assert.equal(c, K.matmul(a, b, 2, 2, 2, { out = c, alpha = 2, beta = 3 }))
      local got = c:read()
      for i, v in ipairs { 32, 64, 96, 128 } do assert.equal(v, got[i]) end
    end
  end)

  it("with beta 0 ignores what is there", function()
    local a <close> = tp.buffer("f32", { 2 })
    local c <close> = tp.buffer("f32", { 0 / 0 })
    K.matmul(a, a, 1, 1, 1, { out = c })
    assert.same({ 4.0 }, c:read())
  end)

  it("takes parts of matrices, and batches", function()
    for _, t in ipairs { "f32", "f16" } do
      local p = { m = 3, n = 4, k = 5, lda = 8, ldb = 9, batch = 3, stride_a = 24,
        stride_b = 45 }
      p.a, p.b = values(g, t, 72, -3, 3), values(g, t, 135, -3, 3)
      local a <close> = tp.buffer(t, p.a)
      local b <close> = tp.buffer(t, p.b)
      local c <close> = tp.zeros(t, 3 * 20)
      K.matmul(a, b, 3, 4, 5, { lda = 8, ldb = 9, ldc = 5, batch = 3, stride_a = 24,
        stride_b = 45, stride_c = 20, out = c })
      local got, packed = c:read(), {}
      for batch = 0, 2 do
        for i = 0, 2 do
          for j = 1, 4 do packed[#packed + 1] = got[batch * 20 + i * 5 + j] end
          assert.equal(0, got[batch * 20 + i * 5 + 5])
        end
      end
      assert.same(product(p), packed)
    end
    -- one matrix for all of the batch
    local one <close> = tp.buffer("i32", { 1, 2, 3, 4 })
    local many <close> = tp.buffer("i32", { 1, 0, 0, 1, 0, 1, 1, 0 })
    assert.same({ 1, 2, 3, 4, 2, 1, 4, 3 },
      take(K.matmul(one, many, 2, 2, 2, { batch = 2, stride_a = 0 })))
  end)

  it("gives results of a wider type", function()
    local a <close> = tp.buffer("f16", { 300, 300 })
    local c <close> = tp.zeros("f32", 1)
    K.matmul(a, a, 1, 1, 2, { out = c })
    assert.same({ 180000.0 }, c:read())
    local i <close> = tp.buffer("i8", { 100, 100 })
    local w <close> = tp.zeros("i32", 1)
    K.matmul(i, i, 1, 1, 2, { out = w })
    assert.same({ 20000 }, w:read())
    local narrow <close> = tp.zeros("i16", 1)
    assert.matches("field 'out': a buffer of int32 or of a wider type expected, got "
      .. "one of int16", failure(K.matmul, w, w, 1, 1, 1, { out = narrow }))
  end)

  it("of nothing is nothing, of no depth zeros", function()
    local none <close> = tp.zeros("f32", 0)
    local some <close> = tp.buffer("f32", { 1, 2, 3 })
    assert.same({}, take(K.matmul(none, some, 0, 3, 1)))
    assert.same({ 0.0, 0.0, 0.0, 0.0 }, take(K.matmul(none, none, 2, 2, 0)))
    assert.same({}, take(K.matmul(some, some, 1, 1, 1, { batch = 0 })))
  end)

  it("says what is wrong", function()
    local x <close> = tp.zeros("f32", 6)
    local d <close> = tp.zeros("f64", 6)
    for text, call in pairs {
      ["bad argument #2 to 'matmul' %(a buffer of float32 expected, got one of "
        .. "float64"] = { x, d, 2, 2, 3 },
      ["bad argument #1 to 'matmul' %(3 by 3 elements are 9, the buffer has 6"] =
        { x, x, 3, 2, 3 },
      ["bad argument #2 to 'matmul' %(3 by 3 elements are 9, the buffer has 6"] =
        { x, x, 2, 3, 3 },
      ["bad argument #1 to 'matmul' %(2 by 3 elements in rows of 4 are 7, the "
        .. "buffer has 6"] = { x, x, 2, 2, 3, { lda = 4 } },
      ["field 'lda': at least 3 expected, got 2"] = { x, x, 2, 2, 3, { lda = 2 } },
      ["field 'beta': of no use without 'out'"] = { x, x, 2, 2, 3, { beta = 1 } },
      ["matmul: a and the result overlap"] = { x, x, 2, 2, 3, { out = x } },
      ["field 'alpha': number expected, got string"] =
        { x, x, 2, 2, 3, { alpha = "1" } },
      ["bad argument #4 to 'matmul' %(1.5 is not a whole number"] =
        { x, x, 2, 1.5, 3 },
    } do
      assert.matches(text, failure(K.matmul, table.unpack(call)))
    end
  end)
end)

-- Convolution as its definition has it.
local function convolve(p)
  local out = {}
  local channels, filters = p.channels // p.groups, p.filters // p.groups
  local function size(axis)
    return (p.size[axis] + 2 * p.padding[axis]
      - p.dilation[axis] * (p.kernel[axis] - 1) - 1) // p.stride[axis] + 1
  end
  local function at(b, c, y, x)
    if y < 0 or x < 0 or y >= p.size[1] or x >= p.size[2] then return 0 end
    return p.x[((b * p.channels + c) * p.size[1] + y) * p.size[2] + x + 1]
  end
  for b = 0, p.batch - 1 do
    for f = 0, p.filters - 1 do
      for oy = 0, size(1) - 1 do
        for ox = 0, size(2) - 1 do
          local sum = p.bias and p.bias[f + 1] or 0
          for c = 0, channels - 1 do
            for ky = 0, p.kernel[1] - 1 do
              for kx = 0, p.kernel[2] - 1 do
                local wy = p.flip and p.kernel[1] - 1 - ky or ky
                local wx = p.flip and p.kernel[2] - 1 - kx or kx
                local w = p.w[((f * channels + c) * p.kernel[1] + wy) * p.kernel[2]
                  + wx + 1]
                sum = sum + w * at(b, f // filters * channels + c,
                  oy * p.stride[1] - p.padding[1] + ky * p.dilation[1],
                  ox * p.stride[2] - p.padding[2] + kx * p.dilation[2])
              end
            end
          end
          out[#out + 1] = sum
        end
      end
    end
  end
  return out, size(1), size(2)
end

describe("conv2d", function()
  local g = elements.generator(33)
  local function check(t, p)
    for _, field in ipairs { "batch", "channels", "filters", "groups" } do
      p[field] = p[field] or 1
    end
    for field, value in pairs { stride = 1, padding = 0, dilation = 1 } do
      p[field] = p[field] or { value, value }
    end
    p.x = values(g, t, p.batch * p.channels * p.size[1] * p.size[2], -4, 4)
    p.w = values(g, t, p.filters * (p.channels // p.groups) * p.kernel[1]
      * p.kernel[2], -4, 4)
    p.bias = p.biased and values(g, t, p.filters, -50, 50)
    local x <close> = elements.slice(t, p.x, 2)
    local w <close> = elements.slice(t, p.w, 3)
    local bias <close> = p.bias and tp.buffer(t, p.bias) or nil
    local expected, height, width = convolve(p)
    local out, h, wd = K.conv2d(x, w, { height = p.size[1], width = p.size[2],
      batch = p.batch, channels = p.channels, filters = p.filters, groups = p.groups,
      kernel = p.kernel, stride = p.stride, padding = p.padding,
      dilation = p.dilation, bias = bias, flip = p.flip })
    assert.same({ height, width }, { h, wd })
    local got = take(out)
    assert.equal(#expected, #got)
    for i, v in ipairs(expected) do assert.equal(v, got[i]) end
  end

  it("is the sum over channels and places", function()
    for _, t in ipairs { "f32", "f16", "i32" } do
      check(t, { size = { 5, 7 }, kernel = { 3, 2 } })
      check(t, { size = { 6, 9 }, kernel = { 3, 3 }, batch = 2, channels = 3,
        filters = 5, padding = { 1, 2 }, biased = true })
    end
  end)

  it("has strides, dilations, groups, and weights that run backwards", function()
    check("f32", { size = { 11, 12 }, kernel = { 3, 2 }, stride = { 2, 3 },
      dilation = { 2, 1 }, padding = { 2, 1 }, channels = 4, filters = 6, groups = 2,
      flip = true })
    check("f32", { size = { 8, 8 }, kernel = { 2, 2 }, channels = 3, filters = 3,
      groups = 3, stride = { 1, 2 } })
  end)

  it("conv1d is that of one line", function()
    local x <close> = tp.buffer("f32", { 1, 2, 3, 4, 5, 6 })
    local w <close> = tp.buffer("f32", { 1, 0, -1 })
    local out, length = K.conv1d(x, w)
    assert.equal(4, length)
    assert.same({ -2.0, -2.0, -2.0, -2.0 }, take(out))
    assert.same({ 2.0, 2.0, 2.0, 2.0 }, take((K.conv1d(x, w, { flip = true }))))
    assert.same({ -2.0, -2.0, -2.0 },
      take((K.conv1d(x, w, { padding = 1, stride = 2 }))))
    local two <close> = tp.buffer("f32", { 1, 1, 2, 2 })
    local sum = take((K.conv1d(x, two, { channels = 2, kernel = 2 })))
    assert.same({ 1 + 2 + 2 * (4 + 5) + 0.0, 2 + 3 + 2 * (5 + 6) + 0.0 }, sum)
  end)

  it("says what is wrong", function()
    local x <close> = tp.zeros("f32", 12)
    local w <close> = tp.zeros("f32", 4)
    for text, opts in pairs {
      ["field 'height': missing"] = { width = 4, kernel = 2 },
      ["field 'kernel': missing"] = { width = 4, height = 3 },
      ["bad argument #1 to 'conv2d' %(20 elements %(batch × channels × height × "
        .. "width%) expected, got 12"] = { width = 4, height = 5, kernel = 2 },
      ["bad argument #2 to 'conv2d' %(9 elements %(filters × channels of a group × "
        .. "kernel%) expected, got 4"] = { width = 4, height = 3, kernel = 3 },
      ["bad argument #1 to 'conv2d' %(46116860%d+ elements"] =
        { width = 2147483647, height = 2147483646, kernel = 2 },
      ["field 'kernel': a whole number or two expected"] =
        { width = 4, height = 3, kernel = "2" },
      ["field 'stride': 1 to 2147483647 expected, got 0"] =
        { width = 4, height = 3, kernel = 2, stride = 0 },
      ["field 'kernel': it spans 4, height with padding is 3"] =
        { width = 4, height = 3, kernel = 2, dilation = 3 },
      ["field 'groups': 1 channels can't be divided by 2"] =
        { width = 4, height = 3, kernel = 2, groups = 2 },
    } do
      assert.matches(text, failure(K.conv2d, x, w, opts))
    end
  end)
end)

describe("random numbers", function()
  -- Philox as the paper has it, with products of 32 bits in Lua's 64.
  local function philox(counter, seed)
    local c = { counter & 0xffffffff, counter >> 32, 0, 0 }
    local k0, k1 = seed & 0xffffffff, seed >> 32
    for _ = 1, 10 do
      local p0, p1 = 0xD2511F53 * c[1], 0xCD9E8D57 * c[3]
      c = { (p1 >> 32) ~ c[2] ~ k0, p1 & 0xffffffff, (p0 >> 32) ~ c[4] ~ k1,
        p0 & 0xffffffff }
      k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    end
    return c
  end

  it("are those of the paper's authors", function()
    -- a known answer of their library, philox4x32-10
    assert.same({ 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 }, philox(0, 0))
    local x <close> = tp.buffer("u64", 2)
    K.random_uniform(x, { seed = 0 })
    assert.same({ 0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c }, x:read())
  end)

  it("follow seed and place alone, whatever the slice", function()
    local seed, expected = 0x123456789abcdef, {}
    for i = 0, 4999 do
      expected[i + 1] = (philox(i // 4, seed)[i % 4 + 1] >> 8) * 2.0 ^ -24
    end
    local x <close> = tp.buffer("f32", 5000)
    assert.equal(x, K.random_uniform(x, { seed = seed }))
    assert.same(expected, x:read())
    local part <close> = x:slice(4, 1001)
    K.random_uniform(part, { seed = seed, offset = 2 })
    assert.same({ table.unpack(expected, 3, 103) }, part:read(1, 101))
    local far <close> = tp.buffer("f32", 6)
    K.random_uniform(far, { seed = seed, offset = (1 << 40) + 3 })
    local got = far:read()
    for i = 0, 5 do
      local at = (1 << 40) + 3 + i
      assert.equal((philox(at // 4, seed)[at % 4 + 1] >> 8) * 2.0 ^ -24, got[i + 1])
    end
  end)

  it("lie in the range, the upper end of floats left out", function()
    for _, t in ipairs { "f16", "bf16", "f32", "f64" } do
      local x <close> = tp.buffer(t, 4000)
      K.random_uniform(x, { seed = 5, low = -3, high = -1 })
      local sum = 0
      for _, v in ipairs(x:read()) do
        assert.is_true(v >= -3 and v < -1)
        sum = sum + v
      end
      assert.is_true(math.abs(sum / 4000 + 2) < 0.05)
    end
    local x <close> = tp.buffer("f32", 1000)
    local next_up = numbers.from_bits32(numbers.bits32(1.0) + 1)
    K.random_uniform(x, { seed = 1, low = 1, high = next_up })
    for _, v in ipairs(x:read()) do assert.equal(1.0, v) end
  end)

  it("of integers include both ends", function()
    local x <close> = tp.buffer("i32", 6000)
    K.random_uniform(x, { seed = 2, low = -2, high = 3 })
    local seen = {}
    for _, v in ipairs(x:read()) do seen[v] = (seen[v] or 0) + 1 end
    for v = -2, 3 do assert.is_true(math.abs(seen[v] - 1000) < 150) end
    assert.is_nil(seen[4] or seen[-3])
    local b <close> = tp.buffer("u8", 5000)
    K.random_uniform(b, { seed = 3 })
    local low, high = 255, 0
    for _, v in ipairs(b:read()) do low, high = math.min(low, v), math.max(high, v) end
    assert.same({ 0, 255 }, { low, high })
  end)

  it("are normal: mean, deviation, share within one", function()
    for _, t in ipairs { "f32", "f64" } do
      local n = 20000
      local x <close> = tp.buffer(t, n)
      assert.equal(x, K.random_normal(x, { seed = 7, mean = 10, deviation = 2 }))
      local sum, squares, within = 0, 0, 0
      for _, v in ipairs(x:read()) do
        sum, squares = sum + v - 10, squares + (v - 10) ^ 2
        within = within + (math.abs(v - 10) < 2 and 1 or 0)
      end
      assert.is_true(math.abs(sum / n) < 0.06)
      assert.is_true(math.abs(squares / n - 4) < 0.2)
      assert.is_true(math.abs(within / n - 0.6827) < 0.015)
      local part <close> = tp.buffer(t, 7)
      K.random_normal(part, { seed = 7, offset = 1001, mean = 10, deviation = 2 })
      assert.same(x:read(1002, 7), part:read())
    end
    local x <close> = tp.buffer("f32", 2)
    K.random_normal(x, { seed = 7 })
    local w = philox(0, 7)
    local r = math.sqrt(-2 * math.log(1 - (w[1] >> 8) * 2.0 ^ -24))
    local angle = 2 * math.pi * (w[2] >> 8) * 2.0 ^ -24
    numbers.assert_near({ r * math.cos(angle), r * math.sin(angle) }, x:read(), 2e-6)
  end)

  it("without a seed follow math.randomseed", function()
    local function draw()
      local x <close> = tp.buffer("u64", 1)
      return K.random_uniform(x):read()[1]
    end
    math.randomseed(42)
    local a, b = draw(), draw()
    math.randomseed(42)
    assert.same({ a, b }, { draw(), draw() })
    assert.are_not.equal(a, b)
  end)

  it("say what is wrong", function()
    local f <close> = tp.zeros("f32", 2)
    local i <close> = tp.zeros("i8", 2)
    for text, call in pairs {
      ["field 'high': more than 1 expected, got 1"] = { f, { low = 1 } },
      ["field 'high': 300 does not fit int8 %(%-128 to 127%)"] = { i, { high = 300 } },
      ["field 'high': at least 5 expected, got 4"] = { i, { low = 5, high = 4 } },
      ["field 'low': 0.5 is not a whole number"] = { i, { low = 0.5 } },
      ["field 'offset': must not be negative, got %-1"] = { f, { offset = -1 } },
      ["field 'seed': 1.5 is not a whole number"] = { f, { seed = 1.5 } },
      ["unknown option 'mean' %(there are high, low, offset, seed%)"] =
        { f, { mean = 1 } },
    } do
      assert.matches(text, failure(K.random_uniform, table.unpack(call)))
    end
    assert.matches("a buffer of float16 or bfloat16 or float32 or float64 expected, "
      .. "got one of int8", failure(K.random_normal, i))
  end)
end)
