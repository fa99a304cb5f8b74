/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The checker from inside: what a device tells late, or never; that the state stays
 * small; and two Lua states that use the same memory, on one thread and on two.
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
#include "check/order.h"
#include "lua/api.h"

/* ---- a world of its own -------------------------------------------------- */

typedef struct world {
  tps_context context;
  tps_device device;
  tps_stream streams[3];
  tps_memory memory;
  tps_order *o;
} world;

static void open_world(world *w) {
  memset(w, 0, sizeof *w);
  tps_report_clear();
  w->context.id = 1;
  w->context.site.source = "";
  w->device.kind = TPS_SIM;
  for (int i = 0; i < 3; i++) {
    w->streams[i].context = &w->context;
    w->streams[i].device = &w->device;
    w->streams[i].id = (uint64_t)i + 1;
  }
  w->memory.context = &w->context;
  w->memory.device = &w->device;
  w->memory.kind = TPS_MEMORY_DEVICE;
  w->memory.id = 100;
  w->memory.address = 0x1000;
  w->memory.bytes = 64;
  w->o = tps_order_new();
  assert_non_null(w->o);
  tps_order_memory(w->o, &w->memory, TPS_MEMORY_MADE);
}

static size_t close_world(world *w) {
  assert_false(w->o->broken);
  tps_order_free(w->o);
  size_t count = tps_report_count();
  tps_report_clear();
  return count;
}

/* An operation of stream `s` at a line, on bytes of the memory. */
static tps_op *new_op(const world *w, int s, tps_op_kind kind, int line,
                      uint64_t first, uint64_t bytes, tps_access access) {
  tps_op *op = tps_op_new();
  assert_non_null(op);
  assert_int_equal(tps_op_reserve_touches(op, 1), 0);
  op->kind = (uint8_t)kind;
  op->device_kind = TPS_SIM;
  op->stream = w->streams[s].id;
  op->line = line;
  op->touches[0] = (tps_touch){w->memory.id, first, bytes, (uint8_t)access};
  op->touch_count = 1;
  return op;
}

static tps_op *queue(world *w, int s, tps_op_kind kind, int line,
                     uint64_t first, uint64_t bytes, tps_access access) {
  tps_op *op = new_op(w, s, kind, line, first, bytes, access);
  tps_order_queued(w->o, op, &w->streams[s]);
  return op;
}

static void fill(world *w, int s, int line, uint64_t first, uint64_t bytes) {
  tps_op_unref(queue(w, s, TPS_OP_FILL, line, first, bytes, TPS_ACCESS_WRITE));
}

static tps_op *launch(world *w, int s, int line) {
  return queue(w, s, TPS_OP_LAUNCH, line, 0, 64, TPS_ACCESS_BOTH);
}

static void tell(world *w, tps_op *op, uint64_t first, uint64_t bytes) {
  tps_touch touch = {0, w->memory.address + first, bytes, TPS_ACCESS_WRITE};
  tps_order_touched(w->o, op, NULL, &touch, 1);
  tps_op_unref(op);
}

static void wait_for(world *w, int s) {
  tps_wait_note wait = {
      .context = &w->context, .device = &w->device, .stream = &w->streams[s]};
  tps_order_waited(w->o, &wait);
}

/* ---- what is told late --------------------------------------------------- */

static void what_is_told_replaces_what_was_declared(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op *a = launch(&w, 0, 1), *b = launch(&w, 1, 2);
  fill(&w, 2, 3, 32, 32);
  assert_int_equal(tps_report_count(), 0);
  tell(&w, b, 16, 16); /* in whatever order */
  tell(&w, a, 0, 16);
  tps_access_drain(w.o);
  assert_int_equal(close_world(&w), 0);

  open_world(&w);
  a = launch(&w, 0, 1), b = launch(&w, 1, 2);
  fill(&w, 2, 3, 32, 32);
  tell(&w, b, 16, 17);
  tell(&w, a, 0, 17);
  tps_access_drain(w.o);
  assert_int_equal(close_world(&w), 2);
}

static void tests_are_in_order_of_queueing(void **state) {
  (void)state;
  world w;
  size_t count;
  open_world(&w);
  tps_op *a = launch(&w, 0, 1);
  fill(&w, 1, 2, 0, 64);
  tps_order_memory(w.o, &w.memory, TPS_MEMORY_ENDED); /* after both */
  tell(&w, a, 0, 4);
  tps_access_drain(w.o);
  tps_report **list = tps_report_list(0, &count);
  assert_int_equal(count, 1);
  assert_int_equal(list[0]->first.line, 1);
  assert_int_equal(list[0]->second.line, 2);
  assert_int_equal(list[0]->to, 4);
  tps_report_unref(list[0]);
  free(list);
  assert_int_equal(close_world(&w), 1);
}

static void what_is_never_told_is_as_declared(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op_unref(launch(&w, 0, 1));
  fill(&w, 1, 2, 60, 4);
  assert_int_equal(tps_report_count(), 0);
  wait_for(&w, 0); /* it has run, and nobody told */
  assert_int_equal(tps_report_count(), 1);
  assert_int_equal(close_world(&w), 1);

  open_world(&w);
  tps_op_unref(launch(&w, 0, 1));
  fill(&w, 1, 2, 60, 4);
  assert_int_equal(close_world(&w), 1); /* the end */
}

