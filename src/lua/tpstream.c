/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * luaopen_tpstream: makes the state's tps_lua and context, the types and the
 * library's table. Opening again gives the same table; opening after a failure
 * (no such device, no memory) goes on where that left off. */
#include "base/version.h"
#include "lua/api.h"
#include "lua/capture.h"
#include "lua/compile.h"
#include "lua/embedded.h"
#include "lua/interface.h"
#include "lua/state.h"
#include "timeline/timeline.h"

#include <stdlib.h>
#include <string.h>

/* ---- the state ----------------------------------------------------------- */

/* A task that nobody drives is a mistake, mostly. Told once: by the command at the
 * script's end, else when the state is closed. The state is at `index`. */
static void warn_of_tasks(lua_State *L, int index) {
  if (lua_getiuservalue(L, index, TPS_UV_LIVE_TASKS) != LUA_TFUNCTION) return;
  lua_call(L, 0, 1);
  lua_Integer count = lua_tointeger(L, -1);
  if (count == 0) return;
  lua_pushnil(L);
  lua_setiuservalue(L, index, TPS_UV_LIVE_TASKS);
  lua_pushfstring(L, "tpstream: %I task%s not ended (tp.run drives them)",
                  (LUAI_UACINT)count, count == 1 ? " has" : "s have");
  lua_warning(L, lua_tostring(L, -1), 0);
}

static int warn_at_close(lua_State *L) {
  warn_of_tasks(L, 1);
  return 0;
}

/* Runs after the finalizers of all handles, since it was made before them. */
static int state_gc(lua_State *L) {
  tps_lua *lua = (tps_lua *)lua_touserdata(L, 1);
  tps_context *context = lua->context;
  lua->context = NULL;
  tps_check_leave(lua);
  tps_timeline_free(lua->timeline);
  lua->timeline = NULL;
  tps_scope_close_all(lua);
  tps_callback_deliver_again(lua);
  if (context == NULL) return 0;
  tps_build_leave(context);
  tps_context_close(context);
  lua_pushcfunction(L, warn_at_close);
  lua_pushvalue(L, 1);
  lua_pcall(L, 1, 0, 0); /* without memory there is no warning */
  return 0;
}

static int guard_gc(lua_State *L) {
  tps_guard_release((tps_guard *)lua_touserdata(L, 1));
  return 0;
}

/* Pushes a metatable by itself: no upvalues, no methods. */
static void make_bare_type(lua_State *L, tps_type type, lua_CFunction gc) {
  luaL_newmetatable(L, tps_type_names[type]);
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
}

/* value → user value `slot` of the state below it, with a weak mode or NULL */
static void set_table(lua_State *L, int slot, const char *mode) {
  lua_newtable(L); /* state table */
  if (mode != NULL) {
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
  }
  lua_setiuservalue(L, -2, slot);
}

static lua_State *main_thread(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  lua_State *main = lua_tothread(L, -1);
  lua_pop(L, 1);
  return main;
}

/* Pushes the state, made at the first call. */
static tps_lua *push_state(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, TPS_STATE_KEY) == LUA_TUSERDATA)
    return (tps_lua *)lua_touserdata(L, -1);
  lua_pop(L, 1);
  make_bare_type(L, TPS_TYPE_STATE, state_gc);
  lua_pop(L, 1);
  tps_lua *lua =
      (tps_lua *)tps_new(L, TPS_TYPE_STATE, sizeof(tps_lua), TPS_UV_COUNT);
  const char *stress = getenv("TPSTREAM_GC_STRESS");
  lua->gc_stress = stress != NULL && strcmp(stress, "1") == 0;
  lua->main = main_thread(L);
  set_table(L, TPS_UV_DEVICES, NULL);
  set_table(L, TPS_UV_STREAMS, "v");
  set_table(L, TPS_UV_HELD, NULL);
  set_table(L, TPS_UV_BASES, "k");
  set_table(L, TPS_UV_METHODS, NULL);
  set_table(L, TPS_UV_CALLBACKS, NULL);
  make_bare_type(L, TPS_TYPE_GUARD, guard_gc);
  lua->meta[TPS_TYPE_GUARD] = lua_topointer(L, -1);
  lua_pop(L, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, TPS_STATE_KEY);
  return lua;
}

static void open_context(lua_State *L, tps_lua *lua) {
  const char *choice = NULL;
  tps_error err;
  if (lua->context != NULL) return;
  if (lua_getfield(L, LUA_REGISTRYINDEX, "tpstream.device") == LUA_TSTRING)
    choice = lua_tostring(L, -1);
  if (lua_getfield(L, LUA_REGISTRYINDEX, "tpstream.interrupt") ==
      LUA_TLIGHTUSERDATA)
    lua->interrupt = (int (*)(void))lua_touserdata(L, -1);
  lua_getfield(L, LUA_REGISTRYINDEX, "tpstream.blocking");
  tps_context *context;
  if (tps_context_new(choice, &context, &err) != 0) tps_raise(L, &err);
  context->interrupted = tps_interrupted;
  context->interrupted_data = lua;
  context->blocking = lua_toboolean(L, -1);
  lua->context = context;
  lua_pop(L, 3);
}

