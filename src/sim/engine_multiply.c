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
 * f16 result rounded to the nearest. All of k is one such block; of wmma with tf32 each half. fp8 is the
 * exception: first the even pairs of k, then the odd ones, each a block, and
 * the accumulator is added by an ordinary addition at last. f64 is a chain of
 * fma. m8n8k4 of f16 is a chain of f32 additions, the accumulator last; its f16
 * results are the one thing here that is not always equal (3 of 38,400 differed
 * by a unit of the last place).
 *
 * An element is a factor m in (-2, 2) and an exponent e. Built once for each
 * processor level.
 */
#include "sim/engine_fragment.h"
#include "sim/engine_lanes.h"
#include "sim/engine_number.h"

enum {
  MOST = 512,      /* elements of a matrix */
  COLS = 8,        /* taken together */
  NOWHERE = -2000, /* exponent of a zero: never the largest */
  EXTRA = 25,      /* bits kept below the largest exponent */
  FAR = 60         /* from here on nothing of a product is left */
};

#define EACH_COL for (unsigned j = 0; j < COLS; j++)

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

/* The j-th elements of all lanes' registers. */
static void slice(const fragment *f, const uint32_t *row, unsigned j,
                  uint32_t *to) {
  unsigned bits = f->per == 1 ? 32 : 32u / f->per;
  uint32_t mask = bits == 32 ? FULL : (1u << bits) - 1;
  for (unsigned l = 0; l < LANES; l++) to[l] = row[l] >> (j * bits & 31) & mask;
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

/* Bits of an accumulator. */
static void take_bits(const fragment *f, const void *const *in, uint32_t *to) {
  _Alignas(64) uint32_t bits[LANES];
  for (unsigned r = 0; r < f->regs; r++)
    for (unsigned j = 0; j < f->per; j++) {
      slice(f, in[r], j, bits);
      uint32_t *at = to + f->reg[r] + j * f->step;
      for (unsigned l = 0; l < LANES; l++) at[f->lane[l]] = bits[l];
    }
}

static void give_bits(const fragment *f, const uint32_t *from,
                      void *const *out) {
  for (unsigned r = 0; r < f->regs; r++) {
    uint32_t *d = out[r];
    const uint32_t *at = from + f->reg[r];
    if (f->per == 2)
      for (unsigned l = 0; l < LANES; l++)
        d[l] = at[f->lane[l]] | at[f->lane[l] + f->step] << 16;
    else
      for (unsigned l = 0; l < LANES; l++) d[l] = at[f->lane[l]];
  }
}

/* --- results of a block -------------------------------------------------- */

/* Cut to f32; 2^128 and beyond are infinite. */
static inline uint32_t cut_to_f32(double v) {
  if (fabs(v) >= 0x1p128) return v < 0 ? 0xff800000u : 0x7f800000u;
  if (fabs(v) < 0x1p-126) return narrow(v, 23, -126, ROUND_RZ, 0x7fffffffu);
  return bits_of((float)f64_of(bits_of64(v) & ~0x1fffffffull));
}

/* Rounded to f16. By way of an f32 that is odd when anything was lost. */
static inline uint32_t round_to_f16(double v) {
  uint64_t u = bits_of64(v), kept = u & ~0x1fffffffull;
  kept |= (uint64_t)(u != kept) << 29;
  uint32_t x = bits_of((float)f64_of(kept));
  uint32_t sign = x >> 16 & 0x8000u, y = x & 0x7fffffffu;
  uint32_t normal = (y - 0x38000000u + 0xfffu + (y >> 13 & 1)) >> 13;
  uint32_t small = bits_of(f32_of(y) + 0.5f) - 0x3f000000u;
  uint32_t r = y < 0x38800000u ? small : y < 0x477ff000u ? normal : 0x7c00u;
  return sign | r;
}

static void results(const double *v, bool half, uint32_t *bits) {
  uint32_t usual = 1;
  EACH_COL { /* f32, when all are normal */
    double size = fabs(v[j]);
    usual &= (size >= 0x1p-126 || size == 0) && size < 0x1p127;
  }
  if (half) {
    EACH_COL { bits[j] = round_to_f16(v[j]); }
  } else if (usual) {
    EACH_COL {
      bits[j] = bits_of((float)f64_of(bits_of64(v[j]) & ~0x1fffffffull));
    }
  } else {
    EACH_COL { bits[j] = cut_to_f32(v[j]); }
  }
}

/* --- a block of products ------------------------------------------------- */

typedef struct job {
  const matrix_site *s;
  pieces a, b;
  uint32_t c[MOST / 2];
  uint8_t order[64];    /* in which A's elements of a row are taken */
  uint8_t pick[16][64]; /* the row of B that belongs to each */
} job;

/* Eight results of a row: products from `from` to `to` of the order, and an
 * accumulator cm × 2^ce. */
static void sum(const job *w, unsigned row, unsigned col, unsigned from,
                unsigned to, const float *cm, const int32_t *ce, double *v) {
  const uint8_t *pick = w->pick[w->s->sparse ? row : 0];
  const float *am = w->a.m + row * w->s->k;
  const int32_t *ae = w->a.e + row * w->s->k;
  const float *bm = w->b.m + col;
  const int32_t *be = w->b.e + col;
  int32_t top[COLS], low[COLS] = {0}, high[COLS] = {0};
  unsigned n = w->s->n, middle = (from + to) / 2;
  EACH_COL { top[j] = ce[j]; }
  for (unsigned k = from; k < to; k++) {
    const int32_t *y = be + pick[w->order[k]] * n;
    int32_t x = ae[w->order[k]];
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
    unsigned at = pick[w->order[k]] * n;
    float x = am[w->order[k]];
    int32_t e = ae[w->order[k]];
    ADD_TERM(low, x * bm[at + j], e + be[at + j])
  }
  for (unsigned k = middle; k < to; k++) {
    unsigned at = pick[w->order[k]] * n;
    float x = am[w->order[k]];
    int32_t e = ae[w->order[k]];
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
  const uint8_t *pick = w->pick[w->s->sparse ? row : 0];
  float total = accumulator;
  for (unsigned k = from; k < to; k++) {
    unsigned x = row * w->s->k + w->order[k];
    unsigned y = pick[w->order[k]] * w->s->n + col;
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

static inline uint32_t add_f32(uint32_t x, uint32_t y) {
  return bits_of(canon(f32_of(x) + f32_of(y)));
}
static inline uint32_t add_f16(uint32_t x, uint32_t y) {
  double v = (double)f16_to(x) + (double)f16_to(y);
  return v == v ? round_to_f16(v) : 0x7fff;
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

static void set_order(job *w) {
  unsigned k = w->s->k, half = k / 2;
  for (unsigned x = 0; x < k; x++) {
    unsigned at = x;
    if (w->s->sum == SUM_CHAINED)
      at = (x >> 2) * 2 + (x & 1) + (x & 2 ? half : 0);
    w->order[at] = (uint8_t)x;
    w->pick[0][x] = (uint8_t)x;
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
static void set_picks(job *w, const uint32_t *meta) {
  const matrix_site *s = w->s;
  unsigned bits = tps_sim_element_bits(s->a.type);
  unsigned each = bits == 32 ? 1 : bits == 4 ? 4 : 2;
  unsigned groups = s->k / each;
  for (unsigned row = 0; row < 16; row++)
    for (unsigned c = 0; c < groups; c++) {
      unsigned g = group_bits(s, meta, row, c, groups);
      uint8_t *p = w->pick[row] + each * c;
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

static void multiply_floats(const matrix_site *s, const void *const *in,
                            void *const *out) {
  job w;
  w.s = s;
  set_order(&w);
  if (s->sparse) set_picks(&w, in[s->meta_at]);
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

/* --- integers ------------------------------------------------------------ */

static void take_integers(const fragment *f, const void *const *in,
                          int32_t *to) {
  _Alignas(64) uint32_t bits[LANES];
  unsigned spare = 32 - tps_sim_element_bits(f->type);
  bool sign = f->type == TPS_PTX_S8 || f->type == TPS_PTX_S4;
  for (unsigned r = 0; r < f->regs; r++)
    for (unsigned j = 0; j < f->per; j++) {
      slice(f, in[r], j, bits);
      int32_t *at = to + f->reg[r] + j * f->step;
      for (unsigned l = 0; l < LANES; l++)
        at[f->lane[l]] =
            sign ? (int32_t)(bits[l] << spare) >> spare : (int32_t)bits[l];
    }
}

static uint32_t add_clamped(uint32_t x, int32_t y) {
  int64_t t = (int64_t)(int32_t)x + y;
  t = t > INT32_MAX ? INT32_MAX : t < INT32_MIN ? INT32_MIN : t;
  return (uint32_t)(int32_t)t;
}

typedef struct whole {
  _Alignas(64) int32_t a[2048];
  _Alignas(64) int32_t b[1024];
  uint32_t c[MOST / 2];
} whole;

static void integer_row(const job *w, const whole *x, unsigned row,
                        unsigned col, uint32_t *acc) {
  const matrix_site *s = w->s;
  const uint8_t *pick = w->pick[s->sparse ? row : 0];
  int32_t total[COLS] = {0};
  for (unsigned k = 0; k < s->k; k++) {
    int32_t factor = x->a[row * s->k + k];
    const int32_t *b = x->b + pick[k] * s->n + col;
    EACH_COL { total[j] += factor * b[j]; }
  }
  if (s->saturate) EACH_COL {
      acc[j] = add_clamped(acc[j], total[j]);
    }
  else EACH_COL {
      acc[j] += (uint32_t)total[j];
    }
}

static void multiply_integers(const matrix_site *s, const void *const *in,
                              void *const *out) {
  whole x;
  job w;
  w.s = s;
  set_order(&w);
  if (s->sparse) set_picks(&w, in[s->meta_at]);
  take_integers(&s->a, in, x.a);
  take_integers(&s->b, in + s->b_at, x.b);
  take_bits(&s->c, in + s->c_at, x.c);
  for (unsigned row = 0; row < s->m; row++)
    for (unsigned col = 0; col < s->n; col += COLS)
      integer_row(&w, &x, row, col, x.c + row * s->n + col);
  give_bits(&s->d, x.c, out);
}

static void multiply_bits(const matrix_site *s, const void *const *in,
                          void *const *out) {
  uint32_t a[128], b[64], c[128];
  unsigned words = s->k / 32u;
  take_bits(&s->a, in, a);
  take_bits(&s->b, in + s->b_at, b);
  take_bits(&s->c, in + s->c_at, c);
  for (unsigned row = 0; row < s->m; row++)
    for (unsigned k = 0; k < words; k++) EACH_COL {
        uint32_t x = a[row * words + k], y = b[k * COLS + j];
        uint32_t both = s->conjunction ? x & y : x ^ y;
        c[row * COLS + j] += (uint32_t)__builtin_popcount(both);
      }
  give_bits(&s->d, c, out);
}

void VARIANT(tps_sim_multiply)(const matrix_site *s, const void *const *in,
                               void *const *out);
void VARIANT(tps_sim_multiply)(const matrix_site *s, const void *const *in,
                               void *const *out) {
  switch (s->sum) {
  case SUM_F32: multiply_f32(s, in, out); break;
  case SUM_F64: multiply_f64(s, in, out); break;
  case SUM_INTEGER: multiply_integers(s, in, out); break;
  case SUM_BITS: multiply_bits(s, in, out); break;
  default: multiply_floats(s, in, out); break;
  }
}
