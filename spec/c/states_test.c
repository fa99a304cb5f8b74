/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A program around the library: the ends of Lua states, in 120 orders and three
 * ways, two states on two threads, and what each has for itself. What ends a process, or a device, happens
 * in a forked child; so those tests come first, before this process has a
 * thread of the simulated device's.
 *
 * The last two also run on a GPU: states_test each_state_has_its_own cuda.
 *
 * Without TPS_EVERY a sanitized build tries some of the orders only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua/api.h"

#define ORDERS 120

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define STEP 11
#else
#define STEP 1
#endif

/* Looking for leaks takes far longer than such a child's whole life. */
int __lsan_is_turned_off(void);
static bool leaks_do_not_count;
int __lsan_is_turned_off(void) { return leaks_do_not_count; }

static int step(void) {
  int every = STEP;
  if (getenv("TPS_EVERY") != NULL) every = 1;
  return every;
}

/* ---- states -------------------------------------------------------------- */

/* An error in a finalizer is told by a warning alone. */
static void warn(void *data, const char *text, int more) {
  (void)data, (void)more;
  if (text[0] == '@') return;
  fprintf(stderr, "warning: %s\n", text);
  _exit(3);
}

static const char *device = "sim";

static lua_State *open_state(void) {
  lua_State *L = luaL_newstate();
  if (L == NULL) abort();
  lua_setwarnf(L, warn, NULL);
  luaL_openlibs(L);
  lua_pushstring(L, device);
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.device");
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_tpstream);
  lua_setfield(L, -2, "tpstream");
  lua_pop(L, 1);
  return L;
}

/* Runs a script with arguments; false: it failed, which is said. */
static bool run(lua_State *L, const char *script, const char *a, const char *b,
                lua_Integer n) {
  int status = luaL_loadbuffer(L, script, strlen(script), "=script");
  if (status == LUA_OK) {
    lua_pushstring(L, a);
    lua_pushstring(L, b);
    lua_pushinteger(L, n);
    status = lua_pcall(L, 3, 0, 0);
  }
  if (status == LUA_OK) return true;
  fprintf(stderr, "%s %s %lld: %s\n", a, b, (long long)n,
          luaL_tolstring(L, -1, NULL));
  lua_pop(L, 2);
  return false;
}

static const char prelude[] =
    "package.path = './?.lua;' .. package.path\n"
    "local ending, how, n = ...\n"
    "local tp = require 'tpstream'\n"
    "local closing = require 'spec.support.closing'\n"
    "assert(#closing.orders == 120)\n"
    "closing.run(tp, closing.orders[n], { how = how:match '%a+',\n"
    "  fault = how:find 'fault' ~= nil })\n"
    "if ending == 'exit' then os.exit() end\n"
    "if ending == 'exit and close' then os.exit(true, true) end\n";

/* ---- 120 orders ---------------------------------------------------------- */

static bool close_in_order(const char *ending, const char *how, int n) {
  lua_State *L = open_state();
  bool fine = run(L, prelude, ending, how, n);
  lua_close(L);
  return fine;
}

