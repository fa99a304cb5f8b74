/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The files that a compile may read. Every #include of the program and of what it
 * includes is followed without looking at conditions, to every place where the
 * compiler might find it: some that it does not read are among them, none that it
 * reads is missing. A name made by a macro can't be followed: the toolkit's own
 * headers do that among themselves and are taken as they are, in others it ends
 * the search. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rtc/digest.h"
#include "rtc/parts.h"

#define MOST_FILES 50000
#define MOST_NAME 2047
#define LARGEST_FILE ((off_t)256 << 20)
#define BUDGET ((size_t)256 << 20) /* texts are made that would take days */

/* ---- a set of strings ---------------------------------------------------- */

typedef struct string_set {
  char **slots;
  size_t room, count;
} string_set;

static size_t slot_of(const string_set *set, const char *text) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *p = text; *p != '\0'; p++)
    hash = (hash ^ (unsigned char)*p) * 1099511628211u;
  size_t at = hash & (set->room - 1);
  while (set->slots[at] != NULL && strcmp(set->slots[at], text) != 0)
    at = (at + 1) & (set->room - 1);
  return at;
}

static bool grow_set(string_set *set) {
  string_set bigger = {.room = set->room ? 2 * set->room : 256};
  bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
  if (bigger.slots == NULL) return false;
  for (size_t i = 0; i < set->room; i++)
    if (set->slots[i] != NULL)
      bigger.slots[slot_of(&bigger, set->slots[i])] = set->slots[i];
  bigger.count = set->count;
  free(set->slots);
  *set = bigger;
  return true;
}

/* Whether it was not there yet; *failed: out of memory. */
static bool add_new(string_set *set, const char *text, bool *failed) {
  if (2 * set->count >= set->room && !grow_set(set)) {
    *failed = true;
    return false;
  }
  size_t at = slot_of(set, text);
  if (set->slots[at] != NULL) return false;
  set->slots[at] = strdup(text);
  if (set->slots[at] == NULL) *failed = true;
  else set->count++;
  return !*failed;
}

static void free_set(string_set *set) {
  for (size_t i = 0; i < set->room; i++) free(set->slots[i]);
  free(set->slots);
}

/* ---- the walk ------------------------------------------------------------ */

typedef struct walk {
  const tps_rtc_request *request;
  tps_strings roots;               /* of an untrusted request */
  tps_strings folders;             /* of -I, in order */
  size_t toolkit_from, toolkit_to; /* which of them are the toolkit's */
  tps_strings files; /* found, to be looked at; also headers given as text */
  string_set asked;  /* "folder of the includer / name" */
  string_set found;
  tps_digest *digest;
  size_t budget; /* bytes still to be looked at beside the texts themselves */
  bool failed, unclear;
} walk;

static bool of_toolkit(const walk *w, const char *path) {
  for (size_t i = w->toolkit_from; i < w->toolkit_to; i++) {
    const char *folder = w->folders.items[i];
    size_t n = strlen(folder);
    if (strncmp(path, folder, n) == 0 && path[n] == '/') return true;
  }
  return false;
}

static bool try_path(walk *w, const char *path) {
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (w->request->untrusted && !tps_rtc_below(&w->roots, path)) return false;
  if (add_new(&w->found, path, &w->failed) && !w->failed)
    w->failed = !tps_strings_add(&w->files, path);
  return true;
}

static bool try_in(walk *w, const char *folder, size_t folder_size,
                   const char *name) {
  char path[4096];
  int n =
      snprintf(path, sizeof path, "%.*s/%s", (int)folder_size, folder, name);
  return n > 0 && (size_t)n < sizeof path && try_path(w, path);
}

/* The user's folders may hide each other, and one that is missing today may be
 * there tomorrow: all that match count. Of the toolkit the first is enough. */
static void look_for(walk *w, const char *includer, const char *name) {
  char asked[8192];
  const char *slash = includer != NULL ? strrchr(includer, '/') : NULL;
  const char *own = w->request->folder != NULL ? w->request->folder : ".";
  const char *folder = slash != NULL ? includer : own;
  size_t size = slash != NULL ? (size_t)(slash - includer) : strlen(own);
  int n = snprintf(asked, sizeof asked, "%.*s/%s", (int)size, folder, name);
  if (n < 0 || (size_t)n >= sizeof asked) {
    w->unclear = true;
    return;
  }
  if (!add_new(&w->asked, asked, &w->failed)) return;
  if (*name == '/') {
    try_path(w, name);
    return;
  }
  try_in(w, folder, size, name);
  if (includer == NULL || !of_toolkit(w, includer)) try_in(w, ".", 1, name);
  bool done = false;
  for (size_t i = 0; i < w->folders.count && !w->failed; i++) {
    bool toolkit = i >= w->toolkit_from && i < w->toolkit_to;
    if (toolkit && done) continue;
    bool there =
        try_in(w, w->folders.items[i], strlen(w->folders.items[i]), name);
    done = done || (toolkit && there);
  }
}

