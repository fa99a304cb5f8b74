/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the host calls. It tells the library, in the registry and before the
 * library is opened: "tpstream.device" (a string: the device asked for),
 * "tpstream.interrupt" (light userdata: int (*)(void), not 0 ends a wait),
 * "tpstream.blocking" (true: every launch waits), and "tpstream.sources" (a
 * table: the text of chunks that are in no file, by chunk name). The library
 * tells the host TPS_TRACEBACK_KEY: a function that gives the traceback of the task
 * that an error comes from, or nil. */
#ifndef TPS_LUA_API_H
#define TPS_LUA_API_H

#include <lua.h>

#define TPS_TRACEBACK_KEY "tpstream.traceback"

/* The library's table; the same one when it is opened again in that state. */
int luaopen_tpstream(lua_State *L);

/* Pushes lua/tpstream/<name>.lua as a function; raises when there is none. */
void tps_push_embedded(lua_State *L, const char *name);

/* Waits for all that this state has queued. 0, also when the library was never
 * opened or the script has been told of the fault already; else not 0, and the
 * error is pushed. */
int tps_lua_finish(lua_State *L);

/* Before exit(): ends what works in the background. */
void tps_lua_exit(void);

#endif
