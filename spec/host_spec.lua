-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The command: its options, exit statuses, tracebacks, the prompt, Ctrl-C, and
-- the wait at the end of a script. What it shares with lua5.4 is compared with
-- lua5.4.
local run = require "spec.support.run"

local build = assert(os.getenv "TPS_BUILD")
local COMMAND = build .. "/tpstream"
local KEPT = { TPSTREAM_DEVICE = "sim", TPSTREAM_SIM_DEVICES = 1,
  TPSTREAM_HISTORY = "0" }

local function options_of(options)
  local copy = { env = {} }
  for k, v in pairs(options or {}) do copy[k] = v end
  copy.env = setmetatable({}, nil)
  for k, v in pairs(KEPT) do copy.env[k] = v end
  for k, v in pairs(options and options.env or {}) do copy.env[k] = v end
  return copy
end

local function tpstream(arguments, options)
  local words = { COMMAND }
  table.move(arguments, 1, #arguments, 2, words)
  return run.command(words, options_of(options))
end

local function script(text, options)
  local copy = options_of(options)
  copy.interpreter = COMMAND
  return run.script(text, copy)
end

-- The same command line under lua5.4, with its name in messages made ours.
local function same_as_lua(arguments, options)
  local ours = tpstream(arguments, options)
  local words = { "lua5.4" }
  table.move(arguments, 1, #arguments, 2, words)
  local theirs = run.command(words, options_of(options))
  local function plain(r, name)
    local text = r.stderr:gsub(name:gsub("%p", "%%%0"), "NAME")
    return { r.stdout, text, r.status }
  end
  assert.same(plain(theirs, "lua5.4"), plain(ours, COMMAND))
  return ours
end

local function with_file(text, fn)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  local ok, err = pcall(fn, path)
  os.remove(path)
  assert(ok, err)
end

describe("the command line", function()
  it("runs -e", function()
    local r = same_as_lua { "-e", "print(1 + 1)" }
    assert.equal("2\n", r.stdout)
  end)

  it("runs -e with the text joined", function()
    same_as_lua { "-eprint(7)" }
  end)

  it("runs several -e in order", function()
    local r = same_as_lua { "-e", "x = 1", "-e", "print(x)" }
    assert.equal("1\n", r.stdout)
  end)

  it("stops at the first -e that fails", function()
    local r = tpstream { "-e", "error 'first'", "-e", "print 'second'" }
    assert.equal(1, r.status)
    assert.equal("", r.stdout)
  end)

  it("requires -l into a global", function()
    local r = same_as_lua { "-l", "string", "-e", "print(string.rep('a', 3))" }
    assert.equal("aaa\n", r.stdout)
  end)

  it("requires -l into a global of another name", function()
    local r = same_as_lua { "-l", "s=string", "-e", "print(s.rep('b', 2))" }
    assert.equal("bb\n", r.stdout)
  end)

  it("requires tpstream by -l", function()
    local r = tpstream { "-l", "tp=tpstream", "-e", "print(type(tp.Stream))" }
    assert.equal("function\n", r.stdout)
  end)

  it("fails with 1 when -l finds no module", function()
    local r = tpstream { "-l", "no_such_module" }
    assert.equal(1, r.status)
    assert.matches("module 'no_such_module' not found", r.stderr, 1, true)
  end)

  it("shows Lua's version with -v and runs nothing", function()
    same_as_lua { "-v" }
  end)

  it("shows the version and goes on with -v and a script", function()
    with_file("print 'run'", function(path)
      same_as_lua { "-v", path }
    end)
  end)

  it("ignores Lua's variables with -E", function()
    local env = { LUA_INIT = "print 'init'", LUA_PATH = "/nowhere/?.lua" }
    local r = same_as_lua({ "-E", "-e", "print(package.path)" }, { env = env })
    assert.not_matches("init\n", r.stdout)
    assert.not_matches("/nowhere", r.stdout, 1, true)
  end)

  it("takes -- as the end of options", function()
    with_file("print(...)", function(path)
      same_as_lua { "--", path, "-e", "x" }
    end)
  end)

  it("reads standard input for -, with arguments", function()
    local r = same_as_lua({ "-", "a", "b" }, { stdin = "print(...)" })
    assert.equal("a\tb\n", r.stdout)
  end)

  it("reads standard input when there is no script", function()
    same_as_lua({}, { stdin = "#!shebang\nprint(debug.getinfo(1).short_src)" })
  end)

  it("counts the lines of standard input as they are", function()
    local r = same_as_lua({ "-" }, { stdin = "#!shebang\n\nerror 'x'" })
    assert.matches("stdin:3: x", r.stderr, 1, true)
  end)

  it("passes over a byte-order mark on standard input", function()
    same_as_lua({}, { stdin = "\xEF\xBB\xBFprint 'fine'" })
  end)

  for _, words in ipairs {
    { "-x" }, { "--nonsense" }, { "-e" }, { "-l" }, { "-vv" }, { "-e", "-i" },
    { "--device" }, { "-ii" }, { "--json" }, { "--infos" },
    { "--device", "--check", "x.lua" }, { "-device", "sim" }, { "--blocking=1" },
  } do
    it("refuses " .. table.concat(words, " ") .. " with 2", function()
      local r = tpstream(words)
      assert.equal(2, r.status)
      assert.matches("'" .. words[1] .. "'", r.stderr, 1, true)
      assert.matches("usage:", r.stderr, 1, true)
      assert.equal("", r.stdout)
    end)
  end

  it("shows every option with --help and -h", function()
    local r = tpstream { "--help" }
    assert.equal(0, r.status)
    assert.equal("", r.stderr)
    for _, word in ipairs {
      "-e", "-i", "-l", "-v", "-E", "-W", "--", "--help", "--version",
      "--device", "--devices", "--info", "--json", "--blocking",
      "--warnings", "--untrusted", "LUA_INIT",
      "TPSTREAM_DEVICE", "TPSTREAM_HISTORY", "TPSTREAM_NVRTC", "TPSTREAM_SIM_DEVICES",
      "TPSTREAM_SIM_THREADS", "TPSTREAM_SIM_MEMORY", "TPSTREAM_SIM_CAPABILITY",
      "TPSTREAM_SIM_TIMEOUT", "TPSTREAM_SIM_PEERS", "TPSTREAM_SIM_SEED",
    } do
      assert.matches(word, r.stdout, 1, true)
    end
    assert.equal(r.stdout, tpstream({ "-h" }).stdout)
  end)

  it("shows its version with --version", function()
    local r = tpstream { "--version" }
    assert.equal(0, r.status)
    assert.matches("^tpstream %d+%.%d+%.%d+ %(Lua 5%.4%.%d+%)\n$", r.stdout)
  end)

  it("says so when the output can't be written", function()
    for _, option in ipairs { "--version", "--info --json", "--devices" } do
      local r = run.command { "sh", "-c",
        ("%s %s > /dev/full"):format(COMMAND, option) }
      assert.equal(1, r.status)
    end
  end)
end)

describe("a script", function()
  local SHOW = [[
    local low = 0
    while arg[low - 1] do low = low - 1 end
    for i = low + 1, #arg do io.write("[", i, "]=", arg[i], " ") end
    print(select("#", ...), ...)]]

  it("gets its arguments in ... and arg", function()
    with_file(SHOW, function(path)
      same_as_lua { path, "a", "b c", "" }
      same_as_lua { "-W", "-e", "x = 1", path, "a", "-v" }
    end)
  end)

  it("has arg also without a script", function()
    same_as_lua { "-e", "print(#arg, arg[1])" }
  end)

  it("that is missing is named, with 1", function()
    local r = same_as_lua { "/nowhere/script.lua", "x" }
    assert.equal(1, r.status)
    assert.matches("/nowhere/script.lua", r.stderr, 1, true)
  end)

  it("that does not compile is shown with its line", function()
    local r = script "x = = 1"
    assert.equal(1, r.status)
    assert.matches(":1: unexpected symbol near '='", r.stderr, 1, true)
  end)

  it("that raises a string ends in a traceback", function()
    with_file("local function f() error 'boom' end\nf()", function(path)
      local r = same_as_lua { path }
      assert.equal(1, r.status)
      assert.matches(":1: boom\nstack traceback:", r.stderr, 1, true)
    end)
  end)

  it("that raises a number, nil or a table is shown as lua5.4 does", function()
    same_as_lua { "-e", "error(42)" }
    same_as_lua { "-e", "error()" }
    same_as_lua { "-e", "error {}" }
  end)

  it("that raises the module's error ends in its text and a traceback", function()
    local r = script [[
      local tp = require "tpstream"
      tp.load "this is no image"]]
    assert.equal(1, r.status)
    assert.matches(":2: [^\n]*\n.*stack traceback:", r.stderr)
    assert.matches(":2: in main chunk", r.stderr, 1, true)
  end)

  it("is followed by -i", function()
    with_file("y = 5", function(path)
      local r = tpstream({ "-i", path }, { stdin = "y + 1\n" })
      assert.matches("> 6\n", r.stdout, 1, true)
    end)
  end)

  it("runs LUA_INIT first, and LUA_INIT_5_4 before it", function()
    same_as_lua({ "-e", "print 'script'" },
                { env = { LUA_INIT = "print 'init'" } })
    same_as_lua({ "-e", "print 'script'" }, {
      env = { LUA_INIT = "print 'init'", LUA_INIT_5_4 = "print '5.4'" },
    })
  end)

  it("runs LUA_INIT from a file", function()
    with_file("print 'from a file'", function(path)
      same_as_lua({ "-e", "print 'script'" },
                  { env = { LUA_INIT = "@" .. path } })
    end)
  end)

  it("does not run when LUA_INIT fails", function()
    local r = same_as_lua({ "-e", "print 'script'" },
                          { env = { LUA_INIT = "error 'in init'" } })
    assert.equal(1, r.status)
    assert.equal("", r.stdout)
  end)

  it("finds modules where lua5.4 does", function()
    local env = { LUA_PATH = "/a/?.lua;;", LUA_CPATH = "/b/?.so;;" }
    same_as_lua({ "-e", "print(package.path, package.cpath)" }, { env = env })
    same_as_lua({ "-e", "print(package.path, package.cpath)" },
                { env = { LUA_PATH = false, LUA_CPATH = false } })
  end)

  it("can load C modules", function()
    local r = tpstream { "-e", "print(type(require 'lfs'.attributes))" }
    assert.equal("function\n", r.stdout)
  end)

  it("leaves no global of ours", function()
    same_as_lua { "-e", [[
      local names = {}
      for k in pairs(_G) do names[#names + 1] = k end
      table.sort(names)
      print(table.concat(names, " "))]] }
  end)

  it("has the module preloaded, and loads it when asked only", function()
    local r = tpstream { "-e", [[
      print(type(package.preload.tpstream), package.loaded.tpstream, tpstream)
      local tp = require "tpstream"
      print(tp == package.loaded.tpstream, tpstream)]] }
    assert.equal("function\tnil\tnil\ntrue\tnil\n", r.stdout)
    assert.equal("", r.stderr)
  end)

  it("is busted itself", function()
    local r = tpstream({ (os.getenv "TPS_LAUNCHER" or "/usr/bin/busted"), "--version" })
    assert.equal(0, r.status)
    assert.matches("^%d+%.%d+", r.stdout)
  end)
end)

describe("leaving", function()
  for _, case in ipairs {
    { "os.exit()", 0 }, { "os.exit(true)", 0 }, { "os.exit(false)", 1 },
    { "os.exit(7)", 7 }, { "os.exit(3, true)", 3 },
    { "os.exit(true, true)", 0 },
    { "coroutine.wrap(function() os.exit(4, true) end)()", 4 },
  } do
    it("by " .. case[1] .. " gives " .. case[2], function()
      assert.equal(case[2], same_as_lua({ "-e", case[1] }).status)
    end)
  end

  it("refuses a status that is no number", function()
    same_as_lua { "-e", "print(pcall(os.exit, 'x'))" }
  end)

  it("closes the state, so that finalizers run", function()
    same_as_lua { "-e", [[
      setmetatable({}, { __gc = function() print "collected" end })]] }
  end)

  it("shows the error of a finalizer", function()
    local r = script [[
      setmetatable({}, { __gc = function() error "in a finalizer" end })]]
    assert.equal(0, r.status)
    assert.matches("Lua warning: error in __gc", r.stderr, 1, true)
  end)

  it("shows the error of a finalizer no longer after @off", function()
    local r = script [[
      warn "@off"
      setmetatable({}, { __gc = function() error "in a finalizer" end })]]
    assert.equal("", r.stderr)
  end)

  it("shows no warning after @off", function()
    local r = script [[warn "@off" warn "hidden" warn "@on" warn("a", "b")]]
    assert.equal("Lua warning: ab\n", r.stderr)
  end)
end)

describe("the prompt", function()
  local function prompt(lines)
    local r = tpstream({ "-i" }, { stdin = lines })
    assert.equal(0, r.status)
    return r
  end

  it("prints the values of expressions", function()
    local r = prompt "1 + 1\n= 2, nil\n"
    assert.matches("> 2\n> 2\tnil\n> \n$", r.stdout)
  end)

  it("runs statements, and asks for more until they are whole", function()
    local r = prompt "for i = 1, 2 do\nio.write(i, ';')\nend\n"
    assert.matches("> >> >> 1;2;> \n$", r.stdout)
  end)

  it("goes on after an error", function()
    local r = prompt "error 'bad'\nprint 'still here'\n"
    assert.matches("stdin:1: bad\nstack traceback:", r.stderr, 1, true)
    assert.matches("still here\n", r.stdout, 1, true)
  end)

  it("tells a chunk that never becomes whole", function()
    local r = prompt "x =\n"
    assert.matches("unexpected symbol near <eof>", r.stderr, 1, true)
  end)

  it("takes its marks from _PROMPT and _PROMPT2", function()
    local r = prompt "_PROMPT = '$ ' _PROMPT2 = '$$ '\nprint(\n1)\n"
    assert.matches("$ $$ 1\n$ \n", r.stdout, 1, true)
  end)

  it("says which device is used", function()
    local r = prompt ""
    assert.matches("^tpstream [^\n]*simulated device is used", r.stdout)
  end)

  it("tells errors without the program's name", function()
    assert.equal("stdin:1: here\n", prompt("error 'here'\n").stderr:match "^[^\n]*\n")
  end)

  it("goes on after Ctrl-C in a busy line", function()
    local r = tpstream({ "-i" }, { signal = "INT", after = 0.7, stdin =
      "coroutine.wrap(function() while true do end end)()\nprint 'still here'\n" })
    assert.equal(0, r.status, r.stderr)
    assert.matches("interrupted!\nstack traceback:", r.stderr, 1, true)
    assert.matches("still here\n", r.stdout, 1, true)
  end)

  it("has the module ready", function()
    local r = prompt "tp = require 'tpstream'\ntp.device_count() >= 0\n"
    assert.matches("> true\n", r.stdout, 1, true)
  end)
end)

-- What the prompt shows on a terminal, which script(1) gives, for keys that are there
-- at once or come when the program waits, from the first prompt on. Last of all it is
-- told to end: an end of input that comes while it computes is none to a terminal.
local function typed(keys, options)
  options = options or {}
  if run.command({ "sh", "-c", "command -v script" }).status ~= 0 then
    pending "needs script(1)"
    return nil
  end
  -- exec: a shell in between would end at Ctrl-C
  local command = "exec " .. (options.around or "%s"):format(
    ("%s %s"):format(COMMAND, options.words or ""))
  local words = { "script", "-qec", command, "/dev/null" }
  local over = "os.exit()\n"
  if options.slowly then
    words = { "sh", "-c", ([[shown=$(mktemp)
      { n=0
        until grep -q '> ' "$shown" || [ $n -ge 100 ]; do sleep 0.1; n=$((n+1)); done
        while IFS= read -r k; do sleep 0.3; printf "$k"; done
      } | script -qec '%s' /dev/null >"$shown"
      status=$?
      cat "$shown"; rm "$shown"; exit $status]]):format(command) }
    over = "os.exit()\\n\n"
  end
  local r = run.command(words,
    options_of { stdin = keys and keys .. over, env = options.env, timeout = 20 })
  return (r.stdout:gsub("[\a\r]", ""):gsub("\27%[%?2004[hl]", "")), r
end

describe("the prompt on a terminal", function()
  local editor
  setup(function()
    editor = tpstream({ "--info" }).stdout:match "\nreadline +(%d[^\n]*)"
  end)

  it("comes by itself, and nowhere else", function()
    local text = typed "x = 40\nx + 2\n"
    if not text then return end
    assert.matches("tpstream [^\n]*simulated device is used[^\n]*\n.*\n42\n", text)
    for words, shown in pairs { ["-e 'print(1)'"] = "1\n", ["-v"] = "Lua 5.4" } do
      text = typed(nil, { words = words })
      assert.equal(shown, text:sub(1, #shown))
      assert.not_matches("simulated device is used", text)
      assert.not_matches("> ", text, 1, true)
    end
    local r = tpstream({}, { stdin = "x = 40\nprint(x + 2)\n" })
    assert.equal("42\n", r.stdout)
  end)

  local function edits(name, fn)
    it(name, function()
      if not editor then return pending "needs libreadline.so.8" end
      if typed "" then fn() end
    end)
  end

  edits("recalls lines", function()
    assert.matches("\n42\n.*\n42\n", (typed "6 * 7\n\27[A\n"))
    assert.matches("\n43\n", (typed "6 * 7\n\27[A\0011 + \n"))
  end)

  edits("keeps them for the next time, where and if asked to", function()
    local folder = os.tmpname()
    os.remove(folder)
    local env = { TPSTREAM_HISTORY = false, XDG_STATE_HOME = folder }
    typed("first = 'kept'\n\n  \nfirst\nfirst\n", { env = env })
    local file <close> = assert(io.open(folder .. "/tpstream/history"))
    assert.equal("first = 'kept'\nfirst\nos.exit()\n", file:read "a")
    local text = typed("\27[A\27[A\27[A\nfirst\n", { env = env })
    assert.matches("\nkept\n", text)
    local mode = run.command { "stat", "-c", "%a", folder .. "/tpstream/history" }
    assert.equal("600\n", mode.stdout)
    env.TPSTREAM_HISTORY = folder .. "/other"
    typed("1\n", { env = env })
    assert.equal("1\nos.exit()\n", assert(io.open(folder .. "/other")):read "a")
    env.TPSTREAM_HISTORY = "/proc/no/such/file"
    assert.matches("\n7\n", (typed("7\n", { env = env })))
    os.execute(("rm -r '%s'"):format(folder))
  end)

  edits("completes names, fields and methods", function()
    local text = typed("tp = require 'tpstream'\n"
      .. "s = tp.Strea\9()\n"
      .. "b = tp.buffe\9('i32', { 5, 6, 7 })\n"
      .. "s:priorit\9() + 30\n"
      .. "b:rea\9(3)[1]\n"
      .. "type(tp.kernels.transpos\9)\n"
      .. "d = s:devic\9()\n"
      .. "d:propertie\9().warp_size\n"
      .. "n = 0 repea\9 n = n + 1 unti\9 n > 4\n")
    assert.matches("\n30\n.*\n7\n.*\nfunction\n.*\n32\n", text)
    assert.matches("> tp.strict\n", (typed
      "tp = require 'tpstream'\ntp.str\9\n"))
    assert.matches("tp.set_device +tp.set_stream", (typed
      "tp = require 'tpstream'\ntp.set\9\9\9\n"))
    assert.matches("> math.no_such_field\n", (typed "math.no_such_f\9ield\n"))
    assert.matches("> _VERSION\nLua 5.4\n", (typed "_VE\9\n"))
    assert.matches("\nin Lua 5.4\n", (typed "'in '.._VE\9\n"))
    assert.matches("\n13%.14", (typed "1 ..math.p\9i\n"))
    assert.matches("\nrepeat\n", (typed "('repea\9t')\n")) -- no file of that name
  end)

  edits("completes by looking, without a call", function()
    local text = typed("m = { __index = function() calls = 1 end }\n"
      .. "t = setmetatable({}, m)\n"
      .. "type(t) -- t.a.b\9.c\9\n"
      .. "m.__index = setmetatable({ field_of_it = 8 }, { __index = t })\n"
      .. "t.field_\9\n"
      .. "calls\n"
      .. "function m.__eq() calls = 2 end\n"
      .. "tp = require 'tpstream'\n"
      .. "m.__index, t.another = print, 9\n"
      .. "m.__name = setmetatable({}, { __tostring = function() calls = 3 end })\n"
      .. "t.anoth\9\n"
      .. "package = nil string.find = nil\n"
      .. "t.anoth\9 + 1\n"
      .. "calls\n")
    assert.matches("\n8\n.*\nnil\n.*\n9\n.*\n10\n.*\nnil\n", text)
  end)

  -- The loop may begin late: an interrupt before it drops an empty line.
  edits("drops the line begun at Ctrl-C, and goes on", function()
    local text, r = typed([[
x = 1\nx = 2
\003
x\n
while true do end\n
\003
\003
\003
x + 5\n
]], { slowly = true })
    assert.equal(0, r.status)
    assert.matches("\n1\n.*interrupted!.*\n6\n", text)
  end)

  edits("drops all lines of what is not whole yet", function()
    assert.matches("\n8\n", (typed([[
for i = 1, 3 do\n
f(\n
\003
3 + 5\n
]], { slowly = true })))
  end)

  edits("gives the terminal back where a signal stops or ends it", function()
    local kill = "os.execute '(sleep 0.5; kill -%s $PPID) &'\\n\n"
    local text = typed(kill:format "TSTP" .. "6*1\n\n\\033[D7 + \n\\n\n"
      .. kill:format "TERM" .. "\n\n",
      { slowly = true, around = 'sh -mc "%s; stty -a; fg; stty -a"' })
    assert.matches(" icanon .* icanon ", text)
    assert.not_matches("-icanon", text, 1, true)
    assert.matches("\n43\n", text)
  end)

  edits("keeps no lines in what is no file", function()
    local path = os.tmpname()
    os.remove(path)
    run.command { "mkfifo", path }
    assert.matches("\n7\n", (typed("7\n", { env = { TPSTREAM_HISTORY = path } })))
    os.remove(path)
  end)
end)

describe("devices", function()
  it("are listed, one line each, with the one in use marked", function()
    local r = tpstream({ "--devices" }, { env = { TPSTREAM_SIM_DEVICES = 2 } })
    assert.equal(0, r.status)
    assert.matches("%* sim:0 [^\n]*capability %d+%.%d+[^\n]*\n", r.stdout)
    assert.matches("\n?  sim:1 ", r.stdout)
    assert.matches("the simulated device is used", r.stdout, 1, true)
  end)

  it("that are simulated are spoken of where they are used only", function()
    local chosen = { env = { TPSTREAM_DEVICE = false } }
    local r = tpstream({ "-e",
      "io.write(require 'tpstream'.device():kind())" }, chosen)
    for _, option in ipairs { "--devices", "--info" } do
      local text = tpstream({ option }, chosen).stdout
      assert.equal(r.stdout == "sim", text:find("the simulated device is used",
        1, true) ~= nil, text)
    end
  end)

  it("are chosen by --device", function()
    local text = "print(require 'tpstream'.current_device():index())"
    for _, words in ipairs {
      { "--device", "sim:1", "-e", text }, { "--device=sim:1", "-e", text },
    } do
      local r = tpstream(words, { env = { TPSTREAM_SIM_DEVICES = 2 } })
      assert.equal("1\n", r.stdout)
    end
  end)

  it("are no script's, when they are listed", function()
    for _, words in ipairs { { "--devices", "sim", "x.lua" }, { "--info", "sim" } } do
      local r = tpstream(words)
      assert.equal(2, r.status)
      assert.equal("", r.stdout)
      assert.matches(": unexpected 'sim': --devices and --info run no script "
        .. "(--device X chooses a device)\nusage: ", r.stderr, 1, true)
    end
  end)

  it("win over the environment", function()
    local r = tpstream({ "--device", "sim", "-e",
      "print(require 'tpstream'.current_device():kind())" },
      { env = { TPSTREAM_DEVICE = "cuda:63" } })
    assert.equal("sim\n", r.stdout)
  end)

  for _, name in ipairs { "sim:9", "cuda:99", "gpu", "", "-1", "sim:x" } do
    it("that are not there (" .. name .. ") end with 3", function()
      local r = tpstream { "--device=" .. name, "-e", "print 'ran'" }
      assert.equal(3, r.status)
      assert.equal("", r.stdout)
      assert.matches("--device " .. name, r.stderr, 1, true)
      assert.matches("visible: [^\n]*sim:0\n", r.stderr)
      if name:find ":%d+$" then return end
      assert.matches(("no such device '%s' (a device is \"cuda\", \"cuda:N\", "
        .. "\"sim\", \"sim:N\" or N)\n"):format(name), r.stderr, 1, true)
    end)
  end

  it("are never told in a script's output", function()
    local r = tpstream { "-e", "require 'tpstream'.Stream():close()" }
    assert.equal("", r.stdout .. r.stderr)
  end)
end)

-- A JSON reader, strict: what it does not know is an error.
local function parse_json(text)
  local at = 1
  local value
  local function fail(what)
    error(("%s at byte %d: %q"):format(what, at, text:sub(at, at + 20)), 0)
  end
  local function take(pattern)
    local first, last, found = text:find("^[ \n\r\t]*" .. pattern, at)
    if not first then return nil end
    at = last + 1
    return found or true
  end
  local function string_value()
    local list = {}
    while true do
      local plain = text:match('^[^"\\\0-\31]+', at)
      if plain then
        assert(utf8.len(plain), "no UTF-8")
        list[#list + 1] = plain
        at = at + #plain
      elseif text:sub(at, at) == '"' then
        at = at + 1
        return table.concat(list)
      elseif text:find('^\\["\\/bfnrt]', at) then
        list[#list + 1] = text:sub(at + 1, at + 1)
        at = at + 2
      else
        local code = text:match("^\\u(%x%x%x%x)", at) or fail "bad string"
        list[#list + 1] = utf8.char(tonumber(code, 16))
        at = at + 6
      end
    end
  end
  local function members(close, one)
    local result = {}
    if take(close) then return result end
    repeat one(result) until not take ","
    return take(close) and result or fail "no end"
  end
  function value()
    if take "{" then
      return members("}", function(result)
        local key = take '"' and string_value() or fail "no key"
        assert(result[key] == nil and take ":", key)
        result[key] = value()
      end)
    elseif take "%[" then
      return members("]", function(result) result[#result + 1] = value() end)
    elseif take '"' then
      return string_value()
    end
    local word = take "(%a+)"
    if word then
      local known = { ["true"] = true, ["false"] = false, null = "null" }
      return assert(known[word] ~= nil, word) and known[word]
    end
    return tonumber(take "(-?%d+)" or fail "no value")
  end
  local result = value()
  if text:sub(at) ~= "\n" then fail "more after the end" end
  return result
end

describe("--json", function()
  local function json(words, options)
    local r = tpstream(words, options)
    assert.equal(0, r.status, r.stderr)
    assert.equal("", r.stderr)
    return parse_json(r.stdout)
  end

  it("lists devices with their properties", function()
    local two = { env = { TPSTREAM_SIM_DEVICES = 2 } }
    local d = json({ "--devices", "--json", "--device", "sim:1" }, two)
    local sims = {}
    for _, device in ipairs(d.devices) do
      if device.kind == "sim" then sims[#sims + 1] = device end
    end
    assert.equal(2, #sims)
    assert.is_false(sims[1].in_use)
    assert.is_true(sims[2].in_use)
    assert.equal(1, sims[2].index)
    assert.matches("the simulated device is used", d.notice, 1, true)
    local r = tpstream({ "-e", [[
      local p = require "tpstream".device():properties()
      for k, v in pairs(p) do
        print(k, type(v) == "table" and table.concat(v, ",") or v)
      end]] })
    local count = 0
    for key, text in r.stdout:gmatch "(%S+)\t([^\n]*)" do
      local v = sims[1][key]
      assert.equal(text, tostring(type(v) == "table" and table.concat(v, ",")
        or v), key)
      count = count + 1
    end
    assert.is_true(count > 25)
  end)

  it("tells every part", function()
    local i = json({ "--info", "--json" }, { env = {
      TPSTREAM_SIM_MEMORY = "64M", TPSTREAM_SIM_TIMEOUT = "1.5",
      TPSTREAM_SIM_SEED = "18446744073709551615",
    } })
    assert.matches("^%d+%.%d+%.%d+$", i.tpstream.version)
    assert.equal(COMMAND, i.tpstream.path)
    assert.equal("5.4", i.lua.version:match "^%d+%.%d+")
    assert.equal(64 << 20, i.simulated.memory)
    assert.equal(1500000000, i.simulated.timeout_ns)
    assert.equal("18446744073709551615", i.simulated.seed)
    assert.is_true(i.simulated.peers)
    assert.is_true(#i.devices >= 1)
    assert.is_true(i.nvrtc == "null" or i.nvrtc.path:find "libnvrtc" ~= nil)
    assert.equal(i.nvrtc == "null", i.nvrtc_error ~= "null")
    assert.is_true(i.nvjitlink == "null"
      or i.nvjitlink.path:find "libnvJitLink" ~= nil)
    assert.equal(i.nvjitlink == "null", i.nvjitlink_error ~= "null")
    assert.is_true(i.cublas == "null" or i.cublas.path:find "libcublas" ~= nil)
    assert.equal(i.cublas == "null", i.cublas_error ~= "null")
    for _, key in ipairs { "toolkit", "runtime", "driver", "cache", "readline" } do
      assert.not_nil(i[key], key)
    end
  end)

  it("is valid whatever a path holds", function()
    local i = json({ "--info", "--json" }, { env = {
      TPSTREAM_NVRTC = "/no\"where\\\n\t\1\xff\xc3\xa9\xed\xa0\x80/\xf0\x9f\x98\x80",
    } })
    assert.matches("/no\"where\\", i.nvrtc_error, 1, true)
    assert.matches("\u{FFFD}\u{E9}\u{FFFD}\u{FFFD}\u{FFFD}/\u{1F600}",
                   i.nvrtc_error, 1, true)
  end)

  it("says which setting of the cache can't be used", function()
    local i = json({ "--info", "--json" }, { env = { TPSTREAM_CACHE_SIZE = "lots" } })
    assert.matches("TPSTREAM_CACHE_SIZE is 'lots'", i.cache_error, 1, true)
    assert.equal("null", json({ "--info", "--json" }).cache_error)
  end)

  it("says which setting can't be used", function()
    local r = tpstream({ "--info", "--json" },
                       { env = { TPSTREAM_SIM_MEMORY = "much" } })
    assert.equal(3, r.status)
    local i = parse_json(r.stdout)
    assert.matches("TPSTREAM_SIM_MEMORY is 'much'", i.simulated.error, 1, true)
  end)
end)

describe("--info", function()
  it("tells versions, paths and settings", function()
    local r = tpstream({ "--info" }, { env = { TPSTREAM_SIM_THREADS = 3 } })
    assert.equal(0, r.status, r.stderr)
    for _, pattern in ipairs {
      "^tpstream +%d+%.%d+%.%d+, /", "\nLua +5%.4%.%d+", "\nCUDA toolkit +%S",
      "\nCUDA runtime +%S", "\nCUDA driver +%S", "\nNVRTC +%S",
      "\nnvJitLink +%S", "\ncuBLAS +%S", "\nreadline +%S",
      "\ncache +none", "\n%* sim:0 ",
      "the simulated device is used",
      "TPSTREAM_SIM_THREADS +3\n", "TPSTREAM_SIM_MEMORY +%d+ bytes",
    } do
      assert.matches(pattern, r.stdout)
    end
  end)

  it("says where NVRTC was looked for and how to get it", function()
    local r = tpstream({ "--info" },
                       { env = { TPSTREAM_NVRTC = "/nonexistent" } })
    assert.matches("NVRTC +none %(.*looked for in /nonexistent", r.stdout)
    assert.matches("CUDA_HOME", r.stdout, 1, true)
  end)

  it("says where cuBLAS and nvJitLink are, or were looked for", function()
    local r = tpstream { "--info" }
    for _, name in ipairs { "nvJitLink", "cuBLAS" } do
      local version, path = r.stdout:match("\n" .. name .. " +([%d.]+), (/%S+)\n")
      assert.is_truthy(version or r.stdout:find(name .. " +none %(.+%)\n"), name)
      if version then assert.is_truthy(io.open(path), path) end
    end
    local without = { env = { TPSTREAM_CUBLAS = "/nonexistent",
      TPSTREAM_NVRTC = "/nonexistent", LD_LIBRARY_PATH = false } }
    local shown = tpstream({ "--info" }, without).stdout
    local i = parse_json(tpstream({ "--info", "--json" }, without).stdout)
    if not shown:find("built without the CUDA toolkit", 1, true) then
      local why = "nothing to load at /nonexistent (from TPSTREAM_CUBLAS)"
      assert.matches("\ncuBLAS        none (" .. why .. ")\n", shown, 1, true)
      assert.equal(why, i.cublas_error)
      local other = tpstream({ "--info" }, { env = {
        TPSTREAM_CUBLAS = "libm.so.6" } }).stdout
      assert.matches("cuBLAS +none %(/.*libm.* lacks functions with sizes of 64 "
        .. "bits, which version 12 has%)", other)
    end
    if i.nvjitlink == "null" then
      local why = "nvJitLink, the CUDA linker, was not found: "
        .. "libnvJitLink.so.13, libnvJitLink.so.12 or libnvJitLink.so, looked "
        .. "for in the loader's own path"
      assert.equal(why, i.nvjitlink_error)
      assert.matches("nvJitLink     none (" .. why .. ")", shown, 1, true)
    end
  end)

  it("tells all but the device when that is not there, and ends with 3", function()
    for _, words in ipairs { { "--info" }, { "--info", "--json" } } do
      words[#words + 1] = "--device=sim:9"
      local r = tpstream(words)
      assert.equal(3, r.status)
      assert.matches("--device sim:9", r.stderr, 1, true)
      assert.matches("NVRTC", r.stdout:upper(), 1, true)
      if #words == 3 then parse_json(r.stdout) end
    end
  end)
end)

describe("--blocking", function()
  it("shows a fault at its launch", function()
    local text = [=[
      local tp = require "tpstream"
      local m = tp.load [[
.version 7.0
.target sm_80
.address_size 64
.visible .entry fail(.param .u64 p) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}]]
      local fail = m:kernel "fail"
      fail:launch({ grid = 1, block = 1 }, nil)
      print "not reached"]=]
    local r = tpstream { "--blocking", "-e", text }
    assert.equal(1, r.status)
    assert.equal("", r.stdout)
    assert.matches("cudaErrorIllegalAddress", r.stderr, 1, true)
    assert.matches(":15: in main chunk", r.stderr, 1, true)
  end)
end)

describe("Ctrl-C", function()
  local function interrupted(text, after)
    return script(text, { signal = "INT", after = after or 0.7 })
  end

  it("ends a busy script with a traceback and 1", function()
    local r = interrupted "local function f() while true do end end f()"
    assert.equal(1, r.status)
    assert.matches("interrupted!\nstack traceback:", r.stderr, 1, true)
  end)

  it("ends a busy coroutine inside coroutines", function()
    local r = interrupted [[
      local inner = coroutine.wrap(function() while true do end end)
      coroutine.wrap(function() inner() end)()]]
    assert.equal(1, r.status)
    assert.matches("interrupted!", r.stderr, 1, true)
  end)

  it("ends a script that makes and drops coroutines", function()
    local r = interrupted [[
      while true do coroutine.wrap(function() coroutine.yield() end)() end]]
    assert.equal(1, r.status)
    assert.matches("interrupted!", r.stderr, 1, true)
  end)

  it("can be caught, once", function()
    local r = interrupted [[
      print(pcall(function() while true do end end))
      print "goes on"]]
    assert.equal(0, r.status)
    assert.matches("^false\t[^\n]*interrupted!\ngoes on\n$", r.stdout)
  end)

  it("ends a wait", function()
    local r = interrupted([[
      local gate = require "spec.support.gate"
      local tp = require "tpstream"
      local g = gate.new()
      local s = tp.Stream()
      g:hold(s)
      print(pcall(s.synchronize, s))
      g:open()
      s:synchronize()
      print "done"]], 3) -- the gate may have to be compiled
    assert.equal(0, r.status, r.stderr)
    assert.matches("^false\t[^\n]*interrupted!\ndone\n$", r.stdout)
  end)
end)

describe("the end of a script", function()
  local HEAD = [==[
    local tp = require "tpstream"
    local module = require "spec.support.program"("host", [=[
      #include <stdio.h>
      __global__ void talk(int n) {
        for (int i = 0; i < 2000; i++) __nanosleep(10000);
        printf("n is %d\n", n);
      }
      __global__ void fail(int *p) { *p = 1; }]=])
    local one = { grid = 1, block = 1 }
    local talk, fail = module:kernel "talk", module:kernel "fail"
  ]==]

  it("waits for what is queued", function()
    local r = script(HEAD .. "talk:launch(one, 7)")
    assert.equal(0, r.status, r.stderr)
    assert.equal("n is 7\n", r.stdout)
  end)

  it("waits for it on streams that were closed or dropped", function()
    local r = script(HEAD .. [[
      do
        local s <close> = tp.Stream()
        tp.with_stream(s, talk.launch, talk, one, 8)
      end]])
    assert.equal("n is 8\n", r.stdout, r.stderr)
  end)

  it("waits likewise in os.exit", function()
    local r = script(HEAD .. "talk:launch(one, 9) os.exit(6)")
    assert.equal(6, r.status, r.stderr)
    assert.equal("n is 9\n", r.stdout)
  end)

  it("makes a fault that nobody has seen the status 1", function()
    for _, tail in ipairs { "", " os.exit()", " os.exit(0, true)" } do
      local r = script(HEAD .. "fail:launch(one, nil)" .. tail)
      assert.equal(1, r.status)
      assert.matches("kernel 'fail'", r.stderr, 1, true)
      assert.matches("cudaErrorIllegalAddress", r.stderr, 1, true)
    end
  end)

  it("leaves the status alone when the script has caught the fault", function()
    local r = script(HEAD .. [[
      fail:launch(one, nil)
      local d = tp.current_device()
      print(pcall(d.synchronize, d))]])
    assert.equal(0, r.status, r.stderr)
    assert.equal("", r.stderr)
    assert.matches("^false\t", r.stdout)
  end)

  it("shows an error that a fault caused once", function()
    local r = script(HEAD .. [[
      fail:launch(one, nil)
      tp.current_device():synchronize()]])
    assert.equal(1, r.status)
    local _, count = r.stderr:gsub("kernel 'fail'", "")
    assert.equal(1, count, r.stderr)
    assert.matches("stack traceback:", r.stderr, 1, true)
  end)
end)
