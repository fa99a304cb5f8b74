/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A block: its warps take turns, each until it waits, ends, tires of waiting
 * for others, or has had its share. A block is one piece of memory for all its
 * warps, frames and rows, so that a launch of many blocks uses few pieces
 * again and again.
 */
#include <stdlib.h>

#include "sim/blocks.h"
#include "sim/engine_watch.h"

/* Instructions that a warp may take before the next one's turn. */
#define TURN_LENGTH 20000

void tps_sim_block_free(struct tps_sim_block *block);

/* --- making -------------------------------------------------------------- */

static size_t round_up(size_t n) { return (n + 63) & ~(size_t)63; }

static void place(struct tps_sim_block *block, struct tps_sim_launch *launch,
                  unsigned char *at) {
  const struct tps_sim_kernel *kernel = launch->kernel;
  engine *e = &block->e;
  block->launch = launch;
  block->rows = at;
  at += round_up(BLOCK_ROWS * ROW32);
  e->slots = (region *)(void *)at;
  at += round_up(kernel->slots * sizeof(region));
  e->shared.base = 0;
  e->shared.size = launch->shared_end;
  e->shared.host = at;
  at += round_up(launch->shared_end);
  for (uint32_t k = 0; k < launch->warps; k++) {
    warp *w = &block->warps[k];
    w->index = k;
    w->main.of = kernel->main;
    w->main.rows = at;
    at += round_up(kernel->main->frame_bytes);
  }
  e->block = block;
  e->launch = launch;
  e->base[IN_CONSTANTS] = kernel->constants - IN_CONSTANTS;
  e->base[IN_LAUNCH] = launch->rows - IN_LAUNCH;
  e->base[IN_BLOCK] = block->rows - IN_BLOCK;
}

static struct tps_sim_block *make(struct tps_sim_launch *launch) {
  const struct tps_sim_kernel *kernel = launch->kernel;
  size_t head =
      round_up(sizeof(struct tps_sim_block) + launch->warps * sizeof(warp));
  size_t slots = round_up(kernel->slots * sizeof(region));
  size_t frames = round_up(kernel->main->frame_bytes) * launch->warps;
  size_t total = head + round_up(BLOCK_ROWS * ROW32) + slots +
                 round_up(launch->shared_end) + frames;
  unsigned char *p = aligned_alloc(64, total);
  if (!p) return NULL;
  /* Lanes that a warp lacks keep the zeros of their registers for ever. */
  memset(p, 0, total - frames - round_up(launch->shared_end));
  memset(p + total - frames, 0, frames);
  struct tps_sim_block *block = (struct tps_sim_block *)(void *)p;
  place(block, launch, p + head);
  if (!launch->watch || tps_sim_watch_block(block)) return block;
  free(block);
  return NULL;
}

void tps_sim_block_free(struct tps_sim_block *block) {
  for (uint32_t k = 0; k < block->launch->warps; k++) {
    warp *w = &block->warps[k];
    for (uint32_t d = 0; d < w->depth_count; d++)
      while (w->frames[d]) {
        frame *f = w->frames[d];
        w->frames[d] = f->next;
        free(f->rows);
        free(f);
      }
    free(w->frames);
    free(w->local);
    tps_sim_async_free(w);
  }
  free(block->delayed);
  if (block->watch) tps_sim_watch_block_free(block);
  free(block);
}

/* --- beginning ----------------------------------------------------------- */

static void fill(unsigned char *rows, unsigned k, uint32_t value) {
  uint32_t *p = (uint32_t *)(void *)(rows + k * ROW32);
  for (unsigned l = 0; l < LANES; l++) p[l] = value;
}

