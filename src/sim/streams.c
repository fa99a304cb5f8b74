/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Streams of the simulated device: the order of queued work, the
 * legacy stream's implicit joins, and host threads that wait.
 */
#include "sim/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

static tps_sim_device *to_device(tps_device *device) {
  return (tps_sim_device *)device;
}

static tps_sim_stream *to_stream(tps_device_stream *stream) {
  return (tps_sim_stream *)stream;
}

int tps_sim_refuse(tps_sim_device *device, tps_error *err) {
  if (!atomic_load_explicit(&device->faulted, memory_order_acquire)) return 0;
  *err = device->fault;
  return err->code;
}

bool tps_sim_is_doomed(tps_sim_device *device) {
  return device->closing ||
         atomic_load_explicit(&device->faulted, memory_order_relaxed);
}

/* --- operation records ---------------------------------------------------- */

void tps_sim_op_ran(tps_op *op) {
  uint64_t now = tps_now_ns();
  atomic_store_explicit(&op->started_ns, now, memory_order_relaxed);
  atomic_store_explicit(&op->finished_ns, now, memory_order_relaxed);
  atomic_store_explicit(&op->state, TPS_OP_DONE, memory_order_release);
  if (tps_watched(TPS_WATCH_TIMES)) tps_watch_ran(op, NULL, now, now);
}

void tps_sim_task_begins(tps_sim_task *task) {
  if (task->began_ns != 0) return;
  task->began_ns = tps_now_ns();
  atomic_store_explicit(&task->op->started_ns, task->began_ns,
                        memory_order_relaxed);
  atomic_store_explicit(&task->op->state, TPS_OP_RUNNING, memory_order_release);
}

/* What was dropped before it began has run at no time. */
static void tell_times(const tps_sim_task *task, uint64_t now, bool failed) {
  tps_op *graph = task->node != NULL ? task->stream->head->op : NULL;
  if (task->began_ns != 0) tps_watch_ran(task->op, graph, task->began_ns, now);
  else if (!failed) tps_watch_ran(task->op, graph, now, now);
}

static void op_finished(const tps_sim_task *task, bool failed) {
  tps_op *op = task->op;
  uint64_t now = tps_now_ns();
  if (task->began_ns == 0)
    atomic_store_explicit(&op->started_ns, now, memory_order_relaxed);
  atomic_store_explicit(&op->finished_ns, now, memory_order_relaxed);
  atomic_store_explicit(&op->state, failed ? TPS_OP_FAILED : TPS_OP_DONE,
                        memory_order_release);
  if (tps_watched(TPS_WATCH_TIMES)) tell_times(task, now, failed);
}

/* --- host threads that wait ----------------------------------------------- */

static struct timespec to_timespec(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                           .tv_nsec = (long)(ns % 1000000000u)};
}

static void waiter_init(tps_sim_waiter *waiter, uint64_t target) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&waiter->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  waiter->target = target;
  waiter->woken = false;
}

bool tps_sim_sleep_in(tps_sim_pool *pool, tps_sim_waiter **list,
                      uint64_t target, uint64_t deadline) {
  tps_sim_waiter waiter;
  waiter_init(&waiter, target);
  waiter.next = *list;
  pool->waiting++;
  if (pool->seed != 0) pthread_cond_broadcast(&pool->work);
  /* cppcheck-suppress autoVariables ; it leaves the list before the return */
  *list = &waiter;
  struct timespec until = to_timespec(deadline);
  int status = 0;
  while (!waiter.woken && status != ETIMEDOUT)
    status = deadline == TPS_FOREVER
                 ? pthread_cond_wait(&waiter.changed, &pool->lock)
                 : pthread_cond_timedwait(&waiter.changed, &pool->lock, &until);
  if (!waiter.woken) {
    while (*list != &waiter) list = &(*list)->next;
    *list = waiter.next;
    pool->waiting--;
  }
  pthread_cond_destroy(&waiter.changed);
  return waiter.woken;
}

/* Lock held. Wakes those whose target has been reached. */
static void wake(tps_sim_pool *pool, tps_sim_waiter **list, uint64_t reached) {
  while (*list != NULL) {
    tps_sim_waiter *waiter = *list;
    if (waiter->target > reached) {
      list = &waiter->next;
      continue;
    }
    *list = waiter->next;
    pool->waiting--;
    waiter->woken = true;
    pthread_cond_signal(&waiter->changed);
  }
}

