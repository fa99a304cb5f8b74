-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- For a block of tests that are about the simulated device, whatever the others run
-- on: require "spec.support.simulated"(setup, teardown) at its beginning makes it the
-- current one (those two are busted's, which only a spec file itself can see).
local tp = require "tpstream"

return function(setup, teardown)
  local device
  setup(function()
    device = tp.current_device()
    tp.set_device "sim"
  end)
  teardown(function() tp.set_device(device) end)
end
