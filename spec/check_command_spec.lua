-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tpstream --check: what it prints, and exit statuses. The example of docs/checking.md
-- is run, too: with TPS_WRITE_DOCS=1 the page gets what is printed.
local files = require "spec.support.files"
local run = require "spec.support.run"

local COMMAND = assert(os.getenv "TPS_BUILD") .. "/tpstream"
local PAGE = "docs/checking.md"

-- Runs demo.lua with that text, in a folder of its own.
local function check(option, text, arguments, env)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir '%s'"):format(folder)))
  files.write(folder .. "/demo.lua", text)
  local r = run.command({ "sh", "-c", ("cd '%s' && exec '%s' %s demo.lua %s"):format(
    folder, COMMAND, option, arguments or "") }, { env = env })
  os.execute(("rm -r '%s'"):format(folder))
  return r
end

local HEAD = [[
local tp = require "tpstream"
local s, t = tp.Stream(), tp.Stream()
local x = tp.zeros("i32", 100)
]]
local BAD = HEAD .. [[
tp.with_stream(s, x.fill, x, 1)
tp.with_stream(t, x.fill, x, 2)
]]
local GOOD = HEAD .. [[
tp.with_stream(s, x.fill, x, 1)
t:wait_stream(s)
tp.with_stream(t, x.fill, x, 2)
]]
local REPORT = [[
========= Missing order between two writes of int32[100] made at demo.lua:3, ]]
  .. [[elements 1 to 100
=========     write  fill on stream 1, demo.lua:4
=========     write  fill on stream 2, demo.lua:5
=========     missing: nothing makes stream 2 wait for that work of stream 1
=========     add s2:wait_stream(s1) before demo.lua:5, or e = s1:record_event() ]]
  .. [[after demo.lua:4 and s2:wait_event(e) before demo.lua:5
=========
]]

