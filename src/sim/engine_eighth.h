/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Flags of the conversions of 8-bit floats, in the `imm` of an instruction:
 * written by engine_decode_eighth.c, read by engine_eighth.c.
 */
#ifndef TPS_SIM_ENGINE_EIGHTH_H
#define TPS_SIM_ENGINE_EIGHTH_H

#include "sim/engine_core.h"

enum { EIGHTH_RELU = 1, EIGHTH_E5M2 = 2 /* else e4m3 */ };

#endif
