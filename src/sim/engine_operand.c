/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Operands of the instruction being decoded: rows for registers, immediates,
 * parameters and special registers, and the conversions between classes.
 */
#include <stdlib.h>

#include "sim/engine_decode.h"
#include "sim/engine_number.h"

void tps_sim_no_memory(builder *b) {
  if (!b->failed)
    b->failed =
        tps_fail(b->err, TPS_NO_HOST_MEMORY,
                 "out of host memory while decoding '%s'", b->kernel->name);
}

void *tps_sim_grow(builder *b, void *p, uint32_t *capacity, uint32_t need,
                   size_t size) {
  if (need <= *capacity) return p;
  uint32_t more = *capacity ? *capacity * 2 : 64;
  while (more < need) more *= 2;
  void *q = realloc(p, more * size);
  if (!q) {
    tps_sim_no_memory(b);
    return NULL;
  }
  *capacity = more;
  return q;
}

insn *tps_sim_emit(builder *b, unsigned op) {
  static _Thread_local insn nowhere; /* after memory has run out */
  insn *p = tps_sim_grow(b, b->insns, &b->insn_capacity, b->insn_count + 1,
                         sizeof *p);
  if (!p) return &nowhere;
  b->insns = p;
  insn *i = &p[b->insn_count++];
  memset(i, 0, sizeof *i);
  i->op = (uint16_t)op;
  i->guard = b->guard;
  i->ptx = b->at;
  i->d = i->e = i->f = NO_OPERAND;
  return i;
}

uint32_t tps_sim_place(builder *b, uint64_t bytes) {
  uint64_t at = b->frame;
  b->frame += bytes;
  return (uint32_t)at; /* if it does not fit, the function is refused */
}

uint32_t tps_sim_temp(builder *b, bool wide) {
  uint32_t *used = wide ? &b->temps64 : &b->temps32;
  uint32_t k = *used < TEMPS ? (*used)++ : TEMPS - 1;
  return wide ? TEMP64_AT + k * ROW64 : TEMP32_AT + k * ROW32;
}
uint32_t tps_sim_temp_pred(builder *b) {
  return TEMP_PRED_AT + 8 * (b->temps_pred++ & 15);
}

/* --- constants ----------------------------------------------------------- */

static uint32_t new_constant(builder *b, uint64_t value, bool wide) {
  uint32_t size = wide ? ROW64 : ROW32, at = b->constant_bytes;
  unsigned char *p =
      tps_sim_grow(b, b->constants, &b->constant_capacity, at + size, 1);
  if (!p) return IN_CONSTANTS;
  b->constants = p;
  b->constant_bytes += size;
  uint32_t *d = (uint32_t *)(void *)(p + at);
  for (unsigned l = 0; l < LANES; l++) {
    if (wide)
      d[2 * l] = (uint32_t)value, d[2 * l + 1] = (uint32_t)(value >> 32);
    else d[l] = (uint32_t)value;
  }
  return at | IN_CONSTANTS;
}

static uint32_t slot_of(const builder *b, uint64_t value, bool wide) {
  uint64_t h = (value ^ (uint64_t)wide << 63) * 0x9e3779b97f4a7c15ull;
  uint32_t k = (uint32_t)(h >> 40) & (b->slot_capacity - 1);
  while (b->slots[k].row &&
         (b->slots[k].value != value || b->slots[k].wide != wide))
    k = (k + 1) & (b->slot_capacity - 1);
  return k;
}

static bool grow_slots(builder *b) {
  uint32_t old = b->slot_capacity;
  constant_slot *from = b->slots;
  b->slot_capacity = old ? old * 2 : 64;
  b->slots = calloc(b->slot_capacity, sizeof *b->slots);
  if (!b->slots) {
    b->slots = from;
    b->slot_capacity = old;
    tps_sim_no_memory(b);
    return false;
  }
  for (uint32_t k = 0; k < old; k++)
    if (from[k].row)
      b->slots[slot_of(b, from[k].value, from[k].wide)] = from[k];
  free(from);
  return true;
}

uint32_t tps_sim_constant(builder *b, uint64_t value, bool wide) {
  if (!wide) value = (uint32_t)value;
  if (2 * b->slot_used >= b->slot_capacity && !grow_slots(b))
    return IN_CONSTANTS;
  uint32_t k = slot_of(b, value, wide);
  if (!b->slots[k].row) {
    b->slots[k] = (constant_slot){value, new_constant(b, value, wide), wide};
    b->slot_used++;
  }
  return b->slots[k].row;
}

