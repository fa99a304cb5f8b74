/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch: the accesses. See engine_race.h.
 */
#include "sim/engine_race.h"

#include <stdlib.h>

#include "sim/engine_lanes.h"

#define MOST_SHADOW (UINT64_C(4) << 30)

/* --- launches and blocks ------------------------------------------------- */

static void *launch_new(struct tps_sim_launch *launch) {
  race *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->launch = launch;
  r->left = MOST_SHADOW;
  r->last = &r->hazards;
  return r;
}

static void launch_free(void *launch) {
  race *r = launch;
  for (unsigned k = 0; k < RACE_BUCKETS; k++)
    while (r->memory[k]) {
      race_memory *m = r->memory[k];
      r->memory[k] = m->next;
      tps_sim_race_memory_free(m);
    }
  while (r->hazards) {
    hazard *h = r->hazards;
    r->hazards = h->next;
    free(h);
  }
  free(r);
}

static void launch_end(void *launch, tps_op *op, tps_op *graph) {
  (void)graph;
  tps_sim_race_tell(launch, op);
}

static void block_free(void *launch, void *block) {
  race_block *b = block;
  (void)launch;
  tps_sim_race_memory_free(b->shared);
  free(b->last);
  free(b->acquired);
  free(b->released);
  free(b->lanes);
  free(b->warps);
  free(b);
}

static void *block_new(void *launch, struct tps_sim_block *block) {
  size_t threads = block->launch->warps * LANES;
  race_block *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->launch = launch;
  b->block = block;
  b->last = calloc(block->launch->kernel->slots + 1, sizeof(race_memory *));
  b->acquired = calloc(threads, sizeof *b->acquired);
  b->released = calloc(threads, sizeof *b->released);
  b->shared =
      tps_sim_race_memory_new(launch, 0, block->launch->shared_bytes + 1);
  if (b->last && b->acquired && b->released && b->shared) return b;
  block_free(launch, b);
  return NULL;
}

static void block_begin(void *launch, void *block) {
  (void)launch;
  tps_sim_race_begin(block);
}

/* --- values -------------------------------------------------------------- */

/* The bytes that a plain store of the touch would put where the lane stores to;
 * false: it is no such store. */
static bool value_of(const touch *t, unsigned lane, unsigned char *to) {
  const insn *i = t->i;
  const uint32_t rows[4] = {i->d, i->b, i->c, i->e};
  if (i->op == H_st_128) {
    for (unsigned k = 0; k < 2; k++)
      memcpy(to + 8 * k, &row64(t->e, i->b + k * ROW64)[lane], 8);
    return true;
  }
  bool store = (i->op >= H_st_8_global && i->op <= H_stv_64_shared32) ||
               i->op == H_st_any;
  unsigned size = i->f & 255;
  if (!store) return false;
  for (unsigned k = 0; k < i->count; k++) {
    uint64_t v =
        size == 8 ? row64(t->e, rows[k])[lane] : row32(t->e, rows[k])[lane];
    memcpy(to + k * size, &v, size);
  }
  return true;
}

/* Whether lanes of one store that overlap agree. */
static bool same_as_lane(const touch *t, const unsigned char *value,
                         uint64_t from, unsigned bytes, unsigned other) {
  unsigned char theirs[64];
  if (!value_of(t, other, theirs)) return false;
  for (unsigned k = 0; k < bytes; k++) {
    uint64_t at = from + k - t->at[other];
    if (at < t->bytes && theirs[at] != value[k]) return false;
  }
  return true;
}

/* --- one cell ------------------------------------------------------------ */

/* An access of a lane, or of several that touch the same. */
typedef struct visit {
  race *r;
  race_block *b;
  const touch *t;
  mark mark; /* what it will leave */
  bool strong;
  uint32_t self;  /* thread in the block */
  uint32_t least; /* marks before it are of others */
  uint64_t at;    /* the first byte of the cell */
  unsigned bytes; /* of the cell */
} visit;

