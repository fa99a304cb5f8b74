-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- docs/reference.md, section Compile: tp.load of machine code, in a CUBIN or a
-- fatbin. The fatbins here hold PTX of
--   __device__ int v = 3;
--   extern "C" __global__ void k(int *p) { *p = v + 4; }
-- for compute_75 and compute_80, as nvcc 13 writes it, plain and compressed in its
-- two ways (--compress-mode=none, speed and size), in hexadecimal.
local tp = require "tpstream"
local CUBIN = require "spec.support.cubin"

local function bytes(hex)
  return (hex:gsub("%s", ""):gsub("..", function(two)
    return string.char(tonumber(two, 16))
  end))
end

local FATBINS = {
  none = bytes [[
50ed55ba01001000100300000000000001000101500000003801000000000000000000004000
0000000009005000000000000000000000001100000000000000000000000000000000000000
00000000480000000000000000000000000000000a0a0a0a0a0a0a0a2e76657273696f6e2039
2e300a2e74617267657420736d5f38300a2e616464726573735f73697a652036340a0a0a2e67
6c6f62616c202e616c69676e2034202e7533322076203d20333b0a0a2e76697369626c65202e
656e747279206b280a2e706172616d202e753634206b5f706172616d5f300a290a7b0a2e7265
67202e6233322025723c333e3b0a2e726567202e623634202572643c333e3b0a0a0a6c642e70
6172616d2e75363420257264312c205b6b5f706172616d5f305d3b0a637674612e746f2e676c
6f62616c2e75363420257264322c20257264313b0a6c642e676c6f62616c2e75333220257231
2c205b765d3b0a6164642e733332202572322c202572312c20343b0a73742e676c6f62616c2e
753332205b257264325d2c202572323b0a7265743b0a0a7d0a0a000001000101500000003801
0000000000000000000040000000000009004b00000000000000000000001100000000000000
00000000000000000000000000000000480000000000000000000000000000000a0a0a0a0a0a
0a0a2e76657273696f6e20392e300a2e74617267657420736d5f37350a2e616464726573735f
73697a652036340a0a0a2e676c6f62616c202e616c69676e2034202e7533322076203d20333b
0a0a2e76697369626c65202e656e747279206b280a2e706172616d202e753634206b5f706172
616d5f300a290a7b0a2e726567202e6233322025723c333e3b0a2e726567202e623634202572
643c333e3b0a0a0a6c642e706172616d2e75363420257264312c205b6b5f706172616d5f305d
3b0a637674612e746f2e676c6f62616c2e75363420257264322c20257264313b0a6c642e676c
6f62616c2e753332202572312c205b765d3b0a6164642e733332202572322c202572312c2034
3b0a73742e676c6f62616c2e753332205b257264325d2c202572323b0a7265743b0a0a7d0a0a
0000
  ]],
  speed = bytes [[
50ed55ba01001000b00200000000000001000101500000000801000000000000030100004000
0000000009005000000000000000000000001120000000000000000000000000000037010000
0000000048000000000000000000000000000000130a0100f03b2e76657273696f6e20392e30
0a2e74617267657420736d5f38300a2e616464726573735f73697a652036340a0a0a2e676c6f
62616c202e616c69676e2034202e7533322076203d20333b4c00f110697369626c65202e656e
747279206b280a2e706172616d202e753634206b5f0d00f4085f300a290a7b0a2e726567202e
6233322025723c333e3b1100613634202572641200420a0a6c64410001400075257264312c20
5b4700a35d3b0a637674612e746f970004260021322c2c00103b3f00041a00016800003f0091
765d3b0a6164642e731200012b0085312c20343b0a73744700903332205b257264325d1e00d0
323b0a7265743b0a0a7d0a0a0000000000000100010150000000080100000000000003010000
40000000000009004b0000000000000000000000112000000000000000000000000000003701
00000000000048000000000000000000000000000000130a0100f03b2e76657273696f6e2039
2e300a2e74617267657420736d5f37350a2e616464726573735f73697a652036340a0a0a2e67
6c6f62616c202e616c69676e2034202e7533322076203d20333b4c00f110697369626c65202e
656e747279206b280a2e706172616d202e753634206b5f0d00f4085f300a290a7b0a2e726567
202e6233322025723c333e3b1100613634202572641200420a0a6c6441000140007525726431
2c205b4700a35d3b0a637674612e746f970004260021322c2c00103b3f00041a00016800003f
0091765d3b0a6164642e731200012b0085312c20343b0a73744700903332205b257264325d1e
00d0323b0a7265743b0a0a7d0a0a000000000000
  ]],
  size = bytes [[
50ed55ba0100100040020000000000000100010150000000d000000000000000d00000004000
0000000009005000000000000000000000001180000000000000000000000000000037010000
000000004800000000000000000000000000000028b52ffd603700350600124c251950d7030c
aab40c35d0d51077666acb0a106cd228979930a64640f7d71d33bd1d09e8c9b823240efc73ca
8ed0366d47e2c0f2cbbc4d1da1c70943fb69bb274ca2833037f00391de297abfbd1eba88a2ca
61a2bd5bf2caec5ba89cbbf9a2efd44a15d7edbb23e28d6f7e20da3bf48baa56be5b296196fa
ee8689d3aee208637ae794df851259d833a5aeccdfc52f7e61155fba7d0713205042673de6c0
858041f953d38a1341dbd5665b25af0dd3bda0c921a526cac0c443a5eb0238a16e81d7644e08
0100010150000000d000000000000000d000000040000000000009004b000000000000000000
0000118000000000000000000000000000003701000000000000480000000000000000000000
0000000028b52ffd603700350600124c25196079035c667b4c9b7a3c4c738ba2c91d658db99d
12c041501b4077d82d73bd2d8908cab865240efc94ce9651476d4be2d0f2cfdc512d23c80983
7b6abb6954e4833437f00399deab7abfc11eba90a4cba3c2bd63f3ceed5bb8dcbb39abefd54e
16b6baef96883bdef98170efd1b3cab2f3ddce49b3d5777754bc7e169630ae97d2f99d2c1286
3dd7eacefc5d3ce39966e15bbbef13205042673de6c0858041f953d38a1341dbd5665b25af0d
d3bda0c921a526cac0c443a5eb0238a16e81d7644e08
  ]],
}
local ONE = { grid = 1, block = 1 }

