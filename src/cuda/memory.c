/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory of the CUDA device: allocated in stream order from the device's
 * default pool, page-locked on the host, copied and filled. Addresses are
 * unified: one address means the same bytes to the host and to every device.
 */
#include "cuda/cuda.h"
#include "cuda/times.h"

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

/* What the pool holds but no buffer uses counts as free: the next allocation
 * takes it from there. */
int tps_cuda_memory_info(tps_device *device, uint64_t *free, uint64_t *total,
                         tps_error *err) {
  size_t left = 0, all = 0;
  uint64_t reserved = 0, used = 0;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaMemGetInfo(&left, &all);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaMemGetInfo");
  cudaMemPool_t pool = tps_cuda(device)->pool;
  e = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent,
                              &reserved);
  if (e == cudaSuccess)
    e = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaMemPoolGetAttribute");
  *free = left + (reserved > used ? reserved - used : 0);
  *total = all;
  return 0;
}

/* The second try, when memory is short: gives back what lies idle in the pool,
 * in pieces too small perhaps, and lets the stream wait for memory that another
 * one is about to free. Two threads here at once do each other no harm. */
static cudaError_t allocate_again(tps_cuda_device *self, void **memory,
                                  uint64_t bytes, cudaStream_t stream) {
  const enum cudaMemPoolAttr waiting =
      cudaMemPoolReuseAllowInternalDependencies;
  int yes = 1, no = 0;
  cudaGetLastError();
  cudaMemPoolTrimTo(self->pool, 0);
  cudaMemPoolSetAttribute(self->pool, waiting, &yes);
  cudaError_t e = cudaMallocAsync(memory, bytes, stream);
  cudaMemPoolSetAttribute(self->pool, waiting, &no);
  return e;
}

int tps_cuda_memory_allocate(tps_device *device, uint64_t bytes,
                             tps_device_stream *stream, tps_op *op,
                             uint64_t *address, tps_error *err) {
  (void)op;
  void *memory = NULL;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaMallocAsync(&memory, bytes, (cudaStream_t)stream);
  if (e == cudaErrorMemoryAllocation)
    e = allocate_again(tps_cuda(device), &memory, bytes, (cudaStream_t)stream);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaMallocAsync of %llu bytes",
                         (unsigned long long)bytes);
  *address = (uint64_t)(uintptr_t)memory;
  return 0;
}

int tps_cuda_memory_free(tps_device *device, uint64_t address,
                         tps_device_stream *stream, tps_op *op,
                         tps_error *err) {
  (void)op;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaFreeAsync(pointer(address), (cudaStream_t)stream);
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "cudaFreeAsync");
}

/* Without concurrent access the host would fault where it touches managed memory
 * while any kernel runs: there is none then. */
static int manage(tps_device *device, uint64_t bytes, void **host,
                  uint64_t *address, tps_error *err) {
  void *memory = NULL;
  if (!device->properties.managed_memory)
    return tps_fail(err, TPS_NOT_SUPPORTED,
                    "cuda:%d has no managed memory that the host can use while "
                    "kernels run",
                    device->ordinal);
  cudaError_t e = cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaMallocManaged of %llu bytes",
                         (unsigned long long)bytes);
  *host = memory;
  *address = (uint64_t)(uintptr_t)memory;
  return 0;
}

/* Portable: every device's copies may use it. */
int tps_cuda_memory_pin(tps_device *device, uint64_t bytes, tps_pin kind,
                        void **host, uint64_t *address, tps_error *err) {
  void *memory = NULL, *mapped = NULL;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  if (kind == TPS_PIN_MANAGED) return manage(device, bytes, host, address, err);
  cudaError_t e = cudaHostAlloc(&memory, bytes,
                                cudaHostAllocPortable | cudaHostAllocMapped);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaHostAlloc of %llu bytes",
                         (unsigned long long)bytes);
  e = cudaHostGetDevicePointer(&mapped, memory, 0);
  if (e != cudaSuccess) {
    code = tps_cuda_fail(err, e, "cudaHostGetDevicePointer");
    cudaFreeHost(memory);
    return code;
  }
  *host = memory;
  *address = (uint64_t)(uintptr_t)mapped;
  return 0;
}

