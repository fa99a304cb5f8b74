-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The race check against a reference: random programs of three warps, of plain
-- accesses, of asynchronous copies and waits for their groups, and of barriers of all
-- threads, of some warps, of some lanes. The reference keeps a vector clock for each
-- thread, and every access there was; a copy is nobody's until it is waited for.
-- What it calls right must not be reported; of what it calls wrong a few may be
-- missed, since the check remembers two reads of a place (docs/checking.md).
--
-- TPS_RACE_PROGRAMS=5000 TPS_RACE_SEED=8: more of them, others.
local tp = require "tpstream"
local checking = require "spec.support.checking"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"

local THREADS, CELLS, STEPS = 96, 12, 10
local PROGRAMS = tonumber(os.getenv "TPS_RACE_PROGRAMS") or 60

local SOURCE = [=[
// Of each step: what it is (0 accesses, 1 a barrier, 2 one of some warps, 3 one of
// some lanes of a warp, 4 the end of a group of copies, 5 a wait for all but the latest
// group), and two numbers. Of each step and thread: 1 and up a cell to be read, -1 and
// down one to be written, 101 and up one to be copied to.
extern "C" __global__ void play(int *o, const int *steps, const int *accesses,
                                int count) {
  __shared__ int s[16];
  int t = threadIdx.x, warp = t / 32, lane = t % 32, sum = 0;
  unsigned base = (unsigned)__cvta_generic_to_shared(s);
  for (int k = 0; k < count; k++) {
    int kind = steps[3 * k], a = steps[3 * k + 1], b = steps[3 * k + 2];
    if (kind == 0) {
      int c = accesses[k * blockDim.x + t], v;
      if (c > 100) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                     :: "r"(base + 4 * c - 404), "l"(steps) : "memory");
      } else if (c > 0) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(base + 4 * c - 4));
        sum += v;
      } else if (c < 0) {
        asm volatile("st.shared.u32 [%0], %1;"
                     :: "r"(base - 4 * c - 4), "r"(k * 1000 + t + 100));
      }
    } else if (kind == 1) {
      __syncthreads();
    } else if (kind == 2) {
      if (a >> warp & 1)
        asm volatile("bar.sync %0, %1;" :: "r"(1 + k), "r"(32 * __popc(a))
                     : "memory");
    } else if (kind == 3) {
      if (warp == b && (unsigned)a >> lane & 1) __syncwarp(a);
    } else if (kind == 4) {
      if (a >> warp & 1) asm volatile("cp.async.commit_group;" ::: "memory");
    } else if (a >> warp & 1) {
      if (b) asm volatile("cp.async.wait_group 1;" ::: "memory");
      else asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
  }
  o[t] = sum;
}
]=]

-- Random steps, as the kernel takes them. Few threads write, more read, so that some
-- programs are right.
local function make(g, copies)
  local function int(lo, hi) return g.ints(1, lo, hi)[1] end
  local steps, accesses = {}, {}
  local cells, one_warp = int(1, CELLS), int(1, 2) == 1 and int(0, 2)
  for i = 1, STEPS * THREADS do accesses[i] = 0 end
  local function touch(k, count, sign, more)
    for _ = 1, count do
      local t = one_warp and 32 * one_warp + int(0, 31) or int(0, THREADS - 1)
      accesses[k * THREADS + t + 1] = sign * int(1, cells) + (more or 0)
    end
  end
  for k = 0, STEPS - 1 do
    local kind, a, b = 0, 0, one_warp or int(0, 2)
    if k % 2 == 1 then kind = copies and int(1, 5) or int(1, 3) end
    if kind == 0 then
      if copies and int(1, 3) == 1 then
        for _ = 1, int(1, 2) do touch(k, 1, 1, 100) end
      elseif int(1, 3) == 1 then touch(k, 1, -1) else touch(k, int(1, 3), 1) end
    elseif kind == 2 then
      a = ({ 3, 5, 6, 7 })[int(1, 4)]
    elseif kind >= 4 then
      a, b = int(1, 3) == 1 and int(1, 7) or 7, int(0, 1)
    elseif kind == 3 then
      a = int(0, 1) == 1 and 0xffffffff
        or 1 | int(0, 65535) << 16 | int(0, 65535)
    end
    steps[3 * k + 1], steps[3 * k + 2], steps[3 * k + 3] = kind, a, b
  end
  return steps, accesses
