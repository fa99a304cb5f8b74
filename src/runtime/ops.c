/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Records of operations. Each stream keeps its latest in a ring; a slot whose
 * record nobody else holds is used again in place, so that a steady stream of
 * launches allocates nothing. */
#include <string.h>

#include "runtime/parts.h"

static _Atomic uint64_t last_seq; /* +1 for each operation of the process */

/* A new record in the slot's place. */
static TPS_COLD tps_op *renew(tps_op **slot, tps_error *err) {
  tps_op *op = *slot;
  tps_op *fresh = tps_op_new();
  if (fresh == NULL || tps_op_reserve_touches(fresh, 1) != 0) {
    tps_op_unref(fresh);
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  tps_op_unref(op);
  return *slot = fresh;
}

/* The slot's record if only the slot refers to it, else a new one. */
static inline tps_op *reuse(tps_op **slot, tps_error *err) {
  tps_op *op = *slot;
  if (op != NULL && atomic_load_explicit(&op->refs, memory_order_acquire) == 1)
    return op;
  return renew(slot, err);
}

static TPS_COLD void drop_parts(tps_op *op) {
  tps_op_list_unref(op->parts);
  op->parts = NULL;
}

static inline void reset(tps_op *op, const tps_stream *stream,
                         tps_op_kind kind) {
  op->kind = (uint8_t)kind;
  op->device_kind = (uint8_t)stream->device->kind;
  op->device = stream->device->ordinal;
  op->context = stream->context->id;
  op->stream = stream->id;
  op->event = 0;
  op->kernel = NULL;
  op->shared = 0;
  op->queued_ns = 0;
  op->touch_count = 0;
  if (TPS_UNLIKELY(op->parts != NULL && kind != TPS_OP_GRAPH)) drop_parts(op);
  if (kind != TPS_OP_LAUNCH) {
    memset(op->grid, 0, sizeof op->grid);
    memset(op->block, 0, sizeof op->block);
    memset(op->cluster, 0, sizeof op->cluster);
  }
  atomic_store_explicit(&op->state, TPS_OP_QUEUED, memory_order_relaxed);
  atomic_store_explicit(&op->started_ns, 0, memory_order_relaxed);
  atomic_store_explicit(&op->finished_ns, 0, memory_order_relaxed);
}

tps_op *tps_op_begin(tps_stream *stream, tps_op_kind kind, tps_error *err) {
  struct tps_stream_parts *parts = stream->parts;
  tps_op *op = reuse(&parts->ring[parts->next_op % TPS_RING], err);
  if (op == NULL) return NULL;
  parts->next_op++;
  reset(op, stream, kind);
  op->source = stream->context->site.source;
  op->line = stream->context->site.line;
  op->seq = atomic_fetch_add_explicit(&last_seq, 1, memory_order_relaxed) + 1;
  stream->last_seq = op->seq;
  return op;
}

tps_op *tps_op_internal(tps_stream *stream, tps_op_kind kind, tps_error *err) {
  tps_op *op = reuse(&stream->parts->local->scratch, err);
  if (op == NULL) return NULL;
  reset(op, stream, kind);
  op->source = "";
  op->line = 0;
  op->seq = stream->last_seq;
  return op;
}

int tps_op_touch(tps_op *op, const tps_memory *memory, uint64_t first,
                 uint64_t bytes, tps_access access, tps_error *err) {
  if (op->touch_count >= op->touch_capacity &&
      tps_op_reserve_touches(op, op->touch_capacity * 2 + 2) != 0)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  if (access != TPS_ACCESS_NONE) tps_memory_changed(memory, TPS_MEMORY_USED);
  op->touches[op->touch_count++] =
      (tps_touch){memory->id, first, bytes, (uint8_t)access, 0, 0};
  return 0;
}

static bool is_host(const tps_memory *memory) {
  return memory == NULL || memory->kind == TPS_MEMORY_PINNED;
}

static tps_route route(const tps_memory *to, const tps_memory *from) {
  if (is_host(to)) return is_host(from) ? TPS_ROUTE_HOST : TPS_ROUTE_OUT;
  if (is_host(from)) return TPS_ROUTE_IN;
  return to->device == from->device ? TPS_ROUTE_WITHIN : TPS_ROUTE_ACROSS;
}

void tps_op_set_copy(tps_op *op, const tps_memory *to, const tps_memory *from,
                     uint64_t bytes) {
  op->bytes = bytes;
  op->route = (uint8_t)route(to, from);
}

static void set_rows(tps_touch *touch, const tps_rows *rows, uint64_t pitch) {
  if (pitch == rows->bytes) return;
  touch->row = (uint32_t)rows->bytes;
  touch->pitch = (uint32_t)pitch;
}

void tps_op_set_rows(tps_op *op, const tps_rows *rows) {
  if (rows->count == 1) return; /* the pitches of others fit in 31 bits */
  set_rows(&op->touches[0], rows, rows->from_pitch);
  set_rows(&op->touches[1], rows, rows->to_pitch);
}
