/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The engine's own structures, in the order in which they are met: decoded
 * instructions and the rows they work on; a kernel, which holds the code of
 * itself and of every function it can reach; a launch; a block with its warps,
 * their groups of lanes, and their frames.
 *
 * A row is one value for each of a warp's 32 lanes. Values of up to 32 bits
 * have rows of 32-bit elements, 64-bit values rows of 64-bit elements; a value
 * of 8 or 16 bits is kept extended with zeros. Predicates are masks of one bit
 * a lane. An operand is an offset of a row; its low three bits tell from which
 * base, so that immediates, parameters and special registers are rows like any
 * other.
 */
#ifndef TPS_SIM_ENGINE_CORE_H
#define TPS_SIM_ENGINE_CORE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sim/engine.h"

#define LANES 32u
#define FULL 0xffffffffu
#define ROW32 (LANES * 4u)
#define ROW64 (LANES * 8u)

/* Bases of operands. */
enum { IN_FRAME, IN_CONSTANTS, IN_LAUNCH, IN_BLOCK, IN_WARP, BASE_COUNT };

/* clang-format off */
/* Rows at IN_LAUNCH before the parameters: %ntid, %nctaid and their kin. */
enum {
  ROW_NTID_X, ROW_NTID_Y, ROW_NTID_Z,
  ROW_NCTAID_X, ROW_NCTAID_Y, ROW_NCTAID_Z,
  ROW_NWARPID, ROW_NSMID, ROW_DYNAMIC_SHARED, ROW_TOTAL_SHARED,
  ROW_ENVREG1, ROW_ENVREG2,
  ROW_NCLUSTER_X, ROW_NCLUSTER_Y, ROW_NCLUSTER_Z,
  ROW_CLUSTER_SIZE_X, ROW_CLUSTER_SIZE_Y, ROW_CLUSTER_SIZE_Z,
  ROW_CLUSTER_RANKS, ROW_EXPLICIT_CLUSTER,
  ROW_RESERVED_SHARED, ROW_RESERVED_END,
  LAUNCH_ROWS
};
/* Rows at IN_BLOCK. */
enum {
  ROW_CTAID_X, ROW_CTAID_Y, ROW_CTAID_Z, ROW_SMID,
  ROW_CLUSTERID_X, ROW_CLUSTERID_Y, ROW_CLUSTERID_Z,
  ROW_CLUSTER_CTAID_X, ROW_CLUSTER_CTAID_Y, ROW_CLUSTER_CTAID_Z,
  ROW_CLUSTER_RANK,
  BLOCK_ROWS
};
/* clang-format on */
/* Bytes of shared memory that are the system's, in each block: cooperative groups
 * of several warps meet there. */
#define RESERVED_SHARED 1024u
/* Rows at IN_WARP. */
enum { ROW_TID_X, ROW_TID_Y, ROW_TID_Z, ROW_WARPID, WARP_ROWS };

#include "sim/engine_cluster.h"

typedef struct engine engine;
typedef struct insn insn;
typedef struct frame frame;
typedef struct function function;

/* Executes an instruction for the lanes of `mask` and returns the next one, or
 * NULL when the group must go back to the scheduler (its pc is then set). */
typedef const insn *handler(engine *e, const insn *i, uint32_t mask);

struct insn {
  handler *fn;
  handler *inner;      /* what a guarded instruction does */
  uint32_t d, a, b, c; /* operands */
  union {
    int64_t imm; /* flags, or the offset of an address */
    const insn *target;
    const void *side; /* call site, branch table */
  };
  uint32_t e, f;  /* more operands */
  uint32_t guard; /* operand of the guard */
  uint32_t slot;  /* of the allocation last hit */
  uint16_t op;    /* number of the handler */
  uint8_t space;  /* tps_ptx_space, of memory instructions */
  uint8_t count;  /* elements of a vector, parts of a pack */
  int32_t ptx;    /* instruction in the function */
};

/* Memory that an access may touch without asking further. */
typedef struct region {
  uint64_t base, size;
  unsigned char *host;
} region;

/* --- decoded code -------------------------------------------------------- */

/* A variable in .param space of a function: rows of 32-bit words. */
typedef struct param_rows {
  uint32_t offset; /* of the first row in the frame */
  uint32_t words;
} param_rows;

