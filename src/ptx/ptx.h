/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * PTX text → checked module. The reader knows the language: versions, spaces,
 * types, every opcode form of ptx/opcodes.h; it resolves names, scopes, labels
 * and symbols, and checks what can be checked without running. It knows no
 * device: whether an engine can execute an instruction is the engine's say.
 *
 * One parse gives everything: use tps_ptx_parse for the code,
 * tps_ptx_describe for the table of kernels, parameters, globals.
 * All memory of a module is one arena, freed by tps_ptx_free. A module is
 * immutable after parsing and may be shared between threads.
 */
#ifndef TPS_PTX_PTX_H
#define TPS_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/kernel.h"
#include "ptx/opcodes.h" /* tps_ptx_op, tps_ptx_mod */

/* clang-format off */
typedef enum tps_ptx_type {
  TPS_PTX_NOTYPE,
  TPS_PTX_PRED,
  TPS_PTX_B8, TPS_PTX_B16, TPS_PTX_B32, TPS_PTX_B64, TPS_PTX_B128,
  TPS_PTX_U8, TPS_PTX_U16, TPS_PTX_U32, TPS_PTX_U64,
  TPS_PTX_S8, TPS_PTX_S16, TPS_PTX_S32, TPS_PTX_S64,
  TPS_PTX_F16, TPS_PTX_F16X2, TPS_PTX_BF16, TPS_PTX_BF16X2,
  TPS_PTX_F32, TPS_PTX_F64, TPS_PTX_TF32,
  TPS_PTX_E4M3, TPS_PTX_E5M2, TPS_PTX_E4M3X2, TPS_PTX_E5M2X2,
  TPS_PTX_U16X2, TPS_PTX_S16X2,
  TPS_PTX_TEXREF, TPS_PTX_SAMPLERREF, TPS_PTX_SURFREF,
  /* of sub-byte and block-scaled matrices, and packed pairs of newer targets */
  TPS_PTX_B1, TPS_PTX_U4, TPS_PTX_S4, TPS_PTX_F32X2,
  TPS_PTX_E3M2, TPS_PTX_E2M3, TPS_PTX_E2M1, TPS_PTX_UE8M0, TPS_PTX_UE4M3,
  TPS_PTX_E3M2X2, TPS_PTX_E2M3X2, TPS_PTX_E2M1X2, TPS_PTX_UE8M0X2,
  TPS_PTX_E4M3X4, TPS_PTX_E5M2X4, TPS_PTX_E3M2X4, TPS_PTX_E2M3X4,
  TPS_PTX_E2M1X4, TPS_PTX_B1024,
  TPS_PTX_TYPE_COUNT
} tps_ptx_type;
/* clang-format on */

/* Bytes; PRED 1, NOTYPE 0, the opaque references 8, types below a byte 1. */
unsigned tps_ptx_type_size(tps_ptx_type type);

typedef enum tps_ptx_space {
  TPS_PTX_GENERIC, /* no space given */
  TPS_PTX_REG,
  TPS_PTX_GLOBAL,
  TPS_PTX_CONST,
  TPS_PTX_SHARED, /* .shared and .shared::cta */
  TPS_PTX_SHARED_CLUSTER,
  TPS_PTX_LOCAL,
  TPS_PTX_PARAM /* the kernel's block, a function's parameters and results, a
                   call's arguments: tps_ptx_var says which */
} tps_ptx_space;

/* Special registers. Those with components (.x .y .z .w) take consecutive
 * numbers: TPS_PTX_TID + 1 is %tid.y. */
