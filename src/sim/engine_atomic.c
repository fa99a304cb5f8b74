/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * atom and red. Lanes go one after the other, the lowest first. Local memory
 * and that shared in a cluster belong to one host thread and need no atomic
 * instruction;
 * everything else takes C11's, with sequential consistency whatever was asked
 * for.
 *
 * Operands: address a, values b and c, the old value d (or none); f says what
 * and on which type (engine_atomic.h).
 */
#include "sim/engine_atomic.h"
#include "sim/engine_core.h"
#include "sim/engine_number.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define NO_OPERAND UINT32_MAX

/* Of two half values, the one that is no NaN. */
static uint32_t half_extreme(uint32_t x, uint32_t y, bool bf16, bool max) {
  double a = bf16 ? bf16_to(x) : f16_to(x), b = bf16 ? bf16_to(y) : f16_to(y);
  if (a != a) return y;
  if (b != b) return x;
  return (a < b) == max ? y : x;
}

static uint64_t extreme(unsigned type, uint64_t x, uint64_t y, bool max) {
  bool less;
  switch (type) {
  case ATOM_F16: return half_extreme((uint32_t)x, (uint32_t)y, false, max);
  case ATOM_BF16: return half_extreme((uint32_t)x, (uint32_t)y, true, max);
  case ATOM_S32: less = (int32_t)x < (int32_t)y; break;
  case ATOM_S64: less = (int64_t)x < (int64_t)y; break;
  default: less = x < y; break;
  }
  return less == max ? y : x;
}

/* One or two half values. */
static uint32_t half_add(uint32_t x, uint32_t y, bool bf16, bool two) {
  uint32_t r = 0;
  for (unsigned s = 0; s < (two ? 32 : 16); s += 16) {
    uint32_t a = x >> s & 0xffff, b = y >> s & 0xffff;
    r |= bf16 ? (uint32_t)bf16_from((double)bf16_to(a) + bf16_to(b), 0) << s
              : (uint32_t)f16_from((double)f16_to(a) + f16_to(b), 0) << s;
  }
  return r;
}

/* In global memory f32 is flushed, in shared memory not (as measured). */
static uint32_t sum_f32(uint32_t x, uint32_t y, bool own) {
  if (own) return bits_of(canon(f32_of(x) + f32_of(y)));
  return bits_of(flush(canon(flush(f32_of(x)) + flush(f32_of(y)))));
}

/* Global memory keeps a NaN as it is. */
static uint64_t sum_f64(uint64_t old, uint64_t y, bool own) {
  double a = f64_of(old), b = f64_of(y);
  if (!own && b != b) return y;
  if (a != a) return own ? bits_of64(quiet(a)) : old;
  return bits_of64(b != b ? quiet(b) : a + b);
}

static uint64_t sum(unsigned type, uint64_t x, uint64_t y, bool own) {
  switch (type) {
  case ATOM_F32: return sum_f32((uint32_t)x, (uint32_t)y, own);
  case ATOM_F64: return sum_f64(x, y, own);
  case ATOM_F16: return half_add((uint32_t)x, (uint32_t)y, false, false);
  case ATOM_F16X2: return half_add((uint32_t)x, (uint32_t)y, false, true);
  case ATOM_BF16: return half_add((uint32_t)x, (uint32_t)y, true, false);
  case ATOM_BF16X2: return half_add((uint32_t)x, (uint32_t)y, true, true);
  default: return x + y;
  }
}

/* `own`: memory of the block. */
static uint64_t combine(unsigned op, unsigned type, uint64_t old, uint64_t x,
                        uint64_t y, bool own) {
  switch (op) {
  case ATOM_ADD: return sum(type, old, x, own);
  case ATOM_MIN: return extreme(type, old, x, false);
  case ATOM_MAX: return extreme(type, old, x, true);
  case ATOM_AND: return old & x;
  case ATOM_OR: return old | x;
  case ATOM_XOR: return old ^ x;
  case ATOM_EXCH: return x;
  case ATOM_CAS: return old == x ? y : old;
  case ATOM_INC: return (uint32_t)old >= (uint32_t)x ? 0 : old + 1;
  default: /* dec */
    return (uint32_t)old == 0 || (uint32_t)old > (uint32_t)x ? x : old - 1;
  }
}

