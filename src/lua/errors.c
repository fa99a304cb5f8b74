/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Errors as a script sees them, and where in the script a call stands. Misuse
 * is a string with a position, in Lua's manner; what a device, a driver or the
 * compiler says becomes a table with the metatable tpstream.Error. */
#include "lua/state.h"

#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "runtime/observer.h"

/* ---- positions ----------------------------------------------------------- */

/* Functions of lua/tpstream/ have this for a name. */
static bool embedded(const lua_Debug *ar) {
  return *ar->source == '=' && strncmp(ar->source, "=tpstream/", 10) == 0;
}

bool tps_caller_above(lua_State *L, int *level, lua_Debug *ar,
                      const char *what) {
  while (lua_getstack(L, ++*level, ar)) {
    lua_getinfo(L, what, ar);
    if (ar->currentline > 0 && !embedded(ar)) return true;
  }
  return false;
}

bool tps_caller(lua_State *L, lua_Debug *ar, const char *what) {
  int level = 0;
  return tps_caller_above(L, &level, ar, what);
}

/* True when the name (in LUA_IDSIZE bytes) is the last one. */
static inline bool same_script(const tps_lua *lua, const char *name) {
  size_t size = lua->site_size, i = 0;
  uint64_t a, b;
  for (; i + sizeof a <= size; i += sizeof a) {
    memcpy(&a, name + i, sizeof a);
    memcpy(&b, lua->site_text + i, sizeof b);
    if (a != b) return false;
  }
  for (; i < size; i++)
    if (name[i] != lua->site_text[i]) return false;
  return size > 0;
}

static TPS_COLD void new_script(tps_lua *lua, const char *name) {
  size_t size = strlen(name) + 1;
  lua->site_name = tps_intern(name, size - 1);
  memcpy(lua->site_text, name, size);
  lua->site_size = size;
}

void tps_site_set(lua_State *L, tps_lua *lua) {
  tps_site *site = &lua->context->site;
  lua_Debug ar;
  if (!tps_caller(L, &ar, "Sl")) {
    site->source = "";
    site->line = 0;
    return;
  }
  if (TPS_UNLIKELY(!same_script(lua, ar.short_src)))
    new_script(lua, ar.short_src);
  site->source = lua->site_name;
  site->line = ar.currentline;
}

const char *tps_push_position(lua_State *L) {
  lua_Debug ar;
  if (!tps_caller(L, &ar, "Sl")) return lua_pushliteral(L, "");
  return lua_pushfstring(L, "%s:%d", ar.short_src, ar.currentline);
}

/* ---- raising ------------------------------------------------------------- */

static void push_string(lua_State *L, const char *message) {
  const char *position = tps_push_position(L);
  lua_pushfstring(L, *position ? "%s: %s" : "%s%s", position, message);
  lua_remove(L, -2);
}

/* lua_error, which Lua's header does not say never returns. */
static _Noreturn void throw(lua_State * L) {
  lua_error(L);
  __builtin_unreachable();
}

int tps_misuse(lua_State *L, const char *format, ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  push_string(L, message);
  throw(L);
}

/* The value on top is the function, or what can be called and then calls it. */
static bool calls(lua_State *L, int function) {
  if (lua_rawequal(L, -1, function)) return true;
  if (luaL_getmetafield(L, -1, "__call") == LUA_TNIL) return false;
  bool same = lua_rawequal(L, -1, function);
  lua_pop(L, 1);
  return same;
}

/* Pushes the name under which the library knows the running function, for calls
 * through pcall; Lua's own way finds no methods. */
static const char *push_function_name(lua_State *L, lua_Debug *ar) {
  lua_getinfo(L, "f", ar);
  int function = lua_gettop(L);
  lua_getiuservalue(L, lua_upvalueindex(1), TPS_UV_METHODS);
  lua_pushnil(L);
  while (lua_next(L, function + 1)) { /* function tables methods true */
    lua_pop(L, 1);
    lua_pushnil(L);
    while (lua_next(L, function + 2)) { /* ... methods name value */
      if (calls(L, function)) {
        lua_pop(L, 1);
        return lua_tostring(L, -1);
      }
      lua_pop(L, 1);
    }
  }
  return lua_pushliteral(L, "?");
}

