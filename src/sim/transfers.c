/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory of the simulated device as the runtime sees it: allocation, copies and
 * fills in stream order. A range is checked when the operation is queued and
 * again when its turn comes: another stream may have freed the memory
 * meanwhile.
 */
#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

static tps_sim_device *to_device(tps_device *device) {
  return (tps_sim_device *)device;
}

static int no_memory(tps_error *err) {
  return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for queued work");
}

/* --- allocation ----------------------------------------------------------- */

/* An address is given at once and is good on every stream. Memory whose free is
 * queued counts as free, as where a stream-ordered allocator reuses it behind
 * that free; nothing has to wait, since addresses are never reused. */
int tps_sim_memory_allocate(tps_device *face, uint64_t bytes,
                            tps_device_stream *stream, tps_op *op,
                            uint64_t *address, tps_error *err) {
  (void)stream;
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  tps_sim_tidy(device);
  uint64_t credit =
      atomic_load_explicit(&device->pending_free, memory_order_relaxed);
  tps_sim_allocation *memory;
  code = tps_sim_allocate_ahead(device->space, bytes, TPS_SIM_DEVICE_MEMORY,
                                credit, &memory, err);
  if (code != 0) return code;
  memory->id = op->touch_count > 0 ? op->touches[0].memory : 0;
  memory->source = op->source;
  memory->line = op->line;
  *address = memory->base;
  tps_sim_op_ran(op);
  return 0;
}

static int check_free(tps_sim_device *device, uint64_t address,
                      tps_sim_allocation **out, tps_error *err) {
  tps_sim_allocation *memory = tps_sim_lookup(device->space, address);
  if (memory == NULL || memory->kind != TPS_SIM_DEVICE_MEMORY ||
      memory->owner != device->space)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "free of 0x%llx: no allocation of this device",
                    (unsigned long long)address);
  if (memory->base != address)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "free of 0x%llx: inside the allocation at 0x%llx",
                    (unsigned long long)address,
                    (unsigned long long)memory->base);
  if (!atomic_load(&memory->live) || atomic_exchange(&memory->freeing, true))
    return tps_fail(err, TPS_INVALID_VALUE, "free of 0x%llx: freed before",
                    (unsigned long long)address);
  *out = memory;
  return 0;
}

int tps_sim_memory_free(tps_device *face, uint64_t address,
                        tps_device_stream *stream, tps_op *op, tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  tps_sim_allocation *memory = NULL;
  code = check_free(device, address, &memory, err);
  if (memory == NULL || code != 0) return code;
  tps_sim_task *task = tps_sim_task_new(device, TPS_SIM_TASK_FREE, op);
  if (task == NULL) {
    atomic_store(&memory->freeing, false);
    return no_memory(err);
  }
  task->u.freed = memory;
  uint64_t bytes = memory->size; /* the struct may be gone after queueing */
  atomic_fetch_add(&device->pending_free, bytes);
  code = tps_sim_queue((tps_sim_stream *)stream, task, err);
  if (code != 0) {
    atomic_fetch_sub(&device->pending_free, bytes);
    atomic_store(&memory->freeing, false);
  }
  return code;
}

static tps_sim_memory_kind kind_of(tps_pin pin) {
  switch (pin) {
  case TPS_PIN_STAGING: return TPS_SIM_INTERNAL;
  case TPS_PIN_MANAGED: return TPS_SIM_MANAGED;
  default: return TPS_SIM_PINNED;
  }
}

int tps_sim_memory_pin(tps_device *face, uint64_t bytes, tps_pin pin,
                       void **host, uint64_t *address, tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  tps_sim_allocation *memory;
  code = tps_sim_allocate(device->space, bytes, kind_of(pin), &memory, err);
  if (code != 0) return code;
  *host = memory->host;
  *address = memory->base;
  return 0;
}

