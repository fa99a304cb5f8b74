-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Random programs over two devices: copies, kernels on memory of either, graphs whose
-- branches are on both, streams and buffers that are closed in use. Each operation
-- waits for those it conflicts with, in one of the ways there are, and what comes
-- out is compared with the same in order.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local pair = require "spec.support.pair"
local program = require "spec.support.program"

local N = 64
local SOURCE = [=[
extern "C" __global__ void mix(int *y, const int *x, int a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] * 3 + x[i] * a;
}
]=]

local function wrap(x)
  return (x + 0x80000000 & 0xffffffff) - 0x80000000
end

-- What there is while a program goes on: `buffers`, the `values` that they are to
-- have, `last`: who wrote each and who has read it since, as {stream, event}.
local Run = {}
Run.__index = Run

function Run:list(n)
  local t = {}
  for i = 1, n do t[i] = self.int(-100, 100) end
  return t
end

function Run:some_device() return self.devices[self.int(1, #self.devices)] end
function Run:some_stream() return self.streams[self.int(1, #self.streams)] end

function Run:renew(i)
  local make = ({ tp.pinned, tp.buffer, tp.buffer })[self.int(1, 3)]
  local values = self:list(N)
  if self.buffers[i] then self.buffers[i]:close() end
  self.buffers[i] = make("i32", values, { device = self:some_device() })
  self.values[i] = values
  self.last[i] = { readers = {} }
end

-- Later work on `s` comes after that access.
function Run:order(s, access)
  if not access or access.stream == s then return end
  local how = tostring(access.stream):find "closed" and 1 or self.int(1, 3)
  if how == 1 then s:wait_event(access.event)
  elseif how == 2 then s:wait_stream(access.stream)
  else tp.barrier(s, access.stream) end
end

function Run:before(s, reads, writes)
  for i in pairs(reads) do self:order(s, self.last[i].writer) end
  for i in pairs(writes) do
    self:order(s, self.last[i].writer)
    for _, access in ipairs(self.last[i].readers) do self:order(s, access) end
  end
end

function Run:after(s, reads, writes)
  local access = { stream = s, event = s:record_event() }
  for i in pairs(reads) do table.insert(self.last[i].readers, access) end
  for i in pairs(writes) do
    self.last[i] = { writer = access, readers = {} }
  end
end

-- Queues one on `s`, notes which buffers it reads and writes, and does the same to
-- the values. `begin` is called in between.
function Run:operation(s, reads, writes, begin)
  local count = #self.buffers
  local to, from, what = self.int(1, count), self.int(1, count - 1), self.int(1, 3)
  if from >= to then from = from + 1 end
  local x, y = self.values[from], self.values[to]
  writes[to] = true
  if what < 3 then reads[from] = true end
  begin()
  if what == 1 then
    self.buffers[from]:copy_to(self.buffers[to], { stream = s })
    table.move(x, 1, N, 1, y)
  elseif what == 2 then
    local a = self.int(-9, 9)
    self.mix:launch({ grid = 2, block = 32, stream = s }, self.buffers[to],
      self.buffers[from], a, N)
    for i = 1, N do y[i] = wrap(y[i] * 3 + x[i] * a) end
  else
    local first, n = self.int(1, N // 2), self.int(0, N // 2)
    local part = self:list(n)
    local source <close> = tp.pinned("i32", part)
    source:copy_to(self.buffers[to], { at = first, stream = s })
    table.move(part, 1, n, first, y)
  end
end

local function nothing() end

-- A chain of operations, each on the stream that captures or on a branch.
function Run:graph(s)
  local reads, writes, branches = {}, {}, {}
  for i = 1, self.int(0, 2) do
    branches[i] = tp.Stream { device = self:some_device() }
  end
  local home = tp.Stream { device = s:device() }
  local g <close> = tp.capture(home, function()
    for _, b in ipairs(branches) do b:wait_stream(home) end
    local before = home
    for _ = 1, self.int(1, 5) do
      local on = branches[self.int(1, 3)] or home
      if on ~= before then on:wait_stream(before) end
      self:operation(on, reads, writes, nothing)
      before = on
    end
    home:wait_stream(table.unpack(branches))
  end)
  self:before(s, reads, writes)
  g:launch(s)
  self:after(s, reads, writes)
  for _, b in ipairs(branches) do b:close() end
  home:close()
end

function Run:step()
  local s, what = self:some_stream(), self.int(1, 20)
  if what == 1 then return self:graph(s)
  elseif what == 2 then return self:renew(self.int(1, #self.buffers))
  elseif what == 3 then
    local i = self.int(1, #self.streams)
    self.streams[i]:close()
    self.streams[i] = tp.Stream { device = self:some_device() }
    return
  end
  local reads, writes = {}, {}
  self:operation(s, reads, writes, function() self:before(s, reads, writes) end)
  self:after(s, reads, writes)
end

describe("a random program on two devices", function()
  for seed = 1, 10 do
    it("does what it does in order, number " .. seed, function()
      local here, there = pair.reachable()
      local r = setmetatable({
        int = numbers.generator(seed).int, devices = { here, there },
        buffers = {}, values = {}, last = {}, streams = {},
        mix = program("peer_random", SOURCE):kernel "mix",
      }, Run)
      for i = 1, 5 do r.streams[i] = tp.Stream { device = r:some_device() } end
      for i = 1, 6 do r:renew(i) end
      for _ = 1, 200 do r:step() end
      here:synchronize()
      there:synchronize()
      for i, b in ipairs(r.buffers) do
        assert.same(r.values[i], b:read())
        b:close()
      end
      for _, s in ipairs(r.streams) do s:close() end
    end)
  end
end)
