/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Sampling: from coordinates to texels, and the filter between them.
 *
 * The arithmetic is that of a GPU (compute capability 9.0), found out by
 * comparing hundreds of thousands of samples bit by bit:
 * - a normalized coordinate is cut down to a multiple of 2^-21;
 * - a position between texels is rounded to a multiple of 1/256, halves up;
 * - weights of two and three dimensions are products rounded to 8 bits, in such
 *   a way that all of them together are 1 (weights_of);
 * - the texels of a plane are aligned to the largest of them with four bits
 *   more than their format has, what is below is cut off; from then on sums
 *   are exact, and the result is rounded once, halves away from zero.
 */
#include "sim/textures.h"

#include <math.h>
#include <string.h>

#include "sim/engine_number.h"

#define ONE 256      /* weight 1 */
#define FRACTION 21u /* bits of a normalized coordinate */
#define WHOLE ((int64_t)1 << FRACTION)

/* ---- texels -------------------------------------------------------------- */

/* How channels are kept between memory and kernel, and what a filter gives. */
typedef enum precision {
  AS_INTEGER,    /* not filtered */
  AS_FLOAT,      /* of 32 bits */
  AS_HALF,       /* float16, sRGB */
  AS_NORMALIZED, /* n / 65535 */
  AS_SIGNED,     /* n / 32767 */
  AS_SIGNED_BYTE /* n / 127; filtered, n / 32767 */
} precision;

static precision precision_of(const tps_sim_view *v, unsigned channel) {
  tps_texel t = v->shape.texel;
  if (t.kind == TPS_TEXEL_FLOAT) return t.bits == 16 ? AS_HALF : AS_FLOAT;
  if (!v->sampling.normalized_read) return AS_INTEGER;
  if (t.kind == TPS_TEXEL_SIGNED)
    return t.bits == 8 ? AS_SIGNED_BYTE : AS_SIGNED;
  return v->sampling.srgb && channel < 3 ? AS_HALF : AS_NORMALIZED;
}

/* clang-format off */
/* Bytes of sRGB as linear intensity, as a GPU has it: the upper halves of
 * floats, about eight bits. */
