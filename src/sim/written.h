/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which bytes of an allocation have ever been written (TPS_WATCH_INIT): one bit for
 * each. Allocations made while nobody asks have none, which counts as written.
 *
 * Threads: all but new and free may be called by many at once; who reads a byte
 * that another writes at the moment has no order with it and may see either.
 */
#ifndef TPS_SIM_WRITTEN_H
#define TPS_SIM_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tps_sim_written tps_sim_written;

/* Nothing is written; NULL when out of memory. */
tps_sim_written *tps_sim_written_new(uint64_t bytes);
void tps_sim_written_free(tps_sim_written *w); /* NULL is fine */

/* Where `w` is NULL nothing happens, and everything is written. Ranges may go past
 * the end. */
void tps_sim_written_set(tps_sim_written *w, uint64_t first, uint64_t bytes);
/* Whether not one of the bytes was written. */
bool tps_sim_written_none(const tps_sim_written *w, uint64_t first,
                          uint64_t bytes);
/* Whether all of them were. */
bool tps_sim_written_all(const tps_sim_written *w, uint64_t first,
                         uint64_t bytes);
/* Nothing of the range is written any more. */
void tps_sim_written_clear(tps_sim_written *w, uint64_t first, uint64_t bytes);
/* `from` NULL: all of it is. */
void tps_sim_written_copy(tps_sim_written *to, uint64_t to_first,
                          const tps_sim_written *from, uint64_t from_first,
                          uint64_t bytes);

/* A kernel begins whose stores nobody will note: all that is allocated counts as
 * written from now on. */
void tps_sim_written_miss(void);

#endif
