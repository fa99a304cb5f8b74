/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The engine by itself, on PTX written here: lanes that part and meet,
 * barriers, calls, faults and their words, budgets, seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/intern.h"
#include "sim/engine.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
/* y: where this thread's word of the output is; t: its number. */
#define BEGIN(name)                                                            \
  ".visible .entry " name "(.param .u64 p) { .reg .b64 y; .reg .b32 t, v, w;"  \
  " .reg .pred q; ld.param.u64 y, [p]; mov.u32 t, %tid.x;"                     \
  " mad.wide.u32 y, t, 4, y; mov.u32 v, 0;\n"
#define END " st.global.u32 [y], v; ret; }\n"

typedef struct machine {
  tps_sim_space *space;
  tps_sim_code *code;
  tps_sim_allocation *out;
  tps_error err;
  char printed[4096];
  uint64_t seed, budget;
} machine;

static int load(machine *m, const char *text) {
  tps_ptx_module *module = NULL;
  memset(m, 0, sizeof *m);
  assert_int_equal(tps_sim_space_new(1u << 30, &m->space, &m->err), 0);
  int code = tps_ptx_parse(text, strlen(text), &module, &m->err);
  if (code) fail_msg("%s", m->err.message);
  assert_int_equal(
      tps_sim_allocate(m->space, 4096, TPS_SIM_DEVICE_MEMORY, &m->out, &m->err),
      0);
  m->out->source = tps_intern("test.lua", 8);
  m->out->line = 3;
  memset(m->out->host, 0, 4096);
  return tps_sim_code_new(module, m->space, 80, false, &m->code, &m->err);
}

static void unload(machine *m) {
  tps_sim_code_destroy(m->code);
  tps_sim_space_destroy(m->space);
}

static void print(void *context, const char *text, size_t size) {
  machine *m = context;
  size_t used = strlen(m->printed);
  assert_true(used + size < sizeof m->printed);
  memcpy(m->printed + used, text, size);
}

static int run_at(machine *m, const char *name, uint32_t blocks,
                  uint32_t threads, uint64_t address) {
  tps_sim_launch_config c = {
      .seed = m->seed,
      .budget = m->budget,
      .multiprocessors = 4,
      .print = print,
      .print_context = m,
  };
  tps_sim_launch *launch;
  c.op = tps_op_new();
  c.op->source = tps_intern("test.lua", 8);
  c.op->line = 8;
  c.shape = (tps_launch){.grid = {blocks, 1, 1},
                         .block = {threads, 1, 1},
                         .params = &address,
                         .param_bytes = 8};
  assert_int_equal(tps_sim_code_kernel(m->code, name, &c.kernel, &m->err), 0);
  assert_int_equal(tps_sim_launch_new(m->space, &c, &launch, &m->err), 0);
  tps_sim_outcome how = TPS_SIM_DONE;
  for (uint64_t k = 0; k < tps_sim_launch_blocks(launch); k++) {
    tps_sim_block *block = tps_sim_block_new(launch, k);
    do how = tps_sim_block_run(block, 100000);
    while (how == TPS_SIM_SLICE || how == TPS_SIM_YIELD);
    tps_sim_block_destroy(block);
    if (how == TPS_SIM_FAULT) break;
  }
  if (how == TPS_SIM_FAULT) tps_sim_launch_fault(launch, &m->err);
  tps_sim_launch_destroy(launch);
  tps_op_unref(c.op);
  return how == TPS_SIM_FAULT ? m->err.code : 0;
}

static const uint32_t *run(machine *m, const char *name, uint32_t threads) {
  memset(m->out->host, 0, 4096);
  if (run_at(m, name, 1, threads, m->out->base)) fail_msg("%s", m->err.message);
  return (const uint32_t *)(const void *)m->out->host;
}

static void expect_fault(machine *m, const char *name, uint32_t threads,
                         uint64_t address, int code, const char *words) {
  int got = run_at(m, name, 1, threads, address);
  if (got != code || !strstr(m->err.message, words))
    fail_msg("%s: %d %s", name, got, got ? m->err.message : "no fault");
  assert_string_equal(m->err.kernel, name);
  assert_string_equal(m->err.where, "test.lua:8");
}

