/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * One program through NVRTC. Types are carried out by a template that a header
 * of ours declares, read before the program so that the program's own lines
 * and columns stay as they are: the lowered name of
 * `__tpstream_sig<decltype(x)>` holds the mangled type of x. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/carrier.h"
#include "rtc/parts.h"

#define HEADER "__tpstream_sig.h"
#define LARGEST_LOG ((size_t)8 << 20) /* it has whole lines, of any size */
#define EXPRESSION "&__tpstream_sig<decltype("

/* A variable template costs a byte of the image; before C++14 there are none.
 */
static const char variable_header[] =
    "template<class> __device__ char __tpstream_sig;\n";
static const char kernel_header[] =
    "template<class> __global__ void __tpstream_sig() {}\n";

static bool is_old(const tps_rtc_request *r) {
  bool old = r->std != NULL &&
             (strcmp(r->std, "c++11") == 0 || strcmp(r->std, "c++03") == 0);
  for (size_t i = 0; i < r->option_count; i++)
    old = old || strstr(r->options[i], "c++11") != NULL ||
          strstr(r->options[i], "c++03") != NULL;
  return old;
}

/* ---- headers ------------------------------------------------------------- */

typedef struct header_list {
  const char **names, **texts;
  int count;
} header_list;

static bool has_header(const header_list *list, const char *name) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->names[i], name) == 0) return true;
  return false;
}

static void add_header(header_list *list, const char *name, const char *text) {
  if (has_header(list, name)) return; /* the caller's come first */
  list->names[list->count] = name;
  list->texts[list->count++] = text;
}

static bool list_headers(const tps_rtc_request *r, header_list *list) {
  size_t room = r->header_count + tps_rtc_shim_count + 1;
  list->count = 0;
  list->names = calloc(room, sizeof *list->names);
  list->texts = calloc(room, sizeof *list->texts);
  if (list->names == NULL || list->texts == NULL) return false;
  for (size_t i = 0; i < r->header_count; i++)
    add_header(list, r->headers[i].name, r->headers[i].text);
  for (size_t i = 0; i < tps_rtc_shim_count; i++)
    add_header(list, tps_rtc_shims[i].name, tps_rtc_shims[i].text);
  add_header(list, HEADER, is_old(r) ? kernel_header : variable_header);
  return true;
}

static void free_headers(header_list *list) {
  free(list->names);
  free(list->texts);
}

/* ---- results ------------------------------------------------------------- */

typedef int size_function(tps_nvrtc_program *, size_t *);
typedef int text_function(tps_nvrtc_program *, char *);

/* NULL when out of memory or when there is none. */
static char *fetch(tps_nvrtc_program *program, size_function *size,
                   text_function *text, size_t *out) {
  size_t n = 0;
  if (size(program, &n) != 0 || n == 0) return NULL;
  if (out != NULL) *out = n;
  char *bytes = malloc(n + 1);
  if (bytes == NULL) return NULL;
  if (text(program, bytes) != 0) {
    free(bytes);
    return NULL;
  }
  bytes[n] = '\0';
  return bytes;
}

/* The type inside a lowered name of ours: after the prefix, the closing E and
 * what follows left off (a reader of types stops by itself). */
static bool keep_type(tps_rtc_build *b, const char *name, const char *lowered) {
  size_t n = strlen(TPS_CARRIER_PREFIX);
  if (strncmp(lowered, TPS_CARRIER_PREFIX, n) != 0) return true;
  return tps_strings_add(&b->typed, name) &&
         tps_strings_add(&b->types, lowered + n);
}

static char *expression_of(const char *name) {
  char *text;
  return asprintf(&text, EXPRESSION "%s)>", name) < 0 ? NULL : text;
}

static bool fetch_names(const tps_nvrtc *nvrtc, tps_nvrtc_program *program,
                        const tps_rtc_request *r, const tps_strings *names,
                        tps_rtc_build *b) {
  const char *lowered;
  for (size_t i = 0; i < r->name_count; i++) {
    if (nvrtc->GetLoweredName(program, r->names[i], &lowered) != 0)
      lowered = "";
    if (!tps_strings_add(&b->lowered, lowered)) return false;
  }
  for (size_t i = 0; i < names->count; i++) {
    char *expression = expression_of(names->items[i]);
    if (expression == NULL) return false;
    bool kept = nvrtc->GetLoweredName(program, expression, &lowered) != 0 ||
                keep_type(b, names->items[i], lowered);
    free(expression);
    if (!kept) return false;
  }
  return true;
}

