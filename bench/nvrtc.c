/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What NVRTC itself takes for a compile: the yardstick of bench/compile.lua. A Lua
 * module (bench_nvrtc) with
 *   open(path)                 opens the library
 *   compile(source, option…)   → bytes of CUBIN (0: none is made) and of PTX
 */
#include <dlfcn.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <nvrtc.h>

/* X(name, arguments): what is called. */
#define CALLS(X)                                                               \
  X(nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int,      \
                         const char *const *, const char *const *))            \
  X(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))             \
  X(nvrtcDestroyProgram, (nvrtcProgram *))                                     \
  X(nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                               \
  X(nvrtcGetCUBIN, (nvrtcProgram, char *))                                     \
  X(nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                 \
  X(nvrtcGetPTX, (nvrtcProgram, char *))

#define X(name, arguments) static nvrtcResult(*p_##name) arguments;
CALLS(X)
#undef X

static int bench_open(lua_State *L) {
  static void *library; /* stays open */
  library = dlopen(luaL_checkstring(L, 1), RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return luaL_error(L, "%s", dlerror());
#define X(name, arguments)                                                     \
  *(void **)&p_##name = dlsym(library, #name);                                 \
  if (p_##name == NULL) return luaL_error(L, "%s", dlerror());
  CALLS(X)
#undef X
  return 0;
}

static void check(lua_State *L, nvrtcResult result, const char *what) {
  if (result != NVRTC_SUCCESS) luaL_error(L, "%s: %d", what, (int)result);
}

/* As a caller would that wants the bytes. */
static int bench_compile(lua_State *L) {
  const char *options[16], *source = luaL_checkstring(L, 1);
  int count = lua_gettop(L) - 1;
  nvrtcProgram program;
  size_t cubin, ptx;
  if (count > 16) return luaL_error(L, "too many options");
  for (int i = 0; i < count; i++) options[i] = luaL_checkstring(L, i + 2);
  check(L, p_nvrtcCreateProgram(&program, source, "program.cu", 0, NULL, NULL),
        "nvrtcCreateProgram");
  check(L, p_nvrtcCompileProgram(program, count, options),
        "nvrtcCompileProgram");
  check(L, p_nvrtcGetCUBINSize(program, &cubin), "nvrtcGetCUBINSize");
  if (cubin > 0)
    check(L, p_nvrtcGetCUBIN(program, (char *)lua_newuserdatauv(L, cubin, 0)),
          "nvrtcGetCUBIN");
  check(L, p_nvrtcGetPTXSize(program, &ptx), "nvrtcGetPTXSize");
  check(L, p_nvrtcGetPTX(program, (char *)lua_newuserdatauv(L, ptx, 0)),
        "nvrtcGetPTX");
  check(L, p_nvrtcDestroyProgram(&program), "nvrtcDestroyProgram");
  lua_pushinteger(L, (lua_Integer)cubin);
  lua_pushinteger(L, (lua_Integer)ptx);
  return 2;
}

__attribute__((visibility("default"))) int luaopen_bench_nvrtc(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"open", bench_open}, {"compile", bench_compile}, {NULL, NULL}};
  luaL_newlib(L, functions);
  return 1;
}
