/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the decoder tells the handlers of textures and surfaces. Operands of
 * such an instruction lie in rows that follow one another: four of data, each
 * as wide as a row64, at `d`, then the rest, 32 bits wide, at `b`. `a` is the
 * row of handles, `count` how many elements the data has. */
#ifndef TPS_SIM_ENGINE_TEXTURE_H
#define TPS_SIM_ENGINE_TEXTURE_H

#include "sim/engine_core.h"
#include "sim/textures.h"

/* In imm: dimensions of the geometry in the low two bits, then flags. */
enum {
  VIEW_DIMENSIONS = 3,
  VIEW_LAYERED = 4, /* the layer comes first */
  VIEW_CUBE = 8,
  VIEW_INTEGER = 16, /* coordinates */
  VIEW_CLAMP = 32,   /* surfaces; neither: a fault when out of range */
  VIEW_ZERO = 64,
  VIEW_FORMATTED = 128, /* .p: coordinates in texels */
  VIEW_SIGNED = 256,
  VIEW_SHIFT = 16 /* the channel, the query, the operation */
};

/* What txq and suq ask for. */
enum {
  ASK_WIDTH,
  ASK_HEIGHT,
  ASK_DEPTH,
  ASK_LAYERS,
  ASK_NORMALIZED,
  ASK_DATA_TYPE,
  ASK_ORDER,
  ASK_ONE /* mipmap levels, samples */
};

/* What sured does. */
enum { RED_ADD, RED_MIN, RED_MAX, RED_BAND, RED_BOR };

/* The view of a lane's handle, or a fault. */
const tps_sim_view *tps_sim_view_of(engine *e, const insn *i, unsigned lane,
                                    bool surface);

/* What a lane of tex or tld4 is about to read; a fault, if it will be one. */
tps_sim_texels tps_sim_texels_read(engine *e, const insn *i, unsigned lane);
/* The bytes that a lane of suld, sust or sured is about to touch, from the first
 * texel; false: none. A fault, if it will be one. */
bool tps_sim_surface_touched(engine *e, const insn *i, unsigned lane,
                             uint64_t *at, unsigned *bytes);

#endif
