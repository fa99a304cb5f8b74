/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The table of all allocations by address, sorted, for readers that take no lock:
 * they see it through one atomic pointer and its length through another. A table
 * that was replaced (it grew, or lost or changed entries) is kept until whatever
 * executed at that time has ended, which the epochs tell. All but `find` is for
 * who holds the lock of the address space.
 */
#ifndef TPS_SIM_RANGES_H
#define TPS_SIM_RANGES_H

#include "sim/memory.h"

typedef struct tps_sim_table tps_sim_table;

typedef struct tps_sim_ranges {
  _Atomic(tps_sim_table *) table;
  tps_sim_table *retired;
  uint64_t retired_bytes;
  _Atomic uint64_t epoch; /* +1 for each death, of allocations and of tables */
} tps_sim_ranges;

bool tps_sim_ranges_begin(tps_sim_ranges *ranges);
void tps_sim_ranges_end(tps_sim_ranges *ranges);

/* Makes room for one more; false: no memory. What is appended lies behind all
 * that there is. */
bool tps_sim_ranges_reserve(tps_sim_ranges *ranges);
void tps_sim_ranges_append(tps_sim_ranges *ranges, tps_sim_allocation *a);
/* `now` in place of `before`, which begins where it does. False: no memory. */
bool tps_sim_ranges_exchange(tps_sim_ranges *ranges,
                             const tps_sim_allocation *before,
                             tps_sim_allocation *now);
/* Taking entries out: a table with room for all, or NULL, is got first; then those
 * that stay make it the new one. */
tps_sim_table *tps_sim_ranges_prepare(const tps_sim_ranges *ranges);
void tps_sim_ranges_keep(tps_sim_ranges *ranges, tps_sim_table *fresh,
                         bool (*stays)(const tps_sim_allocation *));
/* Lets go of the tables that were replaced before `epoch`. */
void tps_sim_ranges_settle(tps_sim_ranges *ranges, uint64_t epoch);

/* The one that contains `address`, or NULL. Takes no lock. */
tps_sim_allocation *tps_sim_ranges_find(tps_sim_ranges *ranges,
                                        uint64_t address);
size_t tps_sim_ranges_count(const tps_sim_ranges *ranges);
tps_sim_allocation *tps_sim_ranges_at(const tps_sim_ranges *ranges, size_t i);

#endif
