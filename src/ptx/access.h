/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What functions do through the pointers they are given.
 */
#ifndef TPS_PTX_ACCESS_H
#define TPS_PTX_ACCESS_H

#include "ptx/ptx.h"

enum { TPS_PTX_ACCESS_BITS = 7, TPS_PTX_PLAIN = 8, TPS_PTX_HANDLE_SHIFT = 4 };

/* Of one function: for each input, what happens to the memory it points to. */
typedef struct tps_ptx_access {
  /* input_count of them; NULL for declarations */
  /* tps_access, TPS_PTX_PLAIN where not all is atomic or volatile, and
   * TPS_HANDLE_… << TPS_PTX_HANDLE_SHIFT */
  uint8_t *inputs;
} tps_ptx_access;

/* For every function of the module, in order; NULL when out of memory. To be
 * freed with tps_ptx_access_free. */
tps_ptx_access *tps_ptx_access_of(const tps_ptx_module *module);
void tps_ptx_access_free(tps_ptx_access *all, const tps_ptx_module *module);

#endif
