/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What is to be known of NVRTC before anything is compiled: its version and the
 * architectures that it knows. Opening the library costs tens of milliseconds, so
 * that is kept in the store, under a key that is another one as soon as another
 * library would be opened or the file has changed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rtc/pack.h"
#include "rtc/parts.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tps_compiler *remembered; /* for good: others hold on to it */
static char remembered_key[TPS_DIGEST_TEXT];

/* False: the library is not in a place that is known without the loader. */
static bool make_key(char **path, char key[TPS_DIGEST_TEXT]) {
  struct stat info;
  *path = tps_nvrtc_candidate();
  if (*path == NULL || stat(*path, &info) != 0) return false;
  tps_digest *d = tps_digest_new();
  if (d == NULL) return false;
  tps_digest_text(d, "compiler 1");
  tps_digest_text(d, *path);
  tps_digest_stat(d, &info);
  tps_digest_end(d, key);
  return true;
}

static void free_compiler(tps_compiler *c) {
  if (c == NULL) return;
  free(c->path);
  tps_strings_free(&c->includes);
  free(c);
}

static bool unpack(const unsigned char *bytes, size_t size, tps_compiler *c) {
  tps_unpacker u = {bytes, bytes + size, false};
  c->major = (int)tps_unpack_number(&u);
  c->minor = (int)tps_unpack_number(&u);
  uint64_t count = tps_unpack_number(&u);
  if (count > TPS_NVRTC_MAX_ARCHS) return false;
  c->arch_count = (int)count;
  for (int i = 0; i < c->arch_count; i++)
    c->archs[i] = (int)tps_unpack_number(&u);
  snprintf(c->version, sizeof c->version, "%d.%d", c->major, c->minor);
  return !u.failed;
}

/* Takes over `path`. */
static tps_compiler *read_kept(const tps_store *store, const char *key,
                               char *path) {
  size_t size;
  unsigned char *bytes = tps_store_read(store, key, &size);
  tps_compiler *c = bytes != NULL ? calloc(1, sizeof *c) : NULL;
  if (c == NULL || !unpack(bytes, size, c)) {
    free(c);
    c = NULL;
    free(path);
  } else {
    c->path = path;
    tps_nvrtc_find_includes(c);
  }
  free(bytes);
  return c;
}

static void keep(const tps_store *store, const char *key,
                 const tps_compiler *c) {
  tps_packer p = {0};
  tps_pack_number(&p, (uint64_t)c->major);
  tps_pack_number(&p, (uint64_t)c->minor);
  tps_pack_number(&p, (uint64_t)c->arch_count);
  for (int i = 0; i < c->arch_count; i++)
    tps_pack_number(&p, (uint64_t)c->archs[i]);
  if (!p.failed) tps_store_write(store, key, p.bytes, p.size);
  free(p.bytes);
}

/* Remembers `c` under the key, unless another thread was quicker. */
static const tps_compiler *remember(tps_compiler *c, const char *key) {
  pthread_mutex_lock(&lock);
  if (remembered == NULL) {
    remembered = c;
    memcpy(remembered_key, key, TPS_DIGEST_TEXT);
    c = NULL;
  }
  const tps_compiler *known =
      strcmp(remembered_key, key) == 0 ? remembered : NULL;
  pthread_mutex_unlock(&lock);
  free_compiler(c);
  return known;
}

static const tps_compiler *recall(const char *key) {
  pthread_mutex_lock(&lock);
  const tps_compiler *known =
      remembered != NULL && strcmp(remembered_key, key) == 0 ? remembered
                                                             : NULL;
  pthread_mutex_unlock(&lock);
  return known;
}

const tps_compiler *tps_compiler_known(const tps_store *store, tps_error *err) {
  const tps_compiler *known = tps_nvrtc_opened();
  char *path = NULL;
  char key[TPS_DIGEST_TEXT];
  if (known != NULL) return known;
  bool placed = store->folder != NULL && make_key(&path, key);
  if (placed && (known = recall(key)) == NULL) {
    tps_compiler *kept = read_kept(store, key, path);
    path = NULL;
    if (kept != NULL) known = remember(kept, key);
  }
  free(path);
  if (known != NULL) return known;
  const tps_nvrtc *nvrtc = tps_nvrtc_open(err);
  if (nvrtc == NULL) return NULL;
  if (placed) keep(store, key, &nvrtc->about);
  return &nvrtc->about;
}
