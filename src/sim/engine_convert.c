/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Conversions, and the arithmetic of the half formats, which is done in wider
 * ones and rounded once. Built once for each processor level.
 */
#include "sim/engine_lanes.h"
#include "sim/engine_number.h"

/* --- integers ------------------------------------------------------------ */

#define SAME(x) (x)
OP1(sext_8, s32, s8, SAME)
OP1(sext_16, s32, s16, SAME)
OP1(zext_8, u32, u8, SAME)
OP1(zext_16, u32, u16, SAME)
OP1(wide_u32, u64, u32, SAME)
OP1(wide_s32, u64, s32, SAME)
OP1(low_64, u32, u64, (uint32_t))

/* Saturation of a 64-bit integer to a width. */
static inline uint64_t clamp(uint64_t x, int64_t flags, bool sign_in) {
  unsigned bits = flags >> BITS_SHIFT & 255;
  uint64_t top =
      flags & FLAG_SIGNED ? ~0ull >> (65 - bits) : ~0ull >> (64 - bits);
  if (!sign_in) return x > top ? top : x;
  int64_t v = (int64_t)x;
  int64_t low = flags & FLAG_SIGNED ? -(int64_t)top - 1 : 0;
  if (v < low) return (uint64_t)low;
  return v > 0 && (uint64_t)v > top ? top : x;
}
/* imm: width and sign of the result; count: the source is signed. */
HANDLER(clamp_32) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint64_t *a = ROW(uint64_t, i->a);
  BLEND((uint32_t)clamp(a[l], i->imm, i->count));
  return i + 1;
}
HANDLER(clamp_64) {
  uint64_t *d = ROW(uint64_t, i->d);
  const uint64_t *a = ROW(uint64_t, i->a);
  BLEND(clamp(a[l], i->imm, i->count));
  return i + 1;
}

/* --- float to integer ---------------------------------------------------- */

static inline double integral(double x, int rounding) {
  switch (rounding) {
  case ROUND_RN: return rint(x);
  case ROUND_RM: return floor(x);
  case ROUND_RP: return ceil(x);
  default: return trunc(x);
  }
}
/* clang-format off */
static void integral_row(double *x, int rounding) {
  switch (rounding) {
  case ROUND_RN: EACH_LANE { x[l] = rint(x[l]); } break;
  case ROUND_RM: EACH_LANE { x[l] = floor(x[l]); } break;
  case ROUND_RP: EACH_LANE { x[l] = ceil(x[l]); } break;
  default: EACH_LANE { x[l] = trunc(x[l]); } break;
  }
}
/* clang-format on */

/* Bounds of the result as doubles; beyond them it saturates. NaN gives 0. */
static inline int32_t to_s32(double x, double low, double high) {
  double y = x > low ? (x < high ? x : high) : low;
  return (int32_t)(x == x ? y : 0.0);
}
static inline uint32_t to_u32(double x) {
  double y = x > 0 ? (x < 4294967295.0 ? x : 4294967295.0) : 0;
  return (uint32_t)(int64_t)y;
}
static inline uint64_t to_64(double x, bool sign) {
  if (x != x) return 1ull << 63;
  if (!sign) return x <= 0 ? 0 : x >= 0x1p64 ? ~0ull : (uint64_t)x;
  if (x >= 0x1p63) return ~0ull >> 1;
  return x <= -0x1p63 ? 1ull << 63 : (uint64_t)(int64_t)x;
}

/* A NaN that was f64 gives the sign bit of the result's width. */
static void store_nans(engine *e, const insn *i, uint32_t mask, const double *x,
                       unsigned bits) {
  uint32_t *d = ROW(uint32_t, i->d), value = 1u << (bits - 1);
  if (i->imm & FLAG_SIGNED) value = 0u - value;
  for (unsigned l = 0; l < LANES; l++)
    if (ON(mask, l) && x[l] != x[l]) d[l] = value;
}

