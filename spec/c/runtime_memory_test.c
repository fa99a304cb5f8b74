/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The runtime's memory against a device that runs only what it is told to and judges
 * every call: frees come after all uses, nothing that could wait is called from a
 * drop, everything made is destroyed. */
#include "world.h"

/* ---- safe frees ---------------------------------------------------------- */

static void one_stream_frees_there(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100);
  use(w, 0, m);
  tps_memory_unref(m);
  assert_int_equal(w->fake->records, 0);
  assert_int_equal(w->fake->frees, 0);
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 1);
  assert_int_equal(w->fake->live_streams, 4);
  close_world(w);
}

static void several_streams_are_waited_for(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100);
  use(w, 0, m);
  use(w, 1, m);
  use(w, 2, m);
  use(w, 0, m);
  tps_memory_unref(m);
  assert_int_equal(w->fake->waits, 0);
  fake_step(w->s[1]->handle, 1); /* can't run: the filling comes first */
  fake_step(w->s[0]->handle, 1);
  fake_step(w->s[2]->handle, 1);
  fake_step(w->s[0]->handle, 1);
  assert_int_equal(w->fake->frees, 0);
  fake_step(w->s[1]->handle, 1);
  assert_int_equal(w->fake->frees, 1);
  close_world(w);
}

static void filled_here_used_there_frees_there(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100);
  use(w, 0, m);
  use(w, 1, m);
  use(w, 1, m);
  assert_int_equal(w->fake->records, 1);
  tps_memory_unref(m);
  assert_int_equal(w->fake->records, 1);
  assert_int_equal(w->fake->live_streams, 4);
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 1);
  close_world(w);
}

static void a_known_wait_is_not_repeated(void **state) {
  world *w = *state;
  tps_memory *a = allocate(w, 0, 8), *b = allocate(w, 0, 8);
  use(w, 1, a);
  use(w, 1, b);
  assert_int_equal(w->fake->event_waits, 1);
  fake_finish(w->device);
  OK(tps_stream_query(w->s[0], &w->err));
  use(w, 2, a); /* the home stream is known to be done */
  assert_int_equal(w->fake->event_waits, 1);
  tps_memory_unref(a);
  tps_memory_unref(b);
  close_world(w);
}

static void closed_streams_keep_their_end(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100), *n = allocate(w, 0, 100);
  use(w, 0, m);
  use(w, 1, m);
  fake_stream *last = (fake_stream *)w->s[1]->handle;
  tps_stream_close(w->s[0]);
  tps_stream_close(w->s[1]);
  assert_int_equal(w->fake->live_streams, 2);
  use(w, 2, n); /* allocated on a closed stream */
  tps_memory_unref(m);
  tps_memory_unref(n);
  drop_streams(w);
  assert_int_equal(w->fake->waits, 0);
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 2);
  assert_int_equal(last->frees, 0);
  close_world(w);
}

static void without_events_frees_are_put_off(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100);
  use(w, 0, m);
  use(w, 1, m);
  use(w, 0, m);
  tps_context_reclaim(w->context);
  w->fake->busy_pool = true; /* events can't be recorded now */
  tps_memory_unref(m);
  tps_stream_close(w->s[1]); /* its driver stream has to be kept */
  tps_memory_stats stats;
  tps_memory_get_stats(w->context, w->device, &stats);
  assert_int_equal(stats.pending_count, 1);
  w->fake->busy_pool = false;
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 0);
  tps_context_reclaim(w->context);
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 1);
  close_world(w);
}

static void escaped_memory_waits_for_all(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100), *other = allocate(w, 3, 100);
  tps_memory_expose(m);
  fake_finish(w->device);
  use(w, 3, other);
  tps_memory_unref(m);
  fake_step(w->s[0]->handle, 9);
  assert_int_equal(w->fake->frees, 0);
  fake_step(w->s[3]->handle, 1);
  assert_int_equal(w->fake->frees, 1);
  tps_memory_unref(other);
  close_world(w);
}

static void many_streams_are_forgotten_when_done(void **state) {
  world *w = *state;
  w->fake->automatic = true;
  tps_memory *m = allocate(w, 0, 100);
  for (int i = 0; i < 1000; i++) {
    tps_stream *s;
    OK(tps_stream_open(w->context, w->device, 0, false, &s, &w->err));
    OK(tps_memory_fill(s, m, 0, 1, 1, 100, &w->err));
    tps_stream_unref(s);
  }
  assert_int_equal(w->fake->live_streams, 4);
  assert_in_range(w->fake->live_events, 1, 40);
  tps_memory_unref(m);
  close_world(w);
}

