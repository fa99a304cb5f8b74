/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Textures and surfaces: options, making, and getting data in and out. */
#include "lua/state.h"

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

/* ---- options: the shape -------------------------------------------------- */

/* What a constructor is given. */
typedef struct request {
  int dtype;
  tps_array_shape shape;
  tps_sampling sampling;
  bool linear; /* bind the buffer itself */
  uint64_t pitch;
} request;

/* A field that is an extent; 0 when it is absent. */
static uint64_t extent(lua_State *L, int index, const char *name) {
  if (tps_option(L, index, name) == LUA_TNIL) {
    lua_pop(L, 1);
    return 0;
  }
  lua_pop(L, 1);
  lua_Integer n = tps_option_integer(L, index, name, 0);
  if (n < 1)
    tps_option_error(L, index, name, "must be at least 1, got %lld",
                     (long long)n);
  if (n > 1 << 28)
    tps_option_error(L, index, name, "must be at most %d, got %lld", 1 << 28,
                     (long long)n);
  return (uint64_t)n;
}

static tps_texel texel_of(lua_State *L, int options, int dtype) {
  lua_Integer channels = tps_option_integer(L, options, "channels", 1);
  unsigned bits = 8u * tps_dtype_sizes[dtype];
  if (bits > 32 || dtype == TPS_BFLOAT16)
    tps_misuse(L,
               "elements of %s can't be texels (there are int8, uint8, "
               "int16, uint16, int32, uint32, float16, float32)",
               tps_dtype_names[dtype]);
  if (channels != 1 && channels != 2 && channels != 4)
    tps_option_error(L, options, "channels", "1, 2 or 4 expected, got %lld",
                     (long long)channels);
  bool is_float = dtype == TPS_FLOAT16 || dtype == TPS_FLOAT32;
  bool is_signed =
      dtype == TPS_INT8 || dtype == TPS_INT16 || dtype == TPS_INT32;
  return (tps_texel){is_float    ? TPS_TEXEL_FLOAT
                     : is_signed ? TPS_TEXEL_SIGNED
                                 : TPS_TEXEL_UNSIGNED,
                     (uint8_t)bits, (uint8_t)channels};
}

/* The extents given, all but a width that may follow from the count. */
static void read_shape(lua_State *L, int options, request *r) {
  tps_array_shape *s = &r->shape;
  s->texel = texel_of(L, options, r->dtype);
  s->width = extent(L, options, "width");
  s->height = extent(L, options, "height");
  s->depth = extent(L, options, "depth");
  s->layers = extent(L, options, "layers");
  s->cube = tps_option_boolean(L, options, "cube", false);
  if (s->depth > 0 && s->height == 0)
    tps_option_error(L, options, "depth", "without a height");
  if (s->depth > 0 && (s->layers > 0 || s->cube))
    tps_option_error(L, options, "depth", "with %s",
                     s->cube ? "a cube" : "layers");
  if (s->cube && s->width == 0) s->width = s->height;
  if (s->cube && s->height == 0) s->height = s->width;
  if (s->cube && s->width == 0)
    tps_option_error(L, options, "cube", "the width must be given");
}

/* Texels of a buffer of `count` elements; the width is found where it was not
 * given. `exact`: all of them have to be used. */
static void fit_shape(lua_State *L, request *r, int64_t count, bool exact) {
  tps_array_shape *s = &r->shape;
  uint64_t lines = tps_array_rows(s) * tps_array_slices(s);
  uint64_t line = lines * s->texel.channels;
  if (s->width == 0) s->width = (uint64_t)count / line;
  uint64_t need = s->width * line;
  if (s->width > 0 &&
      (exact ? need == (uint64_t)count : need <= (uint64_t)count))
    return;
  tps_misuse(L,
             "a buffer of %lld elements for %llu x %llu x %llu texels of %d "
             "channels (%llu elements)",
             (long long)count, (unsigned long long)s->width,
             (unsigned long long)tps_array_rows(s),
             (unsigned long long)tps_array_slices(s), s->texel.channels,
             (unsigned long long)need);
}

/* ---- options: sampling --------------------------------------------------- */