/* clang-format off */
typedef enum tps_ptx_sreg {
  TPS_PTX_TID = 0,
  TPS_PTX_NTID = 4,
  TPS_PTX_CTAID = 8,
  TPS_PTX_NCTAID = 12,
  TPS_PTX_CLUSTERID = 16,
  TPS_PTX_NCLUSTERID = 20,
  TPS_PTX_CLUSTER_CTAID = 24,
  TPS_PTX_CLUSTER_NCTAID = 28,
  TPS_PTX_LANEID = 32, TPS_PTX_WARPID, TPS_PTX_NWARPID, TPS_PTX_SMID,
  TPS_PTX_NSMID, TPS_PTX_GRIDID, TPS_PTX_IS_EXPLICIT_CLUSTER,
  TPS_PTX_CLUSTER_CTARANK, TPS_PTX_CLUSTER_NCTARANK,
  TPS_PTX_LANEMASK_EQ, TPS_PTX_LANEMASK_LE, TPS_PTX_LANEMASK_LT,
  TPS_PTX_LANEMASK_GE, TPS_PTX_LANEMASK_GT,
  TPS_PTX_CLOCK, TPS_PTX_CLOCK_HI, TPS_PTX_CLOCK64,
  TPS_PTX_GLOBALTIMER, TPS_PTX_GLOBALTIMER_LO, TPS_PTX_GLOBALTIMER_HI,
  TPS_PTX_TOTAL_SMEM_SIZE, TPS_PTX_DYNAMIC_SMEM_SIZE,
  TPS_PTX_AGGR_SMEM_SIZE, TPS_PTX_RESERVED_SMEM_OFFSET, /* or _begin, _0, _1 */
  TPS_PTX_RESERVED_SMEM_END, TPS_PTX_RESERVED_SMEM_CAP,
  TPS_PTX_CURRENT_GRAPH_EXEC,
  TPS_PTX_PM, /* any of %pm0.. : reads as a clock */
  TPS_PTX_ENVREG, /* + n, n in 0..31 */
  TPS_PTX_SREG_COUNT = TPS_PTX_ENVREG + 32
} tps_ptx_sreg;
/* clang-format on */

/* How the operands of an instruction are put in order. They stand as written,
 * destinations first, but for:
 * - call: always [0] LIST of results, [1] the target (FUNC, or REG when called
 *   through a pointer), [2] LIST of arguments; then [3] TABLE of an indirect
 *   call that names one. Either LIST may have count 0. Its elements are VARs of
 *   the .param space (value 0): an argument or a result given as a register or
 *   a number has become a st.param before or a ld.param after the call, under
 *   the call's own guard, and .reg parameters of a function are read and
 *   written likewise at its begin and before each ret.
 * - [a, b, {x, y}] of tex, suld, sust, cp.async.bulk.tensor and their kin is
 *   flattened: ADDR on a, then b, then the VEC, each an operand.
 * - a register declared as a vector (.reg .v4 .f32 q) is four registers "q.x"…:
 *   q is a VEC of them, q.y the one.
 * - var[i] is var plus i elements: an ADDR in memory operands, else a VAR.
 * - the selectors of video instructions (%r1.b0, .h1, .b3210, .h10) stand in
 *   the `value` of their REG: one byte for each, lowest lane first, 0x80 + n
 *   for byte n, 0xc0 + n for half n; 0 is none. */
typedef enum tps_ptx_operand_kind {
  TPS_PTX_OPD_REG,   /* index: register of the function */
  TPS_PTX_OPD_IMM,   /* value: the 64 bits; `type` U64/S64 for an integer
                         (sign extended), F32 for 0f…, F64 for 0d… or decimal */
  TPS_PTX_OPD_SREG,  /* index: tps_ptx_sreg */
  TPS_PTX_OPD_VAR,   /* address of a variable + value: index into the
                         function's vars if `local`, else into the module's */
  TPS_PTX_OPD_FUNC,  /* index: a function's address, or a call's target */
  TPS_PTX_OPD_ADDR,  /* [base + value]: base_kind REG, VAR or IMM (absolute) */
  TPS_PTX_OPD_VEC,   /* {a, b, …}: `count` operands from index `first` */
  TPS_PTX_OPD_PAIR,  /* d|p: the same, always two */
  TPS_PTX_OPD_LABEL, /* index: instruction number */
  TPS_PTX_OPD_TABLE, /* index: of .branchtargets, .calltargets or
                         .callprototype in the function */
  TPS_PTX_OPD_LIST,  /* (a, b, …) of a call: results or arguments */
  TPS_PTX_OPD_SINK   /* _ */
} tps_ptx_operand_kind;

typedef struct tps_ptx_operand {
  uint8_t kind;
  uint8_t base_kind; /* of ADDR */
  uint8_t type;      /* tps_ptx_type: REG its declared type, IMM see above */
  bool negated;      /* !%p, or -%r where PTX allows it */
  bool local;        /* VAR or ADDR on a VAR: a variable of the function */
  bool generic;      /* generic(sym) in an initialiser or operand */
  uint16_t count;    /* of VEC, PAIR, LIST */
  int32_t index;     /* register, variable, function, label, … */
  int32_t first;     /* of VEC, PAIR, LIST: in the function's `parts` */
  int64_t value;     /* immediate bits, or the offset of VAR and ADDR */
} tps_ptx_operand;