int tps_sim_memory_unpin(tps_device *face, tps_pin pin, void *host,
                         uint64_t address, tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_allocation *memory = tps_sim_find_base(device->space, address);
  if (memory == NULL || memory->host != host || memory->kind != kind_of(pin) ||
      memory->owner != device->space)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "unpin of 0x%llx: no pinned memory of this device",
                    (unsigned long long)address);
  tps_sim_free(device->space, memory, memory->free_source, memory->free_line);
  tps_sim_tidy(device);
  return tps_sim_refuse(device, err);
}

void tps_sim_memory_note(tps_device *face, uint64_t address,
                         const char *element, const char *source, int line) {
  tps_sim_allocation *memory =
      tps_sim_find_base(to_device(face)->space, address);
  if (memory == NULL) return;
  if (element == NULL) {
    memory->free_source = source;
    memory->free_line = line;
    return;
  }
  memory->element = element;
  memory->source = source;
  memory->line = line;
}

/* --- checks --------------------------------------------------------------- */

static int check_range(tps_sim_device *device, uint64_t address, uint64_t bytes,
                       const char *what, tps_error *err) {
  tps_sim_allocation *memory = tps_sim_lookup(device->space, address);
  if (memory == NULL)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "%s at 0x%llx: no memory of this device", what,
                    (unsigned long long)address);
  if (!atomic_load(&memory->live) || atomic_load(&memory->freeing))
    return tps_fail(err, TPS_INVALID_VALUE, "%s at 0x%llx: freed memory", what,
                    (unsigned long long)address);
  uint64_t left = memory->size - (address - memory->base);
  if (bytes <= left) return 0;
  return tps_fail(err, TPS_INVALID_VALUE,
                  "%s of %llu bytes at 0x%llx: the allocation of %llu bytes at "
                  "0x%llx has %llu from there",
                  what, (unsigned long long)bytes, (unsigned long long)address,
                  (unsigned long long)memory->size,
                  (unsigned long long)memory->base, (unsigned long long)left);
}

/* The memory at a device address, for an operation whose turn has come; NULL and
 * *err when it was freed. */
static tps_sim_allocation *resolve(tps_sim_device *device,
                                   const tps_sim_task *task, uint64_t address,
                                   const char *what, tps_error *err) {
  tps_sim_allocation *memory = tps_sim_lookup(device->space, address);
  if (memory != NULL && atomic_load(&memory->live)) return memory;
  tps_fail(err, TPS_ILLEGAL_ADDRESS, "%s 0x%llx: the memory was freed before",
           what, (unsigned long long)address);
  if (memory != NULL && memory->free_line > 0)
    tps_fail(err, TPS_ILLEGAL_ADDRESS,
             "%s 0x%llx: the memory was freed before (%s:%d)", what,
             (unsigned long long)address, memory->free_source,
             (int)memory->free_line);
  err->stream = task->op->stream + 1;
  tps_op_where(task->op, err->where, sizeof err->where);
  return NULL;
}

/* --- running -------------------------------------------------------------- */

static uint64_t size_of(const tps_sim_task *task) {
  return task->kind == TPS_SIM_TASK_COPY ? task->u.copy.bytes
                                         : task->u.fill.bytes;
}

static void fill_range(unsigned char *to, const unsigned char *pattern,
                       uint64_t bytes) {
  bool uniform = memcmp(pattern, pattern + 1, 7) == 0;
  if (uniform) {
    memset(to, pattern[0], (size_t)bytes);
    return;
  }
  uint64_t whole = bytes / 8;
  for (uint64_t i = 0; i < whole; i++) memcpy(to + i * 8, pattern, 8);
  memcpy(to + whole * 8, pattern, (size_t)(bytes % 8));
}

