/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.capture, tp.graph_if, tp.graph_while: a function is called with a capturing
 * stream current, through with_stream, and can't yield meanwhile. However that
 * ends, the capture does: on the main coroutine by a to-be-closed value, which
 * leaves tracebacks whole; elsewhere by pcall, since a coroutine that dies by an
 * error closes nothing.
 *
 * Named parameters reach the function as Parameters, which a launch or a fill takes
 * where a number would stand: its value then, and a note of where it went. */
#include "lua/capture.h"

#include <stdlib.h>
#include <string.h>

/* What a function that captures has for p.name. */
typedef struct parameter {
  const tps_lua_graph *of; /* its graph */
  uint32_t index;
} parameter;

/* User values of a Parameter. */
enum { PARAMETER_VALUE = 1, PARAMETER_NAME };

void tps_slots_free(tps_slots *slots) {
  free(slots->items);
  *slots = (tps_slots){0};
}

void tps_push_notices(lua_State *L) {
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_GRAPH);
  lua_getiuservalue(L, -1, TPS_GRAPH_NOTICES);
  lua_remove(L, -2);
}

/* ---- the guard ----------------------------------------------------------- */

/* Pushes the guard of a capture that has not begun. */
static tps_lua_capture *push_guard(lua_State *L, tps_lua_graph *box) {
  tps_lua_capture *guard = (tps_lua_capture *)tps_new(
      L, TPS_TYPE_CAPTURE, sizeof(tps_lua_capture), 0);
  guard->box = box;
  return guard;
}

static void activate(tps_lua *lua, tps_lua_capture *guard) {
  guard->around = lua->capture;
  guard->slots = guard->box->slots.count;
  guard->active = true;
  lua->capture = guard;
}

static void close_private(tps_lua_capture *guard) {
  tps_lua_stream *box = guard->private;
  guard->private = NULL;
  if (box == NULL) return;
  if (box->holds > 0) box->close_later = true;
  else tps_stream_box_close(box);
}

/* The capture that the guard stands for has ended. */
static void deactivate(lua_State *L, tps_lua *lua, tps_lua_capture *guard) {
  guard->active = false;
  lua->capture = guard->around;
  if (guard->around == NULL) {
    lua_pushnil(L);
    lua_setiuservalue(L, lua_upvalueindex(1), TPS_UV_GRAPH);
  }
}

/* By an error: nothing comes of it. */
static void abandon(lua_State *L, tps_lua_capture *guard) {
  tps_lua *lua = tps_lua_of(L);
  if (guard->active) {
    if (lua->context != NULL) tps_capture_abort(lua->context);
    guard->box->slots.count = guard->slots;
    deactivate(L, lua, guard);
  }
  close_private(guard);
}

static int capture_close(lua_State *L) {
  tps_lua_capture *guard = (tps_lua_capture *)tps_to(L, 1, TPS_TYPE_CAPTURE);
  if (guard != NULL) abandon(L, guard);
  return 0;
}

/* ---- calling ------------------------------------------------------------- */

/* Pushes a new stream of the device; the guard closes it. */
static void push_private(lua_State *L, tps_lua_capture *guard,
                         tps_device *device) {
  tps_error err;
  tps_lua_stream *box = tps_push_stream(L);
  if (tps_stream_open(tps_open(L)->context, device, 0, false, &box->stream,
                      &err) != 0) {
    box->stream = NULL;
    tps_raise(L, &err);
  }
  box->stream->tag = (uint64_t)box->number;
  guard->private = box;
}

/* Calls what lies on the stack above `function`, and that; an error abandons
 * the capture. */
static void call(lua_State *L, int function, tps_lua_capture *guard) {
  int count = lua_gettop(L) - function;
  if (L == tps_lua_of(L)->main) {
    lua_call(L, count, 0);
    return;
  }
  if (lua_pcall(L, count, 0, 0) == LUA_OK) return;
  abandon(L, guard);
  lua_error(L);
}

