/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.compile: an options table → rtc's request → Module. */
#include "lua/compile.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options → request --------------------------------------------------- */

static const char *const option_names[] = {
    "name",      "std",        "arch",     "defines",     "include", "headers",
    "names",     "options",    "lineinfo", "debug",       "cache",   "warnings",
    "untrusted", "max_memory", "max_time", "relocatable", "pch",     NULL};

/* Pops a string and keeps it in the table at `anchors`: nothing else may, once
 * a finalizer changes the options. */
static const char *keep(lua_State *L, int anchors) {
  const char *text = lua_tostring(L, -1);
  lua_rawseti(L, anchors, (lua_Integer)lua_rawlen(L, anchors) + 1);
  return text;
}

/* The same for a string that C must read to its end; `what` names it. */
static const char *keep_text(lua_State *L, int index, const char *option,
                             const char *what, int anchors) {
  if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
    tps_option_error(L, index, option, "%smust not contain NUL", what);
  return keep(L, anchors);
}

/* An array kept in the same way. */
static void *keep_array(lua_State *L, int anchors, size_t count, size_t size) {
  void *array = lua_newuserdatauv(L, (count + 1) * size, 0);
  lua_rawseti(L, anchors, (lua_Integer)lua_rawlen(L, anchors) + 1);
  return array;
}

static const char *text_option(lua_State *L, int index, const char *name,
                               int anchors) {
  int type = tps_option(L, index, name);
  if (type == LUA_TNIL) {
    lua_pop(L, 1);
    return NULL;
  }
  if (type != LUA_TSTRING)
    tps_option_error(L, index, name, "string expected, got %s",
                     tps_type_name(L, -1));
  return keep_text(L, index, name, "", anchors);
}

static const char *arch_option(lua_State *L, int index, int anchors) {
  int type = tps_option(L, index, "arch");
  if (type != LUA_TNIL && type != LUA_TSTRING && type != LUA_TNUMBER)
    tps_option_error(L, index, "arch", "number or string expected, got %s",
                     tps_type_name(L, -1));
  if (type == LUA_TNUMBER) {
    lua_Integer number = tps_option_integer(L, index, "arch", 0);
    lua_pushfstring(L, "%I", (LUAI_UACINT)number);
    const char *text = keep(L, anchors);
    lua_pop(L, 1);
    return text;
  }
  lua_pop(L, 1);
  return text_option(L, index, "arch", anchors);
}

/* The table on top has nothing but the elements 1 to n. */
static void check_array(lua_State *L, int index, const char *name, size_t n) {
  lua_pushnil(L);
  while (lua_next(L, -2)) { /* table key value */
    lua_pop(L, 1);
    lua_Integer i = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
    if (i >= 1 && (size_t)i <= n) continue;
    const char *key = luaL_tolstring(L, -1, NULL);
    tps_option_error(L, index, name, "an array expected, it has the key '%s'",
                     key);
  }
}

/* An array of strings, or one string where `single` allows it. */
static const char *const *list_option(lua_State *L, int index, const char *name,
                                      bool single, int anchors, size_t *count) {
  int type = tps_option(L, index, name);
  *count = 0;
  if (type == LUA_TNIL || (type == LUA_TSTRING && single)) {
    lua_pop(L, 1);
    const char **one = (const char **)keep_array(L, anchors, 1, sizeof *one);
    if (type == LUA_TNIL) return one;
    one[0] = text_option(L, index, name, anchors);
    *count = 1;
    return one;
  }
  if (type != LUA_TTABLE)
    tps_option_error(L, index, name, "%stable expected, got %s",
                     single ? "string or " : "", tps_type_name(L, -1));
  size_t n = lua_rawlen(L, -1);
  check_array(L, index, name, n);
  const char **list = (const char **)keep_array(L, anchors, n, sizeof *list);
  for (size_t i = 0; i < n; i++) {
    if (lua_rawgeti(L, -1, (lua_Integer)i + 1) != LUA_TSTRING)
      tps_option_error(L, index, name, "element %zu: string expected, got %s",
                       i + 1, tps_type_name(L, -1));
    char what[40];
    snprintf(what, sizeof what, "element %zu: ", i + 1);
    list[i] = keep_text(L, index, name, what, anchors);
  }
  lua_pop(L, 1);
  *count = n;
  return list;
}

