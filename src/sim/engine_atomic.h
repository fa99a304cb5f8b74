/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What an atom or red instruction does, as its decoded form holds it: the
 * operation in the low byte of `f`, the type above; `count` is the size.
 */
#ifndef TPS_SIM_ENGINE_ATOMIC_H
#define TPS_SIM_ENGINE_ATOMIC_H

/* clang-format off */
enum {
  ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH,
  ATOM_CAS, ATOM_INC, ATOM_DEC
};
enum {
  ATOM_U32, ATOM_S32, ATOM_U64, ATOM_S64, /* integers and bits first */
  ATOM_F32, ATOM_F64, ATOM_F16, ATOM_F16X2, ATOM_BF16, ATOM_BF16X2
};
/* clang-format on */

#include <stdint.h>

struct engine;

static inline unsigned tps_sim_atomic_size(uint32_t type) {
  switch (type) {
  case ATOM_U64:
  case ATOM_S64:
  case ATOM_F64: return 8;
  case ATOM_F16:
  case ATOM_BF16: return 2;
  default: return 4;
  }
}

/* Combines the element at `p`, in global memory or in the shared memory of the
 * cluster, with `x`. Gives the old value. */
uint64_t tps_sim_atomic_apply(struct engine *e, unsigned char *p, unsigned size,
                              uint32_t op, uint32_t type, uint64_t x);

#endif
