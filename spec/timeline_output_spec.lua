-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Timelines as they are written: a trace, a page, a chart. docs/timeline.md.
local tp = require "tpstream"
local files = require "spec.support.files"
local gate = require "spec.support.gate"
local json = require "spec.support.json"
local numbers = require "spec.support.numbers"
local timeline = require "spec.support.timeline"

local check, of, record = timeline.check, timeline.of, timeline.record
local SLACK = timeline.SLACK
local CUDA = tp.current_device():kind() == "cuda"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p " .. folder))
teardown(function() os.execute("rm -rf " .. folder) end)

-- Something of everything, with names that have to be escaped.
local function busy()
  local x <close> = tp.zeros("i32", 1024)
  local h <close> = tp.pinned("i32", 1024)
  local s <close> = tp.Stream()
  local u <close> = tp.Stream()
  local g <close> = tp.capture(s, function()
    u:wait_stream(s)
    gate.run(s, "add", x, 0, 1)
    gate.run(u, "add", x, 1, 1)
    s:wait_stream(u)
  end)
  local queue = assert(load([[
    local x, h, s, u, g, gate = ...
    for i = 1, 3 do
      gate.run(s, "add", x, 0, 1)
      u:wait_stream(s)
      x:copy_to(h, { stream = u })
      s:wait_stream(u)
      g:launch(s)
    end
    s:on_complete(function() end)
    s:synchronize()
  ]], "=</script><b>\"\\\1\xe9"))
  return record(function()
    tp.range("<!--</SCRIPT>\"'\\\u{2029}\xc3", queue, x, h, s, u, g, gate)
  end)
end

