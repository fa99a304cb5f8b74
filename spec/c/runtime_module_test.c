/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Modules, kernels and launches of the runtime against a device that judges every
 * call: nothing is unloaded that may still run. */
#include "world.h"

static void fidelity_needs_ptx(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,");
  const tps_fidelity *f;
  assert_int_equal(tps_module_fidelity(module, &f, &w->err), TPS_NOT_SUPPORTED);
  assert_string_equal(w->err.message,
                      "fidelity is told from PTX, this module is a binary "
                      "image (CUBIN or fatbin)");
  tps_module_unref(module);
  close_world(w);
}

static void modules_outlive_what_runs(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,scale,");
  tps_kernel *kernel = kernel_of(w, module, "saxpy");
  tps_memory *m = allocate(w, 0, 64);
  OK(launch(w, 0, kernel, m));
  tps_module_close(module);
  assert_int_equal(launch(w, 0, kernel, m), TPS_MISUSE);
  assert_string_equal(w->err.message, "attempt to use a closed kernel");
  tps_module_unref(module);
  tps_kernel_free(kernel);
  tps_context_reclaim(w->context);
  assert_int_equal(w->fake->unloads, 0);
  fake_finish(w->device);
  tps_context_reclaim(w->context);
  assert_int_equal(w->fake->unloads, 1);
  tps_memory_unref(m);
  close_world(w);
}

static void variables_keep_their_module(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,");
  tps_memory *table;
  const tps_global_desc *desc;
  OK(tps_module_global(module, w->device, "table", &table, &desc, &w->err));
  assert_int_equal(desc->size, 4);
  assert_int_equal(
      tps_module_global(module, w->device, "tabel", &table, &desc, &w->err),
      TPS_NOT_FOUND);
  tps_module_close(module);
  tps_module_unref(module);
  tps_context_reclaim(w->context);
  assert_int_equal(w->fake->unloads, 0);
  tps_memory_unref(table);
  tps_context_reclaim(w->context);
  assert_int_equal(w->fake->unloads, 1);
  close_world(w);
}

static void kernels_are_found_by_name(void **state) {
  world *w = *state;
  tps_module *module = load(w, "_Z5scalePfi,saxpy,_Z5scalePdi,_ZN2ns5innerEv,");
  tps_kernel *kernel;
  assert_int_equal(tps_kernel_find(module, "sapxy", &kernel, &w->err),
                   TPS_NOT_FOUND);
  assert_non_null(strstr(w->err.message,
                         "no kernel 'sapxy' in the module (it has 'saxpy'"));
  assert_int_equal(tps_kernel_find(module, "scale", &kernel, &w->err),
                   TPS_NOT_FOUND);
  assert_non_null(strstr(w->err.message, "'scale(float*, int)'"));
  assert_non_null(strstr(w->err.message, "'scale(double*, int)'"));
  tps_kernel_free(kernel_of(w, module, "scale( float* ,int )"));
  tps_kernel_free(kernel_of(w, module, "_Z5scalePdi"));
  tps_kernel_free(kernel_of(w, module, "ns::inner"));
  tps_kernel_free(kernel_of(w, module, "inner"));
  tps_module_unref(module);
  close_world(w);
}

static void expect_limit(world *w, tps_kernel *kernel, tps_shape shape,
                         int code, const char *text) {
  tps_prepared prepared;
  assert_int_equal(
      tps_launch_prepare(kernel, w->device, &shape, &prepared, &w->err), code);
  if (strstr(w->err.message, text) == NULL)
    fail_msg("'%s' is not in '%s'", text, w->err.message);
}

