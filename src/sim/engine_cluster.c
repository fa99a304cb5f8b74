/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Clusters: their blocks begin, take turns and end together; their barrier, of
 * which arriving and waiting are two instructions; and addresses in the shared
 * memory of one another.
 *
 * What the face of the engine calls a block is a cluster here, named by its
 * block of rank 0.
 */
#include "sim/engine_core.h"
#include "sim/engine_synccheck.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define ON(mask, l) (((mask) >> (l)) & 1)

/* --- beginning and ending ------------------------------------------------ */

/* The number in the grid of a cluster's block. */
static uint64_t block_index(const struct tps_sim_launch *launch, uint64_t n,
                            uint32_t rank) {
  const uint32_t *grid = launch->config.shape.grid, *size = launch->cluster;
  uint64_t index = 0, scale = 1;
  for (unsigned k = 0; k < 3; k++) {
    uint64_t clusters = grid[k] / size[k];
    uint64_t at = n % clusters * size[k] + rank % size[k];
    index += at * scale;
    scale *= grid[k];
    n /= clusters;
    rank /= size[k];
  }
  return index;
}

static void end_all(struct tps_sim_block *first) {
  cluster c = first->own;
  for (uint32_t k = 0; k < c.count; k++) tps_sim_block_end(c.blocks[k]);
}

tps_sim_block *tps_sim_block_new(tps_sim_launch *launch, uint64_t index) {
  struct tps_sim_block *first =
      tps_sim_block_begin(launch, block_index(launch, index, 0));
  if (!first) return NULL;
  for (uint32_t k = 1; k < launch->cluster_blocks; k++) {
    struct tps_sim_block *block =
        tps_sim_block_begin(launch, block_index(launch, index, k));
    if (!block) {
      end_all(first);
      return NULL;
    }
    block->cluster = &first->own;
    first->own.blocks[first->own.count++] = block;
  }
  return first;
}

tps_sim_block *tps_sim_block_again(tps_sim_block *block, uint64_t index) {
  tps_sim_launch *launch = block->launch;
  if (launch->cluster_blocks > 1) {
    end_all(block);
    return tps_sim_block_new(launch, index);
  }
  atomic_fetch_add_explicit(&launch->ended, 1, memory_order_relaxed);
  tps_sim_block_start(block, block_index(launch, index, 0));
  return block;
}

void tps_sim_block_destroy(tps_sim_block *block) {
  if (block) end_all(block);
}

/* --- running ------------------------------------------------------------- */

/* Nothing of the cluster can run: completes what was put off, or reports. */
static tps_sim_outcome stand_still(struct tps_sim_block *first) {
  if (setjmp(first->fault)) return TPS_SIM_FAULT;
  if (!tps_sim_async_settle(&first->e)) tps_sim_deadlock(&first->e);
  return TPS_SIM_SLICE;
}

static bool is_over(const cluster *c) {
  for (uint32_t k = 0; k < c->count; k++)
    if (c->blocks[k]->live) return false;
  return true;
}

static tps_sim_outcome run_all(cluster *c, uint64_t slice) {
  bool progress = false, yielded = false;
  uint64_t random = c->blocks[0]->random, share = slice / c->count + 1;
  uint32_t start = random ? (uint32_t)(random >> 24) % c->count : 0;
  for (uint32_t n = 0; n < c->count; n++) {
    struct tps_sim_block *block = c->blocks[(start + n) % c->count];
    if (!block->live) continue;
    uint64_t before = block->spent;
    int outcome = tps_sim_block_turn(block, share);
    if (outcome == TPS_SIM_FAULT) return TPS_SIM_FAULT;
    if (outcome == TPS_SIM_YIELD) yielded = true;
    else progress |= outcome != OUTCOME_WAITS || block->spent != before;
  }
  if (is_over(c)) return TPS_SIM_DONE;
  if (progress) return TPS_SIM_SLICE;
  return yielded ? TPS_SIM_YIELD : stand_still(c->blocks[0]);
}

tps_sim_outcome tps_sim_block_run(tps_sim_block *block, uint64_t slice) {
  cluster *c = &block->own;
  if (c->count == 1) return (tps_sim_outcome)tps_sim_block_turn(block, slice);
  /* Blocks that hand work to one another take many short turns. */
  tps_sim_outcome outcome = TPS_SIM_SLICE;
  for (int n = 0; n < 16 && outcome == TPS_SIM_SLICE; n++)
    outcome = run_all(c, slice);
  return outcome;
}

/* --- shared memory of one another ---------------------------------------- */

const region *tps_sim_peer(const engine *e, uint64_t rank, const char **why) {
  const cluster *c = e->block->cluster;
  if (rank >= c->count) {
    *why =
        c->count == 1 ? "which has one block" : "which has not so many blocks";
    return NULL;
  }
  const struct tps_sim_block *block = c->blocks[rank];
  *why = "which has exited";
  return block->live ? &block->e.shared : NULL;
}

