/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Arithmetic and comparison of f32 and f64. The common forms (nearest even, no
 * .ftz, no .sat) have handlers of their own; the others share one that looks
 * at the flags. Results equal a GPU's bit for bit, but for the approximations,
 * which are as good as the host's library. Built once for each processor
 * level.
 */
#include "sim/engine_lanes.h"
#include "sim/engine_number.h"

/* --- f32, common forms --------------------------------------------------- */

#define DIV(x, y) ((x) / (y))
#define ADD_F32(x, y) canon((x) + (y))
#define SUB_F32(x, y) canon((x) - (y))
#define MUL_F32(x, y) canon((x) * (y))
#define DIV_F32(x, y) canon((x) / (y))
#define FMA_F32(x, y, z) canon(fmaf(x, y, z))
OP2(add_f32, f32, f32, f32, ADD_F32)
OP2(sub_f32, f32, f32, f32, SUB_F32)
OP2(mul_f32, f32, f32, f32, MUL_F32)
OP2(div_f32, f32, f32, f32, DIV_F32)
OP3(fma_f32, f32, f32, f32, f32, FMA_F32)

#define SIGN 0x80000000u
#define NEG_BITS(x) ((x) ^ SIGN)
#define ABS_BITS(x) ((x) & ~SIGN)
#define NEG_FTZ(x) canon(flush(-(x)))
#define ABS_FTZ(x) canon(flush(fabsf(x)))
/* neg and abs of a NaN: hardware leaves its canonical NaN. */
static inline uint32_t neg_bits(uint32_t x) {
  return (x & ~SIGN) > 0x7f800000u ? 0x7fffffffu : x ^ SIGN;
}
static inline uint32_t abs_bits(uint32_t x) {
  return (x & ~SIGN) > 0x7f800000u ? 0x7fffffffu : x & ~SIGN;
}
OP1(neg_f32, u32, u32, neg_bits)
OP1(abs_f32, u32, u32, abs_bits)
OP1(neg_ftz_f32, f32, f32, NEG_FTZ)
OP1(abs_ftz_f32, f32, f32, ABS_FTZ)
#define COPYSIGN(x, y) (((x)&SIGN) | ((y) & ~SIGN))
OP2(copysign_f32, u32, u32, u32, COPYSIGN)

/* A NaN loses against a number; -0 is less than +0. */
static inline float min_f32(float x, float y) {
  float equal = f32_of(bits_of(x) | bits_of(y));
  float r = x < y ? x : y < x ? y : equal;
  r = x == x ? r : y;
  return canon(y == y ? r : x);
}
static inline float max_f32(float x, float y) {
  float equal = f32_of(bits_of(x) & bits_of(y));
  float r = x > y ? x : y > x ? y : equal;
  r = x == x ? r : y;
  return canon(y == y ? r : x);
}
OP2(min_f32, f32, f32, f32, min_f32)
OP2(max_f32, f32, f32, f32, max_f32)

static inline float extreme(float x, float y, bool max, int64_t flags) {
  if (flags & FLAG_FTZ) x = flush(x), y = flush(y);
  uint32_t sign = (bits_of(x) ^ bits_of(y)) & SIGN;
  if (flags & FLAG_XORSIGN) x = fabsf(x), y = fabsf(y);
  if ((flags & FLAG_NAN) && (x != x || y != y)) return f32_of(0x7fffffffu);
  float r = max ? max_f32(x, y) : min_f32(x, y);
  return flags & FLAG_XORSIGN && r == r ? f32_of(bits_of(r) | sign) : r;
}
#define EXTREME(name, max)                                                     \
  HANDLER(name) {                                                              \
    float *d = ROW(float, i->d);                                               \
    const float *a = ROW(float, i->a), *b = ROW(float, i->b);                  \
    BLEND(extreme(a[l], b[l], max, i->imm));                                   \
    return i + 1;                                                              \
  }
EXTREME(minx_f32, false)
EXTREME(maxx_f32, true)

/* --- f32, any rounding, .ftz, .sat --------------------------------------- */

typedef struct operands32 {
  _Alignas(64) float x[LANES], y[LANES], z[LANES], r[LANES];
} operands32;

