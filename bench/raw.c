/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the operations of bench/launch.lua and bench/graph.lua cost in straight C
 * on cudart: the yardstick for what Lua adds. For each one a line
 *   name <TAB> median <TAB> least <TAB> most
 * in microseconds a call, of nine repetitions.
 *
 *   cc -O2 -I$CUDA/include bench/raw.c -o raw \
 *      $CUDA/lib64/libcudart_static.a -ldl -lrt -lpthread
 *   ./raw [image]
 *
 * The image (PTX or CUBIN) must hold the two kernels of `source` below. Without
 * one NVRTC, opened at run time, compiles them.
 *
 * With -DRAW_MODULE it is a Lua module instead (bench_raw), so that bench/launch.lua
 * takes turns with it in one process: two processes differ by more than what is to
 * be measured. It has
 *   now()              microseconds of the monotonic clock
 *   repetition(name)   microseconds a call, of one repetition
 *   batches(name)      how many batches, and how many calls in each
 *   caller(name)       a function that makes one call: what a binding that does
 *                      nothing else costs
 *   wait()             for the device
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef RAW_MODULE
#include <lauxlib.h>
#include <lua.h>
#endif

static const char source[] =
    "extern \"C\" __global__ void nothing() {}\n"
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y,\n"
    "                                  int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

enum {
  REPETITIONS = 9,
  BATCHES = 20,
  BATCH = 500, /* a stream takes about 1000 launches before a launch waits */
  ELEMENTS = 256,
  BYTES = 1 << 20,
  NODES = 100,
  BRANCHES = 10 /* of a wide graph */
};

static cudaStream_t stream, other;
static cudaEvent_t event;
static cudaKernel_t nothing, saxpy;
static float *x, *y;
static cudaGraphExec_t graph, wide;

#define TRY(call)                                                              \
  do {                                                                         \
    cudaError_t e_ = (call);                                                   \
    if (e_ != cudaSuccess) die(#call, cudaGetErrorString(e_));                 \
  } while (0)

static void die(const char *what, const char *why) {
  fprintf(stderr, "raw: %s: %s\n", what, why);
  exit(1);
}

/* --- the image ------------------------------------------------------------ */

static char *read_image(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) die(path, "can't be opened");
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *image = size < 0 ? NULL : calloc((size_t)size + 1, 1);
  if (image == NULL || fread(image, 1, (size_t)size, file) != (size_t)size)
    die(path, "can't be read");
  fclose(file);
  return image;
}

static void *open_nvrtc(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                      "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    void *library = dlopen(names[i], RTLD_NOW);
    if (library != NULL) return library;
  }
  die("NVRTC", "not found; give an image");
  return NULL;
}

#define SYMBOL(name)                                                           \
  __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name);       \
  if (p_##name == NULL) die(#name, "not in NVRTC")
#define COMPILE(call)                                                          \
  do {                                                                         \
    if ((call) != NVRTC_SUCCESS) die(#call, "failed");                         \
  } while (0)

static char *compile_image(void) {
  void *library = open_nvrtc();
  SYMBOL(nvrtcCreateProgram);
  SYMBOL(nvrtcCompileProgram);
  SYMBOL(nvrtcGetCUBINSize);
  SYMBOL(nvrtcGetCUBIN);
  int major, minor;
  char arch[32];
  size_t size = 0;
  nvrtcProgram program;
  TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  snprintf(arch, sizeof arch, "-arch=sm_%d%d", major, minor);
  const char *options[] = {arch};
  COMPILE(p_nvrtcCreateProgram(&program, source, "raw.cu", 0, NULL, NULL));
  COMPILE(p_nvrtcCompileProgram(program, 1, options));
  COMPILE(p_nvrtcGetCUBINSize(program, &size));
  char *image = malloc(size);
  if (image == NULL) die("malloc", "no memory");
  COMPILE(p_nvrtcGetCUBIN(program, image));
  return image;
}

/* --- what is measured ----------------------------------------------------- */

static void launch(cudaKernel_t kernel, unsigned threads, void **arguments,
                   cudaStream_t on) {
  cudaLaunchConfig_t config = {
      .gridDim = {1, 1, 1}, .blockDim = {threads, 1, 1}, .stream = on};
  TRY(cudaLaunchKernelExC(&config, kernel, arguments));
}

static void launch_empty(void) { launch(nothing, 1, NULL, stream); }

static void launch_saxpy(cudaStream_t on) {
  float a = 2.0f;
  int n = ELEMENTS;
  void *arguments[] = {&a, &x, &y, &n};
  launch(saxpy, ELEMENTS, arguments, on);
}

static void launch_args4(void) { launch_saxpy(stream); }

static void record(void) { TRY(cudaEventRecord(event, stream)); }

static void record_wait(void) {
  TRY(cudaEventRecord(event, stream));
  TRY(cudaStreamWaitEvent(other, event, 0));
}

static void query(void) { TRY(cudaStreamQuery(stream)); }

static void stream_create_close(void) {
  cudaStream_t s;
  TRY(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0));
  TRY(cudaStreamDestroy(s));
}

static void allocate_free(void) {
  void *memory;
  TRY(cudaMallocAsync(&memory, BYTES, stream));
  TRY(cudaFreeAsync(memory, stream));
}

/* A hundred small kernels in a row, captured. */
static void make_graph(void) {
  cudaGraph_t captured;
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < NODES; i++) launch_args4();
  TRY(cudaStreamEndCapture(stream, &captured));
  TRY(cudaGraphInstantiate(&graph, captured, 0));
}

static void graph_launch(void) {
  if (graph == NULL) make_graph();
  TRY(cudaGraphLaunch(graph, stream));
}

