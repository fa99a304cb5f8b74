/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graph: launching, changing, telling what it is made of. How that looks as a
 * picture is lua/tpstream/graph.lua's. */
#include "lua/capture.h"
#include "lua/plan.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/callback.h"

/* ---- boxes --------------------------------------------------------------- */

tps_lua_graph *tps_push_graph(lua_State *L) {
  tps_lua_graph *box = (tps_lua_graph *)tps_new(
      L, TPS_TYPE_GRAPH, sizeof(tps_lua_graph), TPS_GRAPH_USER_VALUES);
  for (int i = 1; i <= TPS_GRAPH_USER_VALUES; i++) {
    lua_newtable(L);
    lua_setiuservalue(L, -2, i);
  }
  return box;
}

tps_lua_graph *tps_check_graph(lua_State *L, int index) {
  tps_lua_graph *box = (tps_lua_graph *)tps_check(L, index, TPS_TYPE_GRAPH);
  if (TPS_UNLIKELY(box->graph == NULL || box->head.lua->context == NULL))
    tps_box_closed(L, "graph", box->graph == NULL);
  return box;
}

static void close_box(tps_lua_graph *box) {
  tps_graph *graph = box->graph;
  box->graph = NULL;
  tps_slots_free(&box->slots);
  tps_graph_free(graph);
}

static int graph_close(lua_State *L) {
  close_box((tps_lua_graph *)tps_check(L, 1, TPS_TYPE_GRAPH));
  return 0;
}

static int graph_gc(lua_State *L) {
  tps_lua_graph *box = (tps_lua_graph *)tps_to(L, 1, TPS_TYPE_GRAPH);
  if (box == NULL) return 0;
  tps_break_seal(box);
  close_box(box);
  return 0;
}

static int graph_tostring(lua_State *L) {
  const tps_lua_graph *box =
      (const tps_lua_graph *)tps_check(L, 1, TPS_TYPE_GRAPH);
  char label[32];
  if (box->graph == NULL) {
    lua_pushliteral(L, "tpstream.Graph (closed)");
    return 1;
  }
  uint32_t count = tps_graph_node_count(box->graph);
  lua_pushfstring(L, "tpstream.Graph (%s, %I node%s)",
                  tps_device_label(box->graph->device, label, sizeof label),
                  (LUAI_UACINT)count, count == 1 ? "" : "s");
  return 1;
}

static int graph_device(lua_State *L) {
  tps_push_device(L, tps_check_graph(L, 1)->graph->device);
  return 1;
}

/* ---- parameters ---------------------------------------------------------- */

static _Noreturn void unknown_parameter(lua_State *L, int names) {
  luaL_Buffer b;
  const char *key = lua_type(L, -1) == LUA_TSTRING
                        ? lua_pushfstring(L, "'%s'", lua_tostring(L, -1))
                        : luaL_tolstring(L, -1, NULL);
  lua_Integer count = (lua_Integer)lua_rawlen(L, names);
  luaL_buffinit(L, &b);
  luaL_addstring(&b, "the graph has no parameter ");
  luaL_addstring(&b, key);
  luaL_addstring(&b, count > 0 ? " (it has " : " (it has none)");
  for (lua_Integer i = 1; i <= count; i++) {
    if (i > 1) luaL_addstring(&b, ", ");
    lua_rawgeti(L, names, i);
    luaL_addvalue(&b);
  }
  if (count > 0) luaL_addstring(&b, ")");
  luaL_pushresult(&b);
  tps_argument_error(L, 2, lua_tostring(L, -1));
}

/* The value on top for that slot; raises where it does not fit. */
static void convert(lua_State *L, const tps_slot *slot, int names, void *to) {
  bool fill = slot->fill >= 0;
  tps_fit fit = fill ? tps_element_from(L, -1, slot->fill, to)
                     : tps_plan_convert(L, -1, &slot->plan, to);
  if (fit == TPS_FITS) return;
  const char *why = fill ? tps_push_misfit(L, -1, slot->fill, fit)
                         : tps_plan_misfit(L, -1, &slot->plan, fit);
  lua_rawgeti(L, names, (lua_Integer)slot->param);
  lua_pushfstring(L, "parameter '%s': %s", lua_tostring(L, -1), why);
  tps_argument_error(L, 2, lua_tostring(L, -1));
}

