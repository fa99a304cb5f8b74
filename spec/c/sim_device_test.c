/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The simulated device below Lua: its address space, its environment, several
 * threads on one device, one worker for several streams, ends in mid-flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/device.h"
#include "sim/memory.h"
#include "sim/queue.h"

/* --- the address space -------------------------------------------------------
 */

static tps_sim_space *new_space(uint64_t total) {
  tps_sim_space *space;
  tps_error err;
  assert_int_equal(tps_sim_space_new(total, &space, &err), 0);
  return space;
}

static tps_sim_allocation *allocate(tps_sim_space *space, uint64_t bytes) {
  tps_sim_allocation *memory;
  tps_error err;
  int code =
      tps_sim_allocate(space, bytes, TPS_SIM_DEVICE_MEMORY, &memory, &err);
  assert_int_equal(code, 0);
  return memory;
}

static void finds_by_address(void **state) {
  (void)state;
  tps_sim_space *space = new_space(1 << 20);
  tps_sim_allocation *a = allocate(space, 100), *b = allocate(space, 7);
  assert_int_equal(a->base % 256, 0);
  assert_int_equal(b->base % 256, 0);
  assert_true(b->base - (a->base + a->size) >= 512);
  assert_ptr_equal(tps_sim_find(space, a->base + 99), a);
  assert_null(tps_sim_find(space, a->base + 100));
  assert_null(tps_sim_find(space, 0));
  assert_ptr_equal(tps_sim_find_base(space, b->base), b);
  assert_null(tps_sim_find_base(space, b->base + 1));
  assert_ptr_equal(tps_sim_find_nearest(space, a->base + 101), a);
  assert_ptr_equal(tps_sim_find_nearest(space, b->base - 1), b);
  tps_sim_space_destroy(space);
}

static void remembers_the_dead(void **state) {
  (void)state;
  tps_sim_space *space = new_space(1 << 20);
  tps_sim_allocation *a = allocate(space, 100);
  uint64_t base = a->base;
  tps_sim_free(space, a, "script.lua", 12);
  tps_sim_space_reclaim(space);
  tps_sim_allocation *dead = tps_sim_find(space, base + 50);
  assert_ptr_equal(dead, a);
  assert_false(dead->live);
  assert_string_equal(dead->free_source, "script.lua");
  assert_int_equal(dead->free_line, 12);
  assert_null(tps_sim_find_base(space, base));
  assert_true(allocate(space, 100)->base > base); /* never reused */
  tps_sim_space_destroy(space);
}

static void counts_bytes(void **state) {
  (void)state;
  tps_sim_space *space = new_space(1 << 20);
  uint64_t left, total;
  tps_sim_allocation *a = allocate(space, 1000), *b;
  tps_sim_space_info(space, &left, &total);
  assert_int_equal(total, 1 << 20);
  assert_int_equal(left, (1 << 20) - 1024);
  tps_error err;
  assert_int_equal(
      tps_sim_allocate(space, 1 << 20, TPS_SIM_DEVICE_MEMORY, &b, &err),
      TPS_OUT_OF_MEMORY);
  assert_string_equal(err.message, "out of memory: 1048576 bytes asked for, "
                                   "1047552 free of 1048576");
  assert_int_equal(
      tps_sim_allocate(space, UINT64_MAX, TPS_SIM_DEVICE_MEMORY, &b, &err),
      TPS_OUT_OF_MEMORY);
  assert_int_equal(tps_sim_allocate_ahead(space, 1 << 20, TPS_SIM_DEVICE_MEMORY,
                                          1024, &b, &err),
                   0);
  assert_int_equal(tps_sim_allocate(space, 4096, TPS_SIM_PINNED, &b, &err), 0);
  tps_sim_free(space, a, "", 0);
  tps_sim_space_destroy(space);
}

