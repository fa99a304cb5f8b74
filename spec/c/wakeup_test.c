/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.wakeup_fd() in a loop of somebody else's: poll(2) on the descriptor, as a
 * function `readable(fd, ms)` of a script's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <string.h>

#include "lua/api.h"

/* readable(fd [, ms]) */
static int readable(lua_State *L) {
  struct pollfd fd = {(int)luaL_checkinteger(L, 1), POLLIN, 0};
  lua_pushboolean(L, poll(&fd, 1, (int)luaL_optinteger(L, 2, 0)) == 1);
  return 1;
}

static const char prelude[] =
    "local tp = require 'tpstream'\n"
    "local gate = require 'spec.support.gate'\n"
    "local s <const>, fd <const> = tp.Stream(), tp.wakeup_fd()\n"
    "assert(fd == tp.wakeup_fd() and not readable(fd))\n"
    "local function loop(task)\n" /* until it has ended; how many turns */
    "  local n = 0\n"
    "  while task:status() ~= 'done' do\n"
    "    assert(readable(fd, 5000))\n"
    "    tp.poll()\n"
    "    n = n + 1\n"
    "  end\n"
    "  assert(not readable(fd))\n"
    "  return n\n"
    "end\n";

static void run(const char *script) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  lua_pushliteral(L, "sim");
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.device");
  luaL_requiref(L, "tpstream", luaopen_tpstream, 0);
  lua_register(L, "readable", readable);
  lua_pushstring(L, prelude);
  lua_pushstring(L, script);
  lua_concat(L, 2);
  if (luaL_dostring(L, lua_tostring(L, -1)) != LUA_OK)
    fail_msg("%s", luaL_tolstring(L, -1, NULL));
  lua_close(L);
}

static void spawned_tasks_are_due_at_once(void **state) {
  (void)state;
  run("local t = tp.spawn(coroutine.yield)\n"
      "assert(readable(fd))\n"
      "tp.poll()\n"
      "assert(t:status() == 'ready' and readable(fd))\n"
      "assert(loop(t) == 1)\n");
}

static void work_that_is_done_is_due_until_it_is_polled(void **state) {
  (void)state;
  run("local g <close> = gate.new()\n"
      "g:hold(s)\n"
      "local called = 0\n"
      "s:on_complete(function() called = called + 1 end)\n"
      "local e = s:record_event()\n"
      "local t = tp.spawn(tp.await_all, s, e)\n"
      "tp.poll()\n"
      "assert(not readable(fd, 20))\n"
      "g:open()\n"
      "assert(readable(fd, 5000) and readable(fd))\n"
      "loop(t)\n"
      "assert(called == 1)\n");
}

static void another_wait_may_take_it(void **state) {
  (void)state;
  run("local t = tp.spawn(tp.await, s)\n"
      "tp.poll()\n"
      "assert(readable(fd, 5000))\n"
      "s:synchronize()\n"      /* takes the notification */
      "assert(readable(fd))\n" /* but the task can go on */
      "assert(loop(t) == 1)\n");
}

static void sleepers_are_due_at_their_time(void **state) {
  (void)state;
  run("local first = tp.spawn(tp.sleep, 30)\n"
      "local second = tp.spawn(tp.sleep, 60)\n"
      "tp.poll()\n"
      "assert(not readable(fd, 5))\n"
      "assert(loop(first) >= 1)\n" /* loop: and not readable then */
      "assert(second:status() == 'waiting')\n"
      "second:cancel()\n"
      "tp.poll()\n"
      "assert(not readable(fd, 70))\n"
      "assert(tp.run(function() tp.sleep(1) return 'run' end) == 'run')\n"
      "assert(not readable(fd))\n");
}

static void a_fault_is_due(void **state) {
  (void)state;
  run("local m = require 'spec.support.program'('bad',\n"
      "  'extern \"C\" __global__ void bad(int *p) { *p = 1; }')\n"
      "local t = tp.spawn(function() return pcall(tp.await, s) end)\n"
      "m:kernel 'bad':launch({ grid = 1, block = 1, stream = s }, nil)\n"
      "loop(t)\n"
      "local ok, e = select(2, pcall(tp.run, tp.await, t)), nil\n"
      "assert(ok == false)\n");
}

static void the_end_of_the_state_closes_it(void **state) {
  (void)state;
  int before = open("/dev/null", O_RDONLY);
  for (int i = 0; i < 20; i++)
    run("local g = gate.new()\n"
        "g:hold(s)\n"
        "tp.spawn(tp.await, s)\n"
        "tp.poll()\n"
        "g:open()\n");
  int after = open("/dev/null", O_RDONLY);
  assert_true(after <= before + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spawned_tasks_are_due_at_once),
      cmocka_unit_test(work_that_is_done_is_due_until_it_is_polled),
      cmocka_unit_test(another_wait_may_take_it),
      cmocka_unit_test(sleepers_are_due_at_their_time),
      cmocka_unit_test(the_end_of_the_state_closes_it),
      cmocka_unit_test(a_fault_is_due), /* last: the device is of the process */
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
