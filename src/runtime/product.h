/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Products of matrices by the device's own library. */
#ifndef TPS_RUNTIME_PRODUCT_H
#define TPS_RUNTIME_PRODUCT_H

#include "device/product.h"
#include "runtime/memory.h"

/* One of the matrices: bytes [first, first + bytes) of a memory. */
typedef struct tps_operand {
  tps_memory *memory;
  uint64_t first, bytes;
} tps_operand;

/* Queues the product; of = a, b, c, whose addresses are filled in here. c shares
 * no byte with the others. NOT_SUPPORTED, with nothing queued: the device has no
 * library for it, the memory is another device's, or the stream captures. */
int tps_product_run(tps_stream *stream, tps_product *product,
                    const tps_operand of[3], tps_error *err);

#endif
