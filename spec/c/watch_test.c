/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the engine tells of a launch that is watched: the bytes that it touches,
 * against what the same kernel, told in C, would touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/watch.h"
#include "sim/engine.h"
#include "sim/engine_race.h"

enum { BYTES = 20000, THREADS = 96, BLOCKS = 3 };

/* Each thread has in o the 32-bit number that a table has for it. */
#define BEGIN(name)                                                            \
  ".visible .entry " name "(.param .u64 pt, .param .u64 px, .param .u64 py) {" \
  " .reg .b64 t, x, y, n; .reg .b32 i, o, v, w; .reg .b16 h; .reg .pred q;"    \
  " .reg .f32 f, g; .shared .align 16 .b8 s[4096];\n"                          \
  " ld.param.u64 t, [pt]; ld.param.u64 x, [px]; ld.param.u64 y, [py];"         \
  " mov.u32 i, %ctaid.x; mov.u32 v, %ntid.x; mov.u32 w, %tid.x;"               \
  " mad.lo.u32 i, i, v, w; mul.wide.u32 n, i, 4; add.u64 t, t, n;"             \
  " ld.global.u32 o, [t]; cvt.u64.u32 n, o; add.u64 x, x, n; add.u64 y, y, n;" \
  " and.b32 v, o, 32; setp.eq.u32 q, v, 0; mov.u32 v, 1;\n"
#define END " ret; }\n"

/* clang-format off */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    BEGIN("bytes") "ld.global.u8 h, [x+3]; st.global.u8 [y+5], h;" END
    BEGIN("words") "ld.global.u32 v, [x]; st.global.u32 [y], v;" END
    BEGIN("pairs") "ld.global.v2.u32 {v,w}, [x]; st.global.v2.u32 [y+8], {v,w};"
    END
    BEGIN("quads") "ld.global.v4.u32 {v,w,v,w}, [x];"
    " @q st.global.v4.u32 [y], {v,w,v,w};" END
    BEGIN("atomics") "atom.global.add.u32 v, [x], 1; red.global.max.u32 [y], 4;"
    END
    BEGIN("ordered") "ld.volatile.global.u32 v, [x]; st.release.gpu.global.u32"
    " [y], v;" END
    BEGIN("generic") "ld.u32 v, [x]; @!q st.u32 [y], v;" END
    BEGIN("copies") "and.b32 w, i, 63; mul.lo.u32 w, w, 16; mov.u32 v, s;"
    " add.u32 v, v, w; cp.async.ca.shared.global [v], [x], 16;"
    " @q cp.async.ca.shared.global [v], [y], 8, 5; cp.async.wait_all;" END
    BEGIN("faults") "ld.global.u32 v, [x]; st.global.u32 [y+400000000], v;" END;
/* clang-format on */

typedef struct seen {
  uint8_t access[3][BYTES + 64]; /* by memory */
  uint32_t calls, pieces;
  bool sorted;
} seen;

static seen told;
static uint64_t bases[3];

static void touched(void *data, tps_op *op, tps_op *graph,
                    const tps_touch *touches, uint32_t count) {
  seen *s = data;
  assert_non_null(op);
  assert_null(graph);
  s->calls++;
  s->pieces = count;
  for (uint32_t k = 0; k < count; k++) {
    const tps_touch *t = &touches[k];
    unsigned of = t->first - bases[0] < BYTES   ? 0
                  : t->first - bases[1] < BYTES ? 1
                                                : 2;
    uint64_t first = t->first - bases[of];
    assert_true(first < BYTES);
    assert_int_equal(t->memory, 0);
    assert_true(t->bytes > 0 && first + t->bytes <= BYTES);
    for (uint64_t b = 0; b < t->bytes; b++) {
      assert_int_equal(s->access[of][first + b], 0);
      s->access[of][first + b] = t->access & TPS_ACCESS_BOTH;
    }
    if (k > 0) s->sorted &= t[-1].first + t[-1].bytes <= t->first;
  }
}

