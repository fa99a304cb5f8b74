/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * C++ types of kernel parameters from mangled names: known names,
 * contradictions between name and PTX, and damaged text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/kernel.h"

#define MAX_PARAMS 16

/* A kernel as ptx/ would have left it: sizes known, types by PTX. */
static tps_kernel_desc make_kernel(const char *name, const uint32_t *sizes,
                                   uint32_t count) {
  tps_kernel_desc k = {.name = strdup(name), .param_count = count};
  k.params = calloc(MAX_PARAMS, sizeof *k.params);
  for (uint32_t i = 0; i < count; i++) {
    k.params[i].type = strdup(".b");
    k.params[i].size = sizes[i];
    k.params[i].dtype = TPS_OPAQUE;
    k.params[i].certainty = TPS_BY_PTX;
    k.params[i].access = TPS_ACCESS_READ;
    k.params[i].is_struct =
        sizes[i] != 1 && sizes[i] != 2 && sizes[i] != 4 && sizes[i] != 8;
  }
  return k;
}

static void free_kernel(tps_kernel_desc *k) {
  tps_kernel_desc *one = malloc(sizeof *one);
  *one = *k;
  tps_image_desc desc = {.kernels = one, .kernel_count = 1};
  tps_image_desc_free(&desc);
}

#define SIZES(...)                                                             \
  (const uint32_t[]){__VA_ARGS__},                                             \
      sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static void check_name(const char *mangled, const char *plain,
                       const char *signature) {
  tps_kernel_desc k = make_kernel(mangled, NULL, 0);
  assert_int_equal(tps_signature_from_name(&k), 0);
  assert_string_equal(k.plain, plain);
  assert_string_equal(k.signature, signature);
  free_kernel(&k);
}

static void names(void **state) {
  (void)state;
  check_name("saxpy", "saxpy", "saxpy");
  check_name("_Z5saxpyfPKfPf", "saxpy", "saxpy(float, float const*, float*)");
  check_name("_ZN2ns5scaleIfLi4EEEvPT_i", "ns::scale",
             "ns::scale<float, 4>(float*, int)");
  check_name("_ZN2ns4manyIJifEEEvDpPT_", "ns::many",
             "ns::many<int, float>(int*, float*)");
  check_name("_ZN2ns4manyIJEEEvDpPT_", "ns::many", "ns::many<>()");
  check_name("_Z2fpIXadL_Z3addfEEEvPf", "fp", "fp<&add>(float*)");
  check_name("_ZN40_GLOBAL__N__00000000_10_program_cu_saxpy2k1EPi", "k1",
             "k1(int*)");
  check_name("_Z1fv", "f", "f()");
  check_name("_Z1fIiEv1AIfET_", "f", "f<int>(A<float>, int)");
  check_name("_Z1fI1AIiEEvT_S1_", "f", "f<A<int>>(A<int>, A<int>)");
  check_name("_Z1fILb1ELin3ELm7EEvv", "f", "f<true, -3, 7>()");
  check_name("_Z1fIL4Kind2EEvv", "f", "f<(Kind)2>()");
  check_name("_Z1fPFivEPA4_fM1Ai", "f", "f(int (*)(), float (*)[4], int A::*)");
  check_name("_Z1fPKPKcPVi", "f", "f(char const* const*, int volatile*)");
  check_name("_Z1fIfENSt9enable_ifIXsrSt7is_sameIT_fE5valueEvE4typeEPNS0_IXaagt"
             "stS2_Li2EntsrS1_IS2_iE5valueES2_E4typeEPS2_",
             "f",
             "f<float>(std::enable_if<((sizeof(float) > 2) && "
             "!std::is_same<float, int>::value), float>::type*, float*)");
  check_name("_Z3runIZ4mainEUliE_EvT_Pi", "run",
             "run<main::{lambda}>(main::{lambda}, int*)");
}

static void check_param(const tps_kernel_desc *k, uint32_t i, const char *type,
                        int dtype, bool pointer, bool is_const,
                        bool is_struct) {
  const tps_param *p = &k->params[i];
  assert_string_equal(p->type, type);
  assert_int_equal(p->certainty, TPS_BY_SIGNATURE);
  assert_int_equal(p->dtype, dtype);
  assert_int_equal(p->pointer, pointer);
  assert_int_equal(p->is_const, is_const);
  assert_int_equal(p->is_struct, is_struct);
  assert_int_equal(p->access, TPS_ACCESS_READ);
}

