/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The order check from inside: what a device tells late, or never; what turns out not
 * to be; that the state stays small.
 */
#include "check_world.h"

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
  tps_pending_drain(w.o);
  assert_int_equal(close_world(&w), 0);

  open_world(&w);
  a = launch(&w, 0, 1), b = launch(&w, 1, 2);
  fill(&w, 2, 3, 32, 32);
  tell(&w, b, 16, 17);
  tell(&w, a, 0, 17);
  tps_pending_drain(w.o);
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
  tps_pending_drain(w.o);
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

/* The strand's next operation is a part of a launch. */
static void queue_part(world *w, tps_op *part, tps_op *graph, bool body) {
  tps_strand *s = tps_strand_of(w->o, &w->streams[0]);
  tps_strand_next(w->o, s);
  tps_point point = tps_strand_point(s);
  tps_pending_op(w->o, part, graph, body, &point);
}

static void tell_part(world *w, tps_op *part, tps_op *graph, uint64_t first,
                      uint64_t bytes) {
  tps_touch touch = {0, w->memory.address + first, bytes, TPS_ACCESS_WRITE, 0,
                     0};
  tps_order_touched(w->o, part, graph, &touch, 1);
}

/* A part of a loop's body is told once a turn; one that never ran, not at all. */
static void bodies_are_told_any_number_of_times(void **state) {
  (void)state;
  world w;
  for (uint64_t turns = 0; turns < 4; turns++) {
    open_world(&w);
    tps_op *graph = new_op(&w, 0, TPS_OP_GRAPH, 1, 0, 64, TPS_ACCESS_BOTH);
    tps_op *part = new_op(&w, 0, TPS_OP_LAUNCH, 2, 0, 64, TPS_ACCESS_BOTH);
    queue_part(&w, part, graph, true);
    fill(&w, 1, 3, 16, 16);
    for (uint64_t i = 0; i < turns; i++) {
      tell_part(&w, part, graph, 8 * i, 8);
      tps_pending_drain(w.o);
    }
    assert_int_equal(tps_report_count(), 0); /* it may go on */
    wait_for(&w, 0);
    assert_int_equal(close_world(&w), turns == 3 ? 1 : 0);
    tps_op_unref(graph);
    tps_op_unref(part);
  }
}

/* A graph may have a part several times. */
static void each_of_the_same_parts_is_told(void **state) {
  (void)state;
  for (uint64_t bytes = 16; bytes <= 17; bytes++) {
    world w;
    open_world(&w);
    tps_op *graph = new_op(&w, 0, TPS_OP_GRAPH, 1, 0, 64, TPS_ACCESS_BOTH);
    tps_op *part = new_op(&w, 0, TPS_OP_LAUNCH, 2, 0, 64, TPS_ACCESS_BOTH);
    for (int i = 0; i < 3; i++) queue_part(&w, part, graph, false);
    fill(&w, 1, 3, 32, 32);
    tell_part(&w, part, graph, 0, 8);
    tell_part(&w, part, graph, 0, 8);
    tps_pending_drain(w.o);
    assert_non_null(w.o->first);
    tell_part(&w, part, graph, 16, bytes);
    tps_pending_drain(w.o);
    assert_null(w.o->first);
    assert_int_equal(w.o->waiting.count, 0);
    assert_int_equal(close_world(&w), bytes - 16);
    tps_op_unref(graph);
    tps_op_unref(part);
  }
}

static void the_end_of_a_launch_is_the_end_of_its_bodies(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op *graph = new_op(&w, 0, TPS_OP_GRAPH, 1, 0, 64, TPS_ACCESS_BOTH);
  tps_op *part = new_op(&w, 0, TPS_OP_LAUNCH, 2, 0, 64, TPS_ACCESS_BOTH);
  queue_part(&w, part, graph, true);
  fill(&w, 1, 3, 0, 64);
  fill(&w, 2, 4, 0, 64);
  tell_part(&w, part, graph, 0, 8);
  tps_pending_drain(w.o);
  assert_int_equal(tps_report_count(), 0);
  atomic_store(&graph->state, TPS_OP_DONE);
  tps_pending_drain(w.o);
  assert_int_equal(tps_report_count(), 2); /* 2 and 3, 3 and 4 */
  tps_op_unref(graph);
  tps_op_unref(part);
  assert_int_equal(close_world(&w), 2);
}