static void fill_rows(struct tps_sim_block *block) {
  const struct tps_sim_launch *launch = block->launch;
  const tps_launch *s = &launch->config.shape;
  uint64_t n = block->index;
  uint32_t rank = 0, scale = 1;
  block->ctaid[0] = (uint32_t)(n % s->grid[0]);
  block->ctaid[1] = (uint32_t)(n / s->grid[0] % s->grid[1]);
  block->ctaid[2] = (uint32_t)(n / s->grid[0] / s->grid[1]);
  for (unsigned k = 0; k < 3; k++) {
    uint32_t size = launch->cluster[k];
    uint32_t inside = block->ctaid[k] % size;
    fill(block->rows, ROW_CTAID_X + k, block->ctaid[k]);
    fill(block->rows, ROW_CLUSTERID_X + k, block->ctaid[k] / size);
    fill(block->rows, ROW_CLUSTER_CTAID_X + k, inside);
    rank += inside * scale;
    scale *= size;
  }
  block->rank = rank;
  fill(block->rows, ROW_CLUSTER_RANK, rank);
  fill(block->rows, ROW_SMID,
       (uint32_t)(n % (uint64_t)launch->config.multiprocessors));
}

static void begin_warp(struct tps_sim_block *block, warp *w) {
  const struct tps_sim_launch *launch = block->launch;
  uint32_t first = w->index * LANES, left = launch->threads - first;
  group *g = &w->groups[0];
  w->members = left >= LANES ? FULL : (1u << left) - 1;
  w->live = w->members;
  w->group_count = 1;
  memset(g, 0, sizeof *g);
  g->pc = launch->kernel->main->entry;
  g->frame = &w->main;
  g->mask = w->members;
  g->quota = 64;
  const function *f = w->main.of;
  memset(w->main.rows + f->zeroed_at, 0, f->zeroed_end - f->zeroed_at);
  if (w->local_size) memset(w->local, 0, w->local_size * LANES);
  w->cluster_arrived = 0;
  tps_sim_async_begin(w);
}

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

/* A GPU does not clear it at all. */
static void clear_shared(struct tps_sim_block *block) {
  unsigned char *host = block->e.shared.host;
  uint64_t bytes = block->launch->shared_bytes;
  uint64_t reserved = block->launch->shared_end - bytes;
  if (reserved > 0)
    memset(host + bytes, 0, reserved); /* the toolkit counts on it */
  if (block->random != 0) tps_sim_blocks_garble(host, bytes, block->random);
  else if (bytes > 0) memset(host, 0, bytes);
}

void tps_sim_block_start(struct tps_sim_block *block, uint64_t index) {
  const struct tps_sim_launch *launch = block->launch;
  block->index = index;
  block->epoch++;
  block->live = launch->threads;
  block->runnable = launch->warps == 32 ? FULL : (1u << launch->warps) - 1;
  block->turn = 0;
  block->used = 0;
  block->spent = block->stuck_at = 0;
  uint64_t seed = launch->config.seed;
  block->random = seed ? mix(seed + index * 0x9e3779b97f4a7c15ull) | 1 : 0;
  block->choices = 0;
  bool delays = seed && !(launch->watch && launch->watch->alone);
  if (delays) tps_sim_delay_ready(block); /* without memory none is held back */
  memset(block->barriers, 0, sizeof block->barriers);
  clear_shared(block);
  block->own = (cluster){.count = 1, .blocks = {block}};
  block->cluster = &block->own;
  fill_rows(block);
  for (uint32_t k = 0; k < launch->warps; k++)
    begin_warp(block, &block->warps[k]);
  if (block->watch) tps_sim_watch_block_begin(block);
}

struct tps_sim_block *tps_sim_block_begin(struct tps_sim_launch *launch,
                                          uint64_t index) {
  pthread_mutex_lock(&launch->lock);
  struct tps_sim_block *block = launch->pool;
  if (block) launch->pool = block->next;
  pthread_mutex_unlock(&launch->lock);
  if (!block) block = make(launch);
  if (block) tps_sim_block_start(block, index);
  return block;
}

void tps_sim_block_end(struct tps_sim_block *block) {
  struct tps_sim_launch *launch = block->launch;
  pthread_mutex_lock(&launch->lock);
  block->next = launch->pool;
  launch->pool = block;
  atomic_fetch_add_explicit(&launch->ended, 1, memory_order_relaxed);
  pthread_mutex_unlock(&launch->lock);
}

/* --- running ------------------------------------------------------------- */

static void spend(engine *e, uint64_t used) {
  struct tps_sim_block *block = e->block;
  uint64_t budget = e->launch->config.budget;
  block->spent += used;
  if (budget && block->spent > budget)
    tps_sim_fault(e, NULL, -1, TPS_LAUNCH_TIMEOUT,
                  "the block has executed more than its budget of %llu "
                  "instructions",
                  (unsigned long long)budget);
}

