/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the files of the simulated device share: devices, streams, tasks (queued
 * operations) and the pool of worker threads. Nobody outside sim/ includes it.
 *
 * The life of a task: queued behind its stream's tail, with edges from whatever
 * else it has to wait for; started when it is at the head and its last edge is
 * gone; finished at once (record, wait, free) or, for launches, copies and
 * fills, when all its parts have run on workers. A part is a block of a grid or
 * a chunk of a copy. Parts that are set aside in the middle (blocks only) stay
 * with their task until somebody picks them up again.
 *
 * The launch of a graph is one task of its stream, which starts the graph's
 * nodes: each is a task in no stream, started when those before it are done.
 *
 * One lock, the pool's, guards all of this; it is held for scheduling decisions
 * only, never while parts run. One pool serves all simulated devices of the
 * process: they share its processors, and priorities hold across them.
 */
#ifndef TPS_SIM_QUEUE_H
#define TPS_SIM_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "device/device.h"
#include "device/watch.h"
#include "sim/engine.h"
#include "sim/memory.h"

#define TPS_SIM_LEVELS 6 /* priorities 0 … -5; level 5 goes first */

/* How long threads look for what they wait for before they sleep: being woken
 * up costs more than most short kernels take. Where looking turns out to be in
 * vain (long kernels, busy or single processors) they soon do with very little.
 */
typedef struct tps_sim_patience {
  _Atomic uint64_t ns, tries;
  uint64_t most_ns;
} tps_sim_patience;

typedef struct tps_sim_task tps_sim_task;
typedef struct tps_sim_stream tps_sim_stream;
typedef struct tps_sim_event tps_sim_event;
typedef struct tps_sim_record tps_sim_record;
typedef struct tps_sim_module tps_sim_module;
typedef struct tps_sim_function tps_sim_function;
typedef struct tps_sim_graph tps_sim_graph;
typedef struct tps_sim_plan tps_sim_plan;
typedef struct tps_sim_node tps_sim_node;
typedef struct tps_sim_device tps_sim_device;
typedef struct tps_sim_pool tps_sim_pool;

/* `task` can't start before the one whose list this edge is in has finished. */
typedef struct tps_sim_edge {
  struct tps_sim_edge *next,
      **link; /* link: what points here, NULL if unused */
  tps_sim_task *task;
} tps_sim_edge;

/* A host thread that waits; on its stack. */
typedef struct tps_sim_waiter {
  struct tps_sim_waiter *next;
  uint64_t target; /* of a stream: number of the task to wait for */
  bool woken;
  pthread_cond_t changed;
} tps_sim_waiter;

typedef enum tps_sim_task_kind {
  TPS_SIM_TASK_LAUNCH,
  TPS_SIM_TASK_COPY,
  TPS_SIM_TASK_FILL,
  TPS_SIM_TASK_FREE,
  TPS_SIM_TASK_RECORD,
  TPS_SIM_TASK_WAIT,
  TPS_SIM_TASK_NOTIFY,
  TPS_SIM_TASK_GRAPH,    /* a launch of one */
  TPS_SIM_TASK_CONDITION /* in a graph only */
} tps_sim_task_kind;

/* A block that was set aside. */
typedef struct tps_sim_aside {
  struct tps_sim_aside *next;
  tps_sim_block *block;
} tps_sim_aside;

typedef struct tps_sim_asides {
  tps_sim_aside *first, *last;
  uint64_t count;
} tps_sim_asides;

/* What the engine is to launch. */
typedef struct tps_sim_order {
  atomic_int refs; /* of tasks */
  tps_sim_function *function;
  tps_launch shape;
  unsigned char params[];
} tps_sim_order;

