/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of what completes later and of clusters: cp.async and its groups,
 * bulk copies, mbarrier, mapa, getctarank, barrier.cluster. Copies through a
 * tensor map are not supported.
 */
#include "sim/engine_atomic.h"
#include "sim/engine_decode.h"

/* An address as a row of 64 bits, its offset added. */
static uint32_t address(builder *b, const ptx_opd *o) {
  ptx_opd base = *o;
  bool local;
  if (o->kind != TPS_PTX_OPD_ADDR) {
    b->unsupported = true;
    return tps_sim_constant(b, 0, true);
  }
  if (o->base_kind == TPS_PTX_OPD_IMM)
    return tps_sim_constant(b, (uint64_t)o->value, true);
  base.kind = o->base_kind;
  if (o->base_kind == TPS_PTX_OPD_VAR) {
    uint64_t at = tps_sim_address_of(b, &base, &local);
    b->unsupported |= local;
    return tps_sim_constant(b, at, true);
  }
  base.value = 0;
  uint32_t row = tps_sim_source(b, &base, TPS_PTX_U64);
  if (o->value == 0) return row;
  uint32_t sum = tps_sim_temp(b, true);
  tps_sim_emit3(b, H_add_64, sum, row,
                tps_sim_constant(b, (uint64_t)o->value, true), 0);
  return sum;
}

static uint32_t new_slot(builder *b) { return b->kernel->slots++; }

/* Where the operands of an opcode end that has a cache policy behind them. */
static unsigned operands_before_policy(const builder *b) {
  return b->p->operand_count - (has(b, TPS_PTX_M_L2__CACHE_HINT) ? 1u : 0u);
}

/* --- cp.async ------------------------------------------------------------ */

static bool small_copy(builder *b) {
  unsigned count = operands_before_policy(b);
  if (count < 3 || opd(b, 2)->kind != TPS_PTX_OPD_IMM) return false;
  int64_t size = opd(b, 2)->value;
  if (b->p->space != TPS_PTX_SHARED || b->p->space2 != TPS_PTX_GLOBAL ||
      (size != 4 && size != 8 && size != 16))
    return false;
  uint32_t to = address(b, opd(b, 0)), from = address(b, opd(b, 1));
  uint32_t bytes = NO_OPERAND, ignored = NO_OPERAND;
  if (count > 3) {
    const ptx_opd *o = opd(b, 3);
    if (o->kind == TPS_PTX_OPD_REG && o->type == TPS_PTX_PRED)
      ignored = tps_sim_source_pred(b, o);
    else bytes = tps_sim_source(b, o, TPS_PTX_U32);
  }
  insn *i = tps_sim_emit3(b, H_async_copy, NO_OPERAND, to, from, bytes);
  i->e = ignored;
  i->space = b->p->space2;
  i->count = (uint8_t)size;
  i->slot = new_slot(b);
  return true;
}

static bool arrive_after_copies(builder *b) {
  uint32_t at = address(b, opd(b, 0));
  insn *i = tps_sim_emit3(b, H_async_arrive, NO_OPERAND, at, 0, 0);
  i->imm = has(b, TPS_PTX_M_NOINC);
  i->space = b->p->space;
  i->slot = new_slot(b);
  return true;
}

static bool group_wait(builder *b) {
  uint32_t kept = UINT32_MAX;
  if (has(b, TPS_PTX_M_WAIT_GROUP)) {
    if (b->p->operand_count != 1 || opd(b, 0)->kind != TPS_PTX_OPD_IMM)
      return false;
    kept = (uint32_t)opd(b, 0)->value;
  }
  insn *i = tps_sim_emit(b, H_async_wait);
  i->imm = (has(b, TPS_PTX_M_BULK) ? WAIT_BULK : 0) |
           (has(b, TPS_PTX_M_READ) ? WAIT_READ : 0);
  i->f = kept;
  return true;
}

/* --- bulk copies --------------------------------------------------------- */

static const struct {
  tps_ptx_mod mod;
  uint8_t op;
} reductions[] = {{TPS_PTX_M_ADD, ATOM_ADD}, {TPS_PTX_M_MIN, ATOM_MIN},
                  {TPS_PTX_M_MAX, ATOM_MAX}, {TPS_PTX_M_INC, ATOM_INC},
                  {TPS_PTX_M_DEC, ATOM_DEC}, {TPS_PTX_M_AND, ATOM_AND},
                  {TPS_PTX_M_OR, ATOM_OR},   {TPS_PTX_M_XOR, ATOM_XOR}};

