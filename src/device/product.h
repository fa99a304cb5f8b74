/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A product of matrices, as a device's own library may be asked for it:
 * c = alpha * op(a) * op(b) + beta * c, where op transposes or does nothing, the
 * elements of a row lie one behind the other, and `batch` such products are
 * done. */
#ifndef TPS_DEVICE_PRODUCT_H
#define TPS_DEVICE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tps_matrix {
  uint64_t address;
  int64_t row;  /* elements from one row to the next */
  int64_t step; /* from one matrix of the batch to the next */
  uint8_t dtype;
  bool transposed; /* not of c */
} tps_matrix;

typedef struct tps_product {
  int64_t m, n, k, batch; /* c is m by n; all above 0 */
  tps_matrix a, b, c;
  double alpha, beta;
} tps_product;

#endif