/* --- edges ---------------------------------------------------------------- */

static void unlink_edge(tps_sim_edge *edge) {
  if (edge->link == NULL) return;
  *edge->link = edge->next;
  if (edge->next != NULL) edge->next->link = edge->link;
  edge->link = NULL;
  edge->task->blockers--;
}

/* `task` has room for `room` edges; the first one costs nothing. */
static bool reserve_edges(tps_sim_task *task, size_t room) {
  if (room <= 1) return true;
  task->edges = calloc(room - 1, sizeof *task->edges);
  return task->edges != NULL;
}

static void wait_for(tps_sim_task *task, tps_sim_task *earlier) {
  if (earlier == NULL) return;
  tps_sim_edge *edge =
      task->edge.link == NULL ? &task->edge : &task->edges[task->edge_count++];
  edge->task = task; /* NOLINT: there is room for it */
  edge->next = earlier->dependants;
  edge->link = &earlier->dependants;
  if (edge->next != NULL) edge->next->link = &edge->next;
  earlier->dependants = edge;
  task->blockers++;
}

static void unlink_all(tps_sim_task *task) {
  unlink_edge(&task->edge);
  for (size_t i = 0; i < task->edge_count; i++) unlink_edge(&task->edges[i]);
}

/* --- the life of a task --------------------------------------------------- */

tps_sim_task *tps_sim_task_new(tps_sim_device *device, tps_sim_task_kind kind,
                               tps_op *op) {
  tps_sim_task *task = calloc(1, sizeof *task);
  if (task == NULL) return NULL;
  task->device = device;
  task->kind = (uint8_t)kind;
  task->op = tps_op_ref(op);
  return task;
}

/* Launches are destroyed without the lock: that takes a while. */
void tps_sim_release(tps_sim_task *task) {
  tps_op_unref(task->op);
  free(task->edges);
  if (task->kind == TPS_SIM_TASK_RECORD || task->kind == TPS_SIM_TASK_WAIT)
    tps_sim_record_unref(task->u.record);
  if (task->kind == TPS_SIM_TASK_GRAPH) tps_sim_graph_release(task);
  if (task->kind != TPS_SIM_TASK_LAUNCH) {
    free(task);
    return;
  }
  tps_sim_pool *pool = task->device->pool;
  task->device->undestroyed++;
  task->next = pool->garbage;
  pool->garbage = task;
}

static void to_advance(tps_sim_stream *stream) {
  if (stream->to_advance) return;
  tps_sim_pool *pool = stream->device->pool;
  stream->to_advance = true;
  stream->advance_next = pool->to_advance;
  pool->to_advance = stream;
}

static void free_dependants(tps_sim_task *task) {
  while (task->dependants != NULL) {
    tps_sim_task *next = task->dependants->task;
    unlink_edge(task->dependants);
    if (next->blockers == 0) to_advance(next->stream);
  }
}

static void finish_record(tps_sim_pool *pool, tps_sim_record *record,
                          bool failed) {
  record->task = NULL;
  record->failed = failed;
  atomic_store_explicit(&record->done, true, memory_order_release);
  wake(pool, &record->waiters, 0);
}

void tps_sim_record_end(tps_sim_task *task, bool failed) {
  free_dependants(task);
  finish_record(task->device->pool, task->u.record, failed);
  tps_sim_release(task);
}

static void do_free(tps_sim_task *task) {
  tps_sim_allocation *memory = task->u.freed;
  uint64_t bytes = memory->size;
  tps_sim_free(task->device->space, memory, task->op->source, task->op->line);
  atomic_fetch_sub_explicit(&task->device->pending_free, bytes,
                            memory_order_relaxed);
}

/* Whether a device that is being closed may wait for the task. */
static bool is_awaited(const tps_sim_task *task) {
  if (task->device->closing || task->kind == TPS_SIM_TASK_LAUNCH) return true;
  return task->kind == TPS_SIM_TASK_COPY &&
         (task->u.copy.to_device->closing || task->u.copy.from_device->closing);
}

