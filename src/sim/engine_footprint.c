/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which bytes a launch really reads and writes (TPS_WATCH_TOUCHES). One bit a byte
 * for each, in chunks made when they are first touched, shared by all blocks of the
 * launch and set without a lock: most bits that an access sets are set already, which
 * a plain load tells.
 */
#include <stdlib.h>

#include "sim/engine_watch.h"

#define CHUNK_BYTES 4096u
#define CHUNK_WORDS (CHUNK_BYTES / 64)
#define BUCKETS 64u
/* A launch that touches more pieces than that has gaps closed. */
#define MOST_PIECES (1u << 20)

typedef _Atomic uint64_t bits;

typedef struct chunk {
  bits read[CHUNK_WORDS], written[CHUNK_WORDS];
  bits plain[CHUNK_WORDS]; /* not by atomic and volatile operations alone */
} chunk;

/* An allocation that the launch has touched. */
typedef struct pages {
  struct pages *next; /* in the bucket */
  uint64_t base;      /* address */
  uint64_t size;
  atomic_bool whole; /* memory ran out: all of it counts as touched */
  _Atomic(chunk *) chunks[];
} pages;

typedef struct footprint {
  pthread_mutex_t lock; /* of the buckets */
  pages *buckets[BUCKETS];
  uint32_t count;
  atomic_bool incomplete; /* memory ran out */
} footprint;

/* --- a launch and its blocks --------------------------------------------- */

static void *launch_new(struct tps_sim_launch *launch) {
  footprint *f = calloc(1, sizeof *f);
  (void)launch;
  if (f) pthread_mutex_init(&f->lock, NULL);
  return f;
}