/* The bits of an immediate read as a type. */
static uint64_t immediate(const ptx_opd *o, uint8_t type) {
  uint64_t v = (uint64_t)o->value;
  if (type == TPS_PTX_F32) {
    if (o->type == TPS_PTX_F64) return bits_of((float)f64_of(v));
    if (o->type != TPS_PTX_F32) return bits_of((float)o->value);
    return (uint32_t)v;
  }
  if (type == TPS_PTX_F64) {
    if (o->type == TPS_PTX_F32) return bits_of64((double)f32_of((uint32_t)v));
    if (o->type != TPS_PTX_F64) return bits_of64((double)o->value);
    return v;
  }
  unsigned bits = bits_of_type(type);
  return bits >= 64 ? v : v & ((1ull << bits) - 1);
}

/* --- special registers --------------------------------------------------- */

/* clang-format off */
static const uint16_t launch_sregs[][2] = {
    {TPS_PTX_NTID, ROW_NTID_X}, {TPS_PTX_NTID + 1, ROW_NTID_Y},
    {TPS_PTX_NTID + 2, ROW_NTID_Z}, {TPS_PTX_NCTAID, ROW_NCTAID_X},
    {TPS_PTX_NCTAID + 1, ROW_NCTAID_Y}, {TPS_PTX_NCTAID + 2, ROW_NCTAID_Z},
    {TPS_PTX_NWARPID, ROW_NWARPID}, {TPS_PTX_NSMID, ROW_NSMID},
    {TPS_PTX_DYNAMIC_SMEM_SIZE, ROW_DYNAMIC_SHARED},
    {TPS_PTX_TOTAL_SMEM_SIZE, ROW_TOTAL_SHARED},
    {TPS_PTX_AGGR_SMEM_SIZE, ROW_TOTAL_SHARED},
    {TPS_PTX_NCLUSTERID, ROW_NCLUSTER_X},
    {TPS_PTX_NCLUSTERID + 1, ROW_NCLUSTER_Y},
    {TPS_PTX_NCLUSTERID + 2, ROW_NCLUSTER_Z},
    {TPS_PTX_CLUSTER_NCTAID, ROW_CLUSTER_SIZE_X},
    {TPS_PTX_CLUSTER_NCTAID + 1, ROW_CLUSTER_SIZE_Y},
    {TPS_PTX_CLUSTER_NCTAID + 2, ROW_CLUSTER_SIZE_Z},
    {TPS_PTX_CLUSTER_NCTARANK, ROW_CLUSTER_RANKS},
    {TPS_PTX_IS_EXPLICIT_CLUSTER, ROW_EXPLICIT_CLUSTER},
    {TPS_PTX_RESERVED_SMEM_OFFSET, ROW_RESERVED_SHARED},
    {TPS_PTX_RESERVED_SMEM_END, ROW_RESERVED_END},
    {TPS_PTX_ENVREG + 1, ROW_ENVREG1}, {TPS_PTX_ENVREG + 2, ROW_ENVREG2},
};
/* clang-format on */
/* clang-format off */
static const uint16_t block_sregs[][2] = {
    {TPS_PTX_CTAID, ROW_CTAID_X}, {TPS_PTX_CTAID + 1, ROW_CTAID_Y},
    {TPS_PTX_CTAID + 2, ROW_CTAID_Z}, {TPS_PTX_SMID, ROW_SMID},
    {TPS_PTX_CLUSTERID, ROW_CLUSTERID_X},
    {TPS_PTX_CLUSTERID + 1, ROW_CLUSTERID_Y},
    {TPS_PTX_CLUSTERID + 2, ROW_CLUSTERID_Z},
    {TPS_PTX_CLUSTER_CTAID, ROW_CLUSTER_CTAID_X},
    {TPS_PTX_CLUSTER_CTAID + 1, ROW_CLUSTER_CTAID_Y},
    {TPS_PTX_CLUSTER_CTAID + 2, ROW_CLUSTER_CTAID_Z},
    {TPS_PTX_CLUSTER_CTARANK, ROW_CLUSTER_RANK},
};
/* clang-format on */

