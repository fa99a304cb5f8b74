/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Growing arrays of strings: options, names, header lists. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

bool tps_strings_take(tps_strings *list, char *text) {
  if (text == NULL) return false;
  if (list->count == list->room) {
    size_t room = list->room ? list->room * 2 : 8;
    char **items = realloc(list->items, room * sizeof *items);
    if (items == NULL) {
      free(text);
      return false;
    }
    list->items = items;
    list->room = room;
  }
  list->items[list->count++] = text;
  return true;
}

bool tps_strings_add(tps_strings *list, const char *text) {
  return tps_strings_take(list, strdup(text));
}

bool tps_strings_format(tps_strings *list, const char *format, ...) {
  char *text;
  va_list args;
  va_start(args, format);
  int n = vasprintf(&text, format, args);
  va_end(args);
  return n >= 0 && tps_strings_take(list, text);
}

bool tps_strings_has(const tps_strings *list, const char *text) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i], text) == 0) return true;
  return false;
}

void tps_strings_free(tps_strings *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
  memset(list, 0, sizeof *list);
}

char *tps_strings_join(const tps_strings *list, const char *between) {
  size_t size = 1;
  for (size_t i = 0; i < list->count; i++)
    size += strlen(list->items[i]) + strlen(between);
  char *text = malloc(size), *p = text;
  if (text == NULL) return NULL;
  *p = '\0';
  for (size_t i = 0; i < list->count; i++) {
    if (i > 0) p = stpcpy(p, between);
    p = stpcpy(p, list->items[i]);
  }
  return text;
}
