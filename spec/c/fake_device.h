/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A device for the runtime's tests: it queues operations, runs them only when
 * told to (or at once, see `automatic`) and judges what the runtime does.
 * Memory must be allocated before it is used and free of uses when it is freed;
 * nothing that could wait may be called while work is queued; nothing destroyed
 * may be used. Each violation is counted in `crimes` and printed.
 *
 * Addresses are host pointers, so copies and fills are real. Both kinds have
 * FAKE_DEVICES devices; since a fault is for the process, each test that needs
 * one takes a fresh ordinal.
 */
#ifndef TPS_SPEC_FAKE_DEVICE_H
#define TPS_SPEC_FAKE_DEVICE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"

#define FAKE_DEVICES 64

/* One record of an event: what waits for it keeps it although the event may be
 * recorded again or destroyed. */
typedef struct fake_mark {
  bool done;
  int refs;
  uint64_t when;
} fake_mark;

typedef struct fake_event {
  struct fake_device *device;
  unsigned flags;
  fake_mark *mark; /* the latest */
  bool destroyed;
  struct fake_event *next;
} fake_event;

typedef struct fake_task {
  struct fake_task *next;
  int kind;        /* tps_op_kind */
  fake_mark *mark; /* of RECORD and WAIT */
  uint64_t to, from, bytes, pattern;
  unsigned width;
  tps_op *op;
  void (*call)(void *data, bool failed); /* of HOST */
  void *data;
} fake_task;

typedef struct fake_stream {
  struct fake_stream *next;
  struct fake_device *device;
  fake_task *first, *last;
  unsigned permits; /* launches and copies that may run */
  bool destroyed;
  int frees; /* run here */
} fake_stream;

typedef struct fake_memory {
  struct fake_memory *next;
  uint64_t id, address, bytes;
  bool allocated, freed, pinned;
} fake_memory;

typedef struct fake_device {
  tps_device base;
  bool automatic; /* launches and copies run as soon as they can */
  bool stall;     /* synchronizing does not make them run */
  bool peer;      /* others may be reached */
  bool busy_pool; /* events can't be made or recorded */
  int fault;
  fake_stream legacy, *streams;
  fake_memory *memories;
  fake_event *dead;
  int crimes, waits, unpins, unloads;
  int live_streams, live_events, live_pinned, live_modules, live_memories;
  int live_shared, live_imported;
  int records, event_waits, frees, launches, adopted;
  uint64_t limit; /* of an allocation */
} fake_device;

static fake_device fakes[2][FAKE_DEVICES];
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t fake_clock;

static void crime(fake_device *d, const char *what) {
  d->crimes++;
  fprintf(stderr, "crime on device %d: %s\n", d->base.ordinal, what);
}

#define FAKE(d) ((fake_device *)(d))
#define FAKE_BEGIN(d)                                                          \
  fake_device *f = FAKE(d);                                                    \
  (void)f;                                                                     \
  pthread_mutex_lock(&fake_lock)
#define FAKE_END(value)                                                        \
  do {                                                                         \
    pthread_mutex_unlock(&fake_lock);                                          \
    return value;                                                              \
  } while (0)
#define FAKE_FAULT(err)                                                        \
  do {                                                                         \
    if (f->fault != 0)                                                         \
      FAKE_END(tps_fail(err, f->fault, "%s", tps_code_message(f->fault)));     \
  } while (0)

/* ---- running ------------------------------------------------------------- */

static fake_memory *fake_find(fake_device *f, uint64_t address) {
  for (fake_memory *m = f->memories; m != NULL; m = m->next)
    if (address >= m->address && address < m->address + m->bytes && !m->freed)
      return m;
  return NULL;
}

static fake_memory *fake_by_id(uint64_t id) {
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < FAKE_DEVICES; i++)
      for (fake_memory *m = fakes[k][i].memories; m != NULL; m = m->next)
        if (m->id == id && id != 0) return m;
  return NULL;
}

static bool touches(const fake_task *t, uint64_t id) {
  if (t->op == NULL || (t->kind != TPS_OP_LAUNCH && t->kind != TPS_OP_COPY &&
                        t->kind != TPS_OP_FILL))
    return false;
  for (uint32_t i = 0; i < t->op->touch_count; i++)
    if (t->op->touches[i].memory == id) return true;
  return false;
}

