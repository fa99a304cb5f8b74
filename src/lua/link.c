/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.link: relocatable modules → one that can run. */
#include "lua/compile.h"

/* The runtime's module of element i of the table at `index`. */
static tps_module *element(lua_State *L, int index, int i) {
  lua_rawgeti(L, index, i);
  tps_lua_module *box = (tps_lua_module *)tps_to(L, -1, TPS_TYPE_MODULE);
  if (box == NULL)
    tps_misuse(L,
               "bad argument #1 to 'link' (element %d: tpstream.Module "
               "expected, got %s)",
               i, tps_type_name(L, -1));
  if (box->module == NULL || box->module->closed)
    tps_misuse(L, "attempt to use a closed module");
  lua_pop(L, 1); /* the table keeps it */
  return box->module;
}

/* tp.link { Module, ... } → Module */
int tps_module_link_all(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  tps_check_type(L, 1, LUA_TTABLE);
  int count = (int)lua_rawlen(L, 1);
  if (count == 0) return tps_argument_error(L, 1, "the table has no modules");
  lua_settop(L, 1);
  tps_lua_module *box = tps_push_module(L);
  tps_module **modules = (tps_module **)lua_newuserdatauv(
      L, (size_t)count * sizeof(tps_module *), 0);
  tps_device *device = tps_current_device(L);
  for (int i = 0; i < count; i++) modules[i] = element(L, 1, i + 1);
  tps_site_set(L, lua);
  tps_module *module;
  if (tps_module_link(lua->context, device, modules, (size_t)count,
                      tps_rtc_link, &module, &err) != 0)
    return tps_raise(L, &err);
  box->module = module;
  lua_settop(L, 2);
  return 1;
}
