/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What tp.compile and tp.compile_async share. */
#ifndef TPS_LUA_COMPILE_H
#define TPS_LUA_COMPILE_H

#include "lua/diagnostics.h"

/* A guard whose data is the report behind it. */
typedef struct tps_report_guard {
  tps_guard guard;
  tps_rtc_report report;
} tps_report_guard;
tps_report_guard *tps_push_report(lua_State *L);

/* Fills the request from the source at `source`, the options at `index` and
 * besides the name expression `name` (may be NULL); what it points to is kept in
 * the table at `anchors`. Raises. */
void tps_compile_fill(lua_State *L, int source, int index, int anchors,
                      const char *name, tps_rtc_request *r);
/* Gives the Module at `index` what its methods need; `callers` as for
 * tps_push_diagnostics. */
void tps_compile_keep(lua_State *L, int index, int source, int options,
                      const tps_rtc_request *request,
                      const tps_rtc_report *report, int callers);

/* tp.compile_async; its result is a Build. */
void tps_build_open_type(lua_State *L);
/* The end of a state, which may be that of the process: NVRTC would be taken down
 * under a thread that still compiles. All Builds are gone. */
void tps_build_leave(const tps_context *context);

#endif
