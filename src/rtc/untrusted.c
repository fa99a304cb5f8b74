/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What an untrusted source may have. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

/* ---- files --------------------------------------------------------------- */

/* Whether `path`, which is a real one, lies below the folder `root`. */
static bool is_below(const char *path, const char *root) {
  char *real = realpath(root, NULL);
  size_t n = real != NULL ? strlen(real) : 0;
  bool below = n > 1 && strncmp(path, real, n) == 0 && path[n] == '/';
  free(real);
  return below;
}

bool tps_rtc_may_read(const tps_compiler *compiler,
                      const tps_rtc_request *request, const char *path) {
  if (!request->untrusted) return true;
  char *real = realpath(path, NULL);
  if (real == NULL) return false;
  bool may = request->folder != NULL && is_below(real, request->folder);
  for (size_t i = 0; i < request->include_count && !may; i++)
    may = is_below(real, request->includes[i]);
  for (size_t i = 0; i < compiler->includes.count && !may; i++)
    may = is_below(real, compiler->includes.items[i]);
  free(real);
  return may;
}
