/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Loads and stores. A warp's 32 addresses are taken together when they follow
 * one another, else all are checked at once against the memory that this
 * instruction hit last, and taken by halves: contiguous, all equal, or each by
 * itself. When one does not fit there, all go lane by lane through tps_sim_load
 * and tps_sim_store, which know all spaces and report faults. Built once for
 * each processor level.
 *
 * Where lanes store to one address the lowest lane's value stays.
 */
#include "sim/engine_shape.h"

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

/* Any shape, any mask: each lane by itself, with every check. */
#define LOAD_LANES(name, M, R, A)                                              \
  GUEST static void name(engine *e, const insn *i, const region *r, R *d,      \
                         const T_##A *a, uint32_t mask) {                      \
    uint64_t imm = (uint64_t)i->imm;                                           \
    for (uint32_t m = mask; m; m &= m - 1) {                                   \
      unsigned l = (unsigned)__builtin_ctz(m);                                 \
      uint64_t offset = a[l] + imm - r->base;                                  \
      if (fits(r, offset, sizeof(M), sizeof(M)))                               \
        d[l] = (R) * (const M *)(r->host + offset);                            \
      else d[l] = (R)(M)tps_sim_load(e, i, l, a[l] + imm, sizeof(M));          \
    }                                                                          \
  }

/* Neither a run nor one address. */
#define LOAD_REST(name, M, R, A, GATHER_REST)                                  \
  LOAD_LANES(lanes_##name, M, R, A)                                            \
  GUEST static void rest_##name(engine *e, const insn *i, const region *r,     \
                                R *d, const T_##A *a, uint32_t mask) {         \
    uint64_t shift = (uint64_t)i->imm - r->base;                               \
    if (outside_##A(r, a, shift, sizeof(M), sizeof(M)) & mask)                 \
      lanes_##name(e, i, r, d, a, mask);                                       \
    else GATHER_REST(d, r->host, shift, a, mask);                              \
  }

#define LOAD(name, M, R, A, REGION, GATHER_REST)                               \
  LOAD_REST(name, M, R, A, GATHER_REST)                                        \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    R *d = ROW(R, i->d);                                                       \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    uint64_t shift = (uint64_t)i->imm - r->base, offset = a[0] + shift;        \
    if (mask == FULL && run32_##A(a, sizeof(M)) &&                             \
        fits(r, offset, LANES * sizeof(M), sizeof(M))) {                       \
      const M *s = (const M *)(r->host + offset);                              \
      EACH_LANE { d[l] = (R)s[l]; }                                            \
      return i + 1;                                                            \
    }                                                                          \
    if (mask != FULL) {                                                        \
      rest_##name(e, i, r, d, a, mask);                                        \
      return i + 1;                                                            \
    }                                                                          \
    for (unsigned first = 0; first < LANES; first += 16) {                     \
      shape h = shape16_##A(a + first, sizeof(M));                             \
      offset = a[first] + shift;                                               \
      if (h == EQUAL && fits(r, offset, sizeof(M), sizeof(M))) {               \
        R value = (R) * (const M *)(r->host + offset);                         \
        for (unsigned l = 0; l < 16; l++) d[first + l] = value;                \
      } else if (h == CONTIGUOUS &&                                            \
                 fits(r, offset, 16 * sizeof(M), sizeof(M))) {                 \
        const M *s = (const M *)(r->host + offset);                            \
        R *to = d + first;                                                     \
        _Pragma("GCC ivdep") for (unsigned l = 0; l < 16; l++) to[l] =         \
            (R)s[l];                                                           \
      } else {                                                                 \
        rest_##name(e, i, r, d, a, 0xffffu << first);                          \
      }                                                                        \
    }                                                                          \
    return i + 1;                                                              \
  }

/* Gathers of small elements. */
#define GATHER_SMALL(M, A)                                                     \
  GUEST static inline void gather_##M##_##A(                                   \
      uint32_t *d, const unsigned char *host, uint64_t shift, const T_##A *a,  \
      uint32_t mask) {                                                         \
    for (uint32_t m = mask; m; m &= m - 1) {                                   \
      unsigned l = (unsigned)__builtin_ctz(m);                                 \
      d[l] = (uint32_t) * (const M *)(host + (a[l] + shift));                  \
    }                                                                          \
  }
#define GATHERS_SMALL(A)                                                       \
  GATHER_SMALL(uint8_t, A)                                                     \
  GATHER_SMALL(int8_t, A) GATHER_SMALL(uint16_t, A) GATHER_SMALL(int16_t, A)
