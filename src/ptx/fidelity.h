/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which opcodes a module uses, and which of them PTX only approximates: their
 * results differ between devices in the last places. All others give the same
 * bits everywhere.
 */
#ifndef TPS_PTX_FIDELITY_H
#define TPS_PTX_FIDELITY_H

#include "ptx/ptx.h"

typedef struct tps_ptx_opcode {
  char *name; /* with all modifiers: "ex2.approx.ftz.f32" */
  bool approximate;
} tps_ptx_opcode;

typedef struct tps_ptx_fidelity {
  size_t count;
  tps_ptx_opcode opcodes[]; /* in the order of their bytes, each once */
} tps_ptx_fidelity;

bool tps_ptx_approximate(const tps_ptx_instruction *instruction);

/* NULL when memory ran out. To be freed with tps_ptx_fidelity_free. */
tps_ptx_fidelity *tps_ptx_fidelity_of(const tps_ptx_module *module);
void tps_ptx_fidelity_free(tps_ptx_fidelity *fidelity); /* NULL is fine */

#endif
