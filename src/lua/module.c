/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Modules: compiled sources and loaded images. The Lua object and each kernel
 * hold a reference to the runtime's module; close ends it for all of them, the
 * collector only lets go of one. */
#include "lua/state.h"

#include <ctype.h>
#include <string.h>

#include "rtc/rtc.h"

/* ---- boxes --------------------------------------------------------------- */

tps_lua_module *tps_push_module(lua_State *L) {
  return (tps_lua_module *)tps_new(L, TPS_TYPE_MODULE, sizeof(tps_lua_module),
                                   TPS_MODULE_USER_VALUES);
}

static tps_module *self(lua_State *L) {
  tps_lua_module *box = (tps_lua_module *)tps_check(L, 1, TPS_TYPE_MODULE);
  if (box->module == NULL || box->module->closed)
    tps_misuse(L, "attempt to use a closed module");
  tps_open(L);
  return box->module;
}

static int module_gc(lua_State *L) {
  tps_lua_module *box = (tps_lua_module *)tps_check(L, 1, TPS_TYPE_MODULE);
  tps_module *module = box->module;
  box->module = NULL;
  if (module != NULL) tps_module_unref(module);
  return 0;
}

/* Instances compiled on demand end with the module. */
static void close_instances(lua_State *L) {
  if (lua_getiuservalue(L, 1, TPS_MODULE_INSTANCES) != LUA_TTABLE) return;
  lua_pushnil(L);
  while (lua_next(L, -2)) { /* instances name Module */
    tps_lua_module *box = (tps_lua_module *)tps_to(L, -1, TPS_TYPE_MODULE);
    if (box != NULL && box->module != NULL) tps_module_close(box->module);
    lua_pop(L, 1);
  }
}

static int module_close(lua_State *L) {
  tps_lua_module *box = (tps_lua_module *)tps_check(L, 1, TPS_TYPE_MODULE);
  if (box->module == NULL) return 0;
  close_instances(L);
  if (box->module != NULL) tps_module_close(box->module);
  return module_gc(L);
}

/* ---- loading ------------------------------------------------------------- */

/* What is no path: a binary's magic number, or text with lines or of PTX. */
static bool is_image(const char *text, size_t size) {
  static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
  if (memchr(text, '\0', size) != NULL || memchr(text, '\n', size) != NULL)
    return true;
  if (size >= 4 &&
      (memcmp(text, "\177ELF", 4) == 0 || memcmp(text, fatbin, 4) == 0))
    return true;
  return strstr(text, ".version") != NULL && strstr(text, ".target") != NULL;
}

/* Machine code can't be checked by anybody; PTX is, before a driver sees it. */
static int check_trust(lua_State *L, const char *bytes, size_t size) {
  tps_error err;
  bool untrusted = tps_untrusted(L, 2);
  if (!untrusted || memchr(bytes, '\0', size) == NULL) return 0;
  tps_fail(&err, TPS_INVALID_IMAGE,
           "an untrusted image must be PTX: CUBIN and fatbin are machine code, "
           "which can't be checked");
  return tps_raise(L, &err);
}

/* tp.load(image or path [, options]) */
static int module_load(lua_State *L) {
  static const char *const options[] = {"untrusted", "relocatable", NULL};
  tps_error err;
  size_t size;
  tps_lua *lua = tps_open(L);
  tps_check_type(L, 1, LUA_TSTRING);
  lua_settop(L, 2);
  tps_check_options(L, 2, options);
  const char *bytes = lua_tolstring(L, 1, &size);
  if (size == 0)
    return tps_argument_error(L, 1, "empty: neither image nor path");
  if (!is_image(bytes, size)) {
    if (!tps_push_file(L, bytes, &err)) return tps_raise(L, &err);
    lua_replace(L, 1);
    lua_settop(L, 2);
    bytes = lua_tolstring(L, 1, &size);
  }
  check_trust(L, bytes, size);
  bool relocatable = tps_option_boolean(L, 2, "relocatable", false);
  tps_lua_module *box = tps_push_module(L);
  tps_device *device = tps_current_device(L);
  tps_module *module;
  tps_site_set(L, lua);
  if (tps_module_load(lua->context, device, bytes, size, relocatable, &module,
                      &err) != 0)
    return tps_raise(L, &err);
  box->module = module;
  return 1;
}