/* The value on top for all slots of parameter `param`. Where there are none it may
 * still be what g:update finds a use for. */
static void check_value(lua_State *L, const tps_lua_graph *box, int names,
                        uint32_t param) {
  unsigned char bytes[8];
  bool used = false;
  for (uint32_t i = 0; i < box->slots.count; i++) {
    if (box->slots.items[i].param != param) continue;
    convert(L, &box->slots.items[i], names, bytes);
    used = true;
  }
  if (used || tps_capture_plain(L, -1)) return;
  const char *type = tps_type_name(L, -1);
  lua_rawgeti(L, names, (lua_Integer)param);
  lua_pushfstring(L, "parameter '%s': a number or boolean expected, got %s",
                  lua_tostring(L, -1), type);
  tps_argument_error(L, 2, lua_tostring(L, -1));
}

/* What every parameter given at 2 is for, before anything is changed. */
static void check_parameters(lua_State *L, const tps_lua_graph *box,
                             int names) {
  lua_pushnil(L);
  while (lua_next(L, 2)) {
    lua_pushvalue(L, -2); /* key value key */
    bool stream = lua_type(L, -1) == LUA_TSTRING &&
                  strcmp(lua_tostring(L, -1), "stream") == 0;
    if (!stream) {
      lua_pushvalue(L, -1);
      if (lua_rawget(L, names) != LUA_TNUMBER ||
          lua_type(L, -2) != LUA_TSTRING) {
        lua_pop(L, 1);
        unknown_parameter(L, names);
      }
      uint32_t param = (uint32_t)lua_tointeger(L, -1);
      lua_pushvalue(L, -3);
      check_value(L, box, names, param);
      lua_pop(L, 2);
    }
    lua_pop(L, 2); /* key */
  }
}

/* From now on slots of parameter `param` have the value on top. */
static void set_parameter(lua_State *L, const tps_lua_graph *box, int names,
                          uint32_t param) {
  tps_error err;
  for (uint32_t i = 0; i < box->slots.count; i++) {
    const tps_slot *slot = &box->slots.items[i];
    if (slot->param != param) continue;
    uint64_t value = 0;
    convert(L, slot, names, &value);
    int code = slot->fill >= 0
                   ? tps_graph_set_fill(box->graph, slot->node, value, &err)
                   : tps_graph_set(box->graph, slot->node, slot->plan.offset,
                                   &value, slot->plan.size, &err);
    if (code != 0) tps_raise(L, &err);
  }
}

static void set_parameters(lua_State *L, const tps_lua_graph *box, int names,
                           int values) {
  lua_Integer count = (lua_Integer)lua_rawlen(L, names);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, names, i);
    if (lua_rawget(L, 2) != LUA_TNIL) {
      set_parameter(L, box, names, (uint32_t)i);
      lua_pushvalue(L, -1);
      lua_rawseti(L, values, i);
    }
    lua_pop(L, 1);
  }
}

/* The options at 2. */
static void read_parameters(lua_State *L, const tps_lua_graph *box) {
  lua_getiuservalue(L, 1, TPS_GRAPH_NAMES);
  lua_getiuservalue(L, 1, TPS_GRAPH_VALUES);
  int values = lua_gettop(L);
  check_parameters(L, box, values - 1);
  set_parameters(L, box, values - 1, values);
  lua_pop(L, 2);
}

/* ---- launching ----------------------------------------------------------- */

/* Entries of `from` are added to `to`, both on the stack. */
static void add_entries(lua_State *L, int to, int from) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, to);
  lua_Integer count = (lua_Integer)lua_rawlen(L, from);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, from, i);
    lua_rawseti(L, to, n + i);
  }
}

static void cut_entries(lua_State *L, int table, lua_Integer count) {
  for (lua_Integer i = (lua_Integer)lua_rawlen(L, table); i > count; i--) {
    lua_pushnil(L);
    lua_rawseti(L, table, i);
  }
}

