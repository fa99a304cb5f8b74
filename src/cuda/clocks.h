/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The device's clock and the host's: moments at which both are known, and between
 * them the one from the other. Calls nothing of CUDA's.
 */
#ifndef TPS_CUDA_CLOCKS_H
#define TPS_CUDA_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both clocks at one moment; the device's begins with the first. */
typedef struct tps_moment {
  double device_ns;
  uint64_t host_ns;
} tps_moment;

typedef struct tps_clocks {
  tps_moment *moments;
  size_t count, capacity;
} tps_clocks;

/* Room for one more; false: no memory. */
bool tps_clocks_reserve(tps_clocks *clocks);
/* Later than all others, as it comes out of that room; host times are made to rise. */
void tps_clocks_add(tps_clocks *clocks, tps_moment moment);
/* All but the latest are forgotten. */
void tps_clocks_forget(tps_clocks *clocks);
void tps_clocks_free(tps_clocks *clocks);

/* The host's time, between the two moments around it; before the first and after
 * the last the clocks are taken to run alike. There is a moment at least. */
uint64_t tps_clocks_host(const tps_clocks *clocks, double device_ns);

/* What is known besides of the host's clock: that all times that
 * tps_clocks_host gives now are too early by `early_ns` or more, and too late by
 * `late_ns` or more (of which one is not positive, if both are right). Moves the
 * moments by as little as will do. */
void tps_clocks_mend(tps_clocks *clocks, int64_t early_ns, int64_t late_ns);

#endif