static void zeroes_recycled_memory(void **state) {
  (void)state;
  tps_sim_space *space = new_space(UINT64_C(1) << 30);
  static const unsigned char zeros[256];
  for (int i = 0; i < 20000; i++) {
    tps_sim_allocation *a = allocate(space, 256);
    assert_memory_equal(a->host, zeros, 256);
    memset(a->host, 0xff, 256);
    tps_sim_free(space, a, "", 0);
    if (tps_sim_space_is_overfull(space)) tps_sim_space_reclaim(space);
  }
  tps_sim_space_destroy(space);
}

/* Another allocation at the same address, with the old bytes; what runs may still
 * look at the old one. */
static void reuses_with_an_odd_seed(void **state) {
  (void)state;
  tps_sim_space *space = new_space(1 << 20);
  uint64_t left, total;
  tps_sim_space_seed(space, 5);
  tps_sim_allocation *other = allocate(space, 400);
  tps_sim_allocation *a = allocate(space, 300);
  memset(a->host, 42, 300);
  tps_sim_free(space, a, "script.lua", 12);
  uint64_t epoch = tps_sim_space_epoch(space);
  assert_true(allocate(space, 200)->base != a->base);
  tps_sim_allocation *b = allocate(space, 310);
  assert_ptr_not_equal(b, a);
  assert_int_equal(b->base, a->base);
  assert_int_equal(b->size, 310);
  assert_int_equal(b->host[299], 42);
  assert_ptr_equal(tps_sim_find(space, b->base + 309), b);
  assert_ptr_equal(tps_sim_find(space, other->base + 399), other);
  assert_true(b->live);
  tps_sim_space_reclaim_before(space, epoch);
  assert_false(a->live);
  assert_string_equal(a->free_source, "script.lua");
  tps_sim_space_info(space, &left, &total);
  assert_int_equal(left, (1 << 20) - 512 - 256 - 512);
  tps_sim_free(space, b, "", 0);
  tps_sim_space_info(space, &left, &total);
  assert_int_equal(left, (1 << 20) - 512 - 256);
  tps_sim_space_destroy(space);
}

static void reuses_for_long(void **state) {
  (void)state;
  tps_sim_space *space = new_space(UINT64_C(1) << 30);
  tps_sim_space_seed(space, 7);
  uint64_t first = 0;
  for (uint64_t i = 0; i < 20000; i++) {
    tps_sim_allocation *a = allocate(space, 70000 + i % 200);
    if (first == 0) first = a->base;
    assert_true(a->base - first < (UINT64_C(16) << 20));
    assert_ptr_equal(tps_sim_find_base(space, a->base), a);
    memset(a->host, 0xff, a->size);
    tps_sim_free(space, a, "", 0);
    if (tps_sim_space_is_overfull(space)) tps_sim_space_reclaim(space);
  }
  tps_sim_space_destroy(space);
}

static void never_reuses_with_an_even_seed(void **state) {
  (void)state;
  static const unsigned char zeros[300];
  tps_sim_space *space = new_space(1 << 20);
  tps_sim_space_seed(space, 6);
  tps_sim_allocation *a = allocate(space, 300);
  assert_memory_not_equal(a->host, zeros, 300);
  tps_sim_free(space, a, "", 0);
  assert_true(allocate(space, 300)->base > a->base);
  tps_sim_space_destroy(space);
}

static void keeps_what_runs_may_see(void **state) {
  (void)state;
  tps_sim_space *space = new_space(UINT64_C(1) << 32);
  uint64_t epoch = tps_sim_space_epoch(space);
  tps_sim_allocation *large = allocate(space, UINT64_C(128) << 20);
  large->host[0] = 42;
  tps_sim_free(space, large, "", 0);
  tps_sim_space_reclaim_before(space, epoch);
  assert_int_equal(large->host[0], 42);
  tps_sim_space_reclaim(space);
  assert_null(large->host);
  tps_sim_space_destroy(space);
}

static void *churn(void *argument) {
  tps_sim_space *space = argument;
  for (int i = 0; i < 3000; i++) {
    tps_sim_allocation *a = allocate(space, 64 + (uint64_t)i % 5000);
    if (tps_sim_find(space, a->base + 10) != a) return "not found";
    tps_sim_free(space, a, "", 0);
  }
  return NULL;
}

