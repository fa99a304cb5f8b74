/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What tasks inherit: the device and the stream of each device that are current
 * where they are spawned. It is a frame that is in force while one of them runs,
 * below the task's own, whatever is current where it is resumed. Tasks that were
 * spawned where the same was current, as ten thousand in a loop, have one in
 * common, which holds the streams until the last of them has ended. */
#include "lua/frames.h"

/* ---- making -------------------------------------------------------------- */

/* What is current there, the device in any case, as a task has it. */
static tps_lua_stream *inherited(lua_State *L, const tps_chain *c,
                                 tps_device *device) {
  tps_lua_stream *box = tps_chain_stream(c, device);
  return box != NULL ? box : tps_default_stream_box(L, device);
}

static tps_device *device_of(lua_State *L, tps_lua *lua, const tps_chain *c) {
  tps_device *device = tps_chain_device(c);
  return device != NULL ? device : tps_initial_device(L, lua);
}

static bool still_current(lua_State *L, tps_lua *lua, const tps_chain *c,
                          tps_frame *frame) {
  if (device_of(L, lua, c) != frame->device) return false;
  for (int i = -1; i < frame->more_count; i++) {
    const tps_current *s = i < 0 ? &frame->first : &frame->more[i];
    if (!tps_current_open(s) || s->box != inherited(L, c, s->device))
      return false;
  }
  return tps_chain_other(c, frame) == NULL;
}

static void add(lua_State *L, tps_frame *frame, tps_lua_stream *box) {
  tps_push_stream_of(L, box);
  tps_frame_anchor(L, tps_frame_need(L, frame, box->stream->device),
                   lua_gettop(L), box);
  lua_pop(L, 1);
}

/* Pushes the frame that was inherited last, or a new one if tasks have that. */
static tps_frame *push_free(lua_State *L, tps_lua *lua) {
  tps_frame *frame = lua->inherited;
  if (frame != NULL && frame->tasks == 0) {
    lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_INHERITED);
    tps_frame_clear(L, frame); /* what was added before memory ran out */
    frame->first = (tps_current){NULL, NULL, false};
    return frame;
  }
  frame = tps_frame_push(L);
  frame->whole = true;
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, lua_upvalueindex(1), TPS_UV_INHERITED);
  lua->inherited = frame;
  return frame;
}

/* inherit() → a frame for one task more */
static int inherit(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_frame *frame = lua->inherited;
  tps_chain c;
  tps_lua_stream *box;
  tps_chain_make(L, lua, &c);
  if (frame != NULL && frame->tasks > 0 && still_current(L, lua, &c, frame)) {
    lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_INHERITED);
    frame->tasks++;
    return 1;
  }
  frame = push_free(L, lua);
  frame->device = device_of(L, lua, &c);
  add(L, frame, inherited(L, &c, frame->device));
  while ((box = tps_chain_other(&c, frame)) != NULL) add(L, frame, box);
  frame->tasks = 1;
  return 1;
}

static tps_frame *check(lua_State *L, int index) {
  return (tps_frame *)tps_check(L, index, TPS_TYPE_SCOPE);
}

/* disinherit(frame): one of its tasks has ended. */
static int disinherit(lua_State *L) {
  tps_frame *frame = check(L, 1);
  if (--frame->tasks == 0) tps_frame_clear(L, frame);
  return 0;
}

/* ---- in force ------------------------------------------------------------ */

/* Pops all that `co` has given but for the first, which L gets. */
static void take_first(lua_State *L, lua_State *co, int count) {
  if (count == 0) {
    lua_pushnil(L);
    return;
  }
  lua_pop(co, count - 1);
  lua_xmove(co, L, 1);
}

/* Someone else has resumed it to its end, or closed it: it holds no function. */
static bool is_dead(lua_State *co) {
  return lua_status(co) == LUA_OK && lua_gettop(co) == 0;
}

/* resume(co, frame) → true and the first result where it has ended, nil where it
 * has yielded, false and the error. What stands in the lists is a copy: the same
 * frame may be in force twice. */
static int resume(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  tps_frame copy = *check(L, 2);
  tps_lua *lua = tps_lua_of(L);
  int count = 0, first = lua_status(co) == LUA_OK ? lua_gettop(co) - 1 : 0;
  luaL_checkstack(L, 4, NULL);
  if (is_dead(co)) {
    lua_pushboolean(L, false);
    lua_pushliteral(L, "the task's coroutine was ended by others");
    return 2;
  }
  tps_frame_link(L, lua, &copy);
  int status = lua_resume(co, L, first, &count);
  tps_frame_unlink(lua, &copy);
  if (status == LUA_YIELD) {
    lua_pop(co, count);
    return 0;
  }
  lua_pushboolean(L, status == LUA_OK);
  take_first(L, co, status == LUA_OK ? count : 1);
  return 2;
}

/* within(frame, fn, ...) → what fn returns */
static int within(lua_State *L) {
  tps_frame copy = *check(L, 1);
  tps_lua *lua = tps_lua_of(L);
  tps_frame_link(L, lua, &copy);
  int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
  tps_frame_unlink(lua, &copy);
  if (status != LUA_OK) lua_error(L);
  return lua_gettop(L) - 1;
}

/* The results become one table, as table.pack makes it, or nothing where there are
 * none. Here a failure is the task's own. */
static int pack_results(lua_State *L, int status, lua_KContext context) {
  int count = lua_gettop(L);
  (void)status;
  (void)context;
  if (count == 0) return 0;
  luaL_checkstack(L, 2, "too many results");
  lua_createtable(L, count, 1);
  lua_insert(L, 1);
  for (int i = count; i > 0; i--) lua_rawseti(L, 1, i);
  lua_pushinteger(L, count);
  lua_setfield(L, 1, "n");
  return 1;
}

/* What a task's coroutine begins with: fn, and its arguments. */
static int body(lua_State *L) {
  lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, pack_results);
  return pack_results(L, LUA_OK, 0);
}

/* prepare(fn, ...) → a coroutine that will begin with that call */
static int prepare(lua_State *L) {
  int count = lua_gettop(L);
  lua_State *co = lua_newthread(L);
  lua_insert(L, 1);
  if (!lua_checkstack(co, count + 1)) luaL_error(L, "not enough memory");
  lua_pushcfunction(co, body);
  lua_xmove(L, co, count);
  return 1;
}

const luaL_Reg tps_inherit_functions[] = {
    {"inherit", inherit}, {"disinherit", disinherit}, {"resume", resume},
    {"within", within},   {"prepare", prepare},       {NULL, NULL}};