static bool used_in(const fake_stream *s, uint64_t id) {
  for (const fake_task *t = s->first; t != NULL; t = t->next)
    if (touches(t, id)) return true;
  return false;
}

/* Is the memory still needed by anything queued anywhere? */
static bool still_used(uint64_t id) {
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < FAKE_DEVICES; i++) {
      if (used_in(&fakes[k][i].legacy, id)) return true;
      for (fake_stream *s = fakes[k][i].streams; s != NULL; s = s->next)
        if (used_in(s, id)) return true;
    }
  return false;
}

static bool is_work(const fake_task *t) {
  return t->kind == TPS_OP_LAUNCH || t->kind == TPS_OP_COPY ||
         t->kind == TPS_OP_FILL;
}

static void check_uses(fake_device *f, const fake_task *t) {
  if (!is_work(t)) return;
  for (uint32_t i = 0; t->op != NULL && i < t->op->touch_count; i++) {
    const fake_memory *m = fake_by_id(t->op->touches[i].memory);
    if (m == NULL) continue;
    if (!m->allocated) crime(f, "memory used before it is allocated");
    if (m->freed) crime(f, "memory used after it is freed");
  }
}

static void run_free(fake_device *f, fake_task *t) {
  fake_memory *m = fake_find(f, t->to);
  if (m == NULL) {
    crime(f, "free of what is no memory");
    return;
  }
  if (!m->allocated) crime(f, "free before allocation");
  if (still_used(m->id)) crime(f, "free before the last use");
  m->freed = true;
  f->frees++;
  f->live_memories--;
  free((void *)(uintptr_t)m->address);
}

static void run_fill(const fake_task *t) {
  char *to = (char *)(uintptr_t)t->to;
  for (uint64_t i = 0; i < t->bytes; i++)
    memcpy(to + i * t->width, &t->pattern, t->width);
}

static void run_task(fake_stream *s, fake_task *t) {
  fake_device *f = s->device;
  check_uses(f, t);
  if (t->kind == TPS_OP_COPY)
    memcpy((void *)(uintptr_t)t->to, (void *)(uintptr_t)t->from, t->bytes);
  if (t->kind == TPS_OP_FILL) run_fill(t);
  if (t->kind == TPS_OP_RECORD) {
    t->mark->done = true;
    t->mark->when = ++fake_clock;
  }
  if (t->kind == TPS_OP_HOST) t->call(t->data, false);
  if (t->kind == TPS_OP_ALLOC) fake_find(f, t->to)->allocated = true;
  if (t->kind == TPS_OP_FREE) {
    s->frees++;
    run_free(f, t);
  }
}

static void release_mark(fake_mark *m) {
  if (m != NULL && --m->refs == 0) free(m);
}

/* Runs what it can at the head of the stream; true when something ran. */
static bool advance(fake_stream *s) {
  bool ran = false;
  while (s->first != NULL && s->device->fault == 0) {
    fake_task *t = s->first;
    bool work = is_work(t);
    if (work && s->permits == 0 && !s->device->automatic) break;
    if (t->kind == TPS_OP_WAIT && !t->mark->done) break;
    if (work && s->permits > 0) s->permits--;
    s->first = t->next; /* off the queue: its own use no longer counts */
    if (s->first == NULL) s->last = NULL;
    run_task(s, t);
    release_mark(t->mark);
    if (t->op != NULL) {
      atomic_store(&t->op->state, TPS_OP_DONE);
      tps_op_unref(t->op);
    }
    free(t);
    ran = true;
  }
  return ran;
}

static bool advance_device(fake_device *f) {
  bool ran = advance(&f->legacy);
  for (fake_stream *s = f->streams; s != NULL; s = s->next)
    ran = advance(s) || ran;
  return ran;
}

/* Waits go across devices, so everything is looked at. */
static void settle(void) {
  bool ran = true;
  while (ran) {
    ran = false;
    for (int k = 0; k < 2; k++)
      for (int i = 0; i < FAKE_DEVICES; i++)
        ran = advance_device(&fakes[k][i]) || ran;
  }
}

/* Lets n launches or copies of the stream run. */
static inline void fake_step(tps_device_stream *stream, unsigned n) {
  pthread_mutex_lock(&fake_lock);
  ((fake_stream *)stream)->permits += n;
  settle();
  ((fake_stream *)stream)->permits = 0;
  pthread_mutex_unlock(&fake_lock);
}

