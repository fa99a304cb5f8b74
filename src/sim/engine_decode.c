/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of a kernel: the instructions of each function that it can reach.
 * Every kernel has its own copy of the functions, so that addresses of shared
 * variables are constants; it is made when the kernel is first asked for. When
 * a module is loaded each function is decoded once, to be dropped again: what
 * the engine lacks must be known by then.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine_decode.h"
#include "sim/engine_joins.h"

/* --- one instruction ----------------------------------------------------- */

static bool float_type(uint8_t t) {
  switch (t) {
  case TPS_PTX_F16:
  case TPS_PTX_F16X2:
  case TPS_PTX_BF16:
  case TPS_PTX_BF16X2:
  case TPS_PTX_F32:
  case TPS_PTX_F64: return true;
  default: return false;
  }
}

static bool float_or_integer(builder *b) {
  return float_type(type_at(b, 0)) ? tps_sim_decode_float(b)
                                   : tps_sim_decode_integer(b);
}

/* clang-format off */
static bool decode_control_or_other(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_ATOM:
  case TPS_PTX_OP_RED: return tps_sim_decode_atomic(b);
  case TPS_PTX_OP_LD: case TPS_PTX_OP_LDU: case TPS_PTX_OP_ST:
  case TPS_PTX_OP_CVTA: case TPS_PTX_OP_ISSPACEP: case TPS_PTX_OP_PREFETCH:
  case TPS_PTX_OP_PREFETCHU: case TPS_PTX_OP_DISCARD:
  case TPS_PTX_OP_APPLYPRIORITY: case TPS_PTX_OP_CREATEPOLICY:
    return tps_sim_decode_memory(b);
  case TPS_PTX_OP_MMA: case TPS_PTX_OP_WMMA: case TPS_PTX_OP_LDMATRIX:
  case TPS_PTX_OP_STMATRIX: case TPS_PTX_OP_MOVMATRIX:
    return tps_sim_decode_matrix(b);
  case TPS_PTX_OP_BAR: case TPS_PTX_OP_BARRIER: case TPS_PTX_OP_SHFL:
  case TPS_PTX_OP_VOTE: case TPS_PTX_OP_MATCH: case TPS_PTX_OP_REDUX:
  case TPS_PTX_OP_ELECT: case TPS_PTX_OP_ACTIVEMASK:
    return tps_sim_decode_exchange(b);
  case TPS_PTX_OP_CP: return tps_sim_decode_copy(b);
  case TPS_PTX_OP_MBARRIER: return tps_sim_decode_mbarrier(b);
  case TPS_PTX_OP_MAPA:
  case TPS_PTX_OP_GETCTARANK: return tps_sim_decode_cluster(b);
  case TPS_PTX_OP_TEX: case TPS_PTX_OP_TLD4: case TPS_PTX_OP_TXQ:
  case TPS_PTX_OP_SULD: case TPS_PTX_OP_SUST: case TPS_PTX_OP_SURED:
  case TPS_PTX_OP_SUQ:
    return tps_sim_decode_texture(b);
  default: return tps_sim_decode_control(b) || tps_sim_decode_video(b);
  }
}

static bool decode_one(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_ADD: case TPS_PTX_OP_SUB: case TPS_PTX_OP_MUL:
  case TPS_PTX_OP_MAD: case TPS_PTX_OP_DIV: case TPS_PTX_OP_MIN:
  case TPS_PTX_OP_MAX: case TPS_PTX_OP_ABS: case TPS_PTX_OP_NEG:
    return float_or_integer(b);
  case TPS_PTX_OP_FMA: case TPS_PTX_OP_RCP: case TPS_PTX_OP_SQRT:
  case TPS_PTX_OP_RSQRT: case TPS_PTX_OP_SIN: case TPS_PTX_OP_COS:
  case TPS_PTX_OP_EX2: case TPS_PTX_OP_LG2: case TPS_PTX_OP_TANH:
  case TPS_PTX_OP_COPYSIGN: case TPS_PTX_OP_TESTP:
    return tps_sim_decode_float(b);
  case TPS_PTX_OP_SETP: case TPS_PTX_OP_SET: case TPS_PTX_OP_SELP:
    return tps_sim_decode_compare(b);
  case TPS_PTX_OP_CVT: return tps_sim_decode_convert(b);
  case TPS_PTX_OP_MOV: return tps_sim_decode_move(b);
  case TPS_PTX_OP_ADDC: case TPS_PTX_OP_SUBC: case TPS_PTX_OP_MADC:
  case TPS_PTX_OP_REM: case TPS_PTX_OP_MUL24: case TPS_PTX_OP_MAD24:
  case TPS_PTX_OP_SAD: case TPS_PTX_OP_AND: case TPS_PTX_OP_OR:
  case TPS_PTX_OP_XOR: case TPS_PTX_OP_NOT: case TPS_PTX_OP_CNOT:
  case TPS_PTX_OP_SHL: case TPS_PTX_OP_SHR: case TPS_PTX_OP_SHF:
  case TPS_PTX_OP_POPC: case TPS_PTX_OP_CLZ: case TPS_PTX_OP_BREV:
  case TPS_PTX_OP_BFIND: case TPS_PTX_OP_BFE: case TPS_PTX_OP_BFI:
  case TPS_PTX_OP_FNS: case TPS_PTX_OP_BMSK: case TPS_PTX_OP_SZEXT:
  case TPS_PTX_OP_PRMT: case TPS_PTX_OP_LOP3: case TPS_PTX_OP_DP4A:
  case TPS_PTX_OP_DP2A: case TPS_PTX_OP_SLCT:
    return tps_sim_decode_integer(b);
  default: return decode_control_or_other(b);
  }
}
/* clang-format on */