int tps_cuda_memory_unpin(tps_device *device, tps_pin kind, void *host,
                          uint64_t address, tps_error *err) {
  (void)address;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  bool managed = kind == TPS_PIN_MANAGED;
  cudaError_t e = managed ? cudaFree(host) : cudaFreeHost(host);
  if (e == cudaSuccess) return 0;
  return tps_cuda_fail(err, e, managed ? "cudaFree" : "cudaFreeHost");
}

/* --- copies --------------------------------------------------------------- */

int tps_cuda_copy(tps_device *device, uint64_t to, uint64_t from,
                  uint64_t bytes, tps_device_stream *stream, tps_op *op,
                  tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e = cudaMemcpyAsync(pointer(to), pointer(from), bytes,
                                  cudaMemcpyDefault, (cudaStream_t)stream);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  if (e == cudaSuccess) return 0;
  return tps_cuda_fail(err, e, "cudaMemcpyAsync of %llu bytes",
                       (unsigned long long)bytes);
}

int tps_cuda_copy_peer(tps_device *device, uint64_t to, tps_device *to_device,
                       uint64_t from, tps_device *from_device, uint64_t bytes,
                       tps_device_stream *stream, tps_op *op, tps_error *err) {
  tps_cuda_open_way(to_device, from_device);
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e =
      cudaMemcpyPeerAsync(pointer(to), to_device->ordinal, pointer(from),
                          from_device->ordinal, bytes, (cudaStream_t)stream);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  if (e == cudaSuccess) return 0;
  return tps_cuda_fail(err, e, "cudaMemcpyPeerAsync of %llu bytes",
                       (unsigned long long)bytes);
}

static cudaError_t rows_between(tps_device *to_device, void *to,
                                tps_device *from_device, void *from,
                                const tps_rows *rows, cudaStream_t stream) {
  struct cudaMemcpy3DPeerParms p = {
      .srcPtr = {from, rows->from_pitch, rows->bytes, rows->count},
      .srcDevice = from_device->ordinal,
      .dstPtr = {to, rows->to_pitch, rows->bytes, rows->count},
      .dstDevice = to_device->ordinal,
      .extent = {rows->bytes, rows->count, 1}};
  return cudaMemcpy3DPeerAsync(&p, stream);
}

int tps_cuda_copy_rows(tps_device *device, uint64_t to, tps_device *to_device,
                       uint64_t from, tps_device *from_device,
                       const tps_rows *rows, tps_device_stream *stream,
                       tps_op *op, tps_error *err) {
  cudaStream_t s = (cudaStream_t)stream;
  tps_cuda_open_way(to_device, from_device);
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e =
      to_device == from_device
          ? cudaMemcpy2DAsync(pointer(to), rows->to_pitch, pointer(from),
                              rows->from_pitch, rows->bytes, rows->count,
                              cudaMemcpyDefault, s)
          : rows_between(to_device, pointer(to), from_device, pointer(from),
                         rows, s);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  if (e == cudaSuccess) return 0;
  return tps_cuda_fail(err, e, "copying %llu rows of %llu bytes",
                       (unsigned long long)rows->count,
                       (unsigned long long)rows->bytes);
}

/* Memory from a pool has access rights of its own, beside those between the two
 * contexts that the kernel's globals need. */
