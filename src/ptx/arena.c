/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Chunks come from calloc, so that a large, mostly zero piece (an array with a
 * short initialiser) costs no pages until it is touched. They grow with what is
 * taken, so that a small text costs little.
 */
#include "ptx/arena.h"

#include <stdint.h>
#include <stdlib.h>

enum { ALIGN = 16, LEAST = 8 * 1024, MOST = 256 * 1024 };

struct arena_chunk {
  arena_chunk *next;
  size_t size; /* keeps the pieces aligned */
};

static char *add_chunk(arena *a, size_t size) {
  if (size > SIZE_MAX - sizeof(arena_chunk)) return NULL;
  arena_chunk *chunk = calloc(1, sizeof *chunk + size);
  if (chunk == NULL) return NULL;
  chunk->next = a->chunks;
  chunk->size = size;
  a->chunks = chunk;
  return (char *)(chunk + 1);
}

/* For a piece that is no larger than a quarter of MOST. */
static size_t chunk_for(const arena *a, size_t size) {
  size_t chunk = a->chunks == NULL ? LEAST : a->chunks->size * 2;
  while (chunk < size * 4) chunk *= 2;
  return chunk < MOST ? chunk : MOST;
}

void *tps_arena_take(arena *a, size_t size) {
  if (size > SIZE_MAX - ALIGN) return NULL;
  size = size == 0 ? ALIGN : (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  if (size > MOST / 4) return add_chunk(a, size);
  if (size > a->left) {
    size_t room = chunk_for(a, size);
    char *chunk = add_chunk(a, room);
    if (chunk == NULL) return NULL;
    a->next = chunk;
    a->left = room;
  }
  void *piece = a->next;
  a->next += size;
  a->left -= size;
  return piece;
}

void tps_arena_free(arena *a) {
  while (a->chunks != NULL) {
    arena_chunk *next = a->chunks->next;
    free(a->chunks);
    a->chunks = next;
  }
  a->next = NULL;
  a->left = 0;
}
