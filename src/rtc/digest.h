/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Digests of 128 bits, of many pieces each told from its neighbours. They tell
 * one compile from another and a whole file from a damaged one; they do not
 * protect against somebody who forges them. */
#ifndef TPS_RTC_DIGEST_H
#define TPS_RTC_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define TPS_DIGEST_SIZE 16
#define TPS_DIGEST_TEXT 33 /* in hexadecimal, with the end */

typedef struct tps_digest tps_digest;

/* NULL when out of memory. */
tps_digest *tps_digest_new(void);
void tps_digest_add(tps_digest *d, const void *bytes, size_t size);
void tps_digest_text(tps_digest *d, const char *text); /* NULL is not "" */
/* Which file this is and when it was changed last. */
void tps_digest_stat(tps_digest *d, const struct stat *info);
/* The digest of what was added, in hexadecimal; frees d. */
void tps_digest_end(tps_digest *d, char text[TPS_DIGEST_TEXT]);

void tps_digest_of(const void *bytes, size_t size,
                   unsigned char out[TPS_DIGEST_SIZE]);

#endif
