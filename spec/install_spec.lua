-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Installs into a folder, moves that, and uses what is there: the command, the
-- module, the header, pkg-config, the CMake package and the examples.
local run = require "spec.support.run"

local build = assert(os.getenv "TPS_BUILD")
local source = assert(os.getenv "TPS_SOURCE")
local stage = build .. "/stage"
local prefix = stage .. "/moved"

local function sh(format, ...)
  local r = run.command({ "sh", "-c", format:format(...) }, { timeout = 200 })
  assert.equal(0, r.status, r.stdout .. r.stderr)
  return r.stdout
end

local function has(program)
  return run.command({ "sh", "-c", "command -v " .. program }).status == 0
end

-- The folder of a library below the prefix: lib, lib64 or lib/<triple>.
local function find(name)
  local path = sh("find '%s' -name '%s'", prefix, name):match "^(%S+)\n$"
  assert.is_string(path, name)
  return path
end

local EXPECTED = {
  "^tpstream [%d.]+, on sim:0\n", "\nbefore: 331%.2\n",
  "\nscript: got 1000 elements of 4 bytes on sim:0\n",
  "\nprogram: got 1000 elements back\n", "\nafter: 65%.5\n",
  "\nkept: 1000 elements of 32 bits\n", "\nreleased: 1\n$",
}

local function check_embed(program, env)
  local r = run.command({ program, prefix .. "/share/tpstream/examples/embed" },
    { env = env })
  assert.equal(0, r.status, r.stderr)
  for _, pattern in ipairs(EXPECTED) do assert.matches(pattern, r.stdout) end
  assert.equal("", r.stderr)
end

setup(function()
  sh("rm -rf '%s' && mkdir -p '%s'", stage, stage)
  sh("cmake --install '%s' --prefix '%s/first'", build, stage)
  sh("mv '%s/first' '%s'", stage, prefix)
end)

describe("the installation", function()
  it("has every file in its place", function()
    for _, name in ipairs {
      "bin/tpstream", "include/tpstream.h", "share/doc/tpstream/README.md",
      "share/doc/tpstream/LICENSE", "share/tpstream/examples/pipeline.ptx",
      "share/tpstream/examples/solar_system.lua",
      "share/tpstream/examples/embed/embed.c",
    } do
      sh("test -f '%s/%s'", prefix, name)
    end
    assert.matches("/lua/5%.4/tpstream%.so$", find "tpstream.so")
    assert.matches("/pkgconfig/tpstream%.pc$", find "tpstream.pc")
    assert.matches("/cmake/tpstream/tpstreamConfig%.cmake$",
      find "tpstreamConfig.cmake")
    find "tpstreamConfigVersion.cmake"
  end)

  it("goes below DESTDIR", function()
    sh("DESTDIR='%s/dest' cmake --install '%s' --prefix /opt/tps", stage, build)
    sh("test -x '%s/dest/opt/tps/bin/tpstream'", stage)
    sh("test -f '%s/dest/opt/tps/include/tpstream.h'", stage)
  end)

  it("knows nothing of where it was built", function()
    local text = sh("cat '%s' '%s'", find "tpstream.pc",
      find "tpstreamConfig.cmake")
    assert.is_nil(text:find(build, 1, true))
    assert.is_nil(text:find(source, 1, true))
  end)

  it("has a command that runs", function()
    local r = run.command { prefix .. "/bin/tpstream", "--device", "sim",
      prefix .. "/share/tpstream/examples/hello.lua" }
    if r.status ~= 0 and r.stderr:find "NO_COMPILER" then
      pending "needs the run-time compiler"
      return
    end
    assert.equal(0, r.status, r.stderr)
    assert.matches("12%.0 24%.0 36%.0 48%.0", r.stdout)
  end)

  it("has a module that lua5.4 can require", function()
    local text = 'print(require "tpstream"._VERSION)'
    local r = run.command({ "lua5.4", "-e", text }, {
      env = { LUA_CPATH = (find "tpstream.so"):gsub("tpstream%.so$", "?.so"),
        TPSTREAM_DEVICE = "sim" } })
    assert.equal(0, r.status, r.stderr)
    assert.matches("^%d+%.%d+%.%d+\n$", r.stdout)
  end)

  it("tells one version everywhere", function()
    local version = sh("'%s/bin/tpstream' --version", prefix)
      :match "%d+%.%d+%.%d+"
    local header = sh("cat '%s/include/tpstream.h'", prefix)
    local major, minor, patch = version:match "(%d+)%.(%d+)%.(%d+)"
    assert.equal(version, header:match '#define TPSTREAM_VERSION "([^"]+)"')
    assert.equal(major, header:match "#define TPSTREAM_VERSION_MAJOR (%d+)")
    assert.equal(minor, header:match "#define TPSTREAM_VERSION_MINOR (%d+)")
    assert.equal(patch, header:match "#define TPSTREAM_VERSION_PATCH (%d+)")
    assert.equal(version, sh("cat '%s'", find "tpstream.pc")
      :match "\nVersion: (%S+)")
    assert.equal(version, sh("cat '%s'", find "tpstreamConfigVersion.cmake")
      :match 'PACKAGE_VERSION "([^"]+)"')
  end)
end)