static const uint16_t linear_intensity[256] = {
    0x0000, 0x39a0, 0x3a20, 0x3a70, 0x3aa0, 0x3ac8, 0x3af0, 0x3b0c, 0x3b20,
    0x3b34, 0x3b48, 0x3b5c, 0x3b70, 0x3b84, 0x3b90, 0x3b9c, 0x3baa, 0x3bb8,
    0x3bc6, 0x3bd6, 0x3be6, 0x3bf6, 0x3c03, 0x3c0c, 0x3c16, 0x3c1f, 0x3c29,
    0x3c34, 0x3c3e, 0x3c49, 0x3c55, 0x3c60, 0x3c6c, 0x3c7a, 0x3c83, 0x3c8a,
    0x3c91, 0x3c98, 0x3c9f, 0x3ca6, 0x3cae, 0x3cb6, 0x3cbe, 0x3cc6, 0x3cce,
    0x3cd7, 0x3ce0, 0x3ce9, 0x3cf2, 0x3cfc, 0x3d03, 0x3d08, 0x3d0d, 0x3d12,
    0x3d17, 0x3d1c, 0x3d22, 0x3d28, 0x3d2d, 0x3d33, 0x3d39, 0x3d3f, 0x3d45,
    0x3d4c, 0x3d52, 0x3d58, 0x3d60, 0x3d66, 0x3d6c, 0x3d74, 0x3d7a, 0x3d81,
    0x3d85, 0x3d88, 0x3d8c, 0x3d90, 0x3d94, 0x3d98, 0x3d9c, 0x3da0, 0x3da4,
    0x3da9, 0x3dad, 0x3db1, 0x3db6, 0x3dba, 0x3dbf, 0x3dc3, 0x3dc8, 0x3dcd,
    0x3dd1, 0x3dd6, 0x3ddb, 0x3de0, 0x3de5, 0x3dea, 0x3df0, 0x3df4, 0x3dfa,
    0x3e00, 0x3e02, 0x3e05, 0x3e08, 0x3e0b, 0x3e0e, 0x3e11, 0x3e14, 0x3e17,
    0x3e1a, 0x3e1d, 0x3e20, 0x3e23, 0x3e26, 0x3e29, 0x3e2c, 0x3e30, 0x3e33,
    0x3e36, 0x3e3a, 0x3e3d, 0x3e40, 0x3e44, 0x3e47, 0x3e4b, 0x3e4e, 0x3e52,
    0x3e56, 0x3e59, 0x3e5d, 0x3e61, 0x3e65, 0x3e68, 0x3e6c, 0x3e70, 0x3e74,
    0x3e78, 0x3e7c, 0x3e80, 0x3e82, 0x3e84, 0x3e86, 0x3e88, 0x3e8a, 0x3e8d,
    0x3e8f, 0x3e91, 0x3e93, 0x3e95, 0x3e98, 0x3e9a, 0x3e9c, 0x3e9e, 0x3ea1,
    0x3ea3, 0x3ea5, 0x3ea8, 0x3eaa, 0x3ead, 0x3eaf, 0x3eb2, 0x3eb4, 0x3eb6,
    0x3eb9, 0x3ebc, 0x3ebe, 0x3ec1, 0x3ec3, 0x3ec6, 0x3ec8, 0x3ecb, 0x3ece,
    0x3ed1, 0x3ed3, 0x3ed6, 0x3ed9, 0x3edb, 0x3ede, 0x3ee1, 0x3ee4, 0x3ee7,
    0x3eea, 0x3eed, 0x3ef0, 0x3ef2, 0x3ef6, 0x3ef8, 0x3efc, 0x3efe, 0x3f01,
    0x3f02, 0x3f04, 0x3f05, 0x3f07, 0x3f09, 0x3f0a, 0x3f0c, 0x3f0d, 0x3f0f,
    0x3f11, 0x3f12, 0x3f14, 0x3f16, 0x3f17, 0x3f19, 0x3f1b, 0x3f1c, 0x3f1e,
    0x3f20, 0x3f21, 0x3f23, 0x3f25, 0x3f27, 0x3f29, 0x3f2a, 0x3f2c, 0x3f2e,
    0x3f30, 0x3f32, 0x3f33, 0x3f35, 0x3f37, 0x3f39, 0x3f3b, 0x3f3d, 0x3f3f,
    0x3f41, 0x3f43, 0x3f45, 0x3f47, 0x3f49, 0x3f4b, 0x3f4d, 0x3f4f, 0x3f51,
    0x3f53, 0x3f55, 0x3f57, 0x3f59, 0x3f5b, 0x3f5d, 0x3f5f, 0x3f61, 0x3f63,
    0x3f65, 0x3f68, 0x3f6a, 0x3f6c, 0x3f6e, 0x3f70, 0x3f72, 0x3f74, 0x3f76,
    0x3f7a, 0x3f7c, 0x3f7e, 0x3f80,
};
/* clang-format on */

static uint32_t linear_of(uint32_t byte) {
  return (uint32_t)linear_intensity[byte] << 16;
}

/* The least integer stands for -1 as the one above it does. */
static uint32_t symmetric(uint32_t raw, unsigned bits) {
  int32_t s = (int32_t)(raw << (32 - bits)) >> (32 - bits);
  int32_t most = (1 << (bits - 1)) - 1;
  return (uint32_t)(s < -most ? -most : s);
}

/* Bits of a channel in memory → what the filter works on. */
static uint32_t channel_of(const tps_sim_view *v, uint32_t raw,
                           unsigned channel) {
  tps_texel t = v->shape.texel;
  switch (precision_of(v, channel)) {
  case AS_FLOAT: return raw;
  case AS_HALF:
    return t.kind == TPS_TEXEL_FLOAT ? bits_of((float)f16_to(raw))
                                     : linear_of(raw);
  case AS_NORMALIZED: return t.bits == 8 ? raw * 257 : raw;
  case AS_SIGNED:
  case AS_SIGNED_BYTE: return symmetric(raw, t.bits);
  default:
    if (t.kind == TPS_TEXEL_SIGNED && t.bits < 32)
      return (uint32_t)((int32_t)(raw << (32 - t.bits)) >> (32 - t.bits));
    return raw;
  }
}

/* What the filter gives → what the kernel gets. */
static tps_sim_texel finished(const tps_sim_view *v, tps_sim_texel t,
                              bool filtered) {
  for (unsigned c = 0; c < v->shape.texel.channels; c++) {
    uint32_t n = t.channel[c];
    precision p = precision_of(v, c);
    if (p == AS_NORMALIZED) t.channel[c] = bits_of((float)(n / 65535.0));
    double most = p == AS_SIGNED_BYTE && !filtered ? 127 : 32767;
    if (p >= AS_SIGNED) t.channel[c] = bits_of((float)((int32_t)n / most));
  }
  return t;
}

