/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Replays the corpora of the fuzz targets (spec/fuzz), and changes each of
 * their texts a few times. What the sanitizers would see fails the test in a
 * sanitized build; elsewhere it is a crash or nothing. Each input that once did
 * harm is among them. */
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fuzz/fuzz.h"

enum { MOST_TEXTS = 1024, ROOM = 16384, CHANGES = 100 };

typedef struct corpus {
  uint8_t *texts[MOST_TEXTS];
  size_t sizes[MOST_TEXTS];
  unsigned count;
} corpus;

static void add_file(corpus *c, const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_true(c->count < MOST_TEXTS);
  uint8_t *text = malloc(ROOM);
  c->sizes[c->count] = fread(text, 1, ROOM, file);
  c->texts[c->count++] = text;
  fclose(file);
}

/* The files of spec/fuzz/corpus/<name> and, as the compiler made them, those of
 * spec/ptx that are not too large. */
static void add_folder(corpus *c, const char *folder) {
  char path[PATH_MAX];
  const char *source = getenv("TPS_SOURCE");
  snprintf(path, sizeof path, "%s/%s", source ? source : ".", folder);
  DIR *dir = opendir(path);
  if (dir == NULL) {
    fail_msg("no folder %s", path);
    return;
  }
  /* cppcheck-suppress readdirCalled; nobody else reads this directory stream */
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s/%s", source ? source : ".", folder,
             e->d_name);
    add_file(c, path);
  }
  closedir(dir);
}

static void clear(corpus *c) {
  while (c->count > 0) free(c->texts[--c->count]);
  free(c);
}

/* How many of the corpus a target takes; its texts and their changes. */
static unsigned replay(const corpus *c,
                       bool (*target)(const uint8_t *, size_t)) {
  unsigned taken = 0;
  uint8_t *changed = malloc(ROOM);
  for (unsigned k = 0; k < c->count; k++) {
    taken += target(c->texts[k], c->sizes[k]);
    for (unsigned seed = 0; seed < CHANGES; seed++) {
      memcpy(changed, c->texts[k], c->sizes[k]);
      size_t size = tps_fuzz_mutate(changed, c->sizes[k], ROOM, seed);
      target(changed, size);
    }
  }
  free(changed);
  return taken;
}

static void reader_corpus(void **state) {
  (void)state;
  corpus *c = calloc(1, sizeof *c);
  add_folder(c, "spec/fuzz/corpus/reader");
  assert_true(c->count > 0);
  replay(c, tps_fuzz_reader);
  clear(c);
}

static void runner_corpus(void **state) {
  (void)state;
  corpus *c = calloc(1, sizeof *c);
  add_folder(c, "spec/fuzz/corpus/runner");
  unsigned finds = replay(c, tps_fuzz_runner);
  assert_true(finds > 0);
  clear(c);
}

static void compiled_kernels(void **state) {
  (void)state;
  corpus *c = calloc(1, sizeof *c);
  add_folder(c, "spec/ptx");
  assert_true(replay(c, tps_fuzz_runner) > 10);
  clear(c);
}

/* Changes stay within their room, whatever they are given. */
static void mutations(void **state) {
  (void)state;
  uint8_t text[64];
  for (unsigned seed = 0; seed < 2000; seed++) {
    size_t size = seed % 40, room = 40 + seed % 20;
    for (size_t i = 0; i < sizeof text; i++)
      text[i] = (uint8_t) "%r1 .u32;{@p 0x9}"[(seed * 7 + i * i) % 17];
    memset(text + room, 0xaa, sizeof text - room);
    assert_true(tps_fuzz_mutate(text, size, room, seed) <= room);
    for (size_t i = room; i < sizeof text; i++) assert_int_equal(text[i], 0xaa);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reader_corpus),
      cmocka_unit_test(runner_corpus),
      cmocka_unit_test(compiled_kernels),
      cmocka_unit_test(mutations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
