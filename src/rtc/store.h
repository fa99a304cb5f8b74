/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A folder of entries that outlive the process: bytes by key. An entry is whole
 * or not there: it is written beside its place, flushed and renamed, and carries
 * a checksum that is tested when it is read. Many processes may use one folder.
 * Nothing here is an error: what can't be read is not there, what can't be
 * written is not kept.
 *
 * The folder is TPSTREAM_CACHE_DIR, or tpstream in XDG_CACHE_HOME, or
 * ~/.cache/tpstream. TPSTREAM_CACHE=0 turns it off. TPSTREAM_CACHE_SIZE (bytes,
 * or with K, M, G; 1G if not set) is the most that it keeps: the entries that
 * were not used for longest go first. */
#ifndef TPS_RTC_STORE_H
#define TPS_RTC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rtc/digest.h"

typedef struct tps_store {
  char *folder; /* NULL: there is none, see `why` */
  const char *why;
  uint64_t limit;
} tps_store;

/* MISUSE when TPSTREAM_CACHE_SIZE is no size. */
int tps_store_open(tps_store *store, tps_error *err);
void tps_store_close(tps_store *store);

/* The entry's bytes, owned, or NULL. Marks it as used now. */
unsigned char *tps_store_read(const tps_store *store, const char *key,
                              size_t *size);
/* False: it was not kept. */
bool tps_store_write(const tps_store *store, const char *key, const void *bytes,
                     size_t size);
/* For an entry whose content turned out to make no sense. */
void tps_store_drop(const tps_store *store, const char *key);

/* Whether entries can be kept (the folder is made); else errno says why not. */
bool tps_store_usable(const tps_store *store);
void tps_store_count(const tps_store *store, uint64_t *entries,
                     uint64_t *bytes);
/* Removes every entry; how many could not be. */
uint64_t tps_store_clear(const tps_store *store);

#endif
