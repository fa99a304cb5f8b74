/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Running what the command line names, with a traceback for every error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"
#include "lua/api.h"

static const char *program_name; /* how messages begin; NULL at a prompt */
static bool has_run, interrupted;

bool host_has_run(void) { return has_run; }
bool host_was_interrupted(void) { return interrupted; }
void host_runs(bool yes) { has_run = yes; }

const char *host_name_messages(const char *program) {
  const char *before = program_name;
  program_name = program;
  return before;
}

void host_message(const char *program, const char *text) {
  fflush(stdout);
  if (program != NULL) fprintf(stderr, "%s: ", program);
  fprintf(stderr, "%s\n", text);
  fflush(stderr);
}

int host_report(lua_State *L, int status) {
  if (status != LUA_OK) {
    const char *text = lua_tostring(L, -1);
    host_message(program_name, text != NULL ? text : "(error without a text)");
    lua_pop(L, 1);
  }
  return status;
}

static bool is_our_error(lua_State *L) {
  bool ours = lua_getmetatable(L, 1) &&
              luaL_getmetatable(L, "tpstream.Error") == LUA_TTABLE &&
              lua_rawequal(L, -1, -2);
  lua_settop(L, 1);
  return ours;
}

/* Pushes the text with the traceback of the task that the error comes from, if it
 * comes from one. */
static const char *push_task(lua_State *L, const char *text) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, TPS_TRACEBACK_KEY) != LUA_TFUNCTION)
    return text;
  lua_pushvalue(L, 1);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK || !lua_isstring(L, -1)) return text;
  return lua_pushfstring(L, "%s\ntask %s", text, lua_tostring(L, -1));
}

/* As lua5.4's: an object with a text of its own is shown as it is, everything
 * else with a traceback. The module's errors have both. */
static int add_traceback(lua_State *L) {
  const char *text = lua_tostring(L, 1);
  if (text == NULL) {
    bool ours = is_our_error(L);
    if (!luaL_callmeta(L, 1, "__tostring") || lua_type(L, -1) != LUA_TSTRING)
      lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    else if (!ours) return 1;
    text = lua_tostring(L, -1);
  }
  text = push_task(L, text);
  luaL_traceback(L, L, text, 1);
  return 1;
}

int host_call(lua_State *L, int arguments, int results) {
  int base = lua_gettop(L) - arguments;
  lua_pushcfunction(L, add_traceback);
  lua_insert(L, base);
  host_interrupts(true);
  int status = lua_pcall(L, arguments, results, base);
  interrupted = host_struck();
  host_interrupts(false);
  lua_remove(L, base);
  return status;
}

/* The chunk's text goes where the module looks when it shows source lines. */
int host_load(lua_State *L, const char *text, size_t size, const char *chunk) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, "tpstream.sources");
  lua_pushlstring(L, text, size);
  lua_setfield(L, -2, chunk);
  lua_pop(L, 1);
  return luaL_loadbuffer(L, text, size, chunk);
}

static int run_loaded(lua_State *L, int status) {
  has_run = status == LUA_OK;
  if (has_run) status = host_call(L, 0, 0);
  return host_report(L, status);
}

int host_run_text(lua_State *L, const char *text, const char *chunk) {
  return run_loaded(L, host_load(L, text, strlen(text), chunk));
}

/* Pushes all of standard input; false: a message. */
static bool read_stdin(lua_State *L) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (;;) {
    char *part = luaL_prepbuffer(&b);
    size_t size = fread(part, 1, LUAL_BUFFERSIZE, stdin);
    luaL_addsize(&b, size);
    if (size == 0) break;
  }
  int reason = errno;
  luaL_pushresult(&b);
  if (!ferror(stdin)) return true;
  lua_pop(L, 1);
  lua_pushfstring(L, "cannot read stdin: %s", strerror(reason));
  return false;
}

/* Leaves a function or a message. What is not Lua's is passed over as in files:
 * a byte-order mark, and a first line that begins with '#'. */
static int load_stdin(lua_State *L) {
  size_t size;
  if (!read_stdin(L)) return LUA_ERRFILE;
  const char *text = lua_tolstring(L, -1, &size), *end = text + size;
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3;
  if (text < end && *text == '#') {
    const char *line = memchr(text, '\n', (size_t)(end - text));
    text = line != NULL ? line : end; /* the line's end counts */
  }
  int status = host_load(L, text, (size_t)(end - text), "=stdin");
  lua_remove(L, -2);
  return status;
}

int host_run_stdin(lua_State *L) { return run_loaded(L, load_stdin(L)); }

