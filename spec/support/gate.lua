-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Kernels that hold a stream up until the host says go, so that a spec decides
-- what has run and what has not, on every device, without timing anything.
local tp = require "tpstream"
local program = require "spec.support.program"

local SOURCE = [=[
// Waits until *flag is not 0 (some seconds at the most).
extern "C" __global__ void gate(const volatile int *flag) {
  for (int i = 0; i < 4000000 && *flag == 0; i++) __nanosleep(2000);
}
extern "C" __global__ void put(int *p, int i, int v) { p[i] = v; }
extern "C" __global__ void add(int *p, int i, int v) { p[i] += v; }
extern "C" __global__ void twice(int *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= 2;
}
extern "C" __global__ void copy(const int *from, int *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
// Appends v to list, whose element 0 counts.
extern "C" __global__ void append(int *list, int v) {
  list[1 + atomicAdd(list, 1)] = v;
}
extern "C" __global__ void empty() {}
]=]

local gate = {}
gate.__index = gate
gate.one = { grid = 1, block = 1 }

local module

-- Compiles once in a process. The module stays; specs count handles as they
-- were when a test began.
function gate.kernel(name)
  module = module or program("gate", SOURCE)
  return module:kernel(name)
end

-- A closed gate for streams of `device`, the current one by default. Use:
--   local g <close> = gate.new(); g:hold(stream); …; g:open()
-- Leaving its block opens it, so that no stream is left waiting.
function gate.new(device)
  device = device or tp.current_device()
  local self = setmetatable({ held = {}, device = device }, gate)
  self.flag = tp.pinned("i32", { os.getenv "TPS_OPEN_GATES" and 1 or 0 },
    { device = device })
  self.kernel = gate.kernel "gate"
  return self
end

function gate:hold(stream)
  tp.with_stream(stream, self.kernel.launch, self.kernel, gate.one, self.flag)
  self.held[#self.held + 1] = stream
end

function gate:open() self.flag[1] = 1 end

gate.__close = function(self)
  self:open()
  self.device:synchronize()
  self.kernel:close()
  self.flag:close()
end

-- Launches kernel `name` with one thread on `stream`.
function gate.run(stream, name, ...)
  local kernel <close> = gate.kernel(name)
  tp.with_stream(stream, kernel.launch, kernel, gate.one, ...)
end

return gate
