/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Every function of the CUDA device's face against a real GPU. Exit status 77
 * where there is none (said on standard output). A fault spoils the process's
 * device for good, so the part that makes one runs in a process of its own:
 * this program again, with the argument "fault". Not one of ctest's programs,
 * whose names end in _test: it is built by hand and taken to a GPU.
 *
 *   cc -Isrc spec/c/cuda_device_gpu.c src/base/error.c \
 *      src/cuda/{device,event,kernel,memory,module,stream}.c \
 *      -I$CUDA/include $CUDA/lib64/libcudart_static.a -ldl -lrt -lpthread
 */
#include "device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static const char ptx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};\n"
    ".visible .entry nothing() { ret; }\n"
    /* y[i] = a*x[i] + y[i] */
    ".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y,\n"
    "                      .param .u32 n) {\n"
    "  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %d<4>;\n"
    "  ld.param.f32 %f0, [a]; ld.param.u64 %d0, [x];\n"
    "  ld.param.u64 %d1, [y]; ld.param.u32 %r0, [n];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "  setp.ge.u32 %p, %r4, %r0; @%p bra DONE;\n"
    "  mul.wide.u32 %d2, %r4, 4; add.u64 %d0, %d0, %d2;\n"
    "  add.u64 %d1, %d1, %d2; ld.global.f32 %f1, [%d0];\n"
    "  ld.global.f32 %f2, [%d1]; fma.rn.f32 %f3, %f0, %f1, %f2;\n"
    "  st.global.f32 [%d1], %f3;\nDONE: ret;\n}\n"
    /* runs for so many nanoseconds */
    ".visible .entry spin(.param .u64 ns) {\n"
    "  .reg .pred %p; .reg .b64 %d<4>;\n"
    "  ld.param.u64 %d0, [ns]; mov.u64 %d1, %globaltimer;\n"
    "AGAIN: mov.u64 %d2, %globaltimer; sub.u64 %d3, %d2, %d1;\n"
    "  setp.lt.u64 %p, %d3, %d0; @%p bra AGAIN; ret;\n}\n"
    ".visible .entry stray() {\n"
    "  .reg .b64 %d; .reg .b32 %r; mov.u64 %d, 16; mov.u32 %r, 1;\n"
    "  st.global.u32 [%d], %r; ret;\n}\n"
    ".visible .entry shared(.param .u64 out) {\n"
    "  .reg .b64 %d; ld.param.u64 %d, [out]; ret;\n}\n"
    ".visible .entry odd(.param .align 4 .b8 s[12], .param .u8 c) { ret; }\n";

static atomic_int checks, failures;
static _Thread_local tps_error err;
static tps_op op; /* the CUDA device looks at none of it */