static int refuse(builder *b) {
  char where[600];
  const ptx_insn *p = b->p;
  tps_ptx_where(b->module, p, where, sizeof where);
  if (b->needs > b->module->target)
    return tps_fail(b->err, TPS_INVALID_PTX,
                    "instruction '%.*s' needs target sm_%u, the module has "
                    "sm_%u (%s)",
                    p->text_size > 200 ? 200 : (int)p->text_size,
                    b->module->text + p->text, b->needs, b->module->target,
                    where);
  return tps_fail(b->err, TPS_NOT_SUPPORTED,
                  "instruction '%.*s' is not supported by the simulated device "
                  "(%s)",
                  p->text_size > 200 ? 200 : (int)p->text_size,
                  b->module->text + p->text, where);
}

/* Whether the instruction writes the register that guards it. */
static bool writes_guard(const builder *b, const ptx_opd *d) {
  if (d->kind == TPS_PTX_OPD_REG) return d->index == b->p->guard;
  for (unsigned k = 0; is_group(d) && k < d->count; k++)
    if (writes_guard(b, part_of(b, d, k))) return true;
  return false;
}

static void set_guard(builder *b) {
  b->guard = NO_GUARD;
  if (b->p->guard < 0) return;
  ptx_opd o = {
      .kind = TPS_PTX_OPD_REG, .index = b->p->guard, .type = TPS_PTX_PRED};
  uint32_t row = tps_sim_source_pred(b, &o);
  if (b->p->operand_count > 0 && writes_guard(b, opd(b, 0))) {
    uint32_t copy = tps_sim_temp_pred(b);
    tps_sim_emit3(b, H_mov_pred, copy, row, row, 0);
    row = copy;
  }
  b->guard = row | (b->p->guard_negated ? GUARD_NOT : 0);
}

static void decode_instruction(builder *b, uint32_t k) {
  b->p = &b->fn->instructions[k];
  b->at = (int32_t)k;
  b->guard = NO_GUARD;
  b->temps64 = b->temps32 = b->temps_pred = b->pending_count = 0;
  b->pcs[k] = b->insn_count;
  b->needs = 0;
  set_guard(b);
  bool known = decode_one(b);
  tps_sim_finish(b);
  if (!b->failed && (!known || b->unsupported)) b->failed = refuse(b);
}

/* --- a function ---------------------------------------------------------- */

static void count_def(builder *b, const ptx_opd *o) {
  if (o->kind == TPS_PTX_OPD_REG && b->regs[o->index].defs < 2)
    b->regs[o->index].defs++;
  for (unsigned k = 0; is_group(o) && k < o->count; k++)
    count_def(b, part_of(b, o, k));
}

