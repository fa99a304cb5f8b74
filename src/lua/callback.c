/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * stream:on_complete and the safe points, where what is due runs on Lua's own
 * thread. TPS_UV_CALLBACKS keeps, by the token that the runtime hands back,
 * {[0] = count, Stream, fn, arguments...}; or, for somebody who waits, a function
 * done(ok, ...), which is called where it is due or lost, and counts as nothing;
 * or a list of those (wait.c), without [0], for the scheduler's woken(list, ok, ...).
 *
 * The first callback that fails ends the safe point with its error as it is. On
 * the main coroutine it keeps its traceback, too: nothing is called in
 * protected mode until then, and a to-be-closed value runs the others while
 * that error passes.
 *
 * A callback that itself waits runs no others: each begins when the one before
 * has ended. */
#include "runtime/callback.h"

#include <stdlib.h>

#include "lua/capture.h"

/* ---- the table ----------------------------------------------------------- */

/* Takes the entry out and pushes it; LUA_TNIL: there is none. */
static int take_entry(lua_State *L, uint64_t token) {
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_CALLBACKS);
  int type = lua_rawgeti(L, -1, (lua_Integer)token);
  lua_pushnil(L); /* callbacks entry nil */
  lua_rawseti(L, -3, (lua_Integer)token);
  lua_remove(L, -2);
  if (type == LUA_TNIL) lua_pop(L, 1);
  return type;
}

uint64_t tps_callback_put(lua_State *L) {
  uint64_t token = ++tps_lua_of(L)->callback_seq;
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_CALLBACKS);
  lua_insert(L, -2); /* callbacks entry */
  lua_rawseti(L, -2, (lua_Integer)token);
  lua_pop(L, 1);
  return token;
}

void tps_callback_join(lua_State *L, uint64_t token) {
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_CALLBACKS);
  lua_rawgeti(L, -1, (lua_Integer)token); /* waiter callbacks list */
  lua_replace(L, -2);
  lua_insert(L, -2);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

void tps_callback_forget(lua_State *L, uint64_t token) {
  if (take_entry(L, token) != LUA_TNIL) lua_pop(L, 1);
}

/* Stream fn args... → the same and an entry with them */
static void push_entry(lua_State *L) {
  int count = lua_gettop(L);
  lua_createtable(L, count, 1);
  for (int i = 1; i <= count; i++) {
    lua_pushvalue(L, i);
    lua_rawseti(L, -2, i);
  }
  lua_pushinteger(L, count);
  lua_rawseti(L, -2, 0);
}

uint64_t tps_callback_again(lua_State *L) {
  lua_rawgeti(L, -2, 0); /* entry Stream count */
  int count = (int)lua_tointeger(L, -1);
  lua_createtable(L, count, 1);
  lua_insert(L, -2);
  lua_rawseti(L, -2, 0);
  for (int i = 2; i <= count; i++) {
    lua_rawgeti(L, -3, i); /* entry Stream copy value */
    lua_rawseti(L, -2, i);
  }
  lua_insert(L, -2);
  lua_rawseti(L, -2, 1); /* entry copy */
  lua_remove(L, -2);
  return tps_callback_put(L);
}

/* entry → what is to be called, with its arguments; how many these are. A
 * stream that is closed by now can't be current: the default one of its device is,
 * not one that happens to be where this runs, which may be capturing. */
static int push_call(lua_State *L) {
  lua_rawgeti(L, -1, 0); /* entry count */
  int count = (int)lua_tointeger(L, -1);
  luaL_checkstack(L, count + 4, "too many arguments");
  tps_push_with_stream(L); /* entry count with_stream */
  lua_replace(L, -2);
  for (int i = 1; i <= count; i++) lua_rawgeti(L, -i - 1, i);
  lua_remove(L, -count - 2); /* with_stream Stream fn args... */
  const tps_lua_stream *box =
      (tps_lua_stream *)tps_to(L, -count, TPS_TYPE_STREAM);
  if (box->stream == NULL) {
    tps_push_default_stream(L, box->device);
    lua_replace(L, -count - 1);
  }
  return count;
}

/* ---- running ------------------------------------------------------------- */

/* The token will be due once more at the next safe point. */
static void tell_again(tps_lua *lua, uint64_t token) {
  tps_error err;
  struct tps_callback **again = (struct tps_callback **)realloc(
      lua->again, (lua->again_count + 1) * sizeof *again);
  if (again == NULL) return;
  lua->again = again;
  again[lua->again_count] = tps_callback_new(lua->context, token, &err);
  if (again[lua->again_count] != NULL) lua->again_count++;
}

