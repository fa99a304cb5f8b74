/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Loads and stores. A warp's 32 addresses are taken together when they follow
 * one another, else by chunks of 8: contiguous, all equal, or each by itself.
 * Every chunk is checked against the memory that this instruction hit last;
 * what does not fit there goes lane by lane through tps_sim_load and
 * tps_sim_store, which know all spaces and report faults. Built once for each
 * processor level.
 *
 * Where lanes store to one address the lowest lane's value stays.
 */
#include "sim/engine_lanes.h"

/* --- shapes of addresses ------------------------------------------------- */

typedef enum shape { SCATTERED, CONTIGUOUS, EQUAL } shape;

#define STEPS(s) 0, s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s, 7 * s

static inline shape shape8_u64(const uint64_t *p, uint64_t step) {
#if defined(__AVX512F__)
  __m512i v = _mm512_loadu_si512(p), f = _mm512_set1_epi64((long long)p[0]);
  if (_mm512_cmpeq_epi64_mask(v, f) == 0xff) return EQUAL;
  const __m512i k = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  __m512i s = _mm512_sll_epi64(k, _mm_cvtsi32_si128(__builtin_ctzll(step)));
  f = _mm512_add_epi64(f, s);
  return _mm512_cmpeq_epi64_mask(v, f) == 0xff ? CONTIGUOUS : SCATTERED;
#else
  uint64_t equal = 0, run = 0;
  for (unsigned j = 0; j < 8; j++) {
    equal |= p[j] ^ p[0];
    run |= p[j] ^ (p[0] + j * step);
  }
  return equal == 0 ? EQUAL : run == 0 ? CONTIGUOUS : SCATTERED;
#endif
}
static inline shape shape8_u32(const uint32_t *p, uint32_t step) {
#if defined(__AVX2__)
  __m256i v = _mm256_loadu_si256((const __m256i *)p);
  __m256i f = _mm256_set1_epi32((int)p[0]);
  if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(v, f)) == -1) return EQUAL;
  const __m256i k = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i s = _mm256_sll_epi32(k, _mm_cvtsi32_si128(__builtin_ctz(step)));
  f = _mm256_add_epi32(f, s);
  return _mm256_movemask_epi8(_mm256_cmpeq_epi32(v, f)) == -1 ? CONTIGUOUS
                                                              : SCATTERED;
#else
  uint32_t equal = 0, run = 0;
  for (unsigned j = 0; j < 8; j++) {
    equal |= p[j] ^ p[0];
    run |= p[j] ^ (p[0] + j * step);
  }
  return equal == 0 ? EQUAL : run == 0 ? CONTIGUOUS : SCATTERED;
#endif
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

static inline bool fits(const region *r, uint64_t offset, uint64_t bytes,
                        uint64_t align) {
  return offset < r->size && r->size - offset >= bytes &&
         !(offset & (align - 1));
}

/* Whether all `n` addresses are inside: the sum of what is wrong is 0. */
#define INSIDE(A)                                                              \
  static inline bool inside_##A(const region *r, const T_##A *p, unsigned n,   \
                                uint64_t shift, uint64_t bytes,                \
                                uint64_t align) {                              \
    if (r->size < bytes) return false;                                         \
    uint64_t limit = r->size - bytes, bad = 0;                                 \
    for (unsigned j = 0; j < n; j++) {                                         \
      uint64_t offset = p[j] + shift;                                          \
      bad |= (uint64_t)(offset > limit) | (offset & (align - 1));              \
    }                                                                          \
    return bad == 0;                                                           \
  }
INSIDE(u32)
INSIDE(u64)

/* Before a store goes lane by lane from above: the fault, if there will be one,
 * is the lowest lane's. */
static void check_lanes(engine *e, const insn *i, uint32_t mask, const void *a,
                        bool wide, unsigned size) {
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t p = wide ? ((const uint64_t *)a)[l] : ((const uint32_t *)a)[l];
    bool local = false;
    tps_sim_resolve(e, i, l, p + (uint64_t)i->imm, size, ACCESS_STORE, &local);
  }
}

