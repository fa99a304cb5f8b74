/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The runtime against a device that runs only what it is told to and judges
 * every call: frees come after all uses, nothing that could wait is called from
 * a drop, everything made is destroyed. */
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

/* ---- a test's own context and device ------------------------------------- */

typedef struct world {
  tps_context *context;
  tps_device *device, *peer;
  fake_device *fake;
  tps_stream *s[4];
  tps_error err;
} world;

static int next_ordinal[2]; /* by kind */

#define OK(call) assert_int_equal(call, 0)

static void open_world(world *w, tps_device_kind kind) {
  char choice[32];
  memset(w, 0, sizeof *w);
  snprintf(choice, sizeof choice, "%s:%d", kind == TPS_CUDA ? "cuda" : "sim",
           next_ordinal[kind]);
  OK(tps_context_new(choice, &w->context, &w->err));
  OK(tps_device_get(kind, next_ordinal[kind], &w->device, &w->err));
  OK(tps_device_get(kind, next_ordinal[kind] + 1, &w->peer, &w->err));
  next_ordinal[kind] += 2;
  w->fake = FAKE(w->device);
  for (int i = 0; i < 4; i++)
    OK(tps_stream_open(w->context, w->device, 0, false, &w->s[i], &w->err));
}

static void drop_streams(world *w) {
  for (int i = 0; i < 4; i++) {
    tps_stream_unref(w->s[i]);
    w->s[i] = NULL;
  }
}

static void check_clean(const world *w) {
  assert_int_equal(w->fake->crimes, 0);
  assert_int_equal(w->fake->live_streams, 0);
  assert_int_equal(w->fake->live_events, 0);
  assert_int_equal(w->fake->live_memories, 0);
  assert_int_equal(w->fake->live_modules, 0);
}

/* Everything ends in the order given by a Lua state: objects, then the context.
 */
static void close_world(world *w) {
  drop_streams(w);
  fake_finish(w->device);
  tps_context_close(w->context);
  fake_finish(w->device);
  check_clean(w);
  assert_int_equal(w->fake->live_pinned, 0);
}

static tps_memory *allocate(world *w, int i, uint64_t bytes) {
  tps_memory *memory = NULL;
  OK(tps_memory_allocate(w->s[i], bytes, &memory, &w->err));
  return memory;
}

static void use(world *w, int i, tps_memory *memory) {
  OK(tps_memory_fill(w->s[i], memory, 0, 7, 1, memory->bytes, &w->err));
}

/* ---- safe frees ---------------------------------------------------------- */

static void one_stream_frees_there(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  use(&w, 0, m);
  tps_memory_unref(m);
  assert_int_equal(w.fake->records, 0);
  assert_int_equal(w.fake->frees, 0);
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 1);
  assert_int_equal(w.fake->live_streams, 4);
  close_world(&w);
}

static void several_streams_are_waited_for(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  use(&w, 0, m);
  use(&w, 1, m);
  use(&w, 2, m);
  use(&w, 0, m);
  tps_memory_unref(m);
  assert_int_equal(w.fake->waits, 0);
  fake_step(w.s[1]->handle, 1); /* can't run: the filling comes first */
  fake_step(w.s[0]->handle, 1);
  fake_step(w.s[2]->handle, 1);
  fake_step(w.s[0]->handle, 1);
  assert_int_equal(w.fake->frees, 0);
  fake_step(w.s[1]->handle, 1);
  assert_int_equal(w.fake->frees, 1);
  close_world(&w);
}

static void filled_here_used_there_frees_there(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  use(&w, 0, m);
  use(&w, 1, m);
  use(&w, 1, m);
  assert_int_equal(w.fake->records, 1);
  tps_memory_unref(m);
  assert_int_equal(w.fake->records, 1);
  assert_int_equal(w.fake->live_streams, 4);
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 1);
  close_world(&w);
}

static void a_known_wait_is_not_repeated(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *a = allocate(&w, 0, 8), *b = allocate(&w, 0, 8);
  use(&w, 1, a);
  use(&w, 1, b);
  assert_int_equal(w.fake->event_waits, 1);
  fake_finish(w.device);
  OK(tps_stream_query(w.s[0], &w.err));
  use(&w, 2, a); /* the home stream is known to be done */
  assert_int_equal(w.fake->event_waits, 1);
  tps_memory_unref(a);
  tps_memory_unref(b);
  close_world(&w);
}

static void closed_streams_keep_their_end(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100), *n = allocate(&w, 0, 100);
  use(&w, 0, m);
  use(&w, 1, m);
  fake_stream *last = (fake_stream *)w.s[1]->handle;
  tps_stream_close(w.s[0]);
  tps_stream_close(w.s[1]);
  assert_int_equal(w.fake->live_streams, 2);
  use(&w, 2, n); /* allocated on a closed stream */
  tps_memory_unref(m);
  tps_memory_unref(n);
  drop_streams(&w);
  assert_int_equal(w.fake->waits, 0);
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 2);
  assert_int_equal(last->frees, 0);
  close_world(&w);
}

static void without_events_frees_are_put_off(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  use(&w, 0, m);
  use(&w, 1, m);
  use(&w, 0, m);
  tps_context_reclaim(w.context);
  w.fake->busy_pool = true; /* events can't be recorded now */
  tps_memory_unref(m);
  tps_stream_close(w.s[1]); /* its driver stream has to be kept */
  tps_memory_stats stats;
  tps_memory_get_stats(w.context, w.device, &stats);
  assert_int_equal(stats.pending_count, 1);
  w.fake->busy_pool = false;
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 0);
  tps_context_reclaim(w.context);
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 1);
  close_world(&w);
}

static void escaped_memory_waits_for_all(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100), *other = allocate(&w, 3, 100);
  tps_memory_expose(m);
  fake_finish(w.device);
  use(&w, 3, other);
  tps_memory_unref(m);
  fake_step(w.s[0]->handle, 9);
  assert_int_equal(w.fake->frees, 0);
  fake_step(w.s[3]->handle, 1);
  assert_int_equal(w.fake->frees, 1);
  tps_memory_unref(other);
  close_world(&w);
}