static void store_integers(engine *e, const insn *i, uint32_t mask,
                           const double *x, bool f64) {
  unsigned bits = i->imm >> BITS_SHIFT & 255;
  bool sign = i->imm & FLAG_SIGNED;
  if (bits == 64) {
    uint64_t *d = ROW(uint64_t, i->d);
    BLEND(to_64(x[l], sign));
  } else if (!sign) {
    uint32_t *d = ROW(uint32_t, i->d), top = FULL >> (32 - bits);
    BLEND(to_u32(x[l]) < top ? to_u32(x[l]) : top);
  } else {
    int32_t *d = ROW(int32_t, i->d);
    double high = (double)(INT32_MAX >> (32 - bits));
    BLEND(to_s32(x[l], -high - 1, high));
  }
  if (f64 && bits < 64) store_nans(e, i, mask, x, bits);
}
HANDLER(int_f32) {
  _Alignas(64) double x[LANES];
  const float *a = ROW(float, i->a);
  if (i->imm & FLAG_FTZ) EACH_LANE {
      x[l] = (double)flush(a[l]);
    }
  else EACH_LANE {
      x[l] = (double)a[l];
    }
  integral_row(x, (int)(i->imm & ROUND_BITS));
  store_integers(e, i, mask, x, false);
  return i + 1;
}
HANDLER(int_f64) {
  _Alignas(64) double x[LANES];
  const double *a = ROW(double, i->a);
  EACH_LANE { x[l] = a[l]; }
  integral_row(x, (int)(i->imm & ROUND_BITS));
  store_integers(e, i, mask, x, true);
  return i + 1;
}

/* --- integer to float ---------------------------------------------------- */

#define TO_F32(x) ((float)(x))
#define TO_F64(x) ((double)(x))
OP1(f32_s32, f32, s32, TO_F32)
OP1(f32_u32, f32, u32, TO_F32)
OP1(f64_s32, f64, s32, TO_F64)
OP1(f64_u32, f64, u32, TO_F64)

/* With a rounding, and .sat. */
#define FROM_INTEGER(name, F, A, sat)                                          \
  HANDLER(name) {                                                              \
    _Alignas(64) T_##A x[LANES];                                               \
    _Alignas(64) F r[LANES];                                                   \
    memcpy(x, row(e, i->a), sizeof x);                                         \
    unsigned old = rounding_begin((int)(i->imm & ROUND_BITS));                 \
    HOLD(x);                                                                   \
    HOLD(r);                                                                   \
    for (unsigned l = 0; l < LANES; l++) r[l] = (F)x[l];                       \
    HOLD(r);                                                                   \
    rounding_end(old);                                                         \
    F *d = ROW(F, i->d);                                                       \
    bool s = i->imm & FLAG_SAT;                                                \
    BLEND(s ? sat(r[l]) : r[l]);                                               \
    return i + 1;                                                              \
  }
FROM_INTEGER(f32x_s32, float, s32, saturate)
FROM_INTEGER(f32x_u32, float, u32, saturate)
FROM_INTEGER(f32x_s64, float, s64, saturate)
FROM_INTEGER(f32x_u64, float, u64, saturate)
FROM_INTEGER(f64x_s32, double, s32, saturate64)
FROM_INTEGER(f64x_u32, double, u32, saturate64)
FROM_INTEGER(f64x_s64, double, s64, saturate64)
FROM_INTEGER(f64x_u64, double, u64, saturate64)

/* --- float to float ------------------------------------------------------ */

#define CANON64(x) ((double)(x))
#define CANON32(x) ((float)(x))
OP1(f64_f32, f64, f32, CANON64)
OP1(f32_f64, f32, f64, CANON32)

