/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The command, inside: main.c makes the Lua state and decides the exit status,
 * options.c reads the command line, script.c runs what it names, repl.c talks
 * to a person, whose lines line.c edits, warning.c shows warnings, signal.c
 * brings Ctrl-C to every coroutine, check.c shows what --check finds, timeline.c
 * is --timeline, devices.c answers --devices and checks --device, info.c answers
 * --info, cache.c --cache, json.c writes what --json asks for.
 */
#ifndef TPS_HOST_HOST_H
#define TPS_HOST_HOST_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdint.h>

#include "rtc/rtc.h"
#include "runtime/context.h"

/* Exit statuses of the command. */
enum { STATUS_OK, STATUS_ERROR, STATUS_USAGE, STATUS_NO_DEVICE, STATUS_FOUND };

typedef struct host_options {
  int argc;
  char **argv;
  const char *program; /* how messages begin */
  int first;           /* the first argument that is no option: the script,
                          argc if there is none */
  bool interactive, version, execute, no_environment;
  bool help, product_version, devices, info, json, blocking, warnings,
      untrusted;
  bool cache, cache_clear;
  unsigned checks;    /* --check: those to run, else 0 */
  const char *device; /* --device, or NULL */
  bool timeline;
  const char *timeline_file; /* NULL: a chart on the terminal */
} host_options;

/* ---- options.c ------------------------------------------------------------
 */

/* False: bad usage, already reported on stderr. */
bool host_options_read(host_options *options, int argc, char **argv);
void host_print_help(const host_options *options);
/* The options that act in order, -e -l -W. Like every function here that runs
 * scripts it returns LUA_OK, or another status when an error was reported. */
int host_run_options(lua_State *L, const host_options *options);

/* ---- script.c -------------------------------------------------------------
 */

/* Calls the function below its n arguments with tracebacks and Ctrl-C; leaves
 * the results or one message. */
int host_call(lua_State *L, int arguments, int results);
/* Writes the message on the top, if the status says so, and pops it. */
int host_report(lua_State *L, int status);
void host_message(const char *program, const char *text);
/* How reported messages begin from now on, NULL for nothing; what was before.
 */
const char *host_name_messages(const char *program);
/* Loads text; the module then finds it by its chunk name. */
int host_load(lua_State *L, const char *text, size_t size, const char *chunk);
int host_run_text(lua_State *L, const char *text, const char *chunk);
int host_run_stdin(lua_State *L);
int host_run_init(lua_State *L);
void host_set_arg(lua_State *L, const host_options *options);
/* With what the global `arg` then holds for arguments. */
int host_run_script(lua_State *L, const host_options *options);
/* Whether what the command line names has begun to run: false where the last of
 * it can't be opened or doesn't compile. */
bool host_has_run(void);
/* Whether Ctrl-C was pressed while the last of it ran. */
bool host_was_interrupted(void);
/* As from now on, at a prompt for example. */
void host_runs(bool yes);
/* Waits for what the script has queued. */
int host_finish(lua_State *L);
/* The same after an error: what goes wrong now is not told. */
void host_wait(lua_State *L);
/* Makes os.exit wait likewise, and end as the program does. */
void host_open_exit(lua_State *L, const host_options *options);

/* ---- timeline.c -----------------------------------------------------------
 */

/* Begins to record if --timeline wants it; false: can't, which was said. */
bool host_timeline_begin(const host_options *options);
/* Waits for what is queued, but for a script that Ctrl-C has ended (it may wait for
 * what never comes), and writes what was recorded, unless the script has never run;
 * false likewise. Nothing when called again. */
bool host_timeline_end(lua_State *L, const host_options *options);

/* ---- repl.c ---------------------------------------------------------------
 */

/* Which program, Lua and device this is. */
void host_show_banner(const host_options *options);
void host_repl(lua_State *L);

/* ---- line.c ---------------------------------------------------------------
 */

/* The version of the library that edits lines, opened if it is there, or NULL. */
const char *host_line_editor(void);
/* Whether a person types at a terminal, and there is that library. */
bool host_line_open(lua_State *L);
/* The next line, until the next call, without its end. NULL: the input has ended,
 * or Ctrl-C has dropped the line begun. */
char *host_line_read(const char *prompt, bool *interrupted);

/* ---- warning.c ------------------------------------------------------------
 */

/* Scripts' warnings are off as in lua5.4, those of finalizers are on. */
void host_open_warnings(lua_State *L);

/* ---- signal.c -------------------------------------------------------------
 */

/* A state whose coroutines are all known, so that Ctrl-C reaches whichever
 * runs. One for a process. NULL when out of memory. */
lua_State *host_new_state(void);
/* From on to off, Ctrl-C interrupts the script instead of ending the program;
 * a second one, before the first has had its effect, ends it. */
void host_interrupts(bool on);
/* Whether Ctrl-C was pressed since they were last turned on. */
bool host_struck(void);
/* Whether Ctrl-C was pressed and has had no effect yet; this is then its
 * effect. */
int host_interrupted(void);

/* ---- check.c --------------------------------------------------------------
 */

/* Adds "order,race" to *checks; false: nothing, but the first name in it that is
 * none. */
bool host_check_read(const char *list, unsigned *checks, char *unknown,
                     size_t size);
/* False: can't, which was said. */
bool host_check_begin(const host_options *options);
/* Says how much was found; the exit status, if it would have been `status`. */
int host_check_end(int status);

/* ---- json.c ---------------------------------------------------------------
 */

/* Begin with zeros. A key is NULL in an array and for the document itself. */
typedef struct host_json {
  int depth;
  bool first; /* in what was opened last */
} host_json;

void host_json_open(host_json *json, const char *key, char bracket);
void host_json_close(host_json *json, char bracket);
void host_json_string(host_json *json, const char *key, const char *text);
void host_json_integer(host_json *json, const char *key, int64_t value);
void host_json_boolean(host_json *json, const char *key, bool value);

/* ---- devices.c ------------------------------------------------------------
 */

/* Whether there is the device that --device asks for; says if not. */
bool host_check_device(const host_options *options);
/* The context that a script would get. NULL: there is none, said on stderr. */
tps_context *host_open_context(const host_options *options);
/* One line or object for each device; `context` may be NULL. */
void host_list_devices(const host_options *options, const tps_context *context);
void host_json_devices(host_json *json, const tps_context *context);
/* "the simulated device is used (why)" into `out`, "" when a GPU is. */
void host_notice(const tps_context *context, char *out, size_t size);
/* --devices; false when the device asked for is not there. */
bool host_print_devices(const host_options *options);
/* "sim:0, simulated device", and why it is no GPU; for the banner. */
void host_describe_device(const host_options *options, char *out, size_t size);

/* ---- cache.c --------------------------------------------------------------
 */

/* --cache and --cache clear; false when something could not be done. */
bool host_cache(const host_options *options);
void host_json_cache(host_json *json, const char *key, const tps_rtc_cache *c);

/* ---- info.c ---------------------------------------------------------------
 */

/* Likewise --info. */
bool host_print_info(const host_options *options);

#endif
