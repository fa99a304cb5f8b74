/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which frames count: those of the running coroutine, of the one that resumed it,
 * and so on. */
#include "lua/frames.h"

static bool running_or_normal(lua_State *co) {
  lua_Debug ar;
  return lua_status(co) == LUA_OK && lua_getstack(co, 0, &ar);
}

/* The coroutine that `co`, which is not running, has resumed: argument 1 of
 * coroutine.resume (or close), upvalue 1 of what coroutine.wrap returned. NULL
 * where a foreign function did it. */
static lua_State *resumed_by(lua_State *co) {
  lua_Debug ar;
  lua_State *next = NULL;
  if (!lua_getstack(co, 0, &ar) || !lua_checkstack(co, 2)) return NULL;
  lua_getinfo(co, "f", &ar); /* function */
  if (lua_iscfunction(co, -1)) {
    if (lua_getlocal(co, &ar, 1) != NULL) {
      next = lua_tothread(co, -1);
      lua_pop(co, 1);
    }
    if (next == NULL && lua_getupvalue(co, -1, 1) != NULL) {
      next = lua_tothread(co, -1);
      lua_pop(co, 1);
    }
  }
  lua_pop(co, 1);
  return next != NULL && running_or_normal(next) ? next : NULL;
}

static bool on_path(lua_State *const *path, int length, const lua_State *co) {
  for (int i = 0; i < length; i++)
    if (path[i] == co) return true;
  return false;
}

/* Under a foreign resumer the order is not known: coroutines that are in the
 * middle of resuming another, the newest frame first. */
static void add_normal(const tps_lua *lua, const lua_State *L, tps_chain *c,
                       lua_State *const *path, int length) {
  int begin = c->count;
  for (size_t i = 0; i < lua->thread_slots; i++) {
    const tps_thread *t = &lua->threads[i];
    if (t->owner == NULL || t->owner == L || on_path(path, length, t->owner) ||
        !running_or_normal(t->owner) || c->count >= TPS_MAX_CHAIN)
      continue;
    int at = c->count++;
    for (; at > begin && c->tops[at - 1]->seq < t->top->seq; at--)
      c->tops[at] = c->tops[at - 1];
    c->tops[at] = t->top;
  }
}

void tps_chain_make(lua_State *L, const tps_lua *lua, tps_chain *c) {
  lua_State *path[TPS_MAX_CHAIN];
  int length = 0;
  tps_frame *own = tps_frames_top(lua, L);
  c->count = 0;
  if (own != NULL) c->tops[c->count++] = own;
  if (L == lua->main) return;
  if (lua->thread_count == (own != NULL)) { /* no other but the main one */
    if (lua->main_top != NULL) c->tops[c->count++] = lua->main_top;
    return;
  }
  lua_State *co = lua->main;
  while (co != NULL && co != L && length < TPS_MAX_CHAIN) {
    path[length++] = co;
    co = resumed_by(co);
  }
  if (co != L) add_normal(lua, L, c, path, length);
  while (length-- > 0) {
    tps_frame *top = tps_frames_top(lua, path[length]);
    if (top != NULL) c->tops[c->count++] = top;
  }
}

/* ---- looking up ---------------------------------------------------------- */

tps_device *tps_chain_device(const tps_chain *c) {
  for (int i = 0; i < c->count; i++)
    for (tps_frame *f = c->tops[i]; f != NULL; f = f->below)
      if (f->device != NULL) return f->device;
  return NULL;
}

tps_lua_stream *tps_chain_stream(const tps_chain *c, const tps_device *device) {
  for (int i = 0; i < c->count; i++)
    for (tps_frame *f = c->tops[i]; f != NULL; f = f->below) {
      const tps_current *s = tps_frame_find(f, device);
      if (tps_current_open(s)) return s->box;
      if (f->whole) return NULL;
    }
  return NULL;
}

tps_lua_stream *tps_chain_other(const tps_chain *c, tps_frame *frame) {
  for (int i = 0; i < c->count; i++)
    for (const tps_frame *f = c->tops[i]; f != NULL; f = f->below) {
      for (int j = -1; j < f->more_count; j++) {
        const tps_device *device = j < 0 ? f->first.device : f->more[j].device;
        tps_lua_stream *box = NULL;
        if (device != NULL && tps_frame_find(frame, device) == NULL)
          box = tps_chain_stream(c, device);
        if (box != NULL) return box;
      }
      if (f->whole) return NULL;
    }
  return NULL;
}