/* --- lanes ------------------------------------------------------------------
 */

/* clang-format off */
static const char lanes[] = HEAD
    /* a shuffle in both arms of a branch */
    BEGIN("arms") "and.b32 w, t, 4; setp.eq.u32 q, w, 0; @q bra E;"
    " shfl.sync.bfly.b32 v, t, 4, 0x1f, -1; add.u32 v, v, 100; bra D;"
    " E: shfl.sync.bfly.b32 v, t, 4, 0x1f, -1; D:" END
    /* lane 0 waits for lane 31; with a seed shared memory begins as garbage */
    BEGIN("wait") ".shared .b32 s; st.volatile.shared.u32 [s], 0; bar.sync 0;"
    " setp.eq.u32 q, t, 31; @q bra W;"
    " setp.ne.u32 q, t, 0; @q bra D;"
    " L: ld.volatile.shared.u32 v, [s]; setp.eq.u32 q, v, 0; @q bra L; bra D;"
    " W: st.volatile.shared.u32 [s], 7; D:" END
    /* a lock that every lane takes once */
    BEGIN("lock") ".shared .b32 s[2]; .reg .b32 n;"
    " st.volatile.shared.u32 [s], 0; st.volatile.shared.u32 [s+4], 0;"
    " bar.sync 0; L: atom.shared.cas.b32 v, [s], 0, 1; setp.ne.u32 q, v, 0; @q bra L;"
    " ld.volatile.shared.u32 n, [s+4]; add.u32 n, n, 1;"
    " st.volatile.shared.u32 [s+4], n; atom.shared.exch.b32 v, [s], 0;"
    " bar.sync 0; ld.shared.u32 v, [s+4];" END
    /* threads that leave early do not hold the others up */
    BEGIN("early") "setp.ge.u32 q, t, 40; @q ret; bar.sync 0;"
    " mov.u32 v, 5;" END
    BEGIN("popc") "setp.lt.u32 q, t, 10; bar.red.popc.u32 v, 0, q;" END;
/* clang-format on */

static void test_lanes(void **state) {
  (void)state;
  machine m;
  assert_int_equal(load(&m, lanes), 0);
  for (m.seed = 0; m.seed < 6; m.seed++) {
    const uint32_t *v = run(&m, "arms", 32);
    for (uint32_t t = 0; t < 32; t++)
      assert_int_equal(v[t], (t ^ 4) + (t & 4 ? 100 : 0));
    assert_int_equal(run(&m, "wait", 32)[0], 7);
    assert_int_equal(run(&m, "lock", 96)[95], 96);
    v = run(&m, "early", 64);
    assert_int_equal(v[39], 5);
    assert_int_equal(v[40], 0);
    assert_int_equal(run(&m, "popc", 64)[63], 10);
  }
  unload(&m);
}

/* --- faults ------------------------------------------------------------------
 */

/* clang-format off */
static const char faults[] = HEAD
    ".const .b32 k = 5;\n"
    ".func (.param .b32 r) deep(.param .b32 a) { .reg .b32 x;"
    " .local .b8 d[256]; ld.param.u32 x, [a]; { .param .b32 i, o;"
    " st.param.b32 [i], x; call (o), deep, (i); ld.param.b32 x, [o]; }"
    " st.param.b32 [r], x; ret; }\n"
    BEGIN("store") END
    BEGIN("constant") "mov.u64 y, k;" END
    BEGIN("shared") ".shared .b32 s[4]; st.shared.u32 [s+16], v;" END
    BEGIN("local") ".local .b32 s[4]; st.local.u32 [s+16], v;" END
    BEGIN("stack") "{ .param .b32 i, o; st.param.b32 [i], t;"
    " call (o), deep, (i); }" END
    BEGIN("trap") "trap;" END
    BEGIN("apart") "and.b32 w, t, 1; setp.eq.u32 q, w, 0; @q bra E;"
    " bar.sync 0; bra D; E: bar.sync 0; D:" END
    BEGIN("stuck") "setp.eq.u32 q, t, 3; @q bra E; bar.sync 1, 64; bra D;"
    " E: bar.warp.sync -1; D:" END
    BEGIN("spin") "L: bra L;" END
    BEGIN("jump") ".reg .b64 f; mov.u64 f, 0; P: .callprototype _ ();"
    " call f, (), P;" END;
