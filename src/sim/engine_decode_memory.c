/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of loads, stores, atomics, address conversions. Parameters known
 * when a kernel is launched are rows, not loads; those of functions are rows
 * of the frame.
 */
#include "sim/engine_atomic.h"
#include "sim/engine_decode.h"

/* --- addresses ----------------------------------------------------------- */

typedef struct place {
  uint32_t row;
  int64_t offset;
  bool narrow; /* a row of 32-bit addresses */
} place;

static place address(builder *b, const ptx_opd *o, bool may_be_narrow) {
  place p = {0, o->value, false};
  if (o->base_kind == TPS_PTX_OPD_VAR) {
    ptx_opd base = *o;
    bool local;
    base.kind = TPS_PTX_OPD_VAR;
    p.offset = (int64_t)tps_sim_address_of(b, &base, &local);
    p.row = local ? b->f->local_base : tps_sim_constant(b, 0, true);
    return p;
  }
  if (o->base_kind == TPS_PTX_OPD_IMM) {
    p.row = tps_sim_constant(b, 0, true);
    return p;
  }
  ptx_opd base = *o;
  base.kind = TPS_PTX_OPD_REG;
  p.narrow = may_be_narrow && !is_wide(b->regs[o->index].type);
  p.row = tps_sim_source(b, &base, p.narrow ? TPS_PTX_U32 : TPS_PTX_U64);
  return p;
}

uint32_t tps_sim_address(builder *b, const ptx_opd *o, bool may_be_narrow,
                         int64_t *offset, bool *narrow) {
  place p = address(b, o, may_be_narrow);
  *offset = p.offset;
  *narrow = p.narrow;
  return p.row;
}

static uint32_t new_slot(builder *b) { return b->kernel->slots++; }

/* u8 s8 u16 s16 32 64, in the order of the handlers. */
static unsigned load_kind(uint8_t t) {
  switch (bits_of_type(t)) {
  case 8: return is_signed(t);
  case 16: return 2 + is_signed(t);
  case 32: return 4;
  default: return 5;
  }
}
static unsigned store_kind(uint8_t t) {
  switch (bits_of_type(t)) {
  case 8: return 0;
  case 16: return 1;
  case 32: return 2;
  default: return 3;
  }
}

/* 0 plain, else the flags of ld_any and st_any. */
static uint32_t ordering(const builder *b) {
  if (has(b, TPS_PTX_M_ACQUIRE) || has(b, TPS_PTX_M_RELEASE)) return 1024 | 512;
  bool loose = has(b, TPS_PTX_M_VOLATILE) || has(b, TPS_PTX_M_RELAXED) ||
               has(b, TPS_PTX_M_MMIO);
  return loose ? 1024 : 0;
}

static unsigned load_op(const builder *b, uint8_t t, bool vector, bool narrow) {
  unsigned first;
  if (b->p->space == TPS_PTX_SHARED)
    first = narrow ? (vector ? H_ldv_u8_shared32 : H_ld_u8_shared32)
                   : (vector ? H_ldv_u8_shared : H_ld_u8_shared);
  else first = vector ? H_ldv_u8_global : H_ld_u8_global;
  return first + load_kind(t);
}
static unsigned store_op(const builder *b, uint8_t t, bool vector,
                         bool narrow) {
  unsigned first;
  if (b->p->space == TPS_PTX_SHARED)
    first = narrow ? (vector ? H_stv_8_shared32 : H_st_8_shared32)
                   : (vector ? H_stv_8_shared : H_st_8_shared);
  else first = vector ? H_stv_8_global : H_st_8_global;
  return first + store_kind(t);
}

static bool by_lane(const builder *b) {
  return b->p->space == TPS_PTX_PARAM ||
         (ordering(b) && b->p->space != TPS_PTX_SHARED);
}

