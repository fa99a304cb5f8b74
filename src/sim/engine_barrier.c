/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Barriers of a block. They count threads: of the whole block less those that
 * have exited, or as many as the instruction says; a warp that takes part in a
 * counted barrier stands for all its 32 lanes, whether they still live or not.
 * An exit may complete a barrier.
 *
 * Operands: the number a, the count b, a predicate c; result d. imm: what to
 * do.
 */
#include <stdio.h>

#include "sim/engine_synccheck.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define ON(mask, l) (((mask) >> (l)) & 1)
#define NO_OPERAND UINT32_MAX

/* Low bits of imm; ALIGNED besides. */
enum { SYNC, ARRIVE, RED_POPC, RED_AND, RED_OR, KIND = 7, ALIGNED = 8 };

bool tps_sim_is_aligned_barrier(const insn *i) {
  return i->op == H_barrier && i->imm & ALIGNED;
}

static bool complete(engine *e, const barrier *b) {
  if (!b->expected) return b->arrived == e->block->live && b->arrived;
  uint32_t gone = 0;
  for (uint32_t left = b->warps; left; left &= left - 1) {
    unsigned k = (unsigned)__builtin_ctz(left);
    const warp *w = &e->block->warps[k];
    gone += (uint32_t)__builtin_popcount(~(w->live | b->lanes[k]));
  }
  return b->arrived + gone >= b->expected;
}

static void result(engine *e, const barrier *b, const group *g) {
  const insn *i = g->pc;
  int64_t kind = i->imm & KIND;
  if (kind < RED_POPC || i->d == NO_OPERAND) return;
  if (kind == RED_POPC) {
    uint32_t *d = row_of(e, g->frame, i->d);
    for (unsigned l = 0; l < LANES; l++)
      if (ON(g->mask, l)) d[l] = b->trues;
    return;
  }
  bool yes = kind == RED_AND ? b->trues == b->count : b->trues != 0;
  uint32_t *p = row_of(e, g->frame, i->d);
  *p = (*p & ~g->mask) | (yes ? g->mask : 0);
}

static void release(engine *e, unsigned id) {
  struct tps_sim_block *block = e->block;
  barrier *b = &block->barriers[id];
  if (e->launch->watch) tps_sim_watch_sync(e, SYNC_RELEASE, 0, id);
  for (uint32_t k = 0; k < e->launch->warps; k++) {
    warp *w = &block->warps[k];
    for (uint32_t n = 0; n < w->group_count; n++) {
      group *g = &w->groups[n];
      if (g->state != WAITS || g->barrier != id) continue;
      result(e, b, g);
      g->state = RUNS;
      g->apart = 0;
      g->pc++;
      block->runnable |= 1u << k;
    }
  }
  memset(b, 0, sizeof *b);
  block->used &= ~(1u << id);
}

void tps_sim_barriers_check(engine *e) {
  for (uint32_t left = e->block->used; left; left &= left - 1) {
    unsigned id = (unsigned)__builtin_ctz(left);
    if (complete(e, &e->block->barriers[id])) release(e, id);
  }
}

/* Lanes of one warp at two aligned barriers can never meet. */
static void check_aligned(engine *e, const insn *i, uint32_t mask,
                          unsigned id) {
  const warp *w = e->warp;
  for (uint32_t k = 0; k < w->group_count; k++) {
    const group *g = &w->groups[k];
    if (g->state != WAITS || g->barrier >= BARRIERS || g->pc == i ||
        !(g->pc->imm & ALIGNED))
      continue;
    char other[600], here[600], lanes[1300];
    const struct tps_sim_kernel *kernel = e->launch->kernel;
    tps_sim_insn_where(kernel, g->pc, other, sizeof other);
    tps_sim_insn_where(kernel, i, here, sizeof here);
    snprintf(lanes, sizeof lanes,
             "lanes 0x%08x at barrier %u (%s), lanes 0x%08x at barrier %u (%s)",
             g->mask, g->barrier, other, mask, id, here);
    tps_sim_tell_sync(e, i, w, __builtin_ctz(mask),
                      "Divergent thread(s) in warp", lanes);
    tps_sim_fault(e, i, __builtin_ctz(mask), TPS_LAUNCH_FAILED,
                  "lanes of one warp wait at different barriers and can never "
                  "meet: %s",
                  lanes);
  }
}

static uint32_t count_of(engine *e, const insn *i, unsigned lane) {
  if (i->b == NO_OPERAND) return 0;
  uint32_t count = row32(e, i->b)[lane];
  if (count == 0 || count % LANES)
    tps_sim_sync_fault(
        e, i, (int)lane, TPS_ILLEGAL_INSTRUCTION, "Invalid arguments",
        "barrier for %u threads (a multiple of 32 is needed)", count);
  return count;
}

static void arrive(engine *e, const insn *i, unsigned id, uint32_t lanes,
                   uint32_t count) {
  barrier *b = &e->block->barriers[id];
  if (e->launch->watch) {
    tps_sim_watch_sync(e, SYNC_ARRIVE, lanes, id);
    tps_sim_sync_arrives(e, i, lanes, id, count, (i->imm & KIND) != ARRIVE);
  }
  b->arrived += (uint32_t)__builtin_popcount(lanes);
  b->warps |= 1u << e->warp->index;
  if (count) b->expected = count;
  if (count) b->lanes[e->warp->index] |= lanes;
  e->block->used |= 1u << id;
  if ((i->imm & KIND) >= RED_POPC) {
    uint32_t p = *mask_of(e, i->c) & lanes;
    b->count += (uint32_t)__builtin_popcount(lanes);
    b->trues += (uint32_t)__builtin_popcount(p);
  }
}

HANDLER(barrier) {
  const uint32_t *ids = row32(e, i->a);
  unsigned lane = (unsigned)__builtin_ctz(mask), id = ids[lane];
  if (id >= BARRIERS)
    tps_sim_sync_fault(e, i, (int)lane, TPS_ILLEGAL_INSTRUCTION,
                       "Invalid arguments",
                       "barrier %u (there are 16, from 0 to 15)", id);
  uint32_t others = e->group->mask & ~mask, same = 0;
  if (others) tps_sim_split(e->warp, e->group, others)->pc = i + 1;
  for (unsigned l = 0; l < LANES; l++) same |= (uint32_t)(ids[l] == id) << l;
  same &= mask;
  if (same != mask) tps_sim_split(e->warp, e->group, mask & ~same)->pc = i;
  bool waits = (i->imm & KIND) != ARRIVE;
  if (waits && i->imm & ALIGNED && e->warp->group_count > 1)
    check_aligned(e, i, same, id);
  arrive(e, i, id, same, count_of(e, i, lane));
  group *g = e->group;
  g->pc = i + 1;
  if (waits) {
    g->pc = i;
    g->state = WAITS;
    g->barrier = (uint8_t)id;
  }
  e->left -= 4;
  if (complete(e, &e->block->barriers[id])) release(e, id);
  return NULL;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_barrier(handler **table);
void tps_sim_fill_barrier(handler **table) { BARRIER_OPS(FILL) }
