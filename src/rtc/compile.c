/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A request as the image source of a module. It keeps a copy of the request,
 * so that the module can be compiled for another architecture when it is first
 * used on such a device, and every image it has made. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

typedef struct image {
  struct image *next;
  char arch[32];
  tps_rtc_build build;
} image;

typedef struct source {
  tps_rtc_request request; /* owned throughout */
  tps_strings owned;       /* what its pointers point to */
  tps_strings names;       /* worth asking types of */
  tps_strings templates;
  bool detached; /* built on a thread of worker.c's */
  image *images; /* the first one made is the last of the list */
  image *first;
} source;

static int no_memory(tps_error *err) {
  return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
}

/* ---- dropping ------------------------------------------------------------ */

static void free_source(void *data) {
  source *s = data;
  while (s->images != NULL) {
    image *next = s->images->next;
    tps_rtc_build_free(&s->images->build);
    free(s->images);
    s->images = next;
  }
  tps_rtc_copy_free(&s->request, &s->owned);
  tps_strings_free(&s->names);
  tps_strings_free(&s->templates);
  free(s);
}

/* ---- images -------------------------------------------------------------- */

/* Here or, when it is untrusted, in another process. */
static int run_once(source *s, const tps_compiler *compiler,
                    const tps_strings *options, tps_rtc_build *out,
                    tps_error *err) {
  const tps_rtc_request *r = &s->request;
  if (r->untrusted)
    return tps_rtc_run_apart(compiler, r, options, &s->names, out, err);
  const tps_nvrtc *nvrtc = tps_nvrtc_open(err);
  if (nvrtc == NULL) return TPS_COMPILER_MISSING;
  if (s->detached) tps_worker_warm_up();
  bool pch = tps_pch_begin(compiler, &s->request, options);
  int code = tps_rtc_run(nvrtc, r, options, &s->names, out, err);
  if (pch) tps_pch_end(&s->request);
  return code;
}

/* Kernels with C linkage that the scan has missed, by a macro's fault mostly,
 * are known once there is PTX: a second compile asks for them too. */
static int ask_again(source *s, const tps_compiler *compiler,
                     const tps_strings *options, image *i, tps_error *err) {
  tps_strings symbols = {0};
  bool missed = false;
  if (!tps_rtc_ptx_symbols(i->build.ptx, &symbols)) {
    tps_strings_free(&symbols);
    return no_memory(err);
  }
  int code = 0;
  for (size_t j = 0; j < symbols.count && code == 0; j++)
    if (s->names.count < TPS_RTC_MOST_NAMES &&
        !tps_strings_has(&s->names, symbols.items[j])) {
      missed = true;
      if (!tps_strings_add(&s->names, symbols.items[j])) code = no_memory(err);
    }
  tps_strings_free(&symbols);
  tps_rtc_build again = {0};
  if (code == 0 && missed) code = run_once(s, compiler, options, &again, err);
  if (code == 0 && missed && again.result == 0) {
    tps_rtc_build first = i->build;
    i->build = again;
    again = first;
  }
  tps_rtc_build_free(&again);
  return code;
}

static int run_compiler(source *s, const tps_compiler *compiler,
                        const tps_strings *options, image *i, tps_error *err) {
  int code = run_once(s, compiler, options, &i->build, err);
  if (code == 0 && i->build.result == 0)
    code = ask_again(s, compiler, options, i, err);
  return code;
}

/* The build that an earlier process has kept, or a new one, which is kept. */
static int find_or_run(source *s, const tps_compiler *compiler,
                       const tps_store *store, const tps_strings *options,
                       image *i, tps_error *err) {
  char key[TPS_DIGEST_TEXT];
  bool keeps = store->folder != NULL &&
               tps_cache_key(compiler, &s->request, options, &s->names, key);
  if (keeps && tps_cache_find(store, key, &i->build)) return 0;
  int code = run_compiler(s, compiler, options, i, err);
  if (keeps && code == 0 && i->build.result == 0 && i->build.ptx_size > 0)
    tps_cache_keep(store, key, &i->build);
  return code;
}

