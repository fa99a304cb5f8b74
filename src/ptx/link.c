/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Linking: which of all the texts' statements of one name stays, and what is missing
 * or there twice. */
#include "ptx/link_parts.h"

#include "base/mangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tps_link_defines(const tps_statement *s) {
  return s->kind == TPS_LINK_FUNCTION ? s->body : s->linkage != TPS_LINK_EXTERN;
}

static int compare(const tps_statement *s, const char *name, size_t size) {
  size_t n = s->name_size < size ? s->name_size : size;
  int order = strncmp(s->name, name, n);
  return order != 0 ? order : (s->name_size > size) - (s->name_size < size);
}

static int by_name(const void *a, const void *b) {
  const tps_statement *x = *(tps_statement *const *)a,
                      *y = *(tps_statement *const *)b;
  int order = compare(x, y->name, y->name_size);
  return order != 0 ? order : (x > y) - (x < y);
}

size_t tps_link_find(const tps_link *l, const char *name, size_t size,
                     tps_statement *const **first) {
  size_t from = 0, to = l->name_count, count = 0;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    if (compare(l->names[middle], name, size) < 0) from = middle + 1;
    else to = middle;
  }
  *first = l->names + from;
  while (from + count < l->name_count &&
         compare((*first)[count], name, size) == 0)
    count++;
  return count;
}

/* The name as C++ has it: "twice(int)", into `buffer`. */
static const char *show(const tps_statement *s, char *buffer, size_t size) {
  char mangled[1024];
  tps_node *name, *params;
  bool function;
  snprintf(mangled, sizeof mangled, "%.*s", (int)s->name_size, s->name);
  snprintf(buffer, size, "%s", mangled);
  tps_mangle *m = tps_mangle_new();
  if (m != NULL && tps_mangle_name(m, mangled, &name, &params, &function)) {
    char *text = tps_mangle_text(m, name, false);
    char *list =
        function && params != NULL ? tps_mangle_text(m, params, false) : NULL;
    if (text != NULL)
      snprintf(buffer, size, "%s%s%s%s", text, function ? "(" : "",
               list != NULL ? list : "", function ? ")" : "");
    free(text);
    free(list);
  }
  tps_mangle_free(m);
  return buffer;
}

static int fail_twice(const tps_link *l, const tps_statement *a,
                      const tps_statement *b, tps_error *err) {
  char name[1024];
  return tps_fail(err, TPS_INVALID_PTX, "'%s' is defined in %s and in %s",
                  show(a, name, sizeof name), l->inputs[a->module].name,
                  l->inputs[b->module].name);
}

static int fail_missing(const tps_link *l, const tps_statement *s,
                        tps_error *err) {
  char name[1024];
  return tps_fail(err, TPS_INVALID_PTX,
                  "'%s' is used in %s and defined in no module",
                  show(s, name, sizeof name), l->inputs[s->module].name);
}

/* What every device has of itself. */
static bool is_built_in(const tps_statement *s) {
  static const char *const names[] = {"vprintf", "__assertfail", "malloc",
                                      "free"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (tps_link_is_word(s->name, s->name + s->name_size, names[i]))
      return true;
  /* The device's runtime, by which kernels launch others: whoever loads the
   * result says what becomes of it, on which line. */
  return strncmp(s->name, "cuda", 4) == 0 ||
         strncmp(s->name, "__cudaCDP", 9) == 0;
}

/* Whether another statement of its module shows the name to other modules. */
static bool is_shared(tps_statement *const *group, size_t count,
                      const tps_statement *s) {
  for (size_t i = 0; i < count; i++)
    if (group[i]->module == s->module && group[i]->linkage != TPS_LINK_LOCAL)
      return true;
  return false;
}

/* All statements of one name. */
static int resolve_name(const tps_link *l, tps_statement *const *group,
                        size_t count, tps_error *err) {
  tps_statement *found = NULL, *wanted = NULL;
  for (size_t i = 0; i < count; i++) {
    tps_statement *s = group[i];
    if (s->linkage == TPS_LINK_EXTERN && wanted == NULL) wanted = s;
    if (!tps_link_defines(s) || s->linkage == TPS_LINK_LOCAL) continue;
    if (found != NULL && found->linkage == TPS_LINK_VISIBLE &&
        s->linkage == TPS_LINK_VISIBLE)
      return fail_twice(l, found, s, err);
    if (found == NULL ||
        (found->linkage == TPS_LINK_WEAK && s->linkage == TPS_LINK_VISIBLE)) {
      if (found != NULL) found->dropped = true;
      found = s;
    } else {
      s->dropped = true;
    }
  }
  if (wanted != NULL && found == NULL && !wanted->shared &&
      !is_built_in(wanted))
    return fail_missing(l, wanted, err);
  bool others = false; /* in another module */
  for (size_t i = 0; i < count; i++)
    others = others || group[i]->module != group[0]->module;
  for (size_t i = 0; i < count && others; i++)
    group[i]->renamed = group[i]->linkage == TPS_LINK_LOCAL &&
                        !is_shared(group, count, group[i]);
  return 0;
}

static int resolve(tps_link *l, tps_error *err) {
  tps_statement *const *group;
  int code = 0;
  l->names = malloc((l->count + 1) * sizeof *l->names);
  if (l->names == NULL) {
    l->failed = true;
    return 0;
  }
  for (size_t i = 0; i < l->count; i++)
    if (l->list[i].name != NULL) l->names[l->name_count++] = &l->list[i];
  qsort(l->names, l->name_count, sizeof *l->names, by_name);
  for (size_t i = 0, n; i < l->name_count && code == 0; i += n) {
    n = tps_link_find(l, l->names[i]->name, l->names[i]->name_size, &group);
    code = resolve_name(l, group, n, err);
  }
  return code;
}

int tps_ptx_link(const tps_ptx_input *inputs, size_t count, char **out,
                 tps_error *err) {
  tps_link l = {.inputs = inputs};
  int code = 0;
  for (size_t m = 0; m < count && code == 0; m++)
    code = tps_link_read(&l, m, err);
  if (code == 0 && !l.failed) code = resolve(&l, err);
  if (code == 0 && !l.failed) tps_link_write(&l, count);
  if (code == 0 && l.failed)
    code = tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  free(l.list);
  free(l.names);
  if (code == 0) *out = l.out;
  else free(l.out);
  return code;
}