struct tps_sim_task {
  tps_sim_task *next;     /* in the stream, later in the garbage */
  tps_sim_stream *stream; /* of a graph's node: where the graph runs */
  tps_sim_node *node;     /* whose task this is, or NULL */
  tps_sim_device *device;
  tps_op *op;      /* a reference */
  uint64_t number; /* +1 for each task of the pool */
  uint8_t kind;
  bool started;
  bool failed;
  bool beginning;           /* a worker makes the engine's launch */
  unsigned blockers;        /* edges that lead here */
  tps_sim_edge *dependants; /* edges that leave */
  tps_sim_edge edge;        /* the first one that leads here */
  tps_sim_edge *edges;      /* further ones, owned */
  size_t edge_count;

  /* While parts run: the ring of its priority's runnable tasks. */
  tps_sim_task *ring_next, *ring_previous;
  uint64_t parts, next_part; /* those before next_part were handed out */
  uint64_t resident;         /* handed out and not finished */
  uint64_t resident_limit;
  tps_sim_asides ready, yielded;
  uint64_t aside_picks; /* since the last fresh part or the last finished one */
  uint64_t
      ran_ns; /* all workers together, from what the least of the ring had */
  uint64_t fruitless; /* turns of begun parts since one finished */
  uint64_t served;    /* turn at which it was picked last */
  uint64_t part_ns;   /* running mean */
  uint64_t began_ns;  /* 0: not yet; of a wait: its stream has come to it */
  uint64_t epoch;     /* of the device's space, since it began */

  union {
    struct {
      tps_sim_order *order;
      tps_sim_launch *launch; /* NULL until its turn comes */
      tps_sim_module *module; /* a reference */
      uint64_t seed;
      uint64_t stride,
          offset; /* block of part i: (i × stride + offset) % parts */
      bool cooperative;
    } run;
    struct {
      uint64_t to, from, bytes; /* `bytes` of all rows */
      uint64_t row_bytes, to_pitch, from_pitch;
      tps_sim_device *to_device, *from_device;
      unsigned char *to_host;
      const unsigned char *from_host;
      tps_sim_written *to_written;
      const tps_sim_written *from_written;
      uint64_t to_first, from_first; /* in what these are of */
    } copy;
    struct {
      uint64_t to, bytes;
      unsigned char pattern[8]; /* repeated to 8 bytes */
      unsigned char *host;
      tps_sim_written *written;
      uint64_t first; /* in what this is of */
    } fill;
    tps_sim_allocation *freed;
    tps_sim_record *record;
    struct {
      void (*call)(void *data, bool failed);
      void *data;
    } notice;
    struct {
      tps_sim_graph *graph; /* a reference to each */
      tps_sim_plan *plan;
      tps_sim_task **records; /* of its events, those that are still to begin;
                                 NULL: there are none */
    } graph;
    struct {
      uint64_t flag;
      uint64_t began_ns;
      bool loop;
    } condition;
  } u;
};

struct tps_sim_stream {
  tps_sim_device *device;
  tps_sim_stream *next; /* of the device's */
  tps_sim_task *head, *tail;
  _Atomic uint64_t queued; /* number of the newest task */
  _Atomic uint64_t done;   /* number of the newest finished task */
  uint64_t joined_legacy;  /* newest legacy task that a task here waits for */
  uint64_t legacy_joined;  /* newest task here that a legacy task waits for */
  tps_sim_waiter *waiters;
  uint64_t handle;
  int level; /* -priority */
  bool blocking;
  bool destroyed; /* freed once it is empty and no adopter is left */
  unsigned adopters;
  bool to_advance;
  tps_sim_stream *advance_next;
  bool startable; /* with a seed: in the pool's list of such */
  tps_sim_stream *startable_next;
};

/* One recording of an event. */
struct tps_sim_record {
  int refs;
  bool failed;
  tps_sim_device *device;
  tps_sim_task *task; /* NULL once done */
  atomic_bool done;
  uint64_t time_ns;
  tps_sim_waiter *waiters;
};

struct tps_sim_event {
  tps_sim_device *device;
  tps_sim_record *record; /* the latest, or NULL */
  unsigned flags;
  uint64_t handle;
};