static inline void take32(engine *e, const insn *i, operands32 *o, int count) {
  const float *a = ROW(float, i->a), *b = ROW(float, i->b);
  const float *c = ROW(float, i->c);
  bool ftz = i->imm & FLAG_FTZ;
  EACH_LANE { o->x[l] = ftz ? flush(a[l]) : a[l]; }
  if (count > 1) EACH_LANE {
      o->y[l] = ftz ? flush(b[l]) : b[l];
    }
  if (count > 2) EACH_LANE {
      o->z[l] = ftz ? flush(c[l]) : c[l];
    }
}

static inline void give32(engine *e, const insn *i, uint32_t mask,
                          const operands32 *o) {
  float *d = ROW(float, i->d);
  bool ftz = i->imm & FLAG_FTZ, sat = i->imm & FLAG_SAT;
  EACH_LANE {
    float r = canon(o->r[l]);
    r = ftz ? flush(r) : r;
    r = sat ? saturate(r) : r;
    d[l] = ON(mask, l) ? r : d[l];
  }
}

/* Executes `work` under the instruction's rounding. */
#define ROUNDED(o, work)                                                       \
  do {                                                                         \
    int rounding_ = (int)(i->imm & ROUND_BITS);                                \
    if (rounding_ == ROUND_RN) {                                               \
      work;                                                                    \
    } else {                                                                   \
      unsigned old_ = rounding_begin(rounding_);                               \
      HOLD(&o);                                                                \
      work;                                                                    \
      HOLD(&o);                                                                \
      rounding_end(old_);                                                      \
    }                                                                          \
  } while (0)

/* With .ftz what is tiny after rounding is flushed, and that rounding knows no
 * least exponent: a result of the least normal number needs a look at the exact
 * value, of which it may be the rounding up of a subnormal one. */
static inline bool any_least(const operands32 *o) {
  uint32_t any = 0;
  for (unsigned l = 0; l < LANES; l++) any |= fabsf(o->r[l]) == 0x1p-126f;
  return any;
}
static bool rounds_to_tiny(double exact, int rounding) {
  double x = fabs(exact) * 0x1p126;
  if (rounding == (exact > 0 ? ROUND_RP : ROUND_RM)) return x <= 1 - 0x1p-24;
  return x < (rounding == ROUND_RN ? 1 - 0x1p-25 : 1);
}
#define FLUSH_TINY(exact)                                                      \
  if ((i->imm & FLAG_FTZ) && any_least(&o))                                    \
    for (unsigned l = 0; l < LANES; l++)                                       \
      if (fabsf(o.r[l]) == 0x1p-126f &&                                        \
          rounds_to_tiny(exact, (int)(i->imm & ROUND_BITS)))                   \
  o.r[l] = copysignf(0, o.r[l])

#define ANY32(name, count, expression, exact)                                  \
  HANDLER(name) {                                                              \
    operands32 o;                                                              \
    take32(e, i, &o, count);                                                   \
    ROUNDED(                                                                   \
        o, EACH_LANE { o.r[l] = (expression); });                              \
    FLUSH_TINY(exact);                                                         \
    give32(e, i, mask, &o);                                                    \
    return i + 1;                                                              \
  }
#define X (double)o.x[l]
#define Y (double)o.y[l]
ANY32(addx_f32, 2, o.x[l] + o.y[l], 1.0)
ANY32(subx_f32, 2, o.x[l] - o.y[l], 1.0)
ANY32(mulx_f32, 2, o.x[l] * o.y[l], X *Y)
ANY32(divx_f32, 2, o.x[l] / o.y[l], X / Y)
ANY32(fmax_f32, 3, fmaf(o.x[l], o.y[l], o.z[l]),
      add_to_odd(X *Y, (double)o.z[l]))
ANY32(rcp_f32, 1, 1.0f / o.x[l], 1.0 / X)
ANY32(sqrt_f32, 1, sqrtf(o.x[l]), 1.0)

/* Approximations: .ftz. Above 2^126 the divisor of div.approx counts as
 * infinite. */
