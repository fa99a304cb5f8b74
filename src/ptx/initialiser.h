/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Initial values of variables.
 */
#ifndef TPS_PTX_INITIALISER_H
#define TPS_PTX_INITIALISER_H

#include "ptx/reader.h"

enum { SHAPE_MOST = 9 };

typedef struct shape { /* of an array, a vector's width as its last dimension */
  int count;
  uint64_t sizes[SHAPE_MOST];
} shape;

/* Reads what follows '=' into var->init and var->relocations. `open`: the
 * first dimension comes from the values, and var->count lacks it. */
void tps_ptx_initialiser(reader *r, tps_ptx_var *var, const shape *s,
                         bool open);

#endif
