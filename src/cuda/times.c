/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Times of operations, between the device's clock and the host's. Now and then
 * both are read at once, by an event on a stream of its own: a base. The events
 * around an operation are measured from the latest base, since cudart gives a
 * float of milliseconds, precise over a short while only; between two bases times
 * are interpolated, so that what came earlier on the device is earlier here, too,
 * and the clocks do not drift apart. So nothing is told before the next base.
 *
 * A base's event is asked about until it has come: it came between the last two
 * questions, a microsecond or two apart, however long other processes kept the
 * device from it. Where even that is coarse (the host was busy elsewhere), what
 * is known of the operations mends it: none began before it was queued, and none
 * ended after it was found to have.
 *
 * An operation that waits for the host is no obstacle: a base waits for none. If
 * the driver has it wait all the same, it is done without for a while. Without the
 * first nothing is timed, and a GPU that others keep busy may take long to it. */
#include "cuda/times.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cuda/clocks.h"

#define BASE_NS 1000000000u /* from one base to the next, at least */
#define TRIES 5             /* for a base: the one best known counts */
#define COARSE_NS 10000u    /* if it is no better than this, there are more, */
#define MORE_TRIES 40       /* so many */
#define LATE_NS 100000000u  /* after which a base's event is given up, */
#define FIRST_NS                                                               \
  3000000000u       /* but of the very first: a GPU may be slow to it */
#define MANY 64u    /* so many more pending: some are asked about */
#define BUSY 4u     /* after so many that still run it stops asking */
#define HEAP 65536u /* found: are told */
#define KEPT 1024u  /* spans, when nobody wants times any more */

struct tps_cuda_span {
  struct tps_cuda_span *next;
  tps_op *op; /* a reference */
  cudaEvent_t start, end;
  uint64_t begun_ns; /* neither comes earlier */
  bool starts, ends; /* which of the two is recorded */
};

typedef struct found {
  tps_op *op; /* a reference */
  double started, finished;
  uint64_t begun_ns; /* it was no earlier, */
  uint64_t seen_ns;  /* and no later: it was found to have ended */
  bool starts;       /* else it began when it was queued */
} found;

struct tps_cuda_times {
  pthread_mutex_t lock;
  cudaStream_t stream; /* of the bases; NULL until needed */
  cudaEvent_t latest, spare, trial;
  tps_clocks clocks;
  uint64_t retry_ns; /* before that there is no other try for a base */
  tps_cuda_span *pending, *pending_last, *idle;
  size_t pending_count, idle_count;
  size_t next_look; /* when so many are pending */
  found *found;
  size_t found_count, found_capacity;
};

static struct tps_cuda_times *times_of(tps_device *device) {
  return atomic_load_explicit(&tps_cuda(device)->times, memory_order_acquire);
}

/* What other code captures on this thread is not ours to spoil. */
static enum cudaStreamCaptureMode relax(void) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

static void unrelax(enum cudaStreamCaptureMode mode) {
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaGetLastError();
}

/* ---- spans --------------------------------------------------------------- */

static void free_span(tps_cuda_span *span) {
  if (span->start != NULL) cudaEventDestroy(span->start);
  if (span->end != NULL) cudaEventDestroy(span->end);
  free(span);
}

static tps_cuda_span *new_span(void) {
  tps_cuda_span *span = calloc(1, sizeof *span);
  if (span == NULL) return NULL;
  if (cudaEventCreateWithFlags(&span->start, cudaEventDefault) == cudaSuccess &&
      cudaEventCreateWithFlags(&span->end, cudaEventDefault) == cudaSuccess)
    return span;
  free_span(span);
  return NULL;
}

/* An event that is still to come may be recorded again. */
static void give_span(struct tps_cuda_times *t, tps_cuda_span *span) {
  tps_op_unref(span->op);
  span->op = NULL;
  span->next = t->idle;
  t->idle = span;
  t->idle_count++;
}

static tps_cuda_span *take_span(struct tps_cuda_times *t, tps_op *op) {
  tps_cuda_span *span = t->idle;
  if (span != NULL) {
    t->idle = span->next;
    t->idle_count--;
  } else {
    span = new_span();
    if (span == NULL) return NULL;
  }
  span->next = NULL;
  span->op = tps_op_ref(op);
  span->begun_ns = tps_now_ns();
  span->starts = op->kind != TPS_OP_WAIT;
  span->ends = op->kind != TPS_OP_RECORD;
  return span;
}

