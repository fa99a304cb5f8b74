/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams of the CUDA device, and the waiting that streams and events share.
 */
#include "cuda/cuda.h"
#include "cuda/times.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

/* --- waiting -------------------------------------------------------------- */

/* Spins as long as a short kernel lasts: no sleep is this short. */
#define SPIN_NS 200000u
#define NAP_LEAST_NS 20000u
#define NAP_MOST_NS 1000000u

static void nap(uint64_t ns) {
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  nanosleep(&t, NULL);
}

/* CUDA's own waits can't be given up, so this one asks again and again: at once
 * while the work may be short, then after naps in proportion to the time
 * already waited. What is noticed late is late by less than a hundredth, or by
 * the shortest nap (the kernel's timers add some 50 µs), at most by 1 ms. */
cudaError_t tps_cuda_wait(cudaError_t (*query)(void *handle), void *handle,
                          uint64_t timeout_ns) {
  cudaError_t e = query(handle);
  if (e != cudaErrorNotReady || timeout_ns == 0) return e;
  uint64_t start = tps_now_ns(), deadline = tps_deadline_ns(timeout_ns);
  while ((e = query(handle)) == cudaErrorNotReady) {
    uint64_t now = tps_now_ns(), ns = (now - start) / 128;
    if (now >= deadline) break;
    if (now - start < SPIN_NS) continue;
    if (ns < NAP_LEAST_NS) ns = NAP_LEAST_NS;
    if (ns > NAP_MOST_NS) ns = NAP_MOST_NS;
    nap(ns < deadline - now ? ns : deadline - now);
  }
  return e;
}

int tps_cuda_answer(cudaError_t e, const char *call, tps_error *err) {
  if (e == cudaSuccess) return 0;
  if (e != cudaErrorNotReady) return tps_cuda_fail(err, e, "%s", call);
  cudaGetLastError();
  return TPS_NOT_READY;
}

/* --- streams -------------------------------------------------------------- */

tps_device_stream *tps_cuda_default_stream(tps_device *device) {
  (void)device;
  return (tps_device_stream *)cudaStreamLegacy;
}

int tps_cuda_stream_create(tps_device *device, int priority, unsigned flags,
                           tps_device_stream **out, int *effective,
                           tps_error *err) {
  unsigned how =
      flags & TPS_STREAM_BLOCKING ? cudaStreamDefault : cudaStreamNonBlocking;
  cudaStream_t stream = NULL;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaStreamCreateWithPriority(&stream, how, priority);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaStreamCreateWithPriority");
  *effective = priority; /* CUDA clamps it */
  e = cudaStreamGetPriority(stream, effective);
  if (e != cudaSuccess) {
    code = tps_cuda_fail(err, e, "cudaStreamGetPriority");
    cudaStreamDestroy(stream);
    return code;
  }
  *out = (tps_device_stream *)stream;
  return 0;
}

/* The work queued finishes; the driver keeps what it needs for that. */
void tps_cuda_stream_destroy(tps_device *device, tps_device_stream *stream) {
  if (tps_cuda_use(device, NULL) == 0) cudaStreamDestroy((cudaStream_t)stream);
  cudaGetLastError();
}

static cudaError_t ask(void *stream) {
  return cudaStreamQuery((cudaStream_t)stream);
}

int tps_cuda_stream_query(tps_device *device, tps_device_stream *stream,
                          tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  CUresult r = tps_cuda(device)->driver.stream_query((CUstream)stream);
  return tps_cuda_answer(tps_cuda_is_answer(r) ? (cudaError_t)r : ask(stream),
                         "cudaStreamQuery", err);
}

/* cudaStreamSynchronize at the end waits no more: it makes the driver print all
 * that the kernels printed; a query prints some of it (measured). */
int tps_cuda_stream_synchronize(tps_device *device, tps_device_stream *stream,
                                uint64_t timeout_ns, tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = tps_cuda_wait(ask, stream, timeout_ns);
  if (e != cudaErrorNotReady) e = cudaStreamSynchronize((cudaStream_t)stream);
  return tps_cuda_answer(e, "cudaStreamSynchronize", err);
}

static cudaError_t wait_for(tps_device *device, tps_device_stream *stream,
                            tps_device_event *event) {
  CUresult r =
      tps_cuda(device)->driver.stream_wait((CUstream)stream, (CUevent)event, 0);
  if (r == CUDA_SUCCESS) return cudaSuccess;
  return cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0);
}

int tps_cuda_stream_wait_event(tps_device *device, tps_device_stream *stream,
                               tps_device_event *event, tps_op *op,
                               tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e = wait_for(device, stream, event);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "cudaStreamWaitEvent");
}

uint64_t tps_cuda_stream_handle(tps_device *device, tps_device_stream *stream) {
  (void)device;
  if ((cudaStream_t)stream == cudaStreamLegacy) return 0;
  return (uint64_t)(uintptr_t)stream;
}

/* --- host notification ---------------------------------------------------- */

typedef struct notice {
  void (*notify)(void *data, bool failed);
  void *data;
} notice;

/* On a thread of the driver's. */
static void CUDART_CB deliver(void *data) {
  notice n = *(notice *)data;
  free(data);
  n.notify(n.data, false);
}

int tps_cuda_stream_notify(tps_device *device, tps_device_stream *stream,
                           void (*notify)(void *data, bool failed), void *data,
                           tps_op *op, tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  notice *n = malloc(sizeof *n);
  if (n == NULL) return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  *n = (notice){notify, data};
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e = cudaLaunchHostFunc((cudaStream_t)stream, deliver, n);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  if (e == cudaSuccess) return 0;
  free(n);
  return tps_cuda_fail(err, e, "cudaLaunchHostFunc");
}

/* --- foreign streams ------------------------------------------------------ */

/* The driver may not be able to tell whose the stream is. */
static int check_device(const tps_device *device, cudaStream_t stream,
                        tps_error *err) {
  int ordinal = device->ordinal;
  cudaError_t e = cudaStreamGetDevice(stream, &ordinal);
  if (e != cudaSuccess) cudaGetLastError();
  if (e != cudaSuccess || ordinal == device->ordinal) return 0;
  return tps_fail(err, TPS_INVALID_VALUE,
                  "the stream 0x%llx belongs to cuda:%d, not to cuda:%d",
                  (unsigned long long)(uintptr_t)stream, ordinal,
                  device->ordinal);
}

int tps_cuda_stream_adopt(tps_device *device, uint64_t handle,
                          tps_device_stream **out, int *priority,
                          bool *blocking, tps_error *err) {
  cudaStream_t stream = (cudaStream_t)(uintptr_t)handle;
  unsigned flags = 0;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaStreamGetFlags(stream, &flags);
  if (e == cudaSuccess) e = cudaStreamGetPriority(stream, priority);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "the stream 0x%llx",
                         (unsigned long long)handle);
  if (stream != cudaStreamPerThread) code = check_device(device, stream, err);
  if (code != 0) return code;
  *blocking = (flags & cudaStreamNonBlocking) == 0;
  *out = (tps_device_stream *)stream;
  return 0;
}

void tps_cuda_stream_forget(tps_device *device, tps_device_stream *stream) {
  (void)device;
  (void)stream;
}
