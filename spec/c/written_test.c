/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which bytes were written, beside an array that says it for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/written.h"

#define BYTES 500u

static uint64_t dice = 31415926;

static unsigned roll(unsigned below) {
  dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(dice >> 33) % below;
}

static bool plain[2][BYTES]; /* true: written */

/* As many of the range as there are. */
static unsigned inside(unsigned first, unsigned bytes) {
  if (first >= BYTES) return 0;
  return bytes < BYTES - first ? bytes : BYTES - first;
}

static void look(tps_sim_written *const w[2]) {
  unsigned k = roll(2), first = roll(BYTES + 10), bytes = 1 + roll(150);
  unsigned count = inside(first, bytes), some = 0;
  for (unsigned n = 0; n < count; n++) some += plain[k][first + n];
  assert_int_equal(tps_sim_written_none(w[k], first, bytes),
                   count > 0 && some == 0);
  assert_int_equal(tps_sim_written_all(w[k], first, bytes), some == count);
}

static void change(tps_sim_written *const w[2]) {
  unsigned k = roll(2), first = roll(BYTES + 10), bytes = roll(150);
  unsigned from = roll(BYTES);
  switch (roll(3)) {
  case 0:
    tps_sim_written_set(w[k], first, bytes);
    memset(plain[k] + (first < BYTES ? first : 0), true, inside(first, bytes));
    break;
  case 1:
    tps_sim_written_clear(w[k], first, bytes);
    memset(plain[k] + (first < BYTES ? first : 0), false, inside(first, bytes));
    break;
  default:
    if (first >= BYTES) return;
    bytes = inside(first, inside(from, bytes));
    tps_sim_written_copy(w[k], first, w[!k], from, bytes);
    memcpy(plain[k] + first, plain[!k] + from, bytes);
    break;
  }
}

static void random_ranges(void **state) {
  tps_sim_written *w[2] = {tps_sim_written_new(BYTES),
                           tps_sim_written_new(BYTES)};
  (void)state;
  for (unsigned n = 0; n < 200000; n++) {
    if (n % 2) look(w);
    else change(w);
  }
  tps_sim_written_free(w[0]);
  tps_sim_written_free(w[1]);
}

static void nothing_known(void **state) {
  tps_sim_written *w = tps_sim_written_new(BYTES);
  (void)state;
  tps_sim_written_set(NULL, 0, 10);
  tps_sim_written_copy(NULL, 0, w, 0, 10);
  assert_false(tps_sim_written_none(NULL, 0, 10));
  assert_true(tps_sim_written_all(NULL, 0, 10));
  assert_true(tps_sim_written_none(w, 0, 10));
  tps_sim_written_copy(w, 3, NULL, 0, 7);
  assert_true(tps_sim_written_none(w, 0, 3));
  assert_true(tps_sim_written_all(w, 3, 7));
  tps_sim_written_miss();
  assert_false(tps_sim_written_none(w, 0, 3));
  tps_sim_written *later = tps_sim_written_new(BYTES);
  assert_true(tps_sim_written_none(later, 0, 3));
  tps_sim_written_free(w);
  tps_sim_written_free(later);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_ranges),
                                     cmocka_unit_test(nothing_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