GATHERS_SMALL(u32)
GATHERS_SMALL(u64)

/* The lanes of `part`, from the highest down, each with every check. */
#define STORE_LANES(name, M, R, A)                                             \
  GUEST static void name(engine *e, const insn *i, const region *r,            \
                         const R *s, const T_##A *a, uint32_t mask,            \
                         uint32_t part) {                                      \
    uint64_t imm = (uint64_t)i->imm;                                           \
    bool checked = false;                                                      \
    for (uint32_t m = part; m;) {                                              \
      unsigned l = 31u - (unsigned)__builtin_clz(m);                           \
      uint64_t offset = a[l] + imm - r->base;                                  \
      m ^= 1u << l;                                                            \
      if (fits(r, offset, sizeof(M), sizeof(M))) {                             \
        *(M *)(r->host + offset) = (M)s[l];                                    \
        continue;                                                              \
      }                                                                        \
      if (!checked) check_lanes(e, i, mask, a, sizeof(T_##A) == 8, sizeof(M)); \
      checked = true;                                                          \
      tps_sim_store(e, i, l, a[l] + imm, sizeof(M), s[l]);                     \
    }                                                                          \
  }

#define STORE_REST(name, M, R, A)                                              \
  STORE_LANES(lanes_##name, M, R, A)                                           \
  GUEST static void rest_##name(engine *e, const insn *i, const region *r,     \
                                const R *s, const T_##A *a, uint32_t mask,     \
                                uint32_t part) {                               \
    uint64_t shift = (uint64_t)i->imm - r->base;                               \
    if (outside_##A(r, a, shift, sizeof(M), sizeof(M)) & part) {               \
      lanes_##name(e, i, r, s, a, mask, part);                                 \
      return;                                                                  \
    }                                                                          \
    for (uint32_t m = part; m;) {                                              \
      unsigned l = 31u - (unsigned)__builtin_clz(m);                           \
      m ^= 1u << l;                                                            \
      *(M *)(r->host + (a[l] + shift)) = (M)s[l];                              \
    }                                                                          \
  }

#define STORE(name, M, R, A, REGION)                                           \
  STORE_REST(name, M, R, A)                                                    \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    const R *s = ROW(const R, i->d);                                           \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    uint64_t shift = (uint64_t)i->imm - r->base, offset = a[0] + shift;        \
    if (mask == FULL && run32_##A(a, sizeof(M)) &&                             \
        fits(r, offset, LANES * sizeof(M), sizeof(M))) {                       \
      M *p = (M *)(r->host + offset);                                          \
      EACH_LANE { p[l] = (M)s[l]; }                                            \
      return i + 1;                                                            \
    }                                                                          \
    if (mask != FULL) {                                                        \
      rest_##name(e, i, r, s, a, mask, mask);                                  \
      return i + 1;                                                            \
    }                                                                          \
    for (unsigned first = 16; first < LANES; first -= 16) {                    \
      shape h = shape16_##A(a + first, sizeof(M));                             \
      offset = a[first] + shift;                                               \
      if (h == EQUAL && fits(r, offset, sizeof(M), sizeof(M))) {               \
        *(M *)(r->host + offset) = (M)s[first];                                \
      } else if (h == CONTIGUOUS &&                                            \
                 fits(r, offset, 16 * sizeof(M), sizeof(M))) {                 \
        M *p = (M *)(r->host + offset);                                        \
        const R *from = s + first;                                             \
        _Pragma("GCC ivdep") for (unsigned l = 0; l < 16; l++) p[l] =          \
            (M)from[l];                                                        \
      } else {                                                                 \
        rest_##name(e, i, r, s, a, mask, 0xffffu << first);                    \
      }                                                                        \
    }                                                                          \
    return i + 1;                                                              \
  }

/* --- vectors: `count` elements, in d, b, c, e ---------------------------- */

/* Two words of each lane, or four; good addresses, all lanes. */
#define PAIRS(A)                                                               \
  GUEST static inline void pairs_##A(uint32_t *x, uint32_t *y,                 \
                                     const unsigned char *host,                \
                                     uint64_t shift, const T_##A *a) {         \
    _Alignas(64) uint64_t t[LANES] = {0};                                      \
    gather64_##A(t, host, shift, a, FULL);                                     \
    EACH_LANE { x[l] = (uint32_t)t[l], y[l] = (uint32_t)(t[l] >> 32); }        \
  }
PAIRS(u32)
PAIRS(u64)

