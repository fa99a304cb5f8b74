/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Callbacks. Each has two owners: the context, which lists it until it is taken
 * or lost, and whoever delivers it, until that is done. A GPU that has faulted
 * delivers nothing more; what it owns then stays with the driver. */
#include <stdlib.h>

#include "runtime/callback.h"
#include "runtime/capture.h"
#include "runtime/inbox.h"

typedef struct tps_callback callback;

struct tps_inbox *tps_inbox_of(tps_context *context, tps_error *err) {
  struct tps_context_parts *parts = context->parts;
  if (parts->inbox != NULL) return parts->inbox;
  struct tps_inbox *inbox = calloc(1, sizeof *inbox);
  if (inbox == NULL) {
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  pthread_mutex_init(&inbox->lock, NULL);
  atomic_init(&inbox->refs, 1);
  inbox->signal = inbox->timer = inbox->both = -1;
  return parts->inbox = inbox;
}

static void release_inbox(struct tps_inbox *inbox) {
  if (atomic_fetch_sub_explicit(&inbox->refs, 1, memory_order_acq_rel) != 1)
    return;
  pthread_mutex_destroy(&inbox->lock);
  free(inbox);
}

/* The analyzer doesn't count the two shares. NOLINTBEGIN(*-unix.Malloc) */
static void release(callback *c) {
  if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  struct tps_inbox *inbox = c->inbox;
  free(c);
  release_inbox(inbox);
}

/* ---- the context's list -------------------------------------------------- */

static void append(struct tps_inbox *inbox, callback *c) {
  c->previous = inbox->last;
  if (inbox->last != NULL) inbox->last->next = c;
  else inbox->first = c;
  inbox->last = c;
}

/* The context lets go of the callback. */
static void drop(callback *c) {
  struct tps_inbox *inbox = c->inbox;
  if (c->next != NULL) c->next->previous = c->previous;
  else inbox->last = c->previous;
  if (c->previous != NULL) c->previous->next = c->next;
  else inbox->first = c->next;
  if (c->place != NULL) *c->place = NULL;
  if (c->stream != NULL) {
    c->stream->parts->local->callbacks--;
    tps_stream_unhold(c->stream);
  }
  release(c);
}

/* ---- from the device ----------------------------------------------------- */

/* On a thread of the device's. The device's share goes on to the list of those
 * that are due, or ends. */
static void deliver(void *data, bool failed) {
  callback *c = data;
  struct tps_inbox *inbox = c->inbox;
  pthread_mutex_lock(&inbox->lock);
  bool wanted = !failed && !c->taken;
  bool was_due = tps_inbox_due(inbox);
  if (wanted) {
    if (inbox->due_last != NULL) inbox->due_last->due_next = c;
    else inbox->due = c;
    inbox->due_last = c;
  }
  inbox->failed = inbox->failed || failed;
  if (!was_due) tps_inbox_signal(inbox);
  pthread_mutex_unlock(&inbox->lock);
  if (!wanted) release(c);
}

void tps_callback_deliver(tps_callback *c) { deliver(c, false); }

/* ---- queueing ------------------------------------------------------------ */

/* `stream` may be NULL. */
static callback *new_callback(tps_context *context, tps_stream *stream,
                              uint64_t token, tps_error *err) {
  struct tps_inbox *inbox = tps_inbox_of(context, err);
  if (inbox == NULL) return NULL;
  callback *c = calloc(1, sizeof *c);
  if (c == NULL) {
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  atomic_fetch_add_explicit(&inbox->refs, 1, memory_order_relaxed);
  atomic_init(&c->refs, 2);
  c->inbox = inbox;
  c->token = token;
  c->stream = stream;
  if (stream != NULL) {
    stream->parts->local->callbacks++;
    tps_stream_hold(stream);
  }
  append(inbox, c);
  return c;
}

tps_callback *tps_callback_new(tps_context *context, uint64_t token,
                               tps_error *err) {
  return new_callback(context, NULL, token, err);
}

/* With a record of its own if `op` is NULL; else with this one, which no
 * observer sees. */
static int notify(callback *c, tps_op *op, tps_error *err) {
  tps_stream *stream = c->stream;
  tps_device *device = stream->device;
  bool seen = op == NULL;
  int code = TPS_NO_HOST_MEMORY;
  if (seen) op = tps_op_begin(stream, TPS_OP_HOST, err);
  if (op != NULL) {
    if (seen && tps_observing()) op->event = c->promise = tps_next_id();
    if (seen) tps_op_announce(op, stream);
    code = device->face->stream_notify(device, stream->handle, deliver, c, op,
                                       err);
    if (code == 0) {
      if (seen) tps_stream_queued(stream);
      tps_inbox_watch(c->inbox, device);
      return 0;
    }
    if (seen) tps_op_broke(op);
    code = tps_failed(device, stream->parts->local, code, err);
  }
  release(c); /* the device's share */
  drop(c);
  return code;
}

int tps_callback_queue(tps_stream *stream, uint64_t token, tps_error *err) {
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  if (stream->capturing) return tps_capture_notify(stream, err);
  callback *c = new_callback(stream->context, stream, token, err);
  return c == NULL ? TPS_NO_HOST_MEMORY : notify(c, NULL, err);
}

/* ---- awaiting ------------------------------------------------------------ */

/* The wait that goes on for operation `seq`, if it is the last there was. */
static bool goes_on(const callback *wait, uint64_t seq, uint64_t *token) {
  *token = wait != NULL && wait->seq == seq ? wait->token : 0;
  return *token != 0;
}

static int refuse_await(tps_stream *stream, tps_error *err) {
  int code = tps_stream_ready(stream, err);
  if (code == 0 && stream->capturing)
    code = tps_capture_refuse(stream, "be awaited", err);
  return code;
}

/* Nobody has seen what was queued through the handle. */
static bool unseen(const tps_stream *stream) {
  return stream->parts->foreign || stream->parts->unseen;
}

int tps_callback_ask_stream(tps_stream *stream, uint64_t *token,
                            tps_error *err) {
  int code = refuse_await(stream, err);
  *token = 0;
  if (code != 0) return code;
  if (!unseen(stream) && goes_on(stream->parts->wait, stream->last_seq, token))
    return TPS_NOT_READY;
  return tps_stream_query(stream, err);
}

int tps_callback_ask_event(tps_event *event, uint64_t *token, tps_error *err) {
  uint64_t seq;
  int code = tps_event_refuse_captured(event, "be awaited", err);
  *token = 0;
  if (code != 0) return code;
  if (tps_event_last(event, &seq) != NULL && goes_on(event->wait, seq, token))
    return TPS_NOT_READY;
  return tps_event_query(event, err);
}

/* Others find the wait there, instead of the one before it. */
static void put(callback *c, callback **place) {
  if (*place != NULL) (*place)->place = NULL;
  *place = c;
  c->place = place;
}

/* The stream's numbers stay as they are: its last operation is the one that is
 * waited for. */
static int await(tps_stream *stream, uint64_t event, uint64_t seq,
                 callback **place, uint64_t token, tps_error *err) {
  callback *c = new_callback(stream->context, stream, token, err);
  if (c == NULL) return TPS_NO_HOST_MEMORY;
  c->awaited = true;
  c->event = event;
  c->seq = seq;
  put(c, place);
  if (tps_observing()) c->promise = tps_observe_promised(stream, event);
  tps_op *op = tps_op_internal(stream, TPS_OP_HOST, err);
  if (op != NULL) return notify(c, op, err);
  release(c);
  drop(c);
  return TPS_NO_HOST_MEMORY;
}

int tps_callback_await_stream(tps_stream *stream, uint64_t token,
                              tps_error *err) {
  int code = refuse_await(stream, err);
  if (code != 0) return code;
  return await(stream, 0, stream->last_seq, &stream->parts->wait, token, err);
}

int tps_callback_await_event(tps_event *event, uint64_t token, tps_error *err) {
  tps_stream *stream;
  uint64_t seq;
  int code = tps_event_refuse_captured(event, "be awaited", err);
  if (code == 0) code = tps_event_watch(event, &stream, err);
  if (code != 0) return code;
  tps_event_last(event, &seq);
  return await(stream, event->id, seq, &event->wait, token, err);
}

/* ---- host nodes of graphs ------------------------------------------------ */

/* The callbacks of launches that were queued, the earliest first, each with the
 * device's share: a graph's launches run one after the other. */
struct tps_notice {
  struct tps_inbox *inbox;
  callback *armed, *last; /* by due_next; under the inbox's lock */
  atomic_int refs;        /* the graph's, and one for each armed */
};

struct tps_notice *tps_notice_new(tps_context *context, tps_error *err) {
  struct tps_inbox *inbox = tps_inbox_of(context, err);
  if (inbox == NULL) return NULL;
  struct tps_notice *notice = calloc(1, sizeof *notice);
  if (notice == NULL) {
    tps_out_of_host_memory(err);
    return NULL;
  }
  atomic_fetch_add_explicit(&inbox->refs, 1, memory_order_relaxed);
  atomic_init(&notice->refs, 1);
  notice->inbox = inbox;
  return notice;
}

void tps_notice_unref(struct tps_notice *notice) {
  if (atomic_fetch_sub_explicit(&notice->refs, 1, memory_order_acq_rel) != 1)
    return;
  struct tps_inbox *inbox = notice->inbox;
  free(notice);
  release_inbox(inbox);
}

int tps_notice_arm(struct tps_notice *notice, tps_stream *stream,
                   uint64_t token, uint64_t promise, tps_error *err) {
  callback *c = new_callback(stream->context, stream, token, err);
  if (c == NULL) return TPS_NO_HOST_MEMORY;
  c->promise = promise;
  atomic_fetch_add_explicit(&notice->refs, 1, memory_order_relaxed);
  pthread_mutex_lock(&notice->inbox->lock);
  if (notice->last != NULL) notice->last->due_next = c;
  else notice->armed = c;
  notice->last = c;
  pthread_mutex_unlock(&notice->inbox->lock);
  tps_inbox_watch(notice->inbox, stream->device);
  return 0;
}

void tps_notice_disarm(struct tps_notice *notice) {
  pthread_mutex_lock(&notice->inbox->lock);
  callback *c = notice->last, *before = NULL;
  for (callback *p = notice->armed; p != c; p = p->due_next) before = p;
  if (before != NULL) before->due_next = NULL;
  else notice->armed = NULL;
  notice->last = before;
  pthread_mutex_unlock(&notice->inbox->lock);
  release(c); /* the device's share */
  drop(c);
  tps_notice_unref(notice);
}

/* On a thread of the device's. */
void tps_notice_deliver(void *data, bool failed) {
  struct tps_notice *notice = data;
  pthread_mutex_lock(&notice->inbox->lock);
  callback *c = notice->armed;
  if (c != NULL) {
    notice->armed = c->due_next;
    if (notice->armed == NULL) notice->last = NULL;
    c->due_next = NULL;
  }
  pthread_mutex_unlock(&notice->inbox->lock);
  if (c == NULL) return;
  deliver(c, failed);
  tps_notice_unref(notice);
}

/* ---- taking -------------------------------------------------------------- */

bool tps_callback_any(const tps_context *context) {
  const struct tps_inbox *inbox = context->parts->inbox;
  return inbox != NULL && inbox->first != NULL;
}

/* The first of those that are due, with the device's share; NULL: none. They are
 * fetched all at once. */
static callback *pop(struct tps_inbox *inbox) {
  if (inbox->fetched == NULL) {
    pthread_mutex_lock(&inbox->lock);
    inbox->fetched = inbox->due;
    inbox->due = inbox->due_last = NULL;
    if (inbox->fetched != NULL && !inbox->failed) tps_inbox_unsignal(inbox);
    pthread_mutex_unlock(&inbox->lock);
  }
  callback *c = inbox->fetched;
  if (c != NULL) inbox->fetched = c->due_next;
  return c;
}

/* What whoever waited for it may know now; a fault of another device, if that is how
 * it came to be over. */
static int tell_waited(const callback *c, tps_error *err) {
  tps_stream *stream = c->stream;
  int code = c->awaited ? tps_others(stream->parts->local, err) : 0;
  if (code != 0) return code;
  if (c->awaited && c->event == 0) tps_stream_reached(stream, c->seq);
  if (tps_observing() && (c->awaited || c->promise != 0))
    tps_observe_waited(&(tps_wait_note){.context = stream->context,
                                        .device = stream->device,
                                        .stream = c->event == 0 ? stream : NULL,
                                        .event = c->event,
                                        .promise = c->promise});
  return 0;
}

bool tps_callback_take(tps_context *context, uint64_t *token, int *code,
                       tps_error *err) {
  struct tps_inbox *inbox = context->parts->inbox;
  callback *c;
  while (inbox != NULL && (c = pop(inbox)) != NULL) {
    bool lost = c->taken; /* only this thread sets it */
    if (!lost) {
      *token = c->token;
      c->taken = true;
      *code = tell_waited(c, err);
      drop(c);
    }
    release(c);
    if (!lost) return true;
  }
  return false;
}

/* From now on the device's thread only frees it. */
static void lose(callback *c) {
  pthread_mutex_lock(&c->inbox->lock);
  c->taken = true;
  pthread_mutex_unlock(&c->inbox->lock);
  drop(c);
}

tps_local *tps_inbox_lost(const tps_context *context) {
  tps_local *local = context->parts->locals;
  while (local != NULL &&
         (local->callbacks == 0 || !tps_faulted(local->device)))
    local = local->next;
  return local;
}

/* The first of a part that has some. */
static callback *first_of(const tps_local *local) {
  callback *c = local->context->parts->inbox->first;
  while (c->stream == NULL || c->stream->parts->local != local) c = c->next;
  return c;
}

bool tps_callback_lose(tps_context *context, uint64_t *token, tps_error *err) {
  const tps_local *local = tps_inbox_lost(context);
  if (local == NULL) return false;
  callback *c = first_of(local);
  tps_device_fault(c->stream->device, err);
  *token = c->token;
  lose(c);
  return true;
}

/* Whatever the driver answers, it tells of a fault. */
static void ask(tps_stream *stream) {
  const struct tps_stream_parts *parts = stream->parts;
  const tps_device *device = stream->device;
  tps_device_stream *handle = parts->handle;
  tps_error err;
  if (tps_stream_blank(stream))
    handle = device->face->default_stream(stream->device);
  tps_wait(parts->local, handle, tps_stream_last(stream), 0, &err);
}

bool tps_callback_ready(tps_context *context) {
  struct tps_inbox *inbox = context->parts->inbox;
  if (inbox == NULL) return false;
  pthread_mutex_lock(&inbox->lock);
  bool ready = (inbox->due != NULL || inbox->fetched != NULL) && !inbox->failed;
  pthread_mutex_unlock(&inbox->lock);
  return ready;
}

void tps_callback_look(tps_context *context) {
  struct tps_inbox *inbox = context->parts->inbox;
  if (inbox == NULL) return;
  for (tps_local *l = context->parts->locals; l != NULL; l = l->next)
    if (l->callbacks > 0) ask(first_of(l)->stream);
  pthread_mutex_lock(&inbox->lock);
  bool was_due = tps_inbox_due(inbox);
  inbox->failed = false;
  if (was_due && !tps_inbox_due(inbox)) tps_inbox_unsignal(inbox);
  pthread_mutex_unlock(&inbox->lock);
}

void tps_callback_end(tps_context *context) {
  struct tps_inbox *inbox = context->parts->inbox;
  callback *c;
  if (inbox == NULL) return;
  context->parts->inbox = NULL;
  tps_inbox_close(inbox);
  while (inbox->first != NULL) lose(inbox->first);
  while ((c = pop(inbox)) != NULL) release(c);
  release_inbox(inbox);
}
/* NOLINTEND(*-unix.Malloc) */
