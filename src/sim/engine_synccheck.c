/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A thread that has not arrived at a barrier of the whole block when this lets the
 * others go has ended. Since its last barrier it may have been at joins whose barriers
 * it left out; so may those who have arrived. If it has been at one of this barrier's
 * joins more often than they, it has left this one out; else it has returned early,
 * as threads may. Once judged, it is not looked at again.
 */
#include "sim/engine_synccheck.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/engine_finding.h"
#include "sim/engine_joins.h"

/* What is told of one instruction, once a launch. */
enum {
  TOLD_PLACES = 1,
  TOLD_COUNTS = 2,
  TOLD_LEFT_OUT = 4,
  TOLD_NO_WAIT = 8,
  TOLD_MEMBERS = 16
};

/* The first to arrive at a barrier. */
typedef struct arrival {
  const insn *at, *call; /* call: where the kernel itself is meanwhile */
  const warp *warp;
  unsigned lane;
  uint32_t count;
} arrival;

/* What the lanes of a warp have left out since they were at a barrier. */
typedef struct marks {
  uint32_t judged; /* lanes that ended before a barrier was let go */
  uint32_t dirty;  /* lanes with a count */
  uint32_t open[MOST_JOINS + 1];
  uint8_t times[MOST_JOINS + 1][LANES];
} marks;

typedef struct sync_state {
  atomic_uchar *told; /* by instruction, of the launch */
  arrival first[BARRIERS];
  arrival alone[BARRIERS]; /* the first that did not wait */
  uint32_t waited;         /* barriers at which a thread has waited */
  uint8_t times[BARRIERS][MOST_JOINS + 1]; /* of the first */
  uint32_t warp_count, join_count;
  marks *warps; /* NULL: without joins */
} sync_state;

/* --- a launch and its blocks --------------------------------------------- */

static void *block_new(void *launch, struct tps_sim_block *block) {
  sync_state *s = calloc(1, sizeof *s);
  if (s) s->told = launch;
  if (s && block->launch->kernel->joins) {
    s->warp_count = block->launch->warps;
    s->join_count = block->launch->kernel->joins->count;
    s->warps = calloc(s->warp_count, sizeof *s->warps);
  }
  block->watch->sync = s;
  return s;
}

static void block_begin(void *launch, void *block) {
  sync_state *s = block;
  (void)launch;
  memset(s->first, 0, sizeof s->first);
  memset(s->alone, 0, sizeof s->alone);
  s->waited = 0;
  for (uint32_t k = 0; s->warps && k < s->warp_count; k++) {
    marks *w = &s->warps[k];
    w->judged = w->dirty = 0;
    memset(w->open, 0, (s->join_count + 1) * sizeof w->open[0]);
    memset(w->times, 0, (s->join_count + 1) * sizeof w->times[0]);
  }
}

static void block_free(void *launch, void *block) {
  (void)launch;
  free(((sync_state *)block)->warps);
  free(block);
}

static void on_sync(void *launch, void *block, engine *e, watch_sync what,
                    uint32_t lanes, unsigned number);

const watch_part tps_sim_synccheck = {.wants = TPS_WATCH_BARRIER,
                                      .launch_new = tps_sim_watch_told_new,
                                      .launch_free = free,
                                      .block_new = block_new,
                                      .block_begin = block_begin,
                                      .block_free = block_free,
                                      .sync = on_sync};

/* --- telling ------------------------------------------------------------- */

static bool is_news(const engine *e, const insn *i, unsigned what) {
  atomic_uchar *told = e->block->watch->sync->told;
  told += i - e->launch->kernel->insns;
  return !(atomic_fetch_or(told, (unsigned char)what) & what);
}

static void begin(finding *f, const engine *e, const insn *i, const warp *w,
                  int lane, const char *title) {
  tps_sim_finding_begin(f, TPS_WATCH_BARRIER, "Barrier error detected. %s.",
                        title);
  tps_sim_finding_at(f, e, i);
  if (lane >= 0) tps_sim_finding_by(f, e, w, (unsigned)lane);
}

void tps_sim_tell_sync(const engine *e, const insn *i, const warp *w, int lane,
                       const char *title, const char *what) {
  finding f;
  if (!tps_watched(TPS_WATCH_BARRIER)) return;
  begin(&f, e, i, w, lane, title);
  while (*what) {
    size_t length = strcspn(what, ";");
    tps_sim_finding_add(&f, "%.*s", (int)length, what);
    what += length;
    what += strspn(what, "; ");
  }
  tps_sim_finding_tell(&f, e->launch->config.op);
}

static const char *where(const engine *e, const insn *i, char *text,
                         size_t size) {
  return tps_sim_insn_where(e->launch->kernel, i, text, size);
}

