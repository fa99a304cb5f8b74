/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Loops over lanes, for the files of handlers that are built once for each
 * processor level. A full mask takes a plain loop, which compilers turn into
 * vector code; otherwise results are blended into the destination. An operand's
 * row may be the destination's own: lanes never depend on one another.
 */
#ifndef TPS_SIM_ENGINE_LANES_H
#define TPS_SIM_ENGINE_LANES_H

#include "sim/engine_core.h"

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef TPS_SIM_VARIANT
#define TPS_SIM_VARIANT base
#endif
#define TPS_JOIN_(a, b) a##_##b
#define TPS_JOIN(a, b) TPS_JOIN_(a, b)
/* The name of a function that every build of a file has. */
#define VARIANT(name) TPS_JOIN(name, TPS_SIM_VARIANT)

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#define EACH_LANE                                                              \
  _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0;          \
                                                      l < LANES; l++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned l = 0; l < LANES; l++)
#endif

/* What a kernel does to its memory is the guest's business. */
#if defined(__SANITIZE_THREAD__)
#define GUEST __attribute__((no_sanitize_thread))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GUEST __attribute__((no_sanitize("thread")))
#endif
#endif
#ifndef GUEST
#define GUEST
#endif

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)

#define ON(mask, l) ((mask) >> (l)&1)

/* Element types of rows (R), values (T), and what a result is cut to (U). */
typedef uint32_t R_u8, R_s8, R_u16, R_s16, R_u32, R_s32;
typedef uint64_t R_u64, R_s64;
typedef float R_f32, T_f32, U_f32;
typedef double R_f64, T_f64, U_f64;
typedef uint8_t T_u8, U_u8, U_s8;
typedef int8_t T_s8;
typedef uint16_t T_u16, U_u16, U_s16;
typedef int16_t T_s16;
typedef uint32_t T_u32, U_u32, U_s32;
typedef int32_t T_s32;
typedef uint64_t T_u64, U_u64, U_s64;
typedef int64_t T_s64;

#define ROW(type, operand)                                                     \
  ((type *)__builtin_assume_aligned(row(e, (operand)), 64))

#define BLEND(result)                                                          \
  do {                                                                         \
    if (mask == FULL) {                                                        \
      EACH_LANE { d[l] = (result); }                                           \
    } else {                                                                   \
      EACH_LANE { d[l] = ON(mask, l) ? (result) : d[l]; }                      \
    }                                                                          \
  } while (0)

/* Operations of one, two and three operands; `f` is an inline function. */
#define OP1(name, D, A, f)                                                     \
  HANDLER(name) {                                                              \
    R_##D *d = ROW(R_##D, i->d);                                               \
    const R_##A *a = ROW(const R_##A, i->a);                                   \
    BLEND((U_##D)f((T_##A)a[l]));                                              \
    return i + 1;                                                              \
  }
#define OP2(name, D, A, B, f)                                                  \
  HANDLER(name) {                                                              \
    R_##D *d = ROW(R_##D, i->d);                                               \
    const R_##A *a = ROW(const R_##A, i->a);                                   \
    const R_##B *b = ROW(const R_##B, i->b);                                   \
    BLEND((U_##D)f((T_##A)a[l], (T_##B)b[l]));                                 \
    return i + 1;                                                              \
  }
#define OP3(name, D, A, B, C, f)                                               \
  HANDLER(name) {                                                              \
    R_##D *d = ROW(R_##D, i->d);                                               \
    const R_##A *a = ROW(const R_##A, i->a);                                   \
    const R_##B *b = ROW(const R_##B, i->b);                                   \
    const R_##C *c = ROW(const R_##C, i->c);                                   \
    BLEND((U_##D)f((T_##A)a[l], (T_##B)b[l], (T_##C)c[l]));                    \
    return i + 1;                                                              \
  }

/* One bit a lane of 32 elements that are 0 or all ones. */
static inline uint32_t mask_of_words(const uint32_t *t) {
#if defined(__AVX512DQ__)
  __m512i lo = _mm512_load_si512(t), hi = _mm512_load_si512(t + 16);
  return (uint32_t)_mm512_movepi32_mask(lo) | (uint32_t)_mm512_movepi32_mask(hi)
                                                  << 16;
#elif defined(__AVX2__)
  uint32_t m = 0;
  for (unsigned k = 0; k < 4; k++) {
    __m256 v = _mm256_load_ps((const float *)(t + 8 * k));
    m |= (uint32_t)_mm256_movemask_ps(v) << (8 * k);
  }
  return m;
#elif defined(__SSE2__)
  uint32_t m = 0;
  for (unsigned k = 0; k < 8; k++) {
    __m128 v = _mm_load_ps((const float *)(t + 4 * k));
    m |= (uint32_t)_mm_movemask_ps(v) << (4 * k);
  }
  return m;
#else
  uint32_t m = 0;
  for (unsigned l = 0; l < LANES; l++) m |= (t[l] & 1u) << l;
  return m;
#endif
}

/* A comparison into a predicate. */
#define COMPARE(name, A, expression)                                           \
  HANDLER(name) {                                                              \
    const R_##A *a = ROW(const R_##A, i->a), *b = ROW(const R_##A, i->b);      \
    _Alignas(64) uint32_t t[LANES];                                            \
    EACH_LANE {                                                                \
      T_##A x = (T_##A)a[l], y = (T_##A)b[l];                                  \
      t[l] = (expression) ? FULL : 0;                                          \
    }                                                                          \
    set_mask(e, i->d, mask_of_words(t), mask);                                 \
    return i + 1;                                                              \
  }

/* Puts the handlers of a list into the table. */
#define FILL(name) table[H_##name] = op_##name;

#endif