#if defined(__AVX512F__) && defined(__AVX512DQ__)
enum { HAVE_QUADS = 1 };
/* Lane 4j + k of 16 is the j-th quarter of the k-th register. */
#define QUADS(A)                                                               \
  static inline __m512i quad_##A(const unsigned char *host, uint64_t shift,    \
                                 const T_##A *a) {                             \
    const __m128i *p = (const void *)(host + (a[0] + shift));                  \
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128(p));                    \
    p = (const void *)(host + (a[4] + shift));                                 \
    v = _mm512_inserti32x4(v, _mm_loadu_si128(p), 1);                          \
    p = (const void *)(host + (a[8] + shift));                                 \
    v = _mm512_inserti32x4(v, _mm_loadu_si128(p), 2);                          \
    p = (const void *)(host + (a[12] + shift));                                \
    return _mm512_inserti32x4(v, _mm_loadu_si128(p), 3);                       \
  }                                                                            \
  static inline void quads_##A(uint32_t *const *d, const unsigned char *host,  \
                               uint64_t shift, const T_##A *a) {               \
    for (unsigned first = 0; first < LANES; first += 16, a += 16) {            \
      if (shape16_##A(a, 16) == EQUAL) {                                       \
        const uint32_t *s = (const void *)(host + (a[0] + shift));             \
        const uint32_t x = s[0], y = s[1], z = s[2], w = s[3];                 \
        _mm512_store_si512(d[0] + first, _mm512_set1_epi32((int)x));           \
        _mm512_store_si512(d[1] + first, _mm512_set1_epi32((int)y));           \
        _mm512_store_si512(d[2] + first, _mm512_set1_epi32((int)z));           \
        _mm512_store_si512(d[3] + first, _mm512_set1_epi32((int)w));           \
        continue;                                                              \
      }                                                                        \
      __m512i p = quad_##A(host, shift, a), q = quad_##A(host, shift, a + 1);  \
      __m512i r = quad_##A(host, shift, a + 2);                                \
      __m512i s = quad_##A(host, shift, a + 3);                                \
      __m512i pq = _mm512_unpacklo_epi32(p, q);                                \
      __m512i rs = _mm512_unpacklo_epi32(r, s);                                \
      __m512i PQ = _mm512_unpackhi_epi32(p, q);                                \
      __m512i RS = _mm512_unpackhi_epi32(r, s);                                \
      _mm512_store_si512(d[0] + first, _mm512_unpacklo_epi64(pq, rs));         \
      _mm512_store_si512(d[1] + first, _mm512_unpackhi_epi64(pq, rs));         \
      _mm512_store_si512(d[2] + first, _mm512_unpacklo_epi64(PQ, RS));         \
      _mm512_store_si512(d[3] + first, _mm512_unpackhi_epi64(PQ, RS));         \
    }                                                                          \
  }
#else
enum { HAVE_QUADS = 0 };
#define QUADS(A)                                                               \
  static inline void quads_##A(uint32_t *const *d, const unsigned char *host,  \
                               uint64_t shift, const T_##A *a) {               \
    (void)d, (void)host, (void)shift, (void)a;                                 \
  }
