-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Compile: tp.compile_async.
local tp = require "tpstream"
local files = require "spec.support.files"
local run = require "spec.support.run"

local SOURCE = 'extern "C" __global__ void k%d(int *p) { *p = %d; }'

-- What pcall(fn, ...) raises; without NVRTC that is the end of the test.
local function raised(fn, ...)
  local ok, object = pcall(fn, ...)
  assert.is_false(ok)
  if type(object) == "table"
    and object.code == "TPSTREAM_ERROR_NO_COMPILER" then
    error(object, 0)
  end
  return object
end

describe("tp.compile_async", function()
  it("gives the Module to tp.await, several at once", function()
    tp.run(function()
      local out <close> = tp.zeros("i32", 1)
      local builds = {}
      for i = 1, 4 do
        builds[i] = tp.compile_async(SOURCE:format(i, 10 * i),
          { cache = false })
      end
      assert.is_false(builds[4]:query())
      assert.equal("tpstream.Build (building)", tostring(builds[4]))
      local modules = { tp.await_all(table.unpack(builds)) }
      for i, module in ipairs(modules) do
        assert.same({ "k" .. i }, module:kernels())
        assert.equal(module, (tp.await(builds[i])))
        assert.equal("tpstream.Build (done)", tostring(builds[i]))
        assert.is_false(builds[i]:cancel())
        module:kernel("k" .. i):launch({ grid = 1, block = 1 }, out)
        assert.same({ 10 * i }, out:read())
        module:close()
      end
    end)
  end)

  it("takes what tp.compile takes, and compiles instances on demand",
    function()
      local module = tp.run(function()
        return tp.await(tp.compile_async([[
          template <class T> __global__ void put(T *p) { *p = N; }
        ]], { defines = { N = 5 }, names = { "put<int>" }, name = "n.cu" }))
      end)
      assert.same({ "put" }, module:kernels())
      assert.equal("put", module:kernel("put<int>"):name())
      assert.equal("put", module:kernel("put<float>"):name())
      module:close()
    end)

  it("needs no task when it is polled", function()
    local build = tp.compile_async(SOURCE:format(1, 1))
    while not build:query() do tp.poll() end
    tp.run(function() tp.await(build):close() end)
  end)

  it("fails as tp.compile does, at its own line", function()
    local function source() return "__global__ void f() { int x = y; }" end
    local here = debug.getinfo(1, "l").currentline
    local build = tp.compile_async(source())
    local expected = raised(tp.compile, source())
    tp.run(function()
      for _ = 1, 2 do
        local object = raised(tp.await, build)
        assert.equal("NVRTC_ERROR_COMPILATION", object.code)
        assert.equal("spec/compile_async_spec.lua:" .. here + 1,
          object.position)
        assert.equal(expected.message, object.message)
        assert.equal(getmetatable(expected), getmetatable(object))
      end
      local other = raised(tp.await, tp.compile_async("int x;"))
      assert.equal(raised(tp.compile, "int x;").message, other.message)
    end)
  end)

  it("counts lines from the literal in the script", function()
    local r = run.script [==[
local tp = require "tpstream"
tp.run(function()
  local build = tp.compile_async [[
    __global__ void f() {
      int x = y;
    }
  ]]
  tp.sleep(1)
  print(pcall(tp.await, build))
end)]==]
    assert.matches(":3: compilation failed: 1 error", r.stdout)
    assert.matches(":5: error: identifier \"y\" is undefined", r.stdout)
  end)

  it("refuses bad arguments at once", function()
    assert.matches("string expected, got no value", raised(tp.compile_async))
    assert.matches("unknown option 'nam'",
      raised(tp.compile_async, "x", { nam = 1 }))
    assert.matches("the source is empty", raised(tp.compile_async, ""))
  end)

  it("can be cancelled", function()
    tp.run(function()
      local build = tp.compile_async(SOURCE:format(1, 1), { cache = false })
      local task = tp.spawn(function() return pcall(tp.await, build) end)
      coroutine.yield()
      assert.is_true(build:cancel())
      assert.is_false(build:cancel())
      local ok, message = tp.await(task)
      assert.is_false(ok)
      assert.matches("^spec/compile_async_spec.lua:%d+: the compile was "
        .. "cancelled$", message)
      do
        local inner <close> = tp.compile_async(SOURCE:format(2, 2))
        build = inner
      end
      assert.matches("cancelled", raised(tp.await, build))
    end)
  end)

  it("ends an untrusted one where it is", function()
    local build = tp.compile_async([[
      template <int A, int B> struct t {
        enum { v = (t<A - 1, B>::v + t<A - 1, B + 1>::v) % 1000 };
      };
      template <int B> struct t<0, B> { enum { v = B }; };
      __global__ void f(int *p) { *p = t<190, 0>::v; }
    ]], { untrusted = true, cache = false })
    tp.run(function()
      tp.sleep(50)
      build:cancel()
      assert.matches("cancelled", raised(tp.await, build))
    end)
  end)

  it("is forgotten with its Build", function()
    for i = 1, 3 do tp.compile_async(SOURCE:format(i, 0), { cache = false }) end
    collectgarbage()
    tp.run(function() tp.sleep(1) end)
  end)
end)

describe("the end, while something compiles,", function()
  local SCRIPT = [[
local tp = require "tpstream"
for i = 1, 3 do
  tp.compile_async(('__global__ void k(int *p) { *p = %%d; }'):format(i),
    { cache = false })
end
%s]]
  local function check(how)
    local r = run.script(SCRIPT:format(how))
    assert.equal("", r.stderr)
    assert.equal(0, r.status, how)
  end

  for _, how in ipairs { "", "os.exit(0, true)", "os.exit(0)" } do
    it("is clean: " .. (how == "" and "lua_close" or how), function()
      check(how)
    end)
  end

  it("is clean at any moment of the first compile", function()
    for _, ms in ipairs { 0, 3, 6, 10, 15, 20, 25, 30, 40, 50 } do
      check(("tp.run(tp.sleep, %d) os.exit(0)"):format(ms))
    end
  end)

  it("does not wait for what has not begun", function()
    local folder <close> = setmetatable({ path = files.folder() },
      { __close = function(self) files.remove(self.path) end })
    local r = run.script([[
local tp = require "tpstream"
for i = 1, 400 do
  tp.compile_async(('__global__ void k(int *p) { *p = %d; }'):format(i))
end
os.exit(0)]], { env = { TPSTREAM_CACHE = "1", TPSTREAM_CACHE_DIR = folder.path } })
    assert.equal("", r.stderr)
    assert.equal(0, r.status)
    local list <close> = assert(io.popen("ls " .. folder.path))
    local _, kept = list:read "a":gsub("\n", "")
    assert.is_true(kept < 300, kept)
  end)
end)