/* Lets everything queued run. */
static void finish_locked(fake_device *f) {
  bool before = f->automatic;
  f->automatic = true;
  settle();
  f->automatic = before;
}

static void fake_finish(tps_device *device) {
  pthread_mutex_lock(&fake_lock);
  finish_locked(FAKE(device));
  pthread_mutex_unlock(&fake_lock);
}

static bool fake_busy(const fake_device *f) {
  if (f->legacy.first != NULL) return true;
  for (const fake_stream *s = f->streams; s != NULL; s = s->next)
    if (s->first != NULL) return true;
  return false;
}

static void push(fake_stream *s, fake_task task, tps_op *op) {
  fake_task *t = malloc(sizeof *t);
  *t = task;
  t->next = NULL;
  t->op = tps_op_ref(op);
  if (s->destroyed) crime(s->device, "a destroyed stream is used");
  if (t->mark != NULL) t->mark->refs++;
  if (s->last != NULL) s->last->next = t;
  else s->first = t;
  s->last = t;
  settle();
}

/* ---- the face: device, streams, events ----------------------------------- */

static int fake_memory_info(tps_device *d, uint64_t *left, uint64_t *total,
                            tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  *left = 1000;
  *total = 4000;
  FAKE_END(0);
}

static int fake_synchronize(tps_device *d, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  f->waits++;
  finish_locked(f);
  FAKE_END(0);
}

static void fake_close(tps_device *d) { (void)d; }

static tps_device_stream *fake_default_stream(tps_device *d) {
  return (tps_device_stream *)&FAKE(d)->legacy;
}

static int fake_stream_create(tps_device *d, int priority, unsigned flags,
                              tps_device_stream **out, int *effective,
                              tps_error *err) {
  (void)flags;
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  fake_stream *s = calloc(1, sizeof *s);
  s->device = f;
  s->next = f->streams;
  f->streams = s;
  f->live_streams++;
  *effective = priority < -5 ? -5 : priority > 0 ? 0 : priority;
  *out = (tps_device_stream *)s;
  FAKE_END(0);
}

static void fake_stream_destroy(tps_device *d, tps_device_stream *stream) {
  FAKE_BEGIN(d);
  fake_stream *s = (fake_stream *)stream;
  if (s->destroyed) crime(f, "a stream is destroyed twice");
  s->destroyed = true;
  f->live_streams--;
  pthread_mutex_unlock(&fake_lock);
}

static int fake_stream_query(tps_device *d, tps_device_stream *stream,
                             tps_error *err) {
  FAKE_BEGIN(d);
  fake_stream *s = (fake_stream *)stream;
  if (s->destroyed) crime(f, "a destroyed stream is queried");
  FAKE_FAULT(err);
  settle();
  FAKE_END(s->first == NULL ? 0 : TPS_NOT_READY);
}

static void pause_or_finish(fake_device *f, uint64_t timeout_ns) {
  f->waits++;
  if (!f->stall) {
    finish_locked(f);
    return;
  }
  pthread_mutex_unlock(&fake_lock);
  usleep((unsigned)(timeout_ns < 2000000 ? timeout_ns / 1000 : 2000));
  pthread_mutex_lock(&fake_lock);
}

static int fake_stream_synchronize(tps_device *d, tps_device_stream *stream,
                                   uint64_t timeout_ns, tps_error *err) {
  FAKE_BEGIN(d);
  fake_stream *s = (fake_stream *)stream;
  FAKE_FAULT(err);
  if (s->first != NULL) pause_or_finish(f, timeout_ns);
  FAKE_END(s->first == NULL ? 0 : TPS_NOT_READY);
}

static int fake_event_create(tps_device *d, unsigned flags,
                             tps_device_event **out, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  if (f->busy_pool) FAKE_END(tps_fail(err, TPS_INVALID_VALUE, "no event"));
  fake_event *e = calloc(1, sizeof *e);
  e->device = f;
  e->flags = flags;
  f->live_events++;
  *out = (tps_device_event *)e;
  FAKE_END(0);
}

