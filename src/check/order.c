/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the runtime tells, turned into clocks. The host has one clock for the whole
 * process: how threads of several Lua states agree is not seen here, and what one
 * of them has waited for is done for all. */
#include "check/order.h"

#include <stdlib.h>

tps_order *tps_order_new(void) {
  tps_order *o = calloc(1, sizeof *o);
  if (o != NULL) o->next_address = 1;
  return o;
}

static void free_places(tps_order *o) {
  for (size_t i = 0; i < o->places.capacity; i++)
    free(o->places.slots[i].value);
  tps_table_free(&o->places);
}

void tps_order_free(tps_order *o) {
  tps_order_finish(o);
  tps_points_free(&o->events);
  tps_points_free(&o->promises);
  tps_points_free(&o->graphs);
  free_places(o);
  tps_table_free(&o->streams);
  tps_table_free(&o->waiting);
  for (int i = 0; i < TPS_SPACES; i++) tps_spans_free(&o->spans[i]);
  for (int i = 0; i < TPS_RECENT; i++) tps_origin_unref(o->recent[i].origin);
  tps_strands_free(o);
  tps_clock_unref(o->host);
  free(o);
}

/* ---- operations ---------------------------------------------------------- */

/* One that was recorded by another process, or before the checker began: whatever
 * there is may come before it. */
static void wait_for_event(tps_order *o, tps_clock **clock, uint64_t event) {
  const tps_point *point = tps_table_get(&o->events, event);
  if (point != NULL) tps_order_join(o, clock, point);
  else tps_join_everything(o, clock);
}

void tps_order_queued(tps_order *o, tps_op *op, const tps_stream *stream) {
  if (op->kind == TPS_OP_ALLOC || op->kind == TPS_OP_FREE ||
      op->kind == TPS_OP_GRAPH)
    return; /* the runtime sees to their order; those of graphs: launching */
  tps_strand *s = tps_strand_of(o, stream);
  if (s == NULL || o->broken) return;
  tps_strand_enter(o, s);
  if (op->kind == TPS_OP_WAIT) wait_for_event(o, &s->clock, op->event);
  tps_strand_next(o, s);
  tps_point point = tps_strand_point(s);
  if (op->kind == TPS_OP_RECORD)
    tps_point_put(o, &o->events, op->event, &point);
  else if (op->kind == TPS_OP_HOST && op->event != 0)
    tps_point_put(o, &o->promises, op->event, &point);
  else if (op->kind <= TPS_OP_FILL) tps_pending_op(o, op, NULL, false, &point);
  tps_pending_drain(o);
}

/* ---- the host ------------------------------------------------------------ */

static void wait_for_strands(tps_order *o, tps_strand *list,
                             const tps_wait_note *wait) {
  for (tps_strand *s = list; s != NULL; s = s->next)
    if (wait->all || s == s->on->legacy || s->context == wait->context->id)
      tps_strand_wait(o, s);
}

/* All work, or the context's, of the device. */
static void wait_for_device(tps_order *o, const tps_wait_note *wait) {
  const tps_strands *all = tps_strands_on(o, wait->device);
  if (all == NULL) return;
  wait_for_strands(o, all->open, wait);
  wait_for_strands(o, all->closed, wait);
  tps_strands_wait_for_gone(o, all, wait->all ? 0 : wait->context->id);
}

/* The legacy one is waited for with all that it would come after. */
static void wait_for_stream(tps_order *o, const tps_stream *stream) {
  tps_strand *s = tps_strand_of(o, stream);
  if (s == NULL) return;
  if (s == s->on->legacy) {
    tps_strand_enter(o, s);
    tps_strand_next(o, s);
  }
  tps_strand_wait(o, s);
}

static void wait_for_promise(tps_order *o, uint64_t promise) {
  tps_point *point = tps_table_take(&o->promises, promise);
  if (point == NULL) return;
  tps_order_join(o, &o->host, point);
  tps_point_clear(point);
  free(point);
}

void tps_order_waited(tps_order *o, const tps_wait_note *wait) {
  if (wait->promise != 0) wait_for_promise(o, wait->promise);
  else if (wait->stream != NULL) wait_for_stream(o, wait->stream);
  else if (wait->event == 0) wait_for_device(o, wait);
  else wait_for_event(o, &o->host, wait->event);
  tps_pending_drain(o);
  tps_strands_reap(o);
  tps_access_sweep(o);
}

void tps_order_promised(tps_order *o, const tps_stream *stream, uint64_t event,
                        uint64_t promise) {
  if (event != 0) {
    const tps_point *known = tps_table_get(&o->events, event);
    if (known != NULL) tps_point_put(o, &o->promises, promise, known);
    return;
  }
  tps_strand *s = tps_strand_of(o, stream);
  if (s == NULL) return;
  tps_strand_enter(o, s);
  tps_strand_next(o, s);
  tps_point point = tps_strand_point(s);
  tps_point_put(o, &o->promises, promise, &point);
}

void tps_order_followed(tps_order *o, const tps_stream *later,
                        const tps_stream *earlier) {
  const tps_strand *from = tps_strand_of(o, earlier);
  tps_strand *to = tps_strand_of(o, later);
  if (from == NULL || to == NULL || from == to) return;
  tps_point point = tps_strand_point(from);
  tps_order_join(o, &to->clock, &point);
  tps_strand_next(o, to);
}

void tps_order_event_ended(tps_order *o, uint64_t event) {
  tps_point *point = tps_table_take(&o->events, event);
  if (point == NULL) return;
  tps_point_clear(point);
  free(point);
}