static tps_sim_texel texel_at(const tps_sim_view *v, int64_t x, int64_t y,
                              int64_t slice) {
  tps_sim_texel t = {{0}};
  unsigned size = v->shape.texel.bits / 8;
  const unsigned char *p = v->texels + (uint64_t)slice * v->slice_bytes +
                           (uint64_t)y * v->row_bytes +
                           (uint64_t)x * v->texel_bytes;
  for (unsigned c = 0; c < v->shape.texel.channels; c++, p += size) {
    uint32_t raw = 0;
    /* another kernel may be writing the texture's memory */
    if (size == 1) raw = __atomic_load_n(p, __ATOMIC_RELAXED);
    else if (size == 2)
      raw =
          __atomic_load_n((const uint16_t *)(const void *)p, __ATOMIC_RELAXED);
    else
      raw =
          __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_RELAXED);
    t.channel[c] = channel_of(v, raw, c);
  }
  return t;
}

/* A border's channel as the format can hold it. */
static uint32_t border_channel(const tps_sim_view *v, unsigned channel) {
  tps_texel t = v->shape.texel;
  float f = v->sampling.border[channel];
  uint32_t raw = bits_of(f);
  double most = (1u << (t.bits - 1)) - 1;
  switch (precision_of(v, channel)) {
  case AS_FLOAT: return raw;
  case AS_HALF:
    return t.kind == TPS_TEXEL_FLOAT ? channel_of(v, f16_from(f, 0), channel)
                                     : bits_of(saturate(f));
  case AS_NORMALIZED:
    return channel_of(v, (uint32_t)rint(saturate(f) * (2 * most + 1)), channel);
  case AS_SIGNED:
  case AS_SIGNED_BYTE:
    f = f > 1 ? 1 : f > -1 ? f : -1;
    return (uint32_t)(int32_t)rint(f * most);
  default:
    return channel_of(v, t.bits == 32 ? raw : raw & ((1u << t.bits) - 1),
                      channel);
  }
}

static tps_sim_texel border(const tps_sim_view *v) {
  tps_sim_texel t = {{0}};
  for (unsigned c = 0; c < v->shape.texel.channels; c++)
    t.channel[c] = border_channel(v, c);
  return t;
}

/* ---- coordinates --------------------------------------------------------- */

/* One dimension of a sample: the two texels beside the point and the weight of
 * the second, in 1/256; -1 stands for the border. */
typedef struct axis {
  int64_t texel[2];
  int32_t weight;
} axis;

static int64_t clamp(int64_t i, int64_t least, int64_t most) {
  return i < least ? least : i > most ? most : i;
}

/* floor(x × 2^shift), far enough from overflow; a NaN is 0. */
static int64_t fixed(double x, unsigned shift) {
  if (isnan(x)) return 0;
  double y = floor(ldexp(x, (int)shift));
  return y > 0x1p40    ? (int64_t)1 << 40
         : y < -0x1p40 ? -((int64_t)1 << 40)
                       : (int64_t)y;
}

/* A normalized coordinate in units of 2^-21; where the mode repeats the texture
 * within [0, 1), and where it mirrors it within [0, 2). */
static int64_t fold(float x, unsigned mode) {
  double d = x;
  if (mode == TPS_ADDRESS_WRAP || mode == TPS_ADDRESS_MIRROR) {
    if (!isfinite(d)) return 0;
    d = fmod(d, 2);
  }
  int64_t f = fixed(d, FRACTION);
  if (mode == TPS_ADDRESS_WRAP) return f & (WHOLE - 1);
  return mode == TPS_ADDRESS_MIRROR ? f & (2 * WHOLE - 1) : f;
}

static int64_t in_range(int64_t i, int64_t size, unsigned mode) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
  case TPS_ADDRESS_WRAP: return (i + size) % size;
  case TPS_ADDRESS_MIRROR:
    i = (i + 2 * size) % (2 * size);
    return i < size ? i : 2 * size - 1 - i;
  case TPS_ADDRESS_BORDER: return -1;
  default: return clamp(i, 0, size - 1);
  }
}

