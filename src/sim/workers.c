/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The worker threads and what they run next. Each decision takes a part, or a
 * batch of short ones, from one of the tasks that streams have started:
 *
 * - the highest priority goes first, tasks of one priority take turns;
 * - a block that spent its slice goes behind the other begun blocks of its task;
 *   now and then a fresh block is begun beside them, since they may be waiting
 *   for it;
 * - a block that yields goes behind everything of its own priority and below a
 *   quarter of the decisions;
 * - each 16th decision serves whoever has waited longest, whatever its priority,
 *   so that a kernel that spins can't keep what it waits for from running.
 *
 * The pool belongs to the process, not to a device: there is one set of
 * processors to share. Threads start with the first work and end with the last
 * device or the process.
 */
#include "sim/queue.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define SLICE 16384u          /* warp instructions of a turn */
#define BATCH_NS 50000u       /* aim for a batch of short parts */
#define BATCH_MOST 64u
#define LOOK_NS 50000u        /* a worker looks for work before it sleeps */
#define FRESH_AFTER 8u        /* turns of begun blocks per fresh one */
#define NAP_NS 50000u         /* between turns when all blocks only yield */

/* What one decision gives a worker. */
typedef struct turn {
  tps_sim_task *task;
  uint64_t first, count; /* fresh parts */
  tps_sim_aside *aside;  /* or one that was set aside */
} turn;

/* What came of it. */
typedef struct result {
  uint64_t finished;
  tps_sim_asides ready, yielded;
  bool faulted;
  uint64_t ns;
} result;

/* The pool of the process. */
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static tps_sim_pool *the_pool;
static bool at_exit_known;

static uint64_t dice(tps_sim_pool *pool) {
  uint64_t x = pool->seed += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* --- blocks set aside ------------------------------------------------------ */

static void asides_push(tps_sim_asides *list, tps_sim_aside *aside) {
  aside->next = NULL;
  if (list->last != NULL)
    list->last->next = aside;
  else
    list->first = aside;
  list->last = aside;
  list->count++;
}

static tps_sim_aside *asides_pop(tps_sim_asides *list) {
  tps_sim_aside *aside = list->first;
  list->first = aside->next;
  if (list->first == NULL) list->last = NULL;
  list->count--;
  return aside;
}

static void asides_move(tps_sim_asides *to, tps_sim_asides *from) {
  while (from->count > 0) asides_push(to, asides_pop(from));
}

/* --- the rings --------------------------------------------------------------- */

static void ring_insert(tps_sim_pool *pool, tps_sim_task *task) {
  tps_sim_task **ring = &pool->rings[task->stream->level];
  if (*ring == NULL) {
    task->ring_next = task->ring_previous = task;
    *ring = task;
  } else {
    task->ring_next = *ring;
    task->ring_previous = (*ring)->ring_previous;
    task->ring_previous->ring_next = task;
    (*ring)->ring_previous = task;
  }
  pool->runnable++;
}

static void ring_remove(tps_sim_pool *pool, tps_sim_task *task) {
  tps_sim_task **ring = &pool->rings[task->stream->level];
  if (task->ring_next == task) {
    *ring = NULL;
  } else {
    if (*ring == task) *ring = task->ring_next;
    task->ring_previous->ring_next = task->ring_next;
    task->ring_next->ring_previous = task->ring_previous;
  }
  task->ring_next = task->ring_previous = NULL;
  pool->runnable--;
}

static bool has_fresh(const tps_sim_task *task) {
  return task->next_part < task->parts &&
         task->resident < task->resident_limit;
}

static bool has_ready(const tps_sim_task *task) {
  return task->ready.count > 0 || has_fresh(task);
}

static bool has_any(const tps_sim_task *task) {
  return task->yielded.count > 0 || has_ready(task);
}

/* The first one of the ring that has what is wanted; it goes to the ring's end. */
static tps_sim_task *ring_find(tps_sim_pool *pool, int level,
                               bool (*wanted)(const tps_sim_task *)) {
  tps_sim_task *first = pool->rings[level], *task = first;
  if (first == NULL) return NULL;
  if (pool->seed != 0)
    for (uint64_t skip = dice(pool) % pool->runnable; skip > 0; skip--)
      first = task = task->ring_next;
  do {
    if (wanted(task)) {
      pool->rings[level] = task->ring_next;
      return task;
    }
    task = task->ring_next;
  } while (task != first);
  return NULL;
}

static tps_sim_task *find(tps_sim_pool *pool, int lowest,
                          bool (*wanted)(const tps_sim_task *)) {
  for (int level = TPS_SIM_LEVELS - 1; level >= lowest; level--) {
    tps_sim_task *task = ring_find(pool, level, wanted);
    if (task != NULL) return task;
  }
  return NULL;
}

static bool has_yielded(const tps_sim_task *task) {
  return task->yielded.count > 0;
}

static tps_sim_task *longest_waiting(tps_sim_pool *pool) {
  tps_sim_task *best = NULL;
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (has_any(task) && (best == NULL || task->served < best->served))
        best = task;
      task = task->ring_next;
    } while (task != first);
  }
  return best;
}

