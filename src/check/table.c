/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Open addressing, linear probing; what follows a slot that becomes free moves
 * up, so there are no marks of the deleted. */
#include "check/table.h"

#include <stdlib.h>

#define SMALLEST 64u

static size_t home(const tps_table *table, uint64_t key) {
  uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(h >> 32) & (table->capacity - 1);
}

/* The slot of the key, or the free one where it would be. */
static size_t find(const tps_table *table, uint64_t key) {
  size_t i = home(table, key);
  while (table->slots[i].value != NULL && table->slots[i].key != key)
    i = (i + 1) & (table->capacity - 1);
  return i;
}

void *tps_table_get(const tps_table *table, uint64_t key) {
  return table->count == 0 ? NULL : table->slots[find(table, key)].value;
}

static bool grow(tps_table *table) {
  tps_table wide = {.capacity = table->capacity * 2, .count = table->count};
  if (wide.capacity == 0) wide.capacity = SMALLEST;
  wide.slots = calloc(wide.capacity, sizeof *wide.slots);
  if (wide.slots == NULL) return false;
  for (size_t i = 0; i < table->capacity; i++)
    if (table->slots[i].value != NULL)
      wide.slots[find(&wide, table->slots[i].key)] = table->slots[i];
  free(table->slots);
  *table = wide;
  return true;
}

bool tps_table_put(tps_table *table, uint64_t key, void *value) {
  if (table->count * 2 >= table->capacity && !grow(table)) return false;
  struct tps_table_slot *slot = &table->slots[find(table, key)];
  table->count += slot->value == NULL;
  slot->key = key;
  slot->value = value;
  return true;
}

void *tps_table_take(tps_table *table, uint64_t key) {
  if (table->count == 0) return NULL;
  size_t mask = table->capacity - 1, gap = find(table, key);
  void *value = table->slots[gap].value;
  if (value == NULL) return NULL;
  table->count--;
  for (size_t i = (gap + 1) & mask; table->slots[i].value != NULL;
       i = (i + 1) & mask) {
    size_t from = home(table, table->slots[i].key);
    if (((i - from) & mask) < ((i - gap) & mask)) continue;
    table->slots[gap] = table->slots[i];
    gap = i;
  }
  table->slots[gap].value = NULL;
  return value;
}

void tps_table_free(tps_table *table) {
  free(table->slots);
  *table = (tps_table){0};
}
