/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch (TPS_WATCH_RACE): two threads touch the same bytes, one
 * of them writes, and nothing orders the two.
 *
 * One number for the whole launch, `now`, grows by one at everything that orders
 * accesses. Each access leaves its thread and `now` in the shadow of the bytes it
 * touched, and what a thread knows is kept as such numbers too: all that its
 * block had done before `all`, all that anybody had done before `acquired`, and
 * so on. So whether an earlier access is ordered before this one is a comparison.
 *
 * - A barrier of the whole block raises the block's `all`; one for some of its
 *   threads raises, for each of them, what it knows of the warps that arrived.
 * - Lanes that meet (bar.warp.sync, shuffles, votes, matrix instructions) know
 *   of one another.
 * - A release (a fence and then a strong store; a store or an atomic that says
 *   release; an arrival at an mbarrier) leaves a number at the place; who reads
 *   the place by a strong access acquires it. That counts for what anybody has
 *   done before, not the releasing thread alone: right programs are never
 *   accused, but between blocks and threads that use fences some races go
 *   unseen.
 * - What an asynchronous copy reads and writes is known to nobody until its end has
 *   been waited for: by its own thread for a group, after which it is that thread's
 *   access; or by any for a phase of an mbarrier, who acquires it.
 *
 * The turns of such a launch's blocks don't overlap in time.
 */
#ifndef TPS_SIM_ENGINE_RACE_H
#define TPS_SIM_ENGINE_RACE_H

#include "sim/engine_watch.h"

/* --- shadows ------------------------------------------------------------- */

/* The latest access of a kind to a cell. */
typedef struct mark {
  uint32_t now;  /* 0: none */
  uint32_t warp; /* of the launch, blocks one after the other */
  uint32_t who;  /* instruction and lane, as below */
} mark;

enum {
  MARK_LANE = 31,
  MARK_UPDATE = 32,  /* of a strong write: an atomic operation */
  MARK_SEVERAL = 64, /* of a read: other lanes of the warp as well */
  MARK_FLYING =
      128, /* a copy that may not have taken place yet: nobody knows */
  MARK_TOLD =
      256,      /* one that has, as an mbarrier tells: known to those who have
                        acquired it, not to its thread as such */
  MARK_INSN = 9 /* bits below the instruction's number */
};

static inline uint32_t mark_lane(const mark *m) { return m->who & MARK_LANE; }

/* Marks of many cells, each field by itself, so that a warp's are compared at
 * once. One piece of memory, that of `now`; NULL while there are none. */
typedef struct marks {
  uint32_t *now, *warp, *who;
} marks;

static inline mark mark_at(const marks *m, unsigned k) {
  return (mark){m->now[k], m->warp[k], m->who[k]};
}
static inline void mark_put(const marks *m, unsigned k, mark v) {
  m->now[k] = v.now, m->warp[k] = v.warp, m->who[k] = v.who;
}

/* What releases have left at a cell: the latest number and whose it is, and the
 * latest of others. */
typedef struct release {
  uint32_t now, thread, others;
} release;

/* Of a cell that strong accesses have touched. No two of them race, so they are
 * kept apart from the plain ones, lest they hide them. */
typedef struct strong_marks {
  mark write, read;
  release release;
} strong_marks;

#define RACE_CHUNK 4096u

/* Shadow of some bytes: a cell for each four, or, once an access was smaller, for
 * each. The lists are made when they are needed. */
typedef struct race_chunk {
  unsigned shift;         /* of an offset to a cell */
  marks writes, reads[2]; /* two reads that don't know of each other; the
 second list is made late */
  strong_marks *strong;
} race_chunk;

/* Shadow of one allocation, or of a block's shared memory. */
typedef struct race_memory {
  struct race_memory *next;
  uint64_t base, size;
  race_chunk *chunks[];
} race_memory;

/* --- a launch ------------------------------------------------------------ */

/* Accesses of two instructions that race: how often, and the first case. */
typedef struct hazard {
  struct hazard *next;
  uint32_t insns[2];
  uint8_t kinds[2]; /* watch_kind */
  uint8_t place;
  uint64_t count, key;
  uint64_t blocks[2];
  uint32_t threads[2];
  bool several;    /* the first access: by other lanes of the warp as well */
  char where[900]; /* the bytes, in words */
} hazard;

