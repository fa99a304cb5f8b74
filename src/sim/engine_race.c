/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch: the accesses. See engine_race.h.
 */
#include "sim/engine_race.h"

#include <stdlib.h>

uint64_t tps_sim_race_most = UINT64_C(4) << 30;

/* --- launches and blocks ------------------------------------------------- */

static void *launch_new(struct tps_sim_launch *launch) {
  race *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->launch = launch;
  r->left = tps_sim_race_most;
  r->last = &r->hazards;
  tps_sim_race_number(r);
  return r;
}

static void launch_free(void *launch) {
  race *r = launch;
  tps_sim_race_numbered(r);
  for (unsigned k = 0; k < RACE_BUCKETS; k++)
    while (r->memory[k]) {
      race_memory *m = r->memory[k];
      r->memory[k] = m->next;
      tps_sim_race_memory_free(r, m);
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
  tps_sim_race_memory_free(launch, b->shared);
  free(b->last);
  free(b->acquired);
  free(b->released);
  free(b->lanes);
  free(b->warps);
  tps_sim_race_copies_free(b);
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
  b->shared = tps_sim_race_memory_new(launch, 0, block->launch->shared_end + 1);
  if (b->last && b->acquired && b->released && b->shared) return b;
  block_free(launch, b);
  return NULL;
}

static void block_begin(void *launch, void *block) {
  (void)launch;
  tps_sim_race_begin(block);
}

/* --- touching ------------------------------------------------------------ */

static race_memory *memory_of(race_block *b, const touch *t) {
  race_memory **last = &b->last[t->i->slot];
  race_memory *m = *last;
  if (m && m->base == t->memory->base) return m;
  m = tps_sim_race_memory(b->launch, t->memory);
  if (m) *last = m;
  return m;
}

race_block *tps_sim_race_of(const race_block *b,
                            const struct tps_sim_block *block) {
  return tps_sim_watch_state(block, b->launch);
}

/* The shadow of what is touched; marks in it that are older than `least` are of
 * others. NULL: it can't be followed. */
static race_memory *shadow_of(race_block *b, const touch *t, uint32_t *least) {
  *least = b->launch->first + 1;
  if (b->launch->now == UINT32_MAX) return NULL; /* it counts no further */
  if (t->place != WATCH_SHARED) return memory_of(b, t);
  const race_block *owner =
      t->owner == b->block ? b : tps_sim_race_of(b, t->owner);
  *least = owner->birth;
  return owner->shared;
}

static void look(race_block *b, const touch *t, race_memory *m, uint32_t least,
                 uint32_t told) {
  const struct tps_sim_kernel *kernel = b->block->launch->kernel;
  visit v = {.r = b->launch, .b = b, .t = t, .least = least, .told = told};
  v.strong = t->order & WATCH_STRONG;
  v.mark.now = b->launch->now;
  v.mark.warp = b->first_warp + t->e->warp->index;
  v.mark.who = (uint32_t)(t->i - kernel->insns) << MARK_INSN;
  if (t->kind == WATCH_UPDATE) v.mark.who |= MARK_UPDATE;
  if (t->order & WATCH_ASYNC && tps_sim_race_issue(b, t, m))
    v.mark.who |= MARK_FLYING;
  tps_sim_race_run(&v, m);
}

/* Lanes for which the phase has ended acquire, and know of its copies. */
static void look_at_wait(race_block *b, const touch *t, race_memory *m,
                         uint32_t least) {
  touch part = *t;
  const unsigned char *asked = NULL; /* most have the same */
  uint32_t passed = 0, told = 0;
  for (uint32_t left = t->lanes; left; left &= left - 1) {
    unsigned l = (unsigned)__builtin_ctz(left);
    const unsigned char *object = t->host + t->at[l];
    uint64_t bits;
    memcpy(&bits, object, sizeof bits);
    if (!tps_sim_mbarrier_has_ended(t->e, t->i, l, bits)) continue;
    passed |= 1u << l;
    uint32_t now = object == asked ? 0 : tps_sim_race_told(b, object);
    if (now) told = now;
    asked = object;
  }
  part.lanes = passed;
  if (passed) look(b, &part, m, least, told);
  part.lanes = t->lanes & ~passed;
  part.order &= (uint8_t)~WATCH_ACQUIRES;
  if (part.lanes) look(b, &part, m, least, 0);
}

/* Lanes with one mbarrier go together. */
static void promise_end(race_block *b, const touch *t) {
  for (uint32_t left = t->lanes; left;) {
    uint64_t at = t->at[__builtin_ctz(left)];
    uint32_t same = 0;
    for (unsigned l = 0; l < LANES; l++)
      same |= (uint32_t)(t->at[l] == at) << l;
    tps_sim_race_promise(b, t->e->warp, left & same, t->host + at);
    left &= ~same;
  }
}

static void on_touch(void *launch, void *block, const touch *t) {
  race_block *b = block;
  uint32_t least;
  (void)launch;
  if (t->place == WATCH_LOCAL || t->i->op == H_tex || t->i->op == H_tld4)
    return;
  race_memory *m = shadow_of(b, t, &least);
  if (!m) {
    b->launch->unseen = true;
    return;
  }
  if (t->i->op == H_async_arrive) promise_end(b, t);
  if (t->order & WATCH_RELEASES)
    tps_sim_race_sync(b, t->e, SYNC_FENCE, t->lanes, 0);
  if (t->i->op == H_mbarrier_wait) look_at_wait(b, t, m, least);
  else look(b, t, m, least, 0);
}

static void on_phase(void *launch, void *block, const void *object) {
  (void)launch;
  tps_sim_race_phase(block, object);
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
                                 .sync = on_sync,
                                 .phase = on_phase};
