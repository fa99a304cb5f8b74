/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Conversions of pairs to and from the 8-bit floats: e4m3 (no infinities, one
 * NaN, up to 448) and e5m2 (the upper half of an f16). Narrowing rounds to the
 * nearest and saturates, so that it gives no infinities either.
 *
 * imm: the flags below. Results and sources of a pair have the first operand in
 * the upper byte.
 */
#include "sim/engine_eighth.h"
#include "sim/engine_number.h"

#define ON(mask, l) ((mask) >> (l)&1)

static uint32_t narrowed(float v, int64_t flags) {
  bool wide_range = flags & EIGHTH_E5M2;
  int fraction = wide_range ? 2 : 3, least = wide_range ? -14 : -6;
  uint32_t most = wide_range ? 0x7b : 0x7e;
  if (v != v) return 0x7f;
  if (flags & EIGHTH_RELU && !(v > 0)) return 0;
  uint32_t sign = bits_of(v) >> 24 & 0x80;
  float size = fabsf(v);
  if (size >= 0x1p17f) return sign | most;
  int exponent = (int)(bits_of(size) >> 23) - 127;
  if (exponent < least) exponent = least;
  /* the bits of a result count its units in the last place */
  float unit = f32_of((uint32_t)(exponent - fraction + 127) << 23);
  uint32_t r = (uint32_t)nearbyintf(size / unit) +
               ((uint32_t)(exponent - least) << fraction);
  return sign | (r > most ? most : r);
}

static uint32_t widened(uint32_t x, int64_t flags) {
  uint32_t sign = (x & 0x80) << 8, size = x & 0x7f;
  if (size > (flags & EIGHTH_E5M2 ? 0x7cu : 0x7eu)) return 0x7fff;
  if (flags & EIGHTH_RELU && sign) return 0;
  if (flags & EIGHTH_E5M2) return sign | size << 8;
  if (size >= 8) return sign | ((size << 7) + (8u << 10));
  return sign | f16_from(size * 0x1p-9, ROUND_RN);
}

static const insn *op_eighth_f32(engine *e, const insn *i, uint32_t mask) {
  uint32_t *d = row(e, i->d);
  const float *a = row(e, i->a), *b = row(e, i->b);
  for (unsigned l = 0; l < LANES; l++)
    if (ON(mask, l))
      d[l] = narrowed(a[l], i->imm) << 8 | narrowed(b[l], i->imm);
  return i + 1;
}

static const insn *op_eighth_f16(engine *e, const insn *i, uint32_t mask) {
  uint32_t *d = row(e, i->d);
  const uint32_t *a = row(e, i->a);
  for (unsigned l = 0; l < LANES; l++)
    if (ON(mask, l))
      d[l] = narrowed(f16_to(a[l] >> 16), i->imm) << 8 |
             narrowed(f16_to(a[l] & 0xffff), i->imm);
  return i + 1;
}

static const insn *op_f16_eighth(engine *e, const insn *i, uint32_t mask) {
  uint32_t *d = row(e, i->d);
  const uint32_t *a = row(e, i->a);
  for (unsigned l = 0; l < LANES; l++)
    if (ON(mask, l))
      d[l] = widened(a[l] >> 8 & 0xff, i->imm) << 16 |
             widened(a[l] & 0xff, i->imm);
  return i + 1;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_eighth(handler **table);
void tps_sim_fill_eighth(handler **table) { EIGHTH_OPS(FILL) }
