/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of matrix instructions: which forms there are, on which targets, and
 * the site of each instruction, on which its layouts and operands stand.
 */
#include <stddef.h>
#include <stdlib.h>

#include "sim/engine_decode.h"
#include "sim/engine_fragment.h"

/* --- shapes -------------------------------------------------------------- */

typedef struct shape {
  uint16_t mod;
  uint8_t m, n;
  uint16_t k;
} shape;

static const shape shapes[] = {
    {TPS_PTX_M_M8N8K4, 8, 8, 4},       {TPS_PTX_M_M8N8K16, 8, 8, 16},
    {TPS_PTX_M_M8N8K32, 8, 8, 32},     {TPS_PTX_M_M8N8K128, 8, 8, 128},
    {TPS_PTX_M_M16N8K4, 16, 8, 4},     {TPS_PTX_M_M16N8K8, 16, 8, 8},
    {TPS_PTX_M_M16N8K16, 16, 8, 16},   {TPS_PTX_M_M16N8K32, 16, 8, 32},
    {TPS_PTX_M_M16N8K64, 16, 8, 64},   {TPS_PTX_M_M16N8K128, 16, 8, 128},
    {TPS_PTX_M_M16N8K256, 16, 8, 256}, {TPS_PTX_M_M16N16K8, 16, 16, 8},
    {TPS_PTX_M_M16N16K16, 16, 16, 16}, {TPS_PTX_M_M32N8K16, 32, 8, 16},
    {TPS_PTX_M_M8N32K16, 8, 32, 16},
};

static const shape *shape_of(const builder *b) {
  for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++)
    if (has(b, (tps_ptx_mod)shapes[k].mod)) return &shapes[k];
  return NULL;
}

/* --- forms --------------------------------------------------------------- */

/* Kinds of multiplicands. */
typedef enum kind {
  NONE,
  HALF,
  BRAIN,
  SINGLE,
  EIGHTH,
  DOUBLE,
  I8,
  I4,
  I1
} kind;

static kind kind_of(uint8_t type) {
  switch (type) {
  case TPS_PTX_F16: return HALF;
  case TPS_PTX_BF16: return BRAIN;
  case TPS_PTX_TF32: return SINGLE;
  case TPS_PTX_E4M3:
  case TPS_PTX_E5M2: return EIGHTH;
  case TPS_PTX_F64: return DOUBLE;
  case TPS_PTX_S8:
  case TPS_PTX_U8: return I8;
  case TPS_PTX_S4:
  case TPS_PTX_U4: return I4;
  case TPS_PTX_B1: return I1;
  default: return NONE;
  }
}

enum { DENSE = 1, SPARSE = 2, WMMA = 4 };

typedef struct form {
  uint16_t shape; /* modifier */
  uint8_t kind, use, target;
} form;

