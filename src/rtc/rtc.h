/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Run-time compilation: CUDA C++ text → an image source for a runtime module.
 * NVRTC is opened (dlopen) at the first compile and never before. The source
 * is compiled for the device in hand (CUBIN and PTX in one compile for a GPU,
 * PTX for compute_80 or compute_90 for the simulated device) and again for
 * another architecture when the module is first used there.
 *
 * Knows no Lua. Thread-safe: requests are independent.
 */
#ifndef TPS_RTC_RTC_H
#define TPS_RTC_RTC_H

#include "runtime/module.h"

typedef struct tps_rtc_define {
  const char *name;
  const char *value; /* NULL: defined as 1 */
} tps_rtc_define;

typedef struct tps_rtc_header {
  const char *name, *text;
} tps_rtc_header;

/* Lines of a source that stand in the script from script_line on, or, if flat, on
 * that line. */
typedef struct tps_rtc_part {
  int line, count, script_line;
  bool flat;
} tps_rtc_part;

/* All arrays may be NULL with count 0; everything is copied. */
typedef struct tps_rtc_request {
  const char *source;
  size_t source_size;
  const char
      *folder; /* where #include "…" is looked for first; NULL: the working
                         folder */
  const char *name;   /* shown in messages; NULL: the script's own place */
  const char *script; /* where `parts` stand; faults in a kernel name it */
  const tps_rtc_part *parts;
  size_t part_count;
  const char *std;  /* "c++17", NULL: NVRTC's default */
  const char *arch; /* "sm_80", "compute_80", "80"; NULL: the device's */
  bool lineinfo, debug;
  bool pch;               /* precompiled headers, see pch.c */
  const char *pch_folder; /* rtc's own: where they are now, or NULL */
  bool relocatable;       /* for tps_module_link; also by the options */
  bool untrusted;      /* compiled in a process of its own, see untrusted.c */
  uint64_t max_memory; /* of that process, bytes; 0: 2 GiB */
  uint64_t max_time;   /* ms; 0: 30 s */
  /* While that process works: non-zero ends it. May be NULL. */
  int (*interrupted)(void *data);
  void *interrupted_data;
  bool no_cache; /* neither look for the build of an earlier process nor keep
                    this one */
  const tps_rtc_define *defines;
  size_t define_count;
  const char *const *includes;
  size_t include_count;
  const tps_rtc_header *headers;
  size_t header_count;
  const char *const *names; /* name expressions to instantiate */
  size_t name_count;
  const char *const *options; /* passed on to NVRTC */
  size_t option_count;
} tps_rtc_request;

typedef enum tps_rtc_severity {
  TPS_RTC_ERROR,
  TPS_RTC_WARNING,
  TPS_RTC_NOTE
} tps_rtc_severity;

typedef struct tps_rtc_diagnostic {
  uint8_t severity;
  int number; /* by which it can be switched off (-diag-suppress), 0 if none */
  char *file; /* as NVRTC names it; the program itself: TPS_RTC_PROGRAM; a
                    name expression of the request: "names" (text: all of it) */
  int line;   /* in that file, 0 if none */
  int column; /* of the caret in characters of `text`, a tab being one;
                    1-based, 0 if none */
  char *message; /* may have several lines */
  char *text;    /* the source line, or NULL */
} tps_rtc_diagnostic;

/* The constant name under which NVRTC sees every program. */
#define TPS_RTC_PROGRAM "program.cu"

typedef struct tps_rtc_report {
  char *log;   /* NVRTC's whole log, owned; "" if empty */
  char *other; /* the lines of it that are no diagnostic; NULL if none */
  tps_rtc_diagnostic *diagnostics;
  size_t diagnostic_count;
  char *note; /* e.g. that the device is newer than NVRTC; NULL if none */
} tps_rtc_report;
void tps_rtc_report_free(tps_rtc_report *report);

/* Checks the source (not empty, UTF-8, no NUL, no lines ended by CR alone;
 * strips a byte-order mark), names and options (no line ends), compiles, and
 * makes the module on `device`. *report is always filled (to be freed by the
 * caller). Errors: MISUSE for bad input, COMPILATION with diagnostics in the
 * report, COMPILER_MISSING (what is missing, where it was looked for, how to
 * get it), COMPILER (an invalid option lists all options passed),
 * INVALID_IMAGE when there is neither kernel nor variable. */
