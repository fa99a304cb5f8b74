/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Frames, as scope.c, frames.c, chain.c and inherit.c share them. A frame says what
 * one block has made current; each coroutine has a list of its own, the innermost
 * first. To look something up is to go through the frames of the running
 * coroutine, then of the one that resumed it, and so on to the main one; the first
 * that has an answer wins.
 */
#ifndef TPS_LUA_FRAMES_H
#define TPS_LUA_FRAMES_H

#include "lua/state.h"

/* The current stream of one device. */
typedef struct tps_current {
  tps_device *device;
  tps_lua_stream *box;
  bool anchored; /* through TPS_UV_HELD */
} tps_current;

typedef struct tps_frame {
  tps_head head;
  lua_State *owner; /* NULL: not in force */
  struct tps_frame *below;
  uint64_t seq;
  tps_device *device; /* made current, or NULL */
  tps_current first;  /* most have one stream or none */
  tps_current *more;
  int more_count;
  unsigned tasks; /* how many have it in common */
  bool block;     /* of with_stream: its end takes out what was left above it */
  bool whole; /* of tasks: what it has no stream for is the default stream */
  bool busy;  /* one of those kept: a block has it */
} tps_frame;

/* User values of a frame. */
enum { TPS_FRAME_THREAD = 1, TPS_FRAME_STREAM };

/* ---- frames.c ------------------------------------------------------------ */

/* The coroutine's innermost frame, or NULL. */
tps_frame *tps_frames_top(const tps_lua *lua, const lua_State *owner);
/* Pushes a frame that is not yet in force; metatable: upvalue 2. */
tps_frame *tps_frame_push(lua_State *L);
/* Puts the frame on top of the running coroutine's list; raises when out of
 * memory. */
void tps_frame_link(lua_State *L, tps_lua *lua, tps_frame *frame);
void tps_frame_unlink(tps_lua *lua, tps_frame *frame);
/* Lets go of its streams. */
void tps_frame_clear(lua_State *L, tps_frame *frame);
/* Takes the frame out of force; nothing if it is out already. Never raises. */
void tps_frame_remove(lua_State *L, tps_lua *lua, tps_frame *frame);
/* What the frame has for the device, or NULL. */
tps_current *tps_frame_find(tps_frame *frame, const tps_device *device);
/* The same, made if need be; raises when out of memory. */
tps_current *tps_frame_need(lua_State *L, tps_frame *frame, tps_device *device);
/* The Stream at `index` becomes that of the slot, which keeps it alive. */
void tps_frame_anchor(lua_State *L, tps_current *s, int index,
                      tps_lua_stream *box);

static inline bool tps_no_frames(const tps_lua *lua) {
  return lua->main_top == NULL && lua->thread_count == 0;
}
static inline bool tps_current_open(const tps_current *s) {
  return s != NULL && s->box != NULL && s->box->stream != NULL;
}

/* ---- chain.c ------------------------------------------------------------- */

/* As deep as coroutines can nest (LUAI_MAXCCALLS is 200). */
#define TPS_MAX_CHAIN 256

typedef struct tps_chain {
  tps_frame *tops[2 * TPS_MAX_CHAIN];
  int count;
} tps_chain;

/* The innermost frames of all coroutines that count, the nearest first. */
void tps_chain_make(lua_State *L, const tps_lua *lua, tps_chain *c);
/* What is current there, or NULL. */
tps_device *tps_chain_device(const tps_chain *c);
tps_lua_stream *tps_chain_stream(const tps_chain *c, const tps_device *device);
/* What is current for a device that the frame has no stream of, or NULL. */
tps_lua_stream *tps_chain_other(const tps_chain *c, tps_frame *frame);

/* ---- scope.c ------------------------------------------------------------- */

/* The device that is current where nothing else is. */
tps_device *tps_initial_device(lua_State *L, tps_lua *lua);

/* ---- inherit.c ----------------------------------------------------------- */

/* Its functions, which have the upvalues of scope.c's. */
extern const luaL_Reg tps_inherit_functions[];

#endif
