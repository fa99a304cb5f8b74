/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The order check: tells accesses of memory that nothing puts in order, whatever
 * order they happened to run in. It keeps a vector clock for each stream, one for
 * the host, one for each record of an event, and for each byte its last write and
 * the reads since (spans.h); two accesses are in order if the clock of the later
 * covers the earlier.
 *
 * Everything is called under the checker's lock.
 */
#ifndef TPS_CHECK_ORDER_H
#define TPS_CHECK_ORDER_H

#include "check/clock.h"
#include "check/spans.h"
#include "check/table.h"
#include "runtime/observer.h"

/* Which addresses mean the same memory. */
enum {
  TPS_SPACE_CUDA,
  TPS_SPACE_SIM,
  TPS_SPACE_OTHER, /* memory without an address, or of unknown address */
  TPS_SPACES
};

/* Memory, as reports tell of it. */
typedef struct tps_place {
  uint64_t id, address, bytes; /* of unknown ones the last is 0 */
  uint8_t space;
  uint8_t kind;        /* tps_memory_kind */
  bool captured;       /* in a capture */
  const char *element; /* the name of its elements' type, or NULL */
  const char *source;  /* where it was made */
  int line;
} tps_place;

/* A stream. Several objects can stand for one of the driver's. */
typedef struct tps_strand {
  struct tps_strand *next, **at; /* in its list */
  struct tps_strands *on;        /* its device */
  int names, keys;               /* objects that are open, that there are */
  uint64_t context;              /* id, of the first of them */
  uint64_t handle;               /* the driver's; 0: not known */
  bool blocking;
  uint32_t *lanes; /* its own, and those of branches of graphs */
  uint32_t lane_count, lane_capacity;
  uint64_t last;    /* operation on its own lane, after any change of: */
  tps_clock *clock; /* before whatever comes next, its own lane apart */
  /* The last operation that others have come after: */
  uint64_t known; /* the host, of this one */
  uint64_t shown; /* the legacy stream, of this one */
  uint64_t seen;  /* this one, of the legacy stream */
} tps_strand;

/* What strands of a context have done that are no more. */
typedef struct tps_gone {
  struct tps_gone *next;
  uint64_t context;
  tps_clock *clock;
} tps_gone;

/* Those of a device. */
typedef struct tps_strands {
  struct tps_strands *next;
  uint8_t device_kind;
  int32_t device;
  tps_strand *open, *closed; /* lists */
  tps_gone *gone;            /* as far as nobody has waited for the device */
  tps_clock *past;           /* of these the blocking ones, as far as the legacy
                                one has not come after them */
  tps_table handles;         /* the driver's handle → strand, of those open */
  tps_strand *legacy;        /* NULL: nobody has used it yet */
  uint64_t blocking;         /* the last operation of the other blocking ones */
  uint64_t shown;            /* that which the legacy one has come after */
} tps_strands;

/* What waits, in order of queueing, for the check of its accesses. */
typedef struct tps_pending {
  struct tps_pending *next;
  enum {
    TPS_PENDING_OP,
    TPS_PENDING_CLEAR, /* of one memory */
    TPS_PENDING_FORGET /* the memory itself, too */
  } what;
  bool ready;         /* else a device will tell what was touched */
  bool body;          /* part of a loop's, or of what may not run at all: told
                           any number of times until it is over */
  tps_op *op, *graph; /* of what a device tells: references */
  struct tps_pending *twin; /* the same part of that launch, again */
  struct tps_pending *last_twin;
  tps_visit visit;          /* its origin a reference */
  tps_clock *clock, *host;  /* references */
  tps_touch *touches;       /* owned if the check was put off */
  uint32_t count, declared; /* of a body's: those that are not told */
  uint64_t again, step;     /* of the host's: so often, so many bytes on */
} tps_pending;

#define TPS_RECENT 8
#define TPS_HOSTS 16

typedef struct tps_order {
  uint64_t seq;
  tps_strands *strands;
  tps_table streams;                  /* key → strand */
  tps_table events, promises, graphs; /* id → tps_point */
  tps_table places;                   /* id → tps_place */
  tps_clock *host;
  uint32_t *free_lanes,
      *left_lanes; /* the latter once the host knows them done */
  uint32_t free_count, free_capacity, left_count, left_capacity;
  uint32_t left_kept, lane_count; /* by the last look through those left */
  uint64_t *lane_last;            /* the last operation on each lane */
  uint32_t lane_last_capacity;
  tps_spans spans[TPS_SPACES];
  size_t graphs_kept;    /* by the last look through them */
  size_t swept;          /* pieces left by the last sweep */
  uint64_t next_address; /* in TPS_SPACE_OTHER */
  tps_pending *first, *last;
  tps_table waiting; /* op and graph → the first tps_pending of them */
  tps_pending *hosts[TPS_HOSTS]; /* of the host's, since the last operation */
  unsigned host_count;
  struct tps_recent { /* the latest operations, which may still be refused */
    const tps_op *op;
    tps_origin *origin; /* a reference */
  } recent[TPS_RECENT];
  unsigned next_recent;
  bool broken; /* out of memory: nothing is told any more */
} tps_order;

