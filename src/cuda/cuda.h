/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The CUDA device, inside. Every function of the face is declared here and
 * lives in the file named after its topic; device.c puts them into one table.
 *
 * Handles of the face are cudart's own, cast: a tps_device_stream * is a
 * cudaStream_t (the legacy stream is cudaStreamLegacy, which is not null), an
 * event a cudaEvent_t, a module a cudaLibrary_t, a kernel a cudaKernel_t.
 *
 * The device is compiled against cudart, linked statically; cudart opens the
 * driver when the program runs. What only the driver's interface has is found
 * by name through cudart, so nothing here links the driver. The calls that are made
 * most go to the driver, too, past cudart's own share of what they cost (a launch,
 * a record, a wait, a query); what it refuses is asked of cudart again, which has
 * the error's usual name.
 */
#ifndef TPS_CUDA_CUDA_H
#define TPS_CUDA_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "device/device.h"

/* X(field, symbol, version of the interface): what is used of the driver. */
#define TPS_CUDA_DRIVER(X)                                                     \
  X(address_range, cuMemGetAddressRange, 3020)                                 \
  X(context_current, cuCtxGetCurrent, 4000)                                    \
  X(condition_create, cuGraphConditionalHandleCreate, 12030)                   \
  X(event_query, cuEventQuery, 2000)                                           \
  X(event_record, cuEventRecord, 2000)                                         \
  X(fill16, cuMemsetD16Async, 3020)                                            \
  X(fill32, cuMemsetD32Async, 3020)                                            \
  X(fill32_rows, cuMemsetD2D32Async, 3020)                                     \
  X(graph_add, cuGraphAddNode, 12030)                                          \
  X(graph_add_kernel, cuGraphAddKernelNode, 12000)                             \
  X(graph_launch, cuGraphLaunch, 10000)                                        \
  X(graph_set_attribute, cuGraphKernelNodeSetAttribute, 11000)                 \
  X(graph_set_kernel, cuGraphExecKernelNodeSetParams, 12000)                   \
  X(kernel_name, cuKernelGetName, 12030)                                       \
  X(kernel_parameter, cuKernelGetParamInfo, 12040)                             \
  X(launch, cuLaunchKernelEx, 11060)                                           \
  X(library_module, cuLibraryGetModule, 12000)                                 \
  X(module_function, cuModuleGetFunction, 2000)                                \
  X(module_load, cuModuleLoadDataEx, 2010)                                     \
  X(module_unload, cuModuleUnload, 2000)                                       \
  X(stream_query, cuStreamQuery, 2000)                                         \
  X(stream_wait, cuStreamWaitEvent, 3020)

typedef struct tps_cuda_driver {
#define X(field, symbol, version) PFN_##symbol##_v##version field;
  TPS_CUDA_DRIVER(X)
#undef X
} tps_cuda_driver;

#define TPS_CUDA_PEERS 64 /* ordinals whose peer access is remembered */

typedef struct tps_cuda_device {
  tps_device base;
  tps_cuda_driver driver;
  pthread_mutex_t lock;       /* held while the device is first used */
  _Atomic(CUcontext) context; /* the primary one; NULL before the first use */
  cudaMemPool_t pool;         /* written before `context` */
  atomic_schar peers[TPS_CUDA_PEERS];     /* 0 unknown, 1 yes, -1 no */
  pthread_mutex_t product_lock;           /* for the handle and its stream */
  struct cublasContext *cublas;           /* NULL before the first product */
  _Atomic(struct tps_cuda_times *) times; /* times.c's; NULL until needed */
  _Atomic(CUfunction) set_condition;      /* condition.c's; NULL until needed */
} tps_cuda_device;

/* Fails with CUDA's number and "<what>: <CUDA's own text>", where <what> is
 * printf-like, and clears cudart's last error. Takes CUresult too, whose
 * numbers are the same. Returns the number. */
