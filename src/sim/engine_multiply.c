/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * D = A × B + C as the tensor cores of an H200 compute it, bit for bit (found
 * by comparison on random matrices of every kind of value).
 *
 * Products of narrow floats are exact. They and the accumulator are aligned to
 * the largest exponent among them, where a product's exponent is the sum of its
 * factors' (which may be one too small), and each is cut to 25 bits below that
 * exponent; the sum of what is left is exact. An f32 result is cut as well, an
 * f16 result rounded to the nearest. All of k is one such block; of wmma with
 * tf32 each half. fp8 is the exception: first the even pairs of k, then the odd
 * ones, each a block, and the accumulator is added by an ordinary addition at
 * last. f64 is a chain of fma. m8n8k4 of f16 is a chain of f32 additions, the
 * accumulator last; its f16 results are the one thing here that is not always
 * equal (3 of 38,400 differed by a unit of the last place).
 *
 * Here is what serves always; engine_multiply_usual.c does the usual cases
 * several times as fast. An element is a factor m in (-2, 2) and an exponent e.
 * Built once for each processor level.
 */
#include "sim/engine_multiply.h"

enum { FAR = 60 }; /* from here on nothing of a product is left */

/* --- elements ------------------------------------------------------------ */

typedef struct pieces {
  _Alignas(64) float m[MOST];
  _Alignas(64) int32_t e[MOST];
  _Alignas(64) float special[MOST]; /* 0, or an infinity, or a NaN */
  bool any_special;
} pieces;

typedef struct format {
  uint8_t exponent, fraction, shift; /* bits; and below the fraction */
} format;

static format format_of(uint8_t type) {
  switch (type) {
  case TPS_PTX_F16: return (format){5, 10, 0};
  case TPS_PTX_BF16: return (format){8, 7, 0};
  case TPS_PTX_TF32: return (format){8, 10, 13};
  case TPS_PTX_E4M3: return (format){4, 3, 0};
  case TPS_PTX_E5M2: return (format){5, 2, 0};
  default: return (format){8, 23, 0};
  }
}

/* The bits of `n` elements of a format, split. Gives all ones in a lane for
 * each element that is not finite. */
static inline __attribute__((always_inline)) uint32_t
split(const uint32_t *bits, unsigned n, unsigned eb, unsigned fb,
      unsigned shift, bool has_infinity, float *m, int32_t *e) {
  uint32_t any = 0, most = (1u << eb) - 1, fractions = (1u << fb) - 1;
  int32_t bias = (int32_t)(most >> 1);
  float unit = f32_of((127 - fb) << 23);
  for (unsigned l = 0; l < n; l++) {
    uint32_t x = bits[l] >> shift;
    uint32_t fraction = x & fractions, exponent = x >> fb & most;
    uint32_t sign = x >> (eb + fb) << 31;
    bool odd = exponent == most && (has_infinity || fraction == fractions);
    float normal = f32_of(0x3f800000u | fraction << (23 - fb));
    float small = (float)(int32_t)fraction * unit;
    float size = odd ? 0 : exponent ? normal : small;
    m[l] = f32_of(bits_of(size) | sign);
    e[l] = odd || (exponent | fraction) == 0
               ? NOWHERE
               : (int32_t)(exponent ? exponent : 1) - bias;
    any |= odd ? FULL : 0;
  }
  return any;
}

static uint32_t split_as(uint8_t type, const uint32_t *bits, unsigned n,
                         float *m, int32_t *e) {
  switch (type) {
  case TPS_PTX_F16: return split(bits, n, 5, 10, 0, true, m, e);
  case TPS_PTX_BF16: return split(bits, n, 8, 7, 0, true, m, e);
  case TPS_PTX_TF32: return split(bits, n, 8, 10, 13, true, m, e);
  case TPS_PTX_E4M3: return split(bits, n, 4, 3, 0, false, m, e);
  case TPS_PTX_E5M2: return split(bits, n, 5, 2, 0, true, m, e);
  default: return split(bits, n, 8, 23, 0, true, m, e);
  }
}