static void a_hundred_busy_streams(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 100);
  tps_stream *s[100];
  for (int i = 0; i < 100; i++) {
    OK(tps_stream_open(w->context, w->device, 0, false, &s[i], &w->err));
    OK(tps_memory_fill(s[i], m, 0, 1, 1, 100, &w->err));
    if (i % 2) tps_stream_close(s[i]);
  }
  tps_memory_unref(m);
  for (int i = 0; i < 100; i++) tps_stream_unref(s[i]);
  assert_int_equal(w->fake->frees, 0);
  fake_finish(w->device);
  assert_int_equal(w->fake->frees, 1);
  close_world(w);
}

static void other_devices_streams_count(void **state) {
  world *w = *state;
  tps_stream *far;
  OK(tps_stream_open(w->context, w->peer, 0, false, &far, &w->err));
  tps_memory *m = allocate(w, 0, 64), *n = NULL;
  OK(tps_memory_allocate(far, 64, &n, &w->err));
  use(w, 0, m);
  OK(tps_memory_copy(far, n, 0, m, 0, 64, &w->err));
  tps_memory_unref(m);
  fake_step(w->s[0]->handle, 9);
  assert_int_equal(w->fake->frees, 0);
  fake_step(far->handle, 1);
  assert_int_equal(w->fake->frees, 1);
  tps_memory_unref(n);
  tps_stream_unref(far);
  fake_finish(w->peer);
  close_world(w);
  assert_int_equal(FAKE(w->peer)->crimes, 0);
  assert_int_equal(FAKE(w->peer)->live_streams, 0);
  assert_int_equal(FAKE(w->peer)->live_events, 0);
}

static void zero_bytes_need_no_driver(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 0);
  assert_true(m->address == 0);
  OK(tps_memory_fill(w->s[0], m, 0, 1, 4, 0, &w->err));
  OK(tps_memory_write(w->s[0], m, 0, "", 0, &w->err));
  OK(tps_memory_copy(w->s[0], m, 0, m, 0, 0, &w->err));
  tps_memory_unref(m);
  close_world(w);
}

static void out_of_memory_says_how_much(void **state) {
  world *w = *state;
  tps_memory *m;
  assert_int_equal(tps_memory_allocate(w->s[0], (uint64_t)1 << 50, &m, &w->err),
                   2);
  assert_non_null(strstr(w->err.message, "1125899906842624 bytes asked for"));
  assert_non_null(strstr(w->err.message, "1000 free of 4000"));
  close_world(w);
}

static void ranges_are_checked(void **state) {
  world *w = *state;
  tps_memory *m = allocate(w, 0, 16);
  char b[32] = {0};
  assert_int_equal(tps_memory_write(w->s[0], m, 8, b, 9, &w->err), TPS_MISUSE);
  assert_int_equal(tps_memory_read(w->s[0], m, 17, b, 0, &w->err), TPS_MISUSE);
  assert_int_equal(
      tps_memory_fill(w->s[0], m, 8, 0, 8, UINT64_MAX / 4, &w->err),
      TPS_MISUSE);
  assert_int_equal(tps_memory_copy(w->s[0], m, 4, m, 0, 8, &w->err),
                   TPS_MISUSE);
  assert_non_null(strstr(w->err.message, "overlap"));
  OK(tps_memory_copy(w->s[0], m, 8, m, 0, 8, &w->err));
  tps_memory_unref(m);
  close_world(w);
}

/* ---- pinned memory ------------------------------------------------------- */

static void pinned_blocks_wait_and_come_back(void **state) {
  world *w = *state;
  tps_memory *m = NULL, *n = NULL;
  OK(tps_memory_pin(w->context, w->device, 5000, false, &m, &w->err));
  for (int i = 0; i < 5000; i++)
    assert_int_equal(((unsigned char *)m->host)[i], 0);
  void *host = m->host;
  use(w, 0, m);
  use(w, 1, m);
  tps_memory_unref(m);
  OK(tps_memory_pin(w->context, w->device, 5000, false, &n, &w->err));
  assert_ptr_not_equal(n->host, host);
  fake_finish(w->device);
  OK(tps_memory_pin(w->context, w->device, 5100, false, &m, &w->err));
  assert_ptr_equal(m->host, host);
  for (int i = 0; i < 5100; i++)
    assert_int_equal(((unsigned char *)m->host)[i], 0);
  assert_int_equal(w->fake->unpins, 0);
  tps_memory_unref(m);
  tps_memory_unref(n);
  close_world(w);
}

