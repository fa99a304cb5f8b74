/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Names worth asking types of. A mangled name tells its parameters' types;
 * that of an extern "C" kernel or of a variable does not, so they are asked
 * for in the same compile, by name, which therefore has to be known before.
 * This reads the text token by token, follows namespaces and extern "C"
 * blocks, and skips bodies. It knows no macros; whoever uses the names must
 * bear with wrong ones. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

#define MAX_SCOPES 64
#define MAX_PREFIX 512

typedef enum kind { END, WORD, TEXT, MARK } kind;

typedef struct token {
  kind kind;
  const char *text;
  size_t size;
} token;

typedef struct scanner {
  const char *at;
  token now;
  tps_strings *names, *templates;
  bool failed;
  char prefix[MAX_PREFIX];    /* "a::b::" */
  size_t scopes[MAX_SCOPES];  /* length of the prefix outside each */
  bool c_linkage[MAX_SCOPES]; /* inside each; [0] is the file */
  int depth;
} scanner;

/* ---- tokens -------------------------------------------------------------- */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

/* To the line's end; a backslash there joins the next one. */
static void skip_line(scanner *s, bool directive) {
  while (*s->at != '\0' && *s->at != '\n') {
    if (s->at[0] == '\\' && s->at[1] == '\r' && s->at[2] == '\n') s->at += 3;
    else if (s->at[0] == '\\' && s->at[1] != '\0') s->at += 2;
    else if (directive && s->at[0] == '/' && s->at[1] == '*')
      return; /* a comment, which may go on for lines */
    else s->at++;
  }
}

/* Blanks, comments, directives. */
static void skip_blanks(scanner *s) {
  for (;;) {
    if (isspace((unsigned char)*s->at)) s->at++;
    else if (s->at[0] == '/' && s->at[1] == '/') skip_line(s, false);
    else if (s->at[0] == '/' && s->at[1] == '*') {
      const char *end = strstr(s->at + 2, "*/");
      s->at = end != NULL ? end + 2 : s->at + strlen(s->at);
    } else if (*s->at == '#') skip_line(s, true);
    else return;
  }
}

static void skip_quoted(scanner *s) {
  char quote = *s->at++;
  while (*s->at != '\0' && *s->at != quote && *s->at != '\n')
    s->at += s->at[0] == '\\' && s->at[1] != '\0' ? 2 : 1;
  if (*s->at == quote) s->at++;
}

/* R"tag( … )tag" */
static void skip_raw(scanner *s) {
  const char *tag = ++s->at;
  size_t n = strcspn(tag, "(\n");
  char close[24];
  if (tag[n] != '(' || n > 16) return;
  close[0] = ')';
  memcpy(close + 1, tag, n);
  strcpy(close + 1 + n, "\"");
  const char *end = strstr(tag, close);
  s->at = end != NULL ? end + n + 2 : tag + strlen(tag);
}

static bool is_raw_prefix(const char *text, size_t size) {
  return size > 0 && size <= 3 && text[size - 1] == 'R' &&
         (size == 1 || text[0] == 'u' || text[0] == 'U' || text[0] == 'L');
}

/* The next token becomes s->now. */
static void advance(scanner *s) {
  skip_blanks(s);
  s->now = (token){MARK, s->at, 1};
  if (*s->at == '\0') s->now = (token){END, s->at, 0};
  else if (*s->at == '"' || *s->at == '\'') {
    skip_quoted(s);
    s->now = (token){TEXT, s->now.text, (size_t)(s->at - s->now.text)};
  } else if (is_word(*s->at)) {
    bool number = isdigit((unsigned char)*s->at);
    while (is_word(*s->at) || (number && *s->at == '\'' && is_word(s->at[1])))
      s->at++;
    s->now = (token){number ? TEXT : WORD, s->now.text,
                     (size_t)(s->at - s->now.text)};
    if (*s->at == '"' && is_raw_prefix(s->now.text, s->now.size)) {
      skip_raw(s);
      s->now.kind = TEXT;
    }
  } else s->at++;
}

static bool is(const scanner *s, const char *text) {
  return s->now.kind != TEXT && s->now.size == strlen(text) &&
         memcmp(s->now.text, text, s->now.size) == 0;
}

/* Past the bracket that closes the one at hand. */
static void skip_balanced(scanner *s) {
  int depth = 0;
  do {
    if (is(s, "(") || is(s, "{") || is(s, "[")) depth++;
    else if (is(s, ")") || is(s, "}") || is(s, "]")) depth--;
    else if (s->now.kind == END) return;
    advance(s);
  } while (depth > 0);
}

/* ---- scopes -------------------------------------------------------------- */

/* `text` is what the scope adds to names, "" for none. */
static void open_scope(scanner *s, const char *text, size_t size, bool c) {
  size_t length = strlen(s->prefix);
  if (s->depth + 1 >= MAX_SCOPES || length + size + 3 > MAX_PREFIX) {
    s->at += strlen(s->at); /* nobody writes this: give up */
    advance(s);
    return;
  }
  s->depth++;
  s->scopes[s->depth] = length;
  s->c_linkage[s->depth] = c;
  if (size == 0) return;
  memcpy(s->prefix + length, text, size);
  strcpy(s->prefix + length + size, "::");
}

static void close_scope(scanner *s) {
  if (s->depth == 0) return;
  s->prefix[s->scopes[s->depth]] = '\0';
  s->depth--;
}

/* After `namespace`: a::b { … }, { … }, or an alias. */
static void read_namespace(scanner *s) {
  const char *first = NULL;
  size_t size = 0;
  advance(s);
  while (s->now.kind == WORD || is(s, ":")) {
    if (first == NULL) first = s->now.text;
    size = (size_t)(s->now.text + s->now.size - first);
    advance(s);
  }
  if (!is(s, "{")) return;
  advance(s);
  open_scope(s, first, size, s->c_linkage[s->depth]);
}

