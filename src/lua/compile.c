/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.compile: an options table → rtc's request, and what the compiler said →
 * text in the script's own numbering. */
#include "lua/state.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/rtc.h"

/* ---- options → request --------------------------------------------------- */

static const char *const option_names[] = {
    "name",  "std",     "arch",     "defines", "include", "headers",
    "names", "options", "lineinfo", "debug",   "cache",   NULL};

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
  if (tps_option(L, index, "arch") == LUA_TNUMBER) {
    lua_Integer number = tps_option_integer(L, index, "arch", 0);
    lua_pushfstring(L, "%I", (LUAI_UACINT)number);
    const char *text = keep(L, anchors);
    lua_pop(L, 1);
    return text;
  }
  lua_pop(L, 1);
  return text_option(L, index, "arch", anchors);
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
    tps_option_error(L, index, name, "table expected, got %s",
                     tps_type_name(L, -1));
  size_t n = lua_rawlen(L, -1);
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

static void fill_request(lua_State *L, int source, int index, int anchors,
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
  r->no_cache = !tps_option_boolean(L, index, "cache", true);
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
}

/* ---- diagnostics → text -------------------------------------------------- */

/* Pushes the text of the calling function's chunk; false: not to be had. */
static bool push_script(lua_State *L, const lua_Debug *ar) {
  tps_error err;
  if (*ar->source == '@') return tps_push_file(L, ar->source + 1, &err);
  if (*ar->source != '=') {
    lua_pushstring(L, ar->source);
    return true;
  }
  return lua_getfield(L, LUA_REGISTRYINDEX, "tpstream.sources") == LUA_TTABLE &&
         lua_getfield(L, -1, ar->source) == LUA_TSTRING;
}

/* The line of the script where the source begins, 0 if that can't be found; the
 * script's name is pushed. */
static int find_literal(lua_State *L, const tps_rtc_request *r) {
  lua_Debug ar;
  if (!tps_caller(L, &ar, "Sl")) {
    lua_pushliteral(L, "source");
    return 0;
  }
  lua_pushstring(L, ar.short_src);
  int line = 0;
  int top = lua_gettop(L);
  if (push_script(L, &ar)) {
    size_t size;
    const char *script = lua_tolstring(L, -1, &size);
    line =
        tps_rtc_locate(script, size, r->source, r->source_size, ar.currentline);
  }
  lua_settop(L, top);
  return line;
}

static void set_text(lua_State *L, const char *field, const char *text) {
  if (text == NULL) return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

static void set_number(lua_State *L, const char *field, int number) {
  lua_pushinteger(L, number);
  lua_setfield(L, -2, field);
}

/* One diagnostic as a table; `offset` is added to lines of the program. */
static void push_diagnostic(lua_State *L, const tps_rtc_diagnostic *d,
                            const char *program, int offset) {
  static const char *const severities[] = {"error", "warning", "note"};
  bool own = d->file == NULL || strcmp(d->file, TPS_RTC_PROGRAM) == 0;
  lua_createtable(L, 0, 6);
  set_text(L, "severity", severities[d->severity]);
  set_text(L, "file", own ? program : d->file);
  set_number(L, "line", own && d->line > 0 ? d->line + offset : d->line);
  set_number(L, "column", d->column);
  set_text(L, "message", d->message);
  set_text(L, "text", d->text);
}

/* Pushes what lua/tpstream/diagnostics.lua makes of the report. */
static void push_text(lua_State *L, const tps_rtc_request *r,
                      const tps_rtc_report *report, const char *message) {
  const char *program = r->name;
  int offset = 0;
  int top = lua_gettop(L);
  if (program == NULL) {
    int line = find_literal(L, r); /* name */
    if (line > 0) {
      program = lua_tostring(L, -1);
      offset = line - 1;
    } else {
      program = "source";
    }
  }
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_DIAGNOSTICS);
  lua_pushstring(L, message);
  lua_pushstring(L, report->log == NULL ? "" : report->log);
  lua_newtable(L);
  for (size_t i = 0; i < report->diagnostic_count; i++) {
    push_diagnostic(L, &report->diagnostics[i], program, offset);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_call(L, 3, 1);
  lua_copy(L, -1, top + 1);
  lua_settop(L, top + 1);
}

/* ---- compiling ----------------------------------------------------------- */

/* A guard whose data is the report behind it. */
typedef struct report_guard {
  tps_guard guard;
  tps_rtc_report report;
} report_guard;

static void free_report(void *report) {
  tps_rtc_report_free((tps_rtc_report *)report);
}

static report_guard *push_report(lua_State *L) {
  report_guard *g = (report_guard *)tps_new(L, TPS_TYPE_GUARD, sizeof *g, 0);
  g->guard.release = free_report;
  g->guard.data = &g->report;
  return g;
}

/* Gives the Module at `index` what its methods need. */
static void keep_context(lua_State *L, int index, int source, int options,
                         const tps_rtc_report *report) {
  lua_pushstring(L, report->log == NULL ? "" : report->log);
  if (report->note != NULL) {
    lua_pushfstring(L, "%s\n%s", report->note, lua_tostring(L, -1));
    lua_remove(L, -2);
  }
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
  report_guard *g = push_report(L); /* Module report */
  lua_newtable(L);                  /* Module report anchors */
  fill_request(L, source, options, index + 2, name, &request);
  tps_device *device = tps_current_device(L);
  tps_site_set(L, lua);
  tps_module *module;
  int code =
      tps_rtc_compile(lua->context, device, &request, &module, &g->report, err);
  if (code == 0) {
    box->module = module;
    keep_context(L, index, source, options, &g->report);
  } else if (code == TPS_COMPILATION) {
    push_text(L, &request, &g->report, err->message);
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
