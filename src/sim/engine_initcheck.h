/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Reads of bytes that nobody ever wrote (TPS_WATCH_INIT). Functions for watched
 * launches only.
 */
#ifndef TPS_SIM_ENGINE_INITCHECK_H
#define TPS_SIM_ENGINE_INITCHECK_H

#include "sim/engine_watch.h"

/* Lanes of the running warp get `bytes` of their stack each that begin at
 * `at[lane]`, whatever was there before. */
void tps_sim_init_stack(engine *e, uint32_t lanes, const uint64_t *at,
                        uint64_t bytes);
/* A kernel's malloc has returned it. */
void tps_sim_init_heap(const engine *e, tps_sim_allocation *a);

#endif
