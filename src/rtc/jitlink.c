/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * nvJitLink, opened when something must first be linked for a GPU: it lies beside
 * NVRTC, or where the dynamic loader looks. The library is never closed. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "rtc/parts.h"

typedef struct handle handle;

/* The names are nvJitLink's without the prefix. */
static struct {
  int (*Create)(handle **, uint32_t count, const char **options);
  int (*Destroy)(handle **);
  int (*AddData)(handle *, int type, const void *data, size_t size,
                 const char *name);
  int (*Complete)(handle *);
  int (*GetLinkedCubinSize)(handle *, size_t *);
  int (*GetLinkedCubin)(handle *, void *);
  int (*GetErrorLogSize)(handle *, size_t *);
  int (*GetErrorLog)(handle *, char *);
} linker;

#define INPUT_PTX 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
static char path[4096], version[32]; /* once opened */

/* ---- the library --------------------------------------------------------- */

static const char *const file_names[] = {
    "libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"};
#define FILE_NAMES (sizeof file_names / sizeof file_names[0])

/* The folder of NVRTC, owned, or NULL. */
static char *folder(void) {
  const tps_compiler *compiler = tps_nvrtc_opened();
  char *file =
      compiler != NULL ? strdup(compiler->path) : tps_nvrtc_candidate();
  char *slash = file != NULL ? strrchr(file, '/') : NULL;
  if (slash != NULL) *slash = '\0';
  if (slash != NULL) return file;
  free(file);
  return NULL;
}

static void *open_file(const char *beside) {
  char file[4096];
  void *library = NULL;
  for (size_t i = 0; i < FILE_NAMES && library == NULL && beside != NULL; i++)
    if (snprintf(file, sizeof file, "%s/%s", beside, file_names[i]) <
        (int)sizeof file)
      library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; i < FILE_NAMES && library == NULL; i++)
    library = dlopen(file_names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

/* The first function that is not there, or NULL. */
static const char *bind_all(void *library) {
#define BIND(name)                                                             \
  if (!tps_library_bind(library, "nvJitLink" #name, &linker.name))             \
  return "nvJitLink" #name
  BIND(Create);
  BIND(Destroy);
  BIND(AddData);
  BIND(Complete);
  BIND(GetLinkedCubinSize);
  BIND(GetLinkedCubin);
  BIND(GetErrorLogSize);
  BIND(GetErrorLog);
#undef BIND
  return NULL;
}

static void describe(void *library) {
  int (*tell)(unsigned *major, unsigned *minor);
  unsigned major = 12, minor = 0; /* versions before 12.3 don't say */
  tps_library_path(library, path, sizeof path);
  if (tps_library_bind(library, "nvJitLinkVersion", &tell))
    tell(&major, &minor);
  snprintf(version, sizeof version, "%u.%u", major, minor);
}

/* Under the lock. */
static int open_linker(tps_error *err) {
  char *beside = folder();
  void *library = open_file(beside);
  int code = 0;
  const char *missing = library != NULL ? bind_all(library) : NULL;
  if (library == NULL)
    code = tps_fail(err, TPS_COMPILER_MISSING,
                    "nvJitLink, the CUDA linker, was not found: "
                    "libnvJitLink.so.13, libnvJitLink.so.12 or "
                    "libnvJitLink.so, looked for in %s%sthe loader's own path",
                    beside != NULL ? beside : "",
                    beside != NULL ? " (beside NVRTC) and " : "");
  else if (missing != NULL)
    code =
        tps_fail(err, TPS_COMPILER_MISSING,
                 "nvJitLink lacks %s: version 12 or newer is needed", missing);
  if (code == 0) describe(library);
  free(beside);
  return code;
}

static int need_linker(tps_error *err) {
  pthread_mutex_lock(&lock);
  int code = opened ? 0 : open_linker(err);
  opened = code == 0;
  pthread_mutex_unlock(&lock);
  return code;
}

const char *tps_rtc_linker_version(const char **where, tps_error *err) {
  if (need_linker(err) != 0) return NULL;
  *where = path;
  return version;
}

/* ---- linking ------------------------------------------------------------- */

static int fail_link(handle *h, int result, tps_error *err) {
  size_t size = 0;
  char *log = NULL;
  if (h != NULL && linker.GetErrorLogSize(h, &size) == 0 && size > 0)
    log = calloc(1, size + 1);
  if (log != NULL && linker.GetErrorLog(h, log) != 0) *log = '\0';
  size_t n = log != NULL ? strlen(log) : 0;
  while (n > 0 && (log[n - 1] == '\n' || log[n - 1] == ' ')) log[--n] = '\0';
  tps_fail(err, TPS_INVALID_IMAGE, "nvJitLink: %s (result %d)",
           n > 0 ? log : "the modules can't be linked", result);
  free(log);
  return TPS_INVALID_IMAGE;
}

static int get_cubin(handle *h, char **cubin, size_t *size) {
  int result = linker.GetLinkedCubinSize(h, size);
  if (result != 0) return result;
  *cubin = malloc(*size + 1);
  if (*cubin == NULL) return -1;
  result = linker.GetLinkedCubin(h, *cubin);
  if (result == 0) return 0;
  free(*cubin);
  return result;
}

int tps_rtc_link(const tps_ptx_input *inputs, size_t count,
                 const tps_device *device, char **cubin, size_t *size,
                 tps_error *err) {
  char arch[32];
  const char *options[] = {arch, "-lineinfo"};
  handle *h = NULL;
  int code = need_linker(err);
  if (code != 0) return code;
  snprintf(arch, sizeof arch, "-arch=sm_%d%d",
           device->properties.capability_major,
           device->properties.capability_minor);
  int result = linker.Create(&h, 2, options);
  for (size_t i = 0; i < count && result == 0; i++)
    result = linker.AddData(h, INPUT_PTX, inputs[i].text,
                            strlen(inputs[i].text) + 1, inputs[i].name);
  if (result == 0) result = linker.Complete(h);
  if (result == 0) result = get_cubin(h, cubin, size);
  if (result == -1)
    code = tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  else if (result != 0) code = fail_link(h, result, err);
  if (h != NULL) linker.Destroy(&h);
  return code;
}
