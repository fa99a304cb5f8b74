/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Integer arithmetic, logic, comparison, selection and bit operations. Built
 * once for each processor level.
 */
#include "sim/engine_lanes.h"

/* --- two operands -------------------------------------------------------- */

#define ADD(x, y) ((x) + (y))
#define SUB(x, y) ((x) - (y))
#define AND(x, y) ((x) & (y))
#define OR(x, y) ((x) | (y))
#define XOR(x, y) ((x) ^ (y))
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define MUL(x, y) ((x) * (y))
#define MUL16(x, y) ((uint32_t)(x) * (y))

OP2(add_16, u16, u16, u16, ADD)
OP2(add_32, u32, u32, u32, ADD)
OP2(add_64, u64, u64, u64, ADD)
OP2(sub_16, u16, u16, u16, SUB)
OP2(sub_32, u32, u32, u32, SUB)
OP2(sub_64, u64, u64, u64, SUB)
OP2(mul_16, u16, u16, u16, MUL16)
OP2(mul_32, u32, u32, u32, MUL)
OP2(mul_64, u64, u64, u64, MUL)
OP2(and_32, u32, u32, u32, AND)
OP2(and_64, u64, u64, u64, AND)
OP2(or_32, u32, u32, u32, OR)
OP2(or_64, u64, u64, u64, OR)
OP2(xor_32, u32, u32, u32, XOR)
OP2(xor_64, u64, u64, u64, XOR)
OP2(min_u16, u16, u16, u16, MIN)
OP2(min_s16, s16, s16, s16, MIN)
OP2(min_u32, u32, u32, u32, MIN)
OP2(min_s32, s32, s32, s32, MIN)
OP2(min_u64, u64, u64, u64, MIN)
OP2(min_s64, s64, s64, s64, MIN)
OP2(max_u16, u16, u16, u16, MAX)
OP2(max_s16, s16, s16, s16, MAX)
OP2(max_u32, u32, u32, u32, MAX)
OP2(max_s32, s32, s32, s32, MAX)
OP2(max_u64, u64, u64, u64, MAX)
OP2(max_s64, s64, s64, s64, MAX)

/* .relu, for s32 */
#define MIN_RELU(x, y) (MAX(MIN(x, y), 0))
#define MAX_RELU(x, y) (MAX(MAX(x, y), 0))
OP2(min_relu_s32, s32, s32, s32, MIN_RELU)
OP2(max_relu_s32, s32, s32, s32, MAX_RELU)

static inline int32_t clamp32(int64_t x) {
  return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}
#define ADD_SAT(x, y) clamp32((int64_t)(x) + (y))
#define SUB_SAT(x, y) clamp32((int64_t)(x) - (y))
OP2(add_sat_s32, s32, s32, s32, ADD_SAT)
OP2(sub_sat_s32, s32, s32, s32, SUB_SAT)

#define WIDE_U(x, y) ((uint64_t)(x) * (y))
#define WIDE_S(x, y) ((int64_t)(x) * (y))
#define WIDE_S16(x, y) ((int32_t)(x) * (y))
OP2(mul_wide_u16, u32, u16, u16, MUL16)
OP2(mul_wide_s16, u32, s16, s16, WIDE_S16)
OP2(mul_wide_u32, u64, u32, u32, WIDE_U)
OP2(mul_wide_s32, u64, s32, s32, WIDE_S)

#define HI_U16(x, y) (MUL16(x, y) >> 16)
#define HI_S16(x, y) (WIDE_S16(x, y) >> 16)
#define HI_U32(x, y) (WIDE_U(x, y) >> 32)
#define HI_S32(x, y) (WIDE_S(x, y) >> 32)
#define HI_U64(x, y) ((unsigned __int128)(x) * (y) >> 64)
#define HI_S64(x, y) ((__int128)(x) * (y) >> 64)
OP2(mul_hi_u16, u16, u16, u16, HI_U16)
OP2(mul_hi_s16, u16, s16, s16, HI_S16)
OP2(mul_hi_u32, u32, u32, u32, HI_U32)
OP2(mul_hi_s32, u32, s32, s32, HI_S32)
OP2(mul_hi_u64, u64, u64, u64, HI_U64)
OP2(mul_hi_s64, u64, s64, s64, HI_S64)

