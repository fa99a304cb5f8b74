/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the files of matrix products share: elements of fragments, where the
 * rows of a sparse product lie, and how sums become results. Built once for
 * each processor level.
 */
#ifndef TPS_SIM_ENGINE_MULTIPLY_H
#define TPS_SIM_ENGINE_MULTIPLY_H

#include "sim/engine_fragment.h"
#include "sim/engine_lanes.h"
#include "sim/engine_number.h"

enum {
  MOST = 512,      /* elements of a matrix */
  COLS = 8,        /* taken together */
  NOWHERE = -2000, /* exponent of a zero: never the largest */
  EXTRA = 25       /* bits kept below the largest exponent */
};

#define EACH_COL for (unsigned j = 0; j < COLS; j++)

/* The same in vectors of compilers, where these do not find them. */
typedef float floats __attribute__((vector_size(4 * COLS)));
typedef int32_t words __attribute__((vector_size(4 * COLS)));
typedef double doubles __attribute__((vector_size(8 * COLS)));
typedef int64_t longs __attribute__((vector_size(8 * COLS)));

#define GET(type, name, from)                                                  \
  type name;                                                                   \
  memcpy(&(name), (from), sizeof(name))

/* How products are taken. */
typedef struct taking {
  uint8_t order[64];    /* in which A's elements of a row are taken */
  uint8_t pick[16][64]; /* the row of B that belongs to each; unless A is
                         * sparse that of row 0 serves all */
} taking;

static inline const uint8_t *pick_of(const matrix_site *s, const taking *t,
                                     unsigned row) {
  return t->pick[s->sparse ? row : 0];
}

/* --- elements ------------------------------------------------------------ */

/* The j-th elements of all lanes' registers. */
static inline void slice(const fragment *f, const uint32_t *row, unsigned j,
                         uint32_t *to) {
  unsigned bits = f->per == 1 ? 32 : 32u / f->per;
  uint32_t mask = bits == 32 ? FULL : (1u << bits) - 1;
  for (unsigned l = 0; l < LANES; l++) to[l] = row[l] >> (j * bits & 31) & mask;
}

/* Copies a piece of each of eight lines, which lie `line` apart. */
static inline __attribute__((always_inline)) void
place_pieces(const uint32_t *from, unsigned piece, unsigned line, unsigned step,
             uint32_t *to) {
  for (unsigned g = 0; g < 8; g++)
    for (unsigned x = 0; x < piece; x++)
      to[g * line + x * step] = from[g * piece + x];
}

/* Puts the elements of a register, as they follow one another in the lanes, into
 * a matrix. They are pieces of eight rows of A, or columns of B. */
static inline void place(const fragment *f, unsigned r, const uint32_t *from,
                         uint32_t *to) {
  unsigned piece = 4u * f->per, line = f->lane[4], step = f->step;
  to += f->reg[r];
  if (step == 1) {
    for (unsigned g = 0; g < 8; g++)
      for (unsigned x = 0; x < piece; x += 4)
        memcpy(to + g * line + x, from + g * piece + x, 4 * sizeof *to);
  } else if (step == 8 && piece == 8) {
    place_pieces(from, 8, 1, 8, to);
  } else if (step == 8 && piece == 16) {
    place_pieces(from, 16, 1, 8, to);
  } else if (step == 8 && piece == 32) {
    place_pieces(from, 32, 1, 8, to);
  } else {
    place_pieces(from, piece, line, step, to);
  }
}

/* Registers hold pieces of eight rows of a matrix, eight neighbours each: an
 * f16 accumulator's one does, two of other kinds by turns. */
static inline bool is_by_rows(const fragment *f) {
  return f->step == 1 && f->lane[1] == 2 && (f->per == 2 || f->reg[1] == 1);
}

static inline void take_rows(const fragment *f, const void *const *in,
                             uint32_t *to) {
  uint32_t t[2 * LANES];
  for (unsigned r = 0; r < f->regs; r += 2u / f->per) {
    const uint32_t *even = in[r], *odd = f->per == 2 ? even : in[r + 1];
    for (unsigned l = 0; l < LANES; l++) {
      t[2 * l] = f->per == 2 ? even[l] & 0xffff : even[l];
      t[2 * l + 1] = f->per == 2 ? odd[l] >> 16 : odd[l];
    }
    for (unsigned g = 0; g < 8; g++)
      memcpy(to + f->reg[r] + g * f->lane[4], t + 8 * g, 8 * sizeof *t);
  }
}

static inline void give_rows(const fragment *f, const uint32_t *from,
                             void *const *out) {
  uint32_t t[2 * LANES];
  for (unsigned r = 0; r < f->regs; r += 2u / f->per) {
    uint32_t *even = out[r];
    for (unsigned g = 0; g < 8; g++)
      memcpy(t + 8 * g, from + f->reg[r] + g * f->lane[4], 8 * sizeof *t);
    if (f->per == 2) {
      for (unsigned l = 0; l < LANES; l++)
        even[l] = t[2 * l] | t[2 * l + 1] << 16;
      continue;
    }
    uint32_t *odd = out[r + 1];
    for (unsigned l = 0; l < LANES; l++) even[l] = t[2 * l];
    for (unsigned l = 0; l < LANES; l++) odd[l] = t[2 * l + 1];
  }
}

/* Bits of an accumulator. */
static inline void take_bits(const fragment *f, const void *const *in,
                             uint32_t *to) {
  _Alignas(64) uint32_t bits[LANES];
  if (is_by_rows(f)) {
    take_rows(f, in, to);
    return;
  }
  for (unsigned r = 0; r < f->regs; r++)
    for (unsigned j = 0; j < f->per; j++) {
      slice(f, in[r], j, bits);
      uint32_t *at = to + f->reg[r] + j * f->step;
      for (unsigned l = 0; l < LANES; l++) at[f->lane[l]] = bits[l];
    }
}

static inline void give_bits(const fragment *f, const uint32_t *from,
                             void *const *out) {
  if (is_by_rows(f)) {
    give_rows(f, from, out);
    return;
  }
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

static inline void results(const double *v, bool half, uint32_t *bits) {
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

/* Ordinary additions. */
static inline uint32_t add_f32(uint32_t x, uint32_t y) {
  return bits_of(canon(f32_of(x) + f32_of(y)));
}
static inline uint32_t add_f16(uint32_t x, uint32_t y) {
  double v = (double)f16_to(x) + (double)f16_to(y);
  return v == v ? round_to_f16(v) : 0x7fff;
}

/* --- engine_multiply_usual.c --------------------------------------------- */

/* The usual float products: false, and nothing done, when elements are not
 * finite or too far apart for it. */
bool VARIANT(tps_sim_multiply_usual)(const matrix_site *s, const taking *t,
                                     const void *const *in, void *const *out);

/* --- engine_multiply_integer.c ------------------------------------------- */

void VARIANT(tps_sim_multiply_integers)(const matrix_site *s, const taking *t,
                                        const void *const *in,
                                        void *const *out);
void VARIANT(tps_sim_multiply_bits)(const matrix_site *s, const void *const *in,
                                    void *const *out);

#endif
