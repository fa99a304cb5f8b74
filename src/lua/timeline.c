/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.timeline, of what this Lua state queues, and tp.range. What stop returns is
 * a table of records, with methods that write what the records were made of. */
#include <stdlib.h>
#include <string.h>

#include "lua/state.h"
#include "timeline/timeline.h"

#define COLUMNS 100 /* of a chart, where nothing tells */

/* What a result is written from. */
typedef struct recording {
  tps_timeline *timeline; /* NULL until it is stopped */
} recording;

static int recording_gc(lua_State *L) {
  recording *r = (recording *)tps_check(L, 1, TPS_TYPE_RECORDING);
  tps_timeline *timeline = r->timeline;
  r->timeline = NULL;
  tps_timeline_free(timeline);
  return 0;
}

/* ---- the records --------------------------------------------------------- */

static void set_time(lua_State *L, const char *name, uint64_t ns,
                     uint64_t began_ns) {
  if (ns == 0) return;
  lua_pushnumber(L, ((double)ns - (double)began_ns) / 1e6);
  lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, uint64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static void set_shape(lua_State *L, const char *name, const uint32_t n[3]) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushinteger(L, n[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, name);
}

static void set_site(lua_State *L, const char *source, int32_t line) {
  if (source[0] == '\0' || line <= 0) return;
  set_text(L, "source", source);
  set_integer(L, "line", (uint64_t)line);
}

static void set_details(lua_State *L, const tps_timeline_item *item) {
  if (item->kind == TPS_OP_LAUNCH) {
    set_text(L, "kernel", item->kernel != NULL ? item->kernel : "?");
    set_shape(L, "grid", item->grid);
    set_shape(L, "block", item->block);
    set_integer(L, "shared", item->shared);
  }
  if (item->kind == TPS_OP_COPY) set_text(L, "route", tps_timeline_route(item));
  if (item->kind == TPS_OP_COPY || item->kind == TPS_OP_FILL ||
      item->kind == TPS_OP_ALLOC || item->kind == TPS_OP_FREE)
    set_integer(L, "bytes", item->bytes);
  if (item->event != 0) set_integer(L, "event", item->event);
  if (item->link != 0) set_integer(L, "waits_for", item->link);
  if (item->graph != 0) set_integer(L, "graph", item->graph);
  if (item->failed) {
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "failed");
  }
}

static void push_record(lua_State *L, const tps_timeline_item *item,
                        uint64_t began_ns) {
  char device[32];
  lua_createtable(L, 0, 12);
  set_text(L, "kind", tps_timeline_kind(item));
  snprintf(device, sizeof device, "%s:%d",
           item->device_kind == TPS_CUDA ? "cuda" : "sim", (int)item->device);
  set_text(L, "device", device);
  set_integer(L, "stream", item->stream);
  set_site(L, item->source, item->line);
  set_time(L, "queued", item->queued_ns, began_ns);
  set_time(L, "started", item->started_ns, began_ns);
  set_time(L, "finished", item->finished_ns, began_ns);
  set_details(L, item);
}