/* ---- kernels ------------------------------------------------------------- */

/* An expression that names an instance of a template. */
static bool is_instance(const char *name) { return strchr(name, '<') != NULL; }

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Whether the source has the template's plain name as a word: then the compiler
 * says better what is wrong than a list of kernels would. */
static bool has_template(const char *source, const char *name) {
  size_t n = strcspn(name, "<");
  const char *last = name;
  for (size_t i = 0; i < n; i++)
    if (!is_word(name[i])) last = name + i + 1;
  n -= (size_t)(last - name);
  for (const char *p = source; n > 0 && (p = strchr(p, *last)) != NULL; p++)
    if (strncmp(p, last, n) == 0 && !is_word(p[n]) &&
        (p == source || !is_word(p[-1])))
      return true;
  return false;
}

/* What the compiler has said of the instance at `index` and not before belongs to
 * the log of the module, and is shown. */
static void add_log(lua_State *L, int index, int options) {
  lua_getiuservalue(L, 1, TPS_MODULE_LOG);
  lua_getiuservalue(L, index, TPS_MODULE_LOG); /* log more */
  const char *log = lua_tostring(L, -2), *more = lua_tostring(L, -1);
  if (log != NULL && more != NULL && strstr(log, more) == NULL) {
    size_t known = strlen(log);
    const char *news = strncmp(more, log, known) == 0 ? more + known : more;
    tps_show_warnings(L, options, news);
    lua_pushfstring(L, "%s%s", log, news);
    lua_setiuservalue(L, 1, TPS_MODULE_LOG);
  }
  lua_settop(L, index);
}

/* Pushes the runtime's module that has the instance, compiled now unless it was
 * before; NULL (and nothing pushed) when there is none. Raises what is no fault
 * of the name's. */
static tps_module *push_instance(lua_State *L, const char *name) {
  int top = lua_gettop(L);
  tps_error err;
  if (lua_getiuservalue(L, 1, TPS_MODULE_INSTANCES) != LUA_TTABLE ||
      lua_getiuservalue(L, 1, TPS_MODULE_SOURCE) != LUA_TSTRING) {
    lua_settop(L, top);
    return NULL;
  }
  lua_getiuservalue(L, 1, TPS_MODULE_OPTIONS); /* instances source options */
  if (lua_getfield(L, top + 1, name) != LUA_TUSERDATA) {
    lua_pop(L, 1);
    int code = tps_compile(L, top + 2, top + 3, name, &err);
    if (code == TPS_COMPILATION && has_template(lua_tostring(L, top + 2), name))
      tps_raise_text(L, &err);
    if (code == TPS_COMPILATION || code == TPS_NOT_FOUND) {
      lua_settop(L, top);
      return NULL;
    }
    if (code != 0) tps_raise(L, &err);
    add_log(L, lua_gettop(L), top + 3);
    lua_pushvalue(L, -1);
    lua_setfield(L, top + 1, name);
  }
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return ((tps_lua_module *)lua_touserdata(L, -1))->module;
}

/* Whether the Module was compiled from a text that has such a template. */
static bool is_template(lua_State *L, const char *name) {
  bool found = lua_getiuservalue(L, 1, TPS_MODULE_SOURCE) == LUA_TSTRING &&
               tps_rtc_is_template(lua_tostring(L, -1), name);
  lua_pop(L, 1);
  return found;
}

static int module_kernel(lua_State *L) {
  tps_module *module = self(L);
  tps_error err, other = {.code = 0};
  const char *name = tps_check_string(L, 2);
  if (*name == '\0') return tps_argument_error(L, 2, "the name is empty");
  lua_settop(L, 2);
  int code = tps_push_kernel(L, module, name, &err);
  if (code == TPS_NOT_FOUND && is_instance(name)) {
    module = push_instance(L, name);
    if (module != NULL) code = tps_push_kernel(L, module, name, &other);
    if (module != NULL && code != 0 && code != TPS_NOT_FOUND) err = other;
  } else if (code == TPS_NOT_FOUND && is_template(L, name)) {
    tps_fail(&err, code,
             "kernel '%.200s' is a template: ask for an instance of it, such "
             "as '%.200s<float>'",
             name, name);
  }
  return code == 0 ? 1 : tps_raise(L, &err);
}

