/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams. A stream is counted: its Lua object holds one reference, memory that
 * was used on it another. Closing destroys the driver's stream (its queued work
 * still runs) but keeps the struct, with an event that marks its last work, until
 * the last reference is gone.
 *
 * Functions that queue take the line from context->site, fail with MISUSE on a
 * closed stream ("attempt to use a closed stream"), and with the fault on a
 * faulted device.
 */
#ifndef TPS_RUNTIME_STREAM_H
#define TPS_RUNTIME_STREAM_H

#include "runtime/context.h"

typedef struct tps_stream {
  tps_context *context;
  tps_device *device;
  tps_device_stream *handle; /* NULL once closed */
  uint64_t id;               /* unique in the process; 0: the legacy stream */
  int priority;              /* in force */
  bool blocking;
  bool is_default; /* the legacy stream: never closed */
  bool closed;
  bool capturing; /* what is queued becomes part of a graph (runtime/graph.h) */
  int refs;
  uint64_t last_seq;              /* of the last operation queued here */
  struct tps_stream_parts *parts; /* ring of records, closing event … */
  uint64_t tag;                   /* for whoever made it */
} tps_stream;

/* The context's object for the device's legacy stream; not a new reference. */
int tps_stream_default(tps_context *context, tps_device *device,
                       tps_stream **out, tps_error *err);
/* A new stream, one reference. */
int tps_stream_open(tps_context *context, tps_device *device, int priority,
                    bool blocking, tps_stream **out, tps_error *err);
/* The context's open stream with that driver handle (not the legacy one), not a
 * new reference; NULL: none. */
tps_stream *tps_stream_find(tps_context *context, tps_device *device,
                            uint64_t handle);
/* A stream that somebody else has made and goes on owning, one reference;
 * closing only forgets it. */
int tps_stream_adopt(tps_context *context, tps_device *device, uint64_t handle,
                     tps_stream **out, tps_error *err);
/* Idempotent; never waits, never fails; does nothing to the legacy stream. */
void tps_stream_close(tps_stream *stream);
tps_stream *tps_stream_ref(tps_stream *stream);
void tps_stream_unref(tps_stream *stream); /* closes with the last reference */

uint64_t tps_stream_driver_handle(const tps_stream *stream); /* legacy: 0 */

/* 0 all done, NOT_READY, or an error. */
int tps_stream_query(tps_stream *stream, tps_error *err);
/* 0, NOT_READY when the timeout ran out (0 polls), INTERRUPTED, or an error. */
int tps_stream_synchronize(tps_stream *stream, uint64_t timeout_ns,
                           tps_error *err);
/* Future work on `stream` waits for the present work of `other` (an event of its
 * own each time); nothing if they are the same. Streams of different kinds of
 * device: MISUSE naming both. */
int tps_stream_wait_stream(tps_stream *stream, tps_stream *other,
                           tps_error *err);
/* Future work on each waits for the present work of all. */
int tps_stream_barrier(tps_stream *const *streams, size_t count,
                       tps_error *err);

#endif
