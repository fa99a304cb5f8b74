/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * DLPack with the other side in C: tensors that others made, and deleters called
 * from other threads, before and after the Lua state is closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lua/api.h"
#include "lua/dlpack.h"

static lua_State *open_state(void) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  lua_pushliteral(L, "sim:0");
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.device");
  luaL_requiref(L, "tpstream", luaopen_tpstream, 0);
  lua_setglobal(L, "tp");
  return L;
}

static void run(lua_State *L, const char *text) {
  if (luaL_dostring(L, text) != LUA_OK) fail_msg("%s", lua_tostring(L, -1));
}

/* ---- tensors of others --------------------------------------------------- */

typedef struct foreign {
  DLManagedTensor tensor;
  int64_t shape[3], strides[3];
  float data[24];
  int deleted;
} foreign;

static void note_deleted(DLManagedTensor *tensor) {
  ((foreign *)tensor->manager_ctx)->deleted++;
}

/* 2 × 3 × 4 floats in host memory. */
static void make(foreign *f) {
  memset(f, 0, sizeof *f);
  for (int i = 0; i < 24; i++) f->data[i] = (float)(i * i);
  f->shape[0] = 2, f->shape[1] = 3, f->shape[2] = 4;
  f->strides[0] = 12, f->strides[1] = 4, f->strides[2] = 1;
  f->tensor.dl_tensor = (DLTensor){.data = f->data,
                                   .device = {kDLCPU, 0},
                                   .ndim = 3,
                                   .dtype = {kDLFloat, 32, 1},
                                   .shape = f->shape,
                                   .strides = f->strides};
  f->tensor.manager_ctx = f;
  f->tensor.deleter = note_deleted;
}

static void taken(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  foreign f;
  make(&f);
  lua_pushlightuserdata(L, &f.tensor);
  lua_setglobal(L, "p");
  run(L, "b = tp.from_dlpack(p)\n"
         "assert(#b == 24 and b:dtype() == 'float32')\n"
         "for i = 1, 24 do assert(b[i] == (i - 1) ^ 2) end");
  assert_int_equal(1, f.deleted); /* copied */
  make(&f);
  f.tensor.dl_tensor.strides = NULL;
  f.tensor.dl_tensor.byte_offset = 8;
  f.shape[0] = 1;
  f.tensor.deleter = NULL;
  run(L, "b = tp.from_dlpack(p) assert(#b == 12 and b[1] == 4)");
  make(&f);
  f.tensor.dl_tensor.ndim = 0;
  run(L, "b = tp.from_dlpack(p) assert(#b == 1 and b[1] == 0)");
  make(&f);
  f.shape[1] = 0; /* whatever the strides */
  f.strides[0] = 77;
  run(L, "b = tp.from_dlpack(p) assert(#b == 0)");
  make(&f);
  f.tensor.dl_tensor.dtype = (DLDataType){kDLBool, 8, 1};
  run(L, "b = tp.from_dlpack(p) assert(#b == 24 and b:dtype() == 'uint8')");
  lua_close(L);
}

/* A script could not delete it: that has been done. */
static void refused(lua_State *L, const foreign *f, const char *expected) {
  lua_getglobal(L, "tp");
  lua_getfield(L, -1, "from_dlpack");
  lua_pushlightuserdata(L, (void *)(uintptr_t)&f->tensor);
  assert_int_not_equal(LUA_OK, lua_pcall(L, 1, 1, 0));
  const char *message = luaL_tolstring(L, -1, NULL);
  if (strstr(message, expected) == NULL)
    fail_msg("\"%s\" lacks \"%s\"", message, expected);
  assert_int_equal(1, f->deleted); /* before the collector comes */
  lua_settop(L, 0);
}

static void not_taken(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  foreign f;
  make(&f);
  f.strides[1] = 5;
  refused(L, &f,
          "the tensor has gaps or another order: stride 5 in dimension 2, 4 "
          "expected");
  make(&f);
  f.tensor.dl_tensor.dtype = (DLDataType){5, 64, 1};
  refused(L, &f, "elements of type code 5, 64 bits, 1 lanes have no name here");
  make(&f);
  f.tensor.dl_tensor.dtype.lanes = 4;
  refused(L, &f, "4 lanes");
  make(&f);
  f.tensor.dl_tensor.shape = NULL;
  refused(L, &f, "a tensor without a shape");
  make(&f);
  f.tensor.dl_tensor.data = NULL;
  refused(L, &f, "a tensor without data");
  make(&f);
  f.shape[2] = -1;
  refused(L, &f, "dimension 3 of the tensor is -1");
  make(&f);
  f.shape[0] = f.shape[1] = INT64_MAX / 3;
  refused(L, &f, "dimension 2 of the tensor is");
  make(&f);
  f.shape[0] = INT64_MAX / 12;
  f.tensor.dl_tensor.strides = NULL;
  refused(L, &f, "more bytes than there can be");
  make(&f);
  f.tensor.dl_tensor.device.device_type = 10;
  refused(L, &f, "a tensor on a device of type 10 (only CPU, CUDA");
  make(&f);
  f.tensor.dl_tensor.device = (DLDevice){kDLExtDev, 99};
  refused(L, &f, "no device sim:99");
  make(&f);
  f.tensor.dl_tensor.device.device_type = kDLExtDev;
  f.tensor.dl_tensor.byte_offset = 2;
  refused(L, &f, "is no multiple of 4, the size of float32");
  make(&f);
  f.tensor.dl_tensor.ndim = -2;
  refused(L, &f, "a tensor of -2 dimensions");
  lua_close(L);
}

