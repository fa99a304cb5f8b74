/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Constant expressions: 64-bit integers as in C, doubles, and an address plus
 * or minus a number. Operators climb by precedence, so that the long lists of
 * plain numbers in initialisers cost one step each.
 */
#include "ptx/reader.h"

#include <string.h>

enum { DEEPEST = 100 };

static constant expression(reader *r, int least);
static constant unary(reader *r);

static void deeper(reader *r) {
  if (++r->depth > DEEPEST)
    tps_ptx_stop(r, r->tok.line, "expression nested deeper than %d", DEEPEST);
}

static bool is_float(constant c) {
  return c.type == TPS_PTX_F32 || c.type == TPS_PTX_F64;
}

static constant number(uint8_t type, uint64_t bits) {
  return (constant){type, bits, NULL, false, -1};
}

static constant from_double(double value) {
  constant c = number(TPS_PTX_F64, 0);
  memcpy(&c.bits, &value, sizeof value);
  return c;
}

double tps_ptx_constant_double(constant c) {
  double wide;
  float narrow;
  uint32_t low = (uint32_t)c.bits;
  memcpy(&wide, &c.bits, sizeof wide);
  memcpy(&narrow, &low, sizeof narrow);
  if (c.type == TPS_PTX_F64) return wide;
  if (c.type == TPS_PTX_F32) return (double)narrow;
  return c.type == TPS_PTX_U64 ? (double)c.bits : (double)(int64_t)c.bits;
}

/* --- symbols */

static constant address(reader *r) {
  if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "a name");
  int32_t n = tps_ptx_token_name(r);
  const symbol *s = tps_ptx_lookup(r, n);
  if (s == NULL)
    tps_ptx_stop(r, r->tok.line, "'%.200s' is not defined",
                 tps_ptx_name_text(r, n));
  if (s->kind == SYM_REGISTER || s->kind == SYM_VECTOR)
    tps_ptx_stop(r, r->tok.line, "register '%.200s' in a constant expression",
                 tps_ptx_name_text(r, n));
  tps_ptx_next(r);
  return (constant){TPS_PTX_U64, 0, s, false, -1};
}

static constant named(reader *r) {
  if (tps_ptx_is_name(r, "WARP_SZ")) {
    tps_ptx_next(r);
    return number(TPS_PTX_S64, 32);
  }
  if (!tps_ptx_is_name(r, "generic")) return address(r);
  uint32_t pos = r->pos;
  while (r->text[pos] == ' ') pos++;
  if (r->text[pos] != '(') return address(r);
  tps_ptx_next(r);
  tps_ptx_next(r);
  constant c = expression(r, 0);
  tps_ptx_expect(r, ')', "generic(...");
  if (c.symbol == NULL)
    tps_ptx_stop(r, r->tok.line, "generic() needs the name of a variable");
  c.generic = true;
  return c;
}

/* 0xff00(name): one byte of an address. */
static constant masked(reader *r, constant mask) {
  int byte = 0;
  while (byte < 8 && mask.bits != (uint64_t)0xff << 8 * byte) byte++;
  if (byte == 8)
    tps_ptx_stop(r, r->tok.line, "a mask must select one byte, as 0xff00");
  tps_ptx_next(r);
  constant c = expression(r, 0);
  tps_ptx_expect(r, ')', "mask(...");
  if (c.symbol == NULL)
    tps_ptx_stop(r, r->tok.line, "a mask needs the name of a variable");
  c.mask = byte;
  return c;
}

/* --- unary */

static constant parenthesis(reader *r) {
  tps_ptx_next(r);
  bool is_signed = tps_ptx_is_word(r, "s64");
  if (is_signed || tps_ptx_is_word(r, "u64")) { /* a cast */
    tps_ptx_next(r);
    tps_ptx_expect(r, ')', "a cast");
    constant c = unary(r);
    if (is_float(c) || c.symbol != NULL)
      tps_ptx_stop(r, r->tok.line, "cast of what is not an integer");
    c.type = is_signed ? TPS_PTX_S64 : TPS_PTX_U64;
    return c;
  }
  constant c = expression(r, 0);
  tps_ptx_expect(r, ')', "an expression");
  return c;
}

