/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * src/timeline/settle.c: what follows from the whole of a recording, where a GPU's
 * two clocks did not agree to the microsecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "timeline/parts.h"

static tps_timeline_item items[8];
static tps_timeline timeline;

static void add(tps_op_kind kind, uint64_t stream, uint64_t started,
                uint64_t finished) {
  tps_timeline_item *item = &items[timeline.count++];
  *item = (tps_timeline_item){.kind = (uint8_t)kind,
                              .stream = stream,
                              .order = timeline.count,
                              .queued_ns = timeline.count,
                              .started_ns = started,
                              .finished_ns = finished,
                              .source = ""};
  if (kind == TPS_OP_RECORD || kind == TPS_OP_WAIT) item->event = 5;
}

static int begin(void **state) {
  (void)state;
  timeline = (tps_timeline){.items = items, .capacity = 8};
  return 0;
}

static void is(unsigned i, uint64_t started, uint64_t finished) {
  assert_int_equal(items[i].started_ns, started);
  assert_int_equal(items[i].finished_ns, finished);
}

/* The record is told to have come 400 ns after the wait for it ended. */
static void a_wait_ends_after_its_record(void **state) {
  (void)state;
  add(TPS_OP_LAUNCH, 1, 1000, 9000);
  add(TPS_OP_RECORD, 1, 9400, 9400);
  add(TPS_OP_WAIT, 2, 100, 9000);
  add(TPS_OP_LAUNCH, 2, 9100, 9300);
  add(TPS_OP_COPY, 2, 9350, 9900);
  assert_true(tps_timeline_settle(&timeline));
  assert_int_equal(items[2].link, 2);
  is(1, 9400, 9400);
  is(2, 100, 9400);
  is(3, 9400, 9400);
  is(4, 9400, 9900);
}

static void a_stream_has_one_thing_at_a_time(void **state) {
  (void)state;
  add(TPS_OP_LAUNCH, 1, 1000, 9000);
  add(TPS_OP_LAUNCH, 1, 8500, 20000);
  add(TPS_OP_LAUNCH, 2, 8500, 20000);
  add(TPS_OP_WAIT, 1, 10, 15000);
  assert_true(tps_timeline_settle(&timeline));
  is(0, 1000, 9000);
  is(1, 9000, 20000);
  is(2, 8500, 20000);
  is(3, 20000, 20000);
}

/* Two Lua states queue on one stream, and what was recorded later ran earlier: that
 * is no matter of clocks. */
static void what_is_far_apart_stays(void **state) {
  (void)state;
  add(TPS_OP_LAUNCH, 1, 500000, 900000);
  add(TPS_OP_LAUNCH, 1, 1000, 400000);
  add(TPS_OP_LAUNCH, 1, 0, 0); /* did not run */
  add(TPS_OP_LAUNCH, 1, 399000, 450000);
  items[1].context = items[2].context = 7;
  assert_true(tps_timeline_settle(&timeline));
  is(0, 500000, 900000);
  is(1, 1000, 400000);
  is(2, 0, 0);
  is(3, 400000, 450000);
}

static void one_state_is_in_order(void **state) {
  (void)state;
  add(TPS_OP_LAUNCH, 1, 1000, 900000);
  add(TPS_OP_LAUNCH, 1, 300000, 400000);
  add(TPS_OP_COPY, 1, 410000, 950000);
  assert_true(tps_timeline_settle(&timeline));
  is(0, 1000, 900000);
  is(1, 900000, 900000);
  is(2, 900000, 950000);
}

/* The simulated device tells the truth. */
static void exact_times_stay(void **state) {
  (void)state;
  add(TPS_OP_LAUNCH, 1, 2000, 3000);
  add(TPS_OP_LAUNCH, 1, 1000, 1500);
  items[0].device_kind = items[1].device_kind = TPS_SIM;
  items[1].context = 7;
  assert_true(tps_timeline_settle(&timeline));
  is(1, 1000, 1500);
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_wait_ends_after_its_record),
      TEST(a_stream_has_one_thing_at_a_time),
      TEST(what_is_far_apart_stays),
      TEST(one_state_is_in_order),
      TEST(exact_times_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