/* --- the decision ---------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t batch_size(const tps_sim_pool *pool, const tps_sim_task *task) {
  uint64_t left = task->parts - task->next_part;
  uint64_t share = left / (2 * (uint64_t)pool->threads) + 1;
  uint64_t count = task->part_ns == 0 ? 1 : BATCH_NS / task->part_ns;
  count = least(count, BATCH_MOST);
  count = least(count, share);
  count = least(count, task->resident_limit - task->resident);
  return count == 0 ? 1 : count;
}

static void take_fresh(tps_sim_pool *pool, tps_sim_task *task, turn *t) {
  t->first = task->next_part;
  t->count = batch_size(pool, task);
  task->next_part += t->count;
  task->resident += t->count;
  task->aside_picks = 0;
}

/* Whether a fresh block goes before those begun. */
static bool prefers_fresh(tps_sim_pool *pool, const tps_sim_task *task) {
  if (!has_fresh(task)) return false;
  if (task->ready.count == 0) return true;
  if (task->kind == TPS_SIM_TASK_LAUNCH && task->u.run.cooperative) return true;
  if (pool->seed != 0) return dice(pool) % 2 == 0;
  return task->aside_picks >= FRESH_AFTER + task->ready.count / 4;
}

static void take(tps_sim_pool *pool, tps_sim_task *task, bool yielded_first,
                 turn *t) {
  *t = (turn){.task = task};
  if (yielded_first && task->yielded.count > 0) {
    t->aside = asides_pop(&task->yielded);
  } else if (prefers_fresh(pool, task)) {
    take_fresh(pool, task, t);
  } else if (task->ready.count > 0) {
    t->aside = asides_pop(&task->ready);
    task->aside_picks++;
  } else {
    t->aside = asides_pop(&task->yielded);
  }
  task->served = pool->turn;
}

static bool decide(tps_sim_pool *pool, turn *t) {
  if (pool->runnable == 0) return false;
  pool->turn++;
  if (pool->turn % 16 == 15) {
    tps_sim_task *task = longest_waiting(pool);
    if (task == NULL) return false;
    take(pool, task, pool->turn % 32 == 31, t);
    return true;
  }
  tps_sim_task *task = find(pool, 0, has_ready);
  tps_sim_task *yielded = NULL;
  if (task == NULL)
    yielded = find(pool, 0, has_yielded);
  else if (pool->turn % 4 == 2)
    yielded = find(pool, task->stream->level, has_yielded);
  if (task == NULL && yielded == NULL) return false;
  take(pool, yielded != NULL ? yielded : task, yielded != NULL, t);
  return true;
}

/* --- running --------------------------------------------------------------------- */

static void out_of_memory(tps_sim_task *task) {
  tps_sim_launch_cancel(task->u.run.launch, TPS_NO_HOST_MEMORY,
                        "no memory for a block");
}

/* Sets the block aside, or runs it on where there is no memory for that. */
static bool set_aside(tps_sim_block *block, tps_sim_outcome outcome,
                      tps_sim_aside *aside, result *r) {
  if (aside == NULL) aside = malloc(sizeof *aside);
  if (aside == NULL) return false;
  aside->block = block;
  asides_push(outcome == TPS_SIM_YIELD ? &r->yielded : &r->ready, aside);
  return true;
}