struct tps_sim_module {
  tps_sim_device *device;
  atomic_int refs; /* the handle's and one for each launch */
  tps_sim_code *code;
  tps_sim_module *next; /* in a list of the unloaded */
  uint64_t unloaded; /* newest task when it was: older ones may still use it */
  pthread_mutex_t lock; /* guards `functions` */
  tps_sim_function *functions;
};

struct tps_sim_function {
  tps_sim_function *next;
  tps_sim_module *module;
  const tps_sim_kernel *kernel;
  tps_sim_kernel_info info;
  _Atomic int64_t dynamic_limit; /* bytes of dynamic shared memory allowed */
};

struct tps_sim_device {
  tps_device base;
  tps_sim_pool *pool;
  tps_sim_device *next; /* of the pool's */
  tps_sim_space *space;
  tps_sim_stream *streams; /* all, the legacy one first */
  tps_sim_stream *legacy;
  atomic_bool faulted;
  tps_error fault; /* constant once `faulted` */
  bool closing;
  tps_sim_module *unloading;     /* their variables may still be copied */
  uint64_t undestroyed;          /* launches, and modules to be destroyed */
  _Atomic uint64_t pending_free; /* bytes whose free is queued */
  _Atomic uint64_t launches;     /* ever */
  uint64_t seed;
  uint64_t timeout_ns; /* of a launch, 0 for none */
  bool peers;          /* kernels may use other devices' memory */
  pthread_mutex_t print_lock;
  char *printed;
  _Atomic size_t printed_bytes;
  size_t printed_capacity;
};

typedef struct tps_sim_nodes {
  tps_sim_node *first, *last;
} tps_sim_nodes;

struct tps_sim_pool {
  pthread_mutex_t lock;
  pthread_cond_t work;   /* workers sleep on it */
  pthread_cond_t quiet;  /* a closing device waits for its last part on it */
  unsigned threads;      /* to be started */
  unsigned thread_count; /* started */
  pthread_t *ids;
  unsigned idle, spinning; /* workers asleep, workers that look for work */
  atomic_uint offers;      /* +1 for each offer of work, for those who spin */
  tps_sim_patience workers, hosts;
  bool stopping;
  uint64_t seed; /* 0: none; what follows is for one (sim/chance.c) */
  uint64_t dice, fashion;
  uint64_t allowance; /* turns that the worker may take */
  uint64_t calls;     /* of the host */
  unsigned waiting;   /* host threads that do */
  unsigned calling;   /* host threads in the middle of a call */
  bool at_liberty, in_turn;
  atomic_uint knocking; /* threads that want the lock */
  pthread_cond_t calm;  /* the worker has nothing it may do */
  tps_sim_stream *startable;
  uint64_t turn;
  uint64_t numbered; /* tasks */
  pid_t process;     /* whose threads these are */
  uint64_t handles;
  tps_sim_task *rings[TPS_SIM_LEVELS];
  unsigned runnable;  /* tasks in the rings */
  unsigned fruitless; /* turns in a row that ended in a yield */
  tps_sim_stream *to_advance;
  tps_sim_nodes prompt,
      ready;                /* of graphs: to be started; when there is room */
  unsigned begun;           /* those that were in `ready`, and run */
  tps_sim_task *garbage;    /* launches to be destroyed without the lock */
  tps_sim_module *unloaded; /* modules, likewise */
  tps_sim_device *devices;
};

/* --- schedule.c (lock held in all of it) ---------------------------------- */

/* What one decision gives a worker. */
typedef struct tps_sim_turn {
  tps_sim_task *task;
  bool begins;           /* the engine's launch has to be made */
  uint64_t first, count; /* or fresh parts */
  tps_sim_aside *aside;  /* or one that was set aside */
  uint64_t slice;        /* instructions for each, 0 for as usual */
} tps_sim_turn;

