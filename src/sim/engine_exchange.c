/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Operations in which the lanes of a warp read each other's values: shfl,
 * vote, match, redux, elect, and bar.warp.sync. A group that holds all live
 * lanes of the member mask executes at once. Otherwise its lanes are parked
 * under the operation and the mask, not under the place in the code, until all
 * are there: both arms of a branch may hold a copy of one operation.
 *
 * Operands: a value, b and c, the second result e, members f; imm the mode.
 */
#include "sim/engine_fragment.h"
#include "sim/engine_synccheck.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define ON(mask, l) ((mask) >> (l)&1)
#define NO_OPERAND UINT32_MAX

/* What takes part: operand rows, then results. Values of 32 bits are in v32. */
typedef struct meeting {
  uint32_t lanes;
  uint32_t v32[LANES], b[LANES], c[LANES];
  uint64_t v64[LANES];
  uint32_t predicate; /* of vote */
  uint32_t result[LANES];
  uint32_t flags; /* second result, or a predicate result */
} meeting;

/* --- the operations ------------------------------------------------------ */

/* mode: 0 idx, 1 up, 2 down, 3 bfly */
static void shuffle(meeting *m, int64_t mode) {
  m->flags = 0;
  for (int l = 0; l < (int)LANES; l++) {
    int b = (int)(m->b[l] & 31), clamp = (int)(m->c[l] & 31);
    int segment = (int)(m->c[l] >> 8 & 31);
    int least = l & segment, most = least | (clamp & ~segment), j;
    bool in;
    switch (mode) {
    case 0: j = least | (b & ~segment), in = j <= most; break;
    case 1: j = l - b, in = j >= most; break;
    case 2: j = l + b, in = j <= most; break;
    default: j = l ^ b, in = j <= most; break;
    }
    m->result[l] = m->v32[in ? j & 31 : l];
    m->flags |= (uint32_t)in << l;
  }
}

/* mode: 0 all, 1 any, 2 uni, 3 ballot */
static void vote(meeting *m, int64_t mode) {
  uint32_t p = m->predicate & m->lanes;
  bool yes = mode == 0   ? p == m->lanes
             : mode == 1 ? p != 0
                         : p == 0 || p == m->lanes;
  m->flags = yes ? FULL : 0;
  for (unsigned l = 0; l < LANES; l++) m->result[l] = p;
}

/* mode: 0 any, 1 all; + 2 for 64-bit values */
static void match(meeting *m, int64_t mode) {
  bool wide = mode & 2;
  m->flags = 0;
  for (unsigned l = 0; l < LANES; l++) {
    uint32_t equal = 0;
    for (unsigned k = 0; k < LANES; k++) {
      bool same = wide ? m->v64[k] == m->v64[l] : m->v32[k] == m->v32[l];
      equal |= (uint32_t)same << k;
    }
    equal &= m->lanes;
    bool all = equal == m->lanes;
    m->result[l] = mode & 1 ? (all ? m->lanes : 0) : equal;
    m->flags |= (uint32_t)all << l;
  }
}

/* mode: 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor; + 8 signed */
static uint32_t reduce_pair(uint32_t x, uint32_t y, int64_t mode) {
  bool less = mode & 8 ? (int32_t)x < (int32_t)y : x < y;
  switch (mode & 7) {
  case 0: return x + y;
  case 1: return less ? x : y;
  case 2: return less ? y : x;
  case 3: return x & y;
  case 4: return x | y;
  default: return x ^ y;
  }
}
static void reduce(meeting *m, int64_t mode) {
  uint32_t left = m->lanes;
  uint32_t r = m->v32[__builtin_ctz(left)];
  for (left &= left - 1; left; left &= left - 1)
    r = reduce_pair(r, m->v32[__builtin_ctz(left)], mode);
  for (unsigned l = 0; l < LANES; l++) m->result[l] = r;
}

static void elect(meeting *m) {
  uint32_t leader = (uint32_t)__builtin_ctz(m->lanes);
  m->flags = 1u << leader;
  for (unsigned l = 0; l < LANES; l++) m->result[l] = leader;
}

/* --- getting there and back ---------------------------------------------- */

static void take(uint32_t *to, const uint32_t *from, uint32_t lanes) {
  if (lanes == FULL) {
    memcpy(to, from, ROW32);
    return;
  }
  for (unsigned l = 0; l < LANES; l++) to[l] = ON(lanes, l) ? from[l] : to[l];
}

/* Adds the sources of some lanes. */
static void join(engine *e, meeting *m, const insn *i, const frame *f,
                 uint32_t lanes) {
  switch (i->op) {
  case H_shfl:
    take(m->b, row_of(e, f, i->b), lanes);
    take(m->c, row_of(e, f, i->c), lanes);
    take(m->v32, row_of(e, f, i->a), lanes);
    break;
  case H_vote: {
    const uint32_t *p = row_of(e, f, i->a);
    m->predicate = (m->predicate & ~lanes) | (*p & lanes);
    break;
  }
  case H_match:
    if (i->imm & 2) {
      const uint64_t *v = row_of(e, f, i->a);
      for (unsigned l = 0; l < LANES; l++)
        if (ON(lanes, l)) m->v64[l] = v[l];
      break;
    } /* fall through */
  case H_redux: take(m->v32, row_of(e, f, i->a), lanes); break;
  default: break;
  }
}

