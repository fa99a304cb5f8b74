/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Operands: registers, numbers, names, addresses, and groups of them.
 */
#include "ptx/reader.h"

#include <string.h>

void tps_ptx_add_operand(reader *r, tps_ptx_operand operand) {
  if (r->now.operand_count == TPS_PTX_MAX_OPERANDS)
    tps_ptx_stop(r, r->now.line, "'%s' with more than %d operands",
                 tps_ptx_op_names[r->now.op], TPS_PTX_MAX_OPERANDS);
  r->now.operands[r->now.operand_count++] = operand;
}

static void stack(reader *r, tps_ptx_operand operand) {
  *(tps_ptx_operand *)tps_ptx_push(r, &r->operand_stack, sizeof operand) =
      operand;
}

tps_ptx_operand tps_ptx_group(reader *r, uint8_t kind, uint32_t from) {
  enum { MOST = 1024 };
  uint32_t count = COUNT(r->operand_stack, tps_ptx_operand) - from;
  tps_ptx_operand group = {
      .kind = kind,
      .count = (uint16_t)count,
      .first = (int32_t)COUNT(r->parts, tps_ptx_operand),
  };
  if (count > MOST)
    tps_ptx_stop(r, r->tok.line, "%u operands in a group (limit %d)", count,
                 MOST);
  if (count > 0) {
    size_t size = count * sizeof group;
    void *to = tps_ptx_push(r, &r->parts, size);
    memcpy(to, AT(r->operand_stack, tps_ptx_operand, from), size);
  }
  r->operand_stack.used = from * sizeof group;
  return group;
}

/* --- registers */

static tps_ptx_operand register_operand(const reader *r, int32_t index) {
  return (tps_ptx_operand){
      .kind = TPS_PTX_OPD_REG,
      .type = AT(r->registers, tps_ptx_register, index)->type,
      .index = index,
  };
}

/* .b0, .h1, .b3210, .h10 of video instructions; 0 when the word is none. */
static int64_t selector(const char *word, uint32_t size) {
  int64_t lanes = 0;
  bool bytes = word[0] == 'b', halves = word[0] == 'h';
  if ((!bytes && !halves) || size < 2 || size > 5) return 0;
  for (uint32_t i = 1; i < size; i++) {
    if (word[i] < '0' || word[i] > '7') return 0;
    lanes = lanes << 8 | (halves ? 0xc0 : 0x80) | (word[i] - '0');
  }
  return lanes;
}

/* Which of .x .y .z .w or .r .g .b .a the word is, or -1. */
static int component(const reader *r) {
  static const char axes[] = "xyzw", colours[] = "rgba";
  if (!tps_ptx_is(r, T_WORD) || r->tok.size != 1) return -1;
  char c = r->text[r->tok.at];
  const char *at = strchr(axes, c);
  if (at != NULL) return (int)(at - axes);
  at = strchr(colours, c);
  return at != NULL ? (int)(at - colours) : -1;
}

static tps_ptx_operand read_register(reader *r, int32_t index) {
  tps_ptx_operand operand = register_operand(r, index);
  if (tps_ptx_is(r, T_WORD)) {
    operand.value = selector(r->text + r->tok.at, r->tok.size);
    if (operand.value == 0) tps_ptx_unexpected(r, "a selector");
    tps_ptx_next(r);
  }
  return operand;
}

static tps_ptx_operand read_vector_register(reader *r, const symbol *s) {
  int32_t first = s->index, count = s->count;
  int part = component(r);
  if (part >= count) tps_ptx_unexpected(r, "an element of the vector");
  if (part >= 0) {
    tps_ptx_next(r);
    return register_operand(r, first + part);
  }
  uint32_t from = COUNT(r->operand_stack, tps_ptx_operand);
  for (int32_t i = 0; i < count; i++) stack(r, register_operand(r, first + i));
  return tps_ptx_group(r, TPS_PTX_OPD_VEC, from);
}