#define CHECK(condition)                                                       \
  do {                                                                         \
    checks++;                                                                  \
    if (!(condition)) {                                                        \
      failures++;                                                              \
      printf("%s:%d: %s (last error: %d %s)\n", __FILE__, __LINE__,            \
             #condition, err.code, err.message);                               \
    }                                                                          \
  } while (0)

/* `call` must return `code`, and say `text` if it fails. */
#define FAILS(number, text, call)                                              \
  do {                                                                         \
    int got_ = (call);                                                         \
    CHECK(got_ == (number));                                                   \
    CHECK(err.code == (number) && strstr(err.message, text) != NULL);          \
  } while (0)

static tps_device *d;
static const tps_device_face *f;
static tps_device_module *module;

static tps_device_kernel *find(const char *name) {
  tps_device_kernel *kernel = NULL;
  CHECK(f->kernel_find(d, module, name, &kernel, &err) == 0);
  return kernel;
}

static tps_device_stream *new_stream(void) {
  tps_device_stream *s = NULL;
  int effective;
  CHECK(f->stream_create(d, 0, 0, &s, &effective, &err) == 0);
  return s;
}

static int launch(const char *name, uint32_t grid, uint32_t block, void **argv,
                  uint32_t argc, tps_device_stream *s) {
  tps_launch l = {
      .grid = {grid, 1, 1}, .block = {block, 1, 1}, .argv = argv, .argc = argc};
  return f->launch(d, find(name), &l, s, &op, &err);
}

static void spin(tps_device_stream *s, uint64_t ms) {
  uint64_t ns = ms * 1000000;
  void *argv[] = {&ns};
  CHECK(launch("spin", 1, 1, argv, 1, s) == 0);
}

static void wait_for(tps_device_stream *s) {
  CHECK(f->stream_synchronize(d, s, TPS_FOREVER, &err) == 0);
}

/* --- the parts
 * ---------------------------------------------------------------- */

static void test_properties(void) {
  const tps_device_properties *p = &d->properties;
  CHECK(d->kind == TPS_CUDA && d->ordinal == 0);
  CHECK(p->name[0] != '\0' && p->capability_major >= 7);
  CHECK(p->warp_size == 32 && p->multiprocessors > 0);
  CHECK(p->max_threads_per_block == 1024 && p->max_block[2] == 64);
  CHECK(p->max_grid[0] == 2147483647 && p->max_grid[1] == 65535);
  CHECK(p->shared_per_block == 49152 &&
        p->shared_per_block_optin >= p->shared_per_block);
  CHECK(p->total_memory > 0 && p->driver_version >= p->runtime_version);
  CHECK(strncmp(p->uuid, "GPU-", 4) == 0 && strlen(p->uuid) == 40);
  CHECK(p->priority_least == 0 && p->priority_greatest <= 0);
  tps_device *none = d;
  FAILS(TPS_INVALID_DEVICE, "999", tps_cuda_device_open(999, &none, &err));
  CHECK(none == NULL);
}

static void test_streams(void) {
  tps_device_stream *s = NULL, *legacy = f->default_stream(d);
  int effective = 7;
  CHECK(legacy != NULL && f->stream_handle(d, legacy) == 0);
  CHECK(f->stream_create(d, -100, 0, &s, &effective, &err) == 0);
  CHECK(effective == d->properties.priority_greatest);
  CHECK(f->stream_handle(d, s) != 0);
  CHECK(f->stream_query(d, s, &err) == 0);
  spin(s, 100);
  CHECK(f->stream_query(d, s, &err) == TPS_NOT_READY);
  CHECK(f->stream_synchronize(d, s, 0, &err) == TPS_NOT_READY);
  uint64_t start = tps_now_ns();
  CHECK(f->stream_synchronize(d, s, 10000000, &err) == TPS_NOT_READY);
  uint64_t took = tps_now_ns() - start;
  CHECK(took >= 10000000 && took < 30000000);
  wait_for(s);
  CHECK(f->stream_query(d, s, &err) == 0 &&
        f->stream_query(d, legacy, &err) == 0);
  spin(legacy, 20);
  CHECK(f->stream_query(d, legacy, &err) == TPS_NOT_READY);
  CHECK(f->stream_query(d, s, &err) == 0);
  wait_for(legacy);
  f->stream_destroy(d, s);
  CHECK(f->stream_create(d, 50, TPS_STREAM_BLOCKING, &s, &effective, &err) ==
        0);
  CHECK(effective == 0);
  spin(s, 20);
  CHECK(f->stream_query(d, legacy, &err) == TPS_NOT_READY); /* joins it */
  f->stream_destroy(d, s);
  CHECK(f->synchronize(d, &err) == 0);
}

static void test_events(void) {
  tps_device_stream *s = new_stream(), *t = new_stream();
  tps_device_event *a, *b, *plain;
  double ms = -1;
  CHECK(f->event_create(d, TPS_EVENT_TIMING, &a, &err) == 0);
  CHECK(f->event_create(d, TPS_EVENT_TIMING | TPS_EVENT_BLOCKING_SYNC, &b,
                        &err) == 0);
  CHECK(f->event_create(d, 0, &plain, &err) == 0);
  CHECK(f->event_handle(d, a) != 0);
  CHECK(f->event_query(d, a, &err) == 0); /* never recorded */
  FAILS(TPS_INVALID_HANDLE, "cudaEventElapsedTime",
        f->event_elapsed(d, a, plain, &ms, &err));
  CHECK(f->event_record(d, a, s, &op, &err) == 0);
  spin(s, 50);
  CHECK(f->event_record(d, b, s, &op, &err) == 0);
  CHECK(f->event_record(d, plain, s, &op, &err) == 0);
  CHECK(f->stream_wait_event(d, t, plain, &op, &err) == 0);
  CHECK(f->event_query(d, b, &err) == TPS_NOT_READY);
  CHECK(f->stream_query(d, t, &err) == TPS_NOT_READY);
  FAILS(TPS_NOT_READY, "", f->event_elapsed(d, a, b, &ms, &err));
  CHECK(f->event_synchronize(d, b, 5000000, &err) == TPS_NOT_READY);
  CHECK(f->event_synchronize(d, b, TPS_FOREVER, &err) == 0);
  CHECK(f->event_elapsed(d, a, b, &ms, &err) == 0 && ms >= 49 && ms < 80);
  CHECK(f->event_elapsed(d, b, a, &ms, &err) == 0 && ms <= -49);
  wait_for(t);
  CHECK(f->event_record(d, a, s, &op, &err) == 0);
  f->event_destroy(d, a);
  f->event_destroy(d, b);
  f->event_destroy(d, plain);
  f->stream_destroy(d, s);
  f->stream_destroy(d, t);
  CHECK(f->event_create(d, TPS_EVENT_INTERPROCESS, &a, &err) == 0);
  f->event_destroy(d, a);
}

/* Fills `count` elements in the middle of a buffer and looks at all of it. */
static void check_fill(tps_device_stream *s, unsigned width, uint64_t pattern,
                       uint64_t count) {
  uint64_t memory, pinned, bytes = width * (count + 2);
  unsigned char *host;
  CHECK(f->memory_allocate(d, bytes, s, &op, &memory, &err) == 0);
  CHECK(f->memory_pin(d, bytes, TPS_PIN_LOCKED, (void **)&host, &pinned,
                      &err) == 0);
  CHECK(memory % 256 == 0);
  CHECK(f->fill(d, memory, 0xee, 1, bytes, s, &op, &err) == 0);
  CHECK(f->fill(d, memory + width, pattern, width, count, s, &op, &err) == 0);
  CHECK(f->copy(d, pinned, memory, bytes, s, &op, &err) == 0);
  CHECK(f->memory_free(d, memory, s, &op, &err) == 0);
  wait_for(s);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < bytes; i++) {
    bool inside = i >= width && i < bytes - width;
    unsigned char want = (unsigned char)(pattern >> i % width * 8);
    wrong += host[i] != (inside ? want : 0xee);
  }
  CHECK(wrong == 0);
  CHECK(f->memory_unpin(d, TPS_PIN_LOCKED, host, pinned, &err) == 0);
}