#define TPS_PTX_MAX_MODS 14
#define TPS_PTX_MAX_TYPES 5
#define TPS_PTX_MAX_OPERANDS 10

typedef struct tps_ptx_instruction {
  uint16_t op; /* tps_ptx_op */
  uint8_t mod_count, type_count, operand_count;
  uint8_t space;  /* tps_ptx_space: the first one named */
  uint8_t space2; /* the second one, of cp.async and its kin */
  uint8_t vector; /* 1, 2, 4 or 8 */
  bool guard_negated;
  int32_t guard;                    /* predicate register, or -1 */
  uint16_t mods[TPS_PTX_MAX_MODS];  /* tps_ptx_mod in order, without types,
                                      spaces and vector width */
  uint8_t types[TPS_PTX_MAX_TYPES]; /* in order as written */
  tps_ptx_operand operands[TPS_PTX_MAX_OPERANDS]; /* destinations first */
  uint32_t text;      /* offset of the opcode in the module's text */
  uint32_t text_size; /* of the opcode with all modifiers */
  uint32_t line;      /* line in the PTX text */
  int32_t loc;        /* index into the module's locs, or -1 */
  int32_t scope;      /* for the reader */
} tps_ptx_instruction;

/* How many of the operands, from the first on, are written (0 or 1; a PAIR or
 * VEC is one). The results of a call are variables: 0. */
unsigned tps_ptx_destinations(const tps_ptx_instruction *instruction);

/* Splits an opcode ("ld.global.nc.v4.f32") into op, mods, types, spaces and
 * vector width of *out, the rest zero. False when a word is unknown or too many
 * are given. */
bool tps_ptx_split_opcode(const char *opcode, tps_ptx_instruction *out);

/* True when the instruction carries the modifier. */
bool tps_ptx_has(const tps_ptx_instruction *instruction, tps_ptx_mod mod);

typedef struct tps_ptx_loc {
  uint32_t file; /* number of the .file directive */
  uint32_t line, column;
  int32_t inlined_at; /* index into locs, or -1 */
} tps_ptx_loc;

typedef struct tps_ptx_register {
  const char *name;
  uint8_t type;
} tps_ptx_register;

/* One relocation of an initialiser: at `offset` the address of a variable or a
 * function plus `addend`, in `size` bytes (8, or 4; 1 with a mask() of a byte:
 * then `shift` tells which). */
typedef struct tps_ptx_relocation {
  uint64_t offset;
  int64_t addend;
  int32_t index; /* variable, or function if `function` */
  uint8_t size, shift;
  bool function;
  bool generic; /* generic(sym): the generic address, else the space's own */
} tps_ptx_relocation;

typedef enum tps_ptx_role {
  TPS_PTX_MODULE_VAR,
  TPS_PTX_FUNCTION_VAR, /* .local, .shared or .global inside a function */
  TPS_PTX_INPUT_PARAM,  /* of the kernel or the function; in order */
  TPS_PTX_RETURN_PARAM,
  TPS_PTX_CALL_PARAM /* .param declared in a body, for a call */
} tps_ptx_role;

typedef struct tps_ptx_var {
  const char *name;
  uint8_t space;   /* tps_ptx_space */
  uint8_t type;    /* of an element */
  uint8_t role;    /* tps_ptx_role */
  uint8_t linkage; /* 0 none, 1 .visible, 2 .extern, 3 .weak, 4 .common */
  bool managed;    /* .attribute(.managed) */
  bool unsized;    /* extern x[]: dynamic shared memory */
  bool pointer;    /* .param … .ptr */
  uint32_t align;
  uint64_t count;   /* elements, all dimensions multiplied; 1 for a scalar */
  uint64_t size;    /* bytes */
  uint64_t offset;  /* in the frame of its kind: kernel parameter block,
                      function's local depot, function's static shared block,
                      function's .param area (inputs, returns, and call params
                      each numbered from 0 in their own area; call params of
                      scopes that are never open together share bytes); 0 of
                      the module's variables, of .global and .const, and of
                      unsized ones: the engine places those */
  const void *init; /* `size` bytes, or NULL for zeros */
  const tps_ptx_relocation *relocations;
  uint32_t relocation_count;
  uint32_t line;
} tps_ptx_var;