/* Two writes of one value do no harm. */
GUEST static bool is_same_value(const visit *v, const mark *m) {
  const touch *t = v->t;
  unsigned char value[64];
  unsigned lane = v->mark.lane, other = m->lane;
  uint64_t first = v->at > t->at[lane] ? v->at : t->at[lane];
  uint64_t end = v->at + v->bytes, last = t->at[lane] + t->bytes;
  if (end > last) end = last;
  if (t->kind != WATCH_STORE || t->bytes > 64 || !value_of(t, lane, value))
    return false;
  const unsigned char *ours = value + (first - t->at[lane]);
  bool together = m->insn == v->mark.insn && m->warp == v->mark.warp &&
                  ON(t->lanes, other) && t->at[other] < end &&
                  t->at[other] + t->bytes > first;
  if (together)
    return same_as_lane(t, ours, first, (unsigned)(end - first), other);
  for (uint64_t k = first; k < end; k++)
    if (t->host[k] != ours[k - first]) return false;
  return true;
}

static bool conflicts(const visit *v, const mark *m) {
  return m->now >= v->least && !tps_sim_race_knows(v->b, v->self, m);
}

static void against_write(const visit *v, const mark *m) {
  if (!conflicts(v, m)) return;
  if (v->t->kind == WATCH_STORE && !m->update && is_same_value(v, m)) return;
  tps_sim_race_note(v->r, m, m->update ? WATCH_UPDATE : WATCH_STORE, v->t,
                    v->mark.lane, v->at);
}

static void against_read(const visit *v, const mark *m) {
  if (conflicts(v, m))
    tps_sim_race_note(v->r, m, WATCH_LOAD, v->t, v->mark.lane, v->at);
}

/* Keeps two reads that don't know of each other, of two warps if there are. */
static void leave_read(const visit *v, mark reads[2]) {
  const mark *m = &v->mark;
  mark *old = &reads[0];
  if (old->warp == m->warp && old->now == m->now) {
    bool more = old->lane != m->lane || old->several || m->several;
    *old = *m;
    old->several = more;
    return;
  }
  if (old->now < v->least || old->now == 0 ||
      tps_sim_race_knows(v->b, v->self, old)) {
    *old = *m;
    return;
  }
  if (old->warp != m->warp || reads[1].now < v->least) {
    reads[1] = *old; /* the older one gives way */
  }
  *old = *m;
}

static inline void read_cell(const visit *v, race_chunk *c, unsigned k) {
  if (c->writes) against_write(v, &c->writes[k]);
  if (v->strong) {
    c->strong[k].read = v->mark;
    return;
  }
  if (c->strong) against_write(v, &c->strong[k].write);
  leave_read(v, c->reads[k]);
}

/* What a plain write has been compared with need not be compared with again:
 * whatever comes later is compared with the write. */
static inline void write_cell(const visit *v, race_chunk *c, unsigned k) {
  if (c->writes) against_write(v, &c->writes[k]);
  mark *reads = c->reads ? c->reads[k] : NULL;
  if (reads && reads[0].now) against_read(v, &reads[0]);
  if (reads && reads[1].now) against_read(v, &reads[1]);
  if (v->strong) {
    c->strong[k].write = v->mark;
    return;
  }
  if (c->strong) {
    against_write(v, &c->strong[k].write);
    against_read(v, &c->strong[k].read);
    c->strong[k].write.now = c->strong[k].read.now = 0;
  }
  c->writes[k] = v->mark;
  if (reads) reads[0].now = reads[1].now = 0;
}

/* --- an access ----------------------------------------------------------- */

/* The place's numbers: before the access acquires, and it releases. */
static void order(const visit *v, race_chunk *c, unsigned k) {
  release *at = &c->strong[k].release;
  if (at->now < v->least) memset(at, 0, sizeof *at);
  if (v->t->order & WATCH_ACQUIRES && at->now)
    tps_sim_race_acquire(v->b, v->self, at);
  if (v->t->kind != WATCH_LOAD) tps_sim_race_release(v->b, v->self, at);
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
    if (c && v->strong) order(v, c, k);
    for (; c && k <= last; k++) {
      v->at = base + ((uint64_t)k << shift);
      if (v->t->kind == WATCH_LOAD) read_cell(v, c, k);
      else write_cell(v, c, k);
    }
    at = stop;
  }
}

/* All lanes that read one place are one visit. */
static bool is_one(const touch *t) {
  unsigned first = (unsigned)__builtin_ctz(t->lanes);
  uint64_t bad = 0;
  if (t->kind != WATCH_LOAD || t->order & WATCH_STRONG) return false;
  EACH_LANE { bad |= ON(t->lanes, l) ? t->at[l] ^ t->at[first] : 0; }
  return bad == 0;
}

