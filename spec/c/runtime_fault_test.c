/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The runtime after a fault, at the end of a context, watched, and on several
 * threads, against a device that runs only what it is told to and judges every call. */
#include "world.h"

/* ---- faults -------------------------------------------------------------- */

static void a_fault_names_its_launch(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,scale,");
  tps_kernel *saxpy = kernel_of(w, module, "saxpy");
  tps_kernel *scale = kernel_of(w, module, "scale");
  w->context->site = (tps_site){"early.lua", 3};
  OK(launch(w, 0, scale, NULL));
  OK(tps_stream_synchronize(w->s[0], TPS_FOREVER, &w->err));
  w->context->site = (tps_site){"script.lua", 12};
  OK(launch(w, 0, saxpy, NULL));
  OK(launch(w, 1, saxpy, NULL));
  w->fake->fault = TPS_ILLEGAL_ADDRESS;
  assert_int_equal(tps_stream_query(w->s[1], &w->err), 700);
  assert_string_equal(w->err.kernel, "saxpy");
  assert_string_equal(w->err.where, "script.lua:12");
  assert_non_null(strstr(w->err.message, "launched at script.lua:12"));
  assert_int_equal(tps_stream_query(w->s[0], &w->err), 700);
  assert_non_null(strstr(w->err.message, "device cuda:"));
  assert_non_null(strstr(w->err.message, "has faulted: an illegal memory"));
  tps_memory *m;
  assert_int_equal(tps_memory_allocate(w->s[0], 8, &m, &w->err), 700);
  assert_int_equal(launch(w, 0, saxpy, NULL), 700);
  assert_int_equal(tps_context_synchronize(w->context, 0, &w->err), 700);
  tps_kernel_free(saxpy);
  tps_kernel_free(scale);
  tps_module_unref(module);
  drop_streams(w);
  tps_context_close(w->context);
  assert_int_equal(w->fake->live_streams, 0);
  assert_int_equal(w->fake->live_events, 0);
  assert_int_equal(w->fake->crimes, 0);
}

static void a_fault_names_several(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,scale,");
  tps_kernel *saxpy = kernel_of(w, module, "saxpy");
  tps_kernel *scale = kernel_of(w, module, "scale");
  for (int i = 0; i < 12; i++) {
    w->context->site = (tps_site){"a.lua", i + 1};
    OK(launch(w, i % 4, i % 2 ? saxpy : scale, NULL));
  }
  w->fake->fault = TPS_ASSERT;
  assert_int_equal(tps_stream_synchronize(w->s[1], TPS_FOREVER, &w->err), 710);
  assert_string_equal(w->err.where, "");
  assert_non_null(
      strstr(w->err.message, "in one of: scale at a.lua:1, saxpy at a.lua:2"));
  assert_non_null(strstr(w->err.message, "and 4 more"));
  tps_kernel_free(saxpy);
  tps_kernel_free(scale);
  tps_module_unref(module);
  drop_streams(w);
  tps_context_close(w->context);
}

/* Buffers, staging, pinned memory and modules after a fault: no wait, no leak.
 */
static void dropping_after_a_fault_is_silent(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,");
  tps_kernel *kernel = kernel_of(w, module, "saxpy");
  tps_memory *m = allocate(w, 0, 64), *n = allocate(w, 1, 64), *pinned, *old;
  OK(tps_memory_pin(w->context, w->device, 100, false, &pinned, &w->err));
  OK(tps_memory_pin(w->context, w->device, 100, false, &old, &w->err));
  OK(tps_memory_write(w->s[0], m, 0, "abc", 3, &w->err));
  use(w, 1, m);
  use(w, 1, pinned);
  use(w, 0, old);
  tps_memory_unref(old);
  tps_event *e = tps_event_new(w->context, TPS_EVENT_TIMING);
  OK(tps_event_record(e, w->s[0], &w->err));
  OK(launch(w, 2, kernel, m));
  w->context->blocking = true;
  w->fake->fault = TPS_LAUNCH_FAILED;
  assert_int_equal(tps_event_query(e, &w->err), 719);
  int waits = w->fake->waits;
  tps_memory_unref(m);
  tps_stream_close(w->s[1]);
  tps_memory_unref(n);
  tps_memory_unref(pinned);
  tps_event_free(e);
  tps_kernel_free(kernel);
  tps_module_unref(module);
  drop_streams(w);
  tps_context_close(w->context);
  assert_int_equal(w->fake->waits, waits);
  assert_int_equal(w->fake->live_streams, 0);
  assert_int_equal(w->fake->live_events, 0);
  assert_int_equal(w->fake->unpins, 0);
}

