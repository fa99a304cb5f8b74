-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Tables of options and of elements whose metamethods do what they should not:
-- close what is being used, or hand out objects that nothing else keeps.
local tp = require "tpstream"
local failure = require("spec.support.errors").text
local gate = require "spec.support.gate"
local run = require "spec.support.run"

-- Calls act() when the field is asked for, and gives what it returns.
local function options(fields, field, act)
  return setmetatable(fields, { __index = function(_, key)
    if key == field then return act() end
  end })
end

describe("options' metamethods", function()
  it("may close the buffers of a copy", function()
    local s = tp.current_stream()
    for _, rows in ipairs { false, true } do
      for victim = 1, 2 do
        local b = { tp.zeros("i32", 4), tp.zeros("i32", 4) }
        local fields = rows and { rows = 2, row_bytes = 4, pitch = 8 } or {}
        assert.matches("closed buffer", failure(b[1].copy_to, b[1], b[2],
          options(fields, "stream", function()
            b[victim]:close()
            return s
          end)))
        b[1]:close()
        b[2]:close()
      end
    end
  end)

  it("may make the stream that is used", function()
    local r = run.script([[
      local tp = require "tpstream"
      local function options(fields)
        return setmetatable(fields, { __index = function(_, key)
          if key == "stream" then return tp.Stream() end
        end })
      end
      for i = 1, 20 do
        local a <close> = tp.buffer("i32", { 1, 2, 3, 4 }, options {})
        local b <close> = tp.zeros("i32", 4, options {})
        tp.current_stream():device():synchronize()
        a:copy_to(b, options {})
        tp.current_stream():device():synchronize()
        a:copy_to(b, options { rows = 2, row_bytes = 4, pitch = 8 })
        tp.from_dlpack(a:dlpack(options {})):close()
        tp.current_stream():device():synchronize()
        assert(b:read()[2] == 3 and b:read()[4] == 4)
      end]], { env = { TPSTREAM_GC_STRESS = "1" } })
    assert.equal("", r.stderr)
    assert.equal(0, r.status)
  end)

  it("may make a launch's stream", function()
    local x <close> = tp.zeros("i32", 64)
    tp.current_stream():synchronize()
    local shape = options({ grid = 1, block = 64 }, "stream", tp.Stream)
    gate.kernel "twice":launch(shape, x, 64)
    tp.current_device():synchronize()
    assert.equal(0, x:read()[64])
    collectgarbage()
  end)
end)

describe("elements' metamethods", function()
  it("may close the buffer that they go to", function()
    local b <close> = tp.zeros("i32", 8)
    assert.matches("closed buffer", failure(b.write, b,
      setmetatable({}, { __len = function() return 8 end, __index = function(_, i)
        b:close()
        return i
      end })))
  end)
end)
