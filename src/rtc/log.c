/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * NVRTC's log → diagnostics. A diagnostic is a head line "file(line): severity
 * #number: message", lines that go on with the message, and, mostly, the
 * source line (indented by two) with a line below that holds but a caret.
 * Templates add where they were instantiated; each such place becomes a note.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

#define LONGEST 65536 /* bytes of a message: a log may be of any size */
#define LONG_LINE 200u
#define NAME_MAP "__nv_name_map" /* NVRTC's own file for name expressions */

typedef struct line {
  const char *text;
  size_t size;
} line;

typedef struct reader {
  const char *at;
  tps_rtc_report *report;
  size_t room;
  size_t other_size;
  bool failed; /* out of memory */
} reader;

static bool next_line(reader *r, line *out) {
  if (*r->at == '\0') return false;
  out->text = r->at;
  out->size = strcspn(r->at, "\n");
  r->at += out->size + (r->at[out->size] == '\n');
  return true;
}

static char *copy(const char *text, size_t size) { return strndup(text, size); }

static const char *find(line l, const char *what) {
  return memmem(l.text, l.size, what, strlen(what));
}

/* ---- head lines ---------------------------------------------------------- */

typedef struct head {
  line file;
  int line;
  int number;  /* of the diagnostic, 0 if none is shown */
  bool at_end; /* of the source */
  uint8_t severity;
  line message;
} head;

static const struct {
  const char *word;
  uint8_t severity;
} severities[] = {{"catastrophic error", TPS_RTC_ERROR},
                  {"fatal error", TPS_RTC_ERROR},
                  {"internal error", TPS_RTC_ERROR},
                  {"error", TPS_RTC_ERROR},
                  {"warning", TPS_RTC_WARNING},
                  {"remark", TPS_RTC_NOTE},
                  {"note", TPS_RTC_NOTE},
                  {"Error", TPS_RTC_ERROR}, /* the assembler's */
                  {"Warning", TPS_RTC_WARNING}};

/* The number in " #177-D" between severity and colon is what switches a
 * diagnostic off. */
static bool read_severity(const char *p, const char *end, head *out) {
  for (size_t i = 0; i < sizeof severities / sizeof severities[0]; i++) {
    size_t n = strlen(severities[i].word);
    if ((size_t)(end - p) <= n || memcmp(p, severities[i].word, n) != 0)
      continue;
    const char *q = p + n;
    out->number = 0;
    if (*q == ' ' && end - q > 1 && q[1] == '#')
      for (q += 2; q < end && *q != ':' && *q != ' '; q++)
        if (*q >= '0' && *q <= '9' && out->number < 100000)
          out->number = out->number * 10 + (*q - '0');
    if (q >= end || *q != ':') continue;
    q++;
    if (q < end && *q == ' ') q++;
    out->severity = severities[i].severity;
    out->message = (line){q, (size_t)(end - q)};
    return true;
  }
  return false;
}

/* The place "name(12)" that ends where `close` stands. */
static bool read_place(line l, const char *close, head *out) {
  const char *p = close;
  int number = 0, scale = 1;
  while (p > l.text && p[-1] >= '0' && p[-1] <= '9' && scale < 100000000) {
    number += (*--p - '0') * scale;
    scale *= 10;
  }
  if (p == close || p <= l.text + 1 || p[-1] != '(') return false;
  out->line = number;
  out->file = (line){l.text, (size_t)(p - 1 - l.text)};
  return true;
}

/* Lines that say only what the diagnostics have shown. */
static bool is_summary(line l) {
  return l.size == 0 || find(l, "Remark: The warnings can be supp") == l.text ||
         find(l, "detected in the compilation of ") != NULL ||
         find(l, "Compilation terminated.") == l.text ||
         find(l, "ptxas fatal   : Ptx assembly aborted") == l.text;
}

/* "ptxas application ptx input, line 28; fatal   : …": lines of a text that nobody
 * has seen. */
static bool read_assembler(line l, head *out) {
  static const char *const words[] = {"fatal", "error", "warning"};
  const char *end = l.text + l.size;
  if (find(l, "ptxas ") != l.text) return false;
  const char *p = memchr(l.text, ';', l.size);
  p = p != NULL ? p + 1 : l.text + strlen("ptxas ");
  while (p < end && *p == ' ') p++;
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(end - p) <= n || memcmp(p, words[i], n) != 0) continue;
    for (p += n; p < end && *p == ' ';) p++;
    if (end - p < 3 || *p != ':') return false;
    *out = (head){.file = {"ptxas", 5},
                  .severity = i < 2 ? TPS_RTC_ERROR : TPS_RTC_WARNING,
                  .message = {p + 2, (size_t)(end - p - 2)}};
    return true;
  }
  return false;
}