/* Before the capture begins: nothing between that and the call may raise. */
static void make_room(lua_State *L, int first, int last) {
  luaL_checkstack(L, last - first + 2 * LUA_MINSTACK,
                  "too many arguments, or not enough memory");
}

/* Calls fn, at index `fn`, with the values first … last, `stream` current. With
 * `p` not 0 the value there is its first argument. Needs room. */
static void call_with(lua_State *L, tps_lua_capture *guard, int stream, int fn,
                      int p, int first, int last) {
  tps_push_with_stream(L);
  int function = lua_gettop(L);
  lua_pushvalue(L, stream);
  lua_pushvalue(L, fn);
  if (p != 0) lua_pushvalue(L, p);
  for (int i = first; i <= last; i++) lua_pushvalue(L, i);
  call(L, function, guard);
}

/* ---- parameters ---------------------------------------------------------- */

/* → a table of the graph's Parameters by name */
static void push_parameters(lua_State *L, const tps_lua_graph *box, int names,
                            int values) {
  lua_Integer count = (lua_Integer)lua_rawlen(L, names);
  lua_createtable(L, 0, (int)count);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, names, i); /* table name */
    parameter *p = (parameter *)tps_new(L, TPS_TYPE_PARAMETER,
                                        sizeof(parameter), PARAMETER_NAME);
    p->of = box;
    p->index = (uint32_t)i;
    lua_rawgeti(L, values, i); /* table name Parameter value */
    lua_setiuservalue(L, -2, PARAMETER_VALUE);
    lua_pushvalue(L, -2);
    lua_setiuservalue(L, -2, PARAMETER_NAME);
    lua_rawset(L, -3);
  }
}

static int parameter_tostring(lua_State *L) {
  tps_check(L, 1, TPS_TYPE_PARAMETER);
  lua_getiuservalue(L, 1, PARAMETER_NAME);
  lua_getiuservalue(L, 1, PARAMETER_VALUE);
  luaL_tolstring(L, -1, NULL);
  lua_pushfstring(L, "tpstream.Parameter (%s, %s)", lua_tostring(L, -3),
                  lua_tostring(L, -1));
  return 1;
}

/* The value takes the Parameter's place; a slot for it is made ready. */
static void resolve(lua_State *L, int index, const tps_slot *slot) {
  tps_slots *slots = &tps_lua_of(L)->capture->box->slots;
  uint32_t used = slots->count + slots->pending;
  if (used == slots->capacity) {
    uint32_t capacity = 2 * used + 4;
    tps_slot *items =
        (tps_slot *)realloc(slots->items, capacity * sizeof *items);
    if (items == NULL) {
      luaL_error(L, "not enough memory");
      return;
    }
    slots->items = items;
    slots->capacity = capacity;
  }
  slots->items[used] = *slot;
  slots->pending++;
  lua_getiuservalue(L, index, PARAMETER_VALUE);
  lua_replace(L, index);
}

/* The Parameter at `index`, or NULL. *ours: of the capture that goes on. */
static const parameter *to_parameter(lua_State *L, int index, bool *ours) {
  if (lua_type(L, index) != LUA_TUSERDATA) return NULL;
  const parameter *p = (const parameter *)tps_to(L, index, TPS_TYPE_PARAMETER);
  *ours = p != NULL && p->of == tps_lua_of(L)->capture->box;
  return p;
}

void tps_capture_arguments(lua_State *L, const tps_lua_kernel *k, int first) {
  tps_lua_of(L)->capture->box->slots.pending = 0;
  for (uint32_t i = 0; i < k->count; i++) {
    int index = first + (int)i;
    bool ours;
    const parameter *p = to_parameter(L, index, &ours);
    if (p == NULL) continue;
    if (!ours) tps_bad_argument(L, k, i, "a parameter of another capture");
    tps_slot slot = {.param = p->index, .fill = -1, .plan = k->plans[i]};
    resolve(L, index, &slot);
  }
}

