/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of branches, calls, ends and pauses, barriers, and what the lanes
 * of a warp exchange.
 */
#include <stdlib.h>

#include "sim/engine_decode.h"

/* --- branches ------------------------------------------------------------ */

/* The guard is the condition, not a guard. Targets are PTX instructions until
 * the function is complete. */
static bool branch(builder *b) {
  uint32_t guard = b->guard;
  b->guard = NO_GUARD;
  unsigned op = guard == NO_GUARD   ? H_bra
                : guard & GUARD_NOT ? H_cbra_not
                                    : H_cbra;
  insn *i = tps_sim_emit(b, op);
  i->a = guard & ~GUARD_NOT;
  i->imm = opd(b, 0)->index;
  b->guard = guard;
  return true;
}

/* The function's table, once for all branches that go by it. */
static branch_table *targets(builder *b, int32_t index) {
  const tps_ptx_table *t = &b->fn->tables[index];
  branch_table *table = b->tables[index];
  if (table) return table;
  table = malloc(sizeof *table + t->target_count * sizeof *table->targets);
  if (!table) {
    tps_sim_no_memory(b);
    return NULL;
  }
  table->count = t->target_count;
  for (uint32_t k = 0; k < t->target_count; k++)
    table->targets[k] = (const insn *)(uintptr_t)(uint32_t)t->targets[k];
  table->next = b->kernel->tables;
  return b->tables[index] = b->kernel->tables = table;
}

static bool indexed_branch(builder *b) {
  const branch_table *table = targets(b, opd(b, 1)->index);
  uint32_t index = tps_sim_source(b, opd(b, 0), TPS_PTX_U32);
  insn *i = tps_sim_emit(b, H_brx);
  i->a = index;
  i->side = table;
  return true;
}

/* --- calls --------------------------------------------------------------- */

static call_site *new_site(builder *b, const ptx_opd *results,
                           const ptx_opd *arguments) {
  uint32_t r = results->count, a = arguments->count;
  call_site *s = malloc(sizeof *s + (r + a) * sizeof(param_rows));
  if (!s) {
    tps_sim_no_memory(b);
    return NULL;
  }
  s->callee = NULL;
  s->argument_count = a;
  s->result_count = r;
  s->arguments = (param_rows *)(void *)(s + 1);
  s->results = s->arguments + a;
  for (uint32_t k = 0; k < a; k++)
    s->arguments[k] = b->vars[part_of(b, arguments, k)->index];
  for (uint32_t k = 0; k < r; k++)
    s->results[k] = b->vars[part_of(b, results, k)->index];
  return s;
}

/* A function without a body that the device has, or 0. */
static unsigned library_function(const char *name, uint32_t arguments) {
  if (!strcmp(name, "vprintf") && arguments == 2) return H_vprintf;
  if (!strcmp(name, "__assertfail") && arguments >= 4) return H_assertfail;
  if (!strcmp(name, "malloc") && arguments == 1) return H_malloc;
  if (!strcmp(name, "free") && arguments == 1) return H_free;
  return 0;
}

/* Functions by which a kernel launches another, and their kin. */
static bool of_device_runtime(const char *name) {
  return !strncmp(name, "cuda", 4) || !strncmp(name, "__cudaCDP", 9);
}

static void refuse_function(builder *b, const char *name) {
  char where[600];
  if (!of_device_runtime(name)) {
    b->failed = tps_fail(b->err, TPS_INVALID_PTX,
                         "function '%s' is called but not defined", name);
    return;
  }
  tps_ptx_where(b->module, b->p, where, sizeof where);
  b->failed = tps_fail(b->err, TPS_NOT_SUPPORTED,
                       "function '%.200s' of the device's runtime is not "
                       "supported by the simulated device (%s)",
                       name, where);
}

static bool call(builder *b) {
  call_site *site = new_site(b, opd(b, 0), opd(b, 2));
  const ptx_opd *target = opd(b, 1);
  if (!site) return true;
  unsigned op = H_call_indirect;
  uint32_t row = 0;
  if (target->kind == TPS_PTX_OPD_FUNC) {
    const tps_ptx_function *f = &b->module->functions[target->index];
    op = H_call;
    if (f->declared_only) op = library_function(f->name, site->argument_count);
    if (op == 0 && b->code->unlinked && !of_device_runtime(f->name))
      op = H_call_indirect; /* of whatever another module has */
    if (op == 0) {
      free(site);
      refuse_function(b, f->name);
      return true;
    }
    site->callee = b->kernel->functions[target->index];
  } else {
    row = tps_sim_source(b, target, TPS_PTX_U64);
  }
  insn *i = tps_sim_emit(b, op);
  i->a = row;
  i->side = site;
  return true;
}

