/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Sleeping until something is due. The inbox's eventfd is readable while it holds
 * something; for loops of others an epoll descriptor joins it to a timer, for
 * those who sleep until a time. A GPU that has faulted tells nobody: so whoever
 * sleeps here looks between slices, and the timer wakes those who sleep
 * elsewhere. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/inbox.h"

/* ---- the signal ---------------------------------------------------------- */

/* Neither can fail: the counter is 0 before one and 1 before the other. */
void tps_inbox_signal(const struct tps_inbox *inbox) {
  uint64_t one = 1;
  if (inbox->signal >= 0 && write(inbox->signal, &one, sizeof one) < 0) return;
}

void tps_inbox_unsignal(const struct tps_inbox *inbox) {
  uint64_t count;
  if (inbox->signal >= 0 && read(inbox->signal, &count, sizeof count) < 0)
    return;
}

static int no_descriptor(const char *what, tps_error *err) {
  return tps_fail(err, TPS_IO, "no %s to be had: %s", what, strerror(errno));
}

/* Makes the eventfd. */
static int need_signal(struct tps_inbox *inbox, tps_error *err) {
  if (inbox->signal >= 0) return 0; /* only this thread sets it */
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return no_descriptor("eventfd", err);
  pthread_mutex_lock(&inbox->lock);
  inbox->signal = fd;
  if (tps_inbox_due(inbox)) tps_inbox_signal(inbox);
  pthread_mutex_unlock(&inbox->lock);
  return 0;
}

/* ---- for loops of others ------------------------------------------------- */

static bool watch(int both, int fd) {
  struct epoll_event event = {.events = EPOLLIN};
  return epoll_ctl(both, EPOLL_CTL_ADD, fd, &event) == 0;
}

int tps_wakeup_fd(tps_context *context, int *fd, tps_error *err) {
  struct tps_inbox *inbox = tps_inbox_of(context, err);
  if (inbox == NULL) return TPS_NO_HOST_MEMORY;
  int code = need_signal(inbox, err);
  if (code != 0 || inbox->both >= 0) {
    *fd = inbox->both;
    return code;
  }
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  int both = epoll_create1(EPOLL_CLOEXEC);
  if (timer < 0 || both < 0 || !watch(both, timer) ||
      !watch(both, inbox->signal)) {
    code = no_descriptor("epoll or timerfd", err);
    if (timer >= 0) close(timer);
    if (both >= 0) close(both);
    return code;
  }
  inbox->timer = timer;
  inbox->both = both;
  inbox->deadline = TPS_FOREVER;
  for (tps_callback *c = inbox->first; c != NULL; c = c->next)
    if (c->stream != NULL) tps_inbox_watch(inbox, c->stream->device);
  *fd = both;
  return 0;
}

/* Sets the timer to the deadline, or to the next look if that comes first. */
static void set_timer(const struct tps_inbox *inbox) {
  uint64_t at = inbox->deadline;
  if (inbox->watching) {
    uint64_t look = tps_now_ns() + TPS_WAKEUP_LOOK_NS;
    if (look < at) at = look;
  }
  struct itimerspec when;
  memset(&when, 0, sizeof when);
  if (at != TPS_FOREVER) { /* all 0 would turn it off */
    when.it_value.tv_sec = (time_t)(at / 1000000000u);
    when.it_value.tv_nsec = (long)(at % 1000000000u) + (at == 0);
  }
  timerfd_settime(inbox->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void tps_wakeup_arm(tps_context *context, uint64_t ns) {
  struct tps_inbox *inbox = context->parts->inbox;
  if (inbox == NULL || inbox->timer < 0) return;
  const tps_local *gpu = context->parts->locals;
  while (gpu != NULL && (gpu->callbacks == 0 || gpu->device->kind != TPS_CUDA))
    gpu = gpu->next;
  inbox->watching = gpu != NULL;
  inbox->deadline = tps_deadline_ns(ns);
  set_timer(inbox);
}

void tps_inbox_watch(struct tps_inbox *inbox, const tps_device *device) {
  if (inbox->timer < 0 || inbox->watching || device->kind != TPS_CUDA) return;
  inbox->watching = true;
  set_timer(inbox);
}

void tps_inbox_close(struct tps_inbox *inbox) {
  pthread_mutex_lock(&inbox->lock);
  int signal = inbox->signal;
  inbox->signal = -1;
  pthread_mutex_unlock(&inbox->lock);
  if (inbox->both >= 0) close(inbox->both);
  if (inbox->timer >= 0) close(inbox->timer);
  if (signal >= 0) close(signal);
  inbox->both = inbox->timer = -1;
}

/* ---- waiting here -------------------------------------------------------- */

/* One slice; true: something is due. */
static bool sleep_slice(const struct tps_inbox *inbox, uint64_t ns) {
  struct pollfd fd = {.fd = inbox->signal, .events = POLLIN};
  struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
  return ppoll(&fd, 1, &time, NULL) > 0;
}

static int wait_in_slices(tps_context *context, uint64_t timeout_ns,
                          tps_error *err) {
  struct tps_inbox *inbox = tps_inbox_of(context, err);
  if (inbox == NULL) return TPS_NO_HOST_MEMORY;
  int code = need_signal(inbox, err);
  if (code != 0) return code;
  uint64_t deadline = tps_deadline_ns(timeout_ns), now = tps_now_ns();
  do {
    uint64_t left = deadline > now ? deadline - now : 0;
    if (sleep_slice(inbox, left < TPS_SLICE_NS ? left : TPS_SLICE_NS)) return 0;
    if (context->interrupted != NULL &&
        context->interrupted(context->interrupted_data) != 0)
      return tps_fail(err, TPS_INTERRUPTED, "interrupted!");
    tps_callback_look(context);
    if (tps_inbox_lost(context) != NULL) return 0;
    now = tps_now_ns();
  } while (now < deadline);
  return 0;
}

int tps_wakeup_wait(tps_context *context, uint64_t timeout_ns, tps_error *err) {
  uint64_t began = tps_observing() ? tps_now_ns() : 0;
  int code = wait_in_slices(context, timeout_ns, err);
  if (began != 0) tps_observe_held(context, began);
  return code;
}
