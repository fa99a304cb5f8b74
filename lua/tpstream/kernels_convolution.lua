-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels: conv1d, conv2d.
local lib, K = ...

local FILTERS = 4 -- of a thread

local COMMON = {
  batch = "integer", channels = "integer", filters = "integer", groups = "integer",
  bias = "buffer", flip = "boolean", out = "buffer",
}
local function with(more)
  for key, value in pairs(COMMON) do more[key] = value end
  return more
end
-- In two dimensions a number, or {y, x}.
local LINE = with { length = "integer", kernel = "integer", stride = "integer",
  padding = "integer", dilation = "integer" }
local PLANE = with { height = "integer", width = "integer", kernel = "pair",
  stride = "pair", padding = "pair", dilation = "pair" }

local function bad_field(name, field, ...)
  lib.bad(name, 3, "field '%s': %s", field, string.format(...))
end

-- Beyond what any buffer has, sums and products could wrap around.
local MOST = 0x7fffffff

local function at_least(name, field, value, least)
  if value < least or value > MOST then
    bad_field(name, field, "%d to %d expected, got %d", least, MOST, value)
  end
  return value
end

-- Splits the options that may be pairs: {kernel = {3, 5}} → kernel_y, kernel_x.
local function split(name, opts)
  if type(opts) ~= "table" then return opts, {} end
  local all, plain, pairs_of = {}, {}, {}
  for key, value in pairs(opts) do all[key] = value end
  for key in pairs(PLANE) do all[key] = opts[key] end
  for key, value in pairs(all) do
    if PLANE[key] == "pair" then
      local y, x = value, value
      if type(value) == "table" then y, x = value[1], value[2] end
      y = type(y) == "number" and math.tointeger(y)
      x = type(x) == "number" and math.tointeger(x)
      if not y or not x or type(value) == "table" and #value ~= 2 then
        bad_field(name, key, "a whole number or two expected")
      end
      pairs_of[key] = { y, x }
    else
      plain[key] = value
    end
  end
  return plain, pairs_of
end

local function out_size(name, field, size, kernel, stride, padding, dilation)
  local span = dilation * (kernel - 1) + 1
  local room = size + 2 * padding - span
  if room < 0 then
    bad_field(name, "kernel", "it spans %d, %s with padding is %d", span, field,
      size + 2 * padding)
  end
  return room // stride + 1
end

-- `wanted`: factors, whose product may be beyond 64 bits.
local function check_count(name, argument, got, what, ...)
  local wanted = 1.0
  for _, factor in ipairs { ... } do wanted = wanted * factor end
  if got ~= wanted then
    lib.bad(name, argument, "%.0f elements (%s) expected, got %d", wanted, what, got)
  end
end

-- s: what kernels/convolution.cu calls the shape, two of each at an axis.
local function check_shape(name, s, opts, fields)
  for _, field in ipairs { "batch", "channels", "filters", "groups" } do
    s[field] = at_least(name, field, opts[field] or 1, field == "batch" and 0 or 1)
  end
  for _, field in ipairs { "channels", "filters" } do
    if s[field] % s.groups ~= 0 then
      bad_field(name, "groups", "%d %s can't be divided by %d", s[field], field,
        s.groups)
    end
  end
  s.out = {}
  for axis = 1, 2 do
    at_least(name, fields[axis], s.size[axis], 0)
    at_least(name, "kernel", s.kernel[axis], 1)
    at_least(name, "stride", s.stride[axis], 1)
    at_least(name, "padding", s.padding[axis], 0)
    at_least(name, "dilation", s.dilation[axis], 1)
  end
end

local function check_buffers(name, t, x, weight, s, opts, fields)
  check_count(name, 1, x:count(), "batch × channels × " .. fields.what, s.batch,
    s.channels, s.size[1], s.size[2])
  lib.expect(name, 2, weight, nil, t)
  check_count(name, 2, weight:count(), "filters × channels of a group × kernel",
    s.filters, s.channels // s.groups, s.kernel[1], s.kernel[2])
  for axis = 1, 2 do
    s.out[axis] = out_size(name, fields[axis], s.size[axis], s.kernel[axis],
      s.stride[axis], s.padding[axis], s.dilation[axis])
  end
  local count = lib.count(name, 1.0 * s.batch * s.filters * s.out[1] * s.out[2])
  local out = lib.output(name, 3, opts.out, count, t)
  if opts.bias then lib.expect(name, 3, opts.bias, s.filters, t) end
  for what, buffer in pairs { x = x, weight = weight, bias = opts.bias } do
    lib.check_overlap(name, buffer, what, out, "the result", true)
  end
  return out
end

local function convolve(name, t, x, weight, s, opts, fields)
  check_shape(name, s, opts, fields)
  local out = check_buffers(name, t, x, weight, s, opts, fields)
  if out:count() == 0 then return out, s.out end
  local shape = string.pack("<i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8", s.batch, s.channels,
    s.size[1], s.size[2], s.filters, s.kernel[1], s.kernel[2], s.stride[1],
    s.stride[2], s.padding[1], s.padding[2], s.dilation[1], s.dilation[2],
    s.groups, s.out[1], s.out[2])
  local sets = lib.ceil(s.filters // s.groups, FILTERS)
  lib.kernel("convolution", "convolve", t.short):forall(
    s.batch * s.groups * sets * s.out[1] * s.out[2], x, weight, opts.bias, out,
    shape, opts.flip or false)
  return out, s.out
end

-- conv2d(x, weight, opts) → out, its height, its width
function K.conv2d(x, weight, opts)
  local t = lib.buffer("conv2d", 1, x)
  lib.buffer("conv2d", 2, weight)
  local plain, pair = split("conv2d", opts)
  plain = lib.options("conv2d", 3, plain, PLANE)
  for _, field in ipairs { "height", "width" } do
    if not plain[field] then bad_field("conv2d", field, "missing") end
  end
  if not pair.kernel then bad_field("conv2d", "kernel", "missing") end
  local out, size = convolve("conv2d", t, x, weight, {
    size = { plain.height, plain.width }, kernel = pair.kernel,
    stride = pair.stride or { 1, 1 }, padding = pair.padding or { 0, 0 },
    dilation = pair.dilation or { 1, 1 },
  }, plain, { "height", "width", what = "height × width" })
  return out, size[1], size[2]
end

-- conv1d(x, weight, opts) → out, its length
function K.conv1d(x, weight, opts)
  local t, n = lib.buffer("conv1d", 1, x)
  local _, m = lib.buffer("conv1d", 2, weight)
  opts = lib.options("conv1d", 3, opts, LINE)
  local channels, filters = opts.channels or 1, opts.filters or 1
  local lines = (opts.batch or 1) * channels
  local rows = filters * (channels // math.max(1, opts.groups or 1))
  local length = opts.length or lines > 0 and n // lines or 0
  local kernel = opts.kernel or rows > 0 and m // rows or 0
  local out, size = convolve("conv1d", t, x, weight, {
    size = { 1, length }, kernel = { 1, kernel }, stride = { 1, opts.stride or 1 },
    padding = { 0, opts.padding or 0 }, dilation = { 1, opts.dilation or 1 },
  }, opts, { "length", "length", what = "length" })
  return out, size[2]
end
