/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Kernels: what can be asked of them. Launching is launch.c's. */
#include "lua/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- boxes --------------------------------------------------------------- */

tps_lua_kernel *tps_check_kernel(lua_State *L, int index) {
  tps_lua_kernel *box = (tps_lua_kernel *)tps_check(L, index, TPS_TYPE_KERNEL);
  if (box->kernel == NULL || box->kernel->module->closed)
    tps_misuse(L, "attempt to use a closed kernel");
  tps_open(L);
  return box;
}

static tps_kernel *self(lua_State *L) { return tps_check_kernel(L, 1)->kernel; }

static void release(tps_lua_kernel *box) {
  tps_kernel *kernel = box->kernel;
  box->kernel = NULL;
  free(box->plans);
  free(box->uses);
  free(box->names);
  box->plans = NULL;
  box->uses = NULL;
  box->names = NULL;
  box->count = 0;
  if (kernel != NULL) tps_kernel_free(kernel);
}

static int kernel_close(lua_State *L) {
  release((tps_lua_kernel *)tps_check(L, 1, TPS_TYPE_KERNEL));
  return 0;
}

static int kernel_gc(lua_State *L) {
  kernel_close(L);
  tps_break_seal(lua_touserdata(L, 1));
  return 0;
}

int tps_push_kernel(lua_State *L, tps_module *module, const char *name,
                    tps_error *err) {
  tps_lua_kernel *box =
      (tps_lua_kernel *)tps_new(L, TPS_TYPE_KERNEL, sizeof(tps_lua_kernel), 0);
  tps_kernel *kernel = NULL;
  int code = module->closed
                 ? tps_fail(err, TPS_MISUSE, "attempt to use a closed module")
                 : tps_kernel_find(module, name, &kernel, err);
  if (code == 0) {
    box->kernel = kernel;
    code = tps_plan_make(box, err);
  }
  if (code != 0) {
    release(box);
    lua_pop(L, 1);
  }
  return code;
}

/* ---- methods ------------------------------------------------------------- */