int tps_argument_error(lua_State *L, int argument, const char *why) {
  lua_Debug ar;
  luaL_checkstack(L, 8, NULL);
  if (!lua_getstack(L, 0, &ar))
    tps_misuse(L, "bad argument #%d (%s)", argument, why);
  lua_getinfo(L, "n", &ar);
  if (strcmp(ar.namewhat, "method") == 0 && --argument == 0)
    tps_misuse(L, "calling '%s' on bad self (%s)", ar.name, why);
  const char *name = ar.name != NULL ? ar.name : push_function_name(L, &ar);
  tps_misuse(L, "bad argument #%d to '%s' (%s)", argument, name, why);
}

int tps_type_error(lua_State *L, int argument, const char *expected) {
  const char *got = tps_type_name(L, argument);
  tps_argument_error(L, argument,
                     lua_pushfstring(L, "%s expected, got %s", expected, got));
}

void tps_check_type(lua_State *L, int argument, int type) {
  if (lua_type(L, argument) != type)
    tps_type_error(L, argument, lua_typename(L, type));
}

int tps_interrupted(void *data) {
  tps_lua *lua = (tps_lua *)data;
  if (lua->interrupt != NULL && lua->interrupt()) return 1;
  lua_Hook hook = lua_gethook(lua->main);
  return hook != NULL && hook != lua->hook;
}

/* Ctrl-C while waiting. The stand-alone interpreter's signal handler sets a
 * hook on the main coroutine that raises: called at once, so that it is not
 * raised a second time. */
static _Noreturn void raise_interrupt(lua_State *L, tps_lua *lua) {
  lua_Hook hook = lua_gethook(lua->main);
  if (L == lua->main && hook != NULL && hook != lua->hook) {
    lua_Debug ar;
    memset(&ar, 0, sizeof ar);
    ar.event = LUA_HOOKCOUNT;
    ar.currentline = -1;
    if (lua_getstack(L, 0, &ar)) hook(L, &ar);
  }
  push_string(L, "interrupted!");
  throw(L);
}

