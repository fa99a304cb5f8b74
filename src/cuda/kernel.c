/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Kernels of the CUDA device: finding, asking, launching.
 */
#include "cuda/cuda.h"
#include "cuda/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tps_cuda_kernel_find(tps_device *device, tps_device_module *module,
                         const char *name, tps_device_kernel **out,
                         tps_error *err) {
  cudaKernel_t kernel = NULL;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaLibraryGetKernel(&kernel, (cudaLibrary_t)module, name);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "looking up the kernel '%s'", name);
  *out = (tps_device_kernel *)kernel;
  return 0;
}

/* --- parameters ----------------------------------------------------------- */

/* The strictest alignment that offset and size allow: the binary doesn't tell
 * the true one, which is never stricter than 16. */
static uint32_t likely_alignment(size_t offset, size_t size) {
  uint32_t align = 16;
  while (offset % align != 0 || size % align != 0) align /= 2;
  return align;
}

static int describe(tps_param *param, size_t offset, size_t size) {
  char type[40];
  if (size == 1 || size == 2 || size == 4 || size == 8)
    snprintf(type, sizeof type, ".b%zu", size * 8);
  else snprintf(type, sizeof type, ".b8[%zu]", size);
  *param = (tps_param){.type = strdup(type),
                       .offset = (uint32_t)offset,
                       .size = (uint32_t)size,
                       .align = likely_alignment(offset, size),
                       .dtype = TPS_OPAQUE,
                       .certainty = TPS_BY_SIZE,
                       .access = TPS_ACCESS_UNKNOWN};
  return param->type != NULL ? 0 : TPS_NO_HOST_MEMORY;
}

/* Adds the parameter to *desc. */
static int add_parameter(tps_kernel_desc *desc, size_t offset, size_t size) {
  tps_param *more =
      realloc(desc->params, (desc->param_count + 1) * sizeof *more);
  if (more == NULL) return TPS_NO_HOST_MEMORY;
  desc->params = more;
  if (describe(&more[desc->param_count], offset, size) != 0)
    return TPS_NO_HOST_MEMORY;
  desc->param_count++;
  desc->param_bytes = (uint32_t)(offset + size);
  return 0;
}

/* The driver has no count: it refuses the number after the last. What was there
 * of an earlier description must be empty. */
int tps_cuda_kernel_params(tps_device *device, tps_device_kernel *kernel,
                           tps_kernel_desc *desc, tps_error *err) {
  const tps_cuda_driver *driver = &tps_cuda(device)->driver;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  desc->params = NULL;
  desc->param_count = desc->param_bytes = 0;
  for (;;) {
    size_t offset = 0, size = 0;
    code = (int)driver->kernel_parameter((CUkernel)kernel, desc->param_count,
                                         &offset, &size);
    if (code == CUDA_ERROR_INVALID_VALUE) return 0;
    if (code != 0) return tps_cuda_fail(err, code, "cuKernelGetParamInfo");
    if (add_parameter(desc, offset, size) != 0)
      return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for parameter %u",
                      desc->param_count + 1);
  }
}

/* --- attributes ----------------------------------------------------------- */

int tps_cuda_kernel_attributes(tps_device *device, tps_device_kernel *kernel,
                               tps_kernel_attributes *out, tps_error *err) {
  struct cudaFuncAttributes from;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaFuncGetAttributes(&from, kernel);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaFuncGetAttributes");
  out->registers = from.numRegs;
  out->shared_bytes = (int64_t)from.sharedSizeBytes;
  out->local_bytes = (int64_t)from.localSizeBytes;
  out->const_bytes = (int64_t)from.constSizeBytes;
  out->max_threads = from.maxThreadsPerBlock;
  out->max_dynamic_shared = from.maxDynamicSharedSizeBytes;
  return 0;
}

int tps_cuda_kernel_opt_in_shared(tps_device *device, tps_device_kernel *kernel,
                                  int64_t bytes, tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  if (e == cudaSuccess) return 0;
  return tps_cuda_fail(err, e, "allowing %lld bytes of dynamic shared memory",
                       (long long)bytes);
}