/* Page-locked memory is filled like the device's. */
static void check_fill_pinned(tps_device_stream *s) {
  enum { COUNT = 5000 };
  uint64_t pinned, *host, wrong = 0, pattern = 0x0102030405060708;
  CHECK(f->memory_pin(d, COUNT * 8, TPS_PIN_LOCKED, (void **)&host, &pinned,
                      &err) == 0);
  CHECK(f->fill(d, pinned, pattern, 8, COUNT, s, &op, &err) == 0);
  wait_for(s);
  for (int i = 0; i < COUNT; i++) wrong += host[i] != pattern;
  CHECK(wrong == 0);
  CHECK(f->memory_unpin(d, TPS_PIN_LOCKED, host, pinned, &err) == 0);
}

static void test_memory(void) {
  tps_device_stream *s = new_stream();
  uint64_t left, after, total, a, b;
  CHECK(f->memory_info(d, &left, &total, &err) == 0);
  CHECK(left > 0 && left <= total);
  CHECK(f->memory_allocate(d, 1 << 28, s, &op, &a, &err) == 0);
  CHECK(f->memory_info(d, &after, &total, &err) == 0);
  CHECK(after + (1 << 28) <= left + (64 << 20));
  CHECK(f->memory_free(d, a, s, &op, &err) == 0);
  wait_for(s);
  CHECK(f->memory_info(d, &after, &total, &err) == 0);
  CHECK(after + (64 << 20) > left);
  FAILS(TPS_OUT_OF_MEMORY, "1125899906842624",
        f->memory_allocate(d, 1ull << 50, s, &op, &a, &err));
  CHECK(f->memory_allocate(d, total / 5 * 3, s, &op, &a, &err) == 0);
  FAILS(TPS_OUT_OF_MEMORY, "bytes",
        f->memory_allocate(d, total / 5 * 3, s, &op, &b, &err));
  CHECK(f->memory_free(d, a, s, &op, &err) == 0);
  CHECK(f->memory_allocate(d, total / 5 * 3, s, &op, &b, &err) == 0);
  CHECK(f->memory_free(d, b, s, &op, &err) == 0);
  FAILS(TPS_INVALID_VALUE, "cudaFreeAsync",
        f->memory_free(d, 0x1234500, s, &op, &err));
  for (unsigned width = 1; width <= 8; width *= 2)
    for (int k = 0; k < 4; k++) {
      static const uint64_t patterns[] = {
          0, 0x8899aabbccddeeff, 0x1234567812345678, 0x4242424242424242};
      check_fill(s, width, patterns[k], 1);
      check_fill(s, width, patterns[k], 1000003);
    }
  check_fill_pinned(s);
  CHECK(f->memory_allocate(d, 4096, s, &op, &a, &err) == 0);
  FAILS(TPS_INVALID_VALUE, "filling 1000000000000 bytes",
        f->fill(d, a, 1, 4, 250000000000, s, &op, &err));
  FAILS(TPS_INVALID_VALUE, "filling 1000000000000 bytes",
        f->fill(d, a, 1, 8, 125000000000, s, &op, &err));
  FAILS(TPS_INVALID_VALUE, "cudaMemcpyAsync",
        f->copy(d, a, a + 2048, 1ull << 40, s, &op, &err));
  CHECK(f->memory_free(d, a, s, &op, &err) == 0);
  wait_for(s);
  f->stream_destroy(d, s);
}

