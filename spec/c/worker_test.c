/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Threads that build, and the ends of the process and of threads meanwhile. Where
 * there is no NVRTC builds fail, which makes no difference here. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rtc/parts.h"

#define BUILDS 3

static tps_device device = {
    .kind = TPS_SIM,
    .properties = {.capability_major = 8, .capability_minor = 0}};

typedef struct build {
  tps_rtc_pending *job;
  atomic_int *over;
} build;

static void over(void *data) {
  build *b = data;
  atomic_int *count = b->over;
  tps_rtc_pending_free(b->job);
  free(b);
  atomic_fetch_add(count, 1);
}

static void start(const void *owner, atomic_int *count) {
  tps_error err;
  tps_rtc_request request = {.source = "__global__ void k(int *p) { *p = 1; }",
                             .no_cache = true};
  request.source_size = strlen(request.source);
  for (int i = 0; i < BUILDS; i++) {
    build *b = malloc(sizeof *b);
    assert_non_null(b);
    b->over = count;
    assert_int_equal(tps_rtc_prepare(&device, &request, &b->job, &err), 0);
    assert_int_equal(tps_rtc_start(b->job, owner, over, b, &err), 0);
  }
}

/* Before all others: the child's NVRTC is a fresh one. */
static void exits(void **state) {
  static const unsigned delays[] = {0, 3000, 8000, 15000, 25000, 40000};
  static atomic_int count;
  (void)state;
  for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      start(&count, &count);
      usleep(delays[i]);
      exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
}

static void *start_and_end(void *count) {
  start(count, count);
  return NULL;
}

/* Each waits for its own. */
static void threads_end(void **state) {
  pthread_t threads[2];
  atomic_int counts[2];
  (void)state;
  for (int i = 0; i < 2; i++) {
    atomic_init(&counts[i], 0);
    assert_int_equal(
        pthread_create(&threads[i], NULL, start_and_end, &counts[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&counts[i]), BUILDS);
  }
}

/* A child has none of this process's builds, whatever they were about. */
static void forks_end(void **state) {
  atomic_int count;
  int status = -1;
  (void)state;
  atomic_init(&count, 0);
  start(&count, &count);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(30);
    tps_rtc_leave(&count);
    tps_rtc_end();
    _exit(atomic_load(&count) <= BUILDS ? 0 : 1);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  tps_rtc_leave(&count);
  assert_int_equal(atomic_load(&count), BUILDS);
}

static void owners_leave(void **state) {
  atomic_int mine, others;
  (void)state;
  atomic_init(&mine, 0);
  atomic_init(&others, 0);
  start(&others, &others);
  start(&mine, &mine);
  tps_rtc_leave(&mine);
  assert_int_equal(atomic_load(&mine), BUILDS);
  tps_rtc_leave(&others);
  assert_int_equal(atomic_load(&others), BUILDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exits), cmocka_unit_test(threads_end),
      cmocka_unit_test(forks_end), cmocka_unit_test(owners_leave)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
