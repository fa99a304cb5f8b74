/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The body of a function, statement by statement.
 */
#include "ptx/reader.h"
#include "ptx/uses.h"

#include <string.h>

/* --- registers */

#define MOST_REGISTERS (1u << 20) /* of a function */

/* A text has use for about as many as it has bytes: one of a few bytes must not
 * cost the memory of a million. */
int32_t tps_ptx_add_register(reader *r, const char *name, uint8_t type) {
  uint32_t count = COUNT(r->registers, tps_ptx_register);
  uint32_t limit = r->size + (1u << 14);
  if (count >= MOST_REGISTERS)
    tps_ptx_stop(r, r->tok.line, "more than %u registers", MOST_REGISTERS);
  if (r->register_total++ >= limit)
    tps_ptx_stop(r, r->tok.line, "more than %u registers in a text of %u bytes",
                 limit, r->size);
  tps_ptx_register *reg = tps_ptx_push(r, &r->registers, sizeof *reg);
  *reg = (tps_ptx_register){name, type};
  return (int32_t)count;
}

/* Text of `stem` and `tail` into the scratch bytes, interned. */
static int32_t join(reader *r, const char *stem, size_t size,
                    const char *tail) {
  size_t tail_size = strlen(tail);
  r->scratch.used = 0;
  char *text = tps_ptx_push(r, &r->scratch, size + tail_size);
  memcpy(text, stem, size);
  memcpy(text + size, tail, tail_size);
  return tps_ptx_intern(r, text, (uint32_t)(size + tail_size));
}

static void add_vector(reader *r, int32_t n, const declaration *d) {
  static const char *const tails[] = {".x", ".y", ".z", ".w"};
  const char *stem = tps_ptx_name_text(r, n);
  int32_t first = (int32_t)COUNT(r->registers, tps_ptx_register);
  if (d->vector > 4)
    tps_ptx_stop(r, r->tok.line, "vector registers have at most 4 elements");
  for (int i = 0; i < d->vector; i++) {
    int32_t part = join(r, stem, strlen(stem), tails[i]);
    tps_ptx_add_register(r, tps_ptx_name_text(r, part), d->type);
  }
  tps_ptx_declare(r, n, SYM_VECTOR, first, d->vector);
}

static void add_one(reader *r, int32_t n, const declaration *d) {
  if (d->vector > 1) {
    add_vector(r, n, d);
    return;
  }
  int32_t reg = tps_ptx_add_register(r, tps_ptx_name_text(r, n), d->type);
  tps_ptx_declare(r, n, SYM_REGISTER, reg, 1);
}

static char *decimal(char *end, uint64_t n) {
  *--end = '\0';
  do *--end = (char)('0' + n % 10);
  while ((n /= 10) != 0);
  return end;
}

/* %r<5>: %r0 to %r4 */
static void add_range(reader *r, int32_t n, const declaration *d) {
  char digits[24];
  const char *stem = tps_ptx_name_text(r, n);
  size_t size = strlen(stem);
  uint64_t count = tps_ptx_unsigned(r, "range of registers", MOST_REGISTERS);
  tps_ptx_expect(r, '>', "a range of registers");
  for (uint64_t i = 0; i < count; i++)
    add_one(r, join(r, stem, size, decimal(digits + sizeof digits, i)), d);
}

void tps_ptx_registers(reader *r) {
  tps_ptx_next(r);
  declaration d = tps_ptx_declaration(r, TPS_PTX_REG, 0);
  do {
    if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "the name of a register");
    int32_t n = tps_ptx_token_name(r);
    tps_ptx_next(r);
    if (tps_ptx_accept(r, '<')) add_range(r, n, &d);
    else add_one(r, n, &d);
  } while (tps_ptx_accept(r, ','));
  tps_ptx_expect(r, ';', "a register");
}

/* --- statements */

/* What is at hand is a mnemonic or a label. */
static void read_named(reader *r, int32_t guard, bool negated, bool guarded) {
  opcode_at o = {.at = r->tok.at, .line = r->tok.line};
  uint32_t word = r->tok.size;
  o.text = tps_ptx_opcode_rest(r, o.at, &o.size);
  if (guarded || !tps_ptx_is(r, ':') || o.size != word) {
    tps_ptx_instruction_read(r, o, guard, negated);
    return;
  }
  int32_t n = tps_ptx_intern(r, o.text, o.size);
  tps_ptx_next(r);
  if (tps_ptx_read_table(r, n, o.line)) return;
  r->label_end = COUNT(r->instructions, tps_ptx_instruction);
  tps_ptx_add_label(r, n, (int32_t)r->label_end, false, o.line);
}

static void read_guarded(reader *r) {
  tps_ptx_next(r);
  bool negated = tps_ptx_accept(r, '!');
  if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "a predicate after '@'");
  int32_t n = tps_ptx_token_name(r);
  const symbol *s = tps_ptx_lookup(r, n);
  if (s == NULL || s->kind != SYM_REGISTER ||
      AT(r->registers, tps_ptx_register, s->index)->type != TPS_PTX_PRED)
    tps_ptx_stop(r, r->tok.line, "guard '%.200s' is not a predicate register",
                 tps_ptx_name_text(r, n));
  int32_t guard = s->index;
  tps_ptx_next(r);
  if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "an instruction");
  read_named(r, guard, negated, true);
}

