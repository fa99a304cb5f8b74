/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Finds the source among the literals of the script and hands the diagnostics to
 * lua/tpstream/diagnostics.lua with the lines counted from there. */
#include "lua/diagnostics.h"

#include <string.h>

/* ---- where the source stands --------------------------------------------- */

#define MOST_PARTS 32
#define ALL_LINES 2000000000

/* Where the lines of a source stand. */
typedef struct place {
  const char *file;   /* of the lines that no part has */
  const char *script; /* of those that one has; on the Lua stack */
  tps_rtc_part parts[MOST_PARTS];
  size_t count;
} place;

/* Pushes the text of a function's chunk; false: not to be had. */
static bool push_script(lua_State *L, const char *source) {
  tps_error err;
  if (*source == '@') return tps_push_file(L, source + 1, &err);
  if (*source != '=') {
    lua_pushstring(L, source);
    return true;
  }
  return lua_getfield(L, LUA_REGISTRYINDEX, "tpstream.sources") == LUA_TTABLE &&
         lua_getfield(L, -1, source) == LUA_TSTRING;
}

/* Whether the script on top of the stack has the source as a literal. */
static bool locate(lua_State *L, const tps_rtc_request *r, int call_line,
                   place *out) {
  size_t size;
  bool flat;
  const char *script = lua_tolstring(L, -1, &size);
  int line = script != NULL ? tps_rtc_locate(script, size, r->source,
                                             r->source_size, call_line, &flat)
                            : 0;
  if (line == 0) return false;
  out->parts[0] = (tps_rtc_part){1, ALL_LINES, line, flat};
  out->count = 1;
  return true;
}

/* Or as several, put together. */
static bool locate_parts(lua_State *L, const tps_rtc_request *r, place *out) {
  size_t size;
  const char *script = lua_tolstring(L, -1, &size);
  if (script == NULL) return false;
  out->count = tps_rtc_locate_parts(script, size, r->source, r->source_size,
                                    out->parts, MOST_PARTS);
  return out->count > 0;
}

/* callers value → callers */
static void append(lua_State *L) {
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* Three of each script, at its innermost call: source, name, line. */
void tps_push_callers(lua_State *L) {
  lua_Debug ar;
  const char *last = "";
  int level = 0;
  luaL_checkstack(L, 4, NULL);
  lua_newtable(L);
  while (tps_caller_above(L, &level, &ar, "Sl")) {
    if (strcmp(last, ar.source) == 0) continue;
    lua_pushstring(L, ar.source);
    last = lua_tostring(L, -1); /* the table keeps it */
    append(L);
    lua_pushstring(L, ar.short_src);
    append(L);
    lua_pushinteger(L, ar.currentline);
    append(L);
  }
}

/* In the scripts of the functions that led to the call, whole or in parts. */
static bool find_among_callers(lua_State *L, const tps_rtc_request *r,
                               int callers, bool parts, place *out) {
  int top = lua_gettop(L);
  for (int i = 1; lua_rawgeti(L, callers, i) == LUA_TSTRING; i += 3) {
    lua_rawgeti(L, callers, i + 1);
    lua_rawgeti(L, callers, i + 2); /* source name line */
    int line = (int)lua_tointeger(L, -1);
    bool found = push_script(L, lua_tostring(L, top + 1)) &&
                 (parts ? locate_parts(L, r, out) : locate(L, r, line, out));
    lua_settop(L, top + 2);
    if (found) {
      out->script = lua_tostring(L, -1); /* the table keeps it */
      return true;
    }
    lua_settop(L, top);
  }
  lua_settop(L, top);
  return false;
}

/* In the files of the modules that the script has required: diagnostics.lua
 * tells which those are. Pushes the name. */
static bool find_among_modules(lua_State *L, const tps_rtc_request *r,
                               place *out) {
  tps_error err;
  int top = lua_gettop(L);
  bool found = false;
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_DIAGNOSTICS);
  lua_getfield(L, top + 1, "files");
  lua_replace(L, top + 1);
  if (lua_pcall(L, 0, 1, 0) != LUA_OK) lua_newtable(L); /* paths */
  for (int i = 1; !found && lua_rawgeti(L, top + 1, i) == LUA_TSTRING; i++) {
    const char *path = lua_tostring(L, -1);
    found = tps_push_file(L, path, &err) && locate(L, r, 0, out);
    lua_settop(L, top + 2); /* paths path */
    if (!found) lua_pop(L, 1);
  }
  if (found) {
    lua_replace(L, top + 1);
    out->script = lua_tostring(L, top + 1);
  }
  lua_settop(L, found ? top + 1 : top);
  return found;
}

/* What the program is called and where its lines stand; pushes a few values. */
static void find_place(lua_State *L, const tps_rtc_request *r, int callers,
                       place *out) {
  out->file = r->name != NULL ? r->name : "source";
  out->count = 0;
  if (r->name != NULL) return;
  if (callers == 0) {
    tps_push_callers(L);
    callers = lua_gettop(L);
  }
  if (!find_among_callers(L, r, callers, false, out) &&
      !find_among_modules(L, r, out))
    find_among_callers(L, r, callers, true, out);
}

/* ---- tables -------------------------------------------------------------- */

static void set_text(lua_State *L, const char *field, const char *text) {
  if (text == NULL) return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

static void set_number(lua_State *L, const char *field, int number) {
  lua_pushinteger(L, number);
  lua_setfield(L, -2, field);
}

/* Sets file and line of a place in the program. */
static void set_place(lua_State *L, int line, const place *program) {
  const char *file = program->file;
  for (size_t i = 0; i < program->count; i++) {
    const tps_rtc_part *p = &program->parts[i];
    bool whole = p->count == ALL_LINES; /* also of what has no line */
    if (!whole && (line < p->line || line >= p->line + p->count)) continue;
    file = program->script;
    if (line > 0) line = p->script_line + (p->flat ? 0 : line - p->line);
    break;
  }
  set_text(L, "file", file);
  set_number(L, "line", line);
}

/* One diagnostic as a table. */
static void push_diagnostic(lua_State *L, const tps_rtc_diagnostic *d,
                            const place *program) {
  static const char *const severities[] = {"error", "warning", "note"};
  lua_createtable(L, 0, 7);
  set_text(L, "severity", severities[d->severity]);
  if (d->file == NULL || strcmp(d->file, TPS_RTC_PROGRAM) == 0) {
    set_place(L, d->line, program);
  } else {
    set_text(L, "file", d->file);
    set_number(L, "line", d->line);
  }
  set_number(L, "column", d->column);
  set_number(L, "number", d->number);
  set_text(L, "message", d->message);
  set_text(L, "text", d->text);
}

void tps_push_diagnostics(lua_State *L, const tps_rtc_request *request,
                          const tps_rtc_report *report, const char *message,
                          int callers) {
  int top = lua_gettop(L);
  const char *log = message != NULL ? report->log : report->other;
  place program = {.file = ""};
  luaL_checkstack(L, 16, NULL);
  if (report->diagnostic_count > 0) find_place(L, request, callers, &program);
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_DIAGNOSTICS);
  lua_getfield(L, -1, "text");
  lua_pushstring(L, message); /* nil for NULL */
  lua_pushstring(L, log == NULL ? "" : log);
  lua_newtable(L);
  for (size_t i = 0; i < report->diagnostic_count; i++) {
    push_diagnostic(L, &report->diagnostics[i], &program);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_call(L, 3, 1);
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
}