/* `later` comes after what `earlier` has so far. */
static void join(cudaStream_t later, cudaStream_t earlier) {
  TRY(cudaEventRecord(event, earlier));
  TRY(cudaStreamWaitEvent(later, event, 0));
}

/* The same number of kernels, in branches side by side. */
static void make_wide(void) {
  cudaGraph_t captured;
  cudaStream_t branches[BRANCHES];
  for (int i = 0; i < BRANCHES; i++)
    TRY(cudaStreamCreateWithFlags(&branches[i], cudaStreamNonBlocking));
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < BRANCHES; i++) join(branches[i], stream);
  for (int i = 0; i < NODES; i++) launch_saxpy(branches[i % BRANCHES]);
  for (int i = 0; i < BRANCHES; i++) join(stream, branches[i]);
  TRY(cudaStreamEndCapture(stream, &captured));
  TRY(cudaGraphInstantiate(&wide, captured, 0));
  for (int i = 0; i < BRANCHES; i++) TRY(cudaStreamDestroy(branches[i]));
}

static void wide_launch(void) {
  if (wide == NULL) make_wide();
  TRY(cudaGraphLaunch(wide, stream));
}

/* --- measuring ------------------------------------------------------------ */

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

typedef struct work {
  const char *name;
  void (*run)(void);
  int batches, batch;
  int whole; /* what was queued is waited for and counts */
} work;

/* Microseconds a call; the waits between the batches are not counted. */
static double repetition(const work *w, int batches) {
  double total = 0;
  for (int i = 0; i < batches; i++) {
    double start = now_us(), end;
    for (int k = 0; k < w->batch; k++) w->run();
    end = now_us();
    TRY(cudaDeviceSynchronize());
    total += (w->whole ? now_us() : end) - start;
  }
  return total / batches / w->batch;
}

static const work works[] = {
    {"launch_empty", launch_empty, BATCHES, BATCH, 0},
    {"launch_args4", launch_args4, BATCHES, BATCH, 0},
    {"record", record, BATCHES, BATCH, 0},
    {"record_wait", record_wait, BATCHES, BATCH, 0},
    {"query", query, BATCHES, BATCH, 0},
    {"stream_create_close", stream_create_close, 5, 20, 0},
    {"allocate_free", allocate_free, BATCHES, BATCH, 0},
    {"graph_launch", graph_launch, BATCHES, NODES, 0},
    {"graph_replay", graph_launch, BATCHES, NODES, 1},
    {"wide_launch", wide_launch, BATCHES, NODES, 0},
    {"wide_replay", wide_launch, BATCHES, NODES, 1},
};
enum { WORKS = sizeof works / sizeof works[0] };

static void set_up(const char *path) {
  cudaLibrary_t library;
  cudaMemPool_t pool;
  unsigned long long keep = ~0ull;
  TRY(cudaSetDevice(0));
  char *image = path != NULL ? read_image(path) : compile_image();
  TRY(cudaLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
  TRY(cudaLibraryGetKernel(&nothing, library, "nothing"));
  TRY(cudaLibraryGetKernel(&saxpy, library, "saxpy"));
  free(image);
  TRY(cudaDeviceGetDefaultMemPool(&pool, 0));
  TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TRY(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  TRY(cudaMalloc((void **)&x, ELEMENTS * sizeof *x));
  TRY(cudaMalloc((void **)&y, ELEMENTS * sizeof *y));
}

#ifdef RAW_MODULE

static const work *check_work(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  for (int i = 0; i < WORKS; i++)
    if (strcmp(works[i].name, name) == 0) return &works[i];
  luaL_argerror(L, 1, "no such measurement");
  return NULL;
}

static int raw_now(lua_State *L) {
  lua_pushnumber(L, now_us());
  return 1;
}

static int raw_repetition(lua_State *L) {
  const work *w = check_work(L);
  if (stream == NULL) set_up(NULL);
  lua_pushnumber(L, repetition(w, w->batches));
  return 1;
}

static int raw_batches(lua_State *L) {
  const work *w = check_work(L);
  lua_pushinteger(L, w->batches);
  lua_pushinteger(L, w->batch);
  return 2;
}

static int call_once(lua_State *L) {
  ((const work *)lua_touserdata(L, lua_upvalueindex(1)))->run();
  return 0;
}

static int raw_wait(lua_State *L) {
  (void)L;
  TRY(cudaDeviceSynchronize());
  return 0;
}

static int raw_caller(lua_State *L) {
  const work *w = check_work(L);
  if (stream == NULL) set_up(NULL);
  w->run();
  TRY(cudaDeviceSynchronize());
  lua_pushlightuserdata(L, (void *)w);
  lua_pushcclosure(L, call_once, 1);
  return 1;
}

__attribute__((visibility("default"))) int luaopen_bench_raw(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"now", raw_now},         {"repetition", raw_repetition},
      {"batches", raw_batches}, {"caller", raw_caller},
      {"wait", raw_wait},       {NULL, NULL}};
  luaL_newlib(L, functions);
  return 1;
}

#else

static int ascending(const void *a, const void *b) {
  double d = *(const double *)a - *(const double *)b;
  return (d > 0) - (d < 0);
}

static void measure(const work *w) {
  double us[REPETITIONS];
  repetition(w, 1); /* warms up */
  for (int i = 0; i < REPETITIONS; i++) us[i] = repetition(w, w->batches);
  qsort(us, REPETITIONS, sizeof us[0], ascending);
  printf("%s\t%.4f\t%.4f\t%.4f\n", w->name, us[REPETITIONS / 2], us[0],
         us[REPETITIONS - 1]);
}

int main(int argc, char **argv) {
  set_up(argc > 1 ? argv[1] : NULL);
  for (int i = 0; i < WORKS; i++) measure(&works[i]);
  return 0;
}

#endif