/* Into the capture on `stream`: its nodes and what they are to call. */
static void launch_captured(lua_State *L, tps_graph *graph,
                            tps_stream *stream) {
  tps_error err;
  tps_push_notices(L);
  lua_getiuservalue(L, 1, TPS_GRAPH_NOTICES);
  int to = lua_gettop(L) - 1;
  lua_Integer before = (lua_Integer)lua_rawlen(L, to);
  add_entries(L, to, to + 1);
  if (tps_graph_launch(graph, stream, NULL, &err) == 0) return;
  cut_entries(L, to, before);
  tps_raise(L, &err);
}

/* Tokens for all its host nodes, for the Stream at `stream`; pushes them. */
static uint64_t *push_tokens(lua_State *L, uint32_t count, int stream) {
  uint64_t *tokens =
      (uint64_t *)lua_newuserdatauv(L, (count + 1) * sizeof(uint64_t), 0);
  lua_getiuservalue(L, 1, TPS_GRAPH_NOTICES);
  for (uint32_t i = 0; i < count; i++) {
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    lua_pushvalue(L, stream);
    tokens[i] = tps_callback_again(L);
  }
  lua_pop(L, 1);
  return tokens;
}

static void launch(lua_State *L, tps_graph *graph, tps_stream *stream,
                   int stream_index) {
  tps_lua *lua = tps_lua_of(L);
  uint64_t *tokens = NULL;
  uint32_t count = tps_graph_notice_count(graph);
  tps_error err;
  if (count > 0) tokens = push_tokens(L, count, stream_index);
  tps_site_set(L, lua);
  if (lua->context->blocking) tps_before_wait(lua);
  if (tps_graph_launch(graph, stream, tokens, &err) == 0) return;
  for (uint32_t i = 0; i < count; i++) tps_callback_forget(L, tokens[i]);
  tps_raise(L, &err);
}

/* Queues the graph at 1 on the stream; the Stream is at `index`. */
static void launch_on(lua_State *L, tps_graph *graph, const tps_lua_stream *box,
                      int index) {
  if (TPS_UNLIKELY(box->stream == NULL))
    tps_misuse(L, "attempt to use a closed stream");
  if (TPS_UNLIKELY(box->stream->capturing))
    launch_captured(L, graph, box->stream);
  else launch(L, graph, box->stream, index);
}

/* The usual case, as straight as can be: a launch costs little more than this. */
static int launch_here(lua_State *L, tps_graph *graph) {
  const tps_lua_stream *box = tps_current_stream_box(L, NULL);
  tps_stream *stream = box->stream;
  if (TPS_UNLIKELY(stream == NULL || stream->capturing ||
                   tps_graph_notice_count(graph) > 0)) {
    tps_push_stream_of(L, box);
    launch_on(L, graph, box, 2);
    lua_settop(L, 2);
    return 1;
  }
  launch(L, graph, stream, 0);
  tps_return_stream_of(L, box);
  return 1;
}

/* g:launch{stream =, name = value}: reading the options may close both. */
static int launch_with(lua_State *L) {
  lua_settop(L, 3);
  if (tps_option_stream_kept(L, 2, "stream", 3) == NULL) {
    tps_push_stream_of(L, tps_current_stream_box(L, NULL));
    lua_replace(L, 3);
  }
  tps_lua_stream *box = tps_check_stream(L, 3);
  read_parameters(L, tps_check_graph(L, 1));
  launch_on(L, tps_check_graph(L, 1)->graph, box, 3);
  lua_settop(L, 3);
  return 1;
}

/* g:launch([s]), g:launch{stream =, name = value} → the stream */
static int graph_launch(lua_State *L) {
  const tps_lua_graph *g = tps_check_graph(L, 1);
  if (lua_gettop(L) == 1) return launch_here(L, g->graph);
  lua_settop(L, 2);
  tps_lua_stream *box;
  if (lua_istable(L, 2)) return launch_with(L);
  if (lua_isnil(L, 2)) {
    box = tps_current_stream_box(L, NULL);
    tps_push_stream_of(L, box);
    lua_replace(L, 2);
  } else {
    box = tps_check_stream(L, 2);
  }
  launch_on(L, g->graph, box, 2);
  lua_settop(L, 2);
  return 1;
}

/* ---- changing ------------------------------------------------------------ */

