/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch: marks of many cells compared and left at once. Built once
 * for each processor level.
 */
#include "sim/engine_lanes.h"
#include "sim/engine_race.h"

#ifdef __clang__
#define EACH_CELL(n)                                                           \
  _Pragma("clang loop vectorize(assume_safety)") for (unsigned j = 0;          \
                                                      j < (n)->count; j++)
#else
#define EACH_CELL(n)                                                           \
  _Pragma("GCC ivdep") for (unsigned j = 0; j < (n)->count; j++)
#endif

/* Whether a mark is known to the lane of cell j, as far as it can be told by what
 * all lanes know. All ones or 0. */
static inline uint32_t is_known(const cells *n, uint32_t now, uint32_t warp,
                                uint32_t who, unsigned j) {
  uint32_t self = n->lane + (j >> n->per);
  bool early = now < n->least || now < n->acquired;
  bool inside = warp - n->first < n->warps && now < n->all;
  bool own = warp == n->mark.warp &&
             ((who & (MARK_LANE | MARK_SEVERAL)) == self || now < n->together);
  return early | inside | own ? FULL : 0;
}

static inline bool all_known(const cells *n, const marks *m) {
  const uint32_t *now = m->now + n->k, *warp = m->warp + n->k;
  const uint32_t *who = m->who + n->k;
  uint32_t known = FULL;
  EACH_CELL(n) known &= is_known(n, now[j], warp[j], who[j], j);
  return known == FULL;
}

/* Whether the same warp has read at the same time. */
static inline bool is_same(const cells *n, uint32_t now, uint32_t warp) {
  return (warp == n->mark.warp) & (now == n->mark.now);
}

/* What the second list of reads keeps, as leave_read of engine_race_cell.c. */
static inline bool is_kept(const cells *n, mark m, uint32_t older, unsigned j) {
  bool room = (m.warp != n->mark.warp) | (older < n->least);
  return !is_same(n, m.now, m.warp) & room &
         (is_known(n, m.now, m.warp, m.who, j) == 0);
}

static inline void keep_reads(const cells *n) {
  const marks *m = n->chunk->reads;
  const uint32_t *now = m[0].now + n->k, *warp = m[0].warp + n->k;
  const uint32_t *who = m[0].who + n->k;
  uint32_t *older = m[1].now + n->k, *older_warp = m[1].warp + n->k;
  uint32_t *older_who = m[1].who + n->k;
  EACH_CELL(n) {
    mark v = {now[j], warp[j], who[j]};
    bool keep = is_kept(n, v, older[j], j);
    older[j] = keep ? v.now : older[j];
    older_warp[j] = keep ? v.warp : older_warp[j];
    older_who[j] = keep ? v.who : older_who[j];
  }
}

static inline bool any_kept(const cells *n) {
  const marks *m = n->chunk->reads;
  const uint32_t *now = m->now + n->k, *warp = m->warp + n->k;
  const uint32_t *who = m->who + n->k;
  uint32_t any = 0;
  EACH_CELL(n) {
    mark v = {now[j], warp[j], who[j]};
    any |= is_kept(n, v, 0, j) ? FULL : 0;
  }
  return any != 0;
}

static inline void leave_reads(const cells *n) {
  const marks *m = n->chunk->reads;
  uint32_t *now = m->now + n->k, *warp = m->warp + n->k, *who = m->who + n->k;
  EACH_CELL(n) {
    uint32_t self = n->lane + (j >> n->per);
    bool others =
        (((who[j] ^ self) & MARK_LANE) | (who[j] & MARK_SEVERAL)) != 0;
    bool several = is_same(n, now[j], warp[j]) & others;
    now[j] = n->mark.now;
    warp[j] = n->mark.warp;
    who[j] = n->mark.who | self | (several ? MARK_SEVERAL : 0);
  }
}

static inline void leave_marks(const cells *n, const marks *m) {
  uint32_t *now = m->now + n->k, *warp = m->warp + n->k, *who = m->who + n->k;
  EACH_CELL(n) {
    now[j] = n->mark.now;
    warp[j] = n->mark.warp;
    who[j] = n->mark.who | (n->lane + (j >> n->per));
  }
}

race_at_once VARIANT(tps_sim_race_at_once);
bool VARIANT(tps_sim_race_at_once)(const cells *given, bool read) {
  const cells copy = *given, *n = &copy; /* no mark can be in it */
  race_chunk *c = n->chunk;
  if (c->writes.now && !all_known(n, &c->writes)) return false;
  if (read && c->reads[1].now) keep_reads(n);
  else if (read && any_kept(n)) return false; /* there is no second list yet */
  if (read) {
    leave_reads(n);
    return true;
  }
  for (unsigned k = 0; k < 2 && c->reads[k].now; k++)
    if (!all_known(n, &c->reads[k])) return false;
  for (unsigned k = 0; k < 2 && c->reads[k].now; k++)
    memset(c->reads[k].now + n->k, 0, n->count * sizeof(uint32_t));
  leave_marks(n, &c->writes);
  return true;
}
