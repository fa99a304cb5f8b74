/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What NVRTC leaves out of its diagnostics: where it has looked for a header that
 * it did not find, and through which #include lines it came to the file of an
 * error. The files are read again for that, by lines, and only then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rtc/parts.h"

#define MOST_FILES 4000u
#define LARGEST_FILE ((long)16 << 20)

/* ---- folders ------------------------------------------------------------- */

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The folder that option i names, by itself or in the next one; NULL: none. */
static const char *folder_of(const tps_strings *options, size_t i) {
  static const char *const forms[] = {"-I", "--include-path="};
  const char *option = options->items[i];
  const char *before = i > 0 ? options->items[i - 1] : NULL;
  if (before != NULL &&
      (strcmp(before, "-I") == 0 || strcmp(before, "--include-path") == 0))
    return option;
  for (size_t k = 0; k < 2; k++) {
    size_t n = strlen(forms[k]);
    if (strncmp(option, forms[k], n) == 0 && option[n] != '\0')
      return option + n;
  }
  return NULL;
}

/* Owned; the folder of the file at `path`, "." when it has none. */
static char *folder_of_file(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

/* ---- the chain ----------------------------------------------------------- */

/* A file that was reached, and from where. */
typedef struct visit {
  char *name;  /* as NVRTC would show it; NULL: the program */
  size_t from; /* index of the includer */
  int line;    /* in it */
} visit;

typedef struct walk {
  const tps_compiler *compiler;
  const tps_rtc_request *request;
  const tps_strings *options;
  tps_strings roots; /* of an untrusted request */
  visit *visits;
  size_t count, room;
  size_t read; /* so many of them have been looked into */
} walk;

/* The index of that file, made if it is new; 0 when that is not possible. */
static size_t add_visit(walk *w, const char *name, size_t from, int line) {
  for (size_t i = 1; i < w->count; i++)
    if (strcmp(w->visits[i].name, name) == 0) return i;
  if (w->count >= MOST_FILES) return 0;
  if (w->count == w->room) {
    size_t room = 2 * w->room;
    visit *visits = realloc(w->visits, room * sizeof *visits);
    if (visits == NULL) return 0;
    w->visits = visits;
    w->room = room;
  }
  char *copy = strdup(name);
  if (copy == NULL) return 0;
  w->visits[w->count] = (visit){copy, from, line};
  return w->count++;
}

static const char *given_text(const walk *w, const char *name) {
  for (size_t i = 0; i < w->request->header_count; i++)
    if (strcmp(w->request->headers[i].name, name) == 0)
      return w->request->headers[i].text;
  return NULL;
}

/* Notes the file if it is there. */
static bool try_in(walk *w, const char *folder, const char *name, size_t from,
                   int line) {
  char path[4096];
  struct stat info;
  int n = strcmp(folder, ".") == 0
              ? snprintf(path, sizeof path, "%s", name)
              : snprintf(path, sizeof path, "%s/%s", folder, name);
  if (n < 0 || (size_t)n >= sizeof path || stat(path, &info) != 0 ||
      !S_ISREG(info.st_mode) ||
      (w->request->untrusted && !tps_rtc_below(&w->roots, path)))
    return false;
  add_visit(w, path, from, line);
  return true;
}

static void resolve(walk *w, const char *name, bool quoted, size_t from,
                    int line) {
  if (given_text(w, name) != NULL) {
    add_visit(w, name, from, line);
    return;
  }
  if (*name == '/') {
    try_in(w, ".", name, from, line);
    return;
  }
  const char *own = w->request->folder != NULL ? w->request->folder : ".";
  char *folder = from == 0 ? strdup(own) : folder_of_file(w->visits[from].name);
  bool found = quoted && folder != NULL && try_in(w, folder, name, from, line);
  free(folder);
  for (size_t i = 0; i < w->options->count && !found; i++) {
    const char *searched = folder_of(w->options, i);
    found = searched != NULL && try_in(w, searched, name, from, line);
  }
}

/* One line of a text: what it includes is noted. */
static void read_line(walk *w, const char *p, const char *end, size_t from,
                      int line) {
  char name[1024];
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  if (p == end || *p != '#') return;
  do p++;
  while (p < end && (*p == ' ' || *p == '\t'));
  if (end - p < 8 || memcmp(p, "include", 7) != 0) return;
  p += 7;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  char close = '\0';
  if (p < end && *p == '"') close = '"';
  if (p < end && *p == '<') close = '>';
  if (close == '\0') return;
  const char *q = memchr(p + 1, close, (size_t)(end - p - 1));
  if (q == NULL || q == p + 1 || (size_t)(q - p) > sizeof name) return;
  memcpy(name, p + 1, (size_t)(q - p - 1));
  name[q - p - 1] = '\0';
  resolve(w, name, close == '"', from, line);
}

static void read_text(walk *w, const char *text, size_t from) {
  int line = 1;
  for (const char *p = text; *p != '\0'; line++) {
    size_t n = strcspn(p, "\n");
    read_line(w, p, p + n, from, line);
    p += n + (p[n] == '\n');
  }
}

static void read_file(walk *w, size_t from) {
  FILE *file = fopen(w->visits[from].name, "rb");
  if (file == NULL) return;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  char *text =
      size >= 0 && size <= LARGEST_FILE && fseek(file, 0, SEEK_SET) == 0
          ? malloc((size_t)size + 1)
          : NULL;
  if (text != NULL) {
    text[fread(text, 1, (size_t)size, file)] = '\0';
    read_text(w, text, from);
    free(text);
  }
  fclose(file);
}

static void look_into(walk *w, size_t i) {
  const char *text =
      i == 0 ? w->request->source : given_text(w, w->visits[i].name);
  if (text != NULL) read_text(w, text, i);
  else read_file(w, i);
}

/* The index of the file that is shown as `name`, 0: not found. */
static size_t find_visit(walk *w, const char *name) {
  for (size_t i = 0;; i++) {
    if (i == w->count) {
      if (w->read == w->count) return 0;
      look_into(w, w->read++);
      i--;
    } else if (i > 0 && strcmp(w->visits[i].name, name) == 0) {
      return i;
    }
  }
}

/* ---- notes --------------------------------------------------------------- */

typedef struct list {
  tps_rtc_diagnostic *items;
  size_t count, room;
  bool failed;
} list;

static bool make_room(list *l) {
  if (l->count < l->room) return true;
  size_t room = l->room ? 2 * l->room : 16;
  tps_rtc_diagnostic *items = realloc(l->items, room * sizeof *items);
  if (items == NULL) {
    l->failed = true;
    return false;
  }
  l->items = items;
  l->room = room;
  return true;
}

/* Takes over `message`. */
static void add_note(list *l, const char *file, int line, char *message) {
  if (message == NULL || !make_room(l)) {
    free(message);
    l->failed = true;
    return;
  }
  tps_rtc_diagnostic *d = &l->items[l->count++];
  *d = (tps_rtc_diagnostic){
      .severity = TPS_RTC_NOTE, .line = line, .message = message};
  d->file = strdup(file);
  l->failed = l->failed || d->file == NULL;
}

static void add_chain(list *l, walk *w, const char *file) {
  size_t at = find_visit(w, file);
  for (int depth = 0; at != 0 && depth < 50; depth++) {
    const visit *v = &w->visits[at];
    const char *by = v->from == 0 ? TPS_RTC_PROGRAM : w->visits[v->from].name;
    char *message;
    if (asprintf(&message, "'%s' is included here", v->name) < 0)
      message = NULL;
    add_note(l, by, v->line, message);
    at = v->from;
  }
}

static bool add_searched(tps_strings *places, const char *folder,
                         const tps_compiler *compiler) {
  if (tps_strings_has(&compiler->includes, folder)) return true;
  return tps_strings_format(places, "'%s'%s", folder,
                            is_folder(folder) ? "" : " (which is no folder)");
}

/* "looked for in 'inc', 'more' (which is no folder) and the toolkit's …" */
static char *searched(const walk *w, const char *own) {
  const tps_compiler *compiler = w->compiler;
  const tps_strings *options = w->options;
  size_t given = w->request->header_count;
  tps_strings places = {0};
  bool good = true;
  if (own != NULL)
    good =
        tps_strings_format(&places, "'%s', where the including file is", own);
  for (size_t i = 0; i < options->count && good; i++) {
    const char *folder = folder_of(options, i);
    if (folder != NULL) good = add_searched(&places, folder, compiler);
  }
  for (size_t i = 0; i < compiler->includes.count && good; i++)
    good = tps_strings_format(&places, "'%s'", compiler->includes.items[i]);
  if (given > 0 && good)
    good =
        tps_strings_format(&places, "the headers given as text (%zu)", given);
  char *all = good ? tps_strings_join(&places, ", ") : NULL, *text = NULL;
  const char *alone =
      w->request->untrusted ? ": an untrusted source reads no other file" : "";
  if (all != NULL && asprintf(&text, "looked for in %s%s",
                              *all != '\0' ? all : "no folder", alone) < 0)
    text = NULL;
  free(all);
  tps_strings_free(&places);
  return text;
}

/* Where the header that d complains of was looked for. */
static void add_places(list *l, const walk *w, const tps_rtc_diagnostic *d) {
  char *own = NULL;
  bool angled = d->text != NULL && strchr(d->text, '<') != NULL;
  if (!angled && strcmp(d->file, TPS_RTC_PROGRAM) == 0)
    own = strdup(w->request->folder != NULL ? w->request->folder : ".");
  else if (!angled && given_text(w, d->file) == NULL)
    own = folder_of_file(d->file);
  if (own != NULL && w->request->untrusted && !tps_rtc_below(&w->roots, own)) {
    free(own);
    own = NULL;
  }
  add_note(l, d->file, d->line, searched(w, own));
  free(own);
}

static bool is_missing_header(const tps_rtc_diagnostic *d) {
  return d->severity == TPS_RTC_ERROR && d->message != NULL &&
         strncmp(d->message, "cannot open source file", 23) == 0;
}

/* The diagnostic itself, then notes about it. */
static void explain(walk *w, const tps_rtc_diagnostic *d, const char *last,
                    list *out) {
  bool elsewhere = strcmp(d->file, TPS_RTC_PROGRAM) != 0 && d->line > 0;
  out->items[out->count++] = *d;
  if (is_missing_header(d)) add_places(out, w, d);
  if (d->severity != TPS_RTC_NOTE && elsewhere && strcmp(d->file, last) != 0)
    add_chain(out, w, d->file);
}

bool tps_rtc_explain(const tps_compiler *compiler,
                     const tps_rtc_request *request, const tps_strings *options,
                     tps_rtc_report *report) {
  list out = {0};
  walk w = {.compiler = compiler,
            .request = request,
            .options = options,
            .count = 1,
            .room = 16};
  w.visits = calloc(w.room, sizeof *w.visits);
  const char *last = "";
  size_t done = 0;
  out.failed =
      w.visits == NULL ||
      (request->untrusted && !tps_rtc_roots(compiler, request, &w.roots));
  for (; done < report->diagnostic_count && !out.failed; done++) {
    tps_rtc_diagnostic d = report->diagnostics[done];
    if (!make_room(&out)) break;
    explain(&w, &d, last, &out);
    last = d.file;
  }
  for (; done < report->diagnostic_count; done++)
    tps_rtc_diagnostic_free(&report->diagnostics[done]);
  free(report->diagnostics);
  report->diagnostics = out.items;
  report->diagnostic_count = out.count;
  for (size_t i = 1; i < w.count; i++) free(w.visits[i].name);
  free(w.visits);
  tps_strings_free(&w.roots);
  return !out.failed;
}
