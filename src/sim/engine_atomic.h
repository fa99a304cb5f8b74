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

#endif