bool tps_sim_is_shared(const engine *e, const unsigned char *p) {
  const cluster *c = e->block->cluster;
  for (uint32_t k = 0; k < c->count; k++) {
    const region *r = &c->blocks[k]->e.shared;
    if (p >= r->host && p < r->host + r->size) return true;
  }
  return false;
}

HANDLER(mapa) {
  const uint64_t *a = row64(e, i->a);
  const uint32_t *rank = row32(e, i->b);
  uint64_t *d = row64(e, i->d);
  for (unsigned l = 0; l < LANES; l++) {
    uint64_t above = (uint64_t)((rank[l] + 1) & 255) << RANK_SHIFT;
    if (ON(mask, l)) d[l] = (a[l] & ~RANK_MASK) | above;
  }
  return i + 1;
}

HANDLER(getctarank) {
  const uint64_t *a = row64(e, i->a);
  uint32_t *d = row32(e, i->d), own = e->block->rank;
  for (unsigned l = 0; l < LANES; l++) {
    uint32_t above = (uint32_t)((a[l] & RANK_MASK) >> RANK_SHIFT);
    if (ON(mask, l)) d[l] = above ? above - 1 : own;
  }
  return i + 1;
}

/* --- the barrier --------------------------------------------------------- */

static void wake_warp(struct tps_sim_block *block, warp *w, uint8_t barrier) {
  for (uint32_t k = 0; k < w->group_count; k++) {
    group *g = &w->groups[k];
    if (g->state != WAITS || g->barrier != barrier) continue;
    g->state = RUNS;
    g->apart = 0;
    block->runnable |= 1u << w->index;
  }
}

void tps_sim_cluster_wake(cluster *c, uint8_t barrier) {
  for (uint32_t n = 0; n < c->count; n++) {
    struct tps_sim_block *block = c->blocks[n];
    for (uint32_t k = 0; block->live && k < block->launch->warps; k++)
      wake_warp(block, &block->warps[k], barrier);
  }
}

/* Whether all live threads have arrived; then the next phase begins. */
static bool next_phase(cluster *c) {
  uint32_t live = 0;
  for (uint32_t k = 0; k < c->count; k++) live += c->blocks[k]->live;
  if (c->arrived == 0 || c->arrived < live) return false;
  c->arrived = 0;
  c->phase = !c->phase;
  tps_sim_cluster_wake(c, WAIT_CLUSTER);
  return true;
}

/* Lanes whose phase has ended. */
static uint32_t released(const cluster *c, const warp *w) {
  return w->cluster_arrived & (w->cluster_phase ^ (c->phase ? FULL : 0));
}

void tps_sim_cluster_exit(engine *e, uint32_t lanes) {
  cluster *c = e->block->cluster;
  warp *w = e->warp;
  uint32_t counted = lanes & w->cluster_arrived & ~released(c, w);
  c->arrived -= (uint32_t)__builtin_popcount(counted);
  w->cluster_arrived &= ~lanes;
  next_phase(c);
}

_Noreturn static void out_of_order(engine *e, const insn *i, uint32_t lanes,
                                   const char *title, const char *what) {
  tps_sim_sync_fault(e, i, __builtin_ctz(lanes), TPS_LAUNCH_FAILED, title,
                     "the thread %s at the cluster's barrier", what);
}

HANDLER(cluster_arrive) {
  cluster *c = e->block->cluster;
  warp *w = e->warp;
  uint32_t again = mask & w->cluster_arrived;
  if (again)
    out_of_order(e, i, again, "Missing wait",
                 "arrives again without having waited");
  w->cluster_arrived |= mask;
  w->cluster_phase = (w->cluster_phase & ~mask) | (c->phase ? mask : 0);
  c->arrived += (uint32_t)__builtin_popcount(mask);
  atomic_thread_fence(memory_order_seq_cst);
  return next_phase(c) ? leave(e, i + 1) : i + 1;
}

HANDLER(cluster_wait) {
  cluster *c = e->block->cluster;
  warp *w = e->warp;
  group *g = e->group;
  uint32_t missing = mask & ~w->cluster_arrived, others = g->mask & ~mask;
  if (missing)
    out_of_order(e, i, missing, "Missing arrival",
                 "waits without having arrived");
  uint32_t done = mask & released(c, w);
  w->cluster_arrived &= ~done;
  atomic_thread_fence(memory_order_seq_cst);
  if (done == mask) return i + 1;
  if (done | others) tps_sim_split(w, g, done | others)->pc = i + 1;
  g->pc = i;
  g->state = WAITS;
  g->barrier = WAIT_CLUSTER;
  return NULL;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_cluster(handler **table);
void tps_sim_fill_cluster(handler **table) { CLUSTER_OPS(FILL) }
