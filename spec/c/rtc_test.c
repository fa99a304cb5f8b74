/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The parts of run-time compilation that need no compiler: checks of the source,
 * the scan for names, and NVRTC's log as diagnostics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rtc/parts.h"

/* ---- sources ------------------------------------------------------------- */

static void refuse(const char *source, size_t size, const char *message) {
  char *text = NULL;
  tps_error err;
  assert_int_equal(tps_rtc_check_source(source, size, &text, &err), TPS_MISUSE);
  assert_string_equal(err.message, message);
  assert_null(text);
}

static void accept(const char *source, const char *expected) {
  char *text;
  tps_error err;
  assert_int_equal(tps_rtc_check_source(source, strlen(source), &text, &err),
                   0);
  assert_string_equal(text, expected);
  free(text);
}

static void sources(void **state) {
  (void)state;
  refuse("", 0, "the source is empty");
  refuse(NULL, 0, "the source is empty");
  refuse(" \n\t", 3, "the source is empty");
  refuse("\xEF\xBB\xBF", 3, "the source is empty");
  refuse("a\n\0b", 4, "the source has a NUL byte at byte 3, line 2");
  refuse("ab\rc\n", 5,
         "the source has a line that ends in CR alone (LF or CRLF "
         "is needed) at byte 3, line 1");
  refuse("\xEF\xBB\xBF"
         "\n\xFF",
         5, "the source has a byte that is not UTF-8: 0xFF at byte 5, line 2");
  refuse("\xC0\x80", 2,
         "the source has a byte that is not UTF-8: 0xC0 at byte 1, line 1");
  refuse("\xED\xA0\x80", 3,
         "the source has a byte that is not UTF-8: 0xED at byte 1, line 1");
  refuse("\xE2\x82", 2,
         "the source has a byte that is not UTF-8: 0xE2 at byte 1, line 1");
  accept("\xEF\xBB\xBF"
         "a\r\nb\r\n",
         "a\r\nb\r\n");
  accept("// \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "// \xC3\xA4\xE2\x82\xAC"
                                                    "\xF0\x9F\x98\x80");
}

/* ---- names --------------------------------------------------------------- */

static void scan(const char *source, const char *expected,
                 const char *expected_templates) {
  tps_strings names = {0}, templates = {0};
  assert_true(tps_rtc_scan(source, &names, &templates));
  char *all = tps_strings_join(&names, " ");
  assert_string_equal(all, expected);
  free(all);
  all = tps_strings_join(&templates, " ");
  assert_string_equal(all, expected_templates);
  free(all);
  tps_strings_free(&names);
  tps_strings_free(&templates);
}

static void names(void **state) {
  (void)state;
  scan("", "", "");
  scan("extern \"C\" __global__ void a(int *p) { p[0] = 1; }", "a", "");
  scan(
      "extern \"C\" { __global__ void __launch_bounds__(64, 2) a(float *p) {}\n"
      "__global__ void b(); __device__ int f(int x) { return x; } }\n"
      "__global__ void mangled(int) {}",
      "a b", "");
  scan("namespace n { namespace m::o { __constant__ float t[3]; }\n"
       "__device__ int v = {3}, w; } namespace { static __device__ int x; }",
       "n::m::o::t n::v n::w x", "");
  scan("template<class T, int N = (1 > 0)> __global__ void k(T *p) {}\n"
       "template<class T> __device__ T var;",
       "", "k");
  scan("/* extern \"C\" __global__ void no() {} */ // __device__ int no;\n"
       "#define X __device__ int no; \\\n  __device__ int no2;\n"
       "const char *s = \"__device__ int no;\"; auto r = R\"x(\")\" __device__ "
       "int no;)x\"; __device__ int yes;",
       "yes", "");
  scan("struct S { int a; __device__ int f() { return a; } }; \n"
       "__device__ struct T { int x; } t[2]; __device__ S s;",
       "t s", "");
  scan("__device__ std::pair<int, float> p; __managed__ int m;", "p m", "");
  scan("} } ; extern \"C\" __global__ void a() {", "a", "");
  scan("extern \"C", "", "");
  scan("namespace a { namespace b {", "", "");
}