typedef enum tps_ptx_table_kind {
  TPS_PTX_BRANCH_TARGETS,
  TPS_PTX_CALL_TARGETS,
  TPS_PTX_CALL_PROTOTYPE
} tps_ptx_table_kind;

typedef struct tps_ptx_table {
  const char *name;
  const int32_t *targets; /* .branchtargets: instructions; .calltargets:
                             functions; .callprototype: none */
  uint32_t target_count;
  const tps_ptx_var *params; /* of .callprototype: returns, then inputs */
  uint32_t return_count, input_count;
  uint8_t kind; /* tps_ptx_table_kind */
} tps_ptx_table;

typedef struct tps_ptx_function {
  const char *name;
  bool entry;         /* a kernel */
  bool declared_only; /* no body: .extern, or a forward declaration that no body
                         follows (vprintf, malloc, free, __assertfail) */
  bool noreturn;
  uint8_t linkage;
  uint32_t maxntid[3], reqntid[3]; /* 0 when not given */
  uint32_t minnctapersm, maxnreg;
  uint32_t reqnctapercluster[3];
  const tps_ptx_register *registers;
  uint32_t register_count;
  const tps_ptx_var *vars; /* returns, inputs, then everything of the body */
  uint32_t var_count, return_count, input_count;
  const tps_ptx_instruction *instructions; /* the last one is always a ret,
                                              exit, trap or bra: a body that
                                              falls off its end gets a ret */
  uint32_t instruction_count;
  const tps_ptx_operand *parts; /* elements of VEC, PAIR and LIST */
  uint32_t part_count;
  const tps_ptx_table *tables;
  uint32_t table_count;
  uint32_t input_bytes, return_bytes, call_bytes; /* of the .param areas */
  uint32_t local_bytes;                           /* of the .local variables */
  uint32_t shared_bytes;    /* of the .shared variables in the body */
  uint32_t register_demand; /* 32-bit registers live at once, at the most */
  const uint8_t *unset; /* of each register: may be read before it is written */
  uint32_t line;
  const char *alias_of; /* .alias: what it shares its body with, or NULL */
} tps_ptx_function;

typedef struct tps_ptx_module {
  const char *text; /* own copy, NUL-terminated */
  size_t text_size;
  unsigned version;        /* 90 for 9.0 */
  unsigned target;         /* 80 for sm_80 */
  bool target_specific;    /* sm_90a */
  unsigned address_size;   /* 32 or 64; 64 when the text does not say */
  const tps_ptx_var *vars; /* module scope: .global .const .shared */
  uint32_t var_count;
  const tps_ptx_function *functions;
  uint32_t function_count;
  const tps_ptx_loc *locs;
  uint32_t loc_count;
  const char *const *files; /* by number; NULL where a number is unused */
  uint32_t file_count;
} tps_ptx_module;

/* Reads `size` bytes of PTX. Errors: INVALID_PTX with "line N: …" (what was
 * found, what was expected), UNSUPPORTED_PTX_VERSION for a version above 9.x or
 * below 1.0, INVALID_IMAGE when it does not begin like PTX at all. Text need
 * not end in NUL; NUL bytes inside are an error (but trailing ones are ignored). */
int tps_ptx_parse(const char *text, size_t size, tps_ptx_module **out,
                  tps_error *err);
/* The same; but while a module of the same text is in use it is that one. */
int tps_ptx_parse_shared(const char *text, size_t size, tps_ptx_module **out,
                         tps_error *err);
/* Frees a module; a shared one with its last user. */
void tps_ptx_free(tps_ptx_module *module);

/* Table of kernels, parameters with access analysis, and globals. static_shared
 * counts every shared variable that the kernel or what it calls reaches. C++
 * types come from mangled names. To be freed with tps_image_desc_free. */
int tps_ptx_describe(const tps_ptx_module *module, tps_image_desc *out,
                     tps_error *err);

/* "file.cu:12" of an instruction into `buffer`, or "PTX line 34". What a library's
 * header defines, where the program calls it: "file.cu:12 via crt/mma.hpp:56". */
const char *tps_ptx_where(const tps_ptx_module *module,
                          const tps_ptx_instruction *instruction, char *buffer,
                          size_t size);

#endif