static void give(engine *e, const meeting *m, const insn *i, const frame *f,
                 uint32_t lanes) {
  bool to_predicate = i->op == H_vote && (i->imm & 3) != 3;
  if (i->d != NO_OPERAND && !to_predicate)
    take(row_of(e, f, i->d), m->result, lanes);
  uint32_t at = to_predicate ? i->d : i->e;
  if (at == NO_OPERAND) return;
  uint32_t *p = row_of(e, f, at);
  *p = (*p & ~lanes) | (m->flags & lanes);
}

static void perform(meeting *m, const insn *i) {
  switch (i->op) {
  case H_shfl: shuffle(m, i->imm & 3); break;
  case H_vote: vote(m, i->imm & 3); break;
  case H_match: match(m, i->imm & 3); break;
  case H_redux: reduce(m, i->imm & 15); break;
  case H_elect: elect(m); break;
  default: break;
  }
}

static uint32_t key_of(const insn *i) {
  if (i->op == H_matrix) return ((const matrix_site *)i->side)->key;
  return (uint32_t)i->op << 8 | (uint32_t)(i->imm & 255);
}

/* --- parking ------------------------------------------------------------- */

/* Lanes parked in the warp under a key and a mask. */
static uint32_t parked(const warp *w, uint32_t key, uint32_t member) {
  uint32_t lanes = 0;
  for (uint32_t k = 0; k < w->group_count; k++) {
    const group *g = &w->groups[k];
    if (g->state == PARKED && g->key == key && g->member == member)
      lanes |= g->mask;
  }
  return lanes;
}

static void release(engine *e, warp *w, uint32_t key, uint32_t member) {
  meeting m;
  memset(&m, 0, sizeof m);
  for (uint32_t k = 0; k < w->group_count; k++) {
    group *g = &w->groups[k];
    if (g->state == PARKED && g->key == key && g->member == member)
      join(e, &m, g->pc, g->frame, g->mask), m.lanes |= g->mask;
  }
  const insn *first = NULL;
  if (e->launch->watch) tps_sim_watch_sync(e, SYNC_WARP, m.lanes, 0);
  for (uint32_t k = 0; k < w->group_count; k++) {
    group *g = &w->groups[k];
    if (g->state != PARKED || g->key != key || g->member != member) continue;
    if (!first) perform(&m, first = g->pc);
    give(e, &m, g->pc, g->frame, g->mask);
    g->state = RUNS;
    g->apart = 0;
    g->pc++;
  }
}

void tps_sim_parked_check(engine *e, warp *w) {
  for (uint32_t k = 0; k < w->group_count; k++) {
    const group *g = &w->groups[k];
    if (g->state != PARKED) continue;
    uint32_t there = parked(w, g->key, g->member);
    if (g->member & w->live & ~there) continue;
    if (g->pc->op == H_matrix) tps_sim_matrix_meet(e, w, g->key, g->member);
    else release(e, w, g->key, g->member);
  }
}

/* Parks lanes of the running group that have one member mask. */
static void park(engine *e, const insn *i, uint32_t lanes, uint32_t member) {
  group *g = e->group;
  if (lanes != g->mask) g = tps_sim_split(e->warp, g, lanes);
  g->pc = i;
  g->state = PARKED;
  g->key = key_of(i);
  g->member = member;
}

const insn *tps_sim_park(engine *e, const insn *i, uint32_t mask) {
  park(e, i, mask, FULL);
  if (e->group->state == RUNS) e->group->pc = i + 1;
  tps_sim_parked_check(e, e->warp);
  return NULL;
}

/* The common case: one member mask, everybody here. Lanes that don't take part
 * give 0: their registers may be those of a block that ran here before. */
static void at_once(engine *e, const insn *i, uint32_t lanes) {
  meeting m;
  if (lanes != FULL) memset(&m, 0, sizeof m);
  join(e, &m, i, e->group->frame, lanes);
  m.lanes = lanes;
  if (e->launch->watch) tps_sim_watch_sync(e, SYNC_WARP, lanes, 0);
  perform(&m, i);
  give(e, &m, i, e->group->frame, lanes);
}

static uint32_t with_member(const uint32_t *members, uint32_t lanes,
                            uint32_t member) {
  uint32_t same = 0;
  for (unsigned l = 0; l < LANES; l++)
    same |= (uint32_t)(members[l] == member) << l;
  return same & lanes;
}

const insn *tps_sim_exchange(engine *e, const insn *i, uint32_t mask) {
  if (i->f == NO_OPERAND) { /* without .sync: whoever is here */
    at_once(e, i, mask);
    return i + 1;
  }
  const uint32_t *members = row32(e, i->f);
  uint32_t live = e->warp->live, left = mask;
  bool parked_some = false;
  while (left) {
    uint32_t member = members[__builtin_ctz(left)];
    uint32_t same = with_member(members, left, member);
    left &= ~same;
    if (e->launch->watch) tps_sim_sync_members(e, i, same, member);
    if ((member & live & ~same) == 0) {
      at_once(e, i, same);
    } else {
      park(e, i, same, member);
      parked_some = true;
    }
  }
  if (!parked_some) return i + 1;
  if (e->group->state == RUNS) e->group->pc = i + 1;
  tps_sim_parked_check(e, e->warp);
  return NULL;
}

HANDLER(vote) { return tps_sim_exchange(e, i, mask); }
HANDLER(match) { return tps_sim_exchange(e, i, mask); }
HANDLER(redux) { return tps_sim_exchange(e, i, mask); }
HANDLER(elect) { return tps_sim_exchange(e, i, mask); }
HANDLER(warp_sync) { return tps_sim_exchange(e, i, mask); }

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_exchange(handler **table);
void tps_sim_fill_exchange(handler **table) { EXCHANGE_OPS(FILL) }
