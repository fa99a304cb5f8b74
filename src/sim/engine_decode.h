/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding: one PTX instruction becomes one or a few of the engine's. The
 * builder holds the kernel in the making and the function being decoded.
 * Operands are brought to the class that a handler wants by small instructions
 * before it, and results to the class of their register by small ones behind
 * it.
 */
#ifndef TPS_SIM_ENGINE_DECODE_H
#define TPS_SIM_ENGINE_DECODE_H

#include "sim/engine_core.h"

#define NO_OPERAND UINT32_MAX
#define NO_GUARD UINT32_MAX
#define GUARD_NOT 8u /* operands have this bit free */

typedef tps_ptx_instruction ptx_insn;
typedef tps_ptx_operand ptx_opd;

typedef struct reg_info {
  uint32_t row;   /* of the frame, NO_OPERAND before it has one */
  uint32_t alias; /* an invariant row instead, or NO_OPERAND */
  uint32_t defs;  /* instructions that write it, at the most 2 counted */
  uint8_t type;   /* as declared */
} reg_info;

/* A result on its way to a register of another class. */
typedef struct pending {
  uint32_t from, to;
  uint16_t op;
} pending;

enum { TEMPS = 12, PENDING_MAX = 16 };

/* A warp's frame of a function; a thread's local memory and a kernel's static
 * shared memory, which are what a GPU has. */
#define MOST_FRAME (16u << 20)
#define MOST_LOCAL (512u << 10)
#define MOST_SHARED (48u << 10)

/* The frame begins with a row for results that nobody wants, then temporaries.
 */
enum {
  SINK_AT = 0,
  TEMP64_AT = SINK_AT + ROW64,
  TEMP32_AT = TEMP64_AT + TEMPS * ROW64,
  TEMP_PRED_AT = TEMP32_AT + TEMPS * ROW32,
  SINK_PRED_AT = TEMP_PRED_AT + 16 * 8,
  ZEROED_AT = (SINK_PRED_AT + 8 + 63) & ~63
};

typedef struct constant_slot {
  uint64_t value;
  uint32_t row; /* 0: free */
  bool wide;
} constant_slot;

typedef struct builder {
  struct tps_sim_code *code;
  const tps_ptx_module *module;
  struct tps_sim_kernel *kernel;
  tps_error *err;
  int failed; /* the code of the first failure */

  insn *insns;
  uint32_t insn_count, insn_capacity;
  unsigned char *constants;
  uint32_t constant_bytes, constant_capacity;
  constant_slot *slots;
  uint32_t slot_capacity, slot_used;
  uint32_t param_capacity;
  uint32_t *shared_at;     /* offset of each module variable in shared memory */
  uint32_t **local_shared; /* of each function's own shared variables */
  uint64_t shared_bytes;   /* of all that are placed */
  uint32_t *queue, queued; /* functions reached, in that order */
  bool taken;              /* … by a call through a register, too */

  /* the function */
  const tps_ptx_function *fn;
  function *f;
  uint64_t frame; /* bytes so far */
  reg_info *regs;
  param_rows *vars;      /* rows of .param variables */
  branch_table **tables; /* those of the function that are decoded */
  uint32_t *pcs;         /* first instruction of each PTX instruction */
  const ptx_insn *p;     /* the instruction */
  int32_t at;
  uint32_t guard; /* operand, with GUARD_NOT, or NO_GUARD */
  uint32_t temps64, temps32, temps_pred;
  uint32_t texture_rows; /* engine_decode_texture.c's, 0 before the first use */
  pending pending[PENDING_MAX];
  uint32_t pending_count;
  bool unsupported; /* an operand that the engine lacks */
  unsigned needs;   /* the target that the instruction demands, or 0 */
} builder;

/* --- types --------------------------------------------------------------- */

static inline unsigned bits_of_type(uint8_t type) {
  return 8 * tps_ptx_type_size((tps_ptx_type)type);
}
static inline bool is_wide(uint8_t type) { return bits_of_type(type) == 64; }
static inline bool is_signed(uint8_t type) {
  return type >= TPS_PTX_S8 && type <= TPS_PTX_S64;
}
static inline bool is_integer(uint8_t type) {
  return type >= TPS_PTX_B8 && type <= TPS_PTX_S64 && type != TPS_PTX_B128;
}
static inline bool has(const builder *b, tps_ptx_mod mod) {
  return tps_ptx_has(b->p, mod);
}
static inline uint8_t type_at(const builder *b, unsigned k) {
  return k < b->p->type_count ? b->p->types[k] : TPS_PTX_NOTYPE;
}
static inline const ptx_opd *opd(const builder *b, unsigned k) {
  return &b->p->operands[k];
}
static inline const ptx_opd *part_of(const builder *b, const ptx_opd *o,
                                     unsigned k) {
  return &b->fn->parts[o->first + (int32_t)k];
}
static inline bool is_group(const ptx_opd *o) {
  return o->kind == TPS_PTX_OPD_VEC || o->kind == TPS_PTX_OPD_PAIR ||
         o->kind == TPS_PTX_OPD_LIST;
}