describe("a trace", function()
  local t, trace, events
  setup(function()
    t = check(busy())
    t:write(folder .. "/busy.json")
    trace = json.read(files.read(folder .. "/busy.json"))
    events = trace.traceEvents
  end)

  local function phase(ph)
    local list = {}
    for _, e in ipairs(events) do
      if e.ph == ph then list[#list + 1] = e end
    end
    return list
  end

  it("names every process and thread that it has", function()
    local named = {}
    for _, e in ipairs(phase "M") do
      local what, field = e.name:match "^(%l+)_(.*)$"
      local key = what == "thread" and e.pid .. "/" .. e.tid or e.pid
      if field == "name" then
        assert.is_nil(named[key])
        named[key] = e.args.name
      else
        assert.equal("sort_index", field)
        assert.equal(what == "thread" and e.tid or e.pid, e.args.sort_index)
      end
    end
    for _, e in ipairs(events) do
      assert.is_truthy(named[e.pid], "process " .. e.pid)
      if e.ph ~= "M" then
        assert.is_truthy(named[e.pid .. "/" .. e.tid], e.pid .. "/" .. e.tid)
      end
    end
    assert.equal("host", named[1])
    assert.equal(tostring(tp.current_device()):match "%l+:%d+", named[2])
  end)

  it("has each operation once, by its times", function()
    local shown, ran = {}, {}
    for _, e in ipairs(phase "X") do
      if e.pid > 1 then
        assert.is_true(e.dur >= 0)
        shown[#shown + 1] = ("%s %.3f %.3f"):format(e.cat, e.ts, e.dur)
      end
    end
    for _, r in ipairs(t) do
      if r.started then
        ran[#ran + 1] = ("%s %.3f %.3f"):format(r.kind, r.started * 1e3,
          (r.finished - r.started) * 1e3)
      end
    end
    assert.equal(#ran, #shown)
    assert.is_true(#ran > 15)
    -- Times are doubles on their way to Lua: the last digit may differ.
    local function rounded(list)
      for i, text in ipairs(list) do
        list[i] = text:gsub("%.%d+", "")
      end
      table.sort(list)
      return list
    end
    local a, b, differ = rounded(ran), rounded(shown), 0
    for i = 1, #a do differ = differ + (a[i] == b[i] and 0 or 1) end
    assert.is_true(differ <= 2, differ)
  end)

  it("has arguments: line, shape, bytes", function()
    local kernel, copy
    for _, e in ipairs(phase "X") do
      if e.cat == "kernel" then kernel = kernel or e end
      if e.cat == "copy" then copy = copy or e end
    end
    assert.equal("add", kernel.name)
    assert.equal("1", kernel.args.grid)
    assert.equal("1", kernel.args.block)
    assert.is_true(kernel.args.queued_us <= kernel.ts)
    assert.equal("copy out", copy.name)
    assert.equal(4096, copy.args.bytes)
    assert.matches("</script>", copy.args.line, 1, true)
  end)

  it("has an arrow from each record to each wait for it", function()
    local from, count = {}, 0
    for _, e in ipairs(phase "s") do from[e.id] = e end
    for _, e in ipairs(phase "f") do
      count = count + 1
      local start = from[e.id]
      assert.is_truthy(start)
      assert.equal("e", e.bp)
      assert.is_true(start.ts <= e.ts)
      assert.is_true(start.pid ~= e.pid or start.tid ~= e.tid)
      from[e.id] = nil
    end
    assert.is_nil(next(from))
    assert.equal(#of(t, "wait"), count)
    assert.is_true(count >= 3)
  end)

  -- As Perfetto reads it: in order of time, what is at the same time in that of the
  -- file; an end of an arrow is of what began last on its thread.
  it("has its arrows between records and waits, as they are read", function()
    local order, top, ends, count = {}, {}, {}, 0
    for i, e in ipairs(events) do
      if e.ts then order[#order + 1] = { e.ts, i, e } end
    end
    table.sort(order, function(a, b)
      if a[1] ~= b[1] then return a[1] < b[1] end
      return a[2] < b[2]
    end)
    for _, entry in ipairs(order) do
      local e = entry[3]
      local key = e.pid .. "/" .. e.tid
      if e.ph == "X" then top[key] = e end
      if e.ph == "s" then
        assert.equal("record", top[key].cat)
        ends[e.id] = top[key].args.event
      elseif e.ph == "f" then
        assert.equal("wait", top[key].cat)
        assert.equal(ends[e.id], top[key].args.event)
        count = count + 1
      end
    end
    assert.equal(#of(t, "wait"), count)
  end)

  it("has no thread that looks like its process's first", function()
    for _, e in ipairs(events) do assert.is_true(e.tid ~= e.pid) end
  end)

  it("keeps what is on one thread in one another or apart", function()
    local threads = {}
    for _, e in ipairs(phase "X") do
      local key = e.pid .. "/" .. e.tid
      threads[key] = threads[key] or {}
      table.insert(threads[key], e)
    end
    for key, list in pairs(threads) do
      table.sort(list, function(a, b)
        if a.ts ~= b.ts then return a.ts < b.ts end
        return a.dur > b.dur
      end)
      local open = {}
      for _, e in ipairs(list) do
        while #open > 0 and open[#open] <= e.ts + SLACK * 1e3 + 0.002 do
          table.remove(open)
        end
        local last = e.ts + e.dur
        assert.is_true(#open == 0 or last <= open[#open] + 0.002, key)
        open[#open + 1] = last
      end
    end
  end)

  it("has points in numbers whatever the locale", function()
    local before = os.setlocale()
    local found
    for _, name in ipairs { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8" } do
      found = found or os.setlocale(name)
    end
    t:write(folder .. "/locale.json")
    os.setlocale(before)
    json.read(files.read(folder .. "/locale.json"))
  end)
end)

describe("ranges of tasks", function()
  it("have a line of their own each, with those inside beneath", function()
    local t = record(function()
      for i = 1, 4 do
        tp.spawn(function()
          tp.range("job " .. i, function()
            for _ = 1, 3 do
              tp.range("of " .. i, tp.sleep, 1 + 0.3 * i)
            end
          end)
        end)
      end
      tp.run()
    end)
    t:write(folder .. "/tasks.html")
    local data = json.read(files.read(folder .. "/tasks.html"):match
      '<script type="application/json" id="data">(.-)</script>')
    local lanes, count = {}, 0
    for _, s in ipairs(data.spans) do
      local job = s.name ~= json.null and s.name:match "^job (%d)$"
      if job then
        assert.equal(0, s.depth)
        assert.is_nil(lanes[job])
        lanes[job] = s.lane
      elseif s.name ~= json.null then
        count = count + 1
        assert.same({ 1, lanes[s.name:match "%d"] }, { s.depth, s.lane })
      end
    end
    assert.equal(12, count)
  end)
end)

describe("a page", function()
  local t, page, data
  setup(function()
    t = busy()
    t:write(folder .. "/busy.html")
    page = files.read(folder .. "/busy.html")
    data = json.read(page:match
      '<script type="application/json" id="data">(.-)</script>')
  end)

  it("stands by itself", function()
    assert.matches("^<!DOCTYPE html>", page)
    assert.is_nil(page:find "https?://")
    assert.is_nil(page:find "src%s*=")
    assert.is_nil(page:find "href%s*=")
    assert.is_nil(page:find "@import")
    assert.is_nil(page:find "url%(")
    assert.matches("default%-src 'none'", page)
    assert.matches("</html>%s*$", page)
  end)

  it("has two scripts, whatever the names", function()
    local _, opened = page:lower():gsub("<script", "")
    local _, closed = page:lower():gsub("</script", "")
    assert.same({ 2, 2 }, { opened, closed })
    assert.is_nil(page:find("<!%-%-</", 1))
    assert.is_truthy(utf8.len(page))
  end)

  it("has all that was recorded", function()
    local field = {}
    for i, name in ipairs(data.fields) do field[name] = i end
    assert.equal(#t, #data.items)
    for i, r in ipairs(t) do
      local item = data.items[i]
      assert.equal(#data.fields, #item)
      assert.equal(r.kind, item[field.kind])
      assert.equal(r.line or 0, item[field.line])
      assert.equal(r.bytes or 0, item[field.bytes])
      assert.equal((r.waits_for or 0) - 1, item[field.link])
      assert.equal((r.graph or 0) - 1, item[field.graph])
      if r.kernel then
        assert.equal(r.kernel, data.strings[item[field.name] + 1])
      end
      if r.started then
        assert.is_true(math.abs(r.started * 1e3 - item[field.started]) < 0.01)
      else
        assert.equal(json.null, item[field.started])
      end
    end
    assert.equal(#t.ranges + #t.waits, #data.spans)
    assert.equal(folder .. "/busy.html", data.title)
  end)

  it("has what ran in its rows, once", function()
    local seen, count = {}, 0
    for _, row in ipairs(data.rows) do
      local before = -1
      for _, i in ipairs(row.items) do
        assert.is_nil(seen[i])
        seen[i] = true
        count = count + 1
        local started = data.items[i + 1][7]
        assert.is_true(started >= before)
        before = started
      end
    end
    local ran = 0
    for _, r in ipairs(t) do ran = ran + (r.started and 1 or 0) end
    assert.equal(ran, count)
  end)
end)

-- How long stretches of time last together, of each kind and where `both` kinds are
-- at once, and the gaps between all: by walking over their ends.
local function walk(list)
  local ends = {}
  for _, s in ipairs(list) do
    ends[#ends + 1] = { at = s.from, kind = s.kind, step = 1 }
    ends[#ends + 1] = { at = s.to, kind = s.kind, step = -1 }
  end
  table.sort(ends, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.step > b.step
  end)
  local open, sums = { copy = 0, kernel = 0 },
    { copy = 0, kernel = 0, both = 0, any = 0, gap = 0, gaps = 0, longest = 0 }
  local before
  for _, e in ipairs(ends) do
    local d = before and e.at - before or 0
    if open.copy > 0 then sums.copy = sums.copy + d end
    if open.kernel > 0 then sums.kernel = sums.kernel + d end
    if open.copy > 0 and open.kernel > 0 then sums.both = sums.both + d end
    if open.copy + open.kernel > 0 then
      sums.any = sums.any + d
    elseif d > 0 then
      sums.gap, sums.gaps = sums.gap + d, sums.gaps + 1
      sums.longest = math.max(sums.longest, d)
    end
    open[e.kind] = open[e.kind] + e.step
    before = e.at
  end
  return sums
end

describe("the sums", function()
  it("are those of what ran, at random", function()
    local random = numbers.generator(77).int
    local add <close> = gate.kernel "add"
    local h <close> = tp.pinned("i32", 50000)
    local streams, buffers = {}, {}
    for i = 1, 3 do
      streams[i], buffers[i] = tp.Stream(), tp.zeros("i32", 50000)
    end
    local t = check(record(function()
      for _ = 1, 300 do
        local n = random(1, 3)
        local what = random(1, 4)
        local s, b = streams[n], buffers[n]
        if what == 1 then
          tp.with_stream(s, add.launch, add, { grid = random(1, 50), block = 1 },
            b, 0, 1)
        elseif what == 2 then
          b:copy_to(h, { count = random(1, 50000), stream = s })
          for k = 1, 3 do streams[k]:wait_stream(s) end -- `h` is for one at a time
        elseif what == 3 then
          tp.with_stream(s, b.fill, b, 5)
        else
          s:synchronize()
        end
      end
    end))
    t:write(folder .. "/sums.html")
    local data = json.read(files.read(folder .. "/sums.html"):match
      '<script type="application/json" id="data">(.-)</script>')
    local function near(expected, found)
      assert.is_true(math.abs(expected * 1e3 - found) < 0.05,
        ("%.4f, %.4f expected"):format(found, expected * 1e3))
    end
    local all, rows = {}, {}
    for _, r in ipairs(of(t, "kernel", "copy", "fill")) do
      rows[r.stream] = rows[r.stream] or {}
      local kind = r.kind == "fill" and "kernel" or r.kind
      table.insert(rows[r.stream], { from = r.started, to = r.finished,
        kind = kind })
      if r.kind ~= "fill" then
        all[#all + 1] = { from = r.started, to = r.finished, kind = r.kind }
      end
    end
    local sums = walk(all)
    near(sums.kernel, data.devices[1].kernel_us)
    near(sums.copy, data.devices[1].copy_us)
    near(sums.both, data.devices[1].both_us)
    for _, row in ipairs(data.rows) do
      sums = walk(rows[row.stream])
      near(sums.any, row.busy_us)
      near(sums.gap, row.gap_us)
      near(sums.longest, row.longest_us)
      assert.equal(#rows[row.stream], row.work)
      assert.is_true(math.abs(sums.gaps - row.gaps) <= (CUDA and 20 or 0))
    end
    for i = 1, 3 do
      streams[i]:close()
      buffers[i]:close()
    end
  end)
end)

describe("names", function()
  -- What is no UTF-8 is a replacement character, a byte each.
  local function mended(text)
    local parts, at = {}, 1
    while at <= #text do
      local ok, code = pcall(utf8.codepoint, text, at, at)
      parts[#parts + 1] = ok and utf8.char(code) or "\u{FFFD}"
      at = at + (ok and #parts[#parts] or 1)
    end
    return table.concat(parts)
  end

  it("may be any bytes", function()
    local random = numbers.generator(78).int
    local given = {}
    for i = 1, 300 do
      local parts = {}
      for k = 1, random(1, 12) do
        local kind = random(1, 3)
        parts[k] = kind == 1 and string.char(random(1, 255))
          or kind == 2 and utf8.char(random(1, 0x10FFFF))
          or string.char(random(0xE0, 0xF7), random(0x80, 0xBF), random(60, 0xBF))
      end
      given[i] = table.concat(parts)
    end
    local t = record(function()
      for _, name in ipairs(given) do tp.range(name, function() end) end
    end)
    for _, kind in ipairs { "json", "html" } do
      local path = folder .. "/names." .. kind
      t:write(path)
      local text = files.read(path)
      local names = {}
      if kind == "json" then
        for _, e in ipairs(json.read(text).traceEvents) do
          if e.cat == "range" then names[#names + 1] = e.name end
        end
      else
        for _, s in ipairs(json.read(text:match
          '<script type="application/json" id="data">(.-)</script>').spans) do
          names[#names + 1] = s.name ~= json.null and s.name or nil
        end
      end
      assert.equal(#given, #names)
      for i, name in ipairs(given) do assert.equal(mended(name), names[i]) end
    end
    assert.is_truthy(utf8.len(t:chart(200)))
  end)
end)

local function pass(seconds)
  local last = os.clock() + seconds
  while os.clock() < last do end
end

describe("a chart", function()
  it("has a line for each stream, and the sums", function()
    local x <close> = tp.zeros("i32", 1 << 16)
    local y <close> = tp.zeros("i32", 1 << 16)
    local h <close> = tp.pinned("i32", 1 << 16)
    local s <close> = tp.Stream()
    local u <close> = tp.Stream()
    local t = record(function()
      for _ = 1, 5 do
        gate.run(s, "twice", y, 1)
        x:copy_to(h, { stream = u })
      end
    end)
    local chart = t:chart(100)
    assert.matches("^timeline: 10 operations on 2 streams, [%d.]+ [mun]?s\n", chart)
    assert.matches("\nhost +|[ :w]+|\n", chart)
    assert.matches(("\nstream %d +|[ Aa]+| +%%d+%%%%\n"):format(s:id()), chart)
    assert.matches(("\nstream %d +|[ <]+| +%%d+%%%%\n"):format(u:id()), chart)
    assert.matches("\n +count +together +each +bytes +rate\n", chart)
    assert.matches("\n  A twice +5 +[%d.]+ [mun]?s +[%d.]+ [mun]?s\n", chart)
    assert.matches("\n  < copy to the host +5 .* 1%.3 MB +[%d.]+ [MG]B/s\n", chart)
    assert.matches("\n +busy +share +gaps +together +longest\n", chart)
    assert.matches("stream %d+ +[%d.]+ [mun]?s +%d+%%", chart)
    assert.matches("\n +kernels +copies +overlap\n", chart)
    for line in chart:gmatch "[^\n]*|[^\n]*" do
      assert.is_true(#line <= 100, line)
    end
  end)

  it("has ranges, one in another, and shows no control characters", function()
    local t = record(function()
      tp.range("outer\27[31m", function()
        tp.range("inner", pass, 0.002)
      end)
    end)
    local chart = t:chart(120)
    assert.matches("\nranges +|.*%[outer%?%[31m%-*%]", chart)
    assert.matches("\n +|.*%[inner%-*%]", chart)
    assert.is_nil(chart:find "\27")
  end)

  it("is as narrow as it is told to be, to the last line", function()
    local x <close> = tp.zeros("i32", 1 << 12)
    local h <close> = tp.pinned("i32", 1 << 12)
    local add <close> = gate.kernel "add"
    local t = record(function()
      tp.range("a name that is rather long", function()
        add:launch(gate.one, x, 0, 1)
        x:copy_to(h)
        x:fill(1)
        tp.current_stream():synchronize()
      end)
    end)
    local heads = {}
    for _, columns in ipairs { 46, 60, 70, 79, 80, 100, 300 } do
      local chart = t:chart(columns)
      for line in chart:gmatch "[^\n]+" do
        assert.is_true(#line <= columns, columns .. ": " .. line)
      end
      heads[columns] = chart:match "\n +(count[^\n]*)\n":gsub(" +", " ")
    end
    assert.equal("count together", heads[46])
    assert.equal("count together each", heads[60])
    assert.equal("count together each bytes", heads[70])
    assert.equal("count together each bytes rate", heads[80])
  end)

  it("has names as wide as a terminal shows them", function()
    local function named(name)
      local t = record(function()
        tp.range(name, pass, 0.002)
      end)
      return t:chart(60):match "\nranges +|([^|]*)|"
    end
    -- What takes two columns, none, one; what would turn the line around.
    local inner = named "\u{65e5}\u{672c}e\u{301}\u{202e}\u{feff}x"
    assert.matches("^%s*%[\u{65e5}\u{672c}e\u{301}%?%?x%-+%]%s*$", inner)
    assert.equal(60 - 21, utf8.len(inner) + 2 - 1)
  end)

  it("tells times in their own unit", function()
    local t = record(function()
      tp.range("long", pass, 0.005)
      tp.zeros("i32", 4):fill(1)
    end)
    local chart = t:chart(100)
    assert.is_nil(chart:find "%de[-+]")
    assert.matches("\nms  ", chart)
    assert.matches("\n  ~ fill +%d +[%d.]+ [un]s", chart)
  end)

  it("has no more lines than can be read", function()
    local program = require "spec.support.program"
    local x <close> = tp.zeros("i32", 4)
    local list, source = {}, {}
    for i = 1, 30 do
      source[i] = ("extern \"C\" __global__ void k%d(int *p) { *p = %d; }\n")
        :format(i, i)
    end
    local module <close> = program("many_kernels", table.concat(source))
    for i = 1, 70 do list[i] = tp.Stream() end
    local t = record(function()
      for i, s in ipairs(list) do
        local k <close> = module:kernel("k" .. (i - 1) % 30 + 1)
        tp.with_stream(s, k.launch, k, gate.one, x)
        s:synchronize()
      end
    end)
    for _, s in ipairs(list) do s:close() end
    local chart = t:chart(100)
    assert.matches("\n6 more streams: a page shows them\n", chart)
    assert.matches("\n  Z k%d+ ", chart)
    assert.matches("\n  # 4 other kernels +%d+ ", chart)
    local _, lines = chart:gsub("\n", "")
    assert.is_true(lines < 64 * 2 + 45, lines)
  end)

  it("of nothing says so, in a line", function()
    assert.matches("^timeline: 0 operations on 0 streams, [%d.]+ ?%l*\n$",
      record(function() end):chart())
  end)
end)
