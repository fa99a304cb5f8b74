/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * include/tpstream.h as a program that embeds Lua uses it, on the simulated
 * device. Run from the project's folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../include/tpstream.h"
#include "lua/api.h"

/* ---- states -------------------------------------------------------------- */

static lua_State *new_state(void) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_tpstream);
  lua_setfield(L, -2, "tpstream");
  lua_pop(L, 1);
  tpstream_setdevice(L, "sim:0");
  return L;
}

static lua_State *open_state(void) {
  lua_State *L = new_state();
  tpstream_open(L);
  lua_setglobal(L, "tp");
  return L;
}

/* Runs Lua text; its results are on the stack. */
static void run(lua_State *L, const char *text) {
  if (luaL_dostring(L, text) != LUA_OK) fail_msg("%s", lua_tostring(L, -1));
}

/* Calls f under protection and expects it to raise this. */
static void raises(lua_State *L, lua_CFunction f, const char *expected) {
  int top = lua_gettop(L);
  lua_pushcfunction(L, f);
  assert_int_not_equal(LUA_OK, lua_pcall(L, 0, 0, 0));
  const char *message = luaL_tolstring(L, -1, NULL);
  if (strstr(message, expected) == NULL)
    fail_msg("\"%s\" lacks \"%s\"", message, expected);
  lua_settop(L, top);
}

static void release(void *owner) { ++*(int *)owner; }

/* Device memory of 100 int32 as a program may have it: from a buffer that the
 * global `pool` keeps. */
static tpstream_memory pool_memory(lua_State *L, int *released) {
  tpstream_buffer b;
  run(L, "pool = tp.zeros('int32', 100) return pool");
  tpstream_checkbuffer(L, -1, &b);
  lua_pop(L, 1);
  return (tpstream_memory){.data = b.data,
                           .dtype = TPSTREAM_INT32,
                           .count = b.count,
                           .release = release,
                           .owner = released};
}

/* Makes the global `name` a Buffer over pool memory. */
static void lend(lua_State *L, const char *name, int *released) {
  tpstream_memory memory = pool_memory(L, released);
  tpstream_pushbuffer(L, NULL, &memory);
  lua_setglobal(L, name);
}

/* A stream that is held up until *flag is not 0: the globals s and flag. */
static int32_t *hold(lua_State *L) {
  tpstream_buffer b;
  run(L, "s, flag = tp.Stream(), tp.pinned('int32', { 0 })\n"
         "module = tp.load 'spec/ptx/gate.ptx'\n"
         "tp.with_stream(s, function()\n"
         "  module:kernel 'gate':launch({ grid = 1, block = 1 }, flag)\n"
         "end)\n"
         "return flag");
  tpstream_checkbuffer(L, -1, &b);
  lua_pop(L, 1);
  assert_non_null(b.host);
  return (int32_t *)b.host;
}

/* ---- opening ------------------------------------------------------------- */

static int get(lua_State *L) {
  tpstream_get(L);
  return 0;
}

static int reopen(lua_State *L) {
  tpstream_open(L);
  return 1;
}

static void opening(void **unused) {
  (void)unused;
  lua_State *L = new_state();
  tpstream_stream s;
  assert_null(tpstream_find(L));
  assert_int_equal(0, tpstream_finish(L));
  assert_int_equal(0, tpstream_tostream(L, 1, &s));
  raises(L, get, "tpstream is not open in this Lua state");
  tpstream_open(L);
  tpstream_open(L);
  assert_true(lua_rawequal(L, -1, -2));
  assert_int_equal(2, lua_gettop(L));
  assert_string_equal(TPSTREAM_VERSION, tpstream_version(L));
  assert_int_equal(0, tpstream_finish(L));
  lua_close(L);
}

static void a_device_that_is_not_there(void **unused) {
  (void)unused;
  lua_State *L = new_state();
  tpstream_setdevice(L, "gpu");
  raises(L, reopen, "gpu");
  tpstream_setdevice(L, NULL);
  tpstream_setdevice(L, "sim:0");
  tpstream_open(L);
  lua_close(L);
}