static inline float div_approx(float x, float y) {
  return x / (fabsf(y) > 0x1p126f ? copysignf(INFINITY, y) : y);
}
ANY32(div_approx_f32, 2, div_approx(o.x[l], o.y[l]), X / Y)
ANY32(rsqrt_f32, 1, (float)(1.0 / sqrt(X)), 1.0)
#define EACH_ACTIVE(expression)                                                \
  for (unsigned l = 0; l < LANES; l++) o.r[l] = ON(mask, l) ? (expression) : 0
#define APPROXIMATE(name, expression)                                          \
  HANDLER(name) {                                                              \
    operands32 o;                                                              \
    take32(e, i, &o, 1);                                                       \
    EACH_ACTIVE(expression);                                                   \
    give32(e, i, mask, &o);                                                    \
    return i + 1;                                                              \
  }
APPROXIMATE(sin_f32, sinf(o.x[l]))
APPROXIMATE(cos_f32, cosf(o.x[l]))
APPROXIMATE(ex2_f32, exp2f(o.x[l]))
APPROXIMATE(lg2_f32, log2f(o.x[l]))
APPROXIMATE(tanh_f32, tanhf(o.x[l]))

/* --- f64 ----------------------------------------------------------------- */

/* The NaN of an operand goes on, made quiet: the second one's first, then the
 * third one's. */
static inline double nan2(double r, double x, double y) {
  double n = y != y ? quiet(y) : x != x ? quiet(x) : r;
  return r == r ? r : n;
}
static inline double nan3(double r, double x, double y, double z) {
  double n = y != y ? quiet(y) : z != z ? quiet(z) : x != x ? quiet(x) : r;
  return r == r ? r : n;
}
#define ADD_F64(x, y) nan2((x) + (y), x, y)
#define SUB_F64(x, y) nan2((x) - (y), x, y)
#define MUL_F64(x, y) nan2((x) * (y), x, y)
#define FMA_F64(x, y, z) nan3(fma(x, y, z), x, y, z)
OP2(add_f64, f64, f64, f64, ADD_F64)
OP2(sub_f64, f64, f64, f64, SUB_F64)
OP2(mul_f64, f64, f64, f64, MUL_F64)
OP2(div_f64, f64, f64, f64, DIV)
OP3(fma_f64, f64, f64, f64, f64, FMA_F64)

#define SIGN64 0x8000000000000000ull
static inline bool is_nan64(uint64_t x) {
  return (x & ~SIGN64) > 0x7ff0000000000000ull;
}
#define QUIET64(x) ((x) | 0x0008000000000000ull)
#define NEG64(x) (is_nan64(x) ? QUIET64(x) : (x) ^ SIGN64)
#define ABS64(x) (is_nan64(x) ? QUIET64(x) : (x) & ~SIGN64)
#define COPYSIGN64(x, y) (((x)&SIGN64) | ((y) & ~SIGN64))
OP1(neg_f64, u64, u64, NEG64)
OP1(abs_f64, u64, u64, ABS64)
OP2(copysign_f64, u64, u64, u64, COPYSIGN64)

static inline double min_f64(double x, double y) {
  double equal = f64_of(bits_of64(x) | bits_of64(y));
  double r = x < y ? x : y < x ? y : equal;
  r = x == x ? r : y;
  return nan2(y == y ? r : x, x, y);
}
static inline double max_f64(double x, double y) {
  double equal = f64_of(bits_of64(x) & bits_of64(y));
  double r = x > y ? x : y > x ? y : equal;
  r = x == x ? r : y;
  return nan2(y == y ? r : x, x, y);
}
OP2(min_f64, f64, f64, f64, min_f64)
OP2(max_f64, f64, f64, f64, max_f64)

typedef struct operands64 {
  _Alignas(64) double x[LANES], y[LANES], z[LANES], r[LANES];
} operands64;

#define ANY64(name, count, expression, fix)                                    \
  HANDLER(name) {                                                              \
    operands64 o;                                                              \
    memcpy(o.x, row(e, i->a), ROW64);                                          \
    if (count > 1) memcpy(o.y, row(e, i->b), ROW64);                           \
    if (count > 2) memcpy(o.z, row(e, i->c), ROW64);                           \
    ROUNDED(                                                                   \
        o, EACH_LANE { o.r[l] = (expression); });                              \
    double *d = ROW(double, i->d);                                             \
    BLEND(fix);                                                                \
    return i + 1;                                                              \
  }