static void what_is_refused_does_nothing(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op *a = queue(&w, 0, TPS_OP_FILL, 1, 0, 64, TPS_ACCESS_WRITE);
  tps_order_refused(w.o, a);
  tps_op *b = launch(&w, 0, 2);
  tps_order_refused(w.o, b);
  fill(&w, 1, 3, 0, 64);
  tps_op_unref(a);
  tps_op_unref(b);
  assert_int_equal(close_world(&w), 0);
}

/* A part of a loop's body is told once a turn; one that never ran, not at all. */
static void bodies_are_told_any_number_of_times(void **state) {
  (void)state;
  world w;
  for (int turns = 0; turns < 4; turns++) {
    open_world(&w);
    tps_op *graph = new_op(&w, 0, TPS_OP_GRAPH, 1, 0, 64, TPS_ACCESS_BOTH);
    tps_op *part = new_op(&w, 0, TPS_OP_LAUNCH, 2, 0, 64, TPS_ACCESS_BOTH);
    tps_strand *s = tps_strand_of(w.o, &w.streams[0]);
    tps_strand_next(w.o, s);
    tps_point point = tps_strand_point(s);
    tps_access_op(w.o, part, graph, true, &point);
    fill(&w, 1, 3, 16, 16);
    for (int i = 0; i < turns; i++) {
      tps_touch touch = {0, w.memory.address + 8u * (unsigned)i, 8,
                         TPS_ACCESS_WRITE};
      tps_order_touched(w.o, part, graph, &touch, 1);
      tps_access_drain(w.o);
    }
    assert_int_equal(tps_report_count(), 0); /* it may go on */
    wait_for(&w, 0);
    assert_int_equal(close_world(&w), turns == 3 ? 1 : 0);
    tps_op_unref(graph);
    tps_op_unref(part);
  }
}

static void what_is_not_known_is_told_as_such(void **state) {
  (void)state;
  world w;
  size_t count;
  open_world(&w);
  tps_op_unref(queue(&w, 0, TPS_OP_COPY, 1, 0, 64, TPS_ACCESS_READ));
  tps_op_unref(queue(&w, 1, TPS_OP_COPY, 2, 0, 64, TPS_ACCESS_UNKNOWN));
  tps_report **list = tps_report_list(0, &count);
  assert_int_equal(count, 1);
  assert_non_null(
      strstr(list[0]->text, "Perhaps missing order between two uses"));
  assert_string_equal(list[0]->first.access, "read");
  assert_string_equal(list[0]->second.access, "use");
  tps_report_unref(list[0]);
  free(list);
  assert_int_equal(close_world(&w), 1);
}

/* ---- the state stays small ----------------------------------------------- */

static void closed_streams_give_their_lanes_back(void **state) {
  (void)state;
  world w;
  open_world(&w);
  for (unsigned i = 0; i < 1000; i++) {
    w.streams[2].id = 1000 + i;
    tps_order_stream_opened(w.o, &w.streams[2], 5000 + i);
    fill(&w, 2, 1, 0, 8);
    wait_for(&w, 2);
    fill(&w, 1, 2, 0, 8);
    wait_for(&w, 1);
    tps_order_stream_closed(w.o, &w.streams[2]);
  }
  assert_in_range(w.o->lane_count, 2, 4);
  assert_int_equal(close_world(&w), 0);
}

static void the_legacy_stream_comes_and_goes(void **state) {
  (void)state;
  world w;
  open_world(&w);
  w.streams[0].is_default = true;
  w.streams[0].blocking = w.streams[1].blocking = true;
  for (int i = 0; i < 3; i++) {
    tps_order_stream_opened(w.o, &w.streams[0], 0);
    fill(&w, 0, 1, 0, 8);
    fill(&w, 1, 2, 0, 8);
    fill(&w, 0, 3, 0, 8);
    wait_for(&w, 0);
    tps_order_stream_closed(w.o, &w.streams[0]);
    wait_for(&w, 2);
    fill(&w, 1, 4, 0, 8);
    wait_for(&w, 1);
  }
  assert_int_equal(close_world(&w), 0);
}

static void what_the_host_knows_is_forgotten(void **state) {
  (void)state;
  world w;
  open_world(&w);
  w.memory.bytes = 1 << 20;
  w.memory.id = 101;
  tps_order_memory(w.o, &w.memory, TPS_MEMORY_MADE);
  for (unsigned i = 0; i < 10000; i++) {
    fill(&w, 0, 1, 16u * i, 8);
    wait_for(&w, 0);
  }
  assert_in_range(w.o->spans[TPS_SPACE_SIM].count, 0, 1000);
  assert_int_equal(close_world(&w), 0);
}

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
      cmocka_unit_test(what_is_told_replaces_what_was_declared),
      cmocka_unit_test(tests_are_in_order_of_queueing),
      cmocka_unit_test(what_is_never_told_is_as_declared),
      cmocka_unit_test(what_is_refused_does_nothing),
      cmocka_unit_test(bodies_are_told_any_number_of_times),
      cmocka_unit_test(what_is_not_known_is_told_as_such),
      cmocka_unit_test(closed_streams_give_their_lanes_back),
      cmocka_unit_test(the_legacy_stream_comes_and_goes),
      cmocka_unit_test(what_the_host_knows_is_forgotten),
      cmocka_unit_test(two_states_have_one_order),
      cmocka_unit_test(the_legacy_stream_is_one_for_both),
      cmocka_unit_test(two_threads_are_watched_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
