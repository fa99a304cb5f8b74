/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Matrices spread over a warp: which element each register of each lane holds,
 * and what a matrix instruction does with them. All layouts are sums: of a
 * part that the lane tells, one that the register tells, and a step for each
 * further element in the register. The decoder fills a site once, the handler
 * follows it.
 */
#ifndef TPS_SIM_ENGINE_FRAGMENT_H
#define TPS_SIM_ENGINE_FRAGMENT_H

#include "sim/engine_core.h"

enum {
  FRAGMENT_REGS = 8, /* registers of a fragment, at the most */
  MATRIX_INS = 24,   /* rows that an instruction reads */
  MATRIX_OUTS = 8
};

/* A fragment of a matrix that is kept row after row, `cols` elements each. */
typedef struct fragment {
  uint8_t type; /* tps_ptx_type */
  uint8_t regs; /* with elements of their own */
  uint8_t all;  /* registers, those included that hold copies */
  uint8_t per;  /* elements in a register */
  uint16_t rows, cols;
  uint16_t step;
  uint16_t lane[LANES], reg[FRAGMENT_REGS];
} fragment;

typedef enum matrix_what {
  MATRIX_MULTIPLY,
  MATRIX_LOAD,       /* wmma.load */
  MATRIX_STORE,      /* wmma.store */
  MATRIX_ROWS_LOAD,  /* ldmatrix */
  MATRIX_ROWS_STORE, /* stmatrix */
  MATRIX_TRANSPOSE   /* movmatrix */
} matrix_what;

/* How products are summed; see engine_multiply.c. */
typedef enum matrix_sum {
  SUM_BLOCK,   /* all products and the accumulator at once */
  SUM_HALVES,  /* the same in two halves of k, one after the other */
  SUM_CHAINED, /* two blocks of products, then the accumulator */
  SUM_F32,     /* one f32 addition after another, the accumulator last */
  SUM_F64,     /* a chain of fma that begins with the accumulator */
  SUM_INTEGER,
  SUM_BITS
} matrix_sum;

typedef struct matrix_site {
  uint8_t what;   /* matrix_what */
  uint8_t sum;    /* matrix_sum */
  uint8_t copies; /* matrices side by side: 4 of m8n8k4 with f16, else 1 */
  uint8_t selector;
  bool sparse, saturate, conjunction; /* .and of single bits */
  bool transposed;     /* wmma: by columns in memory; ldmatrix: .trans */
  uint16_t m, n, k;    /* k counts what a row of A holds: half, if sparse */
  fragment a, b, c, d; /* loads and stores use d */
  uint8_t ins, outs;
  uint8_t b_at, c_at, meta_at; /* of the sources; those of A come first */
  uint32_t in[MATRIX_INS], out[MATRIX_OUTS]; /* operands */
  bool wide_in, wide_out; /* rows of 64 bits; of loads, the addresses */
  int64_t offset;         /* of the address */
  uint32_t key;           /* equal for equal operations */
} matrix_site;

/* --- engine_fragment.c --------------------------------------------------- */

unsigned tps_sim_element_bits(uint8_t type);
/* Layouts of mma and wmma. `swapped`: m8n32k16, made as the transpose of
 * m32n8k16. */
void tps_sim_fragment_a(fragment *f, uint8_t type, unsigned m, unsigned k);
void tps_sim_fragment_b(fragment *f, uint8_t type, unsigned n, unsigned k,
                        bool swapped);
void tps_sim_fragment_c(fragment *f, uint8_t type, unsigned m, unsigned n);
/* mma.m8n8k4 with f16: four matrices, each of eight lanes. */
void tps_sim_fragment_quad(matrix_site *s, bool a_by_column, bool b_by_column);
/* Registers of wmma's f16 multiplicands: always eight, with copies. */
void tps_sim_fragment_repeat(fragment *f, unsigned all);

/* --- engine_matrix.c ----------------------------------------------------- */

/* Executes what is parked under a key and mask: all lanes are there. */
void tps_sim_matrix_meet(engine *e, warp *w, uint32_t key, uint32_t member);

/* --- engine_exchange.c --------------------------------------------------- */

/* Parks lanes of the running group until all of the warp are there. */
const insn *tps_sim_park(engine *e, const insn *i, uint32_t mask);

/* --- engine_multiply.c --------------------------------------------------- */

/* D = A × B + C of whole rows; `out` may be among `in`. */
typedef void multiplier(const matrix_site *s, const void *const *in,
                        void *const *out);
/* The processor's own; set with the table of handlers. */
extern multiplier *tps_sim_multiply;

#endif