/* False when there is nothing to run. With a seed it may start an operation that
 * needs no worker; t->task is NULL then. */
bool tps_sim_decide(tps_sim_pool *pool, tps_sim_turn *t);
/* True when another worker would find something other than yielded blocks. */
bool tps_sim_has_more(tps_sim_pool *pool);
uint64_t tps_sim_yielded_blocks(const tps_sim_pool *pool);
void tps_sim_ring_insert(tps_sim_pool *pool, tps_sim_task *task);
void tps_sim_ring_remove(tps_sim_pool *pool, tps_sim_task *task);
void tps_sim_asides_push(tps_sim_asides *list, tps_sim_aside *aside);
tps_sim_aside *tps_sim_asides_pop(tps_sim_asides *list);
void tps_sim_asides_move(tps_sim_asides *to, tps_sim_asides *from);

/* Whether the task has a part to hand out: a fresh one; any. */
bool tps_sim_has_fresh(const tps_sim_task *task);
bool tps_sim_has_any(const tps_sim_task *task);
/* Hands out: the making of the engine's launch, if that is still to be done;
 * the next `count` fresh parts. */
bool tps_sim_take_beginning(tps_sim_task *task, tps_sim_turn *t);
void tps_sim_take_fresh(tps_sim_task *task, uint64_t count, tps_sim_turn *t);

/* --- chance.c (lock held in all of it) ------------------------------------ */

uint64_t tps_sim_dice(tps_sim_pool *pool);
/* A stream whose head waits for nothing becomes a candidate; stops being one. */
void tps_sim_chance_add(tps_sim_stream *stream);
void tps_sim_chance_remove(tps_sim_stream *stream);
bool tps_sim_chance_decide(tps_sim_pool *pool, tps_sim_turn *t);
/* The worker: whether it may run; if not, to wait until it may. */
bool tps_sim_chance_may_run(const tps_sim_pool *pool);
void tps_sim_chance_hold(tps_sim_pool *pool);
/* In each call of the host that queues or asks: lets the worker take as many
 * turns as chance has it, at least one when the host asks. Without a seed does
 * nothing. Gives the lock up meanwhile. */
void tps_sim_chance_call(tps_sim_pool *pool, bool asks);
/* Not under the lock: the host asks whether something is done. */
void tps_sim_asked(tps_sim_pool *pool);

/* --- pool.c --------------------------------------------------------------- */

/* The pool of the process, made when needed; one reference for `device`. */
int tps_sim_pool_join(tps_sim_device *device, unsigned threads, uint64_t seed,
                      tps_error *err);
/* Gives it back; the last device stops the threads. */
void tps_sim_pool_leave(tps_sim_device *device);
void tps_sim_lock(tps_sim_pool *pool);
/* Also destroys, after unlocking, what has finished. */
void tps_sim_unlock(tps_sim_pool *pool);
/* Drops all work of the device and waits until its last part has ended. */
void tps_sim_drain(tps_sim_device *device);
/* The oldest epoch of the device's space that anything running began in. */
uint64_t tps_sim_oldest_epoch(tps_sim_device *device);

/* Looks whether there(what) becomes true, patiently, but not after `deadline`.
 */
bool tps_sim_look(tps_sim_patience *patience, bool (*there)(const void *),
                  const void *what, uint64_t deadline);

/* --- workers.c (lock held) ------------------------------------------------ */

/* Starts a first thread if there is none; false: could not. */
bool tps_sim_ensure_worker(tps_sim_pool *pool);
/* Waits until somebody calls a worker; false when `ns` (0: any time) passed. */
bool tps_sim_rest_for(tps_sim_pool *pool, uint64_t ns);
/* Puts a started task before the workers. */
void tps_sim_offer(tps_sim_pool *pool, tps_sim_task *task);
/* No further parts of the device's tasks that were offered; those that were
 * begun are run out (the engine ends each at its next turn). */
void tps_sim_cut_short(tps_sim_device *device, int code, const char *message);