/* An element that is not finite, else 0. */
static float special_value(uint8_t type, uint32_t bits) {
  format f = format_of(type);
  uint32_t x = bits >> f.shift, fractions = (1u << f.fraction) - 1;
  uint32_t most = (1u << f.exponent) - 1;
  if ((x >> f.fraction & most) != most) return 0;
  if (type == TPS_PTX_E4M3) return (x & fractions) == fractions ? NAN : 0;
  if (x & fractions) return NAN;
  return x >> (f.exponent + f.fraction) & 1 ? -INFINITY : INFINITY;
}

static void take_floats(const fragment *f, const void *const *in, pieces *to) {
  _Alignas(64) uint32_t bits[LANES];
  _Alignas(64) float m[LANES];
  _Alignas(64) int32_t e[LANES];
  to->any_special = false;
  for (unsigned r = 0; r < f->regs; r++)
    for (unsigned j = 0; j < f->per; j++) {
      unsigned at = f->reg[r] + j * f->step;
      slice(f, in[r], j, bits);
      uint32_t special = split_as(f->type, bits, LANES, m, e);
      for (unsigned l = 0; l < LANES; l++) {
        to->m[at + f->lane[l]] = m[l];
        to->e[at + f->lane[l]] = e[l];
      }
      if (!special) continue;
      if (!to->any_special) memset(to->special, 0, sizeof to->special);
      to->any_special = true;
      for (unsigned l = 0; l < LANES; l++)
        to->special[at + f->lane[l]] = special_value(f->type, bits[l]);
    }
}

/* --- a block of products ------------------------------------------------- */

typedef struct job {
  const matrix_site *s;
  const taking *t;
  pieces a, b;
  uint32_t c[MOST / 2];
} job;

/* Eight results of a row: products from `from` to `to` of the order, and an
 * accumulator cm × 2^ce. */
static void sum(const job *w, unsigned row, unsigned col, unsigned from,
                unsigned to, const float *cm, const int32_t *ce, double *v) {
  const uint8_t *pick = pick_of(w->s, w->t, row), *order = w->t->order;
  const float *am = w->a.m + row * w->s->k;
  const int32_t *ae = w->a.e + row * w->s->k;
  const float *bm = w->b.m + col;
  const int32_t *be = w->b.e + col;
  int32_t top[COLS], low[COLS] = {0}, high[COLS] = {0};
  unsigned n = w->s->n, middle = (from + to) / 2;
  EACH_COL { top[j] = ce[j]; }
  for (unsigned k = from; k < to; k++) {
    const int32_t *y = be + pick[order[k]] * n;
    int32_t x = ae[order[k]];
    EACH_COL { top[j] = x + y[j] > top[j] ? x + y[j] : top[j]; }
  }
#define ADD_TERM(sum, product, exponent)                                       \
  EACH_COL {                                                                   \
    int32_t distance = top[j] - (exponent);                                    \
    distance = distance > FAR ? FAR : distance;                                \
    float scale = f32_of((uint32_t)(127 + EXTRA - distance) << 23);            \
    sum[j] += (int32_t)((product)*scale);                                      \
  }
  for (unsigned k = from; k < middle; k++) {
    unsigned at = pick[order[k]] * n;
    float x = am[order[k]];
    int32_t e = ae[order[k]];
    ADD_TERM(low, x * bm[at + j], e + be[at + j])
  }
  for (unsigned k = middle; k < to; k++) {
    unsigned at = pick[order[k]] * n;
    float x = am[order[k]];
    int32_t e = ae[order[k]];
    ADD_TERM(high, x * bm[at + j], e + be[at + j])
  }
  ADD_TERM(low, cm[j], ce[j])
#undef ADD_TERM
  EACH_COL {
    int32_t e = (top[j] < -900 ? -900 : top[j]) - EXTRA + 1023;
    v[j] = ((double)low[j] + (double)high[j]) * f64_of((uint64_t)e << 52);
  }
}

/* What infinities and NaNs make of a result; 0 when there are none. */
static float special_sum(const job *w, unsigned row, unsigned col,
                         unsigned from, unsigned to, float accumulator) {
  const uint8_t *pick = pick_of(w->s, w->t, row), *order = w->t->order;
  float total = accumulator;
  for (unsigned k = from; k < to; k++) {
    unsigned x = row * w->s->k + order[k];
    unsigned y = pick[order[k]] * w->s->n + col;
    float p = w->a.any_special ? w->a.special[x] : 0;
    float q = w->b.any_special ? w->b.special[y] : 0;
    if (p == 0 && q == 0) continue;
    total += (p == 0 ? w->a.m[x] : p) * (q == 0 ? w->b.m[y] : q);
  }
  return total;
}

