/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Failures, one at a time: each body of spec/support/bodies.lua runs with the
 * n-th allocation of Lua's, of C's, or the n-th call of the device's face made
 * to fail, for n from 1 on until nothing fails any more, each time in a new Lua
 * state. The error must be the one that was made; the same body must then work
 * in the same state; at the end of the state nothing may be left.
 *
 * TPS_EVERY=1 tries every point; else the slow bodies, and all under a
 * sanitizer, are tried at some of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>

#include "injection.h"
#include "lua/api.h"

/* Each how manyth point is tried: ThreadSanitizer is slow, and it is slower the
 * more threads there have been. */
#if defined __SANITIZE_THREAD__
#define STEP 97
#elif defined __SANITIZE_ADDRESS__
#define STEP 7
#else
#define STEP 1
#endif

static const char *const names[] = {[LUA_ONCE] = "Lua's allocation",
                                    [LUA_ALL] = "all from Lua's allocation",
                                    [C_HERE] = "C's allocation",
                                    [C_ELSEWHERE] =
                                        "another thread's allocation",
                                    [FACE] = "the device's call"};

/* One thing that fails. */
typedef struct trial {
  const char *body;
  place where;
  long n;
  int code;
} trial;

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
static int __lsan_do_recoverable_leak_check(void) { return 0; }
#endif

static unsigned faults; /* found in the test at hand */

