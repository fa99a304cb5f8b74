/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Events. The driver's event is made at the first record; strict mode, in which
 * waiting for one never recorded is an error, is a matter of this layer. */
#include "lua/state.h"

/* ---- boxes --------------------------------------------------------------- */

tps_event *tps_push_event(lua_State *L, unsigned flags) {
  tps_lua *lua = tps_open(L);
  tps_lua_event *box =
      (tps_lua_event *)tps_new(L, TPS_TYPE_EVENT, sizeof(tps_lua_event), 0);
  box->event = tps_event_new(lua->context, flags);
  if (box->event == NULL) luaL_error(L, "not enough memory");
  return box->event;
}

void tps_check_recorded(lua_State *L, const tps_event *event) {
  if (tps_lua_of(L)->strict && !tps_event_recorded(event))
    tps_misuse(L, "the event was never recorded (strict mode)");
}

static void check_flag(lua_State *L, int index) {
  if (!lua_isnoneornil(L, index)) tps_check_type(L, index, LUA_TBOOLEAN);
}

/* tp.Event([enable_timing [, blocking [, interprocess]]]) or one table. */
static int event_new(lua_State *L) {
  static const char *const names[] = {"enable_timing", "blocking",
                                      "interprocess", NULL};
  static const unsigned bits[] = {TPS_EVENT_TIMING, TPS_EVENT_BLOCKING_SYNC,
                                  TPS_EVENT_INTERPROCESS};
  unsigned flags = 0;
  bool table = lua_istable(L, 1);
  if (table) tps_check_options(L, 1, names);
  for (int i = 0; i < 3; i++) {
    if (!table) check_flag(L, i + 1);
    if (table ? tps_option_boolean(L, 1, names[i], false)
              : lua_toboolean(L, i + 1))
      flags |= bits[i];
  }
  if ((flags & TPS_EVENT_INTERPROCESS) && (flags & TPS_EVENT_TIMING))
    return tps_misuse(L, "an interprocess event can't have timing "
                         "(enable_timing)");
  tps_push_event(L, flags);
  return 1;
}

static int event_call(lua_State *L) {
  lua_remove(L, 1); /* tp.Event itself */
  return event_new(L);
}

static int event_close(lua_State *L) {
  tps_lua_event *box = (tps_lua_event *)tps_check(L, 1, TPS_TYPE_EVENT);
  tps_event *event = box->event;
  box->event = NULL;
  tps_event_free(event);
  return 0;
}

static int event_gc(lua_State *L) {
  event_close(L);
  tps_break_seal(lua_touserdata(L, 1));
  return 0;
}

/* ---- methods ------------------------------------------------------------- */

static int event_record(lua_State *L) {
  tps_check_event(L, 1);
  tps_stream *stream = tps_opt_stream(L, 2);
  tps_event *event = tps_check_event(L, 1);
  tps_error err;
  tps_site_set_observed(L, tps_lua_of(L));
  if (tps_event_record(event, stream, &err) != 0) return tps_raise(L, &err);
  return 0;
}

static int event_wait(lua_State *L) {
  tps_check_event(L, 1);
  tps_stream *stream = tps_opt_stream(L, 2);
  tps_event *event = tps_check_event(L, 1);
  tps_error err;
  tps_check_recorded(L, event);
  tps_site_set_observed(L, tps_lua_of(L));
  if (tps_event_wait(event, stream, &err) != 0) return tps_raise(L, &err);
  return 0;
}

static int event_query(lua_State *L) {
  tps_error err;
  int code = tps_event_query(tps_check_event(L, 1), &err);
  if (code != 0 && code != TPS_NOT_READY) return tps_raise(L, &err);
  lua_pushboolean(L, code == 0);
  return 1;
}

