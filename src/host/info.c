/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * --info: of which parts this program is made, where they lie, and what of them
 * is missing. First everything is found out, then it is written as lines or as
 * one JSON document; neither makes a CUDA context nor compiles anything.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/library.h"
#include "base/version.h"
#include "device/info.h"
#include "host/host.h"
#include "rtc/rtc.h"

/* Of the toolkit that this program was built with. */
#ifdef TPS_TOOLKIT_VERSION
static const char *const toolkit_version = TPS_TOOLKIT_VERSION;
static const char *const toolkit_path = TPS_TOOLKIT_PATH;
#else
static const char *const toolkit_version = NULL, *const toolkit_path = NULL;
#endif

/* Strings are "" where there is nothing. */
typedef struct info {
  char program[4096];
  char runtime[16], driver[16];
  char driver_path[4096], driver_release[64];
  char driver_error[2048];
  const char *nvrtc, *nvrtc_path; /* NULL: nvrtc_error says why */
  tps_error nvrtc_error;
  const char *linker, *linker_path; /* the same of nvJitLink */
  tps_error linker_error;
  tps_library_info cublas;
  const char *editor;  /* readline's version; NULL: not there */
  tps_rtc_cache cache; /* cache_error: its settings make no sense */
  tps_error cache_error;
  tps_sim_settings sim;
  char sim_error[2048];
} info;

/* ---- finding out ----------------------------------------------------------
 */

static void write_version(char out[16], int version) {
  if (version > 0)
    snprintf(out, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

static void read_first_line(const char *path, char *out, size_t size) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return;
  if (fgets(out, (int)size, file) != NULL) out[strcspn(out, "\n")] = '\0';
  fclose(file);
}

/* Where the loader has found the driver, if it has. */
static void find_driver_path(char *out, size_t size) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return;
  tps_library_path(library, out, size);
  dlclose(library);
}

static void find_driver(info *i) {
  int driver, runtime;
  tps_error why = {0};
  tps_cuda_versions(&driver, &runtime);
  write_version(i->driver, driver);
  write_version(i->runtime, runtime);
  find_driver_path(i->driver_path, sizeof i->driver_path);
  read_first_line("/sys/module/nvidia/version", i->driver_release,
                  sizeof i->driver_release);
  if (tps_device_count(TPS_CUDA, &why) == 0)
    snprintf(i->driver_error, sizeof i->driver_error, "%s", why.message);
}

static void find_all(info *i) {
  tps_error err;
  ssize_t size = readlink("/proc/self/exe", i->program, sizeof i->program - 1);
  if (size < 0) i->program[0] = '\0';
  find_driver(i);
  i->nvrtc = tps_rtc_version(&i->nvrtc_path, &i->nvrtc_error);
  i->linker = tps_rtc_linker_version(&i->linker_path, &i->linker_error);
  i->editor = host_line_editor();
  tps_cublas_look(&i->cublas);
  tps_rtc_cache_look(&i->cache, &i->cache_error);
  if (tps_sim_settings_read(&i->sim, &err) != 0)
    snprintf(i->sim_error, sizeof i->sim_error, "%s", err.message);
}

/* ---- as lines -------------------------------------------------------------
 */

static void print_driver(const info *i) {
  fputs("CUDA driver   ", stdout);
  if (i->driver[0] != '\0') {
    printf("for CUDA %s", i->driver);
    if (i->driver_release[0] != '\0') printf(", release %s", i->driver_release);
    if (i->driver_path[0] != '\0') printf(", %s", i->driver_path);
    if (i->driver_error[0] != '\0') printf(" (%s)", i->driver_error);
    putchar('\n');
  } else {
    printf("none (%s)\n", i->driver_error);
  }
}

static void print_cache(const info *i) {
  if (i->cache_error.message[0] != '\0')
    printf("cache         none (%s)\n", i->cache_error.message);
  else if (i->cache.folder == NULL)
    printf("cache         none: %s\n", i->cache.why);
  else
    printf("cache         %s, %" PRIu64 " entr%s\n", i->cache.folder,
           i->cache.entries, i->cache.entries == 1 ? "y" : "ies");
}

static void print_libraries(const info *i) {
  if (i->nvrtc != NULL)
    printf("NVRTC         %s, %s\n", i->nvrtc, i->nvrtc_path);
  else
    printf("NVRTC         none (%s; %s)\n", i->nvrtc_error.message,
           i->nvrtc_error.hint);
  if (i->linker != NULL)
    printf("nvJitLink     %s, %s\n", i->linker, i->linker_path);
  else printf("nvJitLink     none (%s)\n", i->linker_error.message);
  if (i->cublas.path[0] != '\0')
    printf("cuBLAS        %s, %s\n", i->cublas.version, i->cublas.path);
  else printf("cuBLAS        none (%s)\n", i->cublas.why);
  if (i->editor != NULL) printf("readline      %s\n", i->editor);
  else puts("readline      none (libreadline.so.8, which edits lines)");
}

static void print_parts(const info *i) {
  printf("tpstream      %s, %s\n", TPS_VERSION, i->program);
  puts("Lua           " LUA_VERSION_MAJOR "." LUA_VERSION_MINOR
       "." LUA_VERSION_RELEASE ", linked statically");
  if (toolkit_version != NULL)
    printf("CUDA toolkit  %s at build, %s\n", toolkit_version, toolkit_path);
  else puts("CUDA toolkit  none at build");
  if (i->runtime[0] != '\0')
    printf("CUDA runtime  %s, linked statically\n", i->runtime);
  else puts("CUDA runtime  none");
  print_driver(i);
  print_libraries(i);
  print_cache(i);
}