static void many_streams_are_forgotten_when_done(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  w.fake->automatic = true;
  tps_memory *m = allocate(&w, 0, 100);
  for (int i = 0; i < 1000; i++) {
    tps_stream *s;
    OK(tps_stream_open(w.context, w.device, 0, false, &s, &w.err));
    OK(tps_memory_fill(s, m, 0, 1, 1, 100, &w.err));
    tps_stream_unref(s);
  }
  assert_int_equal(w.fake->live_streams, 4);
  assert_in_range(w.fake->live_events, 1, 40);
  tps_memory_unref(m);
  close_world(&w);
}

static void a_hundred_busy_streams(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  tps_stream *s[100];
  for (int i = 0; i < 100; i++) {
    OK(tps_stream_open(w.context, w.device, 0, false, &s[i], &w.err));
    OK(tps_memory_fill(s[i], m, 0, 1, 1, 100, &w.err));
    if (i % 2) tps_stream_close(s[i]);
  }
  tps_memory_unref(m);
  for (int i = 0; i < 100; i++) tps_stream_unref(s[i]);
  assert_int_equal(w.fake->frees, 0);
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 1);
  close_world(&w);
}

static void other_devices_streams_count(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_stream *far;
  OK(tps_stream_open(w.context, w.peer, 0, false, &far, &w.err));
  tps_memory *m = allocate(&w, 0, 64), *n = NULL;
  OK(tps_memory_allocate(far, 64, &n, &w.err));
  use(&w, 0, m);
  OK(tps_memory_copy(far, n, 0, m, 0, 64, &w.err));
  tps_memory_unref(m);
  fake_step(w.s[0]->handle, 9);
  assert_int_equal(w.fake->frees, 0);
  fake_step(far->handle, 1);
  assert_int_equal(w.fake->frees, 1);
  tps_memory_unref(n);
  tps_stream_unref(far);
  fake_finish(w.peer);
  close_world(&w);
  assert_int_equal(FAKE(w.peer)->crimes, 0);
  assert_int_equal(FAKE(w.peer)->live_streams, 0);
  assert_int_equal(FAKE(w.peer)->live_events, 0);
}

static void zero_bytes_need_no_driver(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 0);
  assert_true(m->address == 0);
  OK(tps_memory_fill(w.s[0], m, 0, 1, 4, 0, &w.err));
  OK(tps_memory_write(w.s[0], m, 0, "", 0, &w.err));
  OK(tps_memory_copy(w.s[0], m, 0, m, 0, 0, &w.err));
  tps_memory_unref(m);
  close_world(&w);
}

static void out_of_memory_says_how_much(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m;
  assert_int_equal(tps_memory_allocate(w.s[0], (uint64_t)1 << 50, &m, &w.err),
                   2);
  assert_non_null(strstr(w.err.message, "1125899906842624 bytes asked for"));
  assert_non_null(strstr(w.err.message, "1000 free of 4000"));
  close_world(&w);
}

static void ranges_are_checked(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 16);
  char b[32] = {0};
  assert_int_equal(tps_memory_write(w.s[0], m, 8, b, 9, &w.err), TPS_MISUSE);
  assert_int_equal(tps_memory_read(w.s[0], m, 17, b, 0, &w.err), TPS_MISUSE);
  assert_int_equal(tps_memory_fill(w.s[0], m, 8, 0, 8, UINT64_MAX / 4, &w.err),
                   TPS_MISUSE);
  assert_int_equal(tps_memory_copy(w.s[0], m, 4, m, 0, 8, &w.err), TPS_MISUSE);
  assert_non_null(strstr(w.err.message, "overlap"));
  OK(tps_memory_copy(w.s[0], m, 8, m, 0, 8, &w.err));
  tps_memory_unref(m);
  close_world(&w);
}

/* ---- pinned memory ------------------------------------------------------- */

static void pinned_blocks_wait_and_come_back(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = NULL, *n = NULL;
  OK(tps_memory_pin(w.context, w.device, 5000, false, &m, &w.err));
  for (int i = 0; i < 5000; i++)
    assert_int_equal(((unsigned char *)m->host)[i], 0);
  void *host = m->host;
  use(&w, 0, m);
  use(&w, 1, m);
  tps_memory_unref(m);
  OK(tps_memory_pin(w.context, w.device, 5000, false, &n, &w.err));
  assert_ptr_not_equal(n->host, host);
  fake_finish(w.device);
  OK(tps_memory_pin(w.context, w.device, 5100, false, &m, &w.err));
  assert_ptr_equal(m->host, host);
  for (int i = 0; i < 5100; i++)
    assert_int_equal(((unsigned char *)m->host)[i], 0);
  assert_int_equal(w.fake->unpins, 0);
  tps_memory_unref(m);
  tps_memory_unref(n);
  close_world(&w);
}

/* Given back when nothing runs, since the driver may wait there. */
static void shared_memory_waits_for_a_quiet_device(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  char handle[TPS_MEMORY_IPC_BYTES], byte = 0;
  tps_memory *m, *theirs, *n = allocate(&w, 1, 64);
  OK(tps_memory_share(w.context, w.device, 100, &m, &w.err));
  OK(tps_memory_export(m, handle, &w.err));
  assert_int_equal(tps_memory_export(n, handle, &w.err), TPS_MISUSE);
  OK(tps_memory_import(w.context, w.device, handle, &theirs, &w.err));
  assert_int_equal(theirs->bytes, 64);
  assert_int_equal(tps_memory_export(theirs, handle, &w.err), TPS_MISUSE);
  OK(tps_memory_write(w.s[0], m, 3, "x", 1, &w.err));
  OK(tps_memory_read(w.s[0], theirs, 3, &byte, 1, &w.err));
  assert_int_equal(byte, 'x');
  use(&w, 0, m);
  use(&w, 1, theirs);
  use(&w, 1, n);
  tps_memory_unref(m);
  tps_memory_unref(theirs);
  tps_context_reclaim(w.context);
  assert_int_equal(w.fake->live_shared, 1);
  assert_int_equal(w.fake->live_imported, 1);
  fake_finish(w.device);
  tps_context_reclaim(w.context);
  assert_int_equal(w.fake->live_shared, 0);
  assert_int_equal(w.fake->live_imported, 0);
  OK(tps_memory_share(w.context, w.device, 100, &m, &w.err));
  tps_memory_unref(m);
  tps_memory_unref(n);
  fake_device *fake = w.fake;
  close_world(&w);
  assert_int_equal(fake->live_shared, 0);
}

