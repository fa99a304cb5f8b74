/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of integer arithmetic, logic and bit operations.
 */
#include "sim/engine_decode.h"

/* The handler of a family that has one for 16, 32 and 64 bits. */
static unsigned by_width(unsigned first, uint8_t type) {
  unsigned bits = bits_of_type(type);
  return first + (bits == 64 ? 2 : bits == 32 ? 1 : 0);
}
/* … that has them unsigned and signed. */
static unsigned by_type(unsigned first, uint8_t type) {
  return first + 2 * by_width(0, type) + is_signed(type);
}
/* … of bits, where 16 go like 32. */
static unsigned by_class(unsigned first, uint8_t type) {
  return first + is_wide(type);
}

typedef struct form {
  unsigned op;
  uint8_t d, a, b, c; /* types; 0: no operand */
} form;

/* An instruction of the common shape: a result, then one to three sources. */
static bool plain(builder *b, form f) {
  unsigned k = 1;
  uint32_t x = tps_sim_source(b, opd(b, k++), f.a), y = 0, z = 0;
  if (f.b) y = tps_sim_source(b, opd(b, k++), f.b);
  if (f.c) z = tps_sim_source(b, opd(b, k++), f.c);
  uint32_t d = tps_sim_result(b, opd(b, 0), f.d);
  tps_sim_emit3(b, f.op, d, x, y, z);
  return true;
}
static bool one(builder *b, unsigned op, uint8_t t) {
  return plain(b, (form){op, t, t, 0, 0});
}
static bool two(builder *b, unsigned op, uint8_t t) {
  return plain(b, (form){op, t, t, t, 0});
}
static bool three(builder *b, unsigned op, uint8_t t) {
  return plain(b, (form){op, t, t, t, t});
}

static uint8_t doubled(uint8_t t) {
  switch (t) {
  case TPS_PTX_U16: return TPS_PTX_U32;
  case TPS_PTX_S16: return TPS_PTX_S32;
  case TPS_PTX_U32: return TPS_PTX_U64;
  default: return TPS_PTX_S64;
  }
}

/* --- carry chains -------------------------------------------------------- */

static bool chain(builder *b, uint8_t t, int64_t flags) {
  if (bits_of_type(t) < 32) return false;
  if (has(b, TPS_PTX_M_CC)) flags |= 2;
  two(b, is_wide(t) ? H_chain_64 : H_chain_32, t);
  if (b->failed) return true;
  insn *i = &b->insns[b->insn_count - 1];
  i->imm = flags;
  i->slot = b->f->carry;
  return true;
}

static bool chain_mad(builder *b, uint8_t t, int64_t flags) {
  if (bits_of_type(t) < 32) return false;
  if (has(b, TPS_PTX_M_CC)) flags |= 2;
  if (has(b, TPS_PTX_M_HI)) flags |= 8;
  if (is_signed(t)) flags |= 16;
  three(b, is_wide(t) ? H_chain_mad_64 : H_chain_mad_32, t);
  if (b->failed) return true;
  insn *i = &b->insns[b->insn_count - 1];
  i->imm = flags;
  i->slot = b->f->carry;
  return true;
}

/* --- sums and products --------------------------------------------------- */

static bool is_pair16(uint8_t t) {
  return t == TPS_PTX_U16X2 || t == TPS_PTX_S16X2;
}

static bool add(builder *b, uint8_t t) {
  if (has(b, TPS_PTX_M_CC)) return chain(b, t, 0);
  if (is_pair16(t)) return two(b, H_add_x2, t);
  if (has(b, TPS_PTX_M_SAT))
    return t == TPS_PTX_S32 && two(b, H_add_sat_s32, t);
  return two(b, by_width(H_add_16, t), t);
}
static bool subtract(builder *b, uint8_t t) {
  if (has(b, TPS_PTX_M_CC)) return chain(b, t, 4);
  if (is_pair16(t)) return two(b, H_sub_x2, t);
  if (has(b, TPS_PTX_M_SAT))
    return t == TPS_PTX_S32 && two(b, H_sub_sat_s32, t);
  return two(b, by_width(H_sub_16, t), t);
}

static bool multiply(builder *b, uint8_t t) {
  if (has(b, TPS_PTX_M_WIDE)) {
    if (is_wide(t)) return false;
    return plain(b, (form){by_type(H_mul_wide_u16, t), doubled(t), t, t, 0});
  }
  if (has(b, TPS_PTX_M_HI)) return two(b, by_type(H_mul_hi_u16, t), t);
  return two(b, by_width(H_mul_16, t), t);
}

static bool multiply_add(builder *b, uint8_t t) {
  if (has(b, TPS_PTX_M_CC)) return chain_mad(b, t, 0);
  if (has(b, TPS_PTX_M_WIDE)) {
    uint8_t d = doubled(t);
    if (is_wide(t)) return false;
    return plain(b, (form){by_type(H_mad_wide_u16, t), d, t, t, d});
  }
  if (has(b, TPS_PTX_M_HI) && has(b, TPS_PTX_M_SAT))
    return t == TPS_PTX_S32 && three(b, H_mad_hi_sat_s32, t);
  if (has(b, TPS_PTX_M_HI)) return three(b, by_type(H_mad_hi_u16, t), t);
  return three(b, by_width(H_mad_16, t), t);
}

