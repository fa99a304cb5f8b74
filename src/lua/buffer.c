/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Buffers: views of the runtime's memory with an element type. A slice is a
 * second view of the same memory. */
#include "lua/buffer.h"

#include <math.h>
#include <string.h>

/* ---- boxes --------------------------------------------------------------- */

tps_lua_buffer *tps_push_buffer(lua_State *L, int dtype, int64_t count) {
  tps_lua_buffer *box =
      (tps_lua_buffer *)tps_new(L, TPS_TYPE_BUFFER, sizeof(tps_lua_buffer), 0);
  box->dtype = (uint8_t)dtype;
  box->size = tps_dtype_sizes[dtype];
  box->count = count;
  return box;
}

static int buffer_gc(lua_State *L) {
  tps_lua_buffer *box = (tps_lua_buffer *)tps_check(L, 1, TPS_TYPE_BUFFER);
  tps_memory *memory = box->memory;
  box->memory = NULL;
  tps_break_seal(box);
  if (memory != NULL) tps_memory_unref(memory);
  return 0;
}

/* Says, other than the collector, on which line the memory was given back. */
static int buffer_close(lua_State *L) {
  tps_lua_buffer *box = (tps_lua_buffer *)tps_check(L, 1, TPS_TYPE_BUFFER);
  tps_memory *memory = box->memory;
  if (memory == NULL) return 0;
  if (box->head.lua->context != NULL)
    tps_site_set_told(L, box->head.lua, memory->device);
  box->memory = NULL;
  tps_memory_close(memory);
  return 0;
}

/* ---- making -------------------------------------------------------------- */

/* Where a constructor puts its memory: fields stream and device of `index`; the
 * place on the stack behind it keeps the stream. */
static tps_stream *option_place(lua_State *L, int index) {
  static const char *const names[] = {"stream", "device", "ipc", NULL};
  char a[32], b[32];
  if (lua_isnoneornil(L, index)) return tps_current_stream(L, NULL);
  tps_check_options(L, index, names);
  tps_device *device = tps_option_device(L, index, "device");
  tps_stream *stream = tps_option_stream_kept(L, index, "stream", index + 1);
  if (stream == NULL) return tps_current_stream(L, device);
  if (device != NULL && device != stream->device)
    tps_misuse(L, "the stream belongs to %s, the device asked for is %s",
               tps_device_label(stream->device, a, sizeof a),
               tps_device_label(device, b, sizeof b));
  return stream;
}

static int64_t check_count(lua_State *L, int index, int dtype) {
  lua_Integer count = tps_check_integer(L, index);
  if (count < 0) {
    lua_pushfstring(L, "the count must not be negative, got %I",
                    (LUAI_UACINT)count);
    tps_argument_error(L, index, lua_tostring(L, -1));
  }
  if (count > INT64_MAX / tps_dtype_sizes[dtype]) {
    lua_pushfstring(L, "%I elements of %s are more bytes than there can be",
                    (LUAI_UACINT)count, tps_dtype_names[dtype]);
    tps_argument_error(L, index, lua_tostring(L, -1));
  }
  return count;
}

static int64_t string_count(lua_State *L, int index, int dtype) {
  size_t bytes = lua_rawlen(L, index);
  unsigned size = tps_dtype_sizes[dtype];
  if (bytes % size != 0) {
    lua_pushfstring(L,
                    "%I bytes are no whole number of %s elements (%d bytes "
                    "each)",
                    (LUAI_UACINT)bytes, tps_dtype_names[dtype], (int)size);
    tps_argument_error(L, index, lua_tostring(L, -1));
  }
  return (int64_t)(bytes / size);
}