/* Orders first .. last end in a child of their own. */
static void in_child(const char *ending, const char *how, int first, int last,
                     int by) {
  pid_t child = fork();
  if (child == 0) {
    leaks_do_not_count = first % (10 * step()) != 1;
    bool fine = true;
    for (int n = first; n <= last && fine; n += by)
      fine = close_in_order(ending, how, n);
    exit(fine ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0)
    fail_msg("'%s', %s, orders %d to %d: status 0x%x", ending, how, first, last,
             status);
}

static void each_in_child(const char *ending, const char *how) {
  for (int n = 1; n <= ORDERS; n += step()) in_child(ending, how, n, n, 1);
}

static void at_the_end(void **state) {
  (void)state;
  in_child("end", "close", 1, ORDERS, 1);
  in_child("end", "finalizers", 1, ORDERS, 1);
  in_child("end", "none", 1, ORDERS, 10);
}

static void by_exit(void **state) {
  (void)state;
  each_in_child("exit", "close");
}

static void by_exit_and_close(void **state) {
  (void)state;
  each_in_child("exit and close", "finalizers");
}

/* The first state has the fault; those after it find the device refusing. */
static void after_a_fault(void **state) {
  (void)state;
  each_in_child("end", "close, fault");
  each_in_child("end", "finalizers, fault");
  each_in_child("exit", "close, fault");
  each_in_child("exit and close", "finalizers, fault");
}

/* ---- two threads --------------------------------------------------------- */

static const char all_bodies[] =
    "package.path = './?.lua;' .. package.path\n"
    "local tp = require 'tpstream'\n"
    "local _, _, rounds = ...\n"
    "local bodies = require 'spec.support.bodies'\n"
    "rawset(_G, 'several_states', true)\n"
    "for _ = 1, rounds do\n"
    "  for _, body in ipairs(bodies) do\n"
    "    if not body.slow then\n"
    "      local ok, e = xpcall(body.run, debug.traceback, tp)\n"
    "      if not ok then error(body.name .. ': ' .. tostring(e), 0) end\n"
    "    end\n"
    "  end\n"
    "end\n";

static int rounds(void) { return STEP > 1 ? 2 : 5; }

static void *run_bodies(void *argument) {
  (void)argument;
  lua_State *L = open_state();
  bool fine = run(L, all_bodies, "bodies", "all", rounds());
  lua_close(L);
  return (void *)(intptr_t)fine;
}

static void *close_states(void *argument) {
  (void)argument;
  static const char *const ways[] = {"close", "finalizers", "none"};
  bool fine = true;
  for (int n = 1; n <= ORDERS && fine; n += step())
    fine = close_in_order("end", ways[n % 3], n);
  return (void *)(intptr_t)fine;
}

static void both(void *(*a)(void *), void *(*b)(void *)) {
  pthread_t threads[2];
  void *fine[2];
  pthread_create(&threads[0], NULL, a, NULL);
  pthread_create(&threads[1], NULL, b, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], &fine[i]);
  if (fine[0] == NULL || fine[1] == NULL) fail_msg("a state's script failed");
}

static void two_states_work(void **state) {
  (void)state;
  both(run_bodies, run_bodies);
}

static void one_closes_while_one_works(void **state) {
  (void)state;
  both(run_bodies, close_states);
  both(close_states, close_states);
}

static const char until_fault[] =
    "local tp = require 'tpstream'\n"
    "local ok, e\n"
    "repeat\n"
    "  ok, e = pcall(function()\n"
    "    local s <close> = tp.Stream()\n"
    "    local b = tp.zeros('i32', 10, { stream = s })\n"
    "    s:synchronize()\n"
    "  end)\n"
    "until not ok\n"
    "assert(e.code == 'cudaErrorIllegalAddress', tostring(e))\n";

static void *wait_for_fault(void *argument) {
  (void)argument;
  lua_State *L = open_state();
  bool fine = run(L, until_fault, "fault", "of another state", 0);
  lua_close(L);
  return (void *)(intptr_t)fine;
}

static void *make_fault(void *argument) {
  (void)argument;
  usleep(20000);
  return (void *)(intptr_t)close_in_order("end", "close, fault", 1);
}

static void a_fault_is_for_both(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    both(wait_for_fault, make_fault);
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
}

/* ---- resumers that are not Lua's ----------------------------------------- */

/* n co args... → results: as coroutine.wrap, from a program of its own. */
static int resume(lua_State *L) {
  lua_State *co = lua_tothread(L, 2);
  int results, count = lua_gettop(L) - 2;
  lua_xmove(L, co, count);
  int status = lua_resume(co, L, count, &results);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    return lua_error(L);
  }
  lua_xmove(co, L, results);
  return results;
}

/* The nearest block is found through coroutines resumed in any way; those that
 * are suspended or dead do not count. */