bool tps_capture_value(lua_State *L, int index, int dtype) {
  bool ours;
  if (tps_lua_of(L)->capture == NULL) return false;
  const parameter *p = to_parameter(L, index, &ours);
  if (p == NULL) return false;
  if (!ours) tps_argument_error(L, index, "a parameter of another capture");
  tps_slot slot = {.param = p->index, .fill = dtype};
  tps_lua_of(L)->capture->box->slots.pending = 0;
  resolve(L, index, &slot);
  return true;
}

void tps_capture_launched(tps_lua *lua, const tps_stream *stream) {
  tps_slots *slots = &lua->capture->box->slots;
  for (; stream->capturing && slots->pending > 0; slots->pending--)
    slots->items[slots->count++].node = tps_capture_last(stream);
  slots->pending = 0;
}

/* ---- graphs -------------------------------------------------------------- */

static void take_tables(lua_State *L, const tps_capture_request *r, int graph) {
  if (r->names == 0) return;
  lua_pushvalue(L, r->names);
  lua_setiuservalue(L, graph, TPS_GRAPH_NAMES);
  lua_pushvalue(L, r->values);
  lua_setiuservalue(L, graph, TPS_GRAPH_VALUES);
}

/* graph stream → ; begins */
static void begin(lua_State *L, tps_lua_capture *guard, int graph, int stream,
                  bool relaxed) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  tps_site_set(L, lua);
  lua_pushvalue(L, graph);
  if (tps_capture_begin(tps_check_stream(L, stream)->stream, relaxed, &err))
    tps_raise(L, &err);
  activate(lua, guard);
  lua_setiuservalue(L, lua_upvalueindex(1), TPS_UV_GRAPH);
}

static void end(lua_State *L, tps_lua_capture *guard) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  int code = tps_capture_end(lua->context, &guard->box->graph, &err);
  if (code != 0) guard->box->graph = NULL;
  deactivate(L, lua, guard);
  close_private(guard);
  if (code != 0) tps_raise(L, &err);
}

tps_lua_graph *tps_capture_run(lua_State *L, const tps_capture_request *r) {
  make_room(L, r->first, r->last);
  tps_lua_graph *box = tps_push_graph(L);
  int graph = lua_gettop(L), stream = r->stream, parameters = 0;
  take_tables(L, r, graph);
  tps_lua_capture *guard = push_guard(L, box);
  if (L == tps_lua_of(L)->main) lua_toclose(L, -1);
  if (stream == 0) {
    push_private(L, guard, r->device);
    stream = lua_gettop(L);
  }
  if (r->names != 0) {
    push_parameters(L, box, r->names, r->values);
    parameters = lua_gettop(L);
  }
  begin(L, guard, graph, stream, r->relaxed);
  call_with(L, guard, stream, r->fn, parameters, r->first, r->last);
  end(L, guard);
  lua_pushvalue(L, graph);
  return box;
}

/* ---- tp.capture ---------------------------------------------------------- */

static bool has_call(lua_State *L, int index) {
  if (luaL_getmetafield(L, index, "__call") == LUA_TNIL) return false;
  lua_pop(L, 1);
  return true;
}

static void finish_graph(lua_State *L, tps_lua_graph *box) {
  tps_error err;
  if (tps_graph_build(box->graph, &err) == 0) return;
  tps_graph_free(box->graph);
  box->graph = NULL;
  tps_raise(L, &err);
}

/* tp.capture([s,] fn, ...), tp.capture(options, fn, ...) → Graph */
static int capture_capture(lua_State *L) {
  tps_open(L);
  bool bare = lua_isfunction(L, 1) ||
              (has_call(L, 1) && tps_to(L, 1, TPS_TYPE_STREAM) == NULL);
  if (bare) {
    lua_pushnil(L);
    lua_insert(L, 1);
  }
  tps_capture_request r = {.fn = 2, .first = 3, .last = lua_gettop(L)};
  if (!bare) tps_check_any(L, 1);
  if (lua_istable(L, 1)) {
    tps_capture_options(L, &r);
  } else if (!lua_isnil(L, 1)) {
    tps_check_stream(L, 1);
    r.stream = 1;
  }
  if (!bare) tps_check_callable(L, 2);
  r.device = tps_current_device(L);
  finish_graph(L, tps_capture_run(L, &r));
  return 1;
}

