/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The current stream and device, which belong to coroutines: what is current is
 * found in frames (frames.h). with_stream keeps one on the stack, to be closed
 * when the call ends in whatever way; a scope gives it to the script; set_stream
 * outside all blocks makes one that lives as long as its coroutine. */
#include "lua/frames.h"

#include <stdlib.h>
#include <string.h>

/* The first upvalue of the functions that holds a kept frame. */
#define FIRST_KEPT 3

/* ---- frames -------------------------------------------------------------- */

/* The same for a block. The main coroutine's blocks always come to their end, so
 * they take turns with a few frames that are kept for good. */
static tps_frame *push_block(lua_State *L, tps_lua *lua) {
  tps_frame *frame = NULL;
  for (int i = 0; i < TPS_KEPT_FRAMES && L == lua->main; i++) {
    frame = lua->kept[i];
    if (!frame->busy) {
      lua_pushvalue(L, lua_upvalueindex(FIRST_KEPT + i));
      frame->busy = true;
      return frame;
    }
  }
  frame = tps_frame_push(L);
  frame->block = true;
  return frame;
}

/* Puts the frame at `index` in force with that device and stream (either may be
 * NULL), which the caller keeps alive. */
static void enter(lua_State *L, tps_frame *frame, int index, tps_device *device,
                  tps_lua_stream *box) {
  tps_lua *lua = frame->head.lua;
  if (L != lua->main) {
    lua_pushthread(L);
    lua_setiuservalue(L, index, TPS_FRAME_THREAD);
  }
  tps_frame_link(L, lua, frame);
  frame->device = device;
  if (box != NULL) {
    frame->first = (tps_current){box->stream->device, box, false};
    box->holds++;
  }
}

/* The end of a block: out goes what with_stream's function left above, too. */
static void leave(lua_State *L, tps_frame *frame) {
  tps_lua *lua = frame->head.lua;
  lua_State *owner = frame->owner;
  if (owner == NULL) return;
  if (frame->block)
    for (tps_frame *top;
         (top = tps_frames_top(lua, owner)) != NULL && top != frame;)
      tps_frame_remove(L, lua, top);
  tps_frame_remove(L, lua, frame);
}

static int scope_release(lua_State *L) {
  tps_frame *frame = (tps_frame *)tps_to(L, 1, TPS_TYPE_SCOPE);
  if (frame == NULL) return 0;
  leave(L, frame);
  if (frame->busy) {
    frame->first = (tps_current){NULL, NULL, false};
    frame->busy = false;
  }
  return 0;
}

static int scope_gc(lua_State *L) {
  tps_frame *frame = (tps_frame *)tps_to(L, 1, TPS_TYPE_SCOPE);
  if (frame == NULL) return 0;
  leave(L, frame);
  free(frame->more); /* of tasks that the state ends with */
  frame->more = NULL;
  tps_break_seal(frame);
  return 0;
}

static int scope_close(lua_State *L) {
  leave(L, (tps_frame *)tps_check(L, 1, TPS_TYPE_SCOPE));
  return 0;
}

static int scope_tostring(lua_State *L) {
  tps_frame *frame = (tps_frame *)tps_check(L, 1, TPS_TYPE_SCOPE);
  if (frame->owner == NULL) {
    lua_pushliteral(L, "tpstream.Scope (closed)");
  } else {
    lua_pushfstring(L, "tpstream.Scope (%p)", (void *)frame);
  }
  return 1;
}

/* ---- looking up ---------------------------------------------------------- */

tps_device *tps_initial_device(lua_State *L, tps_lua *lua) {
  if (lua->initial == NULL) {
    tps_device *device;
    tps_error err;
    if (tps_device_get(lua->context->kind, lua->context->initial_device,
                       &device, &err) != 0)
      tps_raise(L, &err);
    lua->initial = tps_push_device(L, device);
    lua_pop(L, 1);
  }
  return lua->initial->device;
}

