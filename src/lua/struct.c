/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Structs as arguments: strings of exactly their size, and help for whoever packs
 * them. */
#include "lua/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* " (the kernel reads 1 byte at offset 0, 8 bytes at offset 8)", or "". */
static TPS_COLD const char *push_fields(lua_State *L, const tps_lua_kernel *k,
                                        uint32_t i) {
  size_t count;
  char text[400] = "";
  size_t size = 0;
  tps_field *fields = tps_kernel_fields(k->kernel, i, &count);
  for (size_t j = 0; j < count && size + 60 < sizeof text; j++)
    size += (size_t)snprintf(
        text + size, sizeof text - size, "%s%u byte%s at offset %u",
        j == 0 ? " (the kernel reads " : ", ", fields[j].size,
        fields[j].size == 1 ? "" : "s", fields[j].offset);
  free(fields);
  if (size > 0)
    snprintf(text + size, sizeof text - size,
             size + 60 < sizeof text ? ")" : ", ...)");
  return lua_pushstring(L, text);
}

static TPS_COLD _Noreturn void bad_struct(lua_State *L, const tps_lua_kernel *k,
                                          uint32_t i, int index) {
  int size = (int)k->plans[i].size;
  if (lua_type(L, index) == LUA_TSTRING)
    lua_pushfstring(L, "string of %d bytes expected, got one of %I", size,
                    (LUAI_UACINT)lua_rawlen(L, index));
  else
    lua_pushfstring(L, "string of %d bytes expected, got %s", size,
                    tps_type_name(L, index));
  const char *why = lua_tostring(L, -1);
  tps_bad_argument(L, k, i,
                   lua_pushfstring(L, "%s%s", why, push_fields(L, k, i)));
}

/* An integer for __int128, signed or not. */
static bool put_wide(lua_State *L, const tps_lua_kernel *k, uint32_t i,
                     int index) {
  const tps_plan *p = &k->plans[i];
  const char *type = k->kernel->desc->params[i].type;
  lua_Integer value[2];
  if (p->size != 16 || type == NULL || strstr(type, "__int128") == NULL ||
      tps_integer_from(L, index, LUA_MININTEGER, LUA_MAXINTEGER, value) !=
          TPS_FITS)
    return false;
  if (value[0] < 0 && strncmp(type, "unsigned", 8) == 0)
    tps_bad_argument(
        L, k, i, lua_pushfstring(L, "%I is negative", (LUAI_UACINT)value[0]));
  value[1] = value[0] < 0 ? -1 : 0;
  memcpy(k->kernel->block + p->offset, value, 16);
  return true;
}

void tps_put_struct(lua_State *L, tps_lua_kernel *k, uint32_t i, int index) {
  const tps_plan *p = &k->plans[i];
  size_t size = 0;
  if (put_wide(L, k, i, index)) return;
  const char *bytes =
      lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &size) : NULL;
  if (bytes == NULL || size != p->size) bad_struct(L, k, i, index);
  memcpy(k->kernel->block + p->offset, bytes, size);
}