static void check_image_fails(tps_image_kind kind, const void *image,
                              size_t size, int code, const char *text) {
  tps_device_module *m = NULL;
  FAILS(code, text, f->module_load(d, kind, image, size, NULL, &m, &err));
  CHECK(m == NULL);
}

static void test_modules(void) {
  tps_device_module *m = NULL;
  char **names = NULL;
  size_t count = 0;
  uint64_t address, bytes;
  tps_device_kernel *k;
  CHECK(f->module_load(d, TPS_IMAGE_PTX, ptx, strlen(ptx), "saxpy", &m, &err) ==
        0);
  CHECK(f->module_kernels(d, m, &names, &count, &err) == 0 && count == 6);
  int seen = 0;
  for (size_t i = 0; i < count; i++) seen += strcmp(names[i], "saxpy") == 0;
  CHECK(seen == 1);
  free(names);
  CHECK(f->global_find(d, m, "table", &address, &bytes, &err) == 0);
  CHECK(bytes == 16 && address != 0);
  FAILS(TPS_NOT_FOUND, "'gone'",
        f->global_find(d, m, "gone", &address, &bytes, &err));
  FAILS(TPS_NOT_FOUND, "'gone'", f->kernel_find(d, m, "gone", &k, &err));
  f->module_unload(d, m);
  m = NULL;
  FAILS(TPS_NOT_FOUND, "'gone'",
        f->module_load(d, TPS_IMAGE_PTX, ptx, strlen(ptx), "gone", &m, &err));
  const char *no_kernel = ".version 8.0\n.target sm_75\n.address_size 64\n"
                          ".visible .global .u32 one;\n";
  CHECK(f->module_load(d, TPS_IMAGE_PTX, no_kernel, strlen(no_kernel), NULL, &m,
                       &err) == 0);
  CHECK(f->module_kernels(d, m, &names, &count, &err) == 0 && count == 0);
  free(names);
  f->module_unload(d, m);
  const char *newer = ".version 99.0\n.target sm_75\n.address_size 64\n"
                      ".visible .entry k() { ret; }\n";
  const char *bad = ".version 8.0\n.target sm_75\n.address_size 64\n"
                    ".visible .entry k() { frob.u32; ret; }\n";
  check_image_fails(TPS_IMAGE_PTX, ptx, 400, TPS_INVALID_PTX, "ptxas");
  check_image_fails(TPS_IMAGE_PTX, bad, strlen(bad), TPS_INVALID_PTX, "frob");
  check_image_fails(TPS_IMAGE_PTX, newer, strlen(newer),
                    TPS_UNSUPPORTED_PTX_VERSION, "");
  check_image_fails(TPS_IMAGE_PTX, "", 0, TPS_INVALID_IMAGE, "");
  check_image_fails(TPS_IMAGE_BINARY, "garbage, garbage", 16, TPS_INVALID_IMAGE,
                    "neither");
  check_image_fails(TPS_IMAGE_BINARY, "\177ELF\2\1\1cut off here", 19,
                    TPS_INVALID_IMAGE, "cut off");
}

