/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Counting, opening and using a CUDA device as a whole. Counting and opening
 * ask for properties only, which makes no context: a program that never uses a
 * GPU takes none of its memory and none of the seconds that a context may cost.
 */
#include "cuda/cuda.h"
#include "cuda/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tps_cuda_fail(tps_error *err, int number, const char *what, ...) {
  char text[512];
  va_list args;
  va_start(args, what);
  vsnprintf(text, sizeof text, what, args);
  va_end(args);
  cudaGetLastError();
  return tps_fail(err, number, "%s: %s", text,
                  cudaGetErrorString((cudaError_t)number));
}

/* --- the driver ----------------------------------------------------------- */

/* Finds one function of the driver. */
static int find_symbol(const char *symbol, unsigned version, void *slot,
                       tps_error *err) {
  enum cudaDriverEntryPointQueryResult found;
  void *address = NULL;
  cudaError_t e = cudaGetDriverEntryPointByVersion(
      symbol, &address, version, cudaEnableLegacyStream, &found);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaGetDriverEntryPointByVersion of '%s'",
                         symbol);
  if (found != cudaDriverEntryPointSuccess || address == NULL)
    return tps_fail(err, TPS_INSUFFICIENT_DRIVER,
                    "the CUDA driver has no '%s' (CUDA %u.%u)", symbol,
                    version / 1000, version % 1000 / 10);
  memcpy(slot, &address, sizeof address);
  return 0;
}

