/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The rooms of a Buffer: buffer.c makes it and tells about it, transfer.c moves
 * its elements, element.c has those that the host reaches, read_file.c fills one
 * from a file, dlpack.c exchanges it with other libraries. */
#ifndef TPS_LUA_BUFFER_H
#define TPS_LUA_BUFFER_H

#include "lua/state.h"

static inline tps_lua_buffer *tps_buffer_self(lua_State *L) {
  return tps_check_buffer(L, 1);
}
/* Gives *box, still closed, page-locked or managed memory for the device; with
 * one full collection and one retry when there is none. */
void tps_buffer_pin(lua_State *L, tps_lua_buffer *box, tps_device *device,
                    bool managed);
/* The bytes of the table or string at `index`; a table's are pushed. */
const void *tps_source_bytes(lua_State *L, int index, int dtype,
                             int64_t *count);

/* transfer.c: methods. */
int tps_buffer_write(lua_State *L);
int tps_buffer_read(lua_State *L);
int tps_buffer_read_bytes(lua_State *L);
int tps_buffer_copy_to(lua_State *L);
int tps_buffer_fill(lua_State *L);

/* element.c: metamethods; of the first, upvalue 2 is the table of methods. */
int tps_buffer_index(lua_State *L);
int tps_buffer_newindex(lua_State *L);

/* dlpack.c: b:dlpack and tp.from_dlpack */
int tps_buffer_dlpack(lua_State *L);
int tps_buffer_from_dlpack(lua_State *L);

/* shared.c: b:ipc_handle and tp.open_ipc */
int tps_buffer_ipc_handle(lua_State *L);
int tps_buffer_open_ipc(lua_State *L);

/* tp.read_file */
int tps_buffer_read_file(lua_State *L);

#endif
