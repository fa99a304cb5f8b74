/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A stopped timeline as its writers see it: rows of streams in order of time,
 * how busy they were, which record each wait waited for, in which lanes things
 * are drawn that happened at once. */
#include <stdlib.h>
#include <string.h>

#include "timeline/parts.h"

bool tps_is_work(const tps_timeline_item *item) {
  return item->kind == TPS_OP_LAUNCH || item->kind == TPS_OP_COPY ||
         item->kind == TPS_OP_FILL || item->kind == TPS_OP_GRAPH;
}

bool tps_is_lost(const tps_timeline_item *item) {
  return item->finished_ns == 0 && item->kind != TPS_OP_ALLOC &&
         item->kind != TPS_OP_FREE;
}

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* ---- stretches of time --------------------------------------------------- */

static int by_begin(const void *a, const void *b) {
  return compare(((const tps_stretch *)a)->began_ns,
                 ((const tps_stretch *)b)->began_ns);
}

/* Sorted, none touching another; how many are left. */
static size_t unite(tps_stretch *s, size_t count) {
  size_t n = 0;
  if (count > 0) qsort(s, count, sizeof *s, by_begin);
  for (size_t i = 0; i < count; i++) {
    if (n > 0 && s[i].began_ns <= s[n - 1].ended_ns) {
      if (s[i].ended_ns > s[n - 1].ended_ns) s[n - 1].ended_ns = s[i].ended_ns;
    } else {
      s[n++] = s[i];
    }
  }
  return n;
}

static uint64_t length(const tps_stretch *s, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += s[i].ended_ns - s[i].began_ns;
  return sum;
}

/* Of what both have, united, in common. */
static uint64_t common(const tps_stretch *a, size_t count, const tps_stretch *b,
                       size_t others) {
  uint64_t sum = 0;
  for (size_t i = 0, j = 0; i < count && j < others;) {
    uint64_t from =
        a[i].began_ns > b[j].began_ns ? a[i].began_ns : b[j].began_ns;
    uint64_t to = a[i].ended_ns < b[j].ended_ns ? a[i].ended_ns : b[j].ended_ns;
    if (to > from) sum += to - from;
    if (a[i].ended_ns < b[j].ended_ns) i++;
    else j++;
  }
  return sum;
}

/* ---- rows ---------------------------------------------------------------- */

/* What rows are made of. */
typedef struct key {
  const tps_timeline_item *item;
  uint32_t index;
} key;

static int by_row(const tps_timeline_item *a, const tps_timeline_item *b) {
  int order = compare(a->device_kind, b->device_kind);
  if (order == 0) order = compare((uint64_t)a->device, (uint64_t)b->device);
  return order != 0 ? order : compare(a->stream, b->stream);
}

/* A part of a graph that is spread over devices is in a row of its device's, with
 * the number of the stream that the graph was launched on. */
static int by_row_and_start(const void *x, const void *y) {
  const key *a = x, *b = y;
  int order = by_row(a->item, b->item);
  if (order == 0) order = compare(tps_is_lost(a->item), tps_is_lost(b->item));
  if (order == 0) order = compare(a->item->started_ns, b->item->started_ns);
  if (order == 0) order = compare(a->item->graph != 0, b->item->graph != 0);
  return order != 0 ? order : compare(a->index, b->index);
}

static bool is_shown(const tps_timeline_item *item) {
  return item->finished_ns != 0;
}

static tps_row *add_row(tps_view *v, const tps_timeline_item *item) {
  tps_row *row = &v->rows[v->row_count++];
  *row = (tps_row){.device_kind = item->device_kind,
                   .device = item->device,
                   .stream = item->stream};
  return row;
}

/* Rows of what ran, or should have; their items point into `order`. */
static void make_rows(tps_view *v, const key *keys, size_t count,
                      uint32_t *order) {
  tps_row *row = NULL;
  for (size_t i = 0; i < count; i++) {
    order[i] = keys[i].index;
    if (row == NULL || by_row(keys[i].item, keys[i - 1].item) != 0) {
      row = add_row(v, keys[i].item);
      row->items = row->lost = &order[i];
    }
    if (tps_is_lost(keys[i].item)) {
      row->lost_count++;
    } else {
      row->count++;
      row->lost++;
    }
  }
}

/* Sums over the row's own work: parts are within their graphs. */
static void sum_row(const tps_view *v, tps_row *row) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < row->count; i++) {
    const tps_timeline_item *item = &v->timeline->items[row->items[i]];
    if (!tps_is_work(item) || item->graph != 0) continue;
    uint64_t from = item->started_ns > end ? item->started_ns : end;
    if (end != 0 && item->started_ns > end) {
      uint64_t gap = item->started_ns - end;
      row->gaps++;
      row->gap_ns += gap;
      if (gap > row->longest_gap_ns) row->longest_gap_ns = gap;
    }
    row->work++;
    if (item->finished_ns > from) row->busy_ns += item->finished_ns - from;
    if (item->finished_ns > end) end = item->finished_ns;
  }
}

/* Parts side by side: each in the first lane that is free. */
static bool lay_out(tps_view *v, tps_row *row) {
  uint64_t *ends = NULL;
  uint32_t capacity = 0, lanes = 0;
  for (uint32_t i = 0; i < row->count; i++) {
    const tps_timeline_item *item = &v->timeline->items[row->items[i]];
    uint32_t lane = 0;
    if (item->graph == 0) continue;
    while (lane < lanes && ends[lane] > item->started_ns) lane++;
    if (lane == capacity) {
      capacity = 2 * capacity + 4;
      uint64_t *more = realloc(ends, capacity * sizeof *ends);
      if (more == NULL) {
        free(ends);
        return false;
      }
      ends = more;
    }
    if (lane == lanes) lanes++;
    ends[lane] = item->finished_ns;
    v->lanes[row->items[i]] = lane;
  }
  free(ends);
  row->lanes = lanes;
  return true;
}

