/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Textures and surfaces: making, and getting data in and out. */
#include "lua/texture.h"

#include <string.h>

/* ---- boxes --------------------------------------------------------------- */

static const char *what(tps_type type) {
  return type == TPS_TYPE_SURFACE ? "surface" : "texture";
}

/* A Texture or a Surface at `index`, or NULL; *type tells which. */
static tps_lua_view *to_view(lua_State *L, int index, tps_type *type) {
  *type = TPS_TYPE_TEXTURE;
  tps_lua_view *box = (tps_lua_view *)tps_to(L, index, TPS_TYPE_TEXTURE);
  if (box != NULL) return box;
  *type = TPS_TYPE_SURFACE;
  return (tps_lua_view *)tps_to(L, index, TPS_TYPE_SURFACE);
}

tps_lua_view *tps_to_view(lua_State *L, int index) {
  tps_type type;
  return lua_type(L, index) == LUA_TUSERDATA ? to_view(L, index, &type) : NULL;
}

static tps_view *check_view(lua_State *L, int index) {
  tps_type type;
  tps_lua_view *box = to_view(L, index, &type);
  if (box == NULL) tps_type_error(L, index, "tpstream.Texture");
  if (box->view == NULL) tps_box_closed(L, what(type), true);
  tps_open(L);
  return box->view;
}

static tps_view *self(lua_State *L) { return check_view(L, 1); }

static tps_lua_view *push_view(lua_State *L, tps_type type, int dtype) {
  tps_lua_view *box = (tps_lua_view *)tps_new(L, type, sizeof *box, 0);
  box->dtype = (uint8_t)dtype;
  return box;
}

static int view_close(lua_State *L) {
  tps_type type;
  tps_lua_view *box = to_view(L, 1, &type);
  if (box == NULL) return tps_type_error(L, 1, "tpstream.Texture");
  tps_view *view = box->view;
  box->view = NULL;
  if (view == NULL) return 0;
  if (tps_lua_of(L)->context != NULL)
    tps_site_set_told(L, tps_lua_of(L), view->memory->device);
  tps_view_close(view);
  return 0;
}

/* ---- making -------------------------------------------------------------- */

static void fail(lua_State *L, const tps_error *err) { tps_raise(L, err); }

/* An array, with one full collection and one retry when memory is exhausted. */
static tps_memory *allocate(lua_State *L, tps_device *device,
                            const tps_array_shape *shape) {
  tps_context *context = tps_open(L)->context;
  tps_memory *array;
  tps_error err;
  tps_site_set_told(L, tps_lua_of(L), device);
  tps_before_wait(tps_lua_of(L));
  int code = tps_array_allocate(context, device, shape, &array, &err);
  if (code == TPS_OUT_OF_MEMORY) {
    lua_gc(L, LUA_GCCOLLECT);
    tps_site_set_told(L, tps_lua_of(L), device);
    tps_before_wait(tps_lua_of(L));
    code = tps_array_allocate(context, device, shape, &array, &err);
  }
  if (code != 0) fail(L, &err);
  return array;
}

static void drop_array(void *array) { tps_memory_unref((tps_memory *)array); }

/* The view over the guard's array; the guard's reference goes. */
static void make_view(lua_State *L, tps_lua_view *box, tps_guard *guard,
                      const tps_sampling *sampling) {
  tps_memory *array = (tps_memory *)guard->data;
  tps_error err;
  tps_before_wait(tps_lua_of(L));
  int code = sampling != NULL
                 ? tps_view_texture(array, sampling, &box->view, &err)
                 : tps_view_surface(array, &box->view, &err);
  tps_guard_release(guard);
  if (code != 0) fail(L, &err);
}

/* A buffer's elements → a new array, queued on the device's current stream. */
static tps_guard *array_from(lua_State *L, int index, tps_texture_request *r) {
  tps_lua_buffer *b = tps_check_buffer(L, index);
  tps_error err;
  tps_guard *guard = tps_guard_push(L);
  guard->release = drop_array;
  tps_stream *stream = tps_current_stream(L, b->memory->device);
  tps_check_buffer(L, index);
  guard->data = allocate(L, stream->device, &r->shape);
  stream = tps_current_stream(L, stream->device);
  b = tps_check_buffer(L, index);
  tps_site_set(L, tps_lua_of(L));
  if (tps_array_copy(stream, (tps_memory *)guard->data, b->memory, b->first,
                     true, true, &err) != 0)
    fail(L, &err);
  return guard;
}

