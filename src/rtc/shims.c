/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * NVRTC has no C library's headers, although it knows printf, assert, size_t,
 * memcpy and the mathematical functions without any. These few, passed along
 * with every program, let sources written for nvcc compile: the names that C
 * promises as far as device code can use them. A header of the caller's own of
 * the same name comes first. Macros are guarded, and types and limits spelled
 * as in the toolkit's <cuda/std/…>, since a program may include both. */
#include "rtc/parts.h"

#define DEFINE_OF(name, parameters, value)                                     \
  "#ifndef " name "\n#define " name parameters " " value "\n#endif\n"
#define DEFINE(name, value) DEFINE_OF(name, "", value)
#define ONCE "#pragma once\n"
#define USING(name) "using ::" name ";\n"

/* clang-format off */
static const char stdint_h[] = ONCE "#include <limits.h>\n"
  "typedef signed char int8_t;\n"
  "typedef short int16_t;\n"
  "typedef int int32_t;\n"
  "typedef long long int64_t;\n"
  "typedef unsigned char uint8_t;\n"
  "typedef unsigned short uint16_t;\n"
  "typedef unsigned int uint32_t;\n"
  "typedef unsigned long long uint64_t;\n"
  "typedef int8_t int_least8_t;\n"
  "typedef int16_t int_least16_t;\n"
  "typedef int32_t int_least32_t;\n"
  "typedef int64_t int_least64_t;\n"
  "typedef uint8_t uint_least8_t;\n"
  "typedef uint16_t uint_least16_t;\n"
  "typedef uint32_t uint_least32_t;\n"
  "typedef uint64_t uint_least64_t;\n"
  "typedef int8_t int_fast8_t;\n"
  "typedef int16_t int_fast16_t;\n"
  "typedef int32_t int_fast32_t;\n"
  "typedef int64_t int_fast64_t;\n"
  "typedef uint8_t uint_fast8_t;\n"
  "typedef uint16_t uint_fast16_t;\n"
  "typedef uint32_t uint_fast32_t;\n"
  "typedef uint64_t uint_fast64_t;\n"
  "typedef int64_t intptr_t;\n"
  "typedef uint64_t uintptr_t;\n"
  "typedef int64_t intmax_t;\n"
  "typedef uint64_t uintmax_t;\n"
  DEFINE("INT8_MIN", "SCHAR_MIN")
  DEFINE("INT8_MAX", "SCHAR_MAX")
  DEFINE("UINT8_MAX", "UCHAR_MAX")
  DEFINE("INT16_MIN", "SHRT_MIN")
  DEFINE("INT16_MAX", "SHRT_MAX")
  DEFINE("UINT16_MAX", "USHRT_MAX")
  DEFINE("INT32_MIN", "INT_MIN")
  DEFINE("INT32_MAX", "INT_MAX")
  DEFINE("UINT32_MAX", "UINT_MAX")
  DEFINE("INT64_MIN", "LLONG_MIN")
  DEFINE("INT64_MAX", "LLONG_MAX")
  DEFINE("UINT64_MAX", "ULLONG_MAX")
  DEFINE("INTPTR_MIN", "INT64_MIN")
  DEFINE("INTPTR_MAX", "INT64_MAX")
  DEFINE("UINTPTR_MAX", "UINT64_MAX")
  DEFINE("INTMAX_MIN", "INT64_MIN")
  DEFINE("INTMAX_MAX", "INT64_MAX")
  DEFINE("UINTMAX_MAX", "UINT64_MAX")
  DEFINE("SIZE_MAX", "UINT64_MAX")
  DEFINE("PTRDIFF_MIN", "INT64_MIN")
  DEFINE("PTRDIFF_MAX", "INT64_MAX")
  DEFINE_OF("INT8_C", "(X)", "((::int_least8_t)(X))")
  DEFINE_OF("INT16_C", "(X)", "((::int_least16_t)(X))")
  DEFINE_OF("INT32_C", "(X)", "((::int_least32_t)(X))")
  DEFINE_OF("INT64_C", "(X)", "((::int_least64_t)(X))")
  DEFINE_OF("UINT8_C", "(X)", "((::uint_least8_t)(X))")
  DEFINE_OF("UINT16_C", "(X)", "((::uint_least16_t)(X))")
  DEFINE_OF("UINT32_C", "(X)", "((::uint_least32_t)(X))")
  DEFINE_OF("UINT64_C", "(X)", "((::uint_least64_t)(X))")
  DEFINE_OF("INTMAX_C", "(X)", "((::intmax_t)(X))")
  DEFINE_OF("UINTMAX_C", "(X)", "((::uintmax_t)(X))");

static const char stddef_h[] = ONCE
  DEFINE("NULL", "0")
  DEFINE_OF("offsetof", "(type, member)",
            "((size_t)&reinterpret_cast<const volatile char &>("
            "((type *)0)->member))")
  "typedef decltype(nullptr) nullptr_t;\n"
  "typedef struct { long long __ll; double __d; } max_align_t;\n";

