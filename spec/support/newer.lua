-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- Tests of what needs compute capability 9.0: a script that runs in a process whose
-- simulated device has it, or in this one on a GPU. It fails by an error.
--
--   require "spec.support.newer".run [[ assert(…) ]]
local tp = require "tpstream"
local run = require "spec.support.run"
local newer = {}

function newer.run(script)
  if tp.current_device():kind() ~= "sim" then
    assert(load(script, "=script"))()
    return
  end
  local r = run.script(script, { env = { TPSTREAM_SIM_CAPABILITY = "9.0" },
    timeout = 120 })
  if r.status ~= 0 then error(r.stderr .. r.stdout, 0) end
end

return newer