static bool fetch_code(const tps_nvrtc *nvrtc, tps_nvrtc_program *program,
                       const char *name, tps_rtc_build *b) {
  b->ptx = fetch(program, nvrtc->GetPTXSize, nvrtc->GetPTX, &b->ptx_size);
  if (b->ptx == NULL) return false;
  if (b->ptx_size > 0 && b->ptx[b->ptx_size - 1] == '\0')
    b->ptx_size--; /* NVRTC counts the text's end */
  tps_rtc_shorten_paths(b);
  if (name != NULL && !tps_rtc_name_program(b, name)) return false;
  b->cubin =
      fetch(program, nvrtc->GetCUBINSize, nvrtc->GetCUBIN, &b->cubin_size);
  if (b->cubin == NULL) b->cubin_size = 0;
  return true;
}

/* ---- one compile --------------------------------------------------------- */

static int add_names(const tps_nvrtc *nvrtc, tps_nvrtc_program *program,
                     const tps_rtc_request *r, const tps_strings *names) {
  int result = 0;
  for (size_t i = 0; i < r->name_count && result == 0; i++)
    result = nvrtc->AddNameExpression(program, r->names[i]);
  for (size_t i = 0; i < names->count && result == 0; i++) {
    char *expression = expression_of(names->items[i]);
    result = expression != NULL ? nvrtc->AddNameExpression(program, expression)
                                : TPS_NVRTC_OUT_OF_MEMORY;
    free(expression);
  }
  return result;
}

/* NVRTC ends the process at a Ctrl-C: that has to wait until it is done. */
static int compile(const tps_nvrtc *nvrtc, tps_nvrtc_program *program,
                   const tps_rtc_request *r, const tps_strings *options,
                   bool types) {
  char folder[800];
  const char **all = calloc(options->count + 4, sizeof *all);
  if (all == NULL) return TPS_NVRTC_OUT_OF_MEMORY;
  size_t n = 0;
  for (size_t i = 0; i < options->count; i++) all[n++] = options->items[i];
  if (types) all[n++] = "--pre-include=" HEADER;
  if (r->pch_folder != NULL) {
    snprintf(folder, sizeof folder, "--pch-dir=%s", r->pch_folder);
    all[n++] = "--pch";
    all[n++] = "--pch-messages=false";
    all[n++] = folder;
  }
  sigset_t interrupt, before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  int result = nvrtc->CompileProgram(program, (int)n, all);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  free(all);
  return result;
}

/* What NVRTC calls the program: the folder is where it looks for its headers. */
static char *program_name(const tps_rtc_request *r) {
  char *name;
  bool named = r->folder != NULL && *r->folder != '\0';
  return asprintf(&name, "%s%s%s", named ? r->folder : "", named ? "/" : "",
                  TPS_RTC_PROGRAM) < 0
             ? NULL
             : name;
}

/* Takes the folder out of the program's name wherever the log has it. */
static void shorten_log(char *log, const char *name) {
  size_t n = strlen(name), folder = n - strlen(TPS_RTC_PROGRAM);
  char *to = log;
  const char *from = log, *found;
  while (folder > 0 && (found = strstr(from, name)) != NULL) {
    memmove(to, from, (size_t)(found - from));
    to += found - from;
    from = found + folder;
    memmove(to, from, n - folder);
    to += n - folder;
    from += n - folder;
  }
  memmove(to, from, strlen(from) + 1);
}