static void pinned_copies_in_stream_order(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *a, *b, *d = allocate(&w, 0, 64);
  OK(tps_memory_pin(w.context, w.device, 64, false, &a, &w.err));
  OK(tps_memory_pin(w.context, w.device, 64, false, &b, &w.err));
  char text[] = "through the ring, to pinned, to device, to pinned";
  OK(tps_memory_write(w.s[0], a, 0, text, sizeof text, &w.err));
  assert_int_equal(*(char *)a->host, 0);
  OK(tps_memory_copy(w.s[0], d, 0, a, 0, 64, &w.err));
  OK(tps_memory_copy(w.s[0], b, 0, d, 0, 64, &w.err));
  char back[64];
  OK(tps_memory_read(w.s[0], b, 0, back, 64, &w.err));
  assert_string_equal(back, text);
  tps_memory_unref(a);
  tps_memory_unref(b);
  tps_memory_unref(d);
  close_world(&w);
}

/* ---- staging ------------------------------------------------------------- */

static unsigned char *pattern(uint64_t bytes, unsigned seed) {
  unsigned char *p = malloc(bytes);
  for (uint64_t i = 0; i < bytes; i++)
    p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
  return p;
}

static void big_writes_go_in_pieces(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  uint64_t bytes = ((uint64_t)70 << 20) + 77;
  unsigned char *p = pattern(bytes, 1), *q = malloc(bytes);
  tps_memory *m = allocate(&w, 0, bytes);
  OK(tps_memory_write(w.s[0], m, 0, p, bytes, &w.err));
  assert_true(w.fake->waits > 0);
  OK(tps_memory_read(w.s[0], m, 0, q, bytes, &w.err));
  assert_memory_equal(p, q, bytes);
  free(p);
  free(q);
  tps_memory_unref(m);
  close_world(&w);
}

static void small_writes_share_events(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  w.fake->automatic = true;
  enum { N = 30000, SIZE = 1000 };
  tps_memory *m[3];
  unsigned char *p = pattern(SIZE * 3, 2), q[SIZE], scratch[SIZE];
  for (int i = 0; i < 3; i++) m[i] = allocate(&w, i, SIZE);
  for (int i = 0; i < N; i++) {
    memcpy(scratch, p + i % 7, SIZE);
    OK(tps_memory_write(w.s[i % 3], m[i % 3], 0, scratch, SIZE, &w.err));
    memset(scratch, 0, SIZE);
  }
  assert_in_range(w.fake->records, 1, 3 * (N * SIZE / (1 << 20) + 2));
  for (int i = 0; i < 3; i++) {
    OK(tps_memory_read(w.s[i], m[i], 0, q, SIZE, &w.err));
    assert_memory_equal(q, p + (N - 3 + i) % 7, SIZE);
    tps_memory_unref(m[i]);
  }
  free(p);
  close_world(&w);
}

static int stop_at;
static int interrupt(void *data) {
  (void)data;
  return --stop_at <= 0;
}

/* Staging whose copies have not run must not be written again. */
static void a_full_ring_waits_and_can_be_interrupted(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  uint64_t bytes = (uint64_t)6 << 20;
  tps_memory *m[4];
  unsigned char *p[4], *q = malloc(bytes);
  w.fake->stall = true;
  w.context->interrupted = interrupt;
  for (int i = 0; i < 2; i++) {
    m[i] = allocate(&w, i, bytes);
    p[i] = pattern(bytes, (unsigned)i);
    OK(tps_memory_write(w.s[i], m[i], 0, p[i], bytes, &w.err));
    tps_stream_close(w.s[i]);
  }
  m[2] = allocate(&w, 2, bytes);
  p[2] = pattern(bytes, 9);
  stop_at = 2;
  assert_int_equal(tps_memory_write(w.s[2], m[2], 0, p[2], bytes, &w.err),
                   TPS_INTERRUPTED);
  stop_at = 1000000;
  w.fake->stall = false;
  OK(tps_memory_write(w.s[2], m[2], 0, p[2], bytes, &w.err));
  for (int i = 0; i < 3; i++) {
    OK(tps_memory_read(w.s[3], m[i], 0, q, bytes, &w.err));
    assert_memory_equal(p[i], q, bytes);
    tps_memory_unref(m[i]);
    free(p[i]);
  }
  free(q);
  close_world(&w);
}

static void an_interrupted_read_leaves_staging_sound(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  uint64_t bytes = (uint64_t)3 << 20;
  unsigned char *p = pattern(bytes, 3), *q = malloc(bytes);
  tps_memory *m = allocate(&w, 0, bytes), *n = allocate(&w, 1, bytes);
  OK(tps_memory_write(w.s[0], m, 0, p, bytes, &w.err));
  OK(tps_memory_fill(w.s[1], n, 0, 0, 1, bytes, &w.err));
  w.fake->stall = true;
  w.context->interrupted = interrupt;
  stop_at = 2;
  assert_int_equal(tps_memory_read(w.s[1], n, 0, q, bytes, &w.err),
                   TPS_INTERRUPTED);
  stop_at = 1000000;
  w.fake->stall = false;
  OK(tps_memory_read(w.s[0], m, 0, q, bytes, &w.err));
  assert_memory_equal(p, q, bytes);
  free(p);
  free(q);
  tps_memory_unref(m);
  tps_memory_unref(n);
  close_world(&w);
}

static void kinds_copy_through_the_host(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_device *gpu;
  tps_stream *far;
  OK(tps_device_get(TPS_CUDA, FAKE_DEVICES - 1, &gpu, &w.err));
  OK(tps_stream_default(w.context, gpu, &far, &w.err));
  uint64_t bytes = ((uint64_t)9 << 20) + 3;
  unsigned char *p = pattern(bytes, 4), *q = malloc(bytes);
  tps_memory *m = allocate(&w, 0, bytes), *n, *back = allocate(&w, 1, bytes);
  OK(tps_memory_allocate(far, bytes, &n, &w.err));
  OK(tps_memory_write(w.s[0], m, 0, p, bytes, &w.err));
  OK(tps_memory_copy(w.s[0], n, 0, m, 0, bytes, &w.err));
  OK(tps_memory_copy(w.s[1], back, 0, n, 0, bytes, &w.err));
  OK(tps_memory_read(w.s[1], back, 0, q, bytes, &w.err));
  assert_memory_equal(p, q, bytes);
  free(p);
  free(q);
  tps_memory_unref(m);
  tps_memory_unref(n);
  tps_memory_unref(back);
  fake_finish(gpu);
  close_world(&w);
  assert_int_equal(FAKE(gpu)->crimes, 0);
}