static bool begin_registers(builder *b) {
  const tps_ptx_function *fn = b->fn;
  b->regs = malloc((fn->register_count + 1) * sizeof *b->regs);
  b->vars = calloc(fn->var_count + 1, sizeof *b->vars);
  b->pcs = malloc((fn->instruction_count + 1) * sizeof *b->pcs);
  b->tables = calloc(fn->table_count + 1, sizeof(branch_table *));
  if (!b->regs || !b->vars || !b->pcs || !b->tables) {
    tps_sim_no_memory(b);
    return false;
  }
  for (uint32_t k = 0; k < fn->register_count; k++)
    b->regs[k] = (reg_info){NO_OPERAND, NO_OPERAND, 0, fn->registers[k].type};
  for (uint32_t k = 0; k < fn->instruction_count; k++) {
    const ptx_insn *p = &fn->instructions[k];
    if (p->operand_count > 0) count_def(b, &p->operands[0]);
  }
  return true;
}

/* Rows for what the function takes and returns, and for its own calls.
 * Variables of calls may lie at one offset when they are never used together.
 */
static void place_params(builder *b) {
  const tps_ptx_function *fn = b->fn;
  bool words = true;
  for (uint32_t k = 0; k < fn->var_count; k++)
    if (fn->vars[k].role == TPS_PTX_CALL_PARAM && fn->vars[k].offset % 4)
      words = false;
  uint64_t calls = words ? (fn->call_bytes + 3) / 4 + 1 : fn->call_bytes + 4;
  uint32_t area = tps_sim_place(b, calls * ROW32);
  for (uint32_t k = 0; k < fn->var_count; k++) {
    const tps_ptx_var *v = &fn->vars[k];
    uint32_t count = (uint32_t)((v->size + 3) / 4);
    if (v->space != TPS_PTX_PARAM) continue;
    if (v->role == TPS_PTX_CALL_PARAM) {
      uint32_t at = (uint32_t)v->offset / (words ? 4 : 1);
      b->vars[k] = (param_rows){area + at * ROW32, count};
    } else if (!fn->entry) {
      b->vars[k] =
          (param_rows){tps_sim_place(b, count * (uint64_t)ROW32), count};
    }
  }
}

static bool keep_params(builder *b) {
  const tps_ptx_function *fn = b->fn;
  function *f = b->f;
  f->returns =
      malloc((fn->return_count + fn->input_count + 1) * sizeof *f->returns);
  if (!f->returns) {
    tps_sim_no_memory(b);
    return false;
  }
  f->inputs = f->returns + fn->return_count;
  memcpy(f->returns, b->vars,
         (fn->return_count + fn->input_count) * sizeof *f->returns);
  return true;
}

static bool takes_stack(const tps_ptx_function *fn) {
  for (uint32_t k = 0; k < fn->instruction_count; k++)
    switch (fn->instructions[k].op) {
    case TPS_PTX_OP_ALLOCA:
    case TPS_PTX_OP_STACKSAVE:
    case TPS_PTX_OP_STACKRESTORE: return true;
    default: break;
    }
  return false;
}

static void begin_frame(builder *b) {
  function *f = b->f;
  b->frame = ZEROED_AT;
  f->return_pc = tps_sim_place(b, ROW32);
  place_params(b);
  f->zeroed_at = b->frame;
  f->local_base = tps_sim_place(b, ROW64);
  f->carry = tps_sim_place(b, 64);
  if (takes_stack(b->fn)) f->taken = tps_sim_place(b, ROW64);
  for (int32_t k = 0; k < (int32_t)b->fn->register_count; k++) {
    ptx_opd o = {.kind = TPS_PTX_OPD_REG, .index = k};
    if (b->fn->unset[k]) tps_sim_reg_row(b, &o);
  }
  f->zeroed_end = b->frame;
  f->local_bytes = b->fn->local_bytes;
  f->stack_bytes = ((f->local_bytes + 15u) & ~15u) + 64;
}

/* Branches go to PTX instructions until here; then to the engine's, by number.
 */
static void resolve_branches(builder *b, uint32_t from) {
  for (uint32_t k = from; k < b->insn_count; k++) {
    insn *i = &b->insns[k];
    if (i->op == H_bra || i->op == H_cbra || i->op == H_cbra_not)
      i->imm = b->pcs[i->imm];
  }
  for (uint32_t k = 0; k < b->fn->table_count; k++) {
    branch_table *t = b->tables[k];
    for (uint32_t n = 0; t && n < t->count; n++)
      t->targets[n] = (const insn *)(uintptr_t)b->pcs[(uintptr_t)t->targets[n]];
  }
}

/* Every warp has a frame of each function that it is in, every thread its local
 * variables. */