static void fill(builder *b, insn *i, place at, const uint32_t *rows,
                 unsigned n, uint8_t t) {
  i->d = rows[0];
  i->a = at.row;
  i->b = n > 1 ? rows[1] : 0;
  i->c = n > 2 ? rows[2] : 0;
  i->e = n > 3 ? rows[3] : 0;
  i->imm = at.offset;
  i->count = (uint8_t)n;
  i->space = b->p->space;
  i->slot = new_slot(b);
  i->f = tps_ptx_type_size((tps_ptx_type)t) | (is_signed(t) ? 256 : 0) |
         ordering(b);
}

static bool supported(uint8_t t, unsigned n) {
  unsigned bits = bits_of_type(t);
  return bits >= 8 && bits <= 64 && (n == 1 || n == 2 || n == 4 || n == 8) &&
         t != TPS_PTX_PRED;
}

static unsigned vector_of(const builder *b) {
  return b->p->vector ? b->p->vector : 1;
}
static const ptx_opd *element(const builder *b, const ptx_opd *o, unsigned k) {
  return is_group(o) ? part_of(b, o, k) : o;
}

/* --- parameters ---------------------------------------------------------- */

static bool small_reg(const builder *b, const ptx_opd *o) {
  return o->kind == TPS_PTX_OPD_REG &&
         bits_of_type(b->regs[o->index].type) == 16;
}

static void load_kernel_param(builder *b, const ptx_opd *to, uint32_t offset,
                              uint8_t t) {
  bool wide = is_wide(t);
  /* in a 16-bit register what is above 16 bits stays zero */
  bool sign = is_signed(t) && !(small_reg(b, to) && bits_of_type(t) == 16);
  uint32_t row = tps_sim_param_row(
      b, offset, tps_ptx_type_size((tps_ptx_type)t), sign, wide);
  bool cut = sign && small_reg(b, to);
  if (!cut && tps_sim_alias(b, to, row, wide)) return;
  tps_sim_emit3(b, wide ? H_mov_64 : H_mov_32, tps_sim_result(b, to, t), row, 0,
                0);
}

static uint32_t word_row(const param_rows *v, uint32_t offset) {
  return v->offset + offset / 4 * ROW32;
}

/* Whether `size` bytes at `value` lie, aligned, in `bytes` of parameters. */
static bool within(int64_t value, unsigned size, uint64_t bytes) {
  return value >= 0 && (uint64_t)value <= bytes &&
         bytes - (uint64_t)value >= size && value % size == 0;
}

static void load_function_param(builder *b, const param_rows *v,
                                const ptx_opd *to, uint32_t offset, uint8_t t,
                                bool input) {
  unsigned bits = bits_of_type(t);
  uint32_t row = word_row(v, offset);
  if (bits == 32) {
    if (input && tps_sim_alias(b, to, row, false)) return;
    tps_sim_emit3(b, H_mov_32, tps_sim_result(b, to, t), row, 0, 0);
    return;
  }
  if (bits == 64) {
    tps_sim_emit3(b, H_pack_32, tps_sim_result(b, to, t), row, row + ROW32, 0);
    return;
  }
  uint32_t d = tps_sim_result(b, to, t);
  insn *i = tps_sim_emit3(b, H_field, d, row, 0, 0);
  i->imm = 8 * (offset % 4), i->count = (uint8_t)bits;
  if (is_signed(t) && !(bits == 16 && small_reg(b, to)))
    tps_sim_emit3(b, bits == 8 ? H_sext_8 : H_sext_16, d, d, 0, 0);
}

static void store_function_param(builder *b, const param_rows *v,
                                 const ptx_opd *from, uint32_t offset,
                                 uint8_t t) {
  unsigned bits = bits_of_type(t);
  uint32_t row = word_row(v, offset), s = tps_sim_source(b, from, t);
  if (bits == 32) tps_sim_emit3(b, H_mov_32, row, s, 0, 0);
  else if (bits == 64) {
    tps_sim_emit3(b, H_low_64, row, s, 0, 0);
    tps_sim_emit3(b, H_high_64, row + ROW32, s, 0, 0);
  } else {
    insn *i = tps_sim_emit3(b, H_insert, row, s, 0, 0);
    i->imm = 8 * (offset % 4), i->count = (uint8_t)bits;
  }
}

/* The variable that a ld.param or st.param names; NULL where its address is a
 * number, or it is no parameter. */