tps_device *tps_current_device(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_chain c;
  if (tps_no_frames(lua)) return tps_initial_device(L, lua);
  tps_chain_make(L, lua, &c);
  tps_device *device = tps_chain_device(&c);
  return device != NULL ? device : tps_initial_device(L, lua);
}

static tps_lua_stream *look_up(lua_State *L, tps_lua *lua, tps_device *device) {
  tps_chain c;
  tps_chain_make(L, lua, &c);
  if (device == NULL) device = tps_chain_device(&c);
  if (device == NULL) device = tps_initial_device(L, lua);
  tps_lua_stream *box = tps_chain_stream(&c, device);
  return box != NULL ? box : tps_default_stream_box(L, device);
}

tps_lua_stream *tps_current_stream_box(lua_State *L, tps_device *device) {
  tps_lua *lua = tps_open(L);
  if (tps_no_frames(lua)) {
    if (device == NULL) device = tps_initial_device(L, lua);
    return tps_default_stream_box(L, device);
  }
  const tps_frame *own = tps_frames_top(lua, L);
  if (own != NULL && own->device != NULL && own->first.device == own->device &&
      tps_current_open(&own->first) &&
      (device == NULL || device == own->device))
    return own->first.box;
  return look_up(L, lua, device);
}

/* ---- functions ----------------------------------------------------------- */

void tps_check_callable(lua_State *L, int index) {
  if (lua_isfunction(L, index)) return;
  if (luaL_getmetafield(L, index, "__call") == LUA_TNIL)
    tps_type_error(L, index, "function");
  lua_pop(L, 1);
}

static int with_done(lua_State *L, int status, lua_KContext k) {
  (void)status;
  (void)k;
  return lua_gettop(L) - 2;
}

/* what fn args... → what frame fn args..., the frame in force. Room on the stack
 * for closing it is made now: later there may be no memory for that. */
static tps_frame *enter_block(lua_State *L, tps_lua *lua, tps_device *device,
                              tps_lua_stream *box) {
  luaL_checkstack(L, 2 * LUA_MINSTACK, "not enough memory");
  tps_frame *frame = push_block(L, lua);
  lua_insert(L, 2);
  lua_toclose(L, 2);
  enter(L, frame, 2, device, box);
  return frame;
}

/* what frame fn args... → results. The frame on the stack is closed by Lua however
 * the call ends: no pcall, so that results, yields and tracebacks stay as they
 * are. */
static int call_in_block(lua_State *L) {
  lua_callk(L, lua_gettop(L) - 3, LUA_MULTRET, 0, with_done);
  return with_done(L, LUA_OK, 0);
}

static int call_with(lua_State *L, tps_lua *lua, tps_device *device,
                     tps_lua_stream *box) {
  enter_block(L, lua, device, box);
  return call_in_block(L);
}

/* A Stream or nil. */
static tps_lua_stream *opt_stream_box(lua_State *L, int index) {
  if (!lua_isnoneornil(L, index)) return tps_check_stream(L, index);
  tps_check_any(L, index);
  return NULL;
}

static int scope_with_stream(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_lua_stream *box = opt_stream_box(L, 1);
  tps_check_callable(L, 2);
  return call_with(L, lua, box == NULL ? NULL : box->stream->device, box);
}

void tps_push_with_stream(lua_State *L) {
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_WITH_STREAM);
}

static int scope_with_device(lua_State *L) {
  tps_check_any(L, 1);
  tps_device *device = tps_check_device(L, 1);
  tps_check_callable(L, 2);
  return call_with(L, tps_lua_of(L), device, NULL);
}

static int scope_scope(lua_State *L) {
  tps_open(L);
  tps_lua_stream *box = opt_stream_box(L, 1);
  lua_settop(L, 1);
  tps_frame *frame = tps_frame_push(L); /* Stream frame */
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 2, TPS_FRAME_STREAM);
  enter(L, frame, 2, box == NULL ? NULL : box->stream->device, box);
  return 1;
}

