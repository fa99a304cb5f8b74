/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Where a source stands that a script has as a literal, or has put together of some. */
#ifndef TPS_LUA_PLACE_H
#define TPS_LUA_PLACE_H

#include "lua/state.h"
#include "rtc/rtc.h"

#define TPS_MOST_PARTS 32
#define TPS_ALL_LINES 2000000000

/* Where the lines of a source stand. */
typedef struct tps_place {
  const char *file;   /* of the lines that no part has */
  const char *script; /* of those that one has; on the Lua stack */
  tps_rtc_part parts[TPS_MOST_PARTS];
  size_t count;
} tps_place;

/* Pushes where the scripts stand that have led to this call. */
void tps_push_callers(lua_State *L);
/* What the program is called and where its lines stand; pushes a few values.
 * `callers` is the index of what tps_push_callers has pushed at the call, 0 while that
 * is still running. Looks in those scripts, and in the modules that were required. */
void tps_find_place(lua_State *L, const tps_rtc_request *request, int callers,
                    tps_place *out);
/* The same in the scripts that have led to this call alone, which takes no longer
 * than to read them. */
void tps_find_place_here(lua_State *L, const tps_rtc_request *request,
                         tps_place *out);

#endif