/* clang-format off */
static const form forms[] = {
    {TPS_PTX_M_M8N8K4, HALF, DENSE, 70}, {TPS_PTX_M_M16N8K8, HALF, DENSE, 75},
    {TPS_PTX_M_M16N8K16, HALF, DENSE, 80},
    {TPS_PTX_M_M16N8K8, BRAIN, DENSE, 80},
    {TPS_PTX_M_M16N8K16, BRAIN, DENSE, 80},
    {TPS_PTX_M_M16N8K4, SINGLE, DENSE, 80},
    {TPS_PTX_M_M16N8K8, SINGLE, DENSE, 80},
    {TPS_PTX_M_M16N8K16, EIGHTH, DENSE, 89},
    {TPS_PTX_M_M16N8K32, EIGHTH, DENSE, 89},
    {TPS_PTX_M_M8N8K4, DOUBLE, DENSE, 80},
    {TPS_PTX_M_M16N8K4, DOUBLE, DENSE, 90},
    {TPS_PTX_M_M16N8K8, DOUBLE, DENSE, 90},
    {TPS_PTX_M_M16N8K16, DOUBLE, DENSE, 90},
    {TPS_PTX_M_M8N8K16, I8, DENSE, 75}, {TPS_PTX_M_M16N8K16, I8, DENSE, 80},
    {TPS_PTX_M_M16N8K32, I8, DENSE, 80},
    {TPS_PTX_M_M8N8K32, I4, DENSE, 75}, {TPS_PTX_M_M16N8K32, I4, DENSE, 80},
    {TPS_PTX_M_M16N8K64, I4, DENSE, 80},
    {TPS_PTX_M_M8N8K128, I1, DENSE, 75}, {TPS_PTX_M_M16N8K128, I1, DENSE, 80},
    {TPS_PTX_M_M16N8K256, I1, DENSE, 80},

    {TPS_PTX_M_M16N8K16, HALF, SPARSE, 80},
    {TPS_PTX_M_M16N8K32, HALF, SPARSE, 80},
    {TPS_PTX_M_M16N8K16, BRAIN, SPARSE, 80},
    {TPS_PTX_M_M16N8K32, BRAIN, SPARSE, 80},
    {TPS_PTX_M_M16N8K8, SINGLE, SPARSE, 80},
    {TPS_PTX_M_M16N8K16, SINGLE, SPARSE, 80},
    {TPS_PTX_M_M16N8K64, EIGHTH, SPARSE, 89},
    {TPS_PTX_M_M16N8K32, I8, SPARSE, 80}, {TPS_PTX_M_M16N8K64, I8, SPARSE, 80},
    {TPS_PTX_M_M16N8K64, I4, SPARSE, 80},
    {TPS_PTX_M_M16N8K128, I4, SPARSE, 80},

    {TPS_PTX_M_M16N16K16, HALF, WMMA, 70},
    {TPS_PTX_M_M32N8K16, HALF, WMMA, 70}, {TPS_PTX_M_M8N32K16, HALF, WMMA, 70},
    {TPS_PTX_M_M16N16K16, BRAIN, WMMA, 80},
    {TPS_PTX_M_M32N8K16, BRAIN, WMMA, 80},
    {TPS_PTX_M_M8N32K16, BRAIN, WMMA, 80},
    {TPS_PTX_M_M16N16K8, SINGLE, WMMA, 80},
    {TPS_PTX_M_M8N8K4, DOUBLE, WMMA, 80},
    {TPS_PTX_M_M16N16K16, I8, WMMA, 72}, {TPS_PTX_M_M32N8K16, I8, WMMA, 72},
    {TPS_PTX_M_M8N32K16, I8, WMMA, 72},
    {TPS_PTX_M_M8N8K32, I4, WMMA, 75}, {TPS_PTX_M_M8N8K128, I1, WMMA, 75},
};
/* clang-format on */

static const form *form_of(uint16_t shape, kind kind, uint8_t use) {
  for (unsigned k = 0; k < sizeof forms / sizeof *forms; k++)
    if (forms[k].shape == shape && forms[k].kind == kind && forms[k].use == use)
      return &forms[k];
  return NULL;
}

/* Accumulators that go with multiplicands: d, then c. */
static bool accumulators(kind kind, uint8_t use, uint16_t shape, uint8_t d,
                         uint8_t c) {
  bool float_d = d == TPS_PTX_F32 || d == TPS_PTX_F16;
  bool float_c = c == TPS_PTX_F32 || c == TPS_PTX_F16;
  switch (kind) {
  case HALF:
    if (use == WMMA) return float_d && float_c;
    if (shape == TPS_PTX_M_M8N8K4)
      return float_d && float_c && (d == c || d == TPS_PTX_F32);
    return float_d && d == c;
  case EIGHTH: return float_d && d == c;
  case BRAIN:
  case SINGLE: return d == TPS_PTX_F32 && c == TPS_PTX_F32;
  case DOUBLE: return d == TPS_PTX_F64 && c == TPS_PTX_F64;
  default: return d == TPS_PTX_S32 && c == TPS_PTX_S32;
  }
}

/* --- operands of a site -------------------------------------------------- */

static matrix_site *new_site(builder *b, matrix_what what) {
  matrix_site *s = calloc(1, sizeof *s);
  if (!s) tps_sim_no_memory(b);
  else s->what = (uint8_t)what, s->copies = 1;
  return s;
}

static const ptx_opd *member(const builder *b, const ptx_opd *o, unsigned k) {
  return is_group(o) ? part_of(b, o, k) : o;
}
static unsigned members(const ptx_opd *o) { return is_group(o) ? o->count : 1; }

static void add_source(builder *b, matrix_site *s, const ptx_opd *o,
                       uint8_t type) {
  s->in[s->ins++] = tps_sim_source(b, o, type);
}

