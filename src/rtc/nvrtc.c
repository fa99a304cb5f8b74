/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * NVRTC, opened when something must first be compiled. It is looked for where
 * TPSTREAM_NVRTC says and nowhere else, or in the toolkits that CUDA_HOME,
 * CUDA_PATH, PATH (by nvcc) and the usual places show, the newest first, and at
 * last where the dynamic loader looks. The library is never closed. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library.h"
#include "rtc/parts.h"

#if defined(__aarch64__)
#define TARGET "sbsa-linux"
#else
#define TARGET "x86_64-linux"
#endif

static const char *const file_names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                         "libnvrtc.so"};
#define FILE_NAMES (sizeof file_names / sizeof file_names[0])

/* Where a toolkit keeps its libraries. */
static const char *const folders[] = {"lib64", "targets/" TARGET "/lib", "lib"};
#define FOLDERS (sizeof folders / sizeof folders[0])

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tps_nvrtc *opened;

/* ---- where --------------------------------------------------------------- */

static bool add_once(tps_strings *list, const char *text) {
  return tps_strings_has(list, text) || tps_strings_add(list, text);
}

/* "13.0" above "12.9" above "12": by number, field by field. */
static int newer_first(const void *a, const void *b) {
  return -strverscmp(*(char *const *)a, *(char *const *)b);
}

/* /usr/local/cuda, then /usr/local/cuda-13.0 and its like. */
static void add_usual(tps_strings *homes) {
  tps_strings found = {0};
  add_once(homes, "/usr/local/cuda");
  DIR *dir = opendir("/usr/local");
  struct dirent *entry;
  /* cppcheck-suppress readdirCalled; nobody else reads this directory stream */
  while (dir != NULL && (entry = readdir(dir)) != NULL)
    if (strncmp(entry->d_name, "cuda-", 5) == 0)
      tps_strings_format(&found, "/usr/local/%s", entry->d_name);
  if (dir != NULL) closedir(dir);
  if (found.count > 0)
    qsort(found.items, found.count, sizeof *found.items, newer_first);
  for (size_t i = 0; i < found.count; i++) add_once(homes, found.items[i]);
  add_once(homes, "/opt/cuda");
  tps_strings_free(&found);
}

/* The toolkit of the nvcc on PATH. */
static void add_from_path(tps_strings *homes) {
  const char *path = getenv("PATH");
  char nvcc[4096];
  while (path != NULL && *path != '\0') {
    size_t n = strcspn(path, ":");
    int size = snprintf(nvcc, sizeof nvcc, "%.*s/nvcc", (int)n, path);
    if (n > 0 && size < (int)sizeof nvcc && access(nvcc, X_OK) == 0) {
      char *real = realpath(nvcc, NULL);
      char *slash = real != NULL ? strstr(real, "/bin/nvcc") : NULL;
      if (slash != NULL) {
        *slash = '\0';
        add_once(homes, real);
      }
      free(real);
    }
    path += n + (path[n] == ':');
  }
}

static void list_homes(tps_strings *homes) {
  const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
  for (int i = 0; i < 2; i++) {
    const char *value = getenv(variables[i]);
    if (value != NULL && *value != '\0') add_once(homes, value);
  }
  add_from_path(homes);
  add_usual(homes);
}

/* ---- opening ------------------------------------------------------------- */

typedef struct search {
  bool probing; /* the first file that is there will do */
  void *library;
  char *path;          /* of the library that opened */
  tps_strings looked;  /* folders without it */
  tps_strings refused; /* files that are there but would not load */
} search;

static void try_file(search *s, const char *path) {
  if (access(path, R_OK) != 0) return;
  if (!s->probing) s->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (s->probing || s->library != NULL) s->path = strdup(path);
  else tps_strings_add(&s->refused, dlerror());
}

static void try_folder(search *s, const char *folder) {
  char path[4096];
  for (size_t i = 0; i < FILE_NAMES && s->path == NULL; i++)
    if (snprintf(path, sizeof path, "%s/%s", folder, file_names[i]) <
        (int)sizeof path)
      try_file(s, path);
  if (s->path == NULL) add_once(&s->looked, folder);
}

