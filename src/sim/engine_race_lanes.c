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

/* Truth as 0 or 1, without branches. */
typedef uint32_t truth;
static inline truth same(uint32_t a, uint32_t b) { return a == b ? 1 : 0; }
static inline truth less(uint32_t a, uint32_t b) { return a < b ? 1 : 0; }

/* Functions are made twice: launches without asynchronous copies don't pay for
 * those. */
#define MADE_TWICE static inline __attribute__((always_inline))

MADE_TWICE truth flies(uint32_t who, bool copies) {
  return copies ? 1 ^ same(who & MARK_FLYING, 0) : 0;
}

/* Whether a mark is known to the lane of cell j, as far as it can be told by what
 * all lanes know. */
MADE_TWICE truth is_known(const cells *n, mark m, unsigned j, bool copies) {
  uint32_t self = n->lane + (j >> n->per);
  truth inside = less(m.warp - n->first, n->warps) & less(m.now, n->all);
  truth met =
      same(m.who & (MARK_LANE | MARK_SEVERAL), self) | less(m.now, n->together);
  truth own = inside | (same(m.warp, n->mark.warp) & met);
  truth acquired = less(m.now, n->acquired);
  if (copies) {
    own &= same(m.who & (MARK_FLYING | MARK_TOLD), 0);
    acquired &= same(m.who & MARK_FLYING, 0);
  }
  return less(m.now, n->least) | acquired | own;
}

MADE_TWICE bool all_known(const cells *n, const marks *m, bool copies) {
  const uint32_t *now = m->now + n->k, *warp = m->warp + n->k;
  const uint32_t *who = m->who + n->k;
  truth known = 1;
  EACH_CELL(n) {
    mark v = {now[j], warp[j], who[j]};
    known &= is_known(n, v, j, copies);
  }
  return known != 0;
}

/* Whether the same warp has read at the same time. */
MADE_TWICE truth is_same(const cells *n, mark m, bool copies) {
  return same(m.warp, n->mark.warp) & same(m.now, n->mark.now) &
         (1 ^ flies(m.who, copies));
}

/* What the second list of reads keeps, as leave_read of engine_race_cell.c. */
MADE_TWICE truth is_kept(const cells *n, mark m, uint32_t older,
                         uint32_t older_who, unsigned j, bool copies) {
  truth taken = 1 ^ less(older, n->least), flying = flies(m.who, copies);
  truth full = taken & ((same(m.warp, n->mark.warp) & (1 ^ flying)) |
                        flies(older_who, copies));
  return 1 ^ (is_same(n, m, copies) | full | is_known(n, m, j, copies));
}

MADE_TWICE void keep_reads(const cells *n, bool copies) {
  const marks *m = n->chunk->reads;
  const uint32_t *now = m[0].now + n->k, *warp = m[0].warp + n->k;
  const uint32_t *who = m[0].who + n->k;
  uint32_t *older = m[1].now + n->k, *older_warp = m[1].warp + n->k;
  uint32_t *older_who = m[1].who + n->k;
  EACH_CELL(n) {
    mark v = {now[j], warp[j], who[j]};
    truth keep = is_kept(n, v, older[j], older_who[j], j, copies);
    older[j] = keep ? v.now : older[j];
    older_warp[j] = keep ? v.warp : older_warp[j];
    older_who[j] = keep ? v.who : older_who[j];
  }
}

MADE_TWICE bool any_kept(const cells *n, bool copies) {
  const marks *m = n->chunk->reads;
  const uint32_t *now = m->now + n->k, *warp = m->warp + n->k;
  const uint32_t *who = m->who + n->k;
  truth any = 0;
  EACH_CELL(n) {
    mark v = {now[j], warp[j], who[j]};
    any |= is_kept(n, v, 0, 0, j, copies);
  }
  return any != 0;
}

MADE_TWICE void leave_reads(const cells *n, bool copies) {
  const marks *m = n->chunk->reads;
  uint32_t *now = m->now + n->k, *warp = m->warp + n->k, *who = m->who + n->k;
  EACH_CELL(n) {
    uint32_t self = n->lane + (j >> n->per);
    truth alone = same(who[j] & (MARK_LANE | MARK_SEVERAL), self);
    mark v = {now[j], warp[j], who[j]};
    truth several = is_same(n, v, copies) & (1 ^ alone);
    now[j] = n->mark.now;
    warp[j] = n->mark.warp;
    who[j] = n->mark.who | self | several * MARK_SEVERAL;
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

MADE_TWICE bool at_once(const cells *n, bool read, bool copies) {
  race_chunk *c = n->chunk;
  if (c->writes.now && !all_known(n, &c->writes, copies)) return false;
  if (read && c->reads[1].now) keep_reads(n, copies);
  else if (read && any_kept(n, copies))
    return false; /* there is no second list yet */
  if (read) {
    leave_reads(n, copies);
    return true;
  }
  for (unsigned k = 0; k < 2 && c->reads[k].now; k++)
    if (!all_known(n, &c->reads[k], copies)) return false;
  for (unsigned k = 0; k < 2 && c->reads[k].now; k++)
    memset(c->reads[k].now + n->k, 0, n->count * sizeof(uint32_t));
  leave_marks(n, &c->writes);
  return true;
}

race_at_once VARIANT(tps_sim_race_at_once);
bool VARIANT(tps_sim_race_at_once)(const cells *given, bool read) {
  const cells n = *given; /* no mark can be in it */
  return n.copies ? at_once(&n, read, true) : at_once(&n, read, false);
}
