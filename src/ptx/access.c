/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which parameters are read and written through. Every register and every
 * .param variable carries the set of inputs that its value is made of; whatever
 * is computed from a pointer is taken for a pointer into the same memory, so
 * that masking its low bits does not lose it. An address tells on the inputs it
 * is made of; a pointer that goes to memory or to unknown code is lost:
 * UNKNOWN. Control flow is ignored: passes over the instructions until nothing
 * changes, and over the functions until no summary does.
 */
#include "ptx/access.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/uses.h"
#include "ptx/words.h"

enum { MOST_INPUTS = 256, MOST_PASSES = 100, MOST_ROUNDS = 50 };
enum {
  PLAIN_READ = TPS_ACCESS_READ | TPS_PTX_PLAIN,
  PLAIN_WRITE = TPS_ACCESS_WRITE | TPS_PTX_PLAIN,
  PLAIN_BOTH = TPS_ACCESS_BOTH | TPS_PTX_PLAIN,
  IS_TEXTURE = TPS_HANDLE_TEXTURE << TPS_PTX_HANDLE_SHIFT,
  IS_SURFACE = TPS_HANDLE_SURFACE << TPS_PTX_HANDLE_SHIFT
};

typedef struct summary {
  const tps_ptx_function *f;
  uint8_t *inputs;   /* as in tps_ptx_access */
  uint64_t *returns; /* a set of inputs for each return parameter */
  uint32_t words;    /* of a set */
} summary;

typedef struct state {
  const tps_ptx_module *module;
  summary *all;
  summary *own;
  const tps_ptx_function *f;
  uint64_t *registers, *vars; /* a set each */
  uint64_t *deep;             /* inputs whose own address was taken */
  uint64_t *set;              /* of the sources of an instruction */
  uint32_t words;
  bool changed;
} state;

/* --- sets */

static uint64_t *register_set(state *s, int32_t reg) {
  return s->registers + (size_t)reg * s->words;
}

static uint64_t *var_set(state *s, int32_t var) {
  return s->vars + (size_t)var * s->words;
}

static void add(state *s, uint64_t *to, const uint64_t *from) {
  for (uint32_t i = 0; i < s->words; i++) {
    s->changed |= (from[i] & ~to[i]) != 0;
    to[i] |= from[i];
  }
}

static bool has(const uint64_t *set, uint32_t bit) {
  return set[bit / 64] >> bit % 64 & 1;
}

static void mark(state *s, const uint64_t *set, uint8_t access) {
  for (uint32_t i = 0; i < s->words; i++)
    for (uint64_t rest = set[i]; rest != 0; rest &= rest - 1) {
      uint8_t *to = &s->own->inputs[i * 64 + (uint32_t)__builtin_ctzll(rest)];
      s->changed |= (access & ~*to) != 0;
      *to |= access;
    }
}

static void join_register(void *context, int32_t reg) {
  state *s = context;
  const uint64_t *from = register_set(s, reg);
  for (uint32_t i = 0; i < s->words; i++) s->set[i] |= from[i];
}

static void join_var(state *s, const tps_ptx_operand *o) {
  if (!o->local) return;
  const uint64_t *from = var_set(s, o->index);
  for (uint32_t i = 0; i < s->words; i++) s->set[i] |= from[i];
}

static void clear(state *s) { memset(s->set, 0, s->words * sizeof *s->set); }

static void give_register(void *context, int32_t reg) {
  state *s = context;
  if (s->f->registers[reg].type != TPS_PTX_PRED)
    add(s, register_set(s, reg), s->set);
}

/* The set goes to what the instruction writes. */
static void give(state *s, const tps_ptx_instruction *i) {
  tps_ptx_each_definition(s->f, i, give_register, s);
}

/* --- operands */

static bool is_param_var(const state *s, const tps_ptx_operand *o) {
  return o->local && s->f->vars[o->index].space == TPS_PTX_PARAM;
}

/* Registers of a value, or of a group of values, into the set. */
static void join_value(state *s, const tps_ptx_operand *o) {
  switch (o->kind) {
  case TPS_PTX_OPD_REG: join_register(s, o->index); return;
  case TPS_PTX_OPD_VAR:
    if (is_param_var(s, o)) join_var(s, o);
    return;
  case TPS_PTX_OPD_VEC:
  case TPS_PTX_OPD_PAIR:
    for (int k = 0; k < o->count; k++)
      join_value(s, &s->f->parts[o->first + k]);
    return;
  default: return;
  }
}