/* The registers of a fragment. False when there are not as many as it has. */
static bool add_fragment(builder *b, matrix_site *s, const ptx_opd *o,
                         const fragment *f) {
  uint8_t type = f->type == TPS_PTX_F64 ? TPS_PTX_B64 : TPS_PTX_B32;
  if (members(o) != f->all) return false;
  for (unsigned k = 0; k < f->regs; k++)
    add_source(b, s, member(b, o, k), type);
  return true;
}

static bool add_results(builder *b, matrix_site *s, const ptx_opd *o,
                        unsigned count, uint8_t type) {
  if (members(o) != count) return false;
  for (unsigned k = 0; k < count; k++)
    s->out[s->outs++] = tps_sim_result(b, member(b, o, k), type);
  return true;
}

static void add_address(builder *b, matrix_site *s, const ptx_opd *o) {
  bool narrow = false;
  s->in[s->ins++] =
      tps_sim_address(b, o, b->p->space == TPS_PTX_SHARED, &s->offset, &narrow);
  s->wide_in = !narrow;
}

/* Equal operations meet, wherever in the code they stand. */
static uint32_t key_of(const builder *b, const matrix_site *s) {
  uint32_t h = 2166136261u ^ b->p->space ^ (uint32_t)s->outs << 8;
  const unsigned char *p = (const unsigned char *)s;
  for (size_t k = 0; k < offsetof(matrix_site, ins); k++)
    h = (h ^ p[k]) * 16777619u;
  return h | 0x80000000u; /* unlike those of shuffles */
}

static void emit(builder *b, matrix_site *s) {
  s->key = key_of(b, s);
  insn *i = tps_sim_emit(b, H_matrix);
  i->side = s;
  i->space = b->p->space;
  i->slot = b->kernel->slots++;
}

static bool finish(builder *b, matrix_site *s, bool good) {
  if (good && !b->unsupported && !b->failed) emit(b, s);
  else free(s);
  return good;
}

/* --- mma, wmma.mma ------------------------------------------------------- */

static matrix_sum sum_of(const matrix_site *s, kind kind, uint8_t use) {
  switch (kind) {
  case SINGLE: return use == WMMA ? SUM_HALVES : SUM_BLOCK;
  case EIGHTH: return SUM_CHAINED;
  case DOUBLE: return SUM_F64;
  case I8:
  case I4: return SUM_INTEGER;
  case I1: return SUM_BITS;
  default: return s->copies > 1 ? SUM_F32 : SUM_BLOCK;
  }
}

/* Types in the opcode: d, a, b, c; of wmma with f16 only d and c. */
static bool types_of(const builder *b, uint8_t *t) {
  bool two = b->p->op == TPS_PTX_OP_WMMA && b->p->type_count == 2;
  if (!two && b->p->type_count != 4) return false;
  t[0] = type_at(b, 0);
  t[1] = two ? TPS_PTX_F16 : type_at(b, 1);
  t[2] = two ? TPS_PTX_F16 : type_at(b, 2);
  t[3] = type_at(b, two ? 1 : 3);
  return true;
}

/* The n-th of .row and .col is .col. */
static bool is_column(const builder *b, unsigned n) {
  for (unsigned k = 0; k < b->p->mod_count; k++) {
    uint16_t mod = b->p->mods[k];
    if ((mod == TPS_PTX_M_ROW || mod == TPS_PTX_M_COL) && n-- == 0)
      return mod == TPS_PTX_M_COL;
  }
  return false;
}

static void lay_out(builder *b, matrix_site *s, const shape *h,
                    const uint8_t *t, uint8_t use) {
  bool swapped = h->n == 32;
  s->m = h->m, s->n = h->n;
  s->sparse = use == SPARSE;
  s->k = s->sparse ? h->k / 2 : h->k;
  s->c.type = t[3], s->d.type = t[0];
  if (use == DENSE && h->k == 4 && h->m == 8 && t[1] == TPS_PTX_F16) {
    s->copies = 4;
    tps_sim_fragment_quad(s, is_column(b, 0), is_column(b, 1));
    return;
  }
  tps_sim_fragment_a(&s->a, t[1], s->m, s->k);
  tps_sim_fragment_b(&s->b, t[2], s->n, h->k, swapped);
  tps_sim_fragment_c(&s->c, t[3], s->m, s->n);
  tps_sim_fragment_c(&s->d, t[0], s->m, s->n);
  if (use != WMMA || t[1] != TPS_PTX_F16) return;
  tps_sim_fragment_repeat(&s->a, 8);
  tps_sim_fragment_repeat(&s->b, 8);
}