static int kernel_name(lua_State *L) {
  lua_pushstring(L, self(L)->name);
  return 1;
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static int kernel_attributes(lua_State *L) {
  tps_kernel *kernel = self(L);
  tps_kernel_attributes a;
  tps_error err;
  tps_device *device = tps_current_device(L);
  if (tps_kernel_attributes_of(kernel, device, &a, &err) != 0)
    return tps_raise(L, &err);
  lua_createtable(L, 0, 6);
  set_integer(L, "registers", a.registers);
  set_integer(L, "shared_bytes", a.shared_bytes);
  set_integer(L, "local_bytes", a.local_bytes);
  set_integer(L, "const_bytes", a.const_bytes);
  set_integer(L, "max_threads", a.max_threads);
  set_integer(L, "max_dynamic_shared", a.max_dynamic_shared);
  return 1;
}

static const char *access_name(int access) {
  switch (access) {
  case TPS_ACCESS_NONE: return "none";
  case TPS_ACCESS_READ: return "read";
  case TPS_ACCESS_WRITE: return "write";
  case TPS_ACCESS_BOTH: return "both";
  default: return "unknown";
  }
}

static void push_param(lua_State *L, const tps_param *p) {
  lua_createtable(L, 0, 6);
  lua_pushstring(L, p->type == NULL ? "" : p->type);
  lua_setfield(L, -2, "type");
  set_integer(L, "size", p->size);
  set_integer(L, "offset", p->offset);
  lua_pushboolean(L, p->pointer);
  lua_setfield(L, -2, "pointer");
  lua_pushboolean(L, p->is_const);
  lua_setfield(L, -2, "const");
  lua_pushstring(L, access_name(p->access));
  lua_setfield(L, -2, "access");
}

/* Sets "fields" of the description on top: array of {offset, size}. */
static void set_fields(lua_State *L, tps_kernel *kernel, uint32_t param) {
  size_t count;
  tps_guard *guard = tps_guard_push(L); /* guard */
  tps_field *fields = tps_kernel_fields(kernel, param, &count);
  guard->release = free;
  guard->data = fields;
  lua_createtable(L, (int)count, 0); /* guard fields */
  for (size_t i = 0; i < count; i++) {
    lua_createtable(L, 0, 2);
    set_integer(L, "offset", fields[i].offset);
    set_integer(L, "size", fields[i].size);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -3, "fields");
  tps_guard_release(guard);
  lua_pop(L, 1);
}

static int kernel_params(lua_State *L) {
  tps_kernel *kernel = self(L);
  const tps_kernel_desc *desc = kernel->desc;
  lua_createtable(L, (int)desc->param_count, 0);
  for (uint32_t i = 0; i < desc->param_count; i++) {
    push_param(L, &desc->params[i]);
    if (desc->params[i].is_struct) set_fields(L, kernel, i);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static lua_Integer check_threads(lua_State *L) {
  lua_Integer threads = tps_check_integer(L, 2);
  if (threads < 1) tps_argument_error(L, 2, "a block has at least one thread");
  return threads;
}

static lua_Integer check_shared(lua_State *L) {
  lua_Integer shared = tps_opt_integer(L, 3, 0);
  if (shared < 0)
    tps_argument_error(L, 3, "shared memory must not be negative");
  return shared;
}

static int kernel_occupancy(lua_State *L) {
  tps_kernel *kernel = self(L);
  lua_Integer threads = check_threads(L), shared = check_shared(L);
  tps_device *device = tps_current_device(L);
  int blocks;
  tps_error err;
  if (tps_kernel_occupancy(kernel, device, threads, shared, &blocks, &err))
    return tps_raise(L, &err);
  lua_pushinteger(L, blocks);
  return 1;
}

static int kernel_max_cooperative_grid(lua_State *L) {
  tps_kernel *kernel = self(L);
  lua_Integer threads = check_threads(L), shared = check_shared(L);
  tps_device *device = tps_current_device(L);
  int64_t blocks;
  tps_error err;
  if (tps_kernel_cooperative_grid(kernel, device, threads, shared, &blocks,
                                  &err) != 0)
    return tps_raise(L, &err);
  lua_pushinteger(L, blocks);
  return 1;
}

/* "map(float* y, float a, long long n)": of tp.map, which knows the names. */
static const char *push_named(lua_State *L, const tps_lua_kernel *box) {
  const tps_kernel *kernel = box->kernel;
  const char *name = box->names;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, kernel->name);
  luaL_addchar(&b, '(');
  for (uint32_t i = 0; i < box->count; i++) {
    const char *type = kernel->desc->params[i].type;
    size_t length = strcspn(name, ",");
    if (type != NULL) luaL_addstring(&b, type);
    if (type != NULL) luaL_addchar(&b, ' ');
    luaL_addlstring(&b, name, length);
    name += length;
    if (*name == '\0') break;
    luaL_addlstring(&b, name, 2); /* ", " */
    name += 2;
  }
  luaL_addchar(&b, ')');
  luaL_pushresult(&b);
  return lua_tostring(L, -1);
}

static int kernel_tostring(lua_State *L) {
  tps_lua_kernel *box = (tps_lua_kernel *)tps_check(L, 1, TPS_TYPE_KERNEL);
  if (box->kernel == NULL || box->kernel->module->closed)
    lua_pushliteral(L, "tpstream.Kernel (closed)");
  else
    lua_pushfstring(L, "tpstream.Kernel (%s)",
                    box->names != NULL ? push_named(L, box)
                                       : box->kernel->desc->signature);
  return 1;
}

static const luaL_Reg kernel_meta[] = {{"__tostring", kernel_tostring},
                                       {"__gc", kernel_gc},
                                       {"__close", kernel_close},
                                       {NULL, NULL}};
static const luaL_Reg kernel_methods[] = {
    {"close", kernel_close},
    {"launch", tps_kernel_launch},
    {"bind", tps_kernel_bind},
    {"forall", tps_kernel_forall},
    {"name", kernel_name},
    {"attributes", kernel_attributes},
    {"params", kernel_params},
    {"occupancy", kernel_occupancy},
    {"max_cooperative_grid", kernel_max_cooperative_grid},
    {NULL, NULL}};

void tps_kernel_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_KERNEL, kernel_meta, kernel_methods);
}
