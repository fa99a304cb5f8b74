/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.ExternalStream: somebody else's stream, by its driver handle. One that
 * this Lua state knows comes back as the userdata that it is. */
#include "lua/state.h"

static uint64_t check_handle(lua_State *L, int index) {
  if (lua_islightuserdata(L, index))
    return (uint64_t)(uintptr_t)lua_touserdata(L, index);
  return (uint64_t)tps_check_integer(L, index);
}

/* Pushes the open stream with that handle; false: there is none, or it is
 * just being collected. */
static bool push_known(lua_State *L, tps_device *device, uint64_t handle) {
  tps_stream *stream = tps_stream_find(tps_open(L)->context, device, handle);
  if (stream == NULL || stream->tag == 0) return false;
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_STREAMS);
  bool known = lua_rawgeti(L, -1, (lua_Integer)stream->tag) == LUA_TUSERDATA;
  lua_remove(L, -2);
  if (!known) lua_pop(L, 1);
  return known;
}

/* tp.ExternalStream(handle [, device]) */
int tps_stream_external(lua_State *L) {
  tps_lua *lua = tps_open(L);
  uint64_t handle = check_handle(L, 1);
  tps_device *device = tps_check_device(L, 2);
  tps_error err;
  if (handle <= 1) { /* the legacy stream's two names */
    tps_push_default_stream(L, device);
    return 1;
  }
  tps_lua_stream *box = tps_push_stream(L);
  if (push_known(L, device, handle)) return 1;
  if (tps_stream_adopt(lua->context, device, handle, &box->stream, &err) != 0) {
    box->stream = NULL;
    return tps_raise(L, &err);
  }
  box->stream->tag = (uint64_t)box->number;
  return 1;
}
