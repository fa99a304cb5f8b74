/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The worker threads: they run what sim/schedule.c gives them and settle what
 * came of it. They start with the first work, look for more for a moment, then
 * sleep.
 */
#include "sim/queue.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define SLICE 16384u  /* warp instructions of a turn */
#define NAP_NS 50000u /* between turns when all blocks only yield */

/* What came of a turn. */
typedef struct result {
  uint64_t finished;
  tps_sim_asides ready, yielded;
  bool faulted;
  tps_error *fault; /* of a launch that could not be made, owned */
  uint64_t ns;
} result;

/* --- running -------------------------------------------------------------- */

static void out_of_memory(const tps_sim_task *task) {
  tps_sim_launch_cancel(task->u.run.launch, TPS_NO_HOST_MEMORY,
                        "no memory for a block");
}

/* Sets the block aside, or runs it on where there is no memory for that. */
static bool set_aside(tps_sim_block *block, tps_sim_outcome outcome,
                      tps_sim_aside *aside, result *r) {
  if (aside == NULL) aside = malloc(sizeof *aside);
  if (aside == NULL) return false;
  aside->block = block;
  tps_sim_asides_push(outcome == TPS_SIM_YIELD ? &r->yielded : &r->ready,
                      aside);
  return true;
}

/* Returns the block if it has ended; else it is set aside. */
static tps_sim_block *run_block(tps_sim_block *block, tps_sim_aside *aside,
                                uint64_t slice, result *r) {
  for (;;) {
    tps_sim_outcome outcome =
        tps_sim_block_run(block, slice != 0 ? slice : SLICE);
    if (outcome == TPS_SIM_FAULT) r->faulted = true;
    if (outcome == TPS_SIM_DONE || outcome == TPS_SIM_FAULT) break;
    if (set_aside(block, outcome, aside, r)) return NULL;
  }
  free(aside);
  r->finished++;
  return block;
}

/* `ended`: the block before it, or NULL; as what is returned. */
static tps_sim_block *run_fresh(const tps_sim_turn *t, uint64_t part,
                                tps_sim_block *ended, result *r) {
  const tps_sim_task *task = t->task;
  /* 128 bits: both factors are below 2^63 for the largest grids. */
  unsigned __int128 product =
      (unsigned __int128)part * task->u.run.stride + task->u.run.offset;
  uint64_t index = (uint64_t)(product % task->parts);
  tps_sim_block *block = ended != NULL
                             ? tps_sim_block_again(ended, index)
                             : tps_sim_block_new(task->u.run.launch, index);
  if (block == NULL) {
    out_of_memory(task);
    r->faulted = true;
    r->finished++;
    return NULL;
  }
  return run_block(block, NULL, t->slice, r);
}

/* What the task's stream runs: the task itself, or the graph it is part of. */
static const tps_op *queued_op(const tps_sim_task *task) {
  return task->node == NULL ? task->op : task->stream->head->op;
}

static void begin(tps_sim_task *task, result *r) {
  tps_error err;
  r->finished = 1;
  if (tps_sim_launch_begin(task, &err) == 0) return;
  err.stream = queued_op(task)->stream + 1;
  tps_op_where(task->op, err.where, sizeof err.where);
  r->faulted = true;
  r->fault = malloc(sizeof err);
  if (r->fault != NULL) *r->fault = err;
}

