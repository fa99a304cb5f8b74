/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What NVRTC would swallow without a word, and then compile to nothing: bytes
 * that are no UTF-8, NUL, lines that end in CR alone. */
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

/* Length of the UTF-8 character at p, or 0. No surrogates, no overlong forms.
 */
static size_t character(const unsigned char *p, size_t size) {
  static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = p[0] < 0x80   ? 1
             : p[0] < 0xC2 ? 0
             : p[0] < 0xE0 ? 2
             : p[0] < 0xF0 ? 3
             : p[0] < 0xF5 ? 4
                           : 0;
  if (n <= 1 || n > size) return n <= 1 ? n : 0;
  unsigned code = p[0] & (0x7Fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
    code = code << 6 | (p[i] & 0x3Fu);
  }
  bool good =
      code >= least[n] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return good ? n : 0;
}

typedef struct place {
  size_t byte; /* both from 1 */
  int line;
} place;

/* What is wrong with the text, or NULL; *at is where. */
static const char *find_fault(const unsigned char *text, size_t size,
                              place *at) {
  int line = 1;
  size_t i = 0;
  while (i < size) {
    *at = (place){i + 1, line};
    if (text[i] == '\0') return "a NUL byte";
    if (text[i] == '\r' && (i + 1 == size || text[i + 1] != '\n'))
      return "a line that ends in CR alone (LF or CRLF is needed)";
    size_t n = character(text + i, size - i);
    if (n == 0) return "a byte that is not UTF-8";
    line += text[i] == '\n';
    i += n;
  }
  return NULL;
}

static bool is_blank(const char *text) {
  return text[strspn(text, " \t\r\n\v\f")] == '\0';
}

static size_t mark_size(const char *text, size_t size) {
  return size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

int tps_rtc_check_text(const char *what, const char *text, size_t size,
                       tps_error *err) {
  place at;
  size_t mark = mark_size(text, size);
  const unsigned char *bytes = (const unsigned char *)text + mark;
  const char *fault = find_fault(bytes, size - mark, &at);
  if (fault == NULL) return 0;
  if (bytes[at.byte - 1] >= 0x80)
    return tps_fail(err, TPS_MISUSE, "%s has %s: 0x%02X at byte %zu, line %d",
                    what, fault, bytes[at.byte - 1], at.byte + mark, at.line);
  return tps_fail(err, TPS_MISUSE, "%s has %s at byte %zu, line %d", what,
                  fault, at.byte + mark, at.line);
}

/* The name of a file where its text belongs: no program looks like that. */
static bool is_path(const char *text) {
  size_t size = strlen(text);
  return size > 3 && strcmp(text + size - 3, ".cu") == 0 &&
         strpbrk(text, " \t\r\n;(){}") == NULL;
}

/* A text in which there can't be a program. */
static int refuse_text(const char *text, tps_error *err) {
  if (is_blank(text)) return tps_fail(err, TPS_MISUSE, "the source is empty");
  if (is_path(text))
    return tps_fail(err, TPS_MISUSE,
                    "the source is '%s': tp.compile takes the text, "
                    "tp.compile_file the path",
                    text);
  return 0;
}

int tps_rtc_check_source(const char *source, size_t size, char **out,
                         tps_error *err) {
  if (source == NULL) source = "", size = 0;
  int code = tps_rtc_check_text("the source", source, size, err);
  if (code != 0) return code;
  size_t mark = mark_size(source, size);
  size -= mark;
  *out = strndup(source + mark, size);
  if (*out == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  code = refuse_text(*out, err);
  if (code == 0) return 0;
  free(*out);
  *out = NULL;
  return code;
}

int tps_rtc_check_line(const char *what, const char *text, tps_error *err) {
  if (is_blank(text)) return tps_fail(err, TPS_MISUSE, "%s is empty", what);
  for (const char *p = text; *p != '\0'; p++)
    if (*p == '\n' || *p == '\r')
      return tps_fail(err, TPS_MISUSE, "%s '%.*s' has a line end", what,
                      (int)(p - text), text);
  return 0;
}
