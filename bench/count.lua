-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- How many lane-operations a launch takes, exactly: a lane-operation is one PTX
-- instruction that one thread executes (a guarded one counts whether its guard
-- holds or not). The PTX gets a counter for each basic block, which every thread
-- that enters the block adds one to; a run of that, and the sum over the blocks
-- of their threads times their instructions, is the count. The engine that is to
-- be measured has no part in it beyond running the altered text.
local tp = require "tpstream"

local count = {}

local function is_instruction(line)
  return line:match "^[%a@][^:]*;$" and true or false
end

local function ends_block(line)
  line = line:gsub("^@!?%%%w+%s+", "")
  return line:match "^bra" or line:match "^ret" or line:match "^exit"
end

-- The text with counters, and the number of instructions of each block.
function count.instrument(ptx)
  local out, sizes, body = {}, {}, nil
  local fresh = false -- the next instruction begins a block
  for line in ptx:gmatch "[^\n]*" do
    local text = line:gsub("//.*", ""):match "^%s*(.-)%s*$"
    if text:match "^%.visible %.entry" then body = "head" end
    if body == "head" and text == "{" then body, fresh = true, true end
    if body == true and text == "}" then body = nil end
    if body == true then
      if text:match "^[%w_$]+:" then fresh = true end
      if is_instruction(text) then
        if fresh then
          sizes[#sizes + 1] = 0
          out[#out + 1] = ("red.global.add.u64 [lane_operations+%d], 1;")
            :format(8 * (#sizes - 1))
          fresh = false
        end
        sizes[#sizes] = sizes[#sizes] + 1
        if ends_block(text) then fresh = true end
      end
    end
    out[#out + 1] = line
  end
  local text = table.concat(out, "\n")
  local variable = (".global .align 8 .u64 lane_operations[%d];\n")
    :format(#sizes)
  text = text:gsub("(%.address_size %d+\n)", "%1" .. variable, 1)
  return text, sizes
end

-- A module that counts, and the function that tells how many there have been.
function count.module(ptx)
  local text, sizes = count.instrument(ptx)
  local module = tp.load(text)
  return module, function()
    local entered = string.rep("J", #sizes)
    local entries = { entered:unpack(module:global "lane_operations":bytes()) }
    local sum = 0
    for k, size in ipairs(sizes) do sum = sum + size * entries[k] end
    return sum
  end
end

return count