static void run(const tps_sim_turn *t, result *r) {
  uint64_t begin_ns = tps_now_ns();
  tps_sim_task *task = t->task;
  tps_sim_block *ended = NULL;
  if (t->begins) {
    begin(task, r);
  } else if (t->aside != NULL) {
    ended = run_block(t->aside->block, t->aside, t->slice, r);
  } else if (task->kind == TPS_SIM_TASK_LAUNCH) {
    for (uint64_t i = 0; i < t->count; i++)
      ended = run_fresh(t, t->first + i, ended, r);
  } else if (task->kind == TPS_SIM_TASK_CONDITION) {
    r->finished = t->count; /* a turn, lest a loop keeps the lock for ever */
  } else {
    for (uint64_t i = 0; i < t->count; i++)
      tps_sim_transfer_part(task, t->first + i);
    r->finished = t->count;
  }
  tps_sim_block_destroy(ended);
  r->ns = tps_now_ns() - begin_ns;
  if (task->kind == TPS_SIM_TASK_LAUNCH &&
      atomic_load_explicit(&task->device->printed_bytes, memory_order_relaxed) >
          0)
    tps_sim_flush(task->device);
}

static bool is_spent(const tps_sim_task *task) {
  return task->next_part == task->parts && task->resident == 0;
}

static void call_worker(tps_sim_pool *pool);

static void append_shape(tps_error *err, const char *name,
                         const uint32_t n[3]) {
  size_t used = strlen(err->message);
  char *end = err->message + used;
  size_t room = sizeof err->message - used;
  if (n[2] > 1) snprintf(end, room, "%s %ux%ux%u, ", name, n[0], n[1], n[2]);
  else if (n[1] > 1) snprintf(end, room, "%s %ux%u, ", name, n[0], n[1]);
  else snprintf(end, room, "%s %u, ", name, n[0]);
}

/* Of a graph's node: where it was captured, and the graph's launch. */
static void append_graph(tps_error *err, const tps_sim_task *task) {
  char captured[512], launched[512];
  const tps_op *op = queued_op(task);
  size_t used = strlen(err->message);
  tps_op_where(task->op, captured, sizeof captured);
  tps_op_where(op, launched, sizeof launched);
  snprintf(err->message + used, sizeof err->message - used,
           "%s%s%sin a graph on stream %" PRIu64 "%s%s",
           captured[0] != '\0' ? "captured at " : "", captured,
           captured[0] != '\0' ? ", " : "", op->stream,
           launched[0] != '\0' ? ", launched at " : "", launched);
}

/* The launch itself, on a line of its own. */
static void append_launch(tps_error *err, const tps_sim_task *task) {
  append_shape(err, "\n  grid", task->op->grid);
  append_shape(err, "block", task->op->block);
  if (task->node != NULL) {
    append_graph(err, task);
    return;
  }
  size_t used = strlen(err->message);
  snprintf(err->message + used, sizeof err->message - used, "stream %" PRIu64,
           task->op->stream);
}

/* The launch's fault with what only the queue knows. */
static void describe_fault(tps_sim_task *task, tps_error *err) {
  memset(err, 0, sizeof *err);
  if (task->u.run.launch != NULL) tps_sim_launch_fault(task->u.run.launch, err);
  if (err->code == 0) tps_fail(err, TPS_LAUNCH_FAILED, "launch failed");
  append_launch(err, task);
  err->stream = queued_op(task)->stream + 1;
  if (err->where[0] == '\0')
    tps_op_where(task->op, err->where, sizeof err->where);
}

/* Lock held; nothing of the task is left to run. */
static void complete(tps_sim_pool *pool, tps_sim_task *task) {
  tps_sim_ring_remove(pool, task);
  if (task->kind == TPS_SIM_TASK_LAUNCH && task->u.run.launch != NULL)
    tps_sim_launch_tell(task->u.run.launch,
                        task->node == NULL ? NULL : task->stream->head->op);
  if (task->failed && task->kind == TPS_SIM_TASK_LAUNCH) {
    tps_error err;
    describe_fault(task, &err);
    tps_sim_device_fault(task->device, &err);
  }
  if (task->kind == TPS_SIM_TASK_CONDITION && !task->failed)
    tps_sim_condition_decide(task);
  else tps_sim_task_finish(task, task->failed);
}

