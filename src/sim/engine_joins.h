/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which threads have gone past a barrier, and which have just left early. Whether
 * a thread comes to a barrier is decided at branches; where the ways from such a
 * branch meet again is a join of the barrier. A thread that is at a join without
 * having been at the barrier has left it out. Where the ways only meet at the
 * kernel's end there is no join: who does not come has returned, which is fine.
 */
#ifndef TPS_SIM_ENGINE_JOINS_H
#define TPS_SIM_ENGINE_JOINS_H

#include "sim/engine_core.h"

typedef struct joins {
  uint32_t count;   /* joins, numbered from 1 */
  uint16_t *number; /* by instruction of the kernel's own function, 0: none */
  uint32_t words;   /* of a set of joins */
  uint64_t *sets;   /* one for each instruction that is in `set_of` */
  uint16_t *set_of; /* by instruction: number of its set, 0: none */
} joins;

/* Those of the barriers, and of calls, in the kernel's own function; NULL where there are none,
 * or no memory, or too many. */
joins *tps_sim_joins_new(const struct tps_sim_kernel *kernel);
void tps_sim_joins_free(joins *j);

/* Number of the join at an instruction, 0: none. */
static inline unsigned tps_sim_join_at(const struct tps_sim_kernel *kernel,
                                       const insn *i) {
  const joins *j = kernel->joins;
  bool own = i >= kernel->main->entry && i < kernel->main->end;
  return j && own ? j->number[i - kernel->main->entry] : 0;
}
/* Whether a join is one of the barrier's at that instruction. */
bool tps_sim_is_join_of(const struct tps_sim_kernel *kernel,
                        const insn *barrier, unsigned join);

#endif
