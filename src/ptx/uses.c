/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which registers an instruction reads and which it writes.
 */
#include "ptx/uses.h"

static bool writes_nothing(const tps_ptx_instruction *i) {
  switch (i->op) {
  /* clang-format off */
  case TPS_PTX_OP_BRA: case TPS_PTX_OP_BRX: case TPS_PTX_OP_CALL:
  case TPS_PTX_OP_RET: case TPS_PTX_OP_EXIT: case TPS_PTX_OP_TRAP:
  case TPS_PTX_OP_BRKPT: case TPS_PTX_OP_PMEVENT: case TPS_PTX_OP_NANOSLEEP:
  case TPS_PTX_OP_MEMBAR: case TPS_PTX_OP_FENCE:
  case TPS_PTX_OP_GRIDDEPCONTROL: case TPS_PTX_OP_SETMAXNREG:
  case TPS_PTX_OP_STACKRESTORE: case TPS_PTX_OP_CP:
    return true;
    /* clang-format on */
  case TPS_PTX_OP_BAR:
  case TPS_PTX_OP_BARRIER: return !tps_ptx_has(i, TPS_PTX_M_RED);
  case TPS_PTX_OP_WGMMA: return !tps_ptx_has(i, TPS_PTX_M_MMA_ASYNC);
  case TPS_PTX_OP_TCGEN05: return !tps_ptx_has(i, TPS_PTX_M_LD);
  default: return false;
  }
}

unsigned tps_ptx_destinations(const tps_ptx_instruction *i) {
  if (i->operand_count == 0 || i->operands[0].kind == TPS_PTX_OPD_ADDR ||
      writes_nothing(i))
    return 0;
  return 1;
}

/* Registers of an operand, of its elements and their elements. */
static void visit(const tps_ptx_function *f, const tps_ptx_operand *o,
                  tps_ptx_visit *call, void *context) {
  switch (o->kind) {
  case TPS_PTX_OPD_REG: call(context, o->index); return;
  case TPS_PTX_OPD_ADDR:
    if (o->base_kind == TPS_PTX_OPD_REG) call(context, o->index);
    return;
  case TPS_PTX_OPD_VEC:
  case TPS_PTX_OPD_PAIR:
  case TPS_PTX_OPD_LIST:
    for (int k = 0; k < o->count; k++)
      visit(f, &f->parts[o->first + k], call, context);
    return;
  default: return;
  }
}

void tps_ptx_each_use(const tps_ptx_function *f, const tps_ptx_instruction *i,
                      tps_ptx_visit *call, void *context) {
  if (i->guard >= 0) call(context, i->guard);
  for (unsigned k = tps_ptx_destinations(i); k < i->operand_count; k++)
    visit(f, &i->operands[k], call, context);
}

void tps_ptx_each_definition(const tps_ptx_function *f,
                             const tps_ptx_instruction *i, tps_ptx_visit *call,
                             void *context) {
  if (tps_ptx_destinations(i) == 1) visit(f, &i->operands[0], call, context);
}