/* ---- events and order ---------------------------------------------------- */

static void events_order_streams(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_event *e = tps_event_new(w.context, 0);
  OK(tps_event_query(e, &w.err));
  OK(tps_event_wait(e, w.s[1], &w.err));
  OK(tps_event_synchronize(e, TPS_FOREVER, &w.err));
  assert_true(tps_event_driver_handle(e) == 0);
  tps_memory *m = allocate(&w, 0, 8), *n = allocate(&w, 1, 8);
  use(&w, 0, m);
  OK(tps_event_record(e, w.s[0], &w.err));
  OK(tps_event_wait(e, w.s[1], &w.err));
  use(&w, 1, n);
  assert_int_equal(tps_event_query(e, &w.err), TPS_NOT_READY);
  fake_step(w.s[1]->handle, 5);
  assert_int_equal(tps_stream_query(w.s[1], &w.err), TPS_NOT_READY);
  fake_step(w.s[0]->handle, 1);
  OK(tps_event_query(e, &w.err));
  fake_step(w.s[1]->handle, 1);
  OK(tps_stream_query(w.s[1], &w.err));
  tps_event_free(e);
  tps_memory_unref(m);
  tps_memory_unref(n);
  close_world(&w);
}

static void elapsed_tells_what_is_wrong(void **state) {
  (void)state;
  world w;
  double ms;
  open_world(&w, TPS_SIM);
  tps_event *plain = tps_event_new(w.context, 0);
  tps_event *a = tps_event_new(w.context, TPS_EVENT_TIMING);
  tps_event *b = tps_event_new(w.context, TPS_EVENT_TIMING);
  assert_int_equal(tps_event_elapsed(a, plain, &ms, &w.err), 400);
  assert_non_null(strstr(w.err.message, "end event was made without timing"));
  assert_int_equal(tps_event_elapsed(a, b, &ms, &w.err), 400);
  assert_non_null(strstr(w.err.message, "start event has not been recorded"));
  tps_memory *m = allocate(&w, 0, 8);
  OK(tps_event_record(a, w.s[0], &w.err));
  use(&w, 0, m);
  OK(tps_event_record(b, w.s[0], &w.err));
  assert_int_equal(tps_event_elapsed(a, b, &ms, &w.err), TPS_NOT_READY);
  assert_non_null(strstr(w.err.message, "end event is not finished"));
  fake_finish(w.device);
  OK(tps_event_elapsed(a, b, &ms, &w.err));
  tps_stream *far;
  OK(tps_stream_default(w.context, w.peer, &far, &w.err));
  assert_int_equal(tps_event_record(a, far, &w.err), TPS_MISUSE);
  tps_event *c = tps_event_new(w.context, TPS_EVENT_TIMING);
  OK(tps_event_record(c, far, &w.err));
  assert_int_equal(tps_event_elapsed(a, c, &ms, &w.err), 400);
  assert_non_null(strstr(w.err.message, "sim:"));
  tps_event_free(plain);
  tps_event_free(a);
  tps_event_free(b);
  tps_event_free(c);
  tps_memory_unref(m);
  close_world(&w);
}

static void streams_wait_for_streams(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m[4];
  for (int i = 0; i < 4; i++) m[i] = allocate(&w, i, 8);
  use(&w, 0, m[0]);
  OK(tps_stream_wait_stream(w.s[1], w.s[0], &w.err));
  OK(tps_stream_wait_stream(w.s[1], w.s[1], &w.err));
  use(&w, 1, m[1]);
  fake_step(w.s[1]->handle, 1);
  assert_int_equal(tps_stream_query(w.s[1], &w.err), TPS_NOT_READY);
  OK(tps_stream_barrier(w.s, 4, &w.err));
  use(&w, 2, m[2]);
  use(&w, 3, m[3]);
  fake_step(w.s[2]->handle, 1);
  assert_int_equal(tps_stream_query(w.s[2], &w.err), TPS_NOT_READY);
  fake_step(w.s[0]->handle, 1);
  fake_step(w.s[1]->handle, 1);
  fake_step(w.s[2]->handle, 1);
  OK(tps_stream_query(w.s[2], &w.err));
  tps_device *gpu;
  tps_stream *far;
  OK(tps_device_get(TPS_CUDA, FAKE_DEVICES - 1, &gpu, &w.err));
  OK(tps_stream_default(w.context, gpu, &far, &w.err));
  assert_int_equal(tps_stream_wait_stream(w.s[0], far, &w.err), TPS_MISUSE);
  assert_non_null(strstr(w.err.message, "cuda:"));
  for (int i = 0; i < 4; i++) tps_memory_unref(m[i]);
  close_world(&w);
}

static void waits_end_in_time(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 8);
  use(&w, 0, m);
  w.fake->stall = true;
  assert_int_equal(tps_stream_synchronize(w.s[0], 0, &w.err), TPS_NOT_READY);
  uint64_t start = tps_now_ns();
  assert_int_equal(tps_stream_synchronize(w.s[0], 30000000, &w.err),
                   TPS_NOT_READY);
  assert_in_range(tps_now_ns() - start, 29000000, 2000000000);
  assert_int_equal(tps_context_synchronize(w.context, 3000000, &w.err),
                   TPS_NOT_READY);
  w.context->interrupted = interrupt;
  stop_at = 3;
  assert_int_equal(
      tps_device_synchronize(w.context, w.device, TPS_FOREVER, &w.err),
      TPS_INTERRUPTED);
  assert_string_equal(w.err.message, "interrupted!");
  w.fake->stall = false;
  stop_at = 1000;
  OK(tps_context_synchronize(w.context, TPS_FOREVER, &w.err));
  tps_memory_unref(m);
  close_world(&w);
}

static void closed_streams_are_refused(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_stream_close(w.s[0]);
  tps_stream_close(w.s[0]);
  tps_memory *m;
  assert_int_equal(tps_memory_allocate(w.s[0], 8, &m, &w.err), TPS_MISUSE);
  assert_string_equal(w.err.message, "attempt to use a closed stream");
  assert_int_equal(tps_stream_query(w.s[0], &w.err), TPS_MISUSE);
  assert_int_equal(tps_stream_synchronize(w.s[0], 0, &w.err), TPS_MISUSE);
  assert_int_equal(tps_stream_wait_stream(w.s[1], w.s[0], &w.err), TPS_MISUSE);
  close_world(&w);
}