static void serves_threads(void **state) {
  (void)state;
  tps_sim_space *space = new_space(UINT64_C(1) << 32);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, space);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(threads[i], &result);
    assert_null(result);
  }
  tps_sim_space_destroy(space);
}

/* --- the device
 * ---------------------------------------------------------------- */

#define BODY                                                                   \
  "{ .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<2>;\n"                   \
  "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd2, %rd1;\n"

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry empty(.param .u64 p) { ret; }\n"
    ".visible .entry inc(.param .u64 p)\n" BODY
    "atom.global.add.u32 %r1, [%rd2], 1; ret; }\n"
    ".visible .entry set(.param .u64 p)\n" BODY
    "mov.u32 %r1, 1; st.volatile.global.u32 [%rd2], %r1; ret; }\n"
    ".visible .entry spin(.param .u64 p)\n" BODY
    "again: ld.volatile.global.u32 %r1, [%rd2];\n"
    "setp.eq.u32 %p1, %r1, 0; @%p1 bra again; ret; }\n"
    ".visible .entry forever(.param .u64 p)\n" BODY
    "again: ld.volatile.global.u32 %r1, [%rd2]; bra again; }\n"
    ".visible .entry wild(.param .u64 p)\n" BODY
    "mov.u64 %rd3, 64; mov.u32 %r1, 1; st.global.u32 [%rd3], %r1; ret; }\n";

typedef struct rig {
  tps_device *device;
  const tps_device_face *face;
  tps_device_module *module;
} rig;

static void open_rig(rig *r, int ordinal) {
  tps_error err;
  assert_int_equal(tps_sim_device_open(ordinal, &r->device, &err), 0);
  r->face = r->device->face;
  int code = r->face->module_load(r->device, TPS_IMAGE_PTX, ptx, sizeof ptx - 1,
                                  NULL, &r->module, &err);
  if (code != 0) fail_msg("%s", err.message);
}

static void close_rig(rig *r) {
  r->face->module_unload(r->device, r->module);
  r->face->close(r->device);
}

static tps_device_stream *new_stream(rig *r, int priority) {
  tps_device_stream *stream;
  int effective;
  tps_error err;
  assert_int_equal(
      r->face->stream_create(r->device, priority, 0, &stream, &effective, &err),
      0);
  return stream;
}

static int launch(rig *r, const char *name, unsigned blocks,
                  tps_device_stream *stream, uint64_t address, tps_error *err) {
  tps_device_kernel *kernel;
  int code = r->face->kernel_find(r->device, r->module, name, &kernel, err);
  if (code != 0) return code;
  void *argv[] = {&address};
  tps_launch shape = {.grid = {blocks, 1, 1},
                      .block = {32, 1, 1},
                      .params = &address,
                      .param_bytes = sizeof address,
                      .argv = argv,
                      .argc = 1};
  tps_op *op = tps_op_new();
  code = r->face->launch(r->device, kernel, &shape, stream, op, err);
  tps_op_unref(op);
  return code;
}

static uint64_t new_memory(rig *r, uint64_t bytes, tps_device_stream *stream) {
  uint64_t address = 0;
  tps_error err;
  tps_op *op = tps_op_new();
  assert_int_equal(
      r->face->memory_allocate(r->device, bytes, stream, op, &address, &err),
      0);
  tps_op_unref(op);
  return address;
}

static int free_memory(rig *r, uint64_t address, tps_device_stream *stream,
                       tps_error *err) {
  tps_op *op = tps_op_new();
  int code = r->face->memory_free(r->device, address, stream, op, err);
  tps_op_unref(op);
  return code;
}

static int wait_for(rig *r, tps_device_stream *stream, tps_error *err) {
  return r->face->stream_synchronize(r->device, stream, UINT64_C(20000000000),
                                     err);
}