/* The innermost frame of the running coroutine; made, for as long as it lives,
 * when there is none. */
static tps_frame *need_frame(lua_State *L, tps_lua *lua) {
  tps_frame *top = tps_frames_top(lua, L);
  if (top != NULL) return top;
  top = tps_frame_push(L); /* frame */
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_BASES);
  lua_pushthread(L);
  lua_pushvalue(L, -3); /* frame bases thread frame */
  lua_rawset(L, -3);
  lua_pop(L, 1);
  enter(L, top, lua_gettop(L), NULL, NULL);
  lua_pop(L, 1);
  return top;
}

static int scope_set_stream(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_lua_stream *box = opt_stream_box(L, 1);
  if (box == NULL) return 0;
  tps_frame *frame = need_frame(L, lua);
  tps_current *s = tps_frame_need(L, frame, box->stream->device);
  frame->device = s->device;
  tps_frame_anchor(L, s, 1, box);
  return 0;
}

static int scope_set_device(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_check_any(L, 1);
  tps_device *device = tps_check_device(L, 1);
  need_frame(L, lua)->device = device;
  return 0;
}

static int scope_current_stream(lua_State *L) {
  tps_device *device = NULL;
  if (!lua_isnoneornil(L, 1)) device = tps_check_device(L, 1);
  tps_push_stream_of(L, tps_current_stream_box(L, device));
  return 1;
}

static const luaL_Reg scope_meta[] = {{"__tostring", scope_tostring},
                                      {"__gc", scope_gc},
                                      {"__close", scope_release},
                                      {NULL, NULL}};
static const luaL_Reg scope_methods[] = {{"close", scope_close}, {NULL, NULL}};
static const luaL_Reg scope_functions[] = {
    {"with_stream", scope_with_stream},
    {"with_device", scope_with_device},
    {"scope", scope_scope},
    {"set_stream", scope_set_stream},
    {"set_device", scope_set_device},
    {"current_stream", scope_current_stream},
    {NULL, NULL}};

/* library state → the same and a kept frame */
static tps_frame *push_kept(lua_State *L, tps_lua *lua) {
  tps_frame *frame = (tps_frame *)lua_newuserdatauv(L, sizeof *frame, 0);
  memset(frame, 0, sizeof *frame);
  frame->head = (tps_head){tps_seal(frame, TPS_TYPE_SCOPE), lua};
  frame->block = true;
  luaL_setmetatable(L, tps_type_names[TPS_TYPE_SCOPE]);
  return frame;
}

/* library state → the same; the functions of inherit.c, for the scheduler. */
static void open_inherit(lua_State *L) {
  lua_newtable(L);
  lua_pushvalue(L, -2);
  luaL_getmetatable(L, tps_type_names[TPS_TYPE_SCOPE]);
  luaL_setfuncs(L, tps_inherit_functions, 2);
  lua_setiuservalue(L, -2, TPS_UV_INHERIT);
}

/* The functions' upvalue 2 is the metatable of frames, after it the kept ones.
 */
void tps_scope_open(lua_State *L) {
  tps_lua *lua = (tps_lua *)lua_touserdata(L, -1);
  tps_type_make(L, TPS_TYPE_SCOPE, scope_meta, scope_methods);
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -2);
  luaL_getmetatable(L, tps_type_names[TPS_TYPE_SCOPE]);
  for (int i = 0; i < TPS_KEPT_FRAMES; i++) lua->kept[i] = push_kept(L, lua);
  luaL_setfuncs(L, scope_functions, FIRST_KEPT - 1 + TPS_KEPT_FRAMES);
  lua_getfield(L, -1, "with_stream"); /* library state library function */
  lua_setiuservalue(L, -3, TPS_UV_WITH_STREAM);
  lua_pop(L, 1); /* library state */
  open_inherit(L);
}
