/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Recording: an observer hears of each operation as it is queued, a watch when
 * it ran. Both are called while others hold locks, so all that is done here is
 * to write it down. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "timeline/parts.h"

/* ---- operations that have not ended -------------------------------------- */

static size_t slot_of(const tps_timeline *t, const tps_op *op) {
  uint64_t h = (uint64_t)(uintptr_t)op * 0x9e3779b97f4a7c15u;
  return (size_t)(h >> 20) & (t->open_slots - 1);
}

static tps_open_op *find_open(const tps_timeline *t, const tps_op *op) {
  if (t->open_slots == 0) return NULL;
  size_t i = slot_of(t, op);
  while (t->open[i].op != NULL && t->open[i].op != op)
    i = (i + 1) & (t->open_slots - 1);
  return t->open[i].op == op ? &t->open[i] : NULL;
}

static void put_open(tps_timeline *t, tps_open_op entry) {
  size_t i = slot_of(t, entry.op);
  while (t->open[i].op != NULL) i = (i + 1) & (t->open_slots - 1);
  t->open[i] = entry;
}

static bool grow_open(tps_timeline *t) {
  size_t before = t->open_slots;
  if (2 * (t->open_count + 1) <= before) return true;
  tps_open_op *old = t->open;
  size_t slots = before == 0 ? 256 : 2 * before;
  tps_open_op *fresh = calloc(slots, sizeof *fresh);
  if (fresh == NULL) return false;
  t->open = fresh;
  t->open_slots = slots;
  for (size_t i = 0; i < before; i++)
    if (old[i].op != NULL) put_open(t, old[i]);
  free(old);
  return true;
}

/* What stood after it, up to the next empty slot, may have to move up. */
static void take_open(tps_timeline *t, tps_open_op *entry) {
  size_t mask = t->open_slots - 1, hole = (size_t)(entry - t->open), i = hole;
  tps_op_unref(entry->op);
  t->open_count--;
  for (;;) {
    i = (i + 1) & mask;
    if (t->open[i].op == NULL) break;
    size_t home = slot_of(t, t->open[i].op);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    t->open[hole] = t->open[i];
    hole = i;
  }
  t->open[hole].op = NULL;
}

/* ---- items and spans ----------------------------------------------------- */

/* Room for one more of `size` bytes; false: it is dropped. */
static bool make_room(tps_timeline *t, void **array, size_t count,
                      size_t *capacity, size_t size) {
  if (count < *capacity) return true;
  size_t more = *capacity == 0 ? 1024 : 2 * *capacity;
  if (more > t->limit) more = t->limit;
  void *grown = count < more ? realloc(*array, more * size) : NULL;
  if (grown == NULL) {
    t->dropped++;
    return false;
  }
  *array = grown;
  *capacity = more;
  return true;
}

static uint64_t bytes_of(const tps_op *op) {
  switch ((tps_op_kind)op->kind) {
  case TPS_OP_COPY: return op->bytes;
  case TPS_OP_FILL:
  case TPS_OP_ALLOC:
  case TPS_OP_FREE: return op->touch_count > 0 ? op->touches[0].bytes : 0;
  default: return 0;
  }
}

/* NULL: dropped. */
static tps_timeline_item *add_item(tps_timeline *t, const tps_op *op) {
  void *items = t->items;
  bool room = make_room(t, &items, t->count, &t->capacity, sizeof *t->items);
  t->items = items;
  if (!room) return NULL;
  tps_timeline_item *item = &t->items[t->count++];
  *item = (tps_timeline_item){
      .kind = op->kind,
      .device_kind = op->device_kind,
      .route = op->kind == TPS_OP_COPY ? op->route : 0,
      .device = op->device,
      .line = op->line,
      .context = op->context,
      .stream = op->stream,
      .event = op->kind != TPS_OP_HOST ? op->event : 0,
      .order = op->seq,
      .bytes = bytes_of(op),
      .shared = op->kind == TPS_OP_LAUNCH ? op->shared : 0,
      .kernel = op->kernel,
      .source = op->source,
      .queued_ns = op->queued_ns,
  };
  memcpy(item->grid, op->grid, sizeof item->grid);
  memcpy(item->block, op->block, sizeof item->block);
  return item;
}