/* ---- modules ------------------------------------------------------------- */

static int fake_image(void *data, tps_device *device, tps_image_kind *kind,
                      const void **bytes, size_t *size, tps_error *err) {
  (void)device, (void)err;
  *kind = TPS_IMAGE_BINARY;
  *bytes = data;
  *size = strlen(data);
  return 0;
}

static tps_module *load(world *w, const char *names) {
  tps_image_source source = {
      .data = strdup(names), .image = fake_image, .release = free};
  tps_module *module = NULL;
  OK(tps_module_new(w->context, w->device, &source, &module, &w->err));
  return module;
}

static void fidelity_needs_ptx(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,");
  const tps_fidelity *f;
  assert_int_equal(tps_module_fidelity(module, &f, &w.err), TPS_NOT_SUPPORTED);
  assert_string_equal(w.err.message,
                      "fidelity is told from PTX, this module is a binary "
                      "image (CUBIN or fatbin)");
  tps_module_unref(module);
  close_world(&w);
}

static tps_kernel *kernel_of(world *w, tps_module *module, const char *name) {
  tps_kernel *kernel = NULL;
  OK(tps_kernel_find(module, name, &kernel, &w->err));
  return kernel;
}

static const tps_shape small = {.grid = {4, 1, 1}, .block = {64, 1, 1}};

static int launch(world *w, int i, tps_kernel *kernel, tps_memory *memory) {
  tps_prepared prepared;
  int code = tps_launch_prepare(kernel, w->device, &small, &prepared, &w->err);
  if (code != 0) return code;
  tps_use use = {memory, 0, memory != NULL ? memory->bytes : 0, TPS_ACCESS_BOTH,
                 NULL};
  return tps_launch_run(&prepared, w->s[i], &use, memory != NULL, &w->err);
}

static void modules_outlive_what_runs(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,scale,");
  tps_kernel *kernel = kernel_of(&w, module, "saxpy");
  tps_memory *m = allocate(&w, 0, 64);
  OK(launch(&w, 0, kernel, m));
  tps_module_close(module);
  assert_int_equal(launch(&w, 0, kernel, m), TPS_MISUSE);
  assert_string_equal(w.err.message, "attempt to use a closed kernel");
  tps_module_unref(module);
  tps_kernel_free(kernel);
  tps_context_reclaim(w.context);
  assert_int_equal(w.fake->unloads, 0);
  fake_finish(w.device);
  tps_context_reclaim(w.context);
  assert_int_equal(w.fake->unloads, 1);
  tps_memory_unref(m);
  close_world(&w);
}

static void variables_keep_their_module(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,");
  tps_memory *table;
  const tps_global_desc *desc;
  OK(tps_module_global(module, w.device, "table", &table, &desc, &w.err));
  assert_int_equal(desc->size, 4);
  assert_int_equal(
      tps_module_global(module, w.device, "tabel", &table, &desc, &w.err),
      TPS_NOT_FOUND);
  tps_module_close(module);
  tps_module_unref(module);
  tps_context_reclaim(w.context);
  assert_int_equal(w.fake->unloads, 0);
  tps_memory_unref(table);
  tps_context_reclaim(w.context);
  assert_int_equal(w.fake->unloads, 1);
  close_world(&w);
}

static void kernels_are_found_by_name(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module =
      load(&w, "_Z5scalePfi,saxpy,_Z5scalePdi,_ZN2ns5innerEv,");
  tps_kernel *kernel;
  assert_int_equal(tps_kernel_find(module, "sapxy", &kernel, &w.err),
                   TPS_NOT_FOUND);
  assert_non_null(
      strstr(w.err.message, "no kernel 'sapxy' in the module (it has 'saxpy'"));
  assert_int_equal(tps_kernel_find(module, "scale", &kernel, &w.err),
                   TPS_NOT_FOUND);
  assert_non_null(strstr(w.err.message, "'scale(float*, int)'"));
  assert_non_null(strstr(w.err.message, "'scale(double*, int)'"));
  tps_kernel_free(kernel_of(&w, module, "scale( float* ,int )"));
  tps_kernel_free(kernel_of(&w, module, "_Z5scalePdi"));
  tps_kernel_free(kernel_of(&w, module, "ns::inner"));
  tps_kernel_free(kernel_of(&w, module, "inner"));
  tps_module_unref(module);
  close_world(&w);
}

static void expect_limit(world *w, tps_kernel *kernel, tps_shape shape,
                         int code, const char *text) {
  tps_prepared prepared;
  assert_int_equal(
      tps_launch_prepare(kernel, w->device, &shape, &prepared, &w->err), code);
  if (strstr(w->err.message, text) == NULL)
    fail_msg("'%s' is not in '%s'", text, w->err.message);
}

static void limits_name_the_bound(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,greedy,");
  tps_kernel *k = kernel_of(&w, module, "saxpy");
  tps_kernel *greedy = kernel_of(&w, module, "greedy");
#define SHAPE(...) ((tps_shape){__VA_ARGS__})
  expect_limit(&w, k, SHAPE(.grid = {1, 1, 1}, .block = {2048, 1, 1}), 1,
               "kernel 'saxpy': block of 2048 threads (this kernel allows "
               "1024)");
  expect_limit(&w, k, SHAPE(.grid = {0, 1, 1}, .block = {1, 1, 1}), 1,
               "grid of 0 blocks in x (at least 1)");
  expect_limit(&w, k, SHAPE(.grid = {1, 65536, 1}, .block = {1, 1, 1}), 1,
               "grid of 65536 blocks in y (this device allows 65535)");
  expect_limit(&w, k, SHAPE(.grid = {1, 1, 1}, .block = {1, 1, 65}), 1,
               "block of 65 threads in z (this device allows 64)");
  expect_limit(
      &w, k,
      SHAPE(.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = 166912 - 1023), 1,
      "1024 bytes of static and 165889 of dynamic shared memory (this "
      "device allows 166912 a block)");
  expect_limit(&w, greedy, SHAPE(.grid = {1, 1, 1}, .block = {1024, 1, 1}), 701,
               "128 registers a thread for 1024 threads");
  expect_limit(
      &w, k,
      SHAPE(.grid = {9, 1, 1}, .block = {1024, 1, 1}, .cooperative = true), 720,
      "cooperative grid of 9 blocks (8 fit at once)");
  expect_limit(
      &w, k, SHAPE(.grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = {2, 1, 1}),
      801, "clusters need compute capability 9.0");
  int64_t best;
  OK(tps_kernel_best_block(k, w.device, &best, &w.err));
  assert_int_equal(best, 1024);
  int blocks;
  OK(tps_kernel_occupancy(k, w.device, 1025, 0, &blocks, &w.err));
  assert_int_equal(blocks, 0);
  tps_kernel_free(k);
  tps_kernel_free(greedy);
  tps_module_unref(module);
  close_world(&w);
}

