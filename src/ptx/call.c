/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Calls. Arguments and results that are registers or numbers become variables
 * of .param memory, so that an engine sees only those.
 */
#include "ptx/reader.h"

#include <string.h>

typedef struct signature {
  bool known;
  const char *name;
  const tps_ptx_var *vars; /* returns, then inputs; NULL: the own ones */
  uint32_t return_count, input_count;
} signature;

/* --- what is called */

static signature of_function(const reader *r, int32_t index) {
  const tps_ptx_function *f = AT(r->functions, tps_ptx_function, index);
  bool own = f == r->function; /* a recursive call: they move as they grow */
  return (signature){
      .known = true,
      .name = f->name,
      .vars = own ? NULL : f->vars,
      .return_count = f->return_count,
      .input_count = f->input_count,
  };
}

/* The latest table of the name: prototypes stand just before their call. */
static signature of_table(const reader *r, const char *text) {
  for (uint32_t i = COUNT(r->tables, tps_ptx_table); i-- > 0;) {
    const tps_ptx_table *t = AT(r->tables, tps_ptx_table, i);
    if (t->name != text) continue; /* names are interned */
    if (t->kind == TPS_PTX_CALL_TARGETS) return of_function(r, t->targets[0]);
    if (t->kind == TPS_PTX_BRANCH_TARGETS) break;
    return (signature){true, t->name, t->params, t->return_count,
                       t->input_count};
  }
  return (signature){.known = false};
}

static tps_ptx_operand read_target(reader *r) {
  tps_ptx_operand target = tps_ptx_operand_value(r);
  if (target.kind != TPS_PTX_OPD_FUNC && target.kind != TPS_PTX_OPD_REG)
    tps_ptx_stop(r, r->now.line, "call of what is not a function");
  if (target.kind == TPS_PTX_OPD_FUNC &&
      AT(r->functions, tps_ptx_function, target.index)->entry)
    tps_ptx_stop(r, r->now.line, "call of kernel '%.200s'",
                 AT(r->functions, tps_ptx_function, target.index)->name);
  return target;
}

/* --- arguments */

static uint32_t read_list(reader *r) {
  uint32_t from = COUNT(r->operand_stack, tps_ptx_operand);
  tps_ptx_expect(r, '(', "'call'");
  while (!tps_ptx_is(r, ')')) {
    tps_ptx_operand operand = tps_ptx_operand_value(r);
    *(tps_ptx_operand *)tps_ptx_push(r, &r->operand_stack, sizeof operand) =
        operand;
    if (!tps_ptx_accept(r, ',')) break;
  }
  tps_ptx_expect(r, ')', "the operands of a call");
  return COUNT(r->operand_stack, tps_ptx_operand) - from;
}

static bool is_param(const reader *r, const tps_ptx_operand *operand) {
  return operand->kind == TPS_PTX_OPD_VAR && operand->local &&
         AT(r->locals, tps_ptx_var, operand->index)->space == TPS_PTX_PARAM;
}

static uint8_t type_for(reader *r, const tps_ptx_operand *operand,
                        const tps_ptx_var *formal) {
  if (formal != NULL && formal->count == 1) return formal->type;
  if (formal != NULL)
    tps_ptx_stop(r, r->now.line, "parameter '%.200s' needs a .param variable",
                 formal->name);
  if (operand->kind == TPS_PTX_OPD_REG && operand->type != TPS_PTX_PRED)
    return operand->type;
  tps_ptx_stop(r, r->now.line, "operand of a call has no known type");
}

/* A decimal or 0d number for a parameter of 32 bits is a float. */
static void narrow(tps_ptx_operand *operand, uint8_t type) {
  double wide;
  uint32_t bits;
  if (operand->kind != TPS_PTX_OPD_IMM || operand->type != TPS_PTX_F64 ||
      tps_ptx_type_size(type) != 4)
    return;
  memcpy(&wide, &operand->value, sizeof wide);
  float single = (float)wide;
  memcpy(&bits, &single, sizeof bits);
  operand->value = bits;
  operand->type = TPS_PTX_F32;
}

/* Stores and loads would take a wider register, a call does not. */
static void check_width(reader *r, const tps_ptx_operand *operand, uint8_t type,
                        bool result) {
  if (operand->kind != TPS_PTX_OPD_REG) return;
  if (operand->type != TPS_PTX_PRED &&
      tps_ptx_type_size(operand->type) == tps_ptx_type_size(type))
    return;
  tps_ptx_stop(r, r->now.line,
               "register '%.100s' is .%s, the %s of the call .%s",
               AT(r->registers, tps_ptx_register, operand->index)->name,
               tps_ptx_type_name(operand->type),
               result ? "result" : "parameter", tps_ptx_type_name(type));
}

