/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Numbers → things: a hash table that grows. Begin with zeros.
 */
#ifndef TPS_CHECK_TABLE_H
#define TPS_CHECK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tps_table {
  struct tps_table_slot {
    uint64_t key;
    void *value; /* NULL: free */
  } * slots;
  size_t capacity, count; /* the capacity is 0 or a power of two */
} tps_table;

void *tps_table_get(const tps_table *table, uint64_t key); /* NULL: none */
/* Replaces what there was; the value is not NULL. False: no memory. */
bool tps_table_put(tps_table *table, uint64_t key, void *value);
/* What there was, or NULL. */
void *tps_table_take(tps_table *table, uint64_t key);
/* Of what is left the owner has to take care before. */
void tps_table_free(tps_table *table);

#endif
