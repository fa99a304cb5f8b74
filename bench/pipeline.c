/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The works of bench/pipeline.lua in straight C on cudart: their yardstick. A Lua
 * module (bench_pipeline) with
 *   now()                        microseconds of the monotonic clock
 *   open(ptx, chunks, elements)  what pipeline works on
 *   pipeline()                   copy in, compute, copy out, chunk by chunk on three
 *                                streams → microseconds for all
 *   peer(bytes, times)           copies from device 0 to 1 → microseconds for all
 */
#include <cuda_runtime_api.h>
#include <lauxlib.h>
#include <time.h>

enum { SLOTS = 3, THREADS = 256 };

static struct {
  cudaKernel_t kernel;
  cudaStream_t in, work, out;
  float *from, *to;    /* in pinned memory */
  float *slots[SLOTS]; /* device memory for a chunk each */
  cudaEvent_t loaded[SLOTS], done[SLOTS], empty[SLOTS];
  int chunks, elements; /* of a chunk */
} p;

static void try(lua_State *L, cudaError_t e, const char *what) {
  if (e != cudaSuccess) luaL_error(L, "%s: %s", what, cudaGetErrorString(e));
}
#define TRY(call) try(L, (call), #call)

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int bench_now(lua_State *L) {
  lua_pushnumber(L, now_us());
  return 1;
}

/* ---- copy in, compute, copy out ------------------------------------------- */

static int bench_open(lua_State *L) {
  cudaLibrary_t library;
  const char *ptx = luaL_checkstring(L, 1);
  p.chunks = (int)luaL_checkinteger(L, 2);
  p.elements = (int)luaL_checkinteger(L, 3);
  size_t count = (size_t)p.chunks * p.elements, bytes = count * sizeof(float);
  TRY(cudaSetDevice(0));
  TRY(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
  TRY(cudaLibraryGetKernel(&p.kernel, library, "work"));
  TRY(cudaMallocHost((void **)&p.from, bytes));
  TRY(cudaMallocHost((void **)&p.to, bytes));
  for (size_t i = 0; i < count; i++) p.from[i] = (float)(i % 1000);
  TRY(cudaStreamCreateWithFlags(&p.in, cudaStreamNonBlocking));
  TRY(cudaStreamCreateWithFlags(&p.work, cudaStreamNonBlocking));
  TRY(cudaStreamCreateWithFlags(&p.out, cudaStreamNonBlocking));
  for (int i = 0; i < SLOTS; i++) {
    TRY(cudaMalloc((void **)&p.slots[i], p.elements * sizeof(float)));
    TRY(cudaEventCreateWithFlags(&p.loaded[i], cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&p.done[i], cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&p.empty[i], cudaEventDisableTiming));
  }
  return 0;
}

static void compute(lua_State *L, float *slot) {
  int n = p.elements;
  void *arguments[] = {&slot, &n};
  cudaLaunchConfig_t config = {.gridDim = {(n + THREADS - 1) / THREADS, 1, 1},
                               .blockDim = {THREADS, 1, 1},
                               .stream = p.work};
  TRY(cudaLaunchKernelExC(&config, p.kernel, arguments));
}

static void queue_chunk(lua_State *L, int i) {
  int k = i % SLOTS;
  size_t first = (size_t)i * p.elements, bytes = p.elements * sizeof(float);
  float *slot = p.slots[k];
  if (i >= SLOTS) TRY(cudaStreamWaitEvent(p.in, p.empty[k], 0));
  TRY(cudaMemcpyAsync(slot, p.from + first, bytes, cudaMemcpyDefault, p.in));
  TRY(cudaEventRecord(p.loaded[k], p.in));
  TRY(cudaStreamWaitEvent(p.work, p.loaded[k], 0));
  compute(L, slot);
  TRY(cudaEventRecord(p.done[k], p.work));
  TRY(cudaStreamWaitEvent(p.out, p.done[k], 0));
  TRY(cudaMemcpyAsync(p.to + first, slot, bytes, cudaMemcpyDefault, p.out));
  TRY(cudaEventRecord(p.empty[k], p.out));
}

static int bench_pipeline(lua_State *L) {
  double start = now_us();
  for (int i = 0; i < p.chunks; i++) queue_chunk(L, i);
  TRY(cudaStreamSynchronize(p.out));
  lua_pushnumber(L, now_us() - start);
  return 1;
}

/* ---- between devices ------------------------------------------------------ */

static cudaStream_t peer_stream;
static void *peer_from, *peer_to;

/* Each sees the other's memory, where the hardware lets it. */
static void open_peers(lua_State *L, size_t bytes) {
  int can = 0;
  for (int i = 0; i < 2; i++) {
    TRY(cudaSetDevice(i));
    TRY(cudaDeviceCanAccessPeer(&can, i, 1 - i));
    cudaError_t e = can ? cudaDeviceEnablePeerAccess(1 - i, 0) : cudaSuccess;
    if (e != cudaErrorPeerAccessAlreadyEnabled) TRY(e);
    cudaGetLastError();
    TRY(cudaMalloc(i == 0 ? &peer_from : &peer_to, bytes));
  }
  TRY(cudaSetDevice(0));
  TRY(cudaStreamCreateWithFlags(&peer_stream, cudaStreamNonBlocking));
}

static int bench_peer(lua_State *L) {
  size_t bytes = (size_t)luaL_checkinteger(L, 1);
  lua_Integer times = luaL_checkinteger(L, 2);
  if (peer_stream == NULL) open_peers(L, bytes);
  TRY(cudaSetDevice(0));
  double start = now_us();
  for (lua_Integer i = 0; i < times; i++)
    TRY(cudaMemcpyPeerAsync(peer_to, 1, peer_from, 0, bytes, peer_stream));
  TRY(cudaStreamSynchronize(peer_stream));
  lua_pushnumber(L, now_us() - start);
  return 1;
}

__attribute__((visibility("default"))) int
luaopen_bench_pipeline(lua_State *L) {
  static const luaL_Reg functions[] = {{"now", bench_now},
                                       {"open", bench_open},
                                       {"pipeline", bench_pipeline},
                                       {"peer", bench_peer},
                                       {NULL, NULL}};
  luaL_newlib(L, functions);
  return 1;
}
