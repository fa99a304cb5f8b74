/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The inbox of a context, as callback.c and wakeup.c share it: where devices and
 * threads put what is due. It is signalled (its descriptor is readable) exactly
 * while something is due.
 */
#ifndef TPS_RUNTIME_INBOX_H
#define TPS_RUNTIME_INBOX_H

#include "runtime/callback.h"
#include "runtime/parts.h"

struct tps_callback {
  tps_callback *next, *previous; /* of the context's list */
  tps_callback *due_next;        /* in the inbox */
  tps_stream *stream;            /* held; NULL: no device delivers it */
  struct tps_inbox *inbox;
  uint64_t token;
  uint64_t event, seq; /* awaited: the event's id or 0, and its stream's work */
  uint64_t promise;    /* to observers, or 0 */
  tps_callback **place; /* where others who wait for that find it, or NULL */
  bool awaited;
  bool taken; /* under the inbox's lock: the context has let go of it */
  atomic_int refs;
};

struct tps_inbox {
  tps_callback *first, *last; /* all, in order; the context's thread alone */
  tps_callback *fetched;      /* due, and off the list of those; the same */
  bool watching;              /* the timer is set to look for a fault */
  uint64_t deadline;          /* that tps_wakeup_arm has set, or TPS_FOREVER */
  int timer, both;            /* descriptors: timerfd; epoll; -1: not made */
  pthread_mutex_t lock;       /* for what follows */
  tps_callback *due, *due_last;
  bool failed;     /* a device has told of a fault that nobody has looked at */
  int signal;      /* eventfd, -1: not made */
  atomic_int refs; /* the context's and one for each callback */
};

/* Made at the first call; NULL: out of memory. */
struct tps_inbox *tps_inbox_of(tps_context *context, tps_error *err);

/* Under the lock. */
static inline bool tps_inbox_due(const struct tps_inbox *inbox) {
  return inbox->due != NULL || inbox->failed;
}
void tps_inbox_signal(const struct tps_inbox *inbox);
void tps_inbox_unsignal(const struct tps_inbox *inbox);

/* The part for a device that has faulted before its callbacks were taken, or
 * NULL. Costs nothing for each callback: there may be thousands. */
tps_local *tps_inbox_lost(const tps_context *context);

/* A callback has been queued on the device. */
void tps_inbox_watch(struct tps_inbox *inbox, const tps_device *device);
/* Closes the descriptors. */
void tps_inbox_close(struct tps_inbox *inbox);

/* The stream on which to be notified of the event: its own, if nothing was
 * queued there since, or one of the runtime's that waits for it now. */
int tps_event_watch(tps_event *event, tps_stream **out, tps_error *err);

#endif