static void make_linear(lua_State *L, tps_lua_view *box,
                        tps_texture_request *r) {
  tps_lua_buffer *b = tps_check_buffer(L, 1);
  tps_error err;
  if (r->shape.height > 0 && r->pitch == 0)
    r->pitch = r->shape.width * tps_texel_bytes(r->shape.texel);
  uint64_t bytes = r->shape.width * tps_texel_bytes(r->shape.texel) +
                   r->pitch * (tps_array_rows(&r->shape) - 1);
  if (bytes > tps_buffer_bytes(b))
    tps_misuse(L, "a buffer of %llu bytes for %llu x %llu texels (%llu bytes)",
               (unsigned long long)tps_buffer_bytes(b),
               (unsigned long long)r->shape.width,
               (unsigned long long)tps_array_rows(&r->shape),
               (unsigned long long)bytes);
  tps_before_wait(tps_lua_of(L));
  if (tps_view_linear(b->memory, b->first, &r->shape, r->pitch, &r->sampling,
                      &box->view, &err) != 0)
    fail(L, &err);
}

/* tp.texture(surface, options) */
static int texture_over(lua_State *L) {
  tps_lua_view *from = (tps_lua_view *)tps_to(L, 1, TPS_TYPE_SURFACE);
  tps_texture_request r;
  tps_error err;
  memset(&r, 0, sizeof r);
  r.shape = check_view(L, 1)->shape;
  r.dtype = from->dtype;
  tps_texture_no_shape(L, 2);
  tps_texture_sampling(L, 2, &r);
  tps_lua_view *box = push_view(L, TPS_TYPE_TEXTURE, r.dtype);
  tps_before_wait(tps_lua_of(L));
  if (tps_view_texture(check_view(L, 1)->memory, &r.sampling, &box->view,
                       &err) != 0)
    fail(L, &err);
  return 1;
}

static int texture_new(lua_State *L) {
  static const char *const names[] = {
      "width",    "height",     "depth",   "layers", "cube",
      "channels", "filter",     "address", "read",   "border",
      "srgb",     "normalized", "linear",  "pitch",  NULL};
  tps_texture_request r;
  lua_settop(L, 2);
  tps_open(L);
  tps_check_options(L, 2, names);
  if (tps_to(L, 1, TPS_TYPE_SURFACE) != NULL) return texture_over(L);
  if (tps_to(L, 1, TPS_TYPE_BUFFER) == NULL)
    return tps_type_error(L, 1, "tpstream.Buffer or tpstream.Surface");
  tps_lua_buffer *b = tps_check_buffer(L, 1);
  memset(&r, 0, sizeof r);
  r.dtype = b->dtype;
  tps_texture_shape(L, 2, &r);
  tps_texture_linear(L, 2, &r);
  tps_texture_fit(L, &r, b->count, !r.linear);
  tps_texture_sampling(L, 2, &r);
  tps_lua_view *box = push_view(L, TPS_TYPE_TEXTURE, r.dtype); /* … texture */
  if (r.linear) {
    make_linear(L, box, &r);
    return 1;
  }
  tps_error err;
  if (tps_sampling_check(&r.shape, &r.sampling, &err) != 0) fail(L, &err);
  make_view(L, box, array_from(L, 1, &r), &r.sampling);
  lua_pop(L, 1); /* guard */
  return 1;
}

/* tp.surface(type, options): what is in it is not defined. */
static tps_guard *empty_array(lua_State *L, tps_texture_request *r) {
  tps_guard *guard = tps_guard_push(L);
  guard->release = drop_array;
  if (r->shape.width == 0) tps_option_error(L, 2, "width", "must be given");
  guard->data = allocate(L, tps_current_device(L), &r->shape);
  return guard;
}

static int surface_new(lua_State *L) {
  static const char *const names[] = {"width", "height",   "depth", "layers",
                                      "cube",  "channels", NULL};
  tps_texture_request r;
  lua_settop(L, 2);
  tps_open(L);
  tps_check_options(L, 2, names);
  bool empty = lua_type(L, 1) == LUA_TSTRING;
  if (!empty && tps_to(L, 1, TPS_TYPE_BUFFER) == NULL)
    return tps_type_error(L, 1, "tpstream.Buffer or element type");
  memset(&r, 0, sizeof r);
  r.shape.writable = true;
  r.dtype = empty ? tps_check_dtype(L, 1) : tps_check_buffer(L, 1)->dtype;
  tps_texture_shape(L, 2, &r);
  if (!empty) tps_texture_fit(L, &r, tps_check_buffer(L, 1)->count, true);
  tps_lua_view *box = push_view(L, TPS_TYPE_SURFACE, r.dtype);
  make_view(L, box, empty ? empty_array(L, &r) : array_from(L, 1, &r), NULL);
  lua_pop(L, 1); /* guard */
  return 1;
}

