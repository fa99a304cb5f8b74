/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Buffers: views of the runtime's memory with an element type. A slice is a
 * second view of the same memory. */
#include "lua/state.h"

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

static tps_lua_buffer *self(lua_State *L) { return tps_check_buffer(L, 1); }

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

/* Where a constructor puts its memory: fields stream and device of `index`. */
static tps_stream *option_place(lua_State *L, int index) {
  static const char *const names[] = {"stream", "device", NULL};
  char a[32], b[32];
  if (lua_isnoneornil(L, index)) return tps_current_stream(L, NULL);
  tps_check_options(L, index, names);
  tps_device *device = tps_option_device(L, index, "device");
  tps_stream *stream = tps_option_stream(L, index, "stream");
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

/* The bytes of the table or string at `index`; a table's are pushed. */
static const void *source_bytes(lua_State *L, int index, int dtype,
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
  case LUA_TSTRING: return source_bytes(L, index, dtype, count);
  default: tps_type_error(L, index, "number, table or string"); return NULL;
  }
}

/* Gives *box memory on the stream that the options at `options` name; with one
 * full collection and one retry when the device's memory is exhausted. Returns
 * the stream. */
static tps_stream *allocate(lua_State *L, tps_lua_buffer *box, int options) {
  uint64_t bytes = tps_buffer_bytes(box);
  tps_memory *memory;
  tps_error err;
  tps_stream *stream = option_place(L, options);
  tps_site_set_told(L, box->head.lua, stream->device);
  tps_before_wait(box->head.lua);
  int code = tps_memory_allocate(stream, bytes, &memory, &err);
  if (code == TPS_OUT_OF_MEMORY) {
    lua_gc(L, LUA_GCCOLLECT); /* may run finalizers that close a stream */
    stream = option_place(L, options);
    tps_site_set_told(L, box->head.lua, stream->device);
    tps_before_wait(box->head.lua);
    code = tps_memory_allocate(stream, bytes, &memory, &err);
  }
  if (code != 0) tps_raise(L, &err);
  box->memory = memory;
  tps_memory_tell(memory, tps_dtype_names[box->dtype]);
  return stream;
}