int tps_cuda_fail(tps_error *err, int number, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

/* The way of tps_cuda_use when another context is current. */
int tps_cuda_switch(tps_cuda_device *self, tps_error *err);

static inline tps_cuda_device *tps_cuda(tps_device *device) {
  return (tps_cuda_device *)device;
}

/* Makes the device current on this thread; every function begins so. Asks the
 * driver which context is current instead of remembering what was set last:
 * other code in the process may have changed it meanwhile, and the question
 * costs some nanoseconds only. The first use makes the context. */
static inline int tps_cuda_use(tps_device *device, tps_error *err) {
  tps_cuda_device *self = tps_cuda(device);
  CUcontext ours = atomic_load_explicit(&self->context, memory_order_acquire);
  CUcontext now = NULL;
  if (ours != NULL && self->driver.context_current(&now) == CUDA_SUCCESS &&
      now == ours)
    return 0;
  return tps_cuda_switch(self, err);
}

/* Asks `query` until it no longer says "not ready" or the time is up; returns
 * its answer. */
cudaError_t tps_cuda_wait(cudaError_t (*query)(void *handle), void *handle,
                          uint64_t timeout_ns);

/* The driver's answer to a query, whose number is cudart's; else it is an error. */
static inline bool tps_cuda_is_answer(CUresult r) {
  return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY;
}

/* Turns the answer of a query or a wait into the face's. "Not ready" is no
 * failure: *err stays as it was. */
int tps_cuda_answer(cudaError_t e, const char *call, tps_error *err);

/* The face: see device/device.h. */
tps_device_stream *tps_cuda_default_stream(tps_device *device);
int tps_cuda_stream_create(tps_device *device, int priority, unsigned flags,
                           tps_device_stream **out, int *effective,
                           tps_error *err);
void tps_cuda_stream_destroy(tps_device *device, tps_device_stream *stream);
int tps_cuda_stream_query(tps_device *device, tps_device_stream *stream,
                          tps_error *err);
int tps_cuda_stream_synchronize(tps_device *device, tps_device_stream *stream,
                                uint64_t timeout_ns, tps_error *err);
int tps_cuda_stream_wait_event(tps_device *device, tps_device_stream *stream,
                               tps_device_event *event, tps_op *op,
                               tps_error *err);
uint64_t tps_cuda_stream_handle(tps_device *device, tps_device_stream *stream);
int tps_cuda_stream_notify(tps_device *device, tps_device_stream *stream,
                           void (*notify)(void *data, bool failed), void *data,
                           tps_op *op, tps_error *err);
int tps_cuda_stream_adopt(tps_device *device, uint64_t handle,
                          tps_device_stream **out, int *priority,
                          bool *blocking, tps_error *err);
void tps_cuda_stream_forget(tps_device *device, tps_device_stream *stream);

int tps_cuda_event_create(tps_device *device, unsigned flags,
                          tps_device_event **out, tps_error *err);
void tps_cuda_event_destroy(tps_device *device, tps_device_event *event);
int tps_cuda_event_record(tps_device *device, tps_device_event *event,
                          tps_device_stream *stream, tps_op *op,
                          tps_error *err);
int tps_cuda_event_query(tps_device *device, tps_device_event *event,
                         tps_error *err);
int tps_cuda_event_synchronize(tps_device *device, tps_device_event *event,
                               uint64_t timeout_ns, tps_error *err);
int tps_cuda_event_elapsed(tps_device *device, tps_device_event *a,
                           tps_device_event *b, double *ms, tps_error *err);
uint64_t tps_cuda_event_handle(tps_device *device, tps_device_event *event);
int tps_cuda_event_export(tps_device *device, tps_device_event *event,
                          char handle[TPS_EVENT_IPC_BYTES], tps_error *err);
int tps_cuda_event_import(tps_device *device,
                          const char handle[TPS_EVENT_IPC_BYTES],
                          tps_device_event **out, tps_error *err);

int tps_cuda_memory_info(tps_device *device, uint64_t *free, uint64_t *total,
                         tps_error *err);
int tps_cuda_memory_allocate(tps_device *device, uint64_t bytes,
                             tps_device_stream *stream, tps_op *op,
                             uint64_t *address, tps_error *err);
int tps_cuda_memory_free(tps_device *device, uint64_t address,
                         tps_device_stream *stream, tps_op *op, tps_error *err);
int tps_cuda_memory_pin(tps_device *device, uint64_t bytes, tps_pin kind,
                        void **host, uint64_t *address, tps_error *err);
int tps_cuda_memory_unpin(tps_device *device, tps_pin kind, void *host,
                          uint64_t address, tps_error *err);
int tps_cuda_copy(tps_device *device, uint64_t to, uint64_t from,
                  uint64_t bytes, tps_device_stream *stream, tps_op *op,
                  tps_error *err);
int tps_cuda_memory_share(tps_device *device, uint64_t bytes, uint64_t *address,
                          tps_error *err);
int tps_cuda_memory_export(tps_device *device, uint64_t address,
                           char handle[TPS_MEMORY_IPC_BYTES], tps_error *err);
int tps_cuda_memory_import(tps_device *device,
                           const char handle[TPS_MEMORY_IPC_BYTES],
                           uint64_t *address, uint64_t *bytes, tps_error *err);
void tps_cuda_memory_unshare(tps_device *device, uint64_t address,
                             bool imported);
int tps_cuda_copy_rows(tps_device *device, uint64_t to, tps_device *to_device,
                       uint64_t from, tps_device *from_device,
                       const tps_rows *rows, tps_device_stream *stream,
                       tps_op *op, tps_error *err);
int tps_cuda_copy_peer(tps_device *device, uint64_t to, tps_device *to_device,
                       uint64_t from, tps_device *from_device, uint64_t bytes,
                       tps_device_stream *stream, tps_op *op, tps_error *err);
int tps_cuda_fill(tps_device *device, uint64_t to, uint64_t pattern,
                  unsigned width, uint64_t count, tps_device_stream *stream,
                  tps_op *op, tps_error *err);
bool tps_cuda_can_access_peer(tps_device *device, tps_device *other);
/* Copies go straight from one device to the other once each reaches the other's
 * memory (memory.c); else through the host, as where there is no way. */
void tps_cuda_open_way(tps_device *a, tps_device *b);

int tps_cuda_module_load(tps_device *device, tps_image_kind kind,
                         const void *image, size_t size, const char *probe,
                         tps_device_module **out, tps_error *err);
void tps_cuda_module_unload(tps_device *device, tps_device_module *module);
int tps_cuda_module_kernels(tps_device *device, tps_device_module *module,
                            char ***names, size_t *count, tps_error *err);
int tps_cuda_global_find(tps_device *device, tps_device_module *module,
                         const char *name, uint64_t *address, uint64_t *bytes,
                         tps_error *err);

int tps_cuda_kernel_find(tps_device *device, tps_device_module *module,
                         const char *name, tps_device_kernel **out,
                         tps_error *err);
int tps_cuda_kernel_params(tps_device *device, tps_device_kernel *kernel,
                           tps_kernel_desc *desc, tps_error *err);
int tps_cuda_kernel_attributes(tps_device *device, tps_device_kernel *kernel,
                               tps_kernel_attributes *out, tps_error *err);
int tps_cuda_kernel_opt_in_shared(tps_device *device, tps_device_kernel *kernel,
                                  int64_t bytes, tps_error *err);
int tps_cuda_kernel_occupancy(tps_device *device, tps_device_kernel *kernel,
                              int threads, int64_t shared, int *blocks,
                              tps_error *err);
int tps_cuda_launch(tps_device *device, tps_device_kernel *kernel,
                    const tps_launch *launch, tps_device_stream *stream,
                    tps_op *op, tps_error *err);

void tps_cuda_texture_limits(tps_device *device, bool writable,
                             tps_texture_limits *out);
int tps_cuda_array_create(tps_device *device, const tps_array_shape *shape,
                          tps_device_array **out, tps_error *err);
void tps_cuda_array_destroy(tps_device *device, tps_device_array *array);
int tps_cuda_array_copy(tps_device *device, tps_device_array *array,
                        uint64_t address, bool to_array,
                        tps_device_stream *stream, tps_op *op, tps_error *err);
int tps_cuda_texture_create(tps_device *device,
                            const tps_texture_source *source,
                            const tps_sampling *sampling, uint64_t *handle,
                            tps_error *err);
void tps_cuda_texture_destroy(tps_device *device, uint64_t handle);
int tps_cuda_surface_create(tps_device *device, tps_device_array *array,
                            uint64_t *handle, tps_error *err);
void tps_cuda_surface_destroy(tps_device *device, uint64_t handle);

bool tps_cuda_can_multiply(tps_device *device, const tps_product *product);
int tps_cuda_multiply(tps_device *device, const tps_product *product,
                      tps_device_stream *stream, tps_op *op, tps_error *err);
void tps_cuda_product_close(tps_cuda_device *self);
int tps_cuda_graph_build(tps_device *device, const tps_graph_node_list *list,
                         tps_device_graph **out, tps_error *err);
int tps_cuda_graph_change(tps_device *device, tps_device_graph *graph,
                          const tps_graph_node_list *list, uint32_t index,
                          tps_error *err);
int tps_cuda_graph_update(tps_device *device, tps_device_graph *graph,
                          const tps_graph_node_list *list, tps_error *err);
int tps_cuda_graph_launch(tps_device *device, tps_device_graph *graph,
                          tps_device_stream *stream, tps_op *op,
                          tps_error *err);
void tps_cuda_graph_destroy(tps_device *device, tps_device_graph *graph);

/* The kernel (condition, address of a 32-bit integer) that sets the condition
 * to whether the integer is not 0. The device is current. */
int tps_cuda_condition_kernel(tps_cuda_device *self, CUfunction *out,
                              tps_error *err);

#endif
