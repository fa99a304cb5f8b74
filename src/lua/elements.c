/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Lua numbers ↔ elements. A number that does not fit is told, never wrapped or
 * truncated; rounding to a float type is fine. Kernel parameters use the same
 * conversions. */
#include "lua/state.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Limits of the signed types and of the unsigned ones below 64 bits. */
static const struct {
  lua_Integer least, greatest;
} limits[] = {
    [TPS_INT8] = {INT8_MIN, INT8_MAX},    [TPS_UINT8] = {0, UINT8_MAX},
    [TPS_INT16] = {INT16_MIN, INT16_MAX}, [TPS_UINT16] = {0, UINT16_MAX},
    [TPS_INT32] = {INT32_MIN, INT32_MAX}, [TPS_UINT32] = {0, UINT32_MAX},
    [TPS_INT64] = {INT64_MIN, INT64_MAX},
};

/* ---- from Lua ------------------------------------------------------------ */

tps_fit tps_integer_from(lua_State *L, int index, lua_Integer least,
                         lua_Integer greatest, lua_Integer *to) {
  if (lua_type(L, index) != LUA_TNUMBER) return TPS_NOT_A_NUMBER;
  int whole;
  lua_Integer value = lua_tointegerx(L, index, &whole);
  if (!whole) { /* a float */
    lua_Number x = lua_tonumber(L, index);
    return isinf(x) || floor(x) == x ? TPS_OUT_OF_RANGE : TPS_NOT_WHOLE;
  }
  if (value < least || value > greatest) return TPS_OUT_OF_RANGE;
  *to = value;
  return TPS_FITS;
}

/* Any Lua integer is its 64 bits; a float from 2^63 on its value. */
static tps_fit uint64_from(lua_State *L, int index, void *to) {
  lua_Integer value;
  tps_fit fit = tps_integer_from(L, index, INT64_MIN, INT64_MAX, &value);
  if (fit == TPS_OUT_OF_RANGE) {
    lua_Number x = lua_tonumber(L, index);
    if (!(x >= 0x1p63 && x < 0x1p64)) return fit;
    value = (lua_Integer)(uint64_t)x;
    fit = TPS_FITS;
  }
  if (fit == TPS_FITS) memcpy(to, &value, 8);
  return fit;
}

static tps_fit half_from(lua_Number x, int dtype, void *to) {
  bool brain = dtype == TPS_BFLOAT16;
  uint16_t bits = brain ? tps_bf16_from_double(x) : tps_f16_from_double(x);
  uint16_t infinity = brain ? 0x7f80 : 0x7c00;
  if (isfinite(x) && (bits & 0x7fff) == infinity) return TPS_OUT_OF_RANGE;
  memcpy(to, &bits, 2);
  return TPS_FITS;
}

static tps_fit float32_from(lua_Number x, void *to) {
  float f = (float)x;
  if (isinf(f) && isfinite(x)) return TPS_OUT_OF_RANGE;
  memcpy(to, &f, 4);
  return TPS_FITS;
}

static tps_fit float_from(lua_State *L, int index, int dtype, void *to) {
  if (lua_type(L, index) != LUA_TNUMBER) return TPS_NOT_A_NUMBER;
  lua_Number x = lua_tonumber(L, index);
  if (dtype == TPS_FLOAT32) return float32_from(x, to);
  if (dtype != TPS_FLOAT64) return half_from(x, dtype, to);
  memcpy(to, &x, 8);
  return TPS_FITS;
}

