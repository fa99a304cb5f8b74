/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Each access in its turn. What a launch on the simulated device touches is known
 * exactly once it has run, which is later than what is queued behind it: whatever
 * comes waits behind it, with the clocks that it was queued with. */
#include "check/order.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a device will tell of ------------------------------------------ */

/* A part of a graph is one operation for all launches; a launch may have it
 * several times, since graphs are made of graphs. */
static uint64_t waiting_key(const tps_op *op, const tps_op *graph) {
  return (uint64_t)(uintptr_t)op * UINT64_C(0x9e3779b97f4a7c15) ^
         (uint64_t)(uintptr_t)graph;
}

static bool is_of(const tps_pending *p, const tps_op *op, const tps_op *graph) {
  return p->op == op && p->graph == graph;
}

static tps_pending *find_waiting(const tps_order *o, const tps_op *op,
                                 const tps_op *graph) {
  tps_pending *p = tps_table_get(&o->waiting, waiting_key(op, graph));
  return p != NULL && is_of(p, op, graph) ? p : NULL;
}

/* The first one knows the last, so that many are soon put behind one another. */
static bool begin_waiting(tps_order *o, tps_pending *p) {
  tps_pending *first = find_waiting(o, p->op, p->graph);
  p->twin = NULL;
  p->last_twin = p;
  if (first == NULL)
    return tps_table_put(&o->waiting, waiting_key(p->op, p->graph), p);
  first->last_twin->twin = p;
  first->last_twin = p;
  return true;
}

/* Nothing where it does not wait. */
static void end_waiting(tps_order *o, const tps_pending *p) {
  tps_pending *first = find_waiting(o, p->op, p->graph), *before = first;
  uint64_t key = waiting_key(p->op, p->graph);
  if (first == p) {
    tps_table_take(&o->waiting, key);
    if (p->twin == NULL) return;
    p->twin->last_twin = p->last_twin;
    tps_table_put(&o->waiting, key, p->twin); /* it has room: one was taken */
    return;
  }
  while (before != NULL && before->twin != p) before = before->twin;
  if (before == NULL) return;
  before->twin = p->twin;
  if (first->last_twin == p) first->last_twin = before;
}

/* ---- the queue ----------------------------------------------------------- */

static void drop(tps_order *o, tps_pending *p) {
  if (p->op != NULL) end_waiting(o, p);
  if (p->visit.origin != NULL && p->visit.origin->kind == TPS_ORIGIN_HOST)
    o->host_count = 0; /* perhaps it is one of them */
  tps_origin_unref(p->visit.origin);
  tps_clock_unref(p->clock);
  tps_clock_unref(p->host);
  tps_op_unref(p->op);
  tps_op_unref(p->graph);
  free(p->touches);
  free(p);
}

/* What may not run touches nothing of the rest until that is told. */
static void keep_unknown(const tps_order *o, tps_pending *p) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->count; i++)
    if (!tps_access_is_told(o, &p->touches[i]))
      p->touches[kept++] = p->touches[i];
  p->count = p->declared = kept;
}

static int state_of(const tps_pending *p) {
  const tps_op *whole = p->graph != NULL ? p->graph : p->op;
  return atomic_load_explicit(&whole->state, memory_order_acquire);
}

/* A device that was going to tell of it has had its chance: it is done with the
 * operation, or the host knows that it is. */
static bool is_late(const tps_order *o, const tps_pending *p) {
  int state = state_of(p);
  return state == TPS_OP_DONE || state == TPS_OP_FAILED ||
         tps_clock_covers(o->host, p->visit.lane, p->visit.seq);
}

static void run_first(tps_order *o) {
  tps_pending *p = o->first;
  o->first = p->next;
  if (o->first == NULL) o->last = NULL;
  if (!p->ready && !p->body && state_of(p) == TPS_OP_FAILED)
    keep_unknown(o, p); /* it has not run */
  tps_access_run(o, p);
  drop(o, p);
}

