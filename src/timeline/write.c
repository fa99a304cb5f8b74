/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Files of timelines: what is written follows from the name. */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "timeline/parts.h"

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text), n = strlen(end);
  return size > n && strcmp(text + size - n, end) == 0;
}

bool tps_timeline_format(const char *path, tps_error *err) {
  if (ends_with(path, ".html") || ends_with(path, ".json")) return true;
  tps_fail(err, TPS_MISUSE,
           "the timeline's file '%s' ends neither in .html (a page for a "
           "browser) nor in .json (a trace for Perfetto)",
           path);
  return false;
}

/* With points in numbers, whatever the script has made of the locale. */
static bool write_to(const tps_timeline *timeline, const char *path,
                     FILE *out) {
  locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  locale_t before = plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
  bool room = ends_with(path, ".html") ? tps_timeline_page(timeline, out, path)
                                       : tps_timeline_trace(timeline, out);
  if (plain != (locale_t)0) {
    uselocale(before);
    freelocale(plain);
  }
  if (!room) errno = ENOMEM;
  return room && !ferror(out);
}

int tps_timeline_write(const tps_timeline *timeline, const char *path,
                       tps_error *err) {
  if (!tps_timeline_format(path, err)) return TPS_MISUSE;
  FILE *out = fopen(path, "wb");
  if (out == NULL)
    return tps_fail(err, TPS_MISUSE, "cannot write the timeline to '%s': %s",
                    path, strerror(errno));
  bool fine = write_to(timeline, path, out);
  int reason = errno;
  if (fclose(out) != 0 && fine) {
    fine = false;
    reason = errno;
  }
  if (fine) return 0;
  return tps_fail(err, TPS_MISUSE, "cannot write the timeline to '%s': %s",
                  path, strerror(reason));
}