static void check_frame(builder *b) {
  if (b->failed) return;
  if (b->fn->local_bytes > MOST_LOCAL)
    b->failed = tps_fail(b->err, TPS_INVALID_PTX,
                         "function '%s': %u bytes of local memory (%u are "
                         "allowed)",
                         b->fn->name, b->fn->local_bytes, MOST_LOCAL);
  if (b->frame <= MOST_FRAME || b->failed) return;
  b->failed =
      tps_fail(b->err, TPS_INVALID_PTX,
               "function '%s' needs %llu bytes a warp for its registers "
               "and parameters (the simulated device allows %u)",
               b->fn->name, (unsigned long long)b->frame, MOST_FRAME);
}

static void decode_function(builder *b, function *f) {
  uint32_t from = b->insn_count;
  b->f = f;
  b->fn = f->ptx;
  b->unsupported = false;
  b->texture_rows = 0;
  f->entry = (const insn *)(uintptr_t)from;
  if (begin_registers(b)) {
    begin_frame(b);
    if (keep_params(b))
      for (uint32_t k = 0; k < b->fn->instruction_count && !b->failed; k++)
        decode_instruction(b, k);
    b->pcs[b->fn->instruction_count] = b->insn_count;
  }
  check_frame(b);
  if (!b->failed) resolve_branches(b, from);
  f->end = (const insn *)(uintptr_t)b->insn_count;
  f->frame_bytes = ((uint32_t)b->frame + 63u) & ~63u;
  free(b->regs);
  free(b->vars);
  free(b->pcs);
  free(b->tables);
  b->regs = NULL, b->vars = NULL, b->pcs = NULL, b->tables = NULL;
}

/* --- settling: numbers become pointers ----------------------------------- */

static void settle_branch(struct tps_sim_kernel *k, insn *i) {
  i->target = k->insns + i->imm;
  if (i->target > i) return;
  i->op = i->op == H_bra    ? H_bra_back
          : i->op == H_cbra ? H_cbra_back
                            : H_cbra_not_back;
}

static void settle_insn(struct tps_sim_kernel *k, insn *i) {
  handler *const *table = k->code->table;
  if (i->op == H_bra || i->op == H_cbra || i->op == H_cbra_not)
    settle_branch(k, i);
  i->inner = i->fn = table[i->op];
  if (i->guard == NO_GUARD) return;
  i->fn = table[i->guard & GUARD_NOT ? H_guarded_not : H_guarded];
  i->guard &= ~GUARD_NOT;
}

static void settle(builder *b) {
  struct tps_sim_kernel *k = b->kernel;
  for (uint32_t n = 0; n < b->module->function_count; n++) {
    function *f = k->functions[n];
    if (!f) continue;
    f->entry = k->insns + (uintptr_t)f->entry;
    f->end = k->insns + (uintptr_t)f->end;
  }
  for (uint32_t n = 0; n < k->insn_count; n++) settle_insn(k, &k->insns[n]);
  for (branch_table *t = k->tables; t; t = t->next)
    for (uint32_t n = 0; n < t->count; n++)
      t->targets[n] = k->insns + (uintptr_t)t->targets[n];
  k->local_bytes = k->main->local_bytes;
}

static void *aligned_copy(builder *b, const void *from, size_t size) {
  void *p = aligned_alloc(64, (size + 127) & ~(size_t)63);
  if (!p) tps_sim_no_memory(b);
  else if (size) memcpy(p, from, size);
  return p;
}

/* --- a kernel ------------------------------------------------------------ */

static bool begin(builder *b, struct tps_sim_code *code, tps_error *err) {
  const tps_ptx_module *m = code->module;
  *b = (builder){.code = code, .module = m, .err = err};
  struct tps_sim_kernel *k = b->kernel = calloc(1, sizeof *k);
  if (k) {
    k->code = code;
    k->name = "";
    k->launch_bytes = LAUNCH_ROWS * ROW32;
    k->functions = calloc(m->function_count + 1, sizeof *k->functions);
  }
  b->queue = malloc((m->function_count + 1) * sizeof *b->queue);
  b->shared_at = malloc((m->var_count + 1) * sizeof *b->shared_at);
  b->local_shared = calloc(m->function_count + 1, sizeof *b->local_shared);
  if (k && k->functions && b->queue && b->shared_at && b->local_shared)
    return true;
  b->failed = tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  return false;
}

/* The kernel, or the error's code. */
static int end(builder *b, struct tps_sim_kernel **out) {
  for (uint32_t n = 0; b->local_shared && n < b->module->function_count; n++)
    free(b->local_shared[n]);
  free(b->local_shared);
  free(b->shared_at);
  free(b->queue);
  free(b->insns);
  free(b->constants);
  free(b->slots);
  if (b->failed) tps_sim_kernel_destroy(b->kernel);
  else *out = b->kernel;
  return b->failed;
}