static void images_are_told_apart(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module;
  const struct {
    const char *bytes;
    size_t size;
    const char *text;
  } bad[] = {{"", 0, "empty"},
             {"hello world, this", 17, "begins with 'hello world, thi'"},
             {"\x01\x02\x03", 3, "begins with 01 02 03"},
             {"\177ELF\2\1", 6, "a CUBIN that is truncated"},
             {"\x50\xed\x55\xba\1\0\x10\0\xff\0\0\0\0\0\0\0", 16,
              "a fatbin that is truncated"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(tps_module_load(w.context, w.device, bad[i].bytes,
                                     bad[i].size, false, &module, &w.err),
                     TPS_INVALID_IMAGE);
    if (strstr(w.err.message, bad[i].text) == NULL)
      fail_msg("'%s' is not in '%s'", bad[i].text, w.err.message);
  }
  close_world(&w);
}

static void other_devices_memory_is_refused(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_stream *far;
  tps_memory *m, *pinned;
  OK(tps_stream_default(w.context, w.peer, &far, &w.err));
  OK(tps_memory_allocate(far, 64, &m, &w.err));
  OK(tps_memory_pin(w.context, w.peer, 64, false, &pinned, &w.err));
  tps_module *module = load(&w, "saxpy,");
  tps_kernel *kernel = kernel_of(&w, module, "saxpy");
  assert_int_equal(launch(&w, 0, kernel, m), TPS_MISUSE);
  assert_non_null(strstr(w.err.message, "no peer access"));
  OK(launch(&w, 0, kernel, pinned));
  w.fake->peer = true;
  OK(launch(&w, 0, kernel, m));
  tps_memory_unref(m);
  tps_memory_unref(pinned);
  assert_int_equal(FAKE(w.peer)->frees, 0);
  fake_finish(w.device);
  assert_int_equal(FAKE(w.peer)->frees, 1);
  tps_kernel_free(kernel);
  tps_module_unref(module);
  close_world(&w);
  assert_int_equal(FAKE(w.peer)->crimes, 0);
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
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_device_stream *theirs;
  tps_stream *s = adopt(&w, &theirs), *t;
  uint64_t handle = (uint64_t)(uintptr_t)theirs;
  assert_ptr_equal(tps_stream_find(w.context, w.device, handle), s);
  assert_int_equal(tps_stream_driver_handle(s), handle);
  assert_int_equal(s->priority, -1);
  handle = tps_stream_driver_handle(w.s[2]);
  assert_ptr_equal(tps_stream_find(w.context, w.device, handle), w.s[2]);
  assert_null(tps_stream_find(w.context, w.device, 4711));
  assert_int_equal(tps_stream_adopt(w.context, w.device, 4711, &t, &w.err),
                   TPS_INVALID_HANDLE);
  tps_stream_close(s);
  assert_null(
      tps_stream_find(w.context, w.device, (uint64_t)(uintptr_t)theirs));
  tps_stream_unref(s);
  assert_int_equal(w.fake->adopted, 0);
  assert_false(((fake_stream *)theirs)->destroyed);
  w.device->face->stream_destroy(w.device, theirs);
  close_world(&w);
}

/* Its owner destroys the stream while we still hold it: from then on nothing may
 * ask it, and memory is freed after its work all the same. */
static void foreign_uses_are_marked_at_once(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_device_stream *theirs;
  tps_stream *s = adopt(&w, &theirs);
  tps_memory *m = allocate(&w, 0, 100), *own = NULL;
  use(&w, 0, m);
  fake_finish(w.device);
  OK(tps_memory_fill(s, m, 0, 7, 1, m->bytes, &w.err));
  OK(tps_memory_allocate(s, 50, &own, &w.err));
  OK(tps_memory_fill(s, own, 0, 7, 1, 50, &w.err));
  w.device->face->stream_destroy(w.device, theirs);
  tps_memory_unref(m);
  tps_memory_unref(own);
  w.fake->stall = true;
  assert_int_equal(tps_context_synchronize(w.context, 1000, &w.err),
                   TPS_NOT_READY);
  w.fake->stall = false;
  tps_context_reclaim(w.context);
  assert_int_equal(w.fake->frees, 0);
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 2);
  OK(tps_context_synchronize(w.context, TPS_FOREVER, &w.err));
  tps_stream_unref(s);
  close_world(&w);
}

static void forgotten_streams_keep_their_end(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_device_stream *theirs;
  tps_stream *s = adopt(&w, &theirs);
  tps_memory *m = allocate(&w, 0, 100);
  fake_finish(w.device);
  OK(tps_memory_fill(s, m, 0, 7, 1, m->bytes, &w.err));
  tps_stream_unref(s);
  w.device->face->stream_destroy(w.device, theirs);
  tps_memory_unref(m);
  assert_int_equal(w.fake->frees, 0);
  fake_finish(w.device);
  assert_int_equal(w.fake->frees, 1);
  close_world(&w);
}

/* ---- callbacks ----------------------------------------------------------- */

/* The token of the next one due, 0 for none. */
static uint64_t due(world *w) {
  uint64_t token;
  return tps_callback_take(w->context, &token) ? token : 0;
}

static void callbacks_are_due_in_order(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  assert_false(tps_callback_any(w.context));
  assert_int_equal(due(&w), 0);
  use(&w, 0, m);
  OK(tps_callback_queue(w.s[0], 1, &w.err));
  use(&w, 0, m);
  OK(tps_callback_queue(w.s[0], 2, &w.err));
  OK(tps_callback_queue(w.s[1], 3, &w.err));
  assert_int_equal(due(&w), 3);
  assert_int_equal(due(&w), 0);
  assert_true(tps_callback_any(w.context));
  tps_stream_close(w.s[0]); /* keeps them */
  fake_finish(w.device);
  assert_int_equal(due(&w), 1);
  assert_int_equal(due(&w), 2);
  assert_false(tps_callback_any(w.context));
  assert_int_equal(tps_callback_queue(w.s[0], 4, &w.err), TPS_MISUSE);
  assert_false(tps_callback_any(w.context));
  tps_memory_unref(m);
  close_world(&w);
}