/* Bytes [first, + bytes) of a copy, its rows taken for one line. */
static void move_rows(const tps_sim_task *task, uint64_t first,
                      uint64_t bytes) {
  uint64_t row = first / task->u.copy.row_bytes;
  uint64_t at = first % task->u.copy.row_bytes;
  while (bytes > 0) {
    uint64_t left = task->u.copy.row_bytes - at,
             n = left < bytes ? left : bytes;
    uint64_t to = row * task->u.copy.to_pitch + at;
    uint64_t from = row * task->u.copy.from_pitch + at;
    memmove(task->u.copy.to_host + to, task->u.copy.from_host + from,
            (size_t)n);
    tps_sim_written_copy(task->u.copy.to_written, task->u.copy.to_first + to,
                         task->u.copy.from_written,
                         task->u.copy.from_first + from, n);
    bytes -= n;
    at = 0;
    row++;
  }
}

static void move(const tps_sim_task *task, uint64_t first, uint64_t bytes) {
  if (task->kind == TPS_SIM_TASK_COPY) {
    move_rows(task, first, bytes);
    return;
  }
  fill_range(task->u.fill.host + first, task->u.fill.pattern, bytes);
  tps_sim_written_set(task->u.fill.written, task->u.fill.first + first, bytes);
}

void tps_sim_transfer_part(const tps_sim_task *task, uint64_t part) {
  uint64_t first = part * TPS_SIM_CHUNK;
  uint64_t left = size_of(task) - first;
  move(task, first, left < TPS_SIM_CHUNK ? left : TPS_SIM_CHUNK);
}

static bool begin_copy(tps_sim_task *task, tps_error *err) {
  tps_sim_device *to = task->u.copy.to_device;
  tps_sim_device *from = task->u.copy.from_device;
  const tps_sim_allocation *memory =
      resolve(to, task, task->u.copy.to, "copy to", err);
  if (memory == NULL) return false;
  task->u.copy.to_first = task->u.copy.to - memory->base;
  task->u.copy.to_host = memory->host + task->u.copy.to_first;
  task->u.copy.to_written = memory->written;
  memory = resolve(from, task, task->u.copy.from, "copy from", err);
  if (memory == NULL) return false;
  task->u.copy.from_first = task->u.copy.from - memory->base;
  task->u.copy.from_host = memory->host + task->u.copy.from_first;
  task->u.copy.from_written = memory->written;
  return true;
}

static bool begin_fill(tps_sim_task *task, tps_error *err) {
  const tps_sim_allocation *memory =
      resolve(task->device, task, task->u.fill.to, "fill of", err);
  if (memory == NULL) return false;
  task->u.fill.first = task->u.fill.to - memory->base;
  task->u.fill.host = memory->host + task->u.fill.first;
  task->u.fill.written = memory->written;
  return true;
}

bool tps_sim_transfer_begin(tps_sim_task *task, tps_error *err) {
  task->epoch = tps_sim_space_epoch(task->device->space);
  bool good = task->kind == TPS_SIM_TASK_COPY ? begin_copy(task, err)
                                              : begin_fill(task, err);
  if (!good) return false;
  uint64_t bytes = size_of(task);
  task->parts = (bytes + TPS_SIM_CHUNK - 1) / TPS_SIM_CHUNK;
  task->resident_limit = UINT64_MAX;
  if (bytes <= TPS_SIM_INLINE && task->device->seed == 0) {
    move(task, 0, bytes);
    task->parts = 0;
  }
  return true;
}

/* --- copies and fills ----------------------------------------------------- */

int tps_sim_copy_task(tps_sim_device *device, tps_device *to_face, uint64_t to,
                      tps_device *from_face, uint64_t from,
                      const tps_rows *rows, tps_op *op, tps_sim_task **out,
                      tps_error *err) {
  uint64_t last = rows->count - 1;
  int code = check_range(to_device(to_face), to,
                         last * rows->to_pitch + rows->bytes, "copy", err);
  if (code == 0)
    code = check_range(to_device(from_face), from,
                       last * rows->from_pitch + rows->bytes, "copy", err);
  if (code != 0) return code;
  tps_sim_task *task = tps_sim_task_new(device, TPS_SIM_TASK_COPY, op);
  if (task == NULL) return no_memory(err);
  task->u.copy.to = to;
  task->u.copy.from = from;
  task->u.copy.bytes = rows->count * rows->bytes;
  task->u.copy.row_bytes = rows->bytes;
  task->u.copy.to_pitch = rows->to_pitch;
  task->u.copy.from_pitch = rows->from_pitch;
  task->u.copy.to_device = to_device(to_face);
  task->u.copy.from_device = to_device(from_face);
  *out = task;
  return 0;
}