void tps_sim_task_finish(tps_sim_task *task, bool failed) {
  tps_sim_stream *stream = task->stream;
  tps_sim_pool *pool = task->device->pool;
  if (is_awaited(task)) pthread_cond_broadcast(&pool->quiet);
  if (task->node != NULL) {
    free_dependants(task); /* a record has some */
    if (task->kind == TPS_SIM_TASK_RECORD)
      finish_record(pool, task->u.record, failed);
    op_finished(task, failed);
    tps_sim_node_finish(task, failed);
    return;
  }
  stream->head = task->next;
  if (stream->head == NULL) stream->tail = NULL;
  free_dependants(task);
  if (task->kind == TPS_SIM_TASK_RECORD)
    finish_record(pool, task->u.record, failed);
  if (task->kind == TPS_SIM_TASK_FREE) do_free(task);
  if (task->kind == TPS_SIM_TASK_NOTIFY) {
    task->u.notice.call(task->u.notice.data, failed);
    pool->at_liberty = false; /* the host may have waited for this */
  }
  op_finished(task, failed);
  uint64_t number = task->number;
  tps_sim_release(task);
  atomic_store_explicit(&stream->done, number, memory_order_release);
  wake(pool, &stream->waiters, number);
  to_advance(stream);
  if (stream->device->unloading != NULL) tps_sim_settle_modules(stream->device);
}

static void start_transfer(tps_sim_task *task) {
  tps_error err;
  if (tps_watched(TPS_WATCH_TIMES)) tps_sim_task_begins(task);
  if (!tps_sim_transfer_begin(task, &err)) {
    tps_sim_device_fault(task->device, &err);
    tps_sim_task_finish(task, true);
  } else if (task->parts == 0) {
    tps_sim_task_finish(task, false);
  } else {
    tps_sim_offer(task->device->pool, task);
  }
}

void tps_sim_start(tps_sim_task *task) {
  task->started = true;
  if (tps_sim_is_doomed(task->device)) {
    unlink_all(task);
    if (task->kind == TPS_SIM_TASK_GRAPH) tps_sim_graph_skip(task);
    tps_sim_task_finish(task, true);
    return;
  }
  switch ((tps_sim_task_kind)task->kind) {
  case TPS_SIM_TASK_LAUNCH:
    task->epoch = tps_sim_space_epoch(task->device->space);
    tps_sim_offer(task->device->pool, task);
    break;
  case TPS_SIM_TASK_COPY:
  case TPS_SIM_TASK_FILL: start_transfer(task); break;
  case TPS_SIM_TASK_RECORD:
    task->u.record->time_ns = tps_now_ns();
    tps_sim_task_finish(task, false);
    break;
  case TPS_SIM_TASK_FREE:
  case TPS_SIM_TASK_WAIT:
  case TPS_SIM_TASK_NOTIFY: tps_sim_task_finish(task, false); break;
  case TPS_SIM_TASK_GRAPH: tps_sim_graph_start(task); break;
  case TPS_SIM_TASK_CONDITION:
    task->epoch = tps_sim_space_epoch(task->device->space);
    tps_sim_offer(task->device->pool, task);
    break;
  }
}

void tps_sim_start_head(tps_sim_stream *stream) { tps_sim_start(stream->head); }

static void stream_free(tps_sim_stream *stream) {
  tps_sim_chance_remove(stream);
  tps_sim_stream **p = &stream->device->streams;
  while (*p != stream) p = &(*p)->next;
  *p = stream->next;
  free(stream);
}

static void advance(tps_sim_stream *stream) {
  tps_sim_task *head = stream->head;
  if (head == NULL) {
    if (stream->destroyed && stream->adopters == 0) stream_free(stream);
  } else if (head->started) {
    return;
  } else if (tps_sim_is_doomed(stream->device)) {
    tps_sim_start(head);
  } else if (head->blockers == 0) {
    if (stream->device->pool->seed != 0) tps_sim_chance_add(stream);
    else tps_sim_start(head);
  } else if (head->kind == TPS_SIM_TASK_WAIT && tps_watched(TPS_WATCH_TIMES)) {
    tps_sim_task_begins(head);
  }
}