/* Without normalized coordinates nothing repeats. */
static unsigned mode_of(const tps_sim_view *v, unsigned dimension) {
  unsigned mode = v->sampling.address[dimension];
  if (v->sampling.normalized || mode == TPS_ADDRESS_BORDER) return mode;
  return TPS_ADDRESS_CLAMP;
}

/* The point in 1/256 of a texel, from the middle of the first one on. */
static int64_t position(const tps_sim_view *v, float x, int64_t size,
                        unsigned mode) {
  if (v->sampling.normalized)
    return ((fold(x, mode) * size + (1 << 12)) >> 13) - ONE / 2;
  return isnan(x) ? -ONE / 2 : fixed((double)x + 1.0 / 512, 8) - ONE / 2;
}

static int64_t extent(const tps_sim_view *v, unsigned dimension) {
  uint64_t n = dimension == 0   ? v->shape.width
               : dimension == 1 ? v->shape.height
                                : v->shape.depth;
  return n == 0 ? 1 : (int64_t)n;
}

static axis axis_linear(const tps_sim_view *v, unsigned dimension, float x) {
  unsigned mode = mode_of(v, dimension);
  int64_t size = extent(v, dimension);
  int64_t q = position(v, x, size, mode);
  int64_t i = q >> 8;
  axis a = {{i, i + 1}, (int32_t)(q & (ONE - 1))};
  for (unsigned k = 0; k < 2; k++)
    a.texel[k] = in_range(a.texel[k], size, mode);
  return a;
}

/* The same for a filter: beyond the first and the last texel there is nothing
 * to blend. */
static axis axis_filtered(const tps_sim_view *v, unsigned dimension, float x) {
  axis a = axis_linear(v, dimension, x);
  if (a.texel[0] == a.texel[1] && mode_of(v, dimension) == TPS_ADDRESS_CLAMP)
    a.weight = 0;
  return a;
}

static int64_t axis_point(const tps_sim_view *v, unsigned dimension, float x) {
  unsigned mode = mode_of(v, dimension);
  int64_t size = extent(v, dimension);
  int64_t i =
      v->sampling.normalized ? (fold(x, mode) * size) >> FRACTION : fixed(x, 0);
  return in_range(i, size, mode);
}

/* ---- the filter ---------------------------------------------------------- */

/* Weights of the texels (bit 0: second in x, bit 1: in y, bit 2: in z). */
static void weights_of(const axis *axes, unsigned dimensions, int32_t *w) {
  int32_t a = axes[0].weight, b = axes[1].weight, c = axes[2].weight;
  int32_t plane[2] = {ONE - c, c};
  for (unsigned z = 0; z < (dimensions == 3 ? 2 : 1); z++, w += 4) {
    int32_t right = (plane[z] * a + ONE / 2) >> 8, left = plane[z] - right;
    w[3] = (right * b + ONE / 2) >> 8;
    w[1] = right - w[3];
    w[2] = (left * b + ONE / 2 - 1) >> 8;
    w[0] = left - w[2];
  }
}

static int exponent_of(uint32_t bits) { return (int)(bits >> 23 & 255); }

/* A sum of a plane's texels: value × 2^(exponent − 127 − 35). */
typedef struct partial {
  int64_t value;
  int exponent; /* of the largest one, 0 if there is none */
} partial;

static partial add_plane(const uint32_t *texel, const int32_t *w, int digits) {
  int cut = 24 - digits;
  partial p = {0, 0};
  for (unsigned k = 0; k < 4; k++)
    if (w[k] != 0 && exponent_of(texel[k]) > p.exponent)
      p.exponent = exponent_of(texel[k]);
  for (unsigned k = 0; k < 4; k++) {
    int e = exponent_of(texel[k]), down = p.exponent - e;
    if (w[k] == 0) continue;
    if (e == 0 || down > 28) continue; /* what is denormal counts as zero */
    int64_t m = (int64_t)((texel[k] & 0x7fffff) | 0x800000) << 4 >> down;
    m = m >> cut << cut;
    p.value += (texel[k] >> 31 ? -m : m) * w[k];
  }
  return p;
}