static void run_block(tps_sim_block *block, tps_sim_aside *aside, result *r) {
  for (;;) {
    tps_sim_outcome outcome = tps_sim_block_run(block, SLICE);
    if (outcome == TPS_SIM_FAULT) r->faulted = true;
    if (outcome == TPS_SIM_DONE || outcome == TPS_SIM_FAULT) break;
    if (set_aside(block, outcome, aside, r)) return;
  }
  tps_sim_block_destroy(block);
  free(aside);
  r->finished++;
}

static void run_fresh(tps_sim_task *task, uint64_t part, result *r) {
  /* 128 bits: both factors are below 2^63 for the largest grids. */
  unsigned __int128 product =
      (unsigned __int128)part * task->u.run.stride + task->u.run.offset;
  tps_sim_block *block =
      tps_sim_block_new(task->u.run.launch, (uint64_t)(product % task->parts));
  if (block == NULL) {
    out_of_memory(task);
    r->faulted = true;
    r->finished++;
    return;
  }
  run_block(block, NULL, r);
}

static void run(const turn *t, result *r) {
  uint64_t begin = tps_now_ns();
  tps_sim_task *task = t->task;
  if (t->aside != NULL) {
    run_block(t->aside->block, t->aside, r);
  } else if (task->kind == TPS_SIM_TASK_LAUNCH) {
    for (uint64_t i = 0; i < t->count; i++) run_fresh(task, t->first + i, r);
  } else {
    for (uint64_t i = 0; i < t->count; i++)
      tps_sim_transfer_part(task, t->first + i);
    r->finished = t->count;
  }
  r->ns = tps_now_ns() - begin;
  if (task->kind == TPS_SIM_TASK_LAUNCH &&
      atomic_load_explicit(&task->device->printed_bytes,
                           memory_order_relaxed) > 0)
    tps_sim_flush(task->device);
}

static bool is_spent(const tps_sim_task *task) {
  return task->next_part == task->parts && task->resident == 0;
}

static void call_worker(tps_sim_pool *pool);

/* The launch's fault with what only the queue knows. */
static void describe_fault(tps_sim_task *task, tps_error *err) {
  memset(err, 0, sizeof *err);
  tps_sim_launch_fault(task->u.run.launch, err);
  if (err->code == 0) tps_fail(err, TPS_LAUNCH_FAILED, "launch failed");
  err->stream = task->op->stream + 1;
  if (err->where[0] == '\0')
    tps_op_where(task->op, err->where, sizeof err->where);
}

/* Lock held; nothing of the task is left to run. */
static void complete(tps_sim_pool *pool, tps_sim_task *task) {
  ring_remove(pool, task);
  if (task->failed && task->kind == TPS_SIM_TASK_LAUNCH) {
    tps_error err;
    describe_fault(task, &err);
    tps_sim_fault(task->device, &err);
  }
  tps_sim_finish(task, task->failed);
}

void tps_sim_cut_short(tps_sim_task *task, int code, const char *message) {
  if (task->kind == TPS_SIM_TASK_LAUNCH)
    tps_sim_launch_cancel(task->u.run.launch, code, message);
  task->next_part = task->parts;
  task->failed = true;
  if (is_spent(task))
    complete(task->device->pool, task);
  else
    call_worker(task->device->pool);
}

/* Ends a launch that runs for too long. */
static void check_deadline(tps_sim_task *task) {
  uint64_t limit = task->device->timeout_ns;
  if (limit == 0 || task->kind != TPS_SIM_TASK_LAUNCH || task->failed) return;
  uint64_t began =
      atomic_load_explicit(&task->op->started_ns, memory_order_relaxed);
  if (tps_now_ns() - began <= limit) return;
  char message[512];
  snprintf(message, sizeof message,
           "kernel '%s': still running after %g s (TPSTREAM_SIM_TIMEOUT)",
           task->op->kernel != NULL ? task->op->kernel : "?",
           (double)limit / 1e9);
  tps_sim_launch_cancel(task->u.run.launch, TPS_LAUNCH_TIMEOUT, message);
  task->next_part = task->parts;
  task->failed = true;
}

