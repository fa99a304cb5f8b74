/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * An access of one lane that can't be, and the words for it: what lies nearest,
 * who made it, who freed it.
 */
#ifndef TPS_SIM_ENGINE_REPORT_H
#define TPS_SIM_ENGINE_REPORT_H

#include "sim/engine_core.h"

typedef struct access {
  engine *e;
  const insn *i;
  unsigned lane;
  uint64_t address; /* as the instruction had it */
  unsigned size;
  access_kind kind;
} access;

#define TPS_SIM_NAME_BYTES 128

/* The name of a variable or a function as the source has it; `brief` without its
 * scopes, as for what is declared in a function. */
const char *tps_sim_readable(const char *symbol, bool brief,
                             char text[TPS_SIM_NAME_BYTES]);
/* "allocation at 0x… of 40 bytes (float32 buffer), made at script.lua:3" */
const char *tps_sim_describe(const engine *e, const tps_sim_allocation *m,
                             char *text, size_t size);

/* "shared array 's' of 40 bytes", for a place in a block's `total` bytes of shared
 * memory. */
void tps_sim_describe_shared(const struct tps_sim_kernel *kernel,
                             uint64_t total, uint64_t offset, char *text,
                             size_t size);

/* --- engine_memcheck.c --------------------------------------------------- */

/* What is about to be a fault, as a finding where one is wanted: an access that
 * is out of bounds, with the memory it misses (or NULL); one that is bad for
 * another reason; anything else. */
void tps_sim_tell_memory(const access *a, const tps_sim_allocation *m);
void tps_sim_tell_access(const access *a, int code, const char *why);
void tps_sim_tell_fault(const engine *e, const insn *i, int lane,
                        const char *title, const char *what);

/* --- engine_report.c ----------------------------------------------------- */

/* Each ends the block. */
_Noreturn void tps_sim_bad_access(const access *a, int code, const char *why);
_Noreturn void tps_sim_bad_alignment(const access *a);
/* Of global memory: nothing is there, or not enough of it; freed memory. */
_Noreturn void tps_sim_bad_address(const access *a, uint64_t address);
_Noreturn void tps_sim_bad_memory(const access *a, const tps_sim_allocation *m);
/* Past the block's shared memory. */
_Noreturn void tps_sim_bad_shared(const access *a, uint64_t offset);
/* Past what the thread uses of its stack, `limit` bytes. */
_Noreturn void tps_sim_bad_local(const access *a, uint64_t offset,
                                 uint64_t limit);
/* A call for which the thread's stack, `limit` bytes, has no room. */
_Noreturn void tps_sim_bad_call(engine *e, const insn *i, unsigned lane,
                                const char *callee, uint64_t limit);

#endif