/* One turn of a warp; returns the instructions it took. */
static uint64_t take_turn(engine *e, uint32_t k, int64_t length, turn *how) {
  struct tps_sim_block *block = e->block;
  e->left = length;
  *how = tps_sim_warp_run(e, &block->warps[k]);
  if (*how == TURN_ENDED || *how == TURN_BLOCKED) block->runnable &= ~(1u << k);
  uint64_t used = (uint64_t)(length - e->left);
  spend(e, used + 1);
  return used + 1;
}

/* Whether the warp has been released again while it ended its turn. */
static bool runs(const warp *w) {
  for (uint32_t k = 0; k < w->group_count; k++)
    if (w->groups[k].state == RUNS) return true;
  return false;
}

/* Chance has one warp run, for a while or a moment. */
static bool go_anywhere(engine *e, uint64_t *left) {
  struct tps_sim_block *block = e->block;
  uint32_t skip =
      tps_sim_roll(block) % (uint32_t)__builtin_popcount(block->runnable);
  uint32_t some = block->runnable;
  while (skip-- > 0) some &= some - 1;
  uint32_t k = (uint32_t)__builtin_ctz(some);
  int64_t length = TURN_LENGTH;
  if (tps_sim_chance(block, 2))
    length = 1 + tps_sim_roll(block) % (tps_sim_roll(block) % 2 ? 256 : 16);
  turn how;
  uint64_t used = take_turn(e, k, length, &how);
  if (how == TURN_BLOCKED && runs(&block->warps[k])) block->runnable |= 1u << k;
  *left = used < *left && !block->hurry ? *left - used : 0;
  return how != TURN_TIRED;
}

/* A turn for every warp that can run. False when all of them only wait. */
static bool go_round(engine *e, uint64_t *left) {
  struct tps_sim_block *block = e->block;
  bool progress = false;
  uint32_t warps = e->launch->warps, start = block->turn;
  for (uint32_t n = 0; n < warps; n++) {
    uint32_t k = start + n < warps ? start + n : start + n - warps;
    if (!(block->runnable >> k & 1)) continue;
    turn how;
    uint64_t used = take_turn(e, k, TURN_LENGTH, &how);
    if (how == TURN_BLOCKED && runs(&block->warps[k]))
      block->runnable |= 1u << k;
    progress |= how != TURN_TIRED;
    *left = used < *left ? *left - used : 0;
    if (*left == 0) {
      block->turn = k + 1 < warps ? k + 1 : 0;
      return true;
    }
  }
  return progress;
}

/* Not inlined: what it changes must not live in the frame that setjmp returns
 * to. */
__attribute__((noinline)) static int run(engine *e, uint64_t left) {
  struct tps_sim_block *block = e->block;
  for (;;) {
    if (atomic_load_explicit(&block->launch->stop, memory_order_relaxed))
      return TPS_SIM_FAULT;
    if (!block->runnable && block->live) {
      if (block->cluster->count > 1) return OUTCOME_WAITS;
      if (!tps_sim_async_settle(e)) tps_sim_deadlock(e);
      continue;
    }
    bool progress = block->random ? go_anywhere(e, &left) : go_round(e, &left);
    if (!block->live) {
      tps_sim_async_finish(e);
      return TPS_SIM_DONE;
    }
    if (left && (progress || !block->runnable)) continue;
    tps_sim_grid_check(e);
    return left ? TPS_SIM_YIELD : TPS_SIM_SLICE;
  }
}

static int take_block_turn(struct tps_sim_block *block, uint64_t slice) {
  if (setjmp(block->fault)) return TPS_SIM_FAULT;
  return run(&block->e, slice ? slice : 1);
}

int tps_sim_block_turn(struct tps_sim_block *block, uint64_t slice) {
  struct tps_sim_watch *watch = block->launch->watch;
  if (!watch) return take_block_turn(block, slice);
  tps_sim_watch_take_turn(watch);
  int outcome = take_block_turn(block, slice);
  tps_sim_watch_end_turn(watch);
  return outcome;
}
