/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Host memory behind the simulated device's allocations. Small blocks come from
 * size classes cut from slabs, large ones are mapped each for itself, so that
 * their pages appear when first touched. No locks: the caller holds one.
 */
#ifndef TPS_SIM_BLOCKS_H
#define TPS_SIM_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define TPS_SIM_CLASSES 9 /* 256 << 0 … 256 << 8 = 64 KiB */

typedef struct tps_sim_chunk {
  struct tps_sim_chunk *next;
} tps_sim_chunk;

typedef struct tps_sim_class {
  tps_sim_chunk *free;
  unsigned char *fresh; /* the rest of the newest slab, still zero */
  size_t fresh_bytes;
} tps_sim_class;

/* All zero to begin with. */
typedef struct tps_sim_blocks {
  tps_sim_class classes[TPS_SIM_CLASSES];
  struct tps_sim_slab *slabs;
} tps_sim_blocks;

/* Zeroed, aligned to 64 bytes, with room up to the next multiple of 256. NULL: no
 * memory. `bytes` > 0, for `give` the same or what rounds up to the same
 * multiple of 256. */
unsigned char *tps_sim_blocks_take(tps_sim_blocks *blocks, uint64_t bytes);
/* `host` may be NULL. */
void tps_sim_blocks_give(tps_sim_blocks *blocks, void *host, uint64_t bytes);
/* Zeroed memory that is there until the end. */
unsigned char *tps_sim_blocks_slab(tps_sim_blocks *blocks, size_t bytes);
/* The end, for a block that was not given back and for all slabs. */
void tps_sim_blocks_unmap(void *host, uint64_t bytes);
void tps_sim_blocks_end(tps_sim_blocks *blocks);

/* Writes what looks like anything but zeros, the same for the same `seed`: all of
 * a block of up to 16 MiB, that much of a larger one. */
void tps_sim_blocks_garble(unsigned char *host, uint64_t bytes, uint64_t seed);

#endif
