/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A program's place in a Lua script, for all the ways to write a string. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rtc/rtc.h"

/* Of exactly its size, so that a sanitizer sees a read past the end. */
static char *exact(const char *text) {
  size_t n = strlen(text);
  char *copy = calloc(n > 0 ? n : 1, 1);
  memcpy(copy, text, n);
  return copy;
}

static bool flat; /* of the last one located */

static int locate(const char *script, const char *source, int call_line) {
  char *copy = exact(script);
  int line = tps_rtc_locate(copy, strlen(script), source, strlen(source),
                            call_line, &flat);
  free(copy);
  return line;
}

static void long_strings(void **state) {
  (void)state;
  assert_int_equal(locate("local s = [[\nint x;\n]]", "int x;\n", 1), 2);
  assert_int_equal(locate("local s = [[int x;\n]]", "int x;\n", 1), 1);
  assert_int_equal(locate("f[==[\r\na]]b\r\n]=]c\r\n]==]", "a]]b\n]=]c\n", 1),
                   2);
  assert_int_equal(locate("\n\nf{src=[[\n\nx]]}", "\nx", 3), 4);
  assert_int_equal(locate("x = a[b[1]] y = [[b[1]]]", "b[1]", 1), 0);
  assert_int_equal(locate("x = a[b[1]] y = [[b1]]", "b1", 1), 1);
  assert_int_equal(locate("s = [[never closed", "never closed", 1), 0);
}

static void short_strings(void **state) {
  (void)state;
  assert_int_equal(locate("s = 'a\\nb'", "a\nb", 1), 1);
  assert_int_equal(locate("s = \"a\\\nb\"", "a\nb", 1), 1);
  assert_int_equal(locate("s = \"\\z\n\n  ab\"", "ab", 1), 3);
  assert_int_equal(
      locate("s = '\\x41\\066\\u{20AC}\\t\\\\\\''", "AB\xE2\x82\xAC\t\\'", 1),
      1);
  assert_int_equal(locate("s = '\\u{7FFFFFFF}\\u{7ff}\\u{10000}'",
                          "\xFD\xBF\xBF\xBF\xBF\xBF\xDF\xBF\xF0\x90\x80\x80",
                          1),
                   1);
  assert_int_equal(locate("s = 'open\nt = 'x'", "x", 1), 2);
  assert_int_equal(locate("s = '\\q' t = 'x'", "x", 1), 1);
  assert_int_equal(locate("s = 'x", "x", 1), 0);
  assert_int_equal(locate("s = 'x\\", "x", 1), 0);
  assert_int_equal(locate("s = 'x\\x", "x", 1), 0);
}

static void flat_strings(void **state) {
  (void)state;
  assert_int_equal(locate("\ns = 'a\\nb\\nc'", "a\nb\nc", 1), 2);
  assert_true(flat);
  assert_int_equal(locate("s = 'a\\\nb'", "a\nb", 1), 1);
  assert_false(flat);
  assert_int_equal(locate("s = [[a\nb]]", "a\nb", 1), 1);
  assert_false(flat);
}

/* "line+count@script_line" of each part, with "=" when it is flat. */
static void check_parts(const char *script, const char *source,
                        const char *expected) {
  char *copy = exact(script), *text = exact(source), found[200] = "";
  tps_rtc_part parts[4];
  size_t n = tps_rtc_locate_parts(copy, strlen(script), text, strlen(source),
                                  parts, 4);
  for (size_t i = 0; i < n; i++)
    snprintf(found + strlen(found), sizeof found - strlen(found), "%d+%d@%d%s ",
             parts[i].line, parts[i].count, parts[i].script_line,
             parts[i].flat ? "=" : "");
  free(copy);
  free(text);
  assert_string_equal(found, expected);
}

static void parts(void **state) {
  (void)state;
  check_parts("a = [[\nint abc;\nint def;\n]]\nf(a .. [[\nint ghi;\n]])",
              "int abc;\nint def;\nint ghi;\n", "1+2@2 3+1@6 ");
  check_parts("a = 'int abc;\\nint def;\\n' b = a .. [[int ghi;\nint jkl;]]",
              "int abc;\nint def;\nint ghi;\nint jkl;", "1+2@1= 3+2@1 ");
  /* a line that begins elsewhere */
  check_parts("a = 'int x = '\nb = a .. [[12345678;\nint y;]]",
              "int x = 12345678;\nint y;", "1+1@1= 2+1@3 ");
  check_parts("a = [[1234567]]", "1234567", "");             /* too short */
  check_parts("a = [[12345678]]", "12345678\n12345678", ""); /* twice */
  check_parts("a = [[123456789]]", "12345678", "");
  check_parts("-- [[12345678]]\n", "12345678", "");
  check_parts("a = [[12345678", "12345678", "");
  check_parts("", "12345678", "");
}

