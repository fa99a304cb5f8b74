/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The words of what the checks find (device/watch.h), in compute-sanitizer's order
 * and wording: a title, where in the code, by which thread, and lines that say why.
 *
 *   finding f;
 *   tps_sim_finding_begin(&f, TPS_WATCH_INIT, "Uninitialized …");
 *   tps_sim_finding_at(&f, e, i);
 *   tps_sim_finding_by(&f, e, warp, lane);
 *   tps_sim_finding_add(&f, "Address 0x%llx", …);
 *   tps_sim_finding_tell(&f, e->launch->config.op);
 *
 * Title, kernel and line make the key, the lines added do not.
 */
#ifndef TPS_SIM_ENGINE_FINDING_H
#define TPS_SIM_ENGINE_FINDING_H

#include "device/watch.h"
#include "sim/engine_core.h"

typedef struct finding {
  unsigned check;
  uint64_t key;
  size_t used;
  char text[4000];
} finding;

/* "saxpy+0x70 in saxpy.cu:4" */
void tps_sim_code_place(const struct tps_sim_launch *launch, const insn *i,
                        char *text, size_t size);

void tps_sim_finding_begin(finding *f, unsigned check, const char *title, ...)
    __attribute__((format(printf, 3, 4)));
/* "    at saxpy+0x70 in saxpy.cu:4", with the kernel below it where the instruction
 * is in a function that was not inlined. */
void tps_sim_finding_at(finding *f, const engine *e, const insn *i);
/* "    by thread (3,0,0) in block (0,0,0)" */
void tps_sim_finding_by(finding *f, const engine *e, const warp *w,
                        unsigned lane);
/* "    and is 4 bytes after the nearest allocation at 0x… of size 40 bytes", who
 * made it, who freed it. */
void tps_sim_finding_memory(finding *f, const tps_sim_allocation *m,
                            uint64_t address, uint64_t bytes);
/* A line of its own, without its end. */
void tps_sim_finding_add(finding *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds where the kernel was launched; tests launch without an operation, of which
 * nothing is told. */
void tps_sim_finding_tell(finding *f, const tps_op *op);

/* Coordinates of a thread in its block. */
void tps_sim_thread_of(const engine *e, const warp *w, unsigned lane,
                       uint32_t to[3]);

#endif