struct function {
  const tps_ptx_function *ptx;
  uint32_t index;    /* in the module */
  const insn *entry; /* first instruction, and one past the last */
  const insn *end;
  uint32_t frame_bytes;
  uint32_t zeroed_at, zeroed_end; /* what has to begin with zeros */
  uint32_t local_bytes;           /* of its own frame */
  uint32_t stack_bytes; /* what a call of it takes from a thread's stack */
  uint32_t carry;       /* mask of carries, in the frame */
  uint32_t return_pc;   /* row: where each lane returns to */
  uint32_t local_base;  /* row64: each lane's local memory of this frame */
  uint32_t taken;       /* row64: bytes of alloca behind it; 0 without any */
  param_rows *inputs, *returns;
};

/* A call: where arguments and results lie in the caller's frame. */
typedef struct call_site {
  const function *callee; /* NULL: indirect */
  uint32_t argument_count, result_count;
  param_rows *arguments, *results;
} call_site;

typedef struct branch_table {
  struct branch_table *next; /* of the kernel */
  uint32_t count;
  const insn *targets[];
} branch_table;

/* A kernel parameter's row, filled at each launch. */
typedef struct launch_row {
  uint32_t row;    /* offset at IN_LAUNCH */
  uint32_t offset; /* in the parameter block */
  uint8_t size;
  bool sign, wide; /* extend with the sign; to a row64 */
} launch_row;

/* A variable of shared memory, for reports. */
typedef struct shared_array {
  const char *name; /* the module's */
  uint64_t at, size;
  bool unsized; /* dynamic shared memory */
} shared_array;

struct tps_sim_kernel {
  struct tps_sim_code *code;
  const char *name;
  const tps_ptx_function *ptx;
  insn *insns;
  uint32_t insn_count;
  uint32_t slots;       /* allocations to remember */
  function **functions; /* by the module's number; NULL if not reached */
  function *main;
  branch_table *tables;
  unsigned char *constants;
  launch_row *params;
  uint32_t param_count;
  uint32_t launch_bytes; /* rows at IN_LAUNCH */
  uint32_t static_shared;
  uint32_t dynamic_at; /* where dynamic shared memory begins */
  bool reserved;       /* asks for the system's part of shared memory */
  shared_array *arrays;
  uint32_t array_count;
  uint32_t local_bytes;
  struct watch_site *sites; /* by instruction, of watched code; else NULL */
  struct joins *joins;      /* of watched code, or NULL */
};

struct tps_sim_code {
  tps_ptx_module *module;
  tps_sim_space *space;
  int capability;
  bool unlinked;
  tps_sim_allocation **globals;    /* of module variables; NULL for shared */
  tps_sim_allocation ***locals;    /* of each function's .global variables */
  pthread_mutex_t lock;            /* of the kernels */
  struct tps_sim_kernel **kernels; /* by function; NULL until asked for */
  struct tps_sim_kernel **watched; /* the same as watched code */
  handler *const *table;
};

/* --- launches ------------------------------------------------------------ */

struct tps_sim_launch {
  const struct tps_sim_kernel *kernel;
  tps_sim_space *space;
  tps_sim_launch_config config;
  unsigned char *params;
  unsigned char *rows; /* IN_LAUNCH */
  unsigned char *tids; /* IN_WARP, for each warp of a block */
  uint64_t blocks;
  uint32_t cluster[3], cluster_blocks; /* 1 without clusters */
  uint32_t threads, warps;
  uint32_t shared_bytes; /* static and dynamic */
  uint32_t shared_end;   /* with the system's part, if the kernel uses it */
  uint64_t grid_id;
  tps_sim_allocation *workspace; /* of cooperative launches */
  atomic_bool stop;
  pthread_mutex_t lock; /* of what follows */
  bool faulted;
  tps_error fault;
  /* For engine_grid.c: blocks that have ended, and those that can't go on
   * before there have been more changes of the workspace than `stuck_at`. */
  _Atomic uint64_t ended;
  uint64_t stuck, stuck_at;
  atomic_uint_fast64_t changes; /* needs no lock */
  struct tps_sim_block *pool;   /* ended blocks, to be used again */
  struct tps_sim_watch *watch;  /* who watches it, or NULL */
};

/* --- warps --------------------------------------------------------------- */

typedef enum group_state { RUNS, PARKED, WAITS } group_state;

/* Lanes that go together. */
typedef struct group {
  const insn *pc; /* next; of PARKED and WAITS the one they stand at */
  frame *frame;
  uint32_t mask;
  uint32_t depth;
  uint32_t key, member; /* PARKED: operation and member mask */
  uint32_t predicate;   /* WAITS: of bar.red */
  uint8_t state;        /* group_state */
  uint8_t barrier;      /* WAITS: which */
  uint8_t quota;        /* backward branches left before others run */
  uint8_t apart;        /* with a seed: merges with its like only */
  const insn *spin;     /* load of a workspace in a loop, or NULL … */
  uint64_t spun_at;     /* … executed after so many changes of that */
  bool tired;
} group;

