/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Variables of memory spaces: declarations, array dimensions, alignment.
 */
#include "ptx/initialiser.h"
#include "ptx/reader.h"

#include <string.h>

#define LARGEST ((uint64_t)1 << 40)

/* --- what stands before the name */

static void read_align(reader *r, declaration *d) {
  uint32_t line = r->tok.line;
  uint64_t align = tps_ptx_unsigned(r, "alignment", 1 << 20);
  if (align == 0 || (align & (align - 1)) != 0)
    tps_ptx_stop(r, line, "alignment of %llu is not a power of 2",
                 (unsigned long long)align);
  if (!d->pointer) d->align = (uint32_t)align; /* else of what it points to */
}

/* .attribute(.managed, .unified(1, 2)) */
static void read_attributes(reader *r, declaration *d) {
  tps_ptx_expect(r, '(', "'.attribute'");
  int open = 1;
  while (open > 0) {
    if (tps_ptx_is_word(r, "managed")) d->managed = true;
    else if (tps_ptx_is(r, '(')) open++;
    else if (tps_ptx_is(r, ')')) open--;
    else if (!tps_ptx_is(r, T_WORD) && !tps_ptx_is(r, ',') &&
             !tps_ptx_is(r, T_INTEGER))
      tps_ptx_unexpected(r, "an attribute");
    tps_ptx_next(r);
  }
}

static void skip_bank(reader *r) {
  if (!tps_ptx_accept(r, '[')) return;
  if (!tps_ptx_is(r, ']')) tps_ptx_unsigned(r, "bank", 1000);
  tps_ptx_expect(r, ']', "a bank of constant memory");
}

static int vector_width(const reader *r) {
  return tps_ptx_is_word(r, "v2")   ? 2
         : tps_ptx_is_word(r, "v4") ? 4
         : tps_ptx_is_word(r, "v8") ? 8
                                    : 0;
}

static void read_type(reader *r, declaration *d) {
  char found[80];
  int type = tps_ptx_find_type(r->text + r->tok.at, r->tok.size);
  if (type == TPS_PTX_NOTYPE)
    tps_ptx_stop(r, r->tok.line, "unknown directive or type %s",
                 tps_ptx_token_text(r, found));
  if (d->type != TPS_PTX_NOTYPE)
    tps_ptx_stop(r, r->tok.line, "a second type %s",
                 tps_ptx_token_text(r, found));
  d->type = (uint8_t)type;
}

static void read_word(reader *r, declaration *d) {
  if (tps_ptx_accept_word(r, "align")) {
    read_align(r, d);
  } else if (tps_ptx_accept_word(r, "attribute")) {
    read_attributes(r, d);
  } else if (tps_ptx_is_word(r, "ptr") && d->space == TPS_PTX_PARAM) {
    d->pointer = true;
    tps_ptx_next(r);
  } else if (d->pointer &&
             tps_ptx_find_space(r->text + r->tok.at, r->tok.size)) {
    tps_ptx_next(r);
  } else if (vector_width(r)) {
    d->vector = (uint8_t)vector_width(r);
    tps_ptx_next(r);
  } else {
    read_type(r, d);
    tps_ptx_next(r);
  }
}

declaration tps_ptx_declaration(reader *r, tps_ptx_space space,
                                uint8_t linkage) {
  declaration d = {.space = (uint8_t)space, .linkage = linkage, .vector = 1};
  if (space == TPS_PTX_CONST) skip_bank(r);
  while (tps_ptx_is(r, T_WORD)) read_word(r, &d);
  if (d.type == TPS_PTX_NOTYPE) tps_ptx_unexpected(r, "a type");
  if (d.type == TPS_PTX_PRED && space != TPS_PTX_REG)
    tps_ptx_stop(r, r->tok.line, "a predicate can only be a register");
  return d;
}

/* --- the name, its dimensions, its value */

static void check_size(reader *r, const tps_ptx_var *var, uint64_t factor,
                       uint32_t element) {
  if (factor != 0 && var->count > LARGEST / element / factor)
    tps_ptx_stop(r, r->tok.line, "variable '%.200s' of more than %llu bytes",
                 var->name, (unsigned long long)LARGEST);
}

