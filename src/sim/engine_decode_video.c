/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of video instructions: opcode, types, modifiers and the selectors of
 * the operands become the bits that engine_video.c reads.
 */
#include "sim/engine_decode.h"
#include "sim/engine_video.h"

typedef struct form {
  uint8_t op, count;
} form;

/* clang-format off */
static bool form_of(unsigned op, form *out) {
#define ONE(name) case TPS_PTX_OP_V##name: *out = (form){VIDEO_##name, 1}; return true
#define TWO(name) case TPS_PTX_OP_V##name##2: *out = (form){VIDEO_##name, 2}; return true
#define FOUR(name) case TPS_PTX_OP_V##name##4: *out = (form){VIDEO_##name, 4}; return true
  switch (op) {
  ONE(ADD); ONE(SUB); ONE(ABSDIFF); ONE(MIN); ONE(MAX); ONE(SHL); ONE(SHR);
  ONE(MAD); ONE(SET);
  TWO(ADD); TWO(SUB); TWO(AVRG); TWO(ABSDIFF); TWO(MIN); TWO(MAX); TWO(SET);
  FOUR(ADD); FOUR(SUB); FOUR(AVRG); FOUR(ABSDIFF); FOUR(MIN); FOUR(MAX);
  FOUR(SET);
  default: return false;
  }
}
/* clang-format on */

static unsigned comparison(const builder *b) {
  static const tps_ptx_mod mods[] = {TPS_PTX_M_EQ, TPS_PTX_M_NE, TPS_PTX_M_LT,
                                     TPS_PTX_M_LE, TPS_PTX_M_GT, TPS_PTX_M_GE};
  unsigned k = 0;
  while (k < 5 && !has(b, mods[k])) k++;
  return k;
}

static unsigned then(const builder *b) {
  if (has(b, TPS_PTX_M_ADD)) return VIDEO_THEN_ADD;
  if (has(b, TPS_PTX_M_MIN)) return VIDEO_THEN_MIN;
  return has(b, TPS_PTX_M_MAX) ? VIDEO_THEN_MAX : VIDEO_THEN_NOTHING;
}

/* The selector of an operand, a byte an element, 0 for none. */
static uint64_t selector(const ptx_opd *o) {
  return o->kind == TPS_PTX_OPD_REG ? (uint64_t)o->value : 0;
}

static unsigned scalar_selector(const ptx_opd *o) {
  unsigned s = selector(o) & 0xff;
  if (s == 0) return 0;
  return s >= 0xc0 ? VIDEO_HALF + (s & 1) : VIDEO_BYTE + (s & 3);
}

/* Elements of a pair of words: four bits for each; `first` is where they begin
 * without a selector. */
static unsigned packed_selector(const ptx_opd *o, unsigned count,
                                unsigned first) {
  uint64_t s = selector(o);
  unsigned bits = 0;
  for (unsigned k = 0; k < count; k++) {
    unsigned n = s ? s >> 8 * k & (2 * count - 1) : first + k;
    bits |= n << 4 * k;
  }
  return bits;
}

static unsigned mask_of_elements(const ptx_opd *o, unsigned count) {
  uint64_t s = selector(o);
  unsigned mask = 0;
  if (s == 0) return (1u << count) - 1;
  for (; s != 0; s >>= 8) mask |= 1u << (s & (count - 1));
  return mask;
}

/* `imm` but for the selectors. */
static uint64_t behaviour(const builder *b, form f) {
  bool set = f.op == VIDEO_SET;
  uint64_t imm = f.op | (uint64_t)then(b) << 8 | comparison(b) << 10;
  if (has(b, TPS_PTX_M_SAT)) imm |= VIDEO_SAT;
  if (!set && is_signed(type_at(b, 0))) imm |= VIDEO_D_SIGNED;
  if (is_signed(type_at(b, set ? 0 : 1))) imm |= VIDEO_A_SIGNED;
  if (is_signed(type_at(b, set ? 1 : 2))) imm |= VIDEO_B_SIGNED;
  if (has(b, TPS_PTX_M_WRAP)) imm |= VIDEO_WRAP;
  if (has(b, TPS_PTX_M_PO)) imm |= VIDEO_PLUS_ONE;
  if (has(b, TPS_PTX_M_SHR7)) imm |= UINT64_C(7) << 52;
  if (has(b, TPS_PTX_M_SHR15)) imm |= UINT64_C(15) << 52;
  if (f.op != VIDEO_MAD) return imm;
  if (opd(b, 1)->negated != opd(b, 2)->negated) imm |= VIDEO_NEGATE_AB;
  if (opd(b, 3)->negated) imm |= VIDEO_NEGATE_C;
  return imm;
}

static uint64_t selectors(const builder *b, form f) {
  const ptx_opd *d = opd(b, 0), *x = opd(b, 1), *y = opd(b, 2);
  if (f.count == 1)
    return (uint64_t)scalar_selector(x) << 16 |
           (uint64_t)scalar_selector(y) << 32 |
           (uint64_t)scalar_selector(d) << 48;
  return (uint64_t)packed_selector(x, f.count, 0) << 16 |
         (uint64_t)packed_selector(y, f.count, f.count) << 32 |
         (uint64_t)mask_of_elements(d, f.count) << 48;
}

static uint32_t source(builder *b, unsigned k) {
  ptx_opd o = *opd(b, k);
  o.negated = false; /* the handler's affair */
  return tps_sim_source(b, &o, TPS_PTX_U32);
}

bool tps_sim_decode_video(builder *b) {
  form f;
  if (!form_of(b->p->op, &f)) return false;
  uint32_t x = source(b, 1), y = source(b, 2);
  uint32_t z =
      b->p->operand_count > 3 ? source(b, 3) : tps_sim_constant(b, 0, false);
  uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_U32);
  insn *i = tps_sim_emit3(b, H_video, d, x, y, z);
  i->imm = (int64_t)(behaviour(b, f) | selectors(b, f));
  i->count = f.count;
  return true;
}
