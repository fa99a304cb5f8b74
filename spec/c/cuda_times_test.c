/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * src/cuda/times.c without a GPU: the functions of cudart that it calls are here,
 * over a made-up device whose clock runs a little faster than the host's, with its
 * zero somewhere else, and ticks of 32 ns. Both clocks are the test's, so what is
 * told of an operation can be compared with when it really ran.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#ifdef TPS_NO_CUDA

static void needs_the_toolkit(void **state) {
  (void)state;
  skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(needs_the_toolkit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include "base/clock.h"
#include "cuda/times.h"

/* ---- the clocks ---------------------------------------------------------- */

#define DRIFT 80e-6
#define BEGAN 5000000000.0

static double host_ns; /* the host's now */

static double device_clock(double at) {
  double ns = 7e12 + (at - BEGAN) * (1 + DRIFT);
  return (double)((int64_t)(ns / 32) * 32);
}

/* In place of the C library's. */
int clock_gettime(clockid_t id, struct timespec *t) {
  (void)id;
  host_ns += 30;
  t->tv_sec = (time_t)(host_ns / 1e9);
  t->tv_nsec = (long)(host_ns - (double)t->tv_sec * 1e9);
  return 0;
}

/* ---- the device ---------------------------------------------------------- */

typedef struct event {
  double at; /* of the host's clock */
  bool recorded, own;
} event;

typedef struct stream {
  double free_at;
  bool own; /* made by what is tested */
} stream;

static cudaError_t fault;    /* that every call answers with */
static bool captures;        /* every stream is captured */
static unsigned events_open; /* made and not destroyed */
static double turn_ns;       /* until others have had the device */
/* While it reads the clocks the host sleeps so long, so much of it before the
 * device's is read. */
static double pause_ns, part_ns;
static double held_until; /* streams of the timers' own come no further */

/* When the stream comes to what is queued now. */
static double reached(stream *s) {
  double at = host_ns + 2000 + turn_ns;
  if (s->own) at += part_ns;
  if (s->own && held_until > at) at = held_until;
  return s->free_at > at ? s->free_at : at;
}

static void work(stream *s, double ns) {
  host_ns += 1500;
  s->free_at = reached(s) + ns;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
  (void)flags;
  if (fault != cudaSuccess) return fault;
  event *made = calloc(1, sizeof *made);
  *e = (cudaEvent_t)made;
  events_open++;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
  events_open--;
  free(e);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  event *ev = (event *)e;
  host_ns += 300;
  if (fault != cudaSuccess) return fault;
  ev->own = ((stream *)s)->own;
  ev->at = ((stream *)s)->free_at = reached((stream *)s);
  ev->recorded = true;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e) {
  host_ns += 200;
  if (fault != cudaSuccess) return fault;
  if (((event *)e)->own) host_ns += pause_ns;
  return ((event *)e)->at > host_ns ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
  if (fault != cudaSuccess) return fault;
  assert_true(((event *)a)->recorded && ((event *)b)->recorded);
  *ms = (float)((device_clock(((event *)b)->at) -
                 device_clock(((event *)a)->at)) /
                1e6);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
  assert_int_equal(flags, cudaStreamNonBlocking);
  stream *made = calloc(1, sizeof *made);
  made->own = true;
  *s = (cudaStream_t)made;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s) {
  free(s);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s,
                                  enum cudaStreamCaptureStatus *status) {
  (void)s;
  if (captures) *status = cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

static enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *with) {
  enum cudaStreamCaptureMode before = mode;
  mode = *with;
  *with = before;
  return cudaSuccess;
}

cudaError_t cudaGetLastError(void) { return cudaSuccess; }

int tps_cuda_switch(tps_cuda_device *self, tps_error *err) {
  (void)self;
  (void)err;
  return 0;
}

static tps_cuda_device device;

/* ---- who listens --------------------------------------------------------- */

#define MOST 20000

/* What really happened to the operation with this number, and what was told. */
static struct truth {
  double started, finished;
  uint64_t told_started, told_finished;
} truth[MOST];
static unsigned told;

static void ran(void *data, tps_op *op, tps_op *graph, uint64_t started_ns,
                uint64_t finished_ns) {
  (void)data;
  assert_null(graph);
  assert_int_equal(truth[op->seq].told_finished, 0);
  truth[op->seq].told_started = started_ns;
  truth[op->seq].told_finished = finished_ns;
  told++;
}

static tps_watch watch = {.wants = TPS_WATCH_TIMES, .ran = ran};

static int begin(void **state) {
  (void)state;
  for (unsigned i = 0; i < MOST; i++) truth[i] = (struct truth){0};
  told = 0;
  host_ns = BEGAN;
  fault = cudaSuccess;
  captures = false;
  turn_ns = pause_ns = part_ns = held_until = 0;
  tps_watch_add(&watch);
  return 0;
}

static int end(void **state) {
  (void)state;
  if (tps_watched(TPS_WATCH_TIMES)) tps_watch_remove(&watch);
  tps_cuda_times_close(&device);
  assert_int_equal(events_open, 0);
  assert_int_equal(mode, cudaStreamCaptureModeThreadLocal);
  return 0;
}

/* Queues an operation of that length, as the face's functions do. */
static void queue(stream *s, unsigned number, tps_op_kind kind, double ns) {
  tps_op *op = tps_op_new();
  tps_device_stream *handle = (tps_device_stream *)s;
  op->seq = number;
  op->kind = (uint8_t)kind;
  op->queued_ns = tps_now_ns();
  tps_cuda_span *span = tps_cuda_times_begin(&device.base, handle, op);
  truth[number].started = reached(s);
  work(s, ns);
  truth[number].finished = s->free_at;
  tps_cuda_times_end(&device.base, span, handle, true);
  tps_op_unref(op);
}

static double apart(double a, double b) { return a > b ? a - b : b - a; }

static void check_one(unsigned i, double slack) {
  const struct truth *t = &truth[i];
  assert_true(t->told_finished != 0);
  if (apart((double)t->told_started, t->started) > slack ||
      apart((double)t->told_finished, t->finished) > slack)
    fail_msg("operation %u: from %.0f to %.0f, told from %.0f to %.0f", i,
             t->started - BEGAN, t->finished - BEGAN,
             (double)t->told_started - BEGAN, (double)t->told_finished - BEGAN);
}

/* ---- tests --------------------------------------------------------------- */

/* Half a minute: the clocks are then 2.4 ms apart. */
static void times_are_right(void **state) {
  (void)state;
  stream a = {0}, b = {0};
  unsigned count = 10000, seed = 1;
  for (unsigned i = 0; i < count; i++) {
    seed = seed * 1103515245u + 12345u;
    queue(seed & 65536 ? &a : &b, i, TPS_OP_LAUNCH, 500 + (seed >> 8) % 90000);
    if (i % 1000 == 999) host_ns += 3e9;
  }
  host_ns += 1e9;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, count);
  for (unsigned i = 0; i < count; i++) check_one(i, 2000);
}

/* What came first on the device is first in what is told. */
static void order_is_kept(void **state) {
  (void)state;
  stream s = {0};
  unsigned count = 5000;
  for (unsigned i = 0; i < count; i++) {
    queue(&s, i, TPS_OP_COPY, 3000);
    host_ns += i % 7 * 300000.0;
  }
  host_ns += 1e8;
  tps_cuda_times_collect(&device.base);
  for (unsigned i = 1; i < count; i++)
    if (truth[i].told_started + 300 < truth[i - 1].told_finished)
      fail_msg("operation %u begins %d ns before the one before ends", i,
               (int)(truth[i - 1].told_finished - truth[i].told_started));
}

static void a_record_is_a_point(void **state) {
  (void)state;
  stream s = {0};
  queue(&s, 0, TPS_OP_LAUNCH, 100000);
  queue(&s, 1, TPS_OP_RECORD, 0);
  host_ns += 1e6;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 2);
  assert_true(truth[1].told_started == truth[1].told_finished);
  assert_true(truth[1].told_started >= truth[0].told_finished);
}

