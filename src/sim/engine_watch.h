/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Launches that are watched (device/watch.h). A kernel has a second decoded form
 * for them, in which every instruction that touches memory, or orders it, first
 * calls the parts that watch: each a file of its own with one watch_part. Nothing
 * of this is in the code that unwatched launches run.
 *
 * An access reaches the parts after it has been found good, split by place and
 * by allocation; what will be a fault is left to the instruction itself. Parts
 * are called before the instruction takes effect, so the memory still holds what
 * it held.
 */
#ifndef TPS_SIM_ENGINE_WATCH_H
#define TPS_SIM_ENGINE_WATCH_H

#include "device/watch.h"
#include "sim/engine_core.h"

typedef enum watch_kind {
  WATCH_NOTHING,
  WATCH_LOAD,
  WATCH_STORE,
  WATCH_UPDATE /* both at once: atomics, mbarriers */
} watch_kind;

/* How an access is ordered. */
enum {
  WATCH_STRONG = 1, /* atomic, volatile, relaxed: no two of them race */
  WATCH_ACQUIRES = 2,
  WATCH_RELEASES = 4,
  WATCH_ASYNC = 8 /* may take effect later, but before it is waited for */
};

typedef enum watch_place {
  WATCH_GLOBAL, /* offsets in `memory` */
  WATCH_SHARED, /* in the shared memory of the block `owner` */
  WATCH_LOCAL   /* in each lane's own local memory */
} watch_place;

/* What one instruction does, known when the code is made. */
typedef struct watch_site {
  uint8_t kind;  /* watch_kind */
  uint8_t order; /* WATCH_STRONG and so on */
  uint8_t bytes; /* of each lane, 0 where lanes differ */
  bool narrow;   /* its addresses are a row of 32 bits … */
  bool whole;    /* … and imm is no offset to be added */
  bool joins;    /* see engine_joins.h */
  bool part;     /* of an atomic byte, or two: the word that holds them */
} watch_site;

/* What one instruction is about to do to one allocation. */
typedef struct touch {
  engine *e;
  const insn *i;
  uint8_t kind, order;
  uint8_t place; /* watch_place */
  bool run;      /* all 32 lanes, their bytes one behind the other */
  bool texel;    /* of a texture or a surface, by its own instructions; only
                    for parts that want such */
  uint8_t align;
  uint32_t lanes;              /* at least one */
  uint64_t bytes;              /* of each lane */
  tps_sim_allocation *memory;  /* of WATCH_GLOBAL, alive */
  struct tps_sim_block *owner; /* of WATCH_SHARED */
  const unsigned char *host;   /* offset 0; NULL of WATCH_LOCAL */
  const void *object; /* of WATCH_ASYNC: the mbarrier that tells its end; NULL:
                         a group does */
  _Alignas(64) uint64_t at[LANES]; /* offsets; only those of `lanes` count */
} touch;

/* What orders accesses besides the accesses themselves. */
typedef enum watch_sync {
  SYNC_WARP,    /* lanes of the warp have met */
  SYNC_ARRIVE,  /* lanes arrive at the block's barrier of a number … */
  SYNC_RELEASE, /* … which lets all go that wait; no lanes */
  SYNC_FENCE,
  SYNC_CLUSTER_ARRIVE,
  SYNC_CLUSTER_WAIT, /* perhaps in vain */
  /* Copies: what was issued becomes a group; it is waited for, but for the latest
   * `number` groups, or, if that is UINT32_MAX, all of it. Bulk copies have groups
   * of their own, which may be waited for until they have been read only. */
  SYNC_COPIES_GROUP,
  SYNC_COPIES_WAIT,
  SYNC_BULK_GROUP,
  SYNC_BULK_WAIT,
  SYNC_BULK_WAIT_READ
} watch_sync;

/* Somebody who watches. `launch` and `block` are what the functions returned that
 * begin them. Functions that have nothing to do may be NULL, but for launch_new and
 * _free. */
