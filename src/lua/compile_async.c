/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.compile_async: a compile on another thread. That thread has a job, which
 * knows nothing of Lua, and a callback of the runtime's to deliver; where that is
 * due, on Lua's own thread, the Module is made, and whoever waits is told.
 *
 * The job belongs to three: to the Build, to the callback's entry, which is a
 * function with the Build for an upvalue, and to the thread; the last one frees
 * it. */
#include "lua/api.h"
#include "lua/compile.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/callback.h"

/* What the thread has, too. */
typedef struct shared {
  atomic_int refs;
  tps_rtc_pending *job;
  tps_callback *callback; /* the thread's to deliver */
} shared;

typedef struct build {
  shared *shared; /* NULL once it is over */
  enum { BUILDING, DONE, FAILED } state;
  bool placeless; /* the error has no place of its own */
} build;

/* User values of a Build. */
enum {
  BUILD_SOURCE = 1,
  BUILD_OPTIONS,
  BUILD_CALLERS,
  BUILD_POSITION, /* of the call */
  BUILD_NAME,     /* the option, or nil */
  BUILD_RESULT,   /* the Module or the error */
  BUILD_WAITERS,  /* an array of functions done(ok, ...) */
  BUILD_USER_VALUES = BUILD_WAITERS
};

void tps_build_leave(const tps_context *context) { tps_rtc_leave(context); }

void tps_lua_exit(void) { tps_rtc_end(); }

/* ---- the thread's side --------------------------------------------------- */

static void unref(shared *s) {
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  tps_rtc_pending_free(s->job);
  free(s);
}

static void built(void *data) {
  shared *s = (shared *)data;
  tps_callback_deliver(s->callback);
  unref(s);
}

/* ---- Lua's side ---------------------------------------------------------- */

static void drop(build *b) {
  shared *s = b->shared;
  b->shared = NULL;
  if (s != NULL) unref(s);
}

/* done → , called with what the build has come to. */
static void tell(lua_State *L, const build *b, int index) {
  lua_pushboolean(L, b->state == DONE);
  lua_getiuservalue(L, index, BUILD_RESULT);
  if (b->state == FAILED) lua_pushboolean(L, b->placeless);
  lua_call(L, b->state == FAILED ? 3 : 2, 0);
}

/* Whoever waits is told, once, also if this fails half-way. */
static void tell_waiters(lua_State *L, const build *b, int index) {
  int top = lua_gettop(L);
  if (lua_getiuservalue(L, index, BUILD_WAITERS) == LUA_TTABLE)
    for (int i = 1; lua_rawgeti(L, top + 1, i) != LUA_TNIL; i++)
      tell(L, b, index);
  lua_pushnil(L);
  lua_setiuservalue(L, index, BUILD_WAITERS);
  lua_settop(L, top);
}

/* result → : the build is over with it. */
static void conclude(lua_State *L, build *b, int index, bool good) {
  lua_setiuservalue(L, index, BUILD_RESULT);
  b->state = good ? DONE : FAILED;
  drop(b);
}

/* Makes the Module of a job that is built: it is returned, or an error raised.
 * Argument: the Build. */
static int make_module(lua_State *L) {
  build *b = (build *)lua_touserdata(L, 1);
  tps_rtc_request request = {.source = NULL};
  tps_error err;
  lua_getiuservalue(L, 1, BUILD_SOURCE);
  lua_getiuservalue(L, 1, BUILD_OPTIONS);
  lua_getiuservalue(L, 1, BUILD_CALLERS);
  lua_getiuservalue(L, 1, BUILD_POSITION);
  lua_getiuservalue(L, 1, BUILD_NAME); /* 1 to 6 */
  request.source = lua_tolstring(L, 2, &request.source_size);
  request.name = lua_tostring(L, 6);
  tps_lua_module *box = tps_push_module(L);
  tps_report_guard *g = tps_push_report(L);
  tps_module *module;
  int code = tps_rtc_finish(tps_open(L)->context, b->shared->job, &module,
                            &g->report, &err);
  if (code != 0) {
    if (code == TPS_COMPILATION)
      tps_push_diagnostics(L, &request, &g->report, err.message, 4);
    else lua_pushstring(L, err.message);
    tps_push_error_at(L, &err, lua_tostring(L, 5));
    return lua_error(L);
  }
  box->module = module;
  tps_compile_keep(L, 7, 2, 3, &request, &g->report, 4);
  tps_guard_release(&g->guard);
  lua_getiuservalue(L, 7, TPS_MODULE_LOG);
  tps_show_warnings(L, 3, lua_tostring(L, -1));
  lua_settop(L, 7);
  return 1;
}

