/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of cvt and mov.
 */
#include "sim/engine_decode.h"
#include "sim/engine_number.h"

/* --- integers ------------------------------------------------------------ */

/* The type that makes tps_sim_result cut a signed narrow result for a 16-bit
 * register and extend it with its sign for a 64-bit one. */
static uint8_t result_type(uint8_t d) {
  return is_signed(d) && bits_of_type(d) < 32 ? TPS_PTX_S8 : d;
}

/* A row of 32-bit elements extended from `bits`. */
static uint32_t extend(builder *b, uint32_t row, unsigned bits, bool sign) {
  if (bits >= 32) return row;
  uint32_t t = tps_sim_temp(b, false);
  unsigned op =
      bits == 8 ? (sign ? H_sext_8 : H_zext_8) : (sign ? H_sext_16 : H_zext_16);
  tps_sim_emit3(b, op, t, row, 0, 0);
  return t;
}

/* An integer source as 64 bits. */
static uint32_t widened(builder *b, const ptx_opd *o, uint8_t t) {
  uint32_t r = tps_sim_source(b, o, t);
  if (is_wide(t)) return r;
  r = extend(b, r, bits_of_type(t), is_signed(t));
  uint32_t w = tps_sim_temp(b, true);
  tps_sim_emit3(b, is_signed(t) ? H_wide_s32 : H_wide_u32, w, r, 0, 0);
  return w;
}

static bool clamped(builder *b, uint8_t d, uint8_t s) {
  uint32_t r = widened(b, opd(b, 1), s);
  uint32_t to = tps_sim_result(b, opd(b, 0), result_type(d));
  insn *i = tps_sim_emit3(b, is_wide(d) ? H_clamp_64 : H_clamp_32, to, r, 0, 0);
  i->imm = (int64_t)bits_of_type(d) << BITS_SHIFT;
  if (is_signed(d)) i->imm |= FLAG_SIGNED;
  i->count = is_signed(s);
  return true;
}

static bool integer(builder *b, uint8_t d, uint8_t s) {
  unsigned db = bits_of_type(d), sb = bits_of_type(s);
  if (has(b, TPS_PTX_M_SAT)) return clamped(b, d, s);
  if (db == 64) {
    uint32_t r =
        sb == 64 ? tps_sim_source(b, opd(b, 1), s)
                 : extend(b, tps_sim_source(b, opd(b, 1), s), sb, is_signed(s));
    uint32_t to = tps_sim_result(b, opd(b, 0), d);
    unsigned op = sb == 64 ? H_mov_64 : is_signed(s) ? H_wide_s32 : H_wide_u32;
    tps_sim_emit3(b, op, to, r, 0, 0);
    return true;
  }
  uint32_t r = tps_sim_source(b, opd(b, 1), s);
  if (sb == 64 && opd(b, 1)->kind != TPS_PTX_OPD_REG)
    r = tps_sim_source(b, opd(b, 1), TPS_PTX_U32);
  else if (sb == 64) {
    uint32_t t = tps_sim_temp(b, false);
    if (db == 32) t = tps_sim_result(b, opd(b, 0), d);
    tps_sim_emit3(b, H_low_64, t, r, 0, 0);
    if (db == 32) return true;
    r = t;
  }
  unsigned bits = sb < db ? sb : db;
  bool sign = sb < db ? is_signed(s) : is_signed(d);
  if (sign && !is_signed(d) && db < 32) { /* extended, then cut */
    r = extend(b, r, bits, true);
    sign = false, bits = db;
  }
  uint32_t to = tps_sim_result(b, opd(b, 0), sign ? result_type(d) : d);
  unsigned op = bits == 32  ? H_mov_32
                : bits == 8 ? (sign ? H_sext_8 : H_zext_8)
                            : (sign ? H_sext_16 : H_zext_16);
  tps_sim_emit3(b, op, to, r, 0, 0);
  return true;
}

/* --- floats -------------------------------------------------------------- */