/* ---- declarations -------------------------------------------------------- */

typedef struct declaration {
  bool is_template, c_linkage, kernel, variable;
  token name; /* the last word before what is at hand */
} declaration;

static void note(scanner *s, tps_strings *list, token name) {
  if (name.size == 0 || list->count >= TPS_RTC_MOST_NAMES) return;
  if (!tps_strings_format(list, "%s%.*s", s->prefix, (int)name.size, name.text))
    s->failed = true;
}

/* __launch_bounds__(…), __align__(…), alignas(…), …: no declarators. */
static bool takes_arguments(token word) {
  static const char *const words[] = {"alignas", "decltype", "explicit",
                                      "noexcept", "sizeof"};
  if (word.size > 4 && memcmp(word.text, "__", 2) == 0 &&
      memcmp(word.text + word.size - 2, "__", 2) == 0)
    return true;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (word.size == strlen(words[i]) &&
        memcmp(word.text, words[i], word.size) == 0)
      return true;
  return false;
}

/* <…> of a template's parameters or arguments, by counting. */
static void skip_angles(scanner *s) {
  int depth = 0;
  do {
    if (is(s, "<")) depth++;
    else if (is(s, ">")) depth--;
    else if (is(s, "(") || is(s, "[")) {
      skip_balanced(s);
      continue;
    } else if (is(s, ";") || is(s, "{") || s->now.kind == END) return;
    advance(s);
  } while (depth > 0);
}

static void read_word(scanner *s, declaration *d) {
  token word = s->now;
  if (is(s, "__global__")) d->kernel = true;
  else if (is(s, "__device__") || is(s, "__constant__") || is(s, "__managed__"))
    d->variable = true;
  else if (!takes_arguments(word)) {
    d->name = word;
    advance(s);
    return;
  }
  advance(s);
  if (takes_arguments(word) && is(s, "(")) skip_balanced(s);
}

/* At the parenthesis of a function's parameters: to the end of the
 * declaration. */
static void finish_function(scanner *s, const declaration *d) {
  if (d->kernel && d->is_template) note(s, s->templates, d->name);
  if (d->kernel && !d->is_template && d->c_linkage) note(s, s->names, d->name);
  while (!is(s, ";") && s->now.kind != END) {
    bool body = is(s, "{");
    if (body || is(s, "(")) skip_balanced(s);
    else advance(s);
    if (body) return;
  }
  advance(s);
}

/* At [ = { , or ; behind a declarator. False: the declaration has ended. */
static bool finish_declarator(scanner *s, const declaration *d) {
  if (d->variable && !d->kernel && !d->is_template) note(s, s->names, d->name);
  while (!is(s, ",") && !is(s, ";") && s->now.kind != END) {
    if (is(s, "{") || is(s, "(") || is(s, "[")) skip_balanced(s);
    else advance(s);
  }
  bool more = is(s, ",");
  advance(s);
  return more;
}

/* A class's body may be followed by declarators. */
static bool is_class(const scanner *s) {
  return is(s, "struct") || is(s, "class") || is(s, "union") || is(s, "enum");
}

static void read_declaration(scanner *s, bool c_linkage) {
  declaration d = {.c_linkage = c_linkage};
  bool class_seen = false;
  while (s->now.kind != END) {
    class_seen = class_seen || is_class(s);
    if (is(s, "template")) {
      d.is_template = true;
      advance(s);
      if (is(s, "<")) skip_angles(s);
    } else if (is(s, "<")) skip_angles(s);
    else if (s->now.kind == WORD) read_word(s, &d);
    else if (is(s, "(")) {
      finish_function(s, &d);
      return;
    } else if (is(s, "{") && class_seen) {
      skip_balanced(s);
      d.name.size = 0;
    } else if (is(s, "[") || is(s, "=") || is(s, "{") || is(s, ",") ||
               is(s, ";")) {
      if (!finish_declarator(s, &d)) return;
    } else if (is(s, "}")) return;
    else advance(s);
  }
}

static void read_extern(scanner *s) {
  advance(s);
  bool c = s->now.kind == TEXT && s->now.size == 3 && s->now.text[1] == 'C';
  if (s->now.kind != TEXT) {
    read_declaration(s, s->c_linkage[s->depth]);
    return;
  }
  advance(s);
  if (is(s, "{")) {
    advance(s);
    open_scope(s, "", 0, c);
  } else read_declaration(s, c);
}

bool tps_rtc_scan(const char *source, tps_strings *names,
                  tps_strings *templates) {
  scanner s = {.at = source, .names = names, .templates = templates};
  advance(&s);
  while (s.now.kind != END && !s.failed) {
    if (is(&s, "namespace")) read_namespace(&s);
    else if (is(&s, "extern")) read_extern(&s);
    else if (is(&s, "}")) {
      close_scope(&s);
      advance(&s);
    } else if (is(&s, "inline") || is(&s, ";")) advance(&s);
    else read_declaration(&s, s.c_linkage[s.depth]);
  }
  return !s.failed;
}

bool tps_rtc_is_template(const char *source, const char *name) {
  tps_strings names = {0}, templates = {0};
  bool found = false;
  tps_rtc_scan(source, &names, &templates);
  for (size_t i = 0; i < templates.count && !found; i++) {
    const char *whole = templates.items[i], *last = strrchr(whole, ':');
    found = strcmp(whole, name) == 0 ||
            (last != NULL && strcmp(last + 1, name) == 0);
  }
  tps_strings_free(&names);
  tps_strings_free(&templates);
  return found;
}
