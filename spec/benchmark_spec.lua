-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Seeing and checking: tp.benchmark.
local tp = require "tpstream"
local gate = require "spec.support.gate"

local function check(t)
  assert.is_true(t.min >= 0)
  assert.is_true(t.min <= t.median and t.median <= t.max)
  assert.is_true(t.min <= t.mean and t.mean <= t.max)
  assert.equal("integer", math.type(t.count))
end

describe("tp.benchmark", function()
  it("gives statistics of the host's and of the device's time", function()
    local r = tp.benchmark(function()
      gate.run(tp.current_stream(), "empty")
    end, { count = 7 })
    check(r.cpu)
    check(r.gpu)
    assert.equal(7, r.cpu.count)
    assert.equal(7, r.gpu.count)
  end)

  it("runs warm-ups that do not count", function()
    local n = 0
    local function fn() n = n + 1 end
    assert.equal(5, tp.benchmark(fn, { count = 5, warmup = 3 }).cpu.count)
    assert.equal(8, n)
    tp.benchmark(fn, { count = 2, warmup = 0 })
    assert.equal(10, n)
    tp.benchmark(fn, { count = 1 })
    assert.equal(12, n)
  end)

  it("goes on for a time when no count is given", function()
    local r = tp.benchmark(function() end, { min_time = 5 })
    assert.is_true(r.cpu.count >= 3)
    local sum = r.gpu.mean * r.gpu.count + r.cpu.mean * r.cpu.count
    assert.is_true(sum > 0)
    assert.equal(3, tp.benchmark(function() end, { min_time = 0 }).cpu.count)
  end)

  it("measures what is queued on the stream given, which is current",
    function()
      local s <close> = tp.Stream()
      local seen = {}
      tp.benchmark(function() seen[tp.current_stream()] = true end,
        { stream = s, count = 2 })
      assert.same({ [s] = true }, seen)
      assert.equal(tp.default_stream(), tp.current_stream())
      tp.with_stream(s, tp.benchmark, function()
        seen[tp.current_stream()] = "again"
      end, { count = 2 })
      assert.same({ [s] = "again" }, seen)
    end)

  it("waits for each run before the next", function()
    local s <close> = tp.Stream()
    local e <close> = tp.Event()
    tp.benchmark(function()
      assert.is_true(e:query())
      gate.run(s, "empty")
      e:record(s)
    end, { stream = s, count = 20, warmup = 0 })
  end)

  it("the device's time contains the work", function()
    local s <close> = tp.Stream()
    local r = tp.benchmark(function()
      local g = gate.new()
      g:hold(s)
      local begin = os.clock()
      while os.clock() - begin < 0.01 do end
      g:open()
      s:synchronize()
      g.kernel:close()
      g.flag:close()
    end, { stream = s, count = 2, warmup = 0 })
    assert.is_true(r.cpu.min >= 5)
    -- with a seed nothing starts before the host waits
    if not os.getenv "TPSTREAM_SIM_SEED" then
      assert.is_true(r.gpu.min >= 5)
    end
  end)

  it("lets an error out unchanged and leaves nothing behind", function()
    local object = {}
    local s <close> = tp.Stream()
    assert.is_false(pcall(tp.benchmark, error, { stream = s }))
    local ok, raised = pcall(tp.benchmark, function() error(object) end,
      { stream = s })
    assert.is_false(ok)
    assert.is_true(rawequal(object, raised))
    assert.equal(tp.default_stream(), tp.current_stream())
  end)

  it("refuses what makes no sense, with the caller's line", function()
    local function message(...)
      local arguments = table.pack(...)
      local ok, text = pcall(function()
        tp.benchmark(table.unpack(arguments, 1, arguments.n))
      end)
      assert.is_false(ok)
      assert.matches("^spec/benchmark_spec.lua:%d+: ", text)
      return text
    end
    local function none() end
    assert.matches("bad argument #1 to 'benchmark' %(function expected, got nil",
      message())
    assert.matches("bad argument #2", message(none, 5))
    local text = message(none, { cuont = 1 })
    assert.matches("'cuont'", text)
    assert.matches("count, min_time, stream, warmup", text, 1, true)
    assert.matches("'count'", message(none, { count = 0 }))
    assert.matches("'count'", message(none, { count = 1.5 }))
    assert.matches("'warmup'", message(none, { warmup = -1 }))
    assert.matches("'min_time'", message(none, { min_time = 0 / 0 }))
    assert.matches("'min_time'", message(none, { min_time = "long" }))
    assert.matches("'stream': tpstream.Stream expected, got number",
      message(none, { stream = 1 }))
    local event <close> = tp.Event()
    assert.matches("#1 to 'benchmark' %(function expected, got tpstream.Event",
      message(event))
    local ok, place = pcall(tp.benchmark, event)
    assert.is_false(ok)
    assert.matches("^spec/benchmark_spec.lua:%d+: bad argument #1", place)
  end)
end)
