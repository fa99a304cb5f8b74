/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Linking: several PTX texts, compiled as relocatable device code, become one. What
 * one declares (.extern) another defines (.visible, .weak); what is a text's own
 * gets another name where two texts use the same. */
#ifndef TPS_PTX_LINK_H
#define TPS_PTX_LINK_H

#include "base/error.h"

#include <stddef.h>

typedef struct tps_ptx_input {
  const char *text; /* ends in NUL */
  const char *name; /* for messages: "module 1 ('a.cu')" */
} tps_ptx_input;

/* *out is owned by the caller. Errors (INVALID_PTX) name the symbol and the modules:
 * defined twice, defined nowhere, targets that differ. */
int tps_ptx_link(const tps_ptx_input *inputs, size_t count, char **out,
                 tps_error *err);

#endif
