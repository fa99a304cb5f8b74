-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels: fill, iota, axpy.
local lib, K = ...

local THREADS, EACH = 256, 8

local function launch(kernel, t, n, ...)
  local blocks = lib.blocks(lib.ceil(n, THREADS * (16 // t.size)), EACH)
  kernel:launch({ grid = blocks, block = THREADS }, ...)
end

function K.fill(x, value)
  lib.buffer("fill", 1, x)
  local fill = x.fill
  fill(x, value)
  return x
end

-- Its arguments: those of 64 bits that integers are counted in, or doubles.
local function count_argument(argument, value, otherwise, t)
  if value == nil then return otherwise end
  if type(value) ~= "number" then
    lib.bad("iota", argument, "number expected, got %s", lib.type_name(value))
  elseif not t.float and not math.tointeger(value) then
    lib.bad("iota", argument, "%s is not a whole number", value)
  end
  return t.float and value or math.tointeger(value)
end

function K.iota(x, first, step)
  local t, n = lib.buffer("iota", 1, x)
  first = count_argument(2, first, 0, t)
  step = count_argument(3, step, 1, t)
  if n > 0 then
    launch(lib.kernel("vector", "iota", t.short), t, n, x, first, step, n)
  end
  return x
end

function K.axpy(a, x, y)
  local kind = lib.type_name(a) -- a graph's parameter will do
  if kind ~= "number" and kind ~= "tpstream.Parameter" then
    lib.bad("axpy", 1, "number expected, got %s", kind)
  end
  local t, n = lib.buffer("axpy", 2, x)
  lib.expect("axpy", 3, y, n, t)
  lib.check_overlap("axpy", x, "x", y, "y")
  if n > 0 then
    launch(lib.kernel("vector", "axpy", t.short), t, n, a, x, y, n)
  end
  return y
end
