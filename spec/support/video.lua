-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the specs of video instructions share.
local tp = require "tpstream"
local video = {}

-- Where an H200 departs from the manual in ways that are not known well enough to be
-- followed: those are compared on the simulated device alone.
function video.departs(text)
  if tp.current_device():kind() == "sim" then return false end
  local shift = text:find "^vsh[lr]"
  return text:find "^vmad" or shift and (text:find("%.sat") or
    text:find "%.add " or text:find "%.min " or text:find "%.max ")
end

return video
