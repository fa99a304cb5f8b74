/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What an opcode demands of its operands: how many, of which kind, how wide. As
 * lenient as the assembler: untyped bits go with everything, integers of either
 * sign with each other but not with floats; loads, stores and conversions take
 * wider registers. Where the assembler forbids what has a plain meaning (a
 * special register in an add), this reader does not.
 *
 * A rule's pattern has two characters for each operand; those behind its end
 * may be anything. The second is the number of the type that tells the width,
 * or a dot:
 *   d destination register of that width    D at least as wide, or a vector
 *   s register of that width, number, special register, name    S likewise
 *   I 32-bit integer register    i the same as a source    p predicate source
 *   P predicate destination    o the same, or p|q
 *   q 32-bit register, or d|p    a address    * anything
 */
#include "ptx/reader.h"

#include <string.h>

typedef struct rule {
  uint8_t least, most;
  const char *pattern;
} rule;

/* clang-format off */
#define UNARY {2, 2, "d0s0"}
#define BINARY {3, 3, "d0s0s0"}
#define TERNARY {4, 4, "d0s0s0s0"}
#define NONE {0, 0, ""}
#define FREE(least, most) {least, most, ""}
#define ON(op) [TPS_PTX_OP_##op]

static const rule rules[TPS_PTX_OP_COUNT] = {
    ON(ABS) = UNARY, ON(NEG) = UNARY, ON(NOT) = UNARY, ON(CNOT) = UNARY,
    ON(BREV) = UNARY, ON(RCP) = UNARY, ON(SQRT) = UNARY, ON(RSQRT) = UNARY,
    ON(SIN) = UNARY, ON(COS) = UNARY, ON(LG2) = UNARY, ON(EX2) = UNARY,
    ON(TANH) = UNARY, ON(CVTA) = UNARY,
    ON(ADD) = BINARY, ON(ADDC) = BINARY, ON(SUB) = BINARY, ON(SUBC) = BINARY,
    ON(MUL) = BINARY, ON(MUL24) = BINARY, ON(DIV) = BINARY, ON(REM) = BINARY,
    ON(AND) = BINARY, ON(OR) = BINARY, ON(XOR) = BINARY,
    ON(COPYSIGN) = BINARY,
    ON(MIN) = {3, 4, "d0s0s0s0"}, ON(MAX) = {3, 4, "d0s0s0s0"},
    ON(MAD) = TERNARY, ON(MADC) = TERNARY, ON(MAD24) = TERNARY,
    ON(FMA) = TERNARY, ON(SAD) = TERNARY, ON(DP2A) = TERNARY,
    ON(DP4A) = TERNARY, ON(PRMT) = TERNARY,
    ON(SHL) = {3, 3, "d0s0i."}, ON(SHR) = {3, 3, "d0s0i."},
    ON(SHF) = {4, 4, "d0s0s0i."},
    ON(BFE) = {4, 4, "d0s0i.i."}, ON(BFI) = {5, 5, "d0s0s0i.i."},
    ON(BFIND) = {2, 2, "I.s0"}, ON(CLZ) = {2, 2, "I.s0"},
    ON(POPC) = {2, 2, "I.s0"}, ON(FNS) = {4, 4, "I.i.i.i."},
    ON(BMSK) = {3, 3, "d0i.i."}, ON(SZEXT) = {3, 3, "d0s0i."},
    ON(LOP3) = {5, 6, "q.s0s0s0*.p."},
    ON(TESTP) = {2, 2, "P.s0"}, ON(SETP) = {3, 4, "o.s0s0p."},
    ON(SET) = {3, 4, "d0s1s1p."}, ON(SELP) = {4, 4, "d0s0s0p."},
    ON(SLCT) = {4, 4, "d0s0s0s1"},
    ON(MOV) = FREE(2, 2), ON(CVT) = {2, 4, "D0S1"},
    ON(LD) = {2, 3, "D0a."}, ON(LDU) = {2, 3, "D0a."},
    ON(ST) = {2, 3, "a.S0"}, ON(ATOM) = {2, 5, "*.a."},
    ON(RED) = {2, 3, "a.*."}, ON(MULTIMEM) = FREE(2, 5),
    ON(PREFETCH) = {1, 1, "a."}, ON(PREFETCHU) = {1, 1, "a."},
    ON(DISCARD) = {2, 2, "a.*."}, ON(APPLYPRIORITY) = {2, 2, "a.*."},
    ON(CREATEPOLICY) = FREE(1, 5),
    ON(ISSPACEP) = {2, 2, "P.*."}, ON(ISTYPEP) = {2, 2, "P.*."},
    ON(MAPA) = {3, 3, "d0*.i."}, ON(GETCTARANK) = {2, 2, "I.*."},
    ON(BAR) = FREE(1, 4), ON(BARRIER) = FREE(0, 4), ON(MEMBAR) = NONE,
    ON(FENCE) = FREE(0, 2), ON(GRIDDEPCONTROL) = NONE,
    ON(ACTIVEMASK) = {1, 1, "d0"}, ON(VOTE) = {2, 3, "d0p.i."},
    ON(MATCH) = {3, 3, "q.s0i."}, ON(REDUX) = {3, 3, "d0s0i."},
    ON(SHFL) = {4, 5, "q.s0s0s0s0"}, ON(ELECT) = {2, 2, "q.i."},
    ON(MBARRIER) = FREE(1, 5), ON(CP) = FREE(0, 10),
    ON(LDMATRIX) = {2, 2, "*.a."}, ON(STMATRIX) = {2, 2, "a.*."},
    ON(MOVMATRIX) = {2, 2, "I.i."}, ON(MMA) = FREE(4, 10),
    ON(WMMA) = FREE(2, 4), ON(WGMMA) = FREE(0, 10), ON(TCGEN05) = FREE(0, 10),
    ON(TENSORMAP) = FREE(2, 4), ON(CLUSTERLAUNCHCONTROL) = FREE(2, 3),
    ON(SETMAXNREG) = {1, 1, "*."},
    ON(TEX) = FREE(3, 10), ON(TLD4) = FREE(3, 10), ON(TXQ) = FREE(2, 3),
    ON(SULD) = {3, 3, "*.a."}, ON(SUST) = {3, 3, "a."},
    ON(SURED) = {3, 3, "a."}, ON(SUQ) = FREE(2, 2),
    ON(BRA) = {1, 1, "*."}, ON(BRX) = {2, 2, "i.*."}, ON(CALL) = FREE(3, 4),
    ON(RET) = NONE, ON(EXIT) = NONE, ON(TRAP) = NONE, ON(BRKPT) = NONE,
    ON(PMEVENT) = {1, 1, "*."}, ON(NANOSLEEP) = {1, 1, "i."},
    ON(ALLOCA) = FREE(2, 3), ON(STACKSAVE) = {1, 1, "d0"},
    ON(STACKRESTORE) = {1, 1, "d0"},
    ON(VADD) = FREE(3, 4), ON(VSUB) = FREE(3, 4), ON(VABSDIFF) = FREE(3, 4),
    ON(VMIN) = FREE(3, 4), ON(VMAX) = FREE(3, 4), ON(VSHL) = FREE(3, 4),
    ON(VSHR) = FREE(3, 4), ON(VMAD) = FREE(4, 4), ON(VSET) = FREE(3, 4),
    ON(VADD2) = FREE(3, 4), ON(VSUB2) = FREE(3, 4), ON(VAVRG2) = FREE(3, 4),
    ON(VABSDIFF2) = FREE(3, 4), ON(VMIN2) = FREE(3, 4),
    ON(VMAX2) = FREE(3, 4), ON(VSET2) = FREE(3, 4), ON(VADD4) = FREE(3, 4),
    ON(VSUB4) = FREE(3, 4), ON(VAVRG4) = FREE(3, 4),
    ON(VABSDIFF4) = FREE(3, 4), ON(VMIN4) = FREE(3, 4),
    ON(VMAX4) = FREE(3, 4), ON(VSET4) = FREE(3, 4),
};
/* clang-format on */