static void a_wait_begins_when_it_is_queued(void **state) {
  (void)state;
  stream s = {0};
  queue(&s, 0, TPS_OP_LAUNCH, 100000);
  double queued = host_ns;
  queue(&s, 1, TPS_OP_WAIT, 50000);
  host_ns += 1e6;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 2);
  assert_true(apart((double)truth[1].told_started, queued) < 1000);
  assert_true(apart((double)truth[1].told_finished, truth[1].finished) < 2000);
}

/* Work of a minute, behind which nothing ends, holds up nobody. */
static void waits_for_nothing(void **state) {
  (void)state;
  stream slow = {0}, quick = {0};
  queue(&slow, 0, TPS_OP_LAUNCH, 60e9);
  queue(&slow, 1, TPS_OP_LAUNCH, 1000);
  for (unsigned i = 2; i < 300; i++) queue(&quick, i, TPS_OP_LAUNCH, 1000);
  host_ns += 1e7;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 298);
  assert_true(host_ns < BEGAN + 1e9);
  host_ns += 61e9;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 300);
  check_one(0, 20000);
  check_one(1, 20000);
}

/* Whatever is queued waits for its turn: that says nothing of how far the clocks
 * are apart. */
static void others_have_the_device(void **state) {
  (void)state;
  stream s = {0};
  unsigned count = 400;
  turn_ns = 300e3;
  for (unsigned i = 0; i < count; i++) {
    queue(&s, i, TPS_OP_LAUNCH, 20000);
    host_ns += 1e7 + i * 1e5;
  }
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, count);
  for (unsigned i = 0; i < count; i++) check_one(i, 2000);
}