static tps_watch watch = {
    .wants = TPS_WATCH_TOUCHES, .data = &told, .touched = touched};

typedef struct machine {
  tps_sim_space *space;
  tps_sim_code *code;
  tps_sim_allocation *memory[3]; /* table, x, y */
  tps_error err;
} machine;

static void print(void *context, const char *s, size_t size) {
  (void)context, (void)s, (void)size;
}

static void load(machine *m) {
  tps_ptx_module *module = NULL;
  assert_int_equal(tps_sim_space_new(1u << 30, &m->space, &m->err), 0);
  if (tps_ptx_parse(text, strlen(text), &module, &m->err))
    fail_msg("%s", m->err.message);
  assert_int_equal(
      tps_sim_code_new(module, m->space, 80, false, &m->code, &m->err), 0);
  for (unsigned k = 0; k < 3; k++) {
    assert_int_equal(tps_sim_allocate(m->space, BYTES, TPS_SIM_DEVICE_MEMORY,
                                      &m->memory[k], &m->err),
                     0);
    bases[k] = m->memory[k]->base;
  }
}

static int run(machine *m, const char *name, uint64_t seed) {
  uint64_t params[3];
  tps_sim_launch *launch;
  tps_sim_launch_config c = {.multiprocessors = 4, .seed = seed};
  for (unsigned k = 0; k < 3; k++) params[k] = m->memory[k]->base;
  c.print = print;
  c.op = tps_op_new();
  c.shape = (tps_launch){.grid = {BLOCKS, 1, 1},
                         .block = {THREADS, 1, 1},
                         .params = params,
                         .param_bytes = sizeof params};
  if (tps_sim_code_kernel(m->code, name, &c.kernel, &m->err) ||
      tps_sim_launch_new(m->space, &c, &launch, &m->err))
    fail_msg("%s", m->err.message);
  tps_sim_outcome how = TPS_SIM_DONE;
  for (uint64_t k = 0; k < BLOCKS && how != TPS_SIM_FAULT; k++) {
    tps_sim_block *block = tps_sim_block_new(launch, k);
    do how = tps_sim_block_run(block, 100000);
    while (how == TPS_SIM_SLICE || how == TPS_SIM_YIELD);
    tps_sim_block_destroy(block);
  }
  tps_sim_launch_tell(launch, NULL);
  tps_sim_launch_destroy(launch);
  tps_op_unref(c.op);
  return how;
}

/* What a kernel does at the offset of each thread. */
typedef struct doing {
  const char *name;
  uint32_t step; /* offsets are multiples of it */
  struct {
    uint8_t memory, access, at, bytes;
    int8_t when; /* 0 always, 1 if the guard holds, -1 if not */
  } of[2];
} doing;

static const doing all[] = {
    {"bytes", 1, {{1, 1, 3, 1, 0}, {2, 2, 5, 1, 0}}},
    {"words", 4, {{1, 1, 0, 4, 0}, {2, 2, 0, 4, 0}}},
    {"pairs", 8, {{1, 1, 0, 8, 0}, {2, 2, 8, 8, 0}}},
    {"quads", 16, {{1, 1, 0, 16, 0}, {2, 2, 0, 16, 1}}},
    {"atomics", 4, {{1, 3, 0, 4, 0}, {2, 3, 0, 4, 0}}},
    {"ordered", 4, {{1, 1, 0, 4, 0}, {2, 2, 0, 4, 0}}},
    {"generic", 4, {{1, 1, 0, 4, 0}, {2, 2, 0, 4, -1}}},
    {"copies", 16, {{1, 1, 0, 16, 0}, {2, 1, 0, 5, 1}}},
};

static void expect(const doing *d, const uint32_t *table, seen *s) {
  memset(s, 0, sizeof *s);
  memset(s->access[0], TPS_ACCESS_READ, THREADS * BLOCKS * 4);
  for (unsigned t = 0; t < THREADS * BLOCKS; t++)
    for (unsigned k = 0; k < 2; k++) {
      bool guard = (table[t] & 32) == 0;
      if (d->of[k].when && (d->of[k].when > 0) != guard) continue;
      for (unsigned b = 0; b < d->of[k].bytes; b++)
        s->access[d->of[k].memory][table[t] + d->of[k].at + b] |=
            d->of[k].access;
    }
}

