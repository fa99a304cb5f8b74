/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Devices. One userdata for each device and Lua state, so that == and table
 * keys work; which one is current is scope.c's. */
#include "lua/state.h"

#include <stdio.h>
#include <string.h>

tps_lua_device *tps_push_device(lua_State *L, tps_device *device) {
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_DEVICES); /* devices */
  if (lua_rawgetp(L, -1, device) == LUA_TNIL) {
    lua_pop(L, 1);
    tps_lua_device *box = (tps_lua_device *)tps_new(
        L, TPS_TYPE_DEVICE, sizeof(tps_lua_device), 1); /* devices Device */
    box->device = device;
    lua_pushvalue(L, -1);
    lua_rawsetp(L, -3, device);
  }
  lua_remove(L, -2);
  return (tps_lua_device *)lua_touserdata(L, -1);
}

static tps_device *by_ordinal(lua_State *L, lua_Integer ordinal) {
  tps_lua *lua = tps_open(L);
  tps_device *device;
  tps_error err;
  if (ordinal < 0) return tps_current_device(L);
  if (tps_device_get(lua->context->kind, ordinal, &device, &err) != 0)
    tps_raise(L, &err);
  return device;
}

static tps_device *by_name(lua_State *L, const char *name) {
  tps_lua *lua = tps_open(L);
  tps_device *device;
  tps_error err;
  if (tps_device_parse(name, lua->context->kind, &device, &err) != 0)
    tps_raise(L, &err);
  return device;
}

tps_device *tps_check_device(lua_State *L, int index) {
  tps_open(L);
  switch (lua_type(L, index)) {
  case LUA_TNONE:
  case LUA_TNIL: return tps_current_device(L);
  case LUA_TNUMBER: return by_ordinal(L, tps_check_integer(L, index));
  case LUA_TSTRING: return by_name(L, tps_check_string(L, index));
  default:
    return ((tps_lua_device *)tps_check(L, index, TPS_TYPE_DEVICE))->device;
  }
}

tps_device *tps_option_device(lua_State *L, int index, const char *name) {
  tps_device *device = NULL;
  lua_Integer ordinal;
  switch (tps_option(L, index, name)) {
  case LUA_TNIL: break;
  case LUA_TSTRING:
    if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
      tps_option_error(L, index, name, "must not contain NUL");
    device = by_name(L, lua_tostring(L, -1));
    break;
  case LUA_TNUMBER:
    ordinal = tps_option_integer(L, index, name, 0);
    device = by_ordinal(L, ordinal);
    break;
  default: {
    tps_lua_device *box = (tps_lua_device *)tps_to(L, -1, TPS_TYPE_DEVICE);
    if (box == NULL)
      tps_option_error(L, index, name, "tpstream.Device expected, got %s",
                       tps_type_name(L, -1));
    device = box->device;
  }
  }
  lua_pop(L, 1);
  return device;
}

/* ---- methods ------------------------------------------------------------- */

static tps_device *self(lua_State *L) {
  return ((tps_lua_device *)tps_check(L, 1, TPS_TYPE_DEVICE))->device;
}

static int device_name(lua_State *L) {
  lua_pushstring(L, self(L)->properties.name);
  return 1;
}

static int device_kind(lua_State *L) {
  lua_pushstring(L, self(L)->kind == TPS_CUDA ? "cuda" : "sim");
  return 1;
}

static int device_index(lua_State *L) {
  lua_pushinteger(L, self(L)->ordinal);
  return 1;
}

static int device_capability(lua_State *L) {
  tps_device *device = self(L);
  lua_pushinteger(L, device->properties.capability_major);
  lua_pushinteger(L, device->properties.capability_minor);
  return 2;
}

static int device_memory(lua_State *L) {
  tps_device *device = self(L);
  uint64_t available, total;
  tps_error err;
  tps_open(L);
  if (tps_device_memory_info(device, &available, &total, &err) != 0)
    return tps_raise(L, &err);
  lua_pushinteger(L, (lua_Integer)available);
  lua_pushinteger(L, (lua_Integer)total);
  return 2;
}

static int device_priority_range(lua_State *L) {
  tps_device *device = self(L);
  lua_pushinteger(L, device->properties.priority_least);
  lua_pushinteger(L, device->properties.priority_greatest);
  return 2;
}

static int device_synchronize(lua_State *L) {
  tps_device *device = self(L);
  uint64_t timeout = tps_check_timeout(L, 2);
  tps_lua *lua = tps_open(L);
  tps_error err;
  tps_site_set_observed(L, lua);
  tps_before_wait(lua);
  int code = tps_device_synchronize(lua->context, device, timeout, &err);
  if (code != 0 && code != TPS_NOT_READY) return tps_raise(L, &err);
  tps_safe_point(L);
  lua_pushboolean(L, code == 0);
  return 1;
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static void set_boolean(lua_State *L, const char *name, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, name);
}

