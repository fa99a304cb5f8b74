-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The examples run as the README says, and the pipeline's results are right.
local run = require "spec.support.run"

local LUA = run.interpreter()
local dir = os.tmpname()
os.remove(dir)
assert(os.execute("mkdir -p " .. dir))

local function write(name, bytes)
  local path = dir .. "/" .. name
  local f = assert(io.open(path, "wb"))
  f:write(bytes)
  f:close()
  return path
end

local function read_pgm(name)
  local f = assert(io.open(dir .. "/" .. name, "rb"))
  local text = f:read "a"
  f:close()
  local w, h, data = text:match "^P5\n(%d+) (%d+)\n255\n(.*)$"
  assert.equal(w * h, #data)
  return data, tonumber(w), tonumber(h)
end

local function pipeline(...)
  return run.command({ LUA, "examples/pipeline.lua", "-o", dir, ... })
end

describe("hello.lua", function()
  it("prints the device and the result", function()
    local r = run.command { LUA, "examples/hello.lua" }
    assert.equal(0, r.status, r.stderr)
    assert.matches("\t12%.0 24%.0 36%.0 48%.0\n$", r.stdout)
  end)

  it("is the README's first program", function()
    local readme = assert(io.open "README.md"):read "a"
    local hello = assert(io.open "examples/hello.lua"):read "a"
    assert.is_truthy(readme:find("```lua\n" .. hello .. "```", 1, true))
    local _, lines = hello:gsub("\n", "")
    assert.is_true(lines <= 15)
  end)
end)

describe("tasks.lua", function()
  it("runs jobs side by side and gives one up in time", function()
    local r = run.command { LUA, "examples/tasks.lua", "3" }
    assert.equal(0, r.status, r.stderr)
    assert.matches("job 1: 1 round, sum 134225920\n", r.stdout)
    assert.matches("job 3: 3 rounds, sum 402677760\n", r.stdout)
    assert.matches("all: 805355520\nendless ended by itself: false\n$",
      r.stdout)
  end)
end)

describe("event_loop.lua", function()
  it("runs in a loop of somebody else's, or says what it lacks", function()
    local r = run.command { LUA, "examples/event_loop.lua" }
    assert.equal(0, r.status, r.stderr)
    if r.stdout:find "^skipped: " then
      return pending "neither luv nor cqueues is installed"
    end
    assert.matches("one\tround 3\n", r.stdout)
    assert.matches("two\tround 3\n", r.stdout)
    assert.matches("done, and the loop went on meanwhile\n$", r.stdout)
  end)

  it("knows its loops", function()
    local r = run.command { LUA, "examples/event_loop.lua", "uv" }
    assert.equal(1, r.status)
    assert.matches("unknown loop 'uv' %(there are luv and cqueues%)", r.stderr)
  end)
end)

describe("pipeline.lua", function()
  it("runs without pictures and prints both throughputs", function()
    local r = pipeline()
    assert.equal(0, r.status, r.stderr)
    assert.matches("8 pictures", r.stdout)
    assert.matches("1 stream: +[%d.]+ ms +[%d.]+ MB/s", r.stdout)
    assert.matches("3 streams: +[%d.]+ ms +[%d.]+ MB/s", r.stdout)
    local _, w, h = read_pgm "scene1-edges.pgm"
    assert.equal(320 * 240, w * h)
    read_pgm "scene8-denoised.pgm"
    local _, hw = read_pgm "scene3-histogram.pgm"
    assert.equal(256, hw)
  end)

  it("keeps a constant picture and finds no edge in it", function()
    local w, h = 45, 31
    local path = write("flat.pgm", ("P5\n# a comment\n%d %d\n255\n%s"):format(w,
      h, ("\100"):rep(w * h)))
    local r = pipeline(path)
    assert.equal(0, r.status, r.stderr)
    assert.equal(("\100"):rep(w * h), (read_pgm "flat-denoised.pgm"))
    assert.equal(("\0"):rep(w * h), (read_pgm "flat-edges.pgm"))
  end)

  it("finds the edge between two halves", function()
    local w, h = 40, 24
    local row = ("\0"):rep(20) .. ("\255"):rep(20)
    local r = pipeline(write("step.pgm", ("P5 %d %d 255\n%s"):format(w, h,
      row:rep(h))))
    assert.equal(0, r.status, r.stderr)
    local edges = read_pgm "step-edges.pgm"
    for y = 0, h - 1 do
      for x = 0, w - 1 do
        local e = edges:byte(y * w + x + 1)
        if x == 19 or x == 20 then
          assert.is_true(e > 200)
        elseif x < 17 or x > 22 then
          assert.is_true(e < 20)
        end
      end
    end
  end)

  it("reads all four formats, colour and 16 bits alike", function()
    local w, h, grey, red = 9, 7, {}, {}
    for i = 1, w * h do
      grey[i] = i * 3
      red[i] = ("%d %d %d"):format(i * 3, i * 3, i * 3)
    end
    local bytes, wide, colour = {}, {}, {}
    for i, v in ipairs(grey) do
      bytes[i] = string.char(v)
      wide[i] = string.pack(">I2", v * 257)
      colour[i] = string.char(v, v, v)
    end
    local function file(name, magic, max, body)
      return write(name, ("%s\n%d %d\n%d\n%s"):format(magic, w, h, max, body))
    end
    local first = file("a.pgm", "P5", 255, table.concat(bytes))
    assert.equal(0, pipeline(first, first, first).status)
    for _, name in ipairs { "a", "a-2", "a-3" } do read_pgm(name .. "-edges.pgm") end
    local r = pipeline(first,
      file("b.pgm", "P2", 255, table.concat(grey, " ")),
      file("c.ppm", "P6", 255, table.concat(colour)),
      file("d.ppm", "P3", 255, table.concat(red, "\n")),
      file("e.pgm", "P5", 65535, table.concat(wide)))
    assert.equal(0, r.status, r.stderr)
    local a = read_pgm "a-denoised.pgm"
    for _, name in ipairs { "b", "c", "d", "e" } do
      local b = read_pgm(name .. "-denoised.pgm")
      for i = 1, #a do
        assert.is_true(math.abs(a:byte(i) - b:byte(i)) <= 1, name)
      end
    end
  end)

  it("gives the same without the compiler", function()
    local path = write("noise.pgm", ("P5 64 48 255\n%s"):format(
      ("\3\200\77\150\9\31"):rep(512)))
    local compiled = pipeline(path)
    assert.equal(0, compiled.status, compiled.stderr)
    local with = read_pgm "noise-denoised.pgm" .. read_pgm "noise-edges.pgm"
    local r = run.command({ LUA, "examples/pipeline.lua", "-o", dir, path },
      { env = { TPSTREAM_NVRTC = "/nonexistent" } })
    assert.equal(0, r.status, r.stderr)
    local without = read_pgm "noise-denoised.pgm" .. read_pgm "noise-edges.pgm"
    assert.is_true(with == without)
  end)

  for name, case in pairs {
    ["a missing picture"] = { nil, "No such file" },
    ["a directory"] = { false, "directory" },
    ["an empty file"] = { "", "P5" },
    ["another format"] = { "\137PNG\r\n\26\n", "not a PGM or PPM" },
    ["a broken header"] = { "P5\n12 x\n255\n", "no valid height" },
    ["a width of zero"] = { "P5\n0 5\n255\n", "no valid width" },
    ["a huge picture"] = { "P5\n999999 999999\n255\n", "pixels" },
    ["a maximum of 70000"] = { "P5\n2 2\n70000\n\0\0\0\0", "70000" },
    ["missing samples"] = { "P6\n4 4\n255\n1234", "cut short: 4 samples" },
    ["a bad sample"] = { "P2\n2 2\n255\n1 2 x 4", "sample 3" },
    ["a sample in hexadecimal"] = { "P2\n2 1\n99\n1 0x2\n", "sample 2" },
    ["a sample over the maximum"] = { "P2\n2 1\n7\n1 8\n", "sample 2" },
  } do
    it(name .. " is a clear error", function()
      local path = dir .. "/not-there.pgm"
      if case[1] then path = write("bad.pgm", case[1]) end
      if case[1] == false then path = dir end
      local r = pipeline(path)
      assert.equal(1, r.status)
      assert.matches("^pipeline: ", r.stderr)
      assert.is_truthy(r.stderr:find(case[2], 1, true), r.stderr)
      assert.is_truthy(r.stderr:find(path, 1, true), r.stderr)
      assert.is_falsy(r.stderr:find "traceback")
    end)
  end

  it("refuses bad options", function()
    assert.equal(1, pipeline("-s", "0").status)
    assert.matches("%-s needs", pipeline("-s", "x").stderr)
    assert.equal(0, pipeline("-s", "5").status)
    assert.equal("pipeline: unknown option '-x' (there are -o DIR and -s STREAMS)\n",
      pipeline("-x").stderr)
  end)
end)

describe("solar_system.lua", function()
  local function solar(...)
    return run.command { LUA, "examples/solar_system.lua", ... }
  end

  -- The printed table: name → { turns, period, known }.
  local function planets(text)
    local found, count = {}, 0
    for name, turns, period, known in
      text:gmatch "\n(%u%l+) +(%d+) +([%d.-]+) +([%d.]+)" do
      found[name] = { tonumber(turns), tonumber(period), tonumber(known) }
      count = count + 1
    end
    assert.equal(9, count, text)
    return found
  end

  local function drifts(text, name)
    local worst, last = text:match(name .. " drift: +(%S+) at most, +(%S+) at")
    return tonumber(worst), tonumber(last)
  end

  it("conserves, and brings every planet round in its time", function()
    local r = solar()
    assert.equal(0, r.status, r.stderr)
    local energy = drifts(r.stdout, "energy")
    local momentum = drifts(r.stdout, "angular momentum")
    assert.is_true(energy > 0 and energy < 1e-7, r.stdout)
    assert.is_true(momentum > 0 and momentum < 1e-12, r.stdout)
    local found = planets(r.stdout)
    for name, case in pairs {
      Mercury = { 1037, 1e-4 }, Venus = { 406, 2e-5 }, Earth = { 249, 2e-5 },
      Mars = { 132, 2e-5 }, Jupiter = { 21, 1e-4 }, Saturn = { 8, 3e-4 },
      Uranus = { 2, 5e-4 }, Neptune = { 1, 1e-3 }, Pluto = { 1, 1e-3 },
    } do
      local turns, period, known = table.unpack(found[name])
      assert.equal(case[1], turns, name)
      assert.is_true(math.abs(period / known - 1) < case[2], r.stdout)
    end
  end)

  it("errs with the square of the step", function()
    local function run_with(step)
      local r = solar("-y", "10", "-d", step)
      assert.equal(0, r.status, r.stderr)
      local mercury = planets(r.stdout).Mercury
      return mercury[2] / mercury[3] - 1, (drifts(r.stdout, "energy"))
    end
    local coarse, coarse_energy = run_with "1"
    local fine, fine_energy = run_with "0.5"
    assert.is_true(coarse / fine > 3.5 and coarse / fine < 4.5)
    assert.is_true(coarse_energy / fine_energy > 3)
  end)

  it("has no period for what does not come round", function()
    local r = solar("-y", "1.1")
    assert.equal(0, r.status, r.stderr)
    local found = planets(r.stdout)
    assert.same({ 4, 1, 1, 0, 0 }, { found.Mercury[1], found.Venus[1],
      found.Earth[1], found.Mars[1], found.Pluto[1] })
    assert.is_nil(found.Mars[2])
  end)

  it("gives the same without the compiler", function()
    local function numbers(r)
      assert.equal(0, r.status, r.stderr)
      return (r.stdout:gsub("[%d.]+ s on", "s on"))
    end
    local words = { LUA, "examples/solar_system.lua", "-y", "3" }
    local with = numbers(run.command(words))
    local without = numbers(run.command(words, { env = {
      TPSTREAM_NVRTC = "/nonexistent" } }))
    assert.equal(with, without)
  end)

  for option, case in pairs {
    ["-y"] = { "0", "-1", "x", "nan", "1e9" },
    ["-d"] = { "0", "21", "inf", "" },
  } do
    for _, value in ipairs(case) do
      it(("refuses %s '%s'"):format(option, value), function()
        local r = solar(option, value)
        assert.equal(1, r.status)
        assert.matches("^solar_system: %" .. option .. " needs a number from ",
          r.stderr)
        assert.is_truthy(r.stderr:find("got '" .. value .. "'", 1, true))
      end)
    end
  end

  it("refuses what is no option, and too much work", function()
    assert.matches("^solar_system: unknown option '%-x'", solar("-x").stderr)
    assert.matches("got 'nil'", solar("-y").stderr)
    assert.matches("^solar_system: %d+ steps",
      solar("-y", "10000", "-d", "0.001").stderr)
  end)
end)

teardown(function() os.execute("rm -rf " .. dir) end)
