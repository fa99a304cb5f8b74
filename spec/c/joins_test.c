/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The joins of barriers in random code, beside what their definition says when it
 * is tried out one instruction after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/engine_joins.h"

#define MOST 40
#define ROUNDS 3000

static uint64_t dice = 20261201;

static unsigned roll(unsigned below) {
  dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(dice >> 33) % below;
}

static insn code[MOST];
static unsigned length; /* and the number of the end */

static void make_code(void) {
  memset(code, 0, sizeof code);
  length = 4 + roll(MOST - 4);
  for (unsigned k = 0; k < length; k++) {
    insn *i = &code[k];
    unsigned to = roll(length);
    bool back = to <= k;
    i->ptx = (int32_t)k;
    i->op = H_nop;
    switch (roll(12)) {
    case 0:
    case 1: i->op = H_barrier; break;
    case 2:
    case 3:
    case 4: i->op = back ? H_cbra_back : H_cbra; break;
    case 5: i->op = back ? H_bra_back : H_bra; break;
    case 6: i->op = roll(3) ? H_exit : H_trap; break;
    default: break;
    }
    if (i->op == H_cbra || i->op == H_cbra_back || i->op == H_bra ||
        i->op == H_bra_back)
      i->target = &code[to];
  }
  code[length - 1].op = H_ret;
}

/* Both ways on from an instruction; -1: none. */
static void ways(unsigned k, int to[2]) {
  const insn *i = &code[k];
  to[0] = to[1] = -1;
  switch (i->op) {
  case H_cbra:
  case H_cbra_back: to[1] = (int)(i->target - code); /* fall through */
  case H_nop:
  case H_barrier: to[0] = (int)k + 1; break;
  case H_bra:
  case H_bra_back: to[0] = (int)(i->target - code); break;
  case H_exit:
  case H_ret: to[0] = (int)length; break;
  default: break;
  }
}

static bool visited[MOST + 1];

static bool walk(unsigned from, unsigned avoided) {
  int to[2];
  if (from == avoided) return false;
  if (from == length) return true;
  if (visited[from]) return false;
  visited[from] = true;
  ways(from, to);
  return (to[0] >= 0 && walk((unsigned)to[0], avoided)) ||
         (to[1] >= 0 && walk((unsigned)to[1], avoided));
}

#define NOTHING 1000u

static bool ends(unsigned from, unsigned avoided) {
  memset(visited, 0, sizeof visited);
  return walk(from, avoided);
}

/* Whether all ways from there to the end lead over an instruction. */
static bool leads_over(unsigned from, unsigned over) {
  return ends(from, NOTHING) && !ends(from, over);
}

static bool decides(unsigned x, unsigned b) {
  int to[2];
  ways(x, to);
  if (to[1] < 0 || !ends(x, NOTHING) || leads_over(x, b)) return false;
  return leads_over((unsigned)to[0], b) || leads_over((unsigned)to[1], b);
}

/* The first instruction that all ways from a branch have in common. */
static unsigned join_of(unsigned x) {
  for (unsigned k = 0; k < length; k++) {
    bool nearest = k != x && leads_over(x, k);
    for (unsigned other = 0; nearest && other < length; other++)
      if (other != k && other != x && leads_over(x, other))
        nearest = leads_over(k, other);
    if (nearest) return k;
  }
  return length;
}

static void expect(unsigned barrier, bool *joins,
                   const struct tps_sim_kernel *kernel) {
  unsigned todo[MOST + 1], left = 0;
  bool seen[MOST] = {false};
  todo[left++] = barrier;
  while (left) {
    unsigned b = todo[--left];
    for (unsigned x = 0; x < length; x++) {
      if (seen[x] || !decides(x, b)) continue;
      seen[x] = true;
      todo[left++] = x;
      unsigned join = join_of(x);
      if (join == length || code[join].op == H_exit || code[join].op == H_ret)
        continue;
      joins[join] = true;
      assert_int_equal(tps_sim_join_opened(kernel, &code[x]),
                       tps_sim_join_at(kernel, &code[join]));
    }
  }
}

static unsigned compare(struct tps_sim_kernel *kernel) {
  unsigned count = 0;
  for (unsigned k = 0; k < length; k++) {
    bool joins[MOST] = {false};
    if (code[k].op != H_barrier || !ends(k, NOTHING)) continue;
    expect(k, joins, kernel);
    for (unsigned j = 0; j < length; j++) {
      unsigned number = tps_sim_join_at(kernel, &code[j]);
      assert_int_equal(tps_sim_is_join_of(kernel, &code[k], number), joins[j]);
      count += joins[j];
    }
  }
  return count;
}

static void random_code(void **state) {
  unsigned found = 0;
  (void)state;
  for (unsigned n = 0; n < ROUNDS; n++) {
    function main = {.entry = code};
    struct tps_sim_kernel kernel = {.insns = code, .main = &main};
    make_code();
    main.end = code + length;
    kernel.insn_count = length;
    kernel.joins = tps_sim_joins_new(&kernel);
    found += compare(&kernel);
    tps_sim_joins_free(kernel.joins);
  }
  assert_true(found > ROUNDS / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_code)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
