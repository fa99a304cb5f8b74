/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the compiler said → text in the script's own numbering. */
#ifndef TPS_LUA_DIAGNOSTICS_H
#define TPS_LUA_DIAGNOSTICS_H

#include "lua/place.h"

/* Pushes what lua/tpstream/diagnostics.lua makes of the report: for a compile that
 * failed, whose error is `message`; for one that did not (NULL), "" when there is
 * nothing to tell. `callers` is the index of what tps_push_callers has pushed at the
 * call, 0 while that is still running. */
void tps_push_diagnostics(lua_State *L, const tps_rtc_request *request,
                          const tps_rtc_report *report, const char *message,
                          int callers);

#endif