typedef struct watch_part {
  unsigned wants; /* which of TPS_WATCH_* calls for it */
  bool alone;     /* turns of the launch's blocks must not overlap in time */
  bool texels; /* wants what texture instructions touch, texel by texel; to the
                     others they read all of linear memory, and no arrays */
  /* NULL: no memory. */
  void *(*launch_new)(struct tps_sim_launch *launch);
  /* All blocks have ended or will never run on: tells what there is to tell. The
   * device's lock may be held. */
  void (*launch_end)(void *launch, tps_op *op, tps_op *graph);
  void (*launch_free)(void *launch);
  /* A block's memory is used for one block after another; each begins. */
  void *(*block_new)(void *launch, struct tps_sim_block *block);
  void (*block_begin)(void *launch, void *block);
  void (*block_free)(void *launch, void *block);
  void (*touch)(void *launch, void *block, const touch *t);
  /* `e->warp` is that of the lanes; `number` of a barrier. */
  void (*sync)(void *launch, void *block, engine *e, watch_sync what,
               uint32_t lanes, unsigned number);
  /* A phase of an mbarrier of the block's cluster has ended. */
  void (*phase)(void *launch, void *block, const void *object);
} watch_part;

extern const watch_part tps_sim_footprint; /* engine_footprint.c */
extern const watch_part tps_sim_synccheck; /* engine_synccheck.c */
extern const watch_part tps_sim_race;      /* engine_race.c */
extern const watch_part tps_sim_initcheck; /* engine_initcheck.c */

enum { WATCH_PARTS = 4 };

struct tps_sim_watch {
  const watch_part *parts[WATCH_PARTS];
  void *states[WATCH_PARTS];
  uint32_t count;
  bool alone;
  bool touches, texels; /* a part wants to know of accesses, of texels */
  pthread_mutex_t turn; /* held during each turn if `alone` */
};

struct block_watch {
  tps_sim_allocation **memory; /* last hit by an instruction, by slot */
  void *states[WATCH_PARTS];
  struct sync_state *sync; /* of engine_synccheck.c, if it watches */
  struct init_state *init; /* of engine_initcheck.c, likewise */
};

/* --- engine_watch.c ------------------------------------------------------ */

/* A launch: gives it what is wanted at the moment, perhaps nothing; 0 or
 * NO_HOST_MEMORY. */
int tps_sim_watch_launch(struct tps_sim_launch *launch, tps_error *err);
void tps_sim_watch_launch_free(struct tps_sim_launch *launch);
/* A launch_new, to be freed by free: what has been told of, an atomic_uchar for each
 * instruction. */
void *tps_sim_watch_told_new(struct tps_sim_launch *launch);
/* Around what must not overlap in time, where a part is to be alone. */
void tps_sim_watch_take_turn(struct tps_sim_watch *watch);
void tps_sim_watch_end_turn(struct tps_sim_watch *watch);
/* The same for a block of a launch that is watched; false: no memory. */
bool tps_sim_watch_block(struct tps_sim_block *block);
void tps_sim_watch_block_begin(struct tps_sim_block *block);
void tps_sim_watch_block_free(struct tps_sim_block *block);

/* An instruction of the watched code is about to be executed. */
void tps_sim_watch_insn(engine *e, const insn *i, uint32_t lanes);
/* The same for one lane's access to `bytes` at an address of a space. */
void tps_sim_watch_one(engine *e, const insn *i, unsigned lane, uint8_t space,
                       uint64_t address, uint64_t bytes, watch_kind kind,
                       unsigned order);
/* The same for many lanes, their addresses in `at`, which are used up. */
void tps_sim_watch_lanes(touch *t, uint8_t space);
/* The state of a part in a block, of which `mine` is its state in the launch. */
void *tps_sim_watch_state(const struct tps_sim_block *block, const void *mine);

/* --- engine_watch_code.c ------------------------------------------------- */

/* Makes a kernel's code the watched one; false: no memory. */
bool tps_sim_watch_code(struct tps_sim_kernel *kernel);

/* --- engine_watch_swap.c ------------------------------------------------- */

/* Looks at what goes with the compare-and-swaps of a kernel's sites. */
void tps_sim_watch_swaps(struct tps_sim_kernel *kernel);

#endif
