/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The engine of the simulated device: checked PTX → decoded code → blocks that
 * run. The device (sim/device.c and its queues) decides which block runs on which
 * thread and when; the engine runs one block for a while.
 *
 * Use: tps_sim_code_new once for a module on a device; tps_sim_code_kernel;
 * tps_sim_launch_new for each launch; tps_sim_block_new for each block when its
 * turn comes; tps_sim_block_run again and again until it says DONE or FAULT.
 *
 * Threads: a code and a launch may be used by many threads at once; a block by
 * one at a time (it may move between threads).
 */
#ifndef TPS_SIM_ENGINE_H
#define TPS_SIM_ENGINE_H

#include "device/device.h"
#include "ptx/ptx.h"
#include "sim/memory.h"

typedef struct tps_sim_code tps_sim_code;
typedef struct tps_sim_kernel tps_sim_kernel; /* a kernel of a code */
typedef struct tps_sim_launch tps_sim_launch;
typedef struct tps_sim_block tps_sim_block;

/* Checks that every kernel can be decoded and places and initialises the
 * module's variables in `space`. Takes over `module` (freed with the code, also on failure). An
 * instruction that the engine lacks: NOT_SUPPORTED, "instruction 'wgmma.…' is
 * not supported by the simulated device (file.cu:12)". capability: 80, 90; a
 * module for a higher target is NO_BINARY_FOR_GPU. `unlinked`: what is missing in
 * the module may be in another one; the code can be looked at, but not run. */
int tps_sim_code_new(tps_ptx_module *module, tps_sim_space *space,
                     int capability, bool unlinked, tps_sim_code **out,
                     tps_error *err);
/* Frees the code and its variables. Only when nothing runs it. */
void tps_sim_code_destroy(tps_sim_code *code);

/* The kernel of that (symbol) name, decoded when first asked for; NOT_FOUND. */
int tps_sim_code_kernel(tps_sim_code *code, const char *name,
                        const tps_sim_kernel **out, tps_error *err);
/* The variable's allocation, or NULL. */
tps_sim_allocation *tps_sim_code_global(const tps_sim_code *code,
                                        const char *name);

typedef struct tps_sim_kernel_info {
  const char *name;
  uint32_t param_bytes;
  int registers;
  int64_t static_shared, local_bytes, const_bytes;
  int max_threads; /* from .maxntid, else 1024 */
} tps_sim_kernel_info;
void tps_sim_kernel_describe(const tps_sim_kernel *kernel,
                             tps_sim_kernel_info *out);

typedef struct tps_sim_launch_config {
  const tps_sim_kernel *kernel;
  tps_launch shape;     /* params are copied */
  tps_op *op;           /* for reports; referenced by the launch */
  uint64_t seed;        /* 0: deterministic order */
  uint64_t budget;      /* instructions a block may spend, 0: no limit */
  uint64_t stack_bytes; /* local memory a thread may use (default 0 → 512 KiB
                            of address range, host memory grown as used) */
  int multiprocessors;  /* for %nsmid, %smid */
  /* Takes what the kernel prints (whole vprintf results); any thread. */
  void (*print)(void *context, const char *text, size_t size);
  void *print_context;
} tps_sim_launch_config;

int tps_sim_launch_new(tps_sim_space *space,
                       const tps_sim_launch_config *config,
                       tps_sim_launch **out, tps_error *err);
/* Once no block will run on: tells the watches (device/watch.h) what there is to
 * tell of a launch that was watched. `graph`: the launch that it is part of. */
void tps_sim_launch_tell(tps_sim_launch *launch, tps_op *graph);
/* After the last block is destroyed. */
void tps_sim_launch_destroy(tps_sim_launch *launch);
/* Blocks of the grid; with clusters the number of those, which count as one
 * block each for all of the following. */
uint64_t tps_sim_launch_blocks(const tps_sim_launch *launch);
/* Fills in the cluster that the kernel itself demands where none is given. */
void tps_sim_kernel_cluster(const tps_sim_kernel *kernel, uint32_t extent[3]);

/* The first fault of the launch, filled once a block has said FAULT: code,
 * message with kernel, block, thread, address and source line, kernel, where.
 * After a fault the other blocks end with FAULT soon too. */
void tps_sim_launch_fault(const tps_sim_launch *launch, tps_error *err);
/* Makes every block of the launch end with FAULT at its next turn: with `code`
 * and `message` if it has no fault of its own. */
void tps_sim_launch_cancel(tps_sim_launch *launch, int code,
                           const char *message);

/* Block number `index` (x fastest) of the grid. NULL when out of memory. */
tps_sim_block *tps_sim_block_new(tps_sim_launch *launch, uint64_t index);
/* As destroying `ended` and making another, but its memory, which this thread's
 * caches hold, serves the other at once. */
tps_sim_block *tps_sim_block_again(tps_sim_block *ended, uint64_t index);
void tps_sim_block_destroy(tps_sim_block *block);

typedef enum tps_sim_outcome {
  TPS_SIM_DONE,
  TPS_SIM_YIELD, /* its warps spin or sleep: let other blocks run, then again */
  TPS_SIM_SLICE, /* spent its slice of instructions while making progress */
  TPS_SIM_FAULT
} tps_sim_outcome;

/* Runs about `slice` warp instructions at the most. */
tps_sim_outcome tps_sim_block_run(tps_sim_block *block, uint64_t slice);

/* Where a block that is set aside goes on, for a report: "block (0,0,0), thread
 * (32,0,0), program.cu:7". */
void tps_sim_block_place(tps_sim_block *block, char *text, size_t size);
/* The launch of a block that is set aside is given up: what threads of it (or its
 * cluster) wait for meanwhile, and where the others are, as "; warp 0 waits at barrier
 * 0 (program.cu:5), …", and as a finding where one is wanted; false: none waits. */
bool tps_sim_block_give_up(tps_sim_block *block, char *text, size_t size);

#endif