static void fill_table(machine *m, unsigned round, uint32_t step) {
  uint32_t *table = (uint32_t *)(void *)m->memory[0]->host;
  uint32_t most = (BYTES - 64) / step;
  for (unsigned t = 0; t < THREADS * BLOCKS; t++) {
    uint32_t n = round == 0   ? t
                 : round == 1 ? 7
                 : round == 2 ? 3 * t
                              : (uint32_t)rand();
    table[t] = n % most * step;
  }
}

static void test_touches(void **state) {
  (void)state;
  machine m = {0};
  static seen expected;
  load(&m);
  tps_watch_add(&watch);
  srand(11);
  for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
    for (unsigned round = 0; round < 6; round++) {
      memset(&told, 0, sizeof told);
      told.sorted = true;
      fill_table(&m, round, all[k].step);
      expect(&all[k], (const uint32_t *)(const void *)m.memory[0]->host,
             &expected);
      assert_int_equal(run(&m, all[k].name, round % 2 ? 77 : 0), TPS_SIM_DONE);
      assert_int_equal(told.calls, 1);
      assert_true(told.sorted);
      for (unsigned n = 0; n < 3; n++)
        if (memcmp(told.access[n], expected.access[n], BYTES) != 0)
          fail_msg("%s, round %u: memory %u", all[k].name, round, n);
      if (round == 0 && all[k].of[1].when == 0)
        assert_true(told.pieces <= 3); /* one a buffer */
    }
  tps_watch_remove(&watch);
  tps_sim_code_destroy(m.code);
  tps_sim_space_destroy(m.space);
}

/* What was touched before a fault is told; nobody is told of what nobody
 * watches. */
static void test_ends(void **state) {
  (void)state;
  machine m = {0};
  load(&m);
  memset(&told, 0, sizeof told);
  fill_table(&m, 0, 4);
  assert_int_equal(run(&m, "words", 0), TPS_SIM_DONE);
  assert_int_equal(told.calls, 0);
  tps_watch_add(&watch);
  assert_int_equal(run(&m, "faults", 0), TPS_SIM_FAULT);
  assert_int_equal(told.calls, 1);
  assert_int_equal(told.access[1][4], TPS_ACCESS_READ);
  assert_int_equal(told.access[2][4], 0);
  tps_watch_remove(&watch);
  tps_sim_code_destroy(m.code);
  tps_sim_space_destroy(m.space);
}

static char found_text[1000];
static unsigned found_count;

static void found(void *data, const tps_finding *finding) {
  (void)data;
  assert_int_equal(finding->check, TPS_WATCH_RACE);
  snprintf(found_text, sizeof found_text, "%s", finding->text);
  found_count++;
}

/* Where there is no room to follow all that a launch touches, that is told. */
static void test_limit(void **state) {
  (void)state;
  tps_watch races = {.wants = TPS_WATCH_RACE, .found = found};
  uint64_t most = tps_sim_race_most;
  machine m = {0};
  load(&m);
  tps_watch_add(&races);
  fill_table(&m, 0, 4);
  assert_int_equal(run(&m, "words", 0), TPS_SIM_DONE);
  assert_int_equal(found_count, 0);
  tps_sim_race_most = 16384;
  assert_int_equal(run(&m, "words", 0), TPS_SIM_DONE);
  assert_int_equal(found_count, 1);
  assert_string_equal(found_text,
                      "Race check incomplete in kernel words\n"
                      "    It touches more memory than can be followed: 0 MiB "
                      "are kept for the marks of a launch\n");
  tps_sim_race_most = most;
  tps_watch_remove(&races);
  tps_sim_code_destroy(m.code);
  tps_sim_space_destroy(m.space);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_touches),
      cmocka_unit_test(test_ends),
      cmocka_unit_test(test_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
