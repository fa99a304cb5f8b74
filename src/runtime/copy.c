/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Copies between memories, and fills. Within a device or between devices of one
 * kind they are queued; between kinds they go through the host and wait. */
#include <stdlib.h>

#include "runtime/capture.h"

#define BOUNCE ((uint64_t)4 << 20)

typedef struct job {
  tps_stream *stream;
  tps_memory *to, *from;
  uint64_t to_first, from_first;
  tps_rows rows; /* one, where it is a plain copy */
} job;

static uint64_t to_span(const job *j) {
  return (j->rows.count - 1) * j->rows.to_pitch + j->rows.bytes;
}

static uint64_t from_span(const job *j) {
  return (j->rows.count - 1) * j->rows.from_pitch + j->rows.bytes;
}

/* The limit is CUDA's, the same on every GPU (cudaDevAttrMaxPitch). */
static int check_pitch(const tps_rows *rows, uint64_t pitch, tps_error *err) {
  uint64_t span;
  if (pitch < rows->bytes)
    return tps_fail(err, TPS_MISUSE,
                    "rows of %llu bytes do not fit a pitch of %llu",
                    (unsigned long long)rows->bytes, (unsigned long long)pitch);
  if (rows->count > 1 && pitch > INT32_MAX)
    return tps_fail(err, TPS_MISUSE,
                    "a pitch of %llu bytes (at most %d can be copied)",
                    (unsigned long long)pitch, INT32_MAX);
  if (__builtin_mul_overflow(rows->count - 1, pitch, &span) ||
      __builtin_add_overflow(span, rows->bytes, &span))
    return tps_fail(err, TPS_MISUSE,
                    "%llu rows with a pitch of %llu bytes are more than there "
                    "can be",
                    (unsigned long long)rows->count, (unsigned long long)pitch);
  return 0;
}

/* Whether rows share a byte of another row, both having the same pitch and
 * beginning `apart` > 0 bytes from each other. */
static bool rows_meet(const tps_rows *rows, uint64_t apart) {
  uint64_t pitch = rows->to_pitch;
  uint64_t whole = apart / pitch, rest = apart % pitch;
  return (rest < rows->bytes && whole < rows->count) ||
         (pitch - rest < rows->bytes && whole + 1 < rows->count);
}

/* No byte that is written is read. By address: views of a variable, and of what
 * DLPack brings back, are memory of their own each. */
static bool overlap(const job *j) {
  uint64_t to = j->to->address + j->to_first;
  uint64_t from = j->from->address + j->from_first;
  bool later = to > from;
  uint64_t apart = later ? to - from : from - to;
  if (j->to->device->kind != j->from->device->kind ||
      apart >= (later ? from_span(j) : to_span(j)))
    return false;
  if (j->rows.to_pitch != j->rows.from_pitch) return true;
  return apart > 0 && rows_meet(&j->rows, apart);
}

static int check_ranges(const job *j, tps_error *err) {
  int code = check_pitch(&j->rows, j->rows.to_pitch, err);
  if (code == 0) code = check_pitch(&j->rows, j->rows.from_pitch, err);
  if (code == 0) code = tps_memory_check(j->to, j->to_first, to_span(j), err);
  if (code == 0)
    code = tps_memory_check(j->from, j->from_first, from_span(j), err);
  if (code != 0 || !overlap(j)) return code;
  return tps_fail(err, TPS_MISUSE,
                  "source and destination overlap: %llu bytes from byte %llu "
                  "on to byte %llu on",
                  (unsigned long long)from_span(j),
                  (unsigned long long)j->from_first,
                  (unsigned long long)j->to_first);
}