/* One whose end there will be news of. */
static void add_open(tps_timeline *t, tps_op *op) {
  if (!grow_open(t)) {
    t->dropped++;
    return;
  }
  if (add_item(t, op) == NULL) return;
  put_open(t, (tps_open_op){tps_op_ref(op), (uint32_t)(t->count - 1)});
  t->open_count++;
}

/* NULL: dropped. */
static tps_timeline_span *add_span(tps_timeline *t) {
  void *spans = t->spans;
  bool room =
      make_room(t, &spans, t->span_count, &t->span_capacity, sizeof *t->spans);
  t->spans = spans;
  if (!room) return NULL;
  tps_timeline_span *span = &t->spans[t->span_count++];
  memset(span, 0, sizeof *span);
  span->source = "";
  return span;
}

/* ---- what is heard ------------------------------------------------------- */

static bool is_ours(const tps_timeline *t, uint64_t context) {
  return t->context == 0 || t->context == context;
}

static void queued(void *data, tps_op *op, const tps_stream *stream) {
  tps_timeline *t = data;
  (void)stream;
  if (!is_ours(t, op->context)) return;
  pthread_mutex_lock(&t->lock);
  if (op->device < TPS_TIMELINE_DEVICES)
    t->used[op->device_kind][op->device] = true;
  if (op->kind == TPS_OP_ALLOC || op->kind == TPS_OP_FREE) add_item(t, op);
  else add_open(t, op);
  pthread_mutex_unlock(&t->lock);
}

static bool has_failed(tps_op *op) {
  return atomic_load_explicit(&op->state, memory_order_acquire) ==
         TPS_OP_FAILED;
}

/* Lock held. A part has no record of its own launch: it takes the graph's. */
static void part_ran(tps_timeline *t, tps_op *op, const tps_op *graph,
                     uint64_t started_ns, uint64_t finished_ns) {
  const tps_open_op *open = find_open(t, graph);
  if (open == NULL) return;
  uint32_t whole = open->item;
  tps_timeline_item *item = add_item(t, op);
  if (item == NULL) return;
  const tps_timeline_item *of = &t->items[whole];
  item->graph = whole + 1;
  item->stream = of->stream;
  item->context = of->context;
  item->queued_ns = of->queued_ns;
  item->order = of->order;
  item->started_ns = started_ns;
  item->finished_ns = finished_ns;
  item->failed = has_failed(op);
}

static void whole_ran(tps_timeline *t, const tps_op *op, uint64_t started_ns,
                      uint64_t finished_ns) {
  tps_open_op *open = find_open(t, op);
  if (open == NULL) return;
  tps_timeline_item *item = &t->items[open->item];
  item->started_ns = started_ns;
  item->finished_ns = finished_ns;
  item->failed = has_failed(open->op);
  take_open(t, open);
}

static void ran(void *data, tps_op *op, tps_op *graph, uint64_t started_ns,
                uint64_t finished_ns) {
  tps_timeline *t = data;
  pthread_mutex_lock(&t->lock);
  if (graph != NULL) part_ran(t, op, graph, started_ns, finished_ns);
  else whole_ran(t, op, started_ns, finished_ns);
  pthread_mutex_unlock(&t->lock);
}

/* Most are the last that was queued. */
static void refused(void *data, const tps_op *op) {
  tps_timeline *t = data;
  pthread_mutex_lock(&t->lock);
  tps_open_op *open = find_open(t, op);
  if (open != NULL) {
    t->items[open->item].failed = true;
    take_open(t, open);
  } else if (t->count > 0 && t->items[t->count - 1].order == op->seq &&
             t->items[t->count - 1].graph == 0) {
    t->items[t->count - 1].failed = true;
  }
  pthread_mutex_unlock(&t->lock);
}

#define MERGE_NS 5000u /* waits of one call follow each other so closely */

static void held(void *data, const tps_context *context, uint64_t began_ns) {
  tps_timeline *t = data;
  if (!is_ours(t, context->id)) return;
  uint64_t now = tps_now_ns();
  pthread_mutex_lock(&t->lock);
  tps_timeline_span *last =
      t->span_count > 0 ? &t->spans[t->span_count - 1] : NULL;
  bool goes_on =
      last != NULL && last->name == NULL && last->context == context->id &&
      last->source == context->site.source &&
      last->line == context->site.line && began_ns - last->ended_ns < MERGE_NS;
  tps_timeline_span *span = goes_on ? last : add_span(t);
  if (span != NULL) {
    span->context = context->id;
    span->source = context->site.source;
    span->line = context->site.line;
    if (!goes_on)
      span->began_ns = began_ns > t->began_ns ? began_ns : t->began_ns;
    span->ended_ns = now;
  }
  pthread_mutex_unlock(&t->lock);
}

