/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which threads have left a barrier out, and which have just returned early. Whether
 * a thread comes to a barrier is decided at branches, each of which opens a join:
 * the place where the ways from there meet again. A thread that comes from the
 * branch to its join without having arrived at a barrier has left those out that
 * the branch decides about. Where the ways only meet at the kernel's end there is no
 * join: who does not come has returned, which is fine.
 */
#ifndef TPS_SIM_ENGINE_JOINS_H
#define TPS_SIM_ENGINE_JOINS_H

#include "sim/engine_core.h"

#define MOST_JOINS 255u

typedef struct joins {
  uint32_t count;   /* joins, numbered from 1 */
  uint8_t *number;  /* by instruction of the kernel's own function, 0: none */
  uint8_t *opens;   /* the same for the joins that branches open */
  uint16_t *set_of; /* by instruction: its set of joins, 0: none */
  uint64_t (*sets)[MOST_JOINS / 64 + 1];
} joins;

/* Those of the barriers, and of calls, in the kernel's own function; NULL where there are none,
 * or no memory. */
joins *tps_sim_joins_new(const struct tps_sim_kernel *kernel);
void tps_sim_joins_free(joins *j);

/* Number of the join at an instruction, and of that which it opens; 0: none. */
static inline unsigned tps_sim_join_at(const struct tps_sim_kernel *kernel,
                                       const insn *i) {
  const joins *j = kernel->joins;
  bool own = i >= kernel->main->entry && i < kernel->main->end;
  return j && own ? j->number[i - kernel->main->entry] : 0;
}
static inline unsigned tps_sim_join_opened(const struct tps_sim_kernel *kernel,
                                           const insn *i) {
  const joins *j = kernel->joins;
  bool own = i >= kernel->main->entry && i < kernel->main->end;
  return j && own ? j->opens[i - kernel->main->entry] : 0;
}
/* Whether a join is one of the barrier's at that instruction. */
bool tps_sim_is_join_of(const struct tps_sim_kernel *kernel,
                        const insn *barrier, unsigned join);

#endif
