/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Shadows of memory: which access was the latest to each cell. Memory for them is
 * limited; what there is none for goes unwatched.
 */
#include <stdlib.h>

#include "sim/engine_race.h"

/* --- memory -------------------------------------------------------------- */

static void *take(race *r, size_t count, size_t size) {
  if (r->left < count * size) return NULL;
  void *p = calloc(count, size);
  if (p) r->left -= count * size;
  return p;
}

static uint64_t chunks_of(uint64_t size) {
  return (size + RACE_CHUNK - 1) / RACE_CHUNK;
}

race_memory *tps_sim_race_memory_new(race *r, uint64_t base, uint64_t size) {
  uint64_t count = chunks_of(size);
  race_memory *m =
      take(r, 1, sizeof(race_memory) + count * sizeof(race_chunk *));
  if (m) m->base = base, m->size = size;
  return m;
}

static void chunk_free(race_chunk *c) {
  if (!c) return;
  free(c->writes);
  free(c->reads);
  free(c->strong);
  free(c);
}

void tps_sim_race_memory_free(race_memory *m) {
  if (!m) return;
  for (uint64_t k = 0; k < chunks_of(m->size); k++) chunk_free(m->chunks[k]);
  free(m);
}

race_memory *tps_sim_race_memory(race *r, const tps_sim_allocation *a) {
  race_memory **bucket = &r->memory[a->base / 256 % RACE_BUCKETS];
  race_memory *m = *bucket;
  while (m && m->base != a->base) m = m->next;
  if (m) return m;
  m = tps_sim_race_memory_new(r, a->base, a->size);
  if (!m) return NULL;
  m->next = *bucket;
  return *bucket = m;
}

/* --- cells --------------------------------------------------------------- */

/* Each cell of a list becomes four. */
static bool split(race *r, void **list, size_t size) {
  const unsigned char *from = *list;
  if (!from) return true;
  unsigned char *to = take(r, RACE_CHUNK, size);
  if (!to) return false;
  for (unsigned k = 0; k < RACE_CHUNK; k++)
    memcpy(to + k * size, from + k / 4 * size, size);
  free(*list);
  r->left += RACE_CHUNK / 4 * size;
  *list = to;
  return true;
}

static void forget(void *list) {
  void **p = list;
  free(*p);
  *p = NULL;
}

/* Without memory what it knew is forgotten. */
static void refine(race *r, race_chunk *c) {
  void *writes = c->writes, *reads = c->reads, *strong = c->strong;
  if (!split(r, &writes, sizeof *c->writes)) forget(&writes);
  if (!split(r, &reads, sizeof *c->reads)) forget(&reads);
  if (!split(r, &strong, sizeof *c->strong)) forget(&strong);
  c->writes = writes, c->reads = reads, c->strong = strong;
  c->shift = 0;
}

/* The list that the access writes to. */
static bool make_list(race *r, race_chunk *c, const touch *t) {
  size_t cells = RACE_CHUNK >> c->shift;
  if (t->order & WATCH_STRONG) {
    if (!c->strong) c->strong = take(r, cells, sizeof *c->strong);
    return c->strong != NULL;
  }
  if (t->kind == WATCH_LOAD) {
    if (!c->reads) c->reads = take(r, cells, sizeof *c->reads);
    return c->reads != NULL;
  }
  if (!c->writes) c->writes = take(r, cells, sizeof *c->writes);
  return c->writes != NULL;
}

race_chunk *tps_sim_race_chunk(race *r, race_memory *m, uint64_t offset,
                               const touch *t, bool fine) {
  race_chunk **at = &m->chunks[offset / RACE_CHUNK];
  if (!*at) {
    *at = take(r, 1, sizeof **at);
    if (!*at) return NULL;
    (*at)->shift = fine ? 0 : 2;
  }
  if (fine && (*at)->shift) refine(r, *at);
  return make_list(r, *at, t) ? *at : NULL;
}
