/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The shape of a warp's 32 addresses: one run, one address, or neither; which of
 * them lie outside a region; and gathering from those that lie inside. For the
 * files of handlers that touch memory.
 */
#ifndef TPS_SIM_ENGINE_SHAPE_H
#define TPS_SIM_ENGINE_SHAPE_H

#include "sim/engine_lanes.h"

typedef enum shape { SCATTERED, CONTIGUOUS, EQUAL } shape;

static inline bool fits(const region *r, uint64_t offset, uint64_t bytes,
                        uint64_t align) {
  return offset < r->size && r->size - offset >= bytes &&
         !(offset & (align - 1));
}

/* All 32: one run, or one address. */
#define SHAPE32(A)                                                             \
  static inline bool run32_##A(const T_##A *p, T_##A step) {                   \
    if (p[LANES - 1] - p[0] != (LANES - 1) * step) return false;               \
    T_##A bad = 0;                                                             \
    for (unsigned l = 0; l < LANES; l++)                                       \
      bad |= p[l] ^ (T_##A)(p[0] + l * step);                                  \
    return bad == 0;                                                           \
  }                                                                            \
  static inline bool equal32_##A(const T_##A *p) {                             \
    if (p[LANES - 1] != p[0]) return false;                                    \
    T_##A bad = 0;                                                             \
    for (unsigned l = 0; l < LANES; l++) bad |= p[l] ^ p[0];                   \
    return bad == 0;                                                           \
  }
SHAPE32(u32)
SHAPE32(u64)

/* Of 16 lanes; the step is a power of two. */
#if defined(__AVX512F__)
static inline shape shape16_u64(const uint64_t *p, uint64_t step) {
  __m512i v = _mm512_loadu_si512(p), w = _mm512_loadu_si512(p + 8);
  __m512i f = _mm512_set1_epi64((long long)p[0]);
  if ((_mm512_cmpeq_epi64_mask(v, f) & _mm512_cmpeq_epi64_mask(w, f)) == 0xff)
    return EQUAL;
  const __m512i k = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  __m128i by = _mm_cvtsi32_si128(__builtin_ctzll(step));
  f = _mm512_add_epi64(f, _mm512_sll_epi64(k, by));
  __m512i g = _mm512_add_epi64(f, _mm512_set1_epi64(8 * (long long)step));
  bool run =
      (_mm512_cmpeq_epi64_mask(v, f) & _mm512_cmpeq_epi64_mask(w, g)) == 0xff;
  return run ? CONTIGUOUS : SCATTERED;
}
static inline shape shape16_u32(const uint32_t *p, uint32_t step) {
  __m512i v = _mm512_loadu_si512(p), f = _mm512_set1_epi32((int)p[0]);
  if (_mm512_cmpeq_epi32_mask(v, f) == 0xffff) return EQUAL;
  const __m512i k =
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m128i by = _mm_cvtsi32_si128(__builtin_ctz(step));
  f = _mm512_add_epi32(f, _mm512_sll_epi32(k, by));
  return _mm512_cmpeq_epi32_mask(v, f) == 0xffff ? CONTIGUOUS : SCATTERED;
}
#else
#define SHAPE16(A)                                                             \
  static inline shape shape16_##A(const T_##A *p, T_##A step) {                \
    T_##A equal = 0, run = 0;                                                  \
    if (p[15] != p[0] && p[15] - p[0] != 15 * step) return SCATTERED;          \
    for (unsigned l = 0; l < 16; l++) {                                        \
      equal |= p[l] ^ p[0];                                                    \
      run |= p[l] ^ (T_##A)(p[0] + l * step);                                  \
    }                                                                          \
    return equal == 0 ? EQUAL : run == 0 ? CONTIGUOUS : SCATTERED;             \
  }
SHAPE16(u32)
SHAPE16(u64)
#endif

/* --- which lanes are outside --------------------------------------------- */

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define LOAD_ADDRESSES_u64(p) _mm512_loadu_si512(p)
#define LOAD_ADDRESSES_u32(p)                                                  \
  _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(p)))