void tps_callback_deliver_again(tps_lua *lua) {
  for (size_t i = 0; i < lua->again_count; i++)
    tps_callback_deliver(lua->again[i]);
  free(lua->again);
  lua->again = NULL;
  lua->again_count = 0;
}

/* True if the entry on top, of that type, is for those who wait. */
static bool is_wait(lua_State *L, int type) {
  if (type != LUA_TTABLE) return type == LUA_TFUNCTION;
  bool list = lua_rawgeti(L, -1, 0) == LUA_TNIL;
  lua_pop(L, 1);
  return list;
}

/* entry → entry and the function that tells who waits; how many arguments of its
 * own are there, too. */
static int push_teller(lua_State *L) {
  if (lua_isfunction(L, -1)) {
    lua_pushvalue(L, -1);
    return 0;
  }
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_WOKEN);
  lua_pushvalue(L, -2);
  return 1;
}

/* entry → , told that the wait is over; once more later if that fails for want
 * of memory. */
static void tell_done(lua_State *L, uint64_t token) {
  int count = push_teller(L);
  lua_pushboolean(L, 1);
  int status = lua_pcall(L, count + 1, 0, 0);
  if (status == LUA_OK) {
    lua_pop(L, 1);
    return;
  }
  if (status != LUA_ERRMEM) lua_error(L);
  lua_insert(L, -2); /* error entry */
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_CALLBACKS);
  lua_insert(L, -2);
  lua_rawseti(L, -2, (lua_Integer)token); /* the place is still there */
  lua_pop(L, 1);
  tell_again(tps_open(L), token);
  lua_error(L);
}

/* entry → : told false, the error, true. It counts as told where it is raised
 * (waits.lua): who has given up waiting, or is never driven, hears nothing of it. */
static void tell_lost(lua_State *L, const tps_error *err) {
  int count = push_teller(L);
  lua_pushboolean(L, 0);
  tps_push_error(L, err);
  lua_pushboolean(L, 1);
  if (lua_pcall(L, count + 3, 0, 0) != LUA_OK) lua_pop(L, 1);
  lua_pop(L, 1);
}

/* Calls the next one that is due, and whoever waits for what was done before;
 * false: none is. */
static bool run_next(lua_State *L) {
  uint64_t token;
  int code;
  tps_error err;
  while (tps_callback_take(tps_open(L)->context, &token, &code, &err)) {
    int type = take_entry(L, token);
    if (type == LUA_TNIL) continue;
    if (is_wait(L, type)) {
      if (code != 0) tell_lost(L, &err);
      else tell_done(L, token);
      continue;
    }
    lua_call(L, push_call(L), 0);
    return true;
  }
  return false;
}

static int run_one(lua_State *L) {
  lua_pushboolean(L, run_next(L));
  return 1;
}

static int warn_error(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  lua_warning(L, "tpstream: error in a callback: ", 1);
  lua_warning(L, lua_tostring(L, -1), 0);
  return 0;
}

static void push_own(lua_State *L, lua_CFunction function) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushcclosure(L, function, 1);
}

/* error → : as a warning. Without memory for that it is lost. */
static void warn_of(lua_State *L) {
  push_own(L, warn_error);
  lua_insert(L, -2);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1);
}

/* Calls the function at `index`, a run_one, until nothing is due; errors become
 * warnings. */
static void run_rest(lua_State *L, int index) {
  bool more = true;
  while (more) {
    lua_pushvalue(L, index);
    bool failed = lua_pcall(L, 0, 1, 0) != LUA_OK;
    more = failed || lua_toboolean(L, -1);
    if (failed) warn_of(L);
    else lua_pop(L, 1);
  }
}

/* The end of the safe point, by an error where `running` is still set: then
 * the others run. */
static int runner_close(lua_State *L) {
  tps_lua *lua = tps_lua_of(L);
  bool failed = lua->running != NULL && lua->context != NULL;
  lua->running = NULL;
  if (!failed) return 0;
  push_own(L, run_one);
  lua->running = lua_touserdata(L, 1);
  run_rest(L, lua_gettop(L));
  lua->running = NULL;
  return 0;
}

/* For a safe point that was left without its end, for want of memory. */
static int runner_gc(lua_State *L) {
  tps_lua *lua = tps_lua_of(L);
  if (lua->running == lua_touserdata(L, 1)) lua->running = NULL;
  return 0;
}

static void push_runner(lua_State *L, tps_lua *lua) {
  const void *runner = lua_newuserdatauv(L, 0, 0);
  luaL_setmetatable(L, tps_type_names[TPS_TYPE_RUNNER]);
  lua->running = runner;
}

