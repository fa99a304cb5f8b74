/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams as the checker sees them, their lanes, and what the legacy stream puts
 * in order. A lane is used again when the host knows all of its operations to be
 * done: numbers only grow, so what clocks say of the old ones does no harm. */
#include "check/order.h"

#include <stdlib.h>

/* ---- lanes --------------------------------------------------------------- */

static bool grow_numbers(uint64_t **items, uint32_t needed,
                         uint32_t *capacity) {
  if (needed <= *capacity) return true;
  uint32_t wide = needed * 2 + 16;
  uint64_t *room = realloc(*items, wide * sizeof *room);
  if (room == NULL) return false;
  *items = room;
  *capacity = wide;
  return true;
}

static bool push_lane(uint32_t **items, uint32_t *count, uint32_t *capacity,
                      uint32_t lane) {
  if (*count == *capacity) {
    uint32_t wide = *capacity * 2 + 4;
    uint32_t *room = realloc(*items, wide * sizeof *room);
    if (room == NULL) return false;
    *items = room;
    *capacity = wide;
  }
  (*items)[(*count)++] = lane;
  return true;
}

static bool new_lane(tps_order *o, uint32_t *lane) {
  if (o->free_count > 0) {
    *lane = o->free_lanes[--o->free_count];
    return true;
  }
  if (!grow_numbers(&o->lane_last, o->lane_count + 1, &o->lane_last_capacity)) {
    o->broken = true;
    return false;
  }
  *lane = o->lane_count++;
  o->lane_last[*lane] = 0;
  return true;
}

uint64_t tps_lane_step(tps_order *o, uint32_t lane) {
  return o->lane_last[lane] = ++o->seq;
}

uint64_t tps_strand_next(tps_order *o, tps_strand *s) {
  return s->last = tps_lane_step(o, s->lanes[0]);
}

bool tps_strand_lane(tps_order *o, tps_strand *s, uint32_t i, uint32_t *lane) {
  while (s->lane_count <= i) {
    uint32_t fresh;
    if (!new_lane(o, &fresh)) return false;
    if (!push_lane(&s->lanes, &s->lane_count, &s->lane_capacity, fresh)) {
      o->broken = true;
      return false;
    }
  }
  *lane = s->lanes[i];
  return true;
}

/* ---- strands ------------------------------------------------------------- */

/* There is one legacy stream a device, whoever asks for it. */
static uint64_t key_of(const tps_stream *stream) {
  if (!stream->is_default) return stream->id;
  return UINT64_C(1) << 63 | (uint64_t)stream->device->kind << 32 |
         (uint32_t)stream->device->ordinal;
}

static tps_strand *new_strand(tps_order *o, const tps_stream *stream) {
  uint32_t lane;
  tps_strand *s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->context = stream->context->id;
  s->device_kind = (uint8_t)stream->device->kind;
  s->device = stream->device->ordinal;
  s->legacy = stream->is_default;
  s->blocking = stream->blocking;
  if (!tps_strand_lane(o, s, 0, &lane)) {
    free(s);
    return NULL;
  }
  s->next = o->strands;
  return o->strands = s;
}

static void name(tps_order *o, tps_strand *s, const tps_stream *stream) {
  s->names++;
  if (!tps_table_put(&o->streams, key_of(stream), s)) o->broken = true;
}

tps_strand *tps_strand_of(tps_order *o, const tps_stream *stream) {
  tps_strand *s = tps_table_get(&o->streams, key_of(stream));
  if (s != NULL) return s;
  s = new_strand(o, stream);
  if (s != NULL) name(o, s, stream);
  else o->broken = true;
  return s;
}

static bool same_device(const tps_strand *a, uint8_t kind, int32_t device) {
  return a->device_kind == kind && a->device == device;
}

