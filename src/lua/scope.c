/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The current stream and device, which belong to coroutines. A frame says what
 * one block has made current; each coroutine has a list of its own, the
 * innermost first. To look something up is to go through the frames of the
 * running coroutine, then of the one that resumed it, and so on to the main one;
 * the first that has an answer wins.
 *
 * A frame is a userdata: with_stream keeps it on the stack, to be closed when
 * the call ends in whatever way; a scope gives it to the script; set_stream
 * outside all blocks makes one that lives as long as its coroutine. It keeps its
 * coroutine alive, so that the address of a dead one can't come back as another
 * coroutine's while its frames are still listed.
 */
#include "lua/state.h"

#include <stdlib.h>
#include <string.h>

/* The current stream of one device. */
typedef struct slot {
  tps_device *device;
  tps_lua_stream *box;
  bool anchored; /* through TPS_UV_HELD */
} slot;

typedef struct tps_frame {
  tps_head head;
  lua_State *owner; /* NULL: not in force */
  struct tps_frame *below;
  uint64_t seq;
  tps_device *device; /* made current, or NULL */
  slot first;         /* most have one stream or none */
  slot *more;
  int more_count;
  bool block; /* of with_stream: its end takes out what was left above it */
  bool whole; /* of a task: what it has no stream for is the default stream */
  bool busy;  /* one of those kept: a block has it */
} tps_frame;

/* The first upvalue of the functions that holds a kept frame. */
#define FIRST_KEPT 3

/* User values of a frame. */
enum { FRAME_THREAD = 1, FRAME_STREAM };

/* As deep as coroutines can nest (LUAI_MAXCCALLS is 200). */
#define MAX_CHAIN 256

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

static tps_frame *top_of(const tps_lua *lua, const lua_State *owner) {
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

/* Puts the frame on top of its coroutine's list; raises when out of memory. */
static void link_frame(lua_State *L, tps_lua *lua, tps_frame *frame) {
  frame->below = top_of(lua, L);
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

static void unlink_frame(tps_lua *lua, tps_frame *frame) {
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

static void release_slot(lua_State *L, slot *s) {
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

/* Takes the frame out of force; nothing if it is out already. Never raises. */
static void remove_frame(lua_State *L, tps_lua *lua, tps_frame *frame) {
  if (frame->owner == NULL) return;
  unlink_frame(lua, frame);
  frame->owner = NULL;
  release_slot(L, &frame->first);
  for (int i = 0; i < frame->more_count; i++) release_slot(L, &frame->more[i]);
  free(frame->more);
  frame->more = NULL;
  frame->more_count = 0;
}

static slot *find_slot(tps_frame *frame, const tps_device *device) {
  if (frame->first.device == device) return &frame->first;
  for (int i = 0; i < frame->more_count; i++)
    if (frame->more[i].device == device) return &frame->more[i];
  return NULL;
}

/* The slot of that device, a new one if need be; raises when out of memory. */
static slot *need_slot(lua_State *L, tps_frame *frame, tps_device *device) {
  slot *s = find_slot(frame, device);
  if (s != NULL) return s;
  if (frame->first.device == NULL) {
    s = &frame->first;
  } else {
    slot *more = (slot *)realloc(frame->more, ((size_t)frame->more_count + 1) *
                                                  sizeof *more);
    if (more == NULL) tps_misuse(L, "not enough memory");
    frame->more = more;
    s = &more[frame->more_count++];
  }
  *s = (slot){device, NULL, false};
  return s;
}

/* The Stream at `index` becomes that of the slot, which keeps it alive. */
static void anchor(lua_State *L, slot *s, int index, tps_lua_stream *box) {
  if (box->anchors == 0) {
    lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_HELD);
    lua_pushvalue(L, index);
    lua_rawsetp(L, -2, box);
    lua_pop(L, 1);
  }
  slot old = *s;
  *s = (slot){old.device, box, true};
  box->anchors++;
  box->holds++;
  release_slot(L, &old);
}

/* ---- frames -------------------------------------------------------------- */

/* Pushes a frame that is not yet in force; metatable: upvalue 2. */
static tps_frame *push_frame(lua_State *L) {
  tps_frame *frame =
      (tps_frame *)lua_newuserdatauv(L, sizeof(tps_frame), FRAME_STREAM);
  memset(frame, 0, sizeof *frame);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_setmetatable(L, -2);
  frame->head = (tps_head){tps_seal(frame, TPS_TYPE_SCOPE), tps_lua_of(L)};
  return frame;
}

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
  frame = push_frame(L);
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
    lua_setiuservalue(L, index, FRAME_THREAD);
  }
  link_frame(L, lua, frame);
  frame->device = device;
  if (box != NULL) {
    frame->first = (slot){box->stream->device, box, false};
    box->holds++;
  }
}

/* The end of a block: out goes what with_stream's function left above, too. */
static void leave(lua_State *L, tps_frame *frame) {
  tps_lua *lua = frame->head.lua;
  lua_State *owner = frame->owner;
  if (owner == NULL) return;
  if (frame->block)
    for (tps_frame *top; (top = top_of(lua, owner)) != NULL && top != frame;)
      remove_frame(L, lua, top);
  remove_frame(L, lua, frame);
}

static int scope_release(lua_State *L) {
  tps_frame *frame = (tps_frame *)tps_to(L, 1, TPS_TYPE_SCOPE);
  if (frame == NULL) return 0;
  leave(L, frame);
  if (frame->busy) {
    frame->first = (slot){NULL, NULL, false};
    frame->busy = false;
  }
  return 0;
}

static int scope_gc(lua_State *L) {
  tps_frame *frame = (tps_frame *)tps_to(L, 1, TPS_TYPE_SCOPE);
  if (frame == NULL) return 0;
  leave(L, frame);
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
    for (tps_frame *top; (top = top_of(lua, owner)) != NULL;)
      remove_frame(L, lua, top);
    i = (size_t)-1; /* the hash has moved: from the start */
  }
}