#undef UNARY
#undef BINARY
#undef TERNARY
#undef NONE
#undef FREE
#undef ON

typedef tps_ptx_instruction instruction;
typedef tps_ptx_operand operand;

/* --- messages */

typedef struct opcode_text {
  char text[104];
} opcode_text;

static const char *opcode(const reader *r, const instruction *i,
                          opcode_text *out) {
  const char *name = tps_ptx_op_names[i->op];
  const char *text = r->text + i->text;
  uint32_t size = i->text_size > 100 ? 100 : i->text_size;
  if (strncmp(text, name, strlen(name)) != 0) return name; /* made by us */
  memcpy(out->text, text, size);
  out->text[size] = '\0';
  return out->text;
}

static _Noreturn void bad(reader *r, const instruction *i, unsigned at,
                          const char *wanted) {
  opcode_text text;
  tps_ptx_stop(r, i->line, "operand %u of '%s' must be %s", at + 1,
               opcode(r, i, &text), wanted);
}

/* --- widths and kinds */

enum { PREDICATE_WIDTH = 100 }; /* unlike every other */

typedef enum sort { BITS, INTEGER, FLOAT } sort;

typedef struct want {
  unsigned bytes;
  sort sort;
  bool wider; /* registers may be */
} want;

static unsigned width(uint8_t type) {
  return type == TPS_PTX_PRED ? PREDICATE_WIDTH : tps_ptx_type_size(type);
}

