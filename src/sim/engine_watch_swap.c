/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Compare and swap, of which programs make atomic operations that the hardware
 * lacks. Two habits have to be known for what they are:
 *
 * - the first guess at what the memory holds is read plainly, before the loop (the
 *   toolkit's own headers do): it is as good as an atomic load;
 * - an atomic byte is swapped with the word around it (libcu++ does): the word is
 *   found by an and with -4, and the other bytes are not meant.
 *
 * Addresses are compared as a register or a variable and a number, followed back
 * over additions and moves.
 */
#include <stdlib.h>

#include "sim/engine_atomic.h"
#include "sim/engine_decode.h"
#include "sim/engine_watch.h"

enum { NONE = -1, MANY = -2 };

/* The one instruction that writes each register of a function, or NONE, MANY. */
typedef struct definitions {
  const tps_ptx_function *f;
  int32_t *by;
} definitions;

typedef struct where {
  uint8_t kind; /* of the base: a register, a variable, a number */
  bool local;
  int32_t index;
  uint64_t offset;
  bool word; /* what lies below was rounded down to a multiple of 4 */
} where;

/* --- definitions --------------------------------------------------------- */

static void define(definitions *d, const ptx_opd *o, int32_t at) {
  if (o->kind == TPS_PTX_OPD_REG)
    d->by[o->index] = d->by[o->index] == NONE ? at : MANY;
  for (unsigned k = 0; is_group(o) && k < o->count; k++)
    define(d, &d->f->parts[o->first + (int32_t)k], at);
}

static bool find_definitions(definitions *d, const tps_ptx_function *f) {
  d->f = f;
  d->by = malloc((f->register_count + 1) * sizeof *d->by);
  if (!d->by) return false;
  for (uint32_t k = 0; k < f->register_count; k++) d->by[k] = NONE;
  for (uint32_t k = 0; k < f->instruction_count; k++)
    if (tps_ptx_destinations(&f->instructions[k]))
      define(d, &f->instructions[k].operands[0], (int32_t)k);
  return true;
}

/* --- addresses ----------------------------------------------------------- */

/* Takes the base from `from`, if it is one. */
static bool rest_on(where *w, const ptx_opd *from) {
  if (from->kind != TPS_PTX_OPD_REG && from->kind != TPS_PTX_OPD_VAR)
    return false;
  w->kind = from->kind;
  w->local = from->local;
  w->index = from->index;
  if (from->kind == TPS_PTX_OPD_VAR) w->offset += (uint64_t)from->value;
  return true;
}

/* One step back; false where there is none. */
static bool go_back(const definitions *d, where *w) {
  int32_t at = w->kind == TPS_PTX_OPD_REG ? d->by[w->index] : NONE;
  if (at < 0 || w->word) return false;
  const ptx_insn *p = &d->f->instructions[at];
  if (p->guard >= 0 || p->operand_count < 2) return false;
  const ptx_opd *last = &p->operands[p->operand_count - 1];
  bool number = last->kind == TPS_PTX_OPD_IMM;
  switch (p->op) {
  case TPS_PTX_OP_MOV:
  case TPS_PTX_OP_CVTA: return rest_on(w, &p->operands[1]);
  case TPS_PTX_OP_ADD:
    if (!number || !rest_on(w, &p->operands[1])) return false;
    w->offset += (uint64_t)last->value;
    return true;
  case TPS_PTX_OP_AND:
    w->word = number && (uint32_t)last->value == (uint32_t)-4;
    return false;
  default: return false;
  }
}

static where address_of(const definitions *d, const ptx_opd *o) {
  where w = {o->base_kind, o->local, o->index, (uint64_t)o->value, false};
  for (unsigned k = 0; k < 16 && go_back(d, &w); k++) continue;
  return w;
}

static bool is_same(const where *a, const where *b) {
  return a->kind == b->kind && a->local == b->local && a->index == b->index &&
         a->offset == b->offset;
}

/* --- sites --------------------------------------------------------------- */

static bool is_load(const struct tps_sim_kernel *k, const insn *i) {
  return k->sites[i - k->insns].kind == WATCH_LOAD && i->ptx >= 0;
}

static bool is_swap(const insn *i) {
  if (i->op == H_atom_128) return i->c != NO_OPERAND;
  return i->op == H_atom && (i->f & 255) == ATOM_CAS;
}

static const ptx_opd *address_operand(const definitions *d, const insn *i) {
  const ptx_insn *p = &d->f->instructions[i->ptx];
  bool second = p->operand_count > 1 && p->operands[1].kind == TPS_PTX_OPD_ADDR;
  return second ? &p->operands[1] : NULL;
}

static void look_at_loads(struct tps_sim_kernel *kernel, const definitions *d,
                          const function *f, const where *swap) {
  for (const insn *i = f->entry; i < f->end; i++) {
    const ptx_opd *o = is_load(kernel, i) ? address_operand(d, i) : NULL;
    if (!o) continue;
    where w = address_of(d, o);
    watch_site *site = &kernel->sites[i - kernel->insns];
    if (is_same(&w, swap)) site->order |= WATCH_STRONG;
    site->part |= w.word;
  }
}

static void look_at(struct tps_sim_kernel *kernel, const function *f) {
  definitions d = {NULL, NULL};
  for (const insn *i = f->entry; i < f->end; i++) {
    if (!is_swap(i) || i->ptx < 0) continue;
    if (!d.by && !find_definitions(&d, f->ptx)) return;
    const ptx_opd *o = address_operand(&d, i);
    if (!o) continue;
    where w = address_of(&d, o);
    kernel->sites[i - kernel->insns].part = w.word;
    look_at_loads(kernel, &d, f, &w);
  }
  free(d.by);
}

void tps_sim_watch_swaps(struct tps_sim_kernel *kernel) {
  uint32_t count = kernel->code->module->function_count;
  for (uint32_t k = 0; k < count; k++)
    if (kernel->functions[k]) look_at(kernel, kernel->functions[k]);
}