/* ---- devices ------------------------------------------------------------- */

static tps_busy *busy_of(tps_view *v, const tps_timeline_item *item) {
  for (uint32_t i = 0; i < v->device_count; i++)
    if (v->devices[i].device_kind == item->device_kind &&
        v->devices[i].device == item->device)
      return &v->devices[i];
  tps_busy *busy = &v->devices[v->device_count++];
  *busy = (tps_busy){.device_kind = item->device_kind, .device = item->device};
  return busy;
}

static size_t gather(const tps_view *v, const tps_busy *busy, bool kernels,
                     tps_stretch *to) {
  const tps_timeline *t = v->timeline;
  size_t n = 0;
  for (size_t i = 0; i < t->count; i++) {
    const tps_timeline_item *item = &t->items[i];
    bool wanted =
        kernels ? item->kind == TPS_OP_LAUNCH : item->kind == TPS_OP_COPY;
    if (wanted && is_shown(item) && item->device_kind == busy->device_kind &&
        item->device == busy->device)
      to[n++] = (tps_stretch){item->started_ns, item->finished_ns};
  }
  return n;
}

static bool sum_devices(tps_view *v) {
  size_t count = v->timeline->count + 1;
  tps_stretch *copies = malloc(count * sizeof *copies);
  tps_stretch *kernels = malloc(count * sizeof *kernels);
  bool room = copies != NULL && kernels != NULL;
  for (uint32_t i = 0; i < v->device_count && room; i++) {
    tps_busy *busy = &v->devices[i];
    size_t a = unite(copies, gather(v, busy, false, copies));
    size_t b = unite(kernels, gather(v, busy, true, kernels));
    busy->copy_ns = length(copies, a);
    busy->kernel_ns = length(kernels, b);
    busy->both_ns = common(copies, a, kernels, b);
  }
  free(copies);
  free(kernels);
  return room;
}

/* ---- contexts ------------------------------------------------------------ */

uint32_t tps_view_context(const tps_view *v, uint64_t context) {
  uint32_t i = 0;
  while (i < v->context_count && v->contexts[i] != context) i++;
  return i;
}

static bool note_context(tps_view *v, uint64_t context) {
  if (tps_view_context(v, context) < v->context_count) return true;
  uint64_t *more =
      realloc(v->contexts, (v->context_count + 1) * sizeof *v->contexts);
  if (more == NULL) return false;
  v->contexts = more;
  v->contexts[v->context_count++] = context;
  return true;
}

static void note_time(tps_view *v, uint64_t from, uint64_t to) {
  if (from != 0 && from < v->first_ns) v->first_ns = from;
  if (to > v->last_ns) v->last_ns = to;
}

static bool note_all(tps_view *v) {
  const tps_timeline *t = v->timeline;
  bool room = true;
  v->first_ns = UINT64_MAX;
  for (size_t i = 0; i < t->count && room; i++) {
    const tps_timeline_item *item = &t->items[i];
    room = note_context(v, item->context);
    note_time(v, item->queued_ns, item->queued_ns);
    if (is_shown(item)) note_time(v, item->started_ns, item->finished_ns);
  }
  for (size_t i = 0; i < t->span_count && room; i++) {
    room = note_context(v, t->spans[i].context);
    note_time(v, t->spans[i].began_ns, t->spans[i].ended_ns);
  }
  if (v->last_ns == 0) v->first_ns = v->last_ns = t->began_ns;
  return room;
}

/* ---- the whole ----------------------------------------------------------- */

static size_t make_keys(const tps_timeline *t, key *keys) {
  size_t n = 0;
  for (size_t i = 0; i < t->count; i++)
    if (is_shown(&t->items[i]) || tps_is_lost(&t->items[i]))
      keys[n++] = (key){&t->items[i], (uint32_t)i};
  if (n > 0) qsort(keys, n, sizeof *keys, by_row_and_start);
  return n;
}

static bool fill_rows(tps_view *v, key *keys) {
  bool room = true;
  size_t n = make_keys(v->timeline, keys);
  make_rows(v, keys, n, v->order);
  for (size_t i = 0; i < n; i++) busy_of(v, keys[i].item);
  for (uint32_t i = 0; i < v->row_count && room; i++) {
    sum_row(v, &v->rows[i]);
    room = lay_out(v, &v->rows[i]);
  }
  return room && sum_devices(v) && note_all(v);
}

bool tps_view_make(const tps_timeline *t, tps_view *v) {
  size_t count = t->count + 1;
  key *keys = malloc(count * sizeof *keys);
  *v = (tps_view){.timeline = t,
                  .rows = calloc(count, sizeof *v->rows),
                  .order = calloc(count, sizeof *v->order),
                  .devices = calloc(count, sizeof *v->devices),
                  .lanes = calloc(count, sizeof *v->lanes)};
  bool room = keys != NULL && v->rows != NULL && v->order != NULL &&
              v->devices != NULL && v->lanes != NULL;
  if (room) room = fill_rows(v, keys);
  free(keys);
  if (!room) tps_view_free(v);
  return room;
}

void tps_view_free(tps_view *v) {
  free(v->rows);
  free(v->order);
  free(v->devices);
  free(v->lanes);
  free(v->contexts);
  *v = (tps_view){0};
}