/* --- one element a lane -------------------------------------------------- */

#define GLOBAL_REGION (&e->slots[i->slot])
#define SHARED_REGION (&e->shared)

/* Lanes of a chunk, when it is not one of the easy shapes. */
#define LOAD_LANES(name, M, R, A)                                              \
  GUEST static void name(engine *e, const insn *i, const region *r, R *d,      \
                         const T_##A *a, unsigned first, uint32_t m) {         \
    uint64_t imm = (uint64_t)i->imm, shift = imm - r->base;                    \
    if (m == 0xff &&                                                           \
        inside_##A(r, a + first, 8, shift, sizeof(M), sizeof(M))) {            \
      for (unsigned l = first; l < first + 8; l++)                             \
        d[l] = (R) * (const M *)(r->host + (a[l] + shift));                    \
      return;                                                                  \
    }                                                                          \
    for (; m; m &= m - 1) {                                                    \
      unsigned l = first + (unsigned)__builtin_ctz(m);                         \
      uint64_t offset = a[l] + imm - r->base;                                  \
      if (fits(r, offset, sizeof(M), sizeof(M)))                               \
        d[l] = (R) * (const M *)(r->host + offset);                            \
      else d[l] = (R)(M)tps_sim_load(e, i, l, a[l] + imm, sizeof(M));          \
    }                                                                          \
  }

#define LOAD(name, M, R, A, REGION)                                            \
  LOAD_LANES(lanes_##name, M, R, A)                                            \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    R *d = ROW(R, i->d);                                                       \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    uint64_t imm = (uint64_t)i->imm;                                           \
    if (mask == FULL && run32_##A(a, sizeof(M))) {                             \
      uint64_t offset = a[0] + imm - r->base;                                  \
      if (fits(r, offset, LANES * sizeof(M), sizeof(M))) {                     \
        const M *s = (const M *)(r->host + offset);                            \
        EACH_LANE { d[l] = (R)s[l]; }                                          \
        return i + 1;                                                          \
      }                                                                        \
    }                                                                          \
    for (unsigned first = 0; first < LANES; first += 8) {                      \
      uint32_t m = mask >> first & 0xff;                                       \
      uint64_t offset = a[first] + imm - r->base;                              \
      shape s = m == 0xff ? shape8_##A(a + first, sizeof(M)) : SCATTERED;      \
      if (s == EQUAL && fits(r, offset, sizeof(M), sizeof(M))) {               \
        R value = (R) * (const M *)(r->host + offset);                         \
        for (unsigned l = 0; l < 8; l++) d[first + l] = value;                 \
      } else if (s == CONTIGUOUS &&                                            \
                 fits(r, offset, 8 * sizeof(M), sizeof(M))) {                  \
        const M *p = (const M *)(r->host + offset);                            \
        for (unsigned l = 0; l < 8; l++) d[first + l] = (R)p[l];               \
      } else if (m) {                                                          \
        lanes_##name(e, i, r, d, a, first, m);                                 \
      }                                                                        \
    }                                                                          \
    return i + 1;                                                              \
  }