end

-- The threads that meet at a step, or nil.
local function who(kind, a, b)
  local list = {}
  for t = 0, THREADS - 1 do
    local warp, lane = t // 32, t % 32
    if kind == 1 or (kind == 2 and a >> warp & 1 == 1)
      or (kind == 3 and warp == b and a >> lane & 1 == 1) then
      list[#list + 1] = t
    end
  end
  return list
end

-- The set of cells with a race.
local function judge(steps, accesses)
  local clock, seen, racy = {}, {}, {}
  local flying, groups = {}, {} -- copies; groups that each thread has ended
  for t = 0, THREADS - 1 do
    clock[t] = {}
    for u = 0, THREADS - 1 do clock[t][u] = u == t and 1 or 0 end
    groups[t] = 0
  end
  for k = 0, STEPS - 1 do
    local kind, a, b = steps[3 * k + 1], steps[3 * k + 2], steps[3 * k + 3]
    if kind == 0 then
      for t = 0, THREADS - 1 do
        local c = accesses[k * THREADS + t + 1]
        if c ~= 0 then
          local copy = c > 100
          local cell, write = copy and c - 100 or math.abs(c), c < 0 or copy
          seen[cell] = seen[cell] or {}
          for _, x in ipairs(seen[cell]) do
            if (write or x.write) and (x.group
              or x.time > clock[t][x.thread]) then
              racy[cell] = true
            end
          end
          local x = { thread = t, time = clock[t][t], write = write,
            group = copy and groups[t] or nil }
          table.insert(seen[cell], x)
          if copy then flying[#flying + 1] = x end
        end
      end
    elseif kind >= 4 then
      for t = 0, THREADS - 1 do
        local does = a >> t // 32 & 1 == 1
        if does and kind == 4 then groups[t] = groups[t] + 1 end
        for _, x in ipairs(does and kind == 5 and flying or {}) do
          if x.thread == t and x.group and x.group + b < groups[t] then
            x.group, x.time = nil, clock[t][t]
          end
        end
      end
    else
      local all = {}
      local list = who(kind, a, b)
      for u = 0, THREADS - 1 do
        all[u] = 0
        for _, t in ipairs(list) do all[u] = math.max(all[u], clock[t][u]) end
      end
      for _, t in ipairs(list) do
        clock[t] = table.move(all, 0, THREADS - 1, 0, {})
        clock[t][t] = clock[t][t] + 1
      end
    end
  end
  return racy
end

describe("random programs", function()
  local module
  require "spec.support.simulated"(setup, teardown)
  setup(function() module = program("check_race_fuzz", SOURCE) end)
  teardown(function() module:close() end)

  local function compare(copies)
    local g = numbers.generator(tonumber(os.getenv "TPS_RACE_SEED") or 7)
    local right, wrong, missed = 0, 0, 0
    local o <close> = tp.zeros("i32", THREADS)
    for n = 1, PROGRAMS do
      local steps, accesses = make(g, copies)
      local racy = judge(steps, accesses)
      for k = 1, #steps do
        if steps[k] > 0x7fffffff then steps[k] = steps[k] - 0x100000000 end
      end
      local a <close> = tp.buffer("i32", steps)
      local b <close> = tp.buffer("i32", accesses)
      local reports = checking.found({ "race" }, function()
        module:kernel "play":launch({ grid = 1, block = THREADS }, o, a, b, STEPS)
      end)
      for _, r in ipairs(reports) do
        local cell = tonumber(r.text:match "Address 0x(%x+)", 16) // 4 + 1
        if not racy[cell] then
          error(("program %d: no race of cell %d\n%s"):format(n, cell, r.text))
        end
      end
      if next(racy) and #reports == 0 then missed = missed + 1 end
      if next(racy) then wrong = wrong + 1 else right = right + 1 end
    end
    assert.is_true(right >= PROGRAMS // 10 and wrong >= PROGRAMS // 10
      and missed <= 1 + wrong // 20,
      ("%d right, %d wrong, %d missed"):format(right, wrong, missed))
  end

  it("race where the reference says so, and nowhere else",
    function() compare(false) end)

  it("with copies race where the reference says so, and nowhere else",
    function() compare(true) end)
end)