static bool element_type(uint8_t t, uint32_t *type) {
  switch (t) {
  case TPS_PTX_B32:
  case TPS_PTX_U32: *type = ATOM_U32; return true;
  case TPS_PTX_S32: *type = ATOM_S32; return true;
  case TPS_PTX_B64:
  case TPS_PTX_U64: *type = ATOM_U64; return true;
  case TPS_PTX_S64: *type = ATOM_S64; return true;
  case TPS_PTX_F32: *type = ATOM_F32; return true;
  case TPS_PTX_F64: *type = ATOM_F64; return true;
  case TPS_PTX_F16: *type = ATOM_F16; return true;
  case TPS_PTX_BF16: *type = ATOM_BF16; return true;
  default: return false;
  }
}

/* The reduction of a copy: 0 for none. */
static bool reduction(const builder *b, uint32_t *out) {
  uint32_t type;
  *out = 0;
  if (!has(b, TPS_PTX_M_REDUCE)) return true;
  if (!element_type(type_at(b, 0), &type)) return false;
  for (unsigned k = 0; k < sizeof reductions / sizeof *reductions; k++)
    if (has(b, reductions[k].mod)) {
      *out = 1 + (reductions[k].op | type << 8);
      return !(type >= ATOM_F32 && reductions[k].op >= ATOM_AND);
    }
  return false;
}

static bool bulk_spaces(const builder *b, bool tells) {
  uint8_t to = b->p->space, from = b->p->space2;
  if (to == TPS_PTX_GLOBAL) return from == TPS_PTX_SHARED && !tells;
  bool shared = to == TPS_PTX_SHARED || to == TPS_PTX_SHARED_CLUSTER;
  return shared && tells && (from == TPS_PTX_GLOBAL || from == TPS_PTX_SHARED);
}

static bool bulk_copy(builder *b) {
  bool tells = has(b, TPS_PTX_M_MBARRIER__COMPLETE_TX__BYTES);
  unsigned count = operands_before_policy(b);
  uint32_t reduced, mbarrier = NO_OPERAND, ranks = NO_OPERAND;
  if (count < 3 + (unsigned)tells || !bulk_spaces(b, tells) ||
      has(b, TPS_PTX_M_CP_MASK) || !reduction(b, &reduced))
    return false;
  uint32_t to = address(b, opd(b, 0)), from = address(b, opd(b, 1));
  uint32_t bytes = tps_sim_source(b, opd(b, 2), TPS_PTX_U32);
  if (tells) mbarrier = address(b, opd(b, 3));
  if (has(b, TPS_PTX_M_MULTICAST__CLUSTER)) {
    if (count < 5) return false;
    ranks = tps_sim_source(b, opd(b, 4), TPS_PTX_U16);
  }
  insn *i = tps_sim_emit3(b, H_async_bulk, ranks, to, from, bytes);
  i->e = mbarrier;
  i->f = reduced;
  i->space = b->p->space;
  i->count = b->p->space2;
  i->slot = new_slot(b);
  return true;
}

bool tps_sim_decode_copy(builder *b) {
  if (!has(b, TPS_PTX_M_ASYNC) || has(b, TPS_PTX_M_TENSOR)) return false;
  if (has(b, TPS_PTX_M_PREFETCH)) return true;
  if (has(b, TPS_PTX_M_COMMIT_GROUP)) {
    tps_sim_emit(b, H_async_commit)->imm = has(b, TPS_PTX_M_BULK);
    return true;
  }
  if (has(b, TPS_PTX_M_WAIT_GROUP) || has(b, TPS_PTX_M_WAIT_ALL))
    return group_wait(b);
  if (has(b, TPS_PTX_M_ARRIVE)) return arrive_after_copies(b);
  return has(b, TPS_PTX_M_BULK) ? bulk_copy(b) : small_copy(b);
}

/* --- mbarrier ------------------------------------------------------------ */

static insn *on_object(builder *b, unsigned op, uint32_t d, uint32_t at,
                       uint32_t s, uint32_t c) {
  insn *i = tps_sim_emit3(b, op, d, at, s, c);
  i->space = b->p->space;
  i->slot = new_slot(b);
  return i;
}

/* init and the transactions: [object], number. */
static bool set_count(builder *b, unsigned op, int64_t imm) {
  if (b->p->operand_count != 2) return false;
  uint32_t count = tps_sim_source(b, opd(b, 1), TPS_PTX_U32);
  on_object(b, op, NO_OPERAND, address(b, opd(b, 0)), count, 0)->imm = imm;
  return true;
}