#define STORE_LANES(name, M, R, A)                                             \
  GUEST static void name(engine *e, const insn *i, const region *r,            \
                         const R *s, const T_##A *a, unsigned first,           \
                         uint32_t mask, bool *checked) {                       \
    uint64_t imm = (uint64_t)i->imm, shift = imm - r->base;                    \
    uint32_t m = mask >> first & 0xff;                                         \
    if (m == 0xff &&                                                           \
        inside_##A(r, a + first, 8, shift, sizeof(M), sizeof(M))) {            \
      for (unsigned l = first + 8; l-- > first;)                               \
        *(M *)(r->host + (a[l] + shift)) = (M)s[l];                            \
      return;                                                                  \
    }                                                                          \
    while (m) {                                                                \
      unsigned top = 31u - (unsigned)__builtin_clz(m), l = first + top;        \
      uint64_t offset = a[l] + imm - r->base;                                  \
      m ^= 1u << top;                                                          \
      if (fits(r, offset, sizeof(M), sizeof(M))) {                             \
        *(M *)(r->host + offset) = (M)s[l];                                    \
        continue;                                                              \
      }                                                                        \
      if (!*checked)                                                           \
        check_lanes(e, i, mask, a, sizeof(T_##A) == 8, sizeof(M));             \
      *checked = true;                                                         \
      tps_sim_store(e, i, l, a[l] + imm, sizeof(M), s[l]);                     \
    }                                                                          \
  }

#define STORE(name, M, R, A, REGION)                                           \
  STORE_LANES(lanes_##name, M, R, A)                                           \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    const R *s = ROW(const R, i->d);                                           \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    uint64_t imm = (uint64_t)i->imm;                                           \
    bool checked = false;                                                      \
    if (mask == FULL && run32_##A(a, sizeof(M))) {                             \
      uint64_t offset = a[0] + imm - r->base;                                  \
      if (fits(r, offset, LANES * sizeof(M), sizeof(M))) {                     \
        M *p = (M *)(r->host + offset);                                        \
        EACH_LANE { p[l] = (M)s[l]; }                                          \
        return i + 1;                                                          \
      }                                                                        \
    }                                                                          \
    for (unsigned first = LANES; first > 0;) {                                 \
      first -= 8;                                                              \
      uint32_t m = mask >> first & 0xff;                                       \
      uint64_t offset = a[first] + imm - r->base;                              \
      shape h = m == 0xff ? shape8_##A(a + first, sizeof(M)) : SCATTERED;      \
      if (h == EQUAL && fits(r, offset, sizeof(M), sizeof(M))) {               \
        *(M *)(r->host + offset) = (M)s[first];                                \
      } else if (h == CONTIGUOUS &&                                            \
                 fits(r, offset, 8 * sizeof(M), sizeof(M))) {                  \
        M *p = (M *)(r->host + offset);                                        \
        for (unsigned l = 0; l < 8; l++) p[l] = (M)s[first + l];               \
      } else if (m) {                                                          \
        lanes_##name(e, i, r, s, a, first, mask, &checked);                    \
      }                                                                        \
    }                                                                          \
    return i + 1;                                                              \
  }

/* --- vectors: `count` elements, in d, b, c, e ---------------------------- */

#define LOAD_VECTOR(name, M, R, A, REGION)                                     \
  GUEST static void spread_##name(R *const *d, const M *s, unsigned n) {       \
    if (n == 2) {                                                              \
      R *x = d[0], *y = d[1];                                                  \
      EACH_LANE { x[l] = (R)s[2 * l], y[l] = (R)s[2 * l + 1]; }                \
      return;                                                                  \
    }                                                                          \
    R *x = d[0], *y = d[1], *z = d[2], *w = d[3];                              \
    EACH_LANE {                                                                \
      x[l] = (R)s[4 * l], y[l] = (R)s[4 * l + 1];                              \
      z[l] = (R)s[4 * l + 2], w[l] = (R)s[4 * l + 3];                          \
    }                                                                          \
  }                                                                            \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    unsigned n = i->count, size = n * (unsigned)sizeof(M);                     \
    R *d[4] = {ROW(R, i->d), ROW(R, i->b), ROW(R, i->c), ROW(R, i->e)};        \
    uint64_t imm = (uint64_t)i->imm, offset = a[0] + imm - r->base;            \
    if (mask == FULL && run32_##A(a, size) &&                                  \
        fits(r, offset, LANES * size, size)) {                                 \
      spread_##name(d, (const M *)(r->host + offset), n);                      \
    } else if (mask == FULL && equal32_##A(a) &&                               \
               fits(r, offset, size, size)) {                                  \
      const M *s = (const M *)(r->host + offset);                              \
      for (unsigned k = 0; k < n; k++) {                                       \
        R *x = d[k], value = (R)s[k];                                          \
        EACH_LANE { x[l] = value; }                                            \
      }                                                                        \
    } else {                                                                   \
      for (uint32_t m = mask; m; m &= m - 1) {                                 \
        unsigned l = (unsigned)__builtin_ctz(m);                               \
        uint64_t address = a[l] + imm;                                         \
        bool near = fits(r, address - r->base, size, size), local = false;     \
        const unsigned char *p = near                                          \
                                     ? r->host + (address - r->base)           \
                                     : tps_sim_resolve(e, i, l, address, size, \
                                                       ACCESS_LOAD, &local);   \
        for (unsigned k = 0; k < n; k++)                                       \
          d[k][l] = local ? (R)(M)tps_sim_load(                                \
                                e, i, l, address + k * sizeof(M), sizeof(M))   \
                          : (R)((const M *)p)[k];                              \
      }                                                                        \
    }                                                                          \
    return i + 1;                                                              \
  }