/* Another object for a stream that has one gives it another name. */
void tps_order_stream_opened(tps_order *o, const tps_stream *stream,
                             uint64_t handle) {
  const tps_device *device = stream->device;
  tps_strand *s = o->strands;
  while (s != NULL && !(s->names > 0 && handle != 0 && s->handle == handle &&
                        same_device(s, (uint8_t)device->kind, device->ordinal)))
    s = s->next;
  if (s != NULL) {
    name(o, s, stream);
  } else if ((s = tps_strand_of(o, stream)) != NULL) {
    s->handle = handle;
  }
}

void tps_order_stream_closed(tps_order *o, const tps_stream *stream) {
  tps_strand *s = tps_table_take(&o->streams, key_of(stream));
  if (s != NULL) s->names--;
}

static void free_strand(tps_strand *s) {
  tps_clock_unref(s->clock);
  free(s->lanes);
  free(s);
}

static bool is_over(const tps_order *o, const tps_strand *s) {
  if (s->names > 0) return false;
  for (uint32_t i = 0; i < s->lane_count; i++) {
    uint64_t last = o->lane_last[s->lanes[i]];
    if (last > 0 && !tps_clock_covers(o->host, s->lanes[i], last)) return false;
  }
  return true;
}

void tps_strands_reap(tps_order *o) {
  for (tps_strand **p = &o->strands; *p != NULL;) {
    tps_strand *s = *p;
    if (!is_over(o, s)) {
      p = &s->next;
      continue;
    }
    *p = s->next;
    for (uint32_t i = 0; i < s->lane_count; i++)
      if (!push_lane(&o->free_lanes, &o->free_count, &o->free_capacity,
                     s->lanes[i]))
        break; /* it is never used again, that is all */
    free_strand(s);
  }
}

void tps_strands_free(tps_order *o) {
  while (o->strands != NULL) {
    tps_strand *s = o->strands;
    o->strands = s->next;
    free_strand(s);
  }
  free(o->free_lanes);
  free(o->lane_last);
}

/* ---- order --------------------------------------------------------------- */

void tps_order_join(tps_order *o, tps_clock **clock, const tps_point *point) {
  if (!tps_clock_join(clock, point)) o->broken = true;
}

static void join_strand(tps_order *o, tps_clock **clock, const tps_strand *s) {
  tps_point point = tps_strand_point(s);
  tps_order_join(o, clock, &point);
}

/* The legacy stream waits for all blocking ones, and they for it. */
void tps_strand_enter(tps_order *o, tps_strand *s) {
  if (!s->blocking) return;
  for (tps_strand *other = o->strands; other != NULL; other = other->next)
    if (other != s && other->blocking && (s->legacy || other->legacy) &&
        same_device(other, s->device_kind, s->device))
      join_strand(o, &s->clock, other);
}

void tps_join_everything(tps_order *o, tps_clock **clock) {
  for (tps_strand *s = o->strands; s != NULL; s = s->next)
    join_strand(o, clock, s);
}

/* ---- points -------------------------------------------------------------- */

void tps_point_put(tps_order *o, tps_table *table, uint64_t key,
                   const tps_point *point) {
  tps_point *kept = tps_table_get(table, key);
  if (kept == NULL) {
    kept = calloc(1, sizeof *kept);
    if (kept == NULL || !tps_table_put(table, key, kept)) {
      free(kept);
      o->broken = true;
      return;
    }
  }
  tps_point_set(kept, point->clock, point->lane, point->seq);
}

void tps_points_forget(tps_order *o, tps_table *table) {
  tps_table kept = {0};
  for (size_t i = 0; i < table->capacity; i++) {
    tps_point *point = table->slots[i].value;
    if (point == NULL) continue;
    if (!tps_clock_has(o->host, point) &&
        tps_table_put(&kept, table->slots[i].key, point))
      continue;
    tps_point_clear(point);
    free(point);
  }
  tps_table_free(table);
  *table = kept;
}

void tps_points_free(tps_table *table) {
  for (size_t i = 0; i < table->capacity; i++) {
    tps_point *point = table->slots[i].value;
    if (point == NULL) continue;
    tps_point_clear(point);
    free(point);
  }
  tps_table_free(table);
}
