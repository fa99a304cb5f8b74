-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
std = "lua54"
max_line_length = 88 -- 80 is the aim
ignore = { "581" } -- not (x <= y): with NaN it is not x > y
files["spec/*_spec.lua"] = { std = "+busted" }
files["spec/arithmetic_spec.lua"] = { max_line_length = false } -- tables
exclude_files = { "build*" }