const void *tps_source_bytes(lua_State *L, int index, int dtype,
                             int64_t *count) {
  if (lua_type(L, index) == LUA_TSTRING) {
    *count = string_count(L, index, dtype);
    return lua_tostring(L, index);
  }
  if (lua_type(L, index) != LUA_TTABLE)
    tps_type_error(L, index, "table, string or tpstream.Buffer");
  *count = luaL_len(L, index);
  if (*count < 0 || *count > INT64_MAX / 8)
    tps_argument_error(L, index, "the table's length is not sensible");
  return tps_push_elements(L, index, dtype, *count);
}

/* What a constructor is filled with: NULL for a count. */
static const void *initial_bytes(lua_State *L, int index, int dtype,
                                 int64_t *count) {
  switch (lua_type(L, index)) {
  case LUA_TNUMBER: *count = check_count(L, index, dtype); return NULL;
  case LUA_TTABLE:
  case LUA_TSTRING: return tps_source_bytes(L, index, dtype, count);
  default: tps_type_error(L, index, "number, table or string"); return NULL;
  }
}

/* One attempt: *stream is where the options at `options` want it. */
static int allocate_once(lua_State *L, const tps_lua_buffer *box, int options,
                         tps_stream **stream, tps_memory **memory,
                         tps_error *err) {
  uint64_t bytes = tps_buffer_bytes(box);
  bool shared = tps_option_boolean(L, options, "ipc", false);
  *stream = option_place(L, options);
  tps_site_set_told(L, box->head.lua, (*stream)->device);
  tps_before_wait(box->head.lua);
  if (!shared || bytes == 0)
    return tps_memory_allocate(*stream, bytes, memory, err);
  return tps_memory_share((*stream)->context, (*stream)->device, bytes, memory,
                          err);
}

/* Gives *box memory; with one full collection, which may run finalizers that
 * close a stream, and one retry when the device's memory is exhausted. Returns
 * the stream. */
static tps_stream *allocate(lua_State *L, tps_lua_buffer *box, int options) {
  tps_stream *stream;
  tps_memory *memory;
  tps_error err;
  int code = allocate_once(L, box, options, &stream, &memory, &err);
  if (code == TPS_OUT_OF_MEMORY) {
    lua_gc(L, LUA_GCCOLLECT);
    code = allocate_once(L, box, options, &stream, &memory, &err);
  }
  if (code != 0) tps_raise(L, &err);
  box->memory = memory;
  tps_memory_tell(memory, tps_dtype_names[box->dtype]);
  return stream;
}

void tps_buffer_pin(lua_State *L, tps_lua_buffer *box, tps_device *device,
                    bool managed) {
  tps_context *context = tps_open(L)->context;
  tps_memory *memory;
  tps_error err;
  uint64_t bytes = tps_buffer_bytes(box);
  int code = tps_memory_pin(context, device, bytes, managed, &memory, &err);
  if (code == TPS_OUT_OF_MEMORY || code == TPS_NO_HOST_MEMORY) {
    lua_gc(L, LUA_GCCOLLECT);
    code = tps_memory_pin(context, device, bytes, managed, &memory, &err);
  }
  if (code != 0) tps_raise(L, &err);
  box->memory = memory;
  tps_memory_tell(memory, tps_dtype_names[box->dtype]);
}

/* Queues the write of all of *box; on failure the buffer is closed. */
static void write_all(lua_State *L, tps_lua_buffer *box, tps_stream *stream,
                      const void *bytes) {
  tps_error err;
  if (tps_memory_write(stream, box->memory, 0, bytes, tps_buffer_bytes(box),
                       &err) == 0)
    return;
  tps_memory_unref(box->memory);
  box->memory = NULL;
  tps_raise(L, &err);
}

static int buffer_new(lua_State *L) {
  tps_lua *lua = tps_open(L);
  int dtype = tps_check_dtype(L, 1);
  int64_t count;
  lua_settop(L, 4);
  if (!lua_isnil(L, 3)) option_place(L, 3); /* complains before converting */
  const void *bytes = initial_bytes(L, 2, dtype, &count);
  tps_lua_buffer *box = tps_push_buffer(L, dtype, count);
  tps_stream *stream = allocate(L, box, 3);
  if (bytes == NULL || count == 0) return 1;
  tps_before_wait(lua);
  write_all(L, box, stream, bytes);
  tps_memory_changed(box->memory, TPS_MEMORY_SETTLED);
  return 1;
}

