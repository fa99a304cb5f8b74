/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of setp, set and selp. Comparisons exist as equal, unequal, less,
 * less or equal; the others swap their operands.
 */
#include "sim/engine_decode.h"

/* In the order of the float handlers. */
/* clang-format off */
typedef enum comparison {
  EQ, NE, LT, LE, EQU, NEU, LTU, LEU, NUM, NOT_A_NUMBER, GT, GE, GTU, GEU, NONE
} comparison;
/* clang-format on */

static comparison find(const builder *b) {
  /* clang-format off */
  static const struct {
    tps_ptx_mod mod;
    comparison is;
  } table[] = {
      {TPS_PTX_M_EQ, EQ},   {TPS_PTX_M_NE, NE},   {TPS_PTX_M_LT, LT},
      {TPS_PTX_M_LE, LE},   {TPS_PTX_M_GT, GT},   {TPS_PTX_M_GE, GE},
      {TPS_PTX_M_LO, LT},   {TPS_PTX_M_LS, LE},   {TPS_PTX_M_HI, GT},
      {TPS_PTX_M_HS, GE},   {TPS_PTX_M_EQU, EQU}, {TPS_PTX_M_NEU, NEU},
      {TPS_PTX_M_LTU, LTU}, {TPS_PTX_M_LEU, LEU}, {TPS_PTX_M_GTU, GTU},
      {TPS_PTX_M_GEU, GEU}, {TPS_PTX_M_NUM, NUM},
      {TPS_PTX_M_NAN, NOT_A_NUMBER}};
  /* clang-format on */
  for (unsigned k = 0; k < sizeof table / sizeof *table; k++)
    if (has(b, table[k].mod)) return table[k].is;
  return NONE;
}

static unsigned integer_op(comparison c, uint8_t t) {
  unsigned bits = bits_of_type(t);
  if (c == EQ || c == NE) return (bits == 64 ? H_eq_64 : H_eq_32) + (c == NE);
  if (bits == 16 && is_signed(t)) return H_lt_s16 + (c == LE);
  unsigned first = bits == 64 ? (is_signed(t) ? H_lt_s64 : H_lt_u64)
                              : (is_signed(t) ? H_lt_s32 : H_lt_u32);
  return first + (c == LE);
}

/* a and s compared into a predicate row. */
static bool compare(builder *b, comparison c, uint8_t t, uint32_t d, uint32_t a,
                    uint32_t s) {
  if (c >= GT) {
    uint32_t swap = a;
    a = s, s = swap;
    c = c == GT ? LT : c == GE ? LE : c == GTU ? LTU : LEU;
  }
  unsigned op;
  if (t == TPS_PTX_F64) op = H_eq_f64 + (unsigned)c;
  else if (t == TPS_PTX_F32)
    op = (has(b, TPS_PTX_M_FTZ) ? H_eq_ftz_f32 : H_eq_f32) + (unsigned)c;
  else if (c > LE) return false;
  else op = integer_op(c, t);
  tps_sim_emit3(b, op, d, a, s, 0);
  return true;
}

/* A half (or one half of a pair, at `shift`) as f32. With .ftz what is subnormal
 * in f16 counts as nought. */
static uint32_t widen(builder *b, const ptx_opd *o, uint8_t t, unsigned shift) {
  bool bf16 = t == TPS_PTX_BF16 || t == TPS_PTX_BF16X2;
  uint32_t r = tps_sim_source(b, o, t), w = tps_sim_temp(b, false);
  if (t == TPS_PTX_F16X2 || t == TPS_PTX_BF16X2) {
    uint32_t f = tps_sim_temp(b, false);
    insn *i = tps_sim_emit3(b, H_field, f, r, 0, 0);
    i->imm = shift, i->count = 16;
    r = f;
  }
  if (has(b, TPS_PTX_M_FTZ)) {
    uint32_t f = tps_sim_temp(b, false);
    tps_sim_emit3(b, H_flush_f16, f, r, 0, 0);
    r = f;
  }
  tps_sim_emit3(b, bf16 ? H_f32_bf16 : H_f32_f16, w, r, 0, 0);
  return w;
}

static bool is_half(uint8_t t) {
  return t == TPS_PTX_F16 || t == TPS_PTX_BF16 || t == TPS_PTX_F16X2 ||
         t == TPS_PTX_BF16X2;
}

/* Combines with the predicate operand, if the instruction has one. */
static uint32_t combine(builder *b, uint32_t p, const ptx_opd *o) {
  if (!o) return p;
  unsigned op = has(b, TPS_PTX_M_AND)  ? H_and_pred
                : has(b, TPS_PTX_M_OR) ? H_or_pred
                                       : H_xor_pred;
  uint32_t q = tps_sim_source_pred(b, o), t = tps_sim_temp_pred(b);
  tps_sim_emit3(b, op, t, p, q, 0);
  return t;
}

/* The comparison of the instruction into a new predicate. */
static bool outcome(builder *b, uint8_t t, unsigned shift, uint32_t *p) {
  comparison c = find(b);
  uint32_t x, y;
  if (c == NONE) return false;
  if (is_half(t)) {
    x = widen(b, opd(b, 1), t, shift);
    y = widen(b, opd(b, 2), t, shift);
    t = TPS_PTX_F32;
  } else {
    x = tps_sim_source(b, opd(b, 1), t);
    y = tps_sim_source(b, opd(b, 2), t);
  }
  return compare(b, c, t, *p, x, y);
}

