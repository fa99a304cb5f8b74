/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What lua/tpstream/kernels.lua, the kernel library, needs of C; and its place
 * in the library's table: tp.kernels and tp.map. */
#include "lua/embedded.h"
#include "lua/state.h"
#include "runtime/product.h"

#include <stdlib.h>
#include <string.h>

/* The text of an embedded file, or nil. */
static int kernels_text(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  for (size_t i = 0; i < tps_embedded_count; i++) {
    const struct tps_embedded *file = &tps_embedded[i];
    if (strcmp(file->name, name) != 0) continue;
    lua_pushlstring(L, file->text, file->size);
    return 1;
  }
  lua_pushnil(L);
  return 1;
}

/* nil when two buffers share no byte, else how many bytes the second begins
 * after the first. By address: views of variables and of DLPack tensors are
 * memory of their own each. */
static int kernels_overlap(lua_State *L) {
  const tps_lua_buffer *a = tps_check_buffer(L, 1);
  const tps_lua_buffer *b = tps_check_buffer(L, 2);
  uint64_t a_begin = a->memory->address + a->first;
  uint64_t b_begin = b->memory->address + b->first;
  bool apart = a->memory->device->kind != b->memory->device->kind ||
               a->count == 0 || b->count == 0 ||
               a_begin + tps_buffer_bytes(a) <= b_begin ||
               b_begin + tps_buffer_bytes(b) <= a_begin;
  if (apart) lua_pushnil(L);
  else lua_pushinteger(L, (lua_Integer)(b_begin - a_begin));
  return 1;
}

/* Whether a value is a Buffer, open or closed. */
static int kernels_is_buffer(lua_State *L) {
  lua_pushboolean(L, tps_to(L, 1, TPS_TYPE_BUFFER) != NULL);
  return 1;
}

/* Kernel names → the same, whose messages name its parameters and whose forall
 * passes the last one, the count, on by itself. */
static int kernels_counted(lua_State *L) {
  tps_lua_kernel *kernel = tps_check_kernel(L, 1);
  const char *names = luaL_checkstring(L, 2);
  free(kernel->names);
  kernel->names = strdup(names);
  if (kernel->names == NULL) return luaL_error(L, "not enough memory");
  lua_settop(L, 1);
  return 1;
}

/* ---- products by the device's library ------------------------------------ */

/* What kernels_multiply is given of one: its buffer, and its two strides. */
static tps_matrix matrix_at(lua_State *L, int buffer, int row) {
  const tps_lua_buffer *b = tps_check_buffer(L, buffer);
  tps_matrix m = {.row = luaL_checkinteger(L, row),
                  .step = luaL_checkinteger(L, row + 1),
                  .dtype = b->dtype};
  return m;
}

static tps_operand operand_at(lua_State *L, int buffer) {
  const tps_lua_buffer *b = tps_check_buffer(L, buffer);
  return (tps_operand){b->memory, b->first, tps_buffer_bytes(b)};
}

/* a b c m n k batch a.row a.step b.row b.step c.row c.step alpha beta
 * transpose_a transpose_b → whether it was queued. All counts are above 0. */
static int kernels_multiply(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  tps_stream *stream = tps_current_stream(L, NULL);
  tps_product p = {.m = luaL_checkinteger(L, 4),
                   .n = luaL_checkinteger(L, 5),
                   .k = luaL_checkinteger(L, 6),
                   .batch = luaL_checkinteger(L, 7),
                   .a = matrix_at(L, 1, 8),
                   .b = matrix_at(L, 2, 10),
                   .c = matrix_at(L, 3, 12),
                   .alpha = luaL_checknumber(L, 14),
                   .beta = luaL_checknumber(L, 15)};
  p.a.transposed = lua_toboolean(L, 16);
  p.b.transposed = lua_toboolean(L, 17);
  tps_operand of[3] = {operand_at(L, 1), operand_at(L, 2), operand_at(L, 3)};
  tps_site_set(L, lua);
  tps_before_wait(lua);
  int code = tps_product_run(stream, &p, of, &err);
  if (code != 0 && code != TPS_NOT_SUPPORTED) return tps_raise(L, &err);
  lua_pushboolean(L, code == 0);
  return 1;
}

static const luaL_Reg kernels_native[] = {
    {"text", kernels_text},           {"overlap", kernels_overlap},
    {"is_buffer", kernels_is_buffer}, {"counted", kernels_counted},
    {"multiply", kernels_multiply},   {NULL, NULL}};

/* library state → the same */
void tps_kernels_open(lua_State *L) {
  tps_push_embedded(L, "kernels");
  lua_pushvalue(L, -3); /* library state chunk library */
  luaL_newlibtable(L, kernels_native);
  lua_pushvalue(L, -4);
  luaL_setfuncs(L, kernels_native, 1);
  lua_call(L, 2, 2); /* library state kernels map */
  lua_setfield(L, -4, "map");
  lua_setfield(L, -3, "kernels");
}
