/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Video instructions: vadd, vset4 and their kin, which take words apart into
 * bytes and halves, compute with those, and put the results together or add
 * them up. Rare enough for one handler that looks at what it was told in `imm`
 * (sim/engine_video.h) for each lane.
 */
#include "sim/engine_video.h"

/* Element n of `bits` bits, extended. */
static int64_t element(uint64_t from, unsigned n, unsigned bits, bool sign) {
  uint64_t v = from >> (n * bits) & ((UINT64_C(1) << bits) - 1);
  uint64_t top = UINT64_C(1) << (bits - 1);
  return sign ? (int64_t)((v ^ top) - top) : (int64_t)v;
}

/* What a selector of a scalar instruction picks from a word. */
static int64_t part(uint32_t from, unsigned selector, bool sign) {
  if (selector >= VIDEO_HALF)
    return element(from, selector - VIDEO_HALF, 16, sign);
  if (selector >= VIDEO_BYTE)
    return element(from, selector - VIDEO_BYTE, 8, sign);
  return element(from, 0, 32, sign);
}

static unsigned part_bits(unsigned selector) {
  return selector >= VIDEO_HALF ? 16 : selector >= VIDEO_BYTE ? 8 : 32;
}

static int64_t clamped(int64_t v, unsigned bits, bool sign) {
  int64_t most = (INT64_C(1) << (bits - sign)) - 1,
          least = sign ? -most - 1 : 0;
  return v < least ? least : v > most ? most : v;
}

static bool compared(int64_t a, int64_t b, unsigned how) {
  switch (how) {
  case VIDEO_EQ: return a == b;
  case VIDEO_NE: return a != b;
  case VIDEO_LT: return a < b;
  case VIDEO_LE: return a <= b;
  case VIDEO_GT: return a > b;
  default: return a >= b;
  }
}

static int64_t shifted(int64_t a, int64_t b, uint64_t imm) {
  unsigned by = imm & VIDEO_WRAP ? (unsigned)b & 31 : b > 32 ? 32 : (unsigned)b;
  if (VIDEO_OP(imm) == VIDEO_SHL) return (int64_t)((uint64_t)a << by);
  return a >> by;
}

static int64_t operate(int64_t a, int64_t b, uint64_t imm) {
  switch (VIDEO_OP(imm)) {
  case VIDEO_ADD: return a + b;
  case VIDEO_SUB: return a - b;
  case VIDEO_ABSDIFF: return a > b ? a - b : b - a;
  case VIDEO_MIN: return a < b ? a : b;
  case VIDEO_MAX: return a > b ? a : b;
  case VIDEO_AVRG: return (a + b + (a + b >= 0)) >> 1;
  case VIDEO_SET: return compared(a, b, VIDEO_CMP(imm));
  default: return shifted(a, b, imm);
  }
}

static bool is_shift(uint64_t imm) {
  return VIDEO_OP(imm) == VIDEO_SHL || VIDEO_OP(imm) == VIDEO_SHR;
}

/* .sat of a scalar as GPUs do it, which is not all that PTX says (measured):
 * an unsigned word is held at nought only, and a part of a word at its upper end,
 * whichever end it left. */
static int64_t saturated(int64_t r, unsigned bits, uint64_t imm) {
  bool sign = imm & VIDEO_D_SIGNED;
  if (is_shift(imm) || (bits == 32 && sign)) return clamped(r, bits, sign);
  if (bits == 32) return r < 0 ? 0 : r;
  int64_t most = (INT64_C(1) << (bits - sign)) - 1;
  return r < 0 || r > most ? most : r;
}

/* Whether r counts as less than c in op2: words, but a sum or difference that
 * might have left its word is the greater one (measured). */
static bool is_less(uint32_t r, uint32_t c, uint64_t imm) {
  unsigned op = VIDEO_OP(imm);
  bool sign = imm & (op == VIDEO_SET ? VIDEO_A_SIGNED : VIDEO_D_SIGNED);
  bool wide = sign ? op == VIDEO_ABSDIFF : op == VIDEO_ADD || op == VIDEO_SUB;
  if (wide && r >> 31) return false;
  return sign ? (int32_t)r < (int32_t)c : r < c;
}

/* d = a op b, then op2 with c, or put into c. Of what goes to the upper half it
 * is the upper half (measured). */