static void mean(tps_sim_task *task, uint64_t ns, uint64_t parts) {
  uint64_t each = ns / parts + 1;
  task->part_ns = task->part_ns == 0 ? each : (3 * task->part_ns + each) / 4;
}

/* Lock held. */
static void settle(tps_sim_pool *pool, const turn *t, result *r) {
  tps_sim_task *task = t->task;
  if (t->count > 0) mean(task, r->ns, t->count);
  bool fruitless = r->finished == 0 && r->ready.count == 0;
  pool->fruitless = fruitless ? pool->fruitless + 1 : 0;
  if (r->finished > 0) task->aside_picks = 0;
  task->resident -= r->finished;
  asides_move(&task->ready, &r->ready);
  asides_move(&task->yielded, &r->yielded);
  if (r->faulted) {
    task->failed = true;
    task->next_part = task->parts;
  }
  if (!is_spent(task)) check_deadline(task);
  if (is_spent(task)) complete(pool, task);
}

/* --- threads ------------------------------------------------------------------------ */

static void *worker(void *argument);

static bool start_thread(tps_sim_pool *pool) {
  sigset_t all, before;
  sigfillset(&all); /* signals are for the host's threads */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int status =
      pthread_create(&pool->ids[pool->thread_count], NULL, worker, pool);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (status != 0) return false;
  pool->thread_count++;
  return true;
}

/* Lock held. Sees to it that one more worker looks for work. */
static void call_worker(tps_sim_pool *pool) {
  atomic_fetch_add_explicit(&pool->offers, 1, memory_order_release);
  if (pool->spinning > 0) return;
  if (pool->idle > 0)
    pthread_cond_signal(&pool->work);
  else if (pool->thread_count < pool->threads && !pool->stopping)
    start_thread(pool); /* where it fails, the others do the work */
}

bool tps_sim_ensure_worker(tps_sim_pool *pool) {
  if (pool->thread_count > 0) return true;
  return !pool->stopping && start_thread(pool);
}

void tps_sim_offer(tps_sim_pool *pool, tps_sim_task *task) {
  task->served = pool->turn;
  pool->fruitless = 0;
  ring_insert(pool, task);
  call_worker(pool);
}

static bool has_more(tps_sim_pool *pool) {
  if (pool->runnable == 0) return false;
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (has_ready(task)) return true;
      task = task->ring_next;
    } while (task != first);
  }
  return false;
}

/* Lock held. A worker that has taken something calls the next one. */
static void call_more(tps_sim_pool *pool) {
  bool could = pool->spinning > 0 || pool->idle > 0 ||
               pool->thread_count < pool->threads;
  if (could && has_more(pool)) call_worker(pool);
}

static void look_for_work(tps_sim_pool *pool) {
  unsigned seen = atomic_load(&pool->offers);
  pool->spinning++;
  pthread_mutex_unlock(&pool->lock);
  uint64_t end = tps_now_ns() + LOOK_NS;
  do {
    for (int i = 0; i < 32; i++) {
      if (atomic_load_explicit(&pool->offers, memory_order_acquire) != seen)
        break;
#if defined __x86_64__ || defined __i386__
      __builtin_ia32_pause();
#endif
    }
  } while (atomic_load(&pool->offers) == seen && tps_now_ns() < end);
  pthread_mutex_lock(&pool->lock);
  pool->spinning--;
}

/* Lock held, nothing to run. */
static void rest(tps_sim_pool *pool) {
  unsigned seen = atomic_load(&pool->offers);
  if (pool->spinning == 0 && pool->may_spin) look_for_work(pool);
  if (atomic_load(&pool->offers) != seen || pool->stopping) return;
  pool->idle++;
  pthread_cond_wait(&pool->work, &pool->lock);
  pool->idle--;
}

/* Lock held. All begun blocks only wait: for the host, or for one another. */
static void nap(tps_sim_pool *pool) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += NAP_NS;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  pool->idle++;
  pthread_cond_timedwait(&pool->work, &pool->lock, &until);
  pool->idle--;
}

