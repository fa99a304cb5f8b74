/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The operation record: one for each operation that is queued on a stream. The
 * runtime makes and fills it; a device that learns more (when it really ran, what
 * it really touched) reports into it from whatever thread it runs on; faults
 * quote it, observers (checker, timeline) read it, graphs keep lists of it.
 *
 * Ownership: counted references. The stream's ring holds one while the record is
 * recent, a device one from queueing until completion, observers theirs. The
 * fields above `refs` are written by the runtime before the operation is handed
 * to the device and are constant from then on; those below are atomic.
 */
#ifndef TPS_DEVICE_RECORD_H
#define TPS_DEVICE_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/kernel.h"

typedef enum tps_op_kind {
  TPS_OP_LAUNCH,
  TPS_OP_COPY,
  TPS_OP_FILL,
  TPS_OP_RECORD, /* of an event */
  TPS_OP_WAIT,   /* for an event */
  TPS_OP_ALLOC,
  TPS_OP_FREE,
  TPS_OP_HOST, /* host notification */
  TPS_OP_GRAPH /* launch of a graph */
} tps_op_kind;

typedef enum tps_op_state {
  TPS_OP_QUEUED,
  TPS_OP_RUNNING,
  TPS_OP_DONE,
  TPS_OP_FAILED
} tps_op_state;

/* Between what kinds of memory a copy goes. */
typedef enum tps_route {
  TPS_ROUTE_WITHIN, /* a device */
  TPS_ROUTE_IN,     /* from the host to a device */
  TPS_ROUTE_OUT,
  TPS_ROUTE_ACROSS, /* from one device to another */
  TPS_ROUTE_HOST    /* within the host's memory */
} tps_route;

/* What an operation touches: bytes [first, first + bytes) of an allocation. */
typedef struct tps_touch {
  uint64_t memory; /* id of the allocation, unique in the process */
  uint64_t first, bytes;
  uint8_t access;      /* tps_access */
  uint32_t row, pitch; /* of each `pitch` bytes the first `row`; 0: all bytes */
} tps_touch;

typedef struct tps_op tps_op;

/* The records of what a graph is made of, made when it was captured. Counted,
 * constant, owns a reference to each. */
typedef struct tps_op_list {
  atomic_int refs;
  uint32_t count;
  tps_op *ops[];
} tps_op_list;

struct tps_op {
  uint64_t seq; /* +1 for each operation of the process */
  uint8_t kind; /* tps_op_kind */
  uint8_t device_kind;
  uint8_t route; /* tps_route, of COPY */
  int32_t device;
  uint64_t context;   /* id of the Lua state's context */
  uint64_t stream;    /* id */
  uint64_t event;     /* id, of RECORD and WAIT */
  const char *kernel; /* interned plain name, of LAUNCH; else NULL */
  uint32_t grid[3], block[3], cluster[3];
  uint64_t shared;    /* dynamic bytes */
  uint64_t bytes;     /* that COPY moves */
  const char *source; /* interned name of the script, "" if not known */
  int32_t line;       /* 0 if not known */
  uint64_t queued_ns; /* CLOCK_MONOTONIC; 0 unless somebody observes */
  tps_touch *touches; /* owned, `touch_capacity` allocated */
  uint32_t touch_count, touch_capacity;
  tps_op_list *parts; /* a reference, of GRAPH; else NULL */

  atomic_int refs;
  atomic_int state;            /* tps_op_state */
  _Atomic uint64_t started_ns; /* 0 until the device says so */
  _Atomic uint64_t finished_ns;
};

static inline tps_op *tps_op_ref(tps_op *op) {
  atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
  return op;
}

tps_op *tps_op_new(void); /* one reference; NULL when out of memory */
void tps_op_unref(tps_op *op);

/* Room for `count` ops, none there yet, one reference; NULL: out of memory. */
tps_op_list *tps_op_list_new(uint32_t count);
tps_op_list *tps_op_list_ref(tps_op_list *list);
void tps_op_list_unref(tps_op_list *list); /* NULL is fine */

/* Room for `count` touches; 0 or NO_HOST_MEMORY. */
int tps_op_reserve_touches(tps_op *op, uint32_t count);

/* "script.lua:12" into buffer, "" when the line is not known. */
const char *tps_op_where(const tps_op *op, char *buffer, size_t size);

#endif