/* value × 2^(exponent − 127 − 36), rounded to `digits` bits. */
static uint32_t to_float(int64_t value, int exponent, int digits) {
  uint32_t sign = value < 0 ? 0x80000000u : 0;
  uint64_t m = value < 0 ? (uint64_t)-value : (uint64_t)value;
  if (m == 0) return 0;
  int up = __builtin_clzll(m) - 1; /* m × 2^up has 63 bits */
  m = (m << up) + ((uint64_t)1 << (62 - digits));
  if (m >> 63) m >>= 1, up--;
  m = m >> (63 - digits) << (24 - digits);
  int e = exponent + 62 - up - 36;
  if (e <= 0) return sign;
  if (e >= 255) return sign | 0x7f800000u;
  return sign | (uint32_t)e << 23 | ((uint32_t)m & 0x7fffff);
}

static int64_t aligned(partial p, int exponent) {
  int down = exponent - p.exponent;
  if (down > 62) return 0;
  /* toward zero */
  int64_t m = p.value < 0 ? -p.value : p.value;
  m = m << 1 >> down;
  return p.value < 0 ? -m : m;
}

/* True where the sum is decided by infinities or what is no number. */
static bool special(const uint32_t *texel, const int32_t *w, unsigned count,
                    uint32_t *out) {
  float sum = 0;
  bool any = false;
  for (unsigned k = 0; k < count; k++) {
    if (exponent_of(texel[k]) != 255 || w[k] == 0) continue;
    sum = any ? sum + f32_of(texel[k]) : f32_of(texel[k]);
    any = true;
  }
  if (any) *out = bits_of(canon(sum));
  return any;
}

/* Integers of 16 bits, halves rounded up. */
static uint32_t blend_integers(const uint32_t *texel, const int32_t *w,
                               unsigned count, precision p) {
  int32_t sum = 0;
  for (unsigned k = 0; k < count; k++) sum += (int32_t)texel[k] * w[k];
  if (p == AS_SIGNED_BYTE)
    return (uint32_t)(int32_t)round(sum * 32767.0 / (127 * ONE));
  return (uint32_t)((sum + ONE / 2) >> 8);
}

/* A zero is negative where all that is blended is. */
static uint32_t zero_of(const uint32_t *texel, const int32_t *w,
                        unsigned count) {
  for (unsigned k = 0; k < count; k++)
    if (w[k] != 0 && texel[k] >> 31 == 0) return 0;
  return 0x80000000u;
}

static uint32_t blend_floats(const uint32_t *texel, const int32_t *w,
                             unsigned planes, int digits) {
  uint32_t out;
  if (special(texel, w, planes * 4, &out)) return out;
  partial a = add_plane(texel, w, digits), b = {0, 0};
  if (planes == 2) b = add_plane(texel + 4, w + 4, digits);
  int exponent = a.exponent > b.exponent ? a.exponent : b.exponent;
  int64_t sum = aligned(a, exponent) + aligned(b, exponent);
  return sum == 0 ? zero_of(texel, w, planes * 4)
                  : to_float(sum, exponent, digits);
}

static uint32_t blend(const uint32_t *texel, const int32_t *w, unsigned planes,
                      precision p) {
  if (p >= AS_NORMALIZED) return blend_integers(texel, w, planes * 4, p);
  return blend_floats(texel, w, planes, p == AS_HALF ? 11 : 24);
}

/* ---- samples ------------------------------------------------------------- */

/* The number of the slice where a layer begins. */
static int64_t slice_of(const tps_sim_view *v, int32_t layer) {
  uint64_t n = v->shape.layers == 0 ? 1 : v->shape.layers;
  return (int64_t)((uint32_t)layer < n ? (uint32_t)layer : n - 1);
}

static void note(const tps_sim_view *v, const int64_t i[3], int64_t slice) {
  if (v->read == NULL || i[0] < 0 || i[1] < 0 || i[2] < 0) return;
  v->read->at[v->read->count++] = (uint64_t)(slice + i[2]) * v->slice_bytes +
                                  (uint64_t)i[1] * v->row_bytes +
                                  (uint64_t)i[0] * v->texel_bytes;
}

static tps_sim_texel texel_or_border(const tps_sim_view *v, const int64_t i[3],
                                     int64_t slice) {
  if (i[0] < 0 || i[1] < 0 || i[2] < 0) return border(v);
  return texel_at(v, i[0], i[1], slice + i[2]);
}

static tps_sim_texel one_texel(const tps_sim_view *v, const int64_t i[3],
                               int64_t slice) {
  note(v, i, slice);
  return texel_or_border(v, i, slice);
}

