/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which opcodes a module uses, and which of them PTX only approximates: their
 * results differ between devices in the last places. All others give the same
 * bits everywhere.
 */
#ifndef TPS_BASE_FIDELITY_H
#define TPS_BASE_FIDELITY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tps_opcode {
  char *name; /* with all modifiers: "ex2.approx.ftz.f32" */
  bool approximate;
} tps_opcode;

typedef struct tps_fidelity {
  size_t count;
  tps_opcode opcodes[]; /* in the order of their bytes, each once */
} tps_fidelity;

#endif