static bool read_special(reader *r, tps_ptx_operand *out) {
  tps_ptx_sreg_found found;
  if (!tps_ptx_find_sreg(r->text + r->tok.at, r->tok.size, &found))
    return false;
  tps_ptx_next(r);
  int part = found.components > 0 ? component(r) : -1;
  if (part >= 0) tps_ptx_next(r);
  *out = (tps_ptx_operand){
      .kind = TPS_PTX_OPD_SREG,
      .type = found.type,
      .index = found.sreg + (part > 0 ? part : 0),
  };
  return true;
}

/* --- numbers and names of memory */

static tps_ptx_operand from_constant(reader *r, constant c) {
  tps_ptx_operand operand = {
      .kind = TPS_PTX_OPD_IMM, .type = c.type, .value = (int64_t)c.bits};
  if (c.symbol == NULL) return operand;
  if (c.mask >= 0)
    tps_ptx_stop(r, r->tok.line, "a mask outside an initialiser");
  operand.type = TPS_PTX_NOTYPE;
  operand.kind =
      c.symbol->kind == SYM_FUNCTION ? TPS_PTX_OPD_FUNC : TPS_PTX_OPD_VAR;
  operand.index = c.symbol->index;
  operand.local = c.symbol->kind == SYM_LOCAL_VAR;
  operand.generic = c.generic;
  return operand;
}

static const tps_ptx_var *variable(const reader *r, tps_ptx_operand operand) {
  return AT(*(operand.local ? &r->locals : &r->vars), tps_ptx_var,
            operand.index);
}

static bool is_memory_op(unsigned op) {
  return op == TPS_PTX_OP_LD || op == TPS_PTX_OP_ST || op == TPS_PTX_OP_LDU ||
         op == TPS_PTX_OP_ATOM || op == TPS_PTX_OP_RED;
}

/* var[3] */
static tps_ptx_operand read_element(reader *r, tps_ptx_operand operand) {
  tps_ptx_next(r);
  uint64_t index = tps_ptx_unsigned(r, "index", UINT32_MAX);
  tps_ptx_expect(r, ']', "an index");
  operand.value +=
      (int64_t)(index * tps_ptx_type_size(variable(r, operand)->type));
  if (is_memory_op(r->now.op)) {
    operand.kind = TPS_PTX_OPD_ADDR;
    operand.base_kind = TPS_PTX_OPD_VAR;
  }
  return operand;
}

static tps_ptx_operand read_constant(reader *r) {
  tps_ptx_operand operand = from_constant(r, tps_ptx_constant(r));
  if (operand.kind == TPS_PTX_OPD_VAR && tps_ptx_is(r, '['))
    return read_element(r, operand);
  return operand;
}

static tps_ptx_operand read_name(reader *r) {
  tps_ptx_operand operand;
  int32_t n = tps_ptx_token_name(r);
  const symbol *s = tps_ptx_lookup(r, n);
  if (s != NULL && s->kind == SYM_REGISTER) {
    int32_t index = s->index;
    tps_ptx_next(r);
    return read_register(r, index);
  }
  if (s != NULL && s->kind == SYM_VECTOR) {
    tps_ptx_next(r);
    return read_vector_register(r, s);
  }
  if (s != NULL || tps_ptx_is_name(r, "WARP_SZ") ||
      tps_ptx_is_name(r, "generic"))
    return read_constant(r);
  if (tps_ptx_is_name(r, "_")) {
    tps_ptx_next(r);
    return (tps_ptx_operand){.kind = TPS_PTX_OPD_SINK};
  }
  if (read_special(r, &operand)) return operand;
  tps_ptx_stop(r, r->tok.line, "'%.200s' is not defined",
               tps_ptx_name_text(r, n));
}

/* --- signs */

static bool at_register(reader *r) {
  if (!tps_ptx_is(r, T_NAME)) return false;
  const symbol *s = tps_ptx_lookup(r, tps_ptx_token_name(r));
  return s != NULL && s->kind == SYM_REGISTER;
}

static tps_ptx_operand read_negated(reader *r) {
  int sign = r->tok.kind;
  tps_ptx_next(r);
  if (at_register(r)) {
    tps_ptx_operand operand = read_name(r);
    operand.negated = true;
    return operand;
  }
  if (sign == '!') tps_ptx_unexpected(r, "a register after '!'");
  return from_constant(r, tps_ptx_constant_negative(r));
}