/* The entries of the table on top, whose keys must be strings. */
static size_t count_entries(lua_State *L, int index, const char *name) {
  size_t count = 0;
  if (!lua_istable(L, -1))
    tps_option_error(L, index, name, "table expected, got %s",
                     tps_type_name(L, -1));
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      tps_option_error(L, index, name, "names expected as keys, got %s",
                       tps_type_name(L, -2));
    count++;
    lua_pop(L, 1);
  }
  return count;
}

/* A float as C reads it, whatever the locale. */
static void push_float(lua_State *L, lua_Number x) {
  char text[64];
  snprintf(text, sizeof text, "%.17g", x);
  char *point = strchr(text, *localeconv()->decimal_point);
  if (point != NULL) *point = '.';
  if (strpbrk(text, ".e") == NULL) strcat(text, ".0");
  lua_pushstring(L, text);
}

/* The value on top as a macro's text; NULL: defined as 1. */
static const char *define_value(lua_State *L, int index, const char *name,
                                int anchors) {
  switch (lua_type(L, -1)) {
  case LUA_TBOOLEAN:
    if (lua_toboolean(L, -1)) return NULL;
    lua_pushliteral(L, "0");
    break;
  case LUA_TSTRING: lua_pushvalue(L, -1); break;
  case LUA_TNUMBER:
    if (lua_isinteger(L, -1))
      lua_pushfstring(L, "%I", (LUAI_UACINT)lua_tointeger(L, -1));
    else if (isfinite(lua_tonumber(L, -1))) push_float(L, lua_tonumber(L, -1));
    else tps_option_error(L, index, "defines", "'%s' is not finite", name);
    break;
  default:
    tps_option_error(L, index, "defines",
                     "'%s': string, number or boolean expected, got %s", name,
                     tps_type_name(L, -1));
  }
  return keep_text(L, index, "defines", "a value ", anchors);
}

/* Tables have no order, but equal options should make equal requests. */
static int by_name(const void *a, const void *b) {
  return strcmp(((const tps_rtc_define *)a)->name,
                ((const tps_rtc_define *)b)->name);
}

static void defines_option(lua_State *L, int index, int anchors,
                           tps_rtc_request *r) {
  int top = lua_gettop(L);
  if (tps_option(L, index, "defines") != LUA_TNIL) {
    size_t count = count_entries(L, index, "defines");
    tps_rtc_define *list =
        (tps_rtc_define *)keep_array(L, anchors, count, sizeof *list);
    size_t n = 0;
    lua_pushnil(L);
    while (n < count && lua_next(L, -2)) { /* defines name value */
      lua_pushvalue(L, -2);
      list[n].name = keep_text(L, index, "defines", "a name ", anchors);
      list[n].value = define_value(L, index, list[n].name, anchors);
      n++;
      lua_pop(L, 1);
    }
    qsort(list, n, sizeof *list, by_name);
    r->defines = list;
    r->define_count = n;
  }
  lua_settop(L, top);
}

static void headers_option(lua_State *L, int index, int anchors,
                           tps_rtc_request *r) {
  int top = lua_gettop(L);
  if (tps_option(L, index, "headers") != LUA_TNIL) {
    size_t count = count_entries(L, index, "headers");
    tps_rtc_header *list =
        (tps_rtc_header *)keep_array(L, anchors, count, sizeof *list);
    size_t n = 0;
    lua_pushnil(L);
    while (n < count && lua_next(L, -2)) { /* headers name text */
      if (lua_type(L, -1) != LUA_TSTRING)
        tps_option_error(L, index, "headers", "'%s': string expected, got %s",
                         lua_tostring(L, -2), tps_type_name(L, -1));
      list[n].text = keep_text(L, index, "headers", "a header ", anchors);
      lua_pushvalue(L, -1); /* headers name name */
      list[n++].name = keep_text(L, index, "headers", "a name ", anchors);
    }
    qsort(list, n, sizeof *list, by_name);
    r->headers = list;
    r->header_count = n;
  }
  lua_settop(L, top);
}

/* The key of the folder of a file that is compiled, in the options that such a
 * compile has: no script can use or see it. */
static const char folder_key;

static const char *folder_option(lua_State *L, int index) {
  if (!lua_istable(L, index)) return NULL;
  lua_rawgetp(L, index, &folder_key);
  const char *folder = lua_tostring(L, -1); /* the options keep it */
  lua_pop(L, 1);
  return folder;
}

