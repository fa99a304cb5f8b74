/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Where in a Lua script a program's text stands: the script is read as Lua 5.4
 * reads it, token by token, and every string literal's value is compared with
 * the text as it is decoded. Values are built only where parts of the text are
 * looked for. */
#include <stdlib.h>
#include <string.h>

#include "rtc/rtc.h"
#include "rtc/template.h"

#define SHORTEST_PART 8u /* bytes: less may be anywhere by chance */
#define LARGEST_SOURCE ((size_t)1 << 20) /* it is searched for each literal, */
#define MOST_SEARCHED ((size_t)1 << 26)  /* so many bytes in all */

typedef struct lexer {
  const char *at, *end;
  int line;
  /* the literal being decoded */
  const char *wanted, *wanted_end; /* what is still to come */
  bool equal;
  /* the best so far */
  int call_line, best, best_start;
  bool best_flat;
  /* looking for parts */
  const char *source;
  size_t source_size;
  char *value; /* `room` bytes; NULL: the whole text is looked for */
  size_t length, room;
  tps_rtc_template *made_of; /* else NULL: of whole literals only */
  tps_rtc_part *parts;
  size_t count, most;
  size_t searched; /* bytes of the source, for parts */
} lexer;

static bool more(const lexer *s) { return s->at < s->end; }

static char peek(const lexer *s, size_t ahead) {
  return (char)((size_t)(s->end - s->at) > ahead ? s->at[ahead] : '\0');
}

static bool at_line_end(const lexer *s) {
  return more(s) && (*s->at == '\n' || *s->at == '\r');
}

/* Past \n, \r, \r\n or \n\r. */
static void skip_line_end(lexer *s) {
  char first = *s->at++;
  if (at_line_end(s) && *s->at != first) s->at++;
  s->line++;
}

/* ---- values -------------------------------------------------------------- */

static void begin_value(lexer *s, const char *wanted, const char *end) {
  s->length = 0;
  s->wanted = wanted;
  s->wanted_end = end;
  s->equal = true;
}

static void put(lexer *s, char c) {
  if (s->value != NULL && s->length < s->room) s->value[s->length] = c;
  s->length++;
  if (s->equal && s->wanted < s->wanted_end && *s->wanted == c) s->wanted++;
  else s->equal = false;
}

/* The nearest start at or before the call wins, else the nearest after it. */
static bool is_better(const lexer *s, int start) {
  if (s->best == 0) return true;
  bool before = start <= s->call_line;
  bool best_before = s->best_start <= s->call_line;
  if (before != best_before) return before;
  return before ? start >= s->best_start : start < s->best_start;
}

static int count_lines(const char *from, const char *to) {
  int n = 0;
  for (const char *p = from; p < to; p++) n += *p == '\n';
  return n;
}

/* Notes the literal at hand if its value is in the text, once. A first line that
 * is but the end of one of the text belongs to what stands before. */
static void add_part(lexer *s, int first) {
  const char *end = s->source + s->source_size;
  if (s->length < SHORTEST_PART || s->length > s->source_size ||
      s->count == s->most || s->searched > MOST_SEARCHED)
    return;
  s->searched += s->source_size;
  const char *at = memmem(s->source, s->source_size, s->value, s->length);
  if (at == NULL ||
      memmem(at + 1, (size_t)(end - at - 1), s->value, s->length) != NULL)
    return;
  bool flat = s->line == first;
  int line = count_lines(s->source, at) + 1, last;
  last = line + count_lines(at, at + s->length - 1);
  if (at > s->source && at[-1] != '\n') {
    line++;
    first += !flat;
  }
  if (line > last) return;
  s->parts[s->count++] = (tps_rtc_part){line, last - line + 1, first, flat};
}

/* A literal that began in line `start` and whose value's first character
 * stands in line `first` has ended. */
static void end_value(lexer *s, int start, int first) {
  if (s->value != NULL) add_part(s, first);
  if (!s->equal || s->wanted != s->wanted_end || !is_better(s, start)) return;
  s->best = first;
  s->best_start = start;
  s->best_flat = s->line == first;
}

/* ---- short strings ------------------------------------------------------- */

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* \u{…}, as Lua encodes it: up to 2^31, in up to six bytes. */
static void put_utf8(lexer *s, unsigned long code) {
  char bytes[8];
  int n = 0;
  unsigned long first = 0x3f; /* what fits into the first byte */
  if (code < 0x80) {
    put(s, (char)code);
    return;
  }
  do {
    bytes[n++] = (char)(0x80 | (code & 0x3f));
    code >>= 6;
    first >>= 1;
  } while (code > first);
  put(s, (char)((~first << 1) | code));
  while (n > 0) put(s, bytes[--n]);
}

static void read_unicode(lexer *s) {
  unsigned long code = 0;
  if (peek(s, 0) == '{') s->at++;
  for (; more(s) && hex_digit(*s->at) >= 0; s->at++)
    code = (code << 4 | (unsigned long)hex_digit(*s->at)) & 0x7fffffff;
  if (peek(s, 0) == '}') s->at++;
  put_utf8(s, code);
}

static void read_decimal(lexer *s) {
  int code = 0;
  for (int i = 0; i < 3 && peek(s, 0) >= '0' && peek(s, 0) <= '9'; i++)
    code = code * 10 + (*s->at++ - '0');
  put(s, (char)code);
}

static void read_hex(lexer *s) {
  int code = 0;
  for (int i = 0; i < 2 && hex_digit(peek(s, 0)) >= 0; i++)
    code = code * 16 + hex_digit(*s->at++);
  put(s, (char)code);
}

/* \z: blanks and line ends that are no part of the value. */
static void skip_blanks(lexer *s) {
  while (more(s) && strchr(" \t\v\f\r\n", *s->at) != NULL && *s->at != '\0') {
    if (at_line_end(s)) skip_line_end(s);
    else s->at++;
  }
}