/* What gives another result at another time, or reads what is not looked at. */
static bool changes_by_itself(const char *text, size_t size) {
  static const char *const words[] = {
      "__DATE__", "__TIME__", "__TIMESTAMP__", "__has_embed", "?\?/", "?\?="};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (memmem(text, size, words[i], strlen(words[i])) != NULL) return true;
  return false;
}

/* ---- reading a text ------------------------------------------------------ */

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Accounts for looking at so many bytes. */
static void spend(walk *w, size_t bytes) {
  if (bytes > w->budget) w->unclear = true;
  else w->budget -= bytes;
}

/* Past blanks and comments within a line. */
static const char *skip_blanks(walk *w, const char *p, const char *end) {
  while (p < end && !w->unclear) {
    if (is_blank(*p)) p++;
    else if (end - p >= 4 && p[0] == '/' && p[1] == '*') {
      const char *close = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
      spend(w, (size_t)((close != NULL ? close : end) - p));
      if (close == NULL) return end;
      p = close + 2;
    } else break;
  }
  return p;
}

/* Back over blanks and comments. */
static const char *back_over_blanks(walk *w, const char *begin, const char *p) {
  for (;;) {
    while (p > begin && is_blank(p[-1])) p--;
    if (p - begin < 4 || p[-1] != '/' || p[-2] != '*') return p;
    const char *open = p - 3;
    while (open > begin && (open[-1] != '/' || *open != '*')) open--;
    spend(w, (size_t)(p - open));
    if (open == begin || w->unclear) return p;
    p = open - 1;
  }
}

/* The next place of a word, or NULL. (Not memmem: there may be millions of them, and
 * sanitizers make it look at the whole rest each time.) */
static const char *find_word(const char *p, const char *end, const char *word) {
  size_t n = strlen(word);
  while ((size_t)(end - p) >= n) {
    p = memchr(p, *word, (size_t)(end - p) - n + 1);
    if (p == NULL || memcmp(p, word, n) == 0) return p;
    p++;
  }
  return NULL;
}

/* Whether what stands before the word makes it a directive. */
static bool after_hash(walk *w, const char *begin, const char *word) {
  const char *p = back_over_blanks(w, begin, word);
  return p > begin &&
         (p[-1] == '#' || (p[-1] == ':' && p - 1 > begin && p[-2] == '%'));
}

/* At the word "include" of a text. */
static void read_include(walk *w, const char *includer, const char *begin,
                         const char *word, const char *end, bool own) {
  char name[MOST_NAME + 1];
  const char *p = word + strlen("include");
  if (end - p >= 5 && memcmp(p, "_next", 5) == 0) p += 5;
  p = skip_blanks(w, p, end);
  if (p < end && *p == '(') p = skip_blanks(w, p + 1, end); /* __has_include */
  char close = '\0';
  if (p < end && *p == '"') close = '"';
  if (p < end && *p == '<') close = '>';
  if (close == '\0') {
    bool identifier = p < end && (isalpha((unsigned char)*p) || *p == '_');
    if (own && identifier && after_hash(w, begin, word)) w->unclear = true;
    return;
  }
  const char *q = ++p;
  while (q < end && *q != close && *q != '\n' && q - p < MOST_NAME) q++;
  if (q - p >= MOST_NAME) {
    w->unclear = true;
    return;
  }
  if (q == end || *q != close || q == p) return;
  memcpy(name, p, (size_t)(q - p));
  name[q - p] = '\0';
  look_for(w, includer, name);
}

/* Joins spliced lines in place; the new size. */
static size_t join_lines(char *text, size_t size) {
  size_t to = 0;
  for (size_t from = 0; from < size; from++) {
    size_t next = from + 1;
    while (text[from] == '\\' && next < size && is_blank(text[next])) next++;
    if (text[from] == '\\' && next < size && text[next] == '\n') from = next;
    else text[to++] = text[from];
  }
  return to;
}

static bool embeds(walk *w, const char *text, const char *end) {
  for (const char *p = text; (p = find_word(p, end, "embed")) != NULL; p += 5)
    if (after_hash(w, text, p)) return true;
  return false;
}

static void read_spliced(walk *w, const char *path, const char *text,
                         size_t size, bool own) {
  const char *p = text, *end = text + size;
  if (own && (changes_by_itself(text, size) || embeds(w, text, end)))
    w->unclear = true;
  while (!w->failed && !w->unclear &&
         (p = find_word(p, end, "include")) != NULL) {
    read_include(w, path, text, p, end, own);
    p += 7;
  }
}