static uint64_t yielded_blocks(const tps_sim_pool *pool) {
  uint64_t count = 0;
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    const tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      count += task->yielded.count;
      task = task->ring_next;
    } while (task != first);
  }
  return count;
}

static void note_begin(tps_sim_task *task) {
  if (atomic_load_explicit(&task->op->started_ns, memory_order_relaxed) != 0)
    return;
  atomic_store_explicit(&task->op->started_ns, tps_now_ns(),
                        memory_order_relaxed);
  atomic_store_explicit(&task->op->state, TPS_OP_RUNNING,
                        memory_order_release);
}

static void one_turn(tps_sim_pool *pool, const turn *t) {
  result r = {0};
  note_begin(t->task);
  call_more(pool);
  pthread_mutex_unlock(&pool->lock);
  run(t, &r);
  pthread_mutex_lock(&pool->lock);
  settle(pool, t, &r);
  tps_sim_advance(pool);
  if (pool->garbage != NULL) {
    pool->spinning++; /* back at once: no need to wake another one up */
    tps_sim_unlock(pool);
    pthread_mutex_lock(&pool->lock);
    pool->spinning--;
  }
  if (pool->fruitless > 64 && pool->fruitless > 8 * yielded_blocks(pool))
    nap(pool);
}

static void *worker(void *argument) {
  tps_sim_pool *pool = argument;
  pthread_mutex_lock(&pool->lock);
  while (!pool->stopping) {
    turn t;
    if (decide(pool, &t))
      one_turn(pool, &t);
    else
      rest(pool);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* --- the lock, and what is destroyed outside it ------------------------------- */

void tps_sim_lock(tps_sim_pool *pool) { pthread_mutex_lock(&pool->lock); }

static void destroy_launch(tps_sim_pool *pool, tps_sim_task *task) {
  tps_sim_device *device = task->device;
  if (task->u.run.launch != NULL) tps_sim_launch_destroy(task->u.run.launch);
  if (task->u.run.module != NULL) tps_sim_module_unref(task->u.run.module);
  free(task);
  pthread_mutex_lock(&pool->lock);
  device->live_launches--;
  if (device->closing) pthread_cond_broadcast(&pool->quiet);
  pthread_mutex_unlock(&pool->lock);
}

void tps_sim_unlock(tps_sim_pool *pool) {
  tps_sim_task *garbage = pool->garbage;
  pool->garbage = NULL;
  pthread_mutex_unlock(&pool->lock);
  while (garbage != NULL) {
    tps_sim_task *next = garbage->next;
    destroy_launch(pool, garbage);
    garbage = next;
  }
}

/* True when the task reads or writes the device's memory; its epoch there. */
static bool uses(const tps_sim_task *task, const tps_sim_device *device,
                 uint64_t *epoch) {
  *epoch = task->epoch;
  if (task->kind != TPS_SIM_TASK_COPY) return task->device == device;
  bool reads = task->u.copy.from_device == device;
  bool writes = task->u.copy.to_device == device;
  *epoch = writes ? task->u.copy.to_epoch : task->u.copy.from_epoch;
  return reads || writes;
}

/* Lock held. Whether anything that runs uses the device's memory; lowers *oldest
 * to the oldest epoch among it. */
static bool is_used(const tps_sim_pool *pool, const tps_sim_device *device,
                    uint64_t *oldest) {
  bool used = false;
  uint64_t epoch;
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    const tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (uses(task, device, &epoch)) {
        used = true;
        *oldest = least(*oldest, epoch);
      }
      task = task->ring_next;
    } while (task != first);
  }
  return used;
}

uint64_t tps_sim_oldest_epoch(tps_sim_device *device) {
  pthread_mutex_lock(&device->pool->lock);
  uint64_t oldest = tps_sim_space_epoch(device->space);
  is_used(device->pool, device, &oldest);
  pthread_mutex_unlock(&device->pool->lock);
  return oldest;
}

/* --- beginning and end ------------------------------------------------------------ */

/* Work of this device, or another one's copy that uses its memory. */
static bool is_busy(const tps_sim_device *device) {
  if (device->live_launches > 0) return true;
  uint64_t oldest = 0;
  if (is_used(device->pool, device, &oldest)) return true;
  for (const tps_sim_stream *s = device->streams; s != NULL; s = s->next)
    if (s->head != NULL) return true;
  return false;
}