/* Lane numbers and masks: rows of constants that are not all equal. */
static uint32_t lane_row(builder *b, int32_t sreg) {
  uint64_t key = ~(uint64_t)(uint32_t)sreg; /* no 32-bit constant has this */
  if (2 * b->slot_used >= b->slot_capacity && !grow_slots(b))
    return IN_CONSTANTS;
  uint32_t k = slot_of(b, key, false);
  if (b->slots[k].row) return b->slots[k].row;
  uint32_t at = new_constant(b, 0, false);
  uint32_t *d = (uint32_t *)(void *)(b->constants + (at & ~7u));
  for (unsigned l = 0; l < LANES && !b->failed; l++) {
    uint32_t eq = 1u << l, lt = eq - 1;
    d[l] = sreg == TPS_PTX_LANEID        ? l
           : sreg == TPS_PTX_LANEMASK_EQ ? eq
           : sreg == TPS_PTX_LANEMASK_LT ? lt
           : sreg == TPS_PTX_LANEMASK_LE ? lt | eq
           : sreg == TPS_PTX_LANEMASK_GT ? ~(lt | eq)
                                         : ~lt;
  }
  b->slots[k] = (constant_slot){key, at, false};
  b->slot_used++;
  return at;
}

/* Rows that never change while a thread lives; NO_OPERAND for the others. */
static uint32_t fixed_sreg(builder *b, int32_t s) {
  if (s == TPS_PTX_RESERVED_SMEM_OFFSET) b->kernel->reserved = true;
  if (s == TPS_PTX_RESERVED_SMEM_CAP)
    return tps_sim_constant(b, RESERVED_SHARED, false);
  for (unsigned k = 0; k < sizeof launch_sregs / sizeof *launch_sregs; k++)
    if (launch_sregs[k][0] == s) return launch_sregs[k][1] * ROW32 | IN_LAUNCH;
  for (unsigned k = 0; k < sizeof block_sregs / sizeof *block_sregs; k++)
    if (block_sregs[k][0] == s) return block_sregs[k][1] * ROW32 | IN_BLOCK;
  if (s >= TPS_PTX_TID && s < TPS_PTX_TID + 3)
    return (uint32_t)(ROW_TID_X + s - TPS_PTX_TID) * ROW32 | IN_WARP;
  if (s == TPS_PTX_WARPID) return ROW_WARPID * ROW32 | IN_WARP;
  if (s == TPS_PTX_LANEID ||
      (s >= TPS_PTX_LANEMASK_EQ && s <= TPS_PTX_LANEMASK_GT))
    return lane_row(b, s);
  bool clock = (s >= TPS_PTX_CLOCK && s <= TPS_PTX_GLOBALTIMER_HI) ||
               s == TPS_PTX_PM || s == TPS_PTX_GRIDID;
  return clock ? NO_OPERAND : tps_sim_constant(b, 0, false);
}

/* A clock or the number of the launch, read into a temporary. */
static uint32_t read_clock(builder *b, int32_t s, bool wide) {
  uint32_t t = tps_sim_temp(b, wide);
  if (s == TPS_PTX_GRIDID) {
    insn *i = tps_sim_emit3(b, H_gridid, t, 0, 0, 0);
    i->imm = wide ? 0 : 1;
    return t;
  }
  insn *i = tps_sim_emit3(b, H_clock, t, 0, 0, 0);
  bool high = s == TPS_PTX_CLOCK_HI || s == TPS_PTX_GLOBALTIMER_HI;
  i->imm = wide ? 2 : high ? 1 : 0;
  return t;
}

static uint32_t special(builder *b, int32_t s, bool wide) {
  uint32_t r = fixed_sreg(b, s);
  if (r == NO_OPERAND) return read_clock(b, s, wide);
  if (!wide) return r;
  uint32_t t = tps_sim_temp(b, true);
  tps_sim_emit3(b, H_wide_u32, t, r, 0, 0);
  return t;
}

/* --- variables ----------------------------------------------------------- */

const tps_ptx_var *tps_sim_var(const builder *b, const ptx_opd *o) {
  return o->local ? &b->fn->vars[o->index] : &b->module->vars[o->index];
}

uint64_t tps_sim_address_of(builder *b, const ptx_opd *o, bool *is_local) {
  const tps_ptx_var *v = tps_sim_var(b, o);
  uint64_t at = (uint64_t)o->value, window = 0;
  uint32_t f = (uint32_t)(b->fn - b->module->functions);
  *is_local = false;
  switch (v->space) {
  case TPS_PTX_SHARED:
    at += o->local ? b->local_shared[f][o->index] : b->shared_at[o->index];
    window = TPS_SIM_SHARED_BASE;
    break;
  case TPS_PTX_LOCAL:
    at += v->offset;
    window = TPS_SIM_LOCAL_BASE;
    *is_local = true;
    break;
  case TPS_PTX_PARAM:
    at += v->offset;
    window = TPS_SIM_PARAM_BASE;
    break;
  default: {
    tps_sim_allocation *a =
        o->local ? b->code->locals[f][o->index] : b->code->globals[o->index];
    return at + (a ? a->base : 0);
  }
  }
  return o->generic ? at + window : at;
}