static void mark_value(state *s, const tps_ptx_operand *o, uint8_t access) {
  clear(s);
  join_value(s, o);
  mark(s, s->set, access);
}

static void mark_address(state *s, const tps_ptx_operand *o, uint8_t access) {
  if (o->kind != TPS_PTX_OPD_ADDR || o->base_kind != TPS_PTX_OPD_REG) return;
  mark(s, register_set(s, o->index), access);
}

/* All operands in brackets. */
static void mark_addresses(state *s, const tps_ptx_instruction *i,
                           uint8_t access) {
  for (unsigned k = 0; k < i->operand_count; k++)
    mark_address(s, &i->operands[k], access);
}

/* Values that the instruction puts into memory are lost. */
static void lose_values(state *s, const tps_ptx_instruction *i,
                        unsigned first) {
  for (unsigned k = first; k < i->operand_count; k++)
    mark_value(s, &i->operands[k], TPS_ACCESS_UNKNOWN);
}

/* --- memory */

/* TPS_PTX_PLAIN, or 0 of a load or store that is volatile or atomic. */
static uint8_t plainness(const tps_ptx_instruction *i) {
  bool strong =
      tps_ptx_has(i, TPS_PTX_M_VOLATILE) || tps_ptx_has(i, TPS_PTX_M_RELAXED) ||
      tps_ptx_has(i, TPS_PTX_M_ACQUIRE) || tps_ptx_has(i, TPS_PTX_M_RELEASE) ||
      tps_ptx_has(i, TPS_PTX_M_MMIO);
  return strong ? 0 : TPS_PTX_PLAIN;
}

static void load(state *s, const tps_ptx_instruction *i) {
  const tps_ptx_operand *address = &i->operands[1];
  clear(s);
  if (address->base_kind == TPS_PTX_OPD_VAR) {
    if (is_param_var(s, address)) join_var(s, address);
  } else if (address->base_kind == TPS_PTX_OPD_REG) {
    const uint64_t *base = register_set(s, address->index);
    if (i->space != TPS_PTX_PARAM)
      mark(s, base, TPS_ACCESS_READ | plainness(i));
    for (uint32_t k = 0; k < s->words; k++) s->set[k] = base[k] & s->deep[k];
  }
  give(s, i);
}

static void store(state *s, const tps_ptx_instruction *i) {
  const tps_ptx_operand *address = &i->operands[0];
  if (address->base_kind == TPS_PTX_OPD_VAR && is_param_var(s, address)) {
    clear(s);
    join_value(s, &i->operands[1]);
    add(s, var_set(s, address->index), s->set);
    return;
  }
  mark_address(s, address, TPS_ACCESS_WRITE | plainness(i));
  lose_values(s, i, 1);
}

static void copy(state *s, const tps_ptx_instruction *i) {
  bool prefetch = tps_ptx_has(i, TPS_PTX_M_PREFETCH);
  uint8_t first = tps_ptx_has(i, TPS_PTX_M_REDUCE) ? PLAIN_BOTH
                  : prefetch                       ? PLAIN_READ
                                                   : PLAIN_WRITE;
  unsigned seen = 0;
  for (unsigned k = 0; k < i->operand_count; k++) {
    if (i->operands[k].kind != TPS_PTX_OPD_ADDR) continue;
    uint8_t access = seen == 0 ? first : seen == 1 ? PLAIN_READ : PLAIN_BOTH;
    mark_address(s, &i->operands[k], access);
    seen++;
  }
}

static void matrix(state *s, const tps_ptx_instruction *i) {
  if (tps_ptx_has(i, TPS_PTX_M_LOAD)) mark_addresses(s, i, PLAIN_READ);
  else if (tps_ptx_has(i, TPS_PTX_M_STORE)) mark_addresses(s, i, PLAIN_WRITE);
}

/* --- calls */

static const tps_ptx_operand *list_item(const state *s,
                                        const tps_ptx_operand *list, int k) {
  return &s->f->parts[list->first + k];
}

static void lose_arguments(state *s, const tps_ptx_operand *arguments) {
  for (int k = 0; k < arguments->count; k++)
    mark_value(s, list_item(s, arguments, k), TPS_ACCESS_UNKNOWN);
}

