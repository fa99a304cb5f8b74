/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Allocations: making, counting, dropping. Structs are used again, so that
 * allocating and freeing in a loop costs the host no malloc. */
#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"

#define SPARE 256u

typedef struct whole {
  tps_memory memory;
  struct tps_memory_parts parts;
} whole;

static whole *take_struct(tps_context *context) {
  struct tps_context_parts *parts = context->parts;
  if (parts->spare == NULL) return malloc(sizeof(whole));
  tps_memory *memory = parts->spare;
  parts->spare = memory->parts->next;
  parts->spare_count--;
  return (whole *)memory;
}

tps_memory *tps_memory_new(tps_local *local, tps_memory_kind kind,
                           uint64_t bytes, tps_error *err) {
  tps_context *context = local->context;
  whole *w = take_struct(context);
  if (w == NULL) {
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  memset(w, 0, sizeof *w);
  tps_memory *memory = &w->memory;
  memory->context = context;
  memory->device = local->device;
  memory->kind = (uint8_t)kind;
  memory->id = tps_next_id();
  memory->bytes = bytes;
  memory->refs = 1;
  memory->site = context->site;
  memory->parts = &w->parts;
  w->parts.local = local;
  w->parts.closed_at.source = "";
  w->parts.marks = w->parts.few;
  w->parts.capacity = TPS_MARKS;
  tps_context_hold(context);
  return memory;
}

void tps_memory_discard(tps_memory *memory) {
  struct tps_context_parts *parts = memory->context->parts;
  tps_uses_clear(memory);
  if (parts->spare_count >= SPARE) {
    free(memory);
    return;
  }
  memory->parts->next = parts->spare;
  parts->spare = memory;
  parts->spare_count++;
}

tps_memory *tps_memory_ref(tps_memory *memory) {
  memory->refs++;
  return memory;
}

void tps_memory_unref(tps_memory *memory) {
  if (memory == NULL || --memory->refs > 0) return;
  tps_context *context = memory->context;
  tps_memory_reclaim(memory);
  tps_context_release(context);
}

void tps_memory_close(tps_memory *memory) {
  if (memory == NULL) return;
  if (memory->refs == 1) memory->parts->closed_at = memory->context->site;
  tps_memory_unref(memory);
}

void tps_memory_tell(tps_memory *memory, const char *element) {
  tps_device *device = memory->device;
  memory->element = element;
  if (tps_observing()) tps_observe_named(memory, element);
  if (device->face->memory_note != NULL && memory->address != 0)
    device->face->memory_note(device, memory->address, element,
                              memory->site.source, memory->site.line);
}

uint64_t tps_memory_expose(tps_memory *memory) {
  memory->escaped = true;
  return memory->address;
}

int tps_memory_check(const tps_memory *memory, uint64_t first, uint64_t bytes,
                     tps_error *err) {
  if (first <= memory->bytes && bytes <= memory->bytes - first) return 0;
  return tps_fail(err, TPS_MISUSE,
                  "%llu bytes from byte %llu on asked for, the memory has %llu",
                  (unsigned long long)bytes, (unsigned long long)first,
                  (unsigned long long)memory->bytes);
}

/* ---- the limit ----------------------------------------------------------- */

uint64_t tps_memory_get_limit(const tps_context *context) {
  return context->parts->limit;
}

uint64_t tps_memory_limit(tps_context *context, uint64_t bytes) {
  uint64_t before = context->parts->limit;
  context->parts->limit = bytes;
  return before;
}

int tps_memory_afford(const tps_local *local, const char *what, uint64_t bytes,
                      tps_error *err) {
  const struct tps_context_parts *parts = local->context->parts;
  char label[32];
  if (parts->held <= parts->limit && bytes <= parts->limit - parts->held)
    return 0;
  return tps_fail(err, TPS_OUT_OF_MEMORY,
                  "beyond the memory limit: %s%llu bytes asked for on %s, %llu "
                  "of %llu held",
                  what, (unsigned long long)bytes,
                  tps_device_label(local->device, label, sizeof label),
                  (unsigned long long)parts->held,
                  (unsigned long long)parts->limit);
}

void tps_memory_hold(tps_memory *memory) {
  memory->parts->held = memory->bytes;
  memory->context->parts->held += memory->bytes;
}

/* ---- device memory ------------------------------------------------------- */

static void count_allocation(tps_memory_stats *stats, uint64_t bytes) {
  stats->live_bytes += bytes;
  stats->live_count++;
  stats->allocations++;
  if (stats->live_bytes > stats->peak_bytes)
    stats->peak_bytes = stats->live_bytes;
}

/* From what was freed on this stream before, else from the device. What it has
 * to be asked for again needs no wait for queued frees: those count as done. */
static int find_address(tps_stream *stream, tps_memory *memory, tps_op *op,
                        tps_error *err) {
  tps_device *device = stream->device;
  tps_relief next = TPS_RELIEF_KEPT;
  int code;
  memory->address = tps_spare_take(stream, memory->bytes);
  if (memory->address != 0) return 0;
  do
    code = device->face->memory_allocate(device, memory->bytes, stream->handle,
                                         op, &memory->address, err);
  while (
      tps_relieve(stream->parts->local, &next, TPS_RELIEF_ARRAYS, &code, err));
  return code;
}

/* Queues the allocation and makes the stream the memory's home. */
static int allocate_on(tps_stream *stream, tps_memory *memory, tps_error *err) {
  tps_device *device = stream->device;
  tps_local *local = stream->parts->local;
  int code = tps_memory_afford(local, "", memory->bytes, err);
  if (code == 0) code = tps_uses_ready(memory, stream, err);
  if (code != 0) return code;
  tps_op *op = tps_op_begin(stream, TPS_OP_ALLOC, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  code = tps_op_touch(op, memory, 0, memory->bytes, TPS_ACCESS_NONE, err);
  if (code != 0) return code;
  tps_op_announce(op, stream);
  code = find_address(stream, memory, op, err);
  if (code != 0) {
    memory->address = 0;
    tps_op_broke(op);
    if (code == TPS_OUT_OF_MEMORY)
      return tps_out_of_memory(device, "", memory->bytes, err);
    return tps_failed(device, local, code, err);
  }
  tps_stream_queued(stream);
  tps_uses_set(memory, op->seq);
  memory->parts->home = stream;
  tps_memory_hold(memory);
  count_allocation(&local->stats, memory->bytes);
  tps_memory_changed(memory, TPS_MEMORY_MADE);
  return 0;
}

int tps_memory_allocate(tps_stream *stream, uint64_t bytes, tps_memory **out,
                        tps_error *err) {
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  tps_local *local = stream->parts->local;
  tps_reclaim_glance(local);
  tps_memory *memory = tps_memory_new(local, TPS_MEMORY_DEVICE, bytes, err);
  if (memory == NULL) return TPS_NO_HOST_MEMORY;
  if (bytes > 0) code = allocate_on(stream, memory, err);
  if (code == 0 && stream->capturing)
    code = tps_capture_born(stream, memory, err);
  if (code != 0) tps_memory_unref(memory);
  else *out = memory;
  return code;
}

/* ---- pinned and borrowed memory ------------------------------------------ */

static int pin(tps_local *local, tps_memory *memory, tps_error *err) {
  struct tps_memory_parts *parts = memory->parts;
  const char *what =
      memory->managed ? "managed memory of " : "page-locked memory of ";
  tps_pin kind = memory->managed ? TPS_PIN_MANAGED : TPS_PIN_LOCKED;
  int code = tps_memory_afford(local, what, memory->bytes, err);
  if (code == 0)
    code = tps_pinned_take(local, memory->bytes, kind, &parts->pinned, err);
  if (code != 0) {
    parts->pinned = NULL;
    return code;
  }
  memory->host = parts->pinned->host;
  memory->address = parts->pinned->address;
  memset(memory->host, 0, memory->bytes);
  tps_memory_hold(memory);
  *(memory->managed ? &local->stats.managed_bytes
                    : &local->stats.pinned_bytes) += memory->bytes;
  local->stats.allocations++;
  tps_memory_changed(memory, TPS_MEMORY_MADE);
  return 0;
}

int tps_memory_pin(tps_context *context, tps_device *device, uint64_t bytes,
                   bool managed, tps_memory **out, tps_error *err) {
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_lent_collect(context);
  tps_reclaim_pending(local, 16, 16);
  tps_memory *memory = tps_memory_new(local, TPS_MEMORY_PINNED, bytes, err);
  if (memory == NULL) return TPS_NO_HOST_MEMORY;
  memory->managed = managed;
  if (bytes > 0) code = pin(local, memory, err);
  if (code != 0) tps_memory_unref(memory);
  else *out = memory;
  return code;
}

int tps_memory_borrow(tps_context *context, tps_device *device,
                      uint64_t address, uint64_t bytes, void *owner,
                      void (*release)(void *owner), tps_memory **out,
                      tps_error *err) {
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_memory *memory = tps_memory_new(local, TPS_MEMORY_BORROWED, bytes, err);
  if (memory == NULL) return TPS_NO_HOST_MEMORY;
  memory->address = address;
  memory->parts->owner = owner;
  memory->parts->release = release;
  tps_memory_changed(memory, TPS_MEMORY_MADE);
  *out = memory;
  return 0;
}