static void test_kernels(void) {
  tps_kernel_desc desc = {0};
  tps_kernel_attributes at;
  int blocks = -1;
  CHECK(f->kernel_params(d, find("saxpy"), &desc, &err) == 0);
  CHECK(desc.param_count == 4 && desc.param_bytes == 28);
  CHECK(desc.params[0].size == 4 && desc.params[1].offset == 8 &&
        desc.params[3].offset == 24 && desc.params[1].align == 8 &&
        strcmp(desc.params[1].type, ".b64") == 0);
  for (uint32_t i = 0; i < desc.param_count; i++) free(desc.params[i].type);
  free(desc.params);
  CHECK(f->kernel_params(d, find("odd"), &desc, &err) == 0);
  CHECK(desc.param_count == 2 && desc.params[0].size == 12 &&
        desc.params[0].align == 4 && desc.params[1].offset == 12 &&
        desc.params[1].size == 1 && desc.param_bytes == 13);
  for (uint32_t i = 0; i < desc.param_count; i++) free(desc.params[i].type);
  free(desc.params);
  CHECK(f->kernel_params(d, find("nothing"), &desc, &err) == 0);
  CHECK(desc.param_count == 0);
  CHECK(f->kernel_attributes(d, find("saxpy"), &at, &err) == 0);
  CHECK(at.registers > 0 && at.max_threads == 1024 && at.shared_bytes == 0);
  CHECK(f->kernel_occupancy(d, find("saxpy"), 256, 0, &blocks, &err) == 0);
  CHECK(blocks > 1);
  int64_t most = d->properties.shared_per_block_optin;
  CHECK(f->kernel_opt_in_shared(d, find("shared"), most, &err) == 0);
  CHECK(f->kernel_attributes(d, find("shared"), &at, &err) == 0);
  CHECK(at.max_dynamic_shared == most);
  FAILS(TPS_INVALID_VALUE, "dynamic shared",
        f->kernel_opt_in_shared(d, find("shared"), most + 1, &err));
}

