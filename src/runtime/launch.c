/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Launches. tps_launch_run is the fast path: no lock, and once its stream's
 * ring is warm no allocation. */
#include <stdio.h>
#include <string.h>

#include "runtime/capture.h"

int tps_launch_prepare(tps_kernel *kernel, tps_device *device,
                       const tps_shape *shape, tps_prepared *out,
                       tps_error *err) {
  tps_kernel_on *on;
  int code = tps_kernel_get(kernel, device, &on, err);
  if (code == 0) code = tps_limits_check(kernel, on, shape, err);
  if (code != 0) return code;
  tps_launch *launch = &out->launch;
  memset(out, 0, sizeof *out);
  out->kernel = kernel;
  out->device = device;
  out->handle = on->handle;
  for (int i = 0; i < 3; i++) {
    launch->grid[i] = (uint32_t)shape->grid[i];
    launch->block[i] = (uint32_t)shape->block[i];
    launch->cluster[i] = (uint32_t)shape->cluster[i];
  }
  launch->shared = (uint32_t)shape->shared;
  launch->cooperative = shape->cooperative;
  launch->carveout = shape->carveout;
  launch->params = kernel->block;
  launch->param_bytes = kernel->desc->param_bytes;
  launch->argv = kernel->argv;
  launch->argc = kernel->desc->param_count;
  return 0;
}

static TPS_COLD int refuse(const tps_prepared *prepared,
                           const tps_stream *stream, tps_error *err) {
  char a[32], b[32];
  if (prepared->kernel->closed || prepared->kernel->module->closed)
    return tps_fail(err, TPS_MISUSE, "attempt to use a closed kernel");
  if (prepared->device != stream->device)
    return tps_fail(
        err, TPS_MISUSE, "kernel '%s': prepared for %s, the stream is of %s",
        prepared->kernel->name, tps_device_label(prepared->device, a, sizeof a),
        tps_device_label(stream->device, b, sizeof b));
  return 0;
}

/* Memory of another device: fine where this one reaches it. */
static TPS_COLD int check_foreign(const tps_kernel *kernel,
                                  const tps_memory *memory, tps_device *device,
                                  tps_error *err) {
  char a[32], b[32];
  bool kin = memory->device->kind == device->kind;
  if (tps_memory_near(memory, device)) return 0;
  if (kin && device->face->can_access_peer(device, memory->device)) return 0;
  return tps_fail(err, TPS_MISUSE, "kernel '%s' on %s can't use memory of %s%s",
                  kernel->name, tps_device_label(device, a, sizeof a),
                  tps_device_label(memory->device, b, sizeof b),
                  kin ? " (no peer access)" : "");
}

/* Instead of queueing it. */
static TPS_COLD int capture(const tps_prepared *prepared, tps_stream *stream,
                            const tps_use *uses, uint32_t count,
                            tps_error *err) {
  int code = 0;
  for (uint32_t i = 0; i < count && code == 0; i++)
    if (uses[i].memory->device != stream->device)
      code =
          check_foreign(prepared->kernel, uses[i].memory, stream->device, err);
  return code != 0 ? code
                   : tps_capture_launch(prepared, stream, uses, count, err);
}

static int ready_uses(const tps_kernel *kernel, tps_stream *stream,
                      const tps_use *uses, uint32_t count, tps_error *err) {
  int code = 0;
  for (uint32_t i = 0; i < count && code == 0; i++) {
    tps_memory *memory = uses[i].memory;
    if (memory->device != stream->device)
      code = check_foreign(kernel, memory, stream->device, err);
    if (code == 0) code = tps_uses_ready(memory, stream, err);
  }
  return code;
}

/* What the launch touches, in the record and in the memories. */
static int note_uses(tps_op *op, const tps_use *uses, uint32_t count,
                     tps_error *err) {
  if (count > op->touch_capacity && tps_op_reserve_touches(op, count) != 0)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  for (uint32_t i = 0; i < count; i++) {
    const tps_use *use = &uses[i];
    op->touches[i] =
        (tps_touch){use->memory->id, use->first, use->bytes, use->access, 0, 0};
    tps_uses_set(use->memory, op->seq);
  }
  op->touch_count = count;
  return 0;
}

static TPS_COLD void announce(tps_op *op, const tps_stream *stream,
                              const tps_use *uses, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    tps_observe_memory(uses[i].memory, TPS_MEMORY_USED);
  tps_observe_queued(op, stream);
}

/* A refused launch: says which one. */
static TPS_COLD int broke(const tps_prepared *prepared, tps_stream *stream,
                          tps_op *op, int code, tps_error *err) {
  if (code != 0 && !tps_code_sticky(code)) {
    char text[sizeof err->message];
    memcpy(text, err->message, sizeof text);
    snprintf(err->message, sizeof err->message, "kernel '%s': %.1900s",
             prepared->kernel->name, text);
    snprintf(err->kernel, sizeof err->kernel, "%s", prepared->kernel->name);
    err->stream = stream->id + 1;
  }
  tps_op_broke(op);
  return tps_failed(stream->device, stream->parts->local, code, err);
}

int tps_launch_run(const tps_prepared *prepared, tps_stream *stream,
                   const tps_use *uses, uint32_t use_count, tps_error *err) {
  const tps_kernel *kernel = prepared->kernel;
  tps_device *device = prepared->device;
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  if (device != stream->device || kernel->closed || kernel->module->closed)
    return refuse(prepared, stream, err);
  if (TPS_UNLIKELY(stream->capturing))
    return capture(prepared, stream, uses, use_count, err);
  code = ready_uses(kernel, stream, uses, use_count, err);
  if (code != 0) return code;
  tps_op *op = tps_op_begin(stream, TPS_OP_LAUNCH, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  tps_op_set_launch(op, prepared);
  code = note_uses(op, uses, use_count, err);
  if (code != 0) {
    tps_op_broke(op);
    return code;
  }
  if (TPS_UNLIKELY(tps_observing())) announce(op, stream, uses, use_count);
  code = device->face->launch(device, prepared->handle, &prepared->launch,
                              stream->handle, op, err);
  if (code != 0) return broke(prepared, stream, op, code, err);
  tps_stream_queued(stream);
  return stream->context->blocking
             ? tps_stream_synchronize(stream, TPS_FOREVER, err)
             : 0;
}