static int buffer_zeros(lua_State *L) {
  int dtype = tps_check_dtype(L, 1);
  tps_check_type(L, 2, LUA_TNUMBER);
  int64_t count = check_count(L, 2, dtype);
  tps_error err;
  lua_settop(L, 4);
  tps_lua_buffer *box = tps_push_buffer(L, dtype, count);
  tps_stream *stream = allocate(L, box, 3);
  if (count == 0) return 1;
  if (tps_memory_fill(stream, box->memory, 0, 0, box->size, (uint64_t)count,
                      &err) != 0)
    return tps_raise(L, &err);
  tps_memory_changed(box->memory, TPS_MEMORY_SETTLED);
  return 1;
}

/* tp.pinned and tp.managed. */
static int new_pinned(lua_State *L, bool managed) {
  static const char *const names[] = {"device", NULL};
  tps_lua *lua = tps_open(L);
  int dtype = tps_check_dtype(L, 1);
  int64_t count;
  lua_settop(L, 3);
  tps_check_options(L, 3, names);
  tps_device *device = tps_option_device(L, 3, "device");
  const void *bytes = initial_bytes(L, 2, dtype, &count);
  tps_lua_buffer *box = tps_push_buffer(L, dtype, count);
  if (device == NULL) device = tps_current_device(L);
  tps_site_set(L, lua);
  tps_buffer_pin(L, box, device, managed);
  /* Fresh memory that nothing queued can touch: filled at once. */
  if (bytes != NULL && count > 0)
    memcpy(box->memory->host, bytes, tps_buffer_bytes(box));
  return 1;
}

static int buffer_pinned(lua_State *L) { return new_pinned(L, false); }

static int buffer_managed(lua_State *L) { return new_pinned(L, true); }

/* The limit in force before; math.huge is none. */
static int buffer_memory_limit(lua_State *L) {
  tps_context *context = tps_open(L)->context;
  uint64_t before = tps_memory_get_limit(context);
  if (!lua_isnoneornil(L, 1)) {
    uint64_t bytes = UINT64_MAX;
    if (lua_type(L, 1) != LUA_TNUMBER || lua_tonumber(L, 1) != HUGE_VAL) {
      lua_Integer given = tps_check_integer(L, 1);
      if (given < 0) {
        lua_pushfstring(L, "the limit must not be negative, got %I",
                        (LUAI_UACINT)given);
        tps_argument_error(L, 1, lua_tostring(L, -1));
      }
      bytes = (uint64_t)given;
    }
    tps_memory_limit(context, bytes);
  }
  if (before == UINT64_MAX) lua_pushnumber(L, HUGE_VAL);
  else lua_pushinteger(L, (lua_Integer)before);
  return 1;
}

/* ---- views ---------------------------------------------------------------- */

static int buffer_slice(lua_State *L) {
  tps_lua_buffer *b = tps_buffer_self(L);
  int64_t offset, count;
  tps_check_integer(L, 2);
  tps_check_range(L, 2, b->count, &offset, &count);
  tps_lua_buffer *slice = tps_push_buffer(L, b->dtype, count);
  slice->first = b->first + (uint64_t)offset * b->size;
  slice->memory = tps_memory_ref(b->memory);
  return 1;
}