static void what_was_dropped_touched_nothing(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op *a = launch(&w, 0, 1);
  atomic_store(&a->state, TPS_OP_FAILED);
  fill(&w, 1, 2, 0, 64);
  tps_op_unref(a);
  assert_int_equal(close_world(&w), 0);
}

/* Records are used again: an older one may have been at the same address. */
static void what_was_there_before_is_not_refused(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op *a = queue(&w, 0, TPS_OP_FILL, 1, 0, 32, TPS_ACCESS_WRITE);
  a->touches[0].first = 32;
  tps_order_queued(w.o, a, &w.streams[0]);
  tps_order_refused(w.o, a);
  fill(&w, 1, 2, 0, 64);
  tps_op_unref(a);
  assert_int_equal(close_world(&w), 1); /* of the first half */
}

static void a_refused_read_hides_no_write(void **state) {
  (void)state;
  world w;
  open_world(&w);
  fill(&w, 0, 1, 0, 64);
  tps_op *a = queue(&w, 1, TPS_OP_COPY, 2, 0, 64, TPS_ACCESS_READ);
  assert_int_equal(tps_report_count(), 1);
  tps_report_clear();
  tps_order_refused(w.o, a);
  tps_op_unref(a);
  fill(&w, 2, 3, 0, 64);
  assert_int_equal(close_world(&w), 1);
}

static void a_refused_graph_does_nothing(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op *graph = new_op(&w, 0, TPS_OP_GRAPH, 1, 0, 64, TPS_ACCESS_BOTH);
  tps_op *part = new_op(&w, 0, TPS_OP_LAUNCH, 2, 0, 64, TPS_ACCESS_BOTH);
  graph->seq = 7;
  queue_part(&w, part, graph, false);
  queue_part(&w, part, graph, true);
  tps_order_refused(w.o, graph);
  fill(&w, 1, 3, 0, 64);
  assert_null(w.o->first);
  assert_int_equal(w.o->waiting.count, 0);
  tps_op_unref(graph);
  tps_op_unref(part);
  assert_int_equal(close_world(&w), 0);
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

static void turns_are_kept_as_one(void **state) {
  (void)state;
  world w;
  open_world(&w);
  tps_op *graph = new_op(&w, 0, TPS_OP_GRAPH, 1, 0, 64, TPS_ACCESS_BOTH);
  tps_op *part = new_op(&w, 0, TPS_OP_LAUNCH, 2, 0, 64, TPS_ACCESS_BOTH);
  queue_part(&w, part, graph, true);
  for (unsigned i = 0; i < 1000; i++) {
    uint64_t at = w.memory.address + 4u * (i * 7 % 16);
    tps_touch touches[] = {{0, at, 4, TPS_ACCESS_READ, 0, 0},
                           {0, at, 4, TPS_ACCESS_WRITE, 0, 0}};
    tps_order_touched(w.o, part, graph, touches, 2);
  }
  assert_int_equal(w.o->first->count, 2); /* one of each, of all 64 bytes */
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(w.o->first->touches[i].first, w.memory.address);
    assert_int_equal(w.o->first->touches[i].bytes, 64);
  }
  tps_op_unref(graph);
  tps_op_unref(part);
  assert_int_equal(close_world(&w), 0);
}

static size_t pending(const world *w) {
  size_t count = 0;
  for (tps_pending *p = w->o->first; p != NULL; p = p->next) count++;
  return count;
}

static void host(world *w, int line, uint64_t first, tps_access access) {
  w->context.site.line = line;
  tps_order_host(w->o, &w->memory, first, 4, access);
}

