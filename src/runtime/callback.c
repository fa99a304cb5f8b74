/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Callbacks. Each has two owners: the context, which lists it until it is taken
 * or lost, and the device, until that has delivered it. A GPU that has faulted
 * delivers nothing more; what it owns then stays with the driver. */
#include <stdlib.h>

#include "runtime/callback.h"
#include "runtime/parts.h"

typedef struct callback {
  struct callback *next, *previous; /* of the context's list */
  struct callback *due_next;        /* in the inbox */
  tps_stream *stream;               /* held */
  struct tps_inbox *inbox;
  uint64_t token;
  bool taken; /* under the inbox's lock: the context has let go of it */
  atomic_int refs;
} callback;

struct tps_inbox {
  callback *first, *last; /* all, in order; the context's thread alone */
  pthread_mutex_t lock;   /* for what follows */
  callback *due, *due_last;
  atomic_int refs; /* the context's and one for each callback */
};

static struct tps_inbox *inbox_of(tps_context *context, tps_error *err) {
  struct tps_context_parts *parts = context->parts;
  if (parts->inbox != NULL) return parts->inbox;
  struct tps_inbox *inbox = calloc(1, sizeof *inbox);
  if (inbox == NULL) {
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  pthread_mutex_init(&inbox->lock, NULL);
  atomic_init(&inbox->refs, 1);
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
  tps_stream_unhold(c->stream);
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
  if (wanted) {
    if (inbox->due_last != NULL) inbox->due_last->due_next = c;
    else inbox->due = c;
    inbox->due_last = c;
  }
  pthread_mutex_unlock(&inbox->lock);
  if (!wanted) release(c);
}

/* ---- queueing ------------------------------------------------------------ */

static callback *new_callback(tps_stream *stream, uint64_t token,
                              tps_error *err) {
  struct tps_inbox *inbox = inbox_of(stream->context, err);
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
  tps_stream_hold(stream);
  append(inbox, c);
  return c;
}

int tps_callback_queue(tps_stream *stream, uint64_t token, tps_error *err) {
  tps_device *device = stream->device;
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  callback *c = new_callback(stream, token, err);
  if (c == NULL) return TPS_NO_HOST_MEMORY;
  tps_op *op = tps_op_begin(stream, TPS_OP_HOST, err);
  if (op != NULL) {
    tps_op_announce(op);
    code = device->face->stream_notify(device, stream->handle, deliver, c, op,
                                       err);
    if (code == 0) {
      tps_stream_queued(stream);
      return 0;
    }
    tps_op_broke(op);
    code = tps_failed(device, stream->parts->local, code, err);
  } else {
    code = TPS_NO_HOST_MEMORY;
  }
  release(c); /* the device's share */
  drop(c);
  return code;
}

/* ---- taking -------------------------------------------------------------- */

bool tps_callback_any(const tps_context *context) {
  const struct tps_inbox *inbox = context->parts->inbox;
  return inbox != NULL && inbox->first != NULL;
}

/* The first of the due list, with the device's share; NULL: none. */
static callback *pop(struct tps_inbox *inbox) {
  pthread_mutex_lock(&inbox->lock);
  callback *c = inbox->due;
  if (c != NULL) {
    inbox->due = c->due_next;
    if (inbox->due == NULL) inbox->due_last = NULL;
  }
  pthread_mutex_unlock(&inbox->lock);
  return c;
}

bool tps_callback_take(tps_context *context, uint64_t *token) {
  struct tps_inbox *inbox = context->parts->inbox;
  callback *c;
  while (inbox != NULL && (c = pop(inbox)) != NULL) {
    bool lost = c->taken; /* only this thread sets it */
    if (!lost) {
      *token = c->token;
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

bool tps_callback_lose(tps_context *context, uint64_t *token, tps_error *err) {
  struct tps_inbox *inbox = context->parts->inbox;
  callback *c = inbox == NULL ? NULL : inbox->first;
  while (c != NULL && !tps_faulted(c->stream->device)) c = c->next;
  if (c == NULL) return false;
  tps_device_fault(c->stream->device, err);
  *token = c->token;
  lose(c);
  return true;
}

/* A device answers for all its streams: one that is busy is enough. */
void tps_callback_look(tps_context *context) {
  const struct tps_inbox *inbox = context->parts->inbox;
  const tps_device *asked = NULL;
  for (callback *c = inbox == NULL ? NULL : inbox->first; c != NULL;
       c = c->next) {
    if (c->stream->device == asked) continue;
    if (!tps_stream_idle(c->stream)) asked = c->stream->device;
  }
}

void tps_callback_end(tps_context *context) {
  struct tps_inbox *inbox = context->parts->inbox;
  callback *c;
  if (inbox == NULL) return;
  context->parts->inbox = NULL;
  while (inbox->first != NULL) lose(inbox->first);
  while ((c = pop(inbox)) != NULL) release(c);
  release_inbox(inbox);
}
/* NOLINTEND(*-unix.Malloc) */