/* Puts a module of another version in place of ours. */
static void pretend(lua_State *L, const tpstream_interface *other) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)other);
  lua_setfield(L, LUA_REGISTRYINDEX, TPSTREAM_KEY);
}

static void versions(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  const tpstream_interface *ours = tpstream_get(L);
  tpstream_interface other = *ours;
  other.version = "9.8.7";
  other.interface_version = 77;
  pretend(L, &other);
  assert_null(tpstream_find(L));
  raises(L, get,
         "tpstream 9.8.7 has interface 77, this program was compiled "
         "for interface 1");
  raises(L, reopen, "interface 77");
  other.interface_version = TPSTREAM_INTERFACE;
  other.size -= sizeof(void *);
  pretend(L, &other);
  raises(L, get, "tpstream 9.8.7 is older than the header of this program");
  other.size += 100 * sizeof(void *);
  pretend(L, &other);
  assert_ptr_equal(&other, tpstream_get(L));
  pretend(L, ours);
  lua_close(L);
}

/* ---- streams ------------------------------------------------------------- */

static void told_streams(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  tpstream_stream s;
  run(L, "local s = tp.Stream{ priority = -100, blocking = true }\n"
         "return s, s:handle(), s:id(), s:priority(), tp.default_stream()");
  tpstream_checkstream(L, 1, &s);
  assert_int_equal(lua_tointeger(L, 2), (uintptr_t)s.handle);
  assert_int_equal(lua_tointeger(L, 3), s.id);
  assert_int_equal(lua_tointeger(L, 4), s.priority);
  assert_int_equal(TPSTREAM_SIM, s.kind);
  assert_int_equal(0, s.device);
  assert_int_equal(1, s.blocking);
  assert_int_equal(1, tpstream_tostream(L, 5, &s));
  assert_null(s.handle);
  assert_int_equal(0, s.id);
  assert_int_equal(0, tpstream_tostream(L, 2, &s));
  assert_int_equal(0, tpstream_tostream(L, 9, &s));
  assert_int_equal(5, lua_gettop(L));
  lua_close(L);
}

static int capturing(lua_State *L) {
  tpstream_stream s;
  tpstream_checkstream(L, 1, &s);
  lua_pushboolean(L, s.capturing);
  return 1;
}

static void told_of_captures(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  lua_register(L, "capturing", capturing);
  run(L, "local s, seen = tp.Stream()\n"
         "tp.capture(s, function() seen = capturing(s) end)\n"
         "return seen, capturing(s)");
  assert_true(lua_toboolean(L, 1));
  assert_false(lua_toboolean(L, 2));
  lua_close(L);
}

static int stream_argument(lua_State *L) {
  tpstream_stream s;
  tpstream_checkstream(L, 1, &s);
  return 0;
}

static int buffer_argument(lua_State *L) {
  tpstream_buffer b;
  tpstream_checkbuffer(L, 1, &b);
  return 0;
}

static void wrong_arguments(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  lua_register(L, "stream_argument", stream_argument);
  lua_register(L, "buffer_argument", buffer_argument);
  run(L,
      "local function fails(pattern, f, ...)\n"
      "  local ok, message = pcall(f, ...)\n"
      "  assert(not ok and message:find(pattern, 1, true), message)\n"
      "end\n"
      "local s, b = tp.Stream(), tp.zeros('f32', 3)\n"
      "local function call() stream_argument(b) end\n"
      "fails(\"bad argument #1 to 'stream_argument' (tpstream.Stream expected, "
      "got tpstream.Buffer)\", call)\n"
      "fails('tpstream.Buffer expected, got nil', buffer_argument, nil)\n"
      "fails('tpstream.Buffer expected, got tpstream.Stream',\n"
      "  buffer_argument, s)\n"
      "fails('tpstream.Stream expected, got string', stream_argument, 'x')\n"
      "fails('tpstream.Stream expected, got FILE*', stream_argument,\n"
      "  io.stdout)\n"
      "stream_argument(s) buffer_argument(b)\n"
      "s:close() b:close()\n"
      "fails('attempt to use a closed stream', stream_argument, s)\n"
      "fails('attempt to use a closed buffer', buffer_argument, b)");
  lua_close(L);
}