static void decode_all(builder *b) {
  struct tps_sim_kernel *k = b->kernel;
  if (tps_sim_shared_limit(b)) return;
  decode_function(b, k->main);
  for (uint32_t n = 0; n < b->module->function_count && !b->failed; n++)
    if (k->functions[n] && k->functions[n] != k->main)
      decode_function(b, k->functions[n]);
}

static void drop_sides(struct tps_sim_kernel *k, insn *insns, uint32_t count);

static void finish_kernel(builder *b) {
  struct tps_sim_kernel *k = b->kernel;
  k->constants = aligned_copy(b, b->constants, b->constant_bytes);
  k->insns = aligned_copy(b, b->insns, b->insn_count * sizeof *b->insns);
  k->insn_count = k->insns ? b->insn_count : 0;
  if (!k->insns) drop_sides(k, b->insns, b->insn_count);
  if (!b->failed) settle(b);
}

int tps_sim_decode_kernel(struct tps_sim_code *code,
                          const tps_ptx_function *entry,
                          struct tps_sim_kernel **out, tps_error *err) {
  builder b;
  if (begin(&b, code, err)) {
    b.kernel->name = entry->name;
    b.kernel->ptx = entry;
    tps_sim_layout(&b, entry);
    if (!b.failed) decode_all(&b);
    finish_kernel(&b);
  }
  return end(&b, out);
}

/* --- a module ------------------------------------------------------------ */

/* Decodes a function to see whether the engine can, and drops the result. */
static void try_function(builder *b, function *f) {
  b->kernel->name = f->ptx->name;
  b->kernel->param_count = 0;
  decode_function(b, f);
  drop_sides(b->kernel, b->insns, b->insn_count);
  b->insn_count = 0;
}

/* Only where the shared variables of all together are too large need a kernel's
 * own be counted. */
static void check_shared(builder *all) {
  const tps_ptx_module *m = all->module;
  for (uint32_t k = 0; k < m->function_count && !all->failed; k++) {
    struct tps_sim_kernel *kernel = NULL;
    builder b;
    if (!m->functions[k].entry || m->functions[k].declared_only) continue;
    if (begin(&b, all->code, all->err)) {
      b.kernel->name = m->functions[k].name;
      tps_sim_layout(&b, &m->functions[k]);
      tps_sim_shared_limit(&b);
    }
    all->failed = end(&b, &kernel);
    tps_sim_kernel_destroy(kernel);
  }
}

int tps_sim_check_module(struct tps_sim_code *code, tps_error *err) {
  builder b;
  struct tps_sim_kernel *kernel = NULL;
  if (begin(&b, code, err)) {
    tps_sim_layout(&b, NULL);
    for (uint32_t k = 0; k < b.queued && !b.failed; k++)
      try_function(&b, b.kernel->functions[b.queue[k]]);
    if (!b.failed && b.shared_bytes > MOST_SHARED) check_shared(&b);
  }
  int status = end(&b, &kernel);
  tps_sim_kernel_destroy(kernel);
  return status;
}

/* --- ends ---------------------------------------------------------------- */

static bool has_side(unsigned op) {
  return op == H_call || op == H_call_indirect || op == H_vprintf ||
         op == H_assertfail || op == H_malloc || op == H_free || op == H_matrix;
}

/* What the instructions and the kernel own beside them. */
static void drop_sides(struct tps_sim_kernel *k, insn *insns, uint32_t count) {
  for (uint32_t n = 0; n < count; n++)
    if (has_side(insns[n].op)) free((void *)insns[n].side);
  while (k->tables) {
    branch_table *next = k->tables->next;
    free(k->tables);
    k->tables = next;
  }
}

void tps_sim_kernel_destroy(struct tps_sim_kernel *k) {
  if (!k) return;
  drop_sides(k, k->insns, k->insn_count);
  for (uint32_t n = 0; k->functions && n < k->code->module->function_count; n++)
    if (k->functions[n]) {
      free(k->functions[n]->returns);
      free(k->functions[n]);
    }
  free(k->functions);
  free(k->insns);
  free(k->constants);
  free(k->params);
  free(k->arrays);
  free(k->sites);
  tps_sim_joins_free(k->joins);
  free(k);
}