/* --- barriers ------------------------------------------------------------ */

static bool warp_barrier(builder *b) {
  uint32_t members = tps_sim_source(b, opd(b, 0), TPS_PTX_U32);
  tps_sim_emit(b, H_warp_sync)->f = members;
  return true;
}

static bool barrier_of_block(builder *b) {
  bool red = has(b, TPS_PTX_M_RED);
  unsigned k = red ? 1 : 0, count = b->p->operand_count - k - red;
  uint32_t p = 0, d = NO_OPERAND, n = NO_OPERAND;
  int64_t kind = has(b, TPS_PTX_M_ARRIVE) ? 1 : 0;
  if (red) {
    kind = has(b, TPS_PTX_M_POPC) ? 2 : has(b, TPS_PTX_M_AND) ? 3 : 4;
    p = tps_sim_source_pred(b, opd(b, b->p->operand_count - 1u));
    d = kind == 2 ? tps_sim_result(b, opd(b, 0), TPS_PTX_U32)
                  : tps_sim_result_pred(b, opd(b, 0));
  }
  if (b->p->op == TPS_PTX_OP_BAR || has(b, TPS_PTX_M_ALIGNED)) kind |= 8;
  uint32_t id = tps_sim_source(b, opd(b, k), TPS_PTX_U32);
  if (count > 1) n = tps_sim_source(b, opd(b, k + 1), TPS_PTX_U32);
  tps_sim_emit3(b, H_barrier, d, id, n, p)->imm = kind;
  return true;
}

static bool any_barrier(builder *b) {
  if (has(b, TPS_PTX_M_WARP)) return warp_barrier(b);
  if (has(b, TPS_PTX_M_CLUSTER)) return tps_sim_decode_cluster(b);
  return barrier_of_block(b);
}

/* --- exchange ------------------------------------------------------------ */

/* d, or d|p: rows of the results. */
static void results(builder *b, uint8_t t, uint32_t *d, uint32_t *p) {
  const ptx_opd *o = opd(b, 0);
  bool pair = o->kind == TPS_PTX_OPD_PAIR;
  const ptx_opd *first = pair ? part_of(b, o, 0) : o;
  *d = t == TPS_PTX_PRED ? tps_sim_result_pred(b, first)
                         : tps_sim_result(b, first, t);
  *p = pair ? tps_sim_result_pred(b, part_of(b, o, 1)) : NO_OPERAND;
}

static bool shuffle(builder *b) {
  uint32_t x = tps_sim_source(b, opd(b, 1), TPS_PTX_B32);
  uint32_t y = tps_sim_source(b, opd(b, 2), TPS_PTX_B32);
  uint32_t c = tps_sim_source(b, opd(b, 3), TPS_PTX_B32);
  uint32_t members = NO_OPERAND, d, p;
  if (b->p->operand_count > 4)
    members = tps_sim_source(b, opd(b, 4), TPS_PTX_B32);
  results(b, TPS_PTX_B32, &d, &p);
  insn *i = tps_sim_emit3(b, H_shfl, d, x, y, c);
  i->e = p, i->f = members;
  i->imm = has(b, TPS_PTX_M_UP)     ? 1
           : has(b, TPS_PTX_M_DOWN) ? 2
           : has(b, TPS_PTX_M_BFLY) ? 3
                                    : 0;
  return true;
}

static bool vote(builder *b) {
  int64_t mode = has(b, TPS_PTX_M_BALLOT) ? 3
                 : has(b, TPS_PTX_M_UNI)  ? 2
                 : has(b, TPS_PTX_M_ANY)  ? 1
                                          : 0;
  uint32_t x = tps_sim_source_pred(b, opd(b, 1)), members = NO_OPERAND, d, p;
  if (b->p->operand_count > 2)
    members = tps_sim_source(b, opd(b, 2), TPS_PTX_B32);
  results(b, mode == 3 ? TPS_PTX_B32 : TPS_PTX_PRED, &d, &p);
  insn *i = tps_sim_emit3(b, H_vote, d, x, 0, 0);
  i->imm = mode, i->f = members;
  return true;
}

static bool match(builder *b) {
  uint8_t t = type_at(b, 0);
  uint32_t x = tps_sim_source(b, opd(b, 1), t), d, p;
  uint32_t members = tps_sim_source(b, opd(b, 2), TPS_PTX_B32);
  results(b, TPS_PTX_B32, &d, &p);
  insn *i = tps_sim_emit3(b, H_match, d, x, 0, 0);
  i->imm = has(b, TPS_PTX_M_ALL) | is_wide(t) << 1;
  i->e = p, i->f = members;
  return true;
}