/* The 32 bits at `address`, read in the order of `stream`. */
static uint32_t peek(rig *r, uint64_t address, tps_device_stream *stream) {
  void *host;
  uint64_t pinned;
  tps_error err;
  tps_op *op = tps_op_new();
  assert_int_equal(
      r->face->memory_pin(r->device, 4, TPS_PIN_LOCKED, &host, &pinned, &err),
      0);
  assert_int_equal(
      r->face->copy(r->device, pinned, address, 4, stream, op, &err), 0);
  assert_int_equal(wait_for(r, stream, &err), 0);
  uint32_t value;
  memcpy(&value, host, 4);
  assert_int_equal(
      r->face->memory_unpin(r->device, TPS_PIN_LOCKED, host, pinned, &err), 0);
  tps_op_unref(op);
  return value;
}

static void refuses(const char *name, const char *value, const char *message) {
  tps_device *device;
  tps_error err;
  setenv(name, value, 1);
  int code = tps_sim_device_open(0, &device, &err);
  unsetenv(name);
  assert_int_equal(code, TPS_INVALID_VALUE);
  assert_non_null(strstr(err.message, message));
}

static void checks_the_environment(void **state) {
  (void)state;
  refuses("TPSTREAM_SIM_THREADS", "0",
          "TPSTREAM_SIM_THREADS is '0' (1 to 256 are allowed)");
  refuses("TPSTREAM_SIM_THREADS", "257", "1 to 256");
  refuses("TPSTREAM_SIM_THREADS", "two", "TPSTREAM_SIM_THREADS is 'two'");
  refuses("TPSTREAM_SIM_SEED", "-1", "TPSTREAM_SIM_SEED is '-1'");
  refuses("TPSTREAM_SIM_SEED", "18446744073709551616", "TPSTREAM_SIM_SEED");
  refuses("TPSTREAM_SIM_MEMORY", "4T", "TPSTREAM_SIM_MEMORY is '4T'");
  refuses("TPSTREAM_SIM_MEMORY", "1K", "1M to 1024G");
  refuses("TPSTREAM_SIM_CAPABILITY", "8.6", "8.0 and 9.0 are allowed");
  refuses("TPSTREAM_SIM_TIMEOUT", "0", "TPSTREAM_SIM_TIMEOUT is '0'");
  refuses("TPSTREAM_SIM_TIMEOUT", "1,5", "TPSTREAM_SIM_TIMEOUT is '1,5'");
  refuses("TPSTREAM_SIM_DEVICES", "65", "1 to 64 are allowed");
}

static void follows_the_environment(void **state) {
  (void)state;
  setenv("TPSTREAM_SIM_MEMORY", "64m", 1);
  setenv("TPSTREAM_SIM_CAPABILITY", "9.0", 1);
  setenv("TPSTREAM_SIM_DEVICES", "3", 1);
  assert_int_equal(tps_sim_device_count(), 3);
  rig r;
  open_rig(&r, 2);
  assert_int_equal(r.device->properties.total_memory, 64 << 20);
  assert_int_equal(r.device->properties.capability_major, 9);
  assert_int_equal(r.device->properties.shared_per_block_optin, 232448);
  tps_error err;
  assert_int_equal(tps_sim_device_open(3, &r.device, &err), TPS_INVALID_DEVICE);
  close_rig(&r);
  unsetenv("TPSTREAM_SIM_MEMORY");
  unsetenv("TPSTREAM_SIM_CAPABILITY");
  unsetenv("TPSTREAM_SIM_DEVICES");
}

typedef struct job {
  rig *rig;
  pthread_t thread;
  uint32_t value;
} job;

static void *work(void *argument) {
  job *j = argument;
  rig *r = j->rig;
  tps_error err;
  tps_device_stream *stream = new_stream(r, 0);
  uint64_t counter = new_memory(r, 4, stream);
  for (int i = 0; i < 200; i++) {
    launch(r, "inc", 3, stream, counter, &err);
    if (i % 10 == 0) free_memory(r, new_memory(r, 5000, stream), stream, &err);
    if (i % 50 == 0) wait_for(r, stream, &err);
  }
  j->value = peek(r, counter, stream);
  free_memory(r, counter, stream, &err);
  r->face->stream_destroy(r->device, stream);
  return NULL;
}

