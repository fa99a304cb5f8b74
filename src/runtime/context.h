/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The runtime of one Lua state: a context. Everything else of the runtime
 * (streams, events, memory, modules) belongs to a context and is used by its
 * thread alone, so nothing here takes a lock on the launch path. What contexts
 * share is below: devices (process-wide), their sticky faults, sequence numbers,
 * observers.
 *
 * Order of use: tps_context_new, then devices, streams, memory, modules …;
 * tps_context_close at the end of the Lua state, after which every object of it
 * that is still referenced may only be unreferenced.
 */
#ifndef TPS_RUNTIME_CONTEXT_H
#define TPS_RUNTIME_CONTEXT_H

#include "base/clock.h"
#include "device/device.h"

/* Where in the script the next operation comes from. lua/ sets it before calls
 * that queue something: an interned name (or "") and a line (or 0). */
typedef struct tps_site {
  const char *source;
  int line;
} tps_site;

typedef struct tps_context {
  uint64_t id;
  tps_device_kind kind; /* the kind in use */
  int initial_device;   /* ordinal current at the start */
  tps_site site;
  bool blocking; /* every launch waits (--blocking) */
  /* Looked at between the slices of every wait: not 0 makes the wait fail with
   * INTERRUPTED. NULL: never. */
  int (*interrupted)(void *data);
  void *interrupted_data;
  struct tps_context_parts *parts; /* the runtime's own */
} tps_context;

/* choice: "cuda", "sim", "cuda:1", "sim:0", an ordinal of the kind found by
 * itself, or NULL: then TPSTREAM_DEVICE, then CUDA if there is a device, then
 * the simulated one. Errors: NO_DEVICE / INVALID_DEVICE naming what was asked for
 * and how many are visible; MISUSE for a name that is none. */
int tps_context_new(const char *choice, tps_context **out, tps_error *err);

/* Never waits: what is still busy is handed to a process-wide list that later
 * contexts and process exit look after. Frees the context once its last object
 * is unreferenced. */
void tps_context_close(tps_context *context);

/* Looks once through what waits to be reclaimed; called by the runtime itself at
 * every allocation and wait. */
void tps_context_reclaim(tps_context *context);

/* Waits for everything this context has queued on every device it has used:
 * 0, NOT_READY when the timeout ran out, INTERRUPTED, or the first fault. */
int tps_context_synchronize(tps_context *context, uint64_t timeout_ns,
                            tps_error *err);

/* ---- devices (of the process) -------------------------------------------- */

/* How many are visible. For CUDA and 0 *why (may be NULL) says why. */
int tps_device_count(tps_device_kind kind, tps_error *why);
/* Opens at the first call, the same pointer ever after. INVALID_DEVICE gives the
 * number asked for and the number visible. */
int tps_device_get(tps_device_kind kind, int64_t ordinal, tps_device **out,
                   tps_error *err);
/* Parses "cuda", "sim:1", "1" (of `kind`). MISUSE for anything else. */
int tps_device_parse(const char *text, tps_device_kind kind, tps_device **out,
                     tps_error *err);
/* "cuda:0" into buffer. */
const char *tps_device_label(const tps_device *device, char *buffer,
                             size_t size);
/* Waits for the device (all contexts' and foreign work). */
int tps_device_synchronize(tps_context *context, tps_device *device,
                           uint64_t timeout_ns, tps_error *err);
/* The sticky fault, or 0. Every runtime call that queues or waits checks it. */
int tps_device_fault(tps_device *device, tps_error *err);
int tps_device_memory_info(tps_device *device, uint64_t *free, uint64_t *total,
                           tps_error *err);

#endif
