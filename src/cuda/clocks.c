/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * One clock from the other. */
#include "cuda/clocks.h"

#include <stdlib.h>

bool tps_clocks_reserve(tps_clocks *c) {
  if (c->count < c->capacity) return true;
  size_t capacity = 2 * c->capacity + 64;
  tps_moment *more = realloc(c->moments, capacity * sizeof *more);
  if (more == NULL) return false;
  c->moments = more;
  c->capacity = capacity;
  return true;
}

void tps_clocks_add(tps_clocks *c, tps_moment moment) {
  if (c->count > 0 && moment.host_ns <= c->moments[c->count - 1].host_ns)
    moment.host_ns = c->moments[c->count - 1].host_ns + 1;
  c->moments[c->count++] = moment;
}

void tps_clocks_forget(tps_clocks *c) {
  if (c->count < 2) return;
  c->moments[0] = c->moments[c->count - 1];
  c->count = 1;
}

void tps_clocks_free(tps_clocks *c) {
  free(c->moments);
  *c = (tps_clocks){0};
}

uint64_t tps_clocks_host(const tps_clocks *c, double device_ns) {
  size_t i = c->count - 1;
  while (i > 0 && c->moments[i].device_ns > device_ns) i--;
  const tps_moment *m = &c->moments[i];
  double rate = 1;
  if (i + 1 < c->count && m[1].device_ns > m->device_ns)
    rate = ((double)m[1].host_ns - (double)m->host_ns) /
           (m[1].device_ns - m->device_ns);
  return (uint64_t)((int64_t)m->host_ns +
                    (int64_t)((device_ns - m->device_ns) * rate));
}

void tps_clocks_mend(tps_clocks *c, int64_t early_ns, int64_t late_ns) {
  int64_t by = early_ns > 0 ? early_ns : late_ns > 0 ? -late_ns : 0;
  for (size_t i = 0; i < c->count; i++)
    c->moments[i].host_ns = (uint64_t)((int64_t)c->moments[i].host_ns + by);
}
