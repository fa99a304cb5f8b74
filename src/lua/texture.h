/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the constructors of textures and surfaces are asked for, as their table
 * of options says. All of these raise where it says something else. */
#ifndef TPS_LUA_TEXTURE_H
#define TPS_LUA_TEXTURE_H

#include "lua/state.h"

typedef struct tps_texture_request {
  int dtype; /* of the elements, set before all else */
  tps_array_shape shape;
  tps_sampling sampling;
  bool linear; /* bind the buffer itself */
  uint64_t pitch;
} tps_texture_request;

/* The extents given, all but a width that may follow from the count. */
void tps_texture_shape(lua_State *L, int options, tps_texture_request *r);
/* The shape against a buffer of `count` elements; finds a width that was not
 * given. `exact`: all of the elements have to be used. */
void tps_texture_fit(lua_State *L, tps_texture_request *r, int64_t count,
                     bool exact);
/* After the shape: whether the texture is bound to the buffer, and its pitch. */
void tps_texture_linear(lua_State *L, int options, tps_texture_request *r);
/* After the shape. */
void tps_texture_sampling(lua_State *L, int options, tps_texture_request *r);
/* Refuses options of the shape, for a texture over a Surface, whose array has
 * its shape already. */
void tps_texture_no_shape(lua_State *L, int options);
#endif