static void set_triple(lua_State *L, const char *name, const int64_t *xyz) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushinteger(L, xyz[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, name);
}

static int device_properties(lua_State *L) {
  tps_device *device = self(L);
  const tps_device_properties *p = &device->properties;
  lua_createtable(L, 0, 32);
  lua_pushstring(L, p->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, device->kind == TPS_CUDA ? "cuda" : "sim");
  lua_setfield(L, -2, "kind");
  set_integer(L, "index", device->ordinal);
/* clang-format off */
#define INTEGER(field) set_integer(L, #field, p->field);
  INTEGER(capability_major) INTEGER(capability_minor)
  INTEGER(multiprocessors) INTEGER(warp_size)
  INTEGER(max_threads_per_block) INTEGER(max_threads_per_multiprocessor)
  INTEGER(max_blocks_per_multiprocessor)
  INTEGER(shared_per_block) INTEGER(shared_per_block_optin)
  INTEGER(shared_per_multiprocessor)
  INTEGER(registers_per_block) INTEGER(registers_per_multiprocessor)
  INTEGER(constant_memory) INTEGER(total_memory) INTEGER(l2_cache)
  INTEGER(clock_khz) INTEGER(memory_clock_khz) INTEGER(memory_bus_bits)
  INTEGER(async_engines) INTEGER(priority_least) INTEGER(priority_greatest)
  INTEGER(driver_version) INTEGER(runtime_version)
#undef INTEGER
/* clang-format on */
#define BOOLEAN(field) set_boolean(L, #field, p->field);
                                  BOOLEAN(cooperative_launch) BOOLEAN(clusters)
                                      BOOLEAN(managed_memory)
                                          BOOLEAN(concurrent_kernels)
#undef BOOLEAN
                                              set_triple(L, "max_block",
                                                         p->max_block);
  set_triple(L, "max_grid", p->max_grid);
  if (p->pci_bus_id[0]) {
    lua_pushstring(L, p->pci_bus_id);
    lua_setfield(L, -2, "pci_bus_id");
  }
  if (p->uuid[0]) {
    lua_pushstring(L, p->uuid);
    lua_setfield(L, -2, "uuid");
  }
  return 1;
}

static int device_tostring(lua_State *L) {
  char label[32];
  tps_device *device = self(L);
  lua_pushfstring(L, "tpstream.Device (%s, %s)",
                  tps_device_label(device, label, sizeof label),
                  device->properties.name);
  return 1;
}

/* ---- functions ----------------------------------------------------------- */

static int device_devices(lua_State *L) {
  tps_lua *lua = tps_open(L);
  int count = tps_device_count(lua->context->kind, NULL);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    tps_push_device(L, by_ordinal(L, i));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int device_device(lua_State *L) {
  tps_push_device(L, tps_check_device(L, 1));
  return 1;
}

static int device_current(lua_State *L) {
  tps_open(L);
  tps_push_device(L, tps_current_device(L));
  return 1;
}

static int device_count(lua_State *L) {
  lua_pushinteger(L, tps_device_count(TPS_CUDA, NULL));
  return 1;
}

static int device_is_available(lua_State *L) {
  lua_pushboolean(L, tps_device_count(TPS_CUDA, NULL) > 0);
  return 1;
}

static int device_memory_stats(lua_State *L) {
  tps_device *device = tps_check_device(L, 1);
  tps_memory_stats stats;
  tps_memory_get_stats(tps_open(L)->context, device, &stats);
  lua_createtable(L, 0, 11);
/* clang-format off */
#define INTEGER(field) set_integer(L, #field, (int64_t)stats.field);
  INTEGER(live_bytes) INTEGER(live_count) INTEGER(peak_bytes)
  INTEGER(pending_bytes) INTEGER(pending_count) INTEGER(pinned_bytes)
  INTEGER(managed_bytes)
  INTEGER(pool_bytes) INTEGER(allocations) INTEGER(frees)
#undef INTEGER
      /* clang-format on */
      return 1;
}

static const luaL_Reg device_meta[] = {{"__tostring", device_tostring},
                                       {NULL, NULL}};
static const luaL_Reg device_methods[] = {
    {"name", device_name},
    {"kind", device_kind},
    {"index", device_index},
    {"capability", device_capability},
    {"memory", device_memory},
    {"properties", device_properties},
    {"priority_range", device_priority_range},
    {"synchronize", device_synchronize},
    {NULL, NULL}};
static const luaL_Reg device_functions[] = {
    {"devices", device_devices},
    {"device", device_device},
    {"current_device", device_current},
    {"device_count", device_count},
    {"is_available", device_is_available},
    {"memory_stats", device_memory_stats},
    {NULL, NULL}};

void tps_device_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_DEVICE, device_meta, device_methods);
  tps_functions(L, device_functions);
}
