/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Arguments that several types take: timeouts, options tables, ranges of
 * elements, element types. */
#include "lua/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- plain values -------------------------------------------------------- */

void tps_check_any(lua_State *L, int index) {
  if (lua_isnone(L, index)) tps_argument_error(L, index, "value expected");
}

lua_Integer tps_check_integer(lua_State *L, int index) {
  int whole;
  lua_Integer value = lua_tointegerx(L, index, &whole);
  if (whole) return value;
  if (lua_isnumber(L, index))
    tps_argument_error(L, index, "number has no integer representation");
  return tps_type_error(L, index, "number");
}

lua_Integer tps_opt_integer(lua_State *L, int index, lua_Integer otherwise) {
  return lua_isnoneornil(L, index) ? otherwise : tps_check_integer(L, index);
}

const char *tps_check_string(lua_State *L, int index) {
  const char *text = lua_tostring(L, index);
  if (text == NULL) tps_type_error(L, index, "string");
  if (strlen(text) != lua_rawlen(L, index))
    tps_argument_error(L, index, "must not contain NUL");
  return text;
}

static lua_Number check_number(lua_State *L, int index) {
  int fine;
  lua_Number value = lua_tonumberx(L, index, &fine);
  if (!fine) tps_type_error(L, index, "number");
  return value;
}

uint64_t tps_check_timeout(lua_State *L, int index) {
  if (lua_isnoneornil(L, index)) return TPS_FOREVER;
  lua_Number ms = check_number(L, index);
  if (isnan(ms)) tps_argument_error(L, index, "the timeout is nan");
  if (ms < 0) {
    luaL_tolstring(L, index, NULL); /* as it was given */
    lua_pushfstring(L, "the timeout must not be negative, got %s",
                    lua_tostring(L, -1));
    tps_argument_error(L, index, lua_tostring(L, -1));
  }
  /* 2^63 ns are 292 years. */
  return ms * 1e6 >= 9.2e18 ? TPS_FOREVER : (uint64_t)(ms * 1e6);
}

/* ---- options ------------------------------------------------------------- */

static bool among(const char *key, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(key, *names) == 0) return true;
  return false;
}

static void unknown_option(lua_State *L, int index, const char *const *names) {
  luaL_Buffer b;
  const char *key = lua_type(L, -1) == LUA_TSTRING
                        ? lua_pushfstring(L, "'%s'", lua_tostring(L, -1))
                        : luaL_tolstring(L, -1, NULL);
  luaL_buffinit(L, &b);
  luaL_addstring(&b, "unknown option ");
  luaL_addstring(&b, key);
  luaL_addstring(&b, " (there are ");
  for (int i = 0; names[i] != NULL; i++) {
    if (i > 0) luaL_addstring(&b, ", ");
    luaL_addstring(&b, names[i]);
  }
  luaL_addstring(&b, ")");
  luaL_pushresult(&b);
  tps_argument_error(L, index, lua_tostring(L, -1));
}

void tps_check_options(lua_State *L, int index, const char *const *names) {
  if (lua_isnoneornil(L, index)) return;
  tps_check_type(L, index, LUA_TTABLE);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);                            /* key */
    if (lua_islightuserdata(L, -1)) continue; /* one of ours */
    if (lua_type(L, -1) != LUA_TSTRING || !among(lua_tostring(L, -1), names))
      unknown_option(L, index, names);
  }
}

int tps_option(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) != LUA_TTABLE) {
    lua_pushnil(L);
    return LUA_TNIL;
  }
  return lua_getfield(L, index, name);
}

int tps_option_error(lua_State *L, int index, const char *name,
                     const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  lua_pushfstring(L, "field '%s': %s", name, text);
  tps_argument_error(L, index, lua_tostring(L, -1));
}

bool tps_option_boolean(lua_State *L, int index, const char *name,
                        bool otherwise) {
  int type = tps_option(L, index, name);
  if (type != LUA_TNIL && type != LUA_TBOOLEAN)
    tps_option_error(L, index, name, "boolean expected, got %s",
                     tps_type_name(L, -1));
  bool value = type == LUA_TNIL ? otherwise : lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

lua_Integer tps_option_integer(lua_State *L, int index, const char *name,
                               lua_Integer otherwise) {
  int type = tps_option(L, index, name);
  lua_Integer value = otherwise;
  if (type != LUA_TNIL) {
    tps_fit fit =
        tps_integer_from(L, -1, LUA_MININTEGER, LUA_MAXINTEGER, &value);
    if (fit != TPS_FITS)
      tps_option_error(L, index, name, "%s",
                       tps_push_misfit(L, -1, TPS_INT64, fit));
  }
  lua_pop(L, 1);
  return value;
}

/* ---- ranges -------------------------------------------------------------- */

void tps_check_span(lua_State *L, int64_t first, int64_t count, int64_t size) {
  if (first >= 1 && first - 1 <= size && count <= size - (first - 1)) return;
  int64_t last = first > INT64_MAX - count ? INT64_MAX : first + count - 1;
  if (count == 0)
    tps_misuse(L, "position %lld of a buffer of %lld elements",
               (long long)first, (long long)size);
  tps_misuse(L, "range %lld..%lld of a buffer of %lld elements",
             (long long)first, (long long)last, (long long)size);
}

void tps_check_range(lua_State *L, int index, int64_t size, int64_t *offset,
                     int64_t *count) {
  lua_Integer first = tps_opt_integer(L, index, 1);
  /* From beyond the end on: what is asked for is that one element. */
  bool beyond = first < 1 || first - 1 > size;
  lua_Integer n =
      tps_opt_integer(L, index + 1, beyond ? 1 : size - (first - 1));
  if (n < 0) {
    lua_pushfstring(L, "the count must not be negative, got %I",
                    (LUAI_UACINT)n);
    tps_argument_error(L, index + 1, lua_tostring(L, -1));
  }
  tps_check_span(L, first, n, size);
  *offset = first - 1;
  *count = n;
}

int tps_check_dtype(lua_State *L, int index) {
  const char *name = tps_check_string(L, index);
  int dtype = tps_dtype_find(name);
  if (dtype >= 0) return dtype;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, "unknown element type '");
  luaL_addstring(&b, name);
  luaL_addstring(&b, "' (there are ");
  for (int i = 0; i < TPS_DTYPE_COUNT; i++) {
    if (i > 0) luaL_addstring(&b, ", ");
    luaL_addstring(&b, tps_dtype_names[i]);
  }
  luaL_addstring(&b, ")");
  luaL_pushresult(&b);
  return tps_argument_error(L, index, lua_tostring(L, -1));
}
