/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The work of bench/engine.lua in plain C, on one thread, built with -O3 for the
 * processor that the compiler takes by itself: the yardstick for the simulated
 * device's engine. A Lua module (bench_native) with
 *   bytes(array)             an array's contents, to fill a device buffer with
 *   run(work)                milliseconds of one run
 *   difference(array, bytes) sum of |theirs - ours| over sum of |ours|
 * Arrays are named work.array.
 */
#define _GNU_SOURCE
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  ELEMENTS = 1 << 20,
  SIDE = 256, /* of matrices */
  BODIES = 2048,
  WIDTH = 512, /* of pictures */
  TURNS = 256, /* of the Mandelbrot set */
  FIELD = 1024,
  POINTS = 1024, /* of a Fourier transform */
  BATCH = 256
};

static float saxpy_x[ELEMENTS], saxpy_y[ELEMENTS];
static float matrix_a[SIDE * SIDE], matrix_b[SIDE * SIDE];
static float tiled_c[SIDE * SIDE], naive_c[SIDE * SIDE];
static float tensor_c[SIDE * SIDE];
static float bodies[BODIES * 4], forces[BODIES * 3];
static int32_t picture[WIDTH * WIDTH];
static uint8_t letters[2 * ELEMENTS];
static uint32_t bins[256];
static float terms[2 * ELEMENTS], total[1];
static int32_t scan_in[ELEMENTS], scan_out[ELEMENTS];
static double field[FIELD * FIELD], next_field[FIELD * FIELD];
static float price[ELEMENTS], strike[ELEMENTS], years[ELEMENTS];
static float call[ELEMENTS], put[ELEMENTS];
static float signal_in[BATCH * POINTS * 2], signal_out[BATCH * POINTS * 2];
static float turn[POINTS];

/* --- arrays by name ------------------------------------------------------- */

typedef struct array {
  const char *name;
  char type; /* f, d, i, u or b */
  void *data;
  size_t bytes;
} array;

#define ARRAY(name, type, data)                                                \
  { name, type, data, sizeof data }
static const array arrays[] = {
    ARRAY("saxpy.x", 'f', saxpy_x),
    ARRAY("saxpy.y", 'f', saxpy_y),
    ARRAY("matrix.a", 'f', matrix_a),
    ARRAY("matrix.b", 'f', matrix_b),
    ARRAY("tiled.c", 'f', tiled_c),
    ARRAY("naive.c", 'f', naive_c),
    ARRAY("tensor.c", 'f', tensor_c),
    ARRAY("nbody.bodies", 'f', bodies),
    ARRAY("nbody.forces", 'f', forces),
    ARRAY("mandelbrot.picture", 'i', picture),
    ARRAY("histogram.letters", 'b', letters),
    ARRAY("histogram.bins", 'u', bins),
    ARRAY("reduction.terms", 'f', terms),
    ARRAY("reduction.total", 'f', total),
    ARRAY("scan.in", 'i', scan_in),
    ARRAY("scan.out", 'i', scan_out),
    ARRAY("stencil.field", 'd', field),
    ARRAY("stencil.next", 'd', next_field),
    ARRAY("options.price", 'f', price),
    ARRAY("options.strike", 'f', strike),
    ARRAY("options.years", 'f', years),
    ARRAY("options.call", 'f', call),
    ARRAY("options.put", 'f', put),
    ARRAY("fft.in", 'f', signal_in),
    ARRAY("fft.out", 'f', signal_out),
    ARRAY("fft.turn", 'f', turn),
};
enum { ARRAYS = sizeof arrays / sizeof arrays[0] };

static double element(const array *a, const void *data, size_t k) {
  switch (a->type) {
  case 'f': return ((const float *)data)[k];
  case 'd': return ((const double *)data)[k];
  case 'i': return ((const int32_t *)data)[k];
  case 'u': return ((const uint32_t *)data)[k];
  default: return ((const uint8_t *)data)[k];
  }
}
static size_t count(const array *a) {
  return a->bytes / (a->type == 'd' ? 8 : a->type == 'b' ? 1 : 4);
}

/* Numbers from 0 to 1. */
static double chance(void) {
  static uint64_t state = 88172645463325252ull;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (double)(state >> 11) * 0x1p-53;
}