static void put_pending(struct tps_cuda_times *t, tps_cuda_span *span) {
  span->next = NULL;
  if (t->pending != NULL) t->pending_last->next = span;
  else t->pending = span;
  t->pending_last = span;
  t->pending_count++;
}

static tps_cuda_span *take_pending(struct tps_cuda_times *t) {
  tps_cuda_span *span = t->pending;
  t->pending = span->next;
  t->pending_count--;
  return span;
}

static void drop_pending(struct tps_cuda_times *t) {
  while (t->pending != NULL) give_span(t, take_pending(t));
}

/* ---- finding out --------------------------------------------------------- */

static const tps_moment *latest(const struct tps_cuda_times *t) {
  return &t->clocks.moments[t->clocks.count - 1];
}

static bool measure(const struct tps_cuda_times *t, cudaEvent_t event,
                    double *device_ns) {
  float ms = 0;
  if (cudaEventElapsedTime(&ms, t->latest, event) != cudaSuccess) return false;
  *device_ns = latest(t)->device_ns + (double)ms * 1e6;
  return true;
}

/* Of a span that has ended. */
static void find(struct tps_cuda_times *t, tps_cuda_span *span) {
  found f = {
      .op = span->op, .begun_ns = span->begun_ns, .seen_ns = tps_now_ns()};
  if (t->found_count == t->found_capacity) {
    size_t capacity = 2 * t->found_capacity + 256;
    found *more = realloc(t->found, capacity * sizeof *more);
    if (more == NULL) return;
    t->found = more;
    t->found_capacity = capacity;
  }
  if (span->starts && !measure(t, span->start, &f.started)) return;
  if (span->ends && !measure(t, span->end, &f.finished)) return;
  if (!span->ends) f.finished = f.started;
  f.starts = span->starts;
  span->op = NULL;
  t->found[t->found_count++] = f;
}

/* Asks about those that have waited longest, until so many have not ended. After a
 * fault there is no answer. */
static void look(struct tps_cuda_times *t, size_t busy) {
  size_t left = t->pending_count;
  for (; t->pending != NULL && left > 0 && busy > 0; left--) {
    tps_cuda_span *span = take_pending(t);
    cudaError_t e = cudaEventQuery(span->ends ? span->end : span->start);
    if (e == cudaErrorNotReady) {
      put_pending(t, span);
      busy--;
      continue;
    }
    if (e == cudaSuccess) find(t, span);
    give_span(t, span);
    if (e == cudaSuccess) continue;
    drop_pending(t);
    break;
  }
  t->next_look = t->pending_count + MANY;
}

/* ---- bases --------------------------------------------------------------- */

static bool need_event(cudaEvent_t *event) {
  return *event != NULL ||
         cudaEventCreateWithFlags(event, cudaEventDefault) == cudaSuccess;
}

static bool prepare(struct tps_cuda_times *t) {
  return t->stream != NULL ||
         (need_event(&t->latest) && need_event(&t->spare) &&
          need_event(&t->trial) &&
          cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking) ==
              cudaSuccess);
}

/* Records `event`, which came in the host's time between the two; false if it has
 * not come at `until`. */
static bool strike(const struct tps_cuda_times *t, cudaEvent_t event,
                   uint64_t until, uint64_t *from, uint64_t *to) {
  *from = tps_now_ns();
  if (cudaEventRecord(event, t->stream) != cudaSuccess) return false;
  for (;;) {
    uint64_t asked = tps_now_ns();
    cudaError_t e = cudaEventQuery(event);
    *to = tps_now_ns();
    if (e != cudaErrorNotReady) return e == cudaSuccess;
    if (asked > until) return false;
    *from = asked;
  }
}

static void swap_events(cudaEvent_t *a, cudaEvent_t *b) {
  cudaEvent_t event = *a;
  *a = *b;
  *b = event;
}

/* Leaves in `spare` the event of some tries that it is known best of when it came. */
static bool strike_best(struct tps_cuda_times *t, uint64_t *host_ns) {
  bool first = t->clocks.count == 0 && t->retry_ns == 0;
  uint64_t best = UINT64_MAX;
  uint64_t until = tps_now_ns() + (first ? FIRST_NS : LATE_NS);
  for (int i = 0; i < TRIES || (i < MORE_TRIES && best > COARSE_NS); i++) {
    uint64_t from, to;
    if (!strike(t, t->trial, until, &from, &to)) break;
    if (i == 0) until = to + LATE_NS;
    if (to - from >= best) continue;
    best = to - from;
    *host_ns = from + best / 2;
    swap_events(&t->trial, &t->spare);
  }
  return best != UINT64_MAX;
}