static uint32_t special_bits(float v, bool half) {
  if (v != v) return half ? 0x7fff : 0x7fffffff;
  uint32_t infinity = half ? 0x7c00 : 0x7f800000;
  return v < 0 ? infinity | (half ? 0x8000 : 0x80000000u) : infinity;
}

/* acc becomes the sum of it and the products. */
static void block(const job *w, unsigned row, unsigned col, unsigned from,
                  unsigned to, uint8_t acc_type, uint8_t type, uint32_t *acc) {
  float cm[COLS];
  int32_t ce[COLS];
  double v[COLS];
  uint32_t bits[COLS];
  bool half = type == TPS_PTX_F16;
  uint32_t special = split_as(acc_type, acc, COLS, cm, ce);
  sum(w, row, col, from, to, cm, ce, v);
  results(v, half, bits);
  if (special || w->a.any_special || w->b.any_special) EACH_COL {
      float x = special_sum(w, row, col + j, from, to,
                            special_value(acc_type, acc[j]));
      if (x != 0) bits[j] = special_bits(x, half);
    }
  EACH_COL { acc[j] = bits[j]; }
}

static void chained(const job *w, unsigned row, unsigned col, uint32_t *acc) {
  uint8_t type = w->s->d.type;
  uint32_t products[COLS] = {0};
  unsigned k = w->s->k;
  block(w, row, col, 0, k / 2, type, type, products);
  block(w, row, col, k / 2, k, type, type, products);
  EACH_COL {
    acc[j] = type == TPS_PTX_F16 ? add_f16(products[j], acc[j])
                                 : add_f32(products[j], acc[j]);
  }
}

static void halves(const job *w, unsigned row, unsigned col, uint32_t *acc) {
  uint8_t type = w->s->d.type;
  unsigned k = w->s->k;
  block(w, row, col, 0, k / 2, w->s->c.type, type, acc);
  block(w, row, col, k / 2, k, type, type, acc);
}

static void set_order(taking *t, const matrix_site *s) {
  unsigned k = s->k, half = k / 2;
  for (unsigned x = 0; x < k; x++) {
    unsigned at = x;
    if (s->sum == SUM_CHAINED) at = (x >> 2) * 2 + (x & 1) + (x & 2 ? half : 0);
    t->order[at] = (uint8_t)x;
    t->pick[0][x] = (uint8_t)x;
  }
}

/* --- sparse matrices ----------------------------------------------------- */

/* Four bits of metadata: of the c-th group of a row. Which lanes give them
 * depends on how many groups there are; the selector tells lanes of a row
 * apart where not all are needed. */
static unsigned group_bits(const matrix_site *s, const uint32_t *meta,
                           unsigned row, unsigned c, unsigned groups) {
  unsigned first = 4 * (row & 7), high = row >> 3;
  bool narrow = tps_sim_element_bits(s->a.type) <= 8;
  if (groups == 4) return meta[first + s->selector] >> (16 * high + 4 * c) & 15;
  if (groups == 8 && !narrow)
    return meta[first + 2 * (s->selector & 1) + c / 4] >>
               (16 * high + 4 * (c & 3)) &
           15;
  unsigned pair = groups == 8 ? s->selector & 1u : c / 8;
  return meta[first + 2 * pair + high] >> (4 * (c & 7)) & 15;
}

/* tf32: one of two; 4-bit integers: two pairs of four; else two of four. */
static void set_picks(taking *t, const matrix_site *s, const uint32_t *meta) {
  unsigned bits = tps_sim_element_bits(s->a.type);
  unsigned each = bits == 32 ? 1 : bits == 4 ? 4 : 2;
  unsigned groups = s->k / each;
  for (unsigned row = 0; row < 16; row++)
    for (unsigned c = 0; c < groups; c++) {
      unsigned g = group_bits(s, meta, row, c, groups);
      uint8_t *p = t->pick[row] + each * c;
      if (each == 1) {
        p[0] = (uint8_t)(2 * c + (g >> 3));
        continue;
      }
      for (unsigned x = 0; x < 2; x++) {
        unsigned at = g >> (2 * x) & 3;
        if (each == 2) p[x] = (uint8_t)(4 * c + at);
        else p[2 * x] = (uint8_t)(8 * c + 2 * at), p[2 * x + 1] = p[2 * x] + 1;
      }
    }
}