/* The same reports, as often, as if each touch of the host's were kept for itself. */
static void loops_of_the_host_are_put_off_as_one(void **state) {
  (void)state;
  world w;
  size_t count;
  open_world(&w);
  tps_op *a = launch(&w, 0, 1);
  for (int i = 0; i < 500; i++) {
    host(&w, 2, 60, TPS_ACCESS_READ); /* until it changes */
    host(&w, 3, 4 * (uint64_t)(i % 16), TPS_ACCESS_WRITE);
  }
  for (int i = 15; i >= 0; i--) host(&w, 4, 4 * (uint64_t)i, TPS_ACCESS_READ);
  assert_in_range(pending(&w), 4, 100); /* the loop in 3 begins 32 times */
  fill(&w, 0, 5, 0, 4);
  host(&w, 4, 60, TPS_ACCESS_READ);
  assert_int_equal(tps_report_count(), 0);
  tell(&w, a, 48, 16); /* the last four elements, of 1 */
  tps_pending_drain(w.o);
  tps_report **list = tps_report_list(0, &count);
  assert_int_equal(count, 3);
  assert_int_equal(list[0]->second.line, 2);
  assert_int_equal(list[0]->count, 500);
  assert_int_equal(list[1]->second.line, 3);
  assert_int_equal(list[1]->count, 500 / 16 * 4);
  assert_int_equal(list[2]->second.line, 4);
  assert_int_equal(list[2]->count, 5);
  for (size_t i = 0; i < count; i++) tps_report_unref(list[i]);
  free(list);
  assert_int_equal(close_world(&w), 3);
}

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
    tps_order_stream_gone(w.o, &w.streams[2]);
  }
  assert_in_range(w.o->lane_count, 2, 4);
  assert_null(w.o->strands->closed);
  assert_int_equal(close_world(&w), 0);
}

static void end_stream(world *w, int s) {
  tps_order_stream_closed(w->o, &w->streams[s]);
  tps_order_stream_gone(w->o, &w->streams[s]);
}

/* 0 writes, 1 comes after it and is gone, 2 comes after 1 in one way or another. */
static void what_is_gone_still_orders(void **state) {
  (void)state;
  for (int way = 0; way < 3; way++) {
    world w;
    open_world(&w);
    tps_device other = {.kind = TPS_SIM, .ordinal = 1};
    w.streams[0].device = &other; /* so it is not waited for itself */
    w.streams[1].blocking = way == 1;
    w.streams[2].blocking = w.streams[2].is_default = way == 1;
    fill(&w, 0, 1, 0, 8);
    tps_order_followed(w.o, &w.streams[1], &w.streams[0]);
    fill(&w, 1, 2, 8, 8);
    end_stream(&w, 1);
    tps_wait_note wait = {.context = &w.context, .device = &w.device};
    if (way == 2) tps_order_waited(w.o, &wait);
    fill(&w, 2, 3, 0, 16);
    assert_int_equal(close_world(&w), way == 0 ? 2 : 0);
  }
}

/* Nobody waits for them. */
static void streams_that_are_gone_leave_little(void **state) {
  (void)state;
  world w;
  open_world(&w);
  for (unsigned i = 0; i < 1000; i++) {
    w.streams[2].id = 1000 + i;
    tps_order_stream_opened(w.o, &w.streams[2], 5000 + i);
    fill(&w, 2, 1, 0, 0);
    wait_for(&w, 1);
    end_stream(&w, 2);
  }
  assert_null(w.o->strands->closed);
  assert_int_equal(w.o->strands->handles.count, 0);
  assert_int_equal(w.o->streams.count, 1);
  tps_wait_note wait = {
      .context = &w.context, .device = &w.device, .all = true};
  tps_order_waited(w.o, &wait);
  assert_int_equal(w.o->left_count, 0);
  assert_null(w.o->strands->gone->clock);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_told_replaces_what_was_declared),
      cmocka_unit_test(tests_are_in_order_of_queueing),
      cmocka_unit_test(what_is_never_told_is_as_declared),
      cmocka_unit_test(what_is_refused_does_nothing),
      cmocka_unit_test(bodies_are_told_any_number_of_times),
      cmocka_unit_test(each_of_the_same_parts_is_told),
      cmocka_unit_test(the_end_of_a_launch_is_the_end_of_its_bodies),
      cmocka_unit_test(what_was_dropped_touched_nothing),
      cmocka_unit_test(what_was_there_before_is_not_refused),
      cmocka_unit_test(a_refused_read_hides_no_write),
      cmocka_unit_test(a_refused_graph_does_nothing),
      cmocka_unit_test(what_is_not_known_is_told_as_such),
      cmocka_unit_test(turns_are_kept_as_one),
      cmocka_unit_test(loops_of_the_host_are_put_off_as_one),
      cmocka_unit_test(closed_streams_give_their_lanes_back),
      cmocka_unit_test(what_is_gone_still_orders),
      cmocka_unit_test(streams_that_are_gone_leave_little),
      cmocka_unit_test(the_legacy_stream_comes_and_goes),
      cmocka_unit_test(what_the_host_knows_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