static bool is_half(uint8_t t) { return t == TPS_PTX_F16 || t == TPS_PTX_BF16; }
static bool is_float(uint8_t t) {
  return t == TPS_PTX_F32 || t == TPS_PTX_F64 || is_half(t);
}

static int64_t flags_of(const builder *b) {
  int64_t f = tps_sim_rounding(b);
  if (has(b, TPS_PTX_M_FTZ)) f |= FLAG_FTZ;
  if (has(b, TPS_PTX_M_SAT)) f |= FLAG_SAT;
  if (has(b, TPS_PTX_M_RELU)) f |= FLAG_RELU;
  if (has(b, TPS_PTX_M_SATFINITE)) f |= FLAG_SATFINITE;
  if (has(b, TPS_PTX_M_RNI) || has(b, TPS_PTX_M_RZI) || has(b, TPS_PTX_M_RMI) ||
      has(b, TPS_PTX_M_RPI))
    f |= FLAG_INTEGRAL;
  return f;
}

/* A float source as f32 (halves) or as it is. */
static uint32_t float_source(builder *b, const ptx_opd *o, uint8_t *t) {
  uint32_t r = tps_sim_source(b, o, *t);
  if (!is_half(*t)) return r;
  uint32_t w = tps_sim_temp(b, false);
  tps_sim_emit3(b, *t == TPS_PTX_F16 ? H_f32_f16 : H_f32_bf16, w, r, 0, 0);
  *t = TPS_PTX_F32;
  return w;
}

static bool to_integer(builder *b, uint8_t d, uint8_t s) {
  uint32_t r = float_source(b, opd(b, 1), &s);
  uint32_t to = tps_sim_result(b, opd(b, 0), result_type(d));
  int64_t flags = flags_of(b) & (ROUND_BITS | FLAG_FTZ);
  if (is_signed(d)) flags |= FLAG_SIGNED;
  insn *i =
      tps_sim_emit3(b, s == TPS_PTX_F64 ? H_int_f64 : H_int_f32, to, r, 0, 0);
  i->imm = flags | (int64_t)bits_of_type(d) << BITS_SHIFT;
  return true;
}

static bool from_integer(builder *b, uint8_t d, uint8_t s) {
  int64_t flags = flags_of(b);
  bool sign = is_signed(s), wide = is_wide(s);
  if (is_half(d)) {
    uint32_t r = widened(b, opd(b, 1), s);
    uint32_t to = tps_sim_result(b, opd(b, 0), d);
    unsigned op = d == TPS_PTX_F16 ? H_f16_int : H_bf16_int;
    insn *i = tps_sim_emit3(b, op, to, r, 0, 0);
    i->imm = flags, i->count = sign;
    return true;
  }
  uint32_t r = tps_sim_source(b, opd(b, 1), s);
  r = extend(b, r, bits_of_type(s), sign);
  uint32_t to = tps_sim_result(b, opd(b, 0), d);
  bool f64 = d == TPS_PTX_F64;
  unsigned op;
  if (!flags && !wide)
    op = f64 ? (sign ? H_f64_s32 : H_f64_u32) : (sign ? H_f32_s32 : H_f32_u32);
  else op = (f64 ? H_f64x_s32 : H_f32x_s32) + 2 * wide + !sign;
  tps_sim_emit3(b, op, to, r, 0, 0)->imm = flags;
  return true;
}

static bool narrow_float(builder *b, uint8_t d, uint8_t s) {
  uint8_t from = s;
  int64_t flags = flags_of(b);
  if (d == TPS_PTX_F16) flags &= ~(int64_t)FLAG_FTZ; /* measured */
  if (from == d) { /* f16 → f16: perhaps to an integer */
    uint32_t r = tps_sim_source(b, opd(b, 1), s);
    insn *i = tps_sim_emit3(b, d == TPS_PTX_F16 ? H_whole_f16 : H_whole_bf16,
                            tps_sim_result(b, opd(b, 0), d), r, r, r);
    i->imm = flags, i->count = 1;
    return true;
  }
  uint32_t r = float_source(b, opd(b, 1), &from);
  bool f64 = from == TPS_PTX_F64;
  unsigned op = d == TPS_PTX_F16 ? (f64 ? H_f16_f64 : H_f16_f32)
                                 : (f64 ? H_bf16_f64 : H_bf16_f32);
  uint32_t to = tps_sim_result(b, opd(b, 0), d);
  tps_sim_emit3(b, op, to, r, 0, 0)->imm = flags;
  return true;
}

