/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A warp is a list of groups of lanes. The deepest group runs first, then the
 * one with the lowest pc; groups that meet at one pc and depth become one. A
 * group that keeps jumping backwards while others wait tires after a while and
 * lets them go first, so that lanes may wait for one another.
 *
 * With a seed (see the last section) groups part by chance, run in any order
 * and for as long as chance has it, and meet again late: as late as the next
 * synchronization.
 */
#include <stdlib.h>

#include "sim/engine_synccheck.h"

#define QUOTA 64

void tps_sim_warp_begin(engine *e, warp *w) {
  e->warp = w;
  e->base[IN_WARP] =
      e->launch->tids + (size_t)w->index * WARP_ROWS * ROW32 - IN_WARP;
}

void tps_sim_enter(engine *e, group *g) {
  e->group = g;
  e->mask = g->mask;
  e->multi = e->warp->group_count > 1;
  e->base[IN_FRAME] = g->frame->rows - IN_FRAME;
}

group *tps_sim_split(warp *w, group *from, uint32_t lanes) {
  group *to = &w->groups[w->group_count++];
  *to = *from;
  to->mask = lanes;
  from->mask &= ~lanes;
  return to;
}

static void drop(warp *w, group *g) { *g = w->groups[--w->group_count]; }

void tps_sim_lanes_exit(engine *e, uint32_t lanes) {
  warp *w = e->warp;
  w->live &= ~lanes;
  e->block->live -= (uint32_t)__builtin_popcount(lanes);
  e->group->mask &= ~lanes;
  if (!e->group->mask) drop(w, e->group);
  if (w->group_count) tps_sim_parked_check(e, w);
  if (e->block->used) tps_sim_barriers_check(e);
  if (e->block->cluster->arrived) tps_sim_cluster_exit(e, lanes);
  if (!e->block->live && e->launch->watch) tps_sim_sync_ended(e);
}

/* --- frames -------------------------------------------------------------- */

static frame *frame_new(engine *e, const function *of) {
  frame *f = calloc(1, sizeof *f);
  if (f) f->rows = aligned_alloc(64, (of->frame_bytes + 63u) & ~63u);
  if (f && f->rows) {
    memset(f->rows, 0, of->frame_bytes);
    return f;
  }
  free(f);
  tps_sim_fault(e, NULL, -1, TPS_NO_HOST_MEMORY,
                "out of host memory for the registers of '%s'", of->ptx->name);
}

static void grow_depth(engine *e, warp *w, uint32_t depth) {
  uint32_t count = depth + 8;
  frame **frames = realloc(w->frames, count * sizeof *frames);
  if (!frames)
    tps_sim_fault(e, NULL, -1, TPS_NO_HOST_MEMORY,
                  "out of host memory for calls at depth %u", depth);
  memset(frames + w->depth_count, 0, (count - w->depth_count) * sizeof *frames);
  w->frames = frames;
  w->depth_count = count;
}

frame *tps_sim_frame(engine *e, uint32_t depth, const function *of) {
  warp *w = e->warp;
  if (depth == 0) return &w->main;
  if (depth >= w->depth_count) grow_depth(e, w, depth);
  frame *f = w->frames[depth];
  while (f && f->of != of) f = f->next;
  if (!f) {
    f = frame_new(e, of);
    f->of = of;
    f->next = w->frames[depth];
    w->frames[depth] = f;
  }
  if (f->epoch != e->block->epoch) {
    memset(f->rows + of->zeroed_at, 0, of->zeroed_end - of->zeroed_at);
    f->epoch = e->block->epoch;
  }
  return f;
}

/* --- the schedule -------------------------------------------------------- */

static bool before(const group *x, const group *y) {
  return x->depth != y->depth ? x->depth > y->depth : x->pc < y->pc;
}

static bool meet(const group *x, const group *y) {
  return x->state == RUNS && y->state == RUNS && x->pc == y->pc &&
         x->depth == y->depth && x->apart == y->apart;
}

static void merge(warp *w) {
  for (uint32_t a = 0; a < w->group_count; a++)
    for (uint32_t b = a + 1; b < w->group_count;) {
      group *x = &w->groups[a], *y = &w->groups[b];
      if (!meet(x, y)) {
        b++;
        continue;
      }
      x->mask |= y->mask;
      x->tired = x->tired && y->tired;
      if (y->quota > x->quota) x->quota = y->quota;
      drop(w, y);
    }
}

/* Merges what may merge and picks the group to run, or NULL. */
static group *pick(warp *w, bool *tired) {
  if (w->group_count > 1) merge(w);
  group *best = NULL;
  for (uint32_t k = 0; k < w->group_count; k++) {
    group *g = &w->groups[k];
    if (g->state != RUNS) continue;
    *tired |= g->tired;
    if (!g->tired && (!best || before(g, best))) best = g;
  }
  return best;
}

