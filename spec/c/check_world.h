/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a test of the order check has to itself: three streams, one memory, and a
 * checker that is told what the test says.
 */
#ifndef TPS_SPEC_CHECK_WORLD_H
#define TPS_SPEC_CHECK_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "check/order.h"

typedef struct world {
  tps_context context;
  tps_device device;
  tps_stream streams[3];
  tps_memory memory;
  tps_order *o;
} world;

static inline void open_world(world *w) {
  memset(w, 0, sizeof *w);
  tps_report_clear();
  w->context.id = 1;
  w->context.site.source = "";
  w->device.kind = TPS_SIM;
  for (int i = 0; i < 3; i++) {
    w->streams[i].context = &w->context;
    w->streams[i].device = &w->device;
    w->streams[i].id = (uint64_t)i + 1;
  }
  w->memory.context = &w->context;
  w->memory.device = &w->device;
  w->memory.kind = TPS_MEMORY_DEVICE;
  w->memory.id = 100;
  w->memory.address = 0x1000;
  w->memory.bytes = 64;
  w->o = tps_order_new();
  assert_non_null(w->o);
  tps_order_memory(w->o, &w->memory, TPS_MEMORY_MADE);
}

static inline size_t close_world(world *w) {
  assert_false(w->o->broken);
  tps_order_free(w->o);
  size_t count = tps_report_count();
  tps_report_clear();
  return count;
}

/* An operation of stream `s` at a line, on bytes of the memory. */
static inline tps_op *new_op(const world *w, int s, tps_op_kind kind, int line,
                             uint64_t first, uint64_t bytes,
                             tps_access access) {
  tps_op *op = tps_op_new();
  assert_non_null(op);
  assert_int_equal(tps_op_reserve_touches(op, 1), 0);
  op->kind = (uint8_t)kind;
  op->device_kind = TPS_SIM;
  op->stream = w->streams[s].id;
  op->line = line;
  op->touches[0] =
      (tps_touch){w->memory.id, first, bytes, (uint8_t)access, 0, 0};
  op->touch_count = 1;
  return op;
}

static inline tps_op *queue(world *w, int s, tps_op_kind kind, int line,
                            uint64_t first, uint64_t bytes, tps_access access) {
  tps_op *op = new_op(w, s, kind, line, first, bytes, access);
  tps_order_queued(w->o, op, &w->streams[s]);
  return op;
}

static inline void fill(world *w, int s, int line, uint64_t first,
                        uint64_t bytes) {
  tps_op_unref(queue(w, s, TPS_OP_FILL, line, first, bytes, TPS_ACCESS_WRITE));
}

static inline tps_op *launch(world *w, int s, int line) {
  return queue(w, s, TPS_OP_LAUNCH, line, 0, 64, TPS_ACCESS_BOTH);
}

static inline void tell(world *w, tps_op *op, uint64_t first, uint64_t bytes) {
  tps_touch touch = {0, w->memory.address + first, bytes, TPS_ACCESS_WRITE, 0,
                     0};
  tps_order_touched(w->o, op, NULL, &touch, 1);
  tps_op_unref(op);
}

static inline void wait_for(world *w, int s) {
  tps_wait_note wait = {
      .context = &w->context, .device = &w->device, .stream = &w->streams[s]};
  tps_order_waited(w->o, &wait);
}

#endif
