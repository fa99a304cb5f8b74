/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Copies that a thread issues and waits for later: cp.async, by element, and
 * cp.async.bulk. In the deterministic order they take place at once, and
 * waiting for groups is nothing. With a seed they are put off (see
 * engine_cluster.h). A bulk copy reads its source when it takes place, a small
 * one then or when it is issued, by chance.
 *
 * Operands of async_copy: to a, from b, bytes to read c, predicate "read
 * nothing" e. Of async_bulk: to a, from b, bytes c, mbarrier e, ranks d;
 * f the reduction, `space` and `count` the spaces of to and from.
 */
#include <stdlib.h>

#include "sim/engine_atomic.h"
#include "sim/engine_core.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define ON(mask, l) (((mask) >> (l)) & 1)
#define NO_OPERAND UINT32_MAX
#define EACH(m, l)                                                             \
  for (uint32_t m##_left = (m), l = 0;                                         \
       m##_left && (l = (uint32_t)__builtin_ctz(m##_left), true);              \
       m##_left &= m##_left - 1)

/* --- queues -------------------------------------------------------------- */

void tps_sim_async_begin(warp *w) {
  async_queue *q = w->async;
  if (!q) return;
  q->count = 0;
  memset(q->groups, 0, sizeof q->groups);
  memset(q->bulk_groups, 0, sizeof q->bulk_groups);
}

void tps_sim_async_free(warp *w) {
  if (w->async) free(w->async->ops);
  free(w->async);
}

_Noreturn static void no_memory(engine *e, const insn *i) {
  tps_sim_fault(e, i, -1, TPS_NO_HOST_MEMORY,
                "out of host memory for asynchronous copies");
}

static async_queue *queue_of(engine *e, const insn *i) {
  warp *w = e->warp;
  if (!w->async) w->async = calloc(1, sizeof *w->async);
  if (!w->async) no_memory(e, i);
  return w->async;
}

static void put_off(engine *e, const async_op *op) {
  async_queue *q = queue_of(e, op->i);
  if (q->count == q->capacity) {
    uint32_t more = q->capacity ? q->capacity * 2 : 64;
    async_op *ops = realloc(q->ops, more * sizeof *ops);
    if (!ops) no_memory(e, op->i);
    q->ops = ops;
    q->capacity = more;
  }
  q->ops[q->count] = *op;
  q->ops[q->count++].group =
      (op->kind == ASYNC_BULK ? q->bulk_groups : q->groups)[op->lane];
}

/* --- taking place -------------------------------------------------------- */

static void reduce(engine *e, const async_op *op) {
  uint32_t kind = (op->reduction - 1) & 255, type = (op->reduction - 1) >> 8;
  unsigned size = tps_sim_atomic_size(type);
  for (uint32_t at = 0; at < op->bytes; at += size) {
    uint64_t x = 0;
    memcpy(&x, op->from + at, size);
    tps_sim_atomic_apply(e, op->to + at, size, kind, type, x);
  }
}

static void copy_small(const async_op *op) {
  unsigned char data[sizeof op->data] = {0};
  const unsigned char *from = op->data;
  if (op->from) from = memcpy(data, op->from, op->given);
  memcpy(op->to, from, op->bytes);
}

static void perform(engine *e, const async_op *op) {
  if (op->kind == ASYNC_ARRIVE)
    tps_sim_mbarrier_arrive(e, op->i, op->lane, op->mbarrier);
  else if (op->kind == ASYNC_COPY) copy_small(op);
  else if (op->reduction) reduce(e, op);
  else memmove(op->to, op->from, op->bytes);
  if (op->kind == ASYNC_BULK && op->mbarrier)
    tps_sim_mbarrier_complete(e, op->i, op->lane, op->mbarrier, op->bytes);
}

static void submit(engine *e, const async_op *op) {
  if (e->block->random) put_off(e, op);
  else perform(e, op);
}

/* Performs from the front until a phase has ended. */
static bool settle_queue(engine *e, async_queue *q, bool all) {
  uint64_t phases = e->block->cluster->phases;
  uint32_t done = 0;
  while (done < q->count && (all || phases == e->block->cluster->phases))
    perform(e, &q->ops[done++]);
  q->count -= done;
  memmove(q->ops, q->ops + done, q->count * sizeof *q->ops);
  return done > 0;
}

static bool settle_block(engine *e, struct tps_sim_block *block, bool all) {
  uint64_t phases = e->block->cluster->phases;
  bool some = false;
  for (uint32_t k = 0; k < block->launch->warps; k++) {
    async_queue *q = block->warps[k].async;
    if (!q || q->count == 0) continue;
    some |= settle_queue(e, q, all);
    if (!all && phases != e->block->cluster->phases) break;
  }
  return some;
}

bool tps_sim_async_settle(engine *e) {
  const cluster *c = e->block->cluster;
  uint64_t phases = c->phases;
  bool some = false;
  if (!e->block->random) return false;
  for (uint32_t k = 0; k < c->count && phases == c->phases; k++)
    some |= settle_block(e, c->blocks[k], false);
  return some;
}

void tps_sim_async_finish(engine *e) {
  if (e->block->random) settle_block(e, e->block, true);
}

/* --- cp.async ------------------------------------------------------------ */

/* How many bytes the lane reads. */
static uint32_t bytes_read(engine *e, const insn *i, unsigned l) {
  if (i->e != NO_OPERAND && ON(*mask_of(e, i->e), l)) return 0;
  if (i->c == NO_OPERAND) return i->count;
  uint32_t bytes = row32(e, i->c)[l];
  if (bytes > i->count)
    tps_sim_fault(e, i, (int)l, TPS_LAUNCH_FAILED,
                  "cp.async of %u bytes reads %u", i->count, bytes);
  return bytes;
}

static const unsigned char *source_at(engine *e, const insn *i, unsigned l,
                                      uint64_t address, uint32_t bytes) {
  const region *r = &e->slots[i->slot];
  uint64_t offset = address - r->base;
  if (offset < r->size && r->size - offset >= bytes &&
      !(address & (i->count - 1u)))
    return r->host + offset;
  return tps_sim_reach(e, i, l, i->space, address, bytes, i->count,
                       ACCESS_LOAD);
}

static void copy_lane(engine *e, const insn *i, unsigned l) {
  uint64_t to = row64(e, i->a)[l], from = row64(e, i->b)[l];
  uint32_t bytes = bytes_read(e, i, l);
  async_op op = {.i = i, .bytes = i->count, .lane = (uint8_t)l};
  op.to = tps_sim_reach(e, i, l, TPS_PTX_SHARED, to, i->count, i->count,
                        ACCESS_STORE);
  if (bytes) {
    const unsigned char *source = source_at(e, i, l, from, bytes);
    memcpy(op.data, source, bytes);
    if (e->block->random && tps_sim_roll(e->block) & 1)
      op.from = source, op.given = bytes;
  }
  submit(e, &op);
}

HANDLER(async_copy) {
  EACH(mask, l) copy_lane(e, i, l);
  return i + 1;
}

/* imm: 1 the arrival is one of those expected anyway (.noinc) */
HANDLER(async_arrive) {
  uint64_t phases = e->block->cluster->phases;
  const uint64_t *at = row64(e, i->a);
  EACH(mask, l) {
    uint64_t *object = tps_sim_mbarrier_at(e, i, l, i->space, at[l]);
    async_op op = {
        .i = i, .kind = ASYNC_ARRIVE, .mbarrier = object, .lane = (uint8_t)l};
    if (!i->imm) tps_sim_mbarrier_expect_one(e, i, l, object);
    submit(e, &op);
  }
  return phases == e->block->cluster->phases ? i + 1 : leave(e, i + 1);
}

/* --- groups -------------------------------------------------------------- */

/* imm: 1 of bulk copies */
HANDLER(async_commit) {
  if (!e->block->random) return i + 1;
  async_queue *q = queue_of(e, i);
  uint32_t *groups = i->imm ? q->bulk_groups : q->groups;
  EACH(mask, l) groups[l]++;
  return i + 1;
}

/* Of what is due, bulk or not, `kept` groups may stay behind; UINT32_MAX: none,
 * nor what is in no group yet. */
static bool is_due(const async_queue *q, const async_op *op, uint32_t lanes,
                   bool bulk, uint32_t kept) {
  if (!ON(lanes, op->lane) || op->kind == ASYNC_ARRIVE) return false;
  if ((op->kind == ASYNC_BULK) != bulk || (bulk && op->mbarrier)) return false;
  const uint32_t *groups = bulk ? q->bulk_groups : q->groups;
  return kept == UINT32_MAX || (uint64_t)op->group + kept < groups[op->lane];
}

/* imm: WAIT_BULK and WAIT_READ; count of groups in f */
HANDLER(async_wait) {
  async_queue *q = e->warp->async;
  uint32_t left = 0;
  atomic_thread_fence(memory_order_seq_cst);
  if (!q || q->count == 0) return i + 1;
  for (uint32_t k = 0; k < q->count; k++) {
    async_op op = q->ops[k];
    if (is_due(q, &op, mask, i->imm & WAIT_BULK, i->f)) perform(e, &op);
    else q->ops[left++] = op;
  }
  q->count = left;
  return i + 1;
}

/* --- cp.async.bulk ------------------------------------------------------- */

static void check_bytes(engine *e, const insn *i, unsigned l, uint32_t bytes) {
  if (bytes % 16)
    tps_sim_fault(e, i, (int)l, TPS_MISALIGNED_ADDRESS,
                  "bulk copy of %u bytes (a multiple of 16 is needed)", bytes);
}

/* A copy for the block of a rank, at the same place in its shared memory. */
static void submit_to(engine *e, const insn *i, async_op op, uint64_t to,
                      uint64_t mbarrier, uint32_t rank) {
  uint64_t above = (uint64_t)(rank + 1) << RANK_SHIFT;
  op.to = tps_sim_reach(e, i, op.lane, i->space, (to & ~RANK_MASK) | above,
                        op.bytes, 16, ACCESS_STORE);
  op.mbarrier = tps_sim_mbarrier_at(e, i, op.lane, i->space,
                                    (mbarrier & ~RANK_MASK) | above);
  submit(e, &op);
}

static void bulk_lane(engine *e, const insn *i, unsigned l) {
  uint64_t to = row64(e, i->a)[l], mbarrier = 0;
  uint32_t bytes = row32(e, i->c)[l];
  async_op op = {.i = i,
                 .kind = ASYNC_BULK,
                 .bytes = bytes,
                 .lane = (uint8_t)l,
                 .reduction = i->f};
  check_bytes(e, i, l, bytes);
  op.from = tps_sim_reach(e, i, l, i->count, row64(e, i->b)[l], bytes, 16,
                          ACCESS_LOAD);
  if (i->e != NO_OPERAND) mbarrier = row64(e, i->e)[l];
  if (i->d != NO_OPERAND) {
    uint32_t ranks = row32(e, i->d)[l] & 0xffff;
    EACH(ranks, r) submit_to(e, i, op, to, mbarrier, r);
    return;
  }
  op.to = tps_sim_reach(e, i, l, i->space, to, bytes, 16, ACCESS_STORE);
  if (i->e != NO_OPERAND)
    op.mbarrier =
        tps_sim_mbarrier_at(e, i, l, TPS_PTX_SHARED_CLUSTER, mbarrier);
  submit(e, &op);
}

HANDLER(async_bulk) {
  uint64_t phases = e->block->cluster->phases;
  EACH(mask, l) bulk_lane(e, i, l);
  return phases == e->block->cluster->phases ? i + 1 : leave(e, i + 1);
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_async(handler **table);
void tps_sim_fill_async(handler **table) { ASYNC_OPS(FILL) }
