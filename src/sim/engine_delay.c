/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * With a seed, a plain store to global memory may become visible late: behind
 * later loads, volatile and atomic accesses of the same thread, as on a GPU
 * whose threads use no fence. Each warp holds one store back at the most. It
 * takes effect before anything that orders memory (a fence, a barrier, a
 * synchronization of the warp, a release, the thread's end), before an access
 * to the same bytes, or by chance.
 */
#include <stdlib.h>

#include "sim/engine_watch.h"

#define WIDEST 16u /* bytes of one access */

/* What an instruction means to a store that is held back. */
typedef enum bearing {
  UNRELATED,
  READS,   /* at the addresses in its operand a */
  WRITES,  /* likewise, plainly: may itself be held back */
  SIGNALS, /* likewise, so that others may notice */
  ORDERS   /* or not known to be harmless */
} bearing;

static bool between(unsigned op, unsigned first, unsigned last) {
  return op >= first && op <= last;
}

static bool releases(engine *e, const insn *i) {
  const function *f = tps_sim_function_of(e->launch->kernel, i);
  if (i->ptx < 0) return true;
  const tps_ptx_instruction *p = &f->ptx->instructions[i->ptx];
  return tps_ptx_has(p, TPS_PTX_M_RELEASE) ||
         tps_ptx_has(p, TPS_PTX_M_ACQ_REL) || tps_ptx_has(p, TPS_PTX_M_SC);
}

static bearing bearing_of(engine *e, const insn *i) {
  unsigned op = i->op;
  if (op <= H_insert || between(op, H_bra, H_call_indirect)) return UNRELATED;
  if (between(op, H_ld_u8_global, H_ldv_64_global)) return READS;
  if (between(op, H_st_8_global, H_stv_64_global)) return WRITES;
  if (between(op, H_ld_u8_shared, H_ldv_64_shared32) ||
      between(op, H_st_8_shared, H_stv_64_shared32))
    return UNRELATED;
  switch (op) {
  case H_ld_local:
  case H_st_local:
  case H_nanosleep:
  case H_nop:
  case H_clock:
  case H_activemask:
  case H_isspacep: return UNRELATED;
  case H_ret: return e->group->depth > 0 ? UNRELATED : ORDERS;
  case H_ld_any: return READS;
  case H_st_any: return i->f & 512 ? ORDERS : i->f & 1024 ? SIGNALS : WRITES;
  case H_atom:
  case H_atom_shared: return releases(e, i) ? ORDERS : SIGNALS;
  default: return ORDERS;
  }
}

/* The lanes for which the instruction would be executed. */
static uint32_t lanes_of(engine *e, const insn *i) {
  handler *const *table = e->launch->kernel->code->table;
  if (i->fn == i->inner || i->fn == table[H_watched]) return e->mask;
  uint32_t p = *mask_of(e, i->guard);
  bool negated =
      i->fn == table[H_guarded_not] || i->fn == table[H_watched_unless];
  return e->mask & (negated ? ~p : p);
}

static bool meets(engine *e, const insn *i, const delayed *s) {
  const uint64_t *a = row64(e, i->a);
  for (uint32_t m = lanes_of(e, i); m; m &= m - 1) {
    uint64_t at = a[__builtin_ctz(m)] + (uint64_t)i->imm;
    if (at < s->high && at + WIDEST > s->low) return true;
  }
  return false;
}

/* --- holding back -------------------------------------------------------- */

static unsigned element_bytes(const insn *i) {
  if (i->op == H_st_any) return i->f & 255;
  unsigned first = i->op < H_stv_8_global ? H_st_8_global : H_stv_8_global;
  return 1u << (i->op - first);
}

static unsigned element_count(const insn *i) {
  return between(i->op, H_st_8_global, H_st_64_global) ? 1 : i->count;
}

/* Shared, local and parameter memory is the thread's or the block's own. */
static bool is_global(uint64_t address) {
  return address >= TPS_SIM_GLOBAL_BASE;
}

static void hold_lane(engine *e, const insn *i, delayed *s, unsigned l) {
  const uint32_t rows[4] = {i->d, i->b, i->c, i->e};
  uint64_t at = row64(e, i->a)[l] + (uint64_t)i->imm;
  unsigned bytes = (unsigned)s->size * s->count;
  bool local = false;
  s->host[l] = tps_sim_resolve(e, i, l, at, bytes, ACCESS_STORE, &local);
  for (unsigned k = 0; k < s->count; k++)
    s->value[k][l] = s->size == 8 ? row64(e, rows[k])[l] : row32(e, rows[k])[l];
  if (at < s->low) s->low = at;
  if (at + bytes > s->high) s->high = at + bytes;
}

static bool hold(engine *e, const insn *i, delayed *s) {
  uint32_t lanes = lanes_of(e, i);
  const uint64_t *a = row64(e, i->a);
  if (!lanes) return false;
  for (uint32_t m = lanes; m; m &= m - 1)
    if (!is_global(a[__builtin_ctz(m)] + (uint64_t)i->imm)) return false;
  s->size = (uint8_t)element_bytes(i);
  s->count = (uint8_t)element_count(i);
  s->low = UINT64_MAX;
  s->high = 0;
  for (uint32_t m = lanes; m; m &= m - 1)
    hold_lane(e, i, s, (unsigned)__builtin_ctz(m));
  s->lanes = lanes;
  if (e->launch->watch) tps_sim_watch_insn(e, i, lanes);
  return true;
}

void tps_sim_delay_flush(delayed *s) {
  for (uint32_t m = s->lanes; m;) {
    unsigned l = 31u - (unsigned)__builtin_clz(m); /* the lowest one stays */
    m ^= 1u << l;
    for (unsigned k = 0; k < s->count; k++)
      store_atomic(s->host[l] + k * s->size, s->size, s->value[k][l],
                   __ATOMIC_RELAXED);
  }
  s->lanes = 0;
}

bool tps_sim_delay(engine *e, const insn *i, bool wanted) {
  delayed *s = &e->block->delayed[e->warp->index];
  if (!s->lanes && !wanted) return false;
  bearing b = bearing_of(e, i);
  if (b == UNRELATED) return false;
  if (s->lanes && (b == ORDERS || meets(e, i, s))) tps_sim_delay_flush(s);
  if (s->lanes && b == SIGNALS) e->block->hurry = true;
  return wanted && b == WRITES && !s->lanes && hold(e, i, s);
}

bool tps_sim_delay_ready(struct tps_sim_block *block) {
  uint32_t warps = block->launch->warps;
  if (!block->delayed) block->delayed = calloc(warps, sizeof(delayed));
  for (uint32_t k = 0; block->delayed && k < warps; k++)
    block->delayed[k].lanes = 0;
  return block->delayed != NULL;
}