/* The low bytes first: hosts are little-endian (the build asserts it). */
tps_fit tps_element_from(lua_State *L, int index, int dtype, void *to) {
  if (dtype >= TPS_FLOAT16) return float_from(L, index, dtype, to);
  if (dtype == TPS_UINT64) return uint64_from(L, index, to);
  lua_Integer value = 0;
  tps_fit fit = tps_integer_from(L, index, limits[dtype].least,
                                 limits[dtype].greatest, &value);
  if (fit == TPS_FITS) memcpy(to, &value, tps_dtype_sizes[dtype]);
  return fit;
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are little-endian"
#endif

static const char *push_range(lua_State *L, int dtype) {
  switch (dtype) {
  case TPS_FLOAT16: return lua_pushliteral(L, "-65504 to 65504");
  case TPS_BFLOAT16:
    return lua_pushliteral(L, "-3.3895313892515e+38 to 3.3895313892515e+38");
  case TPS_FLOAT32:
    return lua_pushliteral(L, "-3.4028234663853e+38 to 3.4028234663853e+38");
  case TPS_UINT64: return lua_pushliteral(L, "0 to 18446744073709551615");
  default:
    return lua_pushfstring(L, "%I to %I", (LUAI_UACINT)limits[dtype].least,
                           (LUAI_UACINT)limits[dtype].greatest);
  }
}

const char *tps_push_misfit(lua_State *L, int index, int dtype, tps_fit fit) {
  index = lua_absindex(L, index);
  if (fit == TPS_NOT_A_NUMBER)
    return lua_pushfstring(L, "number expected, got %s",
                           tps_type_name(L, index));
  const char *number = luaL_tolstring(L, index, NULL);
  if (fit == TPS_NOT_WHOLE)
    return lua_pushfstring(L, "%s is not a whole number, as %s takes", number,
                           tps_dtype_names[dtype]);
  const char *range = push_range(L, dtype);
  return lua_pushfstring(L, "%s does not fit %s (%s)", number,
                         tps_dtype_names[dtype], range);
}

/* "element 3: 300 does not fit uint8 (0 to 255)" */
static void misfit_element(lua_State *L, int argument, lua_Integer i, int dtype,
                           tps_fit fit) {
  const char *why = tps_push_misfit(L, -1, dtype, fit);
  lua_pushfstring(L, "element %I: %s", (LUAI_UACINT)i, why);
  tps_argument_error(L, argument, lua_tostring(L, -1));
}

void *tps_push_elements(lua_State *L, int index, int dtype, int64_t count) {
  unsigned size = tps_dtype_sizes[dtype];
  unsigned char *to =
      (unsigned char *)lua_newuserdatauv(L, (size_t)count * size, 0);
  for (int64_t i = 0; i < count; i++) {
    lua_geti(L, index, i + 1);
    tps_fit fit = tps_element_from(L, -1, dtype, to + (size_t)i * size);
    if (fit != TPS_FITS) misfit_element(L, index, i + 1, dtype, fit);
    lua_pop(L, 1);
  }
  return to;
}

/* ---- to Lua -------------------------------------------------------------- */

#define PUSH_INTEGER(type)                                                     \
  {                                                                            \
    type value;                                                                \
    memcpy(&value, from, sizeof value);                                        \
    lua_pushinteger(L, (lua_Integer)value);                                    \
    return;                                                                    \
  }

void tps_push_element(lua_State *L, int dtype, const void *from) {
  uint16_t half;
  float single;
  double full;
  switch (dtype) {
  case TPS_INT8: PUSH_INTEGER(int8_t)
  case TPS_UINT8: PUSH_INTEGER(uint8_t)
  case TPS_INT16: PUSH_INTEGER(int16_t)
  case TPS_UINT16: PUSH_INTEGER(uint16_t)
  case TPS_INT32: PUSH_INTEGER(int32_t)
  case TPS_UINT32: PUSH_INTEGER(uint32_t)
  case TPS_INT64: PUSH_INTEGER(int64_t)
  case TPS_UINT64: PUSH_INTEGER(uint64_t)
  case TPS_FLOAT16:
    memcpy(&half, from, 2);
    lua_pushnumber(L, tps_f16_to_double(half));
    return;
  case TPS_BFLOAT16:
    memcpy(&half, from, 2);
    lua_pushnumber(L, tps_bf16_to_double(half));
    return;
  case TPS_FLOAT32:
    memcpy(&single, from, 4);
    lua_pushnumber(L, single);
    return;
  default: memcpy(&full, from, 8); lua_pushnumber(L, full);
  }
}

void tps_elements_table(lua_State *L, int dtype, const void *from,
                        int64_t count) {
  unsigned size = tps_dtype_sizes[dtype];
  const unsigned char *p = (const unsigned char *)from;
  if (count > INT32_MAX)
    luaL_error(L, "table of %I elements is too large", (LUAI_UACINT)count);
  lua_createtable(L, (int)count, 0);
  for (int64_t i = 0; i < count; i++, p += size) {
    tps_push_element(L, dtype, p);
    lua_rawseti(L, -2, i + 1);
  }
}

/* ---- tp.f16, tp.bf16 ----------------------------------------------------- */

/* A number rounded to a half type: for parameters whose type isn't known. */
static int push_half(lua_State *L, int dtype) {
  tps_check_any(L, 1);
  uint16_t bits = 0;
  tps_fit fit = tps_element_from(L, 1, dtype, &bits);
  if (fit != TPS_FITS)
    tps_argument_error(L, 1, tps_push_misfit(L, 1, dtype, fit));
  tps_lua_half *half =
      (tps_lua_half *)tps_new(L, TPS_TYPE_HALF, sizeof(tps_lua_half), 0);
  half->bits = bits;
  half->dtype = (uint8_t)dtype;
  return 1;
}

static int half_f16(lua_State *L) { return push_half(L, TPS_FLOAT16); }
static int half_bf16(lua_State *L) { return push_half(L, TPS_BFLOAT16); }

static int half_value(lua_State *L) {
  tps_lua_half *half = (tps_lua_half *)tps_check(L, 1, TPS_TYPE_HALF);
  tps_push_element(L, half->dtype, &half->bits);
  return 1;
}

static int half_bits(lua_State *L) {
  lua_pushinteger(L, ((tps_lua_half *)tps_check(L, 1, TPS_TYPE_HALF))->bits);
  return 1;
}

static int half_dtype(lua_State *L) {
  tps_lua_half *half = (tps_lua_half *)tps_check(L, 1, TPS_TYPE_HALF);
  lua_pushstring(L, tps_dtype_names[half->dtype]);
  return 1;
}

static int half_tostring(lua_State *L) {
  tps_lua_half *half = (tps_lua_half *)tps_check(L, 1, TPS_TYPE_HALF);
  tps_push_element(L, half->dtype, &half->bits);
  lua_pushfstring(L, "tpstream.Half (%s, %s)", tps_dtype_names[half->dtype],
                  luaL_tolstring(L, -1, NULL));
  return 1;
}

static int half_eq(lua_State *L) {
  tps_lua_half *a = (tps_lua_half *)tps_to(L, 1, TPS_TYPE_HALF);
  tps_lua_half *b = (tps_lua_half *)tps_to(L, 2, TPS_TYPE_HALF);
  lua_pushboolean(L, a != NULL && b != NULL && a->bits == b->bits &&
                         a->dtype == b->dtype);
  return 1;
}

static const luaL_Reg half_meta[] = {
    {"__tostring", half_tostring}, {"__eq", half_eq}, {NULL, NULL}};
static const luaL_Reg half_methods[] = {{"value", half_value},
                                        {"bits", half_bits},
                                        {"dtype", half_dtype},
                                        {NULL, NULL}};

static const luaL_Reg half_functions[] = {
    {"f16", half_f16}, {"bf16", half_bf16}, {NULL, NULL}};

void tps_half_open(lua_State *L) {
  tps_type_make(L, TPS_TYPE_HALF, half_meta, half_methods);
  tps_functions(L, half_functions);
}
