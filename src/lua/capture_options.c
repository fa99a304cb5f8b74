/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What tp.capture is asked for, as its table of options says: the stream, the
 * mode, the named parameters. */
#include "lua/capture.h"

#include <string.h>

static bool check_mode(lua_State *L, int index) {
  static const char *const modes[] = {"thread_local", "global", "relaxed",
                                      NULL};
  int type = tps_option(L, index, "mode");
  int i = 0;
  if (type == LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  if (type != LUA_TSTRING)
    tps_option_error(L, index, "mode", "string expected, got %s",
                     tps_type_name(L, -1));
  while (modes[i] != NULL && strcmp(modes[i], lua_tostring(L, -1)) != 0) i++;
  if (modes[i] == NULL)
    tps_option_error(L, index, "mode",
                     "unknown mode '%s' (there are thread_local, global, "
                     "relaxed)",
                     lua_tostring(L, -1));
  lua_pop(L, 1);
  return i == 2;
}

bool tps_capture_plain(lua_State *L, int index) {
  int type = lua_type(L, index);
  return type == LUA_TNUMBER || type == LUA_TBOOLEAN ||
         (type == LUA_TUSERDATA && tps_to(L, index, TPS_TYPE_HALF) != NULL);
}

/* The key on top but one, a name; its value on top. */
static void check_parameter(lua_State *L, int index) {
  if (lua_type(L, -2) != LUA_TSTRING)
    tps_option_error(L, index, "params", "names expected, got a %s",
                     luaL_typename(L, -2));
  const char *name = lua_tostring(L, -2);
  if (strcmp(name, "stream") == 0)
    tps_option_error(L, index, "params",
                     "'stream' can't be a parameter's name: launch takes a "
                     "stream by it");
  if (!tps_capture_plain(L, -1))
    tps_option_error(L, index, "params",
                     "'%s': a number or boolean expected, got %s", name,
                     tps_type_name(L, -1));
}

/* names name → names; the name in its place, in order. */
static void insert_name(lua_State *L, int names) {
  lua_Integer i = (lua_Integer)lua_rawlen(L, names);
  for (; i > 0; i--) {
    lua_rawgeti(L, names, i);
    if (!lua_compare(L, -2, -1, LUA_OPLT)) {
      lua_pop(L, 1);
      break;
    }
    lua_rawseti(L, names, i + 1);
  }
  lua_rawseti(L, names, i + 1);
}

/* The table of parameters on top → names values; false: there is none. */
static bool push_tables(lua_State *L, int index) {
  int type = tps_option(L, index, "params"), params = lua_gettop(L);
  if (type == LUA_TNIL) return false;
  if (type != LUA_TTABLE)
    tps_option_error(L, index, "params", "table expected, got %s",
                     tps_type_name(L, -1));
  lua_newtable(L);
  lua_newtable(L); /* params names values */
  lua_pushnil(L);
  while (lua_next(L, params)) {
    check_parameter(L, index);
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    insert_name(L, params + 1);
  }
  lua_Integer count = (lua_Integer)lua_rawlen(L, params + 1);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, params + 1, i);
    lua_pushvalue(L, -1);
    lua_pushinteger(L, i);
    lua_rawset(L, params + 1);
    lua_rawget(L, params);
    lua_rawseti(L, params + 2, i);
  }
  return true;
}

void tps_capture_options(lua_State *L, tps_capture_request *r) {
  static const char *const names[] = {"params", "mode", "stream", NULL};
  tps_check_options(L, 1, names);
  r->relaxed = check_mode(L, 1);
  if (tps_option_stream(L, 1, "stream") != NULL) r->stream = 1;
  if (push_tables(L, 1)) {
    r->values = lua_gettop(L);
    r->names = r->values - 1;
  }
  tps_option(L, 1, "stream");
  lua_replace(L, 1);
}