/* Given back when nothing runs, since the driver may wait there. */
static void shared_memory_waits_for_a_quiet_device(void **state) {
  world *w = *state;
  char handle[TPS_MEMORY_IPC_BYTES], byte = 0;
  tps_memory *m, *theirs, *n = allocate(w, 1, 64);
  OK(tps_memory_share(w->context, w->device, 100, &m, &w->err));
  OK(tps_memory_export(m, handle, &w->err));
  assert_int_equal(tps_memory_export(n, handle, &w->err), TPS_MISUSE);
  OK(tps_memory_import(w->context, w->device, handle, &theirs, &w->err));
  assert_int_equal(theirs->bytes, 64);
  assert_int_equal(tps_memory_export(theirs, handle, &w->err), TPS_MISUSE);
  OK(tps_memory_write(w->s[0], m, 3, "x", 1, &w->err));
  OK(tps_memory_read(w->s[0], theirs, 3, &byte, 1, &w->err));
  assert_int_equal(byte, 'x');
  use(w, 0, m);
  use(w, 1, theirs);
  use(w, 1, n);
  tps_memory_unref(m);
  tps_memory_unref(theirs);
  tps_context_reclaim(w->context);
  assert_int_equal(w->fake->live_shared, 1);
  assert_int_equal(w->fake->live_imported, 1);
  fake_finish(w->device);
  tps_context_reclaim(w->context);
  assert_int_equal(w->fake->live_shared, 0);
  assert_int_equal(w->fake->live_imported, 0);
  OK(tps_memory_share(w->context, w->device, 100, &m, &w->err));
  tps_memory_unref(m);
  tps_memory_unref(n);
  fake_device *fake = w->fake;
  close_world(w);
  assert_int_equal(fake->live_shared, 0);
}

static void pinned_copies_in_stream_order(void **state) {
  world *w = *state;
  tps_memory *a, *b, *d = allocate(w, 0, 64);
  OK(tps_memory_pin(w->context, w->device, 64, false, &a, &w->err));
  OK(tps_memory_pin(w->context, w->device, 64, false, &b, &w->err));
  char text[] = "through the ring, to pinned, to device, to pinned";
  OK(tps_memory_write(w->s[0], a, 0, text, sizeof text, &w->err));
  assert_int_equal(*(char *)a->host, 0);
  OK(tps_memory_copy(w->s[0], d, 0, a, 0, 64, &w->err));
  OK(tps_memory_copy(w->s[0], b, 0, d, 0, 64, &w->err));
  char back[64];
  OK(tps_memory_read(w->s[0], b, 0, back, 64, &w->err));
  assert_string_equal(back, text);
  tps_memory_unref(a);
  tps_memory_unref(b);
  tps_memory_unref(d);
  close_world(w);
}

/* ---- staging ------------------------------------------------------------- */

static unsigned char *pattern(uint64_t bytes, unsigned seed) {
  unsigned char *p = malloc(bytes);
  for (uint64_t i = 0; i < bytes; i++)
    p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
  return p;
}

static void big_writes_go_in_pieces(void **state) {
  world *w = *state;
  uint64_t bytes = ((uint64_t)70 << 20) + 77;
  unsigned char *p = pattern(bytes, 1), *q = malloc(bytes);
  tps_memory *m = allocate(w, 0, bytes);
  OK(tps_memory_write(w->s[0], m, 0, p, bytes, &w->err));
  assert_true(w->fake->waits > 0);
  OK(tps_memory_read(w->s[0], m, 0, q, bytes, &w->err));
  assert_memory_equal(p, q, bytes);
  free(p);
  free(q);
  tps_memory_unref(m);
  close_world(w);
}

static void small_writes_share_events(void **state) {
  world *w = *state;
  w->fake->automatic = true;
  enum { N = 30000, SIZE = 1000 };
  tps_memory *m[3];
  unsigned char *p = pattern(SIZE * 3, 2), q[SIZE], scratch[SIZE];
  for (int i = 0; i < 3; i++) m[i] = allocate(w, i, SIZE);
  for (int i = 0; i < N; i++) {
    memcpy(scratch, p + i % 7, SIZE);
    OK(tps_memory_write(w->s[i % 3], m[i % 3], 0, scratch, SIZE, &w->err));
    memset(scratch, 0, SIZE);
  }
  assert_in_range(w->fake->records, 1, 3 * (N * SIZE / (1 << 20) + 2));
  for (int i = 0; i < 3; i++) {
    OK(tps_memory_read(w->s[i], m[i], 0, q, SIZE, &w->err));
    assert_memory_equal(q, p + (N - 3 + i) % 7, SIZE);
    tps_memory_unref(m[i]);
  }
  free(p);
  close_world(w);
}

