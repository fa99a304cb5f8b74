/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What include/tpstream.h calls: the table of functions in the registry.
 *
 * They are called outside the library's own closures. So the looking ones tell a
 * box by its seal, which needs no upvalue, and the making ones do their work in
 * a closure with the state as its upvalue 1. */
#include "../include/tpstream.h"

#include <string.h>

#include "lua/api.h"
#include "lua/interface.h"
#include "lua/state.h"

#define SAME(name)                                                             \
  _Static_assert((int)TPSTREAM_##name == (int)TPS_##name, "enumerations differ")
SAME(CUDA);
SAME(SIM);
SAME(INT8);
SAME(UINT8);
SAME(INT16);
SAME(UINT16);
SAME(INT32);
SAME(UINT32);
SAME(INT64);
SAME(UINT64);
SAME(FLOAT16);
SAME(BFLOAT16);
SAME(FLOAT32);
SAME(FLOAT64);

/* ---- looking ------------------------------------------------------------- */

static void *box_at(lua_State *L, int index, tps_type type) {
  void *box = lua_touserdata(L, index);
  if (box == NULL || lua_rawlen(L, index) < sizeof(tps_head)) return NULL;
  return ((const tps_head *)box)->seal == tps_seal(box, type) ? box : NULL;
}

/* Callers compiled with an older header have a shorter struct. */
static void give(void *out, size_t wanted, const void *from, size_t size) {
  memcpy(out, from, wanted < size ? wanted : size);
}

static int to_stream(lua_State *L, int index, tpstream_stream *out,
                     size_t size) {
  tps_lua_stream *box = (tps_lua_stream *)box_at(L, index, TPS_TYPE_STREAM);
  if (box == NULL) return 0;
  const tps_stream *stream = box->stream;
  if (stream == NULL || box->head.lua->context == NULL) return -1;
  tpstream_stream s = {.handle =
                           (void *)(uintptr_t)tps_stream_driver_handle(stream),
                       .id = stream->id,
                       .kind = stream->device->kind,
                       .device = stream->device->ordinal,
                       .priority = stream->priority,
                       .blocking = stream->blocking,
                       .capturing = stream->capturing};
  give(out, size, &s, sizeof s);
  return 1;
}

static int to_buffer(lua_State *L, int index, tpstream_buffer *out,
                     size_t size) {
  tps_lua_buffer *box = (tps_lua_buffer *)box_at(L, index, TPS_TYPE_BUFFER);
  if (box == NULL) return 0;
  tps_memory *memory = box->memory;
  if (memory == NULL || box->head.lua->context == NULL) return -1;
  tpstream_buffer b = {.count = box->count,
                       .dtype = box->dtype,
                       .size = box->size,
                       .kind = memory->device->kind,
                       .device = memory->device->ordinal};
  if (memory->address != 0)
    b.data = (void *)(uintptr_t)(tps_memory_expose(memory) + box->first);
  if (memory->host != NULL) b.host = (unsigned char *)memory->host + box->first;
  give(out, size, &b, sizeof b);
  return 1;
}

/* ---- making -------------------------------------------------------------- */

/* → the closure of f with the state for an upvalue */
static void push_closure(lua_State *L, lua_CFunction f) {
  luaL_checkstack(L, 8, "tpstream");
  lua_getfield(L, LUA_REGISTRYINDEX, TPS_STATE_KEY);
  lua_pushcclosure(L, f, 1);
}

static void push_name(lua_State *L, const char *device) {
  if (device != NULL) lua_pushstring(L, device);
  else lua_pushnil(L);
}

static void push_stream(lua_State *L, const char *device, void *handle) {
  push_closure(L, tps_stream_external);
  lua_pushinteger(L, (lua_Integer)(uintptr_t)handle);
  push_name(L, device);
  lua_call(L, 2, 1);
}

static void check_memory(lua_State *L, const tpstream_memory *memory) {
  uintptr_t address = (uintptr_t)memory->data;
  if (memory->dtype < 0 || memory->dtype >= TPS_DTYPE_COUNT)
    tps_misuse(L, "element type %d (there are 0 to %d)", (int)memory->dtype,
               TPS_DTYPE_COUNT - 1);
  unsigned size = tps_dtype_sizes[memory->dtype];
  if (memory->count < 0 || memory->count > INT64_MAX / size)
    tps_misuse(L, "memory of %lld elements", (long long)memory->count);
  if (memory->count > 0 && address == 0)
    tps_misuse(L, "memory of %lld elements has no address",
               (long long)memory->count);
  if (address % size != 0)
    tps_misuse(L, "address 0x%llx is no multiple of %u, the size of %s",
               (unsigned long long)address, size,
               tps_dtype_names[memory->dtype]);
}

/* (tpstream_memory, name of a device or nil) */
static int buffer_over(lua_State *L) {
  const tpstream_memory *m = (const tpstream_memory *)lua_touserdata(L, 1);
  tps_device *device = tps_check_device(L, 2);
  tps_error err;
  check_memory(L, m);
  tps_lua_buffer *box = tps_push_buffer(L, m->dtype, m->count);
  tps_site_set_observed(L, tps_open(L));
  if (tps_memory_adopt(tps_open(L)->context, device, (uintptr_t)m->data,
                       tps_buffer_bytes(box), m->owner, m->release,
                       &box->memory, &err) == 0)
    return 1;
  box->memory = NULL;
  return tps_raise(L, &err);
}

static void push_buffer(lua_State *L, const char *device,
                        const tpstream_memory *memory, size_t size) {
  tpstream_memory m;
  memset(&m, 0, sizeof m);
  give(&m, sizeof m, memory, size);
  push_closure(L, buffer_over);
  lua_pushlightuserdata(L, &m);
  push_name(L, device);
  lua_call(L, 2, 1);
}

/* ---- the end ------------------------------------------------------------- */

/* As tps_lua_finish. */
static int finish(lua_State *L) {
  tps_error err;
  luaL_checkstack(L, 8, "tpstream");
  int code = tps_lua_finish(L);
  if (code != 0) return code;
  lua_getfield(L, LUA_REGISTRYINDEX, TPS_STATE_KEY);
  tps_lua *lua = (tps_lua *)lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (lua->context == NULL) return 0;
  code = tps_memory_settle(lua->context, &err);
  if (code == 0 || (lua->fault_told && tps_code_sticky(code))) return 0;
  tps_push_error(L, &err);
  return code;
}

static const tpstream_interface interface = {.interface_version =
                                                 TPSTREAM_INTERFACE,
                                             .size = sizeof(tpstream_interface),
                                             .version = TPSTREAM_VERSION,
                                             .to_stream = to_stream,
                                             .to_buffer = to_buffer,
                                             .push_stream = push_stream,
                                             .push_buffer = push_buffer,
                                             .finish = finish};

void tps_interface_open(lua_State *L) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)&interface);
  lua_setfield(L, LUA_REGISTRYINDEX, TPSTREAM_KEY);
}