/* ---- logs ---------------------------------------------------------------- */

static void check(const tps_rtc_report *report, size_t i, int severity,
                  const char *file, int line, int column, const char *message,
                  const char *text) {
  assert_true(i < report->diagnostic_count);
  const tps_rtc_diagnostic *d = &report->diagnostics[i];
  assert_int_equal(d->severity, severity);
  assert_string_equal(d->file, file);
  assert_int_equal(d->line, line);
  assert_int_equal(d->column, column);
  assert_string_equal(d->message, message);
  if (text == NULL) assert_null(d->text);
  else assert_string_equal(d->text, text);
}

static void logs(void **state) {
  (void)state;
  tps_rtc_report r = {0};
  assert_true(tps_rtc_read_log(
      strdup(
          "program.cu(6): error: no operator \"+\" matches these operands\n"
          "            operand types are: S + int\n"
          "  \tp[0]=\xC3\xA4+1;\n"
          "  \t       ^\n"
          "program.cu(2): note #3328-D: built-in\n"
          "  int a;\n"
          "  ^\n"
          "          detected during:\n"
          "            instantiation of \"T f(T) [with T=S]\" at line 3\n"
          "            instantiation of \"T g(T)\" at line 7 of \"b (1).h\"\n"
          "\n"
          "At end of source: error: expected a \"}\"\n"
          "a(b).h(12): warning #177-D: variable \"x\" was declared\n"
          "\n"
          "Remark: The warnings can be suppressed\n"
          "\n"
          "x.cu(1): catastrophic error: cannot open source file \"n.h\"\n"
          "\n"
          "__nv_name_map(2): error: identifier \"nix\" is undefined\n"
          "  #pragma nv_mangled_name k<nix>\n"
          "                            ^\n"
          "\n"
          "__nv_name_map(2): error: Error in parsing name expression for it\n"
          "\n"
          "4 errors detected in the compilation of \"program.cu\".\n"),
      &r));
  check(&r, 0, TPS_RTC_ERROR, "program.cu", 6, 8,
        "no operator \"+\" matches these operands\n"
        "operand types are: S + int",
        "\tp[0]=\xC3\xA4+1;");
  check(&r, 1, TPS_RTC_NOTE, "program.cu", 2, 1, "built-in", "int a;");
  check(&r, 2, TPS_RTC_NOTE, "program.cu", 3, 0,
        "instantiation of \"T f(T) [with T=S]\"", NULL);
  check(&r, 3, TPS_RTC_NOTE, "b (1).h", 7, 0, "instantiation of \"T g(T)\"",
        NULL);
  check(&r, 4, TPS_RTC_ERROR, "program.cu", 0, 0,
        "expected a \"}\" at the end of the source", NULL);
  check(&r, 5, TPS_RTC_WARNING, "a(b).h", 12, 0, "variable \"x\" was declared",
        NULL);
  check(&r, 6, TPS_RTC_ERROR, "x.cu", 1, 0, "cannot open source file \"n.h\"",
        NULL);
  check(&r, 7, TPS_RTC_ERROR, "names", 0, 3, "identifier \"nix\" is undefined",
        "k<nix>");
  assert_int_equal(r.diagnostic_count, 8);
  tps_rtc_report_free(&r);
}

