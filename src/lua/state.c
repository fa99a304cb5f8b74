/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Types, boxes and guards: what every other file here is made with. */
#include "lua/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const tps_type_names[TPS_TYPE_COUNT] = {
    [TPS_TYPE_STATE] = "tpstream.State",
    [TPS_TYPE_ERROR] = "tpstream.Error",
    [TPS_TYPE_GUARD] = "tpstream.Guard",
    [TPS_TYPE_DEVICE] = "tpstream.Device",
    [TPS_TYPE_STREAM] = "tpstream.Stream",
    [TPS_TYPE_SCOPE] = "tpstream.Scope",
    [TPS_TYPE_EVENT] = "tpstream.Event",
    [TPS_TYPE_TIMER] = "tpstream.Timer",
    [TPS_TYPE_BUFFER] = "tpstream.Buffer",
    [TPS_TYPE_HALF] = "tpstream.Half",
    [TPS_TYPE_MODULE] = "tpstream.Module",
    [TPS_TYPE_TEXTURE] = "tpstream.Texture",
    [TPS_TYPE_SURFACE] = "tpstream.Surface",
    [TPS_TYPE_GRAPH] = "tpstream.Graph",
    [TPS_TYPE_PARAMETER] = "tpstream.Parameter",
    [TPS_TYPE_CAPTURE] = "tpstream.Capture",
    [TPS_TYPE_TIMELINE] = "tpstream.Timeline",
    [TPS_TYPE_RECORDING] = "tpstream.Recording",
    [TPS_TYPE_RANGE] = "tpstream.Range",
    [TPS_TYPE_KERNEL] = "tpstream.Kernel",
    [TPS_TYPE_LAUNCH] = "tpstream.Launch",
    [TPS_TYPE_RUNNER] = "tpstream.Runner",
    [TPS_TYPE_BUILD] = "tpstream.Build",
};

void tps_remember_names(lua_State *L, int state) {
  lua_getiuservalue(L, state, TPS_UV_METHODS);
  lua_pushvalue(L, -2);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

void tps_type_make(lua_State *L, tps_type type, const luaL_Reg *meta,
                   const luaL_Reg *methods) {
  int state = lua_gettop(L);
  luaL_newmetatable(L, tps_type_names[type]); /* metatable */
  ((tps_lua *)lua_touserdata(L, state))->meta[type] = lua_topointer(L, -1);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, state, TPS_UV_METATABLES + (int)type);
  lua_newtable(L); /* metatable methods */
  lua_pushvalue(L, state);
  luaL_setfuncs(L, methods, 1);
  tps_remember_names(L, state);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__index"); /* replaced where meta has its own */
  lua_insert(L, -2);              /* methods metatable */
  lua_pushvalue(L, state);
  lua_pushvalue(L, -3); /* methods metatable state methods */
  luaL_setfuncs(L, meta, 2);
  lua_settop(L, state);
}

void tps_functions(lua_State *L, const luaL_Reg *functions) {
  lua_pushvalue(L, -2); /* library state library */
  lua_pushvalue(L, -2);
  luaL_setfuncs(L, functions, 1);
  lua_pop(L, 1);
}

static void stress(lua_State *L) {
  if (tps_lua_of(L)->gc_stress) lua_gc(L, LUA_GCCOLLECT);
}

void *tps_new(lua_State *L, tps_type type, size_t size, int user_values) {
  if (type != TPS_TYPE_STATE) stress(L);
  void *box = lua_newuserdatauv(L, size, user_values);
  memset(box, 0, size);
  if (!tps_sealed(type)) {
    luaL_setmetatable(L, tps_type_names[type]);
    return box;
  }
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_METATABLES + (int)type);
  lua_setmetatable(L, -2);
  tps_lua *lua = tps_lua_of(L);
  uintptr_t seal = lua->gc_stress ? 0 : tps_seal(box, type);
  *(tps_head *)box = (tps_head){seal, lua};
  return box;
}

void *tps_to_any(lua_State *L, int index, tps_type type) {
  stress(L);
  if (lua_type(L, index) != LUA_TUSERDATA) return NULL;
  if (!lua_getmetatable(L, index)) return NULL;
  const void *meta = lua_topointer(L, -1);
  lua_pop(L, 1);
  return meta == tps_lua_of(L)->meta[type] ? lua_touserdata(L, index) : NULL;
}

void tps_wrong_type(lua_State *L, int index, tps_type type) {
  tps_type_error(L, index, tps_type_names[type]);
}

void tps_state_closed(lua_State *L) { tps_misuse(L, "tpstream is closed"); }

void tps_box_closed(lua_State *L, const char *what, bool box_closed) {
  if (box_closed) tps_misuse(L, "attempt to use a closed %s", what);
  tps_state_closed(L);
}

tps_guard *tps_guard_push(lua_State *L) {
  return (tps_guard *)tps_new(L, TPS_TYPE_GUARD, sizeof(tps_guard), 0);
}

static int new_guard(lua_State *L) {
  memset(lua_newuserdatauv(L, sizeof(tps_guard), 0), 0, sizeof(tps_guard));
  luaL_setmetatable(L, tps_type_names[TPS_TYPE_GUARD]);
  return 1;
}

/* Nothing here allocates outside the call. */
tps_guard *tps_guard_over(lua_State *L, void *data,
                          void (*release)(void *data)) {
  lua_pushcfunction(L, new_guard);
  if (lua_pcall(L, 0, 1, 0) != LUA_OK) {
    release(data);
    lua_error(L);
  }
  tps_guard *guard = (tps_guard *)lua_touserdata(L, -1);
  guard->release = release;
  guard->data = data;
  return guard;
}

void tps_guard_release(tps_guard *guard) {
  void *data = guard->data;
  guard->data = NULL;
  if (data != NULL) guard->release(data);
}

static void close_file(void *file) { fclose((FILE *)file); }

static bool file_failed(const char *what, const char *path, int number,
                        tps_error *err) {
  tps_fail(err, TPS_IO, "cannot %s '%s': %s", what, path, strerror(number));
  return false;
}

bool tps_push_file(lua_State *L, const char *path, tps_error *err) {
  tps_guard *guard = tps_guard_push(L); /* guard */
  guard->release = close_file;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return file_failed("open", path, errno, err);
  guard->data = file;
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  size_t n;
  do {
    n = fread(luaL_prepbuffer(&text), 1, LUAL_BUFFERSIZE, file);
    luaL_addsize(&text, n);
  } while (n == LUAL_BUFFERSIZE);
  int number = ferror(file) ? errno : 0;
  luaL_pushresult(&text); /* guard text */
  tps_guard_release(guard);
  if (number != 0) return file_failed("read", path, number, err);
  lua_remove(L, -2);
  return true;
}
