/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What blocks of one cluster share, mbarriers, and copies that complete later.
 *
 * The blocks of a cluster are one unit of work: they live and end together, and
 * one host thread at a time runs them in turns. So their shared memory needs no
 * atomic instructions, whichever of them touches it. A block outside any
 * cluster is a cluster of one.
 *
 * An address of the .shared::cluster window has a block's rank plus one above
 * bit 24 (0: the block's own), the offset in its shared memory below.
 *
 * In the deterministic order an asynchronous copy takes place when it is
 * issued. With a seed it takes place as late as it may: when its thread waits
 * for its group, or when nothing else of the cluster can run; so a program that
 * forgets to wait sees what was there before.
 *
 * Part of engine_core.h, which includes it.
 */
#ifndef TPS_SIM_ENGINE_CLUSTER_H
#define TPS_SIM_ENGINE_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_MOST 16u
#define RANK_SHIFT 24
#define RANK_MASK UINT64_C(0xff000000)

typedef struct cluster {
  uint32_t count; /* blocks */
  uint32_t turn;
  uint32_t arrived; /* live threads that have arrived in this phase */
  bool phase;       /* of the cluster's barrier */
  uint64_t phases;  /* of mbarriers that have ended */
  struct tps_sim_block *blocks[CLUSTER_MOST]; /* by rank */
} cluster;

/* A copy, or an arrival, that has been issued and not completed. */
typedef struct async_op {
  const struct insn *i;
  unsigned char *to;
  const unsigned char *from; /* NULL: what is in `data` */
  uint64_t *mbarrier;        /* whom it tells, or NULL */
  uint32_t bytes;
  uint32_t given;     /* of a small copy's `from`; zeros follow */
  uint32_t group;     /* of the thread: 0 the first one it commits */
  uint32_t reduction; /* 0: a plain copy, else 1 + as in engine_atomic.h */
  uint8_t lane;
  uint8_t kind; /* async_kind */
  unsigned char data[16];
} async_op;

typedef enum async_kind {
  ASYNC_COPY,   /* cp.async */
  ASYNC_ARRIVE, /* cp.async.mbarrier.arrive */
  ASYNC_BULK    /* cp.async.bulk, cp.reduce.async.bulk */
} async_kind;

/* Of a wait for groups of copies: bulk copies; until their sources have been read,
 * which means the same to those who copy. */
enum { WAIT_BULK = 1, WAIT_READ = 2 };

/* Of a warp, in the order of issue. */
typedef struct async_queue {
  async_op *ops;
  uint32_t count, capacity;
  uint32_t groups[32], bulk_groups[32]; /* committed by each lane */
} async_queue;

struct engine;
struct group;
struct insn;
struct warp;

/* --- engine_cluster.c ---------------------------------------------------- */

/* The shared memory of a rank's block; NULL with `*why` where there is none. */
const struct region *tps_sim_peer(const struct engine *e, uint64_t rank,
                                  const char **why);
/* Whether `p` is shared memory of the cluster. */
bool tps_sim_is_shared(const struct engine *e, const unsigned char *p);
/* Lets groups of the whole cluster that wait for that go on. */
void tps_sim_cluster_wake(cluster *c, uint8_t barrier);
/* Lanes of the running warp are gone. */
void tps_sim_cluster_exit(struct engine *e, uint32_t lanes);

/* --- engine_mbarrier.c --------------------------------------------------- */

/* `bytes` of the phase's transactions are complete. */
void tps_sim_mbarrier_complete(struct engine *e, const struct insn *i,
                               unsigned lane, uint64_t *object, uint64_t bytes);
void tps_sim_mbarrier_arrive(struct engine *e, const struct insn *i,
                             unsigned lane, uint64_t *object);
/* One more arrival is to come. */
void tps_sim_mbarrier_expect_one(struct engine *e, const struct insn *i,
                                 unsigned lane, uint64_t *object);
/* The object at an address of a space, or a fault. */
uint64_t *tps_sim_mbarrier_at(struct engine *e, const struct insn *i,
                              unsigned lane, uint8_t space, uint64_t address);
/* Whether the phase that a wait's lane asks for has ended, by the object's bits. */
bool tps_sim_mbarrier_has_ended(struct engine *e, const struct insn *i,
                                unsigned lane, uint64_t object);
/* What a waiting group waits for, in words. */
int tps_sim_mbarrier_describe(struct engine *e, const struct warp *w,
                              const struct group *g, char *text, size_t size);

/* --- engine_async.c ------------------------------------------------------ */

/* Completes what the cluster has issued, until a phase of an mbarrier ends or
 * nothing is left. False when there was nothing. */
bool tps_sim_async_settle(struct engine *e);
/* Completes what the block has issued: it ends. */
void tps_sim_async_finish(struct engine *e);
void tps_sim_async_begin(struct warp *w);
void tps_sim_async_free(struct warp *w);

#endif