/* [2][3]: into shape; true when the first is []. */
static bool read_dimensions(reader *r, tps_ptx_var *var, shape *s) {
  bool open = false;
  uint32_t element = tps_ptx_type_size(var->type);
  while (tps_ptx_accept(r, '[')) {
    uint64_t n = 0;
    if (s->count == SHAPE_MOST - 1)
      tps_ptx_stop(r, r->tok.line, "'%.200s' has more than %d dimensions",
                   var->name, SHAPE_MOST - 1);
    if (!tps_ptx_is(r, ']')) n = tps_ptx_unsigned(r, "array size", LARGEST);
    else if (s->count == 0) open = true;
    else tps_ptx_unexpected(r, "the size of an array");
    tps_ptx_expect(r, ']', "the size of an array");
    if (s->count > 0 || !open) {
      check_size(r, var, n, element);
      var->count *= n;
    }
    s->sizes[s->count++] = n;
  }
  return open;
}

static bool may_be_open(const declaration *d) {
  return d->linkage == 2 || d->space == TPS_PTX_PARAM;
}

tps_ptx_var tps_ptx_declarator(reader *r, const declaration *d,
                               int32_t *name_out) {
  if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "the name of a variable");
  int32_t n = *name_out = tps_ptx_token_name(r);
  uint32_t element = tps_ptx_type_size(d->type);
  tps_ptx_var var = {
      .name = tps_ptx_name_text(r, n),
      .space = d->space,
      .type = d->type,
      .linkage = d->linkage,
      .managed = d->managed,
      .pointer = d->pointer,
      .align = d->align ? d->align : element * d->vector,
      .count = 1,
      .line = r->tok.line,
  };
  shape s = {.count = 0};
  tps_ptx_next(r);
  bool open = read_dimensions(r, &var, &s);
  if (d->vector > 1) s.sizes[s.count++] = d->vector;
  check_size(r, &var, d->vector, element);
  var.count *= d->vector;
  if (tps_ptx_is(r, '=')) {
    tps_ptx_next(r);
    tps_ptx_initialiser(r, &var, &s, open);
  } else if (open && !may_be_open(d)) {
    tps_ptx_stop(r, var.line, "array '%.200s' has no size", var.name);
  } else if (open) {
    var.unsized = true;
    var.count = 0;
  }
  var.size = var.count * element;
  return var;
}

uint64_t tps_ptx_place(reader *r, uint64_t *bytes, const tps_ptx_var *var,
                       uint64_t limit) {
  uint64_t align = var->align ? var->align : 1;
  uint64_t offset = (*bytes + align - 1) & ~(align - 1);
  if (var->size > limit || offset > limit - var->size)
    tps_ptx_stop(r, var->line, "'%.200s' goes beyond %llu bytes of .%s memory",
                 var->name, (unsigned long long)limit,
                 tps_ptx_space_name(var->space));
  if (!var->unsized) *bytes = offset + var->size;
  return offset;
}

/* --- where it belongs */

/* An extern declaration and its definition are one variable. */
static bool is_redeclaration(reader *r, const tps_ptx_var *var, int32_t n) {
  const symbol *s = tps_ptx_lookup(r, n);
  if (s == NULL || s->kind != SYM_MODULE_VAR) return false;
  tps_ptx_var *old = AT(r->vars, tps_ptx_var, s->index);
  if (old->linkage != 2 && var->linkage != 2 &&
      !(old->linkage >= 3 && var->linkage >= 3))
    return false;
  if (old->space != var->space)
    tps_ptx_stop(r, var->line, "'%.200s' was in .%s memory on line %u",
                 var->name, tps_ptx_space_name(old->space), old->line);
  if (var->linkage != 2) *old = *var;
  return true;
}

static void add_module_var(reader *r, const tps_ptx_var *var, int32_t n) {
  if (var->space == TPS_PTX_LOCAL || var->space == TPS_PTX_PARAM)
    tps_ptx_stop(r, var->line, "'%.200s' is in .%s memory outside a function",
                 var->name, tps_ptx_space_name(var->space));
  if (is_redeclaration(r, var, n)) return;
  tps_ptx_declare(r, n, SYM_MODULE_VAR, (int32_t)COUNT(r->vars, tps_ptx_var),
                  1);
  *(tps_ptx_var *)tps_ptx_push(r, &r->vars, sizeof *var) = *var;
}

void tps_ptx_variables(reader *r, tps_ptx_space space, uint8_t linkage) {
  tps_ptx_next(r);
  declaration d = tps_ptx_declaration(r, space, linkage);
  do {
    int32_t n;
    tps_ptx_var var = tps_ptx_declarator(r, &d, &n);
    if (r->function == NULL) add_module_var(r, &var, n);
    else tps_ptx_declare(r, n, SYM_LOCAL_VAR, tps_ptx_add_local(r, &var), 1);
  } while (tps_ptx_accept(r, ','));
  tps_ptx_expect(r, ';', "a declaration");
}
