/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 */
#include "sim/ranges.h"

#include <stdlib.h>
#include <string.h>

typedef struct range {
  uint64_t base, size;
  tps_sim_allocation *allocation;
} range;

struct tps_sim_table {
  _Atomic size_t count;
  size_t capacity;
  tps_sim_table *next; /* in the list of the retired */
  uint64_t retired;    /* epoch */
  range ranges[];
};

static size_t bytes_for(size_t capacity) {
  return sizeof(tps_sim_table) + capacity * sizeof(range);
}

static tps_sim_table *table_new(size_t capacity) {
  tps_sim_table *t = malloc(bytes_for(capacity));
  if (t == NULL) return NULL;
  atomic_init(&t->count, 0);
  t->capacity = capacity;
  t->next = NULL;
  t->retired = 0;
  return t;
}

static tps_sim_table *table_of(const tps_sim_ranges *ranges) {
  return atomic_load_explicit(&ranges->table, memory_order_relaxed);
}

size_t tps_sim_ranges_count(const tps_sim_ranges *ranges) {
  return atomic_load_explicit(&table_of(ranges)->count, memory_order_relaxed);
}

tps_sim_allocation *tps_sim_ranges_at(const tps_sim_ranges *ranges, size_t i) {
  return table_of(ranges)->ranges[i].allocation;
}

bool tps_sim_ranges_begin(tps_sim_ranges *ranges) {
  tps_sim_table *t = table_new(64);
  if (t == NULL) return false;
  atomic_init(&ranges->table, t);
  ranges->retired = NULL;
  ranges->retired_bytes = 0;
  atomic_init(&ranges->epoch, 1);
  return true;
}

void tps_sim_ranges_end(tps_sim_ranges *ranges) {
  tps_sim_ranges_settle(ranges, UINT64_MAX);
  free(table_of(ranges));
}

/* Makes `t` the one that readers see; the old one waits for its last reader. */
static void publish(tps_sim_ranges *ranges, tps_sim_table *t) {
  tps_sim_table *old = table_of(ranges);
  atomic_store_explicit(&ranges->table, t, memory_order_release);
  old->retired = atomic_fetch_add(&ranges->epoch, 1);
  old->next = ranges->retired;
  ranges->retired = old;
  ranges->retired_bytes += bytes_for(old->capacity);
}

/* A table of the same content with room for `capacity`, not yet published. */
static tps_sim_table *copy(const tps_sim_ranges *ranges, size_t capacity) {
  const tps_sim_table *t = table_of(ranges);
  size_t count = tps_sim_ranges_count(ranges);
  tps_sim_table *other = table_new(capacity);
  if (other == NULL) return NULL;
  memcpy(other->ranges, t->ranges, count * sizeof t->ranges[0]);
  atomic_init(&other->count, count);
  return other;
}

bool tps_sim_ranges_reserve(tps_sim_ranges *ranges) {
  size_t capacity = table_of(ranges)->capacity;
  if (tps_sim_ranges_count(ranges) < capacity) return true;
  tps_sim_table *bigger = copy(ranges, capacity * 2);
  if (bigger == NULL) return false;
  publish(ranges, bigger);
  return true;
}

void tps_sim_ranges_append(tps_sim_ranges *ranges, tps_sim_allocation *a) {
  tps_sim_table *t = table_of(ranges);
  size_t count = tps_sim_ranges_count(ranges);
  t->ranges[count] = (range){a->base, a->size, a};
  atomic_store_explicit(&t->count, count + 1, memory_order_release);
}

/* Number of ranges that begin at or below `address`. */
static size_t ranges_below(const tps_sim_table *t, size_t count,
                           uint64_t address) {
  size_t low = 0;
  while (count > 0) {
    size_t half = count / 2;
    if (t->ranges[low + half].base <= address) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

bool tps_sim_ranges_exchange(tps_sim_ranges *ranges,
                             const tps_sim_allocation *before,
                             tps_sim_allocation *now) {
  tps_sim_table *t = copy(ranges, table_of(ranges)->capacity);
  if (t == NULL) return false;
  size_t at = ranges_below(t, tps_sim_ranges_count(ranges), before->base) - 1;
  t->ranges[at] = (range){now->base, now->size, now};
  publish(ranges, t);
  return true;
}

tps_sim_table *tps_sim_ranges_prepare(const tps_sim_ranges *ranges) {
  return table_new(table_of(ranges)->capacity);
}

void tps_sim_ranges_keep(tps_sim_ranges *ranges, tps_sim_table *fresh,
                         bool (*stays)(const tps_sim_allocation *)) {
  const tps_sim_table *t = table_of(ranges);
  size_t count = tps_sim_ranges_count(ranges), n = 0;
  for (size_t i = 0; i < count; i++)
    if (stays(t->ranges[i].allocation)) fresh->ranges[n++] = t->ranges[i];
  atomic_init(&fresh->count, n);
  publish(ranges, fresh);
}

void tps_sim_ranges_settle(tps_sim_ranges *ranges, uint64_t epoch) {
  for (tps_sim_table **p = &ranges->retired; *p != NULL;) {
    tps_sim_table *t = *p;
    if (t->retired < epoch) {
      *p = t->next;
      ranges->retired_bytes -= bytes_for(t->capacity);
      free(t);
    } else {
      p = &t->next;
    }
  }
}

tps_sim_allocation *tps_sim_ranges_find(tps_sim_ranges *ranges,
                                        uint64_t address) {
  const tps_sim_table *t =
      atomic_load_explicit(&ranges->table, memory_order_acquire);
  size_t count = atomic_load_explicit(&t->count, memory_order_acquire);
  size_t below = ranges_below(t, count, address);
  if (below == 0) return NULL;
  const range *r = &t->ranges[below - 1];
  return address - r->base < r->size ? r->allocation : NULL;
}