static int choice(lua_State *L, int options, const char *field, int value,
                  const char *const *names, const char *list) {
  const char *text = lua_tostring(L, value);
  if (lua_type(L, value) == LUA_TSTRING)
    for (int i = 0; names[i] != NULL; i++)
      if (strcmp(text, names[i]) == 0) return i;
  tps_option_error(L, options, field, "%s expected, got %s", list,
                   lua_type(L, value) == LUA_TSTRING
                       ? lua_pushfstring(L, "'%s'", text)
                       : tps_type_name(L, value));
}

static int choice_field(lua_State *L, int options, const char *field,
                        const char *const *names, const char *list,
                        int otherwise) {
  int found = otherwise;
  if (tps_option(L, options, field) != LUA_TNIL)
    found = choice(L, options, field, -1, names, list);
  lua_pop(L, 1);
  return found;
}

static unsigned dimensions(const tps_array_shape *s) {
  return s->depth > 0 ? 3 : s->height > 0 ? 2 : 1;
}

/* One mode for all dimensions, or an array. What a texture has no dimension for
 * stays clamp: a GPU would blend in its border there, too. */
static void read_address(lua_State *L, int options, request *r) {
  static const char *const names[] = {"wrap", "clamp", "mirror", "border",
                                      NULL};
  static const char list[] = "'wrap', 'clamp', 'mirror' or 'border'";
  unsigned count = dimensions(&r->shape);
  memset(r->sampling.address, TPS_ADDRESS_CLAMP, 3);
  int type = tps_option(L, options, "address");
  if (type == LUA_TTABLE) {
    if (lua_rawlen(L, -1) != count)
      tps_option_error(L, options, "address",
                       "%u modes expected, one a dimension, got %llu", count,
                       (unsigned long long)lua_rawlen(L, -1));
    for (unsigned k = 0; k < count; k++) {
      lua_rawgeti(L, -1, (lua_Integer)k + 1);
      r->sampling.address[k] =
          (uint8_t)choice(L, options, "address", -1, names, list);
      lua_pop(L, 1);
    }
  } else if (type != LUA_TNIL) {
    int mode = choice(L, options, "address", -1, names, list);
    memset(r->sampling.address, mode, count);
  }
  lua_pop(L, 1);
}

/* Of elements read as integers the border has integers, too. */
static void border_element(lua_State *L, int options, request *r, unsigned k) {
  bool floats =
      r->shape.texel.kind == TPS_TEXEL_FLOAT || r->sampling.normalized_read;
  uint64_t bits = 0;
  int dtype = floats ? TPS_FLOAT32 : r->dtype;
  tps_fit fit = tps_element_from(L, -1, dtype, &bits);
  if (fit != TPS_FITS)
    tps_option_error(L, options, "border", "element %u: %s", k + 1,
                     tps_push_misfit(L, -1, dtype, fit));
  uint32_t word = (uint32_t)bits;
  memcpy(&r->sampling.border[k], &word, sizeof word);
}

