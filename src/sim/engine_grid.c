/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Deadlocks of a grid's synchronization. Its barrier is a word of the launch's
 * workspace that blocks change by an atomic operation and then read again and
 * again, in a loop that does nothing else. A block of which all threads are in
 * such a loop, or wait for one that is, can't go on before that memory changes;
 * when this holds for all blocks but those that have ended, none ever will.
 */
#include "sim/engine_core.h"

/* Whether an address is in the workspace. */
static bool in_workspace(const struct tps_sim_launch *launch,
                         uint64_t address) {
  const tps_sim_allocation *w = launch->workspace;
  return w && address - w->base < w->size;
}

void tps_sim_spin(engine *e, const insn *i, uint64_t address) {
  struct tps_sim_launch *launch = e->block->launch;
  group *g = e->group;
  g->spin = in_workspace(launch, address) ? i : NULL;
  if (g->spin) g->spun_at = atomic_load(&launch->changes);
}

void tps_sim_workspace_changed(engine *e, uint64_t address) {
  struct tps_sim_launch *launch = e->block->launch;
  if (in_workspace(launch, address)) atomic_fetch_add(&launch->changes, 1);
}

/* The group stands in the loop of the load that it executed last. */
static bool is_spinning(const group *g) {
  const function *f = g->frame->of;
  const insn *spin = g->spin;
  if (!spin || spin < f->entry || spin >= f->end) return false;
  if (g->pc < f->entry || g->pc >= f->end) return false;
  return g->pc->ptx >= (int32_t)spin->b && g->pc->ptx <= (int32_t)spin->c;
}

/* Whether all of the block waits for the workspace, which it has seen as it is
 * after `changes` of them; then where. */
static const insn *where_it_spins(const struct tps_sim_block *block,
                                  uint64_t changes) {
  const insn *at = NULL;
  for (uint32_t k = 0; k < block->launch->warps; k++) {
    const warp *w = &block->warps[k];
    for (uint32_t n = 0; n < w->group_count; n++) {
      const group *g = &w->groups[n];
      if (g->state == WAITS && g->barrier >= BARRIERS) return NULL;
      if (g->state != RUNS) continue;
      if (!is_spinning(g) || g->spun_at != changes) return NULL;
      at = g->spin;
    }
  }
  return at;
}

/* Counts the block among those that can't go on, which are `*stuck` then. True
 * when it is the last. */
static bool is_last(struct tps_sim_block *block, uint64_t changes,
                    uint64_t *stuck) {
  struct tps_sim_launch *launch = block->launch;
  pthread_mutex_lock(&launch->lock);
  bool counts = atomic_load(&launch->changes) == changes;
  if (counts && launch->stuck_at != changes) {
    launch->stuck_at = changes;
    launch->stuck = 0;
  }
  if (counts && block->stuck_at != changes + 1) {
    block->stuck_at = changes + 1;
    launch->stuck++;
  }
  bool last = counts && launch->stuck + launch->ended == launch->blocks;
  *stuck = launch->stuck;
  pthread_mutex_unlock(&launch->lock);
  return last;
}

void tps_sim_grid_check(engine *e) {
  struct tps_sim_launch *launch = e->block->launch;
  if (!launch->workspace) return;
  uint64_t changes = atomic_load(&launch->changes), stuck = 0;
  const insn *at = where_it_spins(e->block, changes);
  if (!at || !is_last(e->block, changes, &stuck)) return;
  tps_sim_fault(
      e, at, -1, TPS_LAUNCH_FAILED,
      "deadlock: no thread can go on; %llu of %llu blocks wait for the "
      "whole grid, the others have ended",
      (unsigned long long)stuck, (unsigned long long)launch->blocks);
}