/* result → the same with its records */
static void set_records(lua_State *L, const tps_timeline *t) {
  size_t count;
  const tps_timeline_item *items = tps_timeline_items(t, &count);
  for (size_t i = 0; i < count; i++) {
    push_record(L, &items[i], tps_timeline_began(t));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* result → the same with the array `name`: of ranges, or of waits */
static void set_spans(lua_State *L, const tps_timeline *t, const char *name,
                      bool ranges) {
  size_t count;
  const tps_timeline_span *spans = tps_timeline_spans(t, &count);
  lua_Integer n = 0;
  lua_newtable(L);
  for (size_t i = 0; i < count; i++) {
    if ((spans[i].name != NULL) != ranges) continue;
    lua_createtable(L, 0, 5);
    if (ranges) set_text(L, "name", spans[i].name);
    set_site(L, spans[i].source, spans[i].line);
    set_time(L, "started", spans[i].began_ns, tps_timeline_began(t));
    set_time(L, "finished", spans[i].ended_ns, tps_timeline_began(t));
    lua_rawseti(L, -2, ++n);
  }
  lua_setfield(L, -2, name);
}

/* box → result; the box is kept beside it (upvalue 2 of all functions: result →
 * box, ephemeron) */
static void push_result(lua_State *L, const tps_timeline *t) {
  size_t count;
  tps_timeline_items(t, &count);
  lua_createtable(L, count < INT32_MAX ? (int)count : 0, 4);
  set_records(L, t);
  set_spans(L, t, "ranges", true);
  set_spans(L, t, "waits", false);
  set_integer(L, "dropped", tps_timeline_dropped(t));
  set_time(L, "duration", tps_timeline_ended(t), tps_timeline_began(t));
  luaL_setmetatable(L, tps_type_names[TPS_TYPE_TIMELINE]);
  lua_pushvalue(L, -1);
  lua_pushvalue(L, -3);
  lua_rawset(L, lua_upvalueindex(2));
  lua_remove(L, -2);
}

/* ---- recording ----------------------------------------------------------- */

static int timeline_start(lua_State *L) {
  static const char *const names[] = {"limit", NULL};
  tps_lua *lua = tps_open(L);
  tps_error err;
  lua_settop(L, 1);
  if (!lua_isnil(L, 1)) tps_check_options(L, 1, names);
  lua_Integer limit = tps_option_integer(L, 1, "limit", TPS_TIMELINE_LIMIT);
  if (limit < 1)
    tps_option_error(L, 1, "limit", "at least 1 expected, got %lld",
                     (long long)limit);
  if (lua->timeline != NULL)
    return tps_misuse(L, "a timeline is being recorded already");
  lua->timeline = tps_timeline_start(lua->context->id, (size_t)limit, &err);
  if (lua->timeline == NULL) return tps_raise(L, &err);
  return 0;
}

/* The end of what is queued. A fault is no reason to show nothing: it is told at
 * the next call on that device. */
static void wait_for_all(lua_State *L, tps_lua *lua) {
  tps_error err;
  tps_site_set(L, lua);
  tps_before_wait(lua);
  int code = tps_context_synchronize(lua->context, TPS_FOREVER, &err);
  if (code == TPS_INTERRUPTED) tps_raise(L, &err);
  if (code == 0) tps_safe_point(L);
}

static int timeline_stop(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  const char *path = lua_isnoneornil(L, 1) ? NULL : tps_check_string(L, 1);
  lua_settop(L, 1);
  if (lua->timeline == NULL)
    return tps_misuse(L, "no timeline is being recorded");
  if (path != NULL && !tps_timeline_can_write(path, &err))
    return tps_raise(L, &err);
  wait_for_all(L, lua);
  recording *box = (recording *)tps_new(L, TPS_TYPE_RECORDING, sizeof *box, 0);
  box->timeline = lua->timeline;
  lua->timeline = NULL;
  if (box->timeline == NULL) /* a callback was quicker */
    return tps_misuse(L, "no timeline is being recorded");
  tps_timeline_stop(box->timeline);
  if (path != NULL && tps_timeline_write(box->timeline, path, &err) != 0)
    return tps_raise(L, &err);
  push_result(L, box->timeline);
  return 1;
}

/* ---- results ------------------------------------------------------------- */

static const tps_timeline *self(lua_State *L) {
  lua_pushvalue(L, 1);
  if (!lua_istable(L, 1) || lua_rawget(L, lua_upvalueindex(2)) != LUA_TUSERDATA)
    tps_type_error(L, 1, tps_type_names[TPS_TYPE_TIMELINE]);
  const recording *r = (const recording *)lua_touserdata(L, -1);
  lua_pop(L, 1);
  return r->timeline;
}

static int columns_of(lua_State *L, int index) {
  const char *said = getenv("COLUMNS");
  long usual = said != NULL ? strtol(said, NULL, 10) : 0;
  if (usual < 1 || usual > 10000) usual = COLUMNS;
  lua_Integer columns = tps_opt_integer(L, index, usual);
  if (columns < 1 || columns > 10000)
    tps_argument_error(L, index, "columns from 1 to 10000 expected");
  return (int)columns;
}

static void release_text(void *data) { free(data); }

static int result_chart(lua_State *L) {
  const tps_timeline *t = self(L);
  int columns = columns_of(L, 2);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  bool room = out != NULL && tps_timeline_chart(t, out, columns);
  if (out != NULL && fclose(out) != 0) room = false;
  tps_guard_over(L, text, release_text);
  if (!room) return luaL_error(L, "not enough memory");
  lua_pushlstring(L, text, size);
  return 1;
}

static int result_write(lua_State *L) {
  tps_error err;
  const tps_timeline *t = self(L);
  if (tps_timeline_write(t, tps_check_string(L, 2), &err) != 0)
    return tps_raise(L, &err);
  return 0;
}

static int result_tostring(lua_State *L) {
  size_t count;
  const tps_timeline *t = self(L);
  tps_timeline_items(t, &count);
  lua_pushfstring(
      L, "tpstream.Timeline (%I record%s, %f ms)", (LUAI_UACINT)count,
      count == 1 ? "" : "s",
      (LUAI_UACNUMBER)(tps_timeline_ended(t) - tps_timeline_began(t)) / 1e6);
  return 1;
}

/* ---- ranges -------------------------------------------------------------- */

static int range_release(lua_State *L) {
  tps_range_end((tps_range *)tps_check(L, 1, TPS_TYPE_RANGE));
  return 0;
}

static int range_done(lua_State *L, int status, lua_KContext k) {
  (void)status;
  (void)k;
  return lua_gettop(L) - 2;
}

/* name fn args... → name range fn args... → results; the range ends however the
 * call does, as a block of with_stream. */
static int range_call(lua_State *L) {
  tps_lua *lua = tps_open(L);
  const char *name = tps_check_string(L, 1);
  tps_check_callable(L, 2);
  luaL_checkstack(L, 2 * LUA_MINSTACK, "not enough memory");
  tps_range *range = (tps_range *)tps_new(L, TPS_TYPE_RANGE, sizeof *range, 0);
  lua_insert(L, 2);
  lua_toclose(L, 2);
  tps_site_set_observed(L, lua);
  tps_range_begin(range, lua->context,
                  L != lua->main ? (uint64_t)(uintptr_t)L : 0, name);
  lua_callk(L, lua_gettop(L) - 3, LUA_MULTRET, 0, range_done);
  return range_done(L, LUA_OK, 0);
}

/* ---- opening ------------------------------------------------------------- */

static const luaL_Reg no_methods[] = {{NULL, NULL}};
static const luaL_Reg recording_meta[] = {{"__gc", recording_gc}, {NULL, NULL}};
static const luaL_Reg range_meta[] = {
    {"__close", range_release}, {"__gc", range_release}, {NULL, NULL}};
static const luaL_Reg timeline_functions[] = {
    {"start", timeline_start}, {"stop", timeline_stop}, {NULL, NULL}};
static const luaL_Reg result_methods[] = {
    {"chart", result_chart}, {"write", result_write}, {NULL, NULL}};
static const luaL_Reg result_meta[] = {{"__tostring", result_tostring},
                                       {NULL, NULL}};
static const luaL_Reg range_functions[] = {{"range", range_call}, {NULL, NULL}};

/* library state boxes → the same and a table of the functions, which have the
 * state and the boxes for upvalues */
static void push_functions(lua_State *L, const luaL_Reg *functions) {
  lua_newtable(L);
  lua_pushvalue(L, -3);
  lua_pushvalue(L, -3);
  luaL_setfuncs(L, functions, 2);
  tps_remember_names(L, lua_gettop(L) - 2);
}

/* Results are tables; their metatable says so. */
static void make_result_type(lua_State *L) {
  luaL_newmetatable(L, tps_type_names[TPS_TYPE_TIMELINE]);
  lua_pop(L, 1);
  push_functions(L, result_methods); /* library state boxes methods */
  luaL_getmetatable(L, tps_type_names[TPS_TYPE_TIMELINE]);
  lua_insert(L, -2);
  lua_setfield(L, -2, "__index"); /* library state boxes metatable */
  lua_pushvalue(L, -3);
  lua_pushvalue(L, -3);
  luaL_setfuncs(L, result_meta, 2);
  lua_pop(L, 1);
}

void tps_timeline_open(lua_State *L) {
  tps_type_make(L, TPS_TYPE_RECORDING, recording_meta, no_methods);
  tps_type_make(L, TPS_TYPE_RANGE, range_meta, no_methods);
  tps_functions(L, range_functions);
  lua_newtable(L); /* library state boxes */
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  make_result_type(L);
  push_functions(L, timeline_functions); /* library state boxes timeline */
  lua_setfield(L, -4, "timeline");
  lua_pop(L, 1);
}
