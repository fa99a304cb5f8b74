/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a block's threads wait for when none of them can go on, or when a launch is
 * given up in which others go on for ever: each barrier with those who are there and
 * how many it needs, each synchronization of a warp with the lanes that don't come,
 * and the lines of all. Warps that stand alike are told together.
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
  if (g->state == RUNS) {
    add(t, " %s (%s)", wait[4] ? "goes on" : "go on", where);
  } else if (g->state == WAITS && g->barrier == WAIT_CLUSTER) {
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

static void add_block(text *t, struct tps_sim_block *block) {
  uint32_t warps = block->launch->warps;
  uint32_t threads = block->launch->threads, gone = threads - block->live;
  for (uint32_t first = 0, last; first < warps; first = last + 1) {
    const warp *w = &block->warps[first];
    last = first;
    while (last + 1 < warps && same_standing(w, &block->warps[last + 1]))
      last++;
    for (uint32_t n = 0; n < w->group_count; n++)
      add_group(t, block, first, last, &w->groups[n]);
  }
  if (gone) add(t, "; %u of %u threads have ended", gone, threads);
}

/* What all blocks of a cluster wait for. */
static void add_cluster(text *t, const cluster *c) {
  for (uint32_t k = 0; k < c->count; k++) {
    struct tps_sim_block *block = c->blocks[k];
    const uint32_t *id = block->ctaid;
    if (!block->live) continue;
    if (c->count > 1) add(t, "; block (%u,%u,%u)", id[0], id[1], id[2]);
    add_block(t, block);
  }
}

/* The first lanes of a cluster that wait. */
typedef struct waiter {
  const struct tps_sim_block *block;
  const warp *warp;
  const group *group; /* NULL: there are none */
} waiter;

static waiter first_to_wait(const cluster *c) {
  for (uint32_t k = 0; k < c->count; k++) {
    const struct tps_sim_block *block = c->blocks[k];
    for (uint32_t n = 0; block->live && n < block->launch->warps; n++) {
      const warp *w = &block->warps[n];
      for (uint32_t j = 0; j < w->group_count; j++)
        if (w->groups[j].state != RUNS)
          return (waiter){block, w, &w->groups[j]};
    }
  }
  return (waiter){NULL, NULL, NULL};
}

/* As a finding, of those lanes. */
static void tell(const waiter *w, const text *t) {
  tps_sim_tell_sync(&w->block->e, w->group->pc, w->warp,
                    __builtin_ctz(w->group->mask),
                    w->group->state == PARKED ? "Divergent thread(s) in warp"
                                              : "Divergent thread(s) in block",
                    t->buffer + 2);
}

_Noreturn void tps_sim_deadlock(engine *e) {
  const cluster *c = e->block->cluster;
  waiter first = first_to_wait(c);
  text t = {.used = 0};
  add_cluster(&t, c);
  tell(&first, &t);
  tps_sim_fault(e, first.group->pc, -1, TPS_LAUNCH_FAILED,
                "deadlock: no thread can go on%s", t.buffer);
}

bool tps_sim_block_give_up(tps_sim_block *block, char *to, size_t size) {
  waiter first = first_to_wait(block->cluster);
  text t = {.used = 0};
  if (!first.group) return false;
  add_cluster(&t, block->cluster);
  snprintf(to, size, "%s", t.buffer);
  add(&t, "; the launch is given up, since the others don't end");
  tell(&first, &t);
  return true;
}