static const tps_ptx_var *named_param(const builder *b, const ptx_opd *at) {
  if (at->base_kind != TPS_PTX_OPD_VAR || !at->local) return NULL;
  const tps_ptx_var *v = tps_sim_var(b, at);
  return v->space == TPS_PTX_PARAM ? v : NULL;
}

static bool load_param(builder *b, const ptx_opd *at, uint8_t t) {
  unsigned size = tps_ptx_type_size((tps_ptx_type)t), n = vector_of(b);
  const ptx_opd *d = opd(b, 0);
  const tps_ptx_var *v = named_param(b, at);
  if (v == NULL) return false;
  const param_rows *rows = &b->vars[at->index];
  bool input = v->role == TPS_PTX_INPUT_PARAM, kernel = b->fn->entry && input;
  uint64_t begin = kernel ? v->offset : 0;
  int64_t base = (int64_t)((uint64_t)at->value + begin);
  uint64_t bytes = kernel ? b->fn->input_bytes : rows->words * UINT64_C(4);
  if (!within(base, size, bytes) || !within(base + size * (n - 1), size, bytes))
    return false;
  for (unsigned k = 0; k < n; k++) {
    const ptx_opd *to = element(b, d, k);
    uint32_t offset = (uint32_t)base + k * size;
    if (to->kind != TPS_PTX_OPD_REG) continue;
    if (kernel) load_kernel_param(b, to, offset, t);
    else load_function_param(b, rows, to, offset, t, input);
  }
  return true;
}

static bool store_param(builder *b, const ptx_opd *at, uint8_t t) {
  unsigned size = tps_ptx_type_size((tps_ptx_type)t), n = vector_of(b);
  const tps_ptx_var *v = named_param(b, at);
  if (v == NULL || (b->fn->entry && v->role == TPS_PTX_INPUT_PARAM))
    return false;
  const param_rows *rows = &b->vars[at->index];
  uint64_t bytes = rows->words * UINT64_C(4);
  if (!within(at->value, size, bytes) ||
      !within(at->value + size * (n - 1), size, bytes))
    return false;
  for (unsigned k = 0; k < n; k++)
    store_function_param(b, rows, element(b, opd(b, 1), k),
                         (uint32_t)at->value + k * size, t);
  return true;
}

/* --- loads and stores ---------------------------------------------------- */

/* A load of at most four elements, from the k-th of the operand on. */
static void load_part(builder *b, place at, uint8_t t, unsigned first,
                      unsigned n) {
  uint32_t rows[4] = {0, 0, 0, 0};
  const ptx_opd *d = opd(b, 0);
  uint8_t as = t;
  if (t == TPS_PTX_S16 && small_reg(b, element(b, d, first))) as = TPS_PTX_U16;
  for (unsigned k = 0; k < n; k++)
    rows[k] = tps_sim_result(b, element(b, d, first + k), t);
  unsigned op = by_lane(b) ? (unsigned)H_ld_any
                : b->p->space == TPS_PTX_LOCAL
                    ? (unsigned)H_ld_local
                    : load_op(b, as, n > 1, at.narrow);
  uint32_t from, to;
  insn *i = tps_sim_emit(b, op);
  fill(b, i, at, rows, n, as);
  if (op == H_ld_any && n == 1 && ordering(b) &&
      tps_sim_only_spins(b, &from, &to))
    i->b = from, i->c = to, i->f |= 4096;
}

static void store_part(builder *b, place at, uint8_t t, unsigned first,
                       unsigned n) {
  uint32_t rows[4] = {0, 0, 0, 0};
  for (unsigned k = 0; k < n; k++)
    rows[k] = tps_sim_source(b, element(b, opd(b, 1), first + k), t);
  unsigned op = by_lane(b) ? (unsigned)H_st_any
                : b->p->space == TPS_PTX_LOCAL
                    ? (unsigned)H_st_local
                    : store_op(b, t, n > 1, at.narrow);
  insn *i = tps_sim_emit(b, op);
  fill(b, i, at, rows, n, t);
}

/* Some bytes may be part of a wider group that no handler takes at once; and a
 * result may overwrite the address before its second half is read. */