static bool read_head(line l, head *out) {
  const char *end = l.text + l.size;
  out->at_end = false;
  if (is_summary(l)) return false;
  if (read_assembler(l, out)) return true;
  if (l.size == 0 || *l.text == ' ' || *l.text == '\t') return false;
  for (const char *p = l.text; p + 2 < end; p++)
    if (p[0] == ')' && p[1] == ':' && p[2] == ' ' &&
        read_severity(p + 3, end, out) && read_place(l, p, out))
      return true;
  static const char *const placeless[] = {"At end of source: ", "nvrtc: "};
  for (int i = 0; i < 2; i++) {
    size_t n = strlen(placeless[i]);
    if (l.size > n && memcmp(l.text, placeless[i], n) == 0 &&
        read_severity(l.text + n, end, out)) {
      out->file = (line){TPS_RTC_PROGRAM, strlen(TPS_RTC_PROGRAM)};
      out->line = 0;
      out->at_end = i == 0;
      return true;
    }
  }
  return false;
}

/* ---- diagnostics --------------------------------------------------------- */

static tps_rtc_diagnostic *add(reader *r, uint8_t severity, line file,
                               int number, line message) {
  tps_rtc_report *report = r->report;
  if (report->diagnostic_count == r->room) {
    size_t room = r->room ? r->room * 2 : 8;
    tps_rtc_diagnostic *all = realloc(report->diagnostics, room * sizeof *all);
    if (all == NULL) {
      r->failed = true;
      return NULL;
    }
    report->diagnostics = all;
    r->room = room;
  }
  tps_rtc_diagnostic *d = &report->diagnostics[report->diagnostic_count++];
  *d = (tps_rtc_diagnostic){.severity = severity, .line = number};
  d->file = copy(file.text, file.size);
  d->message = copy(message.text, message.size);
  if (d->file == NULL || d->message == NULL) r->failed = true;
  return d;
}

/* The column in characters: the caret line has one place for each byte. */
static int characters_before(const char *text, size_t bytes) {
  int n = 0;
  for (size_t i = 0; i < bytes && text[i] != '\0'; i++)
    n += ((unsigned char)text[i] & 0xC0) != 0x80;
  return n;
}

static bool is_caret(line l) {
  size_t n = 0;
  while (n < l.size && (l.text[n] == ' ' || l.text[n] == '\t')) n++;
  return n >= 2 && n + 1 == l.size && l.text[n] == '^';
}

static void append(reader *r, tps_rtc_diagnostic *d, line more, char between) {
  if (d->message == NULL) return;
  size_t size = strlen(d->message);
  if (size + more.size > LONGEST) return;
  char *text = realloc(d->message, size + more.size + 2);
  if (text == NULL) {
    r->failed = true;
    return;
  }
  text[size] = between;
  memcpy(text + size + 1, more.text, more.size);
  text[size + 1 + more.size] = '\0';
  d->message = text;
}

static line trim(line l) {
  while (l.size > 0 && (*l.text == ' ' || *l.text == '\t')) l.text++, l.size--;
  return l;
}

/* "… at line 7" or "… at line 7 of "a.h"": the number, and the file if named.
 */
static bool read_at_line(line l, line *message, int *number, line *file) {
  static const char word[] = " at line ";
  const char *at = NULL, *end = l.text + l.size;
  for (const char *p = find(l, word); p != NULL;
       p = find((line){p + 1, (size_t)(end - p - 1)}, word))
    at = p;
  if (at == NULL) return false;
  const char *p = at + strlen(word);
  int n = 0;
  for (; p < end && *p >= '0' && *p <= '9' && n < 100000000; p++)
    n = n * 10 + (*p - '0');
  if (n == 0) return false;
  *message = (line){l.text, (size_t)(at - l.text)};
  *number = n;
  if (end - p > 4 && memcmp(p, " of ", 4) == 0) {
    p += 4;
    if (*p == '"' && end[-1] == '"') p++, end--;
    *file = (line){p, (size_t)(end - p)};
  }
  return true;
}

/* A line after the head that is neither source nor caret. Notes come after the
 * diagnostic, so that `index` and not a pointer says which that is. */
static void read_more(reader *r, size_t index, line l) {
  tps_rtc_diagnostic *d = &r->report->diagnostics[index];
  line message, file = {d->file, strlen(d->file)};
  int number;
  l = trim(l);
  if (l.size > 0 && read_at_line(l, &message, &number, &file)) {
    char *name = copy(file.text, file.size); /* `add` may move *d */
    if (name != NULL)
      add(r, TPS_RTC_NOTE, (line){name, strlen(name)}, number, message);
    free(name);
  } else if (l.size > 0 && find(l, "detected during ") == l.text) {
    char *name = copy(file.text, file.size);
    if (name != NULL) add(r, TPS_RTC_NOTE, (line){name, strlen(name)}, 0, l);
    free(name);
  } else if (l.size > 0 && find(l, "detected during:") == NULL)
    append(r, d, l, '\n');
}

