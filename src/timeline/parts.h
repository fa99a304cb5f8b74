/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the files of timeline/ share: a timeline as it is recorded (record.c)
 * and as the writers see it (view.c).
 */
#ifndef TPS_TIMELINE_PARTS_H
#define TPS_TIMELINE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/watch.h"
#include "runtime/observer.h"
#include "timeline/timeline.h"

/* An operation whose end nobody has told of yet; a reference to it. */
typedef struct tps_open_op {
  tps_op *op;
  uint32_t item;
} tps_open_op;

#define TPS_TIMELINE_DEVICES                                                   \
  256 /* ordinals of each kind that are asked at the end */

struct tps_timeline {
  tps_observer observer;
  tps_watch watch;
  struct tps_timeline *next; /* of those that are recorded */
  pthread_mutex_t lock;      /* for everything below */
  uint64_t context;
  size_t limit;
  uint64_t began_ns, ended_ns; /* ended: 0 while it is recorded */
  uint64_t dropped;
  bool used[2][TPS_TIMELINE_DEVICES]; /* devices */
  tps_timeline_item *items;
  size_t count, capacity;
  tps_timeline_span *spans;
  size_t span_count, span_capacity;
  tps_open_op *open; /* a hash by address, of a power of two slots */
  size_t open_count, open_slots;
};

/* ---- view.c: as writers see it ------------------------------------------- */

/* A stretch of time. */
typedef struct tps_stretch {
  uint64_t began_ns, ended_ns;
} tps_stretch;

/* One stream of one device. */
typedef struct tps_row {
  uint8_t device_kind;
  int32_t device;
  uint64_t stream;
  uint32_t *items; /* those that ran, by start; a graph before its parts */
  uint32_t *lost;  /* those that did not end, by queueing */
  uint32_t count, lost_count;
  uint32_t lanes;   /* that parts of graphs need, side by side */
  uint64_t busy_ns; /* with kernels, copies, fills, graphs */
  uint64_t gap_ns;  /* between these */
  uint64_t longest_gap_ns;
  uint32_t gaps, work;
} tps_row;

/* Of one device. */
typedef struct tps_busy {
  uint8_t device_kind;
  int32_t device;
  uint64_t copy_ns, kernel_ns, both_ns; /* of which streams does not matter */
} tps_busy;

typedef struct tps_view {
  const tps_timeline *timeline;
  tps_row *rows;   /* by device, then stream */
  uint32_t *order; /* what the rows' items point into */
  uint32_t row_count;
  tps_busy *devices;
  uint32_t device_count;
  uint64_t *contexts; /* that queued or waited, in that order */
  uint32_t context_count;
  uint32_t *lanes; /* of each item: of a part of a graph, where it is drawn */
  uint64_t first_ns, last_ns; /* of what is to be seen */
} tps_view;

/* False: no memory; there is nothing to free then. */
bool tps_view_make(const tps_timeline *timeline, tps_view *view);
void tps_view_free(tps_view *view);
/* Whether the operation keeps its device at work. */
bool tps_is_work(const tps_timeline_item *item);
/* Whether it should have run, and did not end. */
bool tps_is_lost(const tps_timeline_item *item);
uint32_t tps_view_context(const tps_view *view, uint64_t context);
/* At the end of the recording: item->link, span->lane. False: no memory. */
bool tps_timeline_settle(tps_timeline *timeline);

/* ---- text.c -------------------------------------------------------------- */

/* The text as a JSON string, quotes and all: what is no UTF-8 becomes U+FFFD,
 * what HTML or JavaScript would trip over an escape. */
void tps_write_json(FILE *out, const char *text);
/* "sim:0"; "4 x 2", "256"; "12.5 MB" */
const char *tps_write_device(uint8_t kind, int32_t device, char out[32]);
const char *tps_write_shape(const uint32_t n[3], char out[40]);
const char *tps_write_bytes(uint64_t bytes, char out[32]);
/* "1.23 ms", three digits in the unit that suits; ASCII, as "us" is. */
const char *tps_write_lasts(double ns, char out[32]);
/* "script.lua:12", "" if not known; cut. */
const char *tps_write_where(const char *source, int32_t line, char *out,
                            size_t size);

/* "saxpy"; what is no kernel has the name of its kind: "copy in". */
const char *tps_write_name(const tps_timeline_item *item, char *out,
                           size_t size);
/* At most `room` columns of a terminal, without what it would obey; how many there
 * were. */
int tps_write_plain(FILE *out, const char *text, int room);
/* The same; what is cut ends in "..". */
int tps_write_cut(FILE *out, const char *text, int room);

/* ---- nvtx.c -------------------------------------------------------------- */

/* Where tools look; nothing without NVTX. `nested`: ends in the reverse order
 * on the same thread. */
void tps_nvtx_begin(tps_range *range, const char *name, bool nested);
void tps_nvtx_end(const tps_range *range);

#endif