static int find_symbols(tps_cuda_driver *driver, tps_error *err) {
  int code;
#define X(field, symbol, version)                                              \
  TPS_TRY(done, find_symbol(#symbol, version, &driver->field, err));
  TPS_CUDA_DRIVER(X)
#undef X
done:
  return code;
}

/* --- the current device --------------------------------------------------- */

/* Freed memory stays in the pool: giving it back at each synchronize would make
 * the next allocation as slow as the first. A stream never waits for another
 * one's free merely to get its memory: that would order streams behind the
 * script's back (memory.c allows it when there is no other memory left). */
static int set_up_pool(tps_cuda_device *self, tps_error *err) {
  uint64_t keep = UINT64_MAX;
  int no = 0;
  cudaError_t e = cudaDeviceGetDefaultMemPool(&self->pool, self->base.ordinal);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaDeviceGetDefaultMemPool");
  e = cudaMemPoolSetAttribute(self->pool, cudaMemPoolAttrReleaseThreshold,
                              &keep);
  if (e == cudaSuccess)
    e = cudaMemPoolSetAttribute(self->pool,
                                cudaMemPoolReuseAllowInternalDependencies, &no);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaMemPoolSetAttribute");
  return 0;
}

/* With the context just made current; `context` is stored last. */
static int first_use(tps_cuda_device *self, tps_error *err) {
  CUcontext context = NULL;
  int code = (int)self->driver.context_current(&context);
  if (code != 0) return tps_cuda_fail(err, code, "cuCtxGetCurrent");
  TPS_TRY(done, set_up_pool(self, err));
  atomic_store_explicit(&self->context, context, memory_order_release);
done:
  return code;
}

int tps_cuda_switch(tps_cuda_device *self, tps_error *err) {
  cudaError_t e = cudaSetDevice(self->base.ordinal);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaSetDevice(%d)", self->base.ordinal);
  if (atomic_load_explicit(&self->context, memory_order_acquire) != NULL)
    return 0;
  int code = 0;
  pthread_mutex_lock(&self->lock);
  if (atomic_load_explicit(&self->context, memory_order_relaxed) == NULL)
    code = first_use(self, err);
  pthread_mutex_unlock(&self->lock);
  return code;
}

static int device_synchronize(tps_device *device, tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaDeviceSynchronize();
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "cudaDeviceSynchronize");
}

/* The context stays: other code in the process may use it. */
static void device_close(tps_device *device) {
  if (device == NULL) return;
  tps_cuda_product_close(tps_cuda(device));
  tps_cuda_times_close(tps_cuda(device));
  pthread_mutex_destroy(&tps_cuda(device)->product_lock);
  pthread_mutex_destroy(&tps_cuda(device)->lock);
  free(device);
}

static const tps_device_face face = {
    .memory_info = tps_cuda_memory_info,
    .synchronize = device_synchronize,
    .close = device_close,
    .default_stream = tps_cuda_default_stream,
    .stream_create = tps_cuda_stream_create,
    .stream_destroy = tps_cuda_stream_destroy,
    .stream_query = tps_cuda_stream_query,
    .stream_synchronize = tps_cuda_stream_synchronize,
    .stream_wait_event = tps_cuda_stream_wait_event,
    .stream_handle = tps_cuda_stream_handle,
    .event_create = tps_cuda_event_create,
    .event_destroy = tps_cuda_event_destroy,
    .event_record = tps_cuda_event_record,
    .event_query = tps_cuda_event_query,
    .event_synchronize = tps_cuda_event_synchronize,
    .event_elapsed = tps_cuda_event_elapsed,
    .event_handle = tps_cuda_event_handle,
    .memory_allocate = tps_cuda_memory_allocate,
    .memory_free = tps_cuda_memory_free,
    .memory_pin = tps_cuda_memory_pin,
    .memory_unpin = tps_cuda_memory_unpin,
    .copy = tps_cuda_copy,
    .copy_peer = tps_cuda_copy_peer,
    .copy_rows = tps_cuda_copy_rows,
    .memory_share = tps_cuda_memory_share,
    .memory_export = tps_cuda_memory_export,
    .memory_import = tps_cuda_memory_import,
    .memory_unshare = tps_cuda_memory_unshare,
    .fill = tps_cuda_fill,
    .can_access_peer = tps_cuda_can_access_peer,
    .module_load = tps_cuda_module_load,
    .module_unload = tps_cuda_module_unload,
    .kernel_find = tps_cuda_kernel_find,
    .kernel_params = tps_cuda_kernel_params,
    .module_kernels = tps_cuda_module_kernels,
    .kernel_attributes = tps_cuda_kernel_attributes,
    .kernel_opt_in_shared = tps_cuda_kernel_opt_in_shared,
    .kernel_occupancy = tps_cuda_kernel_occupancy,
    .global_find = tps_cuda_global_find,
    .launch = tps_cuda_launch,
    .stream_notify = tps_cuda_stream_notify,
    .times_collect = tps_cuda_times_collect,
    .stream_adopt = tps_cuda_stream_adopt,
    .stream_forget = tps_cuda_stream_forget,
    .event_export = tps_cuda_event_export,
    .event_import = tps_cuda_event_import,
    .texture_limits = tps_cuda_texture_limits,
    .array_create = tps_cuda_array_create,
    .array_destroy = tps_cuda_array_destroy,
    .array_copy = tps_cuda_array_copy,
    .texture_create = tps_cuda_texture_create,
    .texture_destroy = tps_cuda_texture_destroy,
    .surface_create = tps_cuda_surface_create,
    .surface_destroy = tps_cuda_surface_destroy,
    .can_multiply = tps_cuda_can_multiply,
    .multiply = tps_cuda_multiply,
    .graph_build = tps_cuda_graph_build,
    .graph_change = tps_cuda_graph_change,
    .graph_update = tps_cuda_graph_update,
    .graph_launch = tps_cuda_graph_launch,
    .graph_destroy = tps_cuda_graph_destroy,
};

/* --- properties ----------------------------------------------------------- */

/* As nvidia-smi writes it. */
static void write_uuid(char *out, size_t size, const cudaUUID_t *uuid) {
  const unsigned char *b = (const unsigned char *)uuid->bytes;
  snprintf(out, size,
           "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
           "%02x%02x%02x%02x%02x%02x",
           b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
           b[11], b[12], b[13], b[14], b[15]);
}

static void copy_limits(tps_device_properties *p,
                        const struct cudaDeviceProp *from) {
  for (int i = 0; i < 3; i++) {
    p->max_block[i] = from->maxThreadsDim[i];
    p->max_grid[i] = from->maxGridSize[i];
  }
  p->multiprocessors = from->multiProcessorCount;
  p->warp_size = from->warpSize;
  p->max_threads_per_block = from->maxThreadsPerBlock;
  p->max_threads_per_multiprocessor = from->maxThreadsPerMultiProcessor;
  p->max_blocks_per_multiprocessor = from->maxBlocksPerMultiProcessor;
  p->shared_per_block = (int64_t)from->sharedMemPerBlock;
  p->shared_per_block_optin = (int64_t)from->sharedMemPerBlockOptin;
  p->shared_per_multiprocessor = (int64_t)from->sharedMemPerMultiprocessor;
  p->registers_per_block = from->regsPerBlock;
  p->registers_per_multiprocessor = from->regsPerMultiprocessor;
  p->constant_memory = (int64_t)from->totalConstMem;
  p->total_memory = (int64_t)from->totalGlobalMem;
  p->l2_cache = from->l2CacheSize;
}

/* The range of priorities can't be asked for without a context; it has been 0
 * to -5 on every GPU that CUDA 13 supports, and stream_create tells the
 * priority that is really in force. */
static void copy_features(tps_device_properties *p,
                          const struct cudaDeviceProp *from) {
  p->capability_major = from->major;
  p->capability_minor = from->minor;
  p->memory_bus_bits = from->memoryBusWidth;
  p->cooperative_launch = from->cooperativeLaunch != 0;
  p->clusters = from->clusterLaunch != 0;
  p->managed_memory =
      from->managedMemory != 0 && from->concurrentManagedAccess != 0;
  p->concurrent_kernels = from->concurrentKernels != 0;
  p->async_engines = from->asyncEngineCount;
  p->priority_least = 0;
  p->priority_greatest = from->streamPrioritiesSupported ? -5 : 0;
}

static int read_properties(tps_device *device, tps_error *err) {
  struct cudaDeviceProp from;
  tps_device_properties *p = &device->properties;
  int ordinal = device->ordinal;
  cudaError_t e = cudaGetDeviceProperties(&from, ordinal);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaGetDeviceProperties(%d)", ordinal);
  snprintf(p->name, sizeof p->name, "%s", from.name);
  copy_limits(p, &from);
  copy_features(p, &from);
  write_uuid(p->uuid, sizeof p->uuid, &from.uuid);
  /* What a driver doesn't tell stays 0 or "". */
  cudaDeviceGetAttribute(&p->clock_khz, cudaDevAttrClockRate, ordinal);
  cudaDeviceGetAttribute(&p->memory_clock_khz, cudaDevAttrMemoryClockRate,
                         ordinal);
  cudaDeviceGetPCIBusId(p->pci_bus_id, sizeof p->pci_bus_id, ordinal);
  cudaDriverGetVersion(&p->driver_version);
  cudaRuntimeGetVersion(&p->runtime_version);
  cudaGetLastError();
  return 0;
}

/* --- counting and opening ------------------------------------------------- */

static void say_driver(tps_error *why) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0)
    tps_fail(why, TPS_INSUFFICIENT_DRIVER,
             "no CUDA driver found (libcuda.so.1 can't be loaded)");
  else
    tps_fail(why, TPS_INSUFFICIENT_DRIVER,
             "the CUDA driver is for CUDA %d.%d, this program needs %d.%d",
             driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10);
}