static int push_bad_stream(lua_State *L) {
  tpstream_pushstream(L, "sim:99", NULL);
  return 1;
}

static void pushed_streams(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  tpstream_stream s;
  run(L, "return tp.Stream(), tp.default_stream()");
  tpstream_checkstream(L, 1, &s);
  tpstream_pushstream(L, "sim:0", s.handle);
  assert_true(lua_rawequal(L, 1, 3));
  tpstream_pushstream(L, NULL, NULL);
  assert_true(lua_rawequal(L, 2, 4));
  raises(L, push_bad_stream, "99");
  assert_int_equal(4, lua_gettop(L));
  lua_close(L);
}

/* ---- memory -------------------------------------------------------------- */

static void told_buffers(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  tpstream_buffer b;
  run(L, "local b = tp.buffer('float64', { 1, 2, 3, 4 })\n"
         "return b:slice(3, 2), b:ptr(), tp.pinned('u8', { 7, 8, 9 }):slice(2),"
         " tp.zeros('bf16', 0)");
  tpstream_checkbuffer(L, 1, &b);
  assert_int_equal(lua_tointeger(L, 2) + 16, (uintptr_t)b.data);
  assert_null(b.host);
  assert_int_equal(2, b.count);
  assert_int_equal(TPSTREAM_FLOAT64, b.dtype);
  assert_int_equal(8, b.size);
  assert_int_equal(TPSTREAM_SIM, b.kind);
  assert_int_equal(0, b.device);
  tpstream_checkbuffer(L, 3, &b);
  assert_int_equal(2, b.count);
  assert_memory_equal("\x08\x09", b.host, 2);
  assert_int_equal(1, tpstream_tobuffer(L, 4, &b));
  assert_null(b.data);
  assert_int_equal(0, b.count);
  assert_int_equal(0, tpstream_tobuffer(L, 2, &b));
  lua_close(L);
}

static void shorter_structs(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  tpstream_buffer b;
  tpstream_stream s;
  run(L, "return tp.zeros('f32', 3), tp.default_stream()");
  memset(&b, 0x55, sizeof b);
  memset(&s, 0x55, sizeof s);
  const tpstream_interface *f = tpstream_get(L);
  assert_int_equal(1, f->to_buffer(L, 1, &b, offsetof(tpstream_buffer, count)));
  assert_true(b.data != NULL && b.host == NULL);
  assert_int_equal(0x5555555555555555, b.count);
  assert_int_equal(1, f->to_stream(L, 2, &s, offsetof(tpstream_stream, kind)));
  assert_int_equal(0, s.id);
  assert_int_equal(0x55555555, s.kind);
  lua_close(L);
}

static void lent_memory(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  int released = 0;
  lend(L, "lent", &released);
  run(L, "lent:fill(5) lent:slice(2, 2):write({ 7, 8 })\n"
         "assert(table.concat(pool:read(1, 4), ' ') == '5 7 8 5')\n"
         "assert(#lent == 100 and lent:dtype() == 'int32')\n"
         "assert(lent:ptr() == pool:ptr())\n"
         "part = lent:slice(10) lent:close() collectgarbage()");
  assert_int_equal(0, released);
  run(L, "tp.current_stream():synchronize() part:close()");
  assert_int_equal(1, released);
  lua_close(L);
  assert_int_equal(1, released);
}

static void collected_or_closed_with_the_state(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  int released = 0;
  lend(L, "lent", &released);
  run(L, "lent = nil collectgarbage()");
  assert_int_equal(0, tpstream_finish(L));
  assert_int_equal(1, released);
  lend(L, "lent", &released);
  run(L, "lent:fill(1)");
  assert_int_equal(0, tpstream_finish(L));
  lua_close(L);
  assert_int_equal(2, released);
}

static void not_while_work_is_queued(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  int released = 0;
  lend(L, "lent", &released);
  int32_t *flag = hold(L);
  run(L, "tp.with_stream(s, lent.fill, lent, 3) lent:close()\n"
         "collectgarbage() tp.zeros('i8', 10):close()");
  assert_int_equal(0, released);
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  assert_int_equal(0, tpstream_finish(L));
  assert_int_equal(1, released);
  run(L, "assert(pool:read(1, 1)[1] == 3)");
  lua_close(L);
}