/* The lane that stands for all: one that has not written the place itself. */
static unsigned chosen_lane(const touch *t, const race_memory *m,
                            uint32_t warp) {
  uint32_t lanes = t->lanes;
  unsigned first = (unsigned)__builtin_ctz(lanes);
  const race_chunk *c = m->chunks[t->at[first] / RACE_CHUNK];
  if (!c || !c->writes) return first;
  const mark *w = &c->writes[t->at[first] % RACE_CHUNK >> c->shift];
  lanes &= lanes - 1;
  bool own = w->now && w->warp == warp && w->lane == first;
  return own && lanes ? (unsigned)__builtin_ctz(lanes) : first;
}

static const watch_site *site_of(const touch *t) {
  const struct tps_sim_kernel *kernel = t->e->launch->kernel;
  return &kernel->sites[t->i - kernel->insns];
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
    if (c) order(v, c, at % RACE_CHUNK);
    if ((old ^ new) >> 8 * k & 255) visit_cells(v, m, at, at + 1, true);
  }
}

static void visit_lanes(race_block *b, race_memory *m, const touch *t,
                        uint32_t least) {
  uint32_t warp = t->e->warp->index;
  const struct tps_sim_kernel *kernel = b->block->launch->kernel;
  bool fine = t->bytes % 4 != 0, part = site_of(t)->part;
  visit v = {.r = b->launch,
             .b = b,
             .t = t,
             .least = least,
             .strong = t->order & WATCH_STRONG};
  v.mark = (mark){.now = b->launch->now,
                  .warp = b->first_warp + warp,
                  .insn = (uint32_t)(t->i - kernel->insns) & 0xffffff,
                  .update = t->kind == WATCH_UPDATE};
  uint32_t lanes = t->lanes;
  if (lanes & (lanes - 1) && is_one(t)) {
    v.mark.several = 1;
    lanes = 1u << chosen_lane(t, m, v.mark.warp);
  }
  for (; lanes; lanes &= lanes - 1) {
    unsigned l = (unsigned)__builtin_ctz(lanes);
    v.mark.lane = l & 31;
    v.self = warp * LANES + l;
    bool small = fine || t->at[l] % 4 != 0;
    if (part) visit_part(&v, m, l);
    else visit_cells(&v, m, t->at[l], t->at[l] + t->bytes, small);
  }
}

static race_memory *memory_of(race_block *b, const touch *t) {
  race_memory **last = &b->last[t->i->slot];
  if (*last && (*last)->base == t->memory->base) return *last;
  race_memory *m = tps_sim_race_memory(b->launch, t->memory);
  if (m) *last = m;
  return m;
}

/* The shadow of a block's shared memory; the block may be another one of the
 * cluster. */
static race_block *owner_of(race_block *b, const touch *t) {
  const struct tps_sim_watch *w = t->owner->launch->watch;
  for (uint32_t k = 0; k < w->count; k++)
    if (w->states[k] == b->launch) return t->owner->watch->states[k];
  return b;
}

static void on_touch(void *launch, void *block, const touch *t) {
  race_block *b = block;
  race_memory *m;
  uint32_t least = 1;
  (void)launch;
  if (t->place == WATCH_LOCAL || t->i->op == H_tex || t->i->op == H_tld4)
    return;
  if (t->place == WATCH_SHARED) {
    const race_block *owner = t->owner == b->block ? b : owner_of(b, t);
    m = owner->shared;
    least = owner->birth;
  } else {
    m = memory_of(b, t);
  }
  if (!m) return;
  if (t->order & WATCH_RELEASES)
    tps_sim_race_sync(b, t->e, SYNC_FENCE, t->lanes, 0);
  visit_lanes(b, m, t, least);
}

static void on_sync(void *launch, void *block, engine *e, watch_sync what,
                    uint32_t lanes, unsigned number) {
  (void)launch;
  tps_sim_race_sync(block, e, what, lanes, number);
}

const watch_part tps_sim_race = {.wants = TPS_WATCH_RACE,
                                 .alone = true,
                                 .launch_new = launch_new,
                                 .launch_end = launch_end,
                                 .launch_free = launch_free,
                                 .block_new = block_new,
                                 .block_begin = block_begin,
                                 .block_free = block_free,
                                 .touch = on_touch,
                                 .sync = on_sync};
