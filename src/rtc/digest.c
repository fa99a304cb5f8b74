/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Digests, by XXH3. */
#include "rtc/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct tps_digest {
  XXH3_state_t *state;
};

tps_digest *tps_digest_new(void) {
  tps_digest *d = malloc(sizeof *d);
  if (d == NULL) return NULL;
  d->state = XXH3_createState();
  if (d->state == NULL || XXH3_128bits_reset(d->state) != XXH_OK) {
    XXH3_freeState(d->state);
    free(d);
    return NULL;
  }
  return d;
}

void tps_digest_add(tps_digest *d, const void *bytes, size_t size) {
  uint64_t length = size;
  XXH3_128bits_update(d->state, &length, sizeof length);
  XXH3_128bits_update(d->state, bytes, size);
}

void tps_digest_text(tps_digest *d, const char *text) {
  if (text != NULL) tps_digest_add(d, text, strlen(text) + 1);
  else tps_digest_add(d, "", 0);
}

void tps_digest_stat(tps_digest *d, const struct stat *info) {
  const int64_t facts[] = {(int64_t)info->st_dev,  (int64_t)info->st_ino,
                           (int64_t)info->st_size, info->st_mtim.tv_sec,
                           info->st_mtim.tv_nsec,  info->st_ctim.tv_sec,
                           info->st_ctim.tv_nsec};
  tps_digest_add(d, facts, sizeof facts);
}

static void canonical(XXH128_hash_t hash, unsigned char out[TPS_DIGEST_SIZE]) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  memcpy(out, bytes.digest, TPS_DIGEST_SIZE);
}

void tps_digest_end(tps_digest *d, char text[TPS_DIGEST_TEXT]) {
  unsigned char bytes[TPS_DIGEST_SIZE];
  canonical(XXH3_128bits_digest(d->state), bytes);
  for (int i = 0; i < TPS_DIGEST_SIZE; i++)
    snprintf(text + (size_t)2 * i, 3, "%02x", bytes[i]);
  XXH3_freeState(d->state);
  free(d);
}

void tps_digest_of(const void *bytes, size_t size,
                   unsigned char out[TPS_DIGEST_SIZE]) {
  canonical(XXH3_128bits(bytes, size), out);
}
