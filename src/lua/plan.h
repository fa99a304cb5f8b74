/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What is done with an argument, by its parameter's type: a plan is made once for
 * each kernel (plan.c), and followed at each launch (pack.c). */
#ifndef TPS_LUA_PLAN_H
#define TPS_LUA_PLAN_H

#include "lua/state.h"

typedef enum tps_argument_kind {
  ARG_INTEGER, /* least … greatest, in `size` bytes */
  ARG_BITS,    /* the same of unknown signedness: bool and halves, too */
  ARG_ELEMENT, /* as an element of `dtype`: floats, uint64 */
  ARG_FLOAT32,
  ARG_BOOL,
  ARG_POINTER, /* Buffer of `dtype` (opaque: any) or nil */
  ARG_ADDRESS, /* Buffer, nil or integer */
  ARG_STRUCT,  /* a string of `size` bytes */
  ARG_RAW      /* only the size is known: a string, and what else is plain */
} tps_argument_kind;

/* Where only the width is known a boolean (1 byte) and tp.f16's (2 bytes)
 * serve, too: writes it; false: it is none. */
bool tps_put_special(lua_State *L, const tps_plan *p, int index, void *to);
/* Pushes "300 does not fit 8 bits (-128 to 255)". */
void tps_push_bits_misfit(lua_State *L, int index, const tps_plan *p);

/* A plain value for that parameter, in p->size bytes. */
tps_fit tps_plan_convert(lua_State *L, int index, const tps_plan *p, void *to);
/* Pushes why it did not fit. */
const char *tps_plan_misfit(lua_State *L, int index, const tps_plan *p,
                            tps_fit fit);

#endif