#define NAN2 nan2(o.r[l], o.x[l], o.y[l])
#define NAN3 nan3(o.r[l], o.x[l], o.y[l], o.z[l])
ANY64(addx_f64, 2, o.x[l] + o.y[l], NAN2)
ANY64(subx_f64, 2, o.x[l] - o.y[l], NAN2)
ANY64(mulx_f64, 2, o.x[l] * o.y[l], NAN2)
ANY64(divx_f64, 2, o.x[l] / o.y[l], o.r[l])
ANY64(fmax_f64, 3, fma(o.x[l], o.y[l], o.z[l]), NAN3)
ANY64(rcp_f64, 1, 1.0 / o.x[l], o.r[l])
ANY64(sqrt_f64, 1, sqrt(o.x[l]), o.r[l])
ANY64(rsqrt_f64, 1, 1.0 / sqrt(o.x[l]), o.r[l])

/* .approx.ftz.f64 of rcp and rsqrt: only the upper halves count. */
static inline double upper(double x) {
  return f64_of(bits_of64(x) & 0xffffffff00000000ull);
}
static inline double flush64(double x) {
  return fabs(x) < 0x1p-1022 ? f64_of(bits_of64(x) & SIGN64) : x;
}
static inline double gross(double r) {
  return r == r ? upper(flush64(r)) : f64_of(0x7fffffff00000000ull);
}
#define RCP_GROSS(x) gross(1.0 / flush64(upper(x)))
#define RSQRT_GROSS(x) gross(1.0 / sqrt(flush64(upper(x))))
OP1(rcp_gross_f64, f64, f64, RCP_GROSS)
OP1(rsqrt_gross_f64, f64, f64, RSQRT_GROSS)

/* --- comparison ---------------------------------------------------------- */

#define NANS(x, y) ((x) != (x) || (y) != (y))
#define COMPARISONS(T, P)                                                      \
  COMPARE(eq_##T, P, FZ(x) == FZ(y))                                           \
  COMPARE(ne_##T, P, FZ(x) < FZ(y) || FZ(x) > FZ(y))                           \
  COMPARE(lt_##T, P, FZ(x) < FZ(y))                                            \
  COMPARE(le_##T, P, FZ(x) <= FZ(y))                                           \
  COMPARE(equ_##T, P, !(FZ(x) < FZ(y) || FZ(x) > FZ(y)))                       \
  COMPARE(neu_##T, P, FZ(x) != FZ(y))                                          \
  COMPARE(ltu_##T, P, !(FZ(x) >= FZ(y)))                                       \
  COMPARE(leu_##T, P, !(FZ(x) > FZ(y)))                                        \
  COMPARE(num_##T, P, !NANS(x, y))                                             \
  COMPARE(nan_##T, P, NANS(x, y))
#define FZ(x) (x)
COMPARISONS(f32, f32)
COMPARISONS(f64, f64)
#undef FZ
#define FZ(x) flush(x)
COMPARISONS(ftz_f32, f32)
#undef FZ

/* testp; imm: 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal,
 * 5 subnormal */
static bool property(int class, int64_t which) {
  switch (which) {
  case 0: return class != FP_NAN && class != FP_INFINITE;
  case 1: return class == FP_INFINITE;
  case 2: return class != FP_NAN;
  case 3: return class == FP_NAN;
  case 4: return class == FP_NORMAL || class == FP_ZERO; /* measured */
  default: return class == FP_SUBNORMAL;
  }
}
#define TESTP(name, T)                                                         \
  HANDLER(name) {                                                              \
    const T *a = ROW(const T, i->a);                                           \
    uint32_t r = 0;                                                            \
    for (unsigned l = 0; l < LANES; l++)                                       \
      r |= (uint32_t)property(fpclassify(a[l]), i->imm) << l;                  \
    set_mask(e, i->d, r, mask);                                                \
    return i + 1;                                                              \
  }
TESTP(testp_f32, float)
TESTP(testp_f64, double)

void VARIANT(tps_sim_fill_float)(handler **table);
void VARIANT(tps_sim_fill_float)(handler **table) { FLOAT_OPS(FILL) }
