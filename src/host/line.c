/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Lines that a person types: edited, remembered and completed by the readline
 * library, where that is installed; nothing is linked with it. What completes a
 * word is lua/tpstream/complete.lua.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host.h"
#include "lua/api.h"

#define KEPT_LINES 1000

/* readline's functions and variables, by their names there without "rl_". */
static struct {
  void *library;
  void (*callback_handler_install)(const char *prompt, void (*got)(char *));
  void (*callback_handler_remove)(void);
  void (*callback_read_char)(void);
  void (*free_line_state)(void);
  void (*cleanup_after_signal)(void), (*reset_after_signal)(void);
  int (*forced_update_display)(void);
  char **(*completion_matches)(const char *text,
                               char *(*next)(const char *, int));
  void (*add_history)(const char *line);
  int (*read_history)(const char *path);
  int (*history_truncate_file)(const char *path, int lines);
  char **(**attempted_completion_function)(const char *, int, int);
  const char **readline_name, **library_version;
  const char **basic_word_break_characters, **basic_quote_characters;
  char **line_buffer;
  int *catch_signals, *attempted_completion_over;
  int *completion_append_character;
} rl;

static lua_State *state;   /* whose names complete words */
static char *history;      /* the file, or NULL */
static char *typed, *last; /* the line that has just come, the one before */
static bool done;          /* it has come, or the input has ended */
static int matches;        /* the last one given of those on Lua's stack */
static const char complete_key = 'c';

/* ---- the library --------------------------------------------------------- */

