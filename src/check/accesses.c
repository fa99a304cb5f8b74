/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Accesses against those before them. Those of a launch on the simulated device
 * are known exactly once it has run, which is later than those of what was queued
 * behind it; each waits for its turn with the clocks that it was queued with. */
#include "check/order.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_AT 256u /* pieces more than the last sweep left */

/* ---- the test ------------------------------------------------------------ */

typedef struct testing {
  tps_order *o;
  const tps_pending *p;
  tps_access_try attempt;
} testing;

static bool in_order(const tps_pending *p, const tps_visit *before) {
  return before->origin->refused || before->lane == p->visit.lane ||
         tps_clock_covers(p->clock, before->lane, before->seq) ||
         tps_clock_covers(p->host, before->lane, before->seq);
}

static void test(void *data, const tps_span *span, uint64_t first,
                 uint64_t end) {
  const testing *t = data;
  uint8_t access = t->attempt.access;
  bool reads = (access & TPS_ACCESS_READ) != 0;
  if ((reads || span->count == 0) && span->write.origin != NULL &&
      !in_order(t->p, &span->write))
    tps_order_report(t->o, &span->write, &t->attempt, first, end);
  for (uint32_t i = 0; i < span->count; i++)
    if (tps_visits_conflict(span->others[i].access, access) &&
        !in_order(t->p, &span->others[i]))
      tps_order_report(t->o, &span->others[i], &t->attempt, first, end);
}

/* Nobody has to come after it any more. */
static bool covered(void *data, const tps_visit *visit) {
  const tps_clock *host = data;
  return tps_clock_covers(host, visit->lane, visit->seq);
}

/* Memory that was there before the checker. */
static tps_place *unknown_place(tps_order *o, uint64_t memory) {
  tps_place *place = calloc(1, sizeof *place);
  if (place == NULL || !tps_table_put(&o->places, memory, place)) {
    free(place);
    o->broken = true;
    return NULL;
  }
  place->id = memory;
  place->space = TPS_SPACE_OTHER;
  place->address = o->next_address;
  place->source = "";
  o->next_address += UINT64_C(1) << 44;
  return place;
}

/* What a device tells of has no memory, but an address. */
static void access_memory(tps_order *o, const tps_pending *p,
                          const tps_touch *touch) {
  const tps_place *place = NULL;
  if (touch->bytes == 0 || touch->access == TPS_ACCESS_NONE) return;
  if (touch->memory != 0) {
    place = tps_table_get(&o->places, touch->memory);
    if (place == NULL) place = unknown_place(o, touch->memory);
    if (place == NULL) return;
  }
  tps_spans *spans =
      &o->spans[place != NULL ? place->space : (uint8_t)TPS_SPACE_SIM];
  uint64_t first = touch->first + (place != NULL ? place->address : 0);
  uint64_t end = first + touch->bytes;
  testing t = {o, p, {&p->visit, place, touch->access}};
  tps_spans_look(spans, first, end, test, &t);
  if (p->visit.origin->kind == TPS_ORIGIN_HOST)
    return; /* what is queued later comes after it anyhow */
  tps_visit visit = p->visit;
  visit.access = touch->access;
  uint8_t how = visit.access & (TPS_ACCESS_WRITE | TPS_ACCESS_STRONG);
  bool fine = how == TPS_ACCESS_WRITE
                  ? tps_spans_write(spans, first, end, &visit)
                  : tps_spans_add(spans, first, end, &visit, covered, p->host);
  if (!fine) o->broken = true;
}

/* ---- one after the other ------------------------------------------------- */

/* A view of a variable ends before the variable does. */
static void clear_memory(tps_order *o, uint64_t memory, int what) {
  const tps_place *place = tps_table_get(&o->places, memory);
  if (place == NULL ||
      (what == TPS_PENDING_FORGET && place->kind == TPS_MEMORY_BORROWED))
    return;
  if (place->bytes > 0)
    tps_spans_clear(&o->spans[place->space], place->address,
                    place->address + place->bytes);
}

static void run(tps_order *o, const tps_pending *p) {
  uint64_t memory = p->count > 0 ? p->touches[0].memory : 0;
  if (p->what != TPS_PENDING_OP) clear_memory(o, memory, p->what);
  if (p->what == TPS_PENDING_FORGET) free(tps_table_take(&o->places, memory));
  if (p->what != TPS_PENDING_OP || p->visit.origin->refused || o->broken)
    return;
  for (uint32_t i = 0; i < p->count; i++) access_memory(o, p, &p->touches[i]);
}

/* A part of a graph is one operation for all launches. */
static uint64_t waiting_key(const tps_op *op, const tps_op *graph) {
  return (uint64_t)(uintptr_t)op * UINT64_C(0x9e3779b97f4a7c15) ^
         (uint64_t)(uintptr_t)graph;
}

static tps_pending *find_waiting(const tps_order *o, const tps_op *op,
                                 const tps_op *graph) {
  tps_pending *p = tps_table_get(&o->waiting, waiting_key(op, graph));
  return p != NULL && p->op == op && p->graph == graph ? p : NULL;
}