static bool multiply24(builder *b, uint8_t t) {
  unsigned first = has(b, TPS_PTX_M_HI) ? H_mul24_hi_u32 : H_mul24_lo_u32;
  return two(b, first + is_signed(t), t);
}
static bool multiply_add24(builder *b, uint8_t t) {
  if (has(b, TPS_PTX_M_SAT)) return three(b, H_mad24_hi_sat_s32, t);
  unsigned first = has(b, TPS_PTX_M_HI) ? H_mad24_hi_u32 : H_mad24_lo_u32;
  return three(b, first + is_signed(t), t);
}

static bool extreme(builder *b, uint8_t t, bool max) {
  if (t == TPS_PTX_S16X2 || t == TPS_PTX_U16X2) {
    if (has(b, TPS_PTX_M_RELU))
      return t == TPS_PTX_S16X2 &&
             two(b, max ? H_max_relu_s16x2 : H_min_relu_s16x2, t);
    if (t == TPS_PTX_S16X2) return two(b, max ? H_max_s16x2 : H_min_s16x2, t);
    return two(b, max ? H_max_u16x2 : H_min_u16x2, t);
  }
  if (has(b, TPS_PTX_M_RELU))
    return t == TPS_PTX_S32 && two(b, max ? H_max_relu_s32 : H_min_relu_s32, t);
  return two(b, by_type(max ? H_max_u16 : H_min_u16, t), t);
}

/* --- bits ---------------------------------------------------------------- */

/* and, or, xor: predicates too. */
static bool logic(builder *b, uint8_t t, unsigned wide_op, unsigned pred_op) {
  if (t != TPS_PTX_PRED) return two(b, by_class(wide_op, t), t);
  uint32_t x = tps_sim_source_pred(b, opd(b, 1));
  uint32_t y = tps_sim_source_pred(b, opd(b, 2));
  tps_sim_emit3(b, pred_op, tps_sim_result_pred(b, opd(b, 0)), x, y, 0);
  return true;
}

static bool not(builder * b, uint8_t t) {
  if (t != TPS_PTX_PRED) return one(b, by_width(H_not_16, t), t);
  uint32_t x = tps_sim_source_pred(b, opd(b, 1));
  tps_sim_emit3(b, H_not_pred, tps_sim_result_pred(b, opd(b, 0)), x, x, 0);
  return true;
}

static bool shift(builder *b, uint8_t t, bool right) {
  unsigned op = right ? by_type(H_shr_u16, t) : by_width(H_shl_16, t);
  return plain(b, (form){op, t, t, TPS_PTX_U32, 0});
}

static bool funnel(builder *b) {
  bool wrap = has(b, TPS_PTX_M_WRAP), right = has(b, TPS_PTX_M_R);
  unsigned op = (wrap ? H_shf_l_wrap : H_shf_l_clamp) + right;
  return three(b, op, TPS_PTX_B32);
}

static bool find(builder *b, uint8_t t) {
  unsigned first =
      has(b, TPS_PTX_M_SHIFTAMT) ? H_bfind_amount_u32 : H_bfind_u32;
  unsigned op = first + 2 * is_wide(t) + is_signed(t);
  return plain(b, (form){op, TPS_PTX_U32, t, 0, 0});
}

static bool extract(builder *b, uint8_t t) {
  unsigned op = H_bfe_u32 + 2 * is_wide(t) + is_signed(t);
  return plain(b, (form){op, t, t, TPS_PTX_U32, TPS_PTX_U32});
}

static bool insert(builder *b, uint8_t t) {
  uint32_t n = tps_sim_source(b, opd(b, 4), TPS_PTX_U32);
  uint32_t x = tps_sim_source(b, opd(b, 1), t);
  uint32_t y = tps_sim_source(b, opd(b, 2), t);
  uint32_t at = tps_sim_source(b, opd(b, 3), TPS_PTX_U32);
  uint32_t d = tps_sim_result(b, opd(b, 0), t);
  tps_sim_emit3(b, is_wide(t) ? H_bfi_64 : H_bfi_32, d, x, y, at)->e = n;
  return true;
}

static bool permute(builder *b) {
  static const tps_ptx_mod modes[] = {TPS_PTX_M_F4E, TPS_PTX_M_B4E,
                                      TPS_PTX_M_RC8, TPS_PTX_M_ECL,
                                      TPS_PTX_M_ECR, TPS_PTX_M_RC16};
  three(b, H_prmt, TPS_PTX_B32);
  for (unsigned k = 0; k < 6 && !b->failed; k++)
    if (has(b, modes[k])) b->insns[b->insn_count - 1].imm = k + 1;
  return true;
}

