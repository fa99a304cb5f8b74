/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 */
#include "sim/blocks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL (UINT64_C(256) << (TPS_SIM_CLASSES - 1))
#define SLAB_BYTES ((size_t)256 << 10)
#define GARBLED ((uint64_t)16 << 20) /* pages that nobody asked to touch */

typedef struct tps_sim_slab {
  struct tps_sim_slab *next;
  _Alignas(64) unsigned char bytes[];
} slab;

unsigned char *tps_sim_blocks_slab(tps_sim_blocks *blocks, size_t bytes) {
  slab *s = aligned_alloc(64, sizeof *s + bytes);
  if (s == NULL) return NULL;
  memset(s, 0, sizeof *s + bytes);
  s->next = blocks->slabs;
  blocks->slabs = s;
  return s->bytes;
}

static unsigned class_of(uint64_t bytes) {
  unsigned c = 0;
  while (bytes > UINT64_C(256) << c) c++;
  return c;
}

static void *small_new(tps_sim_blocks *blocks, uint64_t bytes) {
  unsigned c = class_of(bytes);
  tps_sim_class *k = &blocks->classes[c];
  size_t size = (size_t)256 << c;
  if (k->free != NULL) {
    tps_sim_chunk *old = k->free;
    k->free = old->next;
    return memset(old, 0, (size_t)bytes);
  }
  if (k->fresh_bytes < size) {
    /* Little at first: a script with three small buffers stays small. */
    size_t slab_bytes = size * 16 < SLAB_BYTES ? size * 16 : SLAB_BYTES;
    unsigned char *fresh = tps_sim_blocks_slab(blocks, slab_bytes);
    if (fresh == NULL) return NULL;
    k->fresh = fresh;
    k->fresh_bytes = slab_bytes;
  }
  void *p = k->fresh;
  k->fresh += size;
  k->fresh_bytes -= size;
  return p;
}

unsigned char *tps_sim_blocks_take(tps_sim_blocks *blocks, uint64_t bytes) {
  if (bytes <= SMALL) return small_new(blocks, bytes);
  void *p =
      mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
           /* cppcheck-suppress invalidFunctionArg; no file goes with it */
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  /* cppcheck-suppress memleak; it is the result */
  return p == MAP_FAILED ? NULL : p;
}

void tps_sim_blocks_give(tps_sim_blocks *blocks, void *host, uint64_t bytes) {
  if (host == NULL) return;
  if (bytes > SMALL) {
    munmap(host, (size_t)bytes);
    return;
  }
  tps_sim_chunk *c = host;
  tps_sim_class *k = &blocks->classes[class_of(bytes)];
  c->next = k->free;
  k->free = c;
}

void tps_sim_blocks_unmap(void *host, uint64_t bytes) {
  if (host != NULL && bytes > SMALL) munmap(host, (size_t)bytes);
}

void tps_sim_blocks_end(tps_sim_blocks *blocks) {
  while (blocks->slabs != NULL) {
    slab *next = blocks->slabs->next;
    free(blocks->slabs);
    blocks->slabs = next;
  }
}

static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

void tps_sim_blocks_garble(unsigned char *host, uint64_t bytes, uint64_t seed) {
  uint64_t most = bytes < GARBLED ? bytes : GARBLED;
  for (uint64_t at = 0; at < most; at += sizeof seed) {
    uint64_t value = mixed(seed += UINT64_C(0x9e3779b97f4a7c15));
    memcpy(host + at, &value, sizeof value);
  }
}