/* d|p of a pair of halves: one predicate a half. */
static bool setp_x2(builder *b, uint8_t t, const ptx_opd *third) {
  const ptx_opd *d = opd(b, 0);
  for (unsigned k = 0; k < 2; k++) {
    uint32_t p = tps_sim_temp_pred(b);
    if (!outcome(b, t, 16 * k, &p)) return false;
    p = combine(b, p, third);
    const ptx_opd *to = d->kind == TPS_PTX_OPD_PAIR ? part_of(b, d, k) : d;
    if (k == 0 || d->kind == TPS_PTX_OPD_PAIR)
      tps_sim_emit3(b, H_mov_pred, tps_sim_result_pred(b, to), p, p, 0);
  }
  return true;
}

static bool setp(builder *b) {
  uint8_t t = type_at(b, 0);
  const ptx_opd *d = opd(b, 0);
  const ptx_opd *third = b->p->operand_count > 3 ? opd(b, 3) : NULL;
  if (t == TPS_PTX_F16X2 || t == TPS_PTX_BF16X2) return setp_x2(b, t, third);
  if (!third && d->kind != TPS_PTX_OPD_PAIR) {
    uint32_t p = tps_sim_result_pred(b, d);
    return outcome(b, t, 0, &p);
  }
  uint32_t p = tps_sim_temp_pred(b), not = tps_sim_temp_pred(b);
  if (!outcome(b, t, 0, &p)) return false;
  bool pair = d->kind == TPS_PTX_OPD_PAIR;
  const ptx_opd *first = pair ? part_of(b, d, 0) : d;
  uint32_t r = combine(b, p, third);
  if (pair) {
    tps_sim_emit3(b, H_not_pred, not, p, p, 0);
    not = combine(b, not, third);
  }
  tps_sim_emit3(b, H_mov_pred, tps_sim_result_pred(b, first), r, r, 0);
  if (pair)
    tps_sim_emit3(b, H_mov_pred, tps_sim_result_pred(b, part_of(b, d, 1)), not,
                  not, 0);
  return true;
}

/* What set writes for true. */
static uint32_t truth(uint8_t d, uint64_t *value) {
  switch (d) {
  case TPS_PTX_F32: *value = 0x3f800000; break;
  case TPS_PTX_F16: *value = 0x3c00; break;
  case TPS_PTX_BF16: *value = 0x3f80; break;
  case TPS_PTX_F16X2: *value = 0x3c00; break;
  case TPS_PTX_BF16X2: *value = 0x3f80; break;
  case TPS_PTX_U16:
  case TPS_PTX_S16: *value = 0xffff; break;
  default: *value = FULL; break;
  }
  return 0;
}

/* set on pairs: each half by itself, then packed. */
static bool set_x2(builder *b, uint8_t d, uint8_t t, const ptx_opd *third) {
  uint64_t yes;
  uint32_t halves[2];
  truth(d, &yes);
  if (d == TPS_PTX_U32 || d == TPS_PTX_S32) yes = 0xffff;
  uint32_t one = tps_sim_constant(b, yes, false);
  uint32_t zero = tps_sim_constant(b, 0, false);
  for (unsigned k = 0; k < 2; k++) {
    uint32_t p = tps_sim_temp_pred(b);
    if (!outcome(b, t, 16 * k, &p)) return false;
    p = combine(b, p, third);
    halves[k] = tps_sim_temp(b, false);
    tps_sim_emit3(b, H_selp_32, halves[k], one, zero, p);
  }
  tps_sim_emit3(b, H_pack_16, tps_sim_result(b, opd(b, 0), d), halves[0],
                halves[1], 0);
  return true;
}

static bool set(builder *b) {
  uint8_t d = type_at(b, 0), t = type_at(b, 1);
  const ptx_opd *third = b->p->operand_count > 3 ? opd(b, 3) : NULL;
  if (t == TPS_PTX_F16X2 || t == TPS_PTX_BF16X2) return set_x2(b, d, t, third);
  uint64_t yes;
  truth(d, &yes);
  uint32_t p = tps_sim_temp_pred(b);
  if (!outcome(b, t, 0, &p)) return false;
  p = combine(b, p, third);
  uint32_t one = tps_sim_constant(b, yes, false);
  uint32_t zero = tps_sim_constant(b, 0, false);
  tps_sim_emit3(b, H_selp_32, tps_sim_result(b, opd(b, 0), d), one, zero, p);
  return true;
}

static bool selp(builder *b) {
  uint8_t t = type_at(b, 0);
  uint32_t p = tps_sim_source_pred(b, opd(b, 3));
  uint32_t x = tps_sim_source(b, opd(b, 1), t);
  uint32_t y = tps_sim_source(b, opd(b, 2), t);
  unsigned op = is_wide(t) ? H_selp_64 : H_selp_32;
  tps_sim_emit3(b, op, tps_sim_result(b, opd(b, 0), t), x, y, p);
  return true;
}

bool tps_sim_decode_compare(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_SETP: return setp(b);
  case TPS_PTX_OP_SET: return set(b);
  default: return selp(b);
  }
}
