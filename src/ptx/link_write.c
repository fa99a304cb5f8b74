/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Linking: the statements of all texts as one. Declarations come first, then
 * variables, then functions, so that everything is declared before its use. */
#include "ptx/link_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(tps_link *l, const char *text, size_t size) {
  if (l->size + size + 1 > l->space) {
    size_t space = 2 * (l->size + size) + 4096;
    char *out = realloc(l->out, space);
    if (out == NULL) {
      l->failed = true;
      return;
    }
    l->out = out;
    l->space = space;
  }
  memcpy(l->out + l->size, text, size);
  l->size += size;
  l->out[l->size] = '\0';
}

static void put_text(tps_link *l, const char *text) {
  put(l, text, strlen(text));
}

static bool is_renamed(const tps_link *l, size_t module, const char *p,
                       size_t size) {
  tps_statement *const *group;
  size_t count = tps_link_find(l, p, size, &group);
  for (size_t i = 0; i < count; i++)
    if (group[i]->renamed && group[i]->module == module) return true;
  return false;
}

/* ".loc 1 2 3, function_name …": the number of the file is moved, and what is said
 * of inlining, which refers to a section for debuggers, is left out. */
static const char *put_loc(tps_link *l, const char *p) {
  char number[24];
  char *end;
  unsigned long file = strtoul(p, &end, 10);
  snprintf(number, sizeof number, " %lu", file + l->file_base);
  put_text(l, number);
  size_t n = strcspn(end, ",\r\n");
  put(l, end, n);
  return end + strcspn(end, "\r\n");
}

/* The text from p to end, renamed and with its files moved. */
static void put_part(tps_link *l, size_t module, const char *p,
                     const char *end) {
  char suffix[32];
  snprintf(suffix, sizeof suffix, "__module%zu", module + 1);
  while (p < end && !l->failed) {
    const char *next = tps_link_skip(p);
    if (next > end) next = end;
    put(l, p, (size_t)(next - p));
    if (next == end) return;
    p = next;
    next = tps_link_token(p);
    put(l, p, (size_t)(next - p));
    if (tps_link_is_word(p, next, ".loc") || tps_link_is_word(p, next, ".file"))
      next = put_loc(l, next);
    else if (tps_link_is_part(*p) &&
             is_renamed(l, module, p, (size_t)(next - p)))
      put_text(l, suffix);
    p = next;
  }
}

static void put_statement(tps_link *l, const tps_statement *s) {
  put_part(l, s->module, s->begin, s->end);
  put_text(l, "\n");
}

/* The linkage of what defines the name. */
static const char *linkage_of(const tps_link *l, const tps_statement *of) {
  tps_statement *const *group;
  size_t count = tps_link_find(l, of->name, of->name_size, &group);
  for (size_t i = 0; i < count; i++) {
    const tps_statement *s = group[i];
    if (tps_link_defines(s) && !s->dropped && s->linkage != TPS_LINK_LOCAL)
      return s->linkage == TPS_LINK_WEAK ? ".weak" : ".visible";
  }
  return ".extern";
}

static bool is_declared(const tps_link *l, const tps_statement *of) {
  tps_statement *const *group;
  size_t count = tps_link_find(l, of->name, of->name_size, &group);
  for (size_t i = 0; i < count && group[i] < of; i++)
    if (group[i]->linkage == TPS_LINK_EXTERN) return true;
  return false;
}

/* What is declared, and the heads of functions that another module's take the place
 * of. */
static void put_declarations(tps_link *l) {
  for (size_t i = 0; i < l->count; i++) {
    const tps_statement *s = &l->list[i];
    bool replaced = s->kind == TPS_LINK_FUNCTION && s->dropped;
    if (s->name == NULL || !(s->linkage == TPS_LINK_EXTERN || replaced))
      continue;
    if (is_declared(l, s)) continue;
    bool function = s->kind == TPS_LINK_FUNCTION;
    put_text(l, function ? linkage_of(l, s) : ".extern");
    put_part(l, s->module, s->after, replaced ? s->head_end : s->end);
    put_text(l, replaced ? ";\n" : "\n");
  }
}

static void put_all(tps_link *l, tps_link_kind which) {
  for (size_t i = 0; i < l->count; i++) {
    const tps_statement *s = &l->list[i];
    if (s->kind == which && !s->dropped && s->linkage != TPS_LINK_EXTERN)
      put_statement(l, s);
  }
}

/* The highest number of a file in the module. */
static unsigned last_file(const tps_link *l, size_t module) {
  unsigned most = 0;
  for (size_t i = 0; i < l->count; i++) {
    const tps_statement *s = &l->list[i];
    if (s->module != module ||
        !tps_link_is_word(s->begin, tps_link_token(s->begin), ".file"))
      continue;
    unsigned number = (unsigned)strtoul(tps_link_token(s->begin), NULL, 10);
    if (number > most) most = number;
  }
  return most;
}

static void put_module_part(tps_link *l, size_t module, tps_link_kind which) {
  for (size_t i = 0; i < l->count; i++) {
    const tps_statement *s = &l->list[i];
    if (s->module == module && s->kind == which && !s->dropped &&
        s->linkage != TPS_LINK_EXTERN)
      put_statement(l, s);
  }
}

void tps_link_write(tps_link *l, size_t modules) {
  put_text(l, ".version ");
  put_text(l, l->version);
  put_text(l, "\n.target ");
  put_text(l, l->target);
  put_text(l, "\n.address_size 64\n");
  put_declarations(l);
  put_all(l, TPS_LINK_VARIABLE);
  for (size_t m = 0; m < modules; m++) {
    put_module_part(l, m, TPS_LINK_FUNCTION);
    put_module_part(l, m, TPS_LINK_OTHER);
    l->file_base += last_file(l, m);
  }
}