static sort sort_of(uint8_t type) {
  if (type >= TPS_PTX_U8 && type <= TPS_PTX_S64) return INTEGER;
  return tps_ptx_type_is_float(type) ? FLOAT : BITS;
}

static want want_type(uint8_t type) {
  return (want){width(type), sort_of(type), false};
}

static bool fits(uint8_t type, want w) {
  unsigned has = width(type);
  sort sort = sort_of(type);
  if (sort != BITS && w.sort != BITS && sort != w.sort) return false;
  if (has == w.bytes) return true;
  return w.wider && has > w.bytes && has != PREDICATE_WIDTH &&
         w.bytes != PREDICATE_WIDTH && (sort != FLOAT || w.sort != FLOAT);
}

static void check_type(reader *r, const instruction *i, unsigned at,
                       const operand *o, want w) {
  static const char *const sorts[] = {" register", " integer", " float"};
  opcode_text text;
  if (fits(o->type, w)) return;
  const char *name = AT(r->registers, tps_ptx_register, o->index)->name;
  const char *type = tps_ptx_type_name(o->type);
  if (w.bytes == PREDICATE_WIDTH)
    tps_ptx_stop(r, i->line,
                 "operand %u of '%s': register '%.100s' is .%s, not .pred",
                 at + 1, opcode(r, i, &text), name, type);
  tps_ptx_stop(r, i->line,
               "operand %u of '%s': register '%.100s' is .%s, not %s %u-bit%s",
               at + 1, opcode(r, i, &text), name, type,
               w.bytes == 1 ? "an" : "a", w.bytes * 8, sorts[w.sort]);
}

static void check_register(reader *r, const instruction *i, unsigned at,
                           const operand *o, want w) {
  if (o->kind == TPS_PTX_OPD_SINK) return;
  if (o->kind != TPS_PTX_OPD_REG) bad(r, i, at, "a register");
  check_type(r, i, at, o, w);
}

/* Floats for floats, integers for integers; bits may be either, but a float of
 * their width. Halves have no numbers of their own, so any will do. */
