/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Threads that build: as many as there are processors, at the most, and none when
 * there is nothing to build. The process's end waits for what is being built,
 * since NVRTC would be taken down under it; what has not begun is dropped.
 *
 * At exit() what registers itself later is taken down earlier, and NVRTC does so
 * while it compiles for the first time. No handler that we register could come
 * before that if exit() is called meanwhile; but what belongs to the thread that
 * calls it goes before all handlers. So the thread that starts a build waits for
 * it at its own end, and all that is built later is waited for by a handler, which
 * is registered after a first small compile. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rtc/parts.h"

typedef struct item {
  struct item *next;
  tps_rtc_pending *job;
  void (*done)(void *data);
  void *data;
  const void *owner;
  const void *starter; /* the thread that has started it */
} item;

#define MOST 16

/* A thread runs, or has ended and is to be joined: what NVRTC keeps for each
 * thread has to be gone before the process ends. */
typedef struct worker {
  pthread_t thread;
  const void *owner,
      *starter; /* of what it builds; NULL: it is about to look */
  enum { FREE, RUNS, ENDED } state;
} worker;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER;
static item *first, *last;
static worker workers[MOST];
static int threads; /* that run */
static bool ending;
static pthread_once_t watching = PTHREAD_ONCE_INIT;
static _Thread_local char this_thread; /* its address stands for the thread */

/* ---- the end of the process ---------------------------------------------- */

/* Under the lock, which ended threads no longer take. */
static void join_ended(void) {
  for (int i = 0; i < MOST; i++) {
    if (workers[i].state != ENDED) continue;
    pthread_join(workers[i].thread, NULL);
    workers[i].state = FREE;
  }
}

static void at_end(void) {
  pthread_mutex_lock(&lock);
  ending = true;
  while (threads > 0) pthread_cond_wait(&fewer, &lock);
  join_ended();
  pthread_mutex_unlock(&lock);
}

void tps_rtc_end(void) { at_end(); }

/* ---- the end of a thread ------------------------------------------------- */

/* Whether a build that this thread has started is not over, or a worker that has
 * nothing to do has not ended: it might take with it what NVRTC keeps for it. */
static bool is_busy(void) {
  for (const item *i = first; i != NULL; i = i->next)
    if (i->starter == &this_thread) return true;
  for (int i = 0; i < MOST; i++)
    if (workers[i].state == RUNS &&
        (workers[i].starter == NULL || workers[i].starter == &this_thread))
      return true;
  return false;
}

static void thread_ends(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (item *i = first; i != NULL; i = i->next)
    if (i->starter == &this_thread) tps_rtc_cancel(i->job);
  while (!ending && is_busy()) pthread_cond_wait(&fewer, &lock);
  join_ended();
  pthread_mutex_unlock(&lock);
}

/* The C++ library's, as destructors of thread_local objects have it: calls
 * function(argument) at the end of the thread or, before all handlers, when the
 * thread calls exit(). `within` is any address in the caller's library, which
 * stays loaded until then. Not every C library has it. */
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument,
                             void *within) __attribute__((weak));

static void wait_at_the_end(void) {
  static _Thread_local bool registered;
  if (!registered && __cxa_thread_atexit_impl != NULL)
    registered = __cxa_thread_atexit_impl(thread_ends, NULL, &lock) == 0;
}

/* ---- another process ----------------------------------------------------- */

/* A fork of this one has no threads but that which forked: nothing is built there,
 * and nothing to be waited for. */
static void forget_all(void) {
  first = last = NULL;
  memset(workers, 0, sizeof workers);
  threads = 0;
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&fewer, NULL);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_all); }

/* ---- those of a state ---------------------------------------------------- */

static bool builds(const void *owner) {
  for (const item *i = first; i != NULL; i = i->next)
    if (i->owner == owner) return true;
  for (int i = 0; i < MOST; i++)
    if (workers[i].state == RUNS && workers[i].owner == owner) return true;
  return false;
}

void tps_rtc_leave(const void *owner) {
  pthread_mutex_lock(&lock);
  while (!ending && builds(owner)) pthread_cond_wait(&fewer, &lock);
  pthread_mutex_unlock(&lock);
}

static void compile_nothing(void) {
  tps_error err;
  const tps_nvrtc *nvrtc = tps_nvrtc_open(&err);
  tps_nvrtc_program *program = NULL;
  if (nvrtc != NULL &&
      nvrtc->CreateProgram(&program, "__global__ void nothing() {}",
                           TPS_RTC_PROGRAM, 0, NULL, NULL) == 0) {
    nvrtc->CompileProgram(program, 0, NULL);
    nvrtc->DestroyProgram(&program);
  }
  atexit(at_end);
}

void tps_worker_warm_up(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, compile_nothing);
}

/* ---- threads ------------------------------------------------------------- */

/* The next item; NULL: there is none, and the thread no longer runs. */
static item *take(worker *self) {
  pthread_mutex_lock(&lock);
  item *i = ending ? NULL : first;
  if (i != NULL) {
    first = i->next;
    if (first == NULL) last = NULL;
    self->owner = i->owner;
    self->starter = i->starter;
  } else {
    self->state = ENDED;
    threads--;
    pthread_cond_broadcast(&fewer);
  }
  pthread_mutex_unlock(&lock);
  return i;
}

static void *work(void *self) {
  item *i;
  while ((i = take((worker *)self)) != NULL) {
    tps_rtc_work(i->job);
    i->done(i->data);
    free(i);
    pthread_mutex_lock(&lock);
    ((worker *)self)->owner = ((worker *)self)->starter = NULL;
    pthread_cond_broadcast(&fewer);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

/* Under the lock. Signals are for the threads of the script. */
static int start_thread(void) {
  worker *w = workers;
  sigset_t all, before;
  while (w->state != FREE) w++;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(&w->thread, NULL, work, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failure != 0) return failure;
  w->owner = w->starter = NULL;
  w->state = RUNS;
  threads++;
  return 0;
}

static int most(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 2 ? 2 : (int)(count < MOST ? count : MOST);
}

/* Takes it out again; false: a thread has it. */
static bool remove_item(const item *which) {
  item **at = &first, *before = NULL;
  while (*at != NULL && *at != which) {
    before = *at;
    at = &before->next;
  }
  if (*at == NULL) return false;
  *at = which->next;
  if (last == which) last = before;
  return true;
}

int tps_rtc_start(tps_rtc_pending *job, const void *owner,
                  void (*done)(void *data), void *data, tps_error *err) {
  item *i = malloc(sizeof *i);
  if (i == NULL) return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  *i = (item){NULL, job, done, data, owner, &this_thread};
  tps_rtc_detach(job);
  pthread_once(&watching, watch_forks);
  wait_at_the_end();
  pthread_mutex_lock(&lock);
  if (last != NULL) last->next = i;
  else first = i;
  last = i;
  join_ended();
  int failure = threads < most() ? start_thread() : 0;
  bool lost = failure != 0 && threads == 0 && remove_item(i);
  pthread_mutex_unlock(&lock);
  if (!lost) return 0;
  free(i);
  return tps_fail(err, TPS_NO_HOST_MEMORY, "no thread to be had");
}