/* Where the group has to stop, because another one stands there. */
static const insn *meeting_point(const warp *w, const group *g) {
  const insn *stop = NULL;
  for (uint32_t k = 0; k < w->group_count; k++) {
    const group *o = &w->groups[k];
    if (o->state == RUNS && o->depth == g->depth && o->pc > g->pc &&
        (!stop || o->pc < stop))
      stop = o->pc;
  }
  return stop;
}

static void run_alone(engine *e, const insn *i) {
  do i = i->fn(e, i, e->mask);
  while (i);
}

static void run_among(engine *e, const insn *i, const insn *stop) {
  do i = i->fn(e, i, e->mask);
  while (i && i < stop);
  if (i) e->group->pc = i;
}

static void rest(warp *w) {
  for (uint32_t k = 0; k < w->group_count; k++)
    w->groups[k].tired = false, w->groups[k].quota = QUOTA;
}

/* --- the schedule of a seed ---------------------------------------------- */

uint32_t tps_sim_roll(struct tps_sim_block *block) {
  uint64_t x = block->random;
  x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  block->random = x;
  return (uint32_t)(x >> 32);
}

bool tps_sim_chance(struct tps_sim_block *block, uint32_t least) {
  uint32_t most = least + block->choices / 32;
  return tps_sim_roll(block) % (most < 256 ? most : 256) == 0;
}

/* Lanes that go together for no better reason than that they came together may
 * part: nothing but a synchronization promises more. */
static void part(engine *e, warp *w) {
  group *g = &w->groups[tps_sim_roll(e->block) % w->group_count];
  uint32_t lanes = g->mask & tps_sim_roll(e->block);
  if (g->state != RUNS || !lanes || lanes == g->mask) return;
  tps_sim_split(w, g, lanes)->apart = (uint8_t)(1 + tps_sim_roll(e->block) % 7);
}

static void shake(engine *e, warp *w) {
  struct tps_sim_block *block = e->block;
  block->choices++;
  if (block->delayed && tps_sim_roll(block) % 16 == 0)
    tps_sim_delay_flush(&block->delayed[w->index]);
  if (w->group_count > 1 && tps_sim_roll(block) % 8 == 0)
    w->groups[tps_sim_roll(block) % w->group_count].apart = 0;
  if (w->group_count < 4 && tps_sim_chance(block, 4)) part(e, w);
}

static group *pick_any(engine *e, warp *w, bool *tired) {
  shake(e, w);
  group *best = pick(w, tired), *any = NULL;
  uint32_t seen = 0;
  if (!best || w->group_count == 1 || tps_sim_roll(e->block) % 4 == 0)
    return best;
  for (uint32_t k = 0; k < w->group_count; k++) {
    group *g = &w->groups[k];
    if (g->state != RUNS || g->tired) continue;
    if (tps_sim_roll(e->block) % ++seen == 0) any = g;
  }
  return any;
}

/* How many instructions a group runs before the next choice. */
static int64_t stretch(engine *e) {
  if (!tps_sim_chance(e->block, 2)) return 1000;
  return 1 + tps_sim_roll(e->block) % (tps_sim_roll(e->block) % 2 ? 32 : 4);
}

/* Up to `count` instructions; a store may be held back. */
static void run_steps(engine *e, const insn *i, const insn *stop,
                      int64_t count) {
  bool delays = e->block->delayed != NULL;
  bool wanted = delays && tps_sim_roll(e->block) % 2 == 0;
  do {
    e->left--;
    if (delays && tps_sim_delay(e, i, wanted)) i++;
    else i = i->fn(e, i, e->mask);
  } while (i && i != stop && --count > 0 && !e->block->hurry);
  if (i) e->group->pc = i;
}

static turn run_shaken(engine *e, warp *w) {
  tps_sim_warp_begin(e, w);
  e->block->hurry = false;
  for (;;) {
    bool tired = false;
    if (w->group_count == 0) return TURN_ENDED;
    group *g = pick_any(e, w, &tired);
    if (!g && !tired) return TURN_BLOCKED;
    if (!g) {
      rest(w);
      return TURN_TIRED;
    }
    if (e->left <= 0 || e->block->hurry) return TURN_SPENT;
    tps_sim_enter(e, g);
    run_steps(e, g->pc, e->multi ? meeting_point(w, g) : NULL, stretch(e));
  }
}

turn tps_sim_warp_run(engine *e, warp *w) {
  if (e->block->random) return run_shaken(e, w);
  tps_sim_warp_begin(e, w);
  for (;;) {
    bool tired = false;
    if (w->group_count == 0) return TURN_ENDED;
    group *g = pick(w, &tired);
    if (!g && !tired) return TURN_BLOCKED;
    if (!g) {
      rest(w);
      return TURN_TIRED;
    }
    if (e->left <= 0) return TURN_SPENT;
    tps_sim_enter(e, g);
    const insn *stop = e->multi ? meeting_point(w, g) : NULL;
    if (stop) run_among(e, g->pc, stop);
    else run_alone(e, g->pc);
  }
}
