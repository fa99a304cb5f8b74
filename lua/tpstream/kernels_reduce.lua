-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.kernels: sum, min, max, argmin, argmax, dot, norm.
local lib, K = ...
local types = lib.types

local THREADS, TILE_BYTES = 256, 256 * 4 * 16
-- Of a launch at the most. A constant, since the order of sums follows from it:
-- four on each multiprocessor of the largest GPUs.
local BLOCKS = 528
-- Bytes of a block's partial result.
local PARTIAL = 24

local function sum_type(t)
  if t.float then return t.size == 8 and t or types.f32 end
  return t.unsigned and types.u64 or types.i64
end

local function norm_type(t)
  return sum_type(t) == types.f32 and types.f32 or types.f64
end

-- Queues operation `op` on x (and y), with a result of type `result`, or of x's own
-- where the caller's `out` has that.
local function reduce(op, t, n, x, y, result, out)
  local kernel = lib.kernel("reduce", "reduce", t.short, op)
  local as_element = out:dtype() ~= result.name
  local blocks = math.max(1, math.min(BLOCKS, lib.ceil(n, TILE_BYTES // t.size)))
  local shape = { grid = blocks, block = THREADS }
  if blocks == 1 then
    kernel:launch(shape, x, y, n, nil, out, as_element)
    return out
  end
  local partial <close> = lib.scratch(blocks * PARTIAL)
  kernel:launch(shape, x, y, n, partial, out, as_element)
  local rest = lib.kernel("reduce", "reduce_rest", t.short, op)
  rest:launch({ grid = 1, block = THREADS }, partial, blocks, x, out, as_element)
  return out
end

-- The result must not lie in what is read.
local function check_out(name, out, x, x_name)
  lib.check_overlap(name, x, x_name, out, "the result", true)
end

function K.sum(x, out)
  local t, n = lib.buffer("sum", 1, x)
  local result = sum_type(t)
  out = lib.output("sum", 2, out, 1, result, t)
  check_out("sum", out, x, "x")
  return reduce("sum", t, n, x, nil, result, out)
end

function K.dot(x, y, out)
  local t, n = lib.buffer("dot", 1, x)
  lib.expect("dot", 2, y, n, t)
  local result = sum_type(t)
  out = lib.output("dot", 3, out, 1, result, t)
  check_out("dot", out, x, "x")
  check_out("dot", out, y, "y")
  return reduce("dot", t, n, x, y, result, out)
end

local NORMS = { [1] = "norm1", [2] = "norm2", [math.huge] = "norm_inf" }

function K.norm(x, p, out)
  local t, n = lib.buffer("norm", 1, x)
  if p == nil then p = 2 end
  local op = NORMS[p]
  if not op then
    lib.bad("norm", 2, "1, 2 or math.huge expected, got %s", tostring(p))
  end
  local result = norm_type(t)
  out = lib.output("norm", 3, out, 1, result, t.float and t or result)
  check_out("norm", out, x, "x")
  return reduce(op, t, n, x, nil, result, out)
end

local function extreme(name, result_of)
  K[name] = function(x, out)
    local t, n = lib.buffer(name, 1, x)
    if n == 0 then lib.bad(name, 1, "the buffer has no elements") end
    local result = result_of(t)
    out = lib.output(name, 2, out, 1, result)
    check_out(name, out, x, "x")
    return reduce(name, t, n, x, nil, result, out)
  end
end
extreme("min", function(t) return t end)
extreme("max", function(t) return t end)
extreme("argmin", function() return types.i64 end)
extreme("argmax", function() return types.i64 end)