/* Errors in name expressions lie in a file that NVRTC makes up: the expression
 * itself is the source line. */
static void show_expression(tps_rtc_diagnostic *d) {
  static const char pragma[] = "#pragma nv_mangled_name ";
  if (strcmp(d->file, NAME_MAP) != 0) return;
  d->line = 0;
  strcpy(d->file, "names"); /* shorter than NAME_MAP */
  size_t n = strlen(pragma);
  if (d->text == NULL || strncmp(d->text, pragma, n) != 0) return;
  memmove(d->text, d->text + n, strlen(d->text) - n + 1);
  d->column = d->column > (int)n ? d->column - (int)n : 0;
}

/* Moves p to where a character begins. */
static size_t to_character(const char *text, size_t p) {
  while (p > 0 && ((unsigned char)text[p] & 0xC0) == 0x80) p--;
  return p;
}

/* Sets the source line, and the column from the caret's byte; of a long line only
 * what is about there. */
static void set_source(reader *r, tps_rtc_diagnostic *d, line l, size_t caret) {
  size_t from = 0, to = l.size;
  if (l.size > LONG_LINE) {
    if (caret > LONG_LINE / 2)
      from = to_character(l.text, caret - LONG_LINE / 2 < l.size
                                      ? caret - LONG_LINE / 2
                                      : l.size - 1);
    if (from + LONG_LINE < l.size) to = to_character(l.text, from + LONG_LINE);
  }
  const char *before = from > 0 ? "..." : "", *after = to < l.size ? "..." : "";
  free(d->text);
  if (asprintf(&d->text, "%s%.*s%s", before, (int)(to - from), l.text + from,
               after) < 0) {
    d->text = NULL;
    r->failed = true;
    return;
  }
  size_t bytes = strlen(before) + (caret > from ? caret - from : 0);
  d->column = characters_before(d->text, bytes) + 1;
}

static void read_body(reader *r, size_t index) {
  line previous = {NULL, 0}, l;
  head h;
  for (const char *back = r->at; next_line(r, &l); back = r->at) {
    if (is_summary(l)) break;
    if (read_head(l, &h)) {
      r->at = back; /* the next diagnostic */
      break;
    }
    if (is_caret(l) && previous.text != NULL && previous.size >= 2) {
      set_source(r, &r->report->diagnostics[index],
                 (line){previous.text + 2, previous.size - 2}, l.size - 3);
      previous.text = NULL;
      continue;
    }
    if (previous.text != NULL) read_more(r, index, previous);
    if (r->failed) return;
    previous = l;
  }
  if (previous.text != NULL) read_more(r, index, previous);
}

/* What the assembler tells when asked with -v, say. */
static void read_other(reader *r, line l) {
  size_t size = r->other_size;
  if (is_summary(l) || size + l.size > LONGEST) return;
  char *text = realloc(r->report->other, size + l.size + 2);
  if (text == NULL) {
    r->failed = true;
    return;
  }
  memcpy(text + size, l.text, l.size);
  memcpy(text + size + l.size, "\n", 2);
  r->report->other = text;
  r->other_size = size + l.size + 1;
}

bool tps_rtc_read_log(char *log, tps_rtc_report *report) {
  static const char at_end[] = "at the end of the source";
  reader r = {.at = log, .report = report};
  line l;
  head h;
  report->log = log;
  while (!r.failed && next_line(&r, &l)) {
    if (!read_head(l, &h)) {
      read_other(&r, l);
      continue;
    }
    if (find(h.message, "Error in parsing name expression") != NULL &&
        report->diagnostic_count > 0)
      continue; /* what is wrong with it has been said */
    size_t index = report->diagnostic_count;
    tps_rtc_diagnostic *d = add(&r, h.severity, h.file, h.line, h.message);
    if (d == NULL || r.failed) break;
    d->number = h.number;
    if (h.at_end) append(&r, d, (line){at_end, strlen(at_end)}, ' ');
    read_body(&r, index);
    if (!r.failed) show_expression(&report->diagnostics[index]);
  }
  return !r.failed;
}

void tps_rtc_diagnostic_free(tps_rtc_diagnostic *d) {
  free(d->file);
  free(d->message);
  free(d->text);
}

void tps_rtc_report_free(tps_rtc_report *report) {
  for (size_t i = 0; i < report->diagnostic_count; i++)
    tps_rtc_diagnostic_free(&report->diagnostics[i]);
  free(report->diagnostics);
  free(report->log);
  free(report->other);
  free(report->note);
  memset(report, 0, sizeof *report);
}
