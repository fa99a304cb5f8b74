/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The usual matrix products of narrow floats: all elements finite, and none so
 * large or small that a product would leave the range of f32. Then products are
 * floats, exact, and one multiplication aligns each to the largest exponent;
 * what is computed is told in engine_multiply.c. Built once for each processor
 * level.
 */
#include "sim/engine_multiply.h"

#define INLINE static inline __attribute__((always_inline))

enum {
  MOST_EXPONENT = 62, /* of elements; a product has twice that */
  LEAST_EXPONENT = -50,
  LEAST_TOP = 2 * LEAST_EXPONENT,
  MOST_TOP = 120 /* up to here sums are in the range of f32 */
};

/* Elements as bits of floats, row after row, and their exponents. */
typedef struct panel {
  _Alignas(64) uint32_t a[MOST];
  _Alignas(64) uint32_t b[MOST];
  _Alignas(64) int32_t ae[MOST];
  _Alignas(64) int32_t be[MOST];
  _Alignas(64) uint32_t c[MOST / 2];
  _Alignas(64) int32_t ce[MOST / 2];
  _Alignas(64) uint32_t d[MOST / 2]; /* accumulators, then results, as bits */
} panel;

/* --- elements ------------------------------------------------------------ */

/* The elements of a register of all lanes, one after the other. Not 0 when one
 * is unusual. */
INLINE uint32_t widen_halves(const uint16_t *h, unsigned n, uint32_t *to) {
  uint32_t odd = 0;
  for (unsigned x = 0; x < n; x++) {
    uint32_t size = h[x] & 0x7fffu, sign = (h[x] & 0x8000u) << 16;
    to[x] = bits_of(f32_of(size << 13) * 0x1p112f) | sign;
    odd |= size >= 0x7c00u ? FULL : 0;
  }
  return odd;
}

/* Of a float with an 8-bit exponent. */
INLINE uint32_t is_unusual(uint32_t bits) {
  uint32_t size = bits & 0x7fffffffu;
  uint32_t above = (size >> 23) - (127 + LEAST_EXPONENT);
  bool inside = above <= MOST_EXPONENT - LEAST_EXPONENT;
  return size == 0 || inside ? 0 : FULL;
}

static uint32_t widen_brains(const uint32_t *row, uint32_t *to) {
  uint16_t h[2 * LANES];
  uint32_t odd = 0;
  memcpy(h, row, sizeof h);
  for (unsigned x = 0; x < 2 * LANES; x++) {
    to[x] = (uint32_t)h[x] << 16;
    odd |= is_unusual(to[x]);
  }
  return odd;
}

static uint32_t widen_singles(const uint32_t *row, uint32_t *to) {
  uint32_t odd = 0;
  for (unsigned x = 0; x < LANES; x++) {
    to[x] = row[x] & ~0x1fffu;
    odd |= is_unusual(to[x]);
  }
  return odd;
}

/* e5m2 is the upper half of an f16; e4m3 has three bits of fraction. */
static uint32_t widen_eighths(const uint32_t *row, bool e5m2, uint32_t *to) {
  uint8_t q[4 * LANES];
  uint16_t h[4 * LANES];
  uint32_t odd = 0;
  memcpy(q, row, sizeof q);
  if (e5m2) {
    for (unsigned x = 0; x < 4 * LANES; x++) h[x] = (uint16_t)(q[x] << 8);
    return widen_halves(h, 4 * LANES, to);
  }
  for (unsigned x = 0; x < 4 * LANES; x++) {
    uint32_t size = q[x] & 0x7fu, sign = (q[x] & 0x80u) << 24;
    to[x] = bits_of(f32_of(size << 20) * 0x1p120f) | sign;
    odd |= size == 0x7fu ? FULL : 0;
  }
  return odd;
}

static uint32_t widen(const fragment *f, const uint32_t *row, uint32_t *to) {
  uint16_t h[2 * LANES];
  switch (f->type) {
  case TPS_PTX_F16:
    memcpy(h, row, sizeof h);
    return widen_halves(h, 2 * LANES, to);
  case TPS_PTX_BF16: return widen_brains(row, to);
  case TPS_PTX_TF32: return widen_singles(row, to);
  default: return widen_eighths(row, f->type == TPS_PTX_E5M2, to);
  }
}

static bool take(const fragment *f, const void *const *in, uint32_t *to) {
  _Alignas(64) uint32_t t[4 * LANES];
  uint32_t odd = 0;
  for (unsigned r = 0; r < f->regs; r++) {
    odd |= widen(f, in[r], t);
    place(f, r, t, to);
  }
  return odd == 0;
}