/* ---- data ---------------------------------------------------------------- */

static int64_t count_of(const tps_view *view) {
  const tps_array_shape *s = &view->shape;
  return (int64_t)(s->width * tps_array_rows(s) * tps_array_slices(s) *
                   s->texel.channels);
}

/* The view at 1, which must have an array of its own. */
static tps_view *with_array(lua_State *L) {
  tps_view *view = self(L);
  if (view->linear)
    tps_misuse(L, "the texture is bound to a buffer's memory: read and write "
                  "that buffer");
  return view;
}

static int dtype_of(lua_State *L) {
  return ((const tps_lua_view *)lua_touserdata(L, 1))->dtype;
}

static void check_buffer_fits(lua_State *L, const tps_view *view,
                              const tps_lua_buffer *b) {
  int dtype = dtype_of(L);
  if (b->dtype != dtype)
    tps_misuse(L, "a buffer of %s expected, got one of %s",
               tps_dtype_names[dtype], tps_dtype_names[b->dtype]);
  if (b->count != count_of(view))
    tps_misuse(L, "a buffer of %lld elements expected, got one of %lld",
               (long long)count_of(view), (long long)b->count);
}

static void copy(lua_State *L, int index, tps_stream *stream, bool to_array) {
  tps_view *view = with_array(L);
  tps_lua_buffer *b = tps_check_buffer(L, index);
  tps_error err;
  check_buffer_fits(L, view, b);
  if (stream == NULL) stream = tps_current_stream(L, view->memory->device);
  view = with_array(L);
  b = tps_check_buffer(L, index);
  tps_site_set(L, tps_lua_of(L));
  if (tps_array_copy(stream, view->memory, b->memory, b->first, to_array, false,
                     &err) != 0)
    fail(L, &err);
}

/* Bytes of the table or string at 2; a table's are pushed. */
static const void *source_bytes(lua_State *L, int64_t count) {
  int dtype = dtype_of(L);
  int64_t given;
  if (lua_type(L, 2) == LUA_TSTRING) {
    size_t bytes = lua_rawlen(L, 2), size = tps_dtype_sizes[dtype];
    if (bytes != (size_t)count * size)
      tps_misuse(L, "%zu bytes expected (%lld elements of %s), got %zu",
                 (size_t)count * size, (long long)count, tps_dtype_names[dtype],
                 bytes);
    return lua_tostring(L, 2);
  }
  if (lua_type(L, 2) != LUA_TTABLE)
    tps_type_error(L, 2, "table, string or tpstream.Buffer");
  given = luaL_len(L, 2);
  if (given != count)
    tps_misuse(L, "%lld elements expected, got %lld", (long long)count,
               (long long)given);
  return tps_push_elements(L, 2, dtype, count);
}

