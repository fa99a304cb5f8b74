-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
std = "lua54"
max_line_length = 80
files["spec/*_spec.lua"] = { std = "+busted" }
exclude_files = { "build*" }
