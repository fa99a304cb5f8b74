/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Products of matrices by cuBLAS, which is opened when the first is asked for:
 * where TPSTREAM_CUBLAS says (a file or a folder) and nowhere else, or where the
 * dynamic loader looks, or in the toolkits that CUDA_HOME, CUDA_PATH and the
 * usual place show. It is never closed. Without it, and for types it does not
 * have, the answer is NOT_SUPPORTED, and nothing was queued.
 *
 * Its headers are not needed to build: what is used of them is declared here. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/library.h"
#include "cuda/cuda.h"
#include "cuda/times.h"
#include "device/info.h"

typedef struct cublasContext *handle_t;

enum {
  STATUS_OK = 0,
  STATUS_NOT_INITIALIZED = 1,
  STATUS_ALLOC_FAILED = 3,
  STATUS_ARCH_MISMATCH = 8,
  STATUS_NOT_SUPPORTED = 15
};
enum { OP_PLAIN = 0, OP_TRANSPOSED = 1 };
enum { TYPE_32F = 0, TYPE_64F = 1, TYPE_16F = 2, TYPE_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, ALGORITHM_DEFAULT = -1 };

typedef struct library {
  int (*create)(handle_t *);
  int (*destroy)(handle_t);
  int (*set_stream)(handle_t, cudaStream_t);
  int (*gemm)(handle_t, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
              const void *alpha, const void *a, int a_type, int64_t a_row,
              long long a_step, const void *b, int b_type, int64_t b_row,
              long long b_step, const void *beta, void *c, int c_type,
              int64_t c_row, long long c_step, int64_t batch, int compute,
              int algorithm);
} library;

/* ---- opening ------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static library opened;
static tps_library_info about; /* once tried */
static bool tried;

static const char *const names[] = {"libcublas.so.13", "libcublas.so.12",
                                    "libcublas.so"};
#define NAMES (sizeof names / sizeof names[0])

static void *open_in(const char *folder, const char *below) {
  char path[4096];
  void *found = NULL;
  if (folder == NULL || *folder == '\0') return NULL;
  for (size_t i = 0; i < NAMES && found == NULL; i++)
    if (snprintf(path, sizeof path, "%s%s/%s", folder, below, names[i]) <
        (int)sizeof path)
      found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return found;
}

static void *open_chosen(const char *chosen) {
  void *found = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  if (found == NULL) found = open_in(chosen, "");
  if (found == NULL)
    snprintf(about.why, sizeof about.why,
             "nothing to load at %.300s (from TPSTREAM_CUBLAS)", chosen);
  return found;
}

static void *open_library(void) {
  const char *chosen = getenv("TPSTREAM_CUBLAS");
  void *found = NULL;
  if (chosen != NULL && *chosen != '\0') return open_chosen(chosen);
  for (size_t i = 0; i < NAMES && found == NULL; i++)
    found = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (found == NULL) found = open_in(getenv("CUDA_HOME"), "/lib64");
  if (found == NULL) found = open_in(getenv("CUDA_PATH"), "/lib64");
  if (found == NULL) found = open_in("/usr/local/cuda", "/lib64");
  if (found == NULL)
    snprintf(about.why, sizeof about.why,
             "%s, %s or %s, looked for where the loader looks, in CUDA_HOME, "
             "CUDA_PATH and /usr/local/cuda",
             names[0], names[1], names[2]);
  return found;
}

static bool bind_all(void *from, library *l) {
  return tps_library_bind(from, "cublasCreate_v2", &l->create) &&
         tps_library_bind(from, "cublasDestroy_v2", &l->destroy) &&
         tps_library_bind(from, "cublasSetStream_v2", &l->set_stream) &&
         tps_library_bind(from, "cublasGemmStridedBatchedEx_64", &l->gemm);
}

static void describe(void *from) {
  int (*property)(int which, int *value);
  int major = 0, minor = 0;
  tps_library_path(from, about.path, sizeof about.path);
  if (tps_library_bind(from, "cublasGetProperty", &property) &&
      property(0, &major) == STATUS_OK && property(1, &minor) == STATUS_OK)
    snprintf(about.version, sizeof about.version, "%d.%d", major, minor);
}

/* Under the lock, once. */
static void try_library(void) {
  library l = {0};
  void *from = open_library();
  if (from == NULL) return;
  describe(from);
  if (bind_all(from, &l)) {
    opened = l;
    return;
  }
  snprintf(about.why, sizeof about.why,
           "%.300s lacks functions with sizes of 64 bits, which version 12 has",
           about.path);
  about.path[0] = about.version[0] = '\0';
}

