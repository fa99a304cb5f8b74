/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Writes one JSON document to stdout, value by value. It is valid whatever the
 * strings hold: bytes that are no UTF-8 become U+FFFD.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host/host.h"

/* How many bytes the character at p has; 0 if it is no UTF-8. Surrogates,
 * overlong forms and what is beyond U+10FFFF are none. */
static size_t character_size(const unsigned char *p) {
  size_t size = p[0] < 0x80                   ? 1
                : p[0] >= 0xC2 && p[0] < 0xE0 ? 2
                : (p[0] & 0xF0) == 0xE0       ? 3
                : p[0] >= 0xF0 && p[0] < 0xF5 ? 4
                                              : 0;
  for (size_t i = 1; i < size; i++)
    if ((p[i] & 0xC0) != 0x80) return 0;
  if (p[0] == 0xE0 && p[1] < 0xA0) return 0;
  if (p[0] == 0xED && p[1] > 0x9F) return 0;
  if (p[0] == 0xF0 && p[1] < 0x90) return 0;
  if (p[0] == 0xF4 && p[1] > 0x8F) return 0;
  return size;
}

static void write_string(const char *text) {
  const unsigned char *p = (const unsigned char *)text;
  putchar('"');
  while (*p != '\0') {
    size_t size = character_size(p);
    if (size == 0) fputs("\\ufffd", stdout);
    else if (*p < 0x20 || *p == 0x7F) printf("\\u%04x", *p);
    else if (*p == '"' || *p == '\\') printf("\\%c", *p);
    else fwrite(p, 1, size, stdout);
    p += size > 0 ? size : 1;
  }
  putchar('"');
}

/* What stands before a value: a comma, the line's indentation, the key. */
static void begin(host_json *json, const char *key) {
  if (json->depth > 0)
    printf("%s\n%*s", json->first ? "" : ",", json->depth * 2, "");
  json->first = false;
  if (key == NULL) return;
  write_string(key);
  fputs(": ", stdout);
}

void host_json_open(host_json *json, const char *key, char bracket) {
  begin(json, key);
  putchar(bracket);
  json->depth++;
  json->first = true;
}

void host_json_close(host_json *json, char bracket) {
  json->depth--;
  if (!json->first) printf("\n%*s", json->depth * 2, "");
  putchar(bracket);
  json->first = false;
  if (json->depth == 0) putchar('\n');
}

void host_json_string(host_json *json, const char *key, const char *text) {
  begin(json, key);
  if (text != NULL) write_string(text);
  else fputs("null", stdout);
}

void host_json_integer(host_json *json, const char *key, int64_t value) {
  begin(json, key);
  printf("%" PRId64, value);
}

void host_json_boolean(host_json *json, const char *key, bool value) {
  begin(json, key);
  fputs(value ? "true" : "false", stdout);
}