static bool metadata(builder *b, matrix_site *s) {
  const ptx_opd *selector = opd(b, 5);
  if (b->p->operand_count != 6 || selector->kind != TPS_PTX_OPD_IMM ||
      selector->value < 0 || selector->value > 3)
    return false;
  s->selector = (uint8_t)selector->value;
  s->meta_at = s->ins;
  add_source(b, s, opd(b, 4), TPS_PTX_B32);
  return true;
}

static bool operands(builder *b, matrix_site *s) {
  bool wide = s->d.type == TPS_PTX_F64;
  s->wide_in = s->wide_out = wide;
  if (!add_fragment(b, s, opd(b, 1), &s->a)) return false;
  s->b_at = s->ins;
  if (!add_fragment(b, s, opd(b, 2), &s->b)) return false;
  s->c_at = s->ins;
  if (!add_fragment(b, s, opd(b, 3), &s->c)) return false;
  if (s->sparse ? !metadata(b, s) : b->p->operand_count != 4) return false;
  return add_results(b, s, opd(b, 0), s->d.all,
                     wide ? TPS_PTX_B64 : TPS_PTX_B32);
}

static bool multiply(builder *b) {
  uint8_t t[4], use = DENSE;
  const shape *h = shape_of(b);
  if (!h || !types_of(b, t) || kind_of(t[1]) != kind_of(t[2])) return false;
  if (b->p->op == TPS_PTX_OP_WMMA) use = WMMA;
  else if (has(b, TPS_PTX_M_SP) || has(b, TPS_PTX_M_SP__ORDERED_METADATA))
    use = SPARSE;
  kind kind = kind_of(t[1]);
  const form *f = form_of(h->mod, kind, use);
  if (!f || !accumulators(kind, use, h->mod, t[0], t[3])) return false;
  if (has(b, TPS_PTX_M_KIND__F8F6F4) || has(b, TPS_PTX_M_BLOCK_SCALE))
    return false;
  bool integer = kind == I8 || kind == I4;
  if (has(b, TPS_PTX_M_SATFINITE) && !integer) return false;
  bool and = kind == I1 && has(b, TPS_PTX_M_AND);
  b->needs = and&&f->target < 80 ? 80 : f->target;
  if (b->needs > b->module->target) return false;
  matrix_site *s = new_site(b, MATRIX_MULTIPLY);
  if (!s) return false;
  s->saturate = has(b, TPS_PTX_M_SATFINITE);
  s->conjunction = and;
  lay_out(b, s, h, t, use);
  s->sum = (uint8_t)sum_of(s, kind, use);
  return finish(b, s, operands(b, s));
}

/* --- wmma.load, wmma.store ----------------------------------------------- */

/* What multiplicands a shape has when only the accumulator is named. */
static const form *any_form(uint16_t shape, uint8_t type) {
  for (unsigned k = 0; k < sizeof forms / sizeof *forms; k++) {
    const form *f = &forms[k];
    if (f->shape == shape && f->use == WMMA &&
        accumulators((kind)f->kind, WMMA, shape, type, type))
      return f;
  }
  return NULL;
}

static bool matrix_fragment(builder *b, matrix_site *s, const shape *h,
                            uint8_t type) {
  bool is_a = has(b, TPS_PTX_M_A), is_b = has(b, TPS_PTX_M_B);
  const form *f = is_a || is_b ? form_of(h->mod, kind_of(type), WMMA)
                               : any_form(h->mod, type);
  if (!f) return false;
  b->needs = f->target;
  if (f->target > b->module->target) return false;
  s->m = h->m, s->n = h->n, s->k = h->k;
  if (is_a) tps_sim_fragment_a(&s->d, type, h->m, h->k);
  else if (is_b) tps_sim_fragment_b(&s->d, type, h->n, h->k, h->n == 32);
  else tps_sim_fragment_c(&s->d, type, h->m, h->n);
  if ((is_a || is_b) && type == TPS_PTX_F16) tps_sim_fragment_repeat(&s->d, 8);
  if (f->kind != I4 && f->kind != I1) return true;
  if (!is_a && !is_b) return true;
  if (is_column(b, 0) != is_b) return false;
  /* in words: a lane's register is one */
  s->d.per = 1, s->d.step = 0;
  if (is_a) s->d.rows = h->m, s->d.cols = 4;
  else s->d.rows = 4, s->d.cols = h->n;
  for (unsigned l = 0; l < LANES; l++)
    s->d.lane[l] = (uint16_t)(is_a ? l : (l & 3) * h->n + (l >> 2));
  return true;
}

