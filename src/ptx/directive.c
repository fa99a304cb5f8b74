/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Directives of a body that are no variables: source lines, pragmas, tables of
 * targets, prototypes.
 */
#include "ptx/reader.h"

#include <string.h>

/* --- source lines */

static tps_ptx_loc read_position(reader *r) {
  tps_ptx_loc loc = {.inlined_at = -1};
  loc.file = (uint32_t)tps_ptx_unsigned(r, "file", INT32_MAX);
  loc.line = (uint32_t)tps_ptx_unsigned(r, "line", UINT32_MAX);
  loc.column = (uint32_t)tps_ptx_unsigned(r, "column", UINT32_MAX);
  return loc;
}

static int32_t add_loc(reader *r, tps_ptx_loc loc) {
  *(tps_ptx_loc *)tps_ptx_push(r, &r->locs, sizeof loc) = loc;
  return (int32_t)COUNT(r->locs, tps_ptx_loc) - 1;
}

/* Inlining in several steps: the place of the outer one was given just before,
 * with its own place. */
static int32_t outer_loc(reader *r, tps_ptx_loc at) {
  enum { REACH = 32 };
  int32_t last = (int32_t)COUNT(r->locs, tps_ptx_loc) - 1;
  for (int32_t i = last; i >= 0 && i > last - REACH; i--) {
    const tps_ptx_loc *loc = AT(r->locs, tps_ptx_loc, i);
    if (loc->file == at.file && loc->line == at.line &&
        loc->column == at.column)
      return i;
  }
  return add_loc(r, at);
}

/* $L__info_string0, .debug_str + 12, or a number */
static void skip_function_name(reader *r) {
  if (!tps_ptx_is(r, T_NAME) && !tps_ptx_is(r, T_WORD) &&
      !tps_ptx_is(r, T_INTEGER))
    tps_ptx_unexpected(r, "a label after 'function_name'");
  tps_ptx_next(r);
  if (tps_ptx_accept(r, '+')) tps_ptx_unsigned(r, "offset", UINT32_MAX);
}

void tps_ptx_read_loc(reader *r) {
  tps_ptx_next(r);
  tps_ptx_loc loc = read_position(r);
  while (tps_ptx_accept(r, ',')) {
    if (tps_ptx_is_name(r, "function_name")) {
      tps_ptx_next(r);
      skip_function_name(r);
    } else if (tps_ptx_is_name(r, "inlined_at")) {
      tps_ptx_next(r);
      loc.inlined_at = outer_loc(r, read_position(r));
    } else {
      tps_ptx_unexpected(r, "'function_name' or 'inlined_at'");
    }
  }
  r->loc = add_loc(r, loc);
}

static char *copy_token(reader *r) {
  char *text = tps_ptx_take(r, (size_t)r->tok.size + 1);
  memcpy(text, r->text + r->tok.at, r->tok.size);
  return text;
}

void tps_ptx_read_file(reader *r) {
  tps_ptx_next(r);
  uint64_t number = tps_ptx_unsigned(r, "file number", 65535);
  if (!tps_ptx_is(r, T_STRING)) tps_ptx_unexpected(r, "the name of a file");
  while (COUNT(r->files, const char *) <= number)
    tps_ptx_push(r, &r->files, sizeof(const char *));
  *AT(r->files, const char *, number) = copy_token(r);
  tps_ptx_next(r);
  while (tps_ptx_accept(r, ',')) /* time and size */
    tps_ptx_unsigned(r, "number", UINT64_MAX);
}

void tps_ptx_skip_pragma(reader *r) {
  do {
    tps_ptx_next(r);
    if (!tps_ptx_is(r, T_STRING)) tps_ptx_unexpected(r, "a string");
    tps_ptx_next(r);
  } while (tps_ptx_is(r, ','));
  tps_ptx_expect(r, ';', "a pragma");
}

/* --- tables */

/* Names of labels; L<3> stands for L0, L1, L2. */
static void add_target(reader *r, int32_t n) {
  *(int32_t *)tps_ptx_push(r, &r->bytes, sizeof n) = n;
}