static void read_border(lua_State *L, int options, request *r) {
  int type = tps_option(L, options, "border");
  if (type != LUA_TNIL && type != LUA_TTABLE)
    tps_option_error(L, options, "border", "table expected, got %s",
                     tps_type_name(L, -1));
  unsigned count = type == LUA_TNIL ? 0 : (unsigned)lua_rawlen(L, -1);
  if (count > r->shape.texel.channels)
    tps_option_error(L, options, "border", "%u channels, the texture has %d",
                     count, r->shape.texel.channels);
  for (unsigned k = 0; k < count; k++) {
    lua_rawgeti(L, -1, (lua_Integer)k + 1);
    border_element(L, options, r, k);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void read_sampling(lua_State *L, int options, request *r) {
  static const char *const filters[] = {"point", "linear", NULL};
  static const char *const reads[] = {"element", "normalized_float", NULL};
  tps_sampling *s = &r->sampling;
  s->linear = choice_field(L, options, "filter", filters, "'point' or 'linear'",
                           0) == 1;
  s->normalized_read = choice_field(L, options, "read", reads,
                                    "'element' or 'normalized_float'", 0) == 1;
  s->normalized = tps_option_boolean(L, options, "normalized", r->shape.cube);
  s->srgb = tps_option_boolean(L, options, "srgb", false);
  if (r->shape.cube && !s->normalized)
    tps_option_error(L, options, "normalized",
                     "must be true for a cube, whose coordinates are "
                     "directions");
  read_address(L, options, r);
  read_border(L, options, r);
}

/* Options that say how the buffer becomes texels, against a Surface, whose
 * array has its shape already. */
static void refuse_shape(lua_State *L, int options) {
  static const char *const names[] = {"width",  "height", "depth",
                                      "layers", "cube",   "channels",
                                      "linear", "pitch",  NULL};
  for (int i = 0; names[i] != NULL; i++) {
    if (tps_option(L, options, names[i]) != LUA_TNIL)
      tps_option_error(L, options, names[i],
                       "is given by the surface that is sampled");
    lua_pop(L, 1);
  }
}

/* Linear memory is fetched by number or sampled as a plane. */
static void read_linear(lua_State *L, int options, request *r) {
  static const char *const needless[] = {"filter", "address", "normalized",
                                         "border", NULL};
  r->linear = tps_option_boolean(L, options, "linear", false);
  r->pitch = extent(L, options, "pitch");
  const tps_array_shape *s = &r->shape;
  if (!r->linear && r->pitch != 0)
    tps_option_error(L, options, "pitch", "without linear = true");
  if (!r->linear) return;
  if (s->depth > 0 || s->layers > 0 || s->cube)
    tps_option_error(L, options, "linear",
                     "linear memory has one or two dimensions");
  if (s->height > 0) return;
  if (r->pitch != 0) tps_option_error(L, options, "pitch", "without a height");
  for (int i = 0; needless[i] != NULL; i++) {
    if (tps_option(L, options, needless[i]) != LUA_TNIL)
      tps_option_error(L, options, needless[i],
                       "means nothing for a line of linear memory, which "
                       "tex1Dfetch reads by number");
    lua_pop(L, 1);
  }
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
static tps_guard *array_from(lua_State *L, int index, request *r) {
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

static void make_linear(lua_State *L, tps_lua_view *box, request *r) {
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
  request r;
  tps_error err;
  memset(&r, 0, sizeof r);
  r.shape = check_view(L, 1)->shape;
  r.dtype = from->dtype;
  refuse_shape(L, 2);
  read_sampling(L, 2, &r);
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
  request r;
  lua_settop(L, 2);
  tps_open(L);
  tps_check_options(L, 2, names);
  if (tps_to(L, 1, TPS_TYPE_SURFACE) != NULL) return texture_over(L);
  if (tps_to(L, 1, TPS_TYPE_BUFFER) == NULL)
    return tps_type_error(L, 1, "tpstream.Buffer or tpstream.Surface");
  tps_lua_buffer *b = tps_check_buffer(L, 1);
  memset(&r, 0, sizeof r);
  r.dtype = b->dtype;
  read_shape(L, 2, &r);
  read_linear(L, 2, &r);
  fit_shape(L, &r, b->count, !r.linear);
  read_sampling(L, 2, &r);
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
static tps_guard *empty_array(lua_State *L, request *r) {
  tps_guard *guard = tps_guard_push(L);
  guard->release = drop_array;
  if (r->shape.width == 0) tps_option_error(L, 2, "width", "must be given");
  guard->data = allocate(L, tps_current_device(L), &r->shape);
  return guard;
}

static int surface_new(lua_State *L) {
  static const char *const names[] = {"width", "height",   "depth", "layers",
                                      "cube",  "channels", NULL};
  request r;
  lua_settop(L, 2);
  tps_open(L);
  tps_check_options(L, 2, names);
  bool empty = lua_type(L, 1) == LUA_TSTRING;
  if (!empty && tps_to(L, 1, TPS_TYPE_BUFFER) == NULL)
    return tps_type_error(L, 1, "tpstream.Buffer or element type");
  memset(&r, 0, sizeof r);
  r.shape.writable = true;
  r.dtype = empty ? tps_check_dtype(L, 1) : tps_check_buffer(L, 1)->dtype;
  read_shape(L, 2, &r);
  if (!empty) fit_shape(L, &r, tps_check_buffer(L, 1)->count, true);
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
  copy(L, 2, tps_option_stream(L, 3, "stream"), false);
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
