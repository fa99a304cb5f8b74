-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- For specs of the checks inside kernels: what is found where. A source marks the
-- lines that are to be found with comments like "// @store".
--
--   local findings = require "spec.support.findings" ("name", SOURCE, "barrier")
--   findings.fine(function(k) k("early", { 1, 64 }, b, 33) end)
--   local text = findings.one(function(k) … end)
--   findings.expect(text, "Barrier error …", "part", "store", "thread (0,0,0) …")
local checking = require "spec.support.checking"
local program = require "spec.support.program"
local run = require "spec.support.run"

return function(name, source, check)
  local self = {}
  local module

  -- Launches a kernel on a grid and a block of these sizes.
  local function k(kernel, shape, ...)
    module:kernel(kernel):launch({ grid = shape[1], block = shape[2] }, ...)
  end

  local function found(fn)
    module = module or program(name, source)
    return checking.found({ check }, fn, k)
  end

  function self.module()
    module = module or program(name, source)
    return module
  end

  function self.line(mark)
    local at = assert(source:find("// @" .. mark .. "\n", 1, true), mark)
    return select(2, source:sub(1, at):gsub("\n", "")) + 1
  end

  function self.fine(fn)
    local reports = found(fn)
    if #reports > 0 then error("found: " .. reports[1].text, 2) end
  end

  function self.all(fn) return found(fn) end

  -- The only finding; its text, and the report.
  function self.one(fn)
    local reports = found(fn)
    if #reports ~= 1 then
      error(("expected one finding, got %d: %s"):format(#reports,
        reports[1] and reports[1].text or ""), 2)
    end
    return reports[1].text, reports[1]
  end

  -- A seed has another thread come first.
  local function same_thread(line, by)
    if os.getenv "TPSTREAM_SIM_SEED" then
      return line and line:find "^    by thread %(%d+,0,0%) in block %(%d+,0,0%)$"
    end
    return line == "    by " .. by
  end

  -- The text begins with the title, the place in a kernel and the thread; what
  -- else its lines hold is returned.
  function self.expect(text, title, kernel, mark, by)
    local lines = {}
    for l in text:gmatch "[^\n]+" do lines[#lines + 1] = l end
    local at, line = (lines[2] or ""):match
      "^    at ([%w_]+)%+0x%x+ in program%.cu:(%d+)$"
    local n = (lines[3] or ""):find "^    in kernel " and 4 or 3
    if lines[1] ~= title or at ~= kernel or tonumber(line) ~= self.line(mark)
      or not same_thread(lines[n], by) then
      error(("expected %s, in %s, line %d (%s), by %s, got\n%s"):format(title,
        kernel, self.line(mark), mark, by, text), 2)
    end
    return table.concat(lines, "\n", n + 1)
  end

  -- What is found in the text of a function of k and b, a buffer of 256 whole
  -- numbers, in a process of its own: for what ends its device. `timeout` in seconds.
  function self.apart(body, timeout)
    local r = run.script(([==[
local tp = require "tpstream"
tp.set_device "sim"
local module = require "spec.support.program" (%q, %q)
local b = tp.zeros("i32", 256)
local function k(kernel, shape, ...)
  module:kernel(kernel):launch({ grid = shape[1], block = shape[2] }, ...)
end
tp.check.start { %q }
%s
pcall(tp.check.stop)
for _, r in ipairs(tp.check.reports()) do io.write(r.text) end
os.exit(0, false)
]==]):format(name, source, check, body),
      { env = { TPSTREAM_SIM_SEED = false, TPS_WRITE_PTX = false,
        TPSTREAM_SIM_TIMEOUT = timeout } })
    if r.stdout == "" then error(r.stderr, 2) end -- the fault makes the status
    return r.stdout
  end

  return self
end
