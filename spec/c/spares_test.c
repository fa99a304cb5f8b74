/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory that is handed out again on the stream it was freed on, on a device that
 * allows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device.h"
#include "runtime/memory.h"

#define OK(call) assert_int_equal(call, 0)

typedef struct world {
  tps_context *context;
  tps_device *device;
  fake_device *fake;
  tps_stream *a, *b;
  tps_error err;
} world;

static void open_world(world *w, int ordinal) {
  char choice[32];
  memset(w, 0, sizeof *w);
  snprintf(choice, sizeof choice, "cuda:%d", ordinal);
  OK(tps_context_new(choice, &w->context, &w->err));
  OK(tps_device_get(TPS_CUDA, ordinal, &w->device, &w->err));
  w->fake = FAKE(w->device);
  w->device->recycles = true;
  OK(tps_stream_open(w->context, w->device, 0, false, &w->a, &w->err));
  OK(tps_stream_open(w->context, w->device, 0, false, &w->b, &w->err));
}

static void close_world(world *w) {
  tps_stream_unref(w->a);
  tps_stream_unref(w->b);
  fake_finish(w->device);
  tps_context_close(w->context);
  fake_finish(w->device);
  assert_int_equal(w->fake->crimes, 0);
  assert_int_equal(w->fake->live_memories, 0);
  assert_int_equal(w->fake->live_streams, 0);
}

static uint64_t once(world *w, tps_stream *stream, uint64_t bytes) {
  tps_memory *memory = NULL;
  OK(tps_memory_allocate(stream, bytes, &memory, &w->err));
  OK(tps_memory_fill(stream, memory, 0, 7, 1, bytes, &w->err));
  uint64_t address = memory->address;
  tps_memory_unref(memory);
  return address;
}

static void the_same_size_comes_again(void **state) {
  (void)state;
  world w;
  open_world(&w, 0);
  uint64_t first = once(&w, w.a, 4096);
  assert_true(once(&w, w.a, 4096) == first);
  assert_true(once(&w, w.a, 8192) != first);
  assert_true(once(&w, w.b, 4096) != first);
  assert_true(once(&w, w.a, 4096) == first);
  assert_int_equal(w.fake->frees, 0);
  close_world(&w);
}

static void no_more_are_kept_than_a_few(void **state) {
  (void)state;
  world w;
  open_world(&w, 1);
  tps_memory *many[20];
  for (int i = 0; i < 20; i++)
    OK(tps_memory_allocate(w.a, 512, &many[i], &w.err));
  for (int i = 0; i < 20; i++) tps_memory_unref(many[i]);
  fake_finish(w.device);
  assert_true(w.fake->live_memories <= 4);
  once(&w, w.a, (uint64_t)1 << 27);
  fake_finish(w.device);
  assert_true(w.fake->live_memories <= 4);
  close_world(&w);
}

static void closing_the_stream_frees_them(void **state) {
  (void)state;
  world w;
  open_world(&w, 2);
  once(&w, w.a, 4096);
  tps_stream_close(w.a);
  fake_finish(w.device);
  assert_int_equal(w.fake->live_memories, 0);
  close_world(&w);
}

static void used_elsewhere_is_not_kept_too_early(void **state) {
  (void)state;
  world w;
  open_world(&w, 3);
  tps_memory *memory = NULL;
  OK(tps_memory_allocate(w.a, 4096, &memory, &w.err));
  OK(tps_memory_fill(w.b, memory, 0, 1, 1, 4096, &w.err));
  OK(tps_memory_fill(w.a, memory, 0, 2, 1, 4096, &w.err));
  uint64_t address = memory->address;
  fake_step(w.a->handle, 1);
  tps_memory_unref(memory);
  /* b's work is not known to be done, so a must not use the address again */
  assert_true(once(&w, w.a, 4096) != address);
  fake_finish(w.device);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_size_comes_again),
      cmocka_unit_test(no_more_are_kept_than_a_few),
      cmocka_unit_test(closing_the_stream_frees_them),
      cmocka_unit_test(used_elsewhere_is_not_kept_too_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