static uint32_t scalar(uint32_t a, uint32_t b, uint32_t c, uint64_t imm) {
  int64_t x = part(a, VIDEO_ASEL(imm), imm & VIDEO_A_SIGNED);
  int64_t y = part(b, VIDEO_BSEL(imm), imm & VIDEO_B_SIGNED);
  unsigned to = VIDEO_MASK(imm), bits = part_bits(to);
  int64_t wide = operate(x, y, imm);
  if (imm & VIDEO_SAT) wide = saturated(wide, bits, imm);
  uint32_t r = (uint32_t)wide;
  switch (VIDEO_THEN(imm)) {
  case VIDEO_THEN_ADD: return r + c;
  case VIDEO_THEN_MIN: return is_less(r, c, imm) ? r : c;
  case VIDEO_THEN_MAX: return is_less(r, c, imm) ? c : r;
  default: break;
  }
  if (bits == 32) return r;
  if (to == VIDEO_HALF + 1) return (r & 0xffff0000u) | (c & 0xffffu);
  unsigned at = bits * (to - (bits == 8 ? VIDEO_BYTE : VIDEO_HALF));
  uint32_t mask = ((1u << bits) - 1) << at;
  return (c & ~mask) | (r << at & mask);
}

/* The elements of the mask computed, the others c's; or c plus those. */
static uint32_t packed(uint32_t a, uint32_t b, uint32_t c, uint64_t imm,
                       unsigned count) {
  uint64_t both = a | (uint64_t)b << 32;
  unsigned bits = 32 / count;
  uint32_t d = c, sum = c;
  for (unsigned k = 0; k < count; k++) {
    if (!(VIDEO_MASK(imm) >> k & 1)) continue;
    int64_t x =
        element(both, VIDEO_ASEL(imm) >> 4 * k & 7, bits, imm & VIDEO_A_SIGNED);
    int64_t y =
        element(both, VIDEO_BSEL(imm) >> 4 * k & 7, bits, imm & VIDEO_B_SIGNED);
    int64_t r = operate(x, y, imm);
    if (imm & VIDEO_SAT) r = clamped(r, bits, imm & VIDEO_D_SIGNED);
    uint32_t mask = ((1u << bits) - 1) << bits * k;
    d = (d & ~mask) | ((uint32_t)r << bits * k & mask);
    sum += (uint32_t)r;
  }
  return VIDEO_THEN(imm) == VIDEO_THEN_ADD ? sum : d;
}

/* a * b + c, shifted; negations add one to the complement. */
static uint32_t multiply_add(uint32_t a, uint32_t b, uint32_t c, uint64_t imm) {
  bool negated = imm & VIDEO_NEGATE_AB, less = imm & VIDEO_NEGATE_C;
  bool sign = imm & (VIDEO_A_SIGNED | VIDEO_B_SIGNED) || negated || less;
  __int128 r = (__int128)part(a, VIDEO_ASEL(imm), imm & VIDEO_A_SIGNED) *
               part(b, VIDEO_BSEL(imm), imm & VIDEO_B_SIGNED);
  int64_t w = element(c, 0, 32, sign);
  if (negated) r = -r;
  r += less ? -w : w;
  if (imm & VIDEO_PLUS_ONE) r++;
  r >>= VIDEO_SHIFT(imm);
  if (!(imm & VIDEO_SAT)) return (uint32_t)r;
  __int128 most = sign ? INT32_MAX : UINT32_MAX, least = sign ? INT32_MIN : 0;
  return (uint32_t)(r < least ? least : r > most ? most : r);
}

static const insn *op_video(engine *e, const insn *i, uint32_t mask) {
  uint32_t *d = row(e, i->d);
  const uint32_t *a = row(e, i->a), *b = row(e, i->b), *c = row(e, i->c);
  uint64_t imm = (uint64_t)i->imm;
  for (unsigned l = 0; l < LANES; l++) {
    if (!(mask >> l & 1)) continue;
    if (VIDEO_OP(imm) == VIDEO_MAD) d[l] = multiply_add(a[l], b[l], c[l], imm);
    else if (i->count > 1) d[l] = packed(a[l], b[l], c[l], imm, i->count);
    else d[l] = scalar(a[l], b[l], c[l], imm);
  }
  return i + 1;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_video(handler **table);
void tps_sim_fill_video(handler **table) { VIDEO_OPS(FILL) }