/* After the backslash. */
static void read_escape(lexer *s) {
  static const char from[] = "abfnrtv\\\"'", to[] = "\a\b\f\n\r\t\v\\\"'";
  if (at_line_end(s)) {
    skip_line_end(s);
    put(s, '\n');
    return;
  }
  char c = peek(s, 0);
  if (c >= '0' && c <= '9') {
    read_decimal(s);
    return;
  }
  s->at += more(s);
  const char *known = c != '\0' ? strchr(from, c) : NULL;
  if (known != NULL) put(s, to[known - from]);
  else if (c == 'x') read_hex(s);
  else if (c == 'u') read_unicode(s);
  else if (c == 'z') skip_blanks(s);
  else s->equal = false; /* no Lua */
}

static void read_short(lexer *s) {
  char quote = *s->at++;
  int start = s->line, first = 0;
  while (more(s) && *s->at != quote && !at_line_end(s)) {
    const char *before = s->wanted;
    int line = s->line;
    char c = *s->at++;
    if (c == '\\') read_escape(s);
    else put(s, c);
    if (first == 0 && s->wanted != before) first = line;
  }
  if (more(s) && *s->at == quote) {
    s->at++;
    end_value(s, start, first != 0 ? first : start);
  }
}

/* ---- long brackets ------------------------------------------------------- */

/* The level of a long bracket at hand ("[==[": 2), or -1. */
static int long_level(const lexer *s, char bracket) {
  size_t n = 1;
  if (peek(s, 0) != bracket) return -1;
  while (peek(s, n) == '=') n++;
  return peek(s, n) == bracket ? (int)n - 1 : -1;
}

/* Past a long bracket and what it encloses: a value or a comment. */
static void read_long(lexer *s, int level, bool is_value) {
  int start = s->line;
  s->at += level + 2;
  if (at_line_end(s)) skip_line_end(s); /* the first one is no part of it */
  int first = s->line;
  while (more(s)) {
    if (*s->at == ']' && long_level(s, ']') == level) {
      s->at += level + 2;
      if (is_value && s->made_of != NULL)
        tps_rtc_template_compare(s->made_of, s->value, s->length, first);
      else if (is_value) end_value(s, start, first);
      return;
    }
    if (at_line_end(s)) {
      skip_line_end(s);
      put(s, '\n');
    } else put(s, *s->at++);
  }
}

static void skip_comment(lexer *s) {
  s->at += 2;
  int level = long_level(s, '[');
  if (level >= 0) read_long(s, level, false);
  else
    while (more(s) && !at_line_end(s)) s->at++;
}

static void skip_first_line(lexer *s) {
  if (s->end - s->at >= 3 && memcmp(s->at, "\xEF\xBB\xBF", 3) == 0) s->at += 3;
  if (peek(s, 0) == '#')
    while (more(s) && !at_line_end(s)) s->at++;
}

/* Most of a script is neither a literal nor a comment nor the end of a line. */
static void skip_others(lexer *s) {
  static const bool telling[256] = {['\n'] = true, ['\r'] = true, ['-'] = true,
                                    ['"'] = true,  ['\''] = true, ['['] = true};
  while (more(s) && !telling[(unsigned char)*s->at]) s->at++;
}

static void read_script(lexer *s, const char *source, size_t source_size) {
  skip_first_line(s);
  for (skip_others(s); more(s); skip_others(s)) {
    int level;
    begin_value(s, source, source + source_size);
    if (at_line_end(s)) skip_line_end(s);
    else if (*s->at == '-' && peek(s, 1) == '-') skip_comment(s);
    else if (*s->at == '"' || *s->at == '\'') read_short(s);
    else if (*s->at == '[' && (level = long_level(s, '[')) >= 0)
      read_long(s, level, true);
    else s->at++;
  }
}

int tps_rtc_locate(const char *script, size_t script_size, const char *source,
                   size_t source_size, int call_line, bool *flat) {
  lexer s = {.at = script,
             .end = script + script_size,
             .line = 1,
             .call_line = call_line};
  read_script(&s, source, source_size);
  *flat = s.best_flat;
  return s.best;
}

/* Whether every line of the source is one of a part. */
static bool is_whole(const lexer *s) {
  int lines = count_lines(s->source, s->source + s->source_size - 1) + 1;
  for (size_t i = 0; i < s->count; i++) lines -= s->parts[i].count;
  return lines <= 0;
}

/* Reads the script once more, for literals in which something was replaced. */
static void find_templates(lexer *s, const lexer *anew) {
  tps_rtc_template *t = tps_rtc_template_new(s->source, s->source_size);
  if (t == NULL) return;
  lexer again = *anew;
  again.made_of = t;
  again.value = s->value;
  again.most = 0; /* no whole ones */
  read_script(&again, s->source, s->source_size);
  s->count = tps_rtc_template_parts(t, s->parts, s->count, s->most);
  tps_rtc_template_free(t);
}

size_t tps_rtc_locate_parts(const char *script, size_t script_size,
                            const char *source, size_t source_size,
                            tps_rtc_part *parts, size_t most) {
  const lexer anew = {.at = script,
                      .end = script + script_size,
                      .line = 1,
                      .source = source,
                      .source_size = source_size,
                      .room = script_size, /* no value is longer */
                      .parts = parts,
                      .most = most};
  lexer s = anew;
  if (source_size < SHORTEST_PART || source_size > LARGEST_SOURCE) return 0;
  s.value = malloc(script_size + 1);
  if (s.value == NULL) return 0;
  read_script(&s, source, source_size);
  if (!is_whole(&s)) find_templates(&s, &anew);
  free(s.value);
  return s.count;
}