static int event_synchronize(lua_State *L) {
  tps_event *event = tps_check_event(L, 1);
  uint64_t timeout = tps_check_timeout(L, 2);
  tps_error err;
  tps_check_recorded(L, event);
  tps_site_set_observed(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  int code = tps_event_synchronize(event, timeout, &err);
  if (code != 0 && code != TPS_NOT_READY) return tps_raise(L, &err);
  tps_safe_point(L);
  lua_pushboolean(L, code == 0);
  return 1;
}

static int event_elapsed_time(lua_State *L) {
  tps_event *start = tps_check_event(L, 1);
  tps_event *end = tps_check_event(L, 2);
  double ms;
  tps_error err;
  if (tps_event_elapsed(start, end, &ms, &err) != 0) return tps_raise(L, &err);
  lua_pushnumber(L, ms);
  return 1;
}

static int event_device(lua_State *L) {
  tps_event *event = tps_check_event(L, 1);
  if (event->device == NULL) lua_pushnil(L);
  else tps_push_device(L, event->device);
  return 1;
}

static int event_handle(lua_State *L) {
  lua_pushinteger(L,
                  (lua_Integer)tps_event_driver_handle(tps_check_event(L, 1)));
  return 1;
}

/* ---- between processes --------------------------------------------------- */

/* Of an event never recorded: made on the current device. */
static int event_ipc_handle(lua_State *L) {
  tps_check_event(L, 1);
  tps_device *device = tps_current_device(L);
  char handle[TPS_EVENT_IPC_BYTES];
  tps_error err;
  if (tps_event_export(tps_check_event(L, 1), device, handle, &err) != 0)
    return tps_raise(L, &err);
  lua_pushlstring(L, handle, sizeof handle);
  return 1;
}

/* tp.Event.from_ipc_handle(device, handle) */
static int event_from_ipc_handle(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_device *device = tps_check_device(L, 1);
  size_t size;
  tps_error err;
  tps_check_type(L, 2, LUA_TSTRING);
  const char *handle = lua_tolstring(L, 2, &size);
  if (size != TPS_EVENT_IPC_BYTES) {
    lua_pushfstring(L, "a handle has %d bytes, got %I", TPS_EVENT_IPC_BYTES,
                    (LUAI_UACINT)size);
    return tps_argument_error(L, 2, lua_tostring(L, -1));
  }
  tps_lua_event *box =
      (tps_lua_event *)tps_new(L, TPS_TYPE_EVENT, sizeof(tps_lua_event), 0);
  if (tps_event_import(lua->context, device, handle, &box->event, &err) != 0) {
    box->event = NULL;
    return tps_raise(L, &err);
  }
  return 1;
}

/* ---- telling and types --------------------------------------------------- */

static int event_tostring(lua_State *L) {
  tps_lua_event *box = (tps_lua_event *)tps_check(L, 1, TPS_TYPE_EVENT);
  const tps_event *event = box->event;
  char label[32];
  if (event == NULL) {
    lua_pushliteral(L, "tpstream.Event (closed)");
    return 1;
  }
  const char *timing = event->flags & TPS_EVENT_TIMING ? ", timing" : "";
  const char *where =
      event->device == NULL
          ? "not recorded"
          : tps_device_label(event->device, label, sizeof label);
  lua_pushfstring(L, "tpstream.Event (%s, id %I%s)", where,
                  (LUAI_UACINT)event->id, timing);
  return 1;
}

static int event_strict(lua_State *L) {
  tps_lua *lua = tps_lua_of(L);
  tps_check_type(L, 1, LUA_TBOOLEAN);
  lua_pushboolean(L, lua->strict);
  lua->strict = lua_toboolean(L, 1);
  return 1;
}

static const luaL_Reg event_meta[] = {{"__tostring", event_tostring},
                                      {"__gc", event_gc},
                                      {"__close", event_close},
                                      {"__await", tps_event_await},
                                      {NULL, NULL}};
static const luaL_Reg event_methods[] = {{"close", event_close},
                                         {"record", event_record},
                                         {"wait", event_wait},
                                         {"query", event_query},
                                         {"synchronize", event_synchronize},
                                         {"elapsed_time", event_elapsed_time},
                                         {"ipc_handle", event_ipc_handle},
                                         {"device", event_device},
                                         {"handle", event_handle},
                                         {NULL, NULL}};
static const luaL_Reg event_functions[] = {{"strict", event_strict},
                                           {NULL, NULL}};
static const luaL_Reg event_class[] = {
    {"from_ipc_handle", event_from_ipc_handle}, {NULL, NULL}};

/* tp.Event is a table that can be called.
 * library state → the same */
static void open_class(lua_State *L) {
  lua_newtable(L); /* library state Event */
  lua_pushvalue(L, -2);
  luaL_setfuncs(L, event_class, 1);
  tps_remember_names(L, lua_absindex(L, -2));
  lua_createtable(L, 0, 1); /* library state Event metatable */
  lua_pushvalue(L, -3);
  lua_pushcclosure(L, event_call, 1);
  lua_setfield(L, -2, "__call");
  lua_setmetatable(L, -2);
  lua_setfield(L, -3, "Event");
}

void tps_event_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_EVENT, event_meta, event_methods);
  tps_functions(L, event_functions);
  open_class(L);
}