/* On the main coroutine. */
static lua_Integer run_open(lua_State *L, tps_lua *lua) {
  lua_Integer count = 0;
  push_runner(L, lua);
  lua_toclose(L, -1);
  while (run_next(L)) count++;
  lua->running = NULL;
  return count;
}

/* Elsewhere: a coroutine that ends by an error closes nothing by itself. */
static lua_Integer run_protected(lua_State *L, tps_lua *lua) {
  lua_Integer count = 0;
  push_runner(L, lua);
  push_own(L, run_one);
  int one = lua_gettop(L), status;
  for (;;) {
    lua_pushvalue(L, one);
    status = lua_pcall(L, 0, 1, 0);
    if (status != LUA_OK || !lua_toboolean(L, -1)) break;
    lua_pop(L, 1);
    count++;
  }
  if (status != LUA_OK) run_rest(L, one);
  lua->running = NULL;
  if (status != LUA_OK) lua_error(L);
  return count;
}

/* Runs what is due; returns how many, or fails as the first that failed. */
static int run_due(lua_State *L) {
  tps_lua *lua = tps_lua_of(L);
  lua_pushinteger(L, L == lua->main ? run_open(L, lua) : run_protected(L, lua));
  return 1;
}

/* Takes one that a fault has lost, and tells who waits for it; LUA_TTABLE: a
 * callback, LUA_TNONE: there are no more. */
static int lose_next(lua_State *L, tps_lua *lua, tps_error *err) {
  uint64_t token;
  if (!tps_callback_lose(lua->context, &token, err)) return LUA_TNONE;
  int type = take_entry(L, token);
  if (type == LUA_TNIL) return type;
  if (is_wait(L, type)) {
    tell_lost(L, err);
    return LUA_TFUNCTION;
  }
  lua_pop(L, 1);
  return type;
}

void tps_callback_drop(lua_State *L) {
  tps_lua *lua = tps_lua_of(L);
  tps_error err;
  if (lua->context == NULL) return;
  luaL_checkstack(L, 16, NULL);
  while (lose_next(L, lua, &err) != LUA_TNONE) continue;
}

/* Drops what a fault has lost, and raises it if there was a callback. */
static void raise_lost(lua_State *L, tps_lua *lua) {
  tps_error err;
  int type;
  do {
    type = lose_next(L, lua, &err);
    if (type == LUA_TTABLE) tps_raise(L, &err); /* drops the others */
  } while (type != LUA_TNONE);
}

lua_Integer tps_callback_run(lua_State *L) {
  tps_lua *lua = tps_open(L);
  if (lua->running) return 0;
  tps_callback_deliver_again(lua);
  luaL_checkstack(L, 8, NULL);
  push_own(L, run_due);
  lua_call(L, 0, 1);
  lua_Integer count = lua_tointeger(L, -1);
  lua_pop(L, 1);
  raise_lost(L, lua);
  return count;
}

bool tps_callback_waiting(lua_State *L) {
  const tps_lua *lua = tps_lua_of(L);
  return lua->context != NULL && tps_callback_any(lua->context);
}

/* ---- functions ----------------------------------------------------------- */

/* entry → ; a host node of the graph that is being captured, which calls it at
 * each launch. */
static int note(lua_State *L) {
  tps_error err;
  tps_push_notices(L); /* entry notices */
  lua_insert(L, -2);
  lua_Integer n = (lua_Integer)lua_rawlen(L, -2) + 1;
  lua_rawseti(L, -2, n);
  tps_stream *stream = tps_check_stream(L, 1)->stream;
  tps_site_set(L, tps_lua_of(L));
  if (tps_callback_queue(stream, 0, &err) == 0) return 0;
  lua_pushnil(L);
  lua_rawseti(L, -2, n);
  return tps_raise(L, &err);
}

/* s:on_complete(fn, ...) */
int tps_stream_on_complete(lua_State *L) {
  tps_check_stream(L, 1);
  tps_check_callable(L, 2);
  push_entry(L);
  tps_error err;
  if (tps_check_stream(L, 1)->stream->capturing) return note(L);
  uint64_t token = tps_callback_put(L);
  tps_stream *stream = tps_check_stream(L, 1)->stream;
  tps_site_set_observed(L, tps_lua_of(L));
  if (tps_callback_queue(stream, token, &err) == 0) return 0;
  tps_callback_forget(L, token);
  return tps_raise(L, &err);
}

static const luaL_Reg runner_meta[] = {
    {"__close", runner_close}, {"__gc", runner_gc}, {NULL, NULL}};
static const luaL_Reg runner_methods[] = {{NULL, NULL}};

void tps_callback_open(lua_State *L) {
  tps_type_make(L, TPS_TYPE_RUNNER, runner_meta, runner_methods);
}
