/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Kernels and functions: names, parameters, directives; the areas that their
 * variables are placed in. A .reg parameter becomes a variable of .param memory
 * and a register.
 */
#include "ptx/reader.h"

#include <string.h>

enum {
  KERNEL_PARAM_LIMIT = 32764, /* from PTX 8.1 on, for sm_70 and newer */
  OLD_PARAM_LIMIT = 4352,
  AREA_LIMIT = 1 << 30,
  MOST_RESULTS = 16
};

/* --- areas */

static void place_in(reader *r, uint32_t *area, tps_ptx_var *var,
                     uint32_t limit) {
  uint64_t bytes = *area;
  var->offset = tps_ptx_place(r, &bytes, var, limit);
  *area = (uint32_t)bytes;
}

int32_t tps_ptx_add_local(reader *r, tps_ptx_var *var) {
  tps_ptx_function *f = r->function;
  var->role = TPS_PTX_FUNCTION_VAR;
  if (var->space == TPS_PTX_LOCAL) {
    place_in(r, &f->local_bytes, var, AREA_LIMIT);
  } else if (var->space == TPS_PTX_SHARED && !var->unsized) {
    place_in(r, &f->shared_bytes, var, AREA_LIMIT);
  } else if (var->space == TPS_PTX_PARAM) {
    var->role = TPS_PTX_CALL_PARAM;
    var->offset = tps_ptx_place(r, &r->call_bytes, var, AREA_LIMIT);
    if (r->call_bytes > f->call_bytes) f->call_bytes = (uint32_t)r->call_bytes;
  }
  *(tps_ptx_var *)tps_ptx_push(r, &r->locals, sizeof *var) = *var;
  return (int32_t)COUNT(r->locals, tps_ptx_var) - 1;
}

/* --- parameters */

static tps_ptx_var read_param(reader *r, tps_ptx_role role) {
  int32_t n;
  bool reg = tps_ptx_is_word(r, "reg");
  if (!reg && !tps_ptx_is_word(r, "param"))
    tps_ptx_unexpected(r, "a parameter");
  tps_ptx_next(r);
  declaration d = tps_ptx_declaration(r, TPS_PTX_PARAM, 0);
  if (reg && d.vector > 1)
    tps_ptx_stop(r, r->tok.line, "a vector register as a parameter");
  tps_ptx_var var = tps_ptx_declarator(r, &d, &n);
  if (var.init != NULL)
    tps_ptx_stop(r, var.line, "parameter '%.200s' has a value", var.name);
  if (reg) var.space = TPS_PTX_REG; /* until the body begins */
  var.role = (uint8_t)role;
  return var;
}

uint32_t tps_ptx_params(reader *r, buffer *list, tps_ptx_role role) {
  uint32_t count = 0;
  tps_ptx_expect(r, '(', "the head of a function");
  while (!tps_ptx_is(r, ')')) {
    tps_ptx_var var = read_param(r, role);
    *(tps_ptx_var *)tps_ptx_push(r, list, sizeof var) = var;
    count++;
    if (!tps_ptx_accept(r, ',')) break;
  }
  tps_ptx_expect(r, ')', "a parameter");
  return count;
}

static void place_params(reader *r, tps_ptx_function *f) {
  bool large = r->module.version >= 81 && r->module.target >= 70;
  uint32_t limit = large ? KERNEL_PARAM_LIMIT : OLD_PARAM_LIMIT;
  if (!f->entry) limit = AREA_LIMIT;
  for (uint32_t i = 0; i < COUNT(r->locals, tps_ptx_var); i++) {
    tps_ptx_var *var = AT(r->locals, tps_ptx_var, i);
    bool reg = var->space == TPS_PTX_REG;
    var->space = TPS_PTX_PARAM;
    place_in(r, i < f->return_count ? &f->return_bytes : &f->input_bytes, var,
             limit);
    if (reg) var->space = TPS_PTX_REG;
  }
}

/* Puts the parameters' names in the function's own scope. */
static void declare_params(reader *r, const tps_ptx_function *f) {
  for (uint32_t i = 0; i < COUNT(r->locals, tps_ptx_var); i++) {
    tps_ptx_var *var = AT(r->locals, tps_ptx_var, i);
    int32_t n = tps_ptx_intern(r, var->name, (uint32_t)strlen(var->name));
    if (var->space != TPS_PTX_REG) {
      tps_ptx_declare(r, n, SYM_LOCAL_VAR, (int32_t)i, 1);
      continue;
    }
    var->space = TPS_PTX_PARAM;
    int32_t reg = tps_ptx_add_register(r, var->name, var->type);
    tps_ptx_declare(r, n, SYM_REGISTER, reg, 1);
    *(reg_param *)tps_ptx_push(r, &r->reg_params, sizeof(reg_param)) =
        (reg_param){(int32_t)i, reg, i < f->return_count};
  }
}

/* --- directives between head and body */

static void read_extents(reader *r, uint32_t extents[3]) {
  for (int i = 0; i < 3; i++) extents[i] = 1;
  for (int i = 0; i < 3; i++) {
    extents[i] = (uint32_t)tps_ptx_unsigned(r, "extent", INT32_MAX);
    if (!tps_ptx_accept(r, ',')) break;
  }
}

static uint32_t read_number(reader *r) {
  return (uint32_t)tps_ptx_unsigned(r, "value", INT32_MAX);
}

static void skip_parentheses(reader *r) {
  int open = 0;
  do {
    if (tps_ptx_is(r, '(')) open++;
    else if (tps_ptx_is(r, ')')) open--;
    else if (open == 0 || tps_ptx_is(r, T_END)) tps_ptx_unexpected(r, "'('");
    tps_ptx_next(r);
  } while (open > 0);
}

