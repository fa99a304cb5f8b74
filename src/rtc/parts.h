/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the files of rtc/ show each other:
 *   nvrtc.c    the library: where it lies, its functions, what it knows
 *   compiler.c what it knows, without opening it if that was kept
 *   shims.c    the C library's headers that NVRTC lacks
 *   source.c   checks of the text; request.c of all else that is asked for
 *   scan.c     which names of the text are worth asking types of
 *   options.c  request and device → NVRTC's options
 *   build.c    one program through NVRTC
 *   log.c      NVRTC's log → diagnostics
 *   explain.c  what NVRTC leaves out of them
 *   digest.c   digests; store.c entries in a folder
 *   closure.c  the files that a compile may read
 *   cache.c    builds that are kept between processes
 *   untrusted.c  what an untrusted request may have; apart.c runs it in another
 *              process, program.c has that program, transfer.c what is said
 *   copy.c     a request that lasts
 *   failure.c  a build that failed as an error
 *   compile.c  the request as a module's image source
 *   refine.c   what a build tells of a module's kernels and variables
 *   worker.c   threads that build
 *   jitlink.c  nvJitLink
 *   pch.c      precompiled headers
 *   locate.c   a literal's place in a Lua script
 */
#ifndef TPS_RTC_PARTS_H
#define TPS_RTC_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "rtc/digest.h"
#include "rtc/rtc.h"
#include "rtc/store.h"

/* ---- strings ------------------------------------------------------------- */

/* A growing array of owned strings. */
typedef struct tps_strings {
  char **items;
  size_t count, room;
} tps_strings;