static void set_text(lua_State *L, const char *field, const char *text) {
  if (*text == '\0') return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

/* message → the error object */
static void push_object(lua_State *L, const tps_error *err) {
  lua_createtable(L, 0, 8); /* message object */
  lua_insert(L, -2);        /* object message */
  lua_setfield(L, -2, "message");
  lua_pushstring(L, tps_code_name(err->code));
  lua_setfield(L, -2, "code");
  lua_pushinteger(L, err->code);
  lua_setfield(L, -2, "number");
  const char *position = tps_push_position(L); /* object position */
  lua_pushstring(L, err->where[0] ? err->where : position);
  lua_setfield(L, -3, "where");
  lua_setfield(L, -2, "position");
  set_text(L, "kernel", err->kernel);
  set_text(L, "hint", err->hint);
  if (err->stream != 0) {
    lua_pushinteger(L, (lua_Integer)(err->stream - 1));
    lua_setfield(L, -2, "stream");
  }
  luaL_setmetatable(L, tps_type_names[TPS_TYPE_ERROR]);
}

int tps_raise_text(lua_State *L, const tps_error *err) {
  push_object(L, err);
  throw(L);
}

void tps_push_error(lua_State *L, const tps_error *err) {
  if (err->code == TPS_MISUSE || err->code == TPS_INTERRUPTED) {
    push_string(L, err->message);
  } else {
    lua_pushstring(L, err->message);
    push_object(L, err);
  }
}

void tps_push_error_at(lua_State *L, const tps_error *err,
                       const char *position) {
  if (err->code == TPS_MISUSE || err->code == TPS_INTERRUPTED) {
    const char *form = *position != '\0' ? "%s: %s" : "%s%s";
    lua_pushfstring(L, form, position, lua_tostring(L, -1));
    lua_remove(L, -2);
    return;
  }
  push_object(L, err);
  lua_pushstring(L, err->where[0] != '\0' ? err->where : position);
  lua_setfield(L, -2, "where");
  lua_pushstring(L, position);
  lua_setfield(L, -2, "position");
}

int tps_raise(lua_State *L, const tps_error *err) {
  if (err->code == TPS_INTERRUPTED) raise_interrupt(L, tps_lua_of(L));
  if (tps_code_sticky(err->code)) {
    tps_lua_of(L)->fault_told = true;
    tps_callback_drop(L);
  }
  tps_push_error(L, err);
  throw(L);
}

/* ---- the object ---------------------------------------------------------- */

/* The field as text, "" when it is none; stays on the stack. */
static const char *field(lua_State *L, const char *name) {
  int type = lua_getfield(L, 1, name);
  if (type != LUA_TSTRING && type != LUA_TNUMBER) return "";
  return lua_tostring(L, -1);
}

static bool follows(const char *at, const char *message, const char *words) {
  size_t n = strlen(words);
  return (size_t)(at - message) >= n && strncmp(at - n, words, n) == 0;
}

/* Whether the message says what was launched or captured there: a buffer that was made
 * on that line, or a line whose number only begins so, does not. */
static bool is_told(const char *message, const char *where) {
  size_t n = strlen(where);
  for (const char *at = message; (at = strstr(at, where)) != NULL; at++) {
    if (at[n] >= '0' && at[n] <= '9') continue;
    if (follows(at, message, "launched at ") ||
        follows(at, message, "captured at "))
      return true;
  }
  return false;
}

/* Pushes what the message itself does not say. */
static const char *push_origin(lua_State *L, const char *message,
                               const char *position) {
  const char *kernel = field(L, "kernel");
  const char *where = field(L, "where");
  bool named = *kernel == '\0' || strstr(message, kernel) != NULL;
  bool placed =
      *where == '\0' || strcmp(where, position) == 0 || is_told(message, where);
  if (!named && !placed)
    return lua_pushfstring(L, "\n  kernel '%s', launched at %s", kernel, where);
  if (!named) return lua_pushfstring(L, "\n  kernel '%s'", kernel);
  if (!placed) return lua_pushfstring(L, "\n  launched at %s", where);
  return "";
}

/* position: first line (code)
 * other lines
 *   kernel '…', launched at …
 *   hint */
static int error_tostring(lua_State *L) {
  tps_check_type(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  const char *position = field(L, "position");
  const char *message = field(L, "message");
  const char *code = field(L, "code");
  const char *hint = field(L, "hint");
  const char *origin = push_origin(L, message, position);
  size_t first = strcspn(message, "\n");
  const char *line = lua_pushlstring(L, message, first);
  lua_pushfstring(L, "%s%s%s (%s)%s%s%s%s", position, *position ? ": " : "",
                  line, code, message + first, origin,
                  *hint ? "\n  hint: " : "", hint);
  return 1;
}

static const luaL_Reg error_meta[] = {{"__tostring", error_tostring},
                                      {NULL, NULL}};
static const luaL_Reg error_methods[] = {{NULL, NULL}};

void tps_error_open(lua_State *L) {
  tps_type_make(L, TPS_TYPE_ERROR, error_meta, error_methods);
}

const char *tps_type_name(lua_State *L, int index) {
  index = lua_absindex(L, index);
  if (lua_isnone(L, index)) return "no value";
  if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING)
    return lua_tostring(L, -1);
  if (lua_type(L, index) == LUA_TLIGHTUSERDATA) return "light userdata";
  return luaL_typename(L, index);
}