static const char limits_h[] = ONCE
  DEFINE("CHAR_BIT", "8")
  DEFINE("SCHAR_MIN", "(-128)")
  DEFINE("SCHAR_MAX", "127")
  DEFINE("UCHAR_MAX", "255")
  DEFINE("CHAR_MIN", "SCHAR_MIN")
  DEFINE("CHAR_MAX", "SCHAR_MAX")
  DEFINE("SHRT_MIN", "(-SHRT_MAX - 1)")
  DEFINE("SHRT_MAX", "0x7fff")
  DEFINE("USHRT_MAX", "0xffff")
  DEFINE("INT_MIN", "(-INT_MAX - 1)")
  DEFINE("INT_MAX", "0x7fffffff")
  DEFINE("UINT_MAX", "0xffffffff")
  DEFINE("LONG_MIN", "(-LONG_MAX - 1)")
  DEFINE("LONG_MAX", "LLONG_MAX")
  DEFINE("ULONG_MAX", "ULLONG_MAX")
  DEFINE("LLONG_MIN", "(-LLONG_MAX - 1)")
  DEFINE("LLONG_MAX", "0x7fffffffffffffffLL")
  DEFINE("ULLONG_MAX", "0xffffffffffffffffUL");

static const char float_h[] = ONCE
  DEFINE("FLT_RADIX", "2")
  DEFINE("FLT_MANT_DIG", "24")
  DEFINE("FLT_DIG", "6")
  DEFINE("FLT_DECIMAL_DIG", "9")
  DEFINE("FLT_MIN_EXP", "(-125)")
  DEFINE("FLT_MAX_EXP", "128")
  DEFINE("FLT_MIN_10_EXP", "(-37)")
  DEFINE("FLT_MAX_10_EXP", "38")
  DEFINE("FLT_EPSILON", "1.19209290e-7F")
  DEFINE("FLT_MIN", "1.17549435e-38F")
  DEFINE("FLT_TRUE_MIN", "1.40129846e-45F")
  DEFINE("FLT_MAX", "3.40282347e+38F")
  DEFINE("DBL_MANT_DIG", "53")
  DEFINE("DBL_DIG", "15")
  DEFINE("DBL_DECIMAL_DIG", "17")
  DEFINE("DBL_MIN_EXP", "(-1021)")
  DEFINE("DBL_MAX_EXP", "1024")
  DEFINE("DBL_MIN_10_EXP", "(-307)")
  DEFINE("DBL_MAX_10_EXP", "308")
  DEFINE("DBL_EPSILON", "2.2204460492503131e-16")
  DEFINE("DBL_MIN", "2.2250738585072014e-308")
  DEFINE("DBL_TRUE_MIN", "4.9406564584124654e-324")
  DEFINE("DBL_MAX", "1.7976931348623157e+308")
  DEFINE("DECIMAL_DIG", "17");

static const char math_h[] = ONCE
  DEFINE("INFINITY", "__int_as_float(0x7f800000)")
  DEFINE("NAN", "__int_as_float(0x7fffffff)")
  DEFINE("HUGE_VALF", "__int_as_float(0x7f800000)")
  DEFINE("HUGE_VAL", "__longlong_as_double(0x7ff0000000000000LL)")
  DEFINE("M_E", "2.71828182845904523536")
  DEFINE("M_LOG2E", "1.44269504088896340736")
  DEFINE("M_LOG10E", "0.434294481903251827651")
  DEFINE("M_LN2", "0.693147180559945309417")
  DEFINE("M_LN10", "2.30258509299404568402")
  DEFINE("M_PI", "3.14159265358979323846")
  DEFINE("M_PI_2", "1.57079632679489661923")
  DEFINE("M_PI_4", "0.785398163397448309616")
  DEFINE("M_1_PI", "0.318309886183790671538")
  DEFINE("M_2_PI", "0.636619772367581343076")
  DEFINE("M_2_SQRTPI", "1.12837916709551257390")
  DEFINE("M_SQRT2", "1.41421356237309504880")
  DEFINE("M_SQRT1_2", "0.707106781186547524401");

static const char assert_h[] =
  "#ifdef NDEBUG\n"
  "#undef assert\n"
  "#define assert(expression) ((void)0)\n"
  "#endif\n";

static const char empty_h[] = ONCE;