/* Takes over `text`; false (and text freed) when out of memory or text NULL. */
bool tps_strings_take(tps_strings *list, char *text);
bool tps_strings_add(tps_strings *list, const char *text);
bool tps_strings_format(tps_strings *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool tps_strings_has(const tps_strings *list, const char *text);
void tps_strings_free(tps_strings *list);
/* All items with `between` between them; NULL when out of memory. */
char *tps_strings_join(const tps_strings *list, const char *between);

/* ---- the library --------------------------------------------------------- */

typedef struct tps_nvrtc_program tps_nvrtc_program;

#define TPS_NVRTC_MAX_ARCHS 64

/* What there is to know of an NVRTC. */
typedef struct tps_compiler {
  int major, minor;
  char version[16];
  int archs[TPS_NVRTC_MAX_ARCHS]; /* 75, 80, … ascending */
  int arch_count;
  char *path;           /* of the library */
  tps_strings includes; /* the toolkit's own directories */
} tps_compiler;

/* The names are NVRTC's without the prefix. Results: 0 or NVRTC's number. */
typedef struct tps_nvrtc {
  const char *(*GetErrorString)(int);
  int (*Version)(int *, int *);
  int (*GetNumSupportedArchs)(int *);
  int (*GetSupportedArchs)(int *);
  int (*CreateProgram)(tps_nvrtc_program **, const char *source,
                       const char *name, int header_count,
                       const char *const *headers,
                       const char *const *header_names);
  int (*DestroyProgram)(tps_nvrtc_program **);
  int (*CompileProgram)(tps_nvrtc_program *, int, const char *const *);
  int (*GetPTXSize)(tps_nvrtc_program *, size_t *);
  int (*GetPTX)(tps_nvrtc_program *, char *);
  int (*GetCUBINSize)(tps_nvrtc_program *, size_t *);
  int (*GetCUBIN)(tps_nvrtc_program *, char *);
  int (*GetProgramLogSize)(tps_nvrtc_program *, size_t *);
  int (*GetProgramLog)(tps_nvrtc_program *, char *);
  int (*AddNameExpression)(tps_nvrtc_program *, const char *);
  int (*GetLoweredName)(tps_nvrtc_program *, const char *, const char **);
  tps_compiler about;
} tps_nvrtc;

enum { /* NVRTC's results that are told apart */
       TPS_NVRTC_OUT_OF_MEMORY = 1,
       TPS_NVRTC_INVALID_OPTION = 5,
       TPS_NVRTC_COMPILATION = 6,
       TPS_NVRTC_BUILTINS = 7
};

/* Opened once, the same ever after; a failure is tried again at the next call.
 * Thread-safe. NULL: COMPILER_MISSING. */
const tps_nvrtc *tps_nvrtc_open(tps_error *err);
/* What it would be, had it been opened: the same struct at every call, or NULL
 * if it hasn't. */
const tps_compiler *tps_nvrtc_opened(void);
/* The file that opening would try first, owned; NULL: none in a known place. */
char *tps_nvrtc_candidate(void);
/* The toolkit's headers for the library at compiler->path. */
void tps_nvrtc_find_includes(tps_compiler *compiler);

/* As tps_nvrtc_open, but opens the library only if what it knows was not kept in
 * the store by an earlier process. */
const tps_compiler *tps_compiler_known(const tps_store *store, tps_error *err);

/* Before a thread of worker.c's compiles with NVRTC itself. */
void tps_worker_warm_up(void);

/* Gives the request the folder for its precompiled headers, which is the caller's
 * alone until tps_pch_end; false: there are to be none, and no end. */
bool tps_pch_begin(const tps_compiler *compiler, tps_rtc_request *request,
                   const tps_strings *options);
void tps_pch_end(tps_rtc_request *request);

/* ---- headers ------------------------------------------------------------- */

extern const tps_rtc_header tps_rtc_shims[];
extern const size_t tps_rtc_shim_count;

/* ---- the text ------------------------------------------------------------ */

/* Checks and, on success, gives an owned copy without byte-order mark. */
int tps_rtc_check_source(const char *source, size_t size, char **out,
                         tps_error *err);
/* Nothing that NVRTC would pass over in silence: `what` is "the source". */
int tps_rtc_check_text(const char *what, const char *text, size_t size,
                       tps_error *err);
/* Nothing that breaks out of its line: `what` is "name expression", "option".
 */
int tps_rtc_check_line(const char *what, const char *text, tps_error *err);

/* Names, headers, defines, options. MISUSE, or IO for a file that can't be written.
 */
int tps_rtc_check_request(const tps_rtc_request *request, tps_error *err);

/* Of so many names types are asked at the most: each is looked for among all. */
#define TPS_RTC_MOST_NAMES 4096u

/* Qualified names that the text declares: kernels with C linkage and device
 * variables, and kernel templates. A guess by tokens, without macros: it may name
 * what does not exist and miss what does. */
bool tps_rtc_scan(const char *source, tps_strings *names,
                  tps_strings *templates);

/* Copies a request; `text` is its checked source, which is taken over, `owned` gets
 * its strings. False when out of memory; to be freed all the same. */
bool tps_rtc_copy(tps_rtc_request *to, const tps_rtc_request *from, char *text,
                  tps_strings *owned);
void tps_rtc_copy_free(tps_rtc_request *copy, tps_strings *owned);

/* ---- options ------------------------------------------------------------- */

/* The value of -arch for `device`, or for the request's own `arch`, into
 * `arch`. *note (owned) is set when the device is newer than NVRTC. */
int tps_rtc_choose_arch(const tps_compiler *nvrtc,
                        const tps_rtc_request *request,
                        const tps_device *device, char arch[32], char **note,
                        tps_error *err);
/* Compiled to be linked, by the request's own word or its options'. */
bool tps_rtc_is_relocatable(const tps_rtc_request *request);
bool tps_rtc_options(const tps_compiler *nvrtc, const tps_rtc_request *request,
                     const char *arch, tps_strings *out);

/* ---- one program --------------------------------------------------------- */

typedef struct tps_rtc_build {
  int result; /* NVRTC's */
  char *log;
  char *ptx;
  size_t ptx_size;
  char *cubin; /* NULL for a virtual architecture */
  size_t cubin_size;
  tps_strings lowered; /* of the request's names, in order */
  tps_strings typed;   /* names whose types are known, and below those types */
  tps_strings types;
} tps_rtc_build;

/* Compiles `request` (whose source is checked) with these options, asking for
 * the types of `names` besides; a name that does not compile is dropped. 0 or
 * NO_HOST_MEMORY, whatever NVRTC says. */
int tps_rtc_run(const tps_nvrtc *nvrtc, const tps_rtc_request *request,
                const tps_strings *options, const tps_strings *names,
                tps_rtc_build *out, tps_error *err);
void tps_rtc_build_free(tps_rtc_build *build);
/* PTX names the program by the working directory's path, which says where a process
 * once ran, not which program it is. */
void tps_rtc_shorten_paths(tps_rtc_build *build);
/* In its PTX the program is called `name`, unless that has a quote or a backslash:
 * PTX can't hold such a one as it is. False: out of memory. */
bool tps_rtc_name_program(tps_rtc_build *build, const char *name);
/* In its PTX those lines that the request places in a script are that script's.
 * False: out of memory. */
bool tps_rtc_place_lines(tps_rtc_build *build, const tps_rtc_request *request);
/* Adds what the build knows to the description of its module, or of one that it was
 * linked into. 0 or NO_HOST_MEMORY. */
int tps_rtc_refine(const tps_rtc_build *build, const tps_rtc_request *request,
                   tps_image_desc *desc);

/* NVRTC's `result`, which is not 0, as an error: COMPILATION when the source is at
 * fault, COMPILER for options, COMPILER_MISSING for a library that is not whole. */
int tps_rtc_fail_result(const tps_compiler *compiler,
                        const tps_strings *options, int result,
                        const tps_rtc_report *report, tps_error *err);
/* NVRTC has made no PTX: an option was taken to mean that. */
int tps_rtc_fail_empty(const tps_compiler *compiler,
                       const tps_rtc_request *request, tps_error *err);

/* Appends the symbols of kernels in the PTX that are not mangled. */
bool tps_rtc_ptx_symbols(const char *ptx, tps_strings *plain);

/* ---- the cache ----------------------------------------------------------- */

/* Adds all files that the compile may read, by path and content. False: they
 * can't be known. */
bool tps_rtc_closure(const tps_compiler *compiler,
                     const tps_rtc_request *request, const tps_strings *options,
                     tps_digest *digest);

/* The key of what tps_rtc_run would build; false: it must not be kept, since
 * what the compile reads can't be told. */
bool tps_cache_key(const tps_compiler *compiler, const tps_rtc_request *request,
                   const tps_strings *options, const tps_strings *names,
                   char key[TPS_DIGEST_TEXT]);
/* Fills `build` with one that succeeded before. */
bool tps_cache_find(const tps_store *store, const char *key,
                    tps_rtc_build *build);
void tps_cache_keep(const tps_store *store, const char *key,
                    const tps_rtc_build *build);

/* ---- the log ------------------------------------------------------------- */

/* Takes over `log`. False when out of memory. */
bool tps_rtc_read_log(char *log, tps_rtc_report *report);
void tps_rtc_diagnostic_free(tps_rtc_diagnostic *d);

/* Puts notes behind diagnostics: where a missing header was looked for, which
 * lines include the file of an error. False when out of memory. */
bool tps_rtc_explain(const tps_compiler *compiler,
                     const tps_rtc_request *request, const tps_strings *options,
                     tps_rtc_report *report);

/* ---- untrusted sources --------------------------------------------------- */

#define TPS_UNTRUSTED_MEMORY ((uint64_t)2 << 30) /* bytes, unless told */
#define TPS_UNTRUSTED_TIME 30000u                /* ms, unless told */

/* Only what is harmless: MISUSE names an option that is not, and those that are.
 */
int tps_rtc_check_untrusted(const tps_rtc_request *request, tps_error *err);

/* The real paths of the folders that an untrusted compile may read from. */
bool tps_rtc_roots(const tps_compiler *compiler, const tps_rtc_request *request,
                   tps_strings *roots);
/* Whether what really lies at `path` lies below one of the roots. */
bool tps_rtc_below(const tps_strings *roots, const char *path);

/* As tps_rtc_run, in a process of its own that has no more rights and resources
 * than it needs. COMPILER when it crashes or exceeds the request's limits,
 * INTERRUPTED when the request's `interrupted` says so. */
int tps_rtc_run_apart(const tps_compiler *compiler,
                      const tps_rtc_request *request,
                      const tps_strings *options, const tps_strings *names,
                      tps_rtc_build *out, tps_error *err);

/* The program that does so (src/compiler), as a file to be executed: a path,
 * valid for ever, or NULL with errno. */
const char *tps_apart_program(void);
/* Descriptors 0 to 2 of a host may be closed: ours must not be among them, since
 * the child's are. The same one, which takes its place, or -1. */
int tps_apart_move_up(int fd);

/* ---- as bytes ------------------------------------------------------------ */

struct tps_packer;
struct tps_unpacker;

void tps_build_pack(struct tps_packer *p, const tps_rtc_build *b);
/* False, and an empty build: these are no bytes of a build. */
bool tps_build_unpack(struct tps_unpacker *u, tps_rtc_build *b);

/* What tps_rtc_run needs, on the other side. */
typedef struct tps_rtc_job {
  tps_rtc_request request; /* into the members below */
  const char *library;     /* NVRTC's path */
  tps_strings roots, options, names, expressions, owned;
  tps_rtc_header *headers;
} tps_rtc_job;

void tps_job_pack(struct tps_packer *p, const char *library,
                  const tps_strings *roots, const tps_rtc_request *request,
                  const tps_strings *options, const tps_strings *names);
/* False: these are no bytes of a job; what it holds then is never freed. */
bool tps_job_unpack(struct tps_unpacker *u, tps_rtc_job *job);

#endif
