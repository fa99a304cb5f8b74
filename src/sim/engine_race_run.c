/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch: the lanes of a warp. Lanes whose bytes follow one another
 * are taken together: when all that their cells have seen is plainly known to
 * them, which is nearly always, marks are compared and left for all at once.
 * Anything else goes cell by cell.
 */
#include "sim/engine_lanes.h"
#include "sim/engine_race.h"

/* --- many cells at once -------------------------------------------------- */

static cells common(const visit *v, race_chunk *c, unsigned lane,
                    unsigned per) {
  const race_block *b = v->b;
  uint32_t warp = v->mark.warp - b->first_warp;
  return (cells){.chunk = c,
                 .mark = v->mark,
                 .lane = lane,
                 .per = per,
                 .least = v->least,
                 .acquired = b->all_acquired,
                 .all = b->all,
                 .first = b->first_warp,
                 .warps = b->block->launch->warps,
                 .together = b->together[warp],
                 .copies = b->launch->copies};
}

/* --- cell by cell -------------------------------------------------------- */

static void set_lane(visit *v, unsigned lane) {
  v->mark.who = (v->mark.who & ~(uint32_t)MARK_LANE) | lane;
  v->self = v->t->e->warp->index * LANES + lane;
}

static void visit_cells(visit *v, race_memory *m, uint64_t at, uint64_t end,
                        bool fine) {
  while (at < end) {
    uint64_t base = at & ~(uint64_t)(RACE_CHUNK - 1);
    uint64_t stop = base + RACE_CHUNK < end ? base + RACE_CHUNK : end;
    race_chunk *c =
        at < m->size ? tps_sim_race_chunk(v->r, m, at, v->t, fine) : NULL;
    unsigned shift = c ? c->shift : 0;
    unsigned k = (unsigned)(at - base) >> shift;
    unsigned last = (unsigned)(stop - 1 - base) >> shift;
    v->bytes = 1u << shift;
    if (c && v->strong) tps_sim_race_order(v, c, k);
    for (; c && k <= last; k++) {
      v->at = base + ((uint64_t)k << shift);
      tps_sim_race_visit(v, c, k);
    }
    at = stop;
  }
}

/* An atomic byte, by the word that holds it: what a swap leaves as it is, and what
 * a load reads besides, is not meant. */
static void visit_part(visit *v, race_memory *m, unsigned lane) {
  const touch *t = v->t;
  bool swaps = t->kind == WATCH_UPDATE;
  uint32_t old = swaps ? row32(t->e, t->i->b)[lane] : 0;
  uint32_t new = swaps ? row32(t->e, t->i->c)[lane] : 0;
  for (unsigned k = 0; k < 4 && t->at[lane] + k < m->size; k++) {
    uint64_t at = t->at[lane] + k;
    race_chunk *c = tps_sim_race_chunk(v->r, m, at, t, true);
    if (c) tps_sim_race_order(v, c, at % RACE_CHUNK);
    if ((old ^ new) >> 8 * k & 255) visit_cells(v, m, at, at + 1, true);
  }
}

/* --- runs of lanes ------------------------------------------------------- */

static bool is_power(uint64_t n) { return (n & (n - 1)) == 0; }

/* Lanes from `lane` to before `end`, their bytes one behind the other. */
static void visit_run(visit *v, race_memory *m, unsigned lane, unsigned end,
                      bool fine) {
  const touch *t = v->t;
  uint64_t at = t->at[lane], all = (end - lane) * t->bytes;
  bool inside = at % RACE_CHUNK + all <= RACE_CHUNK && at < m->size;
  if (end - lane > 1 && inside && !v->strong && is_power(t->bytes)) {
    race_chunk *c = tps_sim_race_chunk(v->r, m, at, t, fine);
    if (!c) return;
    unsigned per = (unsigned)__builtin_ctzll(t->bytes) - c->shift;
    v->mark.who &= ~(uint32_t)MARK_LANE;
    cells n = common(v, c, lane, per);
    n.k = (unsigned)(at % RACE_CHUNK) >> c->shift;
    n.count = (unsigned)all >> c->shift;
    if (!c->strong && tps_sim_race_at_once(&n, t->kind == WATCH_LOAD)) return;
  }
  for (; lane < end; lane++) {
    set_lane(v, lane);
    visit_cells(v, m, t->at[lane], t->at[lane] + t->bytes, fine);
  }
}

/* Lanes that read one place plainly; one that has not written it itself stands for
 * all. */
static void visit_equal(visit *v, race_memory *m, uint32_t lanes, bool fine) {
  const touch *t = v->t;
  unsigned lane = (unsigned)__builtin_ctz(lanes);
  const race_chunk *c =
      t->at[lane] < m->size ? m->chunks[t->at[lane] / RACE_CHUNK] : NULL;
  if (c && c->writes.now) {
    mark w = mark_at(&c->writes, t->at[lane] % RACE_CHUNK >> c->shift);
    if (w.now && w.warp == v->mark.warp && mark_lane(&w) == lane)
      lane = 31u - (unsigned)__builtin_clz(lanes);
  }
  set_lane(v, lane);
  v->mark.who |= MARK_SEVERAL;
  visit_cells(v, m, t->at[lane], t->at[lane] + t->bytes, fine);
  v->mark.who &= ~(uint32_t)MARK_SEVERAL;
}

/* How many lanes from `lane` on, all of the mask, are `step` bytes apart. */
static unsigned end_of_run(const touch *t, unsigned lane, uint64_t step) {
  unsigned end = lane + 1;
  while (end < LANES && ON(t->lanes, end) &&
         t->at[end] == t->at[end - 1] + step)
    end++;
  return end;
}

static const watch_site *site_of(const touch *t) {
  const struct tps_sim_kernel *kernel = t->e->launch->kernel;
  return &kernel->sites[t->i - kernel->insns];
}

/* A run of lanes is as small as its smallest access wants the cells. */
static bool wants_fine(const touch *t, unsigned lane) {
  return t->bytes % 4 != 0 || t->at[lane] % 4 != 0;
}

void tps_sim_race_run(visit *v, race_memory *m) {
  const touch *t = v->t;
  bool part = site_of(t)->part;
  if (t->run && !part) {
    visit_run(v, m, 0, LANES, wants_fine(t, 0));
    return;
  }
  for (uint32_t left = t->lanes; left != 0;) {
    unsigned lane = (unsigned)__builtin_ctz(left);
    unsigned end = lane + 1, equal = end;
    if (part) {
      set_lane(v, lane);
      visit_part(v, m, lane);
    } else {
      if (t->kind == WATCH_LOAD && !v->strong) equal = end_of_run(t, lane, 0);
      uint32_t lanes = (equal < 32 ? 1u << equal : 0) - (1u << lane);
      if (equal > end) visit_equal(v, m, lanes, wants_fine(t, lane));
      else if ((end = end_of_run(t, lane, t->bytes)) > lane)
        visit_run(v, m, lane, end, wants_fine(t, lane));
      if (equal > end) end = equal;
    }
    left &= end < 32 ? FULL << end : 0;
  }
}