static bool truth_table(builder *b) {
  if (b->p->operand_count != 5 || opd(b, 4)->kind != TPS_PTX_OPD_IMM ||
      opd(b, 0)->kind != TPS_PTX_OPD_REG)
    return false;
  three(b, H_lop3, TPS_PTX_B32);
  if (!b->failed) b->insns[b->insn_count - 1].imm = opd(b, 4)->value & 255;
  return true;
}

static bool dot(builder *b, unsigned op) {
  uint8_t a = type_at(b, 0), s = type_at(b, 1);
  int64_t flags = is_signed(a) | is_signed(s) << 1;
  if (has(b, TPS_PTX_M_HI)) flags |= 4;
  three(b, op, TPS_PTX_B32);
  if (!b->failed) b->insns[b->insn_count - 1].imm = flags;
  return true;
}

static bool select_by_sign(builder *b, uint8_t t) {
  uint8_t by = type_at(b, 1);
  unsigned op = by == TPS_PTX_S32       ? H_slct_32
                : has(b, TPS_PTX_M_FTZ) ? H_slct_32_ftz
                                        : H_slct_32_f32;
  return plain(b, (form){op + is_wide(t), t, t, t, by});
}

static bool mask_or_extend(builder *b, uint8_t t) {
  bool wrap = has(b, TPS_PTX_M_WRAP);
  if (b->p->op == TPS_PTX_OP_BMSK)
    return two(b, wrap ? H_bmsk_wrap : H_bmsk_clamp, TPS_PTX_B32);
  unsigned op = (wrap ? H_szext_wrap_u32 : H_szext_u32) + is_signed(t);
  return two(b, op, TPS_PTX_B32);
}

/* --- all ----------------------------------------------------------------- */

static bool bit_operation(builder *b, uint8_t t) {
  switch (b->p->op) {
  case TPS_PTX_OP_AND: return logic(b, t, H_and_32, H_and_pred);
  case TPS_PTX_OP_OR: return logic(b, t, H_or_32, H_or_pred);
  case TPS_PTX_OP_XOR: return logic(b, t, H_xor_32, H_xor_pred);
  case TPS_PTX_OP_NOT: return not(b, t);
  case TPS_PTX_OP_CNOT: return one(b, by_class(H_cnot_32, t), t);
  case TPS_PTX_OP_SHL: return shift(b, t, false);
  case TPS_PTX_OP_SHR: return shift(b, t, true);
  case TPS_PTX_OP_SHF: return funnel(b);
  case TPS_PTX_OP_POPC:
    return plain(b, (form){by_class(H_popc_32, t), TPS_PTX_U32, t, 0, 0});
  case TPS_PTX_OP_CLZ:
    return plain(b, (form){by_class(H_clz_32, t), TPS_PTX_U32, t, 0, 0});
  case TPS_PTX_OP_BREV: return one(b, by_class(H_brev_32, t), t);
  case TPS_PTX_OP_BFIND: return find(b, t);
  case TPS_PTX_OP_BFE: return extract(b, t);
  case TPS_PTX_OP_BFI: return insert(b, t);
  case TPS_PTX_OP_FNS: return three(b, H_fns, TPS_PTX_B32);
  case TPS_PTX_OP_BMSK:
  case TPS_PTX_OP_SZEXT: return mask_or_extend(b, t);
  case TPS_PTX_OP_PRMT: return permute(b);
  case TPS_PTX_OP_LOP3: return truth_table(b);
  default: return false;
  }
}

bool tps_sim_decode_integer(builder *b) {
  uint8_t t = type_at(b, 0);
  switch (b->p->op) {
  case TPS_PTX_OP_ADD: return add(b, t);
  case TPS_PTX_OP_SUB: return subtract(b, t);
  case TPS_PTX_OP_ADDC: return chain(b, t, 1);
  case TPS_PTX_OP_SUBC: return chain(b, t, 5);
  case TPS_PTX_OP_MADC: return chain_mad(b, t, 1);
  case TPS_PTX_OP_MUL: return multiply(b, t);
  case TPS_PTX_OP_MAD: return multiply_add(b, t);
  case TPS_PTX_OP_MUL24: return multiply24(b, t);
  case TPS_PTX_OP_MAD24: return multiply_add24(b, t);
  case TPS_PTX_OP_DIV: return two(b, by_type(H_div_u16, t), t);
  case TPS_PTX_OP_REM: return two(b, by_type(H_rem_u16, t), t);
  case TPS_PTX_OP_ABS: return one(b, by_width(H_abs_16, t), t);
  case TPS_PTX_OP_NEG: return one(b, by_width(H_neg_16, t), t);
  case TPS_PTX_OP_MIN: return extreme(b, t, false);
  case TPS_PTX_OP_MAX: return extreme(b, t, true);
  case TPS_PTX_OP_SAD: return three(b, by_type(H_sad_u16, t), t);
  case TPS_PTX_OP_SLCT: return select_by_sign(b, t);
  case TPS_PTX_OP_DP4A: return dot(b, H_dp4a);
  case TPS_PTX_OP_DP2A: return dot(b, H_dp2a);
  default: return bit_operation(b, t);
  }
}
