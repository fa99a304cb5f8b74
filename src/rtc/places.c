/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What PTX calls the places of a program. NVRTC knows every program by one name;
 * faults shall tell the one that the script gave or, without one, the lines of the
 * script in which the source stands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rtc/parts.h"

#define FILE_LINE "\t.file\t"
#define LOC_LINE "\t.loc\t"
#define INLINED "inlined_at "

void tps_rtc_shorten_paths(tps_rtc_build *b) {
  char *cwd = getcwd(NULL, 0);
  size_t n = cwd != NULL ? strlen(cwd) : 0;
  char *to = b->ptx;
  const char *from = b->ptx, *p = b->ptx;
  while (n > 0 && (p = strstr(p, FILE_LINE)) != NULL) {
    p += strlen(FILE_LINE);
    p += strspn(p, "0123456789 \t");
    if (*p != '"' || strncmp(p + 1, cwd, n) != 0 || p[1 + n] != '/') continue;
    size_t part = (size_t)(p + 1 - from);
    memmove(to, from, part);
    to += part;
    from = p += 1 + n + 1;
  }
  free(cwd);
  if (to == b->ptx) return;
  size_t rest = strlen(from);
  memmove(to, from, rest + 1);
  b->ptx_size -= (size_t)(from - to);
}

/* The quoted name at `quote` is the program's, in whichever folder. */
static bool is_program(const char *quote) {
  const char *name = quote + 1, *end = strchr(name, '"');
  size_t n = strlen(TPS_RTC_PROGRAM);
  if (end == NULL || (size_t)(end - name) < n) return false;
  return strncmp(end - n, TPS_RTC_PROGRAM, n) == 0 &&
         (end - n == name || end[-(ptrdiff_t)n - 1] == '/');
}

/* From the number that the program's file has; NULL: no line tells its place. */
static const char *program_file(const tps_rtc_build *b) {
  const char *found = strstr(b->ptx, FILE_LINE);
  while (found != NULL) {
    const char *quote = strchr(found, '"');
    if (quote != NULL && is_program(quote)) return found + strlen(FILE_LINE);
    found = strstr(found + 1, FILE_LINE);
  }
  return NULL;
}

static void set_text(tps_rtc_build *b, char *text, size_t size) {
  free(b->ptx);
  b->ptx = text;
  b->ptx_size = size;
}

bool tps_rtc_name_program(tps_rtc_build *b, const char *name) {
  const char *file = program_file(b);
  if (file == NULL || strpbrk(name, "\"\\") != NULL) return true;
  const char *at = strchr(file, '"') + 1;
  size_t before = (size_t)(at - b->ptx), length = strlen(name);
  size_t old = strcspn(at, "\""), after = b->ptx_size - before - old;
  char *text = malloc(before + length + after + 1);
  if (text == NULL) return false;
  memcpy(text, b->ptx, before);
  memcpy(text + before, name, length);
  memcpy(text + before + length, at + old, after);
  text[before + length + after] = '\0';
  set_text(b, text, before + length + after);
  return true;
}

/* ---- lines of a script --------------------------------------------------- */

typedef struct placing {
  const tps_rtc_request *request;
  unsigned long program, script; /* numbers of files */
  FILE *out;
  const char *from; /* all before it is written */
} placing;

/* The line of the script on which that of the program stands, or 0. */
static unsigned long script_line(const tps_rtc_request *r, unsigned long line) {
  for (size_t i = 0; i < r->part_count; i++) {
    const tps_rtc_part *p = &r->parts[i];
    unsigned long first = (unsigned long)p->line;
    if (line < first || line - first >= (unsigned long)p->count) continue;
    return (unsigned long)p->script_line + (p->flat ? 0 : line - first);
  }
  return 0;
}

/* "FILE LINE" at `at`: what follows. */
static const char *place(placing *w, const char *at) {
  char *middle, *end;
  unsigned long file = strtoul(at, &middle, 10);
  unsigned long line = strtoul(middle, &end, 10);
  if (file != w->program || end == middle) return at;
  line = script_line(w->request, line);
  if (line == 0) return end;
  fwrite(w->from, 1, (size_t)(at - w->from), w->out);
  fprintf(w->out, "%lu %lu", w->script, line);
  return w->from = end;
}

/* A line that tells where the instructions below it come from. */
static const char *place_line(placing *w, const char *at) {
  at = place(w, at + strlen(LOC_LINE));
  const char *end = at + strcspn(at, "\n");
  const char *outer = strstr(at, INLINED);
  return outer != NULL && outer < end ? place(w, outer + strlen(INLINED)) : end;
}

/* One more than that of any file. */
static unsigned long next_file(const tps_rtc_build *b) {
  unsigned long most = 0;
  const char *at = b->ptx;
  while ((at = strstr(at, FILE_LINE)) != NULL) {
    at += strlen(FILE_LINE);
    unsigned long number = strtoul(at, NULL, 10);
    if (number > most) most = number;
  }
  return most + 1;
}

/* The script as one more file, before the program's own line. */
static void add_script(placing *w, const char *file) {
  const char *line = file - strlen(FILE_LINE);
  fwrite(w->from, 1, (size_t)(line - w->from), w->out);
  fprintf(w->out, FILE_LINE "%lu \"", w->script);
  for (const char *p = w->request->script; *p != '\0'; p++)
    fputc(*p == '"' ? '\'' : *p, w->out);
  fputs("\"\n", w->out);
  w->from = line;
}

static void place_all(placing *w, const tps_rtc_build *b, const char *file) {
  const char *at = b->ptx;
  while ((at = strstr(at, LOC_LINE)) != NULL) {
    if (w->from <= file && at > file) add_script(w, file);
    at = place_line(w, at);
  }
  if (w->from <= file) add_script(w, file);
  fwrite(w->from, 1, (size_t)(b->ptx + b->ptx_size - w->from), w->out);
}

bool tps_rtc_place_lines(tps_rtc_build *b, const tps_rtc_request *request) {
  const char *file = program_file(b);
  char *text = NULL;
  size_t size;
  if (request->part_count == 0 || file == NULL) return true;
  if (strpbrk(request->script, "\\\n\r") != NULL) return true;
  placing w = {.request = request,
               .program = strtoul(file, NULL, 10),
               .script = next_file(b),
               .out = open_memstream(&text, &size),
               .from = b->ptx};
  if (w.out == NULL) return false;
  place_all(&w, b, file);
  bool good = ferror(w.out) == 0;
  if (fclose(w.out) != 0) good = false;
  if (good) set_text(b, text, size);
  else free(text);
  return good;
}