/* g:update(fn, ...) → whether the device could keep what it had */
static int graph_update(lua_State *L) {
  tps_lua_graph *g = tps_check_graph(L, 1);
  tps_check_callable(L, 2);
  tps_capture_request r = {
      .fn = 2, .first = 3, .last = lua_gettop(L), .device = g->graph->device};
  lua_getiuservalue(L, 1, TPS_GRAPH_NAMES);
  lua_getiuservalue(L, 1, TPS_GRAPH_VALUES);
  if (lua_rawlen(L, -2) > 0) {
    r.values = lua_gettop(L);
    r.names = r.values - 1;
  }
  tps_lua_graph *fresh = tps_capture_run(L, &r);
  bool in_place;
  tps_error err;
  g = tps_check_graph(L, 1); /* fn may have closed it */
  if (tps_graph_replace(g->graph, fresh->graph, &in_place, &err) != 0)
    return tps_raise(L, &err);
  fresh->graph = NULL;
  tps_slots old = g->slots;
  g->slots = fresh->slots;
  fresh->slots = (tps_slots){0};
  tps_slots_free(&old);
  lua_getiuservalue(L, -1, TPS_GRAPH_NOTICES);
  lua_setiuservalue(L, 1, TPS_GRAPH_NOTICES);
  lua_pushboolean(L, in_place);
  return 1;
}

/* Parameter `i` of the child, whose names and values are at the two indices, as
 * one of the graph's, whose are there, too: by its name. */
static uint32_t map_parameter(lua_State *L, int names, int values, int of_names,
                              int of_values, lua_Integer i) {
  lua_rawgeti(L, of_names, i);
  lua_pushvalue(L, -1); /* name name */
  if (lua_rawget(L, names) == LUA_TNUMBER) {
    uint32_t known = (uint32_t)lua_tointeger(L, -1);
    lua_pop(L, 2);
    return known;
  }
  lua_pop(L, 1);
  lua_Integer n = (lua_Integer)lua_rawlen(L, names) + 1;
  lua_pushvalue(L, -1);
  lua_rawseti(L, names, n);
  lua_pushinteger(L, n);
  lua_rawset(L, names);
  lua_rawgeti(L, of_values, i);
  lua_rawseti(L, values, n);
  return (uint32_t)n;
}

/* Room for the child's slots; raises when out of memory. */
static void reserve(lua_State *L, tps_slots *slots, uint32_t more) {
  uint32_t capacity = slots->count + more + 1;
  tps_slot *items = (tps_slot *)realloc(slots->items, capacity * sizeof *items);
  if (items == NULL) luaL_error(L, "not enough memory");
  slots->items = items;
  slots->capacity = capacity;
}

/* Pushes names and values of the graph at `index` → where they begin. */
static int push_tables(lua_State *L, int index) {
  lua_getiuservalue(L, index, TPS_GRAPH_NAMES);
  lua_getiuservalue(L, index, TPS_GRAPH_VALUES);
  return lua_gettop(L) - 1;
}

/* The child's parameters count as the graph's, in the nodes that are added at
 * its end: slots behind slots.count, which is the caller's to raise. */
static void add_slots(lua_State *L, tps_slots *slots, const tps_slots *of) {
  uint32_t count = of->count;
  int names = push_tables(L, 1), of_names = push_tables(L, 2);
  reserve(L, slots, count);
  for (uint32_t i = 0; i < count; i++) {
    tps_slot slot = of->items[i];
    slot.param = map_parameter(L, names, names + 1, of_names, of_names + 1,
                               (lua_Integer)slot.param);
    slots->items[slots->count + i] = slot;
  }
}

/* g:add(child) → g */
static int graph_add(lua_State *L) {
  tps_check_graph(L, 1);
  tps_check_graph(L, 2);
  lua_settop(L, 2);
  tps_lua_graph *g = tps_check_graph(L, 1), *child = tps_check_graph(L, 2);
  uint32_t more = child->slots.count, base;
  tps_error err;
  add_slots(L, &g->slots, &child->slots);
  lua_getiuservalue(L, 1, TPS_GRAPH_NOTICES);
  lua_getiuservalue(L, 2, TPS_GRAPH_NOTICES);
  int to = lua_gettop(L) - 1;
  lua_Integer before = (lua_Integer)lua_rawlen(L, to);
  add_entries(L, to, to + 1);
  tps_site_set(L, tps_lua_of(L));
  if (tps_graph_add(g->graph, child->graph, &base, &err) != 0) {
    cut_entries(L, to, before);
    return tps_raise(L, &err);
  }
  for (uint32_t i = 0; i < more; i++)
    g->slots.items[g->slots.count++].node += base;
  lua_settop(L, 1);
  return 1;
}