static void fill(float *p, size_t n, double from, double to) {
  for (size_t k = 0; k < n; k++) p[k] = (float)(from + (to - from) * chance());
}

static void set_up(void) {
  fill(saxpy_x, ELEMENTS, -1, 1);
  fill(saxpy_y, ELEMENTS, -1, 1);
  fill(matrix_a, SIDE * SIDE, -1, 1);
  fill(matrix_b, SIDE * SIDE, -1, 1);
  fill(bodies, sizeof bodies / 4, 0, 1);
  fill(terms, sizeof terms / 4, 0, 1);
  fill(price, ELEMENTS, 5, 30);
  fill(strike, ELEMENTS, 1, 100);
  fill(years, ELEMENTS, 0.25, 10);
  fill(signal_in, sizeof signal_in / 4, -1, 1);
  for (size_t k = 0; k < sizeof letters; k++)
    letters[k] = (uint8_t)(256 * chance());
  for (size_t k = 0; k < ELEMENTS; k++) scan_in[k] = (int32_t)(100 * chance());
  for (size_t k = 0; k < FIELD * FIELD; k++) field[k] = chance();
  for (size_t k = 0; k < POINTS / 2; k++) {
    double angle = -2 * 3.14159265358979323846 * (double)k / POINTS;
    turn[2 * k] = (float)cos(angle);
    turn[2 * k + 1] = (float)sin(angle);
  }
}

/* --- the work ------------------------------------------------------------- */

static void saxpy(void) {
  for (int i = 0; i < ELEMENTS; i++)
    saxpy_y[i] = 2.0f * saxpy_x[i] + saxpy_y[i];
}

static void product_naive(void) {
  for (int r = 0; r < SIDE; r++)
    for (int c = 0; c < SIDE; c++) {
      float sum = 0;
      for (int k = 0; k < SIDE; k++)
        sum += matrix_a[r * SIDE + k] * matrix_b[k * SIDE + c];
      naive_c[r * SIDE + c] = sum;
    }
}

enum { TILE = 16 };

static void tile(float *to, int r0, int c0, int k0) {
  for (int r = r0; r < r0 + TILE; r++)
    for (int k = k0; k < k0 + TILE; k++)
      for (int c = c0; c < c0 + TILE; c++)
        to[r * SIDE + c] += matrix_a[r * SIDE + k] * matrix_b[k * SIDE + c];
}

static void product_in_tiles(float *to) {
  memset(to, 0, sizeof tiled_c);
  for (int r = 0; r < SIDE; r += TILE)
    for (int c = 0; c < SIDE; c += TILE)
      for (int k = 0; k < SIDE; k += TILE) tile(to, r, c, k);
}

static void product_tiled(void) { product_in_tiles(tiled_c); }
static void product_tensor(void) { product_in_tiles(tensor_c); }

static void nbody(void) {
  for (int i = 0; i < BODIES; i++) {
    const float *me = bodies + 4 * i;
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < BODIES; j++) {
      const float *q = bodies + 4 * j;
      float dx = q[0] - me[0], dy = q[1] - me[1], dz = q[2] - me[2];
      float d2 = dx * dx + dy * dy + dz * dz + 0.01f;
      float inv = 1 / sqrtf(d2), s = q[3] * inv * inv * inv;
      x += dx * s, y += dy * s, z += dz * s;
    }
    forces[3 * i] = x, forces[3 * i + 1] = y, forces[3 * i + 2] = z;
  }
}

static int escape(float cr, float ci) {
  float zr = 0, zi = 0;
  int it = 0;
  while (zr * zr + zi * zi < 4 && it < TURNS) {
    float t = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = t;
    it++;
  }
  return it;
}

static void mandelbrot(void) {
  for (int y = 0; y < WIDTH; y++)
    for (int x = 0; x < WIDTH; x++)
      picture[y * WIDTH + x] =
          escape(-2 + (float)x * 0.005f, -1.28f + (float)y * 0.005f);
}

static void histogram(void) {
  for (size_t k = 0; k < sizeof letters; k++) bins[letters[k]]++;
}

static void reduction(void) {
  float sum = 0;
  for (size_t k = 0; k < sizeof terms / 4; k += 1024) {
    float part = 0;
    for (size_t j = 0; j < 1024; j++) part += terms[k + j];
    sum += part;
  }
  total[0] = sum;
}