/* ---- the library --------------------------------------------------------- */

void tps_push_embedded(lua_State *L, const char *name) {
  for (size_t i = 0; i < tps_embedded_count; i++) {
    const struct tps_embedded *file = &tps_embedded[i];
    if (strcmp(file->name, name) != 0) continue;
    lua_pushfstring(L, "=tpstream/%s.lua", name);
    if (luaL_loadbufferx(L, file->text, file->size, lua_tostring(L, -1), "t") !=
        LUA_OK)
      lua_error(L);
    lua_remove(L, -2);
    return;
  }
  luaL_error(L, "this build lacks lua/tpstream/%s.lua", name);
}

static int clock_now(lua_State *L) {
  lua_pushnumber(L, (double)tps_now_ns() / 1e6);
  return 1;
}

/* library → the same, with tp.benchmark */
static void open_benchmark(lua_State *L) {
  tps_push_embedded(L, "benchmark");
  lua_pushvalue(L, -2);
  lua_pushcfunction(L, clock_now);
  tps_push_embedded(L, "misuse");
  lua_call(L, 0, 4);
  lua_call(L, 6, 1);
  lua_setfield(L, -2, "benchmark");
}

/* library state → the same */
static void open_types(lua_State *L) {
  tps_error_open(L);
  tps_device_open_type(L);
  tps_stream_open_type(L);
  tps_scope_open(L);
  tps_event_open_type(L);
  tps_timer_open_type(L);
  tps_buffer_open_type(L);
  tps_texture_open_types(L);
  tps_half_open(L);
  tps_module_open_type(L);
  tps_kernel_open_type(L);
  tps_launch_open_type(L);
  tps_callback_open(L);
  tps_wait_open(L);
  tps_check_open(L);
  tps_build_open_type(L);
  tps_capture_open_types(L);
  tps_graph_open_type(L);
  tps_timeline_open(L);
}

/* library → the same; the methods of Graph that are written in Lua */
static void open_graph(lua_State *L) {
  tps_push_embedded(L, "graph");
  luaL_getmetatable(L, tps_type_names[TPS_TYPE_GRAPH]);
  lua_getfield(L, -1, "__index"); /* library chunk metatable methods */
  lua_remove(L, -2);
  lua_call(L, 1, 0);
}

static int open_library(lua_State *L) {
  lua_settop(L, 0);
  lua_createtable(L, 0, 40);    /* library */
  tps_lua *lua = push_state(L); /* library state */
  lua_getiuservalue(L, 2, TPS_UV_METHODS);
  lua_pushvalue(L, 1);
  lua_pushboolean(L, 1);
  lua_rawset(L, 3);
  lua_settop(L, 2);
  open_types(L);
  tps_kernels_open(L);
  open_context(L, lua);
  tps_push_embedded(L, "diagnostics");
  lua_call(L, 0, 1);
  lua_setiuservalue(L, -2, TPS_UV_DIAGNOSTICS);
  lua_pop(L, 1); /* library */
  lua_pushliteral(L, TPS_VERSION);
  lua_setfield(L, -2, "_VERSION");
  open_benchmark(L);
  open_graph(L);
  tps_interface_open(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, TPS_LIBRARY_KEY);
  return 1;
}

__attribute__((visibility("default"))) int luaopen_tpstream(lua_State *L) {
  luaL_checkversion(L);
  if (lua_getfield(L, LUA_REGISTRYINDEX, TPS_LIBRARY_KEY) == LUA_TTABLE)
    return 1;
  return open_library(L);
}

/* What callbacks queue is waited for as well. */
static int finish(lua_State *L) {
  tps_lua *lua = tps_lua_of(L);
  tps_error err;
  lua->context->site = (tps_site){"", 0};
  do {
    tps_before_wait(lua);
    int code = tps_context_synchronize(lua->context, TPS_FOREVER, &err);
    if (code != 0 && lua->fault_told && tps_code_sticky(code)) return 0;
    if (code != 0) return tps_raise(L, &err);
  } while (tps_callback_waiting(L) && tps_callback_run(L) > 0);
  warn_of_tasks(L, lua_upvalueindex(1));
  return 0;
}

int tps_lua_finish(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, TPS_STATE_KEY) != LUA_TUSERDATA)
    return 0;
  tps_lua *lua = (tps_lua *)lua_touserdata(L, -1);
  if (lua->context == NULL) return 0;
  lua_pushcclosure(L, finish, 1);
  return lua_pcall(L, 0, 0, 0);
}
