/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Floating-point helpers that several files of handlers share: bits, flushing,
 * rounding to narrow formats, and sections of code with directed rounding.
 */
#ifndef TPS_SIM_ENGINE_NUMBER_H
#define TPS_SIM_ENGINE_NUMBER_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Flags in an instruction's imm. The rounding is in the low three bits. */
enum {
  ROUND_RN,
  ROUND_RZ,
  ROUND_RM,
  ROUND_RP,
  ROUND_RNA,
  ROUND_BITS = 7,
  FLAG_FTZ = 8,
  FLAG_SAT = 16,
  FLAG_NAN = 32,     /* .NaN of min and max */
  FLAG_XORSIGN = 64, /* .xorsign.abs */
  FLAG_RELU = 128,
  FLAG_SATFINITE = 256,
  FLAG_INTEGRAL = 512, /* cvt between floats rounds to an integer */
  FLAG_SIGNED = 1024,  /* an integer source or result is signed */
  FLAG_LOW = 2048,     /* rcp.approx.ftz.f64: only the upper half counts */
  FLAG_OOB = 4096,     /* .oob of fma */
  BITS_SHIFT = 16      /* width of an integer result */
};

static inline float f32_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
static inline uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
static inline double f64_of(uint64_t bits) {
  double f;
  memcpy(&f, &bits, 8);
  return f;
}
static inline uint64_t bits_of64(double f) {
  uint64_t bits;
  memcpy(&bits, &f, 8);
  return bits;
}

/* After f32 arithmetic there is one NaN. */
static inline float canon(float x) { return x == x ? x : f32_of(0x7fffffffu); }
static inline float flush(float x) {
  return fabsf(x) < 0x1p-126f ? f32_of(bits_of(x) & 0x80000000u) : x;
}
static inline float saturate(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
static inline double saturate64(double x) {
  return x > 0 ? (x < 1 ? x : 1) : 0;
}

/* Rounding of the processor. Between begin and end a compiler must not move
 * arithmetic: values have to come from, and go to, memory that HOLD names. */
#define HOLD(p) __asm__ volatile("" : : "r"(p) : "memory")
static inline unsigned rounding_begin(int rounding) {
#if defined(__SSE2__)
  static const unsigned mode[4] = {0, 3, 1, 2};
  unsigned old = _mm_getcsr();
  _mm_setcsr((old & ~0x6000u) | mode[rounding & 3] << 13);
  return old;
#else
  static const int mode[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                              FE_UPWARD};
  int old = fegetround();
  fesetround(mode[rounding & 3]);
  return (unsigned)old;
#endif
}
static inline void rounding_end(unsigned old) {
#if defined(__SSE2__)
  _mm_setcsr(old);
#else
  fesetround((int)old);
#endif
}

/* A double rounded to a format of `mant` bits of fraction whose least normal
 * exponent is `emin` (its greatest is 1 - emin), as bits without sign moved. */
static inline uint32_t narrow(double v, int mant, int emin, int rounding,
                              uint32_t nan) {
  uint64_t u = bits_of64(v), fraction = u & 0xfffffffffffffull;
  int biased = (int)(u >> 52 & 0x7ff), e = biased - 1023;
  uint32_t negative = (uint32_t)(u >> 63);
  uint32_t top = (uint32_t)(3 - 2 * emin) << mant; /* infinity */
  uint32_t sign = negative << (32 - __builtin_clz(top));
  if (biased == 0x7ff) return fraction ? nan : sign | top;
  uint64_t q = biased ? fraction | 1ull << 52 : fraction;
  if (!biased) e = -1022;
  int shift = 52 - mant + (e < emin ? emin - e : 0);
  uint64_t rest = shift > 63 ? q : q & ((1ull << shift) - 1);
  uint64_t half = shift > 63 ? ~0ull : 1ull << (shift - 1);
  q = shift > 63 ? 0 : q >> shift;
  bool up = rounding == ROUND_RN    ? rest > half || (rest == half && (q & 1))
            : rounding == ROUND_RNA ? rest >= half
            : rounding == ROUND_RM  ? rest && negative
            : rounding == ROUND_RP  ? rest && !negative
                                    : false;
  uint32_t r = (uint32_t)q + up;
  if (e >= emin) r += (uint32_t)(e - emin) << mant;
  if (r >= top || e > 1 - emin) {
    bool to_infinity = rounding == ROUND_RN || rounding == ROUND_RNA ||
                       (rounding == ROUND_RM && negative) ||
                       (rounding == ROUND_RP && !negative);
    r = to_infinity ? top : top - 1;
  }
  return sign | r;
}
static inline uint16_t f16_from(double v, int rounding) {
  return (uint16_t)narrow(v, 10, -14, rounding, 0x7fff);
}
static inline uint16_t bf16_from(double v, int rounding) {
  return (uint16_t)narrow(v, 7, -126, rounding, 0x7fff);
}
static inline uint32_t tf32_from(double v, int rounding) {
  return narrow(v, 10, -126, rounding, 0x3ffff) << 13;
}
static inline float f16_to(uint32_t h) {
  uint32_t em = h & 0x7fffu, sign = (h & 0x8000u) << 16;
  float f = f32_of(em << 13) * 0x1p112f;
  uint32_t bits =
      em >= 0x7c00u ? (em > 0x7c00u ? 0x7fffffffu : 0x7f800000u) : bits_of(f);
  return f32_of(em > 0x7c00u ? bits : bits | sign);
}
static inline float bf16_to(uint32_t h) { return f32_of(h << 16); }

/* A NaN made quiet. */
static inline double quiet(double x) {
  return f64_of(bits_of64(x) | 0x0008000000000000ull);
}

/* The exact sum of two doubles, rounded to odd: what a narrower format then
 * rounds right. */
static inline double add_to_odd(double x, double y) {
  double s = x + y;
  if (!(fabs(s) < INFINITY)) return s;
  double t = s - x;
  double error = (x - (s - t)) + (y - t);
  uint64_t u = bits_of64(s);
  if (error != 0 && !(u & 1)) {
    bool away = (error > 0) == (s > 0);
    return f64_of(away ? u + 1 : u - 1);
  }
  return s;
}

#endif
