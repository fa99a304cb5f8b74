/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The pool of the process: its lock, its beginning and its end. It belongs to
 * the process, not to a device, since there is one set of processors to share;
 * it ends with the last device, or in an orderly way when the process exits.
 */
#include "sim/queue.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_MOST 20000u /* ns */
#define LOOK_LEAST 500u

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static tps_sim_pool *the_pool;
static bool at_exit_known;

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* --- looking before sleeping ---------------------------------------------- */

static void pause_a_little(void) {
#if defined __x86_64__ || defined __i386__
  __builtin_ia32_pause();
#endif
}

static bool look_until(bool (*there)(const void *), const void *what,
                       uint64_t end) {
  do {
    for (int i = 0; i < 16; i++) {
      if (there(what)) return true;
      pause_a_little();
    }
  } while (tps_now_ns() < end);
  return there(what);
}

/* Success makes it patient at once, failure less and less; each 16th look is a
 * long one, to find out whether that pays again. */
bool tps_sim_look(tps_sim_patience *patience, bool (*there)(const void *),
                  const void *what, uint64_t deadline) {
  if (there(what)) return true;
  if (patience->most_ns == 0) return false;
  uint64_t ns = atomic_load_explicit(&patience->ns, memory_order_relaxed);
  uint64_t tries =
      atomic_fetch_add_explicit(&patience->tries, 1, memory_order_relaxed);
  uint64_t end = tps_now_ns() + (tries % 16 == 0 ? patience->most_ns : ns);
  bool found = look_until(there, what, end < deadline ? end : deadline);
  ns = found ? patience->most_ns : ns / 2;
  if (ns < LOOK_LEAST) ns = LOOK_LEAST;
  atomic_store_explicit(&patience->ns, ns, memory_order_relaxed);
  return found;
}

/* --- the lock, and what is destroyed outside it --------------------------- */

void tps_sim_lock(tps_sim_pool *pool) {
  if (pool->seed == 0) {
    pthread_mutex_lock(&pool->lock);
    return;
  }
  atomic_fetch_add(&pool->knocking, 1);
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_sub(&pool->knocking, 1);
}

static void destroyed_one(tps_sim_device *device) {
  tps_sim_pool *pool = device->pool;
  pthread_mutex_lock(&pool->lock);
  device->undestroyed--;
  if (device->closing) pthread_cond_broadcast(&pool->quiet);
  pthread_mutex_unlock(&pool->lock);
}

static void destroy_launches(tps_sim_task *garbage) {
  while (garbage != NULL) {
    tps_sim_task *task = garbage;
    garbage = task->next;
    tps_sim_device *device = task->device;
    tps_sim_order_unref(task->u.run.order);
    if (task->u.run.launch != NULL) tps_sim_launch_destroy(task->u.run.launch);
    if (task->u.run.module != NULL) tps_sim_module_unref(task->u.run.module);
    free(task);
    destroyed_one(device);
  }
}

static void destroy_modules(tps_sim_module *unloaded) {
  while (unloaded != NULL) {
    tps_sim_module *module = unloaded;
    unloaded = module->next;
    tps_sim_device *device = module->device;
    tps_sim_module_unref(module);
    destroyed_one(device);
  }
}

void tps_sim_unlock(tps_sim_pool *pool) {
  tps_sim_task *garbage = pool->garbage;
  tps_sim_module *unloaded = pool->unloaded;
  pool->garbage = NULL;
  pool->unloaded = NULL;
  pthread_mutex_unlock(&pool->lock);
  destroy_launches(garbage);
  destroy_modules(unloaded);
}

/* Lock held. Calls `visit` for each task that runs or is about to. */
static bool any_task(const tps_sim_pool *pool,
                     bool (*visit)(const tps_sim_task *, void *), void *data) {
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    const tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (visit(task, data)) return true;
      task = task->ring_next;
    } while (task != first);
  }
  return false;
}

static bool note_epoch(const tps_sim_task *task, void *oldest) {
  *(uint64_t *)oldest = least(*(uint64_t *)oldest, task->epoch);
  return false;
}

/* What runs on one device may use the memory of all. */
uint64_t tps_sim_oldest_epoch(tps_sim_device *device) {
  pthread_mutex_lock(&device->pool->lock);
  uint64_t oldest = tps_sim_space_epoch(device->space);
  any_task(device->pool, note_epoch, &oldest);
  pthread_mutex_unlock(&device->pool->lock);
  return oldest;
}

/* --- beginning and end ---------------------------------------------------- */

static bool uses(const tps_sim_task *task, void *data) {
  const tps_sim_device *device = data;
  if (task->kind != TPS_SIM_TASK_COPY)
    return task->device == device || task->kind == TPS_SIM_TASK_LAUNCH;
  return task->u.copy.from_device == device || task->u.copy.to_device == device;
}

/* Work of this device, or what runs on another one and may use its memory. */
static bool is_busy(tps_sim_device *device) {
  if (device->undestroyed > 0) return true;
  if (any_task(device->pool, uses, device)) return true;
  for (const tps_sim_stream *s = device->streams; s != NULL; s = s->next)
    if (s->head != NULL) return true;
  return false;
}

void tps_sim_drain(tps_sim_device *device) {
  tps_sim_pool *pool = device->pool;
  tps_sim_lock(pool);
  device->closing = true;
  tps_sim_cut_short(device, TPS_INVALID_DEVICE,
                    "the simulated device is closed");
  tps_sim_advance_all(device);
  tps_sim_advance(pool);
  tps_sim_unlock(pool);
  pthread_mutex_lock(&pool->lock);
  pool->waiting++;
  pthread_cond_broadcast(&pool->work);
  while (is_busy(device)) pthread_cond_wait(&pool->quiet, &pool->lock);
  pool->waiting--;
  for (tps_sim_stream *s = device->streams; s != NULL; s = s->next)
    tps_sim_chance_remove(s);
  pthread_mutex_unlock(&pool->lock);
  tps_sim_flush(device);
}

static void stop_threads(tps_sim_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->work);
  pthread_cond_broadcast(&pool->calm);
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

/* Those that this process may use. */
static unsigned processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
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
  pthread_cond_init(&pool->calm, &attributes);
  pthread_condattr_destroy(&attributes);
}

static void init_patience(tps_sim_patience *patience, bool any) {
  patience->most_ns = any && processors() > 1 ? LOOK_MOST : 0;
  atomic_init(&patience->ns, patience->most_ns);
}

static tps_sim_pool *pool_new(unsigned threads, uint64_t seed) {
  tps_sim_pool *pool = calloc(1, sizeof *pool);
  if (pool == NULL) return NULL;
  pool->threads = threads != 0 ? threads : processors();
  if (seed != 0) pool->threads = 1; /* the order is to be the same each time */
  pool->seed = pool->dice = seed;
  pool->fashion = tps_sim_dice(pool);
  pool->handles = 255;
  pool->process = getpid();
  init_patience(&pool->workers, seed == 0);
  init_patience(&pool->hosts, seed == 0);
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
  pthread_cond_destroy(&pool->calm);
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
