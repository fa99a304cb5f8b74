/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * When operations ran on a GPU: while somebody wants to know (device/watch.h) an
 * event is recorded on the stream before each and one after it; while nobody
 * does, an operation costs a load more. What is found is told in heaps, at the
 * latest when tps_cuda_times_collect is called.
 */
#ifndef TPS_CUDA_TIMES_H
#define TPS_CUDA_TIMES_H

#include "cuda/cuda.h"
#include "device/watch.h"

typedef struct tps_cuda_span tps_cuda_span;

/* NULL: the operation is not timed (also one of the runtime's own, and on a stream
 * that somebody captures). The device is current. */
tps_cuda_span *tps_cuda_times_first(tps_device *device,
                                    tps_device_stream *stream, tps_op *op);
void tps_cuda_times_last(tps_device *device, tps_cuda_span *span,
                         tps_device_stream *stream, bool queued);

/* Around what queues the operation; `queued`: it has done so. */
static inline tps_cuda_span *tps_cuda_times_begin(tps_device *device,
                                                  tps_device_stream *stream,
                                                  tps_op *op) {
  if (__builtin_expect(tps_watched(TPS_WATCH_TIMES) == 0, 1)) return NULL;
  return tps_cuda_times_first(device, stream, op);
}
static inline void tps_cuda_times_end(tps_device *device, tps_cuda_span *span,
                                      tps_device_stream *stream, bool queued) {
  if (__builtin_expect(span != NULL, 0))
    tps_cuda_times_last(device, span, stream, queued);
}

void tps_cuda_times_collect(tps_device *device);
void tps_cuda_times_close(tps_cuda_device *self);

#endif
