/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The process's list of observers. The lock is taken only where there is one.
 */
#include "runtime/parts.h"

_Atomic(tps_observer *) tps_observers;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

void tps_observer_add(tps_observer *observer) {
  pthread_rwlock_wrlock(&lock);
  observer->next = atomic_load(&tps_observers);
  atomic_store(&tps_observers, observer);
  pthread_rwlock_unlock(&lock);
}

void tps_observer_remove(tps_observer *observer) {
  pthread_rwlock_wrlock(&lock);
  tps_observer *o = atomic_load(&tps_observers);
  if (o == observer) {
    atomic_store(&tps_observers, observer->next);
  } else {
    while (o != NULL && o->next != observer) o = o->next;
    if (o != NULL) o->next = observer->next;
  }
  pthread_rwlock_unlock(&lock);
}

bool tps_observing(void) { return tps_observed(); }

void tps_observe_queued(tps_op *op) {
  op->queued_ns = tps_now_ns();
  pthread_rwlock_rdlock(&lock);
  for (tps_observer *o = atomic_load(&tps_observers); o != NULL; o = o->next)
    if (o->queued != NULL) o->queued(o->data, op);
  pthread_rwlock_unlock(&lock);
}

void tps_observe_waited(const tps_context *context, const tps_device *device,
                        uint64_t stream, uint64_t event) {
  pthread_rwlock_rdlock(&lock);
  for (tps_observer *o = atomic_load(&tps_observers); o != NULL; o = o->next)
    if (o->waited != NULL) o->waited(o->data, context, device, stream, event);
  pthread_rwlock_unlock(&lock);
}
