/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams. One userdata for each stream: the box of a device's default stream
 * is kept by its Device; TPS_UV_STREAMS finds the userdata of a box again. */
#include "lua/state.h"

#include <limits.h>

/* ---- boxes --------------------------------------------------------------- */

/* Pushes a closed stream that TPS_UV_STREAMS knows. */
tps_lua_stream *tps_push_stream(lua_State *L) {
  tps_lua_stream *box =
      (tps_lua_stream *)tps_new(L, TPS_TYPE_STREAM, sizeof(tps_lua_stream), 0);
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_STREAMS);
  lua_pushvalue(L, -2);
  box->number = ++box->head.lua->stream_number;
  lua_rawseti(L, -2, box->number);
  lua_pop(L, 1);
  return box;
}

void tps_return_stream_of(lua_State *L, const tps_lua_stream *box) {
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_STREAMS);
  /* Not there: the stream is being finalized, we are in another finalizer. */
  if (lua_rawgeti(L, -1, box->number) == LUA_TNIL)
    tps_push_default_stream(L, box->stream->device);
}

void tps_push_stream_of(lua_State *L, const tps_lua_stream *box) {
  int top = lua_gettop(L);
  tps_return_stream_of(L, box);
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
}

/* While a Lua state closes, finalizers of the script's come after the box's own:
 * it is opened once more. */
tps_lua_stream *tps_push_default_stream(lua_State *L, tps_device *device) {
  tps_lua *lua = tps_open(L);
  tps_lua_device *owner = tps_push_device(L, device); /* Device */
  if (owner->stream == NULL || owner->stream->stream == NULL) {
    tps_error err;
    tps_stream *stream;
    if (tps_stream_default(lua->context, device, &stream, &err) != 0)
      tps_raise(L, &err);
    if (owner->stream == NULL) {
      owner->stream = tps_push_stream(L); /* Device Stream */
      lua_setiuservalue(L, -2, 1);
    }
    owner->stream->stream = tps_stream_ref(stream);
  }
  lua_getiuservalue(L, -1, 1);
  lua_remove(L, -2);
  return owner->stream;
}

tps_lua_stream *tps_default_stream_box(lua_State *L, tps_device *device) {
  tps_lua *lua = tps_open(L);
  if (lua->initial != NULL && lua->initial->device == device &&
      lua->initial->stream != NULL && lua->initial->stream->stream != NULL)
    return lua->initial->stream;
  tps_lua_stream *box = tps_push_default_stream(L, device);
  lua_pop(L, 1);
  return box;
}

void tps_stream_box_close(tps_lua_stream *box) {
  tps_stream *stream = box->stream;
  box->stream = NULL;
  if (stream == NULL) return;
  box->device = stream->device;
  tps_stream_close(stream);
  tps_stream_unref(stream);
}

tps_stream *tps_opt_stream(lua_State *L, int index) {
  if (!lua_isnoneornil(L, index)) return tps_check_stream(L, index)->stream;
  return tps_current_stream(L, NULL);
}

/* Pushes the field. */
static tps_stream *push_option(lua_State *L, int index, const char *name) {
  if (tps_option(L, index, name) == LUA_TNIL) return NULL;
  tps_lua_stream *box = (tps_lua_stream *)tps_to(L, -1, TPS_TYPE_STREAM);
  if (box == NULL)
    tps_option_error(L, index, name, "tpstream.Stream expected, got %s",
                     tps_type_name(L, -1));
  if (box->stream == NULL)
    tps_option_error(L, index, name, "attempt to use a closed stream");
  return box->stream;
}

tps_stream *tps_option_stream(lua_State *L, int index, const char *name) {
  tps_stream *stream = push_option(L, index, name);
  lua_pop(L, 1);
  return stream;
}

tps_stream *tps_option_stream_kept(lua_State *L, int index, const char *name,
                                   int slot) {
  tps_stream *stream = push_option(L, index, name);
  if (stream != NULL) lua_replace(L, slot);
  else lua_pop(L, 1);
  return stream;
}

static tps_stream *self(lua_State *L) { return tps_check_stream(L, 1)->stream; }

/* ---- making and closing -------------------------------------------------- */

static int clamp(lua_Integer n) {
  if (n < INT_MIN) return INT_MIN;
  return n > INT_MAX ? INT_MAX : (int)n;
}