tps_order *tps_order_new(void); /* NULL: no memory */
void tps_order_free(tps_order *order);
/* Checks what is put off with what is known. */
void tps_order_finish(tps_order *order);

/* ---- what the runtime tells (observer.h) --------------------------------- */

void tps_order_queued(tps_order *o, tps_op *op, const tps_stream *stream);
void tps_order_launching(tps_order *o, tps_op *op, const tps_stream *stream,
                         const tps_graph *graph, const uint64_t *promises);
void tps_order_refused(tps_order *o, const tps_op *op);
void tps_order_waited(tps_order *o, const tps_wait_note *wait);
void tps_order_promised(tps_order *o, const tps_stream *stream, uint64_t event,
                        uint64_t promise);
void tps_order_followed(tps_order *o, const tps_stream *later,
                        const tps_stream *earlier);
void tps_order_stream_opened(tps_order *o, const tps_stream *stream,
                             uint64_t handle);
void tps_order_stream_closed(tps_order *o, const tps_stream *stream);
void tps_order_stream_gone(tps_order *o, const tps_stream *stream);
void tps_order_event_ended(tps_order *o, uint64_t event);
void tps_order_memory(tps_order *o, const tps_memory *memory,
                      tps_memory_change what);
void tps_order_named(tps_order *o, const tps_memory *memory,
                     const char *element);
void tps_order_host(tps_order *o, const tps_memory *memory, uint64_t first,
                    uint64_t bytes, tps_access access);
/* What a device tells (watch.h). */
void tps_order_touched(tps_order *o, const tps_op *op, const tps_op *graph,
                       const tps_touch *touches, uint32_t count);

/* ---- strands.c ----------------------------------------------------------- */

/* The stream's strand, made if need be; NULL: no memory. */
tps_strand *tps_strand_of(tps_order *o, const tps_stream *stream);
/* Of a device; NULL: none. */
tps_strands *tps_strands_on(const tps_order *o, const tps_device *device);
/* Before something is queued: what the legacy stream orders. */
void tps_strand_enter(tps_order *o, tps_strand *s);
/* The host has waited for what the strand has done. */
void tps_strand_wait(tps_order *o, tps_strand *s);
/* The number of the strand's next operation. */
uint64_t tps_strand_next(tps_order *o, tps_strand *s);
/* Lane `i` of the strand, its own being 0; made if need be. False: no memory. */
bool tps_strand_lane(tps_order *o, tps_strand *s, uint32_t i, uint32_t *lane);
static inline tps_point tps_strand_point(const tps_strand *s) {
  return (tps_point){s->clock, s->lanes[0], s->last};
}
/* An operation on a lane: a new number. */
uint64_t tps_lane_step(tps_order *o, uint32_t lane);
void tps_order_join(tps_order *o, tps_clock **clock, const tps_point *point);
/* Keeps the point under that number in the table. */
void tps_point_put(tps_order *o, tps_table *table, uint64_t key,
                   const tps_point *point);
/* All that was ever queued, as far as the host does not know it to be done. */
void tps_join_everything(tps_order *o, tps_clock **clock);
/* The host has waited for those on a device that are no more, of a context; 0: of
 * all. */
void tps_strands_wait_for_gone(tps_order *o, const tps_strands *on,
                               uint64_t context);
/* Lanes of strands that are no more, and known to be done, are free. */
void tps_strands_reap(tps_order *o);
/* Lets go of those that the host knows to be done. */
void tps_points_forget(tps_order *o, tps_table *table);
void tps_points_free(tps_table *table);
void tps_strands_free(tps_order *o);

/* ---- accesses.c ---------------------------------------------------------- */

/* There is a place for the memory. */
void tps_access_know(tps_order *o, const tps_memory *memory);
/* Tests what it touches, and keeps it for what comes. */
void tps_access_run(tps_order *o, const tps_pending *p);
/* Whether a device tells of such memory; what has no address that is known stays
 * as it was declared. */
bool tps_access_is_told(const tps_order *o, const tps_touch *touch);
void tps_access_sweep(tps_order *o);

/* ---- pending.c ----------------------------------------------------------- */

/* At once, if it is known and nothing is before it; else a copy is kept. */
void tps_pending_take(tps_order *o, const tps_pending *p);
/* The accesses of an operation, at `point`, of which the clock is what comes
 * before it. `graph`: the launch that it is part of, perhaps in a body, or NULL. */
void tps_pending_op(tps_order *o, tps_op *op, tps_op *graph, bool body,
                    const tps_point *point);
/* Checks what has been put off, as far as it is known. */
void tps_pending_drain(tps_order *o);

/* ---- report.c ------------------------------------------------------------ */

/* An access in the making: what, by whom, with what before it. */
typedef struct tps_access_try {
  const tps_visit *visit;
  const tps_place *place; /* NULL: whichever has the address */
  uint8_t access;         /* tps_access */
} tps_access_try;

/* `earlier` and `later` have no order; they have bytes [first, end) of the memory
 * in common. False: no memory. */
bool tps_order_report(const tps_order *o, const tps_visit *earlier,
                      const tps_access_try *later, uint64_t first,
                      uint64_t end);

#endif