static bool between_floats(builder *b, uint8_t d, uint8_t s) {
  if (is_half(d)) return narrow_float(b, d, s);
  if (d == TPS_PTX_F64 && s == TPS_PTX_F16 && !flags_of(b)) {
    uint32_t h = tps_sim_source(b, opd(b, 1), s);
    tps_sim_emit3(b, H_f64_f16, tps_sim_result(b, opd(b, 0), d), h, 0, 0);
    return true;
  }
  uint32_t r = float_source(b, opd(b, 1), &s);
  uint32_t to = tps_sim_result(b, opd(b, 0), d);
  int64_t flags = flags_of(b);
  unsigned op;
  if (d == TPS_PTX_F32 && s == TPS_PTX_F64) op = flags ? H_f32x_f64 : H_f32_f64;
  else if (d == TPS_PTX_F64 && s == TPS_PTX_F32)
    op = flags & ~(int64_t)ROUND_BITS ? H_f64x_f32 : H_f64_f32;
  else if (d == TPS_PTX_F64) op = flags ? H_f64_f64 : H_mov_64;
  else op = flags ? H_f32_f32 : H_mov_32;
  tps_sim_emit3(b, op, to, r, 0, 0)->imm = flags;
  return true;
}

static bool packed(builder *b, uint8_t d) {
  if (type_at(b, 1) != TPS_PTX_F32 || b->p->operand_count != 3) return false;
  uint32_t x = tps_sim_source(b, opd(b, 1), TPS_PTX_F32);
  uint32_t y = tps_sim_source(b, opd(b, 2), TPS_PTX_F32);
  unsigned op = d == TPS_PTX_F16X2 ? H_f16x2_f32 : H_bf16x2_f32;
  uint32_t to = tps_sim_result(b, opd(b, 0), d);
  tps_sim_emit3(b, op, to, x, y, 0)->imm = flags_of(b);
  return true;
}

static bool convert(builder *b) {
  uint8_t d = type_at(b, 0), s = type_at(b, 1);
  if (b->p->type_count != 2 || has(b, TPS_PTX_M_RS)) return false;
  if (tps_sim_decode_eighth(b)) return true;
  if (d == TPS_PTX_F16X2 || d == TPS_PTX_BF16X2) return packed(b, d);
  if (d == TPS_PTX_TF32 && s == TPS_PTX_F32) {
    uint32_t r = tps_sim_source(b, opd(b, 1), s);
    uint32_t to = tps_sim_result(b, opd(b, 0), TPS_PTX_B32);
    tps_sim_emit3(b, H_tf32_f32, to, r, 0, 0)->imm = flags_of(b);
    return true;
  }
  if (is_integer(d) && is_integer(s)) return integer(b, d, s);
  if (is_integer(d) && is_float(s)) return to_integer(b, d, s);
  if (is_float(d) && is_integer(s)) return from_integer(b, d, s);
  if (is_float(d) && is_float(s)) return between_floats(b, d, s);
  return false;
}

bool tps_sim_decode_convert(builder *b) { return convert(b); }

/* --- mov ----------------------------------------------------------------- */

static void pack_bytes(builder *b, const ptx_opd *v, uint32_t to) {
  tps_sim_emit3(b, H_mov_32, to, tps_sim_constant(b, 0, false), 0, 0);
  for (unsigned k = 0; k < v->count; k++) {
    uint32_t r = tps_sim_source(b, part_of(b, v, k), TPS_PTX_B8);
    insn *i = tps_sim_emit3(b, H_insert, to, r, 0, 0);
    i->imm = 8 * k, i->count = 8;
  }
}

