/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a kernel reads of a parameter that is a struct: PTX does not know its
 * members, but from where they are loaded.
 */
#ifndef TPS_PTX_FIELDS_H
#define TPS_PTX_FIELDS_H

#include "base/kernel.h"
#include "ptx/ptx.h"

/* In order of their offsets, each once; owned. NULL with *count 0 when there are
 * none, or no such kernel, or no memory. */
tps_field *tps_ptx_fields(const tps_ptx_module *module, const char *kernel,
                          uint32_t param, size_t *count);

#endif