/* A limit of the process that compiles untrusted sources, 0 if it is not given. */
static uint64_t limit_option(lua_State *L, int index, const char *name,
                             bool untrusted) {
  lua_Integer value = tps_option_integer(L, index, name, 0);
  bool given = tps_option(L, index, name) != LUA_TNIL;
  lua_pop(L, 1);
  if (given && value < 1)
    tps_option_error(L, index, name, "at least 1 expected, got %lld",
                     (long long)value);
  if (given && !untrusted)
    tps_option_error(L, index, name, "is for untrusted sources alone");
  return (uint64_t)value;
}

bool tps_untrusted(lua_State *L, int index) {
  lua_getfield(L, LUA_REGISTRYINDEX, "tpstream.untrusted"); /* the host's */
  bool all = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return tps_option_boolean(L, index, "untrusted", false) || all;
}

static void limits(lua_State *L, int index, tps_rtc_request *r) {
  r->untrusted = tps_untrusted(L, index);
  r->max_memory = limit_option(L, index, "max_memory", r->untrusted);
  r->max_time = limit_option(L, index, "max_time", r->untrusted);
}

/* Where the script has the source, if that has no name of its own. */
static void place(lua_State *L, int anchors, tps_rtc_request *r) {
  tps_place found;
  int top = lua_gettop(L);
  luaL_checkstack(L, 16, NULL);
  tps_find_place_here(L, r, &found);
  if (found.count > 0) {
    size_t bytes = sizeof found.parts[0];
    void *parts = keep_array(L, anchors, found.count, bytes);
    memcpy(parts, found.parts, found.count * bytes);
    lua_pushstring(L, found.script);
    r->script = keep(L, anchors);
    r->parts = (const tps_rtc_part *)parts;
    r->part_count = found.count;
  }
  lua_settop(L, top);
}

void tps_compile_fill(lua_State *L, int source, int index, int anchors,
                      const char *name, tps_rtc_request *r) {
  memset(r, 0, sizeof *r);
  tps_check_options(L, index, option_names);
  r->source = lua_tolstring(L, source, &r->source_size);
  r->folder = folder_option(L, index);
  r->name = text_option(L, index, "name", anchors);
  r->std = text_option(L, index, "std", anchors);
  r->arch = arch_option(L, index, anchors);
  r->lineinfo = tps_option_boolean(L, index, "lineinfo", true);
  r->debug = tps_option_boolean(L, index, "debug", false);
  r->pch = tps_option_boolean(L, index, "pch", false);
  r->relocatable = tps_option_boolean(L, index, "relocatable", false);
  r->no_cache = !tps_option_boolean(L, index, "cache", true);
  limits(L, index, r);
  defines_option(L, index, anchors, r);
  headers_option(L, index, anchors, r);
  r->includes =
      list_option(L, index, "include", true, anchors, &r->include_count);
  r->options =
      list_option(L, index, "options", false, anchors, &r->option_count);
  size_t count;
  const char *const *names =
      list_option(L, index, "names", false, anchors, &count);
  /* keep_array leaves room for one more. */
  if (name != NULL) ((const char **)names)[count++] = name;
  r->names = names;
  r->name_count = count;
  place(L, anchors, r);
}

/* ---- compiling ----------------------------------------------------------- */

static void free_report(void *report) {
  tps_rtc_report_free((tps_rtc_report *)report);
}

tps_report_guard *tps_push_report(lua_State *L) {
  tps_report_guard *g =
      (tps_report_guard *)tps_new(L, TPS_TYPE_GUARD, sizeof *g, 0);
  g->guard.release = free_report;
  g->guard.data = &g->report;
  return g;
}

void tps_show_warnings(lua_State *L, int options, const char *text) {
  lua_getfield(L, LUA_REGISTRYINDEX, "tpstream.warnings"); /* the host's */
  bool otherwise = lua_toboolean(L, -1);
  lua_pop(L, 1);
  if (*text == '\0' || !tps_option_boolean(L, options, "warnings", otherwise))
    return;
  fflush(stdout);
  fputs(text, stderr);
}

/* Pushes the log of a compile that succeeded. */
static void push_log(lua_State *L, const tps_rtc_request *request,
                     const tps_rtc_report *report, int callers) {
  if (report->note != NULL) lua_pushfstring(L, "note: %s\n", report->note);
  else lua_pushliteral(L, "");
  tps_push_diagnostics(L, request, report, NULL, callers);
  lua_concat(L, 2);
}