void tps_scope_close_all(tps_lua *lua) {
  free(lua->threads);
  lua->threads = NULL;
  lua->thread_count = lua->thread_slots = 0;
  lua->main_top = NULL;
}

/* ---- the chain of resumes ------------------------------------------------ */

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

typedef struct chain {
  tps_frame *tops[2 * MAX_CHAIN];
  int count;
} chain;

static bool on_path(lua_State *const *path, int length, const lua_State *co) {
  for (int i = 0; i < length; i++)
    if (path[i] == co) return true;
  return false;
}

/* Under a foreign resumer the order is not known: coroutines that are in the
 * middle of resuming another, the newest frame first. */
static void add_normal(const tps_lua *lua, const lua_State *L, chain *c,
                       lua_State *const *path, int length) {
  int begin = c->count;
  for (size_t i = 0; i < lua->thread_slots; i++) {
    const tps_thread *t = &lua->threads[i];
    if (t->owner == NULL || t->owner == L || on_path(path, length, t->owner) ||
        !running_or_normal(t->owner) || c->count >= MAX_CHAIN)
      continue;
    int at = c->count++;
    for (; at > begin && c->tops[at - 1]->seq < t->top->seq; at--)
      c->tops[at] = c->tops[at - 1];
    c->tops[at] = t->top;
  }
}

/* The innermost frames of all coroutines that count, the nearest first. */
static void make_chain(lua_State *L, const tps_lua *lua, chain *c) {
  lua_State *path[MAX_CHAIN];
  int length = 0;
  tps_frame *own = top_of(lua, L);
  c->count = 0;
  if (own != NULL) c->tops[c->count++] = own;
  if (L == lua->main) return;
  if (lua->thread_count == (own != NULL)) { /* no other but the main one */
    if (lua->main_top != NULL) c->tops[c->count++] = lua->main_top;
    return;
  }
  lua_State *co = lua->main;
  while (co != NULL && co != L && length < MAX_CHAIN) {
    path[length++] = co;
    co = resumed_by(co);
  }
  if (co != L) add_normal(lua, L, c, path, length);
  while (length-- > 0) {
    tps_frame *top = top_of(lua, path[length]);
    if (top != NULL) c->tops[c->count++] = top;
  }
}

/* ---- looking up ---------------------------------------------------------- */

static tps_lua_device *initial_device(lua_State *L, tps_lua *lua) {
  if (lua->initial == NULL) {
    tps_device *device;
    tps_error err;
    if (tps_device_get(lua->context->kind, lua->context->initial_device,
                       &device, &err) != 0)
      tps_raise(L, &err);
    lua->initial = tps_push_device(L, device);
    lua_pop(L, 1);
  }
  return lua->initial;
}

static tps_device *device_of(const chain *c) {
  for (int i = 0; i < c->count; i++)
    for (tps_frame *f = c->tops[i]; f != NULL; f = f->below)
      if (f->device != NULL) return f->device;
  return NULL;
}

static bool open_slot(const slot *s) {
  return s != NULL && s->box != NULL && s->box->stream != NULL;
}

static tps_lua_stream *stream_of(const chain *c, const tps_device *device) {
  for (int i = 0; i < c->count; i++)
    for (tps_frame *f = c->tops[i]; f != NULL; f = f->below) {
      const slot *s = find_slot(f, device);
      if (open_slot(s)) return s->box;
      if (f->whole) return NULL;
    }
  return NULL;
}

