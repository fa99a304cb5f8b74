/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams as the checker sees them, their lanes, and what the legacy stream puts
 * in order. Whoever comes after a strand keeps in mind the last operation of it
 * that he came after, so that a strand which has done nothing since costs nothing.
 * A lane is used again when the host knows all of its operations to be
 * done: numbers only grow, so what clocks say of the old ones does no harm. */
#include "check/order.h"

#include <stdlib.h>

#define REAP_AT 64u /* lanes more than the last look left */

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
  s->last = tps_lane_step(o, s->lanes[0]);
  if (s->blocking && s != s->on->legacy) s->on->blocking = s->last;
  return s->last;
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

tps_strands *tps_strands_on(const tps_order *o, const tps_device *device) {
  tps_strands *all = o->strands;
  while (all != NULL && !(all->device_kind == (uint8_t)device->kind &&
                          all->device == device->ordinal))
    all = all->next;
  return all;
}

static tps_strands *strands_on(tps_order *o, const tps_device *device) {
  tps_strands *all = tps_strands_on(o, device);
  if (all != NULL || (all = calloc(1, sizeof *all)) == NULL) return all;
  all->device_kind = (uint8_t)device->kind;
  all->device = device->ordinal;
  all->next = o->strands;
  return o->strands = all;
}

static void put_in(tps_strand **list, tps_strand *s) {
  s->next = *list;
  s->at = list;
  if (s->next != NULL) s->next->at = &s->next;
  *list = s;
}

static void take_out(tps_strand *s) {
  *s->at = s->next;
  if (s->next != NULL) s->next->at = s->at;
}

static tps_strand *new_strand(tps_order *o, const tps_stream *stream) {
  uint32_t lane;
  tps_strands *on = strands_on(o, stream->device);
  tps_strand *s = on != NULL ? calloc(1, sizeof *s) : NULL;
  if (s == NULL) return NULL;
  s->on = on;
  s->context = stream->context->id;
  s->blocking = stream->blocking;
  if (!tps_strand_lane(o, s, 0, &lane)) {
    free(s);
    return NULL;
  }
  if (stream->is_default) on->legacy = s;
  put_in(&on->open, s);
  return s;
}