static void check_number(reader *r, const instruction *i, unsigned at,
                         const operand *o, want w) {
  bool is_float = o->type == TPS_PTX_F32 || o->type == TPS_PTX_F64;
  unsigned bytes = o->type == TPS_PTX_F32 ? 4 : 8;
  if (w.sort == FLOAT && w.bytes > 2 && !is_float) bad(r, i, at, "a float");
  if (w.sort == INTEGER && is_float) bad(r, i, at, "an integer");
  if (w.sort == BITS && is_float && w.bytes > 2 && w.bytes != bytes)
    bad(r, i, at, "of the instruction's width");
}

/* %tid and its like were 16 bits wide once, %gridid 32. */
static void check_special(reader *r, const instruction *i, unsigned at,
                          const operand *o, want w) {
  unsigned bytes = tps_ptx_type_size(o->type);
  bool old = (o->index < TPS_PTX_LANEID && w.bytes == 2) ||
             (o->index == TPS_PTX_GRIDID && w.bytes == 4);
  if (o->index == TPS_PTX_IS_EXPLICIT_CLUSTER && w.bytes == PREDICATE_WIDTH)
    return;
  if (w.bytes != bytes && !old) bad(r, i, at, "of the instruction's width");
}

static void check_source(reader *r, const instruction *i, unsigned at,
                         const operand *o, want w) {
  switch (o->kind) {
  case TPS_PTX_OPD_REG: check_type(r, i, at, o, w); return;
  case TPS_PTX_OPD_IMM: check_number(r, i, at, o, w); return;
  case TPS_PTX_OPD_SREG: check_special(r, i, at, o, w); return;
  case TPS_PTX_OPD_VAR:
  case TPS_PTX_OPD_FUNC:
    if (i->op == TPS_PTX_OP_MOV || i->op == TPS_PTX_OP_CVTA) return;
    bad(r, i, at, "a register or a number");
  default: bad(r, i, at, "a register or a number");
  }
}

/* One register, or as many in braces as the vector width says. */
static void check_vector(reader *r, const instruction *i, unsigned at, want w,
                         bool source) {
  opcode_text text;
  const operand *o = &i->operands[at];
  unsigned given = o->kind == TPS_PTX_OPD_VEC ? o->count : 1;
  if (i->op == TPS_PTX_OP_CVT && given > 1) return; /* {a, b, e, f} packed */
  if (given != i->vector)
    tps_ptx_stop(r, i->line, "operand %u of '%s' has %u elements, not %u",
                 at + 1, opcode(r, i, &text), given, i->vector);
  w.wider = true;
  for (unsigned k = 0; k < given; k++) {
    const operand *part = o->kind == TPS_PTX_OPD_VEC
                              ? AT(r->parts, operand, o->first + (int)k)
                              : o;
    if (source && part->kind == TPS_PTX_OPD_SINK && given > 1) continue;
    if (source) check_source(r, i, at, part, w);
    else check_register(r, i, at, part, w);
  }
}

/* Addresses are whole numbers; global and generic ones have the full size. */
static void check_address(reader *r, const instruction *i, unsigned at) {
  opcode_text text;
  const operand *o = &i->operands[at];
  if (o->kind != TPS_PTX_OPD_ADDR || o->base_kind != TPS_PTX_OPD_REG) return;
  unsigned bytes = width(o->type), whole = r->module.address_size / 8;
  bool memory = i->op == TPS_PTX_OP_LD || i->op == TPS_PTX_OP_ST ||
                i->op == TPS_PTX_OP_ATOM || i->op == TPS_PTX_OP_RED;
  bool full = memory && r->address_size_given &&
              (i->space == TPS_PTX_GENERIC || i->space == TPS_PTX_GLOBAL);
  if (sort_of(o->type) != FLOAT && bytes != PREDICATE_WIDTH &&
      (!full || bytes == whole))
    return;
  tps_ptx_stop(r, i->line,
               "operand %u of '%s': register '%.100s' is .%s, not "
               "a %u-bit address",
               at + 1, opcode(r, i, &text),
               AT(r->registers, tps_ptx_register, o->index)->name,
               tps_ptx_type_name(o->type), full ? whole * 8 : 32);
}