HANDLER(f64x_f32) {
  double *d = ROW(double, i->d);
  const float *a = ROW(float, i->a);
  bool ftz = i->imm & FLAG_FTZ, sat = i->imm & FLAG_SAT;
  for (unsigned l = 0; l < LANES; l++) {
    double r = (double)(ftz ? canon(flush(a[l])) : a[l]);
    r = sat ? saturate64(r) : r;
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}
HANDLER(f32x_f64) {
  struct {
    _Alignas(64) double x[LANES];
    _Alignas(64) float r[LANES];
  } o;
  memcpy(o.x, row(e, i->a), ROW64);
  unsigned old = rounding_begin((int)(i->imm & ROUND_BITS));
  HOLD(&o);
  EACH_LANE { o.r[l] = (float)o.x[l]; }
  HOLD(&o);
  rounding_end(old);
  float *d = ROW(float, i->d);
  bool ftz = i->imm & FLAG_FTZ, sat = i->imm & FLAG_SAT;
  for (unsigned l = 0; l < LANES; l++) {
    float r = ftz ? flush(o.r[l]) : o.r[l];
    r = sat ? saturate(r) : r;
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}
static inline float same_f32(float x, int64_t flags) {
  if (flags & FLAG_FTZ) x = flush(x);
  if (flags & FLAG_INTEGRAL) x = (float)integral(x, (int)(flags & ROUND_BITS));
  x = canon(x);
  return flags & FLAG_SAT ? saturate(x) : x;
}
HANDLER(f32_f32) {
  float *d = ROW(float, i->d);
  const float *a = ROW(float, i->a);
  if (i->imm == FLAG_SAT) {
    BLEND(saturate(a[l]));
  } else {
    BLEND(same_f32(a[l], i->imm));
  }
  return i + 1;
}
HANDLER(f64_f64) {
  double *d = ROW(double, i->d);
  const double *a = ROW(double, i->a);
  bool whole = i->imm & FLAG_INTEGRAL, sat = i->imm & FLAG_SAT;
  for (unsigned l = 0; l < LANES; l++) {
    double r = whole ? integral(a[l], (int)(i->imm & ROUND_BITS)) : a[l];
    r = r == r ? r : quiet(r);
    r = sat ? saturate64(r) : r;
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}

/* --- half formats -------------------------------------------------------- */

OP1(f32_f16, f32, u32, f16_to)
OP1(f32_bf16, f32, u16, bf16_to)
/* Between f16 and f64 the bits of a NaN are kept. */
static inline double f64_from_f16(uint32_t h) {
  uint64_t fraction = h & 0x3ff, sign = (uint64_t)(h & 0x8000) << 48;
  if ((h & 0x7c00) == 0x7c00 && fraction)
    return f64_of(sign | 0x7ff8000000000000ull | fraction << 42);
  return (double)f16_to(h);
}
OP1(f64_f16, f64, u16, f64_from_f16)

static inline double adjust(double x, int64_t flags) {
  if (flags & FLAG_FTZ) x = (double)flush((float)x);
  if (flags & FLAG_SAT) x = saturate64(x);
  if (flags & FLAG_RELU) x = x > 0 || x != x ? x : 0;
  return x;
}
static inline uint32_t cap(uint32_t h, int64_t flags, uint32_t infinity) {
  bool finite = flags & FLAG_SATFINITE && (h & 0x7fff) == infinity;
  return finite ? h - 1 : h;
}
static inline uint32_t to_f16(double x, int64_t flags) {
  uint32_t h = f16_from(adjust(x, flags), (int)(flags & ROUND_BITS));
  return cap(h, flags, 0x7c00);
}
static inline uint32_t to_bf16(double x, int64_t flags) {
  uint32_t h = bf16_from(adjust(x, flags), (int)(flags & ROUND_BITS));
  return cap(h, flags, 0x7f80);
}
static inline uint32_t nan_of(double x, uint32_t infinity, int mant) {
  uint64_t u = bits_of64(x);
  return (uint32_t)(u >> 63) << 15 | infinity | 1u << (mant - 1) |
         (uint32_t)((u & 0xfffffffffffffull) >> (52 - mant));
}
static inline uint32_t f64_to_f16(double x, int64_t flags) {
  bool keep = x != x && !(flags & FLAG_SAT);
  return keep ? nan_of(x, 0x7c00, 10) : to_f16(x, flags);
}
static inline uint32_t f64_to_bf16(double x, int64_t flags) {
  bool keep = x != x && !(flags & FLAG_SAT);
  return keep ? nan_of(x, 0x7f80, 7) : to_bf16(x, flags);
}
/* Rounding half away is an addition on the bits, .satfinite a subtraction of
 * the last place from what is not finite, NaNs too. */
static inline uint32_t to_tf32(double x, int64_t flags) {
  int rounding = (int)(flags & ROUND_BITS);
  if (rounding == ROUND_RNA) {
    uint32_t r = (bits_of((float)x) + (x == x ? 0x1000u : 0)) & ~0x1fffu;
    bool cap = flags & FLAG_SATFINITE && (r & 0x7fffffffu) >= 0x7f800000u;
    return cap ? r - 0x2000u : r;
  }
  return tf32_from(adjust(x, flags), rounding);
}
/* Usual ones, without flags, to the nearest: loops that become vector code. */
static inline uint32_t nearest_f16(float x) {
  uint32_t u = bits_of(x), y = u & 0x7fffffffu;
  uint32_t normal = (y - 0x38000000u + 0xfffu + (y >> 13 & 1)) >> 13;
  uint32_t small = bits_of(f32_of(y) + 0.5f) - 0x3f000000u;
  uint32_t r = y < 0x38800000u ? small : y < 0x477ff000u ? normal : 0x7c00u;
  return y > 0x7f800000u ? 0x7fffu : r | (u >> 16 & 0x8000u);
}
static inline uint32_t nearest_bf16(float x) {
  uint32_t u = bits_of(x), r = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
  return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r;
}
#define NARROW_F32(name, to, nearest)                                          \
  HANDLER(name##_f32) {                                                        \
    uint32_t *d = ROW(uint32_t, i->d);                                         \
    const float *a = ROW(float, i->a);                                         \
    if (i->imm == 0) BLEND(nearest(a[l]));                                     \
    else BLEND(to((double)a[l], i->imm));                                      \
    return i + 1;                                                              \
  }                                                                            \
  HANDLER(name##x2_f32) { /* the first source goes to the upper half */        \
    uint32_t *d = ROW(uint32_t, i->d);                                         \
    const float *a = ROW(float, i->a), *b = ROW(float, i->b);                  \
    if (i->imm == 0) BLEND(nearest(a[l]) << 16 | nearest(b[l]));               \
    else BLEND(to((double)a[l], i->imm) << 16 | to((double)b[l], i->imm));     \
    return i + 1;                                                              \
  }
NARROW_F32(f16, to_f16, nearest_f16)
NARROW_F32(bf16, to_bf16, nearest_bf16)
#define NARROW(name, F, to)                                                    \
  HANDLER(name) {                                                              \
    uint32_t *d = ROW(uint32_t, i->d);                                         \
    const F *a = ROW(F, i->a);                                                 \
    BLEND(to((double)a[l], i->imm));                                           \
    return i + 1;                                                              \
  }
NARROW(f16_f64, double, f64_to_f16)
NARROW(bf16_f64, double, f64_to_bf16)
NARROW(tf32_f32, float, to_tf32)
/* Integers first become doubles whose low bits keep what was cut off. */
static inline double sticky(int64_t x, bool sign) {
  uint64_t m = sign && x < 0 ? 0ull - (uint64_t)x : (uint64_t)x;
  if (m >> 53) m = (m & ~0x7ffull) | ((m & 0x7ff) ? 0x800 : 0);
  double r = (double)m;
  return sign && x < 0 ? -r : r;
}
#define FROM_64(name, to)                                                      \
  HANDLER(name) {                                                              \
    uint32_t *d = ROW(uint32_t, i->d);                                         \
    const int64_t *a = ROW(int64_t, i->a);                                     \
    BLEND(to(sticky(a[l], i->count), i->imm));                                 \
    return i + 1;                                                              \
  }
FROM_64(f16_int, to_f16)
FROM_64(bf16_int, to_bf16)
/* Arithmetic on a half or on a pair of them: imm flags, count 1 or 2. */
typedef struct halves_of {
  float x, y, z;
} halves_of;
/* .ftz flushes what is subnormal, results if they are so after a rounding that
 * knows no least exponent: those below least * (1 - half a place) then. */
static inline double tiny(double x, double least) {
  return fabs(x) < least ? copysign(0, x) : x;
}
/* The NaN that stands for what lies outside a tensor: .oob makes it nought. */
static inline bool is_oob(uint32_t h) { return (h & 0x7fff) == 0x7ff7; }
#define HALF_OP(name, from, to, least, place, expression)                      \
  HANDLER(name) {                                                              \
    uint32_t *d = ROW(uint32_t, i->d);                                         \
    const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);         \
    const uint32_t *c = ROW(uint32_t, i->c);                                   \
    bool two = i->count == 2;                                                  \
    int64_t flags = i->imm;                                                    \
    bool ftz = flags & FLAG_FTZ;                                               \
    flags &= ~(int64_t)FLAG_FTZ;                                               \
    for (unsigned l = 0; l < LANES; l++) {                                     \
      if (!ON(mask, l)) continue;                                              \
      uint32_t r = 0;                                                          \
      for (unsigned s = 0; s < (two ? 32 : 16); s += 16) {                     \
        halves_of v = {from(a[l] >> s & 0xffff), from(b[l] >> s & 0xffff),     \
                       from(c[l] >> s & 0xffff)};                              \
        if (ftz)                                                               \
          v = (halves_of){tiny(v.x, least), tiny(v.y, least),                  \
                          tiny(v.z, least)};                                   \
        double result = (expression);                                          \
        if (ftz) result = tiny(result, least * (1 - place / 2));               \
        uint32_t h = to(result, flags);                                        \
        if (flags & FLAG_OOB && (is_oob(a[l] >> s) || is_oob(b[l] >> s)))      \
          h = 0;                                                               \
        r |= h << s;                                                           \
      }                                                                        \
      d[l] = r;                                                                \
    }                                                                          \
    return i + 1;                                                              \
  }
/* `signs`: the signs' exclusive or, in bit 15, NaNs' too. */
static inline double half_min(halves_of v, uint32_t signs, int64_t flags,
                              bool max) {
  float x = v.x, y = v.y;
  uint32_t sign = (signs & 0x8000) << 16;
  if (flags & FLAG_XORSIGN) x = fabsf(x), y = fabsf(y);
  if ((flags & FLAG_NAN) && (x != x || y != y)) return NAN;
  float r =
      x != x   ? y
      : y != y ? x
      : x == y ? f32_of(max ? bits_of(x) & bits_of(y) : bits_of(x) | bits_of(y))
      : (x < y) != max ? x
                       : y;
  return flags & FLAG_XORSIGN ? f32_of(bits_of(r) | sign) : r;
}
static inline double half_whole(float x, int64_t flags) {
  bool whole = flags & FLAG_INTEGRAL;
  return whole ? integral((double)x, (int)(flags & ROUND_BITS)) : (double)x;
}
#define SIGNS (a[l] >> s ^ b[l] >> s)
#define ALL_HALF_OPS(k, from, to, least, place)                                \
  HALF_OP(add_##k, from, to, least, place, (double)v.x + v.y)                  \
  HALF_OP(sub_##k, from, to, least, place, (double)v.x - v.y)                  \
  HALF_OP(mul_##k, from, to, least, place, (double)v.x *v.y)                   \
  HALF_OP(fma_##k, from, to, least, place, add_to_odd((double)v.x *v.y, v.z))  \
  HALF_OP(min_##k, from, to, least, place, half_min(v, SIGNS, flags, false))   \
  HALF_OP(max_##k, from, to, least, place, half_min(v, SIGNS, flags, true))    \
  HALF_OP(ex2_##k, from, to, least, place, exp2((double)v.x))                  \
  HALF_OP(tanh_##k, from, to, least, place, tanh((double)v.x))                 \
  HALF_OP(whole_##k, from, to, least, place, half_whole(v.x, flags))
ALL_HALF_OPS(f16, f16_to, to_f16, 0x1p-14, 0x1p-11)
ALL_HALF_OPS(bf16, bf16_to, to_bf16, 0x1p-126, 0x1p-8)

/* What is subnormal in f16, to nought. */
#define FLUSH_F16(h) ((h)&0x7c00 ? (h) : (h)&0x8000)
OP1(flush_f16, u32, u32, FLUSH_F16)

/* neg and abs work on the bits of one half or two. imm: the bits of infinity;
 * count: halves, and 4 for abs, 8 for .ftz. */
static inline uint32_t sign_half(uint32_t h, uint32_t infinity, bool abs) {
  if ((h & 0x7fff) > infinity) return 0x7fff;
  return abs ? h & 0x7fff : h ^ 0x8000;
}
HANDLER(sign_bits) {
  uint32_t *d = ROW(uint32_t, i->d), infinity = (uint32_t)i->imm;
  const uint32_t *a = ROW(uint32_t, i->a);
  bool abs = i->count & 4, two = i->count & 2, ftz = i->count & 8;
  for (unsigned l = 0; l < LANES; l++) {
    uint32_t lo = sign_half(a[l] & 0xffff, infinity, abs);
    uint32_t hi = two ? sign_half(a[l] >> 16, infinity, abs) : 0;
    if (ftz) lo = FLUSH_F16(lo), hi = FLUSH_F16(hi);
    uint32_t r = lo | hi << 16;
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}

/* --- packing ------------------------------------------------------------- */

/* Two 16-bit values, two 32-bit values. */
HANDLER(pack_16) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  BLEND((a[l] & 0xffff) | b[l] << 16);
  return i + 1;
}
HANDLER(pack_32) {
  uint64_t *d = ROW(uint64_t, i->d);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  BLEND((uint64_t)b[l] << 32 | a[l]);
  return i + 1;
}
HANDLER(high_64) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint64_t *a = ROW(uint64_t, i->a);
  BLEND((uint32_t)(a[l] >> 32));
  return i + 1;
}
/* imm: the first bit of a field of `count` bits. */
HANDLER(field) {
  uint32_t *d = ROW(uint32_t, i->d), keep = FULL >> (32 - i->count);
  const uint32_t *a = ROW(uint32_t, i->a);
  unsigned shift = (unsigned)i->imm;
  BLEND(a[l] >> shift & keep);
  return i + 1;
}
HANDLER(insert) {
  uint32_t *d = ROW(uint32_t, i->d), keep = FULL >> (32 - i->count);
  const uint32_t *a = ROW(uint32_t, i->a);
  unsigned shift = (unsigned)i->imm;
  BLEND((d[l] & ~(keep << shift)) | (a[l] & keep) << shift);
  return i + 1;
}

void VARIANT(tps_sim_fill_convert)(handler **table);
void VARIANT(tps_sim_fill_convert)(handler **table) { CONVERT_OPS(FILL) }
