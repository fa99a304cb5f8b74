-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The chart in docs/timeline.md is that of examples/pipeline.lua: the same lines, with
-- the same counts and bytes, whatever the times. TPS_WRITE_DOCS=1 writes it anew.
local files = require "spec.support.files"
local run = require "spec.support.run"

local PAGE = "docs/timeline.md"
local HEAD = "<!-- made by spec/timeline_doc_spec.lua -->\n"
local COMMAND = os.getenv "TPS_BUILD" .. "/tpstream"

local function draw()
  local out = os.tmpname()
  os.remove(out)
  local r = run.command({ COMMAND, "--device", "sim", "--timeline",
    "examples/pipeline.lua", "-o", out }, { env = { COLUMNS = "92" } })
  os.execute("rm -rf " .. out)
  assert.equal(0, r.status, r.stderr)
  return r.stderr
end

-- What does not depend on time, a line each, in an order of its own: kernels have
-- their letters by how long they took.
local function facts(chart)
  local list = {}
  for line in chart:gmatch "[^\n]+" do
    list[#list + 1] = line:match "^timeline: .-streams"
      or line:match "^  [%a<>_~.!@=] (.-%s%d+) " and line:match "^  %S (.-%s%d+) "
        .. (line:match "[%d.]+ k?M?B" or "")
      or line:match "^(%l+ ?%d*) *|"
      or line:match "^    %l+:%d+ stream %d+"
      or line:match "^    %l+:%d+"
      or line:match "^ +(count.*)"
  end
  table.sort(list)
  return table.concat(list, "\n")
end

describe("docs/timeline.md", function()
  it("shows the chart of the pipeline", function()
    local page = files.read(PAGE)
    local from = select(2, page:find(HEAD, 1, true))
    local to = page:find("\n\n", from + 2, true)
    local chart = draw()
    if os.getenv "TPS_WRITE_DOCS" then
      local text = chart:gsub("[^\n]+", "    %0"):gsub("\n$", "")
      files.write(PAGE, page:sub(1, from) .. text .. page:sub(to))
      return
    end
    local shown = page:sub(from + 1, to):gsub("%f[^\n\0]    ", "")
    assert.equal(facts(chart), facts(shown))
    local _, lines = facts(chart):gsub("\n", "")
    assert.is_true(lines > 12, facts(chart))
  end)
end)