/* ---- ranges -------------------------------------------------------------- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
/* The list; changed with the lock held. */
static _Atomic(tps_timeline *) recorded;
static _Atomic uint64_t last_range;

static void begin_in(tps_timeline *t, uint64_t id, const tps_context *context,
                     uint64_t thread, const char *name) {
  if (!is_ours(t, context->id)) return;
  char *copy = strdup(name);
  pthread_mutex_lock(&t->lock);
  if (copy == NULL) t->dropped++;
  tps_timeline_span *span = copy != NULL ? add_span(t) : NULL;
  if (span != NULL) {
    span->context = context->id;
    span->id = id;
    span->thread = thread;
    span->name = copy;
    span->source = context->site.source;
    span->line = context->site.line;
    span->began_ns = tps_now_ns();
  }
  pthread_mutex_unlock(&t->lock);
  if (span == NULL) free(copy);
}

/* Where one context's ranges are in order of their numbers; NULL: the range was not
 * kept. */
static tps_timeline_span *find_range(tps_timeline *t, const tps_range *range) {
  for (size_t i = t->span_count; i > 0; i--) {
    tps_timeline_span *span = &t->spans[i - 1];
    if (span->id == range->id) return span;
    if (span->context == range->context && span->id != 0 &&
        span->id < range->id)
      return NULL;
  }
  return NULL;
}

static void end_in(tps_timeline *t, const tps_range *range) {
  uint64_t now = tps_now_ns();
  if (!is_ours(t, range->context)) return;
  pthread_mutex_lock(&t->lock);
  tps_timeline_span *span = find_range(t, range);
  if (span != NULL) span->ended_ns = now;
  pthread_mutex_unlock(&t->lock);
}

void tps_range_begin(tps_range *range, const tps_context *context,
                     uint64_t thread, const char *name) {
  range->id = atomic_fetch_add(&last_range, 1) + 1;
  range->context = context->id;
  tps_nvtx_begin(range, name, thread == 0);
  if (atomic_load(&recorded) == NULL) return;
  pthread_mutex_lock(&list_lock);
  for (tps_timeline *t = atomic_load(&recorded); t != NULL; t = t->next)
    begin_in(t, range->id, context, thread, name);
  pthread_mutex_unlock(&list_lock);
}

void tps_range_end(tps_range *range) {
  if (range->id == 0) return;
  tps_nvtx_end(range);
  if (atomic_load(&recorded) != NULL) {
    pthread_mutex_lock(&list_lock);
    for (tps_timeline *t = atomic_load(&recorded); t != NULL; t = t->next)
      end_in(t, range);
    pthread_mutex_unlock(&list_lock);
  }
  range->id = 0;
}

/* ---- beginning and end --------------------------------------------------- */

tps_timeline *tps_timeline_start(uint64_t context, size_t limit,
                                 tps_error *err) {
  tps_timeline *t = calloc(1, sizeof *t);
  if (t == NULL) {
    tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a timeline");
    return NULL;
  }
  pthread_mutex_init(&t->lock, NULL);
  t->context = context;
  t->limit = limit < UINT32_MAX ? limit : UINT32_MAX - 1;
  t->observer = (tps_observer){
      .data = t, .queued = queued, .refused = refused, .held = held};
  t->watch = (tps_watch){.wants = TPS_WATCH_TIMES, .data = t, .ran = ran};
  t->began_ns = tps_now_ns();
  tps_watch_add(&t->watch);
  tps_observer_add(&t->observer);
  pthread_mutex_lock(&list_lock);
  t->next = atomic_load(&recorded);
  atomic_store(&recorded, t);
  pthread_mutex_unlock(&list_lock);
  return t;
}

