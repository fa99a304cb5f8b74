/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Accesses to 128 bits at once. All of them hold one lock, so that each is a
 * whole to the others. Lanes go one after the other, the lowest first, but
 * where several store to one place: the lowest one stays.
 *
 * Operands: address a, values b and c (c NO_OPERAND: an exchange), result d;
 * each two rows of 64-bit elements.
 */
#include "sim/engine_core.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define NO_OPERAND UINT32_MAX

typedef struct value {
  uint64_t low, high;
} value;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static value get_row(engine *e, uint32_t operand, unsigned lane) {
  return (value){row64(e, operand)[lane], row64(e, operand + ROW64)[lane]};
}
static void put_row(engine *e, uint32_t operand, unsigned lane, value v) {
  row64(e, operand)[lane] = v.low;
  row64(e, operand + ROW64)[lane] = v.high;
}

static value get(const unsigned char *p) {
  return (value){load_atomic(p, 8, __ATOMIC_RELAXED),
                 load_atomic(p + 8, 8, __ATOMIC_RELAXED)};
}
static void put(unsigned char *p, value v) {
  store_atomic(p, 8, v.low, __ATOMIC_RELAXED);
  store_atomic(p + 8, 8, v.high, __ATOMIC_RELAXED);
}

static uint64_t address_of(engine *e, const insn *i, unsigned lane) {
  return row64(e, i->a)[lane] + (uint64_t)i->imm;
}

HANDLER(ld_128) {
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t at = address_of(e, i, l);
    bool local = false;
    value v;
    const unsigned char *p =
        tps_sim_resolve(e, i, l, at, 16, ACCESS_LOAD, &local);
    if (local) {
      v.low = tps_sim_load(e, i, l, at, 8);
      v.high = tps_sim_load(e, i, l, at + 8, 8);
    } else {
      pthread_mutex_lock(&lock);
      v = get(p);
      pthread_mutex_unlock(&lock);
    }
    put_row(e, i->d, l, v);
  }
  return i + 1;
}

HANDLER(st_128) {
  for (uint32_t m = mask; m;) {
    unsigned l = 31u - (unsigned)__builtin_clz(m);
    uint64_t at = address_of(e, i, l);
    bool local = false;
    value v = get_row(e, i->b, l);
    unsigned char *p = tps_sim_resolve(e, i, l, at, 16, ACCESS_STORE, &local);
    m ^= 1u << l;
    if (local) {
      tps_sim_store(e, i, l, at, 8, v.low);
      tps_sim_store(e, i, l, at + 8, 8, v.high);
      continue;
    }
    pthread_mutex_lock(&lock);
    put(p, v);
    pthread_mutex_unlock(&lock);
  }
  return i + 1;
}

HANDLER(atom_128) {
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t at = address_of(e, i, l);
    value x = get_row(e, i->b, l), y = x;
    bool local = false;
    unsigned char *p = tps_sim_resolve(e, i, l, at, 16, ACCESS_ATOMIC, &local);
    if (local)
      tps_sim_fault(e, i, (int)l, TPS_ILLEGAL_ADDRESS,
                    "an atomic operation of 16 bytes at address 0x%llx: local "
                    "memory has none",
                    (unsigned long long)at);
    if (i->c != NO_OPERAND) y = get_row(e, i->c, l);
    pthread_mutex_lock(&lock);
    value old = get(p);
    if (i->c == NO_OPERAND || (old.low == x.low && old.high == x.high))
      put(p, y);
    pthread_mutex_unlock(&lock);
    if (i->d != NO_OPERAND) put_row(e, i->d, l, old);
  }
  return i + 1;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_wide(handler **table);
void tps_sim_fill_wide(handler **table) { WIDE_OPS(FILL) }