static int module_kernels(lua_State *L) {
  const tps_image_desc *desc = &self(L)->desc;
  lua_createtable(L, (int)desc->kernel_count, 0);
  for (size_t i = 0; i < desc->kernel_count; i++) {
    lua_pushstring(L, tps_kernel_listed_name(desc, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* ---- the rest ------------------------------------------------------------ */

static int module_global(lua_State *L) {
  tps_module *module = self(L);
  const char *name = tps_check_string(L, 2);
  const tps_global_desc *desc;
  tps_memory *memory;
  tps_error err;
  tps_lua_buffer *box = tps_push_buffer(L, TPS_UINT8, 0);
  tps_device *device = tps_current_device(L);
  self(L);
  tps_site_set_observed(L, tps_lua_of(L));
  if (tps_module_global(module, device, name, &memory, &desc, &err) != 0)
    return tps_raise(L, &err);
  if (desc->dtype < TPS_DTYPE_COUNT &&
      memory->bytes % tps_dtype_sizes[desc->dtype] == 0)
    box->dtype = desc->dtype;
  box->size = tps_dtype_sizes[box->dtype];
  box->count = (int64_t)(memory->bytes / box->size);
  box->memory = memory;
  return 1;
}

static int module_log(lua_State *L) {
  self(L);
  if (lua_getiuservalue(L, 1, TPS_MODULE_LOG) != LUA_TSTRING)
    lua_pushliteral(L, "");
  return 1;
}

/* nil where there is only a binary. */
static int module_ptx(lua_State *L) {
  size_t size;
  const char *text = tps_module_ptx(self(L), &size);
  if (text == NULL) lua_pushnil(L);
  else lua_pushlstring(L, text, size);
  return 1;
}

/* Adds a string to the array at the top. */
static void append(lua_State *L, const char *text) {
  lua_pushstring(L, text);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static int module_fidelity(lua_State *L) {
  const tps_fidelity *f;
  tps_error err;
  if (tps_module_fidelity(self(L), &f, &err) != 0) return tps_raise(L, &err);
  lua_createtable(L, 0, 2);
  for (int approximate = 0; approximate < 2; approximate++) {
    lua_newtable(L);
    for (size_t k = 0; k < f->count; k++)
      if (f->opcodes[k].approximate == (bool)approximate)
        append(L, f->opcodes[k].name);
    lua_setfield(L, -2, approximate ? "approximate" : "exact");
  }
  return 1;
}

static void push_contents(lua_State *L, int kernels, int variables) {
  lua_pushfstring(L, "tpstream.Module (%d kernel%s, %d variable%s)", kernels,
                  kernels == 1 ? "" : "s", variables,
                  variables == 1 ? "" : "s");
}

static int module_tostring(lua_State *L) {
  tps_lua_module *box = (tps_lua_module *)tps_check(L, 1, TPS_TYPE_MODULE);
  if (box->module == NULL || box->module->closed)
    lua_pushliteral(L, "tpstream.Module (closed)");
  else
    push_contents(L, (int)box->module->desc.kernel_count,
                  (int)box->module->desc.global_count);
  return 1;
}

static const luaL_Reg module_meta[] = {{"__tostring", module_tostring},
                                       {"__gc", module_gc},
                                       {"__close", module_close},
                                       {NULL, NULL}};
static const luaL_Reg module_methods[] = {
    {"close", module_close},       {"kernel", module_kernel},
    {"kernels", module_kernels},   {"global", module_global},
    {"log", module_log},           {"ptx", module_ptx},
    {"fidelity", module_fidelity}, {NULL, NULL}};
static const luaL_Reg module_functions[] = {
    {"compile", tps_module_compile},
    {"compile_file", tps_module_compile_file},
    {"load", module_load},
    {"link", tps_module_link_all},
    {NULL, NULL}};

void tps_module_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_MODULE, module_meta, module_methods);
  tps_functions(L, module_functions);
}
