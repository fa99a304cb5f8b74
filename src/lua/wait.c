/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What tasks wait for, and how the scheduler (lua/tpstream/scheduler.lua) sleeps:
 * the few things that it can't do by itself. Which task runs when is decided
 * there. */
#include "lua/api.h"
#include "lua/state.h"

#include "runtime/callback.h"

/* ---- awaiting ------------------------------------------------------------ */

/* waiter → a list of it alone. `gone` is the set of those who have left, with their
 * number at 0; true: nobody has; false: the list has been told (waits.lua). */
static void push_list(lua_State *L) {
  lua_createtable(L, 1, 1);
  lua_insert(L, -2);
  lua_rawseti(L, -2, 1);
  lua_pushboolean(L, 1);
  lua_setfield(L, -2, "gone");
}

/* The waiter at 2 becomes one of those who wait for the same, in an entry that is
 * a list of them: functions done(ok, ...), and Tasks, which the scheduler's
 * woken knows. `code` and *token are what the runtime has said of it, the new
 * token is returned, if it takes one; 0: all is done, true in *over, or others
 * wait already. Unless all is done, pushes the list. */
static uint64_t join(lua_State *L, int code, uint64_t token, bool *over,
                     const tps_error *err) {
  *over = code == 0;
  if (code == 0) return 0;
  if (code != TPS_NOT_READY) tps_raise(L, err);
  lua_pushvalue(L, 2);
  if (token != 0) {
    tps_callback_join(L, token);
    return 0;
  }
  push_list(L);
  lua_pushvalue(L, -1);
  return tps_callback_put(L);
}

/* Raises what queueing has said. */
static void check_queued(lua_State *L, uint64_t token, int code,
                         const tps_error *err) {
  if (code == 0) return;
  tps_callback_forget(L, token);
  tps_raise(L, err);
}

/* True when there is nothing to wait for; the waiter at 2 is not told. Else pushes
 * the list that it is in. */
static bool await_stream(lua_State *L, tps_stream *stream) {
  tps_error err;
  bool over;
  uint64_t token;
  int code = tps_callback_ask_stream(stream, &token, &err);
  token = join(L, code, token, &over, &err);
  if (token != 0)
    check_queued(L, token, tps_callback_await_stream(stream, token, &err),
                 &err);
  return over;
}

/* The same; one never recorded is done, as everywhere else. */
static bool await_event(lua_State *L, tps_event *event) {
  tps_error err;
  bool over;
  uint64_t token;
  tps_check_recorded(L, event);
  int code = tps_callback_ask_event(event, &token, &err);
  token = join(L, code, token, &over, &err);
  if (token != 0)
    check_queued(L, token, tps_callback_await_event(event, token, &err), &err);
  return over;
}

/* ---- giving up ----------------------------------------------------------- */

/* Takes those who have left out of the list. */
static void compact(lua_State *L, int list, int gone) {
  lua_Integer count = (lua_Integer)lua_rawlen(L, list), kept = 0;
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, list, i);
    lua_pushvalue(L, -1);
    bool left = lua_rawget(L, gone) != LUA_TNIL;
    lua_pop(L, 1);
    if (left) lua_pop(L, 1);
    else lua_rawseti(L, list, ++kept);
  }
  for (lua_Integer i = count; i > kept; i--) {
    lua_pushnil(L);
    lua_rawseti(L, list, i);
  }
  lua_pushboolean(L, 1);
  lua_setfield(L, list, "gone");
}

/* leave(list, waiter): it does not wait any longer. Whoever waits with a limit of
 * time, again and again, would fill the list of what takes long. */
static int leave(lua_State *L) {
  if (lua_getfield(L, 1, "gone") != LUA_TTABLE) {
    if (!lua_toboolean(L, -1)) return 0;
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, 1, "gone");
    lua_replace(L, 3);
  }
  lua_pushvalue(L, 2);
  lua_pushboolean(L, 1);
  lua_rawset(L, 3);
  lua_rawgeti(L, 3, 0);
  lua_Integer count = lua_tointeger(L, -1) + 1;
  lua_pushinteger(L, count);
  lua_rawseti(L, 3, 0);
  if (count >= 64 && count >= (lua_Integer)lua_rawlen(L, 1) / 2)
    compact(L, 1, 3);
  return 0;
}

/* list waiter → ; where memory is short it stays, and is told for nothing. */
static int wait_leave(lua_State *L) {
  lua_settop(L, 2);
  lua_pushcfunction(L, leave);
  lua_insert(L, 1);
  lua_pcall(L, 2, 0, 0);
  return 0;
}

/* The same as a function that gives up: list and waiter are its upvalues. */
static int give_up(lua_State *L) {
  lua_settop(L, 0);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, lua_upvalueindex(2));
  return wait_leave(L);
}

/* ---- __await ------------------------------------------------------------- */

/* x done [list] → the function that gives up; or done is called at once where the
 * wait is over, after what is due, as after every wait. */
static int finish(lua_State *L, bool over) {
  if (!over) {
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, give_up, 2);
    return 1;
  }
  tps_safe_point(L);
  lua_settop(L, 2);
  lua_pushboolean(L, 1);
  lua_call(L, 1, 0);
  return 0;
}

