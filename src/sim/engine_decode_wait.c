/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Whether a wait for an mbarrier stands in a loop that does nothing else until
 * the wait succeeds: then its threads may sleep, and one that sleeps for ever
 * is a deadlock. The code behind the wait is followed with "not yet" as its
 * result. Constants are carried along, so that branches on the result are
 * decided; branches on anything else (a clock, a count of tries) are followed
 * both ways. All ways must lead back to the wait, over instructions that touch
 * no memory and tell nobody anything, and leave what it waits for as it is.
 */
#include "sim/engine_decode.h"

enum { MOST_KNOWN = 16, MOST_PLACES = 64, MOST_STEPS = 400 };

typedef struct known {
  int32_t reg;
  int64_t value;
} known;

/* Registers whose values are known, sorted by number. */
typedef struct facts {
  known list[MOST_KNOWN];
  unsigned count;
} facts;

typedef struct place {
  uint32_t at;
  facts facts;
} place;

typedef struct walk {
  const builder *b;
  const ptx_insn *wait;
  place places[MOST_PLACES]; /* seen, those from `next` on not yet followed */
  unsigned count, next;
  unsigned steps;
  bool failed;
} walk;

/* --- what is known ------------------------------------------------------- */

static void forget(facts *f, int32_t reg) {
  for (unsigned k = 0; k < f->count; k++) {
    if (f->list[k].reg != reg) continue;
    memmove(&f->list[k], &f->list[k + 1], (f->count - k - 1) * sizeof *f->list);
    f->count--;
    return;
  }
}

static void learn(facts *f, int32_t reg, int64_t value) {
  unsigned k;
  forget(f, reg);
  if (f->count == MOST_KNOWN) return;
  for (k = f->count; k > 0 && f->list[k - 1].reg > reg; k--)
    f->list[k] = f->list[k - 1];
  f->list[k] = (known){reg, value};
  f->count++;
}

static bool value_of(const facts *f, const ptx_opd *o, int64_t *value) {
  *value = o->value;
  if (o->kind == TPS_PTX_OPD_IMM) return true;
  if (o->kind != TPS_PTX_OPD_REG) return false;
  for (unsigned k = 0; k < f->count; k++) {
    if (f->list[k].reg != o->index) continue;
    bool flips = o->negated && o->type == TPS_PTX_PRED;
    *value = flips ? !f->list[k].value : f->list[k].value;
    return !o->negated || flips;
  }
  return false;
}

static bool same_facts(const facts *x, const facts *y) {
  if (x->count != y->count) return false;
  for (unsigned k = 0; k < x->count; k++)
    if (x->list[k].reg != y->list[k].reg ||
        x->list[k].value != y->list[k].value)
      return false;
  return true;
}

/* --- one instruction ----------------------------------------------------- */

/* The value of an instruction on small whole numbers and predicates. */
static bool evaluate(const facts *f, const ptx_insn *p, int64_t *out) {
  int64_t x, y, z;
  const ptx_opd *o = p->operands;
  switch (p->op) {
  case TPS_PTX_OP_MOV: return value_of(f, &o[1], out);
  case TPS_PTX_OP_NOT:
    if (!value_of(f, &o[1], &x) || p->types[0] != TPS_PTX_PRED) return false;
    *out = !x;
    return true;
  case TPS_PTX_OP_SELP:
    if (!value_of(f, &o[3], &z)) return false;
    return value_of(f, z ? &o[1] : &o[2], out);
  case TPS_PTX_OP_SETP:
    if (p->operand_count != 3 || o[0].kind != TPS_PTX_OPD_REG ||
        !is_integer(p->types[0]) || !value_of(f, &o[1], &x) ||
        !value_of(f, &o[2], &y))
      return false;
    z = is_wide(p->types[0]) ? -1
                             : ((int64_t)1 << bits_of_type(p->types[0])) - 1;
    if (tps_ptx_has(p, TPS_PTX_M_EQ)) *out = (x & z) == (y & z);
    else if (tps_ptx_has(p, TPS_PTX_M_NE)) *out = (x & z) != (y & z);
    else return false;
    return true;
  case TPS_PTX_OP_AND:
  case TPS_PTX_OP_OR:
  case TPS_PTX_OP_XOR:
    if (!value_of(f, &o[1], &x) || !value_of(f, &o[2], &y)) return false;
    *out = p->op == TPS_PTX_OP_AND  ? x & y
           : p->op == TPS_PTX_OP_OR ? x | y
                                    : x ^ y;
    return true;
  default: return false;
  }
}

/* Instructions of which nobody but their destination hears. */
static bool is_private(const ptx_insn *p) {
  switch (p->op) {
  /* clang-format off */
  case TPS_PTX_OP_MOV: case TPS_PTX_OP_NOT: case TPS_PTX_OP_SELP:
  case TPS_PTX_OP_SETP: case TPS_PTX_OP_AND: case TPS_PTX_OP_OR:
  case TPS_PTX_OP_XOR: case TPS_PTX_OP_ADD: case TPS_PTX_OP_SUB:
  case TPS_PTX_OP_MUL: case TPS_PTX_OP_MAD: case TPS_PTX_OP_SHL:
  case TPS_PTX_OP_SHR: case TPS_PTX_OP_CVT: case TPS_PTX_OP_CVTA:
  case TPS_PTX_OP_MIN: case TPS_PTX_OP_MAX: case TPS_PTX_OP_NANOSLEEP:
    return true;
    /* clang-format on */
  default: return false;
  }
}