/* The registers of a function at one depth of a warp. */
struct frame {
  frame *next; /* another function at the same depth */
  const function *of;
  uint64_t epoch; /* of the block that used it last */
  unsigned char *rows;
};

typedef struct warp {
  uint32_t index;
  uint32_t live;    /* lanes not exited */
  uint32_t members; /* lanes that exist */
  uint32_t group_count;
  frame main;
  frame **frames; /* by depth, from 1 on */
  uint32_t depth_count;
  uint32_t *local;     /* words of local memory, interleaved by lane */
  uint64_t local_size; /* bytes a lane */
  /* Lanes that have arrived at the cluster's barrier and not waited, and the
   * phase in which they did. */
  uint32_t cluster_arrived, cluster_phase;
  async_queue *async; /* NULL before the first */
  group groups[LANES];
} warp;

typedef struct barrier {
  uint32_t arrived;      /* threads */
  uint32_t expected;     /* 0: all of the block */
  uint32_t warps;        /* warps of which a lane has arrived */
  uint32_t count, trues; /* of bar.red */
  uint32_t lanes[32];    /* by warp: those that have arrived, if expected */
} barrier;

#define BARRIERS 16
/* What a group in the state WAITS may stand at besides. */
#define WAIT_CLUSTER BARRIERS
#define WAIT_MBARRIER (BARRIERS + 1)

/* A store of a warp that has not taken effect yet (engine_delay.c). */
typedef struct delayed {
  uint32_t lanes; /* 0: none */
  uint8_t size, count;
  uint64_t low, high; /* addresses */
  unsigned char *host[LANES];
  uint64_t value[4][LANES];
} delayed;

struct engine {
  unsigned char *base[8]; /* less the base's number */
  uint32_t mask;          /* of the running group */
  bool multi;             /* the warp has several groups */
  int64_t left;           /* instructions left of this turn */
  group *group;
  warp *warp;
  region shared;
  region *slots;
  struct tps_sim_block *block;
  const struct tps_sim_launch *launch;
};

struct tps_sim_block {
  engine e;
  struct tps_sim_launch *launch;
  struct tps_sim_block *next; /* in the pool */
  cluster *cluster;           /* that of the block of rank 0 */
  cluster own;
  uint32_t rank;
  uint64_t index, epoch;
  uint32_t ctaid[3];
  uint32_t live;     /* threads not exited */
  uint32_t runnable; /* warps with something to run */
  uint32_t turn;     /* warp that begins */
  uint32_t used;     /* mask of barriers with arrivals */
  uint64_t spent;    /* instructions */
  uint64_t stuck_at; /* of the launch when the block was counted, + 1 */
  /* With a seed: the state of the dice (0 without one), groups and turns
   * chosen so far, stores held back, by warp; whether others should run now. */
  uint64_t random;
  uint32_t choices;
  bool hurry;
  delayed *delayed;
  struct block_watch *watch; /* if the launch is watched */
  barrier barriers[BARRIERS];
  unsigned char *rows; /* IN_BLOCK */
  jmp_buf fault;
  warp warps[];
};

/* A turn of one warp. */
typedef enum turn { TURN_ENDED, TURN_BLOCKED, TURN_SPENT, TURN_TIRED } turn;

static inline void *row(engine *e, uint32_t operand) {
  return e->base[operand & 7] + operand;
}
static inline uint32_t *row32(engine *e, uint32_t operand) {
  return __builtin_assume_aligned(row(e, operand), 64);
}
static inline uint64_t *row64(engine *e, uint32_t operand) {
  return __builtin_assume_aligned(row(e, operand), 64);
}
static inline uint32_t *mask_of(engine *e, uint32_t operand) {
  return row(e, operand);
}
static inline void set_mask(engine *e, uint32_t operand, uint32_t value,
                            uint32_t lanes) {
  uint32_t *p = mask_of(e, operand);
  *p = (*p & ~lanes) | (value & lanes);
}
static inline void *frame_row(const frame *f, uint32_t operand) {
  return f->rows + operand;
}
/* What a lane has taken of its stack by alloca. */
static inline uint64_t tps_sim_taken(const frame *f, unsigned lane) {
  const uint64_t *taken = frame_row(f, f->of->taken);
  return f->of->taken ? taken[lane] : 0;
}
/* An operand of a group that is not the running one. */
static inline void *row_of(engine *e, const frame *f, uint32_t operand) {
  return (operand & 7) == IN_FRAME ? f->rows + operand : row(e, operand);
}