void tps_pending_drain(tps_order *o) {
  while (o->first != NULL && (o->first->ready || is_late(o, o->first)))
    run_first(o);
}

void tps_order_finish(tps_order *o) {
  while (o->first != NULL) run_first(o);
}

static void append(tps_order *o, tps_pending *p) {
  if (o->last != NULL) o->last->next = p;
  else o->first = p;
  o->last = p;
}

/* A lasting copy of what is put off, with references of its own. NULL: no memory. */
static tps_pending *put_off(tps_order *o, const tps_pending *now) {
  tps_pending *p = malloc(sizeof *p);
  tps_touch *touches = malloc((now->count + 1) * sizeof *touches);
  if (p == NULL || touches == NULL) {
    free(p);
    free(touches);
    o->broken = true;
    return NULL;
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
  if (p->ready) return p;
  if (p->body && p->op->kind == TPS_OP_LAUNCH) keep_unknown(o, p);
  else if (p->body) p->count = 0; /* all of it will be told */
  if (!begin_waiting(o, p)) p->ready = true;
  return p;
}

void tps_pending_take(tps_order *o, const tps_pending *p) {
  if (o->first == NULL && p->ready) {
    tps_access_run(o, p);
    return;
  }
  o->host_count = 0;
  put_off(o, p);
}

/* ---- operations ---------------------------------------------------------- */

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

void tps_pending_op(tps_order *o, tps_op *op, tps_op *graph, bool body,
                    const tps_point *point) {
  bool told = op->device_kind == TPS_SIM && (op->kind == TPS_OP_LAUNCH || body);
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
  tps_pending_take(o, &p);
  if (graph == NULL) remember(o, op, origin);
  tps_origin_unref(origin);
}

static void refuse(tps_pending *p) {
  p->visit.origin->refused = true;
  p->ready = true;
}

/* What of a graph has been looked at already stays. */
static void refuse_launch(tps_order *o, const tps_op *graph) {
  for (tps_pending *p = o->first; p != NULL; p = p->next) {
    if (p->visit.origin == NULL || p->visit.origin->launch != graph->seq)
      continue;
    refuse(p);
    if (p->op != NULL) end_waiting(o, p);
  }
}

/* The latest of them: an older one may have had the same address. */
static void refuse_recent(tps_order *o, const tps_op *op) {
  for (unsigned i = 1; i <= TPS_RECENT; i++) {
    struct tps_recent *slot = &o->recent[(o->next_recent - i) % TPS_RECENT];
    if (slot->op != op) continue;
    slot->origin->refused = true;
    slot->op = NULL;
    return;
  }
}

void tps_order_refused(tps_order *o, const tps_op *op) {
  tps_pending *p = find_waiting(o, op, NULL);
  if (p != NULL) refuse(p);
  if (op->kind == TPS_OP_GRAPH) refuse_launch(o, op);
  else if (op->kind <= TPS_OP_FILL) refuse_recent(o, op);
}

/* ---- the host ------------------------------------------------------------ */

static bool goes_on(const tps_pending *p, const tps_pending *now) {
  const tps_touch *a = p->touches, *b = now->touches;
  const tps_origin *x = p->visit.origin, *y = now->visit.origin;
  if (a->memory != b->memory || a->bytes != b->bytes ||
      a->access != b->access || x->line != y->line || x->source != y->source)
    return false;
  return p->again == 0 || b->first == a->first + (p->again + 1) * p->step;
}

/* A loop over elements, or one that waits for one to change, is a touch that is put
 * off once. Only operations that are queued between make a difference. */
static bool add_to_host(tps_order *o, const tps_pending *now) {
  for (unsigned i = 0; i < o->host_count; i++) {
    tps_pending *p = o->hosts[i];
    if (p->host != now->host || !goes_on(p, now)) continue;
    if (p->again++ == 0) p->step = now->touches->first - p->touches->first;
    return true;
  }
  return false;
}

static void put_off_host(tps_order *o, tps_pending *p) {
  if (add_to_host(o, p)) return;
  tps_origin *lasting = malloc(sizeof *lasting);
  if (lasting == NULL) {
    o->broken = true;
    return;
  }
  *lasting = *p->visit.origin;
  p->visit.origin = lasting;
  tps_pending *late = put_off(o, p);
  if (o->host_count == TPS_HOSTS) o->host_count = 0;
  if (late != NULL) o->hosts[o->host_count++] = late;
  tps_origin_unref(lasting);
}

void tps_order_host(tps_order *o, const tps_memory *memory, uint64_t first,
                    uint64_t bytes, tps_access access) {
  const tps_site *site = &memory->context->site;
  tps_origin origin = {.refs = 1,
                       .kind = TPS_ORIGIN_HOST,
                       .source = site->source,
                       .launch_source = "",
                       .line = site->line};
  tps_touch touch = {memory->id, first, bytes, (uint8_t)access, 0, 0};
  tps_pending p = {.what = TPS_PENDING_OP,
                   .ready = true,
                   .visit = {.origin = &origin, .lane = UINT32_MAX},
                   .host = o->host,
                   .touches = &touch,
                   .count = 1};
  tps_access_know(o, memory);
  tps_pending_drain(o);
  if (o->broken) return;
  if (o->first == NULL) tps_access_run(o, &p);
  else put_off_host(o, &p);
}

/* ---- what a device tells ------------------------------------------------- */

/* A list in order of address, as it is made from two that are. What follows on what
 * has the same access is one with it: loops go on and on. */
typedef struct merging {
  tps_touch *list;
  uint32_t count;
  uint32_t last[2 * TPS_ACCESS_STRONG]; /* with that access, + 1 */
} merging;

static bool is_one_with(const tps_touch *before, const tps_touch *touch) {
  return before->memory == touch->memory && before->row == touch->row &&
         before->pitch == touch->pitch &&
         (touch->row == 0 ? touch->first <= before->first + before->bytes
                          : touch->first == before->first);
}

static void merge_one(merging *m, const tps_touch *touch) {
  uint32_t *last = &m->last[touch->access];
  uint64_t end = touch->first + touch->bytes;
  tps_touch *before = *last > 0 ? &m->list[*last - 1] : NULL;
  if (before != NULL && is_one_with(before, touch)) {
    if (end > before->first + before->bytes)
      before->bytes = end - before->first;
    return;
  }
  m->list[m->count++] = *touch;
  *last = m->count;
}

/* What is told of a body comes on top. False: no memory. */
static bool add_told(tps_pending *p, const tps_touch *touches, uint32_t count) {
  merging m = {.list = malloc((p->count + count + 1) * sizeof *m.list)};
  uint32_t i = p->declared, j = 0;
  if (m.list == NULL) return false;
  memcpy(m.list, p->touches, i * sizeof *m.list);
  m.count = i;
  while (i < p->count || j < count) {
    bool mine =
        j == count || (i < p->count && p->touches[i].first <= touches[j].first);
    merge_one(&m, mine ? &p->touches[i++] : &touches[j++]);
  }
  free(p->touches);
  p->touches = m.list;
  p->count = m.count;
  return true;
}

void tps_order_touched(tps_order *o, const tps_op *op, const tps_op *graph,
                       const tps_touch *touches, uint32_t count) {
  tps_pending *all = find_waiting(o, op, graph), *p = all;
  while (p != NULL && p->body) p = p->twin;
  if (p != NULL) {
    keep_unknown(o, p);
    if (!add_told(p, touches, count)) o->broken = true;
    p->ready = true;
    end_waiting(o, p);
    return;
  }
  for (p = all; p != NULL; p = p->twin)
    if (!add_told(p, touches, count)) o->broken = true;
}