static void read_directive(reader *r) {
  char found[80];
  int space = tps_ptx_find_space(r->text + r->tok.at, r->tok.size);
  uint8_t linkage = 0;
  if (tps_ptx_is_word(r, "loc")) tps_ptx_read_loc(r);
  else if (space == TPS_PTX_REG) tps_ptx_registers(r);
  else if (space != TPS_PTX_GENERIC) tps_ptx_variables(r, space, 0);
  else if (tps_ptx_is_word(r, "pragma")) tps_ptx_skip_pragma(r);
  else if (tps_ptx_is_word(r, "file")) tps_ptx_read_file(r);
  else {
    if (tps_ptx_accept_word(r, "extern")) linkage = 2;
    else if (tps_ptx_accept_word(r, "visible")) linkage = 1;
    space = tps_ptx_is(r, T_WORD) && linkage
                ? tps_ptx_find_space(r->text + r->tok.at, r->tok.size)
                : TPS_PTX_GENERIC;
    if (space <= TPS_PTX_REG)
      tps_ptx_stop(r, r->tok.line, "unknown directive %s in a function",
                   tps_ptx_token_text(r, found));
    tps_ptx_variables(r, space, linkage);
  }
}

static void statement(reader *r) {
  switch (r->tok.kind) {
  case T_NAME: read_named(r, -1, false, false); return;
  case T_WORD: read_directive(r); return;
  case '@': read_guarded(r); return;
  case ';': tps_ptx_next(r); return;
  case '{':
    tps_ptx_open_scope(r);
    tps_ptx_next(r);
    return;
  case T_END:
    tps_ptx_stop(r, r->function->line, "'%.200s' has no closing brace",
                 r->function->name);
  default: tps_ptx_unexpected(r, "an instruction or a directive");
  }
}

/* --- begin and end */

static void load_reg_params(reader *r) {
  tps_ptx_instruction like = {
      .guard = -1, .loc = -1, .line = r->tok.line, .text = r->tok.at};
  for (uint32_t i = 0; i < COUNT(r->reg_params, reg_param); i++) {
    reg_param p = *AT(r->reg_params, reg_param, i);
    if (p.result) continue;
    tps_ptx_operand reg = {
        .kind = TPS_PTX_OPD_REG,
        .index = p.reg,
        .type = AT(r->registers, tps_ptx_register, p.reg)->type,
    };
    tps_ptx_instruction load = tps_ptx_param_move(r, &like, false, p.var, reg);
    tps_ptx_emit(r, &load);
  }
}

static bool falls_off(const reader *r) {
  uint32_t count = COUNT(r->instructions, tps_ptx_instruction);
  if (count == 0 || r->label_end == count) return true;
  const tps_ptx_instruction *last =
      AT(r->instructions, tps_ptx_instruction, count - 1);
  return last->guard >= 0 ||
         (last->op != TPS_PTX_OP_RET && last->op != TPS_PTX_OP_EXIT &&
          last->op != TPS_PTX_OP_TRAP && last->op != TPS_PTX_OP_BRA);
}

static void keep(reader *r, tps_ptx_function *f) {
  f->registers = tps_ptx_copy(r, r->registers.data, r->registers.used);
  f->register_count = COUNT(r->registers, tps_ptx_register);
  f->vars = tps_ptx_copy(r, r->locals.data, r->locals.used);
  f->var_count = COUNT(r->locals, tps_ptx_var);
  f->instructions = tps_ptx_copy(r, r->instructions.data, r->instructions.used);
  f->instruction_count = COUNT(r->instructions, tps_ptx_instruction);
  f->parts = tps_ptx_copy(r, r->parts.data, r->parts.used);
  f->part_count = COUNT(r->parts, tps_ptx_operand);
  f->tables = tps_ptx_copy(r, r->tables.data, r->tables.used);
  f->table_count = COUNT(r->tables, tps_ptx_table);
}

/* brx jumps by a table of labels, call by one of functions or a prototype. */
static void check_tables(reader *r, const tps_ptx_function *f) {
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    const tps_ptx_instruction *in = &f->instructions[i];
    if (in->op != TPS_PTX_OP_BRX && in->op != TPS_PTX_OP_CALL) continue;
    const tps_ptx_operand *last = &in->operands[in->operand_count - 1];
    if (last->kind != TPS_PTX_OPD_TABLE) continue;
    const tps_ptx_table *t = &f->tables[last->index];
    if ((t->kind == TPS_PTX_BRANCH_TARGETS) != (in->op == TPS_PTX_OP_BRX))
      tps_ptx_stop(r, in->line, "'%.200s' is no table for '%s'", t->name,
                   tps_ptx_op_names[in->op]);
  }
}

void tps_ptx_body(reader *r) {
  bool memory = true;
  tps_ptx_function *f = r->function;
  uint32_t outside = COUNT(r->scopes, scope);
  tps_ptx_open_scope(r);
  load_reg_params(r);
  tps_ptx_next(r);
  while (COUNT(r->scopes, scope) > outside) {
    if (!tps_ptx_is(r, '}')) {
      statement(r);
      continue;
    }
    if (COUNT(r->scopes, scope) == outside + 1 && falls_off(r)) {
      tps_ptx_instruction ret = {.op = TPS_PTX_OP_RET,
                                 .vector = 1,
                                 .guard = -1,
                                 .loc = r->loc,
                                 .line = r->tok.line,
                                 .text = r->tok.at};
      tps_ptx_emit(r, &ret);
    }
    tps_ptx_close_scope(r);
    tps_ptx_next(r);
  }
  tps_ptx_close_scope(r); /* of the parameters */
  keep(r, f);
  check_tables(r, f);
  uint8_t *unset = tps_ptx_take(r, f->register_count);
  f->register_demand = tps_ptx_register_demand(f, unset, &memory);
  f->unset = unset;
  if (!memory) tps_ptx_stop_code(r, TPS_NO_HOST_MEMORY, "out of host memory");
}