static void limits_name_the_bound(void **state) {
  world *w = *state;
  tps_module *module = load(w, "saxpy,greedy,");
  tps_kernel *k = kernel_of(w, module, "saxpy");
  tps_kernel *greedy = kernel_of(w, module, "greedy");
#define SHAPE(...) ((tps_shape){__VA_ARGS__})
  expect_limit(w, k, SHAPE(.grid = {1, 1, 1}, .block = {2048, 1, 1}), 1,
               "kernel 'saxpy': block of 2048 threads (this kernel allows "
               "1024)");
  expect_limit(w, k, SHAPE(.grid = {0, 1, 1}, .block = {1, 1, 1}), 1,
               "grid of 0 blocks in x (at least 1)");
  expect_limit(w, k, SHAPE(.grid = {1, 65536, 1}, .block = {1, 1, 1}), 1,
               "grid of 65536 blocks in y (this device allows 65535)");
  expect_limit(w, k, SHAPE(.grid = {1, 1, 1}, .block = {1, 1, 65}), 1,
               "block of 65 threads in z (this device allows 64)");
  expect_limit(
      w, k,
      SHAPE(.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = 166912 - 1023), 1,
      "1024 bytes of static and 165889 of dynamic shared memory (this "
      "device allows 166912 a block)");
  expect_limit(w, greedy, SHAPE(.grid = {1, 1, 1}, .block = {1024, 1, 1}), 701,
               "128 registers a thread for 1024 threads");
  expect_limit(
      w, k,
      SHAPE(.grid = {9, 1, 1}, .block = {1024, 1, 1}, .cooperative = true), 720,
      "cooperative grid of 9 blocks (8 fit at once)");
  expect_limit(
      w, k, SHAPE(.grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = {2, 1, 1}),
      801, "clusters need compute capability 9.0");
  int64_t best;
  OK(tps_kernel_best_block(k, w->device, &best, &w->err));
  assert_int_equal(best, 1024);
  int blocks;
  OK(tps_kernel_occupancy(k, w->device, 1025, 0, &blocks, &w->err));
  assert_int_equal(blocks, 0);
  tps_kernel_free(k);
  tps_kernel_free(greedy);
  tps_module_unref(module);
  close_world(w);
}

static void images_are_told_apart(void **state) {
  world *w = *state;
  tps_module *module;
  const struct {
    const char *bytes;
    size_t size;
    const char *text;
  } bad[] = {{"", 0, "empty"},
             {"hello world, this", 17, "begins with 'hello world, thi'"},
             {"\x01\x02\x03", 3, "begins with 01 02 03"},
             {"\177ELF\2\1", 6, "a CUBIN that is truncated"},
             {"\x50\xed\x55\xba\1\0\x10\0\xff\0\0\0\0\0\0\0", 16,
              "a fatbin that is truncated"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(tps_module_load(w->context, w->device, bad[i].bytes,
                                     bad[i].size, false, &module, &w->err),
                     TPS_INVALID_IMAGE);
    if (strstr(w->err.message, bad[i].text) == NULL)
      fail_msg("'%s' is not in '%s'", bad[i].text, w->err.message);
  }
  close_world(w);
}

static void other_devices_memory_is_refused(void **state) {
  world *w = *state;
  tps_stream *far;
  tps_memory *m, *pinned;
  OK(tps_stream_default(w->context, w->peer, &far, &w->err));
  OK(tps_memory_allocate(far, 64, &m, &w->err));
  OK(tps_memory_pin(w->context, w->peer, 64, false, &pinned, &w->err));
  tps_module *module = load(w, "saxpy,");
  tps_kernel *kernel = kernel_of(w, module, "saxpy");
  assert_int_equal(launch(w, 0, kernel, m), TPS_MISUSE);
  assert_non_null(strstr(w->err.message, "no peer access"));
  OK(launch(w, 0, kernel, pinned));
  w->fake->peer = true;
  OK(launch(w, 0, kernel, m));
  tps_memory_unref(m);
  tps_memory_unref(pinned);
  assert_int_equal(FAKE(w->peer)->frees, 0);
  fake_finish(w->device);
  assert_int_equal(FAKE(w->peer)->frees, 1);
  tps_kernel_free(kernel);
  tps_module_unref(module);
  close_world(w);
  assert_int_equal(FAKE(w->peer)->crimes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      on_cuda(fidelity_needs_ptx),
      on_cuda(modules_outlive_what_runs),
      on_cuda(variables_keep_their_module),
      on_cuda(kernels_are_found_by_name),
      on_cuda(limits_name_the_bound),
      on_cuda(images_are_told_apart),
      on_cuda(other_devices_memory_is_refused),
  };
  return cmocka_run_group_tests_name("runtime module", tests, NULL, NULL);
}