static void one_device_for_many_threads(void **state) {
  (void)state;
  rig r;
  open_rig(&r, 0);
  job jobs[6];
  for (int i = 0; i < 6; i++) {
    jobs[i].rig = &r;
    pthread_create(&jobs[i].thread, NULL, work, &jobs[i]);
  }
  for (int i = 0; i < 6; i++) pthread_join(jobs[i].thread, NULL);
  for (int i = 0; i < 6; i++) assert_int_equal(jobs[i].value, 200 * 3 * 32);
  close_rig(&r);
}

/* A kernel of the highest priority spins for one of the lowest. */
static void one_worker_serves_all_streams(void **state) {
  (void)state;
  setenv("TPSTREAM_SIM_THREADS", "1", 1);
  rig r;
  open_rig(&r, 0);
  unsetenv("TPSTREAM_SIM_THREADS");
  tps_device_stream *high = new_stream(&r, -5), *low = new_stream(&r, 0);
  uint64_t flag = new_memory(&r, 4, low);
  tps_error err;
  assert_int_equal(launch(&r, "spin", 20, high, flag, &err), 0);
  usleep(5000);
  assert_int_equal(r.face->stream_query(r.device, high, &err), TPS_NOT_READY);
  assert_int_equal(launch(&r, "set", 1, low, flag, &err), 0);
  assert_int_equal(wait_for(&r, high, &err), 0);
  r.face->stream_destroy(r.device, high);
  r.face->stream_destroy(r.device, low);
  close_rig(&r);
}

static void waits_across_devices(void **state) {
  (void)state;
  setenv("TPSTREAM_SIM_DEVICES", "2", 1);
  rig a, b;
  open_rig(&a, 0);
  open_rig(&b, 1);
  unsetenv("TPSTREAM_SIM_DEVICES");
  tps_error err;
  tps_device_stream *s = new_stream(&a, 0), *t = new_stream(&b, 0);
  uint64_t flag = new_memory(&a, 4, s);
  tps_device_event *event;
  tps_op *op = tps_op_new();
  assert_int_equal(a.face->event_create(a.device, 0, &event, &err), 0);
  assert_int_equal(launch(&a, "spin", 1, s, flag, &err), 0);
  assert_int_equal(a.face->event_record(a.device, event, s, op, &err), 0);
  assert_int_equal(b.face->stream_wait_event(b.device, t, event, op, &err), 0);
  assert_int_equal(b.face->event_record(b.device, event, t, op, &err),
                   TPS_INVALID_HANDLE);
  a.face->event_destroy(a.device, event); /* the wait keeps what it needs */
  assert_int_equal(launch(&b, "empty", 1, t, 0, &err), 0);
  assert_int_equal(b.face->stream_synchronize(b.device, t, 3000000, &err),
                   TPS_NOT_READY);
  tps_device_stream *u = new_stream(&a, 0);
  assert_int_equal(launch(&a, "set", 1, u, flag, &err), 0);
  assert_int_equal(wait_for(&b, t, &err), 0);
  tps_op_unref(op);
  close_rig(&b);
  close_rig(&a);
}

static void faults_after_the_stream_is_gone(void **state) {
  (void)state;
  rig r;
  open_rig(&r, 0);
  tps_error err;
  tps_device_stream *doomed = new_stream(&r, 0), *other = new_stream(&r, 0);
  uint64_t memory = new_memory(&r, 4, other);
  assert_int_equal(launch(&r, "forever", 40, other, memory, &err), 0);
  assert_int_equal(launch(&r, "wild", 1, doomed, memory, &err), 0);
  r.face->stream_destroy(r.device, doomed);
  assert_int_equal(wait_for(&r, other, &err), TPS_ILLEGAL_ADDRESS);
  char first[sizeof err.message];
  strcpy(first, err.message);
  assert_int_equal(free_memory(&r, memory, other, &err), TPS_ILLEGAL_ADDRESS);
  assert_string_equal(err.message, first);
  assert_int_equal(r.face->synchronize(r.device, &err), TPS_ILLEGAL_ADDRESS);
  r.face->stream_destroy(r.device, other);
  close_rig(&r);
}

