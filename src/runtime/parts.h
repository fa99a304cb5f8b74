/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the files of the runtime share and nobody else sees.
 *
 * Three lifetimes meet here. A tps_device_state lives as long as the process
 * and is shared by threads (lock). A tps_local is what one context keeps for
 * one device (no lock: the context's thread alone uses it). A tps_pinned, a
 * page-locked block, wanders: in use, waiting to be reclaimed, in the
 * process-wide pool.
 */
#ifndef TPS_RUNTIME_PARTS_H
#define TPS_RUNTIME_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/event.h"
#include "runtime/lent.h"
#include "runtime/memory.h"
#include "runtime/module.h"
#include "runtime/observer.h"

#define TPS_SLICE_NS 50000000u /* of a wait, between looks at the interrupt */
#define TPS_RING 64u           /* records a stream remembers; a power of two */
#define TPS_EVENT_POOL 256u
#define TPS_WAITED 4u

typedef struct tps_local tps_local;

/* A page-locked block. `event` (NULL: none) marks the last use while it waits
 * to be reclaimed; `stuck`: nobody can tell when it is free, so it stays. */
typedef struct tps_pinned {
  struct tps_pinned *next;
  tps_device *device;
  tps_pin kind;
  void *host;
  uint64_t address, bytes;
  tps_device_event *event;
  bool stuck;
} tps_pinned;

/* A module as loaded on one device; once dead it waits to be unloaded. */
typedef struct tps_loaded {
  struct tps_loaded *next;
  tps_device *device;
  tps_device_module *module;
  tps_device_event *event;
  bool stuck;
} tps_loaded;

/* ---- of the process: device->runtime ------------------------------------- */

#define TPS_POOL_CLASSES 160

typedef struct tps_device_state {
  atomic_int faulted;   /* the sticky code, set after `fault` is complete */
  atomic_uint orphans;  /* how many below, to look without the lock */
  pthread_mutex_t lock; /* for everything below */
  tps_error fault;
  unsigned contexts; /* that have used the device and live */
  tps_pinned *pool[2][TPS_POOL_CLASSES]; /* page-locked, managed */
  uint64_t pool_bytes;
  tps_pinned *orphan_pinned; /* left busy by contexts that are gone */
  tps_loaded *orphan_modules;
  struct tps_array *arrays; /* texture.c's, to be used again */
  uint64_t array_bytes;
  struct tps_shared *unshared; /* shared.c's, to be given back */
} tps_device_state;

static inline tps_device_state *tps_state(const tps_device *device) {
  return device->runtime;
}

static inline bool tps_faulted(const tps_device *device) {
  return atomic_load_explicit(&tps_state(device)->faulted,
                              memory_order_acquire) != 0;
}

/* A number never used before, above 0. */
uint64_t tps_next_id(void);
const char *tps_kind_name(tps_device_kind kind);

/* ---- context, and its part for each device ------------------------------- */

typedef struct tps_stream_list {
  tps_stream *first, *last;
} tps_stream_list;

struct tps_local {
  tps_local *next;
  tps_context *context;
  tps_device *device;
  tps_stream *default_stream, *reclaim; /* NULL until first needed */
  struct tps_watcher *watchers;         /* watch.c's */
  unsigned callbacks;     /* of its streams, that were neither taken nor lost */
  tps_stream_list open;   /* every stream that takes work */
  tps_stream_list closed; /* with work that may still run, or held */
  tps_device_event *events[TPS_EVENT_POOL];
  unsigned event_count;
  tps_op *scratch; /* record of what the runtime itself queues */
  tps_pinned *pending, *pending_last; /* pinned blocks that queued work uses */
  tps_memory *unfreed; /* dropped, but the free could not be queued yet */
  tps_loaded *dead;    /* modules to unload */
  struct tps_staging *staging;
  uint64_t spare_bytes; /* of all streams' spares */
  tps_memory_stats stats;
};

struct tps_context_parts {
  int refs; /* the owner's and one for each object */
  tps_local *locals;
  tps_memory *spare; /* structs to use again */
  unsigned spare_count;
  uint64_t held, limit; /* bytes of all memory that is not closed; the most */
  struct tps_inbox *inbox;           /* callback.c's; NULL until first needed */
  struct tps_lent *_Atomic returned; /* lent.c's, as what follows */
  bool left, serving;
  struct tps_capture *capture; /* the one begun last, or NULL */
  bool spread; /* a graph was launched that is spread over several devices */
};

static inline void tps_context_hold(tps_context *context) {
  context->parts->refs++;
}
void tps_context_release(tps_context *context);

/* The context's part for the device, made at the first call; NULL when out of
 * memory. */
tps_local *tps_local_get(tps_context *context, tps_device *device,
                         tps_error *err);

/* Waits for the event, or for the stream when event is NULL: 0, NOT_READY,
 * INTERRUPTED or an error. */
int tps_wait(tps_local *local, tps_device_stream *stream,
             tps_device_event *event, uint64_t timeout_ns, tps_error *err);

/* When the script has waited for work of one device: a fault of another one that
 * nobody knew of yet. A graph may have run there, where nothing was queued that
 * somebody would ask about. */
TPS_COLD int tps_ask_others(const tps_local *local, tps_error *err);
static inline int tps_others(const tps_local *local, tps_error *err) {
  return local->context->parts->spread ? tps_ask_others(local, err) : 0;
}

/* ---- faults -------------------------------------------------------------- */

/* Every code that a device returns passes here on its way out: a sticky one is
 * kept, with the launches that may have caused it. Returns code. `local` may be
 * NULL. */
TPS_COLD int tps_failed(tps_device *device, tps_local *local, int code,
                        tps_error *err);

/* ---- records ------------------------------------------------------------- */

/* The record of the next operation on the stream, in its ring; NULL (and *err)
 * when out of memory. That of a launch is for the caller to complete. */
tps_op *tps_op_begin(tps_stream *stream, tps_op_kind kind, tps_error *err);
/* Kernel and shape of a launch. */
static inline void tps_op_set_launch(tps_op *op, const tps_prepared *prepared) {
  const tps_launch *launch = &prepared->launch;
  op->kernel = prepared->kernel->name;
  memcpy(op->grid, launch->grid, sizeof op->grid);
  memcpy(op->block, launch->block, sizeof op->block);
  memcpy(op->cluster, launch->cluster, sizeof op->cluster);
  op->shared = launch->shared;
}
/* For what the runtime queues on its own account: no number, not observed. */
tps_op *tps_op_internal(tps_stream *stream, tps_op_kind kind, tps_error *err);
/* Adds what the operation touches; room for one is always there. */
int tps_op_touch(tps_op *op, const tps_memory *memory, uint64_t first,
                 uint64_t bytes, tps_access access, tps_error *err);
/* What a copy moves, and between what; NULL: the host's memory. */
void tps_op_set_copy(tps_op *op, const tps_memory *to, const tps_memory *from,
                     uint64_t bytes);
/* What of its two touches, from and to, the copy leaves out. */
void tps_op_set_rows(tps_op *op, const tps_rows *rows);
TPS_COLD void tps_observe_queued(tps_op *op, const tps_stream *stream);
TPS_COLD void tps_observe_launching(tps_op *op, const tps_stream *stream,
                                    const tps_graph *graph,
                                    const uint64_t *promises);
TPS_COLD void tps_observe_refused(const tps_op *op);
TPS_COLD void tps_observe_held(const tps_context *context, uint64_t began_ns);
TPS_COLD void tps_observe_waited(const tps_wait_note *wait);
/* The promise. */
TPS_COLD uint64_t tps_observe_promised(const tps_stream *stream,
                                       uint64_t event);
TPS_COLD void tps_observe_followed(const tps_stream *later,
                                   const tps_stream *earlier);
TPS_COLD void tps_observe_stream(const tps_stream *stream, bool opened);
TPS_COLD void tps_observe_gone(const tps_stream *stream);
TPS_COLD void tps_observe_event_ended(uint64_t event);
TPS_COLD void tps_observe_named(const tps_memory *memory, const char *element);
static inline void tps_op_announce(tps_op *op, const tps_stream *stream) {
  if (tps_observing()) tps_observe_queued(op, stream);
}
static inline void tps_op_broke(tps_op *op) {
  atomic_store_explicit(&op->state, TPS_OP_FAILED, memory_order_relaxed);
  if (tps_observing()) tps_observe_refused(op);
}
/* All work of the stream so far is done. */
static inline void tps_waited_stream(const tps_stream *stream) {
  if (tps_observing())
    tps_observe_waited(&(tps_wait_note){.context = stream->context,
                                        .device = stream->device,
                                        .stream = stream});
}

/* ---- streams ------------------------------------------------------------- */

#define TPS_SPARES 4u
typedef struct tps_spare {
  uint64_t address, bytes;
} tps_spare;

struct tps_stream_parts {
  tps_local *local;
  tps_device_stream
      *handle; /* also of a closed one whose end has no mark yet */
  tps_device_event *closing; /* marks the last work of a closed stream, and
                                all that was queued here on a foreign one */
  uint64_t serial;           /* unique, for the legacy stream too */
  uint64_t done_seq;         /* operations up to here are known to be done */
  int holds;                 /* by memory, events and staging */
  bool internal;
  bool unseen;  /* foreign work may have been queued through its handle */
  bool foreign; /* somebody else's, who may destroy it at any time */
  bool stale;   /* of a foreign one: the mark could not be set */
  struct {
    uint64_t serial, seq;
  } waited[TPS_WAITED]; /* work of other streams that comes before ours */
  unsigned waited_next;
  struct tps_branch *branch; /* while it captures */
  struct tps_callback *wait; /* callback.c's: the last that waits for it */
  tps_stream *next, *previous;
  uint32_t next_op;
  tps_op *ring[TPS_RING];
  tps_spare spares[TPS_SPARES]; /* freed here, to be allocated here again */
  unsigned spare_count;
};

/* ---- memory kept for the next allocation on the stream ------------------- */

/* False: it has to be freed. */
bool tps_spare_keep(tps_stream *stream, uint64_t address, uint64_t bytes);
/* 0: there is none of this size. */
uint64_t tps_spare_take(tps_stream *stream, uint64_t bytes);
/* Queues the frees on the stream, whose driver handle must still be there. */
void tps_spares_flush(tps_stream *stream);
/* Those of all open streams; false if there were none. */
bool tps_spares_flush_all(tps_local *local);

/* Refuses a closed stream and a faulted device. */
TPS_COLD int tps_stream_refuse(const tps_stream *stream, tps_error *err);
static inline int tps_stream_ready(const tps_stream *stream, tps_error *err) {
  if (!stream->closed && !tps_faulted(stream->device)) return 0;
  return tps_stream_refuse(stream, err);
}

/* A hold keeps the struct, not the stream open. */
static inline void tps_stream_hold(tps_stream *stream) {
  stream->parts->holds++;
}
void tps_stream_unhold(tps_stream *stream);

/* After each operation queued by the script. What comes after the work of a
 * foreign stream never asks that stream: an event is recorded at each use. */
void tps_stream_mark_foreign(tps_stream *stream);
static inline void tps_stream_queued(tps_stream *stream) {
  if (stream->parts->foreign) tps_stream_mark_foreign(stream);
}
/* The event to wait for, for all that was queued on the stream; NULL: ask its
 * handle, which then is there unless nothing is left to wait for. */
static inline tps_device_event *tps_stream_last(const tps_stream *stream) {
  const struct tps_stream_parts *parts = stream->parts;
  if (parts->handle == NULL || (parts->foreign && !parts->stale))
    return parts->closing;
  return NULL;
}
/* True when neither could tell: there is nothing to wait for. */
static inline bool tps_stream_blank(const tps_stream *stream) {
  const struct tps_stream_parts *parts = stream->parts;
  return parts->closing == NULL &&
         (parts->handle == NULL || (parts->foreign && !parts->stale));
}

/* True when the operation is known to be done, without asking the driver. */
static inline bool tps_stream_passed(const tps_stream *stream, uint64_t seq) {
  return stream->parts->done_seq >= seq || tps_faulted(stream->device);
}
static inline void tps_stream_reached(tps_stream *stream, uint64_t seq) {
  if (stream->parts->done_seq < seq) stream->parts->done_seq = seq;
}
/* Asks the driver; never waits; a stream that can't tell is not done. */
bool tps_stream_idle(tps_stream *stream);
/* Frees a closed stream that nothing refers to and whose work is done. */
void tps_stream_settle(tps_stream *stream);
/* Looks at up to `limit` closed streams. */
void tps_stream_settle_some(tps_local *local, unsigned limit);
/* At the end of a context: frees the struct whatever its state. */
void tps_stream_destroy(tps_stream *stream);
/* One of the runtime's own, which lives as long as `local`; NULL: *err. */
tps_stream *tps_stream_internal(tps_local *local, tps_error *err);
tps_stream *tps_reclaim_stream(tps_local *local, tps_error *err);

/* True when work queued on `later` from now on comes after `seq` of `earlier`
 * by a wait queued before. */
bool tps_stream_covers(const tps_stream *later, const tps_stream *earlier,
                       uint64_t seq);
void tps_stream_note_wait(tps_stream *later, const tps_stream *earlier,
                          uint64_t seq);
/* Makes future work on `later` wait for operations up to `seq` of `earlier`,
 * which may be closed. `force`: also for work that the runtime did not see. */
int tps_stream_follow(tps_stream *later, tps_stream *earlier, uint64_t seq,
                      bool force, tps_error *err);

/* ---- pooled events ------------------------------------------------------- */

int tps_event_take(tps_local *local, tps_device_event **out, tps_error *err);
void tps_event_give(tps_local *local, tps_device_event *event);
/* A pooled event recorded on the stream's driver handle, unobserved. */
int tps_event_mark(tps_stream *stream, tps_device_event **out, tps_error *err);

/* The stream on which the event was recorded last, which may be closed, and the
 * number of that record; NULL: another process has recorded it. */
tps_stream *tps_event_last(const tps_event *event, uint64_t *seq);
void tps_watchers_free(tps_local *local);

/* ---- memory -------------------------------------------------------------- */

/* The last use on one stream. */
typedef struct tps_mark {
  tps_stream *stream; /* held */
  uint64_t seq;
} tps_mark;

#define TPS_MARKS 4

struct tps_memory_parts {
  tps_local *local;
  tps_memory *next; /* in `spare` or `unfreed` */
  tps_stream *home; /* where it was allocated, or NULL; held by its mark */
  tps_mark *marks;
  uint32_t count, capacity, last; /* `last`: the one found last */
  tps_mark few[TPS_MARKS];
  tps_pinned *pinned;
  void *owner; /* of BORROWED */
  void (*release)(void *owner);
  tps_site closed_at; /* where the script closed it; no line: collected */
  unsigned attempts;  /* at freeing */
  uint64_t held;      /* bytes that count against the context's limit */
};

/* A struct with one reference, nothing allocated for it; NULL when out of
 * memory. */
tps_memory *tps_memory_new(tps_local *local, tps_memory_kind kind,
                           uint64_t bytes, tps_error *err);
/* Gives the struct back. */
void tps_memory_discard(tps_memory *memory);
/* OUT_OF_MEMORY when the context may not hold so much more. */
int tps_memory_afford(const tps_local *local, const char *what, uint64_t bytes,
                      tps_error *err);
/* From now on the memory counts, until it is reclaimed. */
void tps_memory_hold(tps_memory *memory);
/* MISUSE unless [first, first + bytes) lies in the memory. */
int tps_memory_check(const tps_memory *memory, uint64_t first, uint64_t bytes,
                     tps_error *err);

/* True when work of the device reaches the memory as it is: its own, and all
 * page-locked memory of its kind. */
static inline bool tps_memory_near(const tps_memory *memory,
                                   const tps_device *device) {
  return memory->device == device || (memory->kind == TPS_MEMORY_PINNED &&
                                      memory->device->kind == device->kind);
}

/* Finds or makes the mark of the stream, ordering a first use after the
 * allocation; `marks[last]` is then that of the stream. */
int tps_uses_find(tps_memory *memory, tps_stream *stream, tps_error *err);
static inline int tps_uses_ready(tps_memory *memory, tps_stream *stream,
                                 tps_error *err) {
  struct tps_memory_parts *parts = memory->parts;
  if (parts->last < parts->count && parts->marks[parts->last].stream == stream)
    return 0;
  return tps_uses_find(memory, stream, err);
}
/* After tps_uses_ready: the use has this number. */
static inline void tps_uses_set(tps_memory *memory, uint64_t seq) {
  struct tps_memory_parts *parts = memory->parts;
  parts->marks[parts->last].seq = seq;
}
/* Makes future work on the stream wait for all uses. */
int tps_uses_follow(const tps_memory *memory, tps_stream *stream,
                    tps_error *err);
void tps_uses_clear(tps_memory *memory);
/* Waits for all uses. */
int tps_uses_wait(tps_memory *memory, tps_error *err);

/* Frees what the memory stands for after its uses, or puts that off. */
void tps_memory_reclaim(tps_memory *memory);

/* ---- pinned blocks, reclaiming ------------------------------------------- */

/* From the pool or the driver; not cleared. */
int tps_pinned_take(tps_local *local, uint64_t bytes, tps_pin kind,
                    tps_pinned **out, tps_error *err);
void tps_pinned_give(tps_pinned *block);       /* to the pool */
void tps_pinned_drop_pool(tps_device *device); /* to the driver: may wait */
/* Puts the block on the pending list until `marks` have passed; forced: until
 * all work of the device has. */
void tps_pinned_retire(tps_local *local, tps_pinned *block,
                       const tps_mark *marks, uint32_t count, bool all);

/* Orders the reclaim stream after every stream of the device. */
int tps_reclaim_after_all(tps_local *local, bool force, tps_error *err);
/* Gives back what is done of the pending: looks at `most` blocks at the most,
 * and no further once `busy` were found in use. */
void tps_reclaim_pending(tps_local *local, unsigned most, unsigned busy);
/* The cheap part, for every allocation. */
static inline void tps_reclaim_glance(tps_local *local);
void tps_reclaim_local(tps_local *local);
void tps_module_retire(tps_local *local, tps_loaded *loaded);
/* The end of a context's part for a device: what is busy goes to the process's
 * list. */
void tps_local_free(tps_local *local);

static inline void tps_reclaim_glance(tps_local *local) {
  tps_lent_collect(local->context);
  if (local->pending != NULL) tps_reclaim_pending(local, 2, 2);
}

/* ---- when memory runs short ---------------------------------------------- */

typedef enum tps_relief {
  TPS_RELIEF_KEPT,   /* gives back what is kept for later */
  TPS_RELIEF_ARRAYS, /* waits for dropped arrays that are still in use */
  TPS_RELIEF_ALL     /* waits for all that is queued, frees included */
} tps_relief;

/* True when *code is OUT_OF_MEMORY and another attempt is worth while: *next,
 * at first TPS_RELIEF_KEPT, goes on up to `last` from one call to the next. A
 * wait that fails or is interrupted sets *code. */
bool tps_relieve(tps_local *local, tps_relief *next, tps_relief last, int *code,
                 tps_error *err);
/* Says how much there is; `what`: "" or as in "an array of ". */
TPS_COLD int tps_out_of_memory(tps_device *device, const char *what,
                               uint64_t bytes, tps_error *err);

/* ---- staging ------------------------------------------------------------- */

void tps_staging_free(tps_local *local);

/* ---- arrays of textures -------------------------------------------------- */

/* The end of memory of kind ARRAY: to the pool once its uses are done. */
void tps_array_reclaim(tps_memory *memory);
/* Gives what the pool has to the driver: may wait. False: it had nothing. */
bool tps_arrays_drop_pool(tps_device *device);
/* True when so much lies idle that a quiet device should give it back. */
bool tps_arrays_are_many(const tps_device *device);

/* ---- memory of several processes ----------------------------------------- */

/* Gives back what was dropped: when nothing runs. */
void tps_shared_drop(tps_device *device);
bool tps_shared_waits(const tps_device *device);

/* ---- modules ------------------------------------------------------------- */

/* Lets the module's source refine a description that is not the module's own. */
int tps_module_refine(const tps_module *module, tps_image_desc *desc);
/* The module on the device, loaded if need be. */
int tps_module_on(tps_module *module, tps_device *device,
                  tps_device_module **out, tps_error *err);
/* "'a', 'b', 'c'" of `count` names, those nearest to `name` first, cut to the
 * buffer. */
void tps_list_nearest(const char *const *names, size_t count, const char *name,
                      char *buffer, size_t size);

#define SHOWN_NAME 264
/* A name as messages show it: cut, without control characters. Gives `shown`. */
const char *tps_shown_name(const char *name, char shown[SHOWN_NAME]);

/* True when name is plain, with or without its namespaces, blanks apart; one that
 * begins with "::" only when it has them all. */
bool tps_same_name(const char *plain, const char *name);

/* A kernel on one device. */
typedef struct tps_kernel_on {
  struct tps_kernel_on *next;
  tps_device *device;
  tps_device_kernel *handle;
  tps_kernel_attributes attributes;
  bool opted_in;      /* to more shared memory than is usual */
  int64_t best_block; /* 0: not asked for yet */
} tps_kernel_on;

struct tps_kernel_parts {
  tps_kernel_on *on;
};

int tps_kernel_get(tps_kernel *kernel, tps_device *device, tps_kernel_on **out,
                   tps_error *err);
/* Checks the shape against kernel and device, opts into shared memory. */
int tps_limits_check(tps_kernel *kernel, tps_kernel_on *on,
                     const tps_shape *shape, tps_error *err);
/* Opt-in for static + dynamic bytes over what a block has without. */
int tps_limits_shared(tps_kernel_on *on, int64_t shared, tps_error *err);

/* The PTX of a fatbin for the device, owned and ended by NUL; NULL: it has none.
 * INVALID_IMAGE or NOT_SUPPORTED when it can't be had. */
int tps_fatbin_ptx(const void *bytes, size_t size, const tps_device *device,
                   char **ptx, tps_error *err);

/* What bytes are, by content: 0 and *kind, or INVALID_IMAGE. */
int tps_image_tell(const void *bytes, size_t size, tps_image_kind *kind,
                   tps_error *err);

#endif
