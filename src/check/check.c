/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "check/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check/order.h"

/* Taken by whoever starts or stops; before `lock`. */
static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;
static unsigned users, running;

/* For the order check, on all threads; nothing else is taken while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tps_order *order;

/* ---- names --------------------------------------------------------------- */

static const struct {
  const char *name;
  unsigned check;
} names[] = {{"order", TPS_CHECK_ORDER},
             {"memory", TPS_WATCH_MEMORY},
             {"race", TPS_WATCH_RACE},
             {"init", TPS_WATCH_INIT},
             {"barrier", TPS_WATCH_BARRIER}};

unsigned tps_check_named(const char *name, size_t size) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strlen(names[i].name) == size && memcmp(names[i].name, name, size) == 0)
      return names[i].check;
  return 0;
}

const char *tps_check_name(unsigned check) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].check == check) return names[i].name;
  return "";
}

/* ---- what is told ---------------------------------------------------------- */

#define LOCKED(call)                                                           \
  do {                                                                         \
    (void)data;                                                                \
    pthread_mutex_lock(&lock);                                                 \
    if (order != NULL && !order->broken) call;                                 \
    pthread_mutex_unlock(&lock);                                               \
  } while (0)

static void queued(void *data, tps_op *op, const tps_stream *stream) {
  LOCKED(tps_order_queued(order, op, stream));
}

static void launching(void *data, tps_op *op, const tps_stream *stream,
                      const tps_graph *graph, const uint64_t *promises) {
  LOCKED(tps_order_launching(order, op, stream, graph, promises));
}

static void refused(void *data, const tps_op *op) {
  LOCKED(tps_order_refused(order, op));
}

static void waited(void *data, const tps_wait_note *wait) {
  LOCKED(tps_order_waited(order, wait));
}

static void promised(void *data, const tps_stream *stream, uint64_t event,
                     uint64_t promise) {
  LOCKED(tps_order_promised(order, stream, event, promise));
}

static void followed(void *data, const tps_stream *later,
                     const tps_stream *earlier) {
  LOCKED(tps_order_followed(order, later, earlier));
}

static void stream_opened(void *data, const tps_stream *stream,
                          uint64_t handle) {
  LOCKED(tps_order_stream_opened(order, stream, handle));
}

static void stream_closed(void *data, const tps_stream *stream) {
  LOCKED(tps_order_stream_closed(order, stream));
}

static void stream_gone(void *data, const tps_stream *stream) {
  LOCKED(tps_order_stream_gone(order, stream));
}

static void event_ended(void *data, uint64_t event) {
  LOCKED(tps_order_event_ended(order, event));
}

static void memory_changed(void *data, const tps_memory *memory,
                           tps_memory_change what) {
  LOCKED(tps_order_memory(order, memory, what));
}

static void memory_named(void *data, const tps_memory *memory,
                         const char *element) {
  LOCKED(tps_order_named(order, memory, element));
}

static void host_touched(void *data, const tps_memory *memory, uint64_t first,
                         uint64_t bytes, tps_access access) {
  LOCKED(tps_order_host(order, memory, first, bytes, access));
}

static void touched(void *data, tps_op *op, tps_op *graph,
                    const tps_touch *touches, uint32_t count) {
  LOCKED(tps_order_touched(order, op, graph, touches, count));
}

/* ---- what kernels do wrong ------------------------------------------------- */

static void found(void *data, const tps_finding *finding) {
  (void)data;
  if (tps_report_again(finding->check, finding->key)) return;
  tps_report *r = tps_report_new(finding->check, finding->key);
  if (r == NULL) return;
  r->text = strdup(finding->text);
  if (finding->op != NULL) {
    r->kernel = finding->op->kernel;
    r->source = finding->op->source;
    r->line = finding->op->line;
  }
  if (r->text != NULL) tps_report_add(r);
  else tps_report_unref(r);
}

/* ---- on and off ------------------------------------------------------------ */

static tps_observer observer = {.queued = queued,
                                .launching = launching,
                                .refused = refused,
                                .waited = waited,
                                .promised = promised,
                                .followed = followed,
                                .stream_opened = stream_opened,
                                .stream_closed = stream_closed,
                                .stream_gone = stream_gone,
                                .event_ended = event_ended,
                                .memory = memory_changed,
                                .memory_named = memory_named,
                                .host_touched = host_touched};
static tps_watch watch = {.touched = touched, .found = found};

static bool start_order(void) {
  tps_order *fresh = tps_order_new();
  if (fresh == NULL) return false;
  pthread_mutex_lock(&lock);
  order = fresh;
  pthread_mutex_unlock(&lock);
  tps_observer_add(&observer);
  return true;
}

/* All of `checks`, of which some may be on. */
static bool set_running(unsigned checks) {
  bool fresh = (checks & ~running & TPS_CHECK_ORDER) != 0;
  if (checks == running) return true;
  if (fresh && !start_order()) return false;
  unsigned wants = checks & ~(unsigned)TPS_CHECK_ORDER;
  if ((checks & TPS_CHECK_ORDER) != 0) wants |= TPS_WATCH_TOUCHES;
  if (running != 0) {
    tps_watch_want(&watch, wants);
  } else {
    watch.wants = wants;
    tps_watch_add(&watch);
  }
  running = checks;
  return true;
}

bool tps_check_start(unsigned checks, uint64_t *began) {
  pthread_mutex_lock(&switching);
  if (users == 0) tps_report_clear();
  *began = tps_report_now();
  bool fine = set_running(running | checks);
  users += fine;
  pthread_mutex_unlock(&switching);
  return fine;
}

/* As much as can be said of it then. */
static void tell_broken(void) {
  tps_report *r = tps_report_new(TPS_CHECK_ORDER, 0);
  if (r == NULL) return;
  r->first.access = r->second.access = r->first.kind = r->second.kind = "";
  r->text =
      strdup("The order check has run out of host memory: from then on it "
             "has found nothing\n");
  if (r->text != NULL) tps_report_add(r);
  else tps_report_unref(r);
}

static void stop_order(void) {
  tps_observer_remove(&observer);
  pthread_mutex_lock(&lock);
  if (order->broken) tell_broken();
  tps_order_free(order);
  order = NULL;
  pthread_mutex_unlock(&lock);
}

static void stop(void) {
  if (users == 0 || --users > 0 || running == 0) return;
  tps_watch_remove(&watch);
  if ((running & TPS_CHECK_ORDER) != 0) stop_order();
  running = 0;
}

void tps_check_stop(void) {
  pthread_mutex_lock(&switching);
  stop();
  pthread_mutex_unlock(&switching);
}

tps_report **tps_check_stop_all(unsigned starts, uint64_t began,
                                size_t *count) {
  pthread_mutex_lock(&switching);
  while (starts-- > 0) stop();
  tps_report **list = tps_report_list(began, count);
  pthread_mutex_unlock(&switching);
  return list;
}

void tps_check_settle(void) {
  pthread_mutex_lock(&lock);
  if (order != NULL) tps_pending_drain(order);
  pthread_mutex_unlock(&lock);
}

unsigned tps_check_running(void) {
  pthread_mutex_lock(&switching);
  unsigned checks = running;
  pthread_mutex_unlock(&switching);
  return checks;
}
