/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of what .b128 registers are for: mov, ld, st, and atom. Such a
 * register is two rows of 64-bit elements, the lower halves first.
 */
#include "sim/engine_decode.h"

/* The rows of a 128-bit register. Anything else is refused. */
static uint32_t wide_row(builder *b, const ptx_opd *o) {
  bool wide = o->kind == TPS_PTX_OPD_REG &&
              b->regs[o->index].type == TPS_PTX_B128 && !o->negated;
  b->unsupported |= !wide;
  return wide ? tps_sim_reg_row(b, o) : SINK_AT;
}

static void copy(builder *b, uint32_t to, uint32_t from) {
  tps_sim_emit3(b, H_mov_64, to, from, 0, 0);
}

static bool pack(builder *b, const ptx_opd *halves) {
  uint32_t d = wide_row(b, opd(b, 0));
  if (halves->count != 2) return false;
  for (unsigned k = 0; k < 2; k++)
    copy(b, d + k * ROW64,
         tps_sim_source(b, part_of(b, halves, k), TPS_PTX_B64));
  return true;
}

static bool unpack(builder *b, const ptx_opd *halves) {
  uint32_t s = wide_row(b, opd(b, 1));
  if (halves->count != 2) return false;
  for (unsigned k = 0; k < 2; k++)
    copy(b, tps_sim_result(b, part_of(b, halves, k), TPS_PTX_B64),
         s + k * ROW64);
  return true;
}

bool tps_sim_decode_wide_move(builder *b) {
  const ptx_opd *d = opd(b, 0), *s = opd(b, 1);
  if (is_group(d) && is_group(s)) return false;
  if (is_group(s)) return pack(b, s);
  if (is_group(d)) return unpack(b, d);
  uint32_t to = wide_row(b, d), from = wide_row(b, s);
  for (unsigned k = 0; k < 2; k++) copy(b, to + k * ROW64, from + k * ROW64);
  return true;
}

static insn *emit_access(builder *b, unsigned op, const ptx_opd *at) {
  int64_t offset;
  bool narrow;
  uint32_t row = tps_sim_address(b, at, false, &offset, &narrow);
  insn *i = tps_sim_emit(b, op);
  i->a = row;
  i->imm = offset;
  i->space = b->p->space;
  i->slot = b->kernel->slots++;
  return i;
}

bool tps_sim_decode_wide_load(builder *b) {
  if (b->p->vector > 1 || b->p->space == TPS_PTX_PARAM) return false;
  uint32_t d = wide_row(b, opd(b, 0));
  emit_access(b, H_ld_128, opd(b, 1))->d = d;
  return true;
}

bool tps_sim_decode_wide_store(builder *b) {
  if (b->p->vector > 1 || b->p->space == TPS_PTX_PARAM ||
      has(b, TPS_PTX_M_ASYNC) || has(b, TPS_PTX_M_BULK))
    return false;
  uint32_t s = wide_row(b, opd(b, 1));
  emit_access(b, H_st_128, opd(b, 0))->b = s;
  return true;
}

bool tps_sim_decode_wide_atomic(builder *b) {
  bool cas = has(b, TPS_PTX_M_CAS);
  const ptx_opd *old = opd(b, 0);
  if (b->p->op != TPS_PTX_OP_ATOM || (!cas && !has(b, TPS_PTX_M_EXCH)) ||
      b->p->vector > 1 || b->p->operand_count < (cas ? 4 : 3))
    return false;
  b->needs = 90;
  if (b->needs > b->module->target) return false;
  uint32_t d = old->kind == TPS_PTX_OPD_SINK ? NO_OPERAND : wide_row(b, old);
  uint32_t x = wide_row(b, opd(b, 2)), y = NO_OPERAND;
  if (cas) y = wide_row(b, opd(b, 3));
  insn *i = emit_access(b, H_atom_128, opd(b, 1));
  i->d = d, i->b = x, i->c = y;
  return true;
}