/* tp.Stream([device [, priority]]) or one table. */
static int stream_new(lua_State *L) {
  static const char *const names[] = {"device", "priority", "blocking", NULL};
  tps_lua *lua = tps_open(L);
  tps_device *device;
  lua_Integer priority;
  bool blocking = false;
  if (lua_istable(L, 1)) {
    if (!lua_isnoneornil(L, 2))
      tps_argument_error(L, 2, "nothing expected after an options table");
    tps_check_options(L, 1, names);
    device = tps_option_device(L, 1, "device");
    if (device == NULL) device = tps_current_device(L);
    priority = tps_option_integer(L, 1, "priority", 0);
    blocking = tps_option_boolean(L, 1, "blocking", false);
  } else {
    device = tps_check_device(L, 1);
    priority = tps_opt_integer(L, 2, 0);
  }
  tps_lua_stream *box = tps_push_stream(L);
  tps_error err;
  if (tps_stream_open(lua->context, device, clamp(priority), blocking,
                      &box->stream, &err) != 0) {
    box->stream = NULL;
    return tps_raise(L, &err);
  }
  box->stream->tag = (uint64_t)box->number;
  return 1;
}

/* After a full collection and a look at dead coroutines. */
static bool still_held(lua_State *L, tps_lua_stream *box) {
  if (box->holds == 0) return false;
  lua_gc(L, LUA_GCCOLLECT);
  tps_scope_purge(L, tps_lua_of(L));
  return box->holds > 0;
}

static int stream_close(lua_State *L) {
  tps_lua_stream *box = (tps_lua_stream *)tps_check(L, 1, TPS_TYPE_STREAM);
  if (box->stream == NULL) return 0;
  if (box->stream->is_default)
    return tps_misuse(L, "the default stream can't be closed");
  if (still_held(L, box))
    return tps_misuse(L, "attempt to close a stream that is current or held "
                         "by a block");
  tps_stream_box_close(box);
  return 0;
}

/* __close: a block that still holds the stream closes it at its end; one of a
 * dead coroutine has ended. */
static int stream_release(lua_State *L) {
  tps_lua_stream *box = (tps_lua_stream *)tps_to(L, 1, TPS_TYPE_STREAM);
  if (box == NULL || box->stream == NULL || box->stream->is_default) return 0;
  if (box->holds > 0) tps_scope_purge(L, tps_lua_of(L));
  if (box->holds > 0) box->close_later = true;
  else tps_stream_box_close(box);
  return 0;
}

static int stream_gc(lua_State *L) {
  tps_lua_stream *box = (tps_lua_stream *)tps_to(L, 1, TPS_TYPE_STREAM);
  if (box == NULL) return 0;
  tps_break_seal(box);
  tps_stream_box_close(box);
  return 0;
}

/* ---- waiting ------------------------------------------------------------- */

static int stream_query(lua_State *L) {
  tps_error err;
  int code = tps_stream_query(self(L), &err);
  if (code != 0 && code != TPS_NOT_READY) return tps_raise(L, &err);
  lua_pushboolean(L, code == 0);
  return 1;
}