static inline int32_t s24(uint32_t x) { return (int32_t)(x << 8) >> 8; }
#define U24(x) ((x)&0xffffffu)
#define LO24_U(x, y) (U24(x) * U24(y))
#define LO24_S(x, y) ((int64_t)s24(x) * s24(y))
#define HI24_U(x, y) ((uint64_t)U24(x) * U24(y) >> 16)
#define HI24_S(x, y) ((int64_t)s24(x) * s24(y) >> 16)
OP2(mul24_lo_u32, u32, u32, u32, LO24_U)
OP2(mul24_lo_s32, u32, u32, u32, LO24_S)
OP2(mul24_hi_u32, u32, u32, u32, HI24_U)
OP2(mul24_hi_s32, u32, u32, u32, HI24_S)

/* A division by zero gives all ones, the remainder too. */
#define DIV_U(x, y) ((y) ? (x) / (y) : ~(x) | (x))
#define REM_U(x, y) ((y) ? (x) % (y) : ~(x) | (x))
#define DIV_S(x, y) ((y) == 0 ? -1 : (y) == -1 ? (x) * -1 : (x) / (y))
#define REM_S(x, y) ((y) == 0 ? -1 : (y) == -1 ? 0 : (x) % (y))
static inline int32_t div_s32(int32_t x, int32_t y) {
  if (y == -1) return (int32_t)(0u - (uint32_t)x);
  return y == 0 ? -1 : x / y;
}
static inline int64_t div_s64(int64_t x, int64_t y) {
  if (y == -1) return (int64_t)(0ull - (uint64_t)x);
  return y == 0 ? -1 : x / y;
}
OP2(div_u16, u16, u16, u16, DIV_U)
OP2(div_s16, s16, s16, s16, DIV_S)
OP2(div_u32, u32, u32, u32, DIV_U)
OP2(div_s32, s32, s32, s32, div_s32)
OP2(div_u64, u64, u64, u64, DIV_U)
OP2(div_s64, s64, s64, s64, div_s64)
OP2(rem_u16, u16, u16, u16, REM_U)
OP2(rem_s16, s16, s16, s16, REM_S)
OP2(rem_u32, u32, u32, u32, REM_U)
OP2(rem_s32, s32, s32, s32, REM_S)
OP2(rem_u64, u64, u64, u64, REM_U)
OP2(rem_s64, s64, s64, s64, REM_S)

/* Shifts clamp at the width. */
#define SHL16(x, n) ((n) > 15 ? 0 : (uint32_t)(x) << (n))
#define SHL32(x, n) ((n) > 31 ? 0 : (x) << ((n)&31))
#define SHL64(x, n) ((n) > 63 ? 0 : (x) << ((n)&63))
#define SHR_U16(x, n) ((n) > 15 ? 0 : (x) >> ((n)&15))
#define SHR_S16(x, n) ((x) >> ((n) > 15 ? 15 : (n)))
#define SHR_U32(x, n) ((n) > 31 ? 0 : (x) >> ((n)&31))
#define SHR_S32(x, n) ((x) >> ((n) > 31 ? 31 : (n)))
#define SHR_U64(x, n) ((n) > 63 ? 0 : (x) >> ((n)&63))
#define SHR_S64(x, n) ((x) >> ((n) > 63 ? 63 : (n)))
OP2(shl_16, u16, u16, u32, SHL16)
OP2(shl_32, u32, u32, u32, SHL32)
OP2(shl_64, u64, u64, u32, SHL64)
OP2(shr_u16, u16, u16, u32, SHR_U16)
OP2(shr_s16, s16, s16, u32, SHR_S16)
OP2(shr_u32, u32, u32, u32, SHR_U32)
OP2(shr_s32, s32, s32, u32, SHR_S32)
OP2(shr_u64, u64, u64, u32, SHR_U64)
OP2(shr_s64, s64, s64, u32, SHR_S64)

