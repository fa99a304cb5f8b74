/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Device memory freed on a stream and handed out again on the same stream: what
 * comes later there comes after the free, so the driver need not be asked. A few
 * blocks a stream, of the very size that was freed; they go to the driver when the
 * stream closes or memory runs short. Only on devices that say so: the simulated
 * one uses no address twice, to tell use after free, unless its seed is odd. */
#include "runtime/parts.h"

#define LARGEST (UINT64_C(64) << 20)
#define TOTAL (UINT64_C(256) << 20)

bool tps_spare_keep(tps_stream *stream, uint64_t address, uint64_t bytes) {
  struct tps_stream_parts *parts = stream->parts;
  tps_local *local = parts->local;
  if (!stream->device->recycles || parts->spare_count == TPS_SPARES ||
      stream->closed || parts->internal || parts->foreign || bytes > LARGEST ||
      local->spare_bytes + bytes > TOTAL)
    return false;
  parts->spares[parts->spare_count].address = address;
  parts->spares[parts->spare_count++].bytes = bytes;
  local->spare_bytes += bytes;
  return true;
}

uint64_t tps_spare_take(tps_stream *stream, uint64_t bytes) {
  struct tps_stream_parts *parts = stream->parts;
  for (unsigned i = parts->spare_count; i-- > 0;) {
    if (parts->spares[i].bytes != bytes) continue;
    uint64_t address = parts->spares[i].address;
    parts->spares[i] = parts->spares[--parts->spare_count];
    parts->local->spare_bytes -= bytes;
    return address;
  }
  return 0;
}

void tps_spares_flush(tps_stream *stream) {
  struct tps_stream_parts *parts = stream->parts;
  tps_device *device = stream->device;
  tps_error ignored;
  while (parts->spare_count > 0) {
    tps_spare *spare = &parts->spares[--parts->spare_count];
    parts->local->spare_bytes -= spare->bytes;
    tps_op *op = tps_op_internal(stream, TPS_OP_FREE, &ignored);
    if (op != NULL && parts->handle != NULL && !tps_faulted(device))
      device->face->memory_free(device, spare->address, parts->handle, op,
                                &ignored);
  }
}

bool tps_spares_flush_all(tps_local *local) {
  if (local->spare_bytes == 0) return false;
  for (tps_stream *s = local->open.first; s != NULL; s = s->parts->next)
    tps_spares_flush(s);
  return true;
}
