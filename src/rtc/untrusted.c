/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What an untrusted source may have: options that neither name a file nor make
 * the compiler do more than compile, and the files of the folders that the caller
 * gives and of the toolkit's. Both sides ask the same questions here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

/* ---- options ------------------------------------------------------------- */

/* The long and the short name, both as they are after the dashes. */
static const char *const harmless[] = {"gpu-architecture",
                                       "arch",
                                       "std",
                                       "device-debug",
                                       "G",
                                       "generate-line-info",
                                       "lineinfo",
                                       "use_fast_math",
                                       "ftz",
                                       "prec-sqrt",
                                       "prec-div",
                                       "fmad",
                                       "maxrregcount",
                                       "extra-device-vectorization",
                                       "device-as-default-execution-space",
                                       "default-device",
                                       "restrict",
                                       "device-int128",
                                       "device-float128",
                                       "relocatable-device-code",
                                       "rdc",
                                       "disable-warnings",
                                       "w",
                                       "diag-error",
                                       "diag-suppress",
                                       "diag-warn",
                                       "display-error-number",
                                       "no-display-error-number",
                                       "brief-diagnostics",
                                       "builtin-move-forward",
                                       "builtin-initializer-list",
                                       "dopt",
                                       "minimal"};

static bool is_harmless(const char *option) {
  size_t dashes = strspn(option, "-");
  const char *name = option + dashes;
  size_t n = strcspn(name, "=");
  if (dashes == 1 && (*name == 'D' || *name == 'U') && name[1] != '\0')
    return true;
  if (dashes < 1 || dashes > 2) return false;
  for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
    if (strlen(harmless[i]) == n && memcmp(harmless[i], name, n) == 0)
      return true;
  return false;
}

int tps_rtc_check_untrusted(const tps_rtc_request *r, tps_error *err) {
  char all[1024] = "-D, -U";
  size_t size = strlen(all);
  for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
    size += (size_t)snprintf(all + size, sizeof all - size, ", -%s%s",
                             harmless[i][1] != '\0' ? "-" : "", harmless[i]);
  for (size_t i = 0; i < r->option_count; i++)
    if (!is_harmless(r->options[i]))
      return tps_fail(err, TPS_MISUSE,
                      "option '%.200s' is not allowed for an untrusted source "
                      "(allowed are %s; a value is joined by '=')",
                      r->options[i], all);
  return 0;
}

/* ---- files --------------------------------------------------------------- */

/* A folder that is not there has nothing to read. */
static bool add_root(tps_strings *roots, const char *folder) {
  char *real = realpath(folder, NULL);
  return real == NULL || tps_strings_take(roots, real);
}

bool tps_rtc_roots(const tps_compiler *compiler, const tps_rtc_request *r,
                   tps_strings *roots) {
  bool good = r->folder == NULL || add_root(roots, r->folder);
  for (size_t i = 0; i < r->include_count && good; i++)
    good = add_root(roots, r->includes[i]);
  for (size_t i = 0; i < compiler->includes.count && good; i++)
    good = add_root(roots, compiler->includes.items[i]);
  return good;
}

bool tps_rtc_below(const tps_strings *roots, const char *path) {
  char *real = realpath(path, NULL);
  bool below = false;
  for (size_t i = 0; i < roots->count && real != NULL && !below; i++) {
    size_t n = strlen(roots->items[i]);
    below = strncmp(real, roots->items[i], n) == 0 &&
            (real[n] == '/' || real[n] == '\0' || n == 1);
  }
  free(real);
  return below;
}
