/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Hands what the compiler said to lua/tpstream/diagnostics.lua, with the lines
 * counted where the source stands in the script. */
#include "lua/diagnostics.h"

#include <string.h>

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
static void set_place(lua_State *L, int line, const tps_place *program) {
  const char *file = program->file;
  for (size_t i = 0; i < program->count; i++) {
    const tps_rtc_part *p = &program->parts[i];
    bool whole = p->count == TPS_ALL_LINES; /* also of what has no line */
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
                            const tps_place *program) {
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
  tps_place program = {.file = ""};
  luaL_checkstack(L, 16, NULL);
  if (report->diagnostic_count > 0)
    tps_find_place(L, request, callers, &program);
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
