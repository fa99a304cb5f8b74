/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The files of lua/tpstream/, as the build turns them into C arrays: name is
 * the path below lua/tpstream/ without ".lua" ("diagnostics"), text is not
 * NUL-terminated. */
#ifndef TPS_LUA_EMBEDDED_H
#define TPS_LUA_EMBEDDED_H

#include <stddef.h>

struct tps_embedded {
  const char *name;
  const char *text;
  size_t size;
};

extern const struct tps_embedded tps_embedded[];
extern const size_t tps_embedded_count;

#endif
