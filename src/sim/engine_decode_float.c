/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of floating-point arithmetic: f32, f64, and the half formats.
 */
#include "sim/engine_decode.h"
#include "sim/engine_number.h"

int64_t tps_sim_rounding(const builder *b) {
  if (has(b, TPS_PTX_M_RZ) || has(b, TPS_PTX_M_RZI)) return ROUND_RZ;
  if (has(b, TPS_PTX_M_RM) || has(b, TPS_PTX_M_RMI)) return ROUND_RM;
  if (has(b, TPS_PTX_M_RP) || has(b, TPS_PTX_M_RPI)) return ROUND_RP;
  if (has(b, TPS_PTX_M_RNA)) return ROUND_RNA;
  return ROUND_RN;
}

static int64_t flags_of(const builder *b) {
  int64_t flags = tps_sim_rounding(b);
  if (has(b, TPS_PTX_M_FTZ)) flags |= FLAG_FTZ;
  if (has(b, TPS_PTX_M_SAT)) flags |= FLAG_SAT;
  if (has(b, TPS_PTX_M_NAN)) flags |= FLAG_NAN;
  if (has(b, TPS_PTX_M_XORSIGN)) flags |= FLAG_XORSIGN;
  if (has(b, TPS_PTX_M_RELU)) flags |= FLAG_RELU;
  if (has(b, TPS_PTX_M_OOB)) flags |= FLAG_OOB;
  return flags;
}

/* A result and `n` sources of one type. */
static insn *emit(builder *b, unsigned op, uint8_t t, unsigned n) {
  uint32_t s[3] = {0, 0, 0};
  for (unsigned k = 0; k < n; k++) s[k] = tps_sim_source(b, opd(b, k + 1), t);
  return tps_sim_emit3(b, op, tps_sim_result(b, opd(b, 0), t), s[0], s[1],
                       s[2]);
}

/* The plain handler without flags, else the one that looks at them. */
static bool either(builder *b, unsigned plain, unsigned flagged, uint8_t t,
                   unsigned n) {
  int64_t flags = flags_of(b);
  emit(b, flags ? flagged : plain, t, n)->imm = flags;
  return true;
}

/* A sign change of a register source (fma.rn %d, -%a, …) is done by source().
 */
static bool arithmetic(builder *b, uint8_t t) {
  bool f64 = t == TPS_PTX_F64;
  switch (b->p->op) {
  case TPS_PTX_OP_ADD:
    return f64 ? either(b, H_add_f64, H_addx_f64, t, 2)
               : either(b, H_add_f32, H_addx_f32, t, 2);
  case TPS_PTX_OP_SUB:
    return f64 ? either(b, H_sub_f64, H_subx_f64, t, 2)
               : either(b, H_sub_f32, H_subx_f32, t, 2);
  case TPS_PTX_OP_MUL:
    return f64 ? either(b, H_mul_f64, H_mulx_f64, t, 2)
               : either(b, H_mul_f32, H_mulx_f32, t, 2);
  case TPS_PTX_OP_FMA:
  case TPS_PTX_OP_MAD:
    return f64 ? either(b, H_fma_f64, H_fmax_f64, t, 3)
               : either(b, H_fma_f32, H_fmax_f32, t, 3);
  default:
    if (has(b, TPS_PTX_M_APPROX))
      return either(b, H_div_approx_f32, H_div_approx_f32, t, 2);
    return f64 ? either(b, H_div_f64, H_divx_f64, t, 2)
               : either(b, H_div_f32, H_divx_f32, t, 2);
  }
}

static bool extreme(builder *b, uint8_t t, bool max) {
  if (b->p->operand_count != 3) return false;
  if (t == TPS_PTX_F64) {
    emit(b, max ? H_max_f64 : H_min_f64, t, 2);
    return true;
  }
  return max ? either(b, H_max_f32, H_maxx_f32, t, 2)
             : either(b, H_min_f32, H_minx_f32, t, 2);
}

static bool sign(builder *b, uint8_t t, bool absolute) {
  bool ftz = has(b, TPS_PTX_M_FTZ);
  unsigned op = t == TPS_PTX_F64 ? (absolute ? H_abs_f64 : H_neg_f64)
                : ftz            ? (absolute ? H_abs_ftz_f32 : H_neg_ftz_f32)
                                 : (absolute ? H_abs_f32 : H_neg_f32);
  emit(b, op, t, 1);
  return true;
}