static void drop(tps_order *o, tps_pending *p) {
  if (p->op != NULL && find_waiting(o, p->op, p->graph) == p)
    tps_table_take(&o->waiting, waiting_key(p->op, p->graph));
  tps_origin_unref(p->visit.origin);
  tps_clock_unref(p->clock);
  tps_clock_unref(p->host);
  tps_op_unref(p->op);
  tps_op_unref(p->graph);
  free(p->touches);
  free(p);
}

/* A device that was going to tell of it has had its chance: the host knows that
 * the operation is done. */
static bool is_late(const tps_order *o, const tps_pending *p) {
  return tps_clock_covers(o->host, p->visit.lane, p->visit.seq);
}

void tps_access_drain(tps_order *o) {
  while (o->first != NULL && (o->first->ready || is_late(o, o->first))) {
    tps_pending *p = o->first;
    o->first = p->next;
    if (o->first == NULL) o->last = NULL;
    run(o, p);
    drop(o, p);
  }
}

static void append(tps_order *o, tps_pending *p) {
  if (o->last != NULL) o->last->next = p;
  else o->first = p;
  o->last = p;
}

/* What has no address that is known stays as it was declared. */
static bool is_told(const tps_order *o, const tps_touch *touch) {
  const tps_place *place = tps_table_get(&o->places, touch->memory);
  return place != NULL && place->space != TPS_SPACE_OTHER;
}

/* What may not run touches nothing of the rest until that is told. */
static void keep_unknown(const tps_order *o, tps_pending *p) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->count; i++)
    if (!is_told(o, &p->touches[i])) p->touches[kept++] = p->touches[i];
  p->count = kept;
}

/* A lasting copy of what is put off, with references of its own. */
static void put_off(tps_order *o, const tps_pending *now) {
  tps_pending *p = malloc(sizeof *p);
  tps_touch *touches = malloc((now->count + 1) * sizeof *touches);
  if (p == NULL || touches == NULL) {
    free(p);
    free(touches);
    o->broken = true;
    return;
  }
  *p = *now;
  if (now->count > 0)
    memcpy(touches, now->touches, now->count * sizeof *touches);
  p->touches = touches;
  p->next = NULL;
  tps_clock_ref(p->clock);
  tps_clock_ref(p->host);
  if (p->visit.origin != NULL) p->visit.origin->refs++;
  if (p->op != NULL) tps_op_ref(p->op);
  if (p->graph != NULL) tps_op_ref(p->graph);
  append(o, p);
  if (p->ready) return;
  if (p->body) keep_unknown(o, p);
  if (!tps_table_put(&o->waiting, waiting_key(p->op, p->graph), p))
    p->ready = true;
}

/* At once, if it is known and nothing is before it. */
static void take(tps_order *o, const tps_pending *p) {
  if (o->first == NULL && p->ready) run(o, p);
  else put_off(o, p);
}

/* ---- what comes ---------------------------------------------------------- */

static int8_t direction_of(const tps_op *op) {
  if (op->kind != TPS_OP_COPY || op->touch_count != 1) return 0;
  return op->touches[0].access == TPS_ACCESS_WRITE ? 1 : -1;
}

static tps_origin *origin_of(const tps_op *op, const tps_op *graph) {
  tps_origin *origin = calloc(1, sizeof *origin);
  if (origin == NULL) return NULL;
  origin->refs = 1;
  origin->kind = op->kind;
  origin->device_kind = op->device_kind;
  origin->device = op->device;
  origin->direction = direction_of(op);
  origin->stream = op->stream;
  origin->kernel = op->kernel;
  origin->source = op->source;
  origin->line = op->line;
  origin->launch = graph != NULL ? graph->seq : 0;
  origin->launch_stream = graph != NULL ? graph->stream : 0;
  origin->launch_source = graph != NULL ? graph->source : "";
  origin->launch_line = graph != NULL ? graph->line : 0;
  return origin;
}

static void remember(tps_order *o, const tps_op *op, tps_origin *origin) {
  struct tps_recent *slot = &o->recent[o->next_recent++ % TPS_RECENT];
  tps_origin_unref(slot->origin);
  slot->op = op;
  slot->origin = origin;
  origin->refs++;
}

void tps_access_op(tps_order *o, tps_op *op, tps_op *graph, bool body,
                   const tps_point *point) {
  bool told =
      o->watching && op->kind == TPS_OP_LAUNCH && op->device_kind == TPS_SIM;
  if (op->touch_count == 0 && !told) return;
  tps_origin *origin = origin_of(op, graph);
  if (origin == NULL) {
    o->broken = true;
    return;
  }
  tps_pending p = {
      .what = TPS_PENDING_OP,
      .ready = !told,
      .body = body,
      .op = told ? op : NULL,
      .graph = told ? graph : NULL,
      .visit = {.origin = origin, .lane = point->lane, .seq = point->seq},
      .clock = point->clock,
      .host = o->host,
      .touches = op->touches,
      .count = op->touch_count};
  take(o, &p);
  if (graph == NULL) remember(o, op, origin);
  tps_origin_unref(origin);
}