static void read_directive(reader *r, tps_ptx_function *f) {
  char found[80];
  if (tps_ptx_accept_word(r, "maxntid")) read_extents(r, f->maxntid);
  else if (tps_ptx_accept_word(r, "reqntid")) read_extents(r, f->reqntid);
  else if (tps_ptx_accept_word(r, "reqnctapercluster"))
    read_extents(r, f->reqnctapercluster);
  else if (tps_ptx_accept_word(r, "minnctapersm"))
    f->minnctapersm = read_number(r);
  else if (tps_ptx_accept_word(r, "maxnreg")) f->maxnreg = read_number(r);
  else if (tps_ptx_accept_word(r, "maxnctapersm") ||
           tps_ptx_accept_word(r, "maxclusterrank") ||
           tps_ptx_accept_word(r, "abi_preserve") ||
           tps_ptx_accept_word(r, "abi_preserve_control"))
    read_number(r);
  else if (tps_ptx_accept_word(r, "noreturn")) f->noreturn = true;
  else if (tps_ptx_is_word(r, "pragma")) tps_ptx_skip_pragma(r);
  else if (tps_ptx_accept_word(r, "attribute")) skip_parentheses(r);
  else if (!tps_ptx_accept_word(r, "explicitcluster") &&
           !tps_ptx_accept_word(r, "blocksareclusters"))
    tps_ptx_stop(r, r->tok.line, "unknown directive %s of '%.200s'",
                 tps_ptx_token_text(r, found), f->name);
}

/* --- declarations and definitions */

static void compare(reader *r, const tps_ptx_function *old,
                    const tps_ptx_function *f) {
  bool same = old->entry == f->entry && old->input_count == f->input_count &&
              old->return_count == f->return_count &&
              old->input_bytes == f->input_bytes &&
              old->return_bytes == f->return_bytes;
  bool bare = old->declared_only && old->input_count + old->return_count == 0;
  if (!same && !(bare && old->entry == f->entry))
    tps_ptx_stop(r, f->line, "'%.200s' differs from its declaration on line %u",
                 f->name, old->line);
}

/* Enters the function, over an earlier declaration of it if there is one. */
static tps_ptx_function *enter(reader *r, int32_t n, tps_ptx_function *f,
                               bool has_body) {
  const symbol *s = tps_ptx_lookup(r, n);
  if (s == NULL || s->kind != SYM_FUNCTION) {
    tps_ptx_declare(r, n, SYM_FUNCTION,
                    (int32_t)COUNT(r->functions, tps_ptx_function), 1);
    tps_ptx_function *own = tps_ptx_push(r, &r->functions, sizeof *f);
    *own = *f;
    return own;
  }
  tps_ptx_function *old = AT(r->functions, tps_ptx_function, s->index);
  compare(r, old, f);
  if (has_body && !old->declared_only)
    tps_ptx_stop(r, f->line, "'%.200s' is already defined on line %u", f->name,
                 old->line);
  f->noreturn |= old->noreturn;
  if (f->linkage == 0 || f->linkage == 2)
    f->linkage = old->linkage == 2 ? f->linkage : old->linkage;
  if (has_body || old->declared_only) *old = *f;
  return old;
}

static void reset(reader *r) {
  r->registers.used = r->locals.used = r->instructions.used = 0;
  r->parts.used = r->tables.used = r->operand_stack.used = 0;
  r->reg_params.used = r->after.used = 0;
  r->call_bytes = 0;
  r->label_end = 0;
  r->loc = -1;
}

static int32_t read_head(reader *r, tps_ptx_function *f) {
  tps_ptx_next(r);
  if (tps_ptx_accept_word(r, "attribute")) skip_parentheses(r);
  if (!f->entry && tps_ptx_is(r, '('))
    f->return_count = tps_ptx_params(r, &r->locals, TPS_PTX_RETURN_PARAM);
  if (f->return_count > MOST_RESULTS) /* each may cost a store at each ret */
    tps_ptx_stop(r, r->tok.line, "%u results (limit %d)", f->return_count,
                 MOST_RESULTS);
  if (!tps_ptx_is(r, T_NAME))
    tps_ptx_unexpected(r, f->entry ? "the name of a kernel"
                                   : "the name of a function");
  int32_t n = tps_ptx_token_name(r);
  f->name = tps_ptx_name_text(r, n);
  f->line = r->tok.line;
  tps_ptx_next(r);
  if (tps_ptx_is(r, '('))
    f->input_count = tps_ptx_params(r, &r->locals, TPS_PTX_INPUT_PARAM);
  while (tps_ptx_is(r, T_WORD)) read_directive(r, f);
  return n;
}

void tps_ptx_function_read(reader *r, bool entry, uint8_t linkage) {
  tps_ptx_function head = {
      .entry = entry, .linkage = linkage, .declared_only = true};
  reset(r);
  int32_t n = read_head(r, &head);
  bool has_body = tps_ptx_is(r, '{');
  if (!has_body) tps_ptx_expect(r, ';', "the head of a function");
  place_params(r, &head);
  tps_ptx_function *f = enter(r, n, &head, has_body);
  if (has_body) {
    f->declared_only = false;
    r->function = f;
    tps_ptx_open_scope(r);
    declare_params(r, f);
    tps_ptx_body(r);
    r->function = NULL;
  } else if (f->vars == NULL) {
    for (uint32_t i = 0; i < COUNT(r->locals, tps_ptx_var); i++)
      AT(r->locals, tps_ptx_var, i)->space = TPS_PTX_PARAM;
    f->vars = tps_ptx_copy(r, r->locals.data, r->locals.used);
    f->var_count = COUNT(r->locals, tps_ptx_var);
  }
}