#define STORE_VECTOR(name, M, R, A, REGION)                                    \
  GUEST static void gather_##name(const R *const *s, M *p, unsigned n) {       \
    if (n == 2) {                                                              \
      const R *x = s[0], *y = s[1];                                            \
      EACH_LANE { p[2 * l] = (M)x[l], p[2 * l + 1] = (M)y[l]; }                \
      return;                                                                  \
    }                                                                          \
    const R *x = s[0], *y = s[1], *z = s[2], *w = s[3];                        \
    EACH_LANE {                                                                \
      p[4 * l] = (M)x[l], p[4 * l + 1] = (M)y[l];                              \
      p[4 * l + 2] = (M)z[l], p[4 * l + 3] = (M)w[l];                          \
    }                                                                          \
  }                                                                            \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    unsigned n = i->count, size = n * (unsigned)sizeof(M);                     \
    const R *s[4] = {ROW(const R, i->d), ROW(const R, i->b),                   \
                     ROW(const R, i->c), ROW(const R, i->e)};                  \
    uint64_t imm = (uint64_t)i->imm, offset = a[0] + imm - r->base;            \
    if (mask == FULL && run32_##A(a, size) &&                                  \
        fits(r, offset, LANES * size, size)) {                                 \
      gather_##name(s, (M *)(r->host + offset), n);                            \
      return i + 1;                                                            \
    }                                                                          \
    bool checked = false;                                                      \
    for (uint32_t m = mask; m;) {                                              \
      unsigned l = 31u - (unsigned)__builtin_clz(m);                           \
      uint64_t address = a[l] + imm;                                           \
      bool near = fits(r, address - r->base, size, size), local = false;       \
      m ^= 1u << l;                                                            \
      if (!near && !checked)                                                   \
        check_lanes(e, i, mask, a, sizeof(T_##A) == 8, size);                  \
      checked |= !near;                                                        \
      unsigned char *p = near ? r->host + (address - r->base)                  \
                              : tps_sim_resolve(e, i, l, address, size,        \
                                                ACCESS_STORE, &local);         \
      for (unsigned k = 0; k < n; k++) {                                       \
        if (local)                                                             \
          tps_sim_store(e, i, l, address + k * sizeof(M), sizeof(M), s[k][l]); \
        else ((M *)p)[k] = (M)s[k][l];                                         \
      }                                                                        \
    }                                                                          \
    return i + 1;                                                              \
  }

#define LOADS(where, A, REGION)                                                \
  LOAD(ld_u8_##where, uint8_t, uint32_t, A, REGION)                            \
  LOAD(ld_s8_##where, int8_t, uint32_t, A, REGION)                             \
  LOAD(ld_u16_##where, uint16_t, uint32_t, A, REGION)                          \
  LOAD(ld_s16_##where, int16_t, uint32_t, A, REGION)                           \
  LOAD(ld_32_##where, uint32_t, uint32_t, A, REGION)                           \
  LOAD(ld_64_##where, uint64_t, uint64_t, A, REGION)                           \
  LOAD_VECTOR(ldv_u8_##where, uint8_t, uint32_t, A, REGION)                    \
  LOAD_VECTOR(ldv_s8_##where, int8_t, uint32_t, A, REGION)                     \
  LOAD_VECTOR(ldv_u16_##where, uint16_t, uint32_t, A, REGION)                  \
  LOAD_VECTOR(ldv_s16_##where, int16_t, uint32_t, A, REGION)                   \
  LOAD_VECTOR(ldv_32_##where, uint32_t, uint32_t, A, REGION)                   \
  LOAD_VECTOR(ldv_64_##where, uint64_t, uint64_t, A, REGION)
#define STORES(where, A, REGION)                                               \
  STORE(st_8_##where, uint8_t, uint32_t, A, REGION)                            \
  STORE(st_16_##where, uint16_t, uint32_t, A, REGION)                          \
  STORE(st_32_##where, uint32_t, uint32_t, A, REGION)                          \
  STORE(st_64_##where, uint64_t, uint64_t, A, REGION)                          \
  STORE_VECTOR(stv_8_##where, uint8_t, uint32_t, A, REGION)                    \
  STORE_VECTOR(stv_16_##where, uint16_t, uint32_t, A, REGION)                  \
  STORE_VECTOR(stv_32_##where, uint32_t, uint32_t, A, REGION)                  \
  STORE_VECTOR(stv_64_##where, uint64_t, uint64_t, A, REGION)

LOADS(global, u64, GLOBAL_REGION)
LOADS(shared, u64, SHARED_REGION)
LOADS(shared32, u32, SHARED_REGION)
STORES(global, u64, GLOBAL_REGION)
STORES(shared, u64, SHARED_REGION)
STORES(shared32, u32, SHARED_REGION)

/* --- local memory -------------------------------------------------------- */

/* f: bytes of an element, and 256 when it is signed. */
static inline uint32_t extended(uint64_t value, uint32_t f) {
  unsigned bits = 8 * (f & 255);
  if (bits >= 32) return (uint32_t)value;
  uint32_t v = (uint32_t)value << (32 - bits);
  return f & 256 ? (uint32_t)((int32_t)v >> (32 - bits)) : v >> (32 - bits);
}

static uint32_t element_row(const insn *i, unsigned k) {
  return k == 0 ? i->d : k == 1 ? i->b : k == 2 ? i->c : i->e;
}

/* Words of all lanes at one address, when all ask for it. */
static uint32_t *local_words(engine *e, const insn *i, uint32_t mask,
                             unsigned size, access_kind kind) {
  const uint64_t *a = ROW(const uint64_t, i->a);
  if (size < 4 || !mask) return NULL;
  unsigned first = (unsigned)__builtin_ctz(mask);
  uint64_t bad = 0;
  for (unsigned l = 0; l < LANES; l++) bad |= ON(mask, l) ? a[l] ^ a[first] : 0;
  if (bad) return NULL;
  uint64_t address = a[first] + (uint64_t)i->imm;
  uint32_t *p = NULL;
  if (e->warp->main.rows == e->group->frame->rows)
    p = tps_sim_local_word(e, i, first, address, size, kind) - first;
  else
    for (uint32_t m = mask; m; m &= m - 1) {
      unsigned l = (unsigned)__builtin_ctz(m);
      p = tps_sim_local_word(e, i, l, address, size, kind) - l;
    }
  return p;
}

HANDLER(ld_local) {
  unsigned size = i->f & 255;
  uint32_t *w = local_words(e, i, mask, size * i->count, ACCESS_LOAD);
  const uint64_t *a = ROW(const uint64_t, i->a);
  _Alignas(64) uint64_t address[LANES];
  memcpy(address, a, ROW64);
  for (unsigned k = 0; k < i->count; k++) {
    uint32_t at = element_row(i, k);
    if (w && size == 4) {
      const uint32_t *s = w + k * LANES;
      uint32_t *d = ROW(uint32_t, at);
      BLEND(s[l]);
    } else if (w && size == 8) {
      const uint32_t *s = w + 2 * k * LANES;
      uint64_t *d = ROW(uint64_t, at);
      BLEND((uint64_t)s[l + LANES] << 32 | s[l]);
    } else {
      for (uint32_t m = mask; m; m &= m - 1) {
        unsigned l = (unsigned)__builtin_ctz(m);
        uint64_t p = address[l] + (uint64_t)i->imm;
        if (k == 0)
          tps_sim_local_word(e, i, l, p, size * i->count, ACCESS_LOAD);
        uint64_t v = tps_sim_load(e, i, l, p + k * size, size);
        if (size == 8) ROW(uint64_t, at)[l] = v;
        else ROW(uint32_t, at)[l] = extended(v, i->f);
      }
    }
  }
  return i + 1;
}

HANDLER(st_local) {
  unsigned size = i->f & 255;
  uint32_t *w = local_words(e, i, mask, size * i->count, ACCESS_STORE);
  const uint64_t *a = ROW(const uint64_t, i->a);
  for (unsigned k = 0; k < i->count; k++) {
    uint32_t at = element_row(i, k);
    if (w && size == 4) {
      uint32_t *d = w + k * LANES;
      const uint32_t *s = ROW(const uint32_t, at);
      BLEND(s[l]);
    } else if (w && size == 8) {
      uint32_t *d = w + 2 * k * LANES;
      const uint64_t *s = ROW(const uint64_t, at);
      BLEND((uint32_t)s[l]);
      d += LANES;
      BLEND((uint32_t)(s[l] >> 32));
    } else {
      for (uint32_t m = mask; m; m &= m - 1) {
        unsigned l = (unsigned)__builtin_ctz(m);
        uint64_t p = a[l] + (uint64_t)i->imm;
        if (k == 0)
          tps_sim_local_word(e, i, l, p, size * i->count, ACCESS_STORE);
        uint64_t v =
            size == 8 ? ROW(const uint64_t, at)[l] : ROW(const uint32_t, at)[l];
        tps_sim_store(e, i, l, p + k * size, size, v);
      }
    }
  }
  return i + 1;
}

/* --- any space, lane by lane; ordered accesses --------------------------- */

/* f: as above, and 512 for an acquire or a release, 1024 for an atomic access.
 */
HANDLER(ld_any) {
  unsigned size = i->f & 255;
  int order = i->f & 512 ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED;
  _Alignas(64) uint64_t address[LANES];
  memcpy(address, row(e, i->a), ROW64);
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t at = address[l] + (uint64_t)i->imm;
    bool local = false;
    const region *r = &e->slots[i->slot];
    unsigned whole = size * i->count;
    unsigned char *p =
        fits(r, at - r->base, whole, whole)
            ? r->host + (at - r->base)
            : tps_sim_resolve(e, i, l, at, whole, ACCESS_LOAD, &local);
    for (unsigned k = 0; k < i->count; k++) {
      uint64_t v = local ? tps_sim_load(e, i, l, at + k * size, size)
                         : load_atomic(p + k * size, size, order);
      uint32_t to = element_row(i, k);
      if (size == 8) ROW(uint64_t, to)[l] = v;
      else ROW(uint32_t, to)[l] = extended(v, i->f);
    }
  }
  return i + 1;
}

HANDLER(st_any) {
  unsigned size = i->f & 255;
  int order = i->f & 512 ? __ATOMIC_RELEASE : __ATOMIC_RELAXED;
  const uint64_t *a = ROW(const uint64_t, i->a);
  for (uint32_t m = mask; m;) {
    unsigned l = 31u - (unsigned)__builtin_clz(m);
    uint64_t at = a[l] + (uint64_t)i->imm;
    bool local = false;
    const region *r = &e->slots[i->slot];
    unsigned whole = size * i->count;
    unsigned char *p =
        fits(r, at - r->base, whole, whole)
            ? r->host + (at - r->base)
            : tps_sim_resolve(e, i, l, at, whole, ACCESS_STORE, &local);
    m ^= 1u << l;
    for (unsigned k = 0; k < i->count; k++) {
      uint32_t from = element_row(i, k);
      uint64_t v = size == 8 ? ROW(const uint64_t, from)[l]
                             : ROW(const uint32_t, from)[l];
      if (local) tps_sim_store(e, i, l, at + k * size, size, v);
      else store_atomic(p + k * size, size, v, order);
    }
  }
  return i + 1;
}

void VARIANT(tps_sim_fill_access)(handler **table);
void VARIANT(tps_sim_fill_access)(handler **table) { ACCESS_OPS(FILL) }
