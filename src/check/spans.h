/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What was last done to each byte: pieces of an address space, each with its
 * last plain write and, since then, reads and atomic updates. Pieces are cut
 * where accesses begin and end, and are one again once written as one. For one
 * thread at a time.
 */
#ifndef TPS_CHECK_SPANS_H
#define TPS_CHECK_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kernel.h"

/* What an operation was, for reports: counted, shared by all its accesses. */
typedef struct tps_origin {
  int refs;
  uint8_t kind;        /* tps_op_kind, TPS_ORIGIN_HOST */
  uint8_t device_kind; /* tps_device_kind, of the stream */
  int8_t direction;    /* of a copy: 1 from the host, -1 to it, else 0 */
  bool refused;        /* the device did not take it: it did nothing */
  int32_t device;
  uint64_t stream;    /* id */
  const char *kernel; /* interned as the next, or NULL */
  const char *source;
  int32_t line;
  uint64_t launch; /* of a graph's part: its number, as of the next; else 0 */
  uint64_t launch_stream;
  int32_t launch_line;
  const char *launch_source;
} tps_origin;

#define TPS_ORIGIN_HOST 255

void tps_origin_unref(tps_origin *origin); /* NULL is fine */

/* One access. `origin` is a reference, NULL: none. */
typedef struct tps_visit {
  tps_origin *origin;
  uint32_t lane;
  uint8_t access; /* tps_access */
  uint64_t seq;
} tps_visit;

/* Two such accesses of the same bytes need an order: one writes, and they are not
 * both atomic or volatile. */
static inline bool tps_visits_conflict(uint8_t a, uint8_t b) {
  return ((a | b) & TPS_ACCESS_WRITE) != 0 && (a & b & TPS_ACCESS_STRONG) == 0;
}

typedef struct tps_span {
  struct tps_span *left, *right; /* a treap, by `first` */
  uint32_t priority;
  uint32_t count, capacity; /* of others */
  uint64_t first, end;      /* bytes [first, end) */
  tps_visit write;          /* the last plain one */
  tps_visit *others;        /* since then, one a lane and kind; owned */
} tps_span;

typedef struct tps_spans {
  tps_span *root;
  size_t count;
  uint32_t random;
} tps_spans;

/* Called for each piece; what of it is concerned is [first, end). */
typedef void tps_span_test(void *data, const tps_span *span, uint64_t first,
                           uint64_t end);

/* Calls `test` for the pieces that have bytes in [first, end), in order. */
void tps_spans_look(const tps_spans *spans, uint64_t first, uint64_t end,
                    tps_span_test *test, void *data);
/* The bytes were read, or written atomically; `covered` tells which of those before
 * it nobody needs to know of: they may be let go. False: no memory. */
bool tps_spans_add(tps_spans *spans, uint64_t first, uint64_t end,
                   const tps_visit *read,
                   bool (*covered)(void *data, const tps_visit *), void *data);
/* The bytes were written plainly: one piece. */
bool tps_spans_write(tps_spans *spans, uint64_t first, uint64_t end,
                     const tps_visit *write);
/* Nothing was done to the bytes that matters any more. */
bool tps_spans_clear(tps_spans *spans, uint64_t first, uint64_t end);
/* Lets go of all that is covered. */
void tps_spans_sweep(tps_spans *spans,
                     bool (*covered)(void *data, const tps_visit *),
                     void *data);
void tps_spans_free(tps_spans *spans);

#endif
