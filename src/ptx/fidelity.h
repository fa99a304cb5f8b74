/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The opcodes of a module, told exact or approximate.
 */
#ifndef TPS_PTX_FIDELITY_H
#define TPS_PTX_FIDELITY_H

#include "base/fidelity.h"
#include "ptx/ptx.h"

bool tps_ptx_approximate(const tps_ptx_instruction *instruction);

/* NULL when memory ran out. To be freed with tps_ptx_fidelity_free. */
tps_fidelity *tps_ptx_fidelity_of(const tps_ptx_module *module);
void tps_ptx_fidelity_free(tps_fidelity *fidelity); /* NULL is fine */

#endif