static tps_sim_texel filtered(const tps_sim_view *v, const axis *axes,
                              unsigned dimensions, int64_t slice) {
  unsigned planes = dimensions == 3 ? 2 : 1;
  int32_t w[8];
  uint32_t channels[4][8];
  tps_sim_texel out;
  weights_of(axes, dimensions, w);
  for (unsigned k = 0; k < planes * 4; k++) {
    int64_t i[3] = {axes[0].texel[k & 1], axes[1].texel[k >> 1 & 1],
                    axes[2].texel[k >> 2]};
    tps_sim_texel t = texel_or_border(v, i, slice);
    if (w[k] != 0) note(v, i, slice);
    for (unsigned c = 0; c < 4; c++) channels[c][k] = t.channel[c];
  }
  for (unsigned c = 0; c < 4; c++)
    out.channel[c] = blend(channels[c], w, planes, precision_of(v, c));
  return finished(v, out, true);
}

static tps_sim_texel sample_slice(const tps_sim_view *v, unsigned dimensions,
                                  const float *x, int64_t slice) {
  if (v->sampling.linear) {
    axis axes[3] = {{{0, 0}, 0}, {{0, 0}, 0}, {{0, 0}, 0}};
    for (unsigned d = 0; d < dimensions; d++)
      axes[d] = axis_filtered(v, d, x[d]);
    return filtered(v, axes, dimensions, slice);
  }
  int64_t i[3] = {0, 0, 0};
  for (unsigned d = 0; d < dimensions; d++) i[d] = axis_point(v, d, x[d]);
  return finished(v, one_texel(v, i, slice), false);
}

tps_sim_texel tps_sim_sample(const tps_sim_view *v, unsigned dimensions,
                             tps_sim_point at) {
  const float x[3] = {at.x, at.y, at.z};
  return sample_slice(v, dimensions, x, slice_of(v, at.layer));
}

tps_sim_texel tps_sim_fetch(const tps_sim_view *v, unsigned dimensions,
                            const int32_t at[3], int32_t layer) {
  int64_t i[3] = {0, 0, 0};
  bool inside = true;
  for (unsigned d = 0; d < dimensions; d++) {
    i[d] = at[d];
    inside = inside && i[d] >= 0 && i[d] < extent(v, d);
  }
  uint64_t layers = v->shape.layers == 0 ? 1 : v->shape.layers;
  if (!inside || (uint32_t)layer >= layers) return (tps_sim_texel){{0}};
  return finished(v, one_texel(v, i, slice_of(v, layer)), false);
}

tps_sim_texel tps_sim_gather(const tps_sim_view *v, tps_sim_point at,
                             unsigned channel) {
  static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  axis x = axis_linear(v, 0, at.x);
  axis y = axis_linear(v, 1, at.y);
  tps_sim_texel out;
  for (unsigned k = 0; k < 4; k++) {
    int64_t i[3] = {x.texel[order[k][0]], y.texel[order[k][1]], 0};
    tps_sim_texel t =
        finished(v, one_texel(v, i, slice_of(v, at.layer)), false);
    out.channel[k] = t.channel[channel];
  }
  return out;
}

/* ---- cubes --------------------------------------------------------------- */

/* Where a direction meets the cube: its face, and coordinates from -1 to 1. */
typedef struct spot {
  unsigned face; /* +x, -x, +y, -y, +z, -z */
  double s, t;
} spot;

static spot spot_of(double x, double y, double z) {
  double ax = fabs(x), ay = fabs(y), az = fabs(z);
  if (ax + ay + az == 0) return (spot){4, 0, 0};
  if (az >= ax && az >= ay)
    return (spot){z < 0 ? 5 : 4, (z < 0 ? -x : x) / az, -y / az};
  if (ay >= ax) return (spot){y < 0 ? 3 : 2, x / ay, (y < 0 ? -z : z) / ay};
  return (spot){x < 0 ? 1 : 0, (x < 0 ? z : -z) / ax, -y / ax};
}

/* Within a face as in a plane: what lies beside it is not blended in. */
tps_sim_texel tps_sim_sample_cube(const tps_sim_view *v, tps_sim_point at) {
  spot p = spot_of(at.x, at.y, at.z);
  const float x[2] = {(float)((p.s + 1) / 2), (float)((p.t + 1) / 2)};
  int64_t slice = 6 * slice_of(v, at.layer) + p.face;
  return sample_slice(v, 2, x, slice);
}