/* clang-format on */

static void test_faults(void **state) {
  (void)state;
  machine m;
  assert_int_equal(load(&m, faults), 0);
  uint64_t at = m.out->base;
  char text[200];
  snprintf(text, sizeof text,
           "thread (1,0,0), PTX line 7: store of 4 bytes at address 0x%llx: 1 "
           "byte after the nearest allocation at 0x%llx of 4096 bytes, made at "
           "test.lua:3",
           (unsigned long long)at + 4096, (unsigned long long)at);
  expect_fault(&m, "store", 8, at + 4092, TPS_ILLEGAL_ADDRESS, text);
  expect_fault(&m, "store", 8, 0, TPS_ILLEGAL_ADDRESS, "a null pointer");
  expect_fault(&m, "store", 8, at + 2, TPS_MISALIGNED_ADDRESS, "misaligned");
  expect_fault(&m, "constant", 1, at, TPS_ILLEGAL_ADDRESS, "read-only");
  expect_fault(&m, "shared", 1, at, TPS_ILLEGAL_ADDRESS, "16 bytes of shared");
  expect_fault(&m, "local", 1, at, TPS_ILLEGAL_ADDRESS, "16 bytes of local");
  expect_fault(&m, "stack", 1, at, TPS_ILLEGAL_ADDRESS, "stack overflow");
  expect_fault(&m, "trap", 1, at, TPS_LAUNCH_FAILED, "trap");
  expect_fault(&m, "apart", 32, at, TPS_LAUNCH_FAILED, "can never meet");
  expect_fault(&m, "stuck", 64, at, TPS_LAUNCH_FAILED, "deadlock");
  expect_fault(&m, "jump", 1, at, TPS_ILLEGAL_ADDRESS, "null pointer");
  m.budget = 10000;
  expect_fault(&m, "spin", 1, at, TPS_LAUNCH_TIMEOUT, "budget of 10000");
  m.budget = 0;
  tps_sim_free(m.space, m.out, tps_intern("test.lua", 8), 11);
  expect_fault(&m, "store", 8, at, TPS_ILLEGAL_ADDRESS,
               "was freed at test.lua:11");
  unload(&m);
}

static void test_refusal(void **state) {
  (void)state;
  machine m;
  int code = load(&m, HEAD ".visible .entry k() { .reg .b32 a;\n"
                           " wgmma.fence.sync.aligned; ret; }");
  assert_int_equal(code, TPS_NOT_SUPPORTED);
  assert_string_equal(
      m.err.message,
      "instruction 'wgmma.fence.sync.aligned' is not supported by "
      "the simulated device (PTX line 5)");
  tps_sim_space_destroy(m.space);
  code = load(&m, ".version 8.0\n.target sm_90\n.address_size 64\n"
                  ".visible .entry k() { ret; }");
  assert_int_equal(code, TPS_NO_BINARY_FOR_GPU);
  tps_sim_space_destroy(m.space);
}

/* --- printing ----------------------------------------------------------------
 */

static const char prints[] = HEAD
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .b8 text[] = {37, 53, 100, 124, 37, 45, 52, 100, 124, 37, 46, 50,"
    " 102, 37, 37, 10, 0};\n"
    ".visible .entry say() { .reg .b64 f, a; .local .align 8 .b8 d[16];"
    " mov.u64 a, d; st.local.u32 [a], -42; st.local.u32 [a+4], 7;"
    " st.local.f64 [a+8], 0d4004000000000000; cvta.local.u64 a, a;"
    " mov.u64 f, text; cvta.global.u64 f, f; { .param .b64 i, j;"
    " .param .b32 o; st.param.b64 [i], f; st.param.b64 [j], a;"
    " call (o), vprintf, (i, j); } ret; }\n";

static void test_prints(void **state) {
  (void)state;
  machine m;
  assert_int_equal(load(&m, prints), 0);
  assert_int_equal(run_at(&m, "say", 1, 2, 0), 0);
  assert_string_equal(m.printed, "  -42|7   |2.50%\n  -42|7   |2.50%\n");
  unload(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_refusal),
      cmocka_unit_test(test_prints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