/* An element of 1, 2, 4 or 8 bytes of memory that others may use as well. */
static inline uint64_t load_atomic(const void *p, unsigned size, int order) {
  switch (size) {
  case 1: return __atomic_load_n((const uint8_t *)p, order);
  case 2: return __atomic_load_n((const uint16_t *)p, order);
  case 4: return __atomic_load_n((const uint32_t *)p, order);
  default: return __atomic_load_n((const uint64_t *)p, order);
  }
}
static inline void store_atomic(void *p, unsigned size, uint64_t v, int order) {
  switch (size) {
  case 1: __atomic_store_n((uint8_t *)p, (uint8_t)v, order); break;
  case 2: __atomic_store_n((uint16_t *)p, (uint16_t)v, order); break;
  case 4: __atomic_store_n((uint32_t *)p, (uint32_t)v, order); break;
  default: __atomic_store_n((uint64_t *)p, v, order); break;
  }
}

/* Numbers of the handlers, and their table for this processor. */
#include "sim/engine_ops.h"
handler *const *tps_sim_handlers(void);

/* --- engine_fault.c ------------------------------------------------------ */

/* What a fault is told as before it ends the launch, where that is wanted. */
typedef enum fault_told {
  FAULT_UNTOLD,  /* nothing, or it has been told */
  FAULT_PLAIN,   /* one of memory, if it has such a code */
  FAULT_MEMORY,  /* by its title */
  FAULT_BARRIER, /* the same, and there may be many lines, parted by "; " */
} fault_told;

/* Ends the block: the launch keeps the first fault. `lane` -1: no thread. */
_Noreturn void tps_sim_fault_as(engine *e, const insn *i, int lane, int code,
                                fault_told as, const char *title,
                                const char *format, ...)
    __attribute__((format(printf, 7, 8)));
#define tps_sim_fault(e, i, lane, code, ...)                                   \
  tps_sim_fault_as(e, i, lane, code, FAULT_PLAIN, "Invalid address",           \
                   __VA_ARGS__)
/* Fills the launch's fault if it has none, and stops its blocks. */
void tps_sim_launch_fail(struct tps_sim_launch *launch, int code,
                         const char *message);
const char *tps_sim_insn_where(const struct tps_sim_kernel *kernel,
                               const insn *i, char *buffer, size_t size);
/* As the program has it, if that is known. */
const char *tps_sim_kernel_name(const struct tps_sim_launch *launch);
const function *tps_sim_function_of(const struct tps_sim_kernel *kernel,
                                    const insn *i);

/* --- engine_resolve.c ---------------------------------------------------- */

typedef enum access_kind {
  ACCESS_LOAD,
  ACCESS_STORE,
  ACCESS_ATOMIC
} access_kind;

/* Host memory of `size` bytes at an address of the instruction's space, or a
 * fault. Remembers the allocation in the instruction's slot. Local memory is
 * interleaved: only the 4-byte word that holds the address is at the pointer.
 */
unsigned char *tps_sim_resolve(engine *e, const insn *i, unsigned lane,
                               uint64_t address, unsigned size,
                               access_kind kind, bool *local);
/* The same for `bytes` that begin at a multiple of `align`, in a space that the
 * caller names; not in local memory. */
unsigned char *tps_sim_reach(engine *e, const insn *i, unsigned lane,
                             uint8_t space, uint64_t address, uint64_t bytes,
                             unsigned align, access_kind kind);
/* One element of 1, 2, 4 or 8 bytes; any space. */
uint64_t tps_sim_load(engine *e, const insn *i, unsigned lane, uint64_t address,
                      unsigned size);
void tps_sim_store(engine *e, const insn *i, unsigned lane, uint64_t address,
                   unsigned size, uint64_t value);
/* A byte at a generic address, or -1 where a load would be a fault, which
 * tps_sim_bad_read then reports. For what vprintf reads. */
int tps_sim_peek(engine *e, unsigned lane, uint64_t generic);
_Noreturn void tps_sim_bad_read(engine *e, const insn *i, unsigned lane,
                                uint64_t generic);
uint32_t *tps_sim_local_word(engine *e, const insn *i, unsigned lane,
                             uint64_t address, unsigned size, access_kind kind);

/* --- engine_warp.c ------------------------------------------------------- */