/* --- groups */

static tps_ptx_operand read_braces(reader *r) {
  uint32_t from = COUNT(r->operand_stack, tps_ptx_operand);
  tps_ptx_next(r);
  do {
    if (tps_ptx_is(r, '{')) tps_ptx_unexpected(r, "an element of a vector");
    stack(r, tps_ptx_operand_value(r));
  } while (tps_ptx_accept(r, ','));
  tps_ptx_expect(r, '}', "the elements of a vector");
  return tps_ptx_group(r, TPS_PTX_OPD_VEC, from);
}

static tps_ptx_operand read_single(reader *r) {
  switch (r->tok.kind) {
  case T_NAME: return read_name(r);
  case '{': return read_braces(r);
  case '!':
  case '-': return read_negated(r);
  case T_INTEGER:
  case T_FLOAT:
  case '(':
  case '~':
  case '+': return read_constant(r);
  default: tps_ptx_unexpected(r, "an operand");
  }
}

tps_ptx_operand tps_ptx_operand_value(reader *r) {
  tps_ptx_operand first = read_single(r);
  if (!tps_ptx_is(r, '|')) return first;
  uint32_t from = COUNT(r->operand_stack, tps_ptx_operand);
  tps_ptx_next(r);
  stack(r, first);
  stack(r, read_single(r));
  return tps_ptx_group(r, TPS_PTX_OPD_PAIR, from);
}

/* --- addresses */

static int64_t read_offset(reader *r) {
  constant c = tps_ptx_constant(r);
  if (c.symbol != NULL || (c.type != TPS_PTX_S64 && c.type != TPS_PTX_U64))
    tps_ptx_stop(r, r->tok.line, "an offset must be an integer");
  return (int64_t)c.bits;
}

static tps_ptx_operand read_address(reader *r) {
  tps_ptx_operand base = at_register(r) ? read_name(r) : read_single(r);
  if (base.kind == TPS_PTX_OPD_ADDR) base.kind = base.base_kind; /* [a[1]] */
  bool is_register = base.kind == TPS_PTX_OPD_REG && !base.negated;
  if (!is_register && base.kind != TPS_PTX_OPD_VAR &&
      (base.kind != TPS_PTX_OPD_IMM || base.type == TPS_PTX_F32 ||
       base.type == TPS_PTX_F64))
    tps_ptx_stop(r, r->tok.line,
                 "an address needs a register, a variable or an integer");
  base.base_kind = base.kind;
  base.kind = TPS_PTX_OPD_ADDR;
  if (is_register && (tps_ptx_is(r, '+') || tps_ptx_is(r, '-')))
    base.value = read_offset(r);
  return base;
}

/* [a], [a+4], [a, b, {x, y}] */
static void read_brackets(reader *r) {
  tps_ptx_next(r);
  tps_ptx_add_operand(r, read_address(r));
  while (tps_ptx_accept(r, ','))
    tps_ptx_add_operand(r, tps_ptx_operand_value(r));
  tps_ptx_expect(r, ']', "an address");
}

void tps_ptx_operand_read(reader *r) {
  if (tps_ptx_is(r, '[')) read_brackets(r);
  else tps_ptx_add_operand(r, tps_ptx_operand_value(r));
}

/* --- labels */

void tps_ptx_label_operand(reader *r, bool table) {
  if (!tps_ptx_is(r, T_NAME))
    tps_ptx_unexpected(r, table ? "the name of a table" : "a label");
  fixup *f = tps_ptx_push(r, &r->fixups, sizeof *f);
  *f = (fixup){
      .name = -1,
      .line = r->tok.line,
      .table = table,
      .instruction = COUNT(r->instructions, tps_ptx_instruction),
      .operand = r->now.operand_count,
  };
  int32_t n = tps_ptx_token_name(r);
  AT(r->fixups, fixup, COUNT(r->fixups, fixup) - 1)->name = n;
  tps_ptx_add_operand(r,
                      (tps_ptx_operand){
                          .kind = table ? TPS_PTX_OPD_TABLE : TPS_PTX_OPD_LABEL,
                          .index = -1,
                      });
  tps_ptx_next(r);
}
