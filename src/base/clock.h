/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Monotonic time in nanoseconds, and deadlines made of it. */
#ifndef TPS_BASE_CLOCK_H
#define TPS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define TPS_FOREVER UINT64_MAX

static inline uint64_t tps_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* now + timeout, TPS_FOREVER when that overflows or the timeout is for ever. */
static inline uint64_t tps_deadline_ns(uint64_t timeout_ns) {
  uint64_t now = tps_now_ns();
  return timeout_ns >= TPS_FOREVER - now ? TPS_FOREVER : now + timeout_ns;
}

#endif