int tps_rtc_compile(tps_context *context, tps_device *device,
                    const tps_rtc_request *request, tps_module **out,
                    tps_rtc_report *report, tps_error *err);

/* The same in three steps: what has been prepared is built on whatever thread, with
 * nothing of the context, and finished on the context's thread. tps_rtc_finish also
 * returns what building has come to, with the report, once. `interrupted` of the
 * request is asked by whoever builds, unless the job was detached: then cancel is
 * what ends it, before it has begun or in another process. */
typedef struct tps_rtc_pending tps_rtc_pending;
int tps_rtc_prepare(tps_device *device, const tps_rtc_request *request,
                    tps_rtc_pending **out, tps_error *err);
void tps_rtc_detach(tps_rtc_pending *job);
void tps_rtc_work(tps_rtc_pending *job);
int tps_rtc_finish(tps_context *context, tps_rtc_pending *job, tps_module **out,
                   tps_rtc_report *report, tps_error *err);
void tps_rtc_cancel(tps_rtc_pending *job); /* from any thread */
void tps_rtc_pending_free(tps_rtc_pending *job);

/* Builds a job, which is detached, on a thread of rtc's own, several at once; then
 * calls done(data) there, to which the job belongs from then on. The calling thread
 * waits at its own end, and in exit(), for those it has started that have begun, and
 * cancels the others. A fork of the process has none of them. */
int tps_rtc_start(tps_rtc_pending *job, const void *owner,
                  void (*done)(void *data), void *data, tps_error *err);
/* Waits until none of the owner's is built or waits for a thread (those that were
 * cancelled don't take long). */
void tps_rtc_leave(const void *owner);

/* A tps_linker over nvJitLink, which is opened at the first call: COMPILER_MISSING
 * says where it was looked for. */
int tps_rtc_link(const tps_ptx_input *inputs, size_t count,
                 const tps_device *device, char **cubin, size_t *size,
                 tps_error *err);

/* Before the process ends: waits for what is being built, drops what has not begun;
 * nothing more is built. (It happens at exit() too, but what NVRTC has registered
 * may come first then.) */
void tps_rtc_end(void);

/* Whether the text declares a kernel template of that name, as far as can be seen
 * without the compiler. */
bool tps_rtc_is_template(const char *source, const char *name);

/* The line of `script` on which the first line of a string literal stands
 * whose value is `source` — by lexing the Lua text; the literal that begins
 * nearest to (at or before, else after) line `call_line` wins. 0 if there is
 * none. *flat: all its lines stand on that one (as escapes). */
int tps_rtc_locate(const char *script, size_t script_size, const char *source,
                   size_t source_size, int call_line, bool *flat);

/* The literals of the script of which the source was put together, `most` at the
 * most; how many. Those of a few bytes, or that are in it more than once, tell
 * nothing. Lines that no literal has may be those of one in long brackets in which
 * something was replaced. */
size_t tps_rtc_locate_parts(const char *script, size_t script_size,
                            const char *source, size_t source_size,
                            tps_rtc_part *parts, size_t most);

/* What is kept between processes (rtc/store.h). */
typedef struct tps_rtc_cache {
  char *folder;    /* owned, to be freed; NULL: there is none */
  const char *why; /* there is none */
  uint64_t entries, bytes, limit;
  char unusable[128]; /* why nothing can be kept in the folder, or "" */
} tps_rtc_cache;
/* MISUSE when a setting makes no sense. */
int tps_rtc_cache_look(tps_rtc_cache *out, tps_error *err);
/* Empties it; *left is how many entries could not be removed. */
int tps_rtc_cache_clear(uint64_t *left, tps_error *err);

/* "13.0" once NVRTC has been opened or can be, else NULL with *err filled;
 * *path is where the library lies. Opens it. */
const char *tps_rtc_version(const char **path, tps_error *err);
/* The same of nvJitLink. */
const char *tps_rtc_linker_version(const char **path, tps_error *err);

#endif
