/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams, events and callbacks of the runtime against a device that runs only what
 * it is told to and judges every call. */
#include "world.h"

/* ---- events and order ---------------------------------------------------- */

static void events_order_streams(void **state) {
  world *w = *state;
  tps_event *e = tps_event_new(w->context, 0);
  OK(tps_event_query(e, &w->err));
  OK(tps_event_wait(e, w->s[1], &w->err));
  OK(tps_event_synchronize(e, TPS_FOREVER, &w->err));
  assert_true(tps_event_driver_handle(e) == 0);
  tps_memory *m = allocate(w, 0, 8), *n = allocate(w, 1, 8);
  use(w, 0, m);
  OK(tps_event_record(e, w->s[0], &w->err));
  OK(tps_event_wait(e, w->s[1], &w->err));
  use(w, 1, n);
  assert_int_equal(tps_event_query(e, &w->err), TPS_NOT_READY);
  fake_step(w->s[1]->handle, 5);
  assert_int_equal(tps_stream_query(w->s[1], &w->err), TPS_NOT_READY);
  fake_step(w->s[0]->handle, 1);
  OK(tps_event_query(e, &w->err));
  fake_step(w->s[1]->handle, 1);
  OK(tps_stream_query(w->s[1], &w->err));
  tps_event_free(e);
  tps_memory_unref(m);
  tps_memory_unref(n);
  close_world(w);
}

static void elapsed_tells_what_is_wrong(void **state) {
  world *w = *state;
  double ms;
  tps_event *plain = tps_event_new(w->context, 0);
  tps_event *a = tps_event_new(w->context, TPS_EVENT_TIMING);
  tps_event *b = tps_event_new(w->context, TPS_EVENT_TIMING);
  assert_int_equal(tps_event_elapsed(a, plain, &ms, &w->err), 400);
  assert_non_null(strstr(w->err.message, "end event was made without timing"));
  assert_int_equal(tps_event_elapsed(a, b, &ms, &w->err), 400);
  assert_non_null(strstr(w->err.message, "start event has not been recorded"));
  tps_memory *m = allocate(w, 0, 8);
  OK(tps_event_record(a, w->s[0], &w->err));
  use(w, 0, m);
  OK(tps_event_record(b, w->s[0], &w->err));
  assert_int_equal(tps_event_elapsed(a, b, &ms, &w->err), TPS_NOT_READY);
  assert_non_null(strstr(w->err.message, "end event is not finished"));
  fake_finish(w->device);
  OK(tps_event_elapsed(a, b, &ms, &w->err));
  tps_stream *far;
  OK(tps_stream_default(w->context, w->peer, &far, &w->err));
  assert_int_equal(tps_event_record(a, far, &w->err), TPS_MISUSE);
  tps_event *c = tps_event_new(w->context, TPS_EVENT_TIMING);
  OK(tps_event_record(c, far, &w->err));
  assert_int_equal(tps_event_elapsed(a, c, &ms, &w->err), 400);
  assert_non_null(strstr(w->err.message, "sim:"));
  tps_event_free(plain);
  tps_event_free(a);
  tps_event_free(b);
  tps_event_free(c);
  tps_memory_unref(m);
  close_world(w);
}

static void streams_wait_for_streams(void **state) {
  world *w = *state;
  tps_memory *m[4];
  for (int i = 0; i < 4; i++) m[i] = allocate(w, i, 8);
  use(w, 0, m[0]);
  OK(tps_stream_wait_stream(w->s[1], w->s[0], &w->err));
  OK(tps_stream_wait_stream(w->s[1], w->s[1], &w->err));
  use(w, 1, m[1]);
  fake_step(w->s[1]->handle, 1);
  assert_int_equal(tps_stream_query(w->s[1], &w->err), TPS_NOT_READY);
  OK(tps_stream_barrier(w->s, 4, &w->err));
  use(w, 2, m[2]);
  use(w, 3, m[3]);
  fake_step(w->s[2]->handle, 1);
  assert_int_equal(tps_stream_query(w->s[2], &w->err), TPS_NOT_READY);
  fake_step(w->s[0]->handle, 1);
  fake_step(w->s[1]->handle, 1);
  fake_step(w->s[2]->handle, 1);
  OK(tps_stream_query(w->s[2], &w->err));
  tps_device *gpu;
  tps_stream *far;
  OK(tps_device_get(TPS_CUDA, FAKE_DEVICES - 1, &gpu, &w->err));
  OK(tps_stream_default(w->context, gpu, &far, &w->err));
  assert_int_equal(tps_stream_wait_stream(w->s[0], far, &w->err), TPS_MISUSE);
  assert_non_null(strstr(w->err.message, "cuda:"));
  for (int i = 0; i < 4; i++) tps_memory_unref(m[i]);
  close_world(w);
}