static bool pack(builder *b, uint8_t t) {
  const ptx_opd *v = opd(b, 1);
  unsigned bits = bits_of_type(t), each = bits / (v->count ? v->count : 1);
  uint32_t s[4];
  if (bits > 64 || v->count > 4 || (each != 8 && each != 16 && each != 32))
    return false;
  uint8_t part_type = each == 32 ? TPS_PTX_B32 : TPS_PTX_B16;
  uint32_t d = tps_sim_result(b, opd(b, 0), t);
  if (each == 8) {
    pack_bytes(b, v, d);
    return true;
  }
  for (unsigned k = 0; k < v->count; k++)
    s[k] = tps_sim_source(b, part_of(b, v, k), part_type);
  if (each == 32) tps_sim_emit3(b, H_pack_32, d, s[0], s[1], 0);
  else if (v->count == 2) tps_sim_emit3(b, H_pack_16, d, s[0], s[1], 0);
  else {
    uint32_t lo = tps_sim_temp(b, false), hi = tps_sim_temp(b, false);
    tps_sim_emit3(b, H_pack_16, lo, s[0], s[1], 0);
    tps_sim_emit3(b, H_pack_16, hi, s[2], s[3], 0);
    tps_sim_emit3(b, H_pack_32, d, lo, hi, 0);
  }
  return true;
}

static bool unpack(builder *b, uint8_t t) {
  const ptx_opd *v = opd(b, 0);
  unsigned bits = bits_of_type(t), each = bits / (v->count ? v->count : 1);
  if (bits > 64 || (each != 8 && each != 16 && each != 32)) return false;
  uint32_t r = tps_sim_source(b, opd(b, 1), t), word[2] = {r, r};
  if (bits == 64) {
    for (unsigned k = 0; k < 2; k++) {
      const ptx_opd *o = part_of(b, v, k);
      word[k] = each == 32 ? tps_sim_result(b, o, TPS_PTX_B32)
                           : tps_sim_temp(b, false);
      tps_sim_emit3(b, k ? H_high_64 : H_low_64, word[k], r, 0, 0);
    }
    if (each == 32) return true;
  }
  for (unsigned k = 0; k < v->count; k++) {
    const ptx_opd *o = part_of(b, v, k);
    if (o->kind != TPS_PTX_OPD_REG) continue;
    uint8_t part_type = each == 8 ? TPS_PTX_B8 : TPS_PTX_B16;
    uint32_t to = tps_sim_result(b, o, part_type);
    insn *i = tps_sim_emit3(b, H_field, to, word[k * each / 32], 0, 0);
    i->imm = k * each % 32, i->count = (uint8_t)each;
  }
  return true;
}

bool tps_sim_decode_move(builder *b) {
  uint8_t t = type_at(b, 0);
  const ptx_opd *d = opd(b, 0), *s = opd(b, 1);
  uint32_t row;
  if (t == TPS_PTX_PRED) {
    uint32_t p = tps_sim_source_pred(b, s);
    tps_sim_emit3(b, H_mov_pred, tps_sim_result_pred(b, d), p, p, 0);
    return true;
  }
  if (t == TPS_PTX_B128) return tps_sim_decode_wide_move(b);
  if (is_group(d) && is_group(s)) return false;
  if (is_group(s)) return pack(b, t);
  if (is_group(d)) return unpack(b, t);
  if (bits_of_type(t) > 64) return false;
  if (tps_sim_invariant(b, s, t, &row) && tps_sim_alias(b, d, row, is_wide(t)))
    return true;
  row = tps_sim_source(b, s, t);
  unsigned op = is_wide(t) ? H_mov_64 : H_mov_32;
  tps_sim_emit3(b, op, tps_sim_result(b, d, t), row, 0, 0);
  return true;
}