int tps_stream_await(lua_State *L) {
  tps_stream *stream = tps_check_stream(L, 1)->stream;
  lua_settop(L, 2);
  return finish(L, await_stream(L, stream));
}

int tps_event_await(lua_State *L) {
  tps_event *event = tps_check_event(L, 1);
  lua_settop(L, 2);
  return finish(L, await_event(L, event));
}

/* watch(x, task) → nil: x is no Stream and no Event; true: it is done; false and
 * the list that the Task is in: woken will be told of it. */
static int wait_watch(lua_State *L) {
  bool over;
  tps_open(L);
  lua_settop(L, 2);
  if (tps_to(L, 1, TPS_TYPE_STREAM) != NULL)
    over = await_stream(L, tps_check_stream(L, 1)->stream);
  else if (tps_to(L, 1, TPS_TYPE_EVENT) != NULL)
    over = await_event(L, tps_check_event(L, 1));
  else return 0;
  lua_pushboolean(L, over);
  if (over) return 1;
  lua_insert(L, -2);
  return 2;
}

/* open(x): raises if x is a Stream or an Event that is closed. */
static int wait_open(lua_State *L) {
  tps_open(L);
  if (tps_to(L, 1, TPS_TYPE_STREAM) != NULL) tps_check_stream(L, 1);
  else if (tps_to(L, 1, TPS_TYPE_EVENT) != NULL) tps_check_event(L, 1);
  return 0;
}

/* ---- the scheduler's ----------------------------------------------------- */

/* now() → ms */
static int wait_now(lua_State *L) {
  lua_pushnumber(L, (double)tps_now_ns() / 1e6);
  return 1;
}

/* due() → how many callbacks ran; those who wait are told. */
static int wait_due(lua_State *L) {
  tps_lua *lua = tps_open(L);
  lua_Integer count = 0;
  if (tps_callback_any(lua->context)) {
    if (!tps_callback_ready(lua->context)) tps_callback_look(lua->context);
    count = tps_callback_run(L);
  }
  lua_pushinteger(L, count);
  return 1;
}

/* calling() → whether a callback runs: until it is over no other does, and nobody
 * is told that a wait is. */
static int wait_calling(lua_State *L) {
  lua_pushboolean(L, tps_lua_of(L)->running != NULL);
  return 1;
}

/* told(): a device's fault is being raised in a task. */
static int wait_told(lua_State *L) {
  tps_lua_of(L)->fault_told = true;
  return 0;
}

/* Milliseconds, nil: for ever. */
static uint64_t opt_ns(lua_State *L, int index) {
  if (lua_isnoneornil(L, index)) return TPS_FOREVER;
  double ns = lua_tonumber(L, index) * 1e6;
  if (!(ns > 0)) return 0;
  return ns < 9e18 ? (uint64_t)ns : TPS_FOREVER;
}

/* sleep([ms]): until something is due, or so long. */
static int wait_sleep(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  tps_site_set_observed(L, lua);
  tps_before_wait(lua);
  if (tps_wakeup_wait(lua->context, opt_ns(L, 1), &err) != 0)
    return tps_raise(L, &err);
  return 0;
}

/* fd() → the descriptor for loops of others */
static int wait_fd(lua_State *L) {
  tps_error err;
  int fd;
  if (tps_wakeup_fd(tps_open(L)->context, &fd, &err) != 0)
    return tps_raise(L, &err);
  lua_pushinteger(L, fd);
  return 1;
}

/* arm([ms]): the descriptor becomes readable after so long. */
static int wait_arm(lua_State *L) {
  tps_wakeup_arm(tps_open(L)->context, opt_ns(L, 1));
  return 0;
}

/* load(name) → lua/tpstream/<name>.lua as a function */
static int wait_load(lua_State *L) {
  tps_push_embedded(L, luaL_checkstring(L, 1));
  return 1;
}

static const luaL_Reg wait_primitives[] = {
    {"watch", wait_watch}, {"leave", wait_leave},     {"open", wait_open},
    {"told", wait_told},   {"now", wait_now},         {"due", wait_due},
    {"sleep", wait_sleep}, {"fd", wait_fd},           {"arm", wait_arm},
    {"load", wait_load},   {"calling", wait_calling}, {NULL, NULL}};

void tps_wait_open(lua_State *L) {
  tps_push_embedded(L, "scheduler");
  lua_pushvalue(L, -3); /* library state chunk library */
  lua_newtable(L);
  lua_pushvalue(L, -4);
  luaL_setfuncs(L, wait_primitives, 1);
  lua_getiuservalue(L, -4, TPS_UV_INHERIT);
  lua_setfield(L, -2, "scope");
  lua_call(L, 2, 3); /* library state live traceback woken */
  lua_setiuservalue(L, -4, TPS_UV_WOKEN);
  lua_setfield(L, LUA_REGISTRYINDEX, TPS_TRACEBACK_KEY);
  lua_setiuservalue(L, -2, TPS_UV_LIVE_TASKS);
}