/* Whether the wait reads the register. */
static bool is_input(const walk *w, int32_t reg) {
  if (w->wait->guard == reg) return true;
  for (unsigned k = 1; k < w->wait->operand_count; k++) {
    const ptx_opd *o = &w->wait->operands[k];
    bool names =
        o->kind == TPS_PTX_OPD_REG ||
        (o->kind == TPS_PTX_OPD_ADDR && o->base_kind == TPS_PTX_OPD_REG);
    if (names && o->index == reg) return true;
  }
  return false;
}

/* mov of the address of a variable, or of a number. */
static bool is_constant(const ptx_insn *p) {
  return p->op == TPS_PTX_OP_MOV && (p->operands[1].kind == TPS_PTX_OPD_VAR ||
                                     p->operands[1].kind == TPS_PTX_OPD_IMM);
}

static void define(walk *w, facts *f, const ptx_insn *p, const ptx_opd *d,
                   bool certain) {
  int64_t value;
  if (d->kind != TPS_PTX_OPD_REG) return;
  if (is_input(w, d->index) && !is_constant(p)) w->failed = true;
  if (certain && evaluate(f, p, &value)) learn(f, d->index, value);
  else forget(f, d->index);
}

static void define_all(walk *w, facts *f, const ptx_insn *p, bool certain) {
  if (p->op == TPS_PTX_OP_NANOSLEEP || p->operand_count == 0) return;
  const ptx_opd *d = &p->operands[0];
  if (!is_group(d)) {
    define(w, f, p, d, certain);
    return;
  }
  for (unsigned k = 0; k < d->count; k++)
    define(w, f, p, part_of(w->b, d, k), false);
}

/* --- the walk ------------------------------------------------------------ */

static void go(walk *w, int32_t at, const facts *f) {
  for (unsigned k = 0; k < w->count; k++)
    if (w->places[k].at == (uint32_t)at && same_facts(&w->places[k].facts, f))
      return;
  if (w->count == MOST_PLACES || (uint32_t)at >= w->b->fn->instruction_count) {
    w->failed = true;
    return;
  }
  w->places[w->count++] = (place){(uint32_t)at, *f};
}

/* Whether the instruction's guard holds: 1, 0, or -1 when it is not known. */
static int guard_of(const facts *f, const ptx_insn *p) {
  int64_t value;
  ptx_opd o = {.kind = TPS_PTX_OPD_REG,
               .index = p->guard,
               .type = TPS_PTX_PRED,
               .negated = p->guard_negated};
  if (p->guard < 0) return 1;
  return value_of(f, &o, &value) ? value != 0 : -1;
}

/* Follows straight code up to a branch or the wait. */
static void follow(walk *w, place from) {
  facts *f = &from.facts;
  const ptx_insn *all = w->b->fn->instructions;
  for (uint32_t at = from.at; !w->failed; at++) {
    const ptx_insn *p = &all[at];
    int guard = guard_of(f, p);
    if (p == w->wait && guard == 1) return;
    if (++w->steps > MOST_STEPS || at + 1 >= w->b->fn->instruction_count) break;
    if (guard == 0) continue;
    if (p->op == TPS_PTX_OP_BRA) {
      if (guard != 1) go(w, (int32_t)at + 1, f);
      go(w, p->operands[0].index, f);
      return;
    }
    if (!is_private(p)) break;
    define_all(w, f, p, guard == 1);
  }
  w->failed = true;
}

bool tps_sim_only_waits(const builder *b) {
  walk w = {.b = b, .wait = b->p};
  facts f = {.count = 0};
  const ptx_opd *d = opd(b, 0);
  if (d->kind != TPS_PTX_OPD_REG || b->p->guard >= 0) return false;
  learn(&f, d->index, 0);
  go(&w, b->at + 1, &f);
  while (!w.failed && w.next < w.count) follow(&w, w.places[w.next++]);
  return !w.failed;
}

bool tps_sim_only_spins(const builder *b, uint32_t *first, uint32_t *last) {
  enum { MOST = 16 };
  const ptx_insn *all = b->fn->instructions;
  uint32_t at = (uint32_t)b->at, count = b->fn->instruction_count, end = at + 1;
  while (end < count && end - at < MOST && is_private(&all[end])) end++;
  if (end >= count || all[end].op != TPS_PTX_OP_BRA || all[end].guard < 0)
    return false;
  int64_t target = all[end].operands[0].index;
  if (target > at || at - target > MOST) return false;
  for (uint32_t k = (uint32_t)target; k < at; k++)
    if (!is_private(&all[k])) return false;
  *first = (uint32_t)target, *last = end;
  return b->p->guard < 0;
}
