/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What an array's shape and a texture's sampling may be. Every refusal names
 * the extent or the option, its value, and the limit. */
#include "runtime/parts.h"
#include "runtime/texture.h"

static int bad_extent(const char *name, uint64_t value, const char *what,
                      uint64_t most, tps_error *err) {
  if (most == 0)
    return tps_fail(err, TPS_MISUSE, "this device has no %s", what);
  return tps_fail(err, TPS_MISUSE, "%s %llu of %s (1 to %llu)", name,
                  (unsigned long long)value, what, (unsigned long long)most);
}

/* The extents in their order, against `most`; `what` is how to call it. */
static int check_extents(const tps_array_shape *s, unsigned count,
                         const uint32_t *most, const char *what,
                         tps_error *err) {
  static const char *const names[] = {"width", "height", "depth"};
  const uint64_t extents[] = {s->width, s->height, s->depth};
  for (unsigned k = 0; k < count; k++)
    if (extents[k] < 1 || extents[k] > most[k])
      return bad_extent(names[k], extents[k], what, most[k], err);
  return 0;
}

static int check_layers(const tps_array_shape *s, uint32_t most,
                        const char *what, tps_error *err) {
  if (s->layers >= 1 && s->layers <= most) return 0;
  return bad_extent("layers", s->layers, what, most, err);
}

static int check_cube(const tps_array_shape *s, const tps_texture_limits *l,
                      const char *what, tps_error *err) {
  uint32_t side = s->layers > 0 ? l->layered_cube[0] : l->cube;
  uint32_t most[] = {side, side};
  int code = check_extents(s, 2, most, what, err);
  if (code != 0) return code;
  if (s->width != s->height)
    return tps_fail(
        err, TPS_MISUSE, "the faces of a cube are square, not %llu x %llu",
        (unsigned long long)s->width, (unsigned long long)s->height);
  return s->layers > 0 ? check_layers(s, l->layered_cube[1], what, err) : 0;
}

static int check_plain(const tps_array_shape *s, const tps_texture_limits *l,
                       bool surface, tps_error *err) {
  static const char *const what[2][3] = {
      {"a 1-D texture", "a 2-D texture", "a 3-D texture"},
      {"a 1-D surface", "a 2-D surface", "a 3-D surface"}};
  if (s->depth > 0)
    return check_extents(s, 3, l->volume, what[surface][2], err);
  if (s->height > 0)
    return check_extents(s, 2, l->plane, what[surface][1], err);
  return check_extents(s, 1, &l->line, what[surface][0], err);
}

int tps_array_check(tps_device *device, const tps_array_shape *s,
                    tps_error *err) {
  tps_texture_limits l;
  bool surface = s->writable;
  device->face->texture_limits(device, surface, &l);
  if (s->cube)
    return check_cube(s, &l, surface ? "a cube surface" : "a cube texture",
                      err);
  if (s->layers == 0) return check_plain(s, &l, surface, err);
  const char *what = surface ? "a layered surface" : "a layered texture";
  const uint32_t *most = s->height > 0 ? l.layered_plane : l.layered_line;
  unsigned count = s->height > 0 ? 2 : 1;
  int code = check_extents(s, count, most, what, err);
  return code == 0 ? check_layers(s, most[count], what, err) : code;
}

/* ---- sampling ------------------------------------------------------------ */

static int check_read(tps_texel t, const tps_sampling *s, tps_error *err) {
  static const char *const kinds[] = {"uint", "int", "float"};
  bool is_float = t.kind == TPS_TEXEL_FLOAT;
  if (s->normalized_read && (is_float || t.bits == 32))
    return tps_fail(err, TPS_MISUSE,
                    "read 'normalized_float' of %s%u elements (it is for "
                    "integers of 8 and 16 bits)",
                    kinds[t.kind], t.bits);
  if (s->linear && !is_float && !s->normalized_read)
    return tps_fail(err, TPS_MISUSE,
                    "filter 'linear' of %s%u elements read as they are (floats "
                    "are needed, or read 'normalized_float')",
                    kinds[t.kind], t.bits);
  if (s->srgb &&
      (t.kind != TPS_TEXEL_UNSIGNED || t.bits != 8 || !s->normalized_read))
    return tps_fail(err, TPS_MISUSE,
                    "srgb of %s%u elements (uint8 with read "
                    "'normalized_float' is needed)",
                    kinds[t.kind], t.bits);
  return 0;
}

int tps_sampling_check(const tps_array_shape *shape, const tps_sampling *s,
                       tps_error *err) {
  int code = check_read(shape->texel, s, err);
  if (code != 0) return code;
  for (unsigned k = 0; k < 3; k++)
    if (!s->normalized && (s->address[k] == TPS_ADDRESS_WRAP ||
                           s->address[k] == TPS_ADDRESS_MIRROR))
      return tps_fail(err, TPS_MISUSE,
                      "address '%s' without normalized coordinates",
                      s->address[k] == TPS_ADDRESS_WRAP ? "wrap" : "mirror");
  return 0;
}
