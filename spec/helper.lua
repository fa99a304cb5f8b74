-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What every spec file runs under: warnings are on (spec/runner.lua makes each a
-- failure), the module is loaded once, before busted begins to restore
-- package.loaded, and a file that leaves a handle open fails.
local busted = require "busted"

warn "@on"
