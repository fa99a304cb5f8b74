/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Tokens. The text ends in NUL and has no other, so that no look ahead needs a
 * test for the end.
 */
#include "ptx/reader.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLANK = 1, NAME_START = 2, NAME_PART = 4, DIGIT = 8, HEX = 16 };

/* clang-format off */
static const uint8_t classes[256] = {
    [' '] = BLANK,  ['\t'] = BLANK, ['\r'] = BLANK, ['\f'] = BLANK,
    ['\v'] = BLANK, ['\n'] = BLANK,
    ['a' ... 'f'] = NAME_START | NAME_PART | HEX,
    ['g' ... 'z'] = NAME_START | NAME_PART,
    ['A' ... 'F'] = NAME_START | NAME_PART | HEX,
    ['G' ... 'Z'] = NAME_START | NAME_PART,
    ['_'] = NAME_START | NAME_PART, ['$'] = NAME_START | NAME_PART,
    ['%'] = NAME_START,
    ['0' ... '9'] = NAME_PART | DIGIT | HEX,
};
/* clang-format on */

static bool is(char c, int class) { return classes[(uint8_t)c] & class; }

/* --- blanks */

static void skip_comment(reader *r) {
  uint32_t line = r->line;
  const char *p = r->text + r->pos + 2;
  for (; p[0] != '*' || p[1] != '/'; p++) {
    if (*p == '\0') tps_ptx_stop(r, line, "comment without an end");
    if (*p == '\n') r->line++;
  }
  r->pos = (uint32_t)(p + 2 - r->text);
}

void tps_ptx_skip_line(reader *r) {
  r->pos += (uint32_t)strcspn(r->text + r->pos, "\n");
}

/* What a C preprocessor leaves: # 12 "file", #line 12 "file". */
static bool is_line_marker(const reader *r) {
  const char *p = r->text + r->pos + 1;
  while (*p == ' ' || *p == '\t') p++;
  return is(*p, DIGIT) || strncmp(p, "line", 4) == 0;
}

static void skip_blanks(reader *r) {
  for (;;) {
    char c = r->text[r->pos];
    if (is(c, BLANK)) {
      if (c == '\n') r->line++;
      r->pos++;
    } else if ((c == '/' && r->text[r->pos + 1] == '/') ||
               (c == '#' && is_line_marker(r))) {
      tps_ptx_skip_line(r);
    } else if (c == '/' && r->text[r->pos + 1] == '*') {
      skip_comment(r);
    } else {
      return;
    }
  }
}

/* --- numbers */

static unsigned digit_value(char c) {
  return c <= '9' ? (unsigned)(c - '0') : ((unsigned)c | 32) - 'a' + 10;
}

static const char *float_bits(reader *r, const char *p, unsigned digits) {
  for (unsigned i = 0; i < digits; i++, p++) {
    if (!is(*p, HEX))
      tps_ptx_stop(r, r->line, "0%c needs %u hexadecimal digits",
                   digits == 8 ? 'f' : 'd', digits);
    r->tok.value = r->tok.value << 4 | digit_value(*p);
  }
  r->tok.kind = T_FLOAT;
  r->tok.type = digits == 8 ? TPS_PTX_F32 : TPS_PTX_F64;
  return p;
}

static const char *integer(reader *r, const char *p, unsigned base) {
  const char *first = p;
  uint64_t value = 0;
  for (; is(*p, HEX) && digit_value(*p) < base; p++) {
    if (value > (UINT64_MAX - digit_value(*p)) / base)
      tps_ptx_stop(r, r->line, "integer of more than 64 bits");
    value = value * base + digit_value(*p);
  }
  if (p == first) tps_ptx_stop(r, r->line, "number without digits");
  r->tok.kind = T_INTEGER;
  r->tok.type = value > INT64_MAX ? TPS_PTX_U64 : TPS_PTX_S64;
  if (*p == 'U' || *p == 'u') {
    r->tok.type = TPS_PTX_U64;
    p++;
  }
  r->tok.value = value;
  return p;
}

/* strtod wants the point of the process's locale. */
static const char *decimal(reader *r, const char *p, const char *end) {
  char copy[400];
  size_t size = (size_t)(end - p);
  if (size >= sizeof copy)
    tps_ptx_stop(r, r->line, "number of %zu characters (limit %zu)", size,
                 sizeof copy - 1);
  memcpy(copy, p, size);
  copy[size] = '\0';
  char *point = strchr(copy, '.');
  if (point != NULL) *point = localeconv()->decimal_point[0];
  double value = strtod(copy, NULL);
  memcpy(&r->tok.value, &value, sizeof value);
  r->tok.kind = T_FLOAT;
  r->tok.type = TPS_PTX_F64;
  return end;
}

