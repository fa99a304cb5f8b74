/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Linking: texts are taken apart at their top level only. A statement ends with a
 * semicolon or with the body of a function; what it says inside is for the reader to
 * check. */
#include "ptx/link_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---------------------------------------------------------------- */

bool tps_link_is_part(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

const char *tps_link_skip(const char *p) {
  for (;;) {
    p += strspn(p, " \t\r\n\f\v");
    if (p[0] == '/' && p[1] == '/') p += strcspn(p, "\n");
    else if (p[0] == '/' && p[1] == '*') {
      const char *end = strstr(p + 2, "*/");
      p = end != NULL ? end + 2 : p + strlen(p);
    } else return p;
  }
}

const char *tps_link_token(const char *p) {
  if (*p == '"') {
    for (p++; *p != '\0' && *p != '"'; p++)
      if (*p == '\\' && p[1] != '\0') p++;
    return *p == '"' ? p + 1 : p;
  }
  if (*p == '.' || tps_link_is_part(*p)) {
    for (p++; tps_link_is_part(*p); p++) continue;
    return p;
  }
  return *p != '\0' ? p + 1 : p;
}

bool tps_link_is_word(const char *p, const char *end, const char *word) {
  size_t n = strlen(word);
  return (size_t)(end - p) == n && strncmp(p, word, n) == 0;
}

static const char *skip_block(const char *p) {
  int depth = 0;
  do {
    if (*p == '{') depth++;
    if (*p == '}') depth--;
    p = tps_link_token(p);
    if (depth > 0) p = tps_link_skip(p);
  } while (depth > 0 && *p != '\0');
  return p;
}

/* ---- taking apart -------------------------------------------------------- */

static tps_statement *add(tps_link *l) {
  if (l->count == l->room) {
    size_t room = 2 * l->room + 64;
    tps_statement *list = realloc(l->list, room * sizeof *list);
    if (list == NULL) {
      l->failed = true;
      return NULL;
    }
    l->list = list;
    l->room = room;
  }
  tps_statement *s = &l->list[l->count++];
  memset(s, 0, sizeof *s);
  return s;
}

static void read_word(tps_statement *s, const char *p, const char *end) {
  static const char *const linkages[] = {"", ".visible", ".weak", ".extern"};
  for (int i = TPS_LINK_VISIBLE; i <= TPS_LINK_EXTERN; i++)
    if (tps_link_is_word(p, end, linkages[i])) {
      s->linkage = (tps_linkage)i;
      s->after = end;
    }
  if (tps_link_is_word(p, end, ".common")) {
    s->linkage = TPS_LINK_WEAK; /* merges with its like */
    s->after = end;
  }
  if (tps_link_is_word(p, end, ".func") || tps_link_is_word(p, end, ".entry"))
    s->kind = TPS_LINK_FUNCTION;
  if (tps_link_is_word(p, end, ".shared")) s->shared = true;
  if (tps_link_is_word(p, end, ".global") ||
      tps_link_is_word(p, end, ".const") ||
      tps_link_is_word(p, end, ".shared") || tps_link_is_word(p, end, ".tex"))
    s->kind = TPS_LINK_VARIABLE;
}

/* Behind the statement that begins at p. */
static const char *read_statement(tps_statement *s, const char *p) {
  int depth = 0;
  s->begin = p;
  s->kind = TPS_LINK_OTHER;
  while (*p != '\0') {
    const char *end = tps_link_token(p);
    if (*p == '(') depth++;
    if (*p == ')') depth--;
    if (*p == ';') return end;
    if (*p == '{' && s->kind == TPS_LINK_VARIABLE) end = skip_block(p);
    if (*p == '{' && s->kind == TPS_LINK_FUNCTION) {
      s->body = true;
      s->head_end = p;
      return skip_block(p);
    }
    if (*p == '.' && depth == 0) read_word(s, p, end);
    else if (depth == 0 && s->name == NULL && s->kind != TPS_LINK_OTHER &&
             tps_link_is_part(*p) && !isdigit((unsigned char)*p)) {
      s->name = p;
      s->name_size = (size_t)(end - p);
    }
    p = tps_link_skip(end);
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

static int read_target(tps_link *l, const char *p, size_t module,
                       tps_error *err) {
  char target[64];
  read_line(p, target, sizeof target);
  if (l->target[0] == '\0') memcpy(l->target, target, sizeof target);
  if (strcmp(l->target, target) == 0) return 0;
  return tps_fail(err, TPS_INVALID_PTX,
                  "%s is compiled for %s, %s for %s: linked modules need one "
                  "architecture",
                  l->inputs[0].name, l->target, l->inputs[module].name, target);
}

static void read_version(tps_link *l, const char *p) {
  char version[16];
  read_line(p, version, sizeof version);
  if (strverscmp(version, l->version) > 0)
    memcpy(l->version, version, sizeof version);
}

int tps_link_read(tps_link *l, size_t module, tps_error *err) {
  int code = 0;
  const char *p = tps_link_skip(l->inputs[module].text);
  while (*p != '\0' && code == 0 && !l->failed) {
    const char *end = tps_link_token(p);
    if (tps_link_is_word(p, end, ".version") ||
        tps_link_is_word(p, end, ".target") ||
        tps_link_is_word(p, end, ".address_size")) {
      if (tps_link_is_word(p, end, ".version")) read_version(l, end);
      if (tps_link_is_word(p, end, ".target"))
        code = read_target(l, end, module, err);
      end += strcspn(end, "\n");
    } else if (tps_link_is_word(p, end, ".section")) { /* of debuggers */
      end = skip_block(end + strcspn(end, "{"));
    } else {
      tps_statement *s = add(l);
      if (s == NULL) break;
      s->module = module;
      if (tps_link_is_word(p, end, ".file")) {
        s->kind = TPS_LINK_OTHER;
        s->begin = p;
        end += strcspn(end, "\n");
      } else {
        end = read_statement(s, p);
      }
      s->end = end;
    }
    p = tps_link_skip(end);
  }
  return code;
}
