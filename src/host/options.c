/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The command line: lua5.4's, and our long options.
 */
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "host/host.h"

static const char help[] =
    "usage: %s [options] [script [args]]\n"
    "Runs a Lua 5.4 script that can require \"tpstream\".\n"
    "\n"
    "  -e stat        execute string 'stat'\n"
    "  -i             enter interactive mode after executing 'script'\n"
    "  -l mod         require library 'mod' into global 'mod'\n"
    "  -l g=mod       require library 'mod' into global 'g'\n"
    "  -v             show Lua's version\n"
    "  -E             ignore Lua's environment variables\n"
    "  -W             turn warnings on (those of finalizers always are)\n"
    "  --             stop handling options\n"
    "  -              execute standard input and stop handling options\n"
    "\n"
    "  -h, --help     show this text\n"
    "  --version      show the version of this program\n"
    "  --devices      list the devices there are\n"
    "  --info         show versions, paths and settings of all parts\n"
    "  --cache        show what is kept of earlier compiles\n"
    "  --cache clear  empty it\n"
    "  --json         make --devices, --info or --cache print one JSON document\n"
    "  --device X     use device X: cuda, sim, cuda:1, sim:0, an ordinal\n"
    "  --check        look for missing waits, races, wild accesses and more\n"
    "  --check=LIST   for some of it: order,memory,race,init,barrier\n"
    "  --timeline [FILE]  show what ran when: on the terminal, or in FILE,\n"
    "                 x.html (a page for a browser) or x.json (a trace for\n"
    "                 Perfetto)\n"
    "  --blocking     let every launch wait, so that a fault shows its launch\n"
    "  --warnings     show the compiler's warnings on standard error\n"
    "  --untrusted    compile every source in a process of its own, fenced in\n"
    "\n"
    "Without a script: a prompt on a terminal, else standard input is run.\n"
    "At its end a script waits for all work that it has queued.\n"
    "\n"
    "Environment: LUA_INIT, LUA_PATH, LUA_CPATH and their kind as for lua5.4;\n"
    "TPSTREAM_DEVICE (as --device), TPSTREAM_NVRTC (the compiler's library),\n"
    "TPSTREAM_CUBLAS (the library for products on a GPU);\n"
    "TPSTREAM_CACHE=0 (nothing is kept), TPSTREAM_CACHE_DIR, TPSTREAM_CACHE_SIZE;\n"
    "TPSTREAM_HISTORY (the file of lines typed at the prompt; 0: none);\n"
    "for the simulated device TPSTREAM_SIM_DEVICES, TPSTREAM_SIM_THREADS,\n"
    "TPSTREAM_SIM_MEMORY, TPSTREAM_SIM_CAPABILITY, TPSTREAM_SIM_TIMEOUT,\n"
    "TPSTREAM_SIM_PEERS, TPSTREAM_SIM_SEED (--info shows their values).\n"
    "\n"
    "Exit status: 0, 1 script error, 2 bad usage, 3 no such device, 4 the checker\n"
    "found something.\n";

void host_print_help(const host_options *options) {
  printf(help, options->program);
}

static bool complain(const host_options *options, const char *format,
                     const char *what) {
  fprintf(stderr, "%s: ", options->program);
  fprintf(stderr, format, what);
  fprintf(stderr, "\nusage: %s [options] [script [args]] (--help tells more)\n",
          options->program);
  return false;
}

static bool unrecognized(const host_options *options, const char *what) {
  return complain(options, "unrecognized option '%s'", what);
}

/* Where the option of this name is kept, or NULL. */
static bool *find_flag(host_options *options, const char *name) {
  const struct {
    const char *name;
    bool *flag;
  } flags[] = {
      {"--help", &options->help},
      {"--version", &options->product_version},
      {"--devices", &options->devices},
      {"--info", &options->info},
      {"--cache", &options->cache},
      {"--json", &options->json},
      {"--blocking", &options->blocking},
      {"--warnings", &options->warnings},
      {"--untrusted", &options->untrusted},
  };
  for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
    if (strcmp(name, flags[i].name) == 0) return flags[i].flag;
  return NULL;
}

/* After "--check=". What is asked for once more comes on top. */
static bool read_checks(host_options *options, const char *list) {
  char unknown[64], text[128];
  if (host_check_read(list, &options->checks, unknown, sizeof unknown))
    return true;
  snprintf(text, sizeof text, "'%s'; there are %s", unknown, TPS_CHECK_NAMES);
  return complain(options, "no check is called %s", text);
}

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text), n = strlen(end);
  return size > n && strcmp(text + size - n, end) == 0;
}

static bool names_timeline(const char *text) {
  return text != NULL && (ends_with(text, ".html") || ends_with(text, ".json"));
}

/* Whether the next argument is the option's value. The one behind --timeline is
 * if it looks like a file of ours; else it is the script. */
static bool takes_next(char *const *argument) {
  const char *name = argument[0];
  if (name[1] == 'e' || name[1] == 'l') return name[2] == '\0';
  return strcmp(name, "--device") == 0 ||
         (strcmp(name, "--timeline") == 0 && names_timeline(argument[1]));
}