static void blocking_finds_the_launch(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,");
  tps_kernel *kernel = kernel_of(w, module, "saxpy");
  w->context->blocking = true;
  w->fake->automatic = true;
  for (int i = 0; i < 3; i++) {
    w->context->site = (tps_site){"b.lua", i + 1};
    OK(launch(w, i, kernel, NULL));
  }
  w->fake->automatic = false;
  w->fake->stall = true;
  interrupt_at(w, 2);
  w->context->site.line = 77;
  assert_int_equal(launch(w, 3, kernel, NULL), TPS_INTERRUPTED);
  w->fake->fault = TPS_ILLEGAL_ADDRESS;
  assert_int_equal(tps_stream_query(w->s[3], &w->err), 700);
  assert_string_equal(w->err.where, "b.lua:77");
  tps_kernel_free(kernel);
  tps_module_unref(module);
  drop_streams(w);
  tps_context_close(w->context);
}

/* ---- contexts ------------------------------------------------------------ */

static void a_context_closes_without_waiting(void **state) {
  world *w = *state;
  void *next;
  tps_module *module = load(w, "saxpy,");
  tps_kernel *kernel = kernel_of(w, module, "saxpy");
  tps_memory *m = allocate(w, 0, 64), *pinned;
  OK(tps_memory_pin(w->context, w->device, 100, false, &pinned, &w->err));
  OK(tps_memory_write(w->s[0], m, 0, "abc", 3, &w->err));
  use(w, 1, pinned);
  OK(launch(w, 2, kernel, m));
  tps_context_close(w->context); /* before its objects, as a state may do */
  tps_kernel_free(kernel);
  tps_module_unref(module);
  tps_memory_unref(pinned);
  tps_memory_unref(m);
  drop_streams(w);
  assert_int_equal(w->fake->waits, 0);
  assert_int_equal(w->fake->crimes, 0);
  assert_int_equal(w->fake->live_streams, 0);
  assert_int_equal(w->fake->unloads, 0);
  assert_true(w->fake->live_pinned > 0);
  fake_finish(w->device);
  next_ordinal[TPS_CUDA] -=
      2; /* the same device again: it looks after what was left */
  open_cuda_world(&next);
  tps_context_reclaim(((world *)next)->context);
  assert_int_equal(w->fake->unloads, 1);
  close_world(next);
  free_world(&next);
}

