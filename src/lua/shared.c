/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Buffers of several processes: b:ipc_handle and tp.open_ipc. */
#include <string.h>

#include "lua/buffer.h"

/* A handle: the driver's own 64 bytes, then where the view begins, its elements
 * and their type. */
#define OWN_BYTES (TPS_MEMORY_IPC_BYTES + 17)

int tps_buffer_ipc_handle(lua_State *L) {
  tps_lua_buffer *b = tps_buffer_self(L);
  char handle[OWN_BYTES], *p = handle + TPS_MEMORY_IPC_BYTES;
  tps_error err;
  tps_site_set(L, tps_lua_of(L));
  if (tps_memory_export(b->memory, handle, &err) != 0)
    return tps_raise(L, &err);
  memcpy(p, &b->first, 8);
  memcpy(p + 8, &b->count, 8);
  p[16] = (char)b->dtype;
  lua_pushlstring(L, handle, sizeof handle);
  return 1;
}

typedef struct view {
  uint64_t first;
  int64_t count; /* -1: all there is */
  int dtype;
} view;

/* From the bytes after the driver's; an argument for the type comes before. */
static view read_view(lua_State *L, const char *handle, size_t size) {
  view v = {0, -1, TPS_UINT8};
  if (size == OWN_BYTES) {
    const char *p = handle + TPS_MEMORY_IPC_BYTES;
    memcpy(&v.first, p, 8);
    memcpy(&v.count, p + 8, 8);
    v.dtype = (unsigned char)p[16];
    if (v.dtype >= TPS_DTYPE_COUNT || v.count < 0 || v.count > INT64_MAX / 8)
      tps_argument_error(L, 2, "no handle of a buffer's");
  } else if (size != TPS_MEMORY_IPC_BYTES) {
    lua_pushfstring(L, "a handle has %d or %d bytes, got %I",
                    TPS_MEMORY_IPC_BYTES, OWN_BYTES, (LUAI_UACINT)size);
    tps_argument_error(L, 2, lua_tostring(L, -1));
  }
  if (!lua_isnoneornil(L, 3)) {
    int dtype = tps_check_dtype(L, 3);
    if (v.count >= 0 && tps_dtype_sizes[dtype] != tps_dtype_sizes[v.dtype])
      v.count = v.count * tps_dtype_sizes[v.dtype] / tps_dtype_sizes[dtype];
    v.dtype = dtype;
  }
  return v;
}

/* tp.open_ipc(device, handle [, dtype]) */
int tps_buffer_open_ipc(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_device *device = tps_check_device(L, 1);
  size_t size;
  tps_memory *memory;
  tps_error err;
  if (lua_type(L, 2) != LUA_TSTRING) tps_type_error(L, 2, "string");
  const char *handle = lua_tolstring(L, 2, &size);
  view v = read_view(L, handle, size);
  tps_lua_buffer *box = tps_push_buffer(L, v.dtype, 0);
  tps_site_set(L, lua);
  if (tps_memory_import(lua->context, device, handle, &memory, &err) != 0)
    return tps_raise(L, &err);
  box->memory = memory;
  uint64_t left = v.first <= memory->bytes ? memory->bytes - v.first : 0;
  int64_t most = (int64_t)(left / box->size);
  if (v.count > most || v.first % box->size != 0)
    tps_argument_error(L, 2, "no handle of a buffer's");
  box->first = v.first;
  box->count = v.count < 0 ? most : v.count;
  return 1;
}
