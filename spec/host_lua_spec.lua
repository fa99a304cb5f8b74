-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The command beside lua5.4: command lines that both run, with the same standard
-- input, environment and files. Output, messages and status must be equal but for
-- what the two call themselves, addresses, counts of skipped levels, and these
-- differences, which are meant:
--   usage       bad usage ends with 2, not 1, and a shorter text about options;
--   unnamed     an error in a script that comes on standard input without being
--               asked for by "-" ends with 1; lua5.4 ends with 0;
--   prompt      the first line names this program; lua5.4's readline repeats what
--               it reads from a pipe;
--   unfinished  a chunk cut off by the end of input: we say what was expected,
--               lua5.4 says "(null)".
local run = require "spec.support.run"

local COMMAND = assert(os.getenv "TPS_BUILD") .. "/tpstream"
local PLAIN = "lua5.4"

-- Files in the folder of all runs; "$D" in a command line is that folder.
local FILES = {
  ["args.lua"] = [[
    local low = 0
    while arg[low - 1] do low = low - 1 end
    for i = low, #arg do print(i, arg[i]) end
    print(select("#", ...), ...)]],
  ["empty.lua"] = "",
  ["fails.lua"] = "local function f(x)\n  error 'boom'\nend\nf(1)\n",
  ["calls.lua"] = [[
local t = {}
function t.method(x) return x.y.z end
local function tail(x) return t.method(x) end
local co = coroutine.wrap(function() local v = tail {} return v end)
local function deep(n) if n == 0 then co() else local r = deep(n - 1) return r end end
deep(30)]],
  ["syntax.lua"] = "x = = 1\n",
  ["unfinished.lua"] = "for i = 1, 2 do\n",
  ["shebang.lua"] = "#!/usr/bin/env lua\nprint 'shebang'\nerror 'line 3'\n",
  ["bom.lua"] = "\xEF\xBB\xBF# comment\nprint 'bom'\n",
  ["value.lua"] = "return { value = 42, name = ... }\n",
  ["broken.lua"] = "error 'in a module'\n",
  ["input.lua"] = "for line in io.lines() do print('[' .. line .. ']') end\n",
  ["sets.lua"] = "x, y = 1, 2\nreturn 3\n",
  ["-dash.lua"] = "print 'dash'\n",
}

local SHOW_PATHS = "print(package.path) print(package.cpath)"
local IN_PATH = { LUA_PATH = "$D/?.lua" }