/* ---- deleters ------------------------------------------------------------ */

#define TENSORS 64
#define THREADS 4

typedef struct given {
  DLManagedTensor *tensors[TENSORS];
  int first;
} given;

static void give(lua_State *L, DLManagedTensor **tensors) {
  run(L, "local t, kinds = {}, { tp.buffer, tp.pinned, tp.managed }\n"
         "for i = 1, 64 do\n"
         "  local b = kinds[i % 3 + 1]('i32', { i, i + 1 })\n"
         "  if i % 4 == 0 then b = b:slice(2, 1) end\n"
         "  if i % 5 == 0 then b:fill(9) end\n"
         "  t[i] = b:dlpack()\n"
         "end\n"
         "tp.current_stream():synchronize()\n"
         "return t");
  for (int i = 0; i < TENSORS; i++) {
    lua_rawgeti(L, -1, i + 1);
    tensors[i] = (DLManagedTensor *)lua_touserdata(L, -1);
    lua_pop(L, 1);
    assert_int_equal(1, tensors[i]->dl_tensor.ndim);
  }
  lua_settop(L, 0);
}

static void *delete_some(void *argument) {
  given *g = (given *)argument;
  for (int i = g->first; i < TENSORS; i += THREADS)
    g->tensors[i]->deleter(g->tensors[i]);
  return NULL;
}

/* In the meanwhile a state allocates, or closes. */
static void delete_on_threads(DLManagedTensor **tensors, lua_State *meanwhile,
                              bool close) {
  pthread_t ids[THREADS];
  given parts[THREADS];
  for (int i = 0; i < THREADS; i++) {
    memcpy(parts[i].tensors, tensors, sizeof parts[i].tensors);
    parts[i].first = i;
    assert_int_equal(0, pthread_create(&ids[i], NULL, delete_some, &parts[i]));
  }
  if (close) lua_close(meanwhile);
  else if (meanwhile != NULL)
    run(meanwhile, "for i = 1, 200 do tp.buffer('u8', 100):close() end");
  for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
}

static void deleted_meanwhile(void **unused) {
  (void)unused;
  lua_State *L = open_state();
  DLManagedTensor *tensors[TENSORS];
  give(L, tensors);
  run(L, "collectgarbage()\n"
         "assert(tp.memory_stats().live_bytes > 0)");
  delete_on_threads(tensors, L, false);
  run(L, "tp.current_stream():synchronize()\n"
         "tp.buffer('u8', 1):close()\n"
         "local s = tp.memory_stats()\n"
         "assert(s.live_bytes == 0 and s.pinned_bytes == 0 and\n"
         "  s.managed_bytes == 0)");
  lua_close(L);
}

/* The memory, and what remains of the state, goes with the last of them. */
static void deleted_afterwards(void **unused) {
  (void)unused;
  for (int round = 0; round < 10; round++) {
    lua_State *L = open_state();
    DLManagedTensor *tensors[TENSORS];
    give(L, tensors);
    lua_close(L);
    for (int i = 0; i < TENSORS; i += 3) /* pinned: still there */
      if (tensors[i]->dl_tensor.device.device_type == kDLCPU && i % 5 != 4)
        assert_int_not_equal(0, *(int32_t *)tensors[i]->dl_tensor.data);
    delete_on_threads(tensors, NULL, false);
  }
}

static void deleted_while_it_closes(void **unused) {
  (void)unused;
  for (int round = 0; round < 20; round++) {
    lua_State *L = open_state();
    DLManagedTensor *tensors[TENSORS];
    give(L, tensors);
    delete_on_threads(tensors, L, true);
  }
}

/* One state takes what another gives, and outlives it. */
static void between_states(void **unused) {
  (void)unused;
  lua_State *a = open_state(), *b = open_state();
  run(a, "local x = tp.buffer('f64', { 1.5, 2.5 })\n"
         "tp.current_stream():synchronize()\n"
         "return x:dlpack()");
  lua_pushlightuserdata(b, lua_touserdata(a, -1));
  lua_setglobal(b, "p");
  lua_close(a);
  run(b, "x = tp.from_dlpack(p)\n"
         "assert(x:read()[2] == 2.5)\n"
         "x:fill(3)\n"
         "assert(x:read()[1] == 3)");
  lua_close(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(taken),
      cmocka_unit_test(not_taken),
      cmocka_unit_test(deleted_meanwhile),
      cmocka_unit_test(deleted_afterwards),
      cmocka_unit_test(deleted_while_it_closes),
      cmocka_unit_test(between_states),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
