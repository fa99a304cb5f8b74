/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Copies between memories, and fills. Within a device or between devices of one
 * kind they are queued; between kinds they go through the host and wait. */
#include <stdlib.h>

#include "runtime/parts.h"

#define BOUNCE ((uint64_t)4 << 20)

typedef struct job {
  tps_stream *stream;
  tps_memory *to, *from;
  uint64_t to_first, from_first, bytes;
} job;

static int check_ranges(const job *j, tps_error *err) {
  int code = tps_memory_check(j->to, j->to_first, j->bytes, err);
  if (code == 0) code = tps_memory_check(j->from, j->from_first, j->bytes, err);
  if (code != 0 || j->to != j->from || j->to_first == j->from_first)
    return code;
  uint64_t low = j->to_first < j->from_first ? j->to_first : j->from_first;
  uint64_t high = j->to_first < j->from_first ? j->from_first : j->to_first;
  if (high - low >= j->bytes) return 0;
  return tps_fail(err, TPS_MISUSE,
                  "source and destination overlap: %llu bytes from byte %llu "
                  "on to byte %llu on",
                  (unsigned long long)j->bytes,
                  (unsigned long long)j->from_first,
                  (unsigned long long)j->to_first);
}

static int queue(const job *j, tps_error *err) {
  tps_stream *stream = j->stream;
  tps_device *device = stream->device;
  uint64_t to = j->to->address + j->to_first;
  uint64_t from = j->from->address + j->from_first;
  int code;
  TPS_TRY(out, tps_uses_ready(j->to, stream, err));
  TPS_TRY(out, tps_uses_ready(j->from, stream, err));
  tps_op *op = tps_op_begin(stream, TPS_OP_COPY, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  tps_uses_set(j->to, op->seq);
  tps_uses_set(j->from, op->seq);
  TPS_TRY(out, tps_op_touch(op, j->from, j->from_first, j->bytes,
                            TPS_ACCESS_READ, err));
  TPS_TRY(out, tps_op_touch(op, j->to, j->to_first, j->bytes, TPS_ACCESS_WRITE,
                            err));
  tps_op_announce(op);
  if (tps_memory_near(j->to, device) && tps_memory_near(j->from, device))
    code =
        device->face->copy(device, to, from, j->bytes, stream->handle, op, err);
  else
    code = device->face->copy_peer(device, to, j->to->device, from,
                                   j->from->device, j->bytes, stream->handle,
                                   op, err);
  if (code == 0) {
    tps_stream_queued(stream);
  } else {
    tps_op_broke(op);
    code = tps_failed(device, stream->parts->local, code, err);
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

static int bounce(const job *j, tps_stream *from, tps_stream *to, void *buffer,
                  tps_error *err) {
  int code = 0;
  for (uint64_t done = 0, n; done < j->bytes && code == 0; done += n) {
    n = j->bytes - done < BOUNCE ? j->bytes - done : BOUNCE;
    code = tps_memory_read(from, j->from, j->from_first + done, buffer, n, err);
    if (code == 0)
      code = tps_memory_write(to, j->to, j->to_first + done, buffer, n, err);
  }
  return code == 0 ? tps_stream_synchronize(to, TPS_FOREVER, err) : code;
}

static int through_host(const job *j, tps_error *err) {
  tps_stream *from, *to;
  int code = stream_for(j, j->from, &from, err);
  if (code == 0) code = stream_for(j, j->to, &to, err);
  if (code != 0) return code;
  void *buffer = malloc(j->bytes < BOUNCE ? j->bytes : BOUNCE);
  if (buffer == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  code = bounce(j, from, to, buffer, err);
  free(buffer);
  return code;
}

int tps_memory_copy(tps_stream *stream, tps_memory *to, uint64_t to_first,
                    tps_memory *from, uint64_t from_first, uint64_t bytes,
                    tps_error *err) {
  job j = {stream, to, from, to_first, from_first, bytes};
  int code;
  TPS_TRY(out, tps_stream_ready(stream, err));
  TPS_TRY(out, check_ranges(&j, err));
  TPS_TRY(out, tps_device_fault(to->device, err));
  TPS_TRY(out, tps_device_fault(from->device, err));
  if (bytes == 0) return 0;
  if (to->device->kind == stream->device->kind &&
      from->device->kind == stream->device->kind)
    return queue(&j, err);
  return through_host(&j, err);
out:
  return code;
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
  TPS_TRY(out, tps_uses_ready(memory, stream, err));
  tps_op *op = tps_op_begin(stream, TPS_OP_FILL, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  tps_uses_set(memory, op->seq);
  TPS_TRY(out, tps_op_touch(op, memory, first, width * count, TPS_ACCESS_WRITE,
                            err));
  tps_op_announce(op);
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