void tps_compile_keep(lua_State *L, int index, int source, int options,
                      const tps_rtc_request *request,
                      const tps_rtc_report *report, int callers) {
  push_log(L, request, report, callers);
  lua_setiuservalue(L, index, TPS_MODULE_LOG);
  lua_pushvalue(L, source);
  lua_setiuservalue(L, index, TPS_MODULE_SOURCE);
  lua_pushvalue(L, options);
  lua_setiuservalue(L, index, TPS_MODULE_OPTIONS);
  lua_newtable(L);
  lua_setiuservalue(L, index, TPS_MODULE_INSTANCES);
}

int tps_compile(lua_State *L, int source, int options, const char *name,
                tps_error *err) {
  tps_lua *lua = tps_open(L);
  tps_rtc_request request;
  tps_lua_module *box = tps_push_module(L); /* Module */
  int index = lua_gettop(L);
  tps_report_guard *g = tps_push_report(L); /* Module report */
  lua_newtable(L);                          /* Module report anchors */
  tps_compile_fill(L, source, options, index + 2, name, &request);
  tps_device *device = tps_current_device(L);
  tps_site_set(L, lua);
  tps_before_wait(lua);
  request.interrupted = lua->context->interrupted;
  request.interrupted_data = lua->context->interrupted_data;
  tps_module *module;
  int code =
      tps_rtc_compile(lua->context, device, &request, &module, &g->report, err);
  if (code == 0) {
    box->module = module;
    tps_compile_keep(L, index, source, options, &request, &g->report, 0);
  } else if (code == TPS_COMPILATION) {
    tps_push_diagnostics(L, &request, &g->report, err->message, 0);
    lua_replace(L, index);
  }
  tps_guard_release(&g->guard);
  lua_settop(L, index);
  return code;
}

/* source options → Module, raising all errors */
static int compile(lua_State *L) {
  tps_error err;
  int code = tps_compile(L, 1, 2, NULL, &err);
  if (code == TPS_COMPILATION) return tps_raise_text(L, &err);
  if (code != 0) return tps_raise(L, &err);
  lua_getiuservalue(L, -1, TPS_MODULE_LOG); /* Module log */
  tps_show_warnings(L, 2, lua_tostring(L, -1));
  lua_pop(L, 1);
  return 1;
}

int tps_module_compile(lua_State *L) {
  tps_check_type(L, 1, LUA_TSTRING);
  lua_settop(L, 2);
  return compile(L);
}

static void push_folder(lua_State *L, const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) lua_pushliteral(L, ".");
  else lua_pushlstring(L, path, (size_t)(slash - path + (slash == path)));
}

/* Pushes what field "include" holds after the file's own directory. */
static void push_includes(lua_State *L, const char *path, int options) {
  lua_newtable(L); /* includes */
  push_folder(L, path);
  lua_rawseti(L, -2, 1);
  if (tps_option(L, options, "include") == LUA_TTABLE) {
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
      lua_rawseti(L, -3, i + 1);
    lua_pop(L, 1);
  } else if (lua_type(L, -1) != LUA_TNIL) {
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, 2);
  }
  lua_pop(L, 1);
}

/* The options of compile_file: those given, with the path for a name. */
static void push_file_options(lua_State *L, const char *path, int options) {
  lua_newtable(L);
  if (lua_istable(L, options)) {
    lua_pushnil(L);
    while (lua_next(L, options)) { /* copy key value */
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, -4);
    }
  }
  if (tps_option(L, options, "name") == LUA_TNIL) {
    lua_pushstring(L, path);
    lua_setfield(L, -3, "name");
  }
  lua_pop(L, 1);
  push_includes(L, path, options);
  lua_setfield(L, -2, "include");
  push_folder(L, path);
  lua_rawsetp(L, -2, &folder_key);
}

int tps_module_compile_file(lua_State *L) {
  tps_error err;
  tps_check_type(L, 1, LUA_TSTRING);
  const char *path = tps_check_string(L, 1);
  lua_settop(L, 2);
  tps_check_options(L, 2, option_names);
  push_file_options(L, path, 2); /* path options copy */
  lua_replace(L, 2);
  if (!tps_push_file(L, path, &err)) return tps_raise(L, &err);
  lua_replace(L, 1); /* source copy */
  return compile(L);
}
