/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Where in the registry the library's things are. */
#ifndef TPS_LUA_INTERFACE_H
#define TPS_LUA_INTERFACE_H

#include <lua.h>

#define TPS_STATE_KEY "tpstream.state"     /* the userdata of struct tps_lua */
#define TPS_LIBRARY_KEY "tpstream.library" /* the table, once it is whole */

/* Puts there what include/tpstream.h calls. */
void tps_interface_open(lua_State *L);

#endif