static uint64_t chunk_count(uint64_t size) {
  return (size + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

static void pages_free(pages *p) {
  for (uint64_t k = 0; k < chunk_count(p->size); k++) free(p->chunks[k]);
  free(p);
}

static void launch_free(void *launch) {
  footprint *f = launch;
  for (unsigned k = 0; k < BUCKETS; k++)
    while (f->buckets[k]) {
      pages *p = f->buckets[k];
      f->buckets[k] = p->next;
      pages_free(p);
    }
  pthread_mutex_destroy(&f->lock);
  free(f);
}

/* What the block's instructions touched last, by slot. */
static void *block_new(void *launch, struct tps_sim_block *block) {
  (void)launch;
  return calloc(block->launch->kernel->slots + 1, sizeof(pages *));
}

static void block_free(void *launch, void *block) {
  (void)launch;
  free(block);
}

/* --- touching ------------------------------------------------------------ */

static pages *pages_of(footprint *f, const tps_sim_allocation *m) {
  pages **bucket = &f->buckets[(m->base >> 8) % BUCKETS];
  pthread_mutex_lock(&f->lock);
  pages *p = *bucket;
  while (p && p->base != m->base) p = p->next;
  if (!p) {
    p = calloc(1, sizeof *p + chunk_count(m->size) * sizeof p->chunks[0]);
    if (p) {
      p->base = m->base;
      p->size = m->size;
      p->next = *bucket;
      *bucket = p;
      f->count++;
    }
  }
  pthread_mutex_unlock(&f->lock);
  return p;
}

static chunk *chunk_at(pages *p, uint64_t k) {
  chunk *c = atomic_load_explicit(&p->chunks[k], memory_order_acquire);
  if (c) return c;
  chunk *fresh = calloc(1, sizeof *fresh);
  if (!fresh) {
    atomic_store_explicit(&p->whole, true, memory_order_relaxed);
    return NULL;
  }
  if (atomic_compare_exchange_strong(&p->chunks[k], &c, fresh)) return fresh;
  free(fresh);
  return c;
}

static void set_word(bits *word, uint64_t mask) {
  if ((~atomic_load_explicit(word, memory_order_relaxed) & mask) != 0)
    atomic_fetch_or_explicit(word, mask, memory_order_relaxed);
}

/* Bits from `first` to before `end` of a chunk. */
static void set_bits(bits *words, unsigned first, unsigned end) {
  while (first < end) {
    unsigned bit = first % 64, count = 64 - bit;
    if (count > end - first) count = end - first;
    uint64_t mask = count == 64 ? UINT64_MAX : ((UINT64_C(1) << count) - 1);
    set_word(&words[first / 64], mask << bit);
    first += count;
  }
}

static void set_range(pages *p, uint64_t first, uint64_t end, const touch *t) {
  if (end > p->size) end = p->size;
  while (first < end) {
    uint64_t k = first / CHUNK_BYTES, next = (k + 1) * CHUNK_BYTES;
    chunk *c = chunk_at(p, k);
    if (!c) return;
    if (next > end) next = end;
    unsigned from = (unsigned)(first - k * CHUNK_BYTES);
    unsigned to = (unsigned)(next - k * CHUNK_BYTES);
    if (t->kind != WATCH_STORE) set_bits(c->read, from, to);
    if (t->kind != WATCH_LOAD) set_bits(c->written, from, to);
    if (!(t->order & WATCH_STRONG)) set_bits(c->plain, from, to);
    first = next;
  }
}

/* Lanes that go on where the one before ends, or touch the same, are one range. */
static void touch_lanes(pages *p, const touch *t) {
  uint64_t first = 0, end = 0;
  for (uint32_t m = t->lanes; m; m &= m - 1) {
    uint64_t at = t->at[__builtin_ctz(m)];
    if (at >= first && at <= end && end != first) {
      if (at + t->bytes > end) end = at + t->bytes;
      continue;
    }
    set_range(p, first, end, t);
    first = at, end = at + t->bytes;
  }
  set_range(p, first, end, t);
}

static void on_touch(void *launch, void *block, const touch *t) {
  pages **last = (pages **)block + t->i->slot;
  if (t->place != WATCH_GLOBAL || t->memory->kind > TPS_SIM_CONSTANT) return;
  pages *p = *last;
  if (!p || p->base != t->memory->base) {
    p = pages_of(launch, t->memory);
    if (!p) {
      footprint *f = launch;
      atomic_store_explicit(&f->incomplete, true, memory_order_relaxed);
      return;
    }
    *last = p;
  }
  if (t->run) set_range(p, t->at[0], t->at[0] + LANES * t->bytes, t);
  else touch_lanes(p, t);
}

/* --- telling ------------------------------------------------------------- */

typedef struct pieces {
  tps_touch *list;
  uint32_t count, capacity;
  bool lost; /* there was no memory for more */
} pieces;

static bool make_room(pieces *o) {
  if (o->count < o->capacity) return true;
  uint32_t more = o->capacity ? 2 * o->capacity : 16;
  tps_touch *list = realloc(o->list, more * sizeof *list);
  if (!list) return false;
  o->list = list;
  o->capacity = more;
  return true;
}

/* Pieces come in order of address; those of two allocations never meet. */
static void add(pieces *o, uint64_t first, uint64_t bytes, uint8_t access) {
  tps_touch *last = o->count ? &o->list[o->count - 1] : NULL;
  if (last && last->access == access && last->first + last->bytes == first) {
    last->bytes += bytes;
  } else if (last && o->count >= MOST_PIECES) {
    last->bytes = first + bytes - last->first;
    last->access = tps_access_join(last->access, access);
  } else if (make_room(o)) {
    o->list[o->count++] = (tps_touch){0, first, bytes, access, 0, 0};
  } else {
    o->lost = true;
  }
}

/* What was done to the bytes of one word. */
typedef struct word {
  uint64_t read, written, plain;
} word;

static uint8_t access_at(const word *w, unsigned at) {
  return (uint8_t)((w->read >> at & 1 ? TPS_ACCESS_READ : 0) |
                   (w->written >> at & 1 ? TPS_ACCESS_WRITE : 0) |
                   (w->plain >> at & 1 ? 0 : TPS_ACCESS_STRONG));
}

/* How many bytes from `at` on are like the first. */
static unsigned alike(const word *w, unsigned at) {
  uint64_t other = (w->read ^ (0 - (w->read >> at & 1))) |
                   (w->written ^ (0 - (w->written >> at & 1))) |
                   (w->plain ^ (0 - (w->plain >> at & 1)));
  other >>= at;
  return other ? (unsigned)__builtin_ctzll(other) : 64 - at;
}

static void add_word(pieces *o, uint64_t first, const word *w) {
  for (unsigned at = 0; at < 64;) {
    unsigned count = alike(w, at);
    uint8_t access = access_at(w, at);
    if (access & TPS_ACCESS_BOTH) add(o, first + at, count, access);
    at += count;
  }
}

static void add_pages(pieces *o, const pages *p) {
  if (atomic_load(&p->whole)) {
    add(o, p->base, p->size, TPS_ACCESS_BOTH);
    return;
  }
  for (uint64_t k = 0; k < chunk_count(p->size); k++) {
    chunk *c = atomic_load_explicit(&p->chunks[k], memory_order_acquire);
    for (unsigned n = 0; c && n < CHUNK_WORDS; n++) {
      word w = {
          atomic_load_explicit(&c->read[n], memory_order_relaxed),
          atomic_load_explicit(&c->written[n], memory_order_relaxed),
          atomic_load_explicit(&c->plain[n], memory_order_relaxed),
      };
      if (w.read | w.written)
        add_word(o, p->base + k * CHUNK_BYTES + 64 * n, &w);
    }
  }
}

static int by_address(const void *a, const void *b) {
  uint64_t x = (*(const pages *const *)a)->base;
  uint64_t y = (*(const pages *const *)b)->base;
  return (x > y) - (x < y);
}

/* All of them in order of address; false: no memory. */
static bool gather(const footprint *f, pieces *out) {
  uint32_t count = 0;
  const pages **all = malloc((f->count + 1) * sizeof *all);
  if (!all) return false;
  for (unsigned k = 0; k < BUCKETS; k++)
    for (const pages *p = f->buckets[k]; p; p = p->next) all[count++] = p;
  qsort(all, count, sizeof *all, by_address);
  for (uint32_t k = 0; k < count; k++) add_pages(out, all[k]);
  free(all);
  return !out->lost && !atomic_load(&f->incomplete);
}

static void launch_end(void *launch, tps_op *op, tps_op *graph) {
  pieces out = {.list = NULL};
  bool good = gather(launch, &out);
  if (good) tps_watch_touched(op, graph, out.list, out.count);
  free(out.list);
}

const watch_part tps_sim_footprint = {.wants = TPS_WATCH_TOUCHES,
                                      .launch_new = launch_new,
                                      .launch_end = launch_end,
                                      .launch_free = launch_free,
                                      .block_new = block_new,
                                      .block_free = block_free,
                                      .touch = on_touch};