static void test_launch(void) {
  enum { N = 100000 };
  tps_device_stream *s = new_stream();
  uint64_t x, y, pinned;
  float *host, a = 2.5f;
  int n = N, wrong = 0;
  CHECK(f->memory_pin(d, N * 4, TPS_PIN_LOCKED, (void **)&host, &pinned,
                      &err) == 0);
  CHECK(f->memory_allocate(d, N * 4, s, &op, &x, &err) == 0);
  CHECK(f->memory_allocate(d, N * 4, s, &op, &y, &err) == 0);
  for (int i = 0; i < N; i++) host[i] = (float)i;
  CHECK(f->copy(d, x, pinned, N * 4, s, &op, &err) == 0);
  CHECK(f->fill(d, y, 0x3f800000, 4, N, s, &op, &err) == 0); /* 1.0 */
  void *argv[] = {&a, &x, &y, &n};
  CHECK(launch("saxpy", (N + 255) / 256, 256, argv, 4, s) == 0);
  CHECK(f->copy(d, pinned, y, N * 4, s, &op, &err) == 0);
  wait_for(s);
  for (int i = 0; i < N; i++) wrong += host[i] != 2.5f * (float)i + 1;
  CHECK(wrong == 0);
  y = pinned; /* page-locked memory as an argument */
  CHECK(launch("saxpy", (N + 255) / 256, 256, argv, 4, s) == 0);
  wait_for(s);
  for (int i = 0; i < N; i++) wrong += host[i] != 5.0f * (float)i + 1;
  CHECK(wrong == 0);
  f->stream_destroy(d, s);
}

static void test_launch_shapes(void) {
  tps_device_stream *s = new_stream();
  uint64_t out = 0;
  void *argv[] = {&out};
  tps_launch l = {.grid = {16, 1, 1},
                  .block = {32, 1, 1},
                  .argv = argv,
                  .argc = 1,
                  .shared = 49153};
  tps_device_kernel *nothing = find("nothing");
  FAILS(TPS_INVALID_VALUE, "cudaLaunchKernelExC",
        f->launch(d, nothing, &l, s, &op, &err));
  l.shared = 200000;
  CHECK(f->launch(d, find("shared"), &l, s, &op, &err) == 0); /* opted in */
  l.shared = 0;
  l.cooperative = true;
  CHECK(f->launch(d, nothing, &l, s, &op, &err) == 0);
  l.grid[0] = 1000000;
  FAILS(TPS_COOPERATIVE_LAUNCH_TOO_LARGE, "",
        f->launch(d, nothing, &l, s, &op, &err));
  l.cooperative = false;
  l.grid[0] = 16;
  l.block[0] = 1025;
  FAILS(TPS_INVALID_VALUE, "", f->launch(d, nothing, &l, s, &op, &err));
  l.block[0] = 32;
  if (d->properties.clusters) {
    l.cluster[0] = l.cluster[1] = l.cluster[2] = 1;
    l.cluster[0] = 2;
    CHECK(f->launch(d, nothing, &l, s, &op, &err) == 0);
    l.cluster[0] = 16; /* more than is portable */
    CHECK(f->launch(d, nothing, &l, s, &op, &err) == 0);
    l.cluster[0] = 3;
    CHECK(f->launch(d, nothing, &l, s, &op, &err) != 0);
  }
  wait_for(s);
  f->stream_destroy(d, s);
}

/* Nothing but what may wait does, behind a kernel that runs for 300 ms. */
static void test_no_waiting(void) {
  tps_device_stream *s = new_stream(), *t, *u = new_stream();
  tps_device_event *e;
  uint64_t a, b, c, pinned, start;
  void *host;
  CHECK(f->memory_allocate(d, 1 << 20, s, &op, &b, &err) == 0);
  wait_for(s);
  spin(s, 300);
  start = tps_now_ns();
  t = new_stream();
  CHECK(f->memory_allocate(d, 1 << 20, s, &op, &a, &err) == 0);
  CHECK(f->memory_allocate(d, 1 << 20, t, &op, &c, &err) == 0);
  CHECK(f->fill(d, a, 1, 4, 1 << 18, s, &op, &err) == 0);
  CHECK(f->copy(d, a, b, 1 << 20, s, &op, &err) == 0);
  CHECK(f->memory_free(d, b, s, &op, &err) == 0);
  CHECK(f->memory_free(d, a, s, &op, &err) == 0);
  CHECK(f->event_create(d, 0, &e, &err) == 0);
  CHECK(f->event_record(d, e, s, &op, &err) == 0);
  CHECK(f->stream_wait_event(d, u, e, &op, &err) == 0);
  f->event_destroy(d, e);
  /* Memory being freed behind the kernel is not given to another stream. */
  CHECK(f->memory_allocate(d, 1 << 20, t, &op, &a, &err) == 0);
  CHECK(f->fill(d, a, 1, 4, 1 << 18, t, &op, &err) == 0);
  wait_for(t);
  CHECK(launch("nothing", 1, 1, NULL, 0, t) == 0);
  wait_for(t);
  CHECK(tps_now_ns() - start < 200000000);
  uint64_t before = tps_now_ns();
  CHECK(f->memory_pin(d, 1 << 20, TPS_PIN_LOCKED, &host, &pinned, &err) == 0);
  CHECK(tps_now_ns() - before < 100000000);
  f->stream_destroy(d, s); /* its work goes on */
  CHECK(f->stream_query(d, u, &err) == TPS_NOT_READY);
  CHECK(tps_now_ns() - start < 300000000);
  wait_for(u);
  CHECK(tps_now_ns() - start >= 290000000);
  CHECK(f->memory_unpin(d, TPS_PIN_LOCKED, host, pinned, &err) == 0);
  f->stream_destroy(d, t);
  f->stream_destroy(d, u);
}