/* --- registers ----------------------------------------------------------- */

/* Whether values of the type have a row of 32 or 64 bits a lane. */
static bool has_row(uint8_t type) {
  return type != TPS_PTX_PRED && type != TPS_PTX_NOTYPE &&
         bits_of_type(type) <= 64;
}

/* Whether the operand is a register of that class and read or written as one;
 * what is not is for the caller to refuse. */
static bool is_plain(builder *b, const ptx_opd *o, uint8_t type) {
  bool plain = has_row(type) &&
               (o->kind != TPS_PTX_OPD_REG || has_row(b->regs[o->index].type));
  b->unsupported |= !plain;
  return plain;
}

static bool is_predicate(builder *b, const ptx_opd *o) {
  bool predicate =
      o->kind == TPS_PTX_OPD_REG && b->regs[o->index].type == TPS_PTX_PRED;
  b->unsupported |= !predicate;
  return predicate;
}

uint32_t tps_sim_reg_row(builder *b, const ptx_opd *o) {
  reg_info *r = &b->regs[o->index];
  if (r->alias != NO_OPERAND) return r->alias;
  if (r->row == NO_OPERAND)
    r->row = tps_sim_place(b, r->type == TPS_PTX_PRED   ? 64
                              : r->type == TPS_PTX_B128 ? 2 * ROW64
                              : is_wide(r->type)        ? ROW64
                                                        : ROW32);
  return r->row;
}

static bool reg_wide(const builder *b, const ptx_opd *o) {
  return is_wide(b->regs[o->index].type);
}

static uint32_t source_reg(builder *b, const ptx_opd *o, uint8_t type) {
  uint32_t r = tps_sim_reg_row(b, o);
  bool wide = reg_wide(b, o), want = is_wide(type);
  if (wide == want) return r;
  uint32_t t = tps_sim_temp(b, want);
  unsigned op = wide ? H_low_64 : is_signed(type) ? H_wide_s32 : H_wide_u32;
  tps_sim_emit3(b, op, t, r, 0, 0);
  return t;
}

static uint32_t negate(builder *b, uint32_t row, uint8_t type) {
  uint32_t t = tps_sim_temp(b, is_wide(type));
  unsigned op = type == TPS_PTX_F32   ? H_neg_f32
                : type == TPS_PTX_F64 ? H_neg_f64
                : is_wide(type)       ? H_neg_64
                                      : H_neg_32;
  tps_sim_emit3(b, op, t, row, 0, 0);
  return t;
}

static uint32_t source_var(builder *b, const ptx_opd *o, bool wide) {
  bool local;
  uint64_t at = tps_sim_address_of(b, o, &local);
  uint32_t c = tps_sim_constant(b, at, wide);
  if (tps_sim_var(b, o)->space == TPS_PTX_PARAM && !b->fn->entry)
    b->unsupported = true; /* parameters of functions have no address */
  if (!local || b->fn->entry) return c;
  uint32_t base = b->f->local_base, t = tps_sim_temp(b, wide);
  if (!wide) {
    uint32_t low = tps_sim_temp(b, false);
    tps_sim_emit3(b, H_low_64, low, base, 0, 0);
    base = low;
  }
  tps_sim_emit3(b, wide ? H_add_64 : H_add_32, t, base, c, 0);
  return t;
}

uint32_t tps_sim_source(builder *b, const ptx_opd *o, uint8_t type) {
  bool wide = is_wide(type);
  if (!is_plain(b, o, type)) return tps_sim_constant(b, 0, wide);
  switch (o->kind) {
  case TPS_PTX_OPD_REG: {
    uint32_t r = source_reg(b, o, type);
    return o->negated ? negate(b, r, type) : r;
  }
  case TPS_PTX_OPD_IMM: return tps_sim_constant(b, immediate(o, type), wide);
  case TPS_PTX_OPD_SREG: return special(b, o->index, wide);
  case TPS_PTX_OPD_VAR: return source_var(b, o, wide);
  case TPS_PTX_OPD_FUNC:
    return tps_sim_constant(
        b, TPS_SIM_CODE_BASE + 16 * (uint64_t)(uint32_t)o->index, wide);
  default: b->unsupported = true; return tps_sim_constant(b, 0, wide);
  }
}