static void leave_list(tps_timeline *t) {
  pthread_mutex_lock(&list_lock);
  tps_timeline *first = atomic_load(&recorded);
  if (first == t) {
    atomic_store(&recorded, t->next);
  } else {
    while (first->next != t) first = first->next;
    first->next = t->next;
  }
  pthread_mutex_unlock(&list_lock);
}

static void collect_of(tps_device_kind kind, int ordinal) {
  tps_device *device;
  tps_error err;
  if (tps_device_get(kind, ordinal, &device, &err) == 0 &&
      device->face->times_collect != NULL)
    device->face->times_collect(device);
}

/* Lets the devices tell what they have put off; they come back here while they do,
 * so the lock is not held. */
static void collect(tps_timeline *t) {
  for (int kind = TPS_CUDA; kind <= TPS_SIM; kind++)
    for (int ordinal = 0; ordinal < TPS_TIMELINE_DEVICES; ordinal++) {
      pthread_mutex_lock(&t->lock);
      bool used = t->used[kind][ordinal];
      pthread_mutex_unlock(&t->lock);
      if (used) collect_of((tps_device_kind)kind, ordinal);
    }
}

static bool is_faulted(const tps_timeline_item *item) {
  tps_device *device;
  tps_error err;
  return tps_device_get((tps_device_kind)item->device_kind, item->device,
                        &device, &err) == 0 &&
         tps_device_fault(device, &err) != 0;
}

/* What nobody told the end of. */
static void drop_open(tps_timeline *t) {
  for (size_t i = 0; i < t->open_slots; i++) {
    tps_op *op = t->open[i].op;
    if (op == NULL) continue;
    tps_timeline_item *item = &t->items[t->open[i].item];
    item->failed = has_failed(op) || is_faulted(item);
    tps_op_unref(op);
  }
  free(t->open);
  t->open = NULL;
  t->open_count = t->open_slots = 0;
}

void tps_timeline_stop(tps_timeline *t) {
  if (t->ended_ns != 0) return;
  leave_list(t);
  tps_observer_remove(&t->observer);
  collect(t);
  tps_watch_remove(&t->watch);
  uint64_t now = tps_now_ns();
  collect(t); /* what they still keep, nobody wants to know */
  drop_open(t);
  for (size_t i = 0; i < t->span_count; i++)
    if (t->spans[i].ended_ns == 0) t->spans[i].ended_ns = now;
  t->ended_ns = now;
  tps_timeline_settle(t);
}

void tps_timeline_free(tps_timeline *t) {
  if (t == NULL) return;
  tps_timeline_stop(t);
  for (size_t i = 0; i < t->span_count; i++) free(t->spans[i].name);
  free(t->spans);
  free(t->items);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

/* ---- reading ------------------------------------------------------------- */

const tps_timeline_item *tps_timeline_items(const tps_timeline *t,
                                            size_t *count) {
  *count = t->count;
  return t->items;
}

const tps_timeline_span *tps_timeline_spans(const tps_timeline *t,
                                            size_t *count) {
  *count = t->span_count;
  return t->spans;
}

uint64_t tps_timeline_began(const tps_timeline *t) { return t->began_ns; }
uint64_t tps_timeline_ended(const tps_timeline *t) { return t->ended_ns; }
uint64_t tps_timeline_dropped(const tps_timeline *t) { return t->dropped; }

const char *tps_timeline_kind(const tps_timeline_item *item) {
  static const char *const names[] = {
      [TPS_OP_LAUNCH] = "kernel", [TPS_OP_COPY] = "copy",
      [TPS_OP_FILL] = "fill",     [TPS_OP_RECORD] = "record",
      [TPS_OP_WAIT] = "wait",     [TPS_OP_ALLOC] = "alloc",
      [TPS_OP_FREE] = "free",     [TPS_OP_HOST] = "callback",
      [TPS_OP_GRAPH] = "graph"};
  if (item->kind == TPS_OP_GRAPH && item->graph != 0) return "condition";
  return names[item->kind];
}

const char *tps_timeline_route(const tps_timeline_item *item) {
  static const char *const names[] = {[TPS_ROUTE_WITHIN] = "within",
                                      [TPS_ROUTE_IN] = "in",
                                      [TPS_ROUTE_OUT] = "out",
                                      [TPS_ROUTE_ACROSS] = "across",
                                      [TPS_ROUTE_HOST] = "host"};
  return names[item->route];
}