static void *other_thread(void *unused) {
  (void)unused;
  uint64_t a;
  tps_device_stream *s = new_stream();
  for (int i = 0; i < 200; i++) {
    CHECK(f->memory_allocate(d, 1 << 16, s, &op, &a, &err) == 0);
    CHECK(launch("nothing", 1, 1, NULL, 0, s) == 0);
    CHECK(f->memory_free(d, a, s, &op, &err) == 0);
  }
  wait_for(s);
  f->stream_destroy(d, s);
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, other_thread, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void test_peer(void) {
  tps_device *other = NULL;
  CHECK(f->can_access_peer(d, d));
  if (tps_cuda_device_count(&err) < 2) return;
  CHECK(tps_cuda_device_open(1, &other, &err) == 0);
  tps_device_stream *s = new_stream(), *t;
  int effective, n = 1000, wrong = 0;
  uint64_t a, b, x, pinned;
  float *host, scale = 2;
  CHECK(f->stream_create(other, 0, 0, &t, &effective, &err) == 0);
  CHECK(f->memory_allocate(d, 4000, s, &op, &a, &err) == 0);
  CHECK(f->memory_allocate(d, 4000, s, &op, &x, &err) == 0);
  CHECK(f->memory_allocate(other, 4000, t, &op, &b, &err) == 0);
  CHECK(f->memory_pin(d, 4000, TPS_PIN_LOCKED, (void **)&host, &pinned, &err) ==
        0);
  CHECK(f->fill(d, a, 0x40400000, 4, 1000, s, &op, &err) == 0); /* 3.0 */
  CHECK(f->fill(d, x, 0x3f800000, 4, 1000, s, &op, &err) == 0);
  CHECK(f->fill(other, b, 0, 1, 4000, t, &op, &err) == 0);
  CHECK(f->stream_synchronize(other, t, TPS_FOREVER, &err) == 0);
  CHECK(f->copy_peer(d, b, other, a, d, 4000, s, &op, &err) == 0);
  wait_for(s);
  bool can = f->can_access_peer(d, other);
  CHECK(can == f->can_access_peer(d, other));
  printf("peer access: %s\n", can ? "yes" : "no");
  if (can) { /* b = 2 * 1 + 3, by device 0 in device 1's memory */
    void *argv[] = {&scale, &x, &b, &n};
    CHECK(launch("saxpy", 4, 256, argv, 4, s) == 0);
    wait_for(s);
  }
  CHECK(f->copy(other, pinned, b, 4000, t, &op, &err) == 0);
  CHECK(f->stream_synchronize(other, t, TPS_FOREVER, &err) == 0);
  for (int i = 0; i < 1000; i++) wrong += host[i] != (can ? 5.0f : 3.0f);
  CHECK(wrong == 0);
  tps_device_event *e;
  CHECK(f->event_create(d, 0, &e, &err) == 0);
  spin(s, 50);
  CHECK(f->event_record(d, e, s, &op, &err) == 0);
  CHECK(f->stream_wait_event(other, t, e, &op, &err) == 0);
  CHECK(f->stream_query(other, t, &err) == TPS_NOT_READY);
  CHECK(f->stream_synchronize(other, t, TPS_FOREVER, &err) == 0);
  CHECK(f->stream_query(d, s, &err) == 0);
  f->close(other);
}

/* After an illegal address every function gives that code. */
static void test_fault(void) {
  tps_device_stream *s = new_stream(), *t = new_stream(), *u = NULL;
  tps_device_event *e, *e2 = NULL;
  tps_device_kernel *k = find("nothing");
  tps_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  uint64_t a, b, pinned;
  int effective, code = TPS_ILLEGAL_ADDRESS;
  tps_device_module *m;
  void *host;
  CHECK(f->event_create(d, 0, &e, &err) == 0);
  CHECK(f->memory_allocate(d, 4096, s, &op, &a, &err) == 0);
  CHECK(launch("stray", 1, 1, NULL, 0, s) == 0);
  FAILS(code, "illegal memory access",
        f->stream_synchronize(d, s, TPS_FOREVER, &err));
  CHECK(f->stream_query(d, t, &err) == code);
  CHECK(f->stream_create(d, 0, 0, &u, &effective, &err) == code);
  CHECK(f->stream_wait_event(d, t, e, &op, &err) == code);
  CHECK(f->event_create(d, 0, &e2, &err) == code);
  CHECK(f->event_record(d, e, t, &op, &err) == code);
  CHECK(f->event_query(d, e, &err) == code);
  CHECK(f->event_synchronize(d, e, 1000, &err) == code);
  CHECK(f->memory_allocate(d, 4096, t, &op, &b, &err) == code);
  CHECK(f->fill(d, a, 0, 1, 4096, t, &op, &err) == code);
  CHECK(f->fill(d, a, 0x12, 4, 1024, t, &op, &err) == code);
  CHECK(f->copy(d, a, a, 16, t, &op, &err) == code);
  CHECK(f->memory_free(d, a, t, &op, &err) == code);
  CHECK(f->memory_pin(d, 4096, TPS_PIN_LOCKED, &host, &pinned, &err) == code);
  CHECK(f->memory_info(d, &a, &b, &err) == code);
  CHECK(f->module_load(d, TPS_IMAGE_PTX, ptx, strlen(ptx), NULL, &m, &err) ==
        code);
  CHECK(f->launch(d, k, &l, t, &op, &err) == code);
  CHECK(f->synchronize(d, &err) == code);
  f->event_destroy(d, e);
  f->stream_destroy(d, s);
  f->stream_destroy(d, t);
  f->module_unload(d, module);
}

static int report(const char *part) {
  printf("cuda device%s: %d checks, %d failures\n", part, checks, failures);
  fflush(stdout);
  return failures != 0;
}

/* The part that faults, first: this process holds memory later. */
static int run_fault(char *program) {
  int status = 1;
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", program, "fault", (char *)NULL);
    _exit(127);
  }
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
  bool fault = argc > 1 && strcmp(argv[1], "fault") == 0;
  int status = fault ? 0 : run_fault(argv[0]);
  if (status == 77) return 77;
  if (tps_cuda_device_count(&err) == 0) {
    printf("skipped: %s\n", err.message);
    return 77;
  }
  CHECK(tps_cuda_device_open(0, &d, &err) == 0);
  if (d == NULL) return report("");
  f = d->face;
  CHECK(f->module_load(d, TPS_IMAGE_PTX, ptx, strlen(ptx), "nothing", &module,
                       &err) == 0);
  if (module == NULL) return report("");
  if (fault) {
    test_fault();
    return report(" (fault)");
  }
  static void (*const tests[])(void) = {
      test_properties, test_streams, test_events, test_memory,
      test_modules,    test_kernels, test_launch, test_launch_shapes,
      test_no_waiting, test_threads, test_peer};
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) tests[i]();
  f->module_unload(d, module);
  f->close(d);
  return report("") || status != 0;
}