static void devices_are_told_by_name(void **state) {
  (void)state;
  tps_device *d;
  tps_error err;
  OK(tps_device_parse("sim:1", TPS_CUDA, &d, &err));
  assert_int_equal(d->kind, TPS_SIM);
  OK(tps_device_parse("3", TPS_CUDA, &d, &err));
  assert_int_equal(d->ordinal, 3);
  assert_int_equal(tps_device_parse("cuda:64", TPS_SIM, &d, &err), 101);
  assert_string_equal(err.message,
                      "no device cuda:64: 64 cuda devices are visible");
  const char *wrong[] = {"gpu", "cuda:", "sim:-1", "cuda:1x",
                         "-1",  "",      "cuda 1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(tps_device_parse(wrong[i], TPS_SIM, &d, &err), TPS_MISUSE);
  assert_int_equal(tps_device_parse("99999999999999", TPS_SIM, &d, &err), 101);
  tps_context *c;
  setenv("TPSTREAM_DEVICE", "sim:2", 1);
  OK(tps_context_new(NULL, &c, &err));
  assert_int_equal(c->kind, TPS_SIM);
  assert_int_equal(c->initial_device, 2);
  tps_context_close(c);
  setenv("TPSTREAM_DEVICE", "", 1);
  OK(tps_context_new(NULL, &c, &err));
  assert_int_equal(c->kind, TPS_CUDA);
  tps_context_close(c);
  unsetenv("TPSTREAM_DEVICE");
}

/* ---- observers ----------------------------------------------------------- */

static int seen[TPS_OP_GRAPH + 1], waited, freed_at;

static void see(void *data, tps_op *op, const tps_stream *stream) {
  (void)data, (void)stream;
  assert_true(op->queued_ns > 0);
  if (op->kind == TPS_OP_FREE) freed_at = op->line;
  seen[op->kind]++;
}

static void see_wait(void *data, const tps_wait_note *wait) {
  (void)data;
  assert_non_null(wait->stream);
  waited++;
}

static int made, ended;

static void see_memory(void *data, const tps_memory *memory,
                       tps_memory_change what) {
  (void)data;
  assert_int_equal(memory->bytes, 8);
  made += what == TPS_MEMORY_MADE;
  ended += what == TPS_MEMORY_ENDED;
}

static void observers_see_what_the_script_queues(void **state) {
  world *w = *state;
  tps_observer observer = {
      .queued = see, .waited = see_wait, .memory = see_memory};
  assert_false(tps_observing());
  tps_observer_add(&observer);
  tps_memory *m = allocate(w, 0, 8);
  use(w, 0, m);
  use(w, 1, m); /* the runtime's own wait is not the script's */
  OK(tps_stream_wait_stream(w->s[2], w->s[1], &w->err));
  OK(tps_stream_synchronize(w->s[2], TPS_FOREVER, &w->err));
  w->context->site.line = 5;
  tps_memory_unref(m);
  assert_int_equal(freed_at, 0);
  m = allocate(w, 0, 8);
  tps_memory_close(m);
  assert_int_equal(freed_at, 5);
  tps_observer_remove(&observer);
  assert_false(tps_observing());
  assert_int_equal(seen[TPS_OP_ALLOC], 2);
  assert_int_equal(seen[TPS_OP_FILL], 2);
  assert_int_equal(seen[TPS_OP_RECORD], 1);
  assert_int_equal(seen[TPS_OP_WAIT], 1);
  assert_int_equal(seen[TPS_OP_FREE], 2);
  assert_int_equal(waited, 1);
  assert_int_equal(made, 2);
  assert_int_equal(ended, 2);
  close_world(w);
}

/* ---- threads ------------------------------------------------------------- */

static void churn(tps_context *context, tps_device *device) {
  tps_stream *s, *t;
  tps_error err;
  char buffer[3000] = {0};
  OK(tps_stream_open(context, device, 0, false, &s, &err));
  OK(tps_stream_open(context, device, 0, false, &t, &err));
  for (int i = 0; i < 300; i++) {
    tps_memory *m, *p;
    OK(tps_memory_allocate(s, sizeof buffer, &m, &err));
    OK(tps_memory_pin(context, device, sizeof buffer, false, &p, &err));
    OK(tps_memory_write(s, m, 0, buffer, sizeof buffer, &err));
    OK(tps_memory_copy(t, p, 0, m, 0, sizeof buffer, &err));
    OK(tps_memory_read(t, p, 0, buffer, sizeof buffer, &err));
    tps_memory_unref(m);
    tps_memory_unref(p);
  }
  tps_stream_unref(s);
  tps_stream_unref(t);
}

static void *run_thread(void *data) {
  tps_device *device = data;
  char label[32];
  tps_error err;
  tps_device_label(device, label, sizeof label);
  for (int i = 0; i < 5; i++) {
    tps_context *context;
    OK(tps_context_new(label, &context, &err));
    churn(context, device);
    tps_context_close(context);
  }
  return NULL;
}

static void two_threads(void **state) {
  world *w = *state;
  w->fake->automatic = true;
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, run_thread, w->device);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  close_world(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      on_cuda(a_fault_names_its_launch),
      on_cuda(a_fault_names_several),
      on_cuda(dropping_after_a_fault_is_silent),
      on_cuda(blocking_finds_the_launch),
      on_cuda(a_context_closes_without_waiting),
      cmocka_unit_test(devices_are_told_by_name),
      on_sim(observers_see_what_the_script_queues),
      on_sim(two_threads),
  };
  return cmocka_run_group_tests_name("runtime fault", tests, NULL, NULL);
}