static place keep(builder *b, place at) {
  place p = at;
  p.row = tps_sim_temp(b, !at.narrow);
  tps_sim_emit3(b, at.narrow ? H_mov_32 : H_mov_64, p.row, at.row, 0, 0);
  return p;
}

static bool narrow_allowed(const builder *b) {
  return b->p->space == TPS_PTX_SHARED;
}

static bool load(builder *b) {
  uint8_t t = type_at(b, 0);
  unsigned n = vector_of(b);
  const ptx_opd *at = opd(b, 1);
  if (t == TPS_PTX_B128) return tps_sim_decode_wide_load(b);
  if (!supported(t, n)) return false;
  if (b->p->space == TPS_PTX_PARAM && at->base_kind == TPS_PTX_OPD_VAR)
    return load_param(b, at, t);
  if (b->p->space == TPS_PTX_PARAM && !b->fn->entry) return false;
  place p = address(b, at, narrow_allowed(b));
  if (n <= 4) {
    load_part(b, p, t, 0, n);
    return true;
  }
  p = keep(b, p);
  load_part(b, p, t, 0, 4);
  p.offset += 4 * tps_ptx_type_size((tps_ptx_type)t);
  load_part(b, p, t, 4, 4);
  return true;
}

static bool store(builder *b) {
  uint8_t t = type_at(b, 0);
  unsigned n = vector_of(b);
  const ptx_opd *at = opd(b, 0);
  bool async = has(b, TPS_PTX_M_ASYNC);
  if (t == TPS_PTX_B128) return tps_sim_decode_wide_store(b);
  if (!supported(t, n) || has(b, TPS_PTX_M_BULK) ||
      (async && (n > 4 || b->p->operand_count != 3)))
    return false;
  if (b->p->space == TPS_PTX_PARAM) return store_param(b, at, t);
  place p = address(b, at, narrow_allowed(b));
  store_part(b, p, t, 0, n > 4 ? 4 : n);
  if (async)
    return tps_sim_decode_complete_tx(b, opd(b, 2),
                                      n * tps_ptx_type_size((tps_ptx_type)t));
  if (n <= 4) return true;
  p.offset += 4 * tps_ptx_type_size((tps_ptx_type)t);
  store_part(b, p, t, 4, 4);
  return true;
}

/* --- addresses of one space in another ----------------------------------- */

static uint64_t window(uint8_t space) {
  switch (space) {
  case TPS_PTX_SHARED:
  case TPS_PTX_SHARED_CLUSTER: return TPS_SIM_SHARED_BASE;
  case TPS_PTX_LOCAL: return TPS_SIM_LOCAL_BASE;
  case TPS_PTX_PARAM: return TPS_SIM_PARAM_BASE;
  default: return 0;
  }
}

static bool convert_address(builder *b) {
  uint64_t base = window(b->p->space);
  uint32_t row;
  if (!is_wide(type_at(b, 0))) return false;
  if (base == 0 && tps_sim_invariant(b, opd(b, 1), TPS_PTX_U64, &row) &&
      tps_sim_alias(b, opd(b, 0), row, true))
    return true;
  uint32_t s = tps_sim_source(b, opd(b, 1), TPS_PTX_U64);
  uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_U64);
  unsigned op = base == 0              ? H_mov_64
                : has(b, TPS_PTX_M_TO) ? H_sub_64
                                       : H_add_64;
  tps_sim_emit3(b, op, d, s, tps_sim_constant(b, base, true), 0);
  return true;
}

static bool is_in_space(builder *b) {
  uint32_t s = tps_sim_source(b, opd(b, 1), TPS_PTX_U64);
  uint32_t d = tps_sim_result_pred(b, opd(b, 0));
  tps_sim_emit3(b, H_isspacep, d, s, 0, 0)->imm = b->p->space;
  return true;
}

