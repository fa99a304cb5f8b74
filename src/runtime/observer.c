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

#define EACH(function, ...)                                                    \
  do {                                                                         \
    pthread_rwlock_rdlock(&lock);                                              \
    for (tps_observer *o = atomic_load(&tps_observers); o != NULL;             \
         o = o->next)                                                          \
      if (o->function != NULL) o->function(o->data, __VA_ARGS__);              \
    pthread_rwlock_unlock(&lock);                                              \
  } while (0)

void tps_observe_queued(tps_op *op, const tps_stream *stream) {
  op->queued_ns = tps_now_ns();
  EACH(queued, op, stream);
}

void tps_observe_launching(tps_op *op, const tps_stream *stream,
                           const tps_graph *graph, const uint64_t *promises) {
  EACH(launching, op, stream, graph, promises);
}

void tps_observe_refused(const tps_op *op) { EACH(refused, op); }

void tps_observe_waited(const tps_wait_note *wait) { EACH(waited, wait); }

uint64_t tps_observe_promised(const tps_stream *stream, uint64_t event) {
  uint64_t promise = tps_next_id();
  EACH(promised, stream, event, promise);
  return promise;
}

void tps_observe_followed(const tps_stream *later, const tps_stream *earlier) {
  EACH(followed, later, earlier);
}

void tps_observe_stream(const tps_stream *stream, bool opened) {
  tps_device *device = stream->device;
  if (opened)
    EACH(stream_opened, stream,
         device->face->stream_handle(device, stream->handle));
  else EACH(stream_closed, stream);
}

void tps_observe_gone(const tps_stream *stream) { EACH(stream_gone, stream); }

void tps_observe_event_ended(uint64_t event) { EACH(event_ended, event); }

void tps_observe_memory(const tps_memory *memory, tps_memory_change what) {
  EACH(memory, memory, what);
}

void tps_observe_named(const tps_memory *memory, const char *element) {
  EACH(memory_named, memory, element);
}

void tps_observe_host(const tps_memory *memory, uint64_t first, uint64_t bytes,
                      tps_access access) {
  EACH(host_touched, memory, first, bytes, access);
}

void tps_observe_held(const tps_context *context, uint64_t began_ns) {
  EACH(held, context, began_ns);
}