static void call(state *s, const tps_ptx_instruction *i) {
  const tps_ptx_operand *results = &i->operands[0], *target = &i->operands[1];
  const tps_ptx_operand *arguments = &i->operands[2];
  const summary *callee =
      target->kind == TPS_PTX_OPD_FUNC ? &s->all[target->index] : NULL;
  if (callee == NULL || callee->f->declared_only) {
    lose_arguments(s, arguments);
    return;
  }
  for (int k = 0; k < arguments->count; k++) {
    const tps_ptx_operand *argument = list_item(s, arguments, k);
    mark_value(s, argument, callee->inputs[k]);
    if (k >= MOST_INPUTS) continue;
    for (int j = 0; j < results->count; j++) {
      if (!has(callee->returns + (size_t)j * callee->words, (uint32_t)k))
        continue;
      clear(s);
      join_value(s, argument);
      add(s, var_set(s, list_item(s, results, j)->index), s->set);
    }
  }
}

/* --- everything else */

static void note_addresses_taken(state *s, const tps_ptx_instruction *i) {
  for (unsigned k = 1; k < i->operand_count; k++) {
    const tps_ptx_operand *o = &i->operands[k];
    if (o->kind != TPS_PTX_OPD_VAR || !is_param_var(s, o)) continue;
    join_var(s, o);
    if (s->f->vars[o->index].role == TPS_PTX_INPUT_PARAM)
      add(s, s->deep, var_set(s, o->index));
  }
}

static void compute(state *s, const tps_ptx_instruction *i) {
  clear(s);
  tps_ptx_each_use(s->f, i, join_register, s);
  note_addresses_taken(s, i);
  give(s, i);
}

/* clang-format off */
static void step(state *s, const tps_ptx_instruction *i) {
  switch (i->op) {
  case TPS_PTX_OP_LD: case TPS_PTX_OP_LDU: load(s, i); return;
  case TPS_PTX_OP_ST: store(s, i); return;
  case TPS_PTX_OP_ATOM:
    mark_addresses(s, i, TPS_ACCESS_BOTH);
    lose_values(s, i, 2);
    return;
  case TPS_PTX_OP_RED:
    mark_addresses(s, i, TPS_ACCESS_BOTH);
    lose_values(s, i, 1);
    return;
  case TPS_PTX_OP_CALL: call(s, i); return;
  case TPS_PTX_OP_CP: copy(s, i); return;
  case TPS_PTX_OP_WMMA: matrix(s, i); return;
  case TPS_PTX_OP_LDMATRIX:
    mark_addresses(s, i, PLAIN_READ);
    return;
  case TPS_PTX_OP_STMATRIX: case TPS_PTX_OP_DISCARD:
    mark_addresses(s, i, PLAIN_WRITE);
    return;
  case TPS_PTX_OP_MBARRIER:
    mark_addresses(s, i, TPS_ACCESS_BOTH);
    return;
  case TPS_PTX_OP_TEX: case TPS_PTX_OP_TLD4:
    mark_addresses(s, i, PLAIN_READ | IS_TEXTURE);
    return;
  case TPS_PTX_OP_SULD:
    mark_addresses(s, i, PLAIN_READ | IS_SURFACE);
    return;
  case TPS_PTX_OP_SUST:
    mark_addresses(s, i, PLAIN_WRITE | IS_SURFACE);
    return;
  case TPS_PTX_OP_SURED:
    mark_addresses(s, i, PLAIN_BOTH | IS_SURFACE);
    return;
  case TPS_PTX_OP_TXQ: mark_addresses(s, i, IS_TEXTURE); return;
  case TPS_PTX_OP_SUQ: mark_addresses(s, i, IS_SURFACE); return;
  case TPS_PTX_OP_PREFETCH: case TPS_PTX_OP_PREFETCHU:
  case TPS_PTX_OP_APPLYPRIORITY:
    return;
  case TPS_PTX_OP_MULTIMEM: case TPS_PTX_OP_TENSORMAP:
  case TPS_PTX_OP_TCGEN05: case TPS_PTX_OP_CLUSTERLAUNCHCONTROL:
    mark_addresses(s, i, TPS_ACCESS_UNKNOWN);
    lose_values(s, i, 0);
    return;
  default: compute(s, i); return;
  }
}
/* clang-format on */

/* --- one function */

/* Floats and scalars too small for an address are no pointers. */
static bool may_point(const state *s, const tps_ptx_var *var) {
  if (var->count == 1 && tps_ptx_type_is_float(var->type)) return false;
  return var->unsized || var->size >= s->module->address_size / 8;
}