#endif
QUADS(u32)
QUADS(u64)

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
  GUEST static void lanes_##name(engine *e, const insn *i, const region *r,    \
                                 R *const *d, const T_##A *a, uint32_t mask) { \
    unsigned n = i->count, size = n * (unsigned)sizeof(M);                     \
    for (uint32_t m = mask; m; m &= m - 1) {                                   \
      unsigned l = (unsigned)__builtin_ctz(m);                                 \
      uint64_t address = a[l] + (uint64_t)i->imm;                              \
      bool near = fits(r, address - r->base, size, size), local = false;       \
      const unsigned char *p =                                                 \
          near ? r->host + (address - r->base)                                 \
               : tps_sim_resolve(e, i, l, address, size, ACCESS_LOAD, &local); \
      for (unsigned k = 0; k < n; k++)                                         \
        d[k][l] = local ? (R)(M)tps_sim_load(e, i, l, address + k * sizeof(M), \
                                             sizeof(M))                        \
                        : (R)((const M *)p)[k];                                \
    }                                                                          \
  }                                                                            \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    unsigned n = i->count, size = n * (unsigned)sizeof(M);                     \
    R *d[4] = {ROW(R, i->d), ROW(R, i->b), ROW(R, i->c), ROW(R, i->e)};        \
    uint64_t imm = (uint64_t)i->imm, shift = imm - r->base;                    \
    uint64_t offset = a[0] + shift;                                            \
    if (mask == FULL && run32_##A(a, size) &&                                  \
        fits(r, offset, LANES * size, size)) {                                 \
      spread_##name(d, (const M *)(r->host + offset), n);                      \
    } else if (outside_##A(r, a, shift, size, size) & mask) {                  \
      lanes_##name(e, i, r, d, a, mask);                                       \
    } else if (mask == FULL && equal32_##A(a)) {                               \
      const M *s = (const M *)(r->host + offset);                              \
      for (unsigned k = 0; k < n; k++) {                                       \
        R *x = d[k], value = (R)s[k];                                          \
        EACH_LANE { x[l] = value; }                                            \
      }                                                                        \
    } else if (mask == FULL && sizeof(M) == 4 && n == 2) {                     \
      pairs_##A((uint32_t *)d[0], (uint32_t *)d[1], r->host, shift, a);        \
    } else if (HAVE_QUADS && mask == FULL && sizeof(M) == 4) {                 \
      quads_##A((uint32_t *const *)d, r->host, shift, a);                      \
    } else {                                                                   \
      for (uint32_t m = mask; m; m &= m - 1) {                                 \
        unsigned l = (unsigned)__builtin_ctz(m);                               \
        const M *s = (const M *)(r->host + (a[l] + shift));                    \
        for (unsigned k = 0; k < n; k++) d[k][l] = (R)s[k];                    \
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
  GUEST static void lanes_##name(engine *e, const insn *i, const region *r,    \
                                 const R *const *s, const T_##A *a,            \
                                 uint32_t mask) {                              \
    unsigned n = i->count, size = n * (unsigned)sizeof(M);                     \
    bool checked = false;                                                      \
    for (uint32_t m = mask; m;) {                                              \
      unsigned l = 31u - (unsigned)__builtin_clz(m);                           \
      uint64_t address = a[l] + (uint64_t)i->imm;                              \
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
  }                                                                            \
  GUEST HANDLER(name) {                                                        \
    const region *r = REGION;                                                  \
    const T_##A *a = ROW(const T_##A, i->a);                                   \
    unsigned n = i->count, size = n * (unsigned)sizeof(M);                     \
    const R *s[4] = {ROW(const R, i->d), ROW(const R, i->b),                   \
                     ROW(const R, i->c), ROW(const R, i->e)};                  \
    uint64_t shift = (uint64_t)i->imm - r->base, offset = a[0] + shift;        \
    if (mask == FULL && run32_##A(a, size) &&                                  \
        fits(r, offset, LANES * size, size)) {                                 \
      gather_##name(s, (M *)(r->host + offset), n);                            \
      return i + 1;                                                            \
    }                                                                          \
    if (outside_##A(r, a, shift, size, size) & mask) {                         \
      lanes_##name(e, i, r, s, a, mask);                                       \
      return i + 1;                                                            \
    }                                                                          \
    _Alignas(64) M t[4 * LANES];                                               \
    gather_##name(s, t, n);                                                    \
    for (uint32_t m = mask; m;) {                                              \
      unsigned l = 31u - (unsigned)__builtin_clz(m);                           \
      m ^= 1u << l;                                                            \
      if (n == 2) memcpy(r->host + (a[l] + shift), t + 2 * l, 2 * sizeof(M));  \
      else memcpy(r->host + (a[l] + shift), t + 4 * l, 4 * sizeof(M));         \
    }                                                                          \
    return i + 1;                                                              \
  }

#define LOADS(where, A, REGION)                                                \
  LOAD(ld_u8_##where, uint8_t, uint32_t, A, REGION, gather_uint8_t_##A)        \
  LOAD(ld_s8_##where, int8_t, uint32_t, A, REGION, gather_int8_t_##A)          \
  LOAD(ld_u16_##where, uint16_t, uint32_t, A, REGION, gather_uint16_t_##A)     \
  LOAD(ld_s16_##where, int16_t, uint32_t, A, REGION, gather_int16_t_##A)       \
  LOAD(ld_32_##where, uint32_t, uint32_t, A, REGION, gather32_##A)             \
  LOAD(ld_64_##where, uint64_t, uint64_t, A, REGION, gather64_##A)             \
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

/* f: as above, and 512 for an acquire or a release, 1024 for an atomic access,
 * 4096 for a load in a loop that does nothing else (engine_grid.c). */
HANDLER(ld_any) {
  unsigned size = i->f & 255;
  int order = i->f & 512 ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED;
  _Alignas(64) uint64_t address[LANES];
  memcpy(address, row(e, i->a), ROW64);
  if (i->f & 4096)
    tps_sim_spin(e, i, address[__builtin_ctz(mask)] + (uint64_t)i->imm);
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