/* The most that shadows of a launch may take, in bytes; a test sets it. */
extern uint64_t tps_sim_race_most;

#define RACE_BUCKETS 64u

typedef struct race {
  struct tps_sim_launch *launch;
  uint32_t first, now; /* before anything; by now */
  uint64_t left;       /* bytes that shadows may still take */
  bool unseen;         /* accesses that there was no shadow for */
  bool copies;         /* there have been asynchronous copies */
  bool untold;         /* pairs of instructions beyond what is told apart */
  race_memory *memory[RACE_BUCKETS];
  hazard *hazards, **last;
  uint32_t hazard_count;
} race;

/* --- a block ------------------------------------------------------------- */

/* What a copy reads or writes that nobody has waited for. Its thread is of the
 * warp that has the list. */
typedef struct flight {
  race_memory *memory;
  uint64_t at;
  uint32_t bytes;
  uint32_t now, group; /* of its marks; of the lane */
  uint32_t number;     /* of the warp's, from the first one on */
  const void
      *object; /* the mbarrier that tells the end of a bulk copy, or NULL */
  uint8_t lane;
  bool bulk;
  bool reads; /* it is the source */
  bool over;  /* the mbarrier's phase has ended */
} flight;

/* An mbarrier tells the end of all small copies of some lanes before a number. */
typedef struct promise {
  const void *object;
  uint32_t lanes, number;
  bool over; /* its phase has ended */
} promise;

typedef struct flights {
  flight *list;
  uint32_t count, capacity, number; /* number: of the next one */
  promise *promises;
  uint32_t promise_count, promise_capacity;
  uint32_t bulk_told;                         /* bulk copies with an mbarrier */
  uint32_t groups[LANES], bulk_groups[LANES]; /* begun by each lane */
  uint32_t
      landed[LANES]; /* what knows of each lane's small copies that an mbarrier
                             has told of */
} flights;

/* What those who have arrived at a barrier know. */
typedef struct arrivals {
  uint32_t acquired, released;
  uint32_t warps[32];
} arrivals;

/* Numbers of threads are warp × 32 + lane. */
typedef struct race_block {
  race *launch;
  struct tps_sim_block *block;
  uint32_t birth; /* marks before it are not this block's, in shared memory */
  uint32_t first_warp;
  uint32_t all; /* everybody knows what the block did before */
  uint32_t all_acquired, all_released;
  bool own_acquired, own_released; /* some thread more than that */
  uint32_t cluster[2]; /* latest arrival at the cluster's barrier in each of two
                          phases, if the block has rank 0 */
  uint32_t together[32];    /* of each warp: all lanes know of each other … */
  uint32_t (*lanes)[LANES]; /* … and each of some; NULL: nothing more */
  uint32_t (*warps)[32];    /* what each knows of each warp, or NULL */
  arrivals arrivals[BARRIERS];
  flights *flights; /* by warp, NULL: none yet */
  race_memory *shared;
  race_memory **last;            /* by slot */
  uint32_t *acquired, *released; /* each's own */
} race_block;

/* --- engine_race_shadow.c ------------------------------------------------ */

/* A launch begins to count, and has counted. */
void tps_sim_race_number(race *r);
void tps_sim_race_numbered(const race *r);
race_memory *tps_sim_race_memory_new(race *r, uint64_t base, uint64_t size);
void tps_sim_race_memory_free(const race *r, race_memory *m);
/* The shadow of an allocation; NULL: there is no memory for it. */
race_memory *tps_sim_race_memory(race *r, const tps_sim_allocation *a);
/* The chunk at an offset, with lists for what a kind of access needs, `fine`
 * with a cell a byte. NULL: there is no memory for it. */
race_chunk *tps_sim_race_chunk(race *r, race_memory *m, uint64_t offset,
                               const touch *t, bool fine);

/* Gives a chunk its second list of reads; false: no memory. */
bool tps_sim_race_second(race *r, race_chunk *c);

/* --- engine_race_sync.c -------------------------------------------------- */