static void templates(void **state) {
  (void)state;
#define HEAD "__global__ void op_"
#define FORM "a = [[\n" HEAD "%s(float *x) {\n  x[0] = x[0] %s x[1];\n}]]"
  check_parts(FORM, HEAD "add(float *x) {\n  x[0] = x[0] + x[1];\n}", "1+3@2 ");
  /* twice, what stands between is made elsewhere */
  check_parts(FORM,
              HEAD "a(float *x) {\n  x[0] = x[0] + x[1];\n}\nint y;\n\n" HEAD
                   "b(float *x) {\n  x[0] = x[0] * x[1];\n}",
              "1+3@2 6+3@2 ");
  /* beside a literal that is whole, which comes first */
  check_parts(FORM "b = 'int whole;\\n'",
              "int whole;\n" HEAD "a(float *x) {\n  x[0] = x[0] + x[1];\n}",
              "1+1@4= 2+3@2 ");
  /* lines put into the middle: what is before and behind */
  check_parts(
      "a = [[int first = 1;\nint second = 2;\n$\nint third = 3;\nint "
      "fourth = 4;\n]]",
      "int first = 1;\nint second = 2;\n1;\n2;\n3;\n4;\n5;\nint third = "
      "3;\nint fourth = 4;\n",
      "1+2@1 8+3@4 ");
  /* a line alone, if it is the same and long enough */
  check_parts(
      "a = [[int first = 1;\nint second = 2;\n$\n  int third = 123456;\n}\n]]",
      "int first = 1;\nint second = 2;\n1;\n2;\n3;\n4;\n  int third = 123456;\n}\n",
      "1+2@1 7+3@4 ");
  check_parts(
      "a = [[int first = 1;\nint second = 2;\n$\n  int third = 3;\n}\n]]",
      "int first = 1;\nint second = 2;\n1;\n2;\n3;\n4;\n  int third = 3;\n}\n",
      "1+2@1 ");
  /* of two the one that agrees more; neither where both do alike */
  check_parts(
      "a = [[int one = %d;\nint two = 2;]] b = [[int one = %d;\nint twi = 2;]]",
      "int one = 1;\nint two = 2;", "1+2@1 ");
  check_parts(
      "a = [[int one = %d;\nint two = 2;]] b = [[int one = %d;\nint two = 2;]]",
      "int one = 1;\nint two = 2;", "");
  /* what agrees in little has nothing to do with it */
  check_parts("a = [[" HEAD
              "x(float *x) {\n  float y = 1;\n  for (;;) y *= 2 + y;\n  "
              "x[0] = y + 12345;\n}]]",
              HEAD "a(float *x) {\n  float y = 1;\n}\n", "");
  check_parts("a = 'int one = %d;\\nint two = 2;'",
              "int one = 1;\nint two = 2;", "");
  check_parts("--[[int one = %d;\nint two = 2;]]", "int one = 1;\nint two = 2;",
              "");
}

static void comments(void **state) {
  (void)state;
  assert_int_equal(locate("-- 'x'\ns = 'x'", "x", 1), 2);
  assert_int_equal(locate("--[[ 'x'\n]] s = 'x'", "x", 1), 2);
  assert_int_equal(locate("--[==[ ]] 'x'\n]==]\ns = 'x'", "x", 1), 3);
  assert_int_equal(locate("--[ 'x'\ns = 'x'", "x", 1), 2);
  assert_int_equal(locate("#!/usr/bin/tpstream 'x'\ns = 'x'", "x", 1), 2);
  assert_int_equal(locate("\xEF\xBB\xBF#!'x'\ns = 'x'", "x", 1), 2);
  assert_int_equal(locate("s = '--' t = 'x'", "x", 1), 1);
}

/* A megabyte of source is not searched for thousands of literals. */
static void searches_have_an_end(void **state) {
  (void)state;
  enum { SIZE = 1 << 20, MANY = 200 };
  char *source = malloc(SIZE), *script = malloc(MANY * 32);
  tps_rtc_part found[4];
  assert_true(source != NULL && script != NULL);
  memset(source, 'x', SIZE);
  memcpy(source, "int first;\nint second;\n", 23);
  int n = sprintf(script, "a = 'int first;'\n");
  for (int i = 0; i < MANY; i++)
    n += sprintf(script + n, "b = 'not in it %d'\n", i);
  n += sprintf(script + n, "c = 'int second;'\n");
  assert_int_equal(
      tps_rtc_locate_parts(script, (size_t)n, source, SIZE, found, 4), 1);
  assert_int_equal(found[0].script_line, 1);
  free(source);
  free(script);
}

static void nearest(void **state) {
  (void)state;
  const char *script = "a = 'x'\n\nb = 'x'\n\nf('x')\n\nc = 'x'";
  assert_int_equal(locate(script, "x", 1), 1);
  assert_int_equal(locate(script, "x", 4), 3);
  assert_int_equal(locate(script, "x", 5), 5);
  assert_int_equal(locate(script, "x", 99), 7);
  assert_int_equal(locate("\n\na = 'x'\nb = 'x'", "x", 1), 3);
  assert_int_equal(locate("f(\n[[\nx]])", "x", 1), 3);
}

static void absent(void **state) {
  (void)state;
  assert_int_equal(locate("", "x", 1), 0);
  assert_int_equal(locate("s = 'xy' t = 'y' .. 'x'", "x y", 1), 0);
  assert_int_equal(locate("s = 'xy'", "x", 1), 0);
  assert_int_equal(locate("s = 'x'", "xy", 1), 0);
  assert_int_equal(locate("s = ''", "", 1), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_strings),
                                     cmocka_unit_test(short_strings),
                                     cmocka_unit_test(flat_strings),
                                     cmocka_unit_test(parts),
                                     cmocka_unit_test(templates),
                                     cmocka_unit_test(comments),
                                     cmocka_unit_test(searches_have_an_end),
                                     cmocka_unit_test(nearest),
                                     cmocka_unit_test(absent)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
