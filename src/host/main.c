/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The command: a Lua interpreter with the module inside.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/version.h"
#include "host/host.h"
#include "lua/api.h"

static void print_lua_version(void) {
  puts(LUA_COPYRIGHT);
  fflush(stdout);
}

/* What the module reads from the registry when it is first required. */
static void set_registry(lua_State *L, const host_options *options) {
  if (options->no_environment) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  if (options->device != NULL) {
    lua_pushstring(L, options->device);
    lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.device");
  }
  lua_pushboolean(L, options->blocking);
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.blocking");
  lua_pushboolean(L, options->warnings);
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.warnings");
  lua_pushboolean(L, options->untrusted);
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.untrusted");
  lua_pushlightuserdata(L, (void *)host_interrupted);
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.interrupt");
}

static void open_libraries(lua_State *L, const host_options *options) {
  luaL_openlibs(L);
  host_open_exit(L, options);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_tpstream);
  lua_setfield(L, -2, "tpstream");
  lua_pop(L, 1);
}

/* The script, the prompt or standard input, whichever the command line means.
 */
static int run(lua_State *L, const host_options *options) {
  bool script = options->first < options->argc;
  if (script && host_run_script(L, options) != LUA_OK) return STATUS_ERROR;
  if (options->interactive) {
    host_repl(L);
  } else if (!script && !options->execute && !options->version) {
    if (!isatty(STDIN_FILENO)) {
      if (host_run_stdin(L) != LUA_OK) return STATUS_ERROR;
    } else {
      host_show_banner(options);
      host_repl(L);
    }
  }
  return host_finish(L) == LUA_OK ? STATUS_OK : STATUS_ERROR;
}

/* In protected mode, since anything in it may run out of memory. Gives the exit
 * status. */
static int protected_main(lua_State *L) {
  const host_options *options = lua_touserdata(L, 1);
  int status = STATUS_ERROR;
  luaL_checkversion(L);
  if (options->interactive) host_show_banner(options);
  else if (options->version) print_lua_version();
  set_registry(L, options);
  open_libraries(L, options);
  host_set_arg(L, options);
  lua_gc(L, LUA_GCGEN, 0, 0); /* as lua5.4 does */
  if ((options->no_environment || host_run_init(L) == LUA_OK) &&
      host_run_options(L, options) == LUA_OK)
    status = run(L, options);
  lua_pushinteger(L, status);
  return 1;
}

static int run_state(const host_options *options) {
  int status = STATUS_ERROR;
  lua_State *L = host_new_state();
  if (L == NULL) {
    host_message(options->program, "cannot create state: not enough memory");
    return STATUS_ERROR;
  }
  lua_pushcfunction(L, protected_main);
  lua_pushlightuserdata(L, (void *)options);
  if (host_report(L, lua_pcall(L, 1, 1, 0)) == LUA_OK)
    status = (int)lua_tointeger(L, -1);
  if (options->checks != 0 && status != STATUS_OK && !host_was_interrupted())
    host_wait(L); /* what a script that failed has queued is looked at, too */
  if (!host_timeline_end(L, options) && status == STATUS_OK)
    status = STATUS_ERROR;
  status = host_check_end(status);
  lua_close(L);
  tps_lua_exit();
  return status;
}

int main(int argc, char **argv) {
  host_options options;
  if (!host_options_read(&options, argc, argv)) return STATUS_USAGE;
  if (options.help) {
    host_print_help(&options);
  } else if (options.product_version) {
    puts("tpstream " TPS_VERSION " (" LUA_RELEASE ")");
  } else if (options.info) {
    if (!host_print_info(&options)) return STATUS_NO_DEVICE;
  } else if (options.cache) {
    if (!host_cache(&options)) return STATUS_ERROR;
  } else if (options.devices) {
    if (!host_print_devices(&options)) return STATUS_NO_DEVICE;
  } else {
    if (!host_check_device(&options)) return STATUS_NO_DEVICE;
    if (!host_timeline_begin(&options)) return STATUS_ERROR;
    if (!host_check_begin(&options)) return STATUS_ERROR;
    return run_state(&options);
  }
  return fflush(stdout) == 0 ? STATUS_OK : STATUS_ERROR;
}