/* Staging whose copies have not run must not be written again. */
static void a_full_ring_waits_and_can_be_interrupted(void **state) {
  world *w = *state;
  uint64_t bytes = (uint64_t)6 << 20;
  tps_memory *m[4];
  unsigned char *p[4], *q = malloc(bytes);
  w->fake->stall = true;
  for (int i = 0; i < 2; i++) {
    m[i] = allocate(w, i, bytes);
    p[i] = pattern(bytes, (unsigned)i);
    OK(tps_memory_write(w->s[i], m[i], 0, p[i], bytes, &w->err));
    tps_stream_close(w->s[i]);
  }
  m[2] = allocate(w, 2, bytes);
  p[2] = pattern(bytes, 9);
  interrupt_at(w, 2);
  assert_int_equal(tps_memory_write(w->s[2], m[2], 0, p[2], bytes, &w->err),
                   TPS_INTERRUPTED);
  interrupt_at(w, 1000000);
  w->fake->stall = false;
  OK(tps_memory_write(w->s[2], m[2], 0, p[2], bytes, &w->err));
  for (int i = 0; i < 3; i++) {
    OK(tps_memory_read(w->s[3], m[i], 0, q, bytes, &w->err));
    assert_memory_equal(p[i], q, bytes);
    tps_memory_unref(m[i]);
    free(p[i]);
  }
  free(q);
  close_world(w);
}

static void an_interrupted_read_leaves_staging_sound(void **state) {
  world *w = *state;
  uint64_t bytes = (uint64_t)3 << 20;
  unsigned char *p = pattern(bytes, 3), *q = malloc(bytes);
  tps_memory *m = allocate(w, 0, bytes), *n = allocate(w, 1, bytes);
  OK(tps_memory_write(w->s[0], m, 0, p, bytes, &w->err));
  OK(tps_memory_fill(w->s[1], n, 0, 0, 1, bytes, &w->err));
  w->fake->stall = true;
  interrupt_at(w, 2);
  assert_int_equal(tps_memory_read(w->s[1], n, 0, q, bytes, &w->err),
                   TPS_INTERRUPTED);
  interrupt_at(w, 1000000);
  w->fake->stall = false;
  OK(tps_memory_read(w->s[0], m, 0, q, bytes, &w->err));
  assert_memory_equal(p, q, bytes);
  free(p);
  free(q);
  tps_memory_unref(m);
  tps_memory_unref(n);
  close_world(w);
}

static void kinds_copy_through_the_host(void **state) {
  world *w = *state;
  tps_device *gpu;
  tps_stream *far;
  OK(tps_device_get(TPS_CUDA, FAKE_DEVICES - 1, &gpu, &w->err));
  OK(tps_stream_default(w->context, gpu, &far, &w->err));
  uint64_t bytes = ((uint64_t)9 << 20) + 3;
  unsigned char *p = pattern(bytes, 4), *q = malloc(bytes);
  tps_memory *m = allocate(w, 0, bytes), *n, *back = allocate(w, 1, bytes);
  OK(tps_memory_allocate(far, bytes, &n, &w->err));
  OK(tps_memory_write(w->s[0], m, 0, p, bytes, &w->err));
  OK(tps_memory_copy(w->s[0], n, 0, m, 0, bytes, &w->err));
  OK(tps_memory_copy(w->s[1], back, 0, n, 0, bytes, &w->err));
  OK(tps_memory_read(w->s[1], back, 0, q, bytes, &w->err));
  assert_memory_equal(p, q, bytes);
  free(p);
  free(q);
  tps_memory_unref(m);
  tps_memory_unref(n);
  tps_memory_unref(back);
  fake_finish(gpu);
  close_world(w);
  assert_int_equal(FAKE(gpu)->crimes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      on_sim(one_stream_frees_there),
      on_sim(several_streams_are_waited_for),
      on_sim(filled_here_used_there_frees_there),
      on_sim(a_known_wait_is_not_repeated),
      on_sim(closed_streams_keep_their_end),
      on_sim(without_events_frees_are_put_off),
      on_sim(escaped_memory_waits_for_all),
      on_sim(many_streams_are_forgotten_when_done),
      on_sim(a_hundred_busy_streams),
      on_cuda(other_devices_streams_count),
      on_sim(zero_bytes_need_no_driver),
      on_sim(out_of_memory_says_how_much),
      on_sim(ranges_are_checked),
      on_sim(pinned_blocks_wait_and_come_back),
      on_cuda(shared_memory_waits_for_a_quiet_device),
      on_sim(pinned_copies_in_stream_order),
      on_sim(big_writes_go_in_pieces),
      on_sim(small_writes_share_events),
      on_sim(a_full_ring_waits_and_can_be_interrupted),
      on_sim(an_interrupted_read_leaves_staging_sound),
      on_sim(kinds_copy_through_the_host),
  };
  return cmocka_run_group_tests_name("runtime memory", tests, NULL, NULL);
}