void tps_access_refuse(tps_order *o, const tps_op *op) {
  tps_pending *p = find_waiting(o, op, NULL);
  if (p != NULL) p->ready = true;
}

void tps_order_host(tps_order *o, const tps_memory *memory, uint64_t first,
                    uint64_t bytes, tps_access access) {
  const tps_site *site = &memory->context->site;
  tps_origin origin = {.refs = 1,
                       .kind = TPS_ORIGIN_HOST,
                       .source = site->source,
                       .launch_source = "",
                       .line = site->line};
  tps_touch touch = {memory->id, first, bytes, (uint8_t)access};
  tps_pending p = {.what = TPS_PENDING_OP,
                   .ready = true,
                   .visit = {.origin = &origin, .lane = UINT32_MAX},
                   .host = o->host,
                   .touches = &touch,
                   .count = 1};
  tps_access_drain(o);
  if (o->broken) return;
  if (o->first == NULL) {
    run(o, &p);
    return;
  }
  tps_origin *lasting = malloc(sizeof *lasting);
  if (lasting == NULL) {
    o->broken = true;
    return;
  }
  *lasting = origin;
  p.visit.origin = lasting;
  put_off(o, &p);
  tps_origin_unref(lasting);
}

/* ---- memory -------------------------------------------------------------- */

static void change_later(tps_order *o, int what, uint64_t memory) {
  tps_touch touch = {memory, 0, 0, TPS_ACCESS_NONE};
  tps_pending p = {.ready = true, .touches = &touch, .count = 1};
  p.what = what;
  take(o, &p);
}

static void made(tps_order *o, const tps_memory *memory) {
  tps_place *place = calloc(1, sizeof *place);
  free(tps_table_take(&o->places, memory->id));
  if (place == NULL || !tps_table_put(&o->places, memory->id, place)) {
    free(place);
    o->broken = true;
    return;
  }
  place->id = memory->id;
  place->bytes = memory->bytes;
  place->kind = memory->kind;
  place->element = memory->element;
  place->source = memory->site.source != NULL ? memory->site.source : "";
  place->line = memory->site.line;
  if (memory->kind == TPS_MEMORY_ARRAY) {
    place->space = TPS_SPACE_OTHER;
    place->address = o->next_address;
    o->next_address += memory->bytes;
    return;
  }
  place->space =
      memory->device->kind == TPS_CUDA ? TPS_SPACE_CUDA : TPS_SPACE_SIM;
  place->address = memory->address;
}

void tps_order_memory(tps_order *o, const tps_memory *memory,
                      tps_memory_change what) {
  bool own = memory->kind == TPS_MEMORY_DEVICE ||
             memory->kind == TPS_MEMORY_PINNED ||
             memory->kind == TPS_MEMORY_ARRAY;
  if (memory->bytes == 0) return;
  if (what == TPS_MEMORY_USED) {
    if (tps_table_get(&o->places, memory->id) == NULL) made(o, memory);
  } else if (what == TPS_MEMORY_MADE) {
    made(o, memory);
    if (own && !o->broken) change_later(o, TPS_PENDING_CLEAR, memory->id);
  } else if (what == TPS_MEMORY_CAPTURED) {
    tps_place *place = tps_table_get(&o->places, memory->id);
    if (place != NULL) place->captured = true;
  } else if (what == TPS_MEMORY_SETTLED) {
    change_later(o, TPS_PENDING_CLEAR, memory->id);
  } else {
    change_later(o, TPS_PENDING_FORGET, memory->id);
  }
}

void tps_order_named(tps_order *o, const tps_memory *memory,
                     const char *element) {
  tps_place *place = tps_table_get(&o->places, memory->id);
  if (place != NULL) place->element = element;
}

/* ---- what a device tells ------------------------------------------------- */

void tps_order_touched(tps_order *o, const tps_op *op, const tps_op *graph,
                       const tps_touch *touches, uint32_t count) {
  tps_pending *p = find_waiting(o, op, graph);
  if (p == NULL) return;
  tps_touch *all = malloc((count + p->count + 1) * sizeof *all);
  if (all != NULL) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->count; i++)
      if (p->body || !is_told(o, &p->touches[i])) all[n++] = p->touches[i];
    for (uint32_t i = 0; i < count; i++) all[n++] = touches[i];
    free(p->touches);
    p->touches = all;
    p->count = n;
  }
  p->ready = !p->body;
}

/* ---- letting go ---------------------------------------------------------- */

void tps_access_sweep(tps_order *o) {
  size_t count = 0;
  if (o->graphs.count > o->graphs_kept * 2 + SWEEP_AT) {
    tps_points_forget(o, &o->graphs);
    o->graphs_kept = o->graphs.count;
  }
  for (int i = 0; i < TPS_SPACES; i++) count += o->spans[i].count;
  if (o->first != NULL || count < o->swept * 2 + SWEEP_AT) return;
  for (int i = 0; i < TPS_SPACES; i++)
    tps_spans_sweep(&o->spans[i], covered, o->host);
  o->swept = 0;
  for (int i = 0; i < TPS_SPACES; i++) o->swept += o->spans[i].count;
}