/* Asks the device. */
static int hand_over(const job *j, tps_op *op, tps_error *err) {
  tps_device *device = j->stream->device;
  tps_device_stream *handle = j->stream->handle;
  uint64_t to = j->to->address + j->to_first;
  uint64_t from = j->from->address + j->from_first;
  bool near =
      tps_memory_near(j->to, device) && tps_memory_near(j->from, device);
  if (j->rows.count > 1)
    return device->face->copy_rows(device, to, near ? device : j->to->device,
                                   from, near ? device : j->from->device,
                                   &j->rows, handle, op, err);
  if (near)
    return device->face->copy(device, to, from, j->rows.bytes, handle, op, err);
  return device->face->copy_peer(device, to, j->to->device, from,
                                 j->from->device, j->rows.bytes, handle, op,
                                 err);
}

static int capture(const job *j, tps_error *err) {
  tps_use from = {j->from, j->from_first, from_span(j), TPS_ACCESS_READ, NULL};
  tps_use to = {j->to, j->to_first, to_span(j), TPS_ACCESS_WRITE, NULL};
  return tps_capture_copy(j->stream, &to, &from, &j->rows, err);
}

static int queue(const job *j, tps_error *err) {
  tps_stream *stream = j->stream;
  int code;
  if (stream->capturing) return capture(j, err);
  TPS_TRY(out, tps_uses_ready(j->to, stream, err));
  TPS_TRY(out, tps_uses_ready(j->from, stream, err));
  tps_op *op = tps_op_begin(stream, TPS_OP_COPY, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  tps_uses_set(j->to, op->seq);
  tps_uses_set(j->from, op->seq);
  TPS_TRY(out, tps_op_touch(op, j->from, j->from_first, from_span(j),
                            TPS_ACCESS_READ, err));
  TPS_TRY(out, tps_op_touch(op, j->to, j->to_first, to_span(j),
                            TPS_ACCESS_WRITE, err));
  tps_op_set_copy(op, j->to, j->from, j->rows.count * j->rows.bytes);
  tps_op_set_rows(op, &j->rows);
  tps_op_announce(op, stream);
  code = hand_over(j, op, err);
  if (code == 0) {
    tps_stream_queued(stream);
  } else {
    tps_op_broke(op);
    code = tps_failed(stream->device, stream->parts->local, code, err);
  }
out:
  return code;
}

/* ---- between kinds ------------------------------------------------------- */

/* The given stream for memory of its kind, else the other device's default one,
 * after all uses of the memory there. */
static int stream_for(const job *j, tps_memory *memory, tps_stream **out,
                      tps_error *err) {
  *out = j->stream;
  if (memory->device == j->stream->device) return 0;
  if (memory->kind == TPS_MEMORY_PINNED &&
      memory->device->kind == j->stream->device->kind)
    return 0;
  int code = tps_uses_wait(memory, err);
  if (code != 0) return code;
  return tps_stream_default(j->stream->context, memory->device, out, err);
}

static int bounce(const job *j, uint64_t row, tps_stream *from, tps_stream *to,
                  void *buffer, tps_error *err) {
  uint64_t from_first = j->from_first + row * j->rows.from_pitch;
  uint64_t to_first = j->to_first + row * j->rows.to_pitch;
  int code = 0;
  for (uint64_t done = 0, n; done < j->rows.bytes && code == 0; done += n) {
    n = j->rows.bytes - done < BOUNCE ? j->rows.bytes - done : BOUNCE;
    code = tps_memory_read(from, j->from, from_first + done, buffer, n, err);
    if (code == 0)
      code = tps_memory_write(to, j->to, to_first + done, buffer, n, err);
  }
  return code;
}

static int through_host(const job *j, tps_error *err) {
  tps_stream *from, *to;
  int code = stream_for(j, j->from, &from, err);
  if (code == 0) code = stream_for(j, j->to, &to, err);
  if (code != 0) return code;
  void *buffer = malloc(j->rows.bytes < BOUNCE ? j->rows.bytes : BOUNCE);
  if (buffer == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  for (uint64_t row = 0; row < j->rows.count && code == 0; row++)
    code = bounce(j, row, from, to, buffer, err);
  free(buffer);
  return code == 0 ? tps_stream_synchronize(to, TPS_FOREVER, err) : code;
}

static int copy_job(const job *j, tps_error *err) {
  int code = tps_stream_ready(j->stream, err);
  if (code == 0) code = check_ranges(j, err);
  if (code == 0) code = tps_device_fault(j->to->device, err);
  if (code == 0) code = tps_device_fault(j->from->device, err);
  if (code != 0) return code;
  tps_device_kind kind = j->stream->device->kind;
  if (j->to->device->kind == kind && j->from->device->kind == kind)
    return queue(j, err);
  if (j->stream->capturing)
    return tps_capture_refuse(j->stream,
                              "copy between devices of different kinds", err);
  return through_host(j, err);
}

/* That there is nothing to copy does not excuse a bad range. */
int tps_memory_copy(tps_stream *stream, tps_memory *to, uint64_t to_first,
                    tps_memory *from, uint64_t from_first, uint64_t bytes,
                    tps_error *err) {
  job j = {stream, to, from, to_first, from_first, {1, bytes, bytes, bytes}};
  if (bytes > 0) return copy_job(&j, err);
  int code = tps_stream_ready(stream, err);
  if (code == 0) code = tps_memory_check(to, to_first, 0, err);
  return code == 0 ? tps_memory_check(from, from_first, 0, err) : code;
}

/* Rows without gaps are one. */
int tps_memory_copy_rows(tps_stream *stream, tps_memory *to, uint64_t to_first,
                         tps_memory *from, uint64_t from_first,
                         const tps_rows *rows, tps_error *err) {
  job j = {stream, to, from, to_first, from_first, *rows};
  if (rows->count == 0 || rows->bytes == 0)
    return tps_memory_copy(stream, to, to_first, from, from_first, 0, err);
  if (rows->to_pitch == rows->bytes && rows->from_pitch == rows->bytes &&
      rows->bytes <= UINT64_MAX / rows->count)
    return tps_memory_copy(stream, to, to_first, from, from_first,
                           rows->count * rows->bytes, err);
  return copy_job(&j, err);
}

/* ---- filling ------------------------------------------------------------- */

static int check_fill(const tps_stream *stream, const tps_memory *memory,
                      uint64_t first, unsigned width, uint64_t count,
                      tps_error *err) {
  char a[32], b[32];
  uint64_t bytes;
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  if (width != 1 && width != 2 && width != 4 && width != 8)
    return tps_fail(err, TPS_MISUSE, "fill: elements of %u bytes", width);
  if (__builtin_mul_overflow(count, (uint64_t)width, &bytes))
    bytes = UINT64_MAX;
  code = tps_memory_check(memory, first, bytes, err);
  if (code != 0) return code;
  if (tps_memory_near(memory, stream->device)) return 0;
  return tps_fail(err, TPS_MISUSE,
                  "memory of %s can't be filled on a stream of %s",
                  tps_device_label(memory->device, a, sizeof a),
                  tps_device_label(stream->device, b, sizeof b));
}

int tps_memory_fill(tps_stream *stream, tps_memory *memory, uint64_t first,
                    uint64_t pattern, unsigned width, uint64_t count,
                    tps_error *err) {
  tps_device *device = stream->device;
  int code;
  TPS_TRY(out, check_fill(stream, memory, first, width, count, err));
  if (count == 0) return 0;
  if (stream->capturing)
    return tps_capture_fill(stream, memory, first, pattern, width, count, err);
  TPS_TRY(out, tps_uses_ready(memory, stream, err));
  tps_op *op = tps_op_begin(stream, TPS_OP_FILL, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  tps_uses_set(memory, op->seq);
  TPS_TRY(out, tps_op_touch(op, memory, first, width * count, TPS_ACCESS_WRITE,
                            err));
  tps_op_announce(op, stream);
  code = device->face->fill(device, memory->address + first, pattern, width,
                            count, stream->handle, op, err);
  if (code == 0) {
    tps_stream_queued(stream);
  } else {
    tps_op_broke(op);
    code = tps_failed(device, stream->parts->local, code, err);
  }
out:
  return code;
}
