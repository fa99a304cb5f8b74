/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Packing. */
#include "rtc/pack.h"

#include <stdlib.h>
#include <string.h>

static void append(tps_packer *p, const void *bytes, size_t size) {
  if (p->failed || size == 0) return;
  if (size > p->room - p->size) {
    size_t room = 2 * p->room + size + 64;
    unsigned char *bigger = realloc(p->bytes, room);
    if (bigger == NULL) {
      p->failed = true;
      return;
    }
    p->bytes = bigger;
    p->room = room;
  }
  memcpy(p->bytes + p->size, bytes, size);
  p->size += size;
}

void tps_pack_number(tps_packer *p, uint64_t number) {
  append(p, &number, sizeof number);
}

void tps_pack_bytes(tps_packer *p, const void *bytes, size_t size) {
  tps_pack_number(p, size);
  append(p, bytes, size);
}

uint64_t tps_unpack_number(tps_unpacker *u) {
  uint64_t number = 0;
  if (u->failed || (size_t)(u->end - u->at) < sizeof number) {
    u->failed = true;
    return 0;
  }
  memcpy(&number, u->at, sizeof number);
  u->at += sizeof number;
  return number;
}

char *tps_unpack_bytes(tps_unpacker *u, size_t *size) {
  uint64_t n = tps_unpack_number(u);
  if (u->failed || n > (size_t)(u->end - u->at)) {
    u->failed = true;
    return NULL;
  }
  char *copy = malloc((size_t)n + 1);
  if (copy == NULL) {
    u->failed = true;
    return NULL;
  }
  memcpy(copy, u->at, (size_t)n);
  copy[n] = '\0';
  u->at += n;
  if (size != NULL) *size = (size_t)n;
  return copy;
}
