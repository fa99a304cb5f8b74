/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What NVRTC is told: the architecture, and the request as options. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

static bool knows(const tps_compiler *nvrtc, int arch) {
  for (int i = 0; i < nvrtc->arch_count; i++)
    if (nvrtc->archs[i] == arch) return true;
  return false;
}

/* The highest known that is not above `arch`, or 0. */
static int below(const tps_compiler *nvrtc, int arch) {
  int best = 0;
  for (int i = 0; i < nvrtc->arch_count; i++)
    if (nvrtc->archs[i] <= arch) best = nvrtc->archs[i];
  return best;
}

static int fail_unknown(const tps_compiler *nvrtc, const char *arch,
                        tps_error *err) {
  char known[TPS_NVRTC_MAX_ARCHS * 8] = "";
  size_t size = 0;
  for (int i = 0; i < nvrtc->arch_count; i++)
    size += (size_t)snprintf(known + size, sizeof known - size, "%s%d",
                             i > 0 ? ", " : "", nvrtc->archs[i]);
  return tps_fail(err, TPS_MISUSE,
                  "unknown architecture '%s' (NVRTC %s knows %s, as 80, "
                  "\"sm_80\" or \"compute_80\")",
                  arch, nvrtc->version, known);
}

/* "80", "sm_90a", "compute_100f". */
static int chosen_arch(const tps_compiler *nvrtc, const char *text,
                       const tps_device *device, char arch[32],
                       tps_error *err) {
  static const char *const prefixes[] = {"sm_", "compute_"};
  const char *number = text, *prefix = NULL;
  char *end;
  for (int i = 0; i < 2; i++)
    if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) {
      prefix = prefixes[i];
      number = text + strlen(prefix);
    }
  long value = isdigit((unsigned char)*number) ? strtol(number, &end, 10) : -1;
  if (value < 0 || value > 100000 || !knows(nvrtc, (int)value))
    return fail_unknown(nvrtc, text, err);
  bool suffix = (*end == 'a' || *end == 'f') && end[1] == '\0';
  if (*end != '\0' && !suffix) return fail_unknown(nvrtc, text, err);
  if (prefix == NULL)
    prefix = device->kind == TPS_SIM ? prefixes[1] : prefixes[0];
  snprintf(arch, 32, "%s%s", prefix, number);
  return 0;
}

static int device_arch(const tps_compiler *nvrtc, const tps_device *device,
                       char arch[32], char **note, tps_error *err) {
  const tps_device_properties *p = &device->properties;
  int wanted = p->capability_major * 10 + p->capability_minor;
  int best = below(nvrtc, wanted);
  int lowest = nvrtc->arch_count > 0 ? nvrtc->archs[0] : 0;
  bool real = best == wanted && device->kind != TPS_SIM;
  if (best == 0)
    return tps_fail(err, TPS_COMPILER,
                    "NVRTC %s compiles for capability %d.%d and up, the "
                    "device has %d.%d",
                    nvrtc->version, lowest / 10, lowest % 10,
                    p->capability_major, p->capability_minor);
  snprintf(arch, 32, "%s%d", real ? "sm_" : "compute_", best);
  if (best == wanted || note == NULL) return 0;
  if (asprintf(note,
               "the device (capability %d.%d) is newer than NVRTC %s: "
               "compiled for compute_%d",
               p->capability_major, p->capability_minor, nvrtc->version,
               best) < 0)
    *note = NULL;
  return 0;
}

int tps_rtc_choose_arch(const tps_compiler *nvrtc,
                        const tps_rtc_request *request,
                        const tps_device *device, char arch[32], char **note,
                        tps_error *err) {
  if (request->arch != NULL)
    return chosen_arch(nvrtc, request->arch, device, arch, err);
  return device_arch(nvrtc, device, arch, note, err);
}

/* ---- the list ------------------------------------------------------------ */

/* Whether the caller's own options hold one that begins like `a` or `b`. */
static bool given(const tps_rtc_request *r, const char *a, const char *b) {
  for (size_t i = 0; i < r->option_count; i++)
    if (strncmp(r->options[i], a, strlen(a)) == 0 ||
        strncmp(r->options[i], b, strlen(b)) == 0)
      return true;
  return false;
}

bool tps_rtc_is_relocatable(const tps_rtc_request *r) {
  return r->relocatable || given(r, "-rdc=true", "--rdc=true") ||
         given(r, "--relocatable-device-code=true",
               "-relocatable-device-code=true") ||
         given(r, "-dc", "--device-c");
}

static bool add_defines(const tps_rtc_request *r, tps_strings *out) {
  for (size_t i = 0; i < r->define_count; i++) {
    const tps_rtc_define *d = &r->defines[i];
    bool added = d->value != NULL
                     ? tps_strings_format(out, "-D%s=%s", d->name, d->value)
                     : tps_strings_format(out, "-D%s", d->name);
    if (!added) return false;
  }
  return true;
}

static bool add_includes(const tps_compiler *nvrtc, const tps_rtc_request *r,
                         tps_strings *out) {
  for (size_t i = 0; i < r->include_count; i++)
    if (!tps_strings_format(out, "-I%s", r->includes[i])) return false;
  for (size_t i = 0; i < nvrtc->includes.count; i++)
    if (!tps_strings_format(out, "-I%s", nvrtc->includes.items[i]))
      return false;
  return true;
}

/* From 12.9 on NVRTC keeps builds of its own, without their logs. */
static bool keeps_builds(const tps_compiler *nvrtc) {
  return nvrtc->major > 12 || (nvrtc->major == 12 && nvrtc->minor >= 9);
}

bool tps_rtc_options(const tps_compiler *nvrtc, const tps_rtc_request *r,
                     const char *arch, tps_strings *out) {
  if (!given(r, "-arch", "--gpu-architecture") &&
      !tps_strings_format(out, "-arch=%s", arch))
    return false;
  if (r->debug && !tps_strings_add(out, "-G")) return false;
  if (r->lineinfo && !r->debug &&
      !given(r, "-lineinfo", "--generate-line-info") &&
      !tps_strings_add(out, "-lineinfo"))
    return false;
  if (nvrtc->major >= 12 && !given(r, "--device-int128", "-device-int128") &&
      !tps_strings_add(out, "--device-int128")) /* as nvcc has it */
    return false;
  if (keeps_builds(nvrtc) && !given(r, "--no-cache", "-no-cache") &&
      !tps_strings_add(out, "--no-cache"))
    return false;
  if (r->relocatable && !tps_strings_add(out, "--relocatable-device-code=true"))
    return false;
  if (r->std != NULL && !tps_strings_format(out, "--std=%s", r->std))
    return false;
  if (!add_defines(r, out) || !add_includes(nvrtc, r, out)) return false;
  for (size_t i = 0; i < r->option_count; i++)
    if (!tps_strings_add(out, r->options[i])) return false;
  return true;
}