static void try_homes(search *s) {
  tps_strings homes = {0};
  char folder[4096];
  list_homes(&homes);
  for (size_t i = 0; i < homes.count; i++)
    for (size_t j = 0; j < FOLDERS && s->path == NULL; j++) {
      struct stat info;
      if (snprintf(folder, sizeof folder, "%s/%s", homes.items[i],
                   folders[j]) >= (int)sizeof folder)
        continue;
      if (stat(folder, &info) == 0) try_folder(s, folder);
      else if (j == 0) add_once(&s->looked, folder);
    }
  tps_strings_free(&homes);
}

static void try_loader(search *s) {
  for (size_t i = 0; i < FILE_NAMES && s->path == NULL; i++) {
    s->library = dlopen(file_names[i], RTLD_NOW | RTLD_LOCAL);
    if (s->library != NULL) s->path = strdup(file_names[i]);
  }
  if (s->path == NULL) add_once(&s->looked, "the loader's own path");
}

static void try_chosen(search *s, const char *chosen) {
  struct stat info;
  if (stat(chosen, &info) == 0 && S_ISDIR(info.st_mode)) try_folder(s, chosen);
  else {
    try_file(s, chosen);
    if (s->path == NULL) add_once(&s->looked, chosen);
  }
}

static void find_library(search *s) {
  const char *chosen = getenv("TPSTREAM_NVRTC");
  if (chosen != NULL && *chosen != '\0') {
    try_chosen(s, chosen);
    return;
  }
  try_homes(s);
  if (s->path == NULL && !s->probing) try_loader(s);
}

static int fail_missing(const search *s, tps_error *err) {
  const char *chosen = getenv("TPSTREAM_NVRTC");
  char *looked = tps_strings_join(&s->looked, ", ");
  char *refused = tps_strings_join(&s->refused, "; ");
  tps_fail(err, TPS_COMPILER_MISSING,
           "NVRTC, the CUDA run-time compiler, was not found: "
           "libnvrtc.so.13, libnvrtc.so.12 or libnvrtc.so, looked for in "
           "%s%s%s%s",
           looked != NULL ? looked : "",
           chosen != NULL && *chosen ? " (from TPSTREAM_NVRTC)" : "",
           s->refused.count > 0 ? "; found, but not loadable: " : "",
           s->refused.count > 0 && refused != NULL ? refused : "");
  free(looked);
  free(refused);
  return TPS_COMPILER_MISSING;
}

/* ---- what is in it ------------------------------------------------------- */

