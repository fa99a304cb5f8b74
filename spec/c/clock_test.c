/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The checker's vector clocks beside plain arrays, which one can't get wrong; and
 * that what clocks have in common is there once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "check/clock.h"
#include "check/table.h"

#define STREAMS 12

static uint64_t state;

static uint32_t pick(uint32_t count) {
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(state >> 33) % count;
}

/* Streams with a lane each, among many lanes, and with what they know. */
typedef struct plain {
  uint64_t upto[STREAMS];
} plain;

typedef struct world {
  uint32_t lanes[STREAMS];
  uint64_t last[STREAMS], seq;
  tps_clock *clocks[STREAMS];
  plain known[STREAMS];
} world;

static void open_world(world *w, uint32_t spread) {
  memset(w, 0, sizeof *w);
  for (uint32_t i = 0; i < STREAMS; i++)
    w->lanes[i] = i * spread + pick(spread);
}

/* As the order check does: an operation, with what the other stream then knows. */
static void step(world *w) {
  uint32_t from = pick(STREAMS), to = pick(STREAMS);
  w->last[from] = ++w->seq;
  if (pick(3) == 0 || from == to) return;
  tps_point point = {w->clocks[from], w->lanes[from], w->last[from]};
  assert_true(tps_clock_join(&w->clocks[to], &point));
  for (int i = 0; i < STREAMS; i++)
    if (w->known[to].upto[i] < w->known[from].upto[i])
      w->known[to].upto[i] = w->known[from].upto[i];
  if (w->known[to].upto[from] < w->last[from])
    w->known[to].upto[from] = w->last[from];
}

static void compare(const tps_clock *clock, const plain *known,
                    const uint32_t *lanes) {
  for (int i = 0; i < STREAMS; i++) {
    uint64_t upto = known->upto[i];
    if (upto > 0) assert_true(tps_clock_covers(clock, lanes[i], upto));
    assert_false(tps_clock_covers(clock, lanes[i], upto + 1));
    assert_false(tps_clock_covers(clock, lanes[i] + 1000000, 1));
  }
}

static void clocks_are_as_arrays(void **unused) {
  (void)unused;
  state = 1;
  for (int round = 0; round < 300; round++) {
    static const uint32_t spreads[] = {1, 3, 40, 5000};
    world w;
    open_world(&w, spreads[pick(4)]);
    for (int i = 0; i < 60; i++) {
      /* One that somebody keeps does not change. */
      uint32_t s = pick(STREAMS);
      tps_clock *kept = tps_clock_ref(w.clocks[s]);
      plain known = w.known[s];
      for (int j = 0; j < 5; j++) step(&w);
      compare(kept, &known, w.lanes);
      tps_clock_unref(kept);
    }
    for (int i = 0; i < STREAMS; i++) {
      compare(w.clocks[i], &w.known[i], w.lanes);
      tps_clock_unref(w.clocks[i]);
    }
  }
}

/* ---- what they take ------------------------------------------------------ */

#define MANY 2000

static void count(tps_table *nodes, tps_clock *clock) {
  if (clock == NULL) return;
  uint64_t key = (uint64_t)(uintptr_t)clock;
  if (tps_table_get(nodes, key) != NULL) return;
  assert_true(tps_table_put(nodes, key, clock));
  for (uint32_t i = 0; i < TPS_CLOCK_WIDTH && clock->shift > 0; i++)
    count(nodes, clock->u.parts[i]);
}

/* Different nodes of them all, which are then let go. */
static size_t nodes_of(tps_clock **clocks) {
  tps_table nodes = {0};
  for (int i = 0; i < MANY; i++) count(&nodes, clocks[i]);
  size_t found = nodes.count;
  tps_table_free(&nodes);
  for (int i = 0; i < MANY; i++) tps_clock_unref(clocks[i]);
  memset(clocks, 0, MANY * sizeof *clocks);
  return found;
}

static tps_clock *clocks[MANY];

static void a_chain_adds_a_path_each(void **unused) {
  (void)unused;
  for (uint32_t i = 1; i < MANY; i++) {
    tps_point before = {clocks[i - 1], i - 1, i};
    assert_true(tps_clock_join(&clocks[i], &before));
  }
  assert_in_range(nodes_of(clocks), MANY, 5 * MANY);
}

/* All wait for the first one and it for all, again and again. */
static void a_hub_is_shared(void **unused) {
  (void)unused;
  uint64_t seq = 0;
  for (int round = 0; round < 3; round++) {
    tps_point hub = {clocks[0], 0, ++seq};
    for (uint32_t i = 1; i < MANY; i++)
      assert_true(tps_clock_join(&clocks[i], &hub));
    for (uint32_t i = 1; i < MANY; i++) {
      tps_point point = {clocks[i], i, ++seq};
      assert_true(tps_clock_join(&clocks[0], &point));
    }
  }
  assert_in_range(nodes_of(clocks), MANY / 8, 6 * MANY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clocks_are_as_arrays),
      cmocka_unit_test(a_chain_adds_a_path_each),
      cmocka_unit_test(a_hub_is_shared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