static bool arrive(builder *b) {
  bool result = opd(b, 0)->kind != TPS_PTX_OPD_ADDR, drop;
  unsigned k = result ? 1 : 0;
  uint32_t number = NO_OPERAND, d = NO_OPERAND;
  if (b->p->operand_count <= k) return false;
  uint32_t at = address(b, opd(b, k));
  if (b->p->operand_count > k + 1)
    number = tps_sim_source(b, opd(b, k + 1), TPS_PTX_U32);
  if (result && opd(b, 0)->kind == TPS_PTX_OPD_REG)
    d = tps_sim_result(b, opd(b, 0), TPS_PTX_B64);
  bool bytes = has(b, TPS_PTX_M_EXPECT_TX);
  drop = has(b, TPS_PTX_M_ARRIVE_DROP);
  insn *i = on_object(b, H_mbarrier_arrive, d, at, bytes ? NO_OPERAND : number,
                      bytes ? number : NO_OPERAND);
  i->imm = drop;
  return true;
}

static bool wait(builder *b) {
  bool parity = has(b, TPS_PTX_M_PARITY);
  if (b->p->operand_count < 3) return false;
  uint32_t at = address(b, opd(b, 1));
  uint32_t s = tps_sim_source(b, opd(b, 2), parity ? TPS_PTX_U32 : TPS_PTX_B64);
  uint32_t d = tps_sim_result_pred(b, opd(b, 0));
  insn *i = on_object(b, H_mbarrier_wait, d, at, s, 0);
  i->imm = (parity ? 1 : 0) | (tps_sim_only_waits(b) ? 2 : 0);
  return true;
}

bool tps_sim_decode_mbarrier(builder *b) {
  if (has(b, TPS_PTX_M_INIT)) return set_count(b, H_mbarrier_init, 0);
  if (has(b, TPS_PTX_M_INVAL)) {
    on_object(b, H_mbarrier_inval, NO_OPERAND, address(b, opd(b, 0)), 0, 0);
    return true;
  }
  if (has(b, TPS_PTX_M_ARRIVE) || has(b, TPS_PTX_M_ARRIVE_DROP))
    return arrive(b);
  if (has(b, TPS_PTX_M_EXPECT_TX)) return set_count(b, H_mbarrier_tx, 0);
  if (has(b, TPS_PTX_M_COMPLETE_TX)) return set_count(b, H_mbarrier_tx, 1);
  if (has(b, TPS_PTX_M_TEST_WAIT) || has(b, TPS_PTX_M_TRY_WAIT)) return wait(b);
  if (!has(b, TPS_PTX_M_PENDING_COUNT) || b->p->operand_count != 2)
    return false;
  uint32_t s = tps_sim_source(b, opd(b, 1), TPS_PTX_B64);
  tps_sim_emit3(b, H_mbarrier_pending,
                tps_sim_result(b, opd(b, 0), TPS_PTX_U32), s, 0, 0);
  return true;
}

bool tps_sim_decode_complete_tx(builder *b, const ptx_opd *object,
                                unsigned bytes) {
  if (!has(b, TPS_PTX_M_MBARRIER__COMPLETE_TX__BYTES) ||
      b->p->space != TPS_PTX_SHARED_CLUSTER)
    return false;
  uint32_t at = address(b, object);
  on_object(b, H_mbarrier_tx, NO_OPERAND, at, tps_sim_constant(b, bytes, false),
            0)
      ->imm = 1;
  return true;
}

/* --- clusters ------------------------------------------------------------ */

static bool map_address(builder *b) {
  uint32_t a = tps_sim_source(b, opd(b, 1), TPS_PTX_U64);
  uint32_t rank = tps_sim_source(b, opd(b, 2), TPS_PTX_U32);
  uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_U64);
  tps_sim_emit3(b, H_mapa, d, a, rank, 0);
  return true;
}

static bool rank_of_address(builder *b) {
  uint32_t a = tps_sim_source(b, opd(b, 1), TPS_PTX_U64);
  uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_U32);
  tps_sim_emit3(b, H_getctarank, d, a, 0, 0);
  return true;
}

bool tps_sim_decode_cluster(builder *b) {
  if (b->p->op == TPS_PTX_OP_MAPA) return map_address(b);
  if (b->p->op == TPS_PTX_OP_GETCTARANK) return rank_of_address(b);
  bool arrives = has(b, TPS_PTX_M_ARRIVE);
  if (!arrives && !has(b, TPS_PTX_M_WAIT)) return false;
  tps_sim_emit(b, arrives ? H_cluster_arrive : H_cluster_wait);
  return true;
}