static void contexts_close_with_callbacks_queued(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  OK(tps_callback_queue(w.s[0], 1, &w.err)); /* due, never taken */
  use(&w, 0, m);
  OK(tps_callback_queue(w.s[0], 2, &w.err)); /* delivered to nobody */
  tps_memory_unref(m);
  tps_context_close(w.context);
  drop_streams(&w);
  fake_finish(w.device);
  check_clean(&w);
}

static void faults_lose_callbacks(void **state) {
  (void)state;
  world w;
  uint64_t token;
  open_world(&w, TPS_SIM);
  tps_memory *m = allocate(&w, 0, 100);
  OK(tps_callback_queue(w.s[1], 1, &w.err)); /* due */
  use(&w, 0, m);
  OK(tps_callback_queue(w.s[0], 2, &w.err));
  assert_false(tps_callback_lose(w.context, &token, &w.err));
  tps_callback_look(w.context);
  assert_false(tps_callback_lose(w.context, &token, &w.err));
  w.fake->fault = TPS_ILLEGAL_ADDRESS;
  assert_false(tps_callback_lose(w.context, &token, &w.err));
  tps_callback_look(w.context); /* notices */
  assert_true(tps_callback_lose(w.context, &token, &w.err));
  assert_int_equal(token, 1);
  assert_int_equal(w.err.code, TPS_ILLEGAL_ADDRESS);
  assert_true(tps_callback_lose(w.context, &token, &w.err));
  assert_int_equal(token, 2);
  assert_false(tps_callback_lose(w.context, &token, &w.err));
  assert_int_equal(due(&w), 0);
  assert_false(tps_callback_any(w.context));
  assert_int_equal(tps_callback_queue(w.s[0], 3, &w.err), TPS_ILLEGAL_ADDRESS);
  tps_memory_unref(m);
  drop_streams(&w);
  tps_context_close(w.context);
  assert_int_equal(w.fake->crimes, 0);
}

/* ---- faults -------------------------------------------------------------- */

static void a_fault_names_its_launch(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,scale,");
  tps_kernel *saxpy = kernel_of(&w, module, "saxpy");
  tps_kernel *scale = kernel_of(&w, module, "scale");
  w.context->site = (tps_site){"early.lua", 3};
  OK(launch(&w, 0, scale, NULL));
  OK(tps_stream_synchronize(w.s[0], TPS_FOREVER, &w.err));
  w.context->site = (tps_site){"script.lua", 12};
  OK(launch(&w, 0, saxpy, NULL));
  OK(launch(&w, 1, saxpy, NULL));
  w.fake->fault = TPS_ILLEGAL_ADDRESS;
  assert_int_equal(tps_stream_query(w.s[1], &w.err), 700);
  assert_string_equal(w.err.kernel, "saxpy");
  assert_string_equal(w.err.where, "script.lua:12");
  assert_non_null(strstr(w.err.message, "launched at script.lua:12"));
  assert_int_equal(tps_stream_query(w.s[0], &w.err), 700);
  assert_non_null(strstr(w.err.message, "device cuda:"));
  assert_non_null(strstr(w.err.message, "has faulted: an illegal memory"));
  tps_memory *m;
  assert_int_equal(tps_memory_allocate(w.s[0], 8, &m, &w.err), 700);
  assert_int_equal(launch(&w, 0, saxpy, NULL), 700);
  assert_int_equal(tps_context_synchronize(w.context, 0, &w.err), 700);
  tps_kernel_free(saxpy);
  tps_kernel_free(scale);
  tps_module_unref(module);
  drop_streams(&w);
  tps_context_close(w.context);
  assert_int_equal(w.fake->live_streams, 0);
  assert_int_equal(w.fake->live_events, 0);
  assert_int_equal(w.fake->crimes, 0);
}

static void a_fault_names_several(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,scale,");
  tps_kernel *saxpy = kernel_of(&w, module, "saxpy");
  tps_kernel *scale = kernel_of(&w, module, "scale");
  for (int i = 0; i < 12; i++) {
    w.context->site = (tps_site){"a.lua", i + 1};
    OK(launch(&w, i % 4, i % 2 ? saxpy : scale, NULL));
  }
  w.fake->fault = TPS_ASSERT;
  assert_int_equal(tps_stream_synchronize(w.s[1], TPS_FOREVER, &w.err), 710);
  assert_string_equal(w.err.where, "");
  assert_non_null(
      strstr(w.err.message, "in one of: scale at a.lua:1, saxpy at a.lua:2"));
  assert_non_null(strstr(w.err.message, "and 4 more"));
  tps_kernel_free(saxpy);
  tps_kernel_free(scale);
  tps_module_unref(module);
  drop_streams(&w);
  tps_context_close(w.context);
}

/* Buffers, staging, pinned memory and modules after a fault: no wait, no leak.
 */
static void dropping_after_a_fault_is_silent(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,");
  tps_kernel *kernel = kernel_of(&w, module, "saxpy");
  tps_memory *m = allocate(&w, 0, 64), *n = allocate(&w, 1, 64), *pinned, *old;
  OK(tps_memory_pin(w.context, w.device, 100, false, &pinned, &w.err));
  OK(tps_memory_pin(w.context, w.device, 100, false, &old, &w.err));
  OK(tps_memory_write(w.s[0], m, 0, "abc", 3, &w.err));
  use(&w, 1, m);
  use(&w, 1, pinned);
  use(&w, 0, old);
  tps_memory_unref(old);
  tps_event *e = tps_event_new(w.context, TPS_EVENT_TIMING);
  OK(tps_event_record(e, w.s[0], &w.err));
  OK(launch(&w, 2, kernel, m));
  w.context->blocking = true;
  w.fake->fault = TPS_LAUNCH_FAILED;
  assert_int_equal(tps_event_query(e, &w.err), 719);
  int waits = w.fake->waits;
  tps_memory_unref(m);
  tps_stream_close(w.s[1]);
  tps_memory_unref(n);
  tps_memory_unref(pinned);
  tps_event_free(e);
  tps_kernel_free(kernel);
  tps_module_unref(module);
  drop_streams(&w);
  tps_context_close(w.context);
  assert_int_equal(w.fake->waits, waits);
  assert_int_equal(w.fake->live_streams, 0);
  assert_int_equal(w.fake->live_events, 0);
  assert_int_equal(w.fake->unpins, 0);
}

