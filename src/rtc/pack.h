/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Numbers and texts one after the other in a run of bytes, and back. */
#ifndef TPS_RTC_PACK_H
#define TPS_RTC_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins with zeros; `bytes` is owned. */
typedef struct tps_packer {
  unsigned char *bytes;
  size_t size, room;
  bool failed; /* out of memory: nothing is added any more */
} tps_packer;

void tps_pack_number(tps_packer *p, uint64_t number);
void tps_pack_bytes(tps_packer *p, const void *bytes, size_t size);

typedef struct tps_unpacker {
  const unsigned char *at, *end;
  bool failed; /* too short: all that is read is 0 and NULL from then on */
} tps_unpacker;

uint64_t tps_unpack_number(tps_unpacker *u);
/* An owned copy with a zero behind it; fails also when out of memory. */
char *tps_unpack_bytes(tps_unpacker *u, size_t *size);

#endif