static bool wmma_memory(builder *b, bool store) {
  const shape *h = shape_of(b);
  uint8_t type = type_at(b, 0);
  unsigned at = store ? 0 : 1, stride = 2;
  uint8_t space = b->p->space;
  if (!h || b->p->type_count != 1 || b->p->operand_count < 2) return false;
  if (space != TPS_PTX_GENERIC && space != TPS_PTX_GLOBAL &&
      space != TPS_PTX_SHARED)
    return false;
  matrix_site *s = new_site(b, store ? MATRIX_STORE : MATRIX_LOAD);
  if (!s) return false;
  s->transposed = is_column(b, 0);
  bool good = matrix_fragment(b, s, h, type);
  if (good) {
    uint8_t reg = type == TPS_PTX_F64 ? TPS_PTX_B64 : TPS_PTX_B32;
    s->wide_out = type == TPS_PTX_F64;
    add_address(b, s, opd(b, at));
    s->c_at = MATRIX_INS; /* no stride */
    if (b->p->operand_count > stride) {
      s->c_at = s->ins;
      add_source(b, s, opd(b, stride), TPS_PTX_U32);
    }
    s->b_at = s->ins;
    good = store ? add_fragment(b, s, opd(b, 1), &s->d)
                 : add_results(b, s, opd(b, 0), s->d.all, reg);
  }
  return finish(b, s, good);
}

/* --- rows of 8 × 8 matrices ---------------------------------------------- */

static bool row_memory(builder *b, bool store) {
  unsigned count = has(b, TPS_PTX_M_X4) ? 4 : has(b, TPS_PTX_M_X2) ? 2 : 1;
  b->needs = store ? 90 : 75;
  if (b->needs > b->module->target) return false;
  if (!has(b, TPS_PTX_M_M8N8) || b->p->type_count != 1 ||
      type_at(b, 0) != TPS_PTX_B16)
    return false;
  if (b->p->space != TPS_PTX_GENERIC && b->p->space != TPS_PTX_SHARED)
    return false;
  const ptx_opd *values = opd(b, store ? 1 : 0);
  matrix_site *s = new_site(b, store ? MATRIX_ROWS_STORE : MATRIX_ROWS_LOAD);
  if (!s) return false;
  s->transposed = has(b, TPS_PTX_M_TRANS);
  s->m = (uint16_t)count;
  add_address(b, s, opd(b, store ? 0 : 1));
  bool good = members(values) == count;
  for (unsigned k = 0; k < count && good && store; k++)
    add_source(b, s, member(b, values, k), TPS_PTX_B32);
  if (good && !store) add_results(b, s, values, count, TPS_PTX_B32);
  return finish(b, s, good);
}

static bool transpose(builder *b) {
  b->needs = 75;
  if (b->needs > b->module->target) return false;
  if (!has(b, TPS_PTX_M_M8N8) || type_at(b, 0) != TPS_PTX_B16) return false;
  matrix_site *s = new_site(b, MATRIX_TRANSPOSE);
  if (!s) return false;
  add_source(b, s, opd(b, 1), TPS_PTX_B32);
  return finish(b, s, add_results(b, s, opd(b, 0), 1, TPS_PTX_B32));
}

bool tps_sim_decode_matrix(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_LDMATRIX: return row_memory(b, false);
  case TPS_PTX_OP_STMATRIX: return row_memory(b, true);
  case TPS_PTX_OP_MOVMATRIX: return transpose(b);
  case TPS_PTX_OP_WMMA:
    if (has(b, TPS_PTX_M_LOAD)) return wmma_memory(b, false);
    if (has(b, TPS_PTX_M_STORE)) return wmma_memory(b, true);
    return multiply(b);
  default: return multiply(b);
  }
}