/* --- streams.c ------------------------------------------------------------ */

/* Fault, or 0: the first lines of nearly every function of the face. */
int tps_sim_refuse(tps_sim_device *device, tps_error *err);
/* A task of that kind with a reference to `op`; NULL: no memory. */
tps_sim_task *tps_sim_task_new(tps_sim_device *device, tps_sim_task_kind kind,
                               tps_op *op);
/* Lock held. Puts `task` at the stream's end and starts what can be started.
 * `earlier`: one more task to wait for, or NULL. On failure the task still is
 * the caller's; once it is queued it may be gone already. */
int tps_sim_link_task(tps_sim_stream *stream, tps_sim_task *task,
                      tps_sim_task *earlier, tps_error *err);
/* Of a task that was not queued. */
void tps_sim_discard(tps_sim_task *task);
/* Takes over `task`, also when it fails. */
int tps_sim_queue(tps_sim_stream *stream, tps_sim_task *task, tps_error *err);
/* Lock held. Starts a task whose turn has come. */
void tps_sim_start(tps_sim_task *task);
/* Lock held. Whether queued work of the device is dropped, not run. */
bool tps_sim_is_doomed(tps_sim_device *device);
/* Lock held. Gives back what a task holds, and the task. */
void tps_sim_release(tps_sim_task *task);
/* Lock held. The task has begun to run, if it had not: the record says when. */
void tps_sim_task_begins(tps_sim_task *task);
/* Lock held. A started task has ended: wakes whoever waits, frees it. */
void tps_sim_task_finish(tps_sim_task *task, bool failed);
/* Lock held. The end of a RECORD task that is in no stream, without running. */
void tps_sim_record_end(tps_sim_task *task, bool failed);
/* Lock held. Starts the stream's first task, which waits for nothing. */
void tps_sim_start_head(tps_sim_stream *stream);
/* Lock held. Starts what can be started; with a seed: makes it a candidate. */
void tps_sim_advance(tps_sim_pool *pool);
/* Lock held. Keeps the first fault and drops what is queued. */
void tps_sim_device_fault(tps_sim_device *device, const tps_error *fault);
/* Lock held. Makes every stream of the device look at its head again. */
void tps_sim_advance_all(tps_sim_device *device);
/* Lock held. Sleeps in `list` until woken (true) or until the deadline. */
bool tps_sim_sleep_in(tps_sim_pool *pool, tps_sim_waiter **list,
                      uint64_t target, uint64_t deadline);
/* Lock held. Lets go of unloaded modules that no queued work is older than. */
void tps_sim_settle_modules(tps_sim_device *device);
/* Marks the record of an operation that never waits in a queue. */
void tps_sim_op_ran(tps_op *op);

tps_sim_stream *tps_sim_stream_make(tps_sim_device *device, int priority,
                                    bool blocking);

int tps_sim_stream_create(tps_device *, int priority, unsigned flags,
                          tps_device_stream **out, int *effective,
                          tps_error *err);
void tps_sim_stream_destroy(tps_device *, tps_device_stream *);
int tps_sim_stream_query(tps_device *, tps_device_stream *, tps_error *err);
int tps_sim_stream_synchronize(tps_device *, tps_device_stream *,
                               uint64_t timeout_ns, tps_error *err);
int tps_sim_stream_wait_event(tps_device *, tps_device_stream *,
                              tps_device_event *, tps_op *op, tps_error *err);
uint64_t tps_sim_stream_handle(tps_device *, tps_device_stream *);
int tps_sim_stream_notify(tps_device *, tps_device_stream *,
                          void (*notify)(void *data, bool failed), void *data,
                          tps_op *op, tps_error *err);
int tps_sim_stream_adopt(tps_device *, uint64_t handle, tps_device_stream **out,
                         int *priority, bool *blocking, tps_error *err);
void tps_sim_stream_forget(tps_device *, tps_device_stream *);
int tps_sim_synchronize(tps_device *, tps_error *err);

