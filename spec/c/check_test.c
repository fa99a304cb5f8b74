/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The checker and two Lua states that use the same memory, on one thread and on
 * two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "lua/api.h"

/* ---- two Lua states ------------------------------------------------------ */

static lua_State *open_state(void) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  lua_pushliteral(L, "sim");
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.device");
  luaL_requiref(L, "tpstream", luaopen_tpstream, 1);
  lua_setglobal(L, "tp");
  return L;
}

static void run(lua_State *L, const char *text) {
  if (luaL_loadbuffer(L, text, strlen(text), "=script") != LUA_OK ||
      lua_pcall(L, 0, 0, 0) != LUA_OK)
    fail_msg("%s", luaL_tolstring(L, -1, NULL));
}

static const char make[] = "s = tp.Stream()\n"
                           "x = tp.zeros('i32', 64, { stream = s })\n"
                           "s:synchronize()\n"
                           "tensor, handle = x:dlpack(), s:handle()\n";
static const char take[] = "s = tp.Stream()\n"
                           "x = tp.from_dlpack(tensor)\n";
static const char use[] = "tp.with_stream(s, x.fill, x, 1)";
static const char drop[] = "s:synchronize() x:close() s:close()";

typedef struct two {
  lua_State *a, *b;
} two;

/* Both have x, the same memory, and a stream s of their own. */
static two open_two(void) {
  two t = {open_state(), open_state()};
  uint64_t from;
  assert_true(tps_check_start(TPS_CHECK_ORDER, &from));
  run(t.a, make);
  lua_getglobal(t.a, "tensor");
  lua_pushlightuserdata(t.b, lua_touserdata(t.a, -1));
  lua_setglobal(t.b, "tensor");
  lua_getglobal(t.a, "handle");
  lua_pushinteger(t.b, lua_tointeger(t.a, -1));
  lua_setglobal(t.b, "handle");
  run(t.b, take);
  return t;
}

static size_t close_two(const two *t) {
  run(t->b, drop);
  run(t->a, drop);
  tps_check_stop();
  lua_close(t->b);
  lua_close(t->a);
  return tps_report_count();
}

static void two_states_have_one_order(void **state) {
  (void)state;
  two t = open_two();
  run(t.a, use);
  run(t.b, use);
  assert_int_equal(close_two(&t), 1);

  t = open_two();
  run(t.a, use);
  run(t.b, "s:wait_stream(tp.ExternalStream(handle))");
  run(t.b, use);
  assert_int_equal(close_two(&t), 0);

  t = open_two();
  run(t.a, use);
  run(t.a, "s:synchronize()");
  run(t.b, use);
  assert_int_equal(close_two(&t), 0);
}

static void the_legacy_stream_is_one_for_both(void **state) {
  (void)state;
  two t = open_two();
  run(t.a, "tp.with_stream(tp.default_stream(), x.fill, x, 1)");
  run(t.b, "tp.with_stream(tp.default_stream(), x.fill, x, 1)");
  assert_int_equal(close_two(&t), 0);
}

static const char busy[] =
    "local s, t = tp.Stream(), tp.Stream()\n"
    "for i = 1, 200 do\n"
    "  local b = tp.zeros('i32', 64, { stream = s })\n"
    "  local h = tp.pinned('i32', 64)\n"
    "  t:wait_stream(s)\n"
    "  tp.with_stream(t, b.fill, b, i)\n"
    "  b:copy_to(h, { stream = t })\n"
    "  local g = tp.capture(function() b:fill(2) end)\n"
    "  g:launch(t)\n"
    "  if i % 3 == 0 then t:synchronize() assert(h[1] == i) end\n"
    "  s:wait_stream(t)\n"
    "  tp.with_stream(s, b.fill, b, i)\n"
    "  g:close() b:close()\n"
    "end\n"
    "s:synchronize() t:synchronize()\n"
    "assert(#tp.check.reports() == 0)\n";

static void *work(void *data) {
  run(data, busy);
  return NULL;
}

static void two_threads_are_watched_at_once(void **state) {
  (void)state;
  lua_State *a = open_state(), *b = open_state();
  pthread_t other;
  uint64_t from;
  assert_true(tps_check_start(TPS_CHECK_ALL, &from));
  assert_int_equal(pthread_create(&other, NULL, work, b), 0);
  work(a);
  pthread_join(other, NULL);
  run(a,
      "tp.check.start() tp.check.start()"); /* the end of the state stops them */
  lua_close(a);
  lua_close(b);
  assert_int_equal(tps_check_running(), TPS_CHECK_ALL);
  tps_check_stop();
  assert_int_equal(tps_check_running(), 0);
  assert_int_equal(tps_report_count(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_states_have_one_order),
      cmocka_unit_test(the_legacy_stream_is_one_for_both),
      cmocka_unit_test(two_threads_are_watched_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
