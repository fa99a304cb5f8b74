-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- kernels/ptx, what tp.kernels uses where there is no compiler: it is made from the
-- sources as they are, and it works there.
local run = require "spec.support.run"
local sources = require "spec.support.kernel_sources"
local instances = dofile "lua/tpstream/kernels_instances.lua"

describe("kernels/ptx", function()
  it("has what is listed, made from the sources as they are", function()
    for _, id in ipairs(instances.brought) do
      local packed = sources.read("kernels/ptx/" .. id .. ".lz")
      assert(string.unpack("<i8", packed) == sources.checksum(id),
        id .. " was left behind by a change; see tools/kernels_ptx.lua")
    end
  end)

  it("unpacks to PTX that old drivers know", function()
    for _, id in ipairs { "reduce-f32-sum", "sort-4-4", "transpose-8" } do
      local text = instances.expand(sources.read("kernels/ptx/" .. id .. ".lz"))
      assert.matches("^%.version 8.0\n%.target sm_80\n", text)
      assert.matches("%.entry [%w_]+%(", text)
    end
  end)

  it("serves without a compiler, another type is the compiler's error", function()
    local r = run.script([==[
      local tp = require "tpstream"
      local K = tp.kernels
      local x = K.iota(tp.buffer("f32", 5), 1)
      print(K.sum(x):read()[1], K.argmax(x):read()[1], K.norm(x, 2):read()[1] // 1)
      K.sort(x, { descending = true })
      print(table.concat(K.scan(x):read(), " "))
      print(table.concat(K.matmul(x, x, 1, 1, 5):read(), " "))
      print(#K.random_uniform(x, { seed = 1 }))
      local ok, e = pcall(K.sum, tp.zeros("i8", 5))
      print(ok, e.code)
      print(pcall(K.sum, tp.zeros("i32", 5), x))]==],
      { env = { TPSTREAM_NVRTC = "/nonexistent", TPSTREAM_CACHE = "0",
                TPS_COUNTS = "/dev/null" } })
    local lines = {}
    for line in r.stdout:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.same({ "15.0\t5\t7.0", "5.0 9.0 12.0 14.0 15.0", "55.0", "5",
      "false\tTPSTREAM_ERROR_NO_COMPILER" }, { table.unpack(lines, 1, 5) })
    assert.matches("bad argument #2 to 'sum'", lines[6])
  end)
end)
