/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Launches: the shape table, launch, bind and forall. Arguments are pack.c's,
 * limits the runtime's. */
#include "lua/state.h"

#include <string.h>

/* A bound launch: what kernel:bind returns. */
typedef struct bound {
  tps_head head;
  tps_lua_kernel *kernel; /* kept by user value 1 */
  tps_lua_stream *stream; /* kept by user value 2; NULL: the current one */
  tps_shape shape;
  tps_prepared prepared; /* for the device it was last used on */
} bound;

/* ---- the shape ----------------------------------------------------------- */

/* The number on top of the stack as one dimension. */
static int64_t dimension(lua_State *L, int index, const char *name) {
  lua_Integer n = 0;
  tps_fit fit = tps_integer_from(L, -1, LUA_MININTEGER, LUA_MAXINTEGER, &n);
  if (fit != TPS_FITS)
    tps_option_error(L, index, name, "%s",
                     tps_push_misfit(L, -1, TPS_INT64, fit));
  if (n < 1)
    tps_option_error(L, index, name, "dimensions are at least 1, got %lld",
                     (long long)n);
  return n;
}

/* The field as three dimensions; false when it is absent. */
static bool dimensions(lua_State *L, int index, const char *name,
                       int64_t out[3]) {
  int type = tps_option(L, index, name);
  if (type == LUA_TNUMBER) {
    out[0] = dimension(L, index, name);
    out[1] = out[2] = 1;
  } else if (type == LUA_TTABLE) {
    lua_Unsigned count = lua_rawlen(L, -1);
    if (count < 1 || count > 3)
      tps_option_error(L, index, name, "1 to 3 dimensions expected, got %llu",
                       (unsigned long long)count);
    out[0] = out[1] = out[2] = 1;
    for (int i = 0; i < (int)count; i++) {
      lua_rawgeti(L, -1, i + 1);
      out[i] = dimension(L, index, name);
      lua_pop(L, 1);
    }
  } else if (type != LUA_TNIL) {
    tps_option_error(L, index, name, "number or table expected, got %s",
                     tps_type_name(L, -1));
  }
  lua_pop(L, 1);
  return type != LUA_TNIL;
}

/* Percent + 1, 0 when it is absent. */
static uint8_t carveout(lua_State *L, int index) {
  lua_Integer percent = tps_option_integer(L, index, "carveout", -1);
  bool given = tps_option(L, index, "carveout") != LUA_TNIL;
  lua_pop(L, 1);
  if (given && (percent < 0 || percent > 100))
    tps_option_error(L, index, "carveout", "percent (0 to 100), got %lld",
                     (long long)percent);
  return (uint8_t)(percent + 1);
}

/* Reads all fields but `stream`. */
static void check_shape(lua_State *L, int index, tps_shape *shape) {
  static const char *const names[] = {"grid",     "block",       "shared",
                                      "stream",   "cooperative", "cluster",
                                      "carveout", NULL};
  tps_check_type(L, index, LUA_TTABLE);
  tps_check_options(L, index, names);
  memset(shape, 0, sizeof *shape);
  if (!dimensions(L, index, "grid", shape->grid))
    tps_option_error(L, index, "grid", "must be given");
  if (!dimensions(L, index, "block", shape->block))
    tps_option_error(L, index, "block", "must be given");
  dimensions(L, index, "cluster", shape->cluster);
  shape->shared = tps_option_integer(L, index, "shared", 0);
  if (shape->shared < 0)
    tps_option_error(L, index, "shared", "must not be negative, got %lld",
                     (long long)shape->shared);
  shape->cooperative = tps_option_boolean(L, index, "cooperative", false);
  shape->carveout = carveout(L, index);
}

/* ---- launch -------------------------------------------------------------- */

static void prepare(lua_State *L, tps_lua_kernel *k, tps_device *device,
                    const tps_shape *shape, tps_prepared *out) {
  tps_error err;
  if (tps_launch_prepare(k->kernel, device, shape, out, &err) != 0)
    tps_raise(L, &err);
}

/* Packs the arguments from `first` on and launches. */
static void run(lua_State *L, tps_lua_kernel *k, const tps_prepared *prepared,
                tps_stream *stream, int first) {
  tps_lua *lua = k->head.lua;
  tps_error err;
  uint32_t uses = tps_pack(L, k, first, stream->device);
  tps_site_set(L, lua);
  if (TPS_UNLIKELY(lua->context->blocking)) tps_before_wait(lua);
  if (tps_launch_run(prepared, stream, k->uses, uses, &err) != 0)
    tps_raise(L, &err);
  if (TPS_UNLIKELY(lua->capture != NULL)) tps_capture_launched(lua, stream);
}

/* k:launch(shape, ...) */
int tps_kernel_launch(lua_State *L) {
  tps_check_kernel(L, 1);
  tps_shape shape;
  tps_prepared prepared;
  check_shape(L, 2, &shape);
  tps_stream *stream = tps_option_stream_kept(L, 2, "stream", 2);
  if (stream == NULL) stream = tps_current_stream(L, NULL);
  /* Only now: a finalizer may have closed it. */
  tps_lua_kernel *k = tps_check_kernel(L, 1);
  prepare(L, k, stream->device, &shape, &prepared);
  run(L, k, &prepared, stream, 3);
  return 0;
}

