/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * mbarriers: objects in shared memory that count arrivals and bytes. A phase
 * ends when no arrival is pending and all bytes expected are there; the next
 * one begins at once. One host thread runs a whole cluster, so the object's 64
 * bits are changed without atomic instructions.
 *
 * A wait in a loop that does nothing else until it succeeds (the decoder proves
 * it: engine_decode_wait.c) puts its lanes to sleep until some phase ends, so
 * that one which never ends is found out as a deadlock. Any other wait lets the
 * rest go first.
 *
 * Operands: the object's address a. init: the count b. arrive: the number of
 * arrivals b, bytes to expect besides c, the state before d. tx: bytes b.
 * wait: state or parity b, predicate d. pending: state a, count d.
 */
#include <stdio.h>

#include "sim/engine_core.h"
#include "sim/engine_synccheck.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define NO_OPERAND UINT32_MAX
#define EACH(m, l)                                                             \
  for (uint32_t m##_left = (m), l = 0;                                         \
       m##_left && (l = (uint32_t)__builtin_ctz(m##_left), true);              \
       m##_left &= m##_left - 1)

/* imm of arrive, of tx and of wait. */
enum { DROP = 1 };
enum { EXPECT, COMPLETE };
enum { PARITY = 1, ASLEEP = 2 };

/* --- the object ---------------------------------------------------------- */

#define COUNT_BITS 20
#define COUNT_MOST ((1u << COUNT_BITS) - 1)
#define VALID (UINT64_C(1) << 62)

/* 20 bits pending, 20 expected, 21 of bytes with their sign, then the mark of a
 * valid object and the phase. */
typedef struct state {
  uint32_t pending, expected;
  int32_t bytes;
  bool phase;
} state;

static state unpack(uint64_t bits) {
  int32_t bytes = (int32_t)(bits >> 40 & 0x1fffff);
  return (state){.pending = (uint32_t)bits & COUNT_MOST,
                 .expected = (uint32_t)(bits >> COUNT_BITS) & COUNT_MOST,
                 .bytes = bytes >= 1 << 20 ? bytes - (1 << 21) : bytes,
                 .phase = bits >> 63};
}

static uint64_t pack(state s) {
  return (uint64_t)s.pending | (uint64_t)s.expected << COUNT_BITS |
         ((uint64_t)(uint32_t)s.bytes & 0x1fffff) << 40 | VALID |
         (uint64_t)s.phase << 63;
}

uint64_t *tps_sim_mbarrier_at(engine *e, const insn *i, unsigned lane,
                              uint8_t space, uint64_t address) {
  unsigned char *p =
      tps_sim_reach(e, i, lane, space, address, 8, 8, ACCESS_ATOMIC);
  if (!tps_sim_is_shared(e, p))
    tps_sim_fault(e, i, (int)lane, TPS_ILLEGAL_ADDRESS,
                  "the mbarrier at 0x%llx is not in shared memory",
                  (unsigned long long)address);
  return (uint64_t *)(void *)p;
}

static uint64_t *object_of(engine *e, const insn *i, unsigned lane) {
  return tps_sim_mbarrier_at(e, i, lane, i->space, row64(e, i->a)[lane]);
}

static state read(engine *e, const insn *i, unsigned lane,
                  const uint64_t *object) {
  if (!(*object & VALID))
    tps_sim_sync_fault(e, i, (int)lane, TPS_LAUNCH_FAILED, "Missing init",
                       "the mbarrier is not initialised");
  return unpack(*object);
}

/* Writes the object, whose phase may have ended. */
static void write(engine *e, uint64_t *object, state s) {
  bool over = s.pending == 0 && s.bytes == 0;
  if (over) {
    s.phase = !s.phase;
    s.pending = s.expected;
  }
  *object = pack(s);
  if (!over) return;
  if (e->launch->watch) tps_sim_watch_phase(e, object);
  e->block->cluster->phases++;
  tps_sim_cluster_wake(e->block->cluster, WAIT_MBARRIER);
}

/* --- what changes it ----------------------------------------------------- */

static void arrive(engine *e, const insn *i, unsigned lane, state *s,
                   uint32_t count) {
  if (count > s->pending)
    tps_sim_sync_fault(
        e, i, (int)lane, TPS_LAUNCH_FAILED, "Invalid arguments",
        "%u arrivals at an mbarrier of which %u of %u are pending", count,
        s->pending, s->expected);
  s->pending -= count;
}

static void add_bytes(engine *e, const insn *i, unsigned lane, state *s,
                      int64_t bytes) {
  int64_t sum = s->bytes + bytes;
  if (sum > (int64_t)COUNT_MOST || sum < -(int64_t)COUNT_MOST)
    tps_sim_sync_fault(e, i, (int)lane, TPS_LAUNCH_FAILED, "Invalid arguments",
                       "%lld bytes outstanding at an mbarrier (at most %u)",
                       (long long)sum, COUNT_MOST);
  s->bytes = (int32_t)sum;
}

void tps_sim_mbarrier_complete(engine *e, const insn *i, unsigned lane,
                               uint64_t *object, uint64_t bytes) {
  state s = read(e, i, lane, object);
  add_bytes(e, i, lane, &s, -(int64_t)bytes);
  write(e, object, s);
}

void tps_sim_mbarrier_arrive(engine *e, const insn *i, unsigned lane,
                             uint64_t *object) {
  state s = read(e, i, lane, object);
  arrive(e, i, lane, &s, 1);
  write(e, object, s);
}

void tps_sim_mbarrier_expect_one(engine *e, const insn *i, unsigned lane,
                                 uint64_t *object) {
  state s = read(e, i, lane, object);
  if (s.pending == COUNT_MOST)
    tps_sim_sync_fault(e, i, (int)lane, TPS_LAUNCH_FAILED, "Invalid arguments",
                       "more than %u arrivals pending at an mbarrier",
                       COUNT_MOST);
  s.pending++;
  *object = pack(s);
}

/* --- instructions -------------------------------------------------------- */

HANDLER(mbarrier_init) {
  const uint32_t *counts = row32(e, i->b);
  EACH(mask, l) {
    uint64_t *object = object_of(e, i, l);
    if (counts[l] == 0 || counts[l] > COUNT_MOST)
      tps_sim_sync_fault(e, i, (int)l, TPS_LAUNCH_FAILED, "Invalid arguments",
                         "an mbarrier for %u arrivals (1 to %u)", counts[l],
                         COUNT_MOST);
    *object = pack((state){.pending = counts[l], .expected = counts[l]});
  }
  tps_sim_cluster_wake(e->block->cluster, WAIT_MBARRIER);
  return leave(e, i + 1);
}

HANDLER(mbarrier_inval) {
  EACH(mask, l) * object_of(e, i, l) = 0;
  tps_sim_cluster_wake(e->block->cluster, WAIT_MBARRIER);
  return leave(e, i + 1);
}

static void arrive_lane(engine *e, const insn *i, unsigned l) {
  uint64_t *object = object_of(e, i, l);
  uint32_t count = i->b == NO_OPERAND ? 1 : row32(e, i->b)[l];
  state s = read(e, i, l, object);
  uint64_t before = *object;
  if (i->c != NO_OPERAND) add_bytes(e, i, l, &s, row32(e, i->c)[l]);
  arrive(e, i, l, &s, count);
  if (i->imm & DROP) s.expected -= count < s.expected ? count : s.expected;
  write(e, object, s);
  if (i->d != NO_OPERAND) row64(e, i->d)[l] = before;
}

HANDLER(mbarrier_arrive) {
  uint64_t phases = e->block->cluster->phases;
  EACH(mask, l) arrive_lane(e, i, l);
  return phases == e->block->cluster->phases ? i + 1 : leave(e, i + 1);
}

HANDLER(mbarrier_tx) {
  EACH(mask, l) {
    uint64_t *object = object_of(e, i, l);
    uint32_t bytes = row32(e, i->b)[l];
    if (i->imm == COMPLETE) {
      tps_sim_mbarrier_complete(e, i, l, object, bytes);
      continue;
    }
    state s = read(e, i, l, object);
    add_bytes(e, i, l, &s, bytes);
    write(e, object, s);
  }
  return leave(e, i + 1);
}

HANDLER(mbarrier_pending) {
  const uint64_t *states = row64(e, i->a);
  EACH(mask, l) row32(e, i->d)[l] = unpack(states[l]).pending;
  return i + 1;
}

/* --- waiting ------------------------------------------------------------- */

bool tps_sim_mbarrier_has_ended(engine *e, const insn *i, unsigned l,
                                uint64_t object) {
  bool now = object >> 63;
  if (i->imm & PARITY) return now != (row32(e, i->b)[l] & 1);
  return now != unpack(row64(e, i->b)[l]).phase;
}

static bool has_ended(engine *e, const insn *i, unsigned l) {
  const uint64_t *object = object_of(e, i, l);
  read(e, i, l, object); /* or a fault */
  return tps_sim_mbarrier_has_ended(e, i, l, *object);
}

/* The lanes that have got through and those that the guard excludes go on; the
 * rest sleep before this instruction. */
static const insn *fall_asleep(engine *e, const insn *i, uint32_t lanes) {
  group *g = e->group;
  uint32_t others = g->mask & ~lanes;
  if (others) tps_sim_split(e->warp, g, others)->pc = i + 1;
  g->pc = i;
  g->state = WAITS;
  g->barrier = WAIT_MBARRIER;
  return NULL;
}

/* What was put off may take place now. */
static void perhaps_settle(engine *e) {
  if (e->block->random && tps_sim_roll(e->block) % 4 == 0)
    tps_sim_async_settle(e);
}

HANDLER(mbarrier_wait) {
  uint32_t ended = 0;
  EACH(mask, l) ended |= (uint32_t)has_ended(e, i, l) << l;
  atomic_thread_fence(memory_order_acquire);
  set_mask(e, i->d, ended, mask);
  if (ended == mask) return i + 1;
  e->left -= 4;
  if (i->imm & ASLEEP) return fall_asleep(e, i, mask & ~ended);
  perhaps_settle(e);
  e->group->tired = true;
  return leave(e, i + 1);
}

int tps_sim_mbarrier_describe(engine *e, const warp *w, const group *g,
                              char *text, size_t size) {
  char where[600];
  unsigned lane = (unsigned)__builtin_ctz(g->mask);
  const uint64_t *address = row_of(e, g->frame, g->pc->a);
  uint64_t at = address[lane] & ~RANK_MASK & 0xffffffff;
  state s = {0};
  tps_sim_insn_where(e->launch->kernel, g->pc, where, sizeof where);
  if (at + 8 <= e->shared.size) {
    uint64_t bits;
    memcpy(&bits, e->shared.host + at, 8);
    s = unpack(bits);
  }
  return snprintf(text, size,
                  "; warp %u, lanes 0x%08x wait for the mbarrier at shared "
                  "address 0x%llx, where %u of %u arrivals and %d bytes are "
                  "missing (%s)",
                  w->index, g->mask, (unsigned long long)at, s.pending,
                  s.expected, s.bytes, where);
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_mbarrier(handler **table);
void tps_sim_fill_mbarrier(handler **table) { MBARRIER_OPS(FILL) }