static int fill_image(source *s, const tps_compiler *compiler,
                      const tps_store *store, image *i, tps_rtc_report *report,
                      tps_error *err) {
  tps_strings options = {0};
  int code = tps_rtc_options(compiler, &s->request, i->arch, &options)
                 ? find_or_run(s, compiler, store, &options, i, err)
                 : no_memory(err);
  if (code == 0) {
    char *log = i->build.log;
    i->build.log = NULL;
    if (!tps_rtc_read_log(log, report) ||
        !tps_rtc_explain(compiler, &s->request, &options, report))
      code = no_memory(err);
  }
  if (code == 0 && i->build.result != 0)
    code =
        tps_rtc_fail_result(compiler, &options, i->build.result, report, err);
  if (code == 0 && i->build.ptx_size == 0)
    code = tps_rtc_fail_empty(compiler, &s->request, err);
  if (code == 0 && !tps_rtc_place_lines(&i->build, &s->request))
    code = no_memory(err);
  tps_strings_free(&options);
  return code;
}

/* The image of that architecture, made if need be. */
static int image_for(source *s, const char *arch, const tps_compiler *compiler,
                     const tps_store *store, image **out,
                     tps_rtc_report *report, tps_error *err) {
  for (image *i = s->images; i != NULL; i = i->next)
    if (strcmp(i->arch, arch) == 0) {
      *out = i;
      return 0;
    }
  image *i = calloc(1, sizeof *i);
  if (i == NULL) return no_memory(err);
  snprintf(i->arch, sizeof i->arch, "%s", arch);
  int code = fill_image(s, compiler, store, i, report, err);
  if (code != 0) {
    tps_rtc_build_free(&i->build);
    free(i);
    return code;
  }
  i->next = s->images;
  s->images = i;
  if (s->first == NULL) s->first = i;
  *out = i;
  return 0;
}

static int make_image(source *s, const tps_device *device, image **out,
                      tps_rtc_report *report, tps_error *err) {
  char arch[32];
  tps_store store;
  int code = tps_store_open(&store, err);
  if (code != 0) return code;
  if (s->request.no_cache) tps_store_close(&store);
  const tps_compiler *compiler = tps_compiler_known(&store, err);
  if (compiler == NULL) code = TPS_COMPILER_MISSING;
  if (code == 0)
    code = tps_rtc_choose_arch(compiler, &s->request, device, arch,
                               &report->note, err);
  if (code == 0) code = image_for(s, arch, compiler, &store, out, report, err);
  tps_store_close(&store);
  return code;
}

/* ---- the source that a module sees --------------------------------------- */

static int source_image(void *data, tps_device *device, tps_image_kind *kind,
                        const void **bytes, size_t *size, tps_error *err) {
  image *i;
  tps_rtc_report report = {0};
  int code = make_image(data, device, &i, &report, err);
  tps_rtc_report_free(&report);
  if (code != 0) return code;
  bool binary = i->build.cubin != NULL && device->kind != TPS_SIM;
  *kind = binary ? TPS_IMAGE_BINARY : TPS_IMAGE_PTX;
  *bytes = binary ? i->build.cubin : i->build.ptx;
  *size = binary ? i->build.cubin_size : i->build.ptx_size;
  return 0;
}

static const char *source_ptx(void *data, size_t *size) {
  source *s = data;
  *size = s->first->build.ptx_size;
  return s->first->build.ptx;
}

static int source_refine(void *data, tps_image_desc *desc) {
  const source *s = data;
  return tps_rtc_refine(&s->first->build, &s->request, desc);
}

/* ---- the whole ----------------------------------------------------------- */

