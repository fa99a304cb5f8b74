/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams. `refs` are the owners: with the last one the driver's stream goes at
 * once. `holds` (memory, events, staging) keep the struct only, so that a
 * buffer that lives for ever does not keep every stream it was used on open. */
#include <stdlib.h>

#include "runtime/capture.h"

/* Struct and parts in one block. */
typedef struct whole {
  tps_stream stream;
  struct tps_stream_parts parts;
} whole;

/* ---- lists --------------------------------------------------------------- */

static void list_append(tps_stream_list *list, tps_stream *stream) {
  stream->parts->next = NULL;
  stream->parts->previous = list->last;
  if (list->last != NULL) list->last->parts->next = stream;
  else list->first = stream;
  list->last = stream;
}

static void list_remove(tps_stream_list *list, tps_stream *stream) {
  tps_stream *next = stream->parts->next, *previous = stream->parts->previous;
  if (next != NULL) next->parts->previous = previous;
  else list->last = previous;
  if (previous != NULL) previous->parts->next = next;
  else list->first = next;
}

static _Atomic uint64_t last_stream; /* small numbers, for people to read */

/* ---- making -------------------------------------------------------------- */

static tps_stream *new_stream(tps_local *local, tps_error *err) {
  whole *w = calloc(1, sizeof *w);
  if (w == NULL) {
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  tps_stream *stream = &w->stream;
  stream->context = local->context;
  stream->device = local->device;
  stream->refs = 1;
  stream->parts = &w->parts;
  w->parts.local = local;
  w->parts.serial = tps_next_id();
  return stream;
}

int tps_stream_default(tps_context *context, tps_device *device,
                       tps_stream **out, tps_error *err) {
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  if (local->default_stream == NULL) {
    tps_stream *stream = new_stream(local, err);
    if (stream == NULL) return TPS_NO_HOST_MEMORY;
    stream->handle = stream->parts->handle =
        device->face->default_stream(device);
    stream->is_default = stream->blocking = true;
    list_append(&local->open, stream);
    local->default_stream = stream;
  }
  *out = local->default_stream;
  return 0;
}

/* Makes the driver's stream; the context is held by the caller. */
static int open_stream(tps_local *local, int priority, bool blocking,
                       tps_stream **out, tps_error *err) {
  tps_device *device = local->device;
  tps_stream *stream = new_stream(local, err);
  if (stream == NULL) return TPS_NO_HOST_MEMORY;
  int code = device->face->stream_create(
      device, priority, blocking ? TPS_STREAM_BLOCKING : 0, &stream->handle,
      &stream->priority, err);
  if (code != 0) {
    free(stream);
    return tps_failed(device, local, code, err);
  }
  stream->parts->handle = stream->handle;
  stream->blocking = blocking;
  stream->id =
      atomic_fetch_add_explicit(&last_stream, 1, memory_order_relaxed) + 1;
  list_append(&local->open, stream);
  *out = stream;
  return 0;
}

int tps_stream_open(tps_context *context, tps_device *device, int priority,
                    bool blocking, tps_stream **out, tps_error *err) {
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_stream_settle_some(local, 4);
  code = open_stream(local, priority, blocking, out, err);
  if (code != 0) return code;
  tps_context_hold(context);
  if (tps_observing()) tps_observe_stream(*out, true);
  return 0;
}

tps_stream *tps_stream_internal(tps_local *local, tps_error *err) {
  tps_stream *stream = NULL;
  open_stream(local, 0, false, &stream, err);
  if (stream != NULL) stream->parts->internal = true;
  return stream;
}

tps_stream *tps_reclaim_stream(tps_local *local, tps_error *err) {
  if (local->reclaim == NULL) local->reclaim = tps_stream_internal(local, err);
  return local->reclaim;
}

/* ---- streams of others --------------------------------------------------- */

tps_stream *tps_stream_find(tps_context *context, tps_device *device,
                            uint64_t handle) {
  tps_error err;
  tps_local *local = tps_local_get(context, device, &err);
  tps_stream *s = local == NULL ? NULL : local->open.first;
  for (; s != NULL; s = s->parts->next)
    if (!s->is_default && !s->parts->internal &&
        device->face->stream_handle(device, s->handle) == handle)
      return s;
  return NULL;
}

int tps_stream_adopt(tps_context *context, tps_device *device, uint64_t handle,
                     tps_stream **out, tps_error *err) {
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(context, device, err);
  tps_stream *stream = local == NULL ? NULL : new_stream(local, err);
  if (stream == NULL) return TPS_NO_HOST_MEMORY;
  code = device->face->stream_adopt(device, handle, &stream->handle,
                                    &stream->priority, &stream->blocking, err);
  if (code != 0) {
    free(stream);
    return tps_failed(device, local, code, err);
  }
  stream->parts->handle = stream->handle;
  stream->parts->foreign = true;
  stream->id =
      atomic_fetch_add_explicit(&last_stream, 1, memory_order_relaxed) + 1;
  list_append(&local->open, stream);
  tps_context_hold(context);
  if (tps_observing()) tps_observe_stream(stream, true);
  *out = stream;
  return 0;
}

/* Where that fails the stream has to be asked itself. */
void tps_stream_mark_foreign(tps_stream *stream) {
  struct tps_stream_parts *parts = stream->parts;
  tps_device *device = stream->device;
  tps_error err;
  tps_op *op = tps_op_internal(stream, TPS_OP_RECORD, &err);
  int code = op == NULL ? TPS_NO_HOST_MEMORY : 0;
  if (code == 0 && parts->closing == NULL)
    code = tps_event_take(parts->local, &parts->closing, &err);
  if (code == 0)
    code = device->face->event_record(device, parts->closing, parts->handle, op,
                                      &err);
  parts->stale = code != 0;
}

/* ---- closing ------------------------------------------------------------- */

static bool work_left(const tps_stream *stream) {
  const struct tps_stream_parts *parts = stream->parts;
  return parts->unseen || !tps_stream_passed(stream, stream->last_seq);
}

static void destroy_handle(tps_stream *stream) {
  tps_device *device = stream->device;
  if (stream->parts->foreign && stream->parts->handle != NULL)
    device->face->stream_forget(device, stream->parts->handle);
  else if (stream->parts->handle != NULL && !stream->is_default)
    device->face->stream_destroy(device, stream->parts->handle);
  stream->parts->handle = NULL;
}

static void forget_records(tps_stream *stream) {
  for (unsigned i = 0; i < TPS_RING; i++) {
    tps_op_unref(stream->parts->ring[i]);
    stream->parts->ring[i] = NULL;
  }
}

/* Without a mark of its last work (no event to be had) the driver's stream is
 * kept until it is found idle. */
void tps_stream_close(tps_stream *stream) {
  if (stream->closed || stream->is_default) return;
  struct tps_stream_parts *parts = stream->parts;
  tps_local *local = parts->local;
  tps_error err;
  tps_capture_forget(stream);
  tps_spares_flush(stream);
  if (tps_observing() && !parts->internal) tps_observe_stream(stream, false);
  stream->closed = true;
  stream->handle = NULL;
  list_remove(&local->open, stream);
  list_append(&local->closed, stream);
  bool marked = !work_left(stream) || parts->foreign ||
                tps_event_mark(stream, &parts->closing, &err) == 0 ||
                tps_faulted(stream->device);
  if (marked) destroy_handle(stream);
  if (marked && parts->closing == NULL) tps_stream_settle(stream);
}

static void free_stream(tps_stream *stream) {
  tps_stream_list *list = stream->closed ? &stream->parts->local->closed
                                         : &stream->parts->local->open;
  list_remove(list, stream);
  forget_records(stream);
  if (tps_observing()) tps_observe_gone(stream);
  free(stream);
}

/* True when a closed stream's work is over; lets go of what told so. */
static bool finished(tps_stream *stream) {
  struct tps_stream_parts *parts = stream->parts;
  if (parts->handle == NULL && parts->closing == NULL) return true;
  if (!tps_stream_idle(stream)) return false;
  if (parts->closing != NULL) tps_event_give(parts->local, parts->closing);
  parts->closing = NULL;
  destroy_handle(stream);
  return true;
}

void tps_stream_settle(tps_stream *stream) {
  if (!stream->closed || stream->parts->internal || !finished(stream)) return;
  if (stream->refs == 0 && stream->parts->holds == 0) free_stream(stream);
}

void tps_stream_settle_some(tps_local *local, unsigned limit) {
  tps_stream *next;
  for (tps_stream *s = local->closed.first; s != NULL && limit > 0; s = next) {
    next = s->parts->next;
    tps_stream_settle(s);
    limit--;
  }
}

void tps_stream_destroy(tps_stream *stream) {
  struct tps_stream_parts *parts = stream->parts;
  tps_spares_flush(stream);
  if (parts->closing != NULL) tps_event_give(parts->local, parts->closing);
  destroy_handle(stream);
  free_stream(stream);
}

void tps_stream_unhold(tps_stream *stream) {
  struct tps_stream_parts *parts = stream->parts;
  if (--parts->holds > 0 || stream->refs > 0) return;
  if (parts->handle == NULL && parts->closing == NULL) free_stream(stream);
}

tps_stream *tps_stream_ref(tps_stream *stream) {
  stream->refs++;
  return stream;
}

void tps_stream_unref(tps_stream *stream) {
  if (stream == NULL || stream->is_default) return;
  if (--stream->refs > 0) return;
  tps_context *context = stream->context;
  if (stream->closed) tps_stream_settle(stream);
  else tps_stream_close(stream);
  tps_context_release(context);
}

/* ---- state --------------------------------------------------------------- */

int tps_stream_refuse(const tps_stream *stream, tps_error *err) {
  if (stream->closed)
    return tps_fail(err, TPS_MISUSE, "attempt to use a closed stream");
  return tps_device_fault(stream->device, err);
}

uint64_t tps_stream_driver_handle(const tps_stream *stream) {
  if (stream->is_default || stream->handle == NULL) return 0;
  if (!stream->parts->foreign) stream->parts->unseen = true;
  return stream->device->face->stream_handle(stream->device, stream->handle);
}

bool tps_stream_idle(tps_stream *stream) {
  struct tps_stream_parts *parts = stream->parts;
  if (!work_left(stream)) return true;
  if (tps_stream_blank(stream)) return true;
  tps_error err;
  uint64_t seq = stream->last_seq;
  int code =
      tps_wait(parts->local, parts->handle, tps_stream_last(stream), 0, &err);
  if (code != 0) return tps_faulted(stream->device);
  tps_stream_reached(stream, seq);
  return true;
}

int tps_stream_query(tps_stream *stream, tps_error *err) {
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  if (stream->capturing) return tps_capture_refuse(stream, "be queried", err);
  tps_device *device = stream->device;
  code = device->face->stream_query(device, stream->handle, err);
  /* Somebody who has just been told that all is done may be quicker than the
   * end of the notification. */
  if (code == TPS_NOT_READY && work_left(stream)) return code;
  if (code == TPS_NOT_READY) code = 0;
  if (code != 0) return tps_failed(device, stream->parts->local, code, err);
  code = tps_others(stream->parts->local, err);
  if (code != 0) return code;
  tps_stream_reached(stream, stream->last_seq);
  tps_waited_stream(stream);
  return 0;
}

int tps_stream_synchronize(tps_stream *stream, uint64_t timeout_ns,
                           tps_error *err) {
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  if (stream->capturing)
    return tps_capture_refuse(stream, "be synchronized", err);
  tps_local *local = stream->parts->local;
  uint64_t seq = stream->last_seq;
  code = tps_wait(local, stream->handle, NULL, timeout_ns, err);
  if (code == 0) code = tps_others(local, err);
  if (code == 0) {
    tps_stream_reached(stream, seq);
    tps_waited_stream(stream);
    tps_reclaim_local(local);
  }
  return code;
}

/* ---- order between streams ----------------------------------------------- */

bool tps_stream_covers(const tps_stream *later, const tps_stream *earlier,
                       uint64_t seq) {
  const struct tps_stream_parts *parts = later->parts;
  for (unsigned i = 0; i < TPS_WAITED; i++)
    if (parts->waited[i].serial == earlier->parts->serial)
      return parts->waited[i].seq >= seq;
  return false;
}

void tps_stream_note_wait(tps_stream *later, const tps_stream *earlier,
                          uint64_t seq) {
  struct tps_stream_parts *parts = later->parts;
  uint64_t serial = earlier->parts->serial;
  unsigned i = 0;
  while (i < TPS_WAITED && parts->waited[i].serial != serial) i++;
  if (i == TPS_WAITED) {
    i = parts->waited_next++ % TPS_WAITED;
    parts->waited[i].serial = serial;
    parts->waited[i].seq = 0;
  }
  if (parts->waited[i].seq < seq) parts->waited[i].seq = seq;
}

static int wait_event(tps_stream *stream, tps_device_event *event, tps_op *op,
                      tps_error *err) {
  tps_device *device = stream->device;
  int code = device->face->stream_wait_event(device, stream->parts->handle,
                                             event, op, err);
  if (code == 0) {
    tps_stream_queued(stream);
    return 0;
  }
  tps_op_broke(op);
  return tps_failed(device, stream->parts->local, code, err);
}

/* The event that marks the present end of `earlier`; *pooled tells whether it
 * is to be given back. NULL: nothing to wait for. */
static int end_of(tps_stream *earlier, bool force, tps_device_event **out,
                  bool *pooled, tps_error *err) {
  const struct tps_stream_parts *parts = earlier->parts;
  *pooled = parts->handle != NULL && (!parts->foreign || parts->stale || force);
  *out = parts->closing;
  return *pooled ? tps_event_mark(earlier, out, err) : 0;
}

int tps_stream_follow(tps_stream *later, tps_stream *earlier, uint64_t seq,
                      bool force, tps_error *err) {
  if (later == earlier || tps_faulted(earlier->device)) return 0;
  if (!force && (tps_stream_passed(earlier, seq) ||
                 tps_stream_covers(later, earlier, seq)))
    return 0;
  tps_device_event *event;
  bool pooled;
  int code = end_of(earlier, force, &event, &pooled, err);
  if (code != 0 || event == NULL) return code;
  tps_op *op = tps_op_internal(later, TPS_OP_WAIT, err);
  code = op != NULL ? wait_event(later, event, op, err) : TPS_NO_HOST_MEMORY;
  if (pooled) tps_event_give(earlier->parts->local, event);
  if (code == 0) tps_stream_note_wait(later, earlier, earlier->last_seq);
  return code;
}

/* ---- user's waits: recorded like those through events -------------------- */

static int record_mark(tps_stream *stream, tps_device_event *event, uint64_t id,
                       tps_error *err) {
  tps_device *device = stream->device;
  tps_op *op = tps_op_begin(stream, TPS_OP_RECORD, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  op->event = id;
  tps_op_announce(op, stream);
  int code = device->face->event_record(device, event, stream->handle, op, err);
  if (code == 0) {
    tps_stream_queued(stream);
    return 0;
  }
  tps_op_broke(op);
  return tps_failed(device, stream->parts->local, code, err);
}

static int wait_mark(tps_stream *stream, tps_stream *other,
                     tps_device_event *event, uint64_t id, uint64_t seq,
                     tps_error *err) {
  tps_op *op = tps_op_begin(stream, TPS_OP_WAIT, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  op->event = id;
  tps_op_announce(op, stream);
  int code = wait_event(stream, event, op, err);
  if (code == 0) tps_stream_note_wait(stream, other, seq);
  return code;
}

static int same_kind(const tps_stream *stream, const tps_stream *other,
                     tps_error *err) {
  if (stream->device->kind == other->device->kind) return 0;
  char a[32], b[32];
  return tps_fail(err, TPS_MISUSE,
                  "a stream of %s can't wait for a stream of %s: the devices "
                  "are of different kinds",
                  tps_device_label(stream->device, a, sizeof a),
                  tps_device_label(other->device, b, sizeof b));
}

/* What one stream gives the others to wait for. */
typedef struct post {
  tps_device_event *event;
  uint64_t id, seq;
} post;

static int make_post(tps_stream *stream, post *out, tps_error *err) {
  tps_local *local = stream->parts->local;
  out->event = NULL;
  int code = tps_event_take(local, &out->event, err);
  if (code != 0) return code;
  out->id = tps_next_id();
  code = record_mark(stream, out->event, out->id, err);
  out->seq = stream->last_seq;
  return code;
}

static void drop_post(tps_stream *stream, post *p) {
  if (p->event == NULL) return;
  tps_event_give(stream->parts->local, p->event);
  if (tps_observing()) tps_observe_event_ended(p->id);
}

int tps_stream_wait_stream(tps_stream *stream, tps_stream *other,
                           tps_error *err) {
  int code = tps_stream_ready(stream, err);
  if (code == 0) code = tps_stream_ready(other, err);
  if (code != 0 || stream == other) return code;
  code = same_kind(stream, other, err);
  if (code != 0) return code;
  if (stream->capturing || other->capturing)
    return tps_capture_wait_stream(stream, other, err);
  post p;
  code = make_post(other, &p, err);
  if (code == 0) code = wait_mark(stream, other, p.event, p.id, p.seq, err);
  drop_post(other, &p);
  return code;
}

static int wait_for_posts(tps_stream *const *streams, const post *posts,
                          size_t count, size_t i, tps_error *err) {
  for (size_t j = 0; j < count; j++) {
    if (streams[j] == streams[i]) continue;
    int code = wait_mark(streams[i], streams[j], posts[j].event, posts[j].id,
                         posts[j].seq, err);
    if (code != 0) return code;
  }
  return 0;
}

int tps_stream_barrier(tps_stream *const *streams, size_t count,
                       tps_error *err) {
  int code = 0;
  for (size_t i = 0; i < count && code == 0; i++) {
    code = tps_stream_ready(streams[i], err);
    if (code == 0) code = same_kind(streams[i], streams[0], err);
  }
  if (code != 0 || count < 2) return code;
  for (size_t i = 0; i < count; i++)
    if (streams[i]->capturing) return tps_capture_barrier(streams, count, err);
  post few[16], *posts = few;
  if (count > 16) posts = malloc(count * sizeof *posts);
  if (posts == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  size_t made = 0;
  while (made < count && code == 0)
    code = make_post(streams[made], &posts[made], err), made++;
  for (size_t i = 0; i < count && code == 0; i++)
    code = wait_for_posts(streams, posts, count, i, err);
  for (size_t i = 0; i < made; i++) drop_post(streams[i], &posts[i]);
  if (posts != few) free(posts);
  return code;
}