static int least_exponent(uint8_t type) {
  switch (type) {
  case TPS_PTX_F16:
  case TPS_PTX_E5M2: return -14;
  case TPS_PTX_E4M3: return -6;
  default: return -126;
  }
}

INLINE int32_t exponent_of(uint32_t bits, int least) {
  uint32_t size = bits & 0x7fffffffu;
  int32_t e = (int32_t)(size >> 23) - 127;
  e = e > least ? e : least;
  return size ? e : NOWHERE;
}

static void find_exponents(const uint32_t *m, unsigned n, uint8_t type,
                           int32_t *e) {
  int least = least_exponent(type);
  for (unsigned x = 0; x < n; x++) e[x] = exponent_of(m[x], least);
}

/* --- sums ---------------------------------------------------------------- */

#ifdef __AVX2__ /* compilers make more of the other */
#define LARGER(x, y) ((words)_mm256_max_epi32((__m256i)(x), (__m256i)(y)))
#else
#define LARGER(x, y) (((x) & ((x) > (y))) | ((y) & ((x) <= (y))))
#endif

/* Accumulators as floats. False when one is unusual. */
static bool accumulators(const uint32_t *bits, unsigned n, bool half,
                         uint32_t *c) {
  uint32_t odd = 0;
  if (half)
    for (unsigned x = 0; x < n; x++) {
      c[x] = bits_of(f16_to(bits[x]));
      odd |= (bits[x] & 0x7fffu) >= 0x7c00u ? FULL : 0;
    }
  else
    for (unsigned x = 0; x < n; x++) {
      uint32_t size = bits[x] & 0x7fffffffu;
      uint32_t above = (size >> 23) - (127 + LEAST_TOP);
      bool inside = above <= MOST_TOP - LEAST_TOP;
      c[x] = bits[x];
      odd |= size == 0 || inside ? 0 : FULL;
    }
  return odd == 0;
}

/* Eight sums, each 0 or in the range of f32 once scaled, as bits of results.
 * See engine_multiply.h for the roundings. */
INLINE void give_sums(const doubles *sums, const floats *scale, bool half,
                      uint32_t *to) {
  GET(longs, u, sums);
  longs cut = u & ~0x1fffffffll;
  if (half) cut |= -((u != cut) << 29);
  GET(doubles, v, &cut);
  floats narrow = __builtin_convertvector(v, floats) * *scale;
  GET(words, x, &narrow);
  if (half) {
    words y = x & 0x7fffffff;
    GET(floats, size, &y);
    floats moved = size + 0.5f;
    GET(words, small, &moved);
    words normal = (y - 0x38000000 + 0xfff + (y >> 13 & 1)) >> 13;
    words is_small = y < 0x38800000, is_large = y >= 0x477ff000;
    words r = (is_small & (small - 0x3f000000)) | (~is_small & normal);
    x = (is_large & 0x7c00) | (~is_large & r) | (x >> 16 & 0x8000);
  }
  memcpy(to, &x, sizeof x);
}

/* Which products: those of places from … to of an order, with the rows of B that
 * belong to them. Without an order, as they follow one another. */
typedef struct range {
  unsigned from, to;
  const uint8_t *order, *pick;
} range;

INLINE unsigned a_at(const range *r, unsigned k) {
  return r->order ? r->order[k] : k;
}
INLINE unsigned b_at(const range *r, unsigned k) {
  return r->order ? r->pick[r->order[k]] : k;
}

/* Eight sums: an accumulator, and the products of a row of A and eight columns
 * of B, whose rows are n elements. `odd` becomes not 0 when a sum may be too
 * large. */
INLINE void sum(const uint32_t *am, const int32_t *ae, const uint32_t *bm,
                const int32_t *be, unsigned n, const range *r,
                const uint32_t *cm, const int32_t *ce, bool half, uint32_t *to,
                words *odd) {
  unsigned middle = (r->from + r->to) / 2;
  GET(words, top, ce);
  for (unsigned k = r->from; k < r->to; k++) {
    GET(words, e, be + b_at(r, k) * n);
    e += ae[a_at(r, k)];
    top = LARGER(e, top);
  }
  words least = (words){0} + LEAST_TOP;
  top = LARGER(top, least);
  words scale_bits = (127 + EXTRA - top) << 23;
  GET(floats, scale, &scale_bits);
  GET(floats, c, cm);
  words low = __builtin_convertvector(c * scale, words), high = {0};
  for (unsigned k = r->from; k < middle; k++) {
    GET(floats, y, bm + b_at(r, k) * n);
    low += __builtin_convertvector(f32_of(am[a_at(r, k)]) * y * scale, words);
  }
  for (unsigned k = middle; k < r->to; k++) {
    GET(floats, y, bm + b_at(r, k) * n);
    high += __builtin_convertvector(f32_of(am[a_at(r, k)]) * y * scale, words);
  }
  words unit_bits = (127 - EXTRA + top) << 23;
  GET(floats, unit, &unit_bits);
  doubles total = __builtin_convertvector(low, doubles) +
                  __builtin_convertvector(high, doubles);
  give_sums(&total, &unit, half, to);
  *odd |= top > MOST_TOP;
}