int tps_cuda_kernel_occupancy(tps_device *device, tps_device_kernel *kernel,
                              int threads, int64_t shared, int *blocks,
                              tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, kernel, threads, (size_t)shared);
  if (e == cudaSuccess) return 0;
  return tps_cuda_fail(err, e, "occupancy of blocks of %d threads", threads);
}

/* --- launch --------------------------------------------------------------- */

/* Blocks: what every device with clusters allows. */
#define CARVEOUT_DRIVER 12080 /* knows of the attribute for sure */
#define CLUSTER_PORTABLE 8

/* Adds the cluster's attribute; larger ones must be allowed for the kernel. */
static cudaError_t add_cluster(cudaLaunchConfig_t *config, const void *kernel,
                               const uint32_t *cluster) {
  config->attrs[config->numAttrs++] = (cudaLaunchAttribute){
      .id = cudaLaunchAttributeClusterDimension,
      .val.clusterDim = {cluster[0], cluster[1], cluster[2]}};
  if ((uint64_t)cluster[0] * cluster[1] * cluster[2] <= CLUSTER_PORTABLE)
    return cudaSuccess;
  return cudaFuncSetAttribute(
      kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

/* Adds the hint about shared memory and L1 cache, if the driver knows of it. */
static void add_carveout(cudaLaunchConfig_t *config, unsigned percent) {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess ||
      version < CARVEOUT_DRIVER)
    return;
  config->attrs[config->numAttrs++] = (cudaLaunchAttribute){
      .id = cudaLaunchAttributePreferredSharedMemoryCarveout,
      .val.sharedMemCarveout = percent};
}

/* A launch that asks for nothing special. */
static bool launch_plain(tps_device *device, tps_device_kernel *kernel,
                         const tps_launch *launch, tps_device_stream *stream) {
  const uint32_t *g = launch->grid, *b = launch->block;
  CUlaunchConfig config = {.gridDimX = g[0],
                           .gridDimY = g[1],
                           .gridDimZ = g[2],
                           .blockDimX = b[0],
                           .blockDimY = b[1],
                           .blockDimZ = b[2],
                           .sharedMemBytes = launch->shared,
                           .hStream = (CUstream)stream};
  return tps_cuda(device)->driver.launch(&config, (CUfunction)kernel,
                                         launch->argv, NULL) == CUDA_SUCCESS;
}

static bool is_plain(const tps_launch *launch) {
  return !launch->cooperative && launch->carveout == 0 &&
         launch->cluster[0] == 0;
}

static cudaError_t launch_any(tps_device *device, tps_device_kernel *kernel,
                              const tps_launch *launch,
                              tps_device_stream *stream) {
  cudaLaunchAttribute attributes[3];
  const uint32_t *g = launch->grid, *b = launch->block;
  cudaLaunchConfig_t config = {.gridDim = {g[0], g[1], g[2]},
                               .blockDim = {b[0], b[1], b[2]},
                               .dynamicSmemBytes = launch->shared,
                               .stream = (cudaStream_t)stream,
                               .attrs = attributes};
  cudaError_t e = cudaSuccess;
  if (is_plain(launch) && launch_plain(device, kernel, launch, stream))
    return cudaSuccess;
  if (launch->cooperative)
    attributes[config.numAttrs++] = (cudaLaunchAttribute){
        .id = cudaLaunchAttributeCooperative, .val.cooperative = 1};
  if (launch->carveout != 0) add_carveout(&config, launch->carveout - 1u);
  if (launch->cluster[0] != 0)
    e = add_cluster(&config, kernel, launch->cluster);
  return e == cudaSuccess ? cudaLaunchKernelExC(&config, kernel, launch->argv)
                          : e;
}

int tps_cuda_launch(tps_device *device, tps_device_kernel *kernel,
                    const tps_launch *launch, tps_device_stream *stream,
                    tps_op *op, tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e = launch_any(device, kernel, launch, stream);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "cudaLaunchKernelExC");
}