static const char string_h[] = ONCE
  DEFINE("NULL", "0")
  "static inline __device__ size_t strlen(const char *s) {\n"
  "  size_t n = 0;\n"
  "  while (s[n]) n++;\n"
  "  return n;\n"
  "}\n"
  "static inline __device__ int strcmp(const char *a, const char *b) {\n"
  "  while (*a && *a == *b) { a++; b++; }\n"
  "  return (unsigned char)*a - (unsigned char)*b;\n"
  "}\n"
  "static inline __device__ int strncmp(const char *a, const char *b,\n"
  "                                     size_t n) {\n"
  "  for (; n; n--, a++, b++)\n"
  "    if (*a != *b || !*a) return (unsigned char)*a - (unsigned char)*b;\n"
  "  return 0;\n"
  "}\n"
  "static inline __device__ char *strcpy(char *to, const char *from) {\n"
  "  char *p = to;\n"
  "  while ((*p++ = *from++)) {}\n"
  "  return to;\n"
  "}\n"
  "static inline __device__ int memcmp(const void *a, const void *b,\n"
  "                                    size_t n) {\n"
  "  const unsigned char *p = (const unsigned char *)a;\n"
  "  const unsigned char *q = (const unsigned char *)b;\n"
  "  for (; n; n--, p++, q++)\n"
  "    if (*p != *q) return *p - *q;\n"
  "  return 0;\n"
  "}\n"
  "static inline __device__ void *memmove(void *to, const void *from,\n"
  "                                       size_t n) {\n"
  "  unsigned char *p = (unsigned char *)to;\n"
  "  const unsigned char *q = (const unsigned char *)from;\n"
  "  if (p < q) while (n--) *p++ = *q++;\n"
  "  else while (n--) p[n] = q[n];\n"
  "  return to;\n"
  "}\n";

static const char cstdint[] = ONCE "#include <stdint.h>\nnamespace std {\n"
  USING("int8_t") USING("int16_t") USING("int32_t") USING("int64_t")
  USING("uint8_t") USING("uint16_t") USING("uint32_t") USING("uint64_t")
  USING("intptr_t") USING("uintptr_t") USING("intmax_t") USING("uintmax_t")
  USING("int_least8_t") USING("int_least16_t") USING("int_least32_t")
  USING("int_least64_t") USING("uint_least8_t") USING("uint_least16_t")
  USING("uint_least32_t") USING("uint_least64_t") USING("int_fast8_t")
  USING("int_fast16_t") USING("int_fast32_t") USING("int_fast64_t")
  USING("uint_fast8_t") USING("uint_fast16_t") USING("uint_fast32_t")
  USING("uint_fast64_t") "}\n";

static const char cstddef[] = ONCE "#include <stddef.h>\nnamespace std {\n"
  USING("size_t") USING("ptrdiff_t") USING("nullptr_t") USING("max_align_t")
  "}\n";

static const char cmath[] = ONCE "#include <math.h>\nnamespace std {\n"
  USING("abs") USING("fabs") USING("fmod") USING("remainder") USING("fma")
  USING("fmax") USING("fmin") USING("fdim") USING("exp") USING("exp2")
  USING("expm1") USING("log") USING("log2") USING("log10") USING("log1p")
  USING("pow") USING("sqrt") USING("cbrt") USING("hypot") USING("sin")
  USING("cos") USING("tan") USING("asin") USING("acos") USING("atan")
  USING("atan2") USING("sinh") USING("cosh") USING("tanh") USING("asinh")
  USING("acosh") USING("atanh") USING("erf") USING("erfc") USING("tgamma")
  USING("lgamma") USING("ceil") USING("floor") USING("trunc") USING("round")
  USING("rint") USING("nearbyint") USING("lround") USING("llround")
  USING("lrint") USING("llrint") USING("frexp") USING("ldexp") USING("modf")
  USING("scalbn") USING("ilogb") USING("logb") USING("nextafter")
  USING("copysign") USING("isnan") USING("isinf") USING("isfinite")
  USING("signbit")
  "}\n";

static const char cstring[] = ONCE "#include <string.h>\nnamespace std {\n"
  USING("size_t") USING("memcpy") USING("memset") USING("memmove")
  USING("memcmp") USING("strlen") USING("strcmp") USING("strncmp")
  USING("strcpy") "}\n";

static const char cstdio[] = ONCE "#include <stdio.h>\nnamespace std {\n"
  USING("size_t") USING("printf") "}\n";

static const char cstdlib[] = ONCE "#include <stdlib.h>\nnamespace std {\n"
  USING("size_t") USING("malloc") USING("free") USING("abs") "}\n";

const tps_rtc_header tps_rtc_shims[] = {
    {"assert.h", assert_h},  {"cassert", "#include <assert.h>\n"},
    {"stdint.h", stdint_h},  {"cstdint", cstdint},
    {"inttypes.h", "#include <stdint.h>\n"},
    {"stddef.h", stddef_h},  {"cstddef", cstddef},
    {"limits.h", limits_h},  {"climits", "#include <limits.h>\n"},
    {"float.h", float_h},    {"cfloat", "#include <float.h>\n"},
    {"math.h", math_h},      {"cmath", cmath},
    {"string.h", string_h},  {"cstring", cstring},
    {"stdio.h", empty_h},    {"cstdio", cstdio},
    {"stdlib.h", empty_h},   {"cstdlib", cstdlib},
    {"stdbool.h", empty_h}};
/* clang-format on */
const size_t tps_rtc_shim_count =
    sizeof tps_rtc_shims / sizeof tps_rtc_shims[0];
