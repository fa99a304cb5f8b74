/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * At the end of the recording, what only the whole tells: which record each wait
 * waited for, what came after what, and how the host's ranges lie in one
 * another. */
#include <stdlib.h>

#include "timeline/parts.h"

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* ---- waits --------------------------------------------------------------- */

typedef struct mark {
  uint64_t event, order;
  uint32_t item;
} mark;

static int by_event(const void *x, const void *y) {
  const mark *a = x, *b = y;
  int order = compare(a->event, b->event);
  if (order == 0) order = compare(a->order, b->order);
  return order != 0 ? order : compare(a->item, b->item);
}

/* The last record of the event queued before `order`; 1 + its index, or 0. */
static uint32_t find_record(const mark *marks, size_t count, uint64_t event,
                            uint64_t order) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const mark *m = &marks[middle];
    if (m->event < event || (m->event == event && m->order < order))
      low = middle + 1;
    else high = middle;
  }
  return low > 0 && marks[low - 1].event == event ? marks[low - 1].item + 1 : 0;
}

static bool link_waits(tps_timeline *t) {
  mark *marks = malloc((t->count + 1) * sizeof *marks);
  size_t n = 0;
  if (marks == NULL) return false;
  for (size_t i = 0; i < t->count; i++)
    if (t->items[i].kind == TPS_OP_RECORD)
      marks[n++] = (mark){t->items[i].event, t->items[i].order, (uint32_t)i};
  if (n > 0) qsort(marks, n, sizeof *marks, by_event);
  for (size_t i = 0; i < t->count; i++)
    if (t->items[i].kind == TPS_OP_WAIT)
      t->items[i].link =
          find_record(marks, n, t->items[i].event, t->items[i].order);
  free(marks);
  return true;
}

/* ---- order --------------------------------------------------------------- */

#define SLIP_NS 10000u /* by which a GPU's times may be wrong */

/* On a stream, in order of queueing. */
typedef struct place {
  uint64_t stream;
  uint32_t device; /* and its kind */
  uint32_t item;
} place;

static int by_stream(const place *a, const place *b) {
  int order = compare(a->device, b->device);
  return order != 0 ? order : compare(a->stream, b->stream);
}

static int by_place(const void *x, const void *y) {
  const place *a = x, *b = y;
  int order = by_stream(a, b);
  return order != 0 ? order : compare(a->item, b->item);
}

static size_t find_places(const tps_timeline *t, place *places) {
  size_t n = 0;
  for (size_t i = 0; i < t->count; i++) {
    const tps_timeline_item *item = &t->items[i];
    if (item->graph != 0 || item->finished_ns == 0) continue;
    uint32_t device = (uint32_t)item->device << 1 | item->device_kind;
    places[n++] = (place){item->stream, device, (uint32_t)i};
  }
  if (n > 0) qsort(places, n, sizeof *places, by_place);
  return n;
}

/* Of each item: 1 + what was queued before it on its stream, or 0. */
static bool find_before(const tps_timeline *t, uint32_t *before) {
  place *places = malloc((t->count + 1) * sizeof *places);
  if (places == NULL) return false;
  size_t n = find_places(t, places);
  for (size_t i = 1; i < n; i++)
    if (by_stream(&places[i], &places[i - 1]) == 0)
      before[places[i].item] = places[i - 1].item + 1;
  free(places);
  return true;
}

/* What is queued later on a stream runs later. Devices may have told otherwise: of
 * waits they tell an earlier beginning, and a GPU's two clocks don't agree to the
 * last. But where several Lua states queue on one stream, records may not be in
 * that order. */
static void follow(tps_timeline_item *item, const tps_timeline_item *before) {
  if (item->started_ns >= before->finished_ns) return;
  if (item->kind != TPS_OP_WAIT && item->context != before->context &&
      (item->device_kind != TPS_CUDA ||
       before->finished_ns - item->started_ns > SLIP_NS))
    return;
  item->started_ns = before->finished_ns;
}

/* In order of queueing, which is one in which things can happen: nothing begins
 * before what it comes after has ended, and nothing ends before it begins. */
static bool order_times(tps_timeline *t) {
  uint32_t *before = calloc(t->count + 1, sizeof *before);
  bool room = before != NULL && find_before(t, before);
  for (size_t i = 0; i < t->count && room; i++) {
    tps_timeline_item *item = &t->items[i];
    if (item->finished_ns == 0) continue;
    if (before[i] > 0) follow(item, &t->items[before[i] - 1]);
    if (item->link > 0 &&
        item->finished_ns < t->items[item->link - 1].finished_ns)
      item->finished_ns = t->items[item->link - 1].finished_ns;
    if (item->finished_ns < item->started_ns)
      item->finished_ns = item->started_ns;
  }
  free(before);
  return room;
}

/* ---- ranges -------------------------------------------------------------- */

#define LANES 64u
#define DEEP 64u

/* The ends of the ranges that are open in a lane: those of one coroutine. */
typedef struct lane {
  uint64_t context, thread;
  uint32_t depth;
  uint64_t ends[DEEP];
} lane;

/* Lets go what has ended by then. */
static void close_ended(lane *l, uint64_t ns) {
  while (l->depth > 0 && l->ends[l->depth - 1] <= ns) l->depth--;
}

static bool is_of(const lane *l, const tps_timeline_span *span) {
  return l->context == span->context && l->thread == span->thread;
}

/* Where the coroutine's open ranges are, else the first that is free. Where there
 * are more at once than lanes, they share the last. */
static lane *lane_for(lane *lanes, const tps_timeline_span *span) {
  lane *free_one = NULL;
  for (uint32_t n = LANES; n-- > 0;) {
    lane *l = &lanes[n];
    close_ended(l, span->began_ns);
    if (l->depth > 0 && l->depth < DEEP && is_of(l, span)) return l;
    if (l->depth == 0) free_one = l;
  }
  if (free_one != NULL) return free_one;
  lanes[LANES - 1].depth = 0;
  return &lanes[LANES - 1];
}

/* Spans are in order of their beginning. */
static bool lay_ranges(tps_timeline *t) {
  lane *lanes = calloc(LANES, sizeof *lanes);
  if (lanes == NULL) return false;
  for (size_t i = 0; i < t->span_count; i++) {
    tps_timeline_span *span = &t->spans[i];
    if (span->name == NULL) continue;
    lane *l = lane_for(lanes, span);
    l->context = span->context;
    l->thread = span->thread;
    span->lane = (uint32_t)(l - lanes);
    span->depth = l->depth;
    l->ends[l->depth++] = span->ended_ns;
  }
  free(lanes);
  return true;
}

bool tps_timeline_settle(tps_timeline *t) {
  bool linked = link_waits(t), ordered = order_times(t);
  return lay_ranges(t) && linked && ordered;
}
