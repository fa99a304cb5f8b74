/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory between processes: allocated apart from the pool, whose memory can't be
 * exported one by one.
 */
#include "cuda/cuda.h"

#include <string.h>

_Static_assert(sizeof(cudaIpcMemHandle_t) == TPS_MEMORY_IPC_BYTES,
               "size of a handle");

/* Smaller allocations share one such block, and who opened one would get them
 * all. */
#define BLOCK (UINT64_C(2) << 20)

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

int tps_cuda_memory_share(tps_device *device, uint64_t bytes, uint64_t *address,
                          tps_error *err) {
  void *memory = NULL;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaMalloc(&memory, (bytes + BLOCK - 1) / BLOCK * BLOCK);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaMalloc of %llu bytes",
                         (unsigned long long)bytes);
  *address = (uint64_t)(uintptr_t)memory;
  return 0;
}

int tps_cuda_memory_export(tps_device *device, uint64_t address,
                           char handle[TPS_MEMORY_IPC_BYTES], tps_error *err) {
  cudaIpcMemHandle_t bytes;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaIpcGetMemHandle(&bytes, pointer(address));
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaIpcGetMemHandle");
  memcpy(handle, &bytes, sizeof bytes);
  return 0;
}

int tps_cuda_memory_import(tps_device *device,
                           const char handle[TPS_MEMORY_IPC_BYTES],
                           uint64_t *address, uint64_t *bytes, tps_error *err) {
  cudaIpcMemHandle_t from;
  void *memory = NULL;
  CUdeviceptr base = 0;
  size_t size = 0;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  memcpy(&from, handle, sizeof from);
  cudaError_t e =
      cudaIpcOpenMemHandle(&memory, from, cudaIpcMemLazyEnablePeerAccess);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaIpcOpenMemHandle");
  *address = (uint64_t)(uintptr_t)memory;
  code = (int)tps_cuda(device)->driver.address_range(&base, &size, *address);
  if (code != 0) {
    cudaIpcCloseMemHandle(memory);
    return tps_cuda_fail(err, code, "cuMemGetAddressRange");
  }
  *bytes = size - (*address - base);
  return 0;
}

void tps_cuda_memory_unshare(tps_device *device, uint64_t address,
                             bool imported) {
  tps_error ignored;
  if (tps_cuda_use(device, &ignored) != 0) return;
  if (imported) cudaIpcCloseMemHandle(pointer(address));
  else cudaFree(pointer(address));
  cudaGetLastError();
}