static void fake_event_destroy(tps_device *d, tps_device_event *event) {
  FAKE_BEGIN(d);
  fake_event *e = (fake_event *)event;
  if (e->destroyed) crime(f, "an event is destroyed twice");
  e->destroyed = true;
  e->device->live_events--;
  release_mark(e->mark);
  e->mark = NULL;
  e->next = f->dead;
  f->dead = e; /* kept, so that a use of it is noticed */
  pthread_mutex_unlock(&fake_lock);
}

static int fake_event_record(tps_device *d, tps_device_event *event,
                             tps_device_stream *stream, tps_op *op,
                             tps_error *err) {
  FAKE_BEGIN(d);
  fake_event *e = (fake_event *)event;
  FAKE_FAULT(err);
  if (f->busy_pool) FAKE_END(tps_fail(err, TPS_INVALID_VALUE, "no event"));
  if (e->destroyed) crime(f, "a destroyed event is recorded");
  if (e->device != f) crime(f, "an event of another device is recorded");
  f->records++;
  release_mark(e->mark);
  e->mark = calloc(1, sizeof *e->mark);
  e->mark->refs = 1;
  push((fake_stream *)stream,
       (fake_task){.kind = TPS_OP_RECORD, .mark = e->mark}, op);
  FAKE_END(0);
}

static int fake_stream_wait_event(tps_device *d, tps_device_stream *stream,
                                  tps_device_event *event, tps_op *op,
                                  tps_error *err) {
  FAKE_BEGIN(d);
  fake_event *e = (fake_event *)event;
  FAKE_FAULT(err);
  if (e->destroyed) crime(f, "a destroyed event is waited for");
  f->event_waits++;
  push((fake_stream *)stream, (fake_task){.kind = TPS_OP_WAIT, .mark = e->mark},
       op);
  FAKE_END(0);
}

static int fake_event_query(tps_device *d, tps_device_event *event,
                            tps_error *err) {
  FAKE_BEGIN(d);
  fake_event *e = (fake_event *)event;
  if (e->destroyed) crime(f, "a destroyed event is queried");
  FAKE_FAULT(err);
  settle();
  FAKE_END(e->mark->done ? 0 : TPS_NOT_READY);
}

static int fake_event_synchronize(tps_device *d, tps_device_event *event,
                                  uint64_t timeout_ns, tps_error *err) {
  FAKE_BEGIN(d);
  fake_event *e = (fake_event *)event;
  FAKE_FAULT(err);
  if (!e->mark->done) pause_or_finish(f, timeout_ns);
  FAKE_END(e->mark->done ? 0 : TPS_NOT_READY);
}

static int fake_event_elapsed(tps_device *d, tps_device_event *a,
                              tps_device_event *b, double *ms, tps_error *err) {
  (void)d, (void)err;
  *ms = (double)((fake_event *)b)->mark->when -
        (double)((fake_event *)a)->mark->when;
  return 0;
}

static uint64_t fake_handle(tps_device *d, tps_device_stream *stream) {
  (void)d;
  return (uint64_t)(uintptr_t)stream;
}

/* As on a GPU, nothing is called after a fault. */
static int fake_stream_notify(tps_device *d, tps_device_stream *stream,
                              void (*notify)(void *data, bool failed),
                              void *data, tps_op *op, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  push((fake_stream *)stream,
       (fake_task){.kind = TPS_OP_HOST, .call = notify, .data = data}, op);
  FAKE_END(0);
}

static int fake_stream_adopt(tps_device *d, uint64_t handle,
                             tps_device_stream **out, int *priority,
                             bool *blocking, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  fake_stream *s = f->streams;
  while (s != NULL && (uint64_t)(uintptr_t)s != handle) s = s->next;
  if (s == NULL || s->destroyed)
    FAKE_END(tps_fail(err, TPS_INVALID_HANDLE, "no such stream"));
  *out = (tps_device_stream *)s;
  *priority = -1;
  *blocking = false;
  f->adopted++;
  FAKE_END(0);
}

static void fake_stream_forget(tps_device *d, tps_device_stream *stream) {
  (void)stream;
  FAKE_BEGIN(d);
  f->adopted--;
  pthread_mutex_unlock(&fake_lock);
}

static uint64_t fake_event_handle(tps_device *d, tps_device_event *event) {
  (void)d;
  return (uint64_t)(uintptr_t)event;
}

/* ---- the face: memory ---------------------------------------------------- */