-- Whether Zstandard's library is there is a matter of the machine.
local function load(image)
  local ok, module = pcall(tp.load, image)
  if not ok and tostring(module):find("libzstd", 1, true) then
    assert.matches("is compressed with Zstandard, and libzstd.so.1 is not "
      .. "installed", tostring(module))
    return nil
  elseif not ok then
    error(module, 0)
  end
  return module
end

describe("a fatbin", function()
  for name, image in pairs(FATBINS) do
    it("with PTX runs everywhere: " .. name, function()
      local module = load(image)
      if not module then return pending "libzstd.so.1 is not installed" end
      local out <close> = tp.zeros("i32", 1)
      assert.same({ "k" }, module:kernels())
      module:kernel "k":launch(ONE, out)
      assert.same({ 7 }, out:read())
      local v <close> = module:global "v"
      assert.same({ 3 }, v:read())
      assert.matches("%.target sm_80", module:ptx()) -- the higher one
      module:close()
    end)

    it("that is damaged is refused, or taken: " .. name, function()
      if tp.current_device():kind() == "cuda" then
        return -- a driver believes what is inside
      end
      local function try(damaged)
        local ok, object = pcall(tp.load, damaged)
        if ok then return object:close() end
        assert.is_not_nil(tostring(object))
      end
      for n = 0, #image - 2 do
        local ok, object = pcall(tp.load, image:sub(1, n) .. "\0")
        assert.is_false(ok, n)
        assert.is_not_nil(tostring(object))
      end
      local seed = 1
      for _ = 1, 300 do
        seed = seed * 1103515245 + 12345 & 0x7fffffff
        local at = (seed >> 8) % #image + 1
        seed = seed * 1103515245 + 12345 & 0x7fffffff
        try(image:sub(1, at - 1)
          .. string.char(image:byte(at) ~ 1 << (seed >> 8) % 8)
          .. image:sub(at + 1))
      end
    end)
  end

  it("without PTX can't run on the simulated device", function()
    if tp.current_device():kind() == "cuda" then return end
    local only = "\x50\xed\x55\xba\1\0\x10\0" .. ("\0"):rep(8)
    local ok, object = pcall(tp.load, only)
    assert.is_false(ok)
    assert.matches("sim:0 can't run a binary image %(CUBIN or fatbin%), only "
      .. "PTX", tostring(object))
  end)
end)

describe("a CUBIN", function()
  local here = tp.current_device()
  local function load_here()
    if here:kind() == "sim" or here:capability() ~= 9 then
      pending "needs a GPU of capability 9"
      return nil
    end
    return tp.load(CUBIN)
  end

  it("can't run on the simulated device, which says so", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "wb"))
    file:write(CUBIN)
    file:close()
    tp.with_device("sim", function()
      for _, image in ipairs { CUBIN, path } do
        local ok, object = pcall(function()
          tp.load(image):kernel "k":launch(ONE, nil, 1, 1)
        end)
        assert.is_false(ok)
        assert.equal("cudaErrorNoKernelImageForDevice", object.code)
        assert.matches("sim:0 can't run a binary image %(CUBIN or fatbin%), only "
          .. "PTX", tostring(object))
      end
    end)
    os.remove(path)
  end)

  it("runs on its GPU", function()
    local m = load_here()
    if not m then return end
    local out <close> = tp.zeros("i32", 1)
    m:kernel "k":launch(ONE, out, string.pack("<f", 5.5), string.pack("<h", -9))
    assert.same({ 3 + 5 - 9 }, out:read())
    local o <close> = tp.zeros("f32", 1)
    m:kernel "typed":launch(ONE, o, 1.5)
    assert.same({ 3 }, o:read())
    local v <close> = m:global "v"
    assert.equal(4, v:nbytes())
    assert.equal("\3\0\0\0", v:bytes())
    m:close()
  end)

  it("has its parameters' sizes, and what types the names tell", function()
    local m = load_here()
    if not m then return end
    assert.is_nil(m:ptx())
    local function of(name)
      local list = {}
      for i, p in ipairs(m:kernel(name):params()) do
        list[i] = ("%d %d"):format(p.offset, p.size)
      end
      return table.concat(list, ", ")
    end
    assert.equal("0 8, 8 4, 12 2", of "k")
    assert.equal("0 8, 8 4", of "typed")
    assert.equal("float*", m:kernel "typed":params()[1].type)
    m:close()
  end)
end)