static void pin(lua_State *L, tps_lua_buffer *box, tps_device *device) {
  tps_context *context = tps_open(L)->context;
  tps_memory *memory;
  tps_error err;
  uint64_t bytes = tps_buffer_bytes(box);
  int code = tps_memory_pin(context, device, bytes, &memory, &err);
  if (code == TPS_OUT_OF_MEMORY || code == TPS_NO_HOST_MEMORY) {
    lua_gc(L, LUA_GCCOLLECT);
    code = tps_memory_pin(context, device, bytes, &memory, &err);
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
  lua_settop(L, 3);
  if (!lua_isnil(L, 3)) option_place(L, 3); /* complains before converting */
  const void *bytes = initial_bytes(L, 2, dtype, &count);
  tps_lua_buffer *box = tps_push_buffer(L, dtype, count);
  tps_stream *stream = allocate(L, box, 3);
  if (bytes == NULL || count == 0) return 1;
  tps_before_wait(lua);
  write_all(L, box, stream, bytes);
  return 1;
}

static int buffer_zeros(lua_State *L) {
  int dtype = tps_check_dtype(L, 1);
  tps_check_type(L, 2, LUA_TNUMBER);
  int64_t count = check_count(L, 2, dtype);
  tps_error err;
  lua_settop(L, 3);
  tps_lua_buffer *box = tps_push_buffer(L, dtype, count);
  tps_stream *stream = allocate(L, box, 3);
  if (count == 0) return 1;
  if (tps_memory_fill(stream, box->memory, 0, 0, box->size, (uint64_t)count,
                      &err) != 0)
    return tps_raise(L, &err);
  return 1;
}

static int buffer_pinned(lua_State *L) {
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
  pin(L, box, device);
  /* Fresh memory that nothing queued can touch: filled at once. */
  if (bytes != NULL && count > 0)
    memcpy(box->memory->host, bytes, tps_buffer_bytes(box));
  return 1;
}

/* ---- writing and reading ------------------------------------------------- */

/* Streams are looked up last before they are used, and the buffers checked once
 * more: making a default stream's object may run a script's finalizers. */

/* Where the operations of the buffer at `index` are queued. */
static tps_stream *stream_for(lua_State *L, int index) {
  tps_device *device = tps_check_buffer(L, index)->memory->device;
  tps_stream *stream = tps_current_stream(L, device);
  tps_check_buffer(L, index);
  return stream;
}

/* A copy's: the current stream if it is on the device of one of the two (device
 * memory counts first), else that device's current one. */
static tps_stream *copy_stream(lua_State *L, int to_index, int from_index) {
  const tps_memory *to = tps_check_buffer(L, to_index)->memory;
  const tps_memory *from = tps_check_buffer(L, from_index)->memory;
  tps_device *to_device = to->device, *from_device = from->device;
  bool use_to = to->kind != TPS_MEMORY_PINNED;
  bool use_from = from->kind != TPS_MEMORY_PINNED;
  if (!use_to && !use_from) use_to = use_from = true;
  tps_stream *stream = tps_current_stream(L, NULL);
  if (!(use_to && stream->device == to_device) &&
      !(use_from && stream->device == from_device))
    stream = tps_current_stream(L, use_to ? to_device : from_device);
  tps_check_buffer(L, to_index);
  tps_check_buffer(L, from_index);
  return stream;
}

static void check_same_dtype(lua_State *L, const tps_lua_buffer *to,
                             const tps_lua_buffer *from) {
  if (to->dtype != from->dtype)
    tps_misuse(L, "copy of %s elements into a buffer of %s",
               tps_dtype_names[from->dtype], tps_dtype_names[to->dtype]);
}

/* Elements [from_first, + count) of *from to element to_first of *to. */
static void copy_elements(lua_State *L, tps_lua_buffer *to, int64_t to_first,
                          tps_lua_buffer *from, int64_t from_first,
                          int64_t count, tps_stream *stream) {
  tps_error err;
  uint64_t bytes = (uint64_t)count * to->size;
  uint64_t at = to->first + (uint64_t)to_first * to->size;
  uint64_t begin = from->first + (uint64_t)from_first * from->size;
  if (count == 0) return;
  if (to->memory == from->memory && at != begin &&
      (at < begin ? begin - at : at - begin) < bytes)
    tps_misuse(L, "source and destination of a copy overlap");
  tps_site_set(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  bool waits = to->memory->device->kind != from->memory->device->kind;
  if (tps_memory_copy(stream, to->memory, at, from->memory, begin, bytes,
                      &err) != 0)
    tps_raise(L, &err);
  if (waits) tps_safe_point(L);
}

static int write_buffer(lua_State *L, tps_lua_buffer *to, lua_Integer first) {
  tps_lua_buffer *from = tps_check_buffer(L, 2);
  check_same_dtype(L, to, from);
  tps_check_span(L, first, from->count, to->count);
  tps_stream *stream = copy_stream(L, 1, 2);
  copy_elements(L, to, first - 1, from, 0, from->count, stream);
  return 0;
}

static int buffer_write(lua_State *L) {
  tps_lua_buffer *to = self(L);
  lua_Integer first = tps_opt_integer(L, 3, 1);
  int64_t count;
  tps_error err;
  if (tps_to(L, 2, TPS_TYPE_BUFFER) != NULL) return write_buffer(L, to, first);
  const void *bytes = source_bytes(L, 2, to->dtype, &count);
  to = self(L); /* the table's metamethods may have closed it */
  tps_check_span(L, first, count, to->count);
  if (count == 0) return 0;
  tps_stream *stream = stream_for(L, 1);
  tps_site_set(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  if (tps_memory_write(stream, to->memory,
                       to->first + (uint64_t)(first - 1) * to->size, bytes,
                       (uint64_t)count * to->size, &err) != 0)
    return tps_raise(L, &err);
  return 0;
}

/* Reads elements [offset, + count) into `to`, waiting for the stream. */
static void read_elements(lua_State *L, tps_lua_buffer *from, int64_t offset,
                          int64_t count, void *to) {
  tps_error err;
  if (count == 0) return;
  tps_stream *stream = stream_for(L, 1);
  tps_site_set(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  if (tps_memory_read(stream, from->memory,
                      from->first + (uint64_t)offset * from->size, to,
                      (uint64_t)count * from->size, &err) != 0)
    tps_raise(L, &err);
  tps_safe_point(L);
}

static int buffer_read(lua_State *L) {
  tps_lua_buffer *from = self(L);
  int64_t offset, count;
  tps_check_range(L, 2, from->count, &offset, &count);
  void *scratch = lua_newuserdatauv(L, (size_t)count * from->size, 0);
  read_elements(L, from, offset, count, scratch);
  tps_elements_table(L, from->dtype, scratch, count);
  return 1;
}

static int buffer_bytes(lua_State *L) {
  tps_lua_buffer *from = self(L);
  int64_t offset, count;
  luaL_Buffer b;
  tps_check_range(L, 2, from->count, &offset, &count);
  size_t bytes = (size_t)count * from->size;
  read_elements(L, from, offset, count, luaL_buffinitsize(L, &b, bytes));
  luaL_pushresultsize(&b, bytes);
  return 1;
}

static int buffer_copy_to(lua_State *L) {
  static const char *const names[] = {"first", "count", "at", "stream", NULL};
  tps_lua_buffer *from = self(L);
  tps_lua_buffer *to = tps_check_buffer(L, 2);
  tps_check_options(L, 3, names);
  check_same_dtype(L, to, from);
  lua_Integer first = tps_option_integer(L, 3, "first", 1);
  lua_Integer at = tps_option_integer(L, 3, "at", 1);
  bool beyond = first < 1 || first - 1 > from->count;
  lua_Integer count =
      tps_option_integer(L, 3, "count", beyond ? 1 : from->count - (first - 1));
  if (count < 0)
    tps_option_error(L, 3, "count", "must not be negative, got %lld",
                     (long long)count);
  tps_check_span(L, first, count, from->count);
  tps_check_span(L, at, count, to->count);
  tps_stream *stream = tps_option_stream(L, 3, "stream");
  if (stream == NULL) stream = copy_stream(L, 2, 1);
  copy_elements(L, to, at - 1, from, first - 1, count, stream);
  return 0;
}

static int buffer_fill(lua_State *L) {
  tps_lua_buffer *b = self(L);
  uint64_t pattern = 0;
  tps_error err;
  tps_check_any(L, 2);
  tps_fit fit = tps_element_from(L, 2, b->dtype, &pattern);
  if (fit != TPS_FITS)
    tps_argument_error(L, 2, tps_push_misfit(L, 2, b->dtype, fit));
  if (b->count == 0) return 0;
  tps_stream *stream = stream_for(L, 1);
  tps_site_set(L, tps_lua_of(L));
  if (tps_memory_fill(stream, b->memory, b->first, pattern, b->size,
                      (uint64_t)b->count, &err) != 0)
    return tps_raise(L, &err);
  return 0;
}

static int buffer_slice(lua_State *L) {
  tps_lua_buffer *b = self(L);
  int64_t offset, count;
  tps_check_integer(L, 2);
  tps_check_range(L, 2, b->count, &offset, &count);
  tps_lua_buffer *slice = tps_push_buffer(L, b->dtype, count);
  slice->first = b->first + (uint64_t)offset * b->size;
  slice->memory = tps_memory_ref(b->memory);
  return 1;
}

/* ---- elements of pinned memory ------------------------------------------- */

/* The address of element lua_tointeger(L, 2); raises when there is none. */
static unsigned char *element(lua_State *L, const tps_lua_buffer *b) {
  int whole;
  lua_Integer i = lua_tointegerx(L, 2, &whole);
  if (b->memory->host == NULL)
    tps_misuse(L, "elements of device memory can't be had by index: use read "
                  "and write, or pinned memory");
  if (!whole)
    tps_misuse(L, "index %s is not a whole number", luaL_tolstring(L, 2, NULL));
  if (i < 1 || i > b->count)
    tps_misuse(L, "index %lld of a buffer of %lld elements", (long long)i,
               (long long)b->count);
  return (unsigned char *)b->memory->host + b->first +
         (uint64_t)(i - 1) * b->size;
}

/* A kernel that runs may use the element at the same time: each is read and
 * written as a whole. */
static void load_element(void *to, const void *from, unsigned size) {
#define LOAD(type)                                                             \
  __atomic_load((const type *)from, (type *)to, __ATOMIC_ACQUIRE)
  switch (size) {
  case 1: LOAD(uint8_t); break;
  case 2: LOAD(uint16_t); break;
  case 4: LOAD(uint32_t); break;
  default: LOAD(uint64_t);
  }
#undef LOAD
}

static void store_element(void *to, void *from, unsigned size) {
#define STORE(type) __atomic_store((type *)to, (type *)from, __ATOMIC_RELEASE)
  switch (size) {
  case 1: STORE(uint8_t); break;
  case 2: STORE(uint16_t); break;
  case 4: STORE(uint32_t); break;
  default: STORE(uint64_t);
  }
#undef STORE
}

/* Upvalue 2: the methods. */
static int buffer_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TNUMBER) {
    tps_lua_buffer *b = self(L);
    uint64_t value;
    load_element(&value, element(L, b), b->size);
    tps_push_element(L, b->dtype, &value);
    return 1;
  }
  lua_settop(L, 2);
  lua_rawget(L, lua_upvalueindex(2));
  return 1;
}

static int buffer_newindex(lua_State *L) {
  tps_lua_buffer *b = self(L);
  if (lua_type(L, 2) != LUA_TNUMBER)
    return tps_misuse(L, "attempt to set a field of a buffer");
  unsigned char *to = element(L, b);
  uint64_t value;
  tps_fit fit = tps_element_from(L, 3, b->dtype, &value);
  if (fit != TPS_FITS)
    return tps_misuse(L, "element %lld: %s", (long long)lua_tointeger(L, 2),
                      tps_push_misfit(L, 3, b->dtype, fit));
  store_element(to, &value, b->size);
  return 0;
}

/* ---- telling ------------------------------------------------------------- */

static int buffer_count(lua_State *L) {
  lua_pushinteger(L, self(L)->count);
  return 1;
}

static int buffer_dtype(lua_State *L) {
  lua_pushstring(L, tps_dtype_names[self(L)->dtype]);
  return 1;
}

static int buffer_nbytes(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)tps_buffer_bytes(self(L)));
  return 1;
}