/* --- predicates and pairs */

static bool is_predicate(const operand *o) {
  return o->kind == TPS_PTX_OPD_REG && o->type == TPS_PTX_PRED;
}

static void check_predicate(reader *r, const instruction *i, unsigned at,
                            const operand *o, bool source) {
  if (is_predicate(o)) return;
  if (source && o->kind == TPS_PTX_OPD_IMM) return;
  if (!source && o->kind == TPS_PTX_OPD_SINK) return;
  bad(r, i, at, "a predicate");
}

static void check_pair(reader *r, const instruction *i, unsigned at,
                       bool predicates) {
  const operand *o = &i->operands[at], *second = NULL;
  if (o->kind == TPS_PTX_OPD_PAIR) {
    second = AT(r->parts, operand, o->first + 1);
    o = AT(r->parts, operand, o->first);
  }
  if (predicates) check_predicate(r, i, at, o, false);
  else check_register(r, i, at, o, (want){.bytes = 4});
  if (second != NULL) check_predicate(r, i, at, second, false);
}

/* --- rules */

/* The products of mul.wide and mad.wide are of twice the width. */
static want wanted(reader *r, const instruction *i, unsigned at, char number) {
  opcode_text text;
  if (number == '.') return (want){.bytes = 4, .sort = INTEGER};
  unsigned type = (unsigned)(number - '0');
  if (type >= i->type_count)
    tps_ptx_stop(r, i->line, "'%s' lacks a type", opcode(r, i, &text));
  want w = want_type(i->types[type]);
  bool product = at == 0 || at == 3;
  if ((i->op == TPS_PTX_OP_MUL || i->op == TPS_PTX_OP_MAD) && product &&
      tps_ptx_has(i, TPS_PTX_M_WIDE))
    w.bytes *= 2;
  return w;
}

static void check_operand(reader *r, const instruction *i, unsigned at,
                          const char *pattern) {
  const operand *o = &i->operands[at];
  want w = wanted(r, i, at, pattern[1]);
  switch (pattern[0]) {
  case 'd':
  case 'I': check_register(r, i, at, o, w); return;
  case 'D': check_vector(r, i, at, w, false); return;
  case 'S': check_vector(r, i, at, w, true); return;
  case 's':
  case 'i': check_source(r, i, at, o, w); return;
  case 'p': check_predicate(r, i, at, o, true); return;
  case 'P': check_predicate(r, i, at, o, false); return;
  case 'o': check_pair(r, i, at, true); return;
  case 'q': check_pair(r, i, at, false); return;
  case 'a':
    if (o->kind != TPS_PTX_OPD_ADDR) bad(r, i, at, "an address in brackets");
    return;
  default: return;
  }
}

static void check_count(reader *r, const instruction *i, const rule *rule) {
  opcode_text text;
  const char *name = opcode(r, i, &text);
  unsigned given = i->operand_count;
  if (given >= rule->least && given <= rule->most) return;
  if (rule->least == rule->most)
    tps_ptx_stop(r, i->line, "'%s' takes %u operands (%u given)", name,
                 rule->least, given);
  tps_ptx_stop(r, i->line, "'%s' takes %u to %u operands (%u given)", name,
               rule->least, rule->most, given);
}

/* --- instructions with rules of their own */