/* ---- telling ------------------------------------------------------------- */

static const char *const node_kinds[] = {"kernel", "copy", "fill", "host",
                                         "event",  "if",   "while"};

static void set_integer(lua_State *L, const char *field, uint64_t n) {
  lua_pushinteger(L, (lua_Integer)n);
  lua_setfield(L, -2, field);
}

static void set_triple(lua_State *L, const char *field, const uint32_t n[3]) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushinteger(L, n[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, field);
}

static void set_launch(lua_State *L, const tps_graph_node *node) {
  const tps_op *op = node->op;
  lua_pushstring(L, op->kernel);
  lua_setfield(L, -2, "name");
  set_triple(L, "grid", op->grid);
  set_triple(L, "block", op->block);
  if (op->cluster[0] != 0) set_triple(L, "cluster", op->cluster);
  set_integer(L, "shared", op->shared);
}

static void push_nodes(lua_State *L, const tps_graph_node_list *list);

static void set_kind(lua_State *L, const tps_graph_node *node) {
  lua_pushstring(L, node_kinds[node->kind]);
  lua_setfield(L, -2, "kind");
  if (node->kind == TPS_NODE_LAUNCH) set_launch(L, node);
  else if (node->kind == TPS_NODE_COPY)
    set_integer(L, "bytes", node->u.copy.rows.count * node->u.copy.rows.bytes);
  else if (node->kind == TPS_NODE_FILL)
    set_integer(L, "bytes", node->u.fill.count * node->u.fill.width);
  else if (node->kind == TPS_NODE_RECORD)
    set_integer(L, "event", node->op->event);
  else if (node->kind != TPS_NODE_HOST) {
    push_nodes(L, &node->u.condition.body);
    lua_setfield(L, -2, "body");
  }
}

/* Pushes the node as a table. */
static void push_node(lua_State *L, const tps_graph_node_list *list,
                      const tps_graph_node *node) {
  char text[512];
  lua_createtable(L, 0, 10);
  set_integer(L, "id", (uint64_t)node->id + 1);
  set_kind(L, node);
  set_integer(L, "stream", node->op->stream);
  lua_pushstring(L, tps_device_label(node->device, text, sizeof text));
  lua_setfield(L, -2, "device");
  if (tps_op_where(node->op, text, sizeof text)[0] != '\0') {
    lua_pushstring(L, text);
    lua_setfield(L, -2, "where");
  }
  lua_createtable(L, (int)node->after_count, 0);
  for (uint32_t i = 0; i < node->after_count; i++) {
    lua_pushinteger(L, (lua_Integer)list->nodes[node->after[i]].id + 1);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "dependencies");
}

static void push_nodes(lua_State *L, const tps_graph_node_list *list) {
  luaL_checkstack(L, LUA_MINSTACK, "bodies too deep");
  lua_createtable(L, (int)list->count, 0);
  for (uint32_t i = 0; i < list->count; i++) {
    push_node(L, list, &list->nodes[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* g:nodes() → an array of tables */
static int graph_nodes(lua_State *L) {
  tps_lua_graph *g = tps_check_graph(L, 1);
  push_nodes(L, tps_graph_nodes(g->graph));
  return 1;
}

static const luaL_Reg graph_meta[] = {{"__tostring", graph_tostring},
                                      {"__gc", graph_gc},
                                      {"__close", graph_close},
                                      {NULL, NULL}};
static const luaL_Reg graph_methods[] = {{"close", graph_close},
                                         {"launch", graph_launch},
                                         {"update", graph_update},
                                         {"add", graph_add},
                                         {"nodes", graph_nodes},
                                         {"device", graph_device},
                                         {NULL, NULL}};

void tps_graph_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_GRAPH, graph_meta, graph_methods);
}