/* ---- bodies -------------------------------------------------------------- */

/* A Buffer of one 32-bit integer on the stream's device. */
static void check_flag(lua_State *L, const tps_device *device) {
  const tps_lua_buffer *flag = tps_check_buffer(L, 1);
  char a[32], b[32];
  bool fits = flag->count == 1 &&
              (flag->dtype == TPS_INT32 || flag->dtype == TPS_UINT32);
  if (!fits) {
    lua_pushfstring(L, "the flag is one int32 or uint32, got a buffer of %I %s",
                    (LUAI_UACINT)flag->count, tps_dtype_names[flag->dtype]);
    tps_argument_error(L, 1, lua_tostring(L, -1));
  }
  if (flag->memory->device == device) return;
  lua_pushfstring(L, "the flag is on %s, the graph on %s",
                  tps_device_label(flag->memory->device, a, sizeof a),
                  tps_device_label(device, b, sizeof b));
  tps_argument_error(L, 1, lua_tostring(L, -1));
}

/* fn's work becomes the body of a node on the current stream. */
static int conditional(lua_State *L, bool loop) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  const tps_lua_buffer *flag = tps_check_buffer(L, 1);
  tps_check_callable(L, 2);
  int last = lua_gettop(L);
  make_room(L, 3, last);
  tps_lua_stream *outer = tps_current_stream_box(L, NULL);
  tps_push_stream_of(L, outer); /* kept on the stack */
  check_flag(L, outer->stream->device);
  if (lua->capture == NULL)
    return tps_misuse(L, "conditional nodes are made while a graph is captured "
                         "(tp.capture), on a stream that is part of it");
  tps_lua_capture *guard = push_guard(L, lua->capture->box);
  if (L == lua->main) lua_toclose(L, -1);
  push_private(L, guard, outer->stream->device);
  int stream = lua_gettop(L);
  tps_site_set(L, lua);
  if (tps_capture_body_begin(outer->stream, guard->private->stream, &err) !=
      0) {
    abandon(L, guard);
    return tps_raise(L, &err);
  }
  activate(lua, guard);
  call_with(L, guard, stream, 2, 0, 3, last);
  if (flag->memory == NULL) {
    abandon(L, guard);
    tps_check_buffer(L, 1); /* raises */
  }
  tps_site_set(L, lua);
  int code =
      tps_capture_body_end(lua->context, loop, flag->memory, flag->first, &err);
  if (code != 0) guard->box->slots.count = guard->slots;
  deactivate(L, lua, guard);
  close_private(guard);
  return code != 0 ? tps_raise(L, &err) : 0;
}

static int capture_graph_if(lua_State *L) { return conditional(L, false); }
static int capture_graph_while(lua_State *L) { return conditional(L, true); }

static const luaL_Reg capture_meta[] = {
    {"__close", capture_close}, {"__gc", capture_close}, {NULL, NULL}};
static const luaL_Reg no_methods[] = {{NULL, NULL}};
static const luaL_Reg parameter_meta[] = {{"__tostring", parameter_tostring},
                                          {NULL, NULL}};
static const luaL_Reg capture_functions[] = {
    {"capture", capture_capture},
    {"graph_if", capture_graph_if},
    {"graph_while", capture_graph_while},
    {NULL, NULL}};

void tps_capture_open_types(lua_State *L) {
  tps_type_make(L, TPS_TYPE_CAPTURE, capture_meta, no_methods);
  tps_type_make(L, TPS_TYPE_PARAMETER, parameter_meta, no_methods);
  tps_functions(L, capture_functions);
}