/* --- engine_layout.c ----------------------------------------------------- */

/* Finds what the kernel, or without one every kernel of the module, reaches, and
 * places the shared variables. The kernel itself is first in the queue. */
void tps_sim_layout(builder *b, const tps_ptx_function *entry);
/* Refuses a kernel with too many bytes of them; true when it has failed. */
bool tps_sim_shared_limit(builder *b);

/* --- engine_operand.c ---------------------------------------------------- */

/* Appends an instruction under the guard. Valid until the next one. */
insn *tps_sim_emit(builder *b, unsigned op);
/* The row of an operand read as `type`. */
uint32_t tps_sim_source(builder *b, const ptx_opd *o, uint8_t type);
uint32_t tps_sim_source_pred(builder *b, const ptx_opd *o);
/* The row to write a result of `type` to. What the register needs besides is
 * emitted by tps_sim_finish. */
uint32_t tps_sim_result(builder *b, const ptx_opd *o, uint8_t type);
uint32_t tps_sim_result_pred(builder *b, const ptx_opd *o);
void tps_sim_finish(builder *b);
/* The row of a register, which gets one if it has none. */
uint32_t tps_sim_reg_row(builder *b, const ptx_opd *o);
/* The row of an address and what to add to it. 32-bit addresses stay narrow
 * where they may. */
uint32_t tps_sim_address(builder *b, const ptx_opd *o, bool may_be_narrow,
                         int64_t *offset, bool *narrow);
uint32_t tps_sim_temp(builder *b, bool wide);
uint32_t tps_sim_temp_pred(builder *b);
uint32_t tps_sim_constant(builder *b, uint64_t value, bool wide);
/* Lets the register stand for an invariant row, if it may. */
bool tps_sim_alias(builder *b, const ptx_opd *o, uint32_t row, bool wide);
/* Whether the operand never changes; then its row in *row. */
bool tps_sim_invariant(builder *b, const ptx_opd *o, uint8_t type,
                       uint32_t *row);
/* Address of a variable in its own space, or generic. */
uint64_t tps_sim_address_of(builder *b, const ptx_opd *o, bool *is_local);
const tps_ptx_var *tps_sim_var(const builder *b, const ptx_opd *o);
/* A row of the kernel's parameters. */
uint32_t tps_sim_param_row(builder *b, uint32_t offset, unsigned size,
                           bool sign, bool wide);
/* Rows for a new piece of the frame. */
uint32_t tps_sim_place(builder *b, uint64_t bytes);
void *tps_sim_grow(builder *b, void *p, uint32_t *capacity, uint32_t need,
                   size_t size);
void tps_sim_no_memory(builder *b);

/* Emits `op` with the given rows. */
static inline insn *tps_sim_emit3(builder *b, unsigned op, uint32_t d,
                                  uint32_t a, uint32_t s, uint32_t c) {
  insn *i = tps_sim_emit(b, op);
  i->d = d, i->a = a, i->b = s, i->c = c;
  return i;
}

/* --- families; false: not supported -------------------------------------- */

bool tps_sim_decode_integer(builder *b);
bool tps_sim_decode_float(builder *b);
bool tps_sim_decode_compare(builder *b);
bool tps_sim_decode_convert(builder *b);
bool tps_sim_decode_move(builder *b);
bool tps_sim_decode_memory(builder *b);
bool tps_sim_decode_atomic(builder *b);
bool tps_sim_decode_control(builder *b);
bool tps_sim_decode_exchange(builder *b);
bool tps_sim_decode_video(builder *b);
bool tps_sim_decode_copy(builder *b);
bool tps_sim_decode_mbarrier(builder *b);
bool tps_sim_decode_cluster(builder *b);
/* What st.async and red.async tell an mbarrier. */
bool tps_sim_decode_complete_tx(builder *b, const ptx_opd *object,
                                unsigned bytes);
/* Whether the wait at hand is all that its loop does (engine_decode_wait.c). */
bool tps_sim_only_waits(const builder *b);
/* Whether the load at hand is in a loop without anything else that others could
 * hear of; then its ends, as numbers of PTX instructions. */
bool tps_sim_only_spins(const builder *b, uint32_t *first, uint32_t *last);
bool tps_sim_decode_texture(builder *b);
bool tps_sim_decode_matrix(builder *b);
bool tps_sim_decode_eighth(builder *b);
/* Those of .b128. */
bool tps_sim_decode_wide_move(builder *b);
bool tps_sim_decode_wide_load(builder *b);
bool tps_sim_decode_wide_store(builder *b);
bool tps_sim_decode_wide_atomic(builder *b);
int64_t tps_sim_rounding(const builder *b);

#endif