/* Whether thread `self` knows that an access has been. */
bool tps_sim_race_knows(const race_block *b, uint32_t self, const mark *m);
void tps_sim_race_begin(race_block *b);
void tps_sim_race_sync(race_block *b, engine *e, watch_sync what,
                       uint32_t lanes, unsigned number);
/* Another block's part of the launch, one of the cluster. */
race_block *tps_sim_race_of(const race_block *b,
                            const struct tps_sim_block *block);
/* A strong access of a thread to the cell of `at`, the part that acquires and
 * the part that releases. */
void tps_sim_race_acquire(race_block *b, uint32_t self, const release *at);
void tps_sim_race_release(race_block *b, uint32_t self, release *at);
/* Leaves a number there that is nobody's own. */
void tps_sim_race_leave(release *at, uint32_t now);
static inline uint32_t tps_sim_race_step(race *r) {
  return r->now < UINT32_MAX ? ++r->now : r->now;
}

/* --- engine_race_copy.c -------------------------------------------------- */

/* A lane of the running warp has issued a copy; false: not kept, it counts as
 * done. */
bool tps_sim_race_issue(race_block *b, const touch *t, race_memory *m);
/* Its lanes' copies are waited for, as `what` has it, but for the latest `kept`
 * groups; UINT32_MAX: all of them, those in no group as well. */
void tps_sim_race_land(race_block *b, const warp *w, uint32_t lanes,
                       watch_sync what, uint32_t kept);
void tps_sim_race_group(race_block *b, const warp *w, uint32_t lanes,
                        bool bulk);
/* An mbarrier will tell the end of the lanes' copies by cp.async. */
void tps_sim_race_promise(race_block *b, const warp *w, uint32_t lanes,
                          const void *object);
/* A phase of the mbarrier has ended. */
void tps_sim_race_phase(race_block *b, const void *object);
/* Somebody has waited for it: who acquires the number returned knows of the copies;
 * 0: there were none. */
uint32_t tps_sim_race_told(race_block *b, const void *object);
void tps_sim_race_copies_begin(race_block *b);
void tps_sim_race_copies_free(race_block *b);

/* --- engine_race_cell.c -------------------------------------------------- */

/* An access of a lane, or of several that touch the same. */
typedef struct visit {
  race *r;
  race_block *b;
  const touch *t;
  mark mark; /* what it will leave */
  bool strong;
  uint32_t self;  /* thread in the block */
  uint32_t least; /* marks before it are of others */
  uint32_t told;  /* to be left at an mbarrier's place, or 0 */
  uint64_t at;    /* the first byte of the cell … */
  unsigned bytes; /* … and how many it stands for */
} visit;

/* Compares with what the cell has seen, tells, leaves a mark. */
void tps_sim_race_visit(const visit *v, race_chunk *c, unsigned k);
/* The place's numbers: before the access acquires, and it releases. */
void tps_sim_race_order(const visit *v, race_chunk *c, unsigned k);

/* --- engine_race_lanes.c ------------------------------------------------- */

/* Cells of one chunk, side by side, each lane's 1 << `per` of them, and what all
 * lanes of the warp know. */
typedef struct cells {
  race_chunk *chunk;
  unsigned k, count;  /* the first cell, how many */
  unsigned lane, per; /* the first lane */
  mark mark;          /* what is left, but for the lane */
  uint32_t least, acquired, all, first, warps, together;
  bool copies; /* marks of asynchronous copies may be there */
} cells;

/* Reads or writes them plainly, if nothing stands against it that is not plainly
 * known; false: each is to be looked at. The processor's own. */
typedef bool race_at_once(const cells *n, bool read);
extern race_at_once *tps_sim_race_at_once;

/* --- engine_race_run.c --------------------------------------------------- */

/* All lanes of a touch; `v` has what is common to them. */
void tps_sim_race_run(visit *v, race_memory *m);

/* --- engine_race_tell.c -------------------------------------------------- */

/* Access `m` and that of lane `lane` race for `at` bytes from the touch's
 * beginning of memory. */
void tps_sim_race_note(race *r, const mark *m, watch_kind kind, const touch *t,
                       unsigned lane, uint64_t at);
void tps_sim_race_tell(race *r, tps_op *op);

#endif
