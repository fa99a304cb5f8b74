/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Linking of PTX texts: what becomes one, and what can't; and the same through
 * nvJitLink, where that is installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ptx/link.h"
#include "ptx/ptx.h"
#include "rtc/rtc.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static const char user[] =
    HEAD ".extern .global .align 4 .u32 count;\n"
         ".extern .func (.param .b32 r) twice (.param .b32 a) ;\n"
         "/* own { */ .global /* own; */ .align 4 .u32 own = 7; // own ;\n"
         ".extern .shared .align 16 .b8 pool[];\n"
         ".visible .entry k(.param .u64 k_p)\n{\n"
         ".reg .b32 %r<4>; .reg .b64 %rd<2>;\n"
         ".loc 2 1 1\n.loc 1 3 5, function_name $L__info, inlined_at 2 1 1\n"
         "ld.global.u32 %r1, [own]; ld.param.u64 %rd1, [k_p];\n"
         "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 r;\n"
         "call.uni (r), twice, (a); ld.param.b32 %r2, [r]; }\n"
         "st.global.u32 [%rd1], %r2; ret;\n}\n"
         ".file 1 \"user.cu\"\n.file 2 \"a;b{.cu\"\n"
         ".section .debug_str\n{\n$L__info:\n.b8 95\n}\n";

static const char maker[] =
    HEAD ".visible .global .align 4 .u32 count = 20;\n"
         ".global .align 4 .u32 own = 9;\n"
         ".visible .func (.param .b32 r) twice(.param .b32 a)\n{\n"
         ".reg .b32 %r<4>;\n.loc 1 8 1\nld.param.b32 %r1, [a];\n"
         "ld.global.u32 %r2, [own]; add.s32 %r1, %r1, %r2;\n"
         "st.param.b32 [r], %r1; ret;\n}\n.file 1 \"maker.cu\"\n";

/* Links two texts; the caller frees what it returns. */
static char *link_two(const char *a, const char *b, tps_error *err) {
  tps_ptx_input inputs[] = {{a, "module 1"}, {b, "module 2"}};
  char *out = NULL;
  err->message[0] = '\0';
  if (tps_ptx_link(inputs, 2, &out, err) != 0) assert_null(out);
  return out;
}

static void check_reads(const char *text) {
  tps_error err;
  tps_ptx_module *module;
  if (tps_ptx_parse(text, strlen(text), &module, &err) != 0)
    fail_msg("%s\n%s", err.message, text);
  tps_ptx_free(module);
}

static void become_one(void **state) {
  (void)state;
  tps_error err;
  for (int turned = 0; turned < 2; turned++) {
    char *text = link_two(turned ? maker : user, turned ? user : maker, &err);
    if (text == NULL) fail_msg("%s", err.message);
    check_reads(text);
    assert_non_null(strstr(text, "own__module1"));
    assert_non_null(strstr(text, "own__module2"));
    assert_non_null(strstr(text, turned ? ".loc 2 3 5\n" : ".loc 3 8 1\n"));
    assert_non_null(strstr(text, ".file 2 \""));
    assert_non_null(strstr(text, ".file 3 \""));
    assert_null(strstr(text, "inlined_at"));
    assert_non_null(strstr(text, ".extern .shared .align 16 .b8 pool[];"));
    free(text);
  }
}

static void refused(const char *a, const char *b, const char *message) {
  tps_error err;
  assert_null(link_two(a, b, &err));
  assert_string_equal(err.message, message);
}

static void errors_name_symbols(void **state) {
  (void)state;
  refused(user, HEAD "",
          "'count' is used in module 1 and defined in no module");
  refused(maker, maker, "'count' is defined in module 1 and in module 2");
  refused(maker, ".version 8.0\n.target sm_90\n.address_size 64\n",
          "module 1 is compiled for sm_80, module 2 for sm_90: linked modules "
          "need one architecture");
}

static void weak_gives_way(void **state) {
  (void)state;
  tps_error err;
  static const char weak[] =
      HEAD ".weak .func f()\n{ ret; }\n.weak .global .u32 w = 1;\n"
           ".visible .entry k() { call.uni f; ret; }\n";
  static const char strong[] =
      HEAD ".visible .func f()\n{ ret; }\n.visible .global .u32 w = 2;\n";
  char *text = link_two(weak, strong, &err);
  assert_non_null(text);
  check_reads(text);
  assert_null(strstr(text, "w = 1"));
  assert_non_null(strstr(text, "w = 2"));
  free(text);
  text = link_two(weak, weak, &err); /* k is there twice */
  assert_null(text);
  assert_string_equal(err.message, "'k' is defined in module 1 and in "
                                   "module 2");
}

/* Cut anywhere, a text gives an error or something: never a wrong access. */
static void damage(void **state) {
  (void)state;
  tps_error err;
  char copy[sizeof user];
  for (size_t n = 0; n < sizeof user; n++) {
    memcpy(copy, user, n);
    copy[n] = '\0';
    free(link_two(copy, maker, &err));
  }
}

/* nvJitLink keeps some memory to itself when it fails. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static void through_the_linker(void **state) {
  (void)state;
  tps_error err;
  tps_ptx_input inputs[] = {{user, "module 1"}, {maker, "module 2"}};
  tps_device device = {.kind = TPS_CUDA};
  char *cubin = NULL;
  size_t size = 0;
  device.properties.capability_major = 9;
  if (__lsan_disable != NULL) __lsan_disable();
  int code = tps_rtc_link(inputs, 2, &device, &cubin, &size, &err);
  if (code == TPS_COMPILER_MISSING) {
    if (__lsan_enable != NULL) __lsan_enable();
    assert_non_null(strstr(err.message, "libnvJitLink.so.13"));
    skip();
  }
  if (code != 0) fail_msg("%s", err.message);
  assert_true(size > 4 && memcmp(cubin, "\177ELF", 4) == 0);
  free(cubin);
  code = tps_rtc_link(inputs, 1, &device, &cubin, &size, &err);
  if (__lsan_enable != NULL) __lsan_enable();
  assert_int_equal(code, TPS_INVALID_IMAGE);
  assert_non_null(strstr(err.message, "twice"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(become_one),
      cmocka_unit_test(errors_name_symbols),
      cmocka_unit_test(weak_gives_way),
      cmocka_unit_test(damage),
      cmocka_unit_test(through_the_linker),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