describe("tpstream --check", function()
  it("prints what it finds and how much, and ends with status 4", function()
    for _, option in ipairs { "--check", "--check=order", "--check=race,order" } do
      local r = check(option, BAD)
      assert.equal(REPORT .. "========= ERROR SUMMARY: 1 error\n", r.stderr)
      assert.equal("", r.stdout)
      assert.equal(4, r.status)
    end
  end)

  it("says so when there is nothing", function()
    for _, option in ipairs { "--check", "--check=order" } do
      local r = check(option, GOOD)
      assert.equal("========= ERROR SUMMARY: 0 errors\n", r.stderr)
      assert.equal(0, r.status)
    end
    local r = check("--check=race", BAD)
    assert.equal("========= ERROR SUMMARY: 0 errors\n", r.stderr)
    assert.equal("", check("", BAD).stderr)
  end)

  it("counts what it finds again", function()
    local r = check("--check", HEAD .. [[
for i = 1, 3 do
  tp.with_stream(s, x.fill, x, 1)
  tp.with_stream(t, x.fill, x, 2)
end]])
    assert.matches("\n=========\n========= 5 times: Missing order between two "
      .. "writes of int32%[100%] made at demo.lua:3, elements 1 to 100\n"
      .. "========= ERROR SUMMARY: 1 error\n$", r.stderr)
    assert.equal(4, r.status)
  end)

  it("leaves a script's own status, and takes the place of 0", function()
    local function status(text) return check("--check=order", text) end
    for text, expected in pairs {
      ["os.exit(0)"] = 4, ["os.exit()"] = 4, ["os.exit(true)"] = 4,
      ["os.exit(0, true)"] = 4, ["os.exit(3)"] = 3, ["os.exit(false)"] = 1,
      ["coroutine.wrap(function() os.exit(0) end)()"] = 4,
      ["x = setmetatable({}, { __gc = function() os.exit(0) end })"] = 4,
    } do
      local r = status(BAD .. text)
      assert.equal(expected, r.status, text)
      assert.equal(REPORT .. "========= ERROR SUMMARY: 1 error\n", r.stderr, text)
    end
    local r = status(BAD .. "error 'wrong'")
    assert.equal(1, r.status)
    assert.matches("wrong.*stack traceback.*========= ERROR SUMMARY: 1 error\n$",
      r.stderr)
    assert.equal(0, status(GOOD .. "os.exit(0)").status)
    assert.equal(0, status("").status)
  end)

  it("waits for what a script that fails has queued", function()
    local r = check("--check=init", [[
local tp = require "tpstream"
tp.set_device "sim"
local s = tp.Stream()
tp.with_stream(s, function()
  local x = tp.zeros("f32", 1 << 22)
  for i = 1, 20 do x:fill(i) end
  tp.kernels.sum(tp.buffer("f32", 100))
end)
error "wrong"]])
    assert.equal(1, r.status)
    assert.matches("wrong.*Uninitialized __global__ memory read of size 4 bytes.*"
      .. "launched at demo.lua:7\n.*========= ERROR SUMMARY: 1 error\n$", r.stderr)
  end)

  it("goes on when a script stops what it has started itself", function()
    local r = check("--check=order", HEAD .. [[
tp.check.start()
print(#tp.check.stop())
tp.with_stream(s, x.fill, x, 1)
tp.with_stream(t, x.fill, x, 2)
print(#tp.check.reports())]])
    assert.equal("0\n1\n", r.stdout)
    assert.matches("ERROR SUMMARY: 1 error\n$", r.stderr)
    assert.equal(4, r.status)
  end)

  it("tells each part of a script what it does wrong again", function()
    local r = check("--check=order", HEAD .. [[
for i = 1, 3 do
  tp.check.start()
  tp.with_stream(s, x.fill, x, 1)
  if i ~= 2 then tp.with_stream(t, x.fill, x, 2) end
  s:synchronize() t:synchronize()
  io.write(#tp.check.stop(), " ")
end
print(#tp.check.reports())]])
    assert.equal("1 0 1 1\n", r.stdout)
    assert.matches("2 times: [^\n]*\n========= ERROR SUMMARY: 1 error\n$", r.stderr)
  end)

  it("names the devices where there are several", function()
    local r = check("--check=order --device sim", [[
      local tp = require "tpstream"
      local h = tp.pinned("i32", 8)
      for i = 0, 1 do
        tp.set_device(i)
        h:fill(i)
      end
      h[1] = 1
      local r = tp.check.reports()
      print(r[1].first.on .. "; " .. r[1].second.on)
      print(r[1].text:match "missing: ([^\n]*)")
      print(r[1].hint)
      print(r[2].first.on .. ": " .. r[2].hint:match "^%S*")
      local wait = r[1].hint:match "^(.-) before"
      assert(load("local tp = ... " .. wait))(tp) -- may be written so
    ]], nil, { TPSTREAM_SIM_DEVICES = 2 })
    assert.equal([[
the default stream of sim:0; the default stream of sim:1
nothing makes the default stream of sim:1 wait for that work of the default ]]
    .. [[stream of sim:0
tp.default_stream(1):wait_stream(tp.default_stream(0)) before demo.lua:5, or ]]
    .. [[e = tp.default_stream(0):record_event() after demo.lua:5 and ]]
    .. [[tp.default_stream(1):wait_event(e) before demo.lua:5
the default stream of sim:1: tp.default_stream(1):synchronize()
]], r.stdout, r.stderr)
  end)

  it("refuses what is no check", function()
    local names = "there are order, memory, race, init, barrier"
    for option, name in pairs { ["--check=orders"] = "orders", ["--check="] = "",
      ["--check=order,"] = "", ["--check=order,x"] = "x" } do
      local r = check(option, GOOD)
      assert.equal(2, r.status)
      assert.equal(("%s: no check is called '%s'; %s\nusage: %s [options] [script "
        .. "[args]] (--help tells more)\n"):format(COMMAND, name, names, COMMAND),
        r.stderr)
    end
  end)

  it("adds up what is asked for twice", function()
    for _, option in ipairs { "--check=race --check=order",
      "--check=order --check=race", "--check --check=race" } do
      assert.equal(4, check(option, BAD).status, option)
    end
  end)

  it("tells what was meant by names behind a space", function()
    local function opening(option, name)
      local r = check(option .. " " .. name, GOOD)
      assert.equal(1, r.status)
      assert.equal("", r.stdout)
      local text, hint = r.stderr:match "^.-: cannot open (.-): [^\n(]*(.-)\n$"
      assert.equal(name, text, r.stderr) -- and no summary: nothing was checked
      return hint
    end
    for _, list in ipairs { "order", "race,order" } do
      assert.equal("(was --check=" .. list .. " meant?)", opening("--check", list))
    end
    assert.equal("(--check takes names behind '=', as in --check=order,race)",
      opening("--check", "oder"))
    assert.equal("(--timeline takes a file that ends in .html or .json)",
      opening("--timeline", "page.txt"))
    assert.equal("", opening("--check", "nosuch.lua"))
    assert.equal("", opening("--timeline", "nosuch.lua"))
    assert.equal("", opening("--check=order", "order"))
  end)

  it("says nothing of a script that does not compile", function()
    local r = check("--check", "x = = 1")
    assert.equal(1, r.status)
    assert.matches("^[^\n]*demo.lua:1: [^\n]*\n$", r.stderr)
  end)

  it("has nothing to say of the examples", function()
    for _, name in ipairs { "hello", "tasks", "pipeline" } do
      local r = run.command { COMMAND, "--check=order", "examples/" .. name .. ".lua" }
      assert.equal(0, r.status, r.stderr)
      assert.matches("========= ERROR SUMMARY: 0 errors\n$", r.stderr, name)
    end
  end)

  for _, page in ipairs { "README.md", "docs/streams.md", "docs/kernels.md",
    "docs/reference.md" } do
    it("has nothing to say of the programs of " .. page, function()
      local count = 0
      for program in files.read(page):gmatch "```lua\n(.-)```" do
        local r = check("--check=order", program)
        assert.equal(0, r.status, program .. r.stderr)
        assert.matches("========= ERROR SUMMARY: 0 errors\n$", r.stderr)
        count = count + 1
      end
      assert.is_true(count > 0)
    end)
  end
end)

-- With TPS_WRITE_DOCS: puts into the page what was printed.
local function write(page, before, shown, printed)
  if not os.getenv "TPS_WRITE_DOCS" then return false end
  local from, to = page:find(before .. "```text\n" .. shown, 1, true)
  files.write(PAGE, page:sub(1, from - 1) .. before .. "```text\n" .. printed
    .. page:sub(to + 1))
  return true
end

describe(PAGE, function()
  it("shows what its example prints", function()
    local page = files.read(PAGE)
    local program, before, shown = page:match(
      "```lua\n(.-)```\n(.-)```text\n(.-)```")
    local r = check("--check=order", program)
    if write(page, before, shown, r.stderr) then return end
    assert.equal(shown, r.stderr)
    assert.equal(4, r.status)
    local fixed = page:match("Three calls.-```lua\n(.-)```")
    local after = check("--check=order", fixed)
    assert.equal("========= ERROR SUMMARY: 0 errors\n", after.stderr)
    assert.equal("3.0\n", after.stdout)
  end)

  it("shows what is found inside its kernel", function()
    local page = files.read(PAGE)
    local inside = page:sub((page:find("## Inside kernels", 1, true)))
    local program, before, shown = inside:match(
      "```lua\n(.-)```\n(.-)```text\n(.-)```")
    local r = check("--check=init,barrier", program)
    if r.stderr:find("NO_COMPILER", 1, true) then return end -- needs NVRTC
    if write(page, before, shown, r.stderr) then return end
    local function plain(text) return (text:gsub("%+0x%x+", "+")) end
    if not os.getenv "TPSTREAM_SIM_SEED" then -- which has others come first
      assert.equal(plain(shown), plain(r.stderr))
    end
    assert.equal(4, r.status)
  end)
end)