static void cut_short(tps_sim_task *task, int code, const char *message) {
  if (task->kind == TPS_SIM_TASK_LAUNCH && !task->beginning &&
      task->u.run.launch != NULL)
    tps_sim_launch_cancel(task->u.run.launch, code, message);
  task->next_part = task->parts;
  task->failed = true;
  if (is_spent(task)) complete(task->device->pool, task);
  else call_worker(task->device->pool);
}

/* One of the device's tasks in the rings that has not failed yet. */
static tps_sim_task *find_running(const tps_sim_device *device) {
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    tps_sim_task *first = device->pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (task->device == device && !task->failed) return task;
      task = task->ring_next;
    } while (task != first);
  }
  return NULL;
}

void tps_sim_cut_short(tps_sim_device *device, int code, const char *message) {
  tps_sim_task *task;
  while ((task = find_running(device)) != NULL) cut_short(task, code, message);
}

/* A block set aside, if possible one in which threads wait, what for in `waits`. */
static const tps_sim_aside *give_up(const tps_sim_task *task, char *waits,
                                    size_t size) {
  const tps_sim_aside *lists[] = {task->ready.first, task->yielded.first};
  waits[0] = '\0';
  for (unsigned k = 0; k < 2; k++)
    for (const tps_sim_aside *a = lists[k]; a != NULL; a = a->next)
      if (tps_sim_block_give_up(a->block, waits, size)) return a;
  return task->ready.last != NULL ? task->ready.last : task->yielded.last;
}

/* Ends a launch that runs for too long. */
static void check_deadline(tps_sim_task *task) {
  uint64_t limit = task->device->timeout_ns;
  if (limit == 0 || task->kind != TPS_SIM_TASK_LAUNCH || task->failed) return;
  if (tps_now_ns() - task->began_ns <= limit) return;
  char message[2000], place[900] = "", waits[900];
  const tps_sim_aside *aside = give_up(task, waits, sizeof waits);
  if (aside != NULL) tps_sim_block_place(aside->block, place, sizeof place);
  snprintf(message, sizeof message,
           "kernel '%.200s'%s%.700s: still running after %g s "
           "(TPSTREAM_SIM_TIMEOUT)%s",
           task->op->kernel != NULL ? task->op->kernel : "?",
           aside != NULL ? ", " : "", place, (double)limit / 1e9, waits);
  tps_sim_launch_cancel(task->u.run.launch, TPS_LAUNCH_TIMEOUT, message);
  task->next_part = task->parts;
  task->failed = true;
}

static void mean(tps_sim_task *task, uint64_t ns, uint64_t parts) {
  uint64_t each = ns / parts + 1;
  task->part_ns = task->part_ns == 0 ? each : (3 * task->part_ns + each) / 4;
}

/* Lock held. */
static void settle(tps_sim_pool *pool, const tps_sim_turn *t, result *r) {
  tps_sim_task *task = t->task;
  if (t->count > 0) mean(task, r->ns, t->count);
  task->ran_ns += r->ns;
  if (t->begins) task->beginning = false;
  if (r->fault != NULL) tps_sim_device_fault(task->device, r->fault);
  free(r->fault);
  bool fruitless = r->finished == 0 && (r->ready.count == 0 || t->slice != 0);
  pool->fruitless = fruitless ? pool->fruitless + 1 : 0;
  if (r->finished > 0) task->aside_picks = task->fruitless = 0;
  task->resident -= r->finished;
  tps_sim_asides_move(&task->ready, &r->ready);
  tps_sim_asides_move(&task->yielded, &r->yielded);
  if (r->faulted) {
    task->failed = true;
    task->next_part = task->parts;
  }
  if (!is_spent(task)) check_deadline(task);
  if (is_spent(task)) complete(pool, task);
}

/* --- threads -------------------------------------------------------------- */

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
  if (pool->idle > 0) pthread_cond_signal(&pool->work);
  else if (pool->thread_count < pool->threads && !pool->stopping)
    start_thread(pool); /* where it fails, the others do the work */
}