static fake_memory *add_memory(fake_device *f, uint64_t id, void *host,
                               uint64_t bytes, bool pinned) {
  fake_memory *m = calloc(1, sizeof *m);
  m->id = id;
  m->address = (uint64_t)(uintptr_t)host;
  m->bytes = bytes;
  m->pinned = m->allocated = pinned;
  m->next = f->memories;
  f->memories = m;
  return m;
}

static int fake_memory_allocate(tps_device *d, uint64_t bytes,
                                tps_device_stream *stream, tps_op *op,
                                uint64_t *address, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  if (bytes > f->limit)
    FAKE_END(tps_fail(err, TPS_OUT_OF_MEMORY, "out of memory"));
  *address = (uint64_t)(uintptr_t)calloc(1, bytes);
  add_memory(f, op->touches[0].memory, (void *)(uintptr_t)*address, bytes,
             false);
  f->live_memories++;
  push((fake_stream *)stream, (fake_task){.kind = TPS_OP_ALLOC, .to = *address},
       op);
  FAKE_END(0);
}

static int fake_memory_free(tps_device *d, uint64_t address,
                            tps_device_stream *stream, tps_op *op,
                            tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  push((fake_stream *)stream, (fake_task){.kind = TPS_OP_FREE, .to = address},
       op);
  FAKE_END(0);
}

static int fake_memory_pin(tps_device *d, uint64_t bytes, tps_pin kind,
                           void **host, uint64_t *address, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  (void)kind;
  *host = malloc(bytes);
  memset(*host, 0x5a, bytes < 65536 ? bytes : 65536);
  *address = (uint64_t)(uintptr_t)*host;
  f->live_pinned++;
  add_memory(f, 0, *host, bytes, true);
  FAKE_END(0);
}

static int fake_memory_unpin(tps_device *d, tps_pin kind, void *host,
                             uint64_t address, tps_error *err) {
  FAKE_BEGIN(d);
  (void)kind;
  (void)err;
  if (fake_busy(f)) crime(f, "unpin would wait");
  f->live_pinned--;
  f->unpins++;
  fake_find(f, address)->freed = true;
  free(host);
  FAKE_END(0);
}

static int fake_copy(tps_device *d, uint64_t to, uint64_t from, uint64_t bytes,
                     tps_device_stream *stream, tps_op *op, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  push((fake_stream *)stream,
       (fake_task){.kind = TPS_OP_COPY, .to = to, .from = from, .bytes = bytes},
       op);
  FAKE_END(0);
}

static int fake_copy_peer(tps_device *d, uint64_t to, tps_device *to_device,
                          uint64_t from, tps_device *from_device,
                          uint64_t bytes, tps_device_stream *stream, tps_op *op,
                          tps_error *err) {
  if (to_device == from_device) crime(FAKE(d), "peer copy within a device");
  return fake_copy(d, to, from, bytes, stream, op, err);
}

static int fake_memory_share(tps_device *d, uint64_t bytes, uint64_t *address,
                             tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  void *memory = calloc(1, bytes);
  *address = (uint64_t)(uintptr_t)memory;
  f->live_shared++;
  FAKE_END(0);
}

static int fake_memory_export(tps_device *d, uint64_t address,
                              char handle[TPS_MEMORY_IPC_BYTES],
                              tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  memset(handle, 0, TPS_MEMORY_IPC_BYTES);
  memcpy(handle, &address, sizeof address);
  FAKE_END(0);
}

/* In this process: the same memory once more, of 64 bytes. */
static int fake_memory_import(tps_device *d,
                              const char handle[TPS_MEMORY_IPC_BYTES],
                              uint64_t *address, uint64_t *bytes,
                              tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  memcpy(address, handle, sizeof *address);
  *bytes = 64;
  f->live_imported++;
  FAKE_END(0);
}

static void fake_memory_unshare(tps_device *d, uint64_t address,
                                bool imported) {
  FAKE_BEGIN(d);
  if (fake_busy(f)) crime(f, "unshare would wait");
  if (imported) f->live_imported--;
  else f->live_shared--;
  pthread_mutex_unlock(&fake_lock);
  if (!imported) free((void *)(uintptr_t)address);
}

