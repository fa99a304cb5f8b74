/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Timelines: what was queued and when it ran. tps_timeline_start begins to
 * record, tps_timeline_stop ends that, and then the timeline can be read and
 * written: as a chart for a terminal, a page for a browser, a trace for Chrome
 * and Perfetto. Several can be recorded at once, by several threads. What a
 * timeline keeps is limited; what came after is counted and told.
 *
 * Before stopping, whoever wants to see the end of queued work waits for it.
 */
#ifndef TPS_TIMELINE_TIMELINE_H
#define TPS_TIMELINE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/context.h"

#define TPS_TIMELINE_LIMIT 250000u /* as many are kept unless told otherwise */

/* An operation. Times are CLOCK_MONOTONIC. */
typedef struct tps_timeline_item {
  uint8_t kind; /* tps_op_kind; GRAPH inside of a graph is a condition */
  uint8_t device_kind;
  uint8_t route; /* tps_route, of COPY */
  bool failed;
  int32_t device;
  int32_t line;
  uint32_t graph; /* 1 + index of the launch that it was part of, 0: none */
  uint32_t link;  /* of WAIT: 1 + index of the RECORD waited for, 0: unknown */
  uint64_t context, stream, event, order;
  uint64_t bytes, shared;
  const char *kernel, *source;
  uint32_t grid[3], block[3];
  uint64_t queued_ns;
  /* 0: it did not run, or nobody can tell when, as with ALLOC and FREE. */
  uint64_t started_ns, finished_ns;
} tps_timeline_item;

/* What the host did. */
typedef struct tps_timeline_span {
  uint64_t context;
  uint64_t id, thread; /* of a range; thread 0: the main coroutine */
  char *name;          /* owned; NULL: it waited */
  const char *source;
  int32_t line;
  uint32_t lane, depth; /* where a range is drawn (ranges that are not inside of
                           one another need lanes of their own) */
  uint64_t began_ns, ended_ns;
} tps_timeline_span;

typedef struct tps_timeline tps_timeline;

/* context: of which operations are recorded; 0: of all. limit: of operations,
 * and of spans. NULL and *err: no memory. */
tps_timeline *tps_timeline_start(uint64_t context, size_t limit,
                                 tps_error *err);
/* The first call ends the recording. Waits for no queued work. */
void tps_timeline_stop(tps_timeline *timeline);
void tps_timeline_free(tps_timeline *timeline); /* stopped or not; or NULL */

/* ---- a stopped timeline -------------------------------------------------- */

const tps_timeline_item *tps_timeline_items(const tps_timeline *timeline,
                                            size_t *count);
const tps_timeline_span *tps_timeline_spans(const tps_timeline *timeline,
                                            size_t *count);
uint64_t tps_timeline_began(const tps_timeline *timeline);
uint64_t tps_timeline_ended(const tps_timeline *timeline);
/* How many operations (and spans) were not kept. */
uint64_t tps_timeline_dropped(const tps_timeline *timeline);

/* "kernel", "copy" … */
const char *tps_timeline_kind(const tps_timeline_item *item);
/* "in", "out" … of a copy. */
const char *tps_timeline_route(const tps_timeline_item *item);

/* Write; false: no memory. That the file takes it is the caller's to check. */
bool tps_timeline_chart(const tps_timeline *timeline, FILE *out, int columns);
bool tps_timeline_page(const tps_timeline *timeline, FILE *out,
                       const char *title);
bool tps_timeline_trace(const tps_timeline *timeline, FILE *out);

/* Before the recording: whether the file's name ends in .html or .json, and it can
 * be written; nothing is changed by that. If not, *err says why. */
bool tps_timeline_can_write(const char *path, tps_error *err);
/* Writes the file as its name says: 0 or MISUSE. */
int tps_timeline_write(const tps_timeline *timeline, const char *path,
                       tps_error *err);

/* ---- ranges of the host -------------------------------------------------- */

/* For timelines and, where the build found NVTX, for tools that listen. */
typedef struct tps_range {
  uint64_t id; /* 0: not begun */
  uint64_t context;
  uint64_t nvtx;
  bool pushed;
} tps_range;

/* The name is copied, up to its first NUL. thread: 0, or what tells the
 * coroutine, in which ranges end in the reverse order. Never fails: a range that
 * there is no memory for is not shown. */
void tps_range_begin(tps_range *range, const tps_context *context,
                     uint64_t thread, const char *name);
void tps_range_end(tps_range *range);

#endif
