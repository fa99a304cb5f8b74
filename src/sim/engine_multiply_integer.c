/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Matrix products of integers and of single bits. Built once for each processor
 * level.
 */
#include "sim/engine_multiply.h"

/* The elements of a register of all lanes, one after the other. */
static void widen_bytes(const uint32_t *row, bool sign, uint32_t *to) {
  uint8_t q[4 * LANES];
  memcpy(q, row, sizeof q);
  for (unsigned x = 0; x < 4 * LANES; x++)
    to[x] = sign ? (uint32_t)(int8_t)q[x] : q[x];
}

static void widen_nibbles(const uint32_t *row, bool sign, uint32_t *to) {
  uint8_t q[4 * LANES];
  uint32_t flip = sign ? 8 : 0;
  memcpy(q, row, sizeof q);
  for (unsigned x = 0; x < 4 * LANES; x++) {
    to[2 * x] = ((q[x] & 15u) ^ flip) - flip;
    to[2 * x + 1] = ((uint32_t)(q[x] >> 4) ^ flip) - flip;
  }
}

static void take_integers(const fragment *f, const void *const *in,
                          uint32_t *to) {
  _Alignas(64) uint32_t t[8 * LANES];
  bool sign = f->type == TPS_PTX_S8 || f->type == TPS_PTX_S4;
  for (unsigned r = 0; r < f->regs; r++) {
    if (f->per == 4) widen_bytes(in[r], sign, t);
    else widen_nibbles(in[r], sign, t);
    place(f, r, t, to);
  }
}

static uint32_t add_clamped(uint32_t x, int32_t y) {
  int64_t t = (int64_t)(int32_t)x + y;
  t = t > INT32_MAX ? INT32_MAX : t < INT32_MIN ? INT32_MIN : t;
  return (uint32_t)(int32_t)t;
}

typedef struct whole {
  _Alignas(64) uint32_t a[2048];
  _Alignas(64) uint32_t b[1024];
  uint32_t c[MOST / 2];
} whole;

static void integer_row(const matrix_site *s, const uint8_t *pick,
                        const whole *x, unsigned row, unsigned col,
                        uint32_t *acc) {
  const uint32_t *factors = x->a + row * s->k, *b = x->b + col;
  words total = {0};
  for (unsigned k = 0; k < s->k; k++) {
    GET(words, y, b + (pick ? pick[k] : k) * s->n);
    total += (int32_t)factors[k] * y;
  }
  int32_t sums[COLS];
  memcpy(sums, &total, sizeof sums);
  if (s->saturate) EACH_COL {
      acc[j] = add_clamped(acc[j], sums[j]);
    }
  else EACH_COL {
      acc[j] += (uint32_t)sums[j];
    }
}

void VARIANT(tps_sim_multiply_integers)(const matrix_site *s, const taking *t,
                                        const void *const *in,
                                        void *const *out) {
  whole x;
  take_integers(&s->a, in, x.a);
  take_integers(&s->b, in + s->b_at, x.b);
  take_bits(&s->c, in + s->c_at, x.c);
  for (unsigned row = 0; row < s->m; row++)
    for (unsigned col = 0; col < s->n; col += COLS)
      integer_row(s, s->sparse ? t->pick[row] : NULL, &x, row, col,
                  x.c + row * s->n + col);
  give_bits(&s->d, x.c, out);
}

void VARIANT(tps_sim_multiply_bits)(const matrix_site *s, const void *const *in,
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