static bool read_timeline(host_options *options, const char *file) {
  options->timeline = true;
  if (file == NULL) return true;
  options->timeline_file = file;
  if (names_timeline(file)) return true;
  return complain(options,
                  "'--timeline' needs a file that ends in .html or .json, "
                  "not '%s'",
                  file);
}

/* "--name", or "--name=value" or "--name value" for those that take one, if it is
 * there already. */
static bool read_long(host_options *options, int *index, const char *argument,
                      const char *value) {
  bool *flag = find_flag(options, argument);
  if (flag != NULL) {
    char *next = options->argv[*index + 1];
    *flag = true;
    if (flag == &options->cache && next != NULL && strcmp(next, "clear") == 0) {
      options->cache_clear = true;
      ++*index;
    }
  } else if (strcmp(argument, "--check") == 0) {
    options->checks |= TPS_CHECK_ALL;
  } else if (strncmp(argument, "--check=", 8) == 0) {
    return read_checks(options, argument + 8);
  } else if (strncmp(argument, "--device=", 9) == 0) {
    options->device = argument + 9;
  } else if (strcmp(argument, "--device") == 0) {
    options->device = value;
  } else if (strcmp(argument, "--timeline") == 0) {
    return read_timeline(options, value);
  } else if (strncmp(argument, "--timeline=", 11) == 0) {
    return read_timeline(options, argument + 11);
  } else {
    return unrecognized(options, argument);
  }
  return true;
}

static bool read_short(host_options *options, const char *argument) {
  char letter = argument[1];
  if (letter == 'e') options->execute = true;
  if (letter == 'e' || letter == 'l') return true;
  if (argument[2] != '\0') return unrecognized(options, argument);
  switch (letter) {
  case 'h': options->help = true; break;
  case 'E': options->no_environment = true; break;
  case 'W': break; /* when its turn comes */
  case 'i': options->interactive = true; break;
  case 'v': options->version = true; break;
  default: return unrecognized(options, argument);
  }
  return true;
}

static bool read_option(host_options *options, int *index) {
  char *argument = options->argv[*index], *value = NULL;
  if (takes_next(options->argv + *index)) {
    value = options->argv[++*index];
    if (value == NULL || value[0] == '-')
      return complain(options, "'%s' needs argument", argument);
  }
  if (argument[1] != '-') return read_short(options, argument);
  return read_long(options, index, argument, value);
}

/* Options that mean nothing beside what else there is. */
static bool fit_together(const host_options *options) {
  const char *rest = options->argv[options->first];
  if (options->cache && rest != NULL)
    return complain(options, "'--cache' takes nothing or 'clear', not '%s'",
                    rest);
  if ((options->devices || options->info) && rest != NULL)
    return complain(options,
                    "unexpected '%s': --devices and --info run no script "
                    "(--device X chooses a device)",
                    rest);
  if (options->json && !options->devices && !options->info && !options->cache)
    return complain(options, "'%s' needs --devices, --info or --cache",
                    "--json");
  return true;
}

bool host_options_read(host_options *options, int argc, char **argv) {
  *options = (host_options){.argc = argc, .argv = argv, .program = "tpstream"};
  if (argc > 0 && argv[0][0] != '\0') options->program = argv[0];
  int i = 1;
  for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
    if (strcmp(argv[i], "--") == 0) {
      i++;
      break;
    }
    if (!read_option(options, &i)) return false;
  }
  options->first = i < argc ? i : argc;
  return fit_together(options);
}

/* How much of a module's name goes into the global's: newer ones leave out what
 * comes after the mark of a version. */
static size_t global_size(const char *name) {
#if LUA_VERSION_RELEASE_NUM >= 50406
  return strcspn(name, LUA_IGMARK);
#else
  return strlen(name);
#endif
}

/* `-l name` and `-l global=name`. */
static int run_require(lua_State *L, const char *name) {
  const char *equals = strchr(name, '=');
  lua_getglobal(L, "require");
  lua_pushstring(L, equals != NULL ? equals + 1 : name);
  int status = host_call(L, 1, 1);
  if (status == LUA_OK) {
    if (equals != NULL) lua_pushlstring(L, name, (size_t)(equals - name));
    else lua_pushlstring(L, name, global_size(name));
    lua_insert(L, -2);      /* name, module */
    lua_pushglobaltable(L); /* name, module, _G */
    lua_insert(L, -3);      /* _G, name, module */
    lua_settable(L, -3);
    lua_pop(L, 1);
  }
  return host_report(L, status);
}

int host_run_options(lua_State *L, const host_options *options) {
  char **argv = options->argv;
  for (int i = 1; i < options->first; i++) {
    char letter = argv[i][1];
    int status = LUA_OK;
    if (strcmp(argv[i], "--") == 0) break;
    const char *value = argv[i] + 2;
    if (takes_next(argv + i)) value = argv[++i];
    if (letter == 'W') lua_warning(L, "@on", 0);
    if (letter == 'e' || letter == 'l') {
      status = letter == 'e' ? host_run_text(L, value, "=(command line)")
                             : run_require(L, value);
    }
    if (status != LUA_OK) return status;
  }
  return LUA_OK;
}
