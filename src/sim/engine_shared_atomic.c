/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Atomics of 32 bits on a block's shared memory, the common ones: no other
 * thread of the host sees that memory, so a lane's turn is a plain load and
 * store, and all addresses are checked at once. Anything else, and what lies
 * outside, is for engine_atomic.c. Built once for each processor level.
 */
#include "sim/engine_atomic.h"
#include "sim/engine_number.h"
#include "sim/engine_shape.h"

#define NO_OPERAND UINT32_MAX

/* Lanes one after the other, the lowest first. */
#define EACH(new)                                                              \
  do {                                                                         \
    for (uint32_t m = mask; m; m &= m - 1) {                                   \
      unsigned l = (unsigned)__builtin_ctz(m);                                 \
      uint32_t *p = (uint32_t *)(void *)(host + (a[l] + shift));               \
      uint32_t old = *p, x = b[l];                                             \
      *p = (new);                                                              \
      if (d) d[l] = old;                                                       \
    }                                                                          \
    return true;                                                               \
  } while (0)

static bool update(engine *e, const insn *i, uint32_t mask, const uint64_t *a,
                   unsigned char *host, uint64_t shift) {
  const uint32_t *b = ROW(const uint32_t, i->b);
  uint32_t *d = i->d == NO_OPERAND ? NULL : ROW(uint32_t, i->d);
  bool is_signed = (i->f >> 8 & 255) == ATOM_S32;
  switch (i->f & 255) {
  case ATOM_ADD: EACH(old + x);
  case ATOM_AND: EACH(old & x);
  case ATOM_OR: EACH(old | x);
  case ATOM_XOR: EACH(old ^ x);
  case ATOM_EXCH: EACH(x);
  case ATOM_MIN:
    if (is_signed) EACH((int32_t)x < (int32_t)old ? x : old);
    EACH(x < old ? x : old);
  case ATOM_MAX:
    if (is_signed) EACH((int32_t)x > (int32_t)old ? x : old);
    EACH(x > old ? x : old);
  default: return false;
  }
}

static bool update_float(engine *e, const insn *i, uint32_t mask,
                         const uint64_t *a, unsigned char *host,
                         uint64_t shift) {
  const uint32_t *b = ROW(const uint32_t, i->b);
  uint32_t *d = i->d == NO_OPERAND ? NULL : ROW(uint32_t, i->d);
  if ((i->f & 255) != ATOM_ADD) return false;
  EACH(bits_of(canon(f32_of(old) + f32_of(x))));
}

HANDLER(atom_shared) {
  const uint64_t *a = ROW(const uint64_t, i->a);
  uint64_t shift = (uint64_t)i->imm;
  unsigned char *host = e->shared.host;
  bool floats = (i->f >> 8 & 255) == ATOM_F32;
  if ((outside_u64(&e->shared, a, shift, 4, 4) & mask) == 0 &&
      (floats ? update_float(e, i, mask, a, host, shift)
              : update(e, i, mask, a, host, shift)))
    return i + 1;
  return tps_sim_atom(e, i, mask);
}

void VARIANT(tps_sim_fill_shared_atomic)(handler **table);
void VARIANT(tps_sim_fill_shared_atomic)(handler **table) {
  SHARED_ATOMIC_OPS(FILL)
}