/* End of a decimal float that begins at p, or NULL when it is none. */
static const char *decimal_end(const char *p) {
  const char *digits = p;
  bool is_float = false;
  while (is(*p, DIGIT)) p++;
  if (*p == '.' && (is(p[1], DIGIT) || !is(p[1], NAME_START))) {
    is_float = true;
    for (p++; is(*p, DIGIT);) p++;
  }
  if ((*p == 'e' || *p == 'E') && p > digits) {
    const char *q = p + 1 + (p[1] == '+' || p[1] == '-');
    if (is(*q, DIGIT)) {
      is_float = true;
      for (p = q; is(*p, DIGIT);) p++;
    }
  }
  return is_float ? p : NULL;
}

static const char *number(reader *r, const char *p) {
  char mark = (char)(p[0] == '0' ? p[1] | 32 : 0);
  const char *end = decimal_end(p);
  r->tok.value = 0;
  if (mark == 'f') p = float_bits(r, p + 2, 8);
  else if (mark == 'd') p = float_bits(r, p + 2, 16);
  else if (mark == 'x') p = integer(r, p + 2, 16);
  else if (mark == 'b') p = integer(r, p + 2, 2);
  else if (end != NULL) p = decimal(r, p, end);
  else p = integer(r, p, p[0] == '0' && is(p[1], DIGIT) ? 8 : 10);
  if (is(*p, NAME_PART | NAME_START))
    tps_ptx_stop(r, r->line, "malformed number");
  return p;
}

/* --- tokens */

static const char *name_end(const char *p) {
  for (p++; is(*p, NAME_PART);) p++;
  return p;
}

/* Behind a word that begins at p; :: joins, as in L1::no_allocate. */
static const char *word_end(const char *p) {
  for (;;) {
    while (is(*p, NAME_PART)) p++;
    if (p[0] != ':' || p[1] != ':' || !is(p[2], NAME_PART)) return p;
    p += 2;
  }
}

static const char *string(reader *r, const char *p) {
  r->tok.kind = T_STRING;
  r->tok.at++;
  for (p++; *p != '"'; p++) {
    if (*p == '\\' && p[1] != '\0' && p[1] != '\n') p++;
    else if (*p == '\0' || *p == '\n')
      tps_ptx_stop(r, r->line, "string without an end");
  }
  return p;
}

