/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a device tells of operations after they were queued: when they ran, what
 * they really touched, what a kernel did wrong on the way. Whoever wants to know
 * adds a watch; with none the cost is one load. For the process, as observers are,
 * which hear of operations when they are queued.
 */
#ifndef TPS_DEVICE_WATCH_H
#define TPS_DEVICE_WATCH_H

#include "device/record.h"

enum {
  TPS_WATCH_TIMES = 1u << 0,   /* `ran` */
  TPS_WATCH_TOUCHES = 1u << 1, /* `touched`, of the simulated device alone */
  /* `found`, of the simulated device alone, by what is looked for: */
  TPS_WATCH_MEMORY = 1u << 2,
  TPS_WATCH_RACE = 1u << 3,
  TPS_WATCH_INIT = 1u << 4,
  TPS_WATCH_BARRIER = 1u << 5
};

/* Something that a kernel did wrong. The strings live as long as the call. */
typedef struct tps_finding {
  unsigned check;   /* TPS_WATCH_MEMORY to TPS_WATCH_BARRIER */
  const tps_op *op; /* the launch, with the script's line */
  /* Lines, each ended by "\n", the first what it is ("Invalid __global__ read of
   * size 4 bytes"), the others as compute-sanitizer words and orders them. */
  const char *text;
  /* What makes two findings the same one to the user: the kernel and the lines. */
  uint64_t key;
} tps_finding;

/* Functions are called from any thread, also while the device's locks are held:
 * they must neither call a device nor wait for it. Those not wanted are NULL. */
typedef struct tps_watch {
  unsigned wants; /* TPS_WATCH_* */
  void *data;
  /* `graph` is the launch of the graph that the operation was part of, or NULL:
   * the record of a part is shared by all launches. CLOCK_MONOTONIC. A wait for an
   * event may be told to begin before what was queued on its stream before it has
   * ended, but not before it was queued itself. */
  void (*ran)(void *data, tps_op *op, tps_op *graph, uint64_t started_ns,
              uint64_t finished_ns);
  /* All that a launch touched, once it has ended or failed: pieces in order of
   * address, which `first` is (`memory` is 0); what device-side malloc gives out and
   * arrays of textures are left out. Not told where memory has run out for it. Of
   * whatever else is in the body of a condition: what it declared, each time that it
   * has run. */
  void (*touched)(void *data, tps_op *op, tps_op *graph,
                  const tps_touch *touches, uint32_t count);
  void (*found)(void *data, const tps_finding *finding);
  struct tps_watch *next;
} tps_watch;

/* `remove` returns when nobody is inside the watch's functions any more. Kernels
 * that run while a watch is added may be watched from their next launch on. */
void tps_watch_add(tps_watch *watch);
/* Changes what one that has been added wants, at no moment to nothing: a kernel that
 * begins unwatched makes what the init check knows worthless. */
void tps_watch_want(tps_watch *watch, unsigned wants);
void tps_watch_remove(tps_watch *watch);

extern atomic_uint tps_watch_wants; /* of all watches together */
static inline unsigned tps_watched(unsigned wants) {
  return atomic_load_explicit(&tps_watch_wants, memory_order_acquire) & wants;
}

void tps_watch_ran(tps_op *op, tps_op *graph, uint64_t started_ns,
                   uint64_t finished_ns);
void tps_watch_touched(tps_op *op, tps_op *graph, const tps_touch *touches,
                       uint32_t count);
void tps_watch_found(const tps_finding *finding);

#endif