static constant primary(reader *r) {
  constant c = number(r->tok.type, r->tok.value);
  switch (r->tok.kind) {
  case T_INTEGER: tps_ptx_next(r); return tps_ptx_is(r, '(') ? masked(r, c) : c;
  case T_FLOAT: tps_ptx_next(r); return c;
  case T_NAME: return named(r);
  case '(': return parenthesis(r);
  default: tps_ptx_unexpected(r, "a number or an expression");
  }
}

static void need_number(reader *r, constant c) {
  if (c.symbol != NULL)
    tps_ptx_stop(r, r->tok.line,
                 "an address can only have a number added or subtracted");
}

static void need_integer(reader *r, constant c) {
  need_number(r, c);
  if (is_float(c))
    tps_ptx_stop(r, r->tok.line, "operator for integers on a float");
}

static constant negate(reader *r, constant c) {
  need_number(r, c);
  if (c.type == TPS_PTX_F32) c.bits ^= 0x80000000u;
  else if (c.type == TPS_PTX_F64) c.bits ^= (uint64_t)1 << 63;
  else c.bits = -c.bits;
  if (c.type == TPS_PTX_U64 && c.bits >> 63) c.type = TPS_PTX_S64;
  return c;
}

static constant unary(reader *r) {
  int op = r->tok.kind;
  if (op != '-' && op != '+' && op != '~' && op != '!') return primary(r);
  deeper(r);
  tps_ptx_next(r);
  constant c = unary(r);
  r->depth--;
  if (op == '-') return negate(r, c);
  if (op == '+') return c;
  need_integer(r, c);
  return op == '~' ? number(c.type, ~c.bits) : number(TPS_PTX_S64, c.bits == 0);
}

/* --- binary */

static int precedence(int kind) {
  switch (kind) {
  case '?': return 1;
  case T_OR: return 2;
  case T_AND: return 3;
  case '|': return 4;
  case '^': return 5;
  case '&': return 6;
  case T_EQ:
  case T_NE: return 7;
  case '<':
  case '>':
  case T_LE:
  case T_GE: return 8;
  case T_LEFT:
  case T_RIGHT: return 9;
  case '+':
  case '-': return 10;
  case '*':
  case '/':
  case '%': return 11;
  default: return 0;
  }
}

static constant float_binary(reader *r, int op, constant a, constant b) {
  double x = tps_ptx_constant_double(a), y = tps_ptx_constant_double(b);
  switch (op) {
  case '+': return from_double(x + y);
  case '-': return from_double(x - y);
  case '*': return from_double(x * y);
  case '/': return from_double(x / y);
  case '<': return number(TPS_PTX_S64, x < y);
  case '>': return number(TPS_PTX_S64, x > y);
  case T_LE: return number(TPS_PTX_S64, x <= y);
  case T_GE: return number(TPS_PTX_S64, x >= y);
  case T_EQ: return number(TPS_PTX_S64, x == y);
  case T_NE: return number(TPS_PTX_S64, x != y);
  default:
    need_integer(r, a);
    need_integer(r, b);
    return a;
  }
}

static uint64_t divide(reader *r, int op, constant a, constant b,
                       bool is_signed) {
  if (b.bits == 0) tps_ptx_stop(r, r->tok.line, "division by zero");
  bool quotient = op == '/';
  if (!is_signed) return quotient ? a.bits / b.bits : a.bits % b.bits;
  if (b.bits == UINT64_MAX) return quotient ? -a.bits : 0;
  int64_t x = (int64_t)a.bits, y = (int64_t)b.bits;
  return (uint64_t)(quotient ? x / y : x % y);
}

static uint64_t shift(int op, constant a, uint64_t by) {
  if (op == T_LEFT) return by > 63 ? 0 : a.bits << by;
  if (a.type == TPS_PTX_S64)
    return (uint64_t)((int64_t)a.bits >> (by > 63 ? 63 : by));
  return by > 63 ? 0 : a.bits >> by;
}

