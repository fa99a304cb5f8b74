/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The prompt: lines become chunks, values are printed, errors are shown and
 * forgotten.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "host/host.h"

/* Pushes what the line begins with. */
static const char *push_prompt(lua_State *L, bool first) {
  lua_getglobal(L, first ? "_PROMPT" : "_PROMPT2");
  if (lua_isnil(L, -1)) return lua_pushstring(L, first ? "> " : ">> ");
  return luaL_tolstring(L, -1, NULL);
}

/* The line that a person edits; NULL: the end of input, or Ctrl-C. */
static const char *edit_line(lua_State *L, const char *prompt,
                             bool *interrupted) {
  const char *line = host_line_read(prompt, interrupted);
  return line == NULL ? NULL : lua_pushstring(L, line);
}

/* The same from what is no terminal. */
static const char *plain_line(lua_State *L, const char *prompt,
                              bool *interrupted) {
  luaL_Buffer b;
  fputs(prompt, stdout);
  fflush(stdout);
  luaL_buffinit(L, &b);
  errno = 0;
  int c;
  while ((c = getchar()) != EOF && c != '\n') luaL_addchar(&b, (char)c);
  *interrupted = c == EOF && errno == EINTR && host_interrupted();
  if (*interrupted) {
    clearerr(stdin);
    putchar('\n');
  }
  luaL_pushresult(&b);
  bool none = *interrupted || (c == EOF && lua_rawlen(L, -1) == 0);
  return none ? NULL : lua_tostring(L, -1);
}

/* Pushes the next line, without its end; false at the end of input. Ctrl-C
 * drops all lines from index 1 on and gives an empty one. */
static bool read_line(lua_State *L, bool first) {
  int top = lua_gettop(L);
  bool interrupted = false;
  const char *prompt = push_prompt(L, first);
  bool edited = host_line_open(L);
  host_interrupts(true);
  const char *line = edited ? edit_line(L, prompt, &interrupted)
                            : plain_line(L, prompt, &interrupted);
  host_interrupts(false);
  if (interrupted) {
    line = lua_pushliteral(L, "");
    for (int i = 1; i <= top; i++) {
      lua_pushvalue(L, -1);
      lua_replace(L, i);
    }
  }
  if (line != NULL) lua_replace(L, top + 1);
  lua_settop(L, line != NULL ? top + 1 : top);
  return line != NULL;
}

/* Whether a chunk does not compile only because more is to come. */
static bool is_incomplete(lua_State *L, int status) {
  static const char mark[] = "<eof>";
  size_t size, tail = sizeof mark - 1;
  if (status != LUA_ERRSYNTAX) return false;
  const char *text = lua_tolstring(L, -1, &size);
  return size >= tail && strcmp(text + size - tail, mark) == 0;
}

static int load_text(lua_State *L, int index) {
  size_t size;
  const char *text = lua_tolstring(L, index, &size);
  return host_load(L, text, size, "=stdin");
}

/* The line at index 1 as an expression. Leaves a function, or nothing. */
static bool load_expression(lua_State *L) {
  lua_pushfstring(L, "return %s;", lua_tostring(L, 1));
  bool fine = load_text(L, 2) == LUA_OK;
  if (!fine) lua_pop(L, 1);
  lua_remove(L, 2);
  return fine;
}

/* The lines from index 1 on as statements, asking for more until they are
 * whole. Leaves a function or a message. */
static int load_statements(lua_State *L) {
  for (;;) {
    int status = load_text(L, 1);
    if (!is_incomplete(L, status) || !read_line(L, false)) return status;
    lua_remove(L, 2); /* text line */
    lua_pushliteral(L, "\n");
    lua_insert(L, 2);
    lua_concat(L, 3); /* text "\n" line */
  }
}

/* One chunk from the prompt on an empty stack: -1 at the end of input, else a
 * status, with a function or a message. */
static int load_line(lua_State *L) {
  lua_settop(L, 0);
  if (!read_line(L, true)) return -1;
  const char *line = lua_tostring(L, 1);
  if (line[0] == '=') { /* "= 1" means "return 1" */
    lua_pushfstring(L, "return %s", line + 1);
    lua_replace(L, 1);
  }
  int status = load_expression(L) ? LUA_OK : load_statements(L);
  lua_remove(L, 1);
  return status;
}

static void print_results(lua_State *L) {
  int count = lua_gettop(L);
  if (count == 0) return;
  luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
  lua_getglobal(L, "print");
  lua_insert(L, 1);
  if (lua_pcall(L, count, 0, 0) != LUA_OK) {
    const char *text = lua_tostring(L, -1);
    lua_pushfstring(L, "error calling 'print' (%s)", text ? text : "?");
    host_report(L, LUA_ERRRUN);
  }
}

void host_show_banner(const host_options *options) {
  char device[512];
  host_describe_device(options, device, sizeof device);
  printf("tpstream " TPS_VERSION ", " LUA_RELEASE ", %s\n", device);
}

void host_repl(lua_State *L) {
  int status;
  const char *name = host_name_messages(NULL);
  host_runs(true);
  while ((status = load_line(L)) != -1) {
    if (status == LUA_OK) status = host_call(L, 0, LUA_MULTRET);
    if (status == LUA_OK) print_results(L);
    else host_report(L, status);
  }
  lua_settop(L, 0);
  putchar('\n');
  fflush(stdout);
  host_name_messages(name);
}