static void blocking_finds_the_launch(void **state) {
  (void)state;
  world w;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,");
  tps_kernel *kernel = kernel_of(&w, module, "saxpy");
  w.context->blocking = true;
  w.fake->automatic = true;
  for (int i = 0; i < 3; i++) {
    w.context->site = (tps_site){"b.lua", i + 1};
    OK(launch(&w, i, kernel, NULL));
  }
  w.fake->automatic = false;
  w.fake->stall = true;
  w.context->interrupted = interrupt;
  stop_at = 2;
  w.context->site.line = 77;
  assert_int_equal(launch(&w, 3, kernel, NULL), TPS_INTERRUPTED);
  w.fake->fault = TPS_ILLEGAL_ADDRESS;
  assert_int_equal(tps_stream_query(w.s[3], &w.err), 700);
  assert_string_equal(w.err.where, "b.lua:77");
  tps_kernel_free(kernel);
  tps_module_unref(module);
  drop_streams(&w);
  tps_context_close(w.context);
}

/* ---- contexts ------------------------------------------------------------ */

static void a_context_closes_without_waiting(void **state) {
  (void)state;
  world w, next;
  open_world(&w, TPS_CUDA);
  tps_module *module = load(&w, "saxpy,");
  tps_kernel *kernel = kernel_of(&w, module, "saxpy");
  tps_memory *m = allocate(&w, 0, 64), *pinned;
  OK(tps_memory_pin(w.context, w.device, 100, false, &pinned, &w.err));
  OK(tps_memory_write(w.s[0], m, 0, "abc", 3, &w.err));
  use(&w, 1, pinned);
  OK(launch(&w, 2, kernel, m));
  tps_context_close(w.context); /* before its objects, as a state may do */
  tps_kernel_free(kernel);
  tps_module_unref(module);
  tps_memory_unref(pinned);
  tps_memory_unref(m);
  drop_streams(&w);
  assert_int_equal(w.fake->waits, 0);
  assert_int_equal(w.fake->crimes, 0);
  assert_int_equal(w.fake->live_streams, 0);
  assert_int_equal(w.fake->unloads, 0);
  assert_true(w.fake->live_pinned > 0);
  fake_finish(w.device);
  next_ordinal[TPS_CUDA] -=
      2; /* the same device again: it looks after what was left */
  open_world(&next, TPS_CUDA);
  tps_context_reclaim(next.context);
  assert_int_equal(w.fake->unloads, 1);
  close_world(&next);
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
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  tps_observer observer = {
      .queued = see, .waited = see_wait, .memory = see_memory};
  assert_false(tps_observing());
  tps_observer_add(&observer);
  tps_memory *m = allocate(&w, 0, 8);
  use(&w, 0, m);
  use(&w, 1, m); /* the runtime's own wait is not the script's */
  OK(tps_stream_wait_stream(w.s[2], w.s[1], &w.err));
  OK(tps_stream_synchronize(w.s[2], TPS_FOREVER, &w.err));
  w.context->site.line = 5;
  tps_memory_unref(m);
  assert_int_equal(freed_at, 0);
  m = allocate(&w, 0, 8);
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
  close_world(&w);
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
  (void)state;
  world w;
  open_world(&w, TPS_SIM);
  w.fake->automatic = true;
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, run_thread, w.device);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_stream_frees_there),
      cmocka_unit_test(several_streams_are_waited_for),
      cmocka_unit_test(filled_here_used_there_frees_there),
      cmocka_unit_test(a_known_wait_is_not_repeated),
      cmocka_unit_test(closed_streams_keep_their_end),
      cmocka_unit_test(without_events_frees_are_put_off),
      cmocka_unit_test(escaped_memory_waits_for_all),
      cmocka_unit_test(many_streams_are_forgotten_when_done),
      cmocka_unit_test(a_hundred_busy_streams),
      cmocka_unit_test(other_devices_streams_count),
      cmocka_unit_test(zero_bytes_need_no_driver),
      cmocka_unit_test(out_of_memory_says_how_much),
      cmocka_unit_test(ranges_are_checked),
      cmocka_unit_test(pinned_blocks_wait_and_come_back),
      cmocka_unit_test(shared_memory_waits_for_a_quiet_device),
      cmocka_unit_test(pinned_copies_in_stream_order),
      cmocka_unit_test(big_writes_go_in_pieces),
      cmocka_unit_test(small_writes_share_events),
      cmocka_unit_test(a_full_ring_waits_and_can_be_interrupted),
      cmocka_unit_test(an_interrupted_read_leaves_staging_sound),
      cmocka_unit_test(kinds_copy_through_the_host),
      cmocka_unit_test(events_order_streams),
      cmocka_unit_test(elapsed_tells_what_is_wrong),
      cmocka_unit_test(streams_wait_for_streams),
      cmocka_unit_test(waits_end_in_time),
      cmocka_unit_test(closed_streams_are_refused),
      cmocka_unit_test(fidelity_needs_ptx),
      cmocka_unit_test(modules_outlive_what_runs),
      cmocka_unit_test(variables_keep_their_module),
      cmocka_unit_test(kernels_are_found_by_name),
      cmocka_unit_test(limits_name_the_bound),
      cmocka_unit_test(images_are_told_apart),
      cmocka_unit_test(other_devices_memory_is_refused),
      cmocka_unit_test(foreign_streams_are_found_and_forgotten),
      cmocka_unit_test(foreign_uses_are_marked_at_once),
      cmocka_unit_test(forgotten_streams_keep_their_end),
      cmocka_unit_test(callbacks_are_due_in_order),
      cmocka_unit_test(contexts_close_with_callbacks_queued),
      cmocka_unit_test(faults_lose_callbacks),
      cmocka_unit_test(a_fault_names_its_launch),
      cmocka_unit_test(a_fault_names_several),
      cmocka_unit_test(dropping_after_a_fault_is_silent),
      cmocka_unit_test(blocking_finds_the_launch),
      cmocka_unit_test(a_context_closes_without_waiting),
      cmocka_unit_test(devices_are_told_by_name),
      cmocka_unit_test(observers_see_what_the_script_queues),
      cmocka_unit_test(two_threads),
  };
  return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
