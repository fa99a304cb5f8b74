/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "base/dtype.h"

#include <math.h>
#include <string.h>

const char *const tps_dtype_names[] = {
#define X(symbol, name, brief, bytes) name,
    TPS_DTYPES(X)
#undef X
        "bool",
    "opaque"};

const uint8_t tps_dtype_sizes[] = {
#define X(symbol, name, brief, bytes) bytes,
    TPS_DTYPES(X)
#undef X
        1,
    0};

static const char *const briefs[] = {
#define X(symbol, name, brief, bytes) brief,
    TPS_DTYPES(X)
#undef X
};

/* Most differ in the first letter, seen without a call. */
static inline int same(const char *a, const char *b) {
  return *a == *b && strcmp(a, b) == 0;
}

int tps_dtype_find(const char *name) {
  for (int i = 0; i < TPS_DTYPE_COUNT; i++)
    if (same(name, briefs[i]) || same(name, tps_dtype_names[i])) return i;
  return -1;
}

/* Rounds |x| to `mantissa` bits with the smallest normal exponent `emin`, once,
 * straight from double: going through float would round twice. */
static uint16_t narrow(double x, int mantissa, int emin, int emax) {
  uint16_t sign = signbit(x) ? 0x8000u : 0;
  uint16_t infinity = (uint16_t)((unsigned)(emax - emin + 2) << mantissa);
  if (isnan(x)) return 0x7fff;
  x = fabs(x);
  if (isinf(x)) return sign | infinity;
  int exponent = x == 0 ? emin : ilogb(x);
  if (exponent < emin) exponent = emin;
  double units = rint(ldexp(x, mantissa - exponent)); /* to nearest even */
  if (units >= ldexp(1, mantissa + 1)) {
    units /= 2;
    exponent++;
  }
  if (exponent > emax) return sign | infinity;
  unsigned bits = (unsigned)units;
  if (bits >> mantissa) /* normal: the hidden bit becomes the exponent */
    bits += (unsigned)(exponent - emin) << mantissa;
  return sign | (uint16_t)bits;
}

static double widen(uint16_t h, int mantissa, int emin, int emax) {
  unsigned field = (h & 0x7fffu) >> mantissa;
  double bits = h & ((1u << mantissa) - 1);
  double sign = h & 0x8000u ? -1 : 1;
  if (field == (unsigned)(emax - emin + 2))
    return bits != 0 ? NAN : sign * INFINITY;
  if (field == 0) return sign * ldexp(bits, emin - mantissa);
  return sign *
         ldexp(bits + ldexp(1, mantissa), (int)field - 1 + emin - mantissa);
}

uint16_t tps_f16_from_double(double x) { return narrow(x, 10, -14, 15); }
double tps_f16_to_double(uint16_t h) { return widen(h, 10, -14, 15); }
uint16_t tps_bf16_from_double(double x) { return narrow(x, 7, -126, 127); }
double tps_bf16_to_double(uint16_t h) { return widen(h, 7, -126, 127); }