#define OUTSIDE(A)                                                             \
  static inline uint32_t outside_##A(const region *r, const T_##A *p,          \
                                     uint64_t shift, uint64_t bytes,           \
                                     uint64_t align) {                         \
    if (r->size < bytes) return FULL;                                          \
    const __m512i limit = _mm512_set1_epi64((long long)(r->size - bytes));     \
    const __m512i low = _mm512_set1_epi64((long long)(align - 1));             \
    const __m512i by = _mm512_set1_epi64((long long)shift);                    \
    uint32_t bad = 0;                                                          \
    for (unsigned k = 0; k < LANES; k += 8) {                                  \
      __m512i v = _mm512_add_epi64(LOAD_ADDRESSES_##A(p + k), by);             \
      uint32_t m = _mm512_cmpgt_epu64_mask(v, limit);                          \
      m |= _mm512_test_epi64_mask(v, low);                                     \
      bad |= m << k;                                                           \
    }                                                                          \
    return bad;                                                                \
  }
#else
#define OUTSIDE(A)                                                             \
  static inline uint32_t outside_##A(const region *r, const T_##A *p,          \
                                     uint64_t shift, uint64_t bytes,           \
                                     uint64_t align) {                         \
    if (r->size < bytes) return FULL;                                          \
    uint64_t limit = r->size - bytes;                                          \
    _Alignas(64) uint32_t t[LANES];                                            \
    for (unsigned l = 0; l < LANES; l++) {                                     \
      uint64_t offset = p[l] + shift;                                          \
      t[l] = offset > limit || (offset & (align - 1)) ? FULL : 0;              \
    }                                                                          \
    return mask_of_words(t);                                                   \
  }
#endif
/* A mask of the lanes whose `bytes` at p + shift don't all lie in the region, or
 * whose address is no multiple of `align`. */
OUTSIDE(u32)
OUTSIDE(u64)

/* --- gathering ----------------------------------------------------------- */

/* Words of the lanes of a mask at host + (p + shift), into d; the other lanes of d stay.
 * All addresses must be good. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define GATHER(A)                                                              \
  GUEST static inline void gather32_##A(                                       \
      uint32_t *d, const unsigned char *host, uint64_t shift, const T_##A *p,  \
      uint32_t mask) {                                                         \
    const void *base = (const void *)((uintptr_t)host + shift);                \
    __m256i *to = (__m256i *)(void *)d;                                        \
    for (unsigned k = 0; k < 4; k += 2) {                                      \
      __m256i x = _mm512_mask_i64gather_epi32(                                 \
          _mm256_load_si256(to + k), (__mmask8)(mask >> 8 * k),                \
          LOAD_ADDRESSES_##A(p + 8 * k), base, 1);                             \
      __m256i y = _mm512_mask_i64gather_epi32(                                 \
          _mm256_load_si256(to + k + 1), (__mmask8)(mask >> (8 * k + 8)),      \
          LOAD_ADDRESSES_##A(p + 8 * k + 8), base, 1);                         \
      _mm512_store_si512(to + k,                                               \
                         _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1)); \
    }                                                                          \
  }                                                                            \
  GUEST static inline void gather64_##A(                                       \
      uint64_t *d, const unsigned char *host, uint64_t shift, const T_##A *p,  \
      uint32_t mask) {                                                         \
    const void *base = (const void *)((uintptr_t)host + shift);                \
    for (unsigned k = 0; k < LANES; k += 8)                                    \
      _mm512_store_si512(d + k,                                                \
                         _mm512_mask_i64gather_epi64(                          \
                             _mm512_load_si512(d + k), (__mmask8)(mask >> k),  \
                             LOAD_ADDRESSES_##A(p + k), base, 1));             \
  }
#else
#define GATHER(A)                                                              \
  GUEST static inline void gather32_##A(                                       \
      uint32_t *d, const unsigned char *host, uint64_t shift, const T_##A *p,  \
      uint32_t mask) {                                                         \
    for (unsigned l = 0; l < LANES; l++)                                       \
      if (ON(mask, l))                                                         \
        d[l] = *(const uint32_t *)(const void *)(host + (p[l] + shift));       \
  }                                                                            \
  GUEST static inline void gather64_##A(                                       \
      uint64_t *d, const unsigned char *host, uint64_t shift, const T_##A *p,  \
      uint32_t mask) {                                                         \
    for (unsigned l = 0; l < LANES; l++)                                       \
      if (ON(mask, l))                                                         \
        d[l] = *(const uint64_t *)(const void *)(host + (p[l] + shift));       \
  }
#endif
GATHER(u32)
GATHER(u64)

#endif
