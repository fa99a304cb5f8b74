/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Texts are taken apart at their top level only: a statement ends with a semicolon
 * or with the body of a function. Put together again, declarations come first, then
 * variables, then functions, so that everything is declared before its use. What a
 * statement says inside is for the reader to check. */
#include "ptx/link.h"

#include "base/mangle.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum linkage { LOCAL, VISIBLE, WEAK, EXTERN } linkage;
typedef enum kind { VARIABLE, FUNCTION, OTHER } kind;

typedef struct statement {
  const char *begin, *end;
  const char *after;    /* the word of the linkage, if there is one */
  const char *head_end; /* of a function: before its body */
  const char *name;
  size_t name_size;
  size_t module;
  linkage linkage;
  kind kind;
  bool shared, body, dropped, renamed;
} statement;

typedef struct link {
  const tps_ptx_input *inputs;
  statement *list;
  size_t count, room;
  char *out;
  size_t size, space;
  char target[64], version[16];
  unsigned file_base; /* numbers of files given before this module */
  bool failed;        /* out of memory */
} link;

/* ---- text ---------------------------------------------------------------- */

static bool is_part(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Behind blanks and comments. */
static const char *skip(const char *p) {
  for (;;) {
    p += strspn(p, " \t\r\n\f\v");
    if (p[0] == '/' && p[1] == '/') p += strcspn(p, "\n");
    else if (p[0] == '/' && p[1] == '*') {
      const char *end = strstr(p + 2, "*/");
      p = end != NULL ? end + 2 : p + strlen(p);
    } else return p;
  }
}

/* Behind one token, which p stands at. */
static const char *token_end(const char *p) {
  if (*p == '"') {
    for (p++; *p != '\0' && *p != '"'; p++)
      if (*p == '\\' && p[1] != '\0') p++;
    return *p == '"' ? p + 1 : p;
  }
  if (*p == '.' || is_part(*p)) {
    for (p++; is_part(*p); p++) continue;
    return p;
  }
  return *p != '\0' ? p + 1 : p;
}

static bool is_word(const char *p, const char *end, const char *word) {
  size_t n = strlen(word);
  return (size_t)(end - p) == n && strncmp(p, word, n) == 0;
}

static const char *skip_block(const char *p) {
  int depth = 0;
  do {
    if (*p == '{') depth++;
    if (*p == '}') depth--;
    p = token_end(p);
    if (depth > 0) p = skip(p);
  } while (depth > 0 && *p != '\0');
  return p;
}

/* ---- taking apart -------------------------------------------------------- */

static statement *add(link *l) {
  if (l->count == l->room) {
    size_t room = 2 * l->room + 64;
    statement *list = realloc(l->list, room * sizeof *list);
    if (list == NULL) {
      l->failed = true;
      return NULL;
    }
    l->list = list;
    l->room = room;
  }
  statement *s = &l->list[l->count++];
  memset(s, 0, sizeof *s);
  return s;
}

static void read_word(statement *s, const char *p, const char *end) {
  static const char *const linkages[] = {"", ".visible", ".weak", ".extern"};
  for (int i = VISIBLE; i <= EXTERN; i++)
    if (is_word(p, end, linkages[i])) {
      s->linkage = (linkage)i;
      s->after = end;
    }
  if (is_word(p, end, ".common")) {
    s->linkage = WEAK; /* merges with its like */
    s->after = end;
  }
  if (is_word(p, end, ".func") || is_word(p, end, ".entry")) s->kind = FUNCTION;
  if (is_word(p, end, ".shared")) s->shared = true;
  if (is_word(p, end, ".global") || is_word(p, end, ".const") ||
      is_word(p, end, ".shared") || is_word(p, end, ".tex"))
    s->kind = VARIABLE;
}

/* Behind the statement that begins at p. */
static const char *read_statement(statement *s, const char *p) {
  int depth = 0;
  s->begin = p;
  s->kind = OTHER;
  while (*p != '\0') {
    const char *end = token_end(p);
    if (*p == '(') depth++;
    if (*p == ')') depth--;
    if (*p == ';') return end;
    if (*p == '{' && s->kind == VARIABLE) end = skip_block(p);
    if (*p == '{' && s->kind == FUNCTION) {
      s->body = true;
      s->head_end = p;
      return skip_block(p);
    }
    if (*p == '.' && depth == 0) read_word(s, p, end);
    else if (depth == 0 && s->name == NULL && s->kind != OTHER && is_part(*p) &&
             !isdigit((unsigned char)*p)) {
      s->name = p;
      s->name_size = (size_t)(end - p);
    }
    p = skip(end);
  }
  return p;
}

/* The rest of the line at p into `to`. */
static void read_line(const char *p, char *to, size_t size) {
  p += strspn(p, " \t");
  size_t n = strcspn(p, "\r\n/");
  while (n > 0 && isspace((unsigned char)p[n - 1])) n--;
  snprintf(to, size, "%.*s", (int)n, p);
}

static int read_target(link *l, const char *p, size_t module, tps_error *err) {
  char target[64];
  read_line(p, target, sizeof target);
  if (l->target[0] == '\0') memcpy(l->target, target, sizeof target);
  if (strcmp(l->target, target) == 0) return 0;
  return tps_fail(err, TPS_INVALID_PTX,
                  "%s is compiled for %s, %s for %s: linked modules need one "
                  "architecture",
                  l->inputs[0].name, l->target, l->inputs[module].name, target);
}

static void read_version(link *l, const char *p) {
  char version[16];
  read_line(p, version, sizeof version);
  if (strverscmp(version, l->version) > 0)
    memcpy(l->version, version, sizeof version);
}

static int read_module(link *l, size_t module, tps_error *err) {
  int code = 0;
  const char *p = skip(l->inputs[module].text);
  while (*p != '\0' && code == 0 && !l->failed) {
    const char *end = token_end(p);
    if (is_word(p, end, ".version") || is_word(p, end, ".target") ||
        is_word(p, end, ".address_size")) {
      if (is_word(p, end, ".version")) read_version(l, end);
      if (is_word(p, end, ".target")) code = read_target(l, end, module, err);
      end += strcspn(end, "\n");
    } else if (is_word(p, end, ".section")) { /* of debuggers */
      end = skip_block(end + strcspn(end, "{"));
    } else {
      statement *s = add(l);
      if (s == NULL) break;
      s->module = module;
      if (is_word(p, end, ".file")) {
        s->kind = OTHER;
        s->begin = p;
        end += strcspn(end, "\n");
      } else {
        end = read_statement(s, p);
      }
      s->end = end;
    }
    p = skip(end);
  }
  return code;
}

/* ---- resolving ----------------------------------------------------------- */

static bool same_name(const statement *a, const statement *b) {
  return a->name_size == b->name_size &&
         strncmp(a->name, b->name, a->name_size) == 0;
}

/* A declaration has neither body nor memory. */
static bool defines(const statement *s) {
  return s->kind == FUNCTION ? s->body : s->linkage != EXTERN;
}

static int by_name(const void *a, const void *b) {
  const statement *x = *(statement *const *)a, *y = *(statement *const *)b;
  size_t n = x->name_size < y->name_size ? x->name_size : y->name_size;
  int order = strncmp(x->name, y->name, n);
  if (order != 0) return order;
  if (x->name_size != y->name_size) return x->name_size < y->name_size ? -1 : 1;
  return (x > y) - (x < y);
}

/* The name as C++ has it: "twice(int)", into `buffer`. */
static const char *show(const statement *s, char *buffer, size_t size) {
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

static int fail_twice(const link *l, const statement *a, const statement *b,
                      tps_error *err) {
  char name[1024];
  return tps_fail(err, TPS_INVALID_PTX, "'%s' is defined in %s and in %s",
                  show(a, name, sizeof name), l->inputs[a->module].name,
                  l->inputs[b->module].name);
}

static int fail_missing(const link *l, const statement *s, tps_error *err) {
  char name[1024];
  return tps_fail(err, TPS_INVALID_PTX,
                  "'%s' is used in %s and defined in no module",
                  show(s, name, sizeof name), l->inputs[s->module].name);
}

/* What every device has of itself. */
static bool is_built_in(const statement *s) {
  static const char *const names[] = {"vprintf", "__assertfail", "malloc",
                                      "free"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (is_word(s->name, s->name + s->name_size, names[i])) return true;
  /* The device's runtime, by which kernels launch others: whoever loads the
   * result says what becomes of it, on which line. */
  return strncmp(s->name, "cuda", 4) == 0 ||
         strncmp(s->name, "__cudaCDP", 9) == 0;
}

/* Whether another statement of its module shows the name to other modules. */
static bool is_shared(statement *const *group, size_t count,
                      const statement *s) {
  for (size_t i = 0; i < count; i++)
    if (group[i]->module == s->module && group[i]->linkage != LOCAL)
      return true;
  return false;
}

/* All statements of one name. */
static int resolve_name(const link *l, statement **group, size_t count,
                        tps_error *err) {
  statement *found = NULL, *wanted = NULL;
  for (size_t i = 0; i < count; i++) {
    statement *s = group[i];
    if (s->linkage == EXTERN && wanted == NULL) wanted = s;
    if (!defines(s) || s->linkage == LOCAL) continue;
    if (found != NULL && found->linkage == VISIBLE && s->linkage == VISIBLE)
      return fail_twice(l, found, s, err);
    if (found == NULL || (found->linkage == WEAK && s->linkage == VISIBLE)) {
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
    group[i]->renamed =
        group[i]->linkage == LOCAL && !is_shared(group, count, group[i]);
  return 0;
}

static int resolve(link *l, tps_error *err) {
  statement **all = malloc((l->count + 1) * sizeof *all);
  size_t n = 0;
  int code = 0;
  if (all == NULL) {
    l->failed = true;
    return 0;
  }
  for (size_t i = 0; i < l->count; i++)
    if (l->list[i].name != NULL) all[n++] = &l->list[i];
  qsort(all, n, sizeof *all, by_name);
  for (size_t i = 0, j; i < n && code == 0; i = j) {
    for (j = i + 1; j < n && same_name(all[i], all[j]); j++) continue;
    code = resolve_name(l, all + i, j - i, err);
  }
  free(all);
  return code;
}

/* ---- putting together ---------------------------------------------------- */

static void put(link *l, const char *text, size_t size) {
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

static void put_text(link *l, const char *text) { put(l, text, strlen(text)); }

static bool is_renamed(const link *l, size_t module, const char *p,
                       size_t size) {
  for (size_t i = 0; i < l->count; i++) {
    const statement *s = &l->list[i];
    if (s->renamed && s->module == module && s->name_size == size &&
        strncmp(s->name, p, size) == 0)
      return true;
  }
  return false;
}

/* ".loc 1 2 3, function_name …": the number of the file is moved, and what is said
 * of inlining, which refers to a section for debuggers, is left out. */
static const char *put_loc(link *l, const char *p) {
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
static void put_part(link *l, size_t module, const char *p, const char *end) {
  char suffix[32];
  snprintf(suffix, sizeof suffix, "__module%zu", module + 1);
  while (p < end && !l->failed) {
    const char *next = skip(p);
    if (next > end) next = end;
    put(l, p, (size_t)(next - p));
    if (next == end) return;
    p = next;
    next = token_end(p);
    put(l, p, (size_t)(next - p));
    if (is_word(p, next, ".loc") || is_word(p, next, ".file"))
      next = put_loc(l, next);
    else if (is_part(*p) && is_renamed(l, module, p, (size_t)(next - p)))
      put_text(l, suffix);
    p = next;
  }
}

static void put_statement(link *l, const statement *s) {
  put_part(l, s->module, s->begin, s->end);
  put_text(l, "\n");
}

/* The linkage of what defines the name. */
static const char *linkage_of(const link *l, const statement *of) {
  for (size_t i = 0; i < l->count; i++) {
    const statement *s = &l->list[i];
    if (s->name != NULL && same_name(s, of) && defines(s) && !s->dropped &&
        s->linkage != LOCAL)
      return s->linkage == WEAK ? ".weak" : ".visible";
  }
  return ".extern";
}

static bool is_declared(const link *l, const statement *of) {
  for (const statement *s = l->list; s < of; s++)
    if (s->name != NULL && same_name(s, of) && s->linkage == EXTERN)
      return true;
  return false;
}

/* What is declared, and the heads of functions that another module's take the place
 * of. */
static void put_declarations(link *l) {
  for (size_t i = 0; i < l->count; i++) {
    const statement *s = &l->list[i];
    bool replaced = s->kind == FUNCTION && s->dropped;
    if (s->name == NULL || !(s->linkage == EXTERN || replaced)) continue;
    if (is_declared(l, s)) continue;
    bool function = s->kind == FUNCTION;
    put_text(l, function ? linkage_of(l, s) : ".extern");
    put_part(l, s->module, s->after, replaced ? s->head_end : s->end);
    put_text(l, replaced ? ";\n" : "\n");
  }
}

static void put_all(link *l, kind which) {
  for (size_t i = 0; i < l->count; i++) {
    const statement *s = &l->list[i];
    if (s->kind == which && !s->dropped && s->linkage != EXTERN)
      put_statement(l, s);
  }
}

/* The highest number of a file in the module. */
static unsigned last_file(const link *l, size_t module) {
  unsigned most = 0;
  for (size_t i = 0; i < l->count; i++) {
    const statement *s = &l->list[i];
    if (s->module != module || !is_word(s->begin, token_end(s->begin), ".file"))
      continue;
    unsigned number = (unsigned)strtoul(token_end(s->begin), NULL, 10);
    if (number > most) most = number;
  }
  return most;
}

static void put_module_part(link *l, size_t module, kind which) {
  for (size_t i = 0; i < l->count; i++) {
    const statement *s = &l->list[i];
    if (s->module == module && s->kind == which && !s->dropped &&
        s->linkage != EXTERN)
      put_statement(l, s);
  }
}

static void put_together(link *l, size_t modules) {
  put_text(l, ".version ");
  put_text(l, l->version);
  put_text(l, "\n.target ");
  put_text(l, l->target);
  put_text(l, "\n.address_size 64\n");
  put_declarations(l);
  put_all(l, VARIABLE);
  for (size_t m = 0; m < modules; m++) {
    put_module_part(l, m, FUNCTION);
    put_module_part(l, m, OTHER);
    l->file_base += last_file(l, m);
  }
}

int tps_ptx_link(const tps_ptx_input *inputs, size_t count, char **out,
                 tps_error *err) {
  link l = {.inputs = inputs};
  int code = 0;
  for (size_t m = 0; m < count && code == 0; m++)
    code = read_module(&l, m, err);
  if (code == 0 && !l.failed) code = resolve(&l, err);
  if (code == 0 && !l.failed) put_together(&l, count);
  if (code == 0 && l.failed)
    code = tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  free(l.list);
  if (code == 0) *out = l.out;
  else free(l.out);
  return code;
}
