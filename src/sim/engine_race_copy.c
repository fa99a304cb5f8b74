/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch: asynchronous copies, from their issue to the wait for them.
 */
#include <stdlib.h>

#include "sim/engine_race.h"

#define ON(mask, l) (((mask) >> (l)) & 1)

/* --- issuing ------------------------------------------------------------- */

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

bool tps_sim_race_issue(race_block *b, const touch *t, race_memory *m) {
  unsigned lane = (unsigned)__builtin_ctz(t->lanes);
  if (!b->flights)
    b->flights = calloc(b->block->launch->warps, sizeof *b->flights);
  flights *f = flights_of(b, t->e->warp);
  if (!f || !make_room(f)) return false;
  bool bulk = t->i->op == H_async_bulk;
  f->list[f->count++] =
      (flight){.memory = m,
               .at = t->at[lane],
               .bytes = (uint32_t)t->bytes,
               .now = b->launch->now,
               .group = (bulk ? f->bulk_groups : f->groups)[lane],
               .object = t->object,
               .lane = (uint8_t)lane,
               .bulk = bulk,
               .reads = t->kind == WATCH_LOAD};
  if (t->object) f->told++;
  return true;
}

void tps_sim_race_group(race_block *b, const warp *w, uint32_t lanes,
                        bool bulk) {
  flights *f = flights_of(b, w);
  if (!f) return;
  uint32_t *groups = bulk ? f->bulk_groups : f->groups;
  for (unsigned l = 0; l < LANES; l++)
    if (ON(lanes, l)) groups[l]++;
  tps_sim_race_step(b->launch); /* what follows is told from what was before */
}

/* What has an mbarrier already has another one, too. */
void tps_sim_race_attach(race_block *b, const warp *w, unsigned lane,
                         const void *object) {
  flights *f = flights_of(b, w);
  for (uint32_t k = 0, count = f ? f->count : 0; k < count; k++) {
    flight *one = &f->list[k], other = *one;
    if (one->lane != lane || one->bulk || one->landed || one->again ||
        one->object == object)
      continue;
    if (other.object) {
      if (!make_room(f)) return;
      other.again = true;
      other.over = false;
      one = &f->list[f->count++];
      *one = other;
    }
    one->object = object;
    f->told++;
  }
}

/* --- landing ------------------------------------------------------------- */

/* A flight's mark, if no other has taken its place: an access of the thread now, or
 * one that an mbarrier tells. */
static void land_mark(const flight *f, uint32_t warp, uint32_t now, mark *m) {
  if (!(m->who & MARK_FLYING) || m->warp != warp || m->now != f->now ||
      mark_lane(m) != f->lane)
    return;
  m->who &= ~(uint32_t)MARK_FLYING;
  if (f->object) m->who |= MARK_TOLD;
  m->now = now;
}

static void land_in(const flight *f, uint32_t warp, uint32_t now,
                    const marks *list, unsigned k) {
  if (!list->now) return;
  mark m = mark_at(list, k);
  land_mark(f, warp, now, &m);
  mark_put(list, k, m);
}

static void land(const flight *f, uint32_t warp, uint32_t now) {
  uint64_t end = f->at + f->bytes;
  for (uint64_t at = f->at, next; at < end; at = next) {
    race_chunk *c = f->memory->chunks[at / RACE_CHUNK];
    next = (at / RACE_CHUNK + 1) * RACE_CHUNK;
    if (next > end) next = end;
    if (!c) continue;
    unsigned k = (unsigned)(at % RACE_CHUNK) >> c->shift;
    unsigned last = (unsigned)((next - 1) % RACE_CHUNK) >> c->shift;
    for (; k <= last; k++) {
      if (!f->reads) land_in(f, warp, now, &c->writes, k);
      if (!f->reads && c->strong) land_mark(f, warp, now, &c->strong[k].write);
      for (unsigned n = 0; f->reads && n < 2; n++)
        land_in(f, warp, now, &c->reads[n], k);
    }
  }
}