/* Integer additions and bit operations have instructions of their own. */
#define DIRECT(U, p)                                                           \
  switch (op) {                                                                \
  case ATOM_ADD: return __atomic_fetch_add((U *)p, (U)x, __ATOMIC_SEQ_CST);    \
  case ATOM_AND: return __atomic_fetch_and((U *)p, (U)x, __ATOMIC_SEQ_CST);    \
  case ATOM_OR: return __atomic_fetch_or((U *)p, (U)x, __ATOMIC_SEQ_CST);      \
  case ATOM_XOR: return __atomic_fetch_xor((U *)p, (U)x, __ATOMIC_SEQ_CST);    \
  case ATOM_EXCH: return __atomic_exchange_n((U *)p, (U)x, __ATOMIC_SEQ_CST);  \
  default: break;                                                              \
  }
#define LOOP(U, p)                                                             \
  do {                                                                         \
    U old = __atomic_load_n((U *)p, __ATOMIC_RELAXED), new;                    \
    do new = (U)combine(op, type, old, x, y, false);                           \
    while (!__atomic_compare_exchange_n((U *)p, &old, new, true,               \
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));  \
    return old;                                                                \
  } while (0)

static uint64_t atomic_rmw(void *p, unsigned size, unsigned op, unsigned type,
                           uint64_t x, uint64_t y) {
  bool integer = type <= ATOM_S64;
  if (size == 2) LOOP(uint16_t, p);
  if (size == 4) {
    if (integer) DIRECT(uint32_t, p)
    LOOP(uint32_t, p);
  }
  if (integer) DIRECT(uint64_t, p)
  LOOP(uint64_t, p);
}

static uint64_t value_of(engine *e, uint32_t operand, unsigned lane,
                         unsigned size) {
  if (operand == NO_OPERAND) return 0;
  return size == 8 ? row64(e, operand)[lane] : row32(e, operand)[lane];
}

/* The old value. */
static uint64_t one_lane(engine *e, const insn *i, unsigned lane,
                         uint64_t address, unsigned size) {
  unsigned op = i->f & 255, type = i->f >> 8 & 255;
  uint64_t x = value_of(e, i->b, lane, size);
  uint64_t y = value_of(e, i->c, lane, size);
  bool local = false;
  const region *r =
      i->space == TPS_PTX_SHARED ? &e->shared : &e->slots[i->slot];
  uint64_t offset = address - r->base;
  unsigned char *p =
      offset < r->size && r->size - offset >= size && !(offset & (size - 1))
          ? r->host + offset
          : tps_sim_resolve(e, i, lane, address, size, ACCESS_ATOMIC, &local);
  bool own = local || tps_sim_is_shared(e, p);
  uint64_t old = 0;
  if (!own) {
    old = atomic_rmw(p, size, op, type, x, y);
    if (e->launch->workspace) tps_sim_workspace_changed(e, address);
    return old;
  }
  if (local) old = tps_sim_load(e, i, lane, address, size);
  else memcpy(&old, p, size);
  uint64_t new = combine(op, type, old, x, y, true);
  if (local) tps_sim_store(e, i, lane, address, size, new);
  else memcpy(p, &new, size);
  return old;
}

const insn *tps_sim_atom(engine *e, const insn *i, uint32_t mask) {
  unsigned size = i->count;
  const uint64_t *a = row64(e, i->a);
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t old = one_lane(e, i, l, a[l] + (uint64_t)i->imm, size);
    if (i->d == NO_OPERAND) continue;
    if (size == 8) row64(e, i->d)[l] = old;
    else row32(e, i->d)[l] = (uint32_t)old;
  }
  return i + 1;
}

uint64_t tps_sim_atomic_apply(engine *e, unsigned char *p, unsigned size,
                              uint32_t op, uint32_t type, uint64_t x) {
  if (!tps_sim_is_shared(e, p)) return atomic_rmw(p, size, op, type, x, 0);
  uint64_t old = 0;
  memcpy(&old, p, size);
  uint64_t new = combine(op, type, old, x, 0, true);
  memcpy(p, &new, size);
  return old;
}

HANDLER(atom) { return tps_sim_atom(e, i, mask); }

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_atomic(handler **table);
void tps_sim_fill_atomic(handler **table) { ATOMIC_OPS(FILL) }