/* A variable in place of a register or number; *operand becomes that. */
static void through_variable(reader *r, tps_ptx_operand *operand,
                             const tps_ptx_var *formal, bool result) {
  uint8_t type = operand->kind == TPS_PTX_OPD_SINK && formal != NULL
                     ? formal->type
                     : type_for(r, operand, formal);
  check_width(r, operand, type, result);
  narrow(operand, type);
  tps_ptx_var var = {
      .name = "",
      .space = TPS_PTX_PARAM,
      .type = type,
      .align = tps_ptx_type_size(type),
      .count = operand->kind == TPS_PTX_OPD_SINK ? formal->count : 1,
      .line = r->now.line,
  };
  if (result && operand->kind != TPS_PTX_OPD_REG &&
      operand->kind != TPS_PTX_OPD_SINK)
    tps_ptx_stop(r, r->now.line,
                 "result of a call must be a register or a "
                 ".param variable");
  var.size = var.count * tps_ptx_type_size(type);
  int32_t index = tps_ptx_add_local(r, &var);
  if (operand->kind != TPS_PTX_OPD_SINK) {
    tps_ptx_instruction move =
        tps_ptx_param_move(r, &r->now, !result, index, *operand);
    if (!result) tps_ptx_emit(r, &move);
    else *(tps_ptx_instruction *)tps_ptx_push(r, &r->after, sizeof move) = move;
  }
  *operand =
      (tps_ptx_operand){.kind = TPS_PTX_OPD_VAR, .local = true, .index = index};
}

static void compare(reader *r, const tps_ptx_operand *operand,
                    const tps_ptx_var *formal, const char *name, uint32_t i,
                    bool result) {
  const tps_ptx_var *var = AT(r->locals, tps_ptx_var, operand->index);
  if (formal == NULL || formal->unsized || var->size == formal->size) return;
  tps_ptx_stop(r, r->now.line,
               "%s %u of '%.200s' has %llu bytes (its parameter has %llu)",
               result ? "result" : "argument", i + 1, name,
               (unsigned long long)var->size, (unsigned long long)formal->size);
}

static void check_count(reader *r, const signature *s, uint32_t count,
                        uint32_t wanted, bool result) {
  if (s->known && count != wanted)
    tps_ptx_stop(r, r->now.line, "call of '%.200s' with %u %s (it has %u)",
                 s->name, count, result ? "results" : "arguments", wanted);
}

static const tps_ptx_var *formal_var(const reader *r, const signature *s,
                                     uint32_t i) {
  return s->vars != NULL ? &s->vars[i] : AT(r->locals, tps_ptx_var, i);
}

/* Turns operands `from` to `from + count` of the stack into variables. */
static void convert(reader *r, const signature *s, uint32_t from,
                    uint32_t count, bool result) {
  uint32_t wanted = result ? s->return_count : s->input_count;
  check_count(r, s, count, wanted, result);
  for (uint32_t i = 0; i < count; i++) {
    tps_ptx_operand operand = *AT(r->operand_stack, tps_ptx_operand, from + i);
    tps_ptx_var copy;
    const tps_ptx_var *formal = NULL;
    if (s->known) {
      copy = *formal_var(r, s, (result ? 0 : s->return_count) + i);
      formal = &copy;
    }
    if (!is_param(r, &operand)) through_variable(r, &operand, formal, result);
    compare(r, &operand, formal, s->name, i, result);
    *AT(r->operand_stack, tps_ptx_operand, from + i) = operand;
  }
}

/* --- the parts of the statement */

typedef struct call_text {
  uint32_t from, results, arguments; /* on the operand stack */
  tps_ptx_operand target;
  int32_t table; /* name, or -1 */
} call_text;

static void read_table_name(reader *r, call_text *c) {
  if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "a table or prototype");
  c->table = tps_ptx_token_name(r); /* the token stays for the fixup */
}

static call_text read_parts(reader *r) {
  call_text c = {.table = -1};
  c.from = COUNT(r->operand_stack, tps_ptx_operand);
  if (tps_ptx_is(r, '(')) {
    c.results = read_list(r);
    tps_ptx_expect(r, ',', "the results of a call");
  }
  c.target = read_target(r);
  if (tps_ptx_accept(r, ',')) {
    if (!tps_ptx_is(r, '(')) {
      read_table_name(r, &c);
    } else {
      c.arguments = read_list(r);
      if (tps_ptx_accept(r, ',')) read_table_name(r, &c);
    }
  }
  return c;
}

static signature find_signature(reader *r, const call_text *c) {
  if (c->target.kind == TPS_PTX_OPD_FUNC)
    return of_function(r, c->target.index);
  if (c->table < 0)
    tps_ptx_stop(r, r->now.line,
                 "call through a register without targets or a prototype");
  return of_table(r, tps_ptx_name_text(r, c->table));
}

/* The table is entered last: its fixup takes the number of the next
 * instruction, and by then the moves before the call are out. */
void tps_ptx_call_read(reader *r) {
  uint64_t call_bytes = r->call_bytes;
  call_text c = read_parts(r);
  signature s = find_signature(r, &c);
  convert(r, &s, c.from, c.results, true);
  convert(r, &s, c.from + c.results, c.arguments, false);
  tps_ptx_operand arguments =
      tps_ptx_group(r, TPS_PTX_OPD_LIST, c.from + c.results);
  tps_ptx_operand results = tps_ptx_group(r, TPS_PTX_OPD_LIST, c.from);
  tps_ptx_add_operand(r, results);
  tps_ptx_add_operand(r, c.target);
  tps_ptx_add_operand(r, arguments);
  if (c.table >= 0) tps_ptx_label_operand(r, true);
  r->call_bytes = call_bytes;
}
