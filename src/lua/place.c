/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Where a source stands that a script has as a literal, or has put together of some. */
#include "lua/place.h"

#include <string.h>

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
                   tps_place *out) {
  size_t size;
  bool flat;
  const char *script = lua_tolstring(L, -1, &size);
  int line = script != NULL ? tps_rtc_locate(script, size, r->source,
                                             r->source_size, call_line, &flat)
                            : 0;
  if (line == 0) return false;
  out->parts[0] = (tps_rtc_part){1, TPS_ALL_LINES, line, flat};
  out->count = 1;
  return true;
}

/* Or as several, put together. */
static bool locate_parts(lua_State *L, const tps_rtc_request *r,
                         tps_place *out) {
  size_t size;
  const char *script = lua_tolstring(L, -1, &size);
  if (script == NULL) return false;
  out->count = tps_rtc_locate_parts(script, size, r->source, r->source_size,
                                    out->parts, TPS_MOST_PARTS);
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
                               int callers, bool parts, tps_place *out) {
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
                               tps_place *out) {
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

static const char *skip_blanks(const char *p) { return p + strspn(p, " \t"); }

/* Whether the line numbers the ones below it anew, in the same file: "#line 7",
 * "# 7". */
static bool is_renumbering(const char *line) {
  const char *p = skip_blanks(line);
  if (*p != '#') return false;
  p = skip_blanks(p + 1);
  if (strncmp(p, "line", 4) == 0) p = skip_blanks(p + 4);
  size_t digits = strspn(p, "0123456789");
  return digits > 0 && p[digits + strcspn(p + digits, "\"\n")] != '"';
}

/* Whether the compiler counts the source's lines as they stand; else it is in no
 * line of a script that it can tell. */
static bool is_plainly_numbered(const tps_rtc_request *r) {
  for (const char *line = r->source; line != NULL; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (is_renumbering(line)) return false;
  }
  return true;
}

static void forget(const tps_rtc_request *r, tps_place *out) {
  out->file = r->name != NULL ? r->name : TPS_RTC_PROGRAM;
  out->script = NULL;
  out->count = 0;
}

void tps_find_place(lua_State *L, const tps_rtc_request *r, int callers,
                    tps_place *out) {
  forget(r, out);
  if (r->name != NULL || !is_plainly_numbered(r)) return;
  if (callers == 0) {
    tps_push_callers(L);
    callers = lua_gettop(L);
  }
  if (!find_among_callers(L, r, callers, false, out) &&
      !find_among_modules(L, r, out))
    find_among_callers(L, r, callers, true, out);
}

void tps_find_place_here(lua_State *L, const tps_rtc_request *r,
                         tps_place *out) {
  forget(r, out);
  if (r->name != NULL || !is_plainly_numbered(r)) return;
  tps_push_callers(L);
  int callers = lua_gettop(L);
  if (!find_among_callers(L, r, callers, false, out))
    find_among_callers(L, r, callers, true, out);
}