static int buffer_ptr(lua_State *L) {
  tps_lua_buffer *b = self(L);
  lua_pushinteger(L, (lua_Integer)tps_memory_expose(b->memory) +
                         (lua_Integer)b->first);
  return 1;
}

static int buffer_device(lua_State *L) {
  tps_push_device(L, self(L)->memory->device);
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
  const char *pinned = b->memory->kind == TPS_MEMORY_PINNED ? ", pinned" : "";
  lua_pushfstring(L, "tpstream.Buffer (%s, %s[%I]%s)", label,
                  tps_dtype_names[b->dtype], (LUAI_UACINT)b->count, pinned);
  return 1;
}

static const luaL_Reg buffer_meta[] = {{"__tostring", buffer_tostring},
                                       {"__gc", buffer_gc},
                                       {"__close", buffer_close},
                                       {"__len", buffer_count},
                                       {"__index", buffer_index},
                                       {"__newindex", buffer_newindex},
                                       {NULL, NULL}};
static const luaL_Reg buffer_methods[] = {{"close", buffer_close},
                                          {"write", buffer_write},
                                          {"read", buffer_read},
                                          {"bytes", buffer_bytes},
                                          {"copy_to", buffer_copy_to},
                                          {"fill", buffer_fill},
                                          {"slice", buffer_slice},
                                          {"count", buffer_count},
                                          {"dtype", buffer_dtype},
                                          {"nbytes", buffer_nbytes},
                                          {"ptr", buffer_ptr},
                                          {"device", buffer_device},
                                          {NULL, NULL}};
static const luaL_Reg buffer_functions[] = {{"buffer", buffer_new},
                                            {"zeros", buffer_zeros},
                                            {"pinned", buffer_pinned},
                                            {NULL, NULL}};

void tps_buffer_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_BUFFER, buffer_meta, buffer_methods);
  tps_functions(L, buffer_functions);
}