static bool try_base(struct tps_cuda_times *t) {
  tps_moment fresh = {0};
  if (!tps_clocks_reserve(&t->clocks) || !strike_best(t, &fresh.host_ns))
    return false;
  if (t->clocks.count > 0 && !measure(t, t->spare, &fresh.device_ns))
    return false;
  swap_events(&t->spare, &t->latest);
  tps_clocks_add(&t->clocks, fresh);
  return true;
}

static bool make_base(struct tps_cuda_times *t) {
  bool made = try_base(t);
  t->retry_ns = made ? 0 : tps_now_ns() + BASE_NS;
  return made;
}

/* ---- telling ------------------------------------------------------------- */

static int64_t apart(uint64_t a, uint64_t b) { return (int64_t)(a - b); }

/* As the bases are, at worst: how much too early and too late what was found is. */
static void mend(struct tps_cuda_times *t) {
  int64_t early = INT64_MIN, late = INT64_MIN;
  for (size_t i = 0; i < t->found_count; i++) {
    const found *f = &t->found[i];
    uint64_t finished = tps_clocks_host(&t->clocks, f->finished);
    uint64_t started =
        f->starts ? tps_clocks_host(&t->clocks, f->started) : finished;
    int64_t before = apart(f->begun_ns, started);
    int64_t after = apart(finished, f->seen_ns);
    if (before > early) early = before;
    if (after > late) late = after;
  }
  if (t->found_count > 0) tps_clocks_mend(&t->clocks, early, late);
}

/* Nothing begins before it was queued, or ends after it was found to have. */
static void tell_one(const struct tps_cuda_times *t, const found *f) {
  uint64_t started = f->starts ? tps_clocks_host(&t->clocks, f->started) : 0;
  uint64_t finished = tps_clocks_host(&t->clocks, f->finished);
  if (started > f->seen_ns) started = f->seen_ns;
  if (started < f->op->queued_ns) started = f->op->queued_ns;
  if (finished > f->seen_ns) finished = f->seen_ns;
  if (finished < started) finished = started;
  atomic_store_explicit(&f->op->started_ns, started, memory_order_relaxed);
  atomic_store_explicit(&f->op->finished_ns, finished, memory_order_relaxed);
  atomic_store_explicit(&f->op->state, TPS_OP_DONE, memory_order_release);
  tps_watch_ran(f->op, NULL, started, finished);
  tps_op_unref(f->op);
}

static void tell(struct tps_cuda_times *t) {
  mend(t);
  for (size_t i = 0; i < t->found_count; i++) tell_one(t, &t->found[i]);
  t->found_count = 0;
}

static bool is_timely(const struct tps_cuda_times *t) {
  if (t->retry_ns != 0)
    return t->clocks.count > 0 && tps_now_ns() < t->retry_ns;
  return t->clocks.count > 0 && t->found_count < HEAP &&
         apart(tps_now_ns(), latest(t)->host_ns) < BASE_NS;
}

/* A base that is neither missing nor old, and a look at what has ended; false: there
 * can be none. */
static bool keep_time(struct tps_cuda_times *t) {
  if (is_timely(t)) {
    if (t->pending_count >= t->next_look) look(t, BUSY);
    return true;
  }
  if (tps_now_ns() < t->retry_ns || !prepare(t)) return false;
  if (t->clocks.count > 0) look(t, SIZE_MAX);
  if (!make_base(t)) return t->clocks.count > 0;
  tell(t);
  return true;
}

/* ---- the face ------------------------------------------------------------ */

/* Made at the first operation that is timed. */
static struct tps_cuda_times *need_times(tps_cuda_device *self) {
  struct tps_cuda_times *t =
      atomic_load_explicit(&self->times, memory_order_acquire);
  if (t != NULL) return t;
  pthread_mutex_lock(&self->lock);
  t = atomic_load_explicit(&self->times, memory_order_relaxed);
  if (t == NULL) t = calloc(1, sizeof *t);
  if (t != NULL &&
      atomic_load_explicit(&self->times, memory_order_relaxed) == NULL) {
    pthread_mutex_init(&t->lock, NULL);
    atomic_store_explicit(&self->times, t, memory_order_release);
  }
  pthread_mutex_unlock(&self->lock);
  return t;
}

