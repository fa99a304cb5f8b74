/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The tables of handlers. The files of arithmetic and memory handlers are built
 * for three levels of x86-64 when TPS_SIM_VARIANTS is defined (each object file
 * with -DTPS_SIM_VARIANT=v2, v3 or v4), else once; the processor's own level is
 * found when the first code is made.
 */
#include "sim/engine_fragment.h"
#include "sim/engine_race.h"

#define DECLARE(level)                                                         \
  void tps_sim_fill_integer_##level(handler **table);                          \
  void tps_sim_fill_float_##level(handler **table);                            \
  void tps_sim_fill_convert_##level(handler **table);                          \
  void tps_sim_fill_access_##level(handler **table);                           \
  void tps_sim_fill_shuffle_##level(handler **table);                          \
  void tps_sim_fill_shared_atomic_##level(handler **table);                    \
  multiplier tps_sim_multiply_##level;                                         \
  race_at_once tps_sim_race_at_once_##level;                                   \
  static void fill_##level(handler **table) {                                  \
    tps_sim_fill_integer_##level(table);                                       \
    tps_sim_fill_float_##level(table);                                         \
    tps_sim_fill_convert_##level(table);                                       \
    tps_sim_fill_access_##level(table);                                        \
    tps_sim_fill_shuffle_##level(table);                                       \
    tps_sim_fill_shared_atomic_##level(table);                                 \
    tps_sim_multiply = tps_sim_multiply_##level;                               \
    tps_sim_race_at_once = tps_sim_race_at_once_##level;                       \
  }

void tps_sim_fill_control(handler **table);
void tps_sim_fill_exchange(handler **table);
void tps_sim_fill_matrix(handler **table);
void tps_sim_fill_eighth(handler **table);
void tps_sim_fill_barrier(handler **table);
void tps_sim_fill_atomic(handler **table);
void tps_sim_fill_video(handler **table);
void tps_sim_fill_cluster(handler **table);
void tps_sim_fill_mbarrier(handler **table);
void tps_sim_fill_async(handler **table);
void tps_sim_fill_texture(handler **table);
void tps_sim_fill_surface(handler **table);
void tps_sim_fill_wide(handler **table);
void tps_sim_fill_stack(handler **table);
void tps_sim_fill_watch(handler **table);

static handler *table[HANDLER_COUNT];
multiplier *tps_sim_multiply;
race_at_once *tps_sim_race_at_once;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef TPS_SIM_VARIANTS
DECLARE(v2)
DECLARE(v3)
DECLARE(v4)
static void fill_vector_handlers(void) {
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") &&
            __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  if (v4) fill_v4(table);
  else if (v3) fill_v3(table);
  else fill_v2(table);
}
#else
DECLARE(base)
static void fill_vector_handlers(void) { fill_base(table); }
#endif

static void fill(void) {
  fill_vector_handlers();
  tps_sim_fill_control(table);
  tps_sim_fill_exchange(table);
  tps_sim_fill_matrix(table);
  tps_sim_fill_eighth(table);
  tps_sim_fill_barrier(table);
  tps_sim_fill_atomic(table);
  tps_sim_fill_video(table);
  tps_sim_fill_cluster(table);
  tps_sim_fill_mbarrier(table);
  tps_sim_fill_async(table);
  tps_sim_fill_texture(table);
  tps_sim_fill_surface(table);
  tps_sim_fill_wide(table);
  tps_sim_fill_stack(table);
  tps_sim_fill_watch(table);
}

handler *const *tps_sim_handlers(void) {
  pthread_once(&once, fill);
  return table;
}