static int fake_copy_rows(tps_device *d, uint64_t to, tps_device *to_device,
                          uint64_t from, tps_device *from_device,
                          const tps_rows *rows, tps_device_stream *stream,
                          tps_op *op, tps_error *err) {
  (void)to_device;
  (void)from_device;
  int code = 0;
  for (uint64_t i = 0; i < rows->count && code == 0; i++)
    code = fake_copy(d, to + i * rows->to_pitch, from + i * rows->from_pitch,
                     rows->bytes, stream, op, err);
  return code;
}

static int fake_fill(tps_device *d, uint64_t to, uint64_t pattern,
                     unsigned width, uint64_t count, tps_device_stream *stream,
                     tps_op *op, tps_error *err) {
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  push((fake_stream *)stream,
       (fake_task){.kind = TPS_OP_FILL,
                   .to = to,
                   .bytes = count,
                   .width = width,
                   .pattern = pattern},
       op);
  FAKE_END(0);
}

static bool fake_can_access_peer(tps_device *d, tps_device *other) {
  (void)other;
  return FAKE(d)->peer;
}

/* ---- the face: modules --------------------------------------------------- */

/* An image is the names of its kernels, each ended by a comma. */
static int fake_module_load(tps_device *d, tps_image_kind kind,
                            const void *image, size_t size, const char *probe,
                            tps_device_module **out, tps_error *err) {
  (void)kind, (void)probe;
  FAKE_BEGIN(d);
  FAKE_FAULT(err);
  char *names = calloc(1, size + 1);
  memcpy(names, image, size);
  f->live_modules++;
  *out = (tps_device_module *)names;
  FAKE_END(0);
}

static void fake_module_unload(tps_device *d, tps_device_module *module) {
  FAKE_BEGIN(d);
  if (fake_busy(f)) crime(f, "unload would wait");
  f->live_modules--;
  f->unloads++;
  free(module);
  pthread_mutex_unlock(&fake_lock);
}

static int fake_kernel_find(tps_device *d, tps_device_module *module,
                            const char *name, tps_device_kernel **out,
                            tps_error *err) {
  (void)d;
  const char *found = strstr((const char *)module, name);
  if (found == NULL) return tps_fail(err, TPS_NOT_FOUND, "no %s", name);
  *out = (tps_device_kernel *)(uintptr_t)found;
  return 0;
}

static int fake_kernel_params(tps_device *d, tps_device_kernel *kernel,
                              tps_kernel_desc *desc, tps_error *err) {
  (void)d, (void)kernel, (void)err;
  desc->param_count = 2;
  desc->param_bytes = 16;
  desc->params = calloc(2, sizeof *desc->params);
  for (uint32_t i = 0; i < 2; i++) {
    desc->params[i].type = strdup(".b64");
    desc->params[i].offset = i * 8;
    desc->params[i].size = desc->params[i].align = 8;
    desc->params[i].dtype = TPS_OPAQUE;
  }
  return 0;
}

static int fake_module_kernels(tps_device *d, tps_device_module *module,
                               char ***names, size_t *count, tps_error *err) {
  (void)d, (void)err;
  const char *text = (const char *)module;
  size_t n = 0, size = strlen(text) + 1;
  for (const char *p = text; *p != '\0'; p++) n += *p == ',';
  char **list = malloc(n * sizeof *list + size);
  char *copy = (char *)(list + n);
  memcpy(copy, text, size);
  for (size_t i = 0; i < n; i++) {
    list[i] = copy;
    copy = strchr(copy, ',');
    *copy++ = '\0';
  }
  *names = list;
  *count = n;
  return 0;
}

static int fake_kernel_attributes(tps_device *d, tps_device_kernel *kernel,
                                  tps_kernel_attributes *out, tps_error *err) {
  (void)d, (void)err;
  bool greedy = strncmp((const char *)kernel, "greedy", 6) == 0;
  *out = (tps_kernel_attributes){.registers = greedy ? 128 : 32,
                                 .shared_bytes = 1024,
                                 .max_threads = greedy ? 512 : 1024,
                                 .max_dynamic_shared = 48 * 1024 - 1024};
  return 0;
}

static int fake_opt_in(tps_device *d, tps_device_kernel *kernel, int64_t bytes,
                       tps_error *err) {
  (void)d, (void)kernel, (void)bytes, (void)err;
  return 0;
}

static int fake_occupancy(tps_device *d, tps_device_kernel *kernel, int threads,
                          int64_t shared, int *blocks, tps_error *err) {
  (void)d, (void)kernel, (void)shared, (void)err;
  *blocks = 2048 / threads;
  return 0;
}