-- Each: the words, then what is special.
local CASES = {
  -- -e
  { "-e", "print(1 + 1)" },
  { "-eprint(7)" },
  { "-e", "x = 1", "-e", "print(x)" },
  { "-e", "error 'first'", "-e", "print 'second'" },
  { "-e", "x =" },
  { "-e", "" },
  { "-e", " -- nothing\n" },
  { "-e", "print(...)", "$D/args.lua", "a" },
  { "-e", "print(#arg, arg[0], arg[1], arg[-1], arg[3])" },
  { "-e", "io.write 'no newline'" },
  { "-e", "io.stderr:write 'to stderr' io.stdout:write 'to stdout'" },
  { "-e", "return 5" },
  { "-e", "goto nowhere" },
  -- -l
  { "-l", "string", "-e", "print(string.rep('a', 3))" },
  { "-l", "s=string", "-e", "print(s.rep('b', 2), s == string)" },
  { "-lstring", "-e", "print(string ~= nil)" },
  { "-le" },
  { "-l", "value", "-e", "print(value.value, value.name)", env = IN_PATH },
  { "-l", "v=value", "-e", "print(v.value, value)", env = IN_PATH },
  { "-lv=value", "-e", "print(v.value)", env = IN_PATH },
  { "-l", "broken", env = IN_PATH },
  { "-l", "syntax", env = IN_PATH },
  { "-l", "no_such_module" },
  { "-l", "x=" },
  { "-e", "print 'before'", "-l", "no_such_module", "-e", "print 'after'" },
  -- -v, -E, -W, --, -
  { "-v" },
  { "-v", "$D/sets.lua" },
  { "-v", "-e", "print 'x'" },
  { "-v", "-v" },
  { "-E", "-e", SHOW_PATHS, env = { LUA_PATH = "/x/?.lua", LUA_CPATH = "/y" } },
  { "-E", "-e", "print 'x'", env = { LUA_INIT = "print 'init'" } },
  { "-W", "-e", "warn 'shown' warn('in ', 'parts')" },
  { "-e", "warn 'not shown'" },
  { "-e", "warn '@on' warn 'on' warn '@off' warn 'off' warn '@nonsense'" },
  { "-e", "warn 'a'", "-W", "-e", "warn 'b'" },
  { "-e", "warn('@on', 'x') warn('x', '@on') warn 'on' warn('a', '@off')" },
  { "-W", "-e", "setmetatable({}, { __gc = function() error 'late' end })" },
  { "-W", "-e", "setmetatable({}, { __gc = function() error {} end })" },
  { "--", "$D/args.lua", "-e", "x" },
  { "--", "-", stdin = "print 'not read'" },
  { "-", "a", "b", stdin = "print(...)" },
  { "-", stdin = "#!shebang\n\nerror 'x'" },
  { "-", stdin = "x = = 1" },
  { "-", "x", stdin = "print(arg[0], arg[1])" },
  { stdin = "#!shebang\nprint(debug.getinfo(1).short_src)" },
  { stdin = "\xEF\xBB\xBFprint 'fine'" },
  { stdin = "" },
  { stdin = "# only a comment" },
  { stdin = string.dump(load "print 'compiled'") },
  { stdin = "print(io.read())\n-- no input" },
  { stdin = "error 'at the top'", unnamed = true },
  { stdin = "x = = 1", unnamed = true },
  -- scripts
  { "$D/args.lua" },
  { "$D/args.lua", "a", "b c", "", "-v" },
  { "-W", "-e", "x = 1", "$D/args.lua", "a", "--device" },
  { "-e", "arg[1] = 'changed' arg[3] = 'more'", "$D/args.lua", "a", "b" },
  { "-e", "arg = nil", "$D/args.lua" },
  { "$D/fails.lua" },
  { "$D/calls.lua" },
  { "$D/syntax.lua" },
  { "$D/unfinished.lua" },
  { "$D/shebang.lua" },
  { "$D/bom.lua" },
  { "$D/empty.lua", "x" },
  { "$D/no_such_file.lua" },
  { "$D" },
  { "./-dash.lua" },
  { "$D/input.lua", stdin = "one\ntwo" },
  -- errors of every type
  { "-e", "error()" },
  { "-e", "error(42)" },
  { "-e", "error(4.5, 0)" },
  { "-e", "error(true)" },
  { "-e", "error {}" },
  { "-e", "error('no position', 0)" },
  { "-e", "error(setmetatable({}, { __tostring = function() return 'text' end }))" },
  { "-e", "error(setmetatable({}, { __tostring = function() return 7 end }))" },
  { "-e", "error(setmetatable({}, { __tostring = function() error 'no' end }))" },
  { "-e", "error(setmetatable({}, { __name = 'Named' }))" },
  { "-e", "error(io.stdout)" },
  { "-e", "local function f() return f() + 1 end f()" },
  { "-e", "local t = setmetatable({}, { __index = function(t, k) "
    .. "return t[k] end }) print(t.x)" },
  { "-e", "string.rep()" },
  { "-e", "('x'):rep(1e10)" },
  { "-e", "local a <close> = setmetatable({}, { __close = function() "
    .. "error 'closing' end })" },
  { "-e", "coroutine.wrap(function() error 'inside' end)()" },
  { "-e", "print(select('#', pcall(error)))" },
  -- leaving
  { "-e", "os.exit()" },
  { "-e", "os.exit(true)" },
  { "-e", "os.exit(false)" },
  { "-e", "io.write 'flushed' os.exit(7)" },
  { "-e", "os.exit(3.0, true)" },
  { "-e", "os.exit(256 + 5)" },
  { "-e", "setmetatable({}, { __gc = function() print 'gc' end }) os.exit(0)" },
  { "-e", "setmetatable({}, { __gc = function() print 'gc' end }) os.exit(0, true)" },
  { "-e", "coroutine.wrap(function() os.exit(4, true) end)()" },
  { "-e", "print(pcall(os.exit, 'x'))" },
  { "-e", "os.exit(1.5)" },
  { "-e", "setmetatable({}, { __gc = function() print 'collected' end })" },
  { "-e", "local t <close> = setmetatable({}, { __close = function() "
    .. "print 'closed' end }) error 'e'" },
  -- the environment
  { "-e", "print 'x'", env = { LUA_INIT = "print('init', arg[0] ~= nil)" } },
  { "-e", "print 'x'", env = { LUA_INIT = "print 'init'",
    LUA_INIT_5_4 = "print '5.4'" } },
  { "-e", "print(x, y)", env = { LUA_INIT = "@$D/sets.lua" } },
  { "-e", "print 'x'", env = { LUA_INIT = "@/no/such/file" } },
  { "-e", "print 'x'", env = { LUA_INIT = "error 'in init'" } },
  { "-e", "print 'x'", env = { LUA_INIT_5_4 = "x = = 1" } },
  { "-e", "print 'x'", env = { LUA_INIT = "@$D/fails.lua" } },
  { "-v", env = { LUA_INIT = "print 'init'" } },
  { "-e", SHOW_PATHS, env = { LUA_PATH = "/a/?.lua;;", LUA_CPATH = ";;/b/?.so" } },
  { "-e", SHOW_PATHS, env = { LUA_PATH = false, LUA_CPATH = false } },
  { "-e", SHOW_PATHS, env = { LUA_PATH = "/a", LUA_PATH_5_4 = "/a5;;",
    LUA_CPATH_5_4 = "/b5" } },
  -- the state that a script finds
  { "-e", "print(collectgarbage 'incremental')" },
  { "-e", [[
    local names = {}
    for k in pairs(_G) do names[#names + 1] = k end
    for k in pairs(package.loaded) do names[#names + 1] = k end
    table.sort(names)
    print(table.concat(names, " "))]] },
  { "-e", "print(_VERSION, math.maxinteger, os.setlocale())" },
  { "-e", "print(debug.traceback('here'))" },
  { "-e", "print(debug.getinfo(1, 'S').source, debug.gethook())" },
  -- bad usage
  { "-x", usage = true },
  { "--nonsense", usage = true },
  { "-e", usage = true },
  { "-l", usage = true },
  { "-e", "-i", usage = true },
  { "-l", "-v", usage = true },
  { "-vv", usage = true },
  { "-ii", usage = true },
  { "-iv", usage = true },
  { "-Ex", usage = true },
  { "-W1", usage = true },
  { "-v", "-x", usage = true },
  { "-e", "print 'not run'", "-?", usage = true },
  -- the prompt
  { "-i", prompt = true, stdin = "1 + 1\n= 2, nil\n" },
  { "-i", prompt = true, stdin = "" },
  { "-i", prompt = true, stdin = "1 + 1" },
  { "-i", prompt = true, stdin = "x = 5\nx\n=x\n  x\nx;\n" },
  { "-i", prompt = true, stdin = "for i = 1, 2 do\nprint(i)\nend\n" },
  { "-i", prompt = true, stdin = "= 1 +\n2\n" },
  { "-i", prompt = true, stdin = "return 1,\n2\n" },
  { "-i", prompt = true, stdin = "s = [[\nsome\n\ntext]]\ns\n" },
  { "-i", prompt = true, stdin = "f(\n1\n", unfinished = true },
  { "-i", prompt = true, stdin = "error 'bad'\nprint 'still here'\n" },
  { "-i", prompt = true, stdin = "error(nil)\nerror {}\nerror(7)\n" },
  { "-i", prompt = true, stdin = "x = = 1\n)\nnil.x\n" },
  { "-i", prompt = true, stdin = "local x = 1\nx\nlocal y = 2 print(y)\n" },
  { "-i", prompt = true, stdin = "-- comment\n\n\n1 -- one\n" },
  { "-i", prompt = true, stdin = "nil\nfalse\n\"a\\0b\"\n{} == {}\n" },
  { "-i", prompt = true, stdin = "print\n" },
  { "-i", prompt = true, stdin = "_PROMPT = '$ '\n_PROMPT2 = '$$ '\nprint(\n1)\n" },
  { "-i", prompt = true, stdin = "_PROMPT = 5\nprint 'x'\n" },
  { "-i", prompt = true, stdin = "_PROMPT = setmetatable({}, { __tostring = "
    .. "function() return 'p> ' end })\n3\n" },
  { "-i", prompt = true, stdin = "print = 5\n1\n2\n" },
  { "-i", prompt = true, stdin = "print = nil\n'gone'\n" },
  { "-i", prompt = true, stdin = "warn 'a'\nwarn '@on'\nwarn 'b'\n" },
  { "-i", prompt = true, stdin = "table.unpack({}, 1, 100)\n" },
  { "-i", prompt = true, stdin = "table.unpack({}, 1, 1e6)\n1\n" },
  { "-i", prompt = true, stdin = "os.exit(3)\nprint 'never'\n" },
  { "-i", prompt = true, stdin = "#arg, arg[0]\n" },
  { "-i", "$D/sets.lua", prompt = true, stdin = "x + y\n" },
  { "-i", "-e", "print 'e'", "$D/args.lua", "a", prompt = true, stdin = "#arg\n" },
  { "-i", "$D/fails.lua", prompt = true, stdin = "1\n" },
  { "-i", "-v", prompt = true, stdin = "1\n" },
  { "-v", "-i", "-E", prompt = true, stdin = "1\n" },
  { "-i", "-", prompt = true, stdin = "print 'all of it'\n" },
  { "-i", prompt = true, stdin = "x\n", env = { LUA_INIT = "x = 'init' print(x)" } },
  { "-i", prompt = true, stdin = "1\n", env = { LUA_INIT = "error 'init'" } },
  { "-i", prompt = true, stdin = ("x = 1 "):rep(300) .. "\nx\n" },
}

local folder

setup(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  for name, text in pairs(FILES) do
    local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
    file:write((text))
  end
end)

teardown(function() os.execute("rm -r " .. folder) end)

local function expand(text) return (text:gsub("%$D", folder)) end

local function environment(case)
  local env = {
    TPSTREAM_DEVICE = "sim", TPSTREAM_SIM_DEVICES = 1, TERM = "dumb",
    LUA_PATH = false, LUA_CPATH = false, INPUTRC = "/dev/null",
    COLUMNS = 5000,
  }
  for name, value in pairs(case.env or {}) do
    env[name] = value and expand(value)
  end
  return env
end

-- What readline repeats goes out: each line of the input, behind a prompt.
local PROMPTS = { "> ", ">> ", "$ ", "$$ ", "5", "p> " }

local function without_echo(text, input)
  local from = 1
  for line in (input:gsub("[^\n]$", "%0\n")):gmatch "([^\n]*)\n" do
    local first, last
    for _, prompt in ipairs(PROMPTS) do
      local at = text:find(prompt .. line .. "\n", from, true)
      if at and (not first or at < first) then
        first, last = at, at + #prompt
      end
    end
    if first then
      text = text:sub(1, last - 1) .. text:sub(last + #line + 1)
      from = last
    end
  end
  return text
end

local function run_one(name, case)
  local words = { name }
  for _, word in ipairs(case) do words[#words + 1] = expand(word) end
  local r = run.command(words, { env = environment(case), stdin = case.stdin })
  local function plain(text)
    text = text:gsub(name:gsub("%p", "%%%0"), "NAME")
    return (text:gsub("0x%x+", "ADDRESS"):gsub("skipping %d+", "skipping many"))
  end
  return {
    stdout = plain(r.stdout), stderr = plain(r.stderr),
    status = r.status or "signal " .. tostring(r.signal),
  }
end

-- What is meant to differ, made equal; each is looked at first.
local function reconcile(case, theirs, ours)
  if case.usage then
    assert.equal(1, theirs.status)
    assert.equal(2, ours.status)
    assert.matches("\nusage: NAME ", ours.stderr, 1, true)
    theirs.status = 2
    theirs.stderr = theirs.stderr:match "[^\n]*"
    ours.stderr = ours.stderr:match "[^\n]*"
  end
  if case.unnamed then
    assert.equal(0, theirs.status)
    theirs.status = 1
  end
  if case.prompt then
    local count
    theirs.stdout, count = theirs.stdout:gsub("^Lua 5[^\n]*\n", "")
    assert.equal(1, count)
    ours.stdout, count = ours.stdout:gsub("^tpstream %d[^\n]*\n", "")
    assert.equal(1, count)
    theirs.stdout = without_echo(theirs.stdout, case.stdin)
  end
  if case.unfinished then
    assert.equal("(null)\n", theirs.stderr)
    assert.matches("^stdin:%d+: .* near <eof>\n$", ours.stderr)
    theirs.stderr = ours.stderr
  end
end

local function title(case)
  local words = {}
  for i, word in ipairs(case) do
    words[i] = #word > 40 and word:sub(1, 37) .. "..." or word
  end
  if case.stdin then
    words[#words + 1] = ("< %q"):format(case.stdin:sub(1, 40))
  end
  for name, value in pairs(case.env or {}) do
    words[#words + 1] = ("%s=%s"):format(name, value)
  end
  return (table.concat(words, " "):gsub("%s+", " "):gsub("[^ -~]", "?"))
end

describe("like lua5.4:", function()
  for i, case in ipairs(CASES) do
    it(("%d. %s"):format(i, title(case)), function()
      local theirs, ours = run_one(PLAIN, case), run_one(COMMAND, case)
      reconcile(case, theirs, ours)
      assert.same(theirs, ours)
    end)
  end

  for _, input in ipairs { "<&-", "< /" } do
    it("standard input that can't be read, " .. input, function()
      local function try(name)
        local r = run.command { "sh", "-c", name .. " - " .. input }
        return { r.stdout, r.stderr:gsub("^[^:]*: ", ""), r.status }
      end
      assert.same(try(PLAIN), try(COMMAND))
    end)
  end
end)
