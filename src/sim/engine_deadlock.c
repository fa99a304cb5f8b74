/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a block's threads wait for when none of them can go on: each barrier with
 * those who are there and how many it needs, each synchronization of a warp with
 * the lanes that don't come, and the lines of all. Warps that stand alike are
 * told together.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/engine_synccheck.h"

typedef struct text {
  char buffer[1500];
  size_t used;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t,
                                                      const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t room = sizeof t->buffer - t->used;
  int n = vsnprintf(t->buffer + t->used, room, format, args);
  va_end(args);
  if (n > 0) t->used += (size_t)n < room ? (size_t)n : room - 1;
}

static bool alike(const group *x, const group *y) {
  return x->state == y->state && x->pc == y->pc && x->mask == y->mask &&
         (x->state == WAITS ? x->barrier == y->barrier
                            : x->key == y->key && x->member == y->member);
}

static bool same_standing(const warp *x, const warp *y) {
  if (x->group_count != y->group_count || x->members != y->members ||
      x->live != y->live)
    return false;
  for (uint32_t k = 0; k < x->group_count; k++)
    if (!alike(&x->groups[k], &y->groups[k])) return false;
  return true;
}

static void add_lanes(text *t, const warp *w, uint32_t first, uint32_t last,
                      uint32_t lanes) {
  if (first == last) add(t, "; warp %u", first);
  else add(t, "; warps %u to %u", first, last);
  if (lanes != w->members) add(t, ", lanes 0x%08x", lanes);
}

/* What only the part that made it knows of. */
static void add_mbarrier(text *t, struct tps_sim_block *block, const warp *w,
                         const group *g) {
  size_t room = sizeof t->buffer - t->used;
  int n = tps_sim_mbarrier_describe(&block->e, w, g, t->buffer + t->used, room);
  if (n > 0) t->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_group(text *t, struct tps_sim_block *block, uint32_t first,
                      uint32_t last, const group *g) {
  const warp *w = &block->warps[first];
  const char *wait = first == last && g->mask == w->members ? "waits" : "wait";
  char where[600];
  tps_sim_insn_where(block->launch->kernel, g->pc, where, sizeof where);
  if (g->state == WAITS && g->barrier == WAIT_MBARRIER) {
    add_mbarrier(t, block, w, g);
    return;
  }
  add_lanes(t, w, first, last, g->mask);
  if (g->state == WAITS && g->barrier == WAIT_CLUSTER) {
    add(t, " %s at the cluster's barrier (%s)", wait, where);
  } else if (g->state == WAITS) {
    const barrier *b = &block->barriers[g->barrier];
    add(t, " %s at barrier %u (%s), which has %u of %u threads", wait,
        g->barrier, where, b->arrived, b->expected ? b->expected : block->live);
  } else {
    add(t, " %s for lanes 0x%08x (%s)", wait, g->member & w->live & ~g->mask,
        where);
  }
}

/* Adds what the block's groups wait for; gives where the first one does. */
static const insn *add_block(text *t, struct tps_sim_block *block) {
  uint32_t warps = block->launch->warps;
  uint32_t threads = block->launch->threads, gone = threads - block->live;
  const insn *at = NULL;
  for (uint32_t first = 0, last; first < warps; first = last + 1) {
    const warp *w = &block->warps[first];
    last = first;
    while (last + 1 < warps && same_standing(w, &block->warps[last + 1]))
      last++;
    for (uint32_t n = 0; n < w->group_count; n++) {
      add_group(t, block, first, last, &w->groups[n]);
      if (!at) at = w->groups[n].pc;
    }
  }
  if (gone) add(t, "; %u of %u threads have ended", gone, threads);
  return at;
}

/* As a finding, of the first thread that waits for others of its block. */
static void tell(const cluster *c, const insn *at, const char *text) {
  for (uint32_t k = 0; k < c->count; k++) {
    const struct tps_sim_block *block = c->blocks[k];
    for (uint32_t n = 0; block->live && n < block->launch->warps; n++) {
      const warp *w = &block->warps[n];
      const group *g = &w->groups[0];
      if (!w->group_count || g->pc != at) continue;
      tps_sim_tell_sync(&block->e, at, w, __builtin_ctz(g->mask),
                        g->state == PARKED ? "Divergent thread(s) in warp"
                                           : "Divergent thread(s) in block",
                        text + 2);
      return;
    }
  }
}

_Noreturn void tps_sim_deadlock(engine *e) {
  const cluster *c = e->block->cluster;
  text t = {.used = 0};
  const insn *first = NULL;
  for (uint32_t k = 0; k < c->count; k++) {
    struct tps_sim_block *block = c->blocks[k];
    const uint32_t *id = block->ctaid;
    if (!block->live) continue;
    if (c->count > 1) add(&t, "; block (%u,%u,%u)", id[0], id[1], id[2]);
    const insn *at = add_block(&t, block);
    if (!first) first = at;
  }
  tell(e->block->cluster, first, t.buffer);
  tps_sim_fault(e, first, -1, TPS_LAUNCH_FAILED,
                "deadlock: no thread can go on%s", t.buffer);
}
