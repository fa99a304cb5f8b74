/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The elements of buffers on their way: written, read, copied, filled. */
#include "lua/buffer.h"

/* Streams are looked up last before they are used, and the buffers checked once
 * more: making a default stream's object may run a script's finalizers. */

/* Where the operations of the buffer at `index` are queued: on the current
 * stream of its device; what serves every device, on the current one's. */
static tps_stream *stream_for(lua_State *L, int index) {
  const tps_memory *memory = tps_check_buffer(L, index)->memory;
  tps_device *device = memory->device;
  bool everywhere = memory->kind == TPS_MEMORY_PINNED;
  tps_stream *stream = tps_current_stream(L, everywhere ? NULL : device);
  if (stream->device->kind != device->kind)
    stream = tps_current_stream(L, device);
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
  bool waits = to->memory->device->kind != from->memory->device->kind;
  uint64_t a = to->memory->address + at, b = from->memory->address + begin;
  if (!waits && a != b && (a < b ? b - a : a - b) < bytes)
    tps_misuse(L, "source and destination of a copy overlap");
  tps_site_set(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
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

int tps_buffer_write(lua_State *L) {
  tps_lua_buffer *to = tps_buffer_self(L);
  lua_Integer first = tps_opt_integer(L, 3, 1);
  int64_t count;
  tps_error err;
  if (tps_to(L, 2, TPS_TYPE_BUFFER) != NULL) return write_buffer(L, to, first);
  const void *bytes = tps_source_bytes(L, 2, to->dtype, &count);
  to = tps_buffer_self(L); /* the table's metamethods may have closed it */
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

int tps_buffer_read(lua_State *L) {
  tps_lua_buffer *from = tps_buffer_self(L);
  int64_t offset, count;
  tps_check_range(L, 2, from->count, &offset, &count);
  void *scratch = lua_newuserdatauv(L, (size_t)count * from->size, 0);
  read_elements(L, from, offset, count, scratch);
  tps_elements_table(L, from->dtype, scratch, count);
  return 1;
}

int tps_buffer_read_bytes(lua_State *L) {
  tps_lua_buffer *from = tps_buffer_self(L);
  int64_t offset, count;
  luaL_Buffer b;
  tps_check_range(L, 2, from->count, &offset, &count);
  size_t bytes = (size_t)count * from->size;
  read_elements(L, from, offset, count, luaL_buffinitsize(L, &b, bytes));
  luaL_pushresultsize(&b, bytes);
  return 1;
}

/* ---- from buffer to buffer ----------------------------------------------- */

/* What copy_to was asked for; all but rows in elements. */
typedef struct request {
  lua_Integer first, at; /* from 1 on */
  lua_Integer count;
  tps_rows rows; /* count 0: one piece */
  bool by_rows;
} request;

/* Bytes that are whole elements. */
static uint64_t option_bytes(lua_State *L, int index, const char *name,
                             const tps_lua_buffer *b, uint64_t otherwise) {
  lua_Integer value =
      tps_option_integer(L, index, name, (lua_Integer)otherwise);
  if (value < 0)
    tps_option_error(L, index, name, "must not be negative, got %lld",
                     (long long)value);
  if (value % b->size != 0)
    tps_option_error(L, index, name,
                     "%lld bytes are no whole number of %s elements (%d bytes "
                     "each)",
                     (long long)value, tps_dtype_names[b->dtype], b->size);
  return (uint64_t)value;
}

/* The elements from the first of the first row to the last of the last. */
static int64_t check_rows(lua_State *L, int index, const char *name,
                          const tps_rows *rows, uint64_t pitch,
                          const tps_lua_buffer *b) {
  uint64_t span;
  if (rows->count == 0 || rows->bytes == 0) return 0;
  if (pitch < rows->bytes)
    tps_option_error(
        L, index, name, "%llu bytes are less than a row of %llu bytes",
        (unsigned long long)pitch, (unsigned long long)rows->bytes);
  if (__builtin_mul_overflow(rows->count - 1, pitch, &span) ||
      __builtin_add_overflow(span, rows->bytes, &span) || span > INT64_MAX)
    tps_option_error(L, index, name,
                     "%llu rows that many bytes apart are more than there can "
                     "be",
                     (unsigned long long)rows->count);
  return (int64_t)(span / b->size);
}

/* `row_bytes` is what the rows have, `pitch` and `to_pitch` the bytes from one
 * row to the next in the source and in the destination. */
static void read_rows(lua_State *L, int index, const tps_lua_buffer *from,
                      const tps_lua_buffer *to, request *r) {
  tps_rows *rows = &r->rows;
  lua_Integer count = tps_option_integer(L, index, "rows", 0);
  if (count < 0)
    tps_option_error(L, index, "rows", "must not be negative, got %lld",
                     (long long)count);
  if (tps_option(L, index, "row_bytes") == LUA_TNIL)
    tps_option_error(L, index, "row_bytes", "needed with 'rows'");
  if (tps_option(L, index, "count") != LUA_TNIL)
    tps_option_error(L, index, "count", "not together with 'rows'");
  lua_pop(L, 2);
  rows->count = (uint64_t)count;
  rows->bytes = option_bytes(L, index, "row_bytes", from, 0);
  rows->from_pitch = option_bytes(L, index, "pitch", from, rows->bytes);
  rows->to_pitch = option_bytes(L, index, "to_pitch", to, rows->bytes);
  tps_check_span(L, r->first,
                 check_rows(L, index, "pitch", rows, rows->from_pitch, from),
                 from->count);
  tps_check_span(L, r->at,
                 check_rows(L, index, "to_pitch", rows, rows->to_pitch, to),
                 to->count);
}

static void read_count(lua_State *L, int index, const tps_lua_buffer *from,
                       const tps_lua_buffer *to, request *r) {
  static const char *const with_rows[] = {"row_bytes", "pitch", "to_pitch"};
  bool beyond = r->first < 1 || r->first - 1 > from->count;
  for (int i = 0; i < 3; i++) {
    if (tps_option(L, index, with_rows[i]) != LUA_TNIL)
      tps_option_error(L, index, with_rows[i], "only together with 'rows'");
    lua_pop(L, 1);
  }
  r->count = tps_option_integer(L, index, "count",
                                beyond ? 1 : from->count - (r->first - 1));
  if (r->count < 0)
    tps_option_error(L, index, "count", "must not be negative, got %lld",
                     (long long)r->count);
  tps_check_span(L, r->first, r->count, from->count);
  tps_check_span(L, r->at, r->count, to->count);
}

static void copy_rows(lua_State *L, tps_lua_buffer *to, tps_lua_buffer *from,
                      const request *r, tps_stream *stream) {
  tps_error err;
  uint64_t at = to->first + (uint64_t)(r->at - 1) * to->size;
  uint64_t begin = from->first + (uint64_t)(r->first - 1) * from->size;
  if (r->rows.count == 0 || r->rows.bytes == 0) return;
  tps_site_set(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  bool waits = to->memory->device->kind != from->memory->device->kind;
  if (tps_memory_copy_rows(stream, to->memory, at, from->memory, begin,
                           &r->rows, &err) != 0)
    tps_raise(L, &err);
  if (waits) tps_safe_point(L);
}

int tps_buffer_copy_to(lua_State *L) {
  static const char *const names[] = {"first",  "count",    "at",
                                      "stream", "rows",     "row_bytes",
                                      "pitch",  "to_pitch", NULL};
  tps_lua_buffer *from = tps_buffer_self(L);
  tps_lua_buffer *to = tps_check_buffer(L, 2);
  request r = {0};
  tps_check_options(L, 3, names);
  check_same_dtype(L, to, from);
  r.first = tps_option_integer(L, 3, "first", 1);
  r.at = tps_option_integer(L, 3, "at", 1);
  r.by_rows = tps_option(L, 3, "rows") != LUA_TNIL;
  lua_pop(L, 1);
  if (r.by_rows) read_rows(L, 3, from, to, &r);
  else read_count(L, 3, from, to, &r);
  tps_stream *stream = tps_option_stream_kept(L, 3, "stream", 3);
  if (stream == NULL) stream = copy_stream(L, 2, 1);
  tps_check_buffer(L, 2); /* the options' metamethods may have closed them */
  tps_check_buffer(L, 1);
  if (r.by_rows) copy_rows(L, to, from, &r, stream);
  else copy_elements(L, to, r.at - 1, from, r.first - 1, r.count, stream);
  return 0;
}

/* ---- filling ------------------------------------------------------------- */

int tps_buffer_fill(lua_State *L) {
  tps_lua_buffer *b = tps_buffer_self(L);
  uint64_t pattern = 0;
  tps_error err;
  tps_check_any(L, 2);
  bool named = tps_capture_value(L, 2, b->dtype);
  tps_fit fit = tps_element_from(L, 2, b->dtype, &pattern);
  if (fit != TPS_FITS)
    tps_argument_error(L, 2, tps_push_misfit(L, 2, b->dtype, fit));
  if (b->count == 0) return 0;
  tps_stream *stream = stream_for(L, 1);
  tps_site_set(L, tps_lua_of(L));
  if (tps_memory_fill(stream, b->memory, b->first, pattern, b->size,
                      (uint64_t)b->count, &err) != 0)
    return tps_raise(L, &err);
  if (named) tps_capture_launched(tps_lua_of(L), stream);
  return 0;
}