/* False when out of memory. */
static bool build_once(const tps_nvrtc *nvrtc, const tps_rtc_request *r,
                       const tps_strings *options, const tps_strings *names,
                       tps_rtc_build *b) {
  header_list headers;
  tps_nvrtc_program *program = NULL;
  char *name = program_name(r);
  bool good = list_headers(r, &headers) && name != NULL;
  b->result = TPS_NVRTC_OUT_OF_MEMORY;
  if (good)
    b->result = nvrtc->CreateProgram(&program, r->source, name, headers.count,
                                     headers.texts, headers.names);
  free_headers(&headers);
  if (program == NULL) {
    free(name);
    return good;
  }
  b->result = add_names(nvrtc, program, r, names);
  if (b->result == 0)
    b->result = compile(nvrtc, program, r, options, names->count > 0);
  size_t log_size = 0;
  b->log =
      fetch(program, nvrtc->GetProgramLogSize, nvrtc->GetProgramLog, &log_size);
  if (b->log == NULL && log_size == 0)
    b->log = strdup(b->result != 0 ? nvrtc->GetErrorString(b->result) : "");
  good = b->log != NULL;
  if (log_size > LARGEST_LOG && good) b->log[LARGEST_LOG] = '\0';
  if (good) shorten_log(b->log, name);
  free(name);
  if (good && b->result == 0)
    good = fetch_code(nvrtc, program, r->name, b) &&
           fetch_names(nvrtc, program, r, names, b);
  nvrtc->DestroyProgram(&program);
  return good;
}

/* ---- names that do not compile ------------------------------------------- */

/* Whether the log shows the expression of `name`: it complains of it. */
static bool complains(const char *log, const char *name) {
  char *expression = expression_of(name);
  bool found = expression == NULL || strstr(log, expression) != NULL;
  free(expression);
  return found;
}

/* The names that the log does not complain of. With none to leave out, but
 * complaints about the header or expressions all the same, none stays. */
static bool good_names(const char *log, const tps_strings *names,
                       tps_strings *out) {
  for (size_t i = 0; i < names->count; i++)
    if (!complains(log, names->items[i]) &&
        !tps_strings_add(out, names->items[i]))
      return false;
  if (out->count == names->count) tps_strings_free(out);
  return true;
}

static bool mentions_types(const tps_rtc_build *b) {
  return b->log != NULL && strstr(b->log, "__tpstream_sig") != NULL;
}

static int out_of_memory(tps_rtc_build *b, tps_error *err) {
  tps_rtc_build_free(b);
  return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
}

int tps_rtc_run(const tps_nvrtc *nvrtc, const tps_rtc_request *request,
                const tps_strings *options, const tps_strings *names,
                tps_rtc_build *out, tps_error *err) {
  static const tps_strings none;
  memset(out, 0, sizeof *out);
  if (!build_once(nvrtc, request, options, names, out))
    return out_of_memory(out, err);
  if (names->count == 0 || out->result == 0 || !mentions_types(out)) return 0;
  tps_strings good = {0};
  bool fine = good_names(out->log, names, &good);
  tps_rtc_build_free(out);
  fine = fine && build_once(nvrtc, request, options, &good, out);
  if (fine && good.count > 0 && out->result != 0 && mentions_types(out)) {
    tps_rtc_build_free(out);
    fine = build_once(nvrtc, request, options, &none, out);
  }
  tps_strings_free(&good);
  return fine ? 0 : out_of_memory(out, err);
}

void tps_rtc_build_free(tps_rtc_build *b) {
  free(b->log);
  free(b->ptx);
  free(b->cubin);
  tps_strings_free(&b->lowered);
  tps_strings_free(&b->typed);
  tps_strings_free(&b->types);
  memset(b, 0, sizeof *b);
}

/* ---- symbols in PTX ------------------------------------------------------ */

/* The identifier at p; its length. */
static size_t identifier(const char *p) {
  size_t n = 0;
  while (p[n] != '\0' && strchr(" \t\r\n([,;=", p[n]) == NULL) n++;
  return n;
}

bool tps_rtc_ptx_symbols(const char *ptx, tps_strings *plain) {
  for (const char *p = ptx; (p = strstr(p, ".entry ")) != NULL;) {
    p += strlen(".entry ");
    if (strncmp(p, "_Z", 2) != 0 &&
        !tps_strings_format(plain, "%.*s", (int)identifier(p), p))
      return false;
  }
  return true;
}
