-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tpstream --timeline. README.md, section The command.
local files = require "spec.support.files"
local json = require "spec.support.json"
local run = require "spec.support.run"

local COMMAND = os.getenv "TPS_BUILD" .. "/tpstream"
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p " .. folder))
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end

files.write(path "fill.lua", [[
local tp = require "tpstream"
local x = tp.zeros("i32", 1000)
tp.range("filling", function() for i = 1, 3 do x:fill(i) end end)
print("done", ...)
]])

local function command(...) return run.command { COMMAND, ... } end

local function fills(file)
  local count, ranges = 0, 0
  for _, e in ipairs(json.read(files.read(file)).traceEvents) do
    if e.ph == "X" and e.cat == "fill" then
      count = count + 1
      assert.matches("fill%.lua:%d+$", e.args.line)
    end
    if e.ph == "X" and e.cat == "range" and e.name == "filling" then
      ranges = ranges + 1
    end
  end
  return count, ranges
end

describe("--timeline", function()
  it("without a file shows a chart on standard error, at the end", function()
    local r = command("--timeline", path "fill.lua", "a", "b.html")
    assert.equal(0, r.status, r.stderr)
    assert.equal("done\ta\tb.html\n", r.stdout)
    assert.matches("^timeline: 4 operations on 1 stream, ", r.stderr)
    assert.matches("\n  ~ fill +4 ", r.stderr)
    assert.matches("\nranges  ", r.stderr)
  end)

  it("is as wide as COLUMNS says", function()
    local r = run.command({ COMMAND, "--timeline", path "fill.lua" },
      { env = { COLUMNS = 60 } })
    local width = 0
    for line in r.stderr:gmatch "[^\n]*|[^\n]*" do
      width = math.max(width, #line)
    end
    assert.equal(60, width)
  end)

  it("writes a trace, or a page", function()
    local file = path "a.json"
    local r = command("--timeline", file, path "fill.lua")
    assert.equal(0, r.status, r.stderr)
    assert.equal("", r.stderr)
    assert.equal("done\n", r.stdout)
    assert.same({ 4, 1 }, { fills(file) })
    for _, words in ipairs { { "--timeline=" .. path "e.html" },
      { "--timeline", path "e.html" } } do
      words[#words + 1] = path "fill.lua"
      os.remove(path "e.html")
      r = command(table.unpack(words))
      assert.equal(0, r.status, r.stderr)
      assert.equal("done\n", r.stdout)
      assert.matches("^<!DOCTYPE html>", files.read(path "e.html"))
    end
  end)

  it("takes a file whose name looks like an option's letter", function()
    local there = "cd " .. folder .. " && "
    assert(os.execute(there .. COMMAND .. " --timeline xe.json -e 'y = 1' "
      .. "fill.lua > out.txt"))
    assert.equal("done\n", files.read(path "out.txt"))
    assert.equal(4, (fills(path "xe.json")))
  end)

  it("writes after an error, with its status", function()
    files.write(path "broken.lua", [[
      local tp = require "tpstream"
      local x = tp.zeros("i32", 1000)
      x:fill(1)
      error "broken"
    ]])
    local r = command("--timeline", path "broken.lua")
    assert.equal(1, r.status)
    assert.matches("broken\n.*traceback.*\ntimeline: 2 operations", r.stderr)
  end)

  for text, status in pairs { ["os.exit(5)"] = 5, ["os.exit(5, true)"] = 5,
    ["coroutine.wrap(os.exit)(0)"] = 0 } do
    it("writes at " .. text, function()
      files.write(path "exit.lua", [[
        local tp = require "tpstream"
        tp.zeros("i32", 1000):fill(1)
      ]] .. text)
      local r = command("--timeline", path "exit.lua")
      assert.equal(status, r.status)
      assert.matches("^timeline: 2 operations", r.stderr)
    end)
  end

  it("#fault writes what there is of a faulted device", function()
    files.write(path "fault.lua", [[
      local tp = require "tpstream"
      local gate = require "spec.support.gate"
      gate.run(tp.current_stream(), "put", nil, 0, 1)
    ]])
    local r = command("--timeline", path "fault.lua")
    assert.equal(1, r.status)
    assert.matches("\ntimeline: %d+ operations?.*\n1 operation failed\n", r.stderr)
  end)

  it("does not wait for what Ctrl-C has ended the wait for", function()
    files.write(path "forever.lua", [[
      local tp = require "tpstream"
      local gate = require "spec.support.gate"
      local s, u, g = tp.Stream(), tp.Stream(), gate.new()
      local x = tp.zeros("i32", 4)
      tp.with_stream(u, x.fill, x, 1)
      u:synchronize()
      g:hold(s)
      tp.with_stream(s, x.fill, x, 2)
      s:synchronize()
    ]])
    local from = os.time()
    local r = run.command({ COMMAND, "--timeline", path "forever.lua" },
      { signal = "INT", after = 1 })
    assert.equal(1, r.status, r.stderr)
    assert.is_true(os.time() - from < 8)
    assert.matches("interrupted!\n.*\ntimeline: %d+ operations on %d streams", r.stderr)
    assert.matches("\nstream %d+ +|[^|]*%?|", r.stderr)
    assert.matches("\n%l+:0 stream %d+: gate, [^\n]*gate%.lua:%d+, had not ended, "
      .. "and 1 behind it\n2 operations had not ended\n", r.stderr)
  end)

  it("writes nothing much of a script that uses no device", function()
    local r = command("--timeline", path "none.json", "-e", "print(1)")
    assert.equal(0, r.status)
    assert.equal("1\n", r.stdout)
    assert.is_table(json.read(files.read(path "none.json")).traceEvents)
  end)

  it("may be used beside tp.timeline", function()
    files.write(path "both.lua", [[
      local tp = require "tpstream"
      local x = tp.zeros("i32", 1000)
      tp.timeline.start()
      x:fill(1)
      print(#tp.timeline.stop())
      x:fill(2)
    ]])
    local r = command("--timeline", path "both.lua")
    assert.equal("1\n", r.stdout)
    assert.matches("^timeline: 3 operations", r.stderr)
  end)

  it("may be used beside --check", function()
    local r = command("--check", "--timeline", path "fill.lua")
    assert.equal(0, r.status, r.stderr)
    assert.matches("^timeline: 4 operations.*ERROR SUMMARY: 0 errors\n$",
      r.stderr)
  end)

  it("says before the script runs that a file can't be written", function()
    local r = command("--timeline", folder .. "/no/x.html", path "fill.lua")
    assert.equal(1, r.status)
    assert.equal("", r.stdout)
    assert.equal(("%s: cannot write the timeline to '%s/no/x.html': No such file "
      .. "or directory\n"):format(COMMAND, folder), r.stderr)
  end)

  it("leaves nothing behind where the script never ran", function()
    files.write(path "wrong.lua", "x = = 1")
    files.write(path "kept.json", "as it was")
    for _, words in ipairs { { path "no.lua" }, { path "wrong.lua" },
      { "-e", "x = = 1" }, { "-e", "x = 1", path "no.lua" }, { "-l", "no.module" } } do
      for _, name in ipairs { "new.html", "kept.json" } do
        local r = command("--timeline", path(name), table.unpack(words))
        assert.equal(1, r.status)
        assert.equal("", r.stdout)
      end
      assert.is_nil(io.open(path "new.html"))
      assert.equal("as it was", files.read(path "kept.json"))
    end
    local r = command("--timeline", path "no.lua")
    assert.equal(1, r.status)
    assert.matches("^[^\n]*cannot open [^\n]*\n$", r.stderr)
  end)

  it("leaves nothing behind where a script is killed", function()
    command("--timeline", path "killed.html", "-e", "os.execute 'kill -9 $PPID'")
    assert.is_nil(io.open(path "killed.html"))
  end)

  it("writes the last of two files, whatever they are called", function()
    local r = run.command { "sh", "-c", ("cd %s && %s --timeline xe.json "
      .. "--timeline le.json fill.lua"):format(folder, COMMAND) }
    assert.equal(0, r.status, r.stderr)
    assert.equal(4, (fills(path "le.json")))
  end)

  it("follows links to files that are not there yet", function()
    assert(os.execute("ln -s to.json " .. path "link.json"))
    local r = command("--timeline", path "link.json", path "fill.lua")
    assert.equal(0, r.status, r.stderr)
    assert.equal(4, (fills(path "to.json")))
  end)

  it("refuses another ending", function()
    for _, name in ipairs { "x.txt", "", ".html", "x.HTML" } do
      local r = command("--timeline=" .. name, path "fill.lua")
      assert.equal(2, r.status)
      assert.equal("", r.stdout)
      assert.matches("'--timeline' needs a file that ends in .html or .json, "
        .. "not '" .. name .. "'", r.stderr, 1, true)
    end
  end)
end)