static void assembler_logs(void **state) {
  (void)state;
  tps_rtc_report r = {0};
  char text[1300], expected[400];
  memset(text, 'x', sizeof text);
  memcpy(text, "program.cu(3): error: e\n  ", 26);
  memcpy(text + 1026, "\n", 1);
  memset(text + 1027, ' ', 202);
  memcpy(text + 1229, "^\n\n", 4); /* below the 201st of 1000 letters */
  strcpy(text + 1232, "");
  assert_true(tps_rtc_read_log(strdup(text), &r));
  snprintf(expected, sizeof expected, "...%.200s...", text + 26);
  check(&r, 0, TPS_RTC_ERROR, "program.cu", 3, 104, "e", expected);
  tps_rtc_report_free(&r);
  assert_true(tps_rtc_read_log(
      strdup("program.cu(2): Error: Formal parameter space overflowed\n"
             "ptxas application ptx input, line 28; fatal   : Parsing error "
             "near '.x': syntax error\n"
             "ptxas fatal   : Ptx assembly aborted due to errors\n"
             "a.cu(1): warning #177-D: unused\n\n"
             "ptxas info    : Used 8 registers\n"
             "1 error detected in the compilation of \"program.cu\".\n"),
      &r));
  check(&r, 0, TPS_RTC_ERROR, "program.cu", 2, 0,
        "Formal parameter space overflowed", NULL);
  check(&r, 1, TPS_RTC_ERROR, "ptxas", 0, 0,
        "Parsing error near '.x': syntax error", NULL);
  check(&r, 2, TPS_RTC_WARNING, "a.cu", 1, 0, "unused", NULL);
  assert_int_equal(r.diagnostics[2].number, 177);
  assert_int_equal(r.diagnostic_count, 3);
  assert_string_equal(r.other, "ptxas info    : Used 8 registers\n");
  tps_rtc_report_free(&r);
}

/* ---- architectures ------------------------------------------------------- */

/* A device of that capability and an NVRTC that knows 7.5 to 9.0. */
static void check_arch(tps_device_kind kind, int capability,
                       const char *expected, const char *expected_note) {
  const tps_compiler compiler = {
      .version = "12.0", .archs = {75, 80, 86, 90}, .arch_count = 4};
  tps_device device = {.kind = kind};
  tps_rtc_request request = {.source = ""};
  char arch[32], *note = NULL;
  tps_error err;
  device.properties.capability_major = capability / 10;
  device.properties.capability_minor = capability % 10;
  int code =
      tps_rtc_choose_arch(&compiler, &request, &device, arch, &note, &err);
  if (expected == NULL) {
    assert_int_equal(code, TPS_COMPILER);
    assert_string_equal(err.message, expected_note);
    return;
  }
  assert_int_equal(code, 0);
  assert_string_equal(arch, expected);
  if (expected_note == NULL) assert_null(note);
  else assert_string_equal(note, expected_note);
  free(note);
}

static void architectures(void **state) {
  (void)state;
  check_arch(TPS_CUDA, 90, "sm_90", NULL);
  check_arch(TPS_SIM, 90, "compute_90", NULL);
  check_arch(TPS_CUDA, 120, "compute_90",
             "the device (capability 12.0) is newer than NVRTC 12.0: compiled "
             "for compute_90");
  check_arch(TPS_CUDA, 87, "compute_86",
             "the device (capability 8.7) is newer than NVRTC 12.0: compiled "
             "for compute_86");
  check_arch(TPS_CUDA, 70, NULL,
             "NVRTC 12.0 compiles for capability 7.5 and up, the device has "
             "7.0");
}

/* ---- damage -------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static void damage(void **state) {
  (void)state;
  static const char letters[] =
      "(){}[]<>;:,=\"'\\/*#\n\r \t^RC_a1%@ error: (3): at line 7 of \"x\"\n  ^\n";
  uint32_t seed = 1;
  for (int round = 0; round < 20000; round++) {
    char text[64];
    size_t n = next_random(&seed) % (sizeof text - 1);
    for (size_t i = 0; i < n; i++)
      text[i] = letters[next_random(&seed) % (sizeof letters - 1)];
    text[n] = '\0';
    char *copy = strdup(text);
    tps_strings list = {0};
    tps_strings templates = {0};
    assert_true(tps_rtc_scan(copy, &list, &templates));
    tps_strings_free(&list);
    tps_strings_free(&templates);
    bool flat;
    tps_rtc_part parts[4];
    tps_rtc_locate(copy, n, "a1", 2, 1, &flat);
    tps_rtc_locate_parts(copy, n, "a1 a1 a1 error: a1", 18, parts, 4);
    tps_rtc_report r = {0};
    assert_true(tps_rtc_read_log(copy, &r));
    tps_rtc_report_free(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sources),       cmocka_unit_test(names),
      cmocka_unit_test(logs),          cmocka_unit_test(assembler_logs),
      cmocka_unit_test(architectures), cmocka_unit_test(damage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