static int fake_global_find(tps_device *d, tps_device_module *module,
                            const char *name, uint64_t *address,
                            uint64_t *bytes, tps_error *err) {
  (void)d;
  if (strcmp(name, "table") != 0)
    return tps_fail(err, TPS_NOT_FOUND, "no %s", name);
  *address = (uint64_t)(uintptr_t)module;
  *bytes = 4;
  return 0;
}

static int fake_launch(tps_device *d, tps_device_kernel *kernel,
                       const tps_launch *launch, tps_device_stream *stream,
                       tps_op *op, tps_error *err) {
  FAKE_BEGIN(d);
  (void)kernel, (void)launch;
  FAKE_FAULT(err);
  f->launches++;
  push((fake_stream *)stream, (fake_task){.kind = TPS_OP_LAUNCH}, op);
  FAKE_END(0);
}

static const tps_device_face fake_face = {
    .memory_info = fake_memory_info,
    .synchronize = fake_synchronize,
    .close = fake_close,
    .default_stream = fake_default_stream,
    .stream_create = fake_stream_create,
    .stream_destroy = fake_stream_destroy,
    .stream_query = fake_stream_query,
    .stream_synchronize = fake_stream_synchronize,
    .stream_wait_event = fake_stream_wait_event,
    .stream_handle = fake_handle,
    .event_create = fake_event_create,
    .event_destroy = fake_event_destroy,
    .event_record = fake_event_record,
    .event_query = fake_event_query,
    .event_synchronize = fake_event_synchronize,
    .event_elapsed = fake_event_elapsed,
    .event_handle = fake_event_handle,
    .memory_allocate = fake_memory_allocate,
    .memory_free = fake_memory_free,
    .memory_pin = fake_memory_pin,
    .memory_unpin = fake_memory_unpin,
    .copy = fake_copy,
    .copy_peer = fake_copy_peer,
    .copy_rows = fake_copy_rows,
    .memory_share = fake_memory_share,
    .memory_export = fake_memory_export,
    .memory_import = fake_memory_import,
    .memory_unshare = fake_memory_unshare,
    .fill = fake_fill,
    .can_access_peer = fake_can_access_peer,
    .module_load = fake_module_load,
    .module_unload = fake_module_unload,
    .kernel_find = fake_kernel_find,
    .kernel_params = fake_kernel_params,
    .module_kernels = fake_module_kernels,
    .kernel_attributes = fake_kernel_attributes,
    .kernel_opt_in_shared = fake_opt_in,
    .kernel_occupancy = fake_occupancy,
    .global_find = fake_global_find,
    .launch = fake_launch,
    .stream_notify = fake_stream_notify,
    .stream_adopt = fake_stream_adopt,
    .stream_forget = fake_stream_forget,
};

/* ---- in place of cuda/ and sim/ ------------------------------------------ */

static int fake_open(tps_device_kind kind, int ordinal, tps_device **out) {
  fake_device *f = &fakes[kind][ordinal];
  f->base.face = &fake_face;
  f->base.kind = kind;
  f->base.ordinal = ordinal;
  f->base.unpin_waits = true;
  f->legacy.device = f;
  f->limit = (uint64_t)1 << 40;
  f->base.properties =
      (tps_device_properties){.name = "fake",
                              .capability_major = 8,
                              .multiprocessors = 4,
                              .warp_size = 32,
                              .max_threads_per_block = 1024,
                              .max_block = {1024, 1024, 64},
                              .max_grid = {2147483647, 65535, 65535},
                              .shared_per_block = 48 * 1024,
                              .shared_per_block_optin = 166912,
                              .registers_per_block = 65536,
                              .cooperative_launch = true};
  *out = &f->base;
  return 0;
}

int tps_cuda_device_count(tps_error *why) {
  (void)why;
  return FAKE_DEVICES;
}
int tps_sim_device_count(void) { return FAKE_DEVICES; }
int tps_cuda_device_open(int ordinal, tps_device **out, tps_error *err) {
  (void)err;
  return fake_open(TPS_CUDA, ordinal, out);
}
int tps_sim_device_open(int ordinal, tps_device **out, tps_error *err) {
  (void)err;
  return fake_open(TPS_SIM, ordinal, out);
}

#endif