bool tps_sim_decode_memory(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_LD:
  case TPS_PTX_OP_LDU: return load(b);
  case TPS_PTX_OP_ST: return store(b);
  case TPS_PTX_OP_CVTA: return convert_address(b);
  case TPS_PTX_OP_ISSPACEP: return is_in_space(b);
  case TPS_PTX_OP_CREATEPOLICY: {
    uint32_t zero = tps_sim_constant(b, 0, true);
    uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_B64);
    tps_sim_emit3(b, H_mov_64, d, zero, 0, 0);
    return true;
  }
  default: /* prefetch, prefetchu, discard, applypriority: hints */ return true;
  }
}

/* --- atomics ------------------------------------------------------------- */

static bool atomic_kind(const builder *b, uint32_t *kind) {
  static const struct {
    tps_ptx_mod mod;
    uint8_t kind;
  } table[] = {{TPS_PTX_M_ADD, ATOM_ADD},   {TPS_PTX_M_MIN, ATOM_MIN},
               {TPS_PTX_M_MAX, ATOM_MAX},   {TPS_PTX_M_AND, ATOM_AND},
               {TPS_PTX_M_OR, ATOM_OR},     {TPS_PTX_M_XOR, ATOM_XOR},
               {TPS_PTX_M_EXCH, ATOM_EXCH}, {TPS_PTX_M_CAS, ATOM_CAS},
               {TPS_PTX_M_INC, ATOM_INC},   {TPS_PTX_M_DEC, ATOM_DEC}};
  for (unsigned k = 0; k < sizeof table / sizeof *table; k++)
    if (has(b, table[k].mod)) {
      *kind = table[k].kind;
      return true;
    }
  return false;
}

static bool atomic_type(uint8_t t, uint32_t *type) {
  switch (t) {
  case TPS_PTX_B16:
  case TPS_PTX_B32:
  case TPS_PTX_U32: *type = ATOM_U32; break;
  case TPS_PTX_S32: *type = ATOM_S32; break;
  case TPS_PTX_B64:
  case TPS_PTX_U64: *type = ATOM_U64; break;
  case TPS_PTX_S64: *type = ATOM_S64; break;
  case TPS_PTX_F32: *type = ATOM_F32; break;
  case TPS_PTX_F64: *type = ATOM_F64; break;
  case TPS_PTX_F16: *type = ATOM_F16; break;
  case TPS_PTX_F16X2: *type = ATOM_F16X2; break;
  case TPS_PTX_BF16: *type = ATOM_BF16; break;
  case TPS_PTX_BF16X2: *type = ATOM_BF16X2; break;
  default: return false;
  }
  return true;
}

bool tps_sim_decode_atomic(builder *b) {
  bool red = b->p->op == TPS_PTX_OP_RED;
  uint8_t t = type_at(b, 0);
  uint32_t kind, type;
  bool async = has(b, TPS_PTX_M_ASYNC);
  if (t == TPS_PTX_B128) return tps_sim_decode_wide_atomic(b);
  if (vector_of(b) > 1 || !atomic_kind(b, &kind) || !atomic_type(t, &type) ||
      (async && b->p->operand_count != 3))
    return false;
  unsigned k = red ? 0 : 1;
  place at = address(b, opd(b, k), false);
  uint32_t x = tps_sim_source(b, opd(b, k + 1), t), y = NO_OPERAND;
  if (kind == ATOM_CAS) y = tps_sim_source(b, opd(b, k + 2), t);
  uint32_t d = red || opd(b, 0)->kind == TPS_PTX_OPD_SINK
                   ? NO_OPERAND
                   : tps_sim_result(b, opd(b, 0), t);
  bool quick = b->p->space == TPS_PTX_SHARED && kind != ATOM_CAS &&
               (type == ATOM_U32 || type == ATOM_S32 || type == ATOM_F32) &&
               bits_of_type(t) == 32;
  insn *i = tps_sim_emit3(b, quick ? H_atom_shared : H_atom, d, at.row, x, y);
  i->imm = at.offset;
  i->space = b->p->space;
  i->slot = new_slot(b);
  i->f = kind | type << 8;
  i->count = (uint8_t)tps_ptx_type_size((tps_ptx_type)t);
  if (async) return tps_sim_decode_complete_tx(b, opd(b, 2), i->count);
  return true;
}