static bool turn_on_peer(tps_cuda_device *self, tps_cuda_device *other) {
  int can = 0;
  struct cudaMemAccessDesc access = {
      .location = {.type = cudaMemLocationTypeDevice, .id = self->base.ordinal},
      .flags = cudaMemAccessFlagsProtReadWrite};
  cudaDeviceCanAccessPeer(&can, self->base.ordinal, other->base.ordinal);
  if (!can || tps_cuda_use(&other->base, NULL) != 0 ||
      cudaMemPoolSetAccess(other->pool, &access, 1) != cudaSuccess ||
      tps_cuda_use(&self->base, NULL) != 0)
    return false;
  cudaError_t e = cudaDeviceEnablePeerAccess(other->base.ordinal, 0);
  return e == cudaSuccess || e == cudaErrorPeerAccessAlreadyEnabled;
}

bool tps_cuda_can_access_peer(tps_device *device, tps_device *other) {
  tps_cuda_device *self = tps_cuda(device);
  if (other->kind != TPS_CUDA) return false;
  if (other->ordinal == device->ordinal) return true;
  atomic_schar *known =
      other->ordinal < TPS_CUDA_PEERS ? &self->peers[other->ordinal] : NULL;
  if (known != NULL && atomic_load(known) != 0) return atomic_load(known) > 0;
  bool can = turn_on_peer(self, tps_cuda(other));
  cudaGetLastError();
  if (known != NULL) atomic_store(known, can ? 1 : -1);
  return can;
}

void tps_cuda_open_way(tps_device *a, tps_device *b) {
  if (a->kind != b->kind || a->ordinal == b->ordinal) return;
  tps_cuda_can_access_peer(a, b);
  tps_cuda_can_access_peer(b, a);
}

/* --- filling -------------------------------------------------------------- */

/* So that the driver's widest plain fill (4 bytes) covers what it can. */
static void narrow(uint64_t *pattern, unsigned *width, uint64_t *count) {
  while (*width > 1) {
    unsigned half = *width * 4; /* bits */
    uint64_t mask = ((uint64_t)1 << half) - 1;
    if ((*pattern & mask) != (*pattern >> half & mask)) return;
    *width /= 2;
    *count *= 2;
  }
}

#define SEED 512 /* elements */

/* Eight bytes with unlike halves, which the driver can't fill. The first few:
 * the lower halves in one pass, the upper ones in another, each as a column of
 * a two-dimensional fill. That is 500 times slower than plain fills, so the
 * rest is copied from what is there, doubling it each time. */
static int fill_halves(const tps_cuda_driver *driver, uint64_t to,
                       uint64_t pattern, uint64_t count, cudaStream_t stream) {
  uint64_t done = count < SEED ? count : SEED;
  int code =
      (int)driver->fill32_rows(to, 8, (unsigned)pattern, 1, done, stream);
  if (code == 0)
    code = (int)driver->fill32_rows(to + 4, 8, (unsigned)(pattern >> 32), 1,
                                    done, stream);
  while (code == 0 && done < count) {
    uint64_t n = count - done < done ? count - done : done;
    code = (int)cudaMemcpyAsync(pointer(to + done * 8), pointer(to), n * 8,
                                cudaMemcpyDeviceToDevice, stream);
    done += n;
  }
  return code;
}

int tps_cuda_fill(tps_device *device, uint64_t to, uint64_t pattern,
                  unsigned width, uint64_t count, tps_device_stream *stream,
                  tps_op *op, tps_error *err) {
  const tps_cuda_driver *driver = &tps_cuda(device)->driver;
  cudaStream_t s = (cudaStream_t)stream;
  uint64_t bytes = width * count;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  narrow(&pattern, &width, &count);
  if (width == 8) code = fill_halves(driver, to, pattern, count, s);
  else if (width == 4)
    code = (int)driver->fill32(to, (unsigned)pattern, count, s);
  else if (width == 2)
    code = (int)driver->fill16(to, (unsigned short)pattern, count, s);
  else
    code = (int)cudaMemsetAsync(pointer(to), (int)(pattern & 0xff), count, s);
  tps_cuda_times_end(device, span, stream, code == 0);
  if (code == 0) return 0;
  return tps_cuda_fail(err, code, "filling %llu bytes",
                       (unsigned long long)bytes);
}