/* --- the product --------------------------------------------------------- */

/* Whether accumulators and results are f16. */
typedef struct ends {
  bool half_in, half_out;
} ends;

/* All rows: the products from … to of each are added to its accumulators. */
INLINE bool rows(panel *p, const matrix_site *s, const taking *t, unsigned m,
                 unsigned n, unsigned k, unsigned from, unsigned to, ends e) {
  words odd = {0};
  uint32_t any[COLS], all = 0;
  if (!accumulators(p->d, m * n, e.half_in, p->c)) return false;
  find_exponents(p->c, m * n, e.half_in ? TPS_PTX_F16 : TPS_PTX_F32, p->ce);
  for (unsigned row = 0; row < m; row++)
    for (unsigned col = 0; col < n; col += COLS) {
      unsigned at = row * n + col;
      range r = {from, to, t ? t->order : NULL, t ? pick_of(s, t, row) : NULL};
      sum(p->a + row * k, p->ae + row * k, p->b + col, p->be + col, n, &r,
          p->c + at, p->ce + at, e.half_out, p->d + at, &odd);
    }
  memcpy(any, &odd, sizeof any);
  EACH_COL { all |= any[j]; }
  return all == 0;
}

static bool block(panel *p, const matrix_site *s, const taking *t,
                  unsigned from, unsigned to, ends e) {
  unsigned m = s->m, n = s->n, k = s->k;
  if (s->sparse || s->sum == SUM_CHAINED)
    return rows(p, s, t, 16, 8, k, from, to, e);
  if (n == 8 && k == 16) return rows(p, s, NULL, m, 8, 16, 0, 16, e);
  if (n == 16 && k == 16) return rows(p, s, NULL, m, 16, 16, 0, 16, e);
  return rows(p, s, NULL, m, n, k, from, to, e);
}

static bool halves(panel *p, const matrix_site *s, const taking *t,
                   ends first) {
  ends second = {first.half_out, first.half_out};
  return block(p, s, t, 0, s->k / 2u, first) &&
         block(p, s, t, s->k / 2u, s->k, second);
}

/* The products come first, alone; the accumulators are added at last. */
static bool chained(panel *p, const matrix_site *s, const taking *t,
                    const uint32_t *c, ends e) {
  unsigned count = (unsigned)s->m * s->n;
  memset(p->d, 0, sizeof p->d);
  if (!halves(p, s, t, e)) return false;
  for (unsigned x = 0; x < count; x++)
    p->d[x] = e.half_out ? add_f16(p->d[x], c[x]) : add_f32(p->d[x], c[x]);
  return true;
}

static bool sums(panel *p, const matrix_site *s, const taking *t,
                 const uint32_t *c) {
  ends e = {s->c.type == TPS_PTX_F16, s->d.type == TPS_PTX_F16};
  if (s->sum == SUM_CHAINED) return chained(p, s, t, c, e);
  memcpy(p->d, c, sizeof p->d);
  return s->sum == SUM_HALVES ? halves(p, s, t, e) : block(p, s, t, 0, s->k, e);
}

bool VARIANT(tps_sim_multiply_usual)(const matrix_site *s, const taking *t,
                                     const void *const *in, void *const *out) {
  panel p;
  uint32_t c[MOST / 2] = {0};
  if (!take(&s->a, in, p.a) || !take(&s->b, in + s->b_at, p.b)) return false;
  find_exponents(p.a, (unsigned)s->a.rows * s->a.cols, s->a.type, p.ae);
  find_exponents(p.b, (unsigned)s->b.rows * s->b.cols, s->b.type, p.be);
  take_bits(&s->c, in + s->c_at, c);
  if (!sums(&p, s, t, c)) return false;
  give_bits(&s->d, p.d, out);
  return true;
}
