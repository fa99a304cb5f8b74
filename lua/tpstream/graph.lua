-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The methods of Graph that are about how a graph looks: g:dot().
local methods = ...

local UNITS = { { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" } }

local function size(bytes)
  for _, unit in ipairs(UNITS) do
    if bytes >= unit[1] and bytes % unit[1] == 0 then
      return ("%d %s"):format(bytes // unit[1], unit[2])
    end
  end
  return ("%d bytes"):format(bytes)
end

-- {4, 1, 1} as "4", {4, 2, 1} as "4x2"
local function shape(n)
  local count = n[3] > 1 and 3 or n[2] > 1 and 2 or 1
  return table.concat(n, "x", 1, count)
end

local function title(node)
  if node.kind == "kernel" then
    return ("%s\n%s x %s threads"):format(node.name, shape(node.grid),
                                          shape(node.block))
  elseif node.bytes then
    return ("%s %s"):format(node.kind, size(node.bytes))
  end
  return node.event and "event " .. node.event or node.kind
end

local SHAPES = {
  kernel = "box",
  copy = "ellipse",
  fill = "ellipse",
  host = "hexagon",
  event = "cds",
  ["if"] = "diamond",
  ["while"] = "diamond",
}

local function quote(text)
  return '"' .. text:gsub('[\\"]', "\\%0"):gsub("\n", "\\n") .. '"'
end

local function add(lines, indent, ...)
  lines[#lines + 1] = indent .. string.format(...)
end

-- A body is a cluster of its own below the node that runs it.
local function draw(lines, nodes, indent)
  for _, node in ipairs(nodes) do
    local label = title(node)
    if node.where then label = label .. "\n" .. node.where end
    add(lines, indent, "n%d [label=%s, shape=%s];", node.id, quote(label),
      SHAPES[node.kind])
    for _, id in ipairs(node.dependencies) do
      add(lines, indent, "n%d -> n%d;", id, node.id)
    end
    if node.body then
      add(lines, indent, "subgraph cluster_%d {", node.id)
      add(lines, indent, "  label=%s;", quote(node.kind))
      draw(lines, node.body, indent .. "  ")
      add(lines, indent, "}")
      local first = node.body[1]
      if first then
        add(lines, indent, "n%d -> n%d [style=dashed];", node.id, first.id)
      end
    end
  end
end

-- The graph in the language of Graphviz.
function methods:dot()
  local lines = { "digraph {", "  node [fontname=monospace];" }
  draw(lines, self:nodes(), "  ")
  lines[#lines + 1] = "}\n"
  return table.concat(lines, "\n")
end
