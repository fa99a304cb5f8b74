/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory of one module: handed out piece by piece, freed all at once.
 */
#ifndef TPS_PTX_ARENA_H
#define TPS_PTX_ARENA_H

#include <stddef.h>

typedef struct arena_chunk arena_chunk;

typedef struct arena {
  arena_chunk *chunks; /* the newest first */
  char *next;
  size_t left;
} arena;

/* `size` zeroed bytes, aligned for anything; NULL when out of memory. Also for
 * size 0 the result is not NULL. */
void *tps_arena_take(arena *a, size_t size);
void tps_arena_free(arena *a);

#endif
