/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of conversions to and from 8-bit floats.
 */
#include "sim/engine_decode.h"
#include "sim/engine_eighth.h"

static bool is_eighth(uint8_t t) {
  return t == TPS_PTX_E4M3X2 || t == TPS_PTX_E5M2X2;
}

/* To a pair of them: of two f32, or of an f16x2. */
static bool narrow(builder *b, uint8_t from, int64_t flags) {
  unsigned count = from == TPS_PTX_F32 ? 3 : 2;
  if (from != TPS_PTX_F32 && from != TPS_PTX_F16X2) return false;
  if (b->p->operand_count != count || !has(b, TPS_PTX_M_RN) ||
      !has(b, TPS_PTX_M_SATFINITE))
    return false;
  uint32_t x = tps_sim_source(b, opd(b, 1), from), y = x;
  if (count == 3) y = tps_sim_source(b, opd(b, 2), from);
  uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_B16);
  unsigned op = count == 3 ? H_eighth_f32 : H_eighth_f16;
  tps_sim_emit3(b, op, d, x, y, 0)->imm = flags;
  return true;
}

bool tps_sim_decode_eighth(builder *b) {
  uint8_t to = type_at(b, 0), from = type_at(b, 1);
  bool narrows = is_eighth(to);
  if (narrows == is_eighth(from)) return false;
  int64_t flags = has(b, TPS_PTX_M_RELU) ? EIGHTH_RELU : 0;
  if ((narrows ? to : from) == TPS_PTX_E5M2X2) flags |= EIGHTH_E5M2;
  b->needs = 89;
  if (b->needs > b->module->target) return false;
  if (narrows) return narrow(b, from, flags);
  if (to != TPS_PTX_F16X2 || !has(b, TPS_PTX_M_RN)) return false;
  uint32_t x = tps_sim_source(b, opd(b, 1), TPS_PTX_B16);
  uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_B32);
  tps_sim_emit3(b, H_f16_eighth, d, x, x, 0)->imm = flags;
  return true;
}
