/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Watched code: a kernel's decoded instructions with another handler in front of
 * each that touches memory or orders it, and what that one has to know of them.
 */
#include <stdlib.h>

#include "sim/engine_joins.h"
#include "sim/engine_watch.h"

static bool between(unsigned op, unsigned first, unsigned last) {
  return op >= first && op <= last;
}

/* --- what an instruction does -------------------------------------------- */

static const tps_ptx_instruction *ptx_of(const struct tps_sim_kernel *kernel,
                                         const insn *i) {
  const function *f = tps_sim_function_of(kernel, i);
  if (i->ptx < 0 || (uint32_t)i->ptx >= f->ptx->instruction_count) return NULL;
  return &f->ptx->instructions[i->ptx];
}

static bool releases(const tps_ptx_instruction *p) {
  return tps_ptx_has(p, TPS_PTX_M_RELEASE) ||
         tps_ptx_has(p, TPS_PTX_M_ACQ_REL) || tps_ptx_has(p, TPS_PTX_M_SC);
}

/* A strong load acquires whether it says so or not: a fence behind it would make
 * it do so, and whether there is one on every path is not followed. */
static uint8_t order_of(const tps_ptx_instruction *p, watch_kind kind) {
  uint8_t order = 0;
  if (!p) return 0;
  bool strong = kind == WATCH_UPDATE || tps_ptx_has(p, TPS_PTX_M_VOLATILE) ||
                tps_ptx_has(p, TPS_PTX_M_RELAXED) ||
                tps_ptx_has(p, TPS_PTX_M_ACQUIRE) ||
                tps_ptx_has(p, TPS_PTX_M_MMIO) || releases(p);
  if (strong) order |= WATCH_STRONG;
  if (strong && kind != WATCH_STORE) order |= WATCH_ACQUIRES;
  if (releases(p)) order |= WATCH_RELEASES;
  return order;
}

static watch_site plain(const struct tps_sim_kernel *kernel, const insn *i,
                        watch_kind kind, unsigned bytes) {
  bool exempt = i->space == TPS_PTX_PARAM || i->space == TPS_PTX_CONST;
  if (exempt) return (watch_site){.kind = WATCH_NOTHING};
  return (watch_site){.kind = (uint8_t)kind,
                      .order = order_of(ptx_of(kernel, i), kind),
                      .bytes = (uint8_t)bytes};
}

static watch_site of_access(const struct tps_sim_kernel *kernel,
                            const insn *i) {
  bool store = between(i->op, H_st_8_global, H_stv_64_shared32) ||
               i->op == H_st_local || i->op == H_st_any;
  watch_site s = plain(kernel, i, store ? WATCH_STORE : WATCH_LOAD,
                       (i->f & 255) * i->count);
  s.narrow = between(i->op, H_ld_u8_shared32, H_ldv_64_shared32) ||
             between(i->op, H_st_8_shared32, H_stv_64_shared32);
  return s;
}

/* All of them order the phases; making one and dropping it does not. */
static watch_site of_mbarrier(const insn *i) {
  uint8_t order = WATCH_STRONG;
  if (i->op == H_mbarrier_wait) order |= WATCH_ACQUIRES;
  if (i->op == H_mbarrier_arrive || i->op == H_mbarrier_tx ||
      i->op == H_async_arrive)
    order |= WATCH_RELEASES;
  return (watch_site){.kind =
                          i->op == H_mbarrier_wait ? WATCH_LOAD : WATCH_UPDATE,
                      .order = order,
                      .bytes = 8,
                      .whole = true};
}

static watch_site site_of(const struct tps_sim_kernel *kernel, const insn *i) {
  if (between(i->op, H_ld_u8_global, H_st_any)) return of_access(kernel, i);
  switch (i->op) {
  case H_atom:
  case H_atom_shared: return plain(kernel, i, WATCH_UPDATE, i->count);
  case H_ld_128: return plain(kernel, i, WATCH_LOAD, 16);
  case H_st_128: return plain(kernel, i, WATCH_STORE, 16);
  case H_atom_128: return plain(kernel, i, WATCH_UPDATE, 16);
  case H_async_copy:
  case H_async_bulk:
    return (watch_site){.kind = WATCH_STORE, .order = WATCH_ASYNC};
  case H_mbarrier_init:
  case H_mbarrier_inval:
  case H_mbarrier_arrive:
  case H_mbarrier_tx:
  case H_mbarrier_wait:
  case H_async_arrive: return of_mbarrier(i);
  case H_tex:
  case H_tld4:
  case H_suld: return (watch_site){.kind = WATCH_LOAD};
  case H_sust: return (watch_site){.kind = WATCH_STORE};
  case H_sured: return (watch_site){.kind = WATCH_UPDATE};
  default: return (watch_site){.kind = WATCH_NOTHING};
  }
}

/* Instructions that order accesses and touch none, as far as they do not call
 * tps_sim_watch_sync themselves. */
static bool is_sync(const insn *i) {
  return i->op == H_fence || i->op == H_cluster_arrive ||
         i->op == H_cluster_wait || i->op == H_async_commit ||
         i->op == H_async_wait;
}

/* --- the code ------------------------------------------------------------ */

static void watch(struct tps_sim_kernel *kernel, insn *i) {
  handler *const *table = kernel->code->table;
  if (i->fn == i->inner) i->fn = table[H_watched];
  else if (i->fn == table[H_guarded]) i->fn = table[H_watched_if];
  else i->fn = table[H_watched_unless];
}

/* The quick shuffle tells nobody that lanes have met; the general one, which all
 * exchanges share, does. */
static void slow_down(const struct tps_sim_kernel *kernel, insn *i) {
  handler *general = kernel->code->table[H_vote];
  if (i->fn == i->inner) i->fn = general;
  i->inner = general;
}

bool tps_sim_watch_code(struct tps_sim_kernel *kernel) {
  kernel->sites = calloc(kernel->insn_count + 1, sizeof *kernel->sites);
  if (!kernel->sites) return false;
  kernel->joins = tps_sim_joins_new(kernel);
  for (uint32_t k = 0; k < kernel->insn_count; k++) {
    insn *i = &kernel->insns[k];
    kernel->sites[k] = site_of(kernel, i);
    if (i->op == H_shfl) slow_down(kernel, i);
    kernel->sites[k].joins =
        tps_sim_join_at(kernel, i) != 0 || tps_sim_join_opened(kernel, i) != 0;
    if (kernel->sites[k].kind != WATCH_NOTHING || kernel->sites[k].joins ||
        is_sync(i))
      watch(kernel, i);
  }
  tps_sim_watch_swaps(kernel);
  return true;
}