static void scan(void) {
  int32_t sum = 0;
  for (int k = 0; k < ELEMENTS; k++) scan_out[k] = sum += scan_in[k];
}

static void stencil(void) {
  for (int y = 1; y < FIELD - 1; y++)
    for (int x = 1; x < FIELD - 1; x++) {
      int i = y * FIELD + x;
      next_field[i] =
          field[i] + 0.1 * (field[i - 1] + field[i + 1] + field[i - FIELD] +
                            field[i + FIELD] - 4 * field[i]);
    }
}

static float normal(float x) {
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(x));
  float p =
      k * (0.31938153f +
           k * (-0.356563782f +
                k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  float c = 0.39894228f * expf(-0.5f * x * x) * p;
  return x > 0 ? 1.0f - c : c;
}

static void options(void) {
  const float rate = 0.02f, volatility = 0.3f;
  for (int i = 0; i < ELEMENTS; i++) {
    float s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
    float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) /
               (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = normal(d1), n2 = normal(d2), discount = expf(-rate * t);
    call[i] = s * n1 - x * discount * n2;
    put[i] = x * discount * (1.0f - n2) - s * (1.0f - n1);
  }
}

static unsigned reversed(unsigned k) {
  unsigned r = 0;
  for (unsigned bit = 1; bit < POINTS; bit <<= 1) r = r << 1 | ((k & bit) != 0);
  return r;
}

static void transform(const float *in, float *a) {
  for (unsigned k = 0; k < POINTS; k++)
    memcpy(a + 2 * (size_t)reversed(k), in + 2 * k, 8);
  for (unsigned half = 1, step = POINTS / 2; half < POINTS;
       half <<= 1, step >>= 1)
    for (unsigned from = 0; from < POINTS; from += 2 * half)
      for (unsigned k = 0; k < half; k++) {
        float *x = a + 2 * (from + k), *y = x + 2 * half;
        const float *w = turn + 2 * k * step;
        float re = y[0] * w[0] - y[1] * w[1], im = y[0] * w[1] + y[1] * w[0];
        y[0] = x[0] - re, y[1] = x[1] - im;
        x[0] += re, x[1] += im;
      }
}

static void fft(void) {
  for (size_t k = 0; k < BATCH; k++)
    transform(signal_in + 2 * k * POINTS, signal_out + 2 * k * POINTS);
}

static const struct {
  const char *name;
  void (*run)(void);
} works[] = {
    {"saxpy", saxpy},         {"tiled", product_tiled},
    {"naive", product_naive}, {"tensor", product_tensor},
    {"nbody", nbody},         {"mandelbrot", mandelbrot},
    {"histogram", histogram}, {"reduction", reduction},
    {"scan", scan},           {"stencil", stencil},
    {"options", options},     {"fft", fft},
};

/* --- for Lua -------------------------------------------------------------- */

static const array *check_array(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  for (int i = 0; i < ARRAYS; i++)
    if (strcmp(arrays[i].name, name) == 0) return &arrays[i];
  luaL_argerror(L, 1, "no such array");
  return NULL;
}

static int native_bytes(lua_State *L) {
  const array *a = check_array(L);
  lua_pushlstring(L, a->data, a->bytes);
  return 1;
}

static int native_difference(lua_State *L) {
  const array *a = check_array(L);
  size_t size;
  const char *theirs = luaL_checklstring(L, 2, &size);
  luaL_argcheck(L, size == a->bytes, 2, "another size");
  double wrong = 0, all = 0;
  for (size_t k = 0; k < count(a); k++) {
    double ours = element(a, a->data, k);
    wrong += fabs(element(a, theirs, k) - ours);
    all += fabs(ours);
  }
  lua_pushnumber(L, wrong / all);
  return 1;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int native_run(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
    if (strcmp(works[i].name, name) == 0) {
      double start = now_ms();
      works[i].run();
      lua_pushnumber(L, now_ms() - start);
      return 1;
    }
  return luaL_argerror(L, 1, "no such work");
}

__attribute__((visibility("default"))) int luaopen_bench_native(lua_State *L) {
  static const luaL_Reg functions[] = {{"bytes", native_bytes},
                                       {"difference", native_difference},
                                       {"run", native_run},
                                       {NULL, NULL}};
  set_up();
  luaL_newlib(L, functions);
  return 1;
}