static bool is_captured(cudaStream_t stream) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaError_t e = cudaStreamIsCapturing(stream, &status);
  if (e != cudaSuccess) cudaGetLastError();
  return e != cudaSuccess || status != cudaStreamCaptureStatusNone;
}

/* Mostly there is nothing to do but to take one. */
static tps_cuda_span *span_for(struct tps_cuda_times *t, tps_op *op) {
  tps_cuda_span *span = NULL;
  pthread_mutex_lock(&t->lock);
  if (t->idle != NULL && t->pending_count < t->next_look && is_timely(t)) {
    span = take_span(t, op);
  } else {
    enum cudaStreamCaptureMode mode = relax();
    if (keep_time(t)) span = take_span(t, op);
    unrelax(mode);
  }
  pthread_mutex_unlock(&t->lock);
  return span;
}

static void give_up(struct tps_cuda_times *t, tps_cuda_span *span) {
  pthread_mutex_lock(&t->lock);
  give_span(t, span);
  pthread_mutex_unlock(&t->lock);
}

tps_cuda_span *tps_cuda_times_first(tps_device *device,
                                    tps_device_stream *stream, tps_op *op) {
  if (op->queued_ns == 0 || is_captured((cudaStream_t)stream)) return NULL;
  struct tps_cuda_times *t = need_times(tps_cuda(device));
  tps_cuda_span *span = t != NULL ? span_for(t, op) : NULL;
  if (span == NULL || !span->starts ||
      cudaEventRecord(span->start, (cudaStream_t)stream) == cudaSuccess)
    return span;
  cudaGetLastError(); /* the operation itself will say what is wrong */
  give_up(t, span);
  return NULL;
}

void tps_cuda_times_last(tps_device *device, tps_cuda_span *span,
                         tps_device_stream *stream, bool queued) {
  struct tps_cuda_times *t = times_of(device);
  if (queued && span->ends &&
      cudaEventRecord(span->end, (cudaStream_t)stream) != cudaSuccess) {
    cudaGetLastError();
    queued = false;
  }
  pthread_mutex_lock(&t->lock);
  if (queued) put_pending(t, span);
  else give_span(t, span);
  pthread_mutex_unlock(&t->lock);
}

/* What nobody will ask about, and more than a few events, goes. */
static void tidy(struct tps_cuda_times *t) {
  drop_pending(t);
  if (t->found_count == 0) tps_clocks_forget(&t->clocks);
  while (t->idle_count > KEPT) {
    tps_cuda_span *span = t->idle;
    t->idle = span->next;
    t->idle_count--;
    free_span(span);
  }
}

void tps_cuda_times_collect(tps_device *device) {
  struct tps_cuda_times *t = times_of(device);
  if (t == NULL || tps_cuda_use(device, NULL) != 0) return;
  enum cudaStreamCaptureMode mode = relax();
  pthread_mutex_lock(&t->lock);
  if (t->clocks.count > 0) {
    look(t, SIZE_MAX);
    if (t->found_count > 0) {
      make_base(t); /* without, what there is has to do */
      tell(t);
    }
  }
  if (!tps_watched(TPS_WATCH_TIMES)) tidy(t);
  pthread_mutex_unlock(&t->lock);
  unrelax(mode);
}

void tps_cuda_times_close(tps_cuda_device *self) {
  struct tps_cuda_times *t =
      atomic_load_explicit(&self->times, memory_order_acquire);
  if (t == NULL) return;
  drop_pending(t);
  for (size_t i = 0; i < t->found_count; i++) tps_op_unref(t->found[i].op);
  while (t->idle != NULL) {
    tps_cuda_span *span = t->idle;
    t->idle = span->next;
    free_span(span);
  }
  if (t->latest != NULL) cudaEventDestroy(t->latest);
  if (t->spare != NULL) cudaEventDestroy(t->spare);
  if (t->trial != NULL) cudaEventDestroy(t->trial);
  if (t->stream != NULL) cudaStreamDestroy(t->stream);
  pthread_mutex_destroy(&t->lock);
  free(t->found);
  tps_clocks_free(&t->clocks);
  free(t);
  atomic_store_explicit(&self->times, NULL, memory_order_relaxed);
}