/* Where the thread's callback is due. Upvalues: the state, the Build. */
static int build_due(lua_State *L) {
  lua_settop(L, 0);
  lua_pushvalue(L, lua_upvalueindex(2));
  build *b = (build *)lua_touserdata(L, 1);
  if (b->state == BUILDING) { /* else it was cancelled, or this is once more */
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushcclosure(L, make_module, 1);
    lua_pushvalue(L, 1);
    bool good = lua_pcall(L, 1, 1, 0) == LUA_OK;
    conclude(L, b, 1, good);
  }
  tell_waiters(L, b, 1);
  return 0;
}

/* ---- starting ------------------------------------------------------------ */

/* Starts the job at b->shared; raises. */
static void start(lua_State *L, build *b, int index) {
  tps_error err;
  shared *s = b->shared;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, index);
  lua_pushcclosure(L, build_due, 2);
  uint64_t token = tps_callback_put(L);
  s->callback = tps_callback_new(tps_lua_of(L)->context, token, &err);
  int code = s->callback == NULL ? err.code : 0;
  if (code == 0) {
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    code = tps_rtc_start(s->job, tps_lua_of(L)->context, built, s, &err);
    if (code != 0) built(s);
  }
  if (code == 0) return;
  tps_callback_forget(L, token);
  tps_raise(L, &err);
}

/* Pushes a Build whose job is prepared. */
static build *push_build(lua_State *L, const tps_rtc_request *request) {
  tps_error err;
  build *b = (build *)tps_new(L, TPS_TYPE_BUILD, sizeof *b, BUILD_USER_VALUES);
  tps_device *device = tps_current_device(L);
  shared *s = (shared *)calloc(1, sizeof *s);
  if (s == NULL) luaL_error(L, "not enough memory");
  int code = tps_rtc_prepare(device, request, &s->job, &err);
  if (code != 0) {
    free(s);
    tps_raise(L, &err);
  }
  atomic_init(&s->refs, 1);
  b->shared = s;
  return b;
}

/* tp.compile_async(source [, options]) → Build */
static int build_new(lua_State *L) {
  tps_rtc_request request;
  tps_lua *lua = tps_open(L);
  tps_check_type(L, 1, LUA_TSTRING);
  lua_settop(L, 2);
  lua_newtable(L); /* source options anchors */
  tps_compile_fill(L, 1, 2, 3, NULL, &request);
  tps_site_set(L, lua);
  build *b = push_build(L, &request); /* source options anchors Build */
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 4, BUILD_SOURCE);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 4, BUILD_OPTIONS);
  tps_push_callers(L);
  lua_setiuservalue(L, 4, BUILD_CALLERS);
  lua_pushstring(L, request.name); /* nil for NULL */
  lua_setiuservalue(L, 4, BUILD_NAME);
  tps_push_position(L);
  lua_setiuservalue(L, 4, BUILD_POSITION);
  start(L, b, 4);
  lua_settop(L, 4);
  return 1;
}

/* ---- methods ------------------------------------------------------------- */

static build *self(lua_State *L) {
  return (build *)tps_check(L, 1, TPS_TYPE_BUILD);
}

/* Build.__await(b, done) */
static int build_await(lua_State *L) {
  build *b = self(L);
  lua_settop(L, 2);
  if (b->state != BUILDING) {
    tell(L, b, 1);
    return 0;
  }
  if (lua_getiuservalue(L, 1, BUILD_WAITERS) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, BUILD_WAITERS);
  }
  lua_pushvalue(L, 2); /* Build done waiters done */
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return 0;
}

/* b:query() → whether it is over, without running anything that is due */
static int build_query(lua_State *L) {
  lua_pushboolean(L, self(L)->state != BUILDING);
  return 1;
}

/* b:cancel() → true; false: it was over. */
static int build_cancel(lua_State *L) {
  build *b = self(L);
  bool building = b->state == BUILDING;
  if (building) {
    tps_rtc_cancel(b->shared->job);
    b->placeless = true;
    lua_settop(L, 1);
    lua_pushliteral(L, "the compile was cancelled");
    conclude(L, b, 1, false);
    tell_waiters(L, b, 1);
  }
  lua_pushboolean(L, building);
  return 1;
}

static int build_gc(lua_State *L) {
  build *b = self(L);
  if (b->shared != NULL) tps_rtc_cancel(b->shared->job);
  drop(b);
  return 0;
}

static int build_tostring(lua_State *L) {
  static const char *const states[] = {"building", "done", "failed"};
  lua_pushfstring(L, "tpstream.Build (%s)", states[self(L)->state]);
  return 1;
}

static const luaL_Reg build_meta[] = {{"__tostring", build_tostring},
                                      {"__gc", build_gc},
                                      {"__close", build_cancel},
                                      {"__await", build_await},
                                      {NULL, NULL}};
static const luaL_Reg build_methods[] = {
    {"query", build_query}, {"cancel", build_cancel}, {NULL, NULL}};
static const luaL_Reg build_functions[] = {{"compile_async", build_new},
                                           {NULL, NULL}};

void tps_build_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_BUILD, build_meta, build_methods);
  tps_functions(L, build_functions);
}
