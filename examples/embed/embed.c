/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A program that embeds Lua and lets a script work on its own stream and its
 * own device memory:
 *
 *   embed [FOLDER]      where smooth.lua and smooth.cu are; default "."
 *
 * Compiled with EMBED_CUDA, stream and memory come from the CUDA runtime.
 * Without it (no toolkit, no GPU) the program is one that gets its stream and
 * a pool of memory from tpstream, and lends parts of that pool. What it does
 * with the script is the same. What the script returns outlives Lua as a tensor of
 * DLPack's, as it would be given to another library. */
#include <stdio.h>
#include <stdlib.h>

#include <lualib.h>
#include <tpstream.h>

#ifdef EMBED_CUDA
#include <cuda_runtime_api.h>
#endif

#ifndef EMBED_CPATH /* where tpstream.so is; the build says so */
#define EMBED_CPATH "./?.so"
#endif

#define COUNT 1000

/* As DLPack's own dlpack.h has it, which a program would rather include. */
typedef struct tensor {
  void *data;
  int32_t device_type, device;
  int32_t dimensions;
  uint8_t type, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} tensor;
typedef struct managed_tensor {
  tensor tensor;
  void *context;
  void (*deleter)(struct managed_tensor *self);
} managed_tensor;

/* What the program owns. */
typedef struct own {
  const char *device;
  void *stream; /* handle */
  void *data;   /* COUNT floats on the device */
  int released;
  managed_tensor *kept; /* what the script made, for another library */
} own;

/* ---- the program's own stream and memory --------------------------------- */

#ifdef EMBED_CUDA

static void check(lua_State *L, cudaError_t code) {
  if (code != cudaSuccess) luaL_error(L, "%s", cudaGetErrorString(code));
}

static void own_open(lua_State *L, own *o) {
  cudaStream_t stream;
  o->device = "cuda:0";
  check(L, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  o->stream = stream;
  check(L, cudaMalloc(&o->data, COUNT * sizeof(float)));
}

static void own_write(lua_State *L, own *o, const float *from) {
  cudaStream_t stream = (cudaStream_t)o->stream;
  check(L, cudaMemcpyAsync(o->data, from, COUNT * sizeof *from,
                           cudaMemcpyHostToDevice, stream));
  check(L, cudaStreamSynchronize(stream)); /* `from` may change now */
}

/* On the program's stream, so after what the script has queued there. */
static void own_read(lua_State *L, own *o, float *to) {
  cudaStream_t stream = (cudaStream_t)o->stream;
  check(L, cudaMemcpyAsync(to, o->data, COUNT * sizeof *to,
                           cudaMemcpyDeviceToHost, stream));
  check(L, cudaStreamSynchronize(stream));
}

static void own_close(own *o) {
  cudaFree(o->data);
  cudaStreamDestroy((cudaStream_t)o->stream);
}

#else

/* The Lua values that keep stream and pool, in the registry. */
static const char stream_key, pool_key;

/* Pushes the result of a function of the library; its arguments are on top. */
static void call_library(lua_State *L, const char *name, int arguments) {
  tpstream_open(L);
  lua_getfield(L, -1, name);
  lua_insert(L, -arguments - 2); /* function arguments library */
  lua_pop(L, 1);
  lua_call(L, arguments, 1);
}

static void own_open(lua_State *L, own *o) {
  tpstream_stream s;
  tpstream_buffer b;
  o->device = "sim:0";
  lua_pushstring(L, o->device);
  call_library(L, "Stream", 1);
  tpstream_checkstream(L, -1, &s);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &stream_key);
  lua_pushliteral(L, "float32");
  lua_pushinteger(L, 2 * COUNT);
  call_library(L, "zeros", 2);
  tpstream_checkbuffer(L, -1, &b);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pool_key);
  o->stream = s.handle;
  o->data = (char *)b.data + COUNT * sizeof(float); /* its second half */
}

/* Calls pool:name(…) for the half that is lent; arguments are on top. */
static void call_half(lua_State *L, const char *name, int arguments) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pool_key);
  lua_getfield(L, -1, "slice");
  lua_insert(L, -2);
  lua_pushinteger(L, COUNT + 1);
  lua_pushinteger(L, COUNT);
  lua_call(L, 3, 1); /* arguments half */
  lua_getfield(L, -1, name);
  lua_insert(L, -2);
  lua_rotate(L, -arguments - 2, 2); /* method half arguments */
  lua_call(L, arguments + 1, 1);
}

static void own_write(lua_State *L, own *o, const float *from) {
  (void)o;
  lua_pushlstring(L, (const char *)from, COUNT * sizeof *from);
  call_half(L, "write", 1);
  lua_pop(L, 1);
  call_library(L, "current_stream", 0);
  lua_getfield(L, -1, "synchronize");
  lua_insert(L, -2);
  lua_call(L, 1, 0);
}