static void seed(state *s) {
  const tps_ptx_function *f = s->f;
  for (uint32_t k = 0; k < f->input_count && k < MOST_INPUTS; k++)
    if (may_point(s, &f->vars[f->return_count + k]))
      var_set(s, (int32_t)(f->return_count + k))[k / 64] |= (uint64_t)1
                                                            << k % 64;
}

static void give_up(summary *own) {
  const tps_ptx_function *f = own->f;
  memset(own->inputs, TPS_ACCESS_UNKNOWN, f->input_count);
  memset(own->returns, 0xff,
         (size_t)f->return_count * own->words * sizeof *own->returns);
}

/* Passes until nothing changes. */
static void solve(state *s) {
  const tps_ptx_function *f = s->f;
  s->changed = true;
  for (int pass = 0; s->changed && pass < MOST_PASSES; pass++) {
    s->changed = false;
    for (uint32_t k = 0; k < f->instruction_count; k++)
      step(s, &f->instructions[k]);
  }
  if (s->changed) give_up(s->own);
  for (uint32_t j = 0; j < f->return_count; j++)
    add(s, s->own->returns + (size_t)j * s->words, var_set(s, (int32_t)j));
}

/* Analyses a function on top of what is known of it. */
static bool analyse(const tps_ptx_module *module, summary *all, uint32_t number,
                    bool *grown) {
  summary *own = &all[number];
  const tps_ptx_function *f = own->f;
  size_t words = own->words;
  size_t sets = (size_t)f->register_count + f->var_count + 2;
  uint64_t *memory = calloc(sets * words + 1, sizeof *memory);
  uint8_t *before = malloc((size_t)f->input_count + 1);
  uint64_t *returns = malloc((f->return_count * words + 1) * sizeof *returns);
  bool fine = memory != NULL && before != NULL && returns != NULL;
  if (fine) {
    size_t return_size = f->return_count * words * sizeof *returns;
    state s = {.module = module, .all = all, .own = own, .f = f};
    s.registers = memory;
    s.vars = memory + f->register_count * words;
    s.deep = s.vars + f->var_count * words;
    s.set = s.deep + words;
    s.words = own->words;
    memcpy(before, own->inputs, f->input_count);
    memcpy(returns, own->returns, return_size);
    seed(&s);
    solve(&s);
    *grown |= memcmp(before, own->inputs, f->input_count) != 0 ||
              memcmp(returns, own->returns, return_size) != 0;
  }
  free(memory);
  free(before);
  free(returns);
  return fine;
}

/* --- the module */

static bool begin(const tps_ptx_function *f, summary *own) {
  uint32_t inputs = f->input_count > MOST_INPUTS ? MOST_INPUTS : f->input_count;
  own->f = f;
  own->words = (inputs + 63) / 64;
  own->inputs = calloc((size_t)f->input_count + 1, 1);
  own->returns =
      calloc((size_t)f->return_count * own->words + 1, sizeof *own->returns);
  if (own->inputs == NULL || own->returns == NULL) return false;
  for (uint32_t k = MOST_INPUTS; k < f->input_count; k++)
    own->inputs[k] = TPS_ACCESS_UNKNOWN;
  return true;
}

static bool run(const tps_ptx_module *module, summary *all) {
  bool grown = true;
  for (uint32_t k = 0; k < module->function_count; k++)
    if (!begin(&module->functions[k], &all[k])) return false;
  for (int round = 0; grown && round < MOST_ROUNDS; round++) {
    grown = false;
    for (uint32_t k = 0; k < module->function_count; k++)
      if (!module->functions[k].declared_only && all[k].words > 0 &&
          !analyse(module, all, k, &grown))
        return false;
  }
  if (grown)
    for (uint32_t k = 0; k < module->function_count; k++) give_up(&all[k]);
  return true;
}

tps_ptx_access *tps_ptx_access_of(const tps_ptx_module *module) {
  size_t count = (size_t)module->function_count + 1;
  summary *all = calloc(count, sizeof *all);
  tps_ptx_access *out = calloc(count, sizeof *out);
  bool fine = all != NULL && out != NULL && run(module, all);
  for (uint32_t k = 0; all != NULL && k < module->function_count; k++) {
    free(all[k].returns);
    if (fine) out[k].inputs = all[k].inputs;
    else free(all[k].inputs);
  }
  free(all);
  if (fine) return out;
  free(out);
  return NULL;
}

void tps_ptx_access_free(tps_ptx_access *all, const tps_ptx_module *module) {
  if (all == NULL) return;
  for (uint32_t k = 0; k < module->function_count; k++) free(all[k].inputs);
  free(all);
}