void tps_sim_drain(tps_sim_device *device) {
  tps_sim_pool *pool = device->pool;
  pthread_mutex_lock(&pool->lock);
  device->closing = true;
  for (tps_sim_stream *s = device->streams; s != NULL; s = s->next)
    if (s->head != NULL && s->head->ring_next != NULL)
      tps_sim_cut_short(s->head, TPS_INVALID_DEVICE,
                        "the simulated device is closed");
  tps_sim_advance_all(device);
  tps_sim_advance(pool);
  tps_sim_unlock(pool);
  pthread_mutex_lock(&pool->lock);
  while (is_busy(device)) pthread_cond_wait(&pool->quiet, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
  tps_sim_flush(device);
}

static void stop_threads(tps_sim_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->work);
  unsigned count = pool->thread_count;
  pthread_mutex_unlock(&pool->lock);
  for (unsigned i = 0; i < count; i++) pthread_join(pool->ids[i], NULL);
}

/* The process ends with devices open: nothing may run on while it is taken
 * down, and what kernels printed has to come out. */
static void at_exit(void) {
  pthread_mutex_lock(&the_lock);
  tps_sim_pool *pool = the_pool;
  pthread_mutex_unlock(&the_lock);
  if (pool == NULL || pool->process != getpid()) return; /* a fork's child */
  for (tps_sim_device *d = pool->devices; d != NULL; d = d->next)
    tps_sim_drain(d);
  stop_threads(pool);
}

static unsigned processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  if (count < 1) return 1;
  return count > 256 ? 256 : (unsigned)count;
}

static void init_lock(tps_sim_pool *pool) {
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex); /* held so briefly that spinning pays */
  pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(&pool->lock, &mutex);
  pthread_mutexattr_destroy(&mutex);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&pool->work, &attributes);
  pthread_cond_init(&pool->quiet, &attributes);
  pthread_condattr_destroy(&attributes);
}

static tps_sim_pool *pool_new(unsigned threads, uint64_t seed) {
  tps_sim_pool *pool = calloc(1, sizeof *pool);
  if (pool == NULL) return NULL;
  pool->threads = threads != 0 ? threads : processors();
  pool->seed = seed;
  pool->handles = 255;
  pool->process = getpid();
  pool->may_spin = processors() > 1;
  pool->ids = calloc(pool->threads, sizeof *pool->ids);
  if (pool->ids == NULL) {
    free(pool);
    return NULL;
  }
  init_lock(pool);
  return pool;
}

static void pool_free(tps_sim_pool *pool) {
  pthread_cond_destroy(&pool->work);
  pthread_cond_destroy(&pool->quiet);
  pthread_mutex_destroy(&pool->lock);
  free(pool->ids);
  free(pool);
}

int tps_sim_pool_join(tps_sim_device *device, unsigned threads, uint64_t seed,
                      tps_error *err) {
  int code = 0;
  pthread_mutex_lock(&the_lock);
  if (!at_exit_known && atexit(at_exit) == 0) at_exit_known = true;
  if (the_pool == NULL) the_pool = pool_new(threads, seed);
  if (the_pool == NULL) {
    code = tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for worker threads");
  } else {
    device->pool = the_pool;
    pthread_mutex_lock(&the_pool->lock);
    device->next = the_pool->devices;
    the_pool->devices = device;
    pthread_mutex_unlock(&the_pool->lock);
  }
  pthread_mutex_unlock(&the_lock);
  return code;
}

void tps_sim_pool_leave(tps_sim_device *device) {
  tps_sim_pool *pool = device->pool;
  pthread_mutex_lock(&the_lock);
  pthread_mutex_lock(&pool->lock);
  tps_sim_device **p = &pool->devices;
  while (*p != device) p = &(*p)->next;
  *p = device->next;
  bool last = pool->devices == NULL;
  pthread_mutex_unlock(&pool->lock);
  if (last) {
    if (!pool->stopping) stop_threads(pool);
    pool_free(pool);
    the_pool = NULL;
  }
  pthread_mutex_unlock(&the_lock);
}
