/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Names and scopes. A name is interned once and knows its innermost meaning;
 * closing a scope gives back the meanings that it hid. Labels are a name space
 * of their own, since they are used before they are seen: what a scope could
 * not resolve passes to the scope around it.
 */
#include "ptx/reader.h"

#include <stdlib.h>
#include <string.h>

uint32_t tps_ptx_hash(const char *text, uint32_t size) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < size; i++)
    hash = (hash ^ (uint8_t)text[i]) * 16777619u;
  return hash ^ hash >> 15;
}

static void grow_slots(reader *r) {
  uint32_t count = r->name_slot_count ? r->name_slot_count * 2 : 1024;
  uint32_t *slots = calloc(count, sizeof *slots);
  if (slots == NULL)
    tps_ptx_stop_code(r, TPS_NO_HOST_MEMORY, "out of host memory");
  for (uint32_t i = 0; i < COUNT(r->names, name); i++) {
    uint32_t at = AT(r->names, name, i)->hash & (count - 1);
    while (slots[at] != 0) at = (at + 1) & (count - 1);
    slots[at] = i + 1;
  }
  free(r->name_slots);
  r->name_slots = slots;
  r->name_slot_count = count;
}

static char *copy_text(reader *r, const char *text, uint32_t size) {
  char *copy = tps_ptx_take(r, (size_t)size + 1);
  memcpy(copy, text, size);
  return copy;
}

int32_t tps_ptx_intern(reader *r, const char *text, uint32_t size) {
  if (COUNT(r->names, name) * 2 >= r->name_slot_count) grow_slots(r);
  uint32_t hash = tps_ptx_hash(text, size);
  uint32_t at = hash & (r->name_slot_count - 1);
  for (; r->name_slots[at] != 0; at = (at + 1) & (r->name_slot_count - 1)) {
    const name *n = AT(r->names, name, r->name_slots[at] - 1);
    if (n->hash == hash && n->size == size && memcmp(n->text, text, size) == 0)
      return (int32_t)r->name_slots[at] - 1;
  }
  char *copy = copy_text(r, text, size);
  name *n = tps_ptx_push(r, &r->names, sizeof *n);
  *n = (name){copy, size, hash, -1, -1};
  r->name_slots[at] = COUNT(r->names, name);
  return (int32_t)COUNT(r->names, name) - 1;
}

int32_t tps_ptx_token_name(reader *r) {
  return tps_ptx_intern(r, r->text + r->tok.at, r->tok.size);
}

const char *tps_ptx_name_text(const reader *r, int32_t n) {
  return AT(r->names, name, n)->text;
}

/* --- symbols */

void tps_ptx_declare(reader *r, int32_t n, symbol_kind kind, int32_t index,
                     int32_t count) {
  if (tps_ptx_declared_here(r, n))
    tps_ptx_stop(r, r->tok.line, "'%.200s' is already defined",
                 tps_ptx_name_text(r, n));
  symbol *s = tps_ptx_push(r, &r->symbols, sizeof *s);
  *s = (symbol){
      .kind = (uint8_t)kind,
      .index = index,
      .count = count,
      .name = n,
      .outer = AT(r->names, name, n)->symbol,
      .scope = (int32_t)COUNT(r->scopes, scope),
  };
  AT(r->names, name, n)->symbol = (int32_t)COUNT(r->symbols, symbol) - 1;
}

const symbol *tps_ptx_lookup(const reader *r, int32_t n) {
  int32_t at = AT(r->names, name, n)->symbol;
  return at < 0 ? NULL : AT(r->symbols, symbol, at);
}

bool tps_ptx_declared_here(const reader *r, int32_t n) {
  const symbol *s = tps_ptx_lookup(r, n);
  return s != NULL && s->scope == (int32_t)COUNT(r->scopes, scope);
}

/* --- scopes */

void tps_ptx_open_scope(reader *r) {
  enum { DEEPEST = 200 };
  if (COUNT(r->scopes, scope) >= DEEPEST)
    tps_ptx_stop(r, r->tok.line, "braces nested deeper than %d", DEEPEST);
  scope *s = tps_ptx_push(r, &r->scopes, sizeof *s);
  *s = (scope){
      .symbols = COUNT(r->symbols, symbol),
      .labels = COUNT(r->labels, label),
      .fixups = COUNT(r->fixups, fixup),
      .call_bytes = r->call_bytes,
  };
}

void tps_ptx_add_label(reader *r, int32_t n, int32_t index, bool table,
                       uint32_t line) {
  label *l = tps_ptx_push(r, &r->labels, sizeof *l);
  *l = (label){n, index, table, line};
}

/* Makes the labels of the scope the meaning of their names, or none again. */
static void bind_labels(reader *r, uint32_t from, bool bind) {
  for (uint32_t i = from; i < COUNT(r->labels, label); i++) {
    const label *l = AT(r->labels, label, i);
    name *n = AT(r->names, name, l->name);
    if (bind && n->label >= 0)
      tps_ptx_stop(r, l->line, "label '%.200s' is already defined", n->text);
    n->label = bind ? (int32_t)i : -1;
  }
}

static void resolve(reader *r, const fixup *f, const label *l) {
  if (f->table != l->table)
    tps_ptx_stop(r, f->line, "'%.200s' is %s", tps_ptx_name_text(r, l->name),
                 l->table ? "a table, not a label"
                          : "a label, not a table of targets or a prototype");
  if (f->slot != NULL) *f->slot = l->index;
  else
    AT(r->instructions, tps_ptx_instruction, f->instruction)
        ->operands[f->operand]
        .index = l->index;
}

static void close_labels(reader *r, const scope *s, bool outermost) {
  uint32_t kept = s->fixups;
  bind_labels(r, s->labels, true);
  for (uint32_t i = s->fixups; i < COUNT(r->fixups, fixup); i++) {
    fixup f = *AT(r->fixups, fixup, i);
    const name *n = AT(r->names, name, f.name);
    if (n->label >= 0) resolve(r, &f, AT(r->labels, label, n->label));
    else if (!outermost) *AT(r->fixups, fixup, kept++) = f;
    else
      tps_ptx_stop(r, f.line, "%s '%.200s' is not defined",
                   f.table ? "table or prototype" : "label", n->text);
  }
  r->fixups.used = kept * sizeof(fixup);
  bind_labels(r, s->labels, false);
  r->labels.used = s->labels * sizeof(label);
}

void tps_ptx_close_scope(reader *r) {
  uint32_t depth = COUNT(r->scopes, scope);
  scope s = *AT(r->scopes, scope, depth - 1);
  close_labels(r, &s, depth == 1);
  while (COUNT(r->symbols, symbol) > s.symbols) {
    const symbol *last = AT(r->symbols, symbol, COUNT(r->symbols, symbol) - 1);
    AT(r->names, name, last->name)->symbol = last->outer;
    r->symbols.used -= sizeof *last;
  }
  r->call_bytes = s.call_bytes;
  r->scopes.used -= sizeof s;
}