/* A device that makes nothing but views forgets the oldest of them. */
static void forgets_old_views(void **state) {
  (void)state;
  rig r;
  open_rig(&r, 0);
  tps_error err;
  tps_sim_space *space = ((tps_sim_device *)r.device)->space;
  tps_array_shape shape = {.texel = {TPS_TEXEL_FLOAT, 32, 1}, .width = 100};
  tps_texture_source source = {.shape = shape};
  tps_sampling sampling = {0};
  assert_int_equal(r.face->array_create(r.device, &shape, &source.array, &err),
                   0);
  uint64_t first[2] = {0}, handle;
  for (int i = 0; i < 8000; i++) {
    assert_int_equal(
        i % 2 ? r.face->texture_create(r.device, &source, &sampling, &handle,
                                       &err)
              : r.face->surface_create(r.device, source.array, &handle, &err),
        0);
    if (i % 2) r.face->texture_destroy(r.device, handle);
    else r.face->surface_destroy(r.device, handle);
    if (i < 2) first[i] = handle;
  }
  assert_null(tps_sim_lookup(space, first[0]));
  assert_null(tps_sim_lookup(space, first[1]));
  r.face->array_destroy(r.device, source.array);
  close_rig(&r);
}

static void ends_a_launch_in_time(void **state) {
  (void)state;
  setenv("TPSTREAM_SIM_TIMEOUT", "0.05", 1);
  rig r;
  open_rig(&r, 0);
  unsetenv("TPSTREAM_SIM_TIMEOUT");
  tps_error err;
  tps_device_stream *stream = new_stream(&r, 0);
  uint64_t memory = new_memory(&r, 4, stream);
  assert_int_equal(launch(&r, "forever", 4, stream, memory, &err), 0);
  assert_int_equal(wait_for(&r, stream, &err), TPS_LAUNCH_TIMEOUT);
  assert_non_null(strstr(err.message, "TPSTREAM_SIM_TIMEOUT"));
  close_rig(&r);
}

static void closes_in_mid_flight(void **state) {
  (void)state;
  rig r;
  open_rig(&r, 0);
  tps_error err;
  tps_device_stream *stream = new_stream(&r, 0);
  uint64_t memory = new_memory(&r, 4, stream);
  assert_int_equal(launch(&r, "forever", 100, stream, memory, &err), 0);
  assert_int_equal(launch(&r, "forever", 100, stream, memory, &err), 0);
  usleep(2000);
  close_rig(&r);
}

/* The process ends with kernels that would run for ever. */
static void exits_in_mid_flight(void **state) {
  (void)state;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    rig r;
    open_rig(&r, 0);
    tps_error err;
    tps_device_stream *stream = new_stream(&r, 0);
    uint64_t memory = new_memory(&r, 4, stream);
    launch(&r, "forever", 100, stream, memory, &err);
    usleep(2000);
    exit(7);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_by_address),
      cmocka_unit_test(remembers_the_dead),
      cmocka_unit_test(counts_bytes),
      cmocka_unit_test(zeroes_recycled_memory),
      cmocka_unit_test(reuses_with_an_odd_seed),
      cmocka_unit_test(reuses_for_long),
      cmocka_unit_test(never_reuses_with_an_even_seed),
      cmocka_unit_test(keeps_what_runs_may_see),
      cmocka_unit_test(serves_threads),
      cmocka_unit_test(checks_the_environment),
      cmocka_unit_test(follows_the_environment),
      cmocka_unit_test(one_device_for_many_threads),
      cmocka_unit_test(one_worker_serves_all_streams),
      cmocka_unit_test(waits_across_devices),
      cmocka_unit_test(faults_after_the_stream_is_gone),
      cmocka_unit_test(forgets_old_views),
      cmocka_unit_test(ends_a_launch_in_time),
      cmocka_unit_test(closes_in_mid_flight),
      cmocka_unit_test(exits_in_mid_flight),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