describe("tpstream.h", function()
  for name, command in pairs {
    ["C99"] = "cc -std=c99 -pedantic -x c",
    ["C11"] = "cc -std=c11 -pedantic -x c",
    ["C++"] = "c++ -std=c++11 -pedantic -x c++",
  } do
    it("compiles without a warning as " .. name, function()
      if not has(command:match "^%S+") then
        pending("no " .. command:match "^%S+")
        return
      end
      local lua = sh "pkg-config --cflags lua5.4 || echo -I/usr/include/lua5.4"
      sh("echo '#include <tpstream.h>' > '%s/one.c' && %s -Wall -Wextra "
        .. "-Werror -fsyntax-only -I'%s/include' %s '%s/one.c'", stage, command,
        prefix, lua:gsub("\n", " "), stage)
    end)
  end
end)

describe("examples/embed", function()
  it("builds with make and pkg-config, and runs", function()
    if not has "make" or not has "pkg-config" then
      pending "needs make and pkg-config"
      return
    end
    sh("mkdir -p '%s/make' && make -C '%s/share/tpstream/examples/embed' "
      .. "OUT='%s/make' PKG_CONFIG_PATH='%s' CFLAGS='-Wall -Wextra -Werror'",
      stage, prefix, stage, (find "tpstream.pc"):gsub("/[^/]*$", ""))
    check_embed(stage .. "/make/embed")
  end)

  it("builds with CMake, and runs, without the compiler too", function()
    sh("cmake -S '%s/share/tpstream/examples/embed' -B '%s/cmake' "
      .. "-DCMAKE_PREFIX_PATH='%s' && cmake --build '%s/cmake'", prefix, stage,
      prefix, stage)
    check_embed(stage .. "/cmake/embed")
    check_embed(stage .. "/cmake/embed", { TPSTREAM_NVRTC = "/nonexistent" })
  end)

  it("says what is missing", function()
    local r = run.command { stage .. "/cmake/embed", "/nonexistent" }
    assert.equal(1, r.status)
    assert.matches("^embed: cannot open /nonexistent/smooth%.lua", r.stderr)
    assert.matches("released: 0", r.stdout)
  end)

  it("is refused for a version that is not there", function()
    sh("mkdir -p '%s/wants' && printf '%%s\\n' "
      .. "'cmake_minimum_required(VERSION 3.18)' 'project(wants C)' "
      .. "'find_package(tpstream 0.2 REQUIRED)' > '%s/wants/CMakeLists.txt'",
      stage, stage)
    local r = run.command { "cmake", "-S", stage .. "/wants", "-B",
      stage .. "/wants/build", "-DCMAKE_PREFIX_PATH=" .. prefix }
    assert.not_equal(0, r.status)
    assert.matches("0%.2", r.stderr)
  end)
end)

teardown(function() os.execute(("rm -rf '%s'"):format(stage)) end)