/* NULL: there is none, or one too old for sizes of 64 bits. */
static const library *get_library(void) {
  pthread_mutex_lock(&lock);
  if (!tried) try_library();
  tried = true;
  pthread_mutex_unlock(&lock);
  return opened.gemm != NULL ? &opened : NULL;
}

void tps_cublas_look(tps_library_info *out) {
  get_library();
  *out = about;
}

/* ---- the device's handle ------------------------------------------------- */

static int unsupported(tps_error *err) {
  return tps_fail(err, TPS_NOT_SUPPORTED, "no cuBLAS for this product");
}

/* Made at the first product; a capture that this thread has going on does not
 * hear of the memory that this takes. */
static int make_handle(tps_cuda_device *self, const library *l,
                       tps_error *err) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  handle_t handle = NULL;
  if (self->cublas != NULL) return 0;
  cudaThreadExchangeStreamCaptureMode(&mode);
  int status = l->create(&handle);
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (status != STATUS_OK) return unsupported(err);
  self->cublas = handle;
  return 0;
}

void tps_cuda_product_close(tps_cuda_device *self) {
  const library *l = self->cublas != NULL ? get_library() : NULL;
  if (l != NULL) l->destroy(self->cublas);
  self->cublas = NULL;
}

/* ---- the product --------------------------------------------------------- */

static bool type_of(int dtype, int *out) {
  switch (dtype) {
  case TPS_FLOAT16: *out = TYPE_16F; return true;
  case TPS_BFLOAT16: *out = TYPE_16BF; return true;
  case TPS_FLOAT32: *out = TYPE_32F; return true;
  case TPS_FLOAT64: *out = TYPE_64F; return true;
  default: return false;
  }
}

static const void *at(const tps_matrix *m) {
  return (const void *)(uintptr_t)m->address;
}

/* Matrices by columns are what cuBLAS knows: by rows c is the transpose of one
 * such, and that is the product of the transposes in the other order. */
static int call(const library *l, handle_t handle, const tps_product *p,
                int from, int to) {
  float alpha32 = (float)p->alpha, beta32 = (float)p->beta;
  bool wide = to == TYPE_64F;
  const void *alpha = wide ? (const void *)&p->alpha : &alpha32;
  const void *beta = wide ? (const void *)&p->beta : &beta32;
  return l->gemm(handle, p->b.transposed ? OP_TRANSPOSED : OP_PLAIN,
                 p->a.transposed ? OP_TRANSPOSED : OP_PLAIN, p->n, p->m, p->k,
                 alpha, at(&p->b), from, p->b.row, p->b.step, at(&p->a), from,
                 p->a.row, p->a.step, beta, (void *)(uintptr_t)p->c.address, to,
                 p->c.row, p->c.step, p->batch,
                 wide ? COMPUTE_64F : COMPUTE_32F, ALGORITHM_DEFAULT);
}

static int answer(int status, tps_error *err) {
  switch (status) {
  case STATUS_OK: return 0;
  case STATUS_NOT_INITIALIZED:
  case STATUS_ALLOC_FAILED:
  case STATUS_ARCH_MISMATCH:
  case STATUS_NOT_SUPPORTED: return unsupported(err);
  default: break;
  }
  cudaError_t e = cudaGetLastError();
  return tps_cuda_fail(err, (int)(e != cudaSuccess ? e : cudaErrorUnknown),
                       "cublasGemmStridedBatchedEx_64 (status %d)", status);
}

bool tps_cuda_can_multiply(tps_device *device, const tps_product *p) {
  int from, to;
  (void)device;
  return p->a.dtype == p->b.dtype && type_of(p->a.dtype, &from) &&
         type_of(p->c.dtype, &to) && get_library() != NULL;
}

int tps_cuda_multiply(tps_device *device, const tps_product *p,
                      tps_device_stream *stream, tps_op *op, tps_error *err) {
  tps_cuda_device *self = tps_cuda(device);
  int from = TYPE_32F, to = TYPE_32F;
  const library *l = get_library();
  if (l == NULL || !type_of(p->a.dtype, &from) || !type_of(p->c.dtype, &to))
    return unsupported(err);
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  pthread_mutex_lock(&self->product_lock);
  code = make_handle(self, l, err);
  if (code == 0) {
    tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
    int status = l->set_stream(self->cublas, (cudaStream_t)stream);
    if (status == STATUS_OK) status = call(l, self->cublas, p, from, to);
    code = answer(status, err);
    tps_cuda_times_end(device, span, stream, code == 0);
  }
  pthread_mutex_unlock(&self->product_lock);
  return code;
}