static const char by_others[] =
    "local tp = require 'tpstream'\n"
    "local function co(fn)\n"
    "  local c = coroutine.create(fn)\n"
    "  return function(...) return resume(0, c, ...) end\n"
    "end\n"
    "local function check(s) assert(tp.current_stream() == s, 'not current') end\n"
    "local s, t, u, v = tp.Stream(), tp.Stream(), tp.Stream(), tp.Stream()\n"
    "local default = tp.default_stream()\n"
    "local waits = co(function() tp.with_stream(v, coroutine.yield) end)\n"
    "waits()\n"
    "check(default)\n"
    "local generator = co(function()\n"
    "  while true do coroutine.yield(tp.current_stream()) end\n"
    "end)\n"
    "assert(generator() == default)\n"
    "tp.with_stream(s, function()\n"
    "  assert(generator() == s)\n"
    "  co(function()\n"
    "    check(s)\n"
    "    tp.with_stream(t, function()\n"
    "      check(t)\n"
    "      local inner = co(function()\n"
    "        check(t)\n"
    "        tp.with_stream(u, function()\n"
    "          assert(generator() == u)\n"
    "          co(function()\n"
    "            check(u)\n"
    "            coroutine.wrap(check)(u)\n"
    "            tp.with_stream(v, function() assert(generator() == v) end)\n"
    "            assert(generator() == u)\n"
    "          end)()\n"
    "          coroutine.yield()\n"
    "          check(u)\n"
    "        end)\n"
    "        check(t)\n"
    "      end)\n"
    "      inner()\n"
    "      check(t)\n"
    "      assert(generator() == t)\n"
    "      coroutine.wrap(function() assert(generator() == t) end)()\n"
    "      inner()\n"
    "    end)\n"
    "    assert(generator() == s)\n"
    "  end)()\n"
    "  check(s)\n"
    "end)\n"
    "assert(generator() == default)\n"
    "check(default)\n";

static void blocks_hold_under_any_resumer(void **state) {
  (void)state;
  lua_State *L = open_state();
  lua_register(L, "resume", resume);
  assert_true(run(L, by_others, "resumers", "others", 0));
  lua_close(L);
}

/* ---- what belongs to one state ------------------------------------------- */

static const char owner[] = "tp = require 'tpstream'\n"
                            "s = tp.Stream { priority = -1 }\n"
                            "tp.set_stream(s)\n"
                            "tp.strict(true)\n"
                            "tp.memory_limit(1000)\n"
                            "tp.timeline.start()\n"
                            "s:on_complete(function() called = true end)\n"
                            "handle = s:handle()\n";

/* The other's stream is a foreign one here: used, closed, left to its owner. */
static const char guest[] =
    "tp = require 'tpstream'\n"
    "local _, _, handle = ...\n"
    "assert(tp.current_stream() == tp.default_stream())\n"
    "assert(tp.strict(false) == false)\n"
    "assert(tp.memory_limit() > 1000)\n"
    "local s = tp.ExternalStream(handle)\n"
    "assert(s:handle() == handle and s:priority() == -1 and s:id() > 0)\n"
    "assert(rawequal(s, tp.ExternalStream(handle)))\n"
    "local b = tp.zeros('i32', 4, { stream = s })\n"
    "tp.with_stream(s, b.fill, b, 7)\n"
    "tp.default_stream():wait_stream(s)\n"
    "assert(b:read()[4] == 7)\n"
    "s:close()\n"
    "assert(tostring(s):find 'closed')\n"
    "assert(not pcall(tp.timeline.stop))\n"
    "assert(tp.poll() == 0)\n";

static const char owner_again[] =
    "assert(not called and tp.current_stream() == s)\n"
    "local t = tp.timeline.stop()\n"
    "assert(#t == 1 and t[1].kind == 'callback')\n"
    "local b <close> = tp.buffer('i32', { 1, 2, 3 })\n"
    "assert(b:read()[3] == 3 and called)\n"
    "assert(tp.strict(false) == true and tp.memory_limit() == 1000)\n"
    "tp.set_stream(tp.default_stream())\n"
    "s:close()\n";

static void each_state_has_its_own(void **state) {
  (void)state;
  lua_State *a = open_state(), *b = open_state();
  assert_true(run(a, owner, "owner", "begins", 0));
  lua_getglobal(a, "handle");
  assert_true(run(b, guest, "guest", "of a stream", lua_tointeger(a, -1)));
  lua_close(b);
  assert_true(run(a, owner_again, "owner", "goes on", 0));
  lua_close(a);
}

/* states_test [TEST [DEVICE]] */
int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (argc > 2) device = argv[2];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(at_the_end),
      cmocka_unit_test(by_exit),
      cmocka_unit_test(by_exit_and_close),
      cmocka_unit_test(after_a_fault),
      cmocka_unit_test(a_fault_is_for_both),
      cmocka_unit_test(two_states_work),
      cmocka_unit_test(one_closes_while_one_works),
      cmocka_unit_test(each_state_has_its_own),
      cmocka_unit_test(blocks_hold_under_any_resumer),
  };
  return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
