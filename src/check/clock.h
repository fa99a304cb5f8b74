/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Vector clocks. A lane is a row of operations, each after the one before: a
 * stream, or a branch of a graph. A clock tells for each lane up to which number
 * its operations come before something; NULL is the empty clock.
 *
 * Thousands of streams that know of one another have clocks which differ in little.
 * A clock is therefore a tree, and trees have in common what is the same in them:
 * what a wait adds costs one path from root to leaf. With up to eight lanes the
 * root is a leaf. What others hold a reference to never changes; who alone holds
 * one may change it. For one thread at a time.
 */
#ifndef TPS_CHECK_CLOCK_H
#define TPS_CHECK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TPS_CLOCK_BITS 3
#define TPS_CLOCK_WIDTH (1u << TPS_CLOCK_BITS)

/* A node, of lanes that are counted from its first one on. */
typedef struct tps_clock {
  uint32_t refs;
  uint32_t shift; /* each part has 2 to the power of this lanes; 0: a leaf */
  union {
    uint64_t upto[TPS_CLOCK_WIDTH]; /* by lane */
    struct tps_clock
        *parts[TPS_CLOCK_WIDTH]; /* references, or NULL; the shift of
                           the first may be smaller than there was room for */
  } u;
} tps_clock;

/* The end of an operation: what came before it, and itself. */
typedef struct tps_point {
  tps_clock *clock; /* a reference, or NULL; may leave out its own lane */
  uint32_t lane;
  uint64_t seq;
} tps_point;

static inline bool tps_clock_covers(const tps_clock *clock, uint32_t lane,
                                    uint64_t seq) {
  while (clock != NULL && lane >> clock->shift < TPS_CLOCK_WIDTH) {
    if (clock->shift == 0) return clock->u.upto[lane] >= seq;
    uint32_t part = lane >> clock->shift;
    lane -= part << clock->shift;
    clock = clock->u.parts[part];
  }
  return false;
}

static inline tps_clock *tps_clock_ref(tps_clock *clock) {
  if (clock != NULL) clock->refs++;
  return clock;
}
void tps_clock_unref(tps_clock *clock);

/* *clock, a reference, also covers what comes before the end of `point`. What covers
 * an operation so covers whatever came before that. False: no memory, and part of
 * it is not covered. */
bool tps_clock_join(tps_clock **clock, const tps_point *point);

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
