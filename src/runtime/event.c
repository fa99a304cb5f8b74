/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Events, and the pool of driver events that a context keeps for each device. A
 * plain event (no timing, no flags) comes from the pool and goes back there:
 * what waits for an earlier record of it is not disturbed by the next. */
#include <stdlib.h>

#include "runtime/capture.h"
#include "runtime/inbox.h"

/* The public struct and what only this file knows. */
typedef struct whole {
  tps_event event;
  tps_local *local;   /* of the device, once recorded */
  tps_stream *stream; /* recorded last on; held */
  uint64_t seq;  /* of that record; of a graph's: of the operation before */
  int refs;      /* the owner's, and those of graphs */
  bool shared;   /* with other processes, which may record it too */
  bool in_graph; /* a graph recorded it last */
  bool graphed;  /* a graph has recorded it */
  tps_capture_mark *mark; /* when it was recorded last while capturing */
} whole;

/* The place in a capture that the event is now, or NULL. Most are recorded by the
 * launches of the graph once the capture has ended. */
static const tps_capture_mark *place(const whole *w) {
  const tps_capture_mark *mark = w->mark;
  if (mark == NULL || mark->only) return mark;
  return tps_capture_lives(w->event.context, mark->capture) ? mark : NULL;
}

/* ---- pool ---------------------------------------------------------------- */

int tps_event_take(tps_local *local, tps_device_event **out, tps_error *err) {
  if (local->event_count > 0) {
    *out = local->events[--local->event_count];
    return 0;
  }
  tps_device *device = local->device;
  int code = device->face->event_create(device, 0, out, err);
  return code != 0 ? tps_failed(device, local, code, err) : 0;
}

void tps_event_give(tps_local *local, tps_device_event *event) {
  if (local->event_count < TPS_EVENT_POOL)
    local->events[local->event_count++] = event;
  else local->device->face->event_destroy(local->device, event);
}