static bool no_frames(const tps_lua *lua) {
  return lua->main_top == NULL && lua->thread_count == 0;
}

tps_device *tps_current_device(lua_State *L) {
  tps_lua *lua = tps_open(L);
  chain c;
  if (no_frames(lua)) return initial_device(L, lua)->device;
  make_chain(L, lua, &c);
  tps_device *device = device_of(&c);
  return device != NULL ? device : initial_device(L, lua)->device;
}

static tps_lua_stream *look_up(lua_State *L, tps_lua *lua, tps_device *device) {
  chain c;
  make_chain(L, lua, &c);
  if (device == NULL) device = device_of(&c);
  if (device == NULL) device = initial_device(L, lua)->device;
  tps_lua_stream *box = stream_of(&c, device);
  return box != NULL ? box : tps_default_stream_box(L, device);
}

tps_lua_stream *tps_current_stream_box(lua_State *L, tps_device *device) {
  tps_lua *lua = tps_open(L);
  if (no_frames(lua)) {
    if (device == NULL) device = initial_device(L, lua)->device;
    return tps_default_stream_box(L, device);
  }
  const tps_frame *own = top_of(lua, L);
  if (own != NULL && own->device != NULL && own->first.device == own->device &&
      open_slot(&own->first) && (device == NULL || device == own->device))
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

/* What is current in `from`; NULL: the default stream. *device: where no other one
 * is current. */
static tps_lua_stream *look_from(lua_State *from, const tps_lua *lua,
                                 tps_device **device) {
  chain c;
  make_chain(from, lua, &c);
  tps_device *current = device_of(&c);
  if (current != NULL) *device = current;
  return stream_of(&c, *device);
}

/* What is current in `from` for a device that the frame has no stream of, or
 * NULL. */
static tps_lua_stream *next_other(lua_State *from, const tps_lua *lua,
                                  tps_frame *frame) {
  chain c;
  make_chain(from, lua, &c);
  for (int i = 0; i < c.count; i++)
    for (const tps_frame *f = c.tops[i]; f != NULL; f = f->below) {
      for (int j = -1; j < f->more_count; j++) {
        const tps_device *device = j < 0 ? f->first.device : f->more[j].device;
        tps_lua_stream *box = NULL;
        if (device != NULL && find_slot(frame, device) == NULL)
          box = stream_of(&c, device);
        if (box != NULL) return box;
      }
      if (f->whole) return NULL;
    }
  return NULL;
}

/* inherit(coroutine, fn, ...): calls fn(...), to begin a task, with what is current
 * in the coroutine that spawns it: the device and each device's stream. What is
 * current where the task is resumed does not matter to it. */
static int scope_inherit(lua_State *L) {
  tps_lua *lua = tps_open(L);
  lua_State *from = lua_tothread(L, 1);
  tps_device *device = initial_device(L, lua)->device;
  tps_lua_stream *box = look_from(from, lua, &device);
  if (box == NULL) box = tps_default_stream_box(L, device);
  tps_push_stream_of(L, box); /* kept on the stack */
  lua_insert(L, 1);
  tps_frame *frame = enter_block(L, lua, box->stream->device, box);
  frame->whole = true; /* Stream frame coroutine fn args... */
  while ((box = next_other(from, lua, frame)) != NULL) {
    tps_push_stream_of(L, box);
    anchor(L, need_slot(L, frame, box->stream->device), lua_gettop(L), box);
    lua_pop(L, 1);
  }
  lua_remove(L, 3);
  return call_in_block(L);
}

static int scope_scope(lua_State *L) {
  tps_open(L);
  tps_lua_stream *box = opt_stream_box(L, 1);
  lua_settop(L, 1);
  tps_frame *frame = push_frame(L); /* Stream frame */
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 2, FRAME_STREAM);
  enter(L, frame, 2, box == NULL ? NULL : box->stream->device, box);
  return 1;
}

/* The innermost frame of the running coroutine; made, for as long as it lives,
 * when there is none. */
static tps_frame *need_frame(lua_State *L, tps_lua *lua) {
  tps_frame *top = top_of(lua, L);
  if (top != NULL) return top;
  top = push_frame(L); /* frame */
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
  slot *s = need_slot(L, frame, box->stream->device);
  frame->device = s->device;
  anchor(L, s, 1, box);
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
    {"inherit", scope_inherit}, /* not the script's */
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
  lua_getfield(L, -1, "inherit");
  lua_setiuservalue(L, -3, TPS_UV_INHERIT);
  lua_pushnil(L);
  lua_setfield(L, -2, "inherit");
  lua_pop(L, 1); /* library state */
}