static void no_release_is_fine(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  tpstream_memory memory = pool_memory(L, NULL);
  memory.release = NULL;
  tpstream_pushbuffer(L, "sim:0", &memory);
  lua_pop(L, 1);
  memory = (tpstream_memory){.dtype = TPSTREAM_UINT8};
  tpstream_pushbuffer(L, NULL, &memory);
  tpstream_buffer b;
  tpstream_checkbuffer(L, -1, &b);
  assert_int_equal(0, b.count);
  lua_close(L);
}

/* What the next call of push_memory lends, and where. */
static tpstream_memory next_memory;
static const char *next_device;

static int push_memory(lua_State *L) {
  tpstream_pushbuffer(L, next_device, &next_memory);
  return 1;
}

static void refused_memory(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  int released = 0;
  const tpstream_memory good = pool_memory(L, &released);
  next_memory = good;
  next_memory.dtype = 12;
  raises(L, push_memory, "element type 12 (there are 0 to 11)");
  next_memory.dtype = -1;
  raises(L, push_memory, "element type -1");
  next_memory = good;
  next_memory.count = -1;
  raises(L, push_memory, "memory of -1 elements");
  next_memory.count = INT64_MAX / 2;
  raises(L, push_memory, "memory of 4611686018427387903 elements");
  next_memory = good;
  next_memory.data = NULL;
  raises(L, push_memory, "memory of 100 elements has no address");
  next_memory.data = (char *)good.data + 2;
  raises(L, push_memory, "is no multiple of 4, the size of int32");
  next_memory = good;
  next_device = "sim:99";
  raises(L, push_memory, "99");
  next_device = "nonsense";
  raises(L, push_memory, "nonsense");
  next_device = NULL;
  run(L, "collectgarbage()");
  lua_close(L);
  assert_int_equal(0, released);
}

/* ---- waiting ------------------------------------------------------------- */

static int pressed;
static int button(void) { return pressed; }

static void interrupts(void **unused) {
  (void)unused;
  lua_State *L = new_state();
  tpstream_setinterrupt(L, button);
  tpstream_open(L);
  lua_setglobal(L, "tp");
  int32_t *flag = hold(L);
  pressed = 1;
  assert_int_not_equal(0, tpstream_finish(L));
  assert_non_null(strstr(luaL_tolstring(L, -1, NULL), "interrupted!"));
  pressed = 0;
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  lua_settop(L, 0);
  assert_int_equal(0, tpstream_finish(L));
  assert_int_equal(0, lua_gettop(L));
  tpstream_setinterrupt(L, NULL);
  lua_close(L);
}

static void coroutines(void **unused) {
  (void)unused;
  lua_State *L = open_state(), *thread = lua_newthread(L);
  int released = 0;
  tpstream_memory memory = pool_memory(thread, &released);
  tpstream_pushbuffer(thread, NULL, &memory);
  tpstream_pushstream(thread, NULL, NULL);
  tpstream_buffer b = {0};
  tpstream_stream s = {0};
  assert_int_equal(1, tpstream_tobuffer(thread, 1, &b));
  assert_int_equal(1, tpstream_tostream(thread, 2, &s));
  assert_ptr_equal(memory.data, b.data);
  lua_close(L);
  assert_int_equal(1, released);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opening),
      cmocka_unit_test(a_device_that_is_not_there),
      cmocka_unit_test(versions),
      cmocka_unit_test(told_streams),
      cmocka_unit_test(told_of_captures),
      cmocka_unit_test(wrong_arguments),
      cmocka_unit_test(pushed_streams),
      cmocka_unit_test(told_buffers),
      cmocka_unit_test(shorter_structs),
      cmocka_unit_test(lent_memory),
      cmocka_unit_test(collected_or_closed_with_the_state),
      cmocka_unit_test(not_while_work_is_queued),
      cmocka_unit_test(no_release_is_fine),
      cmocka_unit_test(refused_memory),
      cmocka_unit_test(interrupts),
      cmocka_unit_test(coroutines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
