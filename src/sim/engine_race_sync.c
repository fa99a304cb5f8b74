/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What threads know of each other's accesses, and what teaches them.
 */
#include <stdlib.h>

#include "sim/engine_race.h"

#define EACH_OF(m, l)                                                          \
  for (uint32_t m##_left = (m), l = 0;                                         \
       m##_left && (l = (uint32_t)__builtin_ctz(m##_left), true);              \
       m##_left &= m##_left - 1)

static uint32_t threads_of(const race_block *b) {
  return b->block->launch->warps * LANES;
}

static void raise(uint32_t *p, uint32_t to) {
  if (*p < to) *p = to;
}

static uint32_t most(const uint32_t *v, uint32_t count) {
  uint32_t m = 0;
  for (uint32_t k = 0; k < count; k++) m = v[k] > m ? v[k] : m;
  return m;
}

/* --- knowing ------------------------------------------------------------- */

static bool knows_lane(const race_block *b, uint32_t self, const mark *m) {
  uint32_t lane = self % LANES;
  if ((m->who & (MARK_LANE | MARK_SEVERAL)) == lane) return true;
  if (m->now < b->together[self / LANES]) return true;
  if (!b->lanes) return false;
  /* which others they were is not kept */
  if (m->who & MARK_SEVERAL) return m->now < most(b->lanes[self], LANES);
  return m->now < b->lanes[self][mark_lane(m)];
}

bool tps_sim_race_knows(const race_block *b, uint32_t self, const mark *m) {
  if (m->who & MARK_FLYING) return false;
  if (m->now < b->all_acquired) return true;
  if (b->own_acquired && m->now < b->acquired[self]) return true;
  if (m->who & MARK_TOLD) return false;
  uint32_t warp = m->warp - b->first_warp;
  if (warp >= b->block->launch->warps) return false;
  if (m->now < b->all) return true;
  if (b->warps && m->now < b->warps[self][warp]) return true;
  return warp == self / LANES && knows_lane(b, self, m);
}

/* --- beginning ----------------------------------------------------------- */

void tps_sim_race_begin(race_block *b) {
  size_t threads = threads_of(b);
  b->birth = tps_sim_race_step(b->launch);
  b->first_warp = (uint32_t)(b->block->index * b->block->launch->warps);
  b->all = b->all_acquired = b->all_released = 0;
  b->cluster[0] = b->cluster[1] = 0;
  b->own_acquired = b->own_released = false;
  memset(b->together, 0, sizeof b->together);
  memset(b->arrivals, 0, sizeof b->arrivals);
  memset(b->acquired, 0, threads * sizeof *b->acquired);
  memset(b->released, 0, threads * sizeof *b->released);
  if (b->lanes) memset(b->lanes, 0, threads * sizeof *b->lanes);
  if (b->warps) memset(b->warps, 0, threads * sizeof *b->warps);
  tps_sim_race_copies_begin(b);
}

/* --- releasing and acquiring --------------------------------------------- */

static uint32_t released_by(const race_block *b, uint32_t self) {
  uint32_t own = b->own_released ? b->released[self] : 0;
  return own > b->all_released ? own : b->all_released;
}

void tps_sim_race_acquire(race_block *b, uint32_t self, const release *at) {
  uint32_t thread = b->first_warp * LANES + self;
  uint32_t now = at->thread == thread ? at->others : at->now;
  if (now <= b->all_acquired) return;
  raise(&b->acquired[self], now);
  b->own_acquired = true;
}

static void leave_number(release *at, uint32_t thread, uint32_t now) {
  if (at->thread == thread || at->now == 0) {
    at->thread = thread;
    raise(&at->now, now);
  } else if (now < at->now) {
    raise(&at->others, now);
  } else {
    raise(&at->others, at->now);
    at->now = now;
    at->thread = thread;
  }
}

void tps_sim_race_release(race_block *b, uint32_t self, release *at) {
  uint32_t now = released_by(b, self);
  if (now != 0) leave_number(at, b->first_warp * LANES + self, now);
}

void tps_sim_race_leave(release *at, uint32_t now) {
  leave_number(at, UINT32_MAX, now);
}

static void fence(race_block *b, uint32_t warp, uint32_t lanes) {
  uint32_t now = tps_sim_race_step(b->launch);
  EACH_OF(lanes, l) b->released[warp * LANES + l] = now;
  b->own_released = true;
}

/* --- lanes that meet ----------------------------------------------------- */

/* All of them have from now on what any of them has. */
static void share(uint32_t *list, uint32_t lanes) {
  uint32_t m = 0;
  EACH_OF(lanes, l) m = list[l] > m ? list[l] : m;
  EACH_OF(lanes, k) list[k] = m;
}

static void share_rows(uint32_t (*rows)[LANES], uint32_t lanes) {
  uint32_t m[LANES] = {0};
  EACH_OF(lanes, l)
  for (unsigned k = 0; k < LANES; k++) raise(&m[k], rows[l][k]);
  EACH_OF(lanes, n) memcpy(rows[n], m, sizeof m);
}

/* Some lanes know of one another. Where there is no memory to say so all do. */
static void some_meet(race_block *b, uint32_t first, uint32_t lanes,
                      uint32_t now) {
  if (!b->lanes) b->lanes = calloc(threads_of(b), sizeof *b->lanes);
  if (!b->lanes) {
    b->together[first / LANES] = now;
    return;
  }
  share_rows(b->lanes + first, lanes);
  EACH_OF(lanes, l) EACH_OF(lanes, k) b->lanes[first + l][k] = now;
}

static void meet(race_block *b, const warp *w, uint32_t lanes) {
  uint32_t first = w->index * LANES, now = tps_sim_race_step(b->launch);
  if (b->own_acquired) share(b->acquired + first, lanes);
  if (b->own_released) share(b->released + first, lanes);
  if (b->warps) share_rows(b->warps + first, lanes);
  if ((w->live & ~lanes) == 0) b->together[w->index] = now;
  else some_meet(b, first, lanes, now);
}

/* --- barriers ------------------------------------------------------------ */

static void arrive(race_block *b, const warp *w, uint32_t lanes,
                   arrivals *known) {
  uint32_t first = w->index * LANES;
  EACH_OF(lanes, l) {
    if (b->own_acquired) raise(&known->acquired, b->acquired[first + l]);
    if (b->own_released) raise(&known->released, b->released[first + l]);
    for (unsigned k = 0; b->warps && k < 32; k++)
      raise(&known->warps[k], b->warps[first + l][k]);
  }
  known->warps[w->index] = tps_sim_race_step(b->launch);
}

/* The lanes of a warp that wait at a barrier. */
static uint32_t waiting(const warp *w, unsigned number) {
  uint32_t lanes = 0;
  for (uint32_t k = 0; k < w->group_count; k++)
    if (w->groups[k].state == WAITS && w->groups[k].barrier == number)
      lanes |= w->groups[k].mask;
  return lanes;
}

/* Whether all threads that live wait there; those that have ended count as arrived,
 * but where a number of threads is asked for. */
static bool takes_all(const race_block *b, unsigned number) {
  const struct tps_sim_block *block = b->block;
  uint32_t count = 0;
  for (uint32_t k = 0; k < block->launch->warps; k++)
    count += (uint32_t)__builtin_popcount(waiting(&block->warps[k], number));
  bool counted = block->barriers[number].expected != 0;
  return count == (counted ? block->launch->threads : block->live);
}

static void all_met(race_block *b, const arrivals *known) {
  b->all = tps_sim_race_step(b->launch);
  raise(&b->all_acquired, known->acquired);
  raise(&b->all_released, known->released);
  b->own_acquired = b->own_released = false;
}

static void some_met(race_block *b, unsigned number, const arrivals *known) {
  const struct tps_sim_block *block = b->block;
  if (!b->warps) b->warps = calloc(threads_of(b), sizeof *b->warps);
  if (!b->warps) {
    all_met(b, known);
    return;
  }
  for (uint32_t w = 0; w < block->launch->warps; w++) {
    uint32_t lanes = waiting(&block->warps[w], number);
    EACH_OF(lanes, l) {
      uint32_t t = w * LANES + l;
      raise(&b->acquired[t], known->acquired);
      raise(&b->released[t], known->released);
      for (unsigned k = 0; k < 32; k++) raise(&b->warps[t][k], known->warps[k]);
    }
  }
  b->own_acquired |= known->acquired != 0;
  b->own_released |= known->released != 0;
  tps_sim_race_step(b->launch);
}

static void let_go(race_block *b, unsigned number) {
  arrivals *known = &b->arrivals[number];
  if (takes_all(b, number)) all_met(b, known);
  else some_met(b, number, known);
  memset(known, 0, sizeof *known);
}

/* --- clusters ------------------------------------------------------------ */

/* Who arrives in the next phase already says nothing to those who wait for this
 * one. */
static void at_cluster(race_block *b, const warp *w, uint32_t lanes,
                       bool arrives) {
  const cluster *c = b->block->cluster;
  uint32_t *latest = tps_sim_race_of(b, c->blocks[0])->cluster;
  if (arrives) {
    latest[c->phase] = tps_sim_race_step(b->launch);
    return;
  }
  EACH_OF(lanes, l)
  raise(&b->acquired[w->index * LANES + l], latest[w->cluster_phase >> l & 1]);
  b->own_acquired = true;
}

void tps_sim_race_sync(race_block *b, engine *e, watch_sync what,
                       uint32_t lanes, unsigned number) {
  const warp *w = e->warp;
  switch (what) {
  case SYNC_WARP: meet(b, w, lanes); break;
  case SYNC_ARRIVE: arrive(b, w, lanes, &b->arrivals[number]); break;
  case SYNC_RELEASE: let_go(b, number); break;
  case SYNC_FENCE: fence(b, w->index, lanes); break;
  case SYNC_CLUSTER_ARRIVE:
  case SYNC_CLUSTER_WAIT:
    at_cluster(b, w, lanes, what == SYNC_CLUSTER_ARRIVE);
    break;
  case SYNC_COPIES_GROUP:
  case SYNC_BULK_GROUP:
    tps_sim_race_group(b, w, lanes, what == SYNC_BULK_GROUP);
    break;
  case SYNC_COPIES_WAIT:
  case SYNC_BULK_WAIT:
  case SYNC_BULK_WAIT_READ: tps_sim_race_land(b, w, lanes, what, number); break;
  }
}
