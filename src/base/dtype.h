/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Element types. The first twelve are what a buffer can hold; the rest occur
 * only as types of kernel parameters.
 */
#ifndef TPS_BASE_DTYPE_H
#define TPS_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

/* X(symbol, name, short name, bytes) */
#define TPS_DTYPES(X)                                                          \
  X(INT8, "int8", "i8", 1)                                                     \
  X(UINT8, "uint8", "u8", 1)                                                   \
  X(INT16, "int16", "i16", 2)                                                  \
  X(UINT16, "uint16", "u16", 2)                                                \
  X(INT32, "int32", "i32", 4)                                                  \
  X(UINT32, "uint32", "u32", 4)                                                \
  X(INT64, "int64", "i64", 8)                                                  \
  X(UINT64, "uint64", "u64", 8)                                                \
  X(FLOAT16, "float16", "f16", 2)                                              \
  X(BFLOAT16, "bfloat16", "bf16", 2)                                           \
  X(FLOAT32, "float32", "f32", 4)                                              \
  X(FLOAT64, "float64", "f64", 8)

typedef enum tps_dtype {
#define X(symbol, name, brief, bytes) TPS_##symbol,
  TPS_DTYPES(X)
#undef X
      TPS_DTYPE_COUNT,
  TPS_BOOL = TPS_DTYPE_COUNT, /* one byte, 0 or 1 */
  TPS_OPAQUE /* struct, void or unknown: nothing can be checked but the size */
} tps_dtype;

extern const char *const tps_dtype_names[TPS_OPAQUE + 1];
extern const uint8_t tps_dtype_sizes[TPS_OPAQUE + 1]; /* OPAQUE: 0 */

/* Either name → dtype below TPS_DTYPE_COUNT, or -1. */
int tps_dtype_find(const char *name);

/* IEEE half and bfloat16, rounded to nearest even; NaN stays NaN. */
uint16_t tps_f16_from_double(double x);
double tps_f16_to_double(uint16_t h);
uint16_t tps_bf16_from_double(double x);
double tps_bf16_to_double(uint16_t h);

#endif
