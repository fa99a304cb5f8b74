/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.check: the checker, from a script. What a state has started ends with it. */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "lua/state.h"

/* ---- which checks -------------------------------------------------------- */

/* The check that the string at `index` names; raises. */
static unsigned check_named(lua_State *L, int index) {
  size_t size;
  if (lua_type(L, index) != LUA_TSTRING) {
    lua_pushfstring(L, "the names of checks are strings, got %s",
                    tps_type_name(L, index));
    tps_argument_error(L, 1, lua_tostring(L, -1));
  }
  const char *name = lua_tolstring(L, index, &size);
  unsigned check = tps_check_named(name, size);
  if (check == 0) {
    lua_pushfstring(L, "no check is called '%s'; there are %s", name,
                    TPS_CHECK_NAMES);
    tps_argument_error(L, 1, lua_tostring(L, -1));
  }
  return check;
}

/* { "order", "race" }, { order = true }; all but those of { memory = false }. */
static unsigned read_checks(lua_State *L) {
  unsigned on = 0, off = 0;
  if (lua_isnoneornil(L, 1)) return TPS_CHECK_ALL;
  tps_check_type(L, 1, LUA_TTABLE);
  lua_pushnil(L);
  while (lua_next(L, 1)) { /* key value */
    if (lua_isinteger(L, -2)) {
      on |= check_named(L, -1);
    } else {
      unsigned check = check_named(L, -2);
      if (!lua_isboolean(L, -1)) {
        lua_pushfstring(L, "field '%s': boolean expected, got %s",
                        tps_check_name(check), tps_type_name(L, -1));
        tps_argument_error(L, 1, lua_tostring(L, -1));
      }
      *(lua_toboolean(L, -1) ? &on : &off) |= check;
    }
    lua_pop(L, 1);
  }
  return (on == 0 ? TPS_CHECK_ALL : on) & ~off;
}

/* ---- reports as tables --------------------------------------------------- */

typedef struct reports {
  tps_report **list;
  size_t count;
} reports;

static void free_list(tps_report **list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) tps_report_unref(list[i]);
  free(list);
}

static void release(void *data) {
  reports *r = data;
  free_list(r->list, r->count);
  free(r);
}

static void set_string(lua_State *L, const char *key, const char *text) {
  if (text == NULL || text[0] == '\0') return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static void set_line(lua_State *L, const char *source, int line) {
  set_string(L, "source", source);
  if (line > 0) set_integer(L, "line", line);
}

static void set_side(lua_State *L, const char *key,
                     const tps_report_side *side) {
  lua_createtable(L, 0, 8);
  set_string(L, "access", side->access);
  set_string(L, "kind", side->kind);
  set_string(L, "kernel", side->kernel);
  set_string(L, "on", side->on);
  set_string(L, "launched", side->launched);
  set_line(L, side->source, side->line);
  if (strcmp(side->kind, "host") != 0)
    set_integer(L, "stream", (lua_Integer)side->stream);
  lua_setfield(L, -2, key);
}

static void set_order(lua_State *L, const tps_report *r) {
  lua_createtable(L, 0, 6);
  set_string(L, "dtype", r->dtype);
  set_integer(L, "count", r->elements);
  set_integer(L, "first", r->from);
  set_integer(L, "last", r->to);
  set_line(L, r->buffer_source, r->buffer_line);
  lua_setfield(L, -2, "buffer");
  set_side(L, "first", &r->first);
  set_side(L, "second", &r->second);
  set_string(L, "hint", r->hint);
}

static void push_report(lua_State *L, const tps_report *r) {
  lua_createtable(L, 0, 8);
  set_string(L, "check", tps_check_name(r->check));
  set_string(L, "text", r->text);
  set_integer(L, "count", (lua_Integer)atomic_load(&r->count));
  if (r->check == TPS_CHECK_ORDER) {
    set_order(L, r);
  } else {
    set_string(L, "kernel", r->kernel);
    set_line(L, r->source, r->line);
  }
}

/* What print shows of a report. */
static int report_tostring(lua_State *L) {
  tps_check_type(L, 1, LUA_TTABLE);
  lua_pushstring(L, "text");
  if (lua_rawget(L, 1) != LUA_TSTRING) lua_pushstring(L, "tpstream report");
  return 1;
}

static const luaL_Reg report_meta[] = {{"__tostring", report_tostring},
                                       {NULL, NULL}};

/* Pushes the array of these, whose list it takes; NULL: raises. */
static void push_reports(lua_State *L, tps_report **list, size_t count) {
  reports *all = calloc(1, sizeof *all);
  if (all == NULL || list == NULL) {
    free_list(list, count);
    free(all);
    tps_misuse(L, "out of host memory");
  }
  *all = (reports){list, count};
  tps_guard *guard = tps_guard_over(L, all, release);
  lua_createtable(L, (int)all->count, 0);
  luaL_newlib(L, report_meta); /* guard array metatable */
  for (size_t i = 0; i < all->count; i++) {
    push_report(L, all->list[i]);
    lua_pushvalue(L, -2);
    lua_setmetatable(L, -2);
    lua_rawseti(L, -3, (lua_Integer)i + 1);
  }
  lua_pop(L, 1);
  tps_guard_release(guard);
}

/* ---- tp.check ------------------------------------------------------------ */

static int check_start(lua_State *L) {
  tps_lua *lua = tps_open(L);
  uint64_t began;
  lua_settop(L, 1);
  if (!tps_check_start(read_checks(L), &began))
    return tps_misuse(L, "out of host memory");
  if (lua->checks++ == 0) lua->check_began = began;
  return 0;
}

void tps_check_leave(tps_lua *lua) {
  for (; lua->checks > 0; lua->checks--) tps_check_stop();
}

/* Waits for what this state has queued: the devices may have more to tell. */
static int check_stop(lua_State *L) {
  tps_lua *lua = tps_open(L);
  tps_error err;
  if (lua->checks == 0)
    return tps_misuse(L, "no check is running that this script has started");
  tps_before_wait(lua);
  int code = tps_context_synchronize(lua->context, TPS_FOREVER, &err);
  tps_check_settle();
  unsigned starts = lua->checks;
  size_t count;
  lua->checks = 0;
  tps_report **list = tps_check_stop_all(starts, lua->check_began, &count);
  if (code == TPS_INTERRUPTED) {
    free_list(list, count);
    return tps_raise(L, &err);
  }
  push_reports(L, list, count);
  tps_safe_point(L);
  return 1;
}

static int check_reports(lua_State *L) {
  const tps_lua *lua = tps_open(L);
  tps_check_settle();
  size_t count;
  tps_report **list =
      tps_report_list(lua->checks > 0 ? lua->check_began : 0, &count);
  push_reports(L, list, count);
  return 1;
}

static const luaL_Reg check_functions[] = {{"start", check_start},
                                           {"stop", check_stop},
                                           {"reports", check_reports},
                                           {NULL, NULL}};

/* library state → the same, with tp.check */
void tps_check_open(lua_State *L) {
  luaL_newlibtable(L, check_functions);
  lua_pushvalue(L, -2);
  luaL_setfuncs(L, check_functions, 1); /* library state check */
  lua_getiuservalue(L, -2, TPS_UV_METHODS);
  lua_pushvalue(L, -2);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  lua_setfield(L, -3, "check");
}