int host_run_init(lua_State *L) {
  const char *name = "=LUA_INIT"
                     "_" LUA_VERSION_MAJOR "_" LUA_VERSION_MINOR;
  const char *init = getenv(name + 1);
  if (init == NULL) init = getenv((name = "=LUA_INIT") + 1);
  if (init == NULL) return LUA_OK;
  if (init[0] == '@') return run_loaded(L, luaL_loadfile(L, init + 1));
  return host_run_text(L, init, name);
}

/* arg[0] is the script (without one, the program), what comes before it has
 * negative indices. */
void host_set_arg(lua_State *L, const host_options *options) {
  int script = options->first < options->argc ? options->first : 0;
  program_name = options->program;
  lua_createtable(L, options->argc - script, script + 1);
  for (int i = 0; i < options->argc; i++) {
    lua_pushstring(L, options->argv[i]);
    lua_rawseti(L, -2, i - script);
  }
  lua_setglobal(L, "arg");
}

/* Pushes arg[1], arg[2] …; how many. */
static int push_arguments(lua_State *L) {
  if (lua_getglobal(L, "arg") != LUA_TTABLE)
    return luaL_error(L, "'arg' is not a table");
  int table = lua_gettop(L), count = (int)luaL_len(L, table);
  luaL_checkstack(L, count + 3, "too many arguments to script");
  for (int i = 1; i <= count; i++) lua_rawgeti(L, table, i);
  lua_remove(L, table);
  return count;
}

/* Message → message, with what was perhaps meant by a name behind an option that
 * does not take it. */
static void add_hint(lua_State *L, const char *option, const char *name) {
  char unknown[8];
  unsigned checks = 0;
  size_t size = strlen(name);
  if (size > 4 && strcmp(name + size - 4, ".lua") == 0) return;
  if (strcmp(option, "--timeline") == 0)
    lua_pushliteral(L, " (--timeline takes a file that ends in .html or "
                       ".json)");
  else if (strcmp(option, "--check") != 0) return;
  else if (host_check_read(name, &checks, unknown, sizeof unknown))
    lua_pushfstring(L, " (was --check=%s meant?)", name);
  else
    lua_pushliteral(L, " (--check takes names behind '=', as in "
                       "--check=order,race)");
  lua_concat(L, 2);
}

int host_run_script(lua_State *L, const host_options *options) {
  char **argv = options->argv;
  int script = options->first;
  bool is_stdin =
      strcmp(argv[script], "-") == 0 && strcmp(argv[script - 1], "--") != 0;
  int status = is_stdin ? load_stdin(L) : luaL_loadfile(L, argv[script]);
  has_run = status == LUA_OK;
  if (has_run) status = host_call(L, push_arguments(L), 0);
  else if (status == LUA_ERRFILE && !is_stdin)
    add_hint(L, argv[script - 1], argv[script]);
  return host_report(L, status);
}

static int finish(lua_State *L) {
  if (tps_lua_finish(L) != 0) return lua_error(L);
  return 0;
}

int host_finish(lua_State *L) {
  lua_pushcfunction(L, finish);
  host_interrupts(true);
  int status = lua_pcall(L, 0, 0, 0);
  host_interrupts(false);
  if (status != LUA_OK) {
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
  }
  return host_report(L, status);
}

void host_wait(lua_State *L) {
  lua_pushcfunction(L, finish);
  host_interrupts(true);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK) lua_pop(L, 1);
  host_interrupts(false);
}

/* os.exit([code [, close]]), with the wait that the end of a script has. */
static int host_exit(lua_State *L) {
  const host_options *options = lua_touserdata(L, lua_upvalueindex(1));
  int status;
  has_run = true;
  if (lua_isboolean(L, 1))
    status = lua_toboolean(L, 1) ? EXIT_SUCCESS : EXIT_FAILURE;
  else status = (int)luaL_optinteger(L, 1, EXIT_SUCCESS);
  bool fine = host_finish(L) == LUA_OK;
  if (!host_timeline_end(L, options)) fine = false;
  if (!fine && status == EXIT_SUCCESS) status = STATUS_ERROR;
  status = host_check_end(status);
  tps_lua_exit();
  if (lua_toboolean(L, 2)) lua_close(L);
  exit(status);
}

void host_open_exit(lua_State *L, const host_options *options) {
  lua_getglobal(L, LUA_OSLIBNAME);
  lua_pushlightuserdata(L, (void *)options);
  lua_pushcclosure(L, host_exit, 1);
  lua_setfield(L, -2, "exit");
  lua_pop(L, 1);
}
