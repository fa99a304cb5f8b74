/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Sticky faults. The first one of a device is kept for the process, told as
 * fully as can be: a GPU says only that something broke, so the launches that
 * were not yet known to be complete are named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/parts.h"

#define SHOWN 8

/* A launch, by itself or as part of a graph that was launched. */
typedef struct suspect_op {
  const tps_op *op, *graph; /* graph: NULL for none */
} suspect_op;

/* Launches that may have caused the fault; the same kernel at the same line
 * counts once. */
typedef struct suspects {
  suspect_op *ops;
  size_t count, capacity;
  bool lost; /* a ring was too short to remember them all */
} suspects;

static bool pending(const tps_op *op, uint64_t done) {
  int state = atomic_load_explicit(&op->state, memory_order_relaxed);
  return op->seq > done && state != TPS_OP_DONE && state != TPS_OP_FAILED;
}

static void suspect(suspects *list, const tps_op *op, const tps_op *graph) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity * 2 + 64;
    suspect_op *ops = realloc(list->ops, capacity * sizeof *ops);
    if (ops == NULL) return;
    list->ops = ops;
    list->capacity = capacity;
  }
  list->ops[list->count++] = (suspect_op){op, graph};
}

/* A kernel that runs on `device` (NULL: on any). */
static bool runs_on(const tps_op *op, const tps_device *device) {
  return op->kind == TPS_OP_LAUNCH &&
         (device == NULL || (op->device_kind == (uint8_t)device->kind &&
                             op->device == device->ordinal));
}

static void suspect_graph(suspects *list, const tps_op *graph,
                          const tps_device *device) {
  const tps_op_list *parts = graph->parts;
  for (uint32_t i = 0; parts != NULL && i < parts->count; i++)
    if (runs_on(parts->ops[i], device)) suspect(list, parts->ops[i], graph);
}

static void suspect_stream(suspects *list, const tps_stream *stream,
                           const tps_device *device) {
  const struct tps_stream_parts *parts = stream->parts;
  unsigned busy = 0;
  for (unsigned i = 0; i < TPS_RING; i++) {
    const tps_op *op = parts->ring[i];
    if (op == NULL || !pending(op, parts->done_seq)) continue;
    busy++;
    if (op->kind == TPS_OP_GRAPH) suspect_graph(list, op, device);
    else if (runs_on(op, device)) suspect(list, op, NULL);
  }
  if (busy == TPS_RING && device == NULL) list->lost = true;
}

static void suspect_streams(suspects *list, const tps_stream_list *streams,
                            const tps_device *device) {
  for (const tps_stream *s = streams->first; s != NULL; s = s->parts->next)
    suspect_stream(list, s, device);
}

static uint64_t seq_of(const suspect_op *s) {
  return s->graph != NULL ? s->graph->seq : s->op->seq;
}

static int by_seq(const void *a, const void *b) {
  uint64_t x = seq_of(a), y = seq_of(b);
  return (x > y) - (x < y);
}

static bool same_place(const tps_op *a, const tps_op *b) {
  return a->kernel == b->kernel && a->source == b->source && a->line == b->line;
}

static void drop_repeats(suspects *list) {
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++) {
    size_t j = 0;
    while (j < kept && !same_place(list->ops[i].op, list->ops[j].op)) j++;
    if (j == kept) list->ops[kept++] = list->ops[i];
  }
  list->count = kept;
}