int tps_event_mark(tps_stream *stream, tps_device_event **out, tps_error *err) {
  struct tps_stream_parts *parts = stream->parts;
  tps_device *device = stream->device;
  tps_device_event *event;
  *out = NULL;
  tps_op *op = tps_op_internal(stream, TPS_OP_RECORD, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  int code = tps_event_take(parts->local, &event, err);
  if (code != 0) return code;
  code = device->face->event_record(device, event, parts->handle, op, err);
  if (code != 0) {
    tps_event_give(parts->local, event);
    return tps_failed(device, parts->local, code, err);
  }
  *out = event;
  return 0;
}

/* ---- events -------------------------------------------------------------- */

tps_event *tps_event_new(tps_context *context, unsigned flags) {
  whole *w = calloc(1, sizeof *w);
  if (w == NULL) return NULL;
  w->event.context = context;
  w->event.flags = flags;
  w->event.id = tps_next_id();
  w->refs = 1;
  tps_context_hold(context);
  return &w->event;
}

void tps_event_ref(tps_event *event) { ((whole *)event)->refs++; }

/* A launch of a graph may still be about to record it: then the next use of the
 * driver's event would be disturbed. */
static void drop_handle(whole *w) {
  tps_event *event = &w->event;
  if (event->handle == NULL) return;
  if (event->flags == 0 && !w->graphed) tps_event_give(w->local, event->handle);
  else event->device->face->event_destroy(event->device, event->handle);
  event->handle = NULL;
}

void tps_event_free(tps_event *event) {
  if (event == NULL) return;
  whole *w = (whole *)event;
  tps_context *context = event->context;
  if (--w->refs > 0) return;
  if (event->wait != NULL) event->wait->place = NULL;
  if (tps_observing()) tps_observe_event_ended(event->id);
  drop_handle(w);
  if (w->stream != NULL) tps_stream_unhold(w->stream);
  free(w->mark);
  free(w);
  tps_context_release(context);
}

bool tps_event_recorded(const tps_event *event) {
  const whole *w = (const whole *)event;
  return w->stream != NULL || w->shared || place(w) != NULL;
}

tps_stream *tps_event_last(const tps_event *event, uint64_t *seq) {
  const whole *w = (const whole *)event;
  *seq = w->seq;
  return w->shared || w->in_graph ? NULL : w->stream;
}

bool tps_event_heard(const tps_event *event) {
  const whole *w = (const whole *)event;
  if (w->mark != NULL && w->mark->only) return false;
  return w->refs > 1 || w->shared;
}

static int refuse_closed(const tps_event *event, tps_error *err) {
  return event->closed
             ? tps_fail(err, TPS_MISUSE, "attempt to use a closed event")
             : 0;
}

/* Refuses a closed event and a faulted device. */
static int ready(const tps_event *event, tps_error *err) {
  int code = refuse_closed(event, err);
  if (code == 0 && event->device != NULL)
    code = tps_device_fault(event->device, err);
  return code;
}

int tps_event_refuse_captured(const tps_event *event, const char *what,
                              tps_error *err) {
  const tps_capture_mark *mark = place((const whole *)event);
  if (mark == NULL) return 0;
  if (mark->only && mark->node == UINT32_MAX)
    return tps_fail(err, TPS_MISUSE,
                    "the event was recorded in the body of a conditional node: "
                    "it can't %s",
                    what);
  if (mark->only)
    return tps_fail(
        err, TPS_MISUSE,
        "the event was made in a capture and waited for there: it "
        "can't %s (one made before can, when the graph is launched)",
        what);
  return tps_fail(err, TPS_MISUSE,
                  "the event was recorded in a capture: it can't %s before the "
                  "graph is launched",
                  what);
}

static int other_device(const tps_event *event, const tps_stream *stream,
                        tps_error *err) {
  char a[32], b[32];
  return tps_fail(err, TPS_MISUSE,
                  "an event of %s can't be recorded on a stream of %s",
                  tps_device_label(event->device, a, sizeof a),
                  tps_device_label(stream->device, b, sizeof b));
}

/* Makes the driver's event on the device of its first record. */
static int make_handle(whole *w, tps_local *local, tps_error *err) {
  tps_event *event = &w->event;
  tps_device *device = local->device;
  int code = event->flags == 0 ? tps_event_take(local, &event->handle, err)
                               : device->face->event_create(
                                     device, event->flags, &event->handle, err);
  if (code != 0) {
    event->handle = NULL;
    return tps_failed(device, local, code, err);
  }
  event->device = device;
  w->local = local;
  return 0;
}

static void remember(whole *w, tps_stream *stream, uint64_t seq) {
  if (w->stream != stream) {
    tps_stream_hold(stream);
    if (w->stream != NULL) tps_stream_unhold(w->stream);
    w->stream = stream;
  }
  w->seq = seq;
}

static void forget_mark(whole *w) {
  free(w->mark);
  w->mark = NULL;
}

void tps_event_launched(tps_event *event, tps_stream *stream, uint64_t seq) {
  whole *w = (whole *)event;
  remember(w, stream, seq - 1); /* what the launch itself does, may go on */
  w->in_graph = w->graphed = true;
  forget_mark(w);
}

static int record_captured(whole *w, tps_stream *stream, tps_error *err) {
  tps_branch *branch;
  int code = tps_capture_branch(stream, &branch, err);
  if (code == 0 && w->event.handle == NULL && branch->capture->around == NULL)
    code = make_handle(w, stream->parts->local, err);
  if (code != 0) return code;
  return tps_capture_record(stream, &w->event, &w->mark, err);
}

int tps_event_record(tps_event *event, tps_stream *stream, tps_error *err) {
  whole *w = (whole *)event;
  tps_device *device = stream->device;
  int code = refuse_closed(event, err);
  if (code == 0) code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  if (event->device != NULL && event->device != device)
    return other_device(event, stream, err);
  if (stream->capturing) return record_captured(w, stream, err);
  if (event->handle == NULL) code = make_handle(w, stream->parts->local, err);
  if (code != 0) return code;
  tps_op *op = tps_op_begin(stream, TPS_OP_RECORD, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  op->event = event->id;
  tps_op_announce(op, stream);
  code = device->face->event_record(device, event->handle, stream->handle, op,
                                    err);
  if (code != 0) {
    tps_op_broke(op);
    return tps_failed(device, stream->parts->local, code, err);
  }
  tps_stream_queued(stream);
  remember(w, stream, op->seq);
  w->in_graph = false;
  forget_mark(w);
  return 0;
}

static int other_kind(const tps_event *event, const tps_stream *stream,
                      tps_error *err) {
  char a[32], b[32];
  return tps_fail(err, TPS_MISUSE,
                  "a stream of %s can't wait for an event of %s: the devices "
                  "are of different kinds",
                  tps_device_label(stream->device, a, sizeof a),
                  tps_device_label(event->device, b, sizeof b));
}

int tps_event_wait(tps_event *event, tps_stream *stream, tps_error *err) {
  const whole *w = (const whole *)event;
  tps_device *device = stream->device;
  int code = ready(event, err);
  if (code == 0) code = tps_stream_ready(stream, err);
  if (code != 0 || !tps_event_recorded(event)) return code;
  if (place(w) != NULL) {
    code = tps_capture_wait(stream, w->mark, err);
    if (code == 0 && event->passing) w->mark->only = true;
    return code;
  }
  if (stream->capturing)
    return tps_capture_refuse(
        stream, "wait for an event recorded outside of the capture", err);
  if (event->device->kind != device->kind)
    return other_kind(event, stream, err);
  tps_op *op = tps_op_begin(stream, TPS_OP_WAIT, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  op->event = event->id;
  tps_op_announce(op, stream);
  code = device->face->stream_wait_event(device, stream->handle, event->handle,
                                         op, err);
  if (code != 0) {
    tps_op_broke(op);
    return tps_failed(device, stream->parts->local, code, err);
  }
  tps_stream_queued(stream);
  if (w->stream != NULL) tps_stream_note_wait(stream, w->stream, w->seq);
  return 0;
}

static void reached(const whole *w) {
  if (w->stream != NULL) tps_stream_reached(w->stream, w->seq);
  if (tps_observing())
    tps_observe_waited(&(tps_wait_note){.context = w->event.context,
                                        .device = w->event.device,
                                        .event = w->event.id});
}

int tps_event_query(tps_event *event, tps_error *err) {
  const whole *w = (const whole *)event;
  int code = ready(event, err);
  if (code == 0) code = tps_event_refuse_captured(event, "be queried", err);
  if (code != 0 || !tps_event_recorded(event)) return code;
  tps_device *device = event->device;
  code = device->face->event_query(device, event->handle, err);
  if (code != 0 && code != TPS_NOT_READY)
    return tps_failed(device, w->local, code, err);
  if (code == 0) code = tps_others(w->local, err);
  if (code == 0) reached(w);
  return code;
}

int tps_event_synchronize(tps_event *event, uint64_t timeout_ns,
                          tps_error *err) {
  const whole *w = (const whole *)event;
  int code = ready(event, err);
  if (code == 0)
    code = tps_event_refuse_captured(event, "be synchronized", err);
  if (code != 0 || !tps_event_recorded(event)) return code;
  code = tps_wait(w->local, NULL, event->handle, timeout_ns, err);
  if (code == 0) code = tps_others(w->local, err);
  if (code == 0) {
    reached(w);
    tps_reclaim_local(w->local);
  }
  return code;
}

/* ---- elapsed time -------------------------------------------------------- */

static int check_timing(const tps_event *event, const char *which,
                        tps_error *err) {
  if (event->flags & TPS_EVENT_TIMING) return 0;
  return tps_fail(err, TPS_INVALID_HANDLE,
                  "the %s event was made without timing", which);
}

static int check_recorded(const tps_event *event, const char *which,
                          tps_error *err) {
  const whole *w = (const whole *)event;
  if (place(w) != NULL)
    return tps_fail(err, TPS_INVALID_HANDLE,
                    "the %s event was recorded in a capture", which);
  if (w->stream != NULL) return 0;
  return tps_fail(err, TPS_INVALID_HANDLE, "the %s event has not been recorded",
                  which);
}

static int check_finished(tps_event *event, const char *which, tps_error *err) {
  int code = tps_event_query(event, err);
  if (code != TPS_NOT_READY) return code;
  return tps_fail(err, TPS_NOT_READY, "the %s event is not finished", which);
}

int tps_event_elapsed(tps_event *a, tps_event *b, double *ms, tps_error *err) {
  char x[32], y[32];
  int code;
  TPS_TRY(out, ready(a, err));
  TPS_TRY(out, ready(b, err));
  TPS_TRY(out, check_timing(a, "start", err));
  TPS_TRY(out, check_timing(b, "end", err));
  TPS_TRY(out, check_recorded(a, "start", err));
  TPS_TRY(out, check_recorded(b, "end", err));
  if (a->device != b->device)
    return tps_fail(err, TPS_INVALID_HANDLE,
                    "the start event is of %s, the end event of %s",
                    tps_device_label(a->device, x, sizeof x),
                    tps_device_label(b->device, y, sizeof y));
  TPS_TRY(out, check_finished(a, "start", err));
  TPS_TRY(out, check_finished(b, "end", err));
  code =
      a->device->face->event_elapsed(a->device, a->handle, b->handle, ms, err);
  if (code != 0) code = tps_failed(a->device, ((whole *)a)->local, code, err);
out:
  return code;
}

uint64_t tps_event_driver_handle(const tps_event *event) {
  if (event->handle == NULL) return 0;
  return event->device->face->event_handle(event->device, event->handle);
}

/* ---- between processes --------------------------------------------------- */

int tps_event_export(tps_event *event, tps_device *device,
                     char handle[TPS_EVENT_IPC_BYTES], tps_error *err) {
  whole *w = (whole *)event;
  int code = ready(event, err);
  if (code != 0) return code;
  if (!(event->flags & TPS_EVENT_INTERPROCESS))
    return tps_fail(err, TPS_MISUSE,
                    "the event was not made for other processes "
                    "(interprocess)");
  if (event->handle == NULL) {
    tps_local *local = tps_local_get(event->context, device, err);
    code = local == NULL ? TPS_NO_HOST_MEMORY : tps_device_fault(device, err);
    if (code == 0) code = make_handle(w, local, err);
    if (code != 0) return code;
  }
  device = event->device;
  code = device->face->event_export(device, event->handle, handle, err);
  if (code != 0) return tps_failed(device, w->local, code, err);
  w->shared = true;
  return 0;
}

int tps_event_import(tps_context *context, tps_device *device,
                     const char handle[TPS_EVENT_IPC_BYTES], tps_event **out,
                     tps_error *err) {
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_event *event = tps_event_new(context, TPS_EVENT_INTERPROCESS);
  if (event == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  code = device->face->event_import(device, handle, &event->handle, err);
  if (code != 0) {
    event->handle = NULL;
    tps_event_free(event);
    return tps_failed(device, local, code, err);
  }
  whole *w = (whole *)event;
  event->device = device;
  w->local = local;
  w->shared = true;
  *out = event;
  return 0;
}