uint32_t tps_sim_source_pred(builder *b, const ptx_opd *o) {
  if (o->kind == TPS_PTX_OPD_IMM) /* a constant predicate: a row of masks */
    return tps_sim_constant(b, o->value ? FULL : 0, false);
  if (o->kind == TPS_PTX_OPD_SREG && o->index == TPS_PTX_IS_EXPLICIT_CLUSTER)
    return fixed_sreg(b, o->index); /* likewise */
  if (!is_predicate(b, o)) return SINK_PRED_AT;
  uint32_t r = tps_sim_reg_row(b, o);
  if (!o->negated) return r;
  uint32_t t = tps_sim_temp_pred(b);
  tps_sim_emit3(b, H_not_pred, t, r, 0, 0);
  return t;
}

static void promise(builder *b, uint32_t from, uint32_t to, unsigned op) {
  if (b->pending_count < PENDING_MAX)
    b->pending[b->pending_count++] = (pending){from, to, (uint16_t)op};
}

uint32_t tps_sim_result(builder *b, const ptx_opd *o, uint8_t type) {
  if (o->kind != TPS_PTX_OPD_REG || !is_plain(b, o, type)) return SINK_AT;
  uint32_t r = tps_sim_reg_row(b, o);
  bool wide = reg_wide(b, o), have = is_wide(type);
  unsigned reg_bits = bits_of_type(b->regs[o->index].type);
  if (wide != have) {
    uint32_t t = tps_sim_temp(b, have);
    promise(b, t, r,
            have              ? H_low_64
            : is_signed(type) ? H_wide_s32
                              : H_wide_u32);
    return t;
  }
  /* a row of a 16-bit register has zeros above */
  if (reg_bits == 16 && (bits_of_type(type) > 16 || type == TPS_PTX_S8))
    promise(b, r, r, H_zext_16);
  return r;
}

uint32_t tps_sim_result_pred(builder *b, const ptx_opd *o) {
  if (o->kind != TPS_PTX_OPD_REG || !is_predicate(b, o)) return SINK_PRED_AT;
  return tps_sim_reg_row(b, o);
}

void tps_sim_finish(builder *b) {
  for (uint32_t k = 0; k < b->pending_count; k++) {
    pending p = b->pending[k];
    tps_sim_emit3(b, p.op, p.to, p.from, 0, 0);
  }
  b->pending_count = 0;
}

/* --- invariants ---------------------------------------------------------- */

bool tps_sim_alias(builder *b, const ptx_opd *o, uint32_t row, bool wide) {
  if (o->kind != TPS_PTX_OPD_REG || b->guard != NO_GUARD) return false;
  reg_info *r = &b->regs[o->index];
  if (r->defs != 1 || r->row != NO_OPERAND || !has_row(r->type)) return false;
  if (is_wide(r->type) != wide) return false;
  r->alias = row;
  return true;
}

bool tps_sim_invariant(builder *b, const ptx_opd *o, uint8_t type,
                       uint32_t *row) {
  if (o->kind == TPS_PTX_OPD_REG) {
    const reg_info *r = &b->regs[o->index];
    if (r->alias == NO_OPERAND || o->negated ||
        is_wide(r->type) != is_wide(type))
      return false;
    *row = r->alias;
    return true;
  }
  if (o->kind == TPS_PTX_OPD_SREG) {
    if (is_wide(type)) return false;
    *row = fixed_sreg(b, o->index);
    return *row != NO_OPERAND;
  }
  if (o->kind == TPS_PTX_OPD_VAR && tps_sim_var(b, o)->space == TPS_PTX_LOCAL &&
      !b->fn->entry)
    return false;
  if (o->kind != TPS_PTX_OPD_IMM && o->kind != TPS_PTX_OPD_VAR &&
      o->kind != TPS_PTX_OPD_FUNC)
    return false;
  *row = tps_sim_source(b, o, type);
  return true;
}

uint32_t tps_sim_param_row(builder *b, uint32_t offset, unsigned size,
                           bool sign, bool wide) {
  struct tps_sim_kernel *k = b->kernel;
  for (uint32_t n = 0; n < k->param_count; n++) {
    const launch_row *r = &k->params[n];
    if (r->offset == offset && r->size == size && r->sign == sign &&
        r->wide == wide)
      return r->row | IN_LAUNCH;
  }
  launch_row *p = tps_sim_grow(b, k->params, &b->param_capacity,
                               k->param_count + 1, sizeof *p);
  if (!p) return IN_LAUNCH;
  k->params = p;
  p[k->param_count++] =
      (launch_row){k->launch_bytes, offset, (uint8_t)size, sign, wide};
  uint32_t row = k->launch_bytes;
  k->launch_bytes += wide ? ROW64 : ROW32;
  return row | IN_LAUNCH;
}