void tps_sim_warp_begin(engine *e, warp *w);
turn tps_sim_warp_run(engine *e, warp *w);
/* A new group like `from` with these lanes, which leave `from`. */
group *tps_sim_split(warp *w, group *from, uint32_t lanes);
/* The running group goes on at `pc` after the scheduler has looked. */
static inline const insn *leave(engine *e, const insn *pc) {
  e->group->pc = pc;
  return NULL;
}
/* The lanes are gone for good. */
void tps_sim_lanes_exit(engine *e, uint32_t lanes);
/* The frame of a function at a depth of the warp, made when needed. */
frame *tps_sim_frame(engine *e, uint32_t depth, const function *of);
void tps_sim_enter(engine *e, group *g);

/* With a seed: a number of 32 bits. */
uint32_t tps_sim_roll(struct tps_sim_block *block);
/* The same for things that happen often at first and more rarely later: true
 * once in `least` times or less. */
bool tps_sim_chance(struct tps_sim_block *block, uint32_t least);

/* --- engine_delay.c ------------------------------------------------------ */

/* Before each instruction of a launch with a seed: lets a store that is held
 * back take effect where it must. True when the instruction is a store that is
 * held back itself (only if `wanted`), so that it is not to be executed. */
bool tps_sim_delay(engine *e, const insn *i, bool wanted);
void tps_sim_delay_flush(delayed *s);
/* Room for the block's stores, none held back; false: no memory. */
bool tps_sim_delay_ready(struct tps_sim_block *block);

/* --- engine_exchange.c, engine_barrier.c --------------------------------- */

/* Executes what parked groups of the warp are now complete for. */
void tps_sim_parked_check(engine *e, warp *w);
/* shfl, vote, match, redux, elect and bar.warp.sync in any case. */
const insn *tps_sim_exchange(engine *e, const insn *i, uint32_t mask);
/* atom and red in any case. */
const insn *tps_sim_atom(engine *e, const insn *i, uint32_t mask);
bool tps_sim_is_aligned_barrier(const insn *i);
/* Releases the barriers that all who are needed have reached. */
void tps_sim_barriers_check(engine *e);

/* --- engine_deadlock.c --------------------------------------------------- */

_Noreturn void tps_sim_deadlock(engine *e);

/* --- engine_grid.c ------------------------------------------------------- */

/* The running group is about to execute a load whose loop does nothing else:
 * operands b and c are the loop's ends, as numbers of PTX instructions. */
void tps_sim_spin(engine *e, const insn *i, uint64_t address);
/* An atomic operation has been executed at an address. */
void tps_sim_workspace_changed(engine *e, uint64_t address);
/* At the end of a block's turn: a fault if no block can go on. */
void tps_sim_grid_check(engine *e);

/* --- engine_watch.c ------------------------------------------------------ */

/* Of launches that are watched only: lanes of the running warp synchronize, as
 * engine_watch.h's watch_sync has it. */
void tps_sim_watch_sync(engine *e, unsigned what, uint32_t lanes,
                        unsigned number);
/* The same: a phase of the mbarrier has ended. */
void tps_sim_watch_phase(engine *e, const uint64_t *object);

/* --- engine_block.c ------------------------------------------------------ */

/* One block, whatever its cluster: tps_sim_block_new, _destroy and _run for
 * it alone. Its turn may end with OUTCOME_WAITS as well: all that is left of it
 * waits, perhaps for other blocks of its cluster. */
#define OUTCOME_WAITS (TPS_SIM_FAULT + 1)
void tps_sim_block_start(struct tps_sim_block *block, uint64_t index);
struct tps_sim_block *tps_sim_block_begin(struct tps_sim_launch *launch,
                                          uint64_t index);
void tps_sim_block_end(struct tps_sim_block *block);
int tps_sim_block_turn(struct tps_sim_block *block, uint64_t slice);

/* --- engine_print.c ------------------------------------------------------ */

void tps_sim_vprintf(engine *e, const insn *i, unsigned lane, uint64_t format,
                     uint64_t arguments, uint32_t *result);
_Noreturn void tps_sim_assert_failed(engine *e, const insn *i, uint32_t mask,
                                     const uint64_t *const arguments[4],
                                     const uint32_t *line);

/* --- engine_decode.c ----------------------------------------------------- */

/* Whether the engine can run every kernel of the module. */
int tps_sim_check_module(struct tps_sim_code *code, tps_error *err);
int tps_sim_decode_kernel(struct tps_sim_code *code,
                          const tps_ptx_function *entry,
                          struct tps_sim_kernel **out, tps_error *err);
void tps_sim_kernel_destroy(struct tps_sim_kernel *kernel);

/* --- engine_code.c ------------------------------------------------------- */

/* The same kernel as watched code, made when first asked for. */
int tps_sim_code_watched(const struct tps_sim_kernel *kernel,
                         const struct tps_sim_kernel **out, tps_error *err);

#endif
