/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Precompiled headers: NVRTC keeps what it has made of a program's first #include
 * lines in a folder of this process's own, and takes it up again for a program that
 * begins in the same way. Another process can't use it. NVRTC goes by the times of
 * headers, in seconds; so the folder is another one as soon as any header has changed.
 * What is compiled is the same, so the cache's keys don't know of it. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rtc/parts.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char base[512]; /* "": not made */
static char folder[sizeof base + TPS_DIGEST_TEXT + 1];

static void remove_all(const char *path, int depth) {
  char below[sizeof folder + 256];
  DIR *dir = opendir(path);
  struct dirent *e;
  /* cppcheck-suppress readdirCalled; nobody else reads this directory stream */
  while (dir != NULL && (e = readdir(dir)) != NULL) {
    if (e->d_name[0] == '.' || snprintf(below, sizeof below, "%s/%s", path,
                                        e->d_name) >= (int)sizeof below)
      continue;
    if (depth > 0) remove_all(below, depth - 1);
    else unlink(below);
  }
  if (dir != NULL) closedir(dir);
  rmdir(path);
}

static void remove_base(void) { remove_all(base, 1); }

static bool make_base(void) {
  const char *temporary = getenv("TMPDIR");
  if (temporary == NULL || temporary[0] != '/') temporary = "/tmp";
  if (snprintf(base, sizeof base, "%s/tpstream-pch-XXXXXX", temporary) >=
          (int)sizeof base ||
      mkdtemp(base) == NULL) {
    base[0] = '\0';
    return false;
  }
  atexit(remove_base);
  return true;
}

/* The name of the folder: all headers that the compile may read, and the options.
 */
static bool make_key(const tps_compiler *compiler, const tps_rtc_request *r,
                     const tps_strings *options, char key[TPS_DIGEST_TEXT]) {
  tps_digest *d = tps_digest_new();
  if (d == NULL) return false;
  bool known = tps_rtc_closure(compiler, r, options, d);
  for (size_t i = 0; i < options->count; i++)
    tps_digest_text(d, options->items[i]);
  tps_digest_end(d, key);
  return known;
}

bool tps_pch_begin(const tps_compiler *compiler, tps_rtc_request *r,
                   const tps_strings *options) {
  char key[TPS_DIGEST_TEXT];
  bool knows =
      compiler->major > 12 || (compiler->major == 12 && compiler->minor >= 8);
  if (!r->pch || !knows || r->header_count > 0 ||
      !make_key(compiler, r, options, key))
    return false;
  pthread_mutex_lock(&lock);
  if (base[0] != '\0' || make_base()) {
    snprintf(folder, sizeof folder, "%s/%s", base, key);
    if (mkdir(folder, 0700) == 0 || errno == EEXIST) {
      r->pch_folder = folder;
      return true;
    }
  }
  pthread_mutex_unlock(&lock);
  return false;
}

void tps_pch_end(tps_rtc_request *r) {
  r->pch_folder = NULL;
  pthread_mutex_unlock(&lock);
}