static void print_sim(const info *i) {
  const tps_sim_settings *s = &i->sim;
  puts("simulated device");
  if (i->sim_error[0] != '\0') {
    printf("  unusable: %s\n", i->sim_error);
    return;
  }
  printf("  TPSTREAM_SIM_DEVICES     %" PRIu64 "\n", s->devices);
  if (s->threads > 0)
    printf("  TPSTREAM_SIM_THREADS     %" PRIu64 "\n", s->threads);
  else puts("  TPSTREAM_SIM_THREADS     one a processor");
  printf("  TPSTREAM_SIM_MEMORY      %" PRIu64 " bytes a device\n", s->memory);
  printf("  TPSTREAM_SIM_CAPABILITY  %d.%d\n", s->capability / 10,
         s->capability % 10);
  if (s->timeout_ns > 0)
    printf("  TPSTREAM_SIM_TIMEOUT     %" PRIu64 " ms\n",
           s->timeout_ns / 1000000);
  else puts("  TPSTREAM_SIM_TIMEOUT     no limit");
  printf("  TPSTREAM_SIM_PEERS       %d\n", s->peers);
  printf("  TPSTREAM_SIM_SEED        %" PRIu64 "\n", s->seed);
}

static void print_text(const host_options *options, const info *i,
                       const tps_context *context) {
  char notice[sizeof((tps_error *)0)->message + 64];
  print_parts(i);
  puts("devices");
  fflush(stdout);
  host_list_devices(options, context);
  host_notice(context, notice, sizeof notice);
  if (notice[0] != '\0') puts(notice);
  print_sim(i);
}

/* ---- as JSON --------------------------------------------------------------
 */

/* An object of a version and a path, or null without a version. */
static void write_part(host_json *json, const char *key, const char *version,
                       const char *path) {
  if (version == NULL || version[0] == '\0') {
    host_json_string(json, key, NULL);
    return;
  }
  host_json_open(json, key, '{');
  host_json_string(json, "version", version);
  host_json_string(json, "path", path != NULL && path[0] != '\0' ? path : NULL);
  host_json_close(json, '}');
}

static const char *or_null(const char *text) {
  return text[0] != '\0' ? text : NULL;
}

static void write_parts(host_json *json, const info *i) {
  write_part(json, "tpstream", TPS_VERSION, i->program);
  write_part(json, "lua",
             LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE,
             NULL);
  write_part(json, "toolkit", toolkit_version, toolkit_path);
  write_part(json, "runtime", i->runtime, NULL);
  write_part(json, "driver", i->driver, i->driver_path);
  host_json_string(json, "driver_release", or_null(i->driver_release));
  host_json_string(json, "driver_error", or_null(i->driver_error));
  write_part(json, "nvrtc", i->nvrtc, i->nvrtc_path);
  host_json_string(json, "nvrtc_error",
                   i->nvrtc == NULL ? i->nvrtc_error.message : NULL);
  write_part(json, "nvjitlink", i->linker, i->linker_path);
  host_json_string(json, "nvjitlink_error",
                   i->linker == NULL ? i->linker_error.message : NULL);
  write_part(json, "cublas", i->cublas.version, i->cublas.path);
  host_json_string(json, "cublas_error", or_null(i->cublas.why));
  host_json_string(json, "readline", i->editor);
  if (i->cache.folder != NULL) host_json_cache(json, "cache", &i->cache);
  else host_json_string(json, "cache", NULL);
  host_json_string(json, "cache_error", or_null(i->cache_error.message));
}

static void write_sim(host_json *json, const info *i) {
  const tps_sim_settings *s = &i->sim;
  char capability[16];
  host_json_open(json, "simulated", '{');
  if (i->sim_error[0] != '\0') {
    host_json_string(json, "error", i->sim_error);
  } else {
    char seed[24]; /* no JSON number holds 64 bits for certain */
    snprintf(seed, sizeof seed, "%" PRIu64, s->seed);
    snprintf(capability, sizeof capability, "%d.%d", s->capability / 10,
             s->capability % 10);
    host_json_integer(json, "devices", (int64_t)s->devices);
    host_json_integer(json, "threads", (int64_t)s->threads);
    host_json_integer(json, "memory", (int64_t)s->memory);
    host_json_string(json, "capability", capability);
    host_json_integer(json, "timeout_ns", (int64_t)s->timeout_ns);
    host_json_boolean(json, "peers", s->peers);
    host_json_string(json, "seed", seed);
  }
  host_json_close(json, '}');
}

static void print_json(const info *i, const tps_context *context) {
  host_json json = {0};
  host_json_open(&json, NULL, '{');
  write_parts(&json, i);
  host_json_devices(&json, context);
  write_sim(&json, i);
  host_json_close(&json, '}');
}

bool host_print_info(const host_options *options) {
  static info all; /* too large for the stack to be sure of */
  find_all(&all);
  tps_context *context = host_open_context(options);
  if (options->json) print_json(&all, context);
  else print_text(options, &all, context);
  free(all.cache.folder);
  all.cache.folder = NULL;
  if (context == NULL) return false;
  tps_context_close(context);
  return true;
}