/* rcp, sqrt, rsqrt and the transcendental ones. */
static bool function_of_one(builder *b, uint8_t t) {
  bool f64 = t == TPS_PTX_F64;
  bool gross = has(b, TPS_PTX_M_APPROX) && has(b, TPS_PTX_M_FTZ);
  unsigned op;
  switch (b->p->op) {
  case TPS_PTX_OP_RCP:
    op = !f64 ? H_rcp_f32 : gross ? H_rcp_gross_f64 : H_rcp_f64;
    break;
  case TPS_PTX_OP_SQRT: op = f64 ? H_sqrt_f64 : H_sqrt_f32; break;
  case TPS_PTX_OP_RSQRT:
    op = !f64 ? H_rsqrt_f32 : gross ? H_rsqrt_gross_f64 : H_rsqrt_f64;
    break;
  case TPS_PTX_OP_SIN: op = H_sin_f32; break;
  case TPS_PTX_OP_COS: op = H_cos_f32; break;
  case TPS_PTX_OP_EX2: op = H_ex2_f32; break;
  case TPS_PTX_OP_LG2: op = H_lg2_f32; break;
  default: op = H_tanh_f32; break;
  }
  emit(b, op, t, 1)->imm = flags_of(b);
  return true;
}

static bool test(builder *b, uint8_t t) {
  static const tps_ptx_mod kinds[] = {TPS_PTX_M_FINITE, TPS_PTX_M_INFINITE,
                                      TPS_PTX_M_NUMBER, TPS_PTX_M_NOTANUMBER,
                                      TPS_PTX_M_NORMAL, TPS_PTX_M_SUBNORMAL};
  int64_t which = 0;
  for (unsigned k = 0; k < 6; k++)
    if (has(b, kinds[k])) which = k;
  uint32_t x = tps_sim_source(b, opd(b, 1), t);
  unsigned op = t == TPS_PTX_F64 ? H_testp_f64 : H_testp_f32;
  tps_sim_emit3(b, op, tps_sim_result_pred(b, opd(b, 0)), x, 0, 0)->imm = which;
  return true;
}

/* --- half formats -------------------------------------------------------- */

static bool half_sign(builder *b, uint8_t t, bool absolute, bool two) {
  insn *i = emit(b, H_sign_bits, t, 1);
  i->imm = t == TPS_PTX_BF16 || t == TPS_PTX_BF16X2 ? 0x7f80 : 0x7c00;
  unsigned ftz = has(b, TPS_PTX_M_FTZ) ? 8 : 0;
  i->count = (uint8_t)((two ? 2 : 1) | (absolute ? 4 : 0) | ftz);
  return true;
}

static bool half(builder *b, uint8_t t) {
  bool two = t == TPS_PTX_F16X2 || t == TPS_PTX_BF16X2;
  bool bf16 = t == TPS_PTX_BF16 || t == TPS_PTX_BF16X2;
  unsigned op, n = 2;
  switch (b->p->op) {
  case TPS_PTX_OP_ADD: op = H_add_f16; break;
  case TPS_PTX_OP_SUB: op = H_sub_f16; break;
  case TPS_PTX_OP_MUL: op = H_mul_f16; break;
  case TPS_PTX_OP_FMA: op = H_fma_f16, n = 3; break;
  case TPS_PTX_OP_MIN: op = H_min_f16; break;
  case TPS_PTX_OP_MAX: op = H_max_f16; break;
  case TPS_PTX_OP_EX2: op = H_ex2_f16, n = 1; break;
  case TPS_PTX_OP_TANH: op = H_tanh_f16, n = 1; break;
  case TPS_PTX_OP_NEG: return half_sign(b, t, false, two);
  case TPS_PTX_OP_ABS: return half_sign(b, t, true, two);
  default: return false;
  }
  if (b->p->operand_count != n + 1) return false;
  if (bf16) op += H_add_bf16 - H_add_f16;
  int64_t flags = flags_of(b);
  insn *i = emit(b, op, t, n);
  i->imm = flags;
  i->count = two ? 2 : 1;
  return true;
}

bool tps_sim_decode_float(builder *b) {
  uint8_t t = type_at(b, 0);
  if (t != TPS_PTX_F32 && t != TPS_PTX_F64) return half(b, t);
  switch (b->p->op) {
  case TPS_PTX_OP_ADD:
  case TPS_PTX_OP_SUB:
  case TPS_PTX_OP_MUL:
  case TPS_PTX_OP_FMA:
  case TPS_PTX_OP_MAD:
  case TPS_PTX_OP_DIV: return b->p->type_count == 1 && arithmetic(b, t);
  case TPS_PTX_OP_MIN: return extreme(b, t, false);
  case TPS_PTX_OP_MAX: return extreme(b, t, true);
  case TPS_PTX_OP_NEG: return sign(b, t, false);
  case TPS_PTX_OP_ABS: return sign(b, t, true);
  case TPS_PTX_OP_COPYSIGN:
    emit(b, t == TPS_PTX_F64 ? H_copysign_f64 : H_copysign_f32, t, 2);
    return true;
  case TPS_PTX_OP_TESTP: return test(b, t);
  default: return function_of_one(b, t);
  }
}