/* Two 16-bit halves. */
static inline uint32_t halves(uint32_t lo, uint32_t hi) {
  return (lo & 0xffff) | hi << 16;
}
#define HI16S(x) ((int16_t)((x) >> 16))
#define LO16S(x) ((int16_t)(x))
#define HI16U(x) ((x) >> 16)
#define LO16U(x) ((x)&0xffffu)
#define ADD_X2(x, y) halves((x) + (y), HI16U(x) + HI16U(y))
#define SUB_X2(x, y) halves((x) - (y), HI16U(x) - HI16U(y))
#define PAIR(f, S, x, y)                                                       \
  halves((uint32_t)f(LO16##S(x), LO16##S(y)),                                  \
         (uint32_t)f(HI16##S(x), HI16##S(y)))
#define MIN_S16X2(x, y) PAIR(MIN, S, x, y)
#define MAX_S16X2(x, y) PAIR(MAX, S, x, y)
#define MIN_U16X2(x, y) PAIR(MIN, U, x, y)
#define MAX_U16X2(x, y) PAIR(MAX, U, x, y)
#define MIN_RELU_X2(x, y) PAIR(MIN_RELU, S, x, y)
#define MAX_RELU_X2(x, y) PAIR(MAX_RELU, S, x, y)
OP2(min_relu_s16x2, u32, u32, u32, MIN_RELU_X2)
OP2(max_relu_s16x2, u32, u32, u32, MAX_RELU_X2)
OP2(add_x2, u32, u32, u32, ADD_X2)
OP2(sub_x2, u32, u32, u32, SUB_X2)
OP2(min_s16x2, u32, u32, u32, MIN_S16X2)
OP2(max_s16x2, u32, u32, u32, MAX_S16X2)
OP2(min_u16x2, u32, u32, u32, MIN_U16X2)
OP2(max_u16x2, u32, u32, u32, MAX_U16X2)

/* --- one operand --------------------------------------------------------- */

#define NOT(x) (~(x))
#define NEG(x) (0u - (x))
#define CNOT(x) ((x) == 0)
#define ABS32(x) ((x) < 0 ? 0u - (uint32_t)(x) : (uint32_t)(x))
#define ABS64(x) ((x) < 0 ? 0ull - (uint64_t)(x) : (uint64_t)(x))
OP1(not_16, u16, u16, NOT)
OP1(not_32, u32, u32, NOT)
OP1(not_64, u64, u64, NOT)
OP1(neg_16, u16, u16, NEG)
OP1(neg_32, u32, u32, NEG)
OP1(neg_64, u64, u64, NEG)
OP1(cnot_32, u32, u32, CNOT)
OP1(cnot_64, u64, u64, CNOT)
OP1(abs_16, u16, s16, ABS32)
OP1(abs_32, u32, s32, ABS32)
OP1(abs_64, u64, s64, ABS64)

static inline uint32_t reverse32(uint32_t x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
static inline uint64_t reverse64(uint64_t x) {
  return (uint64_t)reverse32((uint32_t)x) << 32 |
         reverse32((uint32_t)(x >> 32));
}
#define CLZ32(x) ((x) ? (unsigned)__builtin_clz(x) : 32u)
#define CLZ64(x) ((x) ? (unsigned)__builtin_clzll(x) : 64u)
OP1(popc_32, u32, u32, __builtin_popcount)
OP1(popc_64, u32, u64, __builtin_popcountll)
OP1(clz_32, u32, u32, CLZ32)
OP1(clz_64, u32, u64, CLZ64)
OP1(brev_32, u32, u32, reverse32)
OP1(brev_64, u64, u64, reverse64)

static inline uint32_t find32(uint32_t x) {
  return x ? 31u - (unsigned)__builtin_clz(x) : FULL;
}
static inline uint32_t find64(uint64_t x) {
  return x ? 63u - (unsigned)__builtin_clzll(x) : FULL;
}
static inline uint32_t shift_amount(uint32_t found, uint32_t top) {
  return found == FULL ? FULL : top - found;
}
#define FIND_S32(x) find32((uint32_t)((x) < 0 ? ~(x) : (x)))
#define FIND_S64(x) find64((uint64_t)((x) < 0 ? ~(x) : (x)))
#define AMOUNT_U32(x) shift_amount(find32(x), 31)
#define AMOUNT_S32(x) shift_amount(FIND_S32(x), 31)
#define AMOUNT_U64(x) shift_amount(find64(x), 63)
#define AMOUNT_S64(x) shift_amount(FIND_S64(x), 63)
OP1(bfind_u32, u32, u32, find32)
OP1(bfind_s32, u32, s32, FIND_S32)
OP1(bfind_u64, u32, u64, find64)
OP1(bfind_s64, u32, s64, FIND_S64)
OP1(bfind_amount_u32, u32, u32, AMOUNT_U32)
OP1(bfind_amount_s32, u32, s32, AMOUNT_S32)
OP1(bfind_amount_u64, u32, u64, AMOUNT_U64)
OP1(bfind_amount_s64, u32, s64, AMOUNT_S64)

/* --- three operands ------------------------------------------------------ */

#define MAD(x, y, z) ((x) * (y) + (z))
#define MAD16(x, y, z) ((uint32_t)(x) * (y) + (z))
OP3(mad_16, u16, u16, u16, u16, MAD16)
OP3(mad_32, u32, u32, u32, u32, MAD)
OP3(mad_64, u64, u64, u64, u64, MAD)
#define MAD_WIDE_U(x, y, z) (WIDE_U(x, y) + (z))
#define MAD_WIDE_S(x, y, z) ((uint64_t)WIDE_S(x, y) + (z))
#define MAD_WIDE_S16(x, y, z) ((uint32_t)WIDE_S16(x, y) + (z))
OP3(mad_wide_u16, u32, u16, u16, u32, MAD16)
OP3(mad_wide_s16, u32, s16, s16, u32, MAD_WIDE_S16)
OP3(mad_wide_u32, u64, u32, u32, u64, MAD_WIDE_U)
OP3(mad_wide_s32, u64, s32, s32, u64, MAD_WIDE_S)
#define MAD_HI_U16(x, y, z) (HI_U16(x, y) + (z))
#define MAD_HI_S16(x, y, z) ((uint32_t)HI_S16(x, y) + (z))
#define MAD_HI_U32(x, y, z) ((uint32_t)HI_U32(x, y) + (z))
#define MAD_HI_S32(x, y, z) ((uint32_t)HI_S32(x, y) + (z))
#define MAD_HI_U64(x, y, z) ((uint64_t)HI_U64(x, y) + (z))
#define MAD_HI_S64(x, y, z) ((uint64_t)HI_S64(x, y) + (z))
#define MAD_HI_SAT(x, y, z) clamp32(HI_S32(x, y) + (int64_t)(z))
OP3(mad_hi_u16, u16, u16, u16, u16, MAD_HI_U16)
OP3(mad_hi_s16, u16, s16, s16, u16, MAD_HI_S16)
OP3(mad_hi_u32, u32, u32, u32, u32, MAD_HI_U32)
OP3(mad_hi_s32, u32, s32, s32, u32, MAD_HI_S32)
OP3(mad_hi_u64, u64, u64, u64, u64, MAD_HI_U64)
OP3(mad_hi_s64, u64, s64, s64, u64, MAD_HI_S64)
OP3(mad_hi_sat_s32, s32, s32, s32, s32, MAD_HI_SAT)
#define MAD24_LO_U(x, y, z) (LO24_U(x, y) + (z))
#define MAD24_LO_S(x, y, z) ((uint32_t)LO24_S(x, y) + (z))
#define MAD24_HI_U(x, y, z) ((uint32_t)HI24_U(x, y) + (z))
#define MAD24_HI_S(x, y, z) ((uint32_t)HI24_S(x, y) + (z))
#define MAD24_SAT(x, y, z) clamp32(HI24_S(x, y) + (int32_t)(z))
OP3(mad24_lo_u32, u32, u32, u32, u32, MAD24_LO_U)
OP3(mad24_lo_s32, u32, u32, u32, u32, MAD24_LO_S)
OP3(mad24_hi_u32, u32, u32, u32, u32, MAD24_HI_U)
OP3(mad24_hi_s32, u32, u32, u32, u32, MAD24_HI_S)
OP3(mad24_hi_sat_s32, s32, u32, u32, u32, MAD24_SAT)

#define SAD_S(U, x, y, z)                                                      \
  (((x) < (y) ? (U)(y) - (U)(x) : (U)(x) - (U)(y)) + (z))
#define SAD16(x, y, z) SAD_S(uint32_t, x, y, z)
#define SAD32(x, y, z) SAD_S(uint32_t, x, y, z)
#define SAD64(x, y, z) SAD_S(uint64_t, x, y, z)
OP3(sad_u16, u16, u16, u16, u16, SAD16)
OP3(sad_s16, u16, s16, s16, u16, SAD16)
OP3(sad_u32, u32, u32, u32, u32, SAD32)
OP3(sad_s32, u32, s32, s32, u32, SAD32)
OP3(sad_u64, u64, u64, u64, u64, SAD64)
OP3(sad_s64, u64, s64, s64, u64, SAD64)

#define SLCT(x, y, z) ((z) >= 0 ? (x) : (y))
#define SLCT_FTZ(x, y, z) ((z) > -0x1p-126f ? (x) : (y))
OP3(slct_32, u32, u32, u32, s32, SLCT)
OP3(slct_64, u64, u64, u64, s32, SLCT)
OP3(slct_32_f32, u32, u32, u32, f32, SLCT)
OP3(slct_64_f32, u64, u64, u64, f32, SLCT)
OP3(slct_32_ftz, u32, u32, u32, f32, SLCT_FTZ)
OP3(slct_64_ftz, u64, u64, u64, f32, SLCT_FTZ)

/* Position and length count modulo 256 in 32 bits, as they are in 64. */
static inline uint32_t extract32(uint32_t x, uint32_t pos, uint32_t len) {
  pos &= 255, len &= 255;
  if (len == 0 || pos > 31) return 0;
  return x >> pos & (len > 31 ? FULL : (1u << len) - 1);
}
static inline uint64_t extract64(uint64_t x, uint32_t pos, uint32_t len) {
  if (len == 0 || pos > 63) return 0;
  return x >> pos & (len > 63 ? ~0ull : (1ull << len) - 1);
}
/* The sign is bit min(pos + len - 1, top) of the source. */
static inline uint64_t extract_s(int64_t x, uint64_t pos, uint64_t len,
                                 uint32_t top) {
  if (len == 0) return 0;
  uint32_t last = pos + len - 1 > top ? top : (uint32_t)(pos + len - 1);
  uint64_t fill = x >> last & 1 ? ~0ull : 0;
  if (pos > top) return fill;
  uint64_t bits = (uint64_t)x >> pos;
  uint32_t width = last - (uint32_t)pos + 1;
  uint64_t keep = width > 63 ? ~0ull : (1ull << width) - 1;
  return (bits & keep) | (fill & ~keep);
}
#define EXTRACT_S32(x, p, n) extract_s(x, (p)&255, (n)&255, 31)
#define EXTRACT_S64(x, p, n) extract_s(x, p, n, 63)
OP3(bfe_u32, u32, u32, u32, u32, extract32)
OP3(bfe_s32, u32, s32, u32, u32, EXTRACT_S32)
OP3(bfe_u64, u64, u64, u32, u32, extract64)
OP3(bfe_s64, u64, s64, u32, u32, EXTRACT_S64)

#define FUNNEL(x, y) ((uint64_t)(y) << 32 | (x))
#define SHF_L_WRAP(x, y, n) (FUNNEL(x, y) << ((n)&31) >> 32)
#define SHF_R_WRAP(x, y, n) (FUNNEL(x, y) >> ((n)&31))
#define SHF_L_CLAMP(x, y, n) (FUNNEL(x, y) << ((n) > 32 ? 32 : (n)) >> 32)
#define SHF_R_CLAMP(x, y, n) (FUNNEL(x, y) >> ((n) > 32 ? 32 : (n)))
OP3(shf_l_wrap, u32, u32, u32, u32, SHF_L_WRAP)
OP3(shf_r_wrap, u32, u32, u32, u32, SHF_R_WRAP)
OP3(shf_l_clamp, u32, u32, u32, u32, SHF_L_CLAMP)
OP3(shf_r_clamp, u32, u32, u32, u32, SHF_R_CLAMP)

/* Position of the n-th set bit at or above `base`, or below it for n < 0.
 * Beyond the word nothing is found; the least n finds bit 0, set or not
 * (measured). */
static inline uint32_t nth_bit(uint32_t x, uint32_t base, int32_t n) {
  if (n == INT32_MIN) return 0;
  if (base > 31) return FULL;
  if (n == 0) return x >> base & 1 ? base : FULL;
  int step = n > 0 ? 1 : -1;
  uint32_t left = n > 0 ? (uint32_t)n : 0u - (uint32_t)n;
  for (int p = (int)base; p >= 0 && p < 32; p += step)
    if ((x >> p & 1) && --left == 0) return (uint32_t)p;
  return FULL;
}
OP3(fns, u32, u32, u32, s32, nth_bit)

#define BITS(n) ((n) > 31 ? FULL : (1u << (n)) - 1)
#define BMSK_CLAMP(p, n) ((p) > 31 ? 0 : BITS(n) << ((p)&31))
#define BMSK_WRAP(p, n) (BITS((n)&31) << ((p)&31))
OP2(bmsk_clamp, u32, u32, u32, BMSK_CLAMP)
OP2(bmsk_wrap, u32, u32, u32, BMSK_WRAP)
static inline uint32_t extend_s(uint32_t x, uint32_t n) {
  if (n == 0) return 0;
  return n > 31 ? x : (uint32_t)((int32_t)(x << (32 - n)) >> (32 - n));
}
#define SZEXT_U(x, n) ((x)&BITS(n))
#define SZEXT_U_WRAP(x, n) ((x)&BITS((n)&31))
#define SZEXT_S_WRAP(x, n) extend_s(x, (n)&31)
OP2(szext_u32, u32, u32, u32, SZEXT_U)
OP2(szext_s32, u32, u32, u32, extend_s)
OP2(szext_wrap_u32, u32, u32, u32, SZEXT_U_WRAP)
OP2(szext_wrap_s32, u32, u32, u32, SZEXT_S_WRAP)

/* --- four operands, flags ------------------------------------------------ */

HANDLER(bfi_32) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  const uint32_t *c = ROW(uint32_t, i->c), *n = ROW(uint32_t, i->e);
  EACH_LANE {
    uint32_t pos = c[l] & 255, len = n[l] & 255;
    uint32_t m = pos > 31 ? 0 : BITS(len) << (pos & 31);
    uint32_t r = (b[l] & ~m) | (a[l] << (pos & 31) & m);
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}

HANDLER(bfi_64) {
  uint64_t *d = ROW(uint64_t, i->d);
  const uint64_t *a = ROW(uint64_t, i->a), *b = ROW(uint64_t, i->b);
  const uint32_t *c = ROW(uint32_t, i->c), *n = ROW(uint32_t, i->e);
  EACH_LANE {
    uint32_t pos = c[l], len = n[l];
    uint64_t bits = len > 63 ? ~0ull : (1ull << (len & 63)) - 1;
    uint64_t m = pos > 63 ? 0 : bits << (pos & 63);
    uint64_t r = (b[l] & ~m) | (a[l] << (pos & 63) & m);
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}

/* imm: the truth table. */
HANDLER(lop3) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  const uint32_t *c = ROW(uint32_t, i->c);
  uint32_t t[8];
  for (unsigned k = 0; k < 8; k++) t[k] = i->imm >> k & 1 ? FULL : 0;
  EACH_LANE {
    uint32_t x = a[l], y = b[l], z = c[l];
    uint32_t lo = (~x & ~y & ~z & t[0]) | (~x & ~y & z & t[1]) |
                  (~x & y & ~z & t[2]) | (~x & y & z & t[3]);
    uint32_t hi = (x & ~y & ~z & t[4]) | (x & ~y & z & t[5]) |
                  (x & y & ~z & t[6]) | (x & y & z & t[7]);
    d[l] = ON(mask, l) ? (lo | hi) : d[l];
  }
  return i + 1;
}

/* The selector of prmt's special modes (imm 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5 ecr,
 * 6 rc16) for a control of 0 to 3, in the form of the general mode. */
static uint32_t permute_control(int64_t mode, uint32_t control) {
  static const uint16_t table[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
      {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
      {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return mode == 0 ? control : table[mode - 1][control & 3];
}

static inline uint32_t permute(uint64_t bytes, uint32_t control) {
  uint32_t r = 0;
  for (unsigned k = 0; k < 4; k++) {
    uint32_t s = control >> (4 * k);
    uint32_t byte = (uint32_t)(bytes >> (8 * (s & 7))) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << (8 * k);
  }
  return r;
}

HANDLER(prmt) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  const uint32_t *c = ROW(uint32_t, i->c);
  for (unsigned l = 0; l < LANES; l++)
    if (ON(mask, l))
      d[l] = permute(FUNNEL(a[l], b[l]), permute_control(i->imm, c[l]));
  return i + 1;
}

/* imm: 1 a is signed, 2 b is signed, 4 the upper pair of b (dp2a). */
static inline int32_t part(uint32_t x, unsigned shift, unsigned bits,
                           bool sign) {
  uint32_t top = x >> shift << (32 - bits);
  return sign ? (int32_t)top >> (32 - bits) : (int32_t)(top >> (32 - bits));
}
HANDLER(dp4a) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  const uint32_t *c = ROW(uint32_t, i->c);
  bool sa = i->imm & 1, sb = i->imm >> 1 & 1;
  EACH_LANE {
    uint32_t r = c[l];
    for (unsigned k = 0; k < 32; k += 8)
      r += (uint32_t)(part(a[l], k, 8, sa) * part(b[l], k, 8, sb));
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}
HANDLER(dp2a) {
  uint32_t *d = ROW(uint32_t, i->d);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  const uint32_t *c = ROW(uint32_t, i->c);
  bool sa = i->imm & 1, sb = i->imm >> 1 & 1;
  unsigned up = i->imm & 4 ? 16 : 0;
  EACH_LANE {
    uint32_t r = c[l];
    for (unsigned k = 0; k < 2; k++)
      r += (uint32_t)(part(a[l], 16 * k, 16, sa) *
                      part(b[l], up + 8 * k, 8, sb));
    d[l] = ON(mask, l) ? r : d[l];
  }
  return i + 1;
}

/* Carry chains. imm: 1 takes the carry, 2 leaves one, 4 subtracts, 8 the upper
 * half of the product, 16 a signed product; slot: the mask of carries. The
 * carry of a subtraction is "not borrow". */
#define CHAIN(name, U, WIDE)                                                   \
  HANDLER(name) {                                                              \
    U *d = ROW(U, i->d);                                                       \
    const U *a = ROW(U, i->a), *b = ROW(U, i->b);                              \
    uint32_t *carry = mask_of(e, i->slot), in = *carry, out = 0;               \
    bool sub = i->imm & 4, take = i->imm & 1;                                  \
    for (unsigned l = 0; l < LANES; l++) {                                     \
      WIDE r = (WIDE)a[l] + (sub ? (U)~b[l] : b[l]);                           \
      r += take ? ON(in, l) : sub;                                             \
      out |= (uint32_t)(r >> (8 * sizeof(U)) & 1) << l;                        \
      if (ON(mask, l)) d[l] = (U)r;                                            \
    }                                                                          \
    if (i->imm & 2) *carry = (in & ~mask) | (out & mask);                      \
    return i + 1;                                                              \
  }
CHAIN(chain_32, uint32_t, uint64_t)
CHAIN(chain_64, uint64_t, unsigned __int128)

#define CHAIN_MAD(name, U, WIDE, S, SWIDE)                                     \
  HANDLER(name) {                                                              \
    U *d = ROW(U, i->d);                                                       \
    const U *a = ROW(U, i->a), *b = ROW(U, i->b), *c = ROW(U, i->c);           \
    uint32_t *carry = mask_of(e, i->slot), in = *carry, out = 0;               \
    for (unsigned l = 0; l < LANES; l++) {                                     \
      WIDE p =                                                                 \
          i->imm & 16 ? (WIDE)((SWIDE)(S)a[l] * (S)b[l]) : (WIDE)a[l] * b[l];  \
      U half = (U)(i->imm & 8 ? p >> (8 * sizeof(U)) : p);                     \
      WIDE r = (WIDE)half + c[l] + (i->imm & 1 ? ON(in, l) : 0);               \
      out |= (uint32_t)(r >> (8 * sizeof(U)) & 1) << l;                        \
      if (ON(mask, l)) d[l] = (U)r;                                            \
    }                                                                          \
    if (i->imm & 2) *carry = (in & ~mask) | (out & mask);                      \
    return i + 1;                                                              \
  }
CHAIN_MAD(chain_mad_32, uint32_t, uint64_t, int32_t, int64_t)
CHAIN_MAD(chain_mad_64, uint64_t, unsigned __int128, int64_t, __int128)

/* --- moves, selection, comparison ---------------------------------------- */

#define SAME(x) (x)
OP1(mov_32, u32, u32, SAME)
OP1(mov_64, u64, u64, SAME)

HANDLER(selp_32) {
  uint32_t *d = ROW(uint32_t, i->d), p = *mask_of(e, i->c);
  const uint32_t *a = ROW(uint32_t, i->a), *b = ROW(uint32_t, i->b);
  BLEND(ON(p, l) ? a[l] : b[l]);
  return i + 1;
}
HANDLER(selp_64) {
  uint64_t *d = ROW(uint64_t, i->d);
  uint64_t p = *mask_of(e, i->c);
  const uint64_t *a = ROW(uint64_t, i->a), *b = ROW(uint64_t, i->b);
  BLEND(ON(p, l) ? a[l] : b[l]);
  return i + 1;
}

COMPARE(eq_32, u32, x == y)
COMPARE(ne_32, u32, x != y)
COMPARE(eq_64, u64, x == y)
COMPARE(ne_64, u64, x != y)
COMPARE(lt_s16, s16, x < y)
COMPARE(le_s16, s16, x <= y)
COMPARE(lt_u32, u32, x < y)
COMPARE(le_u32, u32, x <= y)
COMPARE(lt_s32, s32, x < y)
COMPARE(le_s32, s32, x <= y)
COMPARE(lt_u64, u64, x < y)
COMPARE(le_u64, u64, x <= y)
COMPARE(lt_s64, s64, x < y)
COMPARE(le_s64, s64, x <= y)

#define PREDICATE(name, expression)                                            \
  HANDLER(name) {                                                              \
    uint32_t x = *mask_of(e, i->a), y = *mask_of(e, i->b);                     \
    set_mask(e, i->d, (expression), mask);                                     \
    return i + 1;                                                              \
  }
PREDICATE(and_pred, x &y)
PREDICATE(or_pred, x | y)
PREDICATE(xor_pred, x ^ y)
PREDICATE(not_pred, ~x &(y | ~y))
PREDICATE(mov_pred, x &(y | ~y))

void VARIANT(tps_sim_fill_integer)(handler **table);
void VARIANT(tps_sim_fill_integer)(handler **table) { INTEGER_OPS(FILL) }