void tps_sim_advance(tps_sim_pool *pool) {
  while (pool->to_advance != NULL || tps_sim_any_ready(pool)) {
    tps_sim_start_ready(pool);
    tps_sim_stream *stream = pool->to_advance;
    if (stream == NULL) continue;
    pool->to_advance = stream->advance_next;
    stream->to_advance = false;
    advance(stream);
  }
}

void tps_sim_advance_all(tps_sim_device *device) {
  for (tps_sim_stream *s = device->streams; s != NULL; s = s->next)
    to_advance(s);
}

void tps_sim_device_fault(tps_sim_device *device, const tps_error *fault) {
  if (tps_sim_is_doomed(device)) return;
  device->fault = *fault;
  if (!tps_code_sticky(fault->code)) /* as every fault is */
    device->fault.code = TPS_LAUNCH_FAILED;
  atomic_store_explicit(&device->faulted, true, memory_order_release);
  tps_sim_cut_short(device, fault->code, fault->message);
  tps_sim_advance_all(device);
}

/* --- queueing ------------------------------------------------------------- */

void tps_sim_discard(tps_sim_task *task) {
  tps_sim_pool *pool = task->device->pool;
  tps_sim_lock(pool);
  tps_sim_release(task);
  tps_sim_unlock(pool);
}

static bool needs_worker(const tps_sim_task *task) {
  if (task->device->pool->seed != 0) return true;
  return task->kind == TPS_SIM_TASK_LAUNCH || task->kind == TPS_SIM_TASK_COPY ||
         task->kind == TPS_SIM_TASK_FILL || task->kind == TPS_SIM_TASK_GRAPH;
}

/* How many edges the implicit order of `stream` asks for now, at the most. */
static size_t implicit_edges(const tps_sim_stream *stream) {
  if (!stream->blocking) return 0;
  if (stream != stream->device->legacy) return 1;
  size_t count = 0;
  for (tps_sim_stream *s = stream->device->streams; s != NULL; s = s->next)
    count += s->blocking && s != stream && s->tail != NULL;
  return count;
}

static void join_legacy(tps_sim_stream *stream, tps_sim_task *task) {
  tps_sim_task *last = stream->device->legacy->tail;
  if (last == NULL || last->number <= stream->joined_legacy) return;
  wait_for(task, last);
  stream->joined_legacy = last->number;
}

static void legacy_joins(tps_sim_stream *legacy, tps_sim_task *task) {
  for (tps_sim_stream *s = legacy->device->streams; s != NULL; s = s->next) {
    if (!s->blocking || s == legacy || s->tail == NULL) continue;
    if (s->tail->number <= s->legacy_joined) continue;
    wait_for(task, s->tail);
    s->legacy_joined = s->tail->number;
  }
}

static void append(tps_sim_stream *stream, tps_sim_task *task) {
  task->stream = stream;
  task->number = ++stream->device->pool->numbered;
  if (stream->tail != NULL) stream->tail->next = task;
  else stream->head = task;
  stream->tail = task;
  atomic_store_explicit(&stream->queued, task->number, memory_order_relaxed);
}

int tps_sim_link_task(tps_sim_stream *stream, tps_sim_task *task,
                      tps_sim_task *earlier, tps_error *err) {
  tps_sim_pool *pool = stream->device->pool;
  int code = tps_sim_refuse(stream->device, err);
  if (code != 0) return code;
  if (stream->device->closing)
    return tps_fail(err, TPS_INVALID_DEVICE, "the simulated device is closed");
  size_t edges = implicit_edges(stream) + (earlier != NULL);
  if (!reserve_edges(task, edges))
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for queued work");
  if (needs_worker(task) && !tps_sim_ensure_worker(pool))
    return tps_fail(err, TPS_NO_HOST_MEMORY,
                    "the simulated device can't start a worker thread");
  wait_for(task, earlier);
  if (stream == stream->device->legacy) legacy_joins(stream, task);
  else if (stream->blocking) join_legacy(stream, task);
  append(stream, task);
  if (stream->head == task) to_advance(stream);
  tps_sim_advance(pool);
  return 0;
}

int tps_sim_queue(tps_sim_stream *stream, tps_sim_task *task, tps_error *err) {
  tps_sim_pool *pool = stream->device->pool;
  tps_sim_lock(pool);
  int code = tps_sim_link_task(stream, task, NULL, err);
  if (code == 0) tps_sim_chance_call(pool, false);
  tps_sim_unlock(pool);
  if (code != 0) tps_sim_discard(task);
  return code;
}

