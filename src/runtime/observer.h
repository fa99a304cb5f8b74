/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Observers: the checker and the timeline read every operation's record as it is
 * queued. They are for the process, since an order between two Lua states can
 * only be seen from above both. With none registered the cost is one load.
 */
#ifndef TPS_RUNTIME_OBSERVER_H
#define TPS_RUNTIME_OBSERVER_H

#include "runtime/stream.h"

typedef struct tps_observer {
  void *data;
  /* Called on the queueing thread, before the device gets the operation. Take a
   * reference to keep the record. */
  void (*queued)(void *data, tps_op *op);
  /* The host has waited for (or polled as done) a stream, an event or a device:
   * the ids, 0 where it does not apply. */
  void (*waited)(void *data, const tps_context *context,
                 const tps_device *device, uint64_t stream, uint64_t event);
  struct tps_observer *next;
} tps_observer;

/* Not while other threads queue work of theirs on this observer's data. */
void tps_observer_add(tps_observer *observer);
void tps_observer_remove(tps_observer *observer);
/* True when there is one: callers then give lines also for records and waits. */
bool tps_observing(void);

#endif
