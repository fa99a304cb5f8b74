/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Ctrl-C. A debug hook, which a signal handler may set, makes running code
 * raise "interrupted!"; but a hook belongs to one coroutine, and a busy task
 * may be any. So the state's allocator, which Lua tells when it makes a
 * coroutine, keeps the set of all that live, and the handler hooks each of
 * them. Waits ask host_interrupted() instead.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"

/* Coroutines that live, an open hash table; empty slots are NULL. The handler
 * reads it, so whoever changes it sets `busy`, and hooks afterwards if the
 * handler came meanwhile. */
static struct {
  lua_State **slots;
  size_t mask, count; /* slots - 1, those used */
  size_t sizes[2];    /* of the blocks: the main one, the others */
  volatile sig_atomic_t busy, missed;
} set;
static volatile sig_atomic_t pending; /* Ctrl-C without an effect yet */
static volatile sig_atomic_t wanted;  /* the handler is to be in force */
static volatile sig_atomic_t struck;  /* it was called since */
static pthread_t owner;               /* the thread that runs Lua */

static void stop(lua_State *L, lua_Debug *ar);

static void hook_all(lua_Hook hook) {
  int mask = hook == NULL
                 ? 0
                 : LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT;
  for (size_t i = 0; set.slots != NULL && i <= set.mask; i++)
    if (set.slots[i] != NULL) lua_sethook(set.slots[i], hook, mask, 1);
}

/* The hook: whichever coroutine gets here first raises. */
static void stop(lua_State *L, lua_Debug *ar) {
  (void)ar;
  hook_all(NULL);
  if (!pending) return;
  pending = 0;
  luaL_where(L, 0);
  lua_pushliteral(L, "interrupted!");
  lua_concat(L, 2);
  lua_error(L);
}

static void begin_change(void) {
  set.busy = 1;
  atomic_signal_fence(memory_order_seq_cst);
}

static void end_change(void) {
  atomic_signal_fence(memory_order_seq_cst);
  set.busy = 0;
  if (set.missed) {
    set.missed = 0;
    hook_all(stop);
  }
}

static size_t home_of(const lua_State *L) {
  return (size_t)(((uintptr_t)L >> 4) * 0x9E3779B97F4A7C15u >> 20) & set.mask;
}

static void put(lua_State *L) {
  size_t i = home_of(L);
  while (set.slots[i] != NULL) i = (i + 1) & set.mask;
  set.slots[i] = L;
  set.count++;
}

static bool grow(void) {
  lua_State **old = set.slots;
  size_t size = old == NULL ? 0 : set.mask + 1;
  lua_State **slots = calloc(size == 0 ? 64 : size * 2, sizeof *slots);
  if (slots == NULL) return false;
  set.slots = slots;
  set.mask = (size == 0 ? 64 : size * 2) - 1;
  set.count = 0;
  for (size_t i = 0; i < size; i++)
    if (old[i] != NULL) put(old[i]);
  free(old);
  return true;
}

/* Takes L out, if it is in, and closes the gap it leaves for those behind. */
static void take(const lua_State *L) {
  size_t gap = home_of(L);
  while (set.slots[gap] != L) {
    if (set.slots[gap] == NULL) return;
    gap = (gap + 1) & set.mask;
  }
  for (size_t i = (gap + 1) & set.mask; set.slots[i] != NULL;
       i = (i + 1) & set.mask) {
    size_t home = home_of(set.slots[i]);
    if (((i - home) & set.mask) < ((i - gap) & set.mask)) continue;
    set.slots[gap] = set.slots[i];
    gap = i;
  }
  set.slots[gap] = NULL;
  set.count--;
}

/* A coroutine begins with its extra space, then the lua_State. Zeros, so that a
 * handler that comes before Lua has filled it finds nothing to follow. */
static void *allocate_coroutine(size_t size) {
  char *block = calloc(1, size);
  if (block == NULL) return NULL;
  begin_change();
  bool fine = set.count * 4 < set.mask * 3 || grow();
  if (fine) {
    put((lua_State *)(block + LUA_EXTRASPACE));
    set.sizes[set.sizes[0] != 0] = size;
  }
  end_change();
  if (fine) return block;
  free(block);
  return NULL;
}

/* Lua's allocator. For a new block `old` is the kind of the object. */
static void *allocate(void *data, void *block, size_t old, size_t size) {
  (void)data;
  if (block == NULL && old == LUA_TTHREAD && size > 0)
    return allocate_coroutine(size);
  if (size > 0) return realloc(block, size);
  if (block != NULL && (old == set.sizes[0] || old == set.sizes[1])) {
    begin_change();
    take((lua_State *)((char *)block + LUA_EXTRASPACE));
    end_change();
  }
  free(block);
  return NULL;
}

static void on_interrupt(int number) {
  int saved = errno;
  if (!pthread_equal(pthread_self(), owner)) {
    pthread_kill(owner, number);
  } else {
    signal(number, SIG_DFL);
    wanted = 0;
    pending = struck = 1;
    if (set.busy) set.missed = 1;
    else hook_all(stop);
  }
  errno = saved;
}

void host_interrupts(bool on) {
  struct sigaction action = {0};
  action.sa_handler = on ? on_interrupt : SIG_DFL;
  sigemptyset(&action.sa_mask);
  wanted = on;
  if (on) struck = 0;
  sigaction(SIGINT, &action, NULL);
}

/* While NVRTC compiles on a thread it has a handler of its own in force for the
 * whole process, which it ends at a Ctrl-C. Waits take ours back. */
static void keep_handler(void) {
  struct sigaction now;
  if (wanted && sigaction(SIGINT, NULL, &now) == 0 &&
      now.sa_handler != on_interrupt)
    host_interrupts(true);
}

bool host_struck(void) { return struck != 0; }

int host_interrupted(void) {
  keep_handler();
  if (!pending) return 0;
  hook_all(NULL);
  pending = 0;
  return 1;
}

static int panic(lua_State *L) {
  const char *text = lua_tostring(L, -1);
  host_message("tpstream", text != NULL ? text : "error without a text");
  return 0; /* Lua aborts */
}

lua_State *host_new_state(void) {
  owner = pthread_self();
  lua_State *L = lua_newstate(allocate, NULL);
  if (L == NULL) return NULL;
  lua_atpanic(L, panic);
  host_open_warnings(L);
  return L;
}