static void types(void **state) {
  (void)state;
  tps_kernel_desc k = make_kernel(
      "_Z1kfPKfP6__half13__nv_bfloat166float4PS3_PbPcPvmcb7__half2P1S",
      SIZES(4, 8, 8, 2, 16, 8, 8, 8, 8, 8, 1, 1, 4, 8));
  assert_int_equal(tps_signature_from_name(&k), 0);
  check_param(&k, 0, "float", TPS_FLOAT32, false, false, false);
  check_param(&k, 1, "float const*", TPS_FLOAT32, true, true, false);
  check_param(&k, 2, "__half*", TPS_FLOAT16, true, false, false);
  check_param(&k, 3, "__nv_bfloat16", TPS_BFLOAT16, false, false, false);
  check_param(&k, 4, "float4", TPS_OPAQUE, false, false, true);
  check_param(&k, 5, "__nv_bfloat16*", TPS_BFLOAT16, true, false, false);
  check_param(&k, 6, "bool*", TPS_BOOL, true, false, false);
  check_param(&k, 7, "char*", TPS_INT8, true, false, false);
  check_param(&k, 8, "void*", TPS_OPAQUE, true, false, false);
  check_param(&k, 9, "unsigned long", TPS_UINT64, false, false, false);
  check_param(&k, 10, "char", TPS_INT8, false, false, false);
  check_param(&k, 11, "bool", TPS_BOOL, false, false, false);
  check_param(&k, 12, "__half2", TPS_OPAQUE, false, false, true);
  check_param(&k, 13, "S*", TPS_OPAQUE, true, false, false);
  free_kernel(&k);
}

static void vectors(void **state) {
  (void)state;
  tps_kernel_desc k = make_kernel("_Z1kP6float4P4int2P6uchar4P11double4_16aP"
                                  "9longlong2PN2ns6float4EP6float5",
                                  SIZES(8, 8, 8, 8, 8, 8, 8));
  assert_int_equal(tps_signature_from_name(&k), 0);
  check_param(&k, 0, "float4*", TPS_FLOAT32, true, false, false);
  check_param(&k, 1, "int2*", TPS_INT32, true, false, false);
  check_param(&k, 2, "uchar4*", TPS_UINT8, true, false, false);
  check_param(&k, 3, "double4_16a*", TPS_FLOAT64, true, false, false);
  check_param(&k, 4, "longlong2*", TPS_INT64, true, false, false);
  check_param(&k, 5, "ns::float4*", TPS_OPAQUE, true, false, false);
  check_param(&k, 6, "float5*", TPS_OPAQUE, true, false, false);
  free_kernel(&k);
}

static void enums_and_structs(void **state) {
  (void)state;
  tps_kernel_desc k = make_kernel("_Z1k4Kind6Params", SIZES(4, 12));
  k.params[0].dtype = TPS_INT32;
  assert_int_equal(tps_signature_from_name(&k), 0);
  assert_string_equal(k.params[0].type, "Kind");
  assert_int_equal(k.params[0].dtype, TPS_INT32);
  assert_int_equal(k.params[0].certainty, TPS_BY_PTX);
  check_param(&k, 1, "Params", TPS_OPAQUE, false, false, true);
  free_kernel(&k);
}

static void from_type(void **state) {
  (void)state;
  tps_kernel_desc k = make_kernel("saxpy", SIZES(4, 8, 8, 8, 8));
  assert_int_equal(tps_signature_from_type(&k, "FvfPKfPfS1_S2_E"), 0);
  assert_string_equal(
      k.signature, "saxpy(float, float const*, float*, float const*, float*)");
  check_param(&k, 3, "float const*", TPS_FLOAT32, true, true, false);
  check_param(&k, 4, "float*", TPS_FLOAT32, true, false, false);
  free_kernel(&k);
}

static void contradictions(void **state) {
  (void)state;
  const char *const names[] = {"_Z1kf", "_Z1kfff", "_Z1kfd"};
  for (int i = 0; i < 3; i++) {
    tps_kernel_desc k = make_kernel(names[i], SIZES(4, 4));
    assert_int_equal(tps_signature_from_name(&k), 0);
    assert_string_equal(k.plain, "k");
    assert_int_equal(k.params[0].certainty, TPS_BY_PTX);
    assert_string_equal(k.params[0].type, ".b");
    free_kernel(&k);
  }
}

