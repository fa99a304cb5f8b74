/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "device/record.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

tps_op *tps_op_new(void) {
  tps_op *op = calloc(1, sizeof *op);
  if (op == NULL) return NULL;
  op->source = "";
  atomic_init(&op->refs, 1);
  return op;
}

void tps_op_unref(tps_op *op) {
  if (op == NULL) return;
  if (atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1)
    return;
  tps_op_list_unref(op->parts);
  free(op->touches);
  free(op);
}

tps_op_list *tps_op_list_new(uint32_t count) {
  tps_op_list *list = calloc(1, sizeof *list + count * sizeof list->ops[0]);
  if (list == NULL) return NULL;
  atomic_init(&list->refs, 1);
  return list;
}

tps_op_list *tps_op_list_ref(tps_op_list *list) {
  atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
  return list;
}

void tps_op_list_unref(tps_op_list *list) {
  if (list == NULL) return;
  if (atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) != 1)
    return;
  for (uint32_t i = 0; i < list->count; i++) tps_op_unref(list->ops[i]);
  free(list);
}

int tps_op_reserve_touches(tps_op *op, uint32_t count) {
  if (count <= op->touch_capacity) return 0;
  tps_touch *touches = realloc(op->touches, count * sizeof *touches);
  if (touches == NULL) return TPS_NO_HOST_MEMORY;
  op->touches = touches;
  op->touch_capacity = count;
  return 0;
}

const char *tps_op_where(const tps_op *op, char *buffer, size_t size) {
  if (op == NULL || op->line <= 0 || op->source[0] == '\0') buffer[0] = '\0';
  else snprintf(buffer, size, "%s:%d", op->source, (int)op->line);
  return buffer;
}
