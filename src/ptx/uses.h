/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Walks over the registers that an instruction reads or writes.
 */
#ifndef TPS_PTX_USES_H
#define TPS_PTX_USES_H

#include "ptx/ptx.h"

typedef void tps_ptx_visit(void *context, int32_t reg);

/* The guard, sources, and bases of addresses. */
void tps_ptx_each_use(const tps_ptx_function *function,
                      const tps_ptx_instruction *instruction,
                      tps_ptx_visit *visit, void *context);
void tps_ptx_each_definition(const tps_ptx_function *function,
                             const tps_ptx_instruction *instruction,
                             tps_ptx_visit *visit, void *context);

/* The most 32-bit registers live at once; *memory false when it ran out. Of each
 * register, unset tells whether it may be read before it is written. */
uint32_t tps_ptx_register_demand(const tps_ptx_function *function,
                                 uint8_t *unset, bool *memory);

#endif