static void read_text(walk *w, const char *path, const char *text, size_t size,
                      bool own) {
  char *copy = malloc(size + 1);
  if (copy == NULL) {
    w->failed = true;
    return;
  }
  memcpy(copy, text, size);
  read_spliced(w, path, copy, join_lines(copy, size), own);
  free(copy);
}

static void read_file(walk *w, const char *path) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool good = fd >= 0 && fstat(fd, &info) == 0 && info.st_size <= LARGEST_FILE;
  size_t size = good ? (size_t)info.st_size : 0, have = 0;
  char *text = good ? malloc(size + 1) : NULL;
  while (text != NULL && have < size) {
    ssize_t n = read(fd, text + have, size - have);
    if (n <= 0) break;
    have += (size_t)n;
  }
  if (fd >= 0) close(fd);
  if (text == NULL || have < size) {
    w->unclear = true; /* unreadable: the compiler will say what it thinks */
  } else {
    tps_digest_text(w->digest, path);
    tps_digest_add(w->digest, text, size);
    read_text(w, path, text, size, !of_toolkit(w, path));
  }
  free(text);
}

/* ---- options ------------------------------------------------------------- */

static const char *after(const char *option, const char *beginning) {
  size_t n = strlen(beginning);
  /* NOLINTNEXTLINE: a list of options has no NULL in it */
  return strncmp(option, beginning, n) == 0 ? option + n : NULL;
}

/* Whether the next option is a folder's name. */
static bool announces(const char *option) {
  return after(option, "-I") != NULL ? option[2] == '\0'
                                     : strcmp(option, "--include-path") == 0;
}

/* The folder that option i names; NULL: none. */
static const char *folder_of(const tps_strings *options, size_t i) {
  const char *option = options->items[i], *value;
  if (i > 0 && announces(options->items[i - 1])) return option;
  if ((value = after(option, "--include-path=")) == NULL)
    value = after(option, "-I");
  return value != NULL && *value != '\0' ? value : NULL;
}

/* Files that are read first are followed; what reads or writes others isn't. */
static void read_option(walk *w, const char *option) {
  static const char *const unknown[] = {
      "include", "pre-include", "pch",          "use-pch",
      "create",  "time",        "options-file", "fdevice-time-trace"};
  const char *name = option + strspn(option, "-"), *value;
  if ((value = after(name, "pre-include=")) != NULL ||
      (value = after(name, "include=")) != NULL) {
    look_for(w, NULL, value);
    return;
  }
  for (size_t k = 0; k < sizeof unknown / sizeof unknown[0]; k++)
    if (after(name, unknown[k]) != NULL) w->unclear = true;
  if (*option == '@' || changes_by_itself(option, strlen(option)))
    w->unclear = true;
}

static void read_options(walk *w, const tps_compiler *compiler,
                         const tps_strings *options) {
  w->toolkit_from = w->request->include_count;
  w->toolkit_to = w->toolkit_from + compiler->includes.count;
  for (size_t i = 0; i < options->count && !w->failed; i++) {
    const char *folder = folder_of(options, i);
    if (folder != NULL) w->failed = !tps_strings_add(&w->folders, folder);
  }
  for (size_t i = 0; i < options->count && !w->failed; i++)
    if (folder_of(options, i) == NULL && !announces(options->items[i]))
      read_option(w, options->items[i]);
}

/* Where relative names begin. */
static void add_working_folder(walk *w) {
  char *folder = getcwd(NULL, 0);
  tps_digest_text(w->digest, folder);
  free(folder);
}

bool tps_rtc_closure(const tps_compiler *compiler,
                     const tps_rtc_request *request, const tps_strings *options,
                     tps_digest *digest) {
  walk w = {.request = request, .digest = digest, .budget = BUDGET};
  if (request->untrusted)
    w.failed = !tps_rtc_roots(compiler, request, &w.roots);
  read_options(&w, compiler, options);
  read_text(&w, NULL, request->source, request->source_size, true);
  for (size_t i = 0; i < request->header_count && !w.failed; i++) {
    const tps_rtc_header *h = &request->headers[i];
    read_text(&w, NULL, h->text, strlen(h->text), true);
  }
  for (size_t i = 0; i < w.files.count && !w.failed && !w.unclear; i++) {
    if (i == 0) add_working_folder(&w);
    if (i >= MOST_FILES) w.unclear = true;
    else read_file(&w, w.files.items[i]);
  }
  bool clear = !w.failed && !w.unclear;
  free_set(&w.asked);
  free_set(&w.found);
  tps_strings_free(&w.roots);
  tps_strings_free(&w.folders);
  tps_strings_free(&w.files);
  return clear;
}
