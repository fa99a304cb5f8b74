/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a test of the runtime has to itself: a context, a device that runs only what it
 * is told to and judges every call, four streams. */
#ifndef TPS_SPEC_WORLD_H
#define TPS_SPEC_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device.h"
#include "runtime/callback.h"
#include "runtime/event.h"
#include "runtime/memory.h"
#include "runtime/module.h"
#include "runtime/observer.h"

typedef struct world {
  tps_context *context;
  tps_device *device, *peer;
  fake_device *fake;
  tps_stream *s[4];
  tps_error err;
  int left; /* so often a wait asks whether it is interrupted, until it is */
} world;

static int next_ordinal[2]; /* by kind: each test has a device to itself */

#define OK(call) assert_int_equal(call, 0)

static inline int open_world(void **state, tps_device_kind kind) {
  char choice[32];
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  *state = w;
  snprintf(choice, sizeof choice, "%s:%d", kind == TPS_CUDA ? "cuda" : "sim",
           next_ordinal[kind]);
  OK(tps_context_new(choice, &w->context, &w->err));
  OK(tps_device_get(kind, next_ordinal[kind], &w->device, &w->err));
  OK(tps_device_get(kind, next_ordinal[kind] + 1, &w->peer, &w->err));
  next_ordinal[kind] += 2;
  w->fake = FAKE(w->device);
  for (int i = 0; i < 4; i++)
    OK(tps_stream_open(w->context, w->device, 0, false, &w->s[i], &w->err));
  return 0;
}

static inline int open_sim_world(void **state) {
  return open_world(state, TPS_SIM);
}

static inline int open_cuda_world(void **state) {
  return open_world(state, TPS_CUDA);
}

static inline int free_world(void **state) {
  free(*state);
  return 0;
}

/* A test whose state is a world: it ends with close_world. */
#define on_sim(test)                                                           \
  cmocka_unit_test_setup_teardown(test, open_sim_world, free_world)
#define on_cuda(test)                                                          \
  cmocka_unit_test_setup_teardown(test, open_cuda_world, free_world)

static inline void drop_streams(world *w) {
  for (int i = 0; i < 4; i++) {
    tps_stream_unref(w->s[i]);
    w->s[i] = NULL;
  }
}

static inline void check_clean(const world *w) {
  assert_int_equal(w->fake->crimes, 0);
  assert_int_equal(w->fake->live_streams, 0);
  assert_int_equal(w->fake->live_events, 0);
  assert_int_equal(w->fake->live_memories, 0);
  assert_int_equal(w->fake->live_modules, 0);
}

/* Everything ends in the order given by a Lua state: objects, then the context.
 */
static inline void close_world(world *w) {
  drop_streams(w);
  fake_finish(w->device);
  tps_context_close(w->context);
  fake_finish(w->device);
  check_clean(w);
  assert_int_equal(w->fake->live_pinned, 0);
}

static inline tps_memory *allocate(world *w, int i, uint64_t bytes) {
  tps_memory *memory = NULL;
  OK(tps_memory_allocate(w->s[i], bytes, &memory, &w->err));
  return memory;
}

static inline void use(world *w, int i, tps_memory *memory) {
  OK(tps_memory_fill(w->s[i], memory, 0, 7, 1, memory->bytes, &w->err));
}

static inline int count_down(void *data) {
  int *left = data;
  return --*left <= 0;
}

/* The question number `times` of its waits is answered by an interrupt. */
static inline void interrupt_at(world *w, int times) {
  w->left = times;
  w->context->interrupted = count_down;
  w->context->interrupted_data = &w->left;
}

/* ---- modules ------------------------------------------------------------- */

static inline int fake_image(void *data, tps_device *device,
                             tps_image_kind *kind, const void **bytes,
                             size_t *size, tps_error *err) {
  (void)device, (void)err;
  *kind = TPS_IMAGE_BINARY;
  *bytes = data;
  *size = strlen(data);
  return 0;
}

static inline tps_module *load(world *w, const char *names) {
  tps_image_source source = {
      .data = strdup(names), .image = fake_image, .release = free};
  tps_module *module = NULL;
  OK(tps_module_new(w->context, w->device, &source, &module, &w->err));
  return module;
}

static inline tps_kernel *kernel_of(world *w, tps_module *module,
                                    const char *name) {
  tps_kernel *kernel = NULL;
  OK(tps_kernel_find(module, name, &kernel, &w->err));
  return kernel;
}

static const tps_shape small = {.grid = {4, 1, 1}, .block = {64, 1, 1}};

static inline int launch(world *w, int i, tps_kernel *kernel,
                         tps_memory *memory) {
  tps_prepared prepared;
  int code = tps_launch_prepare(kernel, w->device, &small, &prepared, &w->err);
  if (code != 0) return code;
  tps_use use = {memory, 0, memory != NULL ? memory->bytes : 0, TPS_ACCESS_BOTH,
                 NULL};
  return tps_launch_run(&prepared, w->s[i], &use, memory != NULL, &w->err);
}

#endif
