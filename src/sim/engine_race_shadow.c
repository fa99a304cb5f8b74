/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Shadows of memory: which access was the latest to each cell. Memory for them is
 * limited; what there is none for goes unwatched, which is told.
 */
#include <stdlib.h>

#include "sim/engine_race.h"

/* --- memory -------------------------------------------------------------- */

static void *take(race *r, size_t count, size_t size) {
  void *p = r->left < count * size ? NULL : calloc(count, size);
  if (p) r->left -= count * size;
  else r->unseen = true;
  return p;
}

static uint64_t chunks_of(uint64_t size) {
  return (size + RACE_CHUNK - 1) / RACE_CHUNK;
}

/* --- lists of marks ------------------------------------------------------ */

/* Lists of marks of launches that have ended, for those to come: new memory costs
 * more than all else. Numbers go on from launch to launch, so what is left in a
 * list is older than anything that counts, unless launches overlap. */
typedef struct spare {
  struct spare *next;
  uint32_t newest; /* no mark in it is newer */
} spare;

#define SPARE_CELLS (RACE_CHUNK / 4)
#define MOST_SPARE 4096u

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static spare *spares;
static uint32_t spare_count, last_now;

static uint32_t *take_spare(race *r) {
  size_t size = SPARE_CELLS * 3 * sizeof(uint32_t);
  pthread_mutex_lock(&spare_lock);
  spare *s = r->left >= size ? spares : NULL;
  if (s) spares = s->next, spare_count--;
  pthread_mutex_unlock(&spare_lock);
  if (!s) return take(r, SPARE_CELLS, 3 * sizeof(uint32_t));
  r->left -= size;
  if (s->newest > r->first) memset(s, 0, size);
  else memset(s, 0, sizeof *s);
  return (uint32_t *)(void *)s;
}

static void put_spare(const race *r, marks *m) {
  spare *s = (spare *)(void *)m->now;
  if (!s) return;
  pthread_mutex_lock(&spare_lock);
  bool keep = spare_count < MOST_SPARE;
  if (keep) {
    s->newest = r->now;
    s->next = spares;
    spares = s;
    spare_count++;
  }
  pthread_mutex_unlock(&spare_lock);
  if (!keep) free(s);
}

void tps_sim_race_number(race *r) {
  pthread_mutex_lock(&spare_lock);
  if (last_now > UINT32_MAX / 2) last_now = 0;
  r->first = r->now = last_now;
  pthread_mutex_unlock(&spare_lock);
}

void tps_sim_race_numbered(const race *r) {
  pthread_mutex_lock(&spare_lock);
  if (r->now > last_now) last_now = r->now;
  pthread_mutex_unlock(&spare_lock);
}

static bool make_marks(race *r, marks *m, size_t cells) {
  if (m->now) return true;
  m->now = cells == SPARE_CELLS ? take_spare(r)
                                : take(r, cells, 3 * sizeof(uint32_t));
  if (!m->now) return false;
  m->warp = m->now + cells;
  m->who = m->warp + cells;
  return true;
}

bool tps_sim_race_second(race *r, race_chunk *c) {
  return make_marks(r, &c->reads[1], RACE_CHUNK >> c->shift);
}

/* --- shadows ------------------------------------------------------------- */

race_memory *tps_sim_race_memory_new(race *r, uint64_t base, uint64_t size) {
  uint64_t count = chunks_of(size);
  race_memory *m =
      take(r, 1, sizeof(race_memory) + count * sizeof(race_chunk *));
  if (m) m->base = base, m->size = size;
  return m;
}

static void chunk_free(const race *r, race_chunk *c) {
  if (!c) return;
  marks *lists[] = {&c->writes, &c->reads[0], &c->reads[1]};
  for (unsigned k = 0; k < 3; k++) {
    if (c->shift) put_spare(r, lists[k]);
    else free(lists[k]->now);
  }
  free(c->strong);
  free(c);
}

void tps_sim_race_memory_free(const race *r, race_memory *m) {
  if (!m) return;
  for (uint64_t k = 0; k < chunks_of(m->size); k++) chunk_free(r, m->chunks[k]);
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

static void give_back(race *r, void *p, size_t size) {
  if (p) r->left += RACE_CHUNK / 4 * size;
  free(p);
}

/* Each cell becomes four. Without memory what they knew is forgotten. */
static void split_marks(race *r, marks *m) {
  marks finer = {NULL, NULL, NULL};
  if (!m->now) return;
  if (make_marks(r, &finer, RACE_CHUNK))
    for (unsigned k = 0; k < RACE_CHUNK; k++)
      mark_put(&finer, k, mark_at(m, k / 4));
  give_back(r, m->now, 3 * sizeof(uint32_t));
  *m = finer;
}

static void split_strong(race *r, race_chunk *c) {
  strong_marks *finer = NULL;
  if (!c->strong) return;
  finer = take(r, RACE_CHUNK, sizeof *finer);
  for (unsigned k = 0; finer && k < RACE_CHUNK; k++)
    finer[k] = c->strong[k / 4];
  give_back(r, c->strong, sizeof *finer);
  c->strong = finer;
}

static void refine(race *r, race_chunk *c) {
  split_marks(r, &c->writes);
  split_marks(r, &c->reads[0]);
  split_marks(r, &c->reads[1]);
  split_strong(r, c);
  c->shift = 0;
}

/* What the access leaves marks in. */
static bool make_room(race *r, race_chunk *c, const touch *t) {
  size_t cells = RACE_CHUNK >> c->shift;
  if (t->order & WATCH_STRONG) {
    if (!c->strong) c->strong = take(r, cells, sizeof *c->strong);
    return c->strong != NULL;
  }
  if (t->kind != WATCH_LOAD) return make_marks(r, &c->writes, cells);
  return make_marks(r, &c->reads[0], cells);
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
  return make_room(r, *at, t) ? *at : NULL;
}