static void waits_end_in_time(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 8);
  use(w, 0, m);
  w->fake->stall = true;
  assert_int_equal(tps_stream_synchronize(w->s[0], 0, &w->err), TPS_NOT_READY);
  uint64_t start = tps_now_ns();
  assert_int_equal(tps_stream_synchronize(w->s[0], 30000000, &w->err),
                   TPS_NOT_READY);
  assert_in_range(tps_now_ns() - start, 29000000, 2000000000);
  assert_int_equal(tps_context_synchronize(w->context, 3000000, &w->err),
                   TPS_NOT_READY);
  interrupt_at(w, 3);
  assert_int_equal(
      tps_device_synchronize(w->context, w->device, TPS_FOREVER, &w->err),
      TPS_INTERRUPTED);
  assert_string_equal(w->err.message, "interrupted!");
  w->fake->stall = false;
  interrupt_at(w, 1000);
  OK(tps_context_synchronize(w->context, TPS_FOREVER, &w->err));
  tps_memory_unref(m);
  close_world(w);
}

static void closed_streams_are_refused(void **state) {
  world *w = *state;
  tps_stream_close(w->s[0]);
  tps_stream_close(w->s[0]);
  tps_memory *m;
  assert_int_equal(tps_memory_allocate(w->s[0], 8, &m, &w->err), TPS_MISUSE);
  assert_string_equal(w->err.message, "attempt to use a closed stream");
  assert_int_equal(tps_stream_query(w->s[0], &w->err), TPS_MISUSE);
  assert_int_equal(tps_stream_synchronize(w->s[0], 0, &w->err), TPS_MISUSE);
  assert_int_equal(tps_stream_wait_stream(w->s[1], w->s[0], &w->err),
                   TPS_MISUSE);
  close_world(w);
}

/* ---- streams of others --------------------------------------------------- */

/* Somebody else's stream, and ours for it. */
static tps_stream *adopt(world *w, tps_device_stream **theirs) {
  int priority;
  tps_stream *stream = NULL;
  OK(w->device->face->stream_create(w->device, 0, 0, theirs, &priority,
                                    &w->err));
  OK(tps_stream_adopt(w->context, w->device, (uint64_t)(uintptr_t)*theirs,
                      &stream, &w->err));
  return stream;
}

static void foreign_streams_are_found_and_forgotten(void **state) {
  world *w = *state;
  tps_device_stream *theirs;
  tps_stream *s = adopt(w, &theirs), *t;
  uint64_t handle = (uint64_t)(uintptr_t)theirs;
  assert_ptr_equal(tps_stream_find(w->context, w->device, handle), s);
  assert_int_equal(tps_stream_driver_handle(s), handle);
  assert_int_equal(s->priority, -1);
  handle = tps_stream_driver_handle(w->s[2]);
  assert_ptr_equal(tps_stream_find(w->context, w->device, handle), w->s[2]);
  assert_null(tps_stream_find(w->context, w->device, 4711));
  assert_int_equal(tps_stream_adopt(w->context, w->device, 4711, &t, &w->err),
                   TPS_INVALID_HANDLE);
  tps_stream_close(s);
  assert_null(
      tps_stream_find(w->context, w->device, (uint64_t)(uintptr_t)theirs));
  tps_stream_unref(s);
  assert_int_equal(w->fake->adopted, 0);
  assert_false(((fake_stream *)theirs)->destroyed);
  w->device->face->stream_destroy(w->device, theirs);
  close_world(w);
}

/* Its owner destroys the stream while we still hold it: from then on nothing may
 * ask it, and memory is freed after its work all the same. */
static void foreign_uses_are_marked_at_once(void **state) {
  world *w = *state;
  tps_device_stream *theirs;
  tps_stream *s = adopt(w, &theirs);
  tps_memory *m = allocate(w, 0, 100), *own = NULL;
  use(w, 0, m);
  fake_finish(w->device);
  OK(tps_memory_fill(s, m, 0, 7, 1, m->bytes, &w->err));
  OK(tps_memory_allocate(s, 50, &own, &w->err));
  OK(tps_memory_fill(s, own, 0, 7, 1, 50, &w->err));
  w->device->face->stream_destroy(w->device, theirs);
  tps_memory_unref(m);
  tps_memory_unref(own);
  w->fake->stall = true;
  assert_int_equal(tps_context_synchronize(w->context, 1000, &w->err),
                   TPS_NOT_READY);
  w->fake->stall = false;
  tps_context_reclaim(w->context);
  assert_int_equal(w->fake->frees, 0);
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 2);
  OK(tps_context_synchronize(w->context, TPS_FOREVER, &w->err));
  tps_stream_unref(s);
  close_world(w);
}

