/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The elements of memory that the host reaches, by index. */
#include "lua/buffer.h"

/* The address of element lua_tointeger(L, 2); raises when there is none. */
static unsigned char *element(lua_State *L, const tps_lua_buffer *b) {
  int whole;
  lua_Integer i = lua_tointegerx(L, 2, &whole);
  if (b->memory->host == NULL && b->memory->kind != TPS_MEMORY_PINNED)
    tps_misuse(L, "elements of device memory can't be had by index: use read "
                  "and write, or pinned memory");
  if (!whole)
    tps_misuse(L, "index %s is not a whole number", luaL_tolstring(L, 2, NULL));
  if (i < 1 || i > b->count)
    tps_misuse(L, "index %lld of a buffer of %lld elements", (long long)i,
               (long long)b->count);
  return (unsigned char *)b->memory->host + b->first +
         (uint64_t)(i - 1) * b->size;
}

/* Somebody observes, and the element is about to be read or written. */
static TPS_COLD void tell(lua_State *L, const tps_lua_buffer *b,
                          tps_access access) {
  tps_site_set(L, b->head.lua);
  tps_observe_host(b->memory,
                   b->first + (uint64_t)(lua_tointeger(L, 2) - 1) * b->size,
                   b->size, (uint8_t)(access | TPS_ACCESS_STRONG));
}

/* A kernel that runs may use the element at the same time: each is read and
 * written as a whole. */
static void load_element(void *to, const void *from, unsigned size) {
#define LOAD(type)                                                             \
  __atomic_load((const type *)from, (type *)to, __ATOMIC_ACQUIRE)
  switch (size) {
  case 1: LOAD(uint8_t); break;
  case 2: LOAD(uint16_t); break;
  case 4: LOAD(uint32_t); break;
  default: LOAD(uint64_t);
  }
#undef LOAD
}

static void store_element(void *to, void *from, unsigned size) {
#define STORE(type) __atomic_store((type *)to, (type *)from, __ATOMIC_RELEASE)
  switch (size) {
  case 1: STORE(uint8_t); break;
  case 2: STORE(uint16_t); break;
  case 4: STORE(uint32_t); break;
  default: STORE(uint64_t);
  }
#undef STORE
}

/* Upvalue 2: the methods. */
int tps_buffer_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TNUMBER) {
    tps_lua_buffer *b = tps_buffer_self(L);
    uint64_t value;
    const unsigned char *from = element(L, b);
    if (TPS_UNLIKELY(tps_observing())) tell(L, b, TPS_ACCESS_READ);
    load_element(&value, from, b->size);
    tps_push_element(L, b->dtype, &value);
    return 1;
  }
  lua_settop(L, 2);
  lua_rawget(L, lua_upvalueindex(2));
  return 1;
}

int tps_buffer_newindex(lua_State *L) {
  tps_lua_buffer *b = tps_buffer_self(L);
  if (lua_type(L, 2) != LUA_TNUMBER)
    return tps_misuse(L, "attempt to set a field of a buffer");
  unsigned char *to = element(L, b);
  uint64_t value;
  tps_fit fit = tps_element_from(L, 3, b->dtype, &value);
  if (fit != TPS_FITS)
    return tps_misuse(L, "element %lld: %s", (long long)lua_tointeger(L, 2),
                      tps_push_misfit(L, 3, b->dtype, fit));
  if (TPS_UNLIKELY(tps_observing())) tell(L, b, TPS_ACCESS_WRITE);
  store_element(to, &value, b->size);
  return 0;
}