static int pair_kind(char a, char b) {
  static const struct {
    char text[3];
    int kind;
  } pairs[] = {{"<<", T_LEFT}, {">>", T_RIGHT}, {"<=", T_LE},  {">=", T_GE},
               {"==", T_EQ},   {"!=", T_NE},    {"&&", T_AND}, {"||", T_OR}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    if (pairs[i].text[0] == a && pairs[i].text[1] == b) return pairs[i].kind;
  return 0;
}

static const char *punctuation(reader *r, const char *p) {
  int kind = pair_kind(p[0], p[1]);
  if (kind != 0) {
    r->tok.kind = kind;
    return p + 2;
  }
  if (*p <= ' ' || *p > '~')
    tps_ptx_stop(r, r->line, "unexpected byte 0x%02x", (uint8_t)*p);
  r->tok.kind = (unsigned char)*p;
  return p + 1;
}

void tps_ptx_next(reader *r) {
  skip_blanks(r);
  const char *p = r->text + r->pos, *end = p;
  r->tok.at = r->pos;
  r->tok.line = r->line;
  if (*p == '\0') {
    r->tok.kind = T_END;
  } else if (is(*p, NAME_START) && (*p != '%' || is(p[1], NAME_PART))) {
    r->tok.kind = T_NAME;
    end = name_end(p);
  } else if (is(*p, DIGIT)) {
    end = number(r, p);
  } else if (*p == '.' && is(p[1], NAME_PART)) {
    r->tok.kind = T_WORD;
    r->tok.at++;
    end = word_end(p + 1);
  } else if (*p == '"') {
    end = string(r, p);
  } else {
    end = punctuation(r, p);
  }
  r->tok.size = (uint32_t)(end - r->text) - r->tok.at;
  r->pos = (uint32_t)(end - r->text) + (r->tok.kind == T_STRING);
}

bool tps_ptx_is(const reader *r, int kind) { return r->tok.kind == kind; }

static bool has_text(const reader *r, const char *text) {
  return strncmp(r->text + r->tok.at, text, r->tok.size) == 0 &&
         text[r->tok.size] == '\0';
}

bool tps_ptx_is_word(const reader *r, const char *word) {
  return r->tok.kind == T_WORD && has_text(r, word);
}

bool tps_ptx_is_name(const reader *r, const char *text) {
  return r->tok.kind == T_NAME && has_text(r, text);
}

bool tps_ptx_accept(reader *r, int kind) {
  if (r->tok.kind != kind) return false;
  tps_ptx_next(r);
  return true;
}

bool tps_ptx_accept_word(reader *r, const char *word) {
  if (!tps_ptx_is_word(r, word)) return false;
  tps_ptx_next(r);
  return true;
}

const char *tps_ptx_token_text(const reader *r, char *into) {
  if (r->tok.kind == T_END) return strcpy(into, "the end of the text");
  bool dotted = r->tok.kind == T_WORD;
  int size = r->tok.size > 60 ? 60 : (int)r->tok.size;
  snprintf(into, 80, "'%s%.*s%s'", dotted ? "." : "", size, r->text + r->tok.at,
           r->tok.size > 60 ? "..." : "");
  for (char *p = into; *p != '\0'; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  return into;
}

void tps_ptx_unexpected(reader *r, const char *wanted) {
  char found[80];
  tps_ptx_stop(r, r->tok.line, "expected %s, found %s", wanted,
               tps_ptx_token_text(r, found));
}

void tps_ptx_expect(reader *r, int kind, const char *after) {
  char wanted[400];
  if (tps_ptx_accept(r, kind)) return;
  snprintf(wanted, sizeof wanted, "%s%c%s after %.300s", kind < 256 ? "'" : "",
           kind < 256 ? kind : 'a', kind < 256 ? "'" : " name", after);
  tps_ptx_unexpected(r, wanted);
}

/* --- opcodes */

/* .const[3] of old versions: the bank is passed over. */
static const char *skip_bank(const char *word, const char *end) {
  if (end - word != 5 || strncmp(word, "const", 5) != 0 || *end != '[')
    return end;
  const char *p = end + 1;
  while (is(*p, DIGIT)) p++;
  return *p == ']' ? p + 1 : end;
}

static void append(reader *r, const char *data, size_t size) {
  for (size_t i = 0; i < size; i++)
    *(char *)tps_ptx_push(r, &r->scratch, 1) = data[i];
}

/* Words that stand apart (add .s32) or follow a bank: collected in scratch.
 * `word` is the last one read. */
static const char *apart(reader *r, uint32_t start, const char *word,
                         uint32_t *size) {
  r->scratch.used = 0;
  append(r, r->text + start, r->pos - start);
  for (;;) {
    r->pos = (uint32_t)(skip_bank(word, r->text + r->pos) - r->text);
    tps_ptx_next(r);
    if (r->tok.kind != T_WORD) break;
    word = r->text + r->tok.at;
    append(r, ".", 1);
    append(r, word, r->tok.size);
  }
  *size = (uint32_t)r->scratch.used;
  return r->scratch.data;
}

const char *tps_ptx_opcode_rest(reader *r, uint32_t start, uint32_t *size) {
  const char *p = r->text + r->pos, *word = p;
  while (p[0] == '.' && is(p[1], NAME_PART)) {
    word = p + 1;
    p = word_end(word);
    if (skip_bank(word, p) != p) break;
  }
  r->pos = (uint32_t)(p - r->text);
  uint32_t pos = r->pos, line = r->line;
  bool bank = skip_bank(word, p) != p;
  if (!bank) tps_ptx_next(r);
  if (bank || r->tok.kind == T_WORD) {
    r->pos = pos;
    r->line = line;
    return apart(r, start, word, size);
  }
  *size = pos - start;
  return r->text + start;
}

/* --- debug sections */

void tps_ptx_skip_section(reader *r, uint32_t line) {
  while (r->tok.kind != '}') {
    if (r->tok.kind == T_END)
      tps_ptx_stop(r, line, "section without a closing brace");
    /* a long list of bytes: pass over its plain characters at once */
    while (is(r->text[r->pos], NAME_PART | NAME_START) ||
           r->text[r->pos] == '.' || r->text[r->pos] == ',' ||
           r->text[r->pos] == ' ')
      r->pos++;
    tps_ptx_next(r);
  }
  tps_ptx_next(r);
}