/* The first function that is not there, or NULL. */
static const char *bind_all(void *library, tps_nvrtc *n) {
#define BIND(name)                                                             \
  if (!tps_library_bind(library, "nvrtc" #name, &n->name)) return "nvrtc" #name
  BIND(GetErrorString);
  BIND(Version);
  BIND(GetNumSupportedArchs);
  BIND(GetSupportedArchs);
  BIND(CreateProgram);
  BIND(DestroyProgram);
  BIND(CompileProgram);
  BIND(GetPTXSize);
  BIND(GetPTX);
  BIND(GetCUBINSize);
  BIND(GetCUBIN);
  BIND(GetProgramLogSize);
  BIND(GetProgramLog);
  BIND(AddNameExpression);
  BIND(GetLoweredName);
#undef BIND
  return NULL;
}

static int ascending(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

static void read_archs(tps_nvrtc *n) {
  tps_compiler *about = &n->about;
  int count = 0;
  if (n->GetNumSupportedArchs(&count) != 0 || count <= 0) return;
  int *all = calloc((size_t)count, sizeof *all);
  if (all != NULL && n->GetSupportedArchs(all) == 0) {
    qsort(all, (size_t)count, sizeof *all, ascending);
    for (int i = 0; i < count && i < TPS_NVRTC_MAX_ARCHS; i++)
      about->archs[about->arch_count++] = all[i];
  }
  free(all);
}

static void add_include(tps_compiler *n, const char *base, const char *below) {
  char file[4096];
  char folder[4000];
  if (n->includes.count > 0 || snprintf(folder, sizeof folder, "%s/%s", base,
                                        below) >= (int)sizeof folder)
    return;
  snprintf(file, sizeof file, "%s/cuda_fp16.h", folder);
  char *real = access(file, R_OK) == 0 ? realpath(folder, NULL) : NULL;
  if (real == NULL) return;
  snprintf(file, sizeof file, "%s/cccl", real);
  tps_strings_take(&n->includes, real);
  if (access(file, R_OK) == 0) tps_strings_add(&n->includes, file);
}

/* Those that belong to the library come first. */
void tps_nvrtc_find_includes(tps_compiler *n) {
  tps_strings homes = {0};
  char *real = realpath(n->path, NULL);
  char *slash = real != NULL ? strrchr(real, '/') : NULL;
  if (slash != NULL) {
    *slash = '\0';
    add_include(n, real, "../include");
    add_include(n, real, "../../../include");
  }
  free(real);
  list_homes(&homes);
  for (size_t i = 0; i < homes.count; i++) {
    add_include(n, homes.items[i], "include");
    add_include(n, homes.items[i], "targets/" TARGET "/include");
  }
  add_include(n, "/usr", "include");
  tps_strings_free(&homes);
}

/* The loader may have found it by name alone. */
static void find_path(void *library, tps_nvrtc *n) {
  char found[4096] = "";
  if (strchr(n->about.path, '/') != NULL) return;
  tps_library_path(library, found, sizeof found);
  char *path = found[0] != '\0' ? strdup(found) : NULL;
  if (path == NULL) return;
  free(n->about.path);
  n->about.path = path;
}

static int fill(const search *s, tps_nvrtc *n, tps_error *err) {
  const char *missing = bind_all(s->library, n);
  if (missing != NULL)
    return tps_fail(err, TPS_COMPILER_MISSING,
                    "NVRTC at %s lacks %s: version 11.2 or newer is needed",
                    s->path, missing);
  tps_compiler *about = &n->about;
  about->path = strdup(s->path);
  if (about->path == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  find_path(s->library, n);
  n->Version(&about->major, &about->minor);
  snprintf(about->version, sizeof about->version, "%d.%d", about->major,
           about->minor);
  read_archs(n);
  tps_nvrtc_find_includes(about);
  return 0;
}

static tps_nvrtc *open_library(tps_error *err) {
  search s = {0};
  find_library(&s);
  tps_nvrtc *n = NULL;
  int code = 0;
  if (s.library == NULL) code = fail_missing(&s, err);
  else if (s.path == NULL || (n = calloc(1, sizeof *n)) == NULL)
    code = tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  else code = fill(&s, n, err);
  if (code != 0) {
    free(n);
    n = NULL;
  }
  free(s.path);
  tps_strings_free(&s.looked);
  tps_strings_free(&s.refused);
  return n;
}

const tps_nvrtc *tps_nvrtc_open(tps_error *err) {
  pthread_mutex_lock(&lock);
  if (opened == NULL) opened = open_library(err);
  tps_nvrtc *n = opened;
  pthread_mutex_unlock(&lock);
  return n;
}

const tps_compiler *tps_nvrtc_opened(void) {
  pthread_mutex_lock(&lock);
  const tps_nvrtc *n = opened;
  pthread_mutex_unlock(&lock);
  return n != NULL ? &n->about : NULL;
}

char *tps_nvrtc_candidate(void) {
  search s = {.probing = true};
  find_library(&s);
  tps_strings_free(&s.looked);
  tps_strings_free(&s.refused);
  return s.path;
}

const char *tps_rtc_version(const char **path, tps_error *err) {
  const tps_nvrtc *n = tps_nvrtc_open(err);
  if (n == NULL) return NULL;
  if (path != NULL) *path = n->about.path;
  return n->about.version;
}
