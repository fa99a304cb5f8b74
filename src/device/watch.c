/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The process's list of watches. The lock is taken only where there is one.
 */
#include "device/watch.h"

#include <pthread.h>

atomic_uint tps_watch_wants;
static tps_watch *watches;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void sum_up(void) {
  unsigned wants = 0;
  for (const tps_watch *w = watches; w != NULL; w = w->next) wants |= w->wants;
  atomic_store_explicit(&tps_watch_wants, wants, memory_order_release);
}

void tps_watch_add(tps_watch *watch) {
  pthread_rwlock_wrlock(&lock);
  watch->next = watches;
  watches = watch;
  sum_up();
  pthread_rwlock_unlock(&lock);
}

void tps_watch_want(tps_watch *watch, unsigned wants) {
  pthread_rwlock_wrlock(&lock);
  watch->wants = wants;
  sum_up();
  pthread_rwlock_unlock(&lock);
}

void tps_watch_remove(tps_watch *watch) {
  pthread_rwlock_wrlock(&lock);
  for (tps_watch **w = &watches; *w != NULL; w = &(*w)->next) {
    if (*w != watch) continue;
    *w = watch->next;
    break;
  }
  sum_up();
  pthread_rwlock_unlock(&lock);
}

void tps_watch_ran(tps_op *op, tps_op *graph, uint64_t started_ns,
                   uint64_t finished_ns) {
  pthread_rwlock_rdlock(&lock);
  for (const tps_watch *w = watches; w != NULL; w = w->next)
    if ((w->wants & TPS_WATCH_TIMES) != 0 && w->ran != NULL)
      w->ran(w->data, op, graph, started_ns, finished_ns);
  pthread_rwlock_unlock(&lock);
}

void tps_watch_touched(tps_op *op, tps_op *graph, const tps_touch *touches,
                       uint32_t count) {
  pthread_rwlock_rdlock(&lock);
  for (const tps_watch *w = watches; w != NULL; w = w->next)
    if ((w->wants & TPS_WATCH_TOUCHES) != 0 && w->touched != NULL)
      w->touched(w->data, op, graph, touches, count);
  pthread_rwlock_unlock(&lock);
}

void tps_watch_found(const tps_finding *finding) {
  pthread_rwlock_rdlock(&lock);
  for (const tps_watch *w = watches; w != NULL; w = w->next)
    if ((w->wants & finding->check) != 0 && w->found != NULL)
      w->found(w->data, finding);
  pthread_rwlock_unlock(&lock);
}