static void found(const trial *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void found(const trial *t, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (++faults > 40) return;
  print_error("'%s', %s %ld (%s %d): %s\n", t->body, names[t->where], t->n,
              t->where == FACE ? fuse.call : "", t->code, text);
}

/* ---- states -------------------------------------------------------------- */

static char *dumped; /* bodies.lua, compiled */
static size_t dumped_size;

static int append(lua_State *L, const void *part, size_t size, void *data) {
  (void)L, (void)data;
  char *all = __real_realloc(dumped, dumped_size + size);
  if (all == NULL) return 1;
  dumped = all;
  memcpy(dumped + dumped_size, part, size);
  dumped_size += size;
  return 0;
}

/* Lua's own buffers: a failure while their metatable is made would leave it in
 * the registry without its methods. */
static void use_large_buffer(lua_State *L) {
  luaL_Buffer b;
  luaL_buffinitsize(L, &b, 2 * LUAL_BUFFERSIZE);
  luaL_pushresult(&b);
  lua_pop(L, 1);
}

static lua_State *open_bare(void) {
  lua_State *L = lua_newstate(lua_allocate, NULL);
  assert_non_null(L);
  luaL_openlibs(L);
  use_large_buffer(L);
  lua_pushliteral(L, "sim");
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.device");
  return L;
}

/* A state with the list of bodies at 1 and the library at 2. */
static lua_State *open_state(void) {
  lua_State *L = open_bare();
  assert_int_equal(luaL_loadbuffer(L, dumped, dumped_size, "=bodies"), LUA_OK);
  lua_call(L, 0, 1);
  luaL_requiref(L, "tpstream", luaopen_tpstream, 0);
  return L;
}

static int run_body(lua_State *L, int index) {
  lua_settop(L, 2);
  lua_rawgeti(L, 1, index);
  lua_getfield(L, -1, "run");
  lua_pushvalue(L, 2);
  return lua_pcall(L, 1, 0, 0);
}

static void collect(lua_State *L) {
  lua_settop(L, 2);
  lua_gc(L, LUA_GCCOLLECT);
  lua_gc(L, LUA_GCCOLLECT);
}

/* ---- what must hold ------------------------------------------------------ */

/* The error on the top is what a failure of that kind leads to. */
static void check_error(lua_State *L, const trial *t) {
  const char *text = luaL_tolstring(L, -1, NULL);
  bool fits =
      strstr(text, "memory") != NULL || strstr(text, "the host has no") != NULL;
  if (t->where == FACE)
    fits = strstr(text, "made to fail") != NULL ||
           (t->code == TPS_OUT_OF_MEMORY && fits);
  if (t->where == C_ELSEWHERE) fits = true;
  if (!fits) found(t, "raised: %.900s", text);
}

static bool broken(void) {
  tps_error err;
  tps_device *device = shells[0].inner;
  return tps_faulted(&shells[0].base) ||
         device->face->synchronize(device, &err) != 0;
}

/* What has to wait for the end of the last context is looked at by the next. */
static void settle(void) {
  tps_error err;
  tps_context *context;
  assert_int_equal(tps_context_new("sim", &context, &err), 0);
  assert_non_null(tps_local_get(context, &shells[0].base, &err));
  tps_context_reclaim(context);
  tps_context_close(context);
}

static void check_nothing_left(const trial *t) {
  bool faulted = broken();
  if (!faulted) settle();
  live l = shells[0].live;
  if (l.streams != 0 || l.events != 0)
    found(t, "left: %d streams, %d events", l.streams, l.events);
  if (!faulted && (l.memories != 0 || l.pinned != 0 || l.modules != 0))
    found(t, "left: %d memories, %d pinned blocks, %d modules", l.memories,
          l.pinned, l.modules);
  if (!faulted && (l.arrays != 0 || l.views != 0))
    found(t, "left: %d arrays, %d textures and surfaces", l.arrays, l.views);
  if (l.graphs != 0) found(t, "left: %d graphs", l.graphs);
  if (lua_bytes != 0) found(t, "left: %zu bytes of Lua's", lua_bytes);
  lua_bytes = 0;
  memset(&shells[0].live, 0, sizeof l);
  if (faulted) assert_true(revive(&shells[0]));
}

static void warn(void *data, const char *text, int more) {
  (void)more;
  if (text[0] != '@') found(data, "warning: %s", text);
}

/* The failure comes while the state closes; true when the n-th was reached. */
static bool attempt_closing(int index, trial *t) {
  lua_State *L = open_state();
  lua_gc(L, LUA_GCSTOP);
  if (run_body(L, index) != LUA_OK)
    found(t, "fails: %.900s", luaL_tolstring(L, -1, NULL));
  lua_settop(L, 2);
  broken(); /* waits */
  lua_setwarnf(L, warn, t);
  arm(t->where, t->n, t->code);
  lua_close(L);
  bool struck = disarm();
  check_nothing_left(t);
  return struck;
}

/* True when the n-th was reached. */
static bool attempt(int index, trial *t) {
  lua_State *L = open_state();
  lua_setwarnf(L, warn, t);
  lua_gc(L, LUA_GCSTOP); /* finalizers come when all is well again */
  arm(t->where, t->n, t->code);
  int status = run_body(L, index);
  bool struck = disarm();
  if (status != LUA_OK) check_error(L, t);
  lua_gc(L, LUA_GCRESTART);
  collect(L);
  if (struck) {
    status = run_body(L, index);
    if (status != LUA_OK && !broken())
      found(t, "fails again: %.900s", luaL_tolstring(L, -1, NULL));
    collect(L);
  }
  broken(); /* waits */
  lua_close(L);
  check_nothing_left(t);
  return struck;
}

/* ---- the bodies ---------------------------------------------------------- */

#define MOST 256

static struct {
  char *name;
  bool slow, skipped;
} bodies[MOST + 1];
static int body_count;

static bool flag(lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  bool set = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return set;
}

/* Runs it once with nothing failing. */
static void learn_body(lua_State *L, int i) {
  lua_settop(L, 2);
  lua_rawgeti(L, 1, i);
  bodies[i].slow = flag(L, "slow");
  bool needs_compiler = flag(L, "compiler");
  lua_getfield(L, -1, "name");
  bodies[i].name = __real_strdup(lua_tostring(L, -1));
  if (run_body(L, i) == LUA_OK) return;
  const char *text = luaL_tolstring(L, -1, NULL);
  bodies[i].skipped =
      needs_compiler && strstr(text, "TPSTREAM_ERROR_NO_COMPILER") != NULL;
  if (!bodies[i].skipped) fail_msg("'%s': %s", bodies[i].name, text);
}

static int learn(void **state) {
  (void)state;
  on_lua_thread = true;
  tps_device_count(TPS_CUDA, NULL); /* asked once in a process */
  lua_State *L = open_bare();
  if (luaL_loadfile(L, "spec/support/bodies.lua") != LUA_OK ||
      lua_dump(L, append, NULL, 0) != 0) {
    print_error("%s\n", lua_tostring(L, -1));
    return -1;
  }
  lua_close(L);
  return 0;
}

static void bodies_work(void **state) {
  (void)state;
  lua_State *L = open_state();
  body_count = (int)lua_rawlen(L, 1);
  assert_in_range(body_count, 60, MOST);
  for (int i = 1; i <= body_count; i++) learn_body(L, i);
  broken();
  lua_close(L);
  faults = 0;
  trial t = {"all", NOWHERE, 0, 0};
  check_nothing_left(&t);
  assert_int_equal(faults, 0);
}

static long step_of(int i, long step) {
  if (getenv("TPS_EVERY") != NULL) return 1;
  step *= STEP;
  return bodies[i].slow ? step * 40 : step;
}

/* Without TPS_EVERY each step-th point is tried. */
static void try_all(place where, int code, long step,
                    bool (*attempt)(int, trial *)) {
  assert_true(body_count > 0);
  for (int i = 1; i <= body_count; i++) {
    if (bodies[i].skipped) continue;
    long by = step_of(i, step);
    trial t = {bodies[i].name, where, 1 + i % by, code};
    while (attempt(i, &t)) t.n += by;
  }
}

static void begin(void) { faults = 0; }

static void end(void) {
  if (faults > 0) fail_msg("%u faults found", faults);
}

static void lua_fails_once(void **state) {
  (void)state;
  begin();
  try_all(LUA_ONCE, 0, 1, attempt);
  end();
}

static void lua_fails_for_good(void **state) {
  (void)state;
  begin();
  try_all(LUA_ALL, 0, 2, attempt);
  end();
}

static void c_fails(void **state) {
  (void)state;
  begin();
  try_all(C_HERE, 0, 1, attempt);
  end();
}

/* How often other threads allocate is a matter of luck. */
static void c_fails_elsewhere(void **state) {
  (void)state;
  begin();
  for (int i = 1; i <= body_count; i++)
    for (long n = 1; n <= 8 && !bodies[i].slow; n += step_of(i, 1)) {
      trial t = {bodies[i].name, C_ELSEWHERE, n, 0};
      if (!attempt(i, &t)) break;
    }
  end();
}

static const int codes[] = {TPS_OUT_OF_MEMORY, TPS_INVALID_VALUE,
                            TPS_INVALID_HANDLE, TPS_NOT_SUPPORTED,
                            TPS_ILLEGAL_ADDRESS};

static void failures_at_the_end(void **state) {
  (void)state;
  begin();
  try_all(C_HERE, 0, 1, attempt_closing);
  try_all(FACE, TPS_INVALID_VALUE, 1, attempt_closing);
  try_all(FACE, TPS_ILLEGAL_ADDRESS, 2, attempt_closing);
  end();
}

static void the_face_fails(void **state) {
  (void)state;
  begin();
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    try_all(FACE, codes[i], 1, attempt);
  end();
}

/* ---- opening the library ------------------------------------------------- */

static int require_it(lua_State *L) {
  luaL_requiref(L, "tpstream", luaopen_tpstream, 0);
  return 0;
}

static bool opening_fails(place where, long n) {
  trial t = {"opening", where, n, 0};
  lua_State *L = open_bare();
  lua_pushcfunction(L, require_it);
  lua_pushcfunction(L, require_it);
  arm(where, n, 0);
  int status = lua_pcall(L, 0, 0, 0);
  bool struck = disarm();
  if (status != LUA_OK) check_error(L, &t);
  lua_settop(L, 1);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK)
    found(&t, "fails again: %s", luaL_tolstring(L, -1, NULL));
  lua_close(L);
  if (lua_bytes != 0) found(&t, "left: %zu bytes of Lua's", lua_bytes);
  lua_bytes = 0;
  if (getenv("TPS_LEAKS") && __lsan_do_recoverable_leak_check())
    found(&t, "memory leaked");
  return struck;
}

/* The first of all tests, since devices are opened once. */
static void opening(void **state) {
  (void)state;
  begin();
  for (long n = 1; opening_fails(C_HERE, n); n++) continue;
  for (long n = 1; opening_fails(LUA_ONCE, n); n++) continue;
  for (long n = 1; opening_fails(LUA_ALL, n); n++) continue;
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opening),
      cmocka_unit_test(bodies_work),
      cmocka_unit_test(lua_fails_once),
      cmocka_unit_test(lua_fails_for_good),
      cmocka_unit_test(c_fails),
      cmocka_unit_test(the_face_fails),
      cmocka_unit_test(failures_at_the_end),
      cmocka_unit_test(c_fails_elsewhere),
  };
  return cmocka_run_group_tests_name("injection", tests, learn, NULL);
}