int tps_sim_copy_rows(tps_device *face, uint64_t to, tps_device *to_face,
                      uint64_t from, tps_device *from_face,
                      const tps_rows *rows, tps_device_stream *stream,
                      tps_op *op, tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_task *task = NULL;
  int code = tps_sim_refuse(device, err);
  if (code == 0)
    code = tps_sim_copy_task(device, to_face, to, from_face, from, rows, op,
                             &task, err);
  if (code != 0 || task == NULL) return code;
  return tps_sim_queue((tps_sim_stream *)stream, task, err);
}

int tps_sim_copy_peer(tps_device *device, uint64_t to, tps_device *to_face,
                      uint64_t from, tps_device *from_face, uint64_t bytes,
                      tps_device_stream *stream, tps_op *op, tps_error *err) {
  tps_rows line = {1, bytes, bytes, bytes};
  if (bytes > 0)
    return tps_sim_copy_rows(device, to, to_face, from, from_face, &line,
                             stream, op, err);
  int code = tps_sim_refuse(to_device(device), err);
  if (code == 0) tps_sim_op_ran(op);
  return code;
}

int tps_sim_copy(tps_device *device, uint64_t to, uint64_t from, uint64_t bytes,
                 tps_device_stream *stream, tps_op *op, tps_error *err) {
  return tps_sim_copy_peer(device, to, device, from, device, bytes, stream, op,
                           err);
}

static int check_fill(tps_sim_device *device, uint64_t to, unsigned width,
                      uint64_t count, tps_error *err) {
  if (width != 1 && width != 2 && width != 4 && width != 8)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "fill of elements of %u bytes (1, 2, 4 or 8 can be filled)",
                    width);
  if (to % width != 0)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "fill at 0x%llx: elements of %u bytes are misaligned there",
                    (unsigned long long)to, width);
  if (count > UINT64_MAX / width)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "fill of %llu elements of %u bytes: too large",
                    (unsigned long long)count, width);
  return count == 0 ? 0 : check_range(device, to, count * width, "fill", err);
}

int tps_sim_fill_task(tps_sim_device *device, uint64_t to, uint64_t pattern,
                      unsigned width, uint64_t count, tps_op *op,
                      tps_sim_task **out, tps_error *err) {
  int code = check_fill(device, to, width, count, err);
  if (code != 0) return code;
  tps_sim_task *task = tps_sim_task_new(device, TPS_SIM_TASK_FILL, op);
  if (task == NULL) return no_memory(err);
  task->u.fill.to = to;
  task->u.fill.bytes = count * width;
  for (unsigned i = 0; i < 8; i++)
    task->u.fill.pattern[i] = (unsigned char)(pattern >> (i % width * 8));
  *out = task;
  return 0;
}

int tps_sim_fill(tps_device *face, uint64_t to, uint64_t pattern,
                 unsigned width, uint64_t count, tps_device_stream *stream,
                 tps_op *op, tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_task *task = NULL;
  int code = tps_sim_refuse(device, err);
  if (code == 0)
    code = tps_sim_fill_task(device, to, pattern, width, count, op, &task, err);
  if (code != 0 || task == NULL) return code;
  if (count == 0) {
    tps_sim_op_ran(op);
    tps_sim_discard(task);
    return 0;
  }
  return tps_sim_queue((tps_sim_stream *)stream, task, err);
}