/* The same bytes as elements of another type. */
static int buffer_as(lua_State *L) {
  tps_lua_buffer *b = tps_buffer_self(L);
  int dtype = tps_check_dtype(L, 2);
  unsigned size = tps_dtype_sizes[dtype];
  uint64_t bytes = tps_buffer_bytes(b);
  if (bytes % size != 0) {
    lua_pushfstring(L,
                    "%I bytes are no whole number of %s elements (%d bytes "
                    "each)",
                    (LUAI_UACINT)bytes, tps_dtype_names[dtype], (int)size);
    tps_argument_error(L, 2, lua_tostring(L, -1));
  }
  if ((b->memory->address + b->first) % size != 0) {
    lua_pushfstring(L,
                    "the slice begins at byte %I of its memory, where elements "
                    "of %s (%d bytes) are misaligned",
                    (LUAI_UACINT)b->first, tps_dtype_names[dtype], (int)size);
    tps_argument_error(L, 2, lua_tostring(L, -1));
  }
  tps_lua_buffer *view = tps_push_buffer(L, dtype, (int64_t)(bytes / size));
  view->first = b->first;
  view->memory = tps_memory_ref(b->memory);
  return 1;
}

/* ---- telling ------------------------------------------------------------- */

static int buffer_count(lua_State *L) {
  lua_pushinteger(L, tps_buffer_self(L)->count);
  return 1;
}

static int buffer_dtype(lua_State *L) {
  lua_pushstring(L, tps_dtype_names[tps_buffer_self(L)->dtype]);
  return 1;
}

static int buffer_nbytes(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)tps_buffer_bytes(tps_buffer_self(L)));
  return 1;
}

static int buffer_ptr(lua_State *L) {
  tps_lua_buffer *b = tps_buffer_self(L);
  lua_pushinteger(L, (lua_Integer)tps_memory_expose(b->memory) +
                         (lua_Integer)b->first);
  return 1;
}

static int buffer_device(lua_State *L) {
  tps_push_device(L, tps_buffer_self(L)->memory->device);
  return 1;
}

static int buffer_tostring(lua_State *L) {
  tps_lua_buffer *b = (tps_lua_buffer *)tps_check(L, 1, TPS_TYPE_BUFFER);
  char label[32];
  if (b->memory == NULL) {
    lua_pushliteral(L, "tpstream.Buffer (closed)");
    return 1;
  }
  tps_device_label(b->memory->device, label, sizeof label);
  const char *pinned = b->memory->managed                     ? ", managed"
                       : b->memory->kind == TPS_MEMORY_PINNED ? ", pinned"
                                                              : "";
  lua_pushfstring(L, "tpstream.Buffer (%s, %s[%I]%s)", label,
                  tps_dtype_names[b->dtype], (LUAI_UACINT)b->count, pinned);
  return 1;
}

static const luaL_Reg buffer_meta[] = {{"__tostring", buffer_tostring},
                                       {"__gc", buffer_gc},
                                       {"__close", buffer_close},
                                       {"__len", buffer_count},
                                       {"__index", tps_buffer_index},
                                       {"__newindex", tps_buffer_newindex},
                                       {NULL, NULL}};
static const luaL_Reg buffer_methods[] = {
    {"close", buffer_close},         {"write", tps_buffer_write},
    {"read", tps_buffer_read},       {"bytes", tps_buffer_read_bytes},
    {"copy_to", tps_buffer_copy_to}, {"fill", tps_buffer_fill},
    {"slice", buffer_slice},         {"as", buffer_as},
    {"dlpack", tps_buffer_dlpack},   {"ipc_handle", tps_buffer_ipc_handle},
    {"count", buffer_count},         {"dtype", buffer_dtype},
    {"nbytes", buffer_nbytes},       {"ptr", buffer_ptr},
    {"device", buffer_device},       {NULL, NULL}};
static const luaL_Reg buffer_functions[] = {
    {"buffer", buffer_new},
    {"zeros", buffer_zeros},
    {"pinned", buffer_pinned},
    {"managed", buffer_managed},
    {"read_file", tps_buffer_read_file},
    {"from_dlpack", tps_buffer_from_dlpack},
    {"open_ipc", tps_buffer_open_ipc},
    {"memory_limit", buffer_memory_limit},
    {NULL, NULL}};

void tps_buffer_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_BUFFER, buffer_meta, buffer_methods);
  tps_functions(L, buffer_functions);
}
