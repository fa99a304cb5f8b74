/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch: copies by cp.async, from their issue to the wait for them.
 */
#include <stdlib.h>

#include "sim/engine_race.h"

#define ON(mask, l) (((mask) >> (l)) & 1)

static flights *flights_of(race_block *b, const warp *w) {
  return b->flights ? &b->flights[w->index] : NULL;
}

static bool make_room(flights *f) {
  if (f->count < f->capacity) return true;
  uint32_t more = f->capacity ? 2 * f->capacity : 64;
  flight *list = realloc(f->list, more * sizeof *list);
  if (!list) return false;
  f->list = list;
  f->capacity = more;
  return true;
}

bool tps_sim_race_issue(race_block *b, const touch *t, unsigned lane) {
  if (!b->flights)
    b->flights = calloc(b->block->launch->warps, sizeof *b->flights);
  flights *f = flights_of(b, t->e->warp);
  if (!f || !make_room(f)) return false;
  f->list[f->count++] = (flight){.at = (uint32_t)t->at[lane],
                                 .group = f->groups[lane],
                                 .bytes = (uint8_t)t->bytes,
                                 .lane = (uint8_t)lane};
  return true;
}

void tps_sim_race_group(race_block *b, const warp *w, uint32_t lanes) {
  flights *f = flights_of(b, w);
  for (unsigned l = 0; f && l < LANES; l++)
    if (ON(lanes, l)) f->groups[l]++;
}

/* What another write has not covered since. */
static void land(race_block *b, const flight *f, uint32_t warp, uint32_t now) {
  race_chunk *c = b->shared->chunks[f->at / RACE_CHUNK];
  if (!c || !c->writes.now) return;
  unsigned k = f->at % RACE_CHUNK >> c->shift;
  for (unsigned n = 0; n < (unsigned)f->bytes >> c->shift; n++, k++) {
    mark m = mark_at(&c->writes, k);
    if (!(m.who & MARK_FLYING) || m.warp != warp || mark_lane(&m) != f->lane)
      continue;
    m.who &= ~(uint32_t)MARK_FLYING;
    m.now = now;
    mark_put(&c->writes, k, m);
  }
}

void tps_sim_race_land(race_block *b, const warp *w, uint32_t lanes,
                       uint32_t kept) {
  flights *f = flights_of(b, w);
  uint32_t left = 0;
  for (uint32_t k = 0; f && k < f->count; k++) {
    flight one = f->list[k];
    bool due =
        kept == UINT32_MAX || (uint64_t)one.group + kept < f->groups[one.lane];
    if (due && ON(lanes, one.lane))
      land(b, &one, b->first_warp + w->index, b->launch->now);
    else f->list[left++] = one;
  }
  if (f) f->count = left;
}

void tps_sim_race_copies_begin(race_block *b) {
  for (uint32_t k = 0; b->flights && k < b->block->launch->warps; k++) {
    b->flights[k].count = 0;
    memset(b->flights[k].groups, 0, sizeof b->flights[k].groups);
  }
}

void tps_sim_race_copies_free(race_block *b) {
  for (uint32_t k = 0; b->flights && k < b->block->launch->warps; k++)
    free(b->flights[k].list);
  free(b->flights);
}