static int view_write(lua_State *L) {
  tps_view *view = with_array(L);
  tps_error err;
  lua_settop(L, 2);
  if (tps_to(L, 2, TPS_TYPE_BUFFER) != NULL) {
    copy(L, 2, NULL, true);
    return 0;
  }
  const void *bytes = source_bytes(L, count_of(view));
  view = with_array(L); /* the table's metamethods may have closed it */
  tps_stream *stream = tps_current_stream(L, view->memory->device);
  view = with_array(L);
  tps_site_set(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  if (tps_array_write(stream, view->memory, bytes, false, &err) != 0)
    fail(L, &err);
  return 0;
}

static void read_all(lua_State *L, void *to) {
  tps_error err;
  tps_view *view = with_array(L);
  tps_stream *stream = tps_current_stream(L, view->memory->device);
  view = with_array(L);
  tps_site_set(L, tps_lua_of(L));
  tps_before_wait(tps_lua_of(L));
  if (tps_array_read(stream, view->memory, to, &err) != 0) fail(L, &err);
  tps_safe_point(L);
}

static int view_read(lua_State *L) {
  tps_view *view = with_array(L);
  int64_t count = count_of(view);
  int dtype = dtype_of(L);
  void *scratch = lua_newuserdatauv(L, (size_t)view->memory->bytes, 0);
  read_all(L, scratch);
  tps_elements_table(L, dtype, scratch, count);
  return 1;
}

static int view_bytes(lua_State *L) {
  size_t bytes = (size_t)with_array(L)->memory->bytes;
  luaL_Buffer b;
  read_all(L, luaL_buffinitsize(L, &b, bytes));
  luaL_pushresultsize(&b, bytes);
  return 1;
}

static int view_copy_to(lua_State *L) {
  static const char *const names[] = {"stream", NULL};
  with_array(L);
  tps_check_buffer(L, 2);
  tps_check_options(L, 3, names);
  copy(L, 2, tps_option_stream_kept(L, 3, "stream", 3), false);
  return 0;
}

/* ---- telling ------------------------------------------------------------- */

static int view_handle(lua_State *L) {
  tps_view *view = self(L);
  tps_memory_expose(view->memory);
  lua_pushinteger(L, (lua_Integer)view->handle);
  return 1;
}

static int view_device(lua_State *L) {
  tps_push_device(L, self(L)->memory->device);
  return 1;
}

static int view_dtype(lua_State *L) {
  self(L);
  lua_pushstring(L, tps_dtype_names[dtype_of(L)]);
  return 1;
}

static void set_extent(lua_State *L, const char *name, uint64_t value) {
  if (value == 0) return;
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, name);
}

static int view_dims(lua_State *L) {
  const tps_array_shape *s = &self(L)->shape;
  lua_createtable(L, 0, 6);
  set_extent(L, "width", s->width);
  set_extent(L, "height", s->height);
  set_extent(L, "depth", s->depth);
  set_extent(L, "layers", s->layers);
  set_extent(L, "channels", s->texel.channels);
  if (s->cube) {
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "cube");
  }
  return 1;
}

/* "64x32, 4 layers" */
static const char *push_extents(lua_State *L, const tps_array_shape *s) {
  lua_pushfstring(L, "%I", (LUAI_UACINT)s->width);
  if (s->height > 0)
    lua_pushfstring(L, "%sx%I", lua_tostring(L, -1), (LUAI_UACINT)s->height);
  if (s->depth > 0)
    lua_pushfstring(L, "%sx%I", lua_tostring(L, -1), (LUAI_UACINT)s->depth);
  if (s->cube) lua_pushfstring(L, "%s cube", lua_tostring(L, -1));
  if (s->layers > 0)
    lua_pushfstring(L, "%s, %I layers", lua_tostring(L, -1),
                    (LUAI_UACINT)s->layers);
  return lua_tostring(L, -1);
}

static int view_tostring(lua_State *L) {
  tps_type type;
  char label[32];
  tps_lua_view *box = to_view(L, 1, &type);
  if (box == NULL) return tps_type_error(L, 1, "tpstream.Texture");
  if (box->view == NULL) {
    lua_pushfstring(L, "%s (closed)", tps_type_names[type]);
    return 1;
  }
  const tps_view *view = box->view;
  tps_device_label(view->memory->device, label, sizeof label);
  const char *extents = push_extents(L, &view->shape);
  lua_pushfstring(L, "%s (%s, %s[%d], %s%s)", tps_type_names[type], label,
                  tps_dtype_names[box->dtype], view->shape.texel.channels,
                  extents, view->linear ? ", linear memory" : "");
  return 1;
}

static const luaL_Reg view_meta[] = {{"__tostring", view_tostring},
                                     {"__gc", view_close},
                                     {"__close", view_close},
                                     {NULL, NULL}};
static const luaL_Reg view_methods[] = {
    {"close", view_close},     {"write", view_write},
    {"read", view_read},       {"bytes", view_bytes},
    {"copy_to", view_copy_to}, {"handle", view_handle},
    {"device", view_device},   {"dtype", view_dtype},
    {"dims", view_dims},       {NULL, NULL}};
static const luaL_Reg view_functions[] = {
    {"texture", texture_new}, {"surface", surface_new}, {NULL, NULL}};

void tps_texture_open_types(lua_State *L) {
  tps_type_make(L, TPS_TYPE_TEXTURE, view_meta, view_methods);
  tps_type_make(L, TPS_TYPE_SURFACE, view_meta, view_methods);
  tps_functions(L, view_functions);
}