static void forgotten_streams_keep_their_end(void **state) {
  world *w = *state;
  tps_device_stream *theirs;
  tps_stream *s = adopt(w, &theirs);
  tps_memory *m = allocate(w, 0, 100);
  fake_finish(w->device);
  OK(tps_memory_fill(s, m, 0, 7, 1, m->bytes, &w->err));
  tps_stream_unref(s);
  w->device->face->stream_destroy(w->device, theirs);
  tps_memory_unref(m);
  assert_int_equal(w->fake->frees, 0);
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 1);
  close_world(w);
}

/* ---- callbacks ----------------------------------------------------------- */

/* The token of the next one due, 0 for none. */
static uint64_t due(world *w) {
  uint64_t token;
  int code;
  tps_error err;
  if (!tps_callback_take(w->context, &token, &code, &err)) return 0;
  assert_int_equal(code, 0);
  return token;
}

static void callbacks_are_due_in_order(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100);
  assert_false(tps_callback_any(w->context));
  assert_int_equal(due(w), 0);
  use(w, 0, m);
  OK(tps_callback_queue(w->s[0], 1, &w->err));
  use(w, 0, m);
  OK(tps_callback_queue(w->s[0], 2, &w->err));
  OK(tps_callback_queue(w->s[1], 3, &w->err));
  assert_int_equal(due(w), 3);
  assert_int_equal(due(w), 0);
  assert_true(tps_callback_any(w->context));
  tps_stream_close(w->s[0]); /* keeps them */
  fake_finish(w->device);
  assert_int_equal(due(w), 1);
  assert_int_equal(due(w), 2);
  assert_false(tps_callback_any(w->context));
  assert_int_equal(tps_callback_queue(w->s[0], 4, &w->err), TPS_MISUSE);
  assert_false(tps_callback_any(w->context));
  tps_memory_unref(m);
  close_world(w);
}

static void contexts_close_with_callbacks_queued(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100);
  OK(tps_callback_queue(w->s[0], 1, &w->err)); /* due, never taken */
  use(w, 0, m);
  OK(tps_callback_queue(w->s[0], 2, &w->err)); /* delivered to nobody */
  tps_memory_unref(m);
  tps_context_close(w->context);
  drop_streams(w);
  fake_finish(w->device);
  check_clean(w);
}

static void faults_lose_callbacks(void **state) {
  world *w = *state;
  uint64_t token;
  tps_memory *m = allocate(w, 0, 100);
  OK(tps_callback_queue(w->s[1], 1, &w->err)); /* due */
  use(w, 0, m);
  OK(tps_callback_queue(w->s[0], 2, &w->err));
  assert_false(tps_callback_lose(w->context, &token, &w->err));
  tps_callback_look(w->context);
  assert_false(tps_callback_lose(w->context, &token, &w->err));
  w->fake->fault = TPS_ILLEGAL_ADDRESS;
  assert_false(tps_callback_lose(w->context, &token, &w->err));
  tps_callback_look(w->context); /* notices */
  assert_true(tps_callback_lose(w->context, &token, &w->err));
  assert_int_equal(token, 1);
  assert_int_equal(w->err.code, TPS_ILLEGAL_ADDRESS);
  assert_true(tps_callback_lose(w->context, &token, &w->err));
  assert_int_equal(token, 2);
  assert_false(tps_callback_lose(w->context, &token, &w->err));
  assert_int_equal(due(w), 0);
  assert_false(tps_callback_any(w->context));
  assert_int_equal(tps_callback_queue(w->s[0], 3, &w->err),
                   TPS_ILLEGAL_ADDRESS);
  tps_memory_unref(m);
  drop_streams(w);
  tps_context_close(w->context);
  assert_int_equal(w->fake->crimes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      on_sim(events_order_streams),
      on_sim(elapsed_tells_what_is_wrong),
      on_sim(streams_wait_for_streams),
      on_sim(waits_end_in_time),
      on_sim(closed_streams_are_refused),
      on_sim(foreign_streams_are_found_and_forgotten),
      on_sim(foreign_uses_are_marked_at_once),
      on_sim(forgotten_streams_keep_their_end),
      on_sim(callbacks_are_due_in_order),
      on_sim(contexts_close_with_callbacks_queued),
      on_sim(faults_lose_callbacks),
  };
  return cmocka_run_group_tests_name("runtime order", tests, NULL, NULL);
}