/* --- joins --------------------------------------------------------------- */

void tps_sim_sync_joins(engine *e, const insn *i, uint32_t lanes) {
  const sync_state *s = e->block->watch->sync;
  const struct tps_sim_kernel *kernel = e->launch->kernel;
  if (!s || !s->warps || e->group->depth) return;
  marks *w = &s->warps[e->warp->index];
  unsigned join = tps_sim_join_at(kernel, i);
  uint32_t missed = join ? w->open[join] & lanes : 0;
  w->open[join] &= ~lanes;
  w->dirty |= missed;
  for (uint32_t m = missed; m; m &= m - 1) {
    uint8_t *times = &w->times[join][__builtin_ctz(m)];
    if (*times < UINT8_MAX) ++*times;
  }
  w->open[tps_sim_join_opened(kernel, i)] |= lanes;
}

/* Lanes are at a barrier, the first of them as the first of all if `times` is to
 * hold what they have left out before. */
static void begin_anew(const engine *e, marks *w, uint32_t lanes,
                       uint8_t *times) {
  uint32_t count = e->launch->kernel->joins->count;
  unsigned lane = (unsigned)__builtin_ctz(lanes);
  for (uint32_t k = 0; k <= count; k++) {
    if (times) times[k] = w->times[k][lane];
    w->open[k] &= ~lanes;
    for (uint32_t m = lanes & w->dirty; m; m &= m - 1)
      w->times[k][__builtin_ctz(m)] = 0;
  }
  w->dirty &= ~lanes;
}

/* --- barriers ------------------------------------------------------------ */

/* Threads that a count stands for. */
static uint32_t threads_of(const engine *e, uint32_t count) {
  return count ? count : e->launch->warps * LANES;
}

static void tell_counts(engine *e, const insn *i, unsigned lane, unsigned id,
                        uint32_t count, const arrival *other) {
  char there[600];
  finding f;
  if (!is_news(e, i, TOLD_COUNTS)) return;
  begin(&f, e, i, e->warp, (int)lane, "Invalid arguments");
  tps_sim_finding_add(&f, "barrier %u is for %u threads here, for %u at %s", id,
                      threads_of(e, count), threads_of(e, other->count),
                      where(e, other->at, there, sizeof there));
  tps_sim_finding_tell(&f, e->launch->config.op);
}

static void tell_places(engine *e, const insn *i, unsigned lane, unsigned id,
                        const arrival *other) {
  char there[600];
  uint32_t t[3];
  finding f;
  if (!is_news(e, i, TOLD_PLACES)) return;
  begin(&f, e, i, e->warp, (int)lane, "Divergent thread(s) in block");
  tps_sim_thread_of(e, other->warp, other->lane, t);
  tps_sim_finding_add(&f,
                      "thread (%u,%u,%u) is at barrier %u in %s: all threads "
                      "of a block have to come to the same one",
                      t[0], t[1], t[2], id,
                      where(e, other->at, there, sizeof there));
  tps_sim_finding_tell(&f, e->launch->config.op);
}

/* Where the kernel itself is while a lane is at `i`. */
static const insn *outermost(engine *e, const insn *i, unsigned lane) {
  const struct tps_sim_kernel *kernel = e->launch->kernel;
  const frame *f = e->group->frame;
  for (uint32_t depth = e->group->depth; depth > 0; depth--) {
    const uint32_t *pc = frame_row(f, f->of->return_pc);
    i = kernel->insns + pc[lane] - 1;
    f = tps_sim_frame(e, depth - 1, tps_sim_function_of(kernel, i));
  }
  return i;
}

void tps_sim_sync_arrives(engine *e, const insn *i, uint32_t lanes, unsigned id,
                          uint32_t count, bool waits) {
  sync_state *s = e->block->watch->sync;
  if (!s) return;
  unsigned lane = (unsigned)__builtin_ctz(lanes);
  arrival *first = &s->first[id];
  arrival now = {i, outermost(e, i, lane), e->warp, lane, count};
  if (waits) s->waited |= 1u << id;
  else if (!s->alone[id].at) s->alone[id] = now;
  if (s->warps && !count)
    begin_anew(e, &s->warps[e->warp->index], lanes,
               first->at ? NULL : s->times[id]);
  if (!first->at) *first = now;
  else if (threads_of(e, first->count) != threads_of(e, count))
    tell_counts(e, i, lane, id, count, first);
  else if (first->at != i && !count && tps_sim_is_aligned_barrier(i) &&
           tps_sim_is_aligned_barrier(first->at))
    tell_places(e, i, lane, id, first);
}