/* --- events.c ------------------------------------------------------------- */

void tps_sim_record_unref(tps_sim_record *record);
/* A task to record with, its record inside; NULL: no memory. */
tps_sim_task *tps_sim_record_task(tps_sim_device *device, tps_op *op);
int tps_sim_event_create(tps_device *, unsigned flags, tps_device_event **out,
                         tps_error *err);
void tps_sim_event_destroy(tps_device *, tps_device_event *);
int tps_sim_event_record(tps_device *, tps_device_event *, tps_device_stream *,
                         tps_op *op, tps_error *err);
int tps_sim_event_query(tps_device *, tps_device_event *, tps_error *err);
int tps_sim_event_synchronize(tps_device *, tps_device_event *,
                              uint64_t timeout_ns, tps_error *err);
int tps_sim_event_elapsed(tps_device *, tps_device_event *a,
                          tps_device_event *b, double *ms, tps_error *err);
uint64_t tps_sim_event_handle(tps_device *, tps_device_event *);
int tps_sim_event_export(tps_device *, tps_device_event *,
                         char handle[TPS_EVENT_IPC_BYTES], tps_error *err);
int tps_sim_event_import(tps_device *, const char handle[TPS_EVENT_IPC_BYTES],
                         tps_device_event **out, tps_error *err);

/* --- transfers.c ---------------------------------------------------------- */

/* Lock held. Finds the host memory again; false and *err when it is gone. */
bool tps_sim_transfer_begin(tps_sim_task *task, tps_error *err);
/* Bytes of each part of a copy or a fill. */
#define TPS_SIM_CHUNK ((uint64_t)256 << 10)
/* Up to that many bytes are moved by whoever starts the task. */
#define TPS_SIM_INLINE 4096u
void tps_sim_transfer_part(const tps_sim_task *task, uint64_t part);

/* Tasks of their own, checked but not queued. */
int tps_sim_copy_task(tps_sim_device *device, tps_device *to_face, uint64_t to,
                      tps_device *from_face, uint64_t from,
                      const tps_rows *rows, tps_op *op, tps_sim_task **out,
                      tps_error *err);
int tps_sim_fill_task(tps_sim_device *device, uint64_t to, uint64_t pattern,
                      unsigned width, uint64_t count, tps_op *op,
                      tps_sim_task **out, tps_error *err);

int tps_sim_memory_allocate(tps_device *, uint64_t bytes, tps_device_stream *,
                            tps_op *op, uint64_t *address, tps_error *err);
int tps_sim_memory_free(tps_device *, uint64_t address, tps_device_stream *,
                        tps_op *op, tps_error *err);
int tps_sim_memory_pin(tps_device *, uint64_t bytes, tps_pin, void **host,
                       uint64_t *address, tps_error *err);
int tps_sim_memory_unpin(tps_device *, tps_pin, void *host, uint64_t address,
                         tps_error *err);
void tps_sim_memory_note(tps_device *, uint64_t address, const char *element,
                         const char *source, int line);
int tps_sim_copy(tps_device *, uint64_t to, uint64_t from, uint64_t bytes,
                 tps_device_stream *, tps_op *op, tps_error *err);
int tps_sim_copy_rows(tps_device *, uint64_t to, tps_device *to_device,
                      uint64_t from, tps_device *from_device, const tps_rows *,
                      tps_device_stream *, tps_op *op, tps_error *err);
int tps_sim_copy_peer(tps_device *, uint64_t to, tps_device *to_device,
                      uint64_t from, tps_device *from_device, uint64_t bytes,
                      tps_device_stream *, tps_op *op, tps_error *err);
int tps_sim_fill(tps_device *, uint64_t to, uint64_t pattern, unsigned width,
                 uint64_t count, tps_device_stream *, tps_op *op,
                 tps_error *err);

/* --- modules.c ------------------------------------------------------------ */