static bool reduce(builder *b) {
  static const tps_ptx_mod modes[] = {TPS_PTX_M_ADD, TPS_PTX_M_MIN,
                                      TPS_PTX_M_MAX, TPS_PTX_M_AND,
                                      TPS_PTX_M_OR,  TPS_PTX_M_XOR};
  uint8_t t = type_at(b, 0);
  if (t == TPS_PTX_F32 || bits_of_type(t) != 32) return false;
  uint32_t x = tps_sim_source(b, opd(b, 1), t), d, p;
  uint32_t members = tps_sim_source(b, opd(b, 2), TPS_PTX_B32);
  results(b, TPS_PTX_B32, &d, &p);
  insn *i = tps_sim_emit3(b, H_redux, d, x, 0, 0);
  for (unsigned k = 0; k < 6; k++)
    if (has(b, modes[k])) i->imm = k | is_signed(t) << 3;
  i->f = members;
  return true;
}

static bool elect(builder *b) {
  uint32_t members = tps_sim_source(b, opd(b, 1), TPS_PTX_B32), d, p;
  results(b, TPS_PTX_B32, &d, &p);
  insn *i = tps_sim_emit(b, H_elect);
  i->d = d, i->e = p, i->f = members;
  return true;
}

bool tps_sim_decode_exchange(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_BAR:
  case TPS_PTX_OP_BARRIER: return any_barrier(b);
  case TPS_PTX_OP_SHFL: return shuffle(b);
  case TPS_PTX_OP_VOTE: return vote(b);
  case TPS_PTX_OP_MATCH: return match(b);
  case TPS_PTX_OP_REDUX: return reduce(b);
  case TPS_PTX_OP_ELECT: return elect(b);
  default: /* activemask */
    tps_sim_emit3(b, H_activemask, tps_sim_result(b, opd(b, 0), TPS_PTX_B32), 0,
                  0, 0);
    return true;
  }
}

/* --- ends, pauses, hints ------------------------------------------------- */

/* --- the stack ----------------------------------------------------------- */

static bool is_stack_type(const builder *b) {
  uint8_t t = type_at(b, 0);
  return bits_of_type(t) == 64 || bits_of_type(t) == 32;
}

static bool take_stack(builder *b) {
  const ptx_opd *align = opd(b, 2);
  bool given = b->p->operand_count > 2;
  if (!is_stack_type(b)) return false;
  if (given && (align->kind != TPS_PTX_OPD_IMM || align->value < 1 ||
                align->value > 1 << 23 || align->value & (align->value - 1)))
    return false;
  uint32_t size = tps_sim_source(b, opd(b, 1), TPS_PTX_U64);
  uint32_t d = tps_sim_result(b, opd(b, 0), TPS_PTX_U64);
  insn *i = tps_sim_emit3(b, H_alloca, d, size, 0, 0);
  i->f = given && align->value > 8 ? (uint32_t)align->value : 8;
  return true;
}

static bool save_stack(builder *b) {
  if (!is_stack_type(b)) return false;
  tps_sim_emit3(b, H_stacksave, tps_sim_result(b, opd(b, 0), TPS_PTX_U64), 0, 0,
                0);
  return true;
}

static bool restore_stack(builder *b) {
  if (!is_stack_type(b)) return false;
  uint32_t to = tps_sim_source(b, opd(b, 0), TPS_PTX_U64);
  tps_sim_emit3(b, H_stackrestore, 0, to, 0, 0);
  return true;
}

bool tps_sim_decode_control(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_BRA: return branch(b);
  case TPS_PTX_OP_BRX: return indexed_branch(b);
  case TPS_PTX_OP_CALL: return call(b);
  case TPS_PTX_OP_RET: tps_sim_emit(b, H_ret); return true;
  case TPS_PTX_OP_EXIT: tps_sim_emit(b, H_exit); return true;
  case TPS_PTX_OP_TRAP: tps_sim_emit(b, H_trap); return true;
  case TPS_PTX_OP_BRKPT: tps_sim_emit(b, H_brkpt); return true;
  case TPS_PTX_OP_ALLOCA: return take_stack(b);
  case TPS_PTX_OP_STACKSAVE: return save_stack(b);
  case TPS_PTX_OP_STACKRESTORE: return restore_stack(b);
  case TPS_PTX_OP_NANOSLEEP: tps_sim_emit(b, H_nanosleep); return true;
  case TPS_PTX_OP_FENCE:
  case TPS_PTX_OP_MEMBAR: tps_sim_emit(b, H_fence); return true;
  case TPS_PTX_OP_PMEVENT:
  case TPS_PTX_OP_SETMAXNREG:
  case TPS_PTX_OP_GRIDDEPCONTROL: return true;
  default: return false;
  }
}