static void append(tps_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(tps_error *err, const char *format, ...) {
  size_t used = strlen(err->message);
  va_list args;
  va_start(args, format);
  vsnprintf(err->message + used, sizeof err->message - used, format, args);
  va_end(args);
}

static void append_shape(tps_error *err, const char *name,
                         const uint32_t n[3]) {
  append(err, " %s %u", name, n[0]);
  if (n[1] > 1 || n[2] > 1) append(err, "x%u", n[1]);
  if (n[2] > 1) append(err, "x%u", n[2]);
}

static void append_graph(tps_error *err, const suspect_op *s) {
  char where[512];
  if (s->graph == NULL) return;
  append(err, ", in a graph on stream %llu",
         (unsigned long long)s->graph->stream);
  if (tps_op_where(s->graph, where, sizeof where)[0] != '\0')
    append(err, ", launched at %s", where);
}

static void name_one(tps_error *err, const suspect_op *s) {
  const tps_op *op = s->op;
  snprintf(err->kernel, sizeof err->kernel, "%s", op->kernel);
  tps_op_where(op, err->where, sizeof err->where);
  err->stream = (s->graph != NULL ? s->graph : op)->stream + 1;
  append(err, " in kernel '%s'", op->kernel);
  append_shape(err, "of grid", op->grid);
  append_shape(err, "and block", op->block);
  if (s->graph == NULL)
    append(err, " on stream %llu", (unsigned long long)op->stream);
  if (err->where[0] != '\0')
    append(err, ", %s at %s", s->graph != NULL ? "captured" : "launched",
           err->where);
  append_graph(err, s);
}

/* Those of one graph stand together, since they are sorted; what launched the
 * graph follows the last of them: " in one of: a at x:1; b at x:2, c at x:3, in a
 * graph on stream 7, launched at x:9". */
static void name_several(tps_error *err, const suspects *list) {
  char where[512];
  size_t shown = list->count < SHOWN ? list->count : SHOWN;
  for (size_t i = 0; i < shown; i++) {
    const suspect_op *s = &list->ops[i];
    if (i == 0) append(err, " in one of: ");
    else append(err, s->graph == s[-1].graph ? ", " : "; ");
    append(err, "%s", s->op->kernel);
    if (tps_op_where(s->op, where, sizeof where)[0] != '\0')
      append(err, " at %s", where);
    if (i + 1 == list->count || s[1].graph != s->graph) append_graph(err, s);
  }
  if (list->count > shown)
    append(err, " and %s%zu more", list->lost ? "at least " : "",
           list->count - shown);
  else if (list->lost) append(err, " or an earlier one");
}

/* All that streams of the device run, wherever parts of their graphs do: the stream
 * of a graph may be the one that tells. Of others' streams what their graphs run
 * on this device. */
static void name_suspects(const tps_local *local, tps_error *err) {
  suspects list = {0};
  const tps_local *l = local->context->parts->locals;
  for (; l != NULL; l = l->next) {
    const tps_device *device = l == local ? NULL : local->device;
    suspect_streams(&list, &l->open, device);
    suspect_streams(&list, &l->closed, device);
  }
  if (list.count > 0) {
    qsort(list.ops, list.count, sizeof *list.ops, by_seq);
    drop_repeats(&list);
    if (list.count == 1 && !list.lost) name_one(err, &list.ops[0]);
    else name_several(err, &list);
  }
  free(list.ops);
}

int tps_failed(tps_device *device, tps_local *local, int code, tps_error *err) {
  if (!tps_code_sticky(code)) return code;
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  bool first = !tps_faulted(device);
  if (first) {
    if (err->kernel[0] == '\0' && local != NULL) name_suspects(local, err);
    if (device->kind == TPS_SIM) err->hint[0] = '\0'; /* it has told all */
    state->fault = *err;
    state->fault.code = code;
    atomic_store_explicit(&state->faulted, code, memory_order_release);
  }
  pthread_mutex_unlock(&state->lock);
  return first ? code : tps_device_fault(device, err);
}

int tps_device_fault(tps_device *device, tps_error *err) {
  tps_device_state *state = tps_state(device);
  int code = atomic_load_explicit(&state->faulted, memory_order_acquire);
  if (code == 0 || err == NULL) return code;
  char label[32];
  const tps_error *fault = &state->fault; /* constant from now on */
  *err = *fault;
  tps_device_label(device, label, sizeof label);
  snprintf(err->message, sizeof err->message, "device %s has faulted: %.1960s",
           label, fault->message);
  return code;
}
