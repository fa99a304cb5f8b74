/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Barriers and masks that are used wrongly (TPS_WATCH_BARRIER). What barriers do
 * stays what the hardware does: threads that have ended count as arrived, lanes of
 * a mask may come by different ways. Told is what works by luck, or not at all.
 */
#ifndef TPS_SIM_ENGINE_SYNCCHECK_H
#define TPS_SIM_ENGINE_SYNCCHECK_H

#include "sim/engine_watch.h"

/* Of watched launches only. Lanes of the running warp arrive at a barrier for
 * `count` threads, 0: all of the block, after which they wait or not. */
void tps_sim_sync_arrives(engine *e, const insn *i, uint32_t lanes, unsigned id,
                          uint32_t count, bool waits);
/* Lanes of the running warp call an operation for the lanes `member`. */
void tps_sim_sync_members(engine *e, const insn *i, uint32_t lanes,
                          uint32_t member);
/* Lanes of the running warp are at a join, or a branch that opens one
 * (engine_joins.h). */
void tps_sim_sync_joins(engine *e, const insn *i, uint32_t lanes);
/* All threads of the block have ended. */
void tps_sim_sync_ended(engine *e);

/* Of any launch: what is about to be a fault is told if it is wanted. `title` goes
 * behind "Barrier error detected. ", `what` may have many lines, parted by "; ". */
void tps_sim_tell_sync(const engine *e, const insn *i, const warp *w, int lane,
                       const char *title, const char *what);
/* The same by the running warp, and the fault that it is. */
#define tps_sim_sync_fault(e, i, lane, code, title, ...)                       \
  tps_sim_fault_as(e, i, lane, code, FAULT_BARRIER, title, __VA_ARGS__)

#endif