static void add_target_range(reader *r, const char *stem, size_t size) {
  uint64_t count = tps_ptx_unsigned(r, "range of labels", 65536);
  r->target_total += count;
  if (r->target_total > 1 << 20)
    tps_ptx_stop(r, r->tok.line, "ranges of more than %d labels", 1 << 20);
  tps_ptx_expect(r, '>', "a range of labels");
  for (uint64_t i = 0; i < count; i++) {
    char digits[24], *d = digits + sizeof digits;
    uint64_t rest = i;
    do *--d = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    size_t tail = (size_t)(digits + sizeof digits - d);
    r->scratch.used = 0;
    char *text = tps_ptx_push(r, &r->scratch, size + tail);
    memcpy(text, stem, size);
    memcpy(text + size, d, tail);
    add_target(r, tps_ptx_intern(r, text, (uint32_t)(size + tail)));
  }
}

static void read_names(reader *r) {
  r->bytes.used = 0;
  do {
    if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "a target");
    int32_t n = tps_ptx_token_name(r);
    tps_ptx_next(r);
    const char *stem = tps_ptx_name_text(r, n);
    if (tps_ptx_accept(r, '<')) add_target_range(r, stem, strlen(stem));
    else add_target(r, n);
  } while (tps_ptx_accept(r, ','));
}

static void read_branch_targets(reader *r, tps_ptx_table *t) {
  read_names(r);
  t->target_count = COUNT(r->bytes, int32_t);
  int32_t *targets = tps_ptx_copy(r, r->bytes.data, r->bytes.used);
  for (uint32_t i = 0; i < t->target_count; i++) {
    fixup *f = tps_ptx_push(r, &r->fixups, sizeof *f);
    *f = (fixup){.name = targets[i], .line = r->tok.line, .slot = &targets[i]};
  }
  t->targets = targets;
}

static void read_call_targets(reader *r, tps_ptx_table *t) {
  read_names(r);
  t->kind = TPS_PTX_CALL_TARGETS;
  t->target_count = COUNT(r->bytes, int32_t);
  int32_t *targets = tps_ptx_copy(r, r->bytes.data, r->bytes.used);
  for (uint32_t i = 0; i < t->target_count; i++) {
    const symbol *s = tps_ptx_lookup(r, targets[i]);
    if (s == NULL || s->kind != SYM_FUNCTION)
      tps_ptx_stop(r, r->tok.line, "call target '%.200s' is not a function",
                   tps_ptx_name_text(r, targets[i]));
    targets[i] = s->index;
  }
  t->targets = targets;
}

static void place_prototype(reader *r, buffer *list, uint32_t returns) {
  uint64_t bytes[2] = {0, 0};
  for (uint32_t i = 0; i < COUNT(*list, tps_ptx_var); i++) {
    tps_ptx_var *var = AT(*list, tps_ptx_var, i);
    var->space = TPS_PTX_PARAM;
    var->offset = tps_ptx_place(r, &bytes[i < returns], var, 1 << 30);
  }
}

/* .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn */
static void read_prototype(reader *r, tps_ptx_table *t) {
  buffer *list = &r->bytes;
  list->used = 0;
  t->kind = TPS_PTX_CALL_PROTOTYPE;
  if (tps_ptx_is(r, '('))
    t->return_count = tps_ptx_params(r, list, TPS_PTX_RETURN_PARAM);
  tps_ptx_expect(r, T_NAME, "'.callprototype'");
  if (tps_ptx_is(r, '('))
    t->input_count = tps_ptx_params(r, list, TPS_PTX_INPUT_PARAM);
  while (tps_ptx_is_word(r, "noreturn") || tps_ptx_is_word(r, "abi_preserve") ||
         tps_ptx_is_word(r, "abi_preserve_control")) {
    bool number = !tps_ptx_is_word(r, "noreturn");
    tps_ptx_next(r);
    if (number) tps_ptx_unsigned(r, "number", 1024);
  }
  place_prototype(r, list, t->return_count);
  t->params = tps_ptx_copy(r, list->data, list->used);
}

bool tps_ptx_read_table(reader *r, int32_t name, uint32_t line) {
  tps_ptx_table t = {.name = tps_ptx_name_text(r, name)};
  if (tps_ptx_accept_word(r, "branchtargets")) read_branch_targets(r, &t);
  else if (tps_ptx_accept_word(r, "calltargets")) read_call_targets(r, &t);
  else if (tps_ptx_accept_word(r, "callprototype")) read_prototype(r, &t);
  else return false;
  tps_ptx_expect(r, ';', "a table");
  tps_ptx_add_label(r, name, (int32_t)COUNT(r->tables, tps_ptx_table), true,
                    line);
  *(tps_ptx_table *)tps_ptx_push(r, &r->tables, sizeof t) = t;
  return true;
}