static bool less(constant a, constant b, bool is_signed) {
  return is_signed ? (int64_t)a.bits < (int64_t)b.bits : a.bits < b.bits;
}

static constant integer_binary(reader *r, int op, constant a, constant b) {
  bool is_signed = a.type == TPS_PTX_S64 && b.type == TPS_PTX_S64;
  uint8_t type = is_signed ? TPS_PTX_S64 : TPS_PTX_U64;
  switch (op) {
  case '+': return number(type, a.bits + b.bits);
  case '-': return number(type, a.bits - b.bits);
  case '*': return number(type, a.bits * b.bits);
  case '/':
  case '%': return number(type, divide(r, op, a, b, is_signed));
  case '&': return number(type, a.bits & b.bits);
  case '|': return number(type, a.bits | b.bits);
  case '^': return number(type, a.bits ^ b.bits);
  case T_LEFT:
  case T_RIGHT: return number(a.type, shift(op, a, b.bits));
  case '<': return number(TPS_PTX_S64, less(a, b, is_signed));
  case '>': return number(TPS_PTX_S64, less(b, a, is_signed));
  case T_LE: return number(TPS_PTX_S64, !less(b, a, is_signed));
  case T_GE: return number(TPS_PTX_S64, !less(a, b, is_signed));
  case T_EQ: return number(TPS_PTX_S64, a.bits == b.bits);
  case T_NE: return number(TPS_PTX_S64, a.bits != b.bits);
  case T_AND: return number(TPS_PTX_S64, a.bits != 0 && b.bits != 0);
  default: return number(TPS_PTX_S64, a.bits != 0 || b.bits != 0);
  }
}

static constant address_binary(reader *r, int op, constant a, constant b) {
  if (a.symbol == NULL && op == '+') {
    constant swap = a;
    a = b;
    b = swap;
  }
  if (b.symbol != NULL || (op != '+' && op != '-'))
    tps_ptx_stop(r, r->tok.line,
                 "an address can only have a number added or subtracted");
  need_integer(r, b);
  a.bits += op == '+' ? b.bits : -b.bits;
  return a;
}

static constant binary(reader *r, int op, constant a, constant b) {
  if (a.symbol != NULL || b.symbol != NULL) return address_binary(r, op, a, b);
  if (is_float(a) || is_float(b)) return float_binary(r, op, a, b);
  return integer_binary(r, op, a, b);
}

static constant choose(reader *r, constant condition) {
  need_integer(r, condition);
  constant yes = expression(r, 0);
  tps_ptx_expect(r, ':', "an expression with '?'");
  constant no = expression(r, 1);
  return condition.bits != 0 ? yes : no;
}

/* Goes on behind the operand `left` with operators of at least this rank. */
static constant climb(reader *r, constant left, int least) {
  for (;;) {
    int op = r->tok.kind, rank = precedence(op);
    if (rank == 0 || rank < least) return left;
    deeper(r);
    tps_ptx_next(r);
    left = op == '?' ? choose(r, left)
                     : binary(r, op, left, expression(r, rank + 1));
    r->depth--;
  }
}

static constant expression(reader *r, int least) {
  deeper(r);
  constant c = climb(r, unary(r), least);
  r->depth--;
  return c;
}

constant tps_ptx_constant(reader *r) { return expression(r, 0); }

constant tps_ptx_constant_negative(reader *r) {
  return climb(r, negate(r, unary(r)), 0);
}

uint64_t tps_ptx_unsigned(reader *r, const char *what, uint64_t limit) {
  uint32_t line = r->tok.line;
  constant c = expression(r, 9); /* not <, >: %r<4> */
  need_integer(r, c);
  if (c.bits > limit)
    tps_ptx_stop(r, line, "%s of %lld (limit %llu)", what, (long long)c.bits,
                 (unsigned long long)limit);
  return c.bits;
}