/* --- streams -------------------------------------------------------------- */

static int clamp_priority(const tps_sim_device *device, int priority) {
  int least = device->base.properties.priority_least;
  int greatest = device->base.properties.priority_greatest;
  if (priority > least) return least;
  return priority < greatest ? greatest : priority;
}

tps_sim_stream *tps_sim_stream_make(tps_sim_device *device, int priority,
                                    bool blocking) {
  tps_sim_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->device = device;
  stream->level = -priority;
  stream->blocking = blocking;
  tps_sim_lock(device->pool);
  if (device->streams != NULL) { /* behind the legacy one */
    stream->handle = ++device->pool->handles * 16;
    stream->next = device->streams->next;
    device->streams->next = stream;
  } else {
    device->streams = device->legacy = stream;
  }
  tps_sim_unlock(device->pool);
  return stream;
}

int tps_sim_stream_create(tps_device *face, int priority, unsigned flags,
                          tps_device_stream **out, int *effective,
                          tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  *effective = clamp_priority(device, priority);
  tps_sim_stream *stream = tps_sim_stream_make(
      device, *effective, (flags & TPS_STREAM_BLOCKING) != 0);
  if (stream == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a stream");
  *out = (tps_device_stream *)stream;
  return 0;
}

void tps_sim_stream_destroy(tps_device *face, tps_device_stream *handle) {
  tps_sim_device *device = to_device(face);
  tps_sim_stream *stream = to_stream(handle);
  if (stream == device->legacy) return;
  tps_sim_lock(device->pool);
  stream->destroyed = true;
  to_advance(stream);
  tps_sim_advance(device->pool);
  tps_sim_unlock(device->pool);
}

uint64_t tps_sim_stream_handle(tps_device *face, tps_device_stream *stream) {
  (void)face;
  return to_stream(stream)->handle;
}

int tps_sim_stream_notify(tps_device *face, tps_device_stream *handle,
                          void (*notify)(void *data, bool failed), void *data,
                          tps_op *op, tps_error *err) {
  tps_sim_task *task =
      tps_sim_task_new(to_device(face), TPS_SIM_TASK_NOTIFY, op);
  if (task == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for queued work");
  task->u.notice.call = notify;
  task->u.notice.data = data;
  /* NOLINTNEXTLINE: the queue keeps the task */
  return tps_sim_queue(to_stream(handle), task, err);
}

/* --- streams by their handles --------------------------------------------- */

#define PER_THREAD 2u /* the handle of CUDA's per-thread default stream */

/* Lock held. */
static tps_sim_stream *find_handle(const tps_sim_device *device,
                                   uint64_t handle) {
  tps_sim_stream *s = device->streams->next;
  while (s != NULL && (s->handle != handle || s->destroyed)) s = s->next;
  return s;
}

/* All threads share the one per-thread default stream of a device. */
static tps_sim_stream *per_thread_stream(tps_sim_device *device) {
  tps_sim_stream *s = tps_sim_stream_make(device, 0, true);
  if (s == NULL) return NULL;
  tps_sim_lock(device->pool);
  s->handle = PER_THREAD;
  tps_sim_unlock(device->pool);
  return s;
}

static tps_sim_stream *adopt(tps_sim_device *device, uint64_t handle) {
  tps_sim_lock(device->pool);
  tps_sim_stream *s = find_handle(device, handle);
  if (s != NULL) s->adopters++;
  tps_sim_unlock(device->pool);
  return s;
}

int tps_sim_stream_adopt(tps_device *face, uint64_t handle,
                         tps_device_stream **out, int *priority, bool *blocking,
                         tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  tps_sim_stream *s = adopt(device, handle);
  if (s == NULL && handle == PER_THREAD) {
    if (per_thread_stream(device) == NULL)
      return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a stream");
    s = adopt(device, handle);
  }
  if (s == NULL)
    return tps_fail(err, TPS_INVALID_HANDLE,
                    "sim:%d has no stream with the handle 0x%llx",
                    face->ordinal, (unsigned long long)handle);
  *out = (tps_device_stream *)s;
  *priority = -s->level;
  *blocking = s->blocking;
  return 0;
}

void tps_sim_stream_forget(tps_device *face, tps_device_stream *handle) {
  tps_sim_device *device = to_device(face);
  tps_sim_stream *stream = to_stream(handle);
  tps_sim_lock(device->pool);
  stream->adopters--;
  to_advance(stream);
  tps_sim_advance(device->pool);
  tps_sim_unlock(device->pool);
}

/* Whether waiting for `asked` (NULL: the device) means waiting for `s`. Waiting
 * for the legacy stream is waiting for all that it would wait for. */
static bool concerns(const tps_sim_stream *asked, const tps_sim_stream *s) {
  if (asked == NULL || asked == s) return true;
  return asked == asked->device->legacy && s->blocking;
}

/* Lock held. A stream with work up to number `upto` that `asked` concerns. */
static tps_sim_stream *find_busy(tps_sim_device *device,
                                 const tps_sim_stream *asked, uint64_t upto) {
  for (tps_sim_stream *s = device->streams; s != NULL; s = s->next)
    if (concerns(asked, s) && s->head != NULL && s->head->number <= upto)
      return s;
  return NULL;
}

void tps_sim_settle_modules(tps_sim_device *device) {
  tps_sim_pool *pool = device->pool;
  for (tps_sim_module **p = &device->unloading; *p != NULL;) {
    tps_sim_module *module = *p;
    if (find_busy(device, NULL, module->unloaded) != NULL) {
      p = &module->next;
      continue;
    }
    *p = module->next;
    device->undestroyed++;
    module->next = pool->unloaded;
    pool->unloaded = module;
  }
}

static int wait_busy(tps_sim_device *device, tps_sim_stream *asked,
                     uint64_t deadline, tps_error *err) {
  tps_sim_pool *pool = device->pool;
  tps_sim_lock(pool);
  uint64_t upto = pool->numbered;
  tps_sim_stream *busy;
  bool in_time = true;
  while (in_time && (busy = find_busy(device, asked, upto)) != NULL) {
    uint64_t target = atomic_load(&busy->queued);
    if (target > upto) target = upto;
    in_time = tps_sim_sleep_in(pool, &busy->waiters, target, deadline);
  }
  tps_sim_unlock(pool);
  int code = tps_sim_refuse(device, err);
  if (code != 0 || in_time) return code;
  return tps_fail(err, TPS_NOT_READY, "work is still running");
}

static bool is_idle(const tps_sim_stream *stream, uint64_t target) {
  return atomic_load_explicit(&stream->done, memory_order_acquire) >= target;
}

typedef struct goal {
  const tps_sim_stream *stream;
  uint64_t target;
} goal;

static bool is_reached(const void *what) {
  const goal *g = what;
  return is_idle(g->stream, g->target);
}

int tps_sim_stream_synchronize(tps_device *face, tps_device_stream *handle,
                               uint64_t timeout_ns, tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_stream *stream = to_stream(handle);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  uint64_t deadline = tps_deadline_ns(timeout_ns);
  uint64_t target = atomic_load_explicit(&stream->queued, memory_order_relaxed);
  goal g = {stream, target};
  if (tps_sim_look(&device->pool->hosts, is_reached, &g, deadline) &&
      stream != device->legacy)
    return tps_sim_refuse(device, err);
  return wait_busy(device, stream, deadline, err);
}

int tps_sim_stream_query(tps_device *face, tps_device_stream *handle,
                         tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_stream *stream = to_stream(handle);
  uint64_t target = atomic_load_explicit(&stream->queued, memory_order_relaxed);
  tps_sim_asked(device->pool);
  bool idle = is_idle(stream, target);
  if (idle && stream == device->legacy) {
    tps_sim_lock(device->pool);
    idle = find_busy(device, stream, UINT64_MAX) == NULL;
    tps_sim_unlock(device->pool);
  }
  int code = tps_sim_refuse(device, err);
  if (code != 0 || idle) return code;
  return tps_fail(err, TPS_NOT_READY, "work is still running");
}

int tps_sim_synchronize(tps_device *face, tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  return code != 0 ? code : wait_busy(device, NULL, TPS_FOREVER, err);
}
