/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The simulated device's address space. Device addresses are numbers of a
 * 64-bit space of its own, not host pointers: global memory with guard zones
 * between the allocations, a window each for shared, local and parameter
 * memory, and freed ranges kept for a while so that use after free is told from
 * a wild access.
 *
 * Addresses are deterministic: the same calls give the same addresses. None is
 * given out twice, but with a seed that says so.
 *
 * Threads: allocate and free take a lock; find takes none and is what an engine
 * calls when its cached allocation does not match. An allocation struct
 * stays valid until the space is destroyed or, once freed, until
 * tps_sim_space_reclaim runs while nothing executes; the bytes at `host`
 * likewise.
 */
#ifndef TPS_SIM_MEMORY_H
#define TPS_SIM_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/written.h"

/* Windows of the generic address space. Shared and local addresses inside their
 * window are per block and per thread; the engine maps them. */
#define TPS_SIM_SHARED_BASE UINT64_C(0x0000010000000000)
#define TPS_SIM_SHARED_SIZE UINT64_C(0x0000000100000000)
#define TPS_SIM_LOCAL_BASE UINT64_C(0x0000020000000000)
#define TPS_SIM_LOCAL_SIZE UINT64_C(0x0000000100000000)
#define TPS_SIM_PARAM_BASE UINT64_C(0x0000030000000000)
#define TPS_SIM_PARAM_SIZE UINT64_C(0x0000000000100000)
#define TPS_SIM_CODE_BASE UINT64_C(0x0000040000000000) /* + function × 16 */
#define TPS_SIM_GLOBAL_BASE UINT64_C(0x00007f0000000000)

/* What device-side malloc gives out in all: a GPU's default. */
#define TPS_SIM_HEAP_BYTES (8ull << 20)

typedef enum tps_sim_memory_kind {
  TPS_SIM_DEVICE_MEMORY,
  TPS_SIM_PINNED,   /* host memory of the process, reachable by kernels */
  TPS_SIM_MANAGED,  /* the same; counts as the device's */
  TPS_SIM_VARIABLE, /* a module's __device__ variable */
  TPS_SIM_CONSTANT, /* read-only for kernels */
  TPS_SIM_HEAP,     /* device-side malloc */
  /* What plain loads and stores can't reach; see sim/textures.h. */
  TPS_SIM_ARRAY,
  TPS_SIM_TEXTURE,
  TPS_SIM_SURFACE,
  /* Not the program's: nothing in kernels reaches it, reports skip it. Host
   * memory that copies are staged in, variables that carry types. */
  TPS_SIM_INTERNAL
} tps_sim_memory_kind;

typedef struct tps_sim_space tps_sim_space;

typedef struct tps_sim_allocation {
  tps_sim_space *owner; /* while it lives: the device's whose memory it is */
  uint64_t base;        /* device address */
  uint64_t size;        /* bytes */
  unsigned char *host;
  uint8_t kind; /* tps_sim_memory_kind */
  atomic_bool live;
  uint64_t id;         /* the runtime's id of the memory, 0 if none */
  const char *element; /* name of the element type, constant, "" if not known */
  const char *source;  /* script that made it, interned, "" if not known */
  int32_t line;
  const char *free_source; /* who freed it, valid when not live */
  int32_t free_line;
  /* The device's: a free is queued, so that a second one is refused. */
  atomic_bool freeing;
  tps_sim_written *written; /* NULL: all of it */
  /* The space's own. */
  uint64_t died;                   /* epoch of its death */
  struct tps_sim_allocation *next; /* in the list of the dead, or of structs */
} tps_sim_allocation;

/* A device's part of the address space that all devices of the process share:
 * what lies in another's part is found as well. */
int tps_sim_space_new(uint64_t total, tps_sim_space **out, tps_error *err);
void tps_sim_space_destroy(tps_sim_space *space);
/* For what is allocated from now on: as TPSTREAM_SIM_SEED has it. With a seed
 * device memory and the heap's hold garbage at first, not zeros; where the seed
 * reuses, dead device memory is given out again, with what it held. */
void tps_sim_space_seed(tps_sim_space *space, uint64_t seed);
/* Odd ones do, as early as CUDA may; without a seed and with the even ones no
 * address is given out twice. */
static inline bool tps_sim_seed_reuses(uint64_t seed) { return seed % 2 != 0; }

/* bytes > 0. Without a seed memory is zero-filled lazily (fresh pages), base 256-byte aligned,
 * with at least 512 bytes of guard zone around it. OUT_OF_MEMORY when the
 * device's total would be exceeded. */
int tps_sim_allocate(tps_sim_space *space, uint64_t bytes,
                     tps_sim_memory_kind kind, tps_sim_allocation **out,
                     tps_error *err);
/* The same for a device with frees queued: `credit` bytes of what is live count
 * as free already. */
int tps_sim_allocate_ahead(tps_sim_space *space, uint64_t bytes,
                           tps_sim_memory_kind kind, uint64_t credit,
                           tps_sim_allocation **out, tps_error *err);
/* Nothing has been written to it yet, if anybody asks; nobody may be using it. */
void tps_sim_begin_unwritten(tps_sim_allocation *allocation);
/* Marks the allocation, whose owner `space` is, dead at once; its bytes are kept
 * until reclaimed. */
void tps_sim_free(tps_sim_space *space, tps_sim_allocation *allocation,
                  const char *source, int line);
/* Returns dead memory of all devices to the host, but for the latest (a quarantine of 64 MiB
 * or 4096 ranges whose structs stay to name use after free; large ones give
 * their pages back and keep the struct). Only while no kernel executes. */
void tps_sim_space_reclaim(tps_sim_space *space);
/* The same while kernels execute: an epoch is taken before a kernel (or a copy)
 * begins; what died before the oldest epoch of all that run may go. */
uint64_t tps_sim_space_epoch(tps_sim_space *space);
void tps_sim_space_reclaim_before(tps_sim_space *space, uint64_t epoch);
/* True when the quarantine is overfull: a reclaim would give something back. */
bool tps_sim_space_is_overfull(tps_sim_space *space);
void tps_sim_space_info(tps_sim_space *space, uint64_t *free, uint64_t *total);

/* The allocation, live or dead, that contains `address`, or NULL. Takes no
 * lock: to be called by what executes (see the epochs above). */
tps_sim_allocation *tps_sim_find(tps_sim_space *space, uint64_t address);
/* The live one nearest to `address`, below or above it, for reports; if none
 * lives, the nearest dead one; NULL when there never was any. Never an internal
 * one. */
tps_sim_allocation *tps_sim_find_nearest(tps_sim_space *space,
                                         uint64_t address);
/* The same from any thread at any time; takes the lock. */
tps_sim_allocation *tps_sim_lookup(tps_sim_space *space, uint64_t address);
/* The live allocation that begins at `address`, or NULL. */
tps_sim_allocation *tps_sim_find_base(tps_sim_space *space, uint64_t address);

#endif