static bool bind(const char *name, void *slot) {
  void *symbol = dlsym(rl.library, name);
  memcpy(slot, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool bind_all(void) {
#define BIND(name) bind("rl_" #name, &rl.name)
  return BIND(callback_handler_install) && BIND(callback_handler_remove) &&
         BIND(callback_read_char) && BIND(free_line_state) &&
         BIND(cleanup_after_signal) && BIND(reset_after_signal) &&
         BIND(forced_update_display) && BIND(completion_matches) &&
         BIND(attempted_completion_function) && BIND(readline_name) &&
         BIND(basic_word_break_characters) && BIND(library_version) &&
         BIND(line_buffer) && BIND(catch_signals) &&
         BIND(attempted_completion_over) && BIND(completion_append_character) &&
         BIND(basic_quote_characters) && bind("add_history", &rl.add_history) &&
         bind("read_history", &rl.read_history) &&
         bind("history_truncate_file", &rl.history_truncate_file);
#undef BIND
}

const char *host_line_editor(void) {
  static const char *const names[] = {"libreadline.so.8", "libreadline.so.7"};
  for (size_t i = 0; i < 2 && rl.library == NULL; i++) {
    rl.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (rl.library == NULL || bind_all()) continue;
    dlclose(rl.library);
    rl.library = NULL;
  }
  return rl.library == NULL ? NULL : *rl.library_version;
}

/* ---- completion ---------------------------------------------------------- */

typedef struct request {
  const char *word;
  int start; /* of the word in the line */
} request;

/* request → table of words, or nil: file names are meant */
static int find_matches(lua_State *L) {
  const request *r = lua_touserdata(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &complete_key);
  lua_pushlstring(L, *rl.line_buffer, (size_t)r->start);
  lua_pushstring(L, r->word);
  lua_call(L, 2, 1);
  return 1;
}

static char *next_match(const char *word, int again) {
  (void)word;
  if (!again) matches = 0;
  bool found = lua_rawgeti(state, -1, ++matches) == LUA_TSTRING;
  char *copy = found ? strdup(lua_tostring(state, -1)) : NULL;
  lua_pop(state, 1);
  return copy;
}

static char **complete(const char *word, int start, int end) {
  (void)end;
  request r = {word, start};
  char **list = NULL;
  lua_pushcfunction(state, find_matches);
  lua_pushlightuserdata(state, &r);
  int status = lua_pcall(state, 1, 1, 0);
  *rl.attempted_completion_over = status == LUA_OK && lua_istable(state, -1);
  if (*rl.attempted_completion_over)
    list = rl.completion_matches(word, next_match);
  lua_pop(state, 1);
  *rl.completion_append_character = '\0';
  return list;
}

/* ---- history ------------------------------------------------------------- */

/* Makes the folders that the path goes through. */
static void make_folders(char *path) {
  for (char *p = strchr(path + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
    *p = '\0';
    (void)mkdir(path,
                0700); /* that it can't be shows when the file is opened */
    *p = '/';
  }
}

/* The path of the file, owned; NULL: nothing is to be kept. */
static char *history_path(void) {
  const char *named = getenv("TPSTREAM_HISTORY");
  const char *base = getenv("XDG_STATE_HOME"), *below = "";
  char *path = NULL;
  if (named != NULL)
    return strcmp(named, "0") == 0 || *named == '\0' ? NULL : strdup(named);
  if (base == NULL || base[0] != '/') {
    base = getenv("HOME");
    below = "/.local/state";
  }
  if (base == NULL || base[0] != '/') return NULL;
  if (asprintf(&path, "%s%s/tpstream/history", base, below) < 0) return NULL;
  make_folders(path);
  return path;
}

/* Neither a pipe, which would be waited for, nor a device. */
static bool is_kept_in_file(void) {
  struct stat info;
  return stat(history, &info) != 0 || S_ISREG(info.st_mode);
}

static void open_history(void) {
  history = history_path();
  if (history == NULL) return;
  if (!is_kept_in_file()) {
    free(history);
    history = NULL;
    return;
  }
  rl.history_truncate_file(history, KEPT_LINES);
  rl.read_history(history);
}

/* Each line goes to the file at once, so that none is lost, whatever comes. */
static void write_line(const char *line) {
  int file =
      history == NULL
          ? -1
          : open(history, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  dprintf(file, "%s\n", line);
  close(file);
}

/* Remembers the line that has come, unless it says nothing new. */
static void keep(void) {
  if (typed[strspn(typed, " \t")] == '\0') return;
  if (last != NULL && strcmp(last, typed) == 0) return;
  rl.add_history(typed);
  write_line(typed);
  free(last);
  last = strdup(typed);
}

/* ---- lines --------------------------------------------------------------- */

bool host_line_open(lua_State *L) {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return false;
  if (state != NULL) return true;
  if (host_line_editor() == NULL) return false;
  tps_push_embedded(L, "complete");
  if (lua_pcall(L, 0, 1, 0) != LUA_OK) { /* the script has spoilt Lua's own */
    lua_pop(L, 1);
    lua_pushnil(L);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &complete_key);
  *rl.readline_name = "tpstream";
  *rl.catch_signals = 0; /* Ctrl-C is ours */
  *rl.basic_word_break_characters = " \t\n\"'\\><=;+-*/%^~#{}()[],?!&|";
  *rl.basic_quote_characters = ""; /* none is to be added behind a word */
  *rl.attempted_completion_function = complete;
  open_history();
  state = L;
  return true;
}

static void got(char *line) {
  rl.callback_handler_remove();
  typed = line;
  done = true;
}

/* Signals that stop or end the process: the terminal is as it was then. */
static const int leaving[] = {SIGTSTP, SIGTERM, SIGQUIT};
#define LEAVING (sizeof leaving / sizeof *leaving)
static struct sigaction before[LEAVING];
static volatile sig_atomic_t caught; /* the signal that has come, or 0 */

static void on_leaving(int number) { caught = number; }

static void catch_leaving(void) {
  struct sigaction action = {0};
  action.sa_handler = on_leaving;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < LEAVING; i++) {
    sigaction(leaving[i], NULL, &before[i]);
    if (before[i].sa_handler == SIG_DFL) sigaction(leaving[i], &action, NULL);
  }
}

static void release_leaving(void) {
  for (size_t i = 0; i < LEAVING; i++) sigaction(leaving[i], &before[i], NULL);
}

/* What the signal does by itself. Where the process goes on afterwards, so does
 * the line. */
static void leave(void) {
  int number = caught;
  caught = 0;
  rl.cleanup_after_signal();
  release_leaving();
  pthread_kill(pthread_self(), number);
  catch_leaving();
  rl.reset_after_signal();
  rl.forced_update_display();
}

/* Takes keys until the line has come; false: Ctrl-C. */
static bool wait_for_line(void) {
  struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
  while (!done) {
    if (caught) leave();
    if (host_interrupted()) return false;
    int ready = poll(&keys, 1, -1);
    if (ready > 0) rl.callback_read_char();
    else if (ready < 0 && errno != EINTR) return true;
  }
  return true;
}

char *host_line_read(const char *prompt, bool *interrupted) {
  free(typed);
  typed = NULL;
  done = false;
  fflush(stdout);
  rl.callback_handler_install(prompt, got);
  catch_leaving();
  *interrupted = !wait_for_line();
  release_leaving();
  if (!done) {
    rl.free_line_state();
    rl.callback_handler_remove();
  }
  if (caught) pthread_kill(pthread_self(), caught); /* beside the last key */
  caught = 0;
  if (*interrupted) putchar('\n');
  if (typed != NULL) keep();
  return typed;
}
