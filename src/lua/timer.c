/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.timer: two events around a region of one stream's work. */
#include "lua/state.h"

typedef struct timer {
  tps_event *start, *stop; /* NULL once closed */
  tps_stream *stream;      /* counted */
} timer;

static void release(timer *t) {
  tps_event *start = t->start, *stop = t->stop;
  tps_stream *stream = t->stream;
  t->start = t->stop = NULL;
  t->stream = NULL;
  tps_event_free(start);
  tps_event_free(stop);
  if (stream != NULL) tps_stream_unref(stream);
}

static int timer_close(lua_State *L) {
  release((timer *)tps_check(L, 1, TPS_TYPE_TIMER));
  return 0;
}

static timer *self(lua_State *L) {
  timer *t = (timer *)tps_check(L, 1, TPS_TYPE_TIMER);
  if (t->stream == NULL) tps_misuse(L, "attempt to use a closed timer");
  return t;
}

static int timer_new(lua_State *L) {
  tps_lua *lua = tps_open(L);
  lua_settop(L, 1);
  timer *t = (timer *)tps_new(L, TPS_TYPE_TIMER, sizeof(timer), 0);
  tps_error err;
  tps_stream *stream = tps_opt_stream(L, 1);
  t->stream = tps_stream_ref(stream);
  t->start = tps_event_new(lua->context, TPS_EVENT_TIMING);
  t->stop = tps_event_new(lua->context, TPS_EVENT_TIMING);
  if (t->start == NULL || t->stop == NULL)
    return luaL_error(L, "not enough memory");
  tps_site_set_observed(L, lua);
  if (tps_event_record(t->start, stream, &err) != 0) return tps_raise(L, &err);
  return 1;
}

/* Waits for what was queued so far → ms since the start. */
static int timer_stop(lua_State *L) {
  timer *t = self(L);
  tps_lua *lua = tps_open(L);
  double ms = 0;
  int code;
  tps_error err;
  tps_site_set_observed(L, lua);
  tps_before_wait(lua);
  if (t->stream->capturing) /* refuses, before anything is captured */
    TPS_TRY(failed, tps_stream_synchronize(t->stream, 0, &err));
  TPS_TRY(failed, tps_event_record(t->stop, t->stream, &err));
  TPS_TRY(failed, tps_event_synchronize(t->stop, TPS_FOREVER, &err));
  TPS_TRY(failed, tps_event_elapsed(t->start, t->stop, &ms, &err));
  tps_safe_point(L);
  lua_pushnumber(L, ms);
  return 1;
failed:
  return tps_raise(L, &err);
}

static int timer_tostring(lua_State *L) {
  timer *t = (timer *)tps_check(L, 1, TPS_TYPE_TIMER);
  if (t->stream == NULL) lua_pushliteral(L, "tpstream.Timer (closed)");
  else
    lua_pushfstring(L, "tpstream.Timer (stream %I)",
                    (LUAI_UACINT)t->stream->id);
  return 1;
}

static const luaL_Reg timer_meta[] = {{"__tostring", timer_tostring},
                                      {"__gc", timer_close},
                                      {"__close", timer_close},
                                      {NULL, NULL}};
static const luaL_Reg timer_methods[] = {
    {"close", timer_close}, {"stop", timer_stop}, {NULL, NULL}};
static const luaL_Reg timer_functions[] = {{"timer", timer_new}, {NULL, NULL}};

void tps_timer_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_TIMER, timer_meta, timer_methods);
  tps_functions(L, timer_functions);
}
