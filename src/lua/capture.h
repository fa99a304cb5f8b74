/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graphs as Lua sees them: the handle, and what a capture notes beside the
 * runtime: where named parameters went and what host nodes are to call. */
#ifndef TPS_LUA_CAPTURE_H
#define TPS_LUA_CAPTURE_H

#include "lua/state.h"
#include "runtime/graph.h"

/* Where a named parameter stands: among those of a launch, or as the value of a
 * fill. */
typedef struct tps_slot {
  uint32_t param; /* index of its name, from 1 on */
  uint32_t node;  /* id */
  int fill;       /* the elements' dtype; -1: of a launch */
  tps_plan plan;  /* of a launch */
} tps_slot;

typedef struct tps_slots {
  tps_slot *items;
  uint32_t count, capacity;
  uint32_t pending; /* behind `count`: of the launch or fill in hand */
} tps_slots;

typedef struct tps_lua_graph {
  tps_head head;
  tps_graph *graph; /* NULL once closed, and while it is captured */
  tps_slots slots;
} tps_lua_graph;

/* Its user values. */
enum {
  TPS_GRAPH_NAMES = 1, /* of parameters: an array, and name → index */
  TPS_GRAPH_VALUES,    /* theirs: an array */
  TPS_GRAPH_NOTICES,   /* entries of on_complete, in the order of the nodes */
  TPS_GRAPH_USER_VALUES = TPS_GRAPH_NOTICES
};

/* One capture, or that of a body: on the stack of the call that captures. */
typedef struct tps_lua_capture {
  struct tps_lua_capture *around;
  tps_lua_graph *box;      /* of the graph */
  tps_lua_stream *private; /* a stream of its own, or NULL */
  uint32_t slots;          /* of the graph's, when it began */
  bool active;
} tps_lua_capture;

void tps_capture_open_types(lua_State *L);
void tps_graph_open_type(lua_State *L);
tps_lua_graph *tps_check_graph(lua_State *L, int index);
/* Pushes a Graph that is still closed, its user values empty tables. */
tps_lua_graph *tps_push_graph(lua_State *L);
void tps_slots_free(tps_slots *slots);

/* What is captured next: the function at index `fn` with the arguments first …
 * last; with named parameters, their tables at `names` and `values`, it gets one
 * more before these. `stream`: index of a Stream, or 0 for one of its own. */
typedef struct tps_capture_request {
  int fn, first, last;
  int stream;
  int names, values; /* 0: no parameters */
  tps_device *device;
  bool relaxed;
} tps_capture_request;
/* Reads the table of options at 1, which the Stream among them, or nil,
 * replaces; pushes the tables of parameters. */
void tps_capture_options(lua_State *L, tps_capture_request *r);
/* What a parameter may be: a number, a boolean, a half. */
bool tps_capture_plain(lua_State *L, int index);
/* Pushes the Graph, which is not built yet. */
tps_lua_graph *tps_capture_run(lua_State *L, const tps_capture_request *r);

/* Pushes the table of notices of the graph that is being captured. */
void tps_push_notices(lua_State *L);

/* ---- callback.c ---------------------------------------------------------- */

/* entry Stream → : an entry like it for that stream; its token. */
uint64_t tps_callback_again(lua_State *L);

#endif
