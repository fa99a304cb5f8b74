-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Managed memory, views as another type, copies of rows, files, the limit:
-- docs/reference.md, section Memory. The rest of it is in buffer_spec.lua.
local tp = require "tpstream"
local message_of = require("spec.support.errors").message
local gate = require "spec.support.gate"
local numbers = require "spec.support.numbers"
local pair = require "spec.support.pair"
local run = require "spec.support.run"

local random = numbers.generator(2026)

local function list(count, least, most)
  local t = {}
  for i = 1, count do t[i] = random.int(least, most) end
  return t
end

local function with_file(bytes, fn)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  assert(file:write(bytes))
  file:close()
  local ok, e = pcall(fn, path)
  os.remove(path)
  if not ok then error(e, 0) end
end

describe("managed memory", function()
  it("is used by the host and by kernels", function()
    local xs = list(1000, -10000, 10000)
    local m <close> = tp.managed("i32", xs)
    assert.equal(1000, #m)
    assert.equal(xs[7], m[7])
    gate.kernel "twice":forall(1000, m, 1000)
    tp.current_stream():synchronize()
    for i = 1, 1000 do assert.equal(2 * xs[i], m[i]) end
    m[1000] = 5
    assert.same({ 2 * xs[999], 5 }, m:read(999))
    assert.matches("int32%[1000%], managed", tostring(m))
  end)

  it("begins with zeros, takes a string, and has every method", function()
    local z <close> = tp.managed("f64", 3)
    assert.same({ 0.0, 0.0, 0.0 }, z:read())
    local s <close> = tp.managed("u16", string.pack("<I2I2", 7, 65535))
    assert.same({ 7, 65535 }, s:read())
    z:fill(2.5)
    z:write({ 1.5 }, 2)
    tp.current_stream():synchronize()
    assert.equal(1.5, z[2])
    local b <close> = tp.buffer("f64", 3)
    z:slice(2, 2):copy_to(b)
    assert.same({ 1.5, 2.5 }, b:read(1, 2))
    assert.equal(tp.current_device(), z:device())
    local empty <close> = tp.managed("i8", 0)
    assert.same({}, empty:read())
  end)

  it("on a named device, and refused for what is no device", function()
    local here = pair.devices()
    local m <close> = tp.managed("i8", 4, { device = here })
    assert.equal(here, m:device())
    assert.matches("unknown option 'stream'", message_of(tp.managed, "i8", 4,
      { stream = 1 }))
  end)

  it("counts by itself in memory_stats", function()
    local before = tp.memory_stats()
    local m = tp.managed("u8", 5000)
    local during = tp.memory_stats()
    assert.equal(before.managed_bytes + 5000, during.managed_bytes)
    assert.equal(before.pinned_bytes, during.pinned_bytes)
    m:close()
    assert.equal(before.managed_bytes, tp.memory_stats().managed_bytes)
  end)

  it("stays while queued work uses it", function()
    local xs = list(1 << 14, -1000, 1000)
    local out <close> = tp.zeros("i32", #xs)
    local s <close> = tp.Stream()
    tp.current_stream():synchronize()
    local g <close> = gate.new()
    g:hold(s)
    local m = tp.managed("i32", xs)
    m:copy_to(out, { stream = s })
    m:close()
    collectgarbage()
    local other <close> = tp.managed("i32", #xs)
    for i = 1, #xs do other[i] = -7 end
    g:open()
    s:synchronize()
    assert.same(xs, out:read())
  end)
end)

describe("as", function()
  it("sees the same bytes as elements of another type", function()
    local b <close> = tp.buffer("f32", { 1.0, -2.5, 0.0, 1e-20 })
    local bits <close> = b:as "u32"
    assert.equal("uint32", bits:dtype())
    assert.same({ 0x3f800000, 0xc0200000, 0, numbers.bits32(1e-20) },
      bits:read())
    bits:write({ 0x40490fdb }, 3)
    assert.equal(string.unpack("<f", string.pack("<I4", 0x40490fdb)),
      b:read(3, 1)[1])
    assert.equal(16, #b:as "u8")
    assert.equal(2, #b:as "f64")
  end)

  it("goes on from a slice, and keeps the memory alive", function()
    local b = tp.buffer("i16", { 1, 2, 3, 4, 5, 6 })
    local half = b:slice(3, 4)
    local wide = half:as "i32"
    b:close()
    half:close()
    assert.same({ 3 | 4 << 16, 5 | 6 << 16 }, wide:read())
    wide:close()
  end)

  it("refuses what does not divide or is misaligned", function()
    local b <close> = tp.buffer("u8", 12)
    assert.equal("bad argument #2 to 'as' (12 bytes are no whole number of " ..
      "float64 elements (8 bytes each))", message_of(b.as, b, "f64"))
    local slice <close> = b:slice(2, 4)
    assert.equal("bad argument #2 to 'as' (the slice begins at byte 1 of its " ..
      "memory, where elements of float32 (4 bytes) are misaligned)",
      message_of(slice.as, slice, "f32"))
    assert.matches("unknown element type 'complex'", message_of(b.as, b,
      "complex"))
  end)

  it("lets a copy between types through, which plain copies refuse", function()
    local from <close> = tp.buffer("f32", { 1.0, 2.0 })
    local to <close> = tp.buffer("u32", 2)
    assert.equal("copy of float32 elements into a buffer of uint32",
      message_of(from.copy_to, from, to))
    from:as "u32":copy_to(to)
    assert.same({ 0x3f800000, 0x40000000 }, to:read())
  end)
end)

-- Rows by hand, in elements.
local function move_rows(to, from, r)
  for row = 0, r.rows - 1 do
    for i = 0, r.row - 1 do
      to[r.at + row * r.to_pitch + i] = from[r.first + row * r.pitch + i]
    end
  end
end

local MAKE = { tp.buffer, tp.pinned, tp.managed }

describe("copy_to with rows", function()
  it("copies the same as by hand, whatever the pitches and kinds", function()
    for _ = 1, 60 do
      local r = { rows = random.int(1, 9), row = random.int(1, 40) }
      r.pitch = r.row + random.int(0, 9)
      r.to_pitch = r.row + random.int(0, 9)
      r.first, r.at = random.int(1, 7), random.int(1, 7)
      local x = list(r.first + r.rows * r.pitch, -30000, 30000)
      local y = list(r.at + r.rows * r.to_pitch, -30000, 30000)
      local from <close> = MAKE[random.int(1, 3)]("i16", x)
      local to <close> = MAKE[random.int(1, 3)]("i16", y)
      from:copy_to(to, { rows = r.rows, row_bytes = 2 * r.row, at = r.at,
        pitch = 2 * r.pitch, to_pitch = 2 * r.to_pitch, first = r.first })
      move_rows(y, x, r)
      assert.same(y, to:read())
    end
  end)

  it("copies large matrices in pieces", function()
    local w, h = 1000, 700
    local x = list(w * h, -2 ^ 31 // 1, 2 ^ 31 // 1 - 1)
    local from <close> = tp.buffer("i32", x)
    local to <close> = tp.zeros("i32", 600 * 700)
    from:copy_to(to, { rows = h, row_bytes = 4 * 600, pitch = 4 * w, first = 101 })
    local got = to:read()
    for row = 0, h - 1, 37 do
      for i = 1, 600, 13 do
        assert.equal(x[row * w + 100 + i], got[row * 600 + i])
      end
    end
  end)

  it("copies columns within one matrix, where none is read and written",
    function()
      local x = list(6 * 8, 0, 99)
      local m <close> = tp.buffer("i32", x)
      m:copy_to(m, { rows = 6, row_bytes = 8, pitch = 32, to_pitch = 32,
        first = 1, at = 7 })
      for row = 0, 5 do
        x[row * 8 + 7], x[row * 8 + 8] = x[row * 8 + 1], x[row * 8 + 2]
      end
      assert.same(x, m:read())
      for _, at in ipairs { 2, 8, 9 } do
        assert.matches("^source and destination overlap", message_of(m.copy_to,
          m, m, { rows = 5, row_bytes = 8, pitch = 32, to_pitch = 32, at = at }))
      end
      assert.matches("^source and destination overlap", message_of(m.copy_to, m,
        m, { rows = 3, row_bytes = 8, pitch = 32, to_pitch = 16, at = 9 }))
    end)

  it("goes between two devices and between kinds", function()
    local here, there = pair.devices()
    local x = list(40, 0, 1000)
    local places = { here, there, tp.device "sim:0" }
    for _, a in ipairs(places) do
      for _, b in ipairs(places) do
        local from <close> = tp.buffer("u16", x, { device = a })
        local to <close> = tp.zeros("u16", 20, { device = b })
        a:synchronize()
        b:synchronize()
        from:copy_to(to, { rows = 4, row_bytes = 10, pitch = 20, first = 2 })
        a:synchronize()
        b:synchronize()
        local got = tp.with_device(b, to.read, to)
        for row = 0, 3 do
          for i = 1, 5 do
            assert.equal(x[row * 10 + i + 1], got[row * 5 + i])
          end
        end
      end
    end
  end)

  it("of no rows, or rows of nothing, does nothing", function()
    local a <close> = tp.buffer("i32", { 1, 2 })
    local b <close> = tp.buffer("i32", { 3, 4 })
    a:copy_to(b, { rows = 0, row_bytes = 400 })
    a:copy_to(b, { rows = 1000, row_bytes = 0, pitch = 4 })
    assert.same({ 3, 4 }, b:read())
  end)

  local function refused(options)
    local a <close> = tp.buffer("f32", 24)
    local b <close> = tp.buffer("f32", 24)
    return message_of(a.copy_to, a, b, options)
  end
  local function field(text)
    return "bad argument #3 to 'copy_to' (field " .. text .. ")"
  end
  for _, row in ipairs {
    { { rows = 3 }, field "'row_bytes': needed with 'rows'" },
    { { rows = -1, row_bytes = 4 },
      field "'rows': must not be negative, got -1" },
    { { rows = 3, row_bytes = -4 },
      field "'row_bytes': must not be negative, got -4" },
    { { rows = 3, row_bytes = 6 }, field("'row_bytes': 6 bytes are no whole " ..
      "number of float32 elements (4 bytes each)") },
    { { rows = 3, row_bytes = 8, pitch = 4 },
      field "'pitch': 4 bytes are less than a row of 8 bytes" },
    { { rows = 3, row_bytes = 8, to_pitch = 4 },
      field "'to_pitch': 4 bytes are less than a row of 8 bytes" },
    { { rows = 3, row_bytes = 8, count = 3 },
      field "'count': not together with 'rows'" },
    { { row_bytes = 8 }, field "'row_bytes': only together with 'rows'" },
    { { pitch = 8 }, field "'pitch': only together with 'rows'" },
    { { rows = 5, row_bytes = 24, pitch = 24 },
      "range 1..30 of a buffer of 24 elements" },
    { { rows = 2, row_bytes = 8, first = 23 },
      "range 23..26 of a buffer of 24 elements" },
    { { rows = 5, row_bytes = 16, to_pitch = 24 },
      "range 1..28 of a buffer of 24 elements" },
    { { rows = math.maxinteger, row_bytes = 8 }, field("'pitch': " ..
      "9223372036854775807 rows that many bytes apart are more than there " ..
      "can be") },
  } do
    it("refuses: " .. row[2], function() assert.equal(row[2], refused(row[1])) end)
  end
end)

describe("read_file", function()
  it("reads a whole file into pinned memory", function()
    local xs = {}
    for i = 1, 100 do xs[i] = random.int(-1 << 50, 1 << 50) / 3 end
    with_file(string.pack("<" .. ("d"):rep(100), table.unpack(xs)),
      function(path)
        local h <close> = tp.read_file(path, "f64")
        assert.equal(100, #h)
        for i = 1, 100 do assert.equal(xs[i], h[i]) end
        assert.matches("pinned", tostring(h))
        local bytes <close> = tp.read_file(path)
        assert.equal("uint8", bytes:dtype())
        assert.equal(800, #bytes)
      end)
  end)

  it("reads a part", function()
    with_file("head" .. string.pack("<i4i4i4i4", 1, -2, 3, 4), function(path)
      local h <close> = tp.read_file(path, "i32", { offset = 4 })
      assert.same({ 1, -2, 3, 4 }, h:read())
      local two <close> = tp.read_file(path, "i32", { offset = 8, count = 2 })
      assert.same({ -2, 3 }, two:read())
      local none <close> = tp.read_file(path, "i32", { offset = 20 })
      assert.equal(0, #none)
    end)
  end)

  it("reads megabytes right", function()
    local word = {}
    for i = 1, 1 << 15 do word[i] = string.pack("<i8", random.bits()) end
    local text = table.concat(word):rep(10)
    with_file(text, function(path)
      local h <close> = tp.read_file(path)
      assert.is_true(h:bytes() == text)
    end)
  end)

  it("reads no more than it needs of what never ends", function()
    local h <close> = tp.read_file("/dev/zero", "i32", { offset = 6, count = 5000 })
    assert.equal(5000, #h)
    assert.equal(0, h[5000])
  end)

  it("ends at Ctrl-C where nothing comes", function()
    local r = run.script([[
      local tp = require "tpstream"
      local path = os.tmpname()
      os.remove(path)
      os.execute("mkfifo " .. path)
      os.execute("sleep 12 > " .. path .. " &")
      local from = os.time()
      print(pcall(tp.read_file, path))
      os.remove(path)
      print(os.time() - from < 10)]], { signal = "INT", after = 0.7 })
    assert.matches("false\t.*interrupted!\ntrue\n", r.stdout)
  end)

  it("ends at Ctrl-C where something comes for ever, and keeps none of it", function()
    local r = run.script([[
      local tp = require "tpstream"
      local from = os.time()
      print(pcall(tp.read_file, "/dev/zero", "u8", { offset = 1 << 60, count = 1 }))
      print(os.time() - from < 10)
      for line in io.lines "/proc/self/status" do
        local peak = line:match "^VmHWM:%s*(%d+) kB"
        if peak then print(tonumber(peak) < 4000000) end
      end]], { signal = "INT", after = 0.7 })
    assert.matches("false\t.*interrupted!\ntrue\ntrue\n", r.stdout)
  end)

  it("reads what has no size of its own, and nothing", function()
    local h <close> = tp.read_file "/proc/self/stat"
    assert.is_true(#h > 10)
    local none <close> = tp.read_file "/dev/null"
    assert.equal(0, #none)
    assert.equal("index 1 of a buffer of 0 elements",
      message_of(function() return none[1] end))
    with_file("", function(path)
      local empty <close> = tp.read_file(path, "f64")
      assert.equal(0, #empty)
    end)
  end)

  it("reads what there is of a file whose size is wrong", function()
    local path = "/sys/devices/system/cpu/online" -- its size is that of a page
    local file = io.open(path)
    if not file then
      pending "no sysfs here"
      return
    end
    local text = file:read "a"
    file:close()
    local h <close> = tp.read_file(path)
    assert.equal(text, h:bytes())
    local rest <close> = tp.read_file(path, "u8", { offset = 1, count = #text - 1 })
    assert.equal(text:sub(2), rest:bytes())
    assert.equal(("'%s': offset 4000 of %d bytes"):format(path, #text),
      message_of(tp.read_file, path, "u8", { offset = 4000 }))
    assert.equal(("'%s': %d elements of uint8 asked for, the file has %d"):format(path,
      #text + 1, #text), message_of(tp.read_file, path, "u8", { count = #text + 1 }))
  end)

  it("says what is wrong", function()
    assert.matches("^cannot open '/nonexistent/x': No such file or directory",
      message_of(tp.read_file, "/nonexistent/x"))
    assert.matches("^cannot read '/tmp': Is a directory",
      message_of(tp.read_file, "/tmp"))
    with_file(("x"):rep(13), function(path)
      assert.equal("'" .. path .. "': 13 bytes are no whole number of float32 " ..
        "elements (4 bytes each)", message_of(tp.read_file, path, "f32"))
      assert.equal("'" .. path .. "': offset 14 of 13 bytes",
        message_of(tp.read_file, path, "u8", { offset = 14 }))
      assert.equal("'" .. path .. "': 4 elements of float32 asked for, the " ..
        "file has 3", message_of(tp.read_file, path, "f32", { count = 4 }))
      assert.matches("field 'offset': must not be negative, got %-1",
        message_of(tp.read_file, path, "u8", { offset = -1 }))
      assert.matches("field 'count': must not be negative, got %-1",
        message_of(tp.read_file, path, "u8", { count = -1 }))
    end)
    assert.matches("must not contain NUL", message_of(tp.read_file, "a\0b"))
  end)
end)

describe("memory_limit", function()
  local before
  before_each(function()
    collectgarbage()
    collectgarbage()
    before = tp.memory_limit()
  end)
  after_each(function() tp.memory_limit(before) end)

  local function held()
    local all = tp.memory_stats()
    return all.live_bytes + all.pinned_bytes + all.managed_bytes
  end

  it("is none at first, and is told with the one before", function()
    assert.equal(math.huge, before)
    assert.equal(math.huge, tp.memory_limit(1 << 40))
    assert.equal(1 << 40, tp.memory_limit(math.huge))
    assert.equal(math.huge, tp.memory_limit())
  end)

  it("holds for all kinds together", function()
    tp.memory_limit(held() + 10000)
    local a <close> = tp.buffer("u8", 4000)
    local b <close> = tp.pinned("u8", 4000)
    local now = held()
    for _, row in ipairs { { tp.buffer, "" }, { tp.zeros, "" },
      { tp.pinned, "page-locked memory of " },
      { tp.managed, "managed memory of " } } do
      local ok, e = pcall(row[1], "u8", 2001)
      assert.is_false(ok)
      assert.equal("cudaErrorMemoryAllocation", e.code)
      assert.matches(("beyond the memory limit: %s2001 bytes asked for on %s, " ..
        "%d of %d held"):format(row[2], pair.label(tp.current_device()), now,
        now + 2000), e.message, 1, true)
    end
    local c <close> = tp.managed("u8", 2000)
    assert.equal(now + 2000, held())
    a:close()
    local d <close> = tp.buffer("u8", 4000)
    assert.equal(4000, #d + 0 * #c * #b)
  end)

  it("collects before it says no", function()
    tp.memory_limit(held() + (1 << 20))
    for _ = 1, 20 do tp.buffer("u8", 1 << 19) end
    for _ = 1, 20 do tp.pinned("u8", 1 << 19) end
    assert.is_true(held() <= tp.memory_limit())
  end)

  it("below what is held refuses all that is new", function()
    local a <close> = tp.buffer("u8", 1000)
    tp.memory_limit(0)
    assert.matches("1 bytes asked for", message_of(tp.buffer, "u8", 1))
    local none <close> = tp.buffer("u8", 0)
    assert.equal(0, #none)
    assert.equal(1000, #a)
  end)

  it("is checked", function()
    assert.equal("bad argument #1 to 'memory_limit' (the limit must not be " ..
      "negative, got -1)", message_of(tp.memory_limit, -1))
    assert.matches("number expected", message_of(tp.memory_limit, {}))
    assert.matches("no integer representation", message_of(tp.memory_limit, 0.5))
    assert.equal(math.huge, tp.memory_limit())
  end)
end)
