/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Files of timelines: what is written follows from the name. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "timeline/parts.h"

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text), n = strlen(end);
  return size > n && strcmp(text + size - n, end) == 0;
}

static bool is_known(const char *path, tps_error *err) {
  if (ends_with(path, ".html") || ends_with(path, ".json")) return true;
  tps_fail(err, TPS_MISUSE,
           "the timeline's file '%s' ends neither in .html (a page for a "
           "browser) nor in .json (a trace for Perfetto)",
           path);
  return false;
}

static int fail_with(const char *path, int reason, tps_error *err) {
  return tps_fail(err, TPS_MISUSE, "cannot write the timeline to '%s': %s",
                  path, strerror(reason));
}

/* What is not there yet is made and taken away again (but for what a link leads
 * to). */
bool tps_timeline_can_write(const char *path, tps_error *err) {
  const int how = O_WRONLY | O_CLOEXEC | O_NONBLOCK;
  if (!is_known(path, err)) return false;
  int file = open(path, how);
  if (file < 0 && errno == ENOENT) {
    file = open(path, how | O_CREAT | O_EXCL, 0666);
    if (file >= 0) unlink(path);
    else if (errno == EEXIST) file = open(path, how | O_CREAT, 0666);
  }
  if (file >= 0) close(file);
  else fail_with(path, errno, err);
  return file >= 0;
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
  if (!is_known(path, err)) return TPS_MISUSE;
  FILE *out = fopen(path, "wb");
  if (out == NULL) return fail_with(path, errno, err);
  bool fine = write_to(timeline, path, out);
  int reason = errno;
  if (fclose(out) != 0 && fine) {
    fine = false;
    reason = errno;
  }
  return fine ? 0 : fail_with(path, reason, err);
}
