/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Events. Made in the driver at the first record, on the recording stream's
 * device; a later record on another device's stream is MISUSE naming both
 * devices. Never recorded: query and synchronize succeed at once, waiting is a
 * no-op (strict mode is lua/'s).
 */
#ifndef TPS_RUNTIME_EVENT_H
#define TPS_RUNTIME_EVENT_H

#include "runtime/stream.h"

typedef struct tps_event {
  tps_context *context;
  tps_device *device;       /* NULL before the first record */
  tps_device_event *handle; /* NULL before the first record */
  uint64_t id;
  unsigned flags; /* TPS_EVENT_… */
  bool closed;
  struct tps_callback *wait; /* callback.c's: the last that waits for it */
  bool passing; /* made while capturing, by the call that records it: once a
                   stream waits for it there, it is that place and no more */
} tps_event;

/* No driver call. NULL when out of memory. */
tps_event *tps_event_new(tps_context *context, unsigned flags);
/* Destroys, once no graph keeps it; NULL is fine; work that waits for it still
 * does. */
void tps_event_free(tps_event *event);

/* False for one never recorded as far as this process can know. */
bool tps_event_recorded(const tps_event *event);
int tps_event_record(tps_event *event, tps_stream *stream, tps_error *err);
int tps_event_wait(tps_event *event, tps_stream *stream, tps_error *err);
int tps_event_query(tps_event *event, tps_error *err); /* 0 or NOT_READY */
int tps_event_synchronize(tps_event *event, uint64_t timeout_ns,
                          tps_error *err);
/* b - a in ms. Four errors, tested in this order, each saying "start event" or
 * "end event": timing not enabled, not recorded, different devices (named), not
 * finished; codes INVALID_HANDLE, INVALID_HANDLE, INVALID_HANDLE, NOT_READY. */
int tps_event_elapsed(tps_event *a, tps_event *b, double *ms, tps_error *err);
uint64_t tps_event_driver_handle(const tps_event *event); /* 0 if none yet */

/* Between processes. An event with TPS_EVENT_INTERPROCESS that was never
 * recorded is made on `device` for it. Once exported or imported, only the
 * driver knows what has been recorded. */
int tps_event_export(tps_event *event, tps_device *device,
                     char handle[TPS_EVENT_IPC_BYTES], tps_error *err);
int tps_event_import(tps_context *context, tps_device *device,
                     const char handle[TPS_EVENT_IPC_BYTES], tps_event **out,
                     tps_error *err);

#endif
