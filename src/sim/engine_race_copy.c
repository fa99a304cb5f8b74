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

/* Room for one more in a list of `count`. */
static bool make_room(void **list, size_t size, uint32_t count,
                      uint32_t *capacity) {
  if (count < *capacity) return true;
  uint32_t more = *capacity ? 2 * *capacity : 64;
  void *wider = realloc(*list, more * size);
  if (!wider) return false;
  *list = wider;
  *capacity = more;
  return true;
}

bool tps_sim_race_issue(race_block *b, const touch *t, race_memory *m) {
  unsigned lane = (unsigned)__builtin_ctz(t->lanes);
  if (!b->flights)
    b->flights = calloc(b->block->launch->warps, sizeof *b->flights);
  flights *f = flights_of(b, t->e->warp);
  void *list = f ? f->list : NULL;
  if (!f || !make_room(&list, sizeof *f->list, f->count, &f->capacity))
    return false;
  f->list = list;
  bool bulk = t->i->op == H_async_bulk;
  f->list[f->count++] =
      (flight){.memory = m,
               .at = t->at[lane],
               .bytes = (uint32_t)t->bytes,
               .now = b->launch->now,
               .group = (bulk ? f->bulk_groups : f->groups)[lane],
               .number = f->number++,
               .object = t->object,
               .lane = (uint8_t)lane,
               .bulk = bulk,
               .reads = t->kind == WATCH_LOAD};
  if (t->object) f->bulk_told++;
  b->launch->copies = true;
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

/* Without memory the copies stay on their way until their thread waits for them, or
 * for ever; better to call them done. */
void tps_sim_race_promise(race_block *b, const warp *w, uint32_t lanes,
                          const void *object) {
  flights *f = flights_of(b, w);
  if (!f || f->count == 0) return;
  void *list = f->promises;
  if (!make_room(&list, sizeof *f->promises, f->promise_count,
                 &f->promise_capacity)) {
    tps_sim_race_land(b, w, lanes, SYNC_COPIES_WAIT, UINT32_MAX);
    return;
  }
  f->promises = list;
  f->promises[f->promise_count++] =
      (promise){.object = object, .lanes = lanes, .number = f->number};
}

/* --- landing ------------------------------------------------------------- */

/* Where a flight's marks go: they become accesses of its thread, or, `told`, what an
 * mbarrier tells of, at the time `now`. */
typedef struct landing {
  uint32_t warp, now;
  bool told;
} landing;

/* A flight's mark, if no other has taken its place. */
static void land_mark(const flight *f, landing to, mark *m) {
  if (!(m->who & MARK_FLYING) || m->warp != to.warp || m->now != f->now ||
      mark_lane(m) != f->lane)
    return;
  m->who &= ~(uint32_t)MARK_FLYING;
  if (to.told) m->who |= MARK_TOLD;
  m->now = to.now;
}

static void land_in(const flight *f, landing to, const marks *list,
                    unsigned k) {
  if (!list->now) return;
  mark m = mark_at(list, k);
  land_mark(f, to, &m);
  mark_put(list, k, m);
}

static void land_cell(const flight *f, landing to, race_chunk *c, unsigned k) {
  if (f->reads) {
    land_in(f, to, &c->reads[0], k);
    land_in(f, to, &c->reads[1], k);
    return;
  }
  land_in(f, to, &c->writes, k);
  if (c->strong) land_mark(f, to, &c->strong[k].write);
}

static void land(const flight *f, landing to) {
  uint64_t end = f->at + f->bytes;
  for (uint64_t at = f->at, next; at < end; at = next) {
    race_chunk *c = f->memory->chunks[at / RACE_CHUNK];
    next = (at / RACE_CHUNK + 1) * RACE_CHUNK;
    if (next > end) next = end;
    if (!c) continue;
    unsigned k = (unsigned)(at % RACE_CHUNK) >> c->shift;
    unsigned last = (unsigned)((next - 1) % RACE_CHUNK) >> c->shift;
    for (; k <= last; k++) land_cell(f, to, c, k);
  }
}

/* --- groups -------------------------------------------------------------- */

typedef struct group_wait {
  uint32_t lanes, kept;
  watch_sync what;
} group_wait;

static bool is_due(const flights *f, const flight *one, const group_wait *w) {
  bool bulk = w->what != SYNC_COPIES_WAIT;
  if (!ON(w->lanes, one->lane) || one->bulk != bulk || one->object ||
      (w->what == SYNC_BULK_WAIT_READ && !one->reads))
    return false;
  const uint32_t *groups = bulk ? f->bulk_groups : f->groups;
  return w->kept == UINT32_MAX ||
         (uint64_t)one->group + w->kept < groups[one->lane];
}

static bool is_promised(const flights *f, const flight *one) {
  for (uint32_t k = 0; !one->bulk && k < f->promise_count; k++)
    if (ON(f->promises[k].lanes, one->lane) &&
        one->number < f->promises[k].number)
      return true;
  return false;
}

/* The threads know of what an mbarrier has told others. */
static void learn(race_block *b, const warp *w, const flights *f,
                  uint32_t lanes) {
  uint32_t *acquired = &b->acquired[w->index * LANES];
  for (unsigned l = 0; l < LANES; l++)
    if (ON(lanes, l) && f->landed[l] > acquired[l]) {
      acquired[l] = f->landed[l];
      b->own_acquired = true;
    }
}

/* What an mbarrier will tell besides is not the thread's own. */
void tps_sim_race_land(race_block *b, const warp *w, uint32_t lanes,
                       watch_sync what, uint32_t kept) {
  group_wait wait = {lanes, kept, what};
  landing to = {b->first_warp + w->index, b->launch->now, false};
  flights *f = flights_of(b, w);
  uint32_t left = 0;
  for (uint32_t k = 0; f && k < f->count; k++) {
    flight one = f->list[k];
    if (!is_due(f, &one, &wait)) {
      f->list[left++] = one;
      continue;
    }
    to.told = is_promised(f, &one);
    if (to.told) f->landed[one.lane] = to.now + 1;
    land(&one, to);
  }
  if (!f) return;
  f->count = left;
  if (what == SYNC_COPIES_WAIT) learn(b, w, f, lanes);
}

/* --- mbarriers ----------------------------------------------------------- */

/* Calls for each warp of the cluster that waits for mbarriers; whether any call was
 * true. */
static bool each_warp(const race_block *b, const void *object,
                      bool call(race_block *b, uint32_t w,
                                const void *object)) {
  const cluster *c = b->block->cluster;
  bool some = false;
  for (uint32_t k = 0; k < c->count; k++) {
    race_block *other = tps_sim_race_of(b, c->blocks[k]);
    uint32_t warps = other->flights ? other->block->launch->warps : 0;
    for (uint32_t w = 0; w < warps; w++) {
      const flights *f = &other->flights[w];
      if (f->promise_count || f->bulk_told) some |= call(other, w, object);
    }
  }
  return some;
}

static bool end_phase(race_block *b, uint32_t w, const void *object) {
  flights *f = &b->flights[w];
  for (uint32_t k = 0; k < f->promise_count; k++)
    if (f->promises[k].object == object) f->promises[k].over = true;
  for (uint32_t k = 0; f->bulk_told && k < f->count; k++)
    if (f->list[k].object == object) f->list[k].over = true;
  return true;
}

void tps_sim_race_phase(race_block *b, const void *object) {
  each_warp(b, object, end_phase);
}

/* Takes out the promises that are kept; adds up which lanes' copies before which
 * numbers have ended. */
static bool keep_promises(flights *f, const void *object,
                          uint32_t numbers[LANES]) {
  uint32_t left = 0, count = f->promise_count;
  for (uint32_t k = 0; k < count; k++) {
    promise p = f->promises[k];
    if (p.object != object || !p.over) {
      f->promises[left++] = p;
      continue;
    }
    for (unsigned l = 0; l < LANES; l++)
      if (ON(p.lanes, l) && numbers[l] < p.number) numbers[l] = p.number;
  }
  f->promise_count = left;
  return left < count;
}

static bool land_told(race_block *b, uint32_t w, const void *object) {
  flights *f = &b->flights[w];
  landing to = {b->first_warp + w, b->launch->now, true};
  uint32_t numbers[LANES] = {0}, left = 0;
  bool some = keep_promises(f, object, numbers);
  if (!some && !f->bulk_told) return false;
  for (uint32_t k = 0; k < f->count; k++) {
    flight one = f->list[k];
    bool small = !one.bulk && one.number < numbers[one.lane];
    bool told = one.object == object && one.over;
    if (!small && !told) {
      f->list[left++] = one;
      continue;
    }
    land(&one, to);
    if (small) f->landed[one.lane] = to.now + 1;
    else f->bulk_told--;
    some = true;
  }
  f->count = left;
  return some;
}

uint32_t tps_sim_race_told(race_block *b, const void *object) {
  bool some = each_warp(b, object, land_told);
  return some ? tps_sim_race_step(b->launch) : 0;
}

/* --- a block ------------------------------------------------------------- */

void tps_sim_race_copies_begin(race_block *b) {
  for (uint32_t k = 0; b->flights && k < b->block->launch->warps; k++) {
    flights *f = &b->flights[k], old = *f;
    *f = (flights){.list = old.list,
                   .capacity = old.capacity,
                   .promises = old.promises,
                   .promise_capacity = old.promise_capacity};
  }
}

void tps_sim_race_copies_free(race_block *b) {
  for (uint32_t k = 0; b->flights && k < b->block->launch->warps; k++) {
    free(b->flights[k].list);
    free(b->flights[k].promises);
  }
  free(b->flights);
}
