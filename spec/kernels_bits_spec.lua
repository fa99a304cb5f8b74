-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Results of floats that docs/kernels.md says are the same on every device, bit by
-- bit: checksums of what the simulated device gave, where the specs of each function
-- compare it with a reference.
local tp = require "tpstream"
local K = tp.kernels

local function checksum(buffer)
  local h = 0xcbf29ce484222325
  for _, byte in ipairs { buffer:bytes():byte(1, -1) } do
    h = (h ~ byte) * 0x100000001b3
  end
  buffer:close()
  return ("%016x"):format(h)
end

local function floats(t, n, seed)
  return K.random_uniform(tp.buffer(t, n), { seed = seed, low = -1, high = 1 })
end

describe("the bits are those of every device:", function()
  local function check(name, expected, make)
    it(name, function()
      local inputs <close> = setmetatable({}, { __close = function(list)
        for _, buffer in ipairs(list) do buffer:close() end
      end })
      local function input(...)
        inputs[#inputs + 1] = floats(...)
        return inputs[#inputs]
      end
      assert.equal(expected, checksum(make(input)))
    end)
  end

  check("uniform numbers", "bcc0dd22f1ad3e5d", function()
    return floats("f32", 10000, 1)
  end)
  check("normal numbers", "b81638d384ace7d3", function()
    return K.random_normal(tp.buffer("f32", 10000), { seed = 2 })
  end)
  check("normal numbers, f64", "a6ab46a7bc375e1d", function()
    return K.random_normal(tp.buffer("f64", 5000), { seed = 3 })
  end)
  check("running sums", "6d7c43c597411a84", function(input)
    return K.scan(input("f32", 50000, 4))
  end)
  check("running sums, f64", "f708a1e727e1b845", function(input)
    return K.scan(input("f64", 30000, 5))
  end)
  check("a product of f32", "a2b7413b60d0a5f5", function(input)
    return K.matmul(input("f32", 4800, 6), input("f32", 3600, 7), 80, 60, 60,
      { library = false })
  end)
  check("a norm", "afa933010129f3ee", function(input)
    return K.norm(input("f32", 30000, 8))
  end)
  check("a convolution", "12fe58bc388ac52d", function(input)
    return (K.conv2d(input("f32", 1600, 9), input("f32", 18, 10),
      { height = 40, width = 40, kernel = 3, filters = 2 }))
  end)
end)