/* The host sleeps while it reads the clocks, so that they are known badly; that an
 * operation began when it was queued, and has ended when it is asked about, says
 * more. */
static void sleepy(double part) {
  stream s = {0};
  pause_ns = 1e6;
  part_ns = part;
  queue(&s, 0, TPS_OP_LAUNCH, 300000);
  queue(&s, 1, TPS_OP_LAUNCH, 300000);
  host_ns = s.free_at + 5000;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 2);
  check_one(0, 8000);
  check_one(1, 8000);
}

static void the_host_sleeps(void **state) {
  (void)state;
  sleepy(0);
}

static void the_host_sleeps_before(void **state) {
  (void)state;
  sleepy(0.9e6);
}

/* Where the driver has the timers' own stream wait for somebody's, the host does
 * not wait as long, and not every time. */
static void a_base_can_not_be_had(void **state) {
  (void)state;
  stream s = {0};
  queue(&s, 0, TPS_OP_LAUNCH, 1000);
  host_ns += 2e9;
  held_until = host_ns + 5e9;
  double begun = host_ns;
  for (unsigned i = 1; i < 100; i++) queue(&s, i, TPS_OP_LAUNCH, 1000);
  assert_true(host_ns < begun + 0.2e9);
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 100);
  for (unsigned i = 0; i < 100; i++) check_one(i, 200000);
  for (unsigned i = 100; i < 110; i++, host_ns += 1e9)
    queue(&s, i, TPS_OP_LAUNCH, 1000);
  assert_true(host_ns < begun + 11e9);
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 110);
  for (unsigned i = 100; i < 110; i++) check_one(i, 200000);
}

/* Others have the GPU, and it comes to nothing at first. */
static void the_first_base_is_late(void **state) {
  (void)state;
  stream s = {0};
  held_until = host_ns + 1e9;
  for (unsigned i = 0; i < 10; i++) queue(&s, i, TPS_OP_LAUNCH, 1000);
  host_ns += 1e6;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 10);
  for (unsigned i = 0; i < 10; i++) check_one(i, 200000);
}

/* What can't be timed is not waited for again and again. */
static void the_first_base_can_not_be_had(void **state) {
  (void)state;
  stream s = {0};
  held_until = host_ns + 1e12;
  double begun = host_ns;
  for (unsigned i = 0; i < 1000; i++) queue(&s, i, TPS_OP_LAUNCH, 1000);
  tps_cuda_times_collect(&device.base);
  assert_true(host_ns < begun + 4e9);
  assert_int_equal(told, 0);
}

static void nobody_wants_to_know(void **state) {
  (void)state;
  stream s = {0};
  queue(&s, 0, TPS_OP_LAUNCH, 1e9);
  tps_watch_remove(&watch);
  queue(&s, 1, TPS_OP_LAUNCH, 1000);
  tps_cuda_times_collect(&device.base); /* forgets the first */
  host_ns += 2e9;
  tps_watch_add(&watch);
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 0);
  host_ns += 3600e9;
  queue(&s, 2, TPS_OP_LAUNCH, 1000);
  host_ns += 1e6;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 1);
  check_one(2, 2000);
}

static void the_runtimes_own_is_left_out(void **state) {
  (void)state;
  stream s = {0};
  tps_op *op = tps_op_new();
  assert_null(tps_cuda_times_begin(&device.base, (tps_device_stream *)&s, op));
  tps_op_unref(op);
}

static void a_capture_is_left_alone(void **state) {
  (void)state;
  stream s = {0};
  captures = true;
  queue(&s, 0, TPS_OP_LAUNCH, 1000);
  captures = false;
  queue(&s, 1, TPS_OP_LAUNCH, 1000);
  host_ns += 1e6;
  tps_cuda_times_collect(&device.base);
  assert_int_equal(told, 1);
  assert_true(truth[1].told_finished != 0);
}

static void a_fault_ends_it(void **state) {
  (void)state;
  stream s = {0};
  for (unsigned i = 0; i < 100; i++) queue(&s, i, TPS_OP_LAUNCH, 1000);
  fault = cudaErrorIllegalAddress;
  host_ns += 1e6;
  queue(&s, 100, TPS_OP_LAUNCH, 1000);
  tps_cuda_times_collect(&device.base);
  tps_cuda_times_collect(&device.base);
  assert_true(told < 100);
  fault = cudaSuccess;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(times_are_right),
      TEST(order_is_kept),
      TEST(a_record_is_a_point),
      TEST(a_wait_begins_when_it_is_queued),
      TEST(waits_for_nothing),
      TEST(others_have_the_device),
      TEST(the_host_sleeps),
      TEST(the_host_sleeps_before),
      TEST(a_base_can_not_be_had),
      TEST(the_first_base_is_late),
      TEST(the_first_base_can_not_be_had),
      TEST(nobody_wants_to_know),
      TEST(the_runtimes_own_is_left_out),
      TEST(a_capture_is_left_alone),
      TEST(a_fault_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
