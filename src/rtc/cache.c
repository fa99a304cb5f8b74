/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Builds that are kept between processes: all that NVRTC gave, under a key of all
 * that it was given. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rtc/pack.h"
#include "rtc/parts.h"

/* Changes when entries mean something else. */
#define FORMAT "build 2"

/* ---- key ----------------------------------------------------------------- */

static void add_strings(tps_digest *d, const char *const *items, size_t count) {
  tps_digest_add(d, &count, sizeof count);
  for (size_t i = 0; i < count; i++) tps_digest_text(d, items[i]);
}

/* Which library, and what it reads from the environment. */
static void add_compiler(tps_digest *d, const tps_compiler *c) {
  struct stat info;
  tps_digest_text(d, c->version);
  tps_digest_text(d, c->path);
  if (stat(c->path, &info) == 0) tps_digest_stat(d, &info);
  tps_digest_text(d, getenv("NVRTC_PREPEND_FLAGS"));
  tps_digest_text(d, getenv("NVRTC_APPEND_FLAGS"));
}

static void add_headers(tps_digest *d, const tps_rtc_header *headers,
                        size_t count) {
  tps_digest_add(d, &count, sizeof count);
  for (size_t i = 0; i < count; i++) {
    tps_digest_text(d, headers[i].name);
    tps_digest_text(d, headers[i].text);
  }
}

static void add_request(tps_digest *d, const tps_rtc_request *r) {
  tps_digest_add(d, r->source, r->source_size);
  tps_digest_text(d, r->folder);
  tps_digest_text(d, r->name);
  tps_digest_text(d, r->std);
  add_strings(d, r->names, r->name_count);
  add_headers(d, r->headers, r->header_count);
  add_headers(d, tps_rtc_shims, tps_rtc_shim_count);
}

bool tps_cache_key(const tps_compiler *compiler, const tps_rtc_request *request,
                   const tps_strings *options, const tps_strings *names,
                   char key[TPS_DIGEST_TEXT]) {
  tps_digest *d = tps_digest_new();
  if (d == NULL) return false;
  tps_digest_text(d, FORMAT);
  tps_digest_text(d, request->untrusted ? "untrusted" : NULL);
  add_compiler(d, compiler);
  add_request(d, request);
  add_strings(d, (const char *const *)options->items, options->count);
  add_strings(d, (const char *const *)names->items, names->count);
  bool known = tps_rtc_closure(compiler, request, options, d);
  tps_digest_end(d, key);
  return known;
}

/* ---- entries ------------------------------------------------------------- */

void tps_cache_keep(const tps_store *store, const char *key,
                    const tps_rtc_build *b) {
  tps_packer p = {0};
  tps_build_pack(&p, b);
  if (!p.failed) tps_store_write(store, key, p.bytes, p.size);
  free(p.bytes);
}

bool tps_cache_find(const tps_store *store, const char *key, tps_rtc_build *b) {
  size_t size;
  unsigned char *bytes = tps_store_read(store, key, &size);
  if (bytes == NULL) return false;
  tps_unpacker u = {bytes, bytes + size, false};
  bool good = tps_build_unpack(&u, b) && b->result == 0;
  if (!good) tps_store_drop(store, key);
  free(bytes);
  return good;
}

/* ---- for people ---------------------------------------------------------- */

int tps_rtc_cache_look(tps_rtc_cache *out, tps_error *err) {
  tps_store store;
  *out = (tps_rtc_cache){0};
  int code = tps_store_open(&store, err);
  if (code != 0) return code;
  tps_store_count(&store, &out->entries, &out->bytes);
  out->folder = store.folder;
  out->why = store.why;
  out->limit = store.limit;
  if (out->folder != NULL && !tps_store_usable(&store))
    snprintf(out->unusable, sizeof out->unusable, "%s", strerror(errno));
  return 0;
}

int tps_rtc_cache_clear(uint64_t *left, tps_error *err) {
  tps_store store;
  int code = tps_store_open(&store, err);
  if (code != 0) return code;
  *left = tps_store_clear(&store);
  tps_store_close(&store);
  return 0;
}
