/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Jobs and builds as bytes: all of them comes back, and no damage does harm; and
 * what an untrusted request may ask for and read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rtc/pack.h"
#include "rtc/parts.h"

static void add(tps_strings *list, const char *text) {
  assert_true(tps_strings_add(list, text));
}

static void same(const tps_strings *a, const tps_strings *b) {
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; i++)
    assert_string_equal(a->items[i], b->items[i]);
}

/* ---- builds -------------------------------------------------------------- */

static tps_rtc_build example(void) {
  tps_rtc_build b = {.result = 0,
                     .log = strdup("a log\n"),
                     .ptx = strdup(".version 8.0"),
                     .ptx_size = 12,
                     .cubin = strdup("\177ELF."),
                     .cubin_size = 5};
  add(&b.lowered, "_Z1k");
  add(&b.lowered, "");
  add(&b.typed, "k");
  add(&b.types, "FvifE");
  return b;
}

static void builds(void **state) {
  (void)state;
  tps_rtc_build b = example(), back;
  tps_packer p = {0};
  tps_build_pack(&p, &b);
  assert_false(p.failed);
  tps_unpacker u = {p.bytes, p.bytes + p.size, false};
  assert_true(tps_build_unpack(&u, &back));
  assert_string_equal(back.log, b.log);
  assert_string_equal(back.ptx, b.ptx);
  assert_int_equal(back.ptx_size, b.ptx_size);
  assert_memory_equal(back.cubin, b.cubin, b.cubin_size);
  same(&back.lowered, &b.lowered);
  same(&back.typed, &b.typed);
  same(&back.types, &b.types);
  tps_rtc_build_free(&back);
  for (size_t n = 0; n < p.size; n++) {
    tps_unpacker less = {p.bytes, p.bytes + n, false};
    assert_false(tps_build_unpack(&less, &back));
    assert_null(back.log);
  }
  tps_rtc_build_free(&b);
  free(p.bytes);
}

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* Bytes changed at random: read without harm, whatever comes of it. */
static void damaged_builds(void **state) {
  (void)state;
  uint32_t seed = 7;
  tps_rtc_build b = example();
  tps_packer p = {0};
  tps_build_pack(&p, &b);
  for (int round = 0; round < 20000; round++) {
    unsigned char *copy = malloc(p.size);
    tps_rtc_build back;
    memcpy(copy, p.bytes, p.size);
    for (uint32_t k = next_random(&seed) % 4 + 1; k > 0; k--)
      copy[next_random(&seed) % p.size] ^=
          (unsigned char)(1u << next_random(&seed) % 8);
    tps_unpacker u = {copy, copy + p.size, false};
    if (tps_build_unpack(&u, &back)) tps_rtc_build_free(&back);
    free(copy);
  }
  tps_rtc_build_free(&b);
  free(p.bytes);
}

/* ---- jobs ---------------------------------------------------------------- */

static void jobs(void **state) {
  (void)state;
  static const char *const names[] = {"k<1>", "k<2>"};
  static const tps_rtc_header headers[] = {{"a.h", "int a;"}, {"b.h", ""}};
  const tps_rtc_request r = {.source = "int x;",
                             .source_size = 6,
                             .name = "x.cu",
                             .std = "c++17",
                             .names = names,
                             .name_count = 2,
                             .headers = headers,
                             .header_count = 2,
                             .max_memory = 12345,
                             .max_time = 678};
  tps_strings roots = {0}, options = {0}, typed = {0};
  tps_rtc_job job;
  tps_packer p = {0};
  add(&roots, "/inc");
  add(&options, "-arch=compute_80");
  add(&options, "-DX");
  add(&typed, "x");
  tps_job_pack(&p, "/lib/libnvrtc.so", &roots, &r, &options, &typed);
  assert_false(p.failed);
  tps_unpacker u = {p.bytes, p.bytes + p.size, false};
  assert_true(tps_job_unpack(&u, &job));
  assert_string_equal(job.library, "/lib/libnvrtc.so");
  same(&job.roots, &roots);
  same(&job.options, &options);
  same(&job.names, &typed);
  assert_string_equal(job.request.source, r.source);
  assert_int_equal(job.request.source_size, 6);
  assert_string_equal(job.request.name, "x.cu");
  assert_null(job.request.folder);
  assert_string_equal(job.request.std, "c++17");
  assert_int_equal(job.request.name_count, 2);
  assert_string_equal(job.request.names[1], "k<2>");
  assert_int_equal(job.request.header_count, 2);
  assert_string_equal(job.request.headers[0].text, "int a;");
  assert_int_equal(job.request.max_memory, 12345);
  assert_int_equal(job.request.max_time, 678);
  tps_strings_free(&job.roots);
  tps_strings_free(&job.options);
  tps_strings_free(&job.names);
  tps_strings_free(&job.expressions);
  tps_strings_free(&job.owned);
  free(job.headers);
  tps_strings_free(&roots);
  tps_strings_free(&options);
  tps_strings_free(&typed);
  free(p.bytes);
}