static int stream_synchronize(lua_State *L) {
  tps_stream *stream = self(L);
  uint64_t timeout = tps_check_timeout(L, 2);
  tps_error err;
  tps_site_set_observed(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  int code = tps_stream_synchronize(stream, timeout, &err);
  if (code != 0 && code != TPS_NOT_READY) return tps_raise(L, &err);
  tps_safe_point(L);
  lua_pushboolean(L, code == 0);
  return 1;
}

static int stream_record_event(lua_State *L) {
  tps_error err;
  self(L);
  bool made = lua_isnoneornil(L, 2);
  if (made) {
    lua_settop(L, 1);
    tps_push_event(L, 0);
  }
  lua_settop(L, 2);
  tps_event *event = tps_check_event(L, 2);
  tps_stream *stream = self(L); /* pushing may have run a finalizer */
  if (made) event->passing = stream->capturing;
  tps_site_set_observed(L, tps_lua_of(L));
  if (tps_event_record(event, stream, &err) != 0) return tps_raise(L, &err);
  return 1;
}

static int stream_wait_event(lua_State *L) {
  tps_stream *stream = self(L);
  tps_event *event = tps_check_event(L, 2);
  tps_error err;
  tps_check_recorded(L, event);
  tps_site_set_observed(L, tps_lua_of(L));
  if (tps_event_wait(event, stream, &err) != 0) return tps_raise(L, &err);
  return 0;
}

static int stream_wait_stream(lua_State *L) {
  tps_stream *stream = self(L);
  int count = lua_gettop(L);
  tps_error err;
  for (int i = 2; i <= count; i++) tps_check_stream(L, i);
  tps_site_set_observed(L, tps_lua_of(L));
  for (int i = 2; i <= count; i++)
    if (tps_stream_wait_stream(stream, tps_check_stream(L, i)->stream, &err))
      return tps_raise(L, &err);
  return 0;
}

static int stream_barrier(lua_State *L) {
  tps_lua *lua = tps_open(L);
  int count = lua_gettop(L);
  tps_error err;
  if (count == 0) return 0;
  tps_stream **streams = (tps_stream **)lua_newuserdatauv(
      L, (size_t)count * sizeof(tps_stream *), 0);
  for (int i = 0; i < count; i++)
    streams[i] = tps_check_stream(L, i + 1)->stream;
  tps_site_set_observed(L, lua);
  if (tps_stream_barrier(streams, (size_t)count, &err) != 0)
    return tps_raise(L, &err);
  return 0;
}

/* ---- telling ------------------------------------------------------------- */

static int stream_device(lua_State *L) {
  tps_push_device(L, self(L)->device);
  return 1;
}

static int stream_priority(lua_State *L) {
  lua_pushinteger(L, self(L)->priority);
  return 1;
}

/* What others would queue through it is no part of a graph. */
static int stream_handle(lua_State *L) {
  tps_stream *stream = self(L);
  if (stream->capturing)
    return tps_misuse(L,
                      "stream %llu is capturing: what other code queues "
                      "through its handle would not be captured",
                      (unsigned long long)stream->id);
  lua_pushinteger(L, (lua_Integer)tps_stream_driver_handle(stream));
  return 1;
}

static int stream_id(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)self(L)->id);
  return 1;
}

static int stream_is_blocking(lua_State *L) {
  lua_pushboolean(L, self(L)->blocking);
  return 1;
}

static int stream_is_capturing(lua_State *L) {
  lua_pushboolean(L, self(L)->capturing);
  return 1;
}

static int stream_tostring(lua_State *L) {
  tps_lua_stream *box = (tps_lua_stream *)tps_check(L, 1, TPS_TYPE_STREAM);
  char label[32];
  if (box->stream == NULL) {
    lua_pushliteral(L, "tpstream.Stream (closed)");
    return 1;
  }
  tps_device_label(box->stream->device, label, sizeof label);
  lua_pushfstring(L, "tpstream.Stream (%s, id %I, priority %d)", label,
                  (LUAI_UACINT)box->stream->id, box->stream->priority);
  return 1;
}

static int stream_default(lua_State *L) {
  tps_push_default_stream(L, tps_check_device(L, 1));
  return 1;
}

static const luaL_Reg stream_meta[] = {{"__tostring", stream_tostring},
                                       {"__gc", stream_gc},
                                       {"__close", stream_release},
                                       {"__await", tps_stream_await},
                                       {NULL, NULL}};
static const luaL_Reg stream_methods[] = {
    {"close", stream_close},
    {"query", stream_query},
    {"synchronize", stream_synchronize},
    {"record_event", stream_record_event},
    {"wait_event", stream_wait_event},
    {"wait_stream", stream_wait_stream},
    {"on_complete", tps_stream_on_complete},
    {"device", stream_device},
    {"priority", stream_priority},
    {"handle", stream_handle},
    {"id", stream_id},
    {"is_blocking", stream_is_blocking},
    {"is_capturing", stream_is_capturing},
    {NULL, NULL}};
static const luaL_Reg stream_functions[] = {
    {"Stream", stream_new},
    {"ExternalStream", tps_stream_external},
    {"barrier", stream_barrier},
    {"default_stream", stream_default},
    {NULL, NULL}};

void tps_stream_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_STREAM, stream_meta, stream_methods);
  tps_functions(L, stream_functions);
}