static int new_source(const tps_rtc_request *request, source **out,
                      tps_error *err) {
  char *text;
  int code = tps_rtc_check_request(request, err);
  if (code == 0)
    code =
        tps_rtc_check_source(request->source, request->source_size, &text, err);
  if (code != 0) return code;
  source *s = calloc(1, sizeof *s);
  if (s == NULL) {
    free(text);
    return no_memory(err);
  }
  if (!tps_rtc_copy(&s->request, request, text, &s->owned) ||
      !tps_rtc_scan(text, &s->names, &s->templates)) {
    free_source(s);
    return no_memory(err);
  }
  *out = s;
  return 0;
}

/* A module with nothing to launch and nothing to read is a slip, unless it has
 * templates whose instances may yet be asked for. */
static int check_contents(tps_module **module, bool templates, tps_error *err) {
  const tps_image_desc *desc = &(*module)->desc;
  if (templates || (*module)->unlinked || desc->kernel_count > 0 ||
      desc->global_count > 0)
    return 0;
  tps_module_close(*module);
  tps_module_unref(*module);
  *module = NULL;
  return tps_fail(err, TPS_INVALID_IMAGE,
                  "the source has neither a kernel (a __global__ function) "
                  "nor a __device__ or __constant__ variable");
}

/* ---- a job --------------------------------------------------------------- */

struct tps_rtc_pending {
  source *source;
  tps_device *device;
  atomic_bool cancelled;
  int code;
  tps_error error;
  tps_rtc_report report;
};

int tps_rtc_prepare(tps_device *device, const tps_rtc_request *request,
                    tps_rtc_pending **out, tps_error *err) {
  tps_rtc_pending *job = calloc(1, sizeof *job);
  if (job == NULL) return no_memory(err);
  int code = new_source(request, &job->source, err);
  if (code != 0) {
    free(job);
    return code;
  }
  job->device = device;
  atomic_init(&job->cancelled, false);
  *out = job;
  return 0;
}

void tps_rtc_cancel(tps_rtc_pending *job) {
  atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
}

static int cancelled(void *data) {
  const tps_rtc_pending *job = data;
  return atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

void tps_rtc_detach(tps_rtc_pending *job) {
  job->source->detached = true;
  job->source->request.interrupted = cancelled;
  job->source->request.interrupted_data = job;
}

void tps_rtc_work(tps_rtc_pending *job) {
  image *first;
  if (cancelled(job))
    job->code =
        tps_fail(&job->error, TPS_INTERRUPTED, "the compile was cancelled");
  else
    job->code =
        make_image(job->source, job->device, &first, &job->report, &job->error);
  job->source->request.interrupted = NULL; /* of this call alone */
  job->source->detached = false;
}

int tps_rtc_finish(tps_context *context, tps_rtc_pending *job, tps_module **out,
                   tps_rtc_report *report, tps_error *err) {
  *report = job->report;
  memset(&job->report, 0, sizeof job->report);
  if (report->log == NULL) report->log = strdup("");
  *err = job->error;
  if (job->code != 0) return job->code;
  source *s = job->source;
  job->source = NULL;
  bool templates = s->templates.count > 0;
  tps_image_source images = {.data = s,
                             .image = source_image,
                             .ptx = source_ptx,
                             .refine = source_refine,
                             .release = free_source,
                             .unlinked = tps_rtc_is_relocatable(&s->request)};
  int code = tps_module_new(context, job->device, &images, out, err);
  return code == 0 ? check_contents(out, templates, err) : code;
}

void tps_rtc_pending_free(tps_rtc_pending *job) {
  if (job->source != NULL) free_source(job->source);
  tps_rtc_report_free(&job->report);
  free(job);
}

int tps_rtc_compile(tps_context *context, tps_device *device,
                    const tps_rtc_request *request, tps_module **out,
                    tps_rtc_report *report, tps_error *err) {
  tps_rtc_pending *job = NULL;
  memset(report, 0, sizeof *report);
  int code = tps_rtc_prepare(device, request, &job, err);
  if (job != NULL) {
    tps_rtc_work(job);
    code = tps_rtc_finish(context, job, out, report, err);
    tps_rtc_pending_free(job);
  }
  if (report->log == NULL) report->log = strdup("");
  return code;
}