/* ---- what is allowed ----------------------------------------------------- */

static void check_option(const char *option, bool allowed) {
  tps_error err;
  const tps_rtc_request r = {.options = &option, .option_count = 1};
  assert_int_equal(tps_rtc_check_untrusted(&r, &err) == 0, allowed);
}

static void options(void **state) {
  (void)state;
  static const char *const good[] = {"-DX",         "-DX=--time=/x",
                                     "-UX",         "--std=c++17",
                                     "-std=c++17",  "-w",
                                     "-arch=sm_80", "--gpu-architecture=sm_80",
                                     "--ftz=true",  "-G"};
  static const char *const bad[] = {"-D",
                                    "-I",
                                    "-I/x",
                                    "--D=X",
                                    "--DX",
                                    "-stdx=1",
                                    "--time",
                                    "-time=x",
                                    "---w",
                                    "w",
                                    "",
                                    "--",
                                    "-",
                                    "-=x",
                                    "--use_fast_mathx",
                                    "@x",
                                    "-Wx",
                                    "--include-path",
                                    "--pch-dir=/x",
                                    "-include",
                                    "--pre-include=x"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    check_option(good[i], true);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    check_option(bad[i], false);
}

static void check_below(const tps_strings *roots, const char *base,
                        const char *path, bool expected) {
  char whole[256];
  snprintf(whole, sizeof whole, "%s/%s", base, path);
  assert_int_equal(tps_rtc_below(roots, whole), expected);
}

static void files(void **state) {
  (void)state;
  char base[] = "/tmp/tps-transfer-XXXXXX", path[256], inc[256];
  assert_non_null(mkdtemp(base));
  static const char *const folders[] = {"inc", "inc/sub", "include", "out"};
  static const char *const plain[] = {"inc/a", "inc/sub/b", "include/c",
                                      "out/d"};
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", base, folders[i]);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s", base, plain[i]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
  }
  snprintf(path, sizeof path, "%s/inc/link", base);
  assert_int_equal(symlink("../out", path), 0);
  snprintf(inc, sizeof inc, "%s/inc", base);
  const char *include = inc;
  const tps_rtc_request r = {.includes = &include, .include_count = 1};
  const tps_compiler compiler = {.major = 13};
  tps_strings roots = {0};
  assert_true(tps_rtc_roots(&compiler, &r, &roots));
  check_below(&roots, base, "inc", true);
  check_below(&roots, base, "inc/a", true);
  check_below(&roots, base, "inc/sub/../sub/b", true);
  check_below(&roots, base, "out/../inc/a", true);
  check_below(&roots, base, "include/c", false); /* begins with a root's name */
  check_below(&roots, base, "out/d", false);
  check_below(&roots, base, "inc/link/d", false);
  check_below(&roots, base, "inc/../out/d", false);
  check_below(&roots, base, "inc/none", false);
  check_below(&roots, base, ".", false);
  tps_strings_free(&roots);
  snprintf(path, sizeof path, "rm -r '%s'", base);
  assert_int_equal(system(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(builds), cmocka_unit_test(damaged_builds),
      cmocka_unit_test(jobs), cmocka_unit_test(options),
      cmocka_unit_test(files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