/* --- barriers left out --------------------------------------------------- */

/* The join of the barrier at which an ended lane has been too often, or 0. */
static unsigned join_of_absent(const engine *e, const sync_state *s,
                               unsigned id, unsigned k, unsigned lane) {
  const struct tps_sim_kernel *kernel = e->launch->kernel;
  for (unsigned join = 1; join <= kernel->joins->count; join++)
    if (s->warps[k].times[join][lane] > s->times[id][join] &&
        tps_sim_is_join_of(kernel, s->first[id].call, join))
      return join;
  return 0;
}

static const insn *join_insn(const struct tps_sim_kernel *kernel,
                             unsigned join) {
  const insn *i = kernel->main->entry;
  while (i < kernel->main->end && tps_sim_join_at(kernel, i) != join) i++;
  return i;
}

/* Threads that have left a barrier out, the first of them and its join. */
typedef struct absent {
  uint32_t count;
  const warp *warp;
  unsigned lane, join;
} absent;

/* Looks at those who have ended since a barrier was let go before. */
static absent judge(const engine *e, unsigned id, const sync_state *s) {
  absent a = {0};
  for (uint32_t k = 0; k < e->launch->warps; k++) {
    const warp *w = &e->block->warps[k];
    uint32_t ended = w->members & ~w->live & ~s->warps[k].judged;
    s->warps[k].judged |= ended;
    for (uint32_t m = ended & s->warps[k].dirty; m; m &= m - 1) {
      unsigned lane = (unsigned)__builtin_ctz(m);
      unsigned join = join_of_absent(e, s, id, k, lane);
      if (join && !a.count++) a.warp = w, a.lane = lane, a.join = join;
    }
  }
  return a;
}

/* The barrier lets all go but those who have left it out: the rest of their warp
 * is here, which is worse, or of other warps. */
static void check_left_out(engine *e, unsigned id, const sync_state *s) {
  const arrival *first = &s->first[id];
  absent a = judge(e, id, s);
  if (!a.count || !is_news(e, first->at, TOLD_LEFT_OUT)) return;
  char there[600];
  uint32_t t[3];
  finding f;
  if (a.warp->live)
    begin(&f, e, first->at, a.warp, __builtin_ctz(a.warp->live),
          "Divergent thread(s) in warp");
  else
    begin(&f, e, first->at, first->warp, (int)first->lane,
          "Divergent thread(s) in block");
  tps_sim_thread_of(e, a.warp, a.lane, t);
  tps_sim_finding_add(
      &f, "%u of %u threads never come to barrier %u, thread (%u,%u,%u) first:",
      a.count, e->launch->threads, id, t[0], t[1], t[2]);
  tps_sim_finding_add(
      &f, "it went on at %s without it and has ended",
      where(e, join_insn(e->launch->kernel, a.join), there, sizeof there));
  tps_sim_finding_tell(&f, e->launch->config.op);
}

static void on_sync(void *launch, void *block, engine *e, watch_sync what,
                    uint32_t lanes, unsigned number) {
  sync_state *s = block;
  (void)launch, (void)lanes;
  if (what != SYNC_RELEASE) return;
  const arrival *first = &s->first[number];
  bool partly = first->at && !first->count;
  if (partly && e->block->live < e->launch->threads && s->warps)
    check_left_out(e, number, s);
  memset(&s->first[number], 0, sizeof s->first[number]);
}

void tps_sim_sync_ended(engine *e) {
  const sync_state *s = e->block->watch->sync;
  if (!s) return;
  for (unsigned id = 0; id < BARRIERS; id++) {
    const arrival *a = &s->alone[id];
    finding f;
    if (!a->at || s->waited >> id & 1 || !is_news(e, a->at, TOLD_NO_WAIT))
      continue;
    begin(&f, e, a->at, a->warp, (int)a->lane, "Missing wait");
    tps_sim_finding_add(&f, "no thread of the block waits at barrier %u", id);
    tps_sim_finding_tell(&f, e->launch->config.op);
  }
}

/* --- masks --------------------------------------------------------------- */

void tps_sim_sync_members(engine *e, const insn *i, uint32_t lanes,
                          uint32_t member) {
  uint32_t outside = lanes & ~member;
  finding f;
  if (!e->block->watch->sync || !outside || !is_news(e, i, TOLD_MEMBERS))
    return;
  unsigned lane = (unsigned)__builtin_ctz(outside);
  begin(&f, e, i, e->warp, (int)lane, "Invalid arguments");
  tps_sim_finding_add(&f, "the mask 0x%08x does not name lane %u, which calls",
                      member, lane);
  tps_sim_finding_tell(&f, e->launch->config.op);
}
