/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The lists of frames, and what a frame has. A frame is a userdata; it keeps its
 * coroutine alive, so that the address of a dead one can't come back as another
 * coroutine's while its frames are still listed. */
#include "lua/frames.h"

#include <stdlib.h>
#include <string.h>

/* ---- the lists ----------------------------------------------------------- */

static size_t home(const tps_lua *lua, const lua_State *owner) {
  return (((uintptr_t)owner >> 4) * 0x9e3779b9u) & (lua->thread_slots - 1);
}

static tps_thread *find_thread(const tps_lua *lua, const lua_State *owner) {
  if (lua->thread_count == 0) return NULL;
  for (size_t i = home(lua, owner);; i = (i + 1) & (lua->thread_slots - 1)) {
    if (lua->threads[i].owner == owner) return &lua->threads[i];
    if (lua->threads[i].owner == NULL) return NULL;
  }
}

tps_frame *tps_frames_top(const tps_lua *lua, const lua_State *owner) {
  if (owner == lua->main) return lua->main_top;
  const tps_thread *thread = find_thread(lua, owner);
  return thread == NULL ? NULL : thread->top;
}

static void place(tps_lua *lua, tps_thread thread) {
  size_t i = home(lua, thread.owner);
  while (lua->threads[i].owner != NULL) i = (i + 1) & (lua->thread_slots - 1);
  lua->threads[i] = thread;
}

/* Room for one more coroutine; false when out of memory. */
static bool grow(tps_lua *lua) {
  if ((lua->thread_count + 1) * 2 <= lua->thread_slots) return true;
  size_t old_slots = lua->thread_slots;
  tps_thread *old = lua->threads;
  size_t slots = old_slots == 0 ? 16 : old_slots * 2;
  tps_thread *threads = (tps_thread *)calloc(slots, sizeof *threads);
  if (threads == NULL) return false;
  lua->threads = threads;
  lua->thread_slots = slots;
  for (size_t i = 0; i < old_slots; i++)
    if (old[i].owner != NULL) place(lua, old[i]);
  free(old);
  return true;
}

/* Empties the slot and moves up what had to give way to it. */
static void forget_thread(tps_lua *lua, tps_thread *thread) {
  size_t mask = lua->thread_slots - 1;
  size_t i = (size_t)(thread - lua->threads);
  lua->threads[i].owner = NULL;
  lua->thread_count--;
  for (i = (i + 1) & mask; lua->threads[i].owner != NULL; i = (i + 1) & mask) {
    tps_thread moved = lua->threads[i];
    lua->threads[i].owner = NULL;
    place(lua, moved);
  }
}

void tps_frame_link(lua_State *L, tps_lua *lua, tps_frame *frame) {
  frame->below = tps_frames_top(lua, L);
  frame->seq = ++lua->frame_seq;
  if (L == lua->main) {
    lua->main_top = frame;
  } else if (frame->below != NULL) {
    find_thread(lua, L)->top = frame;
  } else {
    if (!grow(lua)) luaL_error(L, "not enough memory");
    place(lua, (tps_thread){L, frame});
    lua->thread_count++;
  }
  frame->owner = L;
}

void tps_frame_unlink(tps_lua *lua, tps_frame *frame) {
  tps_thread *thread = NULL;
  tps_frame **at = &lua->main_top;
  if (frame->owner != lua->main) {
    thread = find_thread(lua, frame->owner);
    if (thread == NULL) return;
    at = &thread->top;
  }
  while (*at != NULL && *at != frame) at = &(*at)->below;
  if (*at != NULL) *at = frame->below;
  if (thread != NULL && thread->top == NULL) forget_thread(lua, thread);
}

/* ---- slots --------------------------------------------------------------- */

static void release_slot(lua_State *L, tps_current *s) {
  tps_lua_stream *box = s->box;
  s->box = NULL;
  if (box == NULL) return;
  if (s->anchored && --box->anchors == 0) {
    lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_HELD);
    lua_pushnil(L);
    lua_rawsetp(L, -2, box);
    lua_pop(L, 1);
  }
  if (--box->holds == 0 && box->close_later) tps_stream_box_close(box);
}

void tps_frame_clear(lua_State *L, tps_frame *frame) {
  release_slot(L, &frame->first);
  for (int i = 0; i < frame->more_count; i++) release_slot(L, &frame->more[i]);
  free(frame->more);
  frame->more = NULL;
  frame->more_count = 0;
}

void tps_frame_remove(lua_State *L, tps_lua *lua, tps_frame *frame) {
  if (frame->owner == NULL) return;
  tps_frame_unlink(lua, frame);
  frame->owner = NULL;
  tps_frame_clear(L, frame);
}

tps_current *tps_frame_find(tps_frame *frame, const tps_device *device) {
  if (frame->first.device == device) return &frame->first;
  for (int i = 0; i < frame->more_count; i++)
    if (frame->more[i].device == device) return &frame->more[i];
  return NULL;
}

tps_current *tps_frame_need(lua_State *L, tps_frame *frame,
                            tps_device *device) {
  tps_current *s = tps_frame_find(frame, device);
  if (s != NULL) return s;
  if (frame->first.device == NULL) {
    s = &frame->first;
  } else {
    tps_current *more = (tps_current *)realloc(
        frame->more, ((size_t)frame->more_count + 1) * sizeof *more);
    if (more == NULL) tps_misuse(L, "not enough memory");
    frame->more = more;
    s = &more[frame->more_count++];
  }
  *s = (tps_current){device, NULL, false};
  return s;
}

void tps_frame_anchor(lua_State *L, tps_current *s, int index,
                      tps_lua_stream *box) {
  if (box->anchors == 0) {
    lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_HELD);
    lua_pushvalue(L, index);
    lua_rawsetp(L, -2, box);
    lua_pop(L, 1);
  }
  tps_current old = *s;
  *s = (tps_current){old.device, box, true};
  box->anchors++;
  box->holds++;
  release_slot(L, &old);
}

/* ---- frames -------------------------------------------------------------- */

tps_frame *tps_frame_push(lua_State *L) {
  tps_frame *frame =
      (tps_frame *)lua_newuserdatauv(L, sizeof(tps_frame), TPS_FRAME_STREAM);
  memset(frame, 0, sizeof *frame);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_setmetatable(L, -2);
  frame->head = (tps_head){tps_seal(frame, TPS_TYPE_SCOPE), tps_lua_of(L)};
  return frame;
}

/* True for a coroutine that can never run again. */
static bool dead(lua_State *co) {
  lua_Debug ar;
  int status = lua_status(co);
  if (status == LUA_YIELD) return false;
  if (status != LUA_OK) return true;
  return !lua_getstack(co, 0, &ar) && lua_gettop(co) == 0;
}

void tps_scope_purge(lua_State *L, tps_lua *lua) {
  for (size_t i = 0; i < lua->thread_slots; i++) {
    lua_State *owner = lua->threads[i].owner;
    if (owner == NULL || !dead(owner)) continue;
    for (tps_frame *top; (top = tps_frames_top(lua, owner)) != NULL;)
      tps_frame_remove(L, lua, top);
    i = (size_t)-1; /* the hash has moved: from the start */
  }
}

void tps_scope_close_all(tps_lua *lua) {
  free(lua->threads);
  lua->threads = NULL;
  lua->thread_count = lua->thread_slots = 0;
  lua->main_top = NULL;
}
