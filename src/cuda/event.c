/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Events of the CUDA device. An event belongs to the device it was created on
 * and is recorded there only; any device's stream may wait for it.
 */
#include "cuda/cuda.h"
#include "cuda/times.h"

#include <string.h>

int tps_cuda_event_create(tps_device *device, unsigned flags,
                          tps_device_event **out, tps_error *err) {
  unsigned how = 0;
  cudaEvent_t event = NULL;
  if (!(flags & TPS_EVENT_TIMING)) how |= cudaEventDisableTiming;
  if (flags & TPS_EVENT_BLOCKING_SYNC) how |= cudaEventBlockingSync;
  if (flags & TPS_EVENT_INTERPROCESS) how |= cudaEventInterprocess;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaEventCreateWithFlags(&event, how);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaEventCreateWithFlags");
  *out = (tps_device_event *)event;
  return 0;
}

void tps_cuda_event_destroy(tps_device *device, tps_device_event *event) {
  if (tps_cuda_use(device, NULL) == 0) cudaEventDestroy((cudaEvent_t)event);
  cudaGetLastError();
}

static cudaError_t record(tps_device *device, tps_device_event *event,
                          tps_device_stream *stream) {
  CUresult r =
      tps_cuda(device)->driver.event_record((CUevent)event, (CUstream)stream);
  if (r == CUDA_SUCCESS) return cudaSuccess;
  return cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream);
}

int tps_cuda_event_record(tps_device *device, tps_device_event *event,
                          tps_device_stream *stream, tps_op *op,
                          tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e = record(device, event, stream);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "cudaEventRecord");
}

static cudaError_t ask(void *event) {
  return cudaEventQuery((cudaEvent_t)event);
}

int tps_cuda_event_query(tps_device *device, tps_device_event *event,
                         tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  CUresult r = tps_cuda(device)->driver.event_query((CUevent)event);
  return tps_cuda_answer(tps_cuda_is_answer(r) ? (cudaError_t)r : ask(event),
                         "cudaEventQuery", err);
}

/* As with streams, the call at the end is there for the kernels' printing. */
int tps_cuda_event_synchronize(tps_device *device, tps_device_event *event,
                               uint64_t timeout_ns, tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = tps_cuda_wait(ask, event, timeout_ns);
  if (e != cudaErrorNotReady) e = cudaEventSynchronize((cudaEvent_t)event);
  return tps_cuda_answer(e, "cudaEventSynchronize", err);
}

int tps_cuda_event_elapsed(tps_device *device, tps_device_event *a,
                           tps_device_event *b, double *ms, tps_error *err) {
  float elapsed = 0;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e =
      cudaEventElapsedTime(&elapsed, (cudaEvent_t)a, (cudaEvent_t)b);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaEventElapsedTime");
  *ms = elapsed;
  return 0;
}

uint64_t tps_cuda_event_handle(tps_device *device, tps_device_event *event) {
  (void)device;
  return (uint64_t)(uintptr_t)event;
}

/* --- between processes ---------------------------------------------------- */

_Static_assert(sizeof(cudaIpcEventHandle_t) == TPS_EVENT_IPC_BYTES,
               "size of an event's handle");

int tps_cuda_event_export(tps_device *device, tps_device_event *event,
                          char handle[TPS_EVENT_IPC_BYTES], tps_error *err) {
  cudaIpcEventHandle_t bytes;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaIpcGetEventHandle(&bytes, (cudaEvent_t)event);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaIpcGetEventHandle");
  memcpy(handle, &bytes, sizeof bytes);
  return 0;
}

int tps_cuda_event_import(tps_device *device,
                          const char handle[TPS_EVENT_IPC_BYTES],
                          tps_device_event **out, tps_error *err) {
  cudaIpcEventHandle_t bytes;
  cudaEvent_t event = NULL;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  memcpy(&bytes, handle, sizeof bytes);
  cudaError_t e = cudaIpcOpenEventHandle(&event, bytes);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaIpcOpenEventHandle");
  *out = (tps_device_event *)event;
  return 0;
}