/* {a, b} of a mov: the pieces fill the whole. */
static void check_pieces(reader *r, const instruction *i, unsigned at) {
  opcode_text text;
  const operand *o = &i->operands[at];
  unsigned whole = width(i->types[0]), sum = 0;
  for (unsigned k = 0; k < o->count; k++) {
    const operand *part = AT(r->parts, operand, o->first + (int)k);
    if (at == 0) {
      if (part->kind != TPS_PTX_OPD_REG && part->kind != TPS_PTX_OPD_SINK)
        bad(r, i, at, "registers in braces");
    } else if (part->kind == TPS_PTX_OPD_VEC ||
               part->kind == TPS_PTX_OPD_PAIR) {
      bad(r, i, at, "registers in braces");
    }
    sum += part->kind == TPS_PTX_OPD_REG ? width(part->type) : whole / o->count;
  }
  if (sum != whole)
    tps_ptx_stop(r, i->line,
                 "operand %u of '%s': the elements have %u bits, "
                 "not %u",
                 at + 1, opcode(r, i, &text), sum * 8, whole * 8);
}

static void check_mov(reader *r, const instruction *i) {
  opcode_text text;
  if (i->type_count == 0)
    tps_ptx_stop(r, i->line, "'%s' lacks a type", opcode(r, i, &text));
  if (i->vector > 1) { /* mov.v4.u32 {…}, %tid of version 1 */
    check_vector(r, i, 0, want_type(i->types[0]), false);
    return;
  }
  for (unsigned at = 0; at < 2; at++) {
    const operand *o = &i->operands[at];
    want w = want_type(i->types[0]);
    if (o->kind == TPS_PTX_OPD_VEC) check_pieces(r, i, at);
    else if (at == 0) check_register(r, i, at, o, w);
    else check_source(r, i, at, o, w);
  }
}

/* Scalars only; a vector's or a pair's elements are the engine's to judge. */
static void check_atomic(reader *r, const instruction *i, unsigned first) {
  opcode_text text;
  if (i->type_count == 0)
    tps_ptx_stop(r, i->line, "'%s' lacks a type", opcode(r, i, &text));
  bool cas = tps_ptx_has(i, TPS_PTX_M_CAS);
  unsigned values = cas ? 2 : 1;
  if (i->operand_count < first + values)
    tps_ptx_stop(r, i->line, "'%s' takes %u operands (%u given)",
                 opcode(r, i, &text), first + values, i->operand_count);
  if (i->vector > 1) return;
  want w = want_type(i->types[0]);
  if (first == 2) check_register(r, i, 0, &i->operands[0], w);
  for (unsigned at = first; at < first + values; at++)
    check_source(r, i, at, &i->operands[at], w);
}

/* add.f32.f16 and its like: the first type is the result's. */
static bool is_mixed(const instruction *i) {
  return (i->op == TPS_PTX_OP_ADD || i->op == TPS_PTX_OP_SUB ||
          i->op == TPS_PTX_OP_FMA) &&
         i->type_count > 1;
}

/* st.bulk [a], size, 0 has no type. */
static bool is_bulk_store(const instruction *i) {
  return i->op == TPS_PTX_OP_ST && tps_ptx_has(i, TPS_PTX_M_BULK);
}

static void check_all(reader *r, const instruction *i) {
  opcode_text text;
  for (unsigned at = 0; at < i->operand_count; at++) {
    const operand *o = &i->operands[at];
    check_address(r, i, at);
    if (o->negated && o->type != TPS_PTX_PRED && i->op != TPS_PTX_OP_VMAD)
      tps_ptx_stop(r, i->line, "operand %u of '%s' can't be negated", at + 1,
                   opcode(r, i, &text));
  }
}

void tps_ptx_check(reader *r, const tps_ptx_instruction *i) {
  const rule *rule = &rules[i->op];
  check_count(r, i, rule);
  check_all(r, i);
  if (is_mixed(i) || is_bulk_store(i)) return;
  const char *pattern = rule->pattern;
  for (unsigned at = 0; at < i->operand_count && *pattern != '\0';
       at++, pattern += 2)
    check_operand(r, i, at, pattern);
  if (i->op == TPS_PTX_OP_MOV) check_mov(r, i);
  else if (i->op == TPS_PTX_OP_ATOM) check_atomic(r, i, 2);
  else if (i->op == TPS_PTX_OP_RED) check_atomic(r, i, 1);
}