static void say_no_device(tps_error *why) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible != NULL)
    tps_fail(why, TPS_NO_DEVICE,
             "no CUDA device is visible (CUDA_VISIBLE_DEVICES is \"%s\")",
             visible);
  else tps_fail(why, TPS_NO_DEVICE, "%s", tps_code_message(TPS_NO_DEVICE));
}

int tps_cuda_device_count(tps_error *why) {
  int count = 0;
  cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) return count;
  if (e == cudaErrorInsufficientDriver) say_driver(why);
  else if (e == cudaErrorNoDevice || e == cudaSuccess) say_no_device(why);
  else tps_cuda_fail(why, e, "cudaGetDeviceCount");
  cudaGetLastError();
  return 0;
}

int tps_cuda_device_open(int ordinal, tps_device **out, tps_error *err) {
  int code, count = tps_cuda_device_count(err);
  *out = NULL;
  if (count == 0) return err->code;
  if (ordinal < 0 || ordinal >= count)
    return tps_fail(err, TPS_INVALID_DEVICE,
                    "CUDA device %d (%d visible, counted from 0)", ordinal,
                    count);
  tps_cuda_device *self = calloc(1, sizeof *self);
  if (self == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a CUDA device");
  pthread_mutex_init(&self->lock, NULL);
  pthread_mutex_init(&self->product_lock, NULL);
  self->base.face = &face;
  self->base.kind = TPS_CUDA;
  self->base.ordinal = ordinal;
  self->base.recycles = true;
  self->base.unpin_waits = true;
  TPS_TRY(failed, find_symbols(&self->driver, err));
  TPS_TRY(failed, read_properties(&self->base, err));
  *out = &self->base;
  return 0;
failed:
  device_close(&self->base);
  return code;
}