/* --- floats -------------------------------------------------------------- */

static void float_rows(job *w) {
  const matrix_site *s = w->s;
  for (unsigned row = 0; row < s->m; row++)
    for (unsigned col = 0; col < s->n; col += COLS) {
      uint32_t *acc = w->c + row * s->n + col;
      if (s->sum == SUM_CHAINED) chained(w, row, col, acc);
      else if (s->sum == SUM_HALVES) halves(w, row, col, acc);
      else block(w, row, col, 0, s->k, s->c.type, s->d.type, acc);
    }
}

static void multiply_floats(const matrix_site *s, const taking *t,
                            const void *const *in, void *const *out) {
  job w;
  if (VARIANT(tps_sim_multiply_usual)(s, t, in, out)) return;
  w.s = s, w.t = t;
  take_floats(&s->a, in, &w.a);
  take_floats(&s->b, in + s->b_at, &w.b);
  take_bits(&s->c, in + s->c_at, w.c);
  float_rows(&w);
  give_bits(&s->d, w.c, out);
}

/* m8n8k4 with f16: all sums in f32. */
static void multiply_f32(const matrix_site *s, const void *const *in,
                         void *const *out) {
  uint32_t a[128], b[128], c[256];
  take_bits(&s->a, in, a);
  take_bits(&s->b, in + s->b_at, b);
  take_bits(&s->c, in + s->c_at, c);
  for (unsigned at = 0; at < 256; at++) {
    const uint32_t *x = a + (at >> 6) * 32 + (at >> 3 & 7) * 4;
    const uint32_t *y = b + (at >> 6) * 32 + (at & 7);
    float total = 0;
    for (unsigned k = 0; k < 4; k++) total += f16_to(x[k]) * f16_to(y[8 * k]);
    float acc = s->c.type == TPS_PTX_F16 ? f16_to(c[at]) : f32_of(c[at]);
    total = canon(total + acc);
    if (s->d.type == TPS_PTX_F32) c[at] = bits_of(total);
    else c[at] = total == total ? round_to_f16((double)total) : 0x7fff;
  }
  give_bits(&s->d, c, out);
}

static void take_f64(const fragment *f, const void *const *in, double *to) {
  for (unsigned r = 0; r < f->regs; r++) {
    const double *row = in[r];
    for (unsigned l = 0; l < LANES; l++) to[f->reg[r] + f->lane[l]] = row[l];
  }
}

static void multiply_f64(const matrix_site *s, const void *const *in,
                         void *const *out) {
  double a[256], b[128], c[128];
  take_f64(&s->a, in, a);
  take_f64(&s->b, in + s->b_at, b);
  take_f64(&s->c, in + s->c_at, c);
  for (unsigned row = 0; row < s->m; row++)
    for (unsigned k = 0; k < s->k; k++) EACH_COL {
        double *t = c + row * COLS + j;
        *t = fma(a[row * s->k + k], b[k * COLS + j], *t);
      }
  for (unsigned r = 0; r < s->d.regs; r++) {
    double *d = out[r];
    for (unsigned l = 0; l < LANES; l++) d[l] = c[s->d.reg[r] + s->d.lane[l]];
  }
}

void VARIANT(tps_sim_multiply)(const matrix_site *s, const void *const *in,
                               void *const *out);
void VARIANT(tps_sim_multiply)(const matrix_site *s, const void *const *in,
                               void *const *out) {
  taking t;
  switch (s->sum) {
  case SUM_F32: multiply_f32(s, in, out); return;
  case SUM_F64: multiply_f64(s, in, out); return;
  case SUM_BITS: VARIANT(tps_sim_multiply_bits)(s, in, out); return;
  default: break;
  }
  set_order(&t, s);
  if (s->sparse) set_picks(&t, s, in[s->meta_at]);
  if (s->sum == SUM_INTEGER) VARIANT(tps_sim_multiply_integers)(s, &t, in, out);
  else multiply_floats(s, &t, in, out);
}