static void name(tps_order *o, tps_strand *s, const tps_stream *stream) {
  s->names++;
  s->keys++;
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

/* Another object for a stream that has one gives it another name. */
void tps_order_stream_opened(tps_order *o, const tps_stream *stream,
                             uint64_t handle) {
  const tps_strands *on = tps_strands_on(o, stream->device);
  tps_strand *s = on != NULL ? tps_table_get(&on->handles, handle) : NULL;
  if (s != NULL && handle != 0) {
    name(o, s, stream);
    return;
  }
  s = tps_strand_of(o, stream);
  if (s == NULL || handle == 0) return;
  s->handle = handle;
  if (!tps_table_put(&s->on->handles, handle, s)) o->broken = true;
}

void tps_order_stream_closed(tps_order *o, const tps_stream *stream) {
  tps_strand *s = tps_table_get(&o->streams, key_of(stream));
  if (s == NULL || s->names == 0 || --s->names > 0) return;
  if (s->handle != 0) tps_table_take(&s->on->handles, s->handle);
  take_out(s);
  put_in(&s->on->closed, s);
}

/* ---- strands that are no more -------------------------------------------- */

static bool is_done(const tps_order *o, uint32_t lane) {
  uint64_t last = o->lane_last[lane];
  return last == 0 || tps_clock_covers(o->host, lane, last);
}

/* A lane that is not kept is never used again, that is all. */
static void leave_lane(tps_order *o, uint32_t lane) {
  if (is_done(o, lane))
    push_lane(&o->free_lanes, &o->free_count, &o->free_capacity, lane);
  else push_lane(&o->left_lanes, &o->left_count, &o->left_capacity, lane);
}

static tps_gone *gone_of(tps_strands *on, uint64_t context) {
  tps_gone *gone = on->gone;
  while (gone != NULL && gone->context != context) gone = gone->next;
  if (gone != NULL || (gone = calloc(1, sizeof *gone)) == NULL) return gone;
  gone->context = context;
  gone->next = on->gone;
  return on->gone = gone;
}

/* Waits for the device, and the legacy stream, come after it all the same. */
static void keep_end(tps_order *o, const tps_strand *s) {
  tps_strands *on = s->on;
  tps_gone *gone = gone_of(on, s->context);
  tps_point point = tps_strand_point(s);
  if (gone == NULL) o->broken = true;
  else tps_order_join(o, &gone->clock, &point);
  if (s->blocking && s->shown != s->last) tps_order_join(o, &on->past, &point);
}

static void free_strand(tps_strand *s) {
  tps_clock_unref(s->clock);
  free(s->lanes);
  free(s);
}

/* The legacy one is all contexts', and stays. */
void tps_order_stream_gone(tps_order *o, const tps_stream *stream) {
  tps_strand *s = tps_table_get(&o->streams, key_of(stream));
  if (s == NULL || s == s->on->legacy) return;
  tps_table_take(&o->streams, key_of(stream));
  if (--s->keys > 0) return;
  if (s->names > 0 && s->handle != 0)
    tps_table_take(&s->on->handles, s->handle);
  if (!is_done(o, s->lanes[0])) keep_end(o, s);
  for (uint32_t i = 0; i < s->lane_count; i++) leave_lane(o, s->lanes[i]);
  take_out(s);
  free_strand(s);
}

static void join_clock(tps_order *o, tps_clock **clock, tps_clock **part) {
  tps_point point = {*part, 0, 0};
  tps_order_join(o, clock, &point);
  tps_point_clear(&point);
  *part = NULL;
}

void tps_strands_wait_for_gone(tps_order *o, const tps_strands *on,
                               uint64_t context) {
  for (tps_gone *gone = on->gone; gone != NULL; gone = gone->next)
    if (context == 0 || gone->context == context)
      join_clock(o, &o->host, &gone->clock);
  o->left_kept = 0; /* now it does pay */
}

/* When there are twice as many as the last time, so that each look pays. */
void tps_strands_reap(tps_order *o) {
  uint32_t count = o->left_count;
  if (count < o->left_kept * 2 + REAP_AT) return;
  o->left_count = 0;
  for (uint32_t i = 0; i < count; i++) leave_lane(o, o->left_lanes[i]);
  o->left_kept = o->left_count;
}

static void free_strands(tps_strand *s) {
  while (s != NULL) {
    tps_strand *next = s->next;
    free_strand(s);
    s = next;
  }
}

static void free_gone(tps_gone *gone) {
  while (gone != NULL) {
    tps_gone *next = gone->next;
    tps_clock_unref(gone->clock);
    free(gone);
    gone = next;
  }
}

void tps_strands_free(tps_order *o) {
  while (o->strands != NULL) {
    tps_strands *all = o->strands;
    o->strands = all->next;
    free_strands(all->open);
    free_strands(all->closed);
    free_gone(all->gone);
    tps_clock_unref(all->past);
    tps_table_free(&all->handles);
    free(all);
  }
  free(o->free_lanes);
  free(o->left_lanes);
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

/* What the blocking ones have done since the legacy one last came after them. */
static void follow_blocking(tps_order *o, tps_strand *legacy,
                            tps_strand *list) {
  for (tps_strand *s = list; s != NULL; s = s->next) {
    if (!s->blocking || s == legacy || s->shown == s->last) continue;
    join_strand(o, &legacy->clock, s);
    s->shown = s->last;
  }
}

static void enter_legacy(tps_order *o, tps_strand *s) {
  tps_strands *on = s->on;
  join_clock(o, &s->clock, &on->past);
  if (on->shown == on->blocking) return;
  follow_blocking(o, s, on->open);
  follow_blocking(o, s, on->closed);
  on->shown = on->blocking;
}

/* The legacy stream waits for all blocking ones, and they for it. */
void tps_strand_enter(tps_order *o, tps_strand *s) {
  const tps_strand *legacy = s->on->legacy;
  if (s == legacy) {
    enter_legacy(o, s);
  } else if (s->blocking && legacy != NULL && s->seen != legacy->last) {
    join_strand(o, &s->clock, legacy);
    s->seen = legacy->last;
  }
}

void tps_strand_wait(tps_order *o, tps_strand *s) {
  if (s->known == s->last) return;
  join_strand(o, &o->host, s);
  s->known = s->last;
}

void tps_join_everything(tps_order *o, tps_clock **clock) {
  for (uint32_t i = 0; i < o->lane_count; i++) {
    tps_point point = {NULL, i, o->lane_last[i]};
    if (!tps_clock_covers(o->host, i, point.seq))
      tps_order_join(o, clock, &point);
  }
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
    if (!tps_clock_covers(o->host, point->lane, point->seq)) {
      if (tps_table_put(&kept, table->slots[i].key, point)) continue;
      o->broken = true;
    }
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