void tps_sim_module_unref(tps_sim_module *module);
int tps_sim_launch_begin(tps_sim_task *task, tps_error *err);
/* A task of its own, checked but not queued. */
int tps_sim_launch_task(tps_sim_device *device, tps_device_kernel *kernel,
                        const tps_launch *given, tps_op *op, tps_sim_task **out,
                        tps_error *err);
/* What another launch of the same is numbered by: its seed, its blocks' order. */
void tps_sim_launch_number(tps_sim_task *task);
void tps_sim_order_unref(tps_sim_order *order);
int tps_sim_module_check(tps_device *, const void *image, size_t size,
                         tps_error *err);
int tps_sim_module_load(tps_device *, tps_image_kind, const void *image,
                        size_t size, const char *probe, tps_device_module **out,
                        tps_error *err);
void tps_sim_module_unload(tps_device *, tps_device_module *);
int tps_sim_kernel_find(tps_device *, tps_device_module *, const char *name,
                        tps_device_kernel **out, tps_error *err);
int tps_sim_kernel_params(tps_device *, tps_device_kernel *,
                          tps_kernel_desc *desc, tps_error *err);
int tps_sim_module_kernels(tps_device *, tps_device_module *, char ***names,
                           size_t *count, tps_error *err);
int tps_sim_kernel_attributes(tps_device *, tps_device_kernel *,
                              tps_kernel_attributes *out, tps_error *err);
int tps_sim_kernel_opt_in_shared(tps_device *, tps_device_kernel *,
                                 int64_t bytes, tps_error *err);
int tps_sim_kernel_occupancy(tps_device *, tps_device_kernel *, int threads,
                             int64_t shared, int *blocks, tps_error *err);
int tps_sim_global_find(tps_device *, tps_device_module *, const char *name,
                        uint64_t *address, uint64_t *bytes, tps_error *err);
int tps_sim_launch_kernel(tps_device *, tps_device_kernel *, const tps_launch *,
                          tps_device_stream *, tps_op *op, tps_error *err);

/* --- graphs.c, graph_runs.c ----------------------------------------------- */

/* Lock held. The turn of a graph's launch has come. */
void tps_sim_graph_start(tps_sim_task *task);
/* Lock held. It will not run: what its nodes would tell the host is told. */
void tps_sim_graph_skip(const tps_sim_task *task);
/* Lock held. Of a GRAPH task that has ended or was never queued. */
void tps_sim_graph_release(tps_sim_task *task);
/* Lock held. A node's task has ended. */
void tps_sim_node_finish(tps_sim_task *task, bool failed);
/* Lock held. A conditional node looks at its flag. */
void tps_sim_condition_decide(tps_sim_task *task);
/* Lock held. Starts the nodes that are ready, but only so many at once. */
void tps_sim_start_ready(tps_sim_pool *pool);
/* Lock held. Whether there are some that may start. */
bool tps_sim_any_ready(const tps_sim_pool *pool);

int tps_sim_graph_build(tps_device *, const tps_graph_node_list *,
                        tps_device_graph **out, tps_error *err);
int tps_sim_graph_change(tps_device *, tps_device_graph *,
                         const tps_graph_node_list *, uint32_t index,
                         tps_error *err);
int tps_sim_graph_update(tps_device *, tps_device_graph *,
                         const tps_graph_node_list *, tps_error *err);
int tps_sim_graph_launch(tps_device *, tps_device_graph *, tps_device_stream *,
                         tps_op *op, tps_error *err);
void tps_sim_graph_destroy(tps_device *, tps_device_graph *);

/* --- device.c ------------------------------------------------------------- */

/* What a kernel prints; the context is the device. */
void tps_sim_print(void *context, const char *text, size_t size);
void tps_sim_flush(tps_sim_device *device);
/* Gives dead memory back if much of it has gathered. Not under the lock. */
void tps_sim_tidy(tps_sim_device *device);

#endif