bool tps_sim_ensure_worker(tps_sim_pool *pool) {
  if (pool->thread_count > 0) return true;
  return !pool->stopping && start_thread(pool);
}

void tps_sim_offer(tps_sim_pool *pool, tps_sim_task *task) {
  pool->fruitless = 0;
  tps_sim_ring_insert(pool, task);
  call_worker(pool);
}

/* Lock held. A worker that has taken something calls the next one. */
static void call_more(tps_sim_pool *pool) {
  bool could = pool->spinning > 0 || pool->idle > 0 ||
               pool->thread_count < pool->threads;
  if (could && tps_sim_has_more(pool)) call_worker(pool);
}

typedef struct offer {
  tps_sim_pool *pool;
  unsigned seen;
} offer;

static bool is_offered(const void *what) {
  const offer *o = what;
  return atomic_load_explicit(&o->pool->offers, memory_order_acquire) !=
         o->seen;
}

/* Lock held, nothing to run. */
static void rest(tps_sim_pool *pool) {
  offer o = {pool, atomic_load(&pool->offers)};
  if (pool->spinning == 0) {
    pool->spinning++;
    pthread_mutex_unlock(&pool->lock);
    tps_sim_look(&pool->workers, is_offered, &o, TPS_FOREVER);
    pthread_mutex_lock(&pool->lock);
    pool->spinning--;
  }
  if (is_offered(&o) || pool->stopping) return;
  pool->idle++;
  pthread_cond_wait(&pool->work, &pool->lock);
  pool->idle--;
}

bool tps_sim_rest_for(tps_sim_pool *pool, uint64_t ns) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += (long)ns;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  pool->idle++;
  int status = ns == 0
                   ? pthread_cond_wait(&pool->work, &pool->lock)
                   : pthread_cond_timedwait(&pool->work, &pool->lock, &until);
  pool->idle--;
  return status != ETIMEDOUT;
}

static void run_turn(tps_sim_pool *pool, const tps_sim_turn *t) {
  result r = {0};
  tps_sim_task_begins(t->task);
  call_more(pool);
  pthread_mutex_unlock(&pool->lock);
  run(t, &r);
  pthread_mutex_lock(&pool->lock);
  settle(pool, t, &r);
}

static void one_turn(tps_sim_pool *pool, const tps_sim_turn *t) {
  if (t->task != NULL) run_turn(pool, t);
  tps_sim_advance(pool);
  if (pool->garbage != NULL || pool->unloaded != NULL) {
    pool->spinning++; /* back at once: no need to wake another one up */
    tps_sim_unlock(pool);
    pthread_mutex_lock(&pool->lock);
    pool->spinning--;
  }
  /* All begun blocks only wait: for the host, or for one another. */
  if (pool->fruitless > 64 &&
      pool->fruitless > 8 * tps_sim_yielded_blocks(pool))
    tps_sim_rest_for(pool, NAP_NS);
}

/* With a seed. */
static void play(tps_sim_pool *pool) {
  tps_sim_turn t;
  if (atomic_load(&pool->knocking) > 0) {
    pthread_mutex_unlock(&pool->lock); /* turns are short, a lock is not fair */
    sched_yield();
    pthread_mutex_lock(&pool->lock);
  }
  if (!tps_sim_chance_may_run(pool)) {
    tps_sim_chance_hold(pool);
  } else if (tps_sim_decide(pool, &t)) {
    pool->in_turn = true;
    one_turn(pool, &t);
    pool->in_turn = false;
  } else {
    pool->allowance = 0;
    pthread_cond_broadcast(&pool->calm);
    tps_sim_rest_for(pool, 0);
  }
}

static void *worker(void *argument) {
  tps_sim_pool *pool = argument;
  pthread_mutex_lock(&pool->lock);
  while (!pool->stopping) {
    tps_sim_turn t;
    if (pool->seed != 0) play(pool);
    else if (tps_sim_decide(pool, &t)) one_turn(pool, &t);
    else rest(pool);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}
