/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Vector clocks. A lane is a row of operations, each after the one before: a
 * stream, or a branch of a graph. A clock tells for each lane up to which number
 * its operations come before something. Clocks never change once made, so that
 * thousands of operations between two waits share one; NULL is the empty clock.
 * For one thread at a time.
 */
#ifndef TPS_CHECK_CLOCK_H
#define TPS_CHECK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tps_clock {
  int refs;
  uint32_t count;
  uint64_t upto[]; /* by lane */
} tps_clock;

/* The end of an operation: what came before it, and itself. */
typedef struct tps_point {
  tps_clock *clock; /* a reference, or NULL */
  uint32_t lane;
  uint64_t seq;
} tps_point;

static inline bool tps_clock_covers(const tps_clock *clock, uint32_t lane,
                                    uint64_t seq) {
  return clock != NULL && lane < clock->count && clock->upto[lane] >= seq;
}

tps_clock *tps_clock_ref(tps_clock *clock);
void tps_clock_unref(tps_clock *clock);

/* *clock also covers what comes before the end of `point`. False: no memory, and
 * *clock is as it was. */
bool tps_clock_join(tps_clock **clock, const tps_point *point);
/* True when that would change nothing. */
bool tps_clock_has(const tps_clock *clock, const tps_point *point);

static inline void tps_point_set(tps_point *point, tps_clock *clock,
                                 uint32_t lane, uint64_t seq) {
  tps_clock *before = point->clock;
  point->clock = tps_clock_ref(clock);
  point->lane = lane;
  point->seq = seq;
  tps_clock_unref(before);
}
static inline void tps_point_clear(tps_point *point) {
  tps_clock_unref(point->clock);
  point->clock = 0;
}

#endif
