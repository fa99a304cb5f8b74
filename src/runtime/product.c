/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * See product.h. Observers see a launch of a kernel "multiply". */
#include "runtime/product.h"
#include "base/intern.h"
#include "runtime/parts.h"

static int check(const tps_stream *stream, const tps_product *product,
                 const tps_operand of[3], tps_error *err) {
  const tps_device_face *face = stream->device->face;
  int code = tps_stream_ready(stream, err);
  if (code != 0) return code;
  bool near = true;
  for (int i = 0; i < 3 && code == 0; i++) {
    near = near && tps_memory_near(of[i].memory, stream->device);
    code = tps_memory_check(of[i].memory, of[i].first, of[i].bytes, err);
  }
  if (code != 0) return code;
  if (near && !stream->capturing && face->multiply != NULL &&
      face->can_multiply(stream->device, product))
    return 0;
  return tps_fail(err, TPS_NOT_SUPPORTED, "no library for this product");
}

static int note(tps_op *op, const tps_operand of[3], tps_error *err) {
  int code = 0;
  for (int i = 0; i < 3 && code == 0; i++) {
    tps_access access = i < 2 ? TPS_ACCESS_READ : TPS_ACCESS_BOTH;
    code =
        tps_op_touch(op, of[i].memory, of[i].first, of[i].bytes, access, err);
  }
  return code;
}

static void set_addresses(tps_product *product, const tps_operand of[3]) {
  product->a.address = of[0].memory->address + of[0].first;
  product->b.address = of[1].memory->address + of[1].first;
  product->c.address = of[2].memory->address + of[2].first;
}

int tps_product_run(tps_stream *stream, tps_product *product,
                    const tps_operand of[3], tps_error *err) {
  static const char name[] = "multiply";
  tps_device *device = stream->device;
  int code = check(stream, product, of, err);
  for (int i = 0; i < 3 && code == 0; i++)
    code = tps_uses_ready(of[i].memory, stream, err);
  if (code != 0) return code;
  tps_op *op = tps_op_begin(stream, TPS_OP_LAUNCH, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  for (int i = 0; i < 3; i++) {
    op->grid[i] = op->block[i] = 1;
    op->cluster[i] = 0;
    tps_uses_set(of[i].memory, op->seq);
  }
  op->kernel = tps_intern(name, sizeof name - 1);
  TPS_TRY(broke, note(op, of, err));
  tps_op_announce(op, stream);
  set_addresses(product, of);
  TPS_TRY(broke,
          device->face->multiply(device, product, stream->handle, op, err));
  tps_stream_queued(stream);
  return stream->context->blocking
             ? tps_stream_synchronize(stream, TPS_FOREVER, err)
             : 0;
broke:
  tps_op_broke(op);
  return tps_failed(device, stream->parts->local, code, err);
}