static void own_read(lua_State *L, own *o, float *to) {
  (void)o;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &stream_key);
  lua_getfield(L, -1, "synchronize");
  lua_insert(L, -2);
  lua_call(L, 1, 0);
  call_half(L, "bytes", 0);
  size_t size;
  const char *bytes = lua_tolstring(L, -1, &size);
  for (size_t i = 0; i < size; i++) ((char *)to)[i] = bytes[i];
  lua_pop(L, 1);
}

static void own_close(own *o) { (void)o; } /* lua_close has done it */

#endif

/* ---- what it does with the script ---------------------------------------- */

static void give_back(void *owner) { ((own *)owner)->released++; }

/* program.describe(buffer): a C function that scripts call with a Buffer. */
static int describe(lua_State *L) {
  tpstream_buffer b;
  tpstream_checkbuffer(L, 1, &b);
  lua_pushfstring(L, "%I elements of %d bytes on %s:%d", (LUAI_UACINT)b.count,
                  (int)b.size, b.kind == TPSTREAM_CUDA ? "cuda" : "sim",
                  (int)b.device);
  return 1;
}

/* Pushes the function that the script returns. */
static void push_script(lua_State *L, const char *folder) {
  static const luaL_Reg functions[] = {{"describe", describe}, {NULL, NULL}};
  const char *path = lua_pushfstring(L, "%s/smooth.lua", folder);
  if (luaL_loadfile(L, path) != LUA_OK) lua_error(L);
  luaL_newlib(L, functions);
  lua_pushstring(L, folder);
  lua_call(L, 2, 1);
  lua_remove(L, -2); /* path */
}

/* The Buffer on top as a tensor, which lives on without Lua. */
static managed_tensor *keep(lua_State *L) {
  lua_getfield(L, -1, "dlpack");
  lua_pushvalue(L, -2);
  lua_call(L, 1, 1);
  managed_tensor *kept = (managed_tensor *)lua_touserdata(L, -1);
  lua_pop(L, 1);
  return kept;
}

/* What a library does that was given a tensor. */
static void use(managed_tensor *kept) {
  const tensor *t = &kept->tensor;
  printf("kept: %lld elements of %d bits\n", (long long)t->shape[0], t->bits);
  kept->deleter(kept);
}

static double roughness(const float *v) {
  double sum = 0;
  for (int i = 1; i < COUNT; i++)
    sum += v[i] > v[i - 1] ? v[i] - v[i - 1] : v[i - 1] - v[i];
  return sum / (COUNT - 1);
}

/* (own, folder): everything that can raise. */
static int run(lua_State *L) {
  own *o = (own *)lua_touserdata(L, 1);
  const char *folder = lua_tostring(L, 2);
  float samples[COUNT];
  tpstream_buffer result;
  for (int i = 0; i < COUNT; i++) samples[i] = (float)(i * i % 997);

  tpstream_open(L);
  lua_pop(L, 1);
  own_open(L, o);
  printf("tpstream %s, on %s\n", tpstream_version(L), o->device);
  own_write(L, o, samples);
  printf("before: %.1f\n", roughness(samples));

  tpstream_memory lent = {.data = o->data,
                          .dtype = TPSTREAM_FLOAT32,
                          .count = COUNT,
                          .release = give_back,
                          .owner = o};
  push_script(L, folder);
  tpstream_pushstream(L, o->device, o->stream);
  tpstream_pushbuffer(L, o->device, &lent);
  lua_call(L, 2, 1);
  tpstream_checkbuffer(L, -1, &result); /* the script's own */
  printf("program: got %d elements back\n", (int)result.count);
  o->kept = keep(L);

  own_read(L, o, samples);
  printf("after: %.1f\n", roughness(samples));
  return 0;
}

static void add_cpath(lua_State *L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "cpath");
  lua_pushfstring(L, "%s;%s", EMBED_CPATH, lua_tostring(L, -1));
  lua_setfield(L, -3, "cpath");
  lua_pop(L, 2);
}

int main(int argc, char **argv) {
  own o = {0};
  lua_State *L = luaL_newstate();
  if (L == NULL) return EXIT_FAILURE;
  luaL_openlibs(L);
  add_cpath(L);
  lua_pushcfunction(L, run);
  lua_pushlightuserdata(L, &o);
  lua_pushstring(L, argc > 1 ? argv[1] : ".");
  int failed = lua_pcall(L, 2, 0, 0);
  if (!failed) failed = tpstream_finish(L);
  if (failed) {
    fprintf(stderr, "embed: %s\n", luaL_tolstring(L, -1, NULL));
  }
  lua_close(L);
  if (o.kept != NULL) use(o.kept);
  printf("released: %d\n", o.released);
  own_close(&o);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
