/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The options of textures and surfaces: extents, texels, sampling. */
#include "lua/texture.h"

#include <string.h>

/* ---- the shape ----------------------------------------------------------- */

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

void tps_texture_shape(lua_State *L, int options, tps_texture_request *r) {
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

void tps_texture_fit(lua_State *L, tps_texture_request *r, int64_t count,
                     bool exact) {
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
             "channel%s (%llu elements)",
             (long long)count, (unsigned long long)s->width,
             (unsigned long long)tps_array_rows(s),
             (unsigned long long)tps_array_slices(s), s->texel.channels,
             s->texel.channels == 1 ? "" : "s", (unsigned long long)need);
}

/* ---- sampling ------------------------------------------------------------ */

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
static void read_address(lua_State *L, int options, tps_texture_request *r) {
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
static void border_element(lua_State *L, int options, tps_texture_request *r,
                           unsigned k) {
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

static void read_border(lua_State *L, int options, tps_texture_request *r) {
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

void tps_texture_sampling(lua_State *L, int options, tps_texture_request *r) {
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

void tps_texture_no_shape(lua_State *L, int options) {
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
void tps_texture_linear(lua_State *L, int options, tps_texture_request *r) {
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