static void plain_names(void **state) {
  (void)state;
  const char *const pairs[][2] = {
      {"coef", "coef"},
      {"_ZN2ns3tabE", "ns::tab"},
      {"_ZN38_INTERNAL_00000000_10_program_cu_saxpy40_GLOBAL__N__00000000_10_"
       "program_cu_saxpy6hiddenE",
       "hidden"},
      {"_Z3tabIfE", "tab<float>"},
      {"_ZL4coef", "coef"},
      {"_Z", "_Z"},
      {"_Z99x", "_Z99x"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    char *plain = tps_plain_name(pairs[i][0]);
    assert_string_equal(plain, pairs[i][1]);
    free(plain);
  }
}

static void finding(void **state) {
  (void)state;
  tps_kernel_desc k = make_kernel("_ZN2ns5scaleIfLi4EEEvPT_i", SIZES(8, 4));
  assert_int_equal(tps_signature_from_name(&k), 0);
  k.aliases = strdup("ns::scale<T, 4>\nother\n");
  assert_true(tps_kernel_has_name(&k, "ns::scale"));
  assert_true(tps_kernel_has_name(&k, "_ZN2ns5scaleIfLi4EEEvPT_i"));
  assert_true(tps_kernel_has_name(&k, "ns::scale<float,4>"));
  assert_true(tps_kernel_has_name(&k, "ns::scale<float, 4>(float *, int)"));
  assert_true(tps_kernel_has_name(&k, "ns::scale<T,4>"));
  assert_true(tps_kernel_has_name(&k, "other"));
  assert_false(tps_kernel_has_name(&k, "ns::scale<float>"));
  assert_false(tps_kernel_has_name(&k, "scale"));
  assert_false(tps_kernel_has_name(&k, ""));
  free_kernel(&k);
}

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* Damaged names end in some answer, quickly. */
static void damage(void **state) {
  (void)state;
  static const char *const seeds[] = {
      "_ZN2ns4manyIJifEEEvDpPT_",
      ("_Z1fIfENSt9enable_ifIXsrSt7is_sameIT_fE5valueEvE4typeEPNS0_IXaagtstS2_"
       "Li2EntsrS1_IS2_iE5valueES2_E4typeEPS2_"),
      "_Z1kfPKfP6__half13__nv_bfloat166float4PS3_PbPcPvmcb7__half2P1S",
      "_Z1fPFivEPA4_fM1AiPFPFPFvS0_S1_ES2_S3_ES4_S5_E",
      "_Z3runIZ4mainEUliE_EvT_Pi"};
  static const char letters[] = "_ZNIEJXLSTPKRFADMtpslv0123456789fiSTdUu";
  uint32_t seed = 1;
  for (int round = 0; round < 20000; round++) {
    char text[160];
    strcpy(text, seeds[next_random(&seed) % 5]);
    size_t size = strlen(text);
    for (unsigned n = next_random(&seed) % 5; n > 0; n--)
      text[2 + next_random(&seed) % (size - 2)] =
          letters[next_random(&seed) % (sizeof letters - 1)];
    if (next_random(&seed) % 4 == 0)
      text[2 + next_random(&seed) % (size - 2)] = '\0';
    tps_kernel_desc k = make_kernel(text, SIZES(4, 8));
    assert_int_equal(tps_signature_from_name(&k), 0);
    assert_non_null(k.plain);
    assert_int_equal(tps_signature_from_type(&k, text + 2), 0);
    free_kernel(&k);
  }
}

/* Depth and size that a reader without bounds would die of. */
static void bombs(void **state) {
  (void)state;
  char *deep = malloc(100003);
  memset(deep, 'P', 100002);
  memcpy(deep, "_Z1f", 4);
  deep[100002] = '\0';
  tps_kernel_desc k = make_kernel(deep, NULL, 0);
  assert_int_equal(tps_signature_from_name(&k), 0);
  free_kernel(&k);
  free(deep);
  char wide[2048] = "_Z1fPFviE"; /* each parameter takes the last one twice */
  for (int i = 0; i < 30; i++) {
    char part[32];
    const char *digit = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int n = i * 2;
    if (n < 36) snprintf(part, sizeof part, "PFvS%c_S%c_E", digit[n], digit[n]);
    else
      snprintf(part, sizeof part, "PFvS1%c_S1%c_E", digit[n - 36],
               digit[n - 36]);
    strcat(wide, part);
  }
  k = make_kernel(wide, NULL, 0);
  assert_int_equal(tps_signature_from_name(&k), 0);
  assert_string_equal(k.plain, "f");
  free_kernel(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),       cmocka_unit_test(types),
      cmocka_unit_test(vectors),     cmocka_unit_test(enums_and_structs),
      cmocka_unit_test(from_type),   cmocka_unit_test(contradictions),
      cmocka_unit_test(plain_names), cmocka_unit_test(finding),
      cmocka_unit_test(damage),      cmocka_unit_test(bombs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
