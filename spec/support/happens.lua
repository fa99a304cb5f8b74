-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the checker is compared with: everything that happens is a node, of which all
-- nodes before it are known, by every path; and accesses, each pair of which is looked
-- at. Slow, and hard to get wrong.
--
--   local h = happens.new()
--   local a = h:node()
--   local b = h:node(a, nil, other) -- after those that are not nil
--   h:access(a, "cell", { writes = true, line = 3, b = 1 })
--   h.racy[1], h.together["3 4"] -- fields b, and lines, of what has no order
local happens = {}
happens.__index = happens

function happens.new()
  return setmetatable({ before = {}, accesses = {}, racy = {}, together = {} },
    happens)
end

function happens:node(...)
  local mine = {}
  for i = 1, select("#", ...) do
    local from = select(i, ...)
    if from then
      mine[from] = true
      for j in pairs(self.before[from]) do mine[j] = true end
    end
  end
  table.insert(self.before, mine)
  return #self.before
end

-- `how`: writes, atomic, line, b. Two atomic ones need no order.
function happens:access(node, cell, how)
  local list = self.accesses[cell] or {}
  self.accesses[cell] = list
  for _, a in ipairs(list) do
    if (how.writes or a.how.writes) and not (how.atomic and a.how.atomic)
      and not self.before[node][a.node] then
      self.racy[how.b] = true
      self.together[a.how.line .. " " .. how.line] = true
    end
  end
  table.insert(list, { node = node, how = how })
end

return happens
