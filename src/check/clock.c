/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "check/clock.h"

#include <stdlib.h>
#include <string.h>

tps_clock *tps_clock_ref(tps_clock *clock) {
  if (clock != NULL) clock->refs++;
  return clock;
}

void tps_clock_unref(tps_clock *clock) {
  if (clock != NULL && --clock->refs == 0) free(clock);
}

bool tps_clock_has(const tps_clock *clock, const tps_point *point) {
  const tps_clock *other = point->clock;
  if (point->seq > 0 && !tps_clock_covers(clock, point->lane, point->seq))
    return false;
  if (other == NULL || other == clock) return true;
  for (uint32_t i = 0; i < other->count; i++)
    if (other->upto[i] > 0 && !tps_clock_covers(clock, i, other->upto[i]))
      return false;
  return true;
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

bool tps_clock_join(tps_clock **clock, const tps_point *point) {
  tps_clock *old = *clock;
  const tps_clock *other = point->clock;
  if (tps_clock_has(old, point)) return true;
  uint32_t count = point->seq > 0 ? point->lane + 1 : 0;
  if (old != NULL) count = larger(count, old->count);
  if (other != NULL) count = larger(count, other->count);
  tps_clock *sum = calloc(1, sizeof *sum + count * sizeof sum->upto[0]);
  if (sum == NULL) return false;
  sum->refs = 1;
  sum->count = count;
  if (old != NULL)
    memcpy(sum->upto, old->upto, old->count * sizeof sum->upto[0]);
  for (uint32_t i = 0; other != NULL && i < other->count; i++)
    if (sum->upto[i] < other->upto[i]) sum->upto[i] = other->upto[i];
  if (point->seq > 0 && sum->upto[point->lane] < point->seq)
    sum->upto[point->lane] = point->seq;
  tps_clock_unref(old);
  *clock = sum;
  return true;
}
