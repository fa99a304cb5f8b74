/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Observers: the checker and the timeline read every operation's record as it is
 * queued, and hear of what orders operations besides: waits of the host, events,
 * graphs, memory that comes and goes. They are for the process, since an order
 * between two Lua states can only be seen from above both. With none registered
 * the cost is one load.
 */
#ifndef TPS_RUNTIME_OBSERVER_H
#define TPS_RUNTIME_OBSERVER_H

#include "runtime/graph.h"

/* What the host has waited for, or found done when it asked: all that was queued
 * on `stream` so far (the legacy one: on all that are blocking, too); else the
 * last record of `event`; else all that the context has queued on the device, or
 * all work of the device. With a promise: no more than what was promised. */
typedef struct tps_wait_note {
  const tps_context *context;
  const tps_device *device;
  const tps_stream *stream; /* or NULL */
  uint64_t event;           /* id or 0 */
  uint64_t promise;         /* or 0 */
  bool all;                 /* of the device */
} tps_wait_note;

typedef enum tps_memory_change {
  TPS_MEMORY_MADE, /* has its address; no use of it has been observed */
  TPS_MEMORY_USED, /* by the operation that is queued next: it may be older than
                         the observer */
  TPS_MEMORY_SETTLED, /* all uses so far come before whatever is queued from now
                         on, whatever the stream: the runtime has seen to that */
  TPS_MEMORY_CAPTURED, /* made in a capture: launches of graphs that use it come
                          one after the other */
  TPS_MEMORY_ENDED /* no use will follow; it is freed after all there were */
} tps_memory_change;

/* Functions are called on the thread of the Lua state that is concerned. Those not
 * wanted are NULL. */
typedef struct tps_observer {
  void *data;
  /* Before the device gets the operation. Take a reference to keep the record. A
   * HOST operation's `event` is a promise, told in `waited` once the host has
   * seen it happen; 0: it won't be. */
  void (*queued)(void *data, tps_op *op, const tps_stream *stream);
  /* Before `queued` of a graph's launch: the nodes that it runs are
   * tps_graph_nodes; a promise for each HOST node, in order. */
  void (*launching)(void *data, tps_op *op, const tps_stream *stream,
                    const tps_graph *graph, const uint64_t *promises);
  /* The device has refused what was told as queued. */
  void (*refused)(void *data, const tps_op *op);
  void (*waited)(void *data, const tps_wait_note *wait);
  /* Somebody will be told, and then `waited` be called, when the present work of
   * the stream is done, or the last record of the event where there is one. */
  void (*promised)(void *data, const tps_stream *stream, uint64_t event,
                   uint64_t promise);
  /* What is queued on `later` from now on comes after the present work of
   * `earlier`: the first use of memory on a stream that it was not allocated on. */
  void (*followed)(void *data, const tps_stream *later,
                   const tps_stream *earlier);
  /* A stream of the script's was made (its handle is the driver's: another object
   * may have the same) or is about to be closed. */
  void (*stream_opened)(void *data, const tps_stream *stream, uint64_t handle);
  void (*stream_closed)(void *data, const tps_stream *stream);
  /* All is done that was queued on a closed stream: nothing is told of it any more.
   * Until then memory that is at home there may still be `followed`. */
  void (*stream_gone)(void *data, const tps_stream *stream);
  void (*event_ended)(void *data, uint64_t event);
  void (*memory)(void *data, const tps_memory *memory, tps_memory_change what);
  /* What its elements are called (a constant text). */
  void (*memory_named)(void *data, const tps_memory *memory,
                       const char *element);
  /* The script reads or writes page-locked or managed memory, at once; where is
   * told by context->site. */
  void (*host_touched)(void *data, const tps_memory *memory, uint64_t first,
                       uint64_t bytes, tps_access access);
  /* The host was held up in a wait from `began_ns` (CLOCK_MONOTONIC) until now,
   * whatever came of it. */
  void (*held)(void *data, const tps_context *context, uint64_t began_ns);
  struct tps_observer *next;
} tps_observer;

/* Not while other threads queue work of theirs on this observer's data. */
void tps_observer_add(tps_observer *observer);
void tps_observer_remove(tps_observer *observer);

extern _Atomic(tps_observer *) tps_observers;
/* True when there is one: callers then give lines also for records and waits. */
static inline bool tps_observing(void) {
  return atomic_load_explicit(&tps_observers, memory_order_acquire) != NULL;
}

void tps_observe_host(const tps_memory *memory, uint64_t first, uint64_t bytes,
                      tps_access access);
/* For whoever has made memory and queued what it is filled with: memory is
 * SETTLED. */
void tps_observe_memory(const tps_memory *memory, tps_memory_change what);
static inline void tps_memory_changed(const tps_memory *memory,
                                      tps_memory_change what) {
  if (tps_observing()) tps_observe_memory(memory, what);
}

#endif