/* Those that are due land; returns whether there were any. */
static bool land_all(race_block *b, uint32_t w, const void *what,
                     bool due(const flights *f, const flight *one,
                              const void *what)) {
  flights *f = &b->flights[w];
  uint32_t left = 0, count = f->count;
  for (uint32_t k = 0; k < count; k++) {
    flight one = f->list[k];
    if (!due(f, &one, what)) {
      f->list[left++] = one;
      continue;
    }
    if (!one.landed) land(&one, b->first_warp + w, b->launch->now);
    if (one.object) f->told--;
    if (one.object && !one.bulk) f->landed[one.lane] = b->launch->now + 1;
  }
  f->count = left;
  return left < count;
}

/* --- groups -------------------------------------------------------------- */

typedef struct group_wait {
  uint32_t lanes, kept;
  watch_sync what;
} group_wait;

static bool is_in_groups(const flights *f, const flight *one,
                         const group_wait *w) {
  bool bulk = w->what != SYNC_COPIES_WAIT;
  if (!ON(w->lanes, one->lane) || one->bulk != bulk || (bulk && one->object) ||
      (w->what == SYNC_BULK_WAIT_READ && !one->reads))
    return false;
  const uint32_t *groups = bulk ? f->bulk_groups : f->groups;
  return w->kept == UINT32_MAX ||
         (uint64_t)one->group + w->kept < groups[one->lane];
}

/* What an mbarrier would tell besides may have been waited for by either. */
static void land_told(race_block *b, uint32_t w, const group_wait *wait) {
  flights *f = &b->flights[w];
  for (uint32_t k = 0; f->told && k < f->count; k++) {
    flight *one = &f->list[k];
    if (!one->object || one->landed || !is_in_groups(f, one, wait)) continue;
    land(one, b->first_warp + w, b->launch->now);
    one->landed = true;
    f->landed[one->lane] = b->launch->now + 1;
  }
}

static bool is_due(const flights *f, const flight *one, const void *wait) {
  return !one->object && is_in_groups(f, one, wait);
}

void tps_sim_race_land(race_block *b, const warp *w, uint32_t lanes,
                       watch_sync what, uint32_t kept) {
  group_wait wait = {lanes, kept, what};
  const flights *f = flights_of(b, w);
  uint32_t *acquired = &b->acquired[w->index * LANES];
  if (!f) return;
  land_told(b, w->index, &wait);
  land_all(b, w->index, &wait, is_due);
  for (unsigned l = 0; what == SYNC_COPIES_WAIT && l < LANES; l++)
    if (ON(lanes, l) && f->landed[l] > acquired[l]) {
      acquired[l] = f->landed[l];
      b->own_acquired = true;
    }
}

/* --- mbarriers ----------------------------------------------------------- */

static bool is_told(const flights *f, const flight *one, const void *object) {
  (void)f;
  return one->object == object && one->over;
}

void tps_sim_race_phase(race_block *b, const void *object) {
  const cluster *c = b->block->cluster;
  for (uint32_t k = 0; k < c->count; k++) {
    const race_block *other = tps_sim_race_of(b, c->blocks[k]);
    for (uint32_t w = 0; other->flights && w < other->block->launch->warps;
         w++) {
      flights *f = &other->flights[w];
      for (uint32_t n = 0; f->told && n < f->count; n++)
        if (f->list[n].object == object) f->list[n].over = true;
    }
  }
}

uint32_t tps_sim_race_told(race_block *b, const void *object) {
  const cluster *c = b->block->cluster;
  bool some = false;
  for (uint32_t k = 0; k < c->count; k++) {
    race_block *other = tps_sim_race_of(b, c->blocks[k]);
    for (uint32_t w = 0; other->flights && w < other->block->launch->warps; w++)
      if (other->flights[w].told) some |= land_all(other, w, object, is_told);
  }
  return some ? tps_sim_race_step(b->launch) : 0;
}

/* --- a block ------------------------------------------------------------- */

void tps_sim_race_copies_begin(race_block *b) {
  for (uint32_t k = 0; b->flights && k < b->block->launch->warps; k++) {
    flights *f = &b->flights[k];
    flight *list = f->list;
    uint32_t capacity = f->capacity;
    *f = (flights){.list = list, .capacity = capacity};
  }
}

void tps_sim_race_copies_free(race_block *b) {
  for (uint32_t k = 0; b->flights && k < b->block->launch->warps; k++)
    free(b->flights[k].list);
  free(b->flights);
}