/* ---- bind ---------------------------------------------------------------- */

/* k:bind(shape) → a Launch */
int tps_kernel_bind(lua_State *L) {
  tps_check_kernel(L, 1);
  lua_settop(L, 2);
  bound *b = (bound *)tps_new(L, TPS_TYPE_LAUNCH, sizeof(bound), 2);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 3, 1);
  check_shape(L, 2, &b->shape);
  tps_device *device;
  if (tps_option_stream(L, 2, "stream") != NULL) {
    tps_option(L, 2, "stream");
    b->stream = tps_check_stream(L, -1);
    device = b->stream->stream->device;
    lua_setiuservalue(L, 3, 2);
  } else {
    device = tps_current_device(L);
  }
  tps_lua_kernel *k = tps_check_kernel(L, 1);
  prepare(L, k, device, &b->shape, &b->prepared);
  b->kernel = k;
  return 1;
}

/* The fast path: nothing is allocated, nothing looked up by name. */
static int launch_call(lua_State *L) {
  bound *b = (bound *)tps_check(L, 1, TPS_TYPE_LAUNCH);
  tps_lua_kernel *k = b->kernel;
  if (k == NULL || k->kernel == NULL || k->kernel->module->closed)
    return tps_misuse(L, "attempt to use a closed kernel");
  tps_lua_stream *box = b->stream;
  if (box == NULL) box = tps_current_stream_box(L, NULL);
  tps_stream *stream = box->stream;
  if (stream == NULL) return tps_misuse(L, "attempt to use a closed stream");
  if (stream->device != b->prepared.device)
    prepare(L, k, stream->device, &b->shape, &b->prepared);
  run(L, k, &b->prepared, stream, 2);
  return 0;
}

static int launch_tostring(lua_State *L) {
  bound *b = (bound *)tps_check(L, 1, TPS_TYPE_LAUNCH);
  if (b->kernel == NULL || b->kernel->kernel == NULL ||
      b->kernel->kernel->module->closed) {
    lua_pushliteral(L, "tpstream.Launch (closed)");
    return 1;
  }
  const int64_t *g = b->shape.grid, *t = b->shape.block;
  lua_pushfstring(L, "tpstream.Launch (%s, grid %Ix%Ix%I, block %Ix%Ix%I)",
                  b->kernel->kernel->name, (LUAI_UACINT)g[0], (LUAI_UACINT)g[1],
                  (LUAI_UACINT)g[2], (LUAI_UACINT)t[0], (LUAI_UACINT)t[1],
                  (LUAI_UACINT)t[2]);
  return 1;
}

/* ---- forall -------------------------------------------------------------- */

static int64_t best_threads(lua_State *L, tps_lua_kernel *k,
                            tps_device *device) {
  tps_error err;
  if (k->best_device != device) {
    int64_t threads;
    if (tps_kernel_best_block(k->kernel, device, &threads, &err) != 0)
      tps_raise(L, &err);
    k->best_threads = threads;
    k->best_device = device;
  }
  return k->best_threads;
}

/* Blocks for n threads, in whole clusters where the kernel demands some. */
static int64_t blocks_for(const tps_lua_kernel *k, int64_t n, int64_t threads) {
  int64_t blocks = (n - 1) / threads + 1, of = k->kernel->desc->cluster[0];
  return of > 1 ? (blocks + of - 1) / of * of : blocks;
}

/* k:forall(n, ...): at least n threads, in blocks of the size with the highest
 * occupancy. */
int tps_kernel_forall(lua_State *L) {
  tps_check_kernel(L, 1);
  lua_Integer n = tps_check_integer(L, 2);
  tps_shape shape = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, false, 0};
  tps_prepared prepared;
  if (n < 0) {
    lua_pushfstring(L, "the count must not be negative, got %I",
                    (LUAI_UACINT)n);
    return tps_argument_error(L, 2, lua_tostring(L, -1));
  }
  tps_stream *stream = tps_current_stream(L, NULL);
  tps_lua_kernel *k = tps_check_kernel(L, 1);
  if (k->names != NULL) {
    int given = lua_gettop(L) - 2;
    if (given + 1 != (int)k->count) tps_bad_count(L, k, k->count - 1, given);
    luaL_checkstack(L, 1, NULL);
    lua_pushinteger(L, n);
  }
  if (n == 0) {
    tps_pack(L, k, 3, stream->device); /* the checks still count */
    return 0;
  }
  shape.block[0] = best_threads(L, k, stream->device);
  shape.grid[0] = blocks_for(k, n, shape.block[0]);
  prepare(L, k, stream->device, &shape, &prepared);
  run(L, k, &prepared, stream, 3);
  return 0;
}

static int launch_gc(lua_State *L) {
  tps_break_seal(tps_check(L, 1, TPS_TYPE_LAUNCH));
  return 0;
}

static const luaL_Reg launch_meta[] = {{"__call", launch_call},
                                       {"__gc", launch_gc},
                                       {"__tostring", launch_tostring},
                                       {NULL, NULL}};
static const luaL_Reg launch_methods[] = {{NULL, NULL}};

void tps_launch_open_type(lua_State *L) {
  tps_type_make(L, TPS_TYPE_LAUNCH, launch_meta, launch_methods);
}
